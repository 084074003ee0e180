//! All chips of a machine in a few figures: the summary of `top` and the totals of `smi`.

use crate::style::Tone;
use model::figure::device::{ASIC_TEMP, DRAM_TOTAL, DRAM_USED, L1_TOTAL, L1_USED, POWER, UTILIZATION};
use model::{Bytes, Device, DeviceId, State};

/// Sums over the chips that answer. What no chip reports is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineTotals<'a> {
    /// Number of chips.
    pub chips: usize,
    /// Those that answer, the second chips of boards included.
    pub ok: usize,
    /// The others by their state, as a word, and which they are.
    pub troubled: Vec<(&'static str, Tone, Vec<&'a DeviceId>)>,
    /// Power in watts.
    pub power: Option<SumOfLimit>,
    /// In °C, and whose it is.
    pub hottest: Option<(f64, &'a DeviceId)>,
    /// In bytes.
    pub dram: Option<SumOfLimit>,
    /// L1 in bytes.
    pub l1: Option<SumOfLimit>,
    /// Still attributed to exited processes.
    pub stale_dram: Bytes,
    /// The same of L1.
    pub stale_l1: Bytes,
    /// The mean in percent, and of how many chips it is known.
    pub utilization: Option<(f64, usize)>,
}

/// A sum, and the sum of the limits where all of its chips have one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SumOfLimit {
    /// The sum over the chips that have the figure.
    pub sum: f64,
    /// The sum of their limits.
    pub limit: Option<f64>,
    /// Whether the sum lacks something.
    pub is_lower_bound: bool,
}

/// Whether the chip has a problem. One behind its neighbour cannot answer, and nothing is wrong with it.
pub fn is_troubled(device: &Device) -> bool {
    !matches!(device.state, State::Ok | State::Remote) || is_old(device)
}

fn is_old(device: &Device) -> bool {
    device.state == State::Ok && device.sample_age_seconds.is_some_and(|age| age > 0.0)
}

impl MachineTotals<'_> {
    /// The totals of these devices.
    pub fn of(devices: &[Device]) -> MachineTotals<'_> {
        let mut troubled: Vec<(&'static str, Tone, Vec<&DeviceId>)> = Vec::new();
        for device in devices.iter().filter(|device| is_troubled(device)) {
            let old = is_old(device);
            let (word, tone) =
                if old { ("old", Tone::Warning) } else { (device.state.name(), Tone::of_state(device.state)) };
            match troubled.iter_mut().find(|(known, ..)| *known == word) {
                Some((.., ids)) => ids.push(&device.id),
                None => troubled.push((word, tone, vec![&device.id])),
            }
        }
        let answering = || devices.iter().filter(|device| device.state == State::Ok && !is_old(device));
        let hottest = answering().filter_map(|device| Some((ASIC_TEMP.number(device)?, &device.id)));
        let busy: Vec<f64> = answering().filter_map(|device| UTILIZATION.number(device)).collect();
        let lacks = devices.iter().any(|device| device.memory.untracked_processes > 0);
        let missing = troubled.iter().map(|(.., ids)| ids.len()).sum::<usize>();
        MachineTotals {
            chips: devices.len(),
            ok: devices.len() - missing,
            power: sum(answering().map(|device| (POWER.number(device), POWER.limit_of(device))), false),
            hottest: hottest.reduce(|a, b| if b.0 > a.0 { b } else { a }),
            dram: sum(devices.iter().map(|device| (DRAM_USED.number(device), DRAM_TOTAL.number(device))), lacks),
            l1: sum(devices.iter().map(|device| (L1_USED.number(device), L1_TOTAL.number(device))), lacks),
            stale_dram: devices.iter().map(|device| device.memory.stale_dram()).sum(),
            stale_l1: devices.iter().filter_map(|device| device.memory.stale_l1).sum(),
            utilization: (!busy.is_empty()).then(|| (busy.iter().sum::<f64>() / busy.len() as f64, busy.len())),
            troubled,
        }
    }
}

fn sum(all: impl Iterator<Item = (Option<f64>, Option<f64>)>, lacks: bool) -> Option<SumOfLimit> {
    let (mut total, mut limit, mut known, mut is_lower_bound) = (0.0, Some(0.0), 0, lacks);
    for (value, its_limit) in all {
        match value {
            Some(value) => (total, known) = (total + value, known + 1),
            None => is_lower_bound = true,
        }
        // A chip that is gone has neither.
        if value.is_some() || its_limit.is_some() {
            limit = limit.zip(its_limit).map(|(sum, one)| sum + one);
        }
    }
    (known > 0).then_some(SumOfLimit { sum: total, limit, is_lower_bound })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_chip_with_a_problem_is_counted_apart_and_its_figures_are_not_added() {
        let mut devices = example::galaxy().devices;
        devices.iter_mut().for_each(|device| (device.state, device.sample_age_seconds) = (State::Ok, None));
        let well = MachineTotals::of(&devices);
        assert_eq!((well.chips, well.ok, well.troubled.len()), (32, 32, 0));
        let power = |device: &Device| POWER.number(device).unwrap_or(0.0);
        let sum = |devices: &[Device]| devices.iter().map(power).sum::<f64>();
        assert!((well.power.unwrap().sum - sum(&devices)).abs() < 1e-6);
        (devices[3].state, devices[30].state, devices[31].state) = (State::Hung, State::Lost, State::Hung);
        let others = sum(&devices) - power(&devices[3]) - power(&devices[30]) - power(&devices[31]);
        let totals = MachineTotals::of(&devices);
        assert_eq!((totals.chips, totals.ok), (32, 29));
        let words: Vec<(&str, usize)> = totals.troubled.iter().map(|(word, _, ids)| (*word, ids.len())).collect();
        assert_eq!(words, [("hung", 2), ("lost", 1)]);
        assert!((totals.power.unwrap().sum - others).abs() < 1e-6);
        assert_eq!(MachineTotals::of(&[]).power, None);
    }
}
