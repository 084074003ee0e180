//! The tests of what is read from the files of a machine, in one program.

#![allow(clippy::unwrap_used)]

mod accounting;
mod activity;
mod any_text;
mod attributes;
mod kernel_log;
mod numbers;
mod regions;
mod relaxed;
mod states;
mod support;
mod variants;
