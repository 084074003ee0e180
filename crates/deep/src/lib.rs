//! Deep reads: what the firmware's telemetry table says beyond the driver's files.
//!
//! Reading it means opening the device. That is done only when asked, in a process of its own: a reset or a removal ends that
//! process, and not the monitor. `docs/deep.md` says what it does, what it costs and what can go wrong.
//!
//! - [`client`]: starts the reader process and asks it,
//! - [`protocol`]: what the two say to each other,
//! - [`reader`]: the process: when it opens a node, and what it answers,
//! - [`privileges`]: what it may do,
//! - [`node`]: an open device, [`image`] a text in place of it,
//! - [`walk`]: reads the table through either of them,
//! - [`table`]: the table as it was read,
//! - [`mod@decode`]: what it means, by chip generation and firmware version.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod client;
pub mod decode;
pub mod image;
pub mod node;
pub mod print;
pub mod privileges;
pub mod problem;
pub mod protocol;
pub mod reader;
pub mod table;
pub mod walk;

pub use client::{Reader, Reading, Refused, Request};
pub use decode::decode;
pub use reader::run_reader_if_asked;
pub use table::RawTable;
pub use walk::is_static;
