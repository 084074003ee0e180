//! Utilization from dispatch telemetry: ticks of work divided by ticks of time, over a window.
//!
//! **Tearing.** When a program ends, the kernel first adds its ticks and then clears its start, so a reader may see both. The work
//! is therefore read before and after the time, and counts only if both are equal.
//!
//! **Short windows.** A start can be older than the time of the sample before, so a short window can have more work than time.
//! The result is limited to 0..1, and windows are at least 100 ms.

use super::Unknown;
use super::block::{CountedWork, Now};

/// What was read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetrySample {
    /// Ticks since the chip was started.
    pub ticks: u64,
    /// Ticks in which any core worked, up to then.
    pub work: u64,
    /// Programs up to then; goes on with 0 after the largest number.
    pub programs: u32,
    /// When that was, in ns of the host's monotonic clock.
    pub at_ns: u64,
}

/// Attempts after the first one.
pub const RETRIES: usize = 4;

/// No window is shorter than this: 100 ms.
pub const SHORTEST_NS: u64 = 100_000_000;

/// No chip has a faster clock: 4 ticks per ns.
const MOST_TICKS_PER_NS: u64 = 4;

impl TelemetrySample {
    /// Reads a sample with a function that fills bytes from an offset in the block, at most 16 at a time.
    pub fn read<E: From<Unknown>>(
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        mut clock: impl FnMut() -> u64,
    ) -> Result<TelemetrySample, E> {
        let mut before = read_work(&mut read)?;
        for _ in 0..=RETRIES {
            let mut bytes = [0; 16];
            read(Now::OFFSET, &mut bytes)?;
            let at_ns = clock();
            let now = Now::decode(bytes)?;
            let after = read_work(&mut read)?;
            if before == after {
                let Now { ticks, programs } = now;
                return Ok(TelemetrySample { ticks, work: before.until(now), programs, at_ns });
            }
            before = after;
        }
        Err(Unknown::Torn.into())
    }
}

fn read_work<E: From<Unknown>>(read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>) -> Result<CountedWork, E> {
    let mut bytes = [0; 16];
    read(CountedWork::OFFSET, &mut bytes)?;
    Ok(CountedWork::decode(bytes)?)
}

/// What happened between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetryWindow {
    /// Ticks in which any core worked. May exceed `ticks` in a short window.
    pub work: u64,
    /// Ticks in all, not 0.
    pub ticks: u64,
    /// Programs.
    pub programs: u32,
    /// ns in all.
    pub ns: u64,
}

impl TelemetryWindow {
    /// What happened between two samples of the same queue, or why that is unknown.
    pub fn between(before: &TelemetrySample, after: &TelemetrySample) -> Result<TelemetryWindow, Unknown> {
        let ns = after.at_ns.saturating_sub(before.at_ns);
        if ns < SHORTEST_NS {
            return Err(Unknown::Short);
        }
        let difference = |before: u64, after: u64| after.checked_sub(before).ok_or(Unknown::Backwards);
        let (work, ticks) = (difference(before.work, after.work)?, difference(before.ticks, after.ticks)?);
        if ticks == 0 {
            return Err(Unknown::Still);
        }
        // Two reads of four bytes with a carry between them.
        if ticks / ns >= MOST_TICKS_PER_NS {
            return Err(Unknown::Jumped);
        }
        let programs = after.programs.wrapping_sub(before.programs);
        Ok(TelemetryWindow { work, ticks, programs, ns })
    }

    /// Work by time, not limited.
    pub fn ratio(&self) -> f64 {
        self.work as f64 / self.ticks as f64
    }

    /// How much of the window was busy: at most all of it.
    pub fn busy_ticks(&self) -> u64 {
        self.work.min(self.ticks)
    }

    /// The same in ns.
    pub fn busy_ns(&self) -> u64 {
        let busy = u128::from(self.busy_ticks()) * u128::from(self.ns) / u128::from(self.ticks);
        u64::try_from(busy).unwrap_or(self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One line of a recording.
    struct Recorded {
        sample: TelemetrySample,
        /// What tt-metal's own reader takes: finished work, and running work if a worker has not reported.
        upstream: u64,
    }

    const WORMHOLE: &str = include_str!("../../tests/fixtures/dispatch-telemetry/wormhole.csv");
    const BLACKHOLE: &str = include_str!("../../tests/fixtures/dispatch-telemetry/blackhole.csv");

    fn recorded(text: &str) -> Vec<Recorded> {
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let rows = lines.map(|line| line.split(',').map(|number| number.parse().unwrap()).collect::<Vec<u64>>());
        rows.map(|row| {
            let &[at_ns, ticks, finished, start, done, workers] = &row[..] else { panic!("{row:?}") };
            // Through the decoder, as from a device.
            let mut block = [0; 64];
            block[24..32].copy_from_slice(&ticks.to_le_bytes());
            block[40..48].copy_from_slice(&finished.to_le_bytes());
            block[48..56].copy_from_slice(&start.to_le_bytes());
            let read = |at: u64, into: &mut [u8]| {
                into.copy_from_slice(&block[at as usize..][..into.len()]);
                Ok::<_, Unknown>(())
            };
            let sample = TelemetrySample::read(read, || at_ns).unwrap();
            let in_flight = start != 0 && workers != 0 && done < workers;
            let running = if in_flight { ticks.wrapping_sub(start) } else { 0 };
            Recorded { sample, upstream: finished.wrapping_add(running) }
        })
        .collect()
    }

    /// Windows, those in which time stood still, those that need a limit, and those that tt-metal's formula gets wrong.
    #[derive(Debug, Default, PartialEq)]
    struct Counts {
        windows: usize,
        still: usize,
        limited: usize,
        upstream: usize,
    }

    fn count<'a>(pairs: impl Iterator<Item = (&'a Recorded, &'a Recorded)>, ns: Option<u64>) -> Counts {
        let mut counts = Counts::default();
        for (before, after) in pairs {
            // Single steps are shorter than a window.
            let mut end = after.sample;
            end.at_ns = ns.map_or(end.at_ns, |ns| before.sample.at_ns + ns);
            let window = match TelemetryWindow::between(&before.sample, &end) {
                Err(Unknown::Still) => {
                    counts.still += 1;
                    continue;
                }
                window => window.unwrap(),
            };
            counts.windows += 1;
            counts.limited += usize::from(window.ratio() > 1.0);
            // 64-bit arithmetic that wraps, as upstream's.
            counts.upstream += usize::from(after.upstream.wrapping_sub(before.upstream) > window.ticks);
        }
        counts
    }

    #[test]
    fn recorded_samples_of_both_chips_are_between_0_and_100_percent_before_any_limit() {
        for (name, text, windows, pairs, steps) in [
            (
                "Wormhole",
                WORMHOLE,
                Counts { windows: 39, still: 3, limited: 0, upstream: 1 },
                Counts { windows: 845, still: 3, limited: 0, upstream: 1 },
                Counts { windows: 30, still: 13, limited: 0, upstream: 1 },
            ),
            (
                "Blackhole",
                BLACKHOLE,
                Counts { windows: 63, still: 17, limited: 0, upstream: 1 },
                // Three windows have a few hundred ticks, since a simulated clock moves only while the host reads. In a window of
                // a real chip the excess of 21 ticks is less than a millionth.
                Counts { windows: 3298, still: 26, limited: 3, upstream: 8 },
                Counts { windows: 54, still: 30, limited: 1, upstream: 4 },
            ),
        ] {
            let recorded = recorded(text);
            let is_before = |begin: &Recorded, end: &Recorded| end.sample.at_ns - begin.sample.at_ns >= SHORTEST_NS;
            let before = |i: usize| (&recorded[..i], &recorded[i]);
            // Each sample ends a window that begins at the latest one that is long enough before.
            let ends = (0..recorded.len())
                .map(before)
                .filter_map(|(earlier, end)| Some((earlier.iter().rev().find(|begin| is_before(begin, end))?, end)));
            let all = (0..recorded.len()).map(before).flat_map(|(earlier, end)| {
                earlier.iter().filter(|begin| is_before(begin, end)).map(move |begin| (begin, end))
            });
            let of_windows = count(ends, None);
            let of_pairs = count(all, None);
            let of_steps = count(recorded.iter().zip(&recorded[1..]), Some(SHORTEST_NS));
            println!("{name}: a window of 100 ms or more up to each sample: {of_windows:?}");
            println!("{name}: all pairs of samples that are 100 ms apart or more: {of_pairs:?}");
            println!("{name}: single steps: {of_steps:?}");
            assert_eq!((of_windows, of_pairs, of_steps), (windows, pairs, steps), "{name}");
        }
    }

    #[test]
    fn a_reader_that_keeps_up_gets_every_tick_of_the_recording() {
        for text in [WORMHOLE, BLACKHOLE] {
            let recorded = recorded(text);
            let (mut last, mut busy, mut ticks) = (recorded[0].sample, 0, 0);
            for recorded in &recorded {
                if let Ok(window) = TelemetryWindow::between(&last, &recorded.sample) {
                    assert!((0.0..=1.0).contains(&window.ratio()), "{window:?}");
                    busy += window.busy_ticks();
                    ticks += window.ticks;
                    last = recorded.sample;
                }
            }
            assert_eq!((busy, ticks), (last.work, last.ticks));
        }
    }

    fn sample(ticks: u64, work: u64, at_ns: u64) -> TelemetrySample {
        TelemetrySample { ticks, work, programs: 0, at_ns }
    }

    #[test]
    fn what_cannot_be_computed_is_unknown_and_has_a_reason() {
        let between = |after| TelemetryWindow::between(&sample(1_000, 500, 0), &after);
        assert_eq!(between(sample(1_000, 500, SHORTEST_NS)), Err(Unknown::Still), "not 0 %");
        assert_eq!(between(sample(2_000, 600, SHORTEST_NS - 1)), Err(Unknown::Short));
        assert_eq!(between(sample(900, 600, SHORTEST_NS)), Err(Unknown::Backwards));
        assert_eq!(between(sample(2_000, 400, SHORTEST_NS)), Err(Unknown::Backwards));
        assert_eq!(between(sample(1_000 + (1 << 32), 600, SHORTEST_NS)), Err(Unknown::Jumped));
        let window = between(sample(2_000, 750, SHORTEST_NS)).unwrap();
        assert_eq!((window.ratio(), window.busy_ticks(), window.busy_ns()), (0.25, 250, SHORTEST_NS / 4));
        let window = between(sample(2_000, 1_600, SHORTEST_NS)).unwrap();
        assert_eq!((window.ratio(), window.busy_ticks(), window.busy_ns()), (1.1, 1_000, SHORTEST_NS));
    }

    /// Reads from blocks that change with every read.
    fn read_from(blocks: &[(u64, u64, u64)]) -> (Result<TelemetrySample, Unknown>, usize) {
        let mut reads = 0;
        let read = |at: u64, into: &mut [u8]| {
            let (now, finished, start) = blocks[reads.min(blocks.len() - 1)];
            reads += 1;
            assert!(into.len() <= super::super::block::LONGEST_READ);
            for (at, byte) in (at..).zip(into) {
                let (value, from) = match at {
                    16..24 => (0, 16),
                    24..32 => (now, 24),
                    40..48 => (finished, 40),
                    48..56 => (start, 48),
                    _ => panic!("{at}"),
                };
                *byte = value.to_le_bytes()[(at - from) as usize];
            }
            Ok(())
        };
        (TelemetrySample::read(read, || 7), reads)
    }

    #[test]
    fn a_torn_sample_is_read_again_and_given_up_after_five_attempts() {
        let running = (1_000, 500, 900);
        assert_eq!(read_from(&[running]), (Ok(sample(1_000, 600, 7)), 3));
        // A program ends: its ticks are added, and its start is cleared a moment later.
        let torn = (1_050, 650, 900);
        let ended = (1_060, 650, 0);
        assert_eq!(read_from(&[running, running, torn, ended, ended]), (Ok(sample(1_060, 650, 7)), 7));
        let restless: Vec<_> = (1..40).map(|i| (1_000 + i, i, 900)).collect();
        assert_eq!(read_from(&restless), (Err(Unknown::Torn), 11));
        assert_eq!(read_from(&[(u64::MAX, u64::MAX, u64::MAX)]), (Err(Unknown::AllOnes), 1), "stop at the first");
        assert_eq!(read_from(&[(u64::MAX, 5, 0)]), (Err(Unknown::AllOnes), 2));
    }

    proptest! {
        #[test]
        fn no_window_is_busier_than_it_is_long(a: (u64, u64, u64), b: (u64, u64, u64)) {
            let window = TelemetryWindow::between(&sample(a.0, a.1, a.2), &sample(b.0, b.1, b.2));
            if let Ok(window) = window {
                prop_assert!(window.busy_ticks() <= window.ticks && window.busy_ns() <= window.ns);
                prop_assert!(window.ratio() >= 0.0 && window.ns >= SHORTEST_NS);
            }
        }

        #[test]
        fn any_block_is_read_without_a_panic(blocks in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..12)) {
            let (sample, reads) = read_from(&blocks);
            prop_assert!(reads <= 3 + 2 * RETRIES);
            if let Ok(sample) = sample {
                prop_assert!(blocks.iter().any(|block| block.0 == sample.ticks));
            }
        }
    }
}
