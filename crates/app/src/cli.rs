//! The command line.

use crate::exit::{Exit, Failure};
use crate::record::duration;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

const AFTER_HELP: &str = "\
Exit codes: 0 all is well; 2 a wrong word on the command line; 4 not permitted; 6 no such device, or none at all; \
7 another machine does not answer; 9 the driver is not loaded; 15 a device is hung or lost.

Nothing here opens /dev/tenstorrent, sends a message to a device, or writes to a file that you did not name.

No Tenstorrent device at hand? Try:  ttmon --sim";

const AFTER_HELP_RUN: &str = "\
The receipt goes to standard error when CMD has ended: peak and final bytes per chip and kind, buffers that are still \
allocated, and of each device the energy, the highest power and the highest temperature. Children that outlive CMD are not \
waited for.

The agent, libttmon_agent.so, is preloaded into CMD and all that it starts. It is looked for beside ttmon, in ../lib/ttmon and \
../lib; TTMON_AGENT_LIB names another one, and TTMON_AGENT=off does without.

Exit codes: that of CMD, 128+N when signal N killed it, 127 when it was not found, 126 when it may not be executed; 3 leaks \
(--leaks); 2 a wrong word on the command line, or no agent.";

const AFTER_HELP_MEM: &str = "\
In a bar: buffers, then traces (DRAM) or circular buffers and L1_SMALL (L1), then what is free: light as far as a single buffer \
can have it, dots where it is in smaller pieces; at the end what no allocator hands out. Peak, pieces, banks and buffers come from \
the books of processes that run with the agent (`ttmon run`, or the Python package); without a book they are absent.

A process's figures are `exact` when they come from its book, `kernel` when the driver counts them, `reported` when it told a service (`ttmon serve`), `shm` when they \
come from tt-metal's shared memory, which counts what was asked for and not what the allocator reserved.

A report is a folder (or one file of it) that holds *memory_usage_summary.csv, *l1_usage_summary.csv, *detailed_memory_usage.csv \
of tt-metal's memory reporter, or the ttnn visualizer's db.sqlite.

On a terminal, q or Ctrl-C ends it. A program called allocation_monitor_client is `ttmon mem`.

Exit codes: as for `ttmon smi`; 2 a wrong word on the command line, or a report that cannot be read.";

const AFTER_HELP_SERVE: &str = "\
Programs that speak the protocol of tt-metal's allocation_server_poc work unchanged: they connect to --poc-socket. A program with \
ttmon's agent hands its book over by itself, early or late. As root the service sees the processes of all users, else your own.

Over HTTP there are a page for browsers at /, /metrics for Prometheus, /healthz, and the API under /api/v1 (/api/v1/openapi.json tells all of \
it). A request never takes a sample: it is answered from the last one. Other machines are served with --tls-cert, --tls-key and --token-file:

  ttmon serve --listen 0.0.0.0:9746 --tls-cert cert.pem --tls-key key.pem --token-file token
  curl -H \"Authorization: Bearer $(head -n1 token)\" https://HOST:9746/api/v1/snapshot

Log lines go to standard error. SIGTERM and Ctrl-C end the service, SIGHUP reads the configuration, certificate and token again:

  connections = 1024             # open connections on each socket
  buffers_per_process = 1000000  # that one process may report
  deaths = 1000                  # that are remembered
  interval_ms = 1000             # from one sample to the next

These may stand under [serve]. Rules and receivers of alerts are in the same file (see `ttmon alerts --help`).

Exit codes: 0 it was told to end; 2 a wrong word on the command line or in FILE, or somebody else serves at a socket; 4 not \
permitted.";

const AFTER_HELP_ALERTS: &str = "\
`ttmon serve` follows the rules and tells the receivers, again and again until they have heard. `top` and `smi` show what fires: by the \
service, or, without one, by the rules of your own file. There are rules from the start (`ttmon alerts list`).

  [[alert]]
  name = \"hot\"                  # that of a rule which is there changes it (off = true)
  when = \"asic_temp > 85 for 30s until asic_temp < 80\"
  severity = \"critical\"         # info, warning or critical
  device = \"0\"                  # or a list; all, unless named
  [[alerts.webhook]]
  url = \"https://example.org/hook\"
  [[alerts.alertmanager]]
  url = \"http://127.0.0.1:9093\"
  [[alerts.command]]
  run = [\"/usr/local/bin/page\"] # JSON on its standard input
  [alerts.desktop]               # notify-send

A rule compares figures with numbers, or with a percentage of their limit, joined by and, or, parentheses: asic_temp, power, vcore, \
current, fan, aiclk, dram, l1, trace, stale, state, sample_age, link_degraded, heartbeat, thermal_trips, untracked_processes; of processes \
process_dram, process_l1, process_host_memory, process_cpu, left_at_exit; or increase(FIGURE, 10m).

Exit codes: 0 all is well; 1 a receiver has not taken the test; 2 a wrong word on the command line, or in the file.";

const AFTER_HELP_METRICS: &str = "\
What was not measured has no line. A single sample has no counters of what went over PCIe: those are of the service (`ttmon serve`), \
which is asked when there is one. For node_exporter's textfile collector, every minute:

  * * * * * root ttmon metrics --textfile /var/lib/prometheus/node-exporter/ttmon.prom

Exit codes: 0 it is written, whatever the devices are like; 2 a wrong word on the command line; 4 not permitted.";

const AFTER_HELP_RECORD: &str = "\
Needs no terminal. Ctrl-C and SIGTERM end the recording as --for does; one line on standard error then says how many samples there are, \
and how large the file is. A recording that was cut off, by SIGKILL or a full disk, lacks its last ten seconds at the \
most. An existing file is never written over.

  ttmon record -o night.ttmon --for 8h
  ttmon record --dump night.ttmon | jq '.devices[0].power_watts'

Exit codes: as for `ttmon smi`; 1 the file cannot be written any more; 2 a wrong word on the command line, or a file that is no \
recording.";

/// Monitor for Tenstorrent AI accelerators: how are they, who uses them, and where did the memory go?
///
/// Without a command this is `ttmon top` on a terminal, and `ttmon smi` elsewhere.
#[derive(Debug, Parser)]
#[command(name = "ttmon", version, after_help = AFTER_HELP, override_usage = "ttmon [OPTIONS] [COMMAND]")]
pub struct Cli {
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Which machine to look at.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which machine")]
pub struct MachineArgs {
    /// Look at a simulated machine. SPEC: p150x4 (the default), n150, n300x4, p300x2, galaxy-wh, galaxy-bh, mixed; with
    /// faults as in `p150x4,hang=2@5s,reset=1@8s,kill=0@10s,lose=3@12s`; with `fdinfo` or `processes`, its driver counts for processes
    #[arg(long, global = true, value_name = "SPEC", num_args = 0..=1, require_equals = true, default_missing_value = "p150x4", conflicts_with = "root")]
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
    /// With --ssh: bring this program along, for machines that have none; nothing of it stays there
    #[arg(long, global = true)]
    pub push: bool,
    /// With --host and --prometheus: the token, in the first line of FILE
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// With --host and --prometheus: believe the certificates in FILE (PEM) instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Wait at most MS milliseconds for the devices; what does not answer is shown as it was
    #[arg(long, global = true, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub deadline_ms: u64,
}

impl MachineArgs {
    /// Whether other machines are looked at.
    pub fn is_far(&self) -> bool {
        !self.host.is_empty() || !self.ssh.is_empty() || self.prometheus.is_some()
    }

    /// Whether it is more than one machine.
    pub fn is_fleet(&self) -> bool {
        self.host.len() + self.ssh.len() > 1 || self.prometheus.is_some()
    }
}

impl Cli {
    /// Finds what does not go together and which no single argument can tell.
    pub fn check(&self) -> anyhow::Result<()> {
        let MachineArgs { ssh, host, push, prometheus, .. } = &self.machine;
        let shows = matches!(self.command, Command::Smi(_) | Command::Top(_) | Command::Mem(_));
        let wrong = |why: &str| Err(Failure::error(Exit::Usage, why));
        match &self.command {
            // Here the option says how the rules are printed.
            Command::Alerts(AlertsArgs { command: AlertsCommand::Export { .. }, .. }) => Ok(()),
            Command::Mem(_) if prometheus.is_some() => {
                wrong("--prometheus goes with smi and top: Prometheus is not told of buffers")
            }
            _ if !shows && self.machine.is_far() => {
                let option = match prometheus {
                    Some(_) => "--prometheus",
                    None if host.is_empty() => "--ssh",
                    None => "--host",
                };
                wrong(&format!("{option} goes with smi, top and mem: the other commands are about this machine"))
            }
            _ if *push && ssh.is_empty() => wrong("--push goes with --ssh: it brings ttmon along"),
            Command::Smi(_) | Command::Top(_) | Command::Mem(_)
                if host.is_empty()
                    && prometheus.is_none()
                    && (self.machine.token_file.is_some() || self.machine.ca.is_some()) =>
            {
                wrong("--token-file and --ca go with --host and --prometheus: they are for who is asked there")
            }
            Command::Top(top) if self.machine.is_far() && top.replay.is_some() => {
                wrong("--replay shows a file: leave out the other machines")
            }
            Command::Top(top) if self.machine.is_far() && top.record.is_some() => {
                wrong("--record is of this machine alone: run `ttmon record` on the other ones")
            }
            Command::Top(top) if self.machine.is_far() && top.topology.is_some() => {
                wrong("--topology is of one machine: leave it out, or run `ttmon top` there")
            }
            Command::Mem(mem) if self.machine.is_far() && mem.report.is_some() => {
                wrong("--report shows files: leave out the other machines")
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show all devices and processes, in the manner of nvidia-smi
    #[command(after_help = AFTER_HELP)]
    Smi(Box<SmiArgs>),
    /// Watch devices, processes and memory, with charts of the past
    Top(TopArgs),
    /// Show where device memory went: chips, processes and buffers, live
    #[command(after_help = AFTER_HELP_MEM)]
    Mem(MemArgs),
    /// Run a command and print a receipt: its device memory, what it left behind, energy and power
    #[command(after_help = AFTER_HELP_RUN, override_usage = "ttmon run [OPTIONS] [--] CMD...")]
    Run(RunArgs),
    /// Serve the device memory of all processes to everybody, and remember what the dead held
    #[command(after_help = AFTER_HELP_SERVE)]
    Serve(ServeArgs),
    /// Print what a scrape of the service would say, for Prometheus or OpenMetrics
    #[command(after_help = AFTER_HELP_METRICS)]
    Metrics(MetricsArgs),
    /// Record everything to a file, or print such a file
    #[command(after_help = AFTER_HELP_RECORD)]
    Record(RecordArgs),
    /// Check, list or test the rules that tell when something is wrong, or export them to Prometheus
    #[command(after_help = AFTER_HELP_ALERTS)]
    Alerts(AlertsArgs),
    /// Print or check the configuration of `ttmon top`, or say where it is
    Config(ConfigArgs),
    /// Run a simulated machine in a folder, for other programs to look at with --root
    Sim(SimArgs),
}

#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// Write everything to FILE, too, for --replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Show what was recorded in FILE instead of a machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "sim", "root", "service"])]
    pub replay: Option<PathBuf>,
    /// Seconds from one sample to the next
    #[arg(short, long, value_name = "SEC", value_parser = pause)]
    pub interval: Option<f64>,
    /// The configuration; $XDG_CONFIG_HOME/ttmon/config.toml, unless named
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Send no signals to processes, whatever is pressed
    #[arg(long)]
    pub read_only: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
    /// A cluster descriptor, as tt-umd writes it: where chips are and how they are linked
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct AlertsArgs {
    #[command(subcommand)]
    pub command: AlertsCommand,
    /// The file; $XDG_CONFIG_HOME/ttmon/config.toml, unless named, or /etc/ttmon/config.toml where that is missing
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum AlertsCommand {
    /// Name everything in the file that is wrong with rules and receivers, each with its line
    Check,
    /// List the rules and what they say now: of the service where there is one, else of one look at the machine
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell all receivers that this is a test, and print what each answers
    Test {
        /// In the name of this rule
        name: Option<String>,
    },
    /// Print the rules for another program
    Export {
        /// As a file of alerting rules for Prometheus
        // It stands in the place of the option that names a Prometheus, and so is of its type.
        #[arg(long, num_args = 0, default_missing_value = "rules", required = true)]
        prometheus: String,
    },
}

#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
    /// The file; $XDG_CONFIG_HOME/ttmon/config.toml, unless named
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Print all that can be chosen, as it is now, with explanations
    Print,
    /// Print where the file is
    Path,
    /// Name everything in the file that is not understood
    Check,
}

#[derive(Debug, Clone, Args)]
pub struct MemArgs {
    /// All devices; this is the default
    #[arg(short, long, conflicts_with = "device")]
    pub all: bool,
    /// Only this device: number, PCI address, serial or ASIC id. Can be given several times
    #[arg(short, long, value_name = "DEVICE", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Draw again every MS milliseconds; 1000, unless told otherwise
    #[arg(short, long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=86_400_000))]
    pub refresh: Option<u64>,
    /// Show it once and end; this is the default where standard output is no terminal
    #[arg(long)]
    pub once: bool,
    /// Everything as JSON; with -r an object a line, again and again
    #[arg(long)]
    pub json: bool,
    /// Show a report of tt-metal or of the ttnn visualizer instead of a machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sim", "root", "refresh"])]
    pub report: Option<PathBuf>,
    /// Colour: on a terminal, always or never. NO_COLOR is honoured
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Exit with 3 when CMD succeeds, but one of its processes leaves something allocated at its clean end, or when it
    /// closes a device
    #[arg(long)]
    pub leaks: bool,
    /// Write the receipt as JSON to FILE, too; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Look at power and temperature every MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub interval_ms: u64,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Listen there; the default is /run/ttmon/ttmon.sock for root, else $XDG_RUNTIME_DIR/ttmon.sock
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Listen there for clients of allocation_server_poc, or not at all; the default is /tmp/tt_allocation_server.sock
    #[arg(long, value_name = "PATH|off")]
    pub poc_socket: Option<PathBuf>,
    /// The configuration: limits, rules and receivers of alerts. /etc/ttmon/config.toml for root, else as for `ttmon top`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Serve metrics, the API and the page over HTTP there, or not at all; may be given several times [default: 127.0.0.1:9746]
    #[arg(long, value_name = "ADDR:PORT|off")]
    pub listen: Vec<String>,
    /// Serve HTTPS with this certificate (PEM), and those that vouch for it; read again at SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Answer only those who send the first line of this file: "Authorization: Bearer ..."; read again at SIGHUP
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Serve other machines without a certificate or a token, too: whoever reaches the port may look
    #[arg(long)]
    pub insecure: bool,
    #[command(flatten)]
    pub metrics: MetricOptions,
}

#[derive(Debug, Clone, Args)]
pub struct MetricsArgs {
    /// OpenMetrics instead of Prometheus text
    #[arg(long, conflicts_with = "textfile")]
    pub openmetrics: bool,
    /// Write to PATH instead, whole or not at all
    #[arg(long, value_name = "PATH")]
    pub textfile: Option<PathBuf>,
    #[command(flatten)]
    pub options: MetricOptions,
}

/// What is wanted of a scrape.
#[derive(Debug, Clone, Args)]
pub struct MetricOptions {
    /// The most series of single processes in a scrape; the largest are kept, the others summed
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub max_process_series: usize,
    /// Say the same under another program's names, too
    #[arg(long, value_name = "PROGRAM")]
    pub compat: Option<Compat>,
}

/// Other programs whose names of metrics are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    TtTelemetry,
}

impl MetricOptions {
    pub fn wanted(&self) -> web::metrics::MetricsOptions {
        let tt_telemetry = self.compat == Some(Compat::TtTelemetry);
        web::metrics::MetricsOptions { max_process_series: self.max_process_series, tt_telemetry }
    }
}

#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// Write the recording to FILE, which must be new or empty
    #[arg(short, long, value_name = "FILE", required_unless_present = "dump", conflicts_with = "dump")]
    pub output: Option<PathBuf>,
    /// End after this time, as 90s, 10m or 1h30m; else it goes on until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse, conflicts_with = "dump")]
    pub length: Option<Duration>,
    /// Take a sample this often
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::period, conflicts_with = "dump")]
    pub every: Duration,
    /// Print the samples of a recording as JSON, an object a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sim", "root"])]
    pub dump: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct SimArgs {
    /// What to simulate, as for --sim
    #[arg(default_value = "p150x4")]
    pub spec: String,
}

#[derive(Debug, Clone, Args)]
pub struct SmiArgs {
    /// Draw again every SEC seconds, in place
    #[arg(short, long, value_name = "SEC", num_args = 0..=1, default_missing_value = "1", value_parser = seconds, conflicts_with_all = ["loop_seconds", "loop_ms"])]
    pub watch: Option<f64>,
    /// Print again every SEC seconds
    #[arg(short = 'l', long = "loop", value_name = "SEC", value_parser = seconds, conflicts_with = "loop_ms")]
    pub loop_seconds: Option<f64>,
    /// Print again every MS milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=86_400_000))]
    pub loop_ms: Option<u64>,
    /// Stop after N times; every second, unless told otherwise
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Only these devices: number, PCI address, serial or ASIC id, separated by commas
    #[arg(short, long = "id", value_name = "DEVICE", value_delimiter = ',', global = true)]
    pub id: Vec<String>,
    /// One line per device
    #[arg(short = 'L', long, group = "view")]
    pub list: bool,
    /// Everything about every device, in words
    #[arg(short, long, group = "view")]
    pub query: bool,
    /// With -q: only these sections, separated by commas
    #[arg(short, long, value_name = "SECTION", value_delimiter = ',', requires = "query")]
    pub display: Vec<String>,
    /// These fields of every device, as CSV (see --help-query)
    #[arg(long, value_name = "FIELD", alias = "query-gpu", value_delimiter = ',', group = "view")]
    pub query_device: Option<Vec<String>>,
    /// These fields of every process on every device, as CSV (see --help-query)
    #[arg(long, value_name = "FIELD", alias = "query-compute-apps", value_delimiter = ',', group = "view")]
    pub query_processes: Option<Vec<String>>,
    /// With a query: csv, and any of noheader, nounits
    #[arg(long, value_name = "FORMAT", value_delimiter = ',')]
    pub format: Option<Vec<Format>>,
    /// List all fields that can be queried
    #[arg(long, alias = "help-query-gpu", alias = "help-query-compute-apps", group = "view")]
    pub help_query: bool,
    /// Everything as JSON: indented on a terminal, else one object a line
    #[arg(long, group = "view")]
    pub json: bool,
    /// The JSON of the official `tt-smi -s`, as far as the driver tells without opening a device
    #[arg(short = 's', long, alias = "snapshot", group = "view")]
    pub tt_smi: bool,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,
    /// Colour: on a terminal, always or never. NO_COLOR is honoured
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: Color,
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
    #[command(subcommand)]
    pub stream: Option<Stream>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Stream {
    /// A line per device and second
    Dmon(StreamArgs),
    /// A line per process and second
    Pmon(StreamArgs),
}

#[derive(Debug, Clone, Args)]
pub struct StreamArgs {
    /// Seconds between lines
    #[arg(short, long, value_name = "SEC", default_value = "1", value_parser = seconds)]
    pub delay: f64,
    /// Stop after N times
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Begin each line with the Date, the Time, or both
    #[arg(short, long, value_name = "DT", default_value = "", hide_default_value = true, value_parser = ["", "D", "T", "DT"])]
    pub options: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Csv,
    Noheader,
    Nounits,
}

fn pause(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 60 is needed".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.01 to 86400 is needed".into()),
    }
}

/// The command line, with the command that the program's name or its absence stands for put in. Without any it is the monitor on
/// a terminal, and a table elsewhere.
pub fn arguments(arguments: impl Iterator<Item = OsString>, is_terminal: bool) -> Vec<OsString> {
    const COMMANDS: [&str; 14] = [
        "smi",
        "top",
        "alerts",
        "config",
        "mem",
        "serve",
        "metrics",
        "record",
        "sim",
        "help",
        "-h",
        "--help",
        "-V",
        "--version",
    ];
    let mut arguments: Vec<OsString> = arguments.collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    // The program's name may stand for a command.
    let called = match name {
        Some("tt-smi") => Some("smi"),
        Some("tt-nvtop") => Some("top"),
        Some("allocation_monitor_client") => Some("mem"),
        Some("allocation_server" | "allocation_server_poc") => Some("serve"),
        _ => None,
    };
    // What stands behind `run` is another program's.
    if let Some(end) = words_before_a_command(&arguments).filter(|_| called.is_none()) {
        let command = arguments.split_off(end);
        join_sim(&mut arguments);
        arguments.extend(command);
        return arguments;
    }
    let has_command = arguments.iter().skip(1).any(|word| COMMANDS.iter().any(|command| word == command));
    // Options of smi may stand before its name.
    let smi = arguments.iter().skip(1).position(|word| word == "smi").map(|at| at + 1);
    smi.filter(|_| called.is_none()).map(|at| arguments.remove(at));
    let usual = if is_terminal && smi.is_none() && tells_only_of_the_machine(&arguments) { "top" } else { "smi" };
    if let Some(command) = called.or((smi.is_some() || !has_command).then_some(usual)) {
        arguments.insert(1.min(arguments.len()), command.into());
    }
    join_sim(&mut arguments);
    // nvidia-smi spells it with one dash.
    for argument in &mut arguments {
        if let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix("-lms")) {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            *argument = if value.is_empty() { "--loop-ms".into() } else { format!("--loop-ms={value}").into() };
        }
    }
    arguments
}

/// What is simulated may be parted from --sim by a blank.
fn join_sim(arguments: &mut Vec<OsString>) {
    if let Some(at) = arguments.iter().position(|word| word == "--sim")
        && let Some(spec) = arguments.get(at + 1).and_then(|word| word.to_str()).filter(|word| is_spec(word))
    {
        arguments[at] = format!("--sim={spec}").into();
        arguments.remove(at + 1);
    }
}

/// Whether there is nothing but which machine to look at.
fn tells_only_of_the_machine(arguments: &[OsString]) -> bool {
    const WITH_VALUE: [&str; 8] =
        ["--root", "--service", "--deadline-ms", "--host", "--ssh", "--prometheus", "--token-file", "--ca"];
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str()).peekable();
    let mut all = arguments.len().saturating_sub(1);
    while let Some(word) = words.next() {
        all -= 1;
        let name = word.split('=').next().unwrap_or(word);
        if WITH_VALUE.contains(&name) {
            all -= usize::from(name == word && words.next().is_some());
        } else if name == "--sim" {
            all -= usize::from(name == word && words.next_if(|word| is_spec(word)).is_some());
        } else if name != "--push" {
            return false;
        }
    }
    // A word that is no text is somebody else's.
    all == 0
}

/// How many words are our own when the command is `run`: those before the command that it shall run.
fn words_before_a_command(arguments: &[OsString]) -> Option<usize> {
    const WITH_VALUE: [&str; 10] = [
        "--root",
        "--service",
        "--deadline-ms",
        "--host",
        "--ssh",
        "--prometheus",
        "--token-file",
        "--ca",
        "--json",
        "--interval-ms",
    ];
    let is_value = |at: usize| {
        let is_spec = || arguments[at].to_str().is_some_and(is_spec);
        WITH_VALUE.iter().any(|option| arguments[at - 1] == *option) || (arguments[at - 1] == "--sim" && is_spec())
    };
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-") && word != "-";
    let mut words =
        (1..arguments.len()).filter(|at| arguments[*at] == "--" || !(is_option(&arguments[*at]) || is_value(*at)));
    let run = words.next().filter(|at| arguments[*at] == "run")?;
    Some(words.next().unwrap_or(arguments.len()).max(run))
}

fn is_spec(word: &str) -> bool {
    !word.starts_with('-') && word.parse::<sim::Spec>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_it_is_smi() {
        let words = |line: &str| arguments(line.split(' ').map(OsString::from), false).join(OsStr::new(" "));
        assert_eq!(words("ttmon"), "ttmon smi");
        assert_eq!(words("ttmon --sim dmon"), "ttmon smi --sim dmon");
        assert_eq!(words("ttmon --root x sim"), "ttmon --root x sim");
        assert_eq!(words("ttmon --sim --ascii smi -q"), "ttmon smi --sim --ascii -q");
        assert_eq!(words("ttmon --sim n300x4 -L"), "ttmon smi --sim=n300x4 -L");
    }

    #[test]
    fn on_a_terminal_it_is_the_monitor_unless_something_else_is_asked_for() {
        let words = |line: &str| arguments(line.split(' ').map(OsString::from), true).join(OsStr::new(" "));
        assert_eq!(words("ttmon"), "ttmon top");
        assert_eq!(words("ttmon --sim"), "ttmon top --sim");
        assert_eq!(words("ttmon --sim n300x4 --root=x"), "ttmon top --sim=n300x4 --root=x");
        assert_eq!(words("ttmon --service off"), "ttmon top --service off");
        assert_eq!(words("ttmon --host a,b --ca x"), "ttmon top --host a,b --ca x");
        assert_eq!(words("ttmon --ssh a --push"), "ttmon top --ssh a --push");
        assert_eq!(words("ttmon --sim -L"), "ttmon smi --sim -L");
        assert_eq!(words("ttmon --sim smi"), "ttmon smi --sim");
        assert_eq!(words("ttmon dmon"), "ttmon smi dmon");
        assert_eq!(words("tt-smi"), "tt-smi smi");
        assert_eq!(words("/usr/bin/tt-nvtop --sim"), "/usr/bin/tt-nvtop top --sim");
    }

    #[test]
    fn what_run_shall_run_is_left_alone() {
        let words = |line: &str| arguments(line.split(' ').map(OsString::from), false).join(OsStr::new(" "));
        for line in [
            "ttmon run -- foo smi -lms 5",
            "ttmon run python3 smi.py",
            "ttmon run smi",
            "ttmon run -- run -lms",
            "ttmon --root x run --json - foo --sim n150 smi -lms=5",
            "ttmon run --leaks --json out.json sim --sim p150x4",
            "ttmon run --interval-ms 10 -- --sim n150",
            "ttmon run",
        ] {
            assert_eq!(words(line), line);
        }
        assert_eq!(words("ttmon --sim n150 run foo --sim n150"), "ttmon --sim=n150 run foo --sim n150");
        assert_eq!(words("ttmon run --sim n150 -- foo"), "ttmon run --sim=n150 -- foo");
        assert_eq!(words("ttmon --root run -L"), "ttmon smi --root run -L");
    }

    #[test]
    fn what_stands_behind_the_command_is_its_own() {
        let run = |line: &str| match Cli::parse_from(arguments(line.split(' ').map(OsString::from), false)).command {
            Command::Run(run) => run,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            run("ttmon run foo --leaks --json x -- --sim").command,
            ["foo", "--leaks", "--json", "x", "--", "--sim"]
        );
        assert_eq!(run("ttmon run --leaks -- -x").command, ["-x"]);
        assert!(run("ttmon run --leaks -- -x").leaks && !run("ttmon run foo --leaks").leaks);
        let fails = |line: &str| Cli::try_parse_from(arguments(line.split(' ').map(OsString::from), false)).is_err();
        assert!(fails("ttmon run") && fails("ttmon run --") && fails("ttmon run --leak foo"));
    }

    #[test]
    fn a_token_is_the_service_s_own_or_for_another_machine() {
        let parsed = |line: &str| Cli::parse_from(arguments(line.split(' ').map(OsString::from), false));
        let serve = parsed("ttmon serve --token-file x");
        assert!(serve.check().is_ok());
        assert!(matches!(serve.command, Command::Serve(serve) if serve.token_file.is_some()));
        let smi = parsed("ttmon smi --host a --token-file x");
        assert!(smi.check().is_ok() && smi.machine.token_file.is_some());
    }

    #[test]
    fn a_program_s_name_can_be_a_command() {
        let words = |line: &str| arguments(line.split(' ').map(OsString::from), false).join(OsStr::new(" "));
        assert_eq!(words("/usr/bin/tt-smi -s"), "/usr/bin/tt-smi smi -s");
        assert_eq!(
            words("./build/allocation_monitor_client -a -r 500"),
            "./build/allocation_monitor_client mem -a -r 500"
        );
        assert_eq!(words("ttmon --sim n150 mem -d 0"), "ttmon --sim=n150 mem -d 0");
        assert_eq!(words("./allocation_server --poc-socket off"), "./allocation_server serve --poc-socket off");
        assert_eq!(words("ttmon serve --sim n150"), "ttmon serve --sim=n150");
        assert_eq!(words("ttmon record --sim n150 -o x"), "ttmon record --sim=n150 -o x");
        assert_eq!(words("ttmon --version"), "ttmon --version");
        assert_eq!(words("ttmon smi -lms 500"), "ttmon smi --loop-ms 500");
        assert_eq!(words("ttmon smi -lms=500"), "ttmon smi --loop-ms=500");
    }
}
