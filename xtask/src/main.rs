//! `cargo xtask bench`: what `ttmon smi --json` costs, beside a program that only reads the same files.

mod bench;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("bench") => bench::run(),
        Some("rusage") => bench::rusage(),
        _ => bail!("usage: cargo xtask bench"),
    }
}
