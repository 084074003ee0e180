//! Who uses the devices of a machine or of several: the processes of the same user, Slurm job, unit or pod, added up.

use clap::ValueEnum;
use model::figure::Figure;
use model::figure::process::{POD, SLURM_JOB, UNIT, USER};
use model::filter::{Filter, FilterContext};
use model::{Device, DeviceId, Process, Snapshot, State};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What processes are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    User,
    Job,
    Unit,
    Pod,
}

/// What a group of processes uses, over all machines.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct GroupRow {
    /// Absent for processes whose owner is not known.
    pub name: Option<String>,
    pub hosts: usize,
    pub processes: usize,
    /// Whether there may be more: openers in other PID namespaces cannot be counted.
    pub processes_lower_bound: bool,
    pub devices: usize,
    pub dram: Sum,
    pub l1: Sum,
    /// In percent of one device.
    pub utilization: Sum,
    /// Of devices that no other group holds.
    pub power: Sum,
    /// The same since the first sample.
    pub energy: Sum,
}

/// A sum, which is a lower bound where a part of it is not known.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Sum {
    pub known: Option<f64>,
    pub is_lower_bound: bool,
}

/// Groups the processes of one sample after another.
pub struct Groups {
    pub grouping: Grouping,
    filter: Filter,
    energy: EnergyMeter,
}

/// What each group's devices took while no other group held them, from sample to sample.
#[derive(Default)]
struct EnergyMeter {
    /// Of each device at the sample before.
    before: Option<BTreeMap<DeviceName, DeviceEnergy>>,
    sums: BTreeMap<Option<String>, Sum>,
}

/// The counter of a device, and the only group that holds it.
struct DeviceEnergy {
    group: Option<String>,
    joules: Option<f64>,
}

/// The machine, and a name of the device that does not change with its number.
type DeviceName = (String, String);

/// Who uses one device.
struct DeviceUse<'a> {
    host: &'a str,
    device: Option<&'a Device>,
    /// The groups that hold it, with the busy part of each.
    groups: BTreeMap<Option<String>, Sum>,
    /// Whether others may hold it, too.
    is_shared: bool,
}

impl Grouping {
    pub fn word(self) -> &'static str {
        match self {
            Grouping::User => "user",
            Grouping::Job => "job",
            Grouping::Unit => "unit",
            Grouping::Pod => "pod",
        }
    }

    pub fn heading(self) -> &'static str {
        match self {
            Grouping::User => "User",
            Grouping::Job => "Job",
            Grouping::Unit => "Unit",
            Grouping::Pod => "Pod",
        }
    }

    fn of(self, process: &Process) -> Option<String> {
        let figure: &Figure<Process> = match self {
            Grouping::User => &USER,
            Grouping::Job => &SLURM_JOB,
            Grouping::Unit => &UNIT,
            Grouping::Pod => &POD,
        };
        Some(figure.value(process)?.as_text()?.to_owned())
    }
}

impl Sum {
    fn add(&mut self, part: Option<f64>) {
        match part {
            Some(part) => self.known = Some(self.known.unwrap_or(0.0) + part),
            None => self.is_lower_bound = true,
        }
    }

    fn add_sum(&mut self, other: Sum) {
        self.add(other.known);
        self.is_lower_bound |= other.is_lower_bound;
    }
}

impl Groups {
    pub fn new(grouping: Grouping, filter: Filter) -> Groups {
        Groups { grouping, filter, energy: EnergyMeter::default() }
    }

    /// Whether not all processes are wanted.
    pub fn is_filtered(&self) -> bool {
        self.filter != Filter::default()
    }

    /// The groups of these machines, by name, that with the most DRAM first.
    pub fn take(&mut self, machines: &[(&str, &Snapshot)]) -> Vec<GroupRow> {
        let mut rows: BTreeMap<Option<String>, GroupRow> = BTreeMap::new();
        let mut uses = Vec::new();
        for (host, snapshot) in machines {
            let of_host = self.add_processes(&mut rows, host, snapshot);
            let present: BTreeSet<&Option<String>> = of_host.iter().flat_map(|one| one.groups.keys()).collect();
            present.into_iter().for_each(|name| rows.entry(name.clone()).or_default().hosts += 1);
            uses.extend(of_host);
        }
        for one in &uses {
            for (name, utilization) in &one.groups {
                let row = rows.entry(name.clone()).or_default();
                row.devices += 1;
                row.utilization.add_sum(*utilization);
                row.power.add(one.power(name));
            }
        }
        self.energy.add(&uses);
        let mut rows: Vec<GroupRow> = rows.into_iter().map(|(name, row)| GroupRow { name, ..row }).collect();
        for row in &mut rows {
            row.energy = self.energy.sums.get(&row.name).copied().unwrap_or_default();
        }
        let dram = |row: &GroupRow| row.dram.known.map(|bytes| bytes as u64);
        rows.sort_by(|a, b| {
            (Reverse(dram(a)), a.name.is_none(), &a.name).cmp(&(Reverse(dram(b)), b.name.is_none(), &b.name))
        });
        rows
    }

    /// Adds the processes of a machine and what they hold, and returns who uses which device.
    fn add_processes<'a>(
        &self,
        rows: &mut BTreeMap<Option<String>, GroupRow>,
        host: &'a str,
        snapshot: &'a Snapshot,
    ) -> Vec<DeviceUse<'a>> {
        let mut uses: BTreeMap<&DeviceId, DeviceUse<'a>> = BTreeMap::new();
        let device_use = |id: &DeviceId| {
            let device = snapshot.devices.iter().find(|device| device.id == *id);
            let is_shared = !device.is_some_and(|device| device.names_all_holders);
            DeviceUse { host, device, groups: BTreeMap::new(), is_shared }
        };
        for process in &snapshot.processes {
            // What a process reported of a device that it does not hold counts nowhere.
            let held: Vec<_> = process.devices.iter().filter(|held| held.unverified.is_none()).collect();
            if !self.filter.matches(process, &FilterContext { snapshot, growth: None }) {
                held.iter()
                    .for_each(|held| uses.entry(&held.id).or_insert_with(|| device_use(&held.id)).is_shared = true);
                continue;
            }
            let name = self.grouping.of(process);
            if held.is_empty() {
                continue;
            }
            let row = rows.entry(name.clone()).or_default();
            row.processes += 1;
            for held in held {
                row.dram.add(held.usage.dram_used.map(|bytes| bytes.0 as f64));
                row.l1.add(held.usage.l1_used.map(|bytes| bytes.0 as f64));
                let busy = uses
                    .entry(&held.id)
                    .or_insert_with(|| device_use(&held.id))
                    .groups
                    .entry(name.clone())
                    .or_default();
                busy.add(held.activity.utilization_percent);
                busy.is_lower_bound |= held.activity.utilization_lower_bound == Some(true);
                // A device is never busier than all the time.
                busy.known = busy.known.map(|percent| percent.min(100.0));
            }
        }
        // Openers in other PID namespaces have no names, so that no filter matches them.
        let foreign = snapshot.devices.iter().filter(|device| device.foreign_holders > 0);
        let foreign: Vec<&Device> = foreign.filter(|_| !self.is_filtered()).collect();
        if !foreign.is_empty() {
            let row = rows.entry(None).or_default();
            (row.processes, row.processes_lower_bound) = (row.processes + 1, true);
            for device in foreign {
                row.dram.add(None);
                row.l1.add(None);
                let one = uses.entry(&device.id).or_insert_with(|| device_use(&device.id));
                one.groups.entry(None).or_default().add(None);
            }
        }
        uses.into_values().filter(|one| !one.groups.is_empty()).collect()
    }
}

impl DeviceUse<'_> {
    /// The only group that holds the device, where that is certain. Processes of unknown owners may be of several.
    fn only_group(&self) -> Option<&str> {
        let mut names = self.groups.keys().filter(|_| !self.is_shared);
        names.next().filter(|_| self.groups.len() == 1)?.as_deref()
    }

    /// The power of the device, where it is all this group's.
    fn power(&self, group: &Option<String>) -> Option<f64> {
        let is_only = self.only_group().is_some() && self.only_group() == group.as_deref();
        let device = self.device.filter(|device| is_only && device.state == State::Ok)?;
        Some(device.power?.0)
    }

    fn name(&self) -> DeviceName {
        let lasting = self.device.and_then(|device| {
            device.asic_id.as_deref().or(device.pci_address.as_ref().map(|address| &*address.0)).map(str::to_owned)
        });
        let remote = self.device.filter(|device| matches!(device.id, DeviceId::Remote(_)));
        (self.host.to_owned(), lasting.unwrap_or_default() + remote.map_or("", |_| "R"))
    }
}

impl EnergyMeter {
    /// Adds what the devices took since the sample before.
    fn add(&mut self, uses: &[DeviceUse<'_>]) {
        let known = |one: &DeviceUse| {
            let joules = one.device.and_then(|device| device.energy_total).map(|energy| energy.0);
            (one.name(), DeviceEnergy { group: one.only_group().map(str::to_owned), joules })
        };
        let now: BTreeMap<DeviceName, DeviceEnergy> = uses.iter().map(known).collect();
        if let Some(before) = self.before.as_ref() {
            for (one, name) in uses.iter().flat_map(|one| one.groups.keys().map(move |name| (one, name))) {
                let is_only = |energy: &&DeviceEnergy| energy.group.is_some() && energy.group == *name;
                let joules = |all: &BTreeMap<DeviceName, DeviceEnergy>| all.get(&one.name()).filter(is_only)?.joules;
                // A counter that fell has started again.
                let taken = joules(before).zip(joules(&now)).map(|(before, now)| now - before);
                self.sums.entry(name.clone()).or_default().add(taken.filter(|taken| *taken >= 0.0));
            }
        }
        self.before = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Activity, Bytes, Held, Joules, Usage, UtilizationSource, UtilizationUnknown, Watts};

    /// A device of which all holders are known.
    fn device(n: u32, watts: f64) -> Device {
        let (power, asic_id) = (Some(Watts(watts)), Some(format!("{n:016X}").into()));
        Device { power, asic_id, names_all_holders: true, ..Device::new(DeviceId::Local(n)) }
    }

    /// A process from `pid user device=DRAM@utilization …`, where `-` is not known.
    fn process(text: &str) -> Process {
        let mut words = text.split(' ');
        let mut process = Process::new(words.next().unwrap().parse().unwrap());
        process.user = words.next().filter(|user| *user != "-").map(str::to_owned);
        let held = |word: &str| {
            let (id, rest) = word.split_once('=').unwrap();
            let (dram, busy) = rest.split_once('@').unwrap();
            let mut held = Held::new(DeviceId::named(id));
            held.usage.dram_used = dram.parse().ok().map(Bytes);
            held.activity = match busy.parse() {
                Ok(percent) => Activity::measured(percent, UtilizationSource::Profiler),
                Err(_) => Activity::unknown(UtilizationUnknown::NoAgent),
            };
            held
        };
        process.devices = words.map(held).collect();
        process
    }

    fn machine(devices: u32, processes: &[&str]) -> Snapshot {
        let devices = (0..devices).map(|n| device(n, 10.0 * f64::from(n + 1))).collect();
        Snapshot { devices, processes: processes.iter().map(|text| process(text)).collect(), ..Snapshot::empty() }
    }

    fn sum(sum: Sum) -> String {
        let mark = if sum.is_lower_bound { "≥" } else { "" };
        sum.known.map_or("–".into(), |known| format!("{mark}{known}"))
    }

    /// A line per group: name, hosts, processes, devices, DRAM, utilization, power, energy.
    fn lines(rows: Vec<GroupRow>) -> Vec<String> {
        let line = |row: GroupRow| {
            let more = if row.processes_lower_bound { "≥" } else { "" };
            let name = row.name.as_deref().unwrap_or("?");
            let GroupRow { hosts, processes, devices, dram, utilization, power, energy, .. } = row;
            let sums = [dram, utilization, power, energy].map(sum).join(" ");
            format!("{name} {hosts} {more}{processes} {devices} {sums}")
        };
        rows.into_iter().map(line).collect()
    }

    fn by_user(machines: &[(&str, &Snapshot)]) -> Vec<String> {
        lines(Groups::new(Grouping::User, Filter::default()).take(machines))
    }

    #[test]
    fn users_are_added_up_over_machines_and_the_largest_is_first() {
        let one = machine(3, &["1 alice 0=100@50 1=100@25", "2 bob 2=500@80"]);
        let other = machine(1, &["1 alice 0=250@100"]);
        assert_eq!(by_user(&[("a", &one)]), ["bob 1 1 1 500 80 30 –", "alice 1 1 2 200 75 30 –"]);
        assert_eq!(by_user(&[("a", &one), ("b", &other)]), ["bob 1 1 1 500 80 30 –", "alice 2 2 3 450 175 40 –"]);
        let equal = machine(2, &["1 bob 0=5@-", "2 alice 1=5@-", "3 - 1=5@-"]);
        let names: Vec<String> =
            by_user(&[("a", &equal)]).iter().map(|line| line[..line.find(' ').unwrap()].into()).collect();
        assert_eq!(names, ["alice", "bob", "?"]);
    }

    #[test]
    fn what_is_not_known_is_a_lower_bound_or_absent() {
        let machine = machine(3, &["1 alice 0=100@50 1=-@-", "2 bob 2=-@-"]);
        assert_eq!(by_user(&[("a", &machine)]), ["alice 1 1 2 ≥100 ≥50 30 –", "bob 1 1 1 – – 30 –"]);
    }

    #[test]
    fn a_device_is_no_busier_than_all_the_time() {
        let machine = machine(1, &["1 alice 0=1@80", "2 alice 0=1@70"]);
        assert_eq!(by_user(&[("a", &machine)]), ["alice 1 2 1 2 100 10 –"]);
    }

    #[test]
    fn power_is_of_devices_that_no_other_holds() {
        let shared = machine(2, &["1 alice 0=3@1 1=3@1", "2 bob 0=2@1"]);
        assert_eq!(by_user(&[("a", &shared)]), ["alice 1 1 2 6 2 ≥20 –", "bob 1 1 1 2 1 – –"]);
        let unknown = machine(1, &["1 - 0=3@1", "2 - 0=3@1"]);
        assert_eq!(by_user(&[("a", &unknown)]), ["? 1 2 1 6 2 – –"], "they may be of two users");
        let mut incomplete = machine(1, &["1 alice 0=3@1"]);
        incomplete.devices[0].names_all_holders = false;
        assert_eq!(by_user(&[("a", &incomplete)]), ["alice 1 1 1 3 1 – –"]);
        let mut hung = machine(1, &["1 alice 0=3@1"]);
        hung.devices[0].state = State::Hung;
        assert_eq!(by_user(&[("a", &hung)]), ["alice 1 1 1 3 1 – –"]);
    }

    #[test]
    fn openers_in_other_pid_namespaces_are_of_unknown_owners() {
        let mut machine = machine(2, &["1 alice 0=3@1 1=3@1"]);
        (machine.devices[1].foreign_holders, machine.devices[1].names_all_holders) = (4, false);
        assert_eq!(by_user(&[("a", &machine)]), ["alice 1 1 2 6 2 ≥10 –", "? 1 ≥1 1 – – – –"]);
    }

    #[test]
    fn stale_and_unverified_bytes_are_no_user_s() {
        let mut machine = machine(2, &["1 alice 0=3@1 1=-@-"]);
        machine.devices[0].memory.stale = Some(Bytes(1 << 30));
        let held = &mut machine.processes[0].devices[1];
        (held.unverified, held.usage) = (Some(model::Unverified::default()), Usage::default());
        assert_eq!(by_user(&[("a", &machine)]), ["alice 1 1 1 3 1 10 –"]);
    }

    #[test]
    fn a_filter_narrows_it_and_what_it_leaves_out_still_shares_the_device() {
        let machine = machine(2, &["1 alice 0=3@1", "2 alice 0=4@1", "3 bob 1=9@1"]);
        let rows = |filter| lines(Groups::new(Grouping::User, Filter::parse(filter).unwrap()).take(&[("a", &machine)]));
        assert_eq!(rows("user:alice"), ["alice 1 2 1 7 2 10 –"]);
        assert_eq!(rows("pid:2"), ["alice 1 1 1 4 1 – –"]);
        assert_eq!(rows("user:carol"), [""; 0]);
    }

    #[test]
    fn jobs_units_and_pods_are_groups_as_users_are() {
        let mut machine = machine(2, &["1 alice 0=3@1", "2 bob 1=4@1"]);
        let owner = &mut machine.processes[0].owner;
        (owner.slurm_job, owner.unit, owner.pod) = (Some("48213".into()), Some("x.service".into()), Some("p".into()));
        let names = |grouping| {
            let rows = Groups::new(grouping, Filter::default()).take(&[("a", &machine)]);
            rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Grouping::Job), [None, Some("48213".into())]);
        assert_eq!(names(Grouping::Unit), [None, Some("x.service".into())]);
        assert_eq!(names(Grouping::Pod), [None, Some("p".into())]);
    }

    #[test]
    fn energy_is_what_devices_took_while_no_other_held_them() {
        let mut groups = Groups::new(Grouping::User, Filter::default());
        let mut energies = |processes: &[&str], joules: [f64; 2]| {
            let mut machine = machine(2, processes);
            for (device, joules) in machine.devices.iter_mut().zip(joules) {
                device.energy_total = Some(Joules(joules));
            }
            let rows = groups.take(&[("a", &machine)]);
            rows.into_iter().map(|row| format!("{} {}", row.name.unwrap(), sum(row.energy))).collect::<Vec<_>>()
        };
        let (alice, bob) = ("1 alice 0=9@1", "2 bob 1=1@1");
        assert_eq!(energies(&[alice, bob], [500.0, 700.0]), ["alice –", "bob –"], "one sample says nothing");
        assert_eq!(energies(&[alice, bob], [510.0, 703.0]), ["alice 10", "bob 3"]);
        assert_eq!(energies(&[alice, "2 bob 0=1@1 1=1@1"], [530.0, 704.0]), ["alice ≥10", "bob ≥4"], "shared");
        assert_eq!(energies(&[alice], [540.0, 800.0]), ["alice ≥10"], "it was shared at the sample before");
        assert_eq!(energies(&[alice], [555.0, 900.0]), ["alice ≥25"]);
        assert_eq!(energies(&[alice], [3.0, 0.0]), ["alice ≥25"], "the service has started again");
        assert_eq!(energies(&[alice], [8.0, 0.0]), ["alice ≥30"]);
    }
}
