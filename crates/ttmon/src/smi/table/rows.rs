//! A line for each device, where there are too many for blocks.

use model::figure::Figure;
use model::figure::device::{AICLK, ASIC_TEMP, FAN, POWER, UTILIZATION};
use model::{Bytes, BytesPerSecond, Device, Memory, Snapshot};
use show::activity::utilization;
use show::bar::Sizes;
use show::figures::*;
use show::grid::{Cell, Column, Page};
use show::machine::{MachineTotals, SumOfLimit};
use show::memory::draw::chips::{short_figures, short_figures_width};
use show::style::{Style, Tone};
use show::text::width;

/// With so many columns there is one for the fan.
pub const WIDE: usize = 104;

/// A line for each device, and one for all of them.
pub fn draw(page: &mut Page, snapshot: &Snapshot) {
    draw_with(page, snapshot, snapshot.devices.len() > 1);
}

/// A line for each device alone, where every line counts.
pub fn draw_low(page: &mut Page, snapshot: &Snapshot) {
    draw_with(page, snapshot, false);
}

fn draw_with(page: &mut Page, snapshot: &Snapshot, with_totals: bool) {
    let (style, glyphs) = (page.style, page.style.glyphs());
    let inner = style.columns - 2;
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    let (columns, mut rows) = grid(&snapshot.devices.iter().collect::<Vec<_>>(), &style);
    let devices = rows.len();
    if with_totals {
        rows.push(totals(&snapshot.devices, &columns, &style));
    }
    page.groups(columns, rows, &[(None, devices), (None, 1)][..if with_totals { 2 } else { 1 }]);
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
}

/// The columns that there is reason for, and the row of each device.
pub fn grid(devices: &[&Device], style: &Style) -> (Vec<Column>, Vec<Vec<Cell>>) {
    let wide = style.columns >= WIDE;
    let rates = wide && devices.iter().any(|device| device.pcie.host_to_device.is_some());
    let boards = devices.iter().map(|device| width(&short_board(device, style))).max().unwrap_or(0);
    let power = if power_limit(devices) >= KILO { 8 } else { 7 };
    let mut columns = vec![
        Column::right("Dev", 3),
        Column::left("Board", boards.clamp(5, 9)).rank(4),
        Column::left("PCI", 7).rank(5),
        Column::left("State", 6),
        Column::right("Util", 4).rank(2),
        Column::right("Temp", 5),
        Column::right("Power", power).rank(1),
        Column::right("MHz", 4).rank(6),
        Column::left("DRAM", 4).stretching().rank(3),
        Column::right("used/total", memory_width(devices, |memory| memory.dram_total)).head_alone("DRAM"),
        Column::right("L1", memory_width(devices, |memory| memory.l1_total)).rank(2),
    ];
    if wide {
        columns.insert(5, Column::right("Fan", 5));
    }
    if rates {
        columns.push(Column::right("PCIe in", 8).rank(8));
        columns.push(Column::right("out", 8).rank(7));
    }
    let one_domain = devices.iter().flat_map(|d| &d.pci_address).all(|address| address.0.starts_with("0000:"));
    let rows = devices.iter().map(|device| row(device, style, one_domain, wide, rates)).collect();
    (columns, rows)
}

/// From so many watts on, those of all devices are in kilowatts.
const KILO: f64 = 1000.0;

fn power_limit(devices: &[&Device]) -> f64 {
    devices.iter().filter_map(|device| Some(device.power_max?.0)).sum()
}

/// How wide the memory of any device and of all gets. It does not change with what is used.
fn memory_width(devices: &[&Device], total: fn(&Memory) -> Option<Bytes>) -> usize {
    let totals = || devices.iter().filter_map(|device| total(&device.memory));
    let is_at_least = devices.iter().any(|device| device.memory.untracked_processes > 0);
    short_figures_width(totals().chain([totals().sum()]), is_at_least)
}

/// All devices together: how many answer, the mean utilization, the hottest, and sums.
fn totals(devices: &[Device], columns: &[Column], style: &Style) -> Vec<Cell> {
    let (totals, glyphs) = (MachineTotals::of(devices), style.glyphs());
    let absent = || glyphs.absent.to_owned();
    let state = match totals.troubled.is_empty() {
        true => Cell::Text(format!("{} ok", totals.ok), Tone::Good),
        false => Cell::Text(format!("{}/{}", totals.ok, totals.chips), Tone::Critical),
    };
    let bytes = |value: f64| Bytes(value.max(0.0) as u64);
    let memory = |sum: Option<SumOfLimit>| {
        let (used, total) = (sum.map(|sum| bytes(sum.sum)), sum.and_then(|sum| sum.limit).map(bytes));
        Cell::plain(short_figures(used, total, sum.is_some_and(|sum| sum.is_lower_bound), glyphs))
    };
    let power = |sum: SumOfLimit| match sum.limit {
        // Watts would not fit.
        Some(limit) if limit >= KILO => format!("{:.1}/{:.1}k", sum.sum / KILO, limit / KILO),
        Some(limit) => format!("{:.0}/{limit:.0}", sum.sum),
        None => format!("{:.0}", sum.sum),
    };
    let dram =
        totals.dram.and_then(|sum| Sizes::of_sums(Some(bytes(sum.sum)), sum.limit.map(bytes), totals.stale_dram));
    let cell = |column: &Column| match column.head {
        "Dev" => Cell::Text("all".into(), Tone::Strong),
        "State" => state.clone(),
        "Util" => Cell::plain(totals.utilization.map_or_else(absent, |(mean, _)| format!("{mean:.0}%"))),
        "Temp" => Cell::plain(totals.hottest.map_or_else(absent, |(value, _)| format!("{value:.0}"))),
        "Power" => Cell::plain(totals.power.map_or_else(absent, power)),
        "DRAM" => Cell::Bar(dram.clone(), Tone::Good),
        "used/total" => memory(totals.dram),
        "L1" => memory(totals.l1),
        _ => Cell::plain(""),
    };
    columns.iter().map(cell).collect()
}

fn row(device: &Device, style: &Style, one_domain: bool, wide: bool, rates: bool) -> Vec<Cell> {
    let memory = &device.memory;
    let address = address(device, style.glyphs());
    let address = if one_domain { address.trim_start_matches("0000:") } else { &address };
    let glyphs = style.glyphs();
    let figures = |used: Option<Bytes>, total: Option<Bytes>| {
        Cell::plain(short_figures(used, total, memory.untracked_processes > 0, glyphs))
    };
    let measured = |one: &Figure<Device>, unit: &str| {
        let (text, tone) = figure(one, device, unit, glyphs);
        Cell::Text(text, tone)
    };
    let rate = |rate: Option<BytesPerSecond>| Cell::plain(rate.map_or(glyphs.absent.to_owned(), BytesPerSecond::short));
    let mut cells = vec![
        Cell::Text(name(device, glyphs), Tone::Strong),
        Cell::plain(short_board(device, style)),
        Cell::Text(address.to_owned(), link_tone(device)),
        Cell::Text(device.state.name().to_owned(), Tone::of_state(device.state)),
        Cell::Text(utilization(&device.activity, glyphs), tone(&UTILIZATION, device)),
        measured(&ASIC_TEMP, ""),
        measured(&POWER, ""),
        measured(&AICLK, ""),
        Cell::Bar(Sizes::of_dram(memory), Tone::Good),
        figures(memory.dram_used, memory.dram_total),
        figures(memory.l1_used, memory.l1_total),
    ];
    if wide {
        cells.insert(5, measured(&FAN, "rpm"));
    }
    if rates {
        cells.push(rate(device.pcie.host_to_device));
        cells.push(rate(device.pcie.device_to_host));
    }
    cells
}

/// `galaxy-wh`
fn short_board(device: &Device, style: &Style) -> String {
    board(device, style.glyphs()).replace("wormhole", "wh").replace("blackhole", "bh")
}
