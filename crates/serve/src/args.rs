//! The command line of `ttmon serve`.

use alerts::log::{LogLevel, LogOptions};
use clap::Args as ClapArgs;
use std::path::PathBuf;
use watch::args::DeviceArgs;
use watch::exit::{Exit, Failure};
use web::metrics::UnknownFamily;

/// The end of the help text.
pub const AFTER_HELP: &str = "\
Programs that speak the protocol of tt-metal's allocation_server_poc work unchanged: they connect to --poc-socket. A program with \
ttmon's agent hands its book over by itself, early or late. As root the service sees the processes of all users, else your own.

Over HTTP there are a page for browsers at /, /metrics for Prometheus, /-/ready and /-/healthy for probes, and the API under /api/v1 (described in \
/api/v1/openapi.json). A request never takes a sample: it is answered from the last one. Other machines are served with --tls-cert, --tls-key and --token-file:

  ttmon serve --listen 0.0.0.0:9746 --tls-cert cert.pem --tls-key key.pem --token-file token
  curl -H \"Authorization: Bearer $(head -n1 token)\" https://HOST:9746/api/v1/snapshot

Log lines go to standard error. SIGTERM and Ctrl-C end the service, SIGHUP reads the configuration, certificate and token again:

  connections = 1024             # open connections of one user on each socket
  buffers_per_process = 250000   # that one process may report
  buffers_per_user = 250000      # that all processes of one user may report
  deaths = 1000                  # exited processes that are remembered
  interval_ms = 1000             # from one sample to the next
  kernel_log = false             # whether events have what the kernel's log says of devices
  deep = false                   # true: read the firmware's telemetry of devices in use, for all clients; \"idle\": of all
  black_box = false              # true, or a folder: keep the last days on disk
  black_box_mib = 256            # as large as this

These go under [serve], or at the top of the file. Other machines, which the page shows at #/fleet, are named under [fleet]:

  hosts = [\"lab-7\", \"https://lab-8:9746\"]   # as for --host; token_file, ca, client_cert and client_key likewise
  prometheus = \"http://mon:9090\"             # instead of hosts: all that this Prometheus scrapes

Rules and receivers of alerts are in the same file (see `ttmon alerts --help`).

Exit codes: 0 terminated by a signal; 2 invalid arguments or configuration, or no socket can be opened; 4 not permitted.";

/// The arguments of `ttmon serve`.
#[derive(Debug, Clone, ClapArgs)]
pub struct Args {
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
    /// Serve only clients that show a certificate of one of these authorities (PEM); read again at SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Answer only requests that send the first line of this file: "Authorization: Bearer ..."; read again at SIGHUP
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Serve other machines without a certificate or a token, which allows unauthenticated access
    #[arg(long)]
    pub insecure: bool,
    /// Read /dev/kmsg: what the kernel's log says of devices is in events, as with `kernel_log = true`
    #[arg(long)]
    pub kernel_log: bool,
    /// Keep what this machine did in the last days in this folder, as with `black_box = "DIR"`, or not at all [default: off]
    #[arg(long, value_name = "DIR|off")]
    pub black_box: Option<PathBuf>,
    /// Log lines of this severity and graver ones
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = LogLevel::WORDS.map(|(word, _)| word))]
    pub log_level: String,
    /// Log keys and values, or an object of JSON a line
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub log_format: String,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub devices: DeviceArgs,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub metrics: MetricOptions,
}

/// What is wanted of a scrape.
#[derive(Debug, Clone, ClapArgs)]
pub struct MetricOptions {
    /// Write only these metrics: names as in /metrics, or beginnings such as `ttmon_device_pcie_*`, separated by commas
    #[arg(long = "metrics", value_name = "NAME", value_delimiter = ',')]
    pub families: Vec<String>,
    /// Write no series of single processes
    #[arg(long)]
    pub no_processes: bool,
    /// The most series of single processes in a scrape; the largest are kept, the others summed
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub max_process_series: usize,
    /// Also write the metrics under the names of another program
    #[arg(long, value_name = "PROGRAM", value_parser = ["tt-telemetry"])]
    pub compat: Option<String>,
}

impl Args {
    /// The level and the form of the log.
    pub fn log_options(&self) -> LogOptions {
        let level = LogLevel::WORDS.iter().find(|(word, _)| *word == self.log_level);
        LogOptions { level: level.map_or(LogLevel::Info, |(_, level)| *level), is_json: self.log_format == "json" }
    }
}

impl MetricOptions {
    /// The choice of metrics; an error for a name that no metric has.
    pub fn wanted(&self) -> anyhow::Result<web::metrics::MetricsOptions> {
        let options = web::metrics::MetricsOptions {
            families: self.families.clone(),
            processes: !self.no_processes,
            max_process_series: self.max_process_series,
            tt_telemetry: self.compat.is_some(),
        };
        match options.check() {
            Ok(()) => Ok(options),
            Err(UnknownFamily { typed, nearest }) => {
                let near = nearest.map_or_else(String::new, |name| format!(": did you mean {name}?"));
                Err(Failure::error(Exit::Usage, format!("--metrics: there is no metric {typed:?}{near}")))
            }
        }
    }
}
