//! The columns of the process table.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessColumn {
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

impl ProcessColumn {
    pub const ALL: [ProcessColumn; 17] = [
        ProcessColumn::Devices,
        ProcessColumn::Pid,
        ProcessColumn::User,
        ProcessColumn::Container,
        ProcessColumn::Dram,
        ProcessColumn::L1,
        ProcessColumn::L1Small,
        ProcessColumn::Trace,
        ProcessColumn::Cb,
        ProcessColumn::Source,
        ProcessColumn::Utilization,
        ProcessColumn::Share,
        ProcessColumn::Growth,
        ProcessColumn::Cpu,
        ProcessColumn::HostMemory,
        ProcessColumn::Age,
        ProcessColumn::Command,
    ];
    /// What is shown unless other columns are chosen; those for which there is no room are left out.
    pub const USUAL: [ProcessColumn; 17] = ProcessColumn::ALL;

    /// As the configuration and the filter spell it.
    pub fn name(self) -> &'static str {
        match self {
            ProcessColumn::Devices => "dev",
            ProcessColumn::Pid => "pid",
            ProcessColumn::User => "user",
            ProcessColumn::Container => "container",
            ProcessColumn::Dram => "dram",
            ProcessColumn::L1 => "l1",
            ProcessColumn::L1Small => "l1_small",
            ProcessColumn::Trace => "trace",
            ProcessColumn::Cb => "cb",
            ProcessColumn::Source => "source",
            ProcessColumn::Utilization => "util",
            ProcessColumn::Share => "share",
            ProcessColumn::Growth => "growth",
            ProcessColumn::Cpu => "cpu",
            ProcessColumn::HostMemory => "rss",
            ProcessColumn::Age => "age",
            ProcessColumn::Command => "command",
        }
    }

    /// Whether people want its largest value first.
    pub fn is_number(self) -> bool {
        use ProcessColumn::{Command, Container, Devices, Pid, Source, User};
        !matches!(self, Devices | Pid | User | Container | Source | Command)
    }

    pub fn head(self) -> &'static str {
        match self {
            ProcessColumn::Devices => "DEV",
            ProcessColumn::Pid => "PID",
            ProcessColumn::User => "USER",
            ProcessColumn::Container => "CONTAINER",
            ProcessColumn::Dram => "DRAM",
            ProcessColumn::L1 => "L1",
            ProcessColumn::L1Small => "L1SML",
            ProcessColumn::Trace => "TRACE",
            ProcessColumn::Cb => "CB",
            ProcessColumn::Source => "SOURCE",
            ProcessColumn::Utilization => "UTIL",
            ProcessColumn::Share => "SHARE",
            ProcessColumn::Growth => "GROWTH",
            ProcessColumn::Cpu => "CPU%",
            ProcessColumn::HostMemory => "RSS",
            ProcessColumn::Age => "AGE",
            ProcessColumn::Command => "COMMAND",
        }
    }

    /// What it is, for people who choose one.
    pub fn help(self) -> &'static str {
        match self {
            ProcessColumn::Devices => "devices that it is on",
            ProcessColumn::Pid => "process id",
            ProcessColumn::User => "who runs it",
            ProcessColumn::Container => "container or pod",
            ProcessColumn::Dram => "DRAM used: buffers and traces",
            ProcessColumn::L1 => "L1 used: buffers, L1_SMALL, CB",
            ProcessColumn::L1Small => "part of L1: the small region",
            ProcessColumn::Trace => "part of DRAM: recorded traces",
            ProcessColumn::Cb => "part of L1: circular buffers",
            ProcessColumn::Source => "where these figures come from",
            ProcessColumn::Utilization => "how busy it keeps a device",
            ProcessColumn::Share => "DRAM used, of its devices' DRAM",
            ProcessColumn::Growth => "device memory gained per minute",
            ProcessColumn::Cpu => "host CPU, 100 for one core",
            ProcessColumn::HostMemory => "resident host memory",
            ProcessColumn::Age => "since when it runs",
            ProcessColumn::Command => "command line",
        }
    }
}
