//! Chips at their places, coloured by a figure, and the links between them.

mod chip;
mod facts;
#[cfg(test)]
mod golden;
mod links;
mod plan;

use crate::keys::Action;
use crate::paint::{Buffer, Position, Rect, Theme, Tone, put};
use crate::panels::device;
use crate::pieces::{self, Piece};
use crate::state::TopState;
use chip::MeshChip;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use links::LinkHealth;
use model::figure::Field;
use model::figure::device::kept_in_history;
use model::topology::{EthernetLink, PlacedChip, TopologySource};
use model::{Device, DeviceId, State as DeviceState};
use plan::Plan;
use show::text::{count, width};
use std::borrow::Cow;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    let topology = &state.places.topology;
    if topology.chips.is_empty() {
        put(buf, area.x, area.y, area.right(), &super::devices::nothing(state), state.theme.style(Tone::Faint));
        return;
    }
    let plan = Plan::of(state, area);
    draw_title(state, &plan, buf);
    draw_groups(state, &plan, buf);
    draw_chips(state, &plan, buf);
    links::draw(state, &plan, buf);
    facts::draw(state, &plan, buf);
    draw_legend(state, &plan, buf);
}

/// Whether the action meant something here.
pub fn act(state: &mut TopState, action: Action) -> bool {
    match action {
        Action::Up => step(state, 0, -1),
        Action::Down => step(state, 0, 1),
        Action::Left => step(state, -1, 0),
        Action::Right => step(state, 1, 0),
        Action::Home => select(state, state.places.topology.chips.first().map(|chip| chip.id.clone())),
        Action::End => select(state, state.places.topology.chips.last().map(|chip| chip.id.clone())),
        Action::Metric => state.mesh.metric = next(state.mesh.metric, 1),
        Action::Enter => device::open(state),
        _ => return false,
    }
    true
}

/// A click selects a chip, the wheel another one. In the title they choose the figure.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    let plan = Plan::of(state, area);
    let position = Position { x: event.column, y: event.row };
    let in_title = plan.title.contains(position);
    match event.kind {
        MouseEventKind::ScrollUp if in_title => state.mesh.metric = next(state.mesh.metric, -1),
        MouseEventKind::ScrollDown | MouseEventKind::Down(MouseButton::Left) if in_title => {
            state.mesh.metric = next(state.mesh.metric, 1);
        }
        MouseEventKind::ScrollUp => state.step_device(-1),
        MouseEventKind::ScrollDown => state.step_device(1),
        MouseEventKind::Down(MouseButton::Left) => {
            let is_hit = |chip: &&PlacedChip| plan.place(chip).is_some_and(|place| place.contains(position));
            let hit = state.places.topology.chips.iter().find(is_hit).map(|chip| chip.id.clone());
            select(state, hit);
        }
        _ => {}
    }
}

fn select(state: &mut TopState, id: Option<DeviceId>) {
    state.device = id.or(state.device.take());
}

/// Another of the figures that history keeps, so many places further.
pub fn next(field: Field<Device>, steps: isize) -> Field<Device> {
    let all: Vec<Field<Device>> = kept_in_history().collect();
    let at = all.iter().position(|one| *one == field).unwrap_or(0);
    all[(at as isize + steps).rem_euclid(all.len() as isize) as usize]
}

/// Selects the nearest chip in a direction; one that is straight ahead is nearer than one that is not.
fn step(state: &mut TopState, across: i64, down: i64) {
    let topology = &state.places.topology;
    let Some(from) = state.device.as_ref().and_then(|id| topology.place(id)) else { return };
    let distance = |chip: &PlacedChip| {
        let (x, y) = (i64::from(chip.column) - i64::from(from.column), i64::from(chip.row) - i64::from(from.row));
        let (ahead, aside) = (x * across + y * down, (x * down).abs() + (y * across).abs());
        (ahead > 0).then_some((ahead + 2 * aside, aside))
    };
    let nearest = topology.chips.iter().filter_map(|chip| Some((distance(chip)?, chip))).min_by_key(|(far, _)| *far);
    let id = nearest.map(|(_, chip)| chip.id.clone());
    select(state, id);
}

/// How many chips there are, what their colours mean, and how many are sick or cannot be seen.
fn draw_title(state: &TopState, plan: &Plan, buf: &mut Buffer) {
    let topology = &state.places.topology;
    let chips = count(topology.chips.len() as u64, "chip", "chips");
    let mut line = vec![
        Piece::left(chips, Tone::Title, 2),
        Piece::left(format!("by {}", state.mesh.metric.title()), Tone::Strong, 0),
        Piece::left("m: next metric", Tone::Faint, 4),
    ];
    let hidden = topology.chips.iter().filter(|chip| plan.place(chip).is_none()).count();
    if hidden > 0 {
        line.push(Piece::right(format!("{hidden} not in view"), Tone::Warning, 1));
    }
    if let Some(degraded) = state.places.live.degraded() {
        line.push(Piece::right(format!("mesh degraded: {degraded}"), Tone::Warning, 1));
    }
    use DeviceState::{Hung, Lost, NoDriver, NoTelemetry, Resetting, Silent};
    for sick in [Hung, Lost, NoDriver, NoTelemetry, Silent, Resetting] {
        let count = state.devices().iter().filter(|device| device.state == sick).count();
        let tone = Tone::of_state(sick);
        if count > 0 {
            line.push(Piece::right(format!("{count} {}", sick.name()), tone, 3));
        }
    }
    let end = plan.title.right().saturating_sub(1);
    pieces::draw(buf, (plan.title.x.saturating_add(1), plan.title.y), end, line, 2, &state.theme);
}

/// The name of each board or tray above its first chip.
fn draw_groups(state: &TopState, plan: &Plan, buf: &mut Buffer) {
    if plan.gap.1 == 0 {
        return;
    }
    let chips = &state.places.topology.chips;
    for (index, group) in state.places.topology.groups.iter().enumerate() {
        let seen = chips.iter().filter(|chip| chip.group == index && plan.place(chip).is_some());
        let Some(first) = seen.min_by_key(|chip| (chip.row, chip.column)) else { continue };
        let Some(place) = plan.place(first) else { continue };
        // A link from above comes down at its left.
        let x = place.x.saturating_add(3);
        let next =
            chips.iter().filter(|chip| chip.row == first.row && chip.column > first.column && chip.group != index);
        let next = next.min_by_key(|chip| chip.column).and_then(|chip| plan.place(chip));
        let next = next.map_or(plan.facts.right(), |next| next.x);
        let edge = if plan.aside { plan.facts.x } else { next };
        let end = next.min(edge).min(crossing(state, plan, first).unwrap_or(u16::MAX));
        let name = short_name(&group.name, end.saturating_sub(x), &state.theme);
        put(buf, x, place.y.saturating_sub(1), end, &name, state.theme.style(Tone::Faint));
    }
}

/// The first column at the right of a chip's own where a link comes down from above.
fn crossing(state: &TopState, plan: &Plan, chip: &PlacedChip) -> Option<u16> {
    let topology = &state.places.topology;
    let down = topology.links.iter().filter_map(|link| links::neighbours(topology, link));
    let comes = |[upper, lower]: [&PlacedChip; 2]| {
        let is_here = upper.row < lower.row && lower.row == chip.row && lower.column > chip.column;
        plan.place(lower).filter(|_| is_here).map(|place| place.x.saturating_add(1))
    };
    down.filter_map(comes).min()
}

/// As much of a name as fits: `n300 serial 0100014511703333`, `n300 …3333` or `n300`.
fn short_name<'a>(name: &'a str, columns: u16, theme: &Theme) -> Cow<'a, str> {
    let columns = usize::from(columns);
    if width(name) <= columns {
        return name.into();
    }
    let parted = [" serial ", " at ", " of ", ","].iter().find_map(|word| name.split_once(word));
    let Some((first, rest)) = parted else { return name.into() };
    // The ends of serials differ.
    let end: String = rest.chars().skip(rest.chars().count().saturating_sub(4)).collect();
    let both = format!("{first} {}{end}", theme.glyphs().cut);
    if width(&both) <= columns { both.into() } else { first.into() }
}

fn draw_chips(state: &TopState, plan: &Plan, buf: &mut Buffer) {
    let topology = &state.places.topology;
    let name = |id: &DeviceId| match id {
        DeviceId::NoDriver(_) => state.theme.glyphs().absent.to_owned(),
        id => id.to_string(),
    };
    let names = topology.chips.iter().map(|chip| width(&name(&chip.id))).max().unwrap_or(1);
    let linked: Vec<&DeviceId> =
        state.device.iter().flat_map(|id| topology.neighbours(id).map(|(other, _)| other)).collect();
    for placed in &topology.chips {
        let Some(place) = plan.place(placed) else { continue };
        let chip = MeshChip {
            device: state.devices().iter().find(|device| device.id == placed.id),
            name: name(&placed.id),
            is_selected: state.device.as_ref() == Some(&placed.id),
            is_linked: linked.contains(&&placed.id),
        };
        if plan.is_framed() {
            chip::draw_framed(state, &chip, place, buf);
        } else {
            chip::draw_bare(state, &chip, names, place, buf);
        }
    }
}

/// What lines between chips mean, and from where they are known.
fn draw_legend(state: &TopState, plan: &Plan, buf: &mut Buffer) {
    if plan.legend.is_empty() {
        return;
    }
    let (topology, theme) = (&state.places.topology, &state.theme);
    let links = &topology.links;
    let mut line = Vec::new();
    let is_assumed = |source| source == TopologySource::Assumed;
    let health = |link: &EthernetLink| links::health(link, &state.places.live);
    let find = |is: &dyn Fn(&EthernetLink) -> bool| links.iter().find(|link| is(link));
    let kinds = [
        ("one link", find(&|link| !is_assumed(link.source) && link.count == 1 && health(link) == LinkHealth::Well)),
        ("several links", find(&|link| !is_assumed(link.source) && link.count > 1 && health(link) == LinkHealth::Well)),
        ("assumed", find(&|link| is_assumed(link.source))),
        ("some down", find(&|link| health(link) == LinkHealth::Degraded)),
        ("down", find(&|link| health(link) == LinkHealth::Down)),
    ];
    for (name, link) in kinds {
        if let Some(link) = link {
            let glyph = links::line(link, health(link), theme).across;
            let rank = if health(link) == LinkHealth::Well { 2 } else { 0 };
            line.push(Piece::left(format!("{glyph} {name}"), Tone::Plain, rank));
        }
    }
    let from = |source| links.iter().any(|link| link.source == source);
    let source = match (from(TopologySource::Descriptor), from(TopologySource::Board), topology.source) {
        (true, true, _) => "links from the cluster descriptor and the boards",
        (true, false, _) => "links from the cluster descriptor",
        (false, true, TopologySource::Assumed) => "links on boards; cables are not known",
        (false, true, _) => "links on boards; pass --topology FILE to show others",
        (false, false, TopologySource::Descriptor) => "the cluster descriptor has no links",
        (false, false, _) if topology.chips.len() == 1 => "no links known",
        (false, false, _) => "no links known: pass --topology FILE to show them",
    };
    line.push(Piece::left(source, Tone::Faint, 1));
    let far = links.iter().filter(|link| links::neighbours(topology, link).is_none()).count();
    if far > 0 {
        line.push(Piece::left(format!("{far} to other groups, not drawn"), Tone::Faint, 3));
    }
    pieces::draw(buf, (plan.legend.x + 1, plan.legend.y), plan.legend.right(), line, 2, theme);
}
