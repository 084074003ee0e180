//! The driver was loaded again, and gave the numbers of two cards to each other.

use alerts::{Engine, Rule};
use model::figure::device::POWER;
use model::{Device, DeviceId, History, Severity, Snapshot};
use sim::tree::{Chip, lay, remove};
use sources::{Options, Root, Sampler};
use std::time::Duration;
use watch::events::Events;
use watch::moment::Moment;
use watch::record::{Recorder, Recording};

/// Watts, heartbeat and thermal trips of two cards, so far apart that one cannot be taken for the other.
fn cards() -> [Chip; 2] {
    let mut cards = [Chip::p150a(0), Chip::p150b(1)];
    for (card, (watts, heartbeat, trips)) in cards.iter_mut().zip([(30, 900_000, 1), (140, 5000, 70)]) {
        card.hwmon[0].power = Some(watts * 1_000_000);
        (card.heartbeat, card.therm_trip_count) = (Some(heartbeat), Some(trips));
    }
    cards
}

/// The machine before and after its numbers swap, and perhaps in between, when its devices are gone.
fn samples(in_between: bool) -> Vec<Snapshot> {
    let (folder, mut cards) = (tempfile::tempdir().unwrap(), cards());
    let options = Options { deadline: Duration::from_secs(10), rates: true, relaxed: false };
    let mut sampler = Sampler::new(Root::under(folder.path()), options);
    let sample = |sampler: &mut Sampler, cards: &mut [Chip; 2]| {
        // Their firmware is alive.
        cards.iter_mut().for_each(|card| card.heartbeat = card.heartbeat.map(|beat| beat + 10));
        lay(folder.path(), cards, "2.10.0").unwrap();
        sampler.sample()
    };
    let mut all = vec![sample(&mut sampler, &mut cards), sample(&mut sampler, &mut cards)];
    cards.iter().for_each(|card| remove(folder.path(), card).unwrap());
    all.extend(in_between.then(|| sampler.sample()));
    let [one, other] = &mut cards;
    std::mem::swap(&mut one.index, &mut other.index);
    all.extend([sample(&mut sampler, &mut cards), sample(&mut sampler, &mut cards)]);
    for (n, snapshot) in all.iter_mut().enumerate() {
        snapshot.taken_at.0 += n as i64 * 1000;
    }
    all
}

fn device(snapshot: &Snapshot, n: u32) -> &Device {
    snapshot.devices.iter().find(|device| device.id == DeviceId::Local(n)).unwrap()
}

/// All powers of the cards that are 0 and 1 in this snapshot.
fn powers(history: &History, shown: &Snapshot) -> [Vec<f64>; 2] {
    [0, 1].map(|n| {
        let series = history.series(device(shown, n), POWER.field());
        let mut powers: Vec<f64> = series.iter().filter_map(|(_, watts)| watts).collect();
        powers.dedup();
        powers
    })
}

#[test]
fn history_totals_alerts_and_events_stay_with_the_card_when_numbers_swap() {
    let samples = samples(false);
    let busy = Rule {
        name: "busy".into(),
        condition: "power > 100 for 3s".parse().unwrap(),
        severity: Severity::Warning,
        devices: vec![],
        process: None,
        text: None,
        advice: None,
    };
    let (mut history, mut engine, mut events) = (History::new(10), Engine::new(vec![busy]), Events::default());
    let mut before = Moment::default();
    for (second, snapshot) in samples.iter().enumerate() {
        history.push(snapshot);
        engine.observe(Duration::from_secs(second as u64), snapshot, &[]);
        let moment = Moment::of(snapshot.clone());
        events.notice(before.observation(), moment.observation());
        before = moment;
    }
    let last = samples.last().unwrap();
    assert_eq!(powers(&history, last), [vec![140.0], vec![30.0]]);
    assert_eq!([0, 1].map(|n| device(last, n).thermal_trips_total), [Some(70), Some(1)]);
    let firing: Vec<_> = engine.firing().into_iter().map(|alert| alert.text).collect();
    assert_eq!(firing, ["device 0: busy (power 140.0 W)"], "it began when the card was number 1");
    let texts: Vec<String> = events.take().into_iter().map(|event| event.text).collect();
    let numbers =
        ["the device at 0000:09:00.0 is number 0 now, was 1", "the device at 0000:01:00.0 is number 1 now, was 0"];
    assert_eq!(texts, numbers, "and not that they were reset");
}

#[test]
fn a_recording_over_a_swap_of_numbers_shows_one_line_for_each_card() {
    let (samples, folder) = (samples(true), tempfile::tempdir().unwrap());
    let path = folder.path().join("recording");
    let mut recorder = Recorder::create(&path).unwrap();
    samples.iter().for_each(|snapshot| recorder.push(snapshot).unwrap());
    recorder.finish().unwrap();
    let mut recording = Recording::open(&path).unwrap();
    let mut history = History::new(10);
    (0..recording.len()).for_each(|n| history.push(&recording.snapshot(n).unwrap()));
    // A replay can stand before and after the swap.
    let (first, last) = (recording.snapshot(0).unwrap(), recording.snapshot(recording.len() - 1).unwrap());
    assert_eq!(powers(&history, &first), [vec![30.0], vec![140.0]]);
    assert_eq!(powers(&history, &last), [vec![140.0], vec![30.0]]);
}
