//! A service among clients that are unlucky, careless or hostile: none is closed while it reports, and none costs others much.

#![allow(clippy::unwrap_used)]

mod support;

use sim::tree::Chip;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use support::Machine;
use support::harness::needs_root;
use support::service::{Service, wait_for};

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
