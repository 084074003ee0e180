//! What a stretch of a recording has to compare: the figures that history keeps, and operations, block by block.

use super::significance::BLOCKS;
use model::figure::device::{DEVICE_FIGURES, kept_in_history};
use model::figure::{Field, Figure, Judge, MetricKind, Unit};
use model::{Device, DeviceId, Process, Snapshot, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::io;
use watch::past::Stretch;

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A figure, by its place in [`fields`], of all devices together.
    AllDevices(usize),
    Device(DeviceId, usize),
    Operation(String, Measure),
}

/// What is measured of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    LaunchesPerSecond,
    SecondsPerRun,
}

/// The figures of a device that are compared, in the order of the table.
pub fn fields() -> Vec<Field<Device>> {
    kept_in_history().collect()
}

/// Whether its peak is compared, and not its mean.
pub fn is_peak(figure: &Figure<Device>) -> bool {
    figure.judge == Judge::Capacity
}

/// Whether devices together have the sum, and not the mean.
fn adds_up(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Watts | Unit::Amperes | Unit::Joules | Unit::Bytes | Unit::BytesPerSecond | Unit::PerSecond | Unit::Count
    )
}

/// A stretch, as far as it can be compared.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Gathered {
    pub samples: usize,
    pub seconds: f64,
    /// The blocks that have a value, in their order.
    pub blocks: BTreeMap<Subject, Vec<f64>>,
    /// The highest value of each figure of a device.
    pub peaks: BTreeMap<(DeviceId, usize), f64>,
    /// What each counter of a device has counted, by the place of its figure in the table.
    pub counted: BTreeMap<(DeviceId, usize), f64>,
    /// Launches, recorded runs and their time.
    pub operations: BTreeMap<String, OperationSum>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct OperationSum {
    pub launches: u64,
    pub runs: u64,
    pub seconds: f64,
}

impl Gathered {
    pub fn of(stretch: &mut Stretch) -> io::Result<Gathered> {
        let indices = stretch.indices();
        let first = stretch.recording.snapshot(indices.start)?.taken_at;
        let last = stretch.recording.snapshot(indices.end - 1)?.taken_at;
        let mut gatherer = Gatherer::new(first, last);
        for index in indices {
            gatherer.add(&stretch.recording.snapshot(index)?);
        }
        Ok(gatherer.finish())
    }

    /// What one counter has counted on a device.
    pub fn counted(&self, device: &DeviceId, figure: &Figure<Device>) -> Option<f64> {
        let place = DEVICE_FIGURES.iter().position(|known| *known == figure)?;
        self.counted.get(&(device.clone(), place)).copied()
    }

    /// The mean of the blocks, or their peak.
    pub fn value(&self, subject: &Subject, fields: &[Field<Device>]) -> Option<f64> {
        let blocks = self.blocks.get(subject).filter(|blocks| !blocks.is_empty())?;
        let mean = blocks.iter().sum::<f64>() / blocks.len() as f64;
        match subject {
            Subject::Device(_, field) | Subject::AllDevices(field) if is_peak(fields.get(*field)?.figure) => {
                blocks.iter().copied().reduce(f64::max)
            }
            Subject::Operation(name, Measure::SecondsPerRun) => {
                let sum = self.operations.get(name)?;
                Some(sum.seconds / sum.runs as f64)
            }
            _ => Some(mean),
        }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Cell {
    sum: f64,
    count: usize,
    highest: Option<f64>,
}

/// Takes in snapshots, one after the other. What it keeps does not grow with their number.
pub struct Gatherer {
    fields: Vec<Field<Device>>,
    counters: Vec<(usize, &'static Figure<Device>)>,
    first: Timestamp,
    milliseconds: i64,
    samples: usize,
    has_sample: [bool; BLOCKS],
    cells: BTreeMap<(DeviceId, usize), [Cell; BLOCKS]>,
    last_counts: HashMap<(DeviceId, usize), f64>,
    counted: BTreeMap<(DeviceId, usize), f64>,
    last_operations: BTreeMap<(u32, Option<Timestamp>, String), OperationSum>,
    operations: BTreeMap<String, [OperationSum; BLOCKS]>,
}

impl Gatherer {
    pub fn new(first: Timestamp, last: Timestamp) -> Gatherer {
        let is_counter =
            |figure: &Figure<Device>| figure.metric.is_some_and(|metric| metric.kind == MetricKind::Counter);
        Gatherer {
            fields: fields(),
            counters: DEVICE_FIGURES.iter().copied().enumerate().filter(|(_, figure)| is_counter(figure)).collect(),
            first,
            milliseconds: last.0.saturating_sub(first.0).max(0),
            samples: 0,
            has_sample: [false; BLOCKS],
            cells: BTreeMap::new(),
            last_counts: HashMap::new(),
            counted: BTreeMap::new(),
            last_operations: BTreeMap::new(),
            operations: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, snapshot: &Snapshot) {
        let since = snapshot.taken_at.0.saturating_sub(self.first.0).clamp(0, self.milliseconds);
        let block = (since as u128 * BLOCKS as u128 / (self.milliseconds as u128 + 1)) as usize;
        for device in &snapshot.devices {
            self.add_device(device, block);
        }
        for process in &snapshot.processes {
            self.add_process(process, block);
        }
        self.samples += 1;
        self.has_sample[block] = true;
    }

    fn add_device(&mut self, device: &Device, block: usize) {
        for (place, field) in self.fields.iter().enumerate() {
            let Some(value) = field.number(device).filter(|value| value.is_finite()) else { continue };
            let cells = self.cells.entry((device.id.clone(), place)).or_insert([Cell::default(); BLOCKS]);
            let cell = &mut cells[block];
            cell.sum += value;
            cell.count += 1;
            cell.highest = Some(cell.highest.map_or(value, |highest| highest.max(value)));
        }
        for (place, figure) in &self.counters {
            let Some(value) = figure.number(device).filter(|value| value.is_finite()) else { continue };
            let key = (device.id.clone(), *place);
            let before = self.last_counts.insert(key.clone(), value).unwrap_or(value);
            // A counter that was set back began at zero.
            *self.counted.entry(key).or_default() += if value >= before { value - before } else { value };
        }
    }

    /// Counts what its operations have done since they were last seen. A process that was not there in the first snapshot began at zero.
    fn add_process(&mut self, process: &Process, block: usize) {
        for operation in &process.operations {
            let now = OperationSum {
                launches: operation.launches,
                runs: operation.runs.unwrap_or(0),
                seconds: operation.device_seconds.unwrap_or(0.0),
            };
            let key = (process.pid, process.started_at, operation.name.clone());
            let at_first = if self.samples == 0 { now } else { OperationSum::default() };
            let before = self.last_operations.insert(key, now).unwrap_or(at_first);
            let sums = self.operations.entry(operation.name.clone()).or_insert([OperationSum::default(); BLOCKS]);
            sums[block].launches += now.launches.saturating_sub(before.launches);
            sums[block].runs += now.runs.saturating_sub(before.runs);
            sums[block].seconds += (now.seconds - before.seconds).max(0.0);
        }
    }

    pub fn finish(self) -> Gathered {
        let seconds = self.milliseconds as f64 / 1000.0;
        let mut gathered = Gathered { samples: self.samples, seconds, counted: self.counted, ..Gathered::default() };
        let mut together: BTreeMap<usize, Vec<[Option<f64>; BLOCKS]>> = BTreeMap::new();
        for ((device, place), cells) in self.cells {
            let figure = self.fields[place].figure;
            let value = |cell: Cell| match is_peak(figure) {
                true => cell.highest,
                false => (cell.count > 0).then(|| cell.sum / cell.count as f64),
            };
            let values = cells.map(value);
            let peak = cells.iter().filter_map(|cell| cell.highest).reduce(f64::max);
            gathered.peaks.extend(peak.map(|peak| ((device.clone(), place), peak)));
            gathered.blocks.insert(Subject::Device(device, place), values.into_iter().flatten().collect());
            together.entry(place).or_default().push(values);
        }
        for (place, devices) in together.into_iter().filter(|(_, devices)| devices.len() > 1) {
            let share = if adds_up(self.fields[place].figure.unit) { 1.0 } else { 1.0 / devices.len() as f64 };
            // A block in which a device has no value would be lower for that alone.
            let block = |at: usize| devices.iter().map(|values| values[at]).sum::<Option<f64>>();
            let blocks = (0..BLOCKS).filter_map(|at| Some(block(at)? * share)).collect();
            gathered.blocks.insert(Subject::AllDevices(place), blocks);
        }
        let each = (seconds / BLOCKS as f64).max(f64::MIN_POSITIVE);
        for (name, sums) in self.operations {
            let total = sums.iter().fold(OperationSum::default(), |sum, block| OperationSum {
                launches: sum.launches + block.launches,
                runs: sum.runs + block.runs,
                seconds: sum.seconds + block.seconds,
            });
            let mut put = |measure, blocks| {
                gathered.blocks.insert(Subject::Operation(name.clone(), measure), blocks);
            };
            put(
                Measure::LaunchesPerSecond,
                match self.has_sample.contains(&false) {
                    false => sums.iter().map(|block| block.launches as f64 / each).collect(),
                    // What was launched in a block without a sample is counted in a later one.
                    true => vec![total.launches as f64 / seconds.max(f64::MIN_POSITIVE)],
                },
            );
            if total.runs > 0 {
                let timed = sums.iter().filter(|block| block.runs > 0);
                put(Measure::SecondsPerRun, timed.map(|block| block.seconds / block.runs as f64).collect());
            }
            gathered.operations.insert(name, total);
        }
        gathered
    }
}
