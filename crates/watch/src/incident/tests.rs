//! Incidents of made-up machines: what is named is a part of what was done to them, whatever comes together.

use super::story::{self, Scene, Story};
use super::*;
use crate::events::{Events, Observation};
use model::{
    Bytes, Celsius, Deep, Device, DeviceId, ExitRecord, Held, KernelMessage, KernelMessageKind, LogEntry, PciAddress,
    Process, Snapshot, State, Usage, Watts, Weight,
};
use std::collections::BTreeSet;

const DEVICES: u32 = 4;
/// Pids, and the devices that each of them holds.
const PROCESSES: [(u32, &[u32]); 2] = [(100, &[0, 1]), (200, &[2])];
const SECONDS: i64 = 130;

/// Something that is done to the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    State(u32, State),
    Reset(u32),
    Heat(u32),
    Trip(u32),
    Full(u32),
    LinkDown(u32),
    PcieError(u32),
    Killed(usize),
    OutOfMemory(usize),
    Growth(usize),
    Unload,
}

impl Fault {
    /// What may be named because of it, and of which device or process.
    fn cause(self) -> (Cause, Option<u32>, Option<u32>) {
        let pid = |process: usize| Some(PROCESSES[process].0);
        match self {
            Fault::State(device, state) => (Cause::of_state(state).unwrap(), Some(device), None),
            Fault::Reset(device) => (Cause::Reset, Some(device), None),
            Fault::Heat(device) => (Cause::Heat, Some(device), None),
            Fault::Trip(device) => (Cause::ThermalTrip, Some(device), None),
            Fault::Full(device) => (Cause::MemoryFull, Some(device), None),
            Fault::LinkDown(device) => (Cause::LinkDown, Some(device), None),
            Fault::PcieError(device) => (Cause::PcieError, Some(device), None),
            Fault::Killed(process) => (Cause::Killed, None, pid(process)),
            Fault::OutOfMemory(process) => (Cause::HostOutOfMemory, None, pid(process)),
            Fault::Growth(process) => (Cause::MemoryGrowth, Some(PROCESSES[process].1[0]), pid(process)),
            Fault::Unload => (Cause::DriverUnloaded, None, None),
        }
    }
}

/// Faults, with the second from which on each is seen.
type Script = Vec<(i64, Fault)>;

fn healthy(second: i64) -> Snapshot {
    let device = |n: u32| {
        let mut device = Device::new(DeviceId::Local(n));
        device.pci_address = Some(PciAddress(format!("0000:0{n}:00.0").into()));
        device.sample_age_seconds = Some(0.0);
        (device.asic_temp, device.asic_temp_max) = (Some(Celsius(50.0)), Some(Celsius(100.0)));
        (device.power, device.power_max) = (Some(Watts(100.0)), Some(Watts(150.0)));
        (device.heartbeat, device.thermal_trips) = (Some(10_000 + second as u32), Some(0));
        (device.memory.dram_total, device.memory.dram_used) = (Some(Bytes(100 << 30)), Some(Bytes(40 << 30)));
        device.deep = Some(Box::new(Deep { eth_link_up: vec![Some(true), Some(false)], ..Deep::default() }));
        device
    };
    let process = |(pid, devices): &(u32, &[u32])| {
        let held = |n: &u32| Held { usage: Usage::measured(10 << 30, 0, 0, 0, 0), ..Held::new(DeviceId::Local(*n)) };
        Process {
            name: Some(format!("job{pid}")),
            started_at: Some(Timestamp(i64::from(*pid))),
            devices: devices.iter().map(held).collect(),
            ..Process::new(*pid)
        }
    };
    let mut snapshot = Snapshot::empty();
    snapshot.taken_at = Timestamp(second * 1000);
    snapshot.host.driver_version = Some("2.10.0".into());
    snapshot.devices = (0..DEVICES).map(device).collect();
    snapshot.processes = PROCESSES.iter().map(process).collect();
    snapshot.kernel_log = Some(Vec::new());
    snapshot
}

fn message(second: i64, kind: KernelMessageKind, device: Option<u32>, text: String) -> KernelMessage {
    KernelMessage {
        time: Timestamp(second * 1000 - 300),
        seq: second as u64,
        kind,
        weight: Weight::Bad,
        device: device.map(DeviceId::Local),
        pci_address: device.map(|n| PciAddress(format!("0000:0{n}:00.0").into())),
        meaning: "an uncorrected PCIe error".into(),
        text,
        count: 1,
        seconds: None,
        held_by: Vec::new(),
    }
}

/// What a fault that began so many seconds ago does to a snapshot.
fn apply(fault: Fault, since: i64, snapshot: &mut Snapshot) {
    let began = snapshot.taken_at.0 / 1000 - since;
    let said =
        |snapshot: &mut Snapshot, message: KernelMessage| snapshot.kernel_log.get_or_insert_default().push(message);
    match fault {
        Fault::State(n, state) => {
            let device = &mut snapshot.devices[n as usize];
            (device.state, device.asic_temp, device.heartbeat, device.deep) = (state, None, None, None);
            (device.thermal_trips, device.sample_age_seconds) = (None, Some(since as f64 + 1.0));
        }
        Fault::Reset(n) if since < 3 => apply(Fault::State(n, State::Resetting), since, snapshot),
        Fault::Reset(n) => {
            let device = &mut snapshot.devices[n as usize];
            device.heartbeat = device.heartbeat.map(|_| since as u32);
        }
        Fault::Heat(n) => snapshot.devices[n as usize].asic_temp = Some(Celsius(97.0)),
        Fault::Trip(n) => {
            let device = &mut snapshot.devices[n as usize];
            device.thermal_trips = device.thermal_trips.map(|trips| trips + 1);
        }
        Fault::Full(n) => snapshot.devices[n as usize].memory.dram_used = Some(Bytes(97 << 30)),
        Fault::LinkDown(n) => {
            let down = |deep: Box<Deep>| Box::new(Deep { eth_link_up: vec![Some(false), Some(false)], ..*deep });
            let device = &mut snapshot.devices[n as usize];
            device.deep = device.deep.take().map(down);
        }
        Fault::PcieError(n) => {
            let text = format!("pcieport 0000:0{n}:00.0: AER: Uncorrectable error");
            said(snapshot, message(began, KernelMessageKind::PcieError, Some(n), text));
        }
        Fault::Killed(process) => snapshot.processes.retain(|one| one.pid != PROCESSES[process].0),
        Fault::OutOfMemory(process) => {
            let pid = PROCESSES[process].0;
            let text = format!("Out of memory: Killed process {pid} (job{pid}) total-vm:1kB");
            said(snapshot, message(began, KernelMessageKind::OutOfMemory, None, text));
            snapshot.processes.retain(|one| one.pid != pid);
        }
        Fault::Growth(process) => {
            let grown = Usage::measured((10 << 30) + (((since + 1).min(30) as u64) << 30), 0, 0, 0, 0);
            let one = snapshot.processes.iter_mut().find(|one| one.pid == PROCESSES[process].0);
            one.into_iter().for_each(|one| one.devices[0].usage = grown);
        }
        Fault::Unload => {
            snapshot.host.driver_version = None;
            snapshot.processes.clear();
            for device in &mut snapshot.devices {
                let Some(address) = device.pci_address.clone() else { continue };
                *device = Device::new(DeviceId::NoDriver(address.clone()));
                (device.pci_address, device.state) = (Some(address), State::NoDriver);
            }
        }
    }
}

/// The snapshots and the log of a machine to which this is done.
fn recorded(script: &Script) -> (Vec<Snapshot>, Vec<LogEntry>) {
    let mut snapshots = Vec::new();
    for second in 1..=SECONDS {
        let mut snapshot = healthy(second);
        let mut due: Vec<&(i64, Fault)> = script.iter().filter(|(at, _)| *at <= second).collect();
        // What happens after that is not seen.
        due.sort_by_key(|(at, fault)| (*fault == Fault::Unload, *at));
        due.iter().for_each(|(at, fault)| apply(*fault, second - at, &mut snapshot));
        snapshots.push(snapshot);
    }
    let mut log = Vec::new();
    for (at, fault) in script {
        let (Fault::Killed(process) | Fault::OutOfMemory(process)) = fault else { continue };
        let before = &snapshots[*at as usize - 2].processes;
        let Some(one) = before.iter().find(|one| one.pid == PROCESSES[*process].0) else { continue };
        let exit = ExitRecord { signal: Some(9), ..ExitRecord::of(one, Timestamp(at * 1000 - 200)) };
        log.push(LogEntry::Exit(Box::new(ExitRecord { devices: one.devices.clone(), ..exit })));
    }
    (snapshots, log)
}

fn observed(snapshots: &[Snapshot], log: &[LogEntry]) -> Observer {
    let mut observer = Observer::default();
    snapshots.iter().for_each(|snapshot| observer.see(snapshot.clone()));
    log.iter().for_each(|entry| observer.enter(entry.clone()));
    observer
}

fn told(incident: &Incident, observer: &Observer, snapshots: &[Snapshot]) -> Story {
    let at = snapshots.partition_point(|snapshot| snapshot.taken_at < incident.moment());
    let scene = Scene {
        before: at.checked_sub(1).map(|at| snapshots[at].clone()),
        during: snapshots.get(at).cloned(),
        after: snapshots.last().cloned(),
    };
    story::tell(incident, observer, &scene)
}

fn named(fact: &Fact) -> (Cause, Option<u32>, Option<u32>) {
    (fact.cause, fact.device.as_ref().and_then(DeviceId::index), fact.pid)
}

/// When a fault was done that explains a fact. None where nothing was done that does.
fn injected(fact: &Fact, script: &Script) -> Option<i64> {
    let same = |fault: &Fault| fault.cause() == named(fact) || (fault.cause().0, None, None) == named(fact);
    script.iter().filter(|(_, fault)| same(fault)).map(|(at, _)| *at).min()
}

/// Checks what is said of a machine against what was done to it. Returns the stories.
fn check(script: &Script) -> Vec<Story> {
    let (snapshots, log) = recorded(script);
    let observer = observed(&snapshots, &log);
    let mut stories = Vec::new();
    for incident in incidents(&observer) {
        let story = told(&incident, &observer, &snapshots);
        let mut times = Vec::new();
        for fact in &incident.facts {
            let at = injected(fact, script).unwrap_or_else(|| panic!("{script:?}: {fact:?}"));
            // A chip that is hung before a reset is so after it again.
            if !times.iter().any(|(_, known): &(i64, &Fact)| known.is_like(fact)) {
                times.push((at, fact));
            }
        }
        let first_at = times.iter().map(|(at, _)| *at).min().unwrap();
        for (at, fact) in &times {
            let is_first = story.first.contains(fact);
            // Whatever was seen with the same sample may be named, and the earliest has to be.
            assert!(is_first || *at != first_at, "{script:?}: not first: {fact:?} of {:?}", story.first);
            // What was not measured for a while may have been so since then.
            let is_open = fact.not_before.0 < first_at * 1000;
            assert!(!is_first || *at <= first_at + 1 || is_open, "{script:?}: first: {fact:?}");
        }
        let either = story.first.len() == 2 && story.headline.starts_with("either ");
        let one_of = story.first.len() > 2 && story.headline.starts_with("one of these, ");
        assert!(either || one_of || story.first.len() == 1, "{}", story.headline);
        check_lines(&story, script, &log);
        stories.push(story);
    }
    stories
}

/// No line is about what is not there, or from a source that says nothing.
fn check_lines(story: &Story, script: &Script, log: &[LogEntry]) {
    for line in &story.lines {
        let numbers = |word: &'static str| {
            let all = line.text.match_indices(word).map(move |(at, word)| &line.text[at + word.len()..]);
            let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
            all.filter_map(move |rest| digits(rest).parse::<u32>().ok()).collect::<Vec<_>>()
        };
        assert!(numbers("pid ").iter().all(|pid| PROCESSES.iter().any(|(known, _)| known == pid)), "{line:?}");
        assert!(numbers("device ").iter().all(|n| *n < DEVICES), "{line:?}");
        let has = |is_it: fn(&Fault) -> bool| script.iter().any(|(_, fault)| is_it(fault));
        let is_known = match &line.source {
            FactSource::KernelLog => has(|fault| matches!(fault, Fault::PcieError(_) | Fault::OutOfMemory(_))),
            FactSource::ExitRecord => !log.is_empty(),
            FactSource::Module => has(|fault| *fault == Fault::Unload),
            FactSource::DeepRead(_) => has(|fault| matches!(fault, Fault::LinkDown(_))),
            FactSource::Book(_) | FactSource::Events => false,
            FactSource::Telemetry(_) | FactSource::Memory(_) | FactSource::Processes => true,
        };
        assert!(is_known, "{script:?}: {line:?}");
    }
}

/// Numbers at random, the same with every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    fn fault(&mut self) -> Fault {
        let (device, process) = (self.below(4) as u32, self.below(2) as usize);
        match self.below(14) {
            0 => Fault::State(device, State::Hung),
            1 => Fault::State(device, State::Lost),
            2 => Fault::State(device, State::Silent),
            3 => Fault::State(device, State::NoTelemetry),
            4 => Fault::Reset(device),
            5 => Fault::Heat(device),
            6 => Fault::Trip(device),
            7 => Fault::Full(device),
            8 => Fault::LinkDown(device),
            9 => Fault::PcieError(device),
            10 => Fault::Killed(process),
            11 => Fault::OutOfMemory(process),
            12 => Fault::Growth(process),
            _ => Fault::Unload,
        }
    }
}

#[test]
fn of_200_random_combinations_nothing_is_named_that_was_not_done() {
    let mut dice = Dice(0x5eed);
    let (mut named, mut together) = (BTreeSet::new(), 0);
    for _ in 0..200 {
        let count = 1 + dice.below(4);
        let mut script: Script = Vec::new();
        for _ in 0..count {
            let fault = dice.fault();
            // A third of them comes together with the one before.
            let at = match script.last() {
                Some((at, _)) if dice.below(3) == 0 => *at,
                _ => 20 + dice.below(70) as i64,
            };
            // A device is in one state at a time, so of two the second is seen later than it was done.
            let state = |fault: &Fault| match fault {
                Fault::State(device, _) | Fault::Reset(device) => Some(*device),
                _ => None,
            };
            let hides = |other: &Fault| state(other).is_some() && state(other) == state(&fault);
            if !script.iter().any(|(then, other)| *other == fault || hides(other) && (at - then).abs() < 4) {
                script.push((at, fault));
            }
        }
        let stories = check(&script);
        assert!(!stories.is_empty(), "{script:?}");
        named.extend(stories.iter().flat_map(|story| &story.changes).map(|fact| fact.cause));
        together += usize::from(stories.iter().any(|story| story.first.len() > 1));
    }
    let missing: Vec<&str> = Cause::ALL.iter().filter(|one| !named.contains(one)).map(|one| one.name()).collect();
    let not_scripted = [
        "memory limit reached",
        "throttled",
        "no driver",
        "IOMMU fault",
        "firmware timeout",
        "kernel error",
        "ended by a signal",
        "process gone",
        "PCIe link degraded",
    ];
    assert_eq!(missing, not_scripted);
    assert!(together > 30, "{together}");
}

#[test]
fn two_at_the_same_time_are_both_named_whatever_they_are() {
    let single = [
        Fault::State(0, State::Hung),
        Fault::State(3, State::Lost),
        Fault::Reset(1),
        Fault::Heat(2),
        Fault::Full(1),
        Fault::LinkDown(2),
        Fault::Killed(1),
        Fault::OutOfMemory(0),
    ];
    for (n, one) in single.iter().enumerate() {
        for other in &single[n + 1..] {
            let script = vec![(50, *one), (50, *other)];
            let [story] = &check(&script)[..] else { panic!("{script:?}") };
            let causes: BTreeSet<Cause> = story.first.iter().map(|fact| fact.cause).collect();
            assert_eq!(causes, BTreeSet::from([one.cause().0, other.cause().0]), "{script:?}");
            assert!(story.headline.starts_with("either "), "{}", story.headline);
            assert!(story.headline.ends_with("; the data does not say which was first"));
        }
    }
}

#[test]
fn a_machine_to_which_nothing_is_done_has_no_incident() {
    assert_eq!(check(&Vec::new()), []);
}

#[test]
fn what_is_far_apart_or_of_others_is_another_incident() {
    let hung = |n| Fault::State(n, State::Hung);
    let count = |script: Script| check(&script).len();
    assert_eq!(count(vec![(20, hung(0)), (60, hung(1))]), 1, "one process holds both");
    assert_eq!(count(vec![(20, hung(0)), (60, hung(3))]), 2, "of different processes");
    assert_eq!(count(vec![(20, hung(0)), (20, hung(3))]), 1, "at the same time");
    assert_eq!(count(vec![(20, hung(0)), (115, hung(1))]), 2, "long after");
    assert_eq!(count(vec![(20, hung(0)), (60, Fault::Unload)]), 1, "the driver is that of all devices");
}

#[test]
fn a_consequence_is_not_a_cause() {
    let causes = |script: Script| {
        let stories = check(&script);
        stories
            .iter()
            .map(|story| story.changes.iter().map(|fact| fact.cause.name()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    assert_eq!(causes(vec![(50, Fault::Unload)]), [["driver unloaded"]]);
    assert_eq!(causes(vec![(50, Fault::OutOfMemory(0))]), [["host out of memory"]]);
    assert_eq!(causes(vec![(50, Fault::Reset(0))]), [["reset"]]);
    // The message of the kernel and the state are one matter, unless the message was there before.
    let (hung, error) = (Fault::State(0, State::Hung), Fault::PcieError(0));
    assert_eq!(causes(vec![(50, hung), (50, error)]), [["hung"]]);
    assert_eq!(causes(vec![(50, hung), (45, error)]), [["PCIe error", "hung"]]);
    assert_eq!(causes(vec![(50, Fault::Trip(0)), (52, Fault::Reset(0))]), [["thermal trip"]]);
}

#[test]
fn events_alone_say_the_same_when_snapshots_are_gone() {
    let faults = [
        Fault::State(0, State::Hung),
        Fault::State(0, State::Lost),
        Fault::State(0, State::Silent),
        Fault::State(0, State::NoTelemetry),
        Fault::Reset(0),
        Fault::Heat(0),
        Fault::Trip(0),
        Fault::Full(0),
        Fault::LinkDown(0),
        Fault::PcieError(0),
        Fault::OutOfMemory(0),
    ];
    for fault in faults {
        let script = vec![(50, fault)];
        let (snapshots, mut log) = recorded(&script);
        let (mut events, mut before) = (Events::default(), &Snapshot::empty());
        for now in &snapshots {
            let seen = |snapshot| Observation { snapshot, exits: &[] };
            events.notice(seen(before), seen(now));
            before = now;
        }
        log.extend(events.take().into_iter().map(LogEntry::Event));
        let [incident] = &incidents(&observed(&[], &log))[..] else { panic!("{fault:?}: {log:?}") };
        let found: Vec<_> = incident.facts.iter().map(named).collect();
        assert_eq!(found, [fault.cause()], "{log:?}");
        // With both, nothing is said twice.
        let [incident] = &incidents(&observed(&snapshots, &log))[..] else { panic!("{fault:?}") };
        assert_eq!(incident.facts.len(), 1, "{:?}", incident.facts);
    }
}

#[test]
fn a_process_that_was_asked_to_end_is_no_incident_by_itself() {
    let mut observer = Observer::default();
    for (pid, signal) in [(1, 15), (2, 2)] {
        let exit = ExitRecord { pid, signal: Some(signal), died_at: Timestamp(1000), ..ExitRecord::default() };
        observer.enter(LogEntry::Exit(Box::new(exit)));
    }
    assert!(incidents(&observer).iter().all(|incident| !incident.is_serious()));
    let exit = ExitRecord { pid: 3, signal: Some(11), died_at: Timestamp(1500), ..ExitRecord::default() };
    observer.enter(LogEntry::Exit(Box::new(exit)));
    assert!(incidents(&observer).iter().any(Incident::is_serious));
}

#[test]
fn a_process_that_is_gone_is_told_where_nothing_else_is_known_of_it() {
    let (snapshots, log) = recorded(&vec![(50, Fault::Killed(1))]);
    let [incident] = &incidents(&observed(&snapshots, &[]))[..] else { panic!() };
    assert!(!incident.is_serious());
    assert_eq!(
        incident.facts[0].text,
        "pid 200 (job200) no longer has device 2, where it held 10.0 GiB DRAM; how it ended is not recorded"
    );
    let [incident] = &incidents(&observed(&snapshots, &log))[..] else { panic!() };
    assert_eq!(incident.facts[0].cause, Cause::Killed, "the exit record says more");
}

#[test]
fn what_was_so_from_the_start_is_said_so() {
    let (snapshots, _) = recorded(&vec![(1, Fault::State(2, State::Hung))]);
    let observer = observed(&snapshots, &[]);
    let [incident] = &incidents(&observer)[..] else { panic!() };
    assert_eq!(incident.facts[0].text, "device 2: hung since before the first sample");
}
