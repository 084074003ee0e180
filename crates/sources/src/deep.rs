//! Deep reads: which device's telemetry table may be read when, and what was read last.
//!
//! To read the table, the device must be opened, which other processes can notice: its power-down after the last close is disturbed,
//! and a process that wants it alone must wait. So a device is read only while another process has it open, or, where that was asked
//! for, when nobody has had it open for longer than the driver takes to power it down. The reader process checks that once more.
//! Nothing here waits for a device: a thread of its own asks the reader.

use crate::dir::Root;
use crate::node_opens::NodeOpens;
use deep::{RawTable, Reader, Reading, Refused, Request, decode, is_static};
use model::{Deep, DeepCounts, DeepUnavailable, Device, DeviceId, Fault, PciAddress, Snapshot, State, throttle};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// From one read of a device to the next, at least.
const EVERY: Duration = Duration::from_secs(5);
/// So long nobody must have had a device open. The driver powers it down five seconds after the last close.
const FREE_FOR: Duration = Duration::from_secs(6);
/// How long the reader has for one device.
const DEADLINE: Duration = Duration::from_secs(2);
/// After failures, the pause before the next read doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(160);
/// What was read is shown for so long when it cannot be read again; after that, only what never changes.
const SHOWN_FOR: Duration = Duration::from_secs(15);

/// How to read deeply.
#[derive(Debug, Clone)]
pub struct DeepOptions {
    /// The program that is started as the reader: this one.
    pub program: PathBuf,
    /// Whether devices that nobody has open are read, too.
    pub idle: bool,
}

/// Asks for the table of one device. Runs in a thread of its own.
type Ask = Box<dyn FnMut(&Request) -> Result<Reading, Refused> + Send>;

/// The deep reads of a machine.
pub struct DeepReads {
    idle: bool,
    /// Who opens a device for a moment. Only where devices that nobody has open are read.
    opens: Option<NodeOpens>,
    /// The driver's lists of who has a device open.
    lists: PathBuf,
    /// Devices that are to be read; the thread ends when this does.
    requests: Sender<(PciAddress, Request)>,
    answers: Receiver<(PciAddress, Result<Reading, Refused>)>,
    devices: BTreeMap<PciAddress, DeviceReads>,
    counts: DeepCounts,
}

/// What is known of the reads of one device.
#[derive(Default)]
struct DeviceReads {
    /// The last table, and when it was read.
    last: Option<(Instant, RawTable)>,
    /// Why the last try gave none, and the words for a fault.
    refused: Option<(DeepUnavailable, String)>,
    /// Why it must not be opened now.
    obstacle: Option<DeepUnavailable>,
    /// Since when nobody is seen to have it open.
    free_since: Option<Instant>,
    is_asked: bool,
    /// Not to be read before.
    next: Option<Instant>,
    failures: u32,
}

impl DeepReads {
    /// Begins. The reader is started when there is a device to read.
    pub fn start(root: &Root, options: DeepOptions) -> std::io::Result<DeepReads> {
        let mut reader = Reader::new(options.program, root.dev.join("tenstorrent"));
        let ask = move |request: &Request| reader.read(request, DEADLINE);
        let mut reads = DeepReads::with(root.proc_driver.join("tenstorrent"), options.idle, Box::new(ask))?;
        reads.opens = options.idle.then(|| NodeOpens::watch(&root.dev.join("tenstorrent")));
        Ok(reads)
    }

    fn with(lists: PathBuf, idle: bool, mut ask: Ask) -> std::io::Result<DeepReads> {
        let (requests, asked) = channel::<(PciAddress, Request)>();
        let (answer, answers) = channel();
        let run = move || {
            for (address, request) in asked {
                let result = ask(&request);
                if answer.send((address, result)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("ttmon-deep".into()).spawn(run)?;
        let (devices, counts) = (BTreeMap::new(), DeepCounts::default());
        Ok(DeepReads { idle, opens: None, lists, requests, answers, devices, counts })
    }

    /// Asks for what is to be read again, going by a snapshot that was taken just now.
    pub fn ask(&mut self, snapshot: &Snapshot, now: Instant) {
        self.take_answers(now);
        let held = held_devices(snapshot);
        // Also by the reader itself: then the next read of an idle device comes a second later.
        let touched = self.opens.as_mut().map(NodeOpens::take).unwrap_or_default();
        let addresses: BTreeSet<&PciAddress> = snapshot.devices.iter().filter_map(|d| d.pci_address.as_ref()).collect();
        self.devices.retain(|address, _| addresses.contains(address));
        // What the service has read need not be read again.
        for device in snapshot.devices.iter().filter(|device| device.deep.is_none()) {
            let (Some(address), Some(number), Some(arch)) = (&device.pci_address, device.id.index(), device.arch)
            else {
                continue;
            };
            let reads = self.devices.entry(address.clone()).or_default();
            if touched.contains(&number) {
                reads.free_since = None;
            }
            reads.observe(device, held.contains(&device.id), self.idle, now);
            if reads.is_due(now) {
                // Checked once more right before and after opening, where the driver has a list.
                let list = self.lists.join(number.to_string()).join("pids");
                let pids = reads.free_since.is_none().then_some(list).filter(|list| list.exists());
                let request = Request { number, arch, pids };
                reads.is_asked = self.requests.send((address.clone(), request)).is_ok();
            }
        }
    }

    /// Adds what is known.
    pub fn add_to(&mut self, snapshot: &mut Snapshot, now: Instant) {
        self.take_answers(now);
        for device in snapshot.devices.iter_mut().filter(|device| device.deep.is_none()) {
            let reads = device.pci_address.as_ref().and_then(|address| self.devices.get(address));
            let deep = match (&device.id, reads) {
                (DeviceId::Local(n), Some(reads)) => {
                    let fault = reads.fault().map(|reason| Fault::new(format!("/dev/tenstorrent/{n}"), reason));
                    snapshot.faults.extend(fault);
                    reads.known(now)
                }
                (DeviceId::Remote(_), _) => unavailable(DeepUnavailable::Remote),
                _ => unavailable(DeepUnavailable::NotReady),
            };
            device.deep = Some(Box::new(deep));
            throttle::explain(device);
        }
        snapshot.host.deep.get_or_insert_with(|| Box::new(self.counts));
    }

    fn take_answers(&mut self, now: Instant) {
        while let Ok(answer) = self.answers.try_recv() {
            self.take(answer, now);
        }
    }

    /// Waits for what was asked for, until then at the most.
    pub fn wait(&mut self, until: Instant) {
        while self.devices.values().any(|reads| reads.is_asked) {
            match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(answer) => self.take(answer, Instant::now()),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Whether a device will be read once nobody has had it open for long enough.
    pub fn watches_holders(&self, now: Instant) -> bool {
        self.idle && self.devices.values().any(|reads| reads.is_just_closed(now))
    }

    fn take(&mut self, (address, result): (PciAddress, Result<Reading, Refused>), now: Instant) {
        let Some(reads) = self.devices.get_mut(&address) else { return };
        reads.is_asked = false;
        match result {
            Ok(reading) => {
                self.counts.opens += 1;
                self.counts.registers += u64::from(reading.reads);
                self.counts.seconds += reading.took.as_secs_f64();
                reads.last = Some((now, reading.table));
                // What did not fit into the first read of a large table comes with the second.
                let pause = if reading.pending > 0 { Duration::ZERO } else { EVERY };
                (reads.refused, reads.failures, reads.next) = (None, 0, Some(now + pause));
            }
            Err(refused) => {
                self.counts.opens += u64::from(refused.opened);
                self.counts.refused += 1;
                reads.failures += 1;
                reads.next = Some(now + (EVERY * 2u32.saturating_pow(reads.failures - 1).min(32)).min(LONGEST_PAUSE));
                reads.refused = Some((refused.why, refused.detail));
            }
        }
    }
}

impl DeviceReads {
    /// Notes whether somebody has the device open, and whether it may be opened now.
    fn observe(&mut self, device: &Device, is_held: bool, idle: bool, now: Instant) {
        self.free_since = if is_held { None } else { self.free_since.or(Some(now)) };
        self.obstacle = match self.free_since {
            _ if device.state != State::Ok => Some(DeepUnavailable::NotReady),
            Some(_) if !idle => Some(DeepUnavailable::NotHeld),
            Some(_) if self.is_just_closed(now) => Some(DeepUnavailable::JustClosed),
            _ => None,
        };
    }

    fn is_just_closed(&self, now: Instant) -> bool {
        self.free_since.is_some_and(|since| now.saturating_duration_since(since) < FREE_FOR)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.obstacle.is_none() && !self.is_asked && self.next.is_none_or(|next| next <= now)
    }

    /// What went wrong with the last try, where it was to succeed.
    fn fault(&self) -> Option<&str> {
        let (_, detail) = self.refused.as_ref().filter(|(_, detail)| self.obstacle.is_none() && !detail.is_empty())?;
        Some(detail)
    }

    /// The figures of the last table. When it is old, only those that never change.
    fn known(&self, now: Instant) -> Deep {
        let why = self.obstacle.or(self.refused.as_ref().map(|(why, _)| *why));
        let Some((read, table)) = &self.last else { return Deep { unavailable: why, ..Deep::default() } };
        let age = now.saturating_duration_since(*read);
        let age_seconds = Some(age.as_secs_f64());
        if age <= SHOWN_FOR {
            return Deep { age_seconds, ..decode(table) };
        }
        let entries = table.entries.iter().filter(|entry| is_static(entry.tag)).copied().collect();
        let fixed = RawTable { arch: table.arch, version: table.version, entries };
        Deep { age_seconds, unavailable: why, ..decode(&fixed) }
    }
}

fn unavailable(why: DeepUnavailable) -> Deep {
    Deep { unavailable: Some(why), ..Deep::default() }
}

/// The devices that a process has open.
fn held_devices(snapshot: &Snapshot) -> BTreeSet<DeviceId> {
    // What a process reports of a device that it does not hold is unverified.
    let held = snapshot.processes.iter().flat_map(|process| &process.devices).filter(|held| held.unverified.is_none());
    let foreign = snapshot.devices.iter().filter(|device| device.foreign_holders > 0).map(|device| &device.id);
    held.map(|held| &held.id).chain(foreign).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Arch, Held, Process, TelemetryTag};
    use std::sync::mpsc::{Sender, channel};

    const SECOND: Duration = Duration::from_secs(1);

    /// Deep reads whose reader is the test: each request comes out here, and what the function says is the answer.
    fn deep_reads(
        idle: bool,
        answer: impl Fn(&Request) -> Result<Reading, Refused> + Send + 'static,
    ) -> (DeepReads, Receiver<u32>) {
        let (asked, requests): (Sender<u32>, _) = channel();
        let ask = move |request: &Request| {
            let _ = asked.send(request.number);
            answer(request)
        };
        (DeepReads::with("/nowhere".into(), idle, Box::new(ask)).unwrap(), requests)
    }

    fn reading(request: &Request) -> Result<Reading, Refused> {
        let entries = [(28, 0x1307_0000), (51, 96)].map(|(tag, value)| TelemetryTag { tag, value }).to_vec();
        let table = RawTable { arch: request.arch, version: 0x100, entries };
        Ok(Reading { table, took: Duration::from_millis(2), reads: 140, pending: 0, opens: 1, filtered: true })
    }

    fn refused(why: DeepUnavailable) -> Result<Reading, Refused> {
        Err(Refused { why, detail: "the reason".into(), opened: false })
    }

    fn machine(is_held: bool) -> Snapshot {
        let id = DeviceId::Local(0);
        let device = Device {
            pci_address: Some(PciAddress("0000:01:00.0".into())),
            arch: Some(Arch::Blackhole),
            ..Device::new(id.clone())
        };
        let holder = is_held.then(|| Process { devices: vec![Held::new(id)], ..Process::new(7) });
        Snapshot { devices: vec![device], processes: holder.into_iter().collect(), ..Snapshot::empty() }
    }

    /// What a sample at that moment has, when all that was asked for was answered.
    fn sample(deep: &mut DeepReads, mut snapshot: Snapshot, now: Instant) -> Snapshot {
        deep.ask(&snapshot, now);
        while deep.devices.values().any(|reads| reads.is_asked) {
            let answer = deep.answers.recv().unwrap();
            deep.take(answer, now);
        }
        deep.add_to(&mut snapshot, now);
        snapshot
    }

    fn unavailable_in(snapshot: &Snapshot) -> Option<DeepUnavailable> {
        snapshot.devices[0].deep.as_ref().unwrap().unavailable
    }

    #[test]
    fn a_device_that_a_process_has_open_is_read_every_five_seconds() {
        let (mut deep, asked) = deep_reads(false, reading);
        let began = Instant::now();
        for second in 0..=10 {
            let snapshot = sample(&mut deep, machine(true), began + second * SECOND);
            assert_eq!(unavailable_in(&snapshot), None);
        }
        assert_eq!(asked.try_iter().count(), 3, "at 0, 5 and 10 s");
        assert_eq!((deep.counts.opens, deep.counts.registers, deep.counts.refused), (3, 420, 0));
    }

    #[test]
    fn a_device_that_nobody_has_open_is_not_opened() {
        let (mut deep, asked) = deep_reads(false, reading);
        let began = Instant::now();
        for second in 0..60 {
            let snapshot = sample(&mut deep, machine(false), began + second * SECOND);
            assert_eq!(unavailable_in(&snapshot), Some(DeepUnavailable::NotHeld));
        }
        assert_eq!(asked.try_iter().count(), 0);
    }

    #[test]
    fn with_idle_it_is_opened_when_nobody_had_it_open_for_six_seconds() {
        let (mut deep, asked) = deep_reads(true, reading);
        let began = Instant::now();
        sample(&mut deep, machine(true), began);
        assert_eq!(asked.try_iter().count(), 1);
        for (second, why) in
            [(5, Some(DeepUnavailable::JustClosed)), (10, Some(DeepUnavailable::JustClosed)), (11, None)]
        {
            let snapshot = sample(&mut deep, machine(false), began + second * SECOND);
            assert_eq!(asked.try_iter().count(), usize::from(why.is_none()), "at {second} s");
            assert_eq!(deep.watches_holders(began + second * SECOND), why.is_some());
            assert!(snapshot.devices[0].deep.as_ref().unwrap().gddr_temp.is_some());
        }
        // A holder that comes and goes begins the six seconds anew.
        sample(&mut deep, machine(true), began + 20 * SECOND);
        sample(&mut deep, machine(false), began + 22 * SECOND);
        asked.try_iter().count();
        sample(&mut deep, machine(false), began + 27 * SECOND);
        assert_eq!(asked.try_iter().count(), 0);
    }

    #[test]
    fn a_device_that_is_not_ready_is_left_alone() {
        let (mut deep, asked) = deep_reads(true, reading);
        for state in State::ALL.into_iter().filter(|state| *state != State::Ok) {
            let mut snapshot = machine(true);
            snapshot.devices[0].state = state;
            let snapshot = sample(&mut deep, snapshot, Instant::now());
            assert_eq!(unavailable_in(&snapshot), Some(DeepUnavailable::NotReady), "{state:?}");
        }
        assert_eq!(asked.try_iter().count(), 0);
    }

    #[test]
    fn what_a_process_only_claims_to_hold_is_not_held() {
        let (mut deep, asked) = deep_reads(false, reading);
        let mut snapshot = machine(true);
        snapshot.processes[0].devices[0].unverified = Some(Default::default());
        sample(&mut deep, snapshot, Instant::now());
        assert_eq!(asked.try_iter().count(), 0);
    }

    #[test]
    fn pauses_grow_while_reads_fail_and_the_reason_is_a_fault() {
        let (mut deep, asked) = deep_reads(false, |_| refused(DeepUnavailable::NoTable));
        let began = Instant::now();
        let mut tried = Vec::new();
        for second in 0..400 {
            let snapshot = sample(&mut deep, machine(true), began + second * SECOND);
            assert_eq!(unavailable_in(&snapshot), Some(DeepUnavailable::NoTable));
            assert_eq!(snapshot.faults, [Fault::new("/dev/tenstorrent/0", "the reason")]);
            if asked.try_iter().count() > 0 {
                tried.push(second);
            }
        }
        assert_eq!(tried, [0, 5, 15, 35, 75, 155, 315]);
    }

    #[test]
    fn after_fifteen_seconds_only_what_never_changes_is_left() {
        let (mut deep, _asked) = deep_reads(false, reading);
        let began = Instant::now();
        sample(&mut deep, machine(true), began);
        let at = |deep: &mut DeepReads, second| {
            sample(deep, machine(false), began + second * SECOND).devices[0].deep.clone()
        };
        assert!(at(&mut deep, 15).unwrap().gddr_temp.is_some());
        let old = at(&mut deep, 16).unwrap();
        assert_eq!((old.gddr_temp, old.unavailable), (None, Some(DeepUnavailable::NotHeld)));
        assert_eq!(old.tags.iter().map(|entry| entry.tag).collect::<Vec<_>>(), [28]);
    }

    #[test]
    fn what_the_service_has_read_is_not_read_again() {
        let (mut deep, asked) = deep_reads(false, reading);
        let mut snapshot = machine(true);
        snapshot.devices[0].deep = Some(Box::new(Deep { asic_location: Some(3), ..Deep::default() }));
        let snapshot = sample(&mut deep, snapshot, Instant::now());
        assert_eq!(asked.try_iter().count(), 0);
        assert_eq!(snapshot.devices[0].deep.as_ref().unwrap().asic_location, Some(3));
    }

    #[test]
    fn a_chip_behind_another_one_says_why_it_is_not_read() {
        let (mut deep, asked) = deep_reads(true, reading);
        let mut snapshot = machine(true);
        (snapshot.devices[0].id, snapshot.devices[0].state) = (DeviceId::Remote(0), State::Remote);
        let snapshot = sample(&mut deep, snapshot, Instant::now());
        assert_eq!(unavailable_in(&snapshot), Some(DeepUnavailable::Remote));
        assert_eq!(asked.try_iter().count(), 0);
    }
}
