//! What people choose: how it looks, how often it looks, what is shown.

use super::table::Column;
use super::theme::Scheme;
use model::Metric;

/// All choices. The configuration file has the same names.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub theme: Scheme,
    /// ASCII characters only.
    pub ascii: bool,
    pub fahrenheit: bool,
    /// From one sample to the next.
    pub interval_ms: u64,
    /// How much is remembered for charts.
    pub history_seconds: u64,
    /// The charts of the overview, in their order.
    pub charts: Vec<Metric>,
    /// All devices in one chart, instead of the selected one.
    pub overlaid: bool,
    /// The area under a line is filled.
    pub filled: bool,
    /// The newest at the left.
    pub reversed: bool,
    /// The columns of the process table, in their order.
    pub columns: Vec<Column>,
    pub sort: Column,
    pub descending: bool,
    pub tree: bool,
    /// No signals.
    pub read_only: bool,
    /// Whether the mouse is heard.
    pub mouse: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            theme: Scheme::Dark,
            ascii: false,
            fahrenheit: false,
            interval_ms: 1000,
            history_seconds: 3600,
            charts: vec![Metric::Power, Metric::AsicTemp, Metric::DramUsed],
            overlaid: false,
            filled: false,
            reversed: false,
            columns: Column::USUAL.to_vec(),
            sort: Column::Dram,
            descending: true,
            tree: false,
            read_only: false,
            mouse: true,
        }
    }
}
