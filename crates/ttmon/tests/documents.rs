//! The documents of the repository: their links lead somewhere, the files that they name exist, and their sentences are short.

#[allow(dead_code)]
#[path = "../../../xtask/src/review/prose.rs"]
mod prose;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders that `git clone` does not bring.
const NOT_OURS: [&str; 3] = [".git", "target", "node_modules"];
/// Folders whose files documents name in code quotes.
const FOLDERS: [&str; 8] = ["crates/", "docs/", "fuzz/", "packaging/", "python/", "scripts/", "xtask/", ".github/"];

/// Each Markdown document and its text, by its path from the top.
fn documents() -> BTreeMap<PathBuf, String> {
    let mut found = Vec::new();
    below(&top(), &mut found);
    let text = |path: &PathBuf| (path.strip_prefix(top()).unwrap().to_owned(), std::fs::read_to_string(path).unwrap());
    found.iter().map(text).collect()
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() && !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
            below(&path, found);
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The text without blocks of code.
fn without_code_blocks(text: &str) -> String {
    let mut is_code = false;
    let mut kept = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        kept += if is_code || is_fence { "" } else { line };
        kept.push('\n');
    }
    kept
}

/// The code of its lines, and what is between it.
fn code_and_prose(text: &str) -> (Vec<String>, String) {
    let (mut code, mut prose) = (Vec::new(), String::new());
    for line in without_code_blocks(text).lines() {
        for (at, piece) in line.split('`').enumerate() {
            if at % 2 == 1 { code.push(piece.to_owned()) } else { prose += piece }
        }
        prose.push('\n');
    }
    (code, prose)
}

/// Where links and pictures of a document lead to.
fn links(text: &str) -> Vec<String> {
    let (_, text) = code_and_prose(text);
    let between = |text: &str, begin: &str, end: char| {
        text.split(begin).skip(1).filter_map(|rest| rest.split(end).next().map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut found = between(&text, "](", ')');
    for attribute in ["href=\"", "src=\"", "srcset=\""] {
        found.extend(between(&text, attribute, '"'));
    }
    found
        .extend(text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ").map(|(_, to)| to.to_owned())));
    found.retain(|link| !link.contains("://") && !link.starts_with("mailto:"));
    found
}

/// The anchors of a document: its headings, as the hosting site names them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in without_code_blocks(text).lines() {
        let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else { continue };
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase();
        let repeated = (1..).map(|n| format!("{slug}-{n}"));
        let name = [slug.clone()].into_iter().chain(repeated).find(|name| !anchors.contains(name));
        anchors.extend(name);
    }
    anchors
}

/// Reasons why the links of one document lead nowhere.
fn broken(document: &Path, text: &str, all: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let folder = top().join(document).parent().unwrap().to_owned();
    let check = |link: String| {
        let (path, anchor) = link.split_once('#').map_or((&*link, None), |(path, anchor)| (path, Some(anchor)));
        let target = if path.is_empty() { top().join(document) } else { folder.join(path) };
        let Ok(target) = target.canonicalize() else { return Some(format!("{link}: no such file")) };
        let Ok(target) = target.strip_prefix(top()).map(Path::to_owned) else {
            return Some(format!("{link}: outside of the repository"));
        };
        let anchor = anchor.filter(|_| all.contains_key(&target))?;
        (!anchors(&all[&target]).contains(anchor)).then(|| format!("{link}: no such heading"))
    };
    links(text).into_iter().filter_map(check).map(|why| format!("{}: {why}", document.display())).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let all = documents();
    assert!(all.len() > 30 && all.contains_key(Path::new("README.md")), "{:?}", all.keys());
    let broken: Vec<String> = all.iter().flat_map(|(document, text)| broken(document, text, &all)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_file_that_a_document_names_is_there() {
    let mut missing = Vec::new();
    // What is told of the past may be gone.
    for (document, text) in documents().iter().filter(|(path, _)| !path.ends_with("CHANGELOG.md")) {
        for code in code_and_prose(text).0 {
            let is_path =
                FOLDERS.iter().any(|folder| code.starts_with(folder)) && !code.contains([' ', '*', '<', '{', '…']);
            if is_path && !top().join(&code).exists() {
                missing.push(format!("{}: {code}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn no_sentence_of_a_document_is_long() {
    let mut long = Vec::new();
    // Lines of the changelog name many things each.
    for (document, text) in documents().iter().filter(|(path, _)| !path.ends_with("CHANGELOG.md")) {
        for sentence in prose::sentences(text, prose::MARKS) {
            if sentence.words > prose::SENTENCE_WORDS {
                long.push(format!("{}: {} words: {}", document.display(), sentence.words, sentence.text));
            }
        }
    }
    assert!(long.is_empty(), "more than {} words: {long:#?}", prose::SENTENCE_WORDS);
}

#[test]
fn a_link_without_a_file_or_a_heading_is_found() {
    let text = "# One thing\n[a](no.md) [b](#one-thing) [c](#two) `[d](no.md)`\n```\n[e](no.md)\n```\n![f](no.png)\n## One thing\n";
    let document = PathBuf::from("README.md");
    let found = broken(&document, text, &BTreeMap::from([(document.clone(), text.to_owned())]));
    let wanted = ["no.md: no such file", "#two: no such heading", "no.png: no such file"];
    assert_eq!(found, wanted.map(|why| format!("README.md: {why}")));
    assert_eq!(anchors(text), BTreeSet::from(["one-thing".to_owned(), "one-thing-1".to_owned()]));
    assert_eq!(code_and_prose("a `b` c\n```\n`d`\n```\n").0, ["b"]);
}
