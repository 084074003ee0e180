//! Which top-level module of a crate uses which, and the cycles among them.
//!
//! A module uses another when its text, outside of tests, has `crate::other`, alone or in a group, or `super::other` where `super` is
//! the crate. What the crate's root does is not counted: it has to name them all.

use super::files::{Role, SourceFile};
use super::rust::is_word;
use std::collections::{BTreeMap, BTreeSet};

/// A module's name → the modules that it uses → the first file that does.
#[derive(Default)]
pub struct Modules(BTreeMap<String, BTreeMap<String, String>>);

/// Modules that all use each other, directly or through others.
#[derive(Debug, PartialEq, Eq)]
pub struct Cycle {
    pub members: Vec<String>,
    /// A shortest way around, with the file behind each step.
    pub example: Vec<(String, String)>,
}

/// The modules of each crate.
pub fn by_crate(files: &[SourceFile]) -> BTreeMap<String, Modules> {
    let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
    for file in files.iter().filter(|file| file.role != Role::Test) {
        let Some(path) = module_path(&file.path) else { continue };
        let used = crates.entry(file.crate_name().to_owned()).or_default().0.entry(path[0].to_owned()).or_default();
        for name in used_names(&file.bare, path.len()).into_iter().filter(|name| name != path[0]) {
            used.entry(name).or_insert_with(|| file.path.clone());
        }
    }
    for modules in crates.values_mut() {
        let known: BTreeSet<String> = modules.0.keys().cloned().collect();
        modules.0.values_mut().for_each(|used| used.retain(|name, _| known.contains(name)));
    }
    crates
}

/// The names of the modules from the crate's root to a file; `None` for the root itself.
fn module_path(path: &str) -> Option<Vec<&str>> {
    let (_, inside) = path.split_once("/src/")?;
    let mut parts: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    if parts.last() == Some(&"mod") {
        parts.pop();
    }
    (!matches!(parts[..], [] | ["main"] | ["lib"])).then_some(parts)
}

/// The names below the crate's root that a text mentions, `depth` modules below it.
fn used_names(bare: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let supers = "super::".repeat(depth);
    for prefix in ["crate::", supers.as_str()] {
        for (at, _) in bare.match_indices(prefix) {
            let before = &bare[..at];
            if !before.ends_with(is_word) && !before.ends_with("::") {
                names.extend(names_after(&bare[at + prefix.len()..]));
            }
        }
    }
    names
}

/// The first name of a path, or that of each path in a group.
fn names_after(rest: &str) -> Vec<String> {
    let Some(group) = rest.trim_start().strip_prefix('{') else { return vec![first_word(rest)] };
    let (mut depth, mut names, mut begin) = (1, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && c == ',' {
            names.push(first_word(&group[begin..at]));
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| is_word(*c)).collect()
}

impl Modules {
    /// The groups of modules that use each other.
    pub fn cycles(&self) -> Vec<Cycle> {
        let reached: BTreeMap<&str, BTreeSet<&str>> = self.0.keys().map(|name| (&**name, self.reached(name))).collect();
        let mut cycles: Vec<Cycle> = Vec::new();
        for (name, there) in reached.iter().filter(|(name, there)| there.contains(*name)) {
            if cycles.iter().any(|cycle| cycle.members.iter().any(|member| member == name)) {
                continue;
            }
            let members: Vec<&str> = there.iter().copied().filter(|other| reached[other].contains(name)).collect();
            let rounds = members.iter().filter_map(|member| self.way_around(member));
            let example = rounds.min_by_key(Vec::len).unwrap_or_default();
            cycles.push(Cycle { members: members.into_iter().map(str::to_owned).collect(), example });
        }
        cycles
    }

    /// The modules that one uses, directly or through others.
    fn reached(&self, from: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = self.0[from].keys().map(String::as_str).collect();
        while let Some(name) = next.pop() {
            if found.insert(name) {
                next.extend(self.0[name].keys().map(String::as_str));
            }
        }
        found
    }

    /// The shortest way from a module back to itself: each module with the file that uses the next one.
    fn way_around(&self, from: &str) -> Option<Vec<(String, String)>> {
        let mut ways: Vec<Vec<(String, String)>> = vec![Vec::new()];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let last = way.last().map_or(from, |(name, _)| name);
                for (name, file) in &self.0[last] {
                    let mut way = way.clone();
                    way.push((name.clone(), file.clone()));
                    if name == from {
                        return Some(way);
                    }
                    longer.extend(seen.insert(name.clone()).then_some(way));
                }
            }
            ways = longer;
        }
        None
    }
}

#[cfg(test)]
mod tests;
