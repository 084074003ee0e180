//! The registers of a deep read under the names of the official program, and what it makes of them.
//!
//! On Blackhole it reads the same table. On Wormhole it reads an older structure, by way of a message to the firmware. The words of
//! that one are put together from the table, as far as the table has what is in them: limits are in the high half of a word.

use super::{BLACKHOLE_TAGS, WORMHOLE_TAGS, known};
use crate::json::{JsonNode, Object};
use model::{Arch, Deep, Device, TelemetryTag};

/// A word for each register that is known.
pub struct Registers {
    arch: Arch,
    words: Vec<(&'static str, u32)>,
}

/// From this bundle on, the status of the memory has the self test of each channel.
const BUNDLE_WITH_SELF_TEST: u32 = 0x1307_0000;

impl Registers {
    /// None where there is no deep read.
    pub fn of(device: &Device) -> Option<Registers> {
        let (arch, deep) = (device.arch?, device.deep.as_deref().filter(|deep| !deep.tags.is_empty())?);
        let words = match arch {
            Arch::Blackhole => {
                BLACKHOLE_TAGS.iter().filter_map(|name| Some((*name, tag(deep, number_of(name)?)?))).collect()
            }
            Arch::Wormhole => older_words(deep),
        };
        Some(Registers { arch, words })
    }

    pub fn get(&self, name: &str) -> Option<u32> {
        self.words.iter().find(|(known, _)| *known == name).map(|(_, word)| *word)
    }

    fn low(&self, name: &str) -> Option<u32> {
        self.get(name).map(|word| word & 0xFFFF)
    }

    fn high(&self, name: &str) -> Option<u32> {
        self.get(name).map(|word| word >> 16)
    }

    pub fn smbus(&self) -> Object {
        let names = if self.arch == Arch::Wormhole { &WORMHOLE_TAGS[..] } else { &BLACKHOLE_TAGS[..] };
        Object(names.iter().map(|name| (*name, self.get(name).map(|word| format!("{word:#x}")).into())).collect())
    }

    /// Whether all channels are trained. On Blackhole one may be switched off. Unknown without a word.
    pub fn dram_status(&self) -> Option<bool> {
        let status = self.get("DDR_STATUS")?;
        Some(match self.arch {
            Arch::Wormhole => status & 0xFF_FFFF == 0x22_2222,
            Arch::Blackhole if !self.has_self_test() => status == 0x5555,
            Arch::Blackhole => {
                let of_channel = |channel: u32| (status >> (2 * channel) & 0b11, status >> (16 + 2 * channel) & 0b11);
                let passed = (0..8).filter(|channel| of_channel(*channel) == (1, 1)).count();
                let off = (0..8).filter(|channel| of_channel(*channel) == (0, 0)).count();
                passed + off == 8 && off <= 1
            }
        })
    }

    pub fn dram_speed(&self) -> Option<String> {
        match self.arch {
            Arch::Blackhole => self.get("DDR_SPEED").map(|speed| match speed % 1000 {
                0 => format!("{}G", speed / 1000),
                _ => speed.to_string(),
            }),
            Arch::Wormhole => {
                let code = self.get("DDR_STATUS")? >> 24;
                SPEEDS.get(code as usize).map(|speed| format!("{}G", speed / 1000))
            }
        }
    }

    pub fn telemetry(&self) -> Object {
        let (temperature, heartbeat, fan) = match self.arch {
            Arch::Blackhole => {
                let temperature = self.get("ASIC_TEMPERATURE").map(|word| f64::from(word as i32) / 65_536.0);
                (temperature, self.get("TIMER_HEARTBEAT").map(|beat| beat / 6), self.low("FAN_RPM").or(Some(0)))
            }
            Arch::Wormhole => {
                let temperature = self.low("ASIC_TEMPERATURE").map(|word| f64::from(word) / 16.0);
                (temperature, self.get("ARC3_HEALTH").map(|beat| beat / 5), self.low("FAN_SPEED"))
            }
        };
        let one_decimal = |word: Option<u32>| known(word.map(|word| format!("{:5.1}", f64::from(word))));
        Object(vec![
            ("voltage", known(self.get("VCORE").map(|word| format!("{:4.2}", f64::from(word) / 1000.0)))),
            ("current", one_decimal(self.low("TDC"))),
            ("power", one_decimal(self.low("TDP"))),
            ("board_power", one_decimal(self.get("INPUT_POWER"))),
            ("aiclk", known(self.low("AICLK").map(|clock| format!("{clock:4}")))),
            ("asic_temperature", known(temperature.map(|degrees| format!("{degrees:4.1}")))),
            ("fan_speed", known(fan)),
            ("heartbeat", known(heartbeat)),
        ])
    }

    pub fn limits(&self) -> Object {
        let volts = |word: Option<u32>| word.map(|word| format!("{:4.2}", f64::from(word) / 1000.0));
        let whole = |word: Option<u32>, width: usize| word.map(|word| format!("{word:width$}"));
        let [power, current, clock, trip, throttle] = match self.arch {
            Arch::Wormhole => [
                self.high("TDP"),
                self.high("TDC"),
                self.high("AICLK"),
                self.high("THM_LIMITS"),
                self.low("THM_LIMITS"),
            ],
            Arch::Blackhole => {
                ["TDP_LIMIT_MAX", "TDC_LIMIT_MAX", "AICLK_LIMIT_MAX", "THM_LIMIT_THROTTLE", "THM_LIMIT_SHUTDOWN"]
                    .map(|name| self.get(name))
            }
        };
        // What is missing is a number there, and what is known a text.
        let limit = |text: Option<String>| text.map_or_else(|| 0.into(), JsonNode::from);
        Object(vec![
            ("vdd_min", limit(volts(self.low("VDD_LIMITS")))),
            ("vdd_max", limit(volts(self.high("VDD_LIMITS")))),
            ("tdp_limit", limit(whole(power, 3))),
            ("tdc_limit", limit(whole(current, 3))),
            ("asic_fmax", limit(whole(clock, 4))),
            ("therm_trip_l1_limit", limit(whole(trip, 2))),
            ("thm_limit", limit(whole(throttle, 2))),
            ("bus_peak_limit", limit(None)),
            ("fan_rpm_limit", limit(None)),
            ("board_power_limit", limit(whole(self.get("BOARD_POWER_LIMIT"), 3))),
        ])
    }

    pub fn firmwares(&self) -> Object {
        let version =
            |name: &str| known(self.get(name).map(|word| word.to_be_bytes().map(|byte| byte.to_string()).join(".")));
        let is_wormhole = self.arch == Arch::Wormhole;
        let ethernet = |word: u32| match is_wormhole {
            true => format!("{}.{}.{}", word >> 16 & 0xFF, word >> 12 & 0xF, word & 0xFFF),
            false => format!("{}.{}.{}", word >> 16 & 0xFF, word >> 8 & 0xFF, word & 0xFF),
        };
        let date = |word: u32| format!("{:04}-{:02}-{:02}", (word >> 28) + 2020, word >> 24 & 0xF, word >> 16 & 0xFF);
        let is_written = |word: &u32| *word != 0 && *word != u32::MAX;
        let gddr = self.get("GDDR_FW_VERSION").filter(|word| !is_wormhole && is_written(word));
        Object(vec![
            ("fw_bundle_version", version(if is_wormhole { "FW_BUNDLE_VERSION" } else { "FLASH_BUNDLE_VERSION" })),
            ("tt_flash_version", version("TT_FLASH_VERSION")),
            ("cm_fw", version(if is_wormhole { "ARC0_FW_VERSION" } else { "CM_FW_VERSION" })),
            ("cm_fw_date", known(self.get("WH_FW_DATE").filter(is_written).map(date))),
            ("eth_fw", known(self.get("ETH_FW_VERSION").map(ethernet))),
            ("dm_bl_fw", version("DM_BL_FW_VERSION")),
            ("dm_app_fw", version("DM_APP_FW_VERSION")),
            ("gddr_fw", known(gddr.map(|word| format!("{}.{}", word >> 16, word & 0xFFFF)))),
        ])
    }

    pub fn gddr(&self) -> Object {
        let channels = model::figure::Dimension::GddrChannel.of_chip(self.arch) as u32;
        Object(vec![
            ("speed", known(self.dram_speed())),
            ("max_temp", known(self.get("MAX_GDDR_TEMP"))),
            ("enabled_mask", known(self.get("ENABLED_GDDR").map(|mask| format!("{mask:#x}")))),
            ("channels", JsonNode::List((0..channels).map(|channel| self.channel(channel)).collect())),
        ])
    }

    fn channel(&self, channel: u32) -> Object {
        let status = self.get("DDR_STATUS");
        let (is_enabled, training, self_test) = match self.arch {
            Arch::Wormhole => {
                let training = match status.map(|status| status >> (4 * channel) & 0xF) {
                    Some(2) => PASS,
                    Some(1) => FAIL,
                    _ => NOT_RUN,
                };
                (true, training, NOT_RUN)
            }
            Arch::Blackhole => {
                let outcome = |shift: u32| match status.map(|status| status >> (shift + 2 * channel) & 0b11) {
                    Some(0b10 | 0b11) => FAIL,
                    Some(0b01) => PASS,
                    _ => NOT_RUN,
                };
                let (training, self_test) = (outcome(0), if self.has_self_test() { outcome(16) } else { NOT_RUN });
                let did_nothing =
                    status.is_some() && self.has_self_test() && (training, self_test) == (NOT_RUN, NOT_RUN);
                let is_enabled = self.get("ENABLED_GDDR").is_none_or(|mask| mask >> channel & 1 != 0) && !did_nothing;
                (is_enabled, training, self_test)
            }
        };
        // Two channels share a word: of its bytes the lower two are those of the even one.
        let pair = (channel / 2) as usize;
        let is_read = is_enabled && self.arch == Arch::Blackhole;
        let byte = |names: [&str; 4], place: u32| {
            self.get(names[pair]).filter(|_| is_read).map(|word| word >> (channel % 2 * 16 + 8 * place) & 0xFF)
        };
        let bit =
            |place: u32| self.get("GDDR_UNCORR_ERRS").filter(|_| is_read).map(|word| word >> (2 * channel + place) & 1);
        Object(vec![
            ("channel", u64::from(channel).into()),
            ("harvested", (!is_enabled).into()),
            ("enabled", is_enabled.into()),
            ("training", training.into()),
            ("bist", self_test.into()),
            ("temp_top", known(byte(TEMPERATURES, 1))),
            ("temp_bottom", known(byte(TEMPERATURES, 0))),
            ("corr_rd", known(byte(CORRECTED, 0))),
            ("corr_wr", known(byte(CORRECTED, 1))),
            ("uncorr_rd", known(bit(0))),
            ("uncorr_wr", known(bit(1))),
        ])
    }

    fn has_self_test(&self) -> bool {
        self.get("FLASH_BUNDLE_VERSION").is_some_and(|bundle| bundle >= BUNDLE_WITH_SELF_TEST)
    }
}

const PASS: &str = "pass";
const FAIL: &str = "fail";
const NOT_RUN: &str = "n/a";
const TEMPERATURES: [&str; 4] = ["GDDR_0_1_TEMP", "GDDR_2_3_TEMP", "GDDR_4_5_TEMP", "GDDR_6_7_TEMP"];
const CORRECTED: [&str; 4] = ["GDDR_0_1_CORR_ERRS", "GDDR_2_3_CORR_ERRS", "GDDR_4_5_CORR_ERRS", "GDDR_6_7_CORR_ERRS"];

fn tag(deep: &Deep, number: u16) -> Option<u32> {
    deep.tags.iter().find(|entry| entry.tag == number).map(|entry| entry.value)
}

/// The number of a tag that the official program has its own name for, or the firmware's.
fn number_of(name: &str) -> Option<u16> {
    match name {
        "DDR_STATUS" => Some(22),
        "DDR_SPEED" => Some(23),
        "TELEMETRY_ENUM_COUNT" => Some(33),
        // Where its own list ends. Newer firmware has another tag there, which it then prints.
        "NUMBER_OF_TAGS" => Some(69),
        _ => (1..=68).find(|tag| TelemetryTag { tag: *tag, value: 0 }.name(Arch::Blackhole) == Some(name)),
    }
}

/// Mbit/s by the code of the older structure.
const SPEEDS: [u32; 5] = [16_000, 14_000, 12_000, 10_000, 8_000];

/// The words of Wormhole's older structure.
fn older_words(deep: &Deep) -> Vec<(&'static str, u32)> {
    let tag = |number| tag(deep, number);
    let halves = |high: u16, low: u16| Some(tag(high).unwrap_or(0) << 16 | tag(low)? & 0xFFFF);
    let status = || {
        // Of a channel, 1 becomes 2 for passed, 3 becomes 1 for failed.
        let (status, speed) = (tag(22)?, tag(23)?);
        let code = SPEEDS.iter().position(|known| *known == speed)? as u32;
        let channels = (0..6).fold(0, |all, channel| {
            let outcome = match status >> (2 * channel) & 0b11 {
                1 => 2,
                3 => 1,
                _ => 0,
            };
            all | outcome << (4 * channel)
        });
        Some(code << 24 | channels)
    };
    let words = [
        ("BOARD_ID_HIGH", tag(1)),
        ("BOARD_ID_LOW", tag(2)),
        ("ARC0_FW_VERSION", tag(29)),
        ("ETH_FW_VERSION", tag(24)),
        ("DM_BL_FW_VERSION", tag(27)),
        ("DM_APP_FW_VERSION", tag(26)),
        ("DDR_STATUS", status()),
        ("ARC3_HEALTH", tag(32)),
        // The speeds of two fans, which newer firmware has in a place of their own.
        ("FAN_SPEED", tag(31).filter(|word| *word > 100).or(tag(41))),
        ("AICLK", halves(63, 14)),
        ("AXICLK", tag(15)),
        ("ARCCLK", tag(16)),
        ("VCORE", tag(6)),
        ("ASIC_TEMPERATURE", tag(11).map(|word| word >> 12 & 0xFFFF)),
        ("TDP", halves(64, 7)),
        ("TDC", halves(55, 8)),
        ("VDD_LIMITS", tag(9)),
        ("THM_LIMITS", halves(10, 56)),
        ("WH_FW_DATE", tag(57)),
        ("TT_FLASH_VERSION", tag(58)),
        ("ETH_LIVE_STATUS", tag(21)),
        ("FW_BUNDLE_VERSION", tag(28)),
    ];
    words.into_iter().filter_map(|(name, word)| Some((name, word?))).collect()
}
