//! A text for many clients: written once, and compressed once when a client takes it compressed.

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use std::io::{Read, Write};
use std::sync::OnceLock;

/// Bytes that are shared, and the same with gzip.
#[derive(Debug, Default)]
pub struct SharedText {
    plain: Bytes,
    packed: OnceLock<Option<Bytes>>,
}

/// Less than this is sent as it is: it fits into a packet.
const WORTH_PACKING: usize = 1400;

impl SharedText {
    pub fn new(bytes: impl Into<Bytes>) -> SharedText {
        SharedText { plain: bytes.into(), packed: OnceLock::new() }
    }

    /// What was packed before. Bytes that are no gzip are an empty text.
    pub fn of_packed(packed: &'static [u8]) -> SharedText {
        let mut plain = Vec::new();
        if flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).is_err() {
            return SharedText::default();
        }
        SharedText { plain: plain.into(), packed: Some(Bytes::from_static(packed)).into() }
    }

    pub fn plain(&self) -> Bytes {
        self.plain.clone()
    }

    /// With gzip, where that is worth it.
    pub fn packed(&self) -> Option<Bytes> {
        self.packed.get_or_init(|| pack(&self.plain)).clone()
    }
}

fn pack(bytes: &[u8]) -> Option<Bytes> {
    if bytes.len() < WORTH_PACKING {
        return None;
    }
    // The fastest: what it saves beyond that costs more time than it is worth.
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_the_same_and_what_is_short_is_not_packed() {
        let long = "ttmon ".repeat(1000);
        let text = SharedText::new(long.clone());
        let packed = text.packed().unwrap();
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, long);
        assert!(packed.len() < long.len() / 10, "{}", packed.len());
        assert_eq!(SharedText::new("short").packed(), None);
    }
}
