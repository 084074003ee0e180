//! The first line: which machine, which view, what time.

use crate::text::clean;
use crate::top::paint::put;
use crate::top::state::{State, View};
use crate::top::theme::Tone;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub fn draw(state: &State, area: Rect, buf: &mut Buffer) {
    let (theme, y) = (&state.theme, area.y);
    for (view, x) in tabs(area) {
        let tone = if view == state.view { Tone::Selected } else { Tone::Faint };
        let n = View::ALL.iter().position(|other| *other == view).unwrap_or(0) + 1;
        put(buf, x, y, area.right(), &format!(" {n} {} ", view.name()), theme.style(tone));
    }
    let snapshot = state.snapshot();
    let host = snapshot.host.name.as_deref().map(clean).unwrap_or_default();
    let driver = snapshot.host.driver_version.as_deref().map(|v| format!("driver {} ", clean(v))).unwrap_or_default();
    let simulated = if snapshot.host.simulated { "SIMULATED " } else { "" };
    let time = jiff::Timestamp::from_millisecond(snapshot.taken_at.0).unwrap_or_default();
    let time = time.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
    let text = format!("{simulated}{driver}{host} {time} ");
    let columns = crate::text::width(&text) as u16;
    let left = tabs(area).last().map_or(0, |(view, x)| x + tab_width(*view));
    if left + columns < area.right() {
        put(buf, area.right() - columns, y, area.right(), &text, theme.style(Tone::Plain));
    }
}

fn tab_width(view: View) -> u16 {
    view.name().len() as u16 + 4
}

/// Where each tab begins.
fn tabs(area: Rect) -> Vec<(View, u16)> {
    let mut x = area.x;
    let mut tabs = Vec::new();
    for view in View::ALL {
        tabs.push((view, x));
        x += tab_width(view);
    }
    tabs
}

pub fn mouse(state: &mut State, area: Rect, event: MouseEvent) {
    if event.kind == MouseEventKind::Down(MouseButton::Left) {
        let hit = tabs(area).into_iter().find(|(view, x)| (*x..*x + tab_width(*view)).contains(&event.column));
        if let Some((view, _)) = hit {
            state.view = view;
        }
    }
}
