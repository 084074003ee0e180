use super::*;
use model::figure::device::POWER;
use model::{Bytes, BytesPerSecond, Celsius, Device, DeviceId, Megahertz, PciAddress, Rpm, SCHEMA, Timestamp, Watts};

/// A machine whose devices all have this power at that time.
fn machine(seconds: i64, devices: u32, watts: Option<f64>) -> Snapshot {
    let device = |n| {
        let mut device = Device::new(DeviceId::Local(n));
        device.sample_age_seconds = Some(0.0);
        device.power = watts.map(Watts);
        device
    };
    Snapshot {
        schema: SCHEMA,
        taken_at: Timestamp(seconds * 1000),
        host: Default::default(),
        devices: (0..devices).map(device).collect(),
        processes: Vec::new(),
        faults: Vec::new(),
        alerts: Vec::new(),
        kernel_log: None,
    }
}

fn told(history: &PastValues, wanted: Span) -> String {
    let span = history.fit(wanted, 1);
    let mut text = format!("{}..{} by {}: ", span.from / 1000, span.to / 1000, span.step / 1000);
    write(POWER.field(), &history.series(&Device::default(), POWER.field(), span), &mut text);
    text
}

#[test]
fn the_past_of_a_card_is_found_under_its_new_number() {
    let mut history = PastValues::up_to(1 << 20);
    let swap = |seconds, slots: [&str; 2]| {
        let mut machine = machine(seconds, 2, None);
        for (device, slot) in machine.devices.iter_mut().zip(slots) {
            device.pci_address = Some(PciAddress(slot.into()));
            device.power = Some(Watts(if slot == "0000:01:00.0" { 10.0 } else { 20.0 }));
        }
        machine
    };
    history.push(&swap(0, ["0000:01:00.0", "0000:02:00.0"]));
    let now = swap(1, ["0000:02:00.0", "0000:01:00.0"]);
    history.push(&now);
    let powers =
        |device| history.series(device, POWER.field(), span(0, 2, 1)).into_iter().map(|point| point.unwrap()[1]);
    assert_eq!(powers(&now.devices[0]).collect::<Vec<_>>(), [20.0, 20.0]);
    assert_eq!(powers(&now.devices[1]).collect::<Vec<_>>(), [10.0, 10.0]);
}

fn span(from: i64, to: i64, step: i64) -> Span {
    Span { from: from * 1000, to: to * 1000, step: step * 1000 }
}

#[test]
fn what_was_measured_is_served_and_what_was_not_is_a_gap() {
    let mut history = PastValues::up_to(1 << 20);
    for (time, watts) in [(100, Some(10.0)), (101, Some(20.5)), (102, None), (103, Some(30.0)), (106, Some(40.0))] {
        history.push(&machine(time, 1, watts));
    }
    assert_eq!(
        told(&history, span(100, 108, 1)),
        "100..108 by 1: [[10,10,10],[20.5,20.5,20.5],null,[30,30,30],null,null,[40,40,40],null]"
    );
    assert_eq!(told(&history, span(100, 108, 4)), "100..108 by 4: [[10,20.166666,30],[40,40,40]]");
    assert_eq!(told(&history, span(50, 53, 1)), "50..53 by 1: [null,null,null]");
}

#[test]
fn several_in_a_second_keep_their_extremes() {
    let mut history = PastValues::up_to(1 << 20);
    for (millis, watts) in [(100_000, 10.0), (100_300, 50.0), (100_600, 30.0)] {
        let snapshot = Snapshot { taken_at: Timestamp(millis), ..machine(0, 1, Some(watts)) };
        history.push(&snapshot);
    }
    assert_eq!(told(&history, span(100, 101, 1)), "100..101 by 1: [[10,30,50]]");
}

#[test]
fn what_is_out_of_date_is_no_measurement() {
    let mut history = PastValues::up_to(1 << 20);
    let mut stale = machine(100, 1, Some(10.0));
    stale.devices[0].sample_age_seconds = Some(3.0);
    history.push(&stale);
    history.push(&machine(101, 1, Some(20.0)));
    assert_eq!(told(&history, span(100, 102, 1)), "100..102 by 1: [null,[20,20,20]]");
}

#[test]
fn a_clock_that_was_set_back_takes_the_future_with_it() {
    let mut history = PastValues::up_to(1 << 20);
    for time in [100, 101, 102, 500, 101] {
        history.push(&machine(time, 1, Some(time as f64)));
    }
    assert_eq!(told(&history, span(100, 104, 1)), "100..104 by 1: [[100,100,100],[101,101,101],null,null]");
    assert_eq!(told(&history, span(500, 501, 1)), "500..501 by 1: [null]");
}

#[test]
fn the_older_the_coarser() {
    let mut history = PastValues::up_to(64 << 20);
    let day = 86_400;
    for time in 0..=day + 7200 {
        history.push(&machine(time, 1, Some(f64::from((time % 60) as u32))));
    }
    let now = day + 7200;
    assert_eq!(told(&history, span(now - 3, now, 1)), "93597..93600 by 1: [[57,57,57],[58,58,58],[59,59,59]]");
    assert!(told(&history, span(now - 7200, now - 7100, 1)).contains("by 10: [[0,4.5,9],"), "two hours ago");
    assert!(told(&history, span(now - 80_000, now - 79_000, 1)).contains("by 60: [[0,29.5,59],"), "most of a day ago");
    let oldest = history.oldest().unwrap() / 1000;
    assert!((now - oldest - day).abs() <= 3600, "a day and a slice: {oldest}");
}

#[test]
fn an_answer_has_so_many_points_at_the_most() {
    let history = PastValues::up_to(1 << 20);
    let fits = |wanted, series| {
        let span = history.fit(wanted, series);
        ((span.to - span.from) / span.step, span.step)
    };
    assert_eq!(fits(span(0, 3600, 1), 1), (1800, 2000));
    assert_eq!(fits(span(0, 3600, 1), 256), (360, 10_000));
    let (points, _) = fits(Span { from: 0, to: i64::MAX / 4, step: 1 }, 1);
    assert!(points <= 2000, "{points}");
}

#[test]
fn it_never_takes_more_than_it_may() {
    let mut history = PastValues::up_to(300_000);
    for time in 0..9000 {
        // Never the same twice, and twice a second: this takes the most room.
        for half in [0, 500] {
            let watts = f64::from((time * 7919 % 997) as u32) + half as f64;
            let mut snapshot = machine(time, 8, Some(watts));
            snapshot.taken_at.0 += half;
            snapshot.devices.iter_mut().for_each(|device| device.memory.dram_used = Some(Bytes(time as u64)));
            history.push(&snapshot);
            assert!(history.bytes() <= 300_000, "{} at {time}", history.bytes());
        }
    }
    assert!(told(&history, span(8990, 9000, 1)).contains("by 1: [["), "the last minutes are there all the same");
}

#[test]
fn what_stands_still_takes_next_to_nothing() {
    let (mut still, mut moving) = (PastValues::up_to(16 << 20), PastValues::up_to(16 << 20));
    for time in 0..7200 {
        still.push(&machine(time, 32, Some(30.0)));
        moving.push(&machine(time, 32, Some(f64::from((time % 61) as u32))));
    }
    assert!(still.bytes() * 2 < moving.bytes(), "{} and {}", still.bytes(), moving.bytes());
    assert_eq!(told(&still, span(7000, 7002, 1)), "7000..7002 by 1: [[30,30,30],[30,30,30]]");
}

#[test]
#[ignore = "long"]
fn a_day_of_32_devices_fits_with_all_its_steps() {
    let mut history = PastValues::up_to(16 << 20);
    let day = 86_400;
    // As often as each part of the day is kept: more would change nothing but the time that this takes.
    let times = (0..day - 21_600).step_by(30).chain((day - 21_600..day - 3600).step_by(5)).chain(day - 3600..day);
    for time in times {
        let mut snapshot = machine(time, 32, Some(f64::from((time * 7919 % 997) as u32)));
        for device in &mut snapshot.devices {
            device.asic_temp = Some(Celsius(f64::from((time * 7919 % 499) as u32) / 4.0));
            device.aiclk = Some(Megahertz(800 + (time % 501) as u32));
            device.fan = Some(Rpm(1000 + (time % 503) as u32));
            device.memory.dram_used = Some(Bytes(time as u64));
            device.memory.l1_used = Some(Bytes(time as u64 * 2));
            device.pcie.host_to_device = Some(BytesPerSecond(time as f64));
            device.pcie.device_to_host = Some(BytesPerSecond(time as f64 * 3.0));
        }
        history.push(&snapshot);
    }
    let bytes = history.bytes();
    println!("a day of 32 devices takes {bytes} bytes");
    assert!(bytes <= 16 << 20, "{bytes}");
    assert_eq!(history.oldest(), Some(0), "nothing had to go");
    assert!(told(&history, span(day - 3600, day - 3590, 1)).starts_with("82800..82810 by 1: [["));
    assert!(told(&history, span(day - 21_600, day - 21_500, 1)).starts_with("64800..64900 by 10: [["));
}
