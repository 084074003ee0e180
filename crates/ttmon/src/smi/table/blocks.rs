//! A block of two or three lines for each device.

use model::{Bytes, Device, Snapshot};
use show::figures::*;
use show::grid::Page;
use show::style::{Style, Tone};
use show::text::Align::{self, Left, Right};

/// The left half has a fixed width; the right one, with the bars, takes the rest.
const LEFT: usize = 46;

pub fn draw(page: &mut Page, snapshot: &Snapshot) {
    let (style, glyphs) = (page.style, page.style.glyphs());
    let columns = [LEFT, style.columns - 3 - LEFT];
    page.rule(&columns, glyphs.horizontal, [glyphs.middle[0], glyphs.top[1], glyphs.middle[2]]);
    let plain = |text: &str| (text.to_owned(), Tone::Plain);
    let memory = style.cell(" Memory", columns[1] - 13, Left, Tone::Plain) + "used / total ";
    let first = half(&style, FIRST, ["Dev", "Board", "PCI address", "PCIe link"].map(plain));
    let second = half(&style, SECOND, ["State", "Fan", "Temp", "Power", "AICLK"].map(plain));
    page.line(&[first + "  ", memory]);
    page.line(&[format!(" {second} "), " ".repeat(columns[1])]);
    page.rule(&columns, glyphs.double, glyphs.joint);
    for (i, device) in snapshot.devices.iter().enumerate() {
        if i > 0 {
            page.rule(&columns, glyphs.horizontal, glyphs.middle);
        }
        block(page, device, columns[1]);
    }
    page.rule(&columns, glyphs.horizontal, glyphs.bottom);
}

/// The cells of the two lines of the left half: their columns and sides.
const FIRST: [(usize, Align); 4] = [(4, Right), (16, Left), (12, Left), (9, Right)];
const SECOND: [(usize, Align); 5] = [(9, Left), (8, Right), (8, Right), (8, Right), (7, Right)];

fn half<const N: usize>(style: &Style, layout: [(usize, Align); N], cells: [(String, Tone); N]) -> String {
    let cells = cells.iter().zip(layout).map(|((text, tone), (columns, side))| style.cell(text, columns, side, *tone));
    cells.collect::<Vec<_>>().join(" ")
}

fn block(page: &mut Page, device: &Device, right: usize) {
    let style = page.style;
    let unit = |figure: String, unit: &str| if figure == style.glyphs().absent { figure } else { figure + unit };
    let first = [
        (name(device, &style), Tone::Strong),
        (board(device, &style), Tone::Strong),
        (address(device, &style), Tone::Plain),
        (link(device), link_tone(device)),
    ];
    let second = [
        (device.state.name().to_owned(), state_tone(device.state)),
        (fan(device, &style), Tone::Plain),
        (unit(temperature(device, &style), style.glyphs().degree), temperature_tone(device)),
        (unit(power(device, &style), "W"), power_tone(device)),
        (unit(clock(device, &style), "MHz"), Tone::Plain),
    ];
    let memory = &device.memory;
    let usage = |name, used, total| usage(name, used, total, memory.untracked_processes, right, &style);
    page.line(&[half(&style, FIRST, first) + "  ", usage("DRAM", memory.dram_used, memory.dram_total)]);
    page.line(&[format!(" {} ", half(&style, SECOND, second)), usage("L1", memory.l1_used, memory.l1_total)]);
    let (traffic, remark) = (traffic(device, &style), remark(device));
    if traffic.is_some() || remark.is_some() {
        let text = |text: Option<String>| text.map_or_else(String::new, |text| format!(" {text}"));
        page.line(&[
            style.cell(&text(traffic), LEFT, Left, Tone::Plain),
            style.cell(&text(remark), right, Left, Tone::Warning),
        ]);
    }
}

/// ` DRAM ████░░░░  12.4/32.0 GiB `
fn usage(
    name: &str,
    used: Option<Bytes>,
    total: Option<Bytes>,
    untracked: u32,
    columns: usize,
    style: &Style,
) -> String {
    let figures = used_of_total(used, total, untracked, style);
    let tone = memory_tone(used, total);
    let bar = style.bar(part(used, total), columns - 6 - 17, tone);
    let figures = style.cell(&figures, 16, Right, if tone == Tone::Good { Tone::Plain } else { tone });
    format!(" {name:<5}{bar}{figures} ")
}

/// `PCIe → 1.2 GiB/s  ← 3.4 MiB/s`, once there are two samples.
fn traffic(device: &Device, style: &Style) -> Option<String> {
    let (there, back) = (device.pcie.host_to_device?, device.pcie.device_to_host?);
    let glyphs = style.glyphs();
    let (there, back) = (there.to_string(), back.to_string());
    Some(format!("PCIe  {} {there:<13} {} {back}", glyphs.to_device, glyphs.to_host))
}
