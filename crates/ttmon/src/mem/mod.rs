//! `ttmon mem`: where the memory of every chip went, once or live; of this machine, or of a report.

mod fleet;
mod report;

use crate::json::json;
use crate::screen::{Color, LONG_TIME, Output, OutputScreen, Rounds, local_time};
use show::memory::view::{LARGEST, View};
use show::memory::{draw, map};
use show::style::Style;
use show::terminal::on_terminal;
use std::path::PathBuf;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::exit::{Exit, Failure};
use watch::exit_status;
use watch::machine::Machine;
use watch::selection::selected;

pub const AFTER_HELP: &str = "\
In a bar: buffers, then traces (DRAM) or circular buffers and L1_SMALL (L1), then free memory: light for the largest free block, \
dots for smaller blocks; at the end what no allocator hands out. Peak, free blocks, banks and buffers come from \
processes that run with the agent (`ttmon run`, or the Python package); without it there is no per-buffer data.

A process's figures are `exact` when they come from the agent, `kernel` when the driver counts them, `reported` when it reports to a \
service (`ttmon serve`), `shm` when they come from tt-metal's shared memory, which counts requested and not reserved bytes.

A report is a folder (or one file of it) that holds *memory_usage_summary.csv, *l1_usage_summary.csv, *detailed_memory_usage.csv \
of tt-metal's memory reporter, or the ttnn visualizer's db.sqlite. Of the latter, it is also shown which operations allocated and freed \
the most, and when.

On a terminal, q or Ctrl-C quits. A program called allocation_monitor_client is `ttmon mem`.

Exit codes: as for `ttmon smi`; 2 invalid arguments, or a report that cannot be read.";

#[derive(Debug, Clone, clap::Args)]
pub struct MemArgs {
    /// All devices; this is the default
    #[arg(short, long, conflicts_with = "device")]
    pub all: bool,
    /// Only this device: number, PCI address, serial or ASIC id. Can be given several times
    #[arg(short, long, visible_short_alias = 'i', visible_alias = "id", value_name = "DEVICE", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Redraw every MS milliseconds (default: 1000)
    #[arg(short, long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=86_400_000))]
    pub refresh: Option<u64>,
    /// Show it once and exit; the default where standard output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Everything as JSON; with -r one object per line, repeatedly
    #[arg(long)]
    pub json: bool,
    /// The memory of each device as CSV, a line for each kind; with --map, all blocks
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// A map of used and free blocks of a bank, with their addresses
    #[arg(long, conflicts_with = "json")]
    pub map: bool,
    /// Show a report of tt-metal or of the ttnn visualizer instead of a machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sim", "root", "refresh"])]
    pub report: Option<PathBuf>,
    /// Colour: on a terminal, always or never. NO_COLOR is honoured
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
}

pub fn run(machine: &MachineArgs, args: &MemArgs) -> anyhow::Result<Exit> {
    // A program that reads JSON asks for a stream by naming a period.
    let live = !args.once
        && args.report.is_none()
        && if args.json || args.csv { args.refresh.is_some() } else { on_terminal() };
    let mut screen = OutputScreen::new(Output {
        path: None,
        color: args.color,
        ascii: args.ascii,
        in_place: live && !args.json && !args.csv,
        choose: "-d",
        q_ends: true,
    });
    if let Some(folder) = &args.report {
        let view = chosen(report::read(folder, most(args))?, &args.device)?;
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
        if !snapshot.devices.is_empty() || args.json || args.csv {
            let others = Some(&all).filter(|_| !args.device.is_empty());
            let view = machine.memory_view(&mut snapshot, others, most(args));
            screen.show(&text(&view, args, screen, every.is_none()))?;
        }
        exit
    });
    screen.close()?;
    machine.leave();
    result
}

/// A program gets all buffers, a person the largest.
fn most(args: &MemArgs) -> usize {
    if args.json || args.csv || args.map { usize::MAX } else { LARGEST }
}

fn text(view: &View, args: &MemArgs, screen: &OutputScreen, once: bool) -> String {
    match (args.json, args.csv, args.map) {
        (true, ..) => json(view, !(once && on_terminal())),
        (_, true, true) => map::csv(view),
        (_, true, false) => map::chips_csv(view),
        (_, false, true) => map::text(view, &screen.style()),
        _ => drawn(view, &screen.style()) + &report::timeline::text(view),
    }
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
        if let Some(timeline) = &mut view.timeline {
            timeline.steps.retain(|step| names.contains(&step.device));
        }
    }
    Ok(view)
}
