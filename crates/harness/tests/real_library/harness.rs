//! A running harness.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::cluster::Cluster;

/// It is killed if the test fails.
pub struct Harness {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Harness {
    pub fn shm(ttnn: &Path) -> Harness {
        Harness::start(Command::new(BINARY).arg("shm").arg(ttnn.join("build/lib/libtt_metal.so")))
    }

    /// Device 0 of a cluster.
    pub fn mock(ttnn: &Path, cluster: &Cluster) -> Harness {
        Harness::start(Command::new(BINARY).arg("mock").arg(ttnn).arg(cluster.path()))
    }

    /// A mesh of ROWSxCOLUMNS devices.
    pub fn mesh(ttnn: &Path, cluster: &Cluster, shape: &str) -> Harness {
        Harness::start(Command::new(BINARY).arg("mock").arg(ttnn).arg(cluster.path()).arg(shape))
    }

    fn start(command: &mut Command) -> Harness {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut harness = Harness { child, stdin, stdout };
        assert_eq!(harness.line(), format!("READY {}", harness.pid()));
        harness
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The reply, which is empty if there is none.
    pub fn ask(&mut self, command: &str) -> String {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
        self.line()
    }

    pub fn ok(&mut self, command: &str) {
        assert_eq!(self.ask(command), "OK", "{command}");
    }

    /// The number behind `name=` in the reply.
    pub fn value(&mut self, command: &str, name: &str) -> u64 {
        let reply = self.ask(command);
        let values = reply.strip_prefix("OK ").unwrap_or_else(|| panic!("{command}: {reply}"));
        let value = values.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {name} in {reply}")).parse().unwrap()
    }

    /// The bytes that the allocator has given out in each bank.
    pub fn allocated(&mut self, kind: &str) -> u64 {
        self.value(&format!("stats {kind}"), "allocated")
    }

    pub fn end_input(&mut self) {
        drop(self.stdin.take());
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BINARY: &str = env!("CARGO_BIN_EXE_ttmetal-harness");
