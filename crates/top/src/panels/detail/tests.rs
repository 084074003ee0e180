use super::*;
use crate::overlay::{Inspection, InspectorAnswer};
use crate::paint;
use crate::settings::TopSettings;
use crate::state::{Effect, Replay};
use crossterm::event::{Event, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use expect_test::{expect, expect_file};
use jiff::tz::TimeZone;
use model::{Operation, OperationList, OperationSource, Usage};
use show::example;
use show::memory::view;
use sources::About;
use watch::moment::{Moment, ProcessDetail};

/// A state that has seen these moments, on a screen of this size.
fn state_of(moments: Vec<Moment>, (width, height): (u16, u16)) -> TopState {
    let mut state = TopState::new(TopSettings::default(), true);
    state.zone = TimeZone::UTC;
    state.area = Rect::new(0, 0, width, height);
    moments.into_iter().for_each(|moment| state.take(moment));
    state
}

fn of(pid: u32) -> Detail {
    Detail { pid, scroll: 0 }
}

fn drawn(state: &TopState, detail: &Detail) -> String {
    let mut buf = Buffer::empty(state.area);
    draw(state, detail, buf.area, &mut buf);
    paint::lines(&buf)
}

/// Presses keys, and returns what is shown then. None when it was closed.
fn pressed(state: &mut TopState, detail: &Detail, keys: &[KeyCode]) -> Option<Detail> {
    keys.iter().try_fold(detail.clone(), |detail, code| match press(state, detail, (*code, KeyModifiers::NONE)) {
        Some(Overlay::Detail(detail)) => Some(detail),
        _ => None,
    })
}

fn buffer(bytes: Option<u64>, kind: &str, label: Option<&str>, age_seconds: Option<f64>) -> view::Buffer {
    view::Buffer {
        pid: Some(4711),
        devices: vec!["0".into()],
        kind: kind.into(),
        bytes: bytes.map(Bytes),
        logical_bytes: None,
        bank_bytes: None,
        banks: None,
        address: 0x10_0000,
        address_is_relative: false,
        age_seconds,
        label: label.map(str::to_owned),
    }
}

fn closer(pid: u32) -> ProcessDetail {
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let variables = [("TT_VISIBLE_DEVICES", "0"), ("TT_METAL_HOME", "/opt/tt\x1b[2Jmetal")];
    let limits = [("locked memory", "8388608 bytes"), ("open files", "1024 files")];
    ProcessDetail {
        pid,
        about: About {
            environment: Some(variables.map(pair).to_vec()),
            limits: limits.map(pair).to_vec(),
            parents: vec![(4700, "bash".into()), (1, "systemd".into())],
            folder: Some("/home/ttuser/日本語".into()),
            threads: Some(37),
        },
        buffers: vec![
            buffer(Some(3 << 30), "dram", Some("model.layers.0.attention.wqkv\x1b]0;title\x07"), Some(1044.0)),
            buffer(Some(1_351_680), "l1", None, Some(0.4)),
            buffer(None, "trace", Some("decode"), None),
        ],
    }
}

fn with_closer(closer: ProcessDetail) -> Moment {
    Moment { process: Some(closer), ..Moment::of(example::machine()) }
}

#[test]
fn everything_that_is_known_of_a_process_is_shown() {
    let state = state_of(vec![with_closer(closer(4711))], (110, 50));
    let text = drawn(&state, &of(4711));
    assert!(!text.contains('\x1b'));
    expect_file!["../../golden/detail.txt"].assert_eq(&text);
    // The same before details were read.
    let early = drawn(&state_of(vec![Moment::of(example::machine())], (110, 20)), &of(4711));
    assert!(early.contains("Agent      ttmon-agent 0.1.0") && !early.contains("Buffers"), "{early}");
}

#[test]
fn what_is_not_known_is_said_to_be_unknown() {
    let about = About::default();
    let stranger = ProcessDetail { pid: 5120, about: About { environment: None, ..about }, buffers: vec![] };
    let state = state_of(vec![with_closer(stranger)], (80, 20));
    expect![[r#"

        ┌ pid 5120 –: Up, Down: scroll; Esc: close ────────────────────────────────────┐
        │ Command    –                                                                 │
        │ User       –                                                                 │
        │ Started    –                                                                 │
        │ Host       CPU –, memory –                                                   │
        │                                                                              │
        │ Device utilization                                                           │
        │   dev    util    programs       rate       busy                              │
        │   0         –  The process runs without the agent: start it with ttmon run.  │
        │                                                                              │
        │ Operations                                                                   │
        │   unknown: without ttmon's agent. i: ask tt-metal's Inspector, which delays  │
        │   launches for some milliseconds                                             │
        │                                                                              │
        │ Device memory used                                                           │
        │   dev         DRAM         L1  from                                          │
        │   0              –          –  –                                             │
        └──────────────────────────────────────────────────────────────────────────────┘

    "#]]
    .assert_eq(&drawn(&state, &of(5120)));
    let state = state_of(
        vec![with_closer(ProcessDetail {
            pid: 4711,
            about: About { environment: Some(vec![]), ..About::default() },
            buffers: vec![],
        })],
        (80, 60),
    );
    let text = drawn(&state, &of(4711));
    assert!(text.contains("no TT_* variables"), "{text}");
    // This one has an agent: that it has no buffer is known.
    assert!(text.contains("│   none"), "{text}");
}

#[test]
fn a_process_that_has_ended_keeps_its_past_and_nothing_else() {
    let mut later = example::machine();
    later.taken_at.0 += 60_000;
    let mut much_later = later.clone();
    much_later.taken_at.0 += 5_000;
    much_later.processes.clear();
    let moments = vec![Moment::of(example::machine()), Moment::of(later), Moment::of(much_later)];
    let text = drawn(&state_of(moments, (80, 10)), &of(4711));
    assert!(text.contains("pid 4711 has ended: "), "{text}");
    assert!(text.contains("This process has ended, or no longer uses a device."), "{text}");
    assert!(!text.contains("Command"), "{text}");
    let ended = drawn(&state_of(vec![Moment::of(example::machine())], (80, 10)), &of(99));
    assert!(ended.contains("pid 99 has ended: ") && !ended.contains("All device memory"), "{ended}");
}

#[test]
fn its_memory_is_drawn_over_time() {
    let moment = |second: i64, dram: u64| {
        let mut snapshot = example::machine();
        snapshot.taken_at.0 += second * 1000;
        let process = snapshot.processes.iter_mut().find(|process| process.pid == 4711).unwrap();
        process.devices[0].usage = Usage::measured(dram << 30, 0, 0, 0, 0);
        Moment::of(snapshot)
    };
    let mut state = state_of(vec![moment(0, 1), moment(30, 4), moment(60, 8), moment(70, 2)], (60, 60));
    let text = drawn(&state, &of(4711));
    assert!(text.contains("All device memory, last 1m10s, at most 8.0 GiB"), "{text}");
    assert!(text.contains('█'), "{text}");
    state.theme.unicode = false;
    assert!(drawn(&state, &of(4711)).is_ascii());
}

#[test]
fn a_spark_is_as_high_as_its_point_and_stays_until_the_next() {
    let points = |all: &[(i64, u64)]| all.iter().map(|(time, bytes)| (Timestamp(*time), *bytes)).collect::<Vec<_>>();
    let line = |all: &[(i64, u64)], width| sparks(&points(all), width, true);
    assert_eq!(line(&[(0, 0), (50, 4), (100, 8)], 11), "▁▁▁▁▁▅▅▅▅▅█");
    assert_eq!(line(&[(0, 8), (99, 8), (100, 1)], 4), "████", "the largest of a column counts");
    assert_eq!(line(&[(0, 0), (100, 0)], 4), "▁▁▁▁");
    assert_eq!(line(&[(7, 3)], 3), "███");
    assert_eq!(line(&[], 3), "");
    assert_eq!(line(&[(0, 1), (9, u64::MAX)], 0), "█");
    assert_eq!(sparks(&points(&[(0, 0), (1, 1)]), 2, false), "_#");
}

#[test]
fn scrolling_ends_at_the_ends() {
    let mut state = state_of(vec![with_closer(closer(4711))], (80, 12));
    let start = of(4711);
    let end = pressed(&mut state, &start, &[KeyCode::End]).unwrap();
    assert!(drawn(&state, &start).contains("Command "));
    let text = drawn(&state, &end);
    assert_eq!(
        text.lines().nth(9),
        Some("│          1 systemd                                                           │"),
        "{text}"
    );
    use KeyCode::{Char, Down, Home, PageDown, PageUp, Up};
    let shown = |state: &mut TopState, keys: &[KeyCode]| pressed(state, &start, keys).unwrap();
    assert_eq!(shown(&mut state, &[KeyCode::End, Down, PageDown, Char(' '), Char('j')]), end);
    assert_eq!(shown(&mut state, &[KeyCode::End, Home]), start);
    assert_eq!(shown(&mut state, &[Up, PageUp, Char('k')]), start);
    assert_eq!(shown(&mut state, &[Down, Down, Up]), shown(&mut state, &[Down]));
    assert_eq!(shown(&mut state, &[PageDown]).scroll, 8);
    for code in [KeyCode::Esc, KeyCode::Enter, Char('q')] {
        assert_eq!(pressed(&mut state, &start, &[code]), None);
    }
}

#[test]
fn the_wheel_scrolls_and_a_click_above_closes() {
    let mut state = state_of(vec![with_closer(closer(4711))], (80, 12));
    let mut turned = |detail: Detail, kind, row| {
        let event = MouseEvent { kind, column: 3, row, modifiers: KeyModifiers::NONE };
        state.overlay = Some(Overlay::Detail(detail));
        crate::app::handle(&mut state, &Event::Mouse(event));
        match state.overlay.take() {
            Some(Overlay::Detail(detail)) => Some(detail),
            _ => None,
        }
    };
    let down = turned(of(4711), MouseEventKind::ScrollDown, 5).unwrap();
    assert_eq!(down.scroll, 1);
    assert_eq!(turned(down.clone(), MouseEventKind::ScrollUp, 5).unwrap().scroll, 0);
    assert_eq!(turned(down.clone(), MouseEventKind::Down(MouseButton::Left), 5), Some(down.clone()));
    assert_eq!(turned(down, MouseEventKind::Down(MouseButton::Left), 0), None);
}

#[test]
fn no_size_is_too_small() {
    let mut state = state_of(vec![with_closer(closer(4711))], (80, 24));
    for (width, height) in (1..60).flat_map(|width| (1..25).map(move |height| (width, height))) {
        state.area = Rect::new(0, 0, width, height);
        let detail = pressed(&mut state, &of(4711), &[KeyCode::End, KeyCode::Up]).unwrap();
        drawn(&state, &detail);
    }
}

fn inspected(answer: InspectorAnswer) -> Option<Inspection> {
    Some(Inspection { pid: 5120, asked_at: example::machine().taken_at, answer })
}

fn launched(name: &str, launches: u64) -> Operation {
    Operation { name: name.into(), launches, ..Operation::default() }
}

#[test]
fn a_key_asks_for_operations_and_nothing_else_does() {
    let mut state = state_of(vec![Moment::of(example::machine())], (80, 30));
    let asked = pressed(&mut state, &of(5120), &[KeyCode::Down, KeyCode::Up, KeyCode::Home]).unwrap();
    drawn(&state, &asked);
    assert_eq!(state.effects, []);
    pressed(&mut state, &of(5120), &[KeyCode::Char('i')]).unwrap();
    let started_at = state.snapshot().processes.iter().find(|process| process.pid == 5120).unwrap().started_at;
    assert_eq!(std::mem::take(&mut state.effects), [Effect::Inspect { pid: 5120, started_at }]);
    // Once for each sample, however often it is pressed.
    for answer in [InspectorAnswer::Pending, InspectorAnswer::Refused("no".into())] {
        state.inspection = inspected(answer);
        pressed(&mut state, &of(5120), &[KeyCode::Char('i'); 9]).unwrap();
        assert_eq!(state.effects, []);
    }
    let mut later = example::machine();
    later.taken_at.0 += 1000;
    state.take(Moment::of(later));
    pressed(&mut state, &of(5120), &[KeyCode::Char('i')]).unwrap();
    assert_eq!(state.effects.len(), 1);
}

#[test]
fn who_cannot_be_asked_or_need_not_be_is_not_asked() {
    let mut state = state_of(vec![Moment::of(example::machine())], (80, 30));
    let notice = |state: &mut TopState, pid| {
        state.notice = None;
        pressed(state, &of(pid), &[KeyCode::Char('i')]).unwrap();
        assert_eq!(state.effects, []);
        state.notice.clone().unwrap_or_default()
    };
    assert!(notice(&mut state, 4711).starts_with("ttmon's agent records the operations"));
    assert_eq!(notice(&mut state, 99), "", "it has ended");
    state.replay = Some(Replay { file: "a".into(), at: 0, len: 1, speed: 1.0, ..Replay::default() });
    assert_eq!(notice(&mut state, 5120), "unknown: a recording cannot be asked");
    assert!(drawn(&state, &of(5120)).contains("│   unknown: a recording cannot be asked "));
    state.replay = None;
    let fleet = watch::fleet::Fleet::default();
    state.watch(fleet, true);
    assert_eq!(notice(&mut state, 5120), "unknown: it is on another machine. Run `ttmon ops 5120` there");
}

#[test]
fn operations_of_the_inspector_or_why_there_are_none_are_shown() {
    let mut state = state_of(vec![Moment::of(example::machine())], (80, 20));
    let operations = vec![launched("MatmulDeviceOperation", 8000), launched("Soft\x1b[2Jmax", 192)];
    let list = OperationList {
        pid: 5120,
        source: OperationSource::Inspector,
        chips: Some(vec![0]),
        launches: 8192,
        complete: false,
        operations,
    };
    let why = "process 5120 has no Inspector port: port 50051 belongs to python3 (pid 7); give each process a port of its own";
    let mut text = String::new();
    for answer in [InspectorAnswer::Pending, InspectorAnswer::Refused(why.into()), InspectorAnswer::Known(list)] {
        state.inspection = inspected(answer);
        let end = Detail { scroll: 7, ..of(5120) };
        text += &drawn(&state, &end);
    }
    expect_file!["../../golden/detail-inspector.txt"].assert_eq(&text);
    // The answer of one process is not shown for another.
    assert!(!drawn(&state, &of(4711)).contains("asked at"));
}

#[test]
fn nothing_is_cut_off_at_60_columns() {
    let wide = state_of(vec![with_closer(closer(4711))], (200, 90));
    let narrow = state_of(vec![with_closer(closer(4711))], (60, 90));
    let words = |state: &TopState| -> Vec<String> {
        let text = drawn(state, &of(4711)).replace(['│', '─'], " ");
        text.split_whitespace().skip(8).map(str::to_owned).collect()
    };
    let (all, kept) = (words(&wide), words(&narrow).concat());
    for word in all.iter().filter(|word| !word.contains(['▁', '█', '┐', '└', '…'])) {
        assert!(kept.contains(word.as_str()), "{word} is missing at 60 columns:\n{}", drawn(&narrow, &of(4711)));
    }
    expect_file!["../../golden/detail-60.txt"].assert_eq(&drawn(&narrow, &of(4711)));
}
