//! docs/adding-a-figure.md shows two changes as diffs. They apply to this tree, and what they add works.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DOCUMENT: &str = include_str!("../../../docs/adding-a-figure.md");

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The diffs of the document, in their order.
fn diffs() -> Vec<&'static str> {
    DOCUMENT.split("```diff\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The files that the diffs change, by path, as they are afterwards.
fn changed_files() -> BTreeMap<String, Vec<u8>> {
    let all = diffs().concat();
    let paths: BTreeSet<&str> = all.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
    let folder = tempfile::tempdir().unwrap();
    for path in &paths {
        let copy = folder.path().join(path);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(top().join(path), copy).unwrap();
    }
    for diff in diffs() {
        apply(diff, folder.path());
    }
    paths.iter().map(|path| ((*path).to_owned(), std::fs::read(folder.path().join(path)).unwrap())).collect()
}

fn apply(diff: &str, folder: &Path) {
    // Outside of a repository, so that paths are those of the folder.
    let mut git = Command::new("git");
    git.args(["apply", "--verbose"]).current_dir(folder).env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    let mut child = git.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docs/adding-a-figure.md no longer applies:\n{said}\n{diff}");
}

/// Every file of a folder that the workspace is built from.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// A copy of the workspace with both changes. Files that are right already stay, so that cargo builds only what has changed.
fn changed_workspace() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adding-a-figure");
    let mut files: Vec<PathBuf> = ["Cargo.toml", "Cargo.lock"].map(|name| top().join(name)).into();
    for folder in [".cargo", "crates", "xtask"] {
        files_below(&top().join(folder), &mut files);
    }
    let changed = changed_files();
    for file in files {
        let path = file.strip_prefix(top()).unwrap();
        let text = changed.get(path.to_str().unwrap()).cloned().unwrap_or_else(|| std::fs::read(&file).unwrap());
        let place = copy.join(path);
        if std::fs::read(&place).ok().as_ref() != Some(&text) {
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, text).unwrap();
        }
    }
    copy
}

#[test]
fn both_changes_apply() {
    let changed = changed_files();
    let text = |path: &str| String::from_utf8(changed[path].clone()).unwrap();
    let rows = text("crates/model/src/figure/device.rs");
    for name in ["noc_clk_megahertz", "gddr_power_watts"] {
        assert!(rows.contains(name), "no row of {name}");
        assert!(text("crates/model/src/device.rs").contains(name), "no field of {name}");
    }
    assert_eq!(changed.len(), 4, "the table at its top names four files");
    for file in changed.keys() {
        assert!(DOCUMENT.contains(&format!("| `{file}` |")), "{file} is missing in the table of the document");
    }
}

#[test]
#[ignore = "long"]
fn what_they_add_is_sampled_and_changes_nothing_else() {
    let workspace = changed_workspace();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    // The second command of the document, for the crate that samples.
    cargo.args(["test", "--quiet", "--offline", "--locked", "-p", "ttmon-sources", "attributes"]);
    cargo.current_dir(&workspace).env("CARGO_TARGET_DIR", target).env("UPDATE_EXPECT", "1");
    // expect_test takes the outermost workspace otherwise, which is the real one.
    cargo.env("CARGO_WORKSPACE_DIR", &workspace);
    let output = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(" passed"), "no test ran: {said}");

    // It has refreshed the pinned texts: compare them with what they were.
    let path = "crates/sources/tests/attributes.rs";
    let before = String::from_utf8(changed_files()[path].clone()).unwrap();
    let after = std::fs::read_to_string(workspace.join(path)).unwrap();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let new: Vec<String> = lines(&after).difference(&lines(&before)).cloned().collect();
    assert!(
        !new.is_empty() && new.iter().all(|line| line.contains("noc_clk") || line.contains("gddr_power")),
        "{new:#?}"
    );
    assert!(lines(&before).is_subset(&lines(&after)), "lines have gone");
}
