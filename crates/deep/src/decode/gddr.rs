//! The memory channels: training, temperature, errors.
//!
//! A word has the values of two channels, or two bits of each. Wormhole's firmware says only whether a channel is trained.

use super::words::{self, TableWords};
use model::figure::Dimension;
use model::{Arch, Deep, SelfTest};

pub fn decode(words: &TableWords, deep: &mut Deep) {
    let arch = words.arch();
    let channels = 0..Dimension::GddrChannel.of_chip(arch);
    deep.gddr_megabits_per_second = words.within(23, 1000..=40_000);
    let status = words.get(22);
    // Where the firmware does not say which channels are enabled, one that did not train at all is taken for one that is not.
    let enabled = words.mask(36, 8).filter(|_| arch == Arch::Blackhole);
    let is_enabled = |channel: usize| match (arch, enabled, status) {
        (Arch::Wormhole, ..) => true,
        (_, Some(mask), _) => bit(mask, channel),
        (_, None, Some(status)) => status >> (2 * channel) & 0b11 != 0,
        (_, None, None) => false,
    };
    let of_enabled = |channel: usize, word: Option<u32>| word.filter(|_| is_enabled(channel));
    let trained = |status: u32, channel: usize| bit(status, 2 * channel) && !bit(status, 2 * channel + 1);
    let of_status = |is: &dyn Fn(u32, usize) -> bool| {
        let of_channel = |channel| of_enabled(channel, status).map(|status| is(status, channel));
        words::at_least_one(channels.clone().map(of_channel).collect())
    };
    deep.gddr_trained = of_status(&trained);
    deep.gddr_training_failed = of_status(&|status, channel| bit(status, 2 * channel + 1));
    if arch == Arch::Wormhole {
        return;
    }
    if words.since(19, 7) {
        let of_channel = |channel| of_enabled(channel, status).map(|status| self_test(status >> 16, channel));
        deep.gddr_self_test = words::at_least_one(channels.clone().map(of_channel).collect());
    }
    // Of the four bytes of a word, the lower two are those of the even channel.
    let byte = |first: u16, channel: usize, place: usize| {
        let word = of_enabled(channel, words.even_all_ones(first + channel as u16 / 2))?;
        Some(u32::from(word.to_le_bytes()[channel % 2 * 2 + place]))
    };
    // A channel that is not trained has no temperature, and its byte stays zero.
    let temperature = |channel, place| {
        let degrees = byte(42, channel, place)?;
        let measures = degrees > 0 || status.is_some_and(|status| trained(status, channel));
        words::celsius(degrees).filter(|_| measures)
    };
    let temperatures =
        |place| words::at_least_one(channels.clone().map(|channel| temperature(channel, place)).collect());
    (deep.gddr_bottom_temp, deep.gddr_top_temp) = (temperatures(0), temperatures(1));
    // Counters stop at 255, so that all of them may have all bits set.
    let counts = |place| words::at_least_one(channels.clone().map(|channel| byte(46, channel, place)).collect());
    (deep.gddr_corrected_reads, deep.gddr_corrected_writes) = (counts(0), counts(1));
    let uncorrected = words.get(50).filter(|word| word >> 16 == 0);
    let errors = |place| {
        let of_channel = |channel| of_enabled(channel, uncorrected).map(|word| bit(word, 2 * channel + place));
        words::at_least_one(channels.clone().map(of_channel).collect())
    };
    (deep.gddr_uncorrected_read, deep.gddr_uncorrected_write) = (errors(0), errors(1));
    let channels = deep.gddr_top_temp.iter().chain(&deep.gddr_bottom_temp).flatten().copied();
    let hottest = channels.max_by(|a, b| a.0.total_cmp(&b.0));
    deep.gddr_temp = words.get(51).and_then(words::limit_celsius).or(hottest);
}

fn bit(word: u32, bit: usize) -> bool {
    word >> bit & 1 != 0
}

/// One bit for a test that is complete, one for a test that failed.
fn self_test(status: u32, channel: usize) -> SelfTest {
    match (bit(status, 2 * channel), bit(status, 2 * channel + 1)) {
        (_, true) => SelfTest::Failed,
        (true, false) => SelfTest::Passed,
        (false, false) => SelfTest::NotRun,
    }
}
