//! The command line of `ttmon top`.

use std::path::PathBuf;
use watch::args::{DeepArgs, DeviceArgs};
use watch::past::StretchArgs;

/// The arguments of `ttmon top`.
#[derive(Debug, Clone, clap::Args)]
pub struct TopArgs {
    /// Also write every sample to FILE, for --replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Show the recording in FILE instead of a machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "sim", "root", "service"])]
    pub replay: Option<PathBuf>,
    /// Show the machine as it was at TIME, such as 14:05, "yesterday 14:05" or "20m ago": from the black box, or from --replay
    #[arg(long, value_name = "TIME", conflicts_with_all = ["record", "sim", "root", "from", "to"])]
    pub at: Option<String>,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub stretch: StretchArgs,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Read /dev/kmsg, and list what the kernel's log says of devices among the events
    #[arg(long, conflicts_with = "replay")]
    pub kernel_log: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub deep: DeepArgs,
    /// Seconds from one sample to the next
    #[arg(short = 'd', long, alias = "delay", value_name = "SEC", value_parser = pause)]
    pub interval: Option<f64>,
    /// Configuration file; default: $XDG_CONFIG_HOME/ttmon/config.toml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Never send signals to processes
    #[arg(long)]
    pub read_only: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
    /// Draw without colours
    #[arg(long)]
    pub no_color: bool,
    /// Temperatures in °F
    #[arg(long)]
    pub fahrenheit: bool,
    /// Draw no charts
    #[arg(long)]
    pub no_charts: bool,
    /// Draw no list of processes
    #[arg(long)]
    pub no_processes: bool,
    /// Charts with the newest value at the left
    #[arg(long)]
    pub reversed: bool,
    /// Cluster descriptor of tt-umd, with the positions and links of the chips
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
}

impl TopArgs {
    /// Whether the past is shown, not the present.
    pub fn is_of_the_past(&self) -> bool {
        self.replay.is_some() || self.at.is_some() || self.stretch.from.is_some() || self.stretch.to.is_some()
    }
}

fn pause(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.1 to 60".into()),
    }
}
