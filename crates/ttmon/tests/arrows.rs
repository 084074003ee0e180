//! The project's own rules: which crate may use which, where `unsafe` may be, and what a commit may not hold.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The crates of the project that each of them depends on, outside of tests.
fn arrows() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(top())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let short = |name: &serde_json::Value| name.as_str().unwrap().trim_start_matches("ttmon-").to_owned();
    let ours: Vec<String> = packages.iter().map(|package| short(&package["name"])).collect();
    let uses = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        let normal = all.filter(|dependency| dependency["kind"].is_null());
        normal.map(|dependency| short(&dependency["name"])).filter(|name| ours.contains(name)).collect()
    };
    packages.iter().map(|package| (short(&package["name"]), uses(package))).collect()
}

#[test]
fn a_crate_uses_only_the_crates_above_it() {
    let expected = [
        ("model", &[][..]),
        ("sources", &["ledger", "model"]),
        ("ledger", &[]),
        ("agent", &["ledger", "model", "sources"]),
        ("sim", &["ledger", "model"]),
        ("alerts", &["model"]),
        ("web", &["model"]),
        ("harness", &["ledger"]),
        ("ttmon", &["alerts", "ledger", "model", "sim", "sources", "web"]),
        ("xtask", &["ledger", "sim"]),
    ];
    let mut arrows = arrows();
    for (name, uses) in expected {
        let mut found = arrows.remove(name).unwrap();
        found.sort();
        assert_eq!(found, uses, "{name}");
    }
    assert!(arrows.is_empty(), "say what these may use: {arrows:?}");
}

fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            source_files(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
}

#[test]
fn unsafe_is_in_one_mapping_module_in_the_agent_and_in_the_harness_of_the_tests() {
    let mut files = Vec::new();
    source_files(&top().join("crates"), &mut files);
    let with_unsafe = files.iter().filter(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().any(|line| line.contains(concat!("unsafe", " {")) || line.contains(concat!("unsafe", " impl")))
    });
    let mut crates: Vec<String> = with_unsafe
        .map(|file| file.strip_prefix(top().join("crates")).unwrap().to_string_lossy().into_owned())
        .filter(|path| !path.starts_with("harness/") && !path.starts_with("agent/"))
        .collect();
    crates.sort();
    assert_eq!(crates, ["ledger/src/mapping.rs"]);
}
