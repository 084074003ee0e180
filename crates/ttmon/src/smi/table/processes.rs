//! The processes, by device.

use crate::smi::process_row::ProcessRow;
use model::judgement::is_idle_holder;
use model::{Bytes, MemoryKind, Runtime, Snapshot, Source};
use show::activity::utilization;
use show::command::{display_name, from_script};
use show::figures::no_process;
use show::grid::{Cell, Column, Page};
use show::style::{Style, Tone};
use show::text::{Align, clean, cut, width};

/// The longest name of a machine, a pod or a container that is not cut.
const NAME: usize = 24;

/// The longest name of a script that other columns make room for.
const SCRIPT: usize = 16;

/// Those of this machine, or of several with their names.
pub fn draw(page: &mut Page, machines: &[(Option<&str>, &Snapshot)]) {
    let (style, glyphs) = (page.style, page.style.glyphs());
    let inner = style.columns - 2;
    let named: Vec<(Option<&str>, ProcessRow)> = machines
        .iter()
        .flat_map(|(host, snapshot)| ProcessRow::all(snapshot).into_iter().map(move |row| (*host, row)))
        .collect();
    let rows: Vec<&ProcessRow> = named.iter().map(|(_, row)| row).collect();
    page.text.push('\n');
    page.rule(&[inner], glyphs.horizontal, glyphs.top);
    if rows.is_empty() {
        let mut devices = machines.iter().flat_map(|(_, snapshot)| &snapshot.devices);
        let text = no_process(devices.any(|device| device.foreign_holders + device.memory.untracked_processes > 0));
        page.line(&[style.cell(&format!(" {text}"), inner, Align::Left, Tone::Plain)]);
        page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
        return;
    }
    // What a program is called is worth more than the smaller parts of its memory.
    let names = rows.iter().filter_map(|row| display_name(row.process));
    let longest = names.map(|name| width(&clean(&name))).max().unwrap_or(0).min(SCRIPT);
    // A pid is never cut; the name gets what it leaves.
    let pid = rows.iter().map(|row| row.process.pid.to_string().len()).max().unwrap_or(0).max(5);
    // With room to spare the whole command line is worth more than its first word.
    let wide = style.columns >= 104;
    let contained = rows.iter().any(|row| row.process.workload().is_some());
    let by_driver = rows.iter().any(|row| row.held.source == Some(Source::Kernel));
    let has_utilization = |row: &&ProcessRow| row.held.activity.utilization_percent.is_some();
    let counted = rows.iter().any(|row| has_utilization(row) || is_idle_holder(row.process));
    let mut columns = vec![
        Column::right("Dev", 3),
        Column::right("PID", pid),
        Column::left("User", 6).rank(3),
        Column::left("Via", 5).rank(6),
        Column::left(if wide { "Command" } else { "Name" }, longest.max(13 - pid.min(7))).stretching(),
        Column::right("DRAM", 5),
        Column::right("L1", 5).rank(1),
        Column::right(MemoryKind::L1Small.heading(), 5).rank(7),
        Column::right(MemoryKind::Trace.heading(), 5).rank(5),
        Column::right(MemoryKind::Cb.heading(), 5).rank(4),
        Column::left("From", if by_driver { 6 } else { 5 }).rank(2),
    ];
    if counted {
        columns.insert(columns.len() - 1, Column::right("Util", 4).rank(2));
    }
    if contained {
        columns.insert(3, Column::left(if wide { "Job or pod" } else { "Job/Pod" }, 8).rank(8));
    }
    let mut rows: Vec<Vec<Cell>> = rows.iter().map(|row| cells(row, &style, (contained, counted), wide)).collect();
    if machines.iter().any(|(host, _)| host.is_some()) {
        let hosts: Vec<&str> = machines.iter().filter_map(|(host, _)| *host).collect();
        let (shared, columns_of_name) = host_names(&hosts, if wide { NAME } else { 10 });
        let name = |host: &str| match (shared, host.get(shared..)) {
            (1.., Some(rest)) => format!("{}{}", style.glyphs().cut, clean(rest)),
            _ => clean(host).into_owned(),
        };
        columns.insert(0, Column::left("Host", columns_of_name.max(4)));
        for (cells, (host, _)) in rows.iter_mut().zip(&named) {
            let name = name(host.unwrap_or_default());
            cells.insert(0, Cell::plain(cut(&name, columns_of_name.max(4), style.glyphs().cut)));
        }
    }
    page.grid(columns, rows);
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
}

/// How much of the beginning of all names is left out, and how many columns the rest takes: as few as possible, but so many that
/// no two machines look the same.
fn host_names(hosts: &[&str], usual: usize) -> (usize, usize) {
    let longest = hosts.iter().map(|host| width(&clean(host))).max().unwrap_or(0);
    let differ = |from: usize, columns: usize| {
        let mut names: Vec<String> =
            hosts.iter().filter_map(|host| host.get(from..)).map(|name| cut(name, columns, '~').into_owned()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        names.len() == all && all == hosts.len()
    };
    if longest <= usual || differ(0, usual) {
        return (0, longest.min(usual));
    }
    // What they have in common is left out, up to a mark between two words.
    let first = hosts.first().copied().unwrap_or_default();
    let common = |other: &&str| first.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let shared = hosts.iter().map(common).min().unwrap_or(0);
    let whole = (0..=shared).rev().find(|at| first.is_char_boundary(*at)).unwrap_or(0);
    let from = first[..whole].rfind(['-', '.', '_', ':']).unwrap_or(0);
    let columns = (usual..=longest).find(|columns| differ(from, *columns - 1)).unwrap_or(longest);
    (from, columns.min(longest))
}

fn cells(row: &ProcessRow, style: &Style, (contained, counted): (bool, bool), wide: bool) -> Vec<Cell> {
    let absent = style.glyphs().absent;
    let text = |text: Option<&str>| Cell::plain(text.map_or(absent.into(), clean));
    let bytes = |bytes: Option<Bytes>| match bytes {
        Some(Bytes(0)) => Cell::Text("0".into(), Tone::Faint),
        Some(bytes) => Cell::plain(bytes.short()),
        None => Cell::Text(absent.into(), Tone::Faint),
    };
    let process = row.process;
    let short = display_name(process);
    let name =
        if wide { process.command.as_deref().map(from_script).or(process.name.as_deref()) } else { short.as_deref() };
    let usage = row.held.usage;
    let mut cells = vec![
        Cell::Text(row.held.id.to_string(), Tone::Strong),
        Cell::plain(process.pid.to_string()),
        text(process.user.as_deref()),
        text(process.runtime.map(Runtime::name).map(|name| name.trim_start_matches("tt-"))),
        text(name),
        bytes(usage.dram_used),
        bytes(usage.l1_used),
        bytes(usage.l1_small),
        bytes(usage.trace),
        bytes(usage.cb),
        text(row.held.source.map(Source::name)),
    ];
    if counted {
        let cell = match utilization(&row.held.activity, style.glyphs()) {
            // It keeps others from the device for nothing.
            _ if is_idle_holder(process) => Cell::Text("idle".into(), Tone::Warning),
            unknown if unknown == absent => Cell::Text(unknown, Tone::Faint),
            percent => Cell::plain(percent),
        };
        cells.insert(cells.len() - 1, cell);
    }
    if contained {
        let workload = process.workload();
        let name = workload.as_deref().map_or(absent.into(), clean);
        cells.insert(3, Cell::plain(cut(&name, NAME, style.glyphs().cut)));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_machines_have_the_same_name_in_the_table() {
        assert_eq!(host_names(&["lab-7", "lab-8"], 10), (0, 5));
        assert_eq!(host_names(&["galaxy-rack12-node03", "galaxy-rack12-node04"], 10), (13, 10));
        assert_eq!(host_names(&["a-very-long-name-of-one", "other"], 10), (0, 10));
        assert_eq!(host_names(&["10.0.0.1:9090", "10.0.0.2:9090"], 10), (0, 10));
    }
}
