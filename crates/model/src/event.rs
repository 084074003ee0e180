//! Something that happened: a state that changed, a reset, an exited process, a fault, a limit that was reached.

use crate::{DeviceId, Timestamp};
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

fn write_device<S: Serializer>(device: &Option<DeviceId>, serializer: S) -> Result<S::Ok, S::Error> {
    match device {
        Some(id) => serializer.collect_str(id),
        None => serializer.serialize_none(),
    }
}

fn read_device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DeviceId>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(|name| DeviceId::named(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_json_and_an_unknown_weight_is_a_note() {
        let event =
            Event { time: Timestamp(1000), weight: Weight::Bad, device: Some(DeviceId::Remote(2)), text: "x".into() };
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
