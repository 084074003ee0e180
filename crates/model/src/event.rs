//! Something that happened: a state that changed, a reset, an exited process, a fault, a limit that was reached, a line of the kernel.

use crate::{Bytes, DeviceId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub time: Timestamp,
    /// How much it matters.
    pub weight: Weight,
    /// The device that it is about, where it is about one.
    #[serde(serialize_with = "write_device", deserialize_with = "read_device")]
    pub device: Option<DeviceId>,
    /// One sentence for people.
    pub text: String,
    /// The kernel's own words, where it is about these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Box<KernelEvent>>,
}

impl Event {
    /// One that is not from the kernel's log.
    pub fn new(time: Timestamp, weight: Weight, device: Option<DeviceId>, text: String) -> Event {
        Event { time, weight, device, text, kernel: None }
    }
}

named! {
    /// How much an event matters.
    #[derive(PartialOrd, Ord)]
    #[serde(from = "String")]
    pub enum Weight {
        /// Good to know.
        Note = "note",
        /// A problem is over.
        Good = "good",
        /// Worth a look.
        Warning = "warning",
        /// It needs attention now.
        Bad = "bad",
    }
}

/// By its word in JSON. One that a later version has added is a note.
impl From<String> for Weight {
    fn from(word: String) -> Weight {
        Weight::named(&word).unwrap_or(Weight::Note)
    }
}

named! {
    /// What a message of the kernel is about.
    #[derive(PartialOrd, Ord)]
    #[serde(from = "String")]
    pub enum KernelMessageKind {
        Reset = "reset",
        /// The firmware did not answer the driver in time.
        Timeout = "timeout",
        Power = "power",
        Telemetry = "telemetry",
        /// Host memory that a process could not share with the device.
        HostMemory = "host_memory",
        /// A process that held a device was killed, because the host or its container had no memory left.
        OutOfMemory = "out_of_memory",
        PcieError = "pcie_error",
        IommuFault = "iommu_fault",
        /// The firmware's own words, or what the driver says of the firmware.
        Firmware = "firmware",
        /// Lines that could not be read before the kernel overwrote them.
        LostLines = "lost_lines",
        Other = "other",
    }
}

/// By its word in JSON. One that a later version has added is another one.
impl From<String> for KernelMessageKind {
    fn from(word: String) -> KernelMessageKind {
        KernelMessageKind::named(&word).unwrap_or(KernelMessageKind::Other)
    }
}

/// What an event has of the kernel's log, and who held the device at that moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelEvent {
    /// What it is about.
    pub kind: KernelMessageKind,
    /// The last of the lines, as the kernel wrote it.
    pub text: String,
    /// How many lines there were.
    pub count: u64,
    /// The processes that held the device.
    pub held_by: Vec<HolderAtEvent>,
}

/// A process that held a device when something happened to it.
#[expect(missing_docs, reason = "Process describes them")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HolderAtEvent {
    pub pid: u32,
    pub name: Option<String>,
    /// What it held on that device. Absent where that is not known.
    pub bytes: Option<Bytes>,
}

pub(crate) fn write_device<S: Serializer>(device: &Option<DeviceId>, serializer: S) -> Result<S::Ok, S::Error> {
    match device {
        Some(id) => serializer.collect_str(id),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn read_device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DeviceId>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(|name| DeviceId::named(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_json_and_an_unknown_weight_is_a_note() {
        let event = Event::new(Timestamp(1000), Weight::Bad, Some(DeviceId::Remote(2)), "x".into());
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(text, r#"{"time":"1970-01-01T00:00:01.000Z","weight":"bad","device":"2R","text":"x"}"#);
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        let newer = text.replace("bad", "of tomorrow").replace("\"2R\"", "null");
        assert_eq!(
            serde_json::from_str::<Event>(&newer).unwrap(),
            Event { weight: Weight::Note, device: None, ..event }
        );
    }
}
