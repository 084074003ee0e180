//! A machine on which `ttmon` is started over the user's own ssh. Nothing listens on a port there.
//!
//! Runs `ssh HOST ttmon smi --json --loop-ms N` and reads a snapshot a line. It ends with us: ssh is killed, and the other side ends when
//! its output is closed.

use super::http::read;
use super::push;
use super::watcher::{FleetState, NextStep};
use show::text::clean;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A longer line is no snapshot.
const LONGEST: u64 = 64 << 20;
/// So many lines of greetings are read over.
pub const GREETINGS: usize = 200;

/// A connection that has lasted so long has worked.
const WORKED: Duration = Duration::from_secs(10);
/// How long ssh may take to end once it has nothing more to say.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Starts it, reads, and starts it again when it ends, until the watcher ends.
pub fn follow(fleet: &FleetState, at: usize, host: &str, push: bool) {
    let mut failures = 0;
    loop {
        let began = Instant::now();
        fleet.failed(at, run(fleet, at, host, push));
        // One that has worked for a while is called again soon.
        failures = if began.elapsed() > WORKED { 1 } else { failures + 1 };
        if fleet.rest(Some(at), failures) == NextStep::End {
            return;
        }
    }
}

/// Runs until it ends, and returns why.
fn run(fleet: &FleetState, at: usize, host: &str, push: bool) -> String {
    let interval = fleet.interval();
    let mut command = ssh(host);
    command.arg(if push { push::script(interval) } else { watching("ttmon", interval) });
    let child = command.stdin(if push { Stdio::piped() } else { Stdio::null() }).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return "ssh not found: install the OpenSSH client".into();
        }
        Err(error) => return format!("ssh cannot be started: {error}"),
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    if let Err(mut child) = fleet.keep_child(at, child) {
        let _ = child.kill();
        let _ = child.wait();
        return "it is over".into();
    }
    let last_words = stderr.and_then(|stderr| last_line(stderr).ok());
    let mut stdout =
        BufReader::new(stdout.into_iter().fold(Box::new(io::empty()) as Box<dyn Read>, |_, out| Box::new(out)));
    let pushed = stdin.map_or(Ok(()), |stdin| push::send(&mut stdout, stdin));
    let result = pushed.and_then(|()| listen(fleet, at, &mut stdout));
    if result.as_ref().is_err_and(String::is_empty) {
        // The other side has a reason of its own, and is about to print it.
        let _ = io::copy(&mut stdout.by_ref().take(1 << 20), &mut io::sink());
    }
    let status = fleet.take_child(at).and_then(last_words_of);
    let said = last_words.and_then(|thread| thread.join().ok()).flatten();
    match result {
        Err(own) if !own.is_empty() => own,
        _ => reason(host, said, status, push),
    }
}

/// How it has ended. It has a moment for that; then it is killed.
fn last_words_of(mut child: Child) -> Option<ExitStatus> {
    let until = Instant::now() + LAST_WORDS;
    while Instant::now() < until {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().ok()
}

/// The user's own ssh, with the user's own configuration. It asks nothing: the terminal is not its own.
fn ssh(host: &str) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
    // A connection that broke silently is noticed.
    command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
    command.args(["--", host]).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C and Ctrl-Z are for us alone.
    command.process_group(0);
    command
}

/// What runs on the other side.
pub fn watching(program: &str, interval: Duration) -> String {
    format!("{program} smi --json --loop-ms {}", interval.as_millis().max(10))
}

/// Reads snapshots until there are no more.
fn listen(fleet: &FleetState, at: usize, stdout: &mut impl BufRead) -> Result<(), String> {
    let (mut line, mut greetings) = (Vec::new(), 0);
    loop {
        line.clear();
        let read_bytes = stdout.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        if !matches!(read_bytes, Ok(1..)) {
            return Ok(());
        }
        if line.first() != Some(&b'{') {
            // A login shell may say hello.
            greetings += 1;
            if greetings > GREETINGS {
                return Err("prints something, but no snapshots".into());
            }
            continue;
        }
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        match read(&line) {
            Ok(snapshot) => fleet.answered(at, Some(snapshot), None),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// The last line of what ssh and the other side print to standard error.
fn last_line(stderr: ChildStderr) -> io::Result<JoinHandle<Option<String>>> {
    let read = move || {
        let (mut reader, mut line, mut last) = (BufReader::new(stderr), Vec::new(), None);
        while let Ok(1..) = reader.by_ref().take(4096).read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line);
            let text = clean(text.trim()).into_owned();
            last = Some(text).filter(|text| !text.is_empty()).or(last);
            line.clear();
        }
        last
    };
    std::thread::Builder::new().name("ttmon-stderr".into()).stack_size(128 << 10).spawn(read)
}

/// Why it has ended, and what to do.
fn reason(host: &str, said: Option<String>, status: Option<ExitStatus>, push: bool) -> String {
    let said = said.map(|said| said.trim_start_matches("error: ").to_owned());
    let code = status.and_then(|status| status.code());
    match (code, said) {
        (Some(127), _) if !push => "ttmon is not installed there: --push copies it".into(),
        (Some(255), Some(said)) if said.contains("Permission denied") => {
            format!("{said}: a key is needed, since passwords are not asked for here (try `ssh {host} true`)")
        }
        (Some(255), Some(said)) if said.contains("Host key verification failed") => {
            format!("{said}: go there once with `ssh {host}`")
        }
        (_, Some(said)) => said,
        (Some(0) | None, None) => "the connection has ended".into(),
        (Some(code), None) => format!("ssh has ended with code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn the_reason_says_what_to_do() {
        let said = |code: i32, text: &str, push| {
            let text = Some(text.to_owned()).filter(|text| !text.is_empty());
            reason("lab-7", text, Some(ExitStatus::from_raw(code << 8)), push)
        };
        assert_eq!(
            said(127, "bash: ttmon: command not found", false),
            "ttmon is not installed there: --push copies it"
        );
        assert_eq!(
            said(255, "me@lab-7: Permission denied (publickey).", false),
            "me@lab-7: Permission denied (publickey).: a key is needed, since passwords are not asked for here (try `ssh lab-7 true`)"
        );
        assert_eq!(said(255, "ssh: Could not resolve hostname lab-7", false), "ssh: Could not resolve hostname lab-7");
        assert_eq!(
            said(9, "error: the tenstorrent driver is not loaded", true),
            "the tenstorrent driver is not loaded"
        );
        assert_eq!(said(0, "", false), "the connection has ended");
        assert_eq!(said(3, "", false), "ssh has ended with code 3");
    }
}
