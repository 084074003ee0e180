//! Nothing opens a device: proven with strace on every form of output.

use crate::support::{Machine, TTMON, needs};
use sim::tree::Chip;
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The system calls of a run that name a file.
fn trace(arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-y", "-s", "4096", "-e", "trace=%file,%desc", "-o"])
        .arg(&log)
        .arg(TTMON)
        .args(arguments);
    let status = strace.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0), "{arguments:?}");
    String::from_utf8_lossy(&std::fs::read(log).unwrap()).lines().map(str::to_owned).collect()
}

#[test]
fn no_run_opens_a_device_or_a_file_for_writing() {
    let test = "no_run_opens_a_device_or_a_file_for_writing";
    if !needs::has(test, &["strace"]) {
        return;
    }
    // A process holds the device, as a workload does: its open files must not lead us to open it either.
    let machine = Machine::with(&[Chip::p150a(0), Chip::n300(1), Chip::p300a(2), Chip::p300a(3)]);
    let node = std::fs::File::open(machine.0.path().join("dev/tenstorrent/0")).unwrap();
    let holder = Holder(Command::new("sleep").arg("600").stdin(node).spawn().unwrap());
    machine.set_pids(0, &[holder.0.id()]);
    machine.open(holder.0.id(), 3, 0, &["drm-client-id: 1", "drm-memory-dram: 7 KiB"]);
    let old_driver = Machine::with(&[Chip { pids: None, ..Chip::p150a(0) }]);
    let _ = std::fs::remove_dir_all(old_driver.0.path().join("proc"));
    let root = machine.root();
    let old = vec!["smi", "--root", old_driver.root(), "--json"];
    let mut runs = vec![old.clone()];
    for form in [
        &["--json"][..],
        &["--tt-smi"],
        &["-q"],
        &["-L"],
        &[],
        &["--query-device=index,name"],
        &["--query-processes=pid"],
        &["--json", "--loop-ms", "20", "-c", "3"],
        &["dmon", "-c", "2", "-d", "0.02"],
        &["pmon", "-c", "2", "-d", "0.02"],
    ] {
        runs.push([&["smi", "--root", root], form].concat());
    }
    // Heartbeats of a folder stand still: these chips have none.
    let quiet = Machine::with(&[Chip { heartbeat: None, ..Chip::p150a(0) }]);
    runs.extend(["health", "doctor"].map(|command| vec![command, "--root", quiet.root()]));
    for arguments in runs {
        let calls = trace(&arguments);
        assert!(calls.len() > 50, "{arguments:?}: {calls:?}");
        for call in calls.iter().filter(|call| call.contains("open")) {
            let target = call.split('"').nth(1).unwrap_or_default();
            let node = Path::new(target).parent().is_some_and(|parent| parent.ends_with("dev/tenstorrent"));
            assert!(!target.contains("kmsg"), "{arguments:?} opens the kernel's log unasked: {call}");
            let below = call.contains("/dev/tenstorrent>, \"");
            assert!(!node && !below, "{arguments:?} opens a device: {call}");
            // Where the driver lists the holders, nobody else is looked at.
            let process = target.strip_prefix("/proc/").and_then(|rest| rest.split('/').next()?.parse::<u32>().ok());
            let stranger = process.is_some_and(|pid| pid != holder.0.id());
            assert!(!stranger || arguments == old, "{arguments:?} looks at a process that holds no device: {call}");
            let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
            assert!(!writes, "{arguments:?} opens a file for writing: {call}");
        }
        for call in &calls {
            let name = call.split_whitespace().nth(1).unwrap_or_default();
            let changes = [
                "unlink", "rename", "mkdir", "chmod", "chown", "truncate", "symlink", "link(", "linkat", "mknod",
                "ioctl(3",
            ];
            assert!(!changes.iter().any(|change| name.starts_with(change)), "{arguments:?} changes something: {call}");
        }
    }
}
