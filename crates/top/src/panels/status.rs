//! The last line: the newest event or notice, and the keys.

use crate::keys::{Action, Binding, binding, key_line};
use crate::paint::{Buffer, Rect, Tone, columns, put};
use crate::state::{TopState, TopView};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::Severity;
use show::text::{clean, cut};
use std::borrow::Cow;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let (theme, y) = (&state.theme, area.y);
    if let Some((text, tone)) = message(state) {
        let room = usize::from(room_for_message(area));
        let text = clean(&text);
        put(buf, area.x + 1, y, area.right(), &cut(&text, room, theme.glyphs().cut), theme.style(tone));
    }
    for key in keys(state, area) {
        let x = put(buf, key.from, y, area.right(), shown(key.binding), theme.style(Tone::Key)) + 1;
        put(buf, x, y, area.right(), key.word, theme.style(Tone::Plain));
    }
}

/// A click on a key does what the key does.
pub fn mouse(state: &TopState, area: Rect, event: MouseEvent) -> Option<Action> {
    let is_click = event.kind == MouseEventKind::Down(MouseButton::Left);
    let hit = keys(state, area).into_iter().find(|key| (key.from..key.to).contains(&event.column));
    hit.filter(|_| is_click).map(|key| key.binding.action)
}

/// So long an event is news.
const FRESH_MS: i64 = 300_000;

/// An answer to what was just done comes before what has happened.
fn message(state: &TopState) -> Option<(Cow<'_, str>, Tone)> {
    let notice = state.notice.as_deref().map(|notice| (Cow::Borrowed(notice), Tone::Strong));
    let newest = || state.events.newest(state.snapshot().taken_at, FRESH_MS);
    // Why a machine does not answer is worth more than what it said before.
    let far = state.hosts.as_ref().filter(|_| state.view != TopView::Fleet).and_then(|hosts| hosts.current());
    let trouble = far.and_then(|host| host.trouble()).map(|why| (Cow::Borrowed(why), Tone::Critical));
    let newest = || if state.view == TopView::Fleet { None } else { newest() };
    let newest = || newest().map(|event| (Cow::Borrowed(event.text.as_str()), super::events::tone(event.weight)));
    // What is wrong stays in view when it is no news any more, and what is critical even beside other news.
    let firing = || {
        let alerts = &state.snapshot().alerts;
        let worst = alerts.first().filter(|_| state.view != TopView::Fleet)?;
        let tone = if worst.severity == Severity::Critical { Tone::Critical } else { Tone::Warning };
        // Several problems are counted, though only one is named.
        let text = match alerts.iter().filter(|alert| alert.severity > Severity::Info).count() {
            0 => return None,
            1 => Cow::Borrowed(worst.text.as_str()),
            all => Cow::Owned(format!("{all} alerts: {}", worst.text)),
        };
        Some((text, tone))
    };
    let critical = || firing().filter(|(_, tone)| *tone == Tone::Critical);
    notice.or(trouble).or_else(critical).or_else(newest).or_else(firing)
}

/// A message has all the room but that of the first key.
fn room_for_message(area: Rect) -> u16 {
    let first = if area.width >= 40 { 9 } else { 0 };
    area.width.saturating_sub(1 + first)
}

fn shown(binding: &Binding) -> &'static str {
    binding.shown.split(", ").next().unwrap_or(binding.shown)
}

/// A key of the last line: its word, and from where to where it goes.
struct ShownKey {
    binding: &'static Binding,
    word: &'static str,
    from: u16,
    to: u16,
}

/// The keys for which there is room.
fn keys(state: &TopState, area: Rect) -> Vec<ShownKey> {
    let said = message(state).map_or(0, |(text, _)| columns(&text).min(room_for_message(area)) + 2);
    let mut x = area.x + 1 + said;
    let mut keys = Vec::new();
    let no_signals = state.settings.read_only || state.replay.is_some() || state.hosts.is_some();
    let line = key_line(state.view).iter().filter(|(action, _)| *action != Action::Signal || !no_signals);
    for (binding, word) in line.filter_map(|(action, word)| Some((binding(*action)?, *word))) {
        let end = x.saturating_add(columns(shown(binding)) + 1 + columns(word));
        if end > area.right() {
            break;
        }
        keys.push(ShownKey { binding, word, from: x, to: end });
        x = end + 2;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::HelpWindow;
    use crate::paint::lines;
    use crate::settings::TopSettings;
    use crate::state::{Effect, Overlay};
    use crossterm::event::KeyModifiers;
    use expect_test::expect;

    fn drawn(state: &TopState) -> String {
        let mut text = String::new();
        for width in [120, 80, 60, 40, 20, 3] {
            let mut buf = Buffer::empty(Rect::new(0, 0, width, 1));
            draw(state, buf.area, &mut buf);
            text += &format!("|{}", lines(&buf));
        }
        text
    }

    fn click(state: &mut TopState, column: u16) {
        let kind = MouseEventKind::Down(MouseButton::Left);
        let event = MouseEvent { kind, column, row: 0, modifiers: KeyModifiers::NONE };
        if let Some(action) = mouse(state, Rect::new(0, 0, 80, 1), event) {
            crate::app::act_on(state, action);
        }
    }

    #[test]
    fn as_many_keys_are_named_as_there_is_room_for() {
        expect![[r#"
            | ? Help  q Quit  v View  d Device  / Filter  F6 Sort  F9 Signal  p Pause  F2 Setup
            | ? Help  q Quit  v View  d Device  / Filter  F6 Sort  F9 Signal  p Pause
            | ? Help  q Quit  v View  d Device  / Filter  F6 Sort
            | ? Help  q Quit  v View  d Device
            | ? Help  q Quit
            |
        "#]]
        .assert_eq(&drawn(&TopState::new(TopSettings::default(), true)));
    }

    #[test]
    fn a_notice_is_never_hidden() {
        let mut state = TopState::new(TopSettings::default(), true);
        state.notice = Some("SIGTERM was sent to 4711 (python3 serve.py --model llama-3.1-8b)\x1b[2J 日本語".into());
        expect![[r#"
            | SIGTERM was sent to 4711 (python3 serve.py --model llama-3.1-8b)?[2J 日本語  ? Help  q Quit  v View  d Device  / Filter
            | SIGTERM was sent to 4711 (python3 serve.py --model llama-3.1-8b)?[2J …  ? Help
            | SIGTERM was sent to 4711 (python3 serve.py --mode…  ? Help
            | SIGTERM was sent to 4711 (pyt…  ? Help
            | SIGTERM was sent t…
            | S…
        "#]].assert_eq(&drawn(&state));
    }

    #[test]
    fn signals_are_not_offered_where_none_may_be_sent() {
        let state = TopState::new(TopSettings { read_only: true, ..TopSettings::default() }, true);
        assert!(!drawn(&state).contains("Signal"));
    }

    #[test]
    fn a_click_on_a_word_does_what_its_key_does() {
        let mut state = TopState::new(TopSettings::default(), true);
        let text = drawn(&state);
        let line = text.lines().next().unwrap().trim_start_matches('|');
        let at = |word: &str| line.find(word).unwrap() as u16;
        click(&mut state, at("Quit"));
        assert_eq!(state.effects, [Effect::Quit]);
        click(&mut state, at("View"));
        assert_eq!(state.view, TopView::Memory);
        click(&mut state, at("Pause") + 20);
        assert!(!state.paused, "there is nothing");
        click(&mut state, at("? Help"));
        assert_eq!(state.overlay, Some(Overlay::Help(HelpWindow::default())));
    }
}
