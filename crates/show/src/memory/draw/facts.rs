//! What is known of an area: its bar, and what is beside that in few words, filled into lines.

use super::sizes;
use crate::bar::{Fill, pieces};
use crate::figures::{capacity_tone, part_tone, used_of_total};
use crate::memory::view::{Area, Banks, Chip, Kind};
use crate::style::{Line, Style, Tone};
use crate::text::{count, width};
use model::{Bytes, MemoryKind};

/// Facts are under the bar, behind the area's name.
pub const INDENT: usize = 6;

/// The areas of a chip, by name.
pub fn areas(chip: &Chip) -> [(&'static str, &Area); 2] {
    [("DRAM", &chip.dram), ("L1", &chip.l1)]
}

/// ` DRAM ▇▇▇▇▓╳░░░┃░░···╱  12.4/32.0 GiB  39 %`, and a blank up to so many columns.
pub fn bar_line(name: &str, area: &Area, untracked: u32, columns: usize, style: &Style) -> Line {
    let sizes = sizes::of(area);
    let of_bank = sizes.as_ref().filter(|sizes| sizes.is_of_bank);
    let total = area.total_bytes.or(sizes.as_ref().map(|sizes| Bytes(sizes.total)));
    let used = of_bank.map_or(area.used_bytes, |sizes| Some(Bytes(sizes.all_used())));
    let figures =
        used_of_total(used, of_bank.map_or(total, |sizes| Some(Bytes(sizes.total))), untracked, style.glyphs());
    let figures = if of_bank.is_some() { figures + " a bank" } else { figures };
    let tone = sizes.as_ref().map_or(Tone::Faint, |sizes| part_tone(sizes.part(), Tone::Strong));
    let percent = sizes.as_ref().map(|sizes| percent(sizes.part())).unwrap_or_default();
    let figures_width = (width(&figures) + 1).max(17);
    let bar = columns.saturating_sub(INDENT + figures_width + 7);
    let mut line = vec![(format!(" {name:<5}"), Tone::Strong)];
    line.extend(pieces(sizes.as_ref(), bar, Tone::Buffers, style));
    line.push((format!("{figures:>figures_width$}{percent:>6}"), tone));
    line
}

/// A few words, behind the character that is for them in the bar.
pub type Fact = Line;

/// The facts in lines of so many columns, indented, two blanks between them.
pub fn wrapped(facts: Vec<Fact>, columns: usize) -> Vec<Line> {
    let room = columns.saturating_sub(INDENT + 1);
    let mut lines: Vec<(usize, Line)> = Vec::new();
    for fact in facts {
        let taken: usize = fact.iter().map(|(text, _)| width(text)).sum();
        match lines.last_mut() {
            Some((used, line)) if *used + 2 + taken <= room => {
                *used += 2 + taken;
                line.push(("  ".into(), Tone::Plain));
                line.extend(fact);
            }
            _ => lines.push((taken, [(" ".repeat(INDENT), Tone::Plain)].into_iter().chain(fact).collect())),
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The facts about an area of memory, such as its peak and what is reserved.
pub fn of(area: &Area, style: &Style) -> Vec<Fact> {
    let with = |fill: Fill, text: String, tone| {
        vec![(format!("{} ", fill.glyph(style)), fill.tone(Tone::Buffers)), (text, tone)]
    };
    let mut facts = Vec::new();
    for (n, kind) in area.kinds.iter().enumerate() {
        if let Some(bytes) = kind.used_bytes.filter(|_| !kind.is_used()) {
            facts.push(with(Fill::KernelRing, format!("{} {bytes} (not in used)", name(kind, n)), Tone::Plain));
        } else if let Some(used) = kind.used_bytes {
            let tone = if used.0 == 0 { Tone::Faint } else { Tone::Plain };
            facts.push(with(Fill::of_kind(&kind.kind), format!("{} {used}", name(kind, n)), tone));
        } else if let Some(bytes) = kind.banks.as_ref().and_then(|banks| banks.allocated_bytes) {
            facts.push(with(Fill::of_kind(&kind.kind), format!("{} {bytes} a bank", name(kind, n)), Tone::Plain));
        }
    }
    if let Some(ring) = area.kernel_ring_bytes {
        facts.push(with(Fill::KernelRing, format!("kernel ring {ring} fixed"), Tone::Faint));
    }
    if let Some(reserved) = area.reserved_bytes {
        facts.push(with(Fill::Reserved, format!("reserved {reserved}"), Tone::Faint));
    }
    let Some(first) = area.buffers() else { return facts };
    if let Some(peak) = first.peak_bytes {
        let mark = if first.peak_is_at_least { style.glyphs().at_least } else { "" };
        facts.push(with(Fill::Peak, format!("peak {mark}{peak}"), Tone::Plain));
    }
    if let Some(banks) = &first.banks {
        facts.extend(of_banks(banks, style));
    }
    let others = area.kinds.iter().enumerate().skip(1).filter_map(|(n, kind)| {
        let part = kind.banks.as_ref()?.fragmentation.filter(|part| *part > 0.0)?;
        Some(vec![(format!("{} frag {}", name(kind, n), percent(part)), fragmentation_tone(part))])
    });
    facts.extend(others);
    facts
}

fn of_banks(banks: &Banks, style: &Style) -> Vec<Fact> {
    let mut facts: Vec<Fact> = fill_of_banks(banks, style).map(|fact| vec![fact]).into_iter().collect();
    if let Some(largest) = banks.largest_free_bytes {
        let of_free = used_of_total(Some(largest), banks.free_bytes, 0, style.glyphs());
        let text = format!("free block {of_free} a bank");
        facts.push(vec![(format!("{} ", Fill::Free.glyph(style)), Tone::Faint), (text, Tone::Plain)]);
    }
    if let Some(part) = banks.fragmentation {
        let worst = if banks.allocators > 1 { format!(", worst of {}", banks.allocators) } else { String::new() };
        facts.push(vec![(format!("frag {}{worst}", percent(part)), fragmentation_tone(part))]);
    }
    facts
}

/// `8 banks ▄▄▄▄▄▄▄▄ 39 %`
pub fn fill_of_banks(banks: &Banks, style: &Style) -> Option<(String, Tone)> {
    let fill = banks.fill()?;
    let count = banks.count.map_or_else(|| "banks".to_owned(), |count| format!("{count} banks"));
    let heat = heat(fill, banks.count, style);
    let age = banks.age_seconds.map(|age| format!(", {} ago", super::age(age))).unwrap_or_default();
    let mark = if banks.allocated_is_at_least { style.glyphs().at_least } else { "" };
    Some((format!("{count} {heat} {mark}{}{age}", percent(fill)), capacity_tone(fill)))
}

/// A character for each bank, or for several where there are many. All are filled alike.
fn heat(fill: f64, count: Option<u32>, style: &Style) -> String {
    let widest = if style.columns >= 110 { 32 } else { 8 };
    let banks = count.unwrap_or(1).clamp(1, widest) as usize;
    let glyph = match style.unicode {
        true => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][((fill * 8.0) as usize).min(7)],
        false => char::from(b'0' + ((fill * 10.0) as u8).min(9)),
    };
    glyph.to_string().repeat(banks)
}

/// What a kind is called; `n` is its place in the area.
pub fn name(kind: &Kind, n: usize) -> String {
    match kind.kind.as_str() {
        _ if n == 0 => "buffers".into(),
        other => MemoryKind::ALL
            .into_iter()
            .find(|kind| kind.name() == other)
            .map_or_else(|| other.to_owned(), |kind| kind.title().to_owned()),
    }
}

/// A little is not nothing.
pub fn percent(part: f64) -> String {
    match part * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "<1 %".into(),
        percent => format!("{percent:.0} %"),
    }
}

/// How a part is marked that a single buffer cannot have.
pub fn fragmentation_tone(part: f64) -> Tone {
    match part {
        part if part >= 0.75 => Tone::Critical,
        part if part >= 0.40 => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// `1 process, 812 buffers`
pub fn counts(chip: &Chip) -> String {
    let kinds = chip.dram.kinds.iter().chain(&chip.l1.kinds);
    let buffers = kinds.filter_map(|kind| kind.buffers).reduce(u64::saturating_add);
    let processes = chip.processes.map(u64::from);
    let processes = processes.map(|n| if n == 0 { "no process".into() } else { count(n, "process", "processes") });
    let buffers = buffers.filter(|n| *n > 0 || chip.processes.is_none()).map(|n| count(n, "buffer", "buffers"));
    processes.into_iter().chain(buffers).collect::<Vec<_>>().join(", ")
}

/// What a person should know of the chip that no figure says.
pub fn remarks(chip: &Chip, style: &Style) -> Vec<Fact> {
    let stale = chip.stale_bytes.filter(|stale| *stale > Bytes(0));
    let stale =
        stale.map(|stale| format!("{} {stale} stale: still attributed to exited processes", Fill::Stale.glyph(style)));
    let untracked = match chip.untracked_processes {
        0 => None,
        1 => Some("1 process does not report its memory".into()),
        n => Some(format!("{n} processes do not report their memory")),
    };
    let unverified = [chip.dram.unverified_bytes, chip.l1.unverified_bytes].into_iter().flatten().reduce(|a, b| a + b);
    let unverified = unverified.map(|bytes| {
        let glyph = Fill::Unverified.glyph(style);
        format!("{glyph} {bytes} unverified: reported by processes that do not hold the device, and not in used")
    });
    stale.into_iter().chain(unverified).chain(untracked).map(|text| vec![(text, Tone::Warning)]).collect()
}
