//! What the service serves over HTTP: metrics, an API and a page. It shows what it is given, and asks no device.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod metrics;
