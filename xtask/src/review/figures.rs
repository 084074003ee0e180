//! Median, ninth decile and largest of many sizes, each with a name.

/// Sizes in order.
pub struct Sizes(Vec<(usize, String)>);

impl Sizes {
    pub fn new(sizes: impl Iterator<Item = (usize, String)>) -> Sizes {
        let mut sizes: Vec<(usize, String)> = sizes.collect();
        sizes.sort();
        Sizes(sizes)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest size that this many percent of all do not exceed; 0 of none.
    pub fn percentile(&self, percent: usize) -> usize {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(0, |(size, _)| *size)
    }

    pub fn sum(&self) -> usize {
        self.0.iter().map(|(size, _)| size).sum()
    }

    pub fn max(&self) -> usize {
        self.0.last().map_or(0, |(size, _)| *size)
    }

    /// The largest five, from the largest down.
    pub fn largest(&self) -> impl Iterator<Item = &(usize, String)> {
        self.0.iter().rev().take(5)
    }

    /// How many are over a limit.
    pub fn over(&self, limit: usize) -> usize {
        self.0.iter().filter(|(size, _)| *size > limit).count()
    }

    /// What share is over a limit, in percent.
    pub fn percent_over(&self, limit: usize) -> f64 {
        100.0 * self.over(limit) as f64 / self.count().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ten_sizes_the_fifth_is_the_median_and_the_ninth_is_the_ninth_decile() {
        let sizes = Sizes::new((1..=10).rev().map(|size| (size * 10, format!("f{size}"))));
        assert_eq!((sizes.percentile(50), sizes.percentile(90), sizes.max()), (50, 90, 100));
        assert_eq!((sizes.over(80), sizes.percent_over(80)), (2, 20.0));
        assert_eq!(sizes.largest().next(), Some(&(100, "f10".to_owned())));
    }

    #[test]
    fn of_nothing_all_is_zero() {
        let sizes = Sizes::new(std::iter::empty());
        assert_eq!((sizes.percentile(50), sizes.max(), sizes.percent_over(1)), (0, 0, 0.0));
    }
}
