//! How busy each device is: what its holders had it do, added up.

use super::Draft;
use crate::activity::ProcessActivity;
use crate::books::FoundBook;
use crate::procs::ProcessFacts;
use model::{Activity, Device, DeviceId, PciAddress, UtilizationUnknown};
use std::collections::HashMap;

/// What the next snapshot needs of the last.
#[derive(Default)]
pub(super) struct Activities {
    /// By pid and start.
    pub earlier: HashMap<(u32, u64), ProcessActivity>,
    /// Busy seconds and programs that each process has on each device, as they were last read.
    counted: HashMap<(u32, u64, DeviceId), (f64, u64)>,
    /// What was counted on each device since it is watched, whoever has exited since. The address stays with the card.
    totals: HashMap<(Option<PciAddress>, bool), (f64, u64)>,
}

/// What is known of the activity in a process's book.
pub(super) fn of_book(facts: &ProcessFacts) -> Option<&ProcessActivity> {
    facts.book.as_ref().ok()?.as_ref()?.activity.as_ref().ok()?.as_ref()
}

impl Draft<'_> {
    /// What a process had one of the chips in its book do.
    pub(super) fn activity_on(&self, facts: &ProcessFacts, found: &FoundBook, place: usize) -> Activity {
        match &found.activity {
            Ok(Some(activity)) => {
                activity.on_chip(place, self.activities.earlier.get(&(facts.pid, facts.stat.start_ticks)))
            }
            Ok(None) => Activity::unknown(UtilizationUnknown::OldAgent),
            Err(_) => Activity::unknown(UtilizationUnknown::Impossible),
        }
    }

    /// Says of what was not measured why, and adds up what each device did.
    pub(super) fn add_activity(&mut self) {
        let mut counted = HashMap::new();
        let mut devices = std::mem::take(&mut self.devices);
        for device in &mut devices {
            let nameless = device.id.gateway().and_then(|n| self.nameless.get(&n)).is_some_and(|count| *count > 0);
            let mut all: Vec<&Activity> = Vec::new();
            let mut grown = (0.0, 0);
            for (pid, held) in &mut self.held {
                let Some(held) = held.iter_mut().find(|held| held.id == device.id) else { continue };
                let activity = &mut held.activity;
                if activity.utilization_percent.is_none() && activity.utilization_unknown.is_none() {
                    activity.utilization_unknown = Some(why_unknown(self.collected.processes.get(pid), &device.id));
                }
                if let (Some(busy), Some(programs)) = (activity.busy_seconds_total, activity.programs_total) {
                    let start = self.collected.processes.get(pid).map_or(0, |facts| facts.stat.start_ticks);
                    let key = (*pid, start, device.id.clone());
                    let (before, programs_before) = self.activities.counted.get(&key).copied().unwrap_or_default();
                    grown.0 += (busy - before).max(0.0);
                    grown.1 += programs.saturating_sub(programs_before);
                    counted.insert(key, (busy, programs));
                }
                all.push(activity);
            }
            let sum = of_all(device, &all, nameless);
            device.activity = sum;
            let card = (device.pci_address.clone(), device.id.index().is_none());
            if all.iter().any(|activity| activity.busy_seconds_total.is_some()) {
                let total = self.activities.totals.entry(card.clone()).or_default();
                *total = (total.0 + grown.0, total.1 + grown.1);
            }
            let total = self.activities.totals.get(&card).copied();
            device.activity.busy_seconds_total = total.map(|(busy, _)| (busy * 1000.0).round() / 1000.0);
            device.activity.programs_total = total.map(|(_, programs)| programs);
        }
        self.devices = devices;
        self.activities.counted = counted;
    }
}

fn why_unknown(holder: Option<&ProcessFacts>, id: &DeviceId) -> UtilizationUnknown {
    match holder.and_then(of_book) {
        // Its book is about the chips that it has opened, and this is none of them.
        Some(_) => UtilizationUnknown::Closed,
        None if id.index().is_none() => UtilizationUnknown::RemoteChip,
        None => UtilizationUnknown::NoAgent,
    }
}

/// What a device did for all its holders together. Chips run one program after another, so that their times add up.
fn of_all(device: &Device, holders: &[&Activity], nameless: bool) -> Activity {
    let sum = |get: fn(&Activity) -> Option<f64>| {
        let known: Vec<f64> = holders.iter().filter_map(|activity| get(activity)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>())
    };
    let reasons = || holders.iter().filter_map(|activity| activity.utilization_unknown);
    let mut all = match sum(|activity| activity.utilization_percent) {
        Some(percent) => {
            let incomplete = reasons().any(|why| why != UtilizationUnknown::Closed);
            let bounded = holders.iter().any(|activity| activity.utilization_lower_bound == Some(true));
            Activity {
                utilization_percent: Some(percent.min(100.0)),
                utilization_lower_bound: Some(incomplete || bounded || nameless),
                utilization_source: holders.iter().find_map(|activity| activity.utilization_source),
                ..Activity::default()
            }
        }
        None if device.id.index().is_none() => Activity::unknown(UtilizationUnknown::RemoteChip),
        None if holders.is_empty() && !nameless => Activity::unknown(UtilizationUnknown::NotInUse),
        None => {
            let worst = reasons().find(|why| *why != UtilizationUnknown::Closed).or_else(|| reasons().next());
            Activity::unknown(worst.unwrap_or(UtilizationUnknown::NoAgent))
        }
    };
    all.programs_per_second = sum(|activity| activity.programs_per_second);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::UtilizationSource;

    fn busy(percent: f64) -> Activity {
        Activity::measured(percent, UtilizationSource::Profiler)
    }

    fn shown(holders: &[Activity], nameless: bool) -> String {
        let device = Device::new(DeviceId::Local(0));
        let all = of_all(&device, &holders.iter().collect::<Vec<_>>(), nameless);
        match (all.utilization_percent, all.utilization_unknown) {
            (Some(percent), None) => {
                format!("{}{percent}", if all.utilization_lower_bound == Some(true) { "≥ " } else { "" })
            }
            (None, Some(why)) => why.name().to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_device_whose_holders_do_not_all_report_shows_a_lower_bound() {
        let no_agent = Activity::unknown(UtilizationUnknown::NoAgent);
        assert_eq!(shown(&[busy(40.0), no_agent.clone()], false), "≥ 40");
        assert_eq!(shown(&[busy(40.0)], true), "≥ 40", "one of another PID namespace");
        assert_eq!(shown(&[busy(40.0)], false), "40");
        assert_eq!(shown(&[no_agent], false), "no agent");
    }

    #[test]
    fn a_process_that_has_closed_the_device_takes_nothing_from_what_is_known() {
        let closed = Activity::unknown(UtilizationUnknown::Closed);
        assert_eq!(shown(&[busy(40.0), closed.clone()], false), "40");
        assert_eq!(shown(&[closed], false), "closed");
    }

    #[test]
    fn what_nobody_uses_is_not_measured() {
        assert_eq!(shown(&[], false), "not in use");
        assert_eq!(shown(&[busy(0.0)], false), "0");
    }

    #[test]
    fn two_processes_add_up_to_no_more_than_all() {
        assert_eq!(shown(&[busy(30.0), busy(20.5)], false), "50.5");
        assert_eq!(shown(&[busy(80.0), busy(70.0)], false), "100");
    }
}
