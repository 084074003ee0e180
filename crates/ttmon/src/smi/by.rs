//! `--by`: a line per user, Slurm job, unit or pod, as a table, as JSON or as CSV.

use super::csv::{CsvForm, quoted};
use super::groups::{GroupRow, Grouping, Groups, Sum};
use super::table;
use crate::json::{JsonNode, Object, json};
use model::figure::device::POWER;
use model::figure::process::{HELD_DRAM_USED, HELD_L1_USED, HELD_UTILIZATION, HELD_UTILIZATION_LOWER_BOUND};
use model::filter::Filter;
use model::{SCHEMA, Snapshot, Timestamp};
use serde_json::Value;
use show::style::Style;
use watch::exit::{Exit, Failure};
use watch::fleet::{Fleet, HostView, Reach};

pub struct ByView {
    groups: Groups,
    form: ByForm,
}

/// How the groups are written.
pub enum ByForm {
    Table,
    Json { lines: bool },
    Csv(CsvForm),
}

impl ByView {
    pub fn new(grouping: Grouping, filter: Option<&str>, form: ByForm) -> anyhow::Result<ByView> {
        let filter = Filter::parse(filter.unwrap_or_default());
        let filter = filter.map_err(|error| Failure::error(Exit::Usage, format!("--filter: {error}")))?;
        Ok(ByView { groups: Groups::new(grouping, filter), form })
    }

    /// Whether there is an answer where there is no device.
    pub fn is_json(&self) -> bool {
        matches!(self.form, ByForm::Json { .. })
    }

    /// Whether its lines have no place for machines that do not answer.
    pub fn is_csv(&self) -> bool {
        matches!(self.form, ByForm::Csv(_))
    }

    /// The groups of one machine.
    pub fn text(&mut self, snapshot: &Snapshot, style: &Style, time: &str, is_first: bool) -> String {
        let rows = self.groups.take(&[("", snapshot)]);
        match self.form {
            ByForm::Table => table::groups::text(&rows, &self.groups, snapshot, style, time),
            ByForm::Json { lines } => self.json(&rows, snapshot.taken_at, None, lines),
            ByForm::Csv(form) => self.csv(&rows, form.header && is_first),
        }
    }

    /// The groups of several machines, at this time, with a line for each that does not answer.
    pub fn fleet_text(
        &mut self,
        fleet: &Fleet,
        now: (Timestamp, &str),
        notes: Vec<String>,
        style: &Style,
        is_first: bool,
    ) -> String {
        let answers: Vec<(&str, Snapshot)> =
            fleet.hosts.iter().filter_map(|host| Some((host.name.as_str(), host.aged()?))).collect();
        let machines: Vec<(&str, &Snapshot)> = answers.iter().map(|(name, snapshot)| (*name, snapshot)).collect();
        let rows = self.groups.take(&machines);
        match self.form {
            ByForm::Table => table::groups::fleet_text(&rows, &self.groups, (fleet, notes), style, now.1),
            ByForm::Json { lines } => self.json(&rows, now.0, Some(fleet), lines),
            ByForm::Csv(form) => self.csv(&rows, form.header && is_first),
        }
    }

    fn json(&self, rows: &[GroupRow], taken_at: Timestamp, fleet: Option<&Fleet>, one_line: bool) -> String {
        let mut object = Object(vec![
            ("schema", SCHEMA.into()),
            ("taken_at", taken_at.to_string().into()),
            ("by", self.groups.grouping.word().into()),
        ]);
        let host = |host: &HostView| {
            let is_reached = host.state == Reach::Reached;
            Object(vec![
                ("host", host.name.clone().into()),
                ("reached", is_reached.into()),
                ("reason", host.trouble().map(str::to_owned).into()),
            ])
        };
        object.0.extend(fleet.map(|fleet| ("hosts", JsonNode::List(fleet.hosts.iter().map(host).collect()))));
        let group = |row: &GroupRow| {
            Object(fields(row, self.groups.grouping).into_iter().map(|(name, value)| (name, value.into())).collect())
        };
        object.0.push(("groups", JsonNode::List(rows.iter().map(group).collect())));
        json(&object, one_line)
    }

    fn csv(&self, rows: &[GroupRow], header: bool) -> String {
        let line = |cells: Vec<String>| cells.join(", ") + "\n";
        let names = fields(&GroupRow::default(), self.groups.grouping).into_iter().map(|(name, _)| name.to_owned());
        let head = header.then(|| line(names.collect()));
        let cell = |(_, value): (&str, Value)| match value {
            Value::Null => "[N/A]".to_owned(),
            Value::Bool(yes) => u8::from(yes).to_string(),
            Value::String(text) => quoted(&text).into_owned(),
            other => other.to_string(),
        };
        let row = |row: &GroupRow| line(fields(row, self.groups.grouping).into_iter().map(cell).collect());
        head.into_iter().chain(rows.iter().map(row)).collect()
    }
}

/// What JSON and CSV have of a group.
fn fields(row: &GroupRow, grouping: Grouping) -> Vec<(&'static str, Value)> {
    let whole = |sum: Sum| sum.known.map(|known| known as u64).into();
    let rounded = |sum: Sum, steps: f64| sum.known.map(|known| (known * steps).round() / steps).into();
    // What is not known is no bound of anything.
    let bound = |sum: Sum| sum.known.map(|_| sum.is_lower_bound).into();
    vec![
        (grouping.word(), row.name.clone().into()),
        ("hosts", row.hosts.into()),
        ("processes", row.processes.into()),
        ("processes_lower_bound", row.processes_lower_bound.into()),
        ("devices", row.devices.into()),
        (HELD_DRAM_USED.name, whole(row.dram)),
        ("dram_used_lower_bound", bound(row.dram)),
        (HELD_L1_USED.name, whole(row.l1)),
        ("l1_used_lower_bound", bound(row.l1)),
        (HELD_UTILIZATION.name, rounded(row.utilization, 10.0)),
        (HELD_UTILIZATION_LOWER_BOUND.name, bound(row.utilization)),
        (POWER.name, rounded(row.power, 10.0)),
        ("power_lower_bound", bound(row.power)),
        ("energy_joules", rounded(row.energy, 1000.0)),
        ("energy_lower_bound", bound(row.energy)),
    ]
}
