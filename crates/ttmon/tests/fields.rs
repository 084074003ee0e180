//! docs/fields.md is written from the tables of figures, and a figure's name is in its row and nowhere else.
//!
//! Refresh the page with `UPDATE_EXPECT=1`.

use model::figure::device::DEVICE_FIGURES;
use model::figure::machine::MACHINE_FIGURES;
use model::figure::operation::OPERATION_FIGURES;
use model::figure::process::{HELD_FIGURES, PROCESS_FIGURES};
use model::figure::{Dimension, Figure, MetricKind, Unit};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const INTRODUCTION: &str = "\
# Field reference

Every figure that ttmon measures is one row of a table in `crates/model/src/figure/`.
JSON, CSV, `-q`, metrics, rules, history and the page are derived from it, and so is this page:
`UPDATE_EXPECT=1 cargo test -p ttmon fields` writes it.

- **Name** is the name in CSV queries (`ttmon smi --query-device`, `--query-processes`). `…` stands for a label.
- **JSON** is the path inside of the subject. A value that was not measured is `null`.
- **Metric** is the name in Prometheus. Metrics are in base units.
- **Rule** is the word for the figure in alert rules.
- **History** says whether charts and the history of the service keep it.
";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Text => "text",
        Unit::YesNo => "yes or no",
        Unit::Share => "part of one",
        Unit::Count => "count",
        unit => unit.symbol(),
    }
}

/// The name with its label left open: `…_peak_bytes`, `gddr_temp_celsius.…`.
fn labelled(dimension: Option<Dimension>, name: &str) -> String {
    match dimension {
        None => name.to_owned(),
        Some(Dimension::MemoryKind) => format!("…_{name}"),
        Some(_) => format!("{name}.…"),
    }
}

fn json<S>(figure: &Figure<S>) -> String {
    match (figure.in_json, figure.dimension, figure.object) {
        (false, ..) => "–".to_owned(),
        (_, Some(_), Some(object)) if object.contains("{label}") => {
            format!("`{}`", figure.path().replace("{label}", "…"))
        }
        (_, Some(Dimension::MemoryKind), Some(object)) => format!("`{object}.….{}`", figure.key()),
        (_, Some(Dimension::MemoryKind), None) => format!("`…_{}`", figure.key()),
        (_, Some(_), _) => format!("`{}[]`", figure.path().trim_end_matches(".{label}")),
        (_, None, _) => format!("`{}`", figure.path()),
    }
}

fn metric<S>(figure: &Figure<S>) -> String {
    let Some(metric) = figure.metric else { return String::new() };
    let label = match (metric.kind, metric.label) {
        (MetricKind::RateOf, _) => return format!("rate of `{}_total`", metric.name),
        (MetricKind::Info | MetricKind::OneOf, Some((label, _))) => format!("{{{label}}}"),
        (_, Some((label, value))) => format!("{{{label}=\"{value}\"}}"),
        (_, None) => figure.dimension.map_or_else(String::new, |dimension| format!("{{{}}}", dimension.name())),
    };
    format!("`{}{}{label}`", metric.name, metric.kind.suffix())
}

fn table<S>(text: &mut String, heading: &str, figures: &[&'static Figure<S>]) {
    let _ = writeln!(text, "\n## {heading}\n\n| Name | JSON | Unit | Meaning | Metric | Rule | History |");
    *text += "|---|---|---|---|---|---|---|\n";
    for figure in figures {
        let rule = figure.rule.map_or_else(String::new, |rule| format!("`{rule}`"));
        let history = if figure.history { "yes" } else { "" };
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {rule} | {history} |",
            labelled(figure.dimension, figure.name),
            json(figure),
            unit(figure.unit),
            figure.help,
            metric(figure),
        );
    }
}

#[test]
fn the_field_reference_is_the_table() {
    let mut text = INTRODUCTION.to_owned();
    table(&mut text, "A device", DEVICE_FIGURES);
    table(&mut text, "A process", PROCESS_FIGURES);
    table(&mut text, "A process on a device", HELD_FIGURES);
    table(&mut text, "An operation of a process (JSON only: `operations`)", OPERATION_FIGURES);
    table(&mut text, "The machine", MACHINE_FIGURES);
    expect_test::expect_file!["../../../docs/fields.md"].assert_eq(&text);
}

/// Files that may spell the name of a figure: its field, its source, fixtures.
fn may_name(path: &str) -> bool {
    let fields = ["device.rs", "deep.rs", "process.rs", "snapshot.rs"].map(|file| format!("crates/model/src/{file}"));
    let places = ["crates/model/src/figure/", "crates/sources/", "crates/sim/", "crates/harness/"];
    // The official tt-smi has keys of the same name. A built-in rule is written in rule words, and some figures are called so.
    let official = ["crates/ttmon/src/smi/tt_smi.rs", "crates/alerts/src/rule.rs"].contains(&path);
    let is_test = path.contains("/tests") || path.contains("/golden") || path.contains("example");
    fields.contains(&path.to_owned()) || places.iter().any(|place| path.starts_with(place)) || is_test || official
}

/// Names that are also those of something else: of the service's own status, of a sample in the API, of a buffer.
const OTHER_MEANINGS: [&str; 4] = ["taken_at", "started_at", "sample_age_seconds", "logical_bytes"];

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "js") {
            all.push(path);
        }
    }
}

/// The text without comments and test modules.
fn product(text: &str) -> String {
    let begin = ["mod tests {", "pub(crate) mod tests {"].map(|module| text.find(&format!("#[cfg(test)]\n{module}")));
    let text = begin.into_iter().flatten().min().map_or(text, |begin| &text[..begin]);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What can be the name of a figure: texts in Rust, where a field of a struct may be called the same; anything in JavaScript.
fn spelled(path: &str, text: &str) -> String {
    if path.ends_with(".js") {
        return text.to_owned();
    }
    // A quote may be a character, or be escaped.
    let text = text.replace("'\"'", "").replace("\\\"", "");
    text.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" ")
}

fn contains_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_part);
        let after = text[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

fn names<S>(figures: &[&'static Figure<S>]) -> impl Iterator<Item = &'static str> {
    figures.iter().map(|figure| figure.name).filter(|name| name.contains('_'))
}

#[test]
fn a_figure_has_its_name_in_one_place() {
    let root = repository();
    let mut all = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap().flatten() {
        let folder = entry.path().join("src");
        if folder.is_dir() {
            files(&folder, &mut all);
        }
    }
    let tables = names(DEVICE_FIGURES).chain(names(PROCESS_FIGURES)).chain(names(HELD_FIGURES));
    let names: Vec<&str> = tables.chain(names(MACHINE_FIGURES)).filter(|name| !OTHER_MEANINGS.contains(name)).collect();
    let mut found = Vec::new();
    for path in all {
        let shown = path.strip_prefix(&root).unwrap().display().to_string();
        if may_name(&shown) {
            continue;
        }
        let text = spelled(&shown, &product(&fs::read_to_string(&path).unwrap()));
        let known: Vec<&str> = names.iter().copied().filter(|name| contains_word(&text, name)).collect();
        if !known.is_empty() {
            found.push(format!("{shown}: {}", known.join(", ")));
        }
    }
    found.sort();
    assert!(found.is_empty(), "names of figures outside of the tables:\n{}", found.join("\n"));
}
