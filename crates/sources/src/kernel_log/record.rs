//! One record of `/dev/kmsg`: `<priority>,<number>,<µs since boot>,<flags>;<text>`, and lines of ` KEY=value` behind it.
//!
//! The kernel's documentation (ABI/testing/dev-kmsg) allows more values before the `;`, which are skipped. All that is not printable
//! is written as `\xNN`.

/// The longest record that is read; the kernel makes none that is longer.
pub const LONGEST: usize = 8192;

/// A record of the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Zero is an emergency, 7 is for debugging.
    pub level: u8,
    /// Whether the kernel wrote it. A program can write to its log, too.
    pub is_kernel: bool,
    /// Its number, counted from boot.
    pub seq: u64,
    /// Microseconds since boot.
    pub microseconds: u64,
    /// What it says.
    pub text: String,
    /// The PCI function that it is about: ` DEVICE=+pci:0000:01:00.0`.
    pub pci_address: Option<String>,
}

/// Decodes one record. None where it is none, or too long.
pub fn parse(bytes: &[u8]) -> Option<Record> {
    if bytes.len() > LONGEST {
        return None;
    }
    let mut lines = bytes.split(|&b| b == b'\n');
    let first = lines.next()?;
    let end = first.iter().position(|&b| b == b';')?;
    let mut numbers = first[..end].split(|&b| b == b',').map(number);
    let (priority, seq, microseconds) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let pci_address = lines.find_map(|line| line.strip_prefix(b" DEVICE=+pci:")).map(unescaped);
    Some(Record {
        level: (priority & 7) as u8,
        is_kernel: priority < 8,
        seq,
        microseconds,
        text: unescaped(&first[end + 1..]),
        pci_address,
    })
}

fn number(digits: &[u8]) -> Option<u64> {
    crate::dir::decimal(std::str::from_utf8(digits).ok().filter(|digits| !digits.is_empty())?)
}

/// The text with its `\xNN`, as far as it is text.
fn unescaped(bytes: &[u8]) -> String {
    if !bytes.contains(&b'\\') {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        match escaped(rest) {
            Some(byte) => {
                plain.push(byte);
                rest = &rest[4..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn escaped(bytes: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = bytes else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

/// Takes the first whole record off a buffer of records that follow each other, as a plain file has them. A record ends where a
/// line begins that is not indented; the last one may still get such lines, unless there are no more bytes (`is_all`).
pub fn split_off(bytes: &[u8], is_all: bool) -> Option<(&[u8], &[u8])> {
    let mut from = 0;
    while let Some(end) = bytes[from..].iter().position(|&b| b == b'\n') {
        from += end + 1;
        match bytes.get(from) {
            Some(b' ') => {}
            None if !is_all => return None,
            _ => return Some((&bytes[..from - 1], &bytes[from..])),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_level_a_number_a_time_a_text_and_maybe_a_device() {
        let record = parse(
            b"3,423,46739940,-;tenstorrent 0000:01:00.0: Timeout waiting for ARC response\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n",
        );
        let expected = Record {
            level: 3,
            is_kernel: true,
            seq: 423,
            microseconds: 46_739_940,
            text: "tenstorrent 0000:01:00.0: Timeout waiting for ARC response".into(),
            pci_address: Some("0000:01:00.0".into()),
        };
        assert_eq!(record, Some(expected));
        let later = parse(b"6,1,2,-,caller=T1,more;a;b").unwrap();
        assert_eq!((later.text.as_str(), later.pci_address), ("a;b", None));
    }

    #[test]
    fn what_a_program_writes_is_not_the_kernels() {
        assert!(!parse(b"12,1,2,-;tenstorrent 0000:01:00.0: a lie").unwrap().is_kernel);
        assert!(parse(b"4,1,2,-;x").unwrap().is_kernel);
    }

    #[test]
    fn escapes_are_read_and_broken_ones_stay() {
        let text = |bytes: &[u8]| parse(&[b"6,1,2,-;", bytes].concat()).unwrap().text;
        assert_eq!(text(br"a\x0ab\x5c c\xc3\xa9"), "a\nb\\ cé");
        assert_eq!(text(br"\x0 \xzz \"), r"\x0 \xzz \");
        assert_eq!(text(b"\\xff"), "\u{fffd}");
    }

    #[test]
    fn what_is_no_record_is_none() {
        for bytes in
            [&b""[..], b"x", b"6;x", b"6,1;x", b"6,1,2", b",,,;x", b"-6,1,2,-;x", b"6,99999999999999999999,2,-;x"]
        {
            assert_eq!(parse(bytes), None, "{bytes:?}");
        }
        assert_eq!(parse(&[b"6,1,2,-;".to_vec(), vec![b'a'; LONGEST]].concat()), None);
    }

    #[test]
    fn records_of_a_file_are_split_before_lines_that_are_not_indented() {
        let (first, rest) = split_off(b"1;a\n B=c\n2;b\n", false).unwrap();
        assert_eq!((first, rest), (&b"1;a\n B=c"[..], &b"2;b\n"[..]));
        assert_eq!(split_off(rest, false), None);
        assert_eq!(split_off(rest, true), Some((&b"2;b"[..], &b""[..])));
        assert_eq!(split_off(b"half a line", true), None);
    }
}
