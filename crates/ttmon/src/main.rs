//! `ttmon`: how are the Tenstorrent devices of this machine, who uses them, and where did the memory go?

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alerts;
mod built_in_agent;
mod cli;
mod command_words;
mod config;
mod json;
mod left_behind;
mod mem;
mod metrics;
mod ops;
mod quit_key;
mod record;
mod run;
mod screen;
mod sim;
mod smi;
mod version;

use cli::Cli;
use left_behind::Child;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    ::sim::run_workload_if_asked();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if version::is_asked_for(&arguments) {
        // Whoever closed the pipe has read enough.
        let _ = std::io::stdout().write_all(version::verbose().as_bytes());
        return ExitCode::SUCCESS;
    }
    // First of all: what the parent has touched is copied for the child.
    let child = Child::fork();
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let code = Cli::of(arguments.into_iter(), is_terminal).run();
    if let Some(child) = child {
        child.end();
    }
    code
}
