//! A rule with its name, and those that are there without being asked for.

use crate::condition::Condition;
use crate::figure::Scope;
use model::{Device, Process, Selector, Severity};

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What people call it; there is one of each name.
    pub name: String,
    /// When it fires.
    pub condition: Condition,
    /// How much that matters.
    pub severity: Severity,
    /// Only for these devices; for all when there are none.
    pub devices: Vec<Selector>,
    /// Only for processes with this pid, or with this name, in which `*` stands for anything.
    pub process: Option<String>,
    /// What is wrong, in a few words for people.
    pub text: Option<String>,
}

impl Rule {
    /// What Prometheus and Alertmanager call it: `thermal-trip` is `TtmonThermalTrip`.
    pub fn alertname(&self) -> String {
        let parts = self.name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        let upper = |part: &str| {
            let mut letters = part.chars();
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
        };
        format!("Ttmon{}", parts.map(upper).collect::<String>())
    }

    /// What it is about.
    pub fn scope(&self) -> Scope {
        self.condition.scope()
    }

    pub(crate) fn is_about_device(&self, device: &Device) -> bool {
        self.devices.is_empty() || self.devices.iter().any(|selector| selector.names(device))
    }

    pub(crate) fn is_about_process(&self, process: &Process) -> bool {
        self.is_about(process.pid, process.name.as_deref())
    }

    pub(crate) fn is_about(&self, pid: u32, name: Option<&str>) -> bool {
        let Some(wanted) = &self.process else { return true };
        wanted.parse() == Ok(pid) || name.is_some_and(|name| matches(wanted, name))
    }
}

/// Whether a name is as a pattern has it, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.any(|at| matches(after, &rest[at..]))
}

/// Name, severity, what it says, and the words for it.
const BUILT_IN: [(&str, Severity, &str, &str); 10] = [
    ("lost", Severity::Critical, "state == lost", "it was there and is gone"),
    ("heartbeat-stopped", Severity::Critical, "state == hung", "its firmware does not beat, or its bus is dead"),
    ("silent", Severity::Warning, "state == silent for 15s", "it does not answer"),
    (
        "thermal-trip",
        Severity::Critical,
        "increase(thermal_trips, 10m) > 0",
        "it has shut down by critical temperature",
    ),
    (
        "throttling",
        Severity::Warning,
        "asic_temp >= 100% or power >= 100% for 30s until asic_temp < 97% and power < 97%",
        "it is at its limit, where the firmware throttles",
    ),
    ("hot", Severity::Warning, "asic_temp > 95% for 30s until asic_temp < 90%", "it is near its temperature limit"),
    ("memory-full", Severity::Warning, "dram > 95% for 30s until dram < 90%", "hardly any DRAM is left"),
    ("leak-after-exit", Severity::Warning, "stale > 0 for 1m", "memory is booked for processes that are dead"),
    ("left-at-exit", Severity::Info, "left_at_exit > 0", "it ended without freeing its device memory"),
    ("degraded-link", Severity::Warning, "link_degraded for 1m", "PCIe runs slower or narrower than it could"),
];

/// The rules that are there without being asked for.
pub fn built_in() -> Vec<Rule> {
    let rule = |(name, severity, when, text): (&str, Severity, &str, &str)| {
        let condition = when.parse().ok()?;
        let (name, text) = (name.to_owned(), Some(text.to_owned()));
        Some(Rule { name, condition, severity, devices: Vec::new(), process: None, text })
    };
    BUILT_IN.into_iter().filter_map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rules_that_are_there_are_written_as_people_would() {
        let rules = built_in();
        assert_eq!(rules.len(), BUILT_IN.len());
        for (rule, (_, _, written, _)) in rules.iter().zip(BUILT_IN) {
            assert_eq!(rule.condition.to_string(), written);
        }
        assert_eq!(rules[3].alertname(), "TtmonThermalTrip");
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("python3", "python3", true),
            ("python", "python3", false),
            ("python*", "python3", true),
            ("*thon*", "python3", true),
            ("*x*", "python3", false),
            ("*", "", true),
            ("p*3", "python3.11", false),
            ("ü*", "über", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
