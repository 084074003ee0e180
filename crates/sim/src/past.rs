//! The minutes before a machine was started: what its devices did then, kept every second.
//!
//! A machine is warm when it is first seen, since its devices have been at work for [`PAST`]. No process was there to be measured, so a
//! moment of the past is the first snapshot with the values that the devices and jobs had then.

use crate::device::{SimDevice, SimState};
use crate::plan::{self, PlannedJob};
use crate::region::Amounts;
use crate::tree::{Hwmon, NO_FAN};
use crate::wave::TICKS_PER_SECOND;
use crate::worker::{LOCAL, REMOTE, capacity, wave_of, when_allocated};
use model::{
    Amperes, Celsius, Counters, Device, DeviceId, Megahertz, Process, Rpm, Snapshot, State, Timestamp, Usage, Volts,
    Watts, traffic,
};
use std::time::Duration;

/// For so long a machine has been at work before it is started.
pub(crate) const PAST: Duration = Duration::from_secs(300);
/// The same in ticks: the clock is there when the machine starts.
pub(crate) const PAST_TICKS: u64 = PAST.as_secs() * TICKS_PER_SECOND;

/// A second of the past.
#[derive(Debug, Clone)]
pub(crate) struct PastMoment {
    ago: Duration,
    /// The devices in the order of their numbers.
    devices: Vec<PastDevice>,
}

/// A device in a second of the past.
#[derive(Debug, Clone)]
struct PastDevice {
    state: State,
    mhz: Option<u32>,
    heartbeat: Option<u32>,
    hwmon: Option<Hwmon>,
    counters: Option<Counters>,
    /// What its job did: on the chip with PCIe, and on the one behind it. Absent where it has none.
    work: Option<[PastWork; 2]>,
}

#[derive(Debug, Clone, Copy)]
struct PastWork {
    load: f64,
    amounts: Option<Amounts>,
}

impl PastMoment {
    /// The devices as they are at a tick before the start, with the jobs that they have.
    pub fn of(devices: &[SimDevice], jobs: &[PlannedJob], seed: u64, ticks: u64) -> PastMoment {
        let past = |(index, device): (usize, &SimDevice)| {
            let work = |job: &PlannedJob| {
                [LOCAL, REMOTE].map(|place| {
                    let chip = wave_of(index, place, devices.len());
                    let allocated = when_allocated(device.worked_until);
                    let amounts = capacity(&device.chip).map(|(capacity, banks)| {
                        plan::memory(job.work, capacity, banks, allocated, job.load(seed, chip, allocated))
                    });
                    PastWork { load: job.load(seed, chip, ticks), amounts }
                })
            };
            PastDevice::of(device, jobs.iter().find(|job| job.devices.contains(&index)).map(work))
        };
        let ago = Duration::from_millis(PAST_TICKS.saturating_sub(ticks) * 1000 / TICKS_PER_SECOND);
        PastMoment { ago, devices: devices.iter().enumerate().map(past).collect() }
    }

    /// The machine as it was then, by a snapshot of its start. `before` is the moment before this one: rates are between two.
    fn snapshot(&self, start: &Snapshot, before: Option<&PastMoment>) -> Snapshot {
        let taken_at = Timestamp(start.taken_at.0 - self.ago.as_millis() as i64);
        let mut snapshot =
            Snapshot { taken_at, faults: Vec::new(), alerts: Vec::new(), kernel_log: None, ..start.clone() };
        for process in &mut snapshot.processes {
            self.show_process(process);
        }
        for device in &mut snapshot.devices {
            let Some((past, place)) = self.device(&device.id) else { continue };
            let earlier = before.and_then(|before| before.device(&device.id)).map(|(device, _)| device);
            past.show(device, place, earlier.filter(|_| place == LOCAL));
            let all = snapshot.processes.iter().flat_map(|process| &process.devices);
            let held = all.filter(|held| held.id == device.id);
            if let Some(usage) = held.map(|held| held.usage).reduce(Usage::plus) {
                device.memory.count(usage);
            }
        }
        snapshot
    }

    fn show_process(&self, process: &mut Process) {
        for held in &mut process.devices {
            let Some((past, place)) = self.device(&held.id) else { continue };
            let Some(work) = past.work.map(|work| work[place]) else { continue };
            if let Some(Amounts { dram, l1, l1_small, trace, cb }) = work.amounts {
                held.usage = Usage::measured(dram, l1, l1_small, trace, cb);
            }
            let is_ok = past.state == State::Ok;
            held.activity.utilization_percent =
                held.activity.utilization_percent.and(is_ok.then_some(work.load * 100.0));
            // What is above is all that is known of then.
            held.exact = None;
        }
        let is_hung =
            process.devices.iter().any(|held| self.device(&held.id).is_some_and(|(past, _)| past.state == State::Hung));
        for operation in &mut process.operations {
            (operation.in_flight, operation.age_seconds) = (false, Some(0.0));
        }
        if let Some(operation) = process.operations.first_mut() {
            operation.in_flight = is_hung;
        }
        process.idle_seconds = None;
    }

    /// A device by its name, and which of its chips that is.
    fn device(&self, id: &DeviceId) -> Option<(&PastDevice, usize)> {
        let place = if matches!(id, DeviceId::Remote(_)) { REMOTE } else { LOCAL };
        Some((self.devices.get(id.gateway()? as usize)?, place))
    }
}

/// All moments of the past as snapshots, the earliest first, by the first snapshot of the machine.
pub(crate) fn snapshots(past: &[PastMoment], start: &Snapshot) -> Vec<Snapshot> {
    let before = std::iter::once(None).chain(past.iter().map(Some));
    past.iter().zip(before).map(|(moment, before)| moment.snapshot(start, before)).collect()
}

impl PastDevice {
    fn of(device: &SimDevice, work: Option<[PastWork; 2]>) -> PastDevice {
        let chip = &device.chip;
        let state = match device.state {
            SimState::Answering => State::Ok,
            SimState::Hung => State::Hung,
            SimState::Resetting(_) => State::Resetting,
            SimState::Lost => State::Lost,
        };
        let counters = chip.counters.map(|all| Counters {
            host_to_device: [all[4], all[5], all[6], all[7], all[8], all[9]],
            device_to_host: [all[0], all[1], all[2], all[3], all[10], all[11]],
            heartbeat: chip.heartbeat,
            ..Counters::default()
        });
        let (mhz, heartbeat, hwmon) = (chip.aiclk, chip.heartbeat, chip.hwmon.first().cloned());
        PastDevice { state, mhz, heartbeat, hwmon, counters, work }
    }

    /// Puts the values of then into a device as it is at the start.
    fn show(&self, device: &mut Device, place: usize, before: Option<&PastDevice>) {
        let load = self.work.map(|work| work[place].load);
        let answers = self.state == State::Ok;
        let is_measured = device.activity.utilization_percent.is_some();
        device.activity.utilization_percent = load.filter(|_| is_measured && answers).map(|load| load * 100.0);
        if place == REMOTE {
            return;
        }
        (device.state, device.sample_age_seconds) = (self.state, Some(0.0));
        let hwmon = self.hwmon.as_ref().filter(|_| answers);
        let thousandths = |field: fn(&Hwmon) -> Option<u32>| hwmon.and_then(field).map(|value| f64::from(value) / 1e3);
        device.asic_temp = thousandths(|hwmon| hwmon.temp).map(Celsius);
        device.power = thousandths(|hwmon| hwmon.power).map(|milliwatts| Watts(milliwatts / 1e3));
        device.vcore = thousandths(|hwmon| hwmon.vcore).map(Volts);
        device.current = thousandths(|hwmon| hwmon.current).map(Amperes);
        device.fan = hwmon.and_then(|hwmon| hwmon.fan).filter(|fan| *fan != NO_FAN).map(Rpm);
        device.aiclk = self.mhz.filter(|_| answers).map(Megahertz);
        device.heartbeat = self.heartbeat.filter(|_| answers);
        let rates = before.filter(|before| before.state == State::Ok && answers);
        let rates = rates.and_then(|before| before.counters.as_ref()).zip(self.counters.as_ref()).zip(device.arch);
        let rates =
            rates.map(|((before, now), arch)| traffic(before, now, 1.0, arch, &device.pcie)).unwrap_or_default();
        (device.pcie.host_to_device, device.pcie.device_to_host) = (rates.host_to_device, rates.device_to_host);
    }
}
