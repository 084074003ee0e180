//! A machine written as text, and what was seen of it as text.
//!
//! Lines of `0/tt_aiclk = 1000`: device 0's attribute; `0/hwmon4/temp1_input = 51250`: its hwmon; `0/pci/numa_node = 1`: its PCI
//! function; `0/pids = 12 34`: who holds it; anything that starts with `sys/`, `proc/` or `dev/`: that file.

#![allow(dead_code, clippy::unwrap_used)]

use expect_test::Expect;
use model::{Device, Snapshot};
use sources::{Options, Root, Sampler};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

pub const BLACKHOLE: &str = "1E52:B140";
pub const WORMHOLE: &str = "1E52:401E";

/// What a chip that does not respond answers first.
pub const HUNG: &str = "
    0/tt_aiclk = 4294967295
    0/tt_heartbeat = 4294967295
    0/hwmon2/temp1_input = 65535999
    0/hwmon2/power1_input = 4293967296
";

/// A machine's folder. Removed when dropped.
pub struct Machine(pub TempDir);

impl Machine {
    /// A machine with the driver loaded and nothing else.
    pub fn new() -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        machine.file("sys/module/tenstorrent/version", "2.10.0");
        fs::create_dir_all(machine.path("sys/class/tenstorrent")).unwrap();
        fs::create_dir_all(machine.path("sys/bus/pci/devices")).unwrap();
        fs::create_dir_all(machine.path("dev/shm")).unwrap();
        fs::create_dir_all(machine.path("proc/driver/tenstorrent")).unwrap();
        machine
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    pub fn file(&self, path: &str, text: &str) {
        self.bytes(path, format!("{text}\n").as_bytes());
    }

    pub fn bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Adds a PCI function that the driver is not bound to.
    pub fn function(&self, address: &str, pci_id: &str) -> String {
        let pci = format!("sys/devices/pci0000:00/0000:00:01.0/{address}");
        self.file(&format!("{pci}/uevent"), &format!("PCI_CLASS=120000\nPCI_ID={pci_id}\nPCI_SLOT_NAME={address}"));
        symlink(
            format!("../../../devices/pci0000:00/0000:00:01.0/{address}"),
            self.path(&format!("sys/bus/pci/devices/{address}")),
        )
        .unwrap();
        pci
    }

    /// Adds a device with the driver bound to it.
    pub fn device(self, n: u32, address: &str, pci_id: &str) -> Machine {
        let pci = self.function(address, pci_id);
        let class = format!("{pci}/tenstorrent/tenstorrent!{n}");
        fs::create_dir_all(self.path(&class)).unwrap();
        symlink(format!("../../../{address}"), self.path(&format!("{class}/device"))).unwrap();
        symlink(
            format!("../../devices/pci0000:00/0000:00:01.0/{address}/tenstorrent/tenstorrent!{n}"),
            self.path(&format!("sys/class/tenstorrent/tenstorrent!{n}")),
        )
        .unwrap();
        self.bytes(&format!("proc/driver/tenstorrent/{n}/pids"), b"");
        self
    }

    /// Gives devices other numbers, as the driver does when it is loaded again. Their folders and links are new ones.
    pub fn set_numbers(&self, numbers: &[(&str, u32)]) {
        let class = |address: &str| self.path(&format!("sys/devices/pci0000:00/0000:00:01.0/{address}/tenstorrent"));
        for (address, _) in numbers {
            let old = fs::read_dir(class(address)).unwrap().next().unwrap().unwrap().path();
            fs::rename(old, class(address).join("old")).unwrap();
        }
        for (address, n) in numbers {
            let name = format!("tenstorrent!{n}");
            fs::rename(class(address).join("old"), class(address).join(&name)).unwrap();
            // The new link is there before the old one goes, so that it has another inode.
            let links = self.path("sys/class/tenstorrent");
            let target = format!("../../devices/pci0000:00/0000:00:01.0/{address}/tenstorrent/{name}");
            symlink(target, links.join("new")).unwrap();
            fs::rename(links.join("new"), links.join(name)).unwrap();
        }
        let links = fs::read_dir(self.path("sys/class/tenstorrent")).unwrap().map(|link| link.unwrap().path());
        links.filter(|link| !link.exists()).for_each(|broken| fs::remove_file(broken).unwrap());
    }

    /// Takes a device off the bus.
    pub fn take_out(&self, address: &str) {
        fs::remove_file(self.path(&format!("sys/bus/pci/devices/{address}"))).unwrap();
        fs::remove_dir_all(self.path(&format!("sys/devices/pci0000:00/0000:00:01.0/{address}"))).unwrap();
        let links = fs::read_dir(self.path("sys/class/tenstorrent")).unwrap().map(|link| link.unwrap().path());
        links.filter(|link| !link.exists()).for_each(|broken| fs::remove_file(broken).unwrap());
    }

    /// Writes files as the header of this file says.
    pub fn with(self, text: &str) -> Machine {
        self.set(text);
        self
    }

    pub fn set(&self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (path, value) = line.split_once(" = ").unwrap_or_else(|| panic!("no value in {line:?}"));
            let path = match path.split_once('/').unwrap() {
                ("sys" | "proc" | "dev", _) => path.to_owned(),
                (n, "pids") => {
                    self.file(&format!("proc/driver/tenstorrent/{n}/pids"), &value.replace(' ', "\n"));
                    continue;
                }
                (n, rest) => {
                    let class = format!("sys/class/tenstorrent/tenstorrent!{n}");
                    match rest.split_once('/') {
                        Some(("pci", rest)) => format!("{class}/device/{rest}"),
                        Some((hwmon, rest)) if hwmon.starts_with("hwmon") => {
                            format!("{class}/device/hwmon/{hwmon}/{rest}")
                        }
                        _ => format!("{class}/{rest}"),
                    }
                }
            };
            self.file(&path, value);
        }
    }

    pub fn root(&self) -> Root {
        Root::under(self.0.path())
    }

    pub fn sample(&self) -> Snapshot {
        self.sampler(false).sample()
    }

    pub fn sampler(&self, rates: bool) -> Sampler {
        Sampler::new(self.root(), Options { rates, relaxed: false, deadline: Duration::from_secs(10) })
    }
}

/// A healthy p150a with every attribute of driver 2.10.
pub fn p150a() -> Machine {
    Machine::new().device(0, "0000:01:00.0", BLACKHOLE).with(P150A)
}

pub const P150A: &str = "
    0/tt_aiclk = 1350
    0/tt_axiclk = 960
    0/tt_arcclk = 800
    0/tt_serial = 0000040331914049
    0/tt_asic_id = 8F3A6C21D4E5B790
    0/tt_card_type = p150a
    0/tt_fw_bundle_ver = 19.6.0.0
    0/tt_m3app_fw_ver = 0.24.0.0
    0/tt_heartbeat = 482113
    0/tt_therm_trip_count = 0
    0/pci/numa_node = 0
    0/pci/current_link_speed = 32.0 GT/s PCIe
    0/pci/current_link_width = 16
    0/pci/max_link_speed = 32.0 GT/s PCIe
    0/pci/max_link_width = 16
    0/hwmon2/temp1_input = 54012
    0/hwmon2/temp1_max = 90000
    0/hwmon2/in0_input = 742
    0/hwmon2/in0_max = 900
    0/hwmon2/curr1_input = 88000
    0/hwmon2/curr1_max = 200000
    0/hwmon2/power1_input = 65000000
    0/hwmon2/power1_max = 150000000
    0/hwmon2/fan1_input = 2068
";

/// A line per device with what is known of it, then the faults.
pub fn seen(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for device in &snapshot.devices {
        text += &format!("{} {}\n", device.id, words(device).join(" "));
    }
    for fault in &snapshot.faults {
        let path = Path::new(&fault.path);
        let short: Vec<_> = path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
        let short: Vec<_> = short.iter().rev().map(|part| part.as_ref()).collect();
        text += &format!("fault {}: {}\n", short.join("/"), fault.reason);
    }
    text
}

fn words(device: &Device) -> Vec<String> {
    let mut words = vec![device.state.name().to_owned()];
    let mut add = |name: &str, value: Option<String>| words.extend(value.map(|value| format!("{name}={value}")));
    add("board", device.board.as_deref().map(str::to_owned));
    add("serial", device.serial.as_deref().map(str::to_owned));
    add("temp", device.asic_temp.map(|v| v.0.to_string()));
    add("temp_max", device.asic_temp_max.map(|v| v.0.to_string()));
    add("power", device.power.map(|v| v.0.to_string()));
    add("power_max", device.power_max.map(|v| v.0.to_string()));
    add("vcore", device.vcore.map(|v| v.0.to_string()));
    add("amps", device.current.map(|v| v.0.to_string()));
    add("fan", device.fan.map(|v| v.0.to_string()));
    add("aiclk", device.aiclk.map(|v| v.0.to_string()));
    add("beat", device.heartbeat.map(|v| v.to_string()));
    add("trips", device.thermal_trips.map(|v| v.to_string()));
    add("gen", device.pcie.generation.map(|v| v.to_string()));
    add("lanes", device.pcie.width.map(|v| v.to_string()));
    add("in", device.pcie.host_to_device.map(|v| format!("{:.0}", v.0)));
    add("out", device.pcie.device_to_host.map(|v| format!("{:.0}", v.0)));
    add("dram", device.memory.dram_total.map(|v| v.to_string()));
    add("l1", device.memory.l1_total.map(|v| v.to_string()));
    add("used", device.memory.dram_used.map(|v| v.0.to_string()));
    add("stale", device.memory.stale.map(|v| v.0.to_string()));
    words
}

/// What a sample of the machine shows.
pub fn check(machine: &Machine, expected: Expect) {
    expected.assert_eq(&seen(&machine.sample()));
}

/// A sampler that has read the machine before and keeps its files open.
pub fn watching(machine: &Machine, rates: bool) -> Sampler {
    let mut sampler = machine.sampler(rates);
    for _ in 0..3 {
        sampler.sample();
    }
    sampler
}

/// Lets no read of a file that ends with `name` return while this is set.
pub fn stuck_while(stuck: &Arc<AtomicBool>, name: &'static str) -> sources::Inject {
    let stuck = stuck.clone();
    Arc::new(move |path: &Path| {
        while path.ends_with(name) && stuck.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    })
}
