//! Every command of the documents that newcomers read first, as they would type it.

use crate::support::TTMON;
use crate::support::terminal::Terminal;
use std::path::Path;

/// Commands of these need no card and succeed.
const WITHOUT_A_CARD: [(&str, &str); 2] =
    [("README.md", include_str!("../../../README.md")), ("docs/tour.md", include_str!("../../../docs/tour.md"))];

/// Commands of this look for what is wrong, so they may fail.
const TROUBLESHOOTING: &str = include_str!("../../../docs/troubleshooting.md");

#[test]
fn every_command_of_readme_and_tour_works_without_a_card() {
    for (name, text) in WITHOUT_A_CARD {
        let commands = commands(text);
        assert!(commands.len() > 5, "{name} has only {commands:?}");
        for command in commands {
            // There is no card, and doctor says so.
            let codes: &[i32] = if command == "ttmon doctor" { &[0, 1] } else { &[0] };
            let (code, screen) = typed(&command);
            assert!(codes.contains(&code), "{name}: {command}: exit code {code}\n{screen}");
        }
    }
}

#[test]
fn every_command_of_troubleshooting_is_one_that_exists() {
    for command in commands(TROUBLESHOOTING) {
        let (code, screen) = typed(&command);
        assert_ne!(code, 127, "{command}\n{screen}");
        assert!(code != 2 || !command.contains("ttmon"), "invalid arguments: {command}\n{screen}");
        assert!(!command.ends_with("--sim") || code == 0, "{command}: exit code {code}\n{screen}");
    }
}

/// Lines of blocks for the shell, and code in tables and text that begins with `ttmon`: not mere names of commands, nor what has a placeholder.
/// Blocks with a name (`sh clone`) install: ./check fresh and ./check dist run these.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut block = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(language), None) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (None, Some("sh")) => commands.push(line.split("   #").next().unwrap().trim()),
            (None, Some(_)) => {}
            (None, None) => {
                let spans = line.split('`').skip(1).step_by(2);
                let is_typed =
                    |span: &&str| span.starts_with("ttmon ") && (line.starts_with('|') || span.contains("--"));
                commands.extend(spans.filter(is_typed));
            }
        }
    }
    commands.retain(|command| {
        !command.split([' ', '=']).any(|word| word.len() > 1 && word.chars().all(char::is_uppercase))
    });
    let mut commands: Vec<String> = commands.into_iter().map(str::to_owned).collect();
    commands.sort();
    commands.dedup();
    commands
}

/// Types a command on a terminal, and leaves what stays on it. The exit code, and the screen at the end.
fn typed(command: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    let is_monitor = words == ["ttmon"] || words.starts_with(&["ttmon", "top"]) || command.starts_with("ttmon --sim");
    let is_service = words.starts_with(&["ttmon", "serve"]);
    // A service that no other test meets.
    let own = format!(" --socket {}/socket --poc-socket off --listen 127.0.0.1:0", folder.path().display());
    let line = if is_service { format!("exec {command}{own}") } else { command.to_owned() };
    let mut terminal = Terminal::start_under(&["sh", "-c", &line], &[], 100, 40, |shell| {
        let path = std::env::var("PATH").unwrap();
        shell.env("PATH", format!("{}:{path}", Path::new(TTMON).parent().unwrap().display()));
        shell.env("HOME", folder.path()).current_dir(folder.path());
    });
    if is_monitor && command.contains("--sim") {
        terminal.await_text("SIMULATED");
        terminal.keys("q");
    }
    if is_service {
        terminal.await_text("event=ready");
        terminal.keys("\x03");
    }
    let status = terminal.end();
    (status.code().unwrap_or(-1), terminal.text())
}
