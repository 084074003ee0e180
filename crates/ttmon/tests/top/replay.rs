//! A recording, played.

use super::key;
use crate::support::terminal::Terminal;
use crate::support::ttmon;

/// Which sample is shown.
fn at(text: &str) -> Option<usize> {
    text.split("replay ").nth(1)?.split('/').next()?.parse().ok()
}

#[test]
fn a_recording_is_played_at_any_pace_and_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("night.rec");
    let name = file.to_str().unwrap();
    let run = ttmon(&["record", "--sim=p150x4", "--every", "100ms", "--for", "3s", "-o", name]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let mut terminal = Terminal::start(&["top", "--replay", name], 120, 40);
    terminal.await_text("night.rec");
    terminal.keys("p");
    terminal.await_text("PAUSED");
    let shows =
        |keys: &str, wanted: usize| terminal.answer(keys, &format!("sample {wanted}"), |text| at(text) == Some(wanted));
    shows("{", 1);
    shows("]", 2);
    shows("]]", 4);
    shows("[", 3);
    shows("[[[[[", 1);
    let len: usize = terminal.text().split("replay 1/").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((20..=40).contains(&len), "{len}");
    shows("}", len);
    shows("]", len);
    shows("{", 1);
    terminal.keys("<<");
    terminal.await_text("replay speed: 0.25x");
    terminal.keys(">>>>>>>");
    terminal.await_text("replay speed: 32x");
    // Whoever has these pids today is somebody else.
    terminal.keys(&[key::HOME, key::F9].concat());
    terminal.await_text("signals cannot be sent in a replay");
    terminal.keys("p");
    terminal.await_that("the end of it", |text| at(text) == Some(len));
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
}

#[test]
fn the_past_is_shown_at_a_moment_and_visited_from_the_present() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("1.ttmon");
    let name = file.to_str().unwrap();
    let run = ttmon(&["record", "--sim=p150x4,hang=1@1s", "--every", "100ms", "--for", "3s", "-o", name]);
    assert_eq!(run.code, Some(0), "{}", run.err);

    let mut terminal = Terminal::start(&["top", "--replay", name, "--at", "now"], 120, 40);
    terminal.await_text("PAUSED");
    terminal.await_that("the last sample", |text| at(text).is_some_and(|at| at > 20));
    terminal.await_text("▲");
    terminal.answer("(", "the hang", |text| at(text).is_some_and(|at| at < 20) && text.contains("1 hung"));
    terminal.answer("(", "nothing before", |text| text.contains("no warning or incident before this moment"));
    terminal.keys("T");
    terminal.await_text("this is the past already");
    terminal.keys("q");
    assert!(terminal.end().success());

    let folder = folder.path().to_str().unwrap();
    let mut terminal = Terminal::start(&["top", "--sim=p150", "--black-box", folder], 120, 40);
    terminal.await_text("Processes 1");
    terminal.answer("T", "the black box", |text| text.contains("black box  replay") && text.contains("4 chips"));
    terminal.answer("T", "the present", |text| !text.contains("replay") && text.contains("Processes 1"));
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
}

#[test]
fn what_top_records_has_a_log_that_why_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watched.ttmon");
    let name = file.to_str().unwrap();
    let mut terminal =
        Terminal::start(&["top", "--sim=p150x4,agent,hang=1@1s", "-d", "0.2", "--record", name], 120, 40);
    terminal.await_text("hung");
    terminal.keys("q");
    assert!(terminal.end().success());
    let recording = watch::record::Recording::open(&file).unwrap();
    let mut events = Vec::new();
    let (from, to) = recording.span();
    recording.each_entry(from, to, |entry| {
        if let model::LogEntry::Event(event) = entry {
            events.push(event.text);
        }
    });
    assert!(recording.has_log() && events.iter().any(|text| text.contains("ok → hung")), "{events:?}");
    let run = ttmon(&["why", "--replay", name]);
    assert!(run.code == Some(0) && run.out.contains("device 1: ok → hung"), "{} {}", run.out, run.err);
}
