//! The one judgement: normal, warm, critical; free, tight, full; at a limit.
//!
//! Every view, event, fleet summary and page uses these functions, and the built-in rules have these thresholds. Full power is
//! normal load.

use crate::figure::{Field, Figure, Judge};
use crate::{Device, Process, State};

/// From this part of its limit on, a temperature is warm.
pub const WARM: f64 = 0.85;
/// From this part of its limit on, a temperature is critical.
pub const HOT: f64 = 0.95;
/// From this part on, a capacity is tight.
pub const TIGHT: f64 = 0.80;
/// From this part on, a capacity is full.
pub const FULL: f64 = 0.95;
/// From this part of its limit on, a value is at its limit.
pub const AT_LIMIT: f64 = 0.98;
/// What was too much stays so until it is below this part of the threshold: it does not come and go with noise.
pub const HYSTERESIS: f64 = 0.95;

/// A process that holds device memory and has run nothing for so many seconds is idle: it keeps others from the device.
pub const IDLE_SECONDS: f64 = 600.0;

named! {
    /// What a value means.
    #[derive(PartialOrd, Ord)]
    pub enum Judgement {
        /// As it should be.
        Normal = "normal",
        /// Worth a look: warm, tight, or a device that does not work right now.
        Warning = "warning",
        /// It needs attention now: too hot, full, hung, lost.
        Critical = "critical",
    }
}

impl Judge {
    /// The thresholds of warning and critical, as parts of the limit.
    pub fn thresholds(self) -> Option<(f64, f64)> {
        match self {
            Judge::Heat => Some((WARM, HOT)),
            Judge::Capacity => Some((TIGHT, FULL)),
            Judge::Never | Judge::Load | Judge::Link => None,
        }
    }

    /// What a part of the limit means.
    pub fn judge(self, share: f64) -> Judgement {
        match self.thresholds() {
            Some((_, critical)) if share >= critical => Judgement::Critical,
            Some((warning, _)) if share >= warning => Judgement::Warning,
            None if self == Judge::Link && share < 1.0 => Judgement::Warning,
            _ => Judgement::Normal,
        }
    }

    /// The word for a judgement: a capacity is free, tight or full, a temperature normal, warm or critical.
    pub fn word(self, judgement: Judgement) -> &'static str {
        match (self, judgement) {
            (Judge::Capacity, Judgement::Normal) => "free",
            (Judge::Capacity, Judgement::Warning) => "tight",
            (Judge::Capacity, Judgement::Critical) => "full",
            (Judge::Heat, Judgement::Warning) => "warm",
            (Judge::Link, Judgement::Warning) => "degraded",
            (_, judgement) => judgement.name(),
        }
    }
}

impl<S> Figure<S> {
    /// What the value means; nothing where it or its limit is not known.
    pub fn judge(&self, subject: &S) -> Option<Judgement> {
        Some(self.judge.judge(self.number(subject)? / self.limit_of(subject)?))
    }

    /// Whether the value is at its limit.
    pub fn is_at_limit(&self, subject: &S) -> bool {
        matches!((self.number(subject), self.limit_of(subject)), (Some(value), Some(limit)) if value >= limit * AT_LIMIT)
    }
}

impl<S> Field<S> {
    /// What its value means; nothing where it or its limit is not known.
    pub fn judge(&self, subject: &S) -> Option<Judgement> {
        Some(self.figure.judge.judge(self.number(subject)? / self.limit_of(subject)?))
    }
}

impl State {
    /// What it means for a device to be in this state.
    pub fn judge(self) -> Judgement {
        match self {
            State::Ok | State::Remote => Judgement::Normal,
            State::NoTelemetry | State::Resetting | State::Silent | State::NoDriver => Judgement::Warning,
            State::Hung | State::Lost => Judgement::Critical,
        }
    }

    /// What the state means, in a sentence for people.
    pub fn meaning(self) -> &'static str {
        match self {
            State::Ok => "Responding normally.",
            State::NoTelemetry => "Its firmware has published no telemetry.",
            State::Resetting => "A reset is in progress.",
            State::Hung => "Firmware heartbeat stopped, or PCIe not responding.",
            State::Silent => "Did not answer in time. These are the last known values.",
            State::Lost => "Device disappeared from the bus.",
            State::NoDriver => "No driver is bound to the device.",
            State::Remote => "Reached through its neighbour. Its telemetry cannot be read without disturbing it.",
        }
    }
}

/// The worst that is to be said of a device: its state, and the figures that are judged.
pub fn of_device(device: &Device) -> Judgement {
    let figures = crate::figure::device::DEVICE_FIGURES.iter().filter_map(|figure| figure.judge(device));
    figures.chain([device.state.judge()]).max().unwrap_or(Judgement::Normal)
}

/// Whether a process holds device memory and has run nothing for long. Only its agent knows: without one it is never said.
pub fn is_idle_holder(process: &Process) -> bool {
    let holds = process.usage().total().is_some_and(|bytes| bytes.0 > 0);
    holds && process.idle_seconds.is_some_and(|idle| idle >= IDLE_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::device::{ASIC_TEMP, DRAM_USED, POWER};
    use crate::{Bytes, Celsius, DeviceId, Held, Usage, Watts};

    fn device() -> Device {
        Device::new(DeviceId::Local(0))
    }

    #[test]
    fn a_temperature_is_judged_against_the_throttle_limit() {
        let at = |temp| {
            let device = Device { asic_temp: Some(Celsius(temp)), asic_temp_max: Some(Celsius(100.0)), ..device() };
            ASIC_TEMP.judge(&device).map(|judgement| ASIC_TEMP.judge.word(judgement))
        };
        assert_eq!([84.9, 85.0, 94.9, 95.0].map(at), ["normal", "warm", "warm", "critical"].map(Some));
        assert_eq!(ASIC_TEMP.judge(&Device { asic_temp: Some(Celsius(99.0)), ..device() }), None, "no limit is known");
    }

    #[test]
    fn full_power_is_normal_load_and_at_its_limit() {
        let full = Device { power: Some(Watts(150.0)), power_max: Some(Watts(150.0)), ..device() };
        assert_eq!((POWER.judge(&full), POWER.is_at_limit(&full)), (Some(Judgement::Normal), true));
        let less = Device { power: Some(Watts(146.0)), ..full };
        assert!(!POWER.is_at_limit(&less));
    }

    #[test]
    fn a_capacity_is_free_tight_or_full() {
        let at = |used| {
            let mut device = device();
            device.memory.dram_total = Some(Bytes(100));
            device.memory.dram_used = Some(Bytes(used));
            DRAM_USED.judge(&device).map(|judgement| DRAM_USED.judge.word(judgement))
        };
        assert_eq!([79, 80, 94, 95].map(at), ["free", "tight", "tight", "full"].map(Some));
    }

    #[test]
    fn a_process_that_holds_memory_and_runs_nothing_is_idle_only_where_its_agent_says_so() {
        let mut process = Process { idle_seconds: Some(600.0), ..Process::new(7) };
        assert!(!is_idle_holder(&process), "it holds nothing");
        process.devices.push(Held { usage: Usage::measured(0, 1, 0, 0, 0), ..Held::new(DeviceId::Local(0)) });
        assert!(is_idle_holder(&process));
        assert!(!is_idle_holder(&Process { idle_seconds: Some(599.0), ..process.clone() }));
        assert!(!is_idle_holder(&Process { idle_seconds: None, ..process }));
    }

    #[test]
    fn the_worst_of_a_device_is_its_judgement() {
        let mut device = device();
        assert_eq!(of_device(&device), Judgement::Normal);
        (device.pcie.width, device.pcie.max_width) = (Some(8), Some(16));
        assert_eq!(of_device(&device), Judgement::Warning);
        device.state = State::Hung;
        assert_eq!(of_device(&device), Judgement::Critical);
    }
}
