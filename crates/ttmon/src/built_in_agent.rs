//! The agent that is inside of this program: a release build has one, a debug build has none.

use flate2::read::DeflateDecoder;
use std::io::Read;

/// Deflated by build.rs. Empty where there is none.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.z"));

/// The library's file, unpacked.
pub fn bytes() -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let is_there = !PACKED.is_empty() && DeflateDecoder::new(PACKED).read_to_end(&mut bytes).is_ok();
    is_there.then_some(bytes)
}

/// How much of this program it takes.
pub fn packed_bytes() -> usize {
    PACKED.len()
}
