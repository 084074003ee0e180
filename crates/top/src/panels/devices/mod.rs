//! The devices of the overview: a card each, a line each where there are many, a small cell each where there are more.

mod card;
pub(super) mod cell;
mod compact;
pub(super) mod figures;
#[cfg(test)]
mod golden;

use crate::paint::{Buffer, Position, Rect, Tone, put};
use crate::panels::device;
use crate::panels::layout::LEAST_PROCESSES;
use crate::state::TopState;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::Device;
use model::figure::device::POWER;
use show::text::width;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceForm {
    Card,
    LowCard,
    Compact,
    Heat,
}

/// How long the longest are, so that what follows is aligned.
#[derive(Debug, Clone, Copy)]
struct NameWidths {
    names: usize,
    boards: usize,
    states: usize,
}

/// Places of one size, in rows from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeviceGrid {
    form: DeviceForm,
    columns: u16,
    place: (u16, u16),
    /// Rows of places that can be seen, and the first of them.
    rows: u16,
    first: u16,
    /// Whether a line above them says what their figures are.
    has_head: bool,
}

/// The rows that the devices take of a screen: a third of it at most, so that charts and processes have room.
pub fn height(state: &TopState, area: Rect) -> u16 {
    let rest = area.height.saturating_sub(2 + LEAST_PROCESSES);
    let most = (area.height / 3).min(rest).max(1);
    grid(state, area.width, most).map_or(1, |grid| grid.height())
}

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    let Some(grid) = grid(state, area.width, area.height) else {
        put(buf, area.x, area.y, area.right(), &nothing(state), state.theme.style(Tone::Faint));
        return;
    };
    let widths = NameWidths::of(state);
    if grid.has_head {
        (0..grid.columns).for_each(|column| compact::draw_head(state, widths.names, grid.head(area, column), buf));
    }
    let first = usize::from(grid.first * grid.columns);
    let seen = usize::from(grid.rows * grid.columns);
    for (at, device) in state.devices().iter().enumerate().skip(first).take(seen) {
        let area = grid.place(area, at);
        match grid.form {
            DeviceForm::Card => card::draw(state, device, widths, area, buf),
            DeviceForm::LowCard => card::draw_low(state, device, widths, area, buf),
            DeviceForm::Compact => compact::draw(state, device, widths.names, area, buf),
            DeviceForm::Heat => draw_cell(state, device, widths.names, area, buf),
        }
    }
}

/// Its number, and how high the figure of the first chart is.
fn draw_cell(state: &TopState, device: &Device, names: usize, area: Rect, buf: &mut Buffer) {
    let (mark, tone) = selection(state, device);
    let name = format!("{mark}{:>width$}", figures::name(device, state.theme.glyphs()), width = names.max(2));
    let x = put(buf, area.x, area.y, area.right(), &name, state.theme.style(tone)) + 1;
    let field = state.chosen_charts().first().copied().unwrap_or(POWER.field());
    cell::draw(state, device, field, x, area.y, area.right(), buf);
}

/// A click selects a device, a second one shows its details. The wheel selects another one.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    match event.kind {
        MouseEventKind::ScrollUp => state.step_device(-1),
        MouseEventKind::ScrollDown => state.step_device(1),
        MouseEventKind::Down(MouseButton::Left) => {
            let Some(grid) = grid(state, area.width, area.height) else { return };
            let position = Position { x: event.column, y: event.row };
            let hit = (0..state.devices().len()).find(|at| grid.place(area, *at).contains(position));
            let Some(hit) = hit.map(|at| state.devices()[at].id.clone()) else { return };
            if state.device.as_ref() == Some(&hit) {
                device::open(state);
            }
            state.device = Some(hit);
        }
        _ => {}
    }
}

/// What is said where there is no device.
pub fn nothing(state: &TopState) -> String {
    let snapshot = state.snapshot();
    let why = match &snapshot.host.driver_version {
        _ if snapshot.taken_at.0 == 0 => "waiting for the first sample",
        Some(_) => "no Tenstorrent device is here",
        None => "no Tenstorrent device is here, and its driver is not loaded",
    };
    format!(" {why}")
}

/// The richest form for which there is room.
fn grid(state: &TopState, width: u16, most: u16) -> Option<DeviceGrid> {
    let count = u16::try_from(state.devices().len()).unwrap_or(u16::MAX);
    if count == 0 || width == 0 || most == 0 {
        return None;
    }
    let columns = |form: DeviceForm| width / form.size().0;
    // A few lines may as well be long.
    let long = columns(DeviceForm::Compact).min(count.div_ceil(if count <= 16 { 4 } else { 8 }));
    let forms = [
        (DeviceForm::Card, columns(DeviceForm::Card)),
        (DeviceForm::LowCard, columns(DeviceForm::LowCard)),
        (DeviceForm::Compact, long),
        (DeviceForm::Compact, columns(DeviceForm::Compact)),
    ];
    let grids = forms.into_iter().filter(|(_, columns)| *columns > 0);
    let grids = grids.map(|(form, columns)| DeviceGrid::new(form, columns, width, count));
    // Rather a line without a heading than no line.
    let mut grids = grids.flat_map(|grid| [grid, DeviceGrid { has_head: false, ..grid }]);
    let fitting = grids.find(|grid| grid.height() <= most);
    let mut grid =
        fitting.unwrap_or_else(|| DeviceGrid::new(DeviceForm::Heat, columns(DeviceForm::Heat), width, count));
    if grid.rows > most {
        let selected = state.devices().iter().position(|device| Some(&device.id) == state.device.as_ref());
        grid.rows = most;
        grid.first = (selected.unwrap_or(0) as u16 / grid.columns).saturating_sub(most - 1);
    }
    Some(grid)
}

impl NameWidths {
    fn of(state: &TopState) -> NameWidths {
        let mut widths = NameWidths { names: 1, boards: 0, states: 0 };
        for device in state.devices() {
            widths.names = widths.names.max(width(&figures::name(device, state.theme.glyphs())));
            widths.boards = widths.boards.max(width(&figures::board(device, state.theme.glyphs())));
            widths.states = widths.states.max(width(device.state.name()));
        }
        NameWidths { names: widths.names.min(8), boards: widths.boards.min(16), ..widths }
    }
}

impl DeviceForm {
    /// The least columns of a place, those beyond which it is not stretched, and its rows.
    fn size(self) -> (u16, u16, u16) {
        match self {
            DeviceForm::Card => (78, 160, 3),
            DeviceForm::LowCard => (78, 160, 2),
            DeviceForm::Compact => (39, 80, 1),
            DeviceForm::Heat => (10, 20, 1),
        }
    }
}

impl DeviceGrid {
    fn new(form: DeviceForm, columns: u16, width: u16, count: u16) -> DeviceGrid {
        let mut columns = columns.clamp(1, count);
        // Eight chips are a tray of a Galaxy.
        if form == DeviceForm::Heat && columns > 8 {
            columns -= columns % 8;
        }
        let (_, widest, rows) = form.size();
        let place = ((width / columns).min(widest), rows);
        let has_head = form == DeviceForm::Compact;
        DeviceGrid { form, columns, place, rows: count.div_ceil(columns), first: 0, has_head }
    }

    /// All rows of the screen that it takes.
    fn height(&self) -> u16 {
        self.rows.saturating_mul(self.place.1).saturating_add(self.has_head.into())
    }

    /// Where the heading of a column is.
    fn head(&self, area: Rect, column: u16) -> Rect {
        Rect { x: area.x + column * self.place.0, y: area.y, width: self.place.0, height: 1 }
    }

    /// Where a device is; nowhere when it cannot be seen.
    fn place(&self, area: Rect, at: usize) -> Rect {
        let (row, column) = ((at / usize::from(self.columns)) as u16, (at % usize::from(self.columns)) as u16);
        let (width, height) = self.place;
        match row.checked_sub(self.first).filter(|row| *row < self.rows) {
            Some(row) => {
                Rect { x: area.x + column * width, y: area.y + u16::from(self.has_head) + row * height, width, height }
            }
            None => Rect::default(),
        }
    }
}

/// The mark in front of the selected device, and the tone of its name.
fn selection(state: &TopState, device: &Device) -> (&'static str, Tone) {
    let is_selected = state.device.as_ref() == Some(&device.id);
    (state.theme.mark(is_selected), if is_selected { Tone::Selected } else { Tone::Strong })
}
