//! A process that is asked line by line.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that answers lines with lines. It is killed when dropped.
pub struct Asked {
    pub child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Asked {
    pub fn start(command: &mut Command) -> anyhow::Result<(Asked, String)> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdin = child.stdin.take().context("no input")?;
        let stdout = BufReader::new(child.stdout.take().context("no output")?);
        let mut asked = Asked { child, stdin, stdout };
        let first = asked.reply()?;
        Ok((asked, first))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process and waits for its end.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn reply(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        if line.is_empty() || line.starts_with("ERR") {
            bail!("the process answered {line:?}");
        }
        Ok(line.trim_end().to_owned())
    }

    pub fn send(&mut self, command: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.stdin, "{command}")?)
    }

    pub fn ask(&mut self, command: &str) -> anyhow::Result<String> {
        self.send(command)?;
        self.reply()
    }

    /// The number behind `ns=`.
    pub fn number(&mut self, command: &str) -> anyhow::Result<f64> {
        let reply = self.ask(command)?;
        Ok(reply.split_once("ns=").with_context(|| reply.clone())?.1.parse()?)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn this_program() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe()?))
}
