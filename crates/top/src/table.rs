//! The process table's columns, and what is chosen in it.

use super::rows::Rows;
use super::settings::Settings;
use model::Timestamp;
use std::collections::BTreeSet;

/// A column of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Devices,
    Pid,
    User,
    Container,
    Dram,
    L1,
    L1Small,
    Trace,
    Cb,
    Source,
    Utilization,
    Share,
    Growth,
    Cpu,
    HostMemory,
    Age,
    Command,
}

impl Column {
    pub const ALL: [Column; 17] = [
        Column::Devices,
        Column::Pid,
        Column::User,
        Column::Container,
        Column::Dram,
        Column::L1,
        Column::L1Small,
        Column::Trace,
        Column::Cb,
        Column::Source,
        Column::Utilization,
        Column::Share,
        Column::Growth,
        Column::Cpu,
        Column::HostMemory,
        Column::Age,
        Column::Command,
    ];
    /// What is shown unless other columns are chosen; those for which there is no room are left out.
    pub const USUAL: [Column; 17] = Column::ALL;

    /// As the configuration and the filter spell it.
    pub fn name(self) -> &'static str {
        match self {
            Column::Devices => "dev",
            Column::Pid => "pid",
            Column::User => "user",
            Column::Container => "container",
            Column::Dram => "dram",
            Column::L1 => "l1",
            Column::L1Small => "l1_small",
            Column::Trace => "trace",
            Column::Cb => "cb",
            Column::Source => "source",
            Column::Utilization => "util",
            Column::Share => "share",
            Column::Growth => "growth",
            Column::Cpu => "cpu",
            Column::HostMemory => "rss",
            Column::Age => "age",
            Column::Command => "command",
        }
    }

    /// Whether people want its largest value first.
    pub fn is_number(self) -> bool {
        use Column::{Command, Container, Devices, Pid, Source, User};
        !matches!(self, Devices | Pid | User | Container | Source | Command)
    }

    /// What stands above it.
    pub fn head(self) -> &'static str {
        match self {
            Column::Devices => "DEV",
            Column::Pid => "PID",
            Column::User => "USER",
            Column::Container => "CONTAINER",
            Column::Dram => "DRAM",
            Column::L1 => "L1",
            Column::L1Small => "L1SML",
            Column::Trace => "TRACE",
            Column::Cb => "CB",
            Column::Source => "SOURCE",
            Column::Utilization => "UTIL",
            Column::Share => "SHARE",
            Column::Growth => "GROWTH",
            Column::Cpu => "CPU%",
            Column::HostMemory => "RSS",
            Column::Age => "AGE",
            Column::Command => "COMMAND",
        }
    }

    /// What it is, for people who choose one.
    pub fn help(self) -> &'static str {
        match self {
            Column::Devices => "devices that it is on",
            Column::Pid => "process id",
            Column::User => "who runs it",
            Column::Container => "container or pod",
            Column::Dram => "buffers in DRAM",
            Column::L1 => "buffers in L1",
            Column::L1Small => "buffers in the small L1 region",
            Column::Trace => "recorded traces, in DRAM",
            Column::Cb => "circular buffers, in L1",
            Column::Source => "where these figures come from",
            Column::Utilization => "how busy it keeps a device",
            Column::Share => "its DRAM of its devices' DRAM",
            Column::Growth => "device memory gained per minute",
            Column::Cpu => "host CPU, 100 for one core",
            Column::HostMemory => "resident host memory",
            Column::Age => "since when it runs",
            Column::Command => "command line",
        }
    }
}

/// Sorts by a column, the way people most likely want it; by the same column again, the other way.
pub fn sort_by(settings: &mut Settings, column: Column) {
    settings.descending = if settings.sort == column { !settings.descending } else { column.is_number() };
    settings.sort = column;
}

/// What is chosen in the process table. Sort, columns and tree are settings.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Table {
    /// The process that the cursor is on. By pid, so that it stays there when the order changes.
    pub selected: Option<u32>,
    /// The first row that is drawn.
    pub scroll: usize,
    /// Columns by which the command is scrolled.
    pub sideways: usize,
    pub tagged: BTreeSet<u32>,
    /// What rows must match, as it was typed.
    pub filter: String,
    /// The filters of this session, the oldest first.
    pub filters: Vec<String>,
    /// Where the cursor is. When its process ends, the one at its place gets it.
    pub at: usize,
    /// Whether somebody has moved the cursor. Until then it stays on the first row.
    pub is_chosen: bool,
    /// Whether the wheel has turned the table away from the cursor.
    pub is_away: bool,
    /// The process that was clicked, and the sample at that time: the second click of a double click is soon after.
    pub clicked: Option<(u32, Timestamp)>,
}

impl Table {
    /// Keeps the cursor on its process, or at its place.
    pub fn keep(&mut self, rows: &Rows) {
        let followed = self.selected.filter(|_| self.is_chosen).and_then(|pid| rows.position(pid));
        let kept = if self.is_chosen { self.at } else { 0 };
        self.at = followed.unwrap_or(kept.min(rows.len().saturating_sub(1)));
        self.selected = rows.pid_at(self.at);
    }

    /// Puts the cursor on a row, or on the last one.
    pub fn select(&mut self, rows: &Rows, at: usize) {
        self.is_chosen = true;
        self.is_away = false;
        self.at = at.min(rows.len().saturating_sub(1));
        self.selected = rows.pid_at(self.at);
    }

    /// The first row that is drawn when there is room for so many: no row is wasted, and the cursor is in view.
    pub fn first(&self, rows: &Rows, room: usize) -> usize {
        let most = rows.len().saturating_sub(room);
        if self.is_away || room == 0 {
            return self.scroll.min(most);
        }
        self.scroll.max((self.at + 1).saturating_sub(room)).min(self.at).min(most)
    }
}
