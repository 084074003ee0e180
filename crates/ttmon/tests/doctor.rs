//! `ttmon doctor` as a program: exit codes, JSON, and the bundle without secrets.

use crate::support::service::Service;
use crate::support::{Machine, Run, TTMON, run};
use serde_json::Value;
use sim::tree::Chip;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn doctor(root: &str, home: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(TTMON);
    command.args(["doctor", "--root", root]).args(arguments);
    run(command.env("XDG_CONFIG_HOME", home).env("HOME", home).env_remove("TT_METAL_SHM_TRACKING_DISABLED"))
}

fn machine() -> Machine {
    Machine::with(&[Chip { heartbeat: None, ..Chip::p150a(0) }])
}

#[test]
fn problems_are_exit_1_and_come_first() {
    let (machine, home) = (machine(), tempfile::tempdir().unwrap());
    let good = doctor(machine.root(), home.path(), &[]);
    assert_eq!((good.code, good.err.as_str()), (Some(0), ""), "{}", good.out);
    assert!(good.out.contains("\nok       driver          version 2.10.0"), "{}", good.out);
    assert!(good.out.lines().last().unwrap().starts_with("no problems, "), "{}", good.out);
    std::fs::create_dir_all(home.path().join("ttmon")).unwrap();
    std::fs::write(home.path().join("ttmon/config.toml"), "[tob]\n").unwrap();
    let bad = doctor(machine.root(), home.path(), &[]);
    assert_eq!(bad.code, Some(1));
    assert!(bad.out.starts_with("problem  configuration   line 1: unknown table [tob]"), "{}", bad.out);
    let json: Value = serde_json::from_str(&doctor(machine.root(), home.path(), &["--json"]).out).unwrap();
    assert_eq!((&json["schema"], &json["problems"]), (&1.into(), &1.into()));
    assert_eq!(
        (&json["checks"][0]["name"], &json["checks"][0]["status"]),
        (&"configuration".into(), &"problem".into())
    );
    assert!(json["checks"][0]["fix"].as_str().unwrap().starts_with("sed -i.bak '1d' "), "{json}");
    assert_eq!(doctor(machine.root(), home.path(), &["--with-commands"]).code, Some(2));
}

#[test]
fn the_service_is_named_with_its_version_and_a_stopped_one_is_a_warning() {
    let (service, home) = (Service::start(machine()), tempfile::tempdir().unwrap());
    let socket = service.socket();
    let arguments = ["--service", socket.to_str().unwrap()];
    let run = doctor(service.machine.root(), home.path(), &arguments);
    assert!(run.out.contains(concat!("service         ttmon ", env!("CARGO_PKG_VERSION"), " answers")), "{}", run.out);
    assert!(run.out.contains("service-version the same as this program"), "{}", run.out);
    service.signal(rustix::process::Signal::STOP);
    let run = doctor(service.machine.root(), home.path(), &arguments);
    service.signal(rustix::process::Signal::CONT);
    let is_said = |line: &str| line.starts_with("warning  service") && line.contains("systemctl restart ttmon.service");
    assert!(run.out.lines().any(is_said), "{}", run.out);
    assert_eq!(run.code, Some(0));
}

struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The files of a bundle, by name, and all its bytes.
fn unpacked(bundle: &Path) -> (Vec<String>, Vec<u8>) {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(bundle).unwrap()).read_to_end(&mut bytes).unwrap();
    let listed = run(Command::new("tar").arg("-tzf").arg(bundle));
    (listed.out.lines().map(str::to_owned).collect(), bytes)
}

#[test]
fn a_bundle_has_no_secrets() {
    let (machine, home) = (machine(), tempfile::tempdir().unwrap());
    let secret = |place: &str| format!("s3cr3t-of-{place}");
    let folder = home.path().join("ttmon");
    std::fs::create_dir_all(&folder).unwrap();
    let token_file = folder.join("token");
    std::fs::write(&token_file, secret("token-file")).unwrap();
    let config = format!(
        "[top]\ntheme = \"light\" # {0}\ntoken = \"{0}\"\n[[alert]]\nname = \"mine\"\nwhen = \"power > 1\"\ntext = \"{0}\"\n\
         [[alerts.webhook]]\nurl = \"https://me:{0}@example.org/{0}\"\ntoken_file = \"{1}\"\n\
         [[alerts.command]]\nrun = [\"page\", \"{0}\"]\n[{0}]\npassword = \"{0}\"\n",
        secret("configuration"),
        token_file.display()
    );
    std::fs::write(folder.join("config.toml"), config).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "read line", "sh", "--password", &secret("command-line")]);
    let holder = shell.env("TT_SECRET", secret("environment")).stdin(Stdio::piped()).spawn().unwrap();
    let holder = Holder(holder);
    machine.set_pids(0, &[holder.0.id()]);
    std::fs::create_dir_all(machine.0.path().join("proc")).unwrap();
    std::fs::write(machine.0.path().join("proc/cmdline"), format!("quiet luks.key={}\n", secret("kernel"))).unwrap();
    let bundle = home.path().join("report.tar.gz");
    let mut command = Command::new(TTMON);
    command.args(["doctor", "--root", machine.root(), "--bundle", bundle.to_str().unwrap()]);
    command.env("XDG_CONFIG_HOME", home.path()).env("TTMON_TOKEN", secret("own-environment"));
    let made = run(&mut command);
    assert!(made.code.is_some_and(|code| code < 2), "{}", made.err);
    let (names, bytes) = unpacked(&bundle);
    let contains = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(!contains("s3cr3t"), "{}", String::from_utf8_lossy(&bytes));
    assert!(contains("theme = \"light\"") && contains("\"pid\": ") && contains("quiet luks.key=(left out)"));
    for name in ["doctor.json", "smi.json", "smi-q.txt", "alerts.json", "service.json", "config.toml", "versions.txt"] {
        assert!(names.contains(&format!("ttmon-bundle/{name}")), "{names:?}");
        assert!(made.out.contains(name), "{}", made.out);
    }
    assert!(made.out.contains("left out: command lines of processes; "), "{}", made.out);
    // Whoever asks for command lines has them, and nothing else.
    command.arg("--with-commands");
    run(&mut command);
    let (_, bytes) = unpacked(&bundle);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(&secret("command-line")) && !text.contains(&secret("environment")));
}

#[test]
fn a_bundle_that_cannot_be_written_is_an_error() {
    let (machine, home) = (machine(), tempfile::tempdir().unwrap());
    let run = doctor(machine.root(), home.path(), &["--bundle", "/nowhere/x.tar.gz"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("error: --bundle /nowhere/x.tar.gz: "), "{}", run.err);
}
