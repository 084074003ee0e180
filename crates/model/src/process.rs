//! One process that uses a device.

use crate::{Activity, Bytes, DeviceId, MemoryKind, Operation, ProcessOwner, Timestamp, container_id};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A running process that holds a device or device memory. Most fields are figures: see [`crate::figure::process`].
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// As this PID namespace counts.
    pub pid: u32,
    /// The process that started it, or that took it over. Absent where that is outside of this PID namespace.
    pub parent_pid: Option<u32>,
    /// Login name, or the number where it has none.
    pub user: Option<String>,
    pub name: Option<String>,
    /// Bytes that are not UTF-8 are replaced.
    pub command: Option<String>,
    pub container: Option<String>,
    #[serde(flatten)]
    pub owner: ProcessOwner,
    /// Absent where we may not look.
    pub runtime: Option<Runtime>,
    pub started_at: Option<Timestamp>,
    #[serde(rename = "host_memory_bytes")]
    pub host_memory: Option<Bytes>,
    pub host_cpu_percent: Option<f64>,
    pub agent: Option<String>,
    #[serde(default)]
    pub launches_total: Option<u64>,
    #[serde(default)]
    pub launches_per_second: Option<f64>,
    #[serde(default)]
    pub host_wait_percent: Option<f64>,
    #[serde(default)]
    pub back_pressure_percent: Option<f64>,
    /// With an agent it is a fact; without one it is absent.
    #[serde(default)]
    pub idle_seconds: Option<f64>,
    /// Those that took the most time on chips, up to [`Process::OPERATIONS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// What it holds on each chip.
    pub devices: Vec<Held>,
}

/// What one process holds on one chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The chip.
    #[serde(flatten)]
    pub id: DeviceId,
    /// How much; absent when no source reports it.
    #[serde(flatten)]
    pub usage: Usage,
    /// Where the figures come from.
    pub source: Option<Source>,
    /// What it had the chip do.
    #[serde(flatten)]
    pub activity: Activity,
    /// The particulars, when the process keeps a book.
    pub exact: Option<Box<Exact>>,
    /// What it reported to the service, though it does not hold the chip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unverified: Option<Unverified>,
}

/// What processes reported of a device that they do not hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unverified {
    /// DRAM.
    pub dram_bytes: Bytes,
    /// L1.
    pub l1_bytes: Bytes,
}

/// What the book of a process says of one chip. A kind that it never used is absent.
#[expect(missing_docs, reason = "the kinds are described in MemoryKind")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exact {
    pub dram: Option<KindFigures>,
    pub l1: Option<KindFigures>,
    pub l1_small: Option<KindFigures>,
    pub trace: Option<KindFigures>,
    pub cb: Option<KindFigures>,
    pub kernel: Option<KindFigures>,
}

/// What a process has of one kind on one chip.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KindFigures {
    /// What the allocator has reserved.
    pub bytes: Bytes,
    pub logical_bytes: Bytes,
    pub buffers: u64,
    pub peak_bytes: Bytes,
    pub allocations: u64,
    pub frees: u64,
    /// What the process's allocator says of its banks, once it was asked.
    pub banks: Option<BankFigures>,
}

/// What an allocator says of one bank; all banks of a kind are alike.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BankFigures {
    pub count: u32,
    pub allocatable_bytes: Bytes,
    pub allocated_bytes: Bytes,
    pub free_bytes: Bytes,
    /// Absent when it cannot be known at this moment.
    pub largest_free_bytes: Option<Bytes>,
    pub fragmentation: Option<f64>,
    /// How long ago the allocator was asked, when something was allocated or freed since and the largest block does not follow from
    /// the buffers. Absent when the figures are of this moment.
    pub age_seconds: Option<f64>,
}

/// Device memory in use, and the parts of it by kind.
#[expect(missing_docs, reason = "the kinds are described in MemoryKind")]
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// DRAM in use: buffers and traces.
    #[serde(rename = "dram_used_bytes")]
    pub dram_used: Option<Bytes>,
    /// L1 in use: buffers, the small region and circular buffers.
    #[serde(rename = "l1_used_bytes")]
    pub l1_used: Option<Bytes>,
    #[serde(rename = "dram_bytes")]
    pub dram: Option<Bytes>,
    #[serde(rename = "l1_bytes")]
    pub l1: Option<Bytes>,
    #[serde(rename = "l1_small_bytes")]
    pub l1_small: Option<Bytes>,
    #[serde(rename = "trace_bytes")]
    pub trace: Option<Bytes>,
    #[serde(rename = "cb_bytes")]
    pub cb: Option<Bytes>,
    #[serde(rename = "kernel_bytes")]
    pub kernel: Option<Bytes>,
}

named! {
    /// Where a memory figure comes from, in order of accuracy.
    pub enum Source {
        /// The book of an agent in the process: what the allocator has reserved, to the byte.
        Exact = "exact",
        /// What the driver counts for the process: of all its threads and whatever it uses the device with, by kind, no more.
        Kernel = "kernel",
        /// What the process reported to the service, in the protocol of the proof of concept.
        Reported = "reported",
        /// The same, of a process that is not known to hold the chip.
        Unverified = "unverified",
        /// tt-metal's own shared memory: logical bytes of the thread that it tracks.
        Shm = "shm",
    }
}

named! {
    /// What a process uses a device with.
    #[derive(PartialOrd, Ord)]
    pub enum Runtime {
        /// None of the libraries below is mapped.
        Other = "other",
        /// tt-umd alone.
        Umd = "umd",
        /// tt-metal without ttnn.
        TtMetal = "tt-metal",
        /// ttnn.
        Ttnn = "ttnn",
    }
}

impl Process {
    /// Pod, container or Slurm job in few letters, for a column: the name where it is known, `#48213` for a job, else the id of the container.
    pub fn workload(&self) -> Option<Cow<'_, str>> {
        let ProcessOwner { pod, container_name, slurm_job, .. } = &self.owner;
        let name = pod.as_deref().or(container_name.as_deref()).map(Cow::Borrowed);
        let job = || slurm_job.as_ref().map(|job| Cow::Owned(format!("#{job}")));
        let id = || self.container.as_deref().map(container_id).map(Cow::Borrowed);
        name.or_else(job).or_else(id)
    }

    /// The most operations that a snapshot has of a process.
    pub const OPERATIONS: usize = 16;

    /// A process of which nothing is known but its number.
    pub fn new(pid: u32) -> Process {
        Process { pid, ..Process::default() }
    }

    /// What it uses on all its chips.
    pub fn usage(&self) -> Usage {
        self.devices.iter().fold(Usage::default(), |sum, held| sum.plus(held.usage))
    }
}

impl Held {
    /// A chip of which nothing is known but that the process holds it.
    pub fn new(id: DeviceId) -> Held {
        Held { id, usage: Usage::default(), source: None, activity: Activity::default(), exact: None, unverified: None }
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
    pub fn part(mut self, kind: MemoryKind) -> Option<Bytes> {
        *self.part_mut(kind)
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

impl Source {
    /// What the source means, in a sentence for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Source::Exact => "What the allocator reserved, to the byte, from the agent in the process.",
            Source::Kernel => "What the driver counts for the process.",
            Source::Reported => "What the process reported to the service.",
            Source::Unverified => {
                "What the process reported to the service, which could not verify that it holds the device."
            }
            Source::Shm => "Logical bytes in the shared memory of tt-metal, of the thread that it tracks.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_name_before_the_job_before_the_id() {
        let mut process = Process::new(7);
        assert_eq!(process.workload(), None);
        process.owner.unit = Some("ssh.service".into());
        assert_eq!(process.workload(), None, "every process has a unit");
        process.container = Some("k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e".into());
        assert_eq!(process.workload().as_deref(), Some("3f2a9c1b7d4e"));
        process.owner.slurm_job = Some("48213".into());
        assert_eq!(process.workload().as_deref(), Some("#48213"));
        process.owner.container_name = Some("vllm".into());
        assert_eq!(process.workload().as_deref(), Some("vllm"));
        process.owner.pod = Some("llama-0".into());
        assert_eq!(process.workload().as_deref(), Some("llama-0"));
    }
}
