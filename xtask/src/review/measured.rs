//! All figures of the repository.

use super::crates::{self, CrateFacts};
use super::figures::Sizes;
use super::files::{self, Role, SourceFile};
use super::modules::{self, Cycle};
use super::names::TypeNames;
use super::prose;
use super::rust;
use std::path::Path;

/// The documents whose size and sentences have a limit, and the most bytes of each.
const DOCUMENTS: [(&str, usize); 2] = [("README.md", 8_000), ("ARCHITECTURE.md", 10_000)];

/// What there is to print and to judge.
pub struct Measured {
    /// Crates and other folders, the largest product first.
    pub parts: Vec<Part>,
    /// Lines of each product file.
    pub files: Sizes,
    /// Lines of each function of the product.
    pub functions: Sizes,
    /// Rust lines of the crates' `src` folders and of `xtask`, outside of tests: another reading of "product lines".
    pub rust_lines: usize,
    pub names: TypeNames,
    /// Each with the name of its crate.
    pub cycles: Vec<(String, Cycle)>,
    pub documents: Vec<Document>,
    /// Bytes of every Markdown file.
    pub document_bytes: Sizes,
    pub crates: Vec<CrateFacts>,
    pub locked_packages: usize,
}

/// A crate, or another folder at the top.
#[derive(Default)]
pub struct Part {
    pub name: String,
    pub files: usize,
    pub product_lines: usize,
    pub tool_lines: usize,
    pub test_lines: usize,
}

/// A document for people.
pub struct Document {
    pub name: &'static str,
    pub bytes: usize,
    /// The most bytes that it should have.
    pub limit: usize,
    /// Words of each sentence.
    pub sentences: Sizes,
    /// The same where a colon does not end a sentence.
    pub long_sentences: Sizes,
}

impl Measured {
    /// Reads the repository.
    pub fn of(top: &Path) -> anyhow::Result<Measured> {
        let all = files::tracked(top)?;
        let product = || all.iter().filter(|file| file.role == Role::Product);
        let cycles = modules::by_crate(&all)
            .into_iter()
            .flat_map(|(name, modules)| modules.cycles().into_iter().map(move |cycle| (name.clone(), cycle)));
        let lock = std::fs::read_to_string(top.join("Cargo.lock"))?;
        Ok(Measured {
            parts: parts(&all),
            files: Sizes::new(product().map(|file| (file.lines, file.path.clone()))),
            functions: Sizes::new(product().flat_map(functions)),
            rust_lines: all.iter().filter(|file| is_rust_source(file)).map(|file| file.lines).sum(),
            names: TypeNames::of(&all),
            cycles: cycles.collect(),
            documents: DOCUMENTS
                .into_iter()
                .map(|(name, limit)| document(top, name, limit))
                .collect::<anyhow::Result<_>>()?,
            document_bytes: Sizes::new(files::documents(top)?.into_iter()),
            crates: crates::all(top)?,
            locked_packages: lock.lines().filter(|line| *line == "[[package]]").count(),
        })
    }

    pub fn product_lines(&self) -> usize {
        self.parts.iter().map(|part| part.product_lines).sum()
    }

    /// A part's share of the product lines, in percent.
    pub fn share(&self, part: &Part) -> f64 {
        100.0 * part.product_lines as f64 / self.product_lines().max(1) as f64
    }
}

fn parts(files: &[SourceFile]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for file in files {
        let at = parts.iter().position(|part| part.name == file.crate_name()).unwrap_or_else(|| {
            parts.push(Part { name: file.crate_name().to_owned(), ..Part::default() });
            parts.len() - 1
        });
        let part = &mut parts[at];
        part.files += 1;
        part.test_lines += file.test_lines;
        match file.role {
            Role::Product => part.product_lines += file.lines,
            Role::Tool => part.tool_lines += file.lines,
            Role::Test => {}
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse((part.product_lines, part.tool_lines)));
    parts
}

fn functions(file: &SourceFile) -> impl Iterator<Item = (usize, String)> {
    let functions = rust::functions(&file.bare).into_iter();
    functions.map(|function| (function.lines, format!("{} {}:{}", function.name, file.path, function.line)))
}

fn is_rust_source(file: &SourceFile) -> bool {
    let is_source = file.path.starts_with("xtask/") || file.path.starts_with("crates/") && file.path.contains("/src/");
    is_source && file.role != Role::Test && file.path.ends_with(".rs")
}

fn document(top: &Path, name: &'static str, limit: usize) -> anyhow::Result<Document> {
    let text = std::fs::read_to_string(top.join(name))?;
    let sentences = |marks| {
        let all = prose::sentences(&text, marks).into_iter();
        Sizes::new(all.map(|sentence| (sentence.words, sentence.text)))
    };
    let (sentences, long_sentences) = (sentences(prose::MARKS), sentences(prose::FULL_STOPS));
    Ok(Document { name, bytes: text.len(), limit, sentences, long_sentences })
}
