//! The screen as data: places, looks, a picture of cells, and what a terminal needs to show the next picture.
//!
//! Thousands of cells are drawn and compared for every picture, which was most of what the monitor did. So a cell is small, of one
//! size, and compared as a whole.

mod buffer;
mod changes;
mod rect;
mod style;

pub use buffer::{Buffer, Cell};
pub use changes::write_changes;
pub use rect::{Position, Rect};
pub use style::{Color, Modifier, Style};
