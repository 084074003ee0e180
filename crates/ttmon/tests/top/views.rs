//! Views, devices, help, redrawing, holding the picture, the pace.

use super::{clock, key, top};
use crate::support::terminal::Terminal;

/// The device that is selected.
fn device(text: &str) -> Option<char> {
    text.split('▸').nth(1)?.chars().next()
}

#[test]
fn views_open_by_number_by_v_and_by_a_click_on_their_tabs() {
    let terminal = top(120, 40);
    let tabs = ["1 Overview", "2 Memory", "3 Mesh", "4 Events"];
    let opens = |tab: &str| {
        terminal.await_that(&format!("the tab {tab}"), |_| {
            tabs.iter().all(|other| terminal.is_marked(other) == (*other == tab))
        });
        terminal.await_that("the processes in the overview alone", |text| {
            let is_list = text.lines().nth(1).is_some_and(|line| line.starts_with("┌ ") && line.contains("vent"));
            text.contains("COMMAND") == (tab == tabs[0]) && is_list == (tab == tabs[3])
        });
    };
    opens(tabs[0]);
    for (tab, n) in tabs.iter().zip(["1", "2", "3", "4"]).rev() {
        terminal.keys(n);
        opens(tab);
    }
    for tab in [tabs[1], tabs[2], tabs[3], tabs[0]] {
        terminal.keys("v");
        opens(tab);
    }
    for tab in [tabs[2], tabs[1], tabs[3], tabs[0]] {
        let (column, row) = terminal.place(tab);
        terminal.click(column + 2, row);
        opens(tab);
    }
    // A click on a key in the last line is that key.
    let (column, row) = terminal.place("v View");
    terminal.click(column + 3, row);
    opens(tabs[1]);
}

#[test]
fn devices_are_selected_with_keys_and_the_mouse_and_charts_follow() {
    let terminal = top(120, 40);
    let selects = |n: char| {
        terminal.await_that(&format!("device {n} selected"), |text| {
            device(text) == Some(n) && text.contains(&format!("Power of device {n}"))
        });
    };
    selects('0');
    for (keys, n) in [(key::TAB, '1'), ("n", '2'), (key::SHIFT_TAB, '1'), ("N", '0'), ("N", '3'), ("n", '0')] {
        terminal.keys(keys);
        selects(n);
    }
    let (column, row) = terminal.place(" 2 p150a");
    terminal.click(column + 4, row);
    selects('2');
    // A second click, or d, shows everything about it.
    terminal.click(column + 4, row);
    terminal.await_text("device 2, p150a: ");
    terminal.keys(key::ESC);
    terminal.await_no_text("Esc: close");
    terminal.keys("d");
    terminal.await_text("NUMA node");
    terminal.keys(key::PAGE_DOWN);
    terminal.await_text("Link degraded");
    terminal.keys(key::TAB);
    terminal.await_text("device 3, p150a: ");
    terminal.keys(key::ESC);
    selects('3');
}

#[test]
fn help_opens_scrolls_and_closes() {
    let terminal = top(100, 20);
    for keys in ["?", key::F1] {
        terminal.keys(keys);
        terminal.await_text("General");
        terminal.keys(key::PAGE_DOWN);
        terminal.await_no_text("General");
        terminal.keys(key::PAGE_UP);
        terminal.await_text("General");
        terminal.keys(key::DOWN);
        terminal.await_no_text("General");
        terminal.keys(key::ESC);
        terminal.await_no_text("any other key closes this");
    }
    let (column, row) = terminal.place("? Help");
    terminal.click(column, row);
    terminal.await_text("General");
    terminal.mouse(65, 50, 10, true);
    terminal.await_no_text("General");
    terminal.click(50, 10);
    terminal.await_no_text("any other key closes this");
}

#[test]
fn what_others_wrote_on_the_screen_can_be_wiped_away() {
    let terminal = top(100, 30);
    for keys in [key::F5, key::CONTROL_L] {
        terminal.scribble("\x1b[25;40HWRITTEN BY OTHERS");
        terminal.await_text("WRITTEN BY OTHERS");
        terminal.keys(keys);
        terminal.await_no_text("WRITTEN BY OTHERS");
    }
    terminal.await_text("SIMULATED");
}

#[test]
fn the_picture_can_be_held_while_sampling_goes_on_and_the_pace_changed() {
    let terminal = Terminal::start(&["top", "--sim", "--interval", "0.2"], 120, 40);
    terminal.await_text("SIMULATED");
    terminal.keys("p");
    let held = clock(&terminal.await_text("PAUSED"));
    assert!(held.is_some());
    std::thread::sleep(std::time::Duration::from_millis(2200));
    // Another device is selected in the picture that is held.
    terminal.answer("n", "another device", |text| device(text) == Some('1'));
    assert_eq!(clock(&terminal.text()), held);
    terminal.keys("p");
    let text = terminal.await_no_text("PAUSED");
    let seconds = |time: Option<String>| -> u32 {
        time.unwrap().split(':').fold(0, |sum, part| sum * 60 + part.parse::<u32>().unwrap())
    };
    let passed = (seconds(clock(&text)) + 86_400 - seconds(held)) % 86_400;
    assert!(passed >= 2, "{passed} s");
    terminal.keys("<");
    terminal.await_text("sampling interval: 0.4 s");
    terminal.keys(">");
    terminal.await_text("sampling interval: 0.2 s");
    terminal.keys(">>>>");
    terminal.await_text("sampling interval: 0.1 s");
}
