//! `ttmon metrics`: what a scrape of the service would say, once.

use serve::MetricOptions;
use show::text::clean;
use std::io::{self, Write};
use std::path::PathBuf;
use watch::args::MachineArgs;
use watch::atomic_file::replace_file;
use watch::exit::{Exit, Failure};
use watch::machine::Machine;
use web::metrics::{MetricsFormat, MetricsInput, ServiceFigures};

pub const AFTER_HELP: &str = "\
What was not measured has no line. A single sample has no PCIe counters: the service (`ttmon serve`) has them, \
and is used when it runs. For node_exporter's textfile collector, every minute:

  * * * * * root ttmon metrics --textfile /var/lib/prometheus/node-exporter/ttmon.prom

Exit codes: 0 written, whatever the state of the devices; 2 invalid arguments; 4 permission denied.";

#[derive(Debug, Clone, clap::Args)]
pub struct MetricsArgs {
    /// OpenMetrics instead of Prometheus text
    #[arg(long, conflicts_with = "textfile")]
    pub openmetrics: bool,
    /// Write to PATH instead, atomically
    #[arg(long, value_name = "PATH")]
    pub textfile: Option<PathBuf>,
    #[command(flatten)]
    pub options: MetricOptions,
}

pub fn run(machine: &MachineArgs, args: &MetricsArgs) -> anyhow::Result<Exit> {
    let options = args.options.wanted()?;
    let mut opened = Machine::open(machine, false)?.through_service(machine);
    let snapshot = opened.sample();
    // The sample was taken for this.
    let (version, sample_age_seconds) = (env!("CARGO_PKG_VERSION"), Some(0.0));
    let service = ServiceFigures { version, sample_age_seconds, ..ServiceFigures::default() };
    let input = MetricsInput { snapshot: &snapshot, service, options: &options };
    let text = web::metrics::write(
        &input,
        if args.openmetrics { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus },
    );
    let written = match &args.textfile {
        Some(path) => replace_file(path, text.as_bytes())
            .map_err(|error| Failure::of_io(&error, format!("--textfile {}: {error}", path.display()))),
        None => print(&text).map_err(Into::into),
    };
    opened.leave();
    written.map(|()| Exit::Success)
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // Labels may hold what processes call themselves, and a pipe may end at a terminal.
    for line in text.lines() {
        writeln!(out, "{}", clean(line))?;
    }
    out.flush()
}
