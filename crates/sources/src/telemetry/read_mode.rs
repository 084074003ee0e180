//! How often a device's attributes are read: the freshness of a figure, and what the caller of the sampler needs.

use super::attributes::{ATTRIBUTES, Attribute};
use model::Device;
use model::figure::{Figure, Freshness};
use std::time::Duration;

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ReadMode {
    /// Whether to read the PCIe counters.
    pub rates: bool,
    /// Whether some figures may be a few seconds old.
    pub relaxed: bool,
    /// Whether rates are not looked at, so that they may be over a longer time still.
    pub unwatched_rates: bool,
    /// How many devices there are.
    pub devices: usize,
    /// The rows of the table of attributes that nobody wants, a bit each.
    pub unwanted: u64,
}

/// Whether a figure is wanted of a machine with so many devices.
pub type FigureFilter = Box<dyn Fn(&Figure<Device>, usize) -> bool + Send>;

/// What changes seldom is read again after this time: the chip's other clocks, its link, its thermal trips. In relaxed sampling of
/// many devices it takes twice as long.
const SELDOM: Duration = Duration::from_secs(5);
const SELDOM_OF_MANY: Duration = Duration::from_secs(10);

/// The clock and the heartbeat of many devices are read again after this time in relaxed sampling. A stopped heartbeat shows after three
/// seconds.
const OFTEN: Duration = Duration::from_millis(1900);

/// In relaxed sampling a rate is over at least this time: with few devices, with many, and with many that nobody looks at. A little
/// less than two, four and ten seconds, so that no sample is too early.
const RATE: Duration = Duration::from_millis(1900);
const RATE_OF_MANY: Duration = Duration::from_millis(3900);
const UNWATCHED_RATE_OF_MANY: Duration = Duration::from_millis(9900);

/// More devices than this are many.
pub(crate) const FEW: usize = 8;

impl ReadMode {
    /// Only wanted figures are read.
    pub fn only(mut self, wanted: &FigureFilter) -> ReadMode {
        let unwanted = ATTRIBUTES.iter().enumerate().filter(|(_, row)| !wanted(row.figure, self.devices));
        self.unwanted = unwanted.fold(0, |bits, (at, _)| bits | 1 << at);
        self
    }

    /// The attributes that are read, in their order.
    pub fn attributes(self) -> impl Iterator<Item = &'static Attribute> {
        let wanted = move |(at, _): &(usize, _)| self.unwanted >> at & 1 == 0;
        ATTRIBUTES.iter().enumerate().filter(wanted).map(|(_, row)| row)
    }

    /// The attribute of a figure that is not wanted.
    pub fn unwanted(self, figure: &Figure<Device>) -> Option<&'static Attribute> {
        let mut unwanted = ATTRIBUTES.iter().enumerate().filter(|(at, _)| self.unwanted >> at & 1 == 1);
        unwanted.find(|(_, row)| std::ptr::eq(row.figure, figure)).map(|(_, row)| row)
    }

    /// After how long what changes seldom is read again.
    pub fn seldom_period(self) -> Duration {
        if self.relaxed && self.devices > FEW { SELDOM_OF_MANY } else { SELDOM }
    }

    /// After how long what is read often is read again.
    pub fn often_period(self) -> Duration {
        if self.relaxed && self.devices > FEW { OFTEN } else { Duration::ZERO }
    }

    /// Over how long a rate is taken at least.
    pub fn rate_period(self) -> Duration {
        match self {
            ReadMode { relaxed: false, .. } => Duration::ZERO,
            ReadMode { devices: ..=FEW, .. } => RATE,
            ReadMode { unwatched_rates: true, .. } => UNWATCHED_RATE_OF_MANY,
            _ => RATE_OF_MANY,
        }
    }

    /// Whether figures of this freshness are read with every sample.
    pub fn reads_always(self, freshness: Freshness) -> bool {
        match freshness {
            Freshness::Fixed | Freshness::Seldom => false,
            Freshness::Relaxed => !self.relaxed,
            Freshness::Rate | Freshness::Often | Freshness::Sample | Freshness::Host => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relaxed_sampling_reads_less_often_and_with_many_devices_less_still() {
        let mode = |relaxed, devices| ReadMode { rates: true, relaxed, devices, ..ReadMode::default() };
        let unwatched = |mode| ReadMode { unwatched_rates: true, ..mode };
        let seconds = |mode: ReadMode| (mode.rate_period().as_secs_f64().ceil(), mode.seldom_period().as_secs());
        assert_eq!(seconds(mode(false, 32)), (0.0, 5));
        assert_eq!(seconds(mode(true, 8)), (2.0, 5));
        assert_eq!(seconds(mode(true, 9)), (4.0, 10));
        assert_eq!(seconds(unwatched(mode(true, 9))), (10.0, 10));
        assert_eq!(seconds(unwatched(mode(true, 8))), (2.0, 5));
        assert_eq!(seconds(unwatched(mode(false, 32))), (0.0, 5));
    }
}
