//! The reader as a process: against files in place of devices, as in simulated machines.

#![allow(clippy::unwrap_used)]

use deep::protocol::{Ask, LONGEST};
use deep::walk::{MOST_READS, registers};
use deep::{Reader, Reading, Refused, Request};
use model::{Arch, DeepUnavailable};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_deep-reader");
const DEADLINE: Duration = Duration::from_secs(30);
const TABLE: u32 = 0x1000_1000;

/// A folder of nodes, and a reader for it.
struct Bench {
    folder: tempfile::TempDir,
    reader: Reader,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let reader = Reader::new(PROGRAM.into(), folder.path().to_owned());
        Bench { folder, reader }
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn with(text: &str) -> Bench {
        let bench = Bench::new();
        fs::write(bench.path("0"), text).unwrap();
        bench
    }

    fn read(&mut self, number: u32, arch: Arch) -> Result<Reading, Refused> {
        self.reader.read(&Request { number, arch, pids: None }, DEADLINE)
    }

    fn refusal(&mut self, number: u32) -> DeepUnavailable {
        self.read(number, Arch::Blackhole).unwrap_err().why
    }
}

/// An image with these entries, whose values follow the table.
fn image(arch: Arch, entries: &[(u16, u32)]) -> String {
    let (table, data) = registers(arch);
    let values = TABLE + 8 + 4 * entries.len() as u32;
    let mut text = format!("# A chip.\n{table:#x} = {TABLE:#x}\n{data:#x} = {values:#x}\n");
    writeln!(text, "{TABLE:#x} = 0x100\n{:#x} = {:#x}", TABLE + 4, entries.len()).unwrap();
    for (index, (tag, value)) in entries.iter().enumerate() {
        let index = index as u32;
        writeln!(text, "{:#x} = {:#x}", TABLE + 8 + 4 * index, u32::from(*tag) | index << 16).unwrap();
        writeln!(text, "{:#x} = {value:#x}", values + 4 * index).unwrap();
    }
    text
}

fn tags(reading: &Reading) -> Vec<(u16, u32)> {
    reading.table.entries.iter().map(|entry| (entry.tag, entry.value)).collect()
}

/// The processes that this test has started and not waited for yet: by their parent, since a reader hides its files.
fn readers_of(program: &str, nodes: &Path) -> Vec<i32> {
    let nodes = nodes.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).map(String::from_utf8_lossy).eq([program, "deep-reader", nodes, ""])
    })
    .collect()
}

fn signal(pid: i32, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap().success());
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn tables_of_both_generations_are_read_as_they_are() {
    let entries: Vec<(u16, u32)> = (1..70).map(|tag| (tag, 7 * u32::from(tag))).collect();
    for arch in Arch::ALL {
        let mut bench = Bench::with(&image(arch, &entries));
        let reading = bench.read(0, arch).unwrap();
        assert_eq!(tags(&reading), entries);
        assert_eq!((reading.table.arch, reading.table.version), (arch, 0x100));
        assert_eq!((reading.reads, reading.pending, reading.opens), (2 + 2 + 69 + 69 + 2, 0, 1));
        assert!(reading.filtered, "system calls are filtered");
        // The list of entries and the static ones are known now.
        let reading = bench.read(0, arch).unwrap();
        assert_eq!((tags(&reading), reading.opens), (entries.clone(), 2));
        assert!(reading.reads < 60, "{}", reading.reads);
    }
}

#[test]
fn tables_that_the_device_model_has_are_read_whole() {
    for (arch, text) in
        [(Arch::Blackhole, include_str!("images/blackhole.txt")), (Arch::Wormhole, include_str!("images/wormhole.txt"))]
    {
        let reading = Bench::with(text).read(0, arch).unwrap();
        assert!(reading.reads <= MOST_READS && reading.pending == 0, "{}", reading.reads);
        // The images say in a comment what the model had.
        let expected = text.lines().filter_map(|line| line.strip_prefix("# tag ")?.split_once(" = 0x"));
        let expected: Vec<(u16, u32)> =
            expected.map(|(tag, value)| (tag.parse().unwrap(), u32::from_str_radix(value, 16).unwrap())).collect();
        assert!(expected.len() > 60);
        assert_eq!(tags(&reading), expected);
    }
}

#[test]
fn one_reader_serves_all_devices() {
    let mut bench = Bench::new();
    for number in 0..40 {
        fs::write(bench.path(number.to_string()), image(Arch::Blackhole, &[(1, number), (32, 5)])).unwrap();
    }
    for round in 0..3 {
        for number in (0..40).filter(|number| number % 32 != 7 || round != 1) {
            let reading = bench.read(number, Arch::Blackhole).unwrap();
            assert_eq!(tags(&reading), [(1, number), (32, 5)]);
        }
    }
    let pid = bench.reader.pid().unwrap() as i32;
    assert_eq!(readers_of(PROGRAM, bench.folder.path()), [pid]);
}

#[test]
fn a_file_that_is_no_chip_is_refused_with_a_reason() {
    use DeepUnavailable::{BadTable, NoTable, NotPermitted, NotReady};
    let mut bench = Bench::new();
    fs::write(bench.path("0"), "").unwrap();
    assert_eq!(bench.refusal(0), NoTable);
    fs::write(bench.path("0"), "\u{1}\u{2}\n").unwrap();
    assert_eq!(bench.refusal(0), BadTable);
    fs::write(bench.path("0"), "#\n".repeat(40_000)).unwrap();
    assert_eq!(bench.refusal(0), BadTable);
    fs::write(bench.path("0"), "0x80030434 = 0xffffffff\n").unwrap();
    assert_eq!(bench.refusal(0), NotReady);
    assert_eq!(bench.refusal(1), NotReady, "no such node");
    fs::create_dir(bench.path("2")).unwrap();
    assert_eq!(bench.refusal(2), NotReady);
    // Nobody writes to it, and it does not wait for that.
    assert!(Command::new("mkfifo").arg(bench.path("3")).status().unwrap().success());
    assert!(fs::metadata(bench.path("3")).unwrap().file_type().is_fifo());
    assert_eq!(bench.refusal(3), NotReady);
    std::os::unix::fs::symlink("/dev/null", bench.path("4")).unwrap();
    assert_eq!(bench.refusal(4), DeepUnavailable::TooOld, "a device that does not know the requests");
    let refused = bench.read(1, Arch::Blackhole).unwrap_err();
    let path = bench.path("1");
    assert_eq!(refused.detail, format!("{}: open: No such file or directory (os error 2)", path.display()));
    assert!(!refused.opened);
    // Root may open it all the same, but for its lack of capabilities.
    fs::write(bench.path("5"), image(Arch::Blackhole, &[(1, 1)])).unwrap();
    assert!(Command::new("chmod").arg("000").arg(bench.path("5")).status().unwrap().success());
    assert_eq!(bench.refusal(5), NotPermitted);
    assert_eq!(readers_of(PROGRAM, bench.folder.path()).len(), 1, "none of it ended the reader");
}

#[test]
fn a_device_that_nobody_holds_is_not_opened() {
    let mut bench = Bench::with(&image(Arch::Wormhole, &[(32, 5)]));
    let list = bench.path("pids");
    let request = Request { number: 0, arch: Arch::Wormhole, pids: Some(list.clone()) };
    let mut read = |text: &str| {
        fs::write(&list, text).unwrap();
        bench.reader.read(&request, DEADLINE)
    };
    let refused = read("").unwrap_err();
    assert_eq!((refused.why, refused.opened), (DeepUnavailable::NotHeld, false));
    assert_eq!(read("71\n0\n").unwrap().reads, 2 + 2 + 2 + 2);
    fs::remove_file(&list).unwrap();
    let refused = bench.reader.read(&request, DEADLINE).unwrap_err();
    assert_eq!((refused.why, refused.opened), (DeepUnavailable::NotReady, false));
    let long = Request { pids: Some("x".repeat(600).into()), ..request };
    assert_eq!(bench.reader.read(&long, DEADLINE).unwrap_err().why, DeepUnavailable::ReaderFailed);
}

#[test]
fn a_reader_that_is_stuck_is_killed_and_replaced() {
    let mut bench = Bench::with(&image(Arch::Blackhole, &[(32, 5)]));
    bench.read(0, Arch::Blackhole).unwrap();
    let stuck = readers_of(PROGRAM, bench.folder.path());
    signal(stuck[0], "STOP");
    let (start, deadline) = (Instant::now(), Duration::from_millis(300));
    let request = Request { number: 0, arch: Arch::Blackhole, pids: None };
    let refused = bench.reader.read(&request, deadline).unwrap_err();
    assert_eq!((refused.why, &*refused.detail), (DeepUnavailable::ReaderFailed, "no answer within 300 ms"));
    assert!(start.elapsed() >= deadline);
    assert_eq!(bench.read(0, Arch::Blackhole).unwrap().opens, 1, "by another reader, at once");
    until("the stuck one is gone", || readers_of(PROGRAM, bench.folder.path()).len() == 1);
    assert_ne!(readers_of(PROGRAM, bench.folder.path()), stuck);
}

#[test]
fn a_reader_that_was_killed_is_replaced() {
    let mut bench = Bench::with(&image(Arch::Blackhole, &[(32, 5)]));
    bench.read(0, Arch::Blackhole).unwrap();
    let folder = bench.folder.path().to_owned();
    signal(readers_of(PROGRAM, &folder)[0], "KILL");
    until("it is gone", || readers_of(PROGRAM, &folder).is_empty());
    // Between two requests: nobody notices.
    bench.read(0, Arch::Blackhole).unwrap();
    // In the middle of one.
    signal(readers_of(PROGRAM, &folder)[0], "STOP");
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        signal(readers_of(PROGRAM, &folder)[0], "BUS");
        signal(readers_of(PROGRAM, &folder)[0], "CONT");
    });
    let refused = bench.read(0, Arch::Blackhole).unwrap_err();
    killer.join().unwrap();
    assert_eq!(refused.why, DeepUnavailable::NotReady);
    assert_eq!(refused.detail, "the device was reset or removed while it was read");
    bench.read(0, Arch::Blackhole).unwrap();
}

#[test]
fn a_reader_that_never_answers_is_started_with_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let request = Request { number: 0, arch: Arch::Blackhole, pids: None };
    for (program, expected) in
        [("/bin/true", "the reader ended"), ("/nonexistent", "/nonexistent: No such file or directory (os error 2)")]
    {
        let mut reader = Reader::new(program.into(), folder.path().to_owned());
        let first = reader.read(&request, DEADLINE).unwrap_err();
        assert!(first.detail.starts_with(expected), "{first:?}");
        assert_eq!(first.why, DeepUnavailable::ReaderFailed);
        let second = reader.read(&request, DEADLINE).unwrap_err();
        assert_eq!(second.detail, "the reader ended and is started again in 1 s");
        std::thread::sleep(Duration::from_millis(1100));
        assert!(reader.read(&request, DEADLINE).unwrap_err().detail.starts_with(expected));
        let fourth = reader.read(&request, DEADLINE).unwrap_err();
        assert_eq!(fourth.detail, "the reader ended and is started again in 2 s");
        assert!(!fourth.opened);
    }
}

#[test]
fn the_kernel_ends_a_reader_that_makes_another_call() {
    let mut bench = Bench::with(&image(Arch::Blackhole, &[(32, 5)]));
    bench.read(0, Arch::Blackhole).unwrap();
    let refused = bench.reader.break_its_rules();
    assert!(refused.detail.contains("signal: 31 (SIGSYS)"), "{refused:?}");
    bench.read(0, Arch::Blackhole).unwrap();
}

#[test]
fn a_thousand_reads_leave_no_file_open() {
    let mut bench = Bench::with(&image(Arch::Blackhole, &[(1, 2), (32, 5)]));
    fs::write(bench.path("pids"), "1\n").unwrap();
    let request = Request { number: 0, arch: Arch::Blackhole, pids: Some(bench.path("pids")) };
    // The reader can have sixteen files: one that is left open would soon be noticed.
    for _ in 0..500 {
        bench.reader.read(&request, DEADLINE).unwrap();
        assert_eq!(bench.refusal(1), DeepUnavailable::NotReady);
    }
    assert_eq!(bench.reader.read(&request, DEADLINE).unwrap().opens, 501);
}

#[test]
fn a_reader_ends_with_its_monitor_and_at_garbage() {
    let bench = Bench::with(&image(Arch::Blackhole, &[(32, 5)]));
    let start = || {
        let (ours, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let mut command = Command::new(PROGRAM);
        command.arg("deep-reader").arg(bench.folder.path()).stdin(its);
        (ours, command.spawn().unwrap())
    };
    let mut packet = [0; LONGEST];
    let (ours, mut child) = start();
    let length = Ask::Read { number: 0, arch: Arch::Blackhole, pids: None }.encode(&mut packet);
    send(&ours, &packet[..length], SendFlags::NOSIGNAL).unwrap();
    assert!(recv(&ours, &mut packet, RecvFlags::empty()).unwrap().1 > 0);
    send(&ours, &[1, 2, 3], SendFlags::NOSIGNAL).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    drop(bench);

    // A reader that has nothing to do ends when its socket does.
    let mut bench = Bench::with(&image(Arch::Blackhole, &[(32, 5)]));
    bench.read(0, Arch::Blackhole).unwrap();
    let folder = bench.folder.path().to_owned();
    drop(bench);
    until("it ends", || readers_of(PROGRAM, &folder).is_empty());
}

#[test]
fn a_reader_does_not_survive_its_monitor() {
    // A monitor that reads a device which is not there, again and again.
    let mut monitor = Command::new(PROGRAM);
    monitor.args(["deep-reader", "--print", "4000000000", "blackhole", "1000", "1000", "idle"]).stdout(Stdio::null());
    let mut monitor = monitor.spawn().unwrap();
    let of_monitor = || {
        let all = readers_of(PROGRAM, Path::new("/dev/tenstorrent")).into_iter();
        let parent = format!("PPid:\t{}\n", monitor.id());
        all.filter(|pid| fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| text.contains(&parent)))
            .collect()
    };
    until("it has a reader", || Vec::len(&of_monitor()) == 1);
    let reader: Vec<i32> = of_monitor();
    // Also if it does not get to look at its socket.
    signal(reader[0], "STOP");
    monitor.kill().unwrap();
    monitor.wait().unwrap();
    until("it ends", || !readers_of(PROGRAM, Path::new("/dev/tenstorrent")).contains(&reader[0]));
}

#[test]
fn a_person_who_starts_it_is_told_how() {
    for arguments in [&["deep-reader"][..], &["deep-reader", "/dev"], &["deep-reader", "--print", "x"]] {
        let output = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8(output.stderr).unwrap().contains("deep-reader --print NUMBER"));
    }
}
