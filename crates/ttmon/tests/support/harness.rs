//! Processes that drive the real tt-metal, or keep a book without it.

use super::{TTMON, is_root, not_run};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A `ttmetal-harness`, killed when dropped.
pub struct Harness {
    pub child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// As the host counts.
    pub pid: u32,
    /// As it counts itself.
    pub inner_pid: u32,
}

/// A program that was built beside this one.
pub fn built(name: &str) -> PathBuf {
    let path = Path::new(TTMON).with_file_name(name);
    assert!(path.exists(), "build it first: cargo build --workspace");
    path
}

impl Harness {
    /// Starts one, inside of whatever `wrapper` makes.
    pub fn start(wrapper: &[&str], arguments: &[&str], environment: &[(&str, &str)]) -> Harness {
        Harness::start_program(&built("ttmetal-harness"), wrapper, arguments, environment)
    }

    /// The same with a copy of the program in another place.
    pub fn start_program(
        program: &Path,
        wrapper: &[&str],
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Harness {
        let words: Vec<&str> =
            wrapper.iter().copied().chain([program.to_str().unwrap()]).chain(arguments.iter().copied()).collect();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let inner_pid = ready.trim().strip_prefix("READY ").unwrap_or_else(|| panic!("{ready:?}")).parse().unwrap();
        // A wrapper either becomes the program or has it as its only child.
        let pid = only_child(child.id()).unwrap_or(child.id());
        Harness { child, stdin, stdout, pid, inner_pid }
    }

    pub fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.reply()
    }

    /// Sends a command whose reply is read later, or never comes.
    pub fn tell(&mut self, command: &str) {
        writeln!(self.stdin, "{command}").unwrap();
    }

    pub fn reply(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn ok(&mut self, command: &str) {
        assert_eq!(self.ask(command), "OK", "{command}");
    }

    /// The number behind `key=` in the reply to a command.
    pub fn number(&mut self, command: &str, key: &str) -> u64 {
        number(&self.ask(command), key)
    }
}

/// The number behind `key=` in a reply.
pub fn number(reply: &str, key: &str) -> u64 {
    let value = reply.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{key} in {reply:?}"))
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn only_child(pid: u32) -> Option<u32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?.trim().parse().ok()
}

pub fn needs_root(test: &str) -> bool {
    if !is_root() {
        not_run(test, "namespaces and other users need root");
    }
    is_root()
}
