//! The keys in groups, from the table that they are defined in. Words that are typed behind `/` are searched for.

use crate::keys::{self, BINDINGS, Binding, KeyPress};
use crate::overlay::HelpWindow;
use crate::paint::{Align, Buffer, Rect, Tone, cell, centred, clear, frame, put};
use crate::state::{Overlay, TopState};
use crossterm::event::KeyCode;
use show::text::count;

const NAMES: u16 = 12;
/// A column of keys is so wide; where there is room for several, they are side by side.
const COLUMN: u16 = 78;

/// A line of help: the name of a group, a key, or a blank.
enum HelpLine {
    Blank,
    Group(&'static str),
    Key(&'static Binding),
}

pub fn draw(state: &TopState, window: &HelpWindow, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    let lines = lines(window);
    let columns = columns(area);
    let rows = rows(&lines, columns);
    let area = centred(area, (COLUMN + 2) * columns, rows as u16 + 2);
    clear(buf, area);
    let title = match &window.search {
        None => "Keys (/: search, any other key closes this)".to_owned(),
        Some(text) => format!("Keys with: {text}_ (Esc: all keys)"),
    };
    let inner = frame(buf, area, &title, theme);
    let scroll = window.scroll.min(rows.saturating_sub(usize::from(inner.height)));
    for (n, column) in (0..).zip(lines.chunks(rows.max(1))) {
        let place = Rect { x: inner.x + n * (COLUMN + 2), width: COLUMN.min(inner.width), ..inner };
        for (line, y) in column.iter().skip(scroll).zip(inner.top()..inner.bottom()) {
            draw_line(state, line, Rect { y, height: 1, ..place }, buf);
        }
    }
    let below = rows.saturating_sub(scroll + usize::from(inner.height));
    if below > 0 && !inner.is_empty() {
        let text = format!(" {} ", count(below as u64, "more line", "more lines"));
        put(buf, inner.x + 1, area.bottom() - 1, inner.right(), &text, theme.style(Tone::Warning));
    }
}

fn draw_line(state: &TopState, line: &HelpLine, area: Rect, buf: &mut Buffer) {
    let (theme, x, y, end) = (&state.theme, area.x, area.y, area.right());
    match line {
        HelpLine::Blank => {}
        HelpLine::Group(name) => drop(put(buf, x + 1, y, end, name, theme.style(Tone::Title))),
        HelpLine::Key(binding) => {
            cell(buf, (x, y), NAMES.min(area.width), binding.shown, Align::Right, theme.style(Tone::Strong), theme);
            put(buf, x + NAMES + 1, y, end, binding.help, theme.style(Tone::Plain));
        }
    }
}

fn columns(area: Rect) -> u16 {
    (area.width / (COLUMN + 2)).clamp(1, 3)
}

/// All that matches, each group behind its name.
fn lines(window: &HelpWindow) -> Vec<HelpLine> {
    let search = window.search.as_deref().unwrap_or_default().to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&search);
    let mut lines = Vec::with_capacity(BINDINGS.len() + 16);
    let mut group = "";
    for binding in BINDINGS.iter().filter(|one| has(one.help) || has(one.shown) || has(one.group)) {
        if binding.group != group {
            if !lines.is_empty() {
                lines.push(HelpLine::Blank);
            }
            lines.push(HelpLine::Group(binding.group));
            group = binding.group;
        }
        lines.push(HelpLine::Key(binding));
    }
    lines
}

fn rows(lines: &[HelpLine], columns: u16) -> usize {
    lines.len().div_ceil(usize::from(columns))
}

/// Arrows scroll, `/` searches; any other key closes it.
pub fn press(state: &TopState, mut window: HelpWindow, key: KeyPress) -> Option<Overlay> {
    match (key.0, &mut window.search) {
        (KeyCode::Esc, search @ Some(_)) => *search = None,
        (KeyCode::Backspace, Some(text)) => drop(text.pop()),
        (KeyCode::Char(c), Some(text)) if text.len() < 40 => text.push(c),
        (KeyCode::Char('/'), search @ None) => *search = Some(String::new()),
        _ => {
            let page = usize::from(state.area.height.saturating_sub(2));
            let rows = rows(&lines(&window), columns(state.area));
            window.scroll = keys::scrolled(key, window.scroll, page, rows.saturating_sub(page))?;
            return Some(Overlay::Help(window));
        }
    }
    window.scroll = 0;
    Some(Overlay::Help(window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines as drawn_lines;
    use crate::settings::TopSettings;
    use crossterm::event::KeyModifiers;

    fn drawn(window: &HelpWindow, width: u16, height: u16) -> String {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&TopState::new(TopSettings::default(), true), window, buf.area, &mut buf);
        drawn_lines(&buf)
    }

    #[test]
    fn every_key_is_there_in_groups_and_what_is_below_is_counted() {
        let text = drawn(&HelpWindow::default(), 160, 50);
        for binding in BINDINGS {
            assert!(text.contains(binding.help) && text.contains(binding.group), "{}: {text}", binding.help);
        }
        assert!(!text.contains("more lines"), "{text}");
        assert!(drawn(&HelpWindow::default(), 80, 24).contains("more lines"));
    }

    #[test]
    fn words_are_searched_for() {
        let mut state = TopState::new(TopSettings::default(), true);
        state.area = Rect::new(0, 0, 80, 24);
        let mut window = HelpWindow::default();
        for code in [KeyCode::Char('/'), KeyCode::Char('t'), KeyCode::Char('a'), KeyCode::Char('g')] {
            let Some(Overlay::Help(next)) = press(&state, window, (code, KeyModifiers::NONE)) else { panic!("closed") };
            window = next;
        }
        let text = drawn(&window, 80, 24);
        assert!(text.contains("untag all") && !text.contains("quit"), "{text}");
        let Some(Overlay::Help(window)) = press(&state, window, (KeyCode::Esc, KeyModifiers::NONE)) else {
            panic!("closed")
        };
        assert_eq!(window, HelpWindow::default());
        assert_eq!(press(&state, window, (KeyCode::Esc, KeyModifiers::NONE)), None);
    }
}
