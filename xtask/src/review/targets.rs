//! What the redesign promised.

use super::measured::{Document, Measured};
use super::prose::SENTENCE_WORDS;

const SHARED_NAMES_PERCENT: f64 = 15.0;
const FUNCTION_LINES: usize = 25;
const FILE_LINES: usize = 400;
const LOCKED_PACKAGES: usize = 250;
const CRATE_PERCENT: f64 = 30.0;
/// The product lines before the redesign.
const PRODUCT_LINES: usize = 51_500;

/// One target, and what was found.
pub struct Target {
    pub wanted: String,
    pub found: String,
    pub is_met: bool,
}

/// Every target.
pub fn all(measured: &Measured) -> Vec<Target> {
    let code = [shared_names(measured), cycles(measured), functions(measured), files(measured)];
    let documents = measured.documents.iter().flat_map(|document| [sentences(document), size(document)]);
    let whole = [packages(measured), largest_crate(measured), product(measured), tests(measured), comments(measured)];
    code.into_iter().chain(documents).chain(whole).collect()
}

fn target(wanted: impl Into<String>, found: impl Into<String>, is_met: bool) -> Target {
    Target { wanted: wanted.into(), found: found.into(), is_met }
}

fn shared_names(measured: &Measured) -> Target {
    let percent = measured.names.percent();
    let wanted = format!("type names used twice ≤ {SHARED_NAMES_PERCENT} %");
    target(wanted, format!("{percent:.1} %"), percent <= SHARED_NAMES_PERCENT)
}

fn cycles(measured: &Measured) -> Target {
    let count = measured.cycles.len();
    target("no cycle between top-level modules", count.to_string(), count == 0)
}

fn functions(measured: &Measured) -> Target {
    let lines = measured.functions.percentile(90);
    target(format!("p90 of function lines ≤ {FUNCTION_LINES}"), lines.to_string(), lines <= FUNCTION_LINES)
}

fn files(measured: &Measured) -> Target {
    let count = measured.files.over(FILE_LINES);
    target(format!("no product file over {FILE_LINES} lines"), format!("{count} over"), count == 0)
}

fn sentences(document: &Document) -> Target {
    let count = document.sentences.over(SENTENCE_WORDS);
    let wanted = format!("no sentence over {SENTENCE_WORDS} words in {}", document.name);
    target(wanted, format!("{count} over"), count == 0)
}

fn size(document: &Document) -> Target {
    let wanted = format!("{} ≤ {} bytes", document.name, document.limit);
    target(wanted, document.bytes.to_string(), document.bytes <= document.limit)
}

fn packages(measured: &Measured) -> Target {
    let count = measured.locked_packages;
    target(format!("≤ {LOCKED_PACKAGES} locked packages"), count.to_string(), count <= LOCKED_PACKAGES)
}

fn largest_crate(measured: &Measured) -> Target {
    let wanted = format!("no crate over {CRATE_PERCENT} % of the product lines");
    let Some(part) = measured.parts.first() else { return target(wanted, "no crate", true) };
    let share = measured.share(part);
    target(wanted, format!("{} {share:.1} %", part.name), share <= CRATE_PERCENT)
}

fn product(measured: &Measured) -> Target {
    let lines = measured.product_lines();
    target(format!("product lines < {PRODUCT_LINES}"), lines.to_string(), lines < PRODUCT_LINES)
}

fn tests(measured: &Measured) -> Target {
    let many = measured.crates.iter().filter(|one| one.test_programs > 1).count();
    target("no crate with two test programs", many.to_string(), many == 0)
}

fn comments(measured: &Measured) -> Target {
    let without = measured.crates.iter().filter(|one| one.lacks_missing_docs).count();
    target("missing_docs in every library crate", format!("{without} without"), without == 0)
}
