//! The firmware's telemetry table of a chip, and the words of the chip's memory that a reader of it finds.
//!
//! Values follow what the chip's files show. A device node below a root is a plain file: the simulated one has a line for each word
//! of memory, `0x10001000 = 0x00000100`, by the address that the chip's ARC core has for it.

use super::{Chip, Hwmon};
use crate::wave::scatter;
use model::{Arch, TelemetryTag, Version};
use std::fmt::Write;

/// Where the table is: the start of what firmware keeps in its memory.
const TABLE: u32 = 0x1000_1000;
/// Version 0.1.0 of the table's form.
const FORM: u32 = 0x100;

/// What a dead bus answers.
const ALL_ONES: u32 = u32::MAX;

/// The registers that say where the table and its values are.
fn pointers(arch: Arch) -> (u32, u32) {
    match arch {
        Arch::Blackhole => (0x8003_0434, 0x8003_0430),
        Arch::Wormhole => (0x8003_01D0, 0x8003_01D4),
    }
}

/// What a reader finds in the memory of a chip that has this table.
pub fn memory(chip: &Chip, table: &[TelemetryTag]) -> String {
    let (table_pointer, data_pointer) = pointers(chip.arch);
    let count = table.len() as u32;
    let data = TABLE + 8 + 4 * count;
    let mut words = match chip.is_hung {
        true => vec![(table_pointer, ALL_ONES), (data_pointer, ALL_ONES)],
        false => vec![(table_pointer, TABLE), (data_pointer, data), (TABLE, FORM), (TABLE + 4, count)],
    };
    if !chip.is_hung {
        let tag = |entry: &TelemetryTag| u32::from(entry.tag);
        words.extend(table.iter().zip(0..).map(|(entry, n)| (TABLE + 8 + 4 * n, tag(entry) << 16 | tag(entry))));
        words.extend(table.iter().map(|entry| (data + 4 * tag(entry), entry.value)));
    }
    words.into_iter().fold(String::new(), |mut text, (address, word)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{address:#010x} = {word:#010x}");
        text
    })
}

/// The table of a chip, from what its files show.
pub fn telemetry_table(chip: &Chip) -> Vec<TelemetryTag> {
    let mut words = match chip.arch {
        Arch::Blackhole => blackhole(chip),
        Arch::Wormhole => wormhole(chip),
    };
    words.extend(both(chip));
    words.sort_by_key(|(tag, _)| *tag);
    words.into_iter().map(|(tag, value)| TelemetryTag { tag, value }).collect()
}

/// Whether the chip draws all the power that it may.
pub(crate) fn is_at_power_limit(chip: &Chip) -> bool {
    let readings = Readings::of(chip);
    readings.is_busy && readings.watts >= readings.watts_max
}

/// Whether a busy chip has reached the temperature at which its firmware lowers the clock.
pub(crate) fn is_too_hot(chip: &Chip) -> bool {
    let limit = chip.hwmon.first().and_then(|hwmon| hwmon.temp_max);
    let readings = Readings::of(chip);
    readings.is_busy && limit.is_some_and(|limit| readings.celsius * 1000.0 >= f64::from(limit))
}

/// The sensors, in the units of the table.
struct Readings {
    watts: u32,
    watts_max: u32,
    celsius: f64,
    is_busy: bool,
}

impl Readings {
    fn of(chip: &Chip) -> Readings {
        let hwmon = chip.hwmon.first();
        let value = |read: fn(&Hwmon) -> Option<u32>| hwmon.and_then(read).unwrap_or(0);
        let idle = if chip.arch == Arch::Wormhole { 500 } else { 800 };
        Readings {
            watts: value(|hwmon| hwmon.power) / 1_000_000,
            watts_max: value(|hwmon| hwmon.power_max) / 1_000_000,
            celsius: f64::from(value(|hwmon| hwmon.temp)) / 1000.0,
            is_busy: chip.aiclk.is_some_and(|clock| clock > idle),
        }
    }
}

fn both(chip: &Chip) -> Vec<(u16, u32)> {
    let readings = Readings::of(chip);
    let hwmon = chip.hwmon.first();
    let [vcore, vcore_max, current, current_max, temp_max] = match hwmon {
        Some(hwmon) => [hwmon.vcore, hwmon.vcore_max, hwmon.current, hwmon.current_max, hwmon.temp_max],
        None => [None; 5],
    };
    let (serial, asic) = (chip.serial.unwrap_or(0), chip.asic_id.unwrap_or(0));
    let is_wormhole = chip.arch == Arch::Wormhole;
    let mut words = vec![
        (1, (serial >> 32) as u32),
        (2, serial as u32),
        (5, 100),
        (10, if is_wormhole { 83 } else { 110 }),
        (11, fixed(readings.celsius)),
        (32, chip.heartbeat.unwrap_or(0)),
        (40, 1),
        (52, chip.location.into()),
        (61, (asic >> 32) as u32),
        (62, asic as u32),
        (63, if is_wormhole { 1000 } else { 1350 }),
        (64, readings.watts_max),
    ];
    let known = [
        (6, vcore),
        (7, Some(readings.watts)),
        (8, current.map(|milliamperes| milliamperes / 1000)),
        (9, vcore_max.map(|millivolts| millivolts << 16 | 700)),
        (14, chip.aiclk),
        (15, chip.axiclk),
        (16, chip.arcclk),
        (26, version(&chip.m3app_fw)),
        (28, version(&chip.fw_bundle)),
        (55, current_max.map(|milliamperes| milliamperes / 1000)),
        (56, temp_max.map(|millidegrees| millidegrees / 1000)),
    ];
    words.extend(known.into_iter().filter_map(|(tag, value)| value.map(|value| (tag, value))));
    words
}

fn blackhole(chip: &Chip) -> Vec<(u16, u32)> {
    let readings = Readings::of(chip);
    let is_hot = is_too_hot(chip);
    let at_limit = is_hot || is_at_power_limit(chip);
    // The arbiter of the temperature has number 4, that of the chip's power 1, that of the highest clock 0.
    let limiter = if is_hot { 4 } else { u32::from(at_limit) };
    let floor = if readings.is_busy { 1350 } else { 800 };
    let decision = if readings.is_busy { 1 << 16 | limiter } else { 0 };
    let enabled_gddr = if chip.card_type.as_deref() == Some("p100a") { 0x7F } else { 0xFF };
    let statuses =
        (0..8).filter(|channel| enabled_gddr >> channel & 1 != 0).fold(0, |all, channel| all | 1 << (2 * channel));
    let enabled_ports = 0x3FFF & !(1 << 5 | 1 << 8);
    let links_up: u32 = match chip.card_type.as_deref() {
        _ if chip.links_down => 0,
        Some("galaxy-blackhole") => enabled_ports,
        Some("p300a" | "p300b" | "p300c") => 0b1100,
        _ => 0,
    };
    let memory_watts = 12 + readings.watts / 6;
    let board_limit = match chip.card_type.as_deref() {
        Some("p300c") => 550,
        Some("p300a" | "p300b" | "p150c") => 450,
        _ => 300,
    };
    let fan = chip.hwmon.first().and_then(|hwmon| hwmon.fan).unwrap_or(ALL_ONES);
    let mut words = vec![
        (17, 1750),
        (18, 1750),
        (19, 1750),
        (20, 1750),
        (21, links_up << 16 | enabled_ports),
        (22, statuses << 16 | statuses),
        (23, 16_000),
        (24, 0x0001_0700),
        (25, 0x0002_000F),
        (29, 0x001C_0000),
        (31, if fan == ALL_ONES { ALL_ONES } else { (fan / 50).min(100) }),
        (34, 0x3FFF & !(1 << 3 | 1 << 11)),
        (35, enabled_ports),
        (36, enabled_gddr),
        (37, 0xF),
        (38, 1 << 2),
        (41, fan),
        (50, 0),
        (53, board_limit),
        (54, readings.watts + memory_watts + readings.watts / 10 + 8),
        (60, chip.therm_trip_count.unwrap_or(0)),
        (65, u32::from(readings.is_busy) << 16 | floor),
        (66, limiter << 16 | if at_limit { chip.aiclk.unwrap_or(0) } else { 1350 }),
        (67, if readings.is_busy { 0b11 } else { 0b01 }),
        (68, 0x3FF),
        (69, decision),
        (70, 0),
        (71, 0),
        (72, 0x1111_1111),
        (73, memory_watts / 2),
        (74, memory_watts - memory_watts / 2),
        (75, 0),
        (76, 0),
        (77, 0),
        (78, 0b11),
        (79, 0b10),
        (80, 0x00EF_4018),
    ];
    let side = |channel: u16, side: u16| {
        if enabled_gddr >> channel & 1 == 0 {
            return 0;
        }
        let spread = scatter(&[chip.index.into(), channel.into(), side.into()]) % 4;
        (readings.celsius * 0.8 + 10.0) as u32 + spread as u32 + u32::from(side)
    };
    let mut hottest = 0;
    for pair in 0..4 {
        let (even, odd) = (2 * pair, 2 * pair + 1);
        let bytes = [side(even, 0), side(even, 1), side(odd, 0), side(odd, 1)];
        hottest = bytes.into_iter().fold(hottest, u32::max);
        words.push((42 + pair, u32::from_le_bytes(bytes.map(|byte| byte.min(255) as u8))));
        words.push((46 + pair, 0));
    }
    words.push((51, hottest));
    words
}

fn wormhole(chip: &Chip) -> Vec<(u16, u32)> {
    let readings = Readings::of(chip);
    let (rows, links_up) = match chip.card_type.as_deref() {
        Some("galaxy-wormhole") => (0x3FF, 0xFFFF),
        // The two links to the other chip of the board.
        Some("n300") => (0x0FF, 0x0300),
        _ => (0x1FF, 0),
    };
    let known = [
        (
            24,
            chip.eth_fw.as_deref().and_then(Version::parse).map(|Version([a, b, c, _])| {
                let [a, b, c] = [a, b, c].map(u32::from);
                a << 16 | b << 12 | c
            }),
        ),
        (27, version(&chip.m3bl_fw)),
        (29, version(&chip.arc_fw)),
        (58, version(&chip.ttflash)),
    ];
    let mut words = vec![
        (12, fixed(readings.celsius - 4.5)),
        (13, fixed(readings.celsius - 11.0)),
        (21, if chip.links_down { 0 } else { links_up } << 16 | 0xFFFF),
        (22, 0x555),
        (23, 12_000),
        (31, ALL_ONES),
        (57, 0x6712_0C00),
        (59, rows),
    ];
    words.extend(known.into_iter().filter_map(|(tag, value)| value.map(|value| (tag, value))));
    words
}

/// Signed, with 16 bits behind the point.
fn fixed(celsius: f64) -> u32 {
    (celsius * 65_536.0) as i32 as u32
}

/// `19.6.0.0`, a byte each.
fn version(text: &Option<String>) -> Option<u32> {
    let Version(parts) = Version::parse(text.as_deref()?)?;
    Some(parts.iter().fold(0, |word, part| word << 8 | u32::from(*part & 0xFF)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_words_of_a_table_are_where_a_reader_looks_for_them() {
        let table = [TelemetryTag { tag: 6, value: 720 }, TelemetryTag { tag: 28, value: 0x1306_0000 }];
        expect![[r#"
            0x80030434 = 0x10001000
            0x80030430 = 0x10001010
            0x10001000 = 0x00000100
            0x10001004 = 0x00000002
            0x10001008 = 0x00060006
            0x1000100c = 0x001c001c
            0x10001028 = 0x000002d0
            0x10001080 = 0x13060000
        "#]]
        .assert_eq(&memory(&Chip::p150a(0), &table));
        assert!(memory(&Chip::n150(0), &table).starts_with("0x800301d0 = 0x10001000\n0x800301d4 = 0x10001010\n"));
        assert_eq!(memory(&Chip::n150(0).hung(), &table), "0x800301d0 = 0xffffffff\n0x800301d4 = 0xffffffff\n");
    }

    #[test]
    fn a_table_has_each_tag_once_and_what_the_files_show() {
        for chip in
            [Chip::p150a(0), Chip::p100a(1), Chip::p300c(1), Chip::galaxy_blackhole(9), Chip::n300(0), Chip::n150(2)]
        {
            let table = telemetry_table(&chip);
            assert!(table.windows(2).all(|pair| pair[0].tag < pair[1].tag), "{table:?}");
            let word = |tag| table.iter().find(|entry| entry.tag == tag).map(|entry| entry.value);
            assert_eq!(word(14), chip.aiclk);
            assert_eq!(word(32), chip.heartbeat);
            assert_eq!(word(28), Some(0x1306_0000));
            assert_eq!(word(54).is_some(), chip.arch == Arch::Blackhole);
        }
    }
}
