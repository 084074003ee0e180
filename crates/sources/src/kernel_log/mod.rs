//! What the kernel's log says about our devices.
//!
//! Reads `/dev/kmsg` from its end on, and only where that was asked for: `--kernel-log`, or `kernel_log = true` of the service. The
//! kernel gives one record a read, and none is waited for. What was not read when it is overwritten is lost, and counted.
//!
//! In reading order: this file (which bytes are read), `record` (what they are), `meaning` (which are about our devices, and what they
//! mean), `out_of_memory` (processes that the kernel killed), `groups` (which are one message).

mod groups;
pub mod meaning;
mod out_of_memory;
pub mod record;

use crate::clock::MonotonicClock;
use crate::devices::is_pci_address;
use crate::dir::{Dir, Root};
use groups::Groups;
use meaning::{PciPlace, PciPlaces};
use model::{DeviceId, Fault, PciAddress, Snapshot};
use out_of_memory::KnownHolders;
use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The kernel's log, and what is known of it.
pub struct KernelLog {
    root: Root,
    file: Option<LogFile>,
    groups: Groups,
    known: KnownParts,
}

/// What lines may be about.
#[derive(Default)]
struct KnownParts {
    /// Devices that were there once, by their address.
    places: PciPlaces,
    holders: KnownHolders,
}

struct LogFile {
    file: OwnedFd,
    /// Whether each read gives one record, as the kernel does it. A plain file or a pipe is for tests.
    is_kernel: bool,
    /// The number of the last record.
    last: Option<u64>,
    /// What was read and is not whole.
    rest: Vec<u8>,
    /// The line that is read now is too long.
    skips_line: bool,
}

/// With one sample so much is read at the most, and for so long.
const MOST_BYTES: usize = 1 << 20;
const LONGEST_READ: Duration = Duration::from_millis(20);
const NAME: &str = "kmsg";

impl KernelLog {
    /// The log of the machine at `root`, from now on.
    pub fn new(root: Root) -> KernelLog {
        KernelLog { root, file: None, groups: Groups::default(), known: KnownParts::default() }
    }

    /// Reads what was written since, and puts it into a snapshot that was taken just now.
    pub fn read(&mut self, snapshot: &mut Snapshot) {
        self.know(snapshot);
        if self.file.is_none() {
            match self.open() {
                Ok(file) => self.file = Some(file),
                Err(error) => snapshot.faults.push(Fault::new(self.path(), refusal(error))),
            }
        }
        if let Some(file) = &mut self.file {
            if let Err(error) = file.read(&self.known, &mut self.groups) {
                snapshot.faults.push(Fault::new(self.path(), crate::dir::reason(error)));
                self.file = None;
            }
        }
        self.groups.note_holders(snapshot);
        snapshot.kernel_log = Some(self.groups.report(snapshot.taken_at));
    }

    fn path(&self) -> String {
        self.root.dev.join(NAME).to_string_lossy().into_owned()
    }

    fn open(&self) -> rustix::io::Result<LogFile> {
        let file = self.root.open(&self.root.dev)?.open_file(NAME)?;
        let is_kernel = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::CharacterDevice;
        if is_kernel {
            rustix::fs::seek(&file, SeekFrom::End(0))?;
        }
        Ok(LogFile { file, is_kernel, last: None, rest: Vec::new(), skips_line: false })
    }

    /// Remembers where the devices are, and who holds them. One that was removed is still named by the lines about its removal.
    fn know(&mut self, snapshot: &Snapshot) {
        self.known.holders.know(snapshot);
        let here = |id: &DeviceId| snapshot.devices.iter().any(|device| device.id == *id);
        for place in &mut self.known.places.0 {
            let is_at = |device: &&model::Device| device.pci_address.as_ref() == Some(&place.address);
            match snapshot.devices.iter().filter(|device| device.id.gateway().is_some()).find(is_at) {
                Some(device) if matches!(device.id, DeviceId::Local(_)) => place.id = device.id.clone(),
                Some(_) => {}
                // Its number may be another device's.
                None if here(&place.id) => place.id = DeviceId::NoDriver(place.address.clone()),
                None => {}
            }
        }
        for device in snapshot.devices.iter().filter(|device| !matches!(device.id, DeviceId::Remote(_))) {
            let Some(address) = &device.pci_address else { continue };
            if !self.known.places.0.iter().any(|place| place.address == *address) {
                let bridges = self.root.open(&self.root.sys.join("bus/pci/devices"));
                let bridges = bridges.map(|bus| bridges_above(&bus, address)).unwrap_or_default();
                self.known.places.0.push(PciPlace { id: device.id.clone(), address: address.clone(), bridges });
            }
        }
    }
}

/// The bridges on the way to a function: `…/pci0000:00/0000:00:01.0/0000:01:00.0`.
fn bridges_above(bus: &Dir, address: &PciAddress) -> Vec<PciAddress> {
    let link = bus.read_link(&*address.0).unwrap_or_default();
    let parts = link.split(|&b| b == b'/').filter_map(|part| std::str::from_utf8(part).ok());
    parts.filter(|part| is_pci_address(part) && *part != &*address.0).map(|part| PciAddress(part.into())).collect()
}

/// Why the log cannot be read, and what to do.
fn refusal(error: Errno) -> String {
    let enable = "enable the drop-in kernel-log.conf (docs/systemd.md)";
    match error {
        Errno::ACCESS | Errno::PERM => {
            format!("permission denied: the kernel's log needs CAP_SYSLOG; {enable}, or run as root")
        }
        Errno::NOENT => format!("is not there: {enable}, or give the container /dev/kmsg"),
        error => crate::dir::reason(error),
    }
}

impl LogFile {
    /// Reads until there is no more, or it is enough for one sample.
    fn read(&mut self, known: &KnownParts, groups: &mut Groups) -> rustix::io::Result<()> {
        let (clock, began, mut read) = (MonotonicClock::now(), Instant::now(), 0);
        let mut buffer = [0; record::LONGEST];
        while read < MOST_BYTES && began.elapsed() < LONGEST_READ {
            match rustix::io::read(&self.file, &mut buffer) {
                Ok(0) | Err(Errno::AGAIN) => {
                    self.take_rest(true, known, groups, &clock);
                    break;
                }
                Ok(length) if self.is_kernel => {
                    read += length;
                    self.take(&buffer[..length], known, groups, &clock);
                }
                Ok(length) => {
                    read += length;
                    self.rest.extend_from_slice(&buffer[..length]);
                    self.take_rest(false, known, groups, &clock);
                }
                // Overwritten: the next one is the oldest that is left, and its number says how many are lost. Or too long.
                Err(Errno::PIPE | Errno::INVAL) if self.is_kernel => read += record::LONGEST,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes the whole records of what was read.
    fn take_rest(&mut self, is_all: bool, known: &KnownParts, groups: &mut Groups, clock: &MonotonicClock) {
        let all = std::mem::take(&mut self.rest);
        let mut rest = &all[..];
        while let Some((first, others)) = record::split_off(rest, is_all) {
            if !std::mem::take(&mut self.skips_line) {
                self.take(first, known, groups, clock);
            }
            rest = others;
        }
        if rest.len() > record::LONGEST {
            (self.skips_line, rest) = (true, &[]);
        }
        self.rest = rest.to_vec();
    }

    fn take(&mut self, bytes: &[u8], known: &KnownParts, groups: &mut Groups, clock: &MonotonicClock) {
        let Some(record) = record::parse(bytes) else { return };
        let time = clock.timestamp(record.microseconds);
        let next = self.last.map(|last| last.saturating_add(1));
        if let Some(next) = next.filter(|next| *next < record.seq) {
            groups.add_lost(time, record.seq, record.seq - next);
        }
        self.last = Some(record.seq);
        if let Some(meaning) = meaning::of(&record, &known.places).or_else(|| known.holders.meaning(&record)) {
            groups.add(time, record.seq, &record.text, meaning);
        }
    }
}
