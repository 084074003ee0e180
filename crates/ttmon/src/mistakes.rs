//! What is wrong with a command line, in one sentence with the nearest word.

use crate::habits::{self, Habit};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use show::text::{clean, did_you_mean};
use std::borrow::Cow;
use std::ffi::OsString;
use std::num::{ParseFloatError, ParseIntError};
use std::path::Path;
use watch::exit::{self, say};

/// Prints what is wrong, or the help that was asked for, and ends the program.
pub fn end(error: &Error, definition: Command, arguments: &[OsString]) -> ! {
    let Some(sentence) = sentence(error, definition, arguments) else {
        let code = match error.print() {
            Err(why) if error.exit_code() == 0 => exit::code(Err(why.into())).into(),
            _ => error.exit_code(),
        };
        std::process::exit(code);
    };
    say(format_args!("error: {}", with_own_help(sentence)));
    std::process::exit(error.exit_code());
}

/// A program that was called by another one's name has a help of its own.
fn with_own_help(sentence: String) -> String {
    let Some(called) = std::env::args_os().next() else { return sentence };
    let asked = [called.clone(), "--help".into()];
    match (Path::new(&called).file_name(), habits::of_program(&asked)) {
        (Some(name), Some(Habit::Text(_))) => {
            let own = format!("`{} --help`", name.to_string_lossy());
            ["`ttmon smi --help`", "`ttmon top --help`", "`ttmon --help`"]
                .iter()
                .fold(sentence, |sentence, help| sentence.replace(help, &own))
        }
        _ => sentence,
    }
}

/// The sentence for a word that is unknown, missing or does not go with another. Clap has one for everything else.
pub fn sentence(error: &Error, mut definition: Command, arguments: &[OsString]) -> Option<String> {
    definition.build();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(clean(text).into_owned()),
        _ => None,
    };
    let (command, path) = asked_for(&definition, arguments);
    // nvidia-smi's words are known, though they do nothing here.
    let is_error = !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let nvidia = match path.as_str() {
        "ttmon" | "ttmon smi" => Some(None),
        "ttmon smi nvlink" => Some(Some("nvlink")),
        "ttmon smi topo" => Some(Some("topo")),
        _ => None,
    };
    if let Some(why) = nvidia
        .filter(|_| is_error)
        .and_then(|of| crate::smi::refused(of, arguments, |word| may_be_wrong(word, error, command)))
    {
        return Some(why);
    }
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand)?;
            let near = meant(&path, &word)
                .unwrap_or_else(|| did_you_mean(&word, command.get_subcommands().map(Command::get_name)));
            Some(format!("there is no command {word:?}: {near}`{path} --help` lists all"))
        }
        ErrorKind::UnknownArgument => {
            let word = text(ContextKind::InvalidArg)?;
            if !word.starts_with('-') {
                let near = did_you_mean(&word, command.get_subcommands().map(Command::get_name));
                return Some(format!("unexpected word {word:?}: {near}`{path} --help` lists what it takes"));
            }
            let options: Vec<String> = command.get_arguments().flat_map(names).collect();
            let nearest = || did_you_mean(&word, options.iter().map(String::as_str).filter(|_| word.len() > 2));
            let near = meant(&path, &word).unwrap_or_else(nearest);
            Some(format!("there is no option {word}: {near}`{path} --help` lists all"))
        }
        ErrorKind::ValueValidation => {
            let (option, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
            let option = typed(name(&option), command, arguments);
            Some(format!("{option}: invalid value {value:?}: {}", reason(std::error::Error::source(error)?)))
        }
        ErrorKind::InvalidValue => {
            let (option, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
            let option = typed(name(&option), command, arguments);
            if value.is_empty() {
                return Some(format!("{option} needs a value: `{path} --help` shows which"));
            }
            let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else { return None };
            if known.is_empty() {
                return None;
            }
            let near = did_you_mean(&value, known.iter().map(String::as_str));
            Some(format!("{option}: unknown value {value:?}: {near}expected one of {}", known.join(", ")))
        }
        ErrorKind::MissingRequiredArgument => {
            let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
            let missing: Vec<Cow<'_, str>> = missing.iter().map(|argument| clean(argument)).collect();
            let are = if missing.len() == 1 { "is" } else { "are" };
            Some(format!("{} {are} missing: `{path} --help` shows how it is used", missing.join(" and ")))
        }
        ErrorKind::ArgumentConflict => {
            let option = text(ContextKind::InvalidArg)?;
            let others = match error.get(ContextKind::PriorArg)? {
                ContextValue::String(other) => vec![other.clone()],
                ContextValue::Strings(others) => others.clone(),
                _ => return None,
            };
            let others: Vec<Cow<'_, str>> = others.iter().map(|other| typed(name(other), command, arguments)).collect();
            let option = typed(name(&option), command, arguments);
            // An option that conflicts with itself was given twice.
            if others.iter().all(|other| *other == option) {
                return Some(format!("{option} can be given once only"));
            }
            Some(format!("{option} cannot be used with {}", others.join(" and ")))
        }
        _ => None,
    }
}

/// Words of other programs: the command where they are typed, where only that counts, the word, and what is meant here.
#[rustfmt::skip]
const MEANT: &[(&str, &str, &str)] = &[
    ("", "monitor", "`ttmon top`"),
    ("", "watch", "`ttmon top`, or `ttmon smi -w`"),
    ("", "events", "`ttmon why`"),
    ("", "logs", "`ttmon why`"),
    ("", "ps", "`ttmon smi pmon`"),
    ("", "process", "`ttmon smi pmon`"),
    ("", "processes", "`ttmon smi pmon`"),
    ("", "list", "`ttmon smi -L`"),
    ("", "status", "`ttmon health`"),
    ("", "version", "`ttmon --version`"),
    ("", "snapshot", "`ttmon smi --json`"),
    ("", "topology", "`ttmon smi topo`"),
    ("", "reset", "the official tt-smi, `python3 -m tt_smi -r`, since ttmon only watches"),
    ("", "kill", "F9 in `ttmon top`"),
    ("ttmon export", "--csv", "--format csv"),
    ("", "--csv", "`ttmon smi --query-device FIELD --format csv`"),
    ("", "--once", "`ttmon smi`, which prints once"),
    ("ttmon smi", "--interval", "-l SEC"),
    ("ttmon serve", "--port", "--listen ADDRESS:PORT"),
    ("ttmon metrics", "--format", "--openmetrics"),
];

/// What a word of another program means here.
fn meant(path: &str, word: &str) -> Option<String> {
    let is_it = |(place, other, _): &&(&str, &str, &str)| *other == word && (place.is_empty() || *place == path);
    MEANT.iter().find(is_it).map(|(_, _, meant)| format!("did you mean {meant}? "))
}

/// Whether a word of nvidia-smi may be what the error is about. An option that the command has can be wrong by its value alone.
fn may_be_wrong(word: &str, error: &Error, command: &Command) -> bool {
    let about =
        [ContextKind::InvalidSubcommand, ContextKind::InvalidArg].into_iter().find_map(|kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(name(text)),
            _ => None,
        });
    let is_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
    if !word.starts_with('-') {
        return about == Some(word) && !is_value;
    }
    let letter = |arg: &Arg| arg.get_short().map(|letter| format!("-{letter}"));
    let known = command
        .get_arguments()
        .find(|arg| letter(arg).as_deref() == Some(word) || names(arg).iter().any(|name| name == word));
    known.is_none_or(|arg| is_value && about.is_some_and(|about| names(arg).iter().any(|name| name == about)))
}

/// The option that clap calls `--id <DEVICE>`, or the value that it calls `<SHELL>` or `[TOPIC]`.
fn name(argument: &str) -> &str {
    let brackets = ['<', '>', '[', ']', '.'];
    if argument.starts_with('-') {
        argument.split([' ', '[', '=']).next().unwrap_or(argument)
    } else {
        argument.trim_matches(brackets)
    }
}

/// The option as it was typed: by its letter, or by another name.
fn typed<'a>(option: &'a str, command: &Command, arguments: &'a [OsString]) -> Cow<'a, str> {
    // nvidia-smi's -lms has become --loop-ms.
    if option == "--loop-ms" && std::env::args_os().any(|word| word.as_encoded_bytes().starts_with(b"-lms")) {
        return "-lms".into();
    }
    let Some(arg) = command.get_arguments().find(|arg| names(arg).iter().any(|name| name == option)) else {
        return option.into();
    };
    let letter = arg.get_short().map(|letter| format!("-{letter}"));
    let is = |word: &str, name: &str| word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    let name = |word: &str| {
        let letter = letter.as_ref().filter(|letter| word.starts_with(letter.as_str()) && !word.starts_with("--"));
        letter.cloned().or_else(|| names(arg).into_iter().find(|name| is(word, name)))
    };
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    words.find_map(name).map_or(option.into(), Cow::Owned)
}

/// The command that the words name, and the words for it.
fn asked_for<'a>(definition: &'a Command, arguments: &[OsString]) -> (&'a Command, String) {
    let (mut command, mut path) = (definition, definition.get_name().to_owned());
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(found) = command.find_subcommand(word) {
            (command, path) = (found, format!("{path} {word}"));
        }
    }
    (command, path)
}

fn names(arg: &Arg) -> Vec<String> {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long().into_iter().chain(aliases).map(|name| format!("--{name}")).collect()
}
/// What a value should have been. The standard library speaks of digits and literals.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    if error.is::<ParseIntError>() {
        "expected a whole number".to_owned()
    } else if error.is::<ParseFloatError>() {
        "expected a number".to_owned()
    } else {
        let said = error.to_string();
        in_words(&said).unwrap_or(said)
    }
}

/// `0 is not in 1..=9` as a sentence.
fn in_words(said: &str) -> Option<String> {
    let (_, range) = said.split_once(" is not in ")?;
    let (from, to) = range.split_once("..")?;
    Some(match to.trim_start_matches('=') {
        "" => format!("expected a whole number, {from} or more"),
        to => format!("expected a whole number from {from} to {to}"),
    })
}
