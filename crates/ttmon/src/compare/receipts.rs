//! Two receipts side by side: what got slower, larger or hotter. A receipt has totals and no noise, so 5 % are a change.

use super::gather::{Gathered, Subject, fields};
use super::row::{Row, change, figures};
use model::Device;
use model::figure::device::{ASIC_TEMP, ENERGY_TOTAL, POWER, UTILIZATION};
use model::figure::process::{HELD_UTILIZATION, PEAK_BYTES};
use model::figure::{Figure, Unit};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use watch::exit::{Exit, Failure};
use watch::record::cannot_be_read;

/// A change below this part is none.
const NOTICED: f64 = 0.05;
/// The most lines of a kind.
const LINES: usize = 20;

/// One total of a run that can be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    unit: Unit,
    value: f64,
    /// Whether more of it is worse.
    more_is_worse: bool,
}

/// All totals of a run, by name.
pub type Totals = BTreeMap<String, Compared>;

/// Reads a receipt.
pub fn open(path: &Path) -> anyhow::Result<Value> {
    let wrong = |why: String| Failure::error(Exit::Usage, format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| cannot_be_read(path, &error))?;
    let neither = "neither a recording nor a receipt: `ttmon record -o FILE` or `ttmon run --json FILE` makes one";
    let receipt: Value = serde_json::from_str(&text).map_err(|_| wrong(neither.into()))?;
    let schema = receipt["schema"].as_u64();
    match (schema, receipt["duration_seconds"].is_number()) {
        (Some(1), true) => Ok(receipt),
        (Some(other), true) => Err(wrong(format!("has schema {other}, and this ttmon knows 1"))),
        _ => Err(wrong(neither.into())),
    }
}

/// The totals that both have, and whether more is worse.
pub fn rows(old: &Totals, new: &Totals) -> Vec<(Row, bool)> {
    let both = new.iter().filter_map(|(name, after)| Some((name, old.get(name)?, after)));
    let row = |(name, before, after): (&String, &Compared, &Compared)| {
        let change = change(before.value, after.value);
        let row = Row {
            title: name.clone(),
            device: None,
            figure: None,
            operation: None,
            unit: after.unit,
            a: before.value,
            b: after.value,
            change,
            p: None,
            significant: before.value != after.value && change.is_none_or(|change| change.abs() >= NOTICED),
        };
        (row, after.more_is_worse)
    };
    both.map(row).collect()
}

/// How many totals only one of them has.
pub fn in_one_only(old: &Totals, new: &Totals) -> usize {
    old.keys().filter(|name| !new.contains_key(*name)).count()
        + new.keys().filter(|name| !old.contains_key(*name)).count()
}

/// What changed, in lines: first what got worse, then what got better.
pub fn text(rows: &[(Row, bool)], in_one_only: usize) -> String {
    let mut changes: Vec<&(Row, bool)> = rows.iter().filter(|(row, _)| row.significant).collect();
    let size = |row: &Row| row.change.map_or(f64::INFINITY, f64::abs);
    changes.sort_by(|(a, _), (b, _)| size(b).total_cmp(&size(a)));
    let mut lines = Vec::new();
    for (wanted, title, none) in [
        (true, "slower, larger or hotter than before", Some("nothing got slower, larger or hotter by 5 % or more")),
        (false, "faster, smaller or cooler than before", None),
    ] {
        let is_wanted = |(row, more_is_worse): &&&(Row, bool)| ((row.b > row.a) == *more_is_worse) == wanted;
        let mut rows = changes.iter().filter(is_wanted).map(|(row, _)| row.text(' '));
        let first: Vec<String> = rows.by_ref().take(LINES).collect();
        match (first.is_empty(), none) {
            (false, _) => lines.push(title.to_owned()),
            (true, Some(none)) => lines.push(none.to_owned()),
            (true, None) => {}
        }
        lines.extend(first);
        lines.extend(Some(rows.count()).filter(|more| *more > 0).map(|more| format!("  and {more} more")));
    }
    if in_one_only > 0 {
        lines.push(format!("not in both, and not compared: {}", figures(in_one_only)));
    }
    lines.join("\n") + "\n"
}

/// The totals of a stretch, under the names that a receipt has for them. Peaks of memory are not among them: a receipt has them
/// exactly, a recording as they were sampled.
pub fn totals_of_stretch(gathered: &Gathered) -> Totals {
    let mut totals = Totals::new();
    let mut add = |name: String, unit: Unit, value: f64, more_is_worse: bool| {
        totals.insert(name, Compared { unit, value, more_is_worse });
    };
    add("duration".into(), Unit::Seconds, gathered.seconds, true);
    let fields = fields();
    let place = |figure: &Figure<Device>| fields.iter().position(|field| field.figure == figure);
    let devices: BTreeSet<_> = gathered.peaks.keys().map(|(device, _)| device).collect();
    for device in devices {
        if let Some(energy) = gathered.counted(device, &ENERGY_TOTAL) {
            add(format!("device {device} energy"), Unit::Joules, energy, true);
        }
        for (figure, name) in [(&POWER, "peak power"), (&ASIC_TEMP, "peak temperature")] {
            let peak = place(figure).and_then(|place| gathered.peaks.get(&(device.clone(), place)));
            if let Some(peak) = peak {
                add(format!("device {device} {name}"), figure.unit, *peak, true);
            }
        }
        let busy = place(&UTILIZATION).map(|place| Subject::Device(device.clone(), place));
        if let Some(busy) = busy.and_then(|subject| gathered.value(&subject, &fields)) {
            add(format!("device {device} busy"), Unit::Percent, busy, false);
        }
    }
    for (name, sum) in &gathered.operations {
        add(format!("{name} launches"), Unit::Count, sum.launches as f64, true);
        if sum.runs > 0 {
            add(format!("{name} time per run"), Unit::Seconds, sum.seconds / sum.runs as f64, true);
        }
    }
    totals
}

/// The totals of a receipt.
pub fn totals(receipt: &Value) -> Totals {
    let mut values = BTreeMap::new();
    let mut add = |name: String, unit: Unit, value: &Value, more_is_worse: bool| {
        if let Some(value) = value.as_f64().filter(|value| value.is_finite()) {
            values.insert(name, Compared { unit, value, more_is_worse });
        }
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    add("duration".into(), Unit::Seconds, &receipt["duration_seconds"], true);
    add("waiting for devices".into(), Unit::Seconds, &receipt["waited_seconds"], true);
    add("held back by full queues".into(), Unit::Seconds, &receipt["back_pressure_seconds"], true);
    for device in list(&receipt["devices"]) {
        let name = |what: &str| format!("device {} {what}", text(&device["id"]));
        add(name("energy"), Unit::Joules, &device["energy_joules"], true);
        add(name("peak power"), Unit::Watts, &device["peak_power_watts"], true);
        add(name("peak temperature"), Unit::Celsius, &device["peak_asic_temp_celsius"], true);
    }
    // Processes have other numbers each time: what they had is added up by chip.
    let (mut peaks, mut busy): (BTreeMap<String, u64>, BTreeMap<String, f64>) = Default::default();
    for chip in list(&receipt["processes"]).iter().flat_map(|process| list(&process["chips"])) {
        let device =
            chip["device"].as_str().map_or_else(|| format!("chip {}", chip["device_id"]), |id| format!("device {id}"));
        for (kind, figures) in chip["kinds"].as_object().into_iter().flatten() {
            *peaks.entry(format!("{device} {kind} peak")).or_default() +=
                figures[PEAK_BYTES.name].as_u64().unwrap_or(0);
        }
        if let Some(percent) = chip[HELD_UTILIZATION.name].as_f64() {
            *busy.entry(format!("{device} busy")).or_default() += percent;
        }
    }
    peaks.into_iter().for_each(|(name, bytes)| add(name, Unit::Bytes, &bytes.into(), true));
    busy.into_iter().for_each(|(name, percent)| add(name, Unit::Percent, &percent.min(100.0).into(), false));
    for operation in list(&receipt["operations"]) {
        let name = text(&operation["name"]);
        add(format!("{name} launches"), Unit::Count, &operation["launches"], true);
        if let (Some(time), Some(runs @ 1..)) = (operation["device_seconds"].as_f64(), operation["runs"].as_u64()) {
            add(format!("{name} time per run"), Unit::Seconds, &(time / runs as f64).into(), true);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn compared(before: &Value, after: &Value) -> String {
        let (old, new) = (totals(before), totals(after));
        text(&rows(&old, &new), in_one_only(&old, &new))
    }

    fn receipt(seconds: f64, peak: u64, temperature: f64, matmul: f64) -> Value {
        json!({
            "schema": 1, "duration_seconds": seconds, "waited_seconds": 1.0, "back_pressure_seconds": 0.0,
            "devices": [{"id": "0", "energy_joules": 792.0, "peak_power_watts": 72.0, "peak_asic_temp_celsius": temperature}],
            "processes": [{"chips": [{"device": "0", HELD_UTILIZATION.name: 50.0, "kinds": {"dram": {PEAK_BYTES.name: peak}}}]}],
            "operations": [{"name": "Matmul", "launches": 1000, "runs": 1000, "device_seconds": matmul}],
        })
    }

    #[test]
    fn what_got_worse_comes_before_what_got_better() {
        let (before, after) = (receipt(12.0, 1 << 30, 61.2, 2.0), receipt(18.0, 3 << 30, 54.0, 1.0));
        expect![[r#"
            slower, larger or hotter than before
              device 0 dram peak                           1.0 GiB  →      3.0 GiB    +200 %
              duration                                      12.0 s  →       18.0 s     +50 %
            faster, smaller or cooler than before
              Matmul time per run                           2.0 ms  →       1.0 ms     -50 %
              device 0 peak temperature                    61.2 °C  →      54.0 °C     -12 %
        "#]]
        .assert_eq(&compared(&before, &after));
    }

    #[test]
    fn the_same_run_again_changed_nothing() {
        let run = receipt(12.0, 1 << 30, 61.2, 2.0);
        assert_eq!(compared(&run, &run), "nothing got slower, larger or hotter by 5 % or more\n");
    }

    #[test]
    fn what_is_in_one_receipt_only_is_counted() {
        let (mut before, after) = (receipt(12.0, 1, 61.2, 2.0), receipt(12.0, 1, 61.2, 2.0));
        before["operations"] = json!([]);
        assert_eq!(
            compared(&before, &after),
            "nothing got slower, larger or hotter by 5 % or more\nnot in both, and not compared: 2 figures\n"
        );
    }

    #[test]
    fn a_file_that_is_no_receipt_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let said = |content: &str| {
            std::fs::write(&path, content).unwrap();
            open(&path).unwrap_err().to_string().replace(path.to_str().unwrap(), "FILE")
        };
        for content in ["hello", "{}"] {
            let neither =
                "FILE: neither a recording nor a receipt: `ttmon record -o FILE` or `ttmon run --json FILE` makes one";
            assert_eq!(said(content), neither);
        }
        assert_eq!(said(r#"{"schema":9,"duration_seconds":1}"#), "FILE: has schema 9, and this ttmon knows 1");
        assert_eq!(open(Path::new("/nowhere")).unwrap_err().to_string(), "/nowhere: there is no such file");
    }
}
