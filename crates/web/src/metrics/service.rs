//! The figures of the service itself, one row each: only a scrape has them.

use model::figure::{Figure, Metric, Unit, Value};

/// What the service knows of itself.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ServiceFigures {
    /// The version of the program.
    pub version: &'static str,
    /// How long ago the sample was taken.
    pub sample_age_seconds: Option<f64>,
    /// Samples that were taken; absent where nothing is counted, as are the following.
    pub samples: Option<u64>,
    /// Failed reads in all samples.
    pub faults: Option<u64>,
    /// Processes that exited while they used a device.
    pub deaths: Option<u64>,
    /// Requests that were answered over HTTP.
    pub requests: Option<u64>,
    /// Open connections.
    pub clients: Option<u64>,
}

const fn count(name: &'static str, help: &'static str, metric: Option<Metric>, get: Get) -> Figure<ServiceFigures> {
    Figure { metric, ..Figure::new(name, Unit::Count, help, (get, |_, _, _| {})) }
}

type Get = for<'a> fn(&'a ServiceFigures, usize) -> Option<Value<'a>>;

static BUILD: Figure<ServiceFigures> = Figure {
    metric: Metric::info("ttmon_build", "version"),
    ..Figure::new(
        "version",
        Unit::Text,
        "Version of ttmon.",
        (|service, _| Some(Value::text(service.version)), |_, _, _| {}),
    )
};

static SAMPLE_AGE: Figure<ServiceFigures> = Figure {
    metric: Metric::gauge("ttmon_sample_age_seconds"),
    ..Figure::new(
        "sample_age_seconds",
        Unit::Seconds,
        "Age of the sample at the time of the scrape.",
        (|service, _| service.sample_age_seconds.map(Value::Real), |_, _, _| {}),
    )
};

static SAMPLES: Figure<ServiceFigures> =
    count("samples", "Samples taken.", Metric::counter("ttmon_samples"), |service, _| {
        service.samples.map(Value::Whole)
    });

static READ_FAULTS: Figure<ServiceFigures> =
    count("read_faults", "Reads that failed, in all samples.", Metric::counter("ttmon_read_faults"), |service, _| {
        service.faults.map(Value::Whole)
    });

static DEATHS: Figure<ServiceFigures> = count(
    "process_deaths",
    "Processes that exited while they used a device.",
    Metric::counter("ttmon_process_deaths"),
    |service, _| service.deaths.map(Value::Whole),
);

static REQUESTS: Figure<ServiceFigures> =
    count("http_requests", "HTTP requests answered.", Metric::counter("ttmon_http_requests"), |service, _| {
        service.requests.map(Value::Whole)
    });

static CONNECTIONS: Figure<ServiceFigures> =
    count("http_connections", "Open HTTP connections.", Metric::gauge("ttmon_http_connections"), |service, _| {
        service.clients.map(Value::Whole)
    });

/// All figures of the service, in the order in which they are written.
pub static SERVICE_FIGURES: &[&Figure<ServiceFigures>] =
    &[&BUILD, &SAMPLE_AGE, &SAMPLES, &READ_FAULTS, &DEATHS, &REQUESTS, &CONNECTIONS];
