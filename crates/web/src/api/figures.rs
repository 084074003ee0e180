//! The tables of figures, for programs that show them: the page has no list of its own.

use super::answer::HandlerResult;
use super::json_text;
use super::query::UrlQuery;
use crate::published::Published;
use crate::text::SharedText;
use hyper::header::HeaderMap;
use model::figure::device::{
    DEVICE_FIGURES, DRAM_BUFFERS, PCI_ADDRESS, POWER, SAMPLE_AGE, STALE, UNTRACKED, UTILIZATION,
    UTILIZATION_LOWER_BOUND, UTILIZATION_UNKNOWN,
};
use model::figure::machine::{DRIVER_VERSION, HOST_KERNEL, HOST_NAME, MACHINE_FIGURES, SIMULATED};
use model::figure::operation::{OPERATION_DEVICE_TIME, OPERATION_FIGURES, OPERATION_NAME};
use model::figure::process::{
    HELD_BYTES, HELD_FIGURES, HELD_UTILIZATION, HOST_CPU, HOST_MEMORY, IDLE, PROCESS_FIGURES, STARTED_AT,
};
use model::figure::{Dimension, Figure, Judge, LABEL, Section, Unit};
use model::filter::{Filter, SYNTAX};
use model::judgement::{AT_LIMIT, IDLE_SECONDS};
use model::{Device, Judgement, MemoryKind, Source, State, UtilizationUnknown};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static TABLES: LazyLock<SharedText> = LazyLock::new(|| SharedText::new(tables().to_string()));

pub fn answer(_: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    json_text(&TABLES, headers)
}

fn tables() -> Value {
    // Growth is only known in `top`.
    let filter_fields: Vec<&str> = Filter::fields().filter(|field| *field != "growth").collect();
    let state =
        |state: State| json!({ "name": state.name(), "meaning": state.meaning(), "judgement": state.judge().name() });
    json!({
        "device": DEVICE_FIGURES.iter().map(row).collect::<Vec<_>>(),
        "process": PROCESS_FIGURES.iter().map(row).collect::<Vec<_>>(),
        "held": HELD_FIGURES.iter().map(row).collect::<Vec<_>>(),
        "operation": OPERATION_FIGURES.iter().map(row).collect::<Vec<_>>(),
        "machine": MACHINE_FIGURES.iter().map(row).collect::<Vec<_>>(),
        "sections": Section::ALL.map(Section::name),
        "states": State::ALL.map(state),
        "sources": Source::ALL.map(|source| json!({ "name": source.name(), "meaning": source.meaning() })),
        "memory": memory(),
        "memory_kinds": MemoryKind::ALL.map(memory_kind),
        "reasons": UtilizationUnknown::ALL.map(|why| json!({ "name": why.name(), "meaning": why.meaning() })),
        "at_limit": AT_LIMIT,
        "idle_after": IDLE_SECONDS,
        "roles": roles(),
        "filter": { "syntax": SYNTAX, "fields": filter_fields },
    })
}

fn row<S>(figure: &&'static Figure<S>) -> Value {
    let unit = figure.unit;
    json!({
        "name": figure.name,
        "path": figure.in_json.then(|| figure.path()),
        "title": figure.title,
        "section": figure.section.name(),
        "deep": figure.is_deep(),
        "unit": { "name": unit.name(), "symbol": unit.symbol(), "decimals": unit.decimals(), "binary": unit.is_binary() },
        "help": figure.help,
        "words": figure.words,
        "always": figure.always,
        "limit": figure.limit.map(|limit| limit.path()),
        "judge": judge(figure.judge),
        "full": figure.full_scale.is_some().then_some(figure.unit).filter(|unit| *unit == Unit::Percent).map(|_| 100),
        "lower_bound": beside(figure, UTILIZATION_LOWER_BOUND.name),
        "reason": beside(figure, UTILIZATION_UNKNOWN.name),
        "history": figure.history,
        "dimension": figure.dimension.map(dimension),
        "metric": figure.metric.map(|metric| format!("{}{}", metric.name, metric.kind.suffix())),
        "rule": figure.rule,
    })
}

/// What says more of a utilization: whether it is a lower bound, or why it is not known.
fn beside<S>(figure: &Figure<S>, other: &'static str) -> Option<&'static str> {
    (figure.name == UTILIZATION.name).then_some(other)
}

fn judge(judge: Judge) -> Option<Value> {
    let (warning, critical) = judge.thresholds().unzip();
    let words = Judgement::ALL.map(|judgement| (judgement.name().to_owned(), json!(judge.word(judgement))));
    let words: Map<String, Value> = words.into_iter().collect();
    let by = (judge != Judge::Never).then_some(judge.name())?;
    Some(json!({ "by": by, "warning": warning, "critical": critical, "words": words }))
}

fn dimension(dimension: Dimension) -> Value {
    let labels: Vec<_> = (0..dimension.len()).map(|place| dimension.label(place)).collect();
    json!({ "name": dimension.name(), "labels": labels })
}

/// The capacities of a device, and what a process has of them.
fn memory() -> Vec<Value> {
    let areas = DEVICE_FIGURES.iter().filter(|figure| figure.judge == Judge::Capacity);
    let area = |used: &&'static Figure<Device>| {
        let label = used.metric?.label?;
        let kind = MemoryKind::ALL.into_iter().find(|kind| kind.name() == label.1)?;
        let of_process =
            HELD_FIGURES.iter().find(|held| held.metric.is_some_and(|metric| metric.label == Some(label)))?;
        let kinds = MemoryKind::ALL.into_iter().filter(|part| part_of(*part) == Some(kind));
        Some(json!({
            "name": kind.name(),
            "title": kind.title(),
            "used": used.path(),
            "total": used.limit?.path(),
            "process_used": of_process.path(),
            "kinds": kinds.map(MemoryKind::name).collect::<Vec<_>>(),
        }))
    };
    areas.filter_map(area).collect()
}

fn memory_kind(kind: MemoryKind) -> Value {
    let is_part = |figure: &&&Figure<Device>| {
        let same_family = figure.metric.map(|metric| metric.name) == DRAM_BUFFERS.metric.map(|metric| metric.name);
        same_family && figure.metric.and_then(|metric| metric.label).is_some_and(|(_, value)| value == kind.name())
    };
    let part = DEVICE_FIGURES.iter().find(is_part);
    json!({
        "name": kind.name(),
        "title": kind.title(),
        "part_of": part_of(kind).map(MemoryKind::name),
        "path": part.map(|part| part.path()),
        "process_path": HELD_BYTES.path().replace(LABEL, kind.name()),
        "help": part.map(|part| part.help),
    })
}

/// The kind that gives the capacity its name.
fn part_of(kind: MemoryKind) -> Option<MemoryKind> {
    let areas = [(MemoryKind::Dram, &MemoryKind::DRAM_USED[..]), (MemoryKind::L1, &MemoryKind::L1_USED[..])];
    areas.into_iter().find(|(_, parts)| parts.contains(&kind)).map(|(area, _)| area)
}

/// Where the figures are that a view has to know by what they mean.
fn roles() -> Value {
    json!({
        "device": {
            "address": PCI_ADDRESS.path(),
            "age": SAMPLE_AGE.path(),
            "stale": STALE.path(),
            "trend": POWER.path(),
            "untracked": UNTRACKED.path(),
            "utilization": UTILIZATION.path(),
        },
        "held": { "utilization": HELD_UTILIZATION.path() },
        "operation": { "name": OPERATION_NAME.path(), "time": OPERATION_DEVICE_TIME.path() },
        "process": { "idle": IDLE.path(), "cpu": HOST_CPU.path(), "memory": HOST_MEMORY.path(), "started": STARTED_AT.path() },
        "machine": {
            "driver": DRIVER_VERSION.path(),
            "host": HOST_NAME.path(),
            "kernel": HOST_KERNEL.path(),
            "simulated": SIMULATED.path(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_the_tables_in_one_answer() {
        let text = serde_json::to_string_pretty(&tables()).unwrap();
        expect_test::expect_file!["golden/figures.json"].assert_eq(&(text + "\n"));
    }

    #[test]
    fn every_capacity_has_parts_and_every_part_a_figure() {
        let tables = tables();
        assert_eq!(tables["memory"].as_array().unwrap().len(), 2);
        for kind in tables["memory_kinds"].as_array().unwrap() {
            assert!(kind["path"].is_string(), "{kind}");
        }
    }
}
