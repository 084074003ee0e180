use super::decode;
use crate::RawTable;
use model::figure::deep::DEEP_FIGURES;
use model::figure::{Figure, Unit, Value};
use model::{Arch, Deep, Device, DeviceId, TelemetryTag};
use proptest::prelude::*;

/// A table with these tags, of a firmware with this version, such as `19.6`.
fn table(arch: Arch, version: &str, tags: &[(u16, u32)]) -> RawTable {
    let parts: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    let bundle = (parts.len() == 2).then(|| (28, parts[0] << 24 | parts[1] << 16));
    let entries = bundle.iter().chain(tags).map(|(tag, value)| TelemetryTag { tag: *tag, value: *value }).collect();
    RawTable { arch, version: 0x100, entries }
}

fn device(deep: Deep) -> Device {
    Device { deep: Some(Box::new(deep)), ..Device::new(DeviceId::Local(0)) }
}

/// `aiclk_max_megahertz 1350 MHz`, and with labels `gddr_trained yes yes – yes`.
fn said(figure: &'static Figure<Device>, device: &Device) -> Option<String> {
    let texts: Vec<Option<String>> =
        figure.fields().map(|field| field.value(device).map(|value| figure.unit.text(&value))).collect();
    let last = texts.iter().rposition(Option::is_some)?;
    let texts: Vec<String> = texts.into_iter().take(last + 1).map(|text| text.unwrap_or("–".into())).collect();
    Some(format!("{} {}", figure.name, texts.join(" ")))
}

fn check(arch: Arch, version: &str, tags: &[(u16, u32)], expected: &str) {
    let device = device(decode(&table(arch, version, tags)));
    let all: Vec<String> =
        DEEP_FIGURES.iter().filter(|figure| figure.in_json).filter_map(|figure| said(figure, &device)).collect();
    assert_eq!(all.join("; "), expected, "{arch:?} {version} {tags:x?}");
}

const NOTHING: &str = "";

#[test]
fn each_tag_of_a_blackhole_means_something() {
    let check = |version: &str, tags: &[(u16, u32)], expected: &str| check(Arch::Blackhole, version, tags, expected);
    // What the driver's files have as well is not said twice.
    for tag in [1, 2, 3, 4, 6, 7, 8, 11, 14, 15, 16, 26, 27, 30, 32, 33, 39, 41, 55, 56, 60, 61, 62, 64] {
        check("19.15", &[(tag, 60)], NOTHING);
    }
    check("19.15", &[(5, 100)], "telemetry_interval_seconds 0.100 s");
    check("19.15", &[(9, 0x0384_02BC)], "vcore_min_volts 0.700 V");
    check("19.15", &[(10, 110)], "asic_temp_shutdown_celsius 110.0 °C");
    check("19.15", &[(12, 0x0028_0000), (13, 0x0028_0000)], NOTHING);
    check("19.15", &[(17, 1750), (18, 0), (19, 1750)], "l2cpu_clk_megahertz 1750 MHz 0 MHz 1750 MHz");
    check(
        "19.15",
        &[(17, 1750), (18, 1000), (37, 0b0001)],
        "l2cpu_clk_megahertz 1750 MHz; l2cpu_enabled 1 of 4 (off: 1-3)",
    );
    check("19.8", &[(21, 0)], NOTHING);
    let ports = "eth_heartbeat yes yes yes no no no no no no no no no no no; \
                 eth_link_up yes no no no no no no no no no no no no yes";
    check("19.9", &[(21, 0x2001_0007)], ports);
    check("", &[(21, 0x2001_0007)], NOTHING);
    check("19.9", &[(21, 0x4000_0000)], NOTHING);
    check(
        "19.9",
        &[(21, 0x0001_0005), (35, 0b101)],
        "eth_enabled yes no yes no no no no no no no no no no no; eth_heartbeat yes – yes; eth_link_up yes – no",
    );
    check("19.15", &[(23, 16_000)], "gddr_megabits_per_second 16000");
    check("19.15", &[(24, 0x0001_0700)], "firmware_ethernet_ports 1.7.0");
    check("19.15", &[(25, 0x0002_000F)], "firmware_gddr 2.15");
    check("19.15", &[(29, 0x0017_0000)], "firmware_cm 0.23.0.0");
    check("19.15", &[(31, 40)], "fan_target_percent 40.0 %");
    check("19.15", &[(34, 0x3FF7)], "tensix_enabled 13 of 14 columns (off: 3)");
    check("19.15", &[(34, 0x3FFF)], "tensix_enabled 14 of 14 columns");
    check("19.15", &[(36, 0x7F)], "gddr_enabled 7 of 8 (off: 7)");
    check("19.15", &[(37, 0xF)], "l2cpu_enabled 4 of 4");
    check("19.15", &[(38, 0b0100)], "pcie_usage 0: off, 1: endpoint");
    check("19.15", &[(38, 0b0010)], "pcie_usage 0: root, 1: off");
    check("19.15", &[(40, 1)], "noc_translation yes");
    check("19.15", &[(52, 1)], "asic_location 1");
    check("19.15", &[(53, 300)], "board_power_limit_watts 300.0 W");
    check("19.15", &[(54, 75)], "input_power_watts 75.0 W");
    check("19.15", &[(57, 0x6B0B_0C1E), (59, 0x3FF)], NOTHING);
    check("19.15", &[(58, 0x0304_0000)], "firmware_flash_tool 3.4.0.0");
    check("19.15", &[(63, 1350)], "aiclk_max_megahertz 1350 MHz");
    check("19.15", &[(70, 900)], "aiclk_host_limit_megahertz 900 MHz");
    check("19.15", &[(70, 0)], NOTHING);
    check("19.15", &[(71, 3)], "smbus_errors 3");
    check("19.15", &[(72, 0xF123_4567), (80, 0x00EF_4018), (200, 1)], NOTHING);
    check("19.15", &[(73, 7), (74, 8)], "gddr_west_power_watts 7.0 W; gddr_east_power_watts 8.0 W");
}

#[test]
fn memory_channels_of_a_blackhole() {
    let check = |version: &str, tags: &[(u16, u32)], expected: &str| check(Arch::Blackhole, version, tags, expected);
    check(
        "19.6",
        &[(22, 0x1555), (36, 0x7F)],
        "gddr_trained yes yes yes yes yes yes yes; gddr_training_failed no no no no no no no; gddr_enabled 7 of 8 (off: 7)",
    );
    check(
        "19.7",
        &[(22, 0x0009_0009)],
        "gddr_trained yes no; gddr_training_failed no yes; gddr_self_test passed failed",
    );
    check("19.7", &[(22, 0x0000_0001)], "gddr_trained yes; gddr_training_failed no; gddr_self_test not run");
    check(
        "19.6",
        &[(22, 0x4005), (36, 0xFF), (42, 0x0031_3233), (45, 0x3C3D_0000)],
        "gddr_temp_celsius 61.0 °C; gddr_top_temp_celsius 50.0 °C 0.0 °C – – – – – 60.0 °C; \
         gddr_bottom_temp_celsius 51.0 °C 49.0 °C – – – – – 61.0 °C; \
         gddr_trained yes yes no no no no no yes; gddr_training_failed no no no no no no no no; gddr_enabled 8 of 8",
    );
    check(
        "19.6",
        &[(36, 0b11), (46, 0xFFFF_FFFF), (50, 0b1001)],
        "gddr_corrected_reads 255 255; gddr_corrected_writes 255 255; gddr_uncorrected_read yes no; \
         gddr_uncorrected_write no yes; gddr_enabled 2 of 8 (off: 2-7)",
    );
    check("19.6", &[(51, 52)], "gddr_temp_celsius 52.0 °C");
}

#[test]
fn who_decides_on_the_clock_of_a_blackhole() {
    let check = |version: &str, tags: &[(u16, u32)], expected: &str| check(Arch::Blackhole, version, tags, expected);
    let tags = [(65, 0x0001_0320), (66, 0x0007_0384)];
    check("19.4", &tags, NOTHING);
    check("19.5", &tags, "aiclk_ceiling_megahertz 900 MHz; aiclk_floor_megahertz 800 MHz");
    check("80.18", &tags, NOTHING);
    check(
        "19.6",
        &tags,
        "aiclk_ceiling_megahertz 900 MHz; aiclk_ceiling_by GDDR temperature; aiclk_floor_megahertz 800 MHz; \
         aiclk_floor_by a busy workload",
    );
    check("19.6", &[(66, 0x000A_0384)], "aiclk_ceiling_megahertz 900 MHz");
    for (number, word) in ["maximum clock", "chip power", "fast current limit", "current", "temperature", "board power"]
        .into_iter()
        .chain(["voltage", "GDDR temperature", "doppler (slow)", "doppler (critical)"])
        .enumerate()
    {
        check("19.6", &[(66, (number as u32) << 16)], &format!("aiclk_ceiling_by {word}"));
    }
    check("19.5", &[(69, 0x0001_0004)], NOTHING);
    check("19.6", &[(69, 0x0001_0004)], "aiclk_ceiling_by temperature; aiclk_decided_by ceiling");
    check("19.6", &[(69, 0x0000_0001)], "aiclk_floor_by a busy workload; aiclk_decided_by floor");
    for (reason, word) in [(2, "minimum"), (3, "sweep"), (4, "forced")] {
        check("19.6", &[(69, reason << 16)], &format!("aiclk_decided_by {word}"));
    }
    check("19.6", &[(69, 5 << 16)], NOTHING);
    check(
        "19.5",
        &[(67, 0b11), (68, 0b11)],
        "aiclk_limits_enabled maximum clock, chip power; aiclk_floors_enabled all",
    );
    check("19.5", &[(68, 0x33F)], "aiclk_limits_enabled all but voltage, GDDR temperature");
    check("19.5", &[(67, 0), (68, 0x1001)], "aiclk_limits_enabled maximum clock, bit 12; aiclk_floors_enabled none");
    let throttler = [(75, 0x0384_0001), (76, 12), (77, 1500)];
    check("19.11", &throttler, NOTHING);
    check(
        "19.12",
        &throttler,
        "kernel_throttler yes; kernel_throttler_megahertz 900 MHz; kernel_throttler_starts 12; \
         kernel_throttler_seconds 1.500 s",
    );
    check("19.12", &[(75, 0)], "kernel_throttler no");
    check("19.12", &[(78, 0b11), (79, 0b01)], NOTHING);
    check("19.13", &[(78, 0b11), (79, 0b01)], "firmware_features all; firmware_features_on kernel throttler");
}

#[test]
fn each_tag_of_a_wormhole_means_something() {
    let check = |version: &str, tags: &[(u16, u32)], expected: &str| check(Arch::Wormhole, version, tags, expected);
    // Neither channels, arbiters, self tests nor the power of the board.
    for tag in
        [17, 25, 34, 35, 36, 37, 38, 42, 45, 46, 49, 50, 51, 53, 54, 65, 66, 67, 68, 69, 70, 71, 73, 74, 75, 76, 77]
    {
        check("19.15", &[(tag, 60)], NOTHING);
    }
    check("19.15", &[(5, 100)], "telemetry_interval_seconds 0.100 s");
    check("19.15", &[(9, 0x03B6_02BC)], "vcore_min_volts 0.700 V");
    check("19.15", &[(10, 83)], "asic_temp_shutdown_celsius 83.0 °C");
    check("19.15", &[(12, 0x0028_8000), (13, 0x001E_4000)], "vreg_temp_celsius 40.5 °C; board_temp_celsius 30.2 °C");
    check("19.15", &[(13, 0xFFF6_0000)], "board_temp_celsius -10.0 °C");
    check("19.15", &[(12, 0), (13, 0x8000_0000)], NOTHING);
    let (no, yes) = (" no".repeat(15), " yes".repeat(16));
    check("19.8", &[(21, 0x0001_0001)], &format!("eth_heartbeat yes{no}; eth_retrained yes{no}"));
    check("19.9", &[(21, 0x0001_0001)], &format!("eth_heartbeat yes{no}; eth_link_up yes{no}"));
    check("19.9", &[(21, u32::MAX)], &format!("eth_heartbeat{yes}; eth_link_up{yes}"));
    check("19.8", &[(21, u32::MAX), (5, 100), (6, 1)], "telemetry_interval_seconds 0.100 s");
    check("", &[(21, 0x0001_0001)], NOTHING);
    check(
        "19.15",
        &[(22, 0b11_01_01_01_00_01)],
        "gddr_trained yes no yes yes yes no; gddr_training_failed no no no no no yes",
    );
    check("19.15", &[(23, 12_000)], "gddr_megabits_per_second 12000");
    check("19.15", &[(24, 0x0007_1002)], "firmware_ethernet_ports 7.1.2");
    check("19.15", &[(29, 0x0225_0000)], "firmware_cm 2.37.0.0");
    check("19.5", &[(31, 0x0BB8_0BC2)], "fans_rpm 3010 rpm 3000 rpm");
    check("19.9", &[(31, 0x0BB8_0BC2), (41, 0x0BB8_0BC2)], NOTHING);
    check("19.10", &[(31, 40), (41, 0xFFFF_0BB8)], "fan_target_percent 40.0 %; fans_rpm 3000 rpm");
    check("19.10", &[(41, 0x0BB8_0BC2), (79, 2000), (81, 2100)], "fans_rpm 3010 rpm 3000 rpm 2000 rpm 2100 rpm");
    check("19.15", &[(40, 1)], "noc_translation yes");
    check("19.15", &[(52, 1)], "asic_location 1");
    check("19.15", &[(57, 0x6B0B_0C1E)], "firmware_build_date 2026-11-11 12:30");
    check("19.15", &[(57, 0x6D0B_0000)], NOTHING);
    check("19.15", &[(58, 0x0306_0100)], "firmware_flash_tool 3.6.1.0");
    check("19.15", &[(59, 0x1FF)], "tensix_enabled 9 of 10 rows (off: 9)");
    check("19.15", &[(63, 1000)], "aiclk_max_megahertz 1000 MHz");
}

#[test]
fn what_cannot_be_is_not_said() {
    for arch in [Arch::Blackhole, Arch::Wormhole] {
        for tag in (1..=90).filter(|tag| *tag != 21 && *tag != 28) {
            // Corrected errors may be 255 everywhere, but here no channel is enabled.
            check(arch, "19.15", &[(tag, u32::MAX), (6, 1)], NOTHING);
        }
        for (tag, word) in
            [(5, 0), (9, 0x0384_0000), (9, 2000), (10, 0), (10, 150), (23, 3), (40, 2), (52, 33), (63, 0)]
        {
            check(arch, "19.15", &[(tag, word)], NOTHING);
        }
        check(arch, "19.15", &[(63, 5000), (29, 0), (58, 0), (24, 0)], NOTHING);
        // A bus that is dead answers nothing but ones, also where that could be a value.
        check(arch, "", &[(28, u32::MAX), (21, u32::MAX), (46, u32::MAX), (63, 1000)], NOTHING);
    }
    for (tag, word) in [(31, 101), (34, 0), (34, 0x4000), (36, 0x100), (38, 3), (38, 0x10), (50, 0x1_0000), (54, 0)] {
        check(Arch::Blackhole, "19.15", &[(tag, word)], NOTHING);
    }
    for (tag, word) in [(53, 1000), (54, 1000), (73, 1000), (51, 0), (51, 150), (17, 5000), (77, 60_001), (66, 5000)] {
        check(
            Arch::Blackhole,
            "19.11",
            &[(tag, word)],
            if tag == 66 { "aiclk_ceiling_by maximum clock" } else { NOTHING },
        );
    }
    check(Arch::Blackhole, "19.15", &[(36, 1), (42, 0xC8C8)], "gddr_enabled 1 of 8 (off: 1-7)");
    assert_eq!(decode(&table(Arch::Blackhole, "", &[])), Deep::default());
}

#[test]
fn the_table_is_kept_as_it_was_read() {
    let table = table(Arch::Wormhole, "19.15", &[(200, 7), (0xFFFF, u32::MAX)]);
    assert_eq!(decode(&table).tags, table.entries);
}

/// Whether a value is one that hardware can have.
fn is_plausible(unit: Unit, value: &Value<'_>) -> bool {
    let within = |from: f64, to: f64| value.number().is_some_and(|number| from <= number && number < to);
    match unit {
        Unit::Celsius => within(-40.0, 150.0),
        Unit::Watts => within(0.0, 1000.0),
        Unit::Volts => within(0.001, 2.0),
        Unit::Megahertz => within(0.0, 5000.0),
        Unit::Rpm => within(0.0, 30_000.0),
        Unit::Percent => within(0.0, 100.1),
        Unit::Seconds => within(0.0, 60.1),
        Unit::Count => within(0.0, 4_294_967_295.0),
        Unit::YesNo => true,
        Unit::Text => value.as_text().is_some_and(|text| !text.is_empty() && text.len() < 400),
        _ => false,
    }
}

proptest! {
    #[test]
    fn any_table_gives_values_that_can_be(
        is_wormhole: bool,
        version in prop_oneof![Just(None), any::<u32>().prop_map(Some), (17u32..21, 0u32..20).prop_map(|(a, b)| Some(a << 24 | b << 16))],
        entries in prop::collection::vec((prop_oneof![0u16..90, any::<u16>()], prop_oneof![any::<u32>(), 0u32..2000, Just(u32::MAX), Just(0x8000_0000)]), 0..120),
    ) {
        let arch = if is_wormhole { Arch::Wormhole } else { Arch::Blackhole };
        let version = version.map(|value| TelemetryTag { tag: 28, value });
        let entries: Vec<TelemetryTag> = version.into_iter().chain(entries.into_iter().map(|(tag, value)| TelemetryTag { tag, value })).collect();
        let table = RawTable { arch, version: 0x100, entries };
        let deep = decode(&table);
        prop_assert_eq!(&deep.tags, &table.entries);
        let device = device(deep);
        for figure in DEEP_FIGURES {
            for field in figure.fields() {
                if let Some(value) = field.value(&device) {
                    prop_assert!(is_plausible(figure.unit, &value), "{}: {:?}", field.name(), value);
                }
            }
        }
    }
}
