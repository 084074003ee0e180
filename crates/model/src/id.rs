//! How a device is named.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// A device's place on the PCI bus, `0000:01:00.0`, as the kernel spells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PciAddress(pub Arc<str>);

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What people call a device. Sorts as people count, a remote chip behind its gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeviceId {
    /// `/dev/tenstorrent/N`.
    Local(u32),
    /// The second chip of a board (n300 R), reached through the gateway `N`. Written `NR`.
    Remote(u32),
    /// A PCI function that no driver is bound to.
    NoDriver(PciAddress),
}

impl Default for DeviceId {
    fn default() -> DeviceId {
        DeviceId::Local(0)
    }
}

impl DeviceId {
    /// The ordinal `N`, where the device has one of its own.
    pub fn index(&self) -> Option<u32> {
        match self {
            DeviceId::Local(n) => Some(*n),
            DeviceId::Remote(_) | DeviceId::NoDriver(_) => None,
        }
    }

    /// The ordinal of the PCIe device that the chip is reached through: its own, or its gateway's.
    pub fn gateway(&self) -> Option<u32> {
        match self {
            DeviceId::Local(n) | DeviceId::Remote(n) => Some(*n),
            DeviceId::NoDriver(_) => None,
        }
    }

    /// The device of this name: `N`, `NR`, or a PCI address.
    pub fn named(name: &str) -> DeviceId {
        match (name.parse(), name.strip_suffix('R').and_then(|n| n.parse().ok())) {
            (Ok(n), _) => DeviceId::Local(n),
            (_, Some(n)) => DeviceId::Remote(n),
            _ => DeviceId::NoDriver(PciAddress(name.into())),
        }
    }

    fn sort_key(&self) -> (bool, u32, bool, Option<&PciAddress>) {
        match self {
            DeviceId::Local(n) => (false, *n, false, None),
            DeviceId::Remote(n) => (false, *n, true, None),
            DeviceId::NoDriver(address) => (true, 0, false, Some(address)),
        }
    }
}

impl Ord for DeviceId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialOrd for DeviceId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Local(n) => f.pad(&n.to_string()),
            DeviceId::Remote(n) => f.pad(&format!("{n}R")),
            DeviceId::NoDriver(address) => address.fmt(f),
        }
    }
}

/// As two JSON members: `"index": 0, "id": "0"`. A chip without an ordinal has `"index": null`.
impl Serialize for DeviceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("index", &self.index())?;
        map.serialize_entry("id", &self.to_string())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for DeviceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            id: String,
        }
        Ok(DeviceId::named(&Written::deserialize(deserializer)?.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_sort_as_people_count() {
        let mut ids = [
            DeviceId::NoDriver(PciAddress("0000:01:00.0".into())),
            DeviceId::Local(10),
            DeviceId::Remote(2),
            DeviceId::Local(9),
            DeviceId::Local(2),
        ];
        ids.sort();
        assert_eq!(ids.map(|id| id.to_string()), ["2", "2R", "9", "10", "0000:01:00.0"]);
    }

    #[test]
    fn names_survive_json() {
        for id in [DeviceId::Local(3), DeviceId::Remote(3), DeviceId::NoDriver(PciAddress("0000:01:00.0".into()))] {
            let text = serde_json::to_string(&id).unwrap();
            assert_eq!(serde_json::from_str::<DeviceId>(&text).unwrap(), id, "{text}");
        }
    }
}
