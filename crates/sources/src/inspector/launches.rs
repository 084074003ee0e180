//! The Inspector's answers as plain data: which operations were launched, and which chips are in use.

use super::capnp::{Message, MessageError, Struct};
use super::rpc::{self, RpcError};
use super::schema::{LaunchLayout, NumberField};
use model::{Operation, OperationList, OperationSource};
use std::collections::HashMap;

/// tt-metal remembers so many launches outside of traces (a ring in `inspector/data.hpp`); older releases remember a few more.
const REMEMBERED: u64 = 8192;
/// So many of the last entries are looked at. Traces can have any number.
pub const MOST: usize = 10_000;
/// The longest description of tensors that is kept, in characters.
const LONGEST_TENSORS: usize = 4096;
/// What tt-metal says where it was not asked to describe tensors.
const NO_TENSORS: [&str; 2] = ["", "Not captured"];
/// The trace of a launch outside of traces.
const NO_TRACE: u64 = 0xffff_ffff;

fn number(entry: &Struct, field: Option<NumberField>) -> Option<u64> {
    field.map(|field| entry.number(field.bits, field.index) ^ field.default)
}

/// Counts the launches in an answer to `getMeshWorkloadRuntimeEntries`.
pub fn operations(bytes: &[u8], question: u32, layout: &LaunchLayout, pid: u32) -> Result<OperationList, RpcError> {
    let message = Message::new(bytes)?;
    let payload = rpc::results(&message, question)?.ok_or(RpcError::NoResult)?;
    let entries = payload.structure(0)?.structs(0, layout.size)?;
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut operations: Vec<Operation> = Vec::new();
    let mut launches = 0;
    // The last ones come last.
    for entry in entries.last(MOST) {
        let name = entry.text(layout.name)?;
        let place = *places.entry(name).or_insert_with_key(|name| {
            operations.push(Operation { name: name.clone(), ..Operation::default() });
            operations.len() - 1
        });
        let operation = &mut operations[place];
        match number(&entry, layout.trace_id).filter(|trace| *trace != NO_TRACE) {
            Some(trace) => {
                *operation.captured.get_or_insert_default() += 1;
                operation.traces.push(trace as u32);
            }
            None => {
                operation.launches += 1;
                launches += 1;
            }
        }
        operation.tensors = tensors(&entry, layout)?;
        operation.last_id = operation.last_id.max(number(&entry, layout.runtime_id));
    }
    for operation in &mut operations {
        operation.traces.sort_unstable();
        operation.traces.dedup();
    }
    let complete = launches < REMEMBERED && entries.count <= MOST;
    Ok(OperationList { pid, source: OperationSource::Inspector, chips: None, launches, complete, operations })
}

fn tensors(entry: &Struct, layout: &LaunchLayout) -> Result<Option<String>, MessageError> {
    let text = layout.parameters.map(|pointer| entry.text(pointer)).transpose()?;
    let text = text.filter(|text| !NO_TENSORS.contains(&text.as_str()));
    Ok(text.map(|text| text.chars().take(LONGEST_TENSORS).collect()))
}

/// The chips in an answer to `getDevicesInUse`.
pub fn chips(bytes: &[u8], question: u32) -> Result<Vec<u64>, RpcError> {
    let message = Message::new(bytes)?;
    let payload = rpc::results(&message, question)?.ok_or(RpcError::NoResult)?;
    let mut chips = payload.structure(0)?.numbers(0)?;
    chips.sort_unstable();
    chips.truncate(MOST);
    Ok(chips)
}
