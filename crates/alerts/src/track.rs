//! What is remembered of one rule about one subject: the values that it compares, and the state that follows from them.

use crate::condition::{Compare, Condition, Expr, Threshold};
use crate::rule::Rule;
use crate::rule_figure::RuleFigure;
use crate::subject::{Subject, SubjectId};
use model::figure::deep::THROTTLED_BY;
use model::figure::device::{ASIC_TEMP, POWER, STATE};
use model::throttle::{self, ClockLimit};
use model::{ClockLimiter, Device, DeviceId, PciAddress, State, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum RuleState {
    #[default]
    Inactive,
    /// Its condition holds since then, by the clock of the engine and by the wall clock.
    Pending(Duration, Timestamp),
    /// It fires since then.
    Firing(Timestamp),
    /// When it began to fire, and when it ended by both clocks.
    Resolved(Timestamp, Duration, Timestamp),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Track {
    pub state: RuleState,
    /// What each distinct comparison of the rule looks at.
    values: Vec<ComparedValue>,
    /// When the subject was last in a snapshot.
    pub seen: Duration,
    pub text: String,
    pub value: Option<f64>,
    /// How the device is called now.
    pub device: Option<DeviceId>,
    /// Whether it was called otherwise in the snapshot before.
    pub is_renumbered: bool,
    pub pci_address: Option<PciAddress>,
    pub process_name: Option<String>,
    /// Why the clock of the device is low, where the rule is about that.
    pub explained: Option<String>,
    /// The same in every notice.
    pub fingerprint: String,
}

#[derive(Debug, Clone)]
struct ComparedValue {
    compare: Compare,
    /// By the place of the label; one where the figure has none.
    labels: Vec<LabelValue>,
    limit_now: Option<f64>,
    limit_last: Option<(Duration, f64)>,
}

#[derive(Debug, Clone, Default)]
struct LabelValue {
    label: usize,
    now: Option<f64>,
    last: Option<(Duration, f64)>,
    /// The values of the window of an increase, without those that a smaller one follows.
    window: VecDeque<(Duration, f64)>,
}

/// How long the last known value of a device replaces a missing one, for a rule that fires already. As long as PromQL looks back.
pub(crate) const LOOK_BACK: Duration = Duration::from_secs(300);

impl Track {
    pub fn new(rule: &Rule, subject: &Subject) -> Track {
        let mut values: Vec<ComparedValue> = Vec::new();
        for compare in rule.condition.compares() {
            if !values.iter().any(|value| value.compare.looks_like(compare)) {
                values.push(ComparedValue::new(compare));
            }
        }
        let (device, fingerprint) = (subject.device_name().cloned(), subject.fingerprint(&rule.name));
        Track { values, device, fingerprint, ..Track::default() }
    }

    /// Takes the current values of a subject that is in the snapshot.
    pub fn see(&mut self, now: Duration, subject: &Subject) {
        self.seen = now;
        let name = subject.process_name();
        // Without a copy where it is the same.
        if self.process_name.as_ref() != name {
            self.process_name = name.cloned();
        }
        let address = subject.device.and_then(|device| device.pci_address.as_ref());
        if self.pci_address.as_ref() != address {
            self.pci_address = address.cloned();
        }
        self.is_renumbered = self.device.as_ref() != subject.device_name();
        if self.is_renumbered {
            self.device = subject.device_name().cloned();
        }
        self.values.iter_mut().for_each(|value| value.take(now, subject));
        self.explained = subject.device.and_then(|device| self.explain(device));
    }

    /// Why the clock is low, where the rule compares what holds it down.
    fn explain(&self, device: &Device) -> Option<String> {
        use ClockLimiter::{Power, Temperature};
        let limit = throttle::clock_limit(device)?;
        let is_about = |value: &ComparedValue| match value.compare.figure {
            RuleFigure::Device(figure) if *figure == ASIC_TEMP => limit == ClockLimit::Firmware(Temperature),
            RuleFigure::Device(figure) if *figure == POWER => limit == ClockLimit::Firmware(Power),
            figure => figure == RuleFigure::Device(&THROTTLED_BY),
        };
        self.values.iter().any(is_about).then(|| throttle::sentence(device, None))?
    }

    /// For people: `pid 7 (python3) on device 0`.
    pub fn title(&self, id: &SubjectId) -> String {
        let device = self.device.as_ref().map(|id| format!("device {id}"));
        let process = id.process.map(|(pid, _)| match &self.process_name {
            Some(name) => format!("pid {pid} ({name})"),
            None => format!("pid {pid}"),
        });
        match (process, device) {
            (Some(process), Some(device)) => format!("{process} on {device}"),
            (process, device) => process.or(device).unwrap_or_default(),
        }
    }

    /// The subject is not in the snapshot.
    pub fn miss(&mut self, now: Duration) {
        self.is_renumbered = false;
        self.values.iter_mut().for_each(|value| value.take(now, &Subject::default()));
    }

    /// Moves to the next state. Returns the one before. `look_back` is how long the last known values count.
    pub fn step(&mut self, condition: &Condition, look_back: Duration, now: Duration, at: Timestamp) -> RuleState {
        let holds = self.holds(&condition.when);
        let stays = || holds || self.held(&condition.stays(), now, look_back);
        let before = self.state;
        self.state = match before {
            RuleState::Firing(_) if stays() => before,
            RuleState::Firing(since) => RuleState::Resolved(since, now, at),
            RuleState::Resolved(..) if !holds => before,
            _ if !holds => RuleState::Inactive,
            RuleState::Pending(began, _) if now.saturating_sub(began) < condition.hold => before,
            RuleState::Pending(..) => RuleState::Firing(at),
            _ if condition.hold.is_zero() => RuleState::Firing(at),
            _ => RuleState::Pending(now, at),
        };
        before
    }

    /// Whether an expression is known to hold now.
    pub fn holds(&self, expr: &Expr) -> bool {
        expr.holds(&|compare| self.compared(compare)?.value_now(compare))
    }

    /// Whether it holds by the last known values.
    fn held(&self, expr: &Expr, now: Duration, look_back: Duration) -> bool {
        expr.holds(&|compare| self.compared(compare)?.value_last(compare, now, look_back))
    }

    pub fn has_value(&self) -> bool {
        self.values.iter().any(|value| value.labels.iter().any(|one| one.now.is_some()))
    }

    /// The first number that the rule compares.
    pub fn first(&self) -> Option<f64> {
        let first = self.values.first()?;
        if matches!(first.compare.threshold, Threshold::Word(_)) { None } else { first.value_now(&first.compare) }
    }

    /// The values that the rule compares, for people: those of comparisons that hold or, where none does, all.
    pub fn shown(&self, expr: &Expr) -> String {
        let mut all: Vec<String> = Vec::new();
        let holds = |compare: &Compare| self.holds(&Expr::Compare(compare.clone()));
        let mut compares = expr.compares();
        if compares.iter().any(|compare| holds(compare)) {
            compares.retain(|compare| holds(compare));
        }
        for compare in compares {
            let text = self
                .compared(compare)
                .and_then(|value| Some(compare.shown(value.value_now(compare)?, &value.labels_that_hold(compare))));
            all.extend(text.filter(|text| !all.contains(text)));
        }
        all.join(", ")
    }

    /// Whether it must be kept: it is active, shown, or needed to know an increase.
    pub fn is_needed(&self, now: Duration, looks_back: bool, shown: Duration) -> bool {
        let windows = self.values.iter().filter_map(|value| value.compare.increase);
        let remembered = windows.fold(LOOK_BACK, Duration::max);
        let is_there = self.seen == now;
        match self.state {
            RuleState::Inactive => looks_back && (is_there || now.saturating_sub(self.seen) <= remembered),
            RuleState::Pending(..) | RuleState::Firing(_) => true,
            RuleState::Resolved(_, at, _) => is_there || now.saturating_sub(at) <= shown,
        }
    }

    fn compared(&self, compare: &Compare) -> Option<&ComparedValue> {
        self.values.iter().find(|value| value.compare.looks_like(compare))
    }
}

/// As rules name it.
pub const SILENT: &str = State::Silent.name();

impl ComparedValue {
    fn new(compare: &Compare) -> ComparedValue {
        ComparedValue { compare: compare.clone(), labels: Vec::new(), limit_now: None, limit_last: None }
    }

    fn take(&mut self, now: Duration, subject: &Subject) {
        let figure = self.compare.figure;
        self.labels.iter_mut().for_each(|value| value.now = None);
        figure.numbers(subject, &mut |label, number| match self.labels.iter_mut().find(|value| value.label == label) {
            Some(value) => value.now = Some(number),
            None => self.labels.push(LabelValue { label, now: Some(number), ..LabelValue::default() }),
        });
        self.limit_now = figure.limit().and_then(|limit| limit.number(subject));
        self.limit_last = self.limit_now.map(|value| (now, value)).or(self.limit_last);
        let Compare { threshold, .. } = self.compare;
        let asks_for_silent = matches!(threshold, Threshold::Word(word) if figure.texts().get(word) == Some(&SILENT));
        let is_silent = figure == RuleFigure::Device(&STATE)
            && !asks_for_silent
            && subject.device.is_some_and(|it| it.state == State::Silent);
        for value in &mut self.labels {
            value.last = match value.last {
                // One that does not answer is in the state that it was in, as far as is known.
                Some((_, state)) if is_silent => Some((now, state)),
                last => value.now.map(|value| (now, value)).or(last),
            };
            if let Some(length) = self.compare.increase {
                value.take_into_window(now, length);
            }
        }
    }

    fn value_now(&self, compare: &Compare) -> Option<f64> {
        compare.decisive(self.labels.iter().filter_map(|value| self.value(value, value.now?, self.limit_now)))
    }

    fn value_last(&self, compare: &Compare, now: Duration, look_back: Duration) -> Option<f64> {
        let recent = |last: Option<(Duration, f64)>| last.filter(|(at, _)| now.saturating_sub(*at) <= look_back);
        let limit = recent(self.limit_last).map(|(_, value)| value);
        compare.decisive(self.labels.iter().filter_map(|value| self.value(value, recent(value.last)?.1, limit)))
    }

    /// The labels for which a comparison holds now.
    fn labels_that_hold(&self, compare: &Compare) -> Vec<usize> {
        let holds = |value: &&LabelValue| {
            let now = value.now.and_then(|now| self.value(value, now, self.limit_now));
            now.is_some_and(|now| compare.holds(now))
        };
        let mut labels: Vec<usize> = self.labels.iter().filter(holds).map(|value| value.label).collect();
        labels.sort_unstable();
        labels
    }

    fn value(&self, of: &LabelValue, value: f64, limit: Option<f64>) -> Option<f64> {
        match self.compare.increase {
            Some(_) => of.window.front().map(|(_, least)| value - least),
            None => self.compare.threshold.of(value, limit),
        }
    }
}

impl LabelValue {
    fn take_into_window(&mut self, now: Duration, length: Duration) {
        self.window.retain(|(at, _)| now.saturating_sub(*at) <= length);
        if let Some(value) = self.now {
            while self.window.back().is_some_and(|(_, earlier)| *earlier >= value) {
                self.window.pop_back();
            }
            self.window.push_back((now, value));
        }
    }
}
