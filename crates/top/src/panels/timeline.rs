//! The time line of a replay: where it is, and what happened when.

use super::events;
use crate::paint::{Buffer, Rect, Tone, columns, put, repeat};
use crate::player::PlayCommand;
use crate::state::{Effect, TopState, TopView};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::{Timestamp, Weight};
use watch::past;

/// So far back the past begins where no event is selected.
const A_WHILE_MS: i64 = 300_000;
/// With fewer columns for the line, the times beside it are left out.
const LEAST_LINE: u16 = 20;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let Some(replay) = &state.replay else { return };
    let (theme, line, y) = (&state.theme, line(state, area), area.y);
    if line.x > area.x + 1 {
        let text = |moment| clock(state, moment);
        put(buf, area.x + 1, y, line.x, &text(replay.span.0), theme.style(Tone::Faint));
        put(buf, line.right() + 1, y, area.right(), &text(replay.span.1), theme.style(Tone::Faint));
    }
    let glyphs = theme.glyphs();
    repeat(buf, line.x, y, line.right(), glyphs.horizontal, theme.style(Tone::Border));
    // The gravest of a column is drawn last.
    for weight in [Weight::Warning, Weight::Bad] {
        for event in state.events.latest(Timestamp(i64::MAX)).filter(|event| event.weight == weight) {
            if let Some(x) = column(replay.span, event.time, line) {
                let mark = if weight == Weight::Bad { glyphs.incident } else { glyphs.event };
                buf[(x, y)].set_char(mark).set_style(theme.style(events::tone(weight)));
            }
        }
    }
    if let Some(x) = column(replay.span, state.snapshot().taken_at, line) {
        buf[(x, y)].set_char(glyphs.full).set_style(theme.style(Tone::Strong));
    }
}

/// Goes to the event before the moment that is shown, or to the next one.
pub fn jump(state: &mut TopState, forward: bool) {
    let now = state.snapshot().taken_at;
    if state.replay.is_none() {
        return state.notice = Some("this key is for a replay: T shows the past, from the black box".into());
    }
    let times = state.events.latest(Timestamp(i64::MAX)).filter(|event| event.weight >= Weight::Warning);
    let times = times.map(|event| event.time);
    let to = if forward { times.filter(|time| *time > now).min() } else { times.filter(|time| *time < now).max() };
    match to {
        Some(time) => go(state, time),
        None if forward => state.notice = Some("no warning or incident after this moment".into()),
        None => state.notice = Some("no warning or incident before this moment".into()),
    }
}

/// A click on the line goes there.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    let line = line(state, area);
    let is_click =
        matches!(event.kind, MouseEventKind::Down(MouseButton::Left) | MouseEventKind::Drag(MouseButton::Left));
    let Some(replay) = state.replay.as_ref().filter(|_| is_click) else { return };
    if (line.left()..line.right()).contains(&event.column) {
        let (from, to) = replay.span;
        let part = f64::from(event.column - line.x) / f64::from(line.width.saturating_sub(1).max(1));
        go(state, Timestamp(from.0 + ((to.0 - from.0) as f64 * part) as i64));
    }
}

/// Shows the past: when the selected event happened, or a while ago. From there, the present again.
pub fn visit(state: &mut TopState) {
    let effect = match &state.replay {
        Some(replay) if replay.is_visit => Effect::Return,
        Some(_) => return state.notice = Some("this is the past already: q quits".into()),
        None if state.hosts.is_some() => {
            return state.notice = Some("the black box is on that machine: run `ttmon top` there".into());
        }
        None => {
            let selected = events::selected(state).filter(|_| state.view == TopView::Events).map(|event| event.time);
            Effect::VisitPast(selected.unwrap_or(Timestamp(past::now().0 - A_WHILE_MS)))
        }
    };
    state.effects.push(effect);
}

fn go(state: &mut TopState, to: Timestamp) {
    state.effects.push(Effect::Play(PlayCommand::Go(to)));
}

/// The line itself, between the times of its ends.
fn line(state: &TopState, area: Rect) -> Rect {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let Some(replay) = &state.replay else { return inner };
    let (left, right) = (columns(&clock(state, replay.span.0)) + 1, columns(&clock(state, replay.span.1)) + 1);
    match inner.width.checked_sub(left + right) {
        Some(width) if width >= LEAST_LINE => Rect { x: inner.x + left, width, ..inner },
        _ => inner,
    }
}

/// With the day where the ends are of different ones.
fn clock(state: &TopState, moment: Timestamp) -> String {
    let days = state.replay.as_ref().map(|replay| [replay.span.0, replay.span.1].map(|end| state.local(end).date()));
    let is_one_day = days.is_none_or(|[first, last]| first == last);
    state.local(moment).strftime(if is_one_day { "%H:%M:%S" } else { "%b %e %H:%M" }).to_string()
}

/// In which column a moment is.
fn column((from, to): (Timestamp, Timestamp), moment: Timestamp, line: Rect) -> Option<u16> {
    if line.width == 0 || !(from..=to).contains(&moment) {
        return None;
    }
    let part = (moment.0 - from.0) as f64 / (to.0 - from.0).max(1) as f64;
    Some(line.x + (part * f64::from(line.width - 1)).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app;
    use crate::paint::lines;
    use crate::settings::TopSettings;
    use crate::state::Replay;
    use crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers};
    use expect_test::expect;
    use jiff::tz::TimeZone;
    use model::{Event, Snapshot};
    use watch::moment::Moment;

    /// Ten minutes, of which the fifth is shown.
    fn state() -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        state.zone = TimeZone::UTC;
        let span = (Timestamp(36_000_000), Timestamp(36_600_000));
        state.replay = Some(Replay { file: "black box".into(), len: 600, speed: 1.0, span, ..Replay::default() });
        let event = |minute: i64, weight| Event::new(Timestamp(36_000_000 + minute * 60_000), weight, None, "x".into());
        let events = [event(2, Weight::Note), event(3, Weight::Warning), event(4, Weight::Bad), event(8, Weight::Bad)];
        state.take_log(&events, Vec::new());
        let snapshot = Snapshot { taken_at: Timestamp(36_300_000), ..Snapshot::empty() };
        state.take_played(300, Moment::of(snapshot));
        state
    }

    fn press(state: &mut TopState, key: char) -> Vec<Effect> {
        app::handle(state, &TerminalEvent::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE)));
        std::mem::take(&mut state.effects)
    }

    #[test]
    fn the_line_shows_where_the_replay_is_and_what_happened() {
        let mut state = state();
        let mut text = String::new();
        for (width, unicode) in [(80, true), (41, true), (30, true), (80, false)] {
            state.theme.unicode = unicode;
            let mut buf = Buffer::empty(Rect::new(0, 0, width, 1));
            draw(&state, buf.area, &mut buf);
            text += &format!("|{}", lines(&buf));
        }
        expect![[r#"
            | 10:00:00 ──────────────────◆─────▲─────▇────────────────▲──────────── 10:10:00
            | 10:00:00 ──────◆─▲─▇─────▲──── 10:10:00
            | ────────◆──▲──▇───────▲─────
            | 10:00:00 ------------------*-----!-----#----------------!------------ 10:10:00
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn keys_go_to_the_events_before_and_after() {
        let mut state = state();
        let at = |minute: i64| vec![Effect::Play(PlayCommand::Go(Timestamp(36_000_000 + minute * 60_000)))];
        assert_eq!(press(&mut state, ')'), at(8));
        assert_eq!(press(&mut state, '('), at(4));
        state.take_played(500, Moment::of(Snapshot { taken_at: Timestamp(36_500_000), ..Snapshot::empty() }));
        assert_eq!(
            (press(&mut state, ')'), state.notice.as_deref()),
            (vec![], Some("no warning or incident after this moment"))
        );
        state.replay = None;
        assert_eq!(press(&mut state, ')'), []);
        assert!(state.notice.is_some());
    }

    #[test]
    fn a_click_on_the_line_goes_to_that_time() {
        let mut state = state();
        let area = Rect::new(0, 0, 80, 1);
        let line = line(&state, area);
        let event = |column| MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column,
            row: 0,
            modifiers: KeyModifiers::NONE,
        };
        for (column, moment) in [(line.left(), 36_000_000), (line.right() - 1, 36_600_000)] {
            mouse(&mut state, area, event(column));
            assert_eq!(state.effects.pop(), Some(Effect::Play(PlayCommand::Go(Timestamp(moment)))));
        }
        mouse(&mut state, area, event(0));
        assert_eq!(state.effects, []);
    }

    #[test]
    fn the_past_is_visited_from_the_present_and_left_again() {
        let mut state = state();
        press(&mut state, 'T');
        assert_eq!((state.notice.take().is_some(), state.effects.len()), (true, 0), "a replay has no present");
        state.replay.as_mut().unwrap().is_visit = true;
        assert_eq!(press(&mut state, 'T'), [Effect::Return]);
        state.replay = None;
        state.view = TopView::Events;
        assert_eq!(press(&mut state, 'T'), [Effect::VisitPast(Timestamp(36_480_000))], "of the selected event");
        state.view = TopView::Overview;
        assert!(matches!(press(&mut state, 'T')[..], [Effect::VisitPast(_)]));
    }
}
