//! In which state a device is, decided from what one reading of it gave, and the reason in words.

use crate::dir::Trouble;
use model::{Device, State};
use std::time::{Duration, Instant};

/// A heartbeat that does not change for this long has stopped. It counts up ten times a second.
const STOPPED_AFTER: Duration = Duration::from_secs(3);

/// The firmware's heartbeat, over several samples.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// The last value, and when it was first read.
    last: Option<(u32, Instant)>,
    /// Whether it was seen to change, less than three seconds ago.
    verified: bool,
}

impl Heartbeat {
    /// Sets whether it is verified, now that it was read. Returns whether it has stopped.
    pub fn take(&mut self, device: &mut Device, now: Instant) -> bool {
        let mut stopped = false;
        match (self.last, device.heartbeat) {
            (Some((value, since)), Some(beat)) if value == beat => {
                stopped = now - since >= STOPPED_AFTER;
                self.verified &= !stopped;
            }
            (last, beat) => {
                self.verified = last.is_some() && beat.is_some();
                self.last = beat.map(|beat| (beat, now));
            }
        }
        device.heartbeat_verified = device.heartbeat.map(|_| self.verified);
        stopped
    }
}

/// Whether the chip answers nothing: its PCI config space is all-ones, or most of its readings are. One alone is a wrong value.
pub(crate) fn is_unresponsive(trouble: &Trouble) -> bool {
    trouble.bus_is_dead || (trouble.all_ones >= 3 && trouble.all_ones > trouble.values)
}

/// Whether readings came, and nothing else.
pub(crate) fn is_clear(trouble: &Trouble) -> bool {
    trouble.values > 0 && trouble.no_data + trouble.all_ones == 0 && !trouble.removed && trouble.faults.is_empty()
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
        State::Hung if is_unresponsive(trouble) => Some("PCIe not responding (most readings are all-ones)"),
        State::NoTelemetry => Some("no telemetry: the firmware has published none (it is booting, or has failed)"),
        State::Hung => Some("firmware heartbeat stopped"),
        State::Resetting => Some("reset in progress"),
        State::Lost => Some("device was removed while it was read"),
        _ => None,
    }
}

/// Whether what was read once still holds: it may change with a reset.
pub(crate) fn is_unchanged(known: &Device, now: &Device, trouble: &Trouble) -> bool {
    let restarted = matches!((known.heartbeat, now.heartbeat), (Some(then), Some(now)) if now < then);
    known.state == State::Ok && trouble.no_data == 0 && !trouble.removed && !restarted
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
        let mut seen = |beat, milliseconds| {
            let mut device = Device { heartbeat: beat, ..Device::new(DeviceId::Local(0)) };
            let stopped = heartbeat.take(&mut device, start + Duration::from_millis(milliseconds));
            (stopped, device.heartbeat_verified)
        };
        assert_eq!(seen(Some(5), 0), (false, Some(false)), "one reading proves nothing");
        assert_eq!([seen(Some(5), 2999), seen(Some(5), 3000)], [(false, Some(false)), (true, Some(false))]);
        assert_eq!([seen(Some(6), 3001), seen(Some(6), 6000)], [(false, Some(true)); 2]);
        assert_eq!(seen(Some(6), 6001), (true, Some(false)));
        assert_eq!([seen(None, 9000), seen(Some(6), 9001)], [(false, None), (false, Some(false))]);
    }
}
