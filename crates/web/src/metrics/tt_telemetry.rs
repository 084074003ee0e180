//! What can be said under the names of tt-telemetry, in its units. Its labels for the place in a data centre are not known here:
//! lines have ours.

use super::table::{Kind, Metric, Of};
use super::text::Value;
use model::{Bytes, Device, DeviceId, Snapshot, State};

const fn gauge(name: &'static str, help: &'static str, of: Of) -> Metric {
    Metric { name, unit: None, kind: Kind::Gauge, help, of }
}

const fn info(name: &'static str, help: &'static str, of: Of) -> Metric {
    Metric { name, unit: None, kind: Kind::Info, help, of }
}

pub static METRICS: &[Metric] = &[
    info(
        "tt_telemetry",
        "The program that tells all this.",
        Of::MachineInfo(&[("hostname", |now| now.snapshot.host.name.as_deref()), ("version", |now| Some(now.version))]),
    ),
    gauge(
        "tt_driver_initialized",
        "Whether the driver is loaded.",
        Of::Machine(|now| Some(now.snapshot.host.driver_version.is_some().into())),
    ),
    gauge(
        "tt_chip_count",
        "Devices on the PCI bus.",
        Of::Machine(|now| Some(on_the_bus(now.snapshot).filter(|device| device.state != State::Lost).count().into())),
    ),
    gauge(
        "tt_all_devices_accessible",
        "Whether all devices answer.",
        Of::Machine(|now| Some(on_the_bus(now.snapshot).all(|device| device.state == State::Ok).into())),
    ),
    gauge(
        "tt_dram_total_megabytes",
        "DRAM of all devices in MiB, where that of each is known.",
        Of::Machine(|now| sum_of(now.snapshot, |device| device.memory.dram_total)),
    ),
    gauge(
        "tt_dram_used_megabytes",
        "DRAM in MiB that processes hold on all devices, where that of each is known.",
        Of::Machine(|now| sum_of(now.snapshot, |device| device.memory.dram_used)),
    ),
    gauge(
        "tt_device_accessible",
        "Whether the device answers.",
        Of::Device(|device| Some((pcie(device)?.state == State::Ok).into())),
    ),
    gauge(
        "tt_arc_heartbeat",
        "Whether the heartbeat moves.",
        Of::Device(|device| pcie(device)?.heartbeat.map(|_| (device.state == State::Ok).into())),
    ),
    gauge(
        "tt_ai_clock_mhz",
        "Clock of the Tensix cores in MHz.",
        Of::Device(|device| device.aiclk.map(|value| value.0.into())),
    ),
    gauge(
        "tt_asic_temperature_celsius",
        "Chip temperature.",
        Of::Device(|device| device.asic_temp.map(|value| value.0.into())),
    ),
    gauge("tt_tdp_w", "Power of the chip in watts.", Of::Device(|device| device.power.map(|value| value.0.into()))),
    gauge("tt_tdc_a", "Core current in amperes.", Of::Device(|device| device.current.map(|value| value.0.into()))),
    gauge("tt_vcore_v", "Core voltage in volts.", Of::Device(|device| device.vcore.map(|value| value.0.into()))),
    gauge(
        "tt_fan_speed_rpm",
        "Fan speed in revolutions per minute.",
        Of::Device(|device| device.fan.map(|value| value.0.into())),
    ),
    gauge(
        "tt_thermal_trip_count",
        "Shutdowns by critical temperature since the last reset.",
        Of::Device(|device| device.thermal_trips.map(Value::from)),
    ),
    gauge(
        "tt_device_dram_total_megabytes",
        "DRAM of the chip in MiB.",
        Of::Device(|device| device.memory.dram_total.map(mebibytes)),
    ),
    gauge(
        "tt_device_dram_used_megabytes",
        "DRAM in MiB that processes hold on the chip. Absent when it is not known.",
        Of::Device(|device| device.memory.dram_used.map(mebibytes)),
    ),
    info(
        "tt_firmware_bundle",
        "Firmware bundle.",
        Of::DeviceInfo(&[("version", |device| device.firmware.bundle.as_deref())]),
    ),
    info(
        "tt_cm_firmware",
        "Chip management firmware.",
        Of::DeviceInfo(&[("version", |device| device.firmware.arc.as_deref())]),
    ),
    info(
        "tt_dm_app_firmware",
        "Board management firmware, application.",
        Of::DeviceInfo(&[("version", |device| device.firmware.dm_app.as_deref())]),
    ),
    info(
        "tt_dm_bootloader_firmware",
        "Board management firmware, boot loader.",
        Of::DeviceInfo(&[("version", |device| device.firmware.dm_bootloader.as_deref())]),
    ),
    info(
        "tt_ethernet_firmware",
        "Ethernet firmware.",
        Of::DeviceInfo(&[("version", |device| device.firmware.ethernet.as_deref())]),
    ),
    info(
        "tt_flash",
        "The tt-flash that wrote the bundle.",
        Of::DeviceInfo(&[("version", |device| device.firmware.tt_flash.as_deref())]),
    ),
];

/// The device, if it is one that PCIe leads to.
fn pcie(device: &Device) -> Option<&Device> {
    (!matches!(device.id, DeviceId::Remote(_))).then_some(device)
}

fn on_the_bus(snapshot: &Snapshot) -> impl Iterator<Item = &Device> {
    snapshot.devices.iter().filter_map(pcie)
}

/// A sum of what is not known everywhere would be too small.
fn sum_of(snapshot: &Snapshot, bytes: fn(&Device) -> Option<Bytes>) -> Option<Value> {
    snapshot.devices.iter().map(bytes).sum::<Option<Bytes>>().map(mebibytes)
}

fn mebibytes(bytes: Bytes) -> Value {
    ((bytes.0 + (1 << 19)) >> 20).into()
}
