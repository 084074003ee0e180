//! Rules that tell when something is wrong: what they say, when they fire, and the same in PromQL. Pure functions of snapshots; no
//! I/O, no clock.

#![cfg_attr(test, allow(clippy::unwrap_used))]
