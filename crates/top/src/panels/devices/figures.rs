//! What a device shows of itself, as text and tone.

use crate::paint::{Buffer, bar};
use crate::state::TopState;
use crate::theme::{Theme, Tone};
use crate::unit_text::UnitText;
use model::figure::device::{AICLK, DEVICE_FIGURES, DRAM_USED, L1_USED, UTILIZATION};
use model::figure::{Field, Figure, Freshness, Judge};
use model::throttle::{self, LowClock};
use model::{Alert, Bytes, BytesPerSecond, Device, Severity, State as DeviceState};
use show::bar::Sizes;
use show::figures;
pub use show::figures::{board, name};
use show::memory::draw::chips::short_figures;
use show::text::count;

/// What is wrong with a device, the worst first.
pub fn alerts<'a>(state: &'a TopState, device: &Device) -> impl Iterator<Item = &'a Alert> {
    let id = device.id.to_string();
    let all = state.snapshot().alerts.iter().filter(|alert| alert.severity > Severity::Info && alert.process.is_none());
    all.filter(move |alert| alert.device.as_ref() == Some(&id))
}

/// Whether what is known of it is of now. A chip that does not answer keeps its last figures; they are drawn faint.
pub fn is_stale(device: &Device) -> bool {
    let aged = device.sample_age_seconds.is_some_and(|age| age > 0.0);
    aged || !matches!(device.state, DeviceState::Ok | DeviceState::Remote)
}

/// Whether the chip gives this figure now. What the host knows of a remote chip is known, though the chip itself cannot answer.
pub fn is_known(device: &Device, field: Field<Device>) -> bool {
    let speaks = device.state == DeviceState::Ok && !is_stale(device);
    speaks || (field.figure.freshness == Freshness::Host && device.state == DeviceState::Remote)
}

/// The tone of a figure, unless it is an old one.
fn figure_tone(device: &Device, figure: &Figure<Device>) -> Tone {
    unless_stale(device, figures::tone(figure, device))
}

fn unless_stale(device: &Device, tone: Tone) -> Tone {
    if is_stale(device) { Tone::Faint } else { tone }
}

/// `silent`, and how long ago it was otherwise.
pub fn state(device: &Device) -> String {
    match device.sample_age_seconds.filter(|age| *age > 0.0) {
        Some(age) => format!("{}, {} ago", device.state.name(), short_time(age)),
        None => device.state.name().to_owned(),
    }
}

/// The state in so many columns.
pub fn brief_state(state: DeviceState, columns: u16) -> &'static str {
    match state {
        // Its readings are old.
        DeviceState::Ok => "old",
        DeviceState::Resetting if columns < 9 => "reset",
        DeviceState::NoDriver if columns < 9 => "driver",
        DeviceState::NoTelemetry if columns < 12 => "no data",
        state => state.name(),
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
        state => Tone::of_state(state),
    }
}

/// `54/90°C`, `65/150W`, `2100rpm`. Without its limit when there is little room.
pub fn measured(device: &Device, figure: &Figure<Device>, state: &TopState, with_limit: bool) -> (String, Tone) {
    let text = UnitText::new(figure.unit, state);
    let unit = text.symbol();
    let text = match (figure.number(device), figure.limit_of(device).filter(|_| with_limit)) {
        (Some(value), Some(limit)) => format!("{}/{}{unit}", text.short_number(value), text.short_number(limit)),
        (Some(value), None) => format!("{}{unit}", text.short_number(value)),
        (None, _) => format!("{}{unit}", state.theme.glyphs().absent),
    };
    (text, figure_tone(device, figure))
}

/// `1350MHz`
pub fn clock(device: &Device, theme: &Theme, unit: &str) -> (String, Tone) {
    let text = AICLK.number(device).map_or(theme.glyphs().absent.to_owned(), |value| format!("{value:.0}"));
    (text + unit, figure_tone(device, &AICLK))
}

/// `62%`, `≥62%`. It is known from elsewhere than from the chip.
pub fn utilization(device: &Device, theme: &Theme) -> (String, Tone) {
    let tone = unless_gone(device, figures::tone(&UTILIZATION, device));
    (show::activity::utilization(&device.activity, theme.glyphs()), tone)
}

/// Why the clock is low, where the figures say so. Full power is normal: it is a reason, not a warning.
pub fn why_slow(device: &Device, state: &TopState) -> Option<(String, Tone)> {
    if let Some(sentence) = limited_clock(device, state) {
        return Some(sentence);
    }
    if throttle::low_clock(device) == Some(LowClock::Idle) {
        return Some(("idle clock".to_owned(), Tone::Faint));
    }
    let is_low = device.aiclk?.0 < device.arch?.full_clock().0;
    if !is_low || is_stale(device) {
        return None;
    }
    let holds_back = |figure: &&&Figure<Device>| matches!(figure.judge, Judge::Heat | Judge::Load);
    let at_limit = DEVICE_FIGURES.iter().filter(holds_back).find(|figure| figure.is_at_limit(device));
    // Where the firmware says what it has decided by, what is at its limit proves nothing.
    if let Some(figure) = at_limit.filter(|_| throttle::by(device).is_none()) {
        let tone = Tone::of_figure(figure.judge(device), true);
        return Some((format!("{} at its limit", figure.title.to_lowercase()), tone));
    }
    // What is used is known only when the holders are: no process is not the same as none that can be seen.
    let memory = &device.memory;
    let all_seen = memory.dram_used.is_some() && memory.untracked_processes == 0 && device.foreign_holders == 0;
    let holds = || state.snapshot().processes.iter().any(|process| process.devices.iter().any(|h| h.id == device.id));
    (all_seen && device.in_use_by_pid.is_none() && !holds()).then(|| ("idle: no process".to_owned(), Tone::Faint))
}

/// What limits the clock, and for how long: `clock 900 of 1350 MHz: limited by GDDR temperature (channel 3, 96 °C) for 40 s`.
pub fn limited_clock(device: &Device, state: &TopState) -> Option<(String, Tone)> {
    let limit = throttle::clock_limit(device)?;
    let since = state.events.clock_limited_since(device);
    let seconds = since.map(|since| (state.snapshot().taken_at.0 - since.0) as f64 / 1000.0);
    let tone = if limit.is_warning() { Tone::Warning } else { Tone::Plain };
    let text = throttle::sentence(device, seconds.filter(|seconds| *seconds >= 1.0))?;
    Some((if state.theme.unicode { text } else { text.replace('°', "") }, tone))
}

/// `Gen4 x8 of Gen5 x16`: what it could be is said where it is better.
pub fn link(device: &Device) -> Option<(String, Tone)> {
    let mut text = figures::link(device)?;
    let link = &device.pcie;
    if !device.link_is_degraded() {
        return Some((text, unless_stale(device, Tone::Plain)));
    }
    text += " of";
    if let Some(best) = link.max_generation.filter(|best| Some(*best) > link.generation) {
        text += &format!(" Gen{best}");
    }
    if let Some(best) = link.max_width.filter(|best| Some(*best) > link.width) {
        text += &format!(" x{best}");
    }
    Some((text, unless_stale(device, Tone::Warning)))
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
        Some(rate) if short => rate.short(),
        Some(rate) => rate.to_string(),
    };
    let (there, back) = (rate(there), rate(back));
    let text = if short {
        format!("{} {there:>7} {} {back:>7}", glyphs.to_device, glyphs.to_host)
    } else {
        format!("{} {there:>12}  {} {back:>12}", glyphs.to_device, glyphs.to_host)
    };
    Some((text, unless_stale(device, Tone::Plain)))
}

/// The bar of a field. That of memory has what is stale, too.
pub fn sizes(device: &Device, field: Field<Device>) -> Option<Sizes> {
    match field.figure.name {
        name if name == DRAM_USED.name => Sizes::of_dram(&device.memory),
        name if name == L1_USED.name => Sizes::of_l1(&device.memory),
        _ => field.share(device).map(Sizes::of_share),
    }
}

/// Draws the bar of a memory.
pub fn memory_bar(
    buf: &mut Buffer,
    at: (u16, u16),
    columns: u16,
    (device, figure): (&Device, &'static Figure<Device>),
    theme: &Theme,
) {
    let sizes = sizes(device, figure.field());
    let used = sizes.as_ref().map_or(Tone::Faint, |sizes| figures::capacity_tone(sizes.part()));
    bar(buf, at, columns, sizes.as_ref(), unless_gone(device, used), theme);
}

/// Memory is known from elsewhere than from the chip: it is old only when the chip is gone.
fn is_gone(device: &Device) -> bool {
    matches!(device.state, DeviceState::Lost | DeviceState::NoDriver)
}

fn unless_gone(device: &Device, tone: Tone) -> Tone {
    if is_gone(device) { Tone::Faint } else { tone }
}

fn bytes(number: Option<f64>) -> Option<Bytes> {
    number.map(|bytes| Bytes(bytes as u64))
}

/// `≥12.4/32.0 GiB`
pub fn used_of_total(device: &Device, figure: &Figure<Device>, theme: &Theme) -> (String, Tone) {
    let (used, total) = (bytes(figure.number(device)), bytes(figure.limit_of(device)));
    let text = figures::used_of_total(used, total, device.memory.untracked_processes, theme.glyphs());
    (text, used_tone(device, figure))
}

/// `≥12.4G`
pub fn used(device: &Device, figure: &Figure<Device>, theme: &Theme) -> (String, Tone) {
    let is_at_least = device.memory.untracked_processes > 0;
    let text = short_figures(bytes(figure.number(device)), None, is_at_least, theme.glyphs());
    (text, used_tone(device, figure))
}

/// A bar says that all is well; a figure need not say it again.
fn used_tone(device: &Device, figure: &Figure<Device>) -> Tone {
    unless_gone(device, figures::tone(figure, device))
}

/// What a person should know that no figure says.
pub fn remarks(device: &Device) -> Vec<String> {
    let mut remarks = Vec::new();
    match device.state {
        DeviceState::NoDriver => remarks.push("no driver is bound".to_owned()),
        DeviceState::Silent | DeviceState::Lost if device.sample_age_seconds.is_none() => {
            remarks.push("no answer yet".to_owned());
        }
        _ => {}
    }
    if let Some(stale) = device.memory.stale.filter(|stale| stale.0 > 0) {
        remarks.push(format!("{} stale (exited owner)", stale.short()));
    }
    let untracked = device.memory.untracked_processes;
    if untracked > 0 {
        remarks.push(count(untracked.into(), "process", "processes") + " not reporting");
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TopSettings;
    use model::figure::device::{ASIC_TEMP, POWER};
    use model::{Celsius, Megahertz, Watts};
    use show::example;
    use watch::moment::Moment;

    fn state() -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
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
        assert_eq!(why_slow(&slow, &state), None, "a process holds it, and no figure says why it is slow");
        let hot = Device { asic_temp: Some(Celsius(75.0)), ..slow.clone() };
        assert_eq!(why_slow(&hot, &state), Some(("temperature at its limit".into(), Tone::Critical)));
        let loaded = Device { power: Some(Watts(84.5)), ..slow.clone() };
        assert_eq!(why_slow(&loaded, &state), Some(("power at its limit".into(), Tone::Plain)));
        let idle = Device { id: model::DeviceId::Local(7), ..slow.clone() };
        assert_eq!(why_slow(&idle, &state), Some(("idle: no process".into(), Tone::Faint)));
        let mut unseen = idle.clone();
        unseen.memory.untracked_processes = 1;
        assert_eq!(why_slow(&unseen, &state), None, "another process may hold it");
        assert_eq!(why_slow(&Device { foreign_holders: 1, ..idle.clone() }, &state), None);
        assert_eq!(why_slow(&Device { arch: None, ..idle.clone() }, &state), None);
        assert_eq!(why_slow(&Device { sample_age_seconds: Some(2.0), ..idle }, &state), None);
    }

    #[test]
    fn what_the_firmware_has_decided_by_counts_more_than_what_is_at_its_limit() {
        let state = state();
        let hot = Device {
            aiclk: Some(Megahertz(800)),
            asic_temp: Some(Celsius(75.0)),
            sample_age_seconds: Some(0.0),
            ..state.devices()[2].clone()
        };
        let decided = |by, floor_by| {
            let deep = model::Deep {
                aiclk_max: Some(Megahertz(1350)),
                aiclk_decided_by: Some(by),
                aiclk_floor_by: floor_by,
                ..model::Deep::default()
            };
            why_slow(&Device { deep: Some(Box::new(deep)), ..hot.clone() }, &state)
        };
        use model::{ClockDecision, ClockRaiser};
        let idle = decided(ClockDecision::Floor, Some(ClockRaiser::Minimum));
        assert_eq!(idle, Some(("idle clock".into(), Tone::Faint)));
        assert_eq!(decided(ClockDecision::Forced, None), None);
        assert_eq!(why_slow(&hot, &state), Some(("temperature at its limit".into(), Tone::Critical)));
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
        assert_eq!(measured(&device, &POWER, &state(), true), ("65/150W".into(), Tone::Faint));
        assert_eq!([5.0, 42.0, 120.0, 7200.0].map(short_time), ["5.0s", "42s", "2m", "2h"]);
    }

    #[test]
    fn degrees_are_fahrenheit_where_that_was_chosen() {
        let mut state = state();
        let device = state.devices()[0].clone();
        assert_eq!(measured(&device, &ASIC_TEMP, &state, true).0, "54/90°C");
        state.settings.fahrenheit = true;
        assert_eq!(measured(&device, &ASIC_TEMP, &state, true).0, "129/194°F");
        assert_eq!(measured(&state.devices()[1], &ASIC_TEMP, &state, false).0, "–°F");
        state.theme.unicode = false;
        assert_eq!(measured(&device, &ASIC_TEMP, &state, false).0, "129F");
    }
}
