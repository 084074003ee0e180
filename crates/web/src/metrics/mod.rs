//! Metrics: the tables of figures, written as Prometheus text 0.0.4 or as OpenMetrics 1.0.
//!
//! Names carry base units. What was not measured has no line. Counters never fall while the service runs. Reading order:
//!
//! - this file: what a scrape consists of,
//! - `family`: metrics out of tables of figures,
//! - `text`: lines of the two formats,
//! - `links`: the series of Ethernet links,
//! - `processes`: the series of processes, of which there may be too many,
//! - `service`: the figures of the service itself,
//! - `tt_telemetry`: our figures under the names of tt-telemetry.

mod family;
mod links;
mod processes;
mod service;
#[cfg(test)]
mod tests;
mod text;
mod tt_telemetry;

pub use service::ServiceFigures;

use family::{Family, families};
use model::figure::device::{ARCH, BOARD, DEVICE_FIGURES, PCI_ADDRESS, SERIAL};
use model::figure::machine::MACHINE_FIGURES;
use model::figure::process::{HELD_FIGURES, PROCESS_FIGURES};
use model::figure::{Figure, Freshness, MetricKind, Value};
use model::text::nearest;
use model::topology::LiveLink;
use model::{Device, Held, Process, Snapshot};
use service::SERVICE_FIGURES;
use std::sync::LazyLock;
use text::MetricsText;

/// Everything that metrics are written from.
#[derive(Debug, Clone)]
pub struct MetricsInput<'a> {
    /// The sample.
    pub snapshot: &'a Snapshot,
    /// Figures of the service itself.
    pub service: ServiceFigures,
    /// Choice of families and series.
    pub options: &'a MetricsOptions,
}

/// What is wanted of a scrape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsOptions {
    /// The families that are written: names, or their beginnings with a `*`. Empty: all.
    pub families: Vec<String>,
    /// Whether to write the series of processes.
    pub processes: bool,
    /// The most series of single processes. Those of the largest are kept; the others are summed by device and kind.
    pub max_process_series: usize,
    /// Whether to write what tt-telemetry writes, too, under its names.
    pub tt_telemetry: bool,
}

impl Default for MetricsOptions {
    fn default() -> MetricsOptions {
        MetricsOptions { families: Vec::new(), processes: true, max_process_series: 500, tt_telemetry: false }
    }
}

/// Why a word does not name families: what was typed, and the name that is nearest.
pub struct UnknownFamily<'a> {
    /// The word that names no family.
    pub typed: &'a str,
    /// The most similar name.
    pub nearest: Option<String>,
}

impl MetricsOptions {
    /// Finds a word that names no family.
    pub fn check(&self) -> Result<(), UnknownFamily<'_>> {
        for typed in &self.families {
            if !FAMILIES.names().any(|(name, suffix)| is_named(name, suffix, typed)) {
                let names: Vec<String> = names().collect();
                let nearest = nearest(typed, names.iter().map(String::as_str)).map(str::to_owned);
                return Err(UnknownFamily { typed, nearest });
            }
        }
        Ok(())
    }
}

/// Whether a word names a family: `ttmon_device_power_watts`, `ttmon_samples_total`, or `ttmon_device_*`.
fn is_named(name: &str, suffix: &str, word: &str) -> bool {
    match word.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest == suffix),
    }
}

/// Text formats of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Version 0.0.4 of the Prometheus text.
    Prometheus,
    /// Version 1.0.0 of OpenMetrics.
    OpenMetrics,
}

impl MetricsFormat {
    /// What a client prefers, by its `Accept` header. OpenMetrics must be named; one that takes anything gets the older text.
    pub fn wanted(accept: &str) -> MetricsFormat {
        let (mut openmetrics, mut text) = (0.0f32, 0.0f32);
        for range in accept.split(',') {
            let mut parameters = range.split(';').map(str::trim);
            let kind = parameters.next().unwrap_or_default();
            let (mut quality, mut version) = (1.0f32, None);
            for (name, value) in parameters.filter_map(|parameter| parameter.split_once('=')) {
                let value = value.trim().trim_matches('"');
                match name.trim() {
                    name if name.eq_ignore_ascii_case("q") => quality = value.parse().unwrap_or(0.0),
                    name if name.eq_ignore_ascii_case("version") => version = Some(value),
                    _ => {}
                }
            }
            let is = |name: &str| kind.eq_ignore_ascii_case(name);
            if is("application/openmetrics-text") && version.is_none_or(|version| version == "1.0.0") {
                openmetrics = openmetrics.max(quality);
            } else if is("text/plain") && version.is_none_or(|version| version == "0.0.4") || is("text/*") || is("*/*")
            {
                text = text.max(quality);
            }
        }
        if openmetrics > 0.0 && openmetrics >= text { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus }
    }

    /// Value of the `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

struct Families {
    machine: Vec<Family<Snapshot>>,
    service: Vec<Family<ServiceFigures>>,
    devices: Vec<Family<Device>>,
    links: Vec<Family<LiveLink>>,
    processes: Vec<Family<Process>>,
    held: Vec<Family<Held>>,
    their_machine: Vec<Family<Snapshot>>,
    their_devices: Vec<Family<Device>>,
}

static FAMILIES: LazyLock<Families> = LazyLock::new(|| Families {
    machine: families(MACHINE_FIGURES),
    service: families(SERVICE_FIGURES),
    devices: families(DEVICE_FIGURES),
    links: families(links::LINK_FIGURES),
    processes: families(PROCESS_FIGURES),
    held: families(HELD_FIGURES),
    their_machine: families(tt_telemetry::MACHINE),
    their_devices: families(tt_telemetry::DEVICES),
});

impl Families {
    /// The names of all, and the suffixes of their kinds.
    fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        fn of<S>(families: &[Family<S>]) -> impl Iterator<Item = (&'static str, &'static str)> {
            families.iter().map(|family| (family.name, family.kind.suffix()))
        }
        let machine = of(&self.machine).chain(of(&self.service)).chain(of(&self.devices)).chain(of(&self.links));
        let processes = of(&self.processes).chain(of(&self.held));
        machine.chain(processes).chain(of(&self.their_machine)).chain(of(&self.their_devices))
    }
}

/// Writes all families.
pub fn write(input: &MetricsInput<'_>, format: MetricsFormat) -> String {
    let (snapshot, all) = (input.snapshot, &*FAMILIES);
    let lines = snapshot.devices.len() * 56 + input.options.max_process_series.min(snapshot.processes.len() * 8);
    let mut text = MetricsText::new(format, &input.options.families, (16 << 10) + lines * 176);
    let devices: Vec<(&Device, String)> = snapshot.devices.iter().map(|device| (device, labels_of(device))).collect();
    write_one(&mut text, &all.service, &input.service);
    write_one(&mut text, &all.machine, snapshot);
    write_devices(&mut text, &all.devices, &devices);
    links::write(&mut text, &all.links, snapshot);
    if input.options.processes {
        processes::write(&mut text, all, input);
    }
    if input.options.tt_telemetry {
        write_one(&mut text, &all.their_machine, snapshot);
        write_devices(&mut text, &all.their_devices, &devices);
    }
    text.finish()
}

/// What there is one of: the machine, the service.
fn write_one<S>(text: &mut MetricsText, families: &[Family<S>], subject: &S) {
    for family in families {
        let mut lines = text.lines(family);
        if family.kind == MetricKind::Info {
            lines.info("", facts(family, subject));
            continue;
        }
        for series in &family.series {
            lines.line("", &series.labels, series.number(subject));
        }
    }
}

fn write_devices(text: &mut MetricsText, families: &[Family<Device>], devices: &[(&Device, String)]) {
    for family in families {
        let mut lines = text.lines(family);
        let names_devices = family.series.iter().any(|series| IDENTITY.contains(&series.figure));
        for (device, labels) in devices {
            match family.kind {
                // The labels that all series have are in it already, and every device has it.
                MetricKind::Info if names_devices => {
                    let others = family.series.iter().filter(|series| !IDENTITY.contains(&series.figure));
                    lines.info(
                        labels,
                        others.map(|series| (series.info_label(), series.value(device).unwrap_or(Value::Absent))),
                    );
                }
                MetricKind::Info => lines.info(labels, facts(family, device)),
                _ => {
                    for series in family.series.iter().filter(|series| is_current(series.figure, device)) {
                        lines.line(labels, &series.labels, series.number(device));
                    }
                }
            }
        }
    }
}

/// The labels of an info that are known.
fn facts<'a, S>(family: &'a Family<S>, subject: &'a S) -> impl Iterator<Item = (&'static str, Value<'a>)> {
    family.series.iter().filter_map(|series| Some((series.info_label(), series.value(subject)?)))
}

/// Whether the value is current: while a device does not answer, only what is read from the host is.
fn is_current(figure: &Figure<Device>, device: &Device) -> bool {
    figure.freshness == Freshness::Host || device.sample_age_seconds.is_none_or(|age| age <= 0.0)
}

/// The names under which series are found, as a query writes them.
pub fn names() -> impl Iterator<Item = String> {
    FAMILIES.names().map(|(name, suffix)| format!("{name}{suffix}"))
}

/// The figures that, with the name, are labels of every series of a device.
const IDENTITY: [&Figure<Device>; 4] = [&PCI_ADDRESS, &BOARD, &SERIAL, &ARCH];

/// The labels of every series of a device.
fn labels_of(device: &Device) -> String {
    let mut labels = String::with_capacity(128);
    text::label(&mut labels, "device", &device.id.to_string());
    for figure in IDENTITY {
        if let (Some((name, _)), Some(value)) = (figure.metric.and_then(|metric| metric.label), figure.value(device)) {
            text::label_of(&mut labels, name, &value);
        }
    }
    labels
}
