//! What the memory view looks like, pinned. Refresh with `UPDATE_EXPECT=1` and read the difference.

use super::*;
use show::memory::example;
use show::memory::view::Buffer as Live;

use crate::paint::lines;
use crate::settings::TopSettings;
use crate::state::Replay;
use crossterm::event::KeyModifiers;
use expect_test::expect_file;
use model::{Bytes, Device, DeviceId, Snapshot};

const SIZES: [(u16, u16); 2] = [(80, 22), (120, 38)];

/// The devices of a view are those of the snapshot.
fn state_of(view: View, unicode: bool) -> TopState {
    let mut state = TopState::new(TopSettings::default(), unicode);
    let mut snapshot = show::example::machine();
    let device = |chip: &Chip| match chip.id.strip_suffix('R') {
        Some(number) => Device::new(DeviceId::Remote(number.parse().unwrap())),
        None => Device::new(DeviceId::Local(chip.id.parse().unwrap())),
    };
    snapshot.devices = view.chips.iter().map(device).collect();
    state.take(Moment { memory: Some(view), ..Moment::of(snapshot) });
    state.area = Rect::new(0, 0, 80, 24);
    state
}

fn state_of_snapshot(snapshot: Snapshot) -> TopState {
    let mut state = TopState::new(TopSettings::default(), true);
    state.take(Moment::of(snapshot));
    state.area = Rect::new(0, 0, 80, 24);
    state
}

/// So many buffers of one process, on the first chip.
fn with_buffers(count: u64) -> View {
    let mut view = example::machine();
    let buffer = |n: u64| Live {
        pid: Some(4711),
        devices: vec!["0".into()],
        kind: if n % 3 == 2 { "l1".into() } else { "dram".into() },
        bytes: Some(Bytes((count - n) << 20)),
        logical_bytes: Some(Bytes(((count - n) << 20) - 4096)),
        bank_bytes: Some(Bytes((count - n) << 17)),
        banks: Some(8),
        address: 0x10_0000 + n * 0x1000,
        age_seconds: Some(n as f64),
        label: Some(format!("weight {n}")),
        ..Live::default()
    };
    view.buffers = (0..count).map(buffer).collect();
    view.unlisted_buffers = 234;
    view
}

fn drawn(state: &TopState, (width, height): (u16, u16)) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    draw(state, buf.area, &mut buf);
    lines(&buf)
}

fn at_all_sizes(state: &TopState) -> String {
    SIZES.iter().map(|(w, h)| format!("{w}x{h}\n{}", drawn(state, (*w, *h)))).collect()
}

fn do_all(state: &mut TopState, actions: &[Action]) {
    for action in actions {
        assert!(act(state, *action), "{action:?}");
    }
}

#[test]
fn one_chip_four_and_thirty_two_leave_room_for_a_list() {
    let mut one = example::machine();
    one.chips.truncate(1);
    let mut text = String::new();
    for (name, view) in [("1 chip", one), ("4 chips", example::with_a_death()), ("32 chips", example::galaxy())] {
        let mut state = state_of(view, true);
        if name == "32 chips" {
            state.step_device(17);
        }
        text += &format!("{name}, {}", at_all_sizes(&state));
    }
    expect_file!["../../golden/memory.txt"].assert_eq(&text);
}

#[test]
fn chips_are_in_the_order_of_the_overview_and_those_without_room_are_counted() {
    let mut state = state_of_snapshot(show::example::galaxy());
    let overview: Vec<String> = state.listed().map(|device| device.id.to_string()).collect();
    assert_eq!(overview[..4], ["5", "9", "11", "0"], "those with a problem first");
    let numbers = |text: &str, rows: usize| -> Vec<String> {
        let lines = text.lines().skip(1).take(rows).flat_map(|line| line.split_whitespace());
        let number = |word: &str| word.trim_end_matches('!').parse::<u32>().ok().map(|number| number.to_string());
        lines.filter_map(number).collect()
    };
    assert_eq!(numbers(&drawn(&state, (80, 22)), 7), overview);
    let low = drawn(&state, (40, 10));
    assert!(low.lines().next().unwrap().contains("+26 not shown"), "{low}");
    state.step_device(20);
    let low = drawn(&state, (60, 10));
    assert!(low.contains("+20 not shown (1 hung, 1 resetting, 1 silent)"), "{low}");
}

#[test]
fn the_lists_follow_each_other() {
    let mut state = state_of(example::with_a_death(), true);
    let mut text = String::new();
    for _ in Tab::ALL {
        text += &at_all_sizes(&state);
        do_all(&mut state, &[Action::Right]);
    }
    assert_eq!(state.memory.tab, Tab::Processes, "round the end");
    do_all(&mut state, &[Action::Left]);
    assert_eq!(state.memory.tab, Tab::Left);
    expect_file!["../../golden/memory-lists.txt"].assert_eq(&text);
}

#[test]
fn from_a_process_to_its_buffers_to_one_of_them_and_back() {
    let mut state = state_of(with_buffers(20), true);
    do_all(&mut state, &[Action::Enter, Action::Down, Action::Enter]);
    let text = at_all_sizes(&state);
    assert!(text.contains("weight 1") && text.contains("0x101000 up to 0x361000"), "{text}");
    do_all(&mut state, &[Action::Down]);
    assert!(drawn(&state, (80, 22)).contains("weight 2"), "the pane follows the cursor");
    do_all(&mut state, &[Action::Back]);
    assert!(drawn(&state, (80, 22)).contains("Buffers of 4711 20"));
    do_all(&mut state, &[Action::Back]);
    assert_eq!(state.memory.tab, Tab::Processes);
    assert!(!act(&mut state, Action::Back), "this is the top");
    expect_file!["../../golden/memory-closer.txt"].assert_eq(&text);
}

#[test]
fn a_buffer_that_is_gone_is_not_mistaken_for_another() {
    let mut state = state_of(with_buffers(3), true);
    do_all(&mut state, &[Action::Right, Action::Enter]);
    let mut fewer = with_buffers(3);
    fewer.buffers.remove(0);
    state.take(Moment { memory: Some(fewer), ..Moment::of(state.snapshot().clone()) });
    let text = drawn(&state, (80, 22));
    assert!(text.contains("freed, or no longer") && !text.contains("Per bank"), "{text}");
}

#[test]
fn a_thousand_buffers_scroll_and_the_cursor_stays_on_its_own() {
    let mut state = state_of(with_buffers(1000), true);
    do_all(&mut state, &[Action::Right, Action::End]);
    let text = drawn(&state, (80, 22));
    assert!(text.contains("weight 999") && !text.contains("weight 980"), "{text}");
    do_all(&mut state, &[Action::Home, Action::PageDown, Action::Down]);
    let on = state.memory.cursor.key.clone();
    let mut fewer = with_buffers(1000);
    fewer.buffers.remove(0);
    state.take(Moment { memory: Some(fewer), ..Moment::of(state.snapshot().clone()) });
    let view = view_of(&state.shown);
    let rows = rows::of(&state, &view, state.memory.tab);
    assert_eq!(Some(rows[cursor(&state.memory, &rows)].key()), on, "though it is one row further up");
    assert_eq!(rows.len(), 999);
}

#[test]
fn what_is_not_listed_is_said() {
    for count in [2, 1000] {
        let mut state = state_of(with_buffers(count), true);
        do_all(&mut state, &[Action::Right, Action::End]);
        let text = drawn(&state, (80, 22));
        assert!(text.contains("234 buffers of all chips are not listed"), "{text}");
        assert!(text.contains(&format!("weight {}", count - 1)), "{text}");
    }
}

#[test]
fn a_key_shows_one_kind_alone() {
    let mut state = state_of(with_buffers(9), true);
    assert!(!act(&mut state, Action::Metric), "processes have no kind");
    do_all(&mut state, &[Action::Right, Action::Metric, Action::Metric, Action::Metric]);
    let text = drawn(&state, (80, 22));
    assert!(text.contains("L1 buffers 3") && !text.contains("weight 0"), "{text}");
    do_all(&mut state, &[Action::Back]);
    assert!(drawn(&state, (80, 22)).contains("Buffers 9"));
    assert!(!act(&mut state, Action::Back));
}

#[test]
fn without_buffers_it_says_why() {
    let mut state = state_of_snapshot(show::example::machine());
    do_all(&mut state, &[Action::Right]);
    assert!(drawn(&state, (80, 22)).contains("reading …"));
    state.replay = Some(Replay { file: "x".into(), at: 0, len: 1, speed: 1.0, ..Replay::default() });
    assert!(drawn(&state, (80, 22)).contains("recordings have no per-buffer data"));
    let mut view = example::machine();
    view.buffers.clear();
    view.processes.iter_mut().for_each(|process| process.agent = None);
    let mut state = state_of(view, true);
    do_all(&mut state, &[Action::Right]);
    let text = drawn(&state, (80, 22));
    assert!(text.contains("no per-buffer data") && text.contains("`ttmon run`"), "{text}");
    let text = drawn(&TopState::new(TopSettings::default(), true), (80, 22));
    assert!(text.contains("reading"), "{text}");
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let mut view = example::with_a_death();
    view.processes.retain(|process| process.pid == 4711);
    view.faults.clear();
    let mut state = state_of(view, false);
    let mut text = String::new();
    for _ in Tab::ALL {
        text += &at_all_sizes(&state);
        do_all(&mut state, &[Action::Right]);
    }
    do_all(&mut state, &[Action::Right, Action::Enter]);
    text += &drawn(&state, SIZES[0]);
    assert!(text.is_ascii(), "{text}");
    expect_file!["../../golden/memory-ascii.txt"].assert_eq(&drawn(&state_of(example::machine(), false), SIZES[1]));
}

#[test]
fn no_size_is_too_small_to_draw() {
    let mut one = example::machine();
    one.chips.truncate(1);
    for (view, unicode) in [(one, true), (example::with_a_death(), false), (example::galaxy(), true)] {
        let mut state = state_of(view, unicode);
        for steps in 0..6 {
            for (width, height) in (1..=130).step_by(8).flat_map(|w| (1..=60).step_by(5).map(move |h| (w, h))) {
                let area = Rect::new(0, 0, width, height);
                state.area = area;
                drawn(&state, (width, height));
                let mut buf = Buffer::empty(area);
                draw(&state, Rect { x: width / 2, y: height / 2, ..area }, &mut buf);
                act(&mut state, Action::PageDown);
            }
            act(&mut state, if steps == 4 { Action::Enter } else { Action::Right });
        }
    }
}

#[test]
fn clicks_select_a_chip_a_list_and_a_row_and_the_wheel_goes_on() {
    for (size, view) in SIZES.into_iter().flat_map(|size| [(size, with_buffers(90)), (size, example::galaxy())]) {
        let mut state = state_of(view, true);
        let area = Rect::new(0, 1, size.0, size.1);
        let event = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let down = MouseEventKind::Down(MouseButton::Left);
        let places = |state: &TopState| MemoryLayout::of(state, &view_of(&state.shown), area);
        let place = places(&state).grid.place(places(&state).chips, 2).unwrap();
        mouse(&mut state, area, event(down, place.x + 3, place.y));
        assert_eq!(state.device, Some(state.devices()[2].id.clone()), "{size:?}");
        mouse(&mut state, area, event(MouseEventKind::ScrollUp, place.x, place.y));
        mouse(&mut state, area, event(MouseEventKind::ScrollUp, place.x, place.y));
        assert_eq!(state.device, Some(state.devices()[0].id.clone()), "{size:?}");
        let tabs = places(&state).tabs;
        mouse(&mut state, area, event(down, tabs.x + 18, tabs.y));
        assert_eq!(state.memory.tab, Tab::Buffers, "{size:?}");
        let list = places(&state).list;
        mouse(&mut state, area, event(MouseEventKind::ScrollDown, list.x, list.y + 1));
        if state.shown.memory.as_ref().is_some_and(|view| !view.buffers.is_empty()) {
            assert_eq!(state.memory.cursor.at, 3, "{size:?}");
            mouse(&mut state, area, event(down, 4, list.y + 2));
            let second = 4usize.saturating_sub(places(&state).page()) + 1;
            assert_eq!((state.memory.cursor.at, &state.memory.closer), (second, &None), "{size:?}");
            mouse(&mut state, area, event(down, 4, list.y + 2));
            assert!(state.memory.closer.is_some(), "a second click looks closer");
            mouse(&mut state, area, event(down, 4, list.y + 2));
            assert_eq!(state.memory.closer, None);
        }
    }
}

#[test]
fn a_key_shows_a_bank_as_a_map_with_addresses() {
    let mut view = with_buffers(0);
    let block = |pid: u32, address: u64, mib: u64| Live {
        pid: Some(pid),
        devices: vec!["0".into()],
        kind: "dram".into(),
        bank_bytes: Some(Bytes(mib << 20)),
        address,
        label: Some(format!("weight of {pid}")),
        ..Live::default()
    };
    view.buffers = vec![block(4711, 0x10_0000, 1024), block(4711, 0x4010_0000, 512), block(81, 0x8000_0000, 700)];
    let mut state = state_of(view, true);
    do_all(&mut state, &[Action::BankMap, Action::Down]);
    let text = at_all_sizes(&state);
    expect_file!["../../golden/memory-map.txt"].assert_eq(&text);
    assert!(text.contains("the map shows them as free"), "{text}");
    do_all(&mut state, &[Action::Metric, Action::Metric]);
    assert!(drawn(&state, (80, 22)).contains("no buffer of this kind"));
    do_all(&mut state, &[Action::BankMap]);
    assert_eq!(state.memory.tab, Tab::Processes, "the key leads back");
    state.memory.kind = None;
    do_all(&mut state, &[Action::BankMap, Action::End, Action::Up, Action::Enter]);
    assert_eq!((state.memory.tab, state.memory.pid), (Tab::Buffers, Some(81)), "the buffers of the block's process");
    do_all(&mut state, &[Action::Back, Action::BankMap, Action::Back]);
    assert_eq!(state.memory.tab, Tab::Processes);
}

#[test]
fn the_map_is_in_the_key_line_and_in_help() {
    let line = crate::keys::key_line(crate::state::TopView::Memory);
    assert!(line.iter().any(|(action, word)| *action == Action::BankMap && *word == "Bank map"));
    assert!(crate::keys::binding(Action::BankMap).unwrap().help.contains("map of used and free blocks"));
}

proptest::proptest! {
    #[test]
    fn any_words_of_a_process_can_be_drawn(words: String, width in 1u16..200, height in 1u16..60, steps in 0usize..5) {
        let mut view = example::with_a_death();
        view.processes[0].command = Some(words.clone());
        view.chips[0].board = Some(words.clone());
        view.deaths[0].command = Some(words.clone());
        view.buffers[0].label = Some(words);
        let mut state = state_of(view, true);
        do_all(&mut state, &vec![Action::Right; steps]);
        if steps == 1 {
            act(&mut state, Action::Enter);
        }
        let text = drawn(&state, (width, height));
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
}
