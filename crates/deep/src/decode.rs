//! What a table means, by chip generation and firmware version.

use crate::RawTable;
use model::Deep;

/// The figures of a table.
pub fn decode(table: &RawTable) -> Deep {
    Deep { tags: table.entries.clone(), ..Deep::default() }
}
