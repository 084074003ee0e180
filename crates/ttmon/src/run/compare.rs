//! `--compare`: what got slower, larger or hotter since an earlier receipt.

use super::receipt::COLUMNS;
use super::time_spent::short;
use model::Bytes;
use model::figure::process::{HELD_UTILIZATION, PEAK_BYTES};
use serde_json::Value;
use show::text::{Align, clean, fit};
use std::collections::BTreeMap;
use std::path::Path;
use watch::exit::{Exit, Failure};

/// A change below this part is none.
const NOTICED: f64 = 0.05;
/// The most lines of a kind.
const LINES: usize = 20;

/// How a value is written.
#[derive(Clone, Copy)]
enum Written {
    Seconds,
    Bytes,
    Joules,
    Watts,
    Celsius,
    Percent,
    Count,
}

/// One value of a receipt that can be compared.
struct Compared {
    written: Written,
    value: f64,
    /// Whether more of it is worse.
    more_is_worse: bool,
}

/// Reads an earlier receipt, before anything else is done.
pub fn open(path: &Path) -> anyhow::Result<Value> {
    let wrong = |why: String| Failure::error(Exit::Usage, format!("--compare: {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let receipt: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("not a receipt: {error}")))?;
    let schema = receipt["schema"].as_u64();
    match (schema, receipt["duration_seconds"].is_number()) {
        (Some(1), true) => Ok(receipt),
        (Some(other), true) => Err(wrong(format!("has schema {other}, and this ttmon knows 1"))),
        _ => Err(wrong("not a receipt: make one with `ttmon run --json FILE`".into())),
    }
}

/// What changed, in lines: first what got worse, then what got better.
pub fn text(before: &Value, after: &Value) -> String {
    let (old, new) = (values(before), values(after));
    let mut changes: Vec<(f64, bool, String)> = Vec::new();
    for (name, after) in &new {
        let Some(before) = old.get(name) else { continue };
        let change = match before.value {
            0.0 if after.value == 0.0 => continue,
            0.0 => f64::INFINITY,
            value => (after.value - value) / value,
        };
        if change.abs() >= NOTICED {
            let is_worse = (change > 0.0) == after.more_is_worse;
            changes.push((change, is_worse, line(name, before, after, change)));
        }
    }
    changes.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let mut lines = Vec::new();
    for (wanted, title, none) in [
        (true, "slower, larger or hotter than before", Some("nothing got slower, larger or hotter by 5 % or more")),
        (false, "faster, smaller or cooler than before", None),
    ] {
        let mut rows = changes.iter().filter(|(_, is_worse, _)| *is_worse == wanted).map(|(.., line)| line.clone());
        let first: Vec<String> = rows.by_ref().take(LINES).collect();
        match (first.is_empty(), none) {
            (false, _) => lines.push(title.to_owned()),
            (true, Some(none)) => lines.push(none.to_owned()),
            (true, None) => {}
        }
        lines.extend(first);
        lines.extend(Some(rows.count()).filter(|more| *more > 0).map(|more| format!("  and {more} more")));
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name)).count();
    let come = new.keys().filter(|name| !old.contains_key(*name)).count();
    if gone + come > 0 {
        lines.push(format!("not in both receipts, and not compared: {} figures", gone + come));
    }
    lines.join("\n") + "\n"
}

fn line(name: &str, before: &Compared, after: &Compared, change: f64) -> String {
    let right = |text: &str, columns| fit(text, columns, Align::Right, '…');
    let change = match change.is_finite() {
        true if change >= 9.995 => format!("× {:.0}", 1.0 + change),
        true => format!("{:+.0} %", change * 100.0),
        false => "new".to_owned(),
    };
    let name = fit(&format!("  {}", clean(name)), COLUMNS - 40, Align::Left, '…');
    let (before, after) = (before.text(), after.text());
    format!("{name}{}  →{}{}", right(&before, 14), right(&after, 13), right(&change, 10))
}

impl Compared {
    fn text(&self) -> String {
        let value = self.value;
        match self.written {
            Written::Seconds => short(value),
            Written::Bytes => Bytes(value as u64).to_string(),
            Written::Joules => format!("{value:.1} J"),
            Written::Watts => format!("{value:.1} W"),
            Written::Celsius => format!("{value:.1} °C"),
            Written::Percent => format!("{value:.1} %"),
            Written::Count => format!("{value:.0}"),
        }
    }
}

/// All that can be compared, by name.
fn values(receipt: &Value) -> BTreeMap<String, Compared> {
    let mut values = BTreeMap::new();
    let mut add = |name: String, written: Written, value: &Value, more_is_worse: bool| {
        if let Some(value) = value.as_f64().filter(|value| value.is_finite()) {
            values.insert(name, Compared { written, value, more_is_worse });
        }
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    add("duration".into(), Written::Seconds, &receipt["duration_seconds"], true);
    add("waiting for devices".into(), Written::Seconds, &receipt["waited_seconds"], true);
    add("held back by full queues".into(), Written::Seconds, &receipt["back_pressure_seconds"], true);
    for device in list(&receipt["devices"]) {
        let name = |what: &str| format!("device {} {what}", text(&device["id"]));
        add(name("energy"), Written::Joules, &device["energy_joules"], true);
        add(name("peak power"), Written::Watts, &device["peak_power_watts"], true);
        add(name("peak temperature"), Written::Celsius, &device["peak_asic_temp_celsius"], true);
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
    peaks.into_iter().for_each(|(name, bytes)| add(name, Written::Bytes, &bytes.into(), true));
    busy.into_iter().for_each(|(name, percent)| add(name, Written::Percent, &percent.min(100.0).into(), false));
    for operation in list(&receipt["operations"]) {
        let name = text(&operation["name"]);
        add(format!("{name} launches"), Written::Count, &operation["launches"], true);
        if let (Some(time), Some(runs @ 1..)) = (operation["device_seconds"].as_f64(), operation["runs"].as_u64()) {
            add(format!("{name} time per run"), Written::Seconds, &(time / runs as f64).into(), true);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

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
        .assert_eq(&text(&before, &after));
    }

    #[test]
    fn the_same_run_again_changed_nothing() {
        let run = receipt(12.0, 1 << 30, 61.2, 2.0);
        assert_eq!(text(&run, &run), "nothing got slower, larger or hotter by 5 % or more\n");
    }

    #[test]
    fn what_is_in_one_receipt_only_is_counted() {
        let (mut before, after) = (receipt(12.0, 1, 61.2, 2.0), receipt(12.0, 1, 61.2, 2.0));
        before["operations"] = json!([]);
        assert_eq!(
            text(&before, &after),
            "nothing got slower, larger or hotter by 5 % or more\nnot in both receipts, and not compared: 2 figures\n"
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
        assert!(said("hello").starts_with("--compare: FILE: not a receipt: expected value"), "{}", said("hello"));
        assert_eq!(said("{}"), "--compare: FILE: not a receipt: make one with `ttmon run --json FILE`");
        assert_eq!(
            said(r#"{"schema":9,"duration_seconds":1}"#),
            "--compare: FILE: has schema 9, and this ttmon knows 1"
        );
        assert!(open(Path::new("/nowhere")).unwrap_err().to_string().starts_with("--compare: /nowhere: No such file"));
    }
}
