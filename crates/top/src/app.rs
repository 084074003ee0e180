//! What keys and the mouse do to the state.

use super::keys::{self, Action, KeyPress};
use super::panels::layout::{self, Panel};
use super::panels::{
    charts, detail, device, devices, events, filter, fleet, help, memory, mesh, processes, setup, signals, sort,
};
use super::player::PlayCommand;
use super::state::{Effect, Overlay, TopState, TopView};
#[cfg(debug_assertions)]
use super::test_panic;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEvent};
use ratatui::layout::Position;

pub fn handle(state: &mut TopState, event: &Event) {
    match event {
        Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => {}
        Event::Key(KeyEvent { code, modifiers, .. }) => press(state, (*code, *modifiers)),
        Event::Mouse(event) => mouse(state, *event),
        Event::Paste(text) => filter::paste(state, text),
        Event::Resize(..) | Event::FocusGained | Event::FocusLost => {}
    }
    state.refresh_rows();
}

fn press(state: &mut TopState, key: KeyPress) {
    #[cfg(debug_assertions)]
    if key == (KeyCode::Char('p'), KeyModifiers::CONTROL) {
        test_panic::maybe("keys");
    }
    state.notice = None;
    let action = keys::action(key);
    // These work wherever one is.
    if let Some(action @ (Action::Suspend | Action::Redraw)) = action {
        return act(state, action);
    }
    if key == (KeyCode::Char('c'), KeyModifiers::CONTROL) {
        return state.effects.push(Effect::Quit);
    }
    if let Some(overlay) = state.overlay.take() {
        let next = match overlay {
            Overlay::Help { scroll } => help::press(state, scroll, key),
            Overlay::Setup(setup) => setup::press(state, setup, key),
            Overlay::Sort(menu) => sort::press(state, menu, key),
            Overlay::Signals(menu) => signals::press(state, menu, key),
            Overlay::Filter(prompt) => filter::press(state, prompt, key),
            Overlay::Detail(detail) => detail::press(state, detail, key),
            Overlay::Device { scroll } => device::press(state, scroll, key),
        };
        // An overlay may have opened another one.
        state.overlay = state.overlay.take().or(next);
        return;
    }
    if let Some(action) = action {
        act_on(state, action);
    }
}

/// Does what a key asks for, as if it was pressed and nothing lay over the view.
pub fn act_on(state: &mut TopState, action: Action) {
    state.notice = None;
    let is_done = match state.view {
        TopView::Overview => charts::act(state, action) || processes::act(state, action),
        TopView::Memory => memory::act(state, action),
        TopView::Mesh => mesh::act(state, action),
        TopView::Events => events::act(state, action),
        TopView::Fleet => fleet::act(state, action),
    };
    if !is_done {
        act(state, action);
    }
}

/// Whether there is a way back to other machines.
fn is_of_several(state: &TopState) -> bool {
    state.views().contains(&TopView::Fleet)
}

/// What means the same everywhere.
fn act(state: &mut TopState, action: Action) {
    match action {
        Action::Suspend => state.effects.push(Effect::Suspend),
        Action::Redraw => state.effects.push(Effect::Redraw),
        Action::Fleet if is_of_several(state) => state.view = TopView::Fleet,
        Action::Back if state.view != TopView::Overview => state.view = TopView::Overview,
        Action::Back if is_of_several(state) => state.view = TopView::Fleet,
        Action::Quit | Action::Back => state.effects.push(Effect::Quit),
        Action::Help => state.overlay = Some(Overlay::Help { scroll: 0 }),
        Action::Setup => state.overlay = Some(Overlay::Setup(setup::Setup::new(state))),
        Action::Save => state.effects.push(Effect::Save),
        Action::Overview => state.view = TopView::Overview,
        Action::Memory => state.view = TopView::Memory,
        Action::Mesh => state.view = TopView::Mesh,
        Action::Events => state.view = TopView::Events,
        Action::NextView => {
            let views = state.views();
            let at = views.iter().position(|view| *view == state.view).unwrap_or(0);
            state.view = views[(at + 1) % views.len()];
        }
        Action::Device => device::open(state),
        Action::NextDevice => state.step_device(1),
        Action::PreviousDevice => state.step_device(-1),
        Action::Pause => {
            state.paused = !state.paused;
            if let Some(replay) = &state.replay {
                let pace = if state.paused { 0.0 } else { replay.speed };
                state.effects.push(Effect::Play(PlayCommand::Pace(pace)));
            } else if !state.paused {
                state.show_latest();
            }
        }
        Action::Faster | Action::Slower => {
            let faster = action == Action::Faster;
            if let Some(replay) = &mut state.replay {
                replay.speed = if faster { replay.speed * 2.0 } else { replay.speed / 2.0 }.clamp(0.125, 1024.0);
                let (pace, speed) = (if state.paused { 0.0 } else { replay.speed }, replay.speed);
                state.effects.push(Effect::Play(PlayCommand::Pace(pace)));
                state.notice = Some(format!("replay speed: {speed}x"));
            } else {
                let interval = state.settings.interval_ms;
                state.settings.interval_ms = if faster { interval / 2 } else { interval * 2 }.clamp(100, 60_000);
                state.effects.push(Effect::Interval);
                state.notice = Some(format!("sampling interval: {:.1} s", state.settings.interval_ms as f64 / 1000.0));
            }
        }
        Action::PreviousFrame | Action::NextFrame if state.replay.is_some() => {
            let by = if action == Action::NextFrame { 1 } else { -1 };
            state.effects.push(Effect::Play(PlayCommand::Step(by)));
        }
        Action::BackMinute | Action::OnMinute if state.replay.is_some() => {
            let milliseconds = if action == Action::OnMinute { 60_000 } else { -60_000 };
            state.effects.push(Effect::Play(PlayCommand::Skip(milliseconds)));
        }
        _ => {}
    }
}

fn mouse(state: &mut TopState, event: MouseEvent) {
    let position = Position { x: event.column, y: event.row };
    if let Some(overlay) = state.overlay.take() {
        let next = match overlay {
            Overlay::Help { scroll } => help::mouse(state, scroll, event),
            Overlay::Setup(setup) => setup::mouse(state, setup, event),
            Overlay::Sort(menu) => sort::mouse(state, menu, event),
            Overlay::Signals(menu) => signals::mouse(state, menu, event),
            Overlay::Filter(prompt) => Some(Overlay::Filter(prompt)),
            Overlay::Detail(detail) => detail::mouse(state, detail, event),
            Overlay::Device { scroll } => device::mouse(state, scroll, event),
        };
        state.overlay = state.overlay.take().or(next);
        return;
    }
    if super::panels::is_too_small(state.area) {
        return;
    }
    let panels = layout::of(state, state.area);
    let Some((panel, area)) = panels.into_iter().find(|(_, area)| area.contains(position)) else { return };
    match panel {
        Panel::Header => super::panels::header::mouse(state, area, event),
        Panel::Devices => devices::mouse(state, area, event),
        Panel::Charts => charts::mouse(state, area, event),
        Panel::Processes => processes::mouse(state, area, event),
        Panel::Memory => memory::mouse(state, area, event),
        Panel::Mesh => mesh::mouse(state, area, event),
        Panel::Events => events::mouse(state, area, event),
        Panel::Fleet => fleet::mouse(state, area, event),
        Panel::Status => {
            if let Some(action) = super::panels::status::mouse(state, area, event) {
                act_on(state, action);
            }
        }
    }
}
