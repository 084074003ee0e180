//! Charts as people see them, pinned, and what must hold for any of them.

use super::*;
use crate::keys::Action;
use crate::paint::lines;
use crate::settings::TopSettings;
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use expect_test::{ExpectFile, expect_file};
use jiff::tz::TimeZone;
use model::figure::device::{ASIC_TEMP, FAN, HOST_TO_DEVICE, POWER};
use model::{BytesPerSecond, Celsius, DeviceId, Rpm, Snapshot, Watts};
use proptest::prelude::*;
use show::example;
use watch::moment::Moment;

/// A state that has seen so many seconds of a machine, as it was changed in each of them.
fn state_of(machine: &Snapshot, seconds: i64, change: impl Fn(i64, &mut Snapshot)) -> TopState {
    let mut state = TopState::new(TopSettings::default(), true);
    state.zone = TimeZone::UTC;
    state.area = Rect::new(0, 0, 160, 50);
    for second in 0..seconds {
        let mut snapshot = machine.clone();
        snapshot.taken_at.0 += second * 1000;
        change(second, &mut snapshot);
        state.take(Moment::of(snapshot));
    }
    state
}

/// Something that looks like work: up, along, and down.
fn wave(second: i64, period: i64) -> f64 {
    let phase = (second.rem_euclid(period)) as f64 / period as f64;
    (1.0 - (phase * 2.0 - 1.0).abs() * 1.4).clamp(0.0, 0.9)
}

fn busy(second: i64, snapshot: &mut Snapshot) {
    for (n, device) in (0i64..).zip(&mut snapshot.devices) {
        let part = wave(second + n * 13, 60 + n);
        device.power = device.power.map(|_| Watts(20.0 + part * 60.0));
        device.asic_temp = device.asic_temp.map(|_| Celsius(42.0 + part * 18.0));
    }
}

fn four() -> Snapshot {
    let mut machine = example::machine();
    for (n, device) in (0..).zip(&mut machine.devices) {
        let power = device.power_max;
        *device = Device { id: DeviceId::Local(n), ..example::machine().devices[0].clone() };
        device.power_max = power.or(device.power_max);
    }
    machine
}

fn drawn(state: &TopState, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    draw(state, area, &mut buf);
    lines(&buf)
}

/// Presses a key so many times.
fn press(state: &mut TopState, action: Action, times: usize) {
    for _ in 0..times {
        assert!(act(state, action));
    }
}

fn check(state: &TopState, width: u16, height: u16, expected: ExpectFile) {
    expected.assert_eq(&drawn(state, width, height));
}

#[test]
fn charts_are_side_by_side_where_it_is_wide() {
    let state = state_of(&example::machine(), 100, busy);
    check(&state, 120, 10, expect_file!["../../golden/charts-120.txt"]);
    for width in [160, 320] {
        let text = drawn(&state, width, 30);
        let names = state.settings.charts.iter().map(|field| format!(" {} of device 0", field.title()));
        assert!(names.into_iter().all(|name| text.contains(&name)), "{text}");
        assert!(text.lines().all(|line| show::text::width(line) <= usize::from(width)), "{text}");
    }
}

#[test]
fn charts_are_one_below_the_other_where_it_is_high_and_the_first_alone_where_it_is_neither() {
    let state = state_of(&example::machine(), 100, busy);
    check(&state, 80, 18, expect_file!["../../golden/charts-80-high.txt"]);
    check(&state, 80, 7, expect_file!["../../golden/charts-80-low.txt"]);
    check(&state, 40, 5, expect_file!["../../golden/charts-40.txt"]);
}

#[test]
fn places_are_never_squeezed() {
    let sizes = |width, height, count| -> Vec<(u16, u16)> {
        places(Rect::new(0, 0, width, height), count).iter().map(|place| (place.width, place.height)).collect()
    };
    assert_eq!(sizes(160, 16, 3), [(53, 16), (53, 16), (54, 16)]);
    assert_eq!(sizes(80, 18, 3), [(80, 6); 3]);
    assert_eq!(sizes(80, 12, 3), [(40, 6), (40, 6), (80, 6)]);
    assert_eq!(sizes(80, 9, 3), [(40, 9); 2]);
    assert_eq!(sizes(160, 20, 8), [(40, 10); 8]);
    assert_eq!(sizes(30, 4, 3), [(30, 4)]);
    assert_eq!(sizes(3, 9, 3), []);
}

#[test]
fn processes_keep_their_place() {
    let mut state = TopState::new(TopSettings::default(), true);
    assert_eq!([0, 9, 10, 11, 12, 40, 80].map(|rest| height(&state, rest)), [0, 0, 0, 5, 6, 20, 40]);
    state.settings.charts.clear();
    assert_eq!(height(&state, 40), 0);
}

#[test]
fn a_gap_is_drawn_as_a_gap() {
    let mut state = state_of(&example::machine(), 90, |second, snapshot| {
        busy(second, snapshot);
        match second {
            30..40 => snapshot.devices[0].power = None,
            60..70 => snapshot.devices[0].sample_age_seconds = Some(3.0),
            _ => {}
        }
    });
    state.settings.charts = vec![POWER.field()];
    check(&state, 60, 10, expect_file!["../../golden/charts-gap.txt"]);
}

#[test]
fn the_limit_is_drawn_when_it_is_near() {
    let mut state = state_of(&example::machine(), 60, |second, snapshot| {
        busy(second, snapshot);
        snapshot.devices[0].power_max = Some(Watts(85.0));
    });
    state.settings.charts = vec![POWER.field()];
    check(&state, 60, 12, expect_file!["../../golden/charts-limit.txt"]);
    state.settings.filled = true;
    check(&state, 60, 12, expect_file!["../../golden/charts-filled.txt"]);
    state.settings.reversed = true;
    check(&state, 60, 12, expect_file!["../../golden/charts-reversed.txt"]);
}

#[test]
fn the_cursor_reads_out_what_is_under_it() {
    let mut state = state_of(&example::machine(), 90, |second, snapshot| {
        busy(second, snapshot);
        if (40..50).contains(&second) {
            snapshot.devices[0].power = None;
        }
    });
    state.settings.charts = vec![POWER.field(), ASIC_TEMP.field()];
    assert!(act(&mut state, Action::Cursor));
    press(&mut state, Action::Left, 20);
    check(&state, 120, 10, expect_file!["../../golden/charts-cursor.txt"]);
    state.charts.cursor = Some(Timestamp(state.snapshot().taken_at.0 - 44_000));
    check(&state, 120, 10, expect_file!["../../golden/charts-cursor-gap.txt"]);
    assert!(act(&mut state, Action::Back));
    assert_eq!(state.charts.cursor, None);
    assert!(!act(&mut state, Action::Back) && !act(&mut state, Action::Left), "others want these keys");
}

#[test]
fn all_devices_share_a_chart() {
    let mut state = state_of(&four(), 90, busy);
    state.settings.overlaid = true;
    check(&state, 120, 14, expect_file!["../../golden/charts-overlaid-4.txt"]);
    let mut state = state_of(&example::galaxy(), 90, busy);
    state.settings.overlaid = true;
    state.device = Some(DeviceId::Local(7));
    check(&state, 120, 14, expect_file!["../../golden/charts-overlaid-32.txt"]);
    act(&mut state, Action::Cursor);
    check(&state, 120, 8, expect_file!["../../golden/charts-overlaid-32-cursor.txt"]);
}

#[test]
fn an_hour_zoomed_out_keeps_its_peaks() {
    let mut state = state_of(&example::machine(), 3700, |second, snapshot| {
        busy(second, snapshot);
        if second == 2000 {
            snapshot.devices[0].power = Some(Watts(149.0));
        }
    });
    state.settings.charts = vec![POWER.field()];
    press(&mut state, Action::ZoomOut, 10);
    assert_eq!(state.charts.span, Some(3600.0));
    check(&state, 100, 12, expect_file!["../../golden/charts-hour.txt"]);
    press(&mut state, Action::ZoomIn, 10);
    assert_eq!(state.charts.span, Some(15.0));
    check(&state, 100, 8, expect_file!["../../golden/charts-zoomed-in.txt"]);
    press(&mut state, Action::Older, 5);
    check(&state, 100, 8, expect_file!["../../golden/charts-panned.txt"]);
}

#[test]
fn panning_ends_where_the_past_does_and_comes_back_to_the_present() {
    let mut state = state_of(&example::machine(), 900, busy);
    let oldest = state.history.time(0).unwrap();
    act(&mut state, Action::Older);
    assert!(state.charts.end.is_some());
    press(&mut state, Action::Older, 100);
    let window = charts(&state, Rect::new(0, 0, 160, 16))[0].window;
    assert_eq!(window.column(oldest), Some(0));
    press(&mut state, Action::Newer, 100);
    assert_eq!(state.charts.end, None);
    act(&mut state, Action::Older);
    act(&mut state, Action::Now);
    assert_eq!(state.charts.end, None);
    act(&mut state, Action::ZoomOut);
    act(&mut state, Action::Now);
    assert_eq!(state.charts.span, None);
}

#[test]
fn a_held_picture_stays_as_it_is() {
    let mut state = state_of(&example::machine(), 100, busy);
    let before = drawn(&state, 160, 16);
    state.paused = true;
    let mut snapshot = example::machine();
    snapshot.taken_at.0 += 100_000;
    snapshot.devices[0].power = Some(Watts(149.0));
    state.take(Moment::of(snapshot));
    assert_eq!(drawn(&state, 160, 16), before);
}

#[test]
fn ascii_is_enough() {
    let mut state = state_of(&example::machine(), 100, |second, snapshot| {
        busy(second, snapshot);
        snapshot.devices[0].power_max = Some(Watts(85.0));
    });
    state.theme.unicode = false;
    act(&mut state, Action::Cursor);
    press(&mut state, Action::Left, 9);
    let text = drawn(&state, 120, 12);
    assert!(text.is_ascii(), "{text}");
    expect_file!["../../golden/charts-ascii.txt"].assert_eq(&text);
    state.settings.filled = true;
    check(&state, 120, 12, expect_file!["../../golden/charts-ascii-filled.txt"]);
}

#[test]
fn degrees_fahrenheit_and_figures_that_are_not_there() {
    let mut state = state_of(&example::galaxy(), 60, busy);
    state.settings.fahrenheit = true;
    state.settings.charts = vec![ASIC_TEMP.field(), FAN.field(), HOST_TO_DEVICE.field()];
    check(&state, 120, 10, expect_file!["../../golden/charts-fahrenheit.txt"]);
    // A hung chip, and none at all.
    state.device = Some(DeviceId::Local(5));
    check(&state, 120, 6, expect_file!["../../golden/charts-hung.txt"]);
    let state = TopState::new(TopSettings::default(), true);
    check(&state, 120, 5, expect_file!["../../golden/charts-nothing.txt"]);
}

#[test]
fn other_figures_come_first_when_asked_for() {
    let mut state = state_of(&example::machine(), 60, |second, snapshot| {
        let device = &mut snapshot.devices[0];
        device.fan = Some(Rpm(1800 + (second as u32 % 20) * 10));
        device.pcie.host_to_device = Some(BytesPerSecond(3.2e9 * wave(second, 30)));
    });
    let mut seen = std::collections::BTreeSet::new();
    for _ in kept_in_history() {
        seen.insert(figures(&state)[0].name());
        act(&mut state, Action::Metric);
    }
    assert_eq!(seen.len(), kept_in_history().count());
    press(&mut state, Action::Metric, 3);
    check(&state, 120, 10, expect_file!["../../golden/charts-others.txt"]);
    press(&mut state, Action::Metric, 3);
    check(&state, 120, 10, expect_file!["../../golden/charts-traffic.txt"]);
}

fn event(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
    MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }
}

#[test]
fn the_mouse_clicks_drags_and_zooms() {
    let area = Rect::new(0, 5, 160, 16);
    for reversed in [false, true] {
        let mut state = state_of(&example::machine(), 900, busy);
        state.settings.reversed = reversed;
        let window = |state: &TopState| charts(state, area)[0].window;
        let plot = charts(&state, area)[0].plot;
        let x = plot.x + 20;
        let left = MouseButton::Left;
        mouse(&mut state, area, event(MouseEventKind::Down(left), x, plot.y));
        mouse(&mut state, area, event(MouseEventKind::Up(left), x, plot.y));
        let clicked = state.charts.cursor.unwrap();
        assert_eq!(window(&state).column(clicked), Some(20));
        // A drag brings what was pressed to where it is let go, and is no click.
        let further = if reversed { x - 5 } else { x + 5 };
        mouse(&mut state, area, event(MouseEventKind::Down(left), x, plot.y));
        mouse(&mut state, area, event(MouseEventKind::Drag(left), further, plot.y + 1));
        mouse(&mut state, area, event(MouseEventKind::Up(left), further, plot.y + 1));
        assert_eq!(state.charts.cursor, Some(clicked));
        assert_eq!(window(&state).column(clicked), Some(further - plot.x));
        // The wheel keeps what is under the pointer there.
        let before = state.charts.clone();
        mouse(&mut state, area, event(MouseEventKind::ScrollUp, further, plot.y));
        assert_eq!(window(&state).column(clicked), Some(further - plot.x));
        assert!(state.charts.span < Some(window(&state_of(&example::machine(), 1, busy)).span_ms() as f64 / 1000.0));
        mouse(&mut state, area, event(MouseEventKind::ScrollDown, further, plot.y));
        assert_eq!(window(&state).column(clicked), Some(further - plot.x));
        assert_eq!(state.charts.end, before.end);
        // A second click takes the cursor away.
        mouse(&mut state, area, event(MouseEventKind::Down(left), further, plot.y));
        mouse(&mut state, area, event(MouseEventKind::Up(left), further, plot.y));
        assert_eq!(state.charts.cursor, None);
    }
}

#[test]
fn the_cursor_takes_the_charts_along() {
    for reversed in [false, true] {
        let mut state = state_of(&example::machine(), 900, busy);
        state.settings.reversed = reversed;
        act(&mut state, Action::Cursor);
        let (back, forth) = if reversed { (Action::Right, Action::Left) } else { (Action::Left, Action::Right) };
        for action in [vec![back; 80], vec![forth; 90]].concat() {
            act(&mut state, action);
            let chart = charts(&state, Rect::new(0, 0, 160, 16))[0];
            assert!(chart.window.column(state.charts.cursor.unwrap()).is_some());
        }
        assert_eq!(state.charts.end, None);
        act(&mut state, Action::Home);
        assert_eq!(state.charts.cursor, state.history.time(0));
        act(&mut state, Action::End);
        assert_eq!((state.charts.cursor, state.charts.end), (Some(state.snapshot().taken_at), None));
    }
}

const ACTIONS: [Action; 15] = [
    Action::ZoomIn,
    Action::ZoomOut,
    Action::Older,
    Action::Newer,
    Action::Now,
    Action::Cursor,
    Action::Left,
    Action::Right,
    Action::Home,
    Action::End,
    Action::Back,
    Action::Metric,
    Action::Overlay,
    Action::Filled,
    Action::Reversed,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn whatever_is_drawn_stays_in_its_place(
        samples in proptest::collection::vec((0i64..5000, proptest::option::of(-1e9..1e9f64)), 0..80),
        actions in proptest::collection::vec(0usize..15, 0..30),
        (width, height) in (0u16..170, 0u16..40),
        (x, y) in (0u16..6, 0u16..6),
        unicode: bool,
        clicks in proptest::collection::vec((0u16..180, 0u16..50, 0usize..5), 0..6),
    ) {
        let mut state = TopState::new(TopSettings::default(), unicode);
        state.area = Rect::new(0, 0, 120, 40);
        let mut time = 1_700_000_000_000;
        for (pause, value) in samples {
            time += pause;
            let mut snapshot = example::machine();
            snapshot.taken_at = Timestamp(time);
            snapshot.devices[0].power = value.map(Watts);
            snapshot.devices[0].asic_temp = value.map(|value| Celsius(value / 1e7));
            state.take(Moment::of(snapshot));
        }
        let area = Rect::new(x, y, width, height);
        for action in actions {
            act(&mut state, ACTIONS[action]);
        }
        for (column, row, kind) in clicks {
            let left = MouseButton::Left;
            let kinds = [
                MouseEventKind::ScrollUp,
                MouseEventKind::ScrollDown,
                MouseEventKind::Down(left),
                MouseEventKind::Drag(left),
                MouseEventKind::Up(left),
            ];
            mouse(&mut state, area, event(kinds[kind], column, row));
        }
        // Around the charts lies something that must stay.
        let whole = Rect::new(0, 0, width + 12, height + 12);
        let mut buf = Buffer::filled(whole, '#');
        draw(&state, area, &mut buf);
        for position in whole.positions().filter(|position| !area.contains(*position)) {
            prop_assert_eq!(buf.symbol(&buf[position]), "#");
        }
        // On a screen that is smaller than it should be, nothing breaks.
        draw(&state, area, &mut Buffer::empty(Rect::new(0, 0, 50, 9)));
    }
}

/// How long a picture of three charts takes, on 160×50 and with an hour of 32 chips. Run with `--ignored`.
#[test]
#[ignore = "a measurement"]
fn measure_a_picture() {
    let mut state = state_of(&example::galaxy(), 3600, busy);
    let area = Rect::new(0, 0, 160, 24);
    let mut buf = Buffer::empty(area);
    for (overlaid, span) in [(false, None), (false, Some(3600.0)), (true, None), (true, Some(3600.0))] {
        (state.settings.overlaid, state.charts.span) = (overlaid, span);
        let start = std::time::Instant::now();
        (0..200).for_each(|_| draw(&state, area, &mut buf));
        println!("overlaid {overlaid}, span {span:?}: {} µs", start.elapsed().as_micros() / 200);
    }
    let mut snapshot = example::galaxy();
    let start = std::time::Instant::now();
    for second in 3600..4600 {
        snapshot.taken_at = Timestamp(example::galaxy().taken_at.0 + second * 1000);
        state.history.push(&snapshot);
    }
    println!("a sample: {} µs", start.elapsed().as_micros() / 1000);
}
