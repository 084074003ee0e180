//! `ttmon deep-reader --print`: a table as it is, for those who look for a mistake.

use crate::client::{Reader, Request};
use model::Arch;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The argument that asks for it.
pub const OPTION: &str = "--print";
/// What is said when the arguments are not understood.
pub const USAGE: &str = "\
ttmon starts this process by itself. To look at a table:
  ttmon deep-reader --print NUMBER wormhole|blackhole [TIMES [MILLISECONDS]]
With `idle` as the last argument, also of a device that no process holds: see docs/deep.md.";

const NODES: &str = "/dev/tenstorrent";
const DEADLINE: Duration = Duration::from_secs(10);

/// Reads a table as often as asked for, and prints the tags of the last one. Returns the exit code.
pub fn run(arguments: impl Iterator<Item = OsString>) -> i32 {
    let mut words: Vec<String> = arguments.filter_map(|word| word.into_string().ok()).collect();
    let is_idle = words.last().is_some_and(|last| last == "idle");
    words.truncate(words.len() - usize::from(is_idle));
    let number = |at: usize, default| words.get(at).map_or(Some(default), |word| word.parse().ok());
    let arch = words.get(1).and_then(|name| Arch::named(name));
    let (Some(number), Some(arch), Some(times), Some(pause)) = (number(0, u32::MAX), arch, number(2, 1), number(3, 0))
    else {
        eprintln!("{USAGE}");
        return 2;
    };
    let pids = (!is_idle).then(|| PathBuf::from(format!("/proc/driver/tenstorrent/{number}/pids")));
    i32::from(print(&Request { number, arch, pids }, times, Duration::from_millis(pause.into())).is_err())
}

fn print(request: &Request, times: u32, pause: Duration) -> io::Result<()> {
    let mut reader = Reader::new(std::env::current_exe()?, NODES.into());
    let mut output = io::stdout().lock();
    let mut last = None;
    for time in 0..times {
        if time > 0 {
            std::thread::sleep(pause);
        }
        last = match reader.read(request, DEADLINE) {
            Ok(reading) => {
                let (reads, pending, micros) = (reading.reads, reading.pending, reading.took.as_micros());
                let entries = reading.table.entries.len();
                let (opens, filtered) = (reading.opens, reading.filtered);
                writeln!(
                    output,
                    "# {entries} tags, {pending} left, {reads} reads, {micros} µs, opens: {opens}, filtered: {filtered}"
                )?;
                Some(reading.table)
            }
            Err(refused) => {
                let opened = if refused.opened { "opened" } else { "not opened" };
                writeln!(output, "# {}: {} ({opened})", refused.why.name(), refused.detail)?;
                None
            }
        };
    }
    let table = last.ok_or_else(|| io::Error::other("no table"))?;
    for entry in table.entries {
        writeln!(output, "{} = {:#x}", entry.tag, entry.value)?;
    }
    Ok(())
}
