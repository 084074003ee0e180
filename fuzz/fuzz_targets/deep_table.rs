//! Any bytes as the memory of a chip with a telemetry table, and as packets of the reader: `cargo +nightly fuzz run deep_table`.

#![no_main]

use deep::problem::Problem;
use deep::protocol::{Answer, Ask};
use deep::walk::{CSM, Known, MOST_READS, Memory, registers, walk};
use deep::{RawTable, decode, image::Image};
use libfuzzer_sys::fuzz_target;
use model::Arch;
use std::time::Duration;

/// The pointers, and then the words of the chip's memory, from where the table begins.
struct Words<'a> {
    words: &'a [u8],
    table: u32,
    data: u32,
    arch: Arch,
    reads: u32,
}

impl Memory for Words<'_> {
    fn read32(&mut self, address: u64) -> Result<u32, Problem> {
        self.reads += 1;
        assert!(address.is_multiple_of(4));
        let (table, data) = registers(self.arch);
        if address == table {
            return Ok(self.table);
        }
        if address == data {
            return Ok(self.data);
        }
        assert!(CSM.contains(&address), "{address:#x}");
        let at = (address as usize).wrapping_sub(self.table as usize);
        Ok(self.words.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word)))
    }
}

fuzz_target!(|input: &[u8]| {
    let _ = Ask::decode(input);
    let _ = Answer::decode(input);
    for arch in Arch::ALL {
        let (mut known, mut entries) = (Known::default(), Vec::new());
        if let Ok(mut image) = Image::new(input) {
            let _ = walk(&mut image, arch, &mut known, Duration::ZERO, &mut entries);
        }
        let Some((pointers, words)) = input.split_first_chunk::<8>() else { return };
        let word = |at: usize| u32::from_le_bytes([pointers[at], pointers[at + 1], pointers[at + 2], pointers[at + 3]]);
        let mut memory = Words { words, table: word(0), data: word(4), arch, reads: 0 };
        for second in 0..3 {
            memory.reads = 0;
            let walked = walk(&mut memory, arch, &mut known, Duration::from_secs(second), &mut entries);
            assert!(memory.reads <= MOST_READS);
            if let Ok(walked) = walked {
                assert_eq!(walked.reads, memory.reads);
                let table = RawTable { arch, version: walked.version, entries: entries.clone() };
                let _ = decode(&table);
            }
        }
    }
});
