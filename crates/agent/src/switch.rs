//! The switch: `TTMON_AGENT`.

use std::ffi::OsStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Whether `TTMON_AGENT` lets us do anything at all, asked at the first call.
#[inline]
pub fn is_on() -> bool {
    static STATE: AtomicU8 = AtomicU8::new(0);
    match STATE.load(Relaxed) {
        0 => ask(&STATE),
        state => state == 1,
    }
}

#[cold]
fn ask(state: &AtomicU8) -> bool {
    let on = !std::env::var_os("TTMON_AGENT").is_some_and(|value| means_off(&value));
    state.store(if on { 1 } else { 2 }, Relaxed);
    on
}

/// Whether `TTMON_AGENT` lets us read from a device that the process has open, as `ttmon run` does.
pub fn may_read() -> bool {
    static MAY_READ: OnceLock<bool> = OnceLock::new();
    *MAY_READ.get_or_init(|| std::env::var_os("TTMON_AGENT").is_some_and(|value| means_reads(&value)))
}

/// Whether `TTMON_TIMELINE` asks for every single record, as `ttmon run --timeline` does.
#[cold]
pub fn wants_timeline() -> bool {
    std::env::var_os("TTMON_TIMELINE").is_some_and(|value| !value.is_empty() && !means_off(&value))
}

fn means_reads(value: &OsStr) -> bool {
    value.eq_ignore_ascii_case("reads")
}

fn means_off(value: &OsStr) -> bool {
    ["off", "0", "no", "false"].iter().any(|off| value.eq_ignore_ascii_case(off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_switched_off_in_plain_words() {
        let off = |value: &str| means_off(value.as_ref());
        assert!(off("off") && off("OFF") && off("0") && off("no") && off("False"));
        assert!(!off("") && !off("on") && !off("1") && !off("reads"));
    }

    #[test]
    fn it_reads_from_a_device_only_if_it_is_told_to() {
        let reads = |value: &str| means_reads(value.as_ref());
        assert!(reads("reads") && reads("READS"));
        assert!(!reads("") && !reads("on") && !reads("1") && !reads("off"));
    }
}
