//! The scanner, on the texts that are hard to scan.

use super::*;

fn names(text: &str) -> Vec<(String, usize, usize)> {
    functions(&bare(text)).into_iter().map(|one| (one.name, one.line, one.lines)).collect()
}

#[test]
fn braces_in_comments_and_literals_are_not_code() {
    let text = "a /* { /* { */ } */ b \"{\\\"{\" c '{' d '\\'' e r#\"{\"{\"# f br\"{\" // {\ng";
    let words: Vec<String> = bare(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "b", "c", "d", "e", "f", "b", "g"]);
}

#[test]
fn lengths_and_lines_stay_where_they_are() {
    let text = "let a = \"ä\n–\"; // ü\nlet b = 'ö';\n";
    let bare = bare(text);
    assert_eq!((bare.len(), bare.lines().count()), (text.len(), 3));
    assert_eq!(bare.find("let b"), text.find("let b"));
}

#[test]
fn a_lifetime_is_not_a_character() {
    let text = "fn a<'a, 'b>(x: &'a str) -> &'a str { x }";
    assert_eq!(bare(text), text);
}

#[test]
fn a_raw_identifier_is_not_a_raw_string() {
    let bare = bare("r#type r#\"{\"# var\"{\"");
    assert_eq!(bare.split_whitespace().collect::<Vec<_>>(), ["r#type", "var"]);
}

#[test]
fn a_test_module_reaches_from_its_attribute_to_its_last_brace() {
    let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\npub(crate) mod tests {\n  fn b() { \"}\" }\n}\nfn c() {}\n";
    let bare = bare(text);
    let blocks = test_modules(&bare);
    assert_eq!(blocks.iter().map(|block| lines_of(&bare, block)).collect::<Vec<_>>(), [5]);
    assert_eq!(without(&bare, &blocks).split_whitespace().collect::<String>(), "fna(){}fnc(){}");
}

#[test]
fn a_test_module_in_a_file_of_its_own_has_no_lines_here() {
    assert_eq!(test_modules("#[cfg(test)]\nmod tests;\nfn a() {}\n"), []);
    assert_eq!(test_modules("#[cfg(test)]\nfn only_in_tests() {}\n"), []);
}

#[test]
fn a_function_has_the_lines_from_its_name_to_its_last_brace() {
    let text = "/// Doc.\n#[inline]\npub fn a(\n    x: [u8; 4],\n) -> u8\nwhere\n{\n    if x { 1 } else { 2 }\n}\n";
    assert_eq!(names(text), [("a".to_owned(), 3, 7)]);
}

#[test]
fn a_declaration_without_a_body_is_not_a_function() {
    let text = "trait T { fn a(&self) -> [u8; 2]; fn b() {} }\ntype F = fn (u8);\nlet often = 1;";
    assert_eq!(names(text), [("b".to_owned(), 1, 1)]);
    assert_eq!(names("hook!(fn a(x: u8), x);\nfn b() {}"), [("b".to_owned(), 2, 1)]);
}

#[test]
fn a_function_inside_of_another_is_counted_by_itself_too() {
    assert_eq!(names("fn a() {\n  fn b() {\n  }\n}\n"), [("a".to_owned(), 1, 4), ("b".to_owned(), 2, 2)]);
}
