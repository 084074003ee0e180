//! Sixty steps of one figure. A constant value takes next to nothing, and one value per step takes a third.

use super::MinMeanMax;

pub const STEPS: usize = 60;

/// The steps, as short as can be. NaN is a gap, and never leaves this file.
#[derive(Debug, Default)]
pub enum StepChunk {
    #[default]
    Empty,
    /// The same value in all steps.
    Same(f32),
    /// One value in each.
    Plain(Box<[f32; STEPS]>),
    /// Least, mean and greatest.
    Full(Box<[MinMeanMax; STEPS]>),
}

impl StepChunk {
    pub fn get(&self, at: usize) -> Option<MinMeanMax> {
        let figures = match self {
            StepChunk::Empty => return None,
            StepChunk::Same(value) => [*value; 3],
            StepChunk::Plain(values) => [values[at]; 3],
            StepChunk::Full(values) => values[at],
        };
        (!figures[1].is_nan()).then_some(figures)
    }

    pub fn set(&mut self, at: usize, figures: MinMeanMax) {
        let [least, mean, greatest] = figures;
        let is_plain = least == mean && mean == greatest;
        match self {
            StepChunk::Same(value) if is_plain && *value == mean => return,
            StepChunk::Full(values) => return values[at] = figures,
            StepChunk::Plain(values) if is_plain => return values[at] = mean,
            _ => {}
        }
        let mut values = Box::new([f32::NAN; STEPS]);
        values.iter_mut().enumerate().for_each(|(at, value)| *value = self.get(at).map_or(f32::NAN, |old| old[1]));
        *self = match is_plain {
            true => {
                values[at] = mean;
                StepChunk::Plain(values)
            }
            false => {
                let mut all = Box::new(values.map(|value| [value; 3]));
                all[at] = figures;
                StepChunk::Full(all)
            }
        };
    }

    /// Leaves a gap from there on.
    pub fn cut(&mut self, from: usize) {
        match self {
            StepChunk::Empty => {}
            StepChunk::Same(value) => {
                let mut values = Box::new([*value; STEPS]);
                values[from..].fill(f32::NAN);
                *self = StepChunk::Plain(values);
            }
            StepChunk::Plain(values) => values[from..].fill(f32::NAN),
            StepChunk::Full(values) => values[from..].fill([f32::NAN; 3]),
        }
    }

    /// Makes it as short as it can be, when nothing more will come.
    pub fn close(&mut self) {
        let Some(first @ [value, ..]) = self.get(0) else { return };
        let is_same = (0..STEPS).all(|at| self.get(at) == Some(first)) && first == [value; 3];
        if is_same {
            *self = StepChunk::Same(value);
        }
    }

    /// What it takes beyond its own place.
    pub fn bytes(&self) -> usize {
        match self {
            StepChunk::Empty | StepChunk::Same(_) => 0,
            StepChunk::Plain(values) => size_of_val(&**values),
            StepChunk::Full(values) => size_of_val(&**values),
        }
    }
}
