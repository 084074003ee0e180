//! What the kernel's log says about a device.

use crate::event::{read_device, write_device};
use crate::{DeviceId, HolderAtEvent, KernelMessageKind, PciAddress, Timestamp, Weight};
use serde::{Deserialize, Serialize};

/// What the kernel's log says about a device. Lines that differ only in their numbers are one message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelMessage {
    /// When the first of these lines was written.
    pub time: Timestamp,
    /// The kernel's number of the last of these lines.
    pub seq: u64,
    /// What it is about.
    pub kind: KernelMessageKind,
    /// How much it matters.
    pub weight: Weight,
    /// The device that it is about, where it is about one.
    #[serde(serialize_with = "write_device", deserialize_with = "read_device")]
    pub device: Option<DeviceId>,
    /// Where that device is, or the bridge that the lines name.
    pub pci_address: Option<PciAddress>,
    /// What it means, in a few words.
    pub meaning: String,
    /// The last of these lines, as the kernel wrote it.
    pub text: String,
    /// How many lines there were.
    pub count: u64,
    /// In how many seconds. Absent where there was one line, or all of them came with one sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The processes that held the device when these lines were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<HolderAtEvent>,
}
