//! `ttmon smi` and `ttmon mem` with the eyes of a service, and without them when it does not answer.

use crate::support::harness::{Harness, needs_root, only_child};
use crate::support::service::{Service, wait_for};
use crate::support::{Machine, run};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::process::Command;

fn machine() -> Machine {
    Machine::with(&[Chip::p150a(0), Chip::p150a(1)])
}

/// What a command prints, asking the service or reading for itself.
fn asked(service: &Service, arguments: &[&str], through_service: bool) -> Value {
    let socket = service.socket();
    let named = if through_service { socket.to_str().unwrap() } else { "off" };
    let all = [arguments, &["--json", "--root", service.machine.root(), "--service", named]].concat();
    let run = crate::support::ttmon(&all);
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {} {}", run.out, run.err))
}

/// A process that keeps a book of chip 0 and has come to rest.
fn rested(machine: &Machine, seed: u64) -> Harness {
    let mut keeper =
        Harness::start(&[], &["book", &Chip::p150a(0).unique_ids()[0].to_string(), &seed.to_string()], &[]);
    keeper.ask("go");
    std::thread::sleep(std::time::Duration::from_millis(50));
    keeper.ask("stop");
    machine.set_pids(0, &[keeper.pid]);
    keeper
}

/// Without what another moment changes.
fn at_rest(mut snapshot: Value) -> Value {
    snapshot["taken_at"] = Value::Null;
    for process in snapshot["processes"].as_array_mut().unwrap() {
        process["host_cpu_percent"] = Value::Null;
        process["host_memory_bytes"] = Value::Null;
    }
    for device in snapshot["devices"].as_array_mut().into_iter().flatten() {
        device["sample_age_seconds"] = Value::Null;
        device["pcie"]["host_to_device_bytes_per_second"] = Value::Null;
        device["pcie"]["device_to_host_bytes_per_second"] = Value::Null;
        // A single sample cannot count what has gone by.
        device["pcie"]["host_to_device_bytes_total"] = Value::Null;
        device["pcie"]["device_to_host_bytes_total"] = Value::Null;
        device["energy_joules_total"] = Value::Null;
    }
    without_ages(&mut snapshot);
    snapshot
}

fn without_ages(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(without_ages),
        Value::Object(all) => {
            all.remove("age_seconds");
            all.values_mut().for_each(without_ages);
        }
        _ => {}
    }
}

#[test]
fn smi_and_mem_say_the_same_with_a_service_and_without() {
    let machine = machine();
    let _keeper = rested(&machine, 7);
    let service = Service::start(machine);
    for arguments in [&["smi"][..], &["smi", "-i", "0"], &["mem", "--once"], &["mem", "--once", "-d", "0"]] {
        let [with, without] = [true, false].map(|service_too| at_rest(asked(&service, arguments, service_too)));
        assert!(with["processes"][0]["devices"][0]["dram_bytes"].as_u64().unwrap() > 0, "{with}");
        assert_eq!(with, without, "{arguments:?}");
    }
}

#[test]
fn through_a_service_the_buffers_of_a_busy_process_add_up_to_its_totals() {
    let machine = machine();
    let mut keeper = rested(&machine, 17);
    let service = Service::start(machine);
    keeper.ok("hurry");
    for _ in 0..20 {
        let view = asked(&service, &["mem", "--once"], true);
        let (process, buffers) = (&view["processes"][0], view["buffers"].as_array().unwrap());
        for kind in ["dram", "l1", "trace"] {
            let sum: u64 =
                buffers.iter().filter(|one| one["kind"] == kind).map(|one| one["bytes"].as_u64().unwrap()).sum();
            assert_eq!(process[format!("{kind}_bytes")], sum, "{kind}");
        }
        assert_eq!(view["chips"][0]["dram"]["used_bytes"], process["dram_used_bytes"]);
    }
}

#[test]
fn what_is_asked_for_is_as_it_is_now_and_not_as_it_was_a_second_ago() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "interval_ms = 3600000").unwrap();
    let service = Service::start_with(machine(), &["--config", config.path().to_str().unwrap()]);
    assert_eq!(asked(&service, &["smi"], true)["processes"], json!([]));
    let keeper = rested(&service.machine, 8);
    std::thread::sleep(std::time::Duration::from_millis(110));
    assert_eq!(asked(&service, &["smi"], true)["processes"][0]["pid"], json!(keeper.pid));
}

#[test]
fn only_the_service_knows_what_was_reported_and_who_has_died() {
    let service = Service::start(machine());
    let mut client = service.c();
    service.hold(0, &[client.pid]);
    client.ask("alloc 0 4096 0 65536");
    let told = asked(&service, &["mem", "--once"], true);
    assert_eq!(told["chips"][0]["dram"]["used_bytes"], 4096);
    assert_eq!(told["processes"][0]["source"], "reported");
    let buffer = &told["buffers"][0];
    assert_eq!(
        (&buffer["pid"], &buffer["bytes"], &buffer["bank_bytes"]),
        (&json!(client.pid), &json!(4096), &json!(null))
    );
    assert_eq!(asked(&service, &["smi"], true)["processes"][0]["devices"][0]["dram_bytes"], 4096);
    assert_eq!(asked(&service, &["smi"], false)["processes"][0]["devices"][0]["dram_bytes"], json!(null));
    // How it ended can be known until it is waited for.
    client.child.kill().unwrap();
    service.machine.set_pids(0, &[]);
    wait_for(|| !service.deaths().is_empty(), || service.log());
    std::thread::sleep(std::time::Duration::from_millis(110));
    let told = asked(&service, &["mem", "--once"], true);
    let death = &told["deaths"][0];
    assert_eq!(
        (&death["pid"], &death["how"], &death["dram_bytes"]),
        (&json!(client.pid), &json!("SIGKILL"), &json!(4096))
    );
    assert_eq!((&told["chips"][0]["dram"]["used_bytes"], &told["buffers"]), (&json!(0), &json!([])));
    assert_eq!(asked(&service, &["mem", "--once", "-d", "1"], true)["deaths"], json!([]));
    let socket = service.socket();
    let drawn = crate::support::ttmon(&[
        "mem",
        "--once",
        "--root",
        service.machine.root(),
        "--service",
        socket.to_str().unwrap(),
    ]);
    assert!(drawn.out.contains("Exited with device memory") && drawn.out.contains("SIGKILL"), "{}", drawn.out);
}

#[test]
fn a_client_that_reports_more_than_there_is_does_not_count() {
    let service = Service::start(machine());
    let (mut liar, mut honest) = (service.c(), service.c());
    service.hold(0, &[liar.pid, honest.pid]);
    liar.ask("alloc 0 99000000000 0 4096");
    honest.ask("alloc 0 100 0 8192");
    let told = asked(&service, &["smi"], true);
    assert_eq!(told["devices"][0]["memory"]["dram_used_bytes"], 100, "{told}");
    let faults = told["faults"].to_string();
    assert!(faults.contains("reports more DRAM than device 0 has"), "{faults}");
}

#[test]
fn a_service_that_does_not_answer_is_named_and_done_without() {
    let machine = machine();
    let keeper = rested(&machine, 9);
    let mut service = Service::start(machine);
    // The process that was started waits for the one that serves.
    let serving = only_child(service.child.id()).and_then(|pid| rustix::process::Pid::from_raw(pid as i32));
    rustix::process::kill_process(serving.unwrap(), rustix::process::Signal::STOP).unwrap();
    for command in ["smi", "mem"] {
        let told = asked(&service, &[command], true);
        assert_eq!(told["processes"][0]["pid"], json!(keeper.pid));
        let faults = told["faults"].to_string();
        assert!(
            faults.contains("the service did not complete the handshake")
                && faults.contains("reading directly instead"),
            "{faults}"
        );
    }
    service.kill();
    let told = asked(&service, &["smi"], true);
    assert_eq!(told["processes"][0]["pid"], json!(keeper.pid));
    assert!(
        told["faults"].to_string().contains("cannot connect to the service: Connection refused"),
        "{}",
        told["faults"]
    );
}

#[test]
fn a_watch_outlives_the_service_and_finds_the_next_one() {
    let machine = machine();
    let keeper = rested(&machine, 10);
    let mut service = Service::start(machine);
    let (root, socket) = (service.machine.root().to_owned(), service.socket());
    let watch = Command::new(crate::support::TTMON)
        .args(["smi", "--json", "--loop-ms", "50", "--count", "40", "--root", &root, "--service"])
        .arg(&socket)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    service.kill_and_restart();
    let output = watch.wait_with_output().unwrap();
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 40);
    assert!(lines.iter().all(|line| line["processes"][0]["pid"] == json!(keeper.pid)));
    assert_eq!(lines[39]["faults"], json!([]), "the next service is asked");
}

#[test]
fn a_user_sees_the_memory_of_others_through_roots_service_and_believes_no_stranger() {
    if !needs_root("a_user_sees_the_memory_of_others_through_roots_service_and_believes_no_stranger") {
        return;
    }
    let machine = machine();
    let keeper = rested(&machine, 11);
    let service = Service::start(machine);
    let folder = tempfile::tempdir().unwrap();
    let program = crate::support::program_for_all(folder.path());
    crate::support::program_for_all(service.machine.0.path());
    let as_nobody = |socket: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        let run = run(command.args(["smi", "--json", "--root", service.machine.root(), "--service", socket]));
        serde_json::from_str::<Value>(&run.out).unwrap_or_else(|error| panic!("{error}: {} {}", run.out, run.err))
    };
    let socket = service.socket();
    let of_keeper = |told: &Value| {
        assert_eq!(told["processes"][0]["pid"], json!(keeper.pid));
        told["processes"][0]["devices"][0]["source"].clone()
    };
    assert_eq!(of_keeper(&as_nobody("off")), Value::Null);
    assert_eq!(of_keeper(&as_nobody(socket.to_str().unwrap())), "exact");
    // The other way round: what nobody serves, root does not believe.
    let place = folder.path().join("session");
    std::fs::create_dir(&place).unwrap();
    std::os::unix::fs::chown(&place, Some(65534), Some(65534)).unwrap();
    let theirs = place.join("ttmon.sock");
    let mut child = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["serve", "--listen", "off", "--poc-socket", "off", "--root", service.machine.root(), "--socket"])
        .arg(&theirs)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| theirs.exists(), String::new);
    let told = crate::support::ttmon(&[
        "smi",
        "--json",
        "--root",
        service.machine.root(),
        "--service",
        theirs.to_str().unwrap(),
    ]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.out.contains("the service belongs to another user and is not trusted"), "{}", told.out);
}

#[test]
fn who_asks_the_service_gets_current_values_of_what_it_reads_seldom_when_idle() {
    let service = Service::start(machine());
    let folder = service.machine.0.path().join("sys/class/tenstorrent/tenstorrent!0/device/hwmon");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path().join("in0_input");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    for millivolts in [700, 800, 710] {
        std::fs::write(&file, format!("{millivolts}\n")).unwrap();
        // A sample of the last tenth of a second will do for whoever asks, be it one for which nobody asked.
        let volts = || {
            service.native().ask(json!({"snapshot": {"fresh": true}}))["snapshot"]["devices"][0]["vcore_volts"].as_f64()
        };
        let seen = (0..20).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            volts() == Some(f64::from(millivolts) / 1000.0)
        });
        assert!(seen, "{millivolts} mV");
    }
}
