//! Rates from raw counters: arithmetic on two samples.

use crate::{Arch, Bytes, BytesPerSecond, Link};
use std::time::Duration;

/// The raw 32-bit flit counters of a chip's PCIe tile, by direction: each of three kinds of traffic on each of two NoCs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Flits that went from host to device.
    pub host_to_device: [u32; 6],
    /// Flits that went from device to host.
    pub device_to_host: [u32; 6],
    /// How long after the beginning of the reading each of them was read, in the same order: one read may be delayed.
    pub delays: [[Duration; 6]; 2],
    /// The heartbeat at that time: when it falls, the chip was reset in between.
    pub heartbeat: Option<u32>,
}

/// Data rates between two samples.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Written by the host or read by the device.
    pub host_to_device: Option<BytesPerSecond>,
    /// Read by the host or written by the device.
    pub device_to_host: Option<BytesPerSecond>,
}

/// The traffic between two readings that began `seconds` apart.
///
/// A counter that wrapped counts on; one that restarted gives no rate. The two look alike: a reset is recognised by a heartbeat
/// that fell. A driver too old to have a heartbeat gets no rate from a counter that fell, whatever the cause.
pub fn traffic(earlier: &Counters, later: &Counters, seconds: f64, arch: Arch, link: &Link) -> Traffic {
    let restarted = has_restarted(earlier, later).unwrap_or_else(|| has_fallen(earlier, later));
    let dead = is_dead(later);
    let most = link_bytes_per_second(link);
    let flit = flit_bytes(arch);
    // A single counter must not be able to wrap twice unseen.
    let too_long = seconds * most >= flit * 4_294_967_296.0;
    if restarted || dead || too_long || seconds <= 0.0 {
        return Traffic::default();
    }
    let rate = |direction: usize, before: &[u32; 6], after: &[u32; 6]| {
        let delay = |counters: &Counters, at: usize| counters.delays[direction][at].as_secs_f64();
        let one = |at: usize| {
            let seconds = seconds + delay(later, at) - delay(earlier, at);
            f64::from(after[at].wrapping_sub(before[at])) * flit / seconds
        };
        let rate: f64 = (0..6).map(one).sum();
        // Partial flits count as whole ones, so a busy link may look a little faster than it is.
        (0.0..=most * 2.0).contains(&rate).then_some(BytesPerSecond(rate))
    };
    Traffic {
        host_to_device: rate(0, &earlier.host_to_device, &later.host_to_device),
        device_to_host: rate(1, &earlier.device_to_host, &later.device_to_host),
    }
}

/// What went over a link in all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Transferred {
    /// Written by the host or read by the device.
    pub host_to_device: Bytes,
    /// Read by the host or written by the device.
    pub device_to_host: Bytes,
}

impl Transferred {
    /// Adds what went between two readings of the counters: at least so much, since it is unknown what a counter had before it
    /// was set back. `unbroken` if the device was well at every sample in between.
    pub fn add(&mut self, earlier: &Counters, later: &Counters, seconds: f64, unbroken: bool, arch: Arch, link: &Link) {
        if is_dead(later) {
            return;
        }
        let step: fn(u32, u32) -> u32 = match has_restarted(earlier, later) {
            Some(true) => |_, later| later,
            Some(false) if unbroken => |earlier, later| later.wrapping_sub(earlier),
            // It wrapped, or it was set back and has come this far since.
            _ => |earlier, later| later.checked_sub(earlier).unwrap_or(later),
        };
        let most = link_bytes_per_second(link) * seconds * 2.0;
        let bytes = |earlier: &[u32; 6], later: &[u32; 6]| {
            let flits: u64 = earlier.iter().zip(later).map(|(a, b)| u64::from(step(*a, *b))).sum();
            let bytes = flits * flit_bytes(arch) as u64;
            // More than the link can carry is no measurement.
            Bytes(if bytes as f64 <= most { bytes } else { 0 })
        };
        self.host_to_device += bytes(&earlier.host_to_device, &later.host_to_device);
        self.device_to_host += bytes(&earlier.device_to_host, &later.device_to_host);
    }
}

/// Whether the chip was reset between two readings, which its heartbeat shows.
fn has_restarted(earlier: &Counters, later: &Counters) -> Option<bool> {
    let (earlier, later) = (earlier.heartbeat?, later.heartbeat?);
    Some(later < earlier && earlier - later < u32::MAX / 2)
}

fn has_fallen(earlier: &Counters, later: &Counters) -> bool {
    all(earlier).zip(all(later)).any(|(earlier, later)| later < earlier)
}

fn is_dead(counters: &Counters) -> bool {
    all(counters).all(|n| n == u32::MAX)
}

fn all(counters: &Counters) -> impl Iterator<Item = u32> {
    counters.host_to_device.into_iter().chain(counters.device_to_host)
}

/// Bytes per counted flit. Blackhole's is its NoC's width; it has not been verified on hardware.
fn flit_bytes(arch: Arch) -> f64 {
    match arch {
        Arch::Wormhole => 32.0,
        Arch::Blackhole => 64.0,
    }
}

/// The most that a link can carry one way; what generation 5 carries on 16 lanes when the link is not known.
fn link_bytes_per_second(link: &Link) -> f64 {
    link.capacity().map_or(64e9, |capacity| capacity.0)
}

/// Host CPU of a process in percent of one core, from two readings of its CPU time.
pub fn cpu_percent(earlier_seconds: f64, later_seconds: f64, elapsed_seconds: f64) -> Option<f64> {
    (elapsed_seconds > 0.0 && later_seconds >= earlier_seconds)
        .then(|| ((later_seconds - earlier_seconds) / elapsed_seconds * 1000.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEN4: Link = Link {
        generation: Some(4),
        width: Some(16),
        max_generation: None,
        max_width: None,
        host_to_device: None,
        device_to_host: None,
        host_to_device_total: None,
        device_to_host_total: None,
    };

    fn counters(host_to_device: u32, heartbeat: u32) -> Counters {
        let mut all = [7; 6];
        all[0] = host_to_device;
        Counters { host_to_device: all, device_to_host: [9; 6], heartbeat: Some(heartbeat), ..Counters::default() }
    }

    #[test]
    fn traffic_is_flits_times_their_size() {
        let (a, b) = (counters(1000, 10), counters(1_001_000, 20));
        let wormhole = traffic(&a, &b, 1.0, Arch::Wormhole, &GEN4);
        assert_eq!(wormhole.host_to_device, Some(BytesPerSecond(32e6)));
        assert_eq!(wormhole.device_to_host, Some(BytesPerSecond(0.0)));
        assert_eq!(traffic(&a, &b, 0.5, Arch::Blackhole, &GEN4).host_to_device, Some(BytesPerSecond(128e6)));
    }

    #[test]
    fn a_counter_that_is_read_late_is_divided_by_its_own_time() {
        let (a, mut b) = (counters(1000, 10), counters(1_001_000, 20));
        b.delays[0][0] = Duration::from_secs(1);
        assert_eq!(traffic(&a, &b, 1.0, Arch::Wormhole, &GEN4).host_to_device, Some(BytesPerSecond(16e6)));
        assert_eq!(traffic(&b, &b, 1.0, Arch::Wormhole, &GEN4).host_to_device, Some(BytesPerSecond(0.0)));
    }

    #[test]
    fn the_two_nocs_are_two_counters() {
        let mut later = counters(1000, 20);
        later.host_to_device[1] += 500;
        let rate = traffic(&counters(1000, 10), &later, 1.0, Arch::Wormhole, &GEN4).host_to_device;
        assert_eq!(rate, Some(BytesPerSecond(16_000.0)));
    }

    #[test]
    fn a_counter_that_wraps_counts_on() {
        let (a, b) = (counters(u32::MAX - 499, 10), counters(500, 20));
        assert_eq!(traffic(&a, &b, 1.0, Arch::Wormhole, &GEN4).host_to_device, Some(BytesPerSecond(32_000.0)));
    }

    #[test]
    fn a_counter_that_restarts_gives_no_rate() {
        let (before, after) = (counters(3_000_000_000, 5000), counters(10, 3));
        assert_eq!(traffic(&before, &after, 1.0, Arch::Wormhole, &GEN4), Traffic::default());
        let without = |counters| Counters { heartbeat: None, ..counters };
        assert_eq!(traffic(&without(before), &without(after), 1.0, Arch::Wormhole, &GEN4), Traffic::default());
    }

    #[test]
    fn a_jump_that_the_link_cannot_carry_is_no_rate() {
        let (before, after) = (counters(0, 10), counters(2_500_000_000, 20));
        assert_eq!(traffic(&before, &after, 1.0, Arch::Wormhole, &GEN4).host_to_device, None);
    }

    #[test]
    fn the_heartbeat_itself_may_wrap() {
        let (a, b) = (counters(0, u32::MAX - 3), counters(1000, 6));
        assert!(traffic(&a, &b, 1.0, Arch::Wormhole, &GEN4).host_to_device.is_some());
    }

    #[test]
    fn samples_too_far_apart_give_no_rate() {
        let (a, b) = (counters(0, 10), counters(1000, 60));
        assert_eq!(traffic(&a, &b, 5.0, Arch::Wormhole, &GEN4), Traffic::default());
        assert_eq!(traffic(&a, &b, 0.0, Arch::Wormhole, &GEN4), Traffic::default());
    }

    #[test]
    fn a_hung_chip_gives_no_rate() {
        let dead = Counters { host_to_device: [u32::MAX; 6], device_to_host: [u32::MAX; 6], ..Counters::default() };
        assert_eq!(traffic(&counters(1, 1), &dead, 1.0, Arch::Wormhole, &GEN4), Traffic::default());
    }

    fn sum(steps: &[(u32, u32, bool)]) -> u64 {
        let mut sum = Transferred::default();
        for pair in steps.windows(2) {
            let [(a, beat, _), (b, next_beat, unbroken)] = [pair[0], pair[1]];
            sum.add(&counters(a, beat), &counters(b, next_beat), 10.0, unbroken, Arch::Wormhole, &GEN4);
        }
        sum.host_to_device.0 / 32
    }

    #[test]
    fn a_sum_goes_on_over_wraps_and_resets() {
        assert_eq!(sum(&[(1000, 10, true), (1500, 20, true), (1500, 30, true)]), 500);
        assert_eq!(sum(&[(u32::MAX - 499, 10, true), (500, 20, true)]), 1000, "a counter that wraps");
        // The sevens in the other five counters are traffic since the reset, too.
        assert_eq!(sum(&[(3_000_000_000, 5000, true), (10, 3, true)]), 10 + 5 * 7, "a chip that was reset");
        assert_eq!(sum(&[(3_000_000_000, 5000, true), (10, 6000, false)]), 10, "a reset that was not seen");
        assert_eq!(sum(&[(1000, 10, true), (1700, 900, false)]), 700, "a device that was silent for a while");
    }

    #[test]
    fn what_a_link_cannot_carry_adds_nothing() {
        let mut sum = Transferred::default();
        sum.add(&counters(0, 10), &counters(2_500_000_000, 20), 1.0, true, Arch::Wormhole, &GEN4);
        let dead = Counters { host_to_device: [u32::MAX; 6], device_to_host: [u32::MAX; 6], ..Counters::default() };
        sum.add(&counters(1, 1), &dead, 1e6, true, Arch::Wormhole, &GEN4);
        assert_eq!(sum, Transferred::default());
    }

    #[test]
    fn cpu_is_a_share_of_one_core() {
        assert_eq!(cpu_percent(10.0, 10.5, 1.0), Some(50.0));
        assert_eq!(cpu_percent(10.0, 14.0, 2.0), Some(200.0));
        assert_eq!(cpu_percent(10.0, 9.0, 1.0), None, "another process got the pid");
        assert_eq!(cpu_percent(10.0, 10.0, 0.0), None);
    }

    proptest::proptest! {
        #[test]
        fn no_rate_exceeds_what_a_link_can_carry_twice(a in proptest::array::uniform6(0u32..), b in proptest::array::uniform6(0u32..), seconds in 0.0f64..2.0) {
            let at = |n| Counters { host_to_device: n, device_to_host: n, ..Counters::default() };
            let Traffic { host_to_device, .. } = traffic(&at(a), &at(b), seconds, Arch::Blackhole, &GEN4);
            assert!(host_to_device.is_none_or(|rate| (0.0..=64e9).contains(&rate.0)));
        }
    }
}
