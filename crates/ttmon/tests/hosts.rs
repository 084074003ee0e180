//! Other machines: `--host` of `ttmon smi`, `mem` and `top`, against services that answer, hang, end and come back.

mod real;
mod screen;

use crate::support::pretend::Pretend;
use crate::support::{Machine, ttmon};
use expect_test::expect;
use serde_json::Value;
use sim::tree::Chip;

/// What a machine with these chips tells, under another name.
fn snapshot(chips: &[Chip], name: &str) -> String {
    let mut snapshot = Machine::with(chips).json(&["--service", "off"]);
    snapshot["host"]["name"] = name.into();
    snapshot.to_string()
}

/// A machine with so many chips that answers.
fn answering(chips: u32, name: &str) -> Pretend {
    let pretend = Pretend::start();
    pretend.answer("snapshot", snapshot(&(0..chips).map(Chip::p150a).collect::<Vec<_>>(), name));
    pretend
}

/// An address where nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn one_other_machine_is_shown_as_if_it_were_this_one() {
    let machine = answering(2, "lab-7");
    let name = machine.name();
    let json: Value = serde_json::from_str(&ttmon(&["smi", "--json", "--host", &name]).out).unwrap();
    assert_eq!((&json["host"]["name"], json["devices"].as_array().unwrap().len()), (&"lab-7".into(), 2));
    let table = ttmon(&["smi", "--host", &format!("http://{name}/")]);
    assert_eq!((table.code, table.err.as_str()), (Some(0), ""));
    assert!(table.out.contains("lab-7") && table.out.contains("0000:01:00.0"), "{}", table.out);
    let list = ttmon(&["smi", "-L", "-i", "1", "--host", &name]);
    assert!(list.out.starts_with("Device 1: ") && list.out.lines().count() == 1, "{}", list.out);
    let official: Value = serde_json::from_str(&ttmon(&["smi", "--tt-smi", "--host", &name]).out).unwrap();
    assert_eq!(official["host_info"]["Distro"], "N/A", "what this machine is says nothing of that one");
    machine.answer("buffers", r#"{"total": 0, "offset": 0, "buffers": [], "unlisted": 0, "faults": []}"#);
    let mem = ttmon(&["mem", "--once", "--host", &name]);
    assert_eq!(mem.code, Some(0), "{}", mem.err);
    assert!(mem.out.contains("p150a"), "{}", mem.out);
    let asked = machine.asked();
    assert!(asked.iter().any(|path| path.starts_with("/api/v1/buffers?limit=")), "{asked:?}");
    assert!(asked.iter().any(|path| path.starts_with("/api/v1/deaths?")), "{asked:?}");
}

#[test]
fn users_of_several_machines_are_one_list() {
    let one = |name: &str, user: &str| {
        let mut snapshot: Value = serde_json::from_str(&snapshot(&[Chip::p150a(0)], name)).unwrap();
        snapshot["devices"][0]["names_all_holders"] = true.into();
        let process = serde_json::json!({"pid": 7, "user": user, "devices": [{"id": "0", "dram_used_bytes": 1000}]});
        snapshot["processes"] = serde_json::json!([process]);
        let machine = Pretend::start();
        machine.answer("snapshot", snapshot.to_string());
        machine
    };
    let machines = [one("lab-1", "alice"), one("lab-2", "alice"), one("lab-3", "bob")];
    let hosts = machines.each_ref().map(|machine| machine.name()).join(",");
    let csv = ttmon(&["smi", "--by", "user", "--format", "csv,noheader", "--host", &hosts]);
    assert_eq!((csv.code, csv.err.as_str()), (Some(0), ""));
    let lines: Vec<String> =
        csv.out.lines().map(|line| line.split(", ").take(6).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines, ["alice 2 2 0 2 2000", "bob 1 1 0 1 1000"]);
    let nobody = nobody();
    let table = ttmon(&["smi", "--by", "user", "--filter", "user:alice", "--host", &format!("{hosts},{nobody}")]);
    assert_eq!((table.code, table.err.as_str()), (Some(7), ""));
    assert!(table.out.contains("alice") && !table.out.contains("bob"), "{}", table.out);
    assert!(table.out.contains(&format!("note: {nobody}: ")), "{}", table.out);
}

#[test]
fn a_machine_that_does_not_answer_is_exit_7_and_one_sentence() {
    let nobody = nobody();
    let run = ttmon(&["smi", "--host", &nobody]);
    let told = run.err.replace(&nobody, "lab-7:9746");
    assert_eq!((run.code, run.out.as_str()), (Some(7), ""));
    expect![[r#"
        error: http://lab-7:9746: connection refused: `ttmon serve` is not running there
    "#]]
    .assert_eq(&told);
    assert_eq!(ttmon(&["mem", "--once", "--host", &nobody]).code, Some(7));
    assert!(ttmon(&["smi", "--host", "no-such-machine.invalid"]).err.contains("no-such-machine.invalid"));
}

#[test]
fn another_server_is_not_taken_for_the_service() {
    let other = Pretend::start();
    other.answer("snapshot", "<html>Welcome!</html>");
    let run = ttmon(&["smi", "--host", &other.name()]);
    assert!(run.err.contains("not `ttmon serve`: unexpected response"), "{}", run.err);
    other.answer("snapshot", "{\"schema\":7}");
    assert!(ttmon(&["smi", "--host", &other.name()]).err.contains("uses schema 7"));
    let empty = Pretend::start();
    assert!(ttmon(&["smi", "--host", &empty.name()]).err.contains("answered 404"));
}

#[test]
fn several_machines_are_one_table_and_each_has_its_own_state() {
    let (well, nobody) = (answering(2, "lab-7"), nobody());
    let sick = Pretend::start();
    sick.answer("snapshot", snapshot(&[Chip::p150a(0), Chip::p150a(1).hung()], "lab-8"));
    let hosts = format!("{},{nobody},{}", well.name(), sick.name());
    let run = ttmon(&["smi", "--host", &hosts]);
    assert_eq!((run.code, run.err.as_str()), (Some(15), ""), "a hung device is the worst");
    let at = |what: &str| run.out.find(what).unwrap_or_else(|| panic!("{what}: {}", run.out));
    assert!(run.out.contains("2 of 3 machines answer   3 of 4 devices ok"), "{}", run.out);
    assert!(at(&nobody) < at(&sick.name()) && at(&sick.name()) < at(&well.name()), "{}", run.out);
    assert!(run.out.contains("connection refused"), "{}", run.out);
    let json: Value = serde_json::from_str(&ttmon(&["smi", "--json", "--host", &hosts]).out).unwrap();
    let states: Vec<&str> =
        json["hosts"].as_array().unwrap().iter().map(|host| host["state"].as_str().unwrap()).collect();
    assert_eq!((json["schema"].as_u64(), states), (Some(1), vec!["reached", "unreachable", "reached"]));
    assert_eq!(json["hosts"][0]["snapshot"]["host"]["name"], "lab-7");
    assert!(json["hosts"][1]["snapshot"].is_null() && json["hosts"][1]["reason"].is_string());
    let csv = ttmon(&["smi", "--query-device=index", "--format=csv", "--host", &hosts]);
    assert!(csv.out.starts_with("host, index\n") && csv.out.lines().count() == 5, "{}", csv.out);
    assert!(csv.err.contains("connection refused"), "{}", csv.err);
    let gone = ttmon(&["smi", "--host", &format!("{nobody},{}", well.name())]);
    assert_eq!(gone.code, Some(7));
    let mem = ttmon(&["mem", "--once", "--host", &hosts]);
    assert!(mem.out.contains(&well.name()) && mem.out.contains("connection refused"), "{}", mem.out);
    let mem: Value = serde_json::from_str(&ttmon(&["mem", "--json", "--host", &hosts]).out).unwrap();
    assert_eq!(mem["hosts"][0]["memory"]["chips"].as_array().unwrap().len(), 2);
    assert!(mem["hosts"][1]["memory"].is_null());
}

#[test]
#[ignore = "long"]
fn one_that_hangs_costs_its_time_once_and_the_others_nothing() {
    let (well, hanging) = (answering(1, "lab-7"), answering(1, "lab-8"));
    hanging.hang(true);
    let hosts = format!("{},{}", hanging.name(), well.name());
    let run = ttmon(&["smi", "--json", "--loop-ms", "20", "-c", "20", "--host", &hosts]);
    let lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, lines.len()), (Some(7), 20));
    for line in &lines {
        assert_eq!(
            (&line["hosts"][0]["state"], &line["hosts"][1]["state"]),
            (&"unreachable".into(), &"reached".into())
        );
    }
    assert_eq!(lines[0]["hosts"][0]["reason"], "no answer within 5 s");
    assert!(well.unchanged() > 0, "what has not changed is not sent again");
}

#[test]
fn what_does_not_go_together_is_said_in_one_sentence() {
    let said = |words: &str| {
        let run = ttmon(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, Some(2), "{words}: {}", run.err);
        run.err.lines().next().unwrap_or_default().to_owned() + "\n"
    };
    let all = [
        "record --host a -o x",
        "serve --ssh a",
        "run --host a true",
        "smi --push",
        "smi --ca x",
        "smi --token-file x",
        "smi --host a --token-file /nonexistent",
        "smi --host a --ca /nonexistent",
        "smi --host a --sim",
        "smi --host a --ssh b",
        "smi --host a/b",
        "smi --ssh=-oProxyCommand=x",
        "smi --tt-smi --host a,b",
        "top --host a --replay x",
        "top --host a --record x",
        "mem --host a --report x",
    ];
    expect![[r#"
        error: --host goes with smi, top and mem: the other commands are about this machine
        error: --ssh goes with smi, top and mem: the other commands are about this machine
        error: --host goes with smi, top and mem: the other commands are about this machine
        error: --push goes with --ssh: it copies ttmon to the other machine
        error: --token-file, --ca and --client-cert go with --host and --prometheus: they are for remote services
        error: --token-file, --ca and --client-cert go with --host and --prometheus: they are for remote services
        error: /nonexistent: No such file or directory (os error 2)
        error: /nonexistent: No such file or directory (os error 2)
        error: --host cannot be used with --sim
        error: --host cannot be used with --ssh
        error: --host "a/b": a name has no path: write it as http://… or https://…
        error: --ssh "-oProxyCommand=x": is no machine: HOST, USER@HOST or a name of your ssh configuration is needed
        error: --tt-smi shows one machine: name one host, or use --json
        error: --replay shows a file: leave out the other machines
        error: --record is of this machine alone: run `ttmon record` on the other ones
        error: --report shows files: leave out the other machines
    "#]]
    .assert_eq(&all.map(said).concat());
}
