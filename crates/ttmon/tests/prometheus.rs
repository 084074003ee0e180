//! The real Prometheus and Alertmanager scrape three simulated hosts, each in a network namespace of its own; `ttmon` reads them back.

use crate::support::{TTMON, is_root, needs, not_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A network of namespaces: one for Prometheus, and one for each host. Everything in it ends with it.
struct Network {
    name: String,
    folder: TempDir,
    children: Vec<Child>,
}

const PROMETHEUS: &str = "http://127.0.0.1:9090";
const ALERTMANAGER: &str = "http://127.0.0.1:9093";

impl Network {
    fn new(hosts: u8) -> Result<Network, String> {
        let name = format!("ttmon{}", std::process::id());
        let network = Network { name, folder: tempfile::tempdir().unwrap(), children: Vec::new() };
        let mon = network.namespace(0);
        ip(&["netns", "add", &mon])?;
        ip(&["-n", &mon, "link", "set", "lo", "up"])?;
        for host in 1..=hosts {
            let (space, here) = (network.namespace(host), format!("to{host}"));
            ip(&["netns", "add", &space])?;
            ip(&["-n", &mon, "link", "add", &here, "type", "veth", "peer", "name", "eth0", "netns", &space])?;
            for (space, link, address) in [(&mon, here.as_str(), 1), (&space, "eth0", 2)] {
                ip(&["-n", space, "address", "add", &format!("10.99.{host}.{address}/24"), "dev", link])?;
                ip(&["-n", space, "link", "set", link, "up"])?;
            }
        }
        Ok(network)
    }

    fn namespace(&self, host: u8) -> String {
        format!("{}-{host}", self.name)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, host: u8, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), program]).args(arguments).stdin(Stdio::null());
        command
    }

    /// Starts a program that goes on; its words go to a file.
    fn start(&mut self, host: u8, program: &str, arguments: &[&str]) -> usize {
        let log = File::create(self.path(&format!("log-{}", self.children.len()))).unwrap();
        let mut command = self.command(host, program, arguments);
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.children.push(child);
        self.children.len() - 1
    }

    /// A host with a simulated machine. The first speaks TLS and wants a token.
    fn serve(&mut self, host: u8, sim: &str) -> usize {
        let (socket, listen) = (self.path(&format!("{host}.sock")), format!("10.99.{host}.2:9746"));
        let (cert, key, token) = (self.path("ttmon.crt"), self.path("ttmon.key"), self.path("ttmon.token"));
        let mut arguments = vec!["serve", sim, "--socket", &socket, "--poc-socket", "off", "--listen", &listen];
        match host {
            1 => arguments.extend(["--tls-cert", &cert, "--tls-key", &key, "--token-file", &token]),
            _ => arguments.push("--insecure"),
        }
        self.start(host, TTMON, &arguments)
    }

    /// What a program says in Prometheus's namespace.
    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(0, program, arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    fn query(&self, query: &str) -> String {
        self.said("promtool", &["query", "instant", PROMETHEUS, query])
    }

    fn alerts(&self) -> String {
        self.said("amtool", &["--alertmanager.url", ALERTMANAGER, "alert", "query", "-o", "extended"])
    }

    fn fleet(&self) -> Value {
        let said = self.command(0, TTMON, &["smi", "--prometheus", PROMETHEUS, "--json"]).output().unwrap();
        serde_json::from_slice(&said.stdout).unwrap_or_default()
    }

    /// Waits for something that happens on a slow machine, too.
    fn wait_for(&self, what: &str, mut condition: impl FnMut(&Network) -> bool) {
        let until = Instant::now() + Duration::from_secs(120);
        while !condition(self) {
            if Instant::now() > until {
                let logs =
                    (0..self.children.len()).map(|n| std::fs::read_to_string(self.path(&format!("log-{n}"))).unwrap());
                let logs = logs.collect::<Vec<_>>().join("\n---\n");
                panic!(
                    "{what} did not come to pass\n{}\n{}\n{}\n{logs}",
                    self.query("up"),
                    self.alerts(),
                    self.fleet()
                );
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.children.iter_mut().for_each(end);
        for host in 0..=3 {
            let _ = ip(&["netns", "delete", &self.namespace(host)]);
        }
    }
}

/// Ends a program as systemd would, so that it takes what it has made with it.
fn end(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let _ = child.wait();
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The shipped rules, which wait less before they fire.
fn rules(network: &Network, name: &str) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus").join(name);
    let text = std::fs::read_to_string(shipped).unwrap();
    let hurried = text.lines().map(|line| match line.split_once("for: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: 1s"),
        _ => line.to_owned(),
    });
    std::fs::write(network.path(name), hurried.collect::<Vec<_>>().join("\n")).unwrap();
}

fn configure(network: &Network) {
    let key = rcgen::generate_simple_self_signed(["10.99.1.2".to_owned(), "lab-1".to_owned()]).unwrap();
    let write = |name: &str, text: &str| std::fs::write(network.path(name), text).unwrap();
    write("ttmon.crt", &key.cert.pem());
    write("ttmon.key", &key.signing_key.serialize_pem());
    write("ttmon.token", "s3cret\n");
    rules(network, "ttmon.rules.yml");
    rules(network, "ttmon-service.rules.yml");
    write("alertmanager.yml", "route: { receiver: nobody, group_wait: 1s }\nreceivers: [{ name: nobody }]\n");
    let config = r#"
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [FOLDER/ttmon*.rules.yml]
alerting: { alertmanagers: [{ static_configs: [{ targets: ["127.0.0.1:9093"] }] }] }
scrape_configs:
  - job_name: ttmon-tls
    scheme: https
    tls_config: { ca_file: FOLDER/ttmon.crt }
    authorization: { credentials_file: FOLDER/ttmon.token }
    static_configs: [{ targets: ["10.99.1.2:9746"] }]
  - job_name: ttmon
    static_configs: [{ targets: ["10.99.2.2:9746", "10.99.3.2:9746"] }]
"#;
    write("prometheus.yml", &config.replace("FOLDER", network.folder.path().to_str().unwrap()));
}

/// A host of the fleet by its address: how it is, and the states of its devices.
fn host(fleet: &Value, address: &str) -> (String, Vec<String>) {
    let hosts = fleet["hosts"].as_array().into_iter().flatten();
    let mut found = hosts.filter(|host| host["host"] == address).map(|host| {
        let devices = host["snapshot"]["devices"].as_array().into_iter().flatten();
        let states = devices.map(|device| device["state"].as_str().unwrap_or_default().to_owned());
        (host["state"].as_str().unwrap_or_default().to_owned(), states.collect())
    });
    found.next().unwrap_or_default()
}

/// What a service in Prometheus's namespace says of the machines that it watches.
fn watched(network: &Network, query: &str) -> Value {
    let said = network.said("curl", &["-s", &format!("http://127.0.0.1:9746/api/v1/fleet{query}")]);
    serde_json::from_str(&said).unwrap_or_default()
}

#[test]
fn prometheus_scrapes_three_hosts_rules_fire_and_resolve_and_the_fleet_is_read_back() {
    let test = "prometheus_scrapes_three_hosts_rules_fire_and_resolve_and_the_fleet_is_read_back";
    if !needs::has(test, &["ip", "prometheus", "promtool", "prometheus-alertmanager", "amtool"]) {
        return;
    }
    if !is_root() {
        return not_run(test, "network namespaces need root");
    }
    let mut network = match Network::new(3) {
        Ok(network) => network,
        Err(why) => return not_run(test, &why),
    };
    configure(&network);
    let (data, config, am) = (network.path("data"), network.path("prometheus.yml"), network.path("alertmanager.yml"));
    let flags = [format!("--config.file={am}"), format!("--storage.path={}", network.path("am"))];
    let rest = ["--web.listen-address=127.0.0.1:9093", "--cluster.listen-address="];
    network.start(0, "prometheus-alertmanager", &[&flags[0], &flags[1], rest[0], rest[1]]);
    let flags = [format!("--config.file={config}"), format!("--storage.tsdb.path={data}")];
    network.start(0, "prometheus", &[&flags[0], &flags[1], "--web.listen-address=127.0.0.1:9090"]);
    network.wait_for("Prometheus", |network| network.query("vector(7)").contains("=> 7 @"));

    network.serve(1, "--sim=p150x4,hang=2@5s,reset=2@45s");
    network.serve(2, "--sim=n300x2");
    let third = network.serve(3, "--sim=p150,seed=7");
    network.wait_for("three targets that are up", |network| network.query("count(up == 1)").contains("=> 3 @"));

    let hung = |network: &Network| {
        network.alerts().lines().any(|line| line.contains("TtmonHeartbeatStopped") && line.contains("device=\"2\""))
    };
    network.wait_for("an alert on the hung device", hung);
    network.wait_for("the hung device in the fleet", |network| {
        let (state, devices) = host(&network.fleet(), "10.99.1.2:9746");
        state == "reached" && devices == ["ok", "ok", "hung", "ok"]
    });
    let table = network.said(TTMON, &["smi", "--prometheus", PROMETHEUS]);
    assert!(table.contains("TtmonHeartbeatStopped") || table.contains("device 2 is hung"), "{table}");
    let fleet = network.fleet();
    assert_eq!(host(&fleet, "10.99.2.2:9746").1, ["ok", "remote", "ok", "remote"]);
    let second = fleet["hosts"].as_array().unwrap().iter().find(|host| host["host"] == "10.99.2.2:9746").unwrap();
    let device = &second["snapshot"]["devices"][0];
    for figure in ["power_watts", "power_max_watts", "asic_temp_celsius", "aiclk_megahertz"] {
        assert!(device[figure].is_number(), "{figure}: {device}");
    }
    assert!(device["memory"]["dram_used_bytes"].is_number() && device["board"] == "n300", "{device}");
    assert_eq!(second["snapshot"]["processes"][0]["name"], "python3");

    // A service that asks the same Prometheus has them on its page, and all figures of the one that is looked at.
    let (file, socket) = (network.path("fleet.toml"), network.path("0.sock"));
    std::fs::write(&file, format!("[fleet]\nprometheus = \"{PROMETHEUS}\"\n")).unwrap();
    let flags = ["--socket", &socket, "--poc-socket", "off", "--listen", "127.0.0.1:9746", "--config", &file];
    network.start(0, TTMON, &[&["serve", "--sim=p150"][..], &flags].concat());
    network.wait_for("the fleet of a service", |network| watched(network, "")["totals"]["hosts_reached"] == 3);
    let list = watched(&network, "");
    assert_eq!((&list["hosts"][0]["host"], &list["hosts"][0]["page"]), (&"10.99.1.2:9746".into(), &Value::Null));
    let voltage = |network: &Network| {
        watched(network, "?host=10.99.2.2:9746")["hosts"][0]["snapshot"]["devices"][0]["vcore_volts"].clone()
    };
    network.wait_for("a figure that the list does not have", |network| voltage(network).is_number());

    network.wait_for("the end of the alert, after a reset", |network| !hung(network));
    network.wait_for("a device that is well again", |network| host(&network.fleet(), "10.99.1.2:9746").1 == ["ok"; 4]);
    // What went over PCIe before the reset still counts.
    let fell = "count(resets(ttmon_device_pcie_host_to_device_bytes_total[5m]) > 0) or vector(0)";
    assert!(network.query(fell).contains("=> 0 @"), "{}", network.query(fell));

    end(&mut network.children[third]);
    network.wait_for("an alert on the host that is down", |network| {
        network.alerts().lines().any(|line| line.contains("TtmonDown") && line.contains("10.99.3.2"))
    });
    network.wait_for("the host that is gone, in the fleet", |network| {
        host(&network.fleet(), "10.99.3.2:9746").0 == "unreachable"
    });
    assert_eq!(network.fleet()["hosts"].as_array().unwrap().len(), 3);
}
