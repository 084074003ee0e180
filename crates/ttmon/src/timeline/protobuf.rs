//! Protobuf's wire format, as far as a trace needs it: numbers, texts and messages inside of messages.

/// A message that is being written.
#[derive(Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

/// How a field is written.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A number that is not negative, an enum's value, or a yes.
    pub fn number(&mut self, field: u32, number: u64) -> &mut Message {
        self.tag(field, VARINT);
        self.varint(number);
        self
    }

    /// A 64-bit number of fixed length.
    pub fn fixed(&mut self, field: u32, number: u64) -> &mut Message {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub fn real(&mut self, field: u32, number: f64) -> &mut Message {
        self.fixed(field, number.to_bits())
    }

    pub fn text(&mut self, field: u32, text: &str) -> &mut Message {
        self.tag(field, LENGTH);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// A message inside of this one.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) -> &mut Message {
        self.tag(field, LENGTH);
        let start = self.bytes.len();
        // Most are shorter than 128 bytes, whose length takes one byte.
        self.bytes.push(0);
        write(self);
        let mut length = self.bytes.len() - start - 1;
        if length < 0x80 {
            self.bytes[start] = length as u8;
            return self;
        }
        let mut prefix = Vec::with_capacity(5);
        while length >= 0x80 {
            prefix.push(length as u8 | 0x80);
            length >>= 7;
        }
        prefix.push(length as u8);
        self.bytes.splice(start..=start, prefix);
        self
    }

    fn tag(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A field as a decoder finds it.
    #[derive(Debug, Clone, PartialEq)]
    pub enum Found<'a> {
        Number(u64),
        Fixed(u64),
        Bytes(&'a [u8]),
    }

    /// The fields of a message, in their order.
    pub fn decode(mut bytes: &[u8]) -> Vec<(u32, Found<'_>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let found = match tag as u32 & 7 {
                VARINT => Found::Number(varint(&mut bytes)),
                FIXED64 => {
                    let (number, rest) = bytes.split_at(8);
                    bytes = rest;
                    Found::Fixed(u64::from_le_bytes(number.try_into().unwrap()))
                }
                LENGTH => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    bytes = rest;
                    Found::Bytes(content)
                }
                other => panic!("kind {other}"),
            };
            fields.push(((tag >> 3) as u32, found));
        }
        fields
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return number;
            }
        }
    }

    #[test]
    fn bytes_are_as_the_format_has_them() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing").message(3, |inner| _ = inner.number(1, 150));
        assert_eq!(message.bytes(), b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
    }

    #[derive(Debug, Clone)]
    enum Value {
        Number(u64),
        Real(f64),
        Text(String),
        Message(Vec<(u32, Value)>),
    }

    fn write(message: &mut Message, values: &[(u32, Value)]) {
        for (field, value) in values {
            match value {
                Value::Number(number) => message.number(*field, *number),
                Value::Real(number) => message.real(*field, *number),
                Value::Text(text) => message.text(*field, text),
                Value::Message(inner) => message.message(*field, |message| write(message, inner)),
            };
        }
    }

    fn check(bytes: &[u8], values: &[(u32, Value)]) {
        let found = decode(bytes);
        assert_eq!(found.len(), values.len());
        for ((field, found), (expected, value)) in found.iter().zip(values) {
            assert_eq!(field, expected);
            match (found, value) {
                (Found::Number(found), Value::Number(number)) => assert_eq!(found, number),
                (Found::Fixed(found), Value::Real(number)) => assert_eq!(*found, number.to_bits()),
                (Found::Bytes(found), Value::Text(text)) => assert_eq!(*found, text.as_bytes()),
                (Found::Bytes(found), Value::Message(inner)) => check(found, inner),
                other => panic!("{other:?}"),
            }
        }
    }

    fn values() -> impl Strategy<Value = Vec<(u32, Value)>> {
        let leaf = prop_oneof![
            any::<u64>().prop_map(Value::Number),
            (0..64u32).prop_map(|shift| Value::Number(1 << shift)),
            any::<f64>().prop_map(Value::Real),
            ".{0,200}".prop_map(Value::Text),
        ];
        let value = leaf.prop_recursive(4, 200, 8, |inner| {
            prop::collection::vec((1u32..20_000, inner), 0..8).prop_map(Value::Message)
        });
        prop::collection::vec((1u32..20_000, value), 0..8)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(values in values()) {
            let mut message = Message::default();
            write(&mut message, &values);
            check(message.bytes(), &values);
        }
    }
}
