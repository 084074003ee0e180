//! The figures of a device, one row each.

use super::{Column, Figure, Freshness, Judge, Metric, Section, Unit, Value, always, field, figures};
use crate::{Arch, Device, State};

/// What the chips of one generation clock at when they work and nothing holds them back.
fn full_clock(device: &Device) -> Option<f64> {
    Some(f64::from(device.arch?.full_clock().0))
}

/// What the link carries one way.
fn link_capacity(device: &Device) -> Option<f64> {
    device.pcie.capacity().map(|capacity| capacity.0)
}

const fn column(heading: &'static str, unit: &'static str, scale: f64, width: usize, position: u8) -> Option<Column> {
    Some(Column { heading, unit, scale, width, position })
}

const MIB: f64 = 1024.0 * 1024.0;

figures! {
    /// All figures of a device, in the order of reports.
    DEVICE_FIGURES: Device;

    /// What people call it.
    ID = Figure {
        title: "Id", aliases: &["device"], always: true, freshness: Freshness::Host,
        column: column("dev", "Id", 1.0, 5, 0),
        ..Figure::new("id", Unit::Text, "What the device is called here: its number, or NR for the chip behind N.", always!(id))
    };
    /// The ordinal of its device node.
    INDEX = Figure {
        title: "Index", freshness: Freshness::Host,
        ..Figure::new("index", Unit::Count, "N of /dev/tenstorrent/N.", (|device, _| device.id.index().map(|n| Value::Whole(n.into())), |_, _, _| {}))
    };
    /// Where it is on the bus.
    PCI_ADDRESS = Figure {
        title: "PCI address", freshness: Freshness::Host, metric: Metric::info("ttmon_device", "pci_address"),
        ..Figure::new("pci_address", Unit::Text, "PCI address, domain:bus:device.function.", field!(pci_address))
    };
    /// Chip generation.
    ARCH = Figure {
        title: "Architecture", words: &Arch::NAMES, freshness: Freshness::Fixed, metric: Metric::info("ttmon_device", "arch"),
        ..Figure::new("arch", Unit::Text, "Chip generation: wormhole or blackhole.", field!(arch))
    };
    /// Board name.
    BOARD = Figure {
        title: "Board", freshness: Freshness::Fixed, metric: Metric::info("ttmon_device", "board"),
        ..Figure::new("board", Unit::Text, "Board name: n150, n300, p150a, galaxy-wormhole and so on.", field!(board))
    };
    /// Board id.
    SERIAL = Figure {
        title: "Serial", aliases: &["gpu_serial"], freshness: Freshness::Fixed, metric: Metric::info("ttmon_device", "serial"),
        ..Figure::new("serial", Unit::Text, "Board id, 16 hex digits. The chips of one board share it.", field!(serial))
    };
    /// Chip id.
    ASIC_ID = Figure {
        title: "ASIC id", freshness: Freshness::Fixed, metric: Metric::info("ttmon_device", "asic_id"),
        ..Figure::new("asic_id", Unit::Text, "Chip id, 16 hex digits.", field!(asic_id))
    };
    /// Memory node of the host.
    NUMA_NODE = Figure {
        title: "NUMA node", freshness: Freshness::Fixed,
        ..Figure::new("numa_node", Unit::Count, "NUMA node of the host that the device is attached to.", field!(numa_node))
    };

    /// How it is.
    STATE = Figure {
        title: "State", section: Section::Health, words: &State::NAMES, always: true, freshness: Freshness::Host,
        column: column("state", "", 1.0, 9, 90), metric: Metric::one_of("ttmon_device_state", "state"), rule: Some("state"),
        ..Figure::new("state", Unit::Text, "Condition of the device.", always!(state))
    };
    /// How old the readings are.
    SAMPLE_AGE = Figure {
        title: "Sample age", section: Section::Health, freshness: Freshness::Host,
        metric: Metric::gauge("ttmon_device_sample_age_seconds"), rule: Some("sample_age"),
        ..Figure::new("sample_age_seconds", Unit::Seconds, "How old the readings are: 0 unless the device did not answer in time.", field!(sample_age_seconds))
    };
    /// Firmware heartbeat.
    HEARTBEAT = Figure {
        title: "Heartbeat", section: Section::Health, metric: Metric::gauge("ttmon_device_heartbeat"), rule: Some("heartbeat"),
        ..Figure::new("heartbeat", Unit::Count, "Counts up about ten times a second while the firmware runs; a reset sets it back.", field!(heartbeat))
    };
    /// Thermal shutdowns as the chip counts them.
    THERMAL_TRIPS = Figure {
        title: "Thermal trips", section: Section::Health, freshness: Freshness::Seldom,
        ..Figure::new("thermal_trips", Unit::Count, "Shutdowns by critical temperature since the last power cycle (Blackhole).", field!(thermal_trips))
    };
    /// Thermal shutdowns over power cycles.
    THERMAL_TRIPS_TOTAL = Figure {
        title: "Thermal trips, total", section: Section::Health, freshness: Freshness::Seldom,
        metric: Metric::counter("ttmon_device_thermal_trips"), rule: Some("thermal_trips"),
        ..Figure::new("thermal_trips_total", Unit::Count, "Shutdowns by critical temperature; a power cycle does not set it back while it is watched.", field!(thermal_trips_total))
    };
    /// Owner of tt-umd's lock.
    IN_USE_BY_PID = Figure {
        title: "In use by process", section: Section::Health, freshness: Freshness::Host,
        ..Figure::new("in_use_by_pid", Unit::Count, "Process that holds tt-umd's lock on the chip.", field!(in_use_by_pid))
    };
    /// Openers that have no pid here.
    FOREIGN_HOLDERS = Figure {
        title: "Openers in other PID namespaces", section: Section::Health, always: true, freshness: Freshness::Host,
        ..Figure::new("foreign_holders", Unit::Count, "Openers of the device in PID namespaces that are not visible here.", always!(foreign_holders))
    };

    /// Chip temperature.
    ASIC_TEMP = Figure {
        title: "Temperature", section: Section::Temperature, limit: Some(&ASIC_TEMP_MAX), judge: Judge::Heat, history: true,
        column: column("temp", "C", 1.0, 6, 20), metric: Metric::gauge("ttmon_device_temperature_celsius"), rule: Some("asic_temp"),
        ..Figure::new("asic_temp_celsius", Unit::Celsius, "Chip temperature.", field!(asic_temp))
    };
    /// Throttle limit.
    ASIC_TEMP_MAX = Figure {
        title: "Temperature limit", section: Section::Temperature, freshness: Freshness::Fixed,
        metric: Metric::gauge("ttmon_device_temperature_limit_celsius"),
        ..Figure::new("asic_temp_max_celsius", Unit::Celsius, "Temperature above which the firmware throttles.", field!(asic_temp_max))
    };
    /// Fan speed.
    FAN = Figure {
        title: "Fan", section: Section::Temperature, history: true,
        column: column("fan", "rpm", 1.0, 6, 30), metric: Metric::gauge("ttmon_device_fan_rpm"), rule: Some("fan"),
        ..Figure::new("fan_rpm", Unit::Rpm, "Fan speed. Absent on passively cooled boards and on Wormhole.", field!(fan))
    };

    /// Power of the chip.
    POWER = Figure {
        title: "Power", section: Section::Power, limit: Some(&POWER_MAX), judge: Judge::Load, history: true,
        column: column("pwr", "W", 1.0, 6, 10), metric: Metric::gauge("ttmon_device_power_watts"), rule: Some("power"),
        ..Figure::new("power_watts", Unit::Watts, "Power of the chip (not of the board).", field!(power))
    };
    /// Power limit.
    POWER_MAX = Figure {
        title: "Power limit", section: Section::Power, freshness: Freshness::Relaxed,
        metric: Metric::gauge("ttmon_device_power_limit_watts"),
        ..Figure::new("power_max_watts", Unit::Watts, "Power limit of the chip.", field!(power_max))
    };
    /// Core voltage.
    VCORE = Figure {
        title: "Core voltage", section: Section::Power, limit: Some(&VCORE_MAX), judge: Judge::Load, freshness: Freshness::Relaxed,
        metric: Metric::gauge("ttmon_device_core_volts"), rule: Some("vcore"),
        ..Figure::new("vcore_volts", Unit::Volts, "Core voltage.", field!(vcore))
    };
    /// Core voltage limit.
    VCORE_MAX = Figure {
        title: "Core voltage limit", section: Section::Power, freshness: Freshness::Fixed,
        metric: Metric::gauge("ttmon_device_core_limit_volts"),
        ..Figure::new("vcore_max_volts", Unit::Volts, "Core voltage limit.", field!(vcore_max))
    };
    /// Core current.
    CURRENT = Figure {
        title: "Core current", section: Section::Power, limit: Some(&CURRENT_MAX), judge: Judge::Load, freshness: Freshness::Relaxed,
        metric: Metric::gauge("ttmon_device_core_amperes"), rule: Some("current"),
        ..Figure::new("current_amperes", Unit::Amperes, "Core current.", field!(current))
    };
    /// Core current limit.
    CURRENT_MAX = Figure {
        title: "Core current limit", section: Section::Power, freshness: Freshness::Fixed,
        metric: Metric::gauge("ttmon_device_core_limit_amperes"),
        ..Figure::new("current_max_amperes", Unit::Amperes, "Core current limit.", field!(current_max))
    };

    /// Clock of the Tensix cores.
    AICLK = Figure {
        title: "AICLK", section: Section::Clock, full_scale: Some(full_clock), history: true,
        column: column("aiclk", "MHz", 1.0, 6, 40), metric: Metric::gauge("ttmon_device_aiclk_hertz"), rule: Some("aiclk"),
        ..Figure::new("aiclk_megahertz", Unit::Megahertz, "Clock of the Tensix cores.", field!(aiclk))
    };
    /// Clock of the AXI bus.
    AXICLK = Figure {
        title: "AXICLK", section: Section::Clock, freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_axiclk_hertz"),
        ..Figure::new("axiclk_megahertz", Unit::Megahertz, "Clock of the AXI bus.", field!(axiclk))
    };
    /// Clock of the management core.
    ARCCLK = Figure {
        title: "ARCCLK", section: Section::Clock, freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_arcclk_hertz"),
        ..Figure::new("arcclk_megahertz", Unit::Megahertz, "Clock of the management core.", field!(arcclk))
    };

    /// PCIe generation now.
    PCIE_GENERATION = Figure {
        title: "Generation", section: Section::Pcie, object: Some("pcie"), aliases: &["pcie.link.gen.current"],
        limit: Some(&PCIE_MAX_GENERATION), judge: Judge::Link, freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_pcie_generation"),
        ..Figure::new("pcie_generation", Unit::Count, "PCIe generation of the link now.", field!(pcie.generation))
    };
    /// Best PCIe generation.
    PCIE_MAX_GENERATION = Figure {
        title: "Max generation", section: Section::Pcie, object: Some("pcie"), aliases: &["pcie.link.gen.max"],
        freshness: Freshness::Fixed, metric: Metric::gauge("ttmon_device_pcie_generation_limit"),
        ..Figure::new("pcie_max_generation", Unit::Count, "Best PCIe generation of slot and card.", field!(pcie.max_generation))
    };
    /// PCIe lanes now.
    PCIE_WIDTH = Figure {
        title: "Lanes", section: Section::Pcie, object: Some("pcie"), aliases: &["pcie.link.width.current"],
        limit: Some(&PCIE_MAX_WIDTH), judge: Judge::Link, freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_pcie_lanes"),
        ..Figure::new("pcie_width", Unit::Count, "PCIe lanes of the link now.", field!(pcie.width))
    };
    /// Most PCIe lanes.
    PCIE_MAX_WIDTH = Figure {
        title: "Max lanes", section: Section::Pcie, object: Some("pcie"), aliases: &["pcie.link.width.max"],
        freshness: Freshness::Fixed, metric: Metric::gauge("ttmon_device_pcie_lanes_limit"),
        ..Figure::new("pcie_max_width", Unit::Count, "Most PCIe lanes of slot and card.", field!(pcie.max_width))
    };
    /// Whether the link runs below what it could.
    LINK_DEGRADED = Figure {
        title: "Link degraded", section: Section::Pcie, in_json: false, freshness: Freshness::Seldom,
        metric: Metric::gauge("ttmon_device_pcie_degraded"), rule: Some("link_degraded"),
        ..Figure::new("link_degraded", Unit::YesNo, "Whether the PCIe link runs slower or narrower than slot and card could.", (|device, _| device.pcie.is_degraded().map(Value::YesNo), |_, _, _| {}))
    };
    /// Traffic to the device.
    HOST_TO_DEVICE = Figure {
        title: "PCIe to device", section: Section::Pcie, object: Some("pcie"), full_scale: Some(link_capacity),
        freshness: Freshness::Rate, history: true, column: column("rxpci", "MB/s", 1e6, 8, 70),
        metric: Metric::rate_of("ttmon_device_pcie_host_to_device_bytes"),
        ..Figure::new("host_to_device_bytes_per_second", Unit::BytesPerSecond, "PCIe traffic to the device. From the second sample of a loop on.", field!(pcie.host_to_device))
    };
    /// Traffic from the device.
    DEVICE_TO_HOST = Figure {
        title: "PCIe to host", section: Section::Pcie, object: Some("pcie"), full_scale: Some(link_capacity),
        freshness: Freshness::Rate, history: true, column: column("txpci", "MB/s", 1e6, 8, 80),
        metric: Metric::rate_of("ttmon_device_pcie_device_to_host_bytes"),
        ..Figure::new("device_to_host_bytes_per_second", Unit::BytesPerSecond, "PCIe traffic from the device. From the second sample of a loop on.", field!(pcie.device_to_host))
    };
    /// All traffic to the device.
    HOST_TO_DEVICE_TOTAL = Figure {
        title: "PCIe to device, total", section: Section::Pcie, object: Some("pcie"), freshness: Freshness::Rate,
        metric: Metric::counter("ttmon_device_pcie_host_to_device_bytes"),
        ..Figure::new("host_to_device_bytes_total", Unit::Bytes, "Bytes over PCIe to the device since the counters were first read.", field!(pcie.host_to_device_total))
    };
    /// All traffic from the device.
    DEVICE_TO_HOST_TOTAL = Figure {
        title: "PCIe to host, total", section: Section::Pcie, object: Some("pcie"), freshness: Freshness::Rate,
        metric: Metric::counter("ttmon_device_pcie_device_to_host_bytes"),
        ..Figure::new("device_to_host_bytes_total", Unit::Bytes, "Bytes over PCIe to the host since the counters were first read.", field!(pcie.device_to_host_total))
    };

    /// DRAM in use.
    DRAM_USED = Figure {
        title: "DRAM used", section: Section::Memory, object: Some("memory"), limit: Some(&DRAM_TOTAL), judge: Judge::Capacity,
        freshness: Freshness::Host, history: true, column: column("dram", "MiB", MIB, 8, 50),
        metric: Metric::gauge_by("ttmon_device_memory_used_bytes", ("kind", "dram")), rule: Some("dram"),
        ..Figure::new("dram_used_bytes", Unit::Bytes, "DRAM that running processes hold: buffers and traces.", field!(memory.dram_used))
    };
    /// DRAM that there is.
    DRAM_TOTAL = Figure {
        title: "DRAM total", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_total_bytes", ("kind", "dram")),
        ..Figure::new("dram_total_bytes", Unit::Bytes, "Physical DRAM of the chip.", field!(memory.dram_total))
    };
    /// DRAM buffers.
    DRAM_BUFFERS = Figure {
        title: "DRAM buffers", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "dram")),
        ..Figure::new("dram_bytes", Unit::Bytes, "Part of the DRAM used: buffers.", field!(memory.dram))
    };
    /// Traces.
    TRACE = Figure {
        title: "TRACE (in DRAM)", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "trace")), rule: Some("trace"),
        ..Figure::new("trace_used_bytes", Unit::Bytes, "Part of the DRAM used: recorded command traces.", field!(memory.trace_used))
    };
    /// L1 in use.
    L1_USED = Figure {
        title: "L1 used", section: Section::Memory, object: Some("memory"), limit: Some(&L1_TOTAL), judge: Judge::Capacity,
        freshness: Freshness::Host, history: true, column: column("l1", "KiB", 1024.0, 8, 60),
        metric: Metric::gauge_by("ttmon_device_memory_used_bytes", ("kind", "l1")), rule: Some("l1"),
        ..Figure::new("l1_used_bytes", Unit::Bytes, "L1 that running processes hold: buffers, L1_SMALL and circular buffers.", field!(memory.l1_used))
    };
    /// L1 that there is.
    L1_TOTAL = Figure {
        title: "L1 total", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_total_bytes", ("kind", "l1")),
        ..Figure::new("l1_total_bytes", Unit::Bytes, "L1 of the enabled Tensix cores.", field!(memory.l1_total))
    };
    /// L1 buffers.
    L1_BUFFERS = Figure {
        title: "L1 buffers", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "l1")),
        ..Figure::new("l1_bytes", Unit::Bytes, "Part of the L1 used: buffers.", field!(memory.l1))
    };
    /// The small L1 region.
    L1_SMALL = Figure {
        title: "L1_SMALL (in L1)", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "l1_small")),
        ..Figure::new("l1_small_used_bytes", Unit::Bytes, "Part of the L1 used: buffers in the small L1 region.", field!(memory.l1_small_used))
    };
    /// Circular buffers.
    CB = Figure {
        title: "CB (in L1)", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "cb")),
        ..Figure::new("cb_used_bytes", Unit::Bytes, "Part of the L1 used: circular buffers.", field!(memory.cb_used))
    };
    /// Kernel code.
    KERNEL = Figure {
        title: "KERNEL (beside L1 used)", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "kernel")),
        ..Figure::new("kernel_bytes", Unit::Bytes, "Kernel code, where a process reports it. Not part of the used figures.", field!(memory.kernel))
    };
    /// Bytes of exited processes.
    STALE = Figure {
        title: "Stale", section: Section::Memory, object: Some("memory"), freshness: Freshness::Host,
        metric: Metric::gauge("ttmon_device_memory_stale_bytes"), rule: Some("stale"),
        ..Figure::new("stale_bytes", Unit::Bytes, "Memory still attributed to exited processes. Not part of the used figures.", field!(memory.stale))
    };
    /// Holders that do not report.
    UNTRACKED = Figure {
        title: "Processes not reporting", section: Section::Memory, object: Some("memory"), always: true, freshness: Freshness::Host,
        metric: Metric::gauge("ttmon_device_untracked_processes"), rule: Some("untracked_processes"),
        ..Figure::new("untracked_processes", Unit::Count, "Processes on the device that do not report how much they use: the used figures are a lower bound.", always!(memory.untracked_processes))
    };

    /// Firmware bundle.
    FIRMWARE_BUNDLE = Figure {
        title: "Bundle", section: Section::Firmware, object: Some("firmware"), aliases: &["vbios_version"], freshness: Freshness::Fixed,
        metric: Metric::info("ttmon_device_firmware", "bundle"),
        ..Figure::new("firmware_bundle", Unit::Text, "Version of the firmware bundle.", field!(firmware.bundle))
    };
    /// Board management firmware.
    FIRMWARE_DM_APP = Figure {
        title: "DM app", section: Section::Firmware, object: Some("firmware"), freshness: Freshness::Fixed,
        metric: Metric::info("ttmon_device_firmware", "dm_app"),
        ..Figure::new("firmware_dm_app", Unit::Text, "Version of the board management firmware.", field!(firmware.dm_app))
    };
    /// Board management boot loader.
    FIRMWARE_DM_BOOTLOADER = Figure {
        title: "DM bootloader", section: Section::Firmware, object: Some("firmware"), freshness: Freshness::Fixed,
        metric: Metric::info("ttmon_device_firmware", "dm_bootloader"),
        ..Figure::new("firmware_dm_bootloader", Unit::Text, "Version of the board management boot loader (Wormhole).", field!(firmware.dm_bootloader))
    };
    /// Chip management firmware.
    FIRMWARE_ARC = Figure {
        title: "ARC", section: Section::Firmware, object: Some("firmware"), freshness: Freshness::Fixed,
        metric: Metric::info("ttmon_device_firmware", "arc_firmware"),
        ..Figure::new("firmware_arc", Unit::Text, "Version of the chip management firmware (Wormhole).", field!(firmware.arc))
    };
    /// Ethernet firmware.
    FIRMWARE_ETHERNET = Figure {
        title: "Ethernet", section: Section::Firmware, object: Some("firmware"), freshness: Freshness::Fixed,
        metric: Metric::info("ttmon_device_firmware", "ethernet"),
        ..Figure::new("firmware_ethernet", Unit::Text, "Version of the Ethernet firmware (Wormhole).", field!(firmware.ethernet))
    };
    /// The tool that wrote the bundle.
    FIRMWARE_TT_FLASH = Figure {
        title: "tt-flash", section: Section::Firmware, object: Some("firmware"), freshness: Freshness::Fixed,
        metric: Metric::info("ttmon_device_firmware", "tt_flash"),
        ..Figure::new("firmware_tt_flash", Unit::Text, "Version of the tt-flash that wrote the bundle (Wormhole).", field!(firmware.tt_flash))
    };
}

/// What history keeps: the fields of the rows that say so, in the order of the table.
pub fn kept_in_history() -> impl Iterator<Item = super::Field<Device>> + Clone {
    DEVICE_FIGURES.iter().filter(|figure| figure.history).flat_map(|figure| figure.fields())
}

/// The field with this name.
pub fn device_field(name: &str) -> Option<super::Field<Device>> {
    DEVICE_FIGURES.iter().flat_map(|figure| figure.fields()).find(|field| field.name() == name)
}
