//! `ttmon mem`: where the memory of every chip went, once or live; of this machine, or of a report.

mod args;
mod fleet;
mod report;

use crate::json::json;
use crate::screen::{LONG_TIME, Output, OutputScreen, Rounds, local_time};
pub use args::{AFTER_HELP, MemArgs};
use show::memory::draw;
use show::memory::view::{LARGEST, View};
use show::style::Style;
use show::terminal::on_terminal;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::exit::{Exit, Failure};
use watch::exit_status;
use watch::machine::Machine;
use watch::memory::memory_view;
use watch::selection::selected;

pub fn run(machine: &MachineArgs, args: &MemArgs) -> anyhow::Result<Exit> {
    // A program that reads JSON asks for a stream by naming a period.
    let live = !args.once && args.report.is_none() && if args.json { args.refresh.is_some() } else { on_terminal() };
    let mut screen = OutputScreen::new(Output {
        path: None,
        color: args.color,
        ascii: args.ascii,
        in_place: live && !args.json,
        choose: "-d",
        q_ends: true,
    });
    if let Some(folder) = &args.report {
        let view = chosen(report::read(folder)?, &args.device)?;
        screen.show(&text(&view, args, &screen, true))?;
        return Ok(Exit::Success);
    }
    // A simulated machine must be taken down again, whatever ends the program.
    let interrupt = screen.interrupt(live || machine.sim.is_some())?;
    let every = live.then(|| Duration::from_millis(args.refresh.unwrap_or(1000)));
    let rounds = Rounds { every, count: None, interrupt, with_rates: false };
    if machine.is_fleet() {
        let result = fleet::run(machine, args, &mut screen, &rounds);
        screen.close()?;
        return result;
    }
    let mut machine = Machine::open(machine, false)?.through_service(machine);
    let result = screen.repeat(&mut machine, &rounds, Machine::sample, |screen, machine, all, _| {
        let mut snapshot = selected(all.clone(), &args.device)?;
        let exit = exit_status::of_machine(&snapshot, machine);
        // Where there is nothing, people want the reason alone; a program also wants an answer of the usual form.
        if !snapshot.devices.is_empty() || args.json {
            let others = Some(&all).filter(|_| !args.device.is_empty());
            let view = memory_view(machine, &mut snapshot, others, LARGEST);
            screen.show(&text(&view, args, screen, every.is_none()))?;
        }
        exit
    });
    screen.close()?;
    machine.leave();
    result
}

fn text(view: &View, args: &MemArgs, screen: &OutputScreen, once: bool) -> String {
    if args.json { json(view, !(once && on_terminal())) } else { drawn(view, &screen.style()) }
}

fn drawn(view: &View, style: &Style) -> String {
    let time = view.taken_at.map(|time| local_time(time, LONG_TIME)).unwrap_or_default();
    draw::text(view, style, &time)
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
