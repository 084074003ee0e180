//! The figures of a process, and of a process on a device, one row each.

use super::{
    Dimension, FieldValue, Figure, Freshness, KIB, MIB, Metric, Section, Value, always, column, computed, field,
    figures,
};
use crate::{
    BankFigures, Held, KindFigures, MemoryKind, Process, Runtime, Source, UtilizationSource, UtilizationUnknown,
};

figures! {
    /// All figures of a process, in the order of reports.
    PROCESS_FIGURES: Process;

    with { section: Section::Pids, freshness: Freshness::Host };

    /// Process id.
    PID("pid", "Process id", Count, always!(pid)) { always: true, column: column("pid", "#", 1.0, 8, 10) };
    /// Process id of its parent.
    PARENT_PID("parent_pid", "Parent", Count, field!(parent_pid));
    /// User that it runs as.
    USER("user", "User", Text, field!(user)) { column: column("user", "name", 1.0, 8, 20) };
    /// Short name of the process.
    NAME("name", "Name", Text, field!(name)) { column: column("command", "name", 1.0, 0, 90) };
    /// Command line.
    COMMAND("command", "Command", Text, field!(command));
    /// Container or pod that it runs in.
    CONTAINER("container", "Container", Text, field!(container));
    /// Kubernetes namespace of its pod.
    NAMESPACE("namespace", "Namespace", Text, field!(owner.namespace));
    /// Name of its Kubernetes pod.
    POD("pod", "Pod", Text, field!(owner.pod));
    /// Id of its Kubernetes pod.
    POD_UID("pod_uid", "Pod id", Text, field!(owner.pod_uid));
    /// Name of its container.
    CONTAINER_NAME("container_name", "Container name", Text, field!(owner.container_name));
    /// Slurm job that it belongs to.
    SLURM_JOB("slurm_job", "Slurm job", Text, field!(owner.slurm_job)) { aliases: &["job"] };
    /// Step of the Slurm job: a number, batch, interactive or extern.
    SLURM_STEP("slurm_step", "Slurm step", Text, field!(owner.slurm_step)) { aliases: &["step"] };
    /// systemd unit that it belongs to: a service, or the scope of a session.
    UNIT("unit", "Unit", Text, field!(owner.unit));
    /// What it uses the device with: ttnn, tt-metal, umd or other.
    RUNTIME("runtime", "Runtime", Text, field!(runtime)) {
        words: &Runtime::NAMES, column: column("via", "", 1.0, 9, 30),
    };
    /// When it started, UTC.
    STARTED_AT("started_at", "Started", Text, field!(started_at));
    /// Resident host memory.
    HOST_MEMORY("host_memory_bytes", "Host memory", Bytes, field!(host_memory)) {
        aliases: &["rss"], rule: Some("process_host_memory"),
    };
    /// Device memory that it uses: DRAM and L1, on all its devices.
    DEVICE_MEMORY("device_memory_bytes", "Device memory", Bytes, computed(|process, _| whole(process.usage().total()?.0))) {
        aliases: &["total"], in_json: false, rule: Some("process_memory"),
    };
    /// Host CPU, 100 for one core. From the second sample of a loop on.
    HOST_CPU("host_cpu_percent", "Host CPU", Percent, field!(host_cpu_percent)) {
        aliases: &["cpu"], rule: Some("process_cpu"), column: column("cpu", "%", 1.0, 5, 70),
    };
    /// Agent that keeps account of its device memory.
    AGENT("agent", "Agent", Text, field!(agent));
    /// Programs that it has launched, replays of traces included.
    LAUNCHES_TOTAL("launches_total", "Programs launched", Count, field!(launches_total));
    /// Programs that it launched in a second. From the second sample of a loop on.
    LAUNCH_RATE("launches_per_second", "Programs launched per second", PerSecond, field!(launches_per_second)) {
        aliases: &["launches"], column: column("launch", "/s", 1.0, 7, 81),
    };
    /// Part of the time for which it waited for a device. From the second sample of a loop on.
    HOST_WAIT("host_wait_percent", "Waiting for devices", Percent, field!(host_wait_percent)) {
        aliases: &["wait"], rule: Some("process_host_wait"), column: column("wait", "%", 1.0, 5, 82),
    };
    /// Part of the time for which it could not launch because a device was behind. From the second sample of a loop on.
    BACK_PRESSURE("back_pressure_percent", "Back-pressure", Percent, field!(back_pressure_percent));
    /// For how long it has run no program on any device, as its agent records.
    IDLE("idle_seconds", "Idle", Seconds, field!(idle_seconds)) {
        aliases: &["idle"], rule: Some("process_idle"),
    };
}

/// The figures of a process that are labels of its series. One that is not known is left out, which is the same as an empty one.
pub static SERIES_LABELS: [&Figure<Process>; 9] =
    [&PID, &USER, &CONTAINER, &NAME, &NAMESPACE, &POD, &CONTAINER_NAME, &SLURM_JOB, &UNIT];

/// What the agent of a process says of one kind, given the kind's place.
fn of_kind(held: &Held, place: usize) -> Option<KindFigures> {
    held.exact.as_ref()?.kind(*MemoryKind::ALL.get(place)?)
}

fn of_banks(held: &Held, place: usize) -> Option<BankFigures> {
    of_kind(held, place)?.banks
}

fn whole<'a>(number: u64) -> Option<Value<'a>> {
    Some(Value::Whole(number))
}

fn part(held: &Held, place: usize) -> Option<Value<'_>> {
    whole(held.usage.part(*MemoryKind::ALL.get(place)?)?.0)
}

fn set_part(held: &mut Held, place: usize, value: &Value<'_>) {
    if let Some(kind) = MemoryKind::ALL.get(place) {
        *held.usage.part_mut(*kind) = FieldValue::from_value(value);
    }
}

figures! {
    /// All figures of a process on a device, in the order of reports.
    HELD_FIGURES: Held;

    with { section: Section::Pids, freshness: Freshness::Host };

    /// The device: its number, or NR for the chip behind N.
    DEVICE("id", "Device", Text, always!(id)) {
        aliases: &["dev", "device", "index"], always: true, column: column("dev", "Id", 1.0, 4, 0),
    };
    /// DRAM that it holds on the device: buffers and traces.
    HELD_DRAM_USED("dram_used_bytes", "DRAM used", Bytes, field!(usage.dram_used)) {
        aliases: &["dram"], column: column("dram", "MiB", MIB, 6, 40),
        metric: Metric::gauge_by("ttmon_process_memory_used_bytes", ("kind", "dram")), rule: Some("process_dram"),
    };
    /// L1 that it holds on the device: buffers, L1_SMALL and circular buffers.
    HELD_L1_USED("l1_used_bytes", "L1 used", Bytes, field!(usage.l1_used)) {
        aliases: &["l1"], column: column("l1", "KiB", KIB, 7, 50),
        metric: Metric::gauge_by("ttmon_process_memory_used_bytes", ("kind", "l1")), rule: Some("process_l1"),
    };
    /// Its memory of this kind on the device: a part of what is used.
    HELD_BYTES("bytes", "part", Bytes, (part, set_part)) {
        dimension: Some(Dimension::MemoryKind), metric: Metric::gauge("ttmon_process_memory_bytes"),
        column: column("part", "KiB", KIB, 8, 60),
    };
    /// Where the memory figures come from: exact, what the allocator reserved, from the agent in the process; kernel, what
    /// the driver counts; reported, what it reported to a service; unverified, the same of a process that does not hold the
    /// device, which is not counted; shm, logical bytes that tt-metal counts.
    SOURCE("source", "Source", Text, field!(source)) { words: &Source::NAMES };
    /// Part of the last second in which a program of it ran on the device. What the driver counts comes first: how busy it
    /// keeps the busiest engine, from the second sample of a loop on.
    HELD_UTILIZATION("utilization_percent", "Utilization", Percent, field!(activity.utilization_percent)) {
        aliases: &["util"], column: column("util", "%", 1.0, 5, 80),
        metric: Metric::gauge("ttmon_process_utilization_ratio"), rule: Some("process_utilization"),
    };
    /// Whether the utilization is a lower bound: records were lost.
    HELD_UTILIZATION_LOWER_BOUND("utilization_lower_bound", "Lower bound", YesNo,
        field!(activity.utilization_lower_bound));
    /// Where the utilization comes from.
    HELD_UTILIZATION_SOURCE("utilization_source", "Utilization source", Text, field!(activity.utilization_source)) {
        words: &UtilizationSource::NAMES,
    };
    /// Why the utilization is not known.
    HELD_UTILIZATION_UNKNOWN("utilization_unknown", "Utilization unknown because", Text,
        field!(activity.utilization_unknown)) { words: &UtilizationUnknown::NAMES };
    /// Time in which at least one program of it ran on the device.
    HELD_BUSY_TOTAL("busy_seconds_total", "Busy, total", Seconds, field!(activity.busy_seconds_total)) {
        metric: Metric::counter("ttmon_process_busy_seconds"),
    };
    /// Programs of it that ran on the device in a second, as they were recorded. From the second sample of a loop on.
    HELD_PROGRAM_RATE("programs_per_second", "Programs per second", PerSecond, field!(activity.programs_per_second));
    /// Programs of it that have run on the device, as they were recorded.
    HELD_PROGRAMS_TOTAL("programs_total", "Programs, total", Count, field!(activity.programs_total)) {
        metric: Metric::counter("ttmon_process_programs"),
    };

    with {
        object: Some("exact.{label}"), section: Section::Pids, freshness: Freshness::Host,
        dimension: Some(Dimension::MemoryKind),
    };

    /// Bytes that the program asked for; the allocator may reserve more.
    LOGICAL_BYTES("logical_bytes", "logical", Bytes,
        computed(|held, kind| whole(of_kind(held, kind)?.logical_bytes.0)));
    /// Live buffers.
    BUFFERS("buffers", "buffers", Count, computed(|held, kind| whole(of_kind(held, kind)?.buffers)));
    /// Most bytes that were reserved at any time.
    PEAK_BYTES("peak_bytes", "peak", Bytes, computed(|held, kind| whole(of_kind(held, kind)?.peak_bytes.0)));
    /// Allocations so far.
    ALLOCATIONS("allocations", "allocations", Count, computed(|held, kind| whole(of_kind(held, kind)?.allocations)));
    /// Frees so far.
    FREES("frees", "frees", Count, computed(|held, kind| whole(of_kind(held, kind)?.frees)));

    with {
        object: Some("exact.{label}.banks"), section: Section::Pids, freshness: Freshness::Host,
        dimension: Some(Dimension::MemoryKind),
    };

    /// Banks.
    BANKS("banks", "banks", Count, computed(|held, kind| whole(of_banks(held, kind)?.count.into())));
    /// What the allocator can hand out in a bank.
    BANK_ALLOCATABLE("bank_allocatable_bytes", "allocatable per bank", Bytes,
        computed(|held, kind| whole(of_banks(held, kind)?.allocatable_bytes.0)));
    /// What is handed out in a bank.
    BANK_ALLOCATED("bank_allocated_bytes", "allocated per bank", Bytes,
        computed(|held, kind| whole(of_banks(held, kind)?.allocated_bytes.0)));
    /// What is free in a bank.
    BANK_FREE("bank_free_bytes", "free per bank", Bytes,
        computed(|held, kind| whole(of_banks(held, kind)?.free_bytes.0)));
    /// Largest free block in a bank.
    BANK_LARGEST_FREE("bank_largest_free_bytes", "largest free block per bank", Bytes,
        computed(|held, kind| whole(of_banks(held, kind)?.largest_free_bytes?.0)));
    /// Part of the free memory of a bank that a single buffer cannot have: 0 when it is in one block.
    FRAGMENTATION("fragmentation", "fragmentation", Share,
        computed(|held, kind| of_banks(held, kind)?.fragmentation.map(Value::Real)));
    /// How long ago the allocator was asked, when the largest free block is not known now; 0 when the figures are of this moment.
    BANK_AGE("bank_age_seconds", "bank figures age", Seconds,
        computed(|held, kind| Some(Value::Real(of_banks(held, kind)?.age_seconds.unwrap_or(0.0)))));
}
