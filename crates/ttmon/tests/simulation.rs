//! A simulated machine as people meet it: it has been at work for some minutes, in every view at once.

use crate::support::page::Served;
use crate::support::terminal::Terminal;
use crate::support::ttmon;
use serde_json::Value;

fn snapshot(spec: &str) -> Value {
    let run = ttmon(&["smi", "--json", spec]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    serde_json::from_str(&run.out).unwrap()
}

#[test]
fn the_first_look_at_a_machine_shows_busy_and_warm_devices() {
    let seen = snapshot("--sim");
    for (index, device) in seen["devices"].as_array().unwrap().iter().enumerate() {
        let number = |name: &str| device[name].as_f64().unwrap();
        let (busy, celsius, watts) =
            (number("utilization_percent"), number("asic_temp_celsius"), number("power_watts"));
        let is_at_work = busy > 60.0 && (50.0..75.0).contains(&celsius) && watts > 80.0;
        let is_nearly_idle = busy < 20.0 && celsius < 50.0 && watts < 40.0;
        assert!(if index == 3 { is_nearly_idle } else { is_at_work }, "{index}: {busy} % {celsius} °C {watts} W");
    }
    let held = seen["processes"].as_array().unwrap().iter().flat_map(|process| process["devices"].as_array().unwrap());
    let held: Vec<&Value> = held.collect();
    assert_eq!(held.len(), 4);
    for one in held {
        assert_eq!(one["source"], "exact", "{one}");
        let banks = &one["exact"]["dram"]["banks"];
        assert_eq!((&banks["count"], &banks["age_seconds"]), (&8.into(), &Value::Null), "{banks}");
        assert!(banks["fragmentation"].as_f64().is_some_and(|share| share > 0.0), "{banks}");
    }
}

#[test]
fn the_same_seed_shows_the_same_machine() {
    // What has moved since the start, a moment ago, is left out: one look may be a little later than another.
    let at_start = |spec: &str| -> Vec<(Value, Value)> {
        let seen = snapshot(spec);
        let devices = seen["devices"].as_array().unwrap().iter();
        devices.map(|device| (device["asic_temp_celsius"].clone(), device["dram_used_bytes"].clone())).collect()
    };
    let celsius = |seen: &[(Value, Value)]| -> Vec<i64> {
        seen.iter().map(|(celsius, _)| celsius.as_f64().unwrap().round() as i64).collect()
    };
    let dram = |seen: &[(Value, Value)]| seen.iter().map(|(_, dram)| dram.clone()).collect::<Vec<_>>();
    let (one, same) = (at_start("--sim=p300x2,agent,seed=4"), at_start("--sim=p300x2,agent,seed=4"));
    let far = celsius(&one).into_iter().zip(celsius(&same)).any(|(a, b)| (a - b).abs() > 2);
    assert!(!far && dram(&one)[0] == dram(&same)[0], "{one:?} {same:?}");
}

#[test]
fn buffers_are_listed_and_banks_are_mapped() {
    let map = ttmon(&["mem", "--sim", "--map"]).out;
    assert!(map.contains("device 3  DRAM, each of 8 banks: ") && map.contains("kv_cache."), "{map}");
    let csv = ttmon(&["mem", "--sim", "--map", "--csv"]).out;
    let free = csv.lines().filter(|line| line.starts_with("0,dram,0x") && line.contains(",free,"));
    assert!(free.count() >= 5, "{csv}");
    let listed = ttmon(&["mem", "--sim", "--once"]).out;
    assert!(listed.contains("lm_head") && listed.contains("free block"), "{listed}");
}

#[test]
fn the_charts_of_the_monitor_are_full_at_once() {
    // By its own samples a chart would be full after a minute, which is longer than anything is waited for.
    let terminal = Terminal::start(&["top", "--sim"], 120, 40);
    terminal.await_that("charts of past minutes", |text| {
        text.chars().filter(|letter| ('\u{2801}'..='\u{28ff}').contains(letter)).count() > 60
    });
    terminal.keys("4");
    terminal.await_text("ok → hung");
    assert!(terminal.text().contains("3 events, the newest first"), "{}", terminal.text());
}

#[test]
fn the_history_of_the_service_begins_before_it() {
    let served = Served::start("p150x2,agent,hang=1@-100s,reset=1@-60s", &[]);
    let ask = |path: &str| -> Value {
        let text = ureq::get(served.address(path)).call().unwrap().body_mut().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let known = |series: &str| -> usize {
        let history = ask(&format!("api/v1/history?series={series}&device=1"));
        let points = history["series"][0]["points"].as_array().unwrap().clone();
        points.iter().filter(|point| !point.is_null()).count()
    };
    // A point for two seconds of five minutes, but for the time when it was hung and reset.
    assert!((125..=140).contains(&known("power_watts")), "{}", known("power_watts"));
    let events = ask("api/v1/events");
    let texts: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|event| event["text"].as_str().unwrap()).collect();
    assert!(texts[0].starts_with("device 1: ok → hung") && texts[2] == "device 1: resetting → ok", "{texts:?}");
}
