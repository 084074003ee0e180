//! The operations of a process by name. Looking one up takes no lock.

use super::layout::{OPERATION_NAME, OPERATIONS};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering::Acquire, Ordering::Release};

/// Twice the operations, and some more: so a row of full places stays short.
const PLACES: usize = 2048;

/// The names that have a number.
#[derive(Debug)]
pub(super) struct Names {
    /// Number + 1 of an operation, where its hash leads to or in one of the next places.
    places: Box<[AtomicU16]>,
    names: Box<[OnceLock<Box<[u8]>>]>,
}

impl Names {
    pub fn new() -> Names {
        Names {
            places: (0..PLACES).map(|_| AtomicU16::new(0)).collect(),
            names: (0..OPERATIONS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The number of a name, or the place where it belongs.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Result<u16, Option<usize>> {
        let name = fitting(name);
        let start = hash(name);
        for step in 0..PLACES {
            let at = (start + step) % PLACES;
            let Some(place) = self.places.get(at) else { break };
            let Some(number) = place.load(Acquire).checked_sub(1) else { return Err(Some(at)) };
            let known = self.names.get(usize::from(number)).and_then(OnceLock::get);
            if known.is_some_and(|known| **known == *name) {
                return Ok(number);
            }
        }
        Err(None)
    }

    /// Gives a name its number, at the place that was found. Only one thread at a time may.
    pub fn insert(&self, name: &[u8], number: u16, place: usize) {
        if let (Some(slot), Some(place)) = (self.names.get(usize::from(number)), self.places.get(place)) {
            let _ = slot.set(fitting(name).into());
            place.store(number + 1, Release);
        }
    }
}

/// As much of a name as the book keeps.
fn fitting(name: &[u8]) -> &[u8] {
    name.get(..OPERATION_NAME).unwrap_or(name)
}

/// Spreads names. They are those of the process itself, so that no one has chosen them to collide.
#[inline]
fn hash(name: &[u8]) -> usize {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let words = name.chunks_exact(8);
    let rest = words.remainder();
    let words = words.filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?)));
    let hash = words.fold(name.len() as u64, mix);
    // The last word of a long name overlaps the one before: a step for each byte would cost as much as all the rest.
    let hash = match name.last_chunk::<8>() {
        Some(last) => mix(hash, u64::from_le_bytes(*last)),
        None => rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte))),
    };
    (hash >> 20) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let names = Names::new();
        for number in 0..500u16 {
            let name = format!("Operation{number}");
            let place = names.find(name.as_bytes()).unwrap_err().unwrap();
            names.insert(name.as_bytes(), number, place);
            assert_eq!(names.find(name.as_bytes()), Ok(number));
        }
        assert_eq!(names.find(b"Operation17"), Ok(17));
        assert!(names.find(b"").is_err());
        let long = [b'x'; 300];
        let place = names.find(&long).unwrap_err().unwrap();
        names.insert(&long, 501, place);
        assert_eq!((names.find(&long), names.find(&long[..120])), (Ok(501), Ok(501)), "what the book keeps of it");
    }
}
