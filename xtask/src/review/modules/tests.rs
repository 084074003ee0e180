//! Small crates with and without cycles.

use super::*;

fn cycles(files: &[(&str, &str)]) -> Vec<Cycle> {
    let file =
        |(path, text): &(&str, &str)| SourceFile::new(&format!("crates/x/src/{path}"), (*text).to_owned()).unwrap();
    let files: Vec<SourceFile> = files.iter().map(file).collect();
    by_crate(&files).remove("x").unwrap().cycles()
}

fn used(text: &str, depth: usize) -> Vec<String> {
    used_names(text, depth).into_iter().collect()
}

#[test]
fn a_module_is_used_alone_or_in_a_group() {
    assert_eq!(used("use crate::a::B; crate::c::d();", 1), ["a", "c"]);
    assert_eq!(used("use crate::{a, b::{c, d}, e as f};", 1), ["a", "b", "e"]);
    assert_eq!(used("use crate::{\n    a,\n    b::C,\n};", 1), ["", "a", "b"]);
}

#[test]
fn super_is_the_crate_only_right_below_it() {
    assert_eq!(used("use super::a;", 1), ["a"]);
    assert_eq!(used("use super::a;", 2), Vec::<String>::new());
    assert_eq!(used("use super::super::a;", 2), ["a"]);
}

#[test]
fn other_crates_have_modules_of_the_same_name() {
    assert_eq!(used("use other_crate::a; use other::crate::b;", 1), Vec::<String>::new());
}

#[test]
fn modules_that_use_each_other_are_one_cycle_with_a_shortest_example() {
    let found = cycles(&[
        ("a.rs", "use crate::b;"),
        ("b/mod.rs", "mod inner;"),
        ("b/inner.rs", "use crate::c::C;"),
        ("c.rs", "use super::{a, b};"),
        ("d.rs", "use crate::a;"),
    ]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].members, ["a", "b", "c"]);
    let example: Vec<(&str, &str)> = found[0].example.iter().map(|(to, file)| (&**to, &**file)).collect();
    assert_eq!(example, [("c", "crates/x/src/b/inner.rs"), ("b", "crates/x/src/c.rs")]);
}

#[test]
fn a_crate_root_may_use_all_and_be_used_by_all() {
    assert_eq!(cycles(&[("main.rs", "use crate::a; pub struct B;"), ("a.rs", "use crate::B;")]), []);
}

#[test]
fn tests_comments_and_the_module_itself_make_no_cycle() {
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n";
    let itself = "//! See crate::b.\nuse crate::a::X;\n";
    let other = ("b.rs", "use crate::a;");
    assert_eq!(cycles(&[("a.rs", &format!("{itself}{tests}")), ("a/tests.rs", "use crate::b;"), other]), []);
}
