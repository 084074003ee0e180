//! The figures that are kept over time, by the names that the JSON has for them.

use model::Device;

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    AsicTemp,
    Power,
    Aiclk,
    Fan,
    DramUsed,
    L1Used,
    HostToDevice,
    DeviceToHost,
}

impl Name {
    /// In the order of their places.
    pub const ALL: [Name; 8] = [
        Name::AsicTemp,
        Name::Power,
        Name::Aiclk,
        Name::Fan,
        Name::DramUsed,
        Name::L1Used,
        Name::HostToDevice,
        Name::DeviceToHost,
    ];

    /// Name and unit.
    pub fn about(self) -> (&'static str, &'static str) {
        match self {
            Name::AsicTemp => ("asic_temp_celsius", "°C"),
            Name::Power => ("power_watts", "W"),
            Name::Aiclk => ("aiclk_megahertz", "MHz"),
            Name::Fan => ("fan_rpm", "rpm"),
            Name::DramUsed => ("dram_used_bytes", "B"),
            Name::L1Used => ("l1_used_bytes", "B"),
            Name::HostToDevice => ("host_to_device_bytes_per_second", "B/s"),
            Name::DeviceToHost => ("device_to_host_bytes_per_second", "B/s"),
        }
    }

    /// By its name.
    pub fn named(text: &str) -> Option<Name> {
        Name::ALL.into_iter().find(|name| name.about().0 == text)
    }

    /// Whether fractions mean nothing.
    pub fn is_whole(self) -> bool {
        matches!(self, Name::DramUsed | Name::L1Used | Name::HostToDevice | Name::DeviceToHost)
    }

    pub fn of(self, device: &Device) -> Option<f64> {
        match self {
            Name::AsicTemp => device.asic_temp.map(|v| v.0),
            Name::Power => device.power.map(|v| v.0),
            Name::Aiclk => device.aiclk.map(|v| f64::from(v.0)),
            Name::Fan => device.fan.map(|v| f64::from(v.0)),
            Name::DramUsed => device.memory.dram_used.map(|v| v.0 as f64),
            Name::L1Used => device.memory.l1_used.map(|v| v.0 as f64),
            Name::HostToDevice => device.pcie.host_to_device.map(|v| v.0),
            Name::DeviceToHost => device.pcie.device_to_host.map(|v| v.0),
        }
    }
}
