//! Which part of the past the charts show.

use model::Timestamp;

/// What is chosen in the charts. Which figures, and how they are drawn, are settings.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Charts {
    /// How much time is shown, in seconds. None is as much as there are columns for, a sample each.
    pub span: Option<f64>,
    /// Where it ends; the present when absent.
    pub end: Option<Timestamp>,
    pub cursor: Option<Timestamp>,
    /// The first of the figures that is shown.
    pub first: usize,
    /// What the mouse holds.
    pub held: Option<PressedMoment>,
}

/// A moment that was pressed upon and not let go of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PressedMoment {
    pub moment: Timestamp,
    /// Whether it was dragged: then it was no click.
    pub dragged: bool,
}
