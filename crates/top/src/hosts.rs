//! Several machines: what is known of them, their order, and which one is shown.
//!
//! Lines are made once per sample, order or filter, and not for every picture.

use super::cursor::Cursor;
use super::paint::columns;
use model::{Device, DeviceId};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use watch::fleet::summary::Summary;
use watch::fleet::{Fleet, HostView};

#[derive(Debug, Default)]
pub struct Hosts {
    fleet: Fleet,
    summaries: Vec<Summary>,
    /// The columns that the widest name takes.
    pub name_width: u16,
    /// What is shown, from top to bottom.
    lines: Vec<HostLine>,
    pub sort: HostSort,
    /// Whether the order is the other way round than people most likely want it.
    pub reversed: bool,
    /// What a machine must have in what is said of it, word by word.
    pub filter: String,
    /// Those whose devices are shown, by name.
    expanded: BTreeSet<String>,
    /// The machine and the device that the cursor is on.
    pub cursor: Cursor<(String, Option<DeviceId>)>,
    /// The machine that is looked at, by name.
    pub entered: Option<String>,
    /// Whether there is only one, which is then shown in the place of this machine.
    pub is_alone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostLine {
    Host(usize),
    /// A device of a machine, by its place there.
    Device(usize, usize),
}

model::named! {
    #[derive(Default)]
    pub enum HostSort {
        #[default]
        Need = "need",
        Name = "name",
        Devices = "devices",
        Temperature = "temperature",
        Power = "power",
        Dram = "DRAM",
        Processes = "processes",
        Age = "age",
    }
}

impl HostSort {
    fn compare(self, (a, x): (&HostView, &Summary), (b, y): (&HostView, &Summary)) -> Ordering {
        // The largest first; what is not known comes last either way.
        fn largest<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Ordering {
            b.partial_cmp(&a).unwrap_or(Ordering::Equal)
        }
        match self {
            HostSort::Need => x.need.cmp(&y.need),
            HostSort::Name => a.name.cmp(&b.name),
            HostSort::Devices => largest(Some(x.devices), Some(y.devices)),
            HostSort::Temperature => largest(x.hottest.map(|(temp, _)| temp.0), y.hottest.map(|(temp, _)| temp.0)),
            HostSort::Power => largest(x.power.map(|power| power.0), y.power.map(|power| power.0)),
            HostSort::Dram => largest(x.dram_used, y.dram_used),
            HostSort::Processes => largest(Some(x.processes), Some(y.processes)),
            HostSort::Age => largest(a.age, b.age),
        }
    }
}

impl Hosts {
    /// Of which nothing is known yet. `is_alone` if there is one, and never will be more.
    pub fn new(fleet: Fleet, is_alone: bool) -> Hosts {
        let entered = fleet.hosts.first().filter(|_| is_alone).map(|host| host.name.clone());
        let mut hosts = Hosts { entered, is_alone, ..Hosts::default() };
        let summaries = fleet.hosts.iter().map(Summary::of).collect();
        hosts.take(fleet, summaries);
        hosts
    }

    pub fn take(&mut self, fleet: Fleet, summaries: Vec<Summary>) {
        self.name_width = fleet.hosts.iter().map(|host| columns(&host.name)).max().unwrap_or(0);
        self.fleet = fleet;
        self.summaries = summaries;
        self.arrange();
    }

    pub fn arrange(&mut self) {
        let Hosts { fleet, summaries, sort, reversed, .. } = self;
        let words: Vec<String> = self.filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let all = fleet.hosts.iter().zip(summaries.iter()).enumerate();
        let mut order: Vec<usize> =
            all.filter(|(_, (host, summary))| matches(host, summary, &words)).map(|(at, _)| at).collect();
        // Stable, so that equal ones stay in the order in which they were named.
        order.sort_by(|a, b| {
            let of = |at: usize| (&fleet.hosts[at], &summaries[at]);
            let order = sort.compare(of(*a), of(*b));
            if *reversed { order.reverse() } else { order }
        });
        self.lines.clear();
        for at in order {
            self.lines.push(HostLine::Host(at));
            if self.expanded.contains(&self.fleet.hosts[at].name) {
                let devices = self.fleet.hosts[at].snapshot.as_ref().map_or(0, |snapshot| snapshot.devices.len());
                self.lines.extend((0..devices).map(|n| HostLine::Device(at, n)));
            }
        }
        self.cursor.at = self.cursor.place(self.lines.len(), |selected| self.position(selected));
        self.cursor.key = self.key_at(self.cursor.at);
    }

    /// Whether something is wrong with one of them.
    pub fn has_trouble(&self) -> bool {
        self.summaries.iter().any(|summary| summary.worst.is_some())
    }

    /// The machine that the cursor is on.
    pub fn selected(&self) -> Option<(&HostView, &Summary)> {
        let (HostLine::Host(at) | HostLine::Device(at, _)) = self.lines.get(self.cursor.at)?;
        Some(self.host(*at))
    }

    fn position(&self, (name, device): &(String, Option<DeviceId>)) -> Option<usize> {
        let is_its = |line: &HostLine| {
            let (HostLine::Host(at) | HostLine::Device(at, _)) = line;
            self.fleet.hosts[*at].name == *name
        };
        let is_it = |line: &HostLine| is_its(line) && self.device(*line).map(|one| &one.id) == device.as_ref();
        // A device that is gone leaves the cursor on its machine.
        self.lines.iter().position(is_it).or_else(|| self.lines.iter().position(is_its))
    }

    fn key_at(&self, at: usize) -> Option<(String, Option<DeviceId>)> {
        let line = *self.lines.get(at)?;
        let (HostLine::Host(host) | HostLine::Device(host, _)) = line;
        Some((self.fleet.hosts[host].name.clone(), self.device(line).map(|device| device.id.clone())))
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// The lines from one on, with whether the cursor is on it.
    pub fn from(&self, first: usize) -> impl Iterator<Item = (HostLine, bool)> + '_ {
        self.lines.iter().enumerate().skip(first).map(|(n, line)| (*line, n == self.cursor.at))
    }

    pub fn host(&self, at: usize) -> (&HostView, &Summary) {
        (&self.fleet.hosts[at], &self.summaries[at])
    }

    pub fn device(&self, line: HostLine) -> Option<&Device> {
        match line {
            HostLine::Host(_) => None,
            HostLine::Device(host, n) => self.fleet.hosts[host].snapshot.as_ref()?.devices.get(n),
        }
    }

    pub fn all(&self) -> impl Iterator<Item = (&HostView, &Summary)> {
        self.fleet.hosts.iter().zip(&self.summaries)
    }

    pub fn shown(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, HostLine::Host(_))).count()
    }

    /// The machine that is looked at.
    pub fn current(&self) -> Option<&HostView> {
        let name = self.entered.as_ref()?;
        self.fleet.hosts.iter().find(|host| host.name == *name)
    }

    /// Puts the cursor on a line, or on the last one.
    pub fn select(&mut self, at: usize, room: usize) {
        let at = at.min(self.lines.len().saturating_sub(1));
        self.cursor.select(at, self.key_at(at), self.lines.len(), room);
    }

    /// The first line that is drawn when there is room for so many.
    pub fn first(&self, room: usize) -> usize {
        self.cursor.first(self.cursor.at, self.lines.len(), room)
    }

    /// Shows or hides the devices of the machine that the cursor is on.
    pub fn expand(&mut self, is_wanted: Option<bool>) {
        let Some((name, _)) = self.cursor.key.clone() else { return };
        let is_wanted = is_wanted.unwrap_or_else(|| !self.expanded.contains(&name));
        self.cursor.is_chosen = true;
        if is_wanted {
            self.expanded.insert(name);
        } else {
            self.expanded.remove(&name);
            self.cursor.key = Some((name, None));
        }
        self.arrange();
    }

    /// Shows the devices of all machines, or of none.
    pub fn expand_all(&mut self) {
        let is_all = self.fleet.hosts.iter().all(|host| self.expanded.contains(&host.name));
        let all = self.fleet.hosts.iter().filter(|_| !is_all);
        self.expanded = all.map(|host| host.name.clone()).collect();
        self.arrange();
    }

    pub fn is_expanded(&self, name: &str) -> bool {
        self.expanded.contains(name)
    }

    /// Sorts by something; by the same again, the other way.
    pub fn sort_by(&mut self, sort: HostSort) {
        self.reversed = self.sort == sort && !self.reversed;
        self.sort = sort;
        self.arrange();
    }

    pub fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.arrange();
    }
}

/// Whether every word is in what is said of a machine; one behind a minus must not be.
fn matches(host: &HostView, summary: &Summary, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let worst = summary.worst.as_deref().unwrap_or_default();
    let said = format!("{} {} {} {worst}", host.name, host.place, summary.need.name()).to_lowercase();
    words.iter().all(|word| match word.strip_prefix('-').filter(|word| !word.is_empty()) {
        Some(unwanted) => !said.contains(unwanted),
        None => said.contains(word.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use watch::fleet::example;

    fn names(hosts: &Hosts) -> Vec<String> {
        let name = |(line, _): (HostLine, bool)| match line {
            HostLine::Host(at) => hosts.host(at).0.name.clone(),
            HostLine::Device(at, n) => format!("{}/{n}", hosts.host(at).0.name),
        };
        hosts.from(0).map(name).collect()
    }

    fn several() -> Hosts {
        let mut fleet = example::several();
        fleet.hosts.retain(|host| host.name.is_ascii());
        Hosts::new(fleet, false)
    }

    fn again(hosts: &mut Hosts, change: impl FnOnce(&mut Fleet)) {
        let mut fleet = hosts.fleet.clone();
        change(&mut fleet);
        let summaries = fleet.hosts.iter().map(Summary::of).collect();
        hosts.take(fleet, summaries);
    }

    #[test]
    fn the_worst_stand_first_and_the_cursor_with_them_until_it_is_moved() {
        let mut hosts = several();
        assert_eq!(names(&hosts), ["lab-8", "lab-9", "lab-7", "lab-10", "lab-1"]);
        assert_eq!(hosts.cursor.key.as_ref().unwrap().0, "lab-8");
        again(&mut hosts, |fleet| fleet.hosts[2] = example::reached("lab-8", example::calm(1)));
        assert_eq!(names(&hosts), ["lab-9", "lab-7", "lab-10", "lab-1", "lab-8"]);
        assert_eq!(hosts.cursor.key.as_ref().unwrap().0, "lab-9");
        hosts.select(1, 3);
        again(&mut hosts, |fleet| fleet.hosts[2] = example::unreachable("lab-8", "x", 1));
        assert_eq!(
            (hosts.cursor.key.as_ref().unwrap().0.as_str(), hosts.cursor.at),
            ("lab-7", 2),
            "it follows its machine"
        );
        again(&mut hosts, |fleet| fleet.hosts.retain(|host| host.name != "lab-7"));
        assert_eq!(
            (hosts.cursor.key.as_ref().unwrap().0.as_str(), hosts.cursor.at),
            ("lab-10", 2),
            "or stays at its place"
        );
    }

    #[test]
    fn machines_open_to_their_devices() {
        let mut hosts = several();
        hosts.select(2, 10);
        hosts.expand(Some(true));
        assert_eq!(names(&hosts)[2..5], ["lab-7", "lab-7/0", "lab-7/1"]);
        hosts.select(4, 10);
        assert_eq!(hosts.cursor.key, Some(("lab-7".to_owned(), Some(DeviceId::Local(1)))));
        hosts.expand(Some(false));
        assert_eq!((hosts.cursor.at, hosts.len()), (2, 5), "the cursor goes up to the machine");
        hosts.expand_all();
        assert_eq!(hosts.len(), 5 + 2 + 4 + 4);
        hosts.expand_all();
        assert_eq!(hosts.len(), 5);
    }

    #[test]
    fn any_figure_sorts_and_what_is_unknown_comes_last() {
        let mut hosts = several();
        hosts.sort_by(HostSort::Name);
        assert_eq!(names(&hosts), ["lab-1", "lab-10", "lab-7", "lab-8", "lab-9"]);
        hosts.sort_by(HostSort::Name);
        assert_eq!(names(&hosts)[0], "lab-9");
        hosts.sort_by(HostSort::Power);
        assert_eq!(names(&hosts)[..3], ["lab-7", "lab-1", "lab-9"]);
        hosts.sort_by(HostSort::Age);
        assert_eq!(names(&hosts)[0], "lab-9");
    }

    #[test]
    fn a_filter_looks_at_all_that_is_said() {
        let mut hosts = several();
        let mut found = |filter: &str| {
            hosts.set_filter(filter.into());
            names(&hosts)
        };
        assert_eq!(found("LAB-1"), ["lab-10", "lab-1"]);
        assert_eq!(found("no answer"), ["lab-8", "lab-9"]);
        assert_eq!(found("answer -refused"), ["lab-9"]);
        assert_eq!(found("hung"), ["lab-7"]);
        assert!(found("nothing").is_empty());
    }
}
