//! The names of figures are in the model alone: nothing here is a second list of them.

use model::figure::Figure;
use model::figure::device::DEVICE_FIGURES;
use model::figure::machine::MACHINE_FIGURES;
use model::figure::process::{HELD_FIGURES, PROCESS_FIGURES};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Words that also mean something else here: every sample has a time, the service has a start and an age of its sample, and a
/// single buffer has logical bytes.
const OTHER_MEANINGS: [&str; 4] = ["taken_at", "started_at", "sample_age_seconds", "logical_bytes"];

/// Names without an underscore (`id`, `state`, `buffers`) are ordinary words, and are left out.
fn names() -> BTreeSet<String> {
    fn of<S>(table: &'static [&'static Figure<S>]) -> impl Iterator<Item = String> {
        let fields = table.iter().flat_map(|figure| figure.fields());
        fields.flat_map(|field| [field.name().into_owned(), field.figure.name.to_owned()])
    }
    let all = of(DEVICE_FIGURES).chain(of(PROCESS_FIGURES)).chain(of(HELD_FIGURES)).chain(of(MACHINE_FIGURES));
    all.filter(|name| name.contains('_') && !OTHER_MEANINGS.contains(&name.as_str())).collect()
}

/// The source of the product: no tests, no golden texts.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["tests", "golden"].contains(&name) {
            sources(&path, into);
        } else if name != "tests.rs" && (name.ends_with(".rs") || name.ends_with(".js")) {
            into.push(path);
        }
    }
}

#[test]
fn no_figure_is_called_by_its_name_outside_of_the_model() {
    let names = names();
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(names.contains("asic_temp_celsius") && files.len() > 30, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (number, line) in product.lines().enumerate() {
            for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
                if names.contains(word) {
                    found.push(format!("{}:{}: {word}", file.display(), number + 1));
                }
            }
        }
    }
    assert_eq!(found, [""; 0]);
}
