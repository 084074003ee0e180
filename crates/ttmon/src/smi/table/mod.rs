//! The default view: devices and processes in nvidia-smi's shape.
//!
//! Up to eight devices get a block of two or three lines each; more of them get a line each, so that a Galaxy's 32 stay
//! readable, and so do fewer on a small terminal. Eighty columns are enough; more make the bars and names longer, fewer cost
//! columns.

mod blocks;
mod deep;
pub mod fleet;
pub mod groups;
mod processes;
mod rows;

use model::figure::device::*;
use model::figure::{Figure, Section};
use model::{Alert, Device, DeviceId, Fault, Severity, Snapshot, UtilizationUnknown};
use show::grid::Page;
use show::style::{Style, Tone};
use show::text::{Align, clean, in_short, width, wrapped};

/// More devices than this get a line each.
const BLOCKS: usize = 8;
/// Blocks need so many columns.
const BLOCK_WIDTH: usize = 80;
const NARROWEST: usize = 40;
const WIDEST: usize = 160;
/// Faults that are listed below the tables.
const NOTES: usize = 6;

/// Whether the table of so many devices has this figure, or needs it for another one. What it does not need is not read.
pub fn shows(figure: &Figure<Device>, devices: usize, style: &Style) -> bool {
    let is = |others: &[&Figure<Device>]| others.iter().any(|other| std::ptr::eq(*other, figure));
    let may_be_blocks = devices <= BLOCKS && style.columns >= BLOCK_WIDTH;
    // Whether the link could be better is a colour.
    let link_is_seen = may_be_blocks || style.color;
    match figure.section {
        Section::Power => !is(&[&VCORE, &VCORE_MAX, &CURRENT, &CURRENT_MAX, &ENERGY_TOTAL]),
        Section::Firmware => false,
        _ if is(&[&AXICLK, &ARCCLK, &THERMAL_TRIPS, &THERMAL_TRIPS_TOTAL, &NUMA_NODE]) => false,
        _ if is(&[&FAN]) => may_be_blocks || style.columns >= rows::WIDE,
        _ if is(&[&PCIE_GENERATION, &PCIE_WIDTH]) => link_is_seen,
        _ if is(&[&PCIE_MAX_GENERATION, &PCIE_MAX_WIDTH, &LINK_DEGRADED]) => style.color,
        _ => true,
    }
}

pub fn text(snapshot: &Snapshot, style: &Style, time: &str) -> String {
    let style = Style { columns: style.columns.clamp(NARROWEST, WIDEST), ..*style };
    let is_narrow = snapshot.devices.len() > BLOCKS || style.columns < BLOCK_WIDTH;
    // Processes that are in view are worth more than devices at length.
    let forms = [blocks::draw, rows::draw, rows::draw_low];
    let mut text = String::new();
    for form in &forms[usize::from(is_narrow)..] {
        text = page(snapshot, style, time, *form);
        if style.rows.is_none_or(|rows| text.lines().count() <= rows) {
            return text;
        }
    }
    text
}

fn page(snapshot: &Snapshot, style: Style, time: &str, devices: fn(&mut Page, &Snapshot)) -> String {
    let mut page = Page::new(style);
    page.text += &format!("{time}\n");
    title(&mut page, snapshot);
    devices(&mut page, snapshot);
    deep::draw(&mut page, snapshot);
    processes::draw(&mut page, &[(None, snapshot)]);
    notes(&mut page, snapshot);
    page.text
}

/// Name, version, driver and host, above the devices. The frame is left open for what follows.
fn title(page: &mut Page, snapshot: &Snapshot) {
    let (style, inner) = (page.style, page.style.columns - 2);
    page.rule(&[inner], style.glyphs().horizontal, style.glyphs().top);
    let driver = snapshot.host.driver_version.as_deref().unwrap_or("unknown");
    let left = format!(" ttmon {}   driver {}", env!("CARGO_PKG_VERSION"), clean(driver));
    let (right, tone) = match &snapshot.host {
        host if host.simulated => (" SIMULATED ".to_owned(), Tone::Warning),
        host => (format!(" {} ", clean(host.name.as_deref().unwrap_or(""))), Tone::Plain),
    };
    let taken = width(&right).min(inner / 2);
    let left = style.cell(&left, inner - taken, Align::Left, Tone::Strong);
    page.line(&[left + &style.cell(&right, taken, Align::Right, tone)]);
}

/// What is wrong and what went wrong, below the tables.
fn notes(page: &mut Page, snapshot: &Snapshot) {
    snapshot.alerts.iter().for_each(|alert| list_alert(page, None, alert));
    let note = |fault: &Fault| format!("{}: {}", clean(&fault.path), clean(&fault.reason));
    let mut notes = why_unknown(snapshot);
    notes.extend(deep::low_clocks(snapshot));
    notes.extend(deep::why_not_read(snapshot));
    notes.extend(snapshot.faults.iter().map(note));
    list_notes(page, notes);
}

/// `critical: hot: device 0: near its temperature limit`, behind the name of the machine where there are several.
fn list_alert(page: &mut Page, host: Option<&str>, alert: &Alert) {
    let tone = match alert.severity {
        Severity::Critical => Tone::Critical,
        Severity::Warning => Tone::Warning,
        Severity::Info => Tone::Plain,
    };
    let host = host.map(|host| format!("{}: ", clean(host))).unwrap_or_default();
    let text = format!("{host}{}: {}", clean(&alert.name), clean(&alert.text));
    remark(page, &format!("{}: ", alert.severity.name()), tone, &text);
}

/// A line below the tables. In a narrow terminal it is parted between words.
fn remark(page: &mut Page, label: &str, tone: Tone, text: &str) {
    page.text += &page.style.paint(label, tone);
    let room = page.style.columns.saturating_sub(width(label)).max(20);
    let is_narrow = page.style.columns < BLOCK_WIDTH;
    let lines = if is_narrow { wrapped(text, room) } else { vec![text.to_owned()] };
    page.text += &lines.join(&format!("\n{}", " ".repeat(width(label))));
    page.text.push('\n');
}

/// Why the utilization of devices is not known, a line for each reason. That no process holds a device, or that it is behind
/// another one, the table shows already.
fn why_unknown(snapshot: &Snapshot) -> Vec<String> {
    let reason = |device: &Device| {
        let is_shown =
            |why: &UtilizationUnknown| matches!(why, UtilizationUnknown::NotInUse | UtilizationUnknown::RemoteChip);
        device.activity.utilization_unknown.filter(|why| !is_shown(why))
    };
    let note = |why: UtilizationUnknown| {
        let ids: Vec<&DeviceId> =
            snapshot.devices.iter().filter(|device| reason(device) == Some(why)).map(|device| &device.id).collect();
        let many = if ids.len() > 1 { "s" } else { "" };
        let remedy = if why == UtilizationUnknown::NoAgent { " (use ttmon run)" } else { "" };
        let (ids, why) = (Some(in_short(&ids)).filter(|ids| !ids.is_empty())?, why.name());
        Some(format!("utilization of device{many} {ids} unknown: {why}{remedy}"))
    };
    UtilizationUnknown::ALL.into_iter().filter_map(note).collect()
}

fn list_notes(page: &mut Page, notes: Vec<String>) {
    for note in notes.iter().take(NOTES) {
        remark(page, "note: ", Tone::Warning, note);
    }
    if notes.len() > NOTES {
        page.text += &format!("note: {} more; --json lists them all\n", notes.len() - NOTES);
    }
}
