//! `ttmon record`: what was recorded can be printed again, whatever ended the recording.

use crate::support::{Machine, Run, TTMON, run, ttmon};
use expect_test::expect_file;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sim::tree::Chip;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder, and a file in it that is not there yet.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    (folder, path)
}

fn machine() -> Machine {
    Machine::with(&[Chip::p150a(0), Chip::p150b(1)])
}

fn dump(path: &Path) -> (Vec<Value>, Run) {
    let run = ttmon(&["record", "--dump", path.to_str().unwrap()]);
    let lines = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines, run)
}

/// A program that records, killed when dropped.
struct Recorder(Child);

impl Recorder {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn ended(mut self) -> (Option<i32>, String) {
        let mut error = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        (self.0.wait().unwrap().code(), error)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_dash_is_standard_output_and_never_a_file() {
    let (folder, path) = place();
    let machine = machine();
    let record = |out: Stdio| {
        let mut command = Command::new(TTMON);
        command.args(["record", "--every", "50ms", "--for", "200ms", "--root", machine.root(), "-o", "-"]);
        command.current_dir(folder.path()).stdout(out).stderr(Stdio::piped()).output().unwrap()
    };
    let made = record(Stdio::piped());
    assert!(made.status.success(), "{made:?}");
    std::fs::write(&path, &made.stdout).unwrap();
    let (snapshots, printed) = dump(&path);
    assert!(snapshots.len() >= 2 && printed.err.is_empty(), "{}", printed.err);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let full = record(std::fs::File::options().write(true).open("/dev/full").unwrap().into());
    let error = String::from_utf8(full.stderr).unwrap();
    assert!(full.status.code() == Some(1) && error.contains("No space left on device"), "{error}");
}

fn recorder(machine: &Machine, path: &Path, every: &str) -> Recorder {
    let child = Command::new(TTMON)
        .args(["record", "--every", every, "--root", machine.root(), "-o"])
        .arg(path)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Recorder(child)
}

/// Waits until the file has so many bytes.
fn wait_for_bytes(path: &Path, bytes: u64) {
    let until = Instant::now() + Duration::from_secs(30);
    while std::fs::metadata(path).map_or(0, |metadata| metadata.len()) < bytes {
        assert!(Instant::now() < until, "nothing is written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_simulated_machine_is_recorded_and_printed_again() {
    let (_folder, path) = place();
    let file = path.to_str().unwrap();
    let recorded = ttmon(&["record", "--sim=n300x4", "--for", "2s", "--every", "100ms", "-o", file]);
    assert_eq!((recorded.code, recorded.out.as_str()), (Some(0), ""), "{}", recorded.err);
    let (samples, printed) = dump(&path);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    // A slow machine takes fewer, but never more.
    assert!((2..=21).contains(&samples.len()), "{}", samples.len());
    let said = recorded.err.strip_prefix(&format!("{} samples in ", samples.len())).unwrap();
    assert!(said.ends_with(&format!("iB: {file}\n")) && said.lines().count() == 1, "{}", recorded.err);
    let times: Vec<&str> = samples.iter().map(|sample| sample["taken_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    for sample in &samples {
        assert_eq!((&sample["schema"], &sample["host"]["simulated"]), (&1.into(), &true.into()));
        assert_eq!(sample["devices"].as_array().unwrap().len(), 8);
    }
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn sigterm_and_ctrl_c_end_it_cleanly() {
    for way in [Signal::TERM, Signal::INT] {
        let (machine, (_folder, path)) = (machine(), place());
        let child = recorder(&machine, &path, "10ms");
        wait_for_bytes(&path, 1000);
        child.signal(way);
        let (code, said) = child.ended();
        assert_eq!(code, Some(0), "{said}");
        let (samples, printed) = dump(&path);
        assert_eq!(printed.err, "", "it was finished");
        assert!(said.starts_with(&format!("{} sample", samples.len())) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn sigkill_loses_the_last_chunk_at_the_most() {
    let (machine, (_folder, path)) = (machine(), place());
    let child = recorder(&machine, &path, "10ms");
    // The first sample is written at once, others sixty at a time.
    wait_for_bytes(&path, 1);
    wait_for_bytes(&path, std::fs::metadata(&path).unwrap().len() + 2000);
    child.signal(Signal::KILL);
    assert_eq!(child.ended(), (None, String::new()));
    let (samples, printed) = dump(&path);
    assert_eq!(printed.code, Some(0));
    assert!(samples.len() > 60 && samples.len() % 60 == 1, "{}", samples.len());
    let name = path.display();
    assert_eq!(printed.err, format!("{name}: the recording was not finished; what was written is whole\n"));
}

#[test]
fn a_recording_can_be_looked_at_while_it_is_made() {
    let (machine, (_folder, path)) = (machine(), place());
    let child = recorder(&machine, &path, "1h");
    let until = Instant::now() + Duration::from_secs(30);
    while dump(&path).1.code != Some(0) {
        assert!(Instant::now() < until, "{}", dump(&path).1.err);
    }
    assert_eq!(dump(&path).0.len(), 1);
    let name = path.to_str().unwrap();
    let second = ttmon(&["record", "--root", machine.root(), "-o", name]);
    assert_eq!(second.code, Some(2));
    assert_eq!(second.err, format!("error: cannot write to {name}: another process is recording to it\n"));
    child.signal(Signal::TERM);
    assert_eq!(child.ended().0, Some(0));
}

#[test]
fn an_existing_file_is_not_written_over() {
    let (machine, (_folder, path)) = (machine(), place());
    let name = path.to_str().unwrap();
    std::fs::write(&path, "precious").unwrap();
    let run = ttmon(&["record", "--for", "1s", "--root", machine.root(), "-o", name]);
    let reason = "there is something in it already; remove it, or choose another name";
    assert_eq!((run.code, run.err), (Some(2), format!("error: cannot write to {name}: {reason}\n")));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let run = ttmon(&["record", "--dump", name]);
    let reason = "it is no recording: name a file that `ttmon record -o` has written";
    assert_eq!((run.code, run.err), (Some(2), format!("error: {name}: {reason}\n")));
}

#[test]
fn a_limit_on_the_size_of_files_is_reported_and_the_rest_is_whole() {
    let (machine, (_folder, path)) = (machine(), place());
    let mut shell = Command::new("sh");
    // Blocks of 512 bytes.
    shell.args(["-c", r#"ulimit -f 16; exec "$@""#, "sh", TTMON, "record", "--every", "10ms"]);
    let run = run(shell.args(["--root", machine.root(), "-o"]).arg(&path));
    fell_short(&run, &path, "File too large (os error 27)");
}

#[test]
#[ignore = "long"]
fn a_full_disk_is_reported_and_the_rest_is_whole() {
    let test = "a_full_disk_is_reported_and_the_rest_is_whole";
    if !crate::support::is_root() {
        return crate::support::not_run(test, "only root may mount");
    }
    let (machine, (folder, path)) = (machine(), place());
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    // The disk is gone with the program: what it holds is brought to safety.
    let script = r#"mount -t tmpfs -o size=32k none "$1" || exit 99
        "$3" record --every 10ms --root "$4" -o "$1/recording"
        code=$?; cp "$1/recording" "$2"; exit $code"#;
    let mut unshare = Command::new("unshare");
    let words = [disk.as_os_str(), path.as_os_str(), TTMON.as_ref(), machine.root().as_ref()];
    let run = run(unshare.args(["-m", "sh", "-c", script, "sh"]).args(words));
    if run.code == Some(99) {
        return crate::support::not_run(test, "nothing can be mounted here");
    }
    fell_short(&run, &disk.join("recording"), "No space left on device (os error 28)");
    assert!(dump(&path).0.len() > 1);
}

/// One sentence, exit code 1, and, where the file is still there, all samples but the last ones in it.
fn fell_short(run: &Run, path: &Path, reason: &str) {
    let name = path.display();
    let sentence = format!("error: {name}: the recording ends here, because it cannot be written: {reason}\n");
    assert_eq!((run.code, &run.err), (Some(1), &sentence));
    if path.exists() {
        let (samples, printed) = dump(path);
        assert!(samples.len() > 1 && printed.code == Some(0), "{}", printed.err);
        assert!(!printed.err.contains("cut off"), "{}", printed.err);
    }
}

#[test]
fn where_there_is_no_device_there_is_no_recording() {
    let ((folder, path), empty) = (place(), tempfile::tempdir().unwrap());
    let run = ttmon(&["record", "--root", empty.path().to_str().unwrap(), "-o", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(9));
    assert!(run.err.starts_with("error: the tenstorrent driver is not loaded"), "{}", run.err);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left behind");
}

#[test]
fn wrong_words_are_exit_2() {
    let code = |words: &str| ttmon(&words.split(' ').collect::<Vec<_>>()).code;
    for words in [
        "record",
        "record -o x --dump y",
        "record --dump /nonexistent",
        "record --dump /",
        "record -o /nonexistent/x --sim",
        "record -o x --for ever",
        "record -o x --for 10",
        "record -o x --every 1ms",
        "record --dump x --sim",
    ] {
        assert_eq!(code(words), Some(2), "{words}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (machine, (_folder, path)) = (machine(), place());
    let name = path.to_str().unwrap();
    assert_eq!(
        ttmon(&["record", "--for", "2s", "--every", "10ms", "--root", machine.root(), "-o", name]).code,
        Some(0)
    );
    let script = r#"set -o pipefail; "$0" record --dump "$1" | head -n 1 | wc -l"#;
    let run = run(Command::new("bash").args(["-c", script, TTMON, name]));
    assert_eq!((run.code, run.out.trim(), run.err.as_str()), (Some(0), "1", ""));
}

#[test]
fn help_is_as_pinned() {
    let run = run(Command::new(TTMON).args(["record", "--help"]).env("COLUMNS", "100"));
    expect_file!["golden/record-help.txt"].assert_eq(&run.out);
}
