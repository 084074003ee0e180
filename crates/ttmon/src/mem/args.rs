//! The command line of `ttmon mem`.

use crate::screen::Color;
use std::path::PathBuf;

pub const AFTER_HELP: &str = "\
In a bar: buffers, then traces (DRAM) or circular buffers and L1_SMALL (L1), then what is free: light as far as a single buffer \
can have it, dots where it is in smaller pieces; at the end what no allocator hands out. Peak, pieces, banks and buffers come from \
the books of processes that run with the agent (`ttmon run`, or the Python package); without a book they are absent.

A process's figures are `exact` when they come from its book, `kernel` when the driver counts them, `reported` when it told a service (`ttmon serve`), `shm` when they \
come from tt-metal's shared memory, which counts what was asked for and not what the allocator reserved.

A report is a folder (or one file of it) that holds *memory_usage_summary.csv, *l1_usage_summary.csv, *detailed_memory_usage.csv \
of tt-metal's memory reporter, or the ttnn visualizer's db.sqlite.

On a terminal, q or Ctrl-C ends it. A program called allocation_monitor_client is `ttmon mem`.

Exit codes: as for `ttmon smi`; 2 a wrong word on the command line, or a report that cannot be read.";

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
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
