//! The line protocol: commands on stdin, one reply each.

use std::io::{self, BufRead, Write};
use std::str::FromStr;

use anyhow::{Context, Result};
use ledger::book::MemoryKind;

/// Answers every line of stdin, then drops `state`, which closes what it holds.
pub fn serve<S>(state: S, replies: impl Write, answer: impl FnMut(&mut S, &[&str]) -> Result<String>) -> Result<()> {
    converse(state, io::stdin().lock(), replies, answer)
}

fn converse<S>(
    mut state: S,
    commands: impl BufRead,
    mut replies: impl Write,
    mut answer: impl FnMut(&mut S, &[&str]) -> Result<String>,
) -> Result<()> {
    writeln!(replies, "READY {}", std::process::id())?;
    for line in commands.lines() {
        let line = line.context("cannot read a command")?;
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["quit"] {
            drop(state);
            writeln!(replies, "OK")?;
            return Ok(());
        }
        match answer(&mut state, &words) {
            Ok(values) if values.is_empty() => writeln!(replies, "OK")?,
            Ok(values) => writeln!(replies, "OK {values}")?,
            Err(error) => writeln!(replies, "ERR {error:#}")?,
        }
    }
    Ok(())
}

/// The kind of memory that has this name.
pub fn kind(word: &str) -> Result<MemoryKind> {
    let mut kinds = MemoryKind::ALL.into_iter().filter(|kind| *kind != MemoryKind::Kernel);
    kinds.find(|kind| kind.name() == word).with_context(|| format!("unknown kind {word:?}"))
}

/// The number of a kind in tt-metal's `BufferType` (up to `Trace`) and `ShmBufferType` (all).
pub fn code(kind: MemoryKind) -> u8 {
    match kind {
        MemoryKind::Dram => 0,
        MemoryKind::L1 => 1,
        MemoryKind::L1Small => 3,
        MemoryKind::Trace => 4,
        MemoryKind::Cb | MemoryKind::Kernel => 5,
    }
}

/// Parses a decimal number; `name` says in the reply which one was wrong.
pub fn number<T: FromStr>(name: &str, word: &str) -> Result<T> {
    word.parse().ok().with_context(|| format!("{name} is not a number in range: {word:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn every_line_gets_one_reply_and_quit_is_the_last() {
        assert_eq!(
            conversation("add 2\nadd x\n\nadd 3\nquit\nadd 4\n"),
            "OK 2\nERR N is not a number in range: \"x\"\nERR unknown command \"\"\nOK 5\nOK\n"
        );
    }

    #[test]
    fn the_end_of_input_is_not_answered() {
        assert_eq!(conversation("add 1\n"), "OK 1\n");
    }

    /// The replies after `READY` of a state that adds up.
    fn conversation(commands: &str) -> String {
        let mut replies = Vec::new();
        converse(0, commands.as_bytes(), &mut replies, |sum: &mut u64, words| match words {
            ["add", n] => {
                *sum += number::<u64>("N", n)?;
                Ok(sum.to_string())
            }
            _ => bail!("unknown command {:?}", words.join(" ")),
        })
        .unwrap();
        let replies = String::from_utf8(replies).unwrap();
        let ready = format!("READY {}\n", std::process::id());
        replies.strip_prefix(&ready).unwrap().to_owned()
    }
}
