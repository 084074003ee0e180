//! Other machines, where the configuration names some: threads of `watch` ask them, and the page gets plain data.

use model::{Device, Snapshot, State};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use watch::fleet::settings::FleetSettings;
use watch::fleet::summary::{Summary, is_old, worst_first};
use watch::fleet::watcher::{FleetSource, FleetWatcher};
use watch::fleet::{DetailRequest, HostView, Reach};
use web::fleet::{DramSum, FleetHost, FleetReply, Hottest, PowerSum};

/// The machines that are watched. The threads end when it is dropped.
pub struct WatchedFleet {
    pub settings: FleetSettings,
    watcher: FleetWatcher,
    /// The machine that Prometheus is asked for all figures of, and when somebody last looked at it.
    detailed: Mutex<Option<(String, Instant)>>,
}

/// From one question to the next. The machines' own samples are a second apart, and Prometheus scrapes less often.
const EVERY: Duration = Duration::from_secs(2);
const EVERY_PROMETHEUS: Duration = Duration::from_secs(5);
/// A machine that is looked at keeps its figures for so long: two who look at two machines do not double the queries.
const KEPT: Duration = Duration::from_secs(15);

impl WatchedFleet {
    pub fn start(settings: FleetSettings, source: FleetSource) -> io::Result<WatchedFleet> {
        let every = if settings.prometheus.is_some() { EVERY_PROMETHEUS } else { EVERY };
        let watcher = FleetWatcher::start(source, every)?;
        Ok(WatchedFleet { settings, watcher, detailed: Mutex::default() })
    }

    /// All machines in one line each, or one with its snapshot.
    pub fn answer(&self, name: Option<&str>) -> Vec<u8> {
        self.ask_for_details(name);
        let fleet = self.watcher.fleet();
        let hosts = worst_first(&fleet).into_iter().map(|(at, summary)| (&fleet.hosts[at], summary));
        let hosts = hosts.filter(|(host, _)| name.is_none_or(|name| host.name == name));
        let has_pages = self.settings.prometheus.is_none();
        FleetReply::new(true, hosts.map(|(host, summary)| line(host, summary, has_pages, name.is_some())).collect())
            .json()
    }

    /// A list of machines from Prometheus has a few figures of each. The others are asked for while somebody looks.
    fn ask_for_details(&self, name: Option<&str>) {
        if self.settings.prometheus.is_none() {
            return;
        }
        let mut detailed = self.detailed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = detailed.as_ref().is_none_or(|(_, looked)| looked.elapsed() > KEPT);
        match (name, &mut *detailed) {
            (Some(name), Some((kept, looked))) if kept == name => *looked = Instant::now(),
            (Some(name), _) if is_over => *detailed = Some((name.to_owned(), Instant::now())),
            (None, Some(_)) if is_over => *detailed = None,
            _ => return,
        }
        let request =
            detailed.as_ref().map(|(host, _)| DetailRequest { host: host.clone(), ..DetailRequest::default() });
        self.watcher.request(request);
    }
}

fn line(host: &HostView, summary: Summary, has_page: bool, is_whole: bool) -> FleetHost {
    let (state, since) = match &host.state {
        Reach::Waiting => ("waiting", None),
        Reach::Reached => ("reached", None),
        Reach::Unreachable { since, .. } => ("unreachable", Some(*since)),
    };
    let seconds = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
    let hottest = summary.hottest.map(|(temp, limit)| Hottest {
        host: host.name.clone(),
        celsius: temp.0,
        limit_celsius: limit.map(|limit| limit.0),
    });
    FleetHost {
        host: host.name.clone(),
        url: host.place.clone(),
        page: has_page.then(|| format!("{}/", host.place)),
        state,
        need: summary.need,
        problem: summary.worst.map(|worst| in_configuration_words(&worst)),
        reason: host.trouble().map(in_configuration_words),
        unreachable_seconds: since.map(seconds),
        age_seconds: host.age.map(seconds),
        is_old: is_old(host) || since.is_some(),
        devices: summary.devices,
        devices_ok: summary.ok,
        states: states(host),
        hottest,
        power: PowerSum {
            watts: summary.power.map(|power| power.0),
            limit_watts: summary.power_max.map(|power| power.0),
        },
        dram: DramSum {
            used: summary.dram_used.map(|bytes| bytes.0),
            total: summary.dram_total.map(|bytes| bytes.0),
            at_least: summary.is_at_least,
        },
        processes: summary.processes,
        snapshot: if is_whole { as_reported(host) } else { None },
        alerts: is_whole.then(|| host.alerts.clone()),
    }
}

/// The state of each device. None of a machine that does not answer is ok, as in [`HostView::aged`].
fn states(host: &HostView) -> Vec<&'static str> {
    let is_gone = host.trouble().is_some();
    let state = |device: &Device| match device.state {
        State::Ok | State::Resetting if is_gone => State::Silent.name(),
        other => other.name(),
    };
    host.snapshot.iter().flat_map(|snapshot| &snapshot.devices).map(state).collect()
}

/// Its last snapshot. That the machine does not answer is said once, beside it.
fn as_reported(host: &HostView) -> Option<Snapshot> {
    let faults = host.snapshot.as_ref()?.faults.clone();
    Some(Snapshot { faults, ..host.aged()? })
}

/// What puts it right is a line of the configuration here, and an option on the command line.
fn in_configuration_words(why: &str) -> String {
    let why = why.replace("--token-file FILE", "token_file in [fleet]").replace("--ca FILE", "ca in [fleet]");
    match why.contains("Operation not permitted") {
        true => format!("{why}: the unit may not reach other machines; enable the drop-in fleet.conf"),
        false => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_one_of_the_configuration() {
        let said = in_configuration_words("requires a token, and got none or a wrong one: --token-file FILE");
        assert_eq!(said, "requires a token, and got none or a wrong one: token_file in [fleet]");
        assert!(in_configuration_words("io: Operation not permitted (os error 1)").ends_with("drop-in fleet.conf"));
        assert_eq!(in_configuration_words("device 2 is hung"), "device 2 is hung");
    }

    #[test]
    fn the_worst_machine_is_first_and_only_one_that_is_asked_for_has_its_snapshot() {
        let host = |name: &str| HostView::new(name, format!("http://{name}:9746"));
        let mut gone = host("b");
        gone.state = Reach::Unreachable { why: "no answer within 5 s".into(), since: Duration::from_secs(75) };
        gone.snapshot = Some(std::sync::Arc::new(Snapshot::empty()));
        gone.age = Some(Duration::from_millis(76_540));
        let text = |is_whole| serde_json::to_value(line(&gone, Summary::of(&gone), true, is_whole)).unwrap();
        let short = text(false);
        assert_eq!((&short["need"], &short["state"]), (&"no answer".into(), &"unreachable".into()));
        assert_eq!((&short["unreachable_seconds"], &short["age_seconds"]), (&75.0.into(), &76.5.into()));
        assert_eq!((&short["page"], &short["is_old"]), (&"http://b:9746/".into(), &true.into()));
        assert!(short.get("snapshot").is_none() && short.get("alerts").is_none());
        assert_eq!(text(true)["snapshot"]["faults"], serde_json::json!([]));
        let waiting = serde_json::to_value(line(&host("a"), Summary::of(&host("a")), false, false)).unwrap();
        assert_eq!((&waiting["need"], &waiting["page"]), (&"waiting".into(), &serde_json::Value::Null));
    }
}
