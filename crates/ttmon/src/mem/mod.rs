//! `ttmon mem`: where the memory of every chip went, once or live; of this machine, or of a report.

mod books;
mod fleet;
mod keys;
mod report;
mod served;

use crate::cli::{MachineArgs, MemArgs};
use crate::exit::{Exit, Failure};
use crate::machine::Machine;
use crate::smi::screen::{Output, Screen};
use crate::smi::{selected, verdict};
use crate::wait::{Interrupt, Woken};
use keys::Keys;
use model::{Snapshot, Timestamp};
pub use served::Teller;
use show::memory::view::{Buffer, Death, LARGEST, View};
use show::memory::{draw, gather};
use show::terminal::on_terminal;
use std::time::{Duration, Instant};

/// Runs the command.
pub fn run(machine: &MachineArgs, args: &MemArgs) -> anyhow::Result<Exit> {
    // A program that reads JSON asks for a stream by naming a period.
    let live = !args.once && args.report.is_none() && if args.json { args.refresh.is_some() } else { on_terminal() };
    let mut screen = Screen::new(Output {
        path: None,
        color: args.color,
        ascii: args.ascii,
        in_place: live && !args.json,
        choose: "-d",
    });
    if let Some(folder) = &args.report {
        let view = chosen(report::read(folder)?, &args.device)?;
        screen.show(&text(&view, args, &screen, true))?;
        return Ok(Exit::Success);
    }
    // A simulated machine must be taken down again, whatever ends the program.
    let mut interrupt = (live || machine.sim.is_some()).then(Interrupt::new).transpose()?;
    if let Some(interrupt) = interrupt.as_mut().filter(|_| screen.is_in_place()) {
        interrupt.and_stop()?;
    }
    let every = live.then(|| Duration::from_millis(args.refresh.unwrap_or(1000)));
    if machine.is_fleet() {
        let result = fleet::run(machine, args, &mut screen, every, interrupt.as_ref());
        screen.close()?;
        return result;
    }
    let mut machine = Machine::open(machine, false)?.through_service(machine);
    let result = repeat(&mut machine, &mut screen, args, every, interrupt.as_ref());
    screen.close()?;
    machine.leave();
    result
}

/// Samples and shows until it is enough.
fn repeat(
    machine: &mut Machine,
    screen: &mut Screen,
    args: &MemArgs,
    every: Option<Duration>,
    interrupt: Option<&Interrupt>,
) -> anyhow::Result<Exit> {
    let mut keys = screen.is_in_place().then(Keys::listen).flatten();
    let mut next = Instant::now();
    loop {
        let all = machine.sample();
        if interrupt.is_some_and(Interrupt::came) {
            return Ok(Exit::Success);
        }
        let mut snapshot = selected(all.clone(), &args.device)?;
        let verdict = verdict(&snapshot, machine);
        // Where there is nothing, people want the reason alone; a program also wants an answer of the usual form.
        if !snapshot.devices.is_empty() || args.json {
            let others = Some(&all).filter(|_| !args.device.is_empty());
            let view = look(machine, &mut snapshot, others, LARGEST);
            screen.show(&text(&view, args, screen, every.is_none()))?;
        }
        let exit = verdict?;
        let (Some(every), Some(interrupt)) = (every, interrupt) else { return Ok(exit) };
        next = (next + every).max(Instant::now());
        if rest(next, interrupt, screen, &mut keys)? {
            return Ok(Exit::Success);
        }
    }
}

/// Waits for the next moment, or until the program goes on after Ctrl-Z. Returns whether it is time to end instead.
fn rest(next: Instant, interrupt: &Interrupt, screen: &mut Screen, keys: &mut Option<Keys>) -> anyhow::Result<bool> {
    match interrupt.wait(next.saturating_duration_since(Instant::now())) {
        Woken::Time => {}
        Woken::End => return Ok(true),
        Woken::Stop => {
            screen.suspend()?;
            // The terminal is given back as it was.
            drop(keys.take());
            interrupt.stop()?;
            *keys = Keys::listen();
        }
    }
    Ok(false)
}

/// Where memory went at the moment of a snapshot that was taken just now, with so many of the largest buffers. `all` has the other
/// devices, where some were chosen.
pub fn look(machine: &mut Machine, snapshot: &mut Snapshot, all: Option<&Snapshot>, most: usize) -> View {
    let told = machine.teller().and_then(|mut service| served::ask(&mut service, snapshot, all.is_none(), most));
    let (buffers, deaths, unlisted) = told.unwrap_or_else(|| without_service(machine, snapshot, all, most));
    View { unlisted_buffers: unlisted, ..gather::view(snapshot, buffers, deaths) }
}

/// Where the memory of another machine went, as its service tells. `all` if these are all devices that it has.
pub fn told(service: &mut Teller, snapshot: &mut Snapshot, all: bool, most: usize) -> View {
    let (buffers, deaths, unlisted) = served::ask(service, snapshot, all, most).unwrap_or_default();
    View { unlisted_buffers: unlisted, ..gather::view(snapshot, buffers, deaths) }
}

/// So many of the largest buffers of one process, as a service tells.
pub fn told_of_process(service: &mut Teller, snapshot: &Snapshot, pid: u32, most: usize) -> Option<Vec<Buffer>> {
    served::of_process(service, snapshot, pid, most)
}

/// The buffers where no service tells of them. The processes of another machine are none of this one.
fn without_service(
    machine: &Machine,
    snapshot: &mut Snapshot,
    all: Option<&Snapshot>,
    most: usize,
) -> (Vec<Buffer>, Vec<Death>, u64) {
    if machine.is_far() { Default::default() } else { from_books(snapshot, all, most) }
}

/// The buffers on the devices of a snapshot, without a service. `all` has the other devices, where some were chosen.
fn from_books(snapshot: &mut Snapshot, all: Option<&Snapshot>, most: usize) -> (Vec<Buffer>, Vec<Death>, u64) {
    let books = books::read(snapshot);
    let buffers = gather::buffers(snapshot, all.unwrap_or(snapshot), &books, most);
    let without_room = books.iter().map(|kept| kept.memory.unlisted_buffers).fold(0, u64::saturating_add);
    let live: usize = books.iter().filter_map(|kept| kept.memory.buffers.as_ref()).map(Vec::len).sum();
    let left_out = if buffers.len() == most { live.saturating_sub(most) } else { 0 };
    let unlisted = without_room.saturating_add(left_out as u64);
    (buffers, Vec::new(), unlisted)
}

/// So many of the largest buffers of one process.
pub fn buffers_of(machine: &mut Machine, snapshot: &Snapshot, pid: u32, most: usize) -> Vec<Buffer> {
    let told = machine.teller().and_then(|mut service| served::of_process(&mut service, snapshot, pid, most));
    told.unwrap_or_else(|| {
        if machine.is_far() {
            return Vec::new();
        }
        let mut its = snapshot.clone();
        its.processes.retain(|process| process.pid == pid);
        let books = books::read(&mut its);
        gather::buffers(&its, snapshot, &books, most)
    })
}

fn text(view: &View, args: &MemArgs, screen: &Screen, once: bool) -> String {
    if !args.json {
        return draw::text(view, &screen.style(), &view.taken_at.map(local_time).unwrap_or_default());
    }
    // A person gets it indented; a program reads it faster in one line.
    let written = if once && on_terminal() { serde_json::to_string_pretty(view) } else { serde_json::to_string(view) };
    // Strings, numbers and lists only, all of which JSON can write.
    written.expect("a view is always JSON") + "\n"
}

fn local_time(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%a %b %e %H:%M:%S %Y").to_string()
}

/// A snapshot with only the devices that were named, as far as it has them.
fn chosen_of(snapshot: Snapshot, names: &[String]) -> Snapshot {
    let nothing = Snapshot { devices: Vec::new(), processes: Vec::new(), ..snapshot.clone() };
    selected(snapshot, names).unwrap_or(nothing)
}

/// The groups of a report that were named.
fn chosen(mut view: View, names: &[String]) -> anyhow::Result<View> {
    if let Some(missing) = names.iter().find(|name| !view.chips.iter().any(|chip| chip.id == **name)) {
        let there: Vec<&str> = view.chips.iter().map(|chip| chip.id.as_str()).collect();
        let message = format!("the report has no device {missing:?}: it has {}", there.join(", "));
        return Err(Failure::error(Exit::NoDevice, message));
    }
    if !names.is_empty() {
        view.chips.retain(|chip| names.contains(&chip.id));
        view.buffers.retain(|buffer| buffer.devices.iter().any(|id| names.contains(id)));
    }
    Ok(view)
}
