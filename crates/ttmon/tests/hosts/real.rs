//! Real services: `ttmon serve` of simulated machines, with and without TLS and a token, killed and started again.

use crate::support::service::wait_for;
use crate::support::terminal::Terminal;
use crate::support::{TTMON, run, ttmon};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A service of a simulated machine, ended when dropped.
struct Served {
    folder: TempDir,
    child: Child,
    spec: &'static str,
    options: Vec<String>,
    /// Where it listens: an address and a port.
    address: String,
}

impl Served {
    fn start(spec: &'static str, options: &[&str]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|option| option.to_string()).collect();
        let child = spawn(folder.path(), spec, "127.0.0.1:0", &options);
        let mut served = Served { folder, child, spec, options, address: String::new() };
        served.await_listening(1);
        served.address = served.log().split("address=").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        served
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn await_listening(&self, times: usize) {
        // The first sample is there, too.
        wait_for(|| self.log().matches("address=127.").count() == times, || self.log());
    }

    /// Ends it as Ctrl-C would: a simulated machine takes its processes with it.
    fn stop(&mut self) {
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }

    /// Starts another one in its place.
    fn start_again(&mut self) {
        let times = self.log().matches("address=127.").count();
        self.child = spawn(self.folder.path(), self.spec, &self.address, &self.options);
        self.await_listening(times + 1);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            eprintln!("the service said:\n{}", self.log());
        }
    }
}

fn spawn(folder: &std::path::Path, spec: &str, listen: &str, options: &[String]) -> Child {
    let log = std::fs::File::options().append(true).create(true).open(folder.join("log")).unwrap();
    Command::new(TTMON)
        .args(["serve", &format!("--sim={spec}"), "--poc-socket", "off", "--listen", listen, "--socket"])
        .arg(folder.join("ttmon.sock"))
        .args(options)
        .env_remove("JOURNAL_STREAM")
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

#[test]
fn a_real_service_is_shown_as_if_it_were_this_machine() {
    let served = Served::start("p150x2", &[]);
    let one = |arguments: &[&str]| ttmon(&[arguments, &["--host", &served.address]].concat());
    let json: Value = serde_json::from_str(&one(&["smi", "--json"]).out).unwrap();
    assert_eq!((json["devices"].as_array().unwrap().len(), &json["host"]["simulated"]), (2, &true.into()));
    let table = one(&["smi"]);
    assert!(table.code == Some(0) && table.out.contains("SIMULATED") && table.out.contains("p150a"), "{}", table.out);
    for view in [&["smi", "-q"][..], &["smi", "-L"], &["smi", "dmon", "-c", "2", "-d", "0.05"], &["mem", "--once"]] {
        let run = one(view);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{view:?}: {}", run.out);
    }
}

#[test]
fn a_service_with_a_certificate_and_a_token_is_asked_with_both() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    std::fs::write(path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(path("token"), "a-rather-long-token-0123456789\n").unwrap();
    std::fs::write(path("wrong"), "another-rather-long-token-0123456789\n").unwrap();
    let served = Served::start(
        "p150x2",
        &["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem"), "--token-file", &path("token")],
    );
    let url = format!("https://{}", served.address);
    let ask = |options: &[&str]| ttmon(&[&["smi", "-L", "--host", &url], options].concat());
    let (ca, token, wrong) = (path("cert.pem"), path("token"), path("wrong"));
    let run = ask(&["--ca", &ca, "--token-file", &token]);
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 2), "{}", run.err);
    let run = ask(&["--ca", &ca]);
    assert!(run.code == Some(7) && run.err.contains("requires a token, and got none"), "{}", run.err);
    let run = ask(&["--ca", &ca, "--token-file", &wrong]);
    assert!(run.code == Some(7) && run.err.contains("token"), "{}", run.err);
    let run = ask(&["--token-file", &token]);
    assert!(run.code == Some(7) && run.err.contains("--ca FILE"), "{}", run.err);
    let plain = ttmon(&["smi", "-L", "--host", &served.address]);
    assert!(plain.code == Some(7) && plain.err.contains("begins with https://"), "{}", plain.err);
    let served = Served::start("n150", &[]);
    let run = ttmon(&["smi", "-L", "--host", &format!("https://{}", served.address)]);
    assert!(run.code == Some(7) && run.err.contains("begins with http://"), "{}", run.err);
}

#[test]
fn a_proxy_is_used_for_its_scheme_never_for_this_machine_and_is_named_where_it_fails() {
    let served = Served::start("n150", &[]);
    let ask = |host: &str, variable: &str| {
        let mut command = Command::new(TTMON);
        run(command
            .args(["smi", "-L", "--host", host])
            .env("no_proxy", "")
            .env(variable, "http://me:secret@127.0.0.1:1"))
    };
    for variable in ["http_proxy", "https_proxy", "ALL_PROXY"] {
        let run = ask(&served.address, variable);
        assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{variable}: {}", run.err);
    }
    let run = ask("http://192.0.2.1:9746", "http_proxy");
    assert!(run.code == Some(7) && run.err.contains("the proxy 127.0.0.1:1 (http_proxy)"), "{}", run.err);
    assert!(!run.err.contains("secret") && !run.err.contains("is not running"), "{}", run.err);
}

#[test]
fn a_service_that_asks_for_certificates_serves_those_of_its_authority_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: String| std::fs::write(path(name), text).unwrap();
    let authority = |name: &str| {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap();
        write(name, issuer.pem());
        issuer
    };
    let (ours, others) = (authority("ca.pem"), authority("other-ca.pem"));
    let certificate = |name: &str, issuer: &rcgen::Issuer<'_, rcgen::KeyPair>| {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        write(&format!("{name}.pem"), params.signed_by(&key, issuer).unwrap().pem());
        write(&format!("{name}.key"), key.serialize_pem());
    };
    certificate("server", &ours);
    certificate("client", &ours);
    certificate("stranger", &others);
    let files = ["server.pem", "server.key", "ca.pem"].map(path);
    let served =
        Served::start("n150", &["--tls-cert", &files[0], "--tls-key", &files[1], "--tls-client-ca", &files[2]]);
    let ask = |options: &[&str]| {
        let url = format!("https://{}", served.address);
        ttmon(&[&["smi", "-L", "--host", &url, "--ca", &files[2]], options].concat())
    };
    let as_client = |name: &str| {
        let (cert, key) = (path(&format!("{name}.pem")), path(&format!("{name}.key")));
        ask(&["--client-cert", &cert, "--client-key", &key])
    };
    let run = as_client("client");
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{}", run.err);
    for run in [as_client("stranger"), ask(&[])] {
        assert!(run.code == Some(7) && run.out.is_empty(), "{}{}", run.out, run.err);
    }
    let run = ask(&["--client-cert", &path("client.key"), "--client-key", &path("client.key")]);
    assert!(run.code == Some(2) && run.err.contains("client.key"), "{}", run.err);
}

#[test]
fn a_self_signed_certificate_of_an_authority_is_trusted_when_it_is_the_one_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // As `openssl req -x509` makes them.
    let make = |file: &str, name: &str, until: i32| {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        std::fs::write(path(file), params.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(path("key.pem"), key.serialize_pem()).unwrap();
        Served::start("n150", &["--tls-cert", &path(file), "--tls-key", &path("key.pem")])
    };
    let ask = |served: &Served, ca: &str| {
        ttmon(&["smi", "-L", "--host", &format!("https://{}", served.address), "--ca", &path(ca)])
    };
    let served = make("cert.pem", "127.0.0.1", 4000);
    let run = ask(&served, "cert.pem");
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{}", run.err);
    let (old, other) = (make("old.pem", "127.0.0.1", 2001), make("other.pem", "localhost", 4000));
    for (served, ca, why) in [
        (&served, "other.pem", "its certificate is not from an authority that is trusted here"),
        (&old, "old.pem", "its certificate has expired"),
        (&other, "other.pem", "its certificate is not valid for the name that was asked"),
    ] {
        let run = ask(served, ca);
        assert!(run.code == Some(7) && run.err.contains(why), "{ca}: {}", run.err);
    }
}

#[test]
fn a_service_that_is_killed_and_started_again_is_seen_to_go_and_come() {
    let (one, mut other) = (Served::start("p150x2", &[]), Served::start("n150", &[]));
    let hosts = format!("{},{}", one.address, other.address);
    let mut terminal = Terminal::start(&["top", "--host", &hosts], 120, 30);
    terminal.await_text("3/3 devices ok");
    terminal.await_text("SIMULATED");
    other.stop();
    terminal.await_text("1 answer");
    terminal.await_text("connection refused");
    // Whoever looks at it sees what was there last, and that it is old.
    terminal.answer("\r", "the machine that is gone", |text| text.contains("NO ANSWER") && text.contains("silent"));
    other.start_again();
    terminal.await_no_text("NO ANSWER");
    terminal.answer("\x1b", "all machines", |text| text.contains("3/3 devices ok"));
    terminal.keys("q");
    assert!(terminal.end().success());
    terminal.assert_restored();
}

#[test]
fn whoever_looks_later_sees_what_has_happened_before() {
    let served = Served::start("p150x2,hang=1@500ms", &[]);
    let json = || serde_json::from_str::<Value>(&ttmon(&["smi", "--json", "--host", &served.address]).out).unwrap();
    wait_for(|| json()["devices"][1]["state"] == "hung", || json().to_string());
    // The sample that told it is not the one that is seen first.
    let then = json()["taken_at"].clone();
    wait_for(|| json()["taken_at"] != then, || json().to_string());
    let mut terminal = Terminal::start(&["top", "--host", &served.address], 120, 30);
    terminal.await_text("hung");
    terminal.answer("4", "the event", |text| text.contains("ok → hung"));
    terminal.keys("q");
    assert!(terminal.end().success());
}
