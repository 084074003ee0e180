//! Who holds how much device memory: the [`book`] that a process keeps of it, and how it is sent: [`wire`], [`poc`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod book;
pub mod dispatch_telemetry;
pub mod poc;
pub mod wire;

// The only place of the project that maps files; each use of `unsafe` says why it is sound.
#[allow(unsafe_code)]
mod mapping;

pub use mapping::{HeldMapping, Mapping, exit_status, forget_code, hold, prefetch_value};
