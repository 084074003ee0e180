//! The protocol of the proof of concept: fixed structs over a Unix stream, one per message, without length or greeting.
//!
//! Instrumented builds of tt-metal, a Python client and a monitor speak it. Three lengths of the struct are in the field, and
//! nothing in a message says which; [`Splitter`] finds out.

mod accounts;
mod buffer_table;
mod frame;
mod splitter;

pub use accounts::{AccountRefusal, Accounts, ClientAccount, Kinds, MostBuffers, ReportedBuffer, Sums};
pub use frame::{DeviceInfo, FrameError, Length, Operation, PocAnswer, PocRequest};
pub use splitter::Splitter;
