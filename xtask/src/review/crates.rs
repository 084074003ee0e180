//! Figures of each crate that cargo knows: its test programs, and whether every public item has a comment.

use super::rust;
use anyhow::{Context as _, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One crate of the workspace.
#[derive(Debug)]
pub struct CrateFacts {
    pub name: String,
    /// Programs of integration tests: each is linked by itself.
    pub test_programs: usize,
    /// True for a library whose public items may lack a comment.
    pub lacks_missing_docs: bool,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoTarget {
    kind: Vec<String>,
    src_path: PathBuf,
}

/// Every crate of the workspace.
pub fn all(top: &Path) -> anyhow::Result<Vec<CrateFacts>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let output = Command::new("cargo").args(arguments).current_dir(top).output().context("cargo")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    metadata.packages.iter().map(facts).collect()
}

fn facts(package: &Package) -> anyhow::Result<CrateFacts> {
    let of_kind =
        |kind: &'static str| package.targets.iter().filter(move |target| target.kind.iter().any(|own| own == kind));
    let manifest = std::fs::read_to_string(&package.manifest_path)?;
    let libraries = of_kind("lib").chain(of_kind("cdylib"));
    let texts = libraries.map(|target| std::fs::read_to_string(&target.src_path)).collect::<Result<Vec<_>, _>>()?;
    let lacks_missing_docs = texts.iter().any(|text| !requires_comments(&manifest, text));
    Ok(CrateFacts { name: package.name.clone(), test_programs: of_kind("test").count(), lacks_missing_docs })
}

/// True if the lints of the workspace apply, and the crate as a whole makes no exception.
fn requires_comments(manifest: &str, text: &str) -> bool {
    let inherits = manifest.lines().skip_while(|line| line.trim() != "[lints]").nth(1).map(str::trim);
    let whole = |line: &str| line.trim_start().starts_with("#![") && line.contains("missing_docs");
    inherits == Some("workspace = true") && !rust::bare(text).lines().any(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_for_a_whole_crate_is_found_and_one_for_an_item_is_not() {
        let manifest = "[package]\n\n[lints]\nworkspace = true\n";
        assert!(requires_comments(manifest, "//! #![allow(missing_docs)]\n#[allow(missing_docs)]\npub struct A;\n"));
        assert!(!requires_comments(manifest, "//! A.\n#![allow(missing_docs)]\n"));
        assert!(!requires_comments(manifest, "#![allow(dead_code, missing_docs)]\n"));
        assert!(!requires_comments("[package]\n", "//! A.\n"));
    }

    #[test]
    fn this_workspace_has_one_test_program_per_crate_at_the_most() {
        let all = all(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(all.len() > 10, "{all:?}");
        assert!(all.iter().all(|one| one.test_programs <= 1), "{all:?}");
        assert!(all.iter().any(|one| one.test_programs == 1), "{all:?}");
    }
}
