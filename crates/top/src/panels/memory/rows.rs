//! The rows of the lists, in plain data.

use super::selected_chip;
pub use crate::overlay::{MemoryKey as Key, MemoryTab as Tab};
use crate::state::TopState;
use model::Bytes;
use show::memory::draw::facts::areas;
use show::memory::map::{self, BankBlock};
use show::memory::view::{Buffer, Chip, Death, Holder, Kind, Part, View};
use std::cmp::Reverse;

#[derive(Debug, Clone)]
pub enum MemoryRow<'a> {
    /// A process, and what it holds of the selected chip.
    Process {
        holder: &'a Holder,
        part: &'a Part,
    },
    Buffer(&'a Buffer),
    Block(BankBlock),
    Death(&'a Death),
    /// A chip with memory still attributed to exited processes, and the last of them.
    Left {
        chip: &'a Chip,
        bytes: Bytes,
        death: Option<&'a Death>,
    },
}

impl MemoryRow<'_> {
    pub fn key(&self) -> Key {
        match self {
            MemoryRow::Process { holder, .. } => Key::Process(holder.pid),
            MemoryRow::Buffer(buffer) => Key::Buffer {
                pid: buffer.pid,
                kind: buffer.kind.clone(),
                address: buffer.address,
                devices: buffer.devices.clone(),
            },
            MemoryRow::Block(block) => Key::Block(block.address),
            MemoryRow::Death(death) => Key::Death(death.pid, death.died_at),
            MemoryRow::Left { chip, .. } => Key::Chip(chip.id.clone()),
        }
    }

    pub fn is(&self, key: &Key) -> bool {
        match (self, key) {
            (MemoryRow::Process { holder, .. }, Key::Process(pid)) => holder.pid == *pid,
            (MemoryRow::Buffer(buffer), key) => is_buffer(buffer, key),
            (MemoryRow::Block(block), Key::Block(address)) => block.address == *address,
            (MemoryRow::Death(death), Key::Death(pid, at)) => death.pid == *pid && death.died_at == *at,
            (MemoryRow::Left { chip, .. }, Key::Chip(id)) => chip.id == *id,
            _ => false,
        }
    }
}

pub fn is_buffer(buffer: &Buffer, key: &Key) -> bool {
    matches!(key, Key::Buffer { pid, kind, address, devices }
        if buffer.pid == *pid && buffer.kind == *kind && buffer.address == *address && buffer.devices == *devices)
}

pub fn of<'a>(state: &TopState, view: &'a View, tab: Tab) -> Vec<MemoryRow<'a>> {
    let chosen = &state.memory;
    match tab {
        Tab::Processes => processes(state, view),
        Tab::Buffers => buffers(state, view, chosen.pid, chosen.kind).map(MemoryRow::Buffer).collect(),
        Tab::Map => bank(state, view).into_iter().flat_map(|bank| bank.blocks).map(MemoryRow::Block).collect(),
        Tab::Deaths => view.deaths.iter().map(MemoryRow::Death).collect(),
        Tab::Left => left(view).collect(),
    }
}

/// Those that hold the selected chip, by what they hold of it.
pub fn processes<'a>(state: &TopState, view: &'a View) -> Vec<MemoryRow<'a>> {
    let Some(chip) = selected_chip(state, view) else { return Vec::new() };
    let held = |holder: &'a Holder| holder.devices.iter().find(|part| part.id == chip.id).map(|part| (holder, part));
    let mut all: Vec<(&Holder, &Part)> = view.processes.iter().filter_map(held).collect();
    all.sort_by_key(|(holder, part)| (Reverse(part.usage.total()), holder.pid));
    all.into_iter().map(|(holder, part)| MemoryRow::Process { holder, part }).collect()
}

/// Those on the selected chip, as they come: the largest first. One whose chip is not known is on every chip that its
/// process holds.
pub fn buffers<'a>(
    state: &TopState,
    view: &'a View,
    pid: Option<u32>,
    kind: Option<&'static str>,
) -> impl Iterator<Item = &'a Buffer> {
    let id = selected_chip(state, view).map(|chip| chip.id.as_str()).unwrap_or_default();
    let holds = move |pid: Option<u32>| {
        let holder = view.processes.iter().find(|holder| Some(holder.pid) == pid);
        holder.is_some_and(|holder| holder.devices.iter().any(|part| part.id == id))
    };
    let is_here = move |buffer: &&Buffer| {
        if buffer.devices.is_empty() { holds(buffer.pid) } else { buffer.devices.iter().any(|device| device == id) }
    };
    view.buffers
        .iter()
        .filter(move |buffer| pid.is_none() || buffer.pid == pid)
        .filter(move |buffer| kind.is_none_or(|kind| buffer.kind == kind))
        .filter(is_here)
}

/// A bank of the selected chip.
pub struct Bank<'a> {
    pub area: &'static str,
    pub kind: &'a Kind,
    pub blocks: Vec<BankBlock>,
}

/// That of the chosen kind, or of the first kind that has buffers with addresses.
pub fn bank<'a>(state: &TopState, view: &'a View) -> Option<Bank<'a>> {
    let chip = selected_chip(state, view)?;
    let kinds = areas(chip).into_iter().flat_map(|(name, area)| area.kinds.iter().map(move |kind| (name, kind)));
    let mut kinds = kinds.filter(|(_, kind)| state.memory.kind.is_none_or(|chosen| chosen == kind.kind));
    kinds.find_map(|(area, kind)| Some(Bank { area, kind, blocks: map::blocks(view, chip, kind)? }))
}

/// The chips with memory still attributed to exited processes.
fn left(view: &View) -> impl Iterator<Item = MemoryRow<'_>> {
    view.chips.iter().filter_map(|chip| {
        let bytes = chip.stale_bytes.filter(|bytes| bytes.0 > 0)?;
        let died_here = view.deaths.iter().filter(|death| death.devices.contains(&chip.id));
        Some(MemoryRow::Left { chip, bytes, death: died_here.max_by_key(|death| death.died_at) })
    })
}
