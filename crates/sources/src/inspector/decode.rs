//! Decoders of foreign bytes, open to fuzzing.

pub use super::launches::{chips, operations};
pub use super::owner::{settings, socket_of, tcp_sockets, unix_listener};
pub use super::schema::{Schema, parse as schema};
