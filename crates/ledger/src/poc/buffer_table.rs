//! The live buffers of a process, in parts of a few hundred: however many there are, neither growth nor a copy takes long.

use super::accounts::ReportedBuffer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Id, class and device: what clients call one buffer by. Buffers that differ only in the device are neighbours.
pub type BufferKey = (u64, Class, i32);

/// Buffers, circular buffers and kernels have ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Buffer,
    Circular,
    Kernel,
}

/// Sorted parts, by the key that each began with. A copy shares them, and a change copies one part.
#[derive(Debug, Default, Clone)]
pub struct ReportedBuffers {
    parts: BTreeMap<BufferKey, Arc<Part>>,
    len: usize,
}

type Part = Vec<(BufferKey, ReportedBuffer)>;

/// As many buffers as a part has at the most.
const MOST: usize = 256;
const FIRST: BufferKey = (0, Class::Buffer, i32::MIN);

impl ReportedBuffers {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn contains(&self, key: &BufferKey) -> bool {
        self.part(key).is_some_and(|(_, part)| find(part, key).is_ok())
    }

    /// Changes a buffer. `None` when there is none.
    pub fn change<T>(&mut self, key: &BufferKey, change: impl FnOnce(&mut ReportedBuffer) -> T) -> Option<T> {
        let part = self.parts.range_mut(..=key).next_back()?.1;
        let at = find(part, key).ok()?;
        Some(change(&mut Arc::make_mut(part)[at].1))
    }

    /// Adds a buffer that is not there.
    pub fn insert(&mut self, key: BufferKey, buffer: ReportedBuffer) {
        self.len += 1;
        let Some((_, part)) = self.parts.range_mut(..=key).next_back() else {
            // The first part has all that is before the second.
            self.parts.insert(FIRST, Arc::new(vec![(key, buffer)]));
            return;
        };
        let at = find(part, &key).unwrap_or_else(|at| at);
        if part.len() < MOST {
            Arc::make_mut(part).insert(at, (key, buffer));
            return;
        }
        // What comes in order fills one part after the other; anything else halves them.
        let half = if at == MOST { MOST } else { MOST / 2 };
        let mut rest = Arc::make_mut(part).split_off(half);
        match at.checked_sub(half) {
            Some(at) => rest.insert(at, (key, buffer)),
            None => Arc::make_mut(part).insert(at, (key, buffer)),
        }
        if let Some((first, _)) = rest.first() {
            self.parts.insert(*first, Arc::new(rest));
        }
    }

    pub fn remove(&mut self, key: &BufferKey) -> Option<ReportedBuffer> {
        let (first, part) = self.parts.range_mut(..=key).next_back()?;
        let (first, at) = (*first, find(part, key).ok()?);
        let part = Arc::make_mut(part);
        let (_, buffer) = part.remove(at);
        self.len -= 1;
        // Room is not kept for those that are gone.
        if part.is_empty() && first != FIRST {
            self.parts.remove(&first);
        } else if part.capacity() > 16 && part.len() < part.capacity() / 4 {
            part.shrink_to(part.len() * 2);
        }
        if self.len == 0 {
            self.parts.clear();
        }
        Some(buffer)
    }

    /// The buffers of one id and class, on whichever devices.
    pub fn on_any_device(&self, id: u64, class: Class) -> impl Iterator<Item = BufferKey> {
        let (first, last) = ((id, class, i32::MIN), (id, class, i32::MAX));
        let begin = self.part(&first).map_or(FIRST, |(begin, _)| *begin);
        let parts = self.parts.range(begin..=last).map(|(_, part)| part);
        let keys = parts.flat_map(move |part| part[part.partition_point(|(key, _)| *key < first)..].iter());
        keys.map(|(key, _)| *key).take_while(move |key| *key <= last)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &(BufferKey, ReportedBuffer)> {
        self.parts.values().flat_map(|part| part.iter())
    }

    fn part(&self, key: &BufferKey) -> Option<(&BufferKey, &Arc<Part>)> {
        self.parts.range(..=key).next_back()
    }
}

fn find(part: &Part, key: &BufferKey) -> Result<usize, usize> {
    part.binary_search_by(|(known, _)| known.cmp(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::MemoryKind;
    use proptest::prelude::*;

    fn buffer(bytes: u64) -> ReportedBuffer {
        ReportedBuffer { bytes, kind: MemoryKind::Dram, time: 0, references: 1 }
    }

    #[test]
    fn what_comes_in_order_fills_its_parts() {
        let mut table = ReportedBuffers::default();
        (0..10_000).for_each(|id| table.insert((id, Class::Buffer, 0), buffer(id)));
        assert_eq!((table.len(), table.parts.len()), (10_000, 10_000usize.div_ceil(MOST)));
        assert!(table.parts.values().all(|part| part.len() <= MOST));
    }

    #[test]
    fn buffers_that_are_gone_take_no_room() {
        let mut table = ReportedBuffers::default();
        (0..10_000).for_each(|id| table.insert((id, Class::Buffer, 0), buffer(id)));
        (0..10_000).filter(|id| id % 500 > 0).for_each(|id| _ = table.remove(&(id, Class::Buffer, 0)));
        let room: usize = table.parts.values().map(|part| part.capacity()).sum();
        assert!(table.len() == 20 && room <= 400, "{room}");
        (0..10_000).for_each(|id| _ = table.remove(&(id, Class::Buffer, 0)));
        assert!(table.len() == 0 && table.parts.is_empty());
    }

    #[test]
    fn a_copy_shares_all_parts_but_those_that_change() {
        let mut table = ReportedBuffers::default();
        (0..10_000).for_each(|id| table.insert((id, Class::Buffer, 0), buffer(id)));
        let copy = table.clone();
        table.remove(&(7, Class::Buffer, 0));
        let shared = table.parts.iter().filter(|(key, part)| Arc::ptr_eq(part, &copy.parts[key])).count();
        assert_eq!((shared, copy.len(), table.len()), (table.parts.len() - 1, 10_000, 9_999));
        assert!(copy.contains(&(7, Class::Buffer, 0)) && !table.contains(&(7, Class::Buffer, 0)));
    }

    proptest! {
        #[test]
        fn it_has_what_a_map_has(steps in prop::collection::vec((0u64..900, 0i32..3, 0u8..3), 0..3000)) {
            let (mut table, mut map) = (ReportedBuffers::default(), BTreeMap::new());
            for (at, (id, device, what)) in steps.into_iter().enumerate() {
                let key = (id, if id % 7 == 0 { Class::Kernel } else { Class::Buffer }, device - 1);
                if what == 0 {
                    assert_eq!(table.remove(&key), map.remove(&key));
                } else if !table.contains(&key) {
                    table.insert(key, buffer(at as u64));
                    map.insert(key, buffer(at as u64));
                } else {
                    assert_eq!(table.change(&key, |buffer| buffer.bytes), map.get(&key).map(|buffer| buffer.bytes));
                }
                assert_eq!(table.len(), map.len());
                let same = |other: &BufferKey| (other.0, other.1) == (key.0, key.1);
                assert!(table.on_any_device(key.0, key.1).eq(map.keys().copied().filter(same)));
            }
            assert!(table.iter().copied().eq(map));
        }
    }
}
