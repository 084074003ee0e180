//! `ttmon`: how are the Tenstorrent devices of this machine, who uses them, and where did the memory go?

// `start` has the entry: Rust's own reads /proc/self/maps and sets up handlers before it comes to `main`.
#![cfg_attr(not(test), no_main)]
#![cfg_attr(test, allow(clippy::unwrap_used, dead_code))]

mod alerts;
mod built_in_agent;
mod cli;
mod command_words;
mod compare;
mod config;
mod doctor;
mod export;
mod habits;
mod health;
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
mod timeline;
mod version;
mod why;

use cli::Cli;
use left_behind::Child;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use watch::exit::{self, Exit};

/// The program, from its first line to its exit code.
fn program() -> u8 {
    ::sim::run_workload_if_asked();
    // Before there is a child: a reader is one process.
    deep::run_reader_if_asked();
    // First of all: what the parent has touched is copied for the child.
    let child = Child::fork();
    let code = command(std::env::args_os().collect());
    if let Some(child) = child {
        child.end();
    }
    code
}

fn command(arguments: Vec<OsString>) -> u8 {
    if version::is_asked_for(&arguments) {
        let printed = std::io::stdout().write_all(version::verbose().as_bytes());
        return exit::code(printed.map(|()| Exit::Success).map_err(Into::into));
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !show::terminal::is_dumb();
    Cli::of(arguments.into_iter(), is_terminal).run()
}
