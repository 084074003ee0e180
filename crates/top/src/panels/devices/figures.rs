//! What a device shows of itself, as text and tone.

use crate::state::State;
use crate::theme::{Theme, Tone};
use model::{Alert, Arch, Bytes, BytesPerSecond, Device, Severity, State as DeviceState};
use model::judgement::AT_LIMIT;
use show::figures;
use show::style::{Style as Table, Tone as TableTone};

/// Figures may be shared with the table of `ttmon smi`.
fn table(theme: &Theme) -> Table {
    Table { columns: 0, rows: None, color: false, unicode: theme.unicode }
}

fn tone_of(tone: TableTone) -> Tone {
    match tone {
        TableTone::Plain => Tone::Plain,
        TableTone::Good => Tone::Good,
        TableTone::Warning => Tone::Warning,
        TableTone::Critical => Tone::Bad,
        TableTone::Faint => Tone::Faint,
        TableTone::Strong => Tone::Strong,
        TableTone::Second => Tone::Second,
        TableTone::Third => Tone::Third,
        _ => Tone::Plain,
    }
}

pub fn name(device: &Device, theme: &Theme) -> String {
    figures::name(device, &table(theme))
}

pub fn board(device: &Device, theme: &Theme) -> String {
    figures::board(device, &table(theme))
}

/// What is wrong with a device, the worst first.
pub fn alerts<'a>(state: &'a State, device: &Device) -> impl Iterator<Item = &'a Alert> {
    let id = device.id.to_string();
    let all = state.snapshot().alerts.iter().filter(|alert| alert.severity > Severity::Info && alert.process.is_none());
    all.filter(move |alert| alert.device.as_ref() == Some(&id))
}

/// Whether what is known of it is of now. A chip that does not answer keeps its last figures; they are drawn faint.
pub fn is_stale(device: &Device) -> bool {
    let aged = device.sample_age_seconds.is_some_and(|age| age > 0.0);
    aged || !matches!(device.state, DeviceState::Ok | DeviceState::Remote)
}

/// The tone of a figure, unless it is an old one.
fn unless_stale(device: &Device, tone: TableTone) -> Tone {
    if is_stale(device) { Tone::Faint } else { tone_of(tone) }
}

/// `silent`, and how long ago it was otherwise.
pub fn state(device: &Device) -> String {
    match device.sample_age_seconds.filter(|age| *age > 0.0) {
        Some(age) => format!("{}, {} ago", device.state.name(), short_time(age)),
        None => device.state.name().to_owned(),
    }
}

/// `4.2s`, `75s`, `12m`, `30h`
pub fn short_time(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 => format!("{s:.1}s"),
        s if s < 99.5 => format!("{s:.0}s"),
        s if s < 5970.0 => format!("{:.0}m", s / 60.0),
        s => format!("{:.0}h", s / 3600.0),
    }
}

pub fn state_tone(device: &Device) -> Tone {
    match device.state {
        DeviceState::Ok if is_stale(device) => Tone::Warning,
        state => tone_of(figures::state_tone(state)),
    }
}

/// `54/90°C`. Without its limit when there is little room.
pub fn temperature(device: &Device, state: &State, with_limit: bool) -> (String, Tone) {
    let chosen = |celsius: f64| if state.settings.fahrenheit { celsius * 1.8 + 32.0 } else { celsius };
    let unit = match (state.settings.fahrenheit, state.theme.unicode) {
        (false, _) => state.theme.glyphs().degree,
        (true, true) => "°F",
        (true, false) => "F",
    };
    let value = device.asic_temp.map(|v| chosen(v.0));
    let limit = device.asic_temp_max.map(|v| chosen(v.0)).filter(|_| with_limit);
    (of_limit(value, limit, unit, &state.theme), unless_stale(device, figures::temperature_tone(device)))
}

/// `65/150W`
pub fn power(device: &Device, theme: &Theme, with_limit: bool) -> (String, Tone) {
    let limit = device.power_max.map(|v| v.0).filter(|_| with_limit);
    let text = of_limit(device.power.map(|v| v.0), limit, "W", theme);
    (text, unless_stale(device, figures::power_tone(device)))
}

fn of_limit(value: Option<f64>, limit: Option<f64>, unit: &str, theme: &Theme) -> String {
    match (value, limit) {
        (Some(value), Some(limit)) => format!("{value:.0}/{limit:.0}{unit}"),
        (Some(value), None) => format!("{value:.0}{unit}"),
        (None, _) => format!("{}{unit}", theme.glyphs().absent),
    }
}

pub fn clock(device: &Device, theme: &Theme, unit: &str) -> (String, Tone) {
    let tone = if device.aiclk.is_some() { TableTone::Plain } else { TableTone::Faint };
    let text = device.aiclk.map_or(theme.glyphs().absent.to_owned(), |clock| clock.0.to_string());
    (text + unit, unless_stale(device, tone))
}

pub fn fan(device: &Device, theme: &Theme) -> (String, Tone) {
    let tone = if device.fan.is_some() { TableTone::Plain } else { TableTone::Faint };
    let text = device.fan.map_or(theme.glyphs().absent.to_owned(), |fan| fan.0.to_string());
    (text + "rpm", unless_stale(device, tone))
}

/// The clock of a chip that works and is held back by nothing.
pub fn full_clock(arch: Arch) -> u32 {
    match arch {
        Arch::Wormhole => 1000,
        Arch::Blackhole => 1350,
    }
}

/// Why the clock is low, where the figures say so.
pub fn why_slow(device: &Device, state: &State) -> Option<&'static str> {
    let is_low = device.aiclk?.0 < full_clock(device.arch?);
    if !is_low || is_stale(device) {
        return None;
    }
    let at_limit = |value: Option<f64>, limit: Option<f64>| matches!((value, limit), (Some(value), Some(limit)) if value >= limit * AT_LIMIT);
    if at_limit(device.asic_temp.map(|v| v.0), device.asic_temp_max.map(|v| v.0)) {
        return Some("temperature at its limit");
    }
    if at_limit(device.power.map(|v| v.0), device.power_max.map(|v| v.0)) {
        return Some("power at its limit");
    }
    // What is used is known only when the holders are: no process is not the same as none that can be seen.
    let memory = &device.memory;
    let all_seen = memory.dram_used.is_some() && memory.untracked_processes == 0 && device.foreign_holders == 0;
    let holds = || state.snapshot().processes.iter().any(|process| process.devices.iter().any(|h| h.id == device.id));
    (all_seen && device.in_use_by_pid.is_none() && !holds()).then_some("idle: no process")
}

/// `Gen4 x8 of Gen5 x16`: what it could be is said where it is better.
pub fn link(device: &Device) -> Option<(String, Tone)> {
    let link = &device.pcie;
    let (generation, width) = (link.generation?, link.width?);
    let mut text = format!("Gen{generation} x{width}");
    if !device.link_is_degraded() {
        return Some((text, unless_stale(device, TableTone::Plain)));
    }
    text += " of";
    if let Some(best) = link.max_generation.filter(|best| *best > generation) {
        text += &format!(" Gen{best}");
    }
    if let Some(best) = link.max_width.filter(|best| *best > width) {
        text += &format!(" x{best}");
    }
    Some((text, unless_stale(device, TableTone::Warning)))
}

/// `→ 3.0 GiB/s  ← 4.3 MiB/s`, of one width, so that nothing moves. Short it is `→ 3.0G/s ← 4.3M/s`.
pub fn traffic(device: &Device, theme: &Theme, short: bool) -> Option<(String, Tone)> {
    let (there, back) = (device.pcie.host_to_device, device.pcie.device_to_host);
    if there.is_none() && back.is_none() {
        return None;
    }
    let glyphs = theme.glyphs();
    let rate = |rate: Option<BytesPerSecond>| match rate {
        None => glyphs.absent.to_owned(),
        Some(rate) if short => format!("{}/s", Bytes(rate.0.max(0.0) as u64).short()),
        Some(rate) => rate.to_string(),
    };
    let (there, back) = (rate(there), rate(back));
    let text = if short {
        format!("{} {there:>7} {} {back:>7}", glyphs.to_device, glyphs.to_host)
    } else {
        format!("{} {there:>12}  {} {back:>12}", glyphs.to_device, glyphs.to_host)
    };
    Some((text, unless_stale(device, TableTone::Plain)))
}

/// How much of so much, as a part of one, and its tone.
pub fn part(device: &Device, used: Option<Bytes>, total: Option<Bytes>) -> (Option<f64>, Tone) {
    (figures::part(used, total), unless_gone(device, figures::memory_tone(used, total)))
}

/// Memory is known from elsewhere than from the chip: it is old only when the chip is gone.
fn unless_gone(device: &Device, tone: TableTone) -> Tone {
    if matches!(device.state, DeviceState::Lost | DeviceState::NoDriver) { Tone::Faint } else { tone_of(tone) }
}

/// `≥12.4/32.0 GiB`
pub fn used_of_total(device: &Device, used: Option<Bytes>, total: Option<Bytes>, theme: &Theme) -> (String, Tone) {
    let text = figures::used_of_total(used, total, device.memory.untracked_processes, &table(theme));
    (text, figure_tone(device, used, total))
}

/// `≥12.4G`
pub fn used(device: &Device, used: Option<Bytes>, total: Option<Bytes>, theme: &Theme) -> (String, Tone) {
    let glyphs = theme.glyphs();
    let text = match used {
        Some(used) if device.memory.untracked_processes > 0 => format!("{}{}", glyphs.at_least, used.short()),
        Some(used) => used.short(),
        None => glyphs.absent.to_owned(),
    };
    (text, figure_tone(device, used, total))
}

/// A bar says that all is well; a figure need not say it again.
fn figure_tone(device: &Device, used: Option<Bytes>, total: Option<Bytes>) -> Tone {
    match part(device, used, total).1 {
        Tone::Good => Tone::Plain,
        _ if used.is_none() => Tone::Faint,
        tone => tone,
    }
}

/// What a person should know that no figure says.
pub fn remarks(device: &Device) -> Vec<String> {
    let mut remarks = Vec::new();
    match device.state {
        DeviceState::NoDriver => remarks.push("no driver is bound to it".to_owned()),
        DeviceState::Silent | DeviceState::Lost if device.sample_age_seconds.is_none() => {
            remarks.push("has not answered yet".to_owned());
        }
        _ => {}
    }
    if let Some(stale) = device.memory.stale.filter(|stale| stale.0 > 0) {
        remarks.push(format!("{} stale (dead owner)", stale.short()));
    }
    match device.memory.untracked_processes {
        0 => {}
        1 => remarks.push("1 process untracked".to_owned()),
        n => remarks.push(format!("{n} processes untracked")),
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use model::{Celsius, Megahertz, Watts};
    use show::example;
    use watch::moment::Moment;

    fn state() -> State {
        let mut state = State::new(Settings::default(), true);
        state.take(Moment::of(example::machine()));
        state
    }

    #[test]
    fn a_low_clock_has_a_reason_only_where_the_figures_give_one() {
        let state = state();
        let n300 = || state.devices()[2].clone();
        let slow =
            Device { aiclk: Some(Megahertz(500)), power: Some(Watts(20.0)), asic_temp: Some(Celsius(40.0)), ..n300() };
        assert_eq!(why_slow(&n300(), &state), None, "it runs at full clock");
        assert_eq!(why_slow(&slow, &state), None, "a process holds it, and nobody says why it is slow");
        let hot = Device { asic_temp: Some(Celsius(75.0)), ..slow.clone() };
        assert_eq!(why_slow(&hot, &state), Some("temperature at its limit"));
        let thirsty = Device { power: Some(Watts(84.5)), ..slow.clone() };
        assert_eq!(why_slow(&thirsty, &state), Some("power at its limit"));
        let idle = Device { id: model::DeviceId::Local(7), ..slow.clone() };
        assert_eq!(why_slow(&idle, &state), Some("idle: no process"));
        let mut unseen = idle.clone();
        unseen.memory.untracked_processes = 1;
        assert_eq!(why_slow(&unseen, &state), None, "somebody may be there");
        assert_eq!(why_slow(&Device { foreign_holders: 1, ..idle.clone() }, &state), None);
        assert_eq!(why_slow(&Device { arch: None, ..idle.clone() }, &state), None);
        assert_eq!(why_slow(&Device { sample_age_seconds: Some(2.0), ..idle }, &state), None);
    }

    #[test]
    fn a_link_says_what_it_could_be_only_where_that_is_better() {
        let mut device = state().devices()[0].clone();
        assert_eq!(link(&device), Some(("Gen5 x8 of x16".into(), Tone::Warning)));
        device.pcie.generation = Some(3);
        assert_eq!(link(&device), Some(("Gen3 x8 of Gen5 x16".into(), Tone::Warning)));
        device.pcie.width = Some(16);
        assert_eq!(link(&device), Some(("Gen3 x16 of Gen5".into(), Tone::Warning)));
        device.pcie.generation = Some(5);
        assert_eq!(link(&device), Some(("Gen5 x16".into(), Tone::Plain)));
        device.pcie.width = None;
        assert_eq!(link(&device), None);
    }

    #[test]
    fn an_old_figure_is_faint_and_its_age_is_said() {
        let mut device = state().devices()[0].clone();
        device.sample_age_seconds = Some(4.2);
        assert_eq!(super::state(&device), "ok, 4.2s ago");
        assert_eq!(state_tone(&device), Tone::Warning);
        assert_eq!(power(&device, &state().theme, true), ("65/150W".into(), Tone::Faint));
        assert_eq!([5.0, 42.0, 120.0, 7200.0].map(short_time), ["5.0s", "42s", "2m", "2h"]);
    }

    #[test]
    fn degrees_are_fahrenheit_where_that_was_chosen() {
        let mut state = state();
        let device = state.devices()[0].clone();
        assert_eq!(temperature(&device, &state, true).0, "54/90°C");
        state.settings.fahrenheit = true;
        assert_eq!(temperature(&device, &state, true).0, "129/194°F");
        assert_eq!(temperature(&state.devices()[1], &state, false).0, "–°F");
        state.theme.unicode = false;
        assert_eq!(temperature(&device, &state, false).0, "129F");
    }
}
