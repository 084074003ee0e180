//! What a scrape says of made-up machines.

mod parser;
mod properties;
mod readers;

use super::*;
use expect_test::{expect, expect_file};
use model::figure::{Dimension, Metric, Unit};
use model::{
    Activity, Bytes, DeviceId, Held, Host, Process, Source, State, Timestamp, Usage, UtilizationSource,
    UtilizationUnknown,
};
use parser::{MetricLine, lines};

/// A busy p150a, a hung p150b, an n300 with its remote chip, and processes of all sorts.
fn machine() -> Snapshot {
    serde_json::from_str(include_str!("../../golden/machine.json")).unwrap()
}

fn bare(devices: Vec<Device>, processes: Vec<Process>) -> Snapshot {
    let (taken_at, host) = (Timestamp(1_767_323_045_678), Host::default());
    Snapshot { taken_at, host, devices, processes, ..Snapshot::empty() }
}

fn process(pid: u32, devices: &[(u32, u64)]) -> Process {
    let held = |&(n, dram): &(u32, u64)| {
        let usage = Usage { dram: Some(Bytes(dram)), ..Usage::default() };
        Held { usage, source: Some(Source::Shm), ..Held::new(DeviceId::Local(n)) }
    };
    Process { devices: devices.iter().map(held).collect(), ..Process::new(pid) }
}

fn input(snapshot: &Snapshot) -> MetricsInput<'_> {
    let service = ServiceFigures {
        version: "0.1.0",
        sample_age_seconds: Some(0.25),
        samples: Some(86_400),
        faults: Some(12),
        deaths: Some(3),
        requests: Some(5760),
        clients: Some(2),
    };
    static USUAL: LazyLock<MetricsOptions> = LazyLock::new(MetricsOptions::default);
    MetricsInput { snapshot, service, options: &USUAL }
}

fn with_options(snapshot: &Snapshot, max_process_series: usize, tt_telemetry: bool) -> String {
    let options = MetricsOptions { max_process_series, tt_telemetry, ..MetricsOptions::default() };
    write(&MetricsInput { options: &options, ..input(snapshot) }, MetricsFormat::Prometheus)
}

#[test]
fn only_the_families_that_are_named_are_written_as_they_are_among_all() {
    let snapshot = machine();
    let with = |families: &[&str], processes| {
        let families = families.iter().map(|name| (*name).to_owned()).collect();
        let options = MetricsOptions { families, processes, ..MetricsOptions::default() };
        write(&MetricsInput { options: &options, ..input(&snapshot) }, MetricsFormat::Prometheus)
    };
    let all = with(&[], true);
    let begin = |start: &str| {
        all.lines()
            .filter(|line| line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ").starts_with(start))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    assert_eq!(with(&["ttmon_device_power_watts"], true), begin("ttmon_device_power_watts"));
    assert_eq!(with(&["ttmon_device_pcie_*"], true), begin("ttmon_device_pcie_"));
    assert_eq!(with(&["ttmon_samples_total"], true), begin("ttmon_samples_total"));
    let without = with(&[], false);
    assert!(!without.contains("pid=") && without.contains("ttmon_device_power_watts"), "{without}");
    let named = MetricsOptions { families: vec!["ttmon_device_power_wats".into()], ..MetricsOptions::default() };
    assert_eq!(named.check().err().and_then(|unknown| unknown.nearest), Some("ttmon_device_power_watts".to_owned()));
}

#[test]
fn both_formats_say_the_same_of_a_machine() {
    let snapshot = machine();
    let prometheus = write(&input(&snapshot), MetricsFormat::Prometheus);
    let openmetrics = write(&input(&snapshot), MetricsFormat::OpenMetrics);
    expect_file!["golden/prometheus.txt"].assert_eq(&prometheus);
    expect_file!["golden/openmetrics.txt"].assert_eq(&openmetrics);
    let samples =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(samples(&prometheus), samples(&openmetrics));
}

#[test]
fn tt_telemetry_finds_its_names() {
    let text = with_options(&machine(), 500, true);
    let at = text.find("# HELP tt_").unwrap();
    expect_file!["golden/tt-telemetry.txt"].assert_eq(&text[at..]);
}

#[test]
fn utilization_has_the_name_of_tt_telemetry_where_it_is_known() {
    let mut machine = machine();
    machine.devices.truncate(2);
    machine.devices[0].activity = Activity::measured(62.5, UtilizationSource::Profiler);
    machine.devices[1].activity = Activity::unknown(UtilizationUnknown::NoAgent);
    let text = with_options(&machine, 500, true);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("tt_dispatch_utilization_percent{")).collect();
    assert!(matches!(lines[..], [line] if line.contains("device=\"0\"") && line.ends_with("} 62.5")), "{lines:?}");
}

#[test]
fn what_was_not_measured_has_no_line() {
    let snapshot = bare(vec![Device::new(DeviceId::Local(3))], vec![]);
    let service = ServiceFigures { version: "0.1.0", ..ServiceFigures::default() };
    let text = write(&MetricsInput { service, ..input(&snapshot) }, MetricsFormat::Prometheus);
    expect![[r#"
        ttmon_build_info{version="0.1.0"} 1
        ttmon_sample_timestamp_seconds 1767323045.678
        ttmon_host_info{simulated="false"} 1
        ttmon_devices 1
        ttmon_processes 0
        ttmon_faults 0
        ttmon_device_info{device="3",asic_id=""} 1
        ttmon_device_state{device="3",state="ok"} 1
        ttmon_device_state{device="3",state="no telemetry"} 0
        ttmon_device_state{device="3",state="resetting"} 0
        ttmon_device_state{device="3",state="hung"} 0
        ttmon_device_state{device="3",state="silent"} 0
        ttmon_device_state{device="3",state="lost"} 0
        ttmon_device_state{device="3",state="no driver"} 0
        ttmon_device_state{device="3",state="remote"} 0
        ttmon_device_untracked_processes{device="3"} 0
    "#]]
    .assert_eq(&text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn each_state_is_one_of_those_that_are_written() {
    for state in State::ALL {
        let snapshot = bare(vec![Device { state, ..Device::new(DeviceId::Local(0)) }], vec![]);
        let text = write(&input(&snapshot), MetricsFormat::Prometheus);
        let states = lines(&text).into_iter().filter(|line| line.name == "ttmon_device_state");
        let is_in: Vec<MetricLine> = states.filter(|line| line.value == 1.0).collect();
        assert_eq!(is_in.len(), 1);
        assert_eq!(is_in[0].labels["state"], state.name());
    }
}

#[test]
fn beyond_the_limit_the_largest_stay_and_the_others_are_summed() {
    let processes = vec![process(7, &[(0, 100), (1, 1)]), process(8, &[(0, 5)]), process(9, &[(0, 3), (1, 200)])];
    let text = with_options(&bare(vec![], processes), 2, false);
    let of_processes = text.lines().filter(|line| line.starts_with("ttmon_process_memory_bytes{"));
    expect![[r#"
        ttmon_process_memory_bytes{device="0",pid="7",source="shm",kind="dram"} 100
        ttmon_process_memory_bytes{device="1",pid="9",source="shm",kind="dram"} 200
        ttmon_process_memory_bytes{device="1",pid="other",user="other",container="other",name="other",namespace="other",pod="other",container_name="other",slurm_job="other",unit="other",source="other",kind="dram"} 1
        ttmon_process_memory_bytes{device="0",pid="other",user="other",container="other",name="other",namespace="other",pod="other",container_name="other",slurm_job="other",unit="other",source="other",kind="dram"} 8
    "#]]
    .assert_eq(&of_processes.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn thirty_two_devices_and_their_processes_are_no_large_answer() {
    let example = machine();
    let numbered = |n: u32| Device { id: DeviceId::Local(n), ..example.devices[2].clone() };
    let held = |n: u32| Held { id: DeviceId::Local(n), ..example.processes[0].devices[0].clone() };
    let devices: Vec<Device> = (0..32).map(numbered).collect();
    let everywhere: Vec<Held> = (0..32).map(held).collect();
    let process = |n: u32| Process { pid: 40_000 + n, devices: everywhere.clone(), ..example.processes[0].clone() };
    let text = write(&input(&bare(devices, (0..64).map(process).collect())), MetricsFormat::OpenMetrics);
    assert!(text.len() < 360_000, "{}", text.len());
}

#[test]
fn names_carry_their_units_and_are_there_once() {
    let mut seen = std::collections::BTreeSet::new();
    let mut check = |name: &'static str, unit: Option<&str>, help: &str| {
        assert!(seen.insert(name), "{name} twice");
        assert!(unit.is_none_or(|unit| name.ends_with(&format!("_{unit}"))), "{name}");
        assert!(!help.contains(['"', '\\', '\n']) && help.ends_with('.'), "{name}");
    };
    FAMILIES.machine.iter().for_each(|family| check(family.name, family.unit, &family.help));
    FAMILIES.service.iter().for_each(|family| check(family.name, family.unit, &family.help));
    FAMILIES.devices.iter().for_each(|family| check(family.name, family.unit, &family.help));
    FAMILIES.held.iter().for_each(|family| check(family.name, family.unit, &family.help));
    FAMILIES.their_machine.iter().for_each(|family| check(family.name, None, &family.help));
    FAMILIES.their_devices.iter().for_each(|family| check(family.name, None, &family.help));
}

#[test]
fn a_figure_with_labels_has_a_line_for_each() {
    static GDDR_TEMP: Figure<[f64; 2]> = Figure {
        dimension: Some(Dimension::GddrChannel),
        metric: Metric::gauge("ttmon_device_gddr_temperature_celsius"),
        ..Figure::new(
            "gddr_temp_celsius",
            Unit::Celsius,
            "Temperature.",
            (|temperatures, channel| temperatures.get(channel).map(|celsius| Value::Real(*celsius)), |_, _, _| {}),
        )
    };
    let mut text = MetricsText::new(MetricsFormat::OpenMetrics, &[], 0);
    write_one(&mut text, &families(&[&GDDR_TEMP]), &[51.5, 49.0]);
    expect![[r#"
        # TYPE ttmon_device_gddr_temperature_celsius gauge
        # UNIT ttmon_device_gddr_temperature_celsius celsius
        # HELP ttmon_device_gddr_temperature_celsius Temperature.
        ttmon_device_gddr_temperature_celsius{channel="0"} 51.5
        ttmon_device_gddr_temperature_celsius{channel="1"} 49
        # EOF
    "#]]
    .assert_eq(&text.finish());
}

#[test]
fn the_client_says_which_format_it_likes() {
    let prometheus_2 = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                        text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                        application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (accept, format) in [
        (prometheus_2, MetricsFormat::OpenMetrics),
        (prometheus_3, MetricsFormat::OpenMetrics),
        ("", MetricsFormat::Prometheus),
        ("*/*", MetricsFormat::Prometheus),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", MetricsFormat::Prometheus),
        ("application/openmetrics-text", MetricsFormat::OpenMetrics),
        ("Application/OpenMetrics-Text; Version=\"1.0.0\" ; Q=0.9, text/plain;q=0.8", MetricsFormat::OpenMetrics),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.8", MetricsFormat::Prometheus),
        ("application/openmetrics-text;q=0, */*", MetricsFormat::Prometheus),
        ("application/openmetrics-text;version=2.0.0", MetricsFormat::Prometheus),
        ("application/openmetrics-text;q=much", MetricsFormat::Prometheus),
        (",;=,;;q", MetricsFormat::Prometheus),
    ] {
        assert_eq!(MetricsFormat::wanted(accept), format, "{accept}");
    }
}
