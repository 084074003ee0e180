//! What `ttmon mem` shows, in plain data: of a machine, or of a report. What is not known is absent.

use model::{Bytes, Fault, Host, MemoryKind, State, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// Version of the JSON form. Additions keep the number; a changed meaning raises it.
pub const SCHEMA: u32 = 1;
/// So many of the largest buffers are shown to people. JSON has all.
pub const LARGEST: usize = 50;

/// Memory of a machine or of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Version of the JSON form.
    pub schema: u32,
    /// Absent where a report does not have it.
    pub taken_at: Option<Timestamp>,
    /// The machine.
    pub host: Host,
    /// The report that it comes from, where it is not this machine now.
    pub report: Option<String>,
    /// The chips that were chosen.
    pub chips: Vec<Chip>,
    /// By bytes, the largest first.
    pub processes: Vec<Holder>,
    /// Live buffers, the largest first.
    pub buffers: Vec<Buffer>,
    /// Those that there was no room for, here or in the agents' tables.
    #[serde(default)]
    pub unlisted_buffers: u64,
    /// Processes that exited with device memory; only a service keeps a record of them.
    pub deaths: Vec<Death>,
    /// Reads that failed.
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
    /// Name of the device.
    pub device: String,
    /// Number of the operation in the report.
    pub operation: i64,
    /// Name of the operation.
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
    /// Name of the memory kind.
    pub kind: String,
    /// Number of live buffers.
    pub buffers: u64,
    /// Their bytes in one bank.
    pub bank_bytes: Bytes,
    /// Absent at the first operation: what was there before is not known.
    pub allocated: Option<StepChange>,
    /// The same of what was freed.
    pub freed: Option<StepChange>,
}

/// Buffers that came or went with an operation.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepChange {
    /// Number of buffers.
    pub buffers: u64,
    /// Their bytes in one bank.
    pub bank_bytes: Bytes,
}

/// One chip, or one group of a report.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chip {
    /// `/dev/tenstorrent/N`.
    pub index: Option<u32>,
    /// Name of the chip, as on the command line.
    pub id: String,
    /// The board, or the chip where that is not known.
    pub board: Option<String>,
    /// State of the device; absent in a report.
    pub state: Option<State>,
    /// What a report says of the moment.
    pub about: Option<String>,
    /// The DRAM.
    pub dram: Area,
    /// The L1 of all cores together.
    pub l1: Area,
    /// Still attributed to exited processes; never part of what is used.
    pub stale_bytes: Option<Bytes>,
    /// How many processes hold it; absent in a report.
    pub processes: Option<u32>,
    /// Those of them that do not report how much.
    pub untracked_processes: u32,
}

/// DRAM or L1 of a chip.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// Its capacity.
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

/// One memory kind of an area.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    /// Name of the kind.
    pub kind: String,
    /// Bytes in use in all banks.
    pub used_bytes: Option<Bytes>,
    /// What the programs asked for.
    pub logical_bytes: Option<Bytes>,
    /// The most that was in use at one time, as far as agents and reports know.
    pub peak_bytes: Option<Bytes>,
    /// It may have been more: a process has no agent, or several have one each.
    pub peak_is_at_least: bool,
    /// Number of live buffers.
    pub buffers: Option<u64>,
    /// The figures of one bank.
    pub banks: Option<Banks>,
}

/// What allocators say of one bank; all banks of a kind are filled alike.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Banks {
    /// Number of banks.
    pub count: Option<u32>,
    /// What the allocator can hand out at all.
    pub allocatable_bytes: Option<Bytes>,
    /// The sum over the allocators.
    pub allocated_bytes: Option<Bytes>,
    /// Another process has memory of this kind, whose allocator could not be asked.
    #[serde(default)]
    pub allocated_is_at_least: bool,
    /// Bytes that are free.
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
    /// Process id.
    pub pid: u32,
    /// User that it runs as.
    pub user: Option<String>,
    /// Name of the program.
    pub name: Option<String>,
    /// Command line.
    pub command: Option<String>,
    /// Container that it runs in.
    pub container: Option<String>,
    /// State of its agent.
    pub agent: Option<String>,
    /// On all of these chips together.
    #[serde(flatten)]
    pub usage: Usage,
    /// Where the figures come from; absent where the process does not report.
    pub source: Option<String>,
    /// Its share of each chip.
    pub devices: Vec<Part>,
}

/// Memory of a process on one chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Name of the chip.
    pub id: String,
    /// Bytes by kind.
    #[serde(flatten)]
    pub usage: Usage,
    /// Source of the figures on this chip.
    pub source: Option<String>,
}

/// A live buffer.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Process that has it.
    pub pid: Option<u32>,
    /// The chips that have it, where they are known.
    pub devices: Vec<String>,
    /// Name of the memory kind.
    pub kind: String,
    /// On each chip.
    pub bytes: Option<Bytes>,
    /// Size that the program asked for.
    pub logical_bytes: Option<Bytes>,
    /// In each bank; absent where banks are not known.
    pub bank_bytes: Option<Bytes>,
    /// Number of banks that it is spread over.
    pub banks: Option<u32>,
    /// In each bank.
    pub address: u64,
    /// It counts from the beginning of what the allocator has, as in a report of tt-metal.
    #[serde(default)]
    pub address_is_relative: bool,
    /// Time since its allocation.
    pub age_seconds: Option<f64>,
    /// What the program calls it.
    pub label: Option<String>,
}

/// A process that exited with device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Death {
    /// Process id.
    pub pid: u32,
    /// User that it ran as.
    pub user: Option<String>,
    /// Command line.
    pub command: Option<String>,
    /// Time of its exit.
    pub died_at: Timestamp,
    /// Exit status or signal, where it is known.
    pub how: Option<String>,
    /// Chips on which it had memory.
    pub devices: Vec<String>,
    /// Bytes by kind at its exit.
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
    /// Share of the allocatable bytes that is allocated, from 0 to 1.
    pub fn fill(&self) -> Option<f64> {
        let allocatable = self.allocatable_bytes.filter(|bytes| bytes.0 > 0)?;
        Some(self.allocated_bytes?.0 as f64 / allocatable.0 as f64)
    }
}

/// Part of what is free that a single buffer cannot have.
pub fn fragmentation(free: Bytes, largest: Bytes) -> Option<f64> {
    (free.0 > 0).then(|| ((1.0 - largest.0 as f64 / free.0 as f64) * 10_000.0).round() / 10_000.0)
}
