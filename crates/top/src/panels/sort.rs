//! The menu of columns to sort by.

use super::processes::direction;
use crate::column::ProcessColumn;
use crate::keys::KeyPress;
pub use crate::overlay::SortMenu as Menu;
use crate::paint::{centred, clear, fill, frame, inside, put};
use crate::settings::TopSettings;
use crate::state::{Overlay, TopState};
use crate::table::sort_by;
use crate::theme::Tone;
use crossterm::event::{KeyCode, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

impl Menu {
    pub fn new(settings: &TopSettings) -> Menu {
        Menu { at: ProcessColumn::ALL.iter().position(|column| *column == settings.sort).unwrap_or(0) }
    }
}

const NAME: u16 = 3;
const HELP: u16 = 15;

pub fn draw(state: &TopState, menu: &Menu, area: Rect, buf: &mut Buffer) {
    let place = place(area);
    clear(buf, place);
    let inner = frame(buf, place, "Sort by", &state.theme);
    let mark = direction(state);
    let first = first(menu, inner);
    for (n, y) in (first..ProcessColumn::ALL.len()).zip(inner.top()..inner.bottom()) {
        let column = ProcessColumn::ALL[n];
        let is_here = n == menu.at;
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
fn first(menu: &Menu, inner: Rect) -> usize {
    (menu.at + 1).saturating_sub(usize::from(inner.height))
}

/// Enter chooses, Esc closes, digits and first letters go to a column.
pub fn press(state: &mut TopState, mut menu: Menu, (code, _): KeyPress) -> Option<Overlay> {
    let last = ProcessColumn::ALL.len() - 1;
    match code {
        KeyCode::Enter | KeyCode::Char(' ') => {
            sort_by(&mut state.settings, ProcessColumn::ALL[menu.at]);
            return None;
        }
        KeyCode::Esc | KeyCode::F(6 | 10) => return None,
        KeyCode::Up => menu.at = menu.at.saturating_sub(1),
        KeyCode::Down => menu.at = (menu.at + 1).min(last),
        KeyCode::Home | KeyCode::PageUp => menu.at = 0,
        KeyCode::End | KeyCode::PageDown => menu.at = last,
        KeyCode::Char(c) => match c.to_digit(10) {
            Some(0) => {}
            Some(n) => menu.at = n as usize - 1,
            None => {
                let others = (1..=ProcessColumn::ALL.len()).map(|n| (menu.at + n) % ProcessColumn::ALL.len());
                let begins = |n: &usize| ProcessColumn::ALL[*n].name().starts_with(c.to_ascii_lowercase());
                menu.at = others.clone().find(begins).unwrap_or(menu.at);
            }
        },
        _ => {}
    }
    Some(Overlay::Sort(menu))
}

/// A click chooses, and closes the menu where it is beside it.
pub fn mouse(state: &mut TopState, mut menu: Menu, event: MouseEvent) -> Option<Overlay> {
    let inner = inside(place(state.area));
    match event.kind {
        MouseEventKind::ScrollUp => menu.at = menu.at.saturating_sub(1),
        MouseEventKind::ScrollDown => menu.at = (menu.at + 1).min(ProcessColumn::ALL.len() - 1),
        MouseEventKind::Down(MouseButton::Left) => {
            if inner.contains(Position { x: event.column, y: event.row }) {
                let at = first(&menu, inner) + usize::from(event.row - inner.y);
                if let Some(column) = ProcessColumn::ALL.get(at) {
                    sort_by(&mut state.settings, *column);
                }
            }
            return None;
        }
        MouseEventKind::Down(_) => return None,
        _ => {}
    }
    Some(Overlay::Sort(menu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;
    use crossterm::event::KeyModifiers;
    use expect_test::expect;

    fn pressed(keys: &[KeyCode]) -> (TopState, Option<Overlay>) {
        let mut state = TopState::new(TopSettings::default(), true);
        let mut overlay = Some(Overlay::Sort(Menu::new(&state.settings)));
        for code in keys {
            let Some(Overlay::Sort(menu)) = overlay.take() else { panic!("closed too early") };
            overlay = press(&mut state, menu, (*code, KeyModifiers::NONE));
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
        draw(&state, &Menu::new(&state.settings), buf.area, &mut buf);
        expect![[r#"
            ┌ Sort by ───────────────────────────────────────┐
            │ 1 dev         devices that it is on            │
            │ 2 pid         process id                       │
            │ 3 user        who runs it                      │
            │ 4 container   container or pod                 │
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
        assert_eq!(buf[(4, 5)].style().bg, state.theme.style(Tone::Selected).bg);
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
        let event = |column, row| MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column,
            row,
            modifiers: KeyModifiers::NONE,
        };
        let menu = Menu::new(&state.settings);
        assert_eq!(mouse(&mut state, menu.clone(), event(20, 4)), None);
        assert_eq!(state.settings.sort, ProcessColumn::Pid);
        assert_eq!(mouse(&mut state, menu, event(0, 0)), None);
        assert_eq!(state.settings.sort, ProcessColumn::Pid);
    }

    #[test]
    fn no_size_is_too_small() {
        let state = TopState::new(TopSettings::default(), false);
        for (width, height) in (1..60).flat_map(|width| (1..25).map(move |height| (width, height))) {
            let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
            draw(&state, &Menu { at: ProcessColumn::ALL.len() - 1 }, buf.area, &mut buf);
        }
    }
}
