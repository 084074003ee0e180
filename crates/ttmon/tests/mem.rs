//! `ttmon mem`: processes that keep books, machines without any, reports, and one clear sentence for what is wrong.

use crate::support::harness::{Harness, built, number};
use crate::support::{Machine, TTMON, run, ttmon};
use expect_test::{expect, expect_file};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const CHIP: u64 = 0x3E3;

fn machine() -> Machine {
    Machine::with(&[Chip { asic_id: Some(CHIP), ..Chip::p150a(0) }, Chip::p150a(1)])
}

/// A process that keeps a book and rests, and what it holds of DRAM, L1 and TRACE.
fn rested(seed: u64) -> (Harness, [u64; 3]) {
    let mut keeper = Harness::start(&[], &["book", &CHIP.to_string(), &seed.to_string()], &[]);
    loop {
        keeper.ok("hurry");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let reply = keeper.ask("stop");
        let truth = ["dram", "l1", "trace"].map(|kind| number(&reply, kind));
        // Where much else is going on, it may not have come to anything yet.
        if truth.iter().all(|bytes| *bytes > 0) {
            return (keeper, truth);
        }
    }
}

fn mem(machine: &Machine, arguments: &[&str]) -> Value {
    let run = ttmon(&[&["mem", "--json", "--root", machine.root()], arguments].concat());
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {} {}", run.out, run.err))
}

fn kind<'a>(view: &'a Value, area: &str, kind: &str) -> &'a Value {
    let kinds = view["chips"][0][area]["kinds"].as_array().unwrap();
    kinds.iter().find(|known| known["kind"] == kind).unwrap()
}

/// DRAM, L1 and TRACE in use on the first chip.
fn used(view: &Value) -> [u64; 3] {
    [("dram", "dram"), ("l1", "l1"), ("dram", "trace")]
        .map(|(area, name)| kind(view, area, name)["used_bytes"].as_u64().unwrap())
}

fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("LC_ALL", "C.UTF-8").env("COLUMNS", "80");
    command
}

#[test]
fn a_book_gives_bytes_peaks_and_buffers() {
    let machine = machine();
    let (keeper, truth) = rested(1);
    machine.set_pids(0, &[keeper.pid]);
    let view = mem(&machine, &[]);
    assert_eq!(used(&view), truth);
    let dram = kind(&view, "dram", "dram");
    assert!(dram["peak_bytes"].as_u64() >= Some(truth[0]));
    assert_eq!(dram["peak_is_at_least"], false);
    assert_eq!(dram["banks"], json!(null), "nobody asked an allocator");
    assert_eq!(view["chips"][0]["l1"]["reserved_bytes"], json!(null), "so nobody knows what it leaves out");
    let process = &view["processes"][0];
    assert_eq!((&process["pid"], &process["source"]), (&json!(keeper.pid), &json!("exact")));
    let sizes: Vec<u64> = view["buffers"].as_array().unwrap().iter().map(|b| b["bytes"].as_u64().unwrap()).collect();
    assert!(!sizes.is_empty() && sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    let largest = &view["buffers"][0];
    assert_eq!((&largest["pid"], &largest["devices"]), (&json!(keeper.pid), &json!(["0"])));
    assert_eq!(view["faults"], json!([]));
    assert_eq!(view["deaths"], json!([]));
}

#[test]
fn json_lists_every_buffer() {
    let machine = machine();
    let (mut keeper, _) = rested(5);
    machine.set_pids(0, &[keeper.pid]);
    while number(&keeper.ask("stop"), "buffers") < 150 {
        keeper.ok("hurry");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let live = number(&keeper.ask("stop"), "buffers");
    let view = mem(&machine, &[]);
    assert_eq!((view["buffers"].as_array().unwrap().len() as u64, &view["unlisted_buffers"]), (live, &json!(0)));
}

#[test]
fn while_a_process_allocates_its_buffers_add_up_to_its_totals() {
    let machine = machine();
    let (mut keeper, _) = rested(6);
    machine.set_pids(0, &[keeper.pid]);
    keeper.ok("hurry");
    for _ in 0..30 {
        let view = mem(&machine, &[]);
        let (process, buffers) = (&view["processes"][0], view["buffers"].as_array().unwrap());
        for kind in ["dram", "l1", "trace"] {
            let sum: u64 =
                buffers.iter().filter(|one| one["kind"] == kind).map(|one| one["bytes"].as_u64().unwrap()).sum();
            assert_eq!(process[format!("{kind}_bytes")], sum, "{kind}");
            assert_eq!(process["devices"][0][format!("{kind}_bytes")], sum, "{kind}");
            assert_eq!(self::kind(&view, if kind == "l1" { "l1" } else { "dram" }, kind)["used_bytes"], sum, "{kind}");
        }
    }
}

#[test]
fn people_see_the_same() {
    let machine = machine();
    let (keeper, truth) = rested(2);
    machine.set_pids(0, &[keeper.pid]);
    let run = run(program(TTMON).args(["mem", "--once", "-d", "0", "--root", machine.root()]));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let dram = format!("buffers {}", model::Bytes(truth[0]));
    for words in ["p150a", &dram, "peak ", "1 process, ", "exact", "ttmetal-harness", "Age"] {
        assert!(run.out.contains(words), "{words} in {}", run.out);
    }
    assert!(run.out.lines().all(|line| line.chars().count() == 80), "{}", run.out);
    assert!(!run.out.contains('\x1b'), "no colour on a pipe");
}

#[test]
fn the_books_of_several_processes_are_added_up() {
    let machine = machine();
    let ((first, a), (second, b)) = (rested(3), rested(4));
    machine.set_pids(0, &[first.pid, second.pid]);
    let view = mem(&machine, &[]);
    assert_eq!(used(&view), [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    let dram = kind(&view, "dram", "dram");
    assert_eq!(dram["peak_is_at_least"], true, "their peaks need not have been at one time");
    assert!(dram["peak_bytes"].as_u64() >= dram["used_bytes"].as_u64());
    let pids: Vec<&Value> = view["buffers"].as_array().unwrap().iter().map(|buffer| &buffer["pid"]).collect();
    assert!(pids.contains(&&json!(first.pid)) && pids.contains(&&json!(second.pid)));
    assert_eq!(view["chips"][0]["processes"], 2);
}

#[test]
fn a_device_that_is_not_chosen_is_not_shown_and_its_buffers_are_not() {
    let machine = machine();
    let (keeper, _) = rested(5);
    machine.set_pids(0, &[keeper.pid]);
    let view = mem(&machine, &["-d", "1"]);
    assert_eq!(view["chips"].as_array().unwrap().len(), 1);
    assert_eq!((&view["chips"][0]["id"], &view["buffers"]), (&json!("1"), &json!([])));
    assert_eq!(mem(&machine, &["-d", "0", "-d", "1"])["chips"].as_array().unwrap().len(), 2);
    assert_eq!(mem(&machine, &["-a"])["chips"].as_array().unwrap().len(), 2);
}

#[test]
fn with_a_period_json_comes_line_by_line() {
    let machine = machine();
    let (keeper, truth) = rested(6);
    machine.set_pids(0, &[keeper.pid]);
    let mut stream = Command::new(TTMON)
        .args(["mem", "--json", "-r", "20", "--root", machine.root()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(stream.stdout.take().unwrap()).lines();
    for line in lines.take(3) {
        assert_eq!(used(&serde_json::from_str(&line.unwrap()).unwrap()), truth);
    }
    // Its reader is gone, which is no error.
    assert_eq!(stream.wait().unwrap().code(), Some(0));
}

#[test]
fn a_simulated_machine_can_be_looked_at() {
    let run = run(program(TTMON).args(["mem", "--sim", "n300", "--once", "--ascii"]));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.is_ascii() && run.out.contains("SIMULATED") && run.out.contains("0R  n300  remote"), "{}", run.out);
}

#[test]
fn called_as_the_proof_of_concept_s_monitor_it_is_mem() {
    let machine = machine();
    let folder = tempfile::tempdir().unwrap();
    let monitor = folder.path().join("allocation_monitor_client");
    std::os::unix::fs::symlink(TTMON, &monitor).unwrap();
    let run = run(program(monitor.to_str().unwrap()).args(["-a", "-r", "500", "--root", machine.root()]));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out.contains("memory") && run.out.contains("DRAM"), "{}", run.out);
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let machine = machine();
    let root = machine.root();
    let fails = |arguments: &[&str]| {
        let run = ttmon(&[&["mem"], arguments].concat());
        (run.code, run.err)
    };
    let missing = fails(&["-d", "0", "-d", "7", "--root", root]);
    assert_eq!(missing, (Some(6), "error: no device is called \"7\": there are 0, 1\n".into()));
    assert_eq!(fails(&["-d", "0", "-a", "--root", root]).0, Some(2));
    assert_eq!(fails(&["-r", "0", "--root", root]).0, Some(2));
    let empty = tempfile::tempdir().unwrap();
    let (code, error) = fails(&["--root", empty.path().to_str().unwrap()]);
    assert_eq!(code, Some(9));
    assert!(error.starts_with("error: the tenstorrent driver is not loaded"), "{error}");
    let (code, error) = fails(&["--report", "/nowhere"]);
    assert_eq!((code, error.as_str()), (Some(2), "error: --report /nowhere: is not a folder\n"));
    let (code, error) = fails(&["--report", empty.path().to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(error.contains("there is no memory report: *memory_usage_summary.csv"), "{error}");
}

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

#[test]
fn a_report_of_tt_metal_is_shown_the_same_way() {
    let run = run(program(TTMON).args(["mem", "--report", "reports"]).current_dir(fixtures()));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out.lines().all(|line| line.chars().count() == 80), "{}", run.out);
    expect_file!["golden/mem-report.txt"].assert_eq(&run.out);
}

#[test]
fn a_report_is_json_too_and_its_groups_can_be_chosen() {
    let folder = fixtures().join("reports");
    let run = ttmon(&["mem", "--json", "-d", "program 4", "--report", folder.to_str().unwrap()]);
    let view: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(view["chips"].as_array().unwrap().len(), 1);
    let (dram, l1) = (kind(&view, "dram", "dram"), kind(&view, "l1", "l1"));
    assert_eq!(l1["banks"]["count"], 64, "from the column that is called Total Free L1 Space");
    assert_eq!(l1["used_bytes"], 286_720 * 64);
    assert_eq!(dram["banks"]["count"], json!(null), "nothing tells how many banks program 4 had");
    assert_eq!((&dram["used_bytes"], &dram["banks"]["allocated_bytes"]), (&json!(null), &json!(104_857_600)));
    assert_eq!(view["chips"][0]["dram"]["total_bytes"], json!(null));
    let run = ttmon(&["mem", "-d", "5", "--report", folder.to_str().unwrap()]);
    assert_eq!(run.err, "error: the report has no device \"5\": it has program 3, program 4, run\n");
}

#[test]
fn a_broken_report_is_named_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x_memory_usage_summary.csv");
    let text = std::fs::read_to_string(fixtures().join("reports/run_memory_usage_summary.csv")).unwrap();
    std::fs::write(&file, text.replace("286720", "many")).unwrap();
    let run = ttmon(&["mem", "--report", folder.path().to_str().unwrap()]);
    let wanted = format!("error: {}: line 3: a program or nothing, and 4 numbers are expected\n", file.display());
    assert_eq!((run.code, run.err), (Some(2), wanted));
    std::fs::write(&file, b"\xff\xfe\x00").unwrap();
    assert_eq!(ttmon(&["mem", "--report", file.to_str().unwrap()]).code, Some(2));
}

/// Two operations on device 1, of which the first held more; device 0 is never spoken of.
const DATABASE: &str = "
    create table devices (device_id int, worker_l1_size int, l1_num_banks int, l1_bank_size int, total_l1_memory int, rank int not null default 0);
    insert into devices values (0, 1500000, 64, 1400000, 96000000, 0), (1, 1500000, 64, 1400000, 96000000, 0);
    create table operations (operation_id int, name text, duration float, rank int not null default 0);
    insert into operations values (1, 'MatmulDeviceOperation', 0.1, 0), (2, 'SoftmaxDeviceOperation', 0.1, 0);
    create table buffers (operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int, buffer_layout int, rank int not null default 0);
    insert into buffers values (1, 1, 1490000, 700000, 1, 0, 0), (1, 1, 1048640, 12288, 0, 0, 0);
    insert into buffers values (2, 1, 1480000, 210000, 1, 0, 0), (2, 1, 1470000, 4096, 1, 0, 0), (2, 1, 1048640, 12288, 0, 0, 0), (2, 1, 5, 99, 2, 0, 0);
    create table tensors (tensor_id int, shape text, dtype text, device_id int, address int, buffer_type int, rank int not null default 0);
    insert into tensors values (5, 'Shape([1, 1, 256, 256])', 'DataType.BFLOAT16', 1, 1480000, 1, 0);
    insert into tensors values (6, 'Shape([32])', 'DataType.UINT32', 1, 1048640, 0, 0), (7, 'Shape([64])', 'DataType.UINT32', 1, 1048640, 0, 0);
    create table report_metadata (key text unique, value text);
    insert into report_metadata values ('capture_timestamp_ns', '1767323045678000000');
";

fn database(folder: &Path, statements: &str) {
    rusqlite::Connection::open(folder.join("db.sqlite")).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn the_visualizer_s_database_is_shown_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    // A name that an address of a file would have to escape.
    let report = folder.path().join("a report?x=1");
    std::fs::create_dir(&report).unwrap();
    database(&report, DATABASE);
    let run = run(program(TTMON).args(["mem", "--report", "a report?x=1"]).current_dir(folder.path()));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    expect_file!["golden/mem-report-sqlite.txt"].assert_eq(&run.out);
    let left: Vec<_> = std::fs::read_dir(&report).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["db.sqlite"], "nothing is written beside it");
}

#[test]
fn a_database_has_a_time_axis_of_what_came_and_went() {
    let folder = tempfile::tempdir().unwrap();
    database(folder.path(), DATABASE);
    database(folder.path(), "insert into report_metadata values ('total_duration_ns', '250000000');");
    let report = folder.path().to_str().unwrap();
    let view: Value = serde_json::from_str(&ttmon(&["mem", "--json", "--report", report]).out).unwrap();
    assert_eq!(view["timeline"]["error_seconds"], 0.05, "the operations took 200 of 250 ms");
    let steps = view["timeline"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!((&steps[0]["device"], &steps[0]["name"]), (&json!("1"), &json!("MatmulDeviceOperation")));
    assert_eq!(steps[0]["kinds"][1]["allocated"], json!(null), "what was there before the first is not known");
    assert_eq!((&steps[1]["ended_at"], &steps[1]["ended_seconds"]), (&json!("2026-01-02T03:04:05.878Z"), &json!(0.2)));
    let (dram, l1) = (&steps[1]["kinds"][0], &steps[1]["kinds"][1]);
    assert_eq!((&dram["bank_bytes"], &dram["freed"]["buffers"]), (&json!(12_288), &json!(0)));
    assert_eq!(l1["allocated"], json!({"buffers": 2, "bank_bytes": 214_096}));
    assert_eq!(l1["freed"], json!({"buffers": 1, "bank_bytes": 700_000}));
    let text = ttmon(&["mem", "--report", report]).out;
    assert!(text.contains("\nmemory over time: operations are up to 50.0 ms later than here\n"), "{text}");
    assert!(!ttmon(&["mem", "-d", "0", "--report", report]).out.contains("memory over time"));
}

#[test]
fn a_database_without_ranks_is_read() {
    let folder = tempfile::tempdir().unwrap();
    database(
        folder.path(),
        "create table devices (device_id int, l1_num_banks int, l1_bank_size int);
         insert into devices values (0, 64, 1000);
         create table buffers (operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int);
         insert into buffers values (9, 0, 1, 250, 1);",
    );
    let run = ttmon(&["mem", "--json", "--report", folder.path().to_str().unwrap()]);
    let view: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.err));
    assert_eq!(kind(&view, "l1", "l1")["used_bytes"], 16_000);
    assert_eq!(view["chips"][0]["about"], "after operation 9");
    assert_eq!(view["taken_at"], json!(null));
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("db.sqlite"), "hello, this is not a database, however long it is").unwrap();
    let error = |run: crate::support::Run| (run.code, run.err.replace(report, "DIR"));
    assert_eq!(
        error(ttmon(&["mem", "--report", report])),
        (Some(2), "error: DIR/db.sqlite: file is not a database\n".into())
    );
    std::fs::remove_file(folder.path().join("db.sqlite")).unwrap();
    database(folder.path(), "create table devices (device_id int);");
    let run = error(ttmon(&["mem", "--report", report]));
    assert_eq!(run, (Some(2), "error: DIR/db.sqlite: it has no table \"buffers\"\n".into()));
    database(folder.path(), "create table buffers (operation_id int);");
    expect![[r#"
        error: DIR/db.sqlite: table "devices": no such column: l1_num_banks
    "#]]
    .assert_eq(&error(ttmon(&["mem", "--report", report])).1);
}

/// Runs it on a terminal of its own until it has drawn three times, types a key, and returns all that it wrote.
fn on_a_terminal(arguments: &str, key: &[u8]) -> String {
    let mut child = Command::new("script")
        .args(["-qec", &format!("stty cols 80 rows 24; exec {TTMON} mem {arguments}"), "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while String::from_utf8_lossy(&text).matches("\x1b[?2026l").count() < 3 {
        let length = out.read(&mut buffer).unwrap();
        assert!(length > 0, "ended early: {}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..length]);
    }
    child.stdin.as_mut().unwrap().write_all(key).unwrap();
    out.read_to_end(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn on_a_terminal_it_is_drawn_in_place_until_q_or_ctrl_c() {
    let machine = machine();
    for key in [&b"xq"[..], b"\x03"] {
        let text = on_a_terminal(&format!("-r 20 --root {}", machine.root()), key);
        assert_eq!(text.matches("\x1b[?1049h\x1b[?25l").count(), 1);
        let (live, after) = text.split_once("\x1b[?25h\x1b[?1049l").expect("the terminal is given back");
        assert!(live.contains("\x1b[H") && !live.contains("\x1b[2J"), "drawn over, never wiped");
        assert!(after.contains("p150a"), "the last picture stays");
    }
    let once = on_a_terminal_once(machine.root());
    assert!(once.contains("p150a") && !once.contains("\x1b[?1049h"), "{once:?}");
}

fn on_a_terminal_once(root: &str) -> String {
    let command = format!("exec {TTMON} mem --once --root {root}");
    run(Command::new("script").args(["-qec", &command, "/dev/null"]).env("LC_ALL", "C.UTF-8")).out
}

#[test]
fn the_banks_of_a_real_allocator_are_shown() {
    let Some(ttnn) = crate::support::needs::wheel("the_banks_of_a_real_allocator_are_shown") else { return };
    let number = u64::from(std::process::id()) << 32 | 0x3E3;
    let machine = Machine::with_real_shm(&[Chip { serial: Some(number), ..Chip::n150(0) }]);
    let cluster = machine.0.path().join("cluster.yaml");
    let text = include_str!("../../harness/clusters/n150.yaml").replace("7310579611150000150", &number.to_string());
    std::fs::write(&cluster, text).unwrap();
    let agent = built("libttmon_agent.so");
    let environment = [("TMPDIR", machine.root()), ("LD_PRELOAD", agent.to_str().unwrap())];
    let mut program = Harness::start(&[], &["mock", ttnn.to_str().unwrap(), cluster.to_str().unwrap()], &environment);
    machine.set_pids(0, &[program.pid]);
    for id in 1..=8 {
        assert!(program.ask(&format!("alloc {id} 8388608 2048 l1")).starts_with("OK "));
    }
    assert!(program.ask("alloc 9 1073741824 2048 dram").starts_with("OK "));
    // A hole below the top: what is free is no longer in one piece.
    program.ok("free 3");
    let stats = program.ask("stats l1");
    let view = mem(&machine, &[]);
    let _ = std::fs::remove_file(format!("/dev/shm/tt_device_{number}_memory"));
    let l1 = kind(&view, "l1", "l1");
    assert_eq!(l1["used_bytes"], 7 * 8_388_608);
    assert_eq!(l1["peak_bytes"], 8 * 8_388_608);
    let banks = &l1["banks"];
    assert_eq!(banks["count"], 64);
    for key in ["allocatable", "allocated", "free", "largest_free"] {
        assert_eq!(banks[format!("{key}_bytes")], crate::support::harness::number(&stats, key), "{key}");
    }
    assert!(banks["fragmentation"].as_f64() > Some(0.0));
    // What the allocator leaves of all the L1 that the board has: the ring, and the rest.
    let area = &view["chips"][0]["l1"];
    let small = &kind(&view, "l1", "l1_small")["banks"];
    let allocatable: u64 =
        [banks, small].map(|banks| banks["allocatable_bytes"].as_u64().unwrap_or(0) * 64).iter().sum();
    let rest = area["total_bytes"].as_u64().unwrap() - allocatable;
    assert_eq!(area["kernel_ring_bytes"], 69 * 1024 * 64);
    assert_eq!(area["reserved_bytes"], rest - 69 * 1024 * 64);
    let text = run(self::program(TTMON).args(["mem", "--root", machine.root()])).out;
    assert!(text.contains("64 banks") && text.contains("frag ") && text.contains("kernel ring"), "{text}");
}

#[test]
fn help_is_as_pinned() {
    let mut command = Command::new(TTMON);
    expect_file!["golden/mem-help.txt"].assert_eq(&run(command.args(["mem", "--help"]).env("COLUMNS", "100")).out);
}
