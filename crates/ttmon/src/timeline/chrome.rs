//! Chrome's trace event format: one JSON object with a list of events, a line each.
//!
//! Times are in microseconds since the beginning, whose own time is in `otherData`: readers take them for floating-point numbers, which
//! have no room for nanoseconds since 1970. A device has a number as a process would have, above those that Linux gives.

use super::output::Output;
use super::trace::{Clocks, Detail, Drawn, Number, TraceWriter, TrackId};
use model::Timestamp;
use model::figure::Unit;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The first number of what is not a process.
const DEVICES: u64 = 1_000_000_000;

pub struct Chrome {
    output: Output,
    began: u64,
    /// By number: the process, and the name of a counter as JSON has it.
    tracks: Vec<(u64, String)>,
    groups: u64,
    line: String,
    is_first: bool,
}

impl Chrome {
    pub fn begin(mut output: Output, clocks: Clocks) -> io::Result<Chrome> {
        let began = Timestamp(i64::try_from(clocks.began / 1_000_000).unwrap_or(i64::MAX));
        let (began_ns, version) = (clocks.began, env!("CARGO_PKG_VERSION"));
        writeln!(
            output,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"producer\":\"ttmon {version}\",\"began_at\":\"{began}\",\
             \"began_nanoseconds\":\"{began_ns}\"}},\"traceEvents\":["
        )?;
        let (tracks, line) = (vec![(0, String::new())], String::new());
        Ok(Chrome { output, began: clocks.began, tracks, groups: 0, line, is_first: true })
    }

    pub fn into_output(mut self) -> io::Result<Output> {
        self.output.write_all(b"\n]}\n")?;
        Ok(self.output)
    }

    fn add(&mut self, id: TrackId, process: u64, name: &str) {
        let at = id as usize;
        if self.tracks.len() <= at {
            self.tracks.resize_with(at + 1, Default::default);
        }
        self.tracks[at] = (process, name.to_owned());
    }

    fn process_of(&self, track: TrackId) -> u64 {
        self.tracks.get(track as usize).map_or(0, |track| track.0)
    }

    /// Writes an event: what all have, and then what only this one has.
    fn event(&mut self, kind: char, track: TrackId, rest: impl FnOnce(&mut String, u64)) -> io::Result<()> {
        let process = self.process_of(track);
        let comma = if std::mem::take(&mut self.is_first) { "" } else { ",\n" };
        self.line.clear();
        let _ = write!(self.line, "{comma}{{\"ph\":\"{kind}\",\"pid\":{process},\"tid\":{track}");
        rest(&mut self.line, self.began);
        self.line.push('}');
        self.output.write_all(self.line.as_bytes())
    }

    fn about(&mut self, track: TrackId, what: &str, name: &str) -> io::Result<()> {
        self.event('M', track, |line, _| {
            let _ = write!(line, ",\"name\":\"{what}\",\"args\":{{\"name\":");
            text(line, name);
            line.push('}');
        })
    }

    fn flow(&mut self, kind: char, track: TrackId, at: u64, flow: Option<u64>) -> io::Result<()> {
        let Some(flow) = flow else { return Ok(()) };
        self.event(kind, track, |line, began| {
            let _ = write!(line, ",\"name\":\"launch\",\"cat\":\"launch\",\"id\":{flow}");
            if kind == 'f' {
                line.push_str(",\"bp\":\"e\"");
            }
            time(line, "ts", at.saturating_sub(began));
        })
    }
}

/// Nanoseconds as microseconds.
fn time(line: &mut String, name: &str, nanoseconds: u64) {
    let _ = write!(line, ",\"{name}\":{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

fn text(line: &mut String, text: &str) {
    line.push_str(&serde_json::Value::from(text).to_string());
}

fn number(line: &mut String, number: Number) {
    let _ = match number {
        Number::Whole(number) => write!(line, "{number}"),
        Number::Real(number) => write!(line, "{}", serde_json::Value::from(number)),
    };
}

fn named(line: &mut String, began: u64, drawn: &Drawn<'_>) {
    line.push_str(",\"name\":");
    text(line, drawn.name);
    let _ = write!(line, ",\"cat\":\"{}\"", drawn.category.name());
    time(line, "ts", drawn.start.saturating_sub(began));
    if drawn.details.is_empty() {
        return;
    }
    line.push_str(",\"args\":{");
    for (place, (name, detail)) in drawn.details.iter().enumerate() {
        let _ = write!(line, "{}\"{name}\":", if place == 0 { "" } else { "," });
        match detail {
            Detail::Text(value) => text(line, value),
            Detail::Number(value) => number(line, *value),
        }
    }
    line.push('}');
}

impl TraceWriter for Chrome {
    fn group(&mut self, id: TrackId, name: &str) -> io::Result<()> {
        self.add(id, DEVICES + self.groups, name);
        self.groups += 1;
        self.about(id, "process_name", name)
    }

    fn process(&mut self, id: TrackId, pid: u32, name: &str) -> io::Result<()> {
        self.add(id, pid.into(), name);
        self.about(id, "process_name", name)
    }

    fn track(&mut self, id: TrackId, group: TrackId, name: &str) -> io::Result<()> {
        self.add(id, self.process_of(group), name);
        self.about(id, "thread_name", name)
    }

    fn counter_track(&mut self, id: TrackId, group: TrackId, name: &str, unit: Unit) -> io::Result<()> {
        let name = match unit.symbol() {
            "" => name.to_owned(),
            symbol => format!("{name} ({symbol})"),
        };
        let mut escaped = String::new();
        text(&mut escaped, &name);
        self.add(id, self.process_of(group), &escaped);
        Ok(())
    }

    fn counter(&mut self, track: TrackId, at: u64, value: Number) -> io::Result<()> {
        let name = self.tracks.get_mut(track as usize).map(|track| std::mem::take(&mut track.1)).unwrap_or_default();
        let written = self.event('C', track, |line, began| {
            line.push_str(",\"name\":");
            line.push_str(&name);
            time(line, "ts", at.saturating_sub(began));
            line.push_str(",\"args\":{\"value\":");
            number(line, value);
            line.push('}');
        });
        if let Some(known) = self.tracks.get_mut(track as usize) {
            known.1 = name;
        }
        written
    }

    fn slice(&mut self, track: TrackId, slice: Drawn<'_>) -> io::Result<()> {
        self.event('X', track, |line, began| {
            named(line, began, &slice);
            time(line, "dur", slice.end.saturating_sub(slice.start));
        })?;
        self.flow('f', track, slice.start, slice.flow)
    }

    fn instant(&mut self, track: TrackId, instant: Drawn<'_>) -> io::Result<()> {
        // An arrow begins at a slice; it cannot begin at an instant.
        let is_slice = instant.flow.is_some();
        self.event(if is_slice { 'X' } else { 'i' }, track, |line, began| {
            named(line, began, &instant);
            match is_slice {
                true => time(line, "dur", 1),
                false => line.push_str(",\"s\":\"t\""),
            }
        })?;
        self.flow('s', track, instant.start, instant.flow)
    }
}
