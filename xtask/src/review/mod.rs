//! `cargo xtask review [--strict]`: figures of this repository, and which targets it meets. With `--strict`, a missed one is an error.
//!
//! In reading order: `files` (what git tracks, and what of it is product), `rust` (a scanner of Rust text), `names`, `modules`, `prose`,
//! `crates` and `figures` (one kind of figure each), `measured` (all of them), `targets`, `report` (how they are printed).

mod crates;
mod figures;
mod files;
mod measured;
mod modules;
mod names;
mod prose;
mod report;
mod rust;
mod targets;

use anyhow::bail;
use measured::Measured;

/// Prints the figures and the targets.
pub fn run(is_strict: bool) -> anyhow::Result<()> {
    let measured = Measured::of(&files::top()?)?;
    print!("{}", report::figures(&measured));
    let targets = targets::all(&measured);
    print!("{}", report::targets(&targets));
    let missed = targets.iter().filter(|target| !target.is_met).count();
    if is_strict && missed > 0 {
        bail!("{missed} of {} targets are missed", targets.len());
    }
    Ok(())
}
