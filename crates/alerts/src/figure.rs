//! The figures that a rule can compare, in one table.

use crate::ended::Ended;
use model::{Bytes, Device, Held, Process, State};

/// Something that a rule can compare.
pub struct Figure {
    /// As rules write it.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// What it is a figure of.
    pub scope: Scope,
    /// For people.
    pub help: &'static str,
    /// The value, where there is one.
    pub(crate) read: Read,
    /// What a percentage of it is a percentage of: its value, and its PromQL.
    pub(crate) most: Option<(Read, Metric)>,
    /// Its metric. Absent where Prometheus is not told.
    pub(crate) promql: Option<Metric>,
}

type Read = fn(&Seen) -> Option<f64>;

/// Where Prometheus has a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Metric {
    pub name: &'static str,
    /// The kind of memory, where the metric has several.
    pub kind: Option<&'static str>,
    /// So many of its units are one of the figure's.
    pub scale: f64,
}

impl Metric {
    const fn of(name: &'static str) -> Metric {
        Metric { name, kind: None, scale: 1.0 }
    }

    const fn by(name: &'static str, kind: &'static str) -> Metric {
        Metric { name, kind: Some(kind), scale: 1.0 }
    }
}

/// What a figure's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number in this unit, which may be written behind it.
    Number(&'static str),
    /// An amount of memory.
    Bytes,
    /// How a device is.
    State,
    /// It is, or it is not.
    YesNo,
}

/// What a figure is a figure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A device.
    Device,
    /// A process.
    Process,
    /// A process on a device.
    Held,
    /// A process that has ended. Only the service knows.
    Ended,
}

/// What a rule is looking at.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen<'a> {
    pub device: Option<&'a Device>,
    pub process: Option<&'a Process>,
    pub held: Option<&'a Held>,
    pub ended: Option<&'a Ended>,
}

impl<'a> Seen<'a> {
    /// The device, if what it says is of now: one that does not answer shows what it said at last.
    fn fresh(&self) -> Option<&'a Device> {
        self.device.filter(|device| device.sample_age_seconds.is_none_or(|age| age <= 0.0))
    }
}

macro_rules! device {
    ($name:literal, $kind:expr, $help:literal, $read:expr, $promql:expr) => {
        Figure {
            name: $name,
            kind: $kind,
            scope: Scope::Device,
            help: $help,
            read: |seen| seen.fresh().and_then($read),
            most: None,
            promql: Some($promql),
        }
    };
    ($name:literal, $kind:expr, $help:literal, $read:expr, $promql:expr, of $most:expr, $most_promql:expr) => {
        Figure {
            most: Some((|seen| seen.fresh().and_then($most), $most_promql)),
            ..device!($name, $kind, $help, $read, $promql)
        }
    };
}

/// Memory is counted in processes, so it is of now even when the device does not answer.
macro_rules! memory {
    ($name:literal, $kind:expr, $help:literal, $read:expr, $promql:expr) => {
        Figure { read: |seen| seen.device.and_then($read), ..device!($name, $kind, $help, $read, $promql) }
    };
    ($name:literal, $kind:expr, $help:literal, $read:expr, $promql:expr, of $most:expr, $most_promql:expr) => {
        Figure {
            most: Some((|seen| seen.device.and_then($most), $most_promql)),
            ..memory!($name, $kind, $help, $read, $promql)
        }
    };
}

macro_rules! held {
    ($name:literal, $help:literal, $read:expr, $promql:expr) => {
        Figure {
            name: $name,
            kind: Kind::Bytes,
            scope: Scope::Held,
            help: $help,
            read: |seen| seen.held.and_then($read).map(amount),
            most: None,
            promql: Some($promql),
        }
    };
}

fn amount(bytes: Bytes) -> f64 {
    bytes.0 as f64
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "state",
        kind: Kind::State,
        scope: Scope::Device,
        help: "ok, resetting, hung, silent, lost, no_driver or remote",
        read: |seen| seen.device.map(|device| number_of(device.state)),
        most: None,
        promql: Some(Metric::of("ttmon_device_state")),
    },
    Figure {
        name: "sample_age",
        kind: Kind::Number("s"),
        scope: Scope::Device,
        help: "how old the readings are",
        read: |seen| seen.device.and_then(|device| device.sample_age_seconds),
        most: None,
        promql: Some(Metric::of("ttmon_device_sample_age_seconds")),
    },
    device!(
        "asic_temp",
        Kind::Number("C"),
        "chip temperature; % of where the firmware throttles",
        |d| d.asic_temp.map(|v| v.0),
        Metric::of("ttmon_device_temperature_celsius"),
        of | d | d.asic_temp_max.map(|v| v.0),
        Metric::of("ttmon_device_temperature_limit_celsius")
    ),
    device!(
        "power",
        Kind::Number("W"),
        "power of the chip; % of its limit",
        |d| d.power.map(|v| v.0),
        Metric::of("ttmon_device_power_watts"),
        of | d | d.power_max.map(|v| v.0),
        Metric::of("ttmon_device_power_limit_watts")
    ),
    device!(
        "vcore",
        Kind::Number("V"),
        "core voltage; % of its limit",
        |d| d.vcore.map(|v| v.0),
        Metric::of("ttmon_device_core_volts"),
        of | d | d.vcore_max.map(|v| v.0),
        Metric::of("ttmon_device_core_limit_volts")
    ),
    device!(
        "current",
        Kind::Number("A"),
        "core current; % of its limit",
        |d| d.current.map(|v| v.0),
        Metric::of("ttmon_device_core_amperes"),
        of | d | d.current_max.map(|v| v.0),
        Metric::of("ttmon_device_core_limit_amperes")
    ),
    device!(
        "fan",
        Kind::Number("rpm"),
        "fan speed",
        |d| d.fan.map(|v| f64::from(v.0)),
        Metric::of("ttmon_device_fan_rpm")
    ),
    device!(
        "aiclk",
        Kind::Number("MHz"),
        "clock of the Tensix cores",
        |d| d.aiclk.map(|v| f64::from(v.0)),
        Metric { scale: 1e6, ..Metric::of("ttmon_device_aiclk_hertz") }
    ),
    device!(
        "heartbeat",
        Kind::Number(""),
        "counts up while the firmware lives: increase(heartbeat, 10s)",
        |d| d.heartbeat.map(f64::from),
        Metric::of("ttmon_device_heartbeat")
    ),
    device!(
        "thermal_trips",
        Kind::Number(""),
        "shutdowns by critical temperature: increase(thermal_trips, 10m)",
        |d| d.thermal_trips_total.or(d.thermal_trips.map(u64::from)).map(|trips| trips as f64),
        Metric::of("ttmon_device_thermal_trips_total")
    ),
    device!(
        "link_degraded",
        Kind::YesNo,
        "whether PCIe runs slower or narrower than slot and card could",
        |d| {
            let link = &d.pcie;
            let is_known = (link.generation.and(link.max_generation)).or(link.width.and(link.max_width)).is_some();
            is_known.then(|| f64::from(u8::from(d.link_is_degraded())))
        },
        Metric::of("ttmon_device_pcie_degraded")
    ),
    memory!(
        "dram",
        Kind::Bytes,
        "DRAM that living processes hold; % of what the chip has",
        |d| d.memory.dram_used.map(amount),
        Metric::by("ttmon_device_memory_used_bytes", "dram"),
        of | d | d.memory.dram_total.map(amount),
        Metric::by("ttmon_device_memory_total_bytes", "dram")
    ),
    memory!(
        "l1",
        Kind::Bytes,
        "L1 that living processes hold; % of what the chip has",
        |d| d.memory.l1_used.map(amount),
        Metric::by("ttmon_device_memory_used_bytes", "l1"),
        of | d | d.memory.l1_total.map(amount),
        Metric::by("ttmon_device_memory_total_bytes", "l1")
    ),
    memory!(
        "trace",
        Kind::Bytes,
        "recorded command traces, in DRAM",
        |d| d.memory.trace_used.map(amount),
        Metric::by("ttmon_device_memory_used_bytes", "trace")
    ),
    memory!(
        "stale",
        Kind::Bytes,
        "bytes that the books still carry for processes that are dead",
        |d| d.memory.stale.map(amount),
        Metric::of("ttmon_device_memory_stale_bytes")
    ),
    memory!(
        "untracked_processes",
        Kind::Number(""),
        "processes that hold the device and tell nobody how much",
        |d| Some(f64::from(d.memory.untracked_processes)),
        Metric::of("ttmon_device_untracked_processes")
    ),
    held!(
        "process_dram",
        "DRAM that a process holds on a device",
        |held| held.usage.dram,
        Metric::by("ttmon_process_memory_bytes", "dram")
    ),
    held!(
        "process_l1",
        "L1 that a process holds on a device",
        |held| held.usage.l1,
        Metric::by("ttmon_process_memory_bytes", "l1")
    ),
    Figure {
        name: "process_host_memory",
        kind: Kind::Bytes,
        scope: Scope::Process,
        help: "resident memory of a process on the host",
        read: |seen| seen.process.and_then(|process| process.host_memory).map(amount),
        most: None,
        promql: None,
    },
    Figure {
        name: "process_cpu",
        kind: Kind::Number(""),
        scope: Scope::Process,
        help: "host CPU of a process; 100 for one busy core",
        read: |seen| seen.process.and_then(|process| process.host_cpu_percent),
        most: None,
        promql: None,
    },
    Figure {
        name: "left_at_exit",
        kind: Kind::Bytes,
        scope: Scope::Ended,
        help: "what a process had not freed when it came to its own end (`ttmon serve` only)",
        read: |seen| seen.ended.map(|ended| amount(ended.left)),
        most: None,
        promql: None,
    },
];

/// The figure that is called so.
pub(crate) fn named(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// States as rules spell them.
pub(crate) const STATES: [(State, &str); 7] = [
    (State::Ok, "ok"),
    (State::Resetting, "resetting"),
    (State::Hung, "hung"),
    (State::Silent, "silent"),
    (State::Lost, "lost"),
    (State::NoDriver, "no_driver"),
    (State::Remote, "remote"),
];

fn number_of(state: State) -> f64 {
    STATES.iter().position(|(other, _)| *other == state).map_or(-1.0, |at| at as f64)
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}
