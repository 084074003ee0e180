//! What a metric is called, its limit, and how its values are written.

use model::{Bytes, BytesPerSecond, Celsius, Device, Metric, Watts};

/// A metric as it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    pub metric: Metric,
    pub fahrenheit: bool,
    pub unicode: bool,
}

impl Figure {
    pub fn name(&self) -> &'static str {
        match self.metric {
            Metric::AsicTemp => "temperature",
            Metric::Power => "power",
            Metric::Aiclk => "AICLK",
            Metric::Fan => "fan",
            Metric::DramUsed => "DRAM",
            Metric::L1Used => "L1",
            Metric::HostToDevice => "PCIe in",
            Metric::DeviceToHost => "PCIe out",
        }
    }

    /// What it should stay below, or cannot get beyond.
    pub fn limit(&self, device: &Device) -> Option<f64> {
        let limit = match self.metric {
            Metric::AsicTemp => device.asic_temp_max.map(|v| v.0),
            Metric::Power => device.power_max.map(|v| v.0),
            Metric::DramUsed => device.memory.dram_total.map(|v| v.0 as f64),
            Metric::L1Used => device.memory.l1_total.map(|v| v.0 as f64),
            Metric::Aiclk | Metric::Fan | Metric::HostToDevice | Metric::DeviceToHost => None,
        };
        limit.filter(|limit| limit.is_finite() && *limit > 0.0)
    }

    /// Whether the limit is a capacity: a value is so much of it.
    pub fn is_capacity(&self) -> bool {
        matches!(self.metric, Metric::DramUsed | Metric::L1Used)
    }

    /// Whether a chart of it begins at zero.
    pub fn begins_at_zero(&self) -> bool {
        !matches!(self.metric, Metric::AsicTemp | Metric::Aiclk)
    }

    /// Whether its units count by 1024.
    pub fn is_binary(&self) -> bool {
        self.is_capacity() || self.is_rate()
    }

    fn is_rate(&self) -> bool {
        matches!(self.metric, Metric::HostToDevice | Metric::DeviceToHost)
    }

    /// The least that an axis spans, in the unit that is shown.
    pub fn least_span(&self) -> f64 {
        match self.metric {
            Metric::AsicTemp if self.fahrenheit => 20.0,
            Metric::AsicTemp | Metric::Power => 10.0,
            Metric::Aiclk | Metric::Fan => 100.0,
            Metric::DramUsed | Metric::L1Used => 1024.0 * 1024.0,
            Metric::HostToDevice | Metric::DeviceToHost => 1024.0,
        }
    }

    /// How many columns the labels of an axis take.
    pub fn label_columns(&self) -> u16 {
        match self.metric {
            Metric::AsicTemp | Metric::Power => 6,
            Metric::DramUsed | Metric::L1Used | Metric::Aiclk | Metric::Fan => 8,
            Metric::HostToDevice | Metric::DeviceToHost => 10,
        }
    }

    /// A value in the unit that is shown.
    pub fn shown(&self, value: f64) -> f64 {
        if self.is_fahrenheit() { value * 1.8 + 32.0 } else { value }
    }

    fn is_fahrenheit(&self) -> bool {
        self.fahrenheit && self.metric == Metric::AsicTemp
    }

    /// A value with its unit.
    pub fn text(&self, value: f64) -> String {
        match self.metric {
            Metric::AsicTemp if self.is_fahrenheit() => format!("{:.1} {}", self.shown(value), self.unit()),
            Metric::AsicTemp if self.unicode => Celsius(value).to_string(),
            Metric::AsicTemp => format!("{value:.1} {}", self.unit()),
            Metric::Power => Watts(value).to_string(),
            Metric::Aiclk | Metric::Fan => format!("{value:.0} {}", self.unit()),
            Metric::DramUsed | Metric::L1Used => Bytes(value as u64).to_string(),
            Metric::HostToDevice | Metric::DeviceToHost => BytesPerSecond(value).to_string(),
        }
    }

    /// What is written at a round place of an axis, whose value is in the unit that is shown.
    pub fn label(&self, shown: f64) -> String {
        if !self.is_binary() {
            return format!("{shown:.0} {}", self.unit());
        }
        let (mut value, mut prefix) = (shown, 0);
        // Only so far that nothing but a half is left behind the point.
        while value >= 1024.0 && (value / 512.0).fract() == 0.0 && prefix + 1 < PREFIXES.len() {
            value /= 1024.0;
            prefix += 1;
        }
        let decimals = usize::from(value.fract() != 0.0);
        format!("{value:.decimals$} {}{}", PREFIXES[prefix], self.unit())
    }

    fn unit(&self) -> &'static str {
        match self.metric {
            Metric::AsicTemp => match (self.fahrenheit, self.unicode) {
                (false, true) => "°C",
                (false, false) => "C",
                (true, true) => "°F",
                (true, false) => "F",
            },
            Metric::Power => "W",
            Metric::Aiclk => "MHz",
            Metric::Fan => "rpm",
            Metric::DramUsed | Metric::L1Used => "B",
            Metric::HostToDevice | Metric::DeviceToHost => "B/s",
        }
    }
}

const PREFIXES: [&str; 5] = ["", "Ki", "Mi", "Gi", "Ti"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_places_are_written_without_rounding() {
        let label = |metric, value| Figure { metric, fahrenheit: false, unicode: true }.label(value);
        let mib = |n: f64| label(Metric::DramUsed, n * 1024.0 * 1024.0);
        assert_eq!([0.0, 512.0, 1024.0, 1280.0, 1536.0].map(mib), ["0 B", "512 MiB", "1 GiB", "1280 MiB", "1.5 GiB"]);
        assert_eq!(label(Metric::HostToDevice, 65_536.0), "64 KiB/s");
        assert_eq!(label(Metric::Aiclk, 1000.0), "1000 MHz");
    }

    #[test]
    fn degrees_are_those_that_people_chose() {
        let figure = Figure { metric: Metric::AsicTemp, fahrenheit: true, unicode: true };
        assert_eq!((figure.text(54.0), figure.label(figure.shown(90.0))), ("129.2 °F".into(), "194 °F".into()));
        assert_eq!(Figure { unicode: false, ..figure }.text(54.0), "129.2 F");
        assert_eq!(Figure { metric: Metric::Power, ..figure }.text(54.0), "54.0 W");
    }
}
