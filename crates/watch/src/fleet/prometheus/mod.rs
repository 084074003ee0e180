//! The machines that a Prometheus knows, from a few instant queries: it scrapes them, so nobody else has to ask them.

mod answers;
#[cfg(test)]
mod tests;

use super::watch::{Board, Next};
use super::{HostView, Reach, Wish};
use crate::exit::{Exit, Failure};
use alerts::http::Http;
use answers::{Figure, Labels, Machine, Machines, Row, rows};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use ureq::http::Uri;

/// A Prometheus.
#[derive(Debug, Clone)]
pub struct Source {
    /// What paths are put behind.
    base: String,
    http: Http,
}

/// The answers of one round of questions.
#[derive(Default)]
struct Told {
    states: OnceLock<Vec<u8>>,
    figures: OnceLock<Vec<u8>>,
    facts: OnceLock<Vec<u8>>,
    gone: OnceLock<Vec<u8>>,
    alerts: OnceLock<Vec<u8>>,
    closer: [OnceLock<Vec<u8>>; 3],
}

/// What is in them.
struct Rows<'a> {
    states: Vec<Row<Labels<'a>>>,
    figures: Vec<Row<Figure<'a>>>,
    facts: Vec<Row<Labels<'a>>>,
    gone: Vec<Row<Labels<'a>>>,
    alerts: Vec<Row<Labels<'a>>>,
    /// Everything about the machine that somebody looks at, and what went over PCIe there.
    closer: Option<[Vec<Row<Labels<'a>>>; 3]>,
}

/// Only what a page of machines needs, and of each series only the labels that tell it from the others.
const STATES: &str = "ttmon_device_state == 1";
const FIGURES: &str = "max by (__name__, job, instance, device, kind) ({__name__=~\"ttmon_device_(temperature_celsius|\
                       temperature_limit_celsius|power_watts|power_limit_watts|aiclk_hertz|memory_used_bytes|\
                       memory_total_bytes|untracked_processes)\",kind=~\"dram|l1|\"})";
const FACTS: &str = "{__name__=~\"ttmon_host_info|ttmon_sample_timestamp_seconds\"} \
                     or max by (job, instance, device, pid, user, container, name, source, kind) \
                     (ttmon_process_memory_used_bytes{pid!=\"other\"})";
const GONE: &str = "last_over_time(ttmon_sample_timestamp_seconds[6h]) unless ttmon_sample_timestamp_seconds";
const ALERTS: &str = "ALERTS{alertstate=\"firing\"} and on (job, instance) ttmon_build_info";
/// For the whole of an answer, which may be of a thousand machines.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// What was scraped within this time is as new as it can be.
const RECENT: Duration = Duration::from_secs(60);

impl Source {
    /// The one at a URL, which may have a path.
    pub fn at(url: &str, http: Http) -> anyhow::Result<Source> {
        let wrong = |why: &str| Failure::error(Exit::Usage, format!("--prometheus {url:?}: {why}"));
        let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let parsed: Uri = full.parse().map_err(|_| wrong("that is no URL, which is like http://HOST:9090"))?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none_or(str::is_empty) {
            return Err(wrong("a URL begins with http:// or https:// and names a host"));
        }
        if parsed.query().is_some() {
            return Err(wrong("leave out what stands behind the question mark"));
        }
        Ok(Source { base: full.trim_end_matches('/').to_owned(), http })
    }

    /// What stands for it until it has answered.
    pub fn placeholder(&self) -> HostView {
        HostView::new(&self.base, &self.base)
    }

    fn ask(&self, query: &str) -> anyhow::Result<Vec<u8>> {
        let url = format!("{}/api/v1/query?query={}", self.base, super::http::escaped(query));
        self.http.get_whatever(&url)
    }

    /// Asks, and reads the answer.
    fn rows<'a, L: Deserialize<'a>>(&self, query: &str, told: &'a OnceLock<Vec<u8>>) -> Result<Vec<Row<L>>, String> {
        let answer = self.ask(query).map_err(|error| reason(&error))?;
        rows(told.get_or_init(|| answer))
    }

    /// Asks all that is needed for a page, and more of the machine that somebody looks at: everything at the same time, and
    /// each answer is read while the others are still on their way.
    fn ask_all<'a>(&self, closer: Option<&HostView>, told: &'a Told) -> Result<Rows<'a>, String> {
        std::thread::scope(|scope| {
            let labels = |query: &'static str, told| scope.spawn(move || self.rows::<Labels>(query, told));
            let figures = scope.spawn(|| self.rows::<Figure>(FIGURES, &told.figures));
            let (states, facts) = (labels(STATES, &told.states), labels(FACTS, &told.facts));
            let (gone, alerts) = (labels(GONE, &told.gone), labels(ALERTS, &told.alerts));
            let closer = closer.map(|host| {
                let [everything, to_device, to_host] = closely(host);
                let [first, second, third] = &told.closer;
                Ok::<_, String>([
                    self.rows(&everything, first)?,
                    self.rows(&to_device, second)?,
                    self.rows(&to_host, third)?,
                ])
            });
            Ok(Rows {
                states: joined(states)?,
                figures: joined(figures)?,
                facts: joined(facts)?,
                gone: joined(gone)?,
                alerts: joined(alerts)?,
                closer: closer.transpose()?,
            })
        })
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("its answer could not be read".into()))
}

/// Everything about one machine, and what goes over PCIe there, to the devices and from them.
fn closely(host: &HostView) -> [String; 3] {
    let of = matcher(host);
    let rate = |metric: &str| format!("rate(ttmon_device_pcie_{metric}_bytes_total{{{of}}}[2m])");
    [format!("{{__name__=~\"ttmon_.+\",{of}}}"), rate("host_to_device"), rate("device_to_host")]
}

/// Chooses one machine's series. Where one job alone has the name, any job will do.
fn matcher(host: &HostView) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    match host.place.rsplit_once('#').and_then(|(_, place)| place.split_once('/')) {
        Some((job, instance)) => format!("job=\"{}\",instance=\"{}\"", quoted(job), quoted(instance)),
        None => format!("instance=\"{}\"", quoted(&host.name)),
    }
}

/// The machines that the answers tell of. What was known of those that are gone stays with them.
fn hosts(rows: &Rows<'_>, base: &str, before: &[HostView]) -> Vec<HostView> {
    let mut machines = Machines::default();
    machines.add_states(&rows.states);
    machines.add_figures(&rows.figures);
    machines.add_facts(&rows.facts);
    if let Some([everything, to_device, to_host]) = &rows.closer {
        machines.add_facts(everything);
        machines.add_rates(to_device, "ttmon_device_pcie_host_to_device_rate");
        machines.add_rates(to_host, "ttmon_device_pcie_device_to_host_rate");
    }
    machines.add_gone(&rows.gone);
    let mut alerts = answers::alerts(&rows.alerts);
    let all = machines.finish();
    let mut times: HashMap<String, u32> = HashMap::new();
    all.iter().for_each(|(machine, _)| *times.entry(machine.instance.clone()).or_default() += 1);
    let known: HashMap<&str, &HostView> = before.iter().map(|host| (host.place.as_str(), host)).collect();
    let mut hosts = Vec::with_capacity(all.len());
    for (Machine { job, instance, snapshot, age_seconds, .. }, is_there) in all {
        let is_only = times.get(&instance) == Some(&1);
        let name = if is_only { instance.clone() } else { format!("{instance} ({job})") };
        let mut host = HostView::new(name, format!("{base}#{job}/{instance}"));
        let age = Duration::try_from_secs_f64(age_seconds).unwrap_or_default();
        if is_there {
            host.state = Reach::Reached;
            host.snapshot = Some(Arc::new(snapshot));
            host.age = Some(if age > RECENT { age } else { Duration::ZERO });
            host.alerts = alerts.remove(&(job, instance)).unwrap_or_default();
        } else {
            let why = "Prometheus hears nothing of it any more".into();
            host.state = Reach::Unreachable { why, since: age };
            host.snapshot = known.get(host.place.as_str()).and_then(|host| host.snapshot.clone());
            host.age = host.snapshot.as_ref().map(|_| age);
        }
        hosts.push(host);
    }
    hosts
}

/// Asks again and again, and puts what it tells on the board.
pub fn follow(board: &Board, source: &Source) {
    let (mut failures, mut known) = (0, Vec::new());
    let mut wish: Option<Wish> = None;
    loop {
        let looked_at = wish.as_ref().and_then(|wish| known.iter().find(|host: &&HostView| host.name == wish.host));
        let told = Told::default();
        match source.ask_all(looked_at, &told).map(|rows| hosts(&rows, &source.base, &known)) {
            Ok(hosts) => {
                failures = 0;
                known = if hosts.is_empty() { vec![nobody(source)] } else { hosts };
            }
            Err(why) => {
                failures += 1;
                if known.is_empty() {
                    known.push(source.placeholder());
                }
                known.iter_mut().for_each(|host| lose(host, &why));
            }
        }
        let told_at = Instant::now();
        board.all(known.clone());
        match board.rest_for_all(failures) {
            Next::Ask(next) => wish = next,
            Next::Over => return,
        }
        age(&mut known, told_at.elapsed());
    }
}

/// What is shown of a Prometheus that knows no machine.
fn nobody(source: &Source) -> HostView {
    let mut host = source.placeholder();
    lose(&mut host, "it scrapes no `ttmon serve`: there is no series ttmon_device_state");
    host
}

fn lose(host: &mut HostView, why: &str) {
    let since = match &host.state {
        Reach::Unreachable { since, .. } => *since,
        Reach::Waiting | Reach::Reached => Duration::ZERO,
    };
    host.state = Reach::Unreachable { why: why.to_owned(), since };
}

/// Time goes by for what is not told anew.
fn age(hosts: &mut [HostView], time: Duration) {
    for host in hosts {
        host.age = host.age.map(|age| age + time);
        if let Reach::Unreachable { since, .. } = &mut host.state {
            *since += time;
        }
    }
}

/// Why there is no answer, in words.
fn reason(error: &anyhow::Error) -> String {
    if let Some(ureq::Error::Timeout(_)) = error.downcast_ref() {
        return format!("no answer within {} s", PATIENCE.as_secs());
    }
    super::http::reason(error).replace("`ttmon serve` does not run there", "Prometheus does not run there")
}
