//! What others read: the real promtool, and Python's parser of OpenMetrics.

use super::*;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// What a program says of a text, or `None` where there is no such program.
fn said(program: &str, arguments: &[&str], text: &str) -> Option<(bool, String)> {
    let piped = Stdio::piped;
    let mut command = Command::new(program);
    let child = command.args(arguments).stdin(piped()).stdout(piped()).stderr(piped()).spawn();
    let mut child = child.ok()?;
    let mut input = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), said.into_owned()))
}

fn not_run(test: &str, package: &str) {
    let notice = format!("NOT RUN: {test}, because the package {package} is not installed");
    assert!(std::env::var_os("CI").is_none(), "{notice}");
    io::stderr().write_all(format!("\n{notice}\n\n").as_bytes()).unwrap();
}

const HARD: &str = "\"},\\ \\n \u{1f525}\n# EOF\nevil 1";

/// Many devices and processes, names that are hard to write, and the other names.
fn everything(format: MetricsFormat) -> String {
    let mut snapshot = machine();
    snapshot.processes.push(Process {
        name: Some(HARD.into()),
        user: Some("\r\t\u{1b}[2J".into()),
        ..process(9, &[(0, 1 << 40)])
    });
    let options = MetricsOptions { max_process_series: 4, tt_telemetry: true, ..MetricsOptions::default() };
    write(&MetricsInput { options: &options, ..input(&snapshot) }, format)
}

#[test]
fn promtool_has_no_complaint() {
    // Its remarks on other people's names are not ours to mend.
    let ours = write(&input(&machine()), MetricsFormat::Prometheus);
    let Some(said) = said("promtool", &["check", "metrics"], &ours) else {
        return not_run("promtool_has_no_complaint", "prometheus");
    };
    assert_eq!(said, (true, String::new()));
}

#[test]
fn prometheus_reads_every_name() {
    let Some((_, remarks)) = said("promtool", &["check", "metrics"], &everything(MetricsFormat::Prometheus)) else {
        return not_run("prometheus_reads_every_name", "prometheus");
    };
    let remarks: Vec<&str> = remarks.lines().filter(|remark| !remark.starts_with("tt_")).collect();
    assert!(remarks.is_empty(), "{remarks:?}");
}

#[test]
fn python_reads_openmetrics() {
    let script = "import json, sys\n\
                  from prometheus_client.openmetrics.parser import text_string_to_metric_families as families\n\
                  text = sys.stdin.buffer.read().decode()\n\
                  all = [sample for family in families(text) for sample in family.samples]\n\
                  print(json.dumps([len(all)] + [s.labels['name'] for s in all if s.labels.get('pid') == '9']))";
    let text = everything(MetricsFormat::OpenMetrics);
    let has_module = |python: &&str| said(python, &["-c", "import prometheus_client"], "").is_some_and(|said| said.0);
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_module) else {
        return not_run("python_reads_openmetrics", "python3-prometheus-client");
    };
    let (is_well, said) = said(python, &["-c", script], &text).unwrap();
    assert!(is_well, "{said}");
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told, serde_json::json!([lines(&text).len(), HARD]));
}
