//! What the machine tells its processes, one line each. Paths are from the machine's root, where the processes live.

use crate::region::Amounts;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
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

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Lib { path } => write!(f, "lib {path}"),
            Order::Open { path } => write!(f, "open {path}"),
            Order::Lock { path } => write!(f, "lock {path}"),
            Order::Attach { path, asic, device } => write!(f, "attach {path} {asic} {device}"),
            Order::Set { region, amounts: Amounts { dram, l1, l1_small, trace, cb } } => {
                write!(f, "set {region} {dram} {l1} {l1_small} {trace} {cb}")
            }
            Order::Detach => write!(f, "detach"),
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Order, String> {
        parse(line).ok_or_else(|| format!("not an order: {line:?}"))
    }
}

fn parse(line: &str) -> Option<Order> {
    let mut words = line.split(' ');
    let order = words.next()?;
    let mut word = || words.next().map(str::to_owned);
    let order = match order {
        "lib" => Order::Lib { path: word()? },
        "open" => Order::Open { path: word()? },
        "lock" => Order::Lock { path: word()? },
        "attach" => Order::Attach { path: word()?, asic: word()?.parse().ok()?, device: word()?.parse().ok()? },
        "set" => {
            let region = word()?.parse().ok()?;
            let mut bytes = || word()?.parse().ok();
            let (dram, l1, l1_small, trace, cb) = (bytes()?, bytes()?, bytes()?, bytes()?, bytes()?);
            Order::Set { region, amounts: Amounts { dram, l1, l1_small, trace, cb } }
        }
        "detach" => Order::Detach,
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
            assert_eq!(line.parse::<Order>().unwrap().to_string(), line);
        }
        for line in ["", "set 1 2 3", "attach dev/shm/x 77", "detach now", "dance"] {
            assert_eq!(line.parse::<Order>(), Err(format!("not an order: {line:?}")));
        }
    }
}
