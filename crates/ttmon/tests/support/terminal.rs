//! A real `ttmon` in a pseudo-terminal, and what a person would see there.

use super::TTMON;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A terminal with the program in it, killed when dropped.
pub struct Terminal {
    pub child: Child,
    master: File,
    /// Kept open, so that the terminal outlives the program and can be looked at.
    slave: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Seen>>,
    reader: Option<JoinHandle<()>>,
    is_closing: Arc<AtomicBool>,
}

/// What has come out of the program.
pub struct Seen {
    pub screen: vt100::Parser,
    pub bytes: usize,
}

impl Terminal {
    /// Starts `ttmon` with these words, as a shell would: in a session of its own, with this as its terminal.
    pub fn start(arguments: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::start_with(arguments, columns, rows, |_| {})
    }

    pub fn start_with(arguments: &[&str], columns: u16, rows: u16, change: impl FnOnce(&mut Command)) -> Terminal {
        Terminal::start_under(&[], arguments, columns, rows, change)
    }

    /// The same, with another program that starts it.
    pub fn start_under(
        wrapper: &[&str],
        arguments: &[&str],
        columns: u16,
        rows: u16,
        change: impl FnOnce(&mut Command),
    ) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave: OwnedFd = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap().into();
        resize(&slave, columns, rows);
        let before = tcgetattr(&slave).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(wrapper).arg(TTMON).args(arguments).stdin(end()).stdout(end()).stderr(end());
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("TZ", "UTC").env_remove("NO_COLOR");
        command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("LC_ALL").env_remove("COLORTERM");
        change(&mut command);
        let child = command.spawn().unwrap();
        let seen = Arc::new(Mutex::new(Seen { screen: vt100::Parser::new(some(rows), some(columns), 0), bytes: 0 }));
        let (mut from, into) = (File::from(master.try_clone().unwrap()), seen.clone());
        let is_closing = Arc::new(AtomicBool::new(false));
        let closing = is_closing.clone();
        let reader = std::thread::spawn(move || {
            let (mut buffer, mut coming) = (vec![0; 1 << 16], Vec::new());
            let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !closing.load(Relaxed) {
                if poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&moment)) == Ok(0) {
                    continue;
                }
                let Ok(bytes @ 1..) = from.read(&mut buffer) else { return };
                let mut seen = into.lock().unwrap();
                seen.bytes += bytes;
                coming.extend_from_slice(&buffer[..bytes]);
                let whole = whole_pictures(&coming);
                seen.screen.process(&coming[..whole]);
                coming.drain(..whole);
            }
        });
        Terminal { child, master: master.into(), slave, before, seen, reader: Some(reader), is_closing }
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.seen.lock().unwrap())
    }

    /// Types.
    pub fn keys(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).unwrap();
    }

    /// Presses a button of the mouse (0 left, 64 wheel up, 65 wheel down; 32 more while it is dragged), or lets it go.
    pub fn mouse(&self, button: u8, column: u16, row: u16, is_down: bool) {
        self.keys(&format!("\x1b[<{button};{};{}{}", column + 1, row + 1, if is_down { 'M' } else { 'm' }));
    }

    pub fn click(&self, column: u16, row: u16) {
        self.mouse(0, column, row, true);
        self.mouse(0, column, row, false);
    }

    /// Writes on the screen as somebody else would, behind the back of the program.
    pub fn scribble(&self, text: &str) {
        File::from(self.slave.try_clone().unwrap()).write_all(text.as_bytes()).unwrap();
    }

    /// Whether a text stands out: on a ground of its own, or reversed.
    pub fn is_marked(&self, what: &str) -> bool {
        let Some((column, row)) = self.find(what) else { return false };
        self.stands_out(column, row)
    }

    pub fn stands_out(&self, column: u16, row: u16) -> bool {
        self.look(|seen| {
            let cell = seen.screen.screen().cell(row, column).unwrap();
            cell.bgcolor() != vt100::Color::Default || cell.inverse()
        })
    }

    /// Types, and waits until the screen shows what follows from it. How long that took.
    pub fn answer(&self, keys: &str, what: &str, is_so: impl Fn(&str) -> bool) -> Duration {
        let asked = Instant::now();
        self.keys(keys);
        self.await_that(&format!("{what} after {keys:?}"), is_so);
        asked.elapsed()
    }

    /// Waits until the screen shows something.
    pub fn await_text(&self, what: &str) -> String {
        self.await_that(&format!("{what:?} on the screen"), |text| text.contains(what))
    }

    pub fn await_no_text(&self, what: &str) -> String {
        self.await_that(&format!("no {what:?} on the screen"), |text| !text.contains(what))
    }

    pub fn await_that(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let text = self.text();
            if is_so(&text) {
                return text;
            }
            assert!(Instant::now() < until, "there never was {what}, but:\n{text}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Where a text stands: column and row.
    pub fn find(&self, what: &str) -> Option<(u16, u16)> {
        find(&self.text(), what)
    }

    /// The same, as soon as it stands there: a picture may still be on its way.
    pub fn place(&self, what: &str) -> (u16, u16) {
        find(&self.await_text(what), what).unwrap()
    }

    /// Makes the window larger or smaller.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.seen.lock().unwrap().screen.screen_mut().set_size(some(rows), some(columns));
        resize(&self.slave, columns, rows);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether the process is stopped.
    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    }

    /// Waits for the end.
    pub fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What was written last is read, too.
                std::thread::sleep(Duration::from_millis(50));
                return status;
            }
            assert!(Instant::now() < until, "it does not end, but shows:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes the window, and leaves the program behind. Whether it ends then.
    pub fn closing_ends_it(mut self) -> bool {
        self.is_closing.store(true, Relaxed);
        self.reader.take().unwrap().join().unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        // Both ends: the program has the last ones of its own side.
        self.slave = null.try_clone().unwrap().into();
        self.master = null;
        let until = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Whether the terminal is as it was before the program.
    pub fn assert_restored(&self) {
        let now = tcgetattr(&self.slave).unwrap();
        let modes =
            |termios: &Termios| (termios.input_modes, termios.output_modes, termios.control_modes, termios.local_modes);
        assert_eq!(modes(&now), modes(&self.before), "the terminal's modes");
        self.look(|seen| {
            let screen = seen.screen.screen();
            assert!(!screen.alternate_screen(), "the other screen is left");
            assert!(!screen.hide_cursor(), "the cursor is seen");
            assert!(!screen.bracketed_paste(), "pasting is as usual");
            assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "the mouse is the terminal's");
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Asked first, so that it can take its simulated machine away.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(self.pid(), Signal::TERM);
        }
        let until = Instant::now() + Duration::from_secs(2);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Length of the bytes that belong to no picture that is still on its way: a terminal shows pictures as a whole.
fn whole_pictures(bytes: &[u8]) -> usize {
    const BEGIN: &[u8] = b"\x1b[?2026h";
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|part| part == mark);
    match (last(BEGIN), last(b"\x1b[?2026l")) {
        (Some(begin), None) => begin,
        (Some(begin), Some(end)) if end < begin => begin,
        // A read may end within the mark.
        _ => bytes.len() - (1..BEGIN.len()).rev().find(|n| bytes.ends_with(&BEGIN[..*n])).unwrap_or(0),
    }
}

#[test]
fn a_picture_is_shown_as_a_whole_wherever_reads_cut_it() {
    let sent = b"before\x1b[?2026hpicture\x1b[?2026lafter";
    let begin = "before".len();
    for cut in begin..sent.len() - "after".len() {
        assert_eq!(whole_pictures(&sent[..cut]), begin, "{cut}");
    }
    assert_eq!(whole_pictures(sent), sent.len());
}

fn find(text: &str, what: &str) -> Option<(u16, u16)> {
    text.lines().enumerate().find_map(|(row, line)| {
        let at = line.find(what)?;
        Some((line[..at].chars().count() as u16, row as u16))
    })
}

fn resize(terminal: &OwnedFd, columns: u16, rows: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

fn some(number: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(number).unwrap()
}
