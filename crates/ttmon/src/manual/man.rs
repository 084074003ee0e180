//! `ttmon man DIR`: a man page for the program and one for each command.

use super::reference::{ENVIRONMENT, EXAMPLES, Entry, FILES};
use super::topics;
use clap::Command;
use clap_mangen::Man;
use jiff::tz::TimeZone;
use std::path::{Path, PathBuf};
use watch::exit::{Exit, Failure};

#[derive(Debug, Clone, clap::Args)]
pub struct ManArgs {
    /// The folder; it is made where it is missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Writes `ttmon.1` and `ttmon-COMMAND.1`.
pub fn run(definition: Command, args: &ManArgs) -> anyhow::Result<Exit> {
    let wrong = |path: &Path, error: std::io::Error| {
        Failure::of_io(&error, format!("cannot write to {}: {error}", path.display()))
    };
    std::fs::create_dir_all(&args.folder).map_err(|error| wrong(&args.folder, error))?;
    for (name, text) in pages(definition, &date())? {
        let path = args.folder.join(name);
        std::fs::write(&path, text).map_err(|error| wrong(&path, error))?;
    }
    Ok(Exit::Success)
}

/// The day of SOURCE_DATE_EPOCH. Without it a page has no date, so that two builds are the same.
fn date() -> String {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(String::new, |time| time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string())
}

/// All pages, as file names and texts.
fn pages(mut definition: Command, date: &str) -> anyhow::Result<Vec<(String, String)>> {
    definition.build();
    let commands: Vec<String> = definition.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let mut pages = vec![("ttmon.1".to_owned(), page(&definition, None, &commands, date)?)];
    for command in definition.get_subcommands() {
        let text = page(command, Some(command.get_name()), &commands, date)?;
        pages.push((format!("ttmon-{}.1", command.get_name()), text));
    }
    Ok(pages)
}

fn page(definition: &Command, command: Option<&str>, commands: &[String], date: &str) -> anyhow::Result<String> {
    let name = command.map_or_else(|| "ttmon".to_owned(), |command| format!("ttmon-{command}"));
    let version = concat!("ttmon ", env!("CARGO_PKG_VERSION"));
    let title = format!(".TH \"{}\" \"1\" \"{date}\" \"{version}\" \"User Commands\"\n", name.to_uppercase());
    let mut page = Page(title);
    page.heading("NAME");
    let about = definition.get_about().map(ToString::to_string).unwrap_or_default();
    page.0 += &format!("{} \\- {}\n", bare(&name), marked(&about));
    page.heading("SYNOPSIS");
    page.synopsis(definition);
    let after = definition.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (exit, described): (Vec<&str>, Vec<&str>) =
        after.split("\n\n").partition(|paragraph| paragraph.contains("Exit codes: "));
    page.heading("DESCRIPTION");
    let about = definition.get_long_about().or_else(|| definition.get_about());
    about.map(ToString::to_string).unwrap_or_default().split("\n\n").for_each(|text| page.paragraph(text));
    described.iter().filter(|text| !text.trim().is_empty()).for_each(|text| page.paragraph(text));
    // Of a paragraph that goes on before the codes, the rest is the description's.
    let exit: String = exit.iter().fold(String::new(), |codes, paragraph| match paragraph.split_once("Exit codes: ") {
        Some((before, after)) => {
            page.lines(before);
            codes + after
        }
        None => codes,
    });
    page.0 += &options(definition)?;
    page.commands(definition, command.is_none())?;
    page.heading("EXIT STATUS");
    page.exit_codes(if exit.is_empty() { "as for `ttmon smi`." } else { &exit });
    page.entries("FILES", FILES, command);
    page.entries("ENVIRONMENT", ENVIRONMENT, command);
    page.heading("EXAMPLES");
    for example in EXAMPLES.iter().filter(|example| example.command == command.unwrap_or("ttmon")) {
        page.entry(example.line, example.text);
    }
    page.heading("SEE ALSO");
    let others = commands.iter().filter(|other| command.is_none_or(|command| command != *other));
    let others = others.map(|other| format!("ttmon-{other}"));
    let program = command.map(|_| "ttmon".to_owned());
    let all: Vec<String> =
        program.into_iter().chain(others).map(|page| format!("\\fB{}\\fR(1)", bare(&page))).collect();
    page.0 += &(all.join(",\n") + "\n");
    if command.is_none() {
        page.paragraph(&topics::list());
    }
    Ok(page.0)
}

/// The options, without the definitions that clap_mangen puts before each part of a page.
fn options(command: &Command) -> anyhow::Result<String> {
    let mut out = Vec::new();
    Man::new(command.clone()).render_options_section(&mut out)?;
    let text = String::from_utf8_lossy(&out).replace("\\*(Aq", "\\(aq");
    let is_kept = |line: &&str| !line.starts_with(".ie ") && !line.starts_with(".el ") && *line != ".br";
    Ok(text.lines().filter(is_kept).map(|line| line.to_owned() + "\n").collect())
}

/// A text in roff.
struct Page(String);

impl Page {
    fn heading(&mut self, name: &str) {
        self.0 += &format!(".SH {name}\n");
    }

    /// A command line is bold up to what a person puts in.
    fn synopsis(&mut self, command: &Command) {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:").trim();
        for (n, form) in usage.lines().map(str::trim).filter(|form| !form.is_empty()).enumerate() {
            let (program, rest) = form.split_at(form.find(['[', '<']).unwrap_or(form.len()));
            let line_break = if n > 0 { ".br\n" } else { "" };
            self.0 += &format!("{line_break}\\fB{}\\fR {}\n", bare(program.trim_end()), bare(rest));
        }
    }

    /// Words, or lines as they are where they are indented.
    fn paragraph(&mut self, text: &str) {
        self.gap();
        self.lines(text);
    }

    /// A new paragraph, unless there is one already.
    fn gap(&mut self) {
        let last = self.0.trim_end().lines().next_back().unwrap_or_default();
        if !last.starts_with(".SH") && last != ".PP" {
            self.0 += ".PP\n";
        }
    }

    fn lines(&mut self, text: &str) {
        let mut is_literal = false;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if line.starts_with(' ') != is_literal {
                is_literal = !is_literal;
                self.0 += if is_literal { "" } else { ".fi\n.in\n" };
                self.gap();
                self.0 += if is_literal { ".in +4n\n.nf\n" } else { "" };
            }
            let text = if is_literal { bare(line.strip_prefix("  ").unwrap_or(line)) } else { marked(line) };
            self.0 += &guarded(&text);
            self.0 += "\n";
        }
        if is_literal {
            self.0 += ".fi\n.in\n";
        }
    }

    fn entry(&mut self, name: &str, text: &str) {
        self.0 += &format!(".TP\n\\fB{}\\fR\n{}\n", bare(name), guarded(&marked(text)));
    }

    fn entries(&mut self, heading: &str, entries: &[Entry], command: Option<&str>) {
        let mut concerned = entries.iter().filter(|entry| entry.concerns(command)).peekable();
        if concerned.peek().is_some() {
            self.heading(heading);
            concerned.for_each(|entry| self.entry(entry.name, entry.text));
        }
    }

    /// `0 success; 2 invalid arguments.`: a line for each code, and what is no code as text.
    fn exit_codes(&mut self, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in text.trim().trim_end_matches('.').split("; ") {
            match part.split_once(' ').filter(|(code, _)| code.bytes().all(|byte| byte.is_ascii_digit())) {
                Some((code, meaning)) => self.entry(code, &(meaning.to_owned() + ".")),
                None => self.paragraph(&(capital(part) + ".")),
            }
        }
    }

    /// The commands: those of the program have pages, those of a command are described here.
    fn commands(&mut self, command: &Command, have_pages: bool) -> anyhow::Result<()> {
        let commands: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
        if commands.iter().all(|command| command.get_name() == "help") {
            return Ok(());
        }
        self.heading("COMMANDS");
        for command in commands.into_iter().filter(|command| have_pages || command.get_name() != "help") {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            let name = if have_pages { format!("ttmon-{name}(1)") } else { name.to_owned() };
            self.entry(&name, &about);
            // What every command has is above.
            let own = command.clone().mut_args(|arg| {
                let is_known = arg.is_global_set() || arg.get_id() == "help";
                arg.hide(is_known)
            });
            if !have_pages && own.get_arguments().any(|arg| !arg.is_hide_set()) {
                self.0 += &format!(".RS\n{}.RE\n", options(&own)?.replace(".SH OPTIONS\n", ""));
            }
        }
        Ok(())
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Text in which nothing has a meaning for roff.
fn bare(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    text.replace('~', "\\(ti").replace('^', "\\(ha").replace('"', "\\(dq")
}

/// What is between backticks is bold.
fn marked(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(n, part)| if n % 2 == 1 { format!("\\fB{}\\fR", bare(part)) } else { bare(part) }).collect()
}

/// A line that begins with a dot or a quote would be a command.
fn guarded(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn every_example_is_a_command_line_and_every_command_has_one() {
        for example in EXAMPLES {
            let words: Vec<&str> = example.line.split(' ').collect();
            let words = match (&words[..], example.command) {
                ([program, ..], "ttmon") => [&[*program, "smi"], &words[1..]].concat(),
                (words, _) => words.to_vec(),
            };
            let words: Vec<&str> = words.into_iter().collect();
            let has_smi = words.iter().filter(|word| **word == "smi").count();
            let words = if has_smi > 1 { words[..words.len() - 1].to_vec() } else { words };
            assert!(Cli::try_parse_from(&words).is_ok(), "{}", example.line);
        }
        for command in Cli::command().get_subcommands() {
            assert!(EXAMPLES.iter().any(|example| example.command == command.get_name()), "{}", command.get_name());
        }
    }

    #[test]
    fn text_has_no_meaning_for_roff() {
        assert_eq!(marked("a `b-c` \\x"), "a \\fBb\\-c\\fR \\ex");
        assert_eq!(guarded(".x"), "\\&.x");
    }
}
