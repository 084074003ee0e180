//! Dispatch telemetry, read inside the process: from devices of a library that stands in for tt-metal.

use crate::harness::{Harness, Pages, books, built, cluster, value, wheels};
use ledger::book::activity::{self, ActivitySource, ChipActivity, NoRecords, NotKnown, monotonic};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIBRARY: &str = include_str!("fake_metal.cpp");

/// Loads the library as Python does, after the agent and without making its functions known to others.
const PROGRAM: &str = r#"
    #include <dlfcn.h>
    #include <stdio.h>
    #include <string.h>
    int main(int count, char **arguments) {
        void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) return puts(dlerror()), 2;
        void (*command)(const char *) = (void (*)(const char *))dlsym(library, "command");
        char line[256];
        while (fgets(line, sizeof line, stdin)) {
            if (!strncmp(line, "exit", 4)) break;
            command(line);
        }
        return 0;
    }
"#;

/// The library and the program, compiled once.
fn compiled() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let compile = |compiler: &str, name: &str, text: &str, output: &str, how: &[&str]| {
            let source = folder.path().join(name);
            fs::write(&source, text).unwrap();
            let output = folder.path().join(output);
            let status = Command::new(compiler).args(how).arg("-o").args([&output, &source]).status().unwrap();
            assert!(status.success(), "{name}");
        };
        let how = ["-shared", "-fPIC", "-std=c++17", "-Wl,-soname,libtt_metal.so", "-pthread"];
        compile("c++", "fake_metal.cpp", LIBRARY, "libtt_metal.so", &how);
        compile("cc", "program.c", PROGRAM, "program", &[]);
        folder
    });
    folder.path()
}

struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    /// With `TTMON_AGENT=reads`.
    fn start() -> Program {
        Program::start_with(Some("reads"))
    }

    fn start_with(agent: Option<&str>) -> Program {
        let mut command = Command::new(compiled().join("program"));
        command.arg(compiled().join("libtt_metal.so")).env("LD_PRELOAD", built("libttmon_agent.so"));
        command.env_remove("TTMON_AGENT").env("TTMON_BOOK_SOCKET", "").envs(agent.map(|agent| ("TTMON_AGENT", agent)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Program { child, stdin, stdout }
    }

    /// Does something, and answers with what was read from devices up to then.
    fn say(&mut self, command: &str) -> Report {
        writeln!(self.stdin, "{command}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(line.contains("reads="), "{command}: {line:?}");
        assert_eq!(value(&line, "wrong"), 0, "{command}: {line}");
        assert!(value(&line, "longest") <= 28, "{line}");
        Report(line)
    }

    /// Leaves without closing anything. Nothing was read from a closed device, or from one of a cluster that is gone.
    fn exit(mut self) {
        writeln!(self.stdin, "exit").unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert_eq!(rest, "end wrong=0 gone=1\n");
    }

    /// Nothing before there is something to enter.
    fn chip(&self) -> Option<ChipActivity> {
        let book = self.pages();
        let copy = book.read_if_written()?;
        let source = |at: usize, into: &mut [u8]| book.read_at(at, into);
        activity::activity(source, &copy, monotonic()).unwrap()?.chips.first().copied()
    }

    fn pages(&self) -> Pages {
        books(self.child.id()).remove(0)
    }

    fn utilization(&self) -> Result<f64, NotKnown> {
        let chip = self.chip().ok_or(NotKnown::TooEarly)?;
        chip.utilization(monotonic()).map(|utilization| utilization.ratio)
    }

    fn reason(&self) -> Option<NoRecords> {
        match self.utilization() {
            Err(NotKnown::NoRecords(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Until something is so, or five seconds are over.
    fn wait_until(&self, what: &str, is_so: impl Fn(&Program) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < Duration::from_secs(5), "{what}: {:?}", self.utilization());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_reading(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.into_iter().any(|name| name == "ttmon-reads\n")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Report(String);

impl Report {
    fn reads(&self) -> u64 {
        value(&self.0, "reads")
    }

    fn took(&self) -> Duration {
        Duration::from_micros(value(&self.0, "us"))
    }
}

#[test]
fn a_chip_without_the_profiler_is_as_busy_as_its_dispatch_core_says() {
    let mut program = Program::start();
    program.say("percent 25");
    program.say("open 0");
    program.wait_until("a value", |program| program.utilization().is_ok());
    program.say("programs 1000");
    std::thread::sleep(Duration::from_millis(1200));
    let (chip, utilization) = (program.chip().unwrap(), program.utilization().unwrap());
    assert_eq!((chip.source, chip.reason, chip.records), (Some(ActivitySource::DispatchTelemetry), None, 1000));
    assert!((0.2..0.3).contains(&utilization), "{utilization}");
    assert!(program.is_reading());
    // Two heads, then three reads a look, at most three looks a second.
    let reads = program.say("reads").reads();
    assert!((8..=2 + 3 * 9).contains(&reads), "{reads}");
    program.say("close 0");
    assert_eq!(program.utilization(), Err(NotKnown::Closed));
    program.wait_until("the thread ends", |program| !program.is_reading());
    let reads = program.say("reads").reads();
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(program.say("reads").reads(), reads);
    // And again.
    program.say("percent 0");
    program.say("open 0");
    program.wait_until("idle", |program| program.utilization() == Ok(0.0));
    program.exit();
}

#[test]
fn nothing_is_read_without_permission_behind_another_chip_or_beside_the_profiler() {
    std::thread::scope(|scope| {
        for (agent, how, reason) in [
            (None, "", None),
            (Some("on"), "", None),
            (Some("off"), "", None),
            (Some("reads"), "remote", Some(NoRecords::Remote)),
            (Some("reads"), "profiled", None),
        ] {
            scope.spawn(move || {
                let mut program = Program::start_with(agent);
                program.say(&format!("open 0 {how}"));
                std::thread::sleep(Duration::from_millis(1200));
                assert_eq!(program.say("reads").reads(), 0, "{agent:?} {how}");
                assert!(!program.is_reading(), "{agent:?} {how}");
                if reason.is_some() {
                    assert_eq!(program.reason(), reason);
                }
                program.exit();
            });
        }
    });
}

#[test]
fn without_a_control_block_the_address_is_the_one_with_signatures() {
    let mut program = Program::start();
    program.say("open 0 simulator");
    program.wait_until("a value", |program| program.utilization().is_ok());
    program.say("close 0");
    program.exit();
    // Also without a book before.
    let mut program = Program::start();
    program.say("open 0 quiet");
    program.wait_until("a book", |program| !books(program.child.id()).is_empty());
    program.wait_until("a value", |program| program.utilization().is_ok());
    program.exit();
    // None of them has.
    let mut program = Program::start();
    program.say("move 4660");
    program.say("open 0");
    program.wait_until("a reason", |program| program.reason() == Some(NoRecords::NoTelemetry));
    program.exit();
}

#[test]
fn what_cannot_be_read_is_unknown_with_the_reason() {
    // All at once: each takes seconds. The numbers are those of `Mode` in the library.
    std::thread::scope(|scope| {
        for (mode, reason, comes_back) in [
            (1, NoRecords::Torn, true),
            (2, NoRecords::AllOnes, false),
            (3, NoRecords::ClockStopped, true),
            (4, NoRecords::Refused, false),
        ] {
            scope.spawn(move || {
                let mut program = Program::start();
                program.say("open 0");
                program.wait_until("a value", |program| program.utilization().is_ok());
                program.say(&format!("mode {mode}"));
                program.wait_until(reason.text(), |program| program.reason() == Some(reason));
                program.say("mode 0");
                if comes_back {
                    program.wait_until("a value again", |program| program.utilization().is_ok());
                } else {
                    let reads = program.say("reads").reads();
                    std::thread::sleep(Duration::from_millis(1200));
                    assert_eq!(program.say("reads").reads(), reads, "{reason:?}: left alone");
                    assert_eq!(program.reason(), Some(reason));
                }
                program.say("close 0");
                program.exit();
            });
        }
        scope.spawn(|| {
            let mut program = Program::start();
            program.say("mode 5");
            program.say("open 0");
            program.wait_until("a reason", |program| program.reason() == Some(NoRecords::NoTelemetry));
            // The device is open only now.
            program.say("mode 0");
            program.wait_until("a value", |program| program.utilization().is_ok());
            program.exit();
        });
    });
}

#[test]
fn a_close_in_the_middle_of_a_sample_waits_for_one_read_and_no_more() {
    for _ in 0..2 {
        let mut program = Program::start();
        program.say("delay 300");
        program.say("open 0");
        let began = Instant::now();
        while program.say("reads").reads() < 3 {
            assert!(began.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(10));
        }
        // One of several reads is under way, each of which takes 0.3 s.
        let took = program.say("close 0").took();
        assert!(took < Duration::from_millis(450), "{took:?}");
        program.wait_until("the thread ends", |program| !program.is_reading());
        program.exit();
    }
}

#[test]
fn a_process_that_forks_or_exits_waits_for_nothing() {
    let mut program = Program::start();
    program.say("open 0");
    program.wait_until("a value", |program| program.utilization().is_ok());
    program.say("delay 30");
    for n in 0..20 {
        let report = program.say(&format!("fork {}", n % 2));
        assert_eq!(value(&report.0, "child"), 0);
        assert!(report.took() < Duration::from_millis(400), "{}", report.0);
    }
    program.say("delay 200");
    program.wait_until("still a value", |program| program.utilization().is_ok());
    let began = Instant::now();
    program.exit();
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
}

#[test]
fn the_thread_takes_no_signal() {
    let mut program = Program::start();
    program.say("open 0");
    program.wait_until("a thread", |program| program.is_reading());
    let tasks = fs::read_dir(format!("/proc/{}/task", program.child.id())).unwrap();
    let status = |task: &Path| fs::read_to_string(task.join("status")).unwrap();
    let thread = tasks.map(|task| status(&task.unwrap().path())).find(|status| status.contains("ttmon-reads")).unwrap();
    let blocked = thread.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
    // All but SIGKILL and SIGSTOP, and the two that the C library keeps for itself.
    assert_eq!(u64::from_str_radix(blocked, 16).unwrap() | 1 << 8 | 1 << 18 | 3 << 31, u64::MAX, "{blocked}");
}

#[test]
fn the_agent_needs_no_cpp_runtime() {
    let agent = built("libttmon_agent.so");
    let output = Command::new("/bin/cat").arg("/proc/self/maps").env("LD_PRELOAD", &agent).output().unwrap();
    let maps = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && maps.contains("libttmon_agent.so"));
    assert!(!maps.contains("libstdc++"), "{maps}");
    let has = |text: &str| Command::new("grep").args(["-qaF", text]).arg(&agent).status().unwrap().success();
    assert!(!has("libstdc++"));
    assert!(has(", C++ object compiled by "), "the compiler is named");
}

#[test]
fn the_real_library_leads_to_its_dispatch_cores_and_its_mock_has_no_telemetry_there() {
    for wheel in wheels() {
        let environment = [("TT_METAL_SHM_TRACKING_DISABLED", "1"), ("TTMON_AGENT", "reads")];
        let mut harness = Harness::start_with(&wheel, &cluster("n300.yaml"), Some("1x2"), &environment);
        let reason = |harness: &Harness| {
            let pages = harness.book();
            let source = |at: usize, into: &mut [u8]| pages.read_at(at, into);
            let found = activity::activity(source, &pages.read(), monotonic()).unwrap().unwrap();
            found.chips[0].reason
        };
        harness.ok("alloc 1 1048576 2048 dram");
        std::thread::sleep(Duration::from_millis(1200));
        // Its cores were found, read, and have no signature.
        assert_eq!(reason(&harness), Some(NoRecords::NoTelemetry), "{}", wheel.display());
        harness.ok("close");
        assert_eq!(harness.end(), Some(0));
        let mut harness = Harness::start_with(&wheel, &cluster("n150.yaml"), None, &environment);
        harness.say("abandon");
        assert_eq!(harness.end(), Some(0), "also when it exits without a close");
        // A program that opens a device and does nothing has no book, and nothing is printed.
        let mut quiet = Command::new(built("ttmetal-harness"));
        quiet.arg("mock").args([&wheel, &cluster("n150.yaml")]).envs(environment).env("TT_LOGGER_LEVEL", "error");
        quiet.env("LD_PRELOAD", built("libttmon_agent.so")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = quiet.stderr(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(books(child.id()).len(), 0);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    }
}
