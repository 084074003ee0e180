//! From a moment to the rows of the process table: summed up, filtered, sorted, and as a tree; and what is chosen there.
//!
//! This is done once per moment, filter or order, and not for every picture.

use super::column::ProcessColumn;
use super::cursor::Cursor;
use super::settings::TopSettings;
use super::trails::Trails;
use model::filter::{Filter, FilterContext};
use model::judgement::is_idle_holder;
use model::{Bytes, DeviceId, Process, Snapshot, Timestamp, Usage};
use show::activity::Utilization;
use show::text::in_short;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use watch::moment::Moment;

/// All rows, and which of them are shown in which order.
#[derive(Debug, Default)]
pub struct ProcessRows {
    moment: Arc<Moment>,
    filter: String,
    query: Filter,
    order: RowOrder,
    /// One for each process of the moment, in its order.
    all: Vec<TableRow>,
    shown: Vec<ShownRow>,
    pub widths: ColumnWidths,
}

/// What a row shows that the process does not say itself.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    pub pid: u32,
    /// `0-3`, `0,2`.
    pub devices: String,
    pub usage: Usage,
    pub source: Option<&'static str>,
    /// Of its busiest device.
    pub utilization: Option<Utilization>,
    /// Whether it holds memory and has run nothing for long.
    pub is_idle: bool,
    /// Percent of the DRAM of the devices that it is on.
    pub share: Option<f64>,
    /// Bytes per minute.
    pub growth: Option<f64>,
    pub age_seconds: Option<f64>,
}

/// What the widest of all rows needs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ColumnWidths {
    pub devices: u16,
    pub pid: u16,
    pub user: u16,
    /// Zero where nothing runs in a container.
    pub container: u16,
    pub source: u16,
    /// Whether it is known of any process how busy it keeps a device.
    pub has_utilization: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Zero for a root.
    pub depth: u8,
    /// Whether it is the last child of its parent.
    pub is_last: bool,
    /// For each depth whether a line goes past this row, to what comes below.
    lines: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShownRow {
    row: usize,
    branch: Branch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowOrder {
    sort: ProcessColumn,
    descending: bool,
    tree: bool,
}

/// What is deeper is drawn as if it were no deeper.
const DEEPEST: u8 = 16;

impl Default for RowOrder {
    fn default() -> RowOrder {
        RowOrder { sort: ProcessColumn::Dram, descending: true, tree: false }
    }
}

impl ProcessRows {
    /// Makes new rows where something has changed. Returns whether it has.
    pub fn update(&mut self, moment: &Arc<Moment>, trails: &Trails, filter: &str, settings: &TopSettings) -> bool {
        let order = RowOrder { sort: settings.sort, descending: settings.descending, tree: settings.tree };
        let is_new = !Arc::ptr_eq(moment, &self.moment);
        if !is_new && order == self.order && filter == self.filter {
            return false;
        }
        if is_new {
            self.moment = moment.clone();
            self.all = TableRow::all(&moment.snapshot, trails);
            self.widths = ColumnWidths::of(&moment.snapshot, &self.all);
        }
        if filter != self.filter {
            self.filter = filter.to_owned();
            if let Ok(query) = Filter::parse(filter) {
                self.query = query;
            }
        }
        self.order = order;
        self.arrange();
        true
    }

    fn arrange(&mut self) {
        let snapshot = &self.moment.snapshot;
        let processes = &snapshot.processes;
        let both = self.all.iter().zip(processes).enumerate();
        let context = |row: &TableRow| FilterContext { snapshot, growth: row.growth };
        let matching = both.filter(|(_, (row, process))| self.query.matches(process, &context(row)));
        let mut sorted: Vec<(usize, Option<SortKey>)> =
            matching.map(|(n, (row, process))| (n, SortKey::of(row, process, self.order.sort))).collect();
        // Absent values come last in both directions, and equal ones keep the order of their pids.
        sorted.sort_by(|(a, one), (b, other)| {
            let order = match (one, other) {
                (Some(one), Some(other)) if self.order.descending => other.cmp(one),
                (Some(one), Some(other)) => one.cmp(other),
                (one, other) => other.is_some().cmp(&one.is_some()),
            };
            order.then_with(|| self.all[*a].pid.cmp(&self.all[*b].pid))
        });
        let sorted: Vec<usize> = sorted.into_iter().map(|(n, _)| n).collect();
        self.shown = if self.order.tree {
            tree(&sorted, processes)
        } else {
            sorted.into_iter().map(|row| ShownRow { row, branch: Branch::default() }).collect()
        };
    }

    pub fn len(&self) -> usize {
        self.shown.len()
    }

    pub fn all_len(&self) -> usize {
        self.all.len()
    }

    pub fn from(&self, first: usize) -> impl Iterator<Item = (&TableRow, &Process, Branch)> {
        let shown = self.shown.get(first..).unwrap_or_default();
        shown.iter().map(|place| (&self.all[place.row], &self.moment.snapshot.processes[place.row], place.branch))
    }

    /// Where a process is among the shown.
    pub fn position(&self, pid: u32) -> Option<usize> {
        self.shown.iter().position(|place| self.all[place.row].pid == pid)
    }

    pub fn pid_at(&self, at: usize) -> Option<u32> {
        self.shown.get(at).map(|place| self.all[place.row].pid)
    }
}

impl TableRow {
    /// A row for each process, in the order of the snapshot.
    pub fn all(snapshot: &Snapshot, trails: &Trails) -> Vec<TableRow> {
        let devices = snapshot.devices.iter();
        let totals = devices.filter_map(|device| Some((&device.id, device.memory.dram_total?))).collect();
        snapshot.processes.iter().map(|process| TableRow::of(process, snapshot, &totals, trails)).collect()
    }

    fn of(process: &Process, snapshot: &Snapshot, totals: &HashMap<&DeviceId, Bytes>, trails: &Trails) -> TableRow {
        let held = &process.devices;
        let usage = process.usage();
        let mut sources: Vec<&'static str> = held.iter().filter_map(|held| held.source).map(|s| s.name()).collect();
        sources.dedup();
        let total: Option<Bytes> = held.iter().map(|held| totals.get(&held.id).copied()).sum();
        let share = usage.dram_used.zip(total.filter(|total| total.0 > 0));
        let age = process.started_at.map(|started| snapshot.taken_at.0.saturating_sub(started.0) as f64 / 1000.0);
        TableRow {
            pid: process.pid,
            devices: in_short(&held.iter().map(|held| &held.id).collect::<Vec<_>>()),
            usage,
            source: if sources.len() > 1 { Some("mixed") } else { sources.pop() },
            utilization: Utilization::of_busiest(held),
            is_idle: is_idle_holder(process),
            share: share.map(|(used, total)| used.0 as f64 / total.0 as f64 * 100.0),
            growth: trails.growth(process.pid, snapshot.taken_at),
            age_seconds: age.filter(|age| *age >= 0.0),
        }
    }
}

impl ColumnWidths {
    fn of(snapshot: &Snapshot, rows: &[TableRow]) -> ColumnWidths {
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0).min(999) as u16;
        let processes = &snapshot.processes;
        ColumnWidths {
            devices: widest(&mut rows.iter().map(|row| row.devices.len())),
            pid: widest(&mut rows.iter().map(|row| row.pid.checked_ilog10().unwrap_or(0) as usize + 1)),
            user: widest(&mut processes.iter().filter_map(|process| Some(show::text::width(process.user.as_ref()?)))),
            has_utilization: rows.iter().any(|row| row.utilization.is_some() || row.is_idle),
            source: widest(&mut rows.iter().filter_map(|row| Some(row.source?.len()))),
            container: widest(
                &mut processes.iter().filter_map(|process| Some(show::text::width(&process.workload()?))),
            ),
        }
    }
}

enum SortKey<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Device(&'a DeviceId, usize),
}

impl SortKey<'_> {
    fn of<'a>(row: &TableRow, process: &'a Process, column: ProcessColumn) -> Option<SortKey<'a>> {
        let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| SortKey::Number(bytes.0 as f64));
        let text = |text: Option<&'a str>| text.map(|text| SortKey::Text(Cow::Borrowed(text)));
        match column {
            ProcessColumn::Devices => {
                process.devices.iter().map(|held| &held.id).min().map(|id| SortKey::Device(id, process.devices.len()))
            }
            ProcessColumn::Pid => Some(SortKey::Number(process.pid.into())),
            ProcessColumn::User => text(process.user.as_deref()),
            ProcessColumn::Container => process.workload().map(SortKey::Text),
            ProcessColumn::Dram
            | ProcessColumn::L1
            | ProcessColumn::L1Small
            | ProcessColumn::Trace
            | ProcessColumn::Cb => bytes(column.part(&row.usage)),
            ProcessColumn::Source => text(row.source),
            ProcessColumn::Utilization => row.utilization.map(|known| SortKey::Number(known.percent)),
            ProcessColumn::Share => row.share.map(SortKey::Number),
            ProcessColumn::Growth => row.growth.map(SortKey::Number),
            ProcessColumn::Cpu => process.host_cpu_percent.map(SortKey::Number),
            ProcessColumn::HostMemory => bytes(process.host_memory),
            ProcessColumn::Age => row.age_seconds.map(SortKey::Number),
            ProcessColumn::Command => text(process.command.as_deref().or(process.name.as_deref())),
        }
    }

    fn cmp(&self, other: &SortKey) -> Ordering {
        match (self, other) {
            (SortKey::Number(one), SortKey::Number(other)) => one.total_cmp(other),
            (SortKey::Text(one), SortKey::Text(other)) => {
                let lower = |text| str::chars(text).flat_map(char::to_lowercase);
                lower(one).cmp(lower(other))
            }
            (SortKey::Device(one, n), SortKey::Device(other, m)) => one.cmp(other).then(n.cmp(m)),
            // A column has keys of one sort.
            _ => Ordering::Equal,
        }
    }
}

/// Parents above their children, which keep their order among each other. A process whose parent is not shown is a root.
fn tree(sorted: &[usize], processes: &[Process]) -> Vec<ShownRow> {
    let places: HashMap<u32, usize> = sorted.iter().enumerate().map(|(at, &row)| (processes[row].pid, at)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); sorted.len()];
    let mut roots = Vec::new();
    for (at, &row) in sorted.iter().enumerate() {
        match processes[row].parent_pid.and_then(|parent| places.get(&parent)) {
            Some(&parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let mut is_placed = vec![false; sorted.len()];
    let mut all = Vec::with_capacity(sorted.len());
    // In a recording that was tampered with processes may be their own grandparents: they come last.
    for root in roots.into_iter().chain(0..sorted.len()) {
        let mut next = vec![(root, Branch::default())];
        while let Some((at, branch)) = next.pop() {
            if std::mem::replace(&mut is_placed[at], true) {
                continue;
            }
            all.push(ShownRow { row: sorted[at], branch });
            let last = children[at].last();
            let below = children[at].iter().rev();
            next.extend(below.map(|child| (*child, branch.below(Some(child) == last))));
        }
    }
    all
}

impl Branch {
    fn below(self, is_last: bool) -> Branch {
        let goes_on = self.depth > 0 && !self.is_last;
        let line = if goes_on { 1 << (self.depth - 1) } else { 0 };
        Branch { depth: (self.depth + 1).min(DEEPEST), is_last, lines: self.lines | line }
    }

    /// What is drawn before a command.
    pub fn prefix(self, unicode: bool) -> String {
        let (line, fork, end) = if unicode { ("│  ", "├─ ", "└─ ") } else { ("|  ", "|- ", "`- ") };
        let mut prefix = String::new();
        for depth in 1..self.depth {
            prefix += if self.lines >> (depth - 1) & 1 == 1 { line } else { "   " };
        }
        match (self.depth, self.is_last) {
            (0, _) => {}
            (_, true) => prefix += end,
            (_, false) => prefix += fork,
        }
        prefix
    }
}

/// Sorts by a column, the way people most likely want it; by the same column again, the other way.
pub fn sort_by(settings: &mut TopSettings, column: ProcessColumn) {
    settings.descending = if settings.sort == column { !settings.descending } else { column.is_number() };
    settings.sort = column;
}

/// What is chosen in the process table. Sort, columns and tree are settings.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProcessTable {
    /// The process that the cursor is on, by pid.
    pub cursor: Cursor<u32>,
    /// Columns by which the command is scrolled.
    pub sideways: usize,
    pub tagged: BTreeSet<u32>,
    /// What rows must match, as it was typed.
    pub filter: String,
    /// The filters of this session, the oldest first.
    pub filters: Vec<String>,
    /// The process that was clicked, and the sample at that time: the second click of a double click is soon after.
    pub clicked: Option<(u32, Timestamp)>,
}

impl ProcessTable {
    /// Keeps the cursor on its process, or at its place.
    pub fn keep(&mut self, rows: &ProcessRows) {
        self.cursor.at = self.cursor.place(rows.len(), |pid| rows.position(*pid));
        self.cursor.key = rows.pid_at(self.cursor.at);
    }

    /// Puts the cursor on a row, or on the last one, where there is room for so many rows.
    pub fn select(&mut self, rows: &ProcessRows, at: usize, room: usize) {
        let at = at.min(rows.len().saturating_sub(1));
        self.cursor.select(at, rows.pid_at(at), rows.len(), room);
    }

    /// The first row that is drawn when there is room for so many.
    pub fn first(&self, rows: &ProcessRows, room: usize) -> usize {
        self.cursor.first(self.cursor.at, rows.len(), room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Held, Source};
    use show::example;

    fn held(id: DeviceId, usage: Usage) -> Held {
        Held { usage, source: usage.total().map(|_| Source::Shm), ..Held::new(id) }
    }

    fn moment(processes: Vec<Process>) -> Arc<Moment> {
        let snapshot = Snapshot { processes, ..example::machine() };
        Arc::new(Moment { snapshot, ..Moment::default() })
    }

    fn pids(rows: &ProcessRows) -> Vec<u32> {
        rows.from(0).map(|(row, ..)| row.pid).collect()
    }

    fn rows(moment: &Arc<Moment>, filter: &str, settings: &TopSettings) -> ProcessRows {
        let mut rows = ProcessRows::default();
        rows.update(moment, &Trails::default(), filter, settings);
        rows
    }

    #[test]
    fn a_process_is_one_row_with_all_its_devices() {
        let all = TableRow::all(&example::machine(), &Trails::default());
        assert_eq!(all[0].devices, "2,2R");
        assert_eq!(all[0].usage.dram, Some(Bytes(11_811_160_064)));
        assert_eq!(all[0].usage.l1_small, Some(Bytes(65_536)));
        assert_eq!(all[0].share.map(f64::round), Some(46.0), "of both chips");
        assert_eq!(all[1].source, Some("exact"));
        assert_eq!(all[1].age_seconds, Some(1045.678));
        assert_eq!((all[2].share, all[2].growth, all[2].age_seconds), (None, None, None));
    }

    #[test]
    fn a_sum_of_which_a_part_is_unknown_is_marked() {
        let mut process = Process::new(7);
        process.devices =
            vec![held(DeviceId::Local(0), Usage::measured(5, 0, 0, 0, 0)), held(DeviceId::Local(1), Usage::default())];
        let snapshot = Snapshot { processes: vec![process], ..example::machine() };
        let row = &TableRow::all(&snapshot, &Trails::default())[0];
        assert_eq!(row.usage.dram, Some(Bytes(5)));
        assert!(ProcessColumn::Dram.is_partial(&snapshot.processes[0].devices));
    }

    #[test]
    fn every_column_sorts_and_what_is_absent_comes_last() {
        let moment = moment(example::machine().processes);
        let by =
            |sort, descending| pids(&rows(&moment, "", &TopSettings { sort, descending, ..TopSettings::default() }));
        assert_eq!(by(ProcessColumn::Dram, true), [4711, 81, 5120]);
        assert_eq!(by(ProcessColumn::Dram, false), [81, 4711, 5120]);
        assert_eq!(by(ProcessColumn::User, false), [81, 4711, 5120]);
        assert_eq!(by(ProcessColumn::Pid, true), [5120, 4711, 81]);
        assert_eq!(by(ProcessColumn::Devices, false), [4711, 5120, 81]);
        assert_eq!(by(ProcessColumn::Growth, true), [81, 4711, 5120], "nothing is known: by pid");
        for sort in ProcessColumn::ALL
            .into_iter()
            .filter(|column| !matches!(column, ProcessColumn::Devices | ProcessColumn::Pid))
        {
            assert_eq!((by(sort, true)[2], by(sort, false)[2]), (5120, 5120), "{sort:?}");
        }
    }

    fn family(parents: &[(u32, Option<u32>)]) -> Arc<Moment> {
        moment(parents.iter().map(|&(pid, parent_pid)| Process { parent_pid, ..Process::new(pid) }).collect())
    }

    fn drawn(moment: &Arc<Moment>, filter: &str, unicode: bool) -> Vec<String> {
        let settings =
            TopSettings { tree: true, sort: ProcessColumn::Pid, descending: false, ..TopSettings::default() };
        let rows = rows(moment, filter, &settings);
        rows.from(0).map(|(row, _, branch)| format!("{}{}", branch.prefix(unicode), row.pid)).collect()
    }

    #[test]
    fn parents_are_above_their_children() {
        let family =
            family(&[(2, Some(1)), (3, Some(2)), (4, Some(3)), (5, Some(2)), (6, None), (7, Some(6)), (8, Some(7))]);
        assert_eq!(drawn(&family, "", true), ["2", "├─ 3", "│  └─ 4", "└─ 5", "6", "└─ 7", "   └─ 8"]);
        assert_eq!(drawn(&family, "", false), ["2", "|- 3", "|  `- 4", "`- 5", "6", "`- 7", "   `- 8"]);
        assert_eq!(drawn(&family, "not pid:2", true), ["3", "└─ 4", "5", "6", "└─ 7", "   └─ 8"]);
    }

    #[test]
    fn nobody_is_lost_in_a_circle_and_no_depth_is_too_deep() {
        let circle = family(&[(2, Some(4)), (3, Some(2)), (4, Some(3)), (5, Some(5))]);
        assert_eq!(drawn(&circle, "", true), ["2", "└─ 3", "   └─ 4", "5"]);
        let chain: Vec<(u32, Option<u32>)> = (1..5000).map(|pid| (pid, Some(pid - 1))).collect();
        assert_eq!(drawn(&family(&chain), "", true).len(), 4999);
    }

    #[test]
    fn rows_are_made_once_and_an_invalid_filter_leaves_the_last_in_force() {
        let moment = moment(example::machine().processes);
        let (trails, settings) = (Trails::default(), TopSettings::default());
        let mut rows = ProcessRows::default();
        assert!(rows.update(&moment, &trails, "user:ttuser", &settings));
        assert!(!rows.update(&moment, &trails, "user:ttuser", &settings));
        assert!(rows.update(&moment, &trails, "user:ttuser (", &settings));
        assert_eq!(pids(&rows), [4711]);
        assert_eq!((rows.len(), rows.all_len()), (1, 3));
    }
}
