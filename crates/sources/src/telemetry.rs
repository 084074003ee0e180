//! One device's identity, clocks, heartbeat and firmware versions from the driver's sysfs attributes.
//!
//! Reads `/sys/class/tenstorrent/tenstorrent!<N>/tt_*`: one decimal, hex or dotted value a file, clocks in MHz. The driver
//! hides an attribute, or answers `ENODATA`, when the firmware lacks the telemetry tag.

use crate::devices::Link;
use crate::dir::{Dir, Trouble};
use crate::kernel_processes::Processes;
use crate::pids::{self, Holders};
use crate::{devices, hwmon, pcie};
use model::{
    Board, BytesPerSecond, Counters, Device, DeviceId, Megahertz, State, Transferred, Usage, Version, traffic,
};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A heartbeat that stands still for so long has stopped. It moves ten times a second.
const STILL: Duration = Duration::from_secs(3);

/// What changes once in a while is read anew after so long: the chip's other clocks, its link, how often it got too hot. Where
/// there are many devices, whoever is calm waits twice as long.
const SELDOM: Duration = Duration::from_secs(5);
const SELDOM_OF_MANY: Duration = Duration::from_secs(10);

/// Over so long a rate is taken, for whoever is calm: where there are few devices, and where there are many. A little less than
/// two and four seconds, which no sample is late for.
const RATE: Duration = Duration::from_millis(1900);
const RATE_OF_MANY: Duration = Duration::from_millis(3900);

/// More are many.
const FEW: usize = 8;

/// How to read a device.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct How {
    pub rates: bool,
    pub calm: bool,
    /// How many devices there are.
    pub devices: usize,
}

impl How {
    /// After how long what changes seldom is read again.
    fn seldom(self) -> Duration {
        if self.calm && self.devices > FEW { SELDOM_OF_MANY } else { SELDOM }
    }

    /// Over how long a rate is taken at the least.
    fn rate(self) -> Duration {
        match self {
            How { calm: false, .. } => Duration::ZERO,
            How { devices: ..=FEW, .. } => RATE,
            _ => RATE_OF_MANY,
        }
    }
}

/// One device, and what is remembered of it between samples.
pub(crate) struct Chip {
    n: u32,
    link: Link,
    class: Dir,
    pci: Dir,
    hwmon: Option<Dir>,
    counters: Option<Dir>,
    /// The driver's folder with the list of holders.
    list: Option<Dir>,
    processes: Processes,
    /// The last reading; what never changes is taken from here instead of being read again.
    known: Option<Device>,
    /// When what changes seldom was read.
    seldom: Option<Instant>,
    beat: Option<(u32, Instant)>,
    earlier: Option<(Counters, Instant)>,
    /// Of the last time that the counters were read: to the device, and from it.
    rates: (Option<BytesPerSecond>, Option<BytesPerSecond>),
    totals: Totals,
}

/// Sums that go on whatever happens to the chip's own counters.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    transferred: Transferred,
    /// The last counters that were read, and whether the device was well ever since.
    counted: Option<(Counters, Instant, bool)>,
    /// The last count of thermal trips, and their sum.
    trips: Option<(u32, u64)>,
}

impl Totals {
    fn add_traffic(&mut self, now: Option<(Counters, Instant)>, device: &Device) {
        let (Some((counters, when)), Some(arch)) = (now, device.arch) else {
            return self.is_broken();
        };
        if let Some((earlier, then, unbroken)) = self.counted {
            let seconds = (when - then).as_secs_f64();
            self.transferred.add(&earlier, &counters, seconds, unbroken, arch, &device.pcie);
        }
        self.counted = Some((counters, when, true));
    }

    /// The device was not well, or away.
    fn is_broken(&mut self) {
        self.counted = self.counted.map(|(counters, when, _)| (counters, when, false));
    }

    fn add_trips(&mut self, trips: u32) {
        let (last, sum) = self.trips.unwrap_or_default();
        self.trips = Some((trips, sum + u64::from(trips.checked_sub(last).unwrap_or(trips))));
    }

    fn show(&self, device: &mut Device) {
        device.thermal_trips_total = self.trips.map(|(_, sum)| sum);
        let transferred = self.counted.map(|_| self.transferred);
        device.pcie.host_to_device_total = transferred.map(|sum| sum.host_to_device);
        device.pcie.device_to_host_total = transferred.map(|sum| sum.device_to_host);
    }
}

/// What one reading of a device gave.
pub(crate) struct Reading {
    pub device: Device,
    pub trouble: Trouble,
}

impl Chip {
    /// `before` is what the folder that stood here until now is remembered by.
    pub fn open(all: &Dir, n: u32, link: &Link, before: Option<&Chip>) -> Result<Chip, Errno> {
        let class = all.open_dir(format!("tenstorrent!{n}"))?;
        let pci = class.open_dir("device")?;
        let hwmon = hwmon::find(&pci);
        let (counters, list, known, seldom, beat, earlier) = (None, None, None, None, None, None);
        let processes = Processes::default();
        let mut totals =
            before.filter(|chip| chip.link.address == link.address).map(|chip| chip.totals).unwrap_or_default();
        totals.is_broken();
        Ok(Chip {
            n,
            link: link.clone(),
            class,
            pci,
            hwmon,
            counters,
            list,
            processes,
            known,
            seldom,
            beat,
            earlier,
            rates: (None, None),
            totals,
        })
    }

    /// Whether this is still the device with that ordinal, and its folder the one to look in.
    pub fn is(&self, link: &Link, how: How) -> bool {
        self.link == *link && !(self.may_be_gone(how) && self.class.is_removed())
    }

    /// Whether to look if its folders are still there. The driver's files tell by themselves, those of a simulated machine do not.
    fn may_be_gone(&self, how: How) -> bool {
        !how.calm || self.is_time(how)
    }

    /// Whether what changes seldom is to be read.
    fn is_time(&self, how: How) -> bool {
        self.seldom.is_none_or(|when| when.elapsed() >= how.seldom())
    }

    /// Who holds it. `None` when the driver does not tell.
    pub fn holders(&mut self, lists: &Dir, trouble: &mut Trouble) -> Option<Holders> {
        let mut quiet = Trouble::default();
        let known = self.list.take().and_then(|list| Some((pids::listed(&list, &mut quiet)?, list)));
        // A folder that does not answer may be that of a driver that was unloaded since.
        let (holders, list) = match known {
            Some(known) => {
                trouble.faults.append(&mut quiet.faults);
                known
            }
            None => {
                let list = pids::list(lists, self.n, trouble)?;
                (pids::listed(&list, trouble)?, list)
            }
        };
        self.list = Some(list);
        Some(holders)
    }

    /// What the driver counts for each of the holders, where it does.
    pub fn counted(&mut self, holders: &Holders, trouble: &mut Trouble) -> BTreeMap<u32, Usage> {
        self.processes.read(&self.class, &holders.pids, trouble)
    }

    pub fn read(&mut self, how: How) -> Reading {
        let mut trouble = Trouble::default();
        let mut device = Device::new(DeviceId::Local(self.n));
        device.pci_address = Some(self.link.address.clone());
        // The clock comes first: on a dead chip each read may stall, and one tells.
        device.aiclk = self.clock("tt_aiclk", &mut trouble);
        let known = self.known.take();
        if !trouble.dead {
            self.read_changing(&mut device, how, &mut trouble);
            let same = known.as_ref().filter(|known| still_true(known, &device, &trouble));
            match same.filter(|_| device.aiclk.is_some() && !self.is_time(how)) {
                Some(known) => keep_seldom(&mut device, known, how),
                None => self.read_seldom(&mut device, how, &mut trouble),
            }
            match same {
                Some(known) => keep_fixed(&mut device, known),
                None => {
                    // A reset may have left an old node behind a new one.
                    if known.is_some() {
                        self.hwmon = hwmon::find(&self.pci);
                    }
                    self.read_fixed(&mut device, &mut trouble);
                }
            }
        }
        let now = Instant::now();
        device.state = self.state(&device, &trouble, now);
        self.explain(&device, &mut trouble);
        if how.rates {
            self.read_traffic(&mut device, how, &mut trouble, now);
        }
        if let Some(trips) = device.thermal_trips.filter(|_| device.state == State::Ok) {
            self.totals.add_trips(trips);
        }
        self.finish(device, trouble, known)
    }

    fn read_changing(&mut self, device: &mut Device, how: How, trouble: &mut Trouble) {
        device.heartbeat = self.class.number("tt_heartbeat", None, 0..=u64::from(u32::MAX), trouble).map(|n| n as u32);
        if let Some(hwmon) = self.hwmon.as_ref().filter(|hwmon| !(self.may_be_gone(how) && hwmon.is_removed())) {
            hwmon::readings(hwmon, device, trouble);
        }
        // The node appears when the firmware is up, which on Wormhole can be minutes after the device, and may be replaced.
        if device.asic_temp.is_none() && device.power.is_none() && trouble.no_data == 0 && !trouble.dead {
            self.hwmon = hwmon::find(&self.pci);
            if let Some(hwmon) = &self.hwmon {
                hwmon::readings(hwmon, device, trouble);
            }
        }
        if let Some(hwmon) = self.hwmon.as_ref().filter(|_| !how.calm) {
            hwmon::quiet(hwmon, device, trouble);
        }
    }

    fn read_seldom(&mut self, device: &mut Device, how: How, trouble: &mut Trouble) {
        let faults = trouble.faults.len();
        if let Some(hwmon) = self.hwmon.as_ref().filter(|_| how.calm) {
            hwmon::quiet(hwmon, device, trouble);
        }
        device.axiclk = self.clock("tt_axiclk", trouble);
        device.arcclk = self.clock("tt_arcclk", trouble);
        device.thermal_trips =
            self.class.number("tt_therm_trip_count", Some(ALL_ONES), 0..=ALL_ONES, trouble).map(|n| n as u32);
        pcie::current(&self.pci, &mut device.pcie, trouble);
        // What went wrong is tried, and told, every time.
        self.seldom = (trouble.faults.len() == faults).then(Instant::now);
    }

    fn read_fixed(&mut self, device: &mut Device, trouble: &mut Trouble) {
        let class = &self.class;
        device.board = board(class, trouble);
        // The name of a known board spares asking the PCI function.
        let known = device.board.as_deref().and_then(Board::named).map(Board::arch);
        device.arch = known.or_else(|| devices::pci_facts(&self.pci, trouble).arch);
        // Minus one says that the platform does not tell.
        let mut buffer = [0; 256];
        device.numa_node = self.pci.text("numa_node", &mut buffer, trouble).and_then(|text| text.parse().ok());
        device.serial = hex_id(class, "tt_serial", trouble);
        device.asic_id = hex_id(class, "tt_asic_id", trouble);
        let firmware = &mut device.firmware;
        firmware.bundle = version(class, "tt_fw_bundle_ver", trouble);
        firmware.dm_app = version(class, "tt_m3app_fw_ver", trouble);
        if device.arch == Some(model::Arch::Wormhole) {
            firmware.dm_bootloader = version(class, "tt_m3bl_fw_ver", trouble);
            firmware.arc = version(class, "tt_arc_fw_ver", trouble);
            firmware.ethernet = version(class, "tt_eth_fw_ver", trouble);
            firmware.tt_flash = version(class, "tt_ttflash_ver", trouble);
        }
        if let Some(hwmon) = &self.hwmon {
            hwmon::limits(hwmon, device, trouble);
        }
        pcie::best(&self.pci, &mut device.pcie, trouble);
    }

    fn read_traffic(&mut self, device: &mut Device, how: How, trouble: &mut Trouble, now: Instant) {
        // Twelve of the twenty files that are read at every sample are counters: a rate over two seconds is enough to look at.
        let is_recent = |(_, then): &(Counters, Instant)| now - *then < how.rate();
        if device.state == State::Ok && self.earlier.as_ref().is_some_and(is_recent) {
            (device.pcie.host_to_device, device.pcie.device_to_host) = self.rates;
            return;
        }
        if self.counters.is_none() {
            self.counters = self.class.open_dir("pcie_perf_counters").ok();
        }
        // During a reset the counters answer garbage without an error.
        let counters = match &self.counters {
            Some(folder) if device.state == State::Ok => pcie::counters(folder, device.heartbeat, trouble),
            _ => None,
        };
        let later = counters.map(|counters| (counters, now));
        self.totals.add_traffic(later, device);
        if let (Some((earlier, then)), Some((later, _)), Some(arch)) = (&self.earlier, &later, device.arch) {
            let traffic = traffic(earlier, later, (now - *then).as_secs_f64(), arch, &device.pcie);
            device.pcie.host_to_device = traffic.host_to_device;
            device.pcie.device_to_host = traffic.device_to_host;
        }
        self.rates = (device.pcie.host_to_device, device.pcie.device_to_host);
        self.earlier = later;
    }

    fn state(&mut self, device: &Device, trouble: &Trouble, now: Instant) -> State {
        let still_since = match (self.beat, device.heartbeat) {
            (Some((value, since)), Some(beat)) if value == beat => Some(since),
            (_, beat) => {
                self.beat = beat.map(|beat| (beat, now));
                None
            }
        };
        match () {
            () if trouble.gone => State::Lost,
            () if trouble.dead => State::Hung,
            // Not even the link answers: the folder is that of a device that was removed.
            () if trouble.answers + trouble.no_data == 0 => State::Lost,
            // A single attribute may lack its tag; a reset silences the clocks and sensors all at once.
            () if trouble.no_data > 0 && device.aiclk.is_none() && device.asic_temp.is_none() => State::Resetting,
            () if still_since.is_some_and(|since| now - since >= STILL) => State::Hung,
            () => State::Ok,
        }
    }

    /// Why a device is not ok.
    fn explain(&self, device: &Device, trouble: &mut Trouble) {
        let reason = match device.state {
            State::Hung if trouble.dead => "answers all-ones: the chip is not reachable over PCIe",
            State::Hung => "its heartbeat has not moved for three seconds: the firmware has stopped",
            State::Resetting => "a reset is under way: the driver has no data",
            State::Lost => "was removed while it was read",
            _ => return,
        };
        trouble.add(self.class.path(), reason);
    }

    /// A device that cannot answer keeps the identity that it had, and shows no readings that are not its own.
    fn finish(&mut self, mut device: Device, trouble: Trouble, known: Option<Device>) -> Reading {
        if trouble.dead {
            device = Device { state: device.state, pci_address: device.pci_address, ..Device::new(device.id) };
        }
        if device.state != State::Ok {
            if device.arch.is_none() {
                device.arch = devices::pci_facts(&self.pci, &mut Trouble::default()).arch;
            }
            if let Some(known) = known {
                keep_identity(&mut device, &known);
            }
        }
        let bundle = device.firmware.bundle.as_deref().and_then(Version::parse);
        let capacity = device.board.as_deref().and_then(Board::named).and_then(|board| board.capacity(bundle));
        device.memory.dram_total = capacity.map(|capacity| capacity.dram);
        device.memory.l1_total = capacity.and_then(|capacity| capacity.l1);
        self.totals.show(&mut device);
        self.known = Some(device.clone());
        Reading { device, trouble }
    }

    fn clock(&self, name: &str, trouble: &mut Trouble) -> Option<Megahertz> {
        self.class.number(name, Some(ALL_ONES), 0..=9_999, trouble).map(|mhz| Megahertz(mhz as u32))
    }
}

const ALL_ONES: u64 = u32::MAX as u64;

/// Whether the fixed attributes read before still hold: they may change with a reset, and come late on a booting chip.
fn still_true(known: &Device, now: &Device, trouble: &Trouble) -> bool {
    let restarted = matches!((known.heartbeat, now.heartbeat), (Some(then), Some(now)) if now < then);
    let limits_came = known.asic_temp_max.is_some() || now.asic_temp.is_none();
    known.state == State::Ok
        && known.serial.is_some()
        && limits_came
        && trouble.no_data == 0
        && !trouble.gone
        && !restarted
}

fn keep_seldom(device: &mut Device, known: &Device, how: How) {
    if how.calm {
        device.power_max = known.power_max;
        device.vcore = known.vcore;
        device.current = known.current;
    }
    device.axiclk = known.axiclk;
    device.arcclk = known.arcclk;
    device.thermal_trips = known.thermal_trips;
    device.pcie.generation = known.pcie.generation;
    device.pcie.width = known.pcie.width;
}

fn keep_fixed(device: &mut Device, known: &Device) {
    device.asic_temp_max = known.asic_temp_max;
    device.vcore_max = known.vcore_max;
    device.current_max = known.current_max;
    device.pcie.max_generation = known.pcie.max_generation;
    device.pcie.max_width = known.pcie.max_width;
    keep_identity(device, known);
}

fn keep_identity(device: &mut Device, known: &Device) {
    device.arch = known.arch.or(device.arch);
    device.numa_node = known.numa_node.or(device.numa_node);
    device.board = known.board.clone().or(device.board.take());
    device.serial = known.serial.clone().or(device.serial.take());
    device.asic_id = known.asic_id.clone().or(device.asic_id.take());
    device.firmware.clone_from(&known.firmware);
}

fn board(class: &Dir, trouble: &mut Trouble) -> Option<Arc<str>> {
    let mut buffer = [0; 256];
    let text = class.text("tt_card_type", &mut buffer, trouble)?;
    if text.len() <= 32 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        return (text != "unknown").then(|| text.into());
    }
    trouble.add(&class.path_of("tt_card_type"), format_args!("not a board name: {text:?}"));
    None
}

fn hex_id(class: &Dir, name: &str, trouble: &mut Trouble) -> Option<Arc<str>> {
    let mut buffer = [0; 256];
    let text = class.text(name, &mut buffer, trouble)?;
    if text.len() != 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        trouble.add(&class.path_of(name), format_args!("not 16 hex digits: {text:?}"));
        return None;
    }
    if text.bytes().all(|b| b.eq_ignore_ascii_case(&b'F')) {
        trouble.dead = true;
        return None;
    }
    Some(text.to_ascii_uppercase().into())
}

fn version(class: &Dir, name: &str, trouble: &mut Trouble) -> Option<Arc<str>> {
    let mut buffer = [0; 256];
    let text = class.text(name, &mut buffer, trouble)?;
    if Version::parse(text).is_none() {
        if text.starts_with("255.") {
            trouble.dead = true;
        } else {
            trouble.add(&class.path_of(name), format_args!("not a version: {text:?}"));
        }
        return None;
    }
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calm_read_less_often_and_with_many_devices_less_still() {
        let how = |calm, devices| How { rates: true, calm, devices };
        let seconds = |how: How| (how.rate().as_secs_f64().ceil(), how.seldom().as_secs());
        assert_eq!(seconds(how(false, 32)), (0.0, 5));
        assert_eq!(seconds(how(true, 8)), (2.0, 5));
        assert_eq!(seconds(how(true, 9)), (4.0, 10));
    }
}
