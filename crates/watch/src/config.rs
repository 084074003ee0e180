//! The configuration: where its file is, and the one reader of it.

use crate::exit::{Exit, Failure, say};
use crate::fleet::settings::{self as fleet_settings, FleetSettings};
use crate::service_limits::{self, ServiceLimits};
use alerts::settings::{self, AlertSettings};
use alerts::{Problem, Rule, line_of};
use model::text::did_you_mean;
use rustix::process::geteuid;
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{Document, Item, Key, TableLike, TomlError};

/// Where the file is: the named one, or that of the user.
pub fn path(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    let why =
        "neither XDG_CONFIG_HOME nor HOME is set, so there is no folder for a configuration: name one with --config";
    folder.map(|folder| folder.join("ttmon/config.toml")).ok_or_else(|| Failure::error(Exit::Usage, why))
}

/// The table of `ttmon top`.
pub const TOP_TABLE: &str = "top";

/// The tables that are no rules and receivers.
const OWN_TABLES: [&str; 3] = [TOP_TABLE, service_limits::TABLE, fleet_settings::TABLE];

/// The configuration of the machine, and of its service.
pub const OF_THE_MACHINE: &str = "/etc/ttmon/config.toml";

/// Where rules, receivers and the service's limits are: the named file; for the service of root the machine's file; else the user's,
/// or the machine's where the user has none.
pub fn place(named: Option<&Path>, for_service: bool) -> anyhow::Result<PathBuf> {
    let of_the_machine = PathBuf::from(OF_THE_MACHINE);
    // HOME may still be that of another user: `setpriv`, `su` and containers do not change it.
    let is_out_of_reach =
        |path: &Path| path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    match path(named) {
        Ok(path) if named.is_some() => Ok(path),
        _ if for_service && geteuid().is_root() => Ok(of_the_machine),
        Ok(path) if path.exists() || !(of_the_machine.exists() || is_out_of_reach(&path)) => Ok(path),
        _ => Ok(of_the_machine),
    }
}

/// A problem as one line: file, line and sentence.
pub fn said(path: &Path, problem: &Problem) -> String {
    match problem.line {
        0 => format!("{} {}", path.display(), problem.what),
        line => format!("{}:{line}: {}", path.display(), problem.what),
    }
}

/// A configuration file, read once.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// What is in `[top]`, each with its line. `ttmon top` reads its settings out of it.
    pub top: Vec<(String, Item, usize)>,
    /// Settings of the service.
    pub service: ServiceLimits,
    /// The other machines that the service watches.
    pub fleet: FleetSettings,
    /// Alert rules and receivers.
    pub alerts: AlertSettings,
    /// What is wrong, by line. Each mistake costs nothing but itself.
    pub problems: Vec<Problem>,
}

impl Config {
    /// Reads a file. One that does not exist has the defaults.
    pub fn load(file: &Path) -> Config {
        match std::fs::read_to_string(file) {
            Ok(text) => Config::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Config::default(),
            Err(error) => {
                let what = format!("cannot be read: {error}");
                Config { problems: vec![Problem { line: 0, what }], ..Config::default() }
            }
        }
    }

    /// Reads a file that must be without mistakes. Each is named, the first one last.
    pub fn read(file: &Path) -> anyhow::Result<Config> {
        let config = Config::load(file);
        if let [first, rest @ ..] = &config.problems[..] {
            rest.iter().rev().for_each(|problem| say(format_args!("ttmon: {}", said(file, problem))));
            return Err(Failure::error(Exit::Usage, said(file, first)));
        }
        Ok(config)
    }

    /// Reads the file of the service. One that is named must exist.
    pub fn of_service(named: Option<&Path>) -> anyhow::Result<Config> {
        if let Some(file) = named {
            if let Err(error) = file.metadata() {
                return Err(Failure::error(Exit::Usage, format!("--config {}: {error}", file.display())));
            }
        }
        Config::read(&place(named, true)?)
    }

    /// Reads a text. One that is not TOML has the defaults.
    pub fn parse(text: &str) -> Config {
        let document = match text.parse::<Document<String>>() {
            Ok(document) => document,
            Err(error) => return Config { problems: vec![problem_of(text, &error)], ..Config::default() },
        };
        let mut problems = unknown_keys(text, &document);
        let top = table_of(text, &document, TOP_TABLE, &mut problems).map(|table| entries(text, table));
        let serve = table_of(text, &document, service_limits::TABLE, &mut problems);
        let service = ServiceLimits::read(text, &document, serve, &mut problems);
        let fleet = table_of(text, &document, fleet_settings::TABLE, &mut problems).map(|table| {
            let key = document.get_key_value(fleet_settings::TABLE).and_then(|(key, item)| key.span().or(item.span()));
            FleetSettings::read(text, table, line_of(text, key), &mut problems)
        });
        let (alerts, wrong) = settings::read(text, &document);
        problems.extend(wrong);
        problems.sort_by_key(|problem| problem.line);
        Config { top: top.unwrap_or_default(), service, fleet: fleet.unwrap_or_default(), alerts, problems }
    }
}

/// What is wrong with a text that is not TOML.
pub fn problem_of(text: &str, error: &TomlError) -> Problem {
    let what = error.message().lines().collect::<Vec<_>>().join(", ");
    Problem { line: line_of(text, error.span()), what }
}

/// A table of the file, where there is one. What has its name and is not a table is a mistake.
fn table_of<'a>(
    text: &str,
    document: &'a Document<String>,
    name: &str,
    problems: &mut Vec<Problem>,
) -> Option<&'a dyn TableLike> {
    let item = document.get(name)?;
    let table = item.as_table_like();
    if table.is_none() {
        let what = format!("{name} must be a table, [{name}]");
        problems.push(Problem { line: line_of(text, item.span()), what });
    }
    table
}

fn entries(text: &str, table: &dyn TableLike) -> Vec<(String, Item, usize)> {
    let line = |name: &str, item: &Item| line_of(text, table.key(name).and_then(Key::span).or(item.span()));
    table.iter().map(|(name, item)| (name.to_owned(), item.clone(), line(name, item))).collect()
}

/// Keys and tables that no part of the program reads.
fn unknown_keys(text: &str, document: &Document<String>) -> Vec<Problem> {
    let is_known =
        |name: &str| OWN_TABLES.contains(&name) || settings::TABLES.contains(&name) || ServiceLimits::has_key(name);
    let unknown = document.iter().filter(|(name, _)| !is_known(name)).map(|(name, item)| {
        let span = document.get_key_value(name).and_then(|(key, item)| key.span().or(item.span()));
        let expected = "expected [top], [serve], [fleet], [alerts] or [[alert]]";
        let tables = OWN_TABLES.into_iter().chain(settings::TABLES.iter().copied());
        let what = match item.as_table_like() {
            Some(_) => format!("unknown table [{name}]: {}{expected}", did_you_mean(name, tables)),
            None => {
                let near = did_you_mean(name, tables.chain(ServiceLimits::keys()));
                format!("unknown key {name} outside of a table: {near}{expected}")
            }
        };
        Problem { line: line_of(text, span), what }
    });
    unknown.collect()
}

/// The text of a configuration for others to read: settings and rules, without comments, and with nothing that may be a secret. Of
/// receivers only the kind is kept, of what no part of the program reads nothing: `is_setting` knows the settings of `ttmon top`.
pub fn without_secrets(text: &str, is_setting: impl Fn(&str) -> bool) -> String {
    const LEFT_OUT: &str = "(left out)";
    let Ok(document) = text.parse::<Document<String>>() else { return format!("# not TOML: {LEFT_OUT}\n") };
    // Whether a key is known, and whether its value is ours alone. A rule may say what it likes in the other ones.
    let kind = |table: &str, key: &str| match table {
        TOP_TABLE => is_setting(key).then_some(true),
        service_limits::TABLE => ServiceLimits::has_key(key).then_some(true),
        fleet_settings::TABLE => fleet_settings::KEYS.contains(&key).then_some(false),
        "alert" if ["name", "when", "severity", "off"].contains(&key) => Some(true),
        "alert" => ["device", "process", "text"].contains(&key).then_some(false),
        "alerts" if key == "built_in" => Some(true),
        "alerts" => ["webhook", "alertmanager", "command", "desktop"].contains(&key).then_some(false),
        _ => None,
    };
    let (mut kept, mut unknown) = (String::new(), 0);
    let mut add = |kept: &mut String, key: &str, item: &Item, kind: Option<bool>| match kind {
        Some(is_ours) => {
            let value = plain_value(item).filter(|_| is_ours).unwrap_or_else(|| format!("\"{LEFT_OUT}\""));
            *kept += &format!("{key} = {value}\n");
        }
        None => unknown += 1,
    };
    for (name, item) in document.iter() {
        let is_table = OWN_TABLES.contains(&name) || settings::TABLES.contains(&name);
        let tables: Vec<&dyn TableLike> = match item.as_array_of_tables() {
            Some(tables) => tables.iter().map(|table| table as &dyn TableLike).collect(),
            None => item.as_table_like().into_iter().collect(),
        };
        if !is_table {
            add(&mut kept, name, item, ServiceLimits::has_key(name).then_some(true));
            continue;
        }
        for table in tables {
            kept += &if item.is_array_of_tables() { format!("\n[[{name}]]\n") } else { format!("\n[{name}]\n") };
            for (key, item) in table.iter() {
                add(&mut kept, key, item, kind(name, key));
            }
        }
    }
    if unknown > 0 {
        kept += &format!("\n# keys that ttmon does not know: {unknown} {LEFT_OUT}\n");
    }
    kept
}

/// A number, a word or a sentence. A table, a list and what looks like an address are none.
fn plain_value(item: &Item) -> Option<String> {
    let value = item.as_value()?;
    match value.as_str() {
        Some(text) if text.contains("://") || text.contains('@') => None,
        Some(text) => Some(format!("{text:?}")),
        None if value.is_array() || value.is_inline_table() => None,
        None => Some(value.to_string().split('#').next()?.trim().to_owned()),
    }
}

/// The rules of the user's file, or the built-in ones. Mistakes in the file are reported by `ttmon alerts check`.
pub fn alerts_of_user(named: Option<&Path>) -> AlertSettings {
    place(named, false).map(|file| Config::load(&file).alerts).unwrap_or_default()
}

/// Those of them that can fire in the first sample.
pub fn alerts_at_once() -> AlertSettings {
    let file = place(None, false).ok().filter(|file| file.exists());
    let mut alerts = file.map_or_else(AlertSettings::at_once, |file| Config::load(&file).alerts);
    alerts.rules.retain(Rule::fires_at_once);
    alerts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_for_others_has_no_secrets() {
        let text = "\
connections = 7 # the password is hunter2
token = \"hunter2\"
[top]
theme = \"light\" # hunter2
token = \"hunter2\"
proxy = \"http://me:hunter2@proxy\"
columns = [\"hunter2\"]
[fleet]
hosts = [\"hunter2\"]
token_file = \"/hunter2\"
[[alert]]
name = \"hot\"
when = \"asic_temp > 85\"
text = \"call hunter2\"
[[alerts.webhook]]
url = \"https://hooks.example.org/hunter2\"
token_file = \"/home/hunter2\"
[[alerts.command]]
run = [\"page\", \"--token\", \"hunter2\"]
[hunter2]
key = \"hunter2\"
";
        let kept = without_secrets(text, |key| ["theme", "columns"].contains(&key));
        assert!(!kept.contains("hunter2"), "{kept}");
        assert!(kept.contains("theme = \"light\"") && kept.contains("when = \"asic_temp > 85\""), "{kept}");
        assert!(kept.contains("connections = 7") && kept.contains("webhook = \"(left out)\""), "{kept}");
        assert!(!without_secrets("hunter2 = = x", |_| true).contains("hunter2"));
    }
}
