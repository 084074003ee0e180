//! What is read is shown in the flow style.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// As JSON, which is the flow style with nothing left out.
fn flow(node: &YamlNode) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match &node.value {
        YamlValue::Scalar(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        YamlValue::List(items) => format!("[{}]", joined(items.iter().map(flow).collect())),
        YamlValue::Map(members) => {
            let member = |(key, value): &(YamlNode, YamlNode)| format!("{}: {}", flow(key), flow(value));
            format!("{{{}}}", joined(members.iter().map(member).collect()))
        }
    }
}

fn block(node: &YamlNode, indent: usize, text: &mut String) {
    let new_line = format!("\n{}", " ".repeat(indent));
    match &node.value {
        YamlValue::List(items) if !items.is_empty() => {
            for item in items {
                *text += &format!("{new_line}-");
                block(item, indent + 2, text);
            }
        }
        YamlValue::Map(members) if !members.is_empty() => {
            for (key, value) in members {
                *text += &format!("{new_line}{}:", flow(key));
                block(value, indent + 2, text);
            }
        }
        _ => *text += &format!(" {}", flow(node)),
    }
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&flow(&parse(text).unwrap()));
}

#[test]
fn both_styles_and_comments_are_understood() {
    check(
        "a: 1 # one\n# two\nb:\n- 2\n-\n  - 3\n- c: 4\n  d: 5",
        expect![[r#"{"a": "1", "b": ["2", ["3"], {"c": "4", "d": "5"}]}"#]],
    );
    check(
        "---\na: [\n  {b: 1, c: [x, y,]}, # and\n  0: 2,\n]\n...\nignored",
        expect![[r#"{"a": [{"b": "1", "c": ["x", "y"]}, {"0": "2"}]}"#]],
    );
    check("a:\nb: {}\nc: []\nd: {e, f: }", expect![[r#"{"a": "", "b": {}, "c": [], "d": {"e": "", "f": ""}}"#]]);
    check(
        "\"a b\": 'it''s # this'\n'c': \"say \\\"x\\\"\" # that\nd: it's # more",
        expect![[r#"{"a b": "it's # this", "c": "say \"x\"", "d": "it's"}"#]],
    );
}

#[test]
fn an_address_is_a_word_and_not_a_time() {
    check(
        "0: 0000:41:00.0\n1: [0000:01:00.0, a#b]",
        expect![[r#"{"0": "0000:41:00.0", "1": ["0000:01:00.0", "a#b"]}"#]],
    );
}

fn any_node() -> impl Strategy<Value = YamlNode> {
    let node = |value| YamlNode { line: 0, value };
    let scalar = "[a-z0-9:,#'\"\\\\{}\\[\\] é-]{0,6}".prop_map(move |text| node(YamlValue::Scalar(text)));
    scalar.prop_recursive(4, 30, 5, move |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(move |items| node(YamlValue::List(items)));
        let members = proptest::collection::btree_map("[a-z0-9:# ]{1,4}", inner, 0..4);
        let map = members.prop_map(move |members| {
            let members = members.into_iter().map(|(key, value)| (node(YamlValue::Scalar(key)), value));
            node(YamlValue::Map(members.collect()))
        });
        prop_oneof![list, map]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_in_both_styles(node in any_node()) {
        prop_assert_eq!(flow(&parse(&flow(&node)).unwrap()), flow(&node));
        let mut text = String::new();
        block(&node, 0, &mut text);
        prop_assert_eq!(flow(&parse(&text).unwrap()), flow(&node), "{}", text);
    }
}
