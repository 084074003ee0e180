//! The fixed parts of a recording's file, as `mod.rs` lays them out: plain data to bytes and back, and the limits.

use model::Timestamp;

pub const MAGIC: [u8; 8] = *b"ttmonrec";
/// Ends a file that was finished.
pub const MAGIC_END: [u8; 8] = *b"ttmonend";
/// Begins the index, so that a reader that goes from chunk to chunk does not take it for another one.
pub const MARK_INDEX: [u8; 4] = *b"indx";
/// Version 1 had another meaning of used memory, version 2 had snapshots alone.
pub const VERSION: u32 = 3;
/// The versions that can be read.
pub const READABLE: std::ops::RangeInclusive<u32> = 2..=VERSION;
/// What precedes the facts in the head.
pub const HEAD: usize = 16;
/// What precedes a chunk's frame.
pub const HEADER: usize = 36;
/// What follows the index.
pub const TAIL: usize = 16;

pub const LONGEST_FACTS: usize = 64 << 10;
pub const LONGEST_FRAME: usize = 16 << 20;
pub const LONGEST_TEXT: usize = 64 << 20;
pub const MOST_LINES: u32 = 60;
/// A recording has at most so many chunks: four months, at ten seconds each.
pub const MOST_CHUNKS: usize = 1 << 20;

/// The last moment that the JSON form of a time can hold: the end of the year 9999.
const LATEST: i64 = 253_402_300_799_999;

/// What the lines of a chunk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    Snapshots,
    Log,
}

impl ChunkKind {
    fn mark(self) -> [u8; 4] {
        match self {
            ChunkKind::Snapshots => *b"chnk",
            ChunkKind::Log => *b"logs",
        }
    }
}

/// What is known about a chunk without unpacking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: ChunkKind,
    pub frame: u32,
    pub text: u32,
    /// How many lines it has.
    pub lines: u32,
    pub first: Timestamp,
    pub last: Timestamp,
}

impl Header {
    /// Whether it keeps to all limits.
    pub fn is_sound(&self) -> bool {
        (1..=LONGEST_FRAME).contains(&(self.frame as usize))
            && (1..=LONGEST_TEXT).contains(&(self.text as usize))
            && (1..=MOST_LINES).contains(&self.lines)
            && (0..=self.last.0).contains(&self.first.0)
            && self.last.0 <= LATEST
    }

    pub fn length(&self) -> u64 {
        HEADER as u64 + u64::from(self.frame)
    }

    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.kind.mark());
        bytes[4..8].copy_from_slice(&self.frame.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.text.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.lines.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.last.0.to_le_bytes());
        let sum = checksum(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// None when these bytes are no header, or one that does not keep to the limits.
    pub fn from_bytes(bytes: &[u8; HEADER]) -> Option<Header> {
        let kind = [ChunkKind::Snapshots, ChunkKind::Log].into_iter().find(|kind| bytes[..4] == kind.mark())?;
        if u32_at(bytes, 32) != checksum(&bytes[..32]) {
            return None;
        }
        let time = |at| Timestamp((u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32) as i64);
        let header = Header {
            kind,
            frame: u32_at(bytes, 4),
            text: u32_at(bytes, 8),
            lines: u32_at(bytes, 12),
            first: time(16),
            last: time(24),
        };
        header.is_sound().then_some(header)
    }
}

/// The head of a file. None when the facts are too long.
pub fn head(facts: &str) -> Option<Vec<u8>> {
    let length = u32::try_from(facts.len()).ok().filter(|length| *length as usize <= LONGEST_FACTS)?;
    Some([&MAGIC[..], &VERSION.to_le_bytes(), &length.to_le_bytes(), facts.as_bytes()].concat())
}

/// What ends a file of these chunks.
pub fn index(chunks: &[Header]) -> Vec<u8> {
    let mut bytes = MARK_INDEX.to_vec();
    bytes.extend(chunks.iter().flat_map(|chunk| chunk.to_bytes()));
    let sum = checksum(&bytes);
    bytes.extend((chunks.len() as u32).to_le_bytes());
    bytes.extend(sum.to_le_bytes());
    bytes.extend(MAGIC_END);
    bytes
}

/// FNV-1a, of 32 bits.
pub fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The number at a place, which must be there.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_of_a_header_are_as_documented() {
        let header = Header {
            kind: ChunkKind::Snapshots,
            frame: 0x0102,
            text: 0x0304,
            lines: 5,
            first: Timestamp(6),
            last: Timestamp(0x0708_0000_0000),
        };
        let bytes = header.to_bytes();
        assert_eq!(&bytes[..16], b"chnk\x02\x01\0\0\x04\x03\0\0\x05\0\0\0");
        assert_eq!(bytes[16..32], [6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0]);
        assert_eq!(&Header { kind: ChunkKind::Log, ..header }.to_bytes()[..8], b"logs\x02\x01\0\0");
        assert_eq!(checksum(b"foobar"), 0xbf9c_f968, "the published example");
    }

    #[test]
    fn the_end_is_as_documented() {
        let header =
            Header { kind: ChunkKind::Snapshots, frame: 1, text: 1, lines: 1, first: Timestamp(0), last: Timestamp(0) };
        let bytes = index(&[header; 3]);
        assert_eq!(bytes.len(), 4 + 3 * HEADER + TAIL);
        assert_eq!((&bytes[..4], &bytes[4..4 + HEADER]), (&b"indx"[..], &header.to_bytes()[..]));
        assert_eq!(bytes[bytes.len() - TAIL..][..4], [3, 0, 0, 0]);
        assert!(bytes.ends_with(b"ttmonend"));
        assert_eq!(head("{}\n").unwrap(), b"ttmonrec\x03\0\0\0\x03\0\0\0{}\n");
        assert_eq!(head(&" ".repeat(LONGEST_FACTS + 1)), None);
    }

    #[test]
    fn a_header_beyond_a_limit_is_none() {
        let good =
            Header { kind: ChunkKind::Snapshots, frame: 9, text: 9, lines: 1, first: Timestamp(5), last: Timestamp(7) };
        assert_eq!(Header::from_bytes(&good.to_bytes()), Some(good));
        for bad in [
            Header { frame: 0, ..good },
            Header { frame: LONGEST_FRAME as u32 + 1, ..good },
            Header { text: 0, ..good },
            Header { text: LONGEST_TEXT as u32 + 1, ..good },
            Header { lines: 0, ..good },
            Header { lines: 61, ..good },
            Header { first: Timestamp(8), ..good },
            Header { first: Timestamp(-1), ..good },
            Header { last: Timestamp(i64::MAX), ..good },
        ] {
            assert_eq!(Header::from_bytes(&bad.to_bytes()), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none(bytes: [u8; HEADER]) {
            prop_assert_eq!(Header::from_bytes(&bytes), None);
        }

        #[test]
        fn a_changed_bit_is_noticed(bit in 0..HEADER * 8) {
            let good = Header { kind: ChunkKind::Snapshots, frame: 900, text: 9000, lines: 30, first: Timestamp(5), last: Timestamp(7) };
            let mut bytes = good.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Header::from_bytes(&bytes), None);
        }
    }
}
