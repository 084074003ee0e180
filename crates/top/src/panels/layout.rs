//! Which panel is where.

use super::{charts, devices, heat};
use crate::screen::Rect;
use crate::state::{TopState, TopView};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    Header,
    Devices,
    Charts,
    /// All chips over time.
    Heat,
    Processes,
    Memory,
    Mesh,
    Events,
    Fleet,
    /// When it is, in a replay.
    Timeline,
    Status,
}

/// Below this nothing makes sense.
pub const SMALLEST: (u16, u16) = (40, 8);
/// Processes keep so many rows, whatever else there is.
pub const LEAST_PROCESSES: u16 = 5;
/// A chart that is lower says nothing.
const LEAST_CHARTS: u16 = 4;
/// Both get this before one of them gets more.
const GOOD: u16 = 6;
/// From so many columns on, charts and processes are side by side.
const WIDE: u16 = 240;

/// The panels of a view, from top to bottom.
pub fn of(state: &TopState, area: Rect) -> Vec<(Panel, Rect)> {
    let row = |y: u16, height: u16| Rect { x: area.x, y: area.y + y, width: area.width, height };
    let timeline = u16::from(state.replay.is_some() && area.height > SMALLEST.1);
    let body = row(1.min(area.height), area.height.saturating_sub(2 + timeline));
    let mut panels = vec![(Panel::Header, row(0, area.height.min(1)))];
    match state.view {
        TopView::Overview => {
            let height = devices::height(state, area).min(body.height);
            panels.push((Panel::Devices, row(1, height)));
            let rest = Rect { y: body.y + height, height: body.height - height, ..body };
            let below = heat::height(state, rest);
            let rest = Rect { height: rest.height - below, ..rest };
            panels.push((Panel::Heat, Rect { y: rest.bottom(), height: below, ..rest }));
            let (charts, processes) = charts_and_processes(state, rest);
            match state.has_processes {
                true => panels.extend([(Panel::Charts, charts), (Panel::Processes, processes)]),
                false => panels.push((Panel::Charts, rest)),
            }
        }
        TopView::Memory => panels.push((Panel::Memory, body)),
        TopView::Mesh => panels.push((Panel::Mesh, body)),
        TopView::Events => panels.push((Panel::Events, body)),
        TopView::Fleet => panels.push((Panel::Fleet, body)),
    }
    panels.push((Panel::Timeline, Rect { y: body.bottom(), height: timeline, ..body }));
    panels.push((Panel::Status, row(area.height.saturating_sub(1), area.height.min(1))));
    panels.retain(|(_, area)| area.height > 0 && area.width > 0);
    panels
}

/// Where a panel is, if it can be seen.
pub fn area_of(state: &TopState, wanted: Panel) -> Option<Rect> {
    let panels = if super::is_too_small(state.area) { Vec::new() } else { of(state, state.area) };
    panels.into_iter().find(|(panel, _)| *panel == wanted).map(|(_, area)| area)
}

/// One above the other, or side by side where the terminal is very wide. Charts are left out when there is no room.
fn charts_and_processes(state: &TopState, rest: Rect) -> (Rect, Rect) {
    let wanted = charts::height(state, rest.height);
    if rest.width >= WIDE && rest.height >= LEAST_CHARTS && wanted > 0 {
        let left = rest.width / 2;
        return (Rect { width: left, ..rest }, Rect { x: rest.x + left, width: rest.width - left, ..rest });
    }
    let most = rest.height.saturating_sub(if rest.height >= 2 * GOOD { GOOD } else { LEAST_PROCESSES });
    let height = match wanted {
        0 => 0,
        wanted => wanted.max(GOOD).min(most),
    };
    let height = if height < LEAST_CHARTS { 0 } else { height };
    let processes = Rect { y: rest.y + height, height: rest.height - height, ..rest };
    (Rect { height, ..rest }, processes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Buffer;
    use crate::settings::TopSettings;
    use expect_test::{Expect, expect};
    use show::example;
    use watch::moment::Moment;

    fn state(devices: usize) -> TopState {
        let mut snapshot = example::galaxy();
        snapshot.devices.truncate(devices);
        let mut state = TopState::new(TopSettings::default(), true);
        state.take(Moment::of(snapshot));
        state
    }

    fn check(devices: usize, width: u16, height: u16, expect: Expect) {
        let panels = of(&state(devices), Rect::new(0, 0, width, height));
        let line = |(panel, area): &(Panel, Rect)| format!("{panel:?} {area}\n");
        expect.assert_eq(&panels.iter().map(line).collect::<String>());
    }

    #[test]
    fn thirty_two_chips_a_chart_and_the_processes_fit_a_small_terminal() {
        check(
            32,
            80,
            24,
            expect![[r#"
                Header 80x1+0+0
                Devices 80x10+0+1
                Charts 80x6+0+11
                Processes 80x6+0+17
                Status 80x1+0+23
            "#]],
        );
    }

    #[test]
    fn charts_and_processes_stand_side_by_side_where_it_is_very_wide() {
        check(
            32,
            320,
            90,
            expect![[r#"
                Header 320x1+0+0
                Devices 320x25+0+1
                Heat 320x34+0+55
                Charts 160x29+0+26
                Processes 160x29+160+26
                Status 320x1+0+89
            "#]],
        );
    }

    #[test]
    fn the_smallest_terminal_keeps_its_processes() {
        check(
            32,
            40,
            8,
            expect![[r#"
            Header 40x1+0+0
            Devices 40x1+0+1
            Processes 40x5+0+2
            Status 40x1+0+7
        "#]],
        );
        check(
            1,
            40,
            17,
            expect![[r#"
                Header 40x1+0+0
                Devices 40x2+0+1
                Charts 40x6+0+3
                Processes 40x7+0+9
                Status 40x1+0+16
            "#]],
        );
    }

    #[test]
    fn no_screen_is_too_small_to_draw() {
        let mut state = state(8);
        for (width, height) in (1..=130).step_by(3).flat_map(|w| (1..=60).step_by(3).map(move |h| (w, h))) {
            state.view = TopView::ALL[usize::from(width + height) % TopView::ALL.len()];
            let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
            crate::panels::draw(&state, buf.area, &mut buf);
            of(&state, buf.area);
        }
    }

    #[test]
    fn panels_cover_the_screen_without_gap_or_overlap_at_any_size() {
        for devices in [0, 1, 4, 8, 32] {
            let state = state(devices);
            for width in (SMALLEST.0..=400).step_by(9) {
                for height in SMALLEST.1..=120 {
                    let screen = Rect::new(0, 0, width, height);
                    let panels = of(&state, screen);
                    let sum: u32 = panels.iter().map(|(_, area)| area.area()).sum();
                    assert_eq!(sum, screen.area(), "{devices} {width}x{height} {panels:?}");
                    for (n, (panel, area)) in panels.iter().enumerate() {
                        assert_eq!(area.intersection(screen), *area, "{panel:?} {width}x{height}");
                        assert!(panels[..n].iter().all(|(_, other)| !other.intersects(*area)), "{panel:?} {panels:?}");
                    }
                    let height_of = |panel| panels.iter().find(|(p, _)| *p == panel).map_or(0, |(_, area)| area.height);
                    assert!(height_of(Panel::Processes) >= 5, "{width}x{height} {panels:?}");
                    assert!(!(1..4).contains(&height_of(Panel::Charts)), "{width}x{height} {panels:?}");
                }
            }
        }
    }
}
