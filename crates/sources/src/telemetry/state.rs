//! In which state a device is, decided from what one reading of it gave, and the reason in words.

use crate::dir::Trouble;
use model::{Device, State};
use std::time::{Duration, Instant};

/// A heartbeat that does not change for this long has stopped. It counts up ten times a second.
const STOPPED_AFTER: Duration = Duration::from_secs(3);

/// The firmware's heartbeat, over several samples.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat(Option<(u32, Instant)>);

impl Heartbeat {
    /// Whether it has stopped, now that it was read.
    pub fn has_stopped(&mut self, beat: Option<u32>, now: Instant) -> bool {
        match (self.0, beat) {
            (Some((value, since)), Some(beat)) if value == beat => now - since >= STOPPED_AFTER,
            (_, beat) => {
                self.0 = beat.map(|beat| (beat, now));
                false
            }
        }
    }
}

/// Whether the chip answers nothing: its PCI config space is all-ones, or most of its readings are. One alone is a wrong value.
pub(crate) fn is_unresponsive(trouble: &Trouble) -> bool {
    trouble.bus_is_dead || (trouble.all_ones >= 3 && trouble.all_ones > trouble.values)
}

pub(crate) fn decide(device: &Device, trouble: &Trouble, heartbeat_stopped: bool) -> State {
    // A single attribute may lack its tag; a reset silences the clocks and sensors all at once.
    let is_silenced = trouble.no_data > 0 && device.aiclk.is_none() && device.asic_temp.is_none();
    // Not even the link answers: the folder is that of a device that was removed.
    let nothing_answers = trouble.answers + trouble.no_data == 0;
    if trouble.removed {
        State::Lost
    } else if is_unresponsive(trouble) {
        State::Hung
    } else if nothing_answers {
        State::Lost
    } else if is_silenced {
        State::Resetting
    } else if heartbeat_stopped {
        State::Hung
    } else if trouble.values == 0 {
        State::NoTelemetry
    } else {
        State::Ok
    }
}

/// Why a device is not ok.
pub(crate) fn reason(state: State, trouble: &Trouble) -> Option<&'static str> {
    match state {
        State::Hung if trouble.bus_is_dead => Some("PCIe not responding (config space is all-ones)"),
        State::Hung if is_unresponsive(trouble) => Some("PCIe not responding (all readings are all-ones)"),
        State::NoTelemetry => Some("no telemetry: the firmware has published none (it is booting, or has failed)"),
        State::Hung => Some("firmware heartbeat stopped"),
        State::Resetting => Some("reset in progress"),
        State::Lost => Some("device was removed while it was read"),
        _ => None,
    }
}

/// Whether what was read once still holds: it may change with a reset, and comes late on a chip that boots.
pub(crate) fn is_unchanged(known: &Device, now: &Device, trouble: &Trouble) -> bool {
    let restarted = matches!((known.heartbeat, now.heartbeat), (Some(then), Some(now)) if now < then);
    let limits_came = known.asic_temp_max.is_some() || now.asic_temp.is_none();
    known.state == State::Ok
        && known.serial.is_some()
        && limits_came
        && trouble.no_data == 0
        && !trouble.removed
        && !restarted
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeviceId, Megahertz};

    fn state(trouble: Trouble, heartbeat_stopped: bool) -> &'static str {
        let device = Device { aiclk: Some(Megahertz(800)), ..Device::new(DeviceId::Local(0)) };
        decide(&device, &trouble, heartbeat_stopped).name()
    }

    #[test]
    fn a_state_follows_from_the_readings() {
        let answering = || Trouble { answers: 9, values: 9, ..Trouble::default() };
        assert_eq!(state(answering(), false), "ok");
        assert_eq!(state(answering(), true), "hung");
        assert_eq!(state(Trouble { all_ones: 3, values: 2, ..answering() }, false), "hung");
        assert_eq!(state(Trouble { all_ones: 3, values: 4, ..answering() }, false), "ok", "some values are wrong");
        assert_eq!(state(Trouble { bus_is_dead: true, ..answering() }, false), "hung");
        assert_eq!(state(Trouble { values: 0, ..answering() }, false), "no telemetry");
        assert_eq!(state(Trouble { removed: true, bus_is_dead: true, ..answering() }, true), "lost");
        assert_eq!(state(Trouble::default(), false), "lost", "nothing answers");
        assert_eq!(state(Trouble { no_data: 1, ..answering() }, false), "ok", "one tag is missing");
        let silenced = Trouble { no_data: 9, ..answering() };
        assert_eq!(decide(&Device::new(DeviceId::Local(0)), &silenced, true), State::Resetting);
    }

    #[test]
    fn a_heartbeat_has_stopped_after_three_seconds_without_change() {
        let (mut heartbeat, start) = (Heartbeat::default(), Instant::now());
        let mut stopped = |beat, milliseconds| heartbeat.has_stopped(beat, start + Duration::from_millis(milliseconds));
        assert!(!stopped(Some(5), 0) && !stopped(Some(5), 2999) && stopped(Some(5), 3000));
        assert!(!stopped(Some(6), 3001) && !stopped(None, 9000) && !stopped(Some(6), 9001));
    }
}
