//! Dispatch telemetry, read inside the process: how busy a chip is where tt-metal's profiler is not active.
//!
//! This is the one part of the agent that reads from a device and that starts a thread. Both only with `TTMON_AGENT=reads`, which
//! `ttmon run` sets, and only while a device is open:
//!
//! - The process reads its own device through its own `tt::Cluster`; nothing is opened, configured or written.
//! - A sample is three reads of 16 bytes from the L1 of a dispatch core, twice a second; at most 28 bytes at a time.
//! - Never from a remote chip: that would go through the Ethernet queue of the workload.
//! - Never after a device has begun to close: each read and each close go through [`watched`]. A close waits for one read at most.
//! - Not any more after a chip answered all-ones, or a read threw an exception, which ends in [`guard`].
//!
//! In reading order: `hooks` hears from tt-metal, `watched` has the open devices, `reader` is the thread, `functions` and `guard` call
//! tt-metal. What the bytes mean is in [`ledger::dispatch_telemetry`].

mod functions;
mod guard;
mod hooks;
mod reader;
mod watched;

pub use hooks::{closing, profiled};
