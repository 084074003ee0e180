//! Other machines over ssh: a real sshd on a loopback port, with keys and a configuration of its own.

use crate::support::service::wait_for;
use crate::support::terminal::Terminal;
use crate::support::{Machine, Run, TTMON, is_root, needs, not_run, run, write_script};
use serde_json::Value;
use sim::tree::Chip;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// An sshd that sees a machine with devices, and a user's own ssh that finds the way to it.
struct Far {
    folder: TempDir,
    _machine: Machine,
    sshd: Child,
}

impl Far {
    /// Nothing where this cannot run.
    fn start(test: &str, chips: &[Chip]) -> Option<Far> {
        if !is_root() {
            not_run(test, "an sshd of its own needs root");
            return None;
        }
        if !needs::has(test, &["sshd"]) {
            return None;
        }
        let (folder, machine) = (tempfile::tempdir().unwrap(), Machine::with(chips));
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for key in ["host", "key", "other"] {
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]).status();
            assert!(made.unwrap().success());
        }
        std::fs::copy(path("key.pub"), path("authorized")).unwrap();
        for name in ["far-bin", "far-tmp", "bin"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let sshd = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n\
             SetEnv PATH={}:/usr/bin:/bin TMPDIR={}\n",
            path("host"),
            path("authorized"),
            path("far-bin"),
            path("far-tmp"),
        );
        std::fs::write(path("sshd_config"), sshd).unwrap();
        let public = std::fs::read_to_string(path("host.pub")).unwrap();
        std::fs::write(path("known"), format!("[127.0.0.1]:{port} {public}")).unwrap();
        let ssh = format!(
            "Host stranger\n  IdentityFile {}\nHost unknown\n  UserKnownHostsFile /dev/null\n\
             Host !stranger *\n  IdentityFile {}\n\
             Host *\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
             UserKnownHostsFile {}\n  StrictHostKeyChecking yes\n",
            path("other"),
            path("key"),
            path("known"),
        );
        std::fs::write(path("ssh_config"), ssh).unwrap();
        // The user's own ssh, with the user's own configuration.
        let wrapper = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", path("ssh_config"));
        write_script(&wrapper, Path::new(&path("bin/ssh")));
        std::fs::create_dir_all("/run/sshd").unwrap();
        // Whoever comes in sees the machine's devices at their usual place.
        let see =
            format!("mount --bind {}/sys /sys && exec /usr/sbin/sshd -D -e -f {}", machine.root(), path("sshd_config"));
        let log = std::fs::File::create(path("log")).unwrap();
        let sshd = Command::new("unshare").args(["--mount", "sh", "-c", &see]).stdin(Stdio::null()).stderr(log).spawn();
        let far = Far { folder, _machine: machine, sshd: sshd.unwrap() };
        wait_for(|| far.log().contains("listening"), || far.log());
        Some(far)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Installs ttmon on the far side.
    fn install(&self) {
        std::os::unix::fs::symlink(TTMON, self.folder.path().join("far-bin/ttmon")).unwrap();
    }

    fn path(&self) -> String {
        format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap())
    }

    fn ttmon(&self, arguments: &[&str]) -> Run {
        run(Command::new(TTMON).args(arguments).env("PATH", self.path()))
    }

    /// Those who serve a connection, and all that they have started.
    fn sessions(&self) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::new();
        let mut next = vec![self.sshd.id()];
        while let Some(pid) = next.pop() {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            let children: Vec<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            all.extend(&children);
            next.extend(children);
        }
        all
    }

    /// Nothing of ours is left on the far side.
    fn await_nothing_left(&self) {
        wait_for(|| self.sessions().is_empty(), || format!("left behind: {:?}", self.sessions()));
        let files = std::fs::read_dir(self.folder.path().join("far-tmp")).unwrap().count();
        assert_eq!(files, 0, "files on the far side");
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        if std::thread::panicking() {
            eprintln!("sshd said:\n{}", self.log());
        }
    }
}

#[test]
fn machines_are_shown_over_ssh_and_nothing_stays_there() {
    let Some(far) = Far::start("smi over ssh", &[Chip::p150a(0), Chip::p150a(1)]) else { return };
    let missing = far.ttmon(&["smi", "--ssh", "lab-7"]);
    assert_eq!(missing.code, Some(7), "{}", missing.err);
    assert_eq!(missing.err, "error: lab-7: ttmon is not installed there: --push copies it\n");
    far.install();
    let one = far.ttmon(&["smi", "--json", "--ssh", "lab-7"]);
    let json: Value = serde_json::from_str(&one.out).unwrap_or_else(|error| panic!("{error}: {} {}", one.out, one.err));
    assert_eq!((one.code, json["devices"].as_array().unwrap().len()), (Some(0), 2));
    let two = far.ttmon(&["smi", "--ssh", "lab-7,root@lab-8,stranger,unknown"]);
    assert_eq!(two.code, Some(7), "{}", two.err);
    assert!(two.out.contains("2 of 4 machines answer   4 of 4 devices ok"), "{}", two.out);
    let json: Value = serde_json::from_str(&far.ttmon(&["smi", "--json", "--ssh", "stranger,unknown"]).out).unwrap();
    let reason = |n: usize| json["hosts"][n]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason(0).contains("Permission denied") && reason(0).contains("a key is needed"), "{}", reason(0));
    assert!(reason(1).contains("Host key verification failed") && reason(1).contains("go there once"), "{}", reason(1));
    let mem = far.ttmon(&["mem", "--once", "--ssh", "lab-7"]);
    assert!(mem.code == Some(0) && mem.out.contains("p150a"), "{} {}", mem.out, mem.err);
    far.await_nothing_left();
}

#[test]
fn a_machine_without_ttmon_gets_it_for_the_time_being() {
    let Some(far) = Far::start("--push", &[Chip::p150a(0)]) else { return };
    let run = far.ttmon(&["smi", "--json", "-c", "3", "--loop-ms", "50", "--ssh", "lab-7", "--push"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.out.lines().count(), 3);
    for line in run.out.lines() {
        let json: Value = serde_json::from_str(line).unwrap();
        assert_eq!(json["devices"].as_array().unwrap().len(), 1);
    }
    far.await_nothing_left();
    // Somebody else's machine, and one that damages what arrives.
    let fake = |name: &str, script: &str| {
        write_script(&format!("#!/bin/sh\n{script}\n"), &far.folder.path().join("far-bin").join(name));
    };
    fake("uname", "[ \"$1\" = -s ] && echo Linux || echo riscv64");
    let other = far.ttmon(&["smi", "--ssh", "lab-7", "--push"]);
    assert_eq!(other.code, Some(7));
    assert!(other.err.contains("it is \"Linux riscv64\", and this ttmon is for Linux"), "{}", other.err);
    std::fs::remove_file(far.folder.path().join("far-bin/uname")).unwrap();
    fake("head", "/usr/bin/head -c 1000");
    let cut = far.ttmon(&["smi", "--ssh", "lab-7", "--push"]);
    assert!(cut.err.contains("did not arrive as a whole"), "{}", cut.err);
    fake("head", "/usr/bin/head \"$@\" | tr a b");
    let damaged = far.ttmon(&["smi", "--ssh", "lab-7", "--push"]);
    assert!(damaged.err.contains("arrived damaged"), "{}", damaged.err);
    far.await_nothing_left();
}

#[test]
fn the_monitor_watches_over_ssh_and_calls_again_when_it_is_cut_off() {
    let Some(far) = Far::start("top over ssh", &[Chip::p150a(0), Chip::p150a(1)]) else { return };
    far.install();
    let path = far.path();
    let start = |arguments: &[&str]| {
        Terminal::start_with(arguments, 160, 30, |command| {
            command.env("PATH", &path);
        })
    };
    let mut terminal = start(&["top", "--ssh", "lab-7,lab-8,stranger"]);
    terminal.await_text("4/4 devices ok");
    let text = terminal.await_text("Permission denied");
    assert!(text.contains("2 answer"), "{text}");
    // One of the connections is cut off.
    let sessions = far.sessions();
    let process = rustix::process::Pid::from_raw(sessions[0] as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    terminal.await_text("1 answer");
    terminal.await_text("2 answer");
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
    far.await_nothing_left();
}
