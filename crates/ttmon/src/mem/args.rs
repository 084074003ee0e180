//! The command line of `ttmon mem`.

use crate::screen::Color;
use std::path::PathBuf;

pub const AFTER_HELP: &str = "\
In a bar: buffers, then traces (DRAM) or circular buffers and L1_SMALL (L1), then free memory: light for the largest free block, \
dots for smaller blocks; at the end what no allocator hands out. Peak, free blocks, banks and buffers come from \
processes that run with the agent (`ttmon run`, or the Python package); without it there is no per-buffer data.

A process's figures are `exact` when they come from the agent, `kernel` when the driver counts them, `reported` when it reports to a \
service (`ttmon serve`), `shm` when they come from tt-metal's shared memory, which counts requested and not reserved bytes.

A report is a folder (or one file of it) that holds *memory_usage_summary.csv, *l1_usage_summary.csv, *detailed_memory_usage.csv \
of tt-metal's memory reporter, or the ttnn visualizer's db.sqlite.

On a terminal, q or Ctrl-C quits. A program called allocation_monitor_client is `ttmon mem`.

Exit codes: as for `ttmon smi`; 2 invalid arguments, or a report that cannot be read.";

#[derive(Debug, Clone, clap::Args)]
pub struct MemArgs {
    /// All devices; this is the default
    #[arg(short, long, conflicts_with = "device")]
    pub all: bool,
    /// Only this device: number, PCI address, serial or ASIC id. Can be given several times
    #[arg(short, long, value_name = "DEVICE", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Redraw every MS milliseconds (default: 1000)
    #[arg(short, long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=86_400_000))]
    pub refresh: Option<u64>,
    /// Show it once and exit; the default where standard output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Everything as JSON; with -r one object per line, repeatedly
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
