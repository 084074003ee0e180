//! `cargo xtask bench [smi|watch|top|book|serve|web|fleet]`: what `ttmon smi --json` costs, beside a program that only reads the same files;
//! what watching costs, and the monitor; what it costs a process to keep a book; `ttmon serve` beside a server as the proof of
//! concept had it; what its answers over HTTP cost; and a fleet that a Prometheus tells of.

mod bench;
mod book;
mod counting;
mod fleet;
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
        ["bench", "serve"] => serve::run(),
        ["bench", "web"] => web::run(),
        ["bench", "fleet"] => fleet::run(),
        ["rusage", ..] => bench::rusage(),
        ["keep", live] => book::keeper::keep(live.parse()?),
        ["copy", path] => book::keeper::copy_for_ever(path),
        ["churn", pairs] => book::keeper::churn(pairs.parse()?),
        ["receive", path] => book::receive(path),
        ["tell", path] => serve::tell(path),
        ["hold", path, chip, live] => serve::hold(path, chip.parse()?, live.parse()?),
        ["reference-server", path] => serve::reference_server(path),
        _ => bail!("usage: cargo xtask bench [smi|watch|top|book|serve|web|fleet]"),
    }
}
