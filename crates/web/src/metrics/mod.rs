//! What a scrape says: one table of metrics, written as Prometheus text 0.0.4 or as OpenMetrics 1.0.
//!
//! Names carry base units. What was not measured has no line. Counters never fall while the service lives.

mod accept;
mod processes;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod tt_telemetry;

use model::{Device, Snapshot};
use table::Of;
use text::Text;

/// What there is to say.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// The last sample.
    pub snapshot: &'a Snapshot,
    /// The version of the program.
    pub version: &'a str,
    /// How long ago the sample was taken.
    pub sample_age_seconds: Option<f64>,
    /// What was counted since the program began; absent where nobody counts.
    pub counts: Counts,
    /// What is wanted.
    pub options: Options,
}

/// What is counted since the program began.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Samples that were taken.
    pub samples: Option<u64>,
    /// Faults in all of them together.
    pub faults: Option<u64>,
    /// Processes that died while they used a device.
    pub deaths: Option<u64>,
    /// Requests that were answered over HTTP.
    pub requests: Option<u64>,
    /// Connections that are open.
    pub clients: Option<u64>,
}

/// What is wanted of a scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most series that tell of single processes. The largest are kept; what is left is summed by device and kind.
    pub max_process_series: usize,
    /// Whether to say what tt-telemetry would say, too, under its names.
    pub tt_telemetry: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_process_series: 500, tt_telemetry: false }
    }
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// What the client likes best of the two, from its `Accept` header.
    pub fn wanted(accept: Option<&str>) -> Format {
        accept::wanted(accept.unwrap_or_default())
    }

    /// The media type of the answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Everything that there is to say, as text.
pub fn write(now: &Figures<'_>, format: Format) -> String {
    let devices: Vec<Labelled> = now.snapshot.devices.iter().map(Labelled::new).collect();
    let lines = devices.len() * 48 + now.options.max_process_series.min(now.snapshot.processes.len() * 8);
    let mut text = Text::with_capacity(format, (16 << 10) + lines * 176);
    let theirs = if now.options.tt_telemetry { tt_telemetry::METRICS } else { &[] };
    for metric in table::METRICS.iter().chain(theirs) {
        let mut family = text.family(metric);
        match metric.of {
            Of::Machine(value) => family.line("", None, value(now)),
            Of::MachineInfo(facts) => {
                let known = facts.iter().filter_map(|(label, fact)| Some((*label, fact(now)?)));
                family.info("", known);
            }
            Of::Device(value) => {
                for Labelled { device, labels } in devices.iter().filter(|one| is_of_now(metric, one.device)) {
                    family.line(labels, None, value(device));
                }
            }
            Of::DeviceBy(label, values) => {
                for Labelled { device, labels } in devices.iter().filter(|one| is_of_now(metric, one.device)) {
                    for (name, value) in values {
                        family.line(labels, Some((label, *name)), value(device));
                    }
                }
            }
            Of::DeviceInfo(facts) => {
                for Labelled { device, labels } in &devices {
                    let known = facts.iter().filter_map(|(label, fact)| Some((*label, fact(device)?)));
                    family.info(labels, known);
                }
            }
            Of::Processes => processes::write(&mut family, now),
        }
    }
    text.finish()
}

/// What is told of a device that did not answer: all but its last readings, which are none of now.
const WITHOUT_READINGS: [&str; 4] = [
    "ttmon_device_state",
    "ttmon_device_sample_age_seconds",
    "ttmon_device_memory_",
    "ttmon_device_untracked_processes",
];

fn is_of_now(metric: &table::Metric, device: &Device) -> bool {
    device.sample_age_seconds.is_none_or(|age| age <= 0.0)
        || WITHOUT_READINGS.iter().any(|name| metric.name.starts_with(name))
}

/// The names under which series are found, as a query writes them.
pub fn names() -> impl Iterator<Item = String> {
    table::METRICS.iter().chain(tt_telemetry::METRICS).map(|metric| format!("{}{}", metric.name, metric.kind.suffix()))
}

/// A device, and the labels that all its lines have.
struct Labelled<'a> {
    device: &'a Device,
    labels: String,
}

impl Labelled<'_> {
    fn new(device: &Device) -> Labelled<'_> {
        let mut labels = String::with_capacity(128);
        text::label(&mut labels, "device", &device.id.to_string());
        let mut add = |name, value: Option<&str>| {
            if let Some(value) = value {
                text::label(&mut labels, name, value);
            }
        };
        add("pci_address", device.pci_address.as_ref().map(|address| &*address.0));
        add("board", device.board.as_deref());
        add("serial", device.serial.as_deref());
        add("arch", device.arch.map(model::Arch::name));
        Labelled { device, labels }
    }
}
