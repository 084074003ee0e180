//! The columns of the process table.

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
