//! Which columns there is room for, and where they are.

use crate::column::Column;
use crate::rows::Widths;
use crate::state::State;
use ratatui::layout::Rect;
use show::text::Align;

/// A column and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    pub column: Column,
    pub x: u16,
    pub width: u16,
}

impl Placed {
    pub fn align(&self) -> Align {
        match self.column {
            Column::Devices | Column::User | Column::Container | Column::Source | Column::Command => Align::Left,
            _ => Align::Right,
        }
    }

    /// The column that stretches, and is drawn in its own way.
    pub fn as_command(&self) -> Option<&Placed> {
        (self.column == Column::Command).then_some(self)
    }
}

/// The columns in the order in which they go when there is no room.
const LEAVING: [Column; 17] = [
    Column::L1Small,
    Column::Cb,
    Column::Trace,
    Column::Container,
    Column::HostMemory,
    Column::Cpu,
    Column::Age,
    Column::Share,
    Column::Growth,
    Column::Utilization,
    Column::Source,
    Column::User,
    Column::L1,
    Column::Devices,
    Column::Command,
    Column::Dram,
    Column::Pid,
];

/// The least that is worth showing of a command.
const COMMAND: u16 = 18;

fn width(column: Column, widths: &Widths) -> u16 {
    match column {
        Column::Devices => widths.devices.clamp(4, 11),
        Column::Pid => widths.pid.max(5),
        Column::User => widths.user.clamp(5, 10),
        Column::Container => widths.container.clamp(10, 12),
        Column::Source => widths.source.max(7),
        Column::Growth => 8,
        Column::Command => COMMAND,
        _ => 6,
    }
}

/// The columns that are shown. The first column of the screen is for marks.
pub fn placed(state: &State, area: Rect) -> Vec<Placed> {
    let widths = &state.rows.widths;
    let mut chosen: Vec<Column> = Vec::new();
    for column in &state.settings.columns {
        let has_any = match column {
            Column::Container => widths.container > 0,
            Column::Utilization => widths.has_utilization,
            _ => true,
        };
        if has_any && !chosen.contains(column) {
            chosen.push(*column);
        }
    }
    let needed = |chosen: &[Column]| 1 + chosen.iter().map(|column| width(*column, widths) + 1).sum::<u16>();
    let mut leaving = LEAVING.iter();
    // A table without a single column would say nothing.
    while needed(&chosen) > area.width + 1 && chosen.len() > 1 {
        let Some(least) = leaving.next() else { break };
        chosen.retain(|column| column != least);
    }
    let spare = (area.width + 1).saturating_sub(needed(&chosen));
    let mut x = area.x.saturating_add(1);
    let mut all = Vec::with_capacity(chosen.len());
    for column in chosen {
        let mut columns = width(column, widths);
        if column == Column::Command {
            columns += spare;
        }
        all.push(Placed { column, x, width: columns.min(area.right().saturating_sub(x)) });
        x = x.saturating_add(columns + 1);
    }
    all
}
