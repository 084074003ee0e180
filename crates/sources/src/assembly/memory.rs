//! How much device memory each process has, and each device in all.
//!
//! One process on one chip takes its figure from the best source that it has: the book of an agent, then what the driver counts, then
//! tt-metal's shared memory. The device's figure is the sum over living processes, unless the driver counts it.

use super::{Draft, wall_clock};
use crate::accounting::{Accounted, Accounting, Facts};
use crate::attribution::{self, Baselines, Division, divide};
use crate::books::{self, FoundBook};
use crate::chips::{chip_of_book, chips_of};
use crate::maps::Inode;
use crate::procs::ProcessFacts;
use crate::shm::{FoundRegion, Kinds};
use ledger::book::{BookChip, MemoryKind};
use model::{Activity, Bytes, Device, DeviceId, Held, Source, Usage, UtilizationSource, chip_match, chip_text};
use std::collections::{BTreeMap, BTreeSet};

/// The divided regions of each chip. `None` for one that cannot be read.
type Divisions = BTreeMap<DeviceId, Vec<Option<Division>>>;

impl Draft<'_> {
    /// Takes the figures of the processes that keep a book out of it.
    pub(super) fn add_books(&mut self) {
        for (pid, facts) in &self.collected.processes {
            if let Ok(Some(found)) = &facts.book {
                self.add_book(*pid, facts, found);
            }
        }
    }

    fn add_book(&mut self, pid: u32, facts: &ProcessFacts, found: &FoundBook) {
        // One that is known by its book alone may have chips that are only simulated.
        let holds_one = self.holders.values().any(|holders| holders.contains(&pid));
        let has_region = facts.maps.as_ref().is_ok_and(|maps| !maps.regions.is_empty());
        let is_ours = |id: &Option<DeviceId>| holds_one || has_region || id.is_some();
        let book = match &found.book {
            Ok(book) => book,
            Err(_) if !is_ours(&None) => return,
            Err(why) => return self.trouble.add(&found.path, why),
        };
        if let Some(remark) = book.remark.as_ref().filter(|_| is_ours(&None)) {
            self.trouble.add(&found.path, remark);
        }
        let now = wall_clock().0.max(0) as u64 * 1_000_000;
        let mut is_complete = book.remark.is_none();
        if let Err(why) = &found.activity {
            self.trouble.add(&found.path, why);
        }
        for (place, chip) in book.chips.iter().enumerate() {
            let id = chip_of_book(chip, facts, &self.devices, &self.numbers, &self.holders);
            if !is_ours(&id) {
                continue;
            }
            match self.checked_chip(chip, id.as_ref(), facts) {
                Ok(id) => {
                    let id = id.clone();
                    let (exact, activity) = (books::exact(chip, now), self.activity_on(facts, found, place));
                    let entry = self.entry(pid, id);
                    entry.activity = activity;
                    (entry.usage, entry.source) = (exact.usage(), Some(Source::Exact));
                    entry.exact = Some(Box::new(exact));
                }
                Err(why) => {
                    is_complete = false;
                    // It is shown, without figures.
                    id.into_iter().filter(|_| !holds_one).for_each(|id| _ = self.entry(pid, id));
                    self.trouble.add(&found.path, why);
                }
            }
        }
        // The book has all that the process has, so the process has nothing on the other chips.
        for entry in self.held.get_mut(&pid).into_iter().flatten().filter(|held| is_complete && held.source.is_none()) {
            (entry.usage, entry.source) = (Usage::measured(0, 0, 0, 0, 0), Some(Source::Exact));
        }
    }

    /// The chip that a page of a book is about, or why it cannot be taken for that.
    fn checked_chip<'a>(
        &self,
        chip: &BookChip,
        id: Option<&'a DeviceId>,
        facts: &ProcessFacts,
    ) -> Result<&'a DeviceId, String> {
        let id = id.ok_or_else(|| unknown_chip(chip))?;
        self.impossible(chip, id, facts).map_or(Ok(id), Err)
    }

    /// Why a process cannot have on a chip what its book says. The figures of other processes must not suffer from it.
    fn impossible(&self, chip: &BookChip, id: &DeviceId, process: &ProcessFacts) -> Option<String> {
        let memory = &self.devices.iter().find(|device| device.id == *id)?.memory;
        let bytes = |kinds: &[MemoryKind]| {
            kinds.iter().fold(0u64, |sum, kind| sum.saturating_add(chip.counters[*kind as usize].bytes))
        };
        let most = |total: Option<Bytes>| total.map_or(u64::MAX, |total| total.0);
        if bytes(&MemoryKind::ALL) > 0 && !self.may_have_memory(chip, id, process) {
            Some(format!("reports memory on device {id}, which the process does not hold"))
        } else if bytes(&[MemoryKind::Dram, MemoryKind::Trace]) > most(memory.dram_total) {
            Some(format!("reports more DRAM than device {id} has"))
        } else if bytes(&[MemoryKind::L1, MemoryKind::L1Small]) > most(memory.l1_total) {
            Some(format!("reports more L1 than device {id} has"))
        } else {
            None
        }
    }

    fn may_have_memory(&self, chip: &BookChip, id: &DeviceId, process: &ProcessFacts) -> bool {
        // Where the driver does not list the holders of a device, no process is known to hold it.
        let holders = id.gateway().and_then(|n| self.holders.get(&n));
        let is_held = holders.is_none_or(|holders| holders.contains(&process.pid));
        // A child that inherited the device is not listed, but has the chip's region.
        let mut regions = process.maps.iter().flat_map(|maps| &maps.regions);
        let is_shared = |inode: &Inode| self.collected.shm.regions.contains_key(inode);
        is_held || regions.any(|(inode, n)| Some(*n) == chip.unique_id && is_shared(inode))
    }

    /// Takes what the driver counts for processes that keep no book.
    pub(super) fn add_counts(&mut self, accounting: &mut Accounting) {
        let known = Facts { devices: &self.devices, holders: &self.holders, processes: &self.collected.processes };
        let (fdinfo, counted) = (&self.collected.fdinfo, &self.collected.counted);
        let figures = accounting.figures(fdinfo, counted, &known, &mut self.trouble);
        for ((pid, n), Accounted { usage, percent }) in figures {
            let entry = self.entry(pid, DeviceId::Local(n));
            if let Some(percent) = percent {
                entry.activity = Activity::measured(percent, UtilizationSource::Driver);
            }
            if usage.total().is_some() && entry.source != Some(Source::Exact) {
                (entry.usage, entry.source) = (usage, Some(Source::Kernel));
            }
        }
    }

    /// Divides every region among its processes and adds up what each device has in use.
    pub(super) fn add_regions(&mut self, baselines: &mut Baselines) {
        let regions = &self.collected.shm.regions;
        let mut divisions = Divisions::new();
        baselines.keep(|inode| regions.contains_key(inode));
        let chips = chips_of(regions, &self.devices, &self.numbers, &self.holders, &self.collected.processes);
        for (inode, found) in regions {
            let Some((chip, n)) = chips.get(inode).and_then(|chip| Some((chip.clone(), chip.gateway()?))) else {
                let reason = self.why_without_chip(found);
                self.trouble.add(&found.path, reason);
                continue;
            };
            let division = self.divide(*inode, found, n, baselines);
            for (pid, usage) in division.iter().flat_map(|division| &division.by_process) {
                self.add_region_usage(*pid, chip.clone(), *usage);
            }
            divisions.entry(chip).or_default().push(division);
        }
        let mut devices = std::mem::take(&mut self.devices);
        devices.iter_mut().for_each(|device| self.add_up(device, &divisions));
        self.devices = devices;
    }

    fn why_without_chip(&self, found: &FoundRegion) -> &'static str {
        if self.devices.iter().any(|device| chip_match(device, found.number).is_some()) {
            "belongs to one of several chips, and it is not known which"
        } else if self.devices.iter().any(|device| device.serial.is_none()) {
            "belongs to no device whose serial is known now"
        } else {
            "belongs to no device of this machine"
        }
    }

    /// Divides the region of a chip that is reached through device `n`.
    fn divide(&mut self, inode: Inode, found: &FoundRegion, n: u32, baselines: &mut Baselines) -> Option<Division> {
        let (region, processes) = (found.region.as_ref()?, &self.collected.processes);
        let living = || self.holders.get(&n).into_iter().flatten().copied();
        let is_closed = |pid: &u32| processes.get(pid).is_some_and(|process| process.maps.is_err());
        let closed: Vec<u32> = living().filter(is_closed).collect();
        let is_unread = |pid: u32| !processes.contains_key(&pid);
        let nameless = self.nameless.get(&n).is_some_and(|count| *count > 0) || living().any(is_unread);
        let division = divide(inode, region, processes, &closed, nameless, &self.clock, baselines);
        division.reasons.iter().for_each(|reason| self.trouble.add(&found.path, reason));
        Some(division)
    }

    /// Adds that a process has a chip's region, and what the region says unless something better is known.
    fn add_region_usage(&mut self, pid: u32, id: DeviceId, usage: Option<Usage>) {
        let entry = self.entry(pid, id);
        // What the driver counts as one kind may be another in a region: they are not mixed.
        if let Some(usage) = usage.filter(|_| entry.source.is_none_or(|source| source == Source::Shm)) {
            entry.usage = entry.usage.plus(usage);
            entry.source = Some(Source::Shm);
        }
    }

    fn add_up(&self, device: &mut Device, divisions: &Divisions) {
        let regions = divisions.get(&device.id).map_or(&[][..], Vec::as_slice);
        let readable: Vec<&Division> = regions.iter().flatten().collect();
        // Absent where it is not known who holds the chip.
        let gateway = device.id.gateway().filter(|_| self.collected.shm.listed);
        let living = gateway.and_then(|n| self.holders.get(&n));
        let untracked = self.untracked(device, gateway, living, &readable);
        let one_reports = readable.iter().any(|division| !division.by_process.is_empty())
            || living.into_iter().flatten().any(|pid| self.reports(*pid, &device.id));
        let is_known = one_reports || (living.is_some() && untracked == 0);
        let sum = if is_known { used(&device.id, &readable, &self.held) } else { Usage::default() };
        let memory = &mut device.memory;
        let driver = device.id.index().and_then(|n| self.collected.used.get(&n));
        memory.driver = driver.copied().unwrap_or_default();
        memory.untracked_processes = if memory.driver.is_complete() { 0 } else { untracked };
        memory.count(sum);
        let all_known = regions.len() == readable.len() && living.is_some();
        memory.stale = readable.iter().map(|division| division.stale).sum::<Option<Bytes>>().filter(|_| all_known);
        let stale_l1: Bytes = readable.iter().map(|division| division.stale_l1).sum();
        memory.stale_l1 = memory.stale.and(Some(stale_l1)).filter(|bytes| bytes.0 > 0);
    }

    /// How many processes hold a chip and do not report how much they use.
    fn untracked(
        &self,
        device: &Device,
        gateway: Option<u32>,
        living: Option<&BTreeSet<u32>>,
        readable: &[&Division],
    ) -> u32 {
        let silent = living.into_iter().flatten().filter(|pid| !self.reports(**pid, &device.id)).count() as u32;
        // A child that inherited a device from an exited process has a slot of its own.
        let attached = readable.iter().flat_map(|division| division.by_process.keys());
        let heirs = attached.filter(|pid| living.is_none_or(|living| !living.contains(pid))).count() as u32;
        let nameless = gateway.and_then(|n| self.nameless.get(&n)).copied().unwrap_or(0);
        silent + nameless.saturating_sub(heirs)
    }

    /// Whether it is known what a process has on a chip.
    fn reports(&self, pid: u32, id: &DeviceId) -> bool {
        let is_remote = id.index().is_none();
        // A process that reports on its other chips has nothing on a remote one. But the driver counts for the chips that it drives,
        // and for no other.
        let reports_on_all = |source: Source| is_remote && source != Source::Kernel;
        let mut chips = self.held.get(&pid).into_iter().flatten();
        chips.any(|held| held.source.is_some_and(|source| held.id == *id || reports_on_all(source)))
    }
}

fn unknown_chip(chip: &BookChip) -> String {
    let logical = chip.device_id;
    match chip.unique_id {
        Some(number) => {
            let chip = chip_text(number);
            format!("its device {logical} (chip {chip}) cannot be matched with one device of this machine")
        }
        None => format!("it is not known which device of this machine its device {logical} is"),
    }
}

/// What all processes have on a chip, each by the best that is known of it.
fn used(id: &DeviceId, divisions: &[&Division], held: &BTreeMap<u32, Vec<Held>>) -> Usage {
    let here = |pid: &u32| held.get(pid).into_iter().flatten().find(|held| held.id == *id);
    let holders = || held.keys().filter_map(here);
    let mut used = holders().map(|held| held.usage).fold(Usage::default(), Usage::plus);
    for (owners, bytes) in divisions.iter().flat_map(|division| &division.shared) {
        let is_counted = |source: Source| source != Source::Shm;
        if owners.iter().any(|pid| !here(pid).and_then(|held| held.source).is_some_and(is_counted)) {
            used = used.plus(attribution::usage(*bytes));
        }
    }
    // Where no process reports, nothing is used; where only the driver counts, a kind that it leaves out is not known.
    let none_reports = holders().all(|held| held.source.is_none());
    if none_reports { used.plus(attribution::usage(Kinds::default())) } else { used }
}
