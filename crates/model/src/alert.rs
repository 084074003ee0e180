//! What is wrong, as rules have found it.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// A rule that has something to say about a device, a process or both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// The rule's name.
    pub name: String,
    /// How much it matters.
    pub severity: Severity,
    /// Whether it is so now.
    pub state: AlertState,
    /// The name of the device that it is about.
    pub device: Option<String>,
    /// The pid of the process that it is about.
    pub process: Option<u32>,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// The first figure that the rule compares, in the unit that the rule has it in.
    pub value: Option<f64>,
    /// One sentence for people.
    pub text: String,
}

/// How much an alert matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Somebody should look at it.
    Warning,
    /// Somebody should look at it now.
    Critical,
}

/// Whether what a rule says is so now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    /// It is, but not for long enough.
    Pending,
    /// It is.
    Firing,
    /// It was.
    Resolved,
}

named! { Severity: Info = "info", Warning = "warning", Critical = "critical" }

named! { AlertState: Pending = "pending", Firing = "firing", Resolved = "resolved" }
