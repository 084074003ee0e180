//! The limits of the service: the `[serve]` table of the configuration.

use crate::args::DeepWhen;
use crate::black_box;
use alerts::{Problem, line_of};
use model::text::nearest;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use toml_edit::{Document, Item, TableLike};

/// What the service allows. Read again at SIGHUP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Open connections of one user, on each of the two sockets.
    pub connections: usize,
    /// Live buffers that one process may report. What its agent keeps has a limit of its own.
    pub buffers_per_process: usize,
    /// The same for all processes of one user together.
    pub buffers_per_user: usize,
    /// How many exited processes are remembered.
    pub deaths: usize,
    /// Milliseconds from one sample to the next.
    pub interval_ms: u64,
    /// Whether the kernel's log is read.
    pub kernel_log: bool,
    /// Whether the firmware's telemetry is read, and of which devices. Read at the start alone.
    pub deep: Option<DeepWhen>,
    /// Whether a black box is kept, and where. Absent where the file does not say. Read at the start alone.
    pub black_box: Option<BlackBoxSetting>,
    /// How large it may become.
    pub black_box_mib: u64,
}

/// What the configuration says of the black box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlackBoxSetting {
    /// No black box.
    Off,
    /// A black box in the usual folder.
    UsualFolder,
    /// A black box in this folder.
    Folder(PathBuf),
}

impl Default for ServiceLimits {
    fn default() -> ServiceLimits {
        ServiceLimits {
            connections: 1024,
            buffers_per_process: 250_000,
            buffers_per_user: 250_000,
            deaths: 1000,
            interval_ms: 1000,
            kernel_log: false,
            deep: None,
            black_box: None,
            black_box_mib: black_box::DEFAULT_MIB,
        }
    }
}

/// A key, the values that it may have, and where they go.
struct Key {
    name: &'static str,
    values: Values,
}

enum Values {
    Number(RangeInclusive<u64>, fn(&mut ServiceLimits, u64)),
    /// What it may be, and whether it was that.
    Choice(&'static str, fn(&mut ServiceLimits, &Item) -> bool),
}

const ANY: RangeInclusive<u64> = 0..=u32::MAX as u64;
static KEYS: [Key; 9] = [
    number("connections", ANY, |limits, number| limits.connections = number as usize),
    number("buffers_per_process", ANY, |limits, number| limits.buffers_per_process = number as usize),
    number("buffers_per_user", ANY, |limits, number| limits.buffers_per_user = number as usize),
    number("deaths", ANY, |limits, number| limits.deaths = number as usize),
    number("interval_ms", 10..=3_600_000, |limits, number| limits.interval_ms = number),
    Key { name: "kernel_log", values: Values::Choice("true or false", set_kernel_log) },
    Key { name: "deep", values: Values::Choice("true, false or \"idle\"", set_deep) },
    Key { name: "black_box", values: Values::Choice("true, false or the path of a folder", set_black_box) },
    number("black_box_mib", black_box::SMALLEST_MIB..=1 << 20, |limits, number| limits.black_box_mib = number),
];

const fn number(name: &'static str, range: RangeInclusive<u64>, set: fn(&mut ServiceLimits, u64)) -> Key {
    Key { name, values: Values::Number(range, set) }
}

fn set_kernel_log(limits: &mut ServiceLimits, item: &Item) -> bool {
    item.as_bool().map(|is_on| limits.kernel_log = is_on).is_some()
}

fn set_deep(limits: &mut ServiceLimits, item: &Item) -> bool {
    limits.deep = match (item.as_bool(), item.as_str()) {
        (Some(wanted), _) => wanted.then_some(DeepWhen::Used),
        (None, Some("idle")) => Some(DeepWhen::Idle),
        _ => return false,
    };
    true
}

fn set_black_box(limits: &mut ServiceLimits, item: &Item) -> bool {
    limits.black_box = Some(match (item.as_bool(), item.as_str().map(PathBuf::from)) {
        (Some(true), _) => BlackBoxSetting::UsualFolder,
        (Some(false), _) => BlackBoxSetting::Off,
        (None, Some(folder)) if folder.is_absolute() => BlackBoxSetting::Folder(folder),
        _ => return false,
    });
    true
}

/// Name of the table in the configuration file.
pub const TABLE: &str = "serve";

impl ServiceLimits {
    /// Time between two samples.
    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }

    /// The limits of a configuration: in its table, or at its top. A mistake costs nothing but itself.
    pub fn read(
        text: &str,
        document: &Document<String>,
        table: Option<&dyn TableLike>,
        problems: &mut Vec<Problem>,
    ) -> ServiceLimits {
        let mut limits = ServiceLimits::default();
        if let Some(table) = table {
            read_table(text, table, &mut limits, problems);
        }
        // Before there were tables, the limits were all that the file had.
        for key in KEYS.iter().filter(|key| document.contains_key(key.name)) {
            read_key(text, document.as_table(), key, &mut limits, problems);
        }
        limits
    }

    /// The names of all limits.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        KEYS.iter().map(|key| key.name)
    }

    /// Whether a key outside of all tables is one of the limits.
    pub fn has_key(name: &str) -> bool {
        KEYS.iter().any(|key| key.name == name)
    }
}

fn read_table(text: &str, table: &dyn TableLike, limits: &mut ServiceLimits, problems: &mut Vec<Problem>) {
    for (name, item) in table.iter() {
        if let Some(key) = KEYS.iter().find(|key| key.name == name) {
            read_key(text, table, key, limits, problems);
            continue;
        }
        let names = || KEYS.iter().map(|key| key.name);
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
        };
        let span = table.key(name).and_then(toml_edit::Key::span).or(item.span());
        problems.push(Problem { line: line_of(text, span), what: format!("unknown key {name}: {hint}") });
    }
}

fn read_key(text: &str, table: &dyn TableLike, key: &Key, limits: &mut ServiceLimits, problems: &mut Vec<Problem>) {
    let Some(item) = table.get(key.name) else { return };
    let expected = match &key.values {
        Values::Number(range, set) => {
            let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
            if let Some(number) = number.filter(|number| range.contains(number)) {
                return set(limits, number);
            }
            format!("a number from {} to {}", range.start(), range.end())
        }
        Values::Choice(_, set) if set(limits, item) => return,
        Values::Choice(choice, _) => (*choice).to_owned(),
    };
    let what = format!("{}: expected {expected}", key.name);
    problems.push(Problem { line: line_of(text, item.span()), what });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn problems(text: &str) -> Vec<String> {
        Config::parse(text).problems.into_iter().map(|problem| format!("{}: {}", problem.line, problem.what)).collect()
    }

    #[test]
    fn what_the_file_does_not_say_has_its_default() {
        let expected = ServiceLimits { connections: 7, interval_ms: 500, ..ServiceLimits::default() };
        assert_eq!(Config::parse("connections = 7 # few\ninterval_ms = 500\n").service, expected);
        assert_eq!(Config::parse("").service, ServiceLimits::default());
        let others = "[top]\ntheme = \"light\"\n[[alert]]\nname = \"x\"\nwhen = \"power > 1\"\n[alerts.desktop]\n[serve]\nconnections = 7\ninterval_ms = 500\n";
        assert_eq!((Config::parse(others).service, problems(others)), (expected, vec![]));
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_its_key() {
        assert_eq!(
            problems("deaths = 1\nconections = 7"),
            [
                "2: unknown key conections outside of a table: did you mean connections? expected [top], [serve], [fleet], [alerts] or [[alert]]"
            ]
        );
        assert_eq!(
            problems("[serve]\ndeaths = 1\nconections = 7"),
            ["3: unknown key conections: did you mean connections?"]
        );
        assert!(problems("deaths = many")[0].starts_with("1: "));
        assert_eq!(problems("[serve]\ninterval_ms = 0"), ["2: interval_ms: expected a number from 10 to 3600000"]);
        assert_eq!(problems("[serve]\nkernel_log = 1"), ["2: kernel_log: expected true or false"]);
        assert!(Config::parse("[serve]\nkernel_log = true").service.kernel_log);
        assert_eq!(problems("[serve]\ndeep = \"yes\""), ["2: deep: expected true, false or \"idle\""]);
        assert_eq!(Config::parse("[serve]\ndeep = \"idle\"").service.deep, Some(DeepWhen::Idle));
        assert_eq!(Config::parse("[serve]\ndeep = true").service.deep, Some(DeepWhen::Used));
        assert_eq!(
            problems("[serve]\nblack_box = \"here\"\nblack_box_mib = 7"),
            [
                "2: black_box: expected true, false or the path of a folder",
                "3: black_box_mib: expected a number from 8 to 1048576"
            ]
        );
        assert_eq!(Config::parse("[serve]\nblack_box = false").service.black_box, Some(BlackBoxSetting::Off));
        let folder = Config::parse("[serve]\nblack_box = \"/srv/box\"").service.black_box;
        assert_eq!(folder, Some(BlackBoxSetting::Folder("/srv/box".into())));
        assert_eq!(problems("serve = 3"), ["1: serve must be a table, [serve]"]);
        assert_eq!(
            problems("[tob]"),
            ["1: unknown table [tob]: did you mean top? expected [top], [serve], [fleet], [alerts] or [[alert]]"]
        );
    }
}
