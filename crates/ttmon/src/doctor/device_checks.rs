//! Checks of the driver and the devices.

use super::Findings;
use super::check::DoctorCheck;
use super::tested::{self, DATE, SETS};
use model::{Arch, Device, DeviceId, State, Version};
use show::text::count;
use watch::{Iommu, PciFunction};

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

pub fn driver(found: &Findings) -> DoctorCheck {
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

pub fn devices(found: &Findings) -> DoctorCheck {
    const NAME: &str = "devices";
    let functions = &found.setup.functions;
    let unbound: Vec<&PciFunction> = functions.iter().filter(|function| function.driver.is_none()).collect();
    let others: Vec<&PciFunction> = functions
        .iter()
        .filter(|function| function.driver.as_ref().is_some_and(|name| name != "tenstorrent"))
        .collect();
    match (&functions[..], &unbound[..]) {
        ([], _) => DoctorCheck::problem(
            NAME,
            "no Tenstorrent device is on the PCI bus: check the slot and the power cables",
            "echo 1 | sudo tee /sys/bus/pci/rescan",
        )
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

pub fn permissions(found: &Findings) -> DoctorCheck {
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

pub fn firmware(found: &Findings) -> DoctorCheck {
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

pub fn versions(found: &Findings) -> DoctorCheck {
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

pub fn telemetry(found: &Findings) -> DoctorCheck {
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
        all => DoctorCheck::ok(NAME, count(all as u64, "device reports", "devices report")),
    }
}

pub fn link(found: &Findings) -> DoctorCheck {
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

pub fn iommu(found: &Findings) -> DoctorCheck {
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

fn addresses(functions: &[&PciFunction]) -> String {
    functions.iter().map(|function| function.address.to_string()).collect::<Vec<_>>().join(", ")
}
