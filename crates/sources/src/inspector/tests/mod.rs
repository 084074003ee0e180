//! The Inspector's messages and schema, what any bytes in their place do, and whole conversations with a server in this process.

mod conversation;
mod recorded;

use super::capnp::{self, LONGEST, Message, MessageBuilder, MessageError, StructSize};
use super::launches::{MOST, chips, operations};
use super::owner::{InspectorAddress, inspector_address, settings, socket_of, tcp_sockets, unix_listener};
use super::rpc::{self, RpcError};
use super::schema::{LaunchLayout, NumberField, SchemaError, parse};
use expect_test::expect;
use model::OperationList;
use proptest::prelude::*;
use recorded::bytes;
use std::path::PathBuf;

/// What ttmon needs of a schema, in the words of ttnn 0.81, with things between that it does not need.
const SCHEMA: &str = r#"
# A comment; with { and }
@0xf8b5d6e3c2a19074;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("a::b; {");
enum Status { sent @0; done @1; }
struct Device { id @0 :UInt64; status @1 :Status; }
struct MeshWorkloadRuntimeEntry {
    workloadId @0 :UInt64;
    runtimeId @1 :UInt64; # the number of the launch
    operationName @2 :Text;
    operationParameters @3 :Text;
    traceId @4 :UInt32 = 0xFFFFFFFF;
}
interface Inspector {
    getPrograms @0 () -> (programs :List(Device));
    getDevicesInUse @2 () -> (metalDeviceIds :List(UInt64));
    getKernel @3 (id :Int32) -> (kernel :Device);
    getMeshWorkloadRuntimeEntries @7 () -> (runtimeEntries :List(MeshWorkloadRuntimeEntry));
}
"#;

fn layout() -> LaunchLayout {
    parse(SCHEMA).unwrap().entry
}

fn counted(message: &[u8]) -> Result<OperationList, RpcError> {
    operations(message, 1, &layout(), 7)
}

#[test]
fn requests_are_those_of_the_reference_implementation() {
    assert_eq!(rpc::bootstrap(0), bytes(recorded::BOOTSTRAP));
    assert_eq!(rpc::call(1, 0, 0x880f_ab3d_dc27_f484, 7), bytes(recorded::CALL));
    assert_eq!(rpc::finish(1), bytes(recorded::FINISH));
}

#[test]
fn launches_are_counted_by_name_and_captures_apart() {
    let list = counted(&bytes(recorded::ENTRIES)).unwrap();
    let lines = list.operations.iter().map(|operation| {
        let model::Operation { name, launches, captured, traces, tensors, last_id, .. } = operation;
        format!("{name}: {launches} launches, {captured:?} in traces {traces:?}, {tensors:?}, last {last_id:?}\n")
    });
    expect![[r#"
        MatmulDeviceOperation: 2 launches, None in traces [], Some("[0]: TensorSpec(Shape([64, 64]))"), last Some(13)
        SoftmaxDeviceOperation: 1 launches, None in traces [], None, last Some(12)
        Add é: 0 launches, Some(2) in traces [0, 7], None, last Some(15)
    "#]]
    .assert_eq(&lines.collect::<String>());
    assert_eq!((list.pid, list.launches, list.complete), (7, 3, true));
    assert_eq!(chips(&bytes(recorded::DEVICES), 2), Ok(vec![0, 1, 4]));
}

#[test]
fn an_answer_in_many_segments_is_the_same() {
    assert_eq!(counted(&bytes(recorded::ENTRIES_IN_SIX_SEGMENTS)), counted(&bytes(recorded::ENTRIES)));
    assert_eq!(chips(&bytes(recorded::DEVICES_IN_FOUR_SEGMENTS), 2), Ok(vec![0, 1, 4]));
}

/// A message of these segments.
fn message(segments: &[&[u64]]) -> Vec<u8> {
    let sizes = segments.iter().map(|words| words.len() as u32);
    let mut bytes: Vec<u8> =
        std::iter::once(segments.len() as u32 - 1).chain(sizes).flat_map(u32::to_le_bytes).collect();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(segments.iter().flat_map(|words| words.iter()).flat_map(|word| word.to_le_bytes()));
    bytes
}

#[test]
fn a_pointer_may_lead_through_two_words_in_a_third_segment() {
    // To word 1 of segment 1, where it says: word 2 of segment 2, a struct of one word.
    let bytes = message(&[&[1 << 32 | 1 << 3 | 6], &[0, 2 << 32 | 2 << 3 | 2, 1 << 32], &[0, 0, 42]]);
    assert_eq!(Message::new(&bytes).unwrap().root().unwrap().number(64, 0), 42);
    // A third hop is none.
    let bytes = message(&[&[1 << 32 | 1 << 3 | 6], &[0, 2 << 32 | 2 << 3 | 6, 1 << 32], &[0, 0, 42]]);
    assert_eq!(Message::new(&bytes).unwrap().root().unwrap_err(), MessageError::Kind);
}

#[test]
fn refusals_of_a_server_are_in_its_words_and_harmless() {
    let of = |hex: &str| counted(&bytes(hex)).unwrap_err().to_string();
    assert_eq!(of(recorded::EXCEPTION), "refused the call: no such?method");
    assert_eq!(of(recorded::ABORT), "ended the conversation: bye");
    assert_eq!(of(recorded::DEVICES), "did not carry out the call");
}

#[test]
fn an_answer_of_another_form_is_refused() {
    // As another method gives, where the schema is not that of the library.
    let other = LaunchLayout { size: StructSize { data: 1, pointers: 2 }, ..layout() };
    let answer = bytes(recorded::ENTRIES);
    assert_eq!(operations(&answer, 1, &other, 7), Err(RpcError::Message(MessageError::Kind)));
    let numbers = operations(&bytes(recorded::DEVICES), 2, &layout(), 7);
    assert_eq!(numbers, Err(RpcError::Message(MessageError::Kind)));
    assert_eq!(chips(&answer, 1), Err(RpcError::Message(MessageError::Kind)));
}

#[test]
fn what_is_too_long_is_refused_by_its_header() {
    let header = |segments: u32, words: u32| [segments - 1, words].map(u32::to_le_bytes).concat();
    assert_eq!(capnp::length(&header(1, (LONGEST / 8) as u32 - 1)), Ok(Some(LONGEST)));
    assert_eq!(capnp::length(&header(1, (LONGEST / 8) as u32)), Err(MessageError::TooLong));
    assert_eq!(capnp::length(&header(1, u32::MAX)), Err(MessageError::TooLong));
    assert_eq!(capnp::length(&header(512, 0)), Ok(None));
    assert_eq!(capnp::length(&header(513, 0)), Err(MessageError::Segments));
    assert_eq!(capnp::length(&u32::MAX.to_le_bytes()), Err(MessageError::Segments));
}

/// An answer with so many launches of one operation. All share one text, which so many words long.
fn many(count: usize, words: usize) -> Vec<u8> {
    let mut builder = MessageBuilder::new();
    let root = builder.structure(0, &[3], 1);
    let answer = builder.structure(root, &[1, 0], 1);
    let payload = builder.structure(answer, &[], 2);
    let results = builder.structure(payload, &[], 1);
    let mut all: Vec<u64> =
        builder.bytes()[8..].chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    all[results] = 1 | 7 << 32 | (5 * count as u64) << 35;
    all.push((count as u64) << 2 | 3 << 32 | 2 << 48);
    let text = all.len() + 5 * count;
    for entry in 0..count as u64 {
        all.extend([0, entry, 0]);
        let offset = (text - all.len() - 1) as u64;
        all.extend([1 | offset << 2 | 2 << 32 | (8 * words as u64) << 35, 0]);
    }
    all.extend(std::iter::repeat_n(u64::from_le_bytes(*b"abcdefgh"), words - 1));
    all.push(u64::from_le_bytes(*b"abcdefg\0"));
    message(&[&all])
}

#[test]
fn where_the_inspector_has_forgotten_launches_counts_are_lower_bounds() {
    let of = |count: usize| counted(&many(count, 1)).map(|list| (list.launches, list.complete));
    assert_eq!(of(8191), Ok((8191, true)));
    assert_eq!(of(8192), Ok((8192, false)));
    assert_eq!(of(30_000), Ok((MOST as u64, false)), "the last ones are kept");
    assert_eq!(counted(&many(30_000, 1)).unwrap().operations[0].last_id, Some(29_999));
}

#[test]
fn pointers_to_the_same_words_are_followed_only_so_often() {
    // Eight thousand names of 64 KiB would be half a gigabyte.
    assert_eq!(counted(&many(8000, 8192)), Err(RpcError::Message(MessageError::Traversal)));
}

#[test]
fn numbers_of_methods_and_places_of_fields_come_from_the_schema() {
    let schema = parse(SCHEMA).unwrap();
    assert_eq!((schema.interface, schema.entries, schema.devices), (0x880f_ab3d_dc27_f484, 7, Some(2)));
    let number = |bits, index, default| Some(NumberField { bits, index, default });
    let expected = LaunchLayout {
        size: StructSize { data: 3, pointers: 2 },
        name: 0,
        parameters: Some(1),
        runtime_id: number(64, 1, 0),
        trace_id: number(32, 4, 0xffff_ffff),
    };
    assert_eq!(schema.entry, expected);
    let older = SCHEMA.replace("@7 ()", "@8 ()").replace("getDevicesInUse", "getDevices");
    let older = parse(&older).unwrap();
    assert_eq!((older.entries, older.devices), (8, None));
}

#[test]
fn fields_fill_the_holes_that_smaller_ones_have_left() {
    // The places are those that Cap'n Proto's compiler gives.
    let fields = "a @0 :Bool; b @1 :UInt32; c @2 :Status; d @3 :UInt64; traceId @4 :UInt8; runtimeId @5 :UInt32;\
                  l @6 :List(Text); operationName @7 :Text; e @8 :Device; f @9 :Void;";
    let from = SCHEMA.find("workloadId").unwrap();
    let to = SCHEMA.find("interface").unwrap();
    let entry = parse(&format!("{}{fields}}}\n{}", &SCHEMA[..from], &SCHEMA[to..])).unwrap().entry;
    let number = |bits, index| Some(NumberField { bits, index, default: 0 });
    assert_eq!((entry.trace_id, entry.runtime_id), (number(8, 1), number(32, 4)));
    assert_eq!((entry.size, entry.name), (StructSize { data: 3, pointers: 3 }, 1));
}

#[test]
fn a_schema_that_is_not_understood_is_refused_by_name() {
    let refused = |from: &str, to: &str| {
        assert!(SCHEMA.contains(from), "{from}");
        parse(&SCHEMA.replace(from, to)).unwrap_err().to_string()
    };
    assert_eq!(refused("@0xf8b5d6e3c2a19074", "@0xf8b5d6e3c2a19075"), "it is not the schema 0xf8b5d6e3c2a19074");
    assert_eq!(refused("interface Inspector", "interface Other"), "it has no interface Inspector");
    assert_eq!(refused("getMeshWorkloadRuntimeEntries", "getAll"), "it has no getMeshWorkloadRuntimeEntries");
    assert_eq!(refused("operationName", "name"), "it has no operationName");
    let form = "has a form that this version of ttmon does not know";
    assert_eq!(
        refused("traceId @4 :UInt32 = 0xFFFFFFFF", "union { traceId @4 :UInt32; }"),
        format!("MeshWorkloadRuntimeEntry {form}")
    );
    assert_eq!(refused("traceId @4", "traceId @5"), format!("MeshWorkloadRuntimeEntry {form}"));
    assert_eq!(refused(":UInt32 = ", ":Unknown = "), format!("MeshWorkloadRuntimeEntry.traceId {form}"));
    assert_eq!(refused("@7 ()", "@7 (from :UInt32)"), format!("getMeshWorkloadRuntimeEntries {form}"));
    assert_eq!(refused("metalDeviceIds :List(UInt64)", "ids :List(UInt32)"), format!("getDevicesInUse {form}"));
    assert_eq!(parse(""), Err(SchemaError::Unknown));
}

#[test]
fn sockets_are_decoded_in_the_order_of_this_machine() {
    let table = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        0: 0100007F:C383 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0\n\
        1: 0100007F:C383 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1\n\
        2: 0000000000000000FFFF00000100007F:C383 00000000000000000000000001000000:0001 0A 0:0 0:0 0 7 0 9 1\n";
    let line = |socket: &super::owner::TcpSocket| {
        let super::owner::TcpSocket { local, remote, listens, uid, inode } = socket;
        format!("{local} {remote} {listens} {uid} {inode}\n")
    };
    expect![[r#"
        127.0.0.1:50051 0.0.0.0:0 true 1000 4711
        127.0.0.1:50051 127.0.0.1:54321 false 0 4712
        127.0.0.1:50051 [::1]:1 true 7 9
    "#]]
    .assert_eq(&tcp_sockets(table).iter().map(line).collect::<String>());
    let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
        0000000000000000: 00000003 00000000 00000000 0001 03 55 /tmp/in spector\n\
        0000000000000000: 00000002 00000000 00010000 0001 01 56 /tmp/in spector\n";
    assert_eq!(unix_listener(table, b"/tmp/in spector"), Some(56));
    assert_eq!(unix_listener(table, b"spector"), None);
    assert_eq!((socket_of(b"socket:[56]"), socket_of(b"pipe:[56]"), socket_of(b"/dev/null")), (Some(56), None, None));
}

#[test]
fn the_environment_says_where_the_inspector_listens() {
    let ports = |ports: &[u16]| InspectorAddress::Ports(ports.to_vec());
    let of = |environ: &str| settings(environ.replace(' ', "\0").as_bytes());
    assert_eq!((of("").address, of("").off), (ports(&[50051]), None));
    assert_eq!(of("OMPI_COMM_WORLD_RANK=3").address, ports(&[50054, 50051]), "each process of a job has its own");
    let address = "TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS";
    assert_eq!(of(&format!("A=1 {address}=127.0.0.1:8000")).address, ports(&[8000]));
    assert_eq!(of(&format!("X{address}=h:8000 {address}=h")).address, ports(&[50051]));
    assert_eq!(of(&format!("{address}=unix:/tmp/x")).address, InspectorAddress::Unix(PathBuf::from("/tmp/x")));
    assert_eq!(of("TT_METAL_INSPECTOR=0").off, Some("TT_METAL_INSPECTOR"));
    assert_eq!(of("TT_METAL_INSPECTOR_RPC=0 TT_METAL_INSPECTOR=1").off, Some("TT_METAL_INSPECTOR_RPC"));
    assert_eq!(inspector_address("h:65535", Some(9)), ports(&[65535]));
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_none(bytes: Vec<u8>) {
        let _ = counted(&bytes);
        let _ = chips(&bytes, 1);
    }

    #[test]
    fn an_answer_with_changed_words_is_read_or_refused(
        changes in prop::collection::vec((0usize..624, any::<u64>(), any::<bool>()), 1..6),
        cut in 0usize..1000,
        segments: bool,
    ) {
        let mut bytes = bytes(if segments { recorded::ENTRIES_IN_SIX_SEGMENTS } else { recorded::ENTRIES });
        for (at, word, is_bit) in changes {
            let at = at % bytes.len();
            match is_bit {
                true => bytes[at] ^= 1 << (word % 8),
                false => bytes.iter_mut().skip(at / 8 * 8).zip(word.to_le_bytes()).for_each(|(byte, new)| *byte = new),
            }
        }
        bytes.truncate(cut.max(8));
        if let Ok(list) = counted(&bytes) {
            prop_assert!(list.operations.len() <= MOST && list.launches <= MOST as u64);
        }
        let _ = chips(&bytes, 1);
    }

    #[test]
    fn any_text_is_a_schema_or_none(text: String, cut in 0usize..900, at in 0usize..900, other in "[@:;(){}=a-zA-Z0-9# \"]{0,12}") {
        let _ = parse(&text);
        let _ = parse(&SCHEMA[..cut.min(SCHEMA.len())]);
        let at = at.min(SCHEMA.len());
        let _ = parse(&format!("{}{other}{}", &SCHEMA[..at], &SCHEMA[at..]));
    }

    #[test]
    fn any_bytes_are_tables_and_an_environment(bytes: Vec<u8>, text in "[0-9A-F: \n]{0,200}") {
        for bytes in [&bytes[..], text.as_bytes()] {
            let _ = tcp_sockets(bytes);
            let _ = unix_listener(bytes, b"");
            let _ = unix_listener(bytes, b"/x");
            let _ = settings(bytes);
            let _ = socket_of(bytes);
        }
    }
}
