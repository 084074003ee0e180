//! What `ttmon mem` shows, in plain data: of a machine, or of a report. What is not known is absent.

use model::{Bytes, Fault, Host, State, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// Version of the JSON form. Additions keep the number; a changed meaning raises it.
pub const SCHEMA: u32 = 1;
/// So many of the largest buffers are kept.
pub const LARGEST: usize = 50;

/// Device memory at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Version of the form.
    pub schema: u32,
    /// Absent where a report does not tell.
    pub taken_at: Option<Timestamp>,
    /// The machine.
    pub host: Host,
    /// The report that it comes from, where it is not this machine now.
    pub report: Option<String>,
    /// All that are shown.
    pub chips: Vec<Chip>,
    /// By bytes, the largest first.
    pub processes: Vec<Holder>,
    /// The largest ones.
    pub buffers: Vec<Buffer>,
    /// Those that there was no room for, here or in the books.
    #[serde(skip)]
    pub unlisted_buffers: u64,
    /// Processes that ended with device memory; only a service remembers them.
    pub deaths: Vec<Death>,
    /// What could not be read.
    pub faults: Vec<Fault>,
}

/// One chip, or one group of a report.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chip {
    /// `/dev/tenstorrent/N`.
    pub index: Option<u32>,
    /// What people call it.
    pub id: String,
    /// The board, or the chip where that is not known.
    pub board: Option<String>,
    /// How it is.
    pub state: Option<State>,
    /// What a report says of the moment.
    pub about: Option<String>,
    /// Its DRAM.
    pub dram: Area,
    /// Its L1.
    pub l1: Area,
    /// Counted for processes that are dead; never part of what is used.
    pub stale_bytes: Option<Bytes>,
    /// How many processes hold it; absent in a report.
    pub processes: Option<u32>,
    /// Those of them that tell nobody how much.
    pub untracked_processes: u32,
}

/// DRAM or L1 of a chip.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// What the chip has.
    pub total_bytes: Option<Bytes>,
    /// All kinds together.
    pub used_bytes: Option<Bytes>,
    /// `dram` and `trace`, or `l1`, `cb`, `l1_small` and `kernel`; the buffers come first.
    pub kinds: Vec<Kind>,
    /// A fixed reservation of each core that holds the code of running kernels; how much of it is in use nobody knows.
    pub kernel_ring_bytes: Option<Bytes>,
    /// What no allocator hands out besides: firmware, dispatch cores, regions that nobody has used.
    pub reserved_bytes: Option<Bytes>,
}

/// One kind of memory on a chip.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    /// Which kind of memory.
    pub kind: String,
    /// How much is in use.
    pub used_bytes: Option<Bytes>,
    /// What the programs asked for.
    pub logical_bytes: Option<Bytes>,
    /// The most that was in use at one time, as far as books and reports reach.
    pub peak_bytes: Option<Bytes>,
    /// It may have been more: somebody keeps no book, or several do, each for itself.
    pub peak_is_at_least: bool,
    /// How many there are.
    pub buffers: Option<u64>,
    /// What allocators say.
    pub banks: Option<Banks>,
}

/// What allocators say of one bank; all banks of a kind are filled alike.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Banks {
    /// How many there are.
    pub count: Option<u32>,
    /// What the allocator can hand out at all.
    pub allocatable_bytes: Option<Bytes>,
    /// The sum over the allocators.
    pub allocated_bytes: Option<Bytes>,
    /// Somebody else has memory of this kind, whose allocator nobody could ask.
    #[serde(default)]
    pub allocated_is_at_least: bool,
    /// What is left.
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
    /// Its number.
    pub pid: u32,
    /// Who runs it.
    pub user: Option<String>,
    /// What it is called.
    pub name: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// The container that it runs in.
    pub container: Option<String>,
    /// The agent inside it.
    pub agent: Option<String>,
    /// On all of these chips together.
    #[serde(flatten)]
    pub usage: Usage,
    /// Where the figures come from; absent when nobody tells.
    pub source: Option<String>,
    /// The chips that it holds.
    pub devices: Vec<Part>,
}

/// What a process holds of one chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What people call it.
    pub id: String,
    /// How much, by kind.
    #[serde(flatten)]
    pub usage: Usage,
    /// Where the figures come from.
    pub source: Option<String>,
}

/// A live buffer.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Its number.
    pub pid: Option<u32>,
    /// The chips that have it, where they are known.
    pub devices: Vec<String>,
    /// Which kind of memory.
    pub kind: String,
    /// On each chip.
    pub bytes: Option<Bytes>,
    /// What was asked for.
    pub logical_bytes: Option<Bytes>,
    /// In each bank; absent where nobody tells of banks.
    pub bank_bytes: Option<Bytes>,
    /// What allocators say.
    pub banks: Option<u32>,
    /// In each bank.
    pub address: u64,
    /// It counts from the beginning of what the allocator has, as in a report of tt-metal.
    #[serde(default)]
    pub address_is_relative: bool,
    /// How old it is.
    pub age_seconds: Option<f64>,
    /// What the program calls it.
    pub label: Option<String>,
}

/// A process that ended with device memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Death {
    /// Its number.
    pub pid: u32,
    /// Who runs it.
    pub user: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// When it ended.
    pub died_at: Timestamp,
    /// Exit status or signal, where it is known.
    pub how: Option<String>,
    /// The chips that it holds.
    pub devices: Vec<String>,
    /// How much, by kind.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Kernel code runs from a ring of 69 KiB in each worker core.
const KERNEL_RING_PER_CORE: u64 = 69 * 1024;

impl Area {
    /// The area with what follows from its kinds: the sum, and what no allocator hands out.
    pub fn summed(total_bytes: Option<Bytes>, kinds: Vec<Kind>) -> Area {
        let known: Vec<Bytes> = kinds.iter().filter_map(|kind| kind.used_bytes).collect();
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
    /// What its allocator can hand out at all, in all banks.
    pub fn allocatable(&self) -> Option<Bytes> {
        let banks = self.banks.as_ref()?;
        Some(Bytes(banks.allocatable_bytes?.0.checked_mul(u64::from(banks.count?))?))
    }
}

impl Banks {
    /// How full a bank is.
    pub fn fill(&self) -> Option<f64> {
        let allocatable = self.allocatable_bytes.filter(|bytes| bytes.0 > 0)?;
        Some(self.allocated_bytes?.0 as f64 / allocatable.0 as f64)
    }
}

/// Part of what is free that a single buffer cannot have.
pub fn fragmentation(free: Bytes, largest: Bytes) -> Option<f64> {
    (free.0 > 0).then(|| ((1.0 - largest.0 as f64 / free.0 as f64) * 10_000.0).round() / 10_000.0)
}
