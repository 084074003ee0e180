//! `ttmon health`: its exit codes, and that it never waits.

use crate::support::service::{Service, wait_for};
use crate::support::{Machine, Run, ttmon};
use serde_json::Value;
use sim::tree::Chip;
use std::time::{Duration, Instant};

fn health(arguments: &[&str]) -> Run {
    ttmon(&[&["health"], arguments].concat())
}

/// The verdict on a simulated machine that lives: its heartbeats count up.
fn of_simulated(spec: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let sim = format!("--sim={spec}");
    let run = health(&[&[sim.as_str(), "--service=off"], arguments].concat());
    (run.code, run.out + &run.err)
}

#[test]
fn a_machine_that_works_is_healthy() {
    let (code, text) = of_simulated("p150x4,idle", &["--require", "p150x4", "--max-temp", "90"]);
    assert!(text.starts_with("healthy: 4 x p150a, ") || text.starts_with("healthy: 4 × p150a, "), "{text}");
    assert_eq!(code, Some(0));
    assert_eq!(of_simulated("n300x2,idle", &["--require=n300x2,2"]).0, Some(0));
}

#[test]
fn each_fault_of_a_simulated_machine_is_exit_1_with_its_reason() {
    for (spec, arguments, part) in [
        ("p150x4,idle,hang=2@0s", &[][..], "device 2 (0000:11:00.0) is hung: PCIe not responding"),
        ("p150x2,idle,freeze=1@0s", &[], "the firmware heartbeat of device 1 (0000:09:00.0) does not change"),
        ("p150x2,idle,stuck=1@0s", &[], "device 1 (0000:09:00.0) does not answer"),
        ("p150x2,idle,reset=0@0s", &[], "device 0 (0000:01:00.0) is being reset"),
        ("p150x4,idle,lose=3@0s", &["--require", "p150x4"], "3 of 4 p150 found"),
        ("p150x2,idle", &["--require", "n300"], "0 of 1 n300 found"),
        ("p150x2,idle", &["--max-temp", "5"], "more than 5.0 °C"),
        ("p150x2,idle", &["-i", "5"], "device 5 was not found"),
    ] {
        let (code, text) = of_simulated(spec, arguments);
        let text = text.replace(" C", " °C");
        assert!(text.starts_with("not healthy: ") && text.contains(part), "{spec}: {text}");
        assert_eq!(code, Some(1), "{spec}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    assert_eq!(of_simulated("p150x4,idle,hang=2@0s", &["-i", "0,1"]).0, Some(0), "the others are well");
}

#[test]
fn without_a_driver_it_is_exit_9_and_with_a_wrong_word_exit_2() {
    let empty = tempfile::tempdir().unwrap();
    let run = health(&["--root", empty.path().to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (Some(9), ""));
    assert!(run.err.contains("the tenstorrent driver is not loaded"), "{}", run.err);
    let machine = Machine::with(&[]);
    let run = health(&["--root", machine.root()]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), "not healthy: no device was found\n"));
    for arguments in [&["--require", "p15x4"][..], &["--max-temp", "hot"], &["--require", "p150x0"]] {
        let run = health(&[&["--root", machine.root()], arguments].concat());
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(run.err.contains(arguments[0]), "{}", run.err);
    }
}

#[test]
fn a_service_that_is_not_there_is_a_fault_only_where_it_is_named() {
    let machine = Machine::with(&[Chip { heartbeat: None, ..Chip::p150a(0) }]);
    assert_eq!(health(&["--root", machine.root()]).code, Some(0));
    let run = health(&["--root", machine.root(), "--service", "/nowhere/ttmon.sock"]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("not healthy: /nowhere/ttmon.sock: cannot connect to the service"), "{}", run.out);
}

#[test]
fn alerts_that_fire_in_the_service_count() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    let rule = |severity: &str| format!("[[alert]]\nname = \"on\"\nwhen = \"power > 1\"\nseverity = \"{severity}\"\n");
    for (severity, code) in [("warning", 1), ("info", 0)] {
        std::fs::write(&config, rule(severity)).unwrap();
        let machine = Machine::with(&[Chip { heartbeat: None, ..Chip::p150a(0) }]);
        let service = Service::start_with(machine, &["--config", config.to_str().unwrap()]);
        let socket = service.socket();
        let arguments = ["--root", service.machine.root(), "--service", socket.to_str().unwrap()];
        wait_for(|| health(&arguments).code == Some(code), || health(&arguments).out);
        let text = health(&arguments).out;
        assert_eq!(text.contains("not healthy: alert on: device 0"), code == 1, "{text}");
    }
}

#[test]
fn json_has_the_devices_and_the_checks() {
    let machine = Machine::with(&[Chip { heartbeat: None, ..Chip::p150a(0) }, Chip::p150a(1).hung()]);
    let run = health(&["--json", "--root", machine.root()]);
    assert_eq!(run.code, Some(1));
    let json: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&json["schema"], &json["healthy"]), (&1.into(), &false.into()));
    assert_eq!(json["devices"][1]["state"], "hung");
    let failed: Vec<&Value> = json["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["name"], "states");
}

#[test]
fn the_devices_of_a_named_service_are_those_that_it_sees() {
    let service = Service::start(Machine::with(&[0, 1].map(|n| Chip { heartbeat: None, ..Chip::p150a(n) })));
    let socket = service.socket();
    let run = health(&["--service", socket.to_str().unwrap(), "--require", "2"]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    let run = health(&["--service", socket.to_str().unwrap(), "--require", "3"]);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
}

#[test]
fn a_stopped_service_and_a_stuck_device_hold_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("sock");
    // It accepts nothing, and answers nothing.
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let began = Instant::now();
    let service = socket.to_str().unwrap();
    let run = health(&["--sim=p150x2,idle,stuck=1@0s", "--service", service, "--deadline-ms", "400"]);
    assert!(run.out.contains("does not answer"), "{}", run.out);
    // The simulated machine takes a while to start. Waiting for the service alone would take 1.5 s, for the device forever.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
