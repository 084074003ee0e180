//! What the agent costs inside ttnn.

use super::{Asked, Figures};
use anyhow::{Context, bail};
use ledger::book;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// Real buffers of a mock device, with and without the agent and tt-metal's own recorder.
pub fn inside(programs: &Path, ttnn: &Path) -> anyhow::Result<()> {
    const PROCESSES: usize = 12;
    let cases = [
        ("plain", false, false),
        ("with the agent", true, false),
        ("without shm", false, true),
        ("without shm, with the agent", true, true),
    ];
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..PROCESSES {
        for ((_, agent, no_shm), times) in cases.iter().zip(&mut times) {
            let mut command = Command::new(programs.join("ttmetal-harness"));
            command.arg("mock").arg(ttnn).arg("crates/harness/clusters/n150.yaml");
            if *agent {
                command.env("LD_PRELOAD", programs.join("libttmon_agent.so"));
            }
            if *no_shm {
                command.env("TT_METAL_SHM_TRACKING_DISABLED", "1");
            }
            let (mut harness, _) = Asked::start(&mut command)?;
            harness.number("churn 2000 2048 2048 dram")?;
            for _ in 0..20 {
                times.push(harness.number("churn 1000 2048 2048 dram")?);
            }
            if kept(harness.child.id())? != agent.then_some(2 * (2000 + 20 * 1000)) {
                bail!("the agent has not counted every event, or counts where it is not");
            }
            let _ = harness.ask("quit");
        }
    }
    let figures: Vec<Figures> = times.into_iter().map(Figures::of).collect();
    for ((name, ..), figures) in cases.iter().zip(&figures) {
        figures.line(name, "ns a pair");
    }
    for (what, with, without) in [
        ("the agent, per event", 1, 0),
        ("the agent, per event, without shm", 3, 2),
        ("tt-metal's own recorder, per event", 0, 2),
    ] {
        let half = |of: fn(&Figures) -> f64| (of(&figures[with]) - of(&figures[without])) / 2.0;
        println!("{what:<64} {:>8.1} / {:>8.1} ns", half(Figures::min), half(Figures::median));
    }
    Ok(())
}

/// Allocations and frees in DRAM, as the book of a process has them.
fn kept(pid: u32) -> anyhow::Result<Option<u64>> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        if std::fs::read_link(&path).is_ok_and(|link| link.to_string_lossy().contains("ttmon-book")) {
            let book = book::read(book::of_file(&File::open(path)?))?;
            let counter = book.chips.first().context("no chip")?.counters[0];
            return Ok(Some(counter.allocations + counter.frees));
        }
    }
    Ok(None)
}
