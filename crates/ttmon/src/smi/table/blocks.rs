//! A block of two or three lines for each device.

use model::figure::device::{AICLK, ASIC_TEMP, FAN, POWER, UTILIZATION};
use model::{Bytes, Device, Snapshot};
use show::activity::utilization;
use show::bar::{self, Sizes};
use show::figures::*;
use show::grid::Page;
use show::machine::{MachineTotals, SumOfLimit};
use show::style::{Style, Tone};
use show::text::Align::{Left, Right};

/// The left half has a fixed width; the right one, with the bars, takes the rest.
const LEFT: usize = 46;

pub fn draw(page: &mut Page, snapshot: &Snapshot) {
    let (style, glyphs) = (page.style, page.style.glyphs());
    let columns = [LEFT, style.columns - 3 - LEFT];
    page.rule(&columns, glyphs.horizontal, [glyphs.middle[0], glyphs.top[1], glyphs.middle[2]]);
    let plain = |text: &str| (text.to_owned(), Tone::Plain);
    let memory = style.cell(" Memory", columns[1] - 13, Left, Tone::Plain) + "used / total ";
    page.line(&[first(&style, ["Dev", "Board", "PCI address", "PCIe link"].map(plain)), memory]);
    page.line(&[second(&style, ["State", "Util", "rpm", "Temp", "Power", "MHz"].map(plain)), " ".repeat(columns[1])]);
    page.rule(&columns, glyphs.double, glyphs.joint);
    for (i, device) in snapshot.devices.iter().enumerate() {
        if i > 0 {
            page.rule(&columns, glyphs.horizontal, glyphs.middle);
        }
        block(page, device, columns[1]);
    }
    if snapshot.devices.len() > 1 {
        page.rule(&columns, glyphs.horizontal, glyphs.middle);
        totals(page, &snapshot.devices, columns[1]);
    }
    page.rule(&columns, glyphs.horizontal, glyphs.bottom);
}

fn first(style: &Style, [name, board, address, link]: [(String, Tone); 4]) -> String {
    let cells = [
        style.cell(&name.0, 4, Right, name.1),
        style.cell(&board.0, 16, Left, board.1),
        style.cell(&address.0, 12, Left, address.1),
        style.cell(&link.0, 9, Right, link.1),
    ];
    format!("{}  ", cells.join(" "))
}

fn second(style: &Style, [state, utilization, fan, temperature, power, clock]: [(String, Tone); 6]) -> String {
    let cells = [
        style.cell(&state.0, 9, Left, state.1),
        style.cell(&utilization.0, 5, Right, utilization.1),
        style.cell(&fan.0, 5, Right, fan.1),
        style.cell(&temperature.0, 8, Right, temperature.1),
        style.cell(&power.0, 8, Right, power.1),
        style.cell(&clock.0, 4, Right, clock.1),
    ];
    format!(" {} ", cells.join(" "))
}

fn block(page: &mut Page, device: &Device, right: usize) {
    let style = page.style;
    let glyphs = style.glyphs();
    let first = first(
        &style,
        [
            (name(device, glyphs), Tone::Strong),
            (board(device, glyphs), Tone::Strong),
            (address(device, glyphs), Tone::Plain),
            (link(device).unwrap_or_default(), link_tone(device)),
        ],
    );
    let second = second(
        &style,
        [
            (device.state.name().to_owned(), Tone::of_state(device.state)),
            (utilization(&device.activity, glyphs), tone(&UTILIZATION, device)),
            figure(&FAN, device, "", glyphs),
            figure(&ASIC_TEMP, device, glyphs.degree, glyphs),
            figure(&POWER, device, "W", glyphs),
            figure(&AICLK, device, "", glyphs),
        ],
    );
    let memory = &device.memory;
    let usage = |name, used, total, sizes| {
        let figures = used_of_total(used, total, memory.untracked_processes, glyphs);
        usage(name, &figures, sizes, right, &style)
    };
    page.line(&[first, usage("DRAM", memory.dram_used, memory.dram_total, Sizes::of_dram(memory))]);
    page.line(&[second, usage("L1", memory.l1_used, memory.l1_total, Sizes::of_l1(memory))]);
    let (traffic, remark) = (traffic(device, &style), remark(device));
    if traffic.is_some() || remark.is_some() {
        let text = |text: Option<String>| text.map_or_else(String::new, |text| format!(" {text}"));
        page.line(&[
            style.cell(&text(traffic), LEFT, Left, Tone::Plain),
            style.cell(&text(remark), right, Left, Tone::Warning),
        ]);
    }
}

/// All devices together, in two lines that are as those of one device.
fn totals(page: &mut Page, devices: &[Device], right: usize) {
    let (style, totals) = (page.style, MachineTotals::of(devices));
    let glyphs = style.glyphs();
    let plain = |text: String| (text, Tone::Plain);
    let absent = || glyphs.absent.to_owned();
    let state = match totals.troubled.is_empty() {
        true => (format!("{} ok", totals.ok), Tone::Good),
        false => (format!("{} of {} ok", totals.ok, totals.chips), Tone::Critical),
    };
    let power = |sum: SumOfLimit| match sum.limit {
        Some(limit) => format!("{:.0}/{limit:.0}W", sum.sum),
        None => format!("{:.0}W", sum.sum),
    };
    let first = first(&style, [("all".into(), Tone::Strong), state, plain(String::new()), plain(String::new())]);
    let second = second(
        &style,
        [
            plain(String::new()),
            plain(totals.utilization.map_or_else(absent, |(mean, _)| format!("{mean:.0}%"))),
            plain(String::new()),
            plain(totals.hottest.map_or_else(absent, |(value, _)| format!("{value:.0}{}", glyphs.degree))),
            plain(totals.power.map_or_else(absent, power)),
            plain(String::new()),
        ],
    );
    let memory = |name, sum: Option<SumOfLimit>, stale| {
        let (used, total) = (sum.map(|sum| bytes(sum.sum)), sum.and_then(|sum| sum.limit).map(bytes));
        let figures = used_of_total(used, total, sum.is_some_and(|sum| sum.is_lower_bound).into(), glyphs);
        usage(name, &figures, Sizes::of_sums(used, total, stale), right, &style)
    };
    page.line(&[first, memory("DRAM", totals.dram, totals.stale_dram)]);
    page.line(&[second, memory("L1", totals.l1, totals.stale_l1)]);
}

fn bytes(value: f64) -> Bytes {
    Bytes(value.max(0.0) as u64)
}

/// ` DRAM ▇▇▇▇╳░░░  12.4/32.0 GiB `
fn usage(name: &str, figures: &str, sizes: Option<Sizes>, columns: usize, style: &Style) -> String {
    let tone = sizes.as_ref().map_or(Tone::Faint, |sizes| part_tone(sizes.part(), Tone::Plain));
    let bar = style.painted(&bar::pieces(sizes.as_ref(), columns - 6 - 17, Tone::Good, style));
    format!(" {name:<5}{bar}{} ", style.cell(figures, 16, Right, tone))
}

/// `PCIe → 1.2 GiB/s  ← 3.4 MiB/s`, once there are two samples.
fn traffic(device: &Device, style: &Style) -> Option<String> {
    let (there, back) = (device.pcie.host_to_device?, device.pcie.device_to_host?);
    let glyphs = style.glyphs();
    let (there, back) = (there.to_string(), back.to_string());
    Some(format!("PCIe  {} {there:<13} {} {back}", glyphs.to_device, glyphs.to_host))
}
