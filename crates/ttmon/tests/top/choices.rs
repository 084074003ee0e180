//! Settings: the setup window, the file that they are saved to, and files with mistakes.

use super::key;
use crate::support::terminal::Terminal;
use std::path::Path;

fn with_config(file: &Path, columns: u16) -> Terminal {
    let terminal = Terminal::start(&["top", "--sim", "--config", file.to_str().unwrap()], columns, 40);
    terminal.await_text("SIMULATED");
    terminal
}

/// The colours of the first tab.
fn colours(terminal: &Terminal) -> (vt100::Color, vt100::Color) {
    terminal.look(|seen| {
        let cell = seen.screen.screen().cell(0, 2).unwrap();
        (cell.fgcolor(), cell.bgcolor())
    })
}

#[test]
fn what_is_chosen_is_seen_at_once_undone_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "# mine\n[top]\ntree = true # and why\n").unwrap();
    let terminal = with_config(&file, 160);
    terminal.await_text(" tree ");
    let before = colours(&terminal);
    for open in [key::F2, "S"] {
        terminal.keys(open);
        terminal.await_text("Setup");
        terminal.keys(key::RIGHT);
        terminal.await_that("another theme", |_| colours(&terminal) != before);
        terminal.keys(&[key::DOWN, "j", " "].concat());
        terminal.await_text("°F");
        terminal.keys(key::ESC);
        terminal.await_no_text("Fahrenheit");
        terminal.await_no_text("°F");
        terminal.await_that("the former theme", |_| colours(&terminal) == before);
    }
    terminal.keys(key::F2);
    terminal.await_text("Fahrenheit");
    // The mouse chooses, too: a click goes there, a second one changes.
    let (column, row) = terminal.place("Fahrenheit");
    terminal.click(column, row);
    terminal.await_text("Temperatures in °F");
    assert!(!terminal.text().contains("/194°F"));
    terminal.click(column, row);
    terminal.await_text("/194°F");
    terminal.keys(key::ENTER);
    terminal.await_no_text("Fahrenheit");
    terminal.await_text("/194°F");
    terminal.keys(key::F12);
    terminal.await_text("saved to ");
    let saved = std::fs::read_to_string(&file).unwrap();
    assert_eq!(saved, "# mine\n[top]\ntree = true # and why\nfahrenheit = true\n");
    terminal.keys("r");
    terminal.await_no_text("saved to ");
    terminal.keys("W");
    terminal.await_text("saved to ");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), saved + "reversed = true\n");
}

#[test]
fn the_mouse_is_given_back_to_the_terminal_when_that_is_chosen() {
    let terminal = with_config(Path::new("/proc/nothing/config.toml"), 120);
    let is_reported =
        || terminal.look(|seen| seen.screen.screen().mouse_protocol_mode() != vt100::MouseProtocolMode::None);
    terminal.await_that("reports of the mouse", |_| is_reported());
    terminal.keys(&[key::F2, key::END].concat());
    terminal.await_text("Enable the mouse");
    terminal.keys(" ");
    terminal.await_that("no reports", |_| !is_reported());
    terminal.keys(" ");
    terminal.await_that("reports again", |_| is_reported());
}

#[test]
fn a_file_with_mistakes_stops_nobody_and_the_mistake_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "[top]\nfahrenheit = true\nthem = 3\n").unwrap();
    let terminal = with_config(&file, 200);
    terminal.await_text("unknown key them: did you mean theme?");
    terminal.await_text("/194°F");
    std::fs::write(&file, "[top]\noops\n").unwrap();
    let terminal = with_config(&file, 200);
    terminal.await_text("config.toml");
    terminal.keys(key::F12);
    terminal.await_text("not saved, since the file would be lost");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[top]\noops\n");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let terminal = with_config(Path::new("/proc/nothing/config.toml"), 160);
    terminal.keys(key::F12);
    terminal.await_text("not saved: /proc/nothing/config.toml");
}

#[test]
fn the_options_of_nvtop_change_the_picture() {
    let start = |options: &[&str]| Terminal::start(&[&["top", "--sim=p150x4", "-d", "0.2"], options].concat(), 120, 40);
    let some = start(&["-i", "2,3", "--no-processes"]);
    some.await_that("two devices, charts, and no processes", |text| {
        text.contains("2 p150a  0000")
            && !text.contains("0 p150a  0000")
            && text.contains("Power of device 2")
            && !text.contains("COMMAND")
    });
    let plain = start(&["--no-charts", "--fahrenheit"]);
    plain.await_that("processes and no charts", |text| {
        text.contains("°F") && text.contains("COMMAND") && !text.contains("Power of device")
    });
}

#[test]
fn a_device_that_is_not_there_is_said_before_anything_is_drawn() {
    let mut terminal = Terminal::start(&["top", "--sim=p150", "-i", "9"], 100, 30);
    terminal.await_text("error: no device is called \"9\": there is 0");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(6));
}
