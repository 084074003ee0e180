//! Where the output goes: a file, a pipe, or a terminal that is drawn again in place without flicker.

use crate::quit_key::QuitKey;
use clap::ValueEnum;
use jiff::tz::TimeZone;
use model::Timestamp;
use show::style::Style;
use show::terminal::{is_dumb, locale_is_utf8, on_terminal, wants_color};
use show::text::cut;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use watch::exit::{Exit, Failure};
use watch::wait::{Interrupt, Woken};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// What a command wants of its output.
#[derive(Debug, Clone)]
pub struct Output {
    /// Default: standard output.
    pub path: Option<PathBuf>,
    pub color: Color,
    pub ascii: bool,
    /// Draw over what was drawn before, where that is a terminal.
    pub in_place: bool,
    /// The option that chooses devices.
    pub choose: &'static str,
    /// Whether the key `q` ends what is drawn in place.
    pub q_ends: bool,
}

pub struct OutputScreen {
    /// Opened when there is something to write, so that an error leaves a file as it was.
    out: Option<Box<dyn Write>>,
    output: Output,
    is_terminal: bool,
    /// The last text drawn in place, to be left behind at the end.
    last: Option<String>,
    keys: Option<QuitKey>,
}

/// How often something is shown: once, or until it is enough.
pub struct Rounds {
    pub every: Option<Duration>,
    pub count: Option<u64>,
    pub interrupt: Option<Interrupt>,
    /// Whether rates are shown, which need two samples that are not far apart.
    pub with_rates: bool,
}

/// The width of what is written where there is no terminal, and no `COLUMNS`.
const USUAL_WIDTH: usize = 80;
const NARROWEST: usize = 40;
const WIDEST: usize = 1000;

/// A busy link's counters wrap in four seconds.
const RATE_WINDOW: Duration = Duration::from_secs(1);

// Another screen, no cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
// The terminal shows what comes between these at once.
const BEGIN: &str = "\x1b[?2026h\x1b[H";
const END: &str = "\x1b[J\x1b[?2026l";

impl OutputScreen {
    pub fn new(mut output: Output) -> OutputScreen {
        output.path = output.path.filter(|path| path.as_os_str() != "-");
        let is_terminal = on_terminal() && output.path.is_none();
        output.in_place &= is_terminal && !is_dumb();
        OutputScreen { out: None, output, is_terminal, last: None, keys: None }
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let out: Box<dyn Write> = match (self.out.take(), &self.output.path) {
            (Some(out), _) => out,
            (None, None) => Box::new(io::stdout().lock()),
            (None, Some(path)) => Box::new(
                File::create(path)
                    .map_err(|error| Failure::of_io(&error, format!("cannot write to {}: {error}", path.display())))?,
            ),
        };
        let out = self.out.insert(out);
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// What ends the program, where that is wanted; Ctrl-Z goes through it where texts are drawn in place.
    pub fn interrupt(&mut self, is_wanted: bool) -> io::Result<Option<Interrupt>> {
        let mut interrupt = is_wanted.then(Interrupt::new).transpose()?;
        if let Some(interrupt) = interrupt.as_mut().filter(|_| self.output.in_place) {
            interrupt.and_stop()?;
        }
        self.listen();
        Ok(interrupt)
    }

    fn listen(&mut self) {
        self.keys = (self.output.in_place && self.output.q_ends).then(QuitKey::listen).flatten();
    }

    /// How to draw, for the size that the terminal has now.
    pub fn style(&self) -> Style {
        let size = self.size();
        let rows = size.map(|(_, rows)| rows - 1).filter(|_| self.output.in_place);
        let color = match self.output.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => wants_color(self.is_terminal),
        };
        let unicode = !self.output.ascii && locale_is_utf8();
        let columns = match size {
            Some((columns, _)) => columns,
            None => width_in(std::env::var("COLUMNS").ok().as_deref()),
        };
        Style { columns, rows, color, unicode }
    }

    fn size(&self) -> Option<(usize, usize)> {
        let size = self.is_terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()))?.ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col.into(), size.ws_row.into()))
    }

    pub fn show(&mut self, text: &str) -> anyhow::Result<()> {
        if !self.output.in_place {
            return self.write(text);
        }
        let (columns, rows) = self.size().unwrap_or((usize::MAX, usize::MAX));
        let frame = frame(text, columns, rows, self.last.is_none(), self.output.choose);
        self.last = Some(text.to_owned());
        self.write(&frame)
    }

    /// Gives the terminal back, with the last text on it.
    pub fn close(&mut self) -> anyhow::Result<()> {
        match self.last.take() {
            Some(last) => self.write(&format!("{LEAVE}{last}")),
            None => Ok(()),
        }
    }

    /// Waits until then. At Ctrl-Z the terminal is given back, and the next text takes it again.
    fn wait(&mut self, interrupt: &Interrupt, until: Instant) -> anyhow::Result<Woken> {
        let woken = interrupt.wait(until.saturating_duration_since(Instant::now()));
        if woken == Woken::Stop {
            if self.last.take().is_some() {
                self.write(LEAVE)?;
            }
            drop(self.keys.take());
            interrupt.stop()?;
            self.listen();
        }
        Ok(woken)
    }

    /// Takes a sample and shows it, until it is enough or somebody ends it. `show` also gets which round it is, and returns the exit
    /// code of that sample.
    pub fn repeat<M, S>(
        &mut self,
        machine: &mut M,
        rounds: &Rounds,
        sample: impl Fn(&mut M) -> S,
        mut show: impl FnMut(&mut OutputScreen, &mut M, S, u64) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let mut next = Instant::now();
        for round in 1.. {
            let taken = sample(machine);
            if rounds.interrupt.as_ref().is_some_and(Interrupt::came) {
                break;
            }
            let exit = show(self, machine, taken, round)?;
            let every = rounds.every.filter(|_| rounds.count != Some(round));
            let (Some(every), Some(interrupt)) = (every, &rounds.interrupt) else { return Ok(exit) };
            next = (next + every).max(Instant::now());
            let mut woken = Woken::Time;
            if rounds.with_rates && next.saturating_duration_since(Instant::now()) > RATE_WINDOW * 2 {
                woken = self.wait(interrupt, next - RATE_WINDOW)?;
                if woken == Woken::Time {
                    drop(sample(machine));
                }
            }
            if woken == Woken::Time {
                woken = self.wait(interrupt, next)?;
            }
            if woken == Woken::End {
                break;
            }
        }
        Ok(Exit::Success)
    }
}

impl Drop for OutputScreen {
    fn drop(&mut self) {
        // After an error or a panic, nothing can be done about a failure here.
        let _ = self.close();
    }
}

/// The width that `COLUMNS` asks for, within limits; the usual one where it is no positive number.
fn width_in(variable: Option<&str>) -> usize {
    let asked = variable.and_then(|text| text.trim().parse::<u64>().ok()).filter(|columns| *columns > 0);
    asked.map_or(USUAL_WIDTH, |columns| columns.clamp(NARROWEST as u64, WIDEST as u64) as usize)
}

/// As `date` prints it.
pub const LONG_TIME: &str = "%a %b %e %H:%M:%S %Y";

/// A time at this place.
pub fn local_time(time: Timestamp, format: &str) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    time.to_zoned(local_zone()).strftime(format).to_string()
}

/// The time zone of this place. Its file is enough: to find a zone by its name, jiff lists all that there are, which takes longer
/// than to read ten devices.
fn local_zone() -> TimeZone {
    let file = match std::env::var_os("TZ") {
        Some(name) => Path::new("/usr/share/zoneinfo").join(name),
        None => "/etc/localtime".into(),
    };
    let zone = std::fs::read(file).ok().and_then(|bytes| TimeZone::tzif("", &bytes).ok());
    zone.unwrap_or_else(TimeZone::system)
}

/// The text for a terminal of so many rows, line over line in place of the last one.
fn frame(text: &str, columns: usize, rows: usize, first: bool, choose: &str) -> String {
    let mut frame = String::from(if first { ENTER } else { "" }) + BEGIN;
    let lines: Vec<&str> = text.lines().collect();
    let room = rows.saturating_sub(1).max(1);
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    for line in &lines[..shown] {
        frame += line;
        frame += "\x1b[K\r\n";
    }
    if shown < lines.len() {
        let more = lines.len() - shown;
        let more = format!("{more} more lines: enlarge the window, or choose devices with {choose}");
        frame += &cut(&more, columns, '~');
        frame += "\x1b[K\r\n";
    }
    frame + END
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_goes_over_the_last_one() {
        let text = "one\ntwo\n";
        assert_eq!(frame(text, 80, 24, false, "-i"), "\x1b[?2026h\x1b[Hone\x1b[K\r\ntwo\x1b[K\r\n\x1b[J\x1b[?2026l");
        assert!(frame(text, 80, 24, true, "-i").starts_with("\x1b[?1049h\x1b[?25l\x1b[?2026h"));
    }

    #[test]
    fn a_width_that_is_no_positive_number_is_ignored() {
        let asked = ["120", " 60 ", "1", "99999", "0", "-5", "", "wide", "120x40", "99999999999999999999"];
        let widths = asked.map(|text| width_in(Some(text)));
        assert_eq!(widths, [120, 60, 40, 1000, 80, 80, 80, 80, 80, 80]);
        assert_eq!(width_in(None), 80);
    }

    #[test]
    fn the_time_of_this_place_is_that_of_the_system() {
        for time in [Timestamp(1_767_323_045_000), Timestamp(1_783_000_000_000)] {
            let system = jiff::Timestamp::from_millisecond(time.0).unwrap().to_zoned(TimeZone::system());
            assert_eq!(local_time(time, LONG_TIME), system.strftime(LONG_TIME).to_string());
        }
    }

    #[test]
    fn a_low_terminal_says_what_it_hides() {
        let frame = frame("1\n2\n3\n4\n5\n6\n", 80, 4, false, "-i");
        assert_eq!(frame.matches("\r\n").count(), 3);
        assert!(frame.contains("2\x1b[K\r\n4 more lines"), "{frame:?}");
        assert!(super::frame("1\n2\n3\n4\n", 10, 3, false, "-i").contains("3 more li~\x1b[K"));
    }
}
