//! Machines, put together from the series that Prometheus has of them. Pure: series in, plain data out.

use super::index::{DEVICES, HELD, MACHINE, metric_name};
use super::labels::{AllLabels, FigureLabels, Labels, Sample};
use model::figure::Value;
use model::figure::machine::SAMPLE_TIMESTAMP;
use model::figure::process::{PID, SERIES_LABELS, SOURCE};
use model::{Alert, AlertState, Device, DeviceId, Held, Process, Severity, Snapshot, State, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// A machine, as its series describe it.
#[derive(Debug, Clone)]
pub struct ScrapedMachine {
    pub job: String,
    pub instance: String,
    pub snapshot: Snapshot,
    /// When its sample was taken, before the time of the answer.
    pub age_seconds: f64,
    /// Whether Prometheus has a current sample of it.
    pub is_current: bool,
}

/// All machines that the answers have series of.
#[derive(Debug, Default)]
pub struct ScrapedMachines {
    all: Vec<ScrapedMachine>,
    /// By instance; several jobs may have one of that name.
    by_instance: HashMap<String, Vec<usize>>,
}

static TIMESTAMP: LazyLock<String> = LazyLock::new(|| metric_name(&SAMPLE_TIMESTAMP).unwrap_or_default());

impl ScrapedMachines {
    /// Figures of devices, of which there are very many.
    pub fn add_figures(&mut self, samples: &[Sample<FigureLabels<'_>>]) {
        for (device, labels, value) in samples.iter().filter_map(of_device) {
            DEVICES.set(self.machine(&labels.job, &labels.instance).device(device), labels, value);
        }
    }

    /// Series of all sorts: of machines, devices and processes.
    pub fn add_all(&mut self, samples: &[Sample<AllLabels<'_>>]) {
        for sample in samples {
            let Some(value) = sample.number() else { continue };
            let labels = &sample.metric;
            let machine = self.machine(&labels.job, &labels.instance);
            let is_of_process = !labels.get("pid").is_empty();
            if *labels.name == **TIMESTAMP {
                machine.is_current = true;
                machine.set_time(value, sample.time());
            } else if is_of_process {
                machine.set_process(labels, value);
            } else if labels.device.is_empty() {
                MACHINE.identify(&mut machine.snapshot, labels);
                MACHINE.set(&mut machine.snapshot, labels, value);
            } else {
                let device = machine.device(&labels.device);
                DEVICES.identify(device, labels);
                DEVICES.set(device, labels, value);
            }
        }
    }

    /// Rates, each with the name of its figure in the label [`RATE_LABEL`].
    pub fn add_rates(&mut self, samples: &[Sample<AllLabels<'_>>]) {
        for (device, labels, value) in samples.iter().filter_map(of_device) {
            let device = self.machine(&labels.job, &labels.instance).device(device);
            // The counters of a device that cannot be read do not move, which is no rate of zero.
            if device.state == State::Ok {
                DEVICES.set_rate(device, labels.get(RATE_LABEL), labels, value);
            }
        }
    }

    /// Machines that Prometheus scraped before and does not reach now.
    pub fn add_gone(&mut self, samples: &[Sample<AllLabels<'_>>]) {
        for sample in samples {
            let Some(last) = sample.number() else { continue };
            let machine = self.machine(&sample.metric.job, &sample.metric.instance);
            if !machine.is_current {
                machine.set_time(last, sample.time());
            }
        }
    }

    /// The machines in the order of their names.
    pub fn finish(mut self) -> Vec<ScrapedMachine> {
        self.all.sort_by(|a, b| natural(&a.instance).cmp(&natural(&b.instance)).then_with(|| a.job.cmp(&b.job)));
        for machine in &mut self.all {
            machine.snapshot.devices.sort_by(|a, b| a.id.cmp(&b.id));
            machine.snapshot.processes.sort_by_key(|process| process.pid);
        }
        self.all
    }

    fn machine(&mut self, job: &str, instance: &str) -> &mut ScrapedMachine {
        // The key is borrowed: nearly all machines are known already.
        let places = self.by_instance.get(instance);
        if let Some(&at) = places.and_then(|places| places.iter().find(|at| self.all[**at].job == job)) {
            return &mut self.all[at];
        }
        let at = self.all.len();
        self.by_instance.entry(instance.to_owned()).or_default().push(at);
        let (job, instance, snapshot) = (job.to_owned(), instance.to_owned(), Snapshot::empty());
        self.all.push(ScrapedMachine { job, instance, snapshot, age_seconds: 0.0, is_current: false });
        &mut self.all[at]
    }
}

/// The device, the labels and the value of a series, where it has all of them.
fn of_device<'a, const N: usize>(sample: &'a Sample<Labels<'_, N>>) -> Option<(&'a str, &'a Labels<'a, N>, f64)> {
    let labels = &sample.metric;
    Some((&*labels.device, labels, sample.number()?)).filter(|(device, ..)| !device.is_empty())
}

/// The label that has the name of a rate's figure.
pub const RATE_LABEL: &str = "figure";

impl ScrapedMachine {
    /// Sets when the sample was taken, both in Unix seconds.
    fn set_time(&mut self, taken_at: f64, now: f64) {
        self.snapshot.taken_at = Timestamp((taken_at * 1e3) as i64);
        self.age_seconds = (now - taken_at).max(0.0);
    }

    fn device(&mut self, name: &str) -> &mut Device {
        let (id, devices) = (DeviceId::named(name), &mut self.snapshot.devices);
        let at = devices.iter().position(|device| device.id == id).unwrap_or_else(|| {
            // Its state is not known until a series has it.
            devices.push(Device { state: State::Silent, ..Device::new(id) });
            devices.len() - 1
        });
        &mut devices[at]
    }

    fn set_process<const N: usize>(&mut self, labels: &Labels<'_, N>, value: f64) {
        // The sum of those that are too many for a series each has no number.
        let Ok(pid) = labels.get("pid").parse::<u32>() else { return };
        let processes = &mut self.snapshot.processes;
        let at = processes.iter().position(|process| process.pid == pid).unwrap_or_else(|| {
            let mut process = Process::new(pid);
            for figure in SERIES_LABELS.iter().filter(|figure| **figure != &PID) {
                let text = labels.get(figure.name);
                (figure.set)(&mut process, 0, &if text.is_empty() { Value::Absent } else { Value::text(text) });
            }
            processes.push(process);
            processes.len() - 1
        });
        if labels.device.is_empty() {
            return;
        }
        let (devices, id) = (&mut processes[at].devices, DeviceId::named(&labels.device));
        let at = match devices.binary_search_by(|held| held.id.cmp(&id)) {
            Ok(at) => at,
            Err(at) => {
                let mut held = Held::new(id);
                (SOURCE.set)(&mut held, 0, &Value::text(labels.get(SOURCE.name)));
                devices.insert(at, held);
                at
            }
        };
        HELD.set(&mut devices[at], labels, value);
    }
}

pub fn alerts(samples: &[Sample<AllLabels<'_>>]) -> BTreeMap<(String, String), Vec<Alert>> {
    let mut all: BTreeMap<(String, String), Vec<Alert>> = BTreeMap::new();
    for sample in samples {
        let labels = &sample.metric;
        let (name, device) = (labels.get("alertname"), Some(&*labels.device).filter(|device| !device.is_empty()));
        let severity = Severity::ALL.into_iter().find(|severity| severity.name() == labels.get("severity"));
        let alert = Alert {
            name: name.to_owned(),
            // Rules of others may have words of their own.
            severity: severity.unwrap_or(Severity::Warning),
            state: AlertState::Firing,
            device: device.map(str::to_owned),
            process: None,
            since: Timestamp((sample.time() * 1e3) as i64),
            value: None,
            text: device.map_or_else(|| name.to_owned(), |device| format!("{name} (device {device})")),
        };
        let key = (labels.job.clone().into_owned(), labels.instance.clone().into_owned());
        all.entry(key).or_default().push(alert);
    }
    all
}

/// Numbers within a name count as numbers: galaxy-9 comes before galaxy-10.
fn natural(name: &str) -> Vec<(bool, u64, &str)> {
    let parts = name.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let mut at = 0;
    let mut all = Vec::new();
    for part in parts {
        let text = &name[at..at + part.len()];
        at += part.len();
        let is_number = part[0].is_ascii_digit();
        all.push((!is_number, if is_number { text.parse().unwrap_or(u64::MAX) } else { 0 }, text));
    }
    all
}
