//! Places on the screen, counted in cells from the upper left corner.

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub x: u16,
    pub y: u16,
}

impl From<(u16, u16)> for Position {
    fn from((x, y): (u16, u16)) -> Position {
        Position { x, y }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
}

impl Rect {
    pub const ZERO: Rect = Rect::new(0, 0, 0, 0);

    pub const fn new(x: u16, y: u16, width: u16, height: u16) -> Rect {
        Rect { x, y, width, height }
    }

    pub const fn left(self) -> u16 {
        self.x
    }

    /// The first column that is not part of it.
    pub const fn right(self) -> u16 {
        self.x.saturating_add(self.width)
    }

    pub const fn top(self) -> u16 {
        self.y
    }

    /// The first row that is not part of it.
    pub const fn bottom(self) -> u16 {
        self.y.saturating_add(self.height)
    }

    pub const fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }

    pub fn contains(self, Position { x, y }: Position) -> bool {
        (self.x..self.right()).contains(&x) && (self.y..self.bottom()).contains(&y)
    }

    /// What is part of both.
    pub fn intersection(self, other: Rect) -> Rect {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let width = self.right().min(other.right()).saturating_sub(x);
        let height = self.bottom().min(other.bottom()).saturating_sub(y);
        Rect { x, y, width, height }
    }
}

#[cfg(test)]
impl std::fmt::Display for Rect {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}x{}+{}+{}", self.width, self.height, self.x, self.y)
    }
}

#[cfg(test)]
impl Rect {
    pub fn intersects(self, other: Rect) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The number of its cells.
    pub fn area(self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }

    /// Its cells, row by row.
    pub fn positions(self) -> impl Iterator<Item = Position> {
        (self.y..self.bottom()).flat_map(move |y| (self.x..self.right()).map(move |x| Position { x, y }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_places_have_in_common_what_both_contain() {
        let (a, b) = (Rect::new(2, 1, 5, 3), Rect::new(4, 0, 10, 3));
        assert_eq!(a.intersection(b), Rect::new(4, 1, 3, 2));
        let both = a.positions().filter(|at| b.contains(*at)).collect::<Vec<_>>();
        assert_eq!(a.intersection(b).positions().collect::<Vec<_>>(), both);
        assert!(a.intersects(b) && !a.intersects(Rect::new(7, 1, 1, 1)));
        assert!(a.intersection(Rect::new(40, 40, 1, 1)).is_empty());
    }

    #[test]
    fn a_place_at_the_edge_of_what_can_be_counted_ends_there() {
        let far = Rect::new(u16::MAX - 1, 0, 9, 1);
        assert_eq!(far.right(), u16::MAX);
        assert_eq!(far.positions().count(), 1);
    }
}
