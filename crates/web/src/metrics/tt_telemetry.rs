//! Our figures under the names and in the units of tt-telemetry. Its labels for the place in a data centre are not known here:
//! lines have ours.

use super::family::{gauge, info, rows};
use model::figure::device::{
    AICLK, ASIC_TEMP, CURRENT, DRAM_TOTAL, DRAM_USED, FAN, FIRMWARE_ARC, FIRMWARE_BUNDLE, FIRMWARE_DM_APP,
    FIRMWARE_DM_BOOTLOADER, FIRMWARE_ETHERNET, FIRMWARE_TT_FLASH, HEARTBEAT, POWER, THERMAL_TRIPS, UTILIZATION, VCORE,
};
use model::figure::machine::{DRIVER_VERSION, HOST_NAME};
use model::figure::{Figure, Value};
use model::{Device, DeviceId, Snapshot, State};

pub static MACHINE: &[&Figure<Snapshot>] = rows![Snapshot;
    info("tt_telemetry", "hostname", "The program that writes these metrics.", |machine, _| HOST_NAME.value(machine)),
    info("tt_telemetry", "version", "The program that writes these metrics.", |_, _| Some(Value::text(env!("CARGO_PKG_VERSION")))),
    gauge("tt_driver_initialized", "Whether the driver is loaded.", |machine, _| {
        yes(DRIVER_VERSION.value(machine).is_some())
    }),
    gauge("tt_chip_count", "Devices on the PCI bus.", |machine, _| {
        Some(Value::Whole(on_the_bus(machine).filter(|device| device.state != State::Lost).count() as u64))
    }),
    gauge("tt_all_devices_accessible", "Whether all devices answer.", |machine, _| {
        yes(on_the_bus(machine).all(|device| device.state == State::Ok))
    }),
    gauge("tt_dram_total_megabytes", "DRAM of all devices in MiB, where that of each is known.", |machine, _| {
        sum_of(machine, &DRAM_TOTAL)
    }),
    gauge("tt_dram_used_megabytes", "DRAM in use on all devices in MiB, where that of each is known.", |machine, _| {
        sum_of(machine, &DRAM_USED)
    }),
];

pub static DEVICES: &[&Figure<Device>] = rows![Device;
    gauge("tt_device_accessible", "Whether the device answers.", |device, _| yes(pcie(device)?.state == State::Ok)),
    gauge("tt_arc_heartbeat", "Whether the firmware heartbeat counts up.", |device, _| {
        HEARTBEAT.value(pcie(device)?).and(yes(device.state == State::Ok))
    }),
    gauge("tt_ai_clock_mhz", "Clock of the Tensix cores in MHz.", |device, _| AICLK.value(device)),
    gauge("tt_asic_temperature_celsius", "Chip temperature.", |device, _| ASIC_TEMP.value(device)),
    gauge("tt_tdp_w", "Power of the chip in watts.", |device, _| POWER.value(device)),
    gauge("tt_tdc_a", "Core current in amperes.", |device, _| CURRENT.value(device)),
    gauge("tt_vcore_v", "Core voltage in volts.", |device, _| VCORE.value(device)),
    gauge("tt_fan_speed_rpm", "Fan speed in revolutions per minute.", |device, _| FAN.value(device)),
    gauge("tt_thermal_trip_count", "Shutdowns by critical temperature since the last reset.", |device, _| {
        THERMAL_TRIPS.value(device)
    }),
    gauge("tt_device_dram_total_megabytes", "DRAM of the chip in MiB.", |device, _| {
        DRAM_TOTAL.number(device).map(mebibytes)
    }),
    gauge("tt_device_dram_used_megabytes", "DRAM in use on the chip in MiB. Absent when it is not known.", |device, _| {
        DRAM_USED.number(device).map(mebibytes)
    }),
    // Theirs has a line for each command queue, and 0 where nothing was measured. Ours is of the chip.
    gauge("tt_dispatch_utilization_percent", "Part of the last second in which a program ran on the chip. Absent when it is not known.", |device, _| {
        UTILIZATION.value(device)
    }),
    info("tt_firmware_bundle", "version", "Firmware bundle.", |device, _| FIRMWARE_BUNDLE.value(device)),
    info("tt_cm_firmware", "version", "Chip management firmware.", |device, _| FIRMWARE_ARC.value(device)),
    info("tt_dm_app_firmware", "version", "Board management firmware, application.", |device, _| {
        FIRMWARE_DM_APP.value(device)
    }),
    info("tt_dm_bootloader_firmware", "version", "Board management firmware, boot loader.", |device, _| {
        FIRMWARE_DM_BOOTLOADER.value(device)
    }),
    info("tt_ethernet_firmware", "version", "Ethernet firmware.", |device, _| FIRMWARE_ETHERNET.value(device)),
    info("tt_flash", "version", "The tt-flash that wrote the bundle.", |device, _| FIRMWARE_TT_FLASH.value(device)),
];

/// The device, if it is on the PCI bus.
fn pcie(device: &Device) -> Option<&Device> {
    (!matches!(device.id, DeviceId::Remote(_))).then_some(device)
}

fn on_the_bus(machine: &Snapshot) -> impl Iterator<Item = &Device> {
    machine.devices.iter().filter_map(pcie)
}

fn yes(is: bool) -> Option<Value<'static>> {
    Some(Value::YesNo(is))
}

/// A sum of what is not known everywhere would be too small.
fn sum_of(machine: &Snapshot, figure: &Figure<Device>) -> Option<Value<'static>> {
    machine.devices.iter().map(|device| figure.number(device)).sum::<Option<f64>>().map(mebibytes)
}

fn mebibytes(bytes: f64) -> Value<'static> {
    Value::Whole((bytes / f64::from(1 << 20)).round() as u64)
}
