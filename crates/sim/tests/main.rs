//! The tests of simulated machines, in one program.

#![allow(clippy::unwrap_used)]

mod incidents;
mod machine;
mod past;
