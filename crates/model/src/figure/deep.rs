//! The figures of a device that only a deep read knows, one row each.

use super::{DEEP, Dimension, Figure, Freshness, Judge, Metric, Section, Value, computed, figures};
use crate::{ClockDecision, ClockLimiter, ClockRaiser, DeepUnavailable, Device, SelfTest, throttle, topology};

/// Access to a field of the deep read, which is there only where one was asked for.
macro_rules! deep {
    ($field:ident) => {
        (
            |device, _| device.deep.as_ref()?.$field.as_ref().map($crate::figure::FieldValue::to_value),
            |device, _, value| {
                let value = $crate::figure::FieldValue::from_value(value);
                if value.is_some() || device.deep.is_some() {
                    device.deep.get_or_insert_default().$field = value;
                }
            },
        )
    };
    ($field:ident []) => {
        (
            |device, label| device.deep.as_ref()?.$field.get(label)?.as_ref().map($crate::figure::FieldValue::to_value),
            |device, label, value| {
                let value = $crate::figure::FieldValue::from_value(value);
                if value.is_none() && device.deep.is_none() {
                    return;
                }
                let all = &mut device.deep.get_or_insert_default().$field;
                if label >= all.len() && value.is_some() {
                    all.resize(label + 1, None);
                }
                if let Some(place) = all.get_mut(label) {
                    *place = value;
                }
            },
        )
    };
}

figures! {
    /// The figures of deep reads, in the order of reports.
    DEEP_FIGURES: Device;

    with { section: Section::Identity, object: Some(DEEP), freshness: Freshness::Host };

    /// Place of the chip on its board: 1 left and 0 right on a p300, 1 to 8 on a Galaxy tray.
    ASIC_LOCATION("asic_location", "Place on the board", Count, deep!(asic_location));

    with { section: Section::Health, object: Some(DEEP), freshness: Freshness::Host };

    /// How old the last deep read is.
    DEEP_AGE("deep_age_seconds", "Age of the deep read", Seconds, deep!(age_seconds)) {
        metric: Metric::gauge("ttmon_device_deep_age_seconds"),
    };
    /// How often the firmware brings its telemetry up to date.
    TELEMETRY_INTERVAL("telemetry_interval_seconds", "Telemetry interval", Seconds, deep!(telemetry_interval_seconds));
    /// Why there is no deep read, where one was asked for.
    DEEP_UNAVAILABLE("deep_unavailable", "No deep read because", Text, deep!(unavailable)) {
        words: &DeepUnavailable::NAMES,
    };
    /// Errors on the bus between the chip and the board management (Blackhole).
    SMBUS_ERRORS("smbus_errors", "SMBus errors", Count, deep!(smbus_errors)) {
        metric: Metric::gauge("ttmon_device_smbus_errors"), rule: Some("smbus_errors"),
    };

    with { section: Section::Temperature, object: Some(DEEP), freshness: Freshness::Host };

    /// Temperature at which the chip shuts down.
    ASIC_TEMP_SHUTDOWN("asic_temp_shutdown_celsius", "Shutdown temperature", Celsius, deep!(asic_temp_shutdown)) {
        metric: Metric::gauge("ttmon_device_temperature_shutdown_celsius"),
    };
    /// Temperature of the voltage regulator (Wormhole).
    VREG_TEMP("vreg_temp_celsius", "Voltage regulator", Celsius, deep!(vreg_temp)) {
        metric: Metric::gauge("ttmon_device_vreg_temperature_celsius"), rule: Some("vreg_temp"),
    };
    /// Temperature of the board (Wormhole).
    BOARD_TEMP("board_temp_celsius", "Board", Celsius, deep!(board_temp)) {
        metric: Metric::gauge("ttmon_device_board_temperature_celsius"), rule: Some("board_temp"),
    };
    /// Fan speed that the firmware asks for. Absent where it controls no fan.
    FAN_TARGET("fan_target_percent", "Fan target", Percent, deep!(fan_target_percent)) {
        metric: Metric::gauge("ttmon_device_fan_target_ratio"),
    };
    /// Speed of each fan (Wormhole). The driver has no file for it.
    FANS("fans_rpm", "Fan speed", Rpm, deep!(fans_rpm[])) {
        dimension: Some(Dimension::Fan), metric: Metric::gauge("ttmon_device_fan_speed_rpm"),
    };

    with { section: Section::Power, object: Some(DEEP), freshness: Freshness::Host };

    /// Power at the input of the board (Blackhole).
    INPUT_POWER("input_power_watts", "Board input power", Watts, deep!(input_power)) {
        limit: Some(&BOARD_POWER_LIMIT), judge: Judge::Load,
        metric: Metric::gauge("ttmon_device_input_power_watts"), rule: Some("input_power"),
    };
    /// Power limit of the board (Blackhole).
    BOARD_POWER_LIMIT("board_power_limit_watts", "Board power limit", Watts, deep!(board_power_limit)) {
        metric: Metric::gauge("ttmon_device_board_power_limit_watts"),
    };
    /// Lowest core voltage.
    VCORE_MIN("vcore_min_volts", "Core voltage minimum", Volts, deep!(vcore_min));

    with { section: Section::Clock, object: Some(DEEP), freshness: Freshness::Host };

    /// Highest AICLK of the chip.
    AICLK_MAX("aiclk_max_megahertz", "AICLK maximum", Megahertz, deep!(aiclk_max)) {
        metric: Metric::gauge("ttmon_device_aiclk_max_hertz"),
    };
    /// AICLK that the strictest limit allows now (Blackhole).
    AICLK_CEILING("aiclk_ceiling_megahertz", "AICLK ceiling", Megahertz, deep!(aiclk_ceiling)) {
        metric: Metric::gauge("ttmon_device_aiclk_ceiling_hertz"),
    };
    /// Which limit that is (Blackhole).
    AICLK_CEILING_BY("aiclk_ceiling_by", "Ceiling set by", Text, deep!(aiclk_ceiling_by)) {
        words: &ClockLimiter::NAMES, metric: Metric::one_of("ttmon_device_aiclk_ceiling_by", "limit"),
        rule: Some("aiclk_ceiling_by"),
    };
    /// AICLK that is asked for at least (Blackhole).
    AICLK_FLOOR("aiclk_floor_megahertz", "AICLK floor", Megahertz, deep!(aiclk_floor));
    /// Who asks for it (Blackhole).
    AICLK_FLOOR_BY("aiclk_floor_by", "Floor set by", Text, deep!(aiclk_floor_by)) { words: &ClockRaiser::NAMES };
    /// What the firmware set the AICLK by in the end (Blackhole).
    AICLK_DECIDED_BY("aiclk_decided_by", "AICLK decided by", Text, deep!(aiclk_decided_by)) {
        words: &ClockDecision::NAMES,
    };
    /// AICLK limit that the host has set. Absent where it has set none (Blackhole).
    AICLK_HOST_LIMIT("aiclk_host_limit_megahertz", "AICLK limit of the host", Megahertz, deep!(aiclk_host_limit));
    /// Whether the firmware may slow down kernels to save power (Blackhole).
    KERNEL_THROTTLER("kernel_throttler", "Kernel throttler", YesNo, deep!(kernel_throttler)) {
        metric: Metric::gauge("ttmon_device_kernel_throttler"), rule: Some("kernel_throttler"),
    };
    /// AICLK at which the kernel throttler is active. Absent where the firmware decides (Blackhole).
    KERNEL_THROTTLER_CLOCK("kernel_throttler_megahertz", "Kernel throttler at", Megahertz,
        deep!(kernel_throttler_clock));
    /// How often the kernel throttler has started (Blackhole, firmware 19.12 and later).
    KERNEL_THROTTLER_STARTS("kernel_throttler_starts", "Kernel throttler starts", Count,
        deep!(kernel_throttler_starts));
    /// How long the kernel throttler was active in the last interval (Blackhole, firmware 19.12 and later).
    KERNEL_THROTTLER_TIME("kernel_throttler_seconds", "Kernel throttler time", Seconds,
        deep!(kernel_throttler_seconds));
    /// Limits that the firmware may apply to the AICLK (Blackhole).
    AICLK_LIMITS_ENABLED("aiclk_limits_enabled", "AICLK limits enabled", Text, deep!(aiclk_limits_enabled));
    /// What may raise the AICLK (Blackhole).
    AICLK_FLOORS_ENABLED("aiclk_floors_enabled", "AICLK floors enabled", Text, deep!(aiclk_floors_enabled));
    /// Clock of a group of L2CPU cores (Blackhole).
    L2CPU_CLK("l2cpu_clk_megahertz", "L2CPU clock", Megahertz, deep!(l2cpu_clk[])) {
        dimension: Some(Dimension::L2Cpu), metric: Metric::gauge("ttmon_device_l2cpu_clk_hertz"),
    };

    with { section: Section::Gddr, object: Some(DEEP), freshness: Freshness::Host };

    /// Temperature of the hottest GDDR channel (Blackhole).
    GDDR_TEMP("gddr_temp_celsius", "GDDR temperature", Celsius, deep!(gddr_temp)) {
        metric: Metric::gauge("ttmon_device_gddr_temperature_celsius"), rule: Some("gddr_temp"), history: true,
    };
    /// Temperature at the top of a GDDR channel (Blackhole).
    GDDR_TOP_TEMP("gddr_top_temp_celsius", "Temperature top", Celsius, deep!(gddr_top_temp[])) {
        dimension: Some(Dimension::GddrChannel),
        metric: Metric::gauge_by("ttmon_device_gddr_channel_temperature_celsius", ("side", "top")),
        rule: Some("gddr_top_temp"),
    };
    /// Temperature at the bottom of a GDDR channel (Blackhole).
    GDDR_BOTTOM_TEMP("gddr_bottom_temp_celsius", "Temperature bottom", Celsius, deep!(gddr_bottom_temp[])) {
        dimension: Some(Dimension::GddrChannel),
        metric: Metric::gauge_by("ttmon_device_gddr_channel_temperature_celsius", ("side", "bottom")),
        rule: Some("gddr_bottom_temp"),
    };
    /// Whether a GDDR channel is trained. Absent where it is not enabled.
    GDDR_TRAINED("gddr_trained", "Trained", YesNo, deep!(gddr_trained[])) {
        dimension: Some(Dimension::GddrChannel), metric: Metric::gauge("ttmon_device_gddr_trained"),
        rule: Some("gddr_trained"),
    };
    /// Whether the training of a GDDR channel failed.
    GDDR_TRAINING_FAILED("gddr_training_failed", "Training failed", YesNo, deep!(gddr_training_failed[])) {
        dimension: Some(Dimension::GddrChannel), metric: Metric::gauge("ttmon_device_gddr_training_failed"),
        rule: Some("gddr_training_failed"),
    };
    /// How the self test of a GDDR channel ended (Blackhole, firmware 19.7 and later).
    GDDR_SELF_TEST("gddr_self_test", "Self test", Text, deep!(gddr_self_test[])) {
        words: &SelfTest::NAMES, dimension: Some(Dimension::GddrChannel),
    };
    /// Read errors of a GDDR channel that were corrected since its reset. The firmware stops counting at 255 (Blackhole).
    GDDR_CORRECTED_READS("gddr_corrected_reads", "Corrected reads", Count, deep!(gddr_corrected_reads[])) {
        dimension: Some(Dimension::GddrChannel),
        metric: Metric::gauge_by("ttmon_device_gddr_corrected_errors", ("direction", "read")),
        rule: Some("gddr_corrected_reads"),
    };
    /// Write errors of a GDDR channel that were corrected since its reset. The firmware stops counting at 255 (Blackhole).
    GDDR_CORRECTED_WRITES("gddr_corrected_writes", "Corrected writes", Count, deep!(gddr_corrected_writes[])) {
        dimension: Some(Dimension::GddrChannel),
        metric: Metric::gauge_by("ttmon_device_gddr_corrected_errors", ("direction", "write")),
        rule: Some("gddr_corrected_writes"),
    };
    /// Whether a GDDR channel has had a read error since its reset that could not be corrected (Blackhole).
    GDDR_UNCORRECTED_READ("gddr_uncorrected_read", "Uncorrected read", YesNo, deep!(gddr_uncorrected_read[])) {
        dimension: Some(Dimension::GddrChannel),
        metric: Metric::gauge_by("ttmon_device_gddr_uncorrected_error", ("direction", "read")),
        rule: Some("gddr_uncorrected_read"),
    };
    /// Whether a GDDR channel has had a write error since its reset that could not be corrected (Blackhole).
    GDDR_UNCORRECTED_WRITE("gddr_uncorrected_write", "Uncorrected write", YesNo, deep!(gddr_uncorrected_write[])) {
        dimension: Some(Dimension::GddrChannel),
        metric: Metric::gauge_by("ttmon_device_gddr_uncorrected_error", ("direction", "write")),
        rule: Some("gddr_uncorrected_write"),
    };
    /// Speed of a pin of the GDDR memory, in Mbit/s.
    GDDR_SPEED("gddr_megabits_per_second", "Speed per pin (Mbit/s)", Count, deep!(gddr_megabits_per_second)) {
        metric: Metric::gauge("ttmon_device_gddr_megabits_per_second"),
    };
    /// Power of the memory interface in the west of the chip (Blackhole).
    GDDR_WEST_POWER("gddr_west_power_watts", "Interface power west", Watts, deep!(gddr_west_power)) {
        metric: Metric::gauge_by("ttmon_device_gddr_power_watts", ("side", "west")),
    };
    /// Power of the memory interface in the east of the chip (Blackhole).
    GDDR_EAST_POWER("gddr_east_power_watts", "Interface power east", Watts, deep!(gddr_east_power)) {
        metric: Metric::gauge_by("ttmon_device_gddr_power_watts", ("side", "east")),
    };

    with { section: Section::Ethernet, object: Some(DEEP), freshness: Freshness::Host,
        dimension: Some(Dimension::EthernetPort) };

    /// Whether an Ethernet port is enabled (Blackhole).
    ETH_ENABLED("eth_enabled", "Enabled", YesNo, deep!(eth_enabled[]));
    /// Whether the firmware of an Ethernet port runs.
    ETH_HEARTBEAT("eth_heartbeat", "Firmware runs", YesNo, deep!(eth_heartbeat[])) {
        metric: Metric::gauge("ttmon_device_ethernet_heartbeat"),
    };
    /// Whether the link of an Ethernet port is up (firmware 19.9 and later).
    ETH_LINK_UP("eth_link_up", "Link up", YesNo, deep!(eth_link_up[])) {
        metric: Metric::gauge("ttmon_device_ethernet_link_up"), rule: Some("eth_link_up"),
    };
    /// Whether the link of an Ethernet port was trained again (Wormhole, before firmware 19.9).
    ETH_RETRAINED("eth_retrained", "Trained again", YesNo, deep!(eth_retrained[]));

    with { section: Section::Ethernet, object: Some(DEEP), in_json: false, freshness: Freshness::Host };

    /// Links on the board itself that are down: between the chips of an n300 or a p300.
    LINKS_DOWN("links_down", "Links down", Count,
        computed(|device, _| topology::board_links_down(device).map(|count| Value::Whole(count.into())))) {
        metric: Metric::gauge("ttmon_device_ethernet_links_down"), rule: Some("links_down"),
    };
    /// Enabled Ethernet ports whose link is not up. One that is not in use is among them.
    PORTS_NOT_UP("eth_ports_not_up", "Ports not up", Count,
        computed(|device, _| topology::ports_not_up(device).map(|count| Value::Whole(count.into())))) {
        metric: Metric::gauge("ttmon_device_ethernet_ports_not_up"), rule: Some("eth_ports_not_up"),
    };

    with { section: Section::Clock, object: Some(DEEP), freshness: Freshness::Host };

    /// Why the AICLK is held down, in a sentence. Absent where no limit does (Blackhole).
    AICLK_LIMITED("aiclk_limited", "AICLK held down", Text, deep!(aiclk_limited));
    /// Which limit holds the AICLK down now (Blackhole).
    THROTTLED_BY("throttled_by", "Throttled by", Text,
        computed(|device, _| throttle::by(device).map(Value::text))) {
        in_json: false, words: &throttle::WORDS, metric: Metric::one_of("ttmon_device_throttled_by", "limit"),
        rule: Some("throttled_by"),
    };

    with { section: Section::Units, object: Some(DEEP), freshness: Freshness::Host };

    /// Enabled columns of Tensix cores (Blackhole) or rows (Wormhole), and those that were switched off.
    TENSIX_ENABLED("tensix_enabled", "Tensix", Text, deep!(tensix_enabled));
    /// Enabled GDDR channels, and those that were switched off (Blackhole).
    GDDR_ENABLED("gddr_enabled", "GDDR channels", Text, deep!(gddr_enabled));
    /// Enabled groups of L2CPU cores, and those that were switched off (Blackhole).
    L2CPU_ENABLED("l2cpu_enabled", "L2CPU", Text, deep!(l2cpu_enabled));
    /// What each PCIe interface of the chip is used as (Blackhole).
    PCIE_USAGE("pcie_usage", "PCIe interfaces", Text, deep!(pcie_usage));
    /// Whether addresses of cores are translated, so that switched-off ones are skipped.
    NOC_TRANSLATION("noc_translation", "NoC translation", YesNo, deep!(noc_translation));

    with { section: Section::Firmware, object: Some(DEEP), freshness: Freshness::Host };

    /// Version of the chip management firmware.
    FIRMWARE_CM("firmware_cm", "Chip management", Text, deep!(firmware_cm));
    /// Version of the firmware that trains the memory (Blackhole).
    FIRMWARE_GDDR("firmware_gddr", "GDDR", Text, deep!(firmware_gddr));
    /// Version of the firmware of the Ethernet ports.
    FIRMWARE_ETHERNET_PORTS("firmware_ethernet_ports", "Ethernet ports", Text, deep!(firmware_ethernet_ports));
    /// Version of tt-flash that wrote the firmware.
    FIRMWARE_FLASH_TOOL("firmware_flash_tool", "Flashed by tt-flash", Text, deep!(firmware_flash_tool));
    /// When the firmware was built (Wormhole).
    FIRMWARE_BUILD_DATE("firmware_build_date", "Built", Text, deep!(firmware_build_date));
    /// Optional features of the firmware (Blackhole, firmware 19.13 and later).
    FIRMWARE_FEATURES("firmware_features", "Features", Text, deep!(firmware_features));
    /// Optional features that are switched on (Blackhole, firmware 19.13 and later).
    FIRMWARE_FEATURES_ON("firmware_features_on", "Features switched on", Text, deep!(firmware_features_on));
}
