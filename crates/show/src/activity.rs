//! How busy a chip or a process is, as text: the same in every view.

use crate::style::Glyphs;
use model::{Activity, Held, Operation, UtilizationSource};

/// A utilization: its percent, and whether that is a lower bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilization {
    /// Share of time with a program running, in percent.
    pub percent: f64,
    /// True if the chip or process may have been busier.
    pub is_lower_bound: bool,
}

impl Utilization {
    /// The utilization of an activity; `None` where it was not measured.
    pub fn of(activity: &Activity) -> Option<Utilization> {
        let percent = activity.utilization_percent?;
        Some(Utilization { percent, is_lower_bound: activity.utilization_lower_bound == Some(true) })
    }

    /// That of the busiest device of a process. Where it is not known of all of them, it is a lower bound.
    pub fn of_busiest(held: &[Held]) -> Option<Utilization> {
        let known = || held.iter().filter_map(|held| Utilization::of(&held.activity));
        let percent = known().map(|one| one.percent).reduce(f64::max)?;
        let is_lower_bound = known().count() < held.len() || known().any(|one| one.is_lower_bound);
        Some(Utilization { percent, is_lower_bound })
    }

    /// `62%`, `≥62%`, `0.3%`: whole percent, but a little is not nothing.
    pub fn text(self, glyphs: &Glyphs) -> String {
        // There is no more than all.
        let mark = if self.is_lower_bound && self.percent < 99.5 { glyphs.at_least } else { "" };
        match self.percent {
            little if little > 0.0 && little < 0.95 && self.is_lower_bound => ">0%".into(),
            little if little > 0.0 && little < 0.95 => format!("{:.1}%", little.max(0.1)),
            percent => format!("{mark}{percent:.0}%"),
        }
    }
}

/// `62%`, `≥62%`, `–` where it is not known.
pub fn utilization(activity: &Activity, glyphs: &Glyphs) -> String {
    Utilization::of(activity).map_or_else(|| glyphs.absent.to_owned(), |known| known.text(glyphs))
}

/// Where a utilization comes from, or why it is not known, in a sentence.
pub fn explanation(activity: &Activity) -> Option<String> {
    match (activity.utilization_percent, activity.utilization_source, activity.utilization_unknown) {
        (Some(_), Some(source), _) => {
            let bound = if activity.utilization_lower_bound == Some(true) { ", a lower bound" } else { "" };
            Some(format!("{}{bound}", from(source)))
        }
        (None, _, Some(why)) => Some(why.meaning().to_owned()),
        _ => None,
    }
}

fn from(source: UtilizationSource) -> &'static str {
    match source {
        UtilizationSource::Driver => "from the driver",
        UtilizationSource::Profiler => "from tt-metal's profiler",
        UtilizationSource::Dispatch => "from dispatch telemetry",
    }
}

/// The device time of all operations, where any is known.
pub fn device_seconds(all: &[Operation]) -> Option<f64> {
    Some(all.iter().filter_map(|operation| operation.device_seconds).sum()).filter(|total| *total > 0.0)
}

/// The operations of a process, the one with the most device time first, each with its part of the device time of all. Where no
/// device time is known, the one that was launched most often is first.
pub fn operations(all: &[Operation]) -> Vec<(&Operation, Option<f64>)> {
    let total = device_seconds(all);
    let share = |operation: &Operation| Some(operation.device_seconds? / total?);
    let mut sorted: Vec<&Operation> = all.iter().collect();
    sorted.sort_by(|a, b| a.by_cost(b));
    sorted.into_iter().map(|operation| (operation, share(operation))).collect()
}

/// A length of time with three digits or so: `830 ns`, `4.0 µs`, `12.5 ms`, `702.5 s`, `2 h 05 min`.
pub fn seconds(seconds: f64, unicode: bool) -> String {
    let micro = if unicode { "µs" } else { "us" };
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} {micro}", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 1_000.0 => format!("{s:.1} s"),
        s if s < 36_000.0 => format!("{:.0} s", s),
        s => format!("{:.0} h", s / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::style::Style;
    use model::{DeviceId, UtilizationUnknown};

    const STYLE: Style = Style { columns: 80, rows: None, color: false, unicode: true };

    fn shown(percent: f64, is_lower_bound: bool) -> String {
        let activity = Activity {
            utilization_lower_bound: Some(is_lower_bound),
            ..Activity::measured(percent, UtilizationSource::Profiler)
        };
        utilization(&activity, STYLE.glyphs())
    }

    #[test]
    fn a_utilization_is_whole_percent_and_a_lower_bound_is_marked() {
        assert_eq!([62.5, 100.0, 99.6, 0.0].map(|percent| shown(percent, false)), ["62%", "100%", "100%", "0%"]);
        assert_eq!([0.3, 0.01, 0.96].map(|percent| shown(percent, false)), ["0.3%", "0.1%", "1%"]);
        assert_eq!([62.5, 0.3, 100.0].map(|percent| shown(percent, true)), ["≥62%", ">0%", "100%"]);
        let unknown = Activity::unknown(UtilizationUnknown::NoAgent);
        assert_eq!(utilization(&unknown, STYLE.glyphs()), "–");
        assert_eq!(
            explanation(&unknown).as_deref(),
            Some("The process runs without the agent: start it with ttmon run.")
        );
        assert_eq!(explanation(&Activity::default()), None);
    }

    #[test]
    fn a_process_is_as_busy_as_its_busiest_device() {
        let held = |n, activity| Held { activity, ..Held::new(DeviceId::Local(n)) };
        let busy = |n, percent| held(n, Activity::measured(percent, UtilizationSource::Profiler));
        let of = |held: &[Held]| Utilization::of_busiest(held).map(|one| one.text(STYLE.glyphs()));
        assert_eq!(of(&[busy(0, 10.0), busy(1, 40.0)]).as_deref(), Some("40%"));
        let unknown = held(2, Activity::unknown(UtilizationUnknown::RemoteChip));
        assert_eq!(of(&[busy(0, 10.0), unknown.clone()]).as_deref(), Some("≥10%"));
        assert_eq!(of(&[unknown]), None);
    }

    #[test]
    fn operations_are_sorted_by_device_time_and_have_their_part_of_it() {
        let process = &example::machine().processes[1];
        let all = operations(&process.operations);
        let texts: Vec<String> =
            all.iter().map(|(one, share)| format!("{} {:.0}%", one.name, share.unwrap() * 100.0)).collect();
        assert_eq!(texts, ["MatmulDeviceOperation 68%", "SoftmaxDeviceOperation 19%", "BinaryNgDeviceOperation 13%"]);
        let unmeasured = |name: &str, launches| Operation { name: name.into(), launches, ..Operation::default() };
        let all = [unmeasured("few", 1), unmeasured("many", 9)];
        let all = operations(&all);
        assert_eq!(
            all.iter().map(|(one, share)| (one.name.as_str(), *share)).collect::<Vec<_>>(),
            [("many", None), ("few", None)]
        );
    }

    #[test]
    fn times_have_about_three_digits() {
        let texts = [3e-8, 4e-6, 0.0125, 1.25, 702.5, 4_000.0, 40_000.0].map(|time| seconds(time, true));
        assert_eq!(texts, ["30 ns", "4.0 µs", "12.5 ms", "1.2 s", "702.5 s", "4000 s", "11 h"]);
    }
}
