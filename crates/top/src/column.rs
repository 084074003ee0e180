//! The columns of the process table.

use ProcessColumn::*;
use model::{Bytes, Held, Usage};
use show::text::Align;

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

/// Each with its name, its heading, when it leaves where there is no room (1 is first), and what it is, for people who choose one.
const TABLE: [(ProcessColumn, &str, &str, u8, &str); 17] = [
    (Devices, "dev", "DEV", 14, "devices that it is on"),
    (Pid, "pid", "PID", 17, "process id"),
    (User, "user", "USER", 12, "who runs it"),
    (Container, "container", "JOB/POD", 4, "Slurm job, pod or container"),
    (Dram, "dram", "DRAM", 16, "DRAM used: buffers and traces"),
    (L1, "l1", "L1", 13, "L1 used: buffers, L1_SMALL, CB"),
    (L1Small, "l1_small", "L1SML", 1, "part of L1: the small region"),
    (Trace, "trace", "TRACE", 3, "part of DRAM: recorded traces"),
    (Cb, "cb", "CB", 2, "part of L1: circular buffers"),
    (Source, "source", "SOURCE", 11, "where these figures come from"),
    (Utilization, "util", "UTIL", 10, "how busy it keeps a device"),
    (Share, "share", "SHARE", 8, "DRAM used, of its devices' DRAM"),
    (Growth, "growth", "GROWTH", 9, "device memory gained per minute"),
    (Cpu, "cpu", "CPU%", 6, "host CPU, 100 for one core"),
    (HostMemory, "rss", "RSS", 5, "resident host memory"),
    (Age, "age", "AGE", 7, "since when it runs"),
    (Command, "command", "COMMAND", 15, "command line"),
];

impl ProcessColumn {
    pub const ALL: [ProcessColumn; TABLE.len()] = {
        let mut all = [Devices; TABLE.len()];
        let mut n = 0;
        while n < all.len() {
            all[n] = TABLE[n].0;
            n += 1;
        }
        all
    };

    /// As the configuration and the filter spell it.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The bytes that it shows of what a process uses.
    pub fn part(self, usage: &Usage) -> Option<Bytes> {
        match self {
            Dram => usage.dram_used,
            L1 => usage.l1_used,
            L1Small => usage.l1_small,
            Trace => usage.trace,
            Cb => usage.cb,
            _ => None,
        }
    }

    /// Whether they are known of some devices and of others not.
    pub fn is_partial(self, held: &[Held]) -> bool {
        let known = held.iter().filter(|held| self.part(&held.usage).is_some()).count();
        known > 0 && known < held.len()
    }

    /// Whether people want its largest value first.
    pub fn is_number(self) -> bool {
        !matches!(self, Devices | Pid | User | Container | Source | Command)
    }

    pub fn align(self) -> Align {
        if self == Pid || self.is_number() { Align::Right } else { Align::Left }
    }

    pub fn head(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// All, in the order in which they go when there is no room.
    pub fn leaving() -> impl Iterator<Item = ProcessColumn> {
        let mut all = TABLE;
        all.sort_by_key(|(_, _, _, rank, _)| *rank);
        all.into_iter().map(|(column, ..)| column)
    }

    pub fn help(self) -> &'static str {
        TABLE[self as usize].4
    }
}
