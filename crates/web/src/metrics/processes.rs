//! The figures of processes, and of processes on devices: as many series as are allowed, those of the largest, and the sum of the others.

use super::family::Family;
use super::text::{FamilyLines, MetricsText, label, label_of};
use super::{Families, MetricsInput};
use model::figure::process::{SERIES_LABELS, SOURCE};
use model::figure::{Unit, Value};
use model::{DeviceId, Held, Process};
use std::cmp::Reverse;

struct ProcessOnDevice<'a> {
    process: &'a Process,
    held: &'a Held,
    /// How many bytes all its series say together: the more, the more it matters.
    bytes: f64,
    series: usize,
}

pub fn write(text: &mut MetricsText, families: &Families, input: &MetricsInput<'_>) {
    let mut kept = Vec::new();
    for process in &input.snapshot.processes {
        kept.extend(process.devices.iter().map(|held| ProcessOnDevice::new(&families.held, process, held)));
    }
    let others = over_the_limit(&mut kept, input.options.max_process_series);
    for family in &families.processes {
        let mut lines = text.lines(family);
        for of_process in kept.chunk_by(|a, b| std::ptr::eq(a.process, b.process)) {
            let (process, mut labels) = (of_process[0].process, String::new());
            add_labels(&mut labels, process);
            family.series.iter().for_each(|series| lines.line(&labels, &series.labels, series.number(process)));
        }
    }
    let labels: Vec<String> = kept.iter().map(labels_of).collect();
    let rest = rest_of(input, &others);
    for family in &families.held {
        let mut lines = text.lines(family);
        for (holding, labels) in kept.iter().zip(&labels) {
            for series in &family.series {
                lines.line(labels, &series.labels, series.number(holding.held));
            }
        }
        write_rest(&mut lines, &rest);
    }
}

impl<'a> ProcessOnDevice<'a> {
    fn new(families: &[Family<Held>], process: &'a Process, held: &'a Held) -> ProcessOnDevice<'a> {
        let mut holding = ProcessOnDevice { process, held, bytes: 0.0, series: 0 };
        for series in families.iter().flat_map(|family| &family.series) {
            let Some(number) = series.number(held).and_then(|number| number.number()) else { continue };
            holding.series += 1;
            holding.bytes += if series.figure.unit == Unit::Bytes { number } else { 0.0 };
        }
        holding
    }
}

/// Takes out those that there is no room for: the largest stay.
fn over_the_limit<'a>(all: &mut Vec<ProcessOnDevice<'a>>, limit: usize) -> Vec<ProcessOnDevice<'a>> {
    if all.iter().map(|holding| holding.series).sum::<usize>() <= limit {
        return Vec::new();
    }
    let mut by_size: Vec<usize> = (0..all.len()).collect();
    by_size.sort_by_key(|at| (Reverse(all[*at].bytes.to_bits()), *at));
    let mut series = 0;
    let fits = |at: &&usize| {
        series += all[**at].series;
        series <= limit
    };
    let kept = by_size.iter().take_while(fits).count();
    let mut is_kept = vec![false; all.len()];
    by_size[..kept].iter().for_each(|at| is_kept[*at] = true);
    let mut is_kept = is_kept.into_iter();
    let (kept, left_out) = all.drain(..).partition(|_| is_kept.next() == Some(true));
    *all = kept;
    left_out
}

fn labels_of(holding: &ProcessOnDevice<'_>) -> String {
    let mut labels = String::with_capacity(128);
    label(&mut labels, "device", &holding.held.id.to_string());
    add_labels(&mut labels, holding.process);
    if let Some(source) = SOURCE.value(holding.held) {
        label_of(&mut labels, SOURCE.name, &source);
    }
    labels
}

fn add_labels(labels: &mut String, process: &Process) {
    for figure in SERIES_LABELS {
        if let Some(value) = figure.value(process) {
            label_of(labels, figure.name, &value);
        }
    }
}

/// Those that have no series of their own, by device with its labels: their sums keep sums over all processes right.
fn rest_of<'a>(input: &MetricsInput<'a>, others: &[ProcessOnDevice<'a>]) -> Vec<(String, Vec<&'a Held>)> {
    if others.is_empty() {
        return Vec::new();
    }
    let mut devices: Vec<&DeviceId> = input.snapshot.devices.iter().map(|device| &device.id).collect();
    for holding in others {
        if !devices.contains(&&holding.held.id) {
            devices.push(&holding.held.id);
        }
    }
    let of_device = |id: &DeviceId| {
        let mut labels = String::new();
        label(&mut labels, "device", &id.to_string());
        let names = SERIES_LABELS.iter().map(|figure| figure.name).chain([SOURCE.name]);
        names.for_each(|name| label(&mut labels, name, "other"));
        (labels, others.iter().map(|holding| holding.held).filter(|held| held.id == *id).collect())
    };
    devices.into_iter().map(of_device).collect()
}

/// Only bytes add up over processes.
fn write_rest(lines: &mut FamilyLines<'_, '_, Held>, rest: &[(String, Vec<&Held>)]) {
    for (labels, held) in rest {
        for series in lines.family.series.iter().filter(|series| series.figure.unit == Unit::Bytes) {
            let numbers = held.iter().filter_map(|held| match series.number(held) {
                Some(Value::Whole(bytes)) => Some(bytes),
                _ => None,
            });
            lines.line(labels, &series.labels, numbers.reduce(u64::saturating_add).map(Value::Whole));
        }
    }
}
