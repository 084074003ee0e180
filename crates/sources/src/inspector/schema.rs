//! What the Inspector's schema says of the two calls that are made: numbers of methods, and where fields are.
//!
//! The schema is the text `triage/inspector.capnp` of a ttnn wheel, in Cap'n Proto's language. Method numbers have moved between
//! releases, so they are read from the text beside the library. Only as much of the language is understood as those calls need;
//! anything else is refused by name.

use super::capnp::StructSize;
use std::collections::BTreeMap;

/// The longest text that is taken for a schema, in bytes. That of ttnn 0.81 has 9 KiB.
pub const LONGEST: usize = 1 << 20;

/// The file's number in all releases since 0.74, and the number of its interface, which Cap'n Proto derives from it.
const FILE: &str = "0xf8b5d6e3c2a19074";
const INTERFACE: u64 = 0x880f_ab3d_dc27_f484;

/// What is needed of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The number of the interface `Inspector`.
    pub interface: u64,
    /// The number of `getMeshWorkloadRuntimeEntries`: which operations were launched.
    pub entries: u16,
    /// One element of its list.
    pub entry: LaunchLayout,
    /// The number of `getDevicesInUse`, where the release has it.
    pub devices: Option<u16>,
}

/// Where the fields of a launched operation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchLayout {
    /// Its size.
    pub size: StructSize,
    /// The pointer to `operationName`.
    pub name: u16,
    /// The pointer to `operationParameters`.
    pub parameters: Option<u16>,
    /// `runtimeId`.
    pub runtime_id: Option<NumberField>,
    /// `traceId`.
    pub trace_id: Option<NumberField>,
}

/// Where a number is: the `index`th of its size in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberField {
    /// Its size.
    pub bits: u32,
    /// How many of that size are in front of it.
    pub index: u32,
    /// Its value where all bits are zero.
    pub default: u64,
}

/// Why a schema is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Another file, or another interface in it.
    #[error("it is not the schema {FILE}")]
    Unknown,
    /// Something that is needed is not there.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// Something is there in another form.
    #[error("{0} has a form that this version of ttmon does not know")]
    Form(String),
}

type Result<T> = std::result::Result<T, SchemaError>;

/// Reads a schema.
pub fn parse(text: &str) -> Result<Schema> {
    let tokens = tokens(text);
    if !matches!(&tokens[..], ["@", id, ";", ..] if *id == FILE) {
        return Err(SchemaError::Unknown);
    }
    let declared = Declared::find(&tokens);
    let inspector = declared.interfaces.get("Inspector").ok_or(SchemaError::Missing("interface Inspector"))?;
    let interface = match inspector.head {
        [] => INTERFACE,
        ["@", id] => number(id).ok_or(SchemaError::Unknown)?,
        _ => return Err(form("interface Inspector")),
    };
    let entries = method(inspector.body, "getMeshWorkloadRuntimeEntries")?
        .ok_or(SchemaError::Missing("getMeshWorkloadRuntimeEntries"))?;
    let devices = method(inspector.body, "getDevicesInUse")?;
    if devices.is_some_and(|(_, element)| element != "UInt64") {
        return Err(form("getDevicesInUse"));
    }
    Ok(Schema {
        interface,
        entries: entries.0,
        entry: declared.entry(entries.1)?,
        devices: devices.map(|(number, _)| number),
    })
}

fn form(name: &str) -> SchemaError {
    SchemaError::Form(name.to_owned())
}

/// Words, texts in quotation marks, and single characters. Comments are left out.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let length = match first {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        if first != '#' && !first.is_whitespace() {
            tokens.push(token);
        }
        rest = behind;
    }
    tokens
}

/// A number in the schema's language, decimal or hexadecimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => crate::dir::decimal(text),
    }
}

/// What a file declares outside of everything else.
#[derive(Default)]
struct Declared<'a> {
    structs: BTreeMap<&'a str, Declaration<'a>>,
    interfaces: BTreeMap<&'a str, Declaration<'a>>,
    enums: BTreeMap<&'a str, Declaration<'a>>,
}

/// What stands between the name and the brace, and between the braces.
#[derive(Clone, Copy)]
struct Declaration<'a> {
    head: &'a [&'a str],
    body: &'a [&'a str],
}

impl<'a> Declared<'a> {
    fn find(tokens: &'a [&'a str]) -> Declared<'a> {
        let mut declared = Declared::default();
        let mut rest = tokens;
        while let Some(end) = rest.iter().position(|token| matches!(*token, ";" | "{")) {
            let (statement, behind) = (&rest[..end], &rest[end + 1..]);
            if rest[end] == ";" {
                rest = behind;
                continue;
            }
            let length = block(behind);
            let found = match statement {
                ["struct", ..] => Some(&mut declared.structs),
                ["interface", ..] => Some(&mut declared.interfaces),
                ["enum", ..] => Some(&mut declared.enums),
                _ => None,
            };
            if let (Some(found), [_, name, head @ ..]) = (found, statement) {
                found.insert(name, Declaration { head, body: &behind[..length] });
            }
            rest = behind.get(length + 1..).unwrap_or_default();
        }
        declared
    }

    /// The layout of a struct with the names that a launched operation has.
    fn entry(&self, name: &str) -> Result<LaunchLayout> {
        let declaration = self.structs.get(name).ok_or_else(|| form(name))?;
        let mut fields = fields(declaration.body).ok_or_else(|| form(name))?;
        // By their numbers, which are in use without gaps.
        fields.sort_by_key(|field| field.number);
        if fields.iter().enumerate().any(|(at, field)| field.number != at) {
            return Err(form(name));
        }
        let mut layout = StructLayout::default();
        let mut places = BTreeMap::new();
        for field in &fields {
            let place = self.place(field, &mut layout).ok_or_else(|| form(&format!("{name}.{}", field.name)))?;
            places.insert(field.name, place);
        }
        let number = |name: &str| match places.get(name) {
            Some(FieldPlace::Number(number)) => Some(*number),
            _ => None,
        };
        let text = |name: &str| match places.get(name) {
            Some(FieldPlace::Text(pointer)) => Some(*pointer),
            _ => None,
        };
        Ok(LaunchLayout {
            size: StructSize { data: layout.words, pointers: layout.pointers },
            name: text("operationName").ok_or(SchemaError::Missing("operationName"))?,
            parameters: text("operationParameters"),
            runtime_id: number("runtimeId"),
            trace_id: number("traceId"),
        })
    }

    /// Finds room for a field.
    fn place(&self, field: &SchemaField, layout: &mut StructLayout) -> Option<FieldPlace> {
        let (place, is_number) = match field.kind {
            ["Void"] => (FieldPlace::Nothing, false),
            ["Text"] => (FieldPlace::Text(layout.pointer()?), false),
            ["Data" | "AnyPointer"] | ["List", "(", .., ")"] => {
                layout.pointer()?;
                (FieldPlace::Nothing, false)
            }
            [name] if self.structs.contains_key(name) || self.interfaces.contains_key(name) => {
                layout.pointer()?;
                (FieldPlace::Nothing, false)
            }
            [name] => {
                let bits = self.bits(name)?;
                let index = layout.number(bits)?;
                (FieldPlace::Number(NumberField { bits, index, default: 0 }), true)
            }
            _ => return None,
        };
        match (place, field.default) {
            (place, None) => Some(place),
            // Only those of whole numbers are understood.
            (FieldPlace::Number(place), Some(default)) if is_number => {
                Some(FieldPlace::Number(NumberField { default: number(default)?, ..place }))
            }
            _ => None,
        }
    }

    fn bits(&self, name: &str) -> Option<u32> {
        Some(match name {
            "Bool" => 1,
            "Int8" | "UInt8" => 8,
            "Int16" | "UInt16" => 16,
            "Int32" | "UInt32" | "Float32" => 32,
            "Int64" | "UInt64" | "Float64" => 64,
            name if self.enums.contains_key(name) => 16,
            _ => return None,
        })
    }
}

/// How many tokens a block has whose opening brace was taken, without the closing one.
fn block(tokens: &[&str]) -> usize {
    let mut depth = 0usize;
    let end = tokens.iter().position(|token| match *token {
        "{" => {
            depth += 1;
            false
        }
        "}" if depth == 0 => true,
        "}" => {
            depth -= 1;
            false
        }
        _ => false,
    });
    end.unwrap_or(tokens.len())
}

/// The number of a method without parameters, and the elements of the one list that it returns: `name @7 () -> (entries :List(Entry));`.
fn method<'a>(body: &[&'a str], name: &'static str) -> Result<Option<(u16, &'a str)>> {
    let mut methods = body.split(|token| *token == ";");
    let Some(found) = methods.find(|method| method.first() == Some(&name)) else { return Ok(None) };
    match found {
        [_, "@", id, "(", ")", "-", ">", "(", _, ":", "List", "(", element, ")", ")"] => {
            let number = number(id).and_then(|id| id.try_into().ok()).ok_or_else(|| form(name))?;
            Ok(Some((number, element)))
        }
        _ => Err(form(name)),
    }
}

struct SchemaField<'a> {
    name: &'a str,
    number: usize,
    kind: &'a [&'a str],
    default: Option<&'a str>,
}

/// The fields of a struct, all of the form `name @4 :Type` or `name @4 :Type = 7`. `None` if anything else is in it.
fn fields<'a>(body: &'a [&'a str]) -> Option<Vec<SchemaField<'a>>> {
    let statements = body.split(|token| *token == ";").filter(|statement| !statement.is_empty());
    let field = |statement: &'a [&'a str]| {
        let [name, "@", id, ":", kind @ ..] = statement else { return None };
        let (kind, default) = match kind {
            [kind @ .., "=", default] => (kind, Some(*default)),
            kind => (kind, None),
        };
        Some(SchemaField { name, number: usize::try_from(number(id)?).ok()?, kind, default })
    };
    statements.map(field).collect()
}

enum FieldPlace {
    Text(u16),
    Number(NumberField),
    /// Nothing that is read.
    Nothing,
}

/// Cap'n Proto's layout of a struct without unions: each field takes the first part of the smallest hole that it fits into, or of a new
/// word.
#[derive(Default)]
struct StructLayout {
    words: u16,
    pointers: u16,
    /// Holes of 1, 2, 4, … 32 bits: where each is, counted in its size. There is never a second one of a size, nor one at zero.
    holes: [u32; 6],
}

impl StructLayout {
    fn pointer(&mut self) -> Option<u16> {
        let index = self.pointers;
        self.pointers = index.checked_add(1)?;
        Some(index)
    }

    fn number(&mut self, bits: u32) -> Option<u32> {
        let wanted = bits.trailing_zeros() as usize;
        let hole = (wanted..self.holes.len()).find(|size| self.holes[*size] != 0);
        // A new word is a hole of 64 bits.
        let (size, at) = match hole {
            Some(size) => (size, std::mem::take(&mut self.holes[size])),
            None => {
                let word = self.words;
                self.words = word.checked_add(1)?;
                (6, u32::from(word))
            }
        };
        let index = at << (size - wanted);
        // The rest of the hole is one of each size in between.
        for smaller in wanted..size {
            self.holes[smaller] = (index >> (smaller - wanted)) + 1;
        }
        Some(index)
    }
}
