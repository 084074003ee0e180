//! Programs whose names ttmon may have, with the options that people and scripts give them.

pub mod nvtop;
pub mod tt_smi;

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What another program's command line means here.
#[derive(Debug, PartialEq, Eq)]
pub enum Habit {
    /// A command line of ttmon.
    Words(Vec<OsString>),
    /// A text to print, and that is all.
    Text(String),
    /// Why it cannot be done.
    Refused(String),
}

/// What the command line means where the program is called by another one's name.
pub fn of_program(arguments: &[OsString]) -> Option<Habit> {
    let name = arguments.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str)?;
    let words = &arguments[1..];
    match name {
        "tt-smi" => Some(tt_smi::understood(words, false)),
        "tt_smi" | "tt_smi_umd" => Some(tt_smi::understood(words, true)),
        "tt-nvtop" => Some(nvtop::understood(words)),
        _ => None,
    }
}

/// An option with its names, and what a person or a page is told of it.
pub struct HabitOption<E: 'static> {
    pub names: &'static [&'static str],
    /// What its value is called. `[X]` may be left out, `[X...]` may be several.
    pub value: &'static str,
    pub effect: E,
    pub help: &'static str,
}

impl<E> HabitOption<E> {
    fn is(&self, word: &str) -> bool {
        self.names.contains(&word)
    }

    /// `-f, --filename [FILE]`
    pub fn shown(&self) -> String {
        format!("{} {}", self.names.join(", "), self.value).trim_end().to_owned()
    }

    /// Takes its value, or values, from the words that follow, or from behind its `=`.
    fn values(
        &self,
        inline: Option<&str>,
        rest: &mut std::iter::Peekable<std::slice::Iter<'_, OsString>>,
    ) -> Vec<OsString> {
        if let Some(value) = inline {
            return vec![value.into()];
        }
        let most = match self.value {
            "" => 0,
            value if value.ends_with("...]") => usize::MAX,
            _ => 1,
        };
        let is_value = |word: &&OsString| *word == "-" || !word.as_encoded_bytes().starts_with(b"-");
        let mut values = Vec::new();
        while values.len() < most {
            let Some(value) = rest.next_if(|word| is_value(word) || !self.value.starts_with('[')) else { break };
            values.push(value.clone());
        }
        values
    }
}

/// The option that a word names, and what is behind its `=`.
fn found<'a, E>(
    options: &'static [HabitOption<E>],
    word: &'a str,
) -> Option<(&'static HabitOption<E>, Option<&'a str>)> {
    if let Some(option) = options.iter().find(|option| option.is(word)) {
        return Some((option, None));
    }
    let (name, value) = word.split_once('=').filter(|_| word.starts_with("--"))?;
    let option = options.iter().find(|option| option.is(name) && !option.value.is_empty())?;
    Some((option, Some(value)))
}

/// All options, one above the other.
fn listed<E>(options: &[HabitOption<E>]) -> String {
    options.iter().map(|option| format!("  {}\n      {}\n", option.shown(), option.help)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;

    #[test]
    fn the_page_of_habits_has_the_tables_of_the_parsers() {
        fn table<E>(options: &[HabitOption<E>]) -> String {
            let row = |option: &HabitOption<E>| {
                let names: Vec<String> = option.names.iter().map(|name| format!("`{name}`")).collect();
                let value = if option.value.is_empty() { String::new() } else { format!(" `{}`", option.value) };
                format!("| {}{value} | {} |\n", names.join(", "), option.help)
            };
            format!("| option | here |\n|---|---|\n{}", options.iter().map(row).collect::<String>())
        }
        let page = include_str!("habits.md");
        let page = page.replace("{tt-smi}\n", &table(tt_smi::OPTIONS)).replace("{nvtop}\n", &table(nvtop::OPTIONS));
        let page = page.replace("{nvidia-smi}\n", &crate::smi::nvidia_habits());
        expect_file!["../../../../docs/habits.md"].assert_eq(&page);
    }
}
