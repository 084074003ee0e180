//! What keys and the mouse do to the state.

use super::keys::{self, Action, Key};
use super::mishap;
use super::panels::layout::{self, Panel};
use super::panels::{
    charts, detail, devices, events, filter, fleet, help, memory, mesh, processes, setup, signals, sort,
};
use super::player::Wish;
use super::state::{Effect, Overlay, State, View};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEvent};
use ratatui::layout::Position;

/// Sees to one event of the terminal.
pub fn handle(state: &mut State, event: &Event) {
    match event {
        Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => {}
        Event::Key(KeyEvent { code, modifiers, .. }) => press(state, (*code, *modifiers)),
        Event::Mouse(event) => mouse(state, *event),
        Event::Paste(text) => match state.overlay.take() {
            Some(Overlay::Machines(prompt)) => state.overlay = Some(fleet::prompt::paste(state, prompt, text)),
            other => {
                state.overlay = other;
                filter::paste(state, text);
            }
        },
        Event::Resize(..) | Event::FocusGained | Event::FocusLost => {}
    }
    state.refresh_rows();
}

fn press(state: &mut State, key: Key) {
    if key == (KeyCode::Char('p'), KeyModifiers::CONTROL) {
        mishap::maybe("keys");
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
            Overlay::Machines(prompt) => fleet::prompt::press(state, prompt, key),
            Overlay::Detail(detail) => detail::press(state, detail, key),
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
pub fn act_on(state: &mut State, action: Action) {
    state.notice = None;
    let is_done = match state.view {
        View::Overview => charts::act(state, action) || processes::act(state, action),
        View::Memory => memory::act(state, action),
        View::Mesh => mesh::act(state, action),
        View::Events => events::act(state, action),
        View::Fleet => fleet::act(state, action),
    };
    if !is_done {
        act(state, action);
    }
}

/// Whether there is a way back to other machines.
fn is_of_several(state: &State) -> bool {
    state.views().contains(&View::Fleet)
}

/// What means the same everywhere.
fn act(state: &mut State, action: Action) {
    match action {
        Action::Suspend => state.effects.push(Effect::Suspend),
        Action::Redraw => state.effects.push(Effect::Redraw),
        Action::Fleet if is_of_several(state) => state.view = View::Fleet,
        Action::Back if state.view != View::Overview => state.view = View::Overview,
        Action::Back if is_of_several(state) => state.view = View::Fleet,
        Action::Quit | Action::Back => state.effects.push(Effect::Quit),
        Action::Help => state.overlay = Some(Overlay::Help { scroll: 0 }),
        Action::Setup => state.overlay = Some(Overlay::Setup(setup::Setup::new(state))),
        Action::Save => state.effects.push(Effect::Save),
        Action::Overview => state.view = View::Overview,
        Action::Memory => state.view = View::Memory,
        Action::Mesh => state.view = View::Mesh,
        Action::Events => state.view = View::Events,
        Action::NextView => {
            let views = state.views();
            let at = views.iter().position(|view| *view == state.view).unwrap_or(0);
            state.view = views[(at + 1) % views.len()];
        }
        Action::NextDevice => state.step_device(1),
        Action::PreviousDevice => state.step_device(-1),
        Action::Pause => {
            state.paused = !state.paused;
            if let Some(replay) = &state.replay {
                let pace = if state.paused { 0.0 } else { replay.speed };
                state.effects.push(Effect::Play(Wish::Pace(pace)));
            } else if !state.paused {
                state.shown = state.latest.clone();
            }
        }
        Action::Faster | Action::Slower => {
            let faster = action == Action::Faster;
            if let Some(replay) = &mut state.replay {
                replay.speed = if faster { replay.speed * 2.0 } else { replay.speed / 2.0 }.clamp(0.125, 1024.0);
                let (pace, speed) = (if state.paused { 0.0 } else { replay.speed }, replay.speed);
                state.effects.push(Effect::Play(Wish::Pace(pace)));
                state.notice = Some(format!("{speed} times as fast"));
            } else {
                let interval = state.settings.interval_ms;
                state.settings.interval_ms = if faster { interval / 2 } else { interval * 2 }.clamp(100, 60_000);
                state.effects.push(Effect::Interval);
                state.notice = Some(format!("a sample every {:.1} s", state.settings.interval_ms as f64 / 1000.0));
            }
        }
        Action::PreviousFrame | Action::NextFrame if state.replay.is_some() => {
            let by = if action == Action::NextFrame { 1 } else { -1 };
            state.effects.push(Effect::Play(Wish::Step(by)));
        }
        Action::BackMinute | Action::OnMinute if state.replay.is_some() => {
            let milliseconds = if action == Action::OnMinute { 60_000 } else { -60_000 };
            state.effects.push(Effect::Play(Wish::Skip(milliseconds)));
        }
        _ => {}
    }
}

fn mouse(state: &mut State, event: MouseEvent) {
    let position = Position { x: event.column, y: event.row };
    if let Some(overlay) = state.overlay.take() {
        let next = match overlay {
            Overlay::Help { scroll } => help::mouse(state, scroll, event),
            Overlay::Setup(setup) => setup::mouse(state, setup, event),
            Overlay::Sort(menu) => sort::mouse(state, menu, event),
            Overlay::Signals(menu) => signals::mouse(state, menu, event),
            Overlay::Filter(prompt) => Some(Overlay::Filter(prompt)),
            Overlay::Machines(prompt) => Some(Overlay::Machines(prompt)),
            Overlay::Detail(detail) => detail::mouse(state, detail, event),
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
