//! The machines that a Prometheus knows, from a few instant queries: it scrapes them, so they need not be asked one by one.
//!
//! - `labels`: series and their labels, as answers have them,
//! - `index`: which figure a series is of, from the tables of figures,
//! - `machines`: snapshots, put together from the series.

mod index;
mod labels;
mod machines;
#[cfg(test)]
mod tests;

use super::watcher::{FleetState, NextStep};
use super::{DetailRequest, HostView, Reach};
use crate::exit::{Exit, Failure};
use alerts::http::Http;
use index::metric_name;
use labels::{AllLabels, FigureLabels, Sample, samples};
use machines::{RATE_LABEL, ScrapedMachine, ScrapedMachines};
use model::Device;
use model::figure::device::{AICLK, ASIC_TEMP, DRAM_USED, L1_USED, POWER, UNTRACKED};
use model::figure::process::{HELD_DRAM_USED, SERIES_LABELS, SOURCE};
use model::figure::{Dimension, Figure};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use ureq::http::Uri;

/// A Prometheus that scrapes machines.
#[derive(Debug, Clone)]
pub struct Prometheus {
    /// What paths are appended to.
    base: String,
    http: Http,
}

/// The answers to one round of queries, as bytes.
#[derive(Default)]
struct QueryReplies {
    states: OnceLock<Vec<u8>>,
    figures: OnceLock<Vec<u8>>,
    facts: OnceLock<Vec<u8>>,
    gone: OnceLock<Vec<u8>>,
    alerts: OnceLock<Vec<u8>>,
    everything: OnceLock<Vec<u8>>,
    rates: OnceLock<Vec<u8>>,
}

struct RoundOfSamples<'a> {
    states: Vec<Sample<AllLabels<'a>>>,
    figures: Vec<Sample<FigureLabels<'a>>>,
    facts: Vec<Sample<AllLabels<'a>>>,
    gone: Vec<Sample<AllLabels<'a>>>,
    alerts: Vec<Sample<AllLabels<'a>>>,
    /// All series of the machine whose details are requested, and the rates of its counters.
    details: Option<[Vec<Sample<AllLabels<'a>>>; 2]>,
}

/// The figures that a page of machines shows; their limits are asked for, too.
static ON_THE_PAGE: [&Figure<Device>; 6] = [&ASIC_TEMP, &POWER, &AICLK, &DRAM_USED, &L1_USED, &UNTRACKED];

/// Only what a page of machines needs, and of each series only the labels that tell it from the others.
const STATES: &str = "ttmon_device_state == 1";
static FIGURES: LazyLock<String> = LazyLock::new(|| {
    let figures = || ON_THE_PAGE.iter().copied().chain(ON_THE_PAGE.iter().filter_map(|figure| figure.limit));
    let names: BTreeSet<String> = figures().filter_map(metric_name).collect();
    let fixed = figures().filter_map(|figure| Some(figure.metric?.label?.0));
    let labels: BTreeSet<&str> = fixed.chain(figures().filter_map(|figure| Some(figure.dimension?.name()))).collect();
    let (names, labels) = (Vec::from_iter(names).join("|"), Vec::from_iter(labels).join(", "));
    format!("max by (__name__, job, instance, device, {labels}) ({{__name__=~\"{names}\"}})")
});
static FACTS: LazyLock<String> = LazyLock::new(|| {
    let (used, kind) = (metric_name(&HELD_DRAM_USED).unwrap_or_default(), Dimension::MemoryKind.name());
    let labels = SERIES_LABELS.map(|figure| figure.name).join(", ");
    format!(
        "{{__name__=~\"ttmon_host_info|ttmon_sample_timestamp_seconds\"}} \
         or max by (__name__, job, instance, device, {labels}, {}, {kind}) ({{__name__=\"{used}\",pid!=\"other\"}})",
        SOURCE.name
    )
});
const GONE: &str = "last_over_time(ttmon_sample_timestamp_seconds[6h]) unless ttmon_sample_timestamp_seconds";
const ALERTS: &str = "ALERTS{alertstate=\"firing\"} and on (job, instance) ttmon_build_info";
/// For the whole of an answer, which may be of a thousand machines.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// What was scraped within this time is as new as it can be.
const RECENT: Duration = Duration::from_secs(60);

impl Prometheus {
    /// The server at a URL, which may have a path.
    pub fn at(url: &str, http: Http) -> anyhow::Result<Prometheus> {
        let wrong = |why: &str| Failure::error(Exit::Usage, format!("--prometheus {url:?}: {why}"));
        Ok(Prometheus { base: base_of(url).map_err(wrong)?, http })
    }

    /// What is shown until it has answered.
    pub fn placeholder(&self) -> HostView {
        HostView::new(&self.base, &self.base)
    }

    fn ask(&self, query: &str) -> anyhow::Result<Vec<u8>> {
        let url = format!("{}/api/v1/query?query={}", self.base, super::http::escaped(query));
        self.http.get_whatever(&url)
    }

    /// Asks, and reads the answer.
    fn samples<'a, L: Deserialize<'a>>(
        &self,
        query: &str,
        reply: &'a OnceLock<Vec<u8>>,
    ) -> Result<Vec<Sample<L>>, String> {
        let answer = self.ask(query).map_err(|error| reason(&error))?;
        samples(reply.get_or_init(|| answer))
    }

    /// Asks for everything that a page needs, and for more of the machine whose details are requested. All queries run at the same
    /// time, and each answer is read while the others are still on their way.
    fn ask_all<'a>(
        &self,
        details_of: Option<&HostView>,
        replies: &'a QueryReplies,
    ) -> Result<RoundOfSamples<'a>, String> {
        let QueryReplies { states, figures, facts, gone, alerts, everything, rates } = replies;
        std::thread::scope(|scope| {
            let ask = |query: &'static str, reply| scope.spawn(move || self.samples::<AllLabels>(query, reply));
            let figures = scope.spawn(|| self.samples::<FigureLabels>(&FIGURES, figures));
            let (states, facts) = (ask(STATES, states), ask(&FACTS, facts));
            let (gone, alerts) = (ask(GONE, gone), ask(ALERTS, alerts));
            let details = details_of.map(|host| {
                let everything = self.samples(&everything_of(host), everything)?;
                Ok::<_, String>([everything, self.samples(&rates_of(host), rates)?])
            });
            Ok(RoundOfSamples {
                states: joined(states)?,
                figures: joined(figures)?,
                facts: joined(facts)?,
                gone: joined(gone)?,
                alerts: joined(alerts)?,
                details: details.transpose()?,
            })
        })
    }
}

/// What paths are appended to, from a URL or a host name.
pub fn base_of(url: &str) -> Result<String, &'static str> {
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let parsed: Uri = full.parse().map_err(|_| "not a URL; expected one like http://HOST:9090")?;
    if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none_or(str::is_empty) {
        return Err("a URL starts with http:// or https:// and a host name");
    }
    if parsed.query().is_some() {
        return Err("the URL must not have a query part (after the question mark)");
    }
    Ok(full.trim_end_matches('/').to_owned())
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("its answer could not be read".into()))
}

/// All series of one machine.
fn everything_of(host: &HostView) -> String {
    format!("{{__name__=~\"ttmon_.+\",{}}}", matcher(host))
}

/// The rates of one machine's counters. A rate has no name of its own, so its figure is in a label.
fn rates_of(host: &HostView) -> String {
    let machine = matcher(host);
    let rate = |(figure, counter): (&str, String)| {
        format!("label_replace(rate({counter}{{{machine}}}[2m]), \"{RATE_LABEL}\", \"{figure}\", \"\", \"\")")
    };
    index::rates().map(rate).collect::<Vec<_>>().join(" or ")
}

/// Chooses one machine's series. Where one job alone has the name, any job will do.
fn matcher(host: &HostView) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    match host.place.rsplit_once('#').and_then(|(_, place)| place.split_once('/')) {
        Some((job, instance)) => format!("job=\"{}\",instance=\"{}\"", quoted(job), quoted(instance)),
        None => format!("instance=\"{}\"", quoted(&host.name)),
    }
}

/// The machines that the answers have series of. What was known of machines that are gone is kept.
fn hosts(round: &RoundOfSamples<'_>, base: &str, before: &[HostView]) -> Vec<HostView> {
    let mut machines = ScrapedMachines::default();
    machines.add_all(&round.states);
    machines.add_figures(&round.figures);
    machines.add_all(&round.facts);
    if let Some([everything, rates]) = &round.details {
        machines.add_all(everything);
        machines.add_rates(rates);
    }
    machines.add_gone(&round.gone);
    let mut alerts = machines::alerts(&round.alerts);
    let all = machines.finish();
    let mut times: HashMap<String, u32> = HashMap::new();
    all.iter().for_each(|machine| *times.entry(machine.instance.clone()).or_default() += 1);
    let known: HashMap<&str, &HostView> = before.iter().map(|host| (host.place.as_str(), host)).collect();
    let mut hosts = Vec::with_capacity(all.len());
    for ScrapedMachine { job, instance, snapshot, age_seconds, is_current } in all {
        let is_only = times.get(&instance) == Some(&1);
        let name = if is_only { instance.clone() } else { format!("{instance} ({job})") };
        let mut host = HostView::new(name, format!("{base}#{job}/{instance}"));
        let age = Duration::try_from_secs_f64(age_seconds).unwrap_or_default();
        if is_current {
            host.state = Reach::Reached;
            host.snapshot = Some(Arc::new(snapshot));
            host.age = Some(if age > RECENT { age } else { Duration::ZERO });
            host.alerts = alerts.remove(&(job, instance)).unwrap_or_default();
        } else {
            let why = "Prometheus has no current sample of it".into();
            host.state = Reach::Unreachable { why, since: age };
            host.snapshot = known.get(host.place.as_str()).and_then(|host| host.snapshot.clone());
            host.age = host.snapshot.as_ref().map(|_| age);
        }
        hosts.push(host);
    }
    hosts
}

/// Asks again and again, and publishes the answers.
pub fn follow(fleet: &FleetState, prometheus: &Prometheus) {
    let (mut failures, mut request) = (0, None::<DetailRequest>);
    loop {
        let mut known = fleet.hosts();
        let details_of = request.as_ref().and_then(|request| known.iter().find(|host| host.name == request.host));
        let replies = QueryReplies::default();
        match prometheus.ask_all(details_of, &replies).map(|round| hosts(&round, &prometheus.base, &known)) {
            Ok(hosts) => {
                failures = 0;
                known = hosts;
                if known.is_empty() {
                    known.push(prometheus.placeholder());
                    lose(&mut known[0], "it scrapes no `ttmon serve`: there is no series ttmon_device_state");
                }
            }
            Err(why) => {
                failures += 1;
                known.iter_mut().for_each(|host| lose(host, &why));
            }
        }
        fleet.all(known);
        match fleet.rest(None, failures) {
            NextStep::Ask(next) => request = next,
            NextStep::End => return,
        }
    }
}

fn lose(host: &mut HostView, why: &str) {
    let since = match &host.state {
        Reach::Unreachable { since, .. } => *since,
        Reach::Waiting | Reach::Reached => Duration::ZERO,
    };
    host.state = Reach::Unreachable { why: why.to_owned(), since };
}

/// Why there is no answer, in words.
fn reason(error: &anyhow::Error) -> String {
    if let Some(ureq::Error::Timeout(_)) = error.downcast_ref() {
        return format!("no answer within {} s", PATIENCE.as_secs());
    }
    super::http::reason(error).replace("`ttmon serve` is not running there", "Prometheus is not running there")
}
