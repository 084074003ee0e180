use super::*;
use crate::app::handle;
use crate::column::ProcessColumn;
use crate::paint::lines;
use crate::panels::layout::{self, Panel};
use crate::settings::TopSettings;
use crate::state::Overlay;
use crate::theme::Scheme;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use expect_test::{expect, expect_file};
use model::{Activity, DeviceId, Held, Snapshot, Source, Timestamp, Usage, UtilizationSource};
use show::example;
use watch::moment::Moment;

const CODES: KeyModifiers = KeyModifiers::NONE;

fn shown(settings: TopSettings, unicode: bool, snapshot: Snapshot) -> TopState {
    let mut state = TopState::new(settings, unicode);
    state.area = Rect::new(0, 0, 120, 40);
    state.take(Moment { snapshot, ..Moment::default() });
    state
}

fn usual(snapshot: Snapshot) -> TopState {
    shown(TopSettings::default(), true, snapshot)
}

fn drawn(state: &TopState, width: u16, height: u16) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    draw(state, buf.area, &mut buf);
    lines(&buf)
}

fn press(state: &mut TopState, keys: &[KeyCode]) {
    for code in keys {
        handle(state, &Event::Key(KeyEvent::new(*code, CODES)));
    }
}

/// So many processes with 1 MiB of DRAM more each, the next one the child of every third.
fn many(count: u32) -> Snapshot {
    let process = |n: u32| Process {
        parent_pid: Some(if n % 3 == 0 { 1 } else { 1000 + n / 3 * 3 }),
        name: Some("python3".into()),
        user: Some(format!("user{}", n % 7)),
        command: Some(format!("python3 worker.py --rank {n}")),
        started_at: Some(Timestamp(1_767_323_000_000 - i64::from(n) * 60_000)),
        devices: vec![Held {
            usage: Usage::measured(u64::from(n) << 20, 0, 0, 0, 0),
            source: Some(Source::Shm),
            ..Held::new(DeviceId::Local(n % 32))
        }],
        ..Process::new(1000 + n)
    };
    Snapshot { processes: (0..count).map(process).collect(), ..example::galaxy() }
}

#[test]
fn the_table_shows_the_more_the_wider_it_is() {
    let state = usual(example::machine());
    for (columns, file) in [
        (40, expect_file!["../../golden/processes-40.txt"]),
        (80, expect_file!["../../golden/processes-80.txt"]),
        (120, expect_file!["../../golden/processes-120.txt"]),
    ] {
        let text = drawn(&state, columns, 6);
        assert!(text.lines().all(|line| show::text::width(line) <= usize::from(columns)), "{text}");
        file.assert_eq(&text);
    }
    for columns in [160, 320] {
        let text = drawn(&state, columns, 6);
        assert!(text.lines().all(|line| show::text::width(line) <= usize::from(columns)), "{text}");
        let with_all = state.settings.columns.iter().filter(|column| **column != ProcessColumn::Utilization);
        let missing: Vec<&str> = with_all.map(|column| column.head()).filter(|head| !text.contains(head)).collect();
        assert!(missing.is_empty() || columns == 160, "{missing:?}: {text}");
    }
}

#[test]
fn an_empty_table_says_why() {
    let empty = || Snapshot { processes: vec![], ..example::machine() };
    assert_eq!(drawn(&TopState::new(TopSettings::default(), true), 40, 3).lines().last(), Some(" no sample yet"));
    let mut machine = empty();
    let last = |machine: &Snapshot| drawn(&usual(machine.clone()), 40, 3).lines().last().map(str::to_owned);
    assert_eq!(last(&machine).as_deref(), Some(" Used by processes that cannot be named"));
    machine.devices.iter_mut().for_each(|device| device.memory.untracked_processes = 0);
    assert_eq!(last(&machine).as_deref(), Some(" No process uses a device"));
    let mut state = usual(example::machine());
    press(&mut state, &[KeyCode::Char('/'), KeyCode::Char('z'), KeyCode::Char('z'), KeyCode::Enter]);
    expect![[r#"
        ─ Processes 0 of 3 ─ filter zz ─────────────────────────────
         DEV    PID USER        ▼DRAM     L1 COMMAND
         No process matches the filter (Esc or /: change it)
    "#]]
    .assert_eq(&drawn(&state, 60, 3));
    press(&mut state, &[KeyCode::Esc]);
    assert_eq!(state.rows.len(), 3);
}

#[test]
fn a_tree_has_parents_above_their_children_in_ascii_too() {
    let settings = TopSettings {
        tree: true,
        ascii: true,
        columns: vec![ProcessColumn::Pid, ProcessColumn::Dram, ProcessColumn::Command],
        ..TopSettings::default()
    };
    let mut state = shown(settings, true, many(8));
    press(&mut state, &[KeyCode::Char(' '), KeyCode::Char(' ')]);
    let text = drawn(&state, 70, 10);
    assert!(text.is_ascii(), "{text}");
    expect![[r#"
        - Processes 8 - tagged 2 - tree --------------------------------------
           PID  vDRAM COMMAND
        + 1006   6.0M worker.py --rank 6
        + 1007   7.0M `- worker.py --rank 7
          1003   3.0M worker.py --rank 3
          1005   5.0M |- worker.py --rank 5
          1004   4.0M `- worker.py --rank 4
          1000      0 worker.py --rank 0
          1002   2.0M |- worker.py --rank 2
          1001   1.0M `- worker.py --rank 1
    "#]]
    .assert_eq(&text);
}

#[test]
fn growth_is_shown_once_it_is_known() {
    let settings = TopSettings { columns: vec![ProcessColumn::Pid, ProcessColumn::Growth], ..TopSettings::default() };
    let mut state = shown(settings, true, many(3));
    for second in 1..=30 {
        let mut snapshot = many(3);
        snapshot.taken_at.0 += second * 1000;
        snapshot.processes[1].devices[0].usage = Usage::measured((1 << 20) + second as u64 * 51_200, 0, 0, 0, 0);
        snapshot.processes[2].devices[0].usage = Usage::measured((2 << 20) - second as u64 * 1024, 0, 0, 0, 0);
        state.take(Moment { snapshot, ..Moment::default() });
    }
    expect![[r#"
        ─ Processes 3 ─ sorted by dram ▼ ───────
           PID   GROWTH
          1001  +2.9M/m
          1002 -60.0K/m
          1000        0
    "#]]
    .assert_eq(&drawn(&state, 40, 5));
}

#[test]
fn a_process_that_holds_memory_and_runs_nothing_is_marked() {
    let mut snapshot = many(3);
    snapshot.processes[2].idle_seconds = Some(700.0);
    let text = drawn(&shown(TopSettings::default(), true, snapshot), 90, 5);
    let row = text.lines().find(|line| line.contains("1002")).unwrap();
    assert!(row.contains(" idle "), "{text}");
    assert_eq!(text.matches("idle").count(), 1, "{text}");
}

#[test]
fn how_busy_devices_are_kept_has_a_column_as_soon_as_the_driver_tells() {
    let mut snapshot = many(3);
    let held = &mut snapshot.processes[1].devices[0];
    (held.source, held.activity) = (Some(Source::Kernel), Activity::measured(62.5, UtilizationSource::Driver));
    let less = Held { activity: Activity::measured(10.0, UtilizationSource::Driver), ..Held::new(DeviceId::Local(9)) };
    snapshot.processes[1].devices.push(less);
    let settings = TopSettings { sort: ProcessColumn::Utilization, ..TopSettings::default() };
    let mut state = shown(settings, true, snapshot);
    expect![[r#"
        ─ Processes 3 ────────────────────────────────────────────────────────────────────────────
         DEV    PID USER    DRAM     L1 SOURCE   ▼UTIL  SHARE   GROWTH    AGE COMMAND
         1,9   1001 user1  ≥1.0M      – kernel     62%  ≥0.0%        –  1m45s worker.py --rank 1
         0     1000 user0      0      0 shm          –   0.0%        –    45s worker.py --rank 0
         2     1002 user2   2.0M      0 shm          –   0.0%        –  2m45s worker.py --rank 2
    "#]]
    .assert_eq(&drawn(&state, 90, 5));
    state.take(Moment { snapshot: many(3), ..Moment::default() });
    assert!(!drawn(&state, 90, 5).contains("UTIL"));
}

#[test]
fn a_part_of_a_sum_is_no_sum() {
    let mut snapshot = many(1);
    let held = snapshot.processes[0].devices[0].clone();
    let unknown = Held::new(DeviceId::Local(1));
    let known = Held { usage: Usage::measured(5 << 30, 0, 0, 0, 0), ..held };
    snapshot.processes[0].devices = vec![known, unknown];
    expect![[r#"
        ─ Processes 1 ──────────────────────────────────────────────────────────────────
         DEV    PID USER   ▼DRAM     L1 SOURCE   SHARE   GROWTH COMMAND
         0,1   1000 user0  ≥5.0G      – shm     ≥20.8%        – worker.py --rank 0
    "#]]
    .assert_eq(&drawn(&usual(snapshot), 80, 3));
}

#[test]
fn the_cursor_stays_with_its_process_and_its_place_when_that_ends() {
    let mut state = usual(many(5));
    assert_eq!(state.table.cursor.key, Some(1004), "the first, until it is moved");
    let mut grown = many(5);
    grown.processes[0].devices[0].usage = Usage::measured(1 << 40, 0, 0, 0, 0);
    state.take(Moment { snapshot: grown.clone(), ..Moment::default() });
    assert_eq!(state.table.cursor.key, Some(1000));
    press(&mut state, &[KeyCode::Down]);
    assert_eq!(state.table.cursor.key, Some(1004));
    state.take(Moment { snapshot: many(5), ..Moment::default() });
    assert_eq!((state.table.cursor.key, state.table.cursor.at), (Some(1004), 0));
    press(&mut state, &[KeyCode::Down, KeyCode::Down]);
    assert_eq!((state.table.cursor.key, state.table.cursor.at), (Some(1002), 2));
    let mut fewer = many(5);
    fewer.processes.retain(|process| process.pid != 1002);
    state.take(Moment { snapshot: fewer, ..Moment::default() });
    assert_eq!((state.table.cursor.key, state.table.cursor.at), (Some(1001), 2));
    state.take(Moment { snapshot: many(0), ..Moment::default() });
    assert_eq!(state.table.cursor.key, None);
}

/// The rows of the overview that belong to the table.
fn area(state: &TopState) -> Rect {
    let panels = layout::of(state, state.area);
    panels.iter().find(|(panel, _)| *panel == Panel::Processes).unwrap().1
}

#[test]
fn five_hundred_processes_are_scrolled_through() {
    let mut state = usual(many(500));
    let area = area(&state);
    let seen = |state: &TopState| {
        let mut buf = Buffer::empty(area);
        draw(state, area, &mut buf);
        let text = lines(&buf);
        let pids: Vec<u32> =
            text.lines().skip(2).filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
        assert!(pids.contains(&state.table.cursor.key.unwrap()) || state.table.cursor.is_away, "{text}");
        (pids[0], pids[pids.len() - 1], text.lines().next().unwrap().to_owned())
    };
    let rows = u32::from(area.height) - 2;
    assert_eq!(seen(&state).0, 1499);
    press(&mut state, &[KeyCode::End]);
    let (_, last, title) = seen(&state);
    assert_eq!(last, 1000);
    assert!(title.contains(&format!(" {}-500 ", 501 - rows)), "{title}");
    press(&mut state, &[KeyCode::PageUp]);
    assert_eq!(seen(&state).0, 1000 + rows - 1);
    press(&mut state, &[KeyCode::Home, KeyCode::PageDown]);
    assert_eq!(seen(&state), (1499, 1499 - rows + 1, seen(&state).2));
    press(&mut state, &[KeyCode::Down]);
    assert_eq!(seen(&state).0, 1498);
    let wheel = MouseEvent { kind: MouseEventKind::ScrollDown, column: 3, row: area.y + 4, modifiers: CODES };
    for _ in 0..20 {
        handle(&mut state, &Event::Mouse(wheel));
    }
    assert_eq!(seen(&state).0, 1498 - 60, "the table turns, the cursor stays");
    press(&mut state, &[KeyCode::Up]);
    assert!(!state.table.cursor.is_away);
    seen(&state);
}

fn click(state: &mut TopState, column: u16, row: u16) {
    let kind = MouseEventKind::Down(MouseButton::Left);
    handle(state, &Event::Mouse(MouseEvent { kind, column, row, modifiers: CODES }));
}

#[test]
fn a_click_selects_and_a_second_opens() {
    let mut state = usual(many(5));
    let area = area(&state);
    click(&mut state, 10, area.y + 4);
    assert_eq!((state.table.cursor.key, &state.overlay), (Some(1002), &None));
    click(&mut state, 10, area.y + 3);
    assert_eq!((state.table.cursor.key, &state.overlay), (Some(1003), &None));
    click(&mut state, 10, area.y + 3);
    assert!(matches!(&state.overlay, Some(Overlay::Detail(detail)) if detail.pid == 1003));
    state.overlay = None;
    click(&mut state, 10, area.y + 3);
    let mut later = many(5);
    later.taken_at.0 += 5000;
    state.take(Moment { snapshot: later, ..Moment::default() });
    click(&mut state, 10, area.y + 3);
    assert_eq!(state.overlay, None, "that was long ago");
    click(&mut state, 10, area.y + 12);
    assert_eq!(state.table.cursor.key, Some(1003), "there is no row");
}

#[test]
fn a_click_on_a_column_s_name_sorts_and_another_reverses() {
    let mut state = usual(many(5));
    let area = area(&state);
    let columns = placed(&state, area);
    let user = columns.iter().find(|place| place.column == ProcessColumn::User).unwrap();
    click(&mut state, user.x, area.y + 1);
    assert_eq!((state.settings.sort, state.settings.descending), (ProcessColumn::User, false));
    assert_eq!(state.rows.pid_at(0), Some(1000));
    click(&mut state, user.x + 1, area.y + 1);
    assert_eq!((state.settings.sort, state.settings.descending), (ProcessColumn::User, true));
    assert_eq!(state.rows.pid_at(0), Some(1004));
    press(&mut state, &[KeyCode::Char('+')]);
    assert!(!state.settings.descending);
    press(&mut state, &[KeyCode::F(6)]);
    assert!(matches!(state.overlay, Some(Overlay::Sort { .. })));
}

#[test]
fn tags_are_kept_until_the_process_ends_or_they_are_taken_off() {
    let mut state = usual(many(5));
    press(&mut state, &[KeyCode::Char(' '), KeyCode::Char(' '), KeyCode::Down, KeyCode::Char(' ')]);
    assert_eq!(state.table.tagged.iter().copied().collect::<Vec<_>>(), [1001, 1003, 1004]);
    assert_eq!(state.table.cursor.key, Some(1000));
    let mut fewer = many(5);
    fewer.processes.retain(|process| process.pid != 1003);
    state.take(Moment { snapshot: fewer, ..Moment::default() });
    expect![[r#"
        ─ Processes 4 ─ tagged 2 ───────────────────────────────────
         DEV    PID USER   ▼DRAM     L1 SOURCE  COMMAND
        •4     1004 user4   4.0M      0 shm     worker.py --rank 4
         2     1002 user2   2.0M      0 shm     worker.py --rank 2
        •1     1001 user1   1.0M      0 shm     worker.py --rank 1
         0     1000 user0      0      0 shm     worker.py --rank 0
    "#]]
    .assert_eq(&drawn(&state, 60, 6));
    press(&mut state, &[KeyCode::Up, KeyCode::Char(' ')]);
    assert_eq!(state.table.tagged.len(), 1, "a second time takes it off");
    press(&mut state, &[KeyCode::Char('U')]);
    assert!(state.table.tagged.is_empty());
}

#[test]
fn a_command_is_scrolled_sideways_no_further_than_there_is_something() {
    let mut state = usual(example::machine());
    press(&mut state, &[KeyCode::Right]);
    assert!(drawn(&state, 80, 3).contains(" --model llama"));
    press(&mut state, &[KeyCode::Right; 50]);
    assert_eq!(state.table.sideways, 32);
    press(&mut state, &[KeyCode::Left; 50]);
    assert_eq!(state.table.sideways, 0);
}

#[test]
fn a_read_only_session_sends_no_signals() {
    let mut state = shown(TopSettings { read_only: true, ..TopSettings::default() }, true, many(5));
    press(&mut state, &[KeyCode::F(9)]);
    assert_eq!(state.overlay, None);
    assert_eq!(state.notice.as_deref(), Some("read-only: signals are disabled"));
}

#[test]
fn a_held_picture_keeps_its_rows_and_can_be_sorted() {
    let mut state = usual(many(5));
    press(&mut state, &[KeyCode::Char('p')]);
    state.take(Moment { snapshot: many(9), ..Moment::default() });
    press(&mut state, &[KeyCode::Char('+')]);
    assert_eq!((state.rows.len(), state.rows.pid_at(0)), (5, Some(1000)));
    press(&mut state, &[KeyCode::Char('p')]);
    assert_eq!(state.rows.len(), 9);
}

#[test]
fn colours_say_what_is_selected_and_tagged() {
    for theme in Scheme::ALL {
        let mut state = shown(TopSettings { theme, ..TopSettings::default() }, true, many(3));
        press(&mut state, &[KeyCode::Char(' ')]);
        let mut buf = Buffer::empty(Rect::new(0, 0, 80, 5));
        draw(&state, buf.area, &mut buf);
        assert_eq!(buf.symbol(&buf[(0, 2)]), "•");
        for (y, tone) in [(2, Tone::Tagged), (3, Tone::Selected)] {
            let (is, should) = (buf[(8, y)].look(), state.theme.style(tone));
            assert_eq!((is.fg, is.modifier), (should.fg.unwrap_or(is.fg), should.add_modifier), "{theme:?}");
            assert_eq!(is.bg, should.bg.unwrap_or(is.bg), "{theme:?}");
        }
    }
}

#[test]
fn no_size_is_too_small_and_no_columns_too_few() {
    let every: Vec<Vec<ProcessColumn>> = vec![
        vec![],
        vec![ProcessColumn::Command],
        vec![ProcessColumn::Cb, ProcessColumn::Cb],
        ProcessColumn::ALL.to_vec(),
    ];
    for columns in every {
        for tree in [false, true] {
            let mut state =
                shown(TopSettings { columns: columns.clone(), tree, ..TopSettings::default() }, true, many(40));
            state.table.filter = "user~user".into();
            state.table.sideways = 5;
            press(&mut state, &[KeyCode::Char(' ')]);
            for (width, height) in (1..70).flat_map(|width| (1..8).map(move |height| (width, height))) {
                drawn(&state, width, height);
                let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
                draw(&state, Rect::new(3, 2, 160, 50), &mut buf);
            }
        }
    }
}
