//! `ttmon sim`: a simulated machine for other programs to look at.

use std::io::Write;
use std::time::Duration;
use watch::exit::Exit;
use watch::machine::simulate;
use watch::wait::{Interrupt, Woken};

#[derive(Debug, Clone, clap::Args)]
pub struct SimArgs {
    /// What to simulate, as for --sim
    #[arg(default_value = sim::DEFAULT_SPEC)]
    pub spec: String,
}

/// Runs until Ctrl-C. Prints the folder first, alone on a line, for scripts.
pub fn run(args: &SimArgs) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::new()?;
    let machine = simulate(&args.spec)?.run();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", machine.root().display())?;
    out.flush()?;
    eprintln!(
        "A simulated {} runs there until Ctrl-C. Look at it with: ttmon --root {}",
        args.spec,
        machine.root().display()
    );
    while interrupt.wait(Duration::from_secs(3600)) != Woken::End {}
    Ok(Exit::Success)
}
