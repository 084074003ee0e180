//! A rule with its name, and the built-in rules.

use crate::condition::Condition;
use crate::subject::{Scope, Subject, only_device};
use model::judgement::{AT_LIMIT, FULL, HOT, HYSTERESIS, IDLE_SECONDS};
use model::{Device, DeviceId, DeviceKey, ExitRecord, Held, Process, Selector, Severity, Snapshot};

/// The built-in rule about processes that hold device memory and run nothing.
pub const IDLE_HOLDER: &str = "idle-holder";
/// The built-in rule about devices at their power limit.
pub const POWER_LIMIT: &str = "power-limit";
/// Those about the temperature, the DRAM and the link of a device.
pub const HOT_DEVICE: &str = "hot";
/// The rule about the DRAM.
pub const MEMORY_FULL: &str = "memory-full";
/// The rule about the link.
pub const DEGRADED_LINK: &str = "degraded-link";
/// Those about the state of a device.
pub const STATE_RULES: [&str; 3] = ["lost", "heartbeat-stopped", "silent"];

/// One alert rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name, which no other rule has.
    pub name: String,
    /// Condition under which it fires.
    pub condition: Condition,
    /// Severity of its alerts.
    pub severity: Severity,
    /// Only for these devices; for all when there are none.
    pub devices: Vec<Selector>,
    /// Only for processes with this pid, or with this name, in which `*` matches anything.
    pub process: Option<String>,
    /// What is wrong, in a few words for people.
    pub text: Option<String>,
    /// What it means, and what to do.
    pub advice: Option<String>,
}

impl Rule {
    /// What Prometheus and Alertmanager call it: `thermal-trip` is `TtmonThermalTrip`.
    pub fn alertname(&self) -> String {
        let parts = self.name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        let upper = |part: &str| {
            let mut letters = part.chars();
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
        };
        format!("Ttmon{}", parts.map(upper).collect::<String>())
    }

    /// What is wrong, in a few words; the name where it has none.
    pub fn words(&self) -> &str {
        self.text.as_deref().unwrap_or(&self.name)
    }

    /// The kind of subject that it is evaluated for.
    pub fn scope(&self) -> Scope {
        self.condition.scope()
    }

    /// Whether it can fire in the first sample.
    pub fn fires_at_once(&self) -> bool {
        self.condition.hold.is_zero()
    }

    fn is_about_device(&self, device: &Device) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|selector| selector.names(device))
    }

    fn is_about(&self, pid: u32, name: Option<&str>) -> bool {
        let Some(wanted) = &self.process else { return true };
        wanted.parse() == Ok(pid) || name.is_some_and(|name| matches(wanted, name))
    }

    /// All that it is about in a snapshot, whose devices have these keys.
    pub(crate) fn subjects<'a>(
        &self,
        scope: Scope,
        snapshot: &'a Snapshot,
        keys: &[DeviceKey],
        exited: &[&'a ExitRecord],
    ) -> Vec<Subject<'a>> {
        let devices = || snapshot.devices.iter().zip(keys);
        let device = |id: &DeviceId| devices().find(|(device, _)| device.id == *id);
        let wanted = |id: &DeviceId| device(id).filter(|(device, _)| self.is_about_device(device));
        let of_device = |(device, key): (&'a Device, &DeviceKey)| Subject {
            device: Some(device),
            key: Some(*key),
            ..Subject::default()
        };
        let processes = snapshot.processes.iter().filter(|process| self.is_about(process.pid, process.name.as_deref()));
        match scope {
            Scope::Device => devices().filter(|(device, _)| self.is_about_device(device)).map(of_device).collect(),
            Scope::Process => {
                let on_wanted = |process: &&Process| process.devices.iter().any(|held| wanted(&held.id).is_some());
                let subject = |process| Subject { process: Some(process), ..Subject::default() };
                processes.filter(on_wanted).map(subject).collect()
            }
            Scope::Held => {
                let pairs = processes.flat_map(|process| process.devices.iter().map(move |held| (process, held)));
                let subject = |(process, held): (&'a Process, &'a Held)| {
                    let device = of_device(wanted(&held.id)?);
                    Some(Subject { process: Some(process), held: Some(held), ..device })
                };
                pairs.filter_map(subject).collect()
            }
            Scope::Exited => {
                let subject = |exit: &&'a ExitRecord| {
                    let device = only_device(exit).and_then(device).map(|(device, _)| device);
                    let is_there = self.devices.is_empty() || device.is_some_and(|device| self.is_about_device(device));
                    let is_about = is_there && self.is_about(exit.pid, exit.name.as_deref());
                    is_about.then_some(Subject { device, exited: Some(*exit), ..Subject::default() })
                };
                exited.iter().filter_map(subject).collect()
            }
        }
    }
}

/// Whether a name matches a pattern, in which `*` matches anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.any(|at| matches(after, &rest[at..]))
}

/// A threshold of the one judgement as a rule: `asic_temp >= 95% for 30s until asic_temp < 90%`.
fn above(figure: &str, part: f64) -> String {
    let percent = |part: f64| (part * 100.0).round();
    format!("{figure} >= {}% for 30s until {figure} < {}%", percent(part), percent(part * HYSTERESIS))
}

/// Name, severity, condition, the words for it, and what to do. Thresholds are those of the judgement.
type Row = (&'static str, Severity, String, &'static str, &'static str);

fn table() -> [Row; 20] {
    use Severity::{Critical, Info, Warning};
    let trips = "increase(thermal_trips, 10m) > 0";
    let idle = format!("process_idle >= {IDLE_SECONDS} and process_memory > 0");
    let (hung, stale) =
        ("firmware heartbeat stopped, or PCIe not responding", "memory still attributed to exited processes");
    let throttles = "at its temperature limit, where the firmware throttles";
    let link = "PCIe link runs slower or narrower than slot and card support";
    let limited =
        "throttled_by == temperature or throttled_by == GDDR_temperature or throttled_by == doppler_critical for 30s";
    // A port without a cable is not up, either, so without a descriptor only a change counts.
    let down = "links_down > 0 or increase(eth_ports_not_up, 10m) > 0 for 1m";
    let uncorrected = "gddr_uncorrected_read or gddr_uncorrected_write";
    // Single errors are corrected all the time, and at 255 the firmware stops to count.
    let corrected = ["gddr_corrected_reads", "gddr_corrected_writes"];
    let corrected = corrected.map(|errors| format!("increase({errors}, 1h) >= 10 or {errors} >= 255")).join(" or ");
    [
        (STATE_RULES[0], Critical, "state == lost".into(), "disappeared from the bus", LOST),
        (STATE_RULES[1], Critical, "state == hung".into(), hung, HUNG),
        (STATE_RULES[2], Warning, "state == silent for 15s".into(), "does not respond", SILENT),
        ("thermal-trip", Critical, trips.into(), "shut down by critical temperature", TRIPPED),
        ("throttling", Warning, above("asic_temp", 1.0), throttles, THROTTLING),
        (HOT_DEVICE, Warning, above("asic_temp", HOT), "near its temperature limit", NEAR_LIMIT),
        // Full power is normal load: good to know, no more.
        (POWER_LIMIT, Info, above("power", AT_LIMIT), "at its power limit", FULL_POWER),
        (MEMORY_FULL, Warning, above("dram", FULL), "DRAM is almost full", FULL_MEMORY),
        ("leak-after-exit", Warning, "stale > 0 for 1m".into(), stale, STALE),
        ("left-at-exit", Info, "left_at_exit > 0".into(), "exited without freeing its device memory", LEFT),
        (IDLE_HOLDER, Info, idle, "holds device memory and runs nothing", IDLE),
        (DEGRADED_LINK, Warning, "link_degraded for 1m".into(), link, SLOW_LINK),
        // What follows needs deep reads.
        ("clock-limited", Warning, limited.into(), "clock held down by heat or by a power surge", LIMITED),
        ("link-down", Warning, down.into(), "an Ethernet link is down, or went down", LINK_DOWN),
        ("gddr-uncorrected", Critical, uncorrected.into(), "memory errors that were not corrected", UNCORRECTED),
        ("gddr-corrected", Warning, corrected, "corrected memory errors are rising", CORRECTED),
        (
            "gddr-untrained",
            Critical,
            "gddr_trained == false for 30s".into(),
            "a memory channel is not trained",
            UNTRAINED,
        ),
        (
            "gddr-training-failed",
            Critical,
            "gddr_training_failed".into(),
            "training of a memory channel failed",
            UNTRAINED,
        ),
        ("gddr-hot", Warning, gddr_above(GDDR_THROTTLE, 85), "memory is hot, so the firmware throttles", GDDR_HOT),
        ("gddr-too-hot", Critical, gddr_above(GDDR_TRIP, GDDR_THROTTLE), "memory is too hot", GDDR_TOO_HOT),
    ]
}

/// From here on the firmware lowers the clock, in °C: `gddr_thm_limit` of p150a, p300c and Galaxy in tt-system-firmware,
/// boards/tenstorrent/tt_blackhole/spirom_data_tables/*/fw_table.txt.
const GDDR_THROTTLE: u32 = 89;
/// From here on it can shut down the chip after a minute, where that is switched on: `gddr_therm_trip_temp` of the same tables.
const GDDR_TRIP: u32 = 95;

/// Any GDDR channel at a temperature, until all are below another one.
fn gddr_above(hot: u32, cool: u32) -> String {
    let sides = |sign: &str, celsius: u32, join: &str| {
        ["gddr_top_temp", "gddr_bottom_temp"].map(|side| format!("{side} {sign} {celsius}")).join(join)
    };
    format!("{} for 30s until {}", sides(">=", hot, " or "), sides("<", cool, " and "))
}

const LOST: &str = "The card is no longer on the PCIe bus: programs on it have failed. See dmesg for the cause. Rescan the bus \
    (echo 1 > /sys/bus/pci/rescan) or power-cycle the machine.";
const HUNG: &str = "The chip's firmware does not run: programs on it will not finish. End them, then reset the card (tt-smi -r). \
    If it comes back, note the firmware version and report it.";
const SILENT: &str = "Reads of the card's files do not return, as during a reset. If it lasts, see dmesg, end programs on the card and \
    reset it (tt-smi -r).";
const TRIPPED: &str =
    "The chip was switched off to protect it. Check airflow, fans and dust, and let it cool before it is used again.";
const THROTTLING: &str =
    "The firmware lowers the clock, so programs run slower. Check airflow and fans, or lower the load.";
const NEAR_LIMIT: &str = "A little more, and the firmware lowers the clock. Check airflow and fans.";
const FULL_POWER: &str =
    "The card runs at the power that it may draw. That is normal under full load; nothing is to be done.";
const FULL_MEMORY: &str =
    "The next allocation may fail. `ttmon mem` shows who holds the memory; end what is not needed.";
const STALE: &str = "Counters in shared memory still name processes that have exited. The device's memory is free once it is opened anew; \
    `ttmon mem` shows which files these are.";
const LEFT: &str = "The process ended without freeing buffers. The driver frees them, but the program may leak while it runs: \
    `ttmon run` lists what it left.";
const IDLE: &str = "Others cannot use that memory. Ask the user, or end the process.";
const SLOW_LINK: &str = "Transfers to the card are slower than they could be. Reseat the card, check the slot's settings in the firmware setup, \
    and use a slot with all lanes.";

const LIMITED: &str = "The firmware lowers the clock, so programs run slower. For temperature, check airflow and fans, or lower the load. \
    Doppler reacts to a surge of the board's power: check the power cable and supply.";
const LINK_DOWN: &str = "Programs that use several chips fail or wait. Check the cable, and `ttmon smi nvlink -s` for which port it is. \
    A reset of both cards (tt-smi -r) trains their links again.";
const UNCORRECTED: &str = "Data in device memory was wrong: do not trust the results of programs on this card. Reset it (tt-smi -r). \
    If it comes back, the card needs service.";
const CORRECTED: &str = "The memory still works, but errors become more frequent. Check the temperature of the memory and the airflow. \
    If errors keep rising after a reset, the card needs service.";
const UNTRAINED: &str = "This part of device memory cannot be used, and programs fail when they open the card. Reset it (tt-smi -r). \
    If it comes back, the card needs service.";
const GDDR_HOT: &str =
    "The firmware lowers the clock until the memory is cooler. Check airflow and fans, also at the back of the card.";
const GDDR_TOO_HOT: &str = "The memory is above the temperature at which the firmware can shut down the card. Lower the load now, \
    and check airflow and fans.";

/// The rules that apply without any configuration.
pub fn built_in() -> Vec<Rule> {
    table().into_iter().filter_map(rule).collect()
}

/// Those of them that can fire in the first sample. To read the others takes longer than to apply these.
pub fn built_in_at_once() -> Vec<Rule> {
    let at_once = table().into_iter().filter(|(_, _, when, _, _)| !when.contains(" for "));
    at_once.filter_map(rule).collect()
}

fn rule((name, severity, when, text, advice): Row) -> Option<Rule> {
    let condition = when.parse().ok()?;
    let (name, text, advice) = (name.to_owned(), Some(text.to_owned()), Some(advice.to_owned()));
    Some(Rule { name, condition, severity, devices: Vec::new(), process: None, text, advice })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Subject;
    use model::figure::Figure;
    use model::figure::device::{ASIC_TEMP, DRAM_USED, POWER};
    use model::judgement::is_idle_holder;
    use model::{Bytes, Celsius, DeviceId, Judgement, Usage, Watts};

    #[test]
    fn the_built_in_rules_are_written_as_people_would() {
        let rules = built_in();
        assert_eq!(rules.len(), table().len());
        for (rule, (_, _, written, _, _)) in rules.iter().zip(table()) {
            assert_eq!(rule.condition.to_string(), written);
        }
        assert_eq!(rules[3].alertname(), "TtmonThermalTrip");
        let hot = rules.iter().find(|rule| rule.name == "hot").unwrap();
        assert_eq!(hot.condition.to_string(), "asic_temp >= 95% for 30s until asic_temp < 90%");
    }

    #[test]
    fn the_built_in_rules_of_a_single_sample_are_those_that_need_not_hold_for_a_while() {
        let mut rules = built_in();
        rules.retain(Rule::fires_at_once);
        assert_eq!(built_in_at_once(), rules);
        assert_eq!(rules.len(), 8);
    }

    #[test]
    fn the_built_in_rules_judge_as_the_views_do() {
        let rules = built_in();
        let holds = |name: &str, device: &Device| {
            let when = &rules.iter().find(|rule| rule.name == name).unwrap().condition.when;
            when.holds(&|compare| compare.value_of(&Subject { device: Some(device), ..Subject::default() }))
        };
        let is_critical = |row: &Figure<Device>, device: &Device| row.judge(device) == Some(Judgement::Critical);
        for value in 0..=110u32 {
            let mut device = Device::new(DeviceId::Local(0));
            (device.asic_temp, device.asic_temp_max) = (Some(Celsius(value.into())), Some(Celsius(100.0)));
            (device.power, device.power_max) = (Some(Watts(value.into())), Some(Watts(100.0)));
            device.memory.dram_used = Some(Bytes(value.into()));
            device.memory.dram_total = Some(Bytes(100));
            assert_eq!(holds("hot", &device), is_critical(&ASIC_TEMP, &device), "{value}");
            assert_eq!(holds("memory-full", &device), is_critical(&DRAM_USED, &device), "{value}");
            assert_eq!(holds("power-limit", &device), POWER.is_at_limit(&device), "{value}");
        }
        let about_power = rules.iter().filter(|rule| rule.condition.to_string().contains("power"));
        assert!(about_power.map(|rule| rule.severity).eq([Severity::Info]), "full power is normal load");
    }

    #[test]
    fn an_idle_process_is_reported_once_whatever_it_holds_and_only_where_its_agent_says_so() {
        let rule = built_in().into_iter().find(|rule| rule.name == IDLE_HOLDER).unwrap();
        assert_eq!(rule.scope(), Scope::Process, "once, not for each device");
        for (idle, bytes) in [(None, 9), (Some(0.0), 9), (Some(599.9), 9), (Some(600.0), 9), (Some(9e3), 0)] {
            let held = |n| Held { usage: Usage::measured(bytes, 0, 0, 0, 0), ..Held::new(DeviceId::Local(n)) };
            let process = Process { idle_seconds: idle, devices: vec![held(0), held(1)], ..Process::new(7) };
            let subject = Subject { process: Some(&process), ..Subject::default() };
            let holds = rule.condition.when.holds(&|compare| compare.value_of(&subject));
            assert_eq!(holds, is_idle_holder(&process), "{idle:?} {bytes}");
        }
    }

    #[test]
    fn a_star_matches_anything() {
        for (pattern, name, expected) in [
            ("python3", "python3", true),
            ("python", "python3", false),
            ("python*", "python3", true),
            ("*thon*", "python3", true),
            ("*x*", "python3", false),
            ("*", "", true),
            ("p*3", "python3.11", false),
            ("ü*", "über", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
