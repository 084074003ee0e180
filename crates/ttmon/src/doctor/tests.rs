//! Each check has a machine on which it fails, and the command that it prints, typed there, makes it pass.
//!
//! The command is run by a shell, in a folder that looks like the machine: files are changed by the real programs, and what the kernel or
//! an installer would do is done by the row of the table.

use super::check::{CheckStatus, DoctorCheck, DoctorReport};
use super::checks::CHECKS;
use super::python::PythonFound;
use super::{ConfigFound, Findings, ServiceFound, ShmTracking};
use crate::cli::Cli;
use clap::Parser;
use expect_test::expect;
use model::{Snapshot, State};
use sim::tree::{Chip, PcieLink};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use watch::machine::Machine;
use watch::past::BlackBoxFound;

/// A machine in a folder, and what is not in files.
struct Scene {
    folder: TempDir,
    driver: &'static str,
    chips: Vec<Chip>,
    service: ServiceFound,
    is_off_here: bool,
    reads_other_processes: bool,
    free_bytes: Option<u64>,
    seconds_off: Option<f64>,
    /// How long ago the last snapshot of the black box was taken.
    black_box_seconds: u64,
}

/// Programs that are not run, but noted.
const STUBS: [&str; 10] =
    ["apt", "modprobe", "udevadm", "tt-flash", "tt-smi", "lspci", "mount", "pip", "systemctl", "timedatectl"];

/// Where the service keeps its black box.
const BLACK_BOX: &str = "/var/lib/ttmon/black-box";

/// A service that keeps the black box of the scene.
fn answers(program: &str) -> ServiceFound {
    ServiceFound::Answers { program: program.to_owned(), black_box: Some(BLACK_BOX.into()) }
}

fn this_service() -> ServiceFound {
    answers(&watch::client::program())
}

impl Scene {
    /// A machine on which nothing is wrong.
    fn good() -> Scene {
        // Without heartbeats there is no waiting for them.
        let chip = |index| Chip { heartbeat: None, fw_bundle: Some("19.13.1.0".into()), ..Chip::p150a(index) };
        let scene = Scene {
            folder: tempfile::tempdir().unwrap(),
            driver: "2.10.0",
            chips: vec![chip(0), chip(1)],
            service: this_service(),
            is_off_here: false,
            reads_other_processes: false,
            free_bytes: None,
            seconds_off: Some(0.1),
            black_box_seconds: 3,
        };
        scene.lay();
        for chip in &scene.chips {
            scene.write(&format!("{}/iommu_group/type", chip.pci_folder()), "DMA-FQ\n");
        }
        scene.write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
        scene.write("proc/self/mounts", "proc /proc proc rw 0 0\n");
        scene.write("proc/cmdline", "quiet\n");
        scene.write("run/systemd/timesync/synchronized", "");
        scene.write("home/config.toml", "[top]\ntheme = \"light\"\n");
        scene.write("home/venv/lib/python3.12/site-packages/ttnn-0.81.1.dist-info/METADATA", "");
        scene.write("home/venv/lib/python3.12/site-packages/ttmon.pth", "");
        scene.write("etc/default/grub", "GRUB_CMDLINE_LINUX=\"\"\n");
        fs::create_dir_all(scene.at("etc/udev/rules.d")).unwrap();
        scene.allow("dev/shm", 0o1777);
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn allow(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn lay(&self) {
        sim::tree::lay(self.folder.path(), &self.chips, self.driver).unwrap();
    }

    /// Takes all chips away and puts these there.
    fn replace(&mut self, change: impl Fn(&mut Chip)) {
        for chip in &mut self.chips {
            sim::tree::remove(self.folder.path(), chip).unwrap();
            change(chip);
        }
        self.lay();
        for chip in &self.chips {
            self.write(&format!("{}/iommu_group/type", chip.pci_folder()), "DMA-FQ\n");
        }
    }

    fn findings(&self) -> Findings {
        let root = self.folder.path().to_str().unwrap();
        let words = ["ttmon", "doctor", "--root", root, "--service=off", "--deadline-ms=5000"];
        let args = Cli::parse_from(words).machine;
        let mut machine = Machine::open(&args, false).unwrap();
        let snapshot: Snapshot = machine.verified_sample();
        let mut setup = machine.setup().unwrap();
        // Tests may run as root, who may do everything.
        setup.user =
            watch::SetupUser { uid: 12345, gids: vec![12345], reads_other_processes: self.reads_other_processes };
        if let (Some(free), Some(shm)) = (self.free_bytes, &mut setup.shm) {
            (shm.free_bytes, shm.total_bytes) = (free, 8 << 30);
        }
        Findings {
            tracking: ShmTracking { is_off_here: self.is_off_here, ..ShmTracking::default() },
            config: ConfigFound::of(&self.at("home/config.toml")),
            python: Some(PythonFound::at(&self.at("home/venv"))),
            service: self.service.clone(),
            seconds_off: self.seconds_off,
            black_box: Some(BlackBoxFound {
                folder: BLACK_BOX.into(),
                bytes: 12 << 20,
                ages: Ok((Duration::from_secs(93_600), Duration::from_secs(self.black_box_seconds))),
            }),
            setup,
            snapshot,
        }
    }

    fn checks(&self) -> Vec<DoctorCheck> {
        let findings = self.findings();
        CHECKS.iter().map(|check| check(&findings)).collect()
    }

    fn check(&self, name: &str) -> DoctorCheck {
        self.checks().into_iter().find(|check| check.name == name).unwrap()
    }

    /// Types a command, in the folder. Returns the programs that were noted.
    fn type_in(&mut self, command: &str) -> String {
        let (root, bin) = (self.folder.path().to_str().unwrap().to_owned(), self.at("bin"));
        fs::create_dir_all(&bin).unwrap();
        let script = |name: &str, text: &str| {
            fs::write(bin.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        script("sudo", "exec \"$@\"");
        for name in STUBS.iter().chain(&["update-grub", "reboot"]) {
            script(name, &format!("echo \"{name} $*\" >> \"{root}/typed\""));
        }
        let here = command.replace(" /", &format!(" {root}/")).replace(&format!("{root}{root}"), &root);
        let script = format!("{here}\nstatus=$?\nenv > {root}/environment\nexit $status");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        if self.is_off_here {
            shell.env("TT_METAL_SHM_TRACKING_DISABLED", "1");
        }
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{here}: {}", String::from_utf8_lossy(&output.stderr));
        self.is_off_here = fs::read_to_string(self.at("environment")).unwrap().contains("SHM_TRACKING_DISABLED");
        fs::read_to_string(self.at("typed")).unwrap_or_default()
    }
}

/// A check, what breaks it, and what the world does when the command is typed.
struct Row {
    name: &'static str,
    break_it: fn(&mut Scene),
    effect: fn(&mut Scene),
}

fn hang_the_second(chip: &mut Chip) {
    if chip.index == 1 {
        *chip = chip.hung();
    }
}

const NOTHING: fn(&mut Scene) = |_| {};

fn rows() -> Vec<Row> {
    let row = |name, break_it, effect| Row { name, break_it, effect };
    let unload = |scene: &mut Scene| {
        for folder in ["class/tenstorrent", "module/tenstorrent"] {
            fs::remove_dir_all(scene.at("sys").join(folder)).unwrap();
        }
        scene.replace(|chip| chip.bound = false);
        for folder in ["class/tenstorrent", "module/tenstorrent"] {
            fs::remove_dir_all(scene.at("sys").join(folder)).unwrap();
        }
    };
    let bind = |scene: &mut Scene| scene.replace(|chip| chip.bound = true);
    let full_firmware = |scene: &mut Scene| scene.replace(|chip| chip.fw_bundle = Some("19.13.1.0".into()));
    let without_iommu = |scene: &mut Scene| {
        for chip in scene.chips.clone() {
            fs::remove_dir_all(scene.at(&chip.pci_folder()).join("iommu_group")).unwrap();
        }
    };
    let mount = |scene: &mut Scene| {
        scene.write("proc/self/mounts", "none /dev/hugepages-1G hugetlbfs rw,mode=0777,pagesize=1024M 0 0\n");
    };
    let restart = |scene: &mut Scene| {
        scene.service = this_service();
    };
    vec![
        row("driver", unload, bind),
        row(
            "driver",
            |scene| {
                scene.driver = "2.4.1";
                scene.lay();
            },
            |scene| {
                scene.driver = "2.10.0";
                scene.lay();
            },
        ),
        row("devices", |scene| scene.replace(|chip| chip.bound = chip.index == 0), bind),
        row(
            "permissions",
            |scene| scene.allow("dev/tenstorrent/1", 0o600),
            |scene| {
                scene.allow("dev/tenstorrent/1", 0o666);
            },
        ),
        row("permissions", |scene| fs::remove_file(scene.at("dev/tenstorrent/1")).unwrap(), |scene| scene.lay()),
        row("firmware", |scene| scene.replace(|chip| chip.fw_bundle = Some("18.4.0.0".into())), full_firmware),
        row(
            "firmware",
            |scene| scene.replace(|chip| chip.fw_bundle = Some(format!("19.{}.0.0", 10 + chip.index))),
            full_firmware,
        ),
        row(
            "telemetry",
            |scene| scene.replace(hang_the_second),
            |scene| {
                scene.replace(|chip| {
                    *chip = Chip { heartbeat: None, ..Chip::p150a(chip.index) };
                });
            },
        ),
        row(
            "pcie-link",
            |scene| scene.replace(|chip| chip.link = PcieLink { speed: "16.0 GT/s PCIe".into(), width: 8 }),
            |scene| scene.replace(|chip| chip.link = chip.max_link.clone()),
        ),
        row("iommu", without_iommu, |scene| scene.replace(|_| {})),
        row(
            "hugepages",
            |scene| {
                for chip in scene.chips.clone() {
                    scene.write(&format!("{}/iommu_group/type", chip.pci_folder()), "identity\n");
                }
                scene.write("proc/self/mounts", "none /dev/hugepages-1G hugetlbfs rw,pagesize=1024M 0 0\n");
            },
            NOTHING,
        ),
        row("hugepages", without_iommu, mount),
        row(
            "hugepages",
            |scene| {
                for chip in scene.chips.clone() {
                    fs::remove_dir_all(scene.at(&chip.pci_folder()).join("iommu_group")).unwrap();
                }
                scene.write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "2\n");
            },
            mount,
        ),
        row("shared-memory", |scene| scene.allow("dev/shm", 0o755), NOTHING),
        row("shared-memory", |scene| fs::remove_dir(scene.at("dev/shm")).unwrap(), NOTHING),
        row("shared-memory", |scene| scene.free_bytes = Some(1 << 20), |scene| scene.free_bytes = Some(1 << 30)),
        row("shm-tracking", |scene| scene.is_off_here = true, NOTHING),
        row(
            "agent",
            |scene| fs::remove_file(scene.at("home/venv/lib/python3.12/site-packages/ttmon.pth")).unwrap(),
            |scene| scene.write("home/venv/lib/python3.12/site-packages/ttmon.pth", ""),
        ),
        row(
            "service",
            |scene| {
                let (place, reason) =
                    ("/run/ttmon/ttmon.sock".into(), "the service did not answer within 1.5 s".into());
                scene.service = ServiceFound::Silent { place, reason };
            },
            restart,
        ),
        row(
            "service",
            |scene| {
                scene.write("run/ttmon/ttmon.sock", "");
                scene.allow("run/ttmon/ttmon.sock", 0o600);
                let (place, reason) = ("/run/ttmon/ttmon.sock".into(), "cannot connect to the service: denied".into());
                scene.service = ServiceFound::Silent { place, reason };
            },
            |scene| {
                assert_eq!(scene.at("run/ttmon/ttmon.sock").metadata().unwrap().permissions().mode() & 0o777, 0o666);
                scene.service = this_service();
            },
        ),
        row("service-version", |scene| scene.service = answers("ttmon 0.0.1"), restart),
        row("black-box", |scene| scene.black_box_seconds = 720, |scene| scene.black_box_seconds = 3),
        row("other-users", |scene| scene.service = ServiceFound::Absent, restart),
        row(
            "configuration",
            |scene| scene.write("home/config.toml", "[top]\nthem = \"light\"\nascii = true\n[serve]\ndeaths = \"x\"\n"),
            NOTHING,
        ),
        row(
            "clock",
            |scene| fs::remove_file(scene.at("run/systemd/timesync/synchronized")).unwrap(),
            |scene| {
                scene.write("run/systemd/timesync/synchronized", "");
            },
        ),
        row("clock", |scene| scene.seconds_off = Some(-3600.0), |scene| scene.seconds_off = Some(0.0)),
    ]
}

#[test]
fn each_check_fails_on_a_machine_and_the_printed_command_makes_it_pass() {
    let mut text = String::new();
    for row in rows() {
        let mut scene = Scene::good();
        (row.break_it)(&mut scene);
        let broken = scene.check(row.name);
        let is_bad = |check: &DoctorCheck| matches!(check.status, CheckStatus::Problem | CheckStatus::Warning);
        assert!(is_bad(&broken), "{}: {broken:?}", row.name);
        let fix = broken.fix.clone().unwrap();
        let typed = scene.type_in(&fix);
        (row.effect)(&mut scene);
        let mended = scene.check(row.name);
        assert_eq!(mended.status, CheckStatus::Ok, "{fix}: {mended:?}");
        let report = DoctorReport::of(vec![broken]).text(true);
        let line = report.lines().next().unwrap().replace(scene.folder.path().to_str().unwrap(), "ROOT");
        let found = mended.found.replace(scene.folder.path().to_str().unwrap(), "ROOT");
        // How much is free is this machine's.
        let found = if row.name == "shared-memory" { "enough free".into() } else { found };
        text += &format!("{line}\n    then: {found}\n");
        // What is not a file was done by a program that was typed.
        if row.effect as usize != NOTHING as usize && row.name != "service" && row.name != "devices" {
            assert!(!typed.is_empty(), "{}: {fix}", row.name);
        }
    }
    expect![[r#"
        problem  driver          the tenstorrent driver is not loaded (/sys/module/tenstorrent); fix: sudo modprobe tenstorrent
            then: version 2.10.0
        warning  driver          version 2.4.1 lacks the list of processes, heartbeats, limits of Blackhole, and readings that are safe during a reset (/sys/module/tenstorrent/version); fix: sudo apt install --only-upgrade tenstorrent-dkms && sudo modprobe -r tenstorrent && sudo modprobe tenstorrent
            then: version 2.10.0
        problem  devices         no driver is bound to 0000:09:00.0 (/sys/bus/pci/devices/0000:09:00.0); fix: echo 0000:09:00.0 | sudo tee /sys/bus/pci/drivers/tenstorrent/bind
            then: 2 devices, bound to the driver
        problem  permissions     you may not open /dev/tenstorrent/1, so programs that use it fail (/dev/tenstorrent); fix: echo 'SUBSYSTEM=="tenstorrent", MODE="0666"' | sudo tee /etc/udev/rules.d/50-tenstorrent.rules && sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=tenstorrent
            then: you may open 2 devices
        warning  permissions     /dev/tenstorrent/1 is missing; a container needs --device /dev/tenstorrent (/dev/tenstorrent); fix: sudo udevadm trigger --action=add --subsystem-match=tenstorrent
            then: you may open 2 devices
        problem  firmware        bundle 18.4.0.0 on device 0 is older than 18.5, which tt-metal needs (tt_fw_bundle_ver in /sys/class/tenstorrent); fix: tt-flash flash --fw-tar fw_pack-19.13.1.fwbundle
            then: bundle 19.13.1.0 on 2 devices
        warning  firmware        devices have different bundles: 19.10.0.0, 19.11.0.0 (tt_fw_bundle_ver in /sys/class/tenstorrent); fix: tt-flash flash --fw-tar fw_pack-19.13.1.fwbundle
            then: bundle 19.13.1.0 on 2 devices
        problem  telemetry       device 1: hung (/sys/class/tenstorrent); fix: tt-smi -r 1
            then: 2 devices report
        warning  pcie-link       device 0 runs at Gen4 x8, slot and card support Gen5 x16; device 1 runs at Gen4 x8, slot and card support Gen5 x16 (/sys/bus/pci/devices/0000:01:00.0/current_link_speed); fix: sudo lspci -vv -s 0000:01:00.0 # compare LnkCap with LnkSta, then power off and reseat the card
            then: 2 devices at full speed and width
        warning  iommu           is off for 0000:01:00.0, 0000:09:00.0: tt-metal's profiler of Blackhole needs it, and so does utilization (/sys/bus/pci/devices/0000:01:00.0/iommu_group); fix: sudo sed -i 's|^GRUB_CMDLINE_LINUX="|&intel_iommu=on amd_iommu=on iommu=nopt |' /etc/default/grub && sudo update-grub && sudo reboot
            then: translates the addresses of all devices
        problem  hugepages       0 of the 2 huge pages of 1 GiB that 2 devices need (/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages); fix: echo 2 | sudo tee /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            then: 2 of 1 GiB, mounted at /dev/hugepages-1G
        problem  hugepages       0 of the 2 huge pages of 1 GiB that 2 devices need (/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages); fix: echo 2 | sudo tee /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages && sudo mkdir -p /dev/hugepages-1G && sudo mount -t hugetlbfs -o pagesize=1G,mode=0777 none /dev/hugepages-1G
            then: 2 of 1 GiB, mounted at /dev/hugepages-1G
        problem  hugepages       2 huge pages of 1 GiB, which are not mounted (/proc/self/mounts); fix: sudo mkdir -p /dev/hugepages-1G && sudo mount -t hugetlbfs -o pagesize=1G,mode=0777 none /dev/hugepages-1G
            then: 2 of 1 GiB, mounted at /dev/hugepages-1G
        problem  shared-memory   you may not write to it: tt-metal cannot publish its memory (/dev/shm); fix: sudo chmod 1777 /dev/shm
            then: enough free
        problem  shared-memory   /dev/shm is missing (/dev/shm); fix: sudo mkdir -m 1777 /dev/shm
            then: enough free
        problem  shared-memory   only 1.0 MiB is free: programs on devices may fail (/dev/shm); fix: sudo mount -o remount,size=75% /dev/shm
            then: enough free
        warning  shm-tracking    TT_METAL_SHM_TRACKING_DISABLED is set: the memory of such programs is unknown, unless `ttmon run` starts them (your environment); fix: unset TT_METAL_SHM_TRACKING_DISABLED
            then: not switched off here
        warning  agent           programs of ttnn 0.81.1 in ROOT/home/venv load no agent: only `ttmon run` counts their memory exactly (ROOT/home/venv/lib); fix: pip install ttmon-*.whl
            then: loaded by programs of ttnn 0.81.1 in ROOT/home/venv
        warning  service         the service did not answer within 1.5 s (/run/ttmon/ttmon.sock); fix: sudo systemctl restart ttmon.service
            then: ttmon 0.1.0 answers
        warning  service         cannot connect to the service: denied (/run/ttmon/ttmon.sock); fix: sudo chmod 666 /run/ttmon/ttmon.sock
            then: ttmon 0.1.0 answers
        warning  service-version the service is ttmon 0.0.1, this program is ttmon 0.1.0; fix: sudo systemctl restart ttmon.service
            then: the same as this program, ttmon 0.1.0
        warning  black-box       nothing was written for 12m: the service's log says why (/var/lib/ttmon/black-box); fix: sudo systemctl restart ttmon.service
            then: 12.0 MiB, from 1d2h ago until now
        warning  other-users     exact memory of other users' processes cannot be read without root or the service (/proc/PID/fd); fix: sudo systemctl enable --now ttmon.socket ttmon.service
            then: the service reads the processes of all users
        problem  configuration   line 2: unknown key them: did you mean theme?; line 5: deaths: expected a number from 0 to 4294967295 (ROOT/home/config.toml); fix: sed -i.bak '2d;5d' ROOT/home/config.toml
            then: no mistakes
        warning  clock           not set by a time server yet (/run/systemd/timesync/synchronized); fix: sudo timedatectl set-ntp true
            then: set by a time server
        problem  clock           samples are -3600 s off this clock: times and rates will be wrong; fix: sudo timedatectl set-ntp true
            then: set by a time server
    "#]].assert_eq(&text);
    let covered: Vec<&str> = rows().iter().map(|row| row.name).collect();
    for check in Scene::good().checks() {
        // It is never wrong: see the next test.
        assert!(covered.contains(&check.name) || check.name == "tested-set", "{} has no row", check.name);
    }
}

#[test]
fn a_good_machine_has_nothing_to_complain_about() {
    let scene = Scene::good();
    let report = DoctorReport::of(scene.checks());
    assert_eq!((report.problems, report.warnings), (0, 0));
    let text = report.text(true).replace(scene.folder.path().to_str().unwrap(), "ROOT");
    // How much is free is this machine's.
    let text: String =
        text.lines().filter(|line| !line.contains("shared-memory")).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        ok       driver          version 2.10.0 (/sys/module/tenstorrent/version)
        ok       devices         2 devices, bound to the driver
        ok       permissions     you may open 2 devices
        ok       firmware        bundle 19.13.1.0 on 2 devices (tt_fw_bundle_ver in /sys/class/tenstorrent)
        ok       tested-set      driver 2.10.0 with firmware 19.13.1.0 was tested on 2026-08-06 with tt-metal 0.75.0
        ok       telemetry       2 devices report
        ok       pcie-link       2 devices at full speed and width
        ok       iommu           translates the addresses of all devices
        ok       shm-tracking    not switched off here
        ok       agent           loaded by programs of ttnn 0.81.1 in ROOT/home/venv
        ok       service         ttmon 0.1.0 answers
        ok       service-version the same as this program, ttmon 0.1.0
        ok       black-box       12.0 MiB, from 1d2h ago until now (/var/lib/ttmon/black-box)
        ok       other-users     the service reads the processes of all users
        ok       configuration   no mistakes (ROOT/home/config.toml)
        ok       clock           set by a time server
        –        hugepages       not needed: the IOMMU translates addresses, or there is no device
        no problems, no warnings, 18 checks
    "#]]
    .assert_eq(&text);
}

#[test]
fn versions_that_are_not_in_the_table_are_not_wrong() {
    let mut scene = Scene::good();
    scene.replace(|chip| chip.fw_bundle = Some("19.99.0.0".into()));
    let check = scene.check("tested-set");
    assert_eq!(check.status, CheckStatus::NotApplicable);
    assert_eq!(check.found, "driver 2.10.0 with firmware 19.99.0.0 is not in the table of 2026-08-06");
    assert_eq!(scene.check("firmware").status, CheckStatus::Ok);
}

#[test]
fn a_machine_without_a_device_has_two_problems_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene { folder, chips: Vec::new(), ..Scene::good() };
    fs::create_dir_all(scene.at("dev/shm")).unwrap();
    scene.allow("dev/shm", 0o1777);
    let report = DoctorReport::of(scene.checks());
    let names: Vec<&str> = report.checks[..report.problems].iter().map(|check| check.name).collect();
    assert_eq!(names, ["driver", "devices"]);
}

#[test]
fn processes_in_which_tracking_is_switched_off_are_named() {
    let scene = Scene::good();
    let mut findings = scene.findings();
    findings.tracking = ShmTracking { is_off_here: false, off: vec![7, 9], on: 1, unknown: 2 };
    let check = CHECKS.iter().map(|check| check(&findings)).find(|check| check.name == "shm-tracking").unwrap();
    assert_eq!(check.status, CheckStatus::Warning);
    assert!(check.found.contains("process 7, 9") && check.found.contains("of 2 processes it is unknown"), "{check:?}");
    findings.snapshot.devices[0].state = State::NoTelemetry;
    let check = CHECKS.iter().map(|check| check(&findings)).find(|check| check.name == "telemetry").unwrap();
    assert_eq!(check.fix.as_deref(), Some("tt-smi -r 0"));
}

#[test]
fn an_archive_is_what_tar_reads() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("x/a.txt".to_owned(), b"hello\n".to_vec()), ("x/b.txt".to_owned(), vec![b'z'; 1025])];
    let path = folder.path().join("x.tar");
    fs::write(&path, super::tar::archive(&files, 1_790_000_000)).unwrap();
    let unpack = |folder: &Path| Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(folder).status().unwrap();
    assert!(unpack(folder.path()).success());
    for (name, contents) in &files {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), *contents);
    }
}
