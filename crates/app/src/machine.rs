//! The machine to look at: this one, a folder that looks like one, or a simulated one.

use crate::cli::MachineArgs;
use crate::exit::{Exit, Failure};
use model::Snapshot;
use sources::{Options, Root, Sampler};
use std::time::Duration;

/// A machine that can be sampled.
pub struct Machine {
    sampler: Sampler,
    /// Kept for as long as it is looked at; dropping it removes its folder and its processes.
    simulated: Option<sim::Running>,
}

impl Machine {
    /// Opens the machine that the command line names. `rates` if there will be more than one sample.
    pub fn open(args: &MachineArgs, rates: bool) -> anyhow::Result<Machine> {
        let (root, simulated) = match (&args.sim, &args.root) {
            (Some(spec), _) => {
                let running = simulate(spec)?.run();
                (Root::under(running.root()).with_faults(running.inject()), Some(running))
            }
            (None, Some(folder)) if !folder.is_dir() => {
                let message = format!("--root {} is not a folder", folder.display());
                return Err(Failure::error(Exit::Usage, message));
            }
            (None, Some(folder)) => (Root::under(folder), None),
            (None, None) => (Root::machine(), None),
        };
        let options = Options { deadline: Duration::from_millis(args.deadline_ms), rates };
        Ok(Machine { sampler: Sampler::new(root, options), simulated })
    }

    /// Everything there is to know now.
    pub fn sample(&mut self) -> Snapshot {
        let mut snapshot = self.sampler.sample();
        snapshot.host.simulated = self.simulated.is_some();
        snapshot
    }

    /// Takes leave at the end of the program. Only a simulated machine has anything to clean up; all else the kernel does
    /// faster.
    pub fn leave(self) {
        if self.sampler.is_stuck() {
            // The process lingers until the read comes back; nobody shall wait for the end of its output meanwhile.
            if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
                let _ = rustix::stdio::dup2_stdout(&null);
                let _ = rustix::stdio::dup2_stderr(&null);
            }
        }
        drop(self.simulated);
        std::mem::forget(self.sampler);
    }

    /// Whether the driver is loaded there.
    pub fn driver_is_loaded(&self) -> bool {
        self.sampler.driver_is_loaded()
    }
}

/// Starts a simulated machine whose clock stands still.
pub fn simulate(spec: &str) -> anyhow::Result<sim::Machine> {
    let spec: sim::Spec = spec.parse().map_err(|error| Failure::error(Exit::Usage, format!("--sim: {error}")))?;
    Ok(sim::Machine::start(&spec, &std::env::current_exe()?)?)
}
