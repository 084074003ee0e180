//! What people choose: how it looks, how often it looks, what is shown. The configuration file, `ttmon config` and the setup
//! window all come from the table of choices.

use super::column::Column;
use super::theme::Scheme;
use model::Metric;

/// All choices.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub theme: Scheme,
    pub ascii: bool,
    pub fahrenheit: bool,
    pub interval_ms: u64,
    pub history_seconds: u64,
    pub charts: Vec<Metric>,
    pub overlaid: bool,
    pub filled: bool,
    pub reversed: bool,
    pub columns: Vec<Column>,
    pub sort: Column,
    pub descending: bool,
    pub tree: bool,
    pub read_only: bool,
    pub mouse: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            theme: Scheme::Dark,
            ascii: false,
            fahrenheit: false,
            interval_ms: 1000,
            history_seconds: 3600,
            charts: vec![Metric::Power, Metric::AsicTemp, Metric::DramUsed],
            overlaid: false,
            filled: false,
            reversed: false,
            columns: Column::USUAL.to_vec(),
            sort: Column::Dram,
            descending: true,
            tree: false,
            read_only: false,
            mouse: true,
        }
    }
}

/// The value of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Switch(bool),
    Number(u64),
    Word(&'static str),
    Words(Vec<&'static str>),
}

/// What a choice can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Switch,
    /// A number between two others, and those that the setup window steps through.
    Number(u64, u64, &'static [u64]),
    OneOf(&'static [&'static str]),
    /// Some of these, each at most once, in any order.
    SomeOf(&'static [&'static str]),
}

/// One choice.
pub struct Choice {
    /// As the configuration file calls it.
    pub name: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    get: fn(&Settings) -> Value,
    set: fn(&mut Settings, &Value),
}

const THEMES: &[&str] = &["dark", "light", "high-contrast", "monochrome"];
const METRICS: &[&str] = &["temperature", "power", "aiclk", "fan", "dram", "l1", "pcie-in", "pcie-out"];
const COLUMNS: &[&str] = &[
    "dev",
    "pid",
    "user",
    "container",
    "dram",
    "l1",
    "l1_small",
    "trace",
    "cb",
    "source",
    "util",
    "share",
    "growth",
    "cpu",
    "rss",
    "age",
    "command",
];

macro_rules! switch {
    ($name:literal, $field:ident, $help:literal) => {
        Choice {
            name: $name,
            help: $help,
            kind: Kind::Switch,
            get: |settings| Value::Switch(settings.$field),
            set: |settings, value| {
                if let Value::Switch(on) = value {
                    settings.$field = *on;
                }
            },
        }
    };
}

macro_rules! number {
    ($name:literal, $field:ident, $least:literal..=$most:literal, $steps:expr, $help:literal) => {
        Choice {
            name: $name,
            help: $help,
            kind: Kind::Number($least, $most, $steps),
            get: |settings| Value::Number(settings.$field),
            set: |settings, value| {
                if let Value::Number(number) = value {
                    settings.$field = *number;
                }
            },
        }
    };
}

/// All choices, in the order of the file and of the setup window.
pub const CHOICES: &[Choice] = &[
    Choice {
        name: "theme",
        help: "colours: dark, light, high-contrast or monochrome",
        kind: Kind::OneOf(THEMES),
        get: |settings| Value::Word(settings.theme.name()),
        set: |settings, value| {
            let named = |scheme: &&Scheme| Value::Word(scheme.name()) == *value;
            settings.theme = Scheme::ALL.iter().find(named).copied().unwrap_or(settings.theme);
        },
    },
    switch!("ascii", ascii, "draw with ASCII characters only"),
    switch!("fahrenheit", fahrenheit, "temperatures in °F"),
    number!(
        "interval_ms",
        interval_ms,
        100..=60_000,
        &[100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000],
        "milliseconds from one sample to the next"
    ),
    number!(
        "history_seconds",
        history_seconds,
        60..=86_400,
        &[60, 600, 1800, 3600, 7200, 21_600, 86_400],
        "how much of the past is kept for the charts; from the next start on"
    ),
    Choice {
        name: "charts",
        help: "the charts of the overview, in their order",
        kind: Kind::SomeOf(METRICS),
        get: |settings| Value::Words(settings.charts.iter().map(|metric| metric_name(*metric)).collect()),
        set: |settings, value| {
            if let Value::Words(words) = value {
                let metric = |word: &&str| Metric::ALL.into_iter().find(|metric| metric_name(*metric) == *word);
                settings.charts = words.iter().filter_map(metric).collect();
            }
        },
    },
    switch!("overlaid", overlaid, "all devices in one chart, instead of the selected one"),
    switch!("filled", filled, "charts as areas instead of lines"),
    switch!("reversed", reversed, "charts with the newest at the left"),
    Choice {
        name: "columns",
        help: "the columns of the process table, in their order; those without room are left out",
        kind: Kind::SomeOf(COLUMNS),
        get: |settings| Value::Words(settings.columns.iter().map(|column| column.name()).collect()),
        set: |settings, value| {
            if let Value::Words(words) = value {
                settings.columns = words.iter().filter_map(|word| column_named(word)).collect();
            }
        },
    },
    Choice {
        name: "sort",
        help: "the column that processes are sorted by",
        kind: Kind::OneOf(COLUMNS),
        get: |settings| Value::Word(settings.sort.name()),
        set: |settings, value| {
            if let Value::Word(word) = value {
                settings.sort = column_named(word).unwrap_or(settings.sort);
            }
        },
    },
    switch!("descending", descending, "the largest first"),
    switch!("tree", tree, "processes as a tree"),
    switch!("read_only", read_only, "send no signals, whatever is pressed"),
    switch!("mouse", mouse, "hear the mouse; without it, the terminal selects text as usual"),
];

impl Choice {
    pub fn get(&self, settings: &Settings) -> Value {
        (self.get)(settings)
    }

    /// Sets it. The value must be of its kind.
    pub fn set(&self, settings: &mut Settings, value: &Value) {
        (self.set)(settings, value);
    }
}

/// As the configuration calls a figure.
pub fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::AsicTemp => "temperature",
        Metric::Power => "power",
        Metric::Aiclk => "aiclk",
        Metric::Fan => "fan",
        Metric::DramUsed => "dram",
        Metric::L1Used => "l1",
        Metric::HostToDevice => "pcie-in",
        Metric::DeviceToHost => "pcie-out",
    }
}

fn column_named(word: &str) -> Option<Column> {
    Column::ALL.into_iter().find(|column| column.name() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_can_be_set_to_whatever_it_can_be() {
        for choice in CHOICES {
            let usual = choice.get(&Settings::default());
            let others: Vec<Value> = match choice.kind {
                Kind::Switch => vec![Value::Switch(true), Value::Switch(false)],
                Kind::Number(least, most, steps) => {
                    assert!(steps.iter().all(|step| (least..=most).contains(step)) && steps.is_sorted());
                    vec![Value::Number(least), Value::Number(most)]
                }
                Kind::OneOf(words) => words.iter().map(|word| Value::Word(word)).collect(),
                Kind::SomeOf(words) => vec![Value::Words(vec![]), Value::Words(words.iter().rev().copied().collect())],
            };
            for other in others.iter().chain([&usual]) {
                let mut settings = Settings::default();
                choice.set(&mut settings, other);
                assert_eq!(choice.get(&settings), *other, "{}", choice.name);
            }
        }
    }

    #[test]
    fn the_words_are_those_of_the_table_and_of_the_charts() {
        assert_eq!(COLUMNS, Column::ALL.map(Column::name));
        assert_eq!(METRICS, Metric::ALL.map(metric_name));
        assert_eq!(THEMES, Scheme::ALL.map(Scheme::name));
    }
}
