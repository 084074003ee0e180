//! `cargo xtask bench [smi|watch|top|fleet|book|launches|serve|neighbours|web|prometheus]`: what `ttmon smi --json` costs, beside a program that only reads the same
//! files; what watching costs, and the monitor, of one machine and of a thousand; what it costs a process to keep a book; `ttmon serve`
//! beside a server as the proof of concept had it, and among clients that keep it busy; what its answers over HTTP cost; and a fleet that comes from a Prometheus.
//!
//! `cargo xtask soak --minutes N`: whether the memory and the descriptors of the service stay as they are while books and clients come and go.
//!
//! `cargo xtask dist [--out DIR]`: the program and its packages, for any distribution with glibc 2.17 or later.
//!
//! `cargo xtask pictures [PROGRAM]`: docs/top.svg and docs/smi.svg, from the simulator.
//!
//! `cargo xtask review [--strict]`: figures of this repository, and which of its targets are met.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bench;
mod book;
mod counting;
mod dist;
mod fleet;
mod pictures;
mod processes;
mod prometheus;
mod review;
mod serve;
mod top;
mod web;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["bench"] | ["bench", "smi"] => bench::run(),
        ["bench", "watch"] => bench::watch(),
        ["bench", "top", others @ ..] => top::run(others),
        ["bench", "book"] => book::run(),
        ["bench", "launches"] => book::bench_launches(),
        ["bench", "fleet"] => fleet::run(),
        ["bench", "serve"] => serve::run(),
        ["bench", "neighbours"] => serve::neighbours(),
        ["soak", "--minutes", minutes] => serve::soak(minutes.parse()?),
        ["bench", "web"] => web::run(),
        ["bench", "prometheus"] => prometheus::run(),
        ["dist", others @ ..] => dist::run(others),
        ["pictures"] => pictures::run(None),
        ["pictures", program] => pictures::run(Some(program)),
        ["review"] => review::run(false),
        ["review", "--strict"] => review::run(true),
        ["rusage", ..] => bench::rusage(),
        ["keep", live] => book::keeper::keep(live.parse()?),
        ["copy", path] => book::keeper::copy_for_ever(path),
        ["churn", pairs] => book::keeper::churn(pairs.parse()?),
        ["receive", path] => book::receive(path),
        ["poc-client", path] => serve::run_client(path),
        ["hold", path, chip, live] => serve::hold(path, chip.parse()?, live.parse()?),
        ["reference-server", path] => serve::reference_server(path),
        _ => bail!(
            "usage: cargo xtask bench [smi|watch|top|fleet|book|launches|serve|neighbours|web|prometheus] | \
             soak --minutes N | dist [--out DIR] | pictures [PROGRAM] | review [--strict]"
        ),
    }
}
