//! What a Tenstorrent machine looks like at one moment: plain data, no I/O, no clock.
//!
//! Sources fill a [`Snapshot`]; everything else shows it. What was not measured is `None`, and if reading it was
//! tried and went wrong, [`Snapshot::faults`] says where and why.

#![cfg_attr(test, allow(clippy::unwrap_used))]

/// Defines an enum whose values have one name each, which JSON and queries use: `pub enum Arch { Wormhole = "wormhole", … }`. A value
/// whose name says it all needs no comment.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)]
        $(#[$meta])*
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $value,)+
        }

        impl $type {
            /// All of them, in order.
            pub const ALL: [$type; Self::NAMES.len()] = [$($type::$value),+];
            /// Their names, in the same order.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// As JSON and queries spell it.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<$type> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

mod activity;
mod alert;
mod board;
mod comparison;
mod deep;
mod device;
pub mod duration;
mod engines;
mod event;
mod exit_record;
pub mod figure;
pub mod filter;
mod history;
mod id;
mod identity;
pub mod judgement;
mod kernel_message;
mod known_devices;
mod log_entry;
mod memory_kind;
mod need;
mod operation;
mod process;
mod process_memory;
mod process_owner;
mod rates;
mod selector;
mod snapshot;
mod tag_names;
pub mod text;
pub mod throttle;
mod time;
pub mod topology;
mod units;

pub use activity::{Activity, UtilizationSource, UtilizationUnknown};
pub use alert::{Alert, AlertState, Severity};
pub use board::{Board, Capacity, Version};
pub use comparison::Comparison;
pub use deep::{ClockDecision, ClockLimiter, ClockRaiser, Deep, DeepCounts, DeepUnavailable, SelfTest, TelemetryTag};
pub use device::{Arch, Device, DriverUsed, Firmware, Link, Memory, State};
pub use engines::{EngineCounters, engine_percent};
pub use event::{Event, HolderAtEvent, KernelEvent, KernelMessageKind, Weight};
pub use exit_record::{ExitRecord, ListedBuffer};
pub use history::{History, Series, Stretch};
pub use id::{DeviceId, PciAddress};
pub use identity::{ChipMatch, ChipNumbers, chip_match, chip_of_numbers, chip_of_text, chip_text, chip_with_number};
pub use judgement::Judgement;
pub use kernel_message::KernelMessage;
pub use known_devices::{DeviceKey, KnownDevices, earlier_devices};
pub use log_entry::{LogEntry, OperationTotals, RecordingStart};
pub use memory_kind::MemoryKind;
pub use need::Need;
pub use operation::{Operation, OperationList, OperationOrder, OperationSource};
pub use process::{BankFigures, Exact, Held, KindFigures, Process, Runtime, Source, Unverified, Usage};
pub use process_memory::{ChipMemory, LiveBuffer, ProcessMemory};
pub use process_owner::{ProcessOwner, container_id};
pub use rates::{Counters, Traffic, Transferred, cpu_percent, traffic};
pub use selector::{Selector, chip_numbers};
pub use snapshot::{Fault, Host, SCHEMA, Snapshot};
pub use time::Timestamp;
pub use topology::{EthernetLink, PlacedChip, Topology, TopologyError, TopologySource};
pub use units::{Amperes, Bytes, BytesPerSecond, Celsius, Joules, Megahertz, Rpm, Volts, Watts};
