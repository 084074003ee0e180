//! A chip's memory as a text, in place of a device: of simulated machines, and in tests.
//!
//! One word per line, by the address that the ARC processor has for it:
//!
//! ```text
//! # The registers with the addresses of the table and of its values (Blackhole).
//! 0x80030434 = 0x10001000
//! 0x80030430 = 0x10001120
//! # Version, number of entries, entries (tag, and offset of the value << 16), values.
//! 0x10001000 = 0x100
//! ```
//!
//! A word that is not there is 0, so an empty file is a chip that has published no table. Of two lines for a word the first counts.

use crate::problem::Problem;
use crate::walk::Memory;
use model::DeepUnavailable;

/// The longest text that is read.
pub const LONGEST: usize = 64 << 10;

/// A text that was checked. Each read looks for its line: there are few.
pub struct Image<'a>(&'a [u8]);

impl<'a> Image<'a> {
    /// The image of a text.
    pub fn new(text: &'a [u8]) -> Result<Image<'a>, Problem> {
        let is_known = |line: &[u8]| line.is_empty() || line.starts_with(b"#") || word(line).is_some();
        match lines(text).position(|line| !is_known(line)) {
            Some(line) => {
                Err(Problem::found(DeepUnavailable::BadTable, "not the image of a chip: line", line as u32 + 1))
            }
            None => Ok(Image(text)),
        }
    }
}

impl Memory for Image<'_> {
    fn read32(&mut self, address: u64) -> Result<u32, Problem> {
        let found = lines(self.0).filter_map(word).find(|(at, _)| u64::from(*at) == address);
        Ok(found.map_or(0, |(_, value)| value))
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii)
}

fn word(line: &[u8]) -> Option<(u32, u32)> {
    let (address, value) = std::str::from_utf8(line).ok()?.split_once(" = ")?;
    let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    Some((number(address)?, number(value)?))
}
