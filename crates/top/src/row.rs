//! A row of the process table.

use model::Usage;

#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    pub pid: u32,
    /// `0-3`, `0,2`.
    pub devices: String,
    pub usage: Usage,
    /// The kinds of which only a part is known, as it is silent about some of its devices.
    pub partial: Partial,
    pub source: Option<&'static str>,
    /// Percent of what the busiest engine of its busiest device can do.
    pub utilization: Option<f64>,
    /// Percent of the DRAM of the devices that it is on.
    pub share: Option<f64>,
    /// Bytes per minute.
    pub growth: Option<f64>,
    pub age_seconds: Option<f64>,
}

/// For each kind whether it is known of some devices and of others not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Partial {
    pub dram: bool,
    pub l1: bool,
    pub l1_small: bool,
    pub trace: bool,
    pub cb: bool,
}

/// The id of a container alone. Engine and pod come before it, and do not distinguish containers.
pub fn short(container: &str) -> &str {
    container.rsplit(['/', ':']).next().unwrap_or(container)
}
