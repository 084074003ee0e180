//! One process in detail: what it holds, its buffers, its past, its surroundings.

use crate::keys::Key;
pub use crate::overlay::Detail;
use crate::paint::{clear, frame, put};
use crate::state::{Overlay, State};
use crate::theme::Tone;
use crossterm::event::{KeyCode, MouseEvent, MouseEventKind};
use model::{Bytes, Exact, Process, Runtime, Timestamp, Usage};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use show::text::clean;

/// A line of the description.
type Line = (String, Tone);

impl Detail {
    pub fn of(pid: u32) -> Detail {
        Detail { pid, scroll: 0 }
    }
}

pub fn draw(state: &State, detail: &Detail, area: Rect, buf: &mut Buffer) {
    let area = Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area };
    clear(buf, area);
    let process = state.snapshot().processes.iter().find(|process| process.pid == detail.pid);
    let name = process.map_or("has ended", |process| process.name.as_deref().unwrap_or(state.theme.glyphs().absent));
    let title = format!("pid {} {}: Up and Down scroll, Esc closes", detail.pid, clean(name));
    let inner = frame(buf, area, &title, &state.theme);
    let lines = lines(state, detail.pid, usize::from(inner.width.saturating_sub(2)));
    let scroll = detail.scroll.min(lines.len().saturating_sub(usize::from(inner.height)));
    for ((text, tone), y) in lines.iter().skip(scroll).zip(inner.top()..inner.bottom()) {
        put(buf, inner.x + 1, y, inner.right(), text, state.theme.style(*tone));
    }
}

/// Everything that there is to say.
fn lines(state: &State, pid: u32, width: usize) -> Vec<Line> {
    let absent = state.theme.glyphs().absent;
    let mut lines = Vec::new();
    let process = state.snapshot().processes.iter().find(|process| process.pid == pid);
    match process {
        Some(process) => describe(state, process, &mut lines),
        None => lines.push(("This process has ended, or uses no device any more.".into(), Tone::Warning)),
    }
    history(state, pid, width, &mut lines);
    let closer = state.shown.process.as_ref().filter(|closer| closer.pid == pid);
    let Some(closer) = closer else { return lines };
    heading("Buffers, the largest first", &mut lines);
    if closer.buffers.is_empty() {
        let why = match process.and_then(|process| process.agent.as_ref()) {
            Some(_) => "none",
            None => "unknown: this process runs without ttmon's agent (see `ttmon run --help`)",
        };
        lines.push((format!("  {why}"), Tone::Faint));
    }
    for buffer in &closer.buffers {
        let bytes = buffer.bytes.map_or(absent.into(), |bytes| bytes.to_string());
        let age = buffer.age_seconds.map_or(absent.into(), |seconds| format!("{} ago", age(seconds)));
        let (devices, label) = (buffer.devices.join(","), buffer.label.as_deref().unwrap_or(""));
        let kind = buffer.kind.to_uppercase();
        let text = format!("  {bytes:>10} {kind:<8} dev {devices:<5} {:#x} {age:>11}  {label}", buffer.address);
        lines.push((text, Tone::Plain));
    }
    let about = &closer.about;
    heading("Environment", &mut lines);
    match &about.environment {
        None if state.hosts.is_some() => lines.push(("  unknown: it is on another machine".into(), Tone::Faint)),
        None => lines.push(("  unknown: it is another user's".into(), Tone::Faint)),
        Some(all) if all.is_empty() => lines.push(("  no TT_* variables".into(), Tone::Faint)),
        Some(all) => lines.extend(all.iter().map(|(name, value)| (format!("  {name}={value}"), Tone::Plain))),
    }
    if let Some(folder) = &about.folder {
        heading("Folder", &mut lines);
        lines.push((format!("  {folder}"), Tone::Plain));
    }
    if !about.limits.is_empty() {
        heading("Limits", &mut lines);
        lines.extend(about.limits.iter().map(|(name, limit)| (format!("  {name:<15} {limit}"), Tone::Plain)));
    }
    if !about.parents.is_empty() {
        heading("Parents", &mut lines);
        lines.extend(about.parents.iter().map(|(pid, name)| (format!("  {pid:>8} {name}"), Tone::Plain)));
    }
    lines
}

fn heading(text: &str, lines: &mut Vec<Line>) {
    lines.push((String::new(), Tone::Plain));
    lines.push((text.into(), Tone::Title));
}

fn describe(state: &State, process: &Process, lines: &mut Vec<Line>) {
    let absent = state.theme.glyphs().absent;
    let or_absent = |text: Option<String>| text.unwrap_or_else(|| absent.into());
    let now = state.snapshot().taken_at;
    let command = or_absent(process.command.clone());
    lines.push((format!("Command    {command}"), Tone::Strong));
    let runtime = process.runtime.filter(|runtime| *runtime != Runtime::Other);
    let runtime = runtime.map(|runtime| format!(", with {}", runtime.name())).unwrap_or_default();
    let user = or_absent(process.user.clone());
    let container = process.container.as_ref().map(|name| format!(", in {name}")).unwrap_or_default();
    lines.push((format!("User       {user}{container}{runtime}"), Tone::Plain));
    let since = process
        .started_at
        .map(|start| format!("{}, {} ago", state.local(start).strftime("%Y-%m-%d %H:%M:%S"), age(seconds(start, now))));
    lines.push((format!("Began      {}", or_absent(since)), Tone::Plain));
    let cpu = or_absent(process.host_cpu_percent.map(|cpu| format!("{cpu:.0} % of a core")));
    let memory = or_absent(process.host_memory.map(|bytes| bytes.to_string()));
    let about = state.shown.process.as_ref().filter(|closer| closer.pid == process.pid).map(|closer| &closer.about);
    let threads = about.and_then(|about| about.threads).map(|threads| format!(", threads {threads}"));
    lines.push((format!("Host       CPU {cpu}, memory {memory}{}", threads.unwrap_or_default()), Tone::Plain));
    if let Some(agent) = &process.agent {
        lines.push((format!("Agent      {agent}"), Tone::Plain));
    }
    heading("Device memory", lines);
    let heads: String = ["DRAM", "L1", "L1_SMALL", "TRACE", "CB"].map(|head| format!("{head:>11}")).concat();
    lines.push((format!("  {:<5}{heads}  from", "dev"), Tone::Faint));
    for held in &process.devices {
        let Usage { dram, l1, l1_small, trace, cb, .. } = held.usage;
        let cell = |bytes: Option<Bytes>| format!("{:>11}", or_absent(bytes.map(|bytes| bytes.to_string())));
        let figures: String = [dram, l1, l1_small, trace, cb].map(cell).concat();
        let source = held.source.map_or(absent, |source| source.name());
        lines.push((format!("  {:<5}{figures}  {source}", held.id.to_string()), Tone::Plain));
        held.exact.iter().for_each(|exact| particulars(exact, lines));
    }
}

/// Peaks, counts and what the allocator says of its banks.
fn particulars(exact: &Exact, lines: &mut Vec<Line>) {
    for (kind, figures) in exact.kinds() {
        let name = kind.title();
        let banks = figures.banks.map(|banks| {
            let fragmentation =
                banks.fragmentation.map_or(String::new(), |part| format!(", {:.0} % of it in pieces", part * 100.0));
            format!("{} banks, largest free block {} in each{fragmentation}", banks.count, banks.largest_free_bytes)
        });
        let noun = if figures.buffers == 1 { "buffer" } else { "buffers" };
        let text = format!(
            "       {name:<8} {} {noun}, peak {}, {} allocations, {} frees",
            figures.buffers, figures.peak_bytes, figures.allocations, figures.frees
        );
        lines.push((text, Tone::Faint));
        lines.extend(banks.map(|banks| (format!("{:16}{banks}", ""), Tone::Faint)));
    }
}

/// Its device memory over time, a column for each piece of it.
fn history(state: &State, pid: u32, width: usize, lines: &mut Vec<Line>) {
    let points: Vec<(Timestamp, u64)> =
        state.trails.series(pid).into_iter().map(|(time, bytes)| (time, bytes.0)).collect();
    let (Some((from, _)), Some((to, _))) = (points.first(), points.last()) else { return };
    let most = points.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    if points.len() < 2 || to.0 <= from.0 || width < 10 {
        return;
    }
    heading(&format!("All device memory, last {}, at most {}", age(seconds(*from, *to)), Bytes(most)), lines);
    lines.push((format!("  {}", sparks(&points, width - 2, state.theme.unicode)), Tone::Good));
}

/// A line of small bars. A column without a point is as the one before; the largest point of a column counts.
fn sparks(points: &[(Timestamp, u64)], width: usize, unicode: bool) -> String {
    let levels: &[char] = match unicode {
        true => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        false => &['_', '.', ':', '-', '=', '+', '*', '#'],
    };
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let span = (last.0.0 - first.0.0).max(1) as f64;
    let most = points.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1) as f64;
    let mut columns: Vec<Option<u64>> = vec![None; width.max(1)];
    for (time, bytes) in points {
        let at = ((time.0 - first.0.0) as f64 / span * (columns.len() - 1) as f64).round() as usize;
        let at = at.min(columns.len() - 1);
        columns[at] = columns[at].max(Some(*bytes));
    }
    let mut before = 0;
    let level = |bytes: u64| ((bytes as f64 / most * (levels.len() - 1) as f64).round() as usize).min(levels.len() - 1);
    columns
        .into_iter()
        .map(|column| {
            before = column.unwrap_or(before);
            levels[level(before)]
        })
        .collect()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to.0 - from.0).max(0) as f64 / 1000.0
}

fn age(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole / 3600 % 24),
    }
}

/// A key was pressed. Nothing closes it.
pub fn press(state: &mut State, mut detail: Detail, (code, _): Key) -> Option<Overlay> {
    let page = usize::from(state.area.height.saturating_sub(4)).max(1);
    let width = usize::from(state.area.width.saturating_sub(4));
    let last = lines(state, detail.pid, width).len().saturating_sub(page);
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => detail.scroll.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => detail.scroll + 1,
        KeyCode::PageUp => detail.scroll.saturating_sub(page),
        KeyCode::PageDown | KeyCode::Char(' ') => detail.scroll + page,
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => return None,
        _ => detail.scroll,
    };
    detail.scroll = to.min(last);
    Some(Overlay::Detail(detail))
}

pub fn mouse(state: &mut State, detail: Detail, event: MouseEvent) -> Option<Overlay> {
    let code = match event.kind {
        MouseEventKind::ScrollUp => KeyCode::Up,
        MouseEventKind::ScrollDown => KeyCode::Down,
        MouseEventKind::Down(_) if event.row <= state.area.y => KeyCode::Esc,
        _ => return Some(Overlay::Detail(detail)),
    };
    press(state, detail, (code, crossterm::event::KeyModifiers::NONE))
}

#[cfg(test)]
mod tests;
