//! What the machine orders its processes to do, one line each. Paths are from the machine's root, where the processes live.

use crate::region::Amounts;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerOrder {
    /// Map a library.
    Lib { path: String },
    /// Open a device, twice as tt-umd does.
    Open { path: String },
    /// Mark a device as in use.
    Lock { path: String },
    /// Attach to a chip's book of memory.
    Attach { path: String, asic: u64, device: u32 },
    /// Have these amounts on the chip that was attached as number `region`.
    Set { region: usize, amounts: Amounts },
    /// Close everything properly.
    Detach,
}

/// The answer when it was done. Any other line says what went wrong.
pub(crate) const DONE: &str = "ok";

impl fmt::Display for WorkerOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerOrder::Lib { path } => write!(f, "lib {path}"),
            WorkerOrder::Open { path } => write!(f, "open {path}"),
            WorkerOrder::Lock { path } => write!(f, "lock {path}"),
            WorkerOrder::Attach { path, asic, device } => write!(f, "attach {path} {asic} {device}"),
            WorkerOrder::Set { region, amounts: Amounts { dram, l1, l1_small, trace, cb } } => {
                write!(f, "set {region} {dram} {l1} {l1_small} {trace} {cb}")
            }
            WorkerOrder::Detach => write!(f, "detach"),
        }
    }
}

impl FromStr for WorkerOrder {
    type Err = String;

    fn from_str(line: &str) -> Result<WorkerOrder, String> {
        parse(line).ok_or_else(|| format!("not an order: {line:?}"))
    }
}

fn parse(line: &str) -> Option<WorkerOrder> {
    let mut words = line.split(' ');
    let order = words.next()?;
    let mut word = || words.next().map(str::to_owned);
    let order = match order {
        "lib" => WorkerOrder::Lib { path: word()? },
        "open" => WorkerOrder::Open { path: word()? },
        "lock" => WorkerOrder::Lock { path: word()? },
        "attach" => WorkerOrder::Attach { path: word()?, asic: word()?.parse().ok()?, device: word()?.parse().ok()? },
        "set" => {
            let region = word()?.parse().ok()?;
            let mut bytes = || word()?.parse().ok();
            let (dram, l1, l1_small, trace, cb) = (bytes()?, bytes()?, bytes()?, bytes()?, bytes()?);
            WorkerOrder::Set { region, amounts: Amounts { dram, l1, l1_small, trace, cb } }
        }
        "detach" => WorkerOrder::Detach,
        _ => return None,
    };
    words.next().is_none().then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_lines() {
        for line in [
            "lib usr/lib/libtt_metal.so",
            "open dev/tenstorrent/0",
            "lock dev/shm/TT_UMD_LOCK.CHIP_IN_USE_0_PCIe",
            "attach dev/shm/tt_device_77_memory 77 0",
            "set 1 1000 200 3 40 5",
            "detach",
        ] {
            assert_eq!(line.parse::<WorkerOrder>().unwrap().to_string(), line);
        }
        for line in ["", "set 1 2 3", "attach dev/shm/x 77", "detach now", "dance"] {
            assert_eq!(line.parse::<WorkerOrder>(), Err(format!("not an order: {line:?}")));
        }
    }
}
