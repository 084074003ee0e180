//! Two stretches of recordings side by side, and what differs by more than the noise within each.

use super::gather::{Gathered, Measure, Subject, fields, is_peak};
use super::row::{Row, change, figures};
use super::significance;
use model::Device;
use model::figure::operation::OPERATION_LAUNCH_RATE;
use model::figure::{Field, Unit};

/// Less than this part of the larger value is never worth a word.
const LEAST: f64 = 0.01;
/// The most rows for a person. Beyond it, devices on which nothing changed are left out.
const ROWS: usize = 40;

/// All that both have: all devices together, each device, operations.
pub fn rows(a: &Gathered, b: &Gathered) -> Vec<Row> {
    let fields = fields();
    let both: Vec<&Subject> = a.blocks.keys().filter(|subject| b.blocks.contains_key(subject)).collect();
    let likelihoods: Vec<Option<f64>> =
        both.iter().map(|subject| significance::likelihood(&a.blocks[*subject], &b.blocks[*subject])).collect();
    let corrected = significance::corrected(&likelihoods);
    let row = |(subject, p): (&Subject, Option<f64>)| {
        let (before, after) = (a.value(subject, &fields)?, b.value(subject, &fields)?);
        let mut row = named(subject, &fields)?;
        row.significant = significance::is_significant(p) && is_large(row.unit, before, after);
        (row.a, row.b, row.p, row.change) = (before, after, p, change(before, after));
        Some(row)
    };
    both.into_iter().zip(corrected).filter_map(row).collect()
}

/// How many figures only one of them has.
pub fn in_one_only(a: &Gathered, b: &Gathered) -> usize {
    let missing = |one: &Gathered, other: &Gathered| {
        one.blocks.keys().filter(|subject| !other.blocks.contains_key(subject)).count()
    };
    missing(a, b) + missing(b, a)
}

/// The rows for people, and one sentence.
pub fn text(rows: &[Row], in_one_only: usize) -> String {
    let significant = rows.iter().filter(|row| row.significant).count();
    let is_shown = |row: &&Row| rows.len() <= ROWS || row.significant || row.device.is_none();
    let mut lines = vec![super::row::heading("A", "B")];
    let shown: Vec<&Row> = rows.iter().filter(is_shown).collect();
    lines.extend(shown.iter().map(|row| row.text(if row.significant { '*' } else { ' ' })));
    if let Some(hidden @ 1..) = rows.len().checked_sub(shown.len()) {
        let hidden = figures(hidden);
        lines.push(format!("  and {hidden} of single devices without a significant change: --json has all"));
    }
    let is_tested = rows.iter().any(|row| row.p.is_some());
    lines.push(match significant {
        _ if !is_tested => "too few samples to know what is noise: nothing is called significant".to_owned(),
        0 => format!("nothing changed significantly: {} compared", figures(rows.len())),
        1 => format!("* 1 of {} changed by more than its noise", figures(rows.len())),
        count => format!("* {count} of {} changed by more than their noise", figures(rows.len())),
    });
    if in_one_only > 0 {
        lines.push(format!("not in both, and not compared: {}", figures(in_one_only)));
    }
    lines.join("\n") + "\n"
}

/// A row without values.
fn named(subject: &Subject, fields: &[Field<Device>]) -> Option<Row> {
    let row = |title: String, unit: Unit| Row {
        title,
        device: None,
        figure: None,
        operation: None,
        unit,
        a: 0.0,
        b: 0.0,
        change: None,
        p: None,
        significant: false,
    };
    let of_field = |place: &usize, who: String, device: Option<String>| {
        let field = fields.get(*place)?;
        let peak = if is_peak(field.figure) { " peak" } else { "" };
        let figure = Some(field.name().into_owned());
        Some(Row { device, figure, ..row(format!("{who} {}{peak}", inside(&field.title())), field.figure.unit) })
    };
    match subject {
        Subject::AllDevices(place) => of_field(place, "all devices".into(), None),
        Subject::Device(id, place) => of_field(place, format!("device {id}"), Some(id.to_string())),
        Subject::Operation(name, measure) => {
            let (what, figure, unit) = match measure {
                Measure::LaunchesPerSecond => {
                    let figure = &OPERATION_LAUNCH_RATE;
                    ("launches", Some(figure.name.to_owned()), figure.unit)
                }
                Measure::SecondsPerRun => ("time per run", None, Unit::Seconds),
            };
            Some(Row { operation: Some(name.clone()), figure, ..row(format!("{name} {what}"), unit) })
        }
    }
}

/// A title inside of a sentence: `power`, but `DRAM used` and `PCIe to device`.
fn inside(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() && !second.is_numeric() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

/// Whether a difference is at least one percent, and can be seen in the numbers as they are written.
fn is_large(unit: Unit, a: f64, b: f64) -> bool {
    let seen = match unit {
        // Written with as many digits as it takes.
        Unit::Seconds => 0.0,
        unit => 10_f64.powi(-(unit.decimals() as i32)),
    };
    (a - b).abs() >= seen.max(LEAST * a.abs().max(b.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_stand_inside_of_a_sentence() {
        assert_eq!(
            ["Power", "DRAM used", "L1 used", "PCIe to host"].map(inside),
            ["power", "DRAM used", "L1 used", "PCIe to host"]
        );
    }

    #[test]
    fn a_small_difference_is_none_however_sure_it_is() {
        assert!(is_large(Unit::Watts, 100.0, 101.1) && !is_large(Unit::Watts, 100.0, 100.9));
        assert!(!is_large(Unit::Watts, 1.0, 1.05), "less than is written");
        assert!(is_large(Unit::Seconds, 20e-6, 22e-6));
    }
}
