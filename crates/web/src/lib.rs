//! What the service serves over HTTP: metrics, an API and a page. It shows what it is given, and asks no device.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod api;
mod board;
mod events;
mod history;
pub mod metrics;
mod page;
mod server;
mod text;

pub use api::{Ask, Order, Question};
pub use board::{Board, Sample};
pub use server::{Asker, Options, Server, TlsError, certificate};
