//! The figures of a process, and of a process on a device, one row each.

use super::{Column, Dimension, Figure, Freshness, Metric, Section, Unit, Value, always, field, figures};
use crate::{BankFigures, Bytes, Held, KindFigures, MemoryKind, Process, Runtime, Source};

const fn column(heading: &'static str, unit: &'static str, scale: f64, width: usize, position: u8) -> Option<Column> {
    Some(Column { heading, unit, scale, width, position })
}

const MIB: f64 = 1024.0 * 1024.0;
const KIB: f64 = 1024.0;

figures! {
    /// All figures of a process, in the order of reports.
    PROCESS_FIGURES: Process;

    /// Process id.
    PID = Figure {
        title: "Process id", section: Section::Pids, always: true, freshness: Freshness::Host, column: column("pid", "#", 1.0, 8, 10),
        ..Figure::new("pid", Unit::Count, "Process id.", always!(pid))
    };
    /// Parent.
    PARENT_PID = Figure {
        title: "Parent", section: Section::Pids, freshness: Freshness::Host,
        ..Figure::new("parent_pid", Unit::Count, "Process id of its parent.", field!(parent_pid))
    };
    /// Owner.
    USER = Figure {
        title: "User", section: Section::Pids, freshness: Freshness::Host, column: column("user", "name", 1.0, 9, 20),
        ..Figure::new("user", Unit::Text, "User that it runs as.", field!(user))
    };
    /// Short name.
    NAME = Figure {
        title: "Name", section: Section::Pids, freshness: Freshness::Host, column: column("command", "name", 1.0, 0, 90),
        ..Figure::new("name", Unit::Text, "Short name of the process.", field!(name))
    };
    /// Command line.
    COMMAND = Figure {
        title: "Command", section: Section::Pids, freshness: Freshness::Host,
        ..Figure::new("command", Unit::Text, "Command line.", field!(command))
    };
    /// Container or pod.
    CONTAINER = Figure {
        title: "Container", section: Section::Pids, freshness: Freshness::Host,
        ..Figure::new("container", Unit::Text, "Container or pod that it runs in.", field!(container))
    };
    /// What it uses the device with.
    RUNTIME = Figure {
        title: "Runtime", section: Section::Pids, words: &Runtime::NAMES, freshness: Freshness::Host, column: column("via", "", 1.0, 9, 30),
        ..Figure::new("runtime", Unit::Text, "What it uses the device with: ttnn, tt-metal, umd or other.", field!(runtime))
    };
    /// Start time.
    STARTED_AT = Figure {
        title: "Started", section: Section::Pids, freshness: Freshness::Host,
        ..Figure::new("started_at", Unit::Text, "When it started, UTC.", field!(started_at))
    };
    /// Resident host memory.
    HOST_MEMORY = Figure {
        title: "Host memory", section: Section::Pids, aliases: &["rss"], freshness: Freshness::Host, rule: Some("process_host_memory"),
        ..Figure::new("host_memory_bytes", Unit::Bytes, "Resident host memory.", field!(host_memory))
    };
    /// Host CPU.
    HOST_CPU = Figure {
        title: "Host CPU", section: Section::Pids, aliases: &["cpu"], freshness: Freshness::Host, rule: Some("process_cpu"), column: column("cpu", "%", 1.0, 6, 70),
        ..Figure::new("host_cpu_percent", Unit::Percent, "Host CPU, 100 for one core. From the second sample of a loop on.", field!(host_cpu_percent))
    };
    /// The agent.
    AGENT = Figure {
        title: "Agent", section: Section::Pids, freshness: Freshness::Host,
        ..Figure::new("agent", Unit::Text, "Agent that keeps account of its device memory.", field!(agent))
    };
}

/// What the agent of a process says of one kind, given the kind's place.
fn of_kind(held: &Held, place: usize) -> Option<KindFigures> {
    held.exact.as_ref()?.kind(*MemoryKind::ALL.get(place)?)
}

fn of_banks(held: &Held, place: usize) -> Option<BankFigures> {
    of_kind(held, place)?.banks
}

fn bytes<'a>(bytes: Bytes) -> Option<Value<'a>> {
    Some(Value::Whole(bytes.0))
}

/// A figure of the account that an agent keeps, one per memory kind. It is only read.
const fn by_kind(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    get: super::Get<Held>,
) -> Figure<Held> {
    Figure {
        title,
        object: Some("exact.{label}"),
        section: Section::Pids,
        dimension: Some(Dimension::MemoryKind),
        freshness: Freshness::Host,
        ..Figure::new(name, unit, help, (get, |_, _, _| {}))
    }
}

/// A figure of the banks of one memory kind, as the agent has it from the allocator.
const fn by_bank(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    help: &'static str,
    get: super::Get<Held>,
) -> Figure<Held> {
    Figure { object: Some("exact.{label}.banks"), ..by_kind(name, title, unit, help, get) }
}

figures! {
    /// All figures of a process on a device, in the order of reports.
    HELD_FIGURES: Held;

    /// The device.
    DEVICE = Figure {
        title: "Device", section: Section::Pids, aliases: &["dev", "device", "index"], always: true, freshness: Freshness::Host,
        column: column("dev", "Id", 1.0, 5, 0),
        ..Figure::new("id", Unit::Text, "The device: its number, or NR for the chip behind N.", always!(id))
    };
    /// DRAM in use by the process.
    HELD_DRAM_USED = Figure {
        title: "DRAM used", section: Section::Pids, aliases: &["dram"], freshness: Freshness::Host, column: column("dram", "MiB", MIB, 8, 40),
        metric: Metric::gauge_by("ttmon_process_memory_used_bytes", ("kind", "dram")), rule: Some("process_dram"),
        ..Figure::new("dram_used_bytes", Unit::Bytes, "DRAM that it holds on the device: buffers and traces.", field!(usage.dram_used))
    };
    /// L1 in use by the process.
    HELD_L1_USED = Figure {
        title: "L1 used", section: Section::Pids, aliases: &["l1"], freshness: Freshness::Host, column: column("l1", "KiB", KIB, 8, 50),
        metric: Metric::gauge_by("ttmon_process_memory_used_bytes", ("kind", "l1")), rule: Some("process_l1"),
        ..Figure::new("l1_used_bytes", Unit::Bytes, "L1 that it holds on the device: buffers, L1_SMALL and circular buffers.", field!(usage.l1_used))
    };
    /// Parts by kind.
    HELD_BYTES = Figure {
        title: "part", section: Section::Pids, dimension: Some(Dimension::MemoryKind), freshness: Freshness::Host,
        metric: Metric::gauge("ttmon_process_memory_bytes"), column: column("part", "KiB", KIB, 8, 60),
        ..Figure::new(
            "bytes", Unit::Bytes, "Its memory of this kind on the device: a part of what is used.",
            (
                |held, place| held.usage.part(*MemoryKind::ALL.get(place)?).map(|bytes| Value::Whole(bytes.0)),
                |held, place, value| {
                    if let Some(kind) = MemoryKind::ALL.get(place) {
                        *held.usage.part_mut(*kind) = super::FieldValue::from_value(value);
                    }
                },
            ),
        )
    };
    /// Where the memory figures come from.
    SOURCE = Figure {
        title: "Source", section: Section::Pids, words: &Source::NAMES, freshness: Freshness::Host,
        ..Figure::new("source", Unit::Text, "Where the memory figures come from: exact, what the allocator reserved, from the agent in the process; kernel, what the driver counts; reported, what it reported to a service; shm, logical bytes that tt-metal counts.", field!(source))
    };
    /// Utilization of the device by the process.
    UTILIZATION = Figure {
        title: "Utilization", section: Section::Pids, aliases: &["util"], freshness: Freshness::Host, column: column("util", "%", 1.0, 6, 80),
        ..Figure::new("utilization_percent", Unit::Percent, "How busy it keeps the busiest engine of the device, where the driver counts that. From the second sample of a loop on.", field!(utilization_percent))
    };
    /// What the program asked for.
    LOGICAL_BYTES = by_kind("logical_bytes", "logical", Unit::Bytes, "Bytes that the program asked for; the allocator may reserve more.", |held, kind| bytes(of_kind(held, kind)?.logical_bytes));
    /// Live buffers.
    BUFFERS = by_kind("buffers", "buffers", Unit::Count, "Live buffers.", |held, kind| Some(Value::Whole(of_kind(held, kind)?.buffers)));
    /// High-water mark.
    PEAK_BYTES = by_kind("peak_bytes", "peak", Unit::Bytes, "Most bytes that were reserved at any time.", |held, kind| bytes(of_kind(held, kind)?.peak_bytes));
    /// Allocations.
    ALLOCATIONS = by_kind("allocations", "allocations", Unit::Count, "Allocations so far.", |held, kind| Some(Value::Whole(of_kind(held, kind)?.allocations)));
    /// Frees.
    FREES = by_kind("frees", "frees", Unit::Count, "Frees so far.", |held, kind| Some(Value::Whole(of_kind(held, kind)?.frees)));
    /// Banks.
    BANKS = by_bank("banks", "banks", Unit::Count, "Banks.", |held, kind| Some(Value::Whole(of_banks(held, kind)?.count.into())));
    /// What a bank can hold.
    BANK_ALLOCATABLE = by_bank("bank_allocatable_bytes", "allocatable per bank", Unit::Bytes, "What the allocator can hand out in a bank.", |held, kind| bytes(of_banks(held, kind)?.allocatable_bytes));
    /// What is handed out.
    BANK_ALLOCATED = by_bank("bank_allocated_bytes", "allocated per bank", Unit::Bytes, "What is handed out in a bank.", |held, kind| bytes(of_banks(held, kind)?.allocated_bytes));
    /// What is left.
    BANK_FREE = by_bank("bank_free_bytes", "free per bank", Unit::Bytes, "What is free in a bank.", |held, kind| bytes(of_banks(held, kind)?.free_bytes));
    /// The largest free block.
    BANK_LARGEST_FREE = by_bank("bank_largest_free_bytes", "largest free block per bank", Unit::Bytes, "Largest free block in a bank.", |held, kind| bytes(of_banks(held, kind)?.largest_free_bytes?));
    /// Fragmentation.
    FRAGMENTATION = by_bank("fragmentation", "fragmentation", Unit::Share, "Part of the free memory of a bank that a single buffer cannot have: 0 when it is in one block.", |held, kind| of_banks(held, kind)?.fragmentation.map(Value::Real));
    /// Age of the last two.
    BANK_AGE = by_bank("bank_age_seconds", "bank figures age", Unit::Seconds, "How long ago the allocator was asked, when the largest free block is not known now; 0 when the figures are of this moment.", |held, kind| Some(Value::Real(of_banks(held, kind)?.age_seconds.unwrap_or(0.0))));
}
