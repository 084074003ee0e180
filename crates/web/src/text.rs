//! A text that many are sent: written once, and packed once when somebody takes it packed.

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use std::io::Write;
use std::sync::OnceLock;

/// Bytes that are shared, and the same with gzip.
#[derive(Debug, Default)]
pub struct Text {
    plain: Bytes,
    packed: OnceLock<Option<Bytes>>,
}

/// Less than this is sent as it is: it fits into a packet.
const WORTH_PACKING: usize = 1400;

impl Text {
    pub fn new(bytes: impl Into<Bytes>) -> Text {
        Text { plain: bytes.into(), packed: OnceLock::new() }
    }

    /// As it is.
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
    use std::io::Read;

    #[test]
    fn what_is_packed_is_the_same_and_what_is_short_is_not_packed() {
        let long = "ttmon ".repeat(1000);
        let text = Text::new(long.clone());
        let packed = text.packed().unwrap();
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, long);
        assert!(packed.len() < long.len() / 10, "{}", packed.len());
        assert_eq!(Text::new("short").packed(), None);
    }
}
