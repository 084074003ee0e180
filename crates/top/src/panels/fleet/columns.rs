//! The columns of the list of machines, and where each stands.

use crate::hosts::Sort;
use ratatui::layout::Rect;
use show::text::Align;

/// A column of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Host,
    State,
    Devices,
    Temperature,
    Power,
    DramBar,
    Dram,
    Processes,
    Age,
    Worst,
}

/// A column at its place.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    pub column: Column,
    pub x: u16,
    pub width: u16,
}

/// All of them with the least width, in the order in which they stand; and what goes first where there is no room.
const COLUMNS: [(Column, u16, u8); 10] = [
    (Column::Host, NARROWEST_NAME, 0),
    (Column::State, 9, 0),
    (Column::Devices, 5, 0),
    (Column::Temperature, 7, 1),
    (Column::Power, 7, 2),
    (Column::DramBar, 8, 6),
    (Column::Dram, 11, 3),
    (Column::Processes, 5, 5),
    (Column::Age, 5, 4),
    (Column::Worst, 24, 7),
];

/// A name gets so many columns before all others, and so many where there is room.
const NARROWEST_NAME: u16 = 12;
const WIDE_NAME: u16 = 30;
const WIDEST_NAME: u16 = 48;
/// Terminals below this have no room for long names.
const NARROW: u16 = 100;

impl Column {
    pub fn head(self) -> &'static str {
        match self {
            Column::Host => "MACHINE",
            Column::State => "STATE",
            Column::Devices => "OK",
            Column::Temperature => "HOTTEST",
            Column::Power => "POWER",
            Column::DramBar => "",
            Column::Dram => "DRAM",
            Column::Processes => "PROCS",
            Column::Age => "AGE",
            Column::Worst => "WHAT IS WRONG",
        }
    }

    pub fn align(self) -> Align {
        match self {
            Column::Host | Column::State | Column::DramBar | Column::Worst => Align::Left,
            _ => Align::Right,
        }
    }

    /// What a click on its name sorts by.
    pub fn sort(self) -> Option<Sort> {
        match self {
            Column::Host => Some(Sort::Name),
            Column::State => Some(Sort::Need),
            Column::Devices => Some(Sort::Devices),
            Column::Temperature => Some(Sort::Temperature),
            Column::Power => Some(Sort::Power),
            Column::Dram => Some(Sort::Dram),
            Column::Processes => Some(Sort::Processes),
            Column::Age => Some(Sort::Age),
            Column::DramBar | Column::Worst => None,
        }
    }
}

/// The columns for which there is room, where the widest name takes so many.
pub fn placed(area: Rect, name: u16) -> Vec<Placed> {
    let mut columns = COLUMNS.to_vec();
    columns[0].1 = name.clamp(NARROWEST_NAME, if area.width < NARROW { WIDE_NAME * 3 / 4 } else { WIDE_NAME });
    let room = area.width.saturating_sub(1);
    let needed = |columns: &[(Column, u16, u8)]| columns.iter().map(|(_, width, _)| width + 1).sum::<u16>();
    while needed(&columns) > room {
        let Some((at, _)) = columns.iter().enumerate().max_by_key(|(_, (.., rank))| *rank) else { break };
        if columns[at].2 == 0 {
            break;
        }
        columns.remove(at);
    }
    let mut rest = room.saturating_sub(needed(&columns));
    let mut x = area.x + 1;
    let mut placed: Vec<Placed> = Vec::with_capacity(columns.len());
    let has_worst = columns.iter().any(|(column, ..)| *column == Column::Worst);
    for (column, least, _) in columns {
        // A name takes what it needs of what is left, and what is wrong takes the rest.
        let more = match column {
            Column::Host => rest.min(name.min(WIDEST_NAME).saturating_sub(least)),
            Column::DramBar if has_worst => (rest / 4).min(16),
            Column::Worst => rest,
            _ => 0,
        };
        rest -= more;
        let width = (least + more).min(area.right().saturating_sub(x));
        placed.push(Placed { column, x, width });
        x = x.saturating_add(width + 1);
    }
    placed.retain(|place| place.width > 0);
    placed
}
