//! What an incident can begin with. This is the list of what counts as an incident.

use model::{KernelMessageKind, State, Weight};

model::named! {
    /// What happened to a device, a process or the machine. The order is that of the advice: the most serious first.
    #[derive(PartialOrd, Ord)]
    pub enum Cause {
        DriverUnloaded = "driver unloaded",
        /// The kernel killed a process that held a device, because the host had no memory left.
        HostOutOfMemory = "host out of memory",
        /// The same, because its container had reached its memory limit.
        MemoryLimit = "memory limit reached",
        /// The chip shut down to protect itself.
        ThermalTrip = "thermal trip",
        /// A temperature is critical.
        Heat = "heat",
        /// Heat, or a power surge, holds the clock down.
        Throttled = "throttled",
        Lost = "lost",
        /// No driver is bound to one device, while the driver is loaded.
        NoDriver = "no driver",
        Reset = "reset",
        Hung = "hung",
        Silent = "silent",
        NoTelemetry = "no telemetry",
        /// The kernel has reported an error of the PCIe link.
        PcieError = "PCIe error",
        IommuFault = "IOMMU fault",
        /// The firmware did not answer the driver.
        FirmwareTimeout = "firmware timeout",
        /// Another message of the kernel that needs attention.
        KernelError = "kernel error",
        /// An Ethernet link that was up is not up.
        LinkDown = "link down",
        /// The device memory of a process grew again and again, and never fell.
        MemoryGrowth = "memory growth",
        /// Device memory is full: the next allocation may fail.
        MemoryFull = "device memory full",
        /// A process was killed by a signal, or crashed.
        Killed = "killed",
        /// A process was asked to end, as by Ctrl-C or `kill`. By itself this is no incident, unless somebody asks for the process.
        Ended = "ended by a signal",
        /// A process that held memory no longer has the device, and nothing says how it ended. By itself this is no incident, either.
        Gone = "process gone",
        /// The PCIe link runs slower or narrower than it could. By itself this is no incident.
        SlowLink = "PCIe link degraded",
    }
}

impl Cause {
    /// What it means that a device is in a state.
    pub fn of_state(state: State) -> Option<Cause> {
        match state {
            State::Ok | State::Remote => None,
            State::NoTelemetry => Some(Cause::NoTelemetry),
            State::Resetting => Some(Cause::Reset),
            State::Hung => Some(Cause::Hung),
            State::Silent => Some(Cause::Silent),
            State::Lost => Some(Cause::Lost),
            State::NoDriver => Some(Cause::NoDriver),
        }
    }

    /// What a message of the kernel is, where it needs attention. `text` is the kernel's own.
    pub fn of_kernel(kind: KernelMessageKind, weight: Weight, text: &str) -> Option<Cause> {
        if weight != Weight::Bad {
            return None;
        }
        Some(match kind {
            KernelMessageKind::OutOfMemory if text.starts_with("Memory cgroup") => Cause::MemoryLimit,
            KernelMessageKind::OutOfMemory => Cause::HostOutOfMemory,
            KernelMessageKind::PcieError => Cause::PcieError,
            KernelMessageKind::IommuFault => Cause::IommuFault,
            KernelMessageKind::Timeout => Cause::FirmwareTimeout,
            _ => Cause::KernelError,
        })
    }

    /// What a signal means for the process that it ended.
    pub fn of_signal(signal: i32) -> Cause {
        match signal {
            // SIGHUP, SIGINT, SIGPIPE and SIGTERM.
            1 | 2 | 13 | 15 => Cause::Ended,
            _ => Cause::Killed,
        }
    }

    /// Whether it concerns all devices and processes.
    pub fn is_of_machine(self) -> bool {
        matches!(self, Cause::DriverUnloaded | Cause::HostOutOfMemory)
    }

    /// Whether it is no incident by itself.
    pub fn is_minor(self) -> bool {
        matches!(self, Cause::Ended | Cause::Gone | Cause::SlowLink)
    }

    /// Whether it is a message of the kernel about a device, which may be about a change of its state, too.
    pub fn is_kernel_word(self) -> bool {
        matches!(self, Cause::PcieError | Cause::FirmwareTimeout | Cause::KernelError)
    }

    /// Whether it says what state a device is in.
    pub fn is_state(self) -> bool {
        use Cause::{Hung, Lost, NoDriver, NoTelemetry, Reset, Silent, ThermalTrip};
        matches!(self, Hung | Lost | NoDriver | NoTelemetry | Reset | Silent | ThermalTrip)
    }

    /// Whether the other one on the same device is a part of this one: a chip that is reset does not answer for a while.
    pub fn includes(self, other: Cause) -> bool {
        use Cause::{Hung, Lost, NoDriver, NoTelemetry, Reset, Silent};
        match self {
            Cause::DriverUnloaded => matches!(other, Lost | NoDriver),
            Cause::ThermalTrip => matches!(other, Hung | Silent | Reset | NoTelemetry),
            Reset => matches!(other, Silent | NoTelemetry),
            Cause::HostOutOfMemory | Cause::MemoryLimit => matches!(other, Cause::Killed | Cause::Ended),
            _ => false,
        }
    }

    /// What to do. Where a built-in rule is about the same, it is the advice of that rule.
    pub fn advice(self) -> String {
        let rule = match self {
            Cause::Lost => "lost",
            Cause::Hung => "heartbeat-stopped",
            Cause::Silent => "silent",
            Cause::ThermalTrip => "thermal-trip",
            Cause::Heat => "hot",
            Cause::Throttled => "clock-limited",
            Cause::MemoryFull => "memory-full",
            Cause::LinkDown => "link-down",
            Cause::SlowLink => "degraded-link",
            _ => return self.own_advice().to_owned(),
        };
        let advice = alerts::built_in().into_iter().find(|known| known.name == rule).and_then(|known| known.advice);
        advice.unwrap_or_default()
    }

    fn own_advice(self) -> &'static str {
        match self {
            Cause::DriverUnloaded => "Load the driver: modprobe tenstorrent. `ttmon doctor` checks how it is set up.",
            Cause::HostOutOfMemory => {
                "Give the host more memory or swap, or run less on it. `dmesg` has what each process held."
            }
            Cause::MemoryLimit => "Raise the memory limit of the container, or use less host memory.",
            Cause::NoDriver => "Bind the driver to the device again, or load it: modprobe tenstorrent.",
            Cause::Reset => "Programs that had the device open have to be started again. Ask who reset it.",
            Cause::NoTelemetry => "See dmesg for why the firmware does not start. Reset the card (tt-smi -r).",
            Cause::PcieError => "See dmesg for the PCIe errors. Seat the card again, or try another slot.",
            Cause::IommuFault => "See dmesg for the address. A program or the driver used memory after it was freed.",
            Cause::FirmwareTimeout => "End the programs on the card, then reset it (tt-smi -r).",
            Cause::KernelError => "See dmesg for the lines around it.",
            Cause::MemoryGrowth => {
                "`ttmon mem` lists the largest buffers while it runs; `ttmon run` lists what a program did not free."
            }
            Cause::Killed => {
                "Look at the program's own log. `ttmon mem` shows whether its device memory is free again."
            }
            Cause::Ended => "Nothing, if that was intended.",
            Cause::Gone => "Look at the program's own log. `ttmon serve` keeps exit codes and signals.",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_advice() {
        for cause in Cause::ALL {
            let advice = cause.advice();
            assert!(advice.ends_with('.') && advice.len() > 20, "{}: {advice:?}", cause.name());
        }
    }
}
