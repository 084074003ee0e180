//! How things are shown: text in columns, style and tone, tables, and where memory went. Shared by `smi`, `mem` and `top`.
//!
//! [`text`] and [`style`] come first; [`grid`] draws tables with them, [`figures`] has what stands in their cells, and [`memory`] has
//! the memory of chips as data and as text.

#![cfg_attr(any(test, feature = "examples"), allow(clippy::unwrap_used))]

pub mod activity;
pub mod bar;
pub mod command;
#[cfg(any(test, feature = "examples"))]
pub mod example;
pub mod figures;
pub mod grid;
pub mod labels;
pub mod machine;
pub mod memory;
pub mod operations;
pub mod style;
pub mod terminal;
pub mod text;
