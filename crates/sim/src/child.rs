//! A workload as its parent sees it: it follows orders and answers; dropped, it is killed.

use crate::order::{DONE, WorkerOrder};
use crate::workload::VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct WorkerProcess {
    process: process::Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl WorkerProcess {
    /// Starts `program` under the looks of `command`, in the machine's root.
    pub fn start(program: &Path, root: &Path, command: &[&str], visible: &str) -> io::Result<WorkerProcess> {
        let mut process = Command::new(fs::canonicalize(program)?)
            .arg0(command[0])
            .args(&command[1..])
            .env(VARIABLE, command[0])
            .env("TT_VISIBLE_DEVICES", visible)
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C is for the parent alone.
            .process_group(0)
            .spawn()?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(orders), Some(answers)) => Ok(WorkerProcess { process, orders, answers: BufReader::new(answers) }),
            _ => unreachable!("both were asked for above"),
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Has all this done before it returns.
    pub fn tell(&mut self, orders: &[WorkerOrder]) -> io::Result<()> {
        let mut lines = Vec::new();
        for order in orders {
            serde_json::to_writer(&mut lines, order)?;
            lines.push(b'\n');
        }
        self.orders.write_all(&lines).map_err(ended)?;
        for order in orders {
            let answer = self.answer()?;
            if answer != DONE {
                return Err(io::Error::other(format!("workload: {order:?}: {answer}")));
            }
        }
        Ok(())
    }

    /// Whether it has exited, or was ended from outside.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn answer(&mut self) -> io::Result<String> {
        // The process may have been stopped from outside; the machine does not stop with it.
        if self.answers.buffer().is_empty() {
            let mut answers = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            if rustix::io::retry_on_intr(|| poll(&mut answers, Some(&PATIENCE)))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(ended(io::ErrorKind::BrokenPipe.into()));
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // Neither can fail for a child that has not been waited for, and one that has needs neither.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Whether it is noticed when writing or when reading depends on the moment; it is the same thing.
fn ended(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, "the workload has ended"),
        _ => error,
    }
}

const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
