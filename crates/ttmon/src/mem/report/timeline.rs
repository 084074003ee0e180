//! What operations allocated and freed, in their order, from the database of the ttnn visualizer.
//!
//! It has the buffers that were there after each operation. A buffer is the same as before if device, kind, address and size are: one that
//! was freed and allocated again in between is not noticed.

use super::sqlite::KINDS;
use model::{Bytes, Timestamp};
use rusqlite::{Connection, Row};
use show::activity;
use show::memory::view::{MemoryStep, MemoryTimeline, StepChange, StepKind, View};
use show::text::{Align, clean, fit};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use watch::overlay::database::{self, CapturedOperation, CapturedOperations};

/// The most steps for a person.
const STEPS: usize = 20;
/// The most steps at all.
const MOST_STEPS: usize = 1_000_000;

/// A buffer: kind, address, and bytes in a bank.
type Buffers = HashSet<(i64, i64, u64)>;

/// Reads the steps of all devices, which have these names.
pub fn read(connection: &Connection, names: &BTreeMap<(i64, i64), String>) -> rusqlite::Result<MemoryTimeline> {
    let rank = database::rank(connection, "buffers")?;
    // A database without operations, or with others, has an order and no times.
    let captured = database::operations(connection).unwrap_or_default();
    let known: BTreeMap<(i64, i64), &CapturedOperation> =
        captured.operations.iter().map(|operation| ((operation.rank, operation.id), operation)).collect();
    let error_seconds = captured.error_ns.map(|error| error as f64 / 1e9);
    let mut timeline = MemoryTimeline { error_seconds, steps: Vec::new() };
    let mut statement = connection.prepare(&format!(
        "select {rank}, device_id, operation_id, buffer_type, address, max_size_per_bank from buffers order by 1, 2, 3"
    ))?;
    let mut rows = statement.query([])?;
    let mut at: Option<(i64, i64, i64)> = None;
    let (mut before, mut now): (Option<Buffers>, Buffers) = (None, Buffers::new());
    let mut end = |at: (i64, i64, i64), before: Option<&Buffers>, now: &Buffers| {
        let Some(device) = names.get(&(at.0, at.1)).filter(|_| timeline.steps.len() < MOST_STEPS) else { return };
        let step =
            MemoryStep { device: device.clone(), operation: at.2, kinds: kinds(before, now), ..MemoryStep::default() };
        timeline.steps.push(timed(step, known.get(&(at.0, at.2)).copied(), &captured));
    };
    while let Some(row) = rows.next()? {
        let here = (row.get(0)?, row.get(1)?, row.get(2)?);
        if let Some(last) = at.filter(|last| *last != here) {
            end(last, before.as_ref(), &now);
            let is_same_device = (last.0, last.1) == (here.0, here.1);
            before = is_same_device.then(|| std::mem::take(&mut now));
            now.clear();
        }
        at = Some(here);
        now.insert(buffer(row)?);
    }
    if let Some(last) = at {
        end(last, before.as_ref(), &now);
    }
    Ok(timeline)
}

fn buffer(row: &Row) -> rusqlite::Result<(i64, i64, u64)> {
    let bytes = row.get::<_, Option<i64>>(5)?.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    Ok((row.get(3)?, row.get(4)?, bytes))
}

fn timed(step: MemoryStep, operation: Option<&CapturedOperation>, captured: &CapturedOperations) -> MemoryStep {
    let Some(operation) = operation else { return step };
    let began = captured.began_ns.filter(|_| captured.error_ns.is_some());
    let ended = began.map(|began| Timestamp((began.saturating_add(operation.end_ns) / 1_000_000) as i64));
    let ended_seconds = Some(operation.end_ns as f64 / 1e9);
    MemoryStep { name: Some(operation.name.clone()), ended_at: ended, ended_seconds, ..step }
}

fn kinds(before: Option<&Buffers>, now: &Buffers) -> Vec<StepKind> {
    let none = Buffers::new();
    let of_kind = |number: i64| {
        let sum = |buffers: &Buffers, others: &Buffers| {
            let new = buffers.iter().filter(|buffer| buffer.0 == number && !others.contains(buffer));
            new.fold(StepChange::default(), |sum, buffer| StepChange {
                buffers: sum.buffers + 1,
                bank_bytes: Bytes(sum.bank_bytes.0.saturating_add(buffer.2)),
            })
        };
        let all = sum(now, &none);
        let (allocated, freed) = before.map(|before| (sum(now, before), sum(before, now))).unzip();
        (all, allocated, freed)
    };
    let kind = |(number, name): &(i64, &str)| {
        let (all, allocated, freed) = of_kind(*number);
        let is_there = all.buffers > 0 || freed.is_some_and(|freed: StepChange| freed.buffers > 0);
        is_there.then(|| StepKind {
            kind: (*name).into(),
            buffers: all.buffers,
            bank_bytes: all.bank_bytes,
            allocated,
            freed,
        })
    };
    KINDS.iter().filter_map(kind).collect()
}

/// The steps that changed the most, in their order. Empty where there is no time axis.
pub fn text(view: &View) -> String {
    let Some(timeline) = &view.timeline else { return String::new() };
    let mut rows: Vec<(usize, &MemoryStep, &StepKind)> = Vec::new();
    for (at, step) in timeline.steps.iter().enumerate() {
        rows.extend(step.kinds.iter().map(|kind| (at, step, kind)).filter(|(.., kind)| change(kind) > 0));
    }
    if rows.is_empty() {
        return String::new();
    }
    let hidden = rows.len().saturating_sub(STEPS);
    rows.sort_by_key(|(at, _, kind)| (Reverse(change(kind)), *at));
    rows.truncate(STEPS);
    rows.sort_by_key(|(at, ..)| *at);
    let mut lines =
        vec![title(timeline), line(["Dev", "after", "Op", "operation", "kind", "a bank", "allocated", "freed"])];
    lines.extend(rows.into_iter().map(|(_, step, kind)| row(step, kind)));
    if hidden > 0 {
        lines.push(format!("and {hidden} smaller changes: --json has all"));
    }
    lines.join("\n") + "\n"
}

fn title(timeline: &MemoryTimeline) -> String {
    let is_timed = timeline.steps.iter().any(|step| step.ended_seconds.is_some());
    match timeline.error_seconds {
        Some(error) if is_timed => {
            format!("memory over time: operations are up to {} later than here", activity::seconds(error, true))
        }
        _ if is_timed => "memory over time, without the time between operations".into(),
        _ => "memory by operation: the report has no times".into(),
    }
}

/// How many bytes of a bank an operation allocated and freed.
fn change(kind: &StepKind) -> u64 {
    let bytes = |change: Option<StepChange>| change.map_or(0, |change| change.bank_bytes.0);
    bytes(kind.allocated).saturating_add(bytes(kind.freed))
}

fn row(step: &MemoryStep, kind: &StepKind) -> String {
    let changed = |change: Option<StepChange>| match change {
        Some(StepChange { buffers: 1.., bank_bytes }) => bank_bytes.to_string(),
        Some(_) => String::new(),
        None => "–".into(),
    };
    let time = step.ended_seconds.map_or_else(|| "–".into(), |seconds| activity::seconds(seconds, true));
    let name = clean(step.name.as_deref().unwrap_or("–")).into_owned();
    line([
        &step.device,
        &time,
        &step.operation.to_string(),
        &name,
        &kind.kind.to_uppercase(),
        &kind.bank_bytes.to_string(),
        &changed(kind.allocated),
        &changed(kind.freed),
    ])
}

/// In 80 columns.
fn line([device, time, operation, name, kind, bytes, allocated, freed]: [&str; 8]) -> String {
    let left = |text: &str, columns| fit(text, columns, Align::Left, '…');
    let right = |text: &str, columns| fit(text, columns, Align::Right, '…');
    let (device, time, operation) = (right(device, 3), right(time, 9), right(operation, 6));
    let (name, kind) = (left(name, 20), left(kind, 8));
    let (bytes, allocated, freed) = (right(bytes, 9), right(allocated, 11), right(freed, 10));
    format!("{device}{time}{operation} {name} {kind}{bytes}{allocated}{freed}")
}
