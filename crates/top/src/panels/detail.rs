//! One process in detail: what it holds, its buffers, its past, its surroundings.

mod inspection;
mod wrap;

use super::processes::duration;
use crate::keys::{self, Action, KeyPress};
pub use crate::overlay::Detail;
use crate::paint::{Buffer, Rect, Tone, clear, frame, put};
use crate::state::{Overlay, TopState};
use crossterm::event::KeyCode;
use model::judgement::is_idle_holder;
use model::{Bytes, Exact, MemoryKind, Process, ProcessOwner, Runtime, Timestamp};
use show::activity::seconds as seconds_text;
use show::command::display_name;
use show::text::{Align, clean, count, fit, width as text_width};

type DetailLine = (String, Tone);

pub fn draw(state: &TopState, detail: &Detail, area: Rect, buf: &mut Buffer) {
    let area = Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area };
    clear(buf, area);
    let process = state.snapshot().processes.iter().find(|process| process.pid == detail.pid);
    let absent = || state.theme.glyphs().absent.into();
    let name = process.map_or("has ended".into(), |process| display_name(process).unwrap_or_else(absent));
    let title = format!("pid {} {}: Up, Down: scroll; Esc: close", detail.pid, clean(&name));
    let inner = frame(buf, area, &title, &state.theme);
    let lines = lines(state, detail.pid, usize::from(inner.width.saturating_sub(2)));
    let scroll = detail.scroll.min(lines.len().saturating_sub(usize::from(inner.height)));
    for ((text, tone), y) in lines.iter().skip(scroll).zip(inner.top()..inner.bottom()) {
        put(buf, inner.x + 1, y, inner.right(), text, state.theme.style(*tone));
    }
}

/// All of it, in so many columns.
fn lines(state: &TopState, pid: u32, width: usize) -> Vec<DetailLine> {
    wrap::fold(unfolded(state, pid, width), width)
}

fn unfolded(state: &TopState, pid: u32, width: usize) -> Vec<DetailLine> {
    let absent = state.theme.glyphs().absent;
    let mut lines = Vec::new();
    let process = state.snapshot().processes.iter().find(|process| process.pid == pid);
    match process {
        Some(process) => describe(state, process, width, &mut lines),
        None => lines.push(("This process has ended, or no longer uses a device.".into(), Tone::Warning)),
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
        let age = buffer.age_seconds.map_or(absent.into(), |seconds| format!("{} ago", duration(seconds)));
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

fn heading(text: &str, lines: &mut Vec<DetailLine>) {
    lines.push((String::new(), Tone::Plain));
    lines.push((text.into(), Tone::Title));
}

fn describe(state: &TopState, process: &Process, width: usize, lines: &mut Vec<DetailLine>) {
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
    owner(process, lines);
    let since = process.started_at.map(|start| {
        format!("{}, {} ago", state.local(start).strftime("%Y-%m-%d %H:%M:%S"), duration(seconds(start, now)))
    });
    lines.push((format!("Started    {}", or_absent(since)), Tone::Plain));
    let cpu = or_absent(process.host_cpu_percent.map(|cpu| format!("{cpu:.0} % of a core")));
    let resident = or_absent(process.host_memory.map(|bytes| bytes.to_string()));
    let about = state.shown.process.as_ref().filter(|closer| closer.pid == process.pid).map(|closer| &closer.about);
    let threads = about.and_then(|about| about.threads).map(|threads| format!(", threads {threads}"));
    lines.push((format!("Host       CPU {cpu}, memory {resident}{}", threads.unwrap_or_default()), Tone::Plain));
    if let Some(agent) = &process.agent {
        lines.push((format!("Agent      {agent}"), Tone::Plain));
    }
    waiting(process, lines);
    activity(state, process, lines);
    operations(state, process, width, lines);
    inspection::lines(state, process, width, lines);
    memory(state, process, width, lines);
}

/// Who it works for: its pod, its Slurm job, its unit.
fn owner(process: &Process, lines: &mut Vec<DetailLine>) {
    let ProcessOwner { namespace, pod, container_name, slurm_job, slurm_step, unit, .. } = &process.owner;
    let mut line = |title: &str, parts: [(&str, &Option<String>); 3]| {
        let known: String = parts.iter().filter_map(|(word, part)| Some(format!("{word}{}", part.as_ref()?))).collect();
        if parts[0].1.is_some() {
            lines.push((format!("{title:<10} {known}"), Tone::Plain));
        }
    };
    if pod.is_some() {
        line("Pod", [("", pod), (", namespace ", namespace), (", container ", container_name)]);
    } else {
        line("Container", [("", container_name), ("", &None), ("", &None)]);
    }
    line("Slurm", [("job ", slurm_job), (", step ", slurm_step), ("", &None)]);
    line("Unit", [("", unit), ("", &None), ("", &None)]);
}

/// What it does where it runs nothing on a device.
fn waiting(process: &Process, lines: &mut Vec<DetailLine>) {
    let wait = process.host_wait_percent.map(|part| format!("{part:.0} % of the time for devices"));
    let behind = process.back_pressure_percent.map(|part| format!("{part:.0} % back-pressure"));
    let parts: Vec<String> = wait.into_iter().chain(behind).collect();
    if !parts.is_empty() {
        lines.push((format!("Waiting    {}", parts.join(", ")), Tone::Plain));
    }
    if let Some(idle) = process.idle_seconds.filter(|idle| *idle >= SHORT_PAUSE) {
        let held = process.usage().total().filter(|bytes| bytes.0 > 0);
        let held = held.map(|bytes| format!(", holding {bytes}")).unwrap_or_default();
        let tone = if is_idle_holder(process) { Tone::Warning } else { Tone::Plain };
        lines.push((format!("Idle       no program for {}{held}", duration(idle)), tone));
    }
}

/// How busy it keeps each device, and where that is known from or why it is not.
fn activity(state: &TopState, process: &Process, lines: &mut Vec<DetailLine>) {
    let glyphs = state.theme.glyphs();
    let or_absent = |text: Option<String>| text.unwrap_or_else(|| glyphs.absent.to_owned());
    heading("Device utilization", lines);
    lines.push((format!("  {:<5}{:>6}{:>12}{:>11}{:>11}", "dev", "util", "programs", "rate", "busy"), Tone::Faint));
    for held in &process.devices {
        let activity = &held.activity;
        let programs = or_absent(activity.programs_total.map(|count| count.to_string()));
        let rate = or_absent(activity.programs_per_second.map(per_second));
        let busy = or_absent(activity.busy_seconds_total.map(|time| seconds_text(time, state.theme.unicode)));
        let why = show::activity::explanation(activity).unwrap_or_default();
        let percent = show::activity::utilization(activity, glyphs);
        let id = held.id.to_string();
        if activity.utilization_percent.is_none() && activity.programs_total.is_none() {
            lines.push((format!("  {id:<5}{percent:>6}  {why}"), Tone::Faint));
            continue;
        }
        lines.push((format!("  {id:<5}{percent:>6}{programs:>12}{rate:>11}{busy:>11}  {why}"), Tone::Plain));
    }
}

/// What it runs on its devices, by the time that takes.
fn operations(state: &TopState, process: &Process, width: usize, lines: &mut Vec<DetailLine>) {
    let glyphs = state.theme.glyphs();
    if process.operations.is_empty() {
        return;
    }
    let or_absent = |text: Option<String>| text.unwrap_or_else(|| glyphs.absent.to_owned());
    heading(&format!("Operations, by device time ({}: running now)", glyphs.selected), lines);
    // Narrow columns leave room for a name in 60 columns.
    let columns: [usize; 5] = if width < 70 { [5, 9, 10, 9, 9] } else { [6, 10, 11, 10, 10] };
    let names = width.saturating_sub(2 + columns.iter().sum::<usize>()).clamp(12, 60);
    let head = ["share", "time", "launches", "rate", "longest"];
    let row = |mark: &str, name: &str, figures: [&str; 5]| {
        let mut line = format!("{mark:<2}{}", fit(name, names, Align::Left, glyphs.cut));
        for (text, columns) in figures.into_iter().zip(columns) {
            line += &format!("{text:>columns$}");
        }
        line
    };
    lines.push((row("", "name", head), Tone::Faint));
    for (operation, share) in show::activity::operations(&process.operations) {
        let time = |time: Option<f64>| or_absent(time.map(|time| seconds_text(time, state.theme.unicode)));
        let figures = [
            or_absent(share.map(|share| format!("{:.0}%", share * 100.0))),
            time(operation.device_seconds),
            operation.launches.to_string(),
            or_absent(operation.launches_per_second.map(per_second)),
            time(operation.longest_seconds),
        ];
        let mark = if operation.in_flight { glyphs.selected } else { "" };
        let figures = figures.each_ref().map(String::as_str);
        // A long name has a line of its own.
        if text_width(&clean(&operation.name)) > names {
            lines.push((format!("{mark:<2}{}", operation.name), Tone::Plain));
            lines.push((row("", "", figures), Tone::Plain));
        } else {
            lines.push((row(mark, &operation.name, figures), Tone::Plain));
        }
    }
}

/// A shorter pause is not worth a word.
const SHORT_PAUSE: f64 = 10.0;

/// `3120/s`, `0.4/s`
fn per_second(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1}/s") } else { format!("{rate:.0}/s") }
}

/// What it uses on each device, and the parts of that: KERNEL is a part beside what is used.
fn memory(state: &TopState, process: &Process, width: usize, lines: &mut Vec<DetailLine>) {
    let absent = state.theme.glyphs().absent;
    let cell = |bytes: Option<Bytes>| format!("{:>11}", bytes.map_or(absent.into(), |bytes| bytes.to_string()));
    heading("Device memory used", lines);
    lines.push((format!("  {:<5}{:>11}{:>11}  from", "dev", "DRAM", "L1"), Tone::Faint));
    for held in &process.devices {
        let figures = cell(held.usage.dram_used) + &cell(held.usage.l1_used);
        let source = held.source.map_or(absent, |source| source.name());
        lines.push((format!("  {:<5}{figures}  {source}", held.id.to_string()), Tone::Plain));
    }
    heading("Parts of it: DRAM = buffers + TRACE, L1 = buffers + L1_SMALL + CB; KERNEL is beside L1", lines);
    let part =
        |kind: &MemoryKind| matches!(kind, MemoryKind::Dram | MemoryKind::L1).then(|| format!("{} buf.", kind.title()));
    // As many kinds side by side as there is room for.
    let across = (width.saturating_sub(7) / 11).clamp(1, MemoryKind::ALL.len());
    let heads = |kinds: &[MemoryKind]| -> String {
        kinds.iter().map(|kind| format!("{:>11}", part(kind).unwrap_or(kind.title().into()))).collect()
    };
    for (n, kinds) in MemoryKind::ALL.chunks(across).enumerate() {
        lines.push((format!("  {:<5}{}", "dev", heads(kinds)), Tone::Faint));
        let is_last = (n + 1) * across >= MemoryKind::ALL.len();
        for held in &process.devices {
            let figures: String = kinds.iter().map(|kind| cell(held.usage.part(*kind))).collect();
            lines.push((format!("  {:<5}{figures}", held.id.to_string()), Tone::Plain));
            held.exact.iter().filter(|_| is_last).for_each(|exact| particulars(exact, lines));
        }
    }
}

/// Peaks, counts and what the allocator says of its banks.
fn particulars(exact: &Exact, lines: &mut Vec<DetailLine>) {
    for (kind, figures) in exact.kinds() {
        let name = kind.title();
        let banks = figures.banks.map(|banks| {
            let fragmentation =
                banks.fragmentation.map_or(String::new(), |part| format!(", fragmentation {:.0} %", part * 100.0));
            let largest = banks.largest_free_bytes;
            let block = largest.map_or(String::new(), |largest| format!(", largest free block {largest} in each"));
            format!("{} banks{block}{fragmentation}", banks.count)
        });
        let buffers = count(figures.buffers, "buffer", "buffers");
        let text = format!(
            "       {name:<8} {buffers}, peak {}, {} allocations, {} frees",
            figures.peak_bytes, figures.allocations, figures.frees
        );
        lines.push((text, Tone::Faint));
        lines.extend(banks.map(|banks| (format!("{:16}{banks}", ""), Tone::Faint)));
    }
}

/// Its device memory over time, a column for each piece of it.
fn history(state: &TopState, pid: u32, width: usize, lines: &mut Vec<DetailLine>) {
    let points: Vec<(Timestamp, u64)> =
        state.trails.series(pid).into_iter().map(|(time, bytes)| (time, bytes.0)).collect();
    let (Some((from, _)), Some((to, _))) = (points.first(), points.last()) else { return };
    let most = points.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    if points.len() < 2 || to.0 <= from.0 || width < 10 {
        return;
    }
    heading(&format!("All device memory, last {}, at most {}", duration(seconds(*from, *to)), Bytes(most)), lines);
    lines.push((format!("  {}", sparks(&points, width - 2, state.theme.unicode)), Tone::Good));
}

/// A line of small bars. A column without a point is as the one before; the largest point of a column counts.
fn sparks(points: &[(Timestamp, u64)], width: usize, unicode: bool) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];
    let levels = if unicode { LEVELS } else { ASCII_LEVELS };
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

/// A key was pressed. `None` closes the window.
pub fn press(state: &mut TopState, mut detail: Detail, key: KeyPress) -> Option<Overlay> {
    if matches!(key.0, KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q')) {
        return None;
    }
    if keys::action(key) == Some(Action::Inspect) {
        inspection::ask(state, detail.pid);
    }
    let page = usize::from(state.area.height.saturating_sub(4)).max(1);
    let width = usize::from(state.area.width.saturating_sub(4));
    let last = lines(state, detail.pid, width).len().saturating_sub(page);
    detail.scroll = keys::scrolled(key, detail.scroll, page, last).unwrap_or(detail.scroll.min(last));
    Some(Overlay::Detail(detail))
}

#[cfg(test)]
mod tests;
