//! `ttmon serve` over HTTP: where it listens, with which keys, what it tells, and what ten thousand callers leave behind.

use crate::support::service::{Service, wait_for};
use crate::support::{Machine, TTMON, run};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::Value;
use sim::tree::Chip;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

fn start(options: &[&str]) -> Service {
    let options = [&["--listen", "127.0.0.1:0"], options].concat();
    Service::start_with(Machine::with(&[Chip::p150a(0), Chip::p150a(1)]), &options)
}

fn address(service: &Service) -> String {
    let log = service.log();
    let (_, rest) = log.split_once("address=").unwrap_or_else(|| panic!("{log}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

fn connect(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(address(service)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Status and body.
fn ask(service: &Service, path: &str, token: &str) -> (u16, Vec<u8>) {
    let mut stream = connect(service);
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    (status, answer.split_off(head + 4))
}

fn get(service: &Service, path: &str) -> Value {
    let (status, body) = ask(service, path, "");
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn the_snapshot_is_what_smi_prints() {
    let service = start(&[]);
    let (_, body) = ask(&service, "/api/v1/snapshot", "");
    let snapshot: model::Snapshot = serde_json::from_slice(&body).unwrap();
    assert_eq!(serde_json::to_vec(&snapshot).unwrap(), body);
    let printed = run(Command::new(TTMON).args(["smi", "--json", "--service"]).arg(service.socket()));
    let printed: model::Snapshot = serde_json::from_str(&printed.out).unwrap();
    assert_eq!((printed.devices.len(), printed.host), (2, snapshot.host));
    let first = get(&service, "/api/v1/status");
    assert_eq!(first["interval_ms"], 1000);
    wait_for(|| get(&service, "/api/v1/snapshot")["taken_at"] != first["started_at"], || "no second sample".into());
}

#[test]
fn a_process_that_exits_is_reported() {
    let service = start(&[]);
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    service.machine.set_pids(0, &[child.id()]);
    wait_for(|| get(&service, "/api/v1/processes")["total"] == 1, || "it is not seen".into());
    child.kill().unwrap();
    child.wait().unwrap();
    service.machine.set_pids(0, &[]);
    wait_for(|| get(&service, "/api/v1/deaths")["total"] == 1, || "nobody has died".into());
    assert_eq!(get(&service, "/api/v1/deaths")["deaths"][0]["pid"], child.id());
    let has = |text: &str| {
        get(&service, "/api/v1/events").to_string().contains(&format!("pid {} (sleep) {text}", child.id()))
    };
    wait_for(
        || has("uses device 0") && (has("was killed") || has("exited")),
        || get(&service, "/api/v1/events").to_string(),
    );
    assert_eq!(get(&service, "/api/v1/buffers?limit=5")["total"], 0);
    assert_eq!(get(&service, "/api/v1/topology")["chips"][1]["id"], "1");
}

#[test]
fn other_machines_are_served_with_keys_or_insecure_and_else_not_at_all() {
    let machine = Machine::with(&[Chip::p150a(0)]);
    let folder = tempfile::tempdir().unwrap();
    let refused = |options: &[&str]| {
        let mut command = Command::new(TTMON);
        command
            .args(["serve", "--poc-socket", "off", "--root", machine.root(), "--socket"])
            .arg(folder.path().join("s"));
        let run = run(command.args(options));
        assert_eq!(run.code, Some(2), "{}", run.err);
        run.err
    };
    assert_eq!(
        refused(&["--listen", "0.0.0.0:0"]),
        "error: --listen 0.0.0.0:0: other machines are served with --tls-cert, --tls-key and --token-file or --tls-client-ca, or with --insecure, \
         which allows unauthenticated access\n"
    );
    let place = "192.0.2.1:9746";
    assert_eq!(
        refused(&["--listen", place, "--insecure"]).lines().last().unwrap(),
        format!("error: --listen {place}: cannot listen there: Cannot assign requested address (os error 99)")
    );
    assert!(refused(&["--listen", "nowhere"]).ends_with("expected ADDRESS:PORT, such as 127.0.0.1:9746, or off\n"));
    assert_eq!(
        refused(&["--listen", "off", "--listen", place]),
        "error: --listen off cannot be combined with other addresses\n"
    );
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    let empty = empty.to_str().unwrap();
    assert_eq!(refused(&["--token-file", empty]), format!("error: {empty}: the first line is no token\n"));
    assert!(refused(&["--tls-cert", empty, "--tls-key", empty]).contains("there is no certificate in it"));
    let insecure = start(&["--listen", "0.0.0.0:0", "--insecure"]);
    assert!(insecure.log().contains("level=warning event=insecure address=0.0.0.0:0"), "{}", insecure.log());
}

#[test]
fn a_port_that_is_taken_is_a_warning_and_is_tried_again() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let machine = Machine::with(&[Chip::p150a(0)]);
    let service = Service::start_with(machine, &["--listen", &address.to_string()]);
    let warning = format!("level=warning event=not-listening address={address} reason=\"Address already in use");
    assert!(service.log().contains(&warning), "{}", service.log());
    assert_eq!(service.snapshot()["devices"][0]["id"], "0");
    drop(taken);
    wait_for(|| service.log().contains(&format!("event=listening protocol=http address={address}")), || service.log());
    assert_eq!(get(&service, "/api/v1/snapshot")["devices"][0]["id"], "0");
}

#[test]
fn a_service_that_does_not_listen_rests() {
    let service = Service::start(Machine::with(&[Chip::p150a(0)]));
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", service.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(2));
    // Two hundred would be a core that is never idle.
    assert!(ticks() - before < 50, "{} hundredths of a second in two", ticks() - before);
}

#[test]
fn a_token_is_read_again_at_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first\nnot this\n").unwrap();
    let service = start(&["--token-file", file.to_str().unwrap()]);
    let status = |token| ask(&service, "/api/v1/snapshot", token).0;
    assert_eq!((status("first"), status("second")), (200, 401));
    assert!(service.log().contains("event=open-secret"), "others can read it: {}", service.log());
    std::fs::write(&file, "second\n").unwrap();
    service.signal(Signal::HUP);
    wait_for(|| service.log().contains("event=reloaded"), || service.log());
    wait_for(|| status("second") == 200, || service.log());
    std::fs::write(&file, "").unwrap();
    service.signal(Signal::HUP);
    wait_for(|| service.log().contains("event=keys-not-reloaded"), || service.log());
    assert_eq!(status("second"), 200, "all stays as it was");
}

#[test]
#[ignore = "long"]
fn ten_thousand_connections_leave_nothing_behind() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let service = start(&[]);
    let pid = service.pid();
    // Files of devices are opened one after the other, and stay open.
    let sockets = || {
        let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|file| file.unwrap().path());
        all.filter_map(|file| file.read_link().ok()).filter(|to| to.to_string_lossy().starts_with("socket:")).count()
    };
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim().to_owned();
        line.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let crowd = |number: usize| {
        let mut kept = Vec::new();
        for _ in 0..number {
            let mut stream = connect(&service);
            // Whoever was sent away may hear of it before a word was said.
            let _ = stream.write_all(b"GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n");
            if kept.len() < 1000 {
                kept.push(stream);
            }
        }
        assert!(sockets() < 600, "{} sockets are open", sockets());
    };
    let clients = || get(&service, "/api/v1/status")["clients"].clone();
    let is_calm = || wait_for(|| clients() == 1, || format!("{} sockets are open", sockets()));
    crowd(1000);
    is_calm();
    let (before, warm) = (sockets(), memory());
    crowd(10_000);
    is_calm();
    wait_for(|| sockets() <= before, || format!("{} sockets are open, {before} before", sockets()));
    assert_eq!(ask(&service, "/healthz", "").0, 200);
    let grown = memory().saturating_sub(warm);
    assert!(grown < 4096, "{grown} KiB more than after the first thousand");
}

#[test]
fn a_service_may_be_of_some_devices_only() {
    let service = start(&["-i", "1"]);
    let devices = get(&service, "/api/v1/devices");
    let devices = devices["devices"].as_array().unwrap();
    assert_eq!(devices.iter().map(|device| &device["index"]).collect::<Vec<_>>(), [1]);
    let machine = Machine::with(&[Chip::p150a(0)]);
    let none = run(Command::new(TTMON)
        .args(["serve", "--listen", "off", "--poc-socket", "off", "-i", "7", "--root"])
        .arg(machine.root())
        .arg("--socket")
        .arg(machine.0.path().join("x.sock")));
    assert_eq!((none.code, none.err.as_str()), (Some(6), "error: no device is called \"7\": there is 0\n"));
}
