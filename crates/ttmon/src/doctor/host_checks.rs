//! Checks of the machine, of ttmon and of tt-metal.

use super::Findings;
use super::check::DoctorCheck;
use crate::version::RECOGNISED;
use model::Bytes;
use show::text::count;
use std::time::Duration;
use watch::Iommu;
use watch::client::program;
use watch::duration;

pub fn hugepages(found: &Findings) -> DoctorCheck {
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

pub fn shm(found: &Findings) -> DoctorCheck {
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

pub fn tracking(found: &Findings) -> DoctorCheck {
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

pub fn agent(found: &Findings) -> DoctorCheck {
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

pub fn service(found: &Findings) -> DoctorCheck {
    const NAME: &str = "service";
    match &found.service {
        super::ServiceFound::NotAsked => {
            DoctorCheck::not_applicable(NAME, "not asked: --service off, or not this machine")
        }
        super::ServiceFound::Absent => DoctorCheck::not_applicable(NAME, "no service runs; ttmon reads directly"),
        super::ServiceFound::Answers { program, .. } => DoctorCheck::ok(NAME, format!("{program} answers")),
        super::ServiceFound::Silent { place, reason } => {
            let socket = found.setup.service_socket.filter(|_| place == "/run/ttmon/ttmon.sock");
            let is_closed = socket.is_some_and(|socket| !socket.allows(&found.setup.user));
            let fix =
                if is_closed { "sudo chmod 666 /run/ttmon/ttmon.sock" } else { "sudo systemctl restart ttmon.service" };
            DoctorCheck::warning(NAME, reason.clone(), fix).at(place.clone())
        }
    }
}

pub fn black_box(found: &Findings) -> DoctorCheck {
    const NAME: &str = "black-box";
    /// Then it should have been written, several times.
    const LATE: Duration = Duration::from_secs(60);
    let Some(found_box) = &found.black_box else {
        let what = "off: `ttmon serve --black-box DIR` keeps the last days";
        return DoctorCheck::not_applicable(NAME, what);
    };
    let (folder, size) = (found_box.folder.display().to_string(), Bytes(found_box.bytes));
    let (is_served, is_kept) = (found.service.answers(), found.service.black_box().is_some());
    match &found_box.ages {
        Err(why) => DoctorCheck::not_applicable(NAME, why.clone()).at(folder),
        &Ok((first, last)) if is_served && !is_kept => {
            let (first, last) = (duration::text(first), duration::text(last));
            let what = format!("off: the service keeps none now; {size} are from {first} ago until {last} ago");
            DoctorCheck::not_applicable(NAME, what).at(folder)
        }
        &Ok((_, last)) if is_kept && last > LATE => {
            let what = format!("nothing was written for {}: the service's log says why", duration::text(last));
            DoctorCheck::warning(NAME, what, "sudo systemctl restart ttmon.service").at(folder)
        }
        &Ok((first, last)) => {
            let end = if last > LATE { format!("until {} ago", duration::text(last)) } else { "until now".into() };
            DoctorCheck::ok(NAME, format!("{size}, from {} ago {end}", duration::text(first))).at(folder)
        }
    }
}

pub fn service_version(found: &Findings) -> DoctorCheck {
    const NAME: &str = "service-version";
    match &found.service {
        super::ServiceFound::Answers { program: other, .. } if *other == program() => {
            DoctorCheck::ok(NAME, format!("the same as this program, {other}"))
        }
        super::ServiceFound::Answers { program: other, .. } => {
            let what = format!("the service is {other}, this program is {}", program());
            DoctorCheck::warning(NAME, what, "sudo systemctl restart ttmon.service")
        }
        _ => DoctorCheck::not_applicable(NAME, "no service answers"),
    }
}

pub fn other_users(found: &Findings) -> DoctorCheck {
    const NAME: &str = "other-users";
    let is_served = found.service.answers();
    match (found.setup.user.reads_other_processes, is_served) {
        (true, _) => DoctorCheck::ok(NAME, "exact memory of all users' processes can be read"),
        (false, true) => DoctorCheck::ok(NAME, "the service reads the processes of all users"),
        (false, false) => {
            let what = "exact memory of other users' processes cannot be read without root or the service";
            DoctorCheck::warning(NAME, what, START_SERVICE).at("/proc/PID/fd")
        }
    }
}

pub fn configuration(found: &Findings) -> DoctorCheck {
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
pub fn clock(found: &Findings) -> DoctorCheck {
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
