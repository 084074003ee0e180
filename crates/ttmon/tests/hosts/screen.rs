//! `ttmon top` over several machines, in a pseudo-terminal.

use super::{answering, nobody};
use crate::support::pretend::Pretend;
use crate::support::service::wait_for;
use crate::support::terminal::Terminal;

const DOWN: &str = "\x1b[B";
const ENTER: &str = "\r";
const ESC: &str = "\x1b";

#[test]
fn machines_come_and_go_while_they_are_watched() {
    let (one, other) = (answering(2, "lab-7"), answering(3, "lab-8"));
    let (address, name) = (other.address, other.name());
    let mut terminal = Terminal::start(&["top", "--host", &format!("{},{name}", one.name())], 120, 30);
    terminal.await_text("2 answer");
    terminal.await_text("5/5 devices ok");
    drop(other);
    let text = terminal.await_text("1 answer");
    let line = |text: &str| text.lines().find(|line| line.contains(&name)).unwrap_or_default().to_owned();
    assert!(line(&text).contains("no answer") && line(&text).contains("0/3"), "{text}");
    // It stands first now.
    assert!(text.find(&name) < text.find(&one.name()), "{text}");
    let back = Pretend::at(address);
    back.answer("snapshot", super::snapshot(&[sim::tree::Chip::p150a(0)], "lab-8"));
    terminal.await_text("3/3 devices ok");
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
}

#[test]
fn a_machine_is_entered_with_all_its_views_and_left_again() {
    let (one, other) = (answering(2, "lab-7"), answering(4, "lab-8"));
    let terminal = Terminal::start(&["top", "--host", &format!("{},{}", one.name(), other.name())], 120, 40);
    terminal.await_text("6/6 devices ok");
    terminal.answer(DOWN, "the second machine", |text| text.contains("6/6"));
    terminal.answer(ENTER, "its devices", |text| text.contains("3 p150a") && text.contains("lab-8"));
    terminal.answer("3", "its mesh", |text| text.contains("4 chips"));
    terminal.keys("2");
    let asked_for = |what: &str| other.asked().iter().any(|path| path.starts_with(&format!("/api/v1/{what}")));
    wait_for(|| asked_for("buffers?") && asked_for("history?series="), || format!("{:?}", other.asked()));
    terminal.answer("F", "all machines", |text| text.contains("6/6 devices ok"));
    terminal.answer("t", "all devices", |text| text.matches("p150a").count() == 6);
    assert!(!one.asked().iter().any(|path| path.starts_with("/api/v1/history")), "nobody looked at it");
}

#[test]
#[ignore = "long"]
fn keys_are_answered_while_a_machine_hangs() {
    let (one, hanging) = (answering(2, "lab-7"), answering(1, "lab-8"));
    let hosts = format!("{},{},{}", one.name(), hanging.name(), nobody());
    let terminal = Terminal::start(&["top", "--host", &hosts], 120, 30);
    terminal.await_text("3/3 devices ok");
    hanging.hang(true);
    terminal.answer(ENTER, "the first machine", |text| text.contains("NO ANSWER"));
    terminal.answer(ESC, "all machines", |text| text.contains("Machines 3"));
    for _ in 0..20 {
        terminal.answer("t", "devices", |text| text.contains("p150a"));
        terminal.answer("t", "no devices", |text| !text.contains("p150a"));
    }
    terminal.await_text("1 answer");
    hanging.hang(false);
    terminal.await_text("2 answer");
}

#[test]
fn one_machine_alone_has_no_list() {
    let one = answering(2, "lab-7");
    let mut terminal = Terminal::start(&["top", "--host", &one.name()], 120, 30);
    let text = terminal.await_text("1 p150a");
    assert!(!text.contains("Fleet") && text.contains("lab-7"), "{text}");
    drop(one);
    terminal.await_text("NO ANSWER");
    terminal.await_text("silent");
    terminal.keys(ESC);
    terminal.await_text("press q to quit");
    terminal.keys("q");
    assert!(terminal.end().success());
}

#[test]
fn hundreds_of_machines_stay_usable() {
    let all = Pretend::start();
    let chips: Vec<sim::tree::Chip> = (0..8).map(sim::tree::Chip::p150a).collect();
    let body = super::snapshot(&chips, "node");
    let prefix = |n: usize| format!("/node-{n:04}");
    (0..300).for_each(|n| all.answer_below(&prefix(n), "snapshot", body.as_str()));
    let hosts: Vec<String> = (0..300).map(|n| format!("http://{}{}", all.name(), prefix(n))).collect();
    let mut terminal = Terminal::start(&["top", "--host", &hosts.join(",")], 120, 30);
    terminal.await_text("300 answer");
    terminal.await_text("2400/2400 devices ok");
    terminal.answer("t", "devices", |text| text.contains("of 2700"));
    terminal.answer("G", "the last machine", |text| text.contains("node-0299"));
    terminal.answer("t", "machines", |text| text.contains("of 300"));
    terminal.answer("/0123\r", "one of them", |text| text.contains("node-0123") && text.contains("1 of 300"));
    terminal.answer(ENTER, "its devices", |text| text.contains("Processes") && text.contains("node-0123"));
    terminal.answer(ESC, "the list", |text| text.contains("1 of 300"));
    terminal.keys("q");
    assert!(terminal.end().success());
}
