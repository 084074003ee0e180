//! What a check has found, and all of them as text.

use model::SCHEMA;
use serde::Serialize;
use show::text::clean;

/// What one check has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoctorCheck {
    pub name: &'static str,
    pub status: CheckStatus,
    /// What was found.
    pub found: String,
    /// The file or folder that says so.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// A command to type.
    pub fix: Option<String>,
}

/// In the order in which they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Problem,
    Warning,
    Ok,
    NotApplicable,
}

impl DoctorCheck {
    pub fn ok(name: &'static str, found: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name, status: CheckStatus::Ok, found: found.into(), place: None, fix: None }
    }

    pub fn not_applicable(name: &'static str, found: impl Into<String>) -> DoctorCheck {
        DoctorCheck { status: CheckStatus::NotApplicable, ..DoctorCheck::ok(name, found) }
    }

    pub fn warning(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> DoctorCheck {
        DoctorCheck { status: CheckStatus::Warning, fix: Some(fix.into()), ..DoctorCheck::ok(name, found) }
    }

    pub fn problem(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> DoctorCheck {
        DoctorCheck { status: CheckStatus::Problem, ..DoctorCheck::warning(name, found, fix) }
    }

    /// The same with the file that says so.
    pub fn at(self, place: impl Into<String>) -> DoctorCheck {
        DoctorCheck { place: Some(place.into()), ..self }
    }
}

impl CheckStatus {
    fn word(self) -> &'static str {
        match self {
            CheckStatus::Problem => "problem",
            CheckStatus::Warning => "warning",
            CheckStatus::Ok => "ok",
            CheckStatus::NotApplicable => "–",
        }
    }
}

/// All checks, in the form of their JSON.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    pub schema: u32,
    pub problems: usize,
    pub warnings: usize,
    pub checks: Vec<DoctorCheck>,
}

impl DoctorReport {
    /// Problems first, else in the order of the table.
    pub fn of(mut checks: Vec<DoctorCheck>) -> DoctorReport {
        checks.sort_by_key(|check| check.status);
        let count = |status| checks.iter().filter(|check| check.status == status).count();
        DoctorReport {
            schema: SCHEMA,
            problems: count(CheckStatus::Problem),
            warnings: count(CheckStatus::Warning),
            checks,
        }
    }

    /// A line for each check, and a last one that sums up.
    pub fn text(&self, unicode: bool) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let place = check.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
            let fix = check.fix.as_ref().map_or_else(String::new, |fix| format!("; fix: {fix}"));
            let line = format!("{:<7}  {:<15} {}{place}{fix}", check.status.word(), check.name, check.found);
            text += &format!("{}\n", clean(&line));
        }
        let counted = |count: usize, one: &str| match count {
            0 => format!("no {one}s"),
            1 => format!("1 {one}"),
            count => format!("{count} {one}s"),
        };
        let (problems, warnings) = (counted(self.problems, "problem"), counted(self.warnings, "warning"));
        text += &format!("{problems}, {warnings}, {} checks\n", self.checks.len());
        if unicode { text } else { text.replace('–', "-").replace('×', "x") }
    }
}
