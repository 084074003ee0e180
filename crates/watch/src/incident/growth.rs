//! Device memory of a process that grows again and again and never falls: a leak, or a cache that grows. The data does not say which.

use super::cause::Cause;
use super::fact::{Fact, FactSource};
use super::names::process_name;
use model::throttle::spoken;
use model::{Bytes, DeviceId, Process, Snapshot, Source, Timestamp};
use std::collections::BTreeMap;

/// So many increases without one fall are growth.
const LEAST_RISES: u32 = 20;
/// And it has to be this part of the device's DRAM.
const LEAST_PART: f64 = 0.10;

/// What each process holds on each device, followed over time.
#[derive(Debug, Default)]
pub struct Growth {
    followed: BTreeMap<(u32, Option<Timestamp>, DeviceId), Rise>,
    /// Growth that ended with a fall.
    over: Vec<Fact>,
}

#[derive(Debug, Clone)]
struct Rise {
    name: String,
    source: FactSource,
    total: Option<Bytes>,
    from: (Timestamp, Bytes),
    /// When it had grown for the first time.
    first: Timestamp,
    to: (Timestamp, Bytes),
    rises: u32,
}

impl Growth {
    pub fn see(&mut self, snapshot: &Snapshot) {
        for process in &snapshot.processes {
            for held in &process.devices {
                let Some(bytes) = held.usage.dram_used else { continue };
                let total = snapshot.devices.iter().find(|device| device.id == held.id);
                let total = total.and_then(|device| device.memory.dram_total);
                let source = match held.source {
                    Some(Source::Exact) => FactSource::Book(process.pid),
                    _ => FactSource::Processes,
                };
                self.follow(process, &held.id, source, total, (snapshot.taken_at, bytes));
            }
        }
    }

    fn follow(
        &mut self,
        process: &Process,
        device: &DeviceId,
        source: FactSource,
        total: Option<Bytes>,
        now: (Timestamp, Bytes),
    ) {
        let key = (process.pid, process.started_at, device.clone());
        let begin = Rise { name: process_name(process), source, total, from: now, first: now.0, to: now, rises: 0 };
        let Some(rise) = self.followed.get_mut(&key) else {
            self.followed.insert(key, begin);
            return;
        };
        if now.1 > rise.to.1 {
            // What was flat before is no part of it.
            if rise.rises == 0 {
                (rise.from.0, rise.first) = (rise.to.0, now.0);
            }
            (rise.to, rise.rises) = (now, rise.rises + 1);
        } else if now.1 < rise.to.1 {
            self.over.extend(rise.fact(process.pid, device));
            *rise = begin;
        } else if rise.rises == 0 {
            rise.to.0 = now.0;
        }
    }

    /// All growth that was found.
    pub fn facts(&self) -> Vec<Fact> {
        let now = self.followed.iter().filter_map(|((pid, _, device), rise)| rise.fact(*pid, device));
        self.over.iter().cloned().chain(now).collect()
    }
}

impl Rise {
    fn fact(&self, pid: u32, device: &DeviceId) -> Option<Fact> {
        let grown = self.to.1.0.saturating_sub(self.from.1.0);
        let is_much = self.total.is_some_and(|total| grown as f64 >= total.0 as f64 * LEAST_PART);
        if self.rises < LEAST_RISES || !is_much {
            return None;
        }
        let ((began, from), (ended, to)) = (self.from, self.to);
        let time = spoken((ended.0 - began.0) as f64 / 1000.0);
        let (name, rises) = (&self.name, self.rises);
        let text = format!(
            "{name}: DRAM on device {device} grew from {from} to {to} in {time}, {rises} times without a fall \
             (a leak, or a cache that grows)"
        );
        let fact =
            Fact::at(Cause::MemoryGrowth, self.first, began, text, self.source.clone()).of(pid).on(device.clone());
        Some(Fact { until: ended, ..fact })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Held, Usage};

    /// What is found when a process holds these GiB, a second each.
    fn found(gib: impl IntoIterator<Item = u64>) -> Vec<String> {
        let mut growth = Growth::default();
        for (second, gib) in gib.into_iter().enumerate() {
            let mut snapshot = show::example::machine();
            snapshot.taken_at = Timestamp(second as i64 * 1000);
            let id = snapshot.devices[0].id.clone();
            snapshot.devices[0].memory.dram_total = Some(Bytes(100 << 30));
            let held = Held { usage: Usage::measured(gib << 30, 0, 0, 0, 0), ..Held::new(id) };
            snapshot.processes = vec![Process { devices: vec![held], ..Process::new(7) }];
            growth.see(&snapshot);
        }
        growth.facts().into_iter().map(|fact| format!("{} to {}: {}", fact.time.0, fact.until.0, fact.text)).collect()
    }

    #[test]
    fn growth_is_many_increases_without_a_fall_and_much_of_the_device() {
        let steady = [5; 10].into_iter().chain(6..=30).chain([30; 5]);
        assert_eq!(
            found(steady),
            ["10000 to 34000: pid 7: DRAM on device 0 grew from 5.0 GiB to 30.0 GiB in 25 s, 25 times without a fall \
              (a leak, or a cache that grows)"]
        );
        assert_eq!(found(5..20), [""; 0], "too few");
        assert_eq!(found((5..20).chain(5..20)), [""; 0], "it comes and goes");
        assert_eq!(found((5..30).chain([1, 1])).len(), 1, "and it fell when that was over");
    }
}
