//! `ttmon health`: one verdict on this machine, for a Slurm prolog, a probe or CI.

mod require;
#[cfg(test)]
mod tests;
mod verdict;

use crate::json::json;
use model::{Alert, Celsius, Selector, Snapshot};
use require::Required;
use show::terminal::{locale_is_utf8, on_terminal};
use show::text::clean;
use std::io::{self, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use verdict::{Demands, judge};
use watch::args::MachineArgs;
use watch::client::ServiceClient;
use watch::config::alerts_of_user;
use watch::exit::{Exit, Failure};
use watch::exit_status;
use watch::machine::{Machine, SECOND_READING};
use watch::wait::Interrupt;

pub const AFTER_HELP: &str = "\
Every device is read twice, 250 ms apart. Not healthy is: a device that is hung, lost, silent, being reset or without a driver; a \
heartbeat that does not change; too few devices; a temperature above --max-temp; a firing alert of severity warning or critical, of \
the service where it runs. It takes --deadline-ms and 250 ms at the most, and never waits for a device or the service.

  ttmon health --require p150x4 --max-temp 85 || scontrol update NodeName=$SLURMD_NODENAME State=DRAIN Reason=ttmon

Exit codes: 0 healthy; 1 not healthy; 2 invalid arguments; 9 the driver is not loaded.";

#[derive(Debug, Clone, clap::Args)]
pub struct HealthArgs {
    /// Needs at least these: BOARD, BOARDxCOUNT or COUNT, as in p150x4, n300 or 4; several separated by commas
    #[arg(long, value_name = "SPEC", value_delimiter = ',')]
    pub require: Vec<Required>,
    /// Not healthy if a device is hotter than C degrees Celsius
    #[arg(long, value_name = "C", value_parser = degrees)]
    pub max_temp: Option<f64>,
    /// Only these devices: number, PCI address, serial or ASIC id, separated by commas
    #[arg(short, long = "id", value_name = "DEVICE", value_delimiter = ',')]
    pub id: Vec<String>,
    /// As JSON: devices, and each check with its reason
    #[arg(long)]
    pub json: bool,
}

fn degrees(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (-50.0..=200.0).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a temperature: expected degrees Celsius from -50 to 200"))
}

pub fn run(args: &MachineArgs, health: &HealthArgs) -> anyhow::Result<Exit> {
    let deadline = Duration::from_millis(args.deadline_ms);
    let until = Instant::now() + deadline + SECOND_READING;
    // A simulated machine must be taken down again, whatever ends the program.
    let _interrupt = args.sim.is_some().then(Interrupt::new).transpose()?;
    let service = ask_service(args);
    let mut machine = Machine::open(args, false)?.watched(&alerts_of_user(None));
    let mut snapshot = machine.quickly_verified_sample(deadline);
    let named = args.service.as_deref().filter(|path| *path != std::path::Path::new("off"));
    let answer = service.and_then(|answer| answer.recv_timeout(until.saturating_duration_since(Instant::now())).ok());
    let silent_service = match (named, &answer) {
        (Some(path), None | Some(Err(_))) => {
            let why = answer.as_ref().and_then(|answer| answer.as_ref().err()).cloned();
            Some(why.unwrap_or_else(|| format!("the service at {} does not answer", path.display())))
        }
        _ => None,
    };
    if let Some(Ok(answer)) = answer {
        // The devices of a service that is named are those that it sees.
        snapshot = answer.snapshot.unwrap_or(snapshot);
        snapshot.alerts.extend(answer.alerts);
    }
    // It says why nothing can be read. Without a driver that is another exit code.
    if let Err(error) = exit_status::of_machine(&snapshot, &machine) {
        if error.downcast_ref::<Failure>().is_some_and(|failure| failure.exit() == Exit::NoDriver) {
            machine.leave();
            return Err(error);
        }
    }
    let demands = Demands {
        devices: health.id.iter().cloned().map(Selector).collect(),
        required: health.require.clone(),
        max_temp: health.max_temp.map(Celsius),
        silent_service,
    };
    let verdict = judge(&snapshot, &snapshot.alerts, &demands);
    let text = match health.json {
        true => json(&verdict, !on_terminal()),
        false => format!("{}\n", clean(&verdict.line(locale_is_utf8()))),
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    machine.leave();
    Ok(if verdict.healthy { Exit::Success } else { Exit::Failure })
}

/// What the service says.
struct ServiceAnswer {
    alerts: Vec<Alert>,
    /// Where its devices are asked for.
    snapshot: Option<Snapshot>,
}

/// The alerts of the service, asked in a thread of its own: a service that is stopped holds no verdict up. Of a service that is named, and
/// where no machine is, also its devices.
fn ask_service(args: &MachineArgs) -> Option<mpsc::Receiver<Result<ServiceAnswer, String>>> {
    let is_of_this_machine = args.sim.is_none() && args.root.is_none();
    if args.service.is_none() && !is_of_this_machine {
        return None;
    }
    let mut client = ServiceClient::new(args.service.as_deref())?;
    let (send, receive) = mpsc::channel();
    let shows_devices = args.service.is_some() && is_of_this_machine;
    std::thread::spawn(move || {
        let alerts = client.alerts().map(|reply| reply.alerts);
        let snapshot = if shows_devices && alerts.is_some() { client.snapshot() } else { None };
        let snapshot = snapshot.map(|snapshot| Snapshot { alerts: Vec::new(), ..snapshot });
        let why = || client.complaint().map_or_else(|| "the service does not answer".into(), said);
        // Nobody listens any more where it came too late.
        let _ = send.send(alerts.map(|alerts| ServiceAnswer { alerts, snapshot }).ok_or_else(why));
    });
    Some(receive)
}

fn said(fault: model::Fault) -> String {
    let reason = fault.reason.trim_end_matches("; reading directly instead");
    format!("{}: {reason}", fault.path)
}
