//! What `ttmon mem` prints, pinned. Refresh with `UPDATE_EXPECT=1` and read the difference.

use super::view::View;
use super::{draw, example};
use crate::style::Style;
use crate::text::width;
use expect_test::expect_file;

const TIME: &str = "Fri Jan  2 03:04:05 2026";

fn style(columns: usize) -> Style {
    Style { columns, rows: None, color: false, unicode: true }
}

fn is_framed(line: &str) -> bool {
    line.starts_with(['│', '├', '╞', '┌', '└', '|', '+'])
}

/// The text, of which every line of the frame has the same width.
fn framed(view: &View, style: Style) -> String {
    let text = draw::text(view, &style, TIME);
    for line in text.lines().filter(|line| is_framed(line)) {
        assert_eq!(width(line), style.columns, "{line}\n{text}");
    }
    text
}

#[test]
fn eighty_columns_are_enough() {
    expect_file!["golden/mem-80.txt"].assert_eq(&framed(&example::machine(), style(80)));
}

#[test]
fn more_columns_hold_more() {
    expect_file!["golden/mem-120.txt"].assert_eq(&framed(&example::machine(), style(120)));
}

#[test]
fn a_low_terminal_has_a_line_for_each_chip_so_that_processes_and_buffers_stay_in_view() {
    let text = framed(&example::machine(), Style { rows: Some(23), ..style(80) });
    assert!(text.lines().count() <= 23, "{text}");
    expect_file!["golden/mem-80x24.txt"].assert_eq(&text);
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let mut view = example::machine();
    view.processes.retain(|process| process.pid == 4711);
    let text = framed(&view, Style { unicode: false, ..style(80) });
    assert!(text.is_ascii(), "{text}");
    expect_file!["golden/mem-ascii.txt"].assert_eq(&text);
}

#[test]
fn colour_tells_kinds_apart_and_what_is_wrong() {
    let text = draw::text(&example::machine(), &Style { color: true, ..style(80) }, TIME);
    expect_file!["golden/mem-color.txt"].assert_eq(&text.replace('\x1b', "␛"));
}

#[test]
fn a_galaxy_has_a_line_for_each_of_its_32_chips_or_half_of_one() {
    expect_file!["golden/mem-galaxy-80.txt"].assert_eq(&framed(&example::galaxy(), style(80)));
    expect_file!["golden/mem-galaxy-120x40.txt"]
        .assert_eq(&framed(&example::galaxy(), Style { rows: Some(39), ..style(120) }));
    let low = framed(&example::galaxy(), Style { rows: Some(23), ..style(80) });
    assert!(low.lines().count() <= 23, "{low}");
    expect_file!["golden/mem-galaxy-80x24.txt"].assert_eq(&low);
}

#[test]
fn deaths_are_shown_when_there_are_any() {
    let text = framed(&example::with_a_death(), style(120));
    assert!(text.contains("Died with device memory") && text.contains("SIGKILL") && text.contains("60 s"), "{text}");
    assert!(!framed(&example::machine(), style(120)).contains("Died"));
}

#[test]
fn json_has_all_that_is_shown_and_can_be_read_back() {
    let text = serde_json::to_string_pretty(&example::with_a_death()).unwrap() + "\n";
    assert_eq!(serde_json::from_str::<View>(&text).unwrap(), example::with_a_death());
    expect_file!["golden/mem.json"].assert_eq(&text);
}

#[test]
fn a_simulated_machine_says_so() {
    let mut view = example::machine();
    view.host.simulated = true;
    assert!(framed(&view, style(80)).contains("SIMULATED"));
}

proptest::proptest! {
    #[test]
    fn any_words_of_a_process_stay_in_the_frame(words: String, columns in 0usize..200, rows in proptest::option::of(0usize..60)) {
        let mut view = example::machine();
        view.processes[0].command = Some(words.clone());
        view.processes[0].name = Some(words.clone());
        view.chips[0].board = Some(words.clone());
        view.chips[1].id = words.clone();
        view.buffers[0].label = Some(words);
        let text = draw::text(&view, &Style { rows, ..style(columns) }, TIME);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        let widths: std::collections::HashSet<usize> =
            text.lines().filter(|line| is_framed(line)).map(width).collect();
        assert_eq!(widths.len(), 1, "{text}");
    }
}
