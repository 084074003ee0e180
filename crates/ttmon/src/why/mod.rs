//! `ttmon why`: the story of the last incident, or of the one that is asked for.

mod text;

use crate::json::json;
use crate::screen::{Color, Output, OutputScreen};
use jiff::tz::TimeZone;
use model::{DeviceId, LogEntry, SCHEMA, Selector, Timestamp};
use serde::Serialize;
use show::terminal::on_terminal;
use show::text::in_short;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use watch::args::MachineArgs;
use watch::client::{MemoryService, ServiceClient};
use watch::exit::{Exit, Failure};
use watch::incident::story::{self, Story};
use watch::incident::{Found, Wanted, search, search_present, search_snapshots};
use watch::machine::Machine;
use watch::past::{BlackBoxArgs, now, when};
use watch::record::Recording;

pub const AFTER_HELP: &str = "\
Reads the black box of the service, or a recording. Without either, it takes what the running service still knows: events, \
exited processes, and devices that are not well now.

An incident is a device that hangs, disappears, is reset or gets too hot, a process that is killed, device memory that is full or \
only grows, a link that goes down, a driver that is unloaded, a host without memory. Each line names its source. What the data does \
not say is not guessed: two possible causes are both named.

  ttmon why                                   the last incident
  ttmon why -i 2 --at \"yesterday 14:05\"       the one of device 2 that is nearest to that time
  ttmon why --pid 4711 --replay night.ttmon

Exit codes: 0 success, whether there is an incident or not; 2 invalid arguments, a device that is not \
there, or a file that is not a recording; 6 nothing was recorded, and no service runs.";

#[derive(Debug, Clone, clap::Args)]
pub struct WhyArgs {
    /// The incident of this device: number, PCI address, serial or ASIC id
    #[arg(short = 'i', long = "id", value_name = "DEVICE")]
    pub device: Option<String>,
    /// The incident of this process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The incident nearest to this time, such as 14:05, "yesterday 14:05" or "20m ago"
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    #[command(flatten)]
    pub black_box: BlackBoxArgs,
    /// Read this recording instead of the black box
    #[arg(long, value_name = "FILE", conflicts_with = "black_box")]
    pub replay: Option<PathBuf>,
    /// Everything as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(machine: &MachineArgs, args: &WhyArgs) -> anyhow::Result<Exit> {
    let is_of_recording = args.replay.is_some() || args.black_box.black_box.is_some();
    if machine.root.is_some() || machine.sim.is_some() && is_of_recording {
        let what =
            "why is about what was recorded: record the machine with `ttmon record`, and name the file with --replay";
        return Err(Failure::error(Exit::Usage, what));
    }
    let wanted = wanted(args)?;
    let answer = if machine.sim.is_some() {
        of_simulation(machine, &wanted)?
    } else {
        let recorded = match &args.replay {
            Some(path) => Some((path.clone(), Recording::open(path)?)),
            None => args.black_box.find(machine)?,
        };
        match recorded {
            Some((path, recording)) => of_recording(&path, recording, &wanted)?,
            None => of_service(machine, &wanted)?,
        }
    };
    let mut screen = OutputScreen::new(Output {
        path: None,
        color: Color::Auto,
        ascii: false,
        in_place: false,
        choose: "-i",
        q_ends: false,
    });
    let text = if args.json { json(&answer, !on_terminal()) } else { text::text(&answer, &screen.style(), now()) };
    screen.show(&text)?;
    screen.close()?;
    Ok(Exit::Success)
}

/// What was found, for people and as JSON.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    /// The file or folder that was read. Absent where the service was asked.
    pub recording: Option<String>,
    /// The stretch that was read.
    pub from: Timestamp,
    pub to: Timestamp,
    pub incident: Option<Story>,
    /// What was asked for, for the sentence that there is none.
    #[serde(skip)]
    pub about: String,
}

fn wanted(args: &WhyArgs) -> anyhow::Result<Wanted> {
    let at = args.at.as_deref().map(|text| when::parse(text, now(), &TimeZone::system())).transpose();
    let at = at.map_err(|what| Failure::error(Exit::Usage, format!("--at: {what}")))?;
    // What somebody asks for by its pid is told, whatever it is.
    Ok(Wanted { at, device: args.device.clone().map(Selector), pid: args.pid, is_any: args.pid.is_some() })
}

fn of_recording(path: &Path, mut recording: Recording, wanted: &Wanted) -> anyhow::Result<Answer> {
    let Found { observer, incident, scene, devices, named, from, to } = search(&mut recording, wanted)?;
    // Where nothing was recorded around a time, that is what is said.
    let is_unknown = named.is_empty() && (wanted.at.is_none() || !devices.is_empty());
    if let Some(device) = wanted.device.as_ref().filter(|_| is_unknown) {
        let when = if wanted.at.is_some() { " around that time" } else { "" };
        return Err(no_such_device("the recording has", device, when, &devices));
    }
    let (first, last) = recording.span();
    Ok(Answer {
        schema: SCHEMA,
        recording: Some(path.display().to_string()),
        from: from.max(first),
        to: to.min(last),
        incident: incident.map(|incident| story::tell(&incident, &observer, &scene)),
        about: about(wanted),
    })
}

/// How many exited processes the service is asked for.
const EXITS: usize = 100;

/// What the service knows without a black box: events since it began, who exited, and how devices are now.
fn of_service(machine: &MachineArgs, wanted: &Wanted) -> anyhow::Result<Answer> {
    let mut service = ServiceClient::new(machine.service.as_deref());
    let snapshot = service.as_mut().and_then(ServiceClient::snapshot);
    let (Some(service), Some(snapshot)) = (&mut service, snapshot) else {
        let why = "nothing was recorded: there is no black box, and no service runs. Start `ttmon serve --black-box DIR`, or name a \
                   recording with --replay";
        return Err(Failure::error(Exit::NoDevice, why));
    };
    let exits = service.exits(EXITS).unwrap_or_default();
    let events = service.events();
    let missing = match &events {
        Some(_) => "how devices and processes were before (`ttmon serve --black-box DIR` keeps it)",
        None => "what happened before (`ttmon serve --black-box DIR` keeps it)",
    };
    let events = events.unwrap_or_default().into_iter().map(LogEntry::Event);
    let exits = exits.into_iter().map(|exit| LogEntry::Exit(Box::new(exit)));
    let found = search_present(events.chain(exits).collect(), snapshot, wanted);
    let Found { observer, incident, scene, devices, named, from, to } = found;
    if let Some(device) = wanted.device.as_ref().filter(|_| named.is_empty()) {
        return Err(no_such_device("the machine has", device, "", &devices));
    }
    let mut told = incident.map(|incident| story::tell(&incident, &observer, &scene));
    if let Some(story) = &mut told {
        story.not_recorded.insert(0, missing.into());
    }
    Ok(Answer { schema: SCHEMA, recording: None, from, to, incident: told, about: about(wanted) })
}

/// What happened on a simulated machine in the minutes before it was started.
fn of_simulation(machine: &MachineArgs, wanted: &Wanted) -> anyhow::Result<Answer> {
    let mut simulated = Machine::open(machine, false)?;
    let first = simulated.sample();
    let mut snapshots = simulated.past(&first);
    snapshots.push(first);
    simulated.leave();
    let Found { observer, incident, scene, devices, named, from, to } = search_snapshots(&snapshots, wanted);
    if let Some(device) = wanted.device.as_ref().filter(|_| named.is_empty()) {
        return Err(no_such_device("the simulated machine has", device, "", &devices));
    }
    let incident = incident.map(|incident| story::tell(&incident, &observer, &scene));
    Ok(Answer { schema: SCHEMA, recording: None, from, to, incident, about: about(wanted) })
}

/// Which devices there are instead of the one that was asked for.
fn no_such_device(who: &str, asked: &Selector, when: &str, devices: &BTreeSet<DeviceId>) -> anyhow::Error {
    let there = in_short(&devices.iter().collect::<Vec<_>>());
    let there = if there.is_empty() { "none".into() } else { there };
    Failure::error(Exit::Usage, format!("{who} no device {:?}{when}: it has {there}", asked.0))
}

/// ` of device 2`
fn about(wanted: &Wanted) -> String {
    let device = wanted.device.as_ref().map(|selector| format!("device {}", selector.0));
    let parts: Vec<String> = device.into_iter().chain(wanted.pid.map(|pid| format!("pid {pid}"))).collect();
    if parts.is_empty() { String::new() } else { format!(" of {}", parts.join(" and ")) }
}
