//! The filter of the process table: the language is [`model::filter`]; the growth of a process comes from its row.

use super::row::Row;
use model::filter::{Filter, FilterContext};
use model::{Process, Snapshot};

/// Whether a filter matches the process of a row.
pub fn matches(filter: &Filter, row: &Row, process: &Process, snapshot: &Snapshot) -> bool {
    filter.matches(process, &FilterContext { snapshot, growth: row.growth })
}
