//! Which of the two formats a client prefers, from its `Accept` header.

use super::MetricsFormat;

impl MetricsFormat {
    /// The preferred format. OpenMetrics must be named; a client that takes anything gets the older text.
    pub fn wanted(accept: &str) -> MetricsFormat {
        let (mut openmetrics, mut text) = (0.0f32, 0.0f32);
        for range in accept.split(',') {
            let mut parameters = range.split(';').map(str::trim);
            let kind = parameters.next().unwrap_or_default();
            let (mut quality, mut version) = (1.0f32, None);
            for (name, value) in parameters.filter_map(|parameter| parameter.split_once('=')) {
                let value = value.trim().trim_matches('"');
                match name.trim() {
                    name if name.eq_ignore_ascii_case("q") => quality = value.parse().unwrap_or(0.0),
                    name if name.eq_ignore_ascii_case("version") => version = Some(value),
                    _ => {}
                }
            }
            let is = |name: &str| kind.eq_ignore_ascii_case(name);
            if is("application/openmetrics-text") && version.is_none_or(|version| version == "1.0.0") {
                openmetrics = openmetrics.max(quality);
            } else if is("text/plain") && version.is_none_or(|version| version == "0.0.4") || is("text/*") || is("*/*")
            {
                text = text.max(quality);
            }
        }
        if openmetrics > 0.0 && openmetrics >= text { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus }
    }
}
