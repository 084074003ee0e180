//! The program ends when its work is done, also while a thread of it cannot end.

#![allow(clippy::unwrap_used, unsafe_code)]

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const TTMON: &str = env!("CARGO_BIN_EXE_ttmon");

/// The program with a device whose reads never come back.
fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(TTMON);
    command.args(arguments).arg("--sim=p150x2,stuck=1@0s");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn stat(pid: i32) -> Option<(char, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The process in which the program runs.
fn inner(outer: u32) -> i32 {
    eventually(|| numbers("/proc").into_iter().find(|&pid| stat(pid).is_some_and(|it| it.1 == outer as i32)))
}

fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "it did not happen in 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Holds the reading threads of a process so that none of them can end, as the kernel does during a reset, until this thread ends.
fn hold_readers(pid: i32) {
    let tasks = format!("/proc/{pid}/task");
    let is_reader = |tid: &i32| {
        std::fs::read_to_string(format!("{tasks}/{tid}/comm")).is_ok_and(|name| name.trim() == "ttmon-read")
    };
    let readers = eventually(|| {
        Some(numbers(&tasks).into_iter().filter(is_reader).collect::<Vec<_>>()).filter(|it| !it.is_empty())
    });
    for reader in readers {
        // SAFETY: this only concerns the thread that is named.
        let held =
            unsafe { libc::ptrace(libc::PTRACE_SEIZE, reader, null_mut::<u8>(), libc::PTRACE_O_TRACEEXIT as *mut u8) };
        assert_eq!(held, 0, "{}", std::io::Error::last_os_error());
    }
}

/// Reads to the end of the pipe: nobody has it open any more.
fn rest(child: &mut Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

fn signal(child: &Child, number: i32) {
    // SAFETY: the child is not waited for before it has ended.
    assert_eq!(unsafe { libc::kill(child.id() as i32, number) }, 0);
}

#[test]
fn a_snapshot_ends_in_time_and_its_pipe_too_while_a_reader_cannot_end() {
    let began = Instant::now();
    let mut child = start(&["smi", "--json", "--deadline-ms=1500"]);
    let inner = inner(child.id());
    hold_readers(inner);
    let text = rest(&mut child);
    let code = child.wait().unwrap().code();
    let took = began.elapsed();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("silent"), "{text}");
    assert!(took < Duration::from_millis(2500), "{took:?}");
    assert_eq!(stat(inner).unwrap().0, 'Z', "the reader is still there");
}

#[test]
fn the_service_stops_within_a_second_while_a_reader_cannot_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).into_os_string().into_string().unwrap();
    let mut child = start(&["serve", "--socket", &at("a"), "--poc-socket", &at("b"), "--listen", "off"]);
    let inner = inner(child.id());
    eventually(|| std::fs::exists(at("b")).unwrap().then_some(()));
    hold_readers(inner);
    let began = Instant::now();
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(stat(inner).unwrap().0, 'Z', "the reader is still there");
}

#[test]
fn a_signal_that_ends_the_program_ends_both_processes_and_is_seen_by_who_waits() {
    use std::os::unix::process::ExitStatusExt;
    let mut child = start(&["smi", "--deadline-ms=20000"]);
    let inner = inner(child.id());
    signal(&child, libc::SIGALRM);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGALRM));
    eventually(|| stat(inner).is_none_or(|it| it.0 == 'Z').then_some(()));

    let mut child = start(&["smi", "--deadline-ms=20000"]);
    let inner = self::inner(child.id());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    eventually(|| stat(inner).is_none_or(|it| it.0 == 'Z').then_some(()));
}

#[test]
fn a_program_that_is_stopped_and_continued_goes_on() {
    let mut child = start(&["smi", "--json", "--deadline-ms=1000"]);
    let inner = inner(child.id());
    // SAFETY: the process lives.
    assert_eq!(unsafe { libc::kill(inner, libc::SIGSTOP) }, 0);
    eventually(|| (stat(child.id() as i32).unwrap().0 == 'T').then_some(()));
    signal(&child, libc::SIGCONT);
    assert!(rest(&mut child).contains("silent"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn both_processes_go_on_after_both_were_stopped_whichever_is_continued_first() {
    for outer_first in [true, false] {
        let mut child = start(&["smi", "--json", "--deadline-ms=1000"]);
        let (outer, inner) = (child.id() as i32, inner(child.id()));
        // SAFETY: both processes live.
        let send = |pid, number| assert_eq!(unsafe { libc::kill(pid, number) }, 0);
        let order = if outer_first { [outer, inner] } else { [inner, outer] };
        for pid in order {
            send(pid, libc::SIGSTOP);
            eventually(|| (stat(pid).unwrap().0 == 'T').then_some(()));
        }
        for pid in order {
            send(pid, libc::SIGCONT);
            std::thread::sleep(Duration::from_millis(50));
        }
        let ended = eventually(|| child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0), "outer first: {outer_first}");
    }
}

/// A table of open files that several threads share grows only after milliseconds, at 64 files, at 128, and so on.
#[test]
fn a_snapshot_has_room_for_all_files_before_its_first_thread() {
    let mut child = start(&["smi", "--json", "--deadline-ms=1000"]);
    let inner = inner(child.id());
    hold_readers(inner);
    let status = std::fs::read_to_string(format!("/proc/{inner}/status")).unwrap();
    let size = eventually(|| status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse::<u32>().ok()));
    assert!(size >= 1024, "{size}");
    rest(&mut child);
    child.wait().unwrap();
}

#[test]
fn a_program_that_ends_at_once_is_seen_to_end_also_where_the_ends_of_children_are_ignored() {
    for _ in 0..50 {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' CHLD; exec \"$0\" --version", TTMON])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(eventually(|| child.try_wait().unwrap()).code(), Some(0));
    }
}
