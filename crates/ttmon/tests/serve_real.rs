//! The real tt-metal under the real agent, and a service that comes, goes and comes back.
//!
//! Runs when `TTMON_TTNN` and `TTMON_TTNN_OLD` name unpacked wheels, as `scripts/fetch-ttnn [VERSION]` prints them.

use crate::support::Machine;
use crate::support::harness::{Harness, built, number};
use crate::support::needs::wheels;
use crate::support::service::{Service, wait_for};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A machine with a chip that the real tt-metal takes for its own, and where a service will be.
struct Bench {
    machine: Machine,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let serial = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 >> 2;
        let chip = Chip { serial: Some(serial), ..Chip::n150(0) };
        let machine = Machine::with(std::slice::from_ref(&chip));
        let cluster = include_str!("../../harness/clusters/n150.yaml");
        let cluster = cluster.replace("7310579611150000150", &chip.unique_ids()[0].to_string());
        std::fs::write(machine.0.path().join("cluster.yaml"), cluster).unwrap();
        Bench { machine, folder: tempfile::tempdir().unwrap() }
    }

    fn program(&self, ttnn: &Path) -> Harness {
        let (agent, cluster) = (built("libttmon_agent.so"), self.machine.0.path().join("cluster.yaml"));
        let socket = self.folder.path().join("ttmon.sock");
        let environment = [
            ("TMPDIR", self.machine.root()),
            ("LD_PRELOAD", agent.to_str().unwrap()),
            ("TT_METAL_SHM_TRACKING_DISABLED", "1"),
            ("TTMON_BOOK_SOCKET", socket.to_str().unwrap()),
        ];
        Harness::start(&[], &["mock", ttnn.to_str().unwrap(), cluster.to_str().unwrap()], &environment)
    }

    fn serve(self) -> Service {
        self.serve_version(ledger::wire::VERSION)
    }

    fn serve_version(self, version: u32) -> Service {
        Service::start_speaking(version, self.folder, self.machine, &[])
    }
}

/// What the process's own allocator says.
fn truth(program: &mut Harness) -> [u64; 2] {
    ["dram", "l1"].map(|kind| {
        let stats = program.ask(&format!("stats {kind}"));
        number(&stats, "allocated") * number(&stats, "banks")
    })
}

/// What the service says of the device.
fn of_device(service: &Service) -> Value {
    let snapshot = service.snapshot();
    let memory = &snapshot["devices"][0]["memory"];
    json!([memory["dram_bytes"], memory["l1_bytes"]])
}

/// What the service says of all buffers.
fn of_buffers(service: &Service) -> Value {
    let sum = |kind: &str| {
        let page = service.native().ask(json!({"buffers": {"kind": kind}}));
        let buffers = page["buffers"]["buffers"].as_array().unwrap();
        buffers.iter().map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    json!([sum("dram"), sum("l1")])
}

/// Whether the service comes to say the same within a second, and so to the byte.
fn agree(service: &Service, says: fn(&Service) -> Value, program: &mut Harness, when: &str) {
    let truth = json!(truth(program));
    let (began, mut told) = (Instant::now(), Value::Null);
    while began.elapsed() < Duration::from_millis(1500) {
        told = says(service);
        if told == truth {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{when}: {told} instead of {truth}");
}

/// The agent looks for a service with an event, at most once per second.
fn a_second_later(program: &mut Harness, command: &str) {
    std::thread::sleep(Duration::from_millis(1050));
    assert!(program.ask(command).starts_with("OK"), "{command}");
}

#[test]
fn the_agent_finds_a_service_that_comes_late_and_one_that_comes_back() {
    for ttnn in wheels("the_agent_finds_a_service_that_comes_late_and_one_that_comes_back") {
        let bench = Bench::new();
        // It is no holder of the device as far as the driver knows: all that is known comes from the agent.
        let mut program = bench.program(&ttnn);
        assert!(program.ask("alloc 1 2097152 2048 dram").starts_with("OK"));
        let mut service = bench.serve();
        a_second_later(&mut program, "alloc 2 2048 2048 l1");
        agree(&service, of_buffers, &mut program, "late");
        assert!(program.ask("alloc 3 4096 2048 dram").starts_with("OK"));
        agree(&service, of_buffers, &mut program, "at once");

        service.kill_and_restart();
        assert_eq!(of_buffers(&service), json!([0, 0]));
        a_second_later(&mut program, "free 1");
        agree(&service, of_buffers, &mut program, "killed and back");

        service.terminate();
        a_second_later(&mut program, "alloc 4 2048 2048 l1");
        service.kill_and_restart();
        a_second_later(&mut program, "alloc 5 2048 2048 dram");
        agree(&service, of_buffers, &mut program, "stopped and back");

        let held = truth(&mut program);
        program.child.kill().unwrap();
        let until = Instant::now() + Duration::from_secs(2);
        while service.deaths().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let death = service.deaths()[0].clone();
        assert_eq!((&death["pid"], &death["signal"]), (&json!(program.pid), &json!(9)));
        let last = &death["devices"][0];
        assert_eq!(json!([last["dram_bytes"], last["l1_bytes"]]), json!(held));
        assert_eq!((&death["buffers"], of_buffers(&service)), (&json!(4), json!([0, 0])));
    }
}

#[test]
fn a_service_finds_what_it_was_not_handed() {
    for ttnn in wheels("a_service_finds_what_it_was_not_handed") {
        let bench = Bench::new();
        let mut program = bench.program(&ttnn);
        assert!(program.ask("alloc 1 2097152 2048 dram").starts_with("OK"));
        assert!(program.ask("alloc 2 2048 2048 l1").starts_with("OK"));
        bench.machine.set_pids(0, &[program.pid]);
        let mut service = bench.serve();
        agree(&service, of_device, &mut program, "late, and without an event");
        service.kill_and_restart();
        agree(&service, of_device, &mut program, "killed and back, and without an event");
    }
}

#[test]
fn a_service_that_was_exchanged_for_one_of_another_version_knows_everything() {
    let other = ledger::wire::VERSION + 1;
    for ttnn in wheels("a_service_that_was_exchanged_for_one_of_another_version_knows_everything") {
        for (before, after) in [(ledger::wire::VERSION, other), (other, ledger::wire::VERSION)] {
            let bench = Bench::new();
            let mut program = bench.program(&ttnn);
            assert!(program.ask("alloc 1 2097152 2048 dram").starts_with("OK"));
            // The driver knows nothing of the program yet: what there is to know comes from the agent.
            let mut service = bench.serve_version(before);
            a_second_later(&mut program, "alloc 2 2048 2048 l1");
            agree(&service, of_buffers, &mut program, &format!("version {before}"));

            service.version = after;
            service.kill_and_restart();
            assert_eq!(of_buffers(&service), json!([0, 0]));
            a_second_later(&mut program, "alloc 3 4096 2048 dram");
            agree(&service, of_buffers, &mut program, &format!("version {after} after {before}"));
            assert!(program.ask("free 1").starts_with("OK"));
            agree(&service, of_buffers, &mut program, &format!("version {after}, at once"));

            // And what the device holds, through the sampler too.
            service.machine.set_pids(0, &[program.pid]);
            agree(&service, of_device, &mut program, &format!("version {after}, the device"));
            service.version = before;
            service.kill_and_restart();
            agree(&service, of_device, &mut program, &format!("version {before} again, without an event"));
            a_second_later(&mut program, "alloc 4 2048 2048 l1");
            agree(&service, of_device, &mut program, &format!("version {before} again"));
            agree(&service, of_buffers, &mut program, &format!("version {before} again"));
        }
    }
}

#[test]
fn who_ends_without_freeing_is_reported_and_who_freed_everything_is_not() {
    for ttnn in wheels("who_ends_without_freeing_is_reported_and_who_freed_everything_is_not") {
        let bench = Bench::new();
        let (mut tidy, mut careless) = (bench.program(&ttnn), bench.program(&ttnn));
        for program in [&mut tidy, &mut careless] {
            assert!(program.ask("alloc 1 2097152 2048 dram").starts_with("OK"));
        }
        bench.machine.set_pids(0, &[tidy.pid, careless.pid]);
        let service = bench.serve();
        a_second_later(&mut careless, "alloc 2 2048 2048 l1");
        a_second_later(&mut tidy, "free 1");
        for program in [&mut tidy, &mut careless] {
            program.ask("close");
            program.ask("quit");
            program.child.wait().unwrap();
        }
        service.machine.set_pids(0, &[]);
        let left = || -> Vec<Value> {
            let alerts = service.snapshot()["alerts"].as_array().cloned().unwrap_or_default();
            alerts.into_iter().filter(|alert| alert["name"] == "left-at-exit").collect()
        };
        wait_for(|| !left().is_empty() && service.deaths().len() == 2, || service.snapshot()["alerts"].to_string());
        let alerts = left();
        assert_eq!((alerts.len(), &alerts[0]["process"]), (1, &json!(careless.pid)));
        let text = alerts[0]["text"].as_str().unwrap();
        assert!(text.contains("exited without freeing its device memory (left_at_exit 2.1 MiB)"), "{text}");
    }
}
