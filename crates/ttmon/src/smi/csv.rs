//! `--query-device` and `--query-processes`: chosen fields as comma-separated lines, in nvidia-smi's form.

use super::device_fields::{DEVICE_FIELDS, DeviceField, DeviceRow};
use super::field::{Field, Unit, Value};
use super::process_fields::{ProcessField, ProcessRow, process_fields};
use model::Snapshot;
use show::text::{clean, nearest};
use std::borrow::Cow;
use std::fmt::Write;
use watch::exit::{Exit, Failure};

/// What to leave out.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub header: bool,
    pub units: bool,
}

/// A checked query.
pub struct Query {
    fields: Fields,
    form: Form,
}

enum Fields {
    Devices(Vec<&'static DeviceField>),
    Processes(Vec<&'static ProcessField>),
}

impl Query {
    pub fn of_devices(names: &[String], form: Form) -> anyhow::Result<Query> {
        Ok(Query { fields: Fields::Devices(chosen(names, DEVICE_FIELDS.iter(), "--query-device")?), form })
    }

    pub fn of_processes(names: &[String], form: Form) -> anyhow::Result<Query> {
        Ok(Query { fields: Fields::Processes(chosen(names, process_fields(), "--query-processes")?), form })
    }

    /// Whether the first answer begins with a header.
    pub fn has_header(&self) -> bool {
        self.form.header
    }

    /// The answer, with its header where it begins.
    pub fn text(&self, snapshot: &Snapshot, time: &str, first: bool) -> String {
        let mut text = String::new();
        let header = self.form.header && first;
        match &self.fields {
            Fields::Devices(fields) => {
                if header {
                    text += &self.header(fields);
                }
                for device in &snapshot.devices {
                    let row = DeviceRow { snapshot, device, time };
                    text += &self.line(fields.iter().map(|field| (field.unit, (field.value)(&row))));
                }
            }
            Fields::Processes(fields) => {
                if header {
                    text += &self.header(fields);
                }
                for row in ProcessRow::all(snapshot, time) {
                    text += &self.line(fields.iter().map(|field| (field.unit, (field.value)(&row))));
                }
            }
        }
        text
    }

    fn header<F>(&self, fields: &[&Field<F>]) -> String {
        let name = |field: &&Field<F>| match field.unit {
            Unit::Shown(unit) if self.form.units => format!("{} [{unit}]", field.name),
            _ => field.name.to_owned(),
        };
        fields.iter().map(name).collect::<Vec<_>>().join(", ") + "\n"
    }

    fn line(&self, values: impl Iterator<Item = (Unit, Option<Value>)>) -> String {
        let cell = |(unit, value): (Unit, Option<Value>)| match (value, unit) {
            (None, _) => "[N/A]".to_owned(),
            (Some(value), Unit::Shown(unit)) if self.form.units => format!("{} {unit}", value.written()),
            (Some(value), _) => quoted(&value.written()).into_owned(),
        };
        values.map(cell).collect::<Vec<_>>().join(", ") + "\n"
    }
}

fn chosen<F: 'static>(
    names: &[String],
    fields: impl Iterator<Item = &'static Field<F>> + Clone,
    option: &str,
) -> anyhow::Result<Vec<&'static Field<F>>> {
    let find = |name: &String| {
        let name = name.trim();
        fields.clone().find(|field| field.names().any(|known| known.eq_ignore_ascii_case(name))).ok_or_else(|| {
            let near = nearest(name, fields.clone().flat_map(Field::names));
            let hint = near.map_or_else(String::new, |near| format!("did you mean {near:?}? "));
            let message = format!("{option}: {name:?} is not a field: {hint}`ttmon smi --help-query` lists them all");
            Failure::error(Exit::Usage, message)
        })
    };
    names.iter().map(find).collect()
}

/// As RFC 4180 has it where a value would otherwise be taken for several. A value never breaks its line.
pub fn quoted(value: &str) -> Cow<'_, str> {
    let value = clean(value);
    if value.contains([',', '"']) || value != value.trim() {
        format!("\"{}\"", value.replace('"', "\"\"")).into()
    } else {
        value
    }
}

/// All fields with unit and meaning.
pub fn help() -> String {
    let mut text = String::from("Fields for --query-device (also --query-gpu):\n\n");
    describe(&mut text, DEVICE_FIELDS.iter());
    text += "\nFields for --query-processes (also --query-compute-apps), one line per process and device:\n\n";
    describe(&mut text, process_fields());
    text += "\nWhat is not measured is [N/A].\n";
    text
}

fn describe<F: 'static>(text: &mut String, fields: impl Iterator<Item = &'static Field<F>>) {
    for field in fields {
        let names: Vec<&str> = field.names().collect();
        let unit = field.unit.name().map_or_else(String::new, |unit| format!(" [{unit}]"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{unit}\n    {}", names.join(" | "), field.help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_fields_share_a_name() {
        fn check<F: 'static>(fields: impl Iterator<Item = &'static Field<F>>) {
            let mut seen = HashSet::new();
            assert!(fields.into_iter().flat_map(Field::names).all(|name| seen.insert(name.to_lowercase())));
        }
        check(DEVICE_FIELDS.iter());
        check(process_fields());
    }

    #[test]
    fn a_value_that_looks_like_several_is_quoted() {
        assert_eq!(quoted("python3 serve.py"), "python3 serve.py");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\"\n"), "\"say \"\"x\"\"?\"");
    }

    #[test]
    fn a_wrong_field_is_named_with_the_nearest_one() {
        let form = Form { header: true, units: true };
        let error = Query::of_devices(&["power.drew".into()], form).err().unwrap();
        assert_eq!(
            error.to_string(),
            "--query-device: \"power.drew\" is not a field: did you mean \"power.draw\"? `ttmon smi --help-query` lists them all"
        );
    }
}
