//! `--bundle`: what a bug report needs, in one file. What may hold a secret is left out before it is written.

use super::check::{CheckStatus, DoctorReport};
use super::{Findings, ServiceFound, tar};
use crate::json::json;
use crate::screen::{LONG_TIME, local_time};
use crate::smi::report;
use crate::version;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::Snapshot;
use model::figure::Section;
use serde_json::json as object;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use watch::atomic_file::replace_file;
use watch::config::without_secrets;
use watch::exit::Failure;
use watch::rules::RulesReply;

/// What is never in it, for people.
const LEFT_OUT: &str =
    "environments of processes; tokens, passwords, receivers, addresses, sentences and comments of the configuration";

/// In the place of sentences that the configuration may have.
const LEFT_OUT_TEXT: &str = "(left out)";

/// Writes the file. Returns what is inside and what was left out.
pub fn write(
    path: &Path,
    findings: &Findings,
    report: &DoctorReport,
    alerts: &RulesReply,
    with_commands: bool,
) -> anyhow::Result<String> {
    let files = files(findings, report, alerts, with_commands);
    let time = u64::try_from(findings.snapshot.taken_at.0 / 1000).unwrap_or(0);
    let named: Vec<(String, Vec<u8>)> =
        files.iter().map(|(name, text)| (format!("ttmon-bundle/{name}"), text.clone().into_bytes())).collect();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&tar::archive(&named, time))?;
    replace_file(path, &packed.finish()?)
        .map_err(|error| Failure::of_io(&error, format!("--bundle {}: {error}", path.display())))?;
    let mut said = format!("\n{} has:\n", path.display());
    for (name, text) in &files {
        // Writing to a string cannot fail.
        let _ = writeln!(said, "  {name:<20} {} bytes", text.len());
    }
    let commands = if with_commands { "" } else { "command lines of processes; " };
    let _ = writeln!(said, "left out: {commands}{LEFT_OUT}");
    Ok(said)
}

fn files(
    findings: &Findings,
    report: &DoctorReport,
    alerts: &RulesReply,
    with_commands: bool,
) -> Vec<(&'static str, String)> {
    let mut snapshot = findings.snapshot.clone();
    if !with_commands {
        leave_out_commands(&mut snapshot);
    }
    snapshot.alerts.iter_mut().for_each(|alert| alert.text = LEFT_OUT_TEXT.into());
    let mut alerts = alerts.clone();
    alerts.alerts.iter_mut().for_each(|alert| alert.text = LEFT_OUT_TEXT.into());
    alerts.rules.iter_mut().for_each(|rule| rule.text = None);
    let report = without_config_text(report);
    let time = local_time(snapshot.taken_at, LONG_TIME);
    vec![
        ("doctor.txt", report.text(true)),
        ("doctor.json", json(&report, false)),
        ("smi.json", json(&snapshot, false)),
        ("smi-q.txt", report::text(&snapshot, &Section::ALL, &time)),
        ("alerts.json", json(&alerts, false)),
        ("service.json", json(&service(&findings.service), false)),
        ("config.toml", configuration(findings)),
        ("versions.txt", version::verbose()),
        ("kernel.txt", kernel(findings)),
    ]
}

/// A command line may hold a token, and a name that a process gave itself may be one.
fn leave_out_commands(snapshot: &mut Snapshot) {
    for process in &mut snapshot.processes {
        process.command = None;
    }
}

/// A mistake in the configuration is named with what is written there.
fn without_config_text(report: &DoctorReport) -> DoctorReport {
    let mut checks = report.checks.clone();
    for check in checks.iter_mut().filter(|check| check.name == "configuration" && check.status == CheckStatus::Problem)
    {
        check.found = "there are mistakes; their text is left out".into();
    }
    DoctorReport::of(checks)
}

fn service(found: &ServiceFound) -> serde_json::Value {
    match found {
        ServiceFound::NotAsked => object!({ "state": "not asked" }),
        ServiceFound::Absent => object!({ "state": "absent" }),
        ServiceFound::Answers { program, .. } => object!({ "state": "answers", "program": program }),
        ServiceFound::Silent { place, reason } => object!({ "state": "silent", "socket": place, "reason": reason }),
    }
}

fn configuration(findings: &Findings) -> String {
    let defaults = top::config::print(&top::config::defaults());
    let settings: Vec<&str> = defaults.lines().filter_map(|line| Some(line.split_once('=')?.0.trim())).collect();
    match std::fs::read_to_string(&findings.config.path) {
        Ok(text) => without_secrets(&text, |key| settings.contains(&key)),
        Err(_) => "# there is no configuration, or it cannot be read\n".into(),
    }
}

/// The kernel and its command line. Of an option that may be a secret only the name is kept.
fn kernel(findings: &Findings) -> String {
    let release = findings.snapshot.host.kernel.as_deref().unwrap_or("unknown");
    let line = findings.setup.kernel_command_line.as_deref().unwrap_or("unknown");
    let words: Vec<String> = line.split_whitespace().map(plain_option).collect();
    format!("kernel: {release}\ncommand line: {}\n", words.join(" "))
}

fn plain_option(word: &str) -> String {
    const SECRET: [&str; 8] = ["key", "pass", "secret", "token", "pwd", "auth", "cred", "url"];
    let Some((name, value)) = word.split_once('=') else { return word.to_owned() };
    let lower = name.to_ascii_lowercase();
    let is_secret = SECRET.iter().any(|part| lower.contains(part)) || value.contains("://") || value.contains('@');
    if is_secret { format!("{name}=(left out)") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_kernel_that_may_be_a_secret_has_only_its_name() {
        for (word, kept) in [
            ("quiet", "quiet"),
            ("root=UUID=1234", "root=UUID=1234"),
            ("iommu=pt", "iommu=pt"),
            ("rd.luks.key=hunter2", "rd.luks.key=(left out)"),
            ("ds=nocloud;s=http://me:hunter2@x/", "ds=(left out)"),
            ("PASSWORD=hunter2", "PASSWORD=(left out)"),
        ] {
            assert_eq!(plain_option(word), kept);
        }
    }
}
