//! The cursor of a list. It stays on what it is on, and the list is scrolled so that it can be seen.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor<K> {
    /// What it is on. By what it is, so that it stays there when the order changes.
    pub key: Option<K>,
    /// Where that is. When it is gone, what is at its place gets the cursor.
    pub at: usize,
    /// Whether it was moved. Until then it stays on the first row.
    pub is_chosen: bool,
    scroll: usize,
    /// Whether the wheel has turned the list away from it.
    pub is_away: bool,
}

impl<K> Default for Cursor<K> {
    fn default() -> Cursor<K> {
        Cursor { key: None, at: 0, is_chosen: false, scroll: 0, is_away: false }
    }
}

impl<K> Cursor<K> {
    /// On something, wherever that is.
    pub fn on(key: K) -> Cursor<K> {
        Cursor { key: Some(key), is_chosen: true, ..Cursor::default() }
    }

    /// Where it is among so many rows: on what it was on, or at its place.
    pub fn place(&self, rows: usize, position: impl Fn(&K) -> Option<usize>) -> usize {
        let followed = self.key.as_ref().filter(|_| self.is_chosen).and_then(position);
        let kept = if self.is_chosen { self.at } else { 0 };
        followed.unwrap_or(kept.min(rows.saturating_sub(1)))
    }

    /// Puts it on a row, and scrolls so that it can be seen where there is room for so many rows.
    pub fn select(&mut self, at: usize, key: Option<K>, rows: usize, room: usize) {
        *self = Cursor { key, at, is_chosen: true, is_away: false, scroll: self.scroll };
        self.scroll = self.first(at, rows, room);
    }

    /// Turns the list, and leaves the cursor where it is.
    pub fn turn(&mut self, first: usize) {
        self.scroll = first;
        self.is_away = true;
    }

    /// The first row that is drawn when there is room for so many: no row is wasted, and the cursor is in view.
    pub fn first(&self, at: usize, rows: usize, room: usize) -> usize {
        let most = rows.saturating_sub(room);
        if self.is_away || room == 0 {
            return self.scroll.min(most);
        }
        self.scroll.max((at + 1).saturating_sub(room)).min(at).min(most)
    }
}
