//! The checks: pure functions of what was found. Each says what is wrong, where, and the command that puts it right.

use super::Findings;
use super::check::DoctorCheck;
use super::tested::{self, DATE, SETS};
use crate::version::RECOGNISED;
use model::{Arch, Bytes, Device, DeviceId, State, Version};
use show::text::count;
use watch::client::program;
use watch::{Iommu, PciFunction};

/// All checks, in the order in which they are printed.
pub const CHECKS: [fn(&Findings) -> DoctorCheck; 17] = [
    driver,
    devices,
    permissions,
    firmware,
    versions,
    telemetry,
    link,
    iommu,
    hugepages,
    shm,
    tracking,
    agent,
    service,
    service_version,
    other_users,
    configuration,
    clock,
];

const UPGRADE_DRIVER: &str =
    "sudo apt install --only-upgrade tenstorrent-dkms && sudo modprobe -r tenstorrent && sudo modprobe tenstorrent";

/// What a driver has from a version on.
const SINCE: [((u32, u32), &str); 5] = [
    ((1, 28), "telemetry in sysfs"),
    ((2, 0), "PCIe traffic"),
    ((2, 5), "the list of processes"),
    ((2, 7), "heartbeats"),
    ((2, 9), "limits of Blackhole, and readings that are safe during a reset"),
];

fn driver(found: &Findings) -> DoctorCheck {
    const NAME: &str = "driver";
    const PLACE: &str = "/sys/module/tenstorrent/version";
    if !found.setup.driver_is_loaded {
        return DoctorCheck::problem(NAME, "the tenstorrent driver is not loaded", "sudo modprobe tenstorrent")
            .at("/sys/module/tenstorrent");
    }
    let Some(version) = &found.snapshot.host.driver_version else {
        return DoctorCheck::warning(NAME, "loaded, and too old to give its version", UPGRADE_DRIVER).at(PLACE);
    };
    let mut numbers = version.split(['.', '-']).map(|number| number.parse().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else {
        return DoctorCheck::not_applicable(NAME, format!("version {version:?} is not known")).at(PLACE);
    };
    let missing: Vec<&str> = SINCE.iter().filter(|(since, _)| (major, minor) < *since).map(|(_, what)| *what).collect();
    match &missing[..] {
        [] => DoctorCheck::ok(NAME, format!("version {version}")).at(PLACE),
        _ => DoctorCheck::warning(NAME, format!("version {version} lacks {}", missing.join(", ")), UPGRADE_DRIVER)
            .at(PLACE),
    }
}

fn devices(found: &Findings) -> DoctorCheck {
    const NAME: &str = "devices";
    let functions = &found.setup.functions;
    let unbound: Vec<&PciFunction> = functions.iter().filter(|function| function.driver.is_none()).collect();
    let others: Vec<&PciFunction> = functions
        .iter()
        .filter(|function| function.driver.as_ref().is_some_and(|name| name != "tenstorrent"))
        .collect();
    match (&functions[..], &unbound[..]) {
        ([], _) => DoctorCheck::problem(NAME, "no Tenstorrent device is on the PCI bus", "lspci -d 1e52:")
            .at("/sys/bus/pci/devices"),
        (_, [_, ..]) if !found.setup.driver_is_loaded => DoctorCheck::not_applicable(
            NAME,
            format!("{} wait for the driver", count(functions.len() as u64, "device", "devices")),
        ),
        (_, [first, ..]) => {
            let fixes = unbound
                .iter()
                .map(|function| format!("echo {} | sudo tee /sys/bus/pci/drivers/tenstorrent/bind", function.address));
            DoctorCheck::problem(
                NAME,
                format!("no driver is bound to {}", addresses(&unbound)),
                fixes.collect::<Vec<_>>().join(" && "),
            )
            .at(format!("/sys/bus/pci/devices/{}", first.address))
        }
        _ if !others.is_empty() => {
            let what = others
                .iter()
                .map(|function| format!("{} by {}", function.address, function.driver.as_deref().unwrap_or_default()));
            DoctorCheck::not_applicable(
                NAME,
                format!("used by another driver: {}", what.collect::<Vec<_>>().join(", ")),
            )
        }
        _ => DoctorCheck::ok(
            NAME,
            format!("{}, bound to the driver", count(functions.len() as u64, "device", "devices")),
        ),
    }
}

fn permissions(found: &Findings) -> DoctorCheck {
    const NAME: &str = "permissions";
    let nodes: Vec<_> =
        found.setup.functions.iter().filter_map(|function| Some((function.number?, function.node))).collect();
    let list =
        |numbers: Vec<u32>| numbers.iter().map(|n| format!("/dev/tenstorrent/{n}")).collect::<Vec<_>>().join(", ");
    let missing: Vec<u32> = nodes.iter().filter(|(_, node)| node.is_none()).map(|(n, _)| *n).collect();
    let closed = |(n, node): &(u32, Option<watch::Access>)| {
        node.is_some_and(|node| !node.allows(&found.setup.user)).then_some(*n)
    };
    let closed: Vec<u32> = nodes.iter().filter_map(closed).collect();
    if nodes.is_empty() {
        DoctorCheck::not_applicable(NAME, "there is no device with a driver")
    } else if !closed.is_empty() {
        let rule = r#"echo 'SUBSYSTEM=="tenstorrent", MODE="0666"' | sudo tee /etc/udev/rules.d/50-tenstorrent.rules"#;
        let apply = "sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=tenstorrent";
        let what = format!("you may not open {}, so programs that use it fail", list(closed));
        DoctorCheck::problem(NAME, what, format!("{rule} && {apply}")).at("/dev/tenstorrent")
    } else if !missing.is_empty() {
        let what = format!("{} is missing; a container needs --device /dev/tenstorrent", list(missing));
        DoctorCheck::warning(NAME, what, "sudo udevadm trigger --action=add --subsystem-match=tenstorrent")
            .at("/dev/tenstorrent")
    } else {
        DoctorCheck::ok(NAME, format!("you may open {}", count(nodes.len() as u64, "device", "devices")))
    }
}

/// The chips with a firmware that is known.
fn bundles(found: &Findings) -> Vec<(&Device, Arch, Version)> {
    let local = found.snapshot.devices.iter().filter(|device| matches!(device.id, DeviceId::Local(_)));
    local
        .filter_map(|device| Some((device, device.arch?, Version::parse(device.firmware.bundle.as_deref()?)?)))
        .collect()
}

fn firmware(found: &Findings) -> DoctorCheck {
    const NAME: &str = "firmware";
    const PLACE: &str = "tt_fw_bundle_ver in /sys/class/tenstorrent";
    let all = bundles(found);
    let flash = format!("tt-flash flash --fw-tar fw_pack-{}.fwbundle", SETS[0].firmware);
    let is_old = |(_, arch, version): &&(&Device, Arch, Version)| version.release() < tested::oldest_firmware(*arch);
    if let Some((device, arch, version)) = all.iter().find(is_old) {
        let (major, minor) = tested::oldest_firmware(*arch);
        let what =
            format!("bundle {version} on device {} is older than {major}.{minor}, which tt-metal needs", device.id);
        return DoctorCheck::problem(NAME, what, flash).at(PLACE);
    }
    let differing = |arch: Arch| {
        let mut versions: Vec<String> =
            all.iter().filter(|(_, other, _)| *other == arch).map(|(_, _, version)| version.to_string()).collect();
        versions.sort();
        versions.dedup();
        versions
    };
    let (wormhole, blackhole) = (differing(Arch::Wormhole), differing(Arch::Blackhole));
    for versions in [&wormhole, &blackhole] {
        if versions.len() > 1 {
            let what = format!("devices have different bundles: {}", versions.join(", "));
            return DoctorCheck::warning(NAME, what, flash).at(PLACE);
        }
    }
    match all.len() {
        0 => DoctorCheck::not_applicable(NAME, "no device gives its version"),
        with_version => {
            let versions: Vec<&str> = wormhole.iter().chain(&blackhole).map(String::as_str).collect();
            DoctorCheck::ok(
                NAME,
                format!("bundle {} on {}", versions.join(" and "), count(with_version as u64, "device", "devices")),
            )
            .at(PLACE)
        }
    }
}

fn versions(found: &Findings) -> DoctorCheck {
    const NAME: &str = "tested-set";
    let all = bundles(found);
    let (Some(driver), Some((_, _, bundle))) = (&found.snapshot.host.driver_version, all.first()) else {
        return DoctorCheck::not_applicable(NAME, "driver or firmware is unknown");
    };
    let is_everywhere = |set: &&tested::TestedSet| all.iter().all(|(_, _, version)| tested::is_firmware(set, *version));
    let here = format!("driver {driver} with firmware {bundle}");
    match SETS.iter().filter(is_everywhere).find(|set| set.driver == driver) {
        Some(set) => DoctorCheck::ok(NAME, format!("{here} was tested on {} with tt-metal {}", set.date, set.metal)),
        None => DoctorCheck::not_applicable(NAME, format!("{here} is not in the table of {DATE}")),
    }
}

fn telemetry(found: &Findings) -> DoctorCheck {
    const NAME: &str = "telemetry";
    let local: Vec<&Device> =
        found.snapshot.devices.iter().filter(|device| matches!(device.id, DeviceId::Local(_))).collect();
    let wrong: Vec<&&Device> =
        local.iter().filter(|device| !matches!(device.state, State::Ok | State::Resetting | State::NoDriver)).collect();
    let numbers =
        |devices: &[&&Device]| devices.iter().map(|device| device.id.to_string()).collect::<Vec<_>>().join(",");
    if !wrong.is_empty() {
        let what: Vec<String> =
            wrong.iter().map(|device| format!("device {}: {}", device.id, device.state.name())).collect();
        let fix = format!("tt-smi -r {}", numbers(&wrong));
        return DoctorCheck::problem(NAME, what.join(", "), fix).at("/sys/class/tenstorrent");
    }
    match local.len() {
        0 => DoctorCheck::not_applicable(NAME, "there is no device with a driver"),
        all if local.iter().any(|device| device.state == State::Resetting) => DoctorCheck::not_applicable(
            NAME,
            format!("a reset is in progress on some of {}", count(all as u64, "device", "devices")),
        ),
        all => DoctorCheck::ok(NAME, format!("{} report", count(all as u64, "device", "devices"))),
    }
}

fn link(found: &Findings) -> DoctorCheck {
    const NAME: &str = "pcie-link";
    let known: Vec<&Device> =
        found.snapshot.devices.iter().filter(|device| device.pcie.is_degraded().is_some()).collect();
    let slow: Vec<&&Device> = known.iter().filter(|device| device.link_is_degraded()).collect();
    let shown = |generation: Option<u8>, width: Option<u8>| {
        let text = |number: Option<u8>| number.map_or_else(|| "?".into(), |number| number.to_string());
        format!("Gen{} x{}", text(generation), text(width))
    };
    if let [first, ..] = &slow[..] {
        let what = slow.iter().map(|device| {
            let pcie = &device.pcie;
            let (now, most) = (shown(pcie.generation, pcie.width), shown(pcie.max_generation, pcie.max_width));
            format!("device {} runs at {now}, slot and card support {most}", device.id)
        });
        let address = first.pci_address.as_ref().map_or_else(String::new, ToString::to_string);
        let fix =
            format!("sudo lspci -vv -s {address} # compare LnkCap with LnkSta, then power off and reseat the card");
        return DoctorCheck::warning(NAME, what.collect::<Vec<_>>().join("; "), fix)
            .at(format!("/sys/bus/pci/devices/{address}/current_link_speed"));
    }
    match known.len() {
        0 => DoctorCheck::not_applicable(NAME, "no device gives its link"),
        all => DoctorCheck::ok(NAME, format!("{} at full speed and width", count(all as u64, "device", "devices"))),
    }
}

fn iommu(found: &Findings) -> DoctorCheck {
    const NAME: &str = "iommu";
    let functions = &found.setup.functions;
    let untranslated: Vec<&PciFunction> =
        functions.iter().filter(|function| function.iommu != Iommu::Translates).collect();
    let is_blackhole = |function: &&&PciFunction| function.arch == Some(Arch::Blackhole);
    let blackholes: Vec<&PciFunction> = untranslated.iter().filter(is_blackhole).copied().collect();
    if functions.is_empty() {
        DoctorCheck::not_applicable(NAME, "there is no device")
    } else if untranslated.is_empty() {
        DoctorCheck::ok(NAME, "translates the addresses of all devices")
    } else if let [first, ..] = &blackholes[..] {
        let how = if first.iommu == Iommu::Passthrough { "passes all addresses through" } else { "is off" };
        let what = format!(
            "{how} for {}: tt-metal's profiler of Blackhole needs it, and so does utilization",
            addresses(&blackholes)
        );
        let fix = r#"sudo sed -i 's|^GRUB_CMDLINE_LINUX="|&intel_iommu=on amd_iommu=on iommu=nopt |' /etc/default/grub && sudo update-grub && sudo reboot"#;
        DoctorCheck::warning(NAME, what, fix).at(format!("/sys/bus/pci/devices/{}/iommu_group", first.address))
    } else {
        DoctorCheck::ok(NAME, "is off, so huge pages are needed")
    }
}

fn hugepages(found: &Findings) -> DoctorCheck {
    const NAME: &str = "hugepages";
    const COUNT: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    let needing = found.setup.functions.iter().filter(|function| function.iommu != Iommu::Translates).count() as u64;
    let Some(pages) = &found.setup.hugepages else {
        return DoctorCheck::not_applicable(NAME, "this kernel has no huge pages of 1 GiB");
    };
    if needing == 0 {
        return DoctorCheck::not_applicable(NAME, "not needed: the IOMMU translates addresses, or there is no device");
    }
    let mount =
        "sudo mkdir -p /dev/hugepages-1G && sudo mount -t hugetlbfs -o pagesize=1G,mode=0777 none /dev/hugepages-1G";
    if pages.total < needing {
        let what = format!("{} of the {needing} huge pages of 1 GiB that {needing} devices need", pages.total);
        let fix = format!("echo {needing} | sudo tee {COUNT}");
        let fix = if pages.mounted_at.is_none() { format!("{fix} && {mount}") } else { fix };
        return DoctorCheck::problem(NAME, what, fix).at(COUNT);
    }
    match &pages.mounted_at {
        None => {
            let what = format!("{} huge pages of 1 GiB, which are not mounted", pages.total);
            DoctorCheck::problem(NAME, what, mount).at("/proc/self/mounts")
        }
        Some(place) => DoctorCheck::ok(NAME, format!("{} of 1 GiB, mounted at {place}", pages.total)),
    }
}

fn shm(found: &Findings) -> DoctorCheck {
    const NAME: &str = "shared-memory";
    let Some(shm) = &found.setup.shm else {
        return DoctorCheck::problem(NAME, "/dev/shm is missing", "sudo mkdir -m 1777 /dev/shm").at("/dev/shm");
    };
    let free = Bytes(shm.free_bytes);
    if !shm.access.allows(&found.setup.user) {
        let what = "you may not write to it: tt-metal cannot publish its memory";
        DoctorCheck::problem(NAME, what, "sudo chmod 1777 /dev/shm").at("/dev/shm")
    } else if shm.free_bytes < 64 << 20 && shm.free_bytes < shm.total_bytes / 2 {
        let what = format!("only {free} is free: programs on devices may fail");
        DoctorCheck::problem(NAME, what, "sudo mount -o remount,size=75% /dev/shm").at("/dev/shm")
    } else {
        DoctorCheck::ok(NAME, format!("{free} free")).at("/dev/shm")
    }
}

/// The variable with which tt-metal counts no memory in `/dev/shm`.
pub const TRACKING_DISABLED: &str = "TT_METAL_SHM_TRACKING_DISABLED";

fn tracking(found: &Findings) -> DoctorCheck {
    const NAME: &str = "shm-tracking";
    let super::ShmTracking { is_off_here, off, on, unknown } = &found.tracking;
    let rest = if *unknown > 0 {
        format!("; of {} it is unknown", count(*unknown as u64, "process", "processes"))
    } else {
        String::new()
    };
    let memory = "the memory of such programs is unknown, unless `ttmon run` starts them";
    if *is_off_here {
        let what = format!("{TRACKING_DISABLED} is set: {memory}");
        DoctorCheck::warning(NAME, what, format!("unset {TRACKING_DISABLED}")).at("your environment")
    } else if let [first, ..] = &off[..] {
        let pids: Vec<String> = off.iter().map(u32::to_string).collect();
        let what = format!("{TRACKING_DISABLED} is set in process {}: {memory}{rest}", pids.join(", "));
        DoctorCheck::warning(NAME, what, format!("unset {TRACKING_DISABLED} # and start them again"))
            .at(format!("/proc/{first}/environ"))
    } else if on + unknown == 0 {
        DoctorCheck::ok(NAME, "not switched off here")
    } else {
        DoctorCheck::ok(
            NAME,
            format!("not switched off here, nor in {}{rest}", count(*on as u64, "process", "processes")),
        )
    }
}

fn agent(found: &Findings) -> DoctorCheck {
    const NAME: &str = "agent";
    let Some(python) = &found.python else { return DoctorCheck::not_applicable(NAME, "there is no python3") };
    let prefix = python.prefix.display();
    let Some(version) = &python.ttnn else {
        return DoctorCheck::not_applicable(NAME, format!("the Python in {prefix} has no ttnn"));
    };
    let named = version.as_ref().map_or_else(|| "ttnn".into(), |version| format!("ttnn {version}"));
    let mut numbers = version.iter().flat_map(|version| version.split('.')).map(|number| number.parse::<u32>().ok());
    let release = numbers.next().flatten().zip(numbers.next().flatten());
    if !python.has_agent {
        let what =
            format!("programs of {named} in {prefix} load no agent: only `ttmon run` counts their memory exactly");
        return DoctorCheck::warning(NAME, what, "pip install ttmon-*.whl").at(python
            .prefix
            .join("lib")
            .display()
            .to_string());
    }
    let (oldest, newest) = RECOGNISED;
    match release {
        Some(release) if release < oldest || release > newest => {
            let range = format!("{}.{} to {}.{}", oldest.0, oldest.1, newest.0, newest.1);
            DoctorCheck::not_applicable(
                NAME,
                format!("{named} in {prefix} is not among those that the agent recognises, {range}"),
            )
        }
        _ => DoctorCheck::ok(NAME, format!("loaded by programs of {named} in {prefix}")),
    }
}

/// Starts the service, and again after a new start of the machine.
const START_SERVICE: &str = "sudo systemctl enable --now ttmon.socket ttmon.service";

fn service(found: &Findings) -> DoctorCheck {
    const NAME: &str = "service";
    match &found.service {
        super::ServiceFound::NotAsked => {
            DoctorCheck::not_applicable(NAME, "not asked: --service off, or not this machine")
        }
        super::ServiceFound::Absent => DoctorCheck::not_applicable(NAME, "no service runs; ttmon reads directly"),
        super::ServiceFound::Answers { program } => DoctorCheck::ok(NAME, format!("{program} answers")),
        super::ServiceFound::Silent { place, reason } => {
            let socket = found.setup.service_socket.filter(|_| place == "/run/ttmon/ttmon.sock");
            let is_closed = socket.is_some_and(|socket| !socket.allows(&found.setup.user));
            let fix =
                if is_closed { "sudo chmod 666 /run/ttmon/ttmon.sock" } else { "sudo systemctl restart ttmon.service" };
            DoctorCheck::warning(NAME, reason.clone(), fix).at(place.clone())
        }
    }
}

fn service_version(found: &Findings) -> DoctorCheck {
    const NAME: &str = "service-version";
    match &found.service {
        super::ServiceFound::Answers { program: other } if *other == program() => {
            DoctorCheck::ok(NAME, format!("the same as this program, {other}"))
        }
        super::ServiceFound::Answers { program: other } => {
            let what = format!("the service is {other}, this program is {}", program());
            DoctorCheck::warning(NAME, what, "sudo systemctl restart ttmon.service")
        }
        _ => DoctorCheck::not_applicable(NAME, "no service answers"),
    }
}

fn other_users(found: &Findings) -> DoctorCheck {
    const NAME: &str = "other-users";
    let is_served = matches!(found.service, super::ServiceFound::Answers { .. });
    match (found.setup.user.reads_other_processes, is_served) {
        (true, _) => DoctorCheck::ok(NAME, "exact memory of all users' processes can be read"),
        (false, true) => DoctorCheck::ok(NAME, "the service reads the processes of all users"),
        (false, false) => {
            let what = "exact memory of other users' processes cannot be read without root or the service";
            DoctorCheck::warning(NAME, what, START_SERVICE).at("/proc/PID/fd")
        }
    }
}

fn configuration(found: &Findings) -> DoctorCheck {
    const NAME: &str = "configuration";
    let path = found.config.path.display().to_string();
    match &found.config.problems[..] {
        [] if found.config.exists => DoctorCheck::ok(NAME, "no mistakes").at(path),
        [] => DoctorCheck::not_applicable(NAME, format!("{path} is not there; the defaults are used")),
        [first, rest @ ..] if first.line == 0 => {
            let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
            DoctorCheck::problem(NAME, format!("{}{more}", first.what), format!("chmod u+r {path}")).at(path)
        }
        all => {
            let what: Vec<String> =
                all.iter().map(|problem| format!("line {}: {}", problem.line, problem.what)).collect();
            let mut lines: Vec<usize> = all.iter().map(|problem| problem.line).collect();
            lines.dedup();
            let script: Vec<String> = lines.iter().map(|line| format!("{line}d")).collect();
            DoctorCheck::problem(NAME, what.join("; "), format!("sed -i.bak '{}' {path}", script.join(";"))).at(path)
        }
    }
}

/// Values and times of other machines are compared with this one's clock.
fn clock(found: &Findings) -> DoctorCheck {
    const NAME: &str = "clock";
    const FIX: &str = "sudo timedatectl set-ntp true";
    match (found.seconds_off, found.setup.clock_is_synchronized) {
        (Some(seconds), _) if seconds.abs() > 5.0 => {
            let what = format!("samples are {seconds:.0} s off this clock: times and rates will be wrong");
            DoctorCheck::problem(NAME, what, FIX)
        }
        (_, Some(true)) => DoctorCheck::ok(NAME, "set by a time server"),
        (_, Some(false)) => {
            DoctorCheck::warning(NAME, "not set by a time server yet", FIX).at("/run/systemd/timesync/synchronized")
        }
        (_, None) => DoctorCheck::not_applicable(NAME, "not known whether a time server sets it"),
    }
}

fn addresses(functions: &[&PciFunction]) -> String {
    functions.iter().map(|function| function.address.to_string()).collect::<Vec<_>>().join(", ")
}
