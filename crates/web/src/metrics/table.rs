//! The table: name, unit, kind, meaning and value of each metric.

use super::Figures;
use super::text::Value;
use model::{Device, Megahertz, State};

/// A row.
pub struct Metric {
    /// With its unit, and without what its kind puts behind it.
    pub name: &'static str,
    pub unit: Option<&'static str>,
    pub kind: Kind,
    /// One sentence without quotes and backslashes.
    pub help: &'static str,
    pub of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
    Info,
}

/// What it is a metric of.
pub enum Of {
    Machine(fn(&Figures<'_>) -> Option<Value>),
    MachineInfo(&'static [(&'static str, for<'a> fn(&Figures<'a>) -> Option<&'a str>)]),
    Device(fn(&Device) -> Option<Value>),
    /// A line for each value of one more label.
    DeviceBy(&'static str, &'static [(&'static str, fn(&Device) -> Option<Value>)]),
    DeviceInfo(&'static [(&'static str, fn(&Device) -> Option<&str>)]),
    Processes,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Info => "info",
        }
    }

    /// What stands behind the name in each line.
    pub fn suffix(self) -> &'static str {
        match self {
            Kind::Gauge => "",
            Kind::Counter => "_total",
            Kind::Info => "_info",
        }
    }
}

const fn gauge(name: &'static str, unit: Option<&'static str>, help: &'static str, of: Of) -> Metric {
    Metric { name, unit, kind: Kind::Gauge, help, of }
}

const fn counter(name: &'static str, unit: Option<&'static str>, help: &'static str, of: Of) -> Metric {
    Metric { name, unit, kind: Kind::Counter, help, of }
}

const fn info(name: &'static str, help: &'static str, of: Of) -> Metric {
    Metric { name, unit: None, kind: Kind::Info, help, of }
}

/// All of them, in the order in which they are written.
pub static METRICS: &[Metric] = &[
    info("ttmon_build", "The program that tells all this.", Of::MachineInfo(&[("version", |now| Some(now.version))])),
    info(
        "ttmon_host",
        "The machine, and whether its devices are made up by --sim.",
        Of::MachineInfo(&[
            ("host", |now| now.snapshot.host.name.as_deref()),
            ("kernel", |now| now.snapshot.host.kernel.as_deref()),
            ("driver", |now| now.snapshot.host.driver_version.as_deref()),
            ("simulated", |now| Some(if now.snapshot.host.simulated { "true" } else { "false" })),
        ]),
    ),
    gauge(
        "ttmon_sample_timestamp_seconds",
        Some("seconds"),
        "When the sample was taken that all this is of, in Unix time.",
        Of::Machine(|now| Some((now.snapshot.taken_at.0 as f64 / 1e3).into())),
    ),
    gauge(
        "ttmon_sample_age_seconds",
        Some("seconds"),
        "How old that sample was when it was asked for.",
        Of::Machine(|now| now.sample_age_seconds.map(Value::from)),
    ),
    counter("ttmon_samples", None, "Samples taken.", Of::Machine(|now| now.counts.samples.map(Value::from))),
    counter(
        "ttmon_read_faults",
        None,
        "Reads that were tried and went wrong, in all samples.",
        Of::Machine(|now| now.counts.faults.map(Value::from)),
    ),
    gauge(
        "ttmon_faults",
        None,
        "Reads that were tried and went wrong, in this sample.",
        Of::Machine(|now| Some(now.snapshot.faults.len().into())),
    ),
    counter(
        "ttmon_process_deaths",
        None,
        "Processes that died while they used a device.",
        Of::Machine(|now| now.counts.deaths.map(Value::from)),
    ),
    counter(
        "ttmon_http_requests",
        None,
        "Requests that were answered over HTTP.",
        Of::Machine(|now| now.counts.requests.map(Value::from)),
    ),
    gauge(
        "ttmon_http_connections",
        None,
        "Connections that are open over HTTP.",
        Of::Machine(|now| now.counts.clients.map(Value::from)),
    ),
    gauge("ttmon_devices", None, "Devices.", Of::Machine(|now| Some(now.snapshot.devices.len().into()))),
    gauge(
        "ttmon_processes",
        None,
        "Processes that use a device.",
        Of::Machine(|now| Some(now.snapshot.processes.len().into())),
    ),
    info(
        "ttmon_device",
        "A device, and the number of its chip where that is known.",
        Of::DeviceInfo(&[("asic_id", |device| Some(device.asic_id.as_deref().unwrap_or_default()))]),
    ),
    info(
        "ttmon_device_firmware",
        "Firmware versions.",
        Of::DeviceInfo(&[
            ("bundle", |device| device.firmware.bundle.as_deref()),
            ("dm_app", |device| device.firmware.dm_app.as_deref()),
            ("dm_bootloader", |device| device.firmware.dm_bootloader.as_deref()),
            ("arc_firmware", |device| device.firmware.arc.as_deref()),
            ("ethernet", |device| device.firmware.ethernet.as_deref()),
            ("tt_flash", |device| device.firmware.tt_flash.as_deref()),
        ]),
    ),
    gauge(
        "ttmon_device_state",
        None,
        "How a device is: 1 for the state that it is in, 0 for all others.",
        Of::DeviceBy(
            "state",
            &[
                ("ok", |device| Some((device.state == State::Ok).into())),
                ("resetting", |device| Some((device.state == State::Resetting).into())),
                ("hung", |device| Some((device.state == State::Hung).into())),
                ("silent", |device| Some((device.state == State::Silent).into())),
                ("lost", |device| Some((device.state == State::Lost).into())),
                ("no driver", |device| Some((device.state == State::NoDriver).into())),
                ("remote", |device| Some((device.state == State::Remote).into())),
            ],
        ),
    ),
    gauge(
        "ttmon_device_sample_age_seconds",
        Some("seconds"),
        "How old the readings were when the sample was taken: 0 unless the device did not answer in time.",
        Of::Device(|device| device.sample_age_seconds.map(Value::from)),
    ),
    gauge(
        "ttmon_device_temperature_celsius",
        Some("celsius"),
        "Chip temperature.",
        Of::Device(|device| device.asic_temp.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_temperature_limit_celsius",
        Some("celsius"),
        "Chip temperature above which the firmware throttles.",
        Of::Device(|device| device.asic_temp_max.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_power_watts",
        Some("watts"),
        "Power of the chip, not of the board.",
        Of::Device(|device| device.power.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_power_limit_watts",
        Some("watts"),
        "Power limit of the chip.",
        Of::Device(|device| device.power_max.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_core_volts",
        Some("volts"),
        "Core voltage.",
        Of::Device(|device| device.vcore.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_core_limit_volts",
        Some("volts"),
        "Core voltage limit.",
        Of::Device(|device| device.vcore_max.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_core_amperes",
        Some("amperes"),
        "Core current.",
        Of::Device(|device| device.current.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_core_limit_amperes",
        Some("amperes"),
        "Core current limit.",
        Of::Device(|device| device.current_max.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_fan_rpm",
        Some("rpm"),
        "Fan speed in revolutions per minute.",
        Of::Device(|device| device.fan.map(|value| value.0.into())),
    ),
    gauge(
        "ttmon_device_aiclk_hertz",
        Some("hertz"),
        "Clock of the Tensix cores.",
        Of::Device(|device| device.aiclk.map(hertz)),
    ),
    gauge(
        "ttmon_device_axiclk_hertz",
        Some("hertz"),
        "Clock of the AXI bus.",
        Of::Device(|device| device.axiclk.map(hertz)),
    ),
    gauge(
        "ttmon_device_arcclk_hertz",
        Some("hertz"),
        "Clock of the management core.",
        Of::Device(|device| device.arcclk.map(hertz)),
    ),
    gauge(
        "ttmon_device_heartbeat",
        None,
        "Heartbeat of the firmware as it is read: it counts up about ten times a second, and starts anew at a reset.",
        Of::Device(|device| device.heartbeat.map(Value::from)),
    ),
    counter(
        "ttmon_device_thermal_trips",
        None,
        "Shutdowns by critical temperature.",
        Of::Device(|device| device.thermal_trips_total.map(Value::from)),
    ),
    gauge(
        "ttmon_device_pcie_generation",
        None,
        "PCIe generation of the link now.",
        Of::Device(|device| device.pcie.generation.map(Value::from)),
    ),
    gauge(
        "ttmon_device_pcie_generation_limit",
        None,
        "The best generation of slot and card.",
        Of::Device(|device| device.pcie.max_generation.map(Value::from)),
    ),
    gauge(
        "ttmon_device_pcie_lanes",
        None,
        "PCIe lanes of the link now.",
        Of::Device(|device| device.pcie.width.map(Value::from)),
    ),
    gauge(
        "ttmon_device_pcie_lanes_limit",
        None,
        "The most lanes of slot and card.",
        Of::Device(|device| device.pcie.max_width.map(Value::from)),
    ),
    gauge(
        "ttmon_device_pcie_degraded",
        None,
        "1 if the link runs slower or narrower than slot and card could.",
        Of::Device(|device| {
            let link = &device.pcie;
            let is_known = (link.generation.and(link.max_generation)).or(link.width.and(link.max_width)).is_some();
            is_known.then(|| device.link_is_degraded().into())
        }),
    ),
    counter(
        "ttmon_device_pcie_host_to_device_bytes",
        Some("bytes"),
        "Bytes that went over PCIe to the device since the service began to count.",
        Of::Device(|device| device.pcie.host_to_device_total.map(|bytes| bytes.0.into())),
    ),
    counter(
        "ttmon_device_pcie_device_to_host_bytes",
        Some("bytes"),
        "Bytes that went over PCIe to the host since the service began to count.",
        Of::Device(|device| device.pcie.device_to_host_total.map(|bytes| bytes.0.into())),
    ),
    gauge(
        "ttmon_device_memory_total_bytes",
        Some("bytes"),
        "Device memory that there is.",
        Of::DeviceBy(
            "kind",
            &[
                ("dram", |device| device.memory.dram_total.map(|bytes| bytes.0.into())),
                ("l1", |device| device.memory.l1_total.map(|bytes| bytes.0.into())),
            ],
        ),
    ),
    gauge(
        "ttmon_device_memory_used_bytes",
        Some("bytes"),
        "Device memory that living processes hold. Traces are in DRAM, circular and small buffers in L1.",
        Of::DeviceBy(
            "kind",
            &[
                ("dram", |device| device.memory.dram_used.map(|bytes| bytes.0.into())),
                ("l1", |device| device.memory.l1_used.map(|bytes| bytes.0.into())),
                ("l1_small", |device| device.memory.l1_small_used.map(|bytes| bytes.0.into())),
                ("trace", |device| device.memory.trace_used.map(|bytes| bytes.0.into())),
                ("cb", |device| device.memory.cb_used.map(|bytes| bytes.0.into())),
            ],
        ),
    ),
    gauge(
        "ttmon_device_memory_stale_bytes",
        Some("bytes"),
        "Bytes that the books still carry for dead processes. No part of the used ones.",
        Of::Device(|device| device.memory.stale.map(|bytes| bytes.0.into())),
    ),
    gauge(
        "ttmon_device_untracked_processes",
        None,
        "Processes that hold the device and tell nobody how much: the used figures lack theirs.",
        Of::Device(|device| Some(device.memory.untracked_processes.into())),
    ),
    gauge(
        "ttmon_process_memory_bytes",
        Some("bytes"),
        "Device memory that one process holds. Those beyond --max-process-series are summed as other.",
        Of::Processes,
    ),
];

fn hertz(clock: Megahertz) -> Value {
    (u64::from(clock.0) * 1_000_000).into()
}
