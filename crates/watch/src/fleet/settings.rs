//! The `[fleet]` table of the configuration: which other machines the service watches. Without it, none.

use super::http::PATIENCE;
use super::place::{self, HttpPlace};
use super::prometheus::{self, Prometheus};
use super::watcher::FleetSource;
use alerts::http::{Http, HttpOptions};
use alerts::{Problem, line_of};
use model::text::nearest;
use std::path::PathBuf;
use toml_edit::{Item, TableLike, Value};

/// Read again at SIGHUP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSettings {
    /// Services, named as for `--host`.
    pub hosts: Vec<HttpPlace>,
    /// Or a Prometheus that knows them.
    pub prometheus: Option<String>,
    /// File with the token for these services.
    pub token_file: Option<PathBuf>,
    /// File with the certificates to trust.
    pub ca: Option<PathBuf>,
    /// File with the certificate of this machine.
    pub client_cert: Option<PathBuf>,
    /// File with the key of that certificate.
    pub client_key: Option<PathBuf>,
    /// Where the table begins.
    line: usize,
}

/// Name of the table in the configuration file.
pub const TABLE: &str = "fleet";
/// Keys of that table.
pub const KEYS: [&str; 6] = ["hosts", "prometheus", "token_file", "ca", "client_cert", "client_key"];

/// Each machine costs a thread. Prometheus knows more with one.
const MOST: usize = 1000;

impl FleetSettings {
    /// Whether there are machines to watch.
    pub fn is_on(&self) -> bool {
        !self.hosts.is_empty() || self.prometheus.is_some()
    }

    /// Whether files are named that may have other contents by now.
    pub fn has_files(&self) -> bool {
        [&self.token_file, &self.ca, &self.client_cert, &self.client_key].into_iter().any(Option::is_some)
    }

    /// How the machines are reached. Reads the token and the certificates.
    pub fn source(&self) -> Result<Option<FleetSource>, Problem> {
        if !self.is_on() {
            return Ok(None);
        }
        let wrong = |error: anyhow::Error| Problem { line: self.line, what: format!("[{TABLE}]: {error:#}") };
        let http = |timeout| {
            let client = self.client_cert.clone().zip(self.client_key.clone());
            Http::new(&HttpOptions { timeout, ca: self.ca.clone(), token_file: self.token_file.clone(), client })
        };
        let source = match &self.prometheus {
            Some(url) => {
                http(prometheus::PATIENCE).and_then(|http| Prometheus::at(url, http)).map(FleetSource::Prometheus)
            }
            None => http(PATIENCE).map(|http| FleetSource::Http(self.hosts.clone(), http)),
        };
        source.map(Some).map_err(wrong)
    }

    /// The settings of a table. A mistake costs nothing but itself.
    pub fn read(text: &str, table: &dyn TableLike, line: usize, problems: &mut Vec<Problem>) -> FleetSettings {
        let mut settings = FleetSettings { line, ..FleetSettings::default() };
        for (name, item) in table.iter() {
            let span = table.key(name).and_then(toml_edit::Key::span).or(item.span());
            let line = line_of(text, span);
            let mut say = |what: String| problems.push(Problem { line, what });
            match name {
                "hosts" => settings.hosts = hosts(text, item, line, problems),
                "prometheus" => match item.as_str().map(|url| (url, prometheus::base_of(url))) {
                    Some((_, Ok(base))) => settings.prometheus = Some(base),
                    Some((url, Err(why))) => say(format!("{name}: {url:?}: {why}")),
                    None => say(format!("{name}: expected a URL")),
                },
                _ if !KEYS.contains(&name) => {
                    let expected = format!("expected one of {}", KEYS.join(", "));
                    let hint = nearest(name, KEYS.into_iter()).map_or(expected, |near| format!("did you mean {near}?"));
                    say(format!("unknown key {name}: {hint}"));
                }
                _ => match item.as_str() {
                    Some(path) => *settings.file(name) = Some(path.into()),
                    None => say(format!("{name}: expected the path of a file")),
                },
            }
        }
        let mut say = |what: &str| problems.push(Problem { line, what: format!("[{TABLE}]: {what}") });
        if !settings.hosts.is_empty() && settings.prometheus.is_some() {
            say("either hosts or prometheus, not both");
        }
        if settings.client_cert.is_some() != settings.client_key.is_some() {
            say("client_cert and client_key are needed together");
        }
        settings
    }

    fn file(&mut self, name: &str) -> &mut Option<PathBuf> {
        match name {
            "token_file" => &mut self.token_file,
            "ca" => &mut self.ca,
            "client_cert" => &mut self.client_cert,
            _ => &mut self.client_key,
        }
    }
}

/// The machines that are named, each once.
fn hosts(text: &str, item: &Item, line: usize, problems: &mut Vec<Problem>) -> Vec<HttpPlace> {
    let mut places: Vec<HttpPlace> = Vec::new();
    let Some(named) = item.as_array() else {
        let what = "hosts: expected a list, such as [\"lab-7\", \"https://lab-8:9746\"]".into();
        problems.push(Problem { line, what });
        return places;
    };
    if named.len() > MOST {
        let what = format!("hosts: {} machines are too many: at most {MOST}, or use prometheus", named.len());
        problems.push(Problem { line, what });
        return places;
    }
    for value in named {
        let place = match value.as_str() {
            Some(name) => place::one(name.trim()).map_err(|why| format!("hosts: {name:?}: {why}")),
            None => Err(format!("hosts: expected names in quotes, not {}", written(value))),
        };
        match place {
            Ok(place) if places.iter().any(|other| other.base == place.base) => {}
            Ok(place) => places.push(place),
            Err(what) => {
                let what = what.replace("--token-file", "token_file");
                problems.push(Problem { line: line_of(text, value.span()), what });
            }
        }
    }
    places
}

/// A value as the file has it.
fn written(value: &Value) -> String {
    value.to_string().trim().chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn problems(text: &str) -> Vec<String> {
        Config::parse(text).problems.into_iter().map(|problem| format!("{}: {}", problem.line, problem.what)).collect()
    }

    #[test]
    fn machines_are_named_as_on_the_command_line() {
        let text =
            "[fleet]\nhosts = [\"lab-7\", \"lab-8:80\", \"https://proxy/lab-9/\", \"lab-7:9746\"]\nca = \"/ca.pem\"\n";
        let fleet = Config::parse(text).fleet;
        assert_eq!(problems(text), [""; 0]);
        let bases: Vec<&str> = fleet.hosts.iter().map(|place| place.base.as_str()).collect();
        assert_eq!(bases, ["http://lab-7:9746", "http://lab-8:80", "https://proxy/lab-9"]);
        assert!(fleet.is_on() && fleet.has_files());
        let prometheus = Config::parse("[fleet]\nprometheus = \"mon:9090/\"").fleet;
        assert_eq!((prometheus.prometheus.as_deref(), prometheus.has_files()), (Some("http://mon:9090"), false));
        assert!(matches!(Config::parse("[fleet]\nhosts = []").fleet.source(), Ok(None)));
        assert!(!Config::parse("").fleet.is_on());
    }

    #[test]
    fn a_mistake_is_one_sentence_with_its_line() {
        let text = "[fleet]\nhosts = [\n  \"lab-7\",\n  \"lab 8\",\n  9,\n  \"http://me:secret@lab\",\n]\nhostz = []\n";
        assert_eq!(
            problems(text),
            [
                "4: hosts: \"lab 8\": is no machine: invalid uri character",
                "5: hosts: expected names in quotes, not 9",
                "6: hosts: \"http://me:secret@lab\": a URL without user and without question is needed; a token goes into a file: token_file",
                "8: unknown key hostz: did you mean hosts?",
            ]
        );
        let expected = "2: hosts: expected a list, such as [\"lab-7\", \"https://lab-8:9746\"]";
        assert_eq!(problems("[fleet]\nhosts = \"lab-7\""), [expected]);
        assert_eq!(problems("[fleet]\nca = 3"), ["2: ca: expected the path of a file"]);
        assert_eq!(
            problems("[fleet]\nprometheus = \"ftp://x\"\nclient_key = \"/k\""),
            [
                "1: [fleet]: client_cert and client_key are needed together",
                "2: prometheus: \"ftp://x\": a URL starts with http:// or https:// and a host name",
            ]
        );
        let both = "\n[fleet]\nhosts = [\"a\"]\nprometheus = \"b\"";
        assert_eq!(problems(both), ["2: [fleet]: either hosts or prometheus, not both"]);
        let many = format!("[fleet]\nhosts = [{}]", "\"a\",".repeat(1001));
        assert_eq!(problems(&many), ["2: hosts: 1001 machines are too many: at most 1000, or use prometheus"]);
        assert_eq!(problems("fleet = 3"), ["1: fleet must be a table, [fleet]"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_the_line_of_the_table() {
        let fleet = Config::parse("\n\n[fleet]\nhosts = [\"a\"]\ntoken_file = \"/nonexistent/token\"").fleet;
        let Err(problem) = fleet.source() else { panic!("there is no such file") };
        assert_eq!((problem.line, problem.what.starts_with("[fleet]: /nonexistent/token: ")), (3, true), "{problem:?}");
    }
}
