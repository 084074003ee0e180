//! Records of a CSV file, one at a time and within limits: fields may be quoted, and quoted ones may have commas, quotes and line ends.

use std::io::{BufRead, Read};

/// A longer record is refused. tt-metal writes the attributes of an operation into one field.
const LONGEST: u64 = 4 << 20;
/// More fields are refused.
const MOST_FIELDS: usize = 1024;

/// Reads one record after the other.
pub struct Records<R> {
    from: R,
    /// Of the line that the last record began in.
    pub line: u64,
    lines: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Records<R> {
    pub fn new(from: R) -> Records<R> {
        Records { from, line: 0, lines: 0, text: Vec::new() }
    }

    /// The next line as it is.
    pub fn line(&mut self) -> Result<Option<String>, String> {
        self.text.clear();
        self.line = self.lines + 1;
        let is_there = self.read_line()?;
        Ok(is_there.then(|| String::from_utf8_lossy(self.text.trim_ascii_end()).into_owned()))
    }

    /// Puts the fields of the next record that is not empty into a list. Returns whether there was one.
    pub fn next(&mut self, fields: &mut Vec<String>) -> Result<bool, String> {
        loop {
            self.text.clear();
            self.line = self.lines + 1;
            if !self.read_line()? {
                return Ok(false);
            }
            // As long as a quote is open, the next line belongs to it.
            let (mut counted, mut is_open) = (0, false);
            loop {
                is_open ^= self.text[counted..].iter().filter(|byte| **byte == b'"').count() % 2 == 1;
                counted = self.text.len();
                if !is_open || !self.read_line()? {
                    break;
                }
            }
            if !self.text.trim_ascii().is_empty() {
                return split(&self.text, fields).map(|()| true).map_err(|what| self.wrong(&what));
            }
        }
    }

    /// Adds a line to the text. Returns whether there was one.
    fn read_line(&mut self) -> Result<bool, String> {
        let room = LONGEST.saturating_sub(self.text.len() as u64);
        let length =
            self.from.by_ref().take(room + 1).read_until(b'\n', &mut self.text).map_err(|error| error.to_string())?;
        if length as u64 > room {
            return Err(self.wrong("it is too long"));
        }
        self.lines += u64::from(length > 0);
        Ok(length > 0)
    }

    /// What is wrong with the record that was read last.
    pub fn wrong(&self, what: &str) -> String {
        format!("line {}: {what}", self.line)
    }
}

fn split(text: &[u8], fields: &mut Vec<String>) -> Result<(), String> {
    fields.clear();
    let mut rest = text.trim_ascii_end();
    loop {
        let (field, after) = field(rest);
        if fields.len() == MOST_FIELDS {
            return Err("it has too many fields".into());
        }
        fields.push(field);
        match after {
            Some(after) => rest = after,
            None => return Ok(()),
        }
    }
}

/// The first field, and what is behind its comma.
fn field(text: &[u8]) -> (String, Option<&[u8]>) {
    let start = text.trim_ascii_start();
    let mut value = Vec::new();
    let mut at = 0;
    if start.first() == Some(&b'"') {
        at = 1;
        while let Some(byte) = start.get(at) {
            match (byte, start.get(at + 1)) {
                (b'"', Some(b'"')) => at += 1,
                (b'"', _) => break,
                _ => {}
            }
            value.push(*byte);
            at += 1;
        }
        at = (at + 1).min(start.len());
    }
    let comma = start[at..].iter().position(|byte| *byte == b',');
    let end = comma.map_or(start.len(), |comma| at + comma);
    value.extend(&start[at..end]);
    let after = comma.map(|_| &start[end + 1..]);
    (String::from_utf8_lossy(value.trim_ascii()).into_owned(), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Result<Vec<Vec<String>>, String> {
        let (mut records, mut fields, mut all) = (Records::new(text), Vec::new(), Vec::new());
        while records.next(&mut fields)? {
            all.push(fields.clone());
        }
        Ok(all)
    }

    #[test]
    fn fields_may_be_quoted_and_records_span_lines() {
        let text = b"a, b ,\"c,\"\"d\"\"\"\n\n1,\"two\nlines\",\r\n";
        assert_eq!(all(text).unwrap(), [["a", "b", "c,\"d\""], ["1", "two\nlines", ""]]);
        assert_eq!(all(b"\"open").unwrap(), [["open"]]);
    }

    #[test]
    fn what_is_too_long_is_refused_with_its_line() {
        let long = [b"a\n".to_vec(), vec![b'x'; LONGEST as usize + 1]].concat();
        assert_eq!(all(&long), Err("line 2: it is too long".into()));
        let many = vec![b','; MOST_FIELDS];
        assert_eq!(all(&many), Err("line 1: it has too many fields".into()));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "[\",\n a]{0,60}") {
            let _ = (all(&bytes), all(text.as_bytes()));
        }
    }
}
