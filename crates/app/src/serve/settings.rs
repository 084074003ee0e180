//! Limits, from the command line's configuration file or as they are by nature.

use crate::exit::{Exit, Failure};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

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
    /// Reads the file, if there shall be one.
    pub fn read(file: Option<&Path>) -> anyhow::Result<Limits> {
        let Some(file) = file else { return Ok(Limits::default()) };
        let wrong = |why: String| Failure::error(Exit::Usage, format!("--config {}: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        parse(&text).map_err(wrong)
    }

    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }
}

fn parse(text: &str) -> Result<Limits, String> {
    let limits: Limits = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("line {line}: {}", error.message())
    })?;
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
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let why = |text| parse(text).unwrap_err();
        assert!(why("deaths = 1\nconections = 7").starts_with("line 2: unknown field `conections`, expected one of"));
        assert!(why("deaths = many").starts_with("line 1: "));
        assert_eq!(why("interval_ms = 0"), "interval_ms = 0 is not from 10 to 3600000");
    }
}
