//! `profile_log_device.csv` of tt-metal's device profiler: zones of code on each processor of each core, in cycles of the chip.
//!
//! The first line has the chip's clock: `ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64`. The second has the names of
//! columns, of which there are more with each version. Then there is a row for the beginning and one for the end of each zone.

use super::csv::Records;
use super::{Clock, RawSlice, shortened};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::BufRead;

/// Zones of one processor that are open at the same time. The profiler itself knows fewer.
const DEEPEST: usize = 64;
/// Processors of all chips: more than 32 chips have.
const MOST_PROCESSORS: usize = 1 << 16;

/// What was in the log.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct DeviceLogHead {
    /// Architecture of the chips.
    pub arch: String,
    /// Frequency of the chips' clock.
    pub megahertz: f64,
    /// Ends without a beginning, and beginnings without an end.
    pub unmatched: u64,
}

/// A zone that has begun.
struct Open {
    name: String,
    start: u64,
}

/// Zones of one processor that wait for the one around them to end.
const MOST_WAITING: usize = 1024;

/// A zone that has ended.
struct Ended {
    name: String,
    start: u64,
    end: u64,
    run: Option<u64>,
}

/// Chip, core and name.
type Processor = (u32, (u32, u32), String);

/// The zones of one processor.
#[derive(Default)]
struct Zones {
    open: Vec<Open>,
    /// An outer zone is handed over before those inside of it.
    ended: Vec<Ended>,
}

/// Hands over all zones. Of each processor they come by their beginnings, the outer ones first.
pub fn decode(from: impl BufRead, mut each: impl FnMut(RawSlice<'_>)) -> Result<DeviceLogHead, String> {
    let mut records = Records::new(from);
    let first = records.line()?.unwrap_or_default();
    let mut head = head(&first).ok_or_else(|| records.wrong("expected ARCH and CHIP_FREQ[MHz]"))?;
    let mut fields = Vec::new();
    records.next(&mut fields)?;
    let columns = Columns::of(&fields).map_err(|what| records.wrong(&what))?;
    let mut processors: BTreeMap<Processor, Zones> = BTreeMap::new();
    while records.next(&mut fields)? {
        let row = columns.row(&fields).map_err(|what| records.wrong(&what))?;
        let is_start = match row.kind {
            "ZONE_START" => true,
            "ZONE_END" => false,
            // Sums, events and counters have no length.
            _ => continue,
        };
        let processor = (row.chip, row.core, row.processor.to_owned());
        if processors.len() >= MOST_PROCESSORS && !processors.contains_key(&processor) {
            return Err(records.wrong("it has too many processors"));
        }
        let zones = processors.entry(processor).or_default();
        head.unmatched += if is_start { zones.begin(&row) } else { zones.end(&row) };
        if zones.open.is_empty() || zones.ended.len() >= MOST_WAITING {
            zones.hand_over(row.chip, row.core, row.processor, &mut each);
        }
    }
    for ((chip, core, name), zones) in &mut processors {
        head.unmatched += zones.open.len() as u64;
        zones.hand_over(*chip, *core, name, &mut each);
    }
    Ok(head)
}

impl Zones {
    /// Returns how many zones are given up.
    fn begin(&mut self, row: &ZoneRow<'_>) -> u64 {
        let is_full = self.open.len() == DEEPEST;
        if is_full {
            self.open.remove(0);
        }
        self.open.push(Open { name: row.zone.to_owned(), start: row.cycles });
        is_full.into()
    }

    /// Returns how many zones, or ends of zones, are given up.
    fn end(&mut self, row: &ZoneRow<'_>) -> u64 {
        let is_it = |zone: &Open| zone.name == row.zone && zone.start <= row.cycles;
        let Some(at) = self.open.iter().rposition(is_it) else { return 1 };
        // What is inside of it and did not end was cut off.
        let cut_off = self.open.len() - at - 1;
        let zone = self.open.swap_remove(at);
        self.open.truncate(at);
        self.ended.push(Ended { name: zone.name, start: zone.start, end: row.cycles, run: row.run });
        cut_off as u64
    }

    fn hand_over(&mut self, chip: u32, core: (u32, u32), track: &str, each: &mut impl FnMut(RawSlice<'_>)) {
        self.ended.sort_by_key(|zone| (zone.start, Reverse(zone.end)));
        for zone in self.ended.drain(..) {
            let (name, clock, chip, core) = (&zone.name[..], Clock::Chip(chip), Some(chip), Some(core));
            each(RawSlice { name, clock, start: zone.start, end: zone.end, chip, core, track, run: zone.run });
        }
    }
}

fn head(line: &str) -> Option<DeviceLogHead> {
    let value = |name: &str| {
        let part = line.split(',').map(str::trim).find_map(|part| part.strip_prefix(name))?;
        Some(part.trim_start_matches(':').trim())
    };
    let megahertz: f64 = value("CHIP_FREQ[MHz]")?.parse().ok()?;
    let arch = shortened(value("ARCH")?).to_owned();
    (megahertz.is_finite() && megahertz > 0.0).then_some(DeviceLogHead { arch, megahertz, unmatched: 0 })
}

struct Columns {
    chip: usize,
    core: (usize, usize),
    processor: usize,
    cycles: usize,
    run: Option<usize>,
    zone: usize,
    kind: usize,
}

struct ZoneRow<'a> {
    chip: u32,
    core: (u32, u32),
    processor: &'a str,
    cycles: u64,
    run: Option<u64>,
    zone: &'a str,
    kind: &'a str,
}

impl Columns {
    fn of(names: &[String]) -> Result<Columns, String> {
        let find = |wanted: &str| names.iter().position(|name| name == wanted);
        let need = |wanted: &str| find(wanted).ok_or_else(|| format!("expected a column {wanted:?}"));
        Ok(Columns {
            chip: need("PCIe slot")?,
            core: (need("core_x")?, need("core_y")?),
            processor: need("RISC processor type")?,
            cycles: need("time[cycles since reset]")?,
            run: find("run host ID"),
            zone: need("zone name")?,
            kind: need("type")?,
        })
    }

    fn row<'a>(&self, fields: &'a [String]) -> Result<ZoneRow<'a>, String> {
        fn number<T: std::str::FromStr>(fields: &[String], at: usize, what: &str) -> Result<T, String> {
            let field = fields.get(at).map_or("", String::as_str);
            field.parse().map_err(|_| format!("{what} is no number: {:?}", shortened(field)))
        }
        let text = |at: usize| shortened(fields.get(at).map_or("", String::as_str));
        Ok(ZoneRow {
            chip: number(fields, self.chip, "the chip")?,
            core: (number(fields, self.core.0, "the core")?, number(fields, self.core.1, "the core")?),
            processor: text(self.processor),
            cycles: number(fields, self.cycles, "the time")?,
            run: self.run.and_then(|at| fields.get(at)?.parse().ok()),
            zone: text(self.zone),
            kind: text(self.kind),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const HEAD: &str = "\
ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64
PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data
";
    pub const ROWS: &str = "\
0,1,2,BRISC,18952,5000000,0,1025,,,BRISC-FW,ZONE_START,433,brisc.cc,
0,1,2,BRISC,18953,5000100,0,1025,,,BRISC-KERNEL,ZONE_START,20,kernel.cc,
0,1,2,BRISC,18954,5000150,7,1025,,,SOME-DATA,TS_DATA,20,kernel.cc,{'a': 1; 'b': 2}
0,1,2,BRISC,18955,5000900,0,1025,,,BRISC-KERNEL,ZONE_END,20,kernel.cc,
0,1,2,BRISC,18956,5001000,0,1025,,,BRISC-FW,ZONE_END,433,brisc.cc,
1,1,2,TRISC_0,18952,900,0,1026,,,TRISC-FW,ZONE_START,433,trisc.cc,
1,1,2,TRISC_0,18952,1900,0,1026,,,TRISC-FW,ZONE_END,433,trisc.cc,
1,1,2,TRISC_0,18952,2900,0,1026,,,TRISC-FW,ZONE_START,433,trisc.cc,
";

    fn text(log: &str) -> Result<(String, DeviceLogHead), String> {
        let mut text = String::new();
        let head = decode(log.as_bytes(), |slice| {
            let RawSlice { name, start, end, chip, core, track, run, .. } = slice;
            let core = core.unwrap();
            text += &format!("{name} {start}..{end} chip {chip:?} core {core:?} {track} run {run:?}\n");
        })?;
        Ok((text, head))
    }

    #[test]
    fn zones_are_found_one_inside_of_the_other() {
        let (text, head) = text(&format!("{HEAD}{ROWS}")).unwrap();
        expect_test::expect![[r#"
            BRISC-FW 5000000..5001000 chip Some(0) core (1, 2) BRISC run Some(1025)
            BRISC-KERNEL 5000100..5000900 chip Some(0) core (1, 2) BRISC run Some(1025)
            TRISC-FW 900..1900 chip Some(1) core (1, 2) TRISC_0 run Some(1026)
        "#]]
        .assert_eq(&text);
        assert_eq!(head, DeviceLogHead { arch: "wormhole_b0".into(), megahertz: 1000.0, unmatched: 1 });
    }

    #[test]
    fn a_log_of_an_earlier_version_has_fewer_columns() {
        let old = "ARCH: blackhole, CHIP_FREQ[MHz]: 1350\nPCIe slot, core_x, core_y, RISC processor type, timer_id, \
                   time[cycles since reset], data, run host ID,  zone name, type, source line, source file, meta data\n\
                   1,1,1,BRISC,18952,14595968859092,0,1025,BRISC-FW,ZONE_START,433,brisc.cc,\n\
                   1,1,1,BRISC,18953,14595968859500,0,1025,BRISC-FW,ZONE_END,433,brisc.cc,\n";
        let (text, head) = text(old).unwrap();
        assert_eq!(text, "BRISC-FW 14595968859092..14595968859500 chip Some(1) core (1, 1) BRISC run Some(1025)\n");
        assert_eq!(head.megahertz, 1350.0);
    }

    #[test]
    fn what_is_broken_is_named_with_its_line() {
        let error = |log: &str| text(log).unwrap_err();
        assert_eq!(error("hello"), "line 1: expected ARCH and CHIP_FREQ[MHz]");
        assert_eq!(error("ARCH: x, CHIP_FREQ[MHz]: 0\n"), "line 1: expected ARCH and CHIP_FREQ[MHz]");
        assert_eq!(error(&HEAD.replace("zone name", "name")), "line 2: expected a column \"zone name\"");
        let log = format!("{HEAD}{}", ROWS.replace("5000900", "many"));
        assert_eq!(error(&log), "line 6: the time is no number: \"many\"");
    }

    #[test]
    fn an_end_without_a_beginning_is_counted_and_left_out() {
        let ends = ROWS.lines().filter(|line| !line.contains("ZONE_START")).collect::<Vec<_>>().join("\n");
        let (text, head) = text(&format!("{HEAD}{ends}\n")).unwrap();
        assert_eq!((text.as_str(), head.unmatched), ("", 3));
        let deep = "0,1,2,BRISC,1,5,0,1,,,Z,ZONE_START,1,a.cc,\n".repeat(100);
        assert_eq!(decode(format!("{HEAD}{deep}").as_bytes(), |_| ()).unwrap().unmatched, 100);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(bytes: Vec<u8>, order in proptest::collection::vec(0usize..9, 0..60), number: u64) {
            let _ = decode(&bytes[..], |_| ());
            let rows: Vec<String> = ROWS.lines().map(|row| row.replace("5000900", &number.to_string())).collect();
            let mixed: String = order.iter().filter_map(|at| rows.get(*at)).map(|row| format!("{row}\n")).collect();
            decode(format!("{HEAD}{mixed}").as_bytes(), |slice| assert!(slice.start <= slice.end)).unwrap();
        }
    }
}
