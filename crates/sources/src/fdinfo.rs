//! What the driver counts for one open file, in the form that the kernel has laid down for DRM drivers.
//!
//! One text of `/proc/<pid>/fdinfo/<fd>`: lines of `drm-<key>: <value> [unit]` among others. Sizes are bytes, or KiB or MiB where the
//! line says so; engine times are nanoseconds; frequencies are Hz, KHz or MHz.

use crate::dir::decimal;
use model::{EngineCounters, Usage};
use std::collections::{BTreeMap, BTreeSet};

/// What a driver calls itself whose files these are.
const DRIVER: &str = "tenstorrent";

/// What is counted for one open file of a device.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FdInfo {
    /// The device's PCI address (`drm-pdev`).
    pub pci_address: Option<String>,
    /// What distinguishes this opening of the device from others, however many descriptors it has (`drm-client-id`).
    pub client: Option<u64>,
    /// Bytes by kind, as far as they are given.
    pub usage: Usage,
    /// Engines by name.
    pub engines: BTreeMap<String, EngineCounters>,
    /// Memory regions that are neither of the device's kinds nor the host's.
    pub unknown_regions: BTreeSet<String>,
    /// Lines that do not keep to the rules.
    pub strange: Vec<String>,
}

/// Sizes of one region. What is shared, active or purgeable is part of these.
#[derive(Debug, Default, Clone, Copy)]
struct Sizes {
    resident: Option<u64>,
    total: Option<u64>,
}

/// Decodes a text. `None` when it is not that of a device's file, or the driver does not count anything.
pub fn parse(bytes: &[u8]) -> Option<FdInfo> {
    let mut info = FdInfo::default();
    let mut driver = None;
    let mut regions: BTreeMap<&str, Sizes> = BTreeMap::new();
    for line in bytes.split(|&b| b == b'\n') {
        let Some((key, value)) =
            std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix("drm-")?.split_once(':'))
        else {
            continue;
        };
        let value = value.trim_ascii();
        let understood = match key.split_once('-') {
            None if key == "driver" => {
                driver = Some(value);
                true
            }
            None if key == "pdev" => {
                info.pci_address = Some(value.to_ascii_lowercase()).filter(|address| !address.is_empty());
                info.pci_address.is_some()
            }
            Some(("client", "id")) => set(&mut info.client, decimal(value)),
            Some((word, name)) => match counted(&mut info.engines, word, name, value) {
                Some(understood) => understood,
                None => sized(&mut regions, word, name, value),
            },
            // Keys of its own are a driver's right.
            None => true,
        };
        if !understood {
            info.strange.push(String::from_utf8_lossy(line).into_owned());
        }
    }
    driver.filter(|driver| *driver == DRIVER)?;
    let mut kinds: [Option<u64>; 5] = [None; 5];
    for (name, sizes) in regions {
        let Some(bytes) = sizes.resident.or(sizes.total) else { continue };
        match region(name) {
            MemoryPlace::Device(kind) => kinds[kind] = Some(kinds[kind].unwrap_or(0).saturating_add(bytes)),
            MemoryPlace::Host => {}
            MemoryPlace::Unknown => drop(info.unknown_regions.insert(name.to_owned())),
        }
    }
    info.usage = usage(kinds);
    Some(info)
}

/// Bytes by kind, in the order of [`KINDS`]. What the driver counts as DRAM and L1 is what is in use, as it says; the others
/// are parts of it.
pub(crate) fn usage([dram_used, l1_used, l1_small, trace, cb]: [Option<u64>; 5]) -> Usage {
    let bytes = |kind: Option<u64>| kind.map(model::Bytes);
    Usage {
        dram_used: bytes(dram_used),
        l1_used: bytes(l1_used),
        l1_small: bytes(l1_small),
        trace: bytes(trace),
        cb: bytes(cb),
        ..Usage::default()
    }
}

pub(crate) const KINDS: [&str; 5] = ["dram", "l1", "l1_small", "trace", "cb"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryPlace {
    /// On the device: which of the [`KINDS`].
    Device(usize),
    /// In the host's memory. `memory` is reserved for that; the others are what drivers call it.
    Host,
    /// Not guessed.
    Unknown,
}

fn region(name: &str) -> MemoryPlace {
    // Drivers with several of them count them: `vram0`.
    match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "dram" | "vram" => return MemoryPlace::Device(0),
        _ => {}
    }
    match KINDS.iter().position(|kind| *kind == name.replace('-', "_")) {
        Some(kind) => MemoryPlace::Device(kind),
        None if matches!(name, "memory" | "system" | "gtt" | "cpu") => MemoryPlace::Host,
        None => MemoryPlace::Unknown,
    }
}

fn set(place: &mut Option<u64>, value: Option<u64>) -> bool {
    *place = value;
    value.is_some()
}

/// Takes a line about an engine. `None` when it is about something else, else whether it keeps to the rules.
fn counted(engines: &mut BTreeMap<String, EngineCounters>, word: &str, name: &str, value: &str) -> Option<bool> {
    let (word, name) = match (word, name.split_once('-')) {
        ("engine", Some(("capacity", name))) => ("capacity", name),
        ("total", Some(("cycles", name))) => ("total", name),
        ("engine" | "cycles" | "maxfreq", _) => (word, name),
        _ => return None,
    };
    let number = match word {
        "engine" => with_unit(value, &[("ns", 1)]),
        "maxfreq" => with_unit(value, &[("", 1), ("Hz", 1), ("KHz", 1000), ("MHz", 1_000_000)]),
        // Nothing can be as much as a group of no engines can do.
        "capacity" => decimal(value).filter(|count| *count > 0),
        _ => decimal(value),
    };
    let Some(number) = number.filter(|_| is_name(name)) else { return Some(false) };
    let engine = engines.entry(name.to_owned()).or_default();
    match word {
        "engine" => engine.busy_nanoseconds = Some(number),
        "cycles" => engine.busy_cycles = Some(number),
        "total" => engine.total_cycles = Some(number),
        "maxfreq" => engine.max_hertz = Some(number),
        _ => engine.capacity = number,
    }
    Some(true)
}

/// Takes a line about a memory region, and says whether it keeps to the rules.
fn sized<'a>(regions: &mut BTreeMap<&'a str, Sizes>, word: &str, name: &'a str, value: &str) -> bool {
    if !matches!(word, "memory" | "resident" | "total" | "shared" | "active" | "purgeable") {
        return true;
    }
    let bytes = with_unit(value, &[("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)]);
    let Some(bytes) = bytes.filter(|_| is_name(name)) else { return false };
    let sizes = regions.entry(name).or_default();
    match word {
        "resident" => sizes.resident = Some(bytes),
        // The old name of the same.
        "memory" => sizes.resident = sizes.resident.or(Some(bytes)),
        "total" => sizes.total = Some(bytes),
        _ => {}
    }
    true
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// A number in one of these units.
fn with_unit(value: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = value.split_once([' ', '\t']).unwrap_or((value, ""));
    let (_, factor) = units.iter().find(|(known, _)| *known == unit.trim_ascii())?;
    decimal(number)?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// What is understood of a text, in words.
    fn understood(text: &str) -> String {
        let Some(info) = parse(text.as_bytes()) else { return "nothing".into() };
        let mut words = Vec::new();
        words.extend(info.pci_address.map(|address| format!("pdev={address}")));
        words.extend(info.client.map(|client| format!("client={client}")));
        let Usage { dram_used, l1_used, l1_small, trace, cb, .. } = info.usage;
        for (name, bytes) in KINDS.iter().zip([dram_used, l1_used, l1_small, trace, cb]) {
            words.extend(bytes.map(|bytes| format!("{name}={}", bytes.0)));
        }
        for (name, engine) in info.engines {
            let mut add = |what: &str, value: Option<u64>| words.extend(value.map(|n| format!("{name}.{what}={n}")));
            add("ns", engine.busy_nanoseconds);
            add("cycles", engine.busy_cycles);
            add("total", engine.total_cycles);
            add("hz", engine.max_hertz);
            add("capacity", Some(engine.capacity).filter(|capacity| *capacity != 1));
        }
        words.extend(info.unknown_regions.iter().map(|region| format!("unknown:{region}")));
        words.extend(info.strange.iter().map(|line| format!("strange:{line:?}")));
        words.join(" ")
    }

    fn check(lines: &[&str], expected: Expect) {
        expected
            .assert_eq(&understood(&format!("pos:\t0\nflags:\t02\ndrm-driver:\ttenstorrent\n{}\n", lines.join("\n"))));
    }

    #[test]
    fn a_whole_text_is_understood() {
        check(
            &[
                "drm-pdev:\t0000:C1:00.0",
                "drm-client-id:\t42",
                "drm-memory-dram:\t512 MiB",
                "drm-memory-l1:\t12 KiB",
                "drm-engine-compute:\t9876543210 ns",
                "drm-engine-capacity-compute:\t2",
            ],
            expect!["pdev=0000:c1:00.0 client=42 dram=536870912 l1=12288 compute.ns=9876543210 compute.capacity=2"],
        );
    }

    #[test]
    fn sizes_are_bytes_unless_they_say_otherwise() {
        check(
            &["drm-resident-dram: 4096", "drm-resident-l1:1 KiB", "drm-resident-trace: \t 2 MiB", "drm-resident-cb: 0"],
            expect!["dram=4096 l1=1024 trace=2097152 cb=0"],
        );
        check(
            &["drm-resident-dram: 1 GiB", "drm-resident-l1: 5 kib", "drm-engine-x: 5 us", "drm-engine-y: 5"],
            expect![[
                r#"strange:"drm-resident-dram: 1 GiB" strange:"drm-resident-l1: 5 kib" strange:"drm-engine-x: 5 us" strange:"drm-engine-y: 5""#
            ]],
        );
    }

    #[test]
    fn what_is_resident_counts_and_otherwise_all_that_was_made() {
        check(&["drm-total-dram: 10 KiB", "drm-resident-dram: 4 KiB", "drm-shared-dram: 1 KiB"], expect!["dram=4096"]);
        check(&["drm-total-dram: 10 KiB", "drm-active-dram: 1 KiB"], expect!["dram=10240"]);
        check(&["drm-resident-dram: 4 KiB", "drm-memory-dram: 5 KiB"], expect!["dram=4096"]);
        check(&["drm-purgeable-dram: 4 KiB"], expect![""]);
    }

    #[test]
    fn regions_are_kinds_or_the_host_s_or_unknown() {
        check(
            &[
                "drm-total-vram0: 1",
                "drm-total-vram1: 2",
                "drm-total-l1-small: 3",
                "drm-total-memory: 9",
                "drm-total-gtt: 9",
            ],
            expect!["dram=3 l1_small=3"],
        );
        check(&["drm-total-eth_l1: 1", "drm-total-l12: 2"], expect!["unknown:eth_l1 unknown:l12"]);
    }

    #[test]
    fn cycles_come_with_their_total_or_their_frequency() {
        check(
            &[
                "drm-cycles-tensix: 100",
                "drm-total-cycles-tensix: 1000",
                "drm-cycles-arc: 7",
                "drm-maxfreq-arc: 800 MHz",
            ],
            expect!["arc.cycles=7 arc.hz=800000000 tensix.cycles=100 tensix.total=1000"],
        );
        check(&["drm-engine-capacity-x: 0"], expect![[r#"strange:"drm-engine-capacity-x: 0""#]]);
    }

    #[test]
    fn missing_keys_are_missing_and_garbage_is_named() {
        check(&[], expect![""]);
        check(
            &[
                "drm-client-id: -1",
                "drm-pdev:",
                "drm-memory-: 5",
                "drm-client-name: a b c",
                "drm-own: word",
                "no colon",
            ],
            expect![[r#"strange:"drm-client-id: -1" strange:"drm-pdev:" strange:"drm-memory-: 5""#]],
        );
        check(
            &["drm-memory-dram: 99999999999999999999", "drm-memory-l1: 18446744073709551615 KiB"],
            expect![[
                r#"strange:"drm-memory-dram: 99999999999999999999" strange:"drm-memory-l1: 18446744073709551615 KiB""#
            ]],
        );
    }

    #[test]
    fn a_file_of_another_driver_or_of_none_says_nothing() {
        assert_eq!(understood("pos:\t0\nflags:\t0100002\nmnt_id:\t26\nino:\t685\n"), "nothing");
        assert_eq!(understood("drm-driver:\tamdgpu\ndrm-memory-vram:\t5 KiB\n"), "nothing");
        assert_eq!(understood("drm-memory-dram:\t5 KiB\n"), "nothing", "whose driver does not give its name");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_text(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_lines_give_no_more_than_they_say(lines in proptest::collection::vec(
            "(drm-(driver|pdev|client-id|memory-dram|total-l1|resident-vram[0-9]|engine-capacity-a|engine-a|cycles-a|total-cycles-a|maxfreq-a|[a-z-]{0,9})|[a-z]{0,4}):[ \t]?(tenstorrent|[0-9]{0,21}|.{0,6})( ?(KiB|MiB|ns|MHz|.{0,3}))?", 0..12)) {
            let text = format!("drm-driver: tenstorrent\n{}\ndrm-driver: tenstorrent", lines.join("\n"));
            let info = parse(text.as_bytes()).unwrap();
            assert!(info.engines.values().all(|engine| engine.capacity > 0));
            assert!(info.strange.len() + info.engines.len() <= lines.len());
            if !text.contains("dram") && !text.contains("vram") {
                assert_eq!(info.usage.dram, None);
            }
        }
    }
}
