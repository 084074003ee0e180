//! Liars and broken clients on both sockets, while others go on as if nothing were.
//!
//! 200 000 messages; `TTMON_FRAMES=10000000 cargo test -p ttmon serve_frames -- --nocapture` for ten million. They come from
//! processes of another user, when there is root to make them: root may speak for others, and is no liar then.

use crate::support::service::{Poc, Service, wait_for};
use crate::support::{Chance, Machine, is_root};
use ledger::book::{Chips, MemoryKind, NewBuffer, Writer};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the honest client calls a device of its own, so that what others claim is never on it.
const OWN_DEVICE: u64 = 0x5EED_1A57;
/// Its buffers, and those that liars speak of.
const BUFFERS: u64 = 64;
/// How a liar is told its task: the sockets, the victim's pid, a seed, and how many messages.
const TASK: &str = "TTMON_LIAR";

#[test]
fn whatever_is_said_on_both_sockets_changes_nothing_for_others() {
    let frames: u64 = std::env::var("TTMON_FRAMES").ok().and_then(|number| number.parse().ok()).unwrap_or(200_000);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::fs::write(&config, "buffers_per_process = 20000\n").unwrap();
    let service = Service::start_with(Machine::with(&[Chip::p150a(0)]), &["--config", config.to_str().unwrap()]);
    let (files, memory_before) = service.cost();
    let mut honest = Honest::new(&service);
    let began = Instant::now();
    let mut liars: Vec<Child> = (0..2).map(|seed| liar(&service, honest.poc.pid, seed, frames / 2)).collect();
    let (mut rounds, mut longest) = (0, Duration::ZERO);
    while liars.iter_mut().any(|liar| liar.try_wait().unwrap().is_none()) {
        let asked = Instant::now();
        honest.check();
        longest = asked.elapsed().max(longest);
        rounds += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    for liar in liars {
        let output = liar.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    let took = began.elapsed().as_secs_f64();
    honest.check();
    let [dram, l1] = honest.sums(0);
    wait_for(|| honest.poc.ask("query 0") == [dram, l1, 0, 0, 0, 0], || service.log());
    // What the liars have said of themselves is gone with them.
    let (snapshot, of_a_process) =
        (service.snapshot(), |fault: &&Value| fault["path"].as_str().unwrap().starts_with("/proc/"));
    let faults = snapshot["faults"].as_array().unwrap().iter().filter(of_a_process).count();
    assert_eq!((snapshot["processes"].as_array().unwrap().len(), faults <= 1), (1, true), "{snapshot}");
    drop(honest);
    wait_for(|| service.cost().0 == files, || service.open_files().join("\n"));
    let (log, memory) = (service.log(), service.cost().1);
    assert!(!log.contains("panicked"), "{log}");
    println!(
        "{frames} messages in {took:.1} s; meanwhile {rounds} rounds of honest questions, the slowest in {longest:.1?}"
    );
    println!("{files} open files before and after, {memory_before} and {memory} kB, {} kB of log", log.len() >> 10);
}

/// A client on each socket, who know what is right.
struct Honest {
    poc: Poc,
    native: crate::support::service::Native,
    /// Bytes of each buffer, on its own device and on the first of the machine; DRAM if it is even.
    live: [Vec<u64>; 2],
    chance: Chance,
}

impl Honest {
    fn new(service: &Service) -> Honest {
        let native = service.native();
        native.0.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let live = [vec![0; BUFFERS as usize], vec![0; BUFFERS as usize]];
        let poc = service.c();
        service.hold(0, &[poc.pid]);
        Honest { poc, native, live, chance: Chance::new(7) }
    }

    fn sums(&self, device: usize) -> [u64; 2] {
        let sum = |odd: usize| self.live[device].iter().skip(odd).step_by(2).sum();
        [sum(0), sum(1)]
    }

    /// Allocates or frees something, and is told on both sockets what it has.
    fn check(&mut self) {
        let (slot, device) = (self.chance.below(BUFFERS), self.chance.below(2));
        let number = if device == 0 { 0 } else { OWN_DEVICE };
        let live = &mut self.live[device as usize][slot as usize];
        match *live {
            0 => {
                *live = 1 + self.chance.below(1 << 20);
                self.poc.ask(&format!("alloc {number} {live} {} {slot}", slot % 2));
            }
            _ => {
                *live = 0;
                self.poc.ask(&format!("free {number} {slot}"));
            }
        }
        let [dram, l1] = self.sums(1);
        assert_eq!(self.poc.ask(&format!("query {OWN_DEVICE}")), [dram, l1, 0, 0, 0, 0]);
        let page = self.native.ask(json!({"buffers": {"pid": self.poc.pid}}))["buffers"].clone();
        let rows = page["buffers"].as_array().unwrap();
        let sum = |device: &str, kind: &str| {
            let of = rows.iter().filter(|row| row["devices"][0] == device && row["kind"] == kind);
            of.map(|row| row["bytes"].as_u64().unwrap()).sum::<u64>()
        };
        let own = format!("?{OWN_DEVICE}");
        assert_eq!([sum(&own, "dram"), sum(&own, "l1")], [dram, l1], "{page}");
        let [dram, l1] = self.sums(0);
        assert_eq!([sum("0", "dram"), sum("0", "l1")], [dram, l1], "{page}");
        let processes = self.native.ask(json!({"processes": {}}))["processes"].clone();
        let mine = processes.as_array().unwrap().iter().find(|process| process["pid"] == self.poc.pid).cloned();
        let held = mine.map_or(json!([null, null]), |mine| {
            json!([mine["devices"][0]["dram_bytes"], mine["devices"][0]["l1_bytes"]])
        });
        let is_here = self.live[0].iter().any(|bytes| *bytes > 0);
        assert_eq!(held, if is_here { json!([dram, l1]) } else { json!([null, null]) }, "{processes}");
    }
}

/// This program again, as somebody else.
fn liar(service: &Service, victim: u32, seed: u64, frames: u64) -> Child {
    let program = service.folder.path().join("liar");
    // Not by ourselves: a child of another thread would have the new file open for writing, and it could not be run.
    assert!(
        Command::new("cp").arg("-n").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success()
    );
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let wrapper: &[&str] = if is_root() { &nobody } else { &["env"] };
    let task = json!([service.socket(), service.poc_socket(), victim, seed, frames]);
    Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(program)
        .args(["--exact", "serve_frames::lies", "--ignored", "--nocapture"])
        .env(TASK, task.to_string())
        .current_dir("/")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the child of the test above"]
fn lies() {
    let Ok(task) = std::env::var(TASK) else { return };
    let (native, poc, victim, seed, frames): (String, String, u32, u64, u64) = serde_json::from_str(&task).unwrap();
    let (mut chance, mut said, files) = (Chance::new(seed + 1), 0, Files::new());
    while said < frames {
        said += if chance.one_in(2) {
            lie_to_poc(Path::new(&poc), victim, &mut chance)
        } else {
            lie_to_native(Path::new(&native), &files, &mut chance)
        };
    }
}

/// One connection to the socket of the proof of concept. Returns how many messages were sent.
fn lie_to_poc(socket: &Path, victim: u32, chance: &mut Chance) -> u64 {
    let mut stream = UnixStream::connect(socket).unwrap();
    let (length, count) = ([112, 144][chance.below(2) as usize], 1 + chance.below(300));
    let mistakes = [3, 50, 1000][chance.below(3) as usize];
    let (mut bytes, mut said) = (Vec::new(), 0);
    for _ in 0..count {
        let mut message = poc_message(victim, length, chance);
        if chance.one_in(mistakes) {
            damage(&mut message, chance);
        }
        bytes.extend(message);
        said += 1;
        if chance.one_in(20) && !send(&mut stream, &mut bytes, chance) {
            return said;
        }
    }
    send(&mut stream, &mut bytes, chance);
    // Some listen, most do not.
    if chance.one_in(8) {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
        let _ = stream.read(&mut [0; 4096]);
    }
    said
}

fn poc_message(victim: u32, length: usize, chance: &mut Chance) -> Vec<u8> {
    if chance.one_in(200) {
        let count = chance.below(300);
        return chance.bytes(count);
    }
    let mut message = vec![0; length];
    message[0] = 1 + chance.below(if length == 112 { 7 } else { 12 }) as u8;
    let device = match chance.below(8) {
        0 => chance.any() as u32,
        1 => u32::MAX,
        2 => chance.below(5) as u32,
        _ => 0,
    };
    let pid = match chance.below(4) {
        0 => 0,
        1 => std::process::id(),
        2 => chance.any() as u32,
        _ => victim,
    };
    let buffer = if chance.one_in(3) { chance.any() } else { chance.below(BUFFERS) };
    message[4..8].copy_from_slice(&device.to_le_bytes());
    message[8..16].copy_from_slice(&chance.any().to_le_bytes());
    message[16] = chance.below(5) as u8;
    message[20..24].copy_from_slice(&pid.to_le_bytes());
    message[24..32].copy_from_slice(&buffer.to_le_bytes());
    message[32..40].copy_from_slice(&chance.any().to_le_bytes());
    message
}

/// Other bytes, more, or fewer of them.
fn damage(message: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..=chance.below(3) {
        let at = chance.below(message.len().max(1) as u64) as usize;
        match (chance.below(6), message.get_mut(at)) {
            (0, Some(_)) => message.truncate(at),
            (1, Some(_)) => drop(message.remove(at)),
            (2, Some(_)) => message.insert(at, chance.below(256) as u8),
            (3, Some(byte)) => *byte ^= 1 << chance.below(8),
            (_, Some(byte)) => *byte = chance.below(256) as u8,
            (_, None) => {}
        }
    }
}

/// Sends and forgets what there is, in pieces.
fn send(stream: &mut UnixStream, bytes: &mut Vec<u8>, chance: &mut Chance) -> bool {
    let at = if chance.one_in(2) { bytes.len() } else { chance.below(1 + bytes.len() as u64) as usize };
    let sent = stream.write_all(&bytes[..at]).and_then(|()| stream.write_all(&bytes[at..]));
    bytes.clear();
    sent.is_ok()
}

const REQUESTS: [&str; 17] = [
    r#"{"hello": {"version": 2, "program": "x"}}"#,
    r#"{"hello": {"version": 3}}"#,
    r#"{"hello": {"version": -1, "program": 7}}"#,
    r#"{"deaths": {"limit": 1}}"#,
    r#"{"events": {}}"#,
    r#"{"deaths": {"limit": 18446744073709551616}}"#,
    r#"{"buffers": {"pid": 1, "sort": "age", "limit": 3}}"#,
    r#"{"buffers": {"pid": 4294967295, "offset": 18446744073709551615, "limit": 0}}"#,
    r#"{"book": {"pid": 7}}"#,
    r#"{"book": {"pid": 1}}"#,
    r#"{"book": {}}"#,
    r#"{"devices": []}"#,
    r#"{"processes": {"pid": 1}}"#,
    r#"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["#,
    r#"{"subscribe": {"interval_ms": 86400000000}}"#,
    "null",
    "",
];
/// More work for the service than for who asks, so more rarely.
const LARGE_REQUESTS: [&str; 6] = [
    r#"{"snapshot": {}}"#,
    r#"{"devices": {}}"#,
    r#"{"processes": {}}"#,
    r#"{"buffers": {"device": "0", "kind": "dram", "label": "", "sort": "device"}}"#,
    r#"{"subscribe": {"interval_ms": 0}}"#,
    r#"{"deaths": {}}"#,
];

fn native_message(chance: &mut Chance) -> Vec<u8> {
    if chance.one_in(500) {
        let count = chance.below(300);
        return chance.bytes(count);
    }
    let mut text = match chance.below(100) {
        0 => LARGE_REQUESTS[chance.below(6) as usize].into(),
        1 => vec![b'['; chance.below(4000) as usize],
        _ => REQUESTS[chance.below(17) as usize].as_bytes().to_vec(),
    };
    if chance.one_in(2) {
        damage(&mut text, chance);
    }
    let length = match chance.below(300) {
        0 => chance.any() as u32,
        1 => (text.len() as u32).saturating_sub(chance.below(5) as u32),
        2 => text.len() as u32 + chance.below(500) as u32,
        _ => text.len() as u32,
    };
    [&length.to_le_bytes()[..], &text].concat()
}

/// One connection to the service's own socket. Returns how many messages were sent.
fn lie_to_native(socket: &Path, files: &Files, chance: &mut Chance) -> u64 {
    let mut stream = UnixStream::connect(socket).unwrap();
    let (mut bytes, mut said) = (Vec::new(), 0);
    if !chance.one_in(8) {
        bytes = ledger::wire::frame(&json!({"hello": {"version": 2, "program": "an honest one"}})).unwrap();
        said += 1;
    }
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    let _ = stream.set_write_timeout(Some(Duration::from_millis(50)));
    for _ in 0..chance.below(300) {
        bytes.extend(native_message(chance));
        said += 1;
        let is_sent = match chance.below(40) {
            0 => files.send(&stream, &mut bytes, chance),
            1 => send(&mut stream, &mut bytes, chance),
            2 => stream.read(&mut [0; 1 << 16]).is_ok(),
            _ => true,
        };
        if !is_sent {
            return said;
        }
    }
    send(&mut stream, &mut bytes, chance);
    said
}

/// What can be handed over in the place of a book.
struct Files {
    all: Vec<OwnedFd>,
    /// A true one, which is the liar's own.
    book: Writer,
}

impl Files {
    fn new() -> Files {
        let memory = |content: &[u8]| {
            let file = File::from(memfd_create("ttmon", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
            file.write_all_at(content, 0).unwrap();
            OwnedFd::from(file)
        };
        let book = Writer::create("a liar").unwrap();
        let chips = Chips::one(book.chip(0, Some(7)).unwrap());
        let (kind, layout, owner, label) = (MemoryKind::Dram, 0, 0, &b""[..]);
        for id in 1..100 {
            let (address, page, logical) = (0, 32, 32);
            book.allocate(&NewBuffer {
                id,
                chips,
                kind,
                logical,
                per_bank: 32,
                banks: 8,
                address,
                page,
                layout,
                owner,
                label,
            });
        }
        let mut content = vec![0; 1 << 16];
        let length = book.file().read_at(&mut content, 0).unwrap();
        content.truncate(length);
        let mut all: Vec<OwnedFd> = ["/dev/null", "/dev/zero", "/", "/proc/self/mem", "/proc/self/fd"]
            .map(|path| File::open(path).unwrap().into())
            .into();
        let (one, other) = UnixStream::pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        all.extend([one.into(), other.into(), read, write, memory(b""), memory(b"TTMON"), memory(&content)]);
        let mut chance = Chance::new(99);
        for _ in 0..40 {
            let mut copy = content.clone();
            for _ in 0..=chance.below(4) {
                let most = if chance.one_in(2) { 512 } else { copy.len() as u64 };
                let at = chance.below(most) as usize;
                copy[at] = chance.below(256) as u8;
            }
            copy.truncate(if chance.one_in(4) { chance.below(copy.len() as u64) as usize } else { copy.len() });
            all.push(memory(&copy));
        }
        Files { all, book }
    }

    /// Sends and forgets what there is, with some files beside it.
    fn send(&self, stream: &UnixStream, bytes: &mut Vec<u8>, chance: &mut Chance) -> bool {
        let count = [1, 1, 1, 2, 3, 10][chance.below(6) as usize];
        let files: Vec<BorrowedFd<'_>> = (0..count)
            .map(|_| match chance.one_in(8) {
                true => self.book.file().as_fd(),
                false => self.all[chance.below(self.all.len() as u64) as usize].as_fd(),
            })
            .collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(10))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
        let sent = sendmsg(stream, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL);
        let is_whole = sent.is_ok_and(|sent| sent == bytes.len());
        bytes.clear();
        is_whole
    }
}
