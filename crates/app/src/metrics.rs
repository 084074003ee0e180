//! `ttmon metrics`: what a scrape of the service would say, once.

use crate::cli::{MachineArgs, MetricsArgs};
use crate::exit::{Exit, Failure};
use crate::machine::Machine;
use crate::replace::replace_file;
use crate::text::clean;
use std::io::{self, IsTerminal, Write};
use web::metrics::{MetricsFormat, MetricsInput, ServiceFigures};

pub fn run(machine: &MachineArgs, args: &MetricsArgs) -> anyhow::Result<Exit> {
    let mut opened = Machine::open(machine, false)?.through_service(machine);
    let snapshot = opened.sample();
    // The sample was taken for this.
    let (version, sample_age_seconds) = (env!("CARGO_PKG_VERSION"), Some(0.0));
    let service = ServiceFigures { version, sample_age_seconds, ..ServiceFigures::default() };
    let input = MetricsInput { snapshot: &snapshot, service, options: args.options.wanted() };
    let text = web::metrics::write(
        &input,
        if args.openmetrics { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus },
    );
    let written = match &args.textfile {
        Some(path) => replace_file(path, text.as_bytes()).map_err(|error| {
            let exit = if error.kind() == io::ErrorKind::PermissionDenied { Exit::Permission } else { Exit::Usage };
            Failure::error(exit, format!("--textfile {}: {error}", path.display()))
        }),
        None => print(&text).map_err(Into::into),
    };
    opened.leave();
    written.map(|()| Exit::Success)
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        // Labels may hold what processes call themselves.
        for line in text.lines() {
            writeln!(out, "{}", clean(line))?;
        }
    } else {
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}
