//! What a chart shows: a field of the table that history keeps, and how its values are written.

use crate::state::TopState;
use crate::unit_text::UnitText;
use model::Device;
use model::figure::device::kept_in_history;
use model::figure::{Field, Judge};
use std::borrow::Cow;

#[derive(Debug, Clone, Copy)]
pub struct ChartFigure {
    pub field: Field<Device>,
    pub text: UnitText,
}

impl ChartFigure {
    pub fn new(field: Field<Device>, state: &TopState) -> ChartFigure {
        ChartFigure { field, text: UnitText::new(field.figure.unit, state) }
    }

    pub fn name(&self) -> Cow<'static, str> {
        self.field.title()
    }

    /// What it should stay below, or cannot get beyond.
    pub fn limit(&self, device: &Device) -> Option<f64> {
        self.field.limit_of(device)
    }

    /// Whether the limit is a capacity: a value is so much of it.
    pub fn is_capacity(&self) -> bool {
        self.field.figure.judge == Judge::Capacity
    }

    /// Its place among all that can be shown, for a colour of its own.
    pub fn place(&self) -> usize {
        kept_in_history().position(|field| field == self.field).unwrap_or(0)
    }
}
