//! How busy a device is, and with what: as the commands show it of processes that record it.

use crate::support::harness::Harness;
use crate::support::service::{Service, wait_for};
use crate::support::{Machine, ttmon};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::time::Duration;

const CHIP: u64 = 0xB00C;

fn machine() -> Machine {
    Machine::with(&[Chip { asic_id: Some(CHIP), ..Chip::p150a(0) }])
}

/// A process that holds the device and keeps a book.
fn keeper(machine: &Machine) -> Harness {
    let keeper = Harness::start(&[], &["book", &CHIP.to_string(), "1"], &[]);
    machine.set_pids(0, &[keeper.pid]);
    keeper
}

fn device(machine: &Machine) -> Value {
    machine.json(&["--deadline-ms=30000"])["devices"][0].clone()
}

/// Percent, or why it is not known.
fn utilization(device: &Value) -> Result<f64, String> {
    match (device["utilization_percent"].as_f64(), device["utilization_unknown"].as_str()) {
        (Some(percent), None) => Ok(percent),
        (None, Some(why)) => Err(why.to_owned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_look_shows_how_busy_a_device_was_in_the_last_second() {
    let machine = machine();
    assert_eq!(utilization(&device(&machine)), Err("not in use".into()));
    let mut keeper = keeper(&machine);
    assert_eq!(utilization(&device(&machine)), Err("old agent".into()));
    keeper.ok("work 3000");
    let busy = device(&machine);
    let percent = utilization(&busy).unwrap();
    assert!(percent > 0.0 && percent <= 100.0, "{percent}");
    assert_eq!((&busy["utilization_source"], &busy["programs_total"]), (&json!("profiler"), &json!(3000)));
    assert_eq!(busy["busy_seconds_total"], 3.0);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(utilization(&device(&machine)), Ok(0.0), "all has ended: this was measured");
}

#[test]
fn a_program_of_seconds_is_running_and_is_neither_idle_nor_busy() {
    let machine = machine();
    let mut keeper = keeper(&machine);
    keeper.ok("work 1000");
    keeper.ok("launch");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(utilization(&device(&machine)), Err("program running".into()));
    let process = &machine.json(&["--deadline-ms=30000"])["processes"][0];
    assert_eq!((&process["idle_seconds"], &process["launches_total"]), (&Value::Null, &json!(1001)));
    let in_flight: Vec<&Value> =
        process["operations"].as_array().unwrap().iter().map(|one| &one["in_flight"]).collect();
    assert_eq!(in_flight, [false, true]);
}

#[test]
fn what_a_killed_process_did_stays_in_its_exit_record() {
    let machine = machine();
    let mut keeper = keeper(&machine);
    keeper.ok("work 2000");
    let service = Service::start(machine);
    let sampled = |snapshot: &Value| snapshot["devices"][0]["programs_total"] == 2000;
    wait_for(|| sampled(&service.snapshot()), || service.snapshot().to_string());
    keeper.ok("work 500");
    keeper.child.kill().unwrap();
    let death = &service.death();
    assert_eq!(death["launches_total"], 2500, "{death}");
    assert_eq!(death["devices"][0]["programs_total"], 2500, "{death}");
    let operation = &death["operations"][0];
    assert_eq!((&operation["name"], &operation["runs"]), (&json!("MatmulDeviceOperation"), &json!(2500)));
}

#[test]
fn ops_shows_the_record_of_the_agent_without_asking_the_process() {
    let machine = machine();
    let mut keeper = keeper(&machine);
    keeper.ok("work 2000");
    let pid = keeper.pid.to_string();
    let run = ttmon(&["ops", &pid]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let expected = format!(
        "Process {pid}, from ttmon's agent: 2000 launches of 1 operation, chip 0\n\
         LAUNCHES    SHARE     TIME  LONGEST OPERATION\n    \
         2000   100.0%    2.0 s   1.0 ms MatmulDeviceOperation\n"
    );
    assert_eq!(run.out, expected);
    let json: Value = serde_json::from_str(&ttmon(&["ops", &pid, "--json"]).out).unwrap();
    assert_eq!((&json["source"], &json["operations"][0]["device_seconds"]), (&json!("agent"), &json!(2.0)));
}
