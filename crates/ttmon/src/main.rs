//! `ttmon`: how are the Tenstorrent devices of this machine, who uses them, and where did the memory go?

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alerts;
mod cli;
mod command_words;
mod config;
mod habits;
mod json;
mod left_behind;
mod manual;
mod mem;
mod metrics;
mod mistakes;
mod ops;
mod quit_key;
mod record;
mod run;
mod screen;
mod sim;
mod smi;

use cli::Cli;
use left_behind::Child;
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    ::sim::run_workload_if_asked();
    // First of all: what the parent has touched is copied for the child.
    let child = Child::fork();
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !show::terminal::is_dumb();
    let code = Cli::of(std::env::args_os(), is_terminal).run();
    if let Some(child) = child {
        child.end();
    }
    code
}
