//! The columns of the list of machines, and the place of each.

use crate::hosts::HostSort;
use ratatui::layout::Rect;
use show::text::Align;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetColumn {
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

#[derive(Debug, Clone, Copy)]
pub struct PlacedFleetColumn {
    pub column: FleetColumn,
    pub x: u16,
    pub width: u16,
}

/// All of them with the least width, in their order; and what goes first where there is no room.
const COLUMNS: [(FleetColumn, u16, u8); 10] = [
    (FleetColumn::Host, NARROWEST_NAME, 0),
    (FleetColumn::State, 9, 0),
    (FleetColumn::Devices, 5, 0),
    (FleetColumn::Temperature, 7, 1),
    (FleetColumn::Power, 7, 2),
    (FleetColumn::DramBar, 8, 6),
    (FleetColumn::Dram, 11, 3),
    (FleetColumn::Processes, 5, 5),
    (FleetColumn::Age, 5, 4),
    (FleetColumn::Worst, 24, 7),
];

/// A name gets so many columns before all others, and so many where there is room.
const NARROWEST_NAME: u16 = 12;
const WIDE_NAME: u16 = 30;
const WIDEST_NAME: u16 = 48;
/// Terminals below this have no room for long names.
const NARROW: u16 = 100;

impl FleetColumn {
    pub fn head(self) -> &'static str {
        match self {
            FleetColumn::Host => "MACHINE",
            FleetColumn::State => "STATE",
            FleetColumn::Devices => "OK",
            FleetColumn::Temperature => "HOTTEST",
            FleetColumn::Power => "POWER",
            FleetColumn::DramBar => "",
            FleetColumn::Dram => "DRAM",
            FleetColumn::Processes => "PROCS",
            FleetColumn::Age => "AGE",
            FleetColumn::Worst => "WHAT IS WRONG",
        }
    }

    pub fn align(self) -> Align {
        match self {
            FleetColumn::Host | FleetColumn::State | FleetColumn::DramBar | FleetColumn::Worst => Align::Left,
            _ => Align::Right,
        }
    }

    /// What a click on its name sorts by.
    pub fn sort(self) -> Option<HostSort> {
        match self {
            FleetColumn::Host => Some(HostSort::Name),
            FleetColumn::State => Some(HostSort::Need),
            FleetColumn::Devices => Some(HostSort::Devices),
            FleetColumn::Temperature => Some(HostSort::Temperature),
            FleetColumn::Power => Some(HostSort::Power),
            FleetColumn::Dram => Some(HostSort::Dram),
            FleetColumn::Processes => Some(HostSort::Processes),
            FleetColumn::Age => Some(HostSort::Age),
            FleetColumn::DramBar | FleetColumn::Worst => None,
        }
    }
}

/// The columns for which there is room, where the widest name takes so many.
pub fn placed(area: Rect, name: u16) -> Vec<PlacedFleetColumn> {
    let mut columns = COLUMNS.to_vec();
    columns[0].1 = name.clamp(NARROWEST_NAME, if area.width < NARROW { WIDE_NAME * 3 / 4 } else { WIDE_NAME });
    let room = area.width.saturating_sub(1);
    let needed = |columns: &[(FleetColumn, u16, u8)]| columns.iter().map(|(_, width, _)| width + 1).sum::<u16>();
    while needed(&columns) > room {
        let Some((at, _)) = columns.iter().enumerate().max_by_key(|(_, (.., rank))| *rank) else { break };
        if columns[at].2 == 0 {
            break;
        }
        columns.remove(at);
    }
    let mut rest = room.saturating_sub(needed(&columns));
    let mut x = area.x + 1;
    let mut placed: Vec<PlacedFleetColumn> = Vec::with_capacity(columns.len());
    let has_worst = columns.iter().any(|(column, ..)| *column == FleetColumn::Worst);
    for (column, least, _) in columns {
        // A name takes what it needs of what is left, and what is wrong takes the rest.
        let more = match column {
            FleetColumn::Host => rest.min(name.min(WIDEST_NAME).saturating_sub(least)),
            FleetColumn::DramBar if has_worst => (rest / 4).min(16),
            FleetColumn::Worst => rest,
            _ => 0,
        };
        rest -= more;
        let width = (least + more).min(area.right().saturating_sub(x));
        placed.push(PlacedFleetColumn { column, x, width });
        x = x.saturating_add(width + 1);
    }
    placed.retain(|place| place.width > 0);
    placed
}
