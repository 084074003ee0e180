//! The menu of signals. It asks before it sends, and names whom it is for.

use crate::keys::{self, KeyPress};
pub use crate::overlay::{SignalMenu as Menu, SignalTarget as Target};
use crate::paint::{Align, Buffer, Position, Rect, Tone, cell, clear, fill, frame, put};
use crate::state::{Effect, Overlay, TopState};
use crossterm::event::{KeyCode, KeyModifiers};
use model::Timestamp;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use show::command::display_name;
use show::text::{self, clean};
use std::borrow::Cow;

/// What is said instead where the processes are those of another machine.
pub const REMOTE: &str = "this process is on another machine: log in there to send signals";

/// The signals of this system, those that people send first, the others by number.
const SIGNALS: [i32; 31] =
    [15, 2, 9, 1, 19, 18, 10, 12, 3, 4, 5, 6, 7, 8, 11, 13, 14, 16, 17, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31];
const TERM: i32 = 15;

/// What a signal does, where people send it on purpose.
fn meaning(signal: i32) -> &'static str {
    match signal {
        TERM => "ends the process; it may clean up",
        2 => "as Ctrl-C does",
        9 => "ends the process at once",
        1 => "many services reload on it",
        19 => "stops the process until SIGCONT",
        18 => "continues a stopped process",
        _ => "",
    }
}

impl Menu {
    /// For the tagged processes, or else the selected one. `None` when there is none.
    pub fn for_processes(state: &TopState) -> Option<Menu> {
        let tagged = &state.table.tagged;
        let wanted =
            |pid: u32| if tagged.is_empty() { state.table.cursor.key == Some(pid) } else { tagged.contains(&pid) };
        let processes = state.snapshot().processes.iter().filter(|process| wanted(process.pid));
        let to: Vec<Target> = processes
            .map(|process| Target {
                pid: process.pid,
                started_at: process.started_at,
                name: display_name(process).map_or_else(|| "?".into(), Cow::into_owned),
            })
            .collect();
        (!to.is_empty()).then(|| Menu { to, signal: TERM, typed: String::new(), is_asking: false })
    }

    fn question(&self) -> String {
        format!("Send {} to {}? y/n", text::signal(self.signal), self.target())
    }

    /// Whom it is for.
    fn target(&self) -> String {
        match &self.to[..] {
            [one] => format!("pid {} ({})", one.pid, clean(&one.name)),
            several => {
                let pids: Vec<String> = several.iter().map(|one| one.pid.to_string()).collect();
                format!("these {} processes: {}", several.len(), pids.join(", "))
            }
        }
    }

    fn at(&self) -> usize {
        SIGNALS.iter().position(|signal| *signal == self.signal).unwrap_or(0)
    }
}

fn place(area: Rect) -> Rect {
    let height = area.height.saturating_sub(2).min(SIGNALS.len() as u16 + 2);
    Rect { x: area.x, y: area.y + 1.min(area.height), width: area.width.min(56), height }
}

/// The first signal that is drawn in so many rows.
fn first(at: usize, rows: u16) -> usize {
    (at + 1).saturating_sub(usize::from(rows))
}

pub fn draw(state: &TopState, menu: &Menu, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    clear(buf, place(area));
    let inner = frame(buf, place(area), &format!("Send a signal to {}", menu.target()), theme);
    let first = first(menu.at(), inner.height);
    for (signal, y) in SIGNALS[first..].iter().copied().zip(inner.top()..inner.bottom()) {
        let is_chosen = signal == menu.signal;
        let style = theme.style(if is_chosen { Tone::Selected } else { Tone::Plain });
        if is_chosen {
            fill(buf, Rect { y, height: 1, ..inner }, style);
        }
        cell(buf, (inner.x, y), 3.min(inner.width), &signal.to_string(), Align::Right, style, theme);
        put(buf, inner.x + 4, y, inner.right(), &text::signal(signal), style);
        let faint = if is_chosen { style } else { theme.style(Tone::Faint) };
        put(buf, inner.x + 14, y, inner.right(), meaning(signal), faint);
    }
    let keys = if theme.unicode { "↑↓ or a number" } else { "Up, Down or a number" };
    let choose = || format!("{keys}: choose, Enter: continue, Esc: cancel");
    let question = if menu.is_asking { menu.question() } else { choose() };
    let line = Rect { x: area.x, y: area.bottom().saturating_sub(1), width: area.width, height: 1 };
    clear(buf, line);
    let tone = if menu.is_asking { Tone::Critical } else { Tone::Strong };
    put(buf, line.x + 1, line.y, line.right(), &question, theme.style(tone));
}

/// A key was pressed. `None` closes the menu.
pub fn press(state: &mut TopState, mut menu: Menu, key: KeyPress) -> Option<Overlay> {
    if menu.is_asking {
        match key.0 {
            KeyCode::Char('y' | 'Y') => {
                let to = menu.to.iter().map(|one| (one.pid, one.started_at)).collect();
                state.effects.push(Effect::Send { signal: menu.signal, to });
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => state.notice = Some("nothing was sent".into()),
            _ => return Some(Overlay::Signals(menu)),
        }
        return None;
    }
    match key.0 {
        KeyCode::Esc | KeyCode::Char('q') => return None,
        KeyCode::Enter => menu.is_asking = true,
        KeyCode::Char(digit @ '0'..='9') => {
            menu.typed.push(digit);
            let number = |text: &str| text.parse::<i32>().ok().filter(|number| SIGNALS.contains(number));
            // Digits that make no number with those before begin a new one.
            if number(&menu.typed).is_none() {
                menu.typed = digit.to_string();
            }
            menu.signal = number(&menu.typed).unwrap_or(menu.signal);
            return Some(Overlay::Signals(menu));
        }
        _ => {
            let page = usize::from(place(state.area).height.saturating_sub(3)).max(1);
            let to = keys::scrolled(key, menu.at(), page, SIGNALS.len() - 1).unwrap_or(menu.at());
            menu.signal = SIGNALS[to];
        }
    }
    menu.typed.clear();
    Some(Overlay::Signals(menu))
}

/// A click chooses, a click elsewhere closes it.
pub fn click(state: &mut TopState, mut menu: Menu, position: Position) -> Option<Overlay> {
    let area = place(state.area);
    let row = usize::from(position.y).checked_sub(usize::from(area.y) + 1);
    let first = first(menu.at(), area.height.saturating_sub(2));
    let hit = row.and_then(|row| SIGNALS.get(first + row));
    if !menu.is_asking && !area.contains(position) {
        return None;
    }
    if let Some(hit) = hit.filter(|_| !menu.is_asking) {
        menu.signal = *hit;
        return press(state, menu, (KeyCode::Enter, KeyModifiers::NONE));
    }
    Some(Overlay::Signals(menu))
}

/// Sends a signal, and says how it went. A process that has another's pid by now is left alone.
pub fn send(signal: i32, to: &[(u32, Option<Timestamp>)]) -> String {
    let (mut sent, mut failed) = (0, Vec::new());
    for &(pid, started_at) in to {
        match send_one(signal, pid, started_at) {
            Ok(()) => sent += 1,
            Err(why) => failed.push(format!("pid {pid} {why}")),
        }
    }
    let name = text::signal(signal);
    let sent = match sent {
        0 => None,
        1 => Some(format!("{name} was sent")),
        n => Some(format!("{name} was sent to {n} processes")),
    };
    sent.into_iter().chain(failed).collect::<Vec<_>>().join("; ")
}

fn send_one(signal: i32, pid: u32, started_at: Option<Timestamp>) -> Result<(), String> {
    let why = |error: Errno| match error {
        Errno::PERM => "belongs to another user: not permitted".to_owned(),
        Errno::SRCH => "has already exited".to_owned(),
        error => format!("signal not sent: {error}"),
    };
    let number = Pid::from_raw(pid as i32).ok_or("is no pid")?;
    // From here on the descriptor means one process, whatever becomes of its number.
    let process = pidfd_open(number, PidfdFlags::empty()).map_err(why)?;
    let began = sources::started_at(pid).ok_or("has already exited")?;
    if started_at.is_some_and(|started_at| started_at.0.abs_diff(began.0) > 1000) {
        return Err("is a different process now".into());
    }
    let signal = Signal::from_named_raw(signal).ok_or("invalid signal")?;
    pidfd_send_signal(&process, signal).map_err(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;
    use crate::settings::TopSettings;
    use crossterm::event::KeyModifiers;
    use show::example;
    use std::os::unix::process::ExitStatusExt;
    use watch::moment::Moment;

    fn state() -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        state.take(Moment::of(example::machine()));
        state.table.cursor.key = Some(4711);
        state
    }

    fn pressed(state: &mut TopState, keys: &[KeyCode]) -> Option<Menu> {
        let mut menu = Menu::for_processes(state);
        for key in keys {
            match press(state, menu.take().unwrap(), (*key, KeyModifiers::NONE)) {
                Some(Overlay::Signals(next)) => menu = Some(next),
                _ => return None,
            }
        }
        menu
    }

    #[test]
    fn it_asks_first_and_names_the_process() {
        let mut state = state();
        let menu = pressed(&mut state, &[KeyCode::Char('9'), KeyCode::Enter]).unwrap();
        assert_eq!(menu.question(), "Send SIGKILL to pid 4711 (serve.py)? y/n");
        let mut buf = Buffer::empty(Rect { x: 0, y: 0, width: 60, height: 12 });
        draw(&state, &menu, buf.area, &mut buf);
        assert!(lines(&buf).contains("Send SIGKILL to pid 4711 (serve.py)? y/n"), "{}", lines(&buf));
        assert_eq!(state.effects, []);
        assert_eq!(pressed(&mut state, &[KeyCode::Enter, KeyCode::Char('n')]), None);
        assert_eq!(state.effects, []);
        pressed(&mut state, &[KeyCode::Enter, KeyCode::Char('y')]);
        let started_at = state.snapshot().processes.iter().find(|process| process.pid == 4711).unwrap().started_at;
        assert_eq!(state.effects, [Effect::Send { signal: TERM, to: vec![(4711, started_at)] }]);
    }

    #[test]
    fn numbers_choose_a_signal() {
        let mut state = state();
        let chosen = |state: &mut TopState, keys: &str| {
            pressed(state, &keys.chars().map(KeyCode::Char).collect::<Vec<_>>()).unwrap().signal
        };
        assert_eq!(["9", "15", "199", "2j"].map(|keys| chosen(&mut state, keys)), [9, 15, 9, 9]);
    }

    #[test]
    fn tagged_processes_come_before_the_selected_one() {
        let mut state = state();
        state.table.tagged = state.snapshot().processes.iter().map(|process| process.pid).collect();
        let menu = Menu::for_processes(&state).unwrap();
        assert_eq!(menu.to.len(), state.snapshot().processes.len());
        state.table.tagged.clear();
        state.table.cursor.key = None;
        assert_eq!(Menu::for_processes(&state), None);
    }

    #[test]
    fn a_real_process_gets_it_and_one_with_the_same_number_does_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let began = sources::started_at(child.id()).unwrap();
        let earlier = Timestamp(began.0 - 60_000);
        assert_eq!(
            send(TERM, &[(child.id(), Some(earlier))]),
            format!("pid {} is a different process now", child.id())
        );
        assert_eq!(child.try_wait().unwrap(), None);
        assert_eq!(send(TERM, &[(child.id(), Some(began))]), "SIGTERM was sent");
        assert_eq!(child.wait().unwrap().signal(), Some(TERM));
        assert_eq!(send(TERM, &[(child.id(), Some(began))]), format!("pid {} has already exited", child.id()));
    }

    #[test]
    fn any_size_will_do() {
        let state = state();
        let menu = Menu::for_processes(&state).unwrap();
        for (width, height) in [(1, 1), (3, 2), (26, 3), (200, 60)] {
            let mut buf = Buffer::empty(Rect { x: 0, y: 0, width, height });
            draw(&state, &menu, buf.area, &mut buf);
        }
    }
}
