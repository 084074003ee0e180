//! The kinds of work, and what each keeps in the memory of its devices.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Weights, and a cache that grows with the conversations until they end.
    Serving,
    /// Weights and optimizer, and activations that come and go with each step.
    Training,
    /// Buffers of changing size.
    Measuring,
    /// Weights, and somebody who asks now and then.
    Waiting,
    /// A tool that opens a device and has no memory on it.
    Tool,
}

impl Work {
    /// Of the DRAM of a chip, in percent: what a job keeps for as long as it runs.
    pub fn kept_percent(self) -> f64 {
        match self {
            Work::Serving => 44.0,
            Work::Training => 38.0,
            Work::Measuring => 2.0,
            Work::Waiting => 26.0,
            Work::Tool => 0.0,
        }
    }
}

/// Buffers are laid out in whole pages in each bank.
pub(crate) const PAGE: u64 = 4096;
pub(crate) const L1_PAGE: u64 = 1024;
