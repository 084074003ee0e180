//! `ttmon ops` and the Inspector of the real `libtt_metal.so`, which runs on a mock cluster with some help.
//!
//! Runs when `TTMON_TTNN` names the unpacked wheel, as `scripts/fetch-ttnn` prints it.

use crate::support::harness::{Harness, needs_root, number};
use crate::support::{Run, TTMON, needs, program_for_all, run, ttmon};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// A wheel, and a chip that no other test has.
struct Bench<'a> {
    ttnn: &'a Path,
    folder: TempDir,
    chip: u64,
}

impl Bench<'_> {
    fn new(ttnn: &Path) -> Bench<'_> {
        let folder = tempfile::tempdir().unwrap();
        let chip = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 >> 2;
        let cluster =
            include_str!("../../harness/clusters/n150.yaml").replace("7310579611150000150", &chip.to_string());
        std::fs::write(folder.path().join("cluster.yaml"), cluster).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/inspector_on_mock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(folder.path().join("inspector.so"));
        assert_eq!(run(compiler.arg(source).arg("-ldl")).err, "");
        Bench { ttnn, folder, chip }
    }

    /// A program that has recorded these launches, with its Inspector at this address.
    fn start(&self, wrapper: &[&str], address: &str, launches: &str) -> Harness {
        let place = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        let environment = [
            ("LD_PRELOAD", place("inspector.so")),
            ("TMPDIR", place("")),
            ("TTMON_TEST_LAUNCHES", launches.to_owned()),
            ("TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS", address.to_owned()),
        ];
        let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Harness::start(wrapper, &["mock", self.ttnn.to_str().unwrap(), &place("cluster.yaml")], &environment)
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(format!("/dev/shm/tt_device_{}_memory", self.chip));
    }
}

/// An address that was free a moment ago.
fn free_address() -> String {
    format!("localhost:{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port())
}

fn ops(pid: u32, arguments: &[&str]) -> Run {
    ttmon(&[&["ops", &pid.to_string()], arguments].concat())
}

fn answer(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {} {}", run.out, run.err))
}

#[test]
fn the_inspector_says_which_operations_were_launched() {
    for ttnn in needs::wheels("the_inspector_says_which_operations_were_launched") {
        let bench = Bench::new(&ttnn);
        let launches = "MatmulDeviceOperation:3,SoftmaxDeviceOperation:2,AddOperation:4:7,MatmulDeviceOperation:1";
        let mut program = bench.start(&[], &free_address(), launches);
        let run = ops(program.pid, &["--json"]);
        let operation = |name: &str, launches: u32, captured: u32, traces: Value, last: u32| {
            let mut operation = json!({
                "name": name, "launches": launches, "last_id": last, "runs": null, "device_seconds": null,
                "longest_seconds": null, "age_seconds": null, "launches_per_second": null, "in_flight": false,
            });
            if captured > 0 {
                (operation["captured"], operation["traces"]) = (captured.into(), traces);
            }
            operation
        };
        let expected = json!({
            "schema": 1, "source": "inspector", "pid": program.pid, "chips": [0], "launches": 6, "complete": true,
            "operations": [
                operation("MatmulDeviceOperation", 4, 0, json!([]), 10),
                operation("SoftmaxDeviceOperation", 2, 0, json!([]), 5),
                operation("AddOperation", 0, 4, json!([7]), 9),
            ],
        });
        assert_eq!((answer(&run), run.code, run.err.as_str()), (expected, Some(0), ""), "{}", ttnn.display());
        let last = answer(&ops(program.pid, &["--json", "--sort", "last"]));
        let names: Vec<&Value> = last["operations"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["MatmulDeviceOperation", "AddOperation", "SoftmaxDeviceOperation"]);
        program.ok("quit");
    }
}

#[test]
fn the_inspector_forgets_and_ttmon_says_so() {
    let Some(ttnn) = needs::wheel("the_inspector_forgets_and_ttmon_says_so") else { return };
    let bench = Bench::new(&ttnn);
    // A longer answer than the library puts into one segment.
    let program = bench.start(&[], &free_address(), "OldOperation:900,NewOperation:8000");
    let list = answer(&ops(program.pid, &["--json"]));
    assert_eq!((&list["complete"], &list["launches"]), (&json!(false), &json!(8192)));
    let table = ops(program.pid, &[]).out;
    assert!(table.contains("≥8192 launches of 2 operations, chip 0\n"), "{table}");
    assert!(table.contains("   ≥8000 NewOperation\n    ≥192 OldOperation\n"), "{table}");
}

#[test]
fn of_two_processes_on_one_port_the_second_has_no_inspector() {
    let Some(ttnn) = needs::wheel("of_two_processes_on_one_port_the_second_has_no_inspector") else { return };
    let (bench, other, address) = (Bench::new(&ttnn), Bench::new(&ttnn), free_address());
    let first = bench.start(&[], &address, "First:1");
    let second = other.start(&[], &address, "Second:1");
    assert_eq!(answer(&ops(first.pid, &["--json"]))["operations"][0]["name"], "First");
    let run = ops(second.pid, &[]);
    assert_eq!(run.code, Some(6));
    let port = address.strip_prefix("localhost:").unwrap();
    let start =
        format!("error: process {} has no Inspector port: port {port} belongs to process {} (", second.pid, first.pid);
    assert!(run.err.starts_with(&start), "{}", run.err);
}

#[test]
fn a_child_that_inherits_the_socket_is_not_taken_for_its_parent() {
    let Some(ttnn) = needs::wheel("a_child_that_inherits_the_socket_is_not_taken_for_its_parent") else { return };
    let bench = Bench::new(&ttnn);
    let mut program = bench.start(&[], &free_address(), "Clone:1");
    let child = number(&program.ask("fork"), "child") as u32;
    let run = ops(child, &[]);
    assert_eq!(run.code, Some(6));
    let start = format!(
        "error: process {child} shares the socket of its Inspector with another process, which answers: ask process {} (",
        program.pid
    );
    assert!(run.err.starts_with(&start), "{}", run.err);
    assert_eq!(ops(program.pid, &[]).code, Some(0));
}

#[test]
fn a_stopped_process_and_one_of_another_user_are_refused() {
    let test = "a_stopped_process_and_one_of_another_user_are_refused";
    let Some(ttnn) = needs::wheel(test) else { return };
    let bench = Bench::new(&ttnn);
    let program = bench.start(&[], &free_address(), "Clone:1");
    if needs_root(test) {
        let folder = tempfile::tempdir().unwrap();
        let mut as_nobody = Command::new("setpriv");
        as_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program_for_all(folder.path()));
        let run = run(as_nobody.args(["ops", &program.pid.to_string()]));
        let expected = format!("error: process {} belongs to root and may not be read: run as root\n", program.pid);
        assert_eq!((run.code, run.err), (Some(4), expected));
    }
    kill_process(Pid::from_child(&program.child), Signal::STOP).unwrap();
    let run = ops(program.pid, &[]);
    assert_eq!(run.code, Some(7));
    assert!(run.err.contains("did not answer within 2 s: the process may be stopped or hung"), "{}", run.err);
}

#[test]
fn another_network_namespace_is_refused_with_the_command_that_works() {
    let test = "another_network_namespace_is_refused_with_the_command_that_works";
    let Some(ttnn) = needs::wheel(test).filter(|_| needs_root(test) && needs::has(test, &["ip"])) else { return };
    let bench = Bench::new(&ttnn);
    let wrapper = ["unshare", "--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"];
    let program = bench.start(&wrapper, "localhost:50051", "Clone:1");
    let refused = ops(program.pid, &[]);
    assert_eq!(refused.code, Some(6));
    let command = refused.err.split('`').nth(1).unwrap().replace("ttmon", TTMON);
    let mut words = command.split(' ');
    let run = run(Command::new(words.next().unwrap()).args(words));
    assert!(run.out.contains("1 launch of 1 operation"), "{command}: {} {}", run.out, run.err);
}

#[test]
fn only_the_inspector_is_asked_and_no_device_is_opened() {
    let test = "only_the_inspector_is_asked_and_no_device_is_opened";
    let Some(ttnn) = needs::wheel(test).filter(|_| needs::has(test, &["strace"])) else { return };
    let (bench, address) = (Bench::new(&ttnn), free_address());
    let program = bench.start(&[], &address, "Clone:1");
    let log = bench.folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-s", "4096", "-e", "trace=%file,connect,ioctl", "-o"]).arg(&log).arg(TTMON);
    assert_eq!(run(strace.args(["ops", &program.pid.to_string()])).code, Some(0));
    let calls = std::fs::read_to_string(log).unwrap();
    let connects: Vec<&str> = calls.lines().filter(|line| line.contains("connect(")).collect();
    let port = address.strip_prefix("localhost:").unwrap();
    assert!(matches!(connects[..], [one] if one.contains(&format!("htons({port})"))), "{connects:?}");
    for call in calls.lines() {
        assert!(!call.contains("/dev/tenstorrent"), "opens a device: {call}");
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag));
        assert!(!writes, "opens a file for writing: {call}");
    }
}

#[test]
fn what_is_no_process_or_none_with_tt_metal_is_refused() {
    let run = ops(u32::MAX, &[]);
    assert_eq!((run.code, run.err.as_str()), (Some(6), "error: there is no process 4294967295\n"));
    let run = ops(std::process::id(), &[]);
    assert_eq!(run.code, Some(6));
    assert!(
        run.err.ends_with("has not loaded libtt_metal.so: only programs with tt-metal have an Inspector\n"),
        "{}",
        run.err
    );
    assert_eq!(ttmon(&["ops"]).code, Some(2));
    assert_eq!(ttmon(&["ops", "x"]).code, Some(2));
    assert_eq!(ttmon(&["ops", "1", "--sim"]).code, Some(2));
    assert_eq!(ttmon(&["ops", "1", "--host", "a"]).code, Some(2));
    assert_eq!(ttmon(&["ops", "1", "--root", "/does/not/exist"]).code, Some(2));
}
