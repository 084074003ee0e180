//! `ttmon`: how are the Tenstorrent devices of this machine, who uses them, and where did the memory go?

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alerts;
mod cli;
mod config;
mod mem;
mod metrics;
mod record;
mod run;
mod serve;
mod sim_command;
mod smi;
mod top;

use clap::Parser;
use cli::{Cli, Command};
use std::io::IsTerminal;
use std::process::ExitCode;
use watch::exit;

fn main() -> ExitCode {
    sim::run_workload_if_asked();
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let cli = Cli::parse_from(cli::arguments(std::env::args_os(), is_terminal));
    if let Err(error) = cli.check() {
        return exit::code(Err(error));
    }
    let result = match cli.command {
        Command::Smi(smi) => smi::run(&cli.machine, &smi),
        Command::Top(top) => top::run(&cli.machine, &top),
        Command::Mem(mem) => mem::run(&cli.machine, &mem),
        Command::Run(run) => return run::run(&cli.machine, &run),
        Command::Serve(serve) => serve::run(&cli.machine, &serve),
        Command::Metrics(metrics) => metrics::run(&cli.machine, &metrics),
        Command::Record(record) => record::run(&cli.machine, &record),
        Command::Alerts(alerts) => alerts::run(&cli.machine, &alerts),
        Command::Config(config) => config::run(&config),
        Command::Sim(sim) => sim_command::run(&sim),
    };
    exit::code(result)
}
