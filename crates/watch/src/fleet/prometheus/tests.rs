//! What a Prometheus answers, as text, and the machines that it tells of.

use super::*;
use crate::fleet::summary::{Need, Summary};
use expect_test::expect;
use model::Snapshot;
use serde_json::json;
use show::example;

const NOW: f64 = 1_767_323_050.0;

/// An answer with these series: labels as `a=b,c=d`, and a value.
fn vector(series: &[(&str, &str)]) -> Vec<u8> {
    let row = |(labels, value): &(&str, &str)| {
        let labels = labels.split(',').map(|label| label.split_once('=').unwrap());
        json!({"metric": labels.collect::<std::collections::BTreeMap<_, _>>(), "value": [NOW, value]})
    };
    let result: Vec<_> = series.iter().map(row).collect();
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string().into_bytes()
}

/// What a machine's metrics are when Prometheus has scraped them.
fn scraped(snapshot: &Snapshot, instance: &str) -> Vec<u8> {
    use web::metrics::{Format, MetricsInput, MetricsOptions, ServiceFigures};
    let (service, options) = (ServiceFigures::default(), MetricsOptions::default());
    let text = web::metrics::write(&MetricsInput { snapshot, service, options }, Format::Prometheus);
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let mut all = serde_json::Map::new();
        for (label, value) in labels.trim_end_matches('}').split("\",").filter_map(|label| label.split_once("=\"")) {
            all.insert(label.into(), value.trim_end_matches('"').into());
        }
        all.extend([("__name__", name), ("job", "ttmon"), ("instance", instance)].map(|(k, v)| (k.into(), v.into())));
        json!({"metric": all, "value": [NOW, value]})
    });
    let result: Vec<_> = rows.collect();
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string().into_bytes()
}

fn told(states: &[(&str, &str)], figures: &[(&str, &str)], facts: &[(&str, &str)], gone: &[(&str, &str)]) -> Told {
    let answer = |series: &[(&str, &str)]| OnceLock::from(vector(series));
    let (states, figures, facts, gone) = (answer(states), answer(figures), answer(facts), answer(gone));
    Told { states, figures, facts, gone, alerts: answer(&[]), ..Told::default() }
}

impl Told {
    fn rows(&self) -> Result<Rows<'_>, String> {
        let [everything, to_device, to_host] = &self.closer;
        let closer = everything.get().map(|_| Ok::<_, String>([read(everything)?, read(to_device)?, read(to_host)?]));
        Ok(Rows {
            states: read(&self.states)?,
            figures: rows(self.figures.get().unwrap())?,
            facts: read(&self.facts)?,
            gone: read(&self.gone)?,
            alerts: read(&self.alerts)?,
            closer: closer.transpose()?,
        })
    }
}

fn read(told: &OnceLock<Vec<u8>>) -> Result<Vec<Row<Labels<'_>>>, String> {
    rows(told.get().unwrap())
}

fn lab_1() -> Told {
    told(
        &[
            (
                "__name__=ttmon_device_state,job=ttmon,instance=lab-1:9746,device=0,board=p150a,arch=blackhole,state=ok",
                "1",
            ),
            ("__name__=ttmon_device_state,job=ttmon,instance=lab-1:9746,device=10,board=p150a,state=hung", "1"),
            ("__name__=ttmon_device_state,job=ttmon,instance=lab-10:9746,device=2R,state=remote", "1"),
            ("__name__=ttmon_device_state,job=ttmon,instance=lab-9:9746,device=0,state=no driver", "1"),
        ],
        &[
            ("__name__=ttmon_device_temperature_celsius,job=ttmon,instance=lab-1:9746,device=0", "54.5"),
            ("__name__=ttmon_device_temperature_limit_celsius,job=ttmon,instance=lab-1:9746,device=0", "90"),
            ("__name__=ttmon_device_power_watts,job=ttmon,instance=lab-1:9746,device=0", "61.2"),
            ("__name__=ttmon_device_power_watts,job=ttmon,instance=lab-1:9746,device=10", "NaN"),
            (
                "__name__=ttmon_device_memory_used_bytes,job=ttmon,instance=lab-1:9746,device=0,kind=dram",
                "1.3314398618e+10",
            ),
            (
                "__name__=ttmon_device_memory_total_bytes,job=ttmon,instance=lab-1:9746,device=0,kind=dram",
                "34359738368",
            ),
            ("__name__=ttmon_device_of_the_future,job=ttmon,instance=lab-1:9746,device=0", "1"),
        ],
        &[
            ("__name__=ttmon_sample_timestamp_seconds,job=ttmon,instance=lab-1:9746", "1767323045.5"),
            ("__name__=ttmon_sample_timestamp_seconds,job=ttmon,instance=lab-9:9746", "1767323049"),
            ("__name__=ttmon_sample_timestamp_seconds,job=ttmon,instance=lab-10:9746", "1767322650"),
            ("__name__=ttmon_host_info,job=ttmon,instance=lab-1:9746,host=lab-1,driver=2.10.0,simulated=true", "1"),
            ("job=ttmon,instance=lab-1:9746,device=0,pid=4711,user=ttuser,name=python3,kind=dram", "13314398618"),
        ],
        &[("job=ttmon,instance=lab-3:9746", "1767319450")],
    )
}

/// Each machine in a line.
fn shown(hosts: &[HostView]) -> String {
    let line = |host: &HostView| {
        let Summary { need, devices, ok, hottest, power, dram_used, processes, worst, .. } = Summary::of(host);
        let age = host.age.map(|age| age.as_secs());
        let devices_named: Vec<String> = host
            .snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.devices)
            .map(|device| format!("{}:{}", device.id, device.state.name()))
            .collect();
        format!(
            "{} {need:?} {ok}/{devices} {devices_named:?} {hottest:?} {power:?} {dram_used:?} {processes} age {age:?} {worst:?}\n",
            host.name
        )
    };
    hosts.iter().map(line).collect()
}

#[test]
fn machines_stand_in_the_order_of_their_names_and_the_gone_are_among_them() {
    let hosts = hosts(&lab_1().rows().unwrap(), "http://mon:9090", &[]);
    expect![[r#"
        lab-1:9746 Bad 1/2 ["0:ok", "10:hung"] Some((Celsius(54.5), Some(Celsius(90.0)))) Some(Watts(61.2)) Some(Bytes(13314398618)) 1 age Some(0) Some("device 10 is hung")
        lab-3:9746 Unreachable 0/0 [] None None None 0 age None Some("Prometheus hears nothing of it any more")
        lab-9:9746 Warning 0/1 ["0:no driver"] None None None 0 age Some(0) Some("device 0 is without a driver")
        lab-10:9746 Warning 1/1 ["2R:remote"] None None None 0 age Some(400) Some("nothing new for 400 s")
    "#]].assert_eq(&shown(&hosts));
    assert_eq!(hosts[0].snapshot.as_ref().unwrap().host.name.as_deref(), Some("lab-1"));
    assert_eq!(hosts[1].place, "http://mon:9090#ttmon/lab-3:9746");
}

#[test]
fn what_was_known_of_a_machine_that_is_gone_stays() {
    let before = hosts(&lab_1().rows().unwrap(), "http://mon:9090", &[]);
    let gone = [("job=ttmon,instance=lab-1:9746", "1767323045.5")];
    let after = hosts(&told(&[], &[], &[], &gone).rows().unwrap(), "http://mon:9090", &before);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].snapshot.as_ref().unwrap().devices.len(), 2);
    assert_eq!(Summary::of(&after[0]).need, Need::Unreachable);
    assert_eq!(after[0].trouble(), Some("Prometheus hears nothing of it any more"));
}

#[test]
fn two_jobs_with_the_same_machine_are_told_apart() {
    let state = |job: &str| format!("__name__=ttmon_device_state,job={job},instance=lab-1:9746,device=0,state=ok");
    let time = |job: &str| format!("__name__=ttmon_sample_timestamp_seconds,job={job},instance=lab-1:9746");
    let (states, times) = (["a", "b"].map(state), ["a", "b"].map(time));
    let told = told(
        &states.each_ref().map(|labels| (labels.as_str(), "1")),
        &[],
        &times.each_ref().map(|labels| (labels.as_str(), "1767323049")),
        &[],
    );
    let hosts = hosts(&told.rows().unwrap(), "http://mon:9090", &[]);
    assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["lab-1:9746 (a)", "lab-1:9746 (b)"]);
    assert_eq!(matcher(&hosts[1]), r#"job="b",instance="lab-1:9746""#);
}

#[test]
fn a_machine_that_is_looked_at_shows_all_that_its_metrics_tell() {
    let machine = example::machine();
    let everything = scraped(&machine, "lab-7:9746");
    let rate = vector(&[
        ("job=ttmon,instance=lab-7:9746,device=0", "3200000000"),
        // This one is hung.
        ("job=ttmon,instance=lab-7:9746,device=1", "0"),
    ]);
    let mut told = told(&[], &[], &[], &[]);
    told.closer = [everything, rate, vector(&[])].map(OnceLock::from);
    let hosts = hosts(&told.rows().unwrap(), "http://mon:9090", &[]);
    let seen = hosts[0].snapshot.as_deref().unwrap();
    assert_eq!(seen.taken_at, machine.taken_at);
    assert_eq!((&seen.host.name, &seen.host.kernel), (&machine.host.name, &machine.host.kernel));
    for (seen, real) in seen.devices.iter().zip(&machine.devices) {
        let mut expected = real.clone();
        // Of these Prometheus is not told.
        expected.numa_node = None;
        expected.in_use_by_pid = None;
        expected.thermal_trips = None;
        expected.pcie.device_to_host = None;
        assert_eq!(*seen, expected, "device {}", real.id);
    }
    let memory = |snapshot: &Snapshot| {
        let held =
            snapshot.processes.iter().flat_map(|process| process.devices.iter().map(move |held| (process, held)));
        let told = held.filter(|(_, held)| held.source.is_some());
        told.map(|(process, held)| (process.pid, process.name.clone(), held.id.clone(), held.usage, held.source))
            .collect::<Vec<_>>()
    };
    assert_eq!(memory(seen), memory(&machine));
}

#[test]
fn alerts_that_fire_are_their_machines() {
    let mut told = lab_1();
    let labels = "__name__=ALERTS,alertname=TtmonDeviceHung,alertstate=firing,severity=critical,job=ttmon,instance=lab-9:9746,device=0";
    told.alerts = vector(&[(labels, "1")]).into();
    let hosts = hosts(&told.rows().unwrap(), "http://mon:9090", &[]);
    let lab_9 = hosts.iter().find(|host| host.name == "lab-9:9746").unwrap();
    assert_eq!(Summary::of(lab_9).worst.as_deref(), Some("TtmonDeviceHung (device 0)"));
}

#[test]
fn what_is_no_answer_is_said_in_a_sentence() {
    let said = |text: &str| rows::<Labels>(text.as_bytes()).unwrap_err();
    assert_eq!(said("<html>"), "answers, but not as Prometheus does");
    assert_eq!(said(r#"{"status":"success"}"#), "answers, but not as Prometheus does");
    let refused =
        r#"{"status":"error","errorType":"execution","error":"query processing would load too many samples"}"#;
    assert_eq!(said(refused), "Prometheus refuses: query processing would load too many samples");
    let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#;
    assert!(said(scalar).starts_with("answers, but not as Prometheus does: "), "{}", said(scalar));
}

#[test]
fn a_url_is_checked_before_anybody_is_asked() {
    let http = Http::new(&alerts::http::HttpOptions::default()).unwrap();
    let at = |url: &str| Source::at(url, http.clone()).map(|source| source.base).map_err(|error| error.to_string());
    assert_eq!(at("mon:9090"), Ok("http://mon:9090".into()));
    assert_eq!(at("https://mon.example/prometheus/"), Ok("https://mon.example/prometheus".into()));
    assert_eq!(
        at("ftp://mon"),
        Err("--prometheus \"ftp://mon\": a URL begins with http:// or https:// and names a host".into())
    );
    assert!(at("http://").is_err() && at("http://a b").is_err() && at("http://mon:9090/?query=up").is_err());
}

proptest::proptest! {
    #[test]
    fn no_answer_makes_it_fail(bytes: Vec<u8>) {
        let _ = rows::<Labels>(&bytes);
        let _ = rows::<Figure>(&bytes);
    }

    #[test]
    fn any_label_survives(name in "(?s).*", value in "[0-9.eE+-]{0,8}|NaN|[+-]Inf", kind in "dram|l1|\\PC*") {
        let row = json!({"metric": {"__name__": "ttmon_process_memory_bytes", "job": "j", "instance": name, "device": name,
            "pid": "7", "name": name, "kind": kind}, "value": [NOW, value]});
        let answer = json!({"status": "success", "data": {"resultType": "vector", "result": [row]}}).to_string();
        let facts = answer.into_bytes();
        let told = Told { facts: facts.into(), ..told(&[], &[], &[], &[]) };
        let known = hosts(&told.rows().unwrap(), "http://mon:9090", &[]);
        proptest::prop_assert!(known.iter().all(|host| host.name == name));
    }
}
