//! What is above the rows of a table: its title, and the names of its columns.

use crate::paint::{Align, Buffer, Rect, Theme, Tone, cell, columns as width_of, put, rule};

/// The rows that they take.
pub const HEAD: u16 = 2;

/// For how many rows there is room below them.
pub fn room(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(HEAD))
}

/// A column that has its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed<C> {
    pub column: C,
    pub x: u16,
    pub width: u16,
}

/// The column whose name is at a place. The gap beside it belongs to it: the mark of the sorted column is there.
pub fn column_at<C: Copy>(columns: &[Placed<C>], x: u16) -> Option<C> {
    let hit = columns.iter().rfind(|place| place.x.saturating_sub(1) <= x);
    hit.filter(|place| x <= place.x + place.width).map(|place| place.column)
}

/// The mark of the sorted column.
pub fn direction(theme: &Theme, descending: bool) -> &'static str {
    match (theme.unicode, descending) {
        (true, true) => "▼",
        (true, false) => "▲",
        (false, true) => "v",
        (false, false) => "^",
    }
}

/// The name of a column. The mark of the sorted one is in the gap beside its name, so that nothing moves.
pub fn head<C>(buf: &mut Buffer, y: u16, place: &Placed<C>, head: (&str, Align), mark: Option<&str>, theme: &Theme) {
    let (name, align) = head;
    let style = theme.style(if mark.is_some() { Tone::Title } else { Tone::Faint });
    cell(buf, (place.x, y), place.width, name, align, style, theme);
    let x = match align {
        Align::Left => place.x + (name.len() as u16).min(place.width),
        Align::Right => (place.x + place.width).saturating_sub(name.len() as u16 + 1),
    };
    mark.map(|mark| put(buf, x, y, buf.area.right(), mark, style));
}

/// What is said of a table in its title: a label, which is never cut, and a value.
pub type Remark = ((String, Tone), (String, Tone));

/// A line with the name of the table, how many rows there are, and what is not to be seen otherwise. `part` is at its right.
pub fn title(buf: &mut Buffer, area: Rect, name: &str, shown: &str, remarks: &[Remark], part: &str, theme: &Theme) {
    let (y, end) = (area.y, area.right());
    rule(buf, area, theme);
    let part_x = end.saturating_sub(width_of(part) + 1);
    let mut x = put(buf, area.x + 1, y, end, name, theme.style(Tone::Title));
    x = put(buf, x, y, end, &format!("{shown} "), theme.style(Tone::Strong));
    let left = part_x.saturating_sub(1);
    for ((label, tone), (value, value_tone)) in remarks {
        if x + width_of(label) + 3 < left {
            x = put(buf, x + 1, y, left, &format!(" {label}"), theme.style(*tone));
            x = put(buf, x, y, left, value, theme.style(*value_tone));
            x = put(buf, x, y, left, " ", theme.style(*value_tone));
        }
    }
    put(buf, part_x, y, end, part, theme.style(Tone::Faint));
}

/// Which rows are seen, the first of them this one, when they are not all.
pub fn seen(first: usize, area: Rect, rows: usize) -> Option<String> {
    let seen = room(area).min(rows.saturating_sub(first));
    (seen < rows).then(|| format!(" {}-{} ", first + 1, first + seen))
}
