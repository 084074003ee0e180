//! Devices that hang, services that die, the program itself in trouble: the screen answers, or the terminal is given back.

use super::clock;
use crate::support::service::Service;
use crate::support::terminal::Terminal;
use crate::support::{Machine, needs};
use rustix::process::Signal;
use sim::tree::Chip;
use std::process::Command;
use std::time::{Duration, Instant};

/// Presses a key again and again for so long, and expects an answer each time. How long each took.
fn answers(terminal: &Terminal, time: Duration) -> Vec<Duration> {
    let until = Instant::now() + time;
    let selected = |text: &str| text.split('▸').nth(1).and_then(|rest| rest.split(' ').next().map(str::to_owned));
    let mut all = Vec::new();
    while Instant::now() < until {
        let before = selected(&terminal.text());
        all.push(terminal.answer("n", "another device", |text| selected(text).is_some() && selected(text) != before));
        std::thread::sleep(Duration::from_millis(20));
    }
    all
}

/// Says how long answers took. The machine may be busy with something else: only what a person would call frozen fails.
fn told(what: &str, mut all: Vec<Duration>) {
    all.sort();
    let (median, most) = (all[all.len() / 2], all[all.len() - 1]);
    eprintln!("{what}: {} keys, from key to picture {median:.1?} as a rule and {most:.1?} at most", all.len());
    assert!(most < Duration::from_secs(2), "{what}: {most:?}");
}

/// Waits for two more samples.
fn goes_on(terminal: &Terminal) {
    for _ in 0..2 {
        let now = clock(&terminal.text());
        terminal.await_that("a later time", |text| clock(text) != now);
    }
}

#[test]
#[ignore = "long"]
fn devices_that_hang_reset_or_vanish_do_not_keep_the_screen_waiting() {
    let sim = "--sim=p150x4,hang=2@1s,reset=1@1500ms,stuck=3@2s,lose=0@3s";
    let mut terminal = Terminal::start(&["top", sim, "--interval", "0.2"], 120, 40);
    terminal.await_text("SIMULATED");
    told("devices in trouble", answers(&terminal, Duration::from_secs(5)));
    terminal.await_text("hung");
    goes_on(&terminal);
    let asked = Instant::now();
    terminal.keys("q");
    assert!(terminal.end().success());
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    terminal.assert_restored();
}

#[test]
#[ignore = "long"]
fn a_service_that_stops_or_dies_is_done_without() {
    let mut service = Service::start(Machine::with(&[Chip::p150a(0), Chip::p150b(1)]));
    let (root, socket) = (service.machine.root(), service.socket());
    let words = ["top", "--root", root, "--service", socket.to_str().unwrap(), "--interval", "0.2"];
    let mut terminal = Terminal::start(&words, 120, 40);
    terminal.await_text("p150b");
    goes_on(&terminal);
    service.signal(Signal::STOP);
    told("a service that is stopped", answers(&terminal, Duration::from_secs(2)));
    goes_on(&terminal);
    service.signal(Signal::CONT);
    goes_on(&terminal);
    service.kill();
    told("a service that is dead", answers(&terminal, Duration::from_secs(1)));
    goes_on(&terminal);
    terminal.await_text("p150b");
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
}

#[test]
fn a_failure_of_its_own_gives_the_terminal_back_and_is_reported() {
    if !cfg!(debug_assertions) {
        return;
    }
    for (place, keys, said) in [
        ("keys", "\x10", ""),
        ("sampling", "", "error: sampling has failed: there are no more samples"),
        ("input", "j", "error: cannot read keys"),
    ] {
        let change = |command: &mut Command| {
            command.env("TTMON_TEST_PANIC", place).env("RUST_BACKTRACE", "0");
        };
        let mut terminal = Terminal::start_with(&["top", "--sim", "--interval", "1"], 100, 30, change);
        if !keys.is_empty() {
            terminal.await_text("SIMULATED");
            terminal.keys(keys);
        }
        assert!(!terminal.end().success(), "{place}");
        terminal.assert_restored();
        let text = terminal.text();
        assert!(text.contains(&format!("{place} fails on purpose")) && text.contains(said), "{place}: {text}");
        assert!(!text.contains("SIMULATED"), "{place}: {text}");
    }
}

#[test]
fn no_device_is_opened_and_nothing_is_written() {
    let test = "no_device_is_opened_and_nothing_is_written";
    if !needs::has(test, &["strace"]) {
        return;
    }
    let machine = Machine::with(&[Chip::p150a(0), Chip::n300(1)]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("trace");
    let strace = ["strace", "-f", "-qq", "-y", "-e", "trace=open,openat,openat2", "-o", log.to_str().unwrap()];
    let words = ["top", "--root", machine.root(), "--service", "off", "--interval", "0.2"];
    let mut terminal = Terminal::start_under(&strace, &words, 120, 40, |_| {});
    terminal.await_text("p150a");
    for keys in ["2", "3", "4", "1", "?", "q"] {
        terminal.keys(keys);
        std::thread::sleep(Duration::from_millis(300));
    }
    goes_on(&terminal);
    terminal.keys("q");
    assert!(terminal.end().success());
    let calls = std::fs::read_to_string(log).unwrap();
    assert!(calls.lines().count() > 50, "{calls}");
    for call in calls.lines() {
        let is_device = call.contains("dev/tenstorrent/") && !call.contains("O_DIRECTORY");
        assert!(!is_device && !call.contains("/dev/tenstorrent>, \""), "a device is opened: {call}");
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
        // The terminal is written to, and nothing else.
        assert!(
            !writes || call.contains("/dev/tty") || call.contains("/dev/pts"),
            "a file is opened for writing: {call}"
        );
    }
}
