//! Where the time of a run went: how busy it kept the chips, what it waited for, and its operations.

use super::account::{RunAccount, RunProcess};
use super::energy::Tally;
use super::receipt::{counted, duration, thousands};
use model::{Operation, UtilizationUnknown};
use show::activity;
use show::text::{Align, clean, fit};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many operations the text lists.
const OPERATIONS: usize = 10;

/// What the processes of a run had one chip do.
pub struct ChipTime {
    pub busy: f64,
    /// For how long it was open, or the longest time that one of them had it open.
    pub open: f64,
    pub programs: u64,
    pub is_lower_bound: bool,
}

/// How busy a chip was kept, or why that is not known.
pub fn of_chip(users: &[(&RunProcess, usize)]) -> Option<Result<ChipTime, UtilizationUnknown>> {
    let mut time = ChipTime { busy: 0.0, open: 0.0, programs: 0, is_lower_bound: false };
    let (mut known, mut reason) = (false, None);
    for (process, at) in users {
        let Some(activity) = &process.activity else { continue };
        let Some(chip) = activity.chips.get(*at) else { continue };
        match (chip.busy_seconds_total, activity.open_seconds.get(*at).copied().flatten()) {
            (Some(busy), Some(open)) if open > 0.0 => {
                known = true;
                time.busy += busy;
                time.open = time.open.max(open);
                time.programs += chip.programs_total.unwrap_or(0);
                // Without a source any more, the rest of the time is not known.
                time.is_lower_bound |= activity.records_lost > 0 || chip.utilization_source.is_none();
            }
            _ => reason = reason.or(chip.utilization_unknown),
        }
    }
    time.is_lower_bound |= known && reason.is_some();
    if known { Some(Ok(time)) } else { reason.map(Err) }
}

impl ChipTime {
    pub fn percent(&self) -> f64 {
        (self.busy / self.open * 100.0).min(100.0)
    }

    /// In one line, with the energy of a program where that is known.
    pub fn text(&self, tally: Option<&Tally>, run: Duration) -> String {
        let bound = if self.is_lower_bound { "≥ " } else { "" };
        let open = duration(Duration::from_secs_f64(self.open));
        let programs = counted(self.programs, "program", "programs");
        let mut text = format!("busy {bound}{:.1} % of {open}, {programs}", self.percent());
        let energy = tally.filter(|tally| tally.covers(run) && self.programs > 0).and_then(|tally| tally.energy);
        if let Some(energy) = energy {
            text += &format!(", {} each", joules(energy.0 / self.programs as f64));
        }
        text
    }
}

fn joules(joules: f64) -> String {
    match joules {
        0.1.. => format!("{joules:.1} J"),
        0.000_1.. => format!("{:.1} mJ", joules * 1e3),
        _ => format!("{:.1} µJ", joules * 1e6),
    }
}

/// What the threads of the run waited for.
pub fn waits(account: &RunAccount) -> Option<String> {
    let activities = || account.processes.iter().filter_map(|process| process.activity.as_ref());
    let programs: u64 = activities().map(|activity| activity.programs).sum();
    if programs == 0 {
        return None;
    }
    let seconds = |ns: u64| Duration::from_nanos(ns);
    let waited: u64 = activities().map(|activity| activity.waited).sum();
    let held_back: u64 = activities().map(|activity| activity.back_pressure).sum();
    let run = account.duration.as_secs_f64().max(1e-9) * activities().count() as f64;
    let share = |ns: u64| format!("{} ({:.1} %)", duration(seconds(ns)), ns as f64 / 1e9 / run * 100.0);
    Some(format!(
        "{} launched; waited for devices {}, held back by full queues {}",
        counted(programs, "program", "programs"),
        share(waited),
        share(held_back)
    ))
}

/// The operations of all processes together, the one with the most device time first.
pub fn operations(account: &RunAccount) -> Vec<Operation> {
    let mut all: BTreeMap<&str, Operation> = BTreeMap::new();
    let activities = account.processes.iter().filter_map(|process| process.activity.as_ref());
    for operation in activities.flat_map(|activity| &activity.operations) {
        let sum = all
            .entry(&operation.name)
            .or_insert_with(|| Operation { name: operation.name.clone(), ..Operation::default() });
        let add = |a: Option<f64>, b: Option<f64>| Some(a.unwrap_or(0.0) + b?).or(a);
        sum.launches += operation.launches;
        sum.runs = operation.runs.map(|runs| runs + sum.runs.unwrap_or(0)).or(sum.runs);
        sum.device_seconds = add(sum.device_seconds, operation.device_seconds).or(sum.device_seconds);
        let longest = [sum.longest_seconds, operation.longest_seconds].into_iter().flatten().reduce(f64::max);
        sum.longest_seconds = longest;
    }
    let mut all: Vec<Operation> = all.into_values().collect();
    all.sort_by(Operation::by_cost);
    all
}

/// The first of them as a table.
pub fn table(operations: &[Operation]) -> Vec<String> {
    if operations.is_empty() {
        return vec![];
    }
    let is_timed = activity::device_seconds(operations).is_some();
    let row = |name: &str, figures: [&str; 4]| {
        let right = |text: &str, columns| fit(text, columns, Align::Right, '…');
        let [share, time, launches, longest] = figures;
        let name = fit(name, 34, Align::Left, '…');
        format!("{name}{}{}{}{}", right(share, 8), right(time, 13), right(launches, 12), right(longest, 12))
    };
    let title = if is_timed { "operations by device time" } else { "operations by launches" };
    let heading = if is_timed { ["share", "device time", "launches", "longest"] } else { ["", "", "launches", ""] };
    let mut lines = vec![row(title, heading)];
    for (operation, share) in activity::operations(operations).into_iter().take(OPERATIONS) {
        let share = share.map(|share| format!("{:.1} %", share * 100.0));
        let [time, longest] = [operation.device_seconds, operation.longest_seconds].map(|time| time.map(short));
        let unknown = if is_timed { "–" } else { "" };
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| unknown.into());
        let name = format!("  {}", clean(&operation.name));
        lines.push(row(&name, [&text(&share), &text(&time), &thousands(operation.launches), &text(&longest)]));
    }
    if let Some(more @ 1..) = operations.len().checked_sub(OPERATIONS) {
        lines.push(format!("  and {}", counted(more as u64, "more", "more")));
    }
    lines
}

/// A time on a device.
pub fn short(seconds: f64) -> String {
    activity::seconds(seconds, true)
}
