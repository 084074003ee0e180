//! The figures of the machine, one row each.

use super::{Figure, Freshness, Metric, Section, Unit, Value, always, field, figures};
use crate::Snapshot;

figures! {
    /// All figures of the machine, in the order of reports.
    MACHINE_FIGURES: Snapshot;

    /// When the sample was taken.
    TAKEN_AT = Figure {
        title: "Taken at", always: true, freshness: Freshness::Host,
        ..Figure::new("taken_at", Unit::Text, "When the sample was taken, UTC.", always!(taken_at))
    };
    /// The same as a number.
    SAMPLE_TIMESTAMP = Figure {
        title: "Sample time", in_json: false, always: true, freshness: Freshness::Host,
        metric: Metric::gauge("ttmon_sample_timestamp_seconds"),
        ..Figure::new("sample_timestamp_seconds", Unit::Seconds, "When the sample was taken, in Unix time.", (|snapshot, _| Some(Value::Real(snapshot.taken_at.0 as f64 / 1e3)), |_, _, _| {}))
    };
    /// Host name.
    HOST_NAME = Figure {
        title: "Host", object: Some("host"), freshness: Freshness::Host, metric: Metric::info("ttmon_host", "host"),
        ..Figure::new("host_name", Unit::Text, "Host name.", field!(host.name))
    };
    /// Kernel release.
    HOST_KERNEL = Figure {
        title: "Kernel", object: Some("host"), freshness: Freshness::Host, metric: Metric::info("ttmon_host", "kernel"),
        ..Figure::new("host_kernel", Unit::Text, "Kernel release.", field!(host.kernel))
    };
    /// Driver version.
    DRIVER_VERSION = Figure {
        title: "Driver version", object: Some("host"), freshness: Freshness::Host, metric: Metric::info("ttmon_host", "driver"),
        ..Figure::new("driver_version", Unit::Text, "Version of the tenstorrent kernel module.", field!(host.driver_version))
    };
    /// Whether the devices are simulated.
    SIMULATED = Figure {
        title: "Simulated", object: Some("host"), freshness: Freshness::Host, metric: Metric::info("ttmon_host", "simulated"),
        ..Figure::new("simulated", Unit::YesNo, "Whether the devices are simulated (--sim).", always!(host.simulated))
    };
    /// How many devices there are.
    DEVICE_COUNT = Figure {
        title: "Attached devices", section: Section::Health, in_json: false, always: true, freshness: Freshness::Host, metric: Metric::gauge("ttmon_devices"),
        ..Figure::new("device_count", Unit::Count, "Devices.", (|snapshot, _| Some(Value::Whole(snapshot.devices.len() as u64)), |_, _, _| {}))
    };
    /// How many processes use them.
    PROCESS_COUNT = Figure {
        title: "Processes", section: Section::Health, in_json: false, always: true, freshness: Freshness::Host, metric: Metric::gauge("ttmon_processes"),
        ..Figure::new("process_count", Unit::Count, "Processes that use a device.", (|snapshot, _| Some(Value::Whole(snapshot.processes.len() as u64)), |_, _, _| {}))
    };
    /// How many reads failed.
    FAULT_COUNT = Figure {
        title: "Read faults", section: Section::Health, in_json: false, always: true, freshness: Freshness::Host, metric: Metric::gauge("ttmon_faults"),
        ..Figure::new("fault_count", Unit::Count, "Reads that failed in this sample.", (|snapshot, _| Some(Value::Whole(snapshot.faults.len() as u64)), |_, _, _| {}))
    };
}
