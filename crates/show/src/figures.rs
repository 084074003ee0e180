//! Figures of a device as tables show them, and the tone of each, which follows from the one judgement.

use crate::style::{Glyphs, Tone};
use crate::text::clean;
use model::figure::{Figure, Judge};
use model::{Bytes, Device, DeviceId, Judgement, State};

/// The number or address by which users name a device.
pub fn name(device: &Device, glyphs: &Glyphs) -> String {
    match &device.id {
        DeviceId::NoDriver(_) => glyphs.absent.to_owned(),
        id => id.to_string(),
    }
}

/// The board, or the chip where the board is not known.
pub fn board(device: &Device, glyphs: &Glyphs) -> String {
    let arch = device.arch.map(|arch| arch.name());
    clean(device.board.as_deref().or(arch).unwrap_or(glyphs.absent)).into_owned()
}

/// The PCI address, or the sign for an absent value.
pub fn address(device: &Device, glyphs: &Glyphs) -> String {
    clean(device.pci_address.as_ref().map_or(glyphs.absent, |address| &address.0)).into_owned()
}

/// `Gen5 x16`
pub fn link(device: &Device) -> Option<String> {
    Some(format!("Gen{} x{}", device.pcie.generation?, device.pcie.width?))
}

/// A link that could be better is marked.
pub fn link_tone(device: &Device) -> Tone {
    if device.link_is_degraded() { Tone::Warning } else { Tone::Plain }
}

/// `54/90°C`, `1350MHz`: with its limit, where it has one.
pub fn figure(figure: &Figure<Device>, device: &Device, unit: &str, glyphs: &Glyphs) -> (String, Tone) {
    let text = match (figure.number(device), figure.limit_of(device)) {
        (Some(value), Some(limit)) => rounded(value) + "/" + &rounded(limit) + unit,
        (Some(value), None) => rounded(value) + unit,
        (None, _) => glyphs.absent.to_owned(),
    };
    (text, tone(figure, device))
}

/// As `{:.0}` writes it, which takes long for a number that is whole already.
fn rounded(value: f64) -> String {
    if (0.0..1e15).contains(&value) { (value.round_ties_even() as u64).to_string() } else { format!("{value:.0}") }
}

/// The tone of a figure: faint where it is not known, plain where it is normal.
pub fn tone(figure: &Figure<Device>, device: &Device) -> Tone {
    Tone::of_figure(figure.judge(device), figure.value(device).is_some())
}

/// The tone of a capacity that is filled to a part of one.
pub fn capacity_tone(part: f64) -> Tone {
    Judge::Capacity.judge(part).into()
}

/// The same, where a part that is normal has its usual tone.
pub fn part_tone(part: f64, usual: Tone) -> Tone {
    match Judge::Capacity.judge(part) {
        Judgement::Normal => usual,
        judgement => judgement.into(),
    }
}

/// `12.4/32.0 GiB`, `512M/32.0 GiB`: in the unit of the total, unless it is less than one of it. At least so much, where a process
/// does not report.
pub fn used_of_total(used: Option<Bytes>, total: Option<Bytes>, untracked: u32, glyphs: &Glyphs) -> String {
    let mark = if untracked > 0 && used.is_some() { glyphs.at_least } else { "" };
    match (used, total) {
        (Some(used), Some(total)) => {
            format!("{mark}{}/{total}", used.number_beside(total).unwrap_or_else(|| used.short()))
        }
        (Some(used), None) => format!("{mark}{used}"),
        (None, Some(total)) => format!("{}/{total}", glyphs.absent),
        (None, None) => glyphs.absent.to_owned(),
    }
}

/// What to say where no process is listed.
pub fn no_process(some_use_one: bool) -> &'static str {
    if some_use_one { "Used by processes that cannot be named" } else { "No process uses a device" }
}

/// What a person should know about the device that no other cell says.
pub fn remark(device: &Device) -> Option<String> {
    let age = device.sample_age_seconds.filter(|age| *age > 0.0);
    let stale = device.memory.stale.filter(|stale| stale.0 > 0);
    match device.state {
        State::Silent | State::Lost => Some(match age {
            Some(age) => format!("last answer {age:.1} s ago"),
            None => "has not answered yet".into(),
        }),
        State::NoDriver => Some("no driver is bound".into()),
        _ if device.foreign_holders > 0 => Some(format!("{} openers in other PID namespaces", device.foreign_holders)),
        _ => stale.map(|stale| format!("{stale} stale (exited processes)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_rounded_as_the_formatter_does() {
        let halves = (0..400).map(|n| f64::from(n) / 2.0);
        let others = (0..400).map(|n| f64::from(n) * 0.37).chain([-0.4, -3.5, 1e14, 1e16, f64::NAN, f64::INFINITY]);
        for value in halves.chain(others) {
            assert_eq!(rounded(value), format!("{value:.0}"));
        }
    }
}
