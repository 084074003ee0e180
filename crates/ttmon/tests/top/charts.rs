//! The charts: every key, the wheel, dragging and clicking.

use super::key;
use crate::support::terminal::Terminal;

/// The line of time labels below the first charts.
fn axis(text: &str) -> Option<(u16, String)> {
    let is_axis = |line: &str| line.starts_with("└─") || line.starts_with("+-");
    let row = text.lines().position(is_axis)?;
    Some((row as u16, text.lines().nth(row)?.to_owned()))
}

fn labels(text: &str) -> String {
    axis(text).map(|axis| axis.1).unwrap_or_default()
}

#[test]
fn keys_and_the_mouse_change_what_charts_show() {
    // With ASCII a column is a sample: there is soon more than fits.
    let terminal = Terminal::start(&["top", "--sim=p150x4", "--ascii", "--interval", "0.1"], 80, 40);
    terminal.await_text("+ Power of device 0: ");
    let first_chart = terminal.place("+ Power of device 0: ");
    let place = (first_chart.0 + 25, first_chart.1 + 3);

    terminal.keys("m");
    terminal.await_that("another figure first", |text| {
        !text.contains("+ Power of device 0: ") || text.find("Temperature of") < text.find("Power of")
    });
    terminal.keys("mmmmmmmmm");
    terminal.await_that("the first figure first again", |text| text.contains("+ Power of device 0: "));
    terminal.keys("o");
    terminal.await_that("all devices in one", |text| text.contains("Power  0: ") || text.contains("Power  max"));
    terminal.keys("o");
    terminal.await_text("+ Power of device 0: ");
    terminal.keys("f");
    terminal.await_text(":::::");
    terminal.keys("f");
    terminal.await_no_text(":::::");
    let at = |text: &str| labels(text).find("now");
    let right = at(&terminal.text()).unwrap();
    terminal.keys("r");
    terminal.await_that("the newest at the left", |text| at(text).is_some_and(|left| left < right));
    terminal.keys("r");
    terminal.await_that("the newest at the right", |text| at(text) == Some(right));

    // A longer time and a shorter one; `0` brings back the first.
    let usual = labels(&terminal.text());
    for (longer, shorter) in [("Z", "z"), ("x", "z")] {
        terminal.answer(longer, "a longer time", |text| labels(text) != usual);
        terminal.answer(shorter, "the former time", |text| labels(text) == usual);
    }
    terminal.answer("ZZ", "a longer time", |text| labels(text) != usual);
    terminal.answer("00", "the former time", |text| labels(text) == usual);
    terminal.mouse(65, place.0, place.1, true);
    terminal.await_that("a longer time by the wheel", |text| labels(text) != usual);
    terminal.mouse(64, place.0, place.1, true);
    terminal.keys("00");
    terminal.await_that("the former time by the wheel", |text| labels(text) == usual);

    // Back in time, as soon as there is more than fits.
    let is_past = |text: &str| !labels(text).contains("now");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !is_past(&terminal.text()) {
        assert!(std::time::Instant::now() < until, "{}", terminal.text());
        terminal.keys(",");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    terminal.answer("......", "the present", |text| !is_past(text));
    terminal.answer(",", "the past", is_past);
    terminal.answer("0", "the present", |text| !is_past(text));
    terminal.answer(",", "the past", is_past);
    terminal.answer(key::ESC, "the present", |text| !is_past(text));

    terminal.keys("c");
    terminal.await_text("Power at ");
    let time = |text: &str| text.split("Power at ").nth(1).map(|rest| rest[..8].to_owned());
    let then = time(&terminal.text());
    terminal.keys(&key::LEFT.repeat(15));
    terminal.await_that("the cursor further back", |text| time(text).is_some_and(|now| Some(now) < then));
    terminal.keys(key::END);
    terminal.await_that("the cursor at the present", |text| time(text) >= then);
    terminal.keys(key::ESC);
    terminal.await_that("no cursor", |text| time(text).is_none());

    terminal.mouse(0, place.0, place.1, true);
    terminal.mouse(32, place.0 + 8, place.1, true);
    terminal.mouse(0, place.0 + 8, place.1, false);
    terminal.await_that("the past by dragging", is_past);
    terminal.answer("0", "the present", |text| !is_past(text));
    terminal.click(place.0, place.1);
    terminal.await_text("Power at ");
}
