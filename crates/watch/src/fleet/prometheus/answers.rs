//! What Prometheus answers, and what it tells of machines. Pure: bytes in, plain data out.

use crate::fleet::Alert;
use model::{
    Amperes, Bytes, BytesPerSecond, Celsius, Device, DeviceId, Held, Host, Megahertz, PciAddress, Process, Rpm, SCHEMA,
    Snapshot, Source, State, Timestamp, Volts, Watts,
};
use serde::de::{IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// A series of an instant vector: its labels, the time, and its value then.
#[derive(Debug, Deserialize)]
pub struct Row<L> {
    /// Its labels.
    pub metric: L,
    value: (f64, Number),
}

/// A number that is written as a text. One that is none, or has no end, tells nothing.
#[derive(Debug)]
struct Number(Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number as a text")
            }
            fn visit_str<E>(self, text: &str) -> Result<Number, E> {
                Ok(Number(text.parse().ok().filter(|value: &f64| value.is_finite())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The labels of a device's figures, of which there are very many.
#[derive(Debug, Deserialize)]
pub struct Figure<'a> {
    #[serde(borrow, rename = "__name__", default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    job: Cow<'a, str>,
    #[serde(borrow, default)]
    instance: Cow<'a, str>,
    #[serde(borrow, default)]
    device: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

/// All labels that tell something. One that is not there is empty, as Prometheus has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Labels<'a> {
    #[serde(borrow, rename = "__name__")]
    name_of_metric: Cow<'a, str>,
    #[serde(borrow)]
    job: Cow<'a, str>,
    #[serde(borrow)]
    instance: Cow<'a, str>,
    #[serde(borrow)]
    device: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    pci_address: Cow<'a, str>,
    #[serde(borrow)]
    board: Cow<'a, str>,
    #[serde(borrow)]
    serial: Cow<'a, str>,
    #[serde(borrow)]
    arch: Cow<'a, str>,
    #[serde(borrow)]
    asic_id: Cow<'a, str>,
    #[serde(borrow)]
    state: Cow<'a, str>,
    #[serde(borrow)]
    host: Cow<'a, str>,
    #[serde(borrow)]
    kernel: Cow<'a, str>,
    #[serde(borrow)]
    driver: Cow<'a, str>,
    #[serde(borrow)]
    simulated: Cow<'a, str>,
    #[serde(borrow)]
    bundle: Cow<'a, str>,
    #[serde(borrow)]
    dm_app: Cow<'a, str>,
    #[serde(borrow)]
    dm_bootloader: Cow<'a, str>,
    #[serde(borrow)]
    arc_firmware: Cow<'a, str>,
    #[serde(borrow)]
    ethernet: Cow<'a, str>,
    #[serde(borrow)]
    tt_flash: Cow<'a, str>,
    #[serde(borrow)]
    pid: Cow<'a, str>,
    #[serde(borrow)]
    user: Cow<'a, str>,
    #[serde(borrow)]
    container: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    source: Cow<'a, str>,
    #[serde(borrow)]
    alertname: Cow<'a, str>,
    #[serde(borrow)]
    severity: Cow<'a, str>,
}

/// The series of an answer, or in one sentence why there are none.
pub fn rows<'a, L: Deserialize<'a>>(bytes: &'a [u8]) -> Result<Vec<Row<L>>, String> {
    #[derive(Deserialize)]
    struct Answer<L> {
        status: String,
        data: Option<Data<L>>,
        #[serde(default)]
        error: String,
    }
    #[derive(Deserialize)]
    struct Data<L> {
        result: Vec<Row<L>>,
    }
    let text = str::from_utf8(bytes).map_err(|_| NOT_PROMETHEUS.to_owned())?;
    let answer: Answer<L> = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => format!("{NOT_PROMETHEUS}: {error}"),
        _ => NOT_PROMETHEUS.into(),
    })?;
    match answer {
        Answer { status, data: Some(data), .. } if status == "success" => Ok(data.result),
        Answer { error, .. } if !error.is_empty() => Err(format!("Prometheus refuses: {error}")),
        _ => Err(NOT_PROMETHEUS.into()),
    }
}

const NOT_PROMETHEUS: &str = "answers, but not as Prometheus does";

/// A machine, as the series tell of it.
#[derive(Debug, Clone)]
pub struct Machine {
    /// As Prometheus calls it.
    pub job: String,
    /// As Prometheus calls it.
    pub instance: String,
    /// What was measured.
    pub snapshot: Snapshot,
    /// When its sample was taken, before the moment of the answer.
    pub age_seconds: f64,
    /// Whether there was anything about it now.
    is_there: bool,
}

/// All machines that were told of.
#[derive(Debug, Default)]
pub struct Machines {
    all: Vec<Machine>,
    /// By instance; several jobs may have one of that name.
    places: HashMap<String, Vec<usize>>,
}

impl Machines {
    /// Devices and their states, with which a machine begins to be known.
    pub fn add_states(&mut self, rows: &[Row<Labels<'_>>]) {
        for row in rows.iter().filter(|row| !row.metric.device.is_empty()) {
            let machine = self.machine(&row.metric.job, &row.metric.instance);
            let device = machine.device(&row.metric.device);
            identify(device, &row.metric);
            device.state = named(&row.metric.state).unwrap_or(device.state);
        }
    }

    /// Puts figures where they belong.
    pub fn add_figures(&mut self, rows: &[Row<Figure<'_>>]) {
        for row in rows.iter().filter(|row| !row.metric.device.is_empty()) {
            let Some(value) = row.value.1.0 else { continue };
            let Figure { name, job, instance, device, kind } = &row.metric;
            fill(self.machine(job, instance).device(device), name, kind, value);
        }
    }

    /// Everything else: machines, firmware, processes.
    pub fn add_facts(&mut self, rows: &[Row<Labels<'_>>]) {
        for row in rows {
            let Some(value) = row.value.1.0 else { continue };
            let labels = &row.metric;
            let machine = self.machine(&labels.job, &labels.instance);
            match &*labels.name_of_metric {
                "ttmon_host_info" => {
                    machine.snapshot.host = Host {
                        name: text(&labels.host),
                        kernel: text(&labels.kernel),
                        driver_version: text(&labels.driver),
                        simulated: labels.simulated == "true",
                    };
                }
                "ttmon_sample_timestamp_seconds" => {
                    machine.is_there = true;
                    machine.snapshot.taken_at = Timestamp((value * 1e3) as i64);
                    machine.age_seconds = (row.value.0 - value).max(0.0);
                }
                "ttmon_device_info" | "ttmon_device_firmware_info" => {
                    let device = machine.device(&labels.device);
                    identify(device, labels);
                }
                "ttmon_device_state" if value == 1.0 => {
                    let device = machine.device(&labels.device);
                    identify(device, labels);
                    device.state = named(&labels.state).unwrap_or(device.state);
                }
                "ttmon_process_memory_used_bytes" | "" if !labels.pid.is_empty() => {
                    machine.process(labels, value, true)
                }
                "ttmon_process_memory_bytes" if !labels.pid.is_empty() => machine.process(labels, value, false),
                name if !labels.device.is_empty() => fill(machine.device(&labels.device), name, &labels.kind, value),
                _ => {}
            }
        }
    }

    /// A rate, which Prometheus gives no name.
    pub fn add_rates(&mut self, rows: &[Row<Labels<'_>>], name: &str) {
        for row in rows.iter().filter(|row| !row.metric.device.is_empty()) {
            let Some(value) = row.value.1.0 else { continue };
            let device = self.machine(&row.metric.job, &row.metric.instance).device(&row.metric.device);
            // Of a device that cannot be read the counters stand still, which is no rate.
            if device.state == State::Ok {
                fill(device, name, "", value);
            }
        }
    }

    /// Machines that were there and are not any more.
    pub fn add_gone(&mut self, rows: &[Row<Labels<'_>>]) {
        for row in rows {
            let Some(last) = row.value.1.0 else { continue };
            let age = (row.value.0 - last).max(0.0);
            let machine = self.machine(&row.metric.job, &row.metric.instance);
            if !machine.is_there {
                machine.snapshot.taken_at = Timestamp((last * 1e3) as i64);
                machine.age_seconds = age;
            }
        }
    }

    /// In the order of their names, each with whether it is there now.
    pub fn finish(mut self) -> Vec<(Machine, bool)> {
        self.all.sort_by(|a, b| natural(&a.instance).cmp(&natural(&b.instance)).then_with(|| a.job.cmp(&b.job)));
        let finished = self.all.into_iter().map(|mut machine| {
            machine.snapshot.devices.sort_by(|a, b| a.id.cmp(&b.id));
            machine.snapshot.processes.sort_by_key(|process| process.pid);
            let is_there = machine.is_there;
            (machine, is_there)
        });
        finished.collect()
    }

    fn machine(&mut self, job: &str, instance: &str) -> &mut Machine {
        // Looked for with what is borrowed, since nearly all of them are known.
        let places = self.places.get(instance);
        if let Some(&at) = places.and_then(|places| places.iter().find(|at| self.all[**at].job == job)) {
            return &mut self.all[at];
        }
        let at = self.all.len();
        self.places.entry(instance.to_owned()).or_default().push(at);
        let (host, devices, processes, faults) = (Host::default(), Vec::new(), Vec::new(), Vec::new());
        let snapshot =
            Snapshot { schema: SCHEMA, taken_at: Timestamp(0), host, devices, processes, faults, alerts: Vec::new() };
        let (job, instance) = (job.to_owned(), instance.to_owned());
        self.all.push(Machine { job, instance, snapshot, age_seconds: 0.0, is_there: false });
        &mut self.all[at]
    }
}

impl Machine {
    fn device(&mut self, name: &str) -> &mut Device {
        let (id, devices) = (device_id(name), &mut self.snapshot.devices);
        let at = devices.iter().position(|device| device.id == id).unwrap_or_else(|| {
            // It has no state until one is told.
            devices.push(Device { state: State::Silent, ..Device::new(id) });
            devices.len() - 1
        });
        &mut devices[at]
    }

    fn process(&mut self, labels: &Labels<'_>, bytes: f64, is_used: bool) {
        // Those that are too many to be told one by one.
        let Ok(pid) = labels.pid.parse::<u32>() else { return };
        let processes = &mut self.snapshot.processes;
        let at = processes.iter().position(|process| process.pid == pid).unwrap_or_else(|| {
            let (user, name, container) = (text(&labels.user), text(&labels.name), text(&labels.container));
            processes.push(Process { user, name, container, ..Process::new(pid) });
            processes.len() - 1
        });
        if labels.device.is_empty() {
            return;
        }
        let (process, id) = (&mut processes[at], device_id(&labels.device));
        let at = process.devices.iter().position(|held| held.id == id).unwrap_or_else(|| {
            let source: Option<Source> = named(&labels.source);
            process.devices.push(Held { source, ..Held::new(id) });
            process.devices.len() - 1
        });
        let usage = &mut process.devices[at].usage;
        let kind = match (&*labels.kind, is_used) {
            ("dram", true) => &mut usage.dram_used,
            ("l1", true) => &mut usage.l1_used,
            ("dram", false) => &mut usage.dram,
            ("l1", false) => &mut usage.l1,
            ("l1_small", false) => &mut usage.l1_small,
            ("trace", false) => &mut usage.trace,
            ("cb", false) => &mut usage.cb,
            ("kernel", false) => &mut usage.kernel,
            _ => return,
        };
        *kind = Some(Bytes(bytes as u64));
        process.devices.sort_by(|a, b| a.id.cmp(&b.id));
    }
}

/// One of several, by the name that it has in JSON, too.
fn named<T: for<'n> Deserialize<'n>>(name: &str) -> Option<T> {
    T::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name)).ok()
}

fn device_id(name: &str) -> DeviceId {
    match (name.parse(), name.strip_suffix('R').and_then(|n| n.parse().ok())) {
        (Ok(n), _) => DeviceId::Local(n),
        (_, Some(n)) => DeviceId::Remote(n),
        _ => DeviceId::NoDriver(PciAddress(name.into())),
    }
}

fn text(label: &str) -> Option<String> {
    (!label.is_empty()).then(|| label.to_owned())
}

fn identify(device: &mut Device, labels: &Labels<'_>) {
    let put = |to: &mut Option<Arc<str>>, label: &str| {
        if let (None, false) = (&to, label.is_empty()) {
            *to = Some(label.into());
        }
    };
    if device.pci_address.is_none() {
        device.pci_address = text(&labels.pci_address).map(|at| PciAddress(at.into()));
    }
    device.arch = device.arch.or_else(|| named(&labels.arch));
    put(&mut device.board, &labels.board);
    put(&mut device.serial, &labels.serial);
    put(&mut device.asic_id, &labels.asic_id);
    let firmware = &mut device.firmware;
    put(&mut firmware.bundle, &labels.bundle);
    put(&mut firmware.dm_app, &labels.dm_app);
    put(&mut firmware.dm_bootloader, &labels.dm_bootloader);
    put(&mut firmware.arc, &labels.arc_firmware);
    put(&mut firmware.ethernet, &labels.ethernet);
    put(&mut firmware.tt_flash, &labels.tt_flash);
}

/// Puts a figure where it belongs. What this program does not know is left out.
fn fill(device: &mut Device, name: &str, kind: &str, value: f64) {
    let Some(figure) = name.strip_prefix("ttmon_device_") else { return };
    let (bytes, megahertz) = (Bytes(value as u64), Megahertz((value / 1e6).round() as u32));
    let (link, memory) = (&mut device.pcie, &mut device.memory);
    match (figure, kind) {
        ("temperature_celsius", _) => device.asic_temp = Some(Celsius(value)),
        ("temperature_limit_celsius", _) => device.asic_temp_max = Some(Celsius(value)),
        ("power_watts", _) => device.power = Some(Watts(value)),
        ("power_limit_watts", _) => device.power_max = Some(Watts(value)),
        ("core_volts", _) => device.vcore = Some(Volts(value)),
        ("core_limit_volts", _) => device.vcore_max = Some(Volts(value)),
        ("core_amperes", _) => device.current = Some(Amperes(value)),
        ("core_limit_amperes", _) => device.current_max = Some(Amperes(value)),
        ("fan_rpm", _) => device.fan = Some(Rpm(value as u32)),
        ("aiclk_hertz", _) => device.aiclk = Some(megahertz),
        ("axiclk_hertz", _) => device.axiclk = Some(megahertz),
        ("arcclk_hertz", _) => device.arcclk = Some(megahertz),
        ("heartbeat", _) => device.heartbeat = Some(value as u32),
        ("thermal_trips_total", _) => device.thermal_trips_total = Some(value as u64),
        ("sample_age_seconds", _) => device.sample_age_seconds = Some(value),
        ("pcie_generation", _) => link.generation = Some(value as u8),
        ("pcie_generation_limit", _) => link.max_generation = Some(value as u8),
        ("pcie_lanes", _) => link.width = Some(value as u8),
        ("pcie_lanes_limit", _) => link.max_width = Some(value as u8),
        ("pcie_host_to_device_bytes_total", _) => link.host_to_device_total = Some(bytes),
        ("pcie_device_to_host_bytes_total", _) => link.device_to_host_total = Some(bytes),
        ("pcie_host_to_device_rate", _) => link.host_to_device = Some(BytesPerSecond(value)),
        ("pcie_device_to_host_rate", _) => link.device_to_host = Some(BytesPerSecond(value)),
        ("memory_used_bytes", "dram") => memory.dram_used = Some(bytes),
        ("memory_used_bytes", "l1") => memory.l1_used = Some(bytes),
        ("memory_bytes", "dram") => memory.dram = Some(bytes),
        ("memory_bytes", "l1") => memory.l1 = Some(bytes),
        ("memory_bytes", "l1_small") => memory.l1_small_used = Some(bytes),
        ("memory_bytes", "trace") => memory.trace_used = Some(bytes),
        ("memory_bytes", "cb") => memory.cb_used = Some(bytes),
        ("memory_bytes", "kernel") => memory.kernel = Some(bytes),
        ("memory_total_bytes", "dram") => memory.dram_total = Some(bytes),
        ("memory_total_bytes", "l1") => memory.l1_total = Some(bytes),
        ("memory_stale_bytes", _) => memory.stale = Some(bytes),
        ("untracked_processes", _) => memory.untracked_processes = value as u32,
        _ => {}
    }
}

/// Firing alerts by job and instance: name, severity and device of each.
pub fn alerts(rows: &[Row<Labels<'_>>]) -> BTreeMap<(String, String), Vec<Alert>> {
    let mut all: BTreeMap<(String, String), Vec<Alert>> = BTreeMap::new();
    for labels in rows.iter().map(|row| &row.metric) {
        let alert = Alert {
            name: labels.alertname.clone().into_owned(),
            severity: labels.severity.clone().into_owned(),
            state: "firing".into(),
            device: text(&labels.device),
            text: match text(&labels.device) {
                Some(device) => format!("{} (device {device})", labels.alertname),
                None => labels.alertname.clone().into_owned(),
            },
        };
        all.entry((labels.job.clone().into_owned(), labels.instance.clone().into_owned())).or_default().push(alert);
    }
    all
}

/// Numbers within a name count as numbers: galaxy-9 stands before galaxy-10.
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
