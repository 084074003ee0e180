//! One process that uses a device.

use crate::{Bytes, DeviceId, MemoryKind, Timestamp};
use serde::{Deserialize, Serialize};

/// A living process that holds a device or device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// As this PID namespace counts.
    pub pid: u32,
    /// The process that started it, or that took it over. Absent where that is outside of this PID namespace.
    #[serde(default)]
    pub parent_pid: Option<u32>,
    /// Login name, or the number where it has none.
    pub user: Option<String>,
    /// The short name that the kernel keeps.
    pub name: Option<String>,
    /// The whole command line. Bytes that are not UTF-8 are replaced.
    pub command: Option<String>,
    /// Container or pod, where it runs in one.
    pub container: Option<String>,
    /// What it uses the device with. Absent where we may not look.
    pub runtime: Option<Runtime>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// Resident host memory.
    #[serde(rename = "host_memory_bytes")]
    pub host_memory: Option<Bytes>,
    /// Host CPU, 100 for one busy core. From the second sample on.
    pub host_cpu_percent: Option<f64>,
    /// Who keeps its book of device memory, where one is kept.
    #[serde(default)]
    pub agent: Option<String>,
    /// What it holds on each chip.
    pub devices: Vec<Held>,
}

/// What one process holds on one chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The chip.
    #[serde(flatten)]
    pub id: DeviceId,
    /// How much; absent when nobody tells.
    #[serde(flatten)]
    pub usage: Usage,
    /// Where the figures come from.
    pub source: Option<Source>,
    /// How busy it keeps the busiest engine of the chip, where the driver counts that. From the second sample on.
    #[serde(default)]
    pub utilization_percent: Option<f64>,
    /// The particulars, when the process keeps a book.
    #[serde(default)]
    pub exact: Option<Box<Exact>>,
}

/// What the book of a process says of one chip. A kind that it never used is absent.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exact {
    /// Buffers in DRAM.
    pub dram: Option<KindFigures>,
    /// Buffers in L1.
    pub l1: Option<KindFigures>,
    /// Buffers in the small L1 region.
    pub l1_small: Option<KindFigures>,
    /// Recorded command traces (in DRAM).
    pub trace: Option<KindFigures>,
    /// Circular buffers (in L1).
    pub cb: Option<KindFigures>,
    /// Kernel code.
    pub kernel: Option<KindFigures>,
}

/// What a process has of one kind on one chip.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KindFigures {
    /// What the allocator has reserved.
    pub bytes: Bytes,
    /// What the program has asked for.
    pub logical_bytes: Bytes,
    /// Live buffers.
    pub buffers: u64,
    /// The most that was reserved at any time.
    pub peak_bytes: Bytes,
    /// Since the book was begun.
    pub allocations: u64,
    /// Since the book was begun.
    pub frees: u64,
    /// What the process's allocator says of its banks, once it was asked.
    pub banks: Option<BankFigures>,
}

/// What an allocator says of one bank; all banks of a kind are alike.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BankFigures {
    /// How many banks there are.
    pub count: u32,
    /// What can be handed out at all.
    pub allocatable_bytes: Bytes,
    /// What is handed out.
    pub allocated_bytes: Bytes,
    /// What is left.
    pub free_bytes: Bytes,
    /// The largest block of it. Absent when it cannot be known at this moment.
    pub largest_free_bytes: Option<Bytes>,
    /// How much of what is free a single buffer cannot have: 0 when it is in one piece.
    pub fragmentation: Option<f64>,
    /// How long ago the allocator was asked, when something was allocated or freed since and the largest block does not follow from
    /// the buffers. Absent when the figures are of this moment.
    pub age_seconds: Option<f64>,
}

/// Device memory in use, and the parts of it by kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// DRAM in use: buffers and traces.
    #[serde(default, rename = "dram_used_bytes")]
    pub dram_used: Option<Bytes>,
    /// L1 in use: buffers, the small region and circular buffers.
    #[serde(default, rename = "l1_used_bytes")]
    pub l1_used: Option<Bytes>,
    /// Buffers in DRAM.
    #[serde(rename = "dram_bytes")]
    pub dram: Option<Bytes>,
    /// Buffers in L1.
    #[serde(rename = "l1_bytes")]
    pub l1: Option<Bytes>,
    /// Buffers in the small L1 region.
    #[serde(rename = "l1_small_bytes")]
    pub l1_small: Option<Bytes>,
    /// Recorded command traces (in DRAM).
    #[serde(rename = "trace_bytes")]
    pub trace: Option<Bytes>,
    /// Circular buffers (in L1).
    #[serde(rename = "cb_bytes")]
    pub cb: Option<Bytes>,
    /// Kernel code. Beside the L1 in use, not part of it.
    #[serde(default, rename = "kernel_bytes")]
    pub kernel: Option<Bytes>,
}

/// Where a memory figure comes from, in order of accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The book of an agent in the process: what the allocator has reserved, to the byte.
    Exact,
    /// What the driver counts for the process: of all its threads and whatever it uses the device with, by kind, no more.
    Kernel,
    /// What the process told the service, in the protocol of the proof of concept.
    Reported,
    /// tt-metal's own shared memory: logical bytes of the thread that it tracks.
    Shm,
}

/// What a process uses a device with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// None of the libraries below is mapped.
    Other,
    /// tt-umd alone.
    Umd,
    /// tt-metal without ttnn.
    TtMetal,
    /// ttnn.
    Ttnn,
}

impl Process {
    /// A process of which nothing is known but its number.
    pub fn new(pid: u32) -> Process {
        Process {
            pid,
            parent_pid: None,
            user: None,
            name: None,
            command: None,
            container: None,
            runtime: None,
            started_at: None,
            host_memory: None,
            host_cpu_percent: None,
            agent: None,
            devices: Vec::new(),
        }
    }
}

impl Held {
    /// A chip of which nothing is known but that the process holds it.
    pub fn new(id: DeviceId) -> Held {
        Held { id, usage: Usage::default(), source: None, utilization_percent: None, exact: None }
    }
}

impl Usage {
    /// All kinds measured, but for kernel code.
    pub fn measured(dram: u64, l1: u64, l1_small: u64, trace: u64, cb: u64) -> Usage {
        let some = |n| Some(Bytes(n));
        Usage::of_parts(Usage {
            dram: some(dram),
            l1: some(l1),
            l1_small: some(l1_small),
            trace: some(trace),
            cb: some(cb),
            ..Usage::default()
        })
    }

    /// What is in use, from the parts: the one meaning of used.
    pub fn of_parts(parts: Usage) -> Usage {
        let sum = |kinds: &[MemoryKind]| kinds.iter().map(|kind| parts.part(*kind)).fold(None, add);
        Usage { dram_used: sum(&MemoryKind::DRAM_USED), l1_used: sum(&MemoryKind::L1_USED), ..parts }
    }

    /// The part of a kind.
    pub fn part(&self, kind: MemoryKind) -> Option<Bytes> {
        match kind {
            MemoryKind::Dram => self.dram,
            MemoryKind::L1 => self.l1,
            MemoryKind::L1Small => self.l1_small,
            MemoryKind::Trace => self.trace,
            MemoryKind::Cb => self.cb,
            MemoryKind::Kernel => self.kernel,
        }
    }

    /// The part of a kind, to be set.
    pub fn part_mut(&mut self, kind: MemoryKind) -> &mut Option<Bytes> {
        match kind {
            MemoryKind::Dram => &mut self.dram,
            MemoryKind::L1 => &mut self.l1,
            MemoryKind::L1Small => &mut self.l1_small,
            MemoryKind::Trace => &mut self.trace,
            MemoryKind::Cb => &mut self.cb,
            MemoryKind::Kernel => &mut self.kernel,
        }
    }

    /// Everything added up; what neither side knows stays unknown.
    pub fn plus(self, other: Usage) -> Usage {
        self.combine(other, add)
    }

    /// Everything taken away that is known to have been part of it.
    pub fn minus(self, other: Usage) -> Usage {
        self.combine(other, |a, b| a.map(|a| Bytes(a.0.saturating_sub(b.map_or(0, |b| b.0)))))
    }

    fn combine(self, other: Usage, with: fn(Option<Bytes>, Option<Bytes>) -> Option<Bytes>) -> Usage {
        let mut result = Usage {
            dram_used: with(self.dram_used, other.dram_used),
            l1_used: with(self.l1_used, other.l1_used),
            ..Usage::default()
        };
        for kind in MemoryKind::ALL {
            *result.part_mut(kind) = with(self.part(kind), other.part(kind));
        }
        result
    }

    /// DRAM and L1 in use together.
    pub fn total(self) -> Option<Bytes> {
        add(self.dram_used, self.l1_used)
    }
}

fn add(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

impl Exact {
    /// What is known of a kind.
    pub fn kind(&self, kind: MemoryKind) -> Option<KindFigures> {
        match kind {
            MemoryKind::Dram => self.dram,
            MemoryKind::L1 => self.l1,
            MemoryKind::L1Small => self.l1_small,
            MemoryKind::Trace => self.trace,
            MemoryKind::Cb => self.cb,
            MemoryKind::Kernel => self.kernel,
        }
    }

    /// The kinds that were used.
    pub fn kinds(&self) -> impl Iterator<Item = (MemoryKind, KindFigures)> + '_ {
        MemoryKind::ALL.into_iter().filter_map(|kind| Some((kind, self.kind(kind)?)))
    }

    /// What is in use and its parts; a kind that was never used has zero bytes.
    pub fn usage(&self) -> Usage {
        let mut parts = Usage::default();
        for kind in MemoryKind::ALL {
            *parts.part_mut(kind) = Some(self.kind(kind).map_or(Bytes(0), |figures| figures.bytes));
        }
        // Kernel code is reported by few: a process that never did has no figure for it.
        parts.kernel = self.kernel.map(|figures| figures.bytes);
        Usage::of_parts(parts)
    }
}

named! { Source: Exact = "exact", Kernel = "kernel", Reported = "reported", Shm = "shm" }

impl Source {
    /// What the source means, in a sentence for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Source::Exact => "What the allocator reserved, to the byte, from the agent in the process.",
            Source::Kernel => "What the driver counts for the process.",
            Source::Reported => "What the process reported to the service.",
            Source::Shm => "Logical bytes in the shared memory of tt-metal, of the thread that it tracks.",
        }
    }
}

named! { Runtime: Other = "other", Umd = "umd", TtMetal = "tt-metal", Ttnn = "ttnn" }
