//! A bank as a map of used and free blocks with their addresses, as tt-metal's memory reporter lists them.

use super::view::{Chip, Kind, View};
use crate::grid::{Cell, Column, Page};
use crate::style::{Line, Style, Tone};
use crate::text::{clean, count};
use model::Bytes;
use model::figure::process::{BANK_FREE, BANK_LARGEST_FREE, PEAK_BYTES};

/// A piece of each bank: buffers side by side of one process, or what is free between them.
#[derive(Debug, Clone, PartialEq)]
pub struct BankBlock {
    /// Absent for what is free beyond the outermost buffers: where the allocator begins is not known.
    pub address: Option<u64>,
    /// Size in each bank.
    pub bytes: u64,
    /// Absent where it is free.
    pub used_by: Option<BlockOwner>,
}

/// The process that has a block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockOwner {
    /// Process id, where it is known.
    pub pid: Option<u32>,
    /// Number of buffers in the block.
    pub buffers: usize,
    /// What the program calls the first of them.
    pub label: Option<String>,
}

/// The blocks of one kind in each bank of a chip, by address. `None` where no buffer has an address.
pub fn blocks(view: &View, chip: &Chip, kind: &Kind) -> Option<Vec<BankBlock>> {
    let is_there = |devices: &[String]| devices.contains(&chip.id) || devices.is_empty();
    let mut buffers: Vec<_> = view
        .buffers
        .iter()
        .filter(|buffer| buffer.kind == kind.kind && is_there(&buffer.devices))
        .filter_map(|buffer| Some((buffer, buffer.bank_bytes?.0)))
        .collect();
    buffers.sort_by_key(|(buffer, _)| buffer.address);
    let mut all: Vec<BankBlock> = Vec::new();
    let mut end = buffers.first()?.0.address;
    for (buffer, bytes) in buffers {
        if buffer.address > end {
            all.push(BankBlock { address: Some(end), bytes: buffer.address - end, used_by: None });
        }
        // Two allocators may each hand out the same place.
        let from = buffer.address.max(end);
        let bytes = buffer.address.saturating_add(bytes).saturating_sub(from);
        end = from.saturating_add(bytes);
        match all.last_mut().and_then(|last| Some((&mut last.bytes, last.used_by.as_mut()?))) {
            Some((sum, owner)) if owner.pid == buffer.pid => {
                (*sum, owner.buffers) = (*sum + bytes, owner.buffers + 1);
            }
            _ => {
                let owner = BlockOwner { pid: buffer.pid, buffers: 1, label: buffer.label.clone() };
                all.push(BankBlock { address: Some(from), bytes, used_by: Some(owner) });
            }
        }
    }
    let known: u64 = all.iter().map(|block| block.bytes).sum();
    let allocatable = kind.banks.as_ref().and_then(|banks| banks.allocatable_bytes);
    if let Some(rest) = allocatable.and_then(|bytes| bytes.0.checked_sub(known)).filter(|rest| *rest > 0) {
        let free = BankBlock { address: None, bytes: rest, used_by: None };
        // L1 is handed out from its end, everything else from its beginning.
        if kind.kind == "l1" { all.insert(0, free) } else { all.push(free) }
    }
    Some(all)
}

/// The blocks as a strip: a cell for so many bytes, full where more than half of them are used. Cells of a selected block stand
/// out.
pub fn strip(blocks: &[BankBlock], selected: Option<usize>, columns: usize, style: &Style) -> Line {
    let total: u64 = blocks.iter().map(|block| block.bytes).sum::<u64>().max(1);
    let (mut line, mut block, mut start) = (Vec::new(), 0, 0);
    for cell in 0..columns as u64 {
        let (from, to) = (share(total, cell, columns), share(total, cell + 1, columns));
        let (mut used, mut is_selected) = (0, false);
        while block < blocks.len() && start < to {
            let end = start + blocks[block].bytes;
            is_selected |= selected == Some(block) && end > from;
            if blocks[block].used_by.is_some() {
                used += end.min(to).saturating_sub(start.max(from));
            }
            if end > to {
                break;
            }
            (block, start) = (block + 1, end);
        }
        let is_full = used * 2 >= to - from && used > 0;
        let (glyph, tone) = if is_full {
            (style.glyphs().full, Tone::Buffers)
        } else if used > 0 {
            (if style.unicode { '▒' } else { '+' }, Tone::Buffers)
        } else {
            (style.glyphs().empty, Tone::Free)
        };
        line.push((glyph.to_string(), if is_selected { Tone::Selected } else { tone }));
    }
    line
}

/// `DRAM, each of 8 banks: 1.2 GiB of 4.0 GiB used`
pub fn title(area: &str, kind: &Kind, blocks: &[BankBlock]) -> String {
    let banks = kind.banks.as_ref().and_then(|banks| banks.count).unwrap_or(1);
    let is_used = |block: &&BankBlock| block.used_by.is_some();
    let used: u64 = blocks.iter().filter(is_used).map(|block| block.bytes).sum();
    let total: u64 = blocks.iter().map(|block| block.bytes).sum();
    let name = if kind.kind.eq_ignore_ascii_case(area) { area.to_owned() } else { format!("{area} {}", kind.kind) };
    let each = count(banks.into(), "bank", "banks");
    format!("{name}, each of {each}: {} of {} used", Bytes(used), Bytes(total))
}

/// The columns of a list of blocks.
pub fn columns() -> Vec<Column> {
    vec![
        Column::right("Address", 12),
        Column::right("Size", 10),
        Column::left("State", 5),
        Column::right("PID", 7),
        Column::right("Buffers", 7),
        Column::left("Label", 8).stretching(),
    ]
}

fn share(total: u64, part: u64, parts: usize) -> u64 {
    (u128::from(total) * u128::from(part) / parts.max(1) as u128) as u64
}

/// Blocks that are listed for each kind; more of them are counted.
const LISTED: usize = 24;

/// The maps of all chips.
pub fn text(view: &View, style: &Style) -> String {
    let mut page = Page::new(Style { columns: style.columns.clamp(60, 160), ..*style });
    for chip in &view.chips {
        for (area, kinds) in [("DRAM", &chip.dram.kinds), ("L1", &chip.l1.kinds)] {
            for kind in kinds {
                if let Some(blocks) = blocks(view, chip, kind) {
                    draw(&mut page, chip, (area, kind), &blocks);
                }
            }
        }
    }
    if page.text.is_empty() {
        page.text += "No buffer with an address: they are known of processes that run with the agent (ttmon run).\n";
    }
    page.text
}

fn draw(page: &mut Page, chip: &Chip, (area, kind): (&str, &Kind), blocks: &[BankBlock]) {
    let (style, glyphs, inner) = (page.style, page.style.glyphs(), page.style.columns - 2);
    page.rule(&[inner], glyphs.horizontal, glyphs.top);
    page.texts(vec![(format!(" device {}  {}", clean(&chip.id), title(area, kind, blocks)), Tone::Strong)]);
    let mut line = vec![(" ".to_owned(), Tone::Plain)];
    line.extend(strip(blocks, None, inner - 2, &style));
    page.texts(line);
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    // The largest are worth the most, in the order of their addresses.
    let mut sizes: Vec<u64> = blocks.iter().map(|block| block.bytes).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let least = sizes.get(LISTED - 1).copied().unwrap_or(0);
    let listed: Vec<&BankBlock> = blocks.iter().filter(|block| block.bytes >= least).take(LISTED).collect();
    let rows = listed.iter().map(|block| cells(block, &style)).collect();
    page.grid(columns(), rows);
    if listed.len() < blocks.len() {
        let text =
            format!(" and {} smaller; --csv lists all", count((blocks.len() - listed.len()) as u64, "block", "blocks"));
        page.texts(vec![(text, Tone::Faint)]);
    }
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
}

/// The row of one block.
pub fn cells(block: &BankBlock, style: &Style) -> Vec<Cell> {
    let absent = style.glyphs().absent;
    let address = block.address.map_or(absent.to_owned(), |address| format!("{address:#x}"));
    let mut cells = vec![Cell::plain(address), Cell::plain(Bytes(block.bytes).to_string())];
    match &block.used_by {
        None => cells.extend(["free", "", "", ""].map(|text| Cell::Text(text.into(), Tone::Faint))),
        Some(owner) => cells.extend([
            Cell::plain("used"),
            Cell::plain(owner.pid.map_or(absent.to_owned(), |pid| pid.to_string())),
            Cell::plain(owner.buffers.to_string()),
            Cell::plain(clean(owner.label.as_deref().unwrap_or(""))),
        ]),
    }
    cells
}

/// All blocks as CSV, in bytes and in addresses of a bank.
pub fn csv(view: &View) -> String {
    let mut text = "device,kind,address,bytes,state,pid,buffers\n".to_owned();
    for chip in &view.chips {
        for kind in chip.dram.kinds.iter().chain(&chip.l1.kinds) {
            for block in blocks(view, chip, kind).unwrap_or_default() {
                let address = block.address.map(|address| format!("{address:#x}")).unwrap_or_default();
                let owner = block.used_by.as_ref();
                let pid = owner.and_then(|owner| owner.pid).map(|pid| pid.to_string()).unwrap_or_default();
                let buffers = owner.map(|owner| owner.buffers.to_string()).unwrap_or_default();
                let state = if owner.is_some() { "used" } else { "free" };
                let line = [&chip.id, &kind.kind, &address, &block.bytes.to_string(), state, &pid, &buffers];
                text += &line.map(clean).join(",");
                text.push('\n');
            }
        }
    }
    text
}

/// The memory of each chip as CSV, a line for each kind. What is not known is empty.
pub fn chips_csv(view: &View) -> String {
    let (peak, free, largest) = (PEAK_BYTES.name, BANK_FREE.name, BANK_LARGEST_FREE.name);
    let mut text = format!("device,area,kind,used_bytes,{peak},total_bytes,{free},{largest},banks,buffers\n");
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0.to_string()).unwrap_or_default();
    for chip in &view.chips {
        for (name, area) in [("dram", &chip.dram), ("l1", &chip.l1)] {
            for kind in &area.kinds {
                let banks = kind.banks.as_ref();
                let line = [
                    clean(&chip.id).into_owned(),
                    name.to_owned(),
                    kind.kind.clone(),
                    bytes(kind.used_bytes),
                    bytes(kind.peak_bytes),
                    bytes(area.total_bytes),
                    bytes(banks.and_then(|banks| banks.free_bytes)),
                    bytes(banks.and_then(|banks| banks.largest_free_bytes)),
                    banks.and_then(|banks| banks.count).map(|count| count.to_string()).unwrap_or_default(),
                    kind.buffers.map(|count| count.to_string()).unwrap_or_default(),
                ];
                text += &line.join(",");
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::view::{Banks, Buffer};

    fn buffer(pid: u32, address: u64, bytes: u64) -> Buffer {
        let (kind, devices) = ("dram".to_owned(), vec!["0".to_owned()]);
        Buffer { pid: Some(pid), devices, kind, address, bank_bytes: Some(Bytes(bytes)), ..Buffer::default() }
    }

    fn view(buffers: Vec<Buffer>) -> View {
        let banks = Banks { count: Some(8), allocatable_bytes: Some(Bytes(1000)), ..Banks::default() };
        let kind = Kind { kind: "dram".into(), banks: Some(banks), used_bytes: Some(Bytes(400)), ..Kind::default() };
        let mut chip = Chip { id: "0".into(), ..Chip::default() };
        chip.dram.kinds.push(kind);
        let snapshot = model::Snapshot::empty();
        View { chips: vec![chip], buffers, ..crate::memory::gather::view(&snapshot, Vec::new(), Vec::new()) }
    }

    #[test]
    fn buffers_side_by_side_are_one_block_and_gaps_are_free() {
        let view =
            view(vec![buffer(7, 0x100, 100), buffer(7, 0x164, 100), buffer(8, 0x300, 100), buffer(7, 0x320, 100)]);
        let all = blocks(&view, &view.chips[0], &view.chips[0].dram.kinds[0]).unwrap();
        let short: Vec<_> = all
            .iter()
            .map(|block| (block.address, block.bytes, block.used_by.as_ref().map(|owner| (owner.pid, owner.buffers))))
            .collect();
        assert_eq!(
            short,
            [
                (Some(0x100), 200, Some((Some(7), 2))),
                (Some(0x1c8), 312, None),
                (Some(0x300), 100, Some((Some(8), 1))),
                // What two allocators hand out is counted once.
                (Some(0x364), 32, Some((Some(7), 1))),
                (None, 356, None),
            ]
        );
        assert_eq!(all.iter().map(|block| block.bytes).sum::<u64>(), 1000);
    }

    #[test]
    fn the_strip_is_proportional_within_half_a_cell() {
        let style = Style { columns: 80, rows: None, color: false, unicode: true };
        for (used, columns) in [(0u64, 40usize), (1, 40), (250, 40), (500, 33), (999, 20), (1000, 7)] {
            let owner = BlockOwner { pid: None, buffers: 1, label: None };
            let all = [
                BankBlock { address: Some(0), bytes: used, used_by: Some(owner) },
                BankBlock { address: None, bytes: 1000 - used, used_by: None },
            ];
            let full = strip(&all, None, columns, &style).iter().filter(|(text, _)| text == "▇").count();
            let exact = used as f64 * columns as f64 / 1000.0;
            assert!((full as f64 - exact).abs() <= 0.51, "{used} {columns} {full} {exact}");
        }
    }

    #[test]
    fn maps_and_csv_have_addresses() {
        let one = view(vec![buffer(7, 0x100, 400)]);
        let style = Style { columns: 70, rows: None, color: false, unicode: true };
        expect_test::expect![[r#"
            ┌────────────────────────────────────────────────────────────────────┐
            │ device 0  DRAM, each of 8 banks: 400 B of 1.0 KiB used             │
            │ ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ │
            ├────────────────────────────────────────────────────────────────────┤
            │      Address       Size State     PID Buffers Label                │
            ╞════════════════════════════════════════════════════════════════════╡
            │        0x100      400 B used        7       1                      │
            │            –      600 B free                                       │
            └────────────────────────────────────────────────────────────────────┘
        "#]]
        .assert_eq(&text(&one, &style));
        expect_test::expect![[r#"
            device,kind,address,bytes,state,pid,buffers
            0,dram,0x100,400,used,7,1
            0,dram,,600,free,,
        "#]]
        .assert_eq(&csv(&one));
        expect_test::expect![[r#"
            device,area,kind,used_bytes,peak_bytes,total_bytes,bank_free_bytes,bank_largest_free_bytes,banks,buffers
            0,dram,dram,400,,,,,8,
        "#]]
        .assert_eq(&chips_csv(&one));
        assert!(text(&view(vec![]), &style).starts_with("No buffer with an address"));
    }
}
