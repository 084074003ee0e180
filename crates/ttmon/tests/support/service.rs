//! A real `ttmon serve`, and clients of both its sockets.

use super::{Machine, TTMON};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A service on a machine of its own, killed when dropped.
pub struct Service {
    pub machine: Machine,
    pub folder: TempDir,
    pub child: Child,
    /// Which version it speaks, or will when it is started again.
    pub version: u32,
}

impl Service {
    pub fn start(machine: Machine) -> Service {
        Service::start_with(machine, &[])
    }

    pub fn start_with(machine: Machine, options: &[&str]) -> Service {
        Service::start_in(tempfile::tempdir().unwrap(), machine, options)
    }

    /// In a folder that agents know already.
    pub fn start_in(folder: TempDir, machine: Machine, options: &[&str]) -> Service {
        Service::start_speaking(ledger::wire::VERSION, folder, machine, options)
    }

    /// One that speaks another version.
    pub fn start_speaking(version: u32, folder: TempDir, machine: Machine, options: &[&str]) -> Service {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let child = spawn(version, &machine, folder.path(), options);
        let service = Service { machine, folder, child, version };
        service.await_ready(1);
        service
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("ttmon.sock")
    }

    pub fn poc_socket(&self) -> PathBuf {
        self.folder.path().join("poc.sock")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Kills it, and starts another in its place.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        let ready = self.log().matches("event=ready").count();
        self.child = spawn(self.version, &self.machine, self.folder.path(), &[]);
        self.await_ready(ready + 1);
    }

    fn await_ready(&self, times: usize) {
        wait_for(|| self.log().matches("event=ready").count() == times, || self.log());
    }

    /// Ends it as systemd would.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap()
    }

    /// The process that serves: a child of the one that was started.
    pub fn pid(&self) -> u32 {
        super::harness::only_child(self.child.id()).unwrap()
    }

    /// Ends it at once, unless it has ended.
    pub fn kill(&mut self) {
        if self.child.try_wait().unwrap().is_some() {
            return;
        }
        self.signal(rustix::process::Signal::KILL);
        // The process that was started has stopped with it, if it was stopped.
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::CONT);
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// How many files it has open, and how many kB of memory of its own.
    pub fn cost(&self) -> (usize, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        (self.open_files().len(), anonymous.trim().trim_end_matches(" kB").parse().unwrap())
    }

    /// All but the files of the machine's devices, which stay open from one sample to the next.
    pub fn open_files(&self) -> Vec<String> {
        let folder = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let name = |path: PathBuf| std::fs::read_link(path).unwrap_or_default().display().to_string();
        let is_of_machine = |name: &String| name.starts_with(self.machine.root());
        folder.map(|entry| name(entry.unwrap().path())).filter(|name| !is_of_machine(name)).collect()
    }

    pub fn native(&self) -> Native {
        let mut native = Native(UnixStream::connect(self.socket()).unwrap());
        let hello = native.ask(json!({"hello": {"version": self.version, "program": "this test"}}));
        assert_eq!(hello["hello"]["version"], self.version, "{hello}");
        native
    }

    pub fn snapshot(&self) -> Value {
        self.native().ask(json!({"snapshot": {}}))["snapshot"].clone()
    }

    /// Lets these processes hold device `n`, and waits for a sample that has them.
    pub fn hold(&self, n: u32, pids: &[u32]) {
        self.machine.set_pids(n, pids);
        let holds = |snapshot: &Value, pid: &u32| {
            let processes = snapshot["processes"].as_array().unwrap();
            let id = n.to_string();
            let has = |held: &Value| held["id"].as_str() == Some(&id) && held["source"] != "unverified";
            let mut process = processes.iter().filter(|process| process["pid"] == *pid);
            process.any(|process| process["devices"].as_array().unwrap().iter().any(has))
        };
        let all = || pids.iter().all(|pid| holds(&self.snapshot(), pid));
        wait_for(all, || self.snapshot()["processes"].to_string());
    }

    pub fn deaths(&self) -> Vec<Value> {
        self.native().ask(json!({"deaths": {}}))["deaths"].as_array().unwrap().clone()
    }

    /// The latest exit, as soon as there is one: another thread of the service makes the record.
    pub fn death(&self) -> Value {
        wait_for(|| !self.deaths().is_empty(), || self.log());
        self.deaths()[0].clone()
    }

    pub fn python(&self) -> Poc {
        Poc::start(&[], &["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/client.py")], &self.poc_socket())
    }

    pub fn c(&self) -> Poc {
        Poc::start(&[], &[c_client().to_str().unwrap()], &self.poc_socket())
    }

    /// Inside of whatever `wrapper` makes, and from where any user may run it.
    pub fn c_in(&self, wrapper: &[&str]) -> Poc {
        let program = self.folder.path().join("client");
        if !program.exists() {
            // Not by ourselves: a child of another thread would have the new file open for writing, and it could not be run.
            assert!(Command::new("cp").arg(c_client()).arg(&program).status().unwrap().success());
        }
        Poc::start(wrapper, &[program.to_str().unwrap()], &self.poc_socket())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the service said:\n{}", self.log());
        }
    }
}

fn spawn(version: u32, machine: &Machine, folder: &Path, options: &[&str]) -> Child {
    let log = std::fs::File::options().append(true).create(true).open(folder.join("log")).unwrap();
    Command::new(TTMON)
        .args(["serve", "--root", machine.root()])
        .arg("--socket")
        .arg(folder.join("ttmon.sock"))
        .arg("--poc-socket")
        .arg(folder.join("poc.sock"))
        .args(if options.contains(&"--listen") { &[][..] } else { &["--listen", "off"] })
        .args(options)
        .env_remove("JOURNAL_STREAM")
        .env("TTMON_WIRE_VERSION", version.to_string())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Waits for what must come true within a generous time.
pub fn wait_for(mut what: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    let until = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < until, "{}", otherwise());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection to the service's own socket.
pub struct Native(pub UnixStream);

impl Native {
    pub fn ask(&mut self, request: Value) -> Value {
        self.tell(&request);
        self.hear().expect("an answer")
    }

    pub fn tell(&mut self, request: &Value) {
        let text = request.to_string();
        let frame = [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
        self.0.write_all(&frame).unwrap();
    }

    /// The next frame, or `None` at the end.
    pub fn hear(&mut self) -> Option<Value> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut text).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }
}

/// A client of the proof of concept, killed when dropped.
pub struct Poc {
    pub child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// As the host counts.
    pub pid: u32,
    /// As it counts itself.
    pub inner_pid: u32,
}

impl Poc {
    pub fn start(wrapper: &[&str], program: &[&str], socket: &Path) -> Poc {
        let words = [wrapper, program].concat();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .arg(socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let inner_pid = ready.trim().strip_prefix("READY ").unwrap_or_else(|| panic!("{ready:?}")).parse().unwrap();
        let pid = super::harness::only_child(child.id()).unwrap_or(child.id());
        Poc { child, stdin, stdout, pid, inner_pid }
    }

    /// Has a command done, and returns the numbers of the answer.
    pub fn ask(&mut self, command: &str) -> Vec<u64> {
        self.tell(command);
        self.reply()
    }

    pub fn tell(&mut self, command: &str) {
        writeln!(self.stdin, "{command}").unwrap();
    }

    pub fn reply(&mut self) -> Vec<u64> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let numbers = line.trim().strip_prefix("OK").unwrap_or_else(|| panic!("{line:?}"));
        numbers.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Poc {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client in C, built once for each program of tests.
pub fn c_client() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (program, new) = (folder.join("poc-client"), folder.join(format!("poc-client-{}", std::process::id())));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/client.c");
        let built = Command::new("cc").args(["-O1", "-Wall", "-Werror", "-o"]).arg(&new).arg(source).status().unwrap();
        assert!(built.success());
        // Another program of tests may be running it.
        std::fs::rename(new, &program).unwrap();
        program
    })
}
