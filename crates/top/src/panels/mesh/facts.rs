//! What is known of the selected chip: below the grid in a few lines, or beside it.

use super::super::devices::figures;
use super::chip::mark;
use super::links;
use super::plan::Plan;
use crate::paint::{Buffer, Rect, Tone, frame, put, rule, wrapped};
use crate::pieces::{self, Piece};
use crate::state::TopState;
use model::figure::device::{ASIC_TEMP, DRAM_USED, L1_USED, POWER};
use model::topology::{EthernetLink, LinkState, LiveLink, LiveLinks, LivePort, TopologySource};
use model::{Device, DeviceId, Process};
use show::command::display_name;
use show::text::count;

pub fn draw(state: &TopState, plan: &Plan, buf: &mut Buffer) {
    let Some(device) = state.selected_device() else { return };
    if plan.aside { draw_aside(state, device, plan.facts, buf) } else { draw_below(state, device, plan.facts, buf) }
}

/// A rule with its name, then the figures, the links, the processes and the remarks, as many as there is room for.
fn draw_below(state: &TopState, device: &Device, area: Rect, buf: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let theme = &state.theme;
    let (x, end) = (area.x.saturating_add(1), area.right());
    rule(buf, area, theme);
    let (mark, tone) = mark(device, theme);
    let mut title = vec![
        Piece::left(format!(" {} ", title(state, device)), Tone::Title, 0),
        Piece::left(format!(" {mark} {} ", figures::state(device)), tone, 1),
    ];
    title.extend(group(state, &device.id).map(|group| Piece::left(format!(" {group} "), Tone::Plain, 2)));
    title.extend(device.pci_address.as_ref().map(|address| Piece::left(format!(" {address} "), Tone::Plain, 3)));
    pieces::draw(buf, (x, area.y), end, title, 1, theme);

    let figures = figures_of(state, device).into_iter().zip(1..).map(|((name, text, tone), rank)| {
        let text = if matches!(name, "DRAM" | "L1" | "PCIe") { format!("{name} {text}") } else { text };
        Piece::left(text, tone, rank)
    });
    let processes: Vec<String> = processes(state, device).collect();
    let mut lines = vec![
        figures.collect(),
        vec![Piece::left(format!("links: {}", links_of(state, &device.id)), Tone::Plain, 0)],
        vec![match &processes[..] {
            [] => Piece::left("no process", Tone::Faint, 0),
            all => Piece::left(format!("held by {}", all.join(", ")), Tone::Plain, 0),
        }],
    ];
    let remarks = &state.places.topology.remarks;
    let room = usize::from(area.height - 1);
    // The processes of a chip are to be seen elsewhere too; what is doubtful about the picture only here.
    if !remarks.is_empty() && room <= lines.len() {
        lines.truncate(room.saturating_sub(1).max(1));
    }
    let left = room.saturating_sub(lines.len());
    let shown = if remarks.len() > left { left.saturating_sub(1) } else { remarks.len() };
    lines.extend(remarks.iter().take(shown).map(|remark| vec![Piece::left(remark, Tone::Warning, 0)]));
    if shown < remarks.len() {
        lines.push(vec![Piece::left(more(remarks.len() - shown, remarks), Tone::Warning, 0)]);
    }
    for (line, y) in lines.into_iter().zip(area.top() + 1..area.bottom()) {
        pieces::draw(buf, (x, y), end, line, 3, theme);
    }
}

/// The first of them itself where it is the only one.
fn more(count: usize, remarks: &[String]) -> String {
    match remarks {
        [only] => only.clone(),
        _ if count == remarks.len() => format!("{count} remarks about positions (needs a larger terminal)"),
        _ => format!("and {count} more remarks"),
    }
}

/// One fact in a line, in a frame of its own.
fn draw_aside(state: &TopState, device: &Device, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    let inner = frame(buf, area, &title(state, device), theme);
    let (x, end) = (inner.x.saturating_add(1), inner.right());
    let columns = usize::from(inner.width.saturating_sub(2)).max(1);
    let (mark, tone) = mark(device, theme);
    let mut lines = vec![("state", format!("{mark} {}", figures::state(device)), tone)];
    // A board is named by the title and the serial already.
    let group = group(state, &device.id).filter(|group| !group.contains(" serial "));
    lines.extend(group.map(|group| ("on", group, Tone::Plain)));
    lines.extend(device.pci_address.as_ref().map(|address| ("PCI", address.to_string(), Tone::Plain)));
    lines.extend(device.serial.as_ref().map(|serial| ("serial", serial.to_string(), Tone::Plain)));
    lines.push(("", String::new(), Tone::Plain));
    lines.extend(figures_of(state, device));
    lines.push(("", String::new(), Tone::Plain));
    let links = format!("links: {}", links_of(state, &device.id));
    lines.extend(wrapped(&links, columns).into_iter().map(|line| ("", line, Tone::Plain)));
    lines.push(("", String::new(), Tone::Plain));
    let before = lines.len();
    lines.extend(processes(state, device).map(|process| ("", format!("held by {process}"), Tone::Plain)));
    if lines.len() == before {
        lines.push(("", "no process".into(), Tone::Faint));
    }
    let remarks = &state.places.topology.remarks;
    let remarks: Vec<String> = remarks.iter().flat_map(|remark| wrapped(remark, columns)).collect();
    if !remarks.is_empty() {
        // Processes give way: the remarks are nowhere else.
        let room = usize::from(inner.height).saturating_sub(remarks.len() + 1).max(before);
        lines.truncate(room);
        lines.push(("", String::new(), Tone::Plain));
        lines.extend(remarks.into_iter().map(|line| ("", line, Tone::Warning)));
    }
    let all = lines.len();
    for ((name, text, tone), y) in lines.into_iter().zip(inner.top()..inner.bottom()) {
        let at = put(buf, x, y, end, name, theme.style(Tone::Faint));
        let at = if name.is_empty() { x } else { at.max(x.saturating_add(13)) };
        put(buf, at, y, end, &text, theme.style(tone));
    }
    if all > usize::from(inner.height) && !inner.is_empty() {
        let text = format!(" {} more lines ", all - usize::from(inner.height));
        put(buf, x, area.bottom() - 1, end, &text, theme.style(Tone::Faint));
    }
}

fn title(state: &TopState, device: &Device) -> String {
    format!("chip {}, {}", device.id, figures::board(device, state.theme.glyphs()))
}

/// What it is on, where that has a name of its own.
fn group(state: &TopState, id: &DeviceId) -> Option<String> {
    let topology = &state.places.topology;
    let chip = topology.place(id)?;
    Some(topology.groups.get(chip.group)?.name.clone())
}

/// Names, texts and tones of the figures that the chip can give.
fn figures_of(state: &TopState, device: &Device) -> Vec<(&'static str, String, Tone)> {
    let theme = &state.theme;
    let mut all = Vec::new();
    let mut push = |name, (text, tone)| all.push((name, text, tone));
    if device.state != model::State::Remote {
        push("temperature", figures::measured(device, &ASIC_TEMP, state, true));
        push("power", figures::measured(device, &POWER, state, true));
        push("clock", figures::clock(device, theme, " MHz"));
    }
    push("DRAM", figures::used_of_total(device, &DRAM_USED, theme));
    push("L1", figures::used_of_total(device, &L1_USED, theme));
    if let Some(traffic) = figures::traffic(device, theme, true) {
        push("PCIe", traffic);
    }
    all
}

/// `0R ×2 up, 1 ×2 (assumed), 8 ×4 (not drawn, 1 down), outside ×2`
fn links_of(state: &TopState, id: &DeviceId) -> String {
    let topology = &state.places.topology;
    let times = if state.theme.unicode { "×" } else { "x" };
    let mut all: Vec<String> = Vec::new();
    for (other, link) in topology.neighbours(id) {
        let doubt = match link.source {
            TopologySource::Assumed => Some("assumed".to_owned()),
            _ if links::neighbours(topology, link).is_none() => Some("not drawn".to_owned()),
            _ => None,
        };
        let (up, remarks) = live_words(&state.places.live, link);
        let remarks: Vec<String> = doubt.into_iter().chain(remarks).collect();
        let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
        all.push(format!("{other} {times}{}{up}{remarks}", link.count));
    }
    let not_up = state.places.live.ports.iter().filter(|port| port.id == *id && port.state == LinkState::NotUp).count();
    if not_up > 0 {
        all.push(count(not_up as u64, "port", "ports") + " not up");
    }
    let outside = topology.place(id).and_then(|chip| chip.outside_links);
    if let Some(count) = outside.filter(|count| *count > 0) {
        let is_down = |port: &&LivePort| port.id == *id && port.is_outside && port.state == LinkState::Down;
        let down = state.places.live.ports.iter().filter(is_down).count();
        let down = if down > 0 { format!(" ({down} down)") } else { String::new() };
        all.push(format!("outside {times}{count}{down}"));
    }
    match (all.is_empty(), outside) {
        (false, _) => all.join(", "),
        (true, Some(_)) => "none".into(),
        (true, None) => "none known".into(),
    }
}

/// Whether the links between two chips are up, and what is wrong with them.
fn live_words(live: &LiveLinks, link: &EthernetLink) -> (&'static str, Vec<String>) {
    let of = |state| live.count(&link.ends, state);
    let (down, up) = (of(LinkState::Down), of(LinkState::Up));
    let mut remarks: Vec<String> = live.between(&link.ends).filter_map(LiveLink::remark).collect();
    remarks.dedup();
    match link.count as usize {
        all if up == all => (" up", remarks),
        all if down == all => (" down", remarks),
        _ if down > 0 => ("", std::iter::once(format!("{down} down")).chain(remarks).collect()),
        _ => ("", remarks),
    }
}

/// `4711 python3 DRAM 12.4G`
fn processes<'a>(state: &'a TopState, device: &'a Device) -> impl Iterator<Item = String> + 'a {
    let absent = state.theme.glyphs().absent;
    let holding = |process: &'a Process| Some((process, process.devices.iter().find(|held| held.id == device.id)?));
    state.snapshot().processes.iter().filter_map(holding).map(move |(process, held)| {
        let name = display_name(process).unwrap_or(absent.into());
        let bytes = held.usage.dram_used.map_or(absent.to_owned(), |bytes| bytes.short());
        format!("{} {name} DRAM {bytes}", process.pid)
    })
}
