//! The switch: `TTMON_AGENT`.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Whether `TTMON_AGENT` lets us do anything at all, asked at the first call.
#[inline]
pub fn is_on() -> bool {
    static STATE: AtomicU8 = AtomicU8::new(0);
    match STATE.load(Relaxed) {
        0 => {
            let on = !std::env::var_os("TTMON_AGENT").is_some_and(|value| means_off(&value));
            STATE.store(if on { 1 } else { 2 }, Relaxed);
            on
        }
        state => state == 1,
    }
}

fn means_off(value: &std::ffi::OsStr) -> bool {
    ["off", "0", "no", "false"].iter().any(|off| value.eq_ignore_ascii_case(off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_switched_off_in_plain_words() {
        let off = |value: &str| means_off(value.as_ref());
        assert!(off("off") && off("OFF") && off("0") && off("no") && off("False"));
        assert!(!off("") && !off("on") && !off("1"));
    }
}
