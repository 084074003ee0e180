//! What `ttmon mem` shows, in plain data: of a machine, or of a report. What is not known is absent.

use model::{Bytes, Fault, Host, MemoryKind, State, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// Version of the JSON form. Additions keep the number; a changed meaning raises it.
pub const SCHEMA: u32 = 1;
/// So many of the largest buffers are shown to people. JSON has all.
pub const LARGEST: usize = 50;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    pub schema: u32,
    /// Absent where a report does not have it.
    pub taken_at: Option<Timestamp>,
    pub host: Host,
    /// The report that it comes from, where it is not this machine now.
    pub report: Option<String>,
    pub chips: Vec<Chip>,
    /// By bytes, the largest first.
    pub processes: Vec<Holder>,
    pub buffers: Vec<Buffer>,
    /// Those that there was no room for, here or in the agents' tables.
    #[serde(default)]
    pub unlisted_buffers: u64,
    /// Processes that exited with device memory; only a service keeps a record of them.
    pub deaths: Vec<Death>,
    pub faults: Vec<Fault>,
    /// What was allocated and freed, operation by operation; only of a report that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<MemoryTimeline>,
}

/// The memory of a report over time.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryTimeline {
    /// How much later than said an operation may have ended. Absent where it has no times, or where this is not known.
    pub error_seconds: Option<f64>,
    /// By device, then in the order of operations.
    pub steps: Vec<MemoryStep>,
}

/// The memory of one device after one operation.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryStep {
    pub device: String,
    pub operation: i64,
    pub name: Option<String>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The same since the beginning of the report, without the time between operations.
    pub ended_seconds: Option<f64>,
    /// Bytes are of one bank.
    pub kinds: Vec<StepKind>,
}

/// The buffers of one kind after one operation.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepKind {
    pub kind: String,
    pub buffers: u64,
    pub bank_bytes: Bytes,
    /// Absent at the first operation: what was there before is not known.
    pub allocated: Option<StepChange>,
    pub freed: Option<StepChange>,
}

/// Buffers that came or went with an operation.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepChange {
    pub buffers: u64,
    pub bank_bytes: Bytes,
}

/// One chip, or one group of a report.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chip {
    /// `/dev/tenstorrent/N`.
    pub index: Option<u32>,
    pub id: String,
    /// The board, or the chip where that is not known.
    pub board: Option<String>,
    pub state: Option<State>,
    /// What a report says of the moment.
    pub about: Option<String>,
    pub dram: Area,
    pub l1: Area,
    /// Still attributed to exited processes; never part of what is used.
    pub stale_bytes: Option<Bytes>,
    /// How many processes hold it; absent in a report.
    pub processes: Option<u32>,
    /// Those of them that do not report how much.
    pub untracked_processes: u32,
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Area {
    pub total_bytes: Option<Bytes>,
    /// What is used: all kinds together, but for `kernel`.
    pub used_bytes: Option<Bytes>,
    /// `dram` and `trace`, or `l1`, `cb`, `l1_small` and `kernel`; the buffers come first.
    pub kinds: Vec<Kind>,
    /// A fixed reservation of each core that holds the code of running kernels; how much of it is in use is not known.
    pub kernel_ring_bytes: Option<Bytes>,
    /// What no allocator hands out besides: firmware, dispatch cores, regions that were never used.
    pub reserved_bytes: Option<Bytes>,
    /// Still attributed to exited processes; never part of what is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_bytes: Option<Bytes>,
    /// Reported by processes that do not hold the chip; never part of what is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unverified_bytes: Option<Bytes>,
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    pub kind: String,
    pub used_bytes: Option<Bytes>,
    /// What the programs asked for.
    pub logical_bytes: Option<Bytes>,
    /// The most that was in use at one time, as far as agents and reports know.
    pub peak_bytes: Option<Bytes>,
    /// It may have been more: a process has no agent, or several have one each.
    pub peak_is_at_least: bool,
    pub buffers: Option<u64>,
    pub banks: Option<Banks>,
}

/// What allocators say of one bank; all banks of a kind are filled alike.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Banks {
    pub count: Option<u32>,
    /// What the allocator can hand out at all.
    pub allocatable_bytes: Option<Bytes>,
    /// The sum over the allocators.
    pub allocated_bytes: Option<Bytes>,
    /// Another process has memory of this kind, whose allocator could not be asked.
    #[serde(default)]
    pub allocated_is_at_least: bool,
    pub free_bytes: Option<Bytes>,
    /// The smallest of what the allocators say.
    pub largest_free_bytes: Option<Bytes>,
    /// How much of what is free a single buffer cannot have; the worst of the allocators.
    pub fragmentation: Option<f64>,
    /// How long ago the allocator was asked, when something has changed since.
    pub age_seconds: Option<f64>,
    /// How many allocators were asked: one in each process.
    pub allocators: u32,
}

/// A process, and what it holds of the chips that are shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub user: Option<String>,
    pub name: Option<String>,
    pub command: Option<String>,
    pub container: Option<String>,
    pub agent: Option<String>,
    /// On all of these chips together.
    #[serde(flatten)]
    pub usage: Usage,
    /// Where the figures come from; absent where the process does not report.
    pub source: Option<String>,
    pub devices: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub id: String,
    #[serde(flatten)]
    pub usage: Usage,
    pub source: Option<String>,
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    pub pid: Option<u32>,
    /// The chips that have it, where they are known.
    pub devices: Vec<String>,
    pub kind: String,
    /// On each chip.
    pub bytes: Option<Bytes>,
    pub logical_bytes: Option<Bytes>,
    /// In each bank; absent where banks are not known.
    pub bank_bytes: Option<Bytes>,
    pub banks: Option<u32>,
    /// In each bank.
    pub address: u64,
    /// It counts from the beginning of what the allocator has, as in a report of tt-metal.
    #[serde(default)]
    pub address_is_relative: bool,
    pub age_seconds: Option<f64>,
    /// What the program calls it.
    pub label: Option<String>,
}

/// A process that exited with device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Death {
    pub pid: u32,
    pub user: Option<String>,
    pub command: Option<String>,
    pub died_at: Timestamp,
    /// Exit status or signal, where it is known.
    pub how: Option<String>,
    pub devices: Vec<String>,
    #[serde(flatten)]
    pub usage: Usage,
}

/// Kernel code runs from a ring of 69 KiB in each worker core.
const KERNEL_RING_PER_CORE: u64 = 69 * 1024;

impl Area {
    /// The area with what follows from its kinds: the sum, and what no allocator hands out.
    pub fn summed(total_bytes: Option<Bytes>, kinds: Vec<Kind>) -> Area {
        let known: Vec<Bytes> = kinds.iter().filter(|kind| kind.is_used()).filter_map(|kind| kind.used_bytes).collect();
        let used_bytes = (!known.is_empty()).then(|| known.into_iter().sum());
        let mut area = Area { total_bytes, used_bytes, kinds, ..Area::default() };
        area.reserve();
        area
    }

    fn reserve(&mut self) {
        let Some(banks) = self.kinds.first().and_then(|kind| kind.banks.as_ref()) else { return };
        let (Some(total), Some(count), Some(_)) = (self.total_bytes, banks.count, banks.allocatable_bytes) else {
            return;
        };
        let handed_out: Bytes = self.kinds.iter().filter_map(Kind::allocatable).sum();
        let rest = total.0.checked_sub(handed_out.0);
        let is_l1 = self.kinds.first().is_some_and(|kind| kind.kind == "l1");
        let ring = is_l1.then_some(KERNEL_RING_PER_CORE * u64::from(count)).filter(|ring| rest >= Some(*ring));
        self.kernel_ring_bytes = ring.map(Bytes);
        self.reserved_bytes = rest.map(|rest| Bytes(rest - ring.unwrap_or(0)));
    }

    /// The kind whose buffers are listed first.
    pub fn buffers(&self) -> Option<&Kind> {
        self.kinds.first()
    }
}

impl Kind {
    /// Whether it is part of what is used: kernel code is beside it.
    pub fn is_used(&self) -> bool {
        self.kind != MemoryKind::Kernel.name()
    }

    /// What its allocator can hand out at all, in all banks.
    pub fn allocatable(&self) -> Option<Bytes> {
        let banks = self.banks.as_ref()?;
        Some(Bytes(banks.allocatable_bytes?.0.checked_mul(u64::from(banks.count?))?))
    }
}

impl Banks {
    pub fn fill(&self) -> Option<f64> {
        let allocatable = self.allocatable_bytes.filter(|bytes| bytes.0 > 0)?;
        Some(self.allocated_bytes?.0 as f64 / allocatable.0 as f64)
    }
}

/// Part of what is free that a single buffer cannot have.
pub fn fragmentation(free: Bytes, largest: Bytes) -> Option<f64> {
    (free.0 > 0).then(|| ((1.0 - largest.0 as f64 / free.0 as f64) * 10_000.0).round() / 10_000.0)
}
