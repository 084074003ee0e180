//! Halves of steady simulated runs, and runs in which something changed.

use super::gather::{Gathered, Gatherer};
use super::row::Row;
use super::stretches;
use ::sim::{BoardKind, WorkingChip, job_load};
use model::figure::device::{AICLK, POWER};
use model::{
    Activity, Bytes, BytesPerSecond, Celsius, Device, DeviceId, Megahertz, Operation, Process, Rpm, Snapshot,
    Timestamp, UtilizationSource, Watts,
};

const DEVICES: u32 = 2;
/// Of each half, where it matters little.
const SECONDS: i64 = 600;
const RUNS: u64 = 100;
/// Until a chip that was idle is warm.
const WARM_UP: i64 = 120;

/// What differs in the second half.
#[derive(Clone, Copy)]
struct Changed {
    power: f64,
    clock: f64,
    matmul: f64,
}

const NOTHING: Changed = Changed { power: 1.0, clock: 1.0, matmul: 1.0 };

/// Which work the chips do.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    /// The job of the simulator: stretches of different load, some of them none.
    Job,
    /// One model at one load, with noise that remembers the last seconds.
    Model,
}

/// Noise that remembers about so many values, with a variance of one.
struct Noise {
    state: u64,
    value: f64,
    kept: f64,
}

impl Noise {
    fn new(seed: u64, memory: f64) -> Noise {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut noise = Noise { state, value: 0.0, kept: (-1.0 / memory).exp() };
        for _ in 0..100 {
            noise.next();
        }
        noise
    }

    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    }

    fn next(&mut self) -> f64 {
        let normal: f64 = (0..12).map(|_| self.uniform()).sum();
        self.value = self.kept * self.value + (1.0 - self.kept * self.kept).sqrt() * normal;
        self.value
    }
}

struct SimulatedRun {
    work: Work,
    seed: u64,
    chips: Vec<(WorkingChip, Noise, [u32; 12])>,
    matmul_noise: Noise,
    matmul: Operation,
}

impl SimulatedRun {
    fn new(work: Work, seed: u64) -> SimulatedRun {
        let chip = |index: u32| {
            let noise = Noise::new(seed * 31 + u64::from(index), 50.0);
            (WorkingChip::new(BoardKind::P150a, index, seed), noise, [0; 12])
        };
        let matmul = Operation {
            name: "MatmulDeviceOperation".into(),
            runs: Some(0),
            device_seconds: Some(0.0),
            ..Operation::default()
        };
        SimulatedRun {
            work,
            seed,
            chips: (0..DEVICES).map(chip).collect(),
            matmul_noise: Noise::new(seed * 31 + 17, 5.0),
            matmul,
        }
    }

    /// The machine a second later.
    fn second(&mut self, time: i64, changed: Changed) -> Snapshot {
        let (work, seed) = (self.work, self.seed);
        let mut snapshot = Snapshot { taken_at: Timestamp(time * 1000), ..Snapshot::empty() };
        let mut busy = 0.0;
        for (index, (chip, noise, counters)) in self.chips.iter_mut().enumerate() {
            let mut loads = 0.0;
            let chip = chip.second(|tick| {
                let load = match work {
                    Work::Job => job_load(seed, index as u64, tick),
                    Work::Model => (0.7 + 0.04 * noise.next()).clamp(0.0, 1.0),
                };
                loads += load / 10.0;
                load
            });
            busy += loads;
            let mut device = Device::new(DeviceId::Local(index as u32));
            let hwmon = &chip.hwmon[0];
            device.power = hwmon.power.map(|power| Watts(f64::from(power) * 1e-6 * changed.power));
            device.asic_temp = hwmon.temp.map(|temp| Celsius(f64::from(temp) * 1e-3));
            device.fan = hwmon.fan.map(Rpm);
            device.aiclk = chip.aiclk.map(|clock| Megahertz((f64::from(clock) * changed.clock) as u32));
            let now = chip.counters.unwrap();
            let since = |at: usize| f64::from(now[at].wrapping_sub(counters[at])) * 32.0;
            device.pcie.host_to_device = Some(BytesPerSecond(since(4)));
            device.pcie.device_to_host = Some(BytesPerSecond(since(0)));
            *counters = now;
            device.activity = Activity {
                programs_per_second: Some(loads * 900.0),
                ..Activity::measured(loads * 100.0, UtilizationSource::Profiler)
            };
            // What is allocated goes up and down with each batch.
            device.memory.dram_used = Some(Bytes((8 << 30) + (time as u64 * 7 % 23) * (64 << 20)));
            device.memory.l1_used = Some(Bytes((loads * 1e8) as u64));
            snapshot.devices.push(device);
        }
        let runs = (busy * 450.0) as u64;
        let each = 1e-3 * changed.matmul * (1.0 + 0.05 * self.matmul_noise.next());
        self.matmul.launches += runs;
        self.matmul.runs = self.matmul.runs.map(|before| before + runs);
        self.matmul.device_seconds = self.matmul.device_seconds.map(|before| before + runs as f64 * each);
        let operations = vec![self.matmul.clone()];
        snapshot.processes.push(Process { operations, ..Process::new(4711) });
        snapshot
    }

    fn half(&mut self, began: i64, seconds: i64, changed: Changed) -> Gathered {
        let end = began + seconds - 1;
        let mut gatherer = Gatherer::new(Timestamp(began * 1000), Timestamp(end * 1000));
        (began..=end).for_each(|time| gatherer.add(&self.second(time, changed)));
        gatherer.finish()
    }
}

/// The rows of a run, of which something changed in its second half.
fn rows(work: Work, seed: u64, seconds: i64, changed: Changed) -> Vec<Row> {
    let mut run = SimulatedRun::new(work, seed);
    (0..WARM_UP).for_each(|time| drop(run.second(time, NOTHING)));
    let a = run.half(WARM_UP, seconds, NOTHING);
    let b = run.half(WARM_UP + seconds, seconds, changed);
    stretches::rows(&a, &b)
}

/// Whether a row is the one that changed.
type IsIt<'a> = &'a dyn Fn(&Row) -> bool;

fn significant(rows: &[Row]) -> Vec<&str> {
    rows.iter().filter(|row| row.significant).map(|row| row.title.as_str()).collect()
}

#[test]
fn of_two_halves_of_a_steady_run_nothing_is_significant_in_95_of_100() {
    for (work, seconds) in [(Work::Job, SECONDS), (Work::Model, SECONDS), (Work::Job, 60), (Work::Model, 60)] {
        let all: Vec<Vec<Row>> = (1..=RUNS).map(|seed| rows(work, seed, seconds, NOTHING)).collect();
        assert!(all.iter().all(|rows| rows.len() >= 20), "figures are compared: {}", all[0].len());
        let found: Vec<Vec<&str>> = all.iter().map(|rows| significant(rows)).filter(|rows| !rows.is_empty()).collect();
        assert!(found.len() <= 5, "{} of {RUNS}: {found:?}", found.len());
    }
}

#[test]
fn what_changed_is_found_in_95_of_100() {
    let power = |row: &Row| row.figure.as_deref() == Some(POWER.name) && (row.change.unwrap() - 0.05).abs() < 0.03;
    let clock = |row: &Row| row.figure.as_deref() == Some(AICLK.name) && (row.change.unwrap() + 0.1).abs() < 0.01;
    let matmul = |row: &Row| row.title == "MatmulDeviceOperation time per run" && row.change.unwrap() > 0.07;
    let changes: [(Changed, IsIt); 3] = [
        (Changed { power: 1.05, ..NOTHING }, &power),
        (Changed { clock: 0.9, ..NOTHING }, &clock),
        (Changed { matmul: 1.1, ..NOTHING }, &matmul),
    ];
    for (at, (changed, is_it)) in changes.into_iter().enumerate() {
        let found =
            |seed: &u64| rows(Work::Model, *seed, SECONDS, changed).iter().any(|row| row.significant && is_it(row));
        let found = (1..=RUNS).filter(found).count();
        assert!(found >= 95, "change {at}: {found} of {RUNS}");
    }
}
