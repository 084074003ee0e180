//! What is known of an area beside its bar, in few words, filled into lines.

use super::bar::Fill;
use crate::figures::used_of_total;
use crate::memory::view::{Area, Banks, Chip, Kind};
use crate::style::{Style, Tone};
use crate::text::width;
use model::{Bytes, MemoryKind};

/// A few words, and how they are painted.
pub struct Fact {
    /// The character that stands for it in the bar.
    pub glyph: Option<(char, Tone)>,
    pub text: String,
    pub tone: Tone,
}

impl Fact {
    pub fn new(text: impl Into<String>, tone: Tone) -> Fact {
        Fact { glyph: None, text: text.into(), tone }
    }

    pub fn width(&self) -> usize {
        width(&self.text) + if self.glyph.is_some() { 2 } else { 0 }
    }

    fn painted(&self, style: &Style) -> String {
        let glyph = self.glyph.map(|(glyph, tone)| style.paint(&glyph.to_string(), tone) + " ");
        glyph.unwrap_or_default() + &style.paint(&self.text, self.tone)
    }
}

/// The facts in lines of at most so many columns, two blanks between them.
pub fn wrapped(facts: Vec<Fact>, columns: usize) -> Vec<Vec<Fact>> {
    let mut lines: Vec<(usize, Vec<Fact>)> = Vec::new();
    for fact in facts {
        let taken = fact.width();
        match lines.last_mut() {
            Some((used, line)) if *used + 2 + taken <= columns => {
                *used += 2 + taken;
                line.push(fact);
            }
            _ => lines.push((taken, vec![fact])),
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The same as text of exactly so many columns.
pub fn flow(facts: Vec<Fact>, columns: usize, style: &Style) -> Vec<String> {
    let painted = |line: &Vec<Fact>| match &line[..] {
        [fact] if fact.width() > columns => style.cell(&fact.text, columns, crate::text::Align::Left, fact.tone),
        facts => {
            let used = facts.iter().map(|fact| fact.width() + 2).sum::<usize>() - 2;
            facts.iter().map(|fact| fact.painted(style)).collect::<Vec<_>>().join("  ") + &" ".repeat(columns - used)
        }
    };
    wrapped(facts, columns).iter().map(painted).collect()
}

pub fn of(area: &Area, style: &Style) -> Vec<Fact> {
    let with = |fill: Fill, text: String, tone| Fact {
        glyph: Some((fill.glyph(style), fill.tone(Tone::Buffers))),
        text,
        tone,
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
        Some(Fact::new(format!("{} frag {}", name(kind, n), percent(part)), fragmentation_tone(part)))
    });
    facts.extend(others);
    facts
}

fn of_banks(banks: &Banks, style: &Style) -> Vec<Fact> {
    let mut facts = Vec::new();
    facts.extend(fill_of_banks(banks, style));
    if let Some(largest) = banks.largest_free_bytes {
        let of_free = used_of_total(Some(largest), banks.free_bytes, 0, style);
        facts.push(Fact {
            glyph: Some((Fill::Free.glyph(style), Tone::Faint)),
            text: format!("free block {of_free} a bank"),
            tone: Tone::Plain,
        });
    }
    if let Some(part) = banks.fragmentation {
        let worst = if banks.allocators > 1 { format!(", worst of {}", banks.allocators) } else { String::new() };
        facts.push(Fact::new(format!("frag {}{worst}", percent(part)), fragmentation_tone(part)));
    }
    facts
}

/// `8 banks ▄▄▄▄▄▄▄▄ 39 %`
pub fn fill_of_banks(banks: &Banks, style: &Style) -> Option<Fact> {
    let fill = banks.fill()?;
    let count = banks.count.map_or_else(|| "banks".to_owned(), |count| format!("{count} banks"));
    let heat = heat(fill, banks.count, style);
    let age = banks.age_seconds.map(|age| format!(", {} ago", super::age(age))).unwrap_or_default();
    let mark = if banks.allocated_is_at_least { style.glyphs().at_least } else { "" };
    Some(Fact::new(format!("{count} {heat} {mark}{}{age}", percent(fill)), crate::figures::capacity_tone(fill)))
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

/// How much of what is free in an area a single buffer cannot have.
pub fn fragmentation(area: &Area, absent: &str) -> (String, Tone) {
    let part = area.buffers().and_then(|kind| kind.banks.as_ref()?.fragmentation);
    part.map_or((absent.into(), Tone::Faint), |part| (percent(part), fragmentation_tone(part)))
}

/// `1 process, 812 buffers`
pub fn counts(chip: &Chip) -> String {
    let kinds = chip.dram.kinds.iter().chain(&chip.l1.kinds);
    let buffers = kinds.filter_map(|kind| kind.buffers).reduce(u64::saturating_add);
    let count = |n: u64, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
    let processes = chip.processes.map(u64::from);
    let processes = processes.map(|n| if n == 0 { "no process".into() } else { count(n, "process", "processes") });
    let buffers = buffers.filter(|n| *n > 0 || chip.processes.is_none()).map(|n| count(n, "buffer", "buffers"));
    processes.into_iter().chain(buffers).collect::<Vec<_>>().join(", ")
}

pub fn short_board(chip: &Chip) -> Option<String> {
    chip.board.as_deref().map(|board| board.replace("wormhole", "wh").replace("blackhole", "bh"))
}

/// What a person should know of the chip that no figure says.
pub fn remarks(chip: &Chip) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(stale) = chip.stale_bytes.filter(|stale| *stale > Bytes(0)) {
        facts.push(Fact::new(format!("{stale} stale: still attributed to exited processes"), Tone::Warning));
    }
    match chip.untracked_processes {
        0 => {}
        1 => facts.push(Fact::new("1 process does not report its memory", Tone::Warning)),
        n => facts.push(Fact::new(format!("{n} processes do not report their memory"), Tone::Warning)),
    }
    facts
}
