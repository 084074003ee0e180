//! Notifies a receiver: over HTTP as JSON, to Alertmanager, to a command, on the desktop.

use crate::http::{Http, HttpOptions};
use crate::notice::Notice;
use crate::settings::{Channel, Receiver};
use anyhow::{Context, bail};
use model::figure::device::PCI_ADDRESS;
use model::{AlertState, Severity, Timestamp};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Delivers notices to one receiver.
pub struct Notifier {
    receiver: Receiver,
    host: String,
    http: Option<Http>,
    /// The group of the command that runs, for whoever has to end it.
    pub running: Arc<AtomicI32>,
}

/// Alertmanager resolves an alert that was not repeated for this long: the service has stopped.
const FORGOTTEN_MS: i64 = 4 * super::queue::REPEAT.as_millis() as i64;
const LONGEST_COMPLAINT: usize = 200;

impl Notifier {
    /// Prepares delivery; `host` is the machine that notices name.
    pub fn new(receiver: &Receiver, host: &str) -> Notifier {
        Notifier { receiver: receiver.clone(), host: host.to_owned(), http: None, running: Arc::default() }
    }

    /// Delivers all notices, or returns the reason. Blocks for as long as the receiver may take. `now` is wall-clock time.
    pub fn notify(&mut self, notices: &[Notice], now: Timestamp, is_test: bool) -> anyhow::Result<String> {
        let result = self.attempt(notices, now, is_test);
        if result.is_err() {
            // A token or a certificate that has changed is read again.
            self.http = None;
        }
        result
    }

    fn attempt(&mut self, notices: &[Notice], now: Timestamp, is_test: bool) -> anyhow::Result<String> {
        let host = self.host.clone();
        match self.receiver.way.clone() {
            Channel::Webhook { url, .. } => {
                let body = message(notices, &host, is_test).to_string();
                let answer = self.http()?.post_json(&url, body.as_bytes())?;
                Ok(first_line(&answer).map_or_else(|| "accepted".into(), |line| format!("accepted: {line}")))
            }
            Channel::Alertmanager { url, .. } => {
                let all: Vec<Value> =
                    notices.iter().map(|notice| for_alertmanager(notice, &host, now, is_test)).collect();
                self.http()?.post_json(&format!("{url}/api/v2/alerts"), Value::from(all).to_string().as_bytes())?;
                Ok("accepted".into())
            }
            Channel::Command { run } => {
                let body = message(notices, &host, is_test).to_string() + "\n";
                self.run(&run, body.as_bytes())?;
                Ok("ended with 0".into())
            }
            Channel::Desktop => {
                for notice in notices {
                    self.run(&notification(notice, is_test), b"")?;
                }
                Ok("shown".into())
            }
        }
    }

    fn http(&mut self) -> anyhow::Result<&Http> {
        let (Channel::Webhook { token_file, ca, .. } | Channel::Alertmanager { token_file, ca, .. }) =
            &self.receiver.way
        else {
            bail!("is not notified over HTTP");
        };
        let http = match self.http.take() {
            Some(http) => http,
            None => {
                let (ca, token_file) = (ca.clone(), token_file.clone());
                Http::new(&HttpOptions { timeout: self.receiver.timeout, ca, token_file, client: None })?
            }
        };
        Ok(self.http.insert(http))
    }

    /// Runs a command without a shell, in a process group of its own. One that takes too long is killed with its group. What has left
    /// the group may keep the pipe open: its end is not waited for.
    fn run(&self, command: &[String], input: &[u8]) -> anyhow::Result<()> {
        let (program, arguments) = command.split_first().context("there is no command")?;
        // A file, unlike a pipe, takes everything at once, whether it is read or not.
        let mut stdin = File::from(memfd_create("alerts", MemfdFlags::CLOEXEC)?);
        stdin.write_all(input)?;
        stdin.rewind()?;
        let mut child = Command::new(program)
            .args(arguments)
            // What systemd wants to know of the service is not for its receivers to say.
            .env_remove("NOTIFY_SOCKET")
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{program} cannot be run"))?;
        let group = Pid::from_child(&child);
        self.running.store(group.as_raw_nonzero().get(), Relaxed);
        let until = Instant::now() + self.receiver.timeout;
        let mut stderr = child.stderr.take();
        if let Some(stderr) = &stderr {
            ioctl_fionbio(stderr, true)?;
        }
        let (mut said, mut pause) = (Vec::new(), Duration::from_millis(1));
        let status = loop {
            let status = child.try_wait()?;
            read_waiting(&mut stderr, &mut said);
            if status.is_some() || Instant::now() >= until {
                break status;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        };
        // What it has left running is ended as well, since nothing else would end it.
        let _ = kill_process_group(group, Signal::KILL);
        self.running.store(0, Relaxed);
        if status.is_none() {
            // One that is stuck in the kernel ends later.
            std::thread::spawn(move || child.wait());
        }
        match status {
            None => bail!("{program} took longer than {} s and was killed", self.receiver.timeout.as_secs()),
            Some(status) if status.success() => Ok(()),
            Some(status) => match first_line(&said) {
                Some(line) => bail!("{program}: {status}: {line}"),
                None => bail!("{program}: {status}"),
            },
        }
    }
}

/// Reads what is there, and keeps the beginning of it. At most what a pipe holds: some never stop writing.
fn read_waiting(pipe: &mut Option<ChildStderr>, said: &mut Vec<u8>) {
    let mut bytes = vec![0; 64 << 10];
    if let Some(Ok(count)) = pipe.as_mut().map(|pipe| pipe.read(&mut bytes)) {
        said.extend(&bytes[..count.min(LONGEST_COMPLAINT - said.len())]);
    }
}

fn first_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = model::text::clean(text.lines().next()?.trim()).chars().take(200).collect::<String>();
    (!line.is_empty()).then_some(line)
}

/// What webhooks and commands receive.
fn message(notices: &[Notice], host: &str, is_test: bool) -> Value {
    json!({ "version": 1, "host": host, "test": is_test, "alerts": notices })
}

/// As the API of Alertmanager wants it, version 2.
fn for_alertmanager(notice: &Notice, host: &str, now: Timestamp, is_test: bool) -> Value {
    let alert = &notice.alert;
    let mut labels = json!({
        "alertname": notice.alertname,
        "severity": alert.severity.name(),
        "host": host,
    });
    let more = [
        ("device", alert.device.clone()),
        (PCI_ADDRESS.name, notice.pci_address.clone()),
        ("pid", alert.process.map(|pid| pid.to_string())),
        ("process", notice.process_name.clone()),
        ("test", is_test.then(|| "true".to_owned())),
    ];
    if let Some(labels) = labels.as_object_mut() {
        // An empty label is none.
        let more = more.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
        labels.extend(more.map(|(name, value)| (name.to_owned(), Value::from(value))));
    }
    let mut annotations = json!({ "summary": format!("{host}: {}", alert.text), "rule": notice.rule });
    if let Some(advice) = &notice.advice {
        annotations["description"] = advice.as_str().into();
    }
    let ends_at = notice.ended_at.unwrap_or(Timestamp(now.0 + FORGOTTEN_MS));
    json!({
        "labels": labels,
        "annotations": annotations,
        "startsAt": notice.started_at,
        "endsAt": ends_at,
    })
}

/// As a desktop shows it.
fn notification(notice: &Notice, is_test: bool) -> Vec<String> {
    let alert = &notice.alert;
    let urgency = match (alert.state, alert.severity) {
        (AlertState::Resolved, _) | (_, Severity::Info) => "low",
        (_, Severity::Warning) => "normal",
        (_, Severity::Critical) => "critical",
    };
    let test = if is_test { "test: " } else { "" };
    let title = format!("{test}{} {}", alert.name, alert.state.name());
    let text = model::text::clean(&alert.text).into_owned();
    // A name that a process has chosen is no option.
    ["notify-send", "--app-name=ttmon", &format!("--urgency={urgency}"), "--", &title, &text]
        .map(str::to_owned)
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::notice;
    use expect_test::expect;

    fn command(run: &[&str], timeout: u64) -> anyhow::Result<String> {
        let way = Channel::Command { run: run.iter().map(|one| (*one).to_owned()).collect() };
        let receiver = Receiver { way, at_least: Severity::Info, timeout: Duration::from_secs(timeout) };
        Notifier::new(&receiver, "here").notify(&[notice("hot", AlertState::Firing)], Timestamp(0), false)
    }

    #[test]
    fn a_webhook_gets_everything() {
        let notices = [notice("hot", AlertState::Resolved)];
        expect![[r#"
            {
              "alerts": [
                {
                  "advice": "Check airflow and fans.",
                  "device": "0",
                  "ended_at": "2026-01-02T03:05:05.000Z",
                  "fingerprint": "hot",
                  "name": "hot",
                  "pci_address": "0000:01:00.0",
                  "process": null,
                  "process_name": null,
                  "rule": "asic_temp > 95% for 30s until asic_temp < 90%",
                  "severity": "warning",
                  "since": "2026-01-02T03:05:05.000Z",
                  "started_at": "2026-01-02T03:04:05.000Z",
                  "state": "resolved",
                  "text": "device 0: it is near its temperature limit (asic_temp 97.5 %)",
                  "value": 97.5
                }
              ],
              "host": "here",
              "test": false,
              "version": 1
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&message(&notices, "here", false)).unwrap());
    }

    #[test]
    fn alertmanager_gets_labels_and_times() {
        let now = Timestamp(1_767_323_050_000);
        let sent = for_alertmanager(&notice("hot", AlertState::Firing), "here", now, true);
        expect![[r#"
            {
              "annotations": {
                "description": "Check airflow and fans.",
                "rule": "asic_temp > 95% for 30s until asic_temp < 90%",
                "summary": "here: device 0: it is near its temperature limit (asic_temp 97.5 %)"
              },
              "endsAt": "2026-01-02T03:08:10.000Z",
              "labels": {
                "alertname": "TtmonHot",
                "device": "0",
                "host": "here",
                "pci_address": "0000:01:00.0",
                "severity": "warning",
                "test": "true"
              },
              "startsAt": "2026-01-02T03:04:05.000Z"
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&sent).unwrap());
    }

    #[test]
    fn a_desktop_shows_words() {
        let sent = notification(&notice("hot", AlertState::Firing), false);
        assert_eq!(sent[2..5], ["--urgency=normal", "--", "hot firing"]);
    }

    #[test]
    fn a_command_reads_the_notice_and_its_error_is_reported() {
        assert_eq!(command(&["sh", "-c", "grep -q '\"fingerprint\":\"hot\"'"], 60).unwrap(), "ended with 0");
        let why = command(&["sh", "-c", "echo no >&2; exit 3"], 60).unwrap_err();
        assert_eq!(format!("{why:#}"), "sh: exit status: 3: no");
        let why = format!("{:#}", command(&["/nowhere/page"], 60).unwrap_err());
        assert!(why.starts_with("/nowhere/page cannot be run: No such file"), "{why}");
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("sleep 1000 & echo $! > {}; wait", folder.path().join("pid").display());
        let why = command(&["sh", "-c", &script], 1).unwrap_err().to_string();
        assert_eq!(why, "sh took longer than 1 s and was killed");
        let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let until = Instant::now() + Duration::from_secs(60);
        while !stat().is_empty() && !stat().contains(") Z ") {
            assert!(Instant::now() < until, "{}", stat());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_child_that_leaves_the_session_holds_up_neither_the_end_nor_the_timeout() {
        let begun = Instant::now();
        assert_eq!(command(&["sh", "-c", "setsid sleep 60 <&0 & sleep 0.5"], 60).unwrap(), "ended with 0");
        let why = command(&["sh", "-c", "setsid sleep 60 <&0 & sleep 1000"], 1).unwrap_err().to_string();
        assert_eq!(why, "sh took longer than 1 s and was killed");
        assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_command_that_says_more_than_a_pipe_holds_is_read_until_its_timeout() {
        let why = command(&["sh", "-c", "echo no >&2; head -c 1000000 /dev/zero >&2; exit 3"], 60).unwrap_err();
        assert_eq!(why.to_string(), "sh: exit status: 3: no");
        assert_eq!(
            command(&["sh", "-c", "yes >&2"], 1).unwrap_err().to_string(),
            "sh took longer than 1 s and was killed"
        );
    }

    #[test]
    fn a_redirected_webhook_has_not_taken_the_alert() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 4096];
                let count = stream.read(&mut request).unwrap();
                let status = if request[..count].starts_with(b"POST /hook") {
                    "302 Found\r\nlocation: /login"
                } else {
                    "200 OK"
                };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let way = Channel::Webhook { url, token_file: None, ca: None };
        let receiver = Receiver { way, at_least: Severity::Info, timeout: Duration::from_secs(60) };
        let notices = [notice("hot", AlertState::Firing)];
        let why = Notifier::new(&receiver, "here").notify(&notices, Timestamp(0), false).unwrap_err().to_string();
        assert_eq!(why, "answered 302 Found: a redirect to /login, which is not followed: use that address");
    }
}
