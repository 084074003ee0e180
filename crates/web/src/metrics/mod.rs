//! What Prometheus reads: a snapshot and the service's own counts as text. Pure: no clock, no state.

use model::Snapshot;

/// What there is to tell.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// The machine.
    pub snapshot: &'a Snapshot,
    /// The service itself.
    pub counts: &'a Counts,
}

/// What the service says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples that it has published.
    pub samples: u64,
    /// Requests that it has answered.
    pub requests: u64,
    /// Connections that are open.
    pub clients: u64,
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `text/plain; version=0.0.4`.
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Format {
    /// What the HTTP header says.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All metrics.
pub fn write(now: &Figures<'_>, format: Format) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let schema = now.snapshot.schema;
    let info = format!("ttmon_build_info{{version=\"{version}\",schema=\"{schema}\"}} 1\n");
    match format {
        Format::Prometheus => {
            format!("# HELP ttmon_build_info The program that tells this.\n# TYPE ttmon_build_info gauge\n{info}")
        }
        Format::OpenMetrics => {
            format!("# TYPE ttmon_build info\n# HELP ttmon_build The program that tells this.\n{info}# EOF\n")
        }
    }
}
