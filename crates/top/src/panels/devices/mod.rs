//! The devices of the overview: a card each, a line each where there are many, a small cell each where there are more.

mod card;
pub(super) mod cell;
mod compact;
pub(super) mod figures;
#[cfg(test)]
mod golden;
mod mini;
pub(super) mod summary;

use crate::paint::{Buffer, Position, Rect, Tone, put, split};
use crate::panels::device;
use crate::panels::layout::{LEAST_PROCESSES, Panel, area_of};
use crate::state::TopState;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::Device;
use model::figure::Field;
use model::figure::device::POWER;
use show::text::width;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceForm {
    Card,
    LowCard,
    Compact,
    Mini,
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

/// The rows that the devices take of a screen: about a third of it at most, so that charts and processes have room.
pub fn height(state: &TopState, area: Rect) -> u16 {
    let rest = area.height.saturating_sub(2 + LEAST_PROCESSES).max(1);
    let above = summary_rows(state, area.width, rest);
    let room = DeviceRoom {
        usual: (area.height / 3).min(rest - above),
        least: (area.height * 2 / 5).min(rest - above),
        most: rest - above,
    };
    above + grid(state, area.width, room).map_or(1 - above.min(1), |grid| grid.height())
}

/// For how many rows there is room: for rich forms, for those of twenty columns, and rather than leave a device out.
#[derive(Debug, Clone, Copy)]
struct DeviceRoom {
    usual: u16,
    least: u16,
    most: u16,
}

impl DeviceRoom {
    fn all(rows: u16) -> DeviceRoom {
        DeviceRoom { usual: rows, least: rows, most: rows }
    }
}

/// One device is its own summary. Of many, the summary is worth more than a single row of them.
fn summary_rows(state: &TopState, width: u16, rows: u16) -> u16 {
    let count = u16::try_from(state.devices().len()).unwrap_or(u16::MAX);
    let in_rows = |form: DeviceForm| DeviceGrid::new(form, width / form.size().0, width, count).rows;
    (count > 1 && (rows > 1 || in_rows(DeviceForm::Heat) > 1)).into()
}

/// The summary, and the devices below it.
fn parts(state: &TopState, area: Rect) -> (Rect, Rect, Option<DeviceGrid>) {
    let (above, below) = split(area, summary_rows(state, area.width, area.height));
    (above, below, grid(state, below.width, DeviceRoom::all(below.height)))
}

/// How many devices can be seen on a screen of this size.
#[cfg(test)]
pub fn seen_at(state: &TopState, (width, screen): (u16, u16)) -> usize {
    let area = Rect::new(0, 0, width, screen);
    if super::is_too_small(area) {
        return 0;
    }
    let place = super::layout::of(state, area).into_iter().find(|(panel, _)| *panel == Panel::Devices);
    let grid = place.and_then(|(_, area)| parts(state, area).2);
    grid.map_or(0, |grid| grid.seen(state))
}

/// Whether their form has room for the traffic of their links.
pub fn show_traffic(state: &TopState) -> bool {
    let grid = area_of(state, Panel::Devices).and_then(|area| parts(state, area).2);
    grid.is_some_and(|grid| matches!(grid.form, DeviceForm::Card | DeviceForm::LowCard))
}

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    let (above, area, grid) = parts(state, area);
    let seen = grid.map_or(0, |grid| grid.seen(state));
    if !above.is_empty() {
        summary::draw(state, &hidden(state, grid.as_ref()), above, buf);
    }
    let Some(grid) = grid else {
        if state.devices().is_empty() {
            put(buf, area.x, area.y, area.right(), &nothing(state), state.theme.style(Tone::Faint));
        }
        return;
    };
    let widths = NameWidths::of(state);
    draw_heads(state, &grid, widths, area, buf);
    let first = usize::from(grid.first * grid.columns);
    for (at, device) in state.listed().enumerate().skip(first).take(seen) {
        let area = grid.place(area, at);
        match grid.form {
            DeviceForm::Card => card::draw(state, device, widths, area, buf),
            DeviceForm::LowCard => card::draw_low(state, device, widths, area, buf),
            DeviceForm::Compact => compact::draw(state, device, widths.names, area, buf),
            DeviceForm::Mini => mini::draw(state, device, area, buf),
            DeviceForm::Heat => draw_cell(state, device, widths.names, area, buf),
        }
    }
}

fn draw_heads(state: &TopState, grid: &DeviceGrid, widths: NameWidths, area: Rect, buf: &mut Buffer) {
    for column in (0..grid.columns).filter(|_| grid.has_head) {
        let head = grid.head(area, column);
        match grid.form {
            DeviceForm::Mini => mini::draw_head(state, head, buf),
            DeviceForm::Heat if column > 0 => {}
            DeviceForm::Heat => {
                let text = format!(" {} of each chip", cell_field(state).title());
                put(buf, area.x, area.y, area.right(), &text, state.theme.style(Tone::Faint));
            }
            _ => compact::draw_head(state, widths.names, head, buf),
        }
    }
}

/// The devices for which there is no room.
fn hidden<'a>(state: &'a TopState, grid: Option<&DeviceGrid>) -> Vec<&'a Device> {
    let Some(grid) = grid else { return Vec::new() };
    let first = usize::from(grid.first * grid.columns);
    let seen = first..first + grid.seen(state);
    state.listed().enumerate().filter(|(at, _)| !seen.contains(at)).map(|(_, device)| device).collect()
}

/// The figure of a small cell: that of the first chart.
fn cell_field(state: &TopState) -> Field<Device> {
    state.chosen_charts().first().copied().unwrap_or(POWER.field())
}

/// Its number, and how high the figure of the first chart is.
fn draw_cell(state: &TopState, device: &Device, names: usize, area: Rect, buf: &mut Buffer) {
    let (mark, tone) = selection(state, device);
    let name = format!("{mark}{:>width$}", figures::name(device, state.theme.glyphs()), width = names.max(2));
    let x = put(buf, area.x, area.y, area.right(), &name, state.theme.style(tone)) + 1;
    cell::draw(state, device, cell_field(state), x, area.y, area.right(), buf);
}

/// A click selects a device, a second one shows its details. The wheel selects another one.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    match event.kind {
        MouseEventKind::ScrollUp => state.step_device(-1),
        MouseEventKind::ScrollDown => state.step_device(1),
        MouseEventKind::Down(MouseButton::Left) => {
            let (_, area, Some(grid)) = parts(state, area) else { return };
            let position = Position { x: event.column, y: event.row };
            let hit = (0..state.devices().len()).find(|at| grid.place(area, *at).contains(position));
            let Some(hit) = hit.and_then(|at| state.listed().nth(at)).map(|device| device.id.clone()) else { return };
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
fn grid(state: &TopState, width: u16, room: DeviceRoom) -> Option<DeviceGrid> {
    let count = u16::try_from(state.devices().len()).unwrap_or(u16::MAX);
    if count == 0 || width == 0 || room.most == 0 {
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
        (DeviceForm::Mini, columns(DeviceForm::Mini)),
    ];
    let grids = forms.into_iter().filter(|(_, columns)| *columns > 0);
    let grids = grids.map(|(form, columns)| DeviceGrid::new(form, columns, width, count));
    // Rather a line without a heading than no line.
    let mut grids = grids.flat_map(|grid| [grid, DeviceGrid { has_head: false, ..grid }]);
    let rows = |form: DeviceForm| if form == DeviceForm::Mini { room.least } else { room.usual };
    let fitting = grids.find(|grid| grid.height() <= rows(grid.form));
    let mut grid =
        fitting.unwrap_or_else(|| DeviceGrid::new(DeviceForm::Heat, columns(DeviceForm::Heat), width, count));
    grid.has_head &= grid.height() <= room.most;
    if grid.rows > room.most {
        grid.rows = room.most;
        grid.first = (state.order.place(state.devices(), state.device.as_ref()).unwrap_or(0) as u16 / grid.columns)
            .saturating_sub(room.most - 1);
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
            DeviceForm::Mini => (20, 30, 1),
            DeviceForm::Heat => (10, 20, 1),
        }
    }
}

impl DeviceGrid {
    fn new(form: DeviceForm, columns: u16, width: u16, count: u16) -> DeviceGrid {
        let mut columns = columns.clamp(1, count);
        // Eight chips are a tray of a Galaxy.
        if matches!(form, DeviceForm::Heat | DeviceForm::Mini) && columns > 8 {
            columns -= columns % 8;
        }
        let (_, widest, rows) = form.size();
        let place = ((width / columns).min(widest), rows);
        let has_head = matches!(form, DeviceForm::Compact | DeviceForm::Mini | DeviceForm::Heat);
        DeviceGrid { form, columns, place, rows: count.div_ceil(columns), first: 0, has_head }
    }

    /// How many devices can be seen.
    fn seen(&self, state: &TopState) -> usize {
        let first = usize::from(self.first * self.columns);
        usize::from(self.rows * self.columns).min(state.devices().len().saturating_sub(first))
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
