//! What has happened, the newest at the top: time, severity, device and text; one of them in full below.

use super::filter;
use crate::keys::Action;
use crate::paint::{Align, Buffer, Rect, Tone, cell, fill, frame, put, rule, wrapped};
use crate::state::{Overlay, TopState};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::{DeviceId, Event};
use show::text::clean;
use std::borrow::Cow;
use watch::events::Weight;

/// Columns of the time, the severity and the device.
const TIME: u16 = 15;
const SEVERITY: u16 = 8;
const DEVICE: u16 = 4;
/// The most rows that one event in full takes.
const DETAIL: u16 = 9;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let (theme, chosen) = (&state.theme, &state.chosen_events);
    let all = state.events.latest(state.now()).count();
    let shown = matching(state).count();
    let inner = frame(buf, area, &title(all, shown, &chosen.filter), theme);
    if shown == 0 {
        let text = match all {
            0 => "no events yet: state changes, resets, exits, faults and limits will be listed here",
            _ => "No event matches the filter.",
        };
        put(buf, inner.x + 1, inner.y, inner.right(), text, theme.style(Tone::Faint));
        return;
    }
    let (list, detail) = parts(inner, chosen.is_open);
    draw_head(state, list, buf);
    let rows = usize::from(list.height.saturating_sub(1));
    let first = first(chosen.at.min(shown - 1), rows, shown);
    for ((n, event), y) in matching(state).enumerate().skip(first).zip(list.top() + 1..list.bottom()) {
        draw_row(state, event, n == chosen.at, Rect { y, height: 1, ..list }, buf);
    }
    if let Some(event) = selected(state).filter(|_| !detail.is_empty()) {
        draw_detail(state, event, detail, buf);
    }
}

fn title(all: usize, shown: usize, filter: &str) -> String {
    match (all, shown) {
        (0, _) => "Events".into(),
        _ if !filter.is_empty() => format!("{shown} of {all} events match: {filter}"),
        (1, _) => "1 event".into(),
        (n, _) => format!("{n} events, the newest first"),
    }
}

/// The list, and the place of one event in full below it.
fn parts(inner: Rect, is_open: bool) -> (Rect, Rect) {
    let below = if is_open { DETAIL.min(inner.height / 2) } else { 0 };
    let list = Rect { height: inner.height - below, ..inner };
    (list, Rect { y: list.bottom(), height: below, ..inner })
}

/// The first event that is drawn: as late as possible, yet with the cursor in view.
fn first(at: usize, rows: usize, count: usize) -> usize {
    at.saturating_sub(rows.saturating_sub(1) / 2).min(count.saturating_sub(rows))
}

fn draw_head(state: &TopState, area: Rect, buf: &mut Buffer) {
    let style = state.theme.style(Tone::Faint);
    let mut x = area.x + 1;
    for (columns, text) in [(TIME, "TIME"), (SEVERITY, "SEVERITY"), (DEVICE, "DEV"), (u16::MAX, "EVENT")] {
        put(buf, x, area.y, area.right(), text, style);
        x = x.saturating_add(columns).saturating_add(1);
    }
}

fn draw_row(state: &TopState, event: &Event, is_selected: bool, area: Rect, buf: &mut Buffer) {
    let (theme, y) = (&state.theme, area.y);
    if is_selected {
        fill(buf, area, theme.style(Tone::Selected));
    }
    let style = |tone: Tone| theme.style(if is_selected { Tone::Selected } else { tone });
    let time = state.local(event.time).strftime("%b %e %H:%M:%S").to_string();
    let device = event.device.as_ref().map(DeviceId::to_string).unwrap_or_default();
    let mut x = area.x + 1;
    for (columns, text, tone) in [
        (TIME, time.as_str(), Tone::Faint),
        (SEVERITY, severity(event.weight), tone(event.weight)),
        (DEVICE, device.as_str(), Tone::Strong),
    ] {
        let room = columns.min(area.right().saturating_sub(x));
        cell(buf, (x, y), room, text, Align::Left, style(tone), theme);
        x = x.saturating_add(columns + 1);
    }
    let text = brief(event);
    let end = put(buf, x, y, area.right(), &clean(&text), style(tone(event.weight)));
    if let Some(kernel) = event.kernel.as_ref().filter(|kernel| !kernel.text.is_empty()) {
        put(buf, end + 2, y, area.right(), &clean(&kernel.text), style(Tone::Faint));
    }
    if end == area.right() && usize::from(end - x.min(end)) < show::text::width(&text) {
        put(buf, end - 1, y, end, theme.glyphs().cut.encode_utf8(&mut [0; 4]), style(Tone::Faint));
    }
}

/// The text without the device, which has its column.
fn brief(event: &Event) -> Cow<'_, str> {
    let Some(id) = &event.device else { return Cow::Borrowed(&event.text) };
    event.text.strip_prefix(&format!("device {id}: ")).map_or(Cow::Borrowed(event.text.as_str()), Cow::Borrowed)
}

/// All that is known of one event.
fn draw_detail(state: &TopState, event: &Event, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    rule(buf, area, theme);
    put(buf, area.x + 1, area.y, area.right(), " This event (Esc: close) ", theme.style(Tone::Title));
    let columns = usize::from(area.width.saturating_sub(2));
    let time = state.local(event.time).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let mut lines = vec![(format!("{time}  {}", severity(event.weight)), tone(event.weight))];
    lines.extend(wrapped(&clean(&event.text), columns).into_iter().map(|line| (line, Tone::Plain)));
    if let Some(kernel) = &event.kernel {
        let text = format!("kernel: {}", clean(&kernel.text));
        lines.extend(wrapped(&text, columns).into_iter().map(|line| (line, Tone::Faint)));
    }
    for ((text, tone), y) in lines.iter().zip(area.top() + 1..area.bottom()) {
        put(buf, area.x + 1, y, area.right(), text, theme.style(*tone));
    }
}

/// The events that match the filter, the newest first.
fn matching(state: &TopState) -> impl Iterator<Item = &Event> {
    let words: Vec<String> = state.chosen_events.filter.split_whitespace().map(str::to_lowercase).collect();
    state.events.latest(state.now()).filter(move |event| words.is_empty() || matches(event, &words))
}

/// The event that the cursor is on.
pub fn selected(state: &TopState) -> Option<&Event> {
    matching(state).nth(state.chosen_events.at)
}

/// Whether an event has all words, and none of those behind a minus sign.
fn matches(event: &Event, words: &[String]) -> bool {
    let device = event.device.as_ref().map(|id| format!("device {id}")).unwrap_or_default();
    let kernel = event.kernel.as_ref().map_or("", |kernel| kernel.text.as_str());
    let text = format!("{} {device} {} {kernel}", severity(event.weight), event.text).to_lowercase();
    let has = |word: &str| match word.strip_prefix("dev:") {
        Some(id) => event.device.as_ref().is_some_and(|device| device.to_string() == id),
        None => text.contains(word),
    };
    words.iter().all(|word| match word.strip_prefix('-') {
        Some(without) if !without.is_empty() => !has(without),
        _ => has(word),
    })
}

/// How many warnings and worse came since the list was looked at, and the tone of the worst.
pub fn unread(state: &TopState) -> Option<(usize, Tone)> {
    let until = state.chosen_events.read_until;
    let news = || state.events.latest(state.now()).take_while(|event| event.time > until);
    let worst = news().map(|event| event.weight).filter(|weight| *weight > Weight::Good).max()?;
    Some((news().filter(|event| event.weight > Weight::Good).count(), tone(worst)))
}

/// The words that alerts have for it.
pub fn severity(weight: Weight) -> &'static str {
    match weight {
        Weight::Note => "info",
        Weight::Good => "ok",
        Weight::Warning => "warning",
        Weight::Bad => "critical",
    }
}

pub fn tone(weight: Weight) -> Tone {
    match weight {
        Weight::Note => Tone::Plain,
        Weight::Good => Tone::Good,
        Weight::Warning => Tone::Warning,
        Weight::Bad => Tone::Critical,
    }
}

/// Whether the action meant something here.
pub fn act(state: &mut TopState, action: Action) -> bool {
    let page = usize::from(state.area.height.saturating_sub(5)).max(1);
    let last = matching(state).count().saturating_sub(1);
    match action {
        Action::Filter => state.overlay = Some(Overlay::Filter(filter::Prompt::new(state))),
        Action::Enter => {
            state.chosen_events.is_open = !state.chosen_events.is_open;
            select_device(state);
        }
        Action::Back if state.chosen_events.is_open => state.chosen_events.is_open = false,
        Action::Back if !state.chosen_events.filter.is_empty() => state.chosen_events.filter.clear(),
        // There is no process to choose from.
        Action::Signal | Action::SortMenu => state.notice = Some("choose a process in the overview (1) first".into()),
        _ => {
            let Some(to) = action.moved(state.chosen_events.at.min(last), page, last) else { return false };
            state.chosen_events.at = to;
        }
    }
    true
}

/// The device that the chosen event is about becomes the selected one.
fn select_device(state: &mut TopState) {
    let device = matching(state).nth(state.chosen_events.at).and_then(|event| event.device.clone());
    state.device = device.or(state.device.take());
}

/// The wheel scrolls; a click selects an event and its device, a second one shows all of it.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    match event.kind {
        MouseEventKind::ScrollUp => drop(act(state, Action::Up)),
        MouseEventKind::ScrollDown => drop(act(state, Action::Down)),
        MouseEventKind::Down(MouseButton::Left) => {
            let (list, _) = parts(crate::paint::inside(area), state.chosen_events.is_open);
            let Some(row) = event.row.checked_sub(list.y + 1).filter(|_| event.row < list.bottom()) else { return };
            let (count, rows) = (matching(state).count(), usize::from(list.height.saturating_sub(1)));
            let hit = first(state.chosen_events.at, rows, count) + usize::from(row);
            if hit >= count {
                return;
            }
            if hit == state.chosen_events.at {
                state.chosen_events.is_open = !state.chosen_events.is_open;
            }
            state.chosen_events.at = hit;
            select_device(state);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;
    use crate::settings::TopSettings;
    use show::example;
    use watch::moment::Moment;

    fn state() -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        let mut snapshot = example::machine();
        state.take(Moment::of(snapshot.clone()));
        snapshot.taken_at.0 += 1000;
        snapshot.devices[0].state = model::State::Hung;
        state.take(Moment::of(snapshot));
        state
    }

    fn drawn(state: &TopState, width: u16, height: u16) -> String {
        let mut buf = Buffer::empty(Rect { x: 0, y: 0, width, height });
        draw(state, buf.area, &mut buf);
        lines(&buf)
    }

    #[test]
    fn the_newest_is_at_the_top() {
        let text = drawn(&state(), 80, 6);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("┌ ") && lines[0].contains("events, the newest first"), "{text}");
        assert!(lines[1].contains("TIME            SEVERITY DEV  EVENT"), "{text}");
        assert!(lines[2].contains("critical 0    ok → hung"), "{text}");
    }

    #[test]
    fn a_filter_keeps_what_has_its_words_and_enter_shows_one_in_full() {
        let mut state = state();
        let all = matching(&state).count();
        state.chosen_events.filter = "critical dev:0".into();
        assert_eq!(matching(&state).count(), 1);
        state.chosen_events.filter = "critical".into();
        let others = all - matching(&state).count();
        state.chosen_events.filter = "-critical".into();
        assert_eq!(matching(&state).count(), others);
        assert!(drawn(&state, 80, 12).contains(&format!("{others} of {all} events match: -critical")));
        state.chosen_events.filter = "nothing-like-it".into();
        assert!(drawn(&state, 80, 12).contains("No event matches the filter."));
        state.chosen_events.filter.clear();
        assert!(act(&mut state, Action::Enter));
        let text = drawn(&state, 60, 16);
        assert!(text.contains("This event (Esc: close)") && text.contains("2026-01-02"), "{text}");
        assert!(act(&mut state, Action::Back) && !state.chosen_events.is_open);
        assert!(!act(&mut state, Action::Back), "it leaves the view");
    }

    #[test]
    fn what_was_not_seen_is_counted() {
        let mut state = state();
        let (count, tone) = unread(&state).unwrap();
        assert!(count >= 1 && tone == Tone::Critical);
        state.view = crate::state::TopView::Events;
        state.refresh_rows();
        assert_eq!(unread(&state), None);
    }

    #[test]
    fn the_words_of_the_kernel_are_behind_what_they_mean() {
        let mut state = state();
        let mut snapshot = state.snapshot().clone();
        snapshot.taken_at.0 += 1000;
        snapshot.kernel_log = Some(vec![model::KernelMessage {
            time: snapshot.taken_at,
            seq: 423,
            kind: model::KernelMessageKind::Timeout,
            weight: Weight::Bad,
            device: Some(DeviceId::Local(1)),
            pci_address: snapshot.devices[1].pci_address.clone(),
            meaning: "the firmware did not answer the driver in time".into(),
            text: "tenstorrent 0000:02:00.0: Timeout waiting for ARC response".into(),
            count: 3,
            seconds: None,
            held_by: Vec::new(),
        }]);
        state.take(Moment::of(snapshot));
        let text = drawn(&state, 160, 6);
        let line = text.lines().nth(2).unwrap();
        let expected =
            "critical 1    the firmware did not answer the driver in time (3 times)  tenstorrent 0000:02:00.0: Timeout";
        assert!(line.contains(expected), "{text}");
    }

    #[test]
    fn scrolling_ends_at_the_ends_and_any_size_will_do() {
        let mut state = state();
        assert!(act(&mut state, Action::End) && act(&mut state, Action::PageDown));
        assert_eq!(state.chosen_events.at, state.events.latest(state.now()).count() - 1);
        assert!(act(&mut state, Action::Home) && act(&mut state, Action::Up));
        assert_eq!(state.chosen_events.at, 0);
        for (width, height) in [(1, 1), (2, 2), (3, 9), (300, 3), (8, 1)] {
            drawn(&state, width, height);
        }
        assert!(drawn(&TopState::new(TopSettings::default(), true), 80, 4).contains("no events yet"));
    }
}
