//! Which columns there is room for, and where they are.

use super::PlacedColumn;
use crate::column::ProcessColumn;
use crate::rows::ColumnWidths;
use crate::state::TopState;
use ratatui::layout::Rect;

/// The least that is worth showing of a command.
const COMMAND: u16 = 18;

fn width(column: ProcessColumn, widths: &ColumnWidths) -> u16 {
    match column {
        ProcessColumn::Devices => widths.devices.clamp(4, 11),
        ProcessColumn::Pid => widths.pid.max(5),
        ProcessColumn::User => widths.user.clamp(5, 10),
        ProcessColumn::Container => widths.container.clamp(10, 12),
        ProcessColumn::Source => widths.source.max(7),
        ProcessColumn::Growth => 8,
        ProcessColumn::Command => COMMAND,
        _ => 6,
    }
}

/// The columns that are shown. The first column of the screen is for marks.
pub fn placed(state: &TopState, area: Rect) -> Vec<PlacedColumn> {
    let widths = &state.rows.widths;
    let mut chosen: Vec<ProcessColumn> = Vec::new();
    for column in &state.settings.columns {
        let has_any = match column {
            ProcessColumn::Container => widths.container > 0,
            ProcessColumn::Utilization => widths.has_utilization,
            _ => true,
        };
        if has_any && !chosen.contains(column) {
            chosen.push(*column);
        }
    }
    let needed = |chosen: &[ProcessColumn]| 1 + chosen.iter().map(|column| width(*column, widths) + 1).sum::<u16>();
    let mut leaving = ProcessColumn::leaving();
    // A table without a single column would say nothing.
    while needed(&chosen) > area.width + 1 && chosen.len() > 1 {
        let Some(least) = leaving.next() else { break };
        chosen.retain(|column| *column != least);
    }
    let spare = (area.width + 1).saturating_sub(needed(&chosen));
    let mut x = area.x.saturating_add(1);
    let mut all = Vec::with_capacity(chosen.len());
    for column in chosen {
        let mut columns = width(column, widths);
        if column == ProcessColumn::Command {
            columns += spare;
        }
        all.push(PlacedColumn { column, x, width: columns.min(area.right().saturating_sub(x)) });
        x = x.saturating_add(columns + 1);
    }
    all
}
