//! A service among clients that are unlucky, careless or hostile: none is closed while it reports, and none costs others much.

use crate::support::harness::needs_root;
use crate::support::service::{Service, wait_for};
use crate::support::{Machine, TTMON};
use sim::tree::Chip;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

struct KillOnDrop(std::process::Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn service_with(config: &str) -> Service {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config"), config).unwrap();
    let config = folder.path().join("config").display().to_string();
    Service::start_in(folder, Machine::with(&[Chip::p150a(0), Chip::p150a(1)]), &["--config", &config])
}

/// A message of a client that reports, as the process of this test.
fn message(kind: u8, device: i32, bytes: u64, buffer_type: u8, buffer: u64, length: usize) -> Vec<u8> {
    let mut message = vec![0; length];
    message[0] = kind;
    message[4..8].copy_from_slice(&device.to_le_bytes());
    message[8..16].copy_from_slice(&bytes.to_le_bytes());
    message[16] = buffer_type;
    message[24..32].copy_from_slice(&buffer.to_le_bytes());
    message
}

fn allocate(bytes: u64, buffer: u64, length: usize) -> Vec<u8> {
    message(1, 0, bytes, 0, buffer, length)
}

/// Asks how much DRAM of device 0 is allocated.
fn query(stream: &mut UnixStream, length: usize) -> u64 {
    stream.write_all(&message(3, 0, 0, 0, 0, length)).unwrap();
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).unwrap();
    u64::from_le_bytes(answer[40..48].try_into().unwrap())
}

fn connect(service: &Service) -> UnixStream {
    UnixStream::connect(service.poc_socket()).unwrap()
}

#[test]
fn a_client_that_is_not_understood_is_never_closed_and_what_was_ignored_is_counted() {
    let service = service_with("");
    for length in [112, 144] {
        let mut client = connect(&service);
        for _ in 0..300 {
            client.write_all(&message(1, 0, 7, 99, 1, length)).unwrap();
        }
        client.write_all(&allocate(length as u64, length as u64, length)).unwrap();
        client.write_all(&message(99, 0, 7, 0, 1, length)).unwrap();
        assert_eq!(query(&mut client, length), if length == 112 { 112 } else { 256 });
        drop(client);
    }
    wait_for(|| service.log().matches("event=ignored").count() == 2, || service.log());
    assert!(service.log().contains("messages=301"), "{}", service.log());
    assert_eq!(service.log().matches("event=mistake").count(), 2, "{}", service.log());
}

#[test]
fn a_client_that_does_not_read_its_answers_is_not_closed() {
    let service = service_with("");
    let mut client = connect(&service);
    for _ in 0..20_000 {
        client.write_all(&message(3, 0, 0, 0, 0, 144)).unwrap();
    }
    client.write_all(&allocate(5, 1, 144)).unwrap();
    wait_for(|| service.log().contains("event=slow-reader"), || service.log());
    let mut other = connect(&service);
    wait_for(|| query(&mut other, 112) == 5, || service.log());
    drop(client);
    wait_for(|| service.log().contains("event=ignored"), || service.log());
}

#[test]
fn the_last_message_before_a_client_closes_counts_whatever_its_length() {
    for length in [72, 112, 144] {
        let service = service_with("");
        for buffer in 1..=50 {
            connect(&service).write_all(&allocate(10, buffer, length)).unwrap();
        }
        let mut asker = connect(&service);
        wait_for(
            || query(&mut asker, length) == 500,
            || format!("{length}: {}", query(&mut connect(&service), length)),
        );
        for buffer in 1..=50 {
            connect(&service).write_all(&allocate(10, 50 + buffer, length)).unwrap();
            connect(&service).write_all(&message(2, 0, 0, 0, 50 + buffer, length)).unwrap();
        }
        connect(&service).write_all(&allocate(1, 1000, length)).unwrap();
        wait_for(
            || query(&mut asker, length) == 501,
            || format!("{length}: {}", query(&mut connect(&service), length)),
        );
        connect(&service).write_all(&message(5, 0, 0, 0, 0, length)).unwrap();
        wait_for(|| service.log().contains("event=remaining"), || service.log());
    }
}

#[test]
fn connections_beyond_the_limit_of_a_user_stay_open_and_are_not_counted() {
    let service = service_with("connections = 2\n");
    let mut clients: Vec<UnixStream> = (0..4).map(|_| connect(&service)).collect();
    for (buffer, client) in (1..).zip(&mut clients) {
        for _ in 0..100 {
            client.write_all(&allocate(10, buffer, 144)).unwrap();
        }
    }
    wait_for(|| query(&mut clients[0], 144) == 20, || service.log());
    clients.truncate(2);
    wait_for(|| service.log().matches("event=ignored").count() == 2, || service.log());
    assert!(service.log().contains("event=not-counted"), "{}", service.log());
    assert!(!service.log().contains("event=sent-away"), "{}", service.log());
}

#[test]
fn connections_of_one_user_leave_room_for_those_of_another() {
    if !needs_root("connections_of_one_user_leave_room_for_those_of_another") {
        return;
    }
    let service = service_with("connections = 3\n");
    let _held: Vec<UnixStream> = (0..20).map(|_| connect(&service)).collect();
    let _native: Vec<_> = (0..3).map(|_| service.native()).collect();
    let mut other = service.c_in(&AS_NOBODY);
    other.ask("alloc 0 7 0 4096");
    assert_eq!(other.ask("query 0")[0], 7);
}

#[test]
fn all_devices_together_are_available_if_there_are_any() {
    let service = service_with("");
    let mut client = service.python();
    assert_eq!(client.ask("info -1"), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(client.ask("info 7"), [0, 0, 0, 0, 0, 0, 0, 2]);
}

/// What the service itself says its pid is: the process that was started only waits for it.
fn anonymous_kib(service: &Service) -> u64 {
    let log = service.log();
    let pid = log.split("event=ready").nth(1).unwrap().split("pid=").nth(1).unwrap().split_whitespace().next().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    anonymous.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn the_buffers_of_one_user_take_so_much_room_and_those_left_out_are_counted() {
    let service = service_with("");
    let mut client = connect(&service);
    let before = anonymous_kib(&service);
    for batch in 0..60 {
        let messages: Vec<u8> = (0..10_000).flat_map(|n| allocate(1, batch * 10_000 + n, 144)).collect();
        client.write_all(&messages).unwrap();
    }
    assert_eq!(query(&mut client, 144), 250_000);
    let page = service.native().ask(serde_json::json!({"buffers": {"limit": 10}}));
    let page = &page["buffers"];
    assert_eq!((&page["total"], &page["unlisted"]), (&250_000.into(), &350_000.into()));
    assert_eq!(page["buffers"].as_array().unwrap().len(), 10);
    let taken = anonymous_kib(&service) - before;
    assert!(taken < 48 << 10, "{taken} KiB");
    let why = "reported 350000 buffers too many: they are not counted";
    assert!(service.snapshot()["faults"].to_string().contains(why));
    assert!(service.log().contains("the process has 250000 live buffers"), "{}", service.log());
}

#[test]
fn of_twenty_thousand_region_files_of_one_user_some_are_read_and_the_others_are_counted_in_one_line() {
    let machine = Machine::with(&[Chip::p150a(0)]);
    let shm = machine.0.path().join("dev/shm");
    std::fs::create_dir_all(&shm).unwrap();
    for number in 0..20_000 {
        std::fs::write(shm.join(format!("tt_device_{number}_memory")), "").unwrap();
    }
    let service = Service::start(machine);
    let snapshot = service.snapshot();
    let faults = snapshot["faults"].as_array().unwrap();
    assert!(faults.len() < 300, "{}", faults.len());
    let uid = rustix::process::geteuid().as_raw();
    let why = format!("user {uid} has 20000 regions: 19872 of them are not read");
    assert_eq!(faults.iter().filter(|fault| fault["reason"] == why).count(), 1, "{faults:?}");
    assert!(service.cost().0 < 200 && anonymous_kib(&service) < 48 << 10, "{:?}", service.cost());
}

#[test]
fn a_command_line_of_two_megabytes_is_cut() {
    let machine = Machine::with(&[Chip::p150a(0)]);
    let words = vec!["x".repeat(100_000); 19];
    let child = Command::new("sh").args(["-c", "read line"]).args(words).stdin(Stdio::piped()).spawn().unwrap();
    let child = KillOnDrop(child);
    machine.set_pids(0, &[child.0.id()]);
    let service = Service::start(machine);
    let snapshot = service.snapshot();
    let command = snapshot["processes"][0]["command"].as_str().unwrap();
    assert!(command.starts_with("sh -c read line xxx") && command.ends_with("x…"), "{command}");
    assert!(command.len() < 4100 && snapshot.to_string().len() < 50_000);
}

#[test]
fn a_flood_of_mistakes_is_a_hundred_lines_and_a_count() {
    let service = service_with("interval_ms = 200\n");
    for _ in 0..3000 {
        connect(&service).write_all(&message(99, 0, 0, 0, 0, 144)).unwrap();
    }
    wait_for(|| service.log().contains("event=left-out of=mistake"), || service.log());
    assert!(service.log().matches("event=mistake").count() < 200, "{}", service.log());
}

#[test]
fn a_log_that_is_not_read_stops_nothing() {
    let machine = Machine::with(&[Chip::p150a(0)]);
    let socket = machine.0.path().join("poc.sock");
    let (unread, log) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    rustix::pipe::fcntl_setpipe_size(&log, 4096).unwrap();
    let mut command = Command::new(TTMON);
    command.args(["serve", "--listen", "off", "--root", machine.root(), "--socket"]);
    command.arg(machine.0.path().join("ttmon.sock")).arg("--poc-socket").arg(&socket);
    let _service = KillOnDrop(command.stdin(Stdio::null()).stderr(log).spawn().unwrap());
    drop(command);
    wait_for(|| UnixStream::connect(&socket).is_ok(), String::new);
    for _ in 0..200 {
        UnixStream::connect(&socket).unwrap().write_all(&message(99, 0, 0, 0, 0, 144)).unwrap();
    }
    let mut client = UnixStream::connect(&socket).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    client.write_all(&allocate(5, 1, 144)).unwrap();
    assert_eq!(query(&mut client, 144), 5);
    // As soon as it is read again, it says how much is missing.
    let mut read = String::new();
    let mut unread = std::io::BufReader::new(std::fs::File::from(unread));
    while !read.contains("event=left-out of=all") {
        assert!(std::io::BufRead::read_line(&mut unread, &mut read).unwrap() > 0, "{read}");
    }
}

fn dram_used(service: &Service) -> serde_json::Value {
    service.snapshot()["devices"][0]["memory"]["dram_used_bytes"].clone()
}

fn source(service: &Service) -> serde_json::Value {
    service.snapshot()["processes"][0]["devices"][0]["source"].clone()
}

#[test]
fn a_report_of_a_process_that_does_not_hold_the_device_is_unverified_and_not_in_used() {
    let service = service_with("interval_ms = 100\n");
    let mut client = service.c();
    client.ask(&format!("alloc 0 {} 0 4096", 8u64 << 30));
    let unverified = |service: &Service| service.snapshot()["devices"][0]["memory"]["unverified"].clone();
    wait_for(|| unverified(&service)["dram_bytes"] == 8u64 << 30, || service.snapshot().to_string());
    assert_eq!((source(&service), dram_used(&service)), ("unverified".into(), 0.into()));
    assert_eq!(client.ask("query 0")[0], 8 << 30, "as the reference answers");
    let socket = service.socket().display().to_string();
    let arguments = ["mem", "--once", "--root", service.machine.root(), "--service", &socket];
    let drawn = crate::support::ttmon(&arguments).out;
    let why = "8.0 GiB unverified: reported by processes that do not hold the device";
    assert!(drawn.contains("▞▞▞") && drawn.contains(why), "{drawn}");
    service.hold(0, &[client.pid]);
    assert_eq!((source(&service), dram_used(&service)), ("reported".into(), (8u64 << 30).into()));
    assert_eq!(unverified(&service), serde_json::Value::Null);
    service.machine.set_pids(0, &[]);
    wait_for(|| source(&service) == "unverified", || service.snapshot().to_string());
    client.kill();
    let held = &service.death()["devices"][0];
    assert_eq!((&held["dram_bytes"], &held["unverified"]["dram_bytes"]), (&().into(), &(8u64 << 30).into()));
}

#[test]
fn where_the_driver_does_not_list_holders_a_report_counts_and_is_marked() {
    let service = Service::start(Machine::with(&[Chip { pids: None, ..Chip::p150a(0) }]));
    let mut client = service.c();
    client.ask("alloc 0 1000 0 4096");
    assert_eq!(client.ask("query 0")[0], 1000);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!((source(&service), dram_used(&service)), ("unverified".into(), 1000.into()));
}

#[test]
fn reports_that_exceed_the_device_in_all_are_a_fault_and_no_figure() {
    let service = service_with("interval_ms = 100\n");
    let mut clients = [service.c(), service.c()];
    service.hold(0, &[clients[0].pid, clients[1].pid]);
    for client in &mut clients {
        client.ask(&format!("alloc 0 {} 0 4096", 20u64 << 30));
    }
    wait_for(|| clients[0].ask("query 0")[0] == 40 << 30, || service.log());
    assert_eq!(dram_used(&service), 20u64 << 30);
    let why = "reports DRAM of device 0 that others report as well: it has less in all";
    assert_eq!(service.snapshot()["faults"].to_string().matches(why).count(), 1);
}

#[test]
fn answers_that_the_clients_of_a_user_leave_unread_take_so_much_room() {
    let service = service_with("");
    let mut client = connect(&service);
    let messages: Vec<u8> = (0..20_000).flat_map(|n| allocate(1, n, 144)).collect();
    client.write_all(&messages).unwrap();
    assert_eq!(query(&mut client, 144), 20_000);
    let mut readers: Vec<_> = (0..40).map(|_| service.native()).collect();
    for reader in &mut readers {
        reader.tell(&serde_json::json!({"buffers": {"limit": 20_000}}));
        // One after the other: it has an answer, and does not read it.
        rustix::net::recv(&reader.0, &mut [0; 1][..], rustix::net::RecvFlags::PEEK).unwrap();
    }
    let last = readers[39].hear().unwrap().to_string();
    assert!(last.contains("left too many answers unread"), "{}", &last[..200]);
    let taken = anonymous_kib(&service);
    assert!(taken < 64 << 10, "{taken} KiB");
    let first = readers[0].hear().unwrap();
    assert_eq!(first["buffers"]["total"], 20_000, "what was begun with is sent");
}

#[test]
fn a_question_is_answered_while_a_long_list_of_buffers_is_made() {
    let service = service_with("");
    let mut client = connect(&service);
    for batch in 0..20 {
        let messages: Vec<u8> = (0..10_000).flat_map(|n| allocate(1, batch * 10_000 + n, 144)).collect();
        client.write_all(&messages).unwrap();
    }
    assert_eq!(query(&mut client, 144), 200_000);
    let mut reader = service.native();
    // On a busy machine the list may be there first, now and then.
    let is_first = (0..50).any(|_| {
        reader.tell(&serde_json::json!({"buffers": {"limit": 20_000}}));
        query(&mut client, 144);
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        let has_list = rustix::net::recv(&reader.0, &mut [0; 1][..], flags).is_ok();
        assert_eq!(reader.hear().unwrap()["buffers"]["total"], 200_000);
        !has_list
    });
    assert!(is_first, "each time the question waited for the list");
}
