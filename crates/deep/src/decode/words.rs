//! The words of a table, and what they can be.

use crate::RawTable;
use model::{Arch, Celsius, Megahertz, Version, Volts, Watts};
use std::ops::RangeInclusive;

/// What a dead bus answers, and what firmware writes where it has no value.
pub const ALL_ONES: u32 = u32::MAX;
/// Firmware writes this in place of a temperature that it could not measure.
const ERROR: u32 = 0x8000_0000;

const BUNDLE: u16 = 28;

/// A table, and the release of the firmware that wrote it.
pub struct TableWords<'a> {
    table: &'a RawTable,
    release: Option<(u16, u16)>,
}

impl TableWords<'_> {
    pub fn of(table: &RawTable) -> TableWords<'_> {
        let bundle = table.get(BUNDLE).filter(|word| *word != ALL_ONES && *word != 0);
        let release = bundle.map(|word| Version(word.to_be_bytes().map(u16::from)).release());
        TableWords { table, release }
    }

    pub fn arch(&self) -> Arch {
        self.table.arch
    }

    /// Whether most of the values are more than what a dead bus answers.
    pub fn answers(&self) -> bool {
        let dead = self.table.entries.iter().filter(|entry| entry.value == ALL_ONES).count();
        dead * 2 <= self.table.entries.len()
    }

    /// The word of a tag, unless it is all-ones.
    pub fn get(&self, tag: u16) -> Option<u32> {
        self.even_all_ones(tag).filter(|word| *word != ALL_ONES)
    }

    /// The word of a tag that may have all bits set.
    pub fn even_all_ones(&self, tag: u16) -> Option<u32> {
        self.table.get(tag)
    }

    /// The word of a tag, where it is in this range.
    pub fn within(&self, tag: u16, range: RangeInclusive<u32>) -> Option<u32> {
        self.get(tag).filter(|word| range.contains(word))
    }

    /// A mask with a bit for each of so many, of which at least one is there.
    pub fn mask(&self, tag: u16, bits: u32) -> Option<u32> {
        self.get(tag).filter(|mask| *mask != 0 && mask >> bits == 0)
    }

    /// Whether the table is known to be of this release or a later one.
    pub fn since(&self, major: u16, minor: u16) -> bool {
        self.release.is_some_and(|release| release >= (major, minor))
    }

    /// Whether the table is known to be of an earlier release.
    pub fn before(&self, major: u16, minor: u16) -> bool {
        self.release.is_some_and(|release| release < (major, minor))
    }
}

/// A list of which at least one value is known; else none.
pub fn at_least_one<T>(values: Vec<Option<T>>) -> Vec<Option<T>> {
    if values.iter().any(Option::is_some) { values } else { Vec::new() }
}

/// Signed, with 16 bits behind the point.
pub fn fixed_celsius(word: u32) -> Option<Celsius> {
    (word != ERROR).then(|| Celsius(f64::from(word as i32) / 65_536.0)).filter(|temp| -40.0 < temp.0 && temp.0 < 150.0)
}

/// Whole degrees.
pub fn celsius(degrees: u32) -> Option<Celsius> {
    (degrees < 150).then(|| Celsius(degrees.into()))
}

/// A limit in whole degrees: zero is none.
pub fn limit_celsius(degrees: u32) -> Option<Celsius> {
    celsius(degrees).filter(|limit| limit.0 > 0.0)
}

pub fn volts(millivolts: u32) -> Option<Volts> {
    (1..2000).contains(&millivolts).then(|| Volts(f64::from(millivolts) / 1000.0))
}

pub fn watts(watts: u32) -> Option<Watts> {
    (watts < 1000).then(|| Watts(watts.into()))
}

/// What a board draws or may draw, which is never nothing.
pub fn drawn_watts(word: u32) -> Option<Watts> {
    watts(word).filter(|watts| watts.0 > 0.0)
}

pub fn clock(megahertz: u32) -> Option<Megahertz> {
    (megahertz < 5000).then_some(Megahertz(megahertz))
}

/// A clock that is never zero.
pub fn running_clock(megahertz: u32) -> Option<Megahertz> {
    clock(megahertz).filter(|clock| clock.0 > 0)
}
