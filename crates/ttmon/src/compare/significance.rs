//! Whether two runs differ by more than their own noise.
//!
//! Samples that follow each other are alike, so they count for less than their number. Each run is cut into blocks, and the values of
//! blocks are compared by Welch's test. What blocks that follow each other still have in common makes the test more careful.

/// Into how many blocks a run is cut.
pub const BLOCKS: usize = 16;
/// Fewer blocks with a value say nothing about noise.
const FEWEST: usize = 6;
/// How often something may be called significant that is noise, in all figures of a comparison together.
const ALPHA: f64 = 0.05;

/// How likely noise alone makes the means differ as much as they do. None where there are too few blocks.
pub fn likelihood(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < FEWEST || b.len() < FEWEST {
        return None;
    }
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (spread_a, spread_b) = (squares(a, mean_a), squares(b, mean_b));
    if spread_a + spread_b <= f64::EPSILON * (mean_a * mean_a + mean_b * mean_b) {
        return Some(if mean_a == mean_b { 1.0 } else { 0.0 });
    }
    let common = in_common(&[(a, mean_a), (b, mean_b)], spread_a + spread_b);
    let (of_a, of_b) = (Error::of(spread_a, a.len(), common), Error::of(spread_b, b.len(), common));
    let variance = of_a.variance + of_b.variance;
    let freedom = variance * variance
        / (of_a.variance * of_a.variance / of_a.freedom + of_b.variance * of_b.variance / of_b.freedom);
    Some(student((mean_a - mean_b).abs() / variance.sqrt(), freedom))
}

/// Which of the likelihoods are significant when all are looked at together, by Holm's method: each with its likelihood corrected.
pub fn corrected(likelihoods: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = likelihoods.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut corrected, mut largest) = (vec![None; likelihoods.len()], 0.0_f64);
    let count = order.len();
    for (rank, (at, p)) in order.into_iter().enumerate() {
        largest = largest.max(p * (count - rank) as f64).min(1.0);
        corrected[at] = Some(largest);
    }
    corrected
}

pub fn is_significant(corrected: Option<f64>) -> bool {
    corrected.is_some_and(|p| p < ALPHA)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// How much blocks that follow each other have in common: their correlation, over both runs, corrected for being estimated from few.
fn in_common(runs: &[(&[f64], f64)], spread: f64) -> f64 {
    let products =
        |values: &[f64], mean: f64| values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
    let correlation = runs.iter().map(|(values, mean)| products(values, *mean)).sum::<f64>() / spread;
    let count = runs.iter().map(|(values, _)| values.len()).sum::<usize>() as f64 / runs.len() as f64;
    (correlation + (1.0 + 3.0 * correlation) / count).clamp(0.0, 0.9)
}

/// How far the mean of a run may be off.
struct Error {
    variance: f64,
    freedom: f64,
}

impl Error {
    fn of(spread: f64, count: usize, common: f64) -> Error {
        let count = count as f64;
        // As many independent blocks would say as much.
        let independent = (count * (1.0 - common) / (1.0 + common)).max(2.0);
        let variance = spread / (count * (1.0 - 1.0 / independent));
        Error { variance: variance / independent, freedom: independent - 1.0 }
    }
}

/// How likely a value of Student's distribution is at least this far from zero. The degrees of freedom are rounded down to an even
/// number, for which a sum of few terms is exact.
fn student(t: f64, freedom: f64) -> f64 {
    let freedom = (2.0 * (freedom / 2.0).floor()).clamp(2.0, 200.0);
    let sine = t / (freedom + t * t).sqrt();
    let cosine_squared = freedom / (freedom + t * t);
    let (mut sum, mut term) = (0.0, 1.0);
    for k in 1..=(freedom / 2.0) as usize {
        sum += term;
        term *= cosine_squared * (2 * k - 1) as f64 / (2 * k) as f64;
    }
    (1.0 - sine * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_s_distribution_is_that_of_the_tables() {
        for (t, freedom, p) in [(4.303, 2.0, 0.05), (2.228, 10.0, 0.05), (2.845, 20.0, 0.01), (3.646, 30.0, 0.001)] {
            assert!((student(t, freedom) - p).abs() < p * 0.002, "{t} {freedom}: {}", student(t, freedom));
        }
        assert_eq!(student(0.0, 7.0), 1.0);
        assert_eq!(student(2.228, 11.9), student(2.228, 10.0));
    }

    #[test]
    fn what_is_constant_differs_or_not() {
        assert_eq!(likelihood(&[5.0; 16], &[5.0; 16]), Some(1.0));
        assert_eq!(likelihood(&[5.0; 16], &[6.0; 16]), Some(0.0));
        assert_eq!(likelihood(&[5.0; 16], &[6.0; 5]), None, "five blocks say nothing about noise");
    }

    #[test]
    fn many_figures_make_each_less_likely_to_be_significant() {
        let corrected = corrected(&[Some(0.02), None, Some(0.01), Some(0.9)]);
        assert_eq!(corrected, [Some(0.04), None, Some(0.03), Some(0.9)]);
        assert!(is_significant(corrected[0]) && !is_significant(corrected[1]) && !is_significant(corrected[3]));
    }

    /// Noise in which each value remembers the ones before, for about so many values.
    fn noise(seed: u64, memory: f64, count: usize) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        let kept = (-1.0 / memory).exp();
        let (mut value, fresh) = (0.0, (1.0 - kept * kept).sqrt());
        let mut next = || {
            let normal: f64 = (0..12).map(|_| uniform()).sum();
            value = kept * value + fresh * normal;
            value
        };
        for _ in 0..200 {
            next();
        }
        (0..count).map(|_| next()).collect()
    }

    fn blocks(values: &[f64]) -> Vec<f64> {
        values.chunks(values.len().div_ceil(BLOCKS)).map(mean).collect()
    }

    #[test]
    fn two_halves_of_noise_rarely_differ_however_long_it_remembers() {
        for memory in [0.5, 5.0, 20.0, 60.0] {
            let found = (0..400).filter(|seed| {
                let noise = noise(*seed, memory, 1280);
                likelihood(&blocks(&noise[..640]), &blocks(&noise[640..])).unwrap() < ALPHA
            });
            let found = found.count();
            // Twenty are expected; a memory of a tenth of a run is more than the test was made for.
            assert!(found <= 32, "{found} of 400 with a memory of {memory}");
        }
    }
}
