//! Operations of the real ttnn on a mock cluster: every launch is in the book, with its name, as the program counts them itself.

use crate::harness::{books, built, cluster, python, wheel_076, wheels};
use ledger::book;
use ledger::book::activity::{self, NoRecords, NotKnown, monotonic};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A root of tt-metal with a cache of kernels.
struct Ttnn {
    wheel: PathBuf,
    python: PathBuf,
    root: TempDir,
}

/// A program that did its work, and waits.
struct Program {
    child: Child,
    pid: u32,
    done: BTreeMap<String, u64>,
}

impl Ttnn {
    fn lay(wheel: &Path, python: &Path) -> Ttnn {
        let root = tempfile::tempdir().unwrap();
        let laid = Command::new(built("ttmetal-harness")).arg("root").args([wheel, root.path()]).status().unwrap();
        assert!(laid.success());
        Ttnn { wheel: wheel.into(), python: python.into(), root }
    }

    fn start(&self, cluster_file: &str, arguments: &str) -> Child {
        self.start_with("LD_PRELOAD", cluster_file, arguments)
    }

    /// The agent is loaded by the loader, or by the program itself (`AGENT`).
    fn start_with(&self, loaded_by: &str, cluster_file: &str, arguments: &str) -> Child {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent/operations.py");
        let scratch = self.root.path().join("scratch");
        Command::new(&self.python)
            .arg("-B")
            .arg(program)
            .args(arguments.split_whitespace())
            .current_dir(&scratch)
            .env("PYTHONPATH", self.wheel.parent().unwrap())
            .env("TT_METAL_MOCK_CLUSTER_DESC_PATH", cluster(cluster_file))
            .envs([("TT_METAL_RUNTIME_ROOT", self.root.path()), ("TT_METAL_HOME", self.root.path())])
            .envs([("TT_METAL_CACHE", &scratch), ("TMPDIR", &scratch), ("OMPI_MCA_btl_sm_backing_directory", &scratch)])
            .envs([("TT_METAL_SHM_TRACKING_DISABLED", "1"), ("TT_LOGGER_LEVEL", "error"), ("LOGURU_LEVEL", "ERROR")])
            .env(loaded_by, built("libttmon_agent.so"))
            .env("TTMON_BOOK_SOCKET", "")
            .env_remove("TTMON_AGENT")
            .env_remove("TT_METAL_INSPECTOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if std::env::var_os("TTMON_TEST_STDERR").is_some() { Stdio::inherit() } else { Stdio::null() })
            .spawn()
            .unwrap()
    }
}

impl Program {
    fn when_done(mut child: Child) -> Program {
        let mut line = String::new();
        // The library prints as well.
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !line.starts_with('{') {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the program ended: set TTMON_TEST_STDERR to see why");
        }
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        let done = serde_json::from_value(told["done"].clone()).unwrap();
        Program { child, pid: told["pid"].as_u64().unwrap() as u32, done }
    }

    /// Compares the book with the program's own list.
    fn assert_recorded(mut self, chips: usize) {
        let file = books(self.pid).remove(0).into_file();
        let read = book::read(book::of_file(&file)).unwrap();
        let now = monotonic();
        let found = activity::activity(book::of_file(&file), &read, now).unwrap().unwrap();
        let operations = activity::operations(book::of_file(&file), &found, now).unwrap();
        let launches: BTreeMap<_, _> = operations.iter().map(|it| (it.name.clone(), it.launches)).collect();
        assert_eq!(launches, self.done);
        let all: u64 = self.done.values().sum();
        assert_eq!((found.launches.launches, found.launches.programs, found.launches.finished), (all, all, all));
        assert!(found.launches.waits > 0 && found.launches.waiting_since == 0);
        assert_eq!(read.chips.len(), chips);
        // A mock has no profiler, and the chips say so.
        let unknown = NotKnown::NoRecords(NoRecords::Inactive);
        assert!(found.chips.iter().all(|chip| chip.utilization(now) == Err(unknown)), "{found:#?}");
        assert_eq!((read.remark, read.is_inexact), (None, false));
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn every_launch_is_in_the_book(wheel: &Path) {
    let Some(python) = python() else { return };
    let ttnn = Ttnn::lay(wheel, &python);
    Program::when_done(ttnn.start("n150.yaml", "1 1 50 1")).assert_recorded(1);
    let two = [("LD_PRELOAD", "1 1 30 2"), ("AGENT", "1 1 17 1")];
    let two = two.map(|(loaded_by, arguments)| ttnn.start_with(loaded_by, "n150.yaml", arguments));
    two.map(Program::when_done).into_iter().for_each(|program| program.assert_recorded(1));
    Program::when_done(ttnn.start("n300.yaml", "1 2 10 2")).assert_recorded(2);
    Program::when_done(ttnn.start("t3k.yaml", "2 4 10 1")).assert_recorded(8);
}

#[test]
fn every_launch_of_the_newest_release_and_of_078_is_in_the_book_with_its_name() {
    wheels().iter().for_each(|wheel| every_launch_is_in_the_book(wheel));
}

#[test]
fn every_launch_of_076_is_in_the_book_with_its_name() {
    wheel_076().iter().for_each(|wheel| every_launch_is_in_the_book(wheel));
}
