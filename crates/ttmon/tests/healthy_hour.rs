//! An hour of a healthy machine with 32 chips at full load: nobody is warned of anything.

use alerts::Engine;
use alerts::settings::AlertSettings;
use model::{Snapshot, State, Timestamp, Weight};
use sim::{SimMachine, Spec};
use sources::{Options, Root, Sampler};
use std::path::Path;
use std::time::Duration;
use watch::events::{Events, Observation};

/// Simulated time does not wait for the clock: the machine moves on, and is sampled as if so much time had passed.
const STEP: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3600);
const BEGIN: i64 = 1_767_323_045_000;

#[test]
fn an_hour_at_full_load_is_at_most_five_events_and_no_warning() {
    let spec: Spec = "galaxy-wh,full,seed=3".parse().unwrap();
    let mut machine = SimMachine::start(&spec, Path::new(env!("CARGO_BIN_EXE_ttmon"))).unwrap();
    let root = Root::under(machine.root()).with_faults(machine.inject());
    let mut sampler = Sampler::new(root, Options { deadline: Duration::from_secs(10), rates: true, relaxed: false });
    let (mut rules, mut events) = (Engine::new(AlertSettings::default().rules), Events::default());
    let mut before = Snapshot::empty();
    let mut notices = Vec::new();
    while machine.elapsed() < HOUR {
        machine.advance(STEP).unwrap();
        let mut now = sampler.sample();
        now.taken_at = Timestamp(BEGIN + machine.elapsed().as_millis() as i64);
        notices.extend(rules.observe(machine.elapsed(), &now, &[]));
        now.alerts = rules.firing();
        events.notice(Observation { snapshot: &before, exits: &[] }, Observation { snapshot: &now, exits: &[] });
        before = now;
    }
    assert_eq!(before.devices.len(), 32);
    for device in &before.devices {
        assert_eq!(device.state, State::Ok, "{device:?}");
        let share = device.power.unwrap().0 / device.power_max.unwrap().0;
        assert!(share > 0.95, "it is at full load: {share}");
    }
    let events: Vec<_> = events.latest(Timestamp(i64::MAX)).collect();
    assert!(events.len() <= 5, "{} events: {events:#?}", events.len());
    assert!(events.iter().all(|event| event.weight < Weight::Warning), "{events:#?}");
    assert!(notices.iter().all(|notice| notice.alert.severity < model::Severity::Warning), "{notices:#?}");
}
