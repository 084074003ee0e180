//! A figure with a value for each channel or port, in one line.

use crate::text::width;
use model::Device;
use model::figure::{Field, Figure, Unit, Value};
use model::text::ranges;

/// The title with its unit and the values of all labels: `Temperature top (°C)` and `61 62 – 60`. Words are said once, with their
/// labels: `yes 0-6, no 7`. None where no label has a value.
pub fn labelled(figure: &'static Figure<Device>, device: &Device, absent: &str) -> Option<(String, String)> {
    let dimension = figure.dimension?;
    let count = device.arch.map_or(dimension.len(), |arch| dimension.of_chip(arch));
    let values: Vec<Option<Value<'_>>> =
        figure.fields().take(count).map(|field: Field<Device>| field.value(device)).collect();
    if values.iter().all(Option::is_none) {
        return None;
    }
    let values =
        if figure.unit.is_number() { numbers(figure.unit, &values, absent) } else { words(figure.unit, &values) };
    let unit = figure.unit.symbol();
    let title = if unit.is_empty() { figure.title.to_owned() } else { format!("{} ({unit})", figure.title) };
    Some((title, values))
}

/// Below each other, the numbers of two lines are in columns.
fn numbers(unit: Unit, values: &[Option<Value<'_>>], absent: &str) -> String {
    let is_whole = values.iter().flatten().filter_map(Value::number).all(|number| number.fract() == 0.0);
    let decimals = if is_whole { 0 } else { unit.decimals() };
    let text = |value: &Option<Value<'_>>| {
        value
            .as_ref()
            .and_then(Value::number)
            .map_or_else(|| absent.to_owned(), |number| format!("{number:.decimals$}"))
    };
    let texts: Vec<String> = values.iter().map(text).collect();
    let columns = texts.iter().map(|text| width(text)).max().unwrap_or(0).max(2);
    texts.iter().map(|text| format!("{text:>columns$}")).collect::<Vec<_>>().join(" ")
}

fn words(unit: Unit, values: &[Option<Value<'_>>]) -> String {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (label, value) in values.iter().enumerate() {
        let Some(word) = value.as_ref().map(|value| unit.text(value)) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == word) {
            Some((_, labels)) => labels.push(label),
            None => groups.push((word, vec![label])),
        }
    }
    match groups.as_slice() {
        [(word, labels)] if labels.len() == values.len() => format!("{word} (all {})", labels.len()),
        groups => groups
            .iter()
            .map(|(word, labels)| format!("{word} {}", ranges(labels.iter().copied())))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::figure::deep::{ETH_LINK_UP, GDDR_CORRECTED_READS, GDDR_SELF_TEST, GDDR_TOP_TEMP};
    use model::{Arch, Celsius, Deep, DeviceId, SelfTest};

    #[test]
    fn numbers_are_in_columns_and_words_are_grouped() {
        let temp = |degrees| Some(Celsius(degrees));
        let deep = Deep {
            gddr_top_temp: vec![temp(61.0), None, temp(104.0), temp(60.0), temp(60.0), temp(60.0)],
            gddr_self_test: vec![Some(SelfTest::Passed), Some(SelfTest::Failed), Some(SelfTest::Passed)],
            eth_link_up: vec![Some(true); 16],
            ..Deep::default()
        };
        let device =
            Device { arch: Some(Arch::Wormhole), deep: Some(Box::new(deep)), ..Device::new(DeviceId::Local(0)) };
        let said = |figure| labelled(figure, &device, "–").map(|(title, values)| format!("{title}: {values}"));
        assert_eq!(said(&GDDR_TOP_TEMP).unwrap(), "Temperature top (°C):  61   – 104  60  60  60");
        assert_eq!(said(&GDDR_SELF_TEST).unwrap(), "Self test: passed 0 2, failed 1");
        assert_eq!(said(&ETH_LINK_UP).unwrap(), "Link up: yes (all 16)");
        assert_eq!(said(&GDDR_CORRECTED_READS), None);
    }
}
