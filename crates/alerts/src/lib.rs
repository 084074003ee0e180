//! Rules that tell when something is wrong: what they say, when they fire, and the same in PromQL. Rules are pure
//! functions of snapshots; only telling receivers needs threads, a clock and the network.
//!
//! A rule is one line, `asic_temp > 85 for 30s until asic_temp < 80`: see [`Condition`]. [`Engine`] is shown one snapshot after the
//! other and says what has changed; [`prometheus`] writes rules for Prometheus that fire at the same moments.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod condition;
mod delivery;
mod ended;
mod engine;
#[cfg(test)]
mod example;
mod figure;
pub mod http;
pub mod log;
mod parse;
mod period;
mod problem;
mod promql;
mod queue;
mod receiver;
mod rule;
pub mod settings;
mod track;

pub use condition::{Compare, Condition, Expr, Op, Value};
pub use delivery::{Delivery, host, wall};
pub use ended::Ended;
pub use engine::{Engine, Notice};
pub use figure::{FIGURES, Figure, Kind, Scope};
pub use parse::ParseError;
pub use problem::{Problem, line_of};
pub use promql::{metric_names, prometheus};

pub use receiver::Teller;
pub use rule::{Rule, built_in};
