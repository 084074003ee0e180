use super::device::{DEVICE_FIGURES, kept_in_history};
use super::machine::MACHINE_FIGURES;
use super::process::{HELD_FIGURES, PROCESS_FIGURES};
use super::*;
use crate::{BankFigures, Device, DeviceId, Exact, Held, Host, KindFigures, Process, Snapshot};
use expect_test::expect;
use std::collections::BTreeSet;

fn each_name_once<S>(table: &'static [&'static Figure<S>]) {
    let mut names = BTreeSet::new();
    for figure in table {
        for field in figure.fields() {
            assert!(names.insert(field.name().into_owned()), "{} is there twice", field.name());
        }
        for alias in figure.aliases {
            assert!(names.insert((*alias).to_owned()), "{alias} is there twice");
        }
        assert!(!figure.title.is_empty(), "{} has no title", figure.name);
        assert!(figure.help.ends_with('.') && !figure.help.contains(['"', '\\']), "{}: {}", figure.name, figure.help);
    }
}

#[test]
fn every_row_has_a_name_of_its_own_a_title_and_a_sentence() {
    each_name_once(DEVICE_FIGURES);
    each_name_once(PROCESS_FIGURES);
    each_name_once(HELD_FIGURES);
    each_name_once(MACHINE_FIGURES);
}

#[test]
fn rule_words_and_metrics_are_unique() {
    let device = DEVICE_FIGURES.iter().map(|figure| (figure.rule, figure.metric));
    let process = PROCESS_FIGURES.iter().map(|figure| (figure.rule, figure.metric));
    let held = HELD_FIGURES.iter().map(|figure| (figure.rule, figure.metric));
    let (mut rules, mut metrics) = (BTreeSet::new(), BTreeSet::new());
    for (rule, metric) in device.chain(process).chain(held) {
        assert!(rule.is_none_or(|rule| rules.insert(rule)), "{rule:?} is there twice");
        let new = metric.is_none_or(|m| metrics.insert((m.name, format!("{:?}", m.kind), m.label)));
        assert!(new, "{metric:?} is there twice");
    }
}

/// The paths of a JSON value, without what an array contains.
fn paths(value: &serde_json::Value, prefix: &str, all: &mut BTreeSet<String>) {
    let serde_json::Value::Object(map) = value else { return };
    for (key, value) in map {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            serde_json::Value::Object(_) => paths(value, &path, all),
            _ => drop(all.insert(path)),
        }
    }
}

fn rows_and_json_agree<S: serde::Serialize>(table: &[&'static Figure<S>], subject: &S, not_figures: &[&str]) {
    let mut json = BTreeSet::new();
    paths(&serde_json::to_value(subject).unwrap(), "", &mut json);
    not_figures.iter().for_each(|path| assert!(json.remove(*path), "{path}"));
    let rows = table.iter().filter(|figure| figure.in_json).flat_map(|figure| figure.fields());
    // A list with a value per channel, port or queue is one path in JSON.
    let without_place = |path: String| match path.rsplit_once('.') {
        Some((list, place)) if place.parse::<usize>().is_ok() => list.to_owned(),
        _ => path,
    };
    let rows: BTreeSet<String> = rows.map(|field| without_place(field.path())).collect();
    assert_eq!(rows, json);
}

fn snapshot() -> Snapshot {
    let host = Host { simulated: true, deep: Some(Box::default()), ..Host::default() };
    let (devices, processes) = (vec![], vec![]);
    Snapshot { host, devices, processes, ..Snapshot::empty() }
}

#[test]
fn json_has_a_field_for_every_row_and_a_row_for_every_field() {
    let device = Device { deep: Some(Box::default()), ..Device::new(DeviceId::Local(0)) };
    rows_and_json_agree(DEVICE_FIGURES, &device, &[]);
    rows_and_json_agree(PROCESS_FIGURES, &Process::new(1), &["devices"]);
    rows_and_json_agree(operation::OPERATION_FIGURES, &crate::Operation::default(), &[]);
    let kind = || Some(KindFigures { banks: Some(BankFigures::default()), ..KindFigures::default() });
    let exact = Exact { dram: kind(), l1: kind(), l1_small: kind(), trace: kind(), cb: kind(), kernel: kind() };
    let held = Held { exact: Some(Box::new(exact)), ..Held::new(DeviceId::Local(0)) };
    // What the allocator has reserved of a kind is the same figure as the part of that kind.
    let reserved =
        process::HELD_BYTES.fields().map(|field| format!("exact.{}.bytes", Dimension::MemoryKind.label(field.label)));
    let not_rows: Vec<String> = reserved.chain(["index".into()]).collect();
    rows_and_json_agree(HELD_FIGURES, &held, &not_rows.iter().map(String::as_str).collect::<Vec<_>>());
    rows_and_json_agree(MACHINE_FIGURES, &snapshot(), &["schema", "devices", "processes", "faults"]);
}

#[test]
fn what_is_set_is_what_is_read() {
    for figure in DEVICE_FIGURES.iter().filter(|figure| figure.in_json && figure.freshness != Freshness::Host) {
        let value = match (figure.unit, figure.words.first()) {
            (Unit::Text, Some(word)) => Value::text(*word),
            (Unit::Text, None) => Value::text("7"),
            (Unit::YesNo, _) => Value::YesNo(true),
            (unit, _) if unit.is_whole() => Value::Whole(7),
            _ => Value::Real(7.0),
        };
        let mut device = Device::new(DeviceId::Local(0));
        assert_eq!(figure.value(&device), None, "{}", figure.name);
        (figure.set)(&mut device, 0, &value);
        assert_eq!(figure.value(&device), Some(value), "{}", figure.name);
        let mut copy = Device::new(DeviceId::Local(0));
        figure.copy(&device, &mut copy);
        assert_eq!(copy, device, "{}", figure.name);
        (figure.set)(&mut copy, 0, &Value::Absent);
        assert_eq!(figure.value(&copy), None, "{}", figure.name);
    }
}

#[test]
fn history_keeps_what_charts_show() {
    let kept: Vec<_> = kept_in_history().map(|field| field.title().into_owned()).collect();
    expect!["Temperature, Fan, Power, AICLK, Utilization, Programs per second, PCIe to device, PCIe to host, DRAM used, L1 used, GDDR temperature"]
        .assert_eq(&kept.join(", "));
}

#[test]
fn a_limit_is_in_the_unit_of_what_it_limits() {
    for figure in DEVICE_FIGURES {
        assert!(figure.limit.is_none_or(|limit| limit.unit == figure.unit), "{}", figure.name);
        assert!(figure.limit.is_some() || figure.judge == Judge::Never, "{} has nothing to be judged by", figure.name);
    }
}

#[test]
fn a_figure_with_labels_has_a_field_for_each() {
    let names: Vec<String> = process::PEAK_BYTES.fields().map(|field| field.name().into_owned()).collect();
    assert_eq!(names[..3], ["dram_peak_bytes", "l1_peak_bytes", "l1_small_peak_bytes"]);
    assert_eq!(process::PEAK_BYTES.fields().next().unwrap().title(), "DRAM peak");
    for dimension in [Dimension::MemoryKind, Dimension::GddrChannel, Dimension::EthernetPort, Dimension::CommandQueue] {
        for place in 0..dimension.len() {
            assert_eq!(dimension.place(&dimension.label(place)), Some(place));
        }
        assert_eq!(dimension.place("of_tomorrow"), None);
    }
}
