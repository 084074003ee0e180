//! The firmware's names for the tags of its telemetry table.

use crate::{Arch, TelemetryTag};

impl TelemetryTag {
    /// The firmware's name for it. Above 64, the two chip generations number differently.
    pub fn name(self, arch: Arch) -> Option<&'static str> {
        let (first, names) = match (arch, self.tag) {
            (_, ..=64) => (1, &TAGS[..]),
            (Arch::Blackhole, _) => (65, &BLACKHOLE_TAGS[..]),
            (Arch::Wormhole, _) => (78, &WORMHOLE_TAGS[..]),
        };
        names.get(usize::from(self.tag.checked_sub(first)?)).copied()
    }
}

/// From 1 on, of both chip generations.
#[rustfmt::skip]
const TAGS: [&str; 64] = [
    "BOARD_ID_HIGH", "BOARD_ID_LOW", "ASIC_ID", "HARVESTING_STATE", "UPDATE_TELEM_SPEED", "VCORE", "TDP", "TDC", "VDD_LIMITS",
    "THM_LIMIT_SHUTDOWN", "ASIC_TEMPERATURE", "VREG_TEMPERATURE", "BOARD_TEMPERATURE", "AICLK", "AXICLK", "ARCCLK",
    "L2CPUCLK0", "L2CPUCLK1", "L2CPUCLK2", "L2CPUCLK3", "ETH_LIVE_STATUS", "GDDR_STATUS", "GDDR_SPEED", "ETH_FW_VERSION",
    "GDDR_FW_VERSION", "DM_APP_FW_VERSION", "DM_BL_FW_VERSION", "FLASH_BUNDLE_VERSION", "CM_FW_VERSION", "L2CPU_FW_VERSION",
    "FAN_SPEED", "TIMER_HEARTBEAT", "TELEM_ENUM_COUNT", "ENABLED_TENSIX_COL", "ENABLED_ETH", "ENABLED_GDDR", "ENABLED_L2CPU",
    "PCIE_USAGE", "INPUT_CURRENT", "NOC_TRANSLATION", "FAN_RPM", "GDDR_0_1_TEMP", "GDDR_2_3_TEMP", "GDDR_4_5_TEMP",
    "GDDR_6_7_TEMP", "GDDR_0_1_CORR_ERRS", "GDDR_2_3_CORR_ERRS", "GDDR_4_5_CORR_ERRS", "GDDR_6_7_CORR_ERRS",
    "GDDR_UNCORR_ERRS", "MAX_GDDR_TEMP", "ASIC_LOCATION", "BOARD_POWER_LIMIT", "INPUT_POWER", "TDC_LIMIT_MAX",
    "THM_LIMIT_THROTTLE", "FW_BUILD_DATE", "TT_FLASH_VERSION", "ENABLED_TENSIX_ROW", "THERM_TRIP_COUNT", "ASIC_ID_HIGH",
    "ASIC_ID_LOW", "AICLK_LIMIT_MAX", "TDP_LIMIT_MAX",
];

/// From 65 on.
#[rustfmt::skip]
const BLACKHOLE_TAGS: [&str; 16] = [
    "AICLK_ARB_MIN", "AICLK_ARB_MAX", "ENABLED_MIN_ARB", "ENABLED_MAX_ARB", "AICLK_PPM_INFO", "HOST_AICLK_LIMIT",
    "SMBUS_ERRORS", "GDDR_MRISC_NOC2AXI_PORT", "GDDR_WEST_IO_POWER", "GDDR_EAST_IO_POWER", "KERNEL_THROTTLER",
    "NOP_START_COUNT", "NOP_ON_DURATION", "FW_CAPABILITIES_0", "FW_ACTIVE_CONFIG_0", "FLASH_JEDEC_ID",
];

/// From 78 on.
const WORMHOLE_TAGS: [&str; 4] = ["FAN_2_SPEED", "FAN_2_RPM", "FAN_3_SPEED", "FAN_3_RPM"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_another_name_on_the_other_generation() {
        let names = |tag| [Arch::Wormhole, Arch::Blackhole].map(|arch| TelemetryTag { tag, value: 0 }.name(arch));
        assert_eq!(names(0), [None, None]);
        for (tag, name) in [(1, "BOARD_ID_HIGH"), (22, "GDDR_STATUS"), (54, "INPUT_POWER"), (64, "TDP_LIMIT_MAX")] {
            assert_eq!(names(tag), [Some(name); 2]);
        }
        for (tag, on_wormhole, on_blackhole) in [
            (65, None, Some("AICLK_ARB_MIN")),
            (78, Some("FAN_2_SPEED"), Some("FW_CAPABILITIES_0")),
            (80, Some("FAN_3_SPEED"), Some("FLASH_JEDEC_ID")),
            (81, Some("FAN_3_RPM"), None),
            (u16::MAX, None, None),
        ] {
            assert_eq!(names(tag), [on_wormhole, on_blackhole]);
        }
    }
}
