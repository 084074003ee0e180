//! Which tracks a timeline has, and what is on them: a group per device with its counters, a group per process with its queues, and one for
//! what happened.
//!
//! A counter is written when it changes, and once more at the end: viewers draw the last value on. Where a value is missing, nothing is
//! written, and an instant on the device's track says what is no longer reported; the next value ends the gap.

use super::lanes::Lanes;
use super::results::{ResultSlice, ResultTracks};
use super::trace::{Category, Clocks, Detail, Drawn, Number, TraceWriter, TrackId, nanoseconds};
use super::tracks::{Counter, DeviceTracks, ProcessTracks, QueueTracks, queue_name, take, tracks_of};
use super::{ProcessKey, Slice};
use model::figure::device::DEVICE_FIGURES;
use model::figure::process::{HELD_DRAM_USED, HELD_L1_USED, HELD_UTILIZATION};
use model::figure::{Field, Figure, Freshness, Section, Unit};
use model::{Device, DeviceId, Event, ExitRecord, Held, LogEntry, OperationTotals, Process, Snapshot};
use show::command::{display_name, name_of};
use std::collections::HashMap;
use std::io;

/// Draws what happens on a trace of some format.
pub struct Drawing<W> {
    writer: W,
    clocks: Clocks,
    next: TrackId,
    fields: Vec<Field<Device>>,
    machine: Option<TrackId>,
    devices: HashMap<DeviceId, DeviceTracks>,
    processes: HashMap<u32, Vec<ProcessTracks>>,
    results: ResultTracks,
    flows: u64,
    /// The latest sample.
    sampled: u64,
}

/// What is drawn of a process on a device.
static OF_HELD: [&Figure<Held>; 3] = [&HELD_DRAM_USED, &HELD_L1_USED, &HELD_UTILIZATION];
/// The operations of a stretch that are listed with it.
const LISTED: usize = 16;

/// The figures of a device that are drawn: what history keeps, its clocks, and its memory by kind.
fn drawn() -> Vec<Field<Device>> {
    let is_limit = |figure: &Figure<Device>| DEVICE_FIGURES.iter().any(|other| other.limit == Some(figure));
    let is_drawn = |figure: &&&'static Figure<Device>| {
        let moves = figure.freshness != Freshness::Fixed && !is_limit(figure);
        let by_section = matches!(figure.section, Section::Clock | Section::Memory) && figure.unit != Unit::Count;
        figure.unit.is_number() && (figure.history || moves && by_section)
    };
    DEVICE_FIGURES.iter().filter(is_drawn).flat_map(|figure| figure.fields()).collect()
}

impl<W: TraceWriter> Drawing<W> {
    pub fn new(writer: W, clocks: Clocks) -> Drawing<W> {
        Drawing {
            writer,
            clocks,
            next: 1,
            fields: drawn(),
            machine: None,
            devices: HashMap::new(),
            processes: HashMap::new(),
            results: ResultTracks::default(),
            flows: 0,
            sampled: 0,
        }
    }

    pub fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let time = nanoseconds(snapshot.taken_at).max(self.clocks.began);
        self.sampled = time;
        for device in &snapshot.devices {
            self.device(device, time)?;
        }
        let lost: Vec<DeviceId> =
            self.devices.iter().filter(|(_, tracks)| !tracks.is_seen).map(|(id, _)| id.clone()).collect();
        for id in lost {
            self.device_lost(&id, time)?;
        }
        self.devices.values_mut().for_each(|tracks| tracks.is_seen = false);
        for process in &snapshot.processes {
            self.process(process, time)?;
        }
        self.processes_gone(time)
    }

    pub fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        match entry {
            LogEntry::Event(event) => self.event(event),
            LogEntry::Exit(exit) => self.exit(exit),
            LogEntry::Operations(totals) => self.totals(totals),
            LogEntry::Start(start) => {
                let time = nanoseconds(start.time).max(self.clocks.began);
                let name = format!("recording began, ttmon {}", start.ttmon);
                self.happened(None, &name, time, &[])
            }
        }
    }

    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let device = event.device.as_ref().map(DeviceId::to_string);
        let mut details = vec![("weight", Detail::Text(event.weight.name()))];
        details.extend(device.as_ref().map(|device| ("device", Detail::Text(device))));
        details.extend(event.kernel.as_ref().map(|kernel| ("kernel", Detail::Text(&kernel.text))));
        let time = nanoseconds(event.time).max(self.clocks.began);
        self.happened(event.device.as_ref(), &event.text, time, &details)
    }

    pub fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let flow = slice.launched.map(|_| {
            self.flows += 1;
            self.flows
        });
        let Drawing { writer, processes, next, .. } = self;
        let process = tracks_of(writer, processes, next, slice.process)?;
        let (group, queues) = (process.group, &mut process.queues);
        let known = queues.iter().position(|known| known.queue == slice.queue && known.device == slice.device);
        let at = known.unwrap_or_else(|| {
            let device = slice.device.to_owned();
            let lanes = Lanes::default();
            queues.push(QueueTracks { device, queue: slice.queue, lanes, tracks: Vec::new(), launches: None });
            queues.len() - 1
        });
        let queue = &mut queues[at];
        let start = slice.start.max(self.clocks.began);
        let (lane, start) = queue.lanes.place(start, slice.end);
        while queue.tracks.len() <= lane {
            let id = take(next);
            writer.track(id, group, &queue_name(slice.queue, slice.device))?;
            queue.tracks.push(id);
        }
        let runtime_id = ("runtime_id", Detail::Number(Number::Whole(slice.runtime_id.into())));
        if let Some(launched) = slice.launched {
            let launches = match queue.launches {
                Some(launches) => launches,
                None => {
                    let id = take(next);
                    writer.track(id, group, &format!("launches, {}", queue_name(slice.queue, slice.device)))?;
                    *queue.launches.insert(id)
                }
            };
            let (at, category) = (launched.max(self.clocks.began), Category::Launch);
            let instant = Drawn { name: slice.operation, category, start: at, end: at, details: &[runtime_id], flow };
            writer.instant(launches, instant)?;
        }
        let (category, end) = (Category::Operation, slice.end.max(start));
        let drawn = Drawn { name: slice.operation, category, start, end, details: &[runtime_id], flow };
        writer.slice(queue.tracks[lane], drawn)
    }

    pub fn result(&mut self, slice: &ResultSlice<'_>) -> io::Result<()> {
        let (track, start) = self.results.place(&mut self.writer, &mut self.next, slice)?;
        let (category, end) = (Category::Operation, slice.end.max(start));
        self.writer.slice(track, Drawn { name: slice.name, category, start, end, details: &[], flow: None })
    }

    /// Writes each counter once more, so that it is drawn to the end.
    pub fn finish(mut self) -> io::Result<W> {
        let of_devices = self.devices.values_mut().flat_map(|tracks| &mut tracks.counters);
        let processes = self.processes.values_mut().flatten();
        let of_processes = processes.flat_map(|tracks| &mut tracks.counters).flat_map(|(_, counters)| counters);
        let mut counters: Vec<&mut Counter> = of_devices.chain(of_processes).collect();
        counters.sort_by_key(|counter| counter.track);
        for counter in counters {
            if let (Some(track), Some(last)) = (counter.track, counter.last) {
                if counter.at < self.sampled {
                    self.writer.counter(track, self.sampled, last)?;
                }
            }
        }
        Ok(self.writer)
    }

    fn device(&mut self, device: &Device, time: u64) -> io::Result<()> {
        if !self.devices.contains_key(&device.id) {
            self.new_device(device)?;
        }
        let Drawing { writer, devices, fields, next, .. } = self;
        let Some(tracks) = devices.get_mut(&device.id) else { return Ok(()) };
        tracks.is_seen = true;
        let mut missing = String::new();
        for (field, counter) in fields.iter().zip(&mut tracks.counters) {
            let number = field.value(device).as_ref().and_then(Number::of);
            if number.is_none() && counter.last.is_some() {
                missing.push_str(if missing.is_empty() { "no value: " } else { ", " });
                missing.push_str(&field.title());
            }
            let track = |id, writer: &mut W| writer.counter_track(id, tracks.group, &field.title(), field.figure.unit);
            counter.put(writer, next, number, time, track)?;
        }
        if missing.is_empty() {
            return Ok(());
        }
        writer.instant(tracks.events, event(&missing, time, &[]))
    }

    fn new_device(&mut self, device: &Device) -> io::Result<()> {
        let (group, events) = (take(&mut self.next), take(&mut self.next));
        let board = device.board.as_deref().map(|board| format!(" ({board})")).unwrap_or_default();
        self.writer.group(group, &format!("device {}{board}", device.id))?;
        self.writer.track(events, group, "events")?;
        let counters = self.fields.iter().map(|_| Counter::default()).collect();
        self.devices.insert(device.id.clone(), DeviceTracks { group, events, counters, is_seen: true });
        Ok(())
    }

    /// A device that is not in a sample has no values there.
    fn device_lost(&mut self, id: &DeviceId, time: u64) -> io::Result<()> {
        let Some(tracks) = self.devices.get_mut(id) else { return Ok(()) };
        let had_values = tracks.counters.iter_mut().filter_map(|counter| counter.last.take()).count() > 0;
        if !had_values {
            return Ok(());
        }
        self.writer.instant(tracks.events, event("no value: the device is not in the sample", time, &[]))
    }

    fn process(&mut self, process: &Process, time: u64) -> io::Result<()> {
        let Drawing { writer, processes, next, .. } = self;
        let (name, label) = (process.name.as_deref().unwrap_or_default(), display_name(process).unwrap_or_default());
        let key = ProcessKey { pid: process.pid, name, label: &label };
        let tracks = tracks_of(writer, processes, next, key)?;
        tracks.is_seen = true;
        for held in &process.devices {
            let known = tracks.counters.iter().position(|(id, _)| *id == held.id);
            let at = known.unwrap_or_else(|| {
                tracks.counters.push((held.id.clone(), Default::default()));
                tracks.counters.len() - 1
            });
            for (figure, counter) in OF_HELD.iter().zip(&mut tracks.counters[at].1) {
                let number = figure.value(held).as_ref().and_then(Number::of);
                counter.put(writer, next, number, time, |id, writer: &mut W| {
                    let name = format!("{}, device {}", figure.title, held.id);
                    writer.counter_track(id, tracks.group, &name, figure.unit)
                })?;
            }
        }
        Ok(())
    }

    /// A process that is no longer in the samples has no device open: it uses nothing.
    fn processes_gone(&mut self, time: u64) -> io::Result<()> {
        let Drawing { writer, processes, .. } = self;
        for tracks in processes.values_mut().flatten().filter(|tracks| !tracks.is_seen) {
            for counter in tracks.counters.iter_mut().flat_map(|(_, counters)| counters) {
                if let (Some(track), Some(last)) = (counter.track, counter.last.take()) {
                    let zero = if matches!(last, Number::Whole(_)) { Number::Whole(0) } else { Number::Real(0.0) };
                    writer.counter(track, time, zero)?;
                }
            }
        }
        processes.retain(|_, same| {
            // One with slices may have more of them.
            same.retain(|tracks| tracks.is_seen || !tracks.queues.is_empty() || tracks.totals.is_some());
            same.iter_mut().for_each(|tracks| tracks.is_seen = false);
            !same.is_empty()
        });
        Ok(())
    }

    fn exit(&mut self, exit: &ExitRecord) -> io::Result<()> {
        let time = nanoseconds(exit.died_at).max(self.clocks.began);
        let Drawing { writer, processes, next, .. } = self;
        let label = name_of(exit.name.as_deref(), exit.command.as_deref()).unwrap_or_default();
        let key = ProcessKey { pid: exit.pid, name: exit.name.as_deref().unwrap_or_default(), label: &label };
        let tracks = tracks_of(writer, processes, next, key)?;
        let track = match tracks.exits {
            Some(track) => track,
            None => {
                let id = take(next);
                writer.track(id, tracks.group, "exit")?;
                *tracks.exits.insert(id)
            }
        };
        let name = match (exit.exit_code, exit.signal) {
            (_, Some(signal)) => format!("exited by signal {signal}"),
            (Some(code), None) => format!("exited with {code}"),
            (None, None) => "exited".to_owned(),
        };
        let left = exit.left.map(|left| ("left_bytes", Detail::Number(Number::Whole(left.0))));
        writer.instant(track, event(&name, time, left.as_slice()))
    }

    /// A stretch of time as a slice, with its operations as details.
    fn totals(&mut self, totals: &OperationTotals) -> io::Result<()> {
        let end = nanoseconds(totals.time).max(self.clocks.began);
        let length = (totals.seconds.clamp(0.0, 86_400.0) * 1e9) as u64;
        let Drawing { writer, processes, next, .. } = self;
        let name = totals.name.as_deref().unwrap_or_default();
        let key = ProcessKey { pid: totals.pid, name, label: name };
        let tracks = tracks_of(writer, processes, next, key)?;
        let (track, ended) = match &mut tracks.totals {
            Some(known) => known,
            none => {
                let id = take(next);
                writer.track(id, tracks.group, "operations, sums")?;
                none.insert((id, self.clocks.began))
            }
        };
        let start = end.saturating_sub(length).max(*ended);
        let end = end.max(start);
        *ended = end;
        let launches: u64 = totals.operations.iter().map(|operation| operation.launches).sum();
        let mut texts = Vec::new();
        for operation in totals.operations.iter().take(LISTED) {
            let time = operation.device_seconds.map(|seconds| format!(", {seconds:.6} s")).unwrap_or_default();
            texts.push(format!("{}: {} launches{time}", operation.name, operation.launches));
        }
        let listed = texts.join("; ");
        let details = [("operations", Detail::Text(&listed)), ("launches", Detail::Number(Number::Whole(launches)))];
        let name = totals.operations.first().map_or("no operation", |operation| &operation.name);
        let drawn = Drawn { name, category: Category::Totals, start, end, details: &details, flow: None };
        writer.slice(*track, drawn)
    }

    /// An instant on the device's own track, or on that of the machine.
    fn happened(
        &mut self,
        device: Option<&DeviceId>,
        name: &str,
        time: u64,
        details: &[(&'static str, Detail<'_>)],
    ) -> io::Result<()> {
        let track = match (device.and_then(|id| self.devices.get(id)), self.machine) {
            (Some(tracks), _) => tracks.events,
            (None, Some(machine)) => machine,
            (None, None) => {
                let (group, track) = (take(&mut self.next), take(&mut self.next));
                self.writer.group(group, "machine")?;
                self.writer.track(track, group, "events")?;
                *self.machine.insert(track)
            }
        };
        self.writer.instant(track, event(name, time, details))
    }
}

#[cfg(test)]
impl Drawing<super::perfetto::Perfetto> {
    /// How many tracks and names there are.
    pub fn kept(&self) -> (u64, usize) {
        (self.next - 1, self.writer.names())
    }
}

fn event<'a>(name: &'a str, time: u64, details: &'a [(&'static str, Detail<'a>)]) -> Drawn<'a> {
    Drawn { name, category: Category::Event, start: time, end: time, details, flow: None }
}
