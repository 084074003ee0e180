//! Alerts from end to end: real services, receivers that fail, hang, refuse and recover, and the real Alertmanager.

use crate::support::service::{Service, wait_for};
use crate::support::{Machine, TTMON, needs, run, ttmon};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a receiver behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Take,
    Fail,
    /// Takes everything and says nothing.
    Hang,
}

/// A receiver of webhooks.
#[derive(Clone)]
struct Hook {
    address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    /// What it has taken.
    heard: Arc<Mutex<Vec<Value>>>,
    tries: Arc<Mutex<usize>>,
}

impl Hook {
    fn start(mood: Mood) -> Hook {
        Hook::listen("127.0.0.1:0".parse().unwrap(), mood)
    }

    fn listen(address: SocketAddr, mood: Mood) -> Hook {
        let listener = TcpListener::bind(address).unwrap();
        let hook = Hook {
            address: listener.local_addr().unwrap(),
            mood: Arc::new(Mutex::new(mood)),
            heard: Arc::default(),
            tries: Arc::default(),
        };
        let inner = hook.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let inner = inner.clone();
                std::thread::spawn(move || inner.answer(stream));
            }
        });
        hook
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line).unwrap_or(0) > 0 && line != "\r\n" {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        *self.tries.lock().unwrap() += 1;
        let mood = *self.mood.lock().unwrap();
        let status = match mood {
            Mood::Take => "200 OK",
            Mood::Fail => "500 Oh No",
            Mood::Hang => {
                std::thread::sleep(Duration::from_secs(600));
                return;
            }
        };
        if mood == Mood::Take {
            self.heard.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
        }
        let _ = stream
            .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 3\r\nconnection: close\r\n\r\nso\n").as_bytes());
    }

    fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn tries(&self) -> usize {
        *self.tries.lock().unwrap()
    }

    /// Name and state of everything that it has taken.
    fn told(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let all = heard.iter().flat_map(|message| message["alerts"].as_array().unwrap().clone());
        all.map(|alert| format!("{} {}", alert["name"].as_str().unwrap(), alert["state"].as_str().unwrap())).collect()
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }
}

/// A port that nobody listens at.
fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn get(address: SocketAddr, path: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn machine() -> Machine {
    Machine::with(&[Chip::p150a(0)])
}

fn set_temperature(machine: &Machine, celsius: u32) {
    let folder = machine.0.path().join("sys/class/tenstorrent/tenstorrent!0/device/hwmon");
    let hwmon = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let file = hwmon.join("temp1_input");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(file, format!("{}\n", celsius * 1000)).unwrap();
}

fn config(folder: &Path, receivers: &str) -> PathBuf {
    let file = folder.join("config.toml");
    let rules = "
        [serve]
        interval_ms = 100
        [alerts]
        built_in = false
        [[alert]]
        name = \"hot\"
        when = \"asic_temp > 85 for 300ms until asic_temp < 80\"
        severity = \"critical\"
    ";
    std::fs::write(&file, format!("{rules}\n{receivers}")).unwrap();
    file
}

fn start(file: &Path) -> Service {
    let machine = machine();
    set_temperature(&machine, 50);
    Service::start_with(machine, &["--config", file.to_str().unwrap()])
}

#[test]
#[ignore = "long"]
fn nothing_is_lost_on_receivers_that_fail_hang_or_refuse_and_none_waits_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let (failing, hanging, late) = (Hook::start(Mood::Fail), Hook::start(Mood::Hang), free_port());
    let told = folder.path().join("told");
    let receivers = format!(
        "[[alerts.webhook]]\nurl = \"{}\"\n[[alerts.webhook]]\nurl = \"{}\"\ntimeout = \"1s\"\n\
         [[alerts.webhook]]\nurl = \"http://{late}/\"\n[[alerts.command]]\nrun = [\"tee\", \"-a\", \"{}\"]\n",
        failing.url(),
        hanging.url(),
        told.display()
    );
    let service = start(&config(folder.path(), &receivers));
    set_temperature(&service.machine, 90);
    let read = || std::fs::read_to_string(&told).unwrap_or_default();
    // The command hears at once, whatever the others do.
    wait_for(|| read().contains("\"state\":\"firing\""), || service.log());
    wait_for(|| failing.tries() >= 2 && hanging.tries() >= 1, || service.log());
    assert_eq!(failing.told(), [""; 0]);
    failing.set(Mood::Take);
    wait_for(|| failing.told() == ["hot firing"], || service.log());
    // Within its hysteresis nothing changes.
    set_temperature(&service.machine, 82);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(service.snapshot()["alerts"][0]["name"], "hot", "{}", service.log());
    set_temperature(&service.machine, 70);
    wait_for(|| failing.told() == ["hot firing", "hot resolved"], || service.log());
    // What began and ended while nobody listened is told as both, once.
    let late = Hook::listen(late, Mood::Take);
    hanging.set(Mood::Take);
    wait_for(|| late.told() == ["hot resolved"] && hanging.told() == ["hot resolved"], || service.log());
    let heard = late.heard.lock().unwrap()[0]["alerts"][0].clone();
    assert!(heard["started_at"].as_str() < heard["ended_at"].as_str(), "{heard}");
    assert_eq!((&heard["device"], &heard["severity"]), (&json!("0"), &json!("critical")));
    assert_eq!(service.snapshot()["alerts"], Value::Null);
    assert_eq!(read().lines().count(), 2, "{}", read());
    assert!(service.log().contains("event=delivered-again"), "{}", service.log());
    let failed = service.log().matches("event=not-delivered").count();
    assert!(failed < 40, "retries come further and further apart: {failed}");
}

#[test]
fn rules_and_receivers_are_read_again_and_the_service_tells_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let first = Hook::start(Mood::Take);
    let file = config(folder.path(), &format!("[[alerts.webhook]]\nurl = \"{}\"\n", first.url()));
    let machine = machine();
    set_temperature(&machine, 50);
    let service = Service::start_with(machine, &["--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    set_temperature(&service.machine, 90);
    wait_for(|| first.told() == ["hot firing"], || service.log());
    let log = service.log();
    let address = log.split("address=").nth(1).unwrap().split_whitespace().next().unwrap();
    let alerts = get(address.parse().unwrap(), "/api/v1/alerts");
    let alert = &alerts["alerts"][0];
    assert_eq!((&alert["name"], &alert["state"], &alert["device"]), (&json!("hot"), &json!("firing"), &json!("0")));
    assert_eq!((&alert["value"], &alert["process"]), (&json!(90.0), &Value::Null));
    assert_eq!(get(address.parse().unwrap(), "/api/v1/snapshot")["alerts"][0]["name"], "hot");
    let socket = service.socket();
    let list = || ttmon(&["alerts", "list", "--root", service.machine.root(), "--service", socket.to_str().unwrap()]);
    let listed = list();
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!(
        lines[0], "hot  critical  asic_temp > 85 for 300ms until asic_temp < 80",
        "{} {}",
        listed.out, listed.err
    );
    assert!(
        lines[1].starts_with("  firing since ") && lines[1].ends_with("device 0: hot (asic_temp 90.0 °C)"),
        "{}",
        lines[1]
    );
    let table = ttmon(&["smi", "--root", service.machine.root(), "--service", socket.to_str().unwrap()]);
    assert!(table.out.contains("critical: hot: device 0: hot (asic_temp 90.0 °C)\n"), "{}", table.out);

    // A mistake changes nothing, and is named with its line.
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{good}\n[[alert]]\nname = \"bad\"\nwhen = \"asic_tmp > 3\"\n")).unwrap();
    service.signal(rustix::process::Signal::HUP);
    wait_for(|| service.log().contains("event=not-reloaded"), || service.log());
    assert!(service.log().contains("unknown figure"), "{}", service.log());
    // Another receiver hears what fires already; the one that stays hears nothing twice.
    let second = Hook::start(Mood::Take);
    std::fs::write(&file, format!("{good}\n[[alerts.webhook]]\nurl = \"{}\"\n", second.url())).unwrap();
    service.signal(rustix::process::Signal::HUP);
    wait_for(|| second.told() == ["hot firing"], || service.log());
    // A rule that is gone fires no more.
    std::fs::write(&file, format!("{}\noff = true\n", good.split("[[alerts.webhook]]").next().unwrap())).unwrap();
    service.signal(rustix::process::Signal::HUP);
    wait_for(|| service.log().contains("the rule was changed"), || service.log());
    assert_eq!((service.snapshot()["alerts"].clone(), list().out), (Value::Null, String::new()));
    assert_eq!(first.told().iter().filter(|text| *text == "hot firing").count(), 1);
}

#[test]
fn check_test_and_export_say_what_is_wrong_and_what_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (hook, nobody) = (Hook::start(Mood::Take), free_port());
    let file = config(folder.path(), &format!("[[alerts.webhook]]\nurl = \"{}\"\n", hook.url()));
    let file = file.to_str().unwrap();
    let with = |arguments: &[&str]| ttmon(&[&["alerts"], arguments, &["--config", file]].concat());
    let checked = with(&["check"]);
    assert_eq!(checked.out, format!("{file}: ok, 1 rules and 1 receivers\n"), "{}", checked.err);
    let tested = with(&["test", "hot"]);
    assert_eq!((tested.out, tested.code), (format!("webhook http://{}/…: accepted: so\n", hook.address), Some(0)));
    let heard = hook.heard.lock().unwrap()[0].clone();
    assert_eq!((&heard["test"], &heard["alerts"][0]["name"]), (&json!(true), &json!("hot")));
    assert_eq!(with(&["test", "hut"]).err, "error: there is no rule called \"hut\": there are hot\n");

    std::fs::write(file, format!("[[alerts.webhook]]\nurl = \"http://{nobody}\"\n")).unwrap();
    let tested = with(&["test"]);
    assert!(tested.out.contains("failed: ") && tested.code == Some(1), "{} {}", tested.out, tested.err);
    std::fs::write(file, "[[alert]]\nname = \"x\"\nwhen = \"asic_temp > \"\n").unwrap();
    let why = "alert \"x\": when: column 13: expected a value, found the end of the rule";
    assert_eq!(with(&["check"]).err, format!("error: {file}:3: {why}\n"));
    let refused = run(Command::new(TTMON)
        .args(["serve", "--sim", "--config", file, "--listen", "off", "--poc-socket", "off"])
        .args(["--socket", &format!("{}/s", folder.path().display())]));
    assert_eq!((refused.err, refused.code), (format!("error: {file}:3: {why}\n"), Some(2)));
}

#[test]
fn what_is_exported_is_taken_by_prometheus() {
    if !needs::has("what_is_exported_is_taken_by_prometheus", &["promtool"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yml");
    let nothing = folder.path().join("none.toml");
    let exported = ttmon(&["alerts", "export", "--prometheus", "--config", nothing.to_str().unwrap()]).out;
    std::fs::write(&file, exported).unwrap();
    let checked = run(Command::new("promtool").args(["check", "rules"]).arg(&file));
    assert!(checked.out.contains("SUCCESS: 18 rules found"), "{} {}", checked.out, checked.err);
}

#[test]
fn a_simulated_machine_fires_and_resolves() {
    let folder = tempfile::tempdir().unwrap();
    let hook = Hook::start(Mood::Take);
    let file = folder.path().join("config.toml");
    let text = format!(
        "[serve]\ninterval_ms = 100\n[[alert]]\nname = \"resetting\"\nwhen = \"state == resetting\"\n\
         [[alerts.webhook]]\nurl = \"{}\"\n",
        hook.url()
    );
    std::fs::write(&file, text).unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let child = Command::new(TTMON)
        .args(["serve", "--sim=p150x4,hang=1@1s,lose=2@1s,reset=3@1s", "--listen", "off", "--poc-socket", "off"])
        .arg("--config")
        .arg(&file)
        .arg("--socket")
        .arg(folder.path().join("ttmon.sock"))
        .stderr(log)
        .spawn()
        .unwrap();
    let _child = Ended(child);
    let told = || hook.told();
    let all = ["heartbeat-stopped firing", "lost firing", "resetting firing", "resetting resolved"];
    wait_for(|| all.iter().all(|wanted| told().iter().any(|one| one == wanted)), || format!("{:?}", told()));
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

#[test]
fn the_real_alertmanager_hears_once_that_it_fires_and_that_it_is_over() {
    let test = "the_real_alertmanager_hears_once_that_it_fires_and_that_it_is_over";
    if !needs::has(test, &["prometheus-alertmanager"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // It tells on what it hears, and that is told to a hook.
    let (hook, address) = (Hook::start(Mood::Take), free_port());
    let theirs = folder.path().join("alertmanager.yml");
    let text = format!(
        "route: {{receiver: hook, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}\n\
         receivers:\n- name: hook\n  webhook_configs: [{{url: \"{}\", send_resolved: true}}]\n",
        hook.url()
    );
    std::fs::write(&theirs, text).unwrap();
    let alertmanager = Command::new("prometheus-alertmanager")
        .arg(format!("--config.file={}", theirs.display()))
        .arg(format!("--storage.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .arg("--cluster.listen-address=")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _alertmanager = Ended(alertmanager);
    let file = config(folder.path(), &format!("[[alerts.alertmanager]]\nurl = \"http://{address}/\"\n"));
    let service = start(&file);
    set_temperature(&service.machine, 90);
    let told = || {
        let heard = hook.heard.lock().unwrap();
        let all = heard.iter().flat_map(|message| message["alerts"].as_array().unwrap().clone());
        all.map(|alert| alert["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    wait_for(|| told() == ["firing"], || service.log());
    let labels = hook.heard.lock().unwrap()[0]["alerts"][0]["labels"].clone();
    assert_eq!((&labels["alertname"], &labels["device"]), (&json!("TtmonHot"), &json!("0")), "{labels}");
    assert!(labels["pci_address"].is_string() && labels["host"].is_string(), "{labels}");
    // Another service that finds the same says the same, and Alertmanager knows it for one alert.
    let log = folder.path().join("log");
    let other = Command::new(TTMON)
        .args(["serve", "--root", service.machine.root(), "--listen", "off", "--poc-socket", "off", "--config"])
        .arg(&file)
        .arg("--socket")
        .arg(folder.path().join("other.sock"))
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let _other = Ended(other);
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_for(|| said().contains("name=hot state=firing"), said);
    let known = || get(address, "/api/v2/alerts");
    wait_for(|| known().as_array().is_some_and(|all| all.len() == 1), || known().to_string());
    set_temperature(&service.machine, 50);
    wait_for(|| told() == ["firing", "resolved"], || format!("{:?} {}", told(), service.log()));
    assert_eq!(known(), json!([]));
}
