//! The source files that git tracks, and which of their lines are product, tools or tests.

use super::rust;
use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the lines of a file are, apart from the test modules in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What users get: the crates, with the page and its scripts, and the Python package.
    Product,
    /// What only developers run: `xtask` and `fuzz`.
    Tool,
    /// Tests, and what they need.
    Test,
}

/// One source file.
pub struct SourceFile {
    pub path: String,
    pub role: Role,
    pub text: String,
    /// The text of Rust without comments, literals and test modules; empty for other languages.
    pub bare: String,
    /// Lines outside of test modules.
    pub lines: usize,
    /// Lines of test modules, or all lines of a test file.
    pub test_lines: usize,
}

impl SourceFile {
    /// The file as it is judged from its path and text, or `None` if it is not source code.
    pub fn new(path: &str, text: String) -> Option<SourceFile> {
        let role = role(path)?;
        let bare = if path.ends_with(".rs") { rust::bare(&text) } else { String::new() };
        let blocks = rust::test_modules(&bare);
        let all = text.lines().count();
        let inline: usize = blocks.iter().map(|block| rust::lines_of(&bare, block)).sum();
        let test_lines = if role == Role::Test { all } else { inline };
        let bare = rust::without(&bare, &blocks);
        Some(SourceFile { path: path.to_owned(), role, text, bare, lines: all - test_lines, test_lines })
    }

    /// The crate that the file belongs to, or the folder at the top.
    pub fn crate_name(&self) -> &str {
        let path = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        path.split('/').next().unwrap_or_default()
    }
}

/// The folder of the repository that the command was started in.
pub fn top() -> anyhow::Result<PathBuf> {
    Ok(PathBuf::from(git(Path::new("."), &["rev-parse", "--show-toplevel"])?.trim_end()))
}

/// Every source file that git tracks.
pub fn tracked(top: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let list = git(top, &["ls-files", "-z"])?;
    let mut files = Vec::new();
    for path in list.split_terminator('\0').filter(|path| role(path).is_some() && top.join(path).is_file()) {
        let text = std::fs::read_to_string(top.join(path)).with_context(|| path.to_owned())?;
        files.extend(SourceFile::new(path, text));
    }
    Ok(files)
}

/// The bytes of every Markdown file that git tracks, and its path.
pub fn documents(top: &Path) -> anyhow::Result<Vec<(usize, String)>> {
    let list = git(top, &["ls-files", "-z", "*.md"])?;
    let size = |path: &str| Some((std::fs::metadata(top.join(path)).ok()?.len() as usize, path.to_owned()));
    Ok(list.split_terminator('\0').filter_map(size).collect())
}

fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(arguments).current_dir(folder).output().context("git")?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn role(path: &str) -> Option<Role> {
    let (folder, name) = path.rsplit_once('/')?;
    let (_, extension) = name.rsplit_once('.')?;
    if !matches!(extension, "rs" | "js" | "css" | "html" | "py" | "c") {
        return None;
    }
    let is_test_folder = folder.split('/').any(|part| matches!(part, "tests" | "golden"));
    if is_test_folder || matches!(name, "tests.rs" | "golden.rs" | "example.rs") {
        return Some(Role::Test);
    }
    match folder.split('/').next()? {
        "crates" | "python" => Some(Role::Product),
        "xtask" | "fuzz" => Some(Role::Tool),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_known_by_its_folder_or_by_its_name() {
        let tests =
            ["crates/a/tests/b.rs", "crates/a/src/b/tests/c.rs", "crates/a/src/tests.rs", "crates/a/src/golden.rs"];
        assert!(tests.into_iter().all(|path| role(path) == Some(Role::Test)));
        assert_eq!(role("crates/a/src/testing.rs"), Some(Role::Product));
    }

    #[test]
    fn the_page_and_the_python_package_are_product_and_chores_are_tools() {
        assert_eq!(role("crates/web/src/page/js/main.js"), Some(Role::Product));
        assert_eq!(role("python/ttmon/__init__.py"), Some(Role::Product));
        assert_eq!(role("xtask/src/main.rs"), Some(Role::Tool));
    }

    #[test]
    fn texts_and_documents_are_no_source_code() {
        assert_eq!(role("README.md"), None);
        assert_eq!(role("crates/a/src/golden/screen.txt"), None);
        assert_eq!(role("scripts/fetch"), None);
    }

    #[test]
    fn lines_of_a_test_module_count_as_test_lines() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let file = SourceFile::new("crates/a/src/lib.rs", text.to_owned()).unwrap();
        assert_eq!((file.lines, file.test_lines, file.crate_name()), (2, 4, "a"));
    }
}
