//! Names of the files of a black box: `<order>.ttmon`, or `<first>-<last>-<step>s.ttmon` for one that replaced others.
//!
//! The order is the time of the first sample in milliseconds since 1970, or one more than that of the file before where the clock
//! went back. What replaces others is complete when it has its name, so that a name alone says which files are to be left out.

use super::EXTENSION;
use std::fmt;
use std::path::Path;

/// What the name of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentName {
    pub first: u64,
    pub last: u64,
    /// Seconds from one snapshot to the next; 1 where none was left out.
    pub step: u32,
}

impl SegmentName {
    pub fn new(order: u64) -> SegmentName {
        SegmentName { first: order, last: order, step: 1 }
    }

    pub fn of(path: &Path) -> Option<SegmentName> {
        let number = |text: &str| match text.len() {
            15 if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        if path.extension()? != EXTENSION {
            return None;
        }
        let stem = path.file_stem()?.to_str()?;
        if let Some(order) = number(stem) {
            return Some(SegmentName::new(order));
        }
        let (first, rest) = stem.split_once('-')?;
        let (last, step) = rest.split_once('-')?;
        let step = step.strip_suffix('s').filter(|step| step.len() <= 5 && !step.starts_with(['0', '+']))?;
        let name = SegmentName { first: number(first)?, last: number(last)?, step: step.parse().ok()? };
        (name.first <= name.last).then_some(name)
    }

    /// Whether it has replaced the other one.
    pub fn replaces(&self, other: &SegmentName) -> bool {
        let is_within = self.first <= other.first && other.last <= self.last;
        is_within && (self.last - self.first, self.step) > (other.last - other.first, other.step)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self == SegmentName::new(self.first) {
            true => write!(f, "{:015}.{EXTENSION}", self.first),
            false => write!(f, "{:015}-{:015}-{}s.{EXTENSION}", self.first, self.last, self.step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_it_replaces() {
        let of = |text: &str| SegmentName::of(Path::new(text));
        let [one, two] = [SegmentName::new(1_794_825_000_000), SegmentName::new(1_794_825_900_000)];
        let merged = SegmentName { first: one.first, last: two.first, step: 1 };
        let thinned = SegmentName { step: 10, ..merged };
        assert_eq!(one.to_string(), "001794825000000.ttmon");
        assert_eq!(thinned.to_string(), "001794825000000-001794825900000-10s.ttmon");
        for name in [one, two, merged, thinned] {
            assert_eq!(of(&name.to_string()), Some(name));
            assert!(!name.replaces(&name));
        }
        assert!(merged.replaces(&one) && merged.replaces(&two) && thinned.replaces(&merged));
        assert!(!one.replaces(&two) && !one.replaces(&merged) && !merged.replaces(&thinned));
        for other in ["1.ttmon", "night.ttmon", "001794825000000.tmp", "001794825000000", "a-b-c.ttmon"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(of("001794825900000-001794825000000-10s.ttmon"), None, "ends before it begins");
        assert_eq!(of("001794825000000-001794825900000-+1s.ttmon"), None);
    }
}
