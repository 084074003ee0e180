//! `ttmon.h` as C has it: the header itself, and a program that is compiled with it.

use crate::harness::{built, compile};
use expect_test::{expect, expect_file};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_header_is_what_the_library_offers() {
    use cbindgen::{Builder, DocumentationLength, DocumentationStyle, EnumConfig, ExportConfig, Language, RenameRule};
    let names = [("CMemoryKind", "ttmon_kind"), ("CBuffer", "ttmon_buffer"), ("CBankFigures", "ttmon_bank_figures")];
    let config = cbindgen::Config {
        language: Language::C,
        cpp_compat: true,
        include_guard: Some("TTMON_H".into()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stdint.h"].map(String::from).to_vec(),
        header: Some(INTRODUCTION.trim().into()),
        documentation_style: DocumentationStyle::C99,
        tab_width: 4,
        line_length: 120,
        documentation_length: DocumentationLength::Full,
        enumeration: EnumConfig {
            rename_variants: RenameRule::ScreamingSnakeCase,
            prefix_with_name: true,
            ..Default::default()
        },
        export: ExportConfig {
            include: vec!["CMemoryKind".into()],
            rename: names.map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned())).into(),
            ..Default::default()
        },
        ..Default::default()
    };
    let bindings = Builder::new().with_config(config).with_src(here("src/c_abi.rs")).generate().unwrap();
    let mut header = Vec::new();
    bindings.write(&mut header);
    expect_file![here("include/ttmon.h")].assert_eq(&for_c(&String::from_utf8(header).unwrap()));
}

const INTRODUCTION: &str = r#"
// Reports device memory to ttmon, and queries it: for runtimes other than tt-metal, and for tools.
//
// A program that uses tt-metal or ttnn need not report anything: loaded before libtt_metal.so, libttmon_agent.so follows its
// buffers by itself. Others report theirs, and `ttmon smi` shows them:
//
//     ttmon_open("my-runtime 1.2");
//     int chip = ttmon_chip(0, unique_id);
//     ttmon_buffer buffer = {.id = 1, .chips = 1ull << chip, .kind = TTMON_KIND_DRAM, .logical_bytes = 1000,
//                            .bytes_per_bank = 1024, .banks = 12, .address = 4096, .page_bytes = 1024};
//     ttmon_allocate(&buffer);
//     ...
//     ttmon_free(1);
//
// All functions may be called at any time and from any thread, and do nothing where there is nothing to do.
// They start no service and wait for none. TTMON_AGENT=off in the environment turns all of them but the queries off.
//
// Made from crates/agent/src/c_abi.rs: UPDATE_EXPECT=1 cargo test -p ttmon-agent the_header
"#;

/// What must hold for a call to be safe is a plain sentence in C.
fn for_c(header: &str) -> String {
    header.replace("//\n// # Safety\n", "")
}

#[test]
fn only_our_names_are_exported() {
    let names =
        Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(built("libttmon_agent.so")).output().unwrap();
    let names = String::from_utf8(names.stdout).unwrap();
    let names: Vec<&str> = names.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let (interposed, ours): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| name.starts_with("_ZN2tt8tt_metal"));
    assert!(interposed.len() > 10, "{interposed:?}");
    expect![[r#"
        _Exit
        _ZN2tt38NotifyProgramRealtimeProfilerActivatedEN4ttsl10StrongTypeIiNS_8tt_metal12ContextIdTagEEEj
        _ZN2tt38NotifyProgramRealtimeProfilerActivatedEj
        _ZN2tt3umd7Cluster23get_cluster_descriptionEv
        _ZN2tt40NotifyProgramRealtimeProfilerDeactivatedEN4ttsl10StrongTypeIiNS_8tt_metal12ContextIdTagEEEj
        _ZN2tt40NotifyProgramRealtimeProfilerDeactivatedEj
        _ZN2tt7ClusterD1Ev
        _exit
        ttmon_allocate
        ttmon_banks
        ttmon_chip
        ttmon_close
        ttmon_detailed
        ttmon_free
        ttmon_label_pop
        ttmon_label_push
        ttmon_memory
        ttmon_open
        ttmon_ops
        ttmon_process
        ttmon_system
        ttmon_text_free
    "#]]
    .assert_eq(&ours.iter().map(|name| format!("{name}\n")).collect::<String>());
}

/// A running `program.c`.
struct Program {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Program {
    fn compiled(folder: &Path) -> PathBuf {
        let (program, agent) = (folder.join("program"), built("libttmon_agent.so"));
        let include = format!("-I{}", here("include").display());
        let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c11", "-D_POSIX_C_SOURCE=200809L"];
        // The library comes before the file that needs it.
        let with = [include.as_str(), "-Wl,--no-as-needed", agent.to_str().unwrap()];
        compile(&here("tests/agent/program.c"), &program, &[&strict[..], &with].concat());
        program
    }

    fn start(folder: &Path, environment: &[(&str, &str)]) -> Program {
        let mut command = Command::new(Program::compiled(folder));
        command.env_remove("TTMON_AGENT").env_remove("TTMON_BOOK_SOCKET").env_remove("TTMON_ROOT");
        let mut child =
            command.envs(environment.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Program { child, out }
    }

    /// What it says up to here.
    fn said_until(&mut self, last: &str) -> Vec<(String, String)> {
        let mut said = Vec::new();
        for line in self.out.by_ref().lines().map(Result::unwrap) {
            let (what, value) = line.split_once(": ").unwrap();
            said.push((what.to_owned(), value.to_owned()));
            if what == last {
                break;
            }
        }
        said
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that was said but the JSON, which is parsed.
fn sorted(said: Vec<(String, String)>) -> (String, BTreeMap<String, Value>) {
    let (json, plain): (Vec<_>, Vec<_>) = said.into_iter().partition(|(_, value)| value.starts_with('{'));
    let json = json.into_iter().map(|(what, value)| (what, serde_json::from_str(&value).unwrap())).collect();
    (plain.iter().map(|(what, value)| format!("{what}: {value}\n")).collect(), json)
}

#[test]
fn a_c_program_keeps_a_book() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path(), &[]);
    let pid = program.child.id();
    let (said, told) = sorted(program.said_until("without a book"));
    expect![[r#"
        allocate nothing: 0
        free unknown: 0
        chip before: -1
        allocate before: 0
        open: 1
        open again: 1
        chip 3: 0
        chip 4: 1
        chip 3 again: 0
        allocate nothing: 0
        free unknown: 0
        allocate 1: 1
        allocate 2: 1
        allocate 3: 1
        allocate 4: 1
        free 4: 1
        free 4 again: 0
    "#]]
    .assert_eq(&said);
    let no_book = "this process keeps no book: nothing was allocated on a device since the agent was loaded";
    assert_eq!(told["memory before"]["error"], no_book);
    assert_eq!(told["no process"]["error"], "there is no process -1");
    assert!(told["without a book"]["error"].is_string());

    // From inside, from outside, and by the words of the book.
    let (book, table) = sources::whole_book(pid).unwrap().unwrap();
    let outside = serde_json::to_value(sources::process_memory(&book, Some(&table))).unwrap();
    assert_eq!(told["memory"], outside);
    assert_eq!(told["process"], outside);
    expect![[r#"
        {
          "agent": "c-program 1.0",
          "began_at": "…",
          "buffers": [
            {
              "address": 4096,
              "allocated_at": "…",
              "bank_bytes": 1024,
              "banks": 12,
              "bytes": 12288,
              "device_ids": [
                3
              ],
              "id": 1,
              "kind": "dram",
              "label": "weights",
              "layout": 0,
              "logical_bytes": 1000,
              "page_bytes": 512,
              "thread": "…"
            },
            {
              "address": 4096,
              "allocated_at": "…",
              "bank_bytes": 1024,
              "banks": 12,
              "bytes": 12288,
              "device_ids": [
                3,
                4
              ],
              "id": 2,
              "kind": "dram",
              "label": "kv-cache",
              "layout": 0,
              "logical_bytes": 1000,
              "page_bytes": 512,
              "thread": "…"
            },
            {
              "address": 4096,
              "allocated_at": "…",
              "bank_bytes": 1024,
              "banks": 12,
              "bytes": 12288,
              "device_ids": [
                4
              ],
              "id": 3,
              "kind": "l1",
              "label": "layer 0",
              "layout": 0,
              "logical_bytes": 1000,
              "page_bytes": 512,
              "thread": "…"
            }
          ],
          "changed_at": "…",
          "chips": [
            {
              "cb": null,
              "device_id": 3,
              "dram": {
                "allocations": 2,
                "banks": {
                  "age_seconds": null,
                  "allocatable_bytes": 10000,
                  "allocated_bytes": 2048,
                  "count": 12,
                  "fragmentation": 0.5,
                  "free_bytes": 7952,
                  "largest_free_bytes": 3976
                },
                "buffers": 2,
                "bytes": 24576,
                "frees": 0,
                "logical_bytes": 2000,
                "peak_bytes": 24576
              },
              "kernel": null,
              "l1": null,
              "l1_small": null,
              "left_bytes": 0,
              "trace": null,
              "unique_id": "1122334455667788"
            },
            {
              "cb": null,
              "device_id": 4,
              "dram": {
                "allocations": 2,
                "banks": null,
                "buffers": 1,
                "bytes": 12288,
                "frees": 1,
                "logical_bytes": 1000,
                "peak_bytes": 24576
              },
              "kernel": null,
              "l1": {
                "allocations": 1,
                "banks": null,
                "buffers": 1,
                "bytes": 12288,
                "frees": 0,
                "logical_bytes": 1000,
                "peak_bytes": 12288
              },
              "l1_small": null,
              "left_bytes": 0,
              "trace": null,
              "unique_id": null
            }
          ],
          "closed": false,
          "events": 12,
          "exact": true,
          "pid": "…",
          "remark": null,
          "unlisted_buffers": 0
        }
    "#]]
    .assert_eq(&shape(&outside));

    program.go_on();
    let (said, told) = sorted(program.said_until("memory odd"));
    expect![[r#"
        free in child: 0
        open in child: 1
        child: 0
        allocate odd: 0
    "#]]
    .assert_eq(&said);
    assert_eq!(told["memory in child"]["error"], no_book);
    let child = &told["own memory in child"];
    assert_eq!((&child["agent"], &child["chips"]), (&"c-program's child".into(), &Value::Array(vec![])));
    assert_ne!(child["pid"], pid);
    assert_eq!((&told["memory closed"]["closed"], &told["memory closed"]["exact"]), (&true.into(), &true.into()));
    assert_eq!(
        told["memory closed"]["buffers"].as_array().unwrap().len(),
        3,
        "the child has freed nothing of its parent's"
    );
    assert_eq!(told["memory odd"]["exact"], false);
    let remark = "a runtime reported a buffer of an unknown kind, which is not counted";
    assert_eq!(told["memory odd"]["remark"], remark);
    program.go_on();
    assert!(program.child.wait().unwrap().success());
}

/// Without what is different every time.
fn shape(memory: &Value) -> String {
    let mut memory = memory.clone();
    for member in ["pid", "began_at", "changed_at"] {
        assert!(!memory[member].is_null());
        memory[member] = "…".into();
    }
    for buffer in memory["buffers"].as_array_mut().unwrap() {
        buffer["allocated_at"] = "…".into();
        buffer["thread"] = "…".into();
    }
    format!("{memory:#}\n")
}

#[test]
fn with_the_agent_off_every_call_is_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path(), &[("TTMON_AGENT", "off")]);
    let (said, told) = sorted(program.said_until("without a book"));
    expect![[r#"
        allocate nothing: 0
        free unknown: 0
        chip before: -1
        allocate before: 0
        open: 0
        open again: 0
        chip 3: -1
        chip 4: -1
        chip 3 again: -1
        allocate nothing: 0
        free unknown: 0
        allocate 1: 0
        allocate 2: 0
        allocate 3: 0
        allocate 4: 0
        free 4: 0
        free 4 again: 0
    "#]]
    .assert_eq(&said);
    let off = "this process keeps no book: TTMON_AGENT switches the agent off";
    assert_eq!((&told["memory"]["error"], &told["process"]["error"]), (&off.into(), &off.into()));
    assert_eq!(sources::whole_book(program.child.id()), Ok(None));
    program.go_on();
    program.said_until("memory odd");
    program.go_on();
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn queries_return_devices_and_the_books_of_their_processes() {
    let machine = tempfile::tempdir().unwrap();
    let chip = sim::tree::Chip { asic_id: Some(0x1122_3344_5566_7788), ..sim::tree::Chip::p150a(0) };
    sim::tree::lay(machine.path(), &[chip, sim::tree::Chip::p150a(1)], "2.10.0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path(), &[]);
    program.said_until("without a book");
    let pid = program.child.id();
    let pids = machine.path().join("proc/driver/tenstorrent/0/pids");
    let _ = fs::remove_file(&pids);
    fs::write(pids, format!("{pid}\n")).unwrap();

    let mut queries = Command::new(folder.path().join("program"));
    let out = queries.arg("queries").env("TTMON_ROOT", machine.path()).env_remove("TTMON_AGENT").output().unwrap();
    assert!(out.status.success());
    let lines = String::from_utf8(out.stdout).unwrap();
    let said = lines.lines().map(|line| line.split_once(": ").unwrap()).map(|(a, b)| (a.to_owned(), b.to_owned()));
    let (_, told) = sorted(said.collect());

    assert_eq!(told["system"]["devices"].as_array().unwrap().len(), 2);
    let device = &told["device 0"];
    assert_eq!(device["devices"].as_array().unwrap().len(), 1);
    assert_eq!(device["devices"][0], told["detailed"]["devices"][0]);
    assert_eq!(device["devices"][0]["memory"]["dram_used_bytes"], 2 * 12 * 1024);
    let process = &device["processes"][0];
    assert_eq!((&process["pid"], &process["agent"]), (&pid.into(), &"c-program 1.0".into()));
    assert_eq!(process["devices"][0]["dram_bytes"], 2 * 12 * 1024);
    assert_eq!(process["devices"][0]["source"], "exact");
    assert!(process.get("book").is_none());
    let (book, table) = sources::whole_book(pid).unwrap().unwrap();
    let book = serde_json::to_value(sources::process_memory(&book, Some(&table))).unwrap();
    assert_eq!(told["detailed"]["processes"][0]["book"], book);
    assert_eq!(told["device 77"]["error"], "there is no device 77");
    assert_eq!(told["device -5"]["error"], "there is no device -5");
}

#[test]
fn the_header_is_also_cpp() {
    if Command::new("g++").arg("--version").output().is_err() {
        let notice = "NOT RUN: the_header_is_also_cpp, because g++ is missing: install the package g++";
        assert!(std::env::var_os("CI").is_none(), "{notice}");
        // The test runner swallows what `eprintln!` writes in a test that passes.
        return std::io::stderr().write_all(format!("\n{notice}\n\n").as_bytes()).unwrap();
    }
    let header = here("include/ttmon.h");
    let how = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"];
    assert!(Command::new("g++").args(how).arg(header).status().unwrap().success());
}
