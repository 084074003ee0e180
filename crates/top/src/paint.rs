//! Drawing into a buffer: text that is cut to its place, frames, bars. Panels have all that they draw with from here.

use super::screen::Cell;
pub use super::screen::{Buffer, Position, Rect, Style};
pub use super::theme::{Theme, Tone};
use show::bar::{Fill, Sizes, toned};
use show::style::Line;
pub use show::text::{Align, wrapped};
use show::text::{clean, cut, fit, width};

/// Writes a text from `x` on, not beyond `end`, and returns where it ended. Harmful characters are replaced.
pub fn put(buf: &mut Buffer, x: u16, y: u16, end: u16, text: &str, style: Style) -> u16 {
    buf.put(x, y, end, &clean(text), style)
}

/// Writes texts in their tones, one behind the other.
pub fn put_line(buf: &mut Buffer, (mut x, y): (u16, u16), end: u16, line: &Line, theme: &Theme) {
    for (text, tone) in line {
        x = put(buf, x, y, end, text, theme.style(*tone));
    }
}

/// Fills the cells from `x` to `end` with one character of one column, and returns where they ended.
pub fn repeat(buf: &mut Buffer, x: u16, y: u16, end: u16, glyph: char, style: Style) -> u16 {
    let cells = buf.part(y, x, end);
    cells.iter_mut().for_each(|cell| _ = cell.set_char(glyph).set_style(style));
    x + cells.len() as u16
}

/// A line across the upper edge of an area, onto which a title is written.
pub fn rule(buf: &mut Buffer, area: Rect, theme: &Theme) {
    if area.height > 0 {
        repeat(buf, area.x, area.y, area.right(), theme.glyphs().horizontal, theme.style(Tone::Border));
    }
}

/// Writes a text into exactly so many columns; what is too long ends in a mark.
pub fn cell(buf: &mut Buffer, (x, y): (u16, u16), columns: u16, text: &str, align: Align, style: Style, theme: &Theme) {
    let text = fit(text, usize::from(columns), align, theme.glyphs().cut);
    put(buf, x, y, x.saturating_add(columns), &text, style);
}

pub fn fill(buf: &mut Buffer, area: Rect, style: Style) {
    buf.set_style(area.intersection(buf.area), style);
}

/// What is inside the frame of an area.
pub fn inside(area: Rect) -> Rect {
    Rect { x: area.x + 1, y: area.y + 1, width: area.width.saturating_sub(2), height: area.height.saturating_sub(2) }
}

/// A place in the middle of an area, of this size where there is room.
pub fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (area.width.min(width), area.height.min(height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// So many rows of an area, and what is below them.
pub fn split(area: Rect, rows: u16) -> (Rect, Rect) {
    let height = rows.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

/// Makes an area blank, whatever was there.
pub fn clear(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.y..area.bottom() {
        buf.part(y, area.x, area.right()).iter_mut().for_each(Cell::reset);
    }
}

/// A frame with a title in its upper edge. Returns what is inside.
pub fn frame(buf: &mut Buffer, area: Rect, title: &str, theme: &Theme) -> Rect {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return Rect { width: 0, height: 0, ..area };
    }
    let (glyphs, border) = (theme.glyphs(), theme.style(Tone::Border));
    let (left, right, top, bottom) = (area.left(), area.right() - 1, area.top(), area.bottom() - 1);
    for y in [top, bottom] {
        repeat(buf, left, y, right + 1, glyphs.horizontal, border);
    }
    for y in top..=bottom {
        buf[(left, y)].set_char(glyphs.vertical).set_style(border);
        buf[(right, y)].set_char(glyphs.vertical).set_style(border);
    }
    for (x, y, glyph) in [
        (left, top, glyphs.top[0]),
        (right, top, glyphs.top[2]),
        (left, bottom, glyphs.bottom[0]),
        (right, bottom, glyphs.bottom[2]),
    ] {
        buf[(x, y)].set_char(glyph).set_style(border);
    }
    if !title.is_empty() && area.width > 6 {
        let title = clean(title);
        let title = cut(&title, usize::from(area.width - 6), glyphs.cut);
        let x = put(buf, left + 1, top, right, " ", border);
        let x = put(buf, x, top, right, &title, theme.style(Tone::Title));
        put(buf, x, top, right, " ", border);
    }
    inside(area)
}

/// A bar in which what is used has this tone; faint is all of it, where it is out of date. `None` draws it as unknown.
pub fn bar(buf: &mut Buffer, at: (u16, u16), columns: u16, sizes: Option<&Sizes>, used: Tone, theme: &Theme) {
    let tone = |fill: Fill| if used == Tone::Faint { used } else { fill.tone(used) };
    let style = show::style::Style { columns: columns.into(), rows: None, color: false, unicode: theme.unicode };
    let line = toned(sizes, columns.into(), tone, &style);
    put_line(buf, at, at.0.saturating_add(columns), &line, theme);
}

/// How many columns a text takes once it is cleaned.
pub fn columns(text: &str) -> u16 {
    width(&clean(text)).min(usize::from(u16::MAX)) as u16
}

/// How many columns a character takes; what would be harmful is drawn as one.
pub fn columns_of(c: char) -> usize {
    columns(c.encode_utf8(&mut [0; 4])).into()
}

#[cfg(test)]
pub use tests::lines;

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a buffer as text.
    pub fn lines(buf: &Buffer) -> String {
        let mut text = String::new();
        for y in buf.area.top()..buf.area.bottom() {
            let mut line = String::new();
            let mut x = buf.area.left();
            while x < buf.area.right() {
                let symbol = buf.symbol(&buf[(x, y)]);
                line += symbol;
                x += (width(symbol) as u16).max(1);
            }
            text += line.trim_end();
            text += "\n";
        }
        text
    }
}
