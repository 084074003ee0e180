//! The words of the command line, with the command put in that the program's name, or no command at all, stands for.
//!
//! Which commands and options there are is read from clap's definition of them, as it is before clap completes it: to complete all
//! commands takes longer than to read a device.

use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The command line with its command. Without any it is the monitor on a terminal, and a table elsewhere.
pub fn completed(arguments: impl Iterator<Item = OsString>, is_terminal: bool, definition: &Command) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let called = of_program(&arguments);
    // `ttmon smi help dmon` is `ttmon help smi dmon`.
    let asks_for_help = |words: &[OsString]| words[2] == "help" && is_command(definition, &words[1]);
    if called.is_none() && arguments.len() > 2 && asks_for_help(&arguments) {
        arguments.swap(1, 2);
    }
    // What stands behind `help` are names.
    if called.is_none() && arguments.get(1).is_some_and(|word| word == "help") {
        return arguments;
    }
    // What stands behind `run` is another program's.
    if let Some(end) = words_before_a_command(&arguments, definition).filter(|_| called.is_none()) {
        let command = arguments.split_off(end);
        join_sim(&mut arguments);
        arguments.extend(command);
        return arguments;
    }
    let has_command = arguments.iter().skip(1).any(|word| is_command(definition, word));
    // A word that is no command of any kind is for clap to name, and not one for smi.
    if called.is_none() && !has_command && has_other_word(&arguments, definition) {
        return arguments;
    }
    // Options of smi may stand before its name.
    let smi = arguments.iter().skip(1).position(|word| word == "smi").map(|at| at + 1);
    smi.filter(|_| called.is_none()).map(|at| arguments.remove(at));
    let usual =
        if is_terminal && smi.is_none() && is_only_about_the_machine(&arguments, definition) { "top" } else { "smi" };
    if let Some(command) = called.or((smi.is_some() || !has_command).then_some(usual)) {
        arguments.insert(1.min(arguments.len()), command.into());
    }
    of_smi(arguments)
}

/// Whether there is a word that is neither an option, nor the value of one, nor a command of smi.
fn has_other_word(arguments: &[OsString], definition: &Command) -> bool {
    let Some(smi) = definition.find_subcommand("smi") else { return false };
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let takes_value = |option: &OsString| {
        let mut options = smi.get_arguments().chain(definition.get_arguments());
        options.any(|arg| is_named(arg, option) && arg.get_action().takes_values() && !arg.is_require_equals_set())
            || option == "-lms"
    };
    let is_value = |at: usize| {
        let is_spec = || arguments[at].to_str().is_some_and(is_spec);
        is_option(&arguments[at - 1])
            && (takes_value(&arguments[at - 1]) || (arguments[at - 1] == "--sim" && is_spec()))
    };
    let mut words = (1..arguments.len()).filter(|at| !is_option(&arguments[*at]) && !is_value(*at));
    // The words after a command of smi are its own.
    words.next().is_some_and(|at| smi.get_subcommands().all(|command| arguments[at] != command.get_name()))
}

/// A program of this name is `ttmon smi`.
const NVIDIA_SMI: &str = "nvidia-smi";

/// The command that the program's name stands for.
pub fn of_program(arguments: &[OsString]) -> Option<&'static str> {
    match arguments.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str)? {
        NVIDIA_SMI => Some("smi"),
        "allocation_monitor_client" => Some("mem"),
        "allocation_server" | "allocation_server_poc" => Some("serve"),
        _ => None,
    }
}

/// Whether this program was called nvidia-smi.
pub fn called_nvidia_smi() -> bool {
    std::env::args_os().next().is_some_and(|called| Path::new(&called).file_name() == Some(OsStr::new(NVIDIA_SMI)))
}

/// The words of `ttmon smi` as clap knows them.
pub fn of_smi(mut arguments: Vec<OsString>) -> Vec<OsString> {
    join_sim(&mut arguments);
    // nvidia-smi spells it with one dash.
    for argument in &mut arguments {
        if let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix("-lms")) {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            *argument = if value.is_empty() { "--loop-ms".into() } else { format!("--loop-ms={value}").into() };
        }
    }
    arguments
}

/// What clap adds to a definition.
const ADDED: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// Whether a word is a command, or asks for help or the version. One that runs another program is looked for on its own.
fn is_command(definition: &Command, word: &OsStr) -> bool {
    definition.get_subcommands().any(|command| word == command.get_name() && !runs_a_program(command))
        || ADDED.iter().any(|added| word == *added)
}

/// Whether all words from the first one on that is no option are another program's.
fn runs_a_program(command: &Command) -> bool {
    command.get_positionals().any(Arg::is_trailing_var_arg_set)
}

fn is_named(arg: &Arg, word: &OsStr) -> bool {
    let Some(word) = word.to_str() else { return false };
    let long = word.strip_prefix("--");
    let short = word.strip_prefix('-').and_then(|rest| rest.parse::<char>().ok());
    long.is_some_and(|long| {
        arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
    }) || short.is_some_and(|short| arg.get_short() == Some(short))
}

fn needs_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && arg.get_num_args().is_none_or(|values| values.min_values() > 0)
}

/// What is simulated may be parted from --sim by a blank.
fn join_sim(arguments: &mut Vec<OsString>) {
    if let Some(at) = arguments.iter().position(|word| word == "--sim") {
        if let Some(spec) = arguments.get(at + 1).and_then(|word| word.to_str()).filter(|word| is_spec(word)) {
            arguments[at] = format!("--sim={spec}").into();
            arguments.remove(at + 1);
        }
    }
}

/// Whether there is nothing but which machine to look at.
fn is_only_about_the_machine(arguments: &[OsString], definition: &Command) -> bool {
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str()).peekable();
    let mut all = arguments.len().saturating_sub(1);
    while let Some(word) = words.next() {
        all -= 1;
        let name = word.split('=').next().unwrap_or(word);
        let about = definition.get_arguments().find(|arg| arg.is_global_set() && is_named(arg, name.as_ref()));
        match about {
            None => return false,
            Some(arg) if needs_value(arg) => all -= usize::from(name == word && words.next().is_some()),
            Some(_) if name == "--sim" => {
                all -= usize::from(name == word && words.next_if(|word| is_spec(word)).is_some());
            }
            Some(_) => {}
        }
    }
    // A word that is no text is somebody else's.
    all == 0
}

/// How many words are our own when the command is `run`: those before the command that it shall run.
fn words_before_a_command(arguments: &[OsString], definition: &Command) -> Option<usize> {
    let runs = definition.get_subcommands().find(|command| runs_a_program(command))?;
    let is_value = |at: usize| {
        let is_spec = || arguments[at].to_str().is_some_and(is_spec);
        let before = &arguments[at - 1];
        let mut options = runs.get_arguments().chain(definition.get_arguments());
        options.any(|arg| needs_value(arg) && is_named(arg, before)) || (before == "--sim" && is_spec())
    };
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-") && word != "-";
    let mut words =
        (1..arguments.len()).filter(|at| arguments[*at] == "--" || !(is_option(&arguments[*at]) || is_value(*at)));
    let run = words.next().filter(|at| arguments[*at] == runs.get_name())?;
    Some(words.next().unwrap_or(arguments.len()).max(run))
}

fn is_spec(word: &str) -> bool {
    !word.starts_with('-') && word.parse::<sim::Spec>().is_ok()
}
