//! The figures that a rule can compare: the rows of the tables of figures that have a word for rules.

use crate::subject::{Scope, Subject};
use model::figure::device::DEVICE_FIGURES;
use model::figure::process::{HELD_FIGURES, PROCESS_FIGURES};
use model::figure::{Dimension, Figure, Freshness, Metric, MetricKind, Unit, Value};
use model::{Device, ExitRecord, Held, Process};

/// A row of one of the tables. Which table it is in decides what a rule is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RuleFigure {
    Device(&'static Figure<Device>),
    Process(&'static Figure<Process>),
    Held(&'static Figure<Held>),
    Exited(&'static Figure<ExitRecord>),
}

/// Only the service sees processes exit, so this row is in no table of the model.
static LEFT_AT_EXIT: Figure<ExitRecord> = Figure {
    title: "Left at exit",
    freshness: Freshness::Host,
    rule: Some("left_at_exit"),
    ..Figure::read_only(
        "left_at_exit_bytes",
        Unit::Bytes,
        "Device memory that a process had not freed when it exited (only with the service).",
        |exit, _| exit.left.filter(|left| left.0 > 0).map(|left| Value::Whole(left.0)),
    )
};

/// The same expression for whichever row it is.
macro_rules! of_row {
    ($rule_figure:expr, $row:ident => $value:expr) => {
        match $rule_figure {
            RuleFigure::Device($row) => $value,
            RuleFigure::Process($row) => $value,
            RuleFigure::Held($row) => $value,
            RuleFigure::Exited($row) => $value,
        }
    };
}

impl RuleFigure {
    /// All figures that have a word for rules, in the order of the tables.
    pub fn all() -> impl Iterator<Item = RuleFigure> {
        let devices = DEVICE_FIGURES.iter().map(|row| RuleFigure::Device(row));
        let held = HELD_FIGURES.iter().map(|row| RuleFigure::Held(row));
        let processes = PROCESS_FIGURES.iter().map(|row| RuleFigure::Process(row));
        let all = devices.chain(held).chain(processes).chain([RuleFigure::Exited(&LEFT_AT_EXIT)]);
        all.filter(|figure| of_row!(figure, row => row.rule.is_some()))
    }

    pub fn named(word: &str) -> Option<RuleFigure> {
        RuleFigure::all().find(|figure| figure.word() == word)
    }

    /// As rules write it.
    pub fn word(self) -> &'static str {
        of_row!(self, row => row.rule.unwrap_or(row.name))
    }

    pub fn scope(self) -> Scope {
        match self {
            RuleFigure::Device(_) => Scope::Device,
            RuleFigure::Process(_) => Scope::Process,
            RuleFigure::Held(_) => Scope::Held,
            RuleFigure::Exited(_) => Scope::Exited,
        }
    }

    /// Whether only a deep read knows it.
    pub(crate) fn is_deep(self) -> bool {
        of_row!(self, row => row.is_deep())
    }

    pub fn unit(self) -> Unit {
        of_row!(self, row => row.unit)
    }

    pub fn help(self) -> &'static str {
        of_row!(self, row => row.help)
    }

    /// What it is compared with where it is no number: `no_driver` for `no driver`, `doppler_slow` for `doppler (slow)`. Empty for
    /// numbers.
    pub fn words(self) -> Vec<String> {
        match self.unit() {
            Unit::YesNo => ["false", "true"].map(String::from).to_vec(),
            _ => self.texts().iter().map(|word| word.replace(['(', ')'], "").replace(' ', "_")).collect(),
        }
    }

    /// The same as the table spells them.
    pub(crate) fn texts(self) -> &'static [&'static str] {
        of_row!(self, row => row.words)
    }

    /// The figure that percentages refer to.
    pub(crate) fn limit(self) -> Option<RuleFigure> {
        Some(match self {
            RuleFigure::Device(row) => RuleFigure::Device(row.limit?),
            RuleFigure::Process(row) => RuleFigure::Process(row.limit?),
            RuleFigure::Held(row) => RuleFigure::Held(row.limit?),
            RuleFigure::Exited(row) => RuleFigure::Exited(row.limit?),
        })
    }

    /// Its metric, where Prometheus has a series of it.
    pub(crate) fn metric(self) -> Option<Metric> {
        let has_series = |metric: &Metric| !matches!(metric.kind, MetricKind::Info | MetricKind::RateOf);
        of_row!(self, row => row.metric).filter(has_series)
    }

    /// What its labels mean, where it has one value per label.
    pub(crate) fn dimension(self) -> Option<Dimension> {
        of_row!(self, row => row.dimension)
    }

    /// Its value: of a word its place in [`RuleFigure::words`], of several labels the largest.
    pub(crate) fn number(self, subject: &Subject) -> Option<f64> {
        let mut largest: Option<f64> = None;
        self.numbers(subject, &mut |_, number| largest = Some(largest.map_or(number, |other| other.max(number))));
        largest
    }

    /// Its values, each with the place of its label; 0 where it has none.
    pub(crate) fn numbers(self, subject: &Subject, take: &mut dyn FnMut(usize, f64)) {
        match self {
            RuleFigure::Device(row) => numbers(row, subject.device_for(row), take),
            RuleFigure::Process(row) => numbers(row, subject.process, take),
            RuleFigure::Held(row) => numbers(row, subject.held, take),
            RuleFigure::Exited(row) => numbers(row, subject.exited, take),
        }
    }
}

impl<'a> Subject<'a> {
    /// The device, where this figure of it is current: one that does not answer shows its last known values.
    fn device_for(&self, figure: &Figure<Device>) -> Option<&'a Device> {
        let is_current = |device: &Device| device.sample_age_seconds.is_none_or(|age| age <= 0.0);
        self.device.filter(|device| figure.freshness == Freshness::Host || is_current(device))
    }
}

fn numbers<S>(row: &'static Figure<S>, subject: Option<&S>, take: &mut dyn FnMut(usize, f64)) {
    let Some(subject) = subject else { return };
    let place = |text: &str| row.words.iter().position(|word| *word == text).map(|at| at as f64);
    for field in row.fields() {
        let number = match field.value(subject) {
            Some(Value::Text(text)) => place(&text),
            value => value.and_then(|value| value.number()),
        };
        if let Some(number) = number.filter(|number| number.is_finite()) {
            take(field.label, number);
        }
    }
}

/// A line for each figure: its word, its unit, `%` where it has a limit, and a sentence.
pub fn figure_help() -> String {
    let line = |figure: RuleFigure| {
        let symbol = figure.unit().symbol();
        let unit = if figure.limit().is_some() { format!("{symbol}, %") } else { symbol.to_owned() };
        let words = match figure.words() {
            words if words.is_empty() => String::new(),
            words => format!(" One of {}.", words.join(", ")),
        };
        format!("  {:<19}  {unit:<5}  {}{words}\n", figure.word(), figure.help())
    };
    RuleFigure::all().map(line).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Condition;
    use crate::condition::{Compare, Threshold};
    use model::{Celsius, Comparison, DeviceId, State, Watts};

    #[test]
    fn every_word_of_the_tables_is_a_rule_and_in_the_help() {
        let (help, mut words) = (figure_help(), Vec::new());
        for figure in RuleFigure::all() {
            let word = figure.word();
            let value = figure.words().first().cloned().unwrap_or("1".into());
            let rule: Condition = format!("{word} == {value}").parse().unwrap();
            assert_eq!(rule.scope(), figure.scope(), "{word}");
            assert_eq!(help.lines().filter(|line| line.split_whitespace().next() == Some(word)).count(), 1, "{word}");
            assert!(!words.contains(&word), "{word} is there twice");
            words.push(word);
        }
        let percent = RuleFigure::all().filter(|figure| figure.limit().is_some());
        for word in percent.map(RuleFigure::word) {
            assert!(format!("{word} > 50%").parse::<Condition>().is_ok(), "{word}");
        }
    }

    #[test]
    fn states_are_the_words_of_the_table_without_spaces() {
        let state = RuleFigure::named("state").unwrap();
        assert_eq!(state.words(), State::ALL.map(|state| state.name().replace(' ', "_")));
        for (place, one) in State::ALL.into_iter().enumerate() {
            let device = Device { state: one, ..Device::new(DeviceId::Local(0)) };
            let subject = Subject { device: Some(&device), ..Subject::default() };
            assert_eq!(state.number(&subject), Some(place as f64));
        }
    }

    #[test]
    fn what_the_chip_says_counts_while_it_is_current_and_what_the_host_says_always() {
        let mut device = Device { power: Some(Watts(3.0)), ..Device::new(DeviceId::Local(0)) };
        device.memory.stale = Some(model::Bytes(7));
        device.sample_age_seconds = Some(2.0);
        let read = |device: &Device, word| {
            RuleFigure::named(word).unwrap().number(&Subject { device: Some(device), ..Subject::default() })
        };
        assert_eq!(["power", "stale", "sample_age"].map(|word| read(&device, word)), [None, Some(7.0), Some(2.0)]);
        device.sample_age_seconds = Some(0.0);
        assert_eq!(read(&device, "power"), Some(3.0));
        device.asic_temp = Some(Celsius(f64::NAN));
        assert_eq!(read(&device, "asic_temp"), None, "it is not a number");
    }

    /// A temperature per GDDR channel.
    pub(crate) fn labelled() -> RuleFigure {
        let get: model::figure::Get<Device> =
            |_, label| [None, Some(40.0), Some(60.0), Some(50.0)].get(label)?.map(Value::Real);
        let help = "Temperature of a GDDR channel.";
        RuleFigure::Device(Box::leak(Box::new(Figure {
            dimension: Some(Dimension::GddrChannel),
            metric: Metric::gauge("ttmon_device_gddr_temperature_celsius"),
            ..Figure::read_only("gddr_temp_celsius", Unit::Celsius, help, get)
        })))
    }

    #[test]
    fn a_comparison_holds_where_it_does_for_any_label() {
        let device = Device::new(DeviceId::Local(0));
        let subject = Subject { device: Some(&device), ..Subject::default() };
        let value = |operator, number| {
            let threshold = Threshold::Number(number);
            Compare { figure: labelled(), increase: None, operator, threshold }.value_of(&subject)
        };
        use Comparison::{Above, Below, Is, IsNot};
        assert_eq!((value(Above, 55.0), value(Above, 70.0)), (Some(60.0), Some(60.0)));
        assert_eq!((value(Below, 45.0), value(Below, 30.0)), (Some(40.0), Some(40.0)));
        assert_eq!((value(Is, 50.0), value(IsNot, 60.0)), (Some(50.0), Some(50.0)));
    }

    #[test]
    fn a_word_can_be_written_in_a_rule() {
        for figure in RuleFigure::all() {
            for word in figure.words() {
                let rule = format!("{} == {word}", figure.word()).parse::<Condition>();
                assert!(rule.is_ok(), "{word}: {rule:?}");
            }
        }
    }
}
