//! Whole screens, pinned. Refresh with `UPDATE_EXPECT=1` and read the difference.

use super::panels::{draw, layout};
use super::settings::TopSettings;
use super::state::{Overlay, TopState, TopView};
use super::{app, keys, paint};
use crate::screen::Buffer;
use crate::screen::Rect;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use expect_test::expect_file;
use jiff::tz::TimeZone;
use model::{
    Celsius, Device, DeviceId, Held, Process, Snapshot, Source, State as DeviceState, Timestamp, Usage, Watts,
};
use show::example;
use watch::moment::Moment;

/// Pinned.
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];
/// Not pinned, but nothing is missing.
const LARGE: [(u16, u16); 3] = [(160, 50), (200, 60), (320, 90)];

/// So many chips: those of the example machine, then those of a Galaxy.
fn machine(count: usize) -> Snapshot {
    let mut machine = if count > 8 { example::galaxy() } else { example::machine() };
    machine.processes = example::machine().processes;
    machine.devices.extend(example::galaxy().devices.into_iter().skip(4));
    machine.devices.truncate(count);
    let ids: Vec<&DeviceId> = machine.devices.iter().map(|device| &device.id).collect();
    machine.processes.retain(|process| process.devices.iter().all(|held| ids.contains(&&held.id)));
    machine
}

/// A state that has seen half a minute of a machine at work.
fn watching(snapshot: &Snapshot, settings: TopSettings, unicode: bool) -> TopState {
    let mut state = TopState::new(settings, unicode);
    state.zone = TimeZone::UTC;
    state.area = Rect::new(0, 0, 120, 40);
    for second in 0..30 {
        let mut snapshot = snapshot.clone();
        snapshot.taken_at.0 += second * 1000;
        let part = (second as f64 / 10.0 - 1.0).abs();
        for device in snapshot.devices.iter_mut().filter(|device| device.state == DeviceState::Ok) {
            device.power = device.power.map(|power| Watts((power.0 * part).round()));
            device.asic_temp = device.asic_temp.map(|temp| Celsius((temp.0 - 10.0 + 10.0 * part).round()));
        }
        state.take(Moment::of(snapshot));
    }
    state
}

fn usual(snapshot: &Snapshot) -> TopState {
    watching(snapshot, TopSettings::default(), true)
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

/// So many processes on all devices, some of them with names that are hard to draw.
fn crowd(count: u32) -> Snapshot {
    let process = |n: u32| Process {
        parent_pid: Some(if n % 3 == 0 { 1 } else { 1000 + n / 3 * 3 }),
        name: Some("python3".into()),
        user: Some(["ttuser", "日本語", "a-rather-long-login"][n as usize % 3].into()),
        command: Some(match n % 4 {
            0 => format!("python3 日本語のモデル.py --順位 {n} {}", "長い".repeat(90)),
            1 => format!("python3 worker.py --rank {n} {}", "--and-so-on ".repeat(40)),
            2 => format!("harmful\x1b[2J\r\n\u{202e}{n}"),
            _ => format!("\u{301}e\u{301}👩‍👩‍👧‍👦 {n}"),
        }),
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
fn an_alert_is_at_its_device_and_in_the_last_line() {
    for count in [4, 32] {
        let mut machine = machine(count);
        machine.alerts = vec![model::Alert {
            name: "hot".into(),
            severity: model::Severity::Critical,
            state: model::AlertState::Firing,
            device: Some("0".into()),
            process: None,
            since: machine.taken_at,
            value: None,
            text: "device 0: near its temperature limit".into(),
        }];
        let calm = drawn(&mut usual(&Snapshot { alerts: vec![], ..machine.clone() }), (160, 50));
        let text = drawn(&mut usual(&machine), (160, 50));
        assert_eq!((text.matches('!').count() - calm.matches('!').count(), count), (1, count), "{text}");
        assert!(text.lines().last().unwrap().contains("device 0: near its temperature limit"), "{text}");
    }
}

/// Nothing answers, or nothing is known.
fn sick() -> Snapshot {
    let mut machine = example::machine();
    let good = machine.devices[0].clone();
    let sick = |n, state, age| Device { id: DeviceId::Local(n), state, sample_age_seconds: age, ..good.clone() };
    machine.devices = vec![
        sick(0, DeviceState::Hung, Some(12.0)),
        sick(1, DeviceState::Lost, Some(75.0)),
        sick(2, DeviceState::Resetting, None),
        Device::new(DeviceId::Local(3)),
    ];
    machine.processes = vec![Process::new(7)];
    machine
}

#[test]
fn the_overview_fits_every_terminal_with_any_number_of_devices() {
    for (width, height) in SIZES {
        let mut text = String::new();
        for count in [0, 1, 4, 8, 32] {
            text += &format!("{count} devices\n{}", drawn(&mut usual(&machine(count)), (width, height)));
        }
        let golden = format!("{}/src/golden/screen-{width}x{height}.txt", env!("CARGO_MANIFEST_DIR"));
        expect_file![golden].assert_eq(&text);
    }
}

#[test]
fn a_large_terminal_shows_every_chip_and_every_process() {
    for size in LARGE {
        for count in [1, 4, 8, 32] {
            let mut state = usual(&machine(count));
            let text = drawn(&mut state, size);
            assert_eq!(text.lines().count(), usize::from(size.1), "{text}");
            assert!(text.lines().all(|line| show::text::width(line) <= usize::from(size.0)), "{text}");
            let words: Vec<&str> = text.split([' ', '▸', '│', '\n']).collect();
            for device in state.devices() {
                assert!(words.contains(&device.id.to_string().as_str()), "{}: {text}", device.id);
            }
            for process in &state.snapshot().processes {
                assert!(words.contains(&process.pid.to_string().as_str()), "{}: {text}", process.pid);
            }
            assert!(text.contains("Power of device 0") && text.contains("Processes"), "{text}");
        }
        let crowded = drawn(&mut usual(&crowd(500)), size);
        assert!(crowded.contains("500") && !crowded.contains('\x1b'), "{crowded}");
    }
}

#[test]
fn what_is_missing_or_does_not_answer_is_seen_at_once() {
    let mut text = drawn(&mut usual(&sick()), (80, 24));
    text += &drawn(&mut usual(&sick()), (120, 40));
    text += &drawn(&mut watching(&sick(), TopSettings { ascii: true, ..TopSettings::default() }, true), (80, 24));
    text += &drawn(&mut TopState::new(TopSettings::default(), true), (80, 24));
    expect_file!["golden/screen-sick.txt"].assert_eq(&text);
}

#[test]
fn five_hundred_processes_with_strange_names_and_none_at_all() {
    let mut text = drawn(&mut usual(&crowd(500)), (80, 24));
    text += &drawn(&mut usual(&crowd(500)), (120, 40));
    text += &drawn(&mut usual(&crowd(0)), (120, 40));
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
    expect_file!["golden/screen-crowd.txt"].assert_eq(&text);
}

#[test]
fn windows_lie_over_it() {
    let opened = |keys: &[KeyCode]| {
        let mut state = usual(&machine(4));
        press(&mut state, keys);
        state
    };
    let mut filter = opened(&[KeyCode::Char('/')]);
    typed(&mut filter, "user:ttuser dram>");
    let mut text = String::new();
    for (name, mut state) in [
        ("help", opened(&[KeyCode::Char('?')])),
        ("setup", opened(&[KeyCode::F(2), KeyCode::Down, KeyCode::Down, KeyCode::Right])),
        ("sort", opened(&[KeyCode::F(6), KeyCode::Char('c')])),
        ("signals", opened(&[KeyCode::Home, KeyCode::F(9)])),
        ("question", opened(&[KeyCode::Home, KeyCode::F(9), KeyCode::Char('9'), KeyCode::Enter])),
        ("filter", filter),
        ("detail", opened(&[KeyCode::Home, KeyCode::Enter])),
        ("device", opened(&[KeyCode::Char('d')])),
        ("events", opened(&[KeyCode::Char('4')])),
    ] {
        text += &format!("{name}\n{}", drawn(&mut state, (100, 30)));
    }
    expect_file!["golden/screen-windows.txt"].assert_eq(&text);
}

#[test]
fn help_lists_every_key() {
    let mut state = usual(&machine(1));
    press(&mut state, &[KeyCode::Char('?')]);
    let text = drawn(&mut state, (100, 80));
    for binding in keys::BINDINGS {
        assert!(text.contains(&format!("{:>12} {}", binding.shown, binding.help)), "{}: {text}", binding.shown);
    }
    // On a low screen the last can be scrolled to, and one key up is seen at once.
    drawn(&mut state, (100, 20));
    press(&mut state, &[KeyCode::End; 9]);
    drawn(&mut state, (100, 20));
    let end = drawn(&mut state, (100, 20));
    let last = keys::BINDINGS[keys::BINDINGS.len() - 1].help;
    assert!(end.contains(last), "{end}");
    press(&mut state, &[KeyCode::Up]);
    assert!(!drawn(&mut state, (100, 20)).contains(last));
}

#[test]
fn a_screen_that_is_too_small_says_what_it_needs() {
    let mut state = usual(&machine(4));
    let (width, height) = layout::SMALLEST;
    assert!(drawn(&mut state, (width - 1, height)).starts_with("terminal too small: 40x8 at least\n4 chips, "));
    assert!(drawn(&mut state, (width, height - 1)).starts_with("terminal too small: 40x8 at least\n"));
    assert!(!drawn(&mut state, (width, height)).contains("too small"));
    let tiny = drawn(&mut state, (20, 5));
    assert!(tiny.starts_with("terminal too small:\n40x8 at least\n4 chips, 3 ok, 1\nhung (1)"), "{tiny}");
}

#[test]
fn nothing_is_drawn_outside_at_any_size() {
    let signals = [KeyCode::Home, KeyCode::F(9)];
    let overlays: [&[KeyCode]; 8] = [
        &[],
        &[KeyCode::Char('?')],
        &[KeyCode::F(2)],
        &[KeyCode::F(6)],
        &signals,
        &[KeyCode::Char('/'), KeyCode::Char('日'), KeyCode::Char('本')],
        &[KeyCode::Home, KeyCode::Enter],
        &[KeyCode::Char('d')],
    ];
    let mut states = Vec::new();
    for (n, keys) in overlays.into_iter().enumerate() {
        let mut state = usual(&[machine(4), machine(32), crowd(40), sick()][n % 4]);
        press(&mut state, keys);
        assert_eq!(state.overlay.is_some(), !keys.is_empty());
        states.push(state);
    }
    for view in TopView::ALL.into_iter().filter(|view| *view != TopView::Fleet) {
        let mut state = usual(&crowd(40));
        state.view = view;
        states.push(state);
    }
    let sizes = (1..=200).step_by(11).flat_map(|width| (1..=70).step_by(6).map(move |height| (width, height)));
    for (width, height) in sizes.chain([(40, 8), (41, 9), (80, 8), (40, 70)]) {
        for state in &mut states {
            let area = Rect { x: 3, y: 2, width, height };
            state.area = area;
            let mut buf = Buffer::filled(Rect::new(0, 0, width + 6, height + 4), '#');
            draw(state, area, &mut buf);
            for (x, y) in (0..buf.area.width).flat_map(|x| (0..buf.area.height).map(move |y| (x, y))) {
                let is_outside = !area.contains((x, y).into());
                assert!(
                    !is_outside || buf.symbol(&buf[(x, y)]) == "#",
                    "{:?} {:?} {area} {x},{y}",
                    state.view,
                    state.overlay
                );
            }
        }
    }
}

#[test]
fn any_keys_at_any_size_do_no_harm() {
    let mut codes: Vec<KeyEvent> = Vec::new();
    for (code, modifiers) in keys::BINDINGS.iter().flat_map(|binding| binding.keys) {
        codes.push(KeyEvent::new(*code, *modifiers));
    }
    let mut state = usual(&crowd(40));
    let mut chance = 7u64;
    for step in 0..3000 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = codes[(chance >> 33) as usize % codes.len()];
        app::handle(&mut state, &Event::Key(key));
        if step % 10 == 0 {
            drawn(&mut state, ((chance >> 40) as u16 % 200 + 1, (chance >> 50) as u16 % 60 + 1));
        }
        state.effects.clear();
        if let Some(Overlay::Setup(_)) = state.overlay {
            // What is chosen there may be slow to draw, not wrong.
            press(&mut state, &[KeyCode::Esc]);
        }
    }
}

/// Colours of what needs somebody, in any place of a screen.
fn alarming(state: &mut TopState, (width, height): (u16, u16)) -> Vec<String> {
    state.area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(state.area);
    draw(state, buf.area, &mut buf);
    let bad = state.theme.style(crate::theme::Tone::Critical).fg;
    let cells = buf.rows().flatten().filter(|cell| Some(cell.look().fg) == bad && buf.symbol(cell) != " ");
    cells.map(|cell| buf.symbol(cell).to_owned()).collect()
}

#[test]
fn nothing_is_red_at_full_load_at_any_size() {
    for count in [1, 2, 4, 8, 17, 32] {
        let mut machine = example::galaxy();
        machine.devices.truncate(count);
        (machine.faults, machine.alerts) = (Vec::new(), Vec::new());
        for device in &mut machine.devices {
            (device.state, device.sample_age_seconds, device.pcie) = (DeviceState::Ok, Some(0.0), Default::default());
            device.power = device.power_max;
            device.asic_temp = Some(Celsius(60.0));
            device.activity = model::Activity::measured(100.0, model::UtilizationSource::Profiler);
            device.memory.dram_used = device.memory.dram_total.map(|total| model::Bytes(total.0 / 5 * 4));
            device.memory.dram = device.memory.dram_used;
        }
        let mut state = TopState::new(TopSettings::default(), true);
        for second in 0..60 {
            let mut snapshot = machine.clone();
            snapshot.taken_at.0 += second * 1000;
            state.take(Moment::of(snapshot));
        }
        for (width, height) in (20..=320).step_by(50).flat_map(|w| (5..=90).step_by(17).map(move |h| (w, h))) {
            for view in [TopView::Overview, TopView::Memory, TopView::Mesh, TopView::Events] {
                state.view = view;
                let red = alarming(&mut state, (width, height));
                assert!(red.is_empty(), "{count} {view:?} {width}x{height}: {red:?}");
            }
        }
    }
}
