//! Messages of Cap'n Proto, to bytes and from bytes. Bytes come from another process, so nothing in them is trusted.
//!
//! A message is a header and a list of segments, which consist of 64-bit words, little endian. The header has the number of segments
//! less one and the length of each in words, all 32 bits, filled up to a whole word. A pointer is one word; its two lowest bits are its
//! kind: 0 a struct, 1 a list, 2 a place in another segment, 3 a capability. Nothing here follows pointers recursively.

use std::cell::Cell;

/// The longest message that is read, in bytes: what the reference implementation reads by default. A full table of launches has
/// 0.7 MiB, and half a kilobyte more for each tensor where tensors are recorded.
pub const LONGEST: usize = 64 << 20;
/// As many segments as the reference implementation accepts.
const MOST_SEGMENTS: usize = 512;
const WORD: usize = 8;

/// Why bytes are no message, or a part of it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The header says so.
    #[error("it is longer than 64 MiB")]
    TooLong,
    /// The header says so.
    #[error("it has too many segments")]
    Segments,
    /// Something would begin or end outside of its segment.
    #[error("a pointer leads outside of it")]
    Bounds,
    /// A list in the place of a struct, and the like.
    #[error("a pointer is not of the expected kind")]
    Kind,
    /// Many pointers lead to the same words.
    #[error("its pointers refer to more than it holds")]
    Traversal,
}

type Result<T> = std::result::Result<T, MessageError>;

/// The length in bytes of the message that begins here. `None` while the header is not complete.
pub fn length(bytes: &[u8]) -> Result<Option<usize>> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let Some(segments) = number(0).map(|last| last.saturating_add(1)) else { return Ok(None) };
    if segments > MOST_SEGMENTS {
        return Err(MessageError::Segments);
    }
    let mut length = (4 * (1 + segments)).next_multiple_of(WORD);
    for segment in 0..segments {
        let Some(words) = number(4 * (1 + segment)) else { return Ok(None) };
        length = length.saturating_add(words.saturating_mul(WORD));
        if length > LONGEST {
            return Err(MessageError::TooLong);
        }
    }
    Ok(Some(length))
}

/// A whole message.
#[derive(Debug)]
pub struct Message<'a> {
    segments: Vec<&'a [u8]>,
    /// How many more words may be looked at. Each is looked at once or twice, unless pointers share it.
    left: Cell<u64>,
}

impl<'a> Message<'a> {
    /// Finds the segments of a message that is there to its end.
    pub fn new(bytes: &'a [u8]) -> Result<Message<'a>> {
        let bytes = length(bytes)?.and_then(|length| bytes.get(..length)).ok_or(MessageError::Bounds)?;
        let number = |at: usize| bytes.get(at..at + 4).map_or(0, |word| word.iter().rev().fold(0, shifted)) as usize;
        let count = number(0) + 1;
        let mut at = (4 * (1 + count)).next_multiple_of(WORD);
        let mut segments = Vec::with_capacity(count);
        for segment in 0..count {
            let end = at + WORD * number(4 * (1 + segment));
            segments.push(bytes.get(at..end).ok_or(MessageError::Bounds)?);
            at = end;
        }
        let left = Cell::new(2 * (bytes.len() / WORD) as u64 + 64);
        Ok(Message { segments, left })
    }

    /// The struct that the message consists of.
    pub fn root(&self) -> Result<Struct<'_>> {
        self.structure(0, 0)
    }

    fn word(&self, segment: usize, at: usize) -> Result<u64> {
        let words = self.segments.get(segment).ok_or(MessageError::Bounds)?;
        let bytes = words.get(at.saturating_mul(WORD)..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(MessageError::Bounds)
    }

    /// Counts words that are looked at, which must be in their segment.
    fn take(&self, segment: usize, at: usize, words: usize) -> Result<()> {
        let all = self.segments.get(segment).map_or(0, |segment| segment.len() / WORD);
        if at.checked_add(words).is_none_or(|end| end > all) {
            return Err(MessageError::Bounds);
        }
        let left = self.left.get().checked_sub(words as u64 + 1).ok_or(MessageError::Traversal)?;
        self.left.set(left);
        Ok(())
    }

    /// Where a pointer leads, also by way of another segment. `None` where it is null.
    fn follow(&self, segment: usize, at: usize) -> Result<Option<Target>> {
        let pointer = self.word(segment, at)?;
        if pointer == 0 {
            return Ok(None);
        }
        if pointer & 3 != FAR {
            return Target::near(segment, at, pointer).map(Some);
        }
        let (segment, at) = far(pointer);
        let landing = self.word(segment, at)?;
        if pointer & 4 == 0 {
            return Target::near(segment, at, landing).map(Some);
        }
        // Two words: where it is, and what it is.
        let tag = self.word(segment, at + 1)?;
        if landing & 7 != FAR || tag & 3 > LIST {
            return Err(MessageError::Kind);
        }
        let (segment, at) = far(landing);
        Ok(Some(Target { segment, at, tag }))
    }

    fn structure(&self, segment: usize, at: usize) -> Result<Struct<'_>> {
        let Some(Target { segment, at, tag }) = self.follow(segment, at)? else {
            return Ok(Struct { message: self, segment: 0, at: 0, size: StructSize::default() });
        };
        if tag & 3 != STRUCT {
            return Err(MessageError::Kind);
        }
        let size = StructSize::of(tag);
        self.take(segment, at, size.words())?;
        Ok(Struct { message: self, segment, at, size })
    }
}

fn shifted(number: u32, byte: &u8) -> u32 {
    number << 8 | u32::from(*byte)
}

const STRUCT: u64 = 0;
const LIST: u64 = 1;
const FAR: u64 = 2;

/// The segment and word that a far pointer names.
fn far(pointer: u64) -> (usize, usize) {
    ((pointer >> 32) as usize, (pointer as u32 >> 3) as usize)
}

/// Where something is, and the pointer that says what it is.
struct Target {
    segment: usize,
    at: usize,
    tag: u64,
}

impl Target {
    fn near(segment: usize, at: usize, pointer: u64) -> Result<Target> {
        if pointer & 3 > LIST {
            return Err(MessageError::Kind);
        }
        // Thirty bits with a sign, counted from the word behind the pointer.
        let offset = (pointer as i32 >> 2) as isize;
        let at = (at + 1).checked_add_signed(offset).ok_or(MessageError::Bounds)?;
        Ok(Target { segment, at, tag: pointer })
    }
}

/// How many words of data and how many pointers a struct has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StructSize {
    /// Words of data.
    pub data: u16,
    /// Pointers behind them.
    pub pointers: u16,
}

impl StructSize {
    fn of(tag: u64) -> StructSize {
        StructSize { data: (tag >> 32) as u16, pointers: (tag >> 48) as u16 }
    }

    fn words(self) -> usize {
        usize::from(self.data) + usize::from(self.pointers)
    }
}

/// One struct of a message. What it is too short for is zero or null.
#[derive(Debug, Clone, Copy)]
pub struct Struct<'a> {
    message: &'a Message<'a>,
    segment: usize,
    at: usize,
    size: StructSize,
}

impl<'a> Struct<'a> {
    /// A number of so many bits, which is the `index`th of that size.
    pub fn number(&self, bits: u32, index: u32) -> u64 {
        let first = u64::from(bits) * u64::from(index);
        let word = (first / 64) as usize;
        if word >= usize::from(self.size.data) || bits == 0 {
            return 0;
        }
        let word = self.message.word(self.segment, self.at + word).unwrap_or(0);
        word >> (first % 64) & u64::MAX >> (64 - bits.min(64))
    }

    fn pointer(&self, index: u16) -> Result<Option<Target>> {
        if index >= self.size.pointers {
            return Ok(None);
        }
        self.message.follow(self.segment, self.at + usize::from(self.size.data) + usize::from(index))
    }

    /// The struct that a pointer leads to; one without fields where it is null.
    pub fn structure(&self, index: u16) -> Result<Struct<'a>> {
        if index >= self.size.pointers {
            return Ok(Struct { message: self.message, segment: 0, at: 0, size: StructSize::default() });
        }
        self.message.structure(self.segment, self.at + usize::from(self.size.data) + usize::from(index))
    }

    /// The bytes of a list of single bytes, or of whole words.
    fn bytes(&self, index: u16, element: u64, width: usize) -> Result<&'a [u8]> {
        let Some(Target { segment, at, tag }) = self.pointer(index)? else { return Ok(&[]) };
        if tag & 3 != LIST || tag >> 32 & 7 != element {
            return Err(MessageError::Kind);
        }
        let length = (tag >> 35) as usize * width;
        self.message.take(segment, at, length.div_ceil(WORD))?;
        let bytes = self.message.segments.get(segment).and_then(|words| words.get(at * WORD..at * WORD + length));
        bytes.ok_or(MessageError::Bounds)
    }

    /// A text, which ends with a zero. What is not UTF-8 is replaced.
    pub fn text(&self, index: u16) -> Result<String> {
        match self.bytes(index, 2, 1)? {
            [] => Ok(String::new()),
            [text @ .., 0] => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(MessageError::Kind),
        }
    }

    /// A list of numbers of 64 bits.
    pub fn numbers(&self, index: u16) -> Result<Vec<u64>> {
        let bytes = self.bytes(index, 5, WORD)?;
        Ok(bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?))).collect())
    }

    /// A list of structs of exactly this size.
    pub fn structs(&self, index: u16, size: StructSize) -> Result<Structs<'a>> {
        let message = self.message;
        let Some(Target { segment, at, tag }) = self.pointer(index)? else {
            return Ok(Structs { message, segment: 0, at: 0, size, count: 0 });
        };
        if tag & 3 != LIST || tag >> 32 & 7 != 7 {
            return Err(MessageError::Kind);
        }
        let words = (tag >> 35) as usize;
        message.take(segment, at, words + 1)?;
        // The first word has the form of a pointer to a struct: its offset is how many there are.
        let first = message.word(segment, at)?;
        let count = (first as u32 >> 2) as usize;
        if first & 3 != STRUCT || StructSize::of(first) != size {
            return Err(MessageError::Kind);
        }
        if size.words().checked_mul(count).is_none_or(|all| all > words) {
            return Err(MessageError::Bounds);
        }
        Ok(Structs { message, segment, at: at + 1, size, count })
    }
}

/// A list of structs of one size.
#[derive(Debug)]
pub struct Structs<'a> {
    message: &'a Message<'a>,
    segment: usize,
    at: usize,
    size: StructSize,
    /// How many there are.
    pub count: usize,
}

impl<'a> Structs<'a> {
    /// The last ones, at most so many.
    pub fn last(&self, most: usize) -> impl Iterator<Item = Struct<'a>> {
        let &Structs { message, segment, at, size, count } = self;
        let place = move |index: usize| at + index * size.words();
        (count.saturating_sub(most)..count).map(move |index| Struct { message, segment, at: place(index), size })
    }
}

/// Writes a message of one segment, each struct behind the one that points to it.
#[derive(Debug)]
pub struct MessageBuilder(Vec<u64>);

impl MessageBuilder {
    /// A message whose root is not written yet: that is pointer 0.
    pub fn new() -> MessageBuilder {
        MessageBuilder(vec![0])
    }

    /// Adds a struct to which the pointer leads. Returns its own first pointer; all are null.
    pub fn structure(&mut self, pointer: usize, data: &[u64], pointers: usize) -> usize {
        let offset = self.0.len() - pointer - 1;
        self.0[pointer] = (offset as u64) << 2 | (data.len() as u64) << 32 | (pointers as u64) << 48;
        self.0.extend(data);
        self.0.extend(std::iter::repeat_n(0, pointers));
        self.0.len() - pointers
    }

    /// The message with its header.
    pub fn bytes(&self) -> Vec<u8> {
        let header = (self.0.len() as u64) << 32;
        std::iter::once(header).chain(self.0.iter().copied()).flat_map(u64::to_le_bytes).collect()
    }
}
