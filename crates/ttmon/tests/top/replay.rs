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
