//! All figures in steps of one length, as far back as that is kept.

use super::chunk::{STEPS, StepChunk};
use super::{MinMeanMax, Span};
use std::collections::VecDeque;

/// Slices of sixty steps each, the oldest first.
#[derive(Debug)]
pub struct HistoryLevel {
    pub step: i64,
    /// Slices that are kept.
    most: usize,
    pub slices: VecDeque<Slice>,
    /// What came in the step that is not over yet.
    open: Vec<OpenStep>,
    /// Whether something was here that is gone.
    pub has_dropped: bool,
    /// The step of the last value.
    last_step: i64,
    /// What slices take.
    bytes: usize,
}

#[derive(Debug)]
pub struct Slice {
    /// Its place in time, in lengths of a slice since 1970.
    number: i64,
    /// By the number of the figure.
    chunks: Vec<StepChunk>,
}

#[derive(Debug, Clone, Copy, Default)]
struct OpenStep {
    step: i64,
    count: u32,
    sum: f64,
    least: f32,
    greatest: f32,
}

impl HistoryLevel {
    pub fn new(step: i64, buckets: i64) -> HistoryLevel {
        // One more for the slice that has just begun.
        let most = (buckets as usize).div_ceil(STEPS) + 1;
        HistoryLevel {
            step,
            most,
            slices: VecDeque::new(),
            open: Vec::new(),
            has_dropped: false,
            last_step: i64::MIN,
            bytes: 0,
        }
    }

    /// A value of a figure. When time goes back (a clock was set), what is no longer past is dropped.
    pub fn push(&mut self, time: i64, series: usize, value: f32) {
        let step = time.div_euclid(self.step);
        let (number, at) = (step.div_euclid(STEPS as i64), step.rem_euclid(STEPS as i64) as usize);
        while self.slices.back().is_some_and(|last| last.number > number) {
            self.forget(VecDeque::pop_back);
        }
        if step < self.last_step && self.slices.back().is_some_and(|last| last.number == number) {
            self.change_last(|chunk| chunk.cut(at));
        }
        self.last_step = step;
        if self.slices.back().is_none_or(|last| last.number < number) {
            self.change_last(StepChunk::close);
            self.slices.push_back(Slice { number, chunks: Vec::new() });
            while self.slices.len() > self.most
                || self.slices.front().is_some_and(|first| first.number <= number - self.most as i64)
            {
                self.drop_oldest();
            }
        }
        if self.open.len() <= series {
            self.open.resize(series + 1, OpenStep::default());
        }
        let open = &mut self.open[series];
        if open.step != step || open.count == 0 {
            *open = OpenStep { step, count: 0, sum: 0.0, least: value, greatest: value };
        }
        open.count += 1;
        open.sum += f64::from(value);
        open.least = open.least.min(value);
        open.greatest = open.greatest.max(value);
        // What is between two that are alike shall not differ from them by rounding.
        let mean = ((open.sum / f64::from(open.count)) as f32).clamp(open.least, open.greatest);
        let figures = [open.least, mean, open.greatest];
        let Some(slice) = self.slices.back_mut() else { return };
        let before = slice.chunks.capacity();
        if slice.chunks.len() <= series {
            slice.chunks.reserve_exact(series + 1 - slice.chunks.len());
            slice.chunks.resize_with(series + 1, StepChunk::default);
        }
        self.bytes += (slice.chunks.capacity() - before) * size_of::<StepChunk>();
        let chunk = &mut slice.chunks[series];
        let before = chunk.bytes();
        chunk.set(at, figures);
        self.bytes = self.bytes + chunk.bytes() - before;
    }

    /// Changes the last slice, and counts what it takes then.
    fn change_last(&mut self, change: impl FnMut(&mut StepChunk)) {
        let Some(last) = self.slices.back_mut() else { return };
        let before: usize = last.chunks.iter().map(StepChunk::bytes).sum();
        last.chunks.iter_mut().for_each(change);
        self.bytes = self.bytes + last.chunks.iter().map(StepChunk::bytes).sum::<usize>() - before;
    }

    pub fn drop_oldest(&mut self) {
        self.has_dropped |= !self.slices.is_empty();
        self.forget(VecDeque::pop_front);
    }

    fn forget(&mut self, which: fn(&mut VecDeque<Slice>) -> Option<Slice>) {
        if let Some(slice) = which(&mut self.slices) {
            let inside: usize = slice.chunks.iter().map(StepChunk::bytes).sum();
            self.bytes -= slice.chunks.capacity() * size_of::<StepChunk>() + inside;
        }
    }

    pub fn oldest(&self) -> Option<i64> {
        self.slices.front().map(|slice| slice.number * self.length())
    }

    fn length(&self) -> i64 {
        self.step * STEPS as i64
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.slices.capacity() * size_of::<Slice>() + self.open.capacity() * size_of::<OpenStep>()
    }

    /// Fills in what is known of a figure. The mean of several steps is the mean of their means.
    pub fn gather(&self, series: usize, span: Span, points: &mut [Option<MinMeanMax>]) {
        let mut counts = vec![0u32; points.len()];
        for slice in &self.slices {
            let begin = slice.number * self.length();
            if begin >= span.to || begin + self.length() <= span.from {
                continue;
            }
            let Some(chunk) = slice.chunks.get(series) else { continue };
            for at in 0..STEPS {
                let time = begin + at as i64 * self.step;
                let Some(figures) = chunk.get(at).filter(|_| (span.from..span.to).contains(&time)) else { continue };
                let place = ((time - span.from) / span.step) as usize;
                let (Some(point), Some(count)) = (points.get_mut(place), counts.get_mut(place)) else { continue };
                *count += 1;
                *point = Some(match *point {
                    None => figures,
                    Some([least, mean, greatest]) => {
                        let mean = mean + (figures[1] - mean) / *count as f32;
                        [least.min(figures[0]), mean, greatest.max(figures[2])]
                    }
                });
            }
        }
    }
}
