//! `ttmon mem`: where the memory of every chip went, once or live; of this machine, or of a report.

mod args;
mod fleet;
mod quit_key;
mod report;

use crate::screen::{Output, OutputScreen};
pub use args::{AFTER_HELP, MemArgs};
use model::{Snapshot, Timestamp};
use quit_key::QuitKey;
use show::memory::draw;
use show::memory::view::{LARGEST, View};
use show::terminal::on_terminal;
use std::time::{Duration, Instant};
use watch::args::MachineArgs;
use watch::exit::{Exit, Failure};
use watch::exit_status;
use watch::machine::Machine;
use watch::memory_view::memory_view;
use watch::selection::selected;
use watch::wait::{Interrupt, Woken};

pub fn run(machine: &MachineArgs, args: &MemArgs) -> anyhow::Result<Exit> {
    // A program that reads JSON asks for a stream by naming a period.
    let live = !args.once && args.report.is_none() && if args.json { args.refresh.is_some() } else { on_terminal() };
    let mut screen = OutputScreen::new(Output {
        path: None,
        color: args.color,
        ascii: args.ascii,
        in_place: live && !args.json,
        choose: "-d",
    });
    if let Some(folder) = &args.report {
        let view = chosen(report::read(folder, most(args))?, &args.device)?;
        screen.show(&text(&view, args, &screen, true))?;
        return Ok(Exit::Success);
    }
    // A simulated machine must be taken down again, whatever ends the program.
    let interrupt = screen.interrupt(live || machine.sim.is_some())?;
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
    screen: &mut OutputScreen,
    args: &MemArgs,
    every: Option<Duration>,
    interrupt: Option<&Interrupt>,
) -> anyhow::Result<Exit> {
    let mut keys = screen.is_in_place().then(QuitKey::listen).flatten();
    let mut next = Instant::now();
    loop {
        let all = machine.sample();
        if interrupt.is_some_and(Interrupt::came) {
            return Ok(Exit::Success);
        }
        let mut snapshot = selected(all.clone(), &args.device)?;
        let exit = exit_status::of_machine(&snapshot, machine);
        // Where there is nothing, people want the reason alone; a program also wants an answer of the usual form.
        if !snapshot.devices.is_empty() || args.json {
            let others = Some(&all).filter(|_| !args.device.is_empty());
            let view = memory_view(machine, &mut snapshot, others, most(args));
            screen.show(&text(&view, args, screen, every.is_none()))?;
        }
        let exit = exit?;
        let (Some(every), Some(interrupt)) = (every, interrupt) else { return Ok(exit) };
        next = (next + every).max(Instant::now());
        if rest(next, interrupt, screen, &mut keys)? {
            return Ok(Exit::Success);
        }
    }
}

/// Waits for the next moment, or until the program goes on after Ctrl-Z. Returns whether it is time to end instead.
fn rest(
    next: Instant,
    interrupt: &Interrupt,
    screen: &mut OutputScreen,
    keys: &mut Option<QuitKey>,
) -> anyhow::Result<bool> {
    match interrupt.wait(next.saturating_duration_since(Instant::now())) {
        Woken::Time => {}
        Woken::End => return Ok(true),
        Woken::Stop => {
            screen.suspend()?;
            // The terminal is given back as it was.
            drop(keys.take());
            interrupt.stop()?;
            *keys = QuitKey::listen();
        }
    }
    Ok(false)
}

/// A program gets all buffers, a person the largest.
fn most(args: &MemArgs) -> usize {
    if args.json { usize::MAX } else { LARGEST }
}

fn text(view: &View, args: &MemArgs, screen: &OutputScreen, once: bool) -> String {
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
