//! `cargo xtask bench [smi|book]`: what `ttmon smi --json` costs, beside a program that only reads the same files; and what
//! it costs a process to keep a book.

mod bench;
mod book;
mod counting;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["bench"] | ["bench", "smi"] => bench::run(),
        ["bench", "book"] => book::run(),
        ["rusage", ..] => bench::rusage(),
        ["keep", live] => book::keeper::keep(live.parse()?),
        ["copy", path] => book::keeper::copy_for_ever(path),
        ["churn", pairs] => book::keeper::churn(pairs.parse()?),
        ["receive", path] => book::receive(path),
        _ => bail!("usage: cargo xtask bench [smi|book]"),
    }
}
