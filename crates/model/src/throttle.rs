//! Why the clock is low, in one sentence: `clock 900 of 1350 MHz: limited by GDDR temperature (channel 3, 96 °C)`.
//!
//! Only the firmware knows which limit holds the clock down, so there is no sentence without a deep read. It is said where the
//! firmware has decided by the ceiling, and the ceiling is below the maximum; a chip that is not busy has a low clock, too.

use crate::{Celsius, ClockDecision, ClockLimiter, ClockRaiser, Deep, Device, Megahertz, State};

/// Why a clock is below its maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LowClock {
    /// A limit holds it down.
    Limited(ClockLimit),
    /// Nothing asks for more.
    Idle,
}

/// What holds a clock down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockLimit {
    /// A limit of the firmware. It is never [`ClockLimiter::Maximum`].
    Firmware(ClockLimiter),
    /// A limit that the host has set.
    Host,
}

/// An older deep read says nothing of the clock of now, in seconds.
const OLDEST: f64 = 30.0;

/// What [`by`] answers where no limit holds the clock down.
pub const NOTHING: &str = "nothing";
const HOST: &str = "host limit";

/// All answers of [`by`]: [`NOTHING`], the limits of the firmware in their order, and that of the host.
pub const WORDS: [&str; ClockLimiter::NAMES.len() + 1] = {
    let mut words = [NOTHING; ClockLimiter::NAMES.len() + 1];
    // The maximum clock holds nothing down.
    let mut place = 1;
    while place < ClockLimiter::NAMES.len() {
        words[place] = ClockLimiter::NAMES[place];
        place += 1;
    }
    words[place] = HOST;
    words
};

/// Why the clock of a device is below its maximum, where a deep read says so.
pub fn low_clock(device: &Device) -> Option<LowClock> {
    let deep = current(device)?;
    if device.aiclk?.0 >= deep.aiclk_max?.0 {
        return None;
    }
    match deep.aiclk_decided_by? {
        ClockDecision::Ceiling => limit(deep).map(LowClock::Limited),
        // A busy workload asks for the maximum.
        ClockDecision::Floor | ClockDecision::Minimum if deep.aiclk_floor_by == Some(ClockRaiser::Busy) => None,
        ClockDecision::Floor | ClockDecision::Minimum => Some(LowClock::Idle),
        ClockDecision::Sweep | ClockDecision::Forced => None,
    }
}

/// The limit that holds the clock of a device down.
pub fn clock_limit(device: &Device) -> Option<ClockLimit> {
    match low_clock(device)? {
        LowClock::Limited(limit) => Some(limit),
        LowClock::Idle => None,
    }
}

/// The same as a word: [`NOTHING`] where it is known that no limit does. Absent where it is not known.
pub fn by(device: &Device) -> Option<&'static str> {
    let deep = current(device)?;
    deep.aiclk_decided_by.and(deep.aiclk_max).and(device.aiclk)?;
    Some(clock_limit(device).map_or(NOTHING, ClockLimit::name))
}

/// The sentence about a clock that a limit holds down, with how long it has done so, where that is known.
pub fn sentence(device: &Device, seconds: Option<f64>) -> Option<String> {
    let limit = clock_limit(device)?;
    let deep = device.deep.as_ref()?;
    let (Megahertz(now), Megahertz(most)) = (device.aiclk?, deep.aiclk_max?);
    let (name, culprit) = (limit.name(), culprit(device, deep, limit).unwrap_or_default());
    let time = seconds.map(|seconds| format!(" for {}", spoken(seconds))).unwrap_or_default();
    Some(format!("clock {now} of {most} MHz: limited by {name}{culprit}{time}"))
}

/// Writes the sentence, or that there is none, into the deep read of a device.
pub fn explain(device: &mut Device) {
    let text = sentence(device, None);
    if let Some(deep) = &mut device.deep {
        deep.aiclk_limited = text.map(Into::into);
    }
}

/// The hottest GDDR channel and its temperature, top or bottom.
pub fn hottest_channel(deep: &Deep) -> Option<(usize, Celsius)> {
    let sides = [&deep.gddr_top_temp, &deep.gddr_bottom_temp];
    let all = sides.into_iter().flat_map(|side| side.iter().enumerate());
    let known = all.filter_map(|(channel, temp)| Some((channel, (*temp)?))).filter(|(_, temp)| temp.0.is_finite());
    known.max_by(|(a, one), (b, other)| one.0.total_cmp(&other.0).then(b.cmp(a)))
}

/// `40 s`, `12 min`, `3 h`.
pub fn spoken(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5970.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

impl ClockLimit {
    /// As sentences say it.
    pub const fn name(self) -> &'static str {
        match self {
            ClockLimit::Firmware(limiter) => limiter.name(),
            ClockLimit::Host => HOST,
        }
    }

    /// Whether something is wrong: heat, or a power surge. Other limits are reached under full load.
    pub fn is_warning(self) -> bool {
        use ClockLimiter::{DopplerCritical, GddrTemperature, Temperature};
        matches!(self, ClockLimit::Firmware(Temperature | GddrTemperature | DopplerCritical))
    }
}

/// The deep read of a device that answers.
fn current(device: &Device) -> Option<&Deep> {
    let is_current = device.state == State::Ok && device.sample_age_seconds.is_none_or(|age| age <= 0.0);
    let deep = device.deep.as_deref().filter(|_| is_current)?;
    (deep.unavailable.is_none() && deep.age_seconds.is_none_or(|age| age <= OLDEST)).then_some(deep)
}

fn limit(deep: &Deep) -> Option<ClockLimit> {
    let (ceiling, most) = (deep.aiclk_ceiling?, deep.aiclk_max?);
    if ceiling.0 >= most.0 {
        return None;
    }
    match deep.aiclk_ceiling_by {
        // Older firmware has no number of its own for the limit of the host, and newer has one without a name here.
        None | Some(ClockLimiter::Maximum) => {
            deep.aiclk_host_limit.filter(|limit| limit.0.abs_diff(ceiling.0) <= 1).map(|_| ClockLimit::Host)
        }
        Some(limiter) => Some(ClockLimit::Firmware(limiter)),
    }
}

/// The value that is at its limit, as far as it is known.
fn culprit(device: &Device, deep: &Deep, limit: ClockLimit) -> Option<String> {
    let of = |value: f64, limit: Option<f64>, unit: &str, decimals: usize| match limit {
        Some(limit) => format!("{value:.decimals$} of {limit:.decimals$} {unit}"),
        None => format!("{value:.decimals$} {unit}"),
    };
    let board_power = || Some(of(deep.input_power?.0, deep.board_power_limit.map(|limit| limit.0), "W", 0));
    let text = match limit {
        ClockLimit::Host => format!("{} MHz", deep.aiclk_host_limit?.0),
        ClockLimit::Firmware(limiter) => match limiter {
            ClockLimiter::Maximum => return None,
            ClockLimiter::Power => of(device.power?.0, device.power_max.map(|limit| limit.0), "W", 0),
            ClockLimiter::FastCurrent | ClockLimiter::Current => {
                of(device.current?.0, device.current_max.map(|limit| limit.0), "A", 0)
            }
            ClockLimiter::Temperature => of(device.asic_temp?.0, device.asic_temp_max.map(|limit| limit.0), "°C", 0),
            ClockLimiter::BoardPower => board_power()?,
            ClockLimiter::Voltage => of(device.vcore?.0, device.vcore_max.map(|limit| limit.0), "V", 2),
            ClockLimiter::GddrTemperature => match hottest_channel(deep) {
                Some((channel, temp)) => format!("channel {channel}, {:.0} °C", temp.0),
                None => format!("{:.0} °C", deep.gddr_temp?.0),
            },
            ClockLimiter::DopplerSlow | ClockLimiter::DopplerCritical => format!("board power {}", board_power()?),
        },
    };
    Some(format!(" ({text})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amperes, DeviceId, Volts, Watts};
    use proptest::prelude::*;

    /// A chip at 900 of 1350 MHz.
    fn limited(by: Option<ClockLimiter>) -> Device {
        let deep = Deep {
            age_seconds: Some(1.0),
            aiclk_max: Some(Megahertz(1350)),
            aiclk_ceiling: Some(Megahertz(900)),
            aiclk_ceiling_by: by,
            aiclk_decided_by: Some(ClockDecision::Ceiling),
            input_power: Some(Watts(298.4)),
            board_power_limit: Some(Watts(300.0)),
            gddr_temp: Some(Celsius(96.0)),
            gddr_top_temp: [70, 71, 72, 90].map(|temp| Some(Celsius(temp.into()))).to_vec(),
            gddr_bottom_temp: vec![Some(Celsius(60.0)), None, None, Some(Celsius(96.0))],
            ..Deep::default()
        };
        Device {
            aiclk: Some(Megahertz(900)),
            power: Some(Watts(149.6)),
            power_max: Some(Watts(150.0)),
            current: Some(Amperes(201.0)),
            current_max: Some(Amperes(200.0)),
            asic_temp: Some(Celsius(89.7)),
            asic_temp_max: Some(Celsius(90.0)),
            vcore: Some(Volts(0.85)),
            vcore_max: Some(Volts(0.9)),
            sample_age_seconds: Some(0.0),
            deep: Some(Box::new(deep)),
            ..Device::new(DeviceId::Local(0))
        }
    }

    fn changed(change: impl Fn(&mut Device, &mut Deep)) -> Device {
        let mut device = limited(Some(ClockLimiter::Temperature));
        let mut deep = device.deep.take().unwrap();
        change(&mut device, &mut deep);
        Device { deep: Some(deep), ..device }
    }

    #[test]
    fn every_limit_has_its_sentence_with_the_value_that_is_at_it() {
        let say = |by| sentence(&limited(by), None).unwrap_or("–".into());
        let all: Vec<String> = ClockLimiter::ALL.into_iter().map(|by| say(Some(by)) + "\n").collect();
        expect_test::expect![[r#"
            –
            clock 900 of 1350 MHz: limited by chip power (150 of 150 W)
            clock 900 of 1350 MHz: limited by fast current limit (201 of 200 A)
            clock 900 of 1350 MHz: limited by current (201 of 200 A)
            clock 900 of 1350 MHz: limited by temperature (90 of 90 °C)
            clock 900 of 1350 MHz: limited by board power (298 of 300 W)
            clock 900 of 1350 MHz: limited by voltage (0.85 of 0.90 V)
            clock 900 of 1350 MHz: limited by GDDR temperature (channel 3, 96 °C)
            clock 900 of 1350 MHz: limited by doppler (slow) (board power 298 of 300 W)
            clock 900 of 1350 MHz: limited by doppler (critical) (board power 298 of 300 W)
        "#]]
        .assert_eq(&all.concat());
        let long = sentence(&limited(Some(ClockLimiter::GddrTemperature)), Some(40.0)).unwrap();
        assert_eq!(long, "clock 900 of 1350 MHz: limited by GDDR temperature (channel 3, 96 °C) for 40 s");
        assert_eq!([99.0, 150.0, 9000.0].map(spoken), ["99 s", "2 min", "2 h"]);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let bare = changed(|device, deep| {
            (device.asic_temp, device.asic_temp_max) = (None, None);
            deep.aiclk_ceiling_by = Some(ClockLimiter::Temperature);
        });
        assert_eq!(sentence(&bare, None).unwrap(), "clock 900 of 1350 MHz: limited by temperature");
        let no_limit = changed(|device, _| device.asic_temp_max = None);
        assert_eq!(sentence(&no_limit, None).unwrap(), "clock 900 of 1350 MHz: limited by temperature (90 °C)");
        for silent in [
            changed(|_, deep| deep.aiclk_decided_by = None),
            changed(|_, deep| deep.aiclk_ceiling = None),
            changed(|_, deep| deep.aiclk_ceiling = Some(Megahertz(1350))),
            changed(|_, deep| deep.aiclk_ceiling_by = None),
            changed(|_, deep| deep.aiclk_max = None),
            changed(|_, deep| deep.age_seconds = Some(31.0)),
            changed(|_, deep| deep.unavailable = Some(crate::DeepUnavailable::NotReady)),
            changed(|device, _| device.aiclk = Some(Megahertz(1350))),
            changed(|device, _| device.aiclk = None),
            changed(|device, _| device.sample_age_seconds = Some(3.0)),
            changed(|device, _| device.state = State::Hung),
            Device { deep: None, ..limited(Some(ClockLimiter::Temperature)) },
        ] {
            assert_eq!(sentence(&silent, Some(9.0)), None, "{silent:?}");
        }
    }

    #[test]
    fn a_limit_of_the_host_is_named_and_an_idle_clock_is_not_throttled() {
        for by in [None, Some(ClockLimiter::Maximum)] {
            let host = changed(|_, deep| {
                (deep.aiclk_ceiling_by, deep.aiclk_host_limit) = (by, Some(Megahertz(900)));
            });
            assert_eq!(sentence(&host, None).unwrap(), "clock 900 of 1350 MHz: limited by host limit (900 MHz)");
        }
        let idle = |floor_by| {
            changed(move |device, deep| {
                (device.aiclk, deep.aiclk_floor_by) = (Some(Megahertz(800)), floor_by);
                deep.aiclk_decided_by = Some(ClockDecision::Floor);
            })
        };
        assert_eq!(low_clock(&idle(Some(ClockRaiser::Minimum))), Some(LowClock::Idle));
        assert_eq!(low_clock(&idle(Some(ClockRaiser::Busy))), None);
        assert_eq!((by(&idle(None)), sentence(&idle(None), None)), (Some(NOTHING), None));
        assert_eq!(by(&limited(Some(ClockLimiter::Power))), Some("chip power"));
        assert_eq!(by(&Device::new(DeviceId::Local(0))), None);
    }

    #[test]
    fn the_deep_read_keeps_the_sentence_only_while_it_is_true() {
        let mut device = limited(Some(ClockLimiter::Power));
        explain(&mut device);
        let said = |device: &Device| device.deep.as_ref().unwrap().aiclk_limited.clone();
        assert!(said(&device).unwrap().ends_with("limited by chip power (150 of 150 W)"));
        device.aiclk = Some(Megahertz(1350));
        explain(&mut device);
        assert_eq!(said(&device), None);
    }

    proptest! {
        #[test]
        fn a_sentence_is_there_exactly_where_the_ceiling_decided_and_is_below_the_maximum(
            now in 200u32..1500, most in 200u32..1500, ceiling in 200u32..1500,
            limiter in 0..ClockLimiter::ALL.len(), decision in 0..ClockDecision::ALL.len(),
        ) {
            let limiter = ClockLimiter::ALL[limiter];
            let device = changed(|device, deep| {
                (device.aiclk, deep.aiclk_max, deep.aiclk_ceiling) =
                    (Some(Megahertz(now)), Some(Megahertz(most)), Some(Megahertz(ceiling)));
                deep.aiclk_ceiling_by = Some(limiter);
                deep.aiclk_decided_by = Some(ClockDecision::ALL[decision]);
            });
            let expected = now < most && ceiling < most && limiter != ClockLimiter::Maximum
                && ClockDecision::ALL[decision] == ClockDecision::Ceiling;
            prop_assert_eq!(sentence(&device, None).is_some(), expected);
            prop_assert_eq!(by(&device).is_some_and(|word| word != NOTHING), expected);
            prop_assert!(by(&device).is_some_and(|word| WORDS.contains(&word)));
        }
    }
}
