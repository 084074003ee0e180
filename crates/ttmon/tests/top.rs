//! The real `ttmon top` in a pseudo-terminal.

mod charts;
mod choices;
mod processes;
mod replay;
mod trouble;
mod views;

use crate::support::terminal::Terminal;
use rustix::process::Signal;

/// What a terminal sends for keys that have no character.
mod key {
    pub const UP: &str = "\x1b[A";
    pub const DOWN: &str = "\x1b[B";
    pub const RIGHT: &str = "\x1b[C";
    pub const LEFT: &str = "\x1b[D";
    pub const HOME: &str = "\x1b[H";
    pub const END: &str = "\x1b[F";
    pub const PAGE_UP: &str = "\x1b[5~";
    pub const PAGE_DOWN: &str = "\x1b[6~";
    pub const TAB: &str = "\t";
    pub const SHIFT_TAB: &str = "\x1b[Z";
    pub const ENTER: &str = "\r";
    pub const ESC: &str = "\x1b";
    pub const F1: &str = "\x1bOP";
    pub const F2: &str = "\x1bOQ";
    pub const F4: &str = "\x1bOS";
    pub const F5: &str = "\x1b[15~";
    pub const F6: &str = "\x1b[17~";
    pub const F9: &str = "\x1b[20~";
    pub const F12: &str = "\x1b[24~";
    pub const CONTROL_D: &str = "\x04";
    pub const CONTROL_L: &str = "\x0c";
    pub const CONTROL_U: &str = "\x15";
}

/// The time in the first line.
fn clock(text: &str) -> Option<String> {
    let time = text.lines().next()?.split_whitespace().next_back()?;
    (time.len() == 8 && time.split(':').count() == 3).then(|| time.to_owned())
}

fn top(columns: u16, rows: u16) -> Terminal {
    let terminal = Terminal::start(&["top", "--sim"], columns, rows);
    terminal.await_text("SIMULATED");
    terminal
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    for key in ["q", "\x1b[21~", "\x03"] {
        let mut terminal = top(100, 30);
        terminal.look(|seen| assert!(seen.screen.screen().alternate_screen()));
        terminal.keys(key);
        assert!(terminal.end().success(), "{key:?}");
        terminal.assert_restored();
    }
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut terminal = top(100, 30);
        terminal.signal(signal);
        assert!(terminal.end().success(), "{signal:?}");
        terminal.assert_restored();
    }
}

#[test]
fn ctrl_z_gives_the_terminal_back_until_it_goes_on() {
    let mut terminal = top(100, 30);
    for stop in [|terminal: &Terminal| terminal.keys("\x1a"), |terminal: &Terminal| terminal.signal(Signal::TSTP)] {
        stop(&terminal);
        terminal.await_that("a stop", |_| terminal.is_stopped());
        terminal.await_no_text("SIMULATED");
        terminal.assert_restored();
        terminal.signal(Signal::CONT);
        terminal.await_text("SIMULATED");
    }
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
}

#[test]
fn a_storm_of_sizes_does_no_harm() {
    let terminal = top(100, 30);
    for n in 0u16..200 {
        terminal.resize(1 + n * 37 % 300, 1 + n * 17 % 90);
        if n % 10 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
    }
    terminal.resize(3, 2);
    terminal.resize(120, 40);
    terminal.await_text("SIMULATED");
    terminal.resize(30, 5);
    terminal.await_text("too small");
    terminal.resize(100, 30);
    terminal.await_text("SIMULATED");
}

#[test]
fn a_key_that_comes_together_with_a_new_size_is_not_forgotten() {
    let terminal = top(120, 40);
    for n in 0..100 {
        let wanted = ["1 p150a", "2 p150a", "3 p150a", "0 p150a"][n % 4];
        terminal.resize(120 + (n as u16 + 1) % 2, 40);
        // Now a little sooner, now a little later.
        std::thread::sleep(std::time::Duration::from_micros(n as u64 * 20));
        terminal.answer("n", "another device", |text| text.contains(&format!("▸{wanted}")));
    }
}

#[test]
fn as_many_keys_as_a_terminal_holds_are_all_seen_to() {
    let terminal = top(120, 40);
    terminal.answer(&"n".repeat(3001), "the device after the first", |text| text.contains("▸1 p150a"));
    terminal.answer("N", "the first device", |text| text.contains("▸0 p150a"));
}

#[test]
fn it_ends_when_its_terminal_is_closed() {
    assert!(top(100, 30).closing_ends_it());
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let run = crate::support::ttmon(&["top", "--sim"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("needs a terminal: use `ttmon smi`"), "{}", run.err);
}

#[test]
fn a_cluster_descriptor_places_the_chips() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../harness/clusters/t3k.yaml");
    let mut terminal = Terminal::start(&["top", "--sim=n300x4", "--topology", file], 100, 30);
    terminal.await_text("SIMULATED");
    terminal.keys("3");
    terminal.await_text("8 chips");
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
}
