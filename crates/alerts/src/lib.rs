//! Rules about devices and processes: their language, when they fire, the same rules in PromQL, and delivery to receivers. Rules are
//! pure functions of snapshots; only delivery needs threads, a clock and the network.
//!
//! A rule is one line, `asic_temp > 85 for 30s until asic_temp < 80`. [`Engine`] takes one snapshot after the other and returns what
//! has changed; [`prometheus`] writes rules for Prometheus that fire at the same moments. Reading order:
//!
//! - `rule_figure`: the figures that rules compare, from the tables of the model,
//! - `condition`: what a rule consists of; `parse` reads it,
//! - `rule`: a rule with its name, and the built-in rules,
//! - `subject`: the devices and processes that a rule is about,
//! - `track`: the state of one rule for one subject,
//! - `engine`: all rules for all subjects; `notice`: what is said of a change,
//! - `promql`: the export.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod condition;
mod delivery;
mod engine;
#[cfg(test)]
mod example;
pub mod http;
pub mod log;
mod notice;
mod parse;
mod promql;
pub mod proxy;
mod queue;
mod receiver;
mod rule;
mod rule_figure;
pub mod settings;
mod subject;
mod tls;
mod track;

pub use condition::Condition;
pub use delivery::{Delivery, host, wall};
pub use engine::Engine;
pub use notice::Notice;
pub use promql::{metric_names, prometheus};
pub use receiver::Notifier;
pub use rule::{DEGRADED_LINK, HOT_DEVICE, IDLE_HOLDER, MEMORY_FULL, POWER_LIMIT, Rule, STATE_RULES, built_in};
pub use rule_figure::figure_help;
pub use settings::{Problem, line_of};
