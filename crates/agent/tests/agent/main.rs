//! The agent as processes have it: loaded before `libtt_metal.so`, the real one or one that is not what it seems.

#![allow(clippy::unwrap_used)]

mod activity;
mod c_abi;
mod dispatch_telemetry;
mod harness;
mod operations;
mod real_library;
mod unknown_library;
