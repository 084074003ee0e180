//! What has happened, the newest at the top.

use crate::keys::Action;
use crate::paint::{Buffer, Rect, Tone, frame, put};
use crate::state::TopState;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use show::text::clean;
use watch::events::Weight;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let all = state.events.latest(state.now()).count();
    let title = match all {
        0 => "Events".into(),
        1 => "1 event".into(),
        n => format!("{n} events, the newest first"),
    };
    let inner = frame(buf, area, &title, &state.theme);
    if all == 0 {
        let text = "no events yet: state changes, resets, exits, faults and limits will be listed here";
        put(buf, inner.x + 1, inner.y, inner.right(), text, state.theme.style(Tone::Faint));
    }
    for (event, y) in state.events.latest(state.now()).skip(state.events_back).zip(inner.top()..inner.bottom()) {
        let time = state.local(event.time).strftime("%b %e %H:%M:%S").to_string();
        let x = put(buf, inner.x + 1, y, inner.right(), &time, state.theme.style(Tone::Faint));
        let x = put(buf, x + 1, y, inner.right(), &clean(&event.text), state.theme.style(tone(event.weight)));
        if let Some(kernel) = event.kernel.as_ref().filter(|kernel| !kernel.text.is_empty()) {
            put(buf, x + 2, y, inner.right(), &clean(&kernel.text), state.theme.style(Tone::Faint));
        }
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
    let page = usize::from(state.area.height.saturating_sub(4)).max(1);
    let last = state.events.latest(state.now()).count().saturating_sub(1);
    let to = action.moved(state.events_back, page, last);
    state.events_back = to.unwrap_or(state.events_back);
    to.is_some()
}

/// The wheel scrolls; a click selects the device that an event is about.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    match event.kind {
        MouseEventKind::ScrollUp => drop(act(state, Action::Up)),
        MouseEventKind::ScrollDown => drop(act(state, Action::Down)),
        MouseEventKind::Down(MouseButton::Left) => {
            let row = usize::from(event.row.saturating_sub(area.y + 1));
            let hit =
                state.events.latest(state.now()).nth(state.events_back + row).and_then(|event| event.device.clone());
            state.device = hit.or(state.device.take());
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
        assert!(lines[1].contains("device 0: ok → hung"), "{text}");
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
            device: Some(model::DeviceId::Local(1)),
            pci_address: snapshot.devices[1].pci_address.clone(),
            meaning: "the firmware did not answer the driver in time".into(),
            text: "tenstorrent 0000:02:00.0: Timeout waiting for ARC response".into(),
            count: 3,
            seconds: None,
            held_by: Vec::new(),
        }]);
        state.take(Moment::of(snapshot));
        let text = drawn(&state, 160, 6);
        let line = text.lines().nth(1).unwrap();
        let expected =
            "device 1: the firmware did not answer the driver in time (3 times)  tenstorrent 0000:02:00.0: Timeout";
        assert!(line.contains(expected), "{text}");
    }

    #[test]
    fn scrolling_ends_at_the_ends_and_any_size_will_do() {
        let mut state = state();
        assert!(act(&mut state, Action::End) && act(&mut state, Action::PageDown));
        assert_eq!(state.events_back, state.events.latest(state.now()).count() - 1);
        assert!(act(&mut state, Action::Home) && act(&mut state, Action::Up));
        assert_eq!(state.events_back, 0);
        for (width, height) in [(1, 1), (2, 2), (3, 9), (300, 3), (8, 1)] {
            drawn(&state, width, height);
        }
        assert!(drawn(&TopState::new(TopSettings::default(), true), 80, 4).contains("no events yet"));
    }
}
