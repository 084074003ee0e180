//! What the command line says of the machine to look at.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How long the devices are waited for, unless the command line says so.
pub const DEADLINE_MS: u64 = 500;

/// Which machine to look at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which machine")]
pub struct MachineArgs {
    /// Simulated machine to look at.
    #[arg(long, global = true, help = sim_help(), value_name = "SPEC", num_args = 0..=1, require_equals = true, default_missing_value = sim::DEFAULT_SPEC, conflicts_with = "root")]
    pub sim: Option<String>,
    /// Read DIR/sys, DIR/proc/driver, DIR/proc/PID/fdinfo and DIR/dev instead of the real ones
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Ask the service at PATH (`ttmon serve`), or none; else the one that is there, which sees all users' processes
    #[arg(long, global = true, value_name = "PATH|off")]
    pub service: Option<PathBuf>,
    /// Look at other machines, where `ttmon serve` listens: NAME, NAME:PORT or a URL, several separated by commas
    #[arg(long, global = true, value_name = "URL", value_delimiter = ',', conflicts_with_all = ["sim", "root", "service", "ssh"])]
    pub host: Vec<String>,
    /// Look at other machines, on which ttmon is started over your ssh: HOST or USER@HOST, several separated by commas
    #[arg(long, global = true, value_name = "HOST", value_delimiter = ',', conflicts_with_all = ["sim", "root", "service"])]
    pub ssh: Vec<String>,
    /// Look at the machines that the Prometheus at URL scrapes, with smi and top
    #[arg(long, global = true, value_name = "URL", conflicts_with_all = ["sim", "root", "service", "host", "ssh"])]
    pub prometheus: Option<String>,
    /// With --ssh: copy this program there for the time, for machines without ttmon
    #[arg(long, global = true)]
    pub push: bool,
    /// With --host and --prometheus: the token, in the first line of FILE
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// With --host and --prometheus: trust the CA certificates in FILE (PEM) instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// With --host and --prometheus: the certificate in FILE (PEM) says who asks
    #[arg(long, global = true, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
    /// Wait at most MS milliseconds for the devices; what does not answer is shown as it was
    #[arg(long, global = true, value_name = "MS", default_value_t = DEADLINE_MS, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub deadline_ms: u64,
}

/// Which of its devices.
#[derive(Debug, Clone, Default, Args)]
pub struct DeviceArgs {
    /// Only these devices: number, PCI address, serial or ASIC id, separated by commas
    #[arg(short, long = "id", value_name = "DEVICE", value_delimiter = ',')]
    pub id: Vec<String>,
}

/// Whether to read what only the firmware's own telemetry says.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DeepArgs {
    /// Also read the firmware's telemetry (memory channels, limits of the clock, links): opens devices that a process uses, every 5
    /// seconds at the most; with =idle, devices that nobody has used for 6 seconds, too
    #[arg(long, global = true, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "used", hide_possible_values = true)]
    pub deep: Option<DeepWhen>,
}

/// Which devices a deep read may open.
#[expect(missing_docs, reason = "a doc comment would become help")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeepWhen {
    // Those that a process has open.
    Used,
    // Those that nobody has had open for six seconds, too.
    Idle,
}

impl MachineArgs {
    /// True if other machines are named.
    pub fn is_remote(&self) -> bool {
        !self.host.is_empty() || !self.ssh.is_empty() || self.prometheus.is_some()
    }

    /// True if several other machines are named.
    pub fn is_fleet(&self) -> bool {
        self.host.len() + self.ssh.len() > 1 || self.prometheus.is_some()
    }
}

/// What --sim takes.
pub fn sim_help() -> String {
    let machines = "p150x4, n150, n300x4, p300x2, galaxy-wh, galaxy-bh or mixed";
    let options = sim::Spec::options();
    format!(
        "Look at a simulated machine: four p150a at work, or SPEC: {machines}, and options as in \
         `p150x4,agent,hang=2@5s,reset=1@8s`: {options}; with the last four its driver counts memory"
    )
}
