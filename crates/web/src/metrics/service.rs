//! The figures of the service itself, one row each: only a scrape has them.

use super::family::{counter, gauge, info, rows};
use model::figure::{Figure, Unit, Value};

/// Figures of the service itself.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ServiceFigures {
    /// Version of ttmon.
    pub version: &'static str,
    /// Time since the last sample.
    pub sample_age_seconds: Option<f64>,
    /// Samples that were taken; absent where nothing is counted, as are the following.
    pub samples: Option<u64>,
    /// Reads that failed.
    pub faults: Option<u64>,
    /// Processes that exited with device memory.
    pub deaths: Option<u64>,
    /// HTTP requests that were answered.
    pub requests: Option<u64>,
    /// Open HTTP connections.
    pub clients: Option<u64>,
}

/// All figures of the service, in the order in which they are written.
pub static SERVICE_FIGURES: &[&Figure<ServiceFigures>] = rows![ServiceFigures;
    info("ttmon_build", "version", "Version of ttmon.", |service, _| Some(Value::text(service.version))),
    Figure {
        unit: Unit::Seconds,
        ..gauge("ttmon_sample_age_seconds", "Age of the sample at the time of the scrape.", |service, _| {
            service.sample_age_seconds.map(Value::Real)
        })
    },
    counter("ttmon_samples", "Samples taken.", |service, _| service.samples.map(Value::Whole)),
    counter("ttmon_read_faults", "Reads that failed, in all samples.", |service, _| service.faults.map(Value::Whole)),
    counter("ttmon_process_deaths", "Processes that exited while they used a device.", |service, _| {
        service.deaths.map(Value::Whole)
    }),
    counter("ttmon_http_requests", "HTTP requests answered.", |service, _| service.requests.map(Value::Whole)),
    gauge("ttmon_http_connections", "Open HTTP connections.", |service, _| service.clients.map(Value::Whole)),
];
