//! Perfetto's trace format: packets of protobuf, one after another.
//!
//! Numbers of fields are those of Perfetto's published `perfetto_trace.proto`. All packets are of one sequence, whose first one clears what
//! the reader knew and says that times are of the realtime clock. Names of operations and details are sent once, and by their number from then on.

use super::output::Output;
use super::protobuf::Message;
use super::trace::{Category, Clocks, DETAILS, Detail, Drawn, Number, TraceWriter, TrackId};
use model::figure::Unit;
use std::collections::HashMap;
use std::io::{self, Write};

/// The fields of the messages.
mod field {
    pub const PACKET: u32 = 1;

    /// Of a packet.
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TIMESTAMP_CLOCK: u32 = 58;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;

    /// Of a snapshot of the clocks, and of a clock in it.
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY_CLOCK: u32 = 2;
    pub const CLOCK_ID: u32 = 1;
    pub const CLOCK_TIME: u32 = 2;

    /// Of a track.
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;

    /// Of a process.
    pub const PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;

    /// Of a counter.
    pub const UNIT: u32 = 3;
    pub const UNIT_NAME: u32 = 6;

    /// Of an event on a track.
    pub const CATEGORY_IID: u32 = 3;
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const EVENT_NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const REAL_COUNTER_VALUE: u32 = 44;
    pub const FLOW: u32 = 47;
    pub const ENDING_FLOW: u32 = 48;

    /// Of an annotation.
    pub const ANNOTATION_NAME_IID: u32 = 1;
    pub const ANNOTATION_NAME: u32 = 10;
    pub const WHOLE_VALUE: u32 = 3;
    pub const REAL_VALUE: u32 = 5;
    pub const TEXT_VALUE: u32 = 6;

    /// Of names that are sent once.
    pub const CATEGORIES: u32 = 1;
    pub const NAMES: u32 = 2;
    pub const ANNOTATION_NAMES: u32 = 3;
    pub const IID: u32 = 1;
    pub const INTERNED_NAME: u32 = 2;
}

/// The realtime and the monotonic clock.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
/// Types of events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const VALUE: u64 = 4;
/// Flags of a packet: what was known before does not count; it needs what was sent before.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
/// Units of counters.
const COUNT: u64 = 2;
const BYTES: u64 = 3;

/// More names than this are sent each time that they are used, so that memory stays bounded.
const NAMES: usize = 4096;

pub struct Perfetto {
    output: Output,
    /// The packet that is being written.
    packet: Message,
    names: HashMap<String, u64>,
}

impl Perfetto {
    pub fn begin(output: Output, clocks: Clocks) -> io::Result<Perfetto> {
        let mut perfetto = Perfetto { output, packet: Message::default(), names: HashMap::new() };
        perfetto.write(CLEARED, |packet| {
            packet.number(field::TIMESTAMP, clocks.began);
            packet.number(field::TIMESTAMP_CLOCK, REALTIME);
            packet.message(field::DEFAULTS, |defaults| _ = defaults.number(field::TIMESTAMP_CLOCK, REALTIME));
            packet.message(field::CLOCK_SNAPSHOT, |snapshot| {
                let times = [(REALTIME, Some(clocks.began)), (MONOTONIC, clocks.monotonic)];
                for (clock, time) in times.into_iter().filter_map(|(clock, time)| Some((clock, time?))) {
                    snapshot.message(field::CLOCKS, |message| {
                        message.number(field::CLOCK_ID, clock).number(field::CLOCK_TIME, time);
                    });
                }
                snapshot.number(field::PRIMARY_CLOCK, REALTIME);
            });
            packet.message(field::INTERNED_DATA, |data| {
                for category in Category::ALL {
                    data.message(field::CATEGORIES, |message| {
                        message.number(field::IID, category as u64).text(field::INTERNED_NAME, category.name());
                    });
                }
                for (number, name) in (1..).zip(DETAILS) {
                    data.message(field::ANNOTATION_NAMES, |message| {
                        message.number(field::IID, number).text(field::INTERNED_NAME, name);
                    });
                }
            });
        })?;
        Ok(perfetto)
    }

    pub fn into_output(self) -> Output {
        self.output
    }

    /// How many names are remembered.
    #[cfg(test)]
    pub fn names(&self) -> usize {
        self.names.len()
    }

    fn write(&mut self, flags: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.clear();
        self.packet.message(field::PACKET, |packet| {
            packet.number(field::SEQUENCE, 1).number(field::SEQUENCE_FLAGS, flags);
            fill(packet);
        });
        self.output.write_all(self.packet.bytes())
    }

    fn describe(&mut self, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.write(NEEDED, |packet| _ = packet.message(field::TRACK_DESCRIPTOR, fill))
    }

    /// The number of a name, and whether it is new. None when there are too many.
    fn name(&mut self, name: &str) -> Option<(u64, bool)> {
        if let Some(number) = self.names.get(name) {
            return Some((*number, false));
        }
        let number = self.names.len() as u64 + 1;
        (self.names.len() < NAMES).then(|| self.names.insert(name.to_owned(), number))?;
        Some((number, true))
    }

    /// The packet that a slice begins with, or an instant.
    fn first(&mut self, kind: u64, track: TrackId, drawn: Drawn<'_>) -> io::Result<()> {
        // The words of an event are used once.
        let name = if drawn.category == Category::Event { None } else { self.name(drawn.name) };
        self.write(NEEDED, |packet| {
            packet.number(field::TIMESTAMP, drawn.start);
            if let Some((number, true)) = name {
                packet.message(field::INTERNED_DATA, |data| {
                    data.message(field::NAMES, |message| {
                        message.number(field::IID, number).text(field::INTERNED_NAME, drawn.name);
                    });
                });
            }
            packet.message(field::TRACK_EVENT, |event| {
                event.number(field::TYPE, kind).number(field::TRACK, track);
                event.number(field::CATEGORY_IID, drawn.category as u64);
                match name {
                    Some((number, _)) => event.number(field::NAME_IID, number),
                    None => event.text(field::EVENT_NAME, drawn.name),
                };
                if let Some(flow) = drawn.flow {
                    event.fixed(if kind == BEGIN { field::ENDING_FLOW } else { field::FLOW }, flow);
                }
                drawn.details.iter().for_each(|(name, detail)| annotate(event, name, detail));
            });
        })
    }
}

fn annotate(event: &mut Message, name: &str, detail: &Detail<'_>) {
    event.message(field::ANNOTATION, |annotation| {
        match DETAILS.iter().position(|known| *known == name) {
            Some(place) => annotation.number(field::ANNOTATION_NAME_IID, place as u64 + 1),
            None => annotation.text(field::ANNOTATION_NAME, name),
        };
        match detail {
            Detail::Text(text) => annotation.text(field::TEXT_VALUE, text),
            Detail::Number(Number::Whole(number)) => annotation.number(field::WHOLE_VALUE, *number),
            Detail::Number(Number::Real(number)) => annotation.real(field::REAL_VALUE, *number),
        };
    });
}

impl TraceWriter for Perfetto {
    fn group(&mut self, id: TrackId, name: &str) -> io::Result<()> {
        self.describe(|track| _ = track.number(field::UUID, id).text(field::NAME, name))
    }

    fn process(&mut self, id: TrackId, pid: u32, name: &str) -> io::Result<()> {
        self.describe(|track| {
            track.number(field::UUID, id).message(field::PROCESS, |process| {
                process.number(field::PID, pid.into()).text(field::PROCESS_NAME, name);
            });
        })
    }

    fn track(&mut self, id: TrackId, group: TrackId, name: &str) -> io::Result<()> {
        self.describe(|track| {
            track.number(field::UUID, id).number(field::PARENT, group).text(field::NAME, name);
        })
    }

    fn counter_track(&mut self, id: TrackId, group: TrackId, name: &str, unit: Unit) -> io::Result<()> {
        self.describe(|track| {
            track.number(field::UUID, id).number(field::PARENT, group).text(field::NAME, name);
            track.message(field::COUNTER, |counter| {
                match unit {
                    Unit::Bytes => counter.number(field::UNIT, BYTES),
                    Unit::Count => counter.number(field::UNIT, COUNT),
                    _ => counter.text(field::UNIT_NAME, unit.symbol()),
                };
            });
        })
    }

    fn counter(&mut self, track: TrackId, time: u64, number: Number) -> io::Result<()> {
        self.write(NEEDED, |packet| {
            packet.number(field::TIMESTAMP, time).message(field::TRACK_EVENT, |event| {
                event.number(field::TYPE, VALUE).number(field::TRACK, track);
                match number {
                    Number::Whole(number) => event.number(field::COUNTER_VALUE, number),
                    Number::Real(number) => event.real(field::REAL_COUNTER_VALUE, number),
                };
            });
        })
    }

    fn slice(&mut self, track: TrackId, slice: Drawn<'_>) -> io::Result<()> {
        self.first(BEGIN, track, slice)?;
        self.write(NEEDED, |packet| {
            packet.number(field::TIMESTAMP, slice.end.max(slice.start));
            packet.message(field::TRACK_EVENT, |event| _ = event.number(field::TYPE, END).number(field::TRACK, track));
        })
    }

    fn instant(&mut self, track: TrackId, instant: Drawn<'_>) -> io::Result<()> {
        self.first(INSTANT, track, instant)
    }
}
