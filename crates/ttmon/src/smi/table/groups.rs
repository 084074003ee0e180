//! A line per user, Slurm job, unit or pod, of one machine or of several.

use super::{NARROWEST, WIDEST, fleet as several, list_notes, title};
use crate::smi::groups::{GroupRow, Grouping, Groups, Sum};
use model::{Bytes, Snapshot};
use show::activity::Utilization;
use show::figures::no_process;
use show::grid::{Cell, Column, Page};
use show::style::{Style, Tone};
use show::text::{Align, clean};
use watch::fleet::Fleet;
use watch::fleet::summary::worst_first;

/// The groups of this machine.
pub fn text(rows: &[GroupRow], groups: &Groups, snapshot: &Snapshot, style: &Style, time: &str) -> String {
    let mut page = begin(style, time);
    title(&mut page, snapshot);
    draw(&mut page, rows, groups, false);
    page.text
}

/// The groups of several machines, and those that do not answer below.
pub fn fleet_text(
    rows: &[GroupRow],
    groups: &Groups,
    (fleet, notes): (&Fleet, Vec<String>),
    style: &Style,
    time: &str,
) -> String {
    let mut page = begin(style, time);
    several::title(&mut page, fleet, &worst_first(fleet));
    draw(&mut page, rows, groups, true);
    list_notes(&mut page, notes);
    page.text
}

fn begin(style: &Style, time: &str) -> Page {
    let mut page = Page::new(Style { columns: style.columns.clamp(NARROWEST, WIDEST), ..*style });
    page.text += &format!("{time}\n");
    page
}

fn draw(page: &mut Page, rows: &[GroupRow], groups: &Groups, of_several: bool) {
    let (grouping, is_filtered) = (groups.grouping, groups.is_filtered());
    let (style, glyphs, inner) = (page.style, page.style.glyphs(), page.style.columns - 2);
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    if rows.is_empty() {
        let text = if is_filtered { "No process matches the filter" } else { no_process(false) };
        page.line(&[style.cell(&format!(" {text}"), inner, Align::Left, Tone::Plain)]);
    } else {
        let mut columns = vec![
            Column::left(grouping.heading(), 8).stretching(),
            Column::right("Procs", 5).rank(2),
            Column::right("Devices", 7),
            Column::right("DRAM", 6),
            Column::right("L1", 6).rank(1),
            Column::right("Util", 6).rank(3),
            Column::right("Power", 7).rank(4),
            Column::right("Energy", 7).rank(5),
        ];
        if of_several {
            columns.insert(1, Column::right("Hosts", 5).rank(6));
        }
        page.grid(columns, rows.iter().map(|row| cells(row, grouping, of_several, &style)).collect());
    }
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
}

fn cells(row: &GroupRow, grouping: Grouping, of_several: bool, style: &Style) -> Vec<Cell> {
    let glyphs = style.glyphs();
    let mark = |is_lower_bound: bool| if is_lower_bound { glyphs.at_least } else { "" };
    let sum = |sum: Sum, text: fn(f64) -> String| match sum.known {
        Some(known) => Cell::plain(format!("{}{}", mark(sum.is_lower_bound), text(known))),
        None => Cell::Text(glyphs.absent.into(), Tone::Faint),
    };
    // Without a job a process is in none; without a user it is not known whose it is.
    let unknown = if grouping == Grouping::User { "?" } else { glyphs.absent };
    let utilization = match row.utilization {
        // With several devices there is more than one hundred percent.
        Sum { known: Some(percent), is_lower_bound } if percent < 99.5 => {
            Cell::plain(Utilization { percent, is_lower_bound }.text(glyphs))
        }
        all => sum(all, |percent| format!("{percent:.0}%")),
    };
    let bytes = |bytes: f64| Bytes(bytes as u64).short();
    let mut cells = vec![
        Cell::Text(row.name.as_deref().map_or(unknown.into(), clean).into_owned(), Tone::Strong),
        Cell::plain(format!("{}{}", mark(row.processes_lower_bound), row.processes)),
        Cell::plain(row.devices.to_string()),
        sum(row.dram, bytes),
        sum(row.l1, bytes),
        utilization,
        sum(row.power, |watts| format!("{watts:.0}W")),
        sum(row.energy, energy),
    ];
    if of_several {
        cells.insert(1, Cell::plain(row.hosts.to_string()));
    }
    cells
}

/// At most six characters: `824J`, `12.4kJ`, `5.4MJ`.
fn energy(joules: f64) -> String {
    match joules {
        few if few < 999.5 => format!("{few:.0}J"),
        some if some < 999_950.0 => format!("{:.1}kJ", some / 1e3),
        many if many < 999_950_000.0 => format!("{:.1}MJ", many / 1e6),
        all => format!("{:.1}GJ", all / 1e9),
    }
}
