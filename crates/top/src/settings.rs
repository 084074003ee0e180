//! What people choose: how it looks, how often it looks, what is shown. The configuration file, `ttmon config` and the setup
//! window all come from the table of choices.

use super::column::ProcessColumn;
use super::theme::Scheme;
use model::Device;
use model::figure::Field;
use model::figure::device::{
    ASIC_TEMP, DEVICE_TO_HOST, DRAM_USED, HOST_TO_DEVICE, POWER, UTILIZATION, kept_in_history,
};
use std::sync::LazyLock;

#[derive(Debug, Clone, PartialEq)]
pub struct TopSettings {
    pub theme: Scheme,
    pub ascii: bool,
    pub fahrenheit: bool,
    pub interval_ms: u64,
    pub history_seconds: u64,
    pub charts: Vec<Field<Device>>,
    pub overlaid: bool,
    pub filled: bool,
    pub reversed: bool,
    pub columns: Vec<ProcessColumn>,
    pub sort: ProcessColumn,
    pub descending: bool,
    pub tree: bool,
    pub read_only: bool,
    pub mouse: bool,
}

impl Default for TopSettings {
    fn default() -> TopSettings {
        TopSettings {
            theme: Scheme::Dark,
            ascii: false,
            fahrenheit: false,
            interval_ms: 1000,
            history_seconds: 3600,
            charts: [&UTILIZATION, &POWER, &ASIC_TEMP, &DRAM_USED].map(|figure| figure.field()).to_vec(),
            overlaid: false,
            filled: false,
            reversed: false,
            columns: ProcessColumn::ALL.to_vec(),
            sort: ProcessColumn::Dram,
            descending: true,
            tree: false,
            read_only: false,
            mouse: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoiceValue {
    Switch(bool),
    Number(u64),
    Word(&'static str),
    Words(Vec<&'static str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceKind {
    Switch,
    /// A number between two others, and those that the setup window steps through.
    Number(u64, u64, &'static [u64]),
    OneOf(&'static [&'static str]),
    /// Some of these, each at most once, in any order.
    SomeOf(&'static [&'static str]),
}

pub struct Choice {
    /// As the configuration file calls it.
    pub name: &'static str,
    /// As people call it.
    pub label: &'static str,
    pub help: &'static str,
    pub kind: ChoiceKind,
    pub get: fn(&TopSettings) -> ChoiceValue,
    /// Sets it. The value must be of its kind.
    pub set: fn(&mut TopSettings, &ChoiceValue),
}

impl Choice {
    /// What is chosen, as people say it.
    pub fn text(&self, settings: &TopSettings) -> String {
        match (self.get)(settings) {
            ChoiceValue::Switch(on) => if on { "on" } else { "off" }.to_owned(),
            ChoiceValue::Number(number) => {
                // The configuration has the unit in its name.
                duration(if self.name.ends_with("_ms") { number } else { number.saturating_mul(1000) })
            }
            ChoiceValue::Word(word) => word_label(word),
            ChoiceValue::Words(words) => words.into_iter().map(word_label).collect::<Vec<_>>().join(", "),
        }
    }
}

/// A word of the configuration, as people say it: the title of a figure, the heading of a column.
pub fn word_label(word: &'static str) -> String {
    if let Some(column) = column_named(word) {
        return column.head().to_owned();
    }
    let chart = kept_in_history().find(|field| chart_name(*field) == word);
    chart.map_or_else(|| word.to_owned(), |field| field.title().into_owned())
}

/// `250 ms`, `1 s`, `10 min`, `1 h`
fn duration(milliseconds: u64) -> String {
    for (unit, name) in [(3_600_000, "h"), (60_000, "min"), (1000, "s")] {
        if milliseconds >= unit && milliseconds % unit == 0 {
            return format!("{} {name}", milliseconds / unit);
        }
    }
    format!("{milliseconds} ms")
}

/// The words for charts, in the order of the table of figures: the word that rules have for the figure, or its name.
static CHARTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let word = |field: Field<Device>| match (field.figure.rule, field.figure.dimension) {
        (Some(rule), None) => rule,
        (None, None) => field.figure.name,
        // There are few of them, and a name is made once.
        (_, Some(_)) => field.name().into_owned().leak(),
    };
    kept_in_history().map(word).collect()
});
static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| ProcessColumn::ALL.map(ProcessColumn::name).to_vec());

/// A choice that is kept as it is, under the name of its field.
macro_rules! plain {
    ($field:ident, $label:literal, $value:ident, $kind:expr, $help:literal) => {
        Choice {
            name: stringify!($field),
            label: $label,
            help: $help,
            kind: $kind,
            get: |settings| ChoiceValue::$value(settings.$field),
            set: |settings, value| {
                if let ChoiceValue::$value(value) = value {
                    settings.$field = *value;
                }
            },
        }
    };
}

macro_rules! switch {
    ($field:ident, $label:literal, $help:literal) => {
        plain!($field, $label, Switch, ChoiceKind::Switch, $help)
    };
}

/// All choices, in the order of the file and of the setup window.
pub static CHOICES: LazyLock<Vec<Choice>> = LazyLock::new(|| {
    vec![
        Choice {
            name: "theme",
            label: "Colours",
            help: "colours: dark, light, high-contrast, colour-blind or monochrome",
            kind: ChoiceKind::OneOf(&Scheme::NAMES),
            get: |settings| ChoiceValue::Word(settings.theme.name()),
            set: |settings, value| {
                let named = |scheme: &&Scheme| ChoiceValue::Word(scheme.name()) == *value;
                settings.theme = Scheme::ALL.iter().find(named).copied().unwrap_or(settings.theme);
            },
        },
        switch!(ascii, "ASCII only", "draw with ASCII characters only"),
        switch!(fahrenheit, "Fahrenheit", "temperatures in °F"),
        plain!(
            interval_ms,
            "Update interval",
            Number,
            ChoiceKind::Number(100, 60_000, &[100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000]),
            "milliseconds from one sample to the next"
        ),
        plain!(
            history_seconds,
            "History of charts",
            Number,
            ChoiceKind::Number(60, 86_400, &[60, 600, 1800, 3600, 7200, 21_600, 86_400]),
            "how much history the charts keep; takes effect on the next start"
        ),
        Choice {
            name: "charts",
            label: "Charts",
            help: "the charts of the overview, in their order",
            kind: ChoiceKind::SomeOf(&CHARTS),
            get: |settings| ChoiceValue::Words(settings.charts.iter().map(|field| chart_name(*field)).collect()),
            set: |settings, value| {
                if let ChoiceValue::Words(words) = value {
                    let field = |word: &&str| kept_in_history().find(|field| chart_name(*field) == *word);
                    settings.charts = words.iter().filter_map(field).collect();
                }
            },
        },
        switch!(overlaid, "All devices in one chart", "all devices in one chart, instead of the selected one"),
        switch!(filled, "Filled charts", "charts as areas instead of lines"),
        switch!(reversed, "Newest at the left", "charts with the newest at the left"),
        Choice {
            name: "columns",
            label: "Process columns",
            help: "the columns of processes, in their order, where there is room",
            kind: ChoiceKind::SomeOf(&COLUMNS),
            get: |settings| ChoiceValue::Words(settings.columns.iter().map(|column| column.name()).collect()),
            set: |settings, value| {
                if let ChoiceValue::Words(words) = value {
                    settings.columns = words.iter().filter_map(|word| column_named(word)).collect();
                }
            },
        },
        Choice {
            name: "sort",
            label: "Sort processes by",
            help: "the column that processes are sorted by",
            kind: ChoiceKind::OneOf(&COLUMNS),
            get: |settings| ChoiceValue::Word(settings.sort.name()),
            set: |settings, value| {
                if let ChoiceValue::Word(word) = value {
                    settings.sort = column_named(word).unwrap_or(settings.sort);
                }
            },
        },
        switch!(descending, "Largest first", "the largest first"),
        switch!(tree, "Process tree", "processes as a tree"),
        switch!(read_only, "Read only", "never send signals"),
        switch!(mouse, "Mouse", "enable the mouse; without it, the terminal selects text as usual"),
    ]
});

/// As the configuration calls a chart.
fn chart_name(field: Field<Device>) -> &'static str {
    kept_in_history().zip(CHARTS.iter()).find(|(one, _)| *one == field).map_or(field.figure.name, |(_, word)| word)
}

/// The word for a chart that files of earlier versions have.
pub fn of_former_word(word: &str) -> Option<&'static str> {
    let figure = match word {
        "temperature" => &ASIC_TEMP,
        "pcie-in" => &HOST_TO_DEVICE,
        "pcie-out" => &DEVICE_TO_HOST,
        _ => return None,
    };
    Some(chart_name(figure.field()))
}

fn column_named(word: &str) -> Option<ProcessColumn> {
    ProcessColumn::ALL.into_iter().find(|column| column.name() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_can_be_set_to_whatever_it_can_be() {
        for choice in CHOICES.iter() {
            let usual = (choice.get)(&TopSettings::default());
            let others: Vec<ChoiceValue> = match choice.kind {
                ChoiceKind::Switch => vec![ChoiceValue::Switch(true), ChoiceValue::Switch(false)],
                ChoiceKind::Number(least, most, steps) => {
                    assert!(steps.iter().all(|step| (least..=most).contains(step)) && steps.is_sorted());
                    vec![ChoiceValue::Number(least), ChoiceValue::Number(most)]
                }
                ChoiceKind::OneOf(words) => words.iter().map(|word| ChoiceValue::Word(word)).collect(),
                ChoiceKind::SomeOf(words) => {
                    vec![ChoiceValue::Words(vec![]), ChoiceValue::Words(words.iter().rev().copied().collect())]
                }
            };
            for other in others.iter().chain([&usual]) {
                let mut settings = TopSettings::default();
                (choice.set)(&mut settings, other);
                assert_eq!((choice.get)(&settings), *other, "{}", choice.name);
            }
        }
    }

    #[test]
    fn the_words_are_those_of_the_table_and_of_the_charts() {
        assert!(ProcessColumn::ALL.iter().enumerate().all(|(n, column)| *column as usize == n));
        assert!(CHARTS.iter().all(|word| CHARTS.iter().filter(|other| *other == word).count() == 1), "{CHARTS:?}");
        assert!(["temperature", "pcie-in", "pcie-out"].map(of_former_word).iter().all(Option::is_some));
    }
}
