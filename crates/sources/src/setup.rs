//! How a machine is set up for its devices: what `ttmon doctor` looks at and no sample has.
//!
//! Reads the folders of PCI functions (`uevent`, `driver`, `iommu_group/type`), `/sys/kernel/mm/hugepages/hugepages-1048576kB`,
//! `/proc/self/mounts`, `/proc/cmdline`, `/run/systemd/timesync`, and who may use device nodes and `/dev/shm`. It asks only the kernel: no
//! device is read, and none is opened.

use crate::devices::{self, VENDOR, is_pci_address, pci_facts};
use crate::dir::{Dir, Root, Trouble, decimal};
use model::{Arch, PciAddress};
use std::collections::BTreeMap;
use std::path::Path;

/// All of it. What could not be read is absent.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct MachineSetup {
    /// Whether the driver is loaded, even one that does not give its version.
    pub driver_is_loaded: bool,
    /// Tenstorrent's PCI functions, by address.
    pub functions: Vec<PciFunction>,
    /// Huge pages of 1 GiB. Absent where the kernel has none.
    pub hugepages: Option<Hugepages>,
    /// `/dev/shm`. Absent where there is none.
    pub shm: Option<SharedMemory>,
    /// Whether the clock is set by a time server, where that is known.
    pub clock_is_synchronized: Option<bool>,
    /// What the kernel was started with.
    pub kernel_command_line: Option<String>,
    /// The socket of the service of root.
    pub service_socket: Option<Access>,
    /// Who asks.
    pub user: SetupUser,
}

/// A PCI function of Tenstorrent.
#[derive(Debug, Clone, PartialEq)]
pub struct PciFunction {
    /// Where it is.
    pub address: PciAddress,
    /// The generation of the chip.
    pub arch: Option<Arch>,
    /// The driver that it is bound to.
    pub driver: Option<String>,
    /// N of `/dev/tenstorrent/N`.
    pub number: Option<u32>,
    /// Whether an IOMMU translates its addresses.
    pub iommu: Iommu,
    /// Who may use its node. Absent where there is no node.
    pub node: Option<Access>,
}

/// What an IOMMU does with the addresses of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iommu {
    /// There is none, or it is switched off.
    Off,
    /// It lets all addresses through.
    Passthrough,
    /// It translates them.
    Translates,
}

/// Huge pages of 1 GiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hugepages {
    /// How many the kernel keeps.
    pub total: u64,
    /// Where they are mounted.
    pub mounted_at: Option<String>,
}

/// `/dev/shm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedMemory {
    /// Who may use it.
    pub access: Access,
    /// How much it holds.
    pub total_bytes: u64,
    /// How much of that is free.
    pub free_bytes: u64,
}

/// Whose a file is, and its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A user, as far as permissions go.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SetupUser {
    /// Number of the user.
    pub uid: u32,
    /// All groups.
    pub gids: Vec<u32>,
    /// Whether processes of other users may be read.
    pub reads_other_processes: bool,
}

impl Access {
    /// Whether a user may read and write it.
    pub fn allows(self, user: &SetupUser) -> bool {
        let bits = if user.uid == self.uid {
            self.mode >> 6
        } else if user.gids.contains(&self.gid) {
            self.mode >> 3
        } else {
            self.mode
        };
        user.uid == 0 || bits & 0o6 == 0o6
    }
}

/// Looks at a machine.
pub(crate) fn read(root: &Root) -> MachineSetup {
    let folder = root.sys.parent().unwrap_or(Path::new("/"));
    MachineSetup {
        driver_is_loaded: devices::driver_is_loaded(root),
        functions: functions(root),
        hugepages: hugepages(root),
        shm: shared_memory(root),
        clock_is_synchronized: clock(folder),
        kernel_command_line: whole(root, &root.proc, "cmdline").map(|text| text.trim_end().to_owned()),
        service_socket: access(root, &folder.join("run/ttmon"), "ttmon.sock"),
        user: SetupUser::this(),
    }
}

impl SetupUser {
    /// Who runs this program.
    fn this() -> SetupUser {
        use rustix::process::{getegid, geteuid, getgroups};
        let mut gids: Vec<u32> = getgroups().unwrap_or_default().iter().map(|gid| gid.as_raw()).collect();
        gids.push(getegid().as_raw());
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        SetupUser { uid: geteuid().as_raw(), gids, reads_other_processes: may_trace(&status) }
    }
}

/// Whether the effective capabilities of a `status` file have `CAP_SYS_PTRACE`.
fn may_trace(status: &str) -> bool {
    const SYS_PTRACE: u64 = 1 << 19;
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & SYS_PTRACE != 0)
}

fn functions(root: &Root) -> Vec<PciFunction> {
    let mut trouble = Trouble::default();
    let class = devices::class_dir(root, &mut trouble);
    let links = class.map(|class| devices::with_driver(&class, &BTreeMap::new(), &mut trouble)).unwrap_or_default();
    let Ok(bus) = root.open(&root.sys.join("bus/pci/devices")) else { return Vec::new() };
    let mut names = Vec::new();
    // A list that ends early is what there is.
    let _ = bus.list(|name| names.extend(name.to_str().filter(|name| is_pci_address(name)).map(str::to_owned)));
    names.sort();
    let function = |name: String| {
        let pci = bus.open_dir(&name).ok()?;
        let facts = pci_facts(&pci, &mut Trouble::default());
        if facts.vendor != Some(VENDOR) || facts.arch.is_none() {
            return None;
        }
        let number = links.iter().find(|(_, link)| *link.address.0 == *name).map(|(n, _)| *n);
        let driver = pci.read_link("driver").ok().and_then(|link| {
            let link = String::from_utf8(link).ok()?;
            Some(link.rsplit('/').next()?.to_owned())
        });
        let node = number.and_then(|n| access(root, &root.dev.join("tenstorrent"), &n.to_string()));
        Some(PciFunction {
            address: PciAddress(name.into()),
            arch: facts.arch,
            driver,
            number,
            iommu: iommu(&pci),
            node,
        })
    };
    names.into_iter().filter_map(function).collect()
}

fn iommu(pci: &Dir) -> Iommu {
    let Ok(group) = pci.open_dir("iommu_group") else { return Iommu::Off };
    match group.text("type", &mut [0; 256], &mut Trouble::default()) {
        Some("identity") => Iommu::Passthrough,
        // Kernels before 5.11 do not say; a group alone means that there is an IOMMU.
        _ => Iommu::Translates,
    }
}

fn hugepages(root: &Root) -> Option<Hugepages> {
    let total = whole(root, &root.sys.join("kernel/mm/hugepages/hugepages-1048576kB"), "nr_hugepages")?;
    let mounts = whole(root, &root.proc.join("self"), "mounts").unwrap_or_default();
    Some(Hugepages { total: decimal(total.trim())?, mounted_at: mount_of_large_pages(&mounts) })
}

/// Where a file system of pages of 1 GiB is mounted: `none /dev/hugepages-1G hugetlbfs rw,pagesize=1024M 0 0`.
fn mount_of_large_pages(mounts: &str) -> Option<String> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (place, kind, options) = (words.nth(1)?, words.next()?, words.next()?);
        let is_large = options.split(',').any(|option| matches!(option, "pagesize=1024M" | "pagesize=1G"));
        (kind == "hugetlbfs" && is_large).then(|| place.to_owned())
    })
}

fn shared_memory(root: &Root) -> Option<SharedMemory> {
    let room = rustix::fs::statvfs(root.dev.join("shm")).ok()?;
    let access = access(root, &root.dev, "shm")?;
    Some(SharedMemory { access, total_bytes: room.f_blocks * room.f_frsize, free_bytes: room.f_bavail * room.f_frsize })
}

/// systemd-timesyncd leaves a file once it has the time. Of other programs only their presence is known.
fn clock(folder: &Path) -> Option<bool> {
    let run = folder.join("run");
    let others = ["chrony/chronyd.pid", "chronyd.pid", "ntpd.pid", "chrony"];
    if run.join("systemd/timesync/synchronized").exists() || others.iter().any(|name| run.join(name).exists()) {
        return Some(true);
    }
    run.join("systemd/timesync").is_dir().then_some(false)
}

fn access(root: &Root, folder: &Path, name: &str) -> Option<Access> {
    let stat = root.open(folder).ok()?.stat(name).ok()?;
    Some(Access { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid })
}

fn whole(root: &Root, folder: &Path, name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    root.open(folder).ok()?.read_all(name, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_are_found_among_the_mounts() {
        let mounts = "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n\
                      none /dev/hugepages-1G hugetlbfs rw,relatime,mode=0777,pagesize=1024M 0 0\n";
        assert_eq!(mount_of_large_pages(mounts).as_deref(), Some("/dev/hugepages-1G"));
        assert_eq!(mount_of_large_pages("none /x tmpfs rw,pagesize=1024M 0 0\nshort\n"), None);
    }

    #[test]
    fn the_most_particular_permission_counts() {
        let user = SetupUser { uid: 1000, gids: vec![1000, 44], reads_other_processes: false };
        let allows = |mode, uid, gid| Access { mode, uid, gid }.allows(&user);
        assert!(allows(0o666, 0, 0) && allows(0o660, 0, 44) && allows(0o600, 1000, 0));
        assert!(!allows(0o600, 0, 0) && !allows(0o660, 0, 0) && !allows(0o606, 0, 44) && !allows(0o444, 1000, 0));
        assert!(Access { mode: 0, uid: 5, gid: 5 }.allows(&SetupUser::default()), "root may all");
    }

    #[test]
    fn a_capability_is_a_bit() {
        assert!(may_trace("Name:\tx\nCapEff:\t000001ffffffffff\n") && may_trace("CapEff:\t0000000000080000\n"));
        assert!(!may_trace("CapEff:\t0000000000000000\n") && !may_trace("CapEff:\tx\n") && !may_trace(""));
    }

    #[test]
    fn this_machine_is_looked_at_without_a_mistake() {
        let setup = read(&Root::machine());
        assert!(setup.shm.is_none_or(|shm| shm.total_bytes >= shm.free_bytes));
        assert!(setup.kernel_command_line.is_none_or(|line| !line.ends_with('\n')));
    }
}
