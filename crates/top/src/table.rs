//! What is chosen in the process table.

use super::column::ProcessColumn;
use super::cursor::Cursor;
use super::rows::ProcessRows;
use super::settings::TopSettings;
use model::Timestamp;
use std::collections::BTreeSet;

/// Sorts by a column, the way people most likely want it; by the same column again, the other way.
pub fn sort_by(settings: &mut TopSettings, column: ProcessColumn) {
    settings.descending = if settings.sort == column { !settings.descending } else { column.is_number() };
    settings.sort = column;
}

/// What is chosen in the process table. Sort, columns and tree are settings.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProcessTable {
    /// The process that the cursor is on, by pid.
    pub cursor: Cursor<u32>,
    /// Columns by which the command is scrolled.
    pub sideways: usize,
    pub tagged: BTreeSet<u32>,
    /// What rows must match, as it was typed.
    pub filter: String,
    /// The filters of this session, the oldest first.
    pub filters: Vec<String>,
    /// The process that was clicked, and the sample at that time: the second click of a double click is soon after.
    pub clicked: Option<(u32, Timestamp)>,
}

impl ProcessTable {
    /// Keeps the cursor on its process, or at its place.
    pub fn keep(&mut self, rows: &ProcessRows) {
        self.cursor.at = self.cursor.place(rows.len(), |pid| rows.position(*pid));
        self.cursor.key = rows.pid_at(self.cursor.at);
    }

    /// Puts the cursor on a row, or on the last one, where there is room for so many rows.
    pub fn select(&mut self, rows: &ProcessRows, at: usize, room: usize) {
        let at = at.min(rows.len().saturating_sub(1));
        self.cursor.select(at, rows.pid_at(at), rows.len(), room);
    }

    /// The first row that is drawn when there is room for so many.
    pub fn first(&self, rows: &ProcessRows, room: usize) -> usize {
        self.cursor.first(self.cursor.at, rows.len(), room)
    }
}
