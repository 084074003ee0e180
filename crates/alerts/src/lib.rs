//! Rules that tell when something is wrong: what they say, when they fire, and the same in PromQL. Pure functions of snapshots; no
//! I/O, no clock.
//!
//! A rule is one line, `asic_temp > 85 for 30s until asic_temp < 80`: see [`Condition`]. [`Engine`] is shown one snapshot after the
//! other and says what has changed; [`prometheus`] writes rules for Prometheus that fire at the same moments.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod condition;
mod engine;
mod figure;
mod parse;
mod period;
mod promql;
mod rule;
mod track;

pub use condition::{Compare, Condition, Expr, Op, Value};
pub use engine::{Engine, Notice};
pub use figure::{FIGURES, Figure, Kind, Scope};
pub use parse::ParseError;
pub use promql::{metric_names, prometheus};

pub use rule::{Rule, built_in};
pub use track::Ended;
