//! What the devices look like, pinned. Refresh with `UPDATE_EXPECT=1` and read the difference.

use super::*;
use crate::paint::lines;
use crate::settings::TopSettings;
use crossterm::event::KeyModifiers;
use expect_test::{expect, expect_file};
use model::figure::device::{ASIC_TEMP, kept_in_history};
use model::{Bytes, BytesPerSecond, Device, DeviceId, Megahertz, Snapshot, State as DeviceState};
use show::example;
use watch::moment::Moment;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn state_of(snapshot: Snapshot, settings: TopSettings, unicode: bool) -> TopState {
    let mut state = TopState::new(settings, unicode);
    state.take(Moment::of(snapshot));
    state
}

/// So many chips: those of the example machine, then those of a Galaxy.
fn machine_of(count: usize) -> Snapshot {
    let mut machine = if count > 8 { example::galaxy() } else { example::machine() };
    let more = example::galaxy().devices.into_iter().skip(4);
    machine.devices.extend(more);
    machine.devices.truncate(count);
    if let Some(device) = machine.devices.get_mut(2) {
        device.pcie.host_to_device = Some(BytesPerSecond(1023.9 * 1_048_576.0));
        device.pcie.device_to_host = Some(BytesPerSecond(0.0));
    }
    machine
}

/// The rows that the devices take of a screen, and nothing else.
fn drawn(state: &TopState, (width, screen): (u16, u16)) -> String {
    let rows = height(state, Rect::new(0, 0, width, screen));
    let mut buf = Buffer::empty(Rect::new(0, 0, width, rows));
    draw(state, buf.area, &mut buf);
    lines(&buf)
}

fn at_all_sizes(state: &TopState) -> String {
    SIZES.iter().map(|(w, h)| format!("{w}x{h}\n{}", drawn(state, (*w, *h)))).collect()
}

#[test]
fn devices_are_drawn_as_richly_as_there_is_room() {
    let mut text = String::new();
    for count in [0, 1, 4, 8, 32] {
        let state = state_of(machine_of(count), TopSettings::default(), true);
        text += &format!("{count} devices, {}", at_all_sizes(&state));
    }
    expect_file!["../../golden/devices.txt"].assert_eq(&text);
}

#[test]
fn memory_of_exited_processes_is_hatched_in_every_form() {
    let mut snapshot = machine_of(1);
    let memory = &mut snapshot.devices[0].memory;
    (memory.stale, memory.stale_l1) = (Some(Bytes((8 << 30) + (90 << 20))), Some(Bytes(90 << 20)));
    let mut text = String::new();
    for count in [1, 4, 12] {
        let devices = (0..count).map(|n| Device { id: DeviceId::Local(n), ..snapshot.devices[0].clone() });
        let machine = Snapshot { devices: devices.collect(), ..snapshot.clone() };
        let drawn = drawn(&state_of(machine, TopSettings::default(), true), (120, 40));
        let hatched: Vec<&str> = drawn.lines().filter(|line| line.contains('╳')).collect();
        text += &format!("{count}: {} lines\n{}\n", hatched.len(), hatched[0].trim_end());
    }
    expect![[r#"
        1: 1 lines
          DRAM ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇╳╳╳╳╳╳╳╳╳╳░░░░░░░░░░░░░░░░   ≥12.4/32.0 GiB  L1 ▇▇▇▇╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳░░░░░░░░░░    ≥25.3/180 MiB
        4: 4 lines
          DRAM ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇╳╳╳╳╳╳╳╳╳╳░░░░░░░░░░░░░░░░   ≥12.4/32.0 GiB  L1 ▇▇▇▇╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳░░░░░░░░░░    ≥25.3/180 MiB
        12: 4 lines
        ▸ 0 ●  54°C  65W ≥62% ▇▇╳╳░░ ≥12.4G ╳╳░   1 ●  54°C  65W ≥62% ▇▇╳╳░░ ≥12.4G ╳╳░   2 ●  54°C  65W ≥62% ▇▇╳╳░░ ≥12.4G ╳╳░
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_sick_chip_says_so_and_never_shows_an_old_figure_as_a_new_one() {
    let good = example::machine().devices[0].clone();
    let sick = |n: u32, state, age| Device { id: DeviceId::Local(n), state, sample_age_seconds: age, ..good.clone() };
    let mut snapshot = example::machine();
    snapshot.devices = vec![
        sick(0, DeviceState::Hung, Some(0.0)),
        sick(1, DeviceState::Lost, Some(75.0)),
        sick(2, DeviceState::Silent, Some(4.2)),
        sick(3, DeviceState::Resetting, Some(12.0)),
        sick(4, DeviceState::Silent, None),
        sick(5, DeviceState::Ok, Some(0.4)),
        example::machine().devices[3].clone(),
        Device {
            id: DeviceId::NoDriver(good.pci_address.clone().unwrap()),
            state: DeviceState::NoDriver,
            pci_address: good.pci_address.clone(),
            arch: good.arch,
            ..Device::new(DeviceId::Local(9))
        },
    ];
    let mut state = state_of(snapshot, TopSettings::default(), true);
    state.step_device(2);
    let mut text = at_all_sizes(&state);
    text += &format!("in cells\n{}", drawn(&state, (80, 9)));
    expect_file!["../../golden/devices-sick.txt"].assert_eq(&text);
}

#[test]
fn what_is_missing_is_absent_everywhere() {
    let mut snapshot = example::machine();
    snapshot.devices = (0..4).map(|n| Device::new(DeviceId::Local(n))).collect();
    let state = state_of(snapshot, TopSettings::default(), true);
    let mut text = at_all_sizes(&state);
    for field in kept_in_history() {
        let mut settings = TopSettings::default();
        settings.charts.insert(0, field);
        let state = state_of(state.snapshot().clone(), settings, true);
        let cells = drawn(&state, (45, 8));
        text += &format!("{}\n{cells}", field.title());
        assert!(!cells.contains(['▁', '█']), "{cells}");
    }
    expect_file!["../../golden/devices-missing.txt"].assert_eq(&text);
}

#[test]
fn a_cell_shows_the_figure_of_the_first_chart() {
    let mut text = String::new();
    for field in kept_in_history() {
        let mut settings = TopSettings { fahrenheit: field == ASIC_TEMP.field(), ..TopSettings::default() };
        settings.charts.insert(0, field);
        let mut state = state_of(machine_of(32), settings, true);
        state.step_device(20);
        text += &format!("{}\n{}", field.title(), drawn(&state, (80, 24)));
    }
    expect_file!["../../golden/devices-cells.txt"].assert_eq(&text);
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let mut text = String::new();
    for count in [1, 4, 8, 32] {
        let mut state = state_of(machine_of(count), TopSettings::default(), false);
        state.step_device(1);
        text += &drawn(&state, (80, 24));
        text += &drawn(&state, (120, 40));
    }
    assert!(text.is_ascii(), "{text}");
    expect_file!["../../golden/devices-ascii.txt"].assert_eq(&text);
}

#[test]
fn a_low_clock_is_explained() {
    let mut snapshot = machine_of(4);
    for device in &mut snapshot.devices {
        device.aiclk = Some(Megahertz(500));
    }
    snapshot.processes.clear();
    snapshot.devices[0].memory.untracked_processes = 0;
    let text = drawn(&state_of(snapshot, TopSettings::default(), true), (100, 60));
    assert!(text.contains("idle: no process"), "{text}");
    assert!(text.contains("temperature at its limit"), "{text}");
    let hung = text.lines().find(|line| line.contains("hung")).unwrap();
    assert!(!hung.contains("idle"), "{hung}");
}

#[test]
fn too_many_devices_scroll_to_the_selected_one() {
    let mut state = state_of(machine_of(32), TopSettings::default(), true);
    assert!(drawn(&state, (40, 10)).contains("▸ 0 "), "{}", drawn(&state, (40, 10)));
    state.device = Some(DeviceId::Local(31));
    let text = drawn(&state, (40, 10));
    assert!(text.contains("▸31 ") && text.contains("not shown"), "{text}");
}

#[test]
fn no_size_is_too_small_to_draw() {
    for (count, unicode) in [(0, true), (1, true), (4, true), (8, false), (32, true)] {
        let state = state_of(machine_of(count), TopSettings::default(), unicode);
        for (width, screen) in (1..=130).step_by(3).flat_map(|w| (1..=60).step_by(3).map(move |h| (w, h))) {
            let area = Rect::new(0, 0, width, screen);
            let rows = height(&state, area);
            assert!(rows >= 1 && rows <= screen.saturating_sub(7).max(1), "{width}x{screen} {rows}");
            let mut buf = Buffer::empty(Rect { height: rows, ..area });
            draw(&state, buf.area, &mut buf);
            draw(&state, Rect { x: width / 2, y: rows / 2, ..area }, &mut buf);
        }
    }
}

#[test]
fn a_click_selects_what_is_there_and_the_wheel_goes_on() {
    for (size, count) in [((80, 24), 32), ((160, 50), 32), ((160, 50), 8), ((320, 90), 32), ((60, 16), 32)] {
        let mut state = state_of(machine_of(count), TopSettings::default(), true);
        let area = Rect::new(0, 1, size.0, height(&state, Rect::new(0, 0, size.0, size.1)));
        let event = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let (_, below, grid) = parts(&state, area);
        let place = grid.unwrap().place(below, 2);
        let down = MouseEventKind::Down(MouseButton::Left);
        mouse(&mut state, area, event(down, place.x + 1, place.bottom() - 1));
        let listed = |state: &TopState, at: usize| state.listed().nth(at).map(|device| device.id.clone());
        assert_eq!(state.device, listed(&state, 2), "{size:?}");
        mouse(&mut state, area, event(MouseEventKind::ScrollDown, 0, 1));
        assert_eq!(state.device, listed(&state, 3), "{size:?}");
        mouse(&mut state, area, event(MouseEventKind::ScrollUp, 0, 1));
        assert_eq!(state.device, listed(&state, 2), "{size:?}");
        let before = state.device.clone();
        mouse(&mut state, area, event(down, area.right() + 5, area.bottom() + 5));
        assert_eq!(state.device, before, "there is nothing");
    }
}

/// So many chips, of which some do not answer.
fn troubled(count: usize, hung: usize) -> TopState {
    let mut machine = machine_of(count);
    let last = machine.devices.len().saturating_sub(hung);
    machine.devices[last..].iter_mut().for_each(|device| device.state = model::State::Hung);
    state_of(machine, TopSettings::default(), true)
}

#[test]
fn no_chip_is_hidden_without_a_count_at_any_size() {
    for (count, hung) in [(1, 0), (2, 1), (4, 0), (8, 2), (17, 0), (32, 3)] {
        let state = troubled(count, hung);
        for (width, screen) in (40..=320).step_by(7).flat_map(|w| (8..=90).step_by(3).map(move |h| (w, h))) {
            let rows = height(&state, Rect::new(0, 0, width, screen));
            let area = Rect::new(0, 0, width, rows);
            let (_, _, grid) = parts(&state, area);
            let hidden = count - grid.map_or(0, |grid| grid.seen(&state));
            let mut buf = Buffer::empty(area);
            draw(&state, area, &mut buf);
            let text = lines(&buf);
            let said = format!("+{hidden} not shown");
            let is_counted = text.contains(&said) || (grid.is_none() && text.contains(&format!("{count} chips")));
            assert!(hidden == 0 || is_counted, "{width}x{screen} {said}: {text}");
            // Those with a problem are in view, or counted.
            assert!(hung == 0 || text.contains("hung") || text.contains("problem"), "{width}x{screen}: {text}");
            assert!(screen < 16 || hidden == 0, "{count} {width}x{screen}: {text}");
        }
    }
}

#[test]
fn thirty_two_chips_at_80x24_have_four_figures_each_below_a_heading() {
    let state = troubled(32, 2);
    let area = Rect::new(0, 0, 80, height(&state, Rect::new(0, 0, 80, 24)));
    let mut buf = Buffer::empty(area);
    draw(&state, area, &mut buf);
    expect_file!["../../golden/devices-80x24.txt"].assert_eq(&lines(&buf));
}
