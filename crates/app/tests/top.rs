//! The real `ttmon top` in a pseudo-terminal.

#![allow(clippy::unwrap_used)]

mod support;

use rustix::process::Signal;
use support::terminal::Terminal;

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
fn it_ends_when_its_terminal_is_closed() {
    assert!(top(100, 30).closing_ends_it());
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let run = support::ttmon(&["top", "--sim"]);
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
