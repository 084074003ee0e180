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

named! {
    /// How much an alert matters.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// Good to know.
        Info = "info",
        /// Somebody should look at it.
        Warning = "warning",
        /// Somebody should look at it now.
        Critical = "critical",
    }
}

named! {
    /// Whether what a rule says is so now.
    pub enum AlertState {
        /// It is, but not for long enough.
        Pending = "pending",
        /// It is.
        Firing = "firing",
        /// It was.
        Resolved = "resolved",
    }
}
