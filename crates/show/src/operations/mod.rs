//! Operations of a process as a table for people: `ttmon ops`, and the detail of a process in `top`.

mod tensors;

use crate::activity;
use crate::grid::{Cell, Column, lines};
use crate::style::{Style, Tone};
use crate::text::count;
use model::{Operation, OperationList, OperationSource};

/// The table, with a line above it that says of what, and lines below it that say what is not known.
pub fn text(list: &OperationList, style: &Style) -> String {
    let mut text = heading(list, style);
    let absent = style.glyphs().absent;
    if list.operations.is_empty() {
        return text + "No operation was launched yet.\n";
    }
    let total = activity::device_seconds(&list.operations);
    let has_traces = list.operations.iter().any(|operation| operation.captured.is_some_and(|captured| captured > 0));
    let has_tensors = list.operations.iter().any(|operation| operation.tensors.is_some());
    let mut columns = vec![Column::right("LAUNCHES", 8)];
    if total.is_some() {
        columns.extend(["SHARE", "TIME", "LONGEST"].map(|head| Column::right(head, 8)));
    }
    if has_traces {
        columns.push(Column::right("CAPTURED", 8));
        columns.push(Column::left("TRACES", 6));
    }
    columns.push(Column::left("OPERATION", 9));
    if has_tensors {
        columns.push(Column::left("LAST TENSORS", 12).stretching().rank(1));
    }
    let row = |operation: &Operation| {
        let mut cells = vec![at_least(operation.launches, list.complete, style)];
        if let Some(total) = total {
            let share = operation.device_seconds.map(|own| format!("{:.1}%", own / total * 100.0));
            let times = [operation.device_seconds, operation.longest_seconds];
            let times = times.map(|time| time.map(|time| activity::seconds(time, style.unicode)));
            cells.extend([share].into_iter().chain(times).map(|text| text.unwrap_or_else(|| absent.into())));
        }
        if has_traces {
            cells.extend([operation.captured.unwrap_or(0).to_string(), traces(&operation.traces, absent)]);
        }
        cells.push(if operation.name.is_empty() { absent.into() } else { operation.name.clone() });
        if has_tensors {
            cells.push(operation.tensors.as_deref().map_or_else(|| absent.into(), tensors::short));
        }
        cells.into_iter().map(Cell::plain).collect()
    };
    let rows = list.operations.iter().map(row).collect();
    for line in lines(columns, rows, style.columns, Tone::Faint, style) {
        text += style.painted(&line).trim_end();
        text.push('\n');
    }
    if !list.complete {
        let mark = style.glyphs().at_least;
        text += &format!("{mark} There were more launches: only the last ones are remembered.\n");
    }
    for note in notes(list, has_traces, has_tensors) {
        text += &format!("{note}\n");
    }
    text
}

fn heading(list: &OperationList, style: &Style) -> String {
    let source = match list.source {
        OperationSource::Inspector => "tt-metal's Inspector",
        OperationSource::Agent => "ttmon's agent",
    };
    let mark = if list.complete { "" } else { style.glyphs().at_least };
    let launches = count(list.launches, "launch", "launches");
    let chips = match list.chips.as_deref() {
        None => String::new(),
        Some([]) => ", no device open".into(),
        Some(chips) => {
            let numbers: Vec<String> = chips.iter().map(u64::to_string).collect();
            format!(", {} {}", if chips.len() == 1 { "chip" } else { "chips" }, numbers.join(", "))
        }
    };
    let operations = count(list.operations.len() as u64, "operation", "operations");
    format!("Process {}, from {source}: {mark}{launches} of {operations}{chips}\n", list.pid)
}

fn at_least(number: u64, is_complete: bool, style: &Style) -> String {
    if is_complete { number.to_string() } else { format!("{}{number}", style.glyphs().at_least) }
}

/// The numbers of the first traces, and how many more there are.
fn traces(all: &[u32], absent: &str) -> String {
    let first: Vec<String> = all.iter().take(3).map(u32::to_string).collect();
    match all.len() {
        0 => absent.into(),
        1..=3 => first.join(","),
        more => format!("{} +{}", first.join(","), more - 3),
    }
}

fn notes(list: &OperationList, has_traces: bool, has_tensors: bool) -> Vec<&'static str> {
    if list.source != OperationSource::Inspector {
        return Vec::new();
    }
    let all = [
        (has_traces, "CAPTURED is how often it was recorded into a trace; replays of traces are not counted."),
        (!has_tensors, "Tensors were not recorded: the process needs TT_METAL_INSPECTOR_CAPTURE_TENSOR_SPECS=1."),
    ];
    all.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, note)| note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn operation(name: &str, launches: u64, captured: u64, traces: &[u32], tensors: Option<&str>) -> Operation {
        let (name, traces, tensors) = (name.to_owned(), traces.to_vec(), tensors.map(str::to_owned));
        Operation { name, launches, captured: Some(captured), traces, tensors, ..Operation::default() }
    }

    fn list(operations: Vec<Operation>, complete: bool) -> OperationList {
        let launches = operations.iter().map(|operation| operation.launches).sum();
        let chips = Some(vec![0, 1]);
        OperationList { pid: 4711, source: OperationSource::Inspector, chips, launches, complete, operations }
    }

    fn check(list: &OperationList, unicode: bool, expected: Expect) {
        expected.assert_eq(&text(list, &Style { columns: 80, rows: None, color: false, unicode }));
    }

    #[test]
    fn launches_tensors_and_traces_have_columns_where_there_are_any() {
        let operations = vec![
            operation(
                "MatmulDeviceOperation",
                8000,
                2,
                &[1, 2, 3, 4, 5],
                Some("[0]: Spec(Shape([32, 4096]), of tomorrow)"),
            ),
            operation("Soft\x1b[2Jmax", 192, 0, &[], None),
        ];
        check(
            &list(operations.clone(), false),
            true,
            expect![[r#"
                Process 4711, from tt-metal's Inspector: ≥8192 launches of 2 operations, chips 0, 1
                LAUNCHES CAPTURED TRACES   OPERATION             LAST TENSORS
                   ≥8000        2 1,2,3 +2 MatmulDeviceOperation [0]: Spec(Shape([32, 4096]), o…
                    ≥192        0 –        Soft?[2Jmax           –
                ≥ There were more launches: only the last ones are remembered.
                CAPTURED is how often it was recorded into a trace; replays of traces are not counted.
            "#]],
        );
        check(
            &list(operations, false),
            false,
            expect![[r#"
                Process 4711, from tt-metal's Inspector: >8192 launches of 2 operations, chips 0, 1
                LAUNCHES CAPTURED TRACES   OPERATION             LAST TENSORS
                   >8000        2 1,2,3 +2 MatmulDeviceOperation [0]: Spec(Shape([32, 4096]), o~
                    >192        0 -        Soft?[2Jmax           -
                > There were more launches: only the last ones are remembered.
                CAPTURED is how often it was recorded into a trace; replays of traces are not counted.
            "#]],
        );
        check(
            &list(vec![operation("AddDeviceOperation", 1, 0, &[], None)], true),
            true,
            expect![[r#"
            Process 4711, from tt-metal's Inspector: 1 launch of 1 operation, chips 0, 1
            LAUNCHES OPERATION
                   1 AddDeviceOperation
            Tensors were not recorded: the process needs TT_METAL_INSPECTOR_CAPTURE_TENSOR_SPECS=1.
        "#]],
        );
        let nothing = OperationList { chips: Some(vec![]), ..list(vec![], true) };
        check(
            &nothing,
            true,
            expect![[r#"
            Process 4711, from tt-metal's Inspector: 0 launches of 0 operations, no device open
            No operation was launched yet.
        "#]],
        );
    }

    #[test]
    fn device_time_has_columns_where_it_is_known() {
        let timed = |name: &str, micros: u64| Operation {
            device_seconds: Some(micros as f64 / 1e4),
            longest_seconds: Some(micros as f64 / 1e6),
            ..operation(name, 100, 0, &[], None)
        };
        let operations = vec![timed("MatmulDeviceOperation", 25_000), timed("CloneOperation", 7)];
        check(
            &OperationList { source: OperationSource::Agent, ..list(operations, true) },
            true,
            expect![[r#"
                Process 4711, from ttmon's agent: 200 launches of 2 operations, chips 0, 1
                LAUNCHES    SHARE     TIME  LONGEST OPERATION
                     100   100.0%    2.5 s  25.0 ms MatmulDeviceOperation
                     100     0.0% 700.0 µs   7.0 µs CloneOperation
            "#]],
        );
    }
}
