//! What the kernel's log says of devices, from a line in `/dev/kmsg` to events, snapshots and recordings.

use crate::support::service::{Service, wait_for};
use crate::support::{Machine, ttmon};
use serde_json::Value;
use sim::tree::Chip;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn machine() -> Machine {
    let machine = Machine::with(&[Chip::p150a(0), Chip::p150a(1)]);
    std::fs::write(machine.0.path().join("dev/kmsg"), "").unwrap();
    machine
}

/// Writes a line as the driver would.
fn write(machine: &Machine, seq: u64, n: u32, text: &str) {
    let link = std::fs::read_link(machine.0.path().join(format!("sys/class/tenstorrent/tenstorrent!{n}"))).unwrap();
    let address = link.iter().rev().nth(2).unwrap().to_str().unwrap();
    let mut file = OpenOptions::new().append(true).open(machine.0.path().join("dev/kmsg")).unwrap();
    let line = format!("3,{seq},46739940,-;tenstorrent {address}: {text}\n SUBSYSTEM=pci\n DEVICE=+pci:{address}\n");
    file.write_all(line.as_bytes()).unwrap();
}

fn get(service: &Service, path: &str) -> Value {
    let log = service.log();
    let address = log.split_once("address=").unwrap().1.split_whitespace().next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn events(service: &Service) -> Vec<Value> {
    let all = get(service, "/api/v1/events")["events"].as_array().unwrap().clone();
    all.into_iter().filter(|event| !event["kernel"].is_null()).collect()
}

#[test]
fn a_line_of_the_kernel_is_an_event_with_who_held_the_device() {
    let machine = machine();
    machine.set_pids(1, &[std::process::id()]);
    let service = Service::start_with(machine, &["--listen", "127.0.0.1:0", "--kernel-log"]);
    assert_eq!(get(&service, "/api/v1/snapshot")["kernel_log"], serde_json::json!([]));
    write(&service.machine, 7, 1, "Timeout waiting for ARC response");
    wait_for(|| !events(&service).is_empty(), || service.log());
    let event = events(&service).remove(0);
    let text = event["text"].as_str().unwrap();
    let expected =
        format!("device 1: the firmware did not answer the driver in time, held by pid {}", std::process::id());
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!((&event["weight"], &event["device"]), (&"bad".into(), &"1".into()));
    assert_eq!((&event["kernel"]["kind"], &event["kernel"]["count"]), (&"timeout".into(), &1.into()));
    assert!(event["kernel"]["text"].as_str().unwrap().ends_with(": Timeout waiting for ARC response"), "{event}");
    assert_eq!(event["kernel"]["held_by"][0]["pid"], std::process::id());
    assert_eq!(get(&service, "/api/v1/snapshot")["kernel_log"][0]["seq"], 7);
    // Whoever asks the service has it, too.
    let asked = ttmon(&["smi", "--json", "--service", service.socket().to_str().unwrap()]);
    let asked: Value = serde_json::from_str(&asked.out).unwrap();
    assert_eq!(asked["kernel_log"][0]["device"], "1");
}

#[test]
fn the_setting_is_off_and_a_reload_turns_it_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[serve]\ninterval_ms = 50\n").unwrap();
    let options = ["--listen", "127.0.0.1:0", "--config", config.to_str().unwrap()];
    let service = Service::start_with(machine(), &options);
    assert_eq!(get(&service, "/api/v1/snapshot")["kernel_log"], Value::Null);
    std::fs::write(&config, "[serve]\ninterval_ms = 50\nkernel_log = true\n").unwrap();
    service.signal(rustix::process::Signal::HUP);
    wait_for(|| !get(&service, "/api/v1/snapshot")["kernel_log"].is_null(), || service.log());
    write(&service.machine, 1, 0, "Telemetry not available");
    wait_for(|| !events(&service).is_empty(), || service.log());
}

#[test]
fn a_simulated_machine_has_a_log_of_its_faults() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sim");
    let words = ["--sim=p150x2,idle,hang=1@0s", "--kernel-log", "--for", "200ms", "--every", "100ms", "-o"];
    assert_eq!(ttmon(&[&["record"], &words[..], &[file.to_str().unwrap()]].concat()).code, Some(0));
    let dump = ttmon(&["record", "--dump", file.to_str().unwrap()]).out;
    let first: Value = serde_json::from_str(dump.lines().next().unwrap()).unwrap();
    let message = &first["kernel_log"][0];
    assert_eq!((&message["device"], &message["kind"]), (&"1".into(), &"pcie_error".into()), "{first}");
    assert_eq!(first["faults"].to_string().matches("kmsg").count(), 0);
}

#[test]
fn a_recording_has_it_and_without_the_file_one_fault_says_why() {
    let (machine, folder) = (machine(), tempfile::tempdir().unwrap());
    write(&machine, 1, 0, "Device is unresponsive, cannot reset.");
    let record = |name: &str, options: &[&str]| {
        let file = folder.path().join(name);
        let file = file.to_str().unwrap();
        let words = ["record", "--root", machine.root(), "-o", file, "--for", "300ms", "--every", "100ms"];
        let run = ttmon(&[&words, options].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        let dump = ttmon(&["record", "--dump", file]).out;
        dump.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let samples = record("with", &["--kernel-log"]);
    assert_eq!(samples[0]["kernel_log"][0]["meaning"], "the device does not respond, and cannot be reset");
    assert_eq!(record("without", &[])[0]["kernel_log"], Value::Null);
    std::fs::remove_file(machine.0.path().join("dev/kmsg")).unwrap();
    let faults = record("missing", &["--kernel-log"])[0]["faults"].to_string();
    assert_eq!(faults.matches("/dev/kmsg").count(), 2, "the path, and what a container needs: {faults}");
    assert!(faults.contains("kernel-log.conf"), "{faults}");
}
