//! The command line of `ttmon smi`.

use super::groups::Grouping;
use crate::screen::Color;
use clap::{Subcommand, ValueEnum};
use std::ops::Deref;
use std::path::PathBuf;
use watch::args::DeepArgs;

#[derive(Debug, Clone, clap::Args)]
pub struct SmiArgs {
    #[command(flatten)]
    pub options: SmiOptions,
    #[command(subcommand)]
    pub stream: Option<StreamCommand>,
}

impl Deref for SmiArgs {
    type Target = SmiOptions;

    fn deref(&self) -> &SmiOptions {
        &self.options
    }
}

/// All but its commands: to define these takes a tenth of the time of a start.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SmiOptions {
    /// Redraw every SEC seconds, in place
    #[arg(short, long, value_name = "SEC", num_args = 0..=1, default_missing_value = "1", value_parser = seconds, conflicts_with_all = ["loop_seconds", "loop_ms"])]
    pub watch: Option<f64>,
    /// Print again every SEC seconds; 5 unless named
    #[arg(short = 'l', long = "loop", value_name = "SEC", num_args = 0..=1, default_missing_value = "5", value_parser = seconds, conflicts_with = "loop_ms")]
    pub loop_seconds: Option<f64>,
    /// Print again every MS milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=86_400_000))]
    pub loop_ms: Option<u64>,
    /// Stop after N times (default interval: 1 second)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Read twice, 250 ms apart, to verify that the firmware heartbeat counts up
    #[arg(long, conflicts_with_all = ["watch", "loop_seconds", "loop_ms", "count"])]
    pub verify: bool,
    #[command(flatten)]
    pub deep: DeepArgs,
    /// Only these devices: number, PCI address, serial or ASIC id, separated by commas
    #[arg(short, long = "id", value_name = "DEVICE", value_delimiter = ',', global = true)]
    pub id: Vec<String>,
    /// One line per device
    #[arg(short = 'L', long, alias = "list-gpus", group = "view")]
    pub list: bool,
    /// Everything about every device, as text
    #[arg(short, long, group = "view")]
    pub query: bool,
    /// With -q: as XML
    #[arg(short, long = "xml-format")]
    pub xml: bool,
    /// With -q: only these sections, separated by commas
    #[arg(short, long, value_name = "SECTION", value_delimiter = ',', requires = "query")]
    pub display: Vec<String>,
    /// These fields of every device, as CSV (see --help-query)
    #[arg(long, value_name = "FIELD", alias = "query-gpu", value_delimiter = ',', group = "view")]
    pub query_device: Option<Vec<String>>,
    /// These fields of every process on every device, as CSV (see --help-query)
    #[arg(long, value_name = "FIELD", alias = "query-compute-apps", value_delimiter = ',', group = "view")]
    pub query_processes: Option<Vec<String>>,
    /// With a query or --by: csv, and any of noheader, nounits
    #[arg(long, value_name = "FORMAT", value_delimiter = ',')]
    pub format: Option<Vec<CsvOption>>,
    /// One line per user: processes, devices, memory, utilization, and power of devices that only they hold; or per
    /// Slurm job, systemd unit or pod
    #[arg(long, value_name = "WHOSE", conflicts_with_all = ["list", "query", "xml", "query_device", "query_processes", "help_query", "tt_smi", "version"])]
    pub by: Option<Grouping>,
    /// With --by: only processes that match (see `ttmon help filter`)
    #[arg(long, value_name = "FILTER", requires = "by")]
    pub filter: Option<String>,
    /// List all fields that can be queried
    #[arg(long, alias = "help-query-gpu", alias = "help-query-compute-apps", group = "view")]
    pub help_query: bool,
    /// Everything as JSON: indented on a terminal, else one object per line
    #[arg(long, group = "view")]
    pub json: bool,
    /// The JSON of the official `tt-smi -s`, as far as the driver provides it without opening a device
    #[arg(short = 's', long, alias = "snapshot", group = "view")]
    pub tt_smi: bool,
    /// The list of `tt-smi -ls`
    #[arg(long, group = "view", hide = true)]
    pub tt_smi_list: bool,
    /// The list of `tt-smi -glx_list_tray_to_device`
    #[arg(long, group = "view", hide = true)]
    pub tt_smi_trays: bool,
    /// Make the folder of FILE, and print where it is, as tt-smi does
    #[arg(long, requires = "filename", hide = true)]
    pub saved: bool,
    /// Print the versions of ttmon and of the driver
    #[arg(short = 'V', short_alias = 'v', long, group = "view")]
    pub version: bool,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,
    /// Colour: on a terminal, always or never. NO_COLOR is honoured
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: Color,
    /// The same as --color=never
    #[arg(long, global = true, conflicts_with = "color")]
    pub no_color: bool,
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub enum StreamCommand {
    /// Print a line per device, every second
    Dmon(StreamArgs),
    /// Print a line per process, every second
    Pmon(ProcessStreamArgs),
    /// Show which chips are joined, as a matrix
    Topo(TopoArgs),
    /// List the Ethernet links of each chip
    Nvlink(LinkArgs),
}

impl StreamCommand {
    /// Those of a command that prints again and again.
    pub fn args(&self) -> Option<&StreamArgs> {
        match self {
            StreamCommand::Dmon(args) | StreamCommand::Pmon(ProcessStreamArgs { stream: args, .. }) => Some(args),
            StreamCommand::Topo(_) | StreamCommand::Nvlink(_) => None,
        }
    }
}

#[derive(Debug, Clone, Default, clap::Args)]
pub struct ProcessStreamArgs {
    #[command(flatten)]
    pub stream: StreamArgs,
    /// Also the parts of used memory: L1_SMALL, traces and circular buffers
    #[arg(long)]
    pub parts: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct TopoArgs {
    /// The matrix; this is the default
    #[arg(short, long)]
    pub matrix: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct LinkArgs {
    /// The links and their state; this is the default
    #[arg(short, long)]
    pub status: bool,
}

#[derive(Debug, Clone, Default, clap::Args)]
pub struct StreamArgs {
    /// Seconds between lines
    #[arg(short, long, value_name = "SEC", default_value = "1", value_parser = seconds)]
    pub delay: f64,
    /// Stop after N times
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Only these groups of columns: p power and temperature, u utilization, c clocks, m memory, t PCIe traffic; v and e are not measured
    #[arg(short, long, value_name = "GROUPS", value_parser = groups)]
    pub select: Option<String>,
    /// Write to FILE instead of standard output
    #[arg(short, long = "filename", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Begin each line with the Date, the Time, or both
    #[arg(short, long, value_name = "DT", default_value = "", hide_default_value = true, value_parser = ["", "D", "T", "DT"])]
    pub options: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CsvOption {
    // A blank may follow the comma of a list.
    #[value(alias = " csv")]
    Csv,
    #[value(alias = " noheader")]
    Noheader,
    #[value(alias = " nounits")]
    Nounits,
}

fn groups(text: &str) -> Result<String, String> {
    match text.chars().find(|letter| !"pucvmet".contains(*letter)) {
        None if !text.is_empty() => Ok(text.to_owned()),
        _ => Err("expected some of the letters p, u, c, v, m, e and t".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.01 to 86400".into()),
    }
}
