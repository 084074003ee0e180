//! What a test needs beside the project, and the one place that decides what happens without it.
//!
//! A test that cannot run says so loudly, with the reason. With `CI` set that is a failure. `./check quick` sets `CHECK_QUICK`: then
//! the heavy programs count as missing on every machine.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Programs, the Debian packages that have them, and whether they are heavy.
const PROGRAMS: [(&str, &str, bool); 14] = [
    ("amtool", "prometheus-alertmanager", true),
    ("chromedriver", "chromium-driver", true),
    ("fish", "fish", true),
    ("ip", "iproute2", false),
    // 1.21 or later, which Debian 12 does not have.
    ("kubectl", "kubectl", true),
    ("man", "man-db", true),
    ("mandoc", "mandoc", true),
    ("prometheus", "prometheus", true),
    ("prometheus-alertmanager", "prometheus-alertmanager", true),
    ("promtool", "prometheus", true),
    ("sshd", "openssh-server", true),
    ("strace", "strace", false),
    ("systemd-analyze", "systemd", false),
    ("zsh", "zsh", true),
];

/// Says loudly that a test did not run; in CI that is a failure.
pub fn not_run(test: &str, why: &str) {
    let notice = format!("NOT RUN: {test}, because {why}");
    assert!(env::var_os("CI").is_none(), "{notice}");
    // The test runner swallows what `eprintln!` writes in a test that passes.
    io::stderr().write_all(format!("\n{notice}\n\n").as_bytes()).unwrap();
}

/// Whether all these programs can be used.
pub fn has(test: &str, programs: &[&str]) -> bool {
    let reason = programs.iter().find_map(|program| why_not(program));
    if let Some(why) = &reason {
        not_run(test, why);
    }
    reason.is_none()
}

fn why_not(program: &str) -> Option<String> {
    let known = PROGRAMS.iter().find(|(name, ..)| *name == program);
    let (_, package, is_heavy) = known.unwrap_or_else(|| panic!("which package has {program}?"));
    if *is_heavy && env::var_os("CHECK_QUICK").is_some() {
        return Some(format!("`./check quick` leaves out {program}"));
    }
    (!is_installed(program)).then(|| format!("{program} is missing: install the package {package}"))
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // Daemons are not on every user's path.
    let sbin = Path::new("/usr/sbin").to_owned();
    env::split_paths(&path).chain([sbin]).any(|folder| folder.join(program).is_file())
}

/// The unpacked wheel of the newest ttnn.
pub fn wheel(test: &str) -> Option<PathBuf> {
    wheel_in("TTMON_TTNN", "scripts/fetch-ttnn", test)
}

/// The newest wheel, and an older one, in which a buffer has another form.
pub fn wheels(test: &str) -> Vec<PathBuf> {
    let old = wheel_in("TTMON_TTNN_OLD", "scripts/fetch-ttnn 0.78.0", test);
    wheel(test).into_iter().chain(old).collect()
}

/// The text of axe-core, which checks what a page says to everybody.
pub fn axe(test: &str) -> Option<String> {
    if env::var_os("CHECK_QUICK").is_some() {
        not_run(test, "`./check quick` leaves out axe-core");
        return None;
    }
    wheel_in("TTMON_AXE", "scripts/fetch-axe", test).map(|path| std::fs::read_to_string(path).unwrap())
}

/// A Python with Perfetto's published definitions of its trace format.
pub fn perfetto(test: &str) -> Option<PathBuf> {
    wheel_in("TTMON_PERFETTO", "scripts/fetch-perfetto", test)
}

fn wheel_in(variable: &str, command: &str, test: &str) -> Option<PathBuf> {
    let wheel = env::var_os(variable);
    if wheel.is_none() {
        not_run(test, &format!("{variable} is not set: {variable}=$({command})"));
    }
    wheel.map(PathBuf::from)
}
