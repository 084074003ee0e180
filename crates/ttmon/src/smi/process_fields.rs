//! The fields of a process on a device, each a row. nvidia-smi's names come last, in nvidia-smi's units.

use super::exact_fields::EXACT_FIELDS;
use super::field::{Field, Unit, Value};
use model::{Bytes, Device, Held, Process, Runtime, Snapshot, Source};

/// What a field is taken from.
pub struct ProcessRow<'a> {
    pub process: &'a Process,
    pub held: &'a Held,
    pub device: Option<&'a Device>,
    /// Local time of the snapshot.
    pub time: &'a str,
}

impl<'a> ProcessRow<'a> {
    /// Every process on every device, by device and pid.
    pub fn all(snapshot: &'a Snapshot, time: &'a str) -> Vec<ProcessRow<'a>> {
        let mut rows: Vec<ProcessRow> = Vec::new();
        for process in &snapshot.processes {
            rows.extend(process.devices.iter().map(|held| {
                let device = snapshot.devices.iter().find(|device| device.id == held.id);
                ProcessRow { process, held, device, time }
            }));
        }
        rows.sort_by(|a, b| (&a.held.id, a.process.pid).cmp(&(&b.held.id, b.process.pid)));
        rows
    }
}

/// A field of a process.
pub type ProcessField = Field<for<'a> fn(&ProcessRow<'a>) -> Option<Value>>;

pub(super) const fn field(
    name: &'static str,
    aliases: &'static [&'static str],
    unit: Unit,
    help: &'static str,
    value: for<'a> fn(&ProcessRow<'a>) -> Option<Value>,
) -> ProcessField {
    Field { name, aliases, unit, help, value }
}

fn bytes(value: Option<Bytes>) -> Option<Value> {
    Value::integer(value.map(|bytes| bytes.0))
}

use Unit::{InName, None as NoUnit, Shown};

/// All of them, those that only a book can answer last.
pub fn process_fields() -> impl Iterator<Item = &'static ProcessField> + Clone {
    PROCESS_FIELDS.iter().chain(EXACT_FIELDS.iter().copied().flatten())
}

#[rustfmt::skip]
const PROCESS_FIELDS: &[ProcessField] = &[
    field("timestamp", &[], NoUnit, "Local time of the sample, YYYY/MM/DD HH:MM:SS.msec.", |r| Some(Value::Text(r.time.into()))),
    field("device", &["id", "index"], NoUnit, "The device: its number, or NR for the chip behind N.", |r| Some(Value::Text(r.held.id.to_string()))),
    field("pid", &[], NoUnit, "Process id.", |r| Some(Value::Integer(r.process.pid.into()))),
    field("parent_pid", &[], NoUnit, "Process id of its parent.", |r| r.process.parent_pid.map(|pid| Value::Integer(pid.into()))),
    field("user", &[], NoUnit, "Who runs it.", |r| Value::text(&r.process.user)),
    field("name", &[], NoUnit, "Short name that the kernel keeps.", |r| Value::text(&r.process.name)),
    field("command", &[], NoUnit, "Whole command line.", |r| Value::text(&r.process.command)),
    field("container", &[], NoUnit, "Container or pod that it runs in.", |r| Value::text(&r.process.container)),
    field("runtime", &[], NoUnit, "What it uses the device with: ttnn, tt-metal, umd or other.", |r| Value::text(&r.process.runtime.map(Runtime::name))),
    field("started_at", &[], NoUnit, "When it began, UTC.", |r| Value::text(&r.process.started_at)),
    field("host_memory_bytes", &[], InName("B"), "Resident host memory.", |r| bytes(r.process.host_memory)),
    field("host_cpu_percent", &[], InName("%"), "Host CPU, 100 for one core. From the second sample of a loop on.", |r| r.process.host_cpu_percent.map(|v| Value::Decimal(v, 1))),
    field("dram_bytes", &[], InName("B"), "Its DRAM buffers on the device.", |r| bytes(r.held.usage.dram)),
    field("l1_bytes", &[], InName("B"), "Its L1 buffers on the device.", |r| bytes(r.held.usage.l1)),
    field("l1_small_bytes", &[], InName("B"), "Its buffers in the small L1 region.", |r| bytes(r.held.usage.l1_small)),
    field("trace_bytes", &[], InName("B"), "Its recorded command traces (in DRAM).", |r| bytes(r.held.usage.trace)),
    field("cb_bytes", &[], InName("B"), "Its circular buffers (in L1).", |r| bytes(r.held.usage.cb)),
    field("source", &[], NoUnit, "Where the figures come from: exact is the book of an agent in the process, what the allocator reserved; kernel is what the driver counts, where it does; reported is what it told a service; shm is tt-metal's own count of logical bytes.", |r| Value::text(&r.held.source.map(Source::name))),
    field("utilization_percent", &[], InName("%"), "How busy it keeps the busiest engine of the device, where the driver counts that. From the second sample of a loop on.", |r| r.held.utilization_percent.map(|v| Value::Decimal(v, 1))),
    field("process_name", &[], NoUnit, "nvidia-smi's: short name.", |r| Value::text(&r.process.name)),
    field("gpu_name", &[], NoUnit, "nvidia-smi's: maker and board.", |r| r.device?.board.as_ref().map(|board| Value::Text(format!("Tenstorrent {board}")))),
    field("gpu_uuid", &[], NoUnit, "nvidia-smi's: TT- and the chip id.", |r| Value::text(&r.device?.uuid())),
    field("gpu_bus_id", &[], NoUnit, "nvidia-smi's: PCI address.", |r| Value::text(&r.device?.pci_address)),
    field("gpu_serial", &[], NoUnit, "nvidia-smi's: board id.", |r| Value::text(&r.device?.serial)),
    field("used_gpu_memory", &["used_memory"], Shown("MiB"), "nvidia-smi's: its DRAM buffers on the device.", |r| Value::mebibytes(r.held.usage.dram)),
];
