//! The list of machines, pinned, and what keys and the mouse do in it.

use crate::panels::draw;
use crate::screen::Buffer;
use crate::screen::Rect;
use crate::settings::TopSettings;
use crate::state::{Effect, Overlay, TopState, TopView};
use crate::{app, paint};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use expect_test::expect_file;
use jiff::tz::TimeZone;
use model::DeviceId;
use watch::fleet::summary::Summary;
use watch::fleet::{Fleet, HostView, example};

fn watching(fleet: Fleet) -> TopState {
    let mut state = TopState::new(TopSettings::default(), true);
    state.zone = TimeZone::UTC;
    state.area = Rect::new(0, 0, 80, 24);
    state.watch(fleet.clone(), fleet.hosts.len() == 1);
    again(&mut state, fleet);
    state
}

fn again(state: &mut TopState, fleet: Fleet) {
    let summaries = fleet.hosts.iter().map(Summary::of).collect();
    state.take_fleet(fleet, summaries);
}

fn drawn(state: &mut TopState, (width, height): (u16, u16)) -> String {
    state.area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(state.area);
    draw(state, buf.area, &mut buf);
    paint::lines(&buf)
}

fn press(state: &mut TopState, keys: &[KeyCode]) {
    for code in keys {
        app::handle(state, &Event::Key(KeyEvent::new(*code, KeyModifiers::NONE)));
    }
}

fn typed(state: &mut TopState, text: &str) {
    press(state, &text.chars().map(KeyCode::Char).collect::<Vec<_>>());
}

fn selected(state: &TopState) -> String {
    let (name, device) = state.hosts.as_ref().unwrap().cursor.key.as_ref().unwrap();
    device.as_ref().map_or_else(|| name.clone(), |id| format!("{name}/{id}"))
}

#[test]
fn machines_fit_every_terminal() {
    for size in [(80, 24), (120, 40)] {
        let mut text = String::new();
        let fleets = [
            ("several", example::several()),
            ("3", Fleet { hosts: example::several().hosts[1..4].to_vec() }),
            ("40", example::many(40)),
            ("1000", example::many(1000)),
        ];
        for (name, fleet) in fleets {
            text += &format!("{name} machines\n{}", drawn(&mut watching(fleet), size));
        }
        let mut open = watching(example::several());
        press(&mut open, &[KeyCode::Down, KeyCode::Down, KeyCode::Right, KeyCode::Down]);
        text += &format!("one of them open\n{}", drawn(&mut open, size));
        let mut filter = watching(example::many(200));
        typed(&mut filter, "/answer");
        text += &format!("while a filter is typed\n{}", drawn(&mut filter, size));
        let golden = format!("{}/src/golden/fleet-{}x{}.txt", env!("CARGO_MANIFEST_DIR"), size.0, size.1);
        expect_file![golden].assert_eq(&text);
    }
}

#[test]
fn what_is_wrong_is_listed_at_80_columns_and_can_be_read_whole() {
    let long =
        "connection refused: `ttmon serve` does not run there, or a firewall drops what is sent to port 9746 of it";
    let mut fleet = example::several();
    fleet.hosts.push(example::unreachable("lab-11", long, 12));
    let mut state = watching(fleet);
    let text = drawn(&mut state, (80, 24));
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(text.contains("WHAT IS WRONG"), "{text}");
    assert!(line("lab-7").contains("device 1 is hung"), "{text}");
    for columns in [60, 80, 120] {
        while selected(&state) != "lab-11" {
            press(&mut state, &[KeyCode::Down]);
        }
        let text = drawn(&mut state, (columns, 24));
        let words = text.split(['\n']).map(str::trim).collect::<Vec<_>>().join(" ");
        assert!(words.contains(long), "{text}");
    }
}

#[test]
fn one_machine_is_shown_in_the_place_of_this_one() {
    let mut text = String::new();
    let alone = |host: HostView| Fleet { hosts: vec![host] };
    for host in [
        example::reached("lab-7", show::example::machine()),
        HostView::new("lab-8", "http://lab-8:9746"),
        example::unreachable("lab-8", "connection refused: `ttmon serve` does not run there", 12),
        example::several().hosts[3].clone(),
    ] {
        text += &drawn(&mut watching(alone(host)), (100, 16));
    }
    expect_file!["../../golden/fleet-alone.txt"].assert_eq(&text);
}

#[test]
fn a_screen_without_unicode_and_a_small_one_show_it_too() {
    let mut ascii = TopState::new(TopSettings { ascii: true, ..TopSettings::default() }, true);
    let mut fleet = example::several();
    fleet.hosts.retain(|host| host.name.is_ascii() && host.name != "lab-7");
    ascii.watch(fleet, false);
    let text = drawn(&mut ascii, (100, 10));
    assert!(text.is_ascii(), "{text}");
    for (width, height) in (1..=130).step_by(3).flat_map(|w| (1..=40).step_by(3).map(move |h| (w, h))) {
        drawn(&mut watching(example::several()), (width, height));
    }
}

#[test]
fn a_machine_is_entered_and_left_again() {
    let mut state = watching(example::several());
    assert_eq!((state.view, selected(&state).as_str()), (TopView::Fleet, "lab-8"));
    press(&mut state, &[KeyCode::Down, KeyCode::Down]);
    assert_eq!(selected(&state), "lab-7");
    press(&mut state, &[KeyCode::Enter]);
    assert_eq!((state.view, state.devices().len()), (TopView::Overview, 4));
    assert!(drawn(&mut state, (120, 40)).contains("lab-7"));
    press(&mut state, &[KeyCode::Char('2')]);
    assert_eq!(state.view, TopView::Memory);
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(state.view, TopView::Overview);
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!((state.view, selected(&state).as_str()), (TopView::Fleet, "lab-7"));
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!((state.view, &state.effects[..]), (TopView::Fleet, &[][..]), "going back once more does not end it");
    press(&mut state, &[KeyCode::Char('4')]);
    assert_eq!((state.view, state.hosts.as_ref().unwrap().entered.as_deref()), (TopView::Events, Some("lab-7")));
    press(&mut state, &[KeyCode::Char('F'), KeyCode::Char('q')]);
    assert_eq!((state.view, &state.effects[..]), (TopView::Fleet, &[Effect::Quit][..]));
}

#[test]
fn a_device_is_entered_as_such() {
    let mut state = watching(example::several());
    press(&mut state, &[KeyCode::End, KeyCode::Right, KeyCode::Down, KeyCode::Down, KeyCode::Down]);
    assert!(selected(&state).ends_with("/0"), "{}", selected(&state));
    press(&mut state, &[KeyCode::Home, KeyCode::Down, KeyCode::Down, KeyCode::Char(' ')]);
    press(&mut state, &[KeyCode::Down, KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
    assert_eq!((state.view, state.device.clone()), (TopView::Overview, Some(DeviceId::Local(2))));
}

#[test]
fn what_is_known_of_one_machine_is_not_shown_of_another() {
    let mut state = watching(example::several());
    press(&mut state, &[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
    assert!(!state.history.is_empty() && state.snapshot().processes.len() > 1);
    press(&mut state, &[KeyCode::Esc, KeyCode::Home, KeyCode::Enter]);
    assert_eq!(state.hosts.as_ref().unwrap().entered.as_deref(), Some("lab-8"));
    assert!(state.history.is_empty() && state.devices().is_empty() && state.snapshot().processes.is_empty());
    assert!(drawn(&mut state, (120, 30)).contains("NO ANSWER for 12s"));
}

#[test]
fn no_signal_is_sent_to_another_machine() {
    let mut state = watching(example::several());
    press(&mut state, &[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
    assert!(state.table.cursor.key.is_some(), "there is a process");
    for key in [KeyCode::F(9), KeyCode::Char('K')] {
        press(&mut state, &[key]);
        assert_eq!((state.overlay.is_none(), state.effects.is_empty()), (true, true));
        assert!(state.notice.as_deref().is_some_and(|notice| notice.contains("another machine")));
    }
    assert!(!drawn(&mut state, (200, 40)).contains("F9 Signal"));
    press(&mut state, &[KeyCode::Char('F'), KeyCode::F(9)]);
    assert!(state.overlay.is_none());
}

#[test]
fn charts_go_on_from_what_the_service_remembers_and_stop_with_it() {
    let mut fleet = Fleet { hosts: vec![example::reached("lab-1", example::calm(1))] };
    let now = fleet.hosts[0].snapshot.as_ref().unwrap().taken_at.0;
    let past = |seconds: i64| {
        let mut snapshot = example::calm(1);
        snapshot.taken_at.0 = now - seconds * 1000;
        snapshot
    };
    let closer =
        watch::fleet::HostDetail { past: std::sync::Arc::new((1..60).rev().map(past).collect()), ..Default::default() };
    fleet.hosts[0].detail = Some(std::sync::Arc::new(closer));
    let mut state = watching(fleet.clone());
    assert_eq!(state.history.len(), 60);
    again(&mut state, fleet.clone());
    assert_eq!(state.history.len(), 60, "the same moment is not added twice");
    let gone = HostView { snapshot: fleet.hosts[0].snapshot.clone(), ..example::unreachable("lab-1", "x", 5) };
    again(&mut state, Fleet { hosts: vec![gone] });
    assert_eq!(state.history.len(), 60);
    assert_eq!(state.devices()[0].state, model::State::Silent, "its state is not known");
}

#[test]
fn the_wheel_turns_and_clicks_choose_sort_and_open() {
    let mut state = watching(example::many(100));
    let mouse = |state: &mut TopState, kind, column, row| {
        app::handle(state, &Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    };
    mouse(&mut state, MouseEventKind::ScrollDown, 10, 10);
    assert!(drawn(&mut state, (80, 24)).contains(" 4-23 of 100 "));
    mouse(&mut state, MouseEventKind::Down(MouseButton::Left), 4, 2);
    assert!(drawn(&mut state, (80, 24)).contains("MACHINE▼"));
    press(&mut state, &[KeyCode::Home]);
    mouse(&mut state, MouseEventKind::Down(MouseButton::Left), 10, 5);
    assert_eq!(selected(&state), "node-0002");
    mouse(&mut state, MouseEventKind::Down(MouseButton::Left), 10, 5);
    assert_eq!(state.view, TopView::Overview);
}

#[test]
fn a_filter_works_while_it_is_typed_and_escape_undoes_it() {
    let mut state = watching(example::many(200));
    typed(&mut state, "/node-01");
    assert_eq!(state.hosts.as_ref().unwrap().shown(), 100);
    press(&mut state, &[KeyCode::Backspace, KeyCode::Enter]);
    assert!(state.overlay.is_none() && state.hosts.as_ref().unwrap().shown() == 200);
    typed(&mut state, "/x");
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(state.hosts.as_ref().unwrap().filter, "node-0");
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(state.hosts.as_ref().unwrap().filter, "");
    typed(&mut state, "/");
    app::handle(&mut state, &Event::Paste("critical\n".into()));
    assert!(matches!(state.overlay, Some(Overlay::Filter(_))));
    assert_eq!(state.hosts.as_ref().unwrap().filter, "critical");
}

#[test]
fn a_list_that_begins_with_one_machine_may_grow() {
    let mut state = TopState::new(TopSettings::default(), true);
    state.area = Rect::new(0, 0, 80, 24);
    state.watch(Fleet { hosts: vec![HostView::new("http://prometheus:9090", "http://prometheus:9090")] }, false);
    assert_eq!((state.view, state.hosts.as_ref().unwrap().entered.clone()), (TopView::Fleet, None));
    again(&mut state, example::many(40));
    press(&mut state, &[KeyCode::Down, KeyCode::Enter]);
    assert_eq!((state.view, state.devices().len()), (TopView::Overview, 8));
    press(&mut state, &[KeyCode::Esc]);
    assert!(drawn(&mut state, (80, 24)).contains("Machines 40"));
}
