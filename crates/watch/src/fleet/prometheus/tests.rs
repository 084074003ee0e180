//! What a Prometheus answers, as text, and the machines in the answers.

use super::*;
use crate::fleet::summary::Summary;
use expect_test::expect;
use model::figure::device::DEVICE_FIGURES;
use model::figure::machine::MACHINE_FIGURES;
use model::figure::process::HELD_FIGURES;
use model::figure::{Figure, Unit, Value};
use model::{Device, Need, Snapshot};
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
    use web::metrics::{MetricsFormat, MetricsInput, MetricsOptions, ServiceFigures};
    let (service, options) = (ServiceFigures::default(), &MetricsOptions::default());
    let text = web::metrics::write(&MetricsInput { snapshot, service, options }, MetricsFormat::Prometheus);
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

fn replies(
    states: &[(&str, &str)],
    figures: &[(&str, &str)],
    facts: &[(&str, &str)],
    gone: &[(&str, &str)],
) -> QueryReplies {
    let answer = |series: &[(&str, &str)]| OnceLock::from(vector(series));
    let (states, figures, facts, gone) = (answer(states), answer(figures), answer(facts), answer(gone));
    QueryReplies { states, figures, facts, gone, alerts: answer(&[]), ..QueryReplies::default() }
}

impl QueryReplies {
    fn samples(&self) -> Result<RoundOfSamples<'_>, String> {
        let details = self.everything.get().map(|_| Ok::<_, String>([read(&self.everything)?, read(&self.rates)?]));
        Ok(RoundOfSamples {
            states: read(&self.states)?,
            figures: samples(self.figures.get().unwrap())?,
            facts: read(&self.facts)?,
            gone: read(&self.gone)?,
            alerts: read(&self.alerts)?,
            details: details.transpose()?,
        })
    }
}

fn read(reply: &OnceLock<Vec<u8>>) -> Result<Vec<Sample<AllLabels<'_>>>, String> {
    samples(reply.get().unwrap())
}

fn lab_1() -> QueryReplies {
    replies(
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
            (
                "__name__=ttmon_process_memory_used_bytes,job=ttmon,instance=lab-1:9746,device=0,pid=4711,user=ttuser,name=python3,kind=dram",
                "13314398618",
            ),
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
fn machines_are_in_the_order_of_their_names_and_the_gone_are_among_them() {
    let hosts = hosts(&lab_1().samples().unwrap(), "http://mon:9090", &[]);
    expect![[r#"
        lab-1:9746 Critical 1/2 ["0:ok", "10:hung"] Some((Celsius(54.5), Some(Celsius(90.0)))) Some(Watts(61.2)) Some(Bytes(13314398618)) 1 age Some(0) Some("device 10 is hung")
        lab-3:9746 Unreachable 0/0 [] None None None 0 age None Some("Prometheus has no current sample of it")
        lab-9:9746 Warning 0/1 ["0:no driver"] None None None 0 age Some(0) Some("device 0 is without a driver")
        lab-10:9746 Warning 1/1 ["2R:remote"] None None None 0 age Some(400) Some("nothing new for 400 s")
    "#]].assert_eq(&shown(&hosts));
    assert_eq!(hosts[0].snapshot.as_ref().unwrap().host.name.as_deref(), Some("lab-1"));
    assert_eq!(hosts[1].place, "http://mon:9090#ttmon/lab-3:9746");
}

#[test]
fn what_was_known_of_a_machine_that_is_gone_stays() {
    let before = hosts(&lab_1().samples().unwrap(), "http://mon:9090", &[]);
    let gone = [("job=ttmon,instance=lab-1:9746", "1767323045.5")];
    let after = hosts(&replies(&[], &[], &[], &gone).samples().unwrap(), "http://mon:9090", &before);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].snapshot.as_ref().unwrap().devices.len(), 2);
    assert_eq!(Summary::of(&after[0]).need, Need::Unreachable);
    assert_eq!(after[0].trouble(), Some("Prometheus has no current sample of it"));
}

#[test]
fn two_jobs_with_the_same_machine_are_distinguished() {
    let state = |job: &str| format!("__name__=ttmon_device_state,job={job},instance=lab-1:9746,device=0,state=ok");
    let time = |job: &str| format!("__name__=ttmon_sample_timestamp_seconds,job={job},instance=lab-1:9746");
    let (states, times) = (["a", "b"].map(state), ["a", "b"].map(time));
    let replies = replies(
        &states.each_ref().map(|labels| (labels.as_str(), "1")),
        &[],
        &times.each_ref().map(|labels| (labels.as_str(), "1767323049")),
        &[],
    );
    let hosts = hosts(&replies.samples().unwrap(), "http://mon:9090", &[]);
    assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["lab-1:9746 (a)", "lab-1:9746 (b)"]);
    assert_eq!(matcher(&hosts[1]), r#"job="b",instance="lab-1:9746""#);
}

#[test]
fn a_machine_that_is_shown_has_all_that_its_metrics_have() {
    let machine = example::machine();
    let everything = scraped(&machine, "lab-7:9746");
    let rates = vector(&[
        ("job=ttmon,instance=lab-7:9746,device=0,figure=host_to_device_bytes_per_second", "3200000000"),
        ("job=ttmon,instance=lab-7:9746,device=0,figure=device_to_host_bytes_per_second", "4500000"),
        ("job=ttmon,instance=lab-7:9746,device=0,figure=programs_per_second", "3120.4"),
        // This one is hung.
        ("job=ttmon,instance=lab-7:9746,device=1,figure=host_to_device_bytes_per_second", "0"),
    ]);
    let mut replies = replies(&[], &[], &[], &[]);
    (replies.everything, replies.rates) = (everything.into(), rates.into());
    let hosts = hosts(&replies.samples().unwrap(), "http://mon:9090", &[]);
    let seen = hosts[0].snapshot.as_deref().unwrap();
    assert_eq!(seen.taken_at, machine.taken_at);
    assert_eq!((&seen.host.name, &seen.host.kernel), (&machine.host.name, &machine.host.kernel));
    for (seen, real) in seen.devices.iter().zip(&machine.devices) {
        let mut expected = real.clone();
        for figure in DEVICE_FIGURES.iter().filter(|figure| figure.metric.is_none()) {
            (figure.set)(&mut expected, 0, &Value::Absent);
        }
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
    let mut replies = lab_1();
    let labels = "__name__=ALERTS,alertname=TtmonDeviceHung,alertstate=firing,severity=critical,job=ttmon,instance=lab-9:9746,device=0";
    replies.alerts = vector(&[(labels, "1")]).into();
    let hosts = hosts(&replies.samples().unwrap(), "http://mon:9090", &[]);
    let lab_9 = hosts.iter().find(|host| host.name == "lab-9:9746").unwrap();
    assert_eq!(Summary::of(lab_9).worst.as_deref(), Some("TtmonDeviceHung (device 0)"));
}

#[test]
fn a_wrong_answer_is_reported_in_a_sentence() {
    let said = |text: &str| samples::<AllLabels>(text.as_bytes()).unwrap_err();
    assert_eq!(said("<html>"), "not a Prometheus: unexpected response");
    assert_eq!(said(r#"{"status":"success"}"#), "not a Prometheus: unexpected response");
    let refused =
        r#"{"status":"error","errorType":"execution","error":"query processing would load too many samples"}"#;
    assert_eq!(said(refused), "Prometheus refused the query: query processing would load too many samples");
    let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#;
    assert!(said(scalar).starts_with("not a Prometheus: unexpected response: "), "{}", said(scalar));
}

#[test]
fn a_url_is_checked_before_it_is_used() {
    let http = Http::new(&alerts::http::HttpOptions::default()).unwrap();
    let at = |url: &str| Prometheus::at(url, http.clone()).map(|source| source.base).map_err(|error| error.to_string());
    assert_eq!(at("mon:9090"), Ok("http://mon:9090".into()));
    assert_eq!(at("https://mon.example/prometheus/"), Ok("https://mon.example/prometheus".into()));
    assert_eq!(
        at("ftp://mon"),
        Err("--prometheus \"ftp://mon\": a URL starts with http:// or https:// and a host name".into())
    );
    assert!(at("http://").is_err() && at("http://a b").is_err() && at("http://mon:9090/?query=up").is_err());
}

/// Every figure that has a metric comes back from it.
#[test]
fn every_figure_with_a_metric_survives_the_way_to_prometheus_and_back() {
    let mut device = example::machine().devices[0].clone();
    for figure in DEVICE_FIGURES.iter().filter(|figure| figure.unit.is_number() && figure.name != "id") {
        for place in 0..figure.labels() {
            (figure.set)(&mut device, place, &Value::Whole(7));
        }
    }
    for figure in DEVICE_FIGURES.iter().filter(|figure| figure.unit == Unit::Text && figure.words.is_empty()) {
        (figure.set)(&mut device, 0, &Value::text(figure.name));
    }
    for figure in DEVICE_FIGURES.iter().filter(|figure| figure.is_deep() && figure.metric.is_some()) {
        let word = figure.words.first().map_or(Value::YesNo(true), |word| Value::text(*word));
        for field in figure.fields().filter(|_| !figure.unit.is_number()) {
            (figure.set)(&mut device, field.label, &word);
        }
    }
    device.sample_age_seconds = Some(0.0);
    let mut machine = example::machine();
    machine.devices = vec![device.clone()];
    let rates: Vec<String> = index::rates()
        .map(|(figure, _)| format!("job=ttmon,instance=lab-7:9746,device={},figure={figure}", device.id))
        .collect();
    let rates: Vec<(&str, &str)> = rates.iter().map(|labels| (labels.as_str(), "7")).collect();
    let mut replies = replies(&[], &[], &[], &[]);
    (replies.everything, replies.rates) = (scraped(&machine, "lab-7:9746").into(), vector(&rates).into());
    let hosts = hosts(&replies.samples().unwrap(), "http://mon:9090", &[]);
    let seen = hosts[0].snapshot.as_deref().unwrap();
    // Of deep reads some follow from others, not all of which are metrics.
    let comes_back = |figure: &&&Figure<Device>| figure.metric.is_some() && (figure.in_json || !figure.is_deep());
    for figure in DEVICE_FIGURES.iter().filter(comes_back) {
        for field in figure.fields() {
            assert_eq!(field.value(&seen.devices[0]), field.value(&device), "{}", field.name());
            assert!(field.value(&device).is_some(), "{} has no value in this test", field.name());
        }
    }
    for figure in MACHINE_FIGURES.iter().filter(|figure| figure.metric.is_some() && figure.in_json) {
        assert_eq!(figure.value(seen), figure.value(&machine), "{figure:?}");
    }
    let held = |snapshot: &Snapshot| -> Vec<_> {
        let held = snapshot.processes.iter().flat_map(|process| &process.devices);
        let fields = HELD_FIGURES.iter().filter(|figure| figure.metric.is_some()).flat_map(|figure| figure.fields());
        let fields: Vec<_> = fields.collect();
        held.flat_map(|held| {
            fields.iter().map(|field| (held.id.clone(), field.name(), field.number(held))).collect::<Vec<_>>()
        })
        .filter(|(_, _, number)| number.is_some())
        .collect()
    };
    assert_eq!(held(seen), held(&machine));
    assert!(!held(seen).is_empty());
}

#[test]
fn the_queries_come_from_the_table() {
    expect![[r#"
        max by (__name__, job, instance, device, kind) ({__name__=~"ttmon_device_aiclk_hertz|ttmon_device_memory_total_bytes|ttmon_device_memory_used_bytes|ttmon_device_power_limit_watts|ttmon_device_power_watts|ttmon_device_temperature_celsius|ttmon_device_temperature_limit_celsius|ttmon_device_untracked_processes"})
        {__name__=~"ttmon_host_info|ttmon_sample_timestamp_seconds"} or max by (__name__, job, instance, device, pid, user, container, name, namespace, pod, container_name, slurm_job, unit, source, kind) ({__name__="ttmon_process_memory_used_bytes",pid!="other"})
        label_replace(rate(ttmon_device_programs_total{job="ttmon",instance="lab-7"}[2m]), "figure", "programs_per_second", "", "") or label_replace(rate(ttmon_device_pcie_host_to_device_bytes_total{job="ttmon",instance="lab-7"}[2m]), "figure", "host_to_device_bytes_per_second", "", "") or label_replace(rate(ttmon_device_pcie_device_to_host_bytes_total{job="ttmon",instance="lab-7"}[2m]), "figure", "device_to_host_bytes_per_second", "", "")
    "#]].assert_eq(&format!(
        "{}\n{}\n{}\n",
        *FIGURES,
        *FACTS,
        rates_of(&HostView::new("lab-7", "http://mon#ttmon/lab-7"))
    ));
}

proptest::proptest! {
    #[test]
    fn no_answer_makes_it_fail(bytes: Vec<u8>) {
        let _ = samples::<AllLabels>(&bytes);
        let _ = samples::<FigureLabels>(&bytes);
    }

    #[test]
    fn any_label_survives(name in "(?s).*", value in "[0-9.eE+-]{0,8}|NaN|[+-]Inf", kind in "dram|l1|\\PC*") {
        let row = json!({"metric": {"__name__": "ttmon_process_memory_bytes", "job": "j", "instance": name, "device": name,
            "pid": "7", "name": name, "kind": kind}, "value": [NOW, value]});
        let answer = json!({"status": "success", "data": {"resultType": "vector", "result": [row]}}).to_string();
        let facts = answer.into_bytes();
        let replies = QueryReplies { facts: facts.into(), ..replies(&[], &[], &[], &[]) };
        let known = hosts(&replies.samples().unwrap(), "http://mon:9090", &[]);
        proptest::prop_assert!(known.iter().all(|host| host.name == name));
    }
}
