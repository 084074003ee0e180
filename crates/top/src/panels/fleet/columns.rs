//! The columns of the list of machines, and the place of each.

use crate::hosts::HostSort;
use crate::panels::heading::Placed;
use crate::screen::Rect;
use FleetColumn::*;
use show::text::Align::{self, Left, Right};

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

pub type PlacedFleetColumn = Placed<FleetColumn>;

type FleetColumnFacts = (FleetColumn, &'static str, Align, Option<HostSort>, u16, u8);

/// All of them in their order: name, side, what a click on the name sorts by, the least width, and what goes first where there
/// is no room.
const COLUMNS: [FleetColumnFacts; 10] = [
    (Host, "MACHINE", Left, Some(HostSort::Name), NARROWEST_NAME, 0),
    (State, "STATE", Left, Some(HostSort::Need), 9, 0),
    (Devices, "OK", Right, Some(HostSort::Devices), 5, 0),
    (Temperature, "HOTTEST", Right, Some(HostSort::Temperature), 7, 2),
    (Power, "POWER", Right, Some(HostSort::Power), 7, 4),
    (DramBar, "", Left, None, 8, 7),
    (Dram, "DRAM", Right, Some(HostSort::Dram), 12, 3),
    (Processes, "PROCS", Right, Some(HostSort::Processes), 5, 6),
    (Age, "AGE", Right, Some(HostSort::Age), 5, 5),
    (Worst, "WHAT IS WRONG", Left, None, 20, 1),
];

/// A name gets so many columns before all others, and so many where there is room.
const NARROWEST_NAME: u16 = 12;
const WIDE_NAME: u16 = 30;
const WIDEST_NAME: u16 = 48;
/// Terminals below this have no room for long names.
const NARROW: u16 = 100;

impl FleetColumn {
    pub fn head(self) -> &'static str {
        COLUMNS[self as usize].1
    }

    pub fn align(self) -> Align {
        COLUMNS[self as usize].2
    }

    pub fn sort(self) -> Option<HostSort> {
        COLUMNS[self as usize].3
    }
}

/// The columns for which there is room, where the widest name takes so many. What is wrong stays to the end, where something is;
/// otherwise it goes first.
pub fn placed(area: Rect, name: u16, something_is_wrong: bool) -> Vec<PlacedFleetColumn> {
    let mut columns: Vec<(FleetColumn, u16, u8)> =
        COLUMNS.iter().map(|(column, .., width, rank)| (*column, *width, *rank)).collect();
    if !something_is_wrong {
        columns[Worst as usize].2 = u8::MAX;
    }
    let is_narrow = area.width < NARROW;
    let widest = match is_narrow {
        true if something_is_wrong => WIDE_NAME / 2,
        true => WIDE_NAME * 3 / 4,
        false => WIDE_NAME,
    };
    columns[0].1 = name.clamp(NARROWEST_NAME, widest);
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
    let has_worst = columns.iter().any(|(column, ..)| *column == Worst);
    for (column, least, _) in columns {
        // A name takes what it needs of what is left, and what is wrong takes the rest.
        let more = match column {
            Host if is_narrow && has_worst => 0,
            Host => rest.min(name.min(WIDEST_NAME).saturating_sub(least)),
            DramBar if has_worst => (rest / 4).min(16),
            Worst => rest,
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
