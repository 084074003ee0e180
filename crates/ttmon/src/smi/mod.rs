//! `ttmon smi`: every device and every process, once or again and again, in the form that was asked for.

mod args;
mod csv;
mod csv_fields;
pub mod fleet;
#[cfg(test)]
mod golden;
mod list;
mod nvidia;
mod process_row;
mod report;
mod streams;
pub mod table;
mod tt_smi;
#[cfg(test)]
mod tt_smi_official;

use crate::screen::{Output, OutputScreen};
pub use args::SmiArgs;
use args::{CsvOption, StreamCommand};
use model::{Snapshot, Timestamp};
use show::style::Style;
use show::terminal::on_terminal;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use watch::args::MachineArgs;
use watch::config::alerts_of_user;
use watch::exit::{Exit, Failure};
use watch::exit_status;
use watch::machine::Machine;
use watch::selection::selected;
use watch::wait::{Interrupt, Woken};

/// A rate needs two samples that are not far apart: a busy link's counters wrap in four seconds.
const RATE_WINDOW: Duration = Duration::from_secs(1);

pub fn run(machine: &MachineArgs, args: &SmiArgs) -> anyhow::Result<Exit> {
    if args.help_query {
        let mut out = io::stdout().lock();
        out.write_all(csv::help().as_bytes())?;
        return Ok(Exit::Success);
    }
    let mut view = SmiView::chosen(args, machine.is_remote())?;
    if machine.is_fleet() {
        return fleet::run(machine, args, view);
    }
    let repetition = repetition(args);
    let mut screen = screen(args);
    // A simulated machine must be taken down again, whatever ends the program.
    let interrupt = screen.interrupt(repetition.0.is_some() || machine.sim.is_some())?;
    let machine = Machine::open(machine, repetition.0.is_some())?.through_service(machine);
    let mut machine = machine.watched(&alerts_of_user(None));
    let result = repeat(&mut machine, &mut screen, args, &mut view, repetition, interrupt.as_ref());
    screen.close()?;
    machine.leave();
    result
}

fn screen(args: &SmiArgs) -> OutputScreen {
    OutputScreen::new(Output {
        path: args.filename.clone(),
        color: args.color,
        ascii: args.ascii,
        in_place: args.watch.is_some(),
        choose: "-i",
    })
}

/// Samples and shows until it is enough.
fn repeat(
    machine: &mut Machine,
    screen: &mut OutputScreen,
    args: &SmiArgs,
    view: &mut SmiView,
    (every, count): (Option<Duration>, Option<u64>),
    interrupt: Option<&Interrupt>,
) -> anyhow::Result<Exit> {
    let mut next = Instant::now();
    for round in 1.. {
        let snapshot = machine.sample();
        if interrupt.is_some_and(Interrupt::came) {
            break;
        }
        let snapshot = selected(snapshot, &args.id)?;
        let exit = exit_status::of_machine(&snapshot, machine);
        // Where there is nothing, people want the reason alone; a program also wants an answer of the usual form.
        if !snapshot.devices.is_empty() || matches!(view, SmiView::Json { .. } | SmiView::TtSmi(_)) {
            screen.show(&view.text(&snapshot, &screen.style(), round))?;
        }
        let exit = exit?;
        let Some(every) = every.filter(|_| count != Some(round)) else { return Ok(exit) };
        next = (next + every).max(Instant::now());
        if pause(machine, screen, interrupt, next)? {
            break;
        }
    }
    Ok(Exit::Success)
}

/// Waits for the next moment. Returns whether it is time to end instead.
fn pause(
    machine: &mut Machine,
    screen: &mut OutputScreen,
    interrupt: Option<&Interrupt>,
    next: Instant,
) -> anyhow::Result<bool> {
    let Some(interrupt) = interrupt else { return Ok(false) };
    let mut sampled = next.saturating_duration_since(Instant::now()) <= RATE_WINDOW * 2;
    loop {
        let until = if sampled { next } else { next - RATE_WINDOW };
        match interrupt.wait(until.saturating_duration_since(Instant::now())) {
            Woken::End => return Ok(true),
            Woken::Time if sampled => return Ok(false),
            Woken::Time => {
                machine.sample();
                sampled = true;
            }
            Woken::Stop => {
                screen.suspend()?;
                interrupt.stop()?;
                return Ok(false);
            }
        }
    }
}

fn repetition(args: &SmiArgs) -> (Option<Duration>, Option<u64>) {
    if let Some(StreamCommand::Dmon(stream) | StreamCommand::Pmon(stream)) = &args.stream {
        return (Some(Duration::from_secs_f64(stream.delay)), stream.count.or(args.count));
    }
    let seconds = args.watch.or(args.loop_seconds).map(Duration::from_secs_f64);
    let every = seconds.or(args.loop_ms.map(Duration::from_millis));
    // So many times, without a word on how often: once a second.
    (every.or(args.count.map(|_| Duration::from_secs(1))), args.count)
}

pub enum SmiView {
    Table,
    List,
    Report(Vec<model::figure::Section>),
    Csv(csv::CsvQuery),
    Json { lines: bool },
    TtSmi(tt_smi::TtSmiHost),
    Stream(streams::Stream),
}

impl SmiView {
    fn chosen(args: &SmiArgs, is_remote: bool) -> anyhow::Result<SmiView> {
        let formats = args.format.as_deref().unwrap_or(&[]);
        let with = |format| formats.contains(&format);
        let queries = args.query_device.is_some() || args.query_processes.is_some();
        if args.format.is_some() && !queries {
            return Err(usage("--format goes with --query-device or --query-processes"));
        }
        let other = args.watch.is_some() || args.loop_seconds.is_some() || args.loop_ms.is_some();
        if args.stream.is_some() && (other || queries || args.list || args.query || args.json || args.tt_smi) {
            return Err(usage("dmon and pmon cannot be combined with other output formats"));
        }
        let form = csv::CsvForm { header: !with(CsvOption::Noheader), units: !with(CsvOption::Nounits) };
        let looping = other || args.count.is_some();
        Ok(match args {
            SmiArgs { stream: Some(stream), .. } => SmiView::Stream(streams::Stream::new(stream)),
            SmiArgs { query_device: Some(fields), .. } => SmiView::Csv(csv::CsvQuery::of_devices(fields, form)?),
            SmiArgs { query_processes: Some(fields), .. } => SmiView::Csv(csv::CsvQuery::of_processes(fields, form)?),
            SmiArgs { list: true, .. } => SmiView::List,
            SmiArgs { query: true, .. } => SmiView::Report(report::sections(&args.display)?),
            // A person gets it indented; a program reads it faster in one line.
            SmiArgs { json: true, .. } => SmiView::Json { lines: looping || !on_terminal() },
            SmiArgs { tt_smi: true, .. } if is_remote => SmiView::TtSmi(tt_smi::TtSmiHost::unknown()),
            SmiArgs { tt_smi: true, .. } => SmiView::TtSmi(tt_smi::TtSmiHost::this()),
            _ => SmiView::Table,
        })
    }

    /// Whether the first line of its text names what is in the others.
    fn has_header(&self) -> bool {
        matches!(self, SmiView::Csv(query) if query.has_header())
    }

    fn text(&mut self, snapshot: &Snapshot, style: &Style, round: u64) -> String {
        let plain = |text: String| if style.unicode { text } else { text.replace("°C", "C") };
        match self {
            SmiView::Table => table::text(snapshot, style, &local_time(snapshot, "%a %b %e %H:%M:%S %Y")),
            SmiView::List => list::text(snapshot),
            SmiView::Report(sections) => {
                plain(report::text(snapshot, sections, &local_time(snapshot, "%a %b %e %H:%M:%S %Y")))
            }
            SmiView::Csv(query) => query.text(snapshot, &local_time(snapshot, "%Y/%m/%d %H:%M:%S%.3f"), round == 1),
            SmiView::Json { lines } => json(snapshot, *lines),
            SmiView::TtSmi(host) => tt_smi::text(snapshot, host, &local_time(snapshot, "%Y-%m-%dT%H:%M:%S%.6f")),
            SmiView::Stream(stream) => stream.text(snapshot, &local_time(snapshot, "%Y%m%d %H:%M:%S")),
        }
    }
}

fn usage(message: &str) -> anyhow::Error {
    Failure::error(Exit::Usage, message)
}

fn json(snapshot: &Snapshot, one_line: bool) -> String {
    let mut text = Vec::with_capacity(1500 * (snapshot.devices.len() + snapshot.processes.len() + 1));
    let written = match one_line {
        true => serde_json::to_writer(&mut text, snapshot),
        false => serde_json::to_writer_pretty(&mut text, snapshot),
    };
    // The model holds strings, numbers and lists only, all of which JSON can write, as UTF-8.
    written.expect("a snapshot is always JSON");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is always UTF-8")
}

fn local_time(snapshot: &Snapshot, format: &str) -> String {
    local(snapshot.taken_at, format)
}

fn local(time: Timestamp, format: &str) -> String {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system()).strftime(format).to_string()
}
