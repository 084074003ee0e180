//! What the firmware's telemetry table says of a chip beyond the driver's files.
//!
//! It is there only where deep reads were asked for. Each field is a figure: its row in [`crate::figure::deep`] says what it is.

use crate::{Celsius, Megahertz, Rpm, Volts, Watts};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The last deep read of a chip. What its firmware does not publish is `None`, or an empty list.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Deep {
    pub age_seconds: Option<f64>,
    pub unavailable: Option<DeepUnavailable>,
    pub asic_location: Option<u32>,
    pub telemetry_interval_seconds: Option<f64>,

    #[serde(rename = "asic_temp_shutdown_celsius")]
    pub asic_temp_shutdown: Option<Celsius>,
    #[serde(rename = "vreg_temp_celsius")]
    pub vreg_temp: Option<Celsius>,
    #[serde(rename = "board_temp_celsius")]
    pub board_temp: Option<Celsius>,
    pub fan_target_percent: Option<f64>,
    pub fans_rpm: Vec<Option<Rpm>>,

    #[serde(rename = "input_power_watts")]
    pub input_power: Option<Watts>,
    #[serde(rename = "board_power_limit_watts")]
    pub board_power_limit: Option<Watts>,
    #[serde(rename = "vcore_min_volts")]
    pub vcore_min: Option<Volts>,

    #[serde(rename = "aiclk_max_megahertz")]
    pub aiclk_max: Option<Megahertz>,
    #[serde(rename = "aiclk_ceiling_megahertz")]
    pub aiclk_ceiling: Option<Megahertz>,
    pub aiclk_ceiling_by: Option<ClockLimiter>,
    #[serde(rename = "aiclk_floor_megahertz")]
    pub aiclk_floor: Option<Megahertz>,
    pub aiclk_floor_by: Option<ClockRaiser>,
    pub aiclk_decided_by: Option<ClockDecision>,
    #[serde(rename = "aiclk_host_limit_megahertz")]
    pub aiclk_host_limit: Option<Megahertz>,
    /// Written by [`crate::throttle::explain`].
    pub aiclk_limited: Option<Arc<str>>,
    pub kernel_throttler: Option<bool>,
    #[serde(rename = "kernel_throttler_megahertz")]
    pub kernel_throttler_clock: Option<Megahertz>,
    pub kernel_throttler_starts: Option<u32>,
    pub kernel_throttler_seconds: Option<f64>,
    pub aiclk_limits_enabled: Option<Arc<str>>,
    pub aiclk_floors_enabled: Option<Arc<str>>,
    #[serde(rename = "l2cpu_clk_megahertz")]
    pub l2cpu_clk: Vec<Option<Megahertz>>,

    #[serde(rename = "gddr_temp_celsius")]
    pub gddr_temp: Option<Celsius>,
    #[serde(rename = "gddr_top_temp_celsius")]
    pub gddr_top_temp: Vec<Option<Celsius>>,
    #[serde(rename = "gddr_bottom_temp_celsius")]
    pub gddr_bottom_temp: Vec<Option<Celsius>>,
    pub gddr_trained: Vec<Option<bool>>,
    pub gddr_training_failed: Vec<Option<bool>>,
    pub gddr_self_test: Vec<Option<SelfTest>>,
    pub gddr_corrected_reads: Vec<Option<u32>>,
    pub gddr_corrected_writes: Vec<Option<u32>>,
    pub gddr_uncorrected_read: Vec<Option<bool>>,
    pub gddr_uncorrected_write: Vec<Option<bool>>,
    pub gddr_megabits_per_second: Option<u32>,
    #[serde(rename = "gddr_west_power_watts")]
    pub gddr_west_power: Option<Watts>,
    #[serde(rename = "gddr_east_power_watts")]
    pub gddr_east_power: Option<Watts>,

    pub eth_enabled: Vec<Option<bool>>,
    pub eth_heartbeat: Vec<Option<bool>>,
    pub eth_link_up: Vec<Option<bool>>,
    pub eth_retrained: Vec<Option<bool>>,

    pub tensix_enabled: Option<Arc<str>>,
    pub gddr_enabled: Option<Arc<str>>,
    pub l2cpu_enabled: Option<Arc<str>>,
    pub pcie_usage: Option<Arc<str>>,
    pub noc_translation: Option<bool>,

    pub firmware_cm: Option<Arc<str>>,
    pub firmware_gddr: Option<Arc<str>>,
    pub firmware_ethernet_ports: Option<Arc<str>>,
    pub firmware_flash_tool: Option<Arc<str>>,
    pub firmware_build_date: Option<Arc<str>>,
    pub firmware_features: Option<Arc<str>>,
    pub firmware_features_on: Option<Arc<str>>,
    pub smbus_errors: Option<u32>,

    /// The table as it was read, by tag. Kept whole, so that unknown tags can be shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TelemetryTag>,
}

/// What the deep reads of a machine have done so far. Its rows are in [`crate::figure::machine`].
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeepCounts {
    #[serde(rename = "opens_total")]
    pub opens: u64,
    #[serde(rename = "registers_total")]
    pub registers: u64,
    #[serde(rename = "seconds_total")]
    pub seconds: f64,
    #[serde(rename = "refused_total")]
    pub refused: u64,
}

/// One entry of the firmware's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TelemetryTag {
    /// Its number.
    pub tag: u16,
    /// Its word, as read.
    pub value: u32,
}

named! {
    /// Why a deep read was asked for, and there is none.
    pub enum DeepUnavailable {
        /// Nobody holds the chip, and opening it could change its power state.
        NotHeld = "nobody holds the device: --deep=idle reads it, too",
        /// It was closed a moment ago: its power-down must not be disturbed.
        JustClosed = "the device was closed less than 6 s ago",
        /// The chip has no PCIe of its own.
        Remote = "a chip behind another one has no safe way to read it",
        /// It is resetting, hung, lost, or has no driver.
        NotReady = "the device is not ready",
        /// A process has it open alone.
        Exclusive = "a process has opened the device exclusively",
        /// The node could not be opened.
        NotPermitted = "not permitted to open the device",
        /// The firmware has published no table.
        NoTable = "the firmware publishes no telemetry table",
        /// The table makes no sense.
        BadTable = "the telemetry table is damaged",
        /// The driver or the firmware is too old.
        TooOld = "driver or firmware is too old",
        /// The reader ended or did not answer.
        ReaderFailed = "the reader did not answer",
    }
}

named! {
    /// What holds the clock down. The order is that of the firmware's numbers.
    pub enum ClockLimiter {
        Maximum = "maximum clock",
        Power = "chip power",
        FastCurrent = "fast current limit",
        Current = "current",
        Temperature = "temperature",
        BoardPower = "board power",
        Voltage = "voltage",
        GddrTemperature = "GDDR temperature",
        DopplerSlow = "doppler (slow)",
        DopplerCritical = "doppler (critical)",
    }
}

named! {
    /// What holds the clock up, in the order of the firmware's numbers.
    pub enum ClockRaiser {
        Minimum = "minimum clock",
        Busy = "a busy workload",
    }
}

named! {
    /// Who has decided on the clock, in the order of the firmware's numbers.
    pub enum ClockDecision {
        Floor = "floor",
        Ceiling = "ceiling",
        Minimum = "minimum",
        Sweep = "sweep",
        Forced = "forced",
    }
}

named! {
    /// How the self test of a memory channel ended.
    pub enum SelfTest {
        NotRun = "not run",
        Passed = "passed",
        Failed = "failed",
    }
}
