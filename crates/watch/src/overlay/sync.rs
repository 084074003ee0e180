//! `sync_device_info.csv`, which tt-metal writes with `TT_METAL_PROFILER_SYNC=1`: moments on the clock of a chip and on that of the host.
//!
//! `device` are cycles of the chip. `host_tracy` are ticks of the host since `host_start`, and `tracy_ratio` are nanoseconds in a tick. The
//! profiler's own times begin at `tracy_base_time`. tt-metal has fitted a line: `delay` are the cycles at `host_start`, `frequency` the
//! cycles in a nanosecond.

use super::csv::Records;
use super::{Fixed, Moment};
use std::collections::BTreeMap;
use std::io::BufRead;

/// Chips, and moments of each, that are read at the most.
const MOST_CHIPS: usize = 256;
const MOST_MOMENTS: usize = 1 << 16;

struct Fit {
    host_start: f64,
    delay: f64,
    frequency: f64,
    ratio: f64,
    base: f64,
    /// Cycles, and nanoseconds since the host's start.
    pairs: Vec<(f64, f64)>,
}

/// Where a moment of each chip is, in nanoseconds since the profiler began, and how far off that may be.
pub fn decode(from: impl BufRead) -> Result<BTreeMap<u32, Fixed>, String> {
    let (mut records, mut fields) = (Records::new(from), Vec::new());
    records.next(&mut fields)?;
    let names =
        ["device id", "device", "host_real", "host_start", "delay", "frequency", "tracy_ratio", "tracy_base_time"];
    let mut columns = [0; 8];
    for (place, wanted) in columns.iter_mut().zip(names) {
        let found = fields.iter().position(|name| name == wanted);
        *place = found.ok_or_else(|| records.wrong(&format!("expected a column {wanted:?}")))?;
    }
    let mut fits: BTreeMap<u32, Fit> = BTreeMap::new();
    while records.next(&mut fields)? {
        let number = |at: usize| fields.get(columns[at])?.parse::<f64>().ok().filter(|number| number.is_finite());
        // A chip without PCIe has a row with its shift against another chip alone.
        let all = [1, 2, 3, 4, 5, 6, 7].map(number);
        let [Some(device), Some(host), Some(host_start), Some(delay), Some(frequency), Some(ratio), Some(base)] = all
        else {
            continue;
        };
        let chip = fields.get(columns[0]).and_then(|chip| chip.parse().ok());
        let chip = chip.ok_or_else(|| records.wrong("the device is no number"))?;
        if fits.len() == MOST_CHIPS && !fits.contains_key(&chip) {
            return Err(records.wrong("it has too many devices"));
        }
        let fit = fits.entry(chip).or_insert(Fit { host_start, delay, frequency, ratio, base, pairs: Vec::new() });
        // The last fit has seen the most moments.
        (fit.host_start, fit.delay, fit.frequency, fit.ratio, fit.base) = (host_start, delay, frequency, ratio, base);
        if fit.pairs.len() < MOST_MOMENTS {
            fit.pairs.push((device, host));
        }
    }
    Ok(fits.into_iter().filter_map(|(chip, fit)| Some((chip, fit.fixed()?))).collect())
}

impl Fit {
    fn fixed(&self) -> Option<Fixed> {
        let nanoseconds = (self.host_start - self.base) * self.ratio;
        let is_sound = (1e-3..1e3).contains(&self.frequency) && self.delay >= 0.0 && nanoseconds.abs() < 1e18;
        let off = |(device, host): &(f64, f64)| ((device - self.delay) / self.frequency - host).abs();
        let error = self.pairs.iter().map(off).fold(0.0, f64::max);
        is_sound.then(|| Fixed {
            moments: vec![Moment { ticks: self.delay as u64, nanoseconds: nanoseconds as i64 }],
            gigahertz: self.frequency,
            error_ns: error as u64,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One gigahertz, with host ticks of half a nanosecond; the fit is off by 3 ns at the most.
    pub const SYNC: &str = "\
device id,core_x, core_y,device,host_tracy,host_real,write_overhead,host_start,delay,frequency,tracy_ratio,tracy_base_time,device_frequency_ratio,device_shift
    0,    1,    1,  6000003,  2000000,  1000000.00,  100,  3000,  5000000.00,   1.000000000000000,   0.500000000000000,  1000,1.0,0
    0,    1,    1,  7000000,  4000000,  2000000.00,  100,  3000,  5000000.00,   1.000000000000000,   0.500000000000000,  1000,1.0,0
    1,,,,,,,,,,,,   1.000000100000000,    -17
";

    #[test]
    fn a_line_through_the_moments_fixes_the_clock_of_a_chip() {
        let fixed = decode(SYNC.as_bytes()).unwrap();
        let moments = vec![Moment { ticks: 5_000_000, nanoseconds: 1000 }];
        assert_eq!(fixed, BTreeMap::from([(0, Fixed { moments, gigahertz: 1.0, error_ns: 3 })]));
    }

    #[test]
    fn what_is_broken_is_named() {
        assert_eq!(decode(&b"a,b\n"[..]), Err("line 1: expected a column \"device id\"".into()));
        let unsound = SYNC.replace("1.000000000000000,", "0.0,");
        assert_eq!(decode(unsound.as_bytes()), Ok(BTreeMap::new()));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(bytes: Vec<u8>, a: f64, b: f64) {
            let _ = decode(&bytes[..]);
            let _ = decode(SYNC.replace("5000000.00", &a.to_string()).replace("3000", &b.to_string()).as_bytes());
        }
    }
}
