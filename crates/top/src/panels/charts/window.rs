//! Columns and their times.

use model::Timestamp;

/// A stretch of time on so many columns.
///
/// Columns begin at whole multiples of their duration, so that a sample stays in its column while the picture moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The column of the oldest, counted from 1970.
    first: i64,
    dot: i64,
    columns: u16,
    /// Dots side by side in a column.
    dots: u16,
    /// The newest at the left.
    reversed: bool,
}

/// Beyond these there are no times that anybody means, and arithmetic stays safe.
const FARTHEST: i64 = 1 << 53;

impl Window {
    /// The window of about so many milliseconds that ends with the column of `end`.
    pub fn new(end: Timestamp, span_ms: f64, columns: u16, dots: u16, reversed: bool) -> Window {
        let (columns, dots) = (columns.max(1), dots.max(1));
        let dot = (span_ms / f64::from(columns) / f64::from(dots)).round().clamp(1.0, 1e12) as i64;
        let last = end.0.clamp(-FARTHEST, FARTHEST).div_euclid(dot * i64::from(dots));
        Window { first: last - i64::from(columns) + 1, dot, columns, dots, reversed }
    }

    pub fn span_ms(&self) -> i64 {
        self.column_ms() * i64::from(self.columns)
    }

    pub fn column_ms(&self) -> i64 {
        self.dot * i64::from(self.dots)
    }

    /// How many dots lie side by side.
    pub fn dots(&self) -> usize {
        usize::from(self.columns) * usize::from(self.dots)
    }

    /// When a dot begins, the oldest first whatever the direction. One dot further than there are ends the window.
    pub fn dot_time(&self, dot: usize) -> Timestamp {
        Timestamp(self.first * self.column_ms() + dot as i64 * self.dot)
    }

    /// The dot of a time: negative before the window, and beyond the dots after it.
    pub fn dot(&self, time: Timestamp) -> i64 {
        time.0.clamp(-FARTHEST, FARTHEST).div_euclid(self.dot) - self.first * i64::from(self.dots)
    }

    /// The column in which a time is drawn, from the left.
    pub fn column(&self, time: Timestamp) -> Option<u16> {
        let column = self.dot(time).div_euclid(i64::from(self.dots));
        let column = u16::try_from(column).ok().filter(|column| *column < self.columns)?;
        Some(self.mirrored(column))
    }

    /// When the column of a time begins and ends, whether it is in the window or not.
    pub fn around(&self, time: Timestamp) -> (Timestamp, Timestamp) {
        let start = time.0.clamp(-FARTHEST, FARTHEST).div_euclid(self.column_ms()) * self.column_ms();
        (Timestamp(start), Timestamp(start + self.column_ms()))
    }

    /// When a column begins, counted from the left.
    pub fn time(&self, column: u16) -> Timestamp {
        let column = self.mirrored(column.min(self.columns - 1));
        self.dot_time(usize::from(column) * usize::from(self.dots))
    }

    /// When the newest column begins: a window with this end is the same window.
    pub fn end(&self) -> Timestamp {
        self.dot_time(self.dots() - usize::from(self.dots))
    }

    /// The same, moved so that a time comes to lie in a column.
    pub fn with(&self, time: Timestamp, column: u16) -> Window {
        let column = self.mirrored(column.min(self.columns - 1));
        let at = time.0.clamp(-FARTHEST, FARTHEST).div_euclid(self.column_ms());
        Window { first: at - i64::from(column), ..*self }
    }

    fn mirrored(&self, column: u16) -> u16 {
        if self.reversed { self.columns - 1 - column } else { column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sample_stays_in_its_column_until_the_picture_moves_by_a_whole_one() {
        let at = |end| Window::new(Timestamp(end), 20_000.0, 10, 2, false).column(Timestamp(12_500));
        assert_eq!([18_000, 19_000, 19_999, 20_000].map(at), [Some(6), Some(6), Some(6), Some(5)]);
    }

    #[test]
    fn the_newest_is_at_the_side_that_was_asked_for() {
        let column = |reversed| Window::new(Timestamp(60_000), 20_000.0, 10, 2, reversed).column(Timestamp(60_000));
        assert_eq!((column(false), column(true)), (Some(9), Some(0)));
    }

    proptest! {
        #[test]
        fn columns_and_times_are_each_other_s_inverse(
            end in -(1i64 << 52)..1 << 52, span in 0.0..1e12f64, columns in 1u16..500, dots in 1u16..3, reversed: bool,
        ) {
            let window = Window::new(Timestamp(end), span, columns, dots, reversed);
            for column in 0..columns {
                prop_assert_eq!(window.column(window.time(column)), Some(column));
                let last = Timestamp(window.time(column).0 + window.column_ms() - 1);
                prop_assert_eq!(window.column(last), Some(column));
            }
            prop_assert_eq!(window.column(Timestamp(window.dot_time(window.dots()).0)), None);
            prop_assert_eq!(window.column(Timestamp(window.dot_time(0).0 - 1)), None);
            prop_assert_eq!(window.column(Timestamp(end)), Some(if reversed { 0 } else { columns - 1 }));
            let again = Window::new(window.end(), window.span_ms() as f64, columns, dots, reversed);
            prop_assert_eq!(again, window);
        }

        #[test]
        fn times_that_nobody_means_do_no_harm(end in any::<i64>(), span in any::<f64>(), time in any::<i64>()) {
            let window = Window::new(Timestamp(end), span, 80, 2, false);
            window.column(Timestamp(time));
            window.with(Timestamp(time), 7).around(Timestamp(end));
        }

        #[test]
        fn a_moment_that_is_dragged_lies_under_the_pointer(
            end in 0i64..1 << 50, span in 1e3..1e9f64, columns in 1u16..500, dots in 1u16..3, reversed: bool,
            time in 0i64..1 << 50, column in 0u16..500,
        ) {
            let window = Window::new(Timestamp(end), span, columns, dots, reversed);
            let column = column % columns;
            let moved = window.with(Timestamp(time), column);
            prop_assert_eq!(moved.column(Timestamp(time)), Some(column));
            prop_assert_eq!(moved.with(window.time(column), column), window);
        }
    }
}
