//! `ttmon smi`: every device and every process, once or again and again, in the form that was asked for.

#[cfg(test)]
mod any_machine;
mod args;
mod boards;
mod by;
pub mod csv;
mod csv_fields;
mod deep_report;
pub mod fleet;
#[cfg(test)]
mod golden;
mod groups;
mod links;
mod list;
mod nvidia;
mod nvidia_control;
mod nvidia_unknown;
mod process_row;
pub mod report;
mod streams;
pub mod table;
mod tt_smi;
mod xml;

use crate::command_words::called_nvidia_smi;
use crate::json::json;
use crate::left_behind::allocate_apart;
use crate::screen::{Color, LONG_TIME, Output, OutputScreen, Rounds, local_time};
use alerts::settings::AlertSettings;
use args::{CsvOption, StreamCommand};
pub use args::{SmiArgs, SmiOptions};
use model::figure::Figure;
use model::{Device, Snapshot, chip_numbers};
use show::style::Style;
use show::terminal::on_terminal;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::config::{alerts_at_once, alerts_of_user};
use watch::exit::{Exit, Failure};
use watch::exit_status;
use watch::machine::{FigureFilter, Machine};
use watch::selection::selected;

pub fn run(machine: &MachineArgs, args: &SmiArgs) -> anyhow::Result<Exit> {
    if args.help_query {
        let mut out = io::stdout().lock();
        out.write_all(csv::help().as_bytes())?;
        return Ok(Exit::Success);
    }
    let mut view = SmiView::chosen(args, machine.is_remote())?;
    let (every, count) = repetition(args);
    let file = args.filename.as_ref().filter(|_| args.saved);
    if let Some(folder) = file.and_then(|file| file.parent()).filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::of_io(&error, format!("cannot write to {}: {error}", folder.display())))?;
    }
    let mut screen = OutputScreen::new(Output {
        path: args.filename.clone().or_else(|| stream_file(args)),
        color: if args.no_color { Color::Never } else { args.color },
        ascii: args.ascii,
        in_place: args.watch.is_some(),
        choose: "-i",
        q_ends: false,
    });
    // A simulated machine must be taken down again, whatever ends the program.
    let interrupt = screen.interrupt(every.is_some() || machine.sim.is_some())?;
    let rounds = Rounds { every, count, interrupt, with_rates: !machine.is_fleet() };
    if machine.is_fleet() {
        let result = fleet::run(machine, args, view, &mut screen, &rounds);
        screen.close()?;
        return result;
    }
    let machine = Machine::open(machine, every.is_some())?.through_service(machine).with_deep(args.deep.deep)?;
    let is_once = every.is_none() && !args.verify;
    if is_once {
        allocate_apart();
    }
    let rules = if is_once { alerts_at_once() } else { alerts_of_user(None) };
    let mut machine = machine.watched(&rules);
    if is_once {
        machine.set_once(view.wanted(&rules, screen.style(), !args.id.is_empty()));
    }
    let sample = if args.verify { Machine::verified_sample } else { Machine::sample };
    let result = screen.repeat(&mut machine, &rounds, sample, |screen, machine, snapshot, round| {
        if let SmiView::Csv(query) = &mut view {
            if !args.id.is_empty() {
                query.numbers = chip_numbers(&snapshot.devices);
            }
        }
        let snapshot = selected(snapshot, &args.id)?;
        let mut exit = exit_status::of_machine(&snapshot, machine);
        // Its callers drop everything where the code is not zero.
        if matches!((&view, &exit), (SmiView::TtSmi(_) | SmiView::Boards | SmiView::Trays, Ok(Exit::DeviceLost))) {
            exit = Ok(Exit::Success);
        }
        if matches!(view, SmiView::Trays) && exit.is_ok() {
            screen.show(&boards::trays(&snapshot)?)?;
            return exit;
        }
        // Where there is nothing, people want the reason alone; a program also wants an answer of the usual form.
        if !snapshot.devices.is_empty() || view.is_json() {
            screen.show(&view.text(&snapshot, &screen.style(), round))?;
        }
        exit
    });
    screen.close()?;
    machine.leave();
    if let (Some(file), Ok(Exit::Success)) = (file, &result) {
        writeln!(io::stdout(), " Saved tt-smi log to: {} ", file.display())?;
    }
    result
}

fn stream_file(args: &SmiArgs) -> Option<PathBuf> {
    args.stream.as_ref()?.args()?.file.clone()
}

fn repetition(args: &SmiArgs) -> (Option<Duration>, Option<u64>) {
    if let Some(stream) = args.stream.as_ref().and_then(StreamCommand::args) {
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
    Xml(Vec<model::figure::Section>),
    /// `topo -m`
    Matrix,
    /// `nvlink -s`
    Links,
    Version,
    Csv(csv::CsvQuery),
    Json {
        lines: bool,
    },
    TtSmi(tt_smi::TtSmiHost),
    /// The lists of `tt-smi`.
    Boards,
    Trays,
    Stream(streams::Stream),
    /// `--by`
    By(by::ByView),
}

impl SmiView {
    fn chosen(args: &SmiArgs, is_remote: bool) -> anyhow::Result<SmiView> {
        let formats = args.format.as_deref().unwrap_or(&[]);
        let with = |format| formats.contains(&format);
        let queries = args.query_device.is_some() || args.query_processes.is_some();
        if args.format.is_some() && !queries && args.by.is_none() {
            return Err(usage("--format goes with --query-device, --query-processes or --by"));
        }
        let other = args.watch.is_some() || args.loop_seconds.is_some() || args.loop_ms.is_some();
        if args.stream.is_some()
            && (other || queries || args.list || args.query || args.json || args.tt_smi || args.by.is_some())
        {
            return Err(usage("dmon, pmon, topo and nvlink cannot be combined with other output formats"));
        }
        let form = csv::CsvForm { header: !with(CsvOption::Noheader), units: !with(CsvOption::Nounits) };
        let looping = other || args.count.is_some();
        match &args.stream {
            Some(StreamCommand::Dmon(args)) => return Ok(SmiView::Stream(streams::Stream::of_devices(args))),
            Some(StreamCommand::Pmon(args)) => return Ok(SmiView::Stream(streams::Stream::of_processes(args))),
            Some(StreamCommand::Nvlink(_)) => return Ok(SmiView::Links),
            Some(StreamCommand::Topo(_)) => return Ok(SmiView::Matrix),
            None => {}
        }
        if let Some(grouping) = args.by {
            let form = match args.json {
                true if args.format.is_some() => return Err(usage("--json and --format are two forms: choose one")),
                true => by::ByForm::Json { lines: looping || !on_terminal() },
                false if args.format.is_some() => by::ByForm::Csv(form),
                false => by::ByForm::Table,
            };
            return Ok(SmiView::By(by::ByView::new(grouping, args.filter.as_deref(), form)?));
        }
        Ok(match &args.options {
            SmiOptions { version: true, .. } => SmiView::Version,
            SmiOptions { xml: true, .. } => SmiView::Xml(report::sections(&args.display)?),
            SmiOptions { query_device: Some(fields), .. } => SmiView::Csv(csv::CsvQuery::of_devices(fields, form)?),
            SmiOptions { query_processes: Some(fields), .. } => {
                SmiView::Csv(csv::CsvQuery::of_processes(fields, form)?)
            }
            SmiOptions { list: true, .. } => SmiView::List,
            SmiOptions { query: true, .. } => SmiView::Report(report::sections(&args.display)?),
            SmiOptions { json: true, .. } => SmiView::Json { lines: looping || !on_terminal() },
            SmiOptions { tt_smi: true, .. } if is_remote => SmiView::TtSmi(tt_smi::TtSmiHost::unknown()),
            SmiOptions { tt_smi: true, .. } => SmiView::TtSmi(tt_smi::TtSmiHost::this()),
            SmiOptions { tt_smi_list: true, .. } => SmiView::Boards,
            SmiOptions { tt_smi_trays: true, .. } => SmiView::Trays,
            _ => SmiView::Table,
        })
    }

    /// Whether a program gets an answer of the usual form where there is nothing.
    fn is_json(&self) -> bool {
        match self {
            SmiView::Json { .. } | SmiView::TtSmi(_) => true,
            SmiView::By(by) => by.is_json(),
            _ => false,
        }
    }

    /// The figures that it shows of a single sample: all, where a rule compares others. Of `chosen` devices there may be few.
    fn wanted(&self, rules: &AlertSettings, style: Style, chosen: bool) -> FigureFilter {
        if !matches!(self, SmiView::Table) {
            return Box::new(|_, _| true);
        }
        let compared: Vec<_> = rules.rules.iter().flat_map(|rule| rule.condition.figures_at_once()).collect();
        Box::new(move |figure, devices| {
            let shows = |figure: &Figure<Device>| table::shows(figure, if chosen { 1 } else { devices }, &style);
            shows(figure) || !compared.iter().all(|other| shows(other) && other.limit.is_none_or(shows))
        })
    }

    fn text(&mut self, snapshot: &Snapshot, style: &Style, round: u64) -> String {
        let plain = |text: String| if style.unicode { text } else { text.replace("°C", "C") };
        let time = |format| local_time(snapshot.taken_at, format);
        match self {
            SmiView::Table => table::text(snapshot, style, &time(LONG_TIME)),
            SmiView::List => list::text(snapshot),
            SmiView::Report(sections) => plain(report::text(snapshot, sections, &time(LONG_TIME))),
            SmiView::Xml(sections) => xml::text(snapshot, sections, &time(LONG_TIME), called_nvidia_smi()),
            SmiView::Matrix => links::matrix(snapshot),
            SmiView::Links => links::status(snapshot),
            SmiView::Version => version(snapshot),
            SmiView::Csv(query) => query.text(snapshot, &time("%Y/%m/%d %H:%M:%S%.3f"), round == 1),
            SmiView::Json { lines } => json(snapshot, *lines),
            SmiView::TtSmi(host) => tt_smi::text(snapshot, host, &time("%Y-%m-%dT%H:%M:%S%.6f")),
            SmiView::Boards => boards::list(snapshot),
            SmiView::Trays => boards::trays(snapshot).unwrap_or_default(),
            SmiView::Stream(stream) => stream.text(snapshot, &time("%Y%m%d %H:%M:%S")),
            SmiView::By(by) => by.text(snapshot, style, &time(LONG_TIME), round == 1),
        }
    }
}

/// The fields of queries, with unit and meaning.
pub fn field_help() -> String {
    csv::help()
}

/// The names of the fields of a device, or of a process.
pub fn field_names(of_processes: bool) -> Vec<String> {
    let fields = if of_processes { csv_fields::process_fields() } else { csv_fields::device_fields() };
    fields.iter().flat_map(csv_fields::CsvField::names).map(str::to_owned).collect()
}

/// The words for `-q -d`.
pub fn section_names() -> Vec<String> {
    model::figure::Section::ALL.iter().map(|section| section.name().to_ascii_uppercase()).collect()
}

pub fn section_help() -> String {
    format!("`ttmon smi -q -d SECTION`, several separated by commas:\n\n{}\n", section_names().join("\n"))
}

/// As nvidia-smi does: the program and the driver.
fn version(snapshot: &Snapshot) -> String {
    let driver = snapshot.host.driver_version.as_deref().unwrap_or("N/A");
    format!("ttmon version  : {}\nDRIVER version : {driver}\n", env!("CARGO_PKG_VERSION"))
}

/// What works as in nvidia-smi, and what does not.
pub fn nvidia_help() -> String {
    nvidia_control::help()
}

/// Why an option of nvidia-smi is not one here, in a command line that is invalid.
pub fn refused(command: Option<&str>, arguments: &[OsString], may_be_wrong: impl Fn(&str) -> bool) -> Option<String> {
    nvidia_control::refused(command, arguments, may_be_wrong)
}

fn usage(message: &str) -> anyhow::Error {
    Failure::error(Exit::Usage, message)
}

/// The table of nvidia-smi's options, for the page of habits.
#[cfg(test)]
pub fn nvidia_habits() -> String {
    nvidia_control::table()
}
