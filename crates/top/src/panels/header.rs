//! The first line: which view, which machine, which moment.

use super::devices::figures::short_time;
use super::{events, fleet};
use crate::paint::{Buffer, Rect, Tone, put};
use crate::pieces::{self, Piece};
use crate::state::{TopState, TopView};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::Timestamp;
use watch::fleet::Reach;

const GAP: u16 = 2;
/// What is worth less than this goes before the tabs lose their names.
const WORTH_MORE_THAN_TABS: u8 = 3;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    let end = area.right().saturating_sub(1);
    let (tabs, pieces) = fitted(state, area);
    let mut x = area.x;
    for (view, text, _) in tabs {
        let tone = match events::unread(state).filter(|_| view == TopView::Events) {
            _ if view == state.view => Tone::Selected,
            Some((_, tone)) => tone,
            None => Tone::Faint,
        };
        x = put(buf, x, area.y, area.right(), &text, theme.style(tone));
    }
    pieces::draw(buf, (x.saturating_add(1), area.y), end, pieces, GAP, theme);
}

/// A click on a tab opens its view.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    if event.kind == MouseEventKind::Down(MouseButton::Left) {
        let hit = fitted(state, area).0.into_iter().find(|(_, _, place)| place.contains(&event.column));
        match hit {
            // Of no machine there is nothing to see.
            Some((view, _, _)) if state.view == TopView::Fleet && view != TopView::Fleet => fleet::enter(state, view),
            Some((view, _, _)) => state.view = view,
            None => {}
        }
    }
}

/// A view, what its tab says, and where.
type Tab = (TopView, String, std::ops::Range<u16>);

/// The tabs and the pieces beside them for which there is room.
fn fitted(state: &TopState, area: Rect) -> (Vec<Tab>, Vec<Piece>) {
    let room =
        |tabs: &[Tab]| area.right().saturating_sub(2).saturating_sub(tabs.last().map_or(area.x, |tab| tab.2.end));
    let tabs = tabs(state, area, true);
    let all = pieces(state);
    let mut pieces = all.clone();
    pieces::keep_fitting(&mut pieces, GAP, room(&tabs));
    let important = |pieces: &[Piece]| pieces.iter().filter(|piece| piece.rank < WORTH_MORE_THAN_TABS).count();
    let are_whole = tabs.last().is_some_and(|tab| tab.2.end <= area.right());
    if are_whole && important(&pieces) == important(&all) && pieces::width(pieces.iter(), GAP) <= room(&tabs) {
        return (tabs, pieces);
    }
    let tabs = self::tabs(state, area, false);
    let mut pieces = all;
    pieces::keep_fitting(&mut pieces, GAP, room(&tabs));
    (tabs, pieces)
}

/// All tabs. Where there is little room, only the open one has its name.
fn tabs(state: &TopState, area: Rect, named: bool) -> Vec<Tab> {
    let mut x = area.x;
    let views = state.views();
    let unread = events::unread(state);
    let mut tabs = Vec::with_capacity(views.len());
    for view in views.iter().copied() {
        let n = if view == TopView::Fleet { "F".to_owned() } else { (view as usize).to_string() };
        let mark =
            unread.filter(|_| view == TopView::Events).map(|(count, _)| format!("({count}) ")).unwrap_or_default();
        let name = if named || view == state.view { format!("{} ", view.name()) } else { String::new() };
        let text = format!(" {n} {name}{mark}");
        let end = x.saturating_add(text.len() as u16);
        tabs.push((view, text, x..end));
        x = end;
    }
    tabs
}

fn pieces(state: &TopState) -> Vec<Piece> {
    let host = &state.snapshot().host;
    let mut pieces = Vec::new();
    if state.paused {
        pieces.push(Piece::right("PAUSED", Tone::Warning, 0));
    }
    let hosts = state.hosts.as_ref().filter(|_| state.view == TopView::Fleet);
    let any_simulated = hosts.is_some_and(|hosts| {
        hosts.all().filter_map(|(host, _)| host.snapshot.as_ref()).any(|snapshot| snapshot.host.simulated)
    });
    if any_simulated || (hosts.is_none() && host.simulated) {
        pieces.push(Piece::right("SIMULATED", Tone::Warning, 0));
    }
    if let Some(replay) = &state.replay {
        let file = replay.file.rsplit('/').next().unwrap_or_default();
        pieces.push(Piece::right(file, Tone::Plain, 3));
        let (at, len, speed) = (replay.at + usize::from(replay.len > 0), replay.len, replay.speed);
        pieces.push(Piece::right(format!("replay {at}/{len}"), Tone::Strong, 1));
        pieces.push(Piece::right(format!("{speed}x"), Tone::Plain, 2));
    }
    if state.view == TopView::Fleet {
        return pieces;
    }
    if let Some(far) = state.hosts.as_ref().and_then(|hosts| hosts.current()) {
        pieces.push(Piece::right(far.name.as_str(), Tone::Strong, 2));
        if let Reach::Unreachable { since, .. } = &far.state {
            let since = short_time(since.as_secs_f64());
            pieces.push(Piece::right(format!("NO ANSWER for {since}"), Tone::Critical, 0));
        } else if far.state == Reach::Waiting {
            pieces.push(Piece::right("waiting", Tone::Warning, 0));
        }
    }
    if let Some(version) = &host.driver_version {
        pieces.push(Piece::right(format!("driver {version}"), Tone::Faint, 5));
    }
    if let Some(name) = &host.name {
        pieces.push(Piece::right(name.as_str(), Tone::Plain, 4));
    }
    // Before the first sample there is no moment.
    if state.snapshot().taken_at != Timestamp(0) {
        let now = state.local(state.snapshot().taken_at);
        // What is live is of today.
        if state.replay.is_some() {
            pieces.push(Piece::right(now.strftime("%Y-%m-%d").to_string(), Tone::Plain, 3));
        }
        pieces.push(Piece::right(now.strftime("%H:%M:%S").to_string(), Tone::Strong, 1));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;
    use crate::settings::TopSettings;
    use crate::state::Replay;
    use crossterm::event::KeyModifiers;
    use expect_test::expect;
    use show::example;
    use watch::moment::Moment;

    fn state() -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        state.zone = jiff::tz::TimeZone::UTC;
        state.take(Moment::of(example::machine()));
        state
    }

    fn drawn(state: &TopState) -> String {
        let mut text = String::new();
        for width in [160, 120, 80, 60, 40, 20] {
            let mut buf = Buffer::empty(Rect::new(0, 0, width, 1));
            draw(state, buf.area, &mut buf);
            text += &format!("|{}", lines(&buf));
        }
        text
    }

    #[test]
    fn the_least_important_goes_first_when_it_gets_narrow() {
        expect![[r#"
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)                                                                                      driver 2.10.0  lab-7  03:04:05
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)                                              driver 2.10.0  lab-7  03:04:05
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)      driver 2.10.0  lab-7  03:04:05
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)        03:04:05
            | 1 Overview  2  3  4 (4)       03:04:05
            | 1 Overview  2  3  4
        "#]].assert_eq(&drawn(&state()));
    }

    #[test]
    fn simulated_and_paused_are_said_at_any_width() {
        let mut state = state();
        let mut snapshot = example::machine();
        snapshot.host.simulated = true;
        state.take(Moment::of(snapshot));
        state.paused = true;
        state.view = TopView::Events;
        expect![[r#"
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)                                                                   PAUSED  SIMULATED  driver 2.10.0  lab-7  03:04:05
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)                           PAUSED  SIMULATED  driver 2.10.0  lab-7  03:04:05
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)  PAUSED  SIMULATED  lab-7  03:04:05
            | 1  2  3  4 Events (4)   PAUSED  SIMULATED  lab-7  03:04:05
            | 1  2  3  4 Events (4)  PAUSED  SIMULAT
            | 1  2  3  4 Events (
        "#]].assert_eq(&drawn(&state));
    }

    #[test]
    fn a_replay_says_where_it_is() {
        let mut state = state();
        state.replay =
            Some(Replay { file: "/tmp/night\x1b.rec".into(), at: 11, len: 300, speed: 0.5, ..Replay::default() });
        expect![[r#"
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)                                         night?.rec  replay 12/300  0.5x  driver 2.10.0  lab-7  2026-01-02  03:04:05
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)                night?.rec  replay 12/300  0.5x  lab-7  2026-01-02  03:04:05
            | 1 Overview  2 Memory  3 Mesh  4 Events (4)       replay 12/300  0.5x  03:04:05
            | 1 Overview  2  3  4 (4)      replay 12/300  0.5x  03:04:05
            | 1 Overview  2  3  4 (4)  replay 12/300
            | 1 Overview  2  3  4
        "#]].assert_eq(&drawn(&state));
    }

    #[test]
    fn before_the_first_sample_there_is_no_time() {
        expect![[r#"
            | 1 Overview  2 Memory  3 Mesh  4 Events
            | 1 Overview  2 Memory  3 Mesh  4 Events
            | 1 Overview  2 Memory  3 Mesh  4 Events
            | 1 Overview  2 Memory  3 Mesh  4 Events
            | 1 Overview  2 Memory  3 Mesh  4 Events
            | 1 Overview  2  3  4
        "#]]
        .assert_eq(&drawn(&TopState::new(TopSettings::default(), true)));
    }

    #[test]
    fn a_click_on_a_tab_opens_it_whether_it_has_its_name_or_not() {
        for (width, column, view) in [(160, 23, TopView::Mesh), (40, 13, TopView::Memory), (40, 19, TopView::Events)] {
            let (mut state, area) = (state(), Rect::new(0, 0, width, 1));
            state.paused = true;
            let kind = MouseEventKind::Down(MouseButton::Left);
            mouse(&mut state, area, MouseEvent { kind, column, row: 0, modifiers: KeyModifiers::NONE });
            assert_eq!(state.view, view, "{width}");
        }
    }
}
