//! The tests of the HTTP answers, in one program.

#![allow(clippy::unwrap_used)]

mod api;
mod hostile;
mod http2;
mod names;
mod support;
