//! A line for each device, where there are too many for blocks.

use model::figure::Figure;
use model::figure::device::{AICLK, ASIC_TEMP, FAN, POWER};
use model::{Bytes, BytesPerSecond, Device, Snapshot};
use show::figures::*;
use show::grid::{Cell, Column, Page};
use show::memory::draw::chips::short_figures;
use show::style::{Style, Tone};

/// With so many columns there is one for the fan.
pub const WIDE: usize = 104;

pub fn draw(page: &mut Page, snapshot: &Snapshot) {
    let (style, glyphs) = (page.style, page.style.glyphs());
    let inner = style.columns - 2;
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    let (columns, rows) = grid(&snapshot.devices.iter().collect::<Vec<_>>(), &style);
    page.grid(columns, rows);
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
}

/// The columns that there is reason for, and the row of each device.
pub fn grid(devices: &[&Device], style: &Style) -> (Vec<Column>, Vec<Vec<Cell>>) {
    let wide = style.columns >= WIDE;
    let rates = wide && devices.iter().any(|device| device.pcie.host_to_device.is_some());
    let mut columns = vec![
        Column::right("Dev", 3),
        Column::left("Board", 5).rank(3),
        Column::left("PCI", 7).rank(5),
        Column::left("State", 6),
        Column::right("Temp", 5),
        Column::right("Power", 7),
        Column::right("MHz", 4).rank(4),
        Column::left("DRAM", 5).stretching().rank(2),
        Column::right("used/total", 10),
        Column::right("L1", 10).rank(1),
    ];
    if wide {
        columns.insert(4, Column::right("Fan", 5));
    }
    if rates {
        columns.push(Column::right("PCIe in", 8).rank(7));
        columns.push(Column::right("out", 8).rank(6));
    }
    let one_domain = devices.iter().flat_map(|d| &d.pci_address).all(|address| address.0.starts_with("0000:"));
    let rows = devices.iter().map(|device| row(device, style, one_domain, wide, rates)).collect();
    (columns, rows)
}

fn row(device: &Device, style: &Style, one_domain: bool, wide: bool, rates: bool) -> Vec<Cell> {
    let memory = &device.memory;
    let address = address(device, style.glyphs());
    let address = if one_domain { address.trim_start_matches("0000:") } else { &address };
    let board = board(device, style.glyphs()).replace("wormhole", "wh").replace("blackhole", "bh");
    let tone = memory_tone(memory.dram_used, memory.dram_total);
    let glyphs = style.glyphs();
    let figures = |used: Option<Bytes>, total: Option<Bytes>| {
        Cell::plain(short_figures(used, total, memory.untracked_processes > 0, glyphs))
    };
    let measured = |one: &Figure<Device>, unit: &str| {
        let (text, tone) = figure(one, device, unit, glyphs);
        Cell::Text(text, tone)
    };
    let rate = |rate: Option<BytesPerSecond>| {
        Cell::plain(rate.map_or(glyphs.absent.to_owned(), |rate| Bytes(rate.0 as u64).short() + "/s"))
    };
    let mut cells = vec![
        Cell::Text(name(device, glyphs), Tone::Strong),
        Cell::plain(board),
        Cell::Text(address.to_owned(), link_tone(device)),
        Cell::Text(device.state.name().to_owned(), Tone::of_state(device.state)),
        measured(&ASIC_TEMP, ""),
        measured(&POWER, ""),
        measured(&AICLK, ""),
        Cell::Bar(part(memory.dram_used, memory.dram_total), tone),
        figures(memory.dram_used, memory.dram_total),
        figures(memory.l1_used, memory.l1_total),
    ];
    if wide {
        cells.insert(4, measured(&FAN, "rpm"));
    }
    if rates {
        cells.push(rate(device.pcie.host_to_device));
        cells.push(rate(device.pcie.device_to_host));
    }
    cells
}
