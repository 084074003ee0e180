//! The sentences of a Markdown document.

/// One sentence, and how many words it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub words: usize,
    pub text: String,
}

/// The most words that a sentence of a document should have.
pub const SENTENCE_WORDS: usize = 25;

/// The characters at which a sentence ends, before a space or the end.
pub const MARKS: &[char] = &['.', '!', '?', ':'];
/// The same without the colon.
pub const FULL_STOPS: &[char] = &['.', '!', '?'];

/// The sentences of the paragraphs and lists: without code blocks, tables and headings.
///
/// A sentence ends at one of the marks, and where a paragraph or an item of a list ends.
pub fn sentences(markdown: &str, marks: &[char]) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    for paragraph in paragraphs(markdown) {
        let mut words = Vec::new();
        for word in paragraph.split_whitespace() {
            words.push(word);
            if ends_sentence(word, marks) {
                sentences.extend(sentence(&std::mem::take(&mut words)));
            }
        }
        sentences.extend(sentence(&words));
    }
    sentences
}

/// What is between blank lines, markers of list items, and all that is no prose.
fn paragraphs(markdown: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut fence = None;
    for line in markdown.lines().map(str::trim) {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        let is_code = fence.is_some() || mark.is_some();
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_none() { mark } else { None };
        }
        let prose = if is_code || is_no_prose(line) { None } else { Some(item(line).unwrap_or(line)) };
        if prose.is_none_or(|prose| prose.is_empty() || prose.len() < line.len()) {
            paragraphs.push(String::new());
        }
        if let (Some(last), Some(prose)) = (paragraphs.last_mut(), prose) {
            *last += prose;
            *last += "\n";
        }
    }
    paragraphs
}

fn is_no_prose(line: &str) -> bool {
    let is_link_target = line.starts_with('[') && line.contains("]: ");
    line.starts_with(['|', '#', '<']) || line.starts_with("---") || is_link_target
}

/// The text of a line that begins an item of a list.
fn item(line: &str) -> Option<&str> {
    let without_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match line.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest.strip_prefix(' '),
        None if without_number.len() < line.len() => without_number.strip_prefix(['.', ')'])?.strip_prefix(' '),
        None => None,
    }
}

fn ends_sentence(word: &str, marks: &[char]) -> bool {
    word.trim_end_matches(['*', '_', ')', '"', '”', '’']).ends_with(marks)
}

/// Dashes and other signs by themselves are no words.
fn sentence(words: &[&str]) -> Option<Sentence> {
    let count = words.iter().filter(|word| word.contains(char::is_alphanumeric)).count();
    (count > 0).then(|| Sentence { words: count, text: words.join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(markdown: &str) -> Vec<usize> {
        sentences(markdown, MARKS).iter().map(|sentence| sentence.words).collect()
    }

    #[test]
    fn a_sentence_ends_at_its_mark_before_a_space() {
        assert_eq!(lengths("One two. Three v1.2 four! *Five?* Six: seven\neight"), [2, 3, 1, 1, 2]);
        assert_eq!(sentences("One: two. Three", FULL_STOPS).len(), 2);
    }

    #[test]
    fn a_paragraph_and_an_item_of_a_list_end_a_sentence() {
        assert_eq!(lengths("One two\nthree\n\nfour\n- five six\n  seven\n2. eight\n"), [3, 1, 3, 1]);
    }

    #[test]
    fn code_tables_and_headings_are_no_sentences() {
        let text = "# Title\nOne.\n```sh\nnot one\n~~~\n```\n| a | b |\n|---|---|\n\n---\n[x]: http://y z\nTwo.\n";
        assert_eq!(lengths(text), [1, 1]);
    }

    #[test]
    fn signs_are_no_words() {
        assert_eq!(lengths("one – two & `three` -- four"), [4]);
    }
}
