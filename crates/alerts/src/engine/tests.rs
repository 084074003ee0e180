use super::*;
use expect_test::{Expect, expect};
use model::{Bytes, Celsius, Device, DeviceId, Held, Host, Process, Severity, State, Usage, Watts};

fn rule(when: &str) -> Rule {
    let (name, condition) = ("hot".into(), when.parse().unwrap());
    Rule { name, condition, severity: Severity::Warning, devices: vec![], process: None, text: None, advice: None }
}

fn snapshot(seconds: u64, devices: Vec<Device>) -> Snapshot {
    let (host, taken_at) = (Host::default(), Timestamp(seconds as i64 * 1000));
    Snapshot { taken_at, host, devices, ..Snapshot::empty() }
}

fn at(celsius: Option<f64>) -> Device {
    let mut device = Device::new(DeviceId::Local(0));
    device.asic_temp = celsius.map(Celsius);
    device
}

fn listed(notices: &[Notice]) -> String {
    let one = |notice: &Notice| {
        let Notice { alert, fingerprint, started_at, ended_at, .. } = notice;
        let ended = ended_at.map_or_else(String::new, |time| format!(" until {}", time.0 / 1000));
        format!("[{}] {} since {}{ended}: {}", fingerprint, alert.state.name(), started_at.0 / 1000, alert.text)
    };
    notices.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Temperatures ten seconds apart, `_` where there is none, and the state and notices after each.
fn check(when: &str, temperatures: &str, expected: Expect) {
    let mut engine = Engine::new(vec![rule(when)]);
    let mut text = String::new();
    for (step, value) in temperatures.split_whitespace().enumerate() {
        let now = step as u64 * 10;
        let notices = engine.observe(Duration::from_secs(now), &snapshot(now, vec![at(value.parse().ok())]), &[]);
        let states: Vec<&str> = engine.alerts(Duration::from_secs(now)).iter().map(|one| one.state.name()).collect();
        text += &format!("{now:<4}{value:>3} {:<9}{}\n", states.join(" "), listed(&notices));
    }
    expected.assert_eq(&text);
}

#[test]
fn a_condition_that_holds_long_enough_fires_until_well_below() {
    check(
        "asic_temp > 85 for 20s until asic_temp < 80",
        "84 86 84 86 87 88 84 81 79 84 86",
        expect![[r#"
            0    84          
            10   86 pending  
            20   84          
            30   86 pending  
            40   87 pending  
            50   88 firing   [hot device=0] firing since 50: device 0: hot (asic_temp 88.0 °C)
            60   84 firing   
            70   81 firing   
            80   79 resolved [hot device=0] resolved since 50 until 80: device 0: resolved: hot (asic_temp 79.0 °C)
            90   84 resolved 
            100  86 pending  
        "#]],
    );
}

#[test]
fn the_last_known_value_of_until_counts_even_from_before_it_fired() {
    let mut engine = Engine::new(vec![rule("asic_temp > 85 until power < 50")]);
    let moments = [(60.0, Some(100.0)), (90.0, None), (60.0, None), (60.0, Some(40.0))];
    let firing = moments.iter().enumerate().map(|(second, (celsius, watts))| {
        let device = Device { power: watts.map(Watts), ..at(Some(*celsius)) };
        engine.observe(Duration::from_secs(second as u64), &snapshot(second as u64, vec![device]), &[]);
        engine.firing().len()
    });
    assert_eq!(firing.collect::<Vec<_>>(), [0, 1, 1, 0]);
}

#[test]
fn without_a_time_it_fires_at_once_and_without_until_it_ends_at_once() {
    check(
        "asic_temp > 85",
        "84 86 85",
        expect![[r#"
            0    84          
            10   86 firing   [hot device=0] firing since 10: device 0: hot (asic_temp 86.0 °C)
            20   85 resolved [hot device=0] resolved since 10 until 20: device 0: resolved: hot (asic_temp 85.0 °C)
        "#]],
    );
}

#[test]
fn a_missing_value_fires_nothing_and_resolves_nothing() {
    check(
        "asic_temp > 85 for 20s",
        "86 86 _ 86 86 86 _ _ 86 _ 84",
        expect![[r#"
            0    86 pending  
            10   86 pending  
            20    _          
            30   86 pending  
            40   86 pending  
            50   86 firing   [hot device=0] firing since 50: device 0: hot (asic_temp 86.0 °C)
            60    _ firing   
            70    _ firing   
            80   86 firing   
            90    _ firing   
            100  84 resolved [hot device=0] resolved since 50 until 100: device 0: resolved: hot (asic_temp 84.0 °C)
        "#]],
    );
}

#[test]
fn a_device_that_is_lost_does_not_resolve_silently() {
    let mut engine = Engine::new(vec![rule("asic_temp > 85")]);
    let mut lost = at(Some(90.0));
    let fired = engine.observe(Duration::ZERO, &snapshot(0, vec![lost.clone()]), &[]);
    assert_eq!(listed(&fired), "[hot device=0] firing since 0: device 0: hot (asic_temp 90.0 °C)");
    lost.state = State::Lost;
    for second in 1..=300 {
        // It shows its last known values, and their age.
        lost.sample_age_seconds = Some(second as f64);
        let devices = if second % 2 == 0 { vec![] } else { vec![lost.clone()] };
        assert_eq!(engine.observe(Duration::from_secs(second), &snapshot(second, devices), &[]), [], "{second}");
    }
    let over = engine.observe(Duration::from_secs(301), &snapshot(301, vec![]), &[]);
    assert_eq!(listed(&over), "[hot device=0] resolved since 0 until 301: device 0: resolved, no values for 5m: hot");
}

#[test]
fn a_chip_that_does_not_answer_neither_ends_nor_starts_a_hung_alert() {
    let mut engine =
        Engine::new(vec![rule("state == hung"), Rule { name: "mute".into(), ..rule("state == silent for 15s") }]);
    let mut see = |now: u64, state: State| {
        let device = Device { state, ..at(None) };
        let notices = engine.observe(Duration::from_secs(now), &snapshot(now, vec![device]), &[]);
        listed(&notices)
    };
    assert_eq!(see(0, State::Silent), "");
    assert_eq!(see(1, State::Hung), "[hot device=0] firing since 1: device 0: hot (state hung)");
    assert_eq!([see(2, State::Silent), see(3, State::Hung), see(4, State::Silent)], ["", "", ""]);
    assert_eq!(see(19, State::Silent), "[mute device=0] firing since 19: device 0: mute (state silent)");
    assert_eq!(see(400, State::Silent), "", "for however long");
    assert!(
        see(401, State::Ok)
            .starts_with("[hot device=0] resolved since 1 until 401: device 0: resolved: hot (state ok)")
    );
}

#[test]
fn a_process_is_identified_by_its_start_and_resolves_at_once() {
    let mut engine = Engine::new(vec![Rule { process: Some("py*".into()), ..rule("process_dram > 1GiB") }]);
    let usage = Usage::measured(2 << 30, 0, 0, 0, 0);
    let held = Held { usage, ..Held::new(DeviceId::Local(0)) };
    let process = |began, name: &str| Process {
        started_at: Some(Timestamp(began)),
        name: Some(name.into()),
        devices: vec![held.clone()],
        ..Process::new(7)
    };
    let mut see = |now: u64, processes: Vec<Process>| {
        let snapshot = Snapshot { processes, ..snapshot(now, vec![at(None)]) };
        listed(&engine.observe(Duration::from_secs(now), &snapshot, &[]))
    };
    assert_eq!(see(0, vec![process(1, "cat")]), "");
    let began = "began=1970-01-01T00:00:00.00";
    assert_eq!(
        see(1, vec![process(1, "python3")]),
        format!(
            "[hot device=0 pid=7 {began}1Z] firing since 1: pid 7 (python3) on device 0: hot (process_dram 2.0 GiB)"
        )
    );
    let again = see(2, vec![process(2, "python3")]);
    assert!(again.starts_with(&format!("[hot device=0 pid=7 {began}1Z] resolved since 1 until 2")), "{again}");
    assert!(again.contains(&format!("[hot device=0 pid=7 {began}2Z] firing since 2")), "{again}");
}

#[test]
fn memory_left_at_exit_is_reported_while_the_exit_is_recent() {
    let mut engine = Engine::new(vec![rule("left_at_exit > 0")]);
    let process = Process { name: Some("x".into()), ..Process::new(7) };
    let exit = ExitRecord { left: Some(Bytes(4096)), ..ExitRecord::of(&process, Timestamp(0)) };
    let mut see =
        |now, ended: &[&ExitRecord]| listed(&engine.observe(Duration::from_secs(now), &snapshot(now, vec![]), ended));
    assert_eq!(see(0, &[&exit]), "[hot pid=7] firing since 0: pid 7 (x): hot (left_at_exit 4.0 KiB)");
    assert_eq!(see(1, &[&exit]), "");
    assert_eq!(see(2, &[]), "[hot pid=7] resolved since 0 until 2: pid 7 (x): resolved, the process exited: hot");
}

#[test]
fn a_changed_rule_starts_over_and_an_unchanged_one_keeps_its_state() {
    let mut engine = Engine::new(vec![rule("asic_temp > 85"), Rule { name: "other".into(), ..rule("asic_temp > 80") }]);
    let hot = |now| snapshot(now, vec![at(Some(90.0))]);
    assert_eq!(engine.observe(Duration::ZERO, &hot(0), &[]).len(), 2);
    let over = engine.set_rules(
        vec![rule("asic_temp > 86"), Rule { name: "other".into(), ..rule("asic_temp > 80") }],
        Timestamp(1000),
    );
    assert_eq!(listed(&over), "[hot device=0] resolved since 0 until 1: device 0: the rule was changed");
    let again = engine.observe(Duration::from_secs(2), &hot(2), &[]);
    assert_eq!(listed(&again), "[hot device=0] firing since 2: device 0: hot (asic_temp 90.0 °C)");
    assert_eq!(engine.firing().len(), 2);
}

#[test]
fn the_number_of_followed_subjects_is_bounded() {
    let mut engine = Engine::new(vec![rule("asic_temp > 85")]);
    let devices =
        |from: u32| (from..from + 15_000).map(|id| Device { id: DeviceId::Local(id), ..at(Some(90.0)) }).collect();
    engine.observe(Duration::ZERO, &snapshot(0, devices(0)), &[]);
    engine.observe(Duration::from_secs(1), &snapshot(1, devices(100_000)), &[]);
    assert_eq!(engine.firing().len(), 20_000);
    engine.observe(Duration::from_secs(400), &snapshot(400, vec![]), &[]);
    engine.observe(Duration::from_secs(2000), &snapshot(2000, vec![]), &[]);
    assert!(engine.rules.iter().all(|followed| followed.tracks.is_empty()));
}

#[test]
fn an_alert_stays_with_its_card_when_numbers_swap() {
    let mut engine = Engine::new(vec![rule("asic_temp > 85 for 20s")]);
    // The card in slot 1 is hot, the one in slot 2 is not.
    let mut see = |seconds: u64, slots: [u32; 2]| {
        let card = |(n, slot): (usize, u32)| Device {
            id: DeviceId::Local(n as u32),
            pci_address: Some(model::PciAddress(format!("0000:{slot:02}:00.0").into())),
            serial: Some(format!("{slot}").into()),
            ..at(Some(if slot == 1 { 90.0 } else { 40.0 }))
        };
        let now = Duration::from_secs(seconds);
        let snapshot = snapshot(seconds, slots.into_iter().enumerate().map(card).collect());
        let notices = listed(&engine.observe(now, &snapshot, &[]));
        let states = engine.alerts(now).into_iter().map(|one| format!("{} {}", one.device.unwrap(), one.state.name()));
        format!("{}; {notices}", states.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(see(0, [1, 2]), "0 pending; ");
    assert_eq!(see(10, [2, 1]), "1 pending; ", "it goes on waiting, and does not begin again");
    let fires = "1 firing; [hot device=0000:01:00.0] firing since 20: device 1: hot (asic_temp 90.0 °C)";
    assert_eq!(see(20, [2, 1]), fires);
    assert_eq!(see(30, [2, 1]), "1 firing; ");
    let again = "0 firing; [hot device=0000:01:00.0] firing since 20: device 0: hot (asic_temp 90.0 °C)";
    assert_eq!(see(40, [1, 2]), again, "receivers learn the new number, and that it is the same alert");
    let replaced = see(50, [3, 2]);
    assert_eq!(replaced, "0 firing; ", "another card is there, which is well: of the hot one nothing is known");
}

/// A device with a deep read.
fn deep(change: impl Fn(&mut Device, &mut model::Deep)) -> Device {
    let mut device = Device { board: Some("n300".into()), aiclk: Some(model::Megahertz(900)), ..at(Some(60.0)) };
    device.asic_temp_max = Some(Celsius(90.0));
    let mut deep = model::Deep {
        aiclk_max: Some(model::Megahertz(1350)),
        aiclk_ceiling: Some(model::Megahertz(900)),
        aiclk_ceiling_by: Some(model::ClockLimiter::Maximum),
        aiclk_decided_by: Some(model::ClockDecision::Ceiling),
        gddr_top_temp: vec![Some(Celsius(70.0)); 8],
        gddr_bottom_temp: vec![Some(Celsius(70.0)); 8],
        gddr_trained: vec![Some(true); 8],
        gddr_training_failed: vec![Some(false); 8],
        gddr_corrected_reads: vec![Some(3); 8],
        gddr_corrected_writes: vec![Some(0); 8],
        gddr_uncorrected_read: vec![Some(false); 8],
        gddr_uncorrected_write: vec![Some(false); 8],
        eth_link_up: vec![Some(true); 16],
        ..model::Deep::default()
    };
    change(&mut device, &mut deep);
    device.deep = Some(Box::new(deep));
    device
}

/// What is said while the device is changed for two minutes, and after it is as before.
fn with_change(change: impl Fn(&mut Device, &mut model::Deep)) -> String {
    let mut engine = Engine::new(crate::built_in());
    let mut text = String::new();
    for step in 0..40u64 {
        let is_changed = (10..22).contains(&step);
        let device = deep(|device, deep| {
            if is_changed {
                change(device, deep)
            }
        });
        let notices = engine.observe(Duration::from_secs(step * 10), &snapshot(step * 10, vec![device]), &[]);
        for Notice { alert, .. } in notices {
            text += &format!("{:>3} {} {}: {}\n", step * 10, alert.severity.name(), alert.name, alert.text);
        }
    }
    text
}

#[test]
fn every_built_in_rule_about_deep_reads_fires_names_its_channels_and_clears() {
    let mut text = String::new();
    text += &with_change(|_, deep| deep.gddr_uncorrected_read[3] = Some(true));
    text += &with_change(|_, deep| [1, 6].into_iter().for_each(|n| deep.gddr_uncorrected_write[n] = Some(true)));
    // Another channel has more errors, but always had.
    text +=
        &with_change(|_, deep| (deep.gddr_corrected_reads[5], deep.gddr_corrected_reads[0]) = (Some(14), Some(254)));
    text += &with_change(|_, deep| deep.gddr_corrected_writes[2] = Some(255));
    text += &with_change(|_, deep| deep.gddr_trained[7] = Some(false));
    text += &with_change(|_, deep| deep.gddr_training_failed[7] = Some(true));
    text += &with_change(|_, deep| deep.gddr_bottom_temp[4] = Some(Celsius(89.0)));
    text += &with_change(|_, deep| {
        (deep.gddr_top_temp[0], deep.gddr_top_temp[1]) = (Some(Celsius(96.0)), Some(Celsius(95.0)))
    });
    text += &with_change(|_, deep| deep.eth_link_up[9] = Some(false));
    text += &with_change(|_, deep| deep.eth_link_up[3] = Some(false));
    text += &with_change(|device, deep| {
        device.asic_temp = Some(Celsius(90.0));
        deep.aiclk_ceiling_by = Some(model::ClockLimiter::Temperature);
    });
    expect![[r#"
        100 critical gddr-uncorrected: device 0: memory errors that were not corrected (gddr_uncorrected_read on channel 3)
        220 critical gddr-uncorrected: device 0: resolved: memory errors that were not corrected (not gddr_uncorrected_read, not gddr_uncorrected_write)
        100 critical gddr-uncorrected: device 0: memory errors that were not corrected (gddr_uncorrected_write on channels 1, 6)
        220 critical gddr-uncorrected: device 0: resolved: memory errors that were not corrected (not gddr_uncorrected_read, not gddr_uncorrected_write)
        100 warning gddr-corrected: device 0: corrected memory errors are rising (gddr_corrected_reads +251 in 1h on channels 0, 5)
        220 warning gddr-corrected: device 0: resolved: corrected memory errors are rising (gddr_corrected_reads +0 in 1h, gddr_corrected_reads 3, gddr_corrected_writes +0 in 1h, gddr_corrected_writes 0)
        100 warning gddr-corrected: device 0: corrected memory errors are rising (gddr_corrected_writes +255 in 1h on channel 2, gddr_corrected_writes 255 on channel 2)
        220 warning gddr-corrected: device 0: resolved: corrected memory errors are rising (gddr_corrected_reads +0 in 1h, gddr_corrected_reads 3, gddr_corrected_writes +0 in 1h, gddr_corrected_writes 0)
        130 critical gddr-untrained: device 0: a memory channel is not trained (not gddr_trained on channel 7)
        220 critical gddr-untrained: device 0: resolved: a memory channel is not trained (gddr_trained)
        100 critical gddr-training-failed: device 0: training of a memory channel failed (gddr_training_failed on channel 7)
        220 critical gddr-training-failed: device 0: resolved: training of a memory channel failed (not gddr_training_failed)
        130 warning gddr-hot: device 0: memory is hot, so the firmware throttles (gddr_bottom_temp 89.0 °C on channel 4)
        220 warning gddr-hot: device 0: resolved: memory is hot, so the firmware throttles (gddr_top_temp 70.0 °C, gddr_bottom_temp 70.0 °C)
        130 warning gddr-hot: device 0: memory is hot, so the firmware throttles (gddr_top_temp 96.0 °C on channels 0, 1)
        130 critical gddr-too-hot: device 0: memory is too hot (gddr_top_temp 96.0 °C on channels 0, 1)
        220 warning gddr-hot: device 0: resolved: memory is hot, so the firmware throttles (gddr_top_temp 70.0 °C, gddr_bottom_temp 70.0 °C)
        220 critical gddr-too-hot: device 0: resolved: memory is too hot (gddr_top_temp 70.0 °C, gddr_bottom_temp 70.0 °C)
        160 warning link-down: device 0: an Ethernet link is down, or went down (links_down 1, eth_ports_not_up +1 in 10m)
        220 warning link-down: device 0: resolved: an Ethernet link is down, or went down (links_down 0, eth_ports_not_up +0 in 10m)
        160 warning link-down: device 0: an Ethernet link is down, or went down (eth_ports_not_up +1 in 10m)
        220 warning link-down: device 0: resolved: an Ethernet link is down, or went down (links_down 0, eth_ports_not_up +0 in 10m)
        130 warning clock-limited: device 0: clock held down by heat or by a power surge (throttled_by temperature); clock 900 of 1350 MHz: limited by temperature (90 of 90 °C)
        130 warning hot: device 0: near its temperature limit (asic_temp 100.0 %); clock 900 of 1350 MHz: limited by temperature (90 of 90 °C)
        130 warning throttling: device 0: at its temperature limit, where the firmware throttles (asic_temp 100.0 %); clock 900 of 1350 MHz: limited by temperature (90 of 90 °C)
        220 warning clock-limited: device 0: resolved: clock held down by heat or by a power surge (throttled_by nothing)
        220 warning hot: device 0: resolved: near its temperature limit (asic_temp 66.7 %)
        220 warning throttling: device 0: resolved: at its temperature limit, where the firmware throttles (asic_temp 66.7 %)
    "#]].assert_eq(&text);
}

#[test]
fn a_counter_that_a_reset_clears_or_that_is_full_is_not_a_rise() {
    let mut engine = Engine::new(crate::built_in());
    let mut names = Vec::new();
    for (step, errors) in [200, 200, 0, 3, 9, 9].into_iter().enumerate() {
        let device = deep(|_, deep| deep.gddr_corrected_reads = vec![Some(errors); 8]);
        let time = step as u64 * 60;
        names.extend(engine.observe(Duration::from_secs(time), &snapshot(time, vec![device]), &[]));
    }
    assert_eq!(listed(&names), "");
}

#[test]
fn of_a_single_snapshot_only_what_holds_at_once_fires() {
    let rules = ["asic_temp > 85", "asic_temp > 80 for 10s", "increase(asic_temp, 1m) > 0 or asic_temp > 86"];
    let fires = |celsius: f64| {
        let named = |(n, when): (usize, &&str)| Rule { name: n.to_string(), ..rule(when) };
        let mut engine = Engine::new(rules.iter().enumerate().map(named).collect());
        engine.set_once();
        engine.observe(Duration::ZERO, &snapshot(0, vec![at(Some(celsius))]), &[]);
        engine.firing().into_iter().map(|alert| alert.name).collect::<Vec<_>>()
    };
    assert_eq!(fires(84.0), [""; 0]);
    assert_eq!(fires(86.0), ["0"]);
    assert_eq!(fires(87.0), ["0", "2"]);
}
