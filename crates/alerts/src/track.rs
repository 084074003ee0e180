//! What is remembered of one rule about one device or process.

use crate::condition::{Compare, Expr, Value};
use crate::figure::Seen;
use crate::rule::Rule;
use model::{DeviceId, PciAddress, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub device: Option<DeviceId>,
    /// Pid and beginning.
    pub process: Option<(u32, Option<Timestamp>)>,
}

/// Where a rule about something stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stand {
    Calm,
    /// By the clock of the engine, and by the clock on the wall.
    Pending(Duration, Timestamp),
    Firing(Timestamp),
    /// When it began to fire, and when it ended by both clocks.
    Resolved(Timestamp, Duration, Timestamp),
}

/// What is remembered.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    pub stand: Stand,
    /// What each distinct comparison of the rule looks at.
    slots: Vec<Slot>,
    /// When there was something to look at.
    pub seen: Duration,
    pub text: String,
    pub value: Option<f64>,
    pub pci_address: Option<PciAddress>,
    pub process_name: Option<String>,
}

#[derive(Debug, Clone)]
struct Slot {
    compare: Compare,
    now: Option<f64>,
    most_now: Option<f64>,
    last: Option<(Duration, f64)>,
    most_last: Option<(Duration, f64)>,
    /// The values of the time that an increase is looked for over, without those that have a smaller one behind them.
    window: VecDeque<(Duration, f64)>,
}

/// A missing value of a device counts as it was for so long, but only for a rule that fires already. As long as PromQL looks back.
pub(crate) const LOOK_BACK: Duration = Duration::from_secs(300);

impl Track {
    pub fn new(rule: &Rule) -> Track {
        let mut slots: Vec<Slot> = Vec::new();
        for compare in rule.condition.compares() {
            if !slots.iter().any(|slot| slot.compare.looks_like(compare)) {
                slots.push(Slot {
                    compare: compare.clone(),
                    now: None,
                    most_now: None,
                    last: None,
                    most_last: None,
                    window: VecDeque::new(),
                });
            }
        }
        Track {
            stand: Stand::Calm,
            slots,
            seen: Duration::ZERO,
            text: String::new(),
            value: None,
            pci_address: None,
            process_name: None,
        }
    }

    /// Takes what there is to see now.
    pub fn look(&mut self, now: Duration, seen: &Seen) {
        for slot in &mut self.slots {
            slot.now = (slot.compare.figure.read)(seen).filter(|value| value.is_finite());
            slot.most_now = slot.compare.figure.most.and_then(|(most, _)| most(seen));
            slot.last = slot.now.map(|value| (now, value)).or(slot.last);
            slot.most_last = slot.most_now.map(|value| (now, value)).or(slot.most_last);
            let Some(length) = slot.compare.increase else { continue };
            slot.window.retain(|(at, _)| now.saturating_sub(*at) <= length);
            if let Some(value) = slot.now {
                while slot.window.back().is_some_and(|(_, earlier)| *earlier >= value) {
                    slot.window.pop_back();
                }
                slot.window.push_back((now, value));
            }
        }
    }

    /// Whether something is known to be so now.
    pub fn is_so(&self, expr: &Expr) -> bool {
        expr.holds(&|compare| self.slot(compare)?.value_now())
    }

    /// Whether it is so by what was last known.
    pub fn was_so(&self, expr: &Expr, now: Duration, look_back: Duration) -> bool {
        expr.holds(&|compare| self.slot(compare)?.value_last(now, look_back))
    }

    /// Whether there is a value at all.
    pub fn knows_something(&self) -> bool {
        self.slots.iter().any(|slot| slot.now.is_some())
    }

    /// The value that the rule begins with.
    pub fn first(&self) -> Option<f64> {
        // A word is no number.
        self.slots.first().filter(|slot| !matches!(slot.compare.value, Value::Word(_))).and_then(Slot::value_now)
    }

    /// What the rule sees, for people.
    pub fn shown(&self, expr: &Expr) -> String {
        let mut all: Vec<String> = Vec::new();
        for compare in expr.compares() {
            let text = self.slot(compare).and_then(|slot| Some(compare.shown(slot.value_now()?)));
            all.extend(text.filter(|text| !all.contains(text)));
        }
        all.join(", ")
    }

    /// How long something must be remembered for its increases.
    pub fn longest(&self) -> Duration {
        self.slots.iter().filter_map(|slot| slot.compare.increase).max().unwrap_or_default()
    }

    fn slot(&self, compare: &Compare) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.compare.looks_like(compare))
    }
}

impl Slot {
    fn value_now(&self) -> Option<f64> {
        self.value(self.now?, self.most_now)
    }

    fn value_last(&self, now: Duration, look_back: Duration) -> Option<f64> {
        let recent = |last: Option<(Duration, f64)>| last.filter(|(at, _)| now.saturating_sub(*at) <= look_back);
        self.value(recent(self.last)?.1, recent(self.most_last).map(|(_, value)| value))
    }

    fn value(&self, value: f64, most: Option<f64>) -> Option<f64> {
        match self.compare.increase {
            Some(_) => self.window.front().map(|(_, least)| value - least),
            None if self.compare.value.is_percent() => Some(100.0 * value / most.filter(|most| *most > 0.0)?),
            None => Some(value),
        }
    }
}
