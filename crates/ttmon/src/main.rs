//! `ttmon`: how are the Tenstorrent devices of this machine, who uses them, and where did the memory go?

// `start` has the entry: Rust's own reads /proc/self/maps and sets up handlers before it comes to `main`.
#![cfg_attr(not(test), no_main)]
#![cfg_attr(test, allow(clippy::unwrap_used, dead_code))]

mod alerts;
mod cli;
mod command_words;
mod config;
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
#[cfg(not(test))]
mod start;

use cli::Cli;
use left_behind::Child;
use std::io::IsTerminal;

/// The program, from its first line to its exit code.
fn program() -> u8 {
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
