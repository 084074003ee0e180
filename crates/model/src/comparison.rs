//! How two numbers are compared, in the rules of alerts and in filters.

named! {
    /// How a number is compared with another one.
    pub enum Comparison {
        AtLeast = ">=",
        AtMost = "<=",
        Is = "==",
        IsNot = "!=",
        Above = ">",
        Below = "<",
    }
}

impl Comparison {
    /// What holds when this does not.
    pub fn opposite(self) -> Comparison {
        match self {
            Comparison::AtLeast => Comparison::Below,
            Comparison::AtMost => Comparison::Above,
            Comparison::Is => Comparison::IsNot,
            Comparison::IsNot => Comparison::Is,
            Comparison::Above => Comparison::AtMost,
            Comparison::Below => Comparison::AtLeast,
        }
    }

    /// Whether it holds between two numbers.
    pub fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Comparison::AtLeast => a >= b,
            Comparison::AtMost => a <= b,
            Comparison::Is => a == b,
            Comparison::IsNot => a != b,
            Comparison::Above => a > b,
            Comparison::Below => a < b,
        }
    }
}
