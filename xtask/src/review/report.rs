//! How the figures and the targets are printed.

use super::crates::CrateFacts;
use super::figures::Sizes;
use super::measured::{Document, Measured, Part};
use super::modules::Cycle;
use super::names::TypeNames;
use super::prose::SENTENCE_WORDS;
use super::targets::Target;
use std::fmt::Write as _;

const WIDTH: usize = 120;

/// Every figure.
pub fn figures(measured: &Measured) -> String {
    let mut text = lines(measured);
    text += &sizes("product lines per file", &measured.files);
    text += &sizes("lines per function", &measured.functions);
    text += &names(&measured.names);
    text += &cycles(&measured.cycles);
    measured.documents.iter().for_each(|one| text += &document(one));
    text += &sizes("bytes per Markdown file", &measured.document_bytes);
    text += &format!("{:>6}  all\n", measured.document_bytes.sum());
    text += &crates(&measured.crates);
    text + &format!("\nlocked packages: {}\n", measured.locked_packages)
}

/// A table of the targets.
pub fn targets(targets: &[Target]) -> String {
    let row = |target: &Target| {
        let verdict = if target.is_met { "met" } else { "MISSED" };
        format!("{verdict:<7} {:<48} {}\n", target.wanted, target.found)
    };
    "\ntargets\n".to_owned() + &targets.iter().map(row).collect::<String>()
}

fn lines(measured: &Measured) -> String {
    let mut text = format!("{:<10} {:>6} {:>8} {:>6} {:>6} {:>6}\n", "", "files", "product", "share", "tools", "tests");
    for part in &measured.parts {
        text += &line(part, measured.share(part));
    }
    let sum = |figure: fn(&Part) -> usize| measured.parts.iter().map(figure).sum();
    let total = Part {
        name: "total".to_owned(),
        files: sum(|part| part.files),
        product_lines: measured.product_lines(),
        tool_lines: sum(|part| part.tool_lines),
        test_lines: sum(|part| part.test_lines),
    };
    text += &line(&total, 100.0);
    text +=
        "Product lines: Rust of the crates, the page (HTML, CSS, JavaScript) and the Python package, without tests.\n";
    text + &format!(
        "The redesign of November 2026 took them from 51509 to 51184. What came later adds figures and fixes.\n\
         By another reading, Rust of crates/*/src and xtask without tests: {} lines.\n",
        measured.rust_lines
    )
}

fn line(part: &Part, share: f64) -> String {
    let Part { name, files, product_lines, tool_lines, test_lines } = part;
    format!("{name:<10} {files:>6} {product_lines:>8} {share:>4.1} % {tool_lines:>6} {test_lines:>6}\n")
}

fn sizes(title: &str, sizes: &Sizes) -> String {
    let (median, p90, max) = (sizes.percentile(50), sizes.percentile(90), sizes.max());
    let mut text = format!("\n{title}: median {median}, p90 {p90}, max {max} (of {})\n", sizes.count());
    for (size, name) in sizes.largest() {
        let _ = writeln!(text, "{size:>6}  {name}");
    }
    text
}

fn names(names: &TypeNames) -> String {
    let (shared, total, percent) = (names.shared(), names.total(), names.percent());
    let list: Vec<String> = names.repeated().map(|(name, count)| format!("{name} ×{count}")).collect();
    format!("\ntype names used twice: {shared} of {total} ({percent:.0} %)\n{}", wrapped(&list))
}

/// The words with commas, in lines that are not too wide.
fn wrapped(words: &[String]) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for word in words {
        if !line.is_empty() && line.chars().count() + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line.clear();
        }
        line += if line.is_empty() { "  " } else { ", " };
        line += word;
    }
    if !line.is_empty() {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn cycles(cycles: &[(String, Cycle)]) -> String {
    let mut text = format!("\ncycles between top-level modules: {}\n", cycles.len());
    for (name, cycle) in cycles {
        let _ = writeln!(text, "  {name}: {}; for example", cycle.members.join(", "));
        let mut from = cycle.example.last().map_or("", |(name, _)| name);
        for (to, file) in &cycle.example {
            let _ = writeln!(text, "    {from} → {to} ({file})");
            from = to;
        }
    }
    text
}

fn crates(all: &[CrateFacts]) -> String {
    let programs: usize = all.iter().map(|one| one.test_programs).sum();
    let without: Vec<&str> = all.iter().filter(|one| one.lacks_missing_docs).map(|one| &*one.name).collect();
    let names = if without.is_empty() { "none".to_owned() } else { without.join(", ") };
    format!("\ntest programs: {programs}, in {} crates\nlibrary crates without missing_docs: {names}\n", all.len())
}

fn document(document: &Document) -> String {
    let Document { name, bytes, limit: _, sentences, long_sentences } = document;
    let mut text = format!("\n{name}: {bytes} bytes, {}\n", length(sentences));
    for (words, sentence) in sentences.largest() {
        let shown: String = sentence.chars().take(WIDTH - 8).collect();
        let _ = writeln!(text, "{words:>6}  {shown}{}", if shown.len() < sentence.len() { "…" } else { "" });
    }
    text + &format!("  Where a colon does not end a sentence: {}\n", length(long_sentences))
}

fn length(sentences: &Sizes) -> String {
    let (count, max, share) = (sentences.count(), sentences.max(), sentences.percent_over(SENTENCE_WORDS));
    format!("{count} sentences, longest {max} words, {share:.0} % over {SENTENCE_WORDS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_wrapped_between_its_words() {
        let words: Vec<String> = (0..40).map(|n| format!("Name{n}")).collect();
        let text = wrapped(&words);
        assert!(text.lines().all(|line| line.starts_with("  Name") && line.chars().count() <= WIDTH + 2), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
    }

    #[test]
    fn a_missed_target_is_plain_to_see() {
        let target = |is_met| Target { wanted: "no cycle".to_owned(), found: "1".to_owned(), is_met };
        let text = targets(&[target(true), target(false)]);
        assert!(text.contains("\nmet ") && text.contains("\nMISSED "), "{text}");
    }
}
