//! A machine in one line, and how urgent its problems are.

use super::{Fleet, HostView, Reach};
use crate::limit_events::title_in_text;
use model::figure::Judge;
use model::figure::device::DEVICE_FIGURES;
use model::{AlertState, Bytes, Celsius, Device, Judgement, Need, Severity, State, Watts};
use std::time::Duration;

/// A machine in one line. What was not measured is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Urgency of its problems.
    pub need: Need,
    /// Number of devices.
    pub devices: usize,
    /// Those that answer, the second chips of boards included.
    pub ok: usize,
    /// The one that is nearest to its limit.
    pub hottest: Option<(Celsius, Option<Celsius>)>,
    /// Sum of the power.
    pub power: Option<Watts>,
    /// Sum of the power limits.
    pub power_max: Option<Watts>,
    /// DRAM in use.
    pub dram_used: Option<Bytes>,
    /// Capacity of the DRAM.
    pub dram_total: Option<Bytes>,
    /// DRAM that is still attributed to exited processes.
    pub dram_stale: Bytes,
    /// Whether a process there does not report how much it uses.
    pub is_at_least: bool,
    /// Number of processes that hold devices.
    pub processes: usize,
    /// What is wrong, the worst first of several.
    pub worst: Option<String>,
}

/// What is older than this many seconds is not what is now.
const OLD: Duration = Duration::from_secs(15);

/// The places of the machines, the worst first, and each with its summary. Those that need the same are in the order of their names
/// on the command line.
pub fn worst_first(fleet: &Fleet) -> Vec<(usize, Summary)> {
    let mut all: Vec<(usize, Summary)> = fleet.hosts.iter().map(Summary::of).enumerate().collect();
    all.sort_by_key(|(at, summary)| (summary.need, *at));
    all
}

/// Whether the last snapshot of a machine is too old to be current.
pub fn is_old(host: &HostView) -> bool {
    host.age.is_some_and(|age| age > OLD)
}

impl Summary {
    /// The summary of a machine.
    pub fn of(host: &HostView) -> Summary {
        let devices = host.snapshot.as_deref().map_or(&[][..], |snapshot| &snapshot.devices);
        let is_ok = |device: &&Device| matches!(device.state, State::Ok | State::Remote);
        let sum = |of: fn(&Device) -> Option<f64>| {
            let known: Vec<f64> = devices.iter().filter_map(of).collect();
            (!known.is_empty()).then(|| known.into_iter().sum::<f64>())
        };
        let bytes = |of: fn(&Device) -> Option<Bytes>| {
            let known = devices.iter().filter_map(of);
            known.reduce(|a, b| Bytes(a.0.saturating_add(b.0)))
        };
        let hottest = devices.iter().filter_map(|device| Some((device.asic_temp?, device.asic_temp_max)));
        let (need, worst) = worst(host, devices);
        Summary {
            need,
            devices: devices.len(),
            // What is not known now is not ok.
            ok: if host.trouble().is_some() { 0 } else { devices.iter().filter(is_ok).count() },
            hottest: hottest.max_by(|a, b| heat(*a).total_cmp(&heat(*b))),
            power: sum(|device| device.power.map(|power| power.0)).map(Watts),
            power_max: sum(|device| device.power_max.map(|power| power.0)).map(Watts),
            dram_used: bytes(|device| device.memory.dram_used),
            dram_total: bytes(|device| device.memory.dram_total),
            dram_stale: bytes(|device| Some(device.memory.stale_dram())).unwrap_or_default(),
            is_at_least: devices.iter().any(|device| device.memory.untracked_processes > 0),
            processes: host.snapshot.as_deref().map_or(0, |snapshot| snapshot.processes.len()),
            worst,
        }
    }
}

/// How near a chip is to its limit; one without a limit is judged by its temperature alone.
fn heat((temp, limit): (Celsius, Option<Celsius>)) -> f64 {
    temp.0 / limit.filter(|limit| limit.0 > 0.0).map_or(100.0, |limit| limit.0)
}

fn worst(host: &HostView, devices: &[Device]) -> (Need, Option<String>) {
    match &host.state {
        Reach::Unreachable { why, .. } => return (Need::Unreachable, Some(why.clone())),
        Reach::Waiting => return (Need::Waiting, None),
        Reach::Reached => {}
    }
    let firing = |critical: bool| {
        host.alerts
            .iter()
            .find(|alert| alert.state == AlertState::Firing && (alert.severity == Severity::Critical) == critical)
            .map(|alert| if alert.text.is_empty() { alert.name.clone() } else { alert.text.clone() })
    };
    let in_state = |states: &[State]| {
        let named: Vec<&Device> = devices.iter().filter(|device| states.contains(&device.state)).collect();
        match &named[..] {
            [] => None,
            [one] => Some(format!("device {} is {}", one.id, state(one.state))),
            [one, others @ ..] => Some(format!("device {} is {}, and {} more", one.id, state(one.state), others.len())),
        }
    };
    let bad = in_state(&[State::Hung, State::Lost, State::Silent]).or_else(|| firing(true));
    if bad.is_some() {
        return (Need::Critical, bad);
    }
    let critical = || {
        let judged = || DEVICE_FIGURES.iter().filter(|figure| matches!(figure.judge, Judge::Heat | Judge::Capacity));
        devices.iter().find_map(|device| {
            let figure = judged().find(|figure| figure.judge(device) == Some(Judgement::Critical))?;
            let word = figure.judge.word(Judgement::Critical);
            Some(format!("device {}: {} {word}", device.id, title_in_text(figure)))
        })
    };
    let old = || is_old(host).then(|| format!("nothing new for {:.0} s", host.age.unwrap_or_default().as_secs_f64()));
    let none = || (devices.is_empty()).then(|| "no device".to_owned());
    let warning =
        firing(false).or_else(|| in_state(&[State::Resetting, State::NoTelemetry, State::NoDriver])).or_else(critical);
    let warning = warning.or_else(old).or_else(none);
    if warning.is_some() {
        return (Need::Warning, warning);
    }
    let faults = host.snapshot.as_deref().map_or(&[][..], |snapshot| &snapshot.faults);
    let fault = match faults {
        [] => None,
        [one] => Some(format!("{}: {}", one.path, one.reason)),
        [one, ..] => Some(format!("{} faults, as {}: {}", faults.len(), one.path, one.reason)),
    };
    (Need::Fine, fault)
}

fn state(state: State) -> &'static str {
    match state {
        State::NoDriver => "without a driver",
        State::NoTelemetry => "without telemetry",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::example;
    use model::{Alert, Timestamp};
    use std::sync::Arc;

    fn need(change: impl FnOnce(&mut HostView)) -> (Need, Option<String>) {
        let mut host = example::reached("lab-7", example::calm(2));
        change(&mut host);
        let summary = Summary::of(&host);
        (summary.need, summary.worst)
    }

    fn device(host: &mut HostView, change: impl FnOnce(&mut Device)) {
        change(&mut Arc::make_mut(host.snapshot.as_mut().unwrap()).devices[1]);
    }

    #[test]
    fn a_machine_that_does_not_answer_is_worse_than_a_broken_one() {
        let why = "no answer within 5 s".to_owned();
        let unreachable = |host: &mut HostView| {
            host.state = Reach::Unreachable { why: why.clone(), since: Duration::from_secs(3) };
        };
        assert_eq!(need(unreachable), (Need::Unreachable, Some(why.clone())));
        let hung = need(|host| device(host, |device| device.state = State::Hung));
        assert_eq!(hung, (Need::Critical, Some("device 1 is hung".into())));
        let hot = need(|host| device(host, |device| device.asic_temp = Some(Celsius(89.0))));
        assert_eq!(hot, (Need::Warning, Some("device 1: temperature critical".into())));
        let old = need(|host| host.age = Some(Duration::from_secs(40)));
        assert_eq!(old, (Need::Warning, Some("nothing new for 40 s".into())));
        assert_eq!(need(|_| {}), (Need::Fine, None));
        assert!(Need::Unreachable < Need::Critical && Need::Critical < Need::Warning && Need::Waiting < Need::Fine);
    }

    #[test]
    fn alerts_count_as_their_severity_says_while_they_fire() {
        let alert = |severity, state| {
            let alert = Alert {
                name: "too_hot".into(),
                severity,
                state,
                device: None,
                process: None,
                since: Timestamp(0),
                value: None,
                text: "80 °C for 5 minutes".into(),
            };
            need(|host| host.alerts = vec![alert])
        };
        assert_eq!(alert(Severity::Critical, AlertState::Firing), (Need::Critical, Some("80 °C for 5 minutes".into())));
        assert_eq!(alert(Severity::Warning, AlertState::Firing).0, Need::Warning);
        assert_eq!(alert(Severity::Critical, AlertState::Resolved), (Need::Fine, None));
        assert_eq!(alert(Severity::Critical, AlertState::Pending), (Need::Fine, None));
    }

    #[test]
    fn a_sum_has_what_was_measured_and_nothing_else() {
        let mut host = example::reached("lab-7", example::calm(3));
        device(&mut host, |device| device.power = None);
        let summary = Summary::of(&host);
        let each = host.snapshot.as_ref().unwrap().devices[0].power.unwrap().0;
        assert_eq!(summary.power, Some(Watts(each * 2.0)));
        let nothing = Summary::of(&HostView::new("lab-8", "http://lab-8:9746"));
        assert_eq!((nothing.power, nothing.dram_used, nothing.hottest), (None, None, None));
        assert_eq!((nothing.need, nothing.devices), (Need::Waiting, 0));
    }
}
