//! The command line of `ttmon top`.

use std::path::PathBuf;

/// What `ttmon top` is told.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
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

fn pause(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 60 is needed".into()),
    }
}
