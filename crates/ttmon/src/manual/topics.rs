//! `ttmon help TOPIC`: the help of a command, or a topic that concerns several.

use super::reference::{ENVIRONMENT, FILES, exit_codes, listed};
use clap::Command;
use model::filter::{Filter, SYNTAX};
use show::text::did_you_mean;
use std::io::{self, Write};
use watch::exit::{Exit, Failure};

#[derive(Debug, Clone, clap::Args)]
pub struct HelpArgs {
    /// A command, a command of it, or a topic
    #[arg(value_name = "COMMAND|TOPIC")]
    pub words: Vec<String>,
}

/// Something to read that is no command.
pub struct Topic {
    pub name: &'static str,
    pub title: &'static str,
    /// Its text.
    pub text: fn() -> String,
}

/// All topics, in the order of the list.
#[rustfmt::skip]
pub const TOPICS: &[Topic] = &[
    Topic { name: "devices", title: "How to name a device", text: devices },
    Topic { name: "fields", title: "The fields of --query-gpu and --query-compute-apps", text: crate::smi::field_help },
    Topic { name: "sections", title: "The sections of `ttmon smi -q -d`", text: crate::smi::section_help },
    Topic { name: "filter", title: "How to filter processes", text: filter },
    Topic { name: "rules", title: "Alert rules, and their figures", text: crate::alerts::after_help },
    Topic { name: "keys", title: "The keys of `ttmon top`", text: top::key_help },
    Topic { name: "settings", title: "The settings of `ttmon top`", text: settings },
    Topic { name: "sim", title: "Simulated machines", text: simulation },
    Topic { name: "tt-smi", title: "A program called `tt-smi`", text: crate::habits::tt_smi::help },
    Topic { name: "nvidia-smi", title: "The options of nvidia-smi", text: crate::smi::nvidia_help },
    Topic { name: "nvtop", title: "A program called `tt-nvtop`", text: crate::habits::nvtop::help },
    Topic { name: "exit-codes", title: "Exit codes", text: codes },
    Topic { name: "environment", title: "Environment variables", text: || of(ENVIRONMENT) },
    Topic { name: "files", title: "Files", text: || of(FILES) },
];

fn of(entries: &[super::reference::Entry]) -> String {
    listed(entries.iter().map(|entry| (entry.name, entry.text)))
}

fn codes() -> String {
    let codes = exit_codes();
    let listed = listed(codes.iter().map(|(code, text)| (code.as_str(), *text)));
    format!("{listed}\nSome commands have more of their own: `ttmon help COMMAND` lists them.\n")
}

fn devices() -> String {
    "\
A device can be named by any of these, with -i in every command, and in `device =` of a rule:

0                     its number, N of /dev/tenstorrent/N; a card's number means all its chips
0R                    the chip behind number 0, which has no PCIe link of its own
0000:01:00.0          its PCI address; the domain may be left out: 01:00.0
0100014511801234      the serial of the board, which means all its chips
TT-…, or the chip id  one chip; `ttmon smi -L` prints it

Several are separated by commas: ttmon smi -i 0,2R
"
    .into()
}

fn filter() -> String {
    let fields: Vec<&str> = Filter::fields().collect();
    format!(
        "\
In `ttmon top` (key /), on the page, and in the API (/api/v1/processes?filter=):

  {SYNTAX}

word            anywhere in the name, the command, the user or the container
field:text      equals
field~text      contains
field>number    compares, as <, >= and <= do. Bytes may have K, M, G or T; times s, m, h or d

Terms one after another must all hold. `or`, `not` (or `-`) and parentheses combine them, quotes keep blanks together.
Upper and lower case are the same. An unknown value matches nothing, so `not dram>1G` also has processes whose DRAM is unknown.

Fields: {}

Example: user:me dram>1G name~vllm
",
        fields.join(", ")
    )
}

fn settings() -> String {
    format!(
        "`ttmon config path` prints where the file is. This is what it has by default:\n\n{}",
        top::config::print(&top::config::defaults())
    )
}

fn simulation() -> String {
    format!(
        "\
--sim is an option of every command; `ttmon sim` runs one machine for several of them.

{}.

Example: ttmon top --sim p150x4,agent,hang=2@10s
",
        watch::args::sim_help()
    )
}

/// The list of topics, for the help of the whole program.
pub fn list() -> String {
    let names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    format!("Topics: `ttmon help TOPIC` explains {}.", names.join(", "))
}

/// Prints the help of a command or a topic.
pub fn run(mut definition: Command, args: &HelpArgs) -> anyhow::Result<Exit> {
    definition.build();
    let mut command = definition.clone();
    for (n, word) in args.words.iter().enumerate() {
        let topic = TOPICS.iter().find(|topic| topic.name.eq_ignore_ascii_case(word) && args.words.len() == 1);
        command = match (command.find_subcommand(word).cloned(), topic) {
            (Some(found), _) => found,
            (None, Some(topic)) => return print(&format!("{}\n\n{}", topic.title, (topic.text)())),
            (None, None) => return Err(unknown(&command, n, word)),
        };
    }
    if args.words.is_empty() {
        let topics = listed(TOPICS.iter().map(|topic| (topic.name, topic.title)));
        let help = command.render_long_help();
        return print(&format!("{help}\nTopics, for `ttmon help TOPIC`:\n\n{topics}"));
    }
    // As -h has it, and at length where there is more to say.
    let is_long =
        command.get_long_about().is_some() || command.get_arguments().any(|arg| arg.get_long_help().is_some());
    let help = if is_long { command.render_long_help() } else { command.render_help() };
    let also = TOPICS.iter().find(|topic| args.words == [topic.name]);
    let also = also.map_or_else(String::new, |topic| format!("\n{}\n\n{}", topic.title, (topic.text)()));
    print(&format!("{help}{also}"))
}

fn unknown(command: &Command, depth: usize, word: &str) -> anyhow::Error {
    let commands = command.get_subcommands().map(Command::get_name);
    let topics = TOPICS.iter().map(|topic| topic.name).filter(|_| depth == 0);
    let near = did_you_mean(word, commands.chain(topics));
    let message = format!("there is no command and no topic {word:?}: {near}`ttmon help` lists all");
    Failure::error(Exit::Usage, message)
}

fn print(text: &str) -> anyhow::Result<Exit> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Success)
}
