//! Events as facts. A black box keeps events whole when its snapshots are far apart, so they may be all that is left of a change.

use super::cause::Cause;
use crate::limit_events::title_in_text;
use model::figure::device::{ASIC_TEMP, DRAM_USED};
use model::{DeviceId, Event, State};

/// What an event means for the device that it is about. Only texts that ttmon itself has made are understood.
pub fn cause(event: &Event) -> Option<(Cause, DeviceId)> {
    let device = event.device.clone().filter(|_| event.kernel.is_none())?;
    let said = event.text.strip_prefix(&format!("device {device}"))?;
    let cause = match changed_state(said) {
        Some(state) => Cause::of_state(state)?,
        None if said.starts_with(" disappeared") => Cause::Lost,
        None if said.starts_with(" was reset ") => Cause::Reset,
        None if said.starts_with(" shut down at critical temperature") => Cause::ThermalTrip,
        None if is_critical(said, &title_in_text(&ASIC_TEMP)) => Cause::Heat,
        None if is_throttled(said) => Cause::Throttled,
        None if is_critical(said, &title_in_text(&DRAM_USED)) => Cause::MemoryFull,
        None if said.starts_with(": Ethernet ") && said.ends_with(" no longer up") => Cause::LinkDown,
        None if said.starts_with(": PCIe link degraded") => Cause::SlowLink,
        None => return None,
    };
    Some((cause, device))
}

/// Whether a device is well again.
pub fn recovered(event: &Event) -> Option<DeviceId> {
    let device = event.device.clone()?;
    let said = event.text.strip_prefix(&format!("device {device}"))?;
    (changed_state(said) == Some(State::Ok)).then_some(device)
}

/// `: ok → hung (…)`
fn changed_state(said: &str) -> Option<State> {
    let (was, is) = said.strip_prefix(": ")?.split_once(" → ")?;
    State::named(was)?;
    State::named(is.split_once(" (").map_or(is, |(is, _)| is))
}

/// `: temperature critical: 86.1 °C of 90.0 °C`
fn is_critical(said: &str, title: &str) -> bool {
    let said = said.strip_prefix(": ").and_then(|said| said.strip_prefix(title));
    said.is_some_and(|said| said.starts_with(" critical: ") || said.starts_with(" full: "))
}

/// `: clock 900 of 1350 MHz: limited by temperature (90 of 90 °C)`
fn is_throttled(said: &str) -> bool {
    use model::ClockLimiter::{DopplerCritical, GddrTemperature, Temperature};
    let by = said.strip_prefix(": clock ").and_then(|said| said.split_once(": limited by "));
    let begins = |limiter: model::ClockLimiter| by.is_some_and(|(_, by)| by.starts_with(limiter.name()));
    [Temperature, GddrTemperature, DopplerCritical].into_iter().any(begins)
}
