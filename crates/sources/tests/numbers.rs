//! Cards whose numbers change: the driver was loaded again, a card was taken out or moved.

use crate::support::{BLACKHOLE, Machine, stuck_while};
use model::Snapshot;
use sources::{Options, Sampler};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const A: &str = "0000:01:00.0";
const B: &str = "0000:02:00.0";

/// Two cards, A and B, each with its own serial, counters and count of thermal trips.
fn two_cards() -> Machine {
    let machine = Machine::new().device(0, A, BLACKHOLE).device(1, B, BLACKHOLE);
    for (n, name) in ["A1", "B2"].into_iter().enumerate() {
        set_card(&machine, n as u32, name);
    }
    trips(&machine, [(0, 5), (1, 7)]);
    machine
}

/// A card without a heartbeat, which would have to move.
fn set_card(machine: &Machine, n: u32, name: &str) {
    let is_kept = |line: &&str| !line.contains("heartbeat");
    for line in crate::support::P150A.lines().filter(is_kept) {
        machine.set(&line.replacen("0/", &format!("{n}/"), 1));
    }
    machine.set(&format!("{n}/tt_serial = {name:0>16}\n{n}/tt_asic_id = {name:E>16}"));
}

fn trips(machine: &Machine, counts: [(u32, u32); 2]) {
    counts.iter().for_each(|(n, count)| machine.set(&format!("{n}/tt_therm_trip_count = {count}")));
}

/// Every PCIe counter of a device.
fn counters(machine: &Machine, n: u32, flits: u32) {
    let received = ["slv_posted_wr", "slv_nonposted_wr", "mst_rd"].map(|kind| format!("{kind}_data_word_received"));
    let sent = ["slv_rd", "mst_posted_wr", "mst_nonposted_wr"].map(|kind| format!("{kind}_data_word_sent"));
    for name in received.iter().chain(&sent) {
        machine.set(&format!("{n}/pcie_perf_counters/{name}0 = {flits}\n{n}/pcie_perf_counters/{name}1 = {flits}"));
    }
}

/// A line per device: name, address, serial, state, total of thermal trips.
fn seen(snapshot: &Snapshot) -> Vec<String> {
    let line = |device: &model::Device| {
        let (address, serial) = (device.pci_address.as_ref().unwrap(), device.serial.as_deref().unwrap_or("–"));
        let serial = serial.trim_start_matches('0');
        let trips = device.thermal_trips_total.map_or("–".into(), |trips| trips.to_string());
        format!("{} {address} {serial} {} {trips}", device.id, device.state.name())
    };
    snapshot.devices.iter().map(line).collect()
}

#[test]
fn totals_stay_with_their_card_when_numbers_swap() {
    let machine = two_cards();
    let mut sampler = machine.sampler(false);
    assert_eq!(seen(&sampler.sample()), ["0 0000:01:00.0 A1 ok 5", "1 0000:02:00.0 B2 ok 7"]);
    machine.set_numbers(&[(A, 1), (B, 0)]);
    // A was off, and counts from zero again.
    trips(&machine, [(0, 8), (1, 1)]);
    assert_eq!(seen(&sampler.sample()), ["0 0000:02:00.0 B2 ok 8", "1 0000:01:00.0 A1 ok 6"]);
}

#[test]
fn traffic_is_counted_by_card_when_numbers_swap() {
    let machine = two_cards();
    counters(&machine, 0, 1000);
    counters(&machine, 1, 500_000);
    let mut sampler = machine.sampler(true);
    sampler.sample();
    machine.set_numbers(&[(A, 1), (B, 0)]);
    counters(&machine, 0, 500_000 + 7);
    counters(&machine, 1, 1000 + 3);
    std::thread::sleep(Duration::from_millis(20));
    let snapshot = sampler.sample();
    let flits = |n: usize| snapshot.devices[n].pcie.host_to_device_total.map(|bytes| bytes.0 / 64 / 6);
    assert_eq!([flits(0), flits(1)], [Some(7), Some(3)]);
    assert!(snapshot.devices.iter().all(|device| device.pcie.host_to_device.unwrap().0 > 0.0), "rates go on, too");
}

#[test]
fn energy_is_counted_by_card_when_numbers_swap() {
    let machine = two_cards();
    let watts = |all: [u32; 2]| {
        for (n, watts) in all.into_iter().enumerate() {
            machine.set(&format!("{n}/hwmon2/power1_input = {watts}000000"));
        }
    };
    watts([1, 400]);
    let mut sampler = machine.sampler(true);
    let mut sample = || {
        std::thread::sleep(Duration::from_millis(20));
        sampler
            .sample()
            .devices
            .into_iter()
            .map(|device| device.energy_total.map(|energy| energy.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(sample(), [Some(0.0), Some(0.0)]);
    let before = sample();
    assert!(before[0].unwrap() > 0.0 && before[1] > before[0], "{before:?}");
    machine.set_numbers(&[(A, 1), (B, 0)]);
    watts([400, 1]);
    assert_eq!(sample(), [before[1], before[0]], "the time without folders adds nothing");
    let after = sample();
    assert!(after[0] > before[1] && after[1] > before[0], "{before:?} {after:?}");
    machine.take_out(A);
    assert_eq!(sample()[1], after[1], "a lost card keeps its total");
}

#[test]
fn one_sample_has_no_energy() {
    let machine = two_cards();
    let snapshot = machine.sampler(false).sample();
    assert!(snapshot.devices.iter().all(|device| device.power.is_some() && device.energy_total.is_none()));
}

#[test]
fn a_lost_device_whose_number_another_one_has_is_named_by_its_address() {
    let machine = two_cards();
    let mut sampler = machine.sampler(false);
    sampler.sample();
    machine.take_out(A);
    assert_eq!(seen(&sampler.sample()), ["0 0000:01:00.0 A1 lost 5", "1 0000:02:00.0 B2 ok 7"]);
    machine.set_numbers(&[(B, 0)]);
    assert_eq!(seen(&sampler.sample()), ["0 0000:02:00.0 B2 ok 7", "0000:01:00.0 0000:01:00.0 A1 lost 5"]);
}

#[test]
fn another_card_in_a_slot_begins_at_zero() {
    let machine = two_cards();
    let mut sampler = machine.sampler(false);
    sampler.sample();
    machine.set_numbers(&[(A, 0), (B, 1)]);
    set_card(&machine, 0, "C3");
    machine.set("0/tt_therm_trip_count = 2");
    assert_eq!(seen(&sampler.sample())[0], "0 0000:01:00.0 C3 ok 2");
}

#[test]
fn a_chip_at_another_address_is_known_by_its_asic_id_and_not_lost() {
    let machine = two_cards();
    let mut sampler = machine.sampler(false);
    sampler.sample();
    machine.take_out(A);
    sampler.sample();
    let machine = machine.device(2, "0000:09:00.0", BLACKHOLE);
    set_card(&machine, 2, "A1");
    // It was off, and counts from zero again.
    machine.set("2/tt_therm_trip_count = 3");
    assert_eq!(seen(&sampler.sample()), ["1 0000:02:00.0 B2 ok 7", "2 0000:09:00.0 A1 ok 8"]);
    assert_eq!(seen(&sampler.sample()), ["1 0000:02:00.0 B2 ok 7", "2 0000:09:00.0 A1 ok 8"]);
}

#[test]
fn a_read_that_is_stuck_while_numbers_swap_answers_for_its_own_card() {
    let machine = two_cards();
    let stuck = Arc::new(AtomicBool::new(false));
    let options = Options { deadline: Duration::from_millis(300), rates: false, relaxed: false };
    let mut sampler = Sampler::new(machine.root().with_faults(stuck_while(&stuck, "tenstorrent!0/tt_aiclk")), options);
    sampler.sample();
    stuck.store(true, Ordering::Relaxed);
    sampler.sample();
    machine.set_numbers(&[(A, 1), (B, 2)]);
    let swapped = sampler.sample();
    assert_eq!(seen(&swapped), ["1 0000:01:00.0 A1 silent 5", "2 0000:02:00.0 B2 ok 7"]);
    assert!(swapped.faults.iter().any(|fault| fault.path == "/dev/tenstorrent/1"), "{:?}", swapped.faults);
    stuck.store(false, Ordering::Relaxed);
    while sampler.is_stuck() {
        std::thread::yield_now();
    }
    assert_eq!(seen(&sampler.sample()), ["1 0000:01:00.0 A1 ok 5", "2 0000:02:00.0 B2 ok 7"]);
}

#[test]
fn a_number_that_is_another_card_s_before_devices_are_listed_again_is_not_read_for_the_old_one() {
    let machine = two_cards();
    let gone = Arc::new(AtomicBool::new(false));
    let now = gone.clone();
    // As the driver answers in the old folder of a device.
    let inject = move |path: &Path| {
        let is_gone = path.ends_with("tenstorrent!0/tt_aiclk") && now.swap(false, Ordering::Relaxed);
        is_gone.then(|| std::io::Error::from_raw_os_error(19))
    };
    let options = Options { deadline: Duration::from_secs(10), rates: false, relaxed: true };
    let mut sampler = Sampler::new(machine.root().with_faults(Arc::new(inject)), options);
    sampler.sample();
    machine.set_numbers(&[(A, 1), (B, 0)]);
    gone.store(true, Ordering::Relaxed);
    let first = seen(&sampler.sample());
    assert_eq!(first[0], "0 0000:01:00.0 A1 silent 5", "{first:?}");
    assert_eq!(seen(&sampler.sample()), ["0 0000:02:00.0 B2 ok 7", "1 0000:01:00.0 A1 ok 5"]);
}
