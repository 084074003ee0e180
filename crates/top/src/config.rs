//! The choices of `ttmon top` in the configuration file: TOML, read leniently and written so that comments stay.

use crate::settings::{CHOICES, Choice, ChoiceKind, ChoiceValue, TopSettings, of_former_word};
use alerts::Problem;
use show::text::{did_you_mean, nearest};
use std::io;
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item};
use watch::atomic_file::replace_file;
use watch::config::{Config, TOP_TABLE as TABLE, problem_of, said};

/// The settings of a file, and what is wrong in it. A mistake costs nothing but itself.
pub fn load(path: &Path) -> (TopSettings, Vec<Problem>) {
    read(Config::load(path))
}

/// The settings without a file.
pub fn defaults() -> TopSettings {
    TopSettings::default()
}

fn read(config: Config) -> (TopSettings, Vec<Problem>) {
    let Config { top, mut problems, .. } = config;
    let mut settings = TopSettings::default();
    for (name, item, line) in top {
        let set = match CHOICES.iter().find(|choice| choice.name == name) {
            Some(choice) => value_of(choice, &item)
                .map(|value| (choice.set)(&mut settings, &value))
                .map_err(|why| format!("{name}: {why}")),
            None => Err(match nearest(&name, CHOICES.iter().map(|choice| choice.name)) {
                Some(near) => format!("unknown key {name}: did you mean {near}?"),
                None => format!("unknown key {name}"),
            }),
        };
        problems.extend(set.err().map(|what| Problem { line, what }));
    }
    problems.sort_by_key(|problem| problem.line);
    (settings, problems)
}

fn value_of(choice: &Choice, item: &Item) -> Result<ChoiceValue, String> {
    let known = |words: &'static [&'static str], word: &str| {
        let word = of_former_word(word).filter(|new| words.contains(new)).unwrap_or(word);
        let found = words.iter().copied().find(|known| *known == word);
        found.ok_or_else(|| {
            let near = did_you_mean(word, words.iter().copied());
            format!("unknown word {word:?}; {near}expected one of {}", words.join(", "))
        })
    };
    match choice.kind {
        ChoiceKind::Switch => item.as_bool().map(ChoiceValue::Switch).ok_or_else(|| "expected true or false".into()),
        ChoiceKind::Number(least, most, _) => {
            let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
            let number = number.filter(|number| (least..=most).contains(number));
            number.map(ChoiceValue::Number).ok_or_else(|| format!("expected a number from {least} to {most}"))
        }
        ChoiceKind::OneOf(words) => match item.as_str() {
            Some(word) => Ok(ChoiceValue::Word(known(words, word)?)),
            None => Err(format!("expected one of {}, in quotes", words.join(", "))),
        },
        ChoiceKind::SomeOf(words) => {
            let needed = || format!("expected a list of some of {}", words.join(", "));
            let mut all: Vec<&'static str> = Vec::new();
            for one in item.as_array().ok_or_else(needed)?.iter() {
                let word = known(words, one.as_str().ok_or_else(needed)?)?;
                if all.contains(&word) {
                    return Err(format!("duplicate word {word:?}"));
                }
                all.push(word);
            }
            Ok(ChoiceValue::Words(all))
        }
    }
}

/// The text with these settings in it. What already says so, and every comment, stays as it is. The reason when the text is
/// no TOML, and would be lost.
fn with(text: &str, settings: &TopSettings) -> Result<String, Problem> {
    let mut document = text.parse::<DocumentMut>().map_err(|error| problem_of(text, &error))?;
    let (now, _) = read(Config::parse(text));
    let is_new = !document.contains_key(TABLE);
    let table = document.entry(TABLE).or_insert_with(toml_edit::table);
    let Some(table) = table.as_table_like_mut() else {
        return Err(Problem { line: 1, what: format!("{TABLE} is no table") });
    };
    for choice in CHOICES.iter() {
        let value = (choice.get)(settings);
        if value == (choice.get)(&now) {
            continue;
        }
        let mut item = item_of(&value);
        if let Some(old) = table.get(choice.name).and_then(Item::as_value) {
            if let Some(new) = item.as_value_mut() {
                *new.decor_mut() = old.decor().clone();
            }
        }
        match table.get_mut(choice.name) {
            Some(old) => *old = item,
            None => drop(table.insert(choice.name, item)),
        }
    }
    if is_new && table.is_empty() {
        document.remove(TABLE);
    }
    Ok(document.to_string())
}

fn item_of(value: &ChoiceValue) -> Item {
    match value {
        ChoiceValue::Switch(on) => toml_edit::value(*on),
        ChoiceValue::Number(number) => toml_edit::value(i64::try_from(*number).unwrap_or(i64::MAX)),
        ChoiceValue::Word(word) => toml_edit::value(*word),
        ChoiceValue::Words(words) => toml_edit::value(words.iter().copied().collect::<Array>()),
    }
}

/// Writes the settings into the file, and nothing else. The reason when that cannot be done; the file is then as it was.
pub(crate) fn save(path: &Path, settings: &TopSettings) -> Result<(), String> {
    let failed = |error: io::Error| format!("not saved: {}: {error}", path.display());
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let text = with(&text, settings)
        .map_err(|problem| format!("not saved, since the file would be lost: {}", said(path, &problem)))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    replace_file(path, text.as_bytes()).map_err(failed)
}

/// Everything with its explanation, as a file.
pub fn print(settings: &TopSettings) -> String {
    let mut text = format!("[{TABLE}]\n");
    for choice in CHOICES.iter() {
        let item = item_of(&(choice.get)(settings));
        let value = item.as_value().map(ToString::to_string).unwrap_or_default();
        text += &format!("# {}\n{} = {}\n", choice.help, choice.name, value.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;

    fn parse(text: &str) -> (TopSettings, Vec<Problem>) {
        read(Config::parse(text))
    }

    fn problems(text: &str) -> Vec<String> {
        parse(text).1.into_iter().map(|problem| format!("{}: {}", problem.line, problem.what)).collect()
    }

    #[test]
    fn what_is_printed_is_what_is_read() {
        let text = print(&TopSettings::default());
        assert_eq!(parse(&text), (TopSettings::default(), vec![]));
        expect![[r#"
            [top]
            # colours: dark, light, high-contrast, colour-blind or monochrome
            theme = "dark"
            # draw with ASCII characters only
            ascii = false
            # temperatures in °F
            fahrenheit = false
            # milliseconds from one sample to the next
            interval_ms = 1000
            # how much history the charts keep; takes effect on the next start
            history_seconds = 3600
            # the charts of the overview, in their order
            charts = ["utilization", "power", "asic_temp", "dram"]
            # all devices in one chart, instead of the selected one
            overlaid = false
            # charts as areas instead of lines
            filled = false
            # charts with the newest at the left
            reversed = false
            # the columns of processes, in their order, where there is room
            columns = ["dev", "pid", "user", "container", "dram", "l1", "l1_small", "trace", "cb", "source", "util", "share", "growth", "cpu", "rss", "age", "command"]
            # the column that processes are sorted by
            sort = "dram"
            # the largest first
            descending = true
            # processes as a tree
            tree = false
            # never send signals
            read_only = false
            # enable the mouse; without it, the terminal selects text as usual
            mouse = true
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_mistake_is_named_and_costs_nothing_but_itself() {
        let text = "[top]\ntheme = \"light\"\nthem = 1\ninterval_ms = 5\ncharts = [\"power\", \"powr\"]\ntree = 1\nsort = 3\nfilled = true\n";
        expect![[r#"
            3: unknown key them: did you mean theme?
            4: interval_ms: expected a number from 100 to 60000
            5: charts: unknown word "powr"; did you mean power? expected one of asic_temp, fan, power, aiclk, utilization, programs, host_to_device_bytes_per_second, device_to_host_bytes_per_second, dram, l1, gddr_temp
            6: tree: expected true or false
            7: sort: expected one of dev, pid, user, container, dram, l1, l1_small, trace, cb, source, util, share, growth, cpu, rss, age, command, in quotes"#]]
        .assert_eq(&problems(text).join("\n"));
        let settings = parse(text).0;
        assert_eq!((settings.theme.name(), settings.filled), ("light", true));
        assert_eq!(settings.charts, TopSettings::default().charts);
        assert_eq!(
            problems("theme = 1\n[tob]\n"),
            [
                "1: unknown key theme outside of a table: expected [top], [serve], [fleet], [alerts] or [[alert]]",
                "2: unknown table [tob]: did you mean top? expected [top], [serve], [fleet], [alerts] or [[alert]]"
            ]
        );
        assert_eq!(problems("[top]\ncharts = [\"fan\", \"fan\"]"), ["2: charts: duplicate word \"fan\""]);
    }

    #[test]
    fn a_broken_file_chooses_nothing_and_is_not_written() {
        let text = "[top]\ntheme = \"light\"\noops\n";
        let (settings, problems) = parse(text);
        assert_eq!(settings, TopSettings::default());
        assert_eq!(problems[0].line, 3, "{problems:?}");
        assert_eq!(with(text, &TopSettings { tree: true, ..TopSettings::default() }).unwrap_err().line, 3);
    }

    #[test]
    fn comments_and_whatever_is_not_changed_stay() {
        let text = "# mine\n[top] # all of it\n# warm\ntheme   =   \"light\" # bright\nstrange = 3\ntree = true\n";
        let settings = TopSettings { fahrenheit: true, ..parse(text).0 };
        let settings = TopSettings { theme: crate::theme::Scheme::Monochrome, ..settings };
        assert_eq!(
            with(text, &settings).unwrap(),
            "# mine\n[top] # all of it\n# warm\ntheme   =   \"monochrome\" # bright\nstrange = 3\ntree = true\nfahrenheit = true\n"
        );
        assert_eq!(with("", &TopSettings::default()).unwrap(), "");
        assert_eq!(with(text, &parse(text).0).unwrap(), text);
    }

    proptest! {
        #[test]
        fn any_text_is_a_configuration_or_a_problem(text in "\\PC*|(\\[top\\]\n)?([a-z_]{1,12} = [\\[\\]\"a-z0-9, -]{0,20}\n){0,5}") {
            let (settings, _) = parse(&text);
            if let Ok(written) = with(&text, &TopSettings { tree: !settings.tree, ..settings.clone() }) {
                assert_eq!(parse(&written).0.tree, !settings.tree);
            }
        }
    }
}
