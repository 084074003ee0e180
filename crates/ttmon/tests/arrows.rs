//! The project's own rules: which crate may use which, where `unsafe` may be, and what a commit may not hold.

use std::collections::{BTreeMap, BTreeSet};
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
        ("ledger", &["model"]),
        ("deep", &["model"]),
        ("sources", &["deep", "ledger", "model"]),
        ("agent", &["ledger", "model", "sources"]),
        ("sim", &["ledger", "model"]),
        ("alerts", &["model"]),
        ("web", &["ledger", "model"]),
        ("show", &["model"]),
        ("watch", &["alerts", "ledger", "model", "show", "sim", "sources"]),
        ("top", &["alerts", "ledger", "model", "show", "sources", "watch"]),
        ("serve", &["alerts", "ledger", "model", "show", "sources", "watch", "web"]),
        ("ttmon", &["alerts", "deep", "ledger", "model", "serve", "show", "sim", "top", "watch", "web"]),
        ("harness", &["ledger"]),
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
fn unsafe_is_where_memory_is_mapped_processes_are_forked_or_limited_or_sockets_inherited_and_in_the_agent() {
    let mut files = Vec::new();
    source_files(&top().join("crates"), &mut files);
    let with_unsafe = files.iter().filter(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().any(|line| line.contains(concat!("unsafe", " {")) || line.contains(concat!("unsafe", " impl")))
    });
    let mut crates: Vec<String> = with_unsafe
        .map(|file| file.strip_prefix(top().join("crates")).unwrap().to_string_lossy().into_owned())
        .filter(|path| !path.starts_with("harness/") && !path.starts_with("agent/") && !path.contains("/tests/"))
        .collect();
    crates.sort();
    assert_eq!(
        crates,
        [
            "deep/src/node.rs",
            "deep/src/privileges.rs",
            "ledger/src/mapping.rs",
            "serve/src/systemd.rs",
            "ttmon/src/left_behind.rs",
            "ttmon/src/start.rs"
        ]
    );
}

/// The files of a crate that are in the program: neither tests nor what only they use.
fn product_files(src: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    source_files(src, &mut files);
    let is_test = |path: &Path| {
        let stem = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let relative = path.strip_prefix(src).unwrap();
        matches!(stem, "tests" | "golden" | "example") || relative.iter().any(|part| part == "tests")
    };
    files.retain(|path| !is_test(path));
    files.sort();
    files
}

/// The text of a file without comments, and without what is compiled for tests only.
fn product_text(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if line.trim() == "#[cfg(test)]" {
            let indent = &line[..line.len() - line.trim_start().len()];
            // Up to the end of the item that follows: a line that ends it, or a brace at its own indent.
            at += 1;
            if !lines[at].trim_end().ends_with(';') {
                while lines[at] != format!("{indent}}}") {
                    at += 1;
                }
            }
        } else if !line.trim_start().starts_with("//") {
            kept.push(line);
        }
        at += 1;
    }
    kept.join("\n")
}

/// The first names of all paths that begin with a prefix: `crate::a::b`, and each in `crate::{a, b::c}`.
fn names_behind<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    let word = |text: &'a str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        &text[..end]
    };
    for (at, _) in text.match_indices(prefix) {
        // `macro_rules` writes `$crate`, and `super::super::` is looked for on its own.
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == ':') {
            continue;
        }
        let rest = &text[at + prefix.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.push(word(rest));
            continue;
        };
        let (mut depth, mut is_first) = (0, true);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_first = true,
                c if depth == 0 && is_first && (c.is_alphanumeric() || c == '_') => {
                    names.push(word(&list[at..]));
                    is_first = false;
                }
                _ => {}
            }
        }
    }
    names
}

/// Which top-level modules of a crate use which. What stands in `lib.rs` itself is the module `lib`.
fn modules(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files = product_files(src);
    let module_of = |path: &Path| -> Vec<String> {
        let relative = path.strip_prefix(src).unwrap().with_extension("");
        let mut parts: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if parts.last().is_some_and(|last| last == "mod") {
            parts.pop();
        }
        parts
    };
    let roots: Vec<&PathBuf> =
        files.iter().filter(|path| matches!(&module_of(path)[..], [one] if one == "lib" || one == "main")).collect();
    let all: BTreeSet<String> = files.iter().map(|path| module_of(path).remove(0)).collect();
    // What the root hands on belongs to the module that it is from.
    let mut handed_on: BTreeMap<String, String> = BTreeMap::new();
    for root in &roots {
        let text = product_text(root);
        for module in &all {
            for name in names_behind(&text, &format!("{module}::")) {
                handed_on.insert(name.to_owned(), module.clone());
            }
        }
    }
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files.iter().filter(|path| !roots.contains(path) && !path.starts_with(src.join("bin"))) {
        let (parts, text) = (module_of(path), product_text(path));
        let mut names = names_behind(&text, "crate::");
        // As many `super` as the module is deep end at the root; in a module within the file, one more does.
        names.extend(names_behind(&text, &"super::".repeat(parts.len())));
        let used = names.into_iter().filter(|name| !["", "super", "self"].contains(name)).map(|name| {
            let module = all.get(name).or_else(|| handed_on.get(name));
            module.cloned().unwrap_or_else(|| "lib".to_owned())
        });
        let used: BTreeSet<String> = used.filter(|module| *module != parts[0]).collect();
        uses.entry(parts[0].clone()).or_default().extend(used);
    }
    // The root uses what its own functions need, which are few; an item there that modules use is an arrow back.
    for root in roots {
        let text = product_text(root);
        let uses_of_root: BTreeSet<String> =
            all.iter().filter(|module| text.contains(&format!("{module}::"))).cloned().collect();
        uses.entry("lib".into()).or_default().extend(uses_of_root);
    }
    uses
}

/// A way from a module back to itself.
fn cycle(uses: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn go(
        at: &str,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
        uses: &BTreeMap<String, BTreeSet<String>>,
    ) -> bool {
        if let Some(from) = way.iter().position(|module| module == at) {
            way.drain(..from);
            way.push(at.to_owned());
            return true;
        }
        if done.contains(at) {
            return false;
        }
        way.push(at.to_owned());
        if uses.get(at).into_iter().flatten().any(|next| go(next, way, done, uses)) {
            return true;
        }
        done.insert(way.pop().unwrap());
        false
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|start| {
        let mut way = Vec::new();
        go(start, &mut way, &mut done, uses).then_some(way)
    })
}

fn crate_folders() -> Vec<(String, PathBuf)> {
    let crates = std::fs::read_dir(top().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = crates.chain([top().join("xtask")]).collect();
    all.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    all.into_iter().map(|path| (name(&path), path.join("src"))).collect()
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for (name, src) in crate_folders() {
        if let Some(way) = cycle(&modules(&src)) {
            found.push(format!("{name}: {}", way.join(" -> ")));
        }
    }
    assert!(found.is_empty(), "modules use each other in a circle:\n{}", found.join("\n"));
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = "use crate::a::B;\nuse crate::{c, d::{e, f}, g::H};\nlet x = crate::i::j(super::super::k);";
    assert_eq!(names_behind(text, "crate::"), ["a", "c", "d", "g", "i"]);
    assert_eq!(names_behind(text, "super::super::"), ["k"]);
    let uses =
        [("a", "b"), ("b", "c"), ("c", "b")].map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])));
    assert_eq!(cycle(&BTreeMap::from(uses)).unwrap(), ["b", "c", "b"]);
}

#[test]
fn no_crate_has_more_than_30_percent_of_the_product() {
    let lines = |src: &Path| -> usize {
        product_files(src)
            .iter()
            .map(|path| product_text(path).lines().filter(|line| !line.trim().is_empty()).count())
            .sum()
    };
    // What drives tests and benchmarks is no part of the product.
    let crates = crate_folders().into_iter().filter(|(name, _)| name != "harness" && name != "xtask");
    let sizes: Vec<(String, usize)> = crates.map(|(name, src)| (name, lines(&src))).collect();
    let all: usize = sizes.iter().map(|(_, lines)| lines).sum();
    for (name, lines) in &sizes {
        assert!(lines * 100 <= all * 30, "{name} has {lines} of {all} lines, more than 30 %: {sizes:?}");
    }
}
