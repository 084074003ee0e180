//! The process table's columns, and what is chosen in it.

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
    Share,
    Growth,
    Cpu,
    HostMemory,
    Age,
    Command,
}

impl Column {
    pub const ALL: [Column; 16] = [
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
        Column::Share,
        Column::Growth,
        Column::Cpu,
        Column::HostMemory,
        Column::Age,
        Column::Command,
    ];
    /// What is shown unless other columns are chosen; those for which there is no room are left out.
    pub const USUAL: [Column; 16] = Column::ALL;

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
            Column::Share => "share",
            Column::Growth => "growth",
            Column::Cpu => "cpu",
            Column::HostMemory => "rss",
            Column::Age => "age",
            Column::Command => "command",
        }
    }
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
}
