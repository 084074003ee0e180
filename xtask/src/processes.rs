//! The processes of a program that was started: ttmon runs in a child of the first one.

use anyhow::Context;
use std::path::PathBuf;

/// The process that was started, and the one in which the program runs.
pub fn processes(pid: u32) -> Vec<u32> {
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children.filter(|&child| name(child) == name(pid))).collect()
}

/// The process in which the program runs.
pub fn inner(pid: u32) -> u32 {
    processes(pid).last().copied().unwrap_or(pid)
}

/// The folders of all threads of a program.
pub fn threads(pid: u32) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for process in processes(pid) {
        for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
            all.push(thread?.path());
        }
    }
    Ok(all)
}

/// A line of the status of a program, in MiB: the sum of its processes.
pub fn memory(pid: u32, name: &str) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for process in processes(pid) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        sum += line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0;
    }
    Ok(sum)
}
