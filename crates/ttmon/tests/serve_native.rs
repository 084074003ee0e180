//! The service's own socket: greeting, questions, limits, books that are handed over, and what becomes of them.

use crate::support::harness::{Harness, number};
use crate::support::service::{Native, Service, wait_for};
use crate::support::{Machine, TTMON, run};
use ledger::book::{Chips, MemoryKind, NewBuffer, Writer};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use serde_json::{Value, json};
use sim::tree::Chip;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const CHIP: u64 = 0xB00C;

fn machine() -> Machine {
    Machine::with(&[Chip { asic_id: Some(CHIP), ..Chip::p150a(0) }])
}

fn reason(answer: &Value) -> &str {
    answer["error"]["reason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn call(service: &Service) -> Native {
    Native(UnixStream::connect(service.socket()).unwrap())
}

#[test]
fn help_is_as_pinned() {
    let help = run(std::process::Command::new(TTMON).args(["serve", "--help"]).env("COLUMNS", "100")).out;
    expect_test::expect_file!["golden/serve-help.txt"].assert_eq(&help);
}

#[test]
fn both_sides_greet_and_another_version_is_refused_by_both_numbers() {
    let service = Service::start(machine());
    let mut native = call(&service);
    assert_eq!(reason(&native.ask(json!({"devices": {}}))), r#"say hello first: {"hello": {"version": 2}}"#);
    let answer = native.ask(json!({"hello": {"version": 2, "program": "x"}}));
    assert_eq!(answer, json!({"hello": {"version": 2, "program": concat!("ttmon ", env!("CARGO_PKG_VERSION"))}}));
    assert_eq!(native.ask(json!({"devices": {}}))["devices"][0]["board"], "p150a");

    let mut native = call(&service);
    let why = "this service speaks version 2 and you speak version 3: use a ttmon of the same version";
    assert_eq!(reason(&native.ask(json!({"hello": {"version": 3, "program": "x"}}))), why);
    assert_eq!(reason(&native.ask(json!({"devices": {}}))), why);
}

#[test]
fn a_service_of_another_version_says_the_same_under_its_own_number() {
    let service = Service::start_speaking(3, tempfile::tempdir().unwrap(), machine(), &[]);
    let mut native = call(&service);
    assert_eq!(reason(&native.ask(json!({"devices": {}}))), r#"say hello first: {"hello": {"version": 3}}"#);
    let why = "this service speaks version 3 and you speak version 2: use a ttmon of the same version";
    assert_eq!(reason(&native.ask(json!({"hello": {"version": 2}}))), why);
    assert_eq!(native.ask(json!({"hello": {"version": 3}}))["hello"]["version"], 3);
    assert_eq!(native.ask(json!({"devices": {}}))["devices"][0]["board"], "p150a");
}

#[test]
fn a_mistake_is_named_and_the_connection_goes_on() {
    let service = Service::start(machine());
    let mut native = service.native();
    let answer = native.ask(json!({"divices": {}}));
    assert!(reason(&answer).starts_with("a request that is not understood: unknown variant `divices`"), "{answer}");
    assert!(reason(&native.ask(json!({"book": {"pid": 1}}))).contains("there was none"));
    assert!(native.ask(json!({"devices": {}}))["devices"].is_array());
}

#[test]
fn a_frame_that_is_too_long_ends_the_one_connection() {
    let service = Service::start(machine());
    let (mut native, mut other) = (service.native(), service.native());
    native.0.write_all(&[0xff; 4]).unwrap();
    let why = "a frame of 4294967295 bytes is too long: a request has 65536 at the most";
    assert_eq!(reason(&native.hear().unwrap()), why);
    assert_eq!(native.hear(), None);
    assert!(other.ask(json!({"devices": {}}))["devices"].is_array());
}

#[test]
fn one_connection_too_many_is_refused_and_sighup_reads_the_limits_again() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "connections = 2\n").unwrap();
    let service = Service::start_with(machine(), &["--config", config.to_str().unwrap()]);
    let (mut one, _two) = (service.native(), service.native());
    let mut third = call(&service);
    let uid = rustix::process::geteuid().as_raw();
    let why = format!("too many connections: 2 of user {uid} are open, and the limit is 2");
    assert_eq!(reason(&third.hear().unwrap()), why);
    assert_eq!(third.hear(), None);
    assert!(one.ask(json!({"devices": {}}))["devices"].is_array());

    std::fs::write(&config, "conections = 9\n").unwrap();
    service.signal(Signal::HUP);
    wait_for(|| service.log().contains("event=not-reloaded"), || service.log());
    assert!(service.log().contains("config.toml:1: unknown key conections"), "{}", service.log());
    std::fs::write(&config, "connections = 9\n").unwrap();
    service.signal(Signal::HUP);
    wait_for(|| service.log().contains("event=reloaded"), || service.log());
    service.native();
    let run = run(std::process::Command::new(TTMON).args(["serve", "--config", "/nowhere"]));
    assert_eq!((run.code, run.err.lines().count()), (Some(2), 1), "{}", run.err);
}

#[test]
fn who_subscribes_gets_every_update() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "interval_ms = 50\n").unwrap();
    let service = Service::start_with(machine(), &["--config", config.to_str().unwrap()]);
    let mut native = service.native();
    native.tell(&json!({"subscribe": {"interval_ms": 50}}));
    let mut times: Vec<Value> = (0..4).map(|_| native.hear().unwrap()["snapshot"]["taken_at"].clone()).collect();
    times.dedup();
    assert_eq!(times.len(), 4, "{times:?}");
    // One that does not read is sent away, after what it has begun to read and a reason.
    let mut slow = service.native();
    slow.tell(&json!({"subscribe": {"interval_ms": 1}}));
    (0..200).for_each(|_| slow.tell(&json!({"snapshot": {}})));
    wait_for(|| service.log().contains("event=dismissed"), || service.log());
    let mut last = None;
    while let Some(frame) = slow.hear() {
        last = Some(frame);
    }
    assert!(reason(&last.unwrap()).starts_with("too slow: "));
    assert!(native.hear().is_some(), "others do not notice");
}

/// Bytes as an attacker or a broken client might send them.
#[test]
fn any_bytes_on_both_sockets_do_no_harm() {
    let service = Service::start(machine());
    let mut client = service.c();
    client.ask("alloc 0 30 0 4096");
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut chance = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..400 {
        let socket = if round % 2 == 0 { service.socket() } else { service.poc_socket() };
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut bytes: Vec<u8> = (0..chance() % 2000).map(|_| chance() as u8).collect();
        if round % 4 < 2 {
            // Mostly right, so that it is looked at more closely.
            bytes = match round % 2 {
                0 => {
                    let text = br#"{"hello": {"version": 2}}"#;
                    [&(text.len() as u32).to_le_bytes()[..], &text[..]].concat()
                }
                // A type, and the sender's own pid: zero.
                _ => (0..5).flat_map(|_| [&[1 + (chance() % 12) as u8][..], &[0; 143][..]].concat()).collect(),
            };
            let at = chance() as usize % bytes.len();
            bytes[at] = chance() as u8;
        }
        let _ = stream.write_all(&bytes);
        let _ = stream.read(&mut [0; 64]);
    }
    assert_eq!(client.ask("query 0")[0], 30);
    assert!(service.native().ask(json!({"devices": {}}))["devices"].is_array());
}

fn book(buffers: u64) -> Writer {
    let writer = Writer::create("this test").unwrap();
    let chips = Chips::one(writer.chip(0, Some(CHIP)).unwrap());
    for id in 1..=buffers {
        let label = if id == 1 { "weights".as_bytes() } else { b"" };
        let (kind, per_bank) = (if id % 2 == 1 { MemoryKind::Dram } else { MemoryKind::L1 }, 4096 * (buffers - id + 1));
        let (page, layout, owner) = (32, 0, 0);
        writer.allocate(&NewBuffer {
            id,
            chips,
            kind,
            logical: 100,
            per_bank,
            banks: 8,
            address: 64,
            page,
            layout,
            owner,
            label,
        });
    }
    writer
}

/// Hands a file over as an agent does.
fn hand_over(native: &Native, version: u32, file: &impl AsFd) {
    let text =
        [json!({"hello": {"version": version}}), json!({"book": {"pid": std::process::id()}})].map(|it| it.to_string());
    let frames: Vec<u8> =
        text.iter().flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()).collect();
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
    sendmsg(&native.0, &[IoSlice::new(&frames)], &mut beside, SendFlags::NOSIGNAL).unwrap();
}

#[test]
fn a_book_that_is_handed_over_counts_at_once_whatever_version_its_agent_speaks() {
    for version in [1, 2] {
        let (machine, folder) = (machine(), tempfile::tempdir().unwrap());
        // This process holds the device when the only sample is taken, and keeps no book yet.
        machine.set_pids(0, &[std::process::id()]);
        let config = folder.path().join("config.toml");
        std::fs::write(&config, "interval_ms = 3600000\n").unwrap();
        let service = Service::start_with(machine, &["--config", config.to_str().unwrap()]);
        let book = book(5);
        let mut agent = call(&service);
        hand_over(&agent, version, book.file());
        let answer = agent.hear().unwrap();
        assert_eq!(answer.get("hello").is_some(), version == 2, "{answer}");
        let dram = 4096 * 8 * (5 + 3 + 1);
        let find = |service: &Service| {
            let snapshot = service.snapshot();
            let processes = snapshot["processes"].as_array().unwrap();
            let mine = processes.iter().find(|process| process["pid"] == std::process::id()).cloned();
            (mine.unwrap_or_default(), snapshot["devices"][0]["memory"]["dram_used_bytes"].clone())
        };
        wait_for(|| find(&service).1 == dram, || service.snapshot().to_string());
        let (process, _) = find(&service);
        assert_eq!((&process["agent"], &process["devices"][0]["source"]), (&json!("this test"), &json!("exact")));
        assert_eq!(process["devices"][0]["exact"]["dram"]["buffers"], 3);
        let mut native = service.native();
        let page = native.ask(json!({"buffers": {"kind": "dram", "limit": 2}}))["buffers"].clone();
        let ids: Vec<_> = page["buffers"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
        assert_eq!((json!(ids), &page["total"]), (json!([1, 3]), &json!(3)));
        assert_eq!(native.ask(json!({"buffers": {"label": "eight"}}))["buffers"]["buffers"][0]["label"], "weights");
        // A PoC client on the same chip asks, and is told of all of it.
        assert_eq!(service.c().ask("query 0")[0], dram);
    }
}

#[test]
fn what_is_not_the_senders_own_book_is_refused() {
    let service = Service::start(machine());
    let (mut agent, not_a_book) = (call(&service), tempfile::tempfile().unwrap());
    hand_over(&agent, ledger::wire::VERSION, &not_a_book);
    assert!(agent.hear().unwrap().get("hello").is_some());
    assert!(reason(&agent.hear().unwrap()).ends_with("was refused: is not a book of ttmon"));
    let keeper = Harness::start(&[], &["book", &CHIP.to_string(), "1"], &[]);
    let folder = std::fs::read_dir(format!("/proc/{}/fd", keeper.pid)).unwrap();
    let is_book =
        |path: &std::path::PathBuf| std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().contains("ttmon"));
    let path = folder.map(|entry| entry.unwrap().path()).find(is_book).expect("it keeps a book");
    let others = std::fs::File::open(path).unwrap();
    hand_over(&agent, ledger::wire::VERSION, &others);
    assert!(agent.hear().unwrap().get("hello").is_some());
    let why = agent.hear().unwrap();
    assert!(reason(&why).contains("handed over the book of another process"), "{why}");
}

fn rested(seed: u64) -> (Harness, [u64; 3]) {
    let mut keeper = Harness::start(&[], &["book", &CHIP.to_string(), &seed.to_string()], &[]);
    keeper.ok("hurry");
    std::thread::sleep(Duration::from_millis(20));
    let reply = keeper.ask("stop");
    (keeper, ["dram", "l1", "trace"].map(|kind| number(&reply, kind)))
}

fn used(snapshot: &Value) -> Value {
    let memory = &snapshot["devices"][0]["memory"];
    json!(["dram_bytes", "l1_bytes", "trace_used_bytes"].map(|key| memory[key].clone()))
}

#[test]
fn a_service_that_comes_late_or_was_killed_knows_everything_and_says_what_smi_says() {
    let machine = machine();
    let (keepers, truths): (Vec<_>, Vec<_>) = (1..=3).map(rested).unzip();
    machine.set_pids(0, &keepers.iter().map(|keeper| keeper.pid).collect::<Vec<_>>());
    let sum = |truths: &[[u64; 3]]| json!([0, 1, 2].map(|kind| truths.iter().map(|truth| truth[kind]).sum::<u64>()));
    let mut service = Service::start(machine);
    // From the first moment on, unless the machine is so busy that the first sample misses its deadline.
    let knows = |service: &Service, truths: &[[u64; 3]]| {
        wait_for(|| used(&service.snapshot()) == sum(truths), || service.snapshot().to_string());
    };
    knows(&service, &truths);
    let direct = service.machine.json(&["--deadline-ms=30000"]);
    assert_eq!(used(&direct), sum(&truths), "{direct}");
    let held = |snapshot: &Value| -> Vec<Value> {
        let processes = snapshot["processes"].as_array().unwrap();
        processes.iter().map(|process| json!([process["pid"], process["command"], process["devices"]])).collect()
    };
    wait_for(|| held(&direct) == held(&service.snapshot()), || format!("{direct}\n{}", service.snapshot()));

    service.kill_and_restart();
    knows(&service, &truths);

    // A death: known at once, not with the next sample, and its book tells the rest.
    let mut keepers = keepers.into_iter();
    let mut victim = keepers.next().unwrap();
    victim.child.kill().unwrap();
    knows(&service, &truths[1..]);
    let death = service.death();
    assert_eq!((&death["pid"], &death["signal"]), (&json!(victim.pid), &json!(9)));
    assert_eq!(
        (&death["devices"][0]["dram_bytes"], &death["devices"][0]["source"]),
        (&json!(truths[0][0]), &json!("exact"))
    );
    assert_eq!(death["in_its_own_time"], false);
    assert_eq!(death["largest_buffers"].as_array().unwrap().len(), 10);
    assert!(service.terminate().success());
}

/// Makes the sockets, as systemd does, and becomes the service. Copies of another process's files (pidfd_getfd) are refused, as in
/// the containers of systemd-nspawn.
const SYSTEMD: &str = r#"
import ctypes, os, socket, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 438), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
listeners = []
for path in sys.argv[1:3]:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()
    listeners.append(listener)
for at, listener in enumerate(listeners):
    os.dup2(listener.fileno(), 10 + at)
for at in range(2):
    os.dup2(10 + at, 3 + at)
    os.set_inheritable(3 + at, True)
os.environ.update(LISTEN_FDS="2", LISTEN_PID=str(os.getpid()), WATCHDOG_PID=str(os.getpid()))
os.execv(sys.argv[3], sys.argv[3:])
"#;

#[test]
fn a_watchdog_hears_of_the_loop_as_long_as_it_turns() {
    let (machine, folder) = (machine(), tempfile::tempdir().unwrap());
    let place = |name: &str| folder.path().join(name);
    let told = std::os::unix::net::UnixDatagram::bind(place("notify")).unwrap();
    let hear = |within: Duration| {
        let mut bytes = [0; 256];
        told.set_read_timeout(Some(within)).unwrap();
        told.recv(&mut bytes).ok().map(|length| String::from_utf8(bytes[..length].to_vec()).unwrap())
    };
    let mut child = std::process::Command::new("python3")
        .args(["-c", SYSTEMD])
        .args([place("own.sock"), place("tt_allocation_server.sock")])
        .args([TTMON, "serve", "--listen", "off", "--root", machine.root()])
        .env("NOTIFY_SOCKET", place("notify"))
        .env("WATCHDOG_USEC", "400000")
        .stderr(std::fs::File::create(place("log")).unwrap())
        .spawn()
        .unwrap();
    let long = Duration::from_secs(20);
    assert_eq!(hear(long).as_deref(), Some("READY=1"));
    for _ in 0..5 {
        assert_eq!(hear(long).as_deref(), Some("WATCHDOG=1"));
    }
    // The service is the child of what was started. Its loop does not turn while it is stopped.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let service = rustix::process::Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(service, Signal::STOP).unwrap();
    while hear(Duration::from_millis(100)).is_some() {}
    assert_eq!(hear(Duration::from_secs(1)), None);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::CONT).unwrap();
    assert_eq!(hear(long).as_deref(), Some("WATCHDOG=1"));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn systemd_may_make_the_sockets_and_is_notified() {
    let (machine, folder) = (machine(), tempfile::tempdir().unwrap());
    let place = |name: &str| folder.path().join(name);
    let told = std::os::unix::net::UnixDatagram::bind(place("notify")).unwrap();
    told.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let hear = || {
        let mut bytes = [0; 256];
        let length = told.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let mut child = std::process::Command::new("python3")
        .args(["-c", SYSTEMD])
        .args([place("own.sock"), place("tt_allocation_server.sock")])
        .args([TTMON, "serve", "--listen", "off", "--root", machine.root()])
        .env("NOTIFY_SOCKET", place("notify"))
        .env("JOURNAL_STREAM", "8:1")
        .stderr(std::fs::File::create(place("log")).unwrap())
        .spawn()
        .unwrap();
    assert_eq!(hear(), "READY=1");
    let mut native = Native(UnixStream::connect(place("own.sock")).unwrap());
    assert_eq!(native.ask(json!({"hello": {"version": 2}}))["hello"]["version"], 2);
    let client = crate::support::service::c_client().to_str().unwrap();
    let mut poc = crate::support::service::Poc::start(&[], &[client], &place("tt_allocation_server.sock"));
    assert_eq!(poc.ask("query 0")[0], 0);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::HUP).unwrap();
    assert!(hear().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(hear(), "READY=1");
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(hear(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
    assert!(place("own.sock").exists(), "what systemd made is not ours to remove");
    let log = std::fs::read_to_string(place("log")).unwrap();
    assert!(log.lines().all(|line| line.starts_with("<6>event=")), "{log}");
}
