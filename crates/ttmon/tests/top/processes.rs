//! The process table: every key and click, and signals that arrive.

use super::key;
use crate::support::Machine;
use crate::support::terminal::Terminal;
use rustix::process::Signal;
use sim::tree::Chip;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

/// Processes that hold a device of a made-up machine, and can be told apart. Killed when dropped.
struct Workers {
    children: Vec<Child>,
    machine: Machine,
}

impl Workers {
    fn start(count: usize) -> Workers {
        let machine = Machine::with(&[Chip::p150a(0)]);
        let worker = |n: usize| {
            let name = format!("worker-{n:02}-with-a-name-that-is-longer-than-most-screens-have-room-for");
            Command::new("sleep").arg0(name).arg("600").spawn().unwrap()
        };
        let children: Vec<Child> = (0..count).map(worker).collect();
        machine.set_pids(0, &children.iter().map(Child::id).collect::<Vec<_>>());
        Workers { children, machine }
    }

    /// The monitor on their machine, sorted by pid.
    fn watched(&self, options: &[&str]) -> Terminal {
        let all = [&["top", "--root", self.machine.root(), "--service", "off", "--interval", "0.2"], options].concat();
        let terminal = Terminal::start(&all, 120, 40);
        terminal.await_text("worker-");
        terminal.keys(key::F6);
        terminal.await_text("Sort by");
        terminal.keys(&["2", key::ENTER].concat());
        terminal.await_no_text("Sort by");
        terminal.await_text("▲PID");
        terminal
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The number of the worker whose row is selected.
fn selected(terminal: &Terminal) -> Option<u32> {
    rows(terminal).into_iter().find_map(|(n, row)| terminal.stands_out(10, row).then_some(n))
}

/// The workers on the screen, and where.
fn rows(terminal: &Terminal) -> Vec<(u32, u16)> {
    let text = terminal.text();
    let is_row = |line: &str| line.trim_start_matches(['•', ' ']).starts_with("0 ");
    let number = |line: &str| line.split("worker-").nth(1).filter(|_| is_row(line))?.get(..2)?.parse().ok();
    text.lines().zip(0..).filter_map(|(line, row)| Some((number(line)?, row))).collect()
}

fn selects(terminal: &Terminal, keys: &str, n: u32) {
    terminal.keys(keys);
    terminal.await_that(&format!("worker {n} selected by {keys:?}"), |_| selected(terminal) == Some(n));
}

#[test]
fn keys_move_through_the_table_sort_tag_and_filter_it() {
    let workers = Workers::start(30);
    let terminal = workers.watched(&[]);
    selects(&terminal, key::HOME, 0);
    selects(&terminal, key::DOWN, 1);
    selects(&terminal, "j", 2);
    selects(&terminal, "k", 1);
    selects(&terminal, key::UP, 0);
    selects(&terminal, key::END, 29);
    selects(&terminal, "g", 0);
    selects(&terminal, "G", 29);
    let page = rows(&terminal).len() as u32 - 1;
    selects(&terminal, key::PAGE_UP, 29 - page);
    selects(&terminal, key::PAGE_DOWN, 29);
    selects(&terminal, key::CONTROL_U, 29 - page);
    selects(&terminal, key::CONTROL_D, 29);
    selects(&terminal, key::HOME, 0);

    for (right, left) in [(key::RIGHT, key::LEFT), ("l", "h")] {
        terminal.keys(right);
        terminal.await_no_text("worker-");
        terminal.await_text("with-a-name-that");
        terminal.keys(left);
        terminal.await_text("worker-00");
    }

    terminal.keys("-");
    terminal.await_that("the largest pid first", |text| {
        text.contains("▼PID") && rows(&terminal)[0].0 > rows(&terminal)[1].0
    });
    terminal.keys("+");
    terminal.await_that("the smallest pid first", |text| {
        text.contains("▲PID") && rows(&terminal)[0].0 < rows(&terminal)[1].0
    });

    terminal.keys("t");
    terminal.await_text(" tree ");
    terminal.keys("t");
    terminal.await_no_text(" tree ");

    selects(&terminal, key::HOME, 0);
    selects(&terminal, " ", 1);
    terminal.await_text("tagged 1");
    selects(&terminal, " ", 2);
    terminal.await_text("tagged 2");
    terminal.keys("U");
    terminal.await_no_text("tagged");

    for open in ["/", key::F4] {
        terminal.keys(open);
        terminal.await_text("Filter: ");
        terminal.keys("command~worker-1");
        terminal.await_text("10 of 30");
        terminal.keys(" dram>");
        terminal.await_that("what is wrong", |text| text.lines().last().is_some_and(|line| line.contains("dram")));
        // What is wrong cannot be kept.
        terminal.keys(key::ENTER);
        terminal.keys(&"\x7f".repeat(6));
        terminal.await_text("Filter: command~worker-1 ");
        terminal.keys(key::ESC);
        terminal.await_no_text("Filter: ");
        terminal.await_text("Processes 30");
    }
    terminal.keys("/");
    terminal.await_text("Filter: ");
    terminal.keys(&["worker-07", key::ENTER].concat());
    terminal.await_no_text("Filter: ");
    terminal.await_that("one worker", |text| {
        text.contains("1 of 30") && text.contains("filter worker-07") && rows(&terminal).len() == 1
    });

    terminal.keys(key::ENTER);
    terminal.await_text("Command    worker-07");
    // It is asked about once it is looked at.
    terminal.await_text("Buffers, the largest first");
    terminal.resize(120, 14);
    terminal.await_that("a lower window", |text| text.lines().nth(12).is_some_and(|line| line.starts_with('└')));
    terminal.keys(key::END);
    terminal.await_no_text("Command    worker-07");
    terminal.keys(key::HOME);
    terminal.await_text("Command    worker-07");
    terminal.keys(key::ESC);
    terminal.await_no_text("Esc: close");
    terminal.keys(key::ESC);
    terminal.await_text("Processes 30");
}

#[test]
fn the_mouse_selects_sorts_scrolls_and_opens() {
    let workers = Workers::start(30);
    let terminal = workers.watched(&[]);
    selects(&terminal, key::HOME, 0);
    let row_of = |n: u32| rows(&terminal).into_iter().find(|row| row.0 == n).unwrap().1;
    terminal.click(30, row_of(4));
    terminal.await_that("the clicked one selected", |_| selected(&terminal) == Some(4));

    let (column, row) = terminal.place("PID");
    terminal.click(column, row);
    terminal.await_text("▼PID");
    let (column, row) = terminal.place("RSS");
    terminal.click(column, row);
    terminal.await_text("▼RSS");
    let (column, row) = terminal.place("PID");
    terminal.click(column, row);
    terminal.await_text("▲PID");

    selects(&terminal, key::HOME, 0);
    let row = row_of(3);
    terminal.mouse(65, 30, row, true);
    terminal.await_that("three rows further", |_| rows(&terminal)[0].0 == 3);
    terminal.mouse(64, 30, row, true);
    terminal.await_that("back again", |_| rows(&terminal)[0].0 == 0);

    terminal.click(30, row_of(2));
    terminal.click(30, row_of(2));
    terminal.await_text("Command    worker-02");
    terminal.await_text("Buffers, the largest first");
    terminal.resize(120, 14);
    terminal.await_that("a lower window", |text| text.lines().nth(12).is_some_and(|line| line.starts_with('└')));
    terminal.mouse(65, 30, 10, true);
    terminal.await_no_text("Command    worker-02");
    terminal.click(30, 0);
    terminal.await_no_text("Esc: close");
    terminal.resize(120, 40);
    terminal.await_that("a high window", |_| terminal.find(" Processes ").is_some_and(|(_, row)| row > 14));

    terminal.keys("s");
    terminal.await_text("since when it runs");
    let (column, row) = terminal.place("since when it runs");
    terminal.click(column, row);
    terminal.await_no_text("since when it runs");
    terminal.await_text("▼AGE");
}

#[test]
fn a_signal_is_asked_about_first_and_then_arrives() {
    let mut workers = Workers::start(3);
    let terminal = workers.watched(&[]);
    let pids: Vec<u32> = workers.children.iter().map(Child::id).collect();
    selects(&terminal, key::HOME, 0);
    for (open, no) in [(key::F9, "n"), ("K", key::ESC)] {
        terminal.keys(open);
        terminal.await_text("Send a signal");
        terminal.keys(key::ENTER);
        terminal.await_text(&format!("Send SIGTERM to pid {} (sleep)? y/n", pids[0]));
        terminal.keys(no);
        terminal.await_text("nothing was sent");
    }
    assert!(workers.children.iter_mut().all(|child| child.try_wait().unwrap().is_none()));
    // To the selected one, chosen by a click in the menu.
    terminal.keys(key::F9);
    terminal.await_text("Send a signal");
    let (column, row) = terminal.place("SIGUSR1");
    terminal.click(column, row);
    terminal.await_text(&format!("Send SIGUSR1 to pid {} (sleep)? y/n", pids[0]));
    terminal.keys("y");
    terminal.await_text("SIGUSR1 was sent");
    assert_eq!(workers.children[0].wait().unwrap().signal(), Some(Signal::USR1.as_raw()));
    terminal.await_that("two processes", |_| rows(&terminal).len() == 2);
    // To those that are tagged.
    selects(&terminal, key::HOME, 1);
    terminal.keys("  ");
    terminal.await_text("tagged 2");
    terminal.keys(&[key::F9, "9", key::ENTER].concat());
    terminal.await_text(&format!("Send SIGKILL to these 2 processes: {}, {}? y/n", pids[1], pids[2]));
    terminal.keys("y");
    terminal.await_text("SIGKILL was sent to 2 processes");
    for child in &mut workers.children[1..] {
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }
    // The driver's list, here a plain file, still has them.
    terminal.await_text("Used by processes that cannot be named");
}

#[test]
fn a_read_only_session_sends_nothing() {
    let mut workers = Workers::start(1);
    let terminal = workers.watched(&["--read-only"]);
    selects(&terminal, key::HOME, 0);
    for keys in [key::F9, "K"] {
        terminal.keys(keys);
        terminal.await_text("read-only: signals are disabled");
        terminal.keys(&[key::ENTER, "y"].concat());
        terminal.await_text("Esc: close");
        terminal.keys(key::ESC);
        terminal.await_no_text("Esc: close");
    }
    assert!(!terminal.text().contains("F9"));
    assert_eq!(workers.children[0].try_wait().unwrap(), None);
}
