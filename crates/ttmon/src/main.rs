//! `ttmon`: how are the Tenstorrent devices of this machine, who uses them, and where did the memory go?

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alerts;
mod cli;
mod command_words;
mod config;
mod fleet_json;
mod left_behind;
mod mem;
mod metrics;
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
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let cli = Cli::of(std::env::args_os(), is_terminal);
    let child = cli.reads_this_machine().then(Child::fork).flatten();
    let code = cli.run();
    if let Some(child) = child {
        child.end();
    }
    code
}
