//! The agent that is inside of this program: a release build has one, a debug build has none. In the Python package, which has the agent
//! as a file of its own, zeros are in its place.

use flate2::read::DeflateDecoder;
use std::io::Read;

/// Deflated by build.rs, behind a mark. Empty where there is none.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.z"));

const MARK_BYTES: usize = 23;

/// The library's file, unpacked.
pub fn bytes() -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // Zeros are no deflated data.
    DeflateDecoder::new(PACKED.get(MARK_BYTES..)?).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// How much of this program it takes.
pub fn packed_bytes() -> usize {
    PACKED.len()
}
