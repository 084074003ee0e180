//! The figure that chips are coloured by.

use super::super::devices::figures;
use crate::state::State;
use crate::theme::{Theme, Tone};
use model::{Bytes, BytesPerSecond, Device, Link, Metric, State as DeviceState};

/// The figures that can be chosen, in the order of the key.
pub const ALL: [Metric; 7] = [
    Metric::AsicTemp,
    Metric::Power,
    Metric::Aiclk,
    Metric::DramUsed,
    Metric::L1Used,
    Metric::HostToDevice,
    Metric::DeviceToHost,
];

/// What a chip shows of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// As a part of what it can be, where that is known.
    pub share: Option<f64>,
    /// From the longest text to the shortest.
    pub texts: Vec<String>,
    pub tone: Tone,
}

impl Figure {
    /// The longest text for so many columns.
    pub fn text(&self, columns: u16) -> &str {
        let fits = |text: &&String| show::text::width(text) <= usize::from(columns);
        self.texts.iter().find(fits).or(self.texts.last()).map_or("", |text| text)
    }

    /// The text without anything that can be left out, yet with its unit where there is room for that.
    pub fn brief(&self, columns: u16) -> &str {
        let five = columns.min(5);
        let fits = |text: &&String| show::text::width(text) <= usize::from(five) && !text.contains(' ');
        match self.texts.iter().find(fits) {
            Some(text) => text,
            None => self.text(five),
        }
    }
}

pub fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::AsicTemp => "temperature",
        Metric::Power => "power",
        Metric::Aiclk => "clock",
        Metric::Fan => "fan",
        Metric::DramUsed => "used DRAM",
        Metric::L1Used => "used L1",
        Metric::HostToDevice => "PCIe to the chips",
        Metric::DeviceToHost => "PCIe from the chips",
    }
}

/// The next one, or the previous.
pub fn next(metric: Metric, steps: isize) -> Metric {
    let at = ALL.iter().position(|one| *one == metric).unwrap_or(0);
    ALL[(at as isize + steps).rem_euclid(ALL.len() as isize) as usize]
}

/// Whether the chip gives this figure now. The memory of a remote chip is known, though the chip itself cannot answer.
pub fn is_known(device: &Device, metric: Metric) -> bool {
    let of_memory = matches!(metric, Metric::DramUsed | Metric::L1Used);
    let speaks = device.state == DeviceState::Ok && !figures::is_stale(device);
    speaks || (of_memory && device.state == DeviceState::Remote)
}

pub fn of(device: &Device, metric: Metric, state: &State) -> Figure {
    let theme = &state.theme;
    let part = |value: Option<f64>, limit: Option<f64>| Some(value? / limit.filter(|limit| *limit > 0.0)?);
    let memory = &device.memory;
    match metric {
        Metric::AsicTemp => {
            let share = part(device.asic_temp.map(|v| v.0), device.asic_temp_max.map(|v| v.0));
            let text = device.asic_temp.map(|_| figures::temperature(device, state, false).0);
            let mut texts = texts(text, theme);
            texts.extend(device.asic_temp.map(|_| texts[0].trim_end_matches(['°', 'C', 'F']).to_owned()));
            Figure { share, texts, tone: heat(share, device.asic_temp.is_some()) }
        }
        Metric::Power => {
            let share = part(device.power.map(|v| v.0), device.power_max.map(|v| v.0));
            let text = device.power.map(|_| figures::power(device, theme, false).0);
            let mut texts = texts(text, theme);
            texts.extend(device.power.map(|power| format!("{:.0}", power.0)));
            Figure { share, texts, tone: heat(share, device.power.is_some()) }
        }
        Metric::Aiclk => {
            let clock = device.aiclk.map(|v| v.0);
            let share = part(clock.map(f64::from), device.arch.map(|arch| f64::from(figures::full_clock(arch))));
            let mut texts = texts(clock.map(|clock| format!("{clock} MHz")), theme);
            texts.extend(clock.map(|clock| clock.to_string()));
            Figure { share, texts, tone: activity(share, clock.is_some()) }
        }
        Metric::Fan => {
            let text = device.fan.map(|fan| fan.0.to_string());
            Figure { share: None, texts: texts(text, theme), tone: heat(None, device.fan.is_some()) }
        }
        Metric::DramUsed => of_memory(device, memory.dram_used, memory.dram_total, theme),
        Metric::L1Used => of_memory(device, memory.l1_used, memory.l1_total, theme),
        Metric::HostToDevice => of_traffic(device, device.pcie.host_to_device, theme),
        Metric::DeviceToHost => of_traffic(device, device.pcie.device_to_host, theme),
    }
}

fn of_memory(device: &Device, used: Option<Bytes>, total: Option<Bytes>, theme: &Theme) -> Figure {
    let share = figures::part(device, used, total).0;
    let short = figures::used(device, used, total, theme).0;
    let mut texts = Vec::new();
    if let Some(share) = share {
        texts.push(format!("{short} {:.0}%", share * 100.0));
    }
    texts.push(short);
    Figure { share, texts, tone: heat(share, used.is_some()) }
}

fn of_traffic(device: &Device, rate: Option<BytesPerSecond>, theme: &Theme) -> Figure {
    let share = rate.and_then(|rate| Some(rate.0 / capacity(&device.pcie)?));
    let short = rate.map(|rate| Bytes(rate.0.max(0.0) as u64).short());
    let mut texts = texts(short.as_ref().map(|short| format!("{short}/s")), theme);
    texts.extend(short);
    Figure { share, texts, tone: activity(share, rate.is_some()) }
}

fn texts(text: Option<String>, theme: &Theme) -> Vec<String> {
    vec![text.unwrap_or_else(|| theme.glyphs().absent.to_owned())]
}

/// Bytes a second that the link carries in one direction, less what its line code takes.
fn capacity(link: &Link) -> Option<f64> {
    let lane = match link.generation? {
        1 => 0.25e9,
        2 => 0.5e9,
        3 => 0.985e9,
        4 => 1.969e9,
        5 => 3.938e9,
        6 => 7.563e9,
        _ => return None,
    };
    Some(lane * f64::from(link.width?)).filter(|capacity| *capacity > 0.0)
}

/// Much is bad.
fn heat(share: Option<f64>, is_there: bool) -> Tone {
    match share {
        Some(share) => Theme::heat_tone(share),
        None if is_there => Tone::Plain,
        None => Tone::Faint,
    }
}

/// Much is neither good nor bad.
fn activity(share: Option<f64>, is_there: bool) -> Tone {
    match share {
        Some(share) if share >= 0.5 => Tone::Good,
        Some(share) if share > 0.0 => Tone::Buffers,
        None if is_there => Tone::Plain,
        _ => Tone::Faint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use show::example;

    fn texts(device: &Device, settings: Settings) -> String {
        let state = State::new(settings, true);
        let text = |metric: &Metric| {
            let figure = of(device, *metric, &state);
            let share = figure.share.map_or("–".into(), |share| format!("{share:.2}"));
            format!("{share} {:?} {:?}\n", figure.texts, figure.tone)
        };
        ALL.iter().map(text).collect()
    }

    #[test]
    fn every_figure_is_a_part_of_its_limit() {
        let machine = example::machine();
        expect_test::expect![[r#"
            0.60 ["54°C", "54"] Good
            0.43 ["65W", "65"] Good
            1.00 ["1350 MHz", "1350"] Good
            0.39 ["≥12.4G 39%", "≥12.4G"] Good
            0.13 ["≥24M 13%", "≥24M"] Good
            0.10 ["3G/s", "3G"] Buffers
            0.00 ["4.3M/s", "4.3M"] Buffers
        "#]]
        .assert_eq(&texts(&machine.devices[0], Settings::default()));
        let nothing = Device::new(model::DeviceId::Local(0));
        expect_test::expect![[r#"
            – ["–"] Faint
            – ["–"] Faint
            – ["–"] Faint
            – ["–"] Faint
            – ["–"] Faint
            – ["–"] Faint
            – ["–"] Faint
        "#]]
        .assert_eq(&texts(&nothing, Settings::default()));
        let fahrenheit = Settings { fahrenheit: true, ..Settings::default() };
        assert!(texts(&machine.devices[0], fahrenheit).contains("129°F"));
    }

    #[test]
    fn the_key_goes_round() {
        let mut metric = Metric::AsicTemp;
        for _ in ALL {
            metric = next(metric, 1);
        }
        assert_eq!(metric, Metric::AsicTemp);
        assert_eq!(next(metric, -1), Metric::DeviceToHost);
    }
}
