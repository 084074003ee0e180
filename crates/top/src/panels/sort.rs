//! The menu of columns to sort by.

use super::heading::direction;
use crate::column::ProcessColumn;
use crate::keys::KeyPress;
use crate::paint::{Buffer, Position, Rect, Tone, centred, clear, fill, frame, inside, put};
use crate::rows::sort_by;
use crate::settings::TopSettings;
use crate::state::{Overlay, TopState};
use crossterm::event::KeyCode;

/// With the cursor on the column that is sorted by.
pub fn menu(settings: &TopSettings) -> Overlay {
    Overlay::Sort { at: settings.sort as usize }
}

const NAME: u16 = 3;
const HELP: u16 = 15;

pub fn draw(state: &TopState, at: usize, area: Rect, buf: &mut Buffer) {
    let place = place(area);
    clear(buf, place);
    let inner = frame(buf, place, "Sort by", &state.theme);
    let mark = direction(&state.theme, state.settings.descending);
    let first = first(at, inner);
    for (n, y) in (first..ProcessColumn::ALL.len()).zip(inner.top()..inner.bottom()) {
        let column = ProcessColumn::ALL[n];
        let is_here = n == at;
        let style = |tone| state.theme.style(if is_here { Tone::Selected } else { tone });
        if is_here {
            fill(buf, Rect { y, height: 1, ..inner }, style(Tone::Selected));
        }
        let (x, end) = (inner.x, inner.right());
        if let Some(digit) = char::from_digit(n as u32 + 1, 10) {
            put(buf, x + 1, y, end, digit.encode_utf8(&mut [0; 4]), style(Tone::Faint));
        }
        put(buf, x + NAME, y, end, column.name(), style(Tone::Strong));
        if column == state.settings.sort {
            put(buf, x + HELP - 2, y, end, mark, style(Tone::Title));
        }
        put(buf, x + HELP, y, end, column.help(), style(Tone::Plain));
    }
}

fn place(area: Rect) -> Rect {
    centred(area, 50, ProcessColumn::ALL.len() as u16 + 2)
}

/// The first column that is drawn, so that the cursor is in view.
fn first(at: usize, inner: Rect) -> usize {
    (at + 1).saturating_sub(usize::from(inner.height))
}

/// Enter chooses, Esc closes, digits and first letters go to a column.
pub fn press(state: &mut TopState, mut at: usize, (code, _): KeyPress) -> Option<Overlay> {
    let last = ProcessColumn::ALL.len() - 1;
    match code {
        KeyCode::Enter | KeyCode::Char(' ') => {
            sort_by(&mut state.settings, ProcessColumn::ALL[at]);
            return None;
        }
        KeyCode::Esc | KeyCode::F(6 | 10) => return None,
        KeyCode::Up => at = at.saturating_sub(1),
        KeyCode::Down => at = (at + 1).min(last),
        KeyCode::Home | KeyCode::PageUp => at = 0,
        KeyCode::End | KeyCode::PageDown => at = last,
        KeyCode::Char(c) => match c.to_digit(10) {
            Some(0) => {}
            Some(n) => at = n as usize - 1,
            None => {
                let others = (1..=ProcessColumn::ALL.len()).map(|n| (at + n) % ProcessColumn::ALL.len());
                let begins = |n: &usize| ProcessColumn::ALL[*n].name().starts_with(c.to_ascii_lowercase());
                at = others.clone().find(begins).unwrap_or(at);
            }
        },
        _ => {}
    }
    Some(Overlay::Sort { at })
}

/// A click chooses. It closes the menu, wherever it is.
pub fn click(state: &mut TopState, at: usize, position: Position) {
    let inner = inside(place(state.area));
    let row = first(at, inner) + usize::from(position.y.saturating_sub(inner.y));
    if let Some(column) = ProcessColumn::ALL.get(row).filter(|_| inner.contains(position)) {
        sort_by(&mut state.settings, *column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;
    use crossterm::event::KeyModifiers;
    use expect_test::expect;

    fn pressed(keys: &[KeyCode]) -> (TopState, Option<Overlay>) {
        let mut state = TopState::new(TopSettings::default(), true);
        let mut overlay = Some(menu(&state.settings));
        for code in keys {
            let Some(Overlay::Sort { at }) = overlay.take() else { panic!("closed too early") };
            overlay = press(&mut state, at, (*code, KeyModifiers::NONE));
        }
        (state, overlay)
    }

    fn chosen(keys: &[KeyCode]) -> (ProcessColumn, bool) {
        let (state, overlay) = pressed(keys);
        assert_eq!(overlay, None);
        (state.settings.sort, state.settings.descending)
    }

    #[test]
    fn the_menu_has_all_columns_with_the_cursor_on_the_present_one() {
        let state = TopState::new(TopSettings::default(), true);
        let mut buf = Buffer::empty(Rect::new(0, 0, 50, 19));
        draw(&state, state.settings.sort as usize, buf.area, &mut buf);
        expect![[r#"
            ┌ Sort by ───────────────────────────────────────┐
            │ 1 dev         devices that it is on            │
            │ 2 pid         process id                       │
            │ 3 user        who runs it                      │
            │ 4 container   Slurm job, pod or container      │
            │ 5 dram      ▼ DRAM used: buffers and traces    │
            │ 6 l1          L1 used: buffers, L1_SMALL, CB   │
            │ 7 l1_small    part of L1: the small region     │
            │ 8 trace       part of DRAM: recorded traces    │
            │ 9 cb          part of L1: circular buffers     │
            │   source      where these figures come from    │
            │   util        how busy it keeps a device       │
            │   share       DRAM used, of its devices' DRAM  │
            │   growth      device memory gained per minute  │
            │   cpu         host CPU, 100 for one core       │
            │   rss         resident host memory             │
            │   age         since when it runs               │
            │   command     command line                     │
            └────────────────────────────────────────────────┘
        "#]]
        .assert_eq(&lines(&buf));
        assert_eq!(Some(buf[(4, 5)].look().bg), state.theme.style(Tone::Selected).bg);
    }

    #[test]
    fn keys_choose_a_column_and_its_likely_direction() {
        use KeyCode::{Char, Down, End, Enter, Esc};
        assert_eq!(chosen(&[Down, Enter]), (ProcessColumn::L1, true));
        assert_eq!(chosen(&[Char('3'), Enter]), (ProcessColumn::User, false));
        assert_eq!(chosen(&[Char('g'), Enter]), (ProcessColumn::Growth, true));
        assert_eq!(chosen(&[Char('c'), Char('C'), Enter]), (ProcessColumn::Cpu, true));
        assert_eq!(chosen(&[End, Enter]), (ProcessColumn::Command, false));
        assert_eq!(chosen(&[Enter]), (ProcessColumn::Dram, false), "the same again is the other way");
        assert_eq!(chosen(&[Char('3'), Esc]), (ProcessColumn::Dram, true));
    }

    #[test]
    fn a_click_chooses() {
        let mut state = TopState::new(TopSettings::default(), true);
        state.area = Rect::new(0, 0, 80, 24);
        let at = state.settings.sort as usize;
        click(&mut state, at, Position { x: 20, y: 4 });
        assert_eq!(state.settings.sort, ProcessColumn::Pid);
        click(&mut state, at, Position { x: 0, y: 0 });
        assert_eq!(state.settings.sort, ProcessColumn::Pid);
    }

    #[test]
    fn no_size_is_too_small() {
        let state = TopState::new(TopSettings::default(), false);
        for (width, height) in (1..60).flat_map(|width| (1..25).map(move |height| (width, height))) {
            let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
            draw(&state, ProcessColumn::ALL.len() - 1, buf.area, &mut buf);
        }
    }
}
