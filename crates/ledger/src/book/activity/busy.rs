//! How long a chip was busy: the length of the union of its records, to the tick, as they arrive.

/// The union of the intervals so far. The latest `N` disjoint ones are kept, so that what arrives late merges exactly. Of an interval that
/// begins before them, only the part after what was forgotten counts.
#[derive(Debug, Clone)]
pub struct BusyUnion<const N: usize> {
    /// Disjoint and in order, with a gap between any two.
    recent: [(u64, u64); N],
    count: usize,
    /// What ended here or before is no longer known in detail.
    floor: u64,
    busy: u64,
}

/// What an interval added to a union.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Added {
    /// Ticks that were not covered before.
    pub ticks: u64,
    /// Whether it began before what is known in detail: the ticks are a lower limit.
    pub is_late: bool,
}

impl<const N: usize> Default for BusyUnion<N> {
    fn default() -> Self {
        BusyUnion { recent: [(0, 0); N], count: 0, floor: 0, busy: 0 }
    }
}

impl<const N: usize> BusyUnion<N> {
    /// The length of the union.
    pub fn busy(&self) -> u64 {
        self.busy
    }

    /// The latest end.
    pub fn end(&self) -> u64 {
        self.list().last().map_or(self.floor, |last| last.1)
    }

    /// Adds an interval, from `start` up to but not including `end`. Each part that is new is passed to `each`.
    pub fn insert(&mut self, start: u64, end: u64, mut each: impl FnMut(u64, u64)) -> Added {
        let is_late = start < self.floor;
        let start = start.max(self.floor);
        if end <= start {
            return Added { ticks: 0, is_late };
        }
        // Those that the new one overlaps or touches become one with it.
        let first = self.list().partition_point(|known| known.1 < start);
        let mut after = first;
        let (mut merged, mut next, mut ticks) = ((start, end), start, 0);
        for known in self.list().iter().skip(first).take_while(|known| known.0 <= end) {
            if next < known.0 {
                ticks += known.0 - next;
                each(next, known.0);
            }
            next = next.max(known.1);
            merged = (merged.0.min(known.0), merged.1.max(known.1));
            after += 1;
        }
        if next < end {
            ticks += end - next;
            each(next, end);
        }
        self.busy = self.busy.saturating_add(ticks);
        self.replace(first, after, merged);
        Added { ticks, is_late }
    }

    /// The length of the union up to a tick. Exact from what is known in detail on.
    pub fn busy_before(&self, tick: u64) -> u64 {
        let after = self.list().iter().rev().take_while(|known| known.1 > tick);
        self.busy.saturating_sub(after.map(|known| known.1 - known.0.max(tick)).sum())
    }

    fn list(&self) -> &[(u64, u64)] {
        self.recent.get(..self.count).unwrap_or(&self.recent)
    }

    /// Puts one interval in the place of those from `first` up to `after`, and forgets the earliest one if there is no room.
    fn replace(&mut self, first: usize, after: usize, merged: (u64, u64)) {
        if after > first {
            self.recent.copy_within(after..self.count, first + 1);
            self.count = self.count + 1 + first - after;
            self.put(first, merged);
        } else if self.count < N {
            self.recent.copy_within(first..self.count, first + 1);
            self.count += 1;
            self.put(first, merged);
        } else if let Some(place) = first.checked_sub(1) {
            self.floor = self.recent.first().map_or(self.floor, |earliest| earliest.1);
            self.recent.copy_within(1..first, 0);
            self.put(place, merged);
        } else {
            self.floor = merged.1;
        }
    }

    fn put(&mut self, at: usize, interval: (u64, u64)) {
        if let Some(place) = self.recent.get_mut(at) {
            *place = interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_overlaps_counts_once() {
        let mut union = BusyUnion::<4>::default();
        let mut parts = Vec::new();
        let mut add = |start, end| {
            parts.clear();
            let added = union.insert(start, end, |from, to| parts.push((from, to)));
            (added.ticks, parts.clone())
        };
        assert_eq!(add(10, 20), (10, vec![(10, 20)]));
        assert_eq!(add(15, 18), (0, vec![]));
        assert_eq!(add(30, 40), (10, vec![(30, 40)]));
        assert_eq!(add(5, 50), (25, vec![(5, 10), (20, 30), (40, 50)]));
        assert_eq!(add(50, 51), (1, vec![(50, 51)]));
        assert_eq!(add(60, 60), (0, vec![]));
        assert_eq!(add(60, 7), (0, vec![]), "an end before its start");
        assert_eq!((union.busy(), union.end(), union.busy_before(45)), (46, 51, 40));
    }

    /// Every tick by itself, and what is known in detail counted again from all of them.
    struct Ticks {
        covered: Vec<bool>,
        floor: usize,
        room: usize,
        lost: usize,
    }

    impl Ticks {
        fn insert(&mut self, start: usize, end: usize) -> bool {
            let is_late = start < self.floor;
            for tick in start.max(self.floor)..end {
                self.covered[tick] = true;
            }
            loop {
                let mut runs = Vec::new();
                for tick in self.floor..self.covered.len() {
                    let goes_on = tick > self.floor && self.covered[tick - 1];
                    if self.covered[tick] && !goes_on {
                        runs.push(tick);
                    }
                }
                if runs.len() <= self.room {
                    return is_late;
                }
                let mut end = runs[0];
                while self.covered[end] {
                    end += 1;
                }
                self.floor = end;
                self.lost += 1;
            }
        }

        fn busy_before(&self, tick: usize) -> u64 {
            self.covered[..tick].iter().filter(|covered| **covered).count() as u64
        }
    }

    fn any_order<const N: usize>(intervals: &[(usize, usize)]) {
        let mut union = BusyUnion::<N>::default();
        let mut ticks = Ticks { covered: vec![false; 1100], floor: 0, room: N, lost: 0 };
        let mut from_parts = 0;
        for &(start, length) in intervals {
            let (first, last) = (start as u64, (start + length) as u64);
            let added = union.insert(first, last, |from, to| from_parts += to - from);
            let is_late = ticks.insert(start, start + length);
            assert_eq!(added.is_late, is_late, "{start}+{length}");
            assert_eq!(union.busy(), ticks.busy_before(1100));
            assert_eq!(union.busy(), from_parts);
            for tick in (ticks.floor..1100).step_by(37) {
                assert_eq!(union.busy_before(tick as u64), ticks.busy_before(tick), "before {tick}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_union_is_that_of_all_ticks(intervals in prop::collection::vec((0usize..1000, 0usize..60), 0..120)) {
            any_order::<64>(&intervals);
        }

        #[test]
        fn and_within_a_bound_what_is_late_counts_from_there_on(
            intervals in prop::collection::vec((0usize..1000, 1usize..9), 0..200),
        ) {
            any_order::<8>(&intervals);
            any_order::<1>(&intervals);
        }

        #[test]
        fn any_numbers_are_fine(intervals in prop::collection::vec((any::<u64>(), any::<u64>()), 0..100)) {
            let mut union = BusyUnion::<4>::default();
            for (start, end) in intervals {
                union.insert(start, end, |from, to| assert!(from < to));
            }
            union.busy_before(1 << 60);
        }
    }
}
