//! Sixty steps of one figure. A constant value takes next to nothing, and one value per step takes a third.

use super::MinMeanMax;

pub const STEPS: usize = 60;

/// The steps, as short as can be: nothing, one value for all steps, one for each, or least, mean and greatest of each. NaN is a gap,
/// and never leaves this file.
#[derive(Debug, Default)]
pub struct StepChunk(Box<[f32]>);

impl StepChunk {
    pub fn get(&self, at: usize) -> Option<MinMeanMax> {
        let figures = match &*self.0 {
            [] => return None,
            [same] => [*same; 3],
            plain if plain.len() == STEPS => [plain[at]; 3],
            full => [full[3 * at], full[3 * at + 1], full[3 * at + 2]],
        };
        (!figures[1].is_nan()).then_some(figures)
    }

    pub fn set(&mut self, at: usize, figures: MinMeanMax) {
        if self.get(at) == Some(figures) {
            return;
        }
        let is_plain = figures == [figures[1]; 3];
        self.widen(if is_plain { 1 } else { 3 });
        match self.0.len() {
            STEPS => self.0[at] = figures[1],
            _ => self.0[3 * at..3 * at + 3].copy_from_slice(&figures),
        }
    }

    /// Makes room for so many values in each step.
    fn widen(&mut self, values: usize) {
        if self.0.len() < values * STEPS {
            let widened = (0..values * STEPS).map(|at| self.get(at / values).map_or(f32::NAN, |old| old[1]));
            self.0 = widened.collect();
        }
    }

    /// Leaves a gap from there on.
    pub fn cut(&mut self, from: usize) {
        if !self.0.is_empty() {
            self.widen(1);
            let values = self.0.len() / STEPS;
            self.0[from * values..].fill(f32::NAN);
        }
    }

    /// Makes it as short as it can be, when nothing more will come.
    pub fn close(&mut self) {
        let Some(first @ [value, ..]) = self.get(0) else { return };
        if first == [value; 3] && (1..STEPS).all(|at| self.get(at) == Some(first)) {
            self.0 = Box::new([value]);
        }
    }

    /// What it takes beyond its own place.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}
