//! What is chosen in the process table.

use super::column::ProcessColumn;
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
    /// The process that the cursor is on. By pid, so that it stays there when the order changes.
    pub selected: Option<u32>,
    pub scroll: usize,
    /// Columns by which the command is scrolled.
    pub sideways: usize,
    pub tagged: BTreeSet<u32>,
    /// What rows must match, as it was typed.
    pub filter: String,
    /// The filters of this session, the oldest first.
    pub filters: Vec<String>,
    /// Where the cursor is. When its process ends, the one at its place gets it.
    pub at: usize,
    /// Whether the cursor was moved. Until then it stays on the first row.
    pub is_chosen: bool,
    /// Whether the wheel has turned the table away from the cursor.
    pub is_away: bool,
    /// The process that was clicked, and the sample at that time: the second click of a double click is soon after.
    pub clicked: Option<(u32, Timestamp)>,
}

impl ProcessTable {
    /// Keeps the cursor on its process, or at its place.
    pub fn keep(&mut self, rows: &ProcessRows) {
        let followed = self.selected.filter(|_| self.is_chosen).and_then(|pid| rows.position(pid));
        let kept = if self.is_chosen { self.at } else { 0 };
        self.at = followed.unwrap_or(kept.min(rows.len().saturating_sub(1)));
        self.selected = rows.pid_at(self.at);
    }

    /// Puts the cursor on a row, or on the last one.
    pub fn select(&mut self, rows: &ProcessRows, at: usize) {
        self.is_chosen = true;
        self.is_away = false;
        self.at = at.min(rows.len().saturating_sub(1));
        self.selected = rows.pid_at(self.at);
    }

    /// The first row that is drawn when there is room for so many: no row is wasted, and the cursor is in view.
    pub fn first(&self, rows: &ProcessRows, room: usize) -> usize {
        let most = rows.len().saturating_sub(room);
        if self.is_away || room == 0 {
            return self.scroll.min(most);
        }
        self.scroll.max((self.at + 1).saturating_sub(room)).min(self.at).min(most)
    }
}
