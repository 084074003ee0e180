//! What keys and the mouse do to the state.

use super::keys::{self, Action, KeyPress};
use super::overlay::HelpWindow;
use super::panels::layout::{self, Panel};
use super::panels::{
    charts, detail, device, devices, events, filter, fleet, heat, help, memory, mesh, processes, setup, signals, sort,
    timeline,
};
use super::player::PlayCommand;
use super::state::{Effect, Overlay, TopState, TopView};
#[cfg(debug_assertions)]
use super::test_panic;
use crate::screen::Position;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

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
        let next = press_in(state, overlay, key);
        // An overlay may have opened another one.
        state.overlay = state.overlay.take().or(next);
        return;
    }
    if let Some(action) = action {
        act_on(state, action);
    }
}

/// A key in a window. `None` closes it.
fn press_in(state: &mut TopState, overlay: Overlay, key: KeyPress) -> Option<Overlay> {
    match overlay {
        Overlay::Help(window) => help::press(state, window, key),
        Overlay::Setup(setup) => setup::press(state, setup, key),
        Overlay::Sort { at } => sort::press(state, at, key),
        Overlay::Signals(menu) => signals::press(state, menu, key),
        Overlay::Filter(prompt) => filter::press(state, prompt, key),
        Overlay::Detail(detail) => detail::press(state, detail, key),
        Overlay::Device { scroll } => device::press(state, scroll, key),
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
        // Who goes back once too often does not want to lose the history.
        Action::Back => state.notice = Some("press q to quit".into()),
        Action::Quit => state.effects.push(Effect::Quit),
        Action::Help => state.overlay = Some(Overlay::Help(HelpWindow::default())),
        Action::Setup => state.overlay = Some(setup::open(state)),
        Action::Save => state.effects.push(Effect::Save),
        Action::Overview => state.view = TopView::Overview,
        Action::Memory => state.view = TopView::Memory,
        Action::Mesh => state.view = TopView::Mesh,
        Action::Events => state.view = TopView::Events,
        Action::NextView => state.view = next_view(state),
        Action::Device => device::open(state),
        Action::NextDevice => state.step_device(1),
        Action::PreviousDevice => state.step_device(-1),
        Action::Pause => pause(state),
        Action::Past => timeline::visit(state),
        Action::PreviousEvent | Action::NextEvent => timeline::jump(state, action == Action::NextEvent),
        Action::Faster => change_pace(state, 2.0),
        Action::Slower => change_pace(state, 0.5),
        _ => play(state, action),
    }
}

fn next_view(state: &TopState) -> TopView {
    let views = state.views();
    let at = views.iter().position(|view| *view == state.view).unwrap_or(0);
    views[(at + 1) % views.len()]
}

fn pause(state: &mut TopState) {
    state.paused = !state.paused;
    if let Some(replay) = &state.replay {
        let pace = if state.paused { 0.0 } else { replay.speed };
        state.effects.push(Effect::Play(PlayCommand::Pace(pace)));
    } else if !state.paused {
        state.show_latest();
    }
}

/// So many times as many samples, or so many times as fast through a recording.
fn change_pace(state: &mut TopState, factor: f64) {
    if let Some(replay) = &mut state.replay {
        replay.speed = (replay.speed * factor).clamp(0.125, 1024.0);
        let (pace, speed) = (if state.paused { 0.0 } else { replay.speed }, replay.speed);
        state.effects.push(Effect::Play(PlayCommand::Pace(pace)));
        state.notice = Some(format!("replay speed: {speed}x"));
        return;
    }
    let interval = (state.settings.interval_ms as f64 / factor) as u64;
    state.settings.interval_ms = interval.clamp(100, 60_000);
    state.effects.push(Effect::Interval);
    state.notice = Some(format!("sampling interval: {:.1} s", state.settings.interval_ms as f64 / 1000.0));
}

/// Goes to another place of a recording.
fn play(state: &mut TopState, action: Action) {
    let command = match action {
        Action::PreviousFrame => PlayCommand::Step(-1),
        Action::NextFrame => PlayCommand::Step(1),
        Action::BackMinute => PlayCommand::Skip(-60_000),
        Action::OnMinute => PlayCommand::Skip(60_000),
        _ => return,
    };
    state.effects.extend(state.replay.is_some().then_some(Effect::Play(command)));
}

/// The mouse in a window: the wheel is as the keys up and down. `None` closes it.
fn mouse_in(state: &mut TopState, overlay: Overlay, event: MouseEvent) -> Option<Overlay> {
    use MouseEventKind::{Down, ScrollDown, ScrollUp};
    let position = Position { x: event.column, y: event.row };
    match (event.kind, overlay) {
        (_, overlay @ Overlay::Filter(_)) => Some(overlay),
        (ScrollUp, overlay) => press_in(state, overlay, (KeyCode::Up, KeyModifiers::NONE)),
        (ScrollDown, overlay) => press_in(state, overlay, (KeyCode::Down, KeyModifiers::NONE)),
        (Down(_), overlay @ (Overlay::Detail(_) | Overlay::Device { .. })) => {
            (event.row > state.area.y).then_some(overlay)
        }
        (Down(MouseButton::Left), Overlay::Setup(setup)) => setup::click(state, setup, position),
        (Down(MouseButton::Left), Overlay::Signals(menu)) => signals::click(state, menu, position),
        (Down(MouseButton::Left), Overlay::Sort { at }) => {
            sort::click(state, at, position);
            None
        }
        (Down(_), Overlay::Help(_) | Overlay::Sort { .. } | Overlay::Signals(_)) => None,
        (_, overlay) => Some(overlay),
    }
}

fn mouse(state: &mut TopState, event: MouseEvent) {
    let position = Position { x: event.column, y: event.row };
    if let Some(overlay) = state.overlay.take() {
        let next = mouse_in(state, overlay, event);
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
        Panel::Heat => heat::mouse(state, area, event),
        Panel::Processes => processes::mouse(state, area, event),
        Panel::Memory => memory::mouse(state, area, event),
        Panel::Mesh => mesh::mouse(state, area, event),
        Panel::Events => events::mouse(state, area, event),
        Panel::Fleet => fleet::mouse(state, area, event),
        Panel::Timeline => timeline::mouse(state, area, event),
        Panel::Status => {
            if let Some(action) = super::panels::status::mouse(state, area, event) {
                act_on(state, action);
            }
        }
    }
}
