//! A server in this process, which a folder like `/proc` describes: every refusal, and whole conversations.

use super::super::{InspectorRefusal, launched_operations};
use super::{SCHEMA, message, recorded};
use crate::dir::Root;
use model::OperationList;
use recorded::bytes;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use tempfile::TempDir;

/// A machine whose only process is this one, with a library and a schema that need not be there.
struct Bench(TempDir);

impl Bench {
    fn new(environ: &str) -> Bench {
        let bench = Bench(tempfile::tempdir().unwrap());
        let process = bench.process();
        std::fs::create_dir_all(&process).unwrap();
        std::fs::create_dir_all(bench.0.path().join("triage")).unwrap();
        for part in ["fd", "net", "ns", "root"] {
            symlink(format!("/proc/self/{part}"), process.join(part)).unwrap();
        }
        // These are no links, and none would be followed.
        for part in ["stat", "status"] {
            std::fs::write(process.join(part), std::fs::read(format!("/proc/self/{part}")).unwrap()).unwrap();
        }
        std::fs::write(process.join("environ"), environ.replace(' ', "\0")).unwrap();
        bench.map(&bench.library());
        std::fs::write(bench.schema(), SCHEMA).unwrap();
        bench
    }

    fn library(&self) -> String {
        format!("{}/ttnn/build/lib/libtt_metal.so", self.0.path().display())
    }

    fn process(&self) -> PathBuf {
        self.0.path().join(format!("proc/{}", std::process::id()))
    }

    fn schema(&self) -> PathBuf {
        self.0.path().join("triage/inspector.capnp")
    }

    fn map(&self, file: &str) {
        let text =
            format!("55d0c0a00000-55d0c0a01000 rw-p 00000000 00:00 0\n7f00-7f01 r-xp 00000000 fe:00 99 {file}\n");
        std::fs::write(self.process().join("maps"), text).unwrap();
    }

    fn ask(&self, address: Option<&str>) -> Result<OperationList, InspectorRefusal> {
        launched_operations(&Root::under(self.0.path()), std::process::id(), address)
    }

    fn refusal(&self) -> String {
        let text = self.ask(None).unwrap_err().to_string();
        text.replace(&std::process::id().to_string(), "PID").replace(&self.0.path().display().to_string(), "ROOT")
    }
}

/// Answers each request of a client with the next of these, and then reads on until the client leaves.
fn answer(mut stream: impl Read + Write, answers: &[Vec<u8>]) {
    let mut buffer = [0; 4096];
    for answer in answers {
        if stream.read(&mut buffer).unwrap_or(0) == 0 {
            return;
        }
        let _ = stream.write_all(answer);
    }
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

/// The answer to question 0: an object. Then nothing for question 1 that is of use, the launches, and the chips.
fn good() -> Vec<Vec<u8>> {
    // A return whose payload is empty, and a release, which is none of ours.
    let object = message(&[&[1 << 32 | 1 << 48, 3, 2 << 32 | 1 << 48, 0, 0, 0]]);
    let release = message(&[&[1 << 32 | 1 << 48, 6, 1 << 32, 0]]);
    let launches = [release, bytes(recorded::ENTRIES_IN_SIX_SEGMENTS)].concat();
    vec![object, launches, bytes(recorded::DEVICES)]
}

/// A server for one client, on a port of its own.
fn serve(answers: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        answer(stream, &answers);
    });
    port
}

fn at(port: u16) -> String {
    format!("TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS=localhost:{port}")
}

#[test]
fn a_process_is_asked_where_its_environment_says() {
    let list = Bench::new(&at(serve(good()))).ask(None).unwrap();
    assert_eq!((list.launches, list.operations.len(), list.chips), (3, 3, Some(vec![0, 1, 4])));
    let port = serve(good());
    let list = Bench::new("").ask(Some(&format!("localhost:{port}"))).unwrap();
    assert_eq!(list.launches, 3, "or at the address that is given");
}

#[test]
fn a_process_that_listens_on_all_addresses_or_on_a_path_is_reached() {
    for all in ["0.0.0.0:0", "[::]:0"] {
        // A machine may have no IPv6.
        let Ok(listener) = TcpListener::bind(all) else { continue };
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || answer(listener.accept().unwrap().0, &good()));
        assert_eq!(Bench::new(&at(port)).ask(None).unwrap().launches, 3, "{all}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    let bench = Bench::new(&format!("TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS=unix:{}", path.display()));
    let refusal = bench.refusal();
    assert!(refusal.contains(&format!("it does not listen on unix:{}", path.display())), "{refusal}");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || answer(listener.accept().unwrap().0, &good()));
    assert_eq!(bench.ask(None).unwrap().launches, 3);
}

#[test]
fn what_cannot_be_asked_is_refused_with_one_sentence() {
    let nothing = "there is no process 0";
    assert_eq!(launched_operations(&Root::machine(), 0, None).unwrap_err().to_string(), nothing);
    let of = |environ: &str| Bench::new(environ).refusal();
    let port = serve(good());
    let bench = Bench::new(&at(port));
    bench.map("/usr/lib/libc.so.6");
    let mut all = vec![bench.refusal()];
    bench.map(&format!("{} (deleted)", bench.library()));
    all.push(bench.refusal());
    bench.map(&bench.library());
    std::fs::write(bench.schema(), SCHEMA.replace("@0xf8", "@0xf9")).unwrap();
    all.push(bench.refusal());
    std::fs::remove_file(bench.schema()).unwrap();
    all.push(bench.refusal());
    all.push(of("TT_METAL_INSPECTOR_RPC=0 TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS=localhost:1"));
    expect_test::expect![[r#"
        process PID has not loaded libtt_metal.so: only programs with tt-metal have an Inspector
        process PID runs a libtt_metal.so that was replaced or removed since, and its schema with it: restart the process
        the schema ROOT/triage/inspector.capnp is not known: it is not the schema 0xf8b5d6e3c2a19074; update ttmon
        there is no schema triage/inspector.capnp beside ROOT/ttnn/build/lib/libtt_metal.so: install it from the ttnn wheel of the same version
        process PID has no Inspector: TT_METAL_INSPECTOR_RPC=0 turns it off; start it without that variable"#]].assert_eq(&all.join("\n"));
    let closed = of(&at(1));
    assert!(
        closed.starts_with("process PID has no Inspector port: it does not listen on port 1. It has no device open")
    );
    assert!(
        closed.contains(&port.to_string()) && closed.ends_with("name the port with --address localhost:PORT"),
        "{closed}"
    );
}

#[test]
fn a_process_in_another_network_namespace_is_refused() {
    let bench = Bench::new(&at(serve(good())));
    std::fs::remove_file(bench.process().join("ns")).unwrap();
    std::fs::create_dir(bench.process().join("ns")).unwrap();
    symlink("net:[1]", bench.process().join("ns/net")).unwrap();
    expect_test::expect!["process PID is in another network namespace, as in a container: run `nsenter --target PID --net ttmon ops PID` as root, or run ttmon in that container"].assert_eq(&bench.refusal());
}

#[test]
fn a_port_of_another_process_is_named() {
    // This process has no sockets here; the one that has it is the process of another pid.
    let bench = Bench::new(&at(serve(good())));
    let other = bench.0.path().join("proc/1234567");
    std::fs::rename(bench.process(), &other).unwrap();
    std::fs::create_dir_all(bench.process().join("fd")).unwrap();
    for part in ["maps", "environ", "stat", "status", "net", "ns", "root"] {
        let (from, to) = (other.join(part), bench.process().join(part));
        if from.symlink_metadata().unwrap().is_symlink() {
            symlink(from.read_link().unwrap(), to).unwrap();
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
    std::fs::write(other.join("cmdline"), "python3\0ser\x1bve.py\0").unwrap();
    let refusal = bench.refusal();
    assert!(refusal.starts_with("process PID has no Inspector port: port "), "{refusal}");
    assert!(refusal.contains(" belongs to process 1234567 (python3 ser?ve.py); give each process"), "{refusal}");
}

#[test]
fn a_server_that_answers_badly_is_refused_with_the_reason() {
    let of = |answers: Vec<Vec<u8>>| Bench::new(&at(serve(answers))).refusal();
    let object = || good()[0].clone();
    let all = [
        of(vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]),
        of(vec![bytes(recorded::ABORT)]),
        of(vec![object(), bytes(recorded::EXCEPTION)]),
        of(vec![object(), message(&[&[1 << 32 | 1 << 48, 3, 2 << 32 | 1 << 48, 1, 0, 99 << 2]])]),
    ];
    expect_test::expect![[r#"
        the Inspector of process PID sent a message that cannot be read: it has too many segments
        the Inspector of process PID ended the conversation: bye
        the Inspector of process PID refused the call: no such?method
        the Inspector of process PID sent a message that cannot be read: a pointer leads outside of it"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn a_server_that_does_not_answer_is_left_after_two_seconds() {
    let silent = Bench::new(&at(serve(vec![]))).refusal();
    assert!(silent.starts_with("the Inspector of process PID did not answer within 2 s"), "{silent}");
}

#[test]
fn a_server_that_never_ends_is_left_after_two_seconds() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let release = message(&[&[1 << 32 | 1 << 48, 6, 1 << 32, 0]]);
        while stream.write_all(&release).is_ok() {}
    });
    let endless = Bench::new(&at(port)).refusal();
    assert!(endless.contains("did not answer within 2 s"), "{endless}");
}

#[test]
fn a_connection_that_another_process_accepts_is_not_asked() {
    let port = serve(good());
    let bench = Bench::new(&at(port));
    // The process has the listening socket, and not the one that was accepted: as a child that was forked.
    let listening = std::fs::read_dir("/proc/self/fd").unwrap().find_map(|entry| {
        let link = std::fs::read_link(entry.unwrap().path()).ok()?;
        let inode = super::socket_of(link.to_str()?.as_bytes())?;
        let table = std::fs::read("/proc/self/net/tcp").unwrap();
        let socket = super::tcp_sockets(&table).into_iter().find(|socket| socket.inode == inode)?;
        (socket.listens && socket.local.port() == port).then_some(link)
    });
    std::fs::remove_file(bench.process().join("fd")).unwrap();
    std::fs::create_dir(bench.process().join("fd")).unwrap();
    symlink(listening.unwrap(), bench.process().join("fd/3")).unwrap();
    let refusal = bench.refusal();
    assert!(refusal.starts_with("process PID shares the socket of its Inspector"), "{refusal}");
}
