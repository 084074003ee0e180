//! `ttmon doctor`: is this machine set up well, and what is to be typed where it is not?

mod bundle;
mod check;
mod checks;
mod deep_checks;
mod device_checks;
mod host_checks;
mod python;
mod tar;
mod tested;
#[cfg(test)]
mod tests;

use crate::json::json;
use alerts::Problem;
use check::DoctorReport;
use checks::{CHECKS, DEEP_CHECKS};
use host_checks::TRACKING_DISABLED;
use model::Snapshot;
use python::PythonFound;
use show::terminal::{locale_is_utf8, on_terminal};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use watch::args::{DeepArgs, MachineArgs};
use watch::client::ServiceClient;
use watch::config::{Config, place};
use watch::exit::Exit;
use watch::machine::Machine;
use watch::past::BlackBoxFound;
use watch::rules::RulesReply;
use watch::wait::Interrupt;
use watch::{MachineSetup, about_process};

pub const AFTER_HELP: &str = "\
Each line is a check: problem, warning, ok, or – where it does not apply; with what was found, where, and a command that puts it \
right. ttmon changes nothing itself, and opens no device unless --deep is given.

Exit codes: 0 no problem (there may be warnings); 1 problems; 2 invalid arguments.";

#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub deep: DeepArgs,
    /// Also write what a bug report needs to FILE (.tar.gz), without secrets
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// With --bundle: also the command lines of processes, which may hold secrets
    #[arg(long, requires = "bundle")]
    pub with_commands: bool,
}

/// What the checks are about.
pub struct Findings {
    pub setup: MachineSetup,
    pub snapshot: Snapshot,
    pub config: ConfigFound,
    pub tracking: ShmTracking,
    pub python: Option<PythonFound>,
    pub service: ServiceFound,
    pub black_box: Option<BlackBoxFound>,
    /// By how much the times of the service's samples differ from this clock.
    pub seconds_off: Option<f64>,
}

/// The configuration file, and what is wrong in it.
pub struct ConfigFound {
    pub path: PathBuf,
    pub exists: bool,
    pub problems: Vec<Problem>,
}

/// Whether tt-metal counts memory in `/dev/shm`.
#[derive(Debug, Default)]
pub struct ShmTracking {
    pub is_off_here: bool,
    /// Processes in which it is switched off.
    pub off: Vec<u32>,
    /// How many others have been asked, and how many may not be.
    pub on: usize,
    pub unknown: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceFound {
    NotAsked,
    Absent,
    Answers {
        program: String,
        /// The folder of its black box, where it keeps one.
        black_box: Option<PathBuf>,
    },
    Silent {
        place: String,
        reason: String,
    },
}

impl ServiceFound {
    fn answers(&self) -> bool {
        matches!(self, ServiceFound::Answers { .. })
    }

    fn black_box(&self) -> Option<&PathBuf> {
        match self {
            ServiceFound::Answers { black_box, .. } => black_box.as_ref(),
            _ => None,
        }
    }
}

pub fn run(args: &MachineArgs, doctor: &DoctorArgs) -> anyhow::Result<Exit> {
    // A simulated machine must be taken down again, whatever ends the program.
    let _interrupt = args.sim.is_some().then(Interrupt::new).transpose()?;
    let config = ConfigFound::of(&place(None, false)?);
    let rules = Config::load(&config.path).alerts;
    let mut machine = Machine::open(args, false)?.with_deep(doctor.deep.deep)?.watched(&rules);
    let snapshot = machine.verified_sample();
    let (service, served, seconds_off) = ask_service(args);
    let is_this_machine = args.sim.is_none() && args.root.is_none();
    let findings = Findings {
        black_box: is_this_machine.then(|| BlackBoxFound::here(service.black_box().cloned())).flatten(),
        setup: machine.setup().unwrap_or_default(),
        tracking: ShmTracking::of(&snapshot),
        python: PythonFound::current(),
        snapshot,
        config,
        service,
        seconds_off,
    };
    let deep_checks = DEEP_CHECKS.iter().filter(|_| doctor.deep.deep.is_some());
    let report = DoctorReport::of(CHECKS.iter().chain(deep_checks).map(|check| check(&findings)).collect());
    let text = if doctor.json { json(&report, !on_terminal()) } else { report.text(locale_is_utf8()) };
    let alerts = served.unwrap_or_else(|| machine.rules());
    machine.leave();
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    if let Some(path) = &doctor.bundle {
        let said = bundle::write(path, &findings, &report, &alerts, doctor.with_commands)?;
        // JSON stays alone on standard output.
        if doctor.json { eprint!("{said}") } else { out.write_all(said.as_bytes())? }
    }
    Ok(if report.problems == 0 { Exit::Success } else { Exit::Failure })
}

impl ConfigFound {
    fn of(path: &Path) -> ConfigFound {
        let exists = path.exists();
        // The settings of `ttmon top` are in the same file.
        let mut problems = if exists { top::config::load(path).1 } else { Vec::new() };
        problems.sort_by_key(|problem| problem.line);
        ConfigFound { path: path.to_owned(), exists, problems }
    }
}

impl ShmTracking {
    /// Looks for one variable, here and in processes that hold a device and may be read.
    fn of(snapshot: &Snapshot) -> ShmTracking {
        let is_on = |value: &str| !["", "0"].contains(&value);
        let here = std::env::var("TT_METAL_SHM_TRACKING_DISABLED");
        let mut tracking = ShmTracking { is_off_here: here.is_ok_and(|value| is_on(&value)), ..ShmTracking::default() };
        for process in &snapshot.processes {
            match about_process(process.pid).environment {
                None => tracking.unknown += 1,
                Some(all) if all.iter().any(|(name, value)| name == TRACKING_DISABLED && is_on(value)) => {
                    tracking.off.push(process.pid);
                }
                Some(_) => tracking.on += 1,
            }
        }
        tracking
    }
}

/// Asks the service for its name, its alerts, and the time of a sample.
fn ask_service(args: &MachineArgs) -> (ServiceFound, Option<RulesReply>, Option<f64>) {
    let is_asked = args.service.is_some() || (args.sim.is_none() && args.root.is_none());
    let client = is_asked.then(|| ServiceClient::new(args.service.as_deref())).flatten();
    let Some(mut client) = client else { return (ServiceFound::NotAsked, None, None) };
    let alerts = client.alerts();
    let found = match (&alerts, client.complaint()) {
        (Some(_), _) => ServiceFound::Answers {
            program: client.program().unwrap_or("an unknown service").to_owned(),
            black_box: client.black_box(),
        },
        (None, None) => return (ServiceFound::Absent, None, None),
        (None, Some(fault)) => {
            let reason = fault.reason.trim_end_matches("; reading directly instead").to_owned();
            return (ServiceFound::Silent { place: fault.path, reason }, None, None);
        }
    };
    let taken = client.snapshot().map(|snapshot| snapshot.taken_at);
    let seconds_off = taken.map(|taken| (taken.0 - alerts::wall().0) as f64 / 1000.0);
    (found, alerts, seconds_off)
}
