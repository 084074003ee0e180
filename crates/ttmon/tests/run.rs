//! `ttmon run` with real commands: exit codes and signals, energy of a simulated machine, and books: those that this test
//! hands over itself, and those of the real tt-metal under the real agent.
//!
//! The latter run when `TTMON_TTNN` names the unpacked wheel, as `scripts/fetch-ttnn` prints it.

use crate::support::{Machine, Run, TTMON, needs, run};
use expect_test::expect_file;
use ledger::book::{Chips, MemoryKind, NewBuffer, Writer};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, connect, sendmsg,
    socket,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `ttmon run` without the agent, on a machine without devices.
fn plain(arguments: &[&str]) -> Command {
    static NOTHING: std::sync::OnceLock<Machine> = std::sync::OnceLock::new();
    let machine = NOTHING.get_or_init(|| Machine::with(&[]));
    let mut command = Command::new(TTMON);
    command.args(["--root", machine.root(), "run"]).args(arguments).env("TTMON_AGENT", "off");
    command
}

#[test]
fn the_exit_code_and_the_output_are_the_commands() {
    let Run { code, out, err } = run(&mut plain(&["--", "sh", "-c", "echo out; echo err >&2; exit 7"]));
    assert_eq!((code, out.as_str()), (Some(7), "out\n"));
    assert!(err.starts_with("err\n── ttmon run ── sh -c 'echo out; echo err >&2; exit 7' ──"), "{err}");
    assert!(err.contains("\nexit code 7 after ") && err.contains("\nmemory was not followed: "), "{err}");
    assert_eq!(run(&mut plain(&["true"])).code, Some(0));
}

#[test]
fn the_commands_words_arrive_as_they_are() {
    for words in
        [&["foo", "smi", "-lms", "5"][..], &["--sim", "n150", "run"], &["--", "-lms=5"], &["--leaks", "--help"]]
    {
        let printed = run(plain(&["printf", "%s\\n"]).args(words)).out;
        assert_eq!(printed.lines().collect::<Vec<_>>(), words);
    }
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    let Run { code, err, .. } = run(&mut plain(&["--", "sh", "-c", "kill -TERM $$"]));
    assert_eq!(code, Some(143));
    assert!(err.contains("\nkilled by SIGTERM, exit code 143 after "), "{err}");
    assert_eq!(run(&mut plain(&["--", "sh", "-c", "kill -KILL $$"])).code, Some(137));
}

/// For `env`: whoever started the tests in the background has made them ignore Ctrl-C, and what is ignored stays so.
const NOTHING_IGNORED: &str = "--default-signal=INT,QUIT,HUP,TERM,USR1";

#[test]
fn signals_to_ttmon_alone_are_passed_on() {
    for (name, signal) in [("TERM", Signal::TERM), ("HUP", Signal::HUP), ("USR1", Signal::USR1), ("INT", Signal::INT)] {
        let script = format!("trap 'exit 42' {name}; echo ready; while :; do sleep 0.02; done");
        // In a session of its own it has no terminal: not even Ctrl-C comes by itself.
        let mut command = Command::new("setsid");
        let plain = plain(&["--", "sh", "-c", &script]);
        command.args(["--wait", "env", NOTHING_IGNORED]).arg(plain.get_program()).args(plain.get_args());
        command.env("TTMON_AGENT", "off");
        let mut started = Started::new(&mut command);
        started.line();
        let ttmon = only_child(started.child.id()).unwrap_or(started.child.id());
        kill_process(Pid::from_raw(ttmon as i32).unwrap(), signal).unwrap();
        let Run { code, err, .. } = started.end();
        assert_eq!(code, Some(42), "{name}: {err}");
        assert!(err.contains("\nexit code 42 after "), "{err}");
    }
}

#[test]
fn on_a_terminal_ctrl_c_ends_the_command_and_the_receipt_follows() {
    // script(1) runs it on a terminal of its own and copies what it writes.
    let script = "trap 'n=x$n' INT; echo ready; while test -z $n; do sleep 0.02; done; sleep 0.2; echo came $n; exit 5";
    let plain = plain(&["--", "sh", "-c", script]);
    let words: Vec<String> = [plain.get_program()].into_iter().chain(plain.get_args()).map(quoted).collect();
    let mut command = Command::new("script");
    let line = format!("exec env {NOTHING_IGNORED} {}", words.join(" "));
    command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh");
    let mut started = Started::new(command.env("TTMON_AGENT", "off"));
    started.line();
    started.child.stdin.as_mut().unwrap().write_all(&[3]).unwrap();
    let Run { code, out, .. } = started.end();
    assert_eq!(code, Some(5), "{out}");
    assert!(out.contains("came x\r\n"), "once: {out}");
    assert!(out.contains("exit code 5 after "), "{out}");
}

#[test]
fn what_was_ignored_stays_ignored() {
    let plain = plain(&["--", "sh", "-c", "kill -HUP $$; echo alive"]);
    let words: Vec<String> = [plain.get_program()].into_iter().chain(plain.get_args()).map(quoted).collect();
    let script = format!("trap '' HUP; exec {}", words.join(" "));
    assert_eq!(run(Command::new("sh").args(["-c", &script]).env("TTMON_AGENT", "off")).out, "alive\n");
}

#[test]
fn what_cannot_be_run_is_one_sentence_and_a_shells_code() {
    let fails = |arguments: &[&str]| {
        let Run { code, out, err } = run(&mut plain(arguments));
        assert_eq!(out, "");
        (code.unwrap(), err)
    };
    assert_eq!(
        fails(&["no-such-program"]),
        (127, "error: cannot run no-such-program: no folder of PATH has such a program\n".into())
    );
    assert_eq!(fails(&["/no/such/file"]), (127, "error: cannot run /no/such/file: there is no such file\n".into()));
    let (code, error) = fails(&["/"]);
    assert!(code == 126 && error.starts_with("error: cannot run /: it may not be executed"), "{code} {error}");
    assert_eq!(
        fails(&["--leaks"]),
        (2, "error: <CMD>... is missing: `ttmon run --help` shows how it is used\n".into())
    );
}

#[test]
fn nothing_is_run_when_the_json_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    for file in ["/does/not/exist/x", folder.path().to_str().unwrap()] {
        let Run { code, err, .. } = run(plain(&["--json", file, "touch"]).arg(&witness));
        assert_eq!(code, Some(2));
        assert!(err.starts_with(&format!("error: --json: cannot write to {file}: ")), "{err}");
        assert_eq!(err.lines().count(), 1);
    }
    assert!(!witness.exists());
}

#[test]
fn nothing_is_run_without_the_agent() {
    let mut command = plain(&["echo", "ran"]);
    command.env_remove("TTMON_AGENT").env("TTMON_AGENT_LIB", "/no/such/agent.so");
    let Run { code, out, err } = run(&mut command);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert_eq!(
        err,
        "error: TTMON_AGENT_LIB=/no/such/agent.so is not a file: build it with `cargo build --release -p ttmon-agent`, or \
         let TTMON_AGENT_LIB say where it is\n"
    );
}

#[test]
fn json_takes_the_place_of_a_file_only_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("receipt.json");
    std::fs::write(&file, "old").unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(run(&mut plain(&["--json", path, "no-such-program"])).code, Some(127));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    let script = format!("cat {path}; exit 4");
    let Run { code, out, .. } = run(&mut plain(&["--json", path, "sh", "-c", &script]));
    assert_eq!((code, out.as_str()), (Some(4), "old"));
    let receipt: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&receipt["schema"], &receipt["exit_code"]), (&json!(1), &json!(4)));
    assert_eq!(receipt["command"], json!(["sh", "-c", script]));
    assert_eq!(receipt["leaks"], json!({"verdict": "unknown", "reason": "memory was not followed"}));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
    let printed = run(&mut plain(&["--json", "-", "true"])).out;
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap()["exit_code"], 0);
}

#[test]
fn energy_is_that_of_the_machine_while_the_command_ran() {
    let mut sim = Started::new(Command::new(TTMON).args(["sim", "p150x2"]));
    let root = sim.line();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("receipt.json");
    let arguments = ["--root", &root, "run", "--interval-ms", "100", "--json", file.to_str().unwrap(), "sleep", "1.5"];
    let Run { code, err, .. } = run(Command::new(TTMON).args(arguments).env("TTMON_AGENT", "off"));
    assert_eq!(code, Some(0), "{err}");
    let receipt: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let devices = receipt["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for device in devices {
        let number = |name: &str| device[name].as_f64().unwrap_or_else(|| panic!("{name}: {device}"));
        let (joules, seconds, peak) = (number("energy_joules"), number("energy_seconds"), number("peak_power_watts"));
        assert!((1.3..3.0).contains(&seconds), "{device}");
        assert!(joules > 0.0 && joules <= peak * seconds * 1.001, "{device}");
        assert!(number("peak_asic_temp_celsius") > 20.0);
    }
    assert!(err.contains("\nthe devices are simulated\n") && err.contains("\ndevice 1  p150a "), "{err}");
    sim.child.kill().unwrap();
}

#[test]
fn help_is_as_pinned() {
    let help = run(Command::new(TTMON).args(["run", "--help"]).env("COLUMNS", "100")).out;
    expect_file!["golden/run-help.txt"].assert_eq(&help);
}

/// A library that changes nothing, in the place of the agent: the books come from this test itself.
fn no_agent() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.split_whitespace().find(|word| word.contains("/libc.so") || word.contains("/libc-"));
    library.expect("this test is linked to a C library").into()
}

/// A command that runs until it is told an exit code, and where it would hand its book over.
fn waiting(options: &[&str]) -> (Started, PathBuf) {
    let machine = Machine::with(&[sim::tree::Chip { asic_id: Some(ASIC), ..sim::tree::Chip::p150a(0) }]);
    let mut command = Command::new(TTMON);
    let script = "echo $TTMON_BOOK_SOCKET; read code; exit $code";
    command.args(["run", "--root", machine.root()]).args(options).args(["--", "sh", "-c", script]);
    command.env_remove("TTMON_AGENT").env("TTMON_AGENT_LIB", no_agent());
    let mut started = Started::new(&mut command);
    let socket = started.line().into();
    started.machine = Some(machine);
    (started, socket)
}

const ASIC: u64 = 0x1A2B_3C4D_5E6F_7081;

/// A book with a buffer of eight times 4096 bytes.
fn book() -> Writer {
    let writer = Writer::create("this test").unwrap();
    let chips = Chips::one(writer.chip(0, Some(ASIC)).unwrap());
    let (kind, label) = (MemoryKind::Dram, "weights".as_bytes());
    let sizes = NewBuffer {
        id: 1,
        chips,
        kind,
        logical: 30_000,
        per_bank: 4096,
        banks: 8,
        address: 64,
        page: 32,
        layout: 0,
        owner: 0,
        label,
    };
    writer.allocate(&sizes);
    writer
}

/// What an agent says: a hello, and that its book is beside this.
const BOOK: &str = "\x19\0\0\0{\"hello\": {\"version\": 1}}\x14\0\0\0{\"book\": {\"pid\": 1}}";

fn hand_over(path: &Path, text: &str, file: &impl AsFd) {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
    sendmsg(&socket, &[IoSlice::new(text.as_bytes())], &mut beside, SendFlags::NOSIGNAL).unwrap();
}

#[test]
fn a_book_that_was_handed_over_is_in_the_receipt() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("receipt.json");
    let (mut started, socket) = waiting(&["--leaks", "--json", file.to_str().unwrap()]);
    let private = socket.parent().unwrap();
    assert_eq!(private.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let book = book();
    hand_over(&socket, BOOK, book.file());
    hand_over(&socket, BOOK, book.file());
    book.close();
    started.say("0");
    let Run { code, err, .. } = started.end();
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("exit code 0 after ") && err.contains(", 1 process ran with the agent\n"), "{err}");
    assert!(err.contains("\ndevice 0  p150a 0000:"), "{err}");
    let pid = std::process::id();
    assert!(err.contains(&format!("\n  device 0  DRAM  32.0 KiB  pid {pid}  age ")), "{err}");
    assert!(err.contains("  weights\n") && err.ends_with("\nleaks: found, so the exit code is 3\n"), "{err}");
    let receipt: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let process = &receipt["processes"][0];
    assert_eq!(
        (&process["pid"], &process["end"]),
        (&json!(pid), &json!("clean")),
        "by the kernel's word, not the message's"
    );
    assert_eq!(process["chips"][0]["device"], "0");
    assert_eq!(process["chips"][0]["kinds"]["dram"]["bytes"], 32_768);
    assert_eq!((&process["leaks"][0]["bytes"], &process["leaks"][0]["label"]), (&json!(32_768), &json!("weights")));
    assert!(!private.exists(), "the folder is gone");
}

#[test]
fn a_gate_that_measures_nothing_is_not_passed() {
    let machine = Machine::with(&[]);
    let ended = |agent: &str, program: &str| {
        let mut command = Command::new(TTMON);
        command.args(["run", "--leaks", "--root", machine.root(), "--", program]);
        run(command.env("TTMON_AGENT", agent).env_remove("TTMON_AGENT_LIB"))
    };
    for (agent, why) in [("on", "no process ran with the agent"), ("off", "memory was not followed")] {
        let Run { code, err, .. } = ended(agent, "true");
        assert_eq!(code, Some(5), "{err}");
        let verdict = format!("\nleaks: no verdict, because {why}, so the exit code is 5\n");
        assert!(err.ends_with(&verdict), "{err}");
    }
    let failed = ended("on", "false");
    assert_eq!(failed.code, Some(1), "{}", failed.err);
}

#[test]
fn a_failure_of_the_command_wins_and_a_process_that_runs_is_no_leak() {
    let (mut started, socket) = waiting(&["--leaks"]);
    let book = book();
    hand_over(&socket, BOOK, book.file());
    started.say("0");
    let Run { code, err, .. } = started.end();
    assert_eq!(code, Some(5), "{err}");
    assert!(err.contains("\n1 process still runs: its figures are as of now\n"), "{err}");
    assert!(err.ends_with("\nleaks: no verdict, because no process has ended yet, so the exit code is 5\n"), "{err}");

    let (mut started, socket) = waiting(&["--leaks"]);
    hand_over(&socket, BOOK, book.file());
    book.close();
    started.say("9");
    let Run { code, err, .. } = started.end();
    assert_eq!(code, Some(9));
    assert!(err.contains("\nstill allocated at exit: 1 buffer, 32.0 KiB\n"), "{err}");
    assert!(err.ends_with("\nleaks: no verdict, because the command failed\n"), "{err}");
}

#[test]
fn whatever_is_no_book_is_ignored() {
    let (mut started, socket) = waiting(&[]);
    let (pipe, _writes) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    hand_over(&socket, BOOK, &pipe);
    hand_over(&socket, BOOK, &File::open("/dev/zero").unwrap());
    hand_over(&socket, BOOK, &tempfile::tempfile().unwrap());
    hand_over(&socket, "HELLO", book().file());
    hand_over(&socket, "", book().file());
    // One that never says anything keeps nobody waiting.
    let silent = socket_to(&socket);
    started.say("0");
    let Run { code, err, .. } = started.end();
    drop(silent);
    assert_eq!(code, Some(0));
    assert!(err.contains("\nmemory: no process of it used tt-metal with the agent in it\n"), "{err}");
}

fn socket_to(path: &Path) -> std::os::fd::OwnedFd {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

#[test]
fn the_agent_may_read_unless_the_user_has_decided() {
    for (setting, expected) in [(None, "reads"), (Some(""), "reads"), (Some("on"), "on"), (Some("off"), "off")] {
        let mut command = plain(&["--", "sh", "-c", "echo $TTMON_AGENT"]);
        command
            .env_remove("TTMON_AGENT")
            .env("TTMON_AGENT_LIB", no_agent())
            .envs(setting.map(|it| ("TTMON_AGENT", it)));
        let Run { code, out, err } = run(&mut command);
        assert_eq!((code, out), (Some(0), format!("{expected}\n")), "{setting:?}: {err}");
    }
}

#[test]
fn the_agent_is_set_up_in_front_of_what_is_preloaded_already() {
    let library = no_agent();
    let mut command = plain(&["--", "sh", "-c", "echo $LD_PRELOAD; test -S $TTMON_BOOK_SOCKET"]);
    command.env_remove("TTMON_AGENT").env("TTMON_AGENT_LIB", &library).env("LD_PRELOAD", "libm.so.6");
    let Run { code, out, err } = run(&mut command);
    assert_eq!((code, out), (Some(0), format!("{}:libm.so.6\n", library.display())), "{err}");
    let Run { code, out, .. } =
        run(&mut plain(&["--", "sh", "-c", "echo $LD_PRELOAD; test -z \"$TTMON_BOOK_SOCKET\""]));
    assert_eq!((code, out.as_str()), (Some(0), "\n"), "switched off");
}

#[test]
fn a_tt_metal_that_is_not_recognised_is_named() {
    let agent = Path::new(TTMON).with_file_name("libttmon_agent.so");
    assert!(agent.exists(), "build it first: cargo build --workspace");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("program.c"), "int go(void); int main(void) { go(); return 0; }").unwrap();
    let known = "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE";
    let reports = format!("void {known}(void *t, void *b) {{}} int go(void) {{ {known}(0, 0); return 0; }}");
    for (library, lacks) in [
        (&*reports, "lacks functions that describe a buffer"),
        ("int go(void) { return 0; }", "has none of the functions that report a buffer"),
    ] {
        std::fs::write(at("library.c"), library).unwrap();
        let compile = |words: &[&std::ffi::OsStr]| assert!(Command::new("cc").args(words).status().unwrap().success());
        let (metal, program) = (at("libtt_metal.so"), at("program"));
        let name = "-Wl,-soname,libtt_metal.so";
        compile(&[
            "-shared".as_ref(),
            "-fPIC".as_ref(),
            name.as_ref(),
            "-o".as_ref(),
            metal.as_ref(),
            at("library.c").as_ref(),
        ]);
        let path = format!("-Wl,-rpath,{}", folder.path().display());
        compile(&["-o".as_ref(), program.as_ref(), at("program.c").as_ref(), metal.as_ref(), path.as_ref()]);
        let machine = Machine::with(&[]);
        let mut command = Command::new(TTMON);
        command.args(["run", "--leaks", "--root", machine.root(), "--json", "-", "--"]).arg(&program);
        let Run { code, out, err } = run(command.env_remove("TTMON_AGENT").env_remove("TTMON_AGENT_LIB"));
        assert_eq!(code, Some(5), "{err}");
        assert!(err.contains("\nmemory: not counted where the agent does not recognise tt-metal"), "{err}");
        assert!(!err.contains("no process of it used tt-metal"), "{err}");
        let whole = err.replace("\n  ", " ");
        assert!(whole.contains(&format!(": libtt_metal.so {lacks}; nothing is counted ({}", metal.display())), "{err}");
        let verdict = "leaks: no verdict, because the agent's data is incomplete, so the exit code is 5";
        assert!(whole.ends_with(&format!("\n{verdict}\n")), "{err}");
        let receipt: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(receipt["processes"][0]["exact"], false);
    }
}

#[test]
fn what_the_real_library_leaks_is_found() {
    let Some(real) = Real::new("what_the_real_library_leaks_is_found") else { return };
    let mut leaky = real.start();
    leaky.ask("alloc 1 2097152 2048 dram");
    leaky.ask("alloc 2 131072 2048 l1");
    leaky.ask("free 1");
    leaky.say("abandon");
    let (Run { code, err, .. }, receipt) = real.end(leaky);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("\ndevice 0  p150a 0000:"), "{err}");
    assert!(err.contains("\nstill allocated at exit: 1 buffer, 220 KiB\n"), "{err}");
    assert!(err.ends_with("\nleaks: found, so the exit code is 3\n"), "{err}");
    let process = &receipt["processes"][0];
    let kinds = &process["chips"][0]["kinds"];
    assert_eq!((&kinds["dram"]["peak_bytes"], &kinds["dram"]["bytes"]), (&json!(2_097_152), &json!(0)));
    assert_eq!(process["leaks"].as_array().unwrap().len(), 1);
    let leak = &process["leaks"][0];
    assert_eq!(json!([leak["kind"], leak["bytes"], leak["logical_bytes"]]), json!(["l1", 225_280, 131_072]));
    assert_eq!((&process["name"], &process["end"]), (&json!("ttmetal-harness"), &json!("clean")));
}

#[test]
fn a_real_program_that_frees_everything_is_clean() {
    let Some(real) = Real::new("a_real_program_that_frees_everything_is_clean") else { return };
    let mut tidy = real.start();
    tidy.ask("alloc 1 2097152 2048 dram");
    tidy.ask("free 1");
    tidy.ask("quit");
    let (Run { code, err, .. }, receipt) = real.end(tidy);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.ends_with("\nleaks: none\n") && !err.contains("still allocated"), "{err}");
    assert_eq!(receipt["leaks"]["verdict"], "none");
}

#[test]
fn what_a_closed_device_took_with_it_is_a_leak() {
    let Some(real) = Real::new("what_a_closed_device_took_with_it_is_a_leak") else { return };
    let mut careless = real.start();
    careless.ask("alloc 1 2097152 2048 dram");
    careless.ask("close");
    careless.ask("quit");
    let (Run { code, err, .. }, receipt) = real.end(careless);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("\n  1 buffer was still there when the device was closed (2.0 MiB)\n"), "{err}");
    assert_eq!(receipt["processes"][0]["chips"][0]["left_bytes"], 2_097_152);
}

#[test]
fn the_last_state_of_a_killed_process_is_known_and_no_verdict() {
    let Some(real) = Real::new("the_last_state_of_a_killed_process_is_known_and_no_verdict") else { return };
    let mut victim = real.start();
    victim.ask("alloc 1 2097152 2048 dram");
    kill_process(Pid::from_raw(victim.pid as i32).unwrap(), Signal::KILL).unwrap();
    let (Run { code, err, .. }, receipt) = real.end(victim);
    assert_eq!(code, Some(137), "{err}");
    assert!(err.contains("\nkilled by SIGKILL, exit code 137 after "), "{err}");
    assert!(err.contains("\nheld until then: 1 buffer, 2.0 MiB\n"), "{err}");
    assert!(err.ends_with("\nleaks: no verdict, because the command was killed\n"), "{err}");
    let process = &receipt["processes"][0];
    assert_eq!((&process["end"], &process["leaks"]), (&json!("abrupt"), &json!([])));
    assert_eq!(process["held"][0]["bytes"], 2_097_152);
}

#[test]
fn what_a_forked_worker_leaks_at_its_exit_is_found() {
    let Some(real) = Real::new("what_a_forked_worker_leaks_at_its_exit_is_found") else { return };
    let mut parent = real.start();
    parent.ask("alloc 1 2097152 2048 dram");
    let worker = parent.ask("worker alloc 2 131072 2048 l1");
    assert!(worker.starts_with("OK child="), "{worker}");
    parent.ask("free 1");
    parent.ask("quit");
    let (Run { code, err, .. }, receipt) = real.end(parent);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("\nstill allocated at exit: 1 buffer, 220 KiB\n"), "{err}");
    assert!(err.ends_with("\nleaks: found, so the exit code is 3\n"), "{err}");
    let processes = receipt["processes"].as_array().unwrap();
    let ends: Vec<&Value> = processes.iter().map(|process| &process["end"]).collect();
    assert_eq!(ends, ["clean", "clean"]);
    assert_eq!(processes.iter().map(|process| process["leaks"].as_array().unwrap().len()).sum::<usize>(), 1);
}

#[test]
fn a_forked_worker_that_frees_everything_is_clean() {
    let Some(real) = Real::new("a_forked_worker_that_frees_everything_is_clean") else { return };
    let mut parent = real.start();
    for _ in 0..3 {
        let worker = parent.ask("worker churn 10 131072 2048 l1");
        assert!(worker.starts_with("OK child="), "{worker}");
    }
    parent.ask("quit");
    let (Run { code, err, .. }, receipt) = real.end(parent);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains(", 3 processes ran with the agent\n") && err.ends_with("\nleaks: none\n"), "{err}");
    assert_eq!(receipt["leaks"]["verdict"], "none");
}

#[test]
fn two_real_processes_have_a_book_each() {
    let Some(real) = Real::new("two_real_processes_have_a_book_each") else { return };
    let mut pair = real.start();
    pair.ask("alloc 1 2097152 2048 dram");
    let child = pair.ask("fork alloc 2 1048576 2048 dram");
    assert!(child.starts_with("OK child="), "{child}");
    pair.ask("free 1");
    pair.say("quit");
    let (Run { code, err, .. }, receipt) = real.end(pair);
    let processes = receipt["processes"].as_array().unwrap();
    // The child ends abruptly, so nothing can be said of leaks.
    assert_eq!((code, processes.len()), (Some(5), 2), "{err}");
    let peaks: Vec<&Value> = processes.iter().map(|p| &p["chips"][0]["kinds"]["dram"]["peak_bytes"]).collect();
    assert_eq!(peaks, [2_097_152, 1_048_576]);
    assert!(err.contains(" ≤ 3.0 MiB ") && err.contains(", 2 processes ran with the agent\n"), "{err}");
}

/// A simulated p150a that a real tt-metal under the real agent takes for its own.
struct Real {
    ttnn: PathBuf,
    folder: tempfile::TempDir,
    machine: Machine,
}

impl Real {
    fn new(test: &str) -> Option<Real> {
        let ttnn = needs::wheel(test)?;
        let beside = |name: &str| Path::new(TTMON).with_file_name(name).exists();
        assert!(beside("ttmetal-harness") && beside("libttmon_agent.so"), "build them first: cargo build --workspace");
        let machine = Machine::with(&[sim::tree::Chip { asic_id: Some(ASIC), ..sim::tree::Chip::p150a(0) }]);
        Some(Real { ttnn, folder: tempfile::tempdir().unwrap(), machine })
    }

    fn start(&self) -> Started {
        let cluster = self.folder.path().join("p150.yaml");
        let ours = include_str!("../../harness/clusters/p150.yaml");
        std::fs::write(&cluster, ours.replace("7310579611500000150", &ASIC.to_string())).unwrap();
        let mut command = Command::new(TTMON);
        command.args(["run", "--leaks", "--root", self.machine.root(), "--json"]).arg(self.json());
        command
            .arg("--")
            .arg(Path::new(TTMON).with_file_name("ttmetal-harness"))
            .arg("mock")
            .args([&self.ttnn, &cluster]);
        command.env_remove("TTMON_AGENT").env_remove("TTMON_AGENT_LIB").env("TT_LOGGER_LEVEL", "error");
        let mut started = Started::new(command.env("TT_METAL_SHM_TRACKING_DISABLED", "1"));
        let ready = started.line();
        started.pid = ready.strip_prefix("READY ").unwrap_or_else(|| panic!("{ready}")).parse().unwrap();
        started
    }

    fn json(&self) -> PathBuf {
        self.folder.path().join("receipt.json")
    }

    fn end(&self, started: Started) -> (Run, Value) {
        let run = started.end();
        (run, serde_json::from_str(&std::fs::read_to_string(self.json()).unwrap()).unwrap())
    }
}

/// A program that is spoken to; killed when dropped.
struct Started {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    machine: Option<Machine>,
    /// Of the process that it runs.
    pid: u32,
}

impl Started {
    fn new(command: &mut Command) -> Started {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Started { child, out, machine: None, pid: 0 }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        let reply = self.line();
        assert!(reply.starts_with("OK"), "{line}: {reply}");
        reply
    }

    /// What it says until its end.
    fn end(mut self) -> Run {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let code = self.child.wait().unwrap().code();
        Run { code, out, err }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn only_child(pid: u32) -> Option<u32> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.trim().parse().ok().filter(|_| name.trim() == "setsid")
}

fn quoted(word: &std::ffi::OsStr) -> String {
    format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"))
}
