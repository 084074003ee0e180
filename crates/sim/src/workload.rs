//! A process that uses devices: what it maps, opens and allocates is real, only the devices are not.
//!
//! It is the same program, started again with `TTMON_SIM_WORKLOAD`, and follows its parent's orders on standard input.
//! When that ends, it ends: whatever happens to the parent, no process is left.

use crate::agent::KeptBook;
use crate::order::{DONE, WorkerOrder};
use crate::region::AttachedRegion;
use crate::umd_lock::UmdLock;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Says what name to go by. Being there at all is what makes a process a workload.
pub(crate) const VARIABLE: &str = "TTMON_SIM_WORKLOAD";

/// Becomes a workload, and never returns, if a [`SimMachine`](crate::SimMachine) started this process as one.
///
/// To be called first in the `main` of the program that is given to [`SimMachine::start`](crate::SimMachine::start).
pub fn run_workload_if_asked() {
    let Ok(name) = std::env::var(VARIABLE) else { return };
    // An error means that the parent no longer reads.
    let served = serve(&name);
    std::process::exit(i32::from(served.is_err()));
}

fn serve(name: &str) -> io::Result<()> {
    rustix::thread::set_name(&CString::new(name)?)?;
    let mut workload = Workload { name, ..Workload::default() };
    let mut answers = io::stdout().lock();
    for line in io::stdin().lines() {
        let line = line?;
        let order = serde_json::from_str(&line).map_err(|_| io::Error::other(format!("not an order: {line:?}")));
        match order.and_then(|order| workload.obey(order)) {
            Ok(()) => writeln!(answers, "{DONE}")?,
            Err(error) => writeln!(answers, "{error}")?,
        }
        answers.flush()?;
    }
    Ok(())
}

#[derive(Default)]
struct Workload<'a> {
    name: &'a str,
    libraries: Vec<ledger::HeldMapping>,
    nodes: Vec<File>,
    locks: Vec<UmdLock>,
    regions: Vec<AttachedRegion>,
    book: Option<KeptBook>,
}

impl Workload<'_> {
    fn obey(&mut self, order: WorkerOrder) -> io::Result<()> {
        let pid = std::process::id();
        match order {
            WorkerOrder::Lib { path } => self.libraries.push(ledger::hold(&File::open(path)?)?),
            WorkerOrder::Open { path } => self.nodes.extend([File::open(&path)?, File::open(&path)?]),
            WorkerOrder::Lock { path } => self.locks.push(UmdLock::take(Path::new(&path), pid)?),
            WorkerOrder::Keep { work } => self.book = Some(KeptBook::new(work)?),
            WorkerOrder::Attach { path, asic, device, is_remote, banks } => {
                self.book.iter_mut().for_each(|book| book.open(device, asic, is_remote, banks));
                self.regions.push(AttachedRegion::attach(Path::new(&path), asic, device, pid, self.name)?);
            }
            WorkerOrder::Set { region, amounts } => {
                self.book.iter_mut().for_each(|book| book.set(region, amounts));
                let region = self.regions.get_mut(region).ok_or_else(|| io::Error::other("no such region"))?;
                region.set(amounts);
            }
            WorkerOrder::Run { hangs: true, .. } => self.book.iter_mut().for_each(KeptBook::hang),
            WorkerOrder::Run { busy, .. } => self.book.iter_mut().for_each(|book| book.run(&busy)),
            WorkerOrder::Detach => {
                self.book.take().into_iter().for_each(KeptBook::close);
                self.regions.drain(..).for_each(AttachedRegion::detach);
                self.locks.drain(..).for_each(UmdLock::release);
                self.nodes.clear();
            }
        }
        Ok(())
    }
}
