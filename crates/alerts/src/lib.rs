//! Rules about devices and processes: their language, when they fire, and the same rules in PromQL. Pure functions of snapshots; no
//! I/O, no clock.
//!
//! A rule is one line, `asic_temp > 85 for 30s until asic_temp < 80`. [`Engine`] takes one snapshot after the other and returns what
//! has changed; [`prometheus`] writes rules for Prometheus that fire at the same moments. Reading order:
//!
//! - `rule_figure`: the figures that rules compare, from the tables of the model,
//! - `condition`: what a rule consists of; `parse` reads it, `period` its times,
//! - `rule`: a rule with its name, and the built-in rules,
//! - `subject`: the devices and processes that a rule is about, `ended` one that has exited,
//! - `track`: the state of one rule for one subject,
//! - `engine`: all rules for all subjects; `notice`: what is said of a change,
//! - `promql`: the export.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod condition;
mod ended;
mod engine;
mod notice;
mod parse;
mod period;
mod promql;
mod rule;
mod rule_figure;
mod subject;
mod track;

pub use condition::{Compare, Condition, Expr, Operator, Threshold};
pub use ended::Ended;
pub use engine::Engine;
pub use notice::Notice;
pub use parse::ParseError;
pub use promql::{metric_names, prometheus};
pub use rule::{Rule, built_in};
pub use rule_figure::{RuleFigure, figure_help};
pub use subject::Scope;
