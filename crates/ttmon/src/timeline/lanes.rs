//! Slices that overlap are drawn in lanes beside each other: a track of a trace has no two at a time, unless one is inside the other.

/// The lanes of one queue.
#[derive(Debug, Default)]
pub struct Lanes {
    /// Where the last slice of each lane ended.
    ends: Vec<u64>,
}

/// More are never needed by a queue that works. What would need more begins where the last lane is free.
const MOST: usize = 64;

impl Lanes {
    /// The lane for a slice, and when it begins there: where it does begin, unless all lanes are taken.
    pub fn place(&mut self, start: u64, end: u64) -> (usize, u64) {
        if let Some(lane) = self.ends.iter().position(|free| *free <= start) {
            self.ends[lane] = end.max(start);
            return (lane, start);
        }
        if self.ends.len() < MOST {
            self.ends.push(end.max(start));
            return (self.ends.len() - 1, start);
        }
        let free = self.ends.iter().enumerate().min_by_key(|(_, free)| **free);
        let (lane, start) = free.map_or((0, start), |(lane, free)| (lane, (*free).min(end).max(start)));
        self.ends[lane] = self.ends[lane].max(end);
        (lane, start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_follows_shares_a_lane_and_what_overlaps_does_not() {
        let mut lanes = Lanes::default();
        let places = [(0, 10), (10, 20), (15, 30), (20, 25), (18, 19), (30, 30)];
        assert_eq!(places.map(|(start, end)| lanes.place(start, end).0), [0, 0, 1, 0, 2, 0]);
    }

    proptest! {
        #[test]
        fn a_lane_has_no_two_at_a_time(slices in prop::collection::vec((0u64..1000, 0u64..50), 0..200)) {
            let (mut lanes, mut taken) = (Lanes::default(), vec![Vec::new(); MOST]);
            for (start, length) in slices {
                let (lane, placed) = lanes.place(start, start + length);
                prop_assert!(placed >= start && placed <= start + length);
                for (from, to) in &taken[lane] {
                    let is_apart = placed >= *to || start + length <= *from || placed == start + length;
                    prop_assert!(is_apart, "{placed} in {from}..{to}");
                }
                taken[lane].push((placed, start + length));
            }
        }
    }
}
