//! The fields of a device, each a row: name, unit, meaning, value. nvidia-smi's names come last, in nvidia-smi's units.

use super::field::{Field, Unit, Value};
use model::{Arch, Bytes, Device, Snapshot};

/// What a field is taken from.
pub struct DeviceRow<'a> {
    pub snapshot: &'a Snapshot,
    pub device: &'a Device,
    /// Local time of the snapshot.
    pub time: &'a str,
}

/// A field of a device.
pub type DeviceField = Field<for<'a> fn(&DeviceRow<'a>) -> Option<Value>>;

const fn field(
    name: &'static str,
    aliases: &'static [&'static str],
    unit: Unit,
    help: &'static str,
    value: for<'a> fn(&DeviceRow<'a>) -> Option<Value>,
) -> DeviceField {
    Field { name, aliases, unit, help, value }
}

fn bytes(value: Option<Bytes>) -> Option<Value> {
    Value::integer(value.map(|bytes| bytes.0))
}

use Unit::{InName, None as NoUnit, Shown};

/// All of them.
#[rustfmt::skip]
pub const DEVICE_FIELDS: &[DeviceField] = &[
    field("timestamp", &[], NoUnit, "Local time of the sample, YYYY/MM/DD HH:MM:SS.msec.", |r| Some(Value::Text(r.time.into()))),
    field("id", &["device"], NoUnit, "What the device is called here: its number, or NR for the chip behind N.", |r| Some(Value::Text(r.device.id.to_string()))),
    field("index", &[], NoUnit, "N of /dev/tenstorrent/N.", |r| Value::integer(r.device.id.index())),
    field("pci_address", &[], NoUnit, "PCI address, domain:bus:device.function.", |r| Value::text(&r.device.pci_address)),
    field("arch", &[], NoUnit, "Chip generation: wormhole or blackhole.", |r| Value::text(&r.device.arch.map(Arch::name))),
    field("board", &[], NoUnit, "Board name: n150, n300, p150a, galaxy-wormhole and so on.", |r| Value::text(&r.device.board)),
    field("serial", &["gpu_serial"], NoUnit, "Board id, 16 hex digits. The chips of one board share it.", |r| Value::text(&r.device.serial)),
    field("asic_id", &[], NoUnit, "Chip id, 16 hex digits.", |r| Value::text(&r.device.asic_id)),
    field("state", &[], NoUnit, "ok, resetting, hung, silent, lost, no driver or remote.", |r| Some(Value::Text(r.device.state.name().into()))),
    field("sample_age_seconds", &[], InName("s"), "How old the readings are.", |r| r.device.sample_age_seconds.map(|v| Value::Decimal(v, 3))),
    field("numa_node", &[], NoUnit, "Memory node of the host that the device hangs on.", |r| Value::integer(r.device.numa_node)),
    field("asic_temp_celsius", &[], InName("°C"), "Chip temperature.", |r| r.device.asic_temp.map(|v| Value::Decimal(v.0, 1))),
    field("asic_temp_max_celsius", &[], InName("°C"), "Temperature above which the firmware throttles.", |r| r.device.asic_temp_max.map(|v| Value::Decimal(v.0, 1))),
    field("power_watts", &[], InName("W"), "Power of the chip (not of the board).", |r| r.device.power.map(|v| Value::Decimal(v.0, 1))),
    field("power_max_watts", &[], InName("W"), "Power limit of the chip.", |r| r.device.power_max.map(|v| Value::Decimal(v.0, 1))),
    field("vcore_volts", &[], InName("V"), "Core voltage.", |r| r.device.vcore.map(|v| Value::Decimal(v.0, 3))),
    field("vcore_max_volts", &[], InName("V"), "Core voltage limit.", |r| r.device.vcore_max.map(|v| Value::Decimal(v.0, 3))),
    field("current_amperes", &[], InName("A"), "Core current.", |r| r.device.current.map(|v| Value::Decimal(v.0, 1))),
    field("current_max_amperes", &[], InName("A"), "Core current limit.", |r| r.device.current_max.map(|v| Value::Decimal(v.0, 1))),
    field("fan_rpm", &[], InName("rpm"), "Fan speed. Absent on passively cooled boards and on Wormhole.", |r| Value::integer(r.device.fan.map(|v| v.0))),
    field("aiclk_megahertz", &[], InName("MHz"), "Clock of the Tensix cores.", |r| Value::integer(r.device.aiclk.map(|v| v.0))),
    field("axiclk_megahertz", &[], InName("MHz"), "Clock of the AXI bus.", |r| Value::integer(r.device.axiclk.map(|v| v.0))),
    field("arcclk_megahertz", &[], InName("MHz"), "Clock of the management core.", |r| Value::integer(r.device.arcclk.map(|v| v.0))),
    field("heartbeat", &[], NoUnit, "Counts up about ten times a second while the firmware lives.", |r| Value::integer(r.device.heartbeat)),
    field("thermal_trips", &[], NoUnit, "Shutdowns by critical temperature since the last power cycle (Blackhole).", |r| Value::integer(r.device.thermal_trips)),
    field("in_use_by_pid", &[], NoUnit, "Process that holds tt-umd's lock on the chip.", |r| Value::integer(r.device.in_use_by_pid)),
    field("foreign_holders", &[], NoUnit, "Openers of the device in PID namespaces that are not visible here.", |r| Some(Value::Integer(r.device.foreign_holders.into()))),
    field("pcie_generation", &["pcie.link.gen.current"], NoUnit, "PCIe generation of the link now.", |r| Value::integer(r.device.pcie.generation)),
    field("pcie_width", &["pcie.link.width.current"], NoUnit, "PCIe lanes of the link now.", |r| Value::integer(r.device.pcie.width)),
    field("pcie_max_generation", &["pcie.link.gen.max"], NoUnit, "Best PCIe generation of slot and card.", |r| Value::integer(r.device.pcie.max_generation)),
    field("pcie_max_width", &["pcie.link.width.max"], NoUnit, "Most PCIe lanes of slot and card.", |r| Value::integer(r.device.pcie.max_width)),
    field("host_to_device_bytes_per_second", &[], InName("B/s"), "PCIe traffic to the device. From the second sample of a loop on.", |r| r.device.pcie.host_to_device.map(|v| Value::Decimal(v.0, 0))),
    field("device_to_host_bytes_per_second", &[], InName("B/s"), "PCIe traffic from the device. From the second sample of a loop on.", |r| r.device.pcie.device_to_host.map(|v| Value::Decimal(v.0, 0))),
    field("dram_used_bytes", &[], InName("B"), "DRAM buffers of living processes.", |r| bytes(r.device.memory.dram_used)),
    field("dram_total_bytes", &[], InName("B"), "Physical DRAM of the chip.", |r| bytes(r.device.memory.dram_total)),
    field("l1_used_bytes", &[], InName("B"), "L1 buffers of living processes.", |r| bytes(r.device.memory.l1_used)),
    field("l1_total_bytes", &[], InName("B"), "L1 of the enabled Tensix cores.", |r| bytes(r.device.memory.l1_total)),
    field("l1_small_used_bytes", &[], InName("B"), "Buffers of living processes in the small L1 region.", |r| bytes(r.device.memory.l1_small_used)),
    field("trace_used_bytes", &[], InName("B"), "Recorded command traces of living processes (in DRAM).", |r| bytes(r.device.memory.trace_used)),
    field("cb_used_bytes", &[], InName("B"), "Circular buffers of living processes (in L1).", |r| bytes(r.device.memory.cb_used)),
    field("stale_bytes", &[], InName("B"), "Bytes that tt-metal's books still carry for dead processes; in no other figure.", |r| bytes(r.device.memory.stale)),
    field("untracked_processes", &[], NoUnit, "Processes on the device that tell nobody how much they use.", |r| Some(Value::Integer(r.device.memory.untracked_processes.into()))),
    field("firmware_bundle", &["vbios_version"], NoUnit, "Version of the firmware bundle.", |r| Value::text(&r.device.firmware.bundle)),
    field("firmware_dm_app", &[], NoUnit, "Version of the board management firmware.", |r| Value::text(&r.device.firmware.dm_app)),
    field("firmware_dm_bootloader", &[], NoUnit, "Version of its boot loader (Wormhole).", |r| Value::text(&r.device.firmware.dm_bootloader)),
    field("firmware_arc", &[], NoUnit, "Version of the chip management firmware (Wormhole).", |r| Value::text(&r.device.firmware.arc)),
    field("firmware_ethernet", &[], NoUnit, "Version of the Ethernet firmware (Wormhole).", |r| Value::text(&r.device.firmware.ethernet)),
    field("firmware_tt_flash", &[], NoUnit, "Version of the tt-flash that wrote the bundle (Wormhole).", |r| Value::text(&r.device.firmware.tt_flash)),
    field("driver_version", &[], NoUnit, "Version of the tenstorrent kernel module.", |r| Value::text(&r.snapshot.host.driver_version)),
    field("name", &["gpu_name"], NoUnit, "nvidia-smi's: maker and board.", |r| r.device.board.as_ref().map(|board| Value::Text(format!("Tenstorrent {board}")))),
    field("uuid", &["gpu_uuid"], NoUnit, "nvidia-smi's: TT- and the chip id; -i understands it.", |r| Value::text(&r.device.uuid())),
    field("count", &[], NoUnit, "nvidia-smi's: how many devices are shown.", |r| Some(Value::Integer(r.snapshot.devices.len() as u64))),
    field("pci.bus_id", &["gpu_bus_id"], NoUnit, "nvidia-smi's: PCI address.", |r| Value::text(&r.device.pci_address)),
    field("temperature.gpu", &[], NoUnit, "nvidia-smi's: chip temperature in whole °C.", |r| r.device.asic_temp.map(|v| Value::Decimal(v.0, 0))),
    field("fan.speed", &[], Shown("%"), "nvidia-smi's: not measured in percent; see fan_rpm.", |_| None),
    field("power.draw", &["power.draw.instant"], Shown("W"), "nvidia-smi's: power of the chip.", |r| r.device.power.map(|v| Value::Decimal(v.0, 2))),
    field("power.limit", &["enforced.power.limit", "power.max_limit"], Shown("W"), "nvidia-smi's: power limit of the chip.", |r| r.device.power_max.map(|v| Value::Decimal(v.0, 2))),
    field("clocks.gr", &["clocks.current.graphics", "clocks.sm", "clocks.current.sm"], Shown("MHz"), "nvidia-smi's: clock of the Tensix cores.", |r| Value::integer(r.device.aiclk.map(|v| v.0))),
    field("memory.used", &[], Shown("MiB"), "nvidia-smi's: DRAM buffers of living processes.", |r| Value::mebibytes(r.device.memory.dram_used)),
    field("memory.total", &[], Shown("MiB"), "nvidia-smi's: physical DRAM.", |r| Value::mebibytes(r.device.memory.dram_total)),
    field("memory.free", &[], Shown("MiB"), "nvidia-smi's: physical DRAM less what is used.", |r| Value::mebibytes(free(r.device))),
    field("utilization.gpu", &[], Shown("%"), "nvidia-smi's: not measured yet.", |_| None),
    field("utilization.memory", &[], Shown("%"), "nvidia-smi's: not measured.", |_| None),
];

/// Only where every process on the device tells what it uses.
fn free(device: &Device) -> Option<Bytes> {
    let memory = &device.memory;
    let (total, used) = (memory.dram_total?, memory.dram_used.filter(|_| memory.untracked_processes == 0)?);
    total.0.checked_sub(used.0).map(Bytes)
}
