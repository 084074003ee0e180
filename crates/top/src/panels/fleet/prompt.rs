//! The line in which a filter for machines is typed. It works while it is typed.

use crate::keys::KeyPress;
pub use crate::overlay::MachinePrompt as Prompt;
use crate::paint::{clear, put};
use crate::state::{Overlay, TopState};
use crate::theme::Tone;
use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const LONGEST: usize = 200;
const LABEL: &str = " Machines: ";
const HELP: &str = "words of name, state or problem; -word: without it   Enter: apply, Esc: revert";

impl Prompt {
    pub fn new(filter: &str) -> Prompt {
        Prompt { text: filter.to_owned(), former: filter.to_owned() }
    }

    fn insert(&mut self, c: char) {
        if self.text.chars().count() < LONGEST {
            self.text.push(if c.is_control() { ' ' } else { c });
        }
    }
}

/// The prompt lies over the line above the last, and its help over the last.
pub fn draw(state: &TopState, prompt: &Prompt, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let (theme, end) = (&state.theme, area.right());
    let y = area.bottom().saturating_sub(2).max(area.top());
    clear(buf, Rect { y, height: area.bottom() - y, ..area });
    let x = put(buf, area.x, y, end, LABEL, theme.style(Tone::Title));
    let x = put(buf, x, y, end, &prompt.text, theme.style(Tone::Plain));
    put(buf, x, y, end, " ", theme.style(Tone::Selected));
    if y + 1 < area.bottom() {
        put(buf, area.x + 1, y + 1, end, HELP, theme.style(Tone::Faint));
    }
}

/// Enter keeps what was typed, Esc brings back the former filter.
pub fn press(state: &mut TopState, mut prompt: Prompt, (code, modifiers): KeyPress) -> Option<Overlay> {
    let with_control = modifiers.contains(KeyModifiers::CONTROL);
    match code {
        KeyCode::Enter => return None,
        KeyCode::Esc => {
            apply(state, &prompt.former);
            return None;
        }
        KeyCode::Char('u') if with_control => prompt.text.clear(),
        KeyCode::Backspace => drop(prompt.text.pop()),
        KeyCode::Char(c) if !with_control && !modifiers.contains(KeyModifiers::ALT) => prompt.insert(c),
        _ => {}
    }
    apply(state, &prompt.text);
    Some(Overlay::Machines(prompt))
}

pub fn paste(state: &mut TopState, mut prompt: Prompt, text: &str) -> Overlay {
    text.trim().chars().for_each(|c| prompt.insert(c));
    apply(state, &prompt.text);
    Overlay::Machines(prompt)
}

fn apply(state: &mut TopState, filter: &str) {
    if let Some(hosts) = &mut state.hosts {
        hosts.set_filter(filter.trim().to_owned());
    }
}
