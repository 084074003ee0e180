//! `ttmon serve --black-box`: what the service wrote can be read, whatever ended it, and whatever the disk did.

use crate::support::needs::not_run;
use crate::support::service::{Service, wait_for};
use crate::support::{Machine, TTMON, run, ttmon};
use model::{LogEntry, Timestamp};
use rustix::process::Signal;
use sim::tree::Chip;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use watch::record::Recording;

fn machine() -> Machine {
    Machine::with(&[Chip::p150a(0), Chip::p150b(1)])
}

fn entries(folder: &Path) -> Vec<LogEntry> {
    let mut entries = Vec::new();
    let recording = Recording::open(folder).unwrap();
    recording.each_entry(Timestamp(0), Timestamp(i64::MAX), |entry| entries.push(entry));
    entries
}

fn starts(folder: &Path) -> Vec<Option<bool>> {
    let start = |entry: LogEntry| match entry {
        LogEntry::Start(start) => {
            assert!(start.boot_id.is_some_and(|id| id.len() == 36));
            Some(start.ended_well)
        }
        _ => None,
    };
    entries(folder).into_iter().filter_map(start).collect()
}

/// A service that keeps a black box in a folder, and has written to it.
fn service(folder: &Path, options: &[&str]) -> Service {
    let before = Recording::open(folder).map_or(0, |recording| recording.len());
    let options = [&["--black-box", folder.to_str().unwrap()], options].concat();
    let service = Service::start_with(machine(), &options);
    wait_for(|| Recording::open(folder).is_ok_and(|recording| recording.len() > before), || service.log());
    service
}

#[test]
fn what_ended_the_service_is_in_the_log_and_the_last_seconds_are_kept_at_sigterm() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("state/black-box");
    let mut first = service(&folder, &[]);
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let last = || Timestamp(Recording::open(&folder).unwrap().span().1.0);
    let written = last();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(last(), written, "it waits for more");
    let began = std::time::Instant::now();
    assert!(first.terminate().success());
    assert!(began.elapsed().as_secs_f64() < 2.0, "{:?}", began.elapsed());
    assert!(last().0 >= written.0 + 1500, "what was pending is written at the end");
    let mut second = service(&folder, &[]);
    second.kill();
    let mut third = service(&folder, &[]);
    third.terminate();
    assert_eq!(starts(&folder), [None, Some(true), Some(false)]);
    // And the devices that were not well from the start.
    let cut = place.path().join("piece.ttmon");
    let out = cut.to_str().unwrap();
    let black_box = folder.to_str().unwrap();
    let piece = ttmon(&["record", "--black-box", black_box, "--from", "1h ago", "--to", "now", "-o", out]);
    assert_eq!(piece.code, Some(0), "{}", piece.err);
    let (mut whole, mut copy) = (Recording::open(&folder).unwrap(), Recording::open(&cut).unwrap());
    assert_eq!(copy.len(), whole.len());
    assert_eq!(copy.snapshot(0).unwrap(), whole.snapshot(0).unwrap());
    assert_eq!(entries(&cut), entries(&folder));
    assert!(piece.err.starts_with(&format!("{} samples in ", whole.len())), "{}", piece.err);
    for words in [&["--sim"][..], &["--for", "1s"]] {
        let refused = ttmon(&[&["record", "--from", "1h ago", "-o", out][..], words].concat());
        assert_eq!(refused.code, Some(2), "{words:?}: {}", refused.err);
    }
    let nothing = ttmon(&["record", "--black-box", black_box, "--to", "2020-01-01", "-o", out]);
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.err.contains("nothing was recorded from"), "{}", nothing.err);
}

#[test]
fn a_second_service_goes_on_without_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let first = service(place.path(), &[]);
    let second = Service::start_with(machine(), &["--black-box", place.path().to_str().unwrap()]);
    let says_so = "event=black-box-not-written";
    wait_for(|| second.log().contains(says_so), || second.log());
    assert!(second.log().contains("another process keeps its black box there"), "{}", second.log());
    let fault = "the black box is not written: another process keeps its black box there";
    wait_for(|| second.snapshot()["faults"].to_string().contains(fault), || second.snapshot()["faults"].to_string());
    assert!(!first.log().contains(says_so));
}

#[test]
fn the_commands_find_the_folder_of_the_service() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("box");
    let mut service = service(&folder, &[]);
    let socket = service.socket();
    let asked = |words: &[&str]| ttmon(&[words, &["--service", socket.to_str().unwrap()]].concat());
    let (cut, table) = (place.path().join("cut.ttmon"), place.path().join("table.csv"));
    let (cut, table) = (cut.to_str().unwrap(), table.to_str().unwrap());
    for words in [
        &["record", "--from", "1m ago", "-o", cut][..],
        &["export", "--from", "1m ago", "-o", table],
        &["compare", "@1m ago..now", "@1m ago..now"],
        &["why", "--json"],
    ] {
        let answer = asked(words);
        assert_eq!(answer.code, Some(0), "{words:?}: {}", answer.err);
    }
    let path = folder.to_str().unwrap();
    assert!(asked(&["why", "--json"]).out.contains(path));
    // It has no terminal, and so shows nothing: but the black box is found first.
    let top = asked(&["top", "--at", "now"]);
    assert!(top.err.contains("terminal"), "{}", top.err);
    let doctor = || asked(&["doctor", "--json"]).out;
    let line = |text: String| text.split('}').find(|check| check.contains("\"black-box\"")).unwrap().to_owned();
    assert!(line(doctor()).contains(path) && !line(doctor()).contains("off"), "{}", line(doctor()));
    // The named folder is read, whatever the service says.
    let other = place.path().join("other");
    let named = asked(&["why", "--black-box", other.to_str().unwrap()]);
    assert_eq!(named.code, Some(2));
    assert_eq!(named.err, format!("error: {}: there is no such file\n", other.display()));
    // The one that the service names may be out of sight, as in a container of its own.
    std::fs::rename(&folder, &other).unwrap();
    let absent =
        format!("error: the black box should be in {path}, which is not there: name its folder with --black-box DIR\n");
    assert_eq!(asked(&["why"]).err, absent);
    std::fs::rename(&other, &folder).unwrap();
    service.terminate();
}

#[test]
fn a_folder_that_the_user_may_not_read_is_named_with_what_to_do() {
    use rustix::process::geteuid;
    let place = tempfile::tempdir().unwrap();
    let closed = place.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = closed.to_str().unwrap();
    let mut command = match geteuid().is_root() {
        true => Command::new("setpriv"),
        false => Command::new(TTMON),
    };
    if geteuid().is_root() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", TTMON]);
    }
    let refused = run(command.args(["record", "--black-box", path, "--from", "1h ago", "-o", "/dev/null"]));
    let why = format!(
        "error: you may not read the black box in {path}: use sudo, or let all users: sudo chmod -R a+rX {path}\n"
    );
    assert_eq!((refused.code, refused.err), (Some(4), why));
}

#[test]
fn without_a_service_the_configured_folder_is_read() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("box");
    service(&folder, &[]).terminate();
    let home = place.path().join("config/ttmon");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), format!("[serve]\nblack_box = {:?}\n", folder.to_str().unwrap())).unwrap();
    let mut why = Command::new(TTMON);
    let why = run(why.args(["why", "--json", "--service", "off"]).env("XDG_CONFIG_HOME", place.path().join("config")));
    assert_eq!(why.code, Some(0), "{}", why.err);
    assert!(why.out.contains(folder.to_str().unwrap()), "{}", why.out);
}

#[test]
fn the_configuration_names_a_folder_or_switches_it_off() {
    let place = tempfile::tempdir().unwrap();
    let (config, folder) = (place.path().join("config.toml"), place.path().join("box"));
    let text = format!("[serve]\nblack_box = {:?}\nblack_box_mib = 8\n", folder.to_str().unwrap());
    std::fs::write(&config, text).unwrap();
    let options = ["--config", config.to_str().unwrap()];
    let service = Service::start_with(machine(), &options);
    wait_for(|| Recording::open(&folder).is_ok(), || service.log());
    assert!(service.log().contains("event=black-box ") && service.log().contains("mib=8"), "{}", service.log());
    drop(service);
    std::fs::write(&config, "[serve]\nblack_box = false\n").unwrap();
    let other = place.path().join("other");
    let service = Service::start_with(machine(), &[&options[..], &["--black-box", other.to_str().unwrap()]].concat());
    assert!(!service.log().contains("black-box") && !other.exists(), "{}", service.log());
}

/// Runs a service with a black box on a disk of its own, of 64 KiB. None where that is not possible.
fn on_small_disk(mount: &str, then: &str) -> Option<(TempDir, std::process::Child)> {
    let can = Command::new("unshare").args(["-Urm", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "mkdir box && mount -t tmpfs -o {mount} none box && {then}; exec {TTMON} serve --sim=p150,idle --socket $PWD/s \
         --poc-socket off --listen off --black-box $PWD/box 2> log"
    );
    let mut command = Command::new("unshare");
    let child = command.args(["-Urm", "sh", "-c", &script]).current_dir(place.path()).spawn().unwrap();
    Some((place, child))
}

#[test]
fn a_full_disk_costs_samples_and_nothing_else() {
    let test = "a_full_disk_costs_samples_and_nothing_else";
    let fill = "head -c 1M /dev/zero > box/other 2> /dev/null";
    let Some((place, mut child)) = on_small_disk("size=64k", fill) else {
        return not_run(test, "there are no user namespaces");
    };
    let log = || std::fs::read_to_string(place.path().join("log")).unwrap_or_default();
    wait_for(|| log().contains("event=black-box-not-written"), log);
    assert!(log().contains("No space left on device"), "{}", log());
    let root = format!("/proc/{}/root", child.id());
    let folder = Path::new(&root).join(place.path().join("box").strip_prefix("/").unwrap());
    let faults = || {
        let socket = place.path().join("s");
        run(Command::new(TTMON).args(["smi", "--json", "--service", socket.to_str().unwrap()])).out
    };
    wait_for(|| faults().contains("the black box is not written: No space left on device"), faults);
    std::fs::remove_file(folder.join("other")).unwrap();
    wait_for(|| log().contains("event=black-box-goes-on"), log);
    assert!(!Recording::open(&folder).unwrap().is_empty());
    assert_eq!(log().matches("event=black-box-not-written").count(), 1, "{}", log());
    end(&mut child);
}

#[test]
fn a_read_only_disk_is_one_line_of_the_log() {
    let test = "a_read_only_disk_is_one_line_of_the_log";
    let Some((place, mut child)) = on_small_disk("ro", "true") else {
        return not_run(test, "there are no user namespaces");
    };
    let log = || std::fs::read_to_string(place.path().join("log")).unwrap_or_default();
    wait_for(|| log().contains("event=black-box-not-written"), log);
    assert!(log().contains("Read-only file system"), "{}", log());
    end(&mut child);
    assert_eq!(log().matches("event=black-box-not-written").count(), 1, "{}", log());
    assert!(log().contains("event=stopping"), "{}", log());
}

fn end(child: &mut std::process::Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    child.wait().unwrap();
}
