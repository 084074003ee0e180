use super::*;
use crate::smi::example;
use crate::top::rows::Row;
use crate::top::trails::Trails;
use proptest::prelude::*;

/// Which processes of the example match: 81 (in a container, on 2 and 2R), 4711 (on 0) and 5120 (nothing is known).
fn found(query: &str) -> Vec<u32> {
    let query = parse(query).unwrap_or_else(|wrong| panic!("{query}: {wrong}"));
    let snapshot = example::machine();
    let rows = Row::all(&snapshot, &Trails::default());
    let matching = rows.iter().zip(&snapshot.processes).filter(|(row, process)| query.matches(row, process));
    matching.map(|(row, _)| row.pid).collect()
}

#[test]
fn words_are_looked_for_in_what_people_call_a_process() {
    assert_eq!(found(""), [81, 4711, 5120]);
    assert_eq!(found("LLAMA"), [4711]);
    assert_eq!(found("ttuser"), [4711]);
    assert_eq!(found("日本"), [81]);
    assert_eq!(found("k8s"), [81]);
    assert_eq!(found("\"serve.py --model\""), [4711]);
    assert_eq!(found("shm"), [0; 0]);
}

#[test]
fn fields_equal_or_contain() {
    assert_eq!(found("user:ttuser"), [4711]);
    assert_eq!(found("user:tt"), [0; 0]);
    assert_eq!(found("user~LONG"), [81]);
    assert_eq!(found("name~python"), [4711]);
    assert_eq!(found("command~evil"), [81]);
    assert_eq!(found("dev:0"), [4711, 5120]);
    assert_eq!(found("dev:2r"), [81]);
    assert_eq!(found("pid:81"), [81]);
    assert_eq!(found("source:exact or source:SHM"), [81, 4711]);
    assert_eq!(found("container:3f2a9c1b7d4e"), [81]);
    assert_eq!(found("runtime:ttnn"), [4711]);
}

#[test]
fn numbers_have_units() {
    assert_eq!(found("dram>12G"), [4711]);
    assert_eq!(found("dram>=12G dram<12.5GiB"), [4711]);
    assert_eq!(found("l1<=2048"), [81]);
    assert_eq!(found("l1<=2k"), [81]);
    assert_eq!(found("cpu>100"), [4711]);
    assert_eq!(found("share>38%"), [81, 4711]);
    assert_eq!(found("age>17m age<1h"), [81, 4711]);
    assert_eq!(found("total>1T"), [0; 0]);
    assert_eq!(found("pid>81"), [4711, 5120]);
    assert_eq!(found("growth>-1M"), [0; 0], "what is not known is neither more nor less");
}

#[test]
fn terms_are_joined() {
    assert_eq!(found("user:ttuser dram>20G"), [0; 0]);
    assert_eq!(found("pid:81 or pid:4711 dram>1G"), [81, 4711]);
    assert_eq!(found("not dram>1G"), [5120]);
    assert_eq!(found("-dram>1G"), [5120]);
    assert_eq!(found("-(pid:81 or pid:5120)"), [4711]);
    assert_eq!(found("(pid:81 OR pid:4711) AND NOT user:ttuser"), [81]);
    assert_eq!(found("\"or\""), [0; 0]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let wrong = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(wrong("drm>1G"), "at 1: unknown field \"drm\": did you mean dram?");
    assert_eq!(wrong("me usr:me"), "at 4: unknown field \"usr\": did you mean user?");
    assert_eq!(
        wrong("temperature>50"),
        "at 1: unknown field \"temperature\": dev user container name command source runtime pid dram l1 l1_small trace \
         cb total rss growth cpu share util age"
    );
    assert_eq!(wrong("dram:1G"), "at 5: `dram` takes > < >= or <=, as it is a number");
    assert_eq!(wrong("user>me"), "at 5: `user` takes `:` or `~`, as it is no number");
    assert_eq!(wrong("dram>many"), "at 6: `dram` is compared with a number, as in 4096, 512K, 100M, 1.5G or 1T");
    assert_eq!(wrong("dram>1m2"), "at 6: `dram` is compared with a number, as in 4096, 512K, 100M, 1.5G or 1T");
    assert_eq!(wrong("age>5w"), "at 5: `age` is compared with a number, as in 90, 10s, 5m, 2h or 1d");
    assert_eq!(wrong("cpu>"), "at 5: `cpu` is compared with a number, as in 50");
    assert_eq!(wrong("user:"), "at 6: a text must follow `user:`");
    assert_eq!(wrong(">5"), "at 1: a field must come before `>`");
    assert_eq!(wrong("(a or b"), "at 1: this bracket is never closed");
    assert_eq!(wrong("a)"), "at 2: this bracket was never opened");
    assert_eq!(wrong("()"), "at 1: nothing is between these brackets");
    assert_eq!(wrong("a or"), "at 5: something to look for is missing");
    assert_eq!(wrong("or a"), "at 1: something to look for is missing before this");
    assert_eq!(wrong("name~\"a b"), "at 6: this quote is never closed");
    assert_eq!(wrong("-"), "at 1: a term must follow `-`");
    assert_eq!(wrong(&"(".repeat(100_000)), "at 51: too many brackets or `not`s in each other");
    assert_eq!(wrong(&"-".repeat(100_000)), "at 51: too many brackets or `not`s in each other");
}

/// Text that looks like a query more often than chance would have it.
fn likely() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("(".to_owned()),
        Just(")".to_owned()),
        Just(" or ".to_owned()),
        Just(" not ".to_owned()),
        Just("-".to_owned()),
        Just(" ".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("dram>1.5G".to_owned()),
        Just("age<=10m".to_owned()),
        Just("user:".to_owned()),
        Just("name~".to_owned()),
        Just("growth<-2k".to_owned()),
        "[a-zA-ZΣİß]{1,4}",
        "\\PC{1,3}",
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_a_query_or_wrong(text in ".*") {
        if let Err(wrong) = parse(&text) {
            prop_assert!(wrong.at <= text.chars().count());
        }
    }

    #[test]
    fn what_is_printed_is_read_as_the_same(text in prop_oneof![likely(), any::<String>()]) {
        if let Ok(query) = parse(&text) {
            prop_assert_eq!(parse(&query.to_string()), Ok(query.clone()), "{}", query);
        }
    }
}
