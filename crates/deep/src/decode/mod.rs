//! What a table means, by chip generation and firmware version.
//!
//! A value that cannot be is no value: all-ones, the firmware's code for an error, or anything beyond what a chip can reach. Tags
//! that mean one thing before a firmware version and another from it on are read only where the table says its version.
//!
//! - this file: the figures of both generations and of Blackhole's clock,
//! - `words`: the table's words, and what they can be,
//! - `gddr`: the memory channels,
//! - `units`: Ethernet ports, and what of the chip is enabled.

mod gddr;
mod units;
mod words;

#[cfg(test)]
mod tests;

use crate::RawTable;
use model::{Arch, ClockDecision, ClockLimiter, ClockRaiser, Deep, Rpm};
use std::sync::Arc;
use words::TableWords;

/// The figures of a table.
pub fn decode(table: &RawTable) -> Deep {
    let words = TableWords::of(table);
    let mut deep = Deep { tags: table.entries.clone(), ..Deep::default() };
    if !words.answers() {
        return deep;
    }
    both(&words, &mut deep);
    gddr::decode(&words, &mut deep);
    units::decode(&words, &mut deep);
    match table.arch {
        Arch::Blackhole => blackhole(&words, &mut deep),
        Arch::Wormhole => wormhole(&words, &mut deep),
    }
    deep
}

fn both(words: &TableWords, deep: &mut Deep) {
    deep.telemetry_interval_seconds = words.within(5, 1..=60_000).map(milliseconds);
    deep.vcore_min = words.get(9).and_then(|word| words::volts(word & 0xFFFF));
    deep.asic_temp_shutdown = words.get(10).and_then(words::limit_celsius);
    deep.asic_location = words.within(52, 0..=32);
    deep.aiclk_max = words.get(63).and_then(words::running_clock);
    deep.firmware_cm = words.get(29).and_then(four_bytes);
    deep.firmware_flash_tool = words.get(58).and_then(four_bytes);
}

fn blackhole(words: &TableWords, deep: &mut Deep) {
    deep.fan_target_percent = words.within(31, 0..=100).map(f64::from);
    deep.input_power = words.get(54).and_then(words::drawn_watts);
    deep.board_power_limit = words.get(53).and_then(words::drawn_watts);
    deep.firmware_gddr =
        words.get(25).filter(|word| *word != 0).map(|word| format!("{}.{}", word >> 16, word & 0xFFFF).into());
    deep.firmware_ethernet_ports =
        words.get(24).filter(|word| *word != 0 && word >> 24 == 0).map(|word| three_bytes(word).into());
    let enabled = words.mask(37, 4);
    let l2cpu_clock = |place: u16| {
        let is_there = enabled.is_none_or(|mask| mask & (1 << place) != 0);
        words.get(17 + place).filter(|_| is_there).and_then(words::clock)
    };
    deep.l2cpu_clk = words::at_least_one((0..4).map(l2cpu_clock).collect());
    clock(words, deep);
    deep.smbus_errors = words.get(71);
    deep.gddr_west_power = words.get(73).and_then(words::watts);
    deep.gddr_east_power = words.get(74).and_then(words::watts);
    if words.since(19, 13) {
        deep.firmware_features = words.get(78).map(|mask| named_bits(mask, &FEATURES));
        deep.firmware_features_on = words.get(79).map(|mask| named_bits(mask, &FEATURES));
    }
}

/// Who decides on the clock. The numbers of the limits are known from firmware 19.6 on.
fn clock(words: &TableWords, deep: &mut Deep) {
    if words.since(19, 5) {
        deep.aiclk_floor = words.get(65).and_then(|word| words::running_clock(word & 0xFFFF));
        deep.aiclk_ceiling = words.get(66).and_then(|word| words::running_clock(word & 0xFFFF));
        let [floors, ceilings] = [67, 68].map(|tag| words.get(tag).filter(|mask| mask >> 16 == 0));
        deep.aiclk_floors_enabled = floors.map(|mask| named_bits(mask, &ClockRaiser::NAMES));
        deep.aiclk_limits_enabled = ceilings.map(|mask| named_bits(mask, &ClockLimiter::NAMES));
    }
    if words.since(19, 6) {
        // Here the number comes first and the reason second, unlike in the words of floor and ceiling.
        let decision = words.get(69).map(|word| (word & 0xFFFF, word >> 16));
        deep.aiclk_decided_by = decision.and_then(|(_, reason)| numbered(&ClockDecision::ALL, reason));
        let by_ceiling = decision.filter(|(_, reason)| *reason == ClockDecision::Ceiling as u32).map(|(by, _)| by);
        let by_floor = decision.filter(|(_, reason)| *reason == ClockDecision::Floor as u32).map(|(by, _)| by);
        let ceiling = words.get(66).map(|word| word >> 16).or(by_ceiling);
        let floor = words.get(65).map(|word| word >> 16).or(by_floor);
        deep.aiclk_ceiling_by = ceiling.and_then(|number| numbered(&ClockLimiter::ALL, number));
        deep.aiclk_floor_by = floor.and_then(|number| numbered(&ClockRaiser::ALL, number));
    }
    deep.aiclk_host_limit = words.get(70).and_then(words::running_clock);
    if words.since(19, 12) {
        let throttler = words.get(75);
        deep.kernel_throttler = throttler.map(|word| word & 1 != 0);
        deep.kernel_throttler_clock = throttler.and_then(|word| words::running_clock(word >> 16));
        deep.kernel_throttler_starts = words.get(76);
        deep.kernel_throttler_seconds = words.within(77, 0..=60_000).map(milliseconds);
    }
}

fn wormhole(words: &TableWords, deep: &mut Deep) {
    deep.vreg_temp = words.get(12).filter(|word| *word != 0).and_then(words::fixed_celsius);
    deep.board_temp = words.get(13).filter(|word| *word != 0).and_then(words::fixed_celsius);
    deep.firmware_ethernet_ports = words.get(24).filter(|word| *word != 0 && word >> 24 == 0).map(|word| {
        let (major, minor, patch) = (word >> 16, (word >> 12) & 0xF, word & 0xFFF);
        format!("{major}.{minor}.{patch}").into()
    });
    deep.firmware_build_date = words.get(57).and_then(build_date);
    if words.since(19, 10) {
        deep.fan_target_percent = words.within(31, 0..=100).map(f64::from);
        let [first, second] = words.get(41).map_or([None, None], two_fans);
        deep.fans_rpm = vec![first, second, words.get(79).and_then(fan), words.get(81).and_then(fan)];
    } else if words.before(19, 9) {
        // Until then the target's place has the speeds of two fans.
        deep.fans_rpm = words.get(31).map_or([None, None], two_fans).to_vec();
    }
    deep.fans_rpm = words::at_least_one(std::mem::take(&mut deep.fans_rpm));
}

fn two_fans(word: u32) -> [Option<Rpm>; 2] {
    [fan(word & 0xFFFF), fan(word >> 16)]
}

fn fan(rpm: u32) -> Option<Rpm> {
    (rpm < 30_000).then_some(Rpm(rpm))
}

fn milliseconds(word: u32) -> f64 {
    f64::from(word) / 1000.0
}

/// `a.b.c.d`, a byte each.
fn four_bytes(word: u32) -> Option<Arc<str>> {
    let [a, b, c, d] = word.to_be_bytes();
    (word != 0).then(|| format!("{a}.{b}.{c}.{d}").into())
}

fn three_bytes(word: u32) -> String {
    let [_, a, b, c] = word.to_be_bytes();
    format!("{a}.{b}.{c}")
}

/// A digit each for year, counted from 2020, and month, then two each for day, hour and minute.
fn build_date(word: u32) -> Option<Arc<str>> {
    let [year_and_month, day, hour, minute] = word.to_be_bytes();
    let (year, month) = (2020 + u16::from(year_and_month >> 4), year_and_month & 0xF);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    is_date.then(|| format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}").into())
}

const FEATURES: [&str; 2] = ["kernel throttler", "GDDR thermal trip"];

/// What the bits of a mask stand for, shorter where nearly all are set. A bit without a name is `bit 12`.
fn named_bits(mask: u32, names: &[&str]) -> Arc<str> {
    let known = (1 << names.len()) - 1;
    let missing: Vec<&str> = (0..names.len()).filter(|bit| mask & (1 << bit) == 0).map(|bit| names[bit]).collect();
    if mask == known {
        return "all".into();
    }
    if mask & !known == 0 && missing.len() <= names.len() / 4 {
        return format!("all but {}", missing.join(", ")).into();
    }
    let name = |bit: usize| names.get(bit).map_or_else(|| format!("bit {bit}"), |name| (*name).to_owned());
    let set: Vec<String> = (0..32).filter(|bit| mask & (1 << bit) != 0).map(name).collect();
    if set.is_empty() { "none".into() } else { set.join(", ").into() }
}

/// What a number of the firmware stands for.
fn numbered<T: Copy>(all: &[T], number: u32) -> Option<T> {
    all.get(number as usize).copied()
}
