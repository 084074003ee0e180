//! One device's identity, sensors, clocks, heartbeat, link and firmware versions, from the driver's sysfs attributes.
//!
//! In reading order:
//!
//! - this file: [`DeviceReader`], which reads one device and keeps what the next sample needs,
//! - [`attributes`]: the table of files and the figures that they fill,
//! - `parse`: how a text becomes a value,
//! - `read_mode`: how often a figure is read,
//! - `state`: in which state the device is, and why,
//! - `pcie`: the link's limits and the counters of its traffic,
//! - `traffic`, `totals`: rates and sums from these counters, and energy from power.

pub(crate) mod attributes;
mod parse;
mod pcie;
mod read_mode;
mod state;
mod totals;
mod traffic;

pub use read_mode::FigureFilter;
pub(crate) use read_mode::{FEW, ReadMode};

use crate::device_memory::DeviceMemory;
use crate::devices::{self, DeviceLink};
use crate::dir::{Dir, Trouble, decimal};
use crate::pids::HolderList;
use crate::process_folders::ProcessFolders;
use attributes::{ATTRIBUTES, Attribute, Folder};
use model::figure::device::FIRMWARE_BUNDLE;
use model::figure::{Freshness, Section};
use model::{Arch, Board, Capacity, Device, DeviceId, DriverUsed, Memory, State, Version};
use rustix::io::Errno;
use state::Heartbeat;
use std::cell::OnceCell;
use std::time::Instant;
use totals::Totals;
use traffic::TrafficReader;

/// One device, and what is remembered of it between samples.
pub(crate) struct DeviceReader {
    link: DeviceLink,
    pub class: Dir,
    /// The folder of its PCI function. Without a next sample it is opened at its first use, if there is one.
    pci: OnceCell<Dir>,
    hwmon: Option<Dir>,
    /// Who holds it.
    pub holders: HolderList,
    /// What the driver counts for each of them.
    pub processes: ProcessFolders,
    memory: DeviceMemory,
    /// What was read once, and nothing else: every sample begins with it. Its texts are shared, not copied.
    fixed: Device,
    /// The last reading: what else is not due is taken from here.
    known: Option<Device>,
    /// When what is read often was read.
    often_read: Option<Instant>,
    /// When what changes seldom was read.
    seldom_read: Option<Instant>,
    /// Whether something that stays the same could not be read.
    fixed_failed: bool,
    heartbeat: Heartbeat,
    traffic: TrafficReader,
    totals: Totals,
}

/// What one reading of a device gave.
pub(crate) struct Reading {
    pub device: Device,
    pub trouble: Trouble,
}

impl DeviceReader {
    /// Opens the folders of device `n`. Its totals continue those of `before`, the reader of the old folders at its address.
    pub fn open(all: &Dir, n: u32, link: &DeviceLink, before: Option<&DeviceReader>) -> Result<DeviceReader, Errno> {
        let name = format!("tenstorrent!{n}");
        let class = all.open_dir(&name)?;
        // Since the devices were listed the number may have become another one's. Then they are listed again.
        if before.is_some() && devices::linked_address(all, &name).as_ref() != Some(&link.address) {
            return Err(Errno::NODEV);
        }
        let hwmon = find_hwmon(&class);
        let pci = if class.keeps_files() || hwmon.is_none() { class.open_dir(PCI)?.into() } else { OnceCell::new() };
        let mut totals = before.map(|reader| reader.totals).unwrap_or_default();
        totals.interrupt();
        Ok(DeviceReader {
            link: link.clone(),
            hwmon,
            class,
            pci,
            holders: HolderList::default(),
            processes: ProcessFolders::default(),
            memory: DeviceMemory::default(),
            fixed: Device { pci_address: Some(link.address.clone()), ..Device::new(DeviceId::Local(n)) },
            known: None,
            often_read: None,
            seldom_read: None,
            fixed_failed: false,
            heartbeat: Heartbeat::default(),
            traffic: before.map(|reader| reader.traffic.reopened()).unwrap_or_default(),
            totals,
        })
    }

    /// Whether this is still the device with that ordinal, and its folder the one to read.
    pub fn is_for(&self, n: u32, link: &DeviceLink, mode: ReadMode) -> bool {
        self.fixed.id == DeviceId::Local(n)
            && self.link == *link
            && !(self.may_be_removed(mode) && self.class.is_removed())
    }

    /// Whether to check if its folders are still there. Reads of the driver's files fail then, those of a simulated machine do not.
    fn may_be_removed(&self, mode: ReadMode) -> bool {
        !mode.relaxed || self.is_seldom_due(mode)
    }

    fn is_seldom_due(&self, mode: ReadMode) -> bool {
        self.seldom_read.is_none_or(|when| when.elapsed() >= mode.seldom_period())
    }

    /// The totals continue those of the reader that this chip had at another address.
    pub fn continue_totals(&mut self, before: &DeviceReader, device: &mut Device) {
        self.totals.add_earlier(&before.totals);
        self.totals.show(device);
    }

    /// Its chip, if it answers.
    pub fn arch(&self) -> Option<Arch> {
        self.known.as_ref().filter(|known| known.state == State::Ok)?.arch
    }

    /// Whether the driver has no folder that counts its memory, as far as these were looked for.
    pub fn is_uncounted(&self) -> bool {
        self.processes.is_missing() && self.memory.is_missing()
    }

    /// What the driver counts as used on the device, where it does.
    pub fn used(&mut self, trouble: &mut Trouble) -> DriverUsed {
        let unknown = Memory::default();
        let memory = self.known.as_ref().map_or(&unknown, |known| &known.memory);
        self.memory.read(&self.class, memory, trouble)
    }

    /// Reads everything that is due, and keeps the rest.
    pub fn read(&mut self, mode: ReadMode) -> Reading {
        let mut trouble = Trouble::default();
        let mut device = self.fixed.clone();
        let known = self.known.take();
        if known.is_some() && self.may_be_removed(mode) {
            self.hwmon.take_if(|hwmon| hwmon.is_removed());
        }
        if known.is_some() && self.is_seldom_due(mode) || known.as_ref().is_some_and(|known| known.state != State::Ok) {
            // Attributes come when the firmware publishes its telemetry, which may be long after the device.
            let folders = ATTRIBUTES.iter().filter_map(|row| Some((self.folder(row)?, row.file)));
            folders.for_each(|(folder, file)| folder.look_again(file));
        }
        self.read_changing(&mut device, known.as_ref(), mode, &mut trouble);
        let when = Instant::now();
        if !state::is_unresponsive(&trouble) {
            self.read_due(&mut device, known.as_ref(), mode, &mut trouble);
        }
        let heartbeat_stopped = self.heartbeat.take(&mut device, Instant::now());
        device.state = state::decide(&device, &trouble, heartbeat_stopped);
        if let Some(reason) = state::reason(device.state, &trouble) {
            if state::is_unresponsive(&trouble) {
                // One reason says it all.
                trouble.faults.clear();
            }
            trouble.add(self.class.path(), reason);
        }
        if self.totals.begin(device.serial_number()) {
            self.traffic = TrafficReader::default();
        }
        if mode.rates {
            self.traffic.read(&self.class, &mut device, mode, &mut self.totals, &mut trouble);
            self.totals.add_power(device.power.filter(|_| device.state == State::Ok), when);
        }
        if let Some(trips) = device.thermal_trips.filter(|_| device.state == State::Ok) {
            self.totals.add_trips(trips);
        }
        self.finish(device, trouble, known)
    }

    /// Reads what changes all the time.
    fn read_changing(&mut self, device: &mut Device, known: Option<&Device>, mode: ReadMode, trouble: &mut Trouble) {
        let is_due = self.often_read.is_none_or(|when| when.elapsed() >= mode.often_period());
        let kept = known.filter(|known| !is_due && known.state == State::Ok);
        let (often, always) = (Freshness::Often, Freshness::Sample);
        if let Some(known) = kept {
            rows(mode, |freshness| freshness == often).for_each(|row| row.figure.copy(known, device));
            self.read_rows(rows(mode, |freshness| freshness == always), device, trouble);
            // What state it is in is decided from all readings, and only these say why.
            if state::is_clear(trouble) || state::is_unresponsive(trouble) {
                return;
            }
            self.read_rows(rows(mode, |freshness| freshness == often), device, trouble);
        } else {
            self.often_read = Some(Instant::now());
            self.read_rows(rows(mode, |freshness| freshness == often || freshness == always), device, trouble);
        }
        if state::is_unresponsive(trouble) {
            return;
        }
        // The node appears when the firmware is up, which on Wormhole can be minutes after the device, and may be replaced.
        if device.asic_temp.is_none() && device.power.is_none() && trouble.no_data + trouble.all_ones == 0 {
            self.hwmon = find_hwmon(&self.class);
            let sensors = rows(mode, |freshness| freshness == always).filter(|row| row.folder == Folder::Hwmon);
            sensors.for_each(|row| self.read_row(row, device, trouble));
        }
        if trouble.values + trouble.no_data == 0 {
            trouble.bus_is_dead = self.bus_is_dead();
        }
    }

    /// Stops when the chip does not respond: each read may stall.
    fn read_rows(&self, rows: impl Iterator<Item = &'static Attribute>, device: &mut Device, trouble: &mut Trouble) {
        for row in rows {
            self.read_row(row, device, trouble);
            if trouble.all_ones == 1 && trouble.values == 0 {
                trouble.bus_is_dead = self.bus_is_dead();
            }
            if state::is_unresponsive(trouble) {
                return;
            }
        }
    }

    /// Whether the PCI config space reads all-ones, from the vendor's id at its start. It answers without the firmware.
    fn bus_is_dead(&self) -> bool {
        let is_dead = |pci: &Dir| pci.read_start("config", &mut [0; 2]).is_ok_and(|vendor| vendor == [0xFF; 2]);
        self.pci().is_some_and(is_dead)
    }

    /// The folder of its PCI function.
    fn pci(&self) -> Option<&Dir> {
        if self.pci.get().is_none() {
            _ = self.pci.set(self.class.open_dir(PCI).ok()?);
        }
        self.pci.get()
    }

    /// Reads the other attributes if they are due, which all are after a reset.
    fn read_due(&mut self, device: &mut Device, known: Option<&Device>, mode: ReadMode, trouble: &mut Trouble) {
        let unchanged = known.filter(|known| state::is_unchanged(known, device, trouble));
        if known.is_some() && unchanged.is_none() {
            // A reset may have left an old node behind a new one.
            self.hwmon = find_hwmon(&self.class);
        }
        let is_due = self.fixed_failed || self.is_seldom_due(mode);
        self.read_seldom(device, unchanged, mode, trouble);
        if unchanged.is_none() || is_due {
            self.read_fixed(device, unchanged.is_some(), mode, trouble);
        }
    }

    /// Reads what changes seldom. What is not due is as it was known.
    fn read_seldom(&mut self, device: &mut Device, unchanged: Option<&Device>, mode: ReadMode, trouble: &mut Trouble) {
        let is_due = unchanged.is_none() || device.aiclk.is_none() || self.is_seldom_due(mode);
        let mut has_failed = false;
        for row in rows(mode, |freshness| matches!(freshness, Freshness::Relaxed | Freshness::Seldom)) {
            let always = mode.reads_always(row.figure.freshness);
            match unchanged.filter(|_| !always && !is_due) {
                Some(known) => row.figure.copy(known, device),
                None => {
                    let faults = trouble.faults.len();
                    self.read_row(row, device, trouble);
                    has_failed |= !always && trouble.faults.len() > faults;
                }
            }
        }
        if is_due {
            // What went wrong is tried, and reported, every time.
            self.seldom_read = (!has_failed).then(Instant::now);
        }
    }

    /// Reads what stays the same until a reset, or what is `missing` of it: attributes may come one after the other while a chip
    /// boots. The next samples begin with it.
    fn read_fixed(&mut self, device: &mut Device, missing: bool, mode: ReadMode, trouble: &mut Trouble) {
        let faults = trouble.faults.len();
        for row in rows(mode, |freshness| freshness == Freshness::Fixed) {
            if !missing || row.figure.value(&self.fixed).is_none() {
                self.read_row(row, device, trouble);
                row.figure.copy(device, &mut self.fixed);
            }
        }
        let is_open = capacity(device).is_some_and(|capacity| capacity.l1.is_none());
        if let Some(row) = mode.unwanted(&FIRMWARE_BUNDLE).filter(|_| is_open) {
            self.read_row(row, device, trouble);
        }
        // What went wrong is tried, and reported, every time.
        self.fixed_failed = trouble.faults.len() > faults;
    }

    fn read_row(&self, row: &Attribute, device: &mut Device, trouble: &mut Trouble) {
        row.read(self.folder(row), device, trouble);
    }

    fn folder(&self, row: &Attribute) -> Option<&Dir> {
        match row.folder {
            Folder::Class => Some(&self.class),
            Folder::Hwmon => self.hwmon.as_ref(),
            Folder::Pci => self.pci(),
        }
    }

    /// A device that cannot answer keeps the identity that it had, and shows no readings that are not its own.
    fn finish(&mut self, mut device: Device, trouble: Trouble, known: Option<Device>) -> Reading {
        if state::is_unresponsive(&trouble) {
            device = Device { state: device.state, pci_address: device.pci_address, ..Device::new(device.id) };
        }
        if device.state != State::Ok {
            if device.arch.is_none() {
                device.arch = self.pci().and_then(|pci| devices::pci_facts(pci, &mut Trouble::default()).arch);
            }
            if let Some(known) = &known {
                keep_identity(known, &mut device);
            }
        }
        let capacity = capacity(&device);
        device.memory.dram_total = capacity.map(|capacity| capacity.dram);
        device.memory.l1_total = capacity.and_then(|capacity| capacity.l1);
        self.totals.show(&mut device);
        self.known = Some(device.clone());
        Reading { device, trouble }
    }
}

/// How much memory a device has, by its board and, of some boards, by its firmware.
fn capacity(device: &Device) -> Option<Capacity> {
    let bundle = device.firmware.bundle.as_deref().and_then(Version::parse);
    device.board.as_deref().and_then(Board::named).and_then(|board| board.capacity(bundle))
}

/// The folder of a device's PCI function, in that of its class.
const PCI: &str = "device";

/// The hwmon node of a device. Old drivers leave an unused one behind at each reset: the newest counts.
fn find_hwmon(class: &Dir) -> Option<Dir> {
    let nodes = class.open_to_list("device/hwmon").ok()?;
    let mut newest = None;
    let listed = nodes.list_opened(|name, _| {
        newest = newest.max(name.to_str().and_then(|name| name.strip_prefix("hwmon")).and_then(decimal));
    });
    listed.ok()?;
    nodes.open_dir(format!("hwmon{}", newest?)).ok()
}

/// The attributes of wanted figures that are read this often.
fn rows(mode: ReadMode, is_due: impl Fn(Freshness) -> bool) -> impl Iterator<Item = &'static Attribute> {
    mode.attributes().filter(move |row| is_due(row.figure.freshness))
}

/// Keeps what the device is called, and its firmware.
fn keep_identity(known: &Device, device: &mut Device) {
    let is_identity = |row: &&Attribute| matches!(row.figure.section, Section::Identity | Section::Firmware);
    for row in ATTRIBUTES.iter().filter(is_identity).filter(|row| row.figure.value(known).is_some()) {
        row.figure.copy(known, device);
    }
}
