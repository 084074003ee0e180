//! What a chip does: how busy it is, by which source, and why that is not known.

use serde::{Deserialize, Serialize};

/// What a chip did for one process, or for all of them. What was not measured is `None`: never zero.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    pub utilization_percent: Option<f64>,
    /// Absent where the utilization is.
    pub utilization_lower_bound: Option<bool>,
    pub utilization_source: Option<UtilizationSource>,
    pub utilization_unknown: Option<UtilizationUnknown>,
    pub busy_seconds_total: Option<f64>,
    pub programs_total: Option<u64>,
    pub programs_per_second: Option<f64>,
}

named! {
    /// Where a utilization comes from, in order of preference.
    pub enum UtilizationSource {
        /// What the driver counts.
        Driver = "driver",
        /// Start and end of every program, from the real-time profiler of tt-metal, through the agent in the process.
        Profiler = "profiler",
        /// Busy cycles that the dispatch core counts, read by the agent in the process.
        Dispatch = "dispatch telemetry",
    }
}

named! {
    /// Why a utilization is not known.
    pub enum UtilizationUnknown {
        /// No process holds the chip, so nobody measures.
        NotInUse = "not in use",
        NoAgent = "no agent",
        /// The agent in the process is of a version that does not record it.
        OldAgent = "old agent",
        /// This release of tt-metal has no real-time profiler.
        NoProfiler = "no profiler",
        ProfilerInactive = "profiler inactive",
        SlowDispatch = "slow dispatch",
        EthernetDispatch = "ethernet dispatch",
        RemoteChip = "remote chip",
        RecordsLost = "records lost",
        /// It was launched, and its record comes when it ends.
        ProgramRunning = "program running",
        /// The process has opened the chip a moment ago.
        TooShort = "too short",
        /// The process has closed the chip, or has not opened it.
        Closed = "closed",
        /// What the agent in the process recorded contradicts itself.
        Impossible = "impossible",
    }
}

impl Activity {
    /// So busy, as a source says.
    pub fn measured(percent: f64, source: UtilizationSource) -> Activity {
        Activity {
            utilization_percent: Some(percent),
            utilization_lower_bound: Some(false),
            utilization_source: Some(source),
            ..Activity::default()
        }
    }

    /// Not known, for a reason.
    pub fn unknown(why: UtilizationUnknown) -> Activity {
        Activity { utilization_unknown: Some(why), ..Activity::default() }
    }
}

impl UtilizationUnknown {
    /// A sentence for people.
    pub fn meaning(self) -> &'static str {
        match self {
            UtilizationUnknown::NotInUse => "No process holds the device.",
            UtilizationUnknown::NoAgent => "The process runs without the agent: start it with ttmon run.",
            UtilizationUnknown::OldAgent => "The agent in the process does not record it: use that of this ttmon.",
            UtilizationUnknown::NoProfiler => "This release of tt-metal has no real-time profiler.",
            UtilizationUnknown::ProfilerInactive => "The real-time profiler of tt-metal is inactive on this device.",
            UtilizationUnknown::SlowDispatch => "The process uses slow dispatch, which is not measured.",
            UtilizationUnknown::EthernetDispatch => {
                "The process dispatches from Ethernet cores, which is not measured."
            }
            UtilizationUnknown::RemoteChip => "The chip is behind another one and cannot be measured.",
            UtilizationUnknown::RecordsLost => "Records of programs were lost.",
            UtilizationUnknown::ProgramRunning => "A program is running, and is recorded when it ends.",
            UtilizationUnknown::TooShort => "The process has opened the device a moment ago.",
            UtilizationUnknown::Closed => "The process has closed the device, or has not opened it.",
            UtilizationUnknown::Impossible => "What was recorded contradicts itself and is not shown.",
        }
    }
}
