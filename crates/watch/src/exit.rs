//! Exit codes: nvidia-smi's, where it has one for the case.

use std::fmt::Display;
use std::io::{self, Write};

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Success = 0,
    /// What has no code of its own; a machine that is not healthy.
    Failure = 1,
    /// A word on the command line was wrong.
    Usage = 2,
    /// Something may not be read or written.
    Permission = 4,
    /// No such device, or no device at all.
    NoDevice = 6,
    /// A remote machine does not answer.
    Unreachable = 7,
    /// The driver is not loaded.
    NoDriver = 9,
    /// A device is hung or lost.
    DeviceLost = 15,
}

impl Exit {
    /// All of them with their meaning: help, man pages and docs/reference.md have them from here.
    pub const ALL: [(Exit, &'static str); 8] = [
        (Exit::Success, "success"),
        (Exit::Failure, "not healthy, or another error"),
        (Exit::Usage, "invalid arguments"),
        (Exit::Permission, "permission denied"),
        (Exit::NoDevice, "no such device, or no device"),
        (Exit::Unreachable, "a remote machine does not answer"),
        (Exit::NoDriver, "the driver is not loaded"),
        (Exit::DeviceLost, "a device is hung or lost"),
    ];

    /// All of them in one sentence.
    pub fn sentence() -> String {
        let codes: Vec<String> = Exit::ALL.iter().map(|(exit, text)| format!("{} {text}", *exit as u8)).collect();
        format!("Exit codes: {}.", codes.join("; "))
    }
}

/// An error that knows its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// The exit code of this error.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// An error for `main` to print: what was wrong, where, and what to do.
    pub fn error(exit: Exit, message: impl Into<String>) -> anyhow::Error {
        Failure { exit, message: message.into() }.into()
    }

    /// The same for a file that cannot be read or written.
    pub fn of_io(error: &io::Error, message: impl Into<String>) -> anyhow::Error {
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        Failure::error(if is_denied { Exit::Permission } else { Exit::Usage }, message)
    }
}

/// Writes a line to standard error. Where nobody reads it, the exit code still says what happened.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints an error and picks the exit code. A reader that has seen enough is no error.
pub fn code(result: anyhow::Result<Exit>) -> u8 {
    let error = match result {
        Ok(exit) => return exit as u8,
        Err(error) => error,
    };
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    if io == Some(io::ErrorKind::BrokenPipe) {
        return Exit::Success as u8;
    }
    say(format_args!("error: {error:#}"));
    match (error.downcast_ref::<Failure>(), io) {
        (Some(failure), _) => failure.exit as u8,
        (_, Some(io::ErrorKind::PermissionDenied)) => Exit::Permission as u8,
        _ => Exit::Failure as u8,
    }
}
