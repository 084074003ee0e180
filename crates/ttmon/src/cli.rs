//! The command line: which command it is, and that it is run.

use crate::habits::{self, Habit};
use crate::{
    alerts, command_words, compare, config, doctor, export, health, manual, mem, metrics, mistakes, ops, record, run,
    sim, smi, why,
};
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::io::{self, Write};
use watch::args::{DEADLINE_MS, MachineArgs};
use watch::exit::{self, Exit, Failure};

/// What follows the options in the help of the program and of `ttmon smi`.
fn after_help() -> String {
    format!(
        "{}\n\n\
         ttmon never opens /dev/tenstorrent unless you ask for deep reads (--deep). It sends no message to a device, and writes only \
         to files that you name. `ttmon run` keeps its agent in ~/.cache/ttmon.\n\n\
         {}\n\n\
         Without a Tenstorrent device, try:  ttmon --sim",
        Exit::sentence(),
        manual::topics::list()
    )
}

/// Monitor for Tenstorrent AI accelerators: state, processes and memory of every device
///
/// Without a command this is `ttmon top` on a terminal, and `ttmon smi` elsewhere.
#[derive(Debug, Parser)]
#[command(name = "ttmon", version, after_help = after_help(), disable_help_subcommand = true, override_usage = "ttmon [OPTIONS] [COMMAND]")]
pub struct Cli {
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the command line. Ends the program where it is invalid, or asks for help.
    pub fn of(arguments: impl Iterator<Item = OsString>, is_terminal: bool) -> Cli {
        let arguments = habits(arguments.collect());
        if let Some(cli) = SmiAlone::parsed(&arguments) {
            return cli;
        }
        // clap takes a variable called CI for a terminal with colours.
        let colour = if show::terminal::is_dumb() { ColorChoice::Never } else { ColorChoice::Auto };
        let mut definition = Cli::command().color(colour);
        let arguments = command_words::completed(arguments.into_iter(), is_terminal, &definition);
        let matches = definition.try_get_matches_from_mut(&arguments);
        let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
        cli.unwrap_or_else(|error| mistakes::end(&error, definition, &arguments))
    }

    /// Runs the command. Returns the exit code.
    pub fn run(self) -> u8 {
        if let Err(error) = self.check() {
            return exit::code(Err(error));
        }
        let machine = &self.machine;
        exit::code(match self.command {
            Command::Smi(args) => smi::run(machine, &args),
            Command::Top(args) => top::run(machine, &args),
            Command::Mem(args) => mem::run(machine, &args),
            Command::Ops(args) => ops::run(machine, &args),
            Command::Run(args) => return run::run(machine, &args),
            Command::Serve(args) => serve::run(machine, &args),
            Command::Metrics(args) => metrics::run(machine, &args),
            Command::Record(args) => record::run(machine, &args),
            Command::Compare(args) => compare::run(machine, &args),
            Command::Export(args) => export::run(machine, &args),
            Command::Why(args) => why::run(machine, &args),
            Command::Alerts(args) => alerts::run(machine, &args),
            Command::Health(args) => health::run(machine, &args),
            Command::Doctor(args) => doctor::run(machine, &args),
            Command::Config(args) => config::run(&args),
            Command::Sim(args) => sim::run(&args),
            Command::Completions(args) => manual::completions::run(machine, Cli::command(), &args),
            Command::Man(args) => manual::man::run(Cli::command(), &args),
            Command::Help(args) => manual::topics::run(Cli::command(), &args),
        })
    }

    /// Finds options that do not go together.
    fn check(&self) -> anyhow::Result<()> {
        let MachineArgs { ssh, host, push, prometheus, token_file, ca, client_cert, .. } = &self.machine;
        let is_remote = self.machine.is_remote();
        let shows = matches!(self.command, Command::Smi(_) | Command::Top(_) | Command::Mem(_));
        let is_asked = !host.is_empty() || prometheus.is_some();
        let option = match (prometheus, host.is_empty()) {
            (Some(_), _) => "--prometheus",
            (None, true) => "--ssh",
            (None, false) => "--host",
        };
        let on_one_machine = format!("{option} goes with smi, top and mem: the other commands are about this machine");
        let why = match &self.command {
            // Here the option says how the rules are printed.
            Command::Alerts(alerts::AlertsArgs { command: alerts::AlertsCommand::Export { .. }, .. }) => return Ok(()),
            Command::Mem(_) if prometheus.is_some() => "--prometheus goes with smi and top: Prometheus has no buffers",
            _ if !shows && is_remote => &on_one_machine,
            _ if *push && ssh.is_empty() => "--push goes with --ssh: it copies ttmon to the other machine",
            _ if shows && !is_asked && (token_file.is_some() || ca.is_some() || client_cert.is_some()) => {
                "--token-file, --ca and --client-cert go with --host and --prometheus: they are for remote services"
            }
            Command::Top(top) if is_remote && top.replay.is_some() => {
                "--replay shows a file: leave out the other machines"
            }
            Command::Top(top) if is_remote && top.is_of_the_past() => {
                "--at, --from and --to show the black box of this machine: leave out the other machines"
            }
            Command::Top(top) if is_remote && top.record.is_some() => {
                "--record is of this machine alone: run `ttmon record` on the other ones"
            }
            Command::Top(top) if is_remote && top.topology.is_some() => {
                "--topology is of one machine: leave it out, or run `ttmon top` there"
            }
            Command::Mem(mem) if is_remote && mem.report.is_some() => {
                "--report shows files: leave out the other machines"
            }
            _ => return Ok(()),
        };
        Err(Failure::error(Exit::Usage, why))
    }
}

/// The command line where the program has another one's name; or that one's answer, and the end.
fn habits(arguments: Vec<OsString>) -> Vec<OsString> {
    let (code, text) = match habits::of_program(&arguments) {
        None => return arguments,
        Some(Habit::Words(words)) => return words,
        Some(Habit::Text(text)) => (Exit::Success, text),
        Some(Habit::Refused(why)) => (Exit::Usage, why),
    };
    if code == Exit::Success {
        let printed = io::stdout().lock().write_all(text.as_bytes());
        std::process::exit(exit::code(printed.map(|()| code).map_err(Into::into)).into());
    }
    exit::say(format_args!("error: {text}"));
    std::process::exit(code as i32)
}

/// `ttmon smi` without the other commands and without its own: to define these all takes longer than to read two devices.
#[derive(Parser)]
struct SmiAlone {
    #[command(flatten)]
    machine: MachineArgs,
    #[command(subcommand)]
    command: SmiCommand,
}

#[derive(Subcommand)]
enum SmiCommand {
    Smi(Box<smi::SmiOptions>),
}

impl SmiAlone {
    /// The command line, if it is a valid one of `ttmon smi`. Help and errors need all commands.
    fn parsed(arguments: &[OsString]) -> Option<Cli> {
        if arguments.get(1).is_none_or(|word| word != "smi") || command_words::of_program(arguments).is_some() {
            return None;
        }
        SmiAlone::plain(&arguments[2..]).or_else(|| SmiAlone::by_definition(arguments))
    }

    /// The words behind `ttmon smi` where they are the usual ones: no definition is needed for these. It takes a twentieth of the time
    /// of a start, and memory.
    fn plain(words: &[OsString]) -> Option<Cli> {
        let mut machine = MachineArgs { deadline_ms: DEADLINE_MS, ..MachineArgs::default() };
        let mut smi = smi::SmiOptions::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let path = match word.to_str()? {
                "--json" if !smi.json => {
                    smi.json = true;
                    continue;
                }
                "--root" => &mut machine.root,
                "--service" => &mut machine.service,
                _ => return None,
            };
            // What is given twice, or has no value, is for clap to name.
            let value =
                words.next().filter(|value| !value.is_empty() && !value.as_encoded_bytes().starts_with(b"-"))?;
            if path.replace(value.into()).is_some() {
                return None;
            }
        }
        let smi = smi::SmiArgs { options: smi, stream: None };
        Some(Cli { machine, command: Command::Smi(Box::new(smi)) })
    }

    fn by_definition(arguments: &[OsString]) -> Option<Cli> {
        let mut definition = SmiAlone::command();
        let arguments = command_words::of_smi(arguments.to_vec());
        let mut matches = definition.try_get_matches_from_mut(arguments).ok();
        // It is small, and the program ends soon.
        std::mem::forget(definition);
        let SmiAlone { machine, command: SmiCommand::Smi(smi) } =
            SmiAlone::from_arg_matches_mut(matches.as_mut()?).ok()?;
        let smi = smi::SmiArgs { options: *smi, stream: None };
        Some(Cli { machine, command: Command::Smi(Box::new(smi)) })
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show all devices and processes, like nvidia-smi
    #[command(after_help = after_help())]
    Smi(Box<smi::SmiArgs>),
    /// Watch devices, processes and memory, with charts of the past
    Top(top::TopArgs),
    /// Show where device memory went: chips, processes and buffers, live
    #[command(after_help = mem::AFTER_HELP)]
    Mem(mem::MemArgs),
    /// Show which operations a process has launched, as tt-metal's Inspector says
    #[command(after_help = ops::AFTER_HELP)]
    Ops(ops::OpsArgs),
    /// Run a command and print a receipt: its device memory, what it left behind, energy and power
    #[command(after_help = run::AFTER_HELP, override_usage = "ttmon run [OPTIONS] [--] CMD...")]
    Run(run::RunArgs),
    /// Serve device memory, metrics and a page, and keep a record of memory held by exited processes
    #[command(after_help = serve::AFTER_HELP)]
    Serve(serve::Args),
    /// Print metrics once, as Prometheus text or OpenMetrics
    #[command(after_help = metrics::AFTER_HELP)]
    Metrics(metrics::MetricsArgs),
    /// Record everything to a file, or print such a file
    #[command(after_help = record::AFTER_HELP)]
    Record(record::RecordArgs),
    /// Compare two runs or two stretches of time, and mark what differs by more than noise
    #[command(after_help = compare::AFTER_HELP)]
    Compare(compare::CompareArgs),
    /// Write a recording or a part of it for Perfetto, Chrome's trace viewer, Tracy, or as CSV
    #[command(after_help = export::AFTER_HELP)]
    Export(export::ExportArgs),
    /// Tell the story of the last incident: what changed first, who held what, what to do
    #[command(after_help = why::AFTER_HELP)]
    Why(why::WhyArgs),
    /// Check, list or test alert rules, or export them to Prometheus
    #[command(after_help = alerts::after_help())]
    Alerts(alerts::AlertsArgs),
    /// Say in one line whether this machine is healthy, for a Slurm prolog, a probe or CI
    #[command(after_help = health::AFTER_HELP)]
    Health(health::HealthArgs),
    /// Check how this machine is set up, with a command for each problem, and pack a bug report
    #[command(after_help = doctor::AFTER_HELP)]
    Doctor(doctor::DoctorArgs),
    /// Print the settings of `ttmon top`, check the configuration, or print its path
    Config(config::ConfigArgs),
    /// Run a simulated machine in a folder, for other programs to read with --root
    Sim(sim::SimArgs),
    /// Print a script that completes commands and options in a shell
    Completions(manual::completions::CompletionsArgs),
    /// Write man pages to a folder
    Man(manual::man::ManArgs),
    /// Print the help of a command or of a topic
    Help(manual::topics::HelpArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn completed(line: &str, is_terminal: bool) -> Vec<OsString> {
        let definition = Cli::command();
        command_words::completed(line.split(' ').map(OsString::from), is_terminal, &definition)
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn smi_alone_is_parsed_as_it_is_among_all_commands() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let alone = |line: &str| SmiAlone::parsed(&words(line)).map(|cli| format!("{cli:?}"));
        for line in [
            "ttmon smi",
            "ttmon smi --json",
            "ttmon smi --service off --root x --json",
            "ttmon smi --root=x",
            "ttmon smi --root x --service off -i 3",
            "ttmon smi --sim n150 -lms 500",
            "ttmon smi -lms=50 --sim=p150x2 --json",
            "ttmon smi -f smi",
        ] {
            assert_eq!(alone(line), Some(format!("{:?}", Cli::parse_from(completed(line, false)))), "{line}");
        }
        // The commands of smi are among all commands.
        for line in [
            "ttmon smi dmon -c 3",
            "ttmon smi topo -m",
            "ttmon",
            "ttmon top",
            "ttmon smi --help",
            "ttmon smi --nothing",
            "ttmon smi --root",
            "ttmon smi --root --json",
            "ttmon smi --json --json",
            "ttmon smi --root x --root y",
            "ttmon smi x",
            "ttmon --sim smi",
        ] {
            assert_eq!(alone(line), None, "{line}");
        }
    }

    #[test]
    fn without_a_command_it_is_smi() {
        let words = |line: &str| completed(line, false).join(OsStr::new(" "));
        assert_eq!(words("ttmon"), "ttmon smi");
        assert_eq!(words("ttmon --sim dmon"), "ttmon smi --sim dmon");
        assert_eq!(words("ttmon --root x sim"), "ttmon --root x sim");
        assert_eq!(words("ttmon --sim --ascii smi -q"), "ttmon smi --sim --ascii -q");
        assert_eq!(words("ttmon --sim n300x4 -L"), "ttmon smi --sim=n300x4 -L");
        assert_eq!(words("ttmon -w 2 -i 0"), "ttmon smi -w 2 -i 0");
    }

    #[test]
    fn a_word_that_is_no_command_is_named_with_the_nearest_one() {
        let said = |line: &str| {
            let words = completed(line, false);
            let error = Cli::try_parse_from(&words).unwrap_err();
            mistakes::sentence(&error, Cli::command(), &words)
        };
        let sentences = [
            "ttmon serv",
            "ttmon --sim serv",
            "ttmon smi --quiery-gpu=index",
            "ttmon smi dmom",
            "ttmon smi --color=alwys",
            "ttmon smi -y",
            "ttmon mem --jsn",
            "ttmon config prnt",
            "ttmon top what",
            "ttmon top -d 0",
            "ttmon top -d0",
            "ttmon top --interval=0",
            "ttmon top --delay 0",
            "ttmon smi dmon -d 0",
            "ttmon smi nvlink -e",
            "ttmon --nothing-of-the-kind",
            "ttmon smi --jsno -c 2",
            "ttmon smi -l 0 -c 1",
            "ttmon smi --interval 1 -c 1",
            "ttmon smi --verify -c 2",
            "ttmon smi --by stats",
            "ttmon smi -c EXCLUSIVE_PROCESS",
            "ttmon smi -c 0",
            "ttmon smi -pm 1",
            "ttmon smi -lgc 1000",
            "ttmon stats",
            "ttmon monitor",
            "ttmon watch",
            "ttmon events",
            "ttmon ps",
            "ttmon list",
            "ttmon status",
            "ttmon version",
            "ttmon reset",
            "ttmon kill",
            "ttmon topology",
            "ttmon --csv",
            "ttmon export --csv x",
            "ttmon smi --once",
            "ttmon metrics --format openmetrics",
            "ttmon serve --port 9000",
        ]
        .map(|line| format!("{line}\n    {}\n", said(line).unwrap_or_default()));
        expect_test::expect![[r#"
            ttmon serv
                there is no command "serv": did you mean serve? `ttmon --help` lists all
            ttmon --sim serv
                there is no command "serv": did you mean serve? `ttmon --help` lists all
            ttmon smi --quiery-gpu=index
                there is no option --quiery-gpu: did you mean --query-gpu? `ttmon smi --help` lists all
            ttmon smi dmom
                there is no command "dmom": did you mean dmon? `ttmon smi --help` lists all
            ttmon smi --color=alwys
                --color: unknown value "alwys": did you mean always? expected one of auto, always, never
            ttmon smi -y
                there is no option -y: `ttmon smi --help` lists all
            ttmon mem --jsn
                there is no option --jsn: did you mean --json? `ttmon mem --help` lists all
            ttmon config prnt
                there is no command "prnt": did you mean print? `ttmon config --help` lists all
            ttmon top what
                unexpected word "what": `ttmon top --help` lists what it takes
            ttmon top -d 0
                -d: invalid value "0": expected a number of seconds from 0.1 to 60
            ttmon top -d0
                -d: invalid value "0": expected a number of seconds from 0.1 to 60
            ttmon top --interval=0
                --interval: invalid value "0": expected a number of seconds from 0.1 to 60
            ttmon top --delay 0
                --delay: invalid value "0": expected a number of seconds from 0.1 to 60
            ttmon smi dmon -d 0
                -d: invalid value "0": expected a number of seconds from 0.01 to 86400
            ttmon smi nvlink -e
                nvlink -e counts errors of links in nvidia-smi; here nothing is counted: the driver publishes no counters of Ethernet links; `ttmon smi nvlink -s` lists the links
            ttmon --nothing-of-the-kind
                there is no option --nothing-of-the-kind: `ttmon smi --help` lists all
            ttmon smi --jsno -c 2
                there is no option --jsno: did you mean --json? `ttmon smi --help` lists all
            ttmon smi -l 0 -c 1
                -l: invalid value "0": expected a number of seconds from 0.01 to 86400
            ttmon smi --interval 1 -c 1
                there is no option --interval: did you mean -l SEC? `ttmon smi --help` lists all
            ttmon smi --verify -c 2
                --verify cannot be used with -c
            ttmon smi --by stats
                --by: unknown value "stats": expected one of user, job, unit, pod
            ttmon smi -c EXCLUSIVE_PROCESS
                -c says who may use a device in nvidia-smi; ttmon only watches: here -c N is how many times to print; tt-metal locks the devices that a process uses, and `ttmon smi -q -d PIDS` shows who
            ttmon smi -c 0
                -c says who may use a device in nvidia-smi; ttmon only watches: here -c N is how many times to print; tt-metal locks the devices that a process uses, and `ttmon smi -q -d PIDS` shows who
            ttmon smi -pm 1
                -pm keeps the driver loaded in nvidia-smi; ttmon only watches: the tenstorrent driver always stays loaded
            ttmon smi -lgc 1000
                -lgc locks or releases clocks in nvidia-smi; ttmon only watches: the firmware decides, and the driver has no setting for it
            ttmon stats
                stats prints samples of figures in nvidia-smi; here use `ttmon smi dmon`, or `ttmon record`
            ttmon monitor
                there is no command "monitor": did you mean `ttmon top`? `ttmon --help` lists all
            ttmon watch
                there is no command "watch": did you mean `ttmon top`, or `ttmon smi -w`? `ttmon --help` lists all
            ttmon events
                there is no command "events": did you mean `ttmon why`? `ttmon --help` lists all
            ttmon ps
                there is no command "ps": did you mean `ttmon smi pmon`? `ttmon --help` lists all
            ttmon list
                there is no command "list": did you mean `ttmon smi -L`? `ttmon --help` lists all
            ttmon status
                there is no command "status": did you mean `ttmon health`? `ttmon --help` lists all
            ttmon version
                there is no command "version": did you mean `ttmon --version`? `ttmon --help` lists all
            ttmon reset
                there is no command "reset": did you mean the official tt-smi, `python3 -m tt_smi -r`, since ttmon only watches? `ttmon --help` lists all
            ttmon kill
                there is no command "kill": did you mean F9 in `ttmon top`? `ttmon --help` lists all
            ttmon topology
                there is no command "topology": did you mean `ttmon smi topo`? `ttmon --help` lists all
            ttmon --csv
                there is no option --csv: did you mean `ttmon smi --query-device FIELD --format csv`? `ttmon smi --help` lists all
            ttmon export --csv x
                there is no option --csv: did you mean --format csv? `ttmon export --help` lists all
            ttmon smi --once
                there is no option --once: did you mean `ttmon smi`, which prints once? `ttmon smi --help` lists all
            ttmon metrics --format openmetrics
                there is no option --format: did you mean --openmetrics? `ttmon metrics --help` lists all
            ttmon serve --port 9000
                there is no option --port: did you mean --listen ADDRESS:PORT? `ttmon serve --help` lists all
        "#]]
        .assert_eq(&sentences.concat());
    }

    #[test]
    fn on_a_terminal_it_is_the_monitor_unless_something_else_is_asked_for() {
        let words = |line: &str| completed(line, true).join(OsStr::new(" "));
        assert_eq!(words("ttmon"), "ttmon top");
        assert_eq!(words("ttmon --sim"), "ttmon top --sim");
        assert_eq!(words("ttmon --sim n300x4 --root=x"), "ttmon top --sim=n300x4 --root=x");
        assert_eq!(words("ttmon --service off"), "ttmon top --service off");
        assert_eq!(words("ttmon --host a,b --ca x"), "ttmon top --host a,b --ca x");
        assert_eq!(words("ttmon --ssh a --push"), "ttmon top --ssh a --push");
        assert_eq!(words("ttmon --sim -L"), "ttmon smi --sim -L");
        assert_eq!(words("ttmon --sim smi"), "ttmon smi --sim");
        assert_eq!(words("ttmon dmon"), "ttmon smi dmon");
    }

    #[test]
    fn what_run_shall_run_is_left_alone() {
        let words = |line: &str| completed(line, false).join(OsStr::new(" "));
        for line in [
            "ttmon run -- foo smi -lms 5",
            "ttmon run python3 smi.py",
            "ttmon run smi",
            "ttmon run -- run -lms",
            "ttmon --root x run --json - foo --sim n150 smi -lms=5",
            "ttmon run --leaks --json out.json sim --sim p150x4",
            "ttmon run --interval-ms 10 -- --sim n150",
            "ttmon run",
        ] {
            assert_eq!(words(line), line);
        }
        assert_eq!(words("ttmon --sim n150 run foo --sim n150"), "ttmon --sim=n150 run foo --sim n150");
        assert_eq!(words("ttmon run --sim n150 -- foo"), "ttmon run --sim=n150 -- foo");
        assert_eq!(words("ttmon --root run -L"), "ttmon smi --root run -L");
    }

    #[test]
    fn what_stands_behind_the_command_is_its_own() {
        let run = |line: &str| match Cli::parse_from(completed(line, false)).command {
            Command::Run(run) => run,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            run("ttmon run foo --leaks --json x -- --sim").command,
            ["foo", "--leaks", "--json", "x", "--", "--sim"]
        );
        assert_eq!(run("ttmon run --leaks -- -x").command, ["-x"]);
        assert!(run("ttmon run --leaks -- -x").leaks && !run("ttmon run foo --leaks").leaks);
        let fails = |line: &str| Cli::try_parse_from(completed(line, false)).is_err();
        assert!(fails("ttmon run") && fails("ttmon run --") && fails("ttmon run --leak foo"));
    }

    #[test]
    fn a_token_is_the_service_s_own_or_for_another_machine() {
        let parsed = |line: &str| Cli::parse_from(completed(line, false));
        let serve = parsed("ttmon serve --token-file x");
        assert!(serve.check().is_ok());
        assert!(matches!(serve.command, Command::Serve(serve) if serve.token_file.is_some()));
        let smi = parsed("ttmon smi --host a --token-file x");
        assert!(smi.check().is_ok() && smi.machine.token_file.is_some());
    }

    #[test]
    fn a_program_s_name_can_be_a_command() {
        let words = |line: &str| completed(line, false).join(OsStr::new(" "));
        assert_eq!(
            words("./build/allocation_monitor_client -a -r 500"),
            "./build/allocation_monitor_client mem -a -r 500"
        );
        assert_eq!(words("ttmon --sim n150 mem -d 0"), "ttmon --sim=n150 mem -d 0");
        assert_eq!(words("./allocation_server --poc-socket off"), "./allocation_server serve --poc-socket off");
        assert_eq!(words("ttmon serve --sim n150"), "ttmon serve --sim=n150");
        assert_eq!(words("ttmon record --sim n150 -o x"), "ttmon record --sim=n150 -o x");
        assert_eq!(words("ttmon --version"), "ttmon --version");
        assert_eq!(words("ttmon smi -lms 500"), "ttmon smi --loop-ms 500");
        assert_eq!(words("ttmon smi -lms=500"), "ttmon smi --loop-ms=500");
    }
}
