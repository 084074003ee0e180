//! Type names that more than one type has.
//!
//! Counts what a search for `^(pub(\([^)]*\))? )?(struct|enum|trait) [A-Za-z0-9]+` finds in `crates/*/src/*.rs`, without the files
//! and folders named `test`, `tests` or `golden`, so that both give the same figures.

use super::files::SourceFile;
use std::collections::BTreeMap;

/// Every type name with how many types have it.
pub struct TypeNames(BTreeMap<String, usize>);

impl TypeNames {
    pub fn of(files: &[SourceFile]) -> TypeNames {
        let mut names = BTreeMap::new();
        for file in files.iter().filter(|file| is_searched(&file.path)) {
            for name in file.text.lines().filter_map(declared) {
                *names.entry(name.to_owned()).or_default() += 1;
            }
        }
        TypeNames(names)
    }

    /// How many types there are.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// How many types share their name with another.
    pub fn shared(&self) -> usize {
        self.repeated().map(|(_, count)| count).sum()
    }

    /// The share of the types that share their name, in percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.shared() as f64 / self.total().max(1) as f64
    }

    /// The names that more than one type has.
    pub fn repeated(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().filter(|(_, count)| **count > 1).map(|(name, count)| (name.as_str(), *count))
    }
}

fn is_searched(path: &str) -> bool {
    let Some((_, inside)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
        return false;
    };
    let is_test = |part: &str| matches!(part.trim_end_matches(".rs"), "test" | "tests" | "golden");
    inside.ends_with(".rs") && !inside.split('/').any(is_test)
}

/// The type that a line declares, if it begins without indentation.
fn declared(line: &str) -> Option<&str> {
    let rest = without_visibility(line)?;
    let rest = ["struct ", "enum ", "trait "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

fn without_visibility(line: &str) -> Option<&str> {
    let Some(rest) = line.strip_prefix("pub") else { return Some(line) };
    let rest = match rest.strip_prefix('(') {
        Some(path) => path.split_once(')')?.1,
        None => rest,
    };
    rest.strip_prefix(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_begins_its_line() {
        assert_eq!(declared("pub(in crate::a) struct Device {"), Some("Device"));
        assert_eq!(declared("enum Kind<T> {"), Some("Kind"));
        assert_eq!(declared("pub trait Source: Send {"), Some("Source"));
        assert_eq!(declared("    struct Inner;"), None);
        assert_eq!(declared("pub fn structure() {"), None);
    }

    #[test]
    fn every_type_that_shares_its_name_is_counted() {
        let file = |path: &str, text: &str| SourceFile::new(path, text.to_owned()).unwrap();
        let names = TypeNames::of(&[
            file("crates/a/src/lib.rs", "pub struct Event;\nstruct Alert;\n"),
            file("crates/b/src/c.rs", "enum Event {}\npub struct Line;\n"),
            file("crates/b/src/c/tests.rs", "struct Line;\n"),
            file("crates/b/tests/d.rs", "struct Line;\n"),
        ]);
        assert_eq!(names.repeated().collect::<Vec<_>>(), [("Event", 2)]);
        assert_eq!((names.shared(), names.total(), names.percent()), (2, 4, 50.0));
    }
}
