//! Log lines on standard error: `level=info event=started pid=7`, or the same as JSON. Under systemd the level is a prefix that its
//! journal knows.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Severity of a line, as syslog numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum LogLevel {
    /// Something failed.
    Error = 3,
    /// Something needs attention.
    Warning = 4,
    /// Normal operation.
    Info = 6,
}

impl LogLevel {
    /// All levels and their words, the gravest first.
    pub const WORDS: [(&str, LogLevel); 3] =
        [("error", LogLevel::Error), ("warning", LogLevel::Warning), ("info", LogLevel::Info)];

    fn word(self) -> &'static str {
        LogLevel::WORDS.iter().find(|(_, level)| *level == self).map_or("info", |(word, _)| word)
    }
}

/// What is logged, and how.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Lines of this severity and graver ones.
    pub level: LogLevel,
    /// An object of JSON a line, instead of keys and values.
    pub is_json: bool,
}

static OPTIONS: OnceLock<LogOptions> = OnceLock::new();
const USUAL: LogOptions = LogOptions { level: LogLevel::Info, is_json: false };

/// Says how lines are written from now on. The first call counts.
pub fn set_log_options(options: LogOptions) {
    let _ = OPTIONS.set(options);
}

/// A terminal is opened again, so that it does not wait: whoever else has it open shall not notice.
static TERMINAL: LazyLock<Option<OwnedFd>> = LazyLock::new(|| {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let is_terminal = rustix::termios::isatty(rustix::stdio::stderr());
    is_terminal.then(|| rustix::fs::open("/proc/self/fd/2", flags, Mode::empty()).ok()).flatten()
});
static JOURNAL: LazyLock<bool> = LazyLock::new(|| std::env::var_os("JOURNAL_STREAM").is_some());

/// As many lines of one event as may come at once, and how many more each second.
const AT_ONCE: f64 = 100.0;
const EACH_SECOND: f64 = 2.0;
/// A pipe takes so much at once, or nothing.
const LONGEST_LINE: usize = 4096;

/// What was written lately, and what was not.
#[derive(Default)]
struct LogState {
    events: BTreeMap<String, EventRate>,
    /// Lines that standard error had no room for.
    dropped: u64,
}

struct EventRate {
    /// How many lines may come now.
    allowed: f64,
    since: Instant,
    /// Lines that were left out since the last one that was written.
    left_out: u64,
}

static STATE: Mutex<LogState> = Mutex::new(LogState { events: BTreeMap::new(), dropped: 0 });

/// Writes a line. Nothing waits for it: one that standard error has no room for is lost, and so is one of an event that has had
/// very many. A later line has their number.
pub fn log(level: LogLevel, event: &str, fields: &[(&str, &dyn Display)]) {
    let options = OPTIONS.get().copied().unwrap_or(USUAL);
    if level > options.level {
        return;
    }
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.allows(event, Instant::now()) {
        state.write(&line(level, event, fields, options.is_json, *JOURNAL));
    }
}

/// Says how many lines were left out. To be called now and then.
pub fn summarize() {
    let is_json = OPTIONS.get().is_some_and(|options| options.is_json);
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    for (event, left_out) in state.left_out(Instant::now()) {
        state.write(&line(LogLevel::Warning, "left-out", &[("of", &event), ("lines", &left_out)], is_json, *JOURNAL));
    }
}

impl LogState {
    fn allows(&mut self, event: &str, now: Instant) -> bool {
        if !self.events.contains_key(event) {
            self.events.insert(event.to_owned(), EventRate { allowed: AT_ONCE, since: now, left_out: 0 });
        }
        let Some(rate) = self.events.get_mut(event) else { return true };
        let seconds = now.saturating_duration_since(rate.since).as_secs_f64();
        (rate.allowed, rate.since) = ((rate.allowed + seconds * EACH_SECOND).min(AT_ONCE), now);
        if rate.allowed < 1.0 {
            rate.left_out += 1;
            return false;
        }
        rate.allowed -= 1.0;
        true
    }

    /// The events of which lines were left out, and how many. They count as said.
    fn left_out(&mut self, now: Instant) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        for (event, rate) in self.events.iter_mut().filter(|(_, rate)| rate.left_out > 0) {
            all.push((event.clone(), std::mem::take(&mut rate.left_out)));
        }
        if self.dropped > 0 && self.allows("dropped", now) {
            all.push(("all".to_owned(), std::mem::take(&mut self.dropped)));
        }
        all
    }

    /// Writes what fits without waiting.
    fn write(&mut self, line: &str) {
        let error = TERMINAL.as_ref().map_or(rustix::stdio::stderr(), OwnedFd::as_fd);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_room = poll(&mut [PollFd::from_borrowed_fd(error, PollFlags::OUT)], Some(&now)) == Ok(1);
        if !has_room || rustix::io::write(error, line.as_bytes()).is_err() {
            self.dropped += 1;
        }
    }
}

fn line(level: LogLevel, event: &str, fields: &[(&str, &dyn Display)], is_json: bool, journal: bool) -> String {
    let mut line = if journal { format!("<{}>", level as u8) } else { String::new() };
    if is_json {
        json(&mut line, level, event, fields)
    } else {
        words(&mut line, (!journal).then_some(level), event, fields)
    }
    line.push('\n');
    line
}

/// Keys and values: `level=info event=started pid=7`.
fn words(line: &mut String, level: Option<LogLevel>, event: &str, fields: &[(&str, &dyn Display)]) {
    if let Some(level) = level {
        line.push_str(&format!("level={} ", level.word()));
    }
    line.push_str("event=");
    line.push_str(event);
    for (key, value) in fields {
        let value = value.to_string();
        let plain = |c: char| c.is_alphanumeric() || "-_./:@,+".contains(c);
        if !value.is_empty() && value.chars().all(plain) {
            line.push_str(&format!(" {key}={value}"));
        } else {
            line.push_str(&format!(" {key}={value:?}"));
        }
    }
    if line.len() >= LONGEST_LINE {
        let end = (0..=LONGEST_LINE - "…\n".len()).rev().find(|end| line.is_char_boundary(*end));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
}

/// The same as an object. A value that makes the line too long is cut.
fn json(line: &mut String, level: LogLevel, event: &str, fields: &[(&str, &dyn Display)]) {
    let mut object = serde_json::Map::new();
    object.insert("level".into(), level.word().into());
    object.insert("event".into(), event.into());
    for (key, value) in fields {
        let mut text = value.to_string();
        // Each byte may take six to be written.
        let most = LONGEST_LINE / 8 / fields.len();
        if text.len() > most {
            let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
            text.push('…');
        }
        object.insert((*key).into(), text.parse::<u64>().map_or_else(|_| text.into(), Into::into));
    }
    line.push_str(&serde_json::Value::Object(object).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_is_keys_and_values() {
        let fields: [(&str, &dyn Display); 3] = [("pid", &7), ("command", &"a b\n\"c\""), ("path", &"/tmp/x.sock")];
        let text = r#"event=lie pid=7 command="a b\n\"c\"" path=/tmp/x.sock"#;
        assert_eq!(line(LogLevel::Warning, "lie", &fields, false, false), format!("level=warning {text}\n"));
        assert_eq!(line(LogLevel::Warning, "lie", &fields, false, true), format!("<4>{text}\n"));
        let text = r#"{"command":"a b\n\"c\"","event":"lie","level":"warning","path":"/tmp/x.sock","pid":7}"#;
        assert_eq!(line(LogLevel::Warning, "lie", &fields, true, true), format!("<4>{text}\n"));
    }

    #[test]
    fn an_event_that_comes_again_and_again_is_written_now_and_then_and_counted() {
        let (mut state, began) = (LogState::default(), Instant::now());
        let mut written =
            |event, at, times: u32| (0..times).filter(|_| state.allows(event, began + Duration::from_secs(at))).count();
        assert_eq!(written("mistake", 0, 100_000), 100);
        assert_eq!(written("death", 0, 7), 7, "another event");
        assert_eq!(written("mistake", 10, 100_000), 20);
        assert_eq!(state.left_out(began), [("mistake".to_owned(), 199_880)]);
        assert_eq!(state.left_out(began), []);
    }

    #[test]
    fn a_long_line_is_cut() {
        let fields: [(&str, &dyn Display); 2] = [("command", &"ä".repeat(10_000)), ("reason", &"\u{1}".repeat(10_000))];
        let text = line(LogLevel::Info, "x", &fields[..1], false, false);
        assert!(text.len() <= LONGEST_LINE && text.ends_with("…\n"), "{}", text.len());
        let object = line(LogLevel::Info, "x", &fields, true, false);
        assert!(object.len() <= LONGEST_LINE, "{}", object.len());
        assert!(serde_json::from_str::<serde_json::Value>(&object).is_ok(), "{object}");
    }
}
