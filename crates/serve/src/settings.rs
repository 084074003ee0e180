//! Limits, from the command line's configuration file or as they are by nature.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io;
use std::path::Path;
use std::time::Duration;
use watch::config;
use watch::exit::{Exit, Failure};

/// What the service allows. The file is TOML, `connections = 2000`, and read again at SIGHUP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Open connections, on each of the two sockets.
    pub connections: usize,
    /// Live buffers that one process may report. What it keeps in a book has a limit of its own.
    pub buffers_per_process: usize,
    /// Deaths that are remembered.
    pub deaths: usize,
    /// Milliseconds from one sample to the next.
    pub interval_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 1024, buffers_per_process: 1_000_000, deaths: 1000, interval_ms: 1000 }
    }
}

impl Limits {
    /// Reads the file: the one that is named, or that which is there.
    pub fn read(named: Option<&Path>) -> anyhow::Result<Limits> {
        let file = config::place(named, true)?;
        let option = if named.is_some() { "--config " } else { "" };
        let wrong = |why: String| Failure::error(Exit::Usage, format!("{option}{}: {why}", file.display()));
        match std::fs::read_to_string(&file) {
            Ok(text) => parse(&text).map_err(wrong),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(Limits::default()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }
}

/// The whole file: limits in `[serve]`, or at its top, and what others read.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Whole {
    connections: Option<usize>,
    buffers_per_process: Option<usize>,
    deaths: Option<usize>,
    interval_ms: Option<u64>,
    serve: Limits,
    top: IgnoredAny,
    alert: IgnoredAny,
    alerts: IgnoredAny,
}

fn parse(text: &str) -> Result<Limits, String> {
    let whole: Whole = toml_edit::de::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", error.message())
    })?;
    let Whole { connections, buffers_per_process, deaths, interval_ms, serve, .. } = whole;
    let limits = Limits {
        connections: connections.unwrap_or(serve.connections),
        buffers_per_process: buffers_per_process.unwrap_or(serve.buffers_per_process),
        deaths: deaths.unwrap_or(serve.deaths),
        interval_ms: interval_ms.unwrap_or(serve.interval_ms),
    };
    match limits {
        Limits { interval_ms: 10..=3_600_000, .. } => Ok(limits),
        _ => Err(format!("interval_ms = {} is not from 10 to 3600000", limits.interval_ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_file_does_not_say_stays_as_it_is() {
        let expected = Limits { connections: 7, interval_ms: 500, ..Limits::default() };
        assert_eq!(parse("connections = 7 # few\ninterval_ms = 500\n"), Ok(expected));
        assert_eq!(parse(""), Ok(Limits::default()));
        let others = "[top]\ntheme = \"light\"\n[[alert]]\nname = \"x\"\n[alerts.desktop]\n[serve]\nconnections = 7\ninterval_ms = 500\n";
        assert_eq!(parse(others).unwrap().connections, 7);
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let why = |text| parse(text).unwrap_err();
        assert!(why("deaths = 1\nconections = 7").starts_with("line 2: unknown field `conections`, expected one of"));
        assert!(why("deaths = many").starts_with("line 1: "));
        assert_eq!(why("interval_ms = 0"), "interval_ms = 0 is not from 10 to 3600000");
    }
}
