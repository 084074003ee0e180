//! The command line: exit codes, one clear sentence for what is wrong, and good manners in pipes and on Ctrl-C.

use crate::support::{Machine, TTMON, is_root, not_run, program_for_all, run, ttmon};
use expect_test::{expect, expect_file};
use rustix::process::{Pid, Signal, kill_process};
use sim::tree::Chip;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn two_p150s() -> Machine {
    Machine::with(&[Chip::p150a(0), Chip::p150b(1)])
}

/// Exit code and the error on standard error.
fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let run = ttmon(arguments);
    (run.code, run.err)
}

#[test]
fn a_healthy_machine_is_success() {
    let machine = two_p150s();
    let run = ttmon(&["smi", "--root", machine.root()]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out.contains("p150a") && run.out.contains("p150b"), "{}", run.out);
    assert!(!run.out.contains('\x1b'), "no colour on a pipe");
}

#[test]
fn without_a_command_it_is_smi() {
    let machine = two_p150s();
    let rest = |text: String| text.split_once('\n').unwrap().1.to_owned();
    let (plain, smi) = (ttmon(&["--root", machine.root()]).out, ttmon(&["smi", "--root", machine.root()]).out);
    assert_eq!(rest(plain), rest(smi));
}

#[test]
fn colour_can_be_asked_for_and_refused() {
    let machine = two_p150s();
    let colored = |arguments: &[&str], no_color: &str| {
        let mut command = Command::new(TTMON);
        command.args(["smi", "--root", machine.root()]).args(arguments).env("NO_COLOR", no_color);
        run(&mut command).out.contains('\x1b')
    };
    assert!(!colored(&[], ""));
    assert!(colored(&["--color", "always"], ""));
    assert!(!colored(&["--color", "never"], ""));
    assert!(colored(&["--color=always"], "1"), "what is asked for on the command line wins");
}

#[test]
fn a_table_in_a_pipe_is_as_wide_as_columns_says() {
    let machine = two_p150s();
    let width = |columns: &str| {
        let mut command = Command::new(TTMON);
        command.args(["smi", "--root", machine.root()]).env("COLUMNS", columns).env("LC_ALL", "C.UTF-8");
        let text = run(&mut command).out;
        text.lines().filter(|line| line.starts_with(['│', '├'])).map(|line| line.chars().count()).max()
    };
    assert_eq!(["60", "120", "1", "0", "wide", ""].map(width), [60, 120, 40, 80, 80, 80].map(Some));
}

#[test]
fn a_hung_device_is_exit_15() {
    let machine = Machine::with(&[Chip::p150a(0), Chip::p150a(1).hung()]);
    let run = ttmon(&["smi", "-L", "--root", machine.root()]);
    assert_eq!(run.code, Some(15));
    assert!(run.out.contains("Device 1: Tenstorrent blackhole") && run.out.contains("state: hung"), "{}", run.out);
}

/// A chip whose firmware has published nothing: the driver then hides its attributes.
fn without_telemetry(index: u32) -> Chip {
    let chip = Chip { aiclk: None, axiclk: None, arcclk: None, serial: None, ..Chip::p150a(index) };
    let chip = Chip { card_type: None, asic_id: None, fw_bundle: None, m3app_fw: None, ..chip };
    Chip { heartbeat: None, therm_trip_count: None, counters: None, hwmon: vec![], ..chip }
}

#[test]
fn a_chip_without_telemetry_exits_0_with_a_note_and_15_on_a_dead_bus() {
    let machine = Machine::with(&[Chip::p150a(0), without_telemetry(1)]);
    let run = ttmon(&["smi", "--root", machine.root()]);
    assert_eq!(run.code, Some(0));
    assert!(run.out.contains("no telem") && run.out.contains("the firmware has published none"), "{}", run.out);
    let machine = Machine::with(&[Chip::p150a(0), without_telemetry(1).hung()]);
    let run = ttmon(&["smi", "--root", machine.root()]);
    assert_eq!(run.code, Some(15));
    assert!(run.out.contains("config space is all-ones"), "{}", run.out);
}

#[test]
fn one_reading_verifies_no_heartbeat_and_two_do() {
    let verified = |arguments: &[&str]| {
        let run = ttmon(&[&["smi", "--json"], arguments].concat());
        let last: serde_json::Value = serde_json::from_str(run.out.lines().last().unwrap()).unwrap();
        (last["devices"][0]["heartbeat_verified"].as_bool(), last["devices"][0]["state"].clone(), run.code)
    };
    assert_eq!(verified(&["--sim=p150"]), (Some(false), "ok".into(), Some(0)));
    assert_eq!(verified(&["--sim=p150", "--loop-ms=300", "-c2"]), (Some(true), "ok".into(), Some(0)));
    assert_eq!(verified(&["--sim=p150", "--verify"]), (Some(true), "ok".into(), Some(0)));
    assert_eq!(verified(&["--sim=p150,freeze=0@0s", "--verify"]), (Some(false), "hung".into(), Some(15)));
}

#[test]
fn where_a_device_is_used_by_a_process_without_a_name_the_table_does_not_say_that_none_uses_it() {
    let machine = Machine::with(&[Chip { pids: Some(vec![0]), ..Chip::p150a(0) }]);
    for command in ["smi", "mem"] {
        let run = ttmon(&[command, "--root", machine.root()]);
        assert!(run.out.contains(" Used by processes that cannot be named"), "{}", run.out);
    }
}

#[test]
fn a_loop_goes_on_while_the_driver_is_reloaded() {
    let machine = two_p150s();
    let mut command = Command::new(TTMON);
    command.args(["smi", "--root", machine.root(), "--loop-ms=300", "-c", "6"]);
    let child =
        command.args(["--query-device=id,state", "--format=csv,noheader"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    for folder in ["class", "module"] {
        std::fs::rename(format!("{}/sys/{folder}", machine.root()), format!("{}/{folder}", machine.root())).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("0, ok\n1, ok\n") && text.ends_with("0, no driver\n1, no driver\n"), "{text}");
    assert_eq!((text.lines().count(), output.status.code()), (12, Some(9)), "{text}");
}

#[test]
fn no_driver_is_exit_9_and_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let (code, error) = fails(&["smi", "--root", empty.path().to_str().unwrap()]);
    assert_eq!(code, Some(9));
    expect![[r#"
        error: the tenstorrent driver is not loaded, and no Tenstorrent PCI device was found: load it with `modprobe tenstorrent` (package tenstorrent-dkms), or try `ttmon --sim`
    "#]]
    .assert_eq(&error);
}

#[test]
fn a_function_without_driver_is_named() {
    let machine = Machine::with(&[Chip { bound: false, ..Chip::p150a(0) }]);
    std::fs::remove_dir_all(machine.0.path().join("sys/module")).unwrap();
    let _ = std::fs::remove_dir_all(machine.0.path().join("sys/class"));
    let run = ttmon(&["smi", "--root", machine.root()]);
    assert_eq!(run.code, Some(9));
    assert!(run.err.contains("0000:01:00.0 cannot be read"), "{}", run.err);
    assert!(run.out.contains("no driver is bound"), "{}", run.out);
    assert_eq!(machine.json(&[])["devices"][0]["state"], "no driver");
}

#[test]
fn a_driver_without_a_device_is_exit_6() {
    let machine = Machine::with(&[]);
    std::fs::create_dir_all(machine.0.path().join("sys/class/tenstorrent")).unwrap();
    assert_eq!(fails(&["smi", "--root", machine.root()]).0, Some(6));
    assert_eq!(machine.json(&[])["devices"], serde_json::json!([]), "a program still gets its JSON");
}

#[test]
fn an_unknown_device_is_exit_6_and_says_which_there_are() {
    let machine = two_p150s();
    let (code, error) = fails(&["smi", "-i", "0,7", "--root", machine.root()]);
    assert_eq!((code, error.as_str()), (Some(6), "error: no device is called \"7\": there are 0, 1\n"));
}

#[test]
fn a_device_is_chosen_by_any_of_its_names() {
    let machine = two_p150s();
    let all = machine.json(&[]);
    let device = &all["devices"][1];
    for name in ["index", "pci_address", "serial", "asic_id"] {
        let name = device[name].to_string().replace('"', "");
        let one = machine.json(&["-i", &name]);
        let chosen: Vec<&serde_json::Value> = one["devices"].as_array().unwrap().iter().map(|d| &d["index"]).collect();
        assert_eq!(chosen, [1], "{name}");
    }
}

#[test]
fn a_wrong_field_is_exit_2_and_names_the_nearest() {
    let machine = two_p150s();
    let (code, error) = fails(&["smi", "--query-gpu=index,memory.usd", "--format=csv", "--root", machine.root()]);
    assert_eq!(code, Some(2));
    expect![[r#"
        error: --query-gpu: unknown field "memory.usd": did you mean "memory.used"? `ttmon smi --help-query` lists all fields
    "#]]
    .assert_eq(&error);
}

#[test]
fn a_wrong_group_or_filter_is_one_sentence() {
    let machine = two_p150s();
    let sentence = |words: &[&str]| {
        let words = [&["smi"], words, &["--root", machine.root()]].concat();
        let (code, error) = fails(&words);
        assert_eq!(code, Some(2), "{words:?}");
        error
    };
    let wrong = [
        sentence(&["--by", "usr"]),
        sentence(&["--by", "user", "--filter", "dram>"]),
        sentence(&["--by", "user", "--json", "--format", "csv"]),
        sentence(&["--by", "user", "dmon"]),
        sentence(&["--format", "csv"]),
    ];
    expect![[r#"
        error: --by: unknown value "usr": did you mean user? expected one of user, job, unit, pod
        error: --filter: at 6: expected a number after `dram`, such as 4096, 512K, 100M, 1.5G or 1T
        error: --json and --format are two forms: choose one
        error: dmon, pmon, topo and nvlink cannot be combined with other output formats
        error: --format goes with --query-device, --query-processes or --by
    "#]]
    .assert_eq(&wrong.concat());
}

#[test]
fn a_wrong_flag_or_simulation_is_exit_2() {
    assert_eq!(fails(&["smi", "--bogus"]).0, Some(2));
    assert_eq!(fails(&["smi", "-l", "never"]).0, Some(2));
    assert_eq!(
        fails(&["smi", "--root", "/does/not/exist"]),
        (Some(2), "error: --root /does/not/exist is not a folder\n".into())
    );
    let (code, error) = fails(&["--sim=h200x8"]);
    assert_eq!(code, Some(2));
    assert!(error.starts_with("error: --sim: ") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let machine = two_p150s();
    let (code, error) = fails(&["smi", "-f", "/does/not/exist/x", "--root", machine.root()]);
    assert_eq!(code, Some(2));
    assert!(error.starts_with("error: cannot write to /does/not/exist/x: "), "{error}");
    let file = machine.0.path().join("out.json");
    assert_eq!(ttmon(&["smi", "--json", "-f", file.to_str().unwrap(), "--root", machine.root()]).out, "");
    serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(file).unwrap()).unwrap();
}

#[test]
fn a_run_that_fails_leaves_the_file_as_it_was() {
    let machine = two_p150s();
    let file = machine.0.path().join("kept");
    std::fs::write(&file, "keep").unwrap();
    assert_eq!(fails(&["smi", "-i", "7", "-f", file.to_str().unwrap(), "--root", machine.root()]).0, Some(6));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "keep");
    assert!(ttmon(&["smi", "-L", "-f", "-", "--root", machine.root()]).out.starts_with("Device 0"));
}

#[test]
fn forms_that_exclude_each_other_are_refused() {
    for words in
        [&["--json", "dmon"][..], &["-L", "pmon"], &["-w", "1", "dmon"], &["--format=csv"], &["-q", "--format=csv"]]
    {
        let run = ttmon(&[&["smi", "--sim"], words].concat());
        assert_eq!((run.code, run.err.lines().count()), (Some(2), 1), "{words:?}: {}", run.err);
    }
    let machine = two_p150s();
    let run = ttmon(&["smi", "-c", "1", "--root", machine.root(), "dmon", "-d", "0.01"]);
    assert_eq!(run.out.lines().count(), 4, "a count before dmon counts: {}", run.out);
}

#[test]
fn a_count_without_an_interval_is_once_a_second() {
    let machine = two_p150s();
    let run = ttmon(&["smi", "-L", "-c", "2", "--root", machine.root()]);
    assert_eq!(run.out.lines().count(), 4);
}

#[test]
fn what_may_not_be_read_is_exit_4() {
    let test = "what_may_not_be_read_is_exit_4";
    if !is_root() {
        return not_run(test, "becoming another user needs root");
    }
    let machine = two_p150s();
    let folder = tempfile::tempdir().unwrap();
    let program = program_for_all(folder.path());
    program_for_all(machine.0.path());
    let class = machine.0.path().join("sys/class/tenstorrent");
    std::fs::set_permissions(class, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut as_nobody = Command::new("setpriv");
    as_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    let run = run(as_nobody.args(["smi", "--root", machine.root()]));
    assert_eq!(run.code, Some(4), "{}", run.err);
    assert!(run.err.contains("may not be read: run as root"), "{}", run.err);
}

#[test]
fn a_program_called_tt_smi_answers_as_tt_smi() {
    let machine = two_p150s();
    let link = machine.0.path().join("tt-smi");
    std::os::unix::fs::symlink(TTMON, &link).unwrap();
    let run = run(Command::new(link).args(["-s", "--root", machine.root()]));
    let snapshot: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(snapshot["device_info"][1]["board_info"]["board_type"], "p150b");
    assert!(run.out.starts_with("{\n    \"time\": \""), "{}", run.out);
}

#[test]
fn a_command_line_of_any_bytes_is_shown() {
    use std::os::unix::ffi::OsStrExt;
    let machine = two_p150s();
    // Not UTF-8, a newline, an escape sequence, a quote and a comma.
    let bytes = std::ffi::OsStr::from_bytes(b"600\xff\n\x1b[2J\",");
    let mut shell = Command::new("sh").args(["-c", "read line"]).arg(bytes).stdin(Stdio::piped()).spawn().unwrap();
    machine.set_pids(0, &[shell.id()]);
    let json = machine.json(&[]);
    assert_eq!(json["processes"][0]["command"], "sh -c read line 600\u{fffd}\n\u{1b}[2J\",");
    let root = machine.root();
    let csv = ttmon(&["smi", "--query-processes=pid,command", "--format=csv,noheader", "--root", root]).out;
    assert_eq!(csv, format!("{}, \"sh -c read line 600\u{fffd}??[2J\"\",\"\n", shell.id()));
    for form in [&[][..], &["-q"], &["pmon", "-c", "1"]] {
        let out = ttmon(&[&["smi", "--root", root], form].concat()).out;
        assert!(out.chars().all(|c| c == '\n' || !c.is_control()), "{out:?}");
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
}

#[test]
fn help_is_as_pinned() {
    let mut text = String::new();
    for arguments in [&["--help"][..], &["smi", "--help"], &["smi", "dmon", "--help"], &["sim", "--help"]] {
        let mut command = Command::new(TTMON);
        text += &run(command.args(arguments).env("COLUMNS", "100")).out;
        text += "\n================\n\n";
    }
    expect_file!["golden/help.txt"].assert_eq(&text);
}

#[test]
fn a_query_is_csv_with_a_header_once() {
    let machine = two_p150s();
    let run = ttmon(&[
        "smi",
        "--query-device=index,board,utilization.gpu",
        "--loop-ms",
        "10",
        "-c",
        "2",
        "--root",
        machine.root(),
    ]);
    assert_eq!(
        run.out,
        "index, board, utilization.gpu [%]\n0, p150a, [N/A]\n1, p150b, [N/A]\n0, p150a, [N/A]\n1, p150b, [N/A]\n"
    );
}

#[test]
fn a_loop_of_json_is_a_snapshot_a_line() {
    let machine = two_p150s();
    let run = ttmon(&["smi", "--json", "-lms", "10", "-c", "3", "--root", machine.root()]);
    assert_eq!(run.out.lines().count(), 3);
    for line in run.out.lines() {
        let snapshot: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(snapshot["devices"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_success() {
    let machine = two_p150s();
    let mut child = Command::new(TTMON)
        .args(["smi", "dmon", "-d", "0.01", "--root", machine.root()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn a_file_never_becomes_the_standard_output_of_a_program_that_was_started_without() {
    let machine = two_p150s();
    let smi = format!("{TTMON} smi --root {}", machine.root());
    // The first file that a program opens gets the lowest number that is free.
    let traced =
        Command::new("strace").args(["-f", "-e", "trace=openat,open", "sh", "-c"]).arg(format!("{smi} >&-")).output();
    let trace = String::from_utf8(traced.unwrap().stderr).unwrap();
    let opened: Vec<&str> = trace.lines().filter(|line| line.ends_with(" = 1")).collect();
    assert!(opened.iter().any(|line| line.contains("/dev/null")), "{trace}");
    assert!(!opened.iter().any(|line| line.contains("tenstorrent")), "{opened:?}");
}

#[test]
fn an_error_that_nobody_reads_keeps_its_exit_code() {
    for (wrong, code) in [("smi --root /nowhere", 2), ("serv", 2), ("completions tcsh", 2)] {
        // Standard error is closed for reading before the program starts.
        let script = format!("{TTMON} {wrong} 2>&1 | true; {TTMON} {wrong} 2>/dev/full; echo $?");
        let run = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap().trim(), code.to_string(), "{wrong}");
    }
    assert_eq!(fails(&["completions", "tcsh"]).1.split(": did").next(), Some("error: SHELL: unknown value \"tcsh\""));
}

#[test]
fn ctrl_c_ends_a_loop_cleanly() {
    let machine = two_p150s();
    let mut child =
        Command::new(TTMON).args(["smi", "dmon", "--root", machine.root()]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Folders and processes of simulated machines below a temporary folder of its own.
fn left_behind(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_simulated_machine_shows_processes_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(TTMON);
    let run = run(command.args(["--sim", "--json"]).env("TMPDIR", folder.path()));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let snapshot: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(snapshot["host"]["simulated"], true);
    assert_eq!(snapshot["devices"].as_array().unwrap().len(), 4);
    assert_eq!(snapshot["faults"], serde_json::json!([]));
    let processes = snapshot["processes"].as_array().unwrap();
    assert!(!processes.is_empty());
    for process in processes {
        assert_eq!(process["runtime"], "ttnn");
        assert_eq!(process["devices"][0]["source"], "exact", "it runs with the agent");
        assert!(process["devices"][0]["dram_bytes"].as_u64().unwrap() > 0);
        assert!(!Path::new(&format!("/proc/{}", process["pid"])).exists(), "it was taken down");
    }
    let first = &snapshot["devices"][0];
    assert_eq!(first["in_use_by_pid"], processes[0]["pid"]);
    assert_eq!(left_behind(folder.path()), 0);
}

#[test]
fn every_simulated_machine_is_understood_in_full() {
    for (spec, devices) in
        [("n150", 1), ("n300x4", 8), ("p300x2", 4), ("galaxy-wh", 32), ("galaxy-bh", 32), ("mixed", 5)]
    {
        let run = ttmon(&["--json", &format!("--sim={spec}")]);
        let snapshot: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(snapshot["devices"].as_array().unwrap().len(), devices, "{spec}");
        assert_eq!(snapshot["faults"], serde_json::json!([]), "{spec}");
        for device in snapshot["devices"].as_array().unwrap() {
            assert!(device["memory"]["dram_used_bytes"].is_u64(), "{spec}: {device}");
            assert_eq!(device["memory"]["untracked_processes"], 0, "{spec}: {device}");
        }
    }
}

#[test]
fn scripted_faults_happen_in_front_of_the_reader() {
    let run = ttmon(&["--sim=p150x4,hang=2@0s,reset=1@0s,lose=3@0s,kill=0@0s", "--json", "--loop-ms=200", "-c", "4"]);
    let last: serde_json::Value = serde_json::from_str(run.out.lines().last().unwrap()).unwrap();
    let states: Vec<&str> = last["devices"].as_array().unwrap().iter().map(|d| d["state"].as_str().unwrap()).collect();
    assert!(states.starts_with(&["ok", "resetting", "hung"]), "{states:?}");
    assert!(last["devices"][0]["memory"]["stale_bytes"].as_u64().unwrap() > 0);
    assert_eq!(last["devices"][0]["memory"]["dram_used_bytes"], 0);
}

#[test]
fn rates_appear_from_the_second_sample() {
    let run = ttmon(&["--sim", "--json", "--loop-ms=300", "-c", "3"]);
    let rates: Vec<bool> = run
        .out
        .lines()
        .map(|line| {
            let snapshot: serde_json::Value = serde_json::from_str(line).unwrap();
            snapshot["devices"][0]["pcie"]["host_to_device_bytes_per_second"].is_number()
                && snapshot["processes"][0]["host_cpu_percent"].is_number()
        })
        .collect();
    assert_eq!(rates, [false, true, true]);
}

#[test]
fn a_signal_takes_a_simulated_machine_down() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(TTMON)
            .args(["sim", "p150x4"])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut root = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut root).unwrap();
        let json = ttmon(&["smi", "--json", "--root", root.trim()]).out;
        let snapshot: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(snapshot["host"]["simulated"], true, "whoever looks at its folder is told");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal:?}");
        assert_eq!(left_behind(folder.path()), 0, "{signal:?}");
        let pid = snapshot["processes"][0]["pid"].as_u64().unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{signal:?}");
    }
}

#[test]
fn watching_on_a_terminal_draws_in_place_and_gives_the_terminal_back() {
    // script(1) runs it on a terminal of its own and copies what it writes. Without `exec` a shell would stay in
    // between, and Ctrl-C would end that one, too.
    let mut child = Command::new("script")
        .args(["-qec", &format!("exec {TTMON} --sim -w 0.2"), "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while String::from_utf8_lossy(&text).matches("\x1b[?2026l").count() < 3 {
        let length = out.read(&mut buffer).unwrap();
        assert!(length > 0, "ended early: {}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..length]);
    }
    // Ctrl-C as a person types it.
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"\x03").unwrap();
    out.read_to_end(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let text = String::from_utf8_lossy(&text);
    assert_eq!(text.matches("\x1b[?1049h\x1b[?25l").count(), 1);
    let (_, after) = text.split_once("\x1b[?25h\x1b[?1049l").expect("the terminal is given back");
    assert!(after.contains("SIMULATED"), "the last table stays on the screen");
    assert!(text.contains("PCIe"), "rates from the second sample");
}

#[test]
fn a_device_that_never_answers_costs_no_more_than_the_deadline() {
    let began = std::time::Instant::now();
    let run = ttmon(&["--sim=p150x4,stuck=1@0s,stuck=2@0s", "--json", "--deadline-ms=200", "--loop-ms=50", "-c", "3"]);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(run.code, Some(0), "they may be well");
    let last: serde_json::Value = serde_json::from_str(run.out.lines().last().unwrap()).unwrap();
    let states: Vec<&str> = last["devices"].as_array().unwrap().iter().map(|d| d["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["ok", "silent", "silent", "ok"]);
}

#[test]
fn a_wrong_cluster_descriptor_is_said_before_the_screen_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cluster.yaml");
    let name = file.to_str().unwrap();
    let said = |text: &str| text.replace(name, "FILE");
    let (code, text) = fails(&["top", "--sim=n150", "--topology", name]);
    assert_eq!(
        (code, said(&text).as_str()),
        (Some(2), "error: --topology FILE: No such file or directory (os error 2)\n")
    );
    std::fs::write(&file, "name: value\n").unwrap();
    let (code, text) = fails(&["top", "--sim=n150", "--topology", name]);
    let why = "error: --topology FILE: line 1: this is no cluster descriptor: it has neither \"arch\" nor \"chips\"\n";
    assert_eq!((code, said(&text).as_str()), (Some(2), why));
}

#[test]
fn the_configuration_is_printed_found_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let name = file.to_str().unwrap();
    let config = |words: &[&str]| ttmon(&[&["config", "--config", name], words].concat());
    let done = |words: &[&str]| {
        let run = config(words);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{words:?}");
        run.out
    };
    assert_eq!(done(&["path"]), format!("{name}\n"));
    let missing = config(&["check"]);
    let why = format!("error: --config {name}: No such file or directory (os error 2)\n");
    assert_eq!((missing.code, missing.err, missing.out.as_str()), (Some(2), why, ""));
    // What is printed is a file that is well.
    let usual = done(&["print"]);
    assert!(usual.starts_with("[top]\n# colours: "), "{usual}");
    std::fs::write(&file, &usual).unwrap();
    assert_eq!(done(&["check"]), format!("{name}: ok\n"));
    std::fs::write(&file, "[top]\nfahrenheit = true\nthem = \"light\"\ninterval_ms = 5\n").unwrap();
    let unknown = format!("{name}:3: unknown key them: did you mean theme?");
    let number = format!("{name}:4: interval_ms: expected a number from 100 to 60000");
    let check = config(&["check"]);
    assert_eq!((check.code, check.out.as_str()), (Some(2), ""));
    assert!(check.err.contains(&unknown) && check.err.contains(&number), "{}", check.err);
    // One that is wrong here and there still counts for the rest.
    let print = config(&["print"]);
    assert_eq!(print.code, Some(0));
    assert!(print.out.contains("fahrenheit = true") && print.out.contains("theme = \"dark\""), "{}", print.out);
    assert!(print.err.contains(&unknown), "{}", print.err);
    std::fs::write(&file, "[top\n").unwrap();
    assert_eq!(config(&["check"]).code, Some(2));
}

#[test]
fn the_configuration_is_where_such_files_are() {
    let path = |xdg: Option<&str>, home: Option<&str>| {
        let mut command = Command::new(TTMON);
        command.args(["config", "path"]).env_remove("XDG_CONFIG_HOME").env_remove("HOME");
        command.envs(xdg.map(|value| ("XDG_CONFIG_HOME", value))).envs(home.map(|value| ("HOME", value)));
        run(&mut command)
    };
    assert_eq!(path(Some("/etc/mine"), Some("/home/me")).out, "/etc/mine/ttmon/config.toml\n");
    assert_eq!(path(None, Some("/home/me")).out, "/home/me/.config/ttmon/config.toml\n");
    let nowhere = path(Some("not/absolute"), None);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.err.contains("name one with --config"), "{}", nowhere.err);
}

#[test]
fn a_verbose_version_says_what_the_program_is_made_of() {
    let run = ttmon(&["--version", "--verbose"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    // What differs from build to build.
    let masked = run.out.lines().map(|line| match line.split_once(' ') {
        Some((name @ ("commit" | "compiler" | "glibc" | "agent"), _)) => format!("{name} …"),
        _ => line.replace(std::env::consts::ARCH, "ARCH"),
    });
    let masked = masked.collect::<Vec<_>>().join("\n") + "\n";
    expect![[r#"
        ttmon 0.1.0
        commit …
        target    ARCH-unknown-linux-gnu, debug
        compiler …
        glibc …
        agent …
        ttnn      0.66 to 0.81 (0.78.0 and 0.81.1 are tested with every change)
        includes  rustls, SQLite 3.50.2, zstd
    "#]]
    .assert_eq(&masked);
    let value = |name: &str| run.out.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert!(value("compiler").starts_with("rustc 1."), "{}", run.out);
    assert!(value("glibc").starts_with("2."), "{}", run.out);
    let document = include_str!("../../../docs/compatibility.md");
    assert!(
        document.contains("| 0.78.0, 0.81.1 | tested with every change | tested with every change |"),
        "as it is said here"
    );
    assert_eq!(ttmon(&["--version"]).out, concat!("ttmon ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let machine = Machine::with(&[Chip::p150a(0)]);
    for words in [
        &["--help"][..],
        &["--version"],
        &["--version", "--verbose"],
        &["smi", "--help"],
        &["smi", "--root", machine.root()],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let full = Command::new(TTMON).args(words).stdout(full).output().unwrap();
        assert_eq!(full.status.code(), Some(1), "{words:?}");
        let closed = Command::new("sh").args(["-c", "exec \"$@\" >&-", "sh", TTMON]).args(words).output().unwrap();
        assert_eq!(closed.status.code(), Some(1), "{words:?}");
    }
}

#[test]
fn a_program_called_nvidia_smi_answers_as_one() {
    use std::os::unix::process::CommandExt;
    let machine = Machine::with(&[Chip::p150a(0)]);
    let called = |words: &[&str]| {
        let mut command = Command::new(TTMON);
        run(command.arg0("/usr/bin/nvidia-smi").args(words).args(["--root", machine.root()]))
    };
    let xml = called(&["-q", "-x"]);
    assert!(xml.out.contains("<!DOCTYPE nvidia_smi_log SYSTEM") && xml.out.contains("<nvidia_smi_log>"), "{}", xml.err);
    let query =
        called(&["--query-gpu=clocks.sm,pcie.link.gen.max,power.draw.instant,gpu_name", "--format=csv, noheader"]);
    assert_eq!((query.code, query.out.lines().count()), (Some(0), 1), "{}", query.err);
    let header = called(&[
        "--query-gpu=clocks.sm,pcie.link.gen.max,enforced.power.limit,power.draw.instant,gpu_name",
        "--format=csv",
    ]);
    let names = "clocks.sm [MHz], pcie.link.gen.max, enforced.power.limit [W], power.draw.instant [W], name";
    assert_eq!(header.out.lines().next(), Some(names));
    assert!(
        called(&["-lms", "1"]).err.starts_with("error: -lms: invalid value \"1\": expected a whole number from 10 to")
    );
}

#[test]
fn a_mistake_of_a_program_called_tt_smi_points_to_its_own_help() {
    use std::os::unix::process::CommandExt;
    let called = |words: &[&str]| run(Command::new(TTMON).arg0("tt-smi").args(words).env_remove("HOME"));
    let nonsense = called(&["--nonsense"]);
    assert_eq!(nonsense.err, "error: there is no option --nonsense: `tt-smi --help` lists all\n");
    let file = called(&["-f"]);
    let why = "error: -f: HOME is not set, so there is no folder for the file: name one, -f FILE\n";
    assert_eq!((file.code, file.err.as_str()), (Some(2), why));
}

#[test]
fn the_monitor_draws_on_a_terminal_that_does_not_know_its_size() {
    let line = format!("stty cols 0 rows 0; exec timeout --foreground 60 {TTMON} top --sim=n300,idle");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("LANG", "C.UTF-8").env("TERM", "xterm");
    command.env_remove("COLUMNS").env_remove("LINES").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut out, mut text, mut buffer) = (child.stdout.take().unwrap(), Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&text).contains("n300") {
        let length = out.read(&mut buffer).unwrap();
        assert!(length > 0, "ended early: {}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..length]);
    }
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"q").unwrap();
    out.read_to_end(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
