//! How long the loop was occupied by one thing, at the most. The log has it when the service stops.

use alerts::log::{LogLevel, log};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// What the loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// New connections.
    Accept,
    /// Messages of a client of the proof of concept.
    Poc,
    /// Questions of a client of the service's own socket.
    Native,
    /// An exited process.
    Exit,
    Sample,
    /// Questions that came over HTTP.
    Http,
    /// What another thread has prepared.
    Prepared,
    /// All that was ready at once.
    Turn,
}

/// The longest of each.
#[derive(Debug, Default)]
pub struct Busy {
    /// Processor time of this thread when the turn began.
    began: Duration,
    longest: BTreeMap<Work, BusyTimes>,
}

#[derive(Debug, Default)]
struct BusyTimes {
    /// By the clock: others may have had the processor meanwhile.
    wall: Duration,
    processor: Duration,
}

impl Busy {
    pub fn begin_turn(&mut self) {
        self.began = processor_time();
    }

    pub fn note(&mut self, work: Work, began: Instant) {
        let (longest, wall) = (self.longest.entry(work).or_default(), began.elapsed());
        longest.wall = wall.max(longest.wall);
        if wall > longest.processor {
            // What the turn did before is in it, but for that it takes no time to know.
            longest.processor = longest.processor.max(wall.min(processor_time().saturating_sub(self.began)));
        }
    }

    /// Writes them to the log: processor time, and of all together the time by the clock, too.
    pub fn report(&self) {
        let name = |work: &Work| match work {
            Work::Accept => "accept_ms",
            Work::Poc => "poc_ms",
            Work::Native => "native_ms",
            Work::Exit => "exit_ms",
            Work::Sample => "sample_ms",
            Work::Http => "http_ms",
            Work::Prepared => "prepared_ms",
            Work::Turn => "turn_ms",
        };
        let text = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        let all = self.longest.iter().map(|(work, times)| (name(work), text(times.processor)));
        let wall = self.longest.get(&Work::Turn).map(|times| ("turn_wall_ms", text(times.wall)));
        let all: Vec<(&str, String)> = all.chain(wall).collect();
        let fields: Vec<(&str, &dyn Display)> = all.iter().map(|(name, longest)| (*name, longest as _)).collect();
        log(LogLevel::Info, "longest", &fields);
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
