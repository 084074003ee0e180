//! The figures of the machine, one row each.

use super::{Figure, Freshness, Metric, Section, Value, always, computed, field, figures};
use crate::Snapshot;

/// The object of what deep reads have done.
const HOST_DEEP: &str = "host.deep";

/// The figures of a machine. Those of deep reads only where they were asked for.
pub fn figures_of_machine(snapshot: &Snapshot) -> impl Iterator<Item = &'static Figure<Snapshot>> {
    let is_deep = snapshot.host.deep.is_some();
    MACHINE_FIGURES.iter().copied().filter(move |figure| is_deep || figure.object != Some(HOST_DEEP))
}

/// Access to a count of the deep reads.
macro_rules! counted {
    ($field:ident) => {
        (
            |snapshot, _| Some($crate::figure::FieldValue::to_value(&snapshot.host.deep.as_ref()?.$field)),
            |snapshot, _, value| {
                if let Some(value) = $crate::figure::FieldValue::from_value(value) {
                    snapshot.host.deep.get_or_insert_default().$field = value;
                }
            },
        )
    };
}

figures! {
    /// All figures of the machine, in the order of reports.
    MACHINE_FIGURES: Snapshot;

    with { section: Section::Identity, freshness: Freshness::Host };

    /// When the sample was taken, UTC.
    TAKEN_AT("taken_at", "Taken at", Text, always!(taken_at)) { always: true };
    /// When the sample was taken, in Unix time.
    SAMPLE_TIMESTAMP("sample_timestamp_seconds", "Sample time", Seconds,
        computed(|snapshot, _| Some(Value::Real(snapshot.taken_at.0 as f64 / 1e3)))) {
        in_json: false, always: true, metric: Metric::gauge("ttmon_sample_timestamp_seconds"),
    };
    /// Host name.
    HOST_NAME("host_name", "Host", Text, field!(host.name)) {
        object: Some("host"), metric: Metric::info("ttmon_host", "host"),
    };
    /// Kernel release.
    HOST_KERNEL("host_kernel", "Kernel", Text, field!(host.kernel)) {
        object: Some("host"), metric: Metric::info("ttmon_host", "kernel"),
    };
    /// Version of the tenstorrent kernel module.
    DRIVER_VERSION("driver_version", "Driver version", Text, field!(host.driver_version)) {
        object: Some("host"), metric: Metric::info("ttmon_host", "driver"),
    };
    /// Whether the devices are simulated (--sim).
    SIMULATED("simulated", "Simulated", YesNo, always!(host.simulated)) {
        object: Some("host"), metric: Metric::info("ttmon_host", "simulated"),
    };

    with { section: Section::Health, freshness: Freshness::Host, object: Some(HOST_DEEP) };

    /// How often deep reads have opened a device.
    DEEP_OPENS("deep_opens_total", "Deep reads: opens", Count, counted!(opens)) {
        metric: Metric::counter("ttmon_deep_opens"),
    };
    /// Registers that deep reads have read.
    DEEP_REGISTERS("deep_registers_total", "Deep reads: registers", Count, counted!(registers)) {
        metric: Metric::counter("ttmon_deep_registers"),
    };
    /// How long deep reads have taken.
    DEEP_SECONDS("deep_seconds_total", "Deep reads: time", Seconds, counted!(seconds)) {
        metric: Metric::counter("ttmon_deep_seconds"),
    };
    /// Deep reads that were tried and gave nothing.
    DEEP_REFUSED("deep_refused_total", "Deep reads: refused", Count, counted!(refused)) {
        metric: Metric::counter("ttmon_deep_refused"),
    };

    with { section: Section::Health, freshness: Freshness::Host, in_json: false, always: true };

    /// Devices.
    DEVICE_COUNT("device_count", "Attached devices", Count,
        computed(|snapshot, _| Some(Value::Whole(snapshot.devices.len() as u64)))) {
        metric: Metric::gauge("ttmon_devices"),
    };
    /// Processes that use a device.
    PROCESS_COUNT("process_count", "Processes", Count,
        computed(|snapshot, _| Some(Value::Whole(snapshot.processes.len() as u64)))) {
        metric: Metric::gauge("ttmon_processes"),
    };
    /// Reads that failed in this sample.
    FAULT_COUNT("fault_count", "Read faults", Count,
        computed(|snapshot, _| Some(Value::Whole(snapshot.faults.len() as u64)))) {
        metric: Metric::gauge("ttmon_faults"),
    };
}
