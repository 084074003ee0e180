//! A tar file of a few small texts, in the format that POSIX calls ustar.

/// Texts as files of one archive, all of the same time (seconds since 1970).
pub fn archive(files: &[(String, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, contents) in files {
        bytes.extend(header(name, contents.len(), time));
        bytes.extend(contents);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    }
    // Two empty blocks end it.
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    bytes
}

const BLOCK: usize = 512;

fn header(name: &str, size: usize, time: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    // Names are our own, and short.
    put(0, &name[..name.len().min(100)]);
    put(100, "0000600\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, &format!("{:011o}\0", time.min(0o777_7777_7777)));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
