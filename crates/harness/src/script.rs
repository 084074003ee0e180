//! The line protocol: commands on stdin, one reply each.

use std::io::{self, BufRead, Write};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

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

/// The kinds of device memory that tt-metal distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetalBufferType {
    Dram,
    L1,
    L1Small,
    Trace,
    /// Circular buffers.
    Cb,
}

impl MetalBufferType {
    /// The number in tt-metal's `BufferType` (up to `Trace`) and `ShmBufferType` (all).
    pub fn code(self) -> u8 {
        match self {
            MetalBufferType::Dram => 0,
            MetalBufferType::L1 => 1,
            MetalBufferType::L1Small => 3,
            MetalBufferType::Trace => 4,
            MetalBufferType::Cb => 5,
        }
    }
}

impl FromStr for MetalBufferType {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<MetalBufferType> {
        Ok(match word {
            "dram" => MetalBufferType::Dram,
            "l1" => MetalBufferType::L1,
            "l1_small" => MetalBufferType::L1Small,
            "trace" => MetalBufferType::Trace,
            "cb" => MetalBufferType::Cb,
            _ => bail!("unknown kind {word:?}"),
        })
    }
}

/// Parses a decimal number; `name` says in the reply which one was wrong.
pub fn number<T: FromStr>(name: &str, word: &str) -> Result<T> {
    word.parse().ok().with_context(|| format!("{name} is not a number in range: {word:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
