//! What the service serves over HTTP: metrics, an API and a page. It shows what it is given, and asks no device.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod api;
mod events;
pub mod fleet;
mod history;
pub mod metrics;
mod page;
pub mod past;
mod published;
mod server;
mod text;

pub use api::{Ask, Question};
pub use published::{Published, Sample};
pub use server::{Asker, ServerOptions, TlsError, WebServer, certificate};
