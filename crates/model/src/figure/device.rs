//! The figures of a device, one row each.

use super::deep::DEEP_FIGURES;
use super::{Figure, Freshness, Judge, KIB, MIB, Metric, Section, Value, always, column, computed, field, figures};
use crate::{Arch, Device, State, UtilizationSource, UtilizationUnknown};

/// What the chips of one generation clock at when they work and nothing holds them back.
fn full_clock(device: &Device) -> Option<f64> {
    Some(f64::from(device.arch?.full_clock().0))
}

/// What the link carries one way.
fn link_capacity(device: &Device) -> Option<f64> {
    device.pcie.capacity().map(|capacity| capacity.0)
}

figures! {
    /// The figures that the driver's files, the host and its processes tell, in the order of reports.
    PLAIN_FIGURES: Device;

    with { section: Section::Identity, freshness: Freshness::Fixed };

    /// What the device is called here: its number, or NR for the chip behind N.
    ID("id", "Id", Text, always!(id)) {
        aliases: &["device"], always: true, freshness: Freshness::Host, column: column("dev", "Id", 1.0, 5, 0),
    };
    /// N of /dev/tenstorrent/N.
    INDEX("index", "Index", Count, computed(|device, _| device.id.index().map(|n| Value::Whole(n.into())))) {
        freshness: Freshness::Host,
    };
    /// PCI address, domain:bus:device.function.
    PCI_ADDRESS("pci_address", "PCI address", Text, field!(pci_address)) {
        freshness: Freshness::Host, metric: Metric::info("ttmon_device", "pci_address"),
    };
    /// Chip generation: wormhole or blackhole.
    ARCH("arch", "Architecture", Text, field!(arch)) {
        words: &Arch::NAMES, metric: Metric::info("ttmon_device", "arch"),
    };
    /// Board name: n150, n300, p150a, galaxy-wormhole and so on.
    BOARD("board", "Board", Text, field!(board)) { metric: Metric::info("ttmon_device", "board") };
    /// Board id, 16 hex digits. The chips of one board share it.
    SERIAL("serial", "Serial", Text, field!(serial)) {
        aliases: &["gpu_serial"], metric: Metric::info("ttmon_device", "serial"),
    };
    /// Chip id, 16 hex digits.
    ASIC_ID("asic_id", "ASIC id", Text, field!(asic_id)) { metric: Metric::info("ttmon_device", "asic_id") };
    /// NUMA node of the host that the device is attached to.
    NUMA_NODE("numa_node", "NUMA node", Count, field!(numa_node));

    with { section: Section::Health };

    /// Condition of the device.
    STATE("state", "State", Text, always!(state)) {
        words: &State::NAMES, always: true, freshness: Freshness::Host, column: column("state", "", 1.0, 9, 90),
        metric: Metric::one_of("ttmon_device_state", "state"), rule: Some("state"),
    };
    /// How old the readings are: 0 unless the device did not answer in time.
    SAMPLE_AGE("sample_age_seconds", "Sample age", Seconds, field!(sample_age_seconds)) {
        freshness: Freshness::Host, metric: Metric::gauge("ttmon_device_sample_age_seconds"),
        rule: Some("sample_age"),
    };
    /// Counts up about ten times a second while the firmware runs; a reset sets it back.
    HEARTBEAT("heartbeat", "Heartbeat", Count, field!(heartbeat)) {
        freshness: Freshness::Often, metric: Metric::gauge("ttmon_device_heartbeat"), rule: Some("heartbeat"),
    };
    /// Whether the heartbeat was seen to count up. One reading alone proves nothing.
    HEARTBEAT_VERIFIED("heartbeat_verified", "Heartbeat verified", YesNo, field!(heartbeat_verified));
    /// Shutdowns by critical temperature since the last power cycle (Blackhole).
    THERMAL_TRIPS("thermal_trips", "Thermal trips", Count, field!(thermal_trips)) { freshness: Freshness::Seldom };
    /// Shutdowns by critical temperature; a power cycle does not set it back while it is watched.
    THERMAL_TRIPS_TOTAL("thermal_trips_total", "Thermal trips, total", Count, field!(thermal_trips_total)) {
        freshness: Freshness::Seldom, metric: Metric::counter("ttmon_device_thermal_trips"),
        rule: Some("thermal_trips"),
    };
    /// Process that holds tt-umd's lock on the chip.
    IN_USE_BY_PID("in_use_by_pid", "In use by process", Count, field!(in_use_by_pid)) { freshness: Freshness::Host };
    /// Openers of the device in PID namespaces that are not visible here.
    FOREIGN_HOLDERS("foreign_holders", "Openers in other PID namespaces", Count, always!(foreign_holders)) {
        always: true, freshness: Freshness::Host,
    };
    /// Whether all processes that have the device open are listed.
    NAMES_ALL_HOLDERS("names_all_holders", "All openers listed", YesNo, always!(names_all_holders)) {
        always: true, freshness: Freshness::Host,
    };

    with { section: Section::Temperature };

    /// Chip temperature.
    ASIC_TEMP("asic_temp_celsius", "Temperature", Celsius, field!(asic_temp)) {
        limit: Some(&ASIC_TEMP_MAX), judge: Judge::Heat, history: true, column: column("temp", "C", 1.0, 6, 20),
        metric: Metric::gauge("ttmon_device_temperature_celsius"), rule: Some("asic_temp"),
    };
    /// Temperature above which the firmware throttles.
    ASIC_TEMP_MAX("asic_temp_max_celsius", "Temperature limit", Celsius, field!(asic_temp_max)) {
        freshness: Freshness::Fixed, metric: Metric::gauge("ttmon_device_temperature_limit_celsius"),
    };
    /// Fan speed. Absent on passively cooled boards and on Wormhole.
    FAN("fan_rpm", "Fan", Rpm, field!(fan)) {
        freshness: Freshness::Relaxed, history: true, column: column("fan", "rpm", 1.0, 6, 30),
        metric: Metric::gauge("ttmon_device_fan_rpm"), rule: Some("fan"),
    };

    with { section: Section::Power };

    /// Power of the chip (not of the board).
    POWER("power_watts", "Power", Watts, field!(power)) {
        limit: Some(&POWER_MAX), judge: Judge::Load, history: true, column: column("pwr", "W", 1.0, 6, 10),
        metric: Metric::gauge("ttmon_device_power_watts"), rule: Some("power"),
    };
    /// Power limit of the chip.
    POWER_MAX("power_max_watts", "Power limit", Watts, field!(power_max)) {
        freshness: Freshness::Relaxed, metric: Metric::gauge("ttmon_device_power_limit_watts"),
    };
    /// Core voltage.
    VCORE("vcore_volts", "Core voltage", Volts, field!(vcore)) {
        limit: Some(&VCORE_MAX), judge: Judge::Load, freshness: Freshness::Relaxed,
        metric: Metric::gauge("ttmon_device_core_volts"), rule: Some("vcore"),
    };
    /// Core voltage limit.
    VCORE_MAX("vcore_max_volts", "Core voltage limit", Volts, field!(vcore_max)) {
        freshness: Freshness::Fixed, metric: Metric::gauge("ttmon_device_core_limit_volts"),
    };
    /// Core current.
    CURRENT("current_amperes", "Core current", Amperes, field!(current)) {
        limit: Some(&CURRENT_MAX), judge: Judge::Load, freshness: Freshness::Relaxed,
        metric: Metric::gauge("ttmon_device_core_amperes"), rule: Some("current"),
    };
    /// Core current limit.
    CURRENT_MAX("current_max_amperes", "Core current limit", Amperes, field!(current_max)) {
        freshness: Freshness::Fixed, metric: Metric::gauge("ttmon_device_core_limit_amperes"),
    };
    /// Energy of the chip since it was first read, from its power. It starts at 0 when the service or the loop does; time in
    /// which the power is not known adds nothing.
    ENERGY_TOTAL("energy_joules_total", "Energy, total", Joules, field!(energy_total)) {
        metric: Metric::counter("ttmon_device_energy_joules"),
    };

    with { section: Section::Clock };

    /// Clock of the Tensix cores.
    AICLK("aiclk_megahertz", "AICLK", Megahertz, field!(aiclk)) {
        full_scale: Some(full_clock), freshness: Freshness::Often, history: true,
        column: column("aiclk", "MHz", 1.0, 6, 40), metric: Metric::gauge("ttmon_device_aiclk_hertz"), rule: Some("aiclk"),
    };
    /// Clock of the AXI bus.
    AXICLK("axiclk_megahertz", "AXICLK", Megahertz, field!(axiclk)) {
        freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_axiclk_hertz"),
    };
    /// Clock of the management core.
    ARCCLK("arcclk_megahertz", "ARCCLK", Megahertz, field!(arcclk)) {
        freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_arcclk_hertz"),
    };

    with { section: Section::Utilization, freshness: Freshness::Host };

    /// Part of the last second in which at least one program ran on the device. Absent where it is not known: then
    /// utilization_unknown says why.
    UTILIZATION("utilization_percent", "Utilization", Percent, field!(activity.utilization_percent)) {
        aliases: &["util"], full_scale: Some(|_| Some(100.0)), history: true,
        column: column("util", "%", 1.0, 6, 25), metric: Metric::gauge("ttmon_device_utilization_ratio"),
        rule: Some("utilization"),
    };
    /// Whether the utilization is a lower bound: not all holders of the device report, or records were lost.
    UTILIZATION_LOWER_BOUND("utilization_lower_bound", "Lower bound", YesNo,
        field!(activity.utilization_lower_bound)) { metric: Metric::gauge("ttmon_device_utilization_lower_bound") };
    /// Where the utilization comes from.
    UTILIZATION_SOURCE("utilization_source", "Source", Text, field!(activity.utilization_source)) {
        words: &UtilizationSource::NAMES,
    };
    /// Why the utilization is not known.
    UTILIZATION_UNKNOWN("utilization_unknown", "Unknown because", Text, field!(activity.utilization_unknown)) {
        words: &UtilizationUnknown::NAMES,
    };
    /// Time in which at least one program ran, as it was recorded while it was watched.
    BUSY_TOTAL("busy_seconds_total", "Busy, total", Seconds, field!(activity.busy_seconds_total)) {
        metric: Metric::counter("ttmon_device_busy_seconds"),
    };
    /// Programs that ran in a second, as they were recorded. From the second sample of a loop on.
    PROGRAM_RATE("programs_per_second", "Programs per second", PerSecond, field!(activity.programs_per_second)) {
        freshness: Freshness::Host, history: true, column: column("progs", "/s", 1.0, 7, 26),
        metric: Metric::rate_of("ttmon_device_programs"), rule: Some("programs"),
    };
    /// Programs that have run on the device, as they were recorded while it was watched.
    PROGRAMS_TOTAL("programs_total", "Programs, total", Count, field!(activity.programs_total)) {
        metric: Metric::counter("ttmon_device_programs"),
    };

    with { section: Section::Pcie, object: Some("pcie") };

    /// PCIe generation of the link now.
    PCIE_GENERATION("pcie_generation", "Generation", Count, field!(pcie.generation)) {
        aliases: &["pcie.link.gen.current"], limit: Some(&PCIE_MAX_GENERATION), judge: Judge::Link,
        freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_pcie_generation"),
    };
    /// Best PCIe generation of slot and card.
    PCIE_MAX_GENERATION("pcie_max_generation", "Max generation", Count, field!(pcie.max_generation)) {
        aliases: &["pcie.link.gen.max"], freshness: Freshness::Fixed,
        metric: Metric::gauge("ttmon_device_pcie_generation_limit"),
    };
    /// PCIe lanes of the link now.
    PCIE_WIDTH("pcie_width", "Lanes", Count, field!(pcie.width)) {
        aliases: &["pcie.link.width.current"], limit: Some(&PCIE_MAX_WIDTH), judge: Judge::Link,
        freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_pcie_lanes"),
    };
    /// Most PCIe lanes of slot and card.
    PCIE_MAX_WIDTH("pcie_max_width", "Max lanes", Count, field!(pcie.max_width)) {
        aliases: &["pcie.link.width.max"], freshness: Freshness::Fixed,
        metric: Metric::gauge("ttmon_device_pcie_lanes_limit"),
    };
    /// Whether the PCIe link runs slower or narrower than slot and card could.
    LINK_DEGRADED("link_degraded", "Link degraded", YesNo,
        computed(|device, _| device.pcie.is_degraded().map(Value::YesNo))) {
        in_json: false, freshness: Freshness::Seldom, metric: Metric::gauge("ttmon_device_pcie_degraded"),
        rule: Some("link_degraded"), object: None,
    };
    /// PCIe traffic to the device. From the second sample of a loop on.
    HOST_TO_DEVICE("host_to_device_bytes_per_second", "PCIe to device", BytesPerSecond, field!(pcie.host_to_device)) {
        full_scale: Some(link_capacity), freshness: Freshness::Rate, history: true,
        column: column("rxpci", "MB/s", 1e6, 6, 70),
        metric: Metric::rate_of("ttmon_device_pcie_host_to_device_bytes"),
    };
    /// PCIe traffic from the device. From the second sample of a loop on.
    DEVICE_TO_HOST("device_to_host_bytes_per_second", "PCIe to host", BytesPerSecond, field!(pcie.device_to_host)) {
        full_scale: Some(link_capacity), freshness: Freshness::Rate, history: true,
        column: column("txpci", "MB/s", 1e6, 6, 80),
        metric: Metric::rate_of("ttmon_device_pcie_device_to_host_bytes"),
    };
    /// Bytes over PCIe to the device since the counters were first read.
    HOST_TO_DEVICE_TOTAL("host_to_device_bytes_total", "PCIe to device, total", Bytes, field!(pcie.host_to_device_total)) {
        freshness: Freshness::Rate, metric: Metric::counter("ttmon_device_pcie_host_to_device_bytes"),
    };
    /// Bytes over PCIe to the host since the counters were first read.
    DEVICE_TO_HOST_TOTAL("device_to_host_bytes_total", "PCIe to host, total", Bytes, field!(pcie.device_to_host_total)) {
        freshness: Freshness::Rate, metric: Metric::counter("ttmon_device_pcie_device_to_host_bytes"),
    };

    with { section: Section::Memory, object: Some("memory"), freshness: Freshness::Host };

    /// DRAM that running processes hold: buffers and traces.
    DRAM_USED("dram_used_bytes", "DRAM used", Bytes, field!(memory.dram_used)) {
        limit: Some(&DRAM_TOTAL), judge: Judge::Capacity, history: true, column: column("dram", "MiB", MIB, 8, 50),
        metric: Metric::gauge_by("ttmon_device_memory_used_bytes", ("kind", "dram")), rule: Some("dram"),
    };
    /// Physical DRAM of the chip.
    DRAM_TOTAL("dram_total_bytes", "DRAM total", Bytes, field!(memory.dram_total)) {
        metric: Metric::gauge_by("ttmon_device_memory_total_bytes", ("kind", "dram")),
    };
    /// Part of the DRAM used: buffers.
    DRAM_BUFFERS("dram_bytes", "DRAM buffers", Bytes, field!(memory.dram)) {
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "dram")),
    };
    /// Part of the DRAM used: recorded command traces.
    TRACE("trace_used_bytes", "TRACE (in DRAM)", Bytes, field!(memory.trace_used)) {
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "trace")), rule: Some("trace"),
    };
    /// L1 that running processes hold: buffers, L1_SMALL and circular buffers.
    L1_USED("l1_used_bytes", "L1 used", Bytes, field!(memory.l1_used)) {
        limit: Some(&L1_TOTAL), judge: Judge::Capacity, history: true, column: column("l1", "KiB", KIB, 8, 60),
        metric: Metric::gauge_by("ttmon_device_memory_used_bytes", ("kind", "l1")), rule: Some("l1"),
    };
    /// L1 of the enabled Tensix cores.
    L1_TOTAL("l1_total_bytes", "L1 total", Bytes, field!(memory.l1_total)) {
        metric: Metric::gauge_by("ttmon_device_memory_total_bytes", ("kind", "l1")),
    };
    /// Part of the L1 used: buffers.
    L1_BUFFERS("l1_bytes", "L1 buffers", Bytes, field!(memory.l1)) {
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "l1")),
    };
    /// Part of the L1 used: buffers in the small L1 region.
    L1_SMALL("l1_small_used_bytes", "L1_SMALL (in L1)", Bytes, field!(memory.l1_small_used)) {
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "l1_small")),
    };
    /// Part of the L1 used: circular buffers.
    CB("cb_used_bytes", "CB (in L1)", Bytes, field!(memory.cb_used)) {
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "cb")),
    };
    /// Kernel code, where a process reports it. Not part of the used figures.
    KERNEL("kernel_bytes", "KERNEL (beside L1 used)", Bytes, field!(memory.kernel)) {
        metric: Metric::gauge_by("ttmon_device_memory_bytes", ("kind", "kernel")),
    };
    /// Memory still attributed to exited processes. Not part of the used figures.
    STALE("stale_bytes", "Stale", Bytes, field!(memory.stale)) {
        metric: Metric::gauge("ttmon_device_memory_stale_bytes"), rule: Some("stale"),
    };
    /// Processes on the device that do not report how much they use: the used figures are a lower bound.
    UNTRACKED("untracked_processes", "Processes not reporting", Count, always!(memory.untracked_processes)) {
        always: true, metric: Metric::gauge("ttmon_device_untracked_processes"), rule: Some("untracked_processes"),
    };

    with { section: Section::Firmware, object: Some("firmware"), freshness: Freshness::Fixed };

    /// Version of the firmware bundle.
    FIRMWARE_BUNDLE("firmware_bundle", "Bundle", Text, field!(firmware.bundle)) {
        aliases: &["vbios_version"], metric: Metric::info("ttmon_device_firmware", "bundle"),
    };
    /// Version of the board management firmware.
    FIRMWARE_DM_APP("firmware_dm_app", "DM app", Text, field!(firmware.dm_app)) {
        metric: Metric::info("ttmon_device_firmware", "dm_app"),
    };
    /// Version of the board management boot loader (Wormhole).
    FIRMWARE_DM_BOOTLOADER("firmware_dm_bootloader", "DM bootloader", Text, field!(firmware.dm_bootloader)) {
        metric: Metric::info("ttmon_device_firmware", "dm_bootloader"),
    };
    /// Version of the chip management firmware (Wormhole).
    FIRMWARE_ARC("firmware_arc", "ARC", Text, field!(firmware.arc)) {
        metric: Metric::info("ttmon_device_firmware", "arc_firmware"),
    };
    /// Version of the Ethernet firmware (Wormhole).
    FIRMWARE_ETHERNET("firmware_ethernet", "Ethernet", Text, field!(firmware.ethernet)) {
        metric: Metric::info("ttmon_device_firmware", "ethernet"),
    };
    /// Version of the tt-flash that wrote the bundle (Wormhole).
    FIRMWARE_TT_FLASH("firmware_tt_flash", "tt-flash", Text, field!(firmware.tt_flash)) {
        metric: Metric::info("ttmon_device_firmware", "tt_flash"),
    };
}

const PLAIN: usize = PLAIN_FIGURES.len();

/// All figures of a device: those that are always read, then those of deep reads.
pub static DEVICE_FIGURES: &[&Figure<Device>] = &{
    let mut all = [PLAIN_FIGURES[0]; PLAIN + DEEP_FIGURES.len()];
    let mut place = 1;
    while place < all.len() {
        all[place] = if place < PLAIN { PLAIN_FIGURES[place] } else { DEEP_FIGURES[place - PLAIN] };
        place += 1;
    }
    all
};

/// The figures that a device can have: those of deep reads only where they were asked for.
pub fn figures_of(device: &Device) -> impl Iterator<Item = &'static Figure<Device>> + use<> {
    let known = if device.deep.is_some() { DEVICE_FIGURES.len() } else { PLAIN };
    DEVICE_FIGURES[..known].iter().copied()
}

/// What history keeps: the fields of the rows that say so, in the order of the table.
pub fn kept_in_history() -> impl Iterator<Item = super::Field<Device>> + Clone {
    DEVICE_FIGURES.iter().filter(|figure| figure.history).flat_map(|figure| figure.fields())
}

/// The field with this name.
pub fn device_field(name: &str) -> Option<super::Field<Device>> {
    DEVICE_FIGURES.iter().flat_map(|figure| figure.fields()).find(|field| field.name() == name)
}
