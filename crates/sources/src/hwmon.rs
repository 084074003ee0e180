//! Temperature, power, voltage, current and fan speed from the driver's hwmon node.
//!
//! Reads `/sys/class/tenstorrent/tenstorrent!<N>/device/hwmon/hwmon*/`. Units are the hwmon ABI's: m°C, µW, mV, mA, rpm.

use crate::dir::{Dir, Trouble, decimal};
use model::{Amperes, Celsius, Device, Rpm, Volts, Watts};

/// The node of a PCI function. Old drivers leave a dead one behind at each reset: the newest counts.
pub(crate) fn find(pci: &Dir) -> Option<Dir> {
    let mut newest = None;
    let listed = pci.list_in("hwmon", |name| {
        let number = name.to_str().and_then(|name| name.strip_prefix("hwmon")).and_then(decimal);
        newest = newest.max(number);
    });
    listed.ok()?;
    pci.open_dir(format!("hwmon/hwmon{}", newest?)).ok()
}

/// What changes all the time.
pub(crate) fn readings(dir: &Dir, device: &mut Device, trouble: &mut Trouble) {
    device.asic_temp = temperature(dir, trouble);
    device.power = dir.number("power1_input", Some(DEAD_MEGA), WATTS, trouble).map(Watts::from_microwatts);
    device.fan = fan(dir, trouble);
}

/// Voltage and current, and the limit of power.
pub(crate) fn quiet(dir: &Dir, device: &mut Device, trouble: &mut Trouble) {
    // Firmware 19.11 and later lets it be changed at any time.
    device.power_max = dir.number("power1_max", Some(DEAD_MEGA), WATTS, trouble).map(Watts::from_microwatts);
    device.vcore = dir.number("in0_input", Some(DEAD), VOLTS, trouble).map(Volts::from_millivolts);
    device.current = dir.number("curr1_input", Some(DEAD_KILO), AMPERES, trouble).map(Amperes::from_milliamperes);
}

/// What stays as the board and its firmware set it.
pub(crate) fn limits(dir: &Dir, device: &mut Device, trouble: &mut Trouble) {
    let celsius = |value| Celsius::from_millidegrees(value as i64);
    device.asic_temp_max = dir.number("temp1_max", Some(DEAD_KILO), 0..=150_000, trouble).map(celsius);
    device.vcore_max = dir.number("in0_max", Some(65_535), VOLTS, trouble).map(Volts::from_millivolts);
    device.current_max = dir.number("curr1_max", Some(DEAD_KILO), AMPERES, trouble).map(Amperes::from_milliamperes);
}

// What the driver's arithmetic makes of a register that reads all-ones, in 32 bits.
const DEAD: u64 = u32::MAX as u64;
const DEAD_KILO: u64 = 4_294_966_296;
const DEAD_MEGA: u64 = 4_293_967_296;
const DEAD_TEMPERATURE: u64 = 65_535_999;

const WATTS: std::ops::RangeInclusive<u64> = 0..=999_999_999;
const VOLTS: std::ops::RangeInclusive<u64> = 1..=1_999;
const AMPERES: std::ops::RangeInclusive<u64> = 0..=999_999;

/// The firmware's number is signed, 16 bits before the point; the driver prints it as if it were not.
fn temperature(dir: &Dir, trouble: &mut Trouble) -> Option<Celsius> {
    let raw = dir.number("temp1_input", Some(DEAD_TEMPERATURE), 0..=u64::MAX, trouble)?;
    let value = if (32_768_000..65_536_000).contains(&raw) { raw as i64 - 65_536_000 } else { raw.try_into().ok()? };
    if (-40_000..=150_000).contains(&value) {
        return Some(Celsius::from_millidegrees(value));
    }
    trouble.add(&dir.path_of("temp1_input"), format_args!("implausible value {raw}"));
    None
}

/// All-ones is not a dead chip here: the firmware says that it controls no fan.
fn fan(dir: &Dir, trouble: &mut Trouble) -> Option<Rpm> {
    let value = dir.number("fan1_input", None, 0..=DEAD, trouble)?;
    match value {
        DEAD => None,
        0..30_000 => Some(Rpm(value as u32)),
        _ => {
            trouble.add(&dir.path_of("fan1_input"), format_args!("implausible value {value}"));
            None
        }
    }
}
