//! Alerts: `ttmon alerts`, the rules of the configuration file at work, and telling whoever wants to know.

mod list;

use ::alerts::{Notice, host, prometheus, wall};
use model::{Alert, AlertState};
use watch::args::MachineArgs;
use watch::config::{self, read_alerts as read};
use watch::exit::{Exit, Failure};
use watch::machine::Machine;
use watch::machine::Teller;
use watch::rules::Listed;
use watch::wait::Interrupt;

use clap::Subcommand;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = "\
`ttmon serve` follows the rules and tells the receivers, again and again until they have heard. `top` and `smi` show what fires: by the \
service, or, without one, by the rules of your own file. There are rules from the start (`ttmon alerts list`).

  [[alert]]
  name = \"hot\"                  # that of a rule which is there changes it (off = true)
  when = \"asic_temp > 85 for 30s until asic_temp < 80\"
  severity = \"critical\"         # info, warning or critical
  device = \"0\"                  # or a list; all, unless named
  [[alerts.webhook]]
  url = \"https://example.org/hook\"
  [[alerts.alertmanager]]
  url = \"http://127.0.0.1:9093\"
  [[alerts.command]]
  run = [\"/usr/local/bin/page\"] # JSON on its standard input
  [alerts.desktop]               # notify-send

A rule compares figures, or increase(FIGURE, 10m), with numbers, words, or a percentage of their limit, joined by and, or, parentheses:

FIGURES

Exit codes: 0 all is well; 1 a receiver has not taken the test; 2 a wrong word on the command line, or in the file.";

/// The help below the options, with the figures of the tables.
pub fn after_help() -> String {
    AFTER_HELP.replace("FIGURES\n", &::alerts::figure_help())
}

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
    /// The file; $XDG_CONFIG_HOME/ttmon/config.toml, unless named, or /etc/ttmon/config.toml where that is missing
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Name everything in the file that is wrong with rules and receivers, each with its line
    Check,
    /// List the rules and what they say now: of the service where there is one, else of one look at the machine
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell all receivers that this is a test, and print what each answers
    Test {
        /// In the name of this rule
        name: Option<String>,
    },
    /// Print the rules for another program
    Export {
        /// As a file of alerting rules for Prometheus
        // It stands in the place of the option that names a Prometheus, and so is of its type.
        #[arg(long, num_args = 0, default_missing_value = "rules", required = true)]
        prometheus: String,
    },
}

/// Runs the command.
pub fn run(machine: &MachineArgs, args: &Args) -> anyhow::Result<Exit> {
    let file = config::place(args.config.as_deref(), false)?;
    let mut out = io::stdout().lock();
    match &args.command {
        Command::Check => {
            let settings = read(&file)?;
            let (rules, receivers) = (settings.rules.len(), settings.receivers.len());
            let place =
                if file.exists() { file.display().to_string() } else { format!("{} is not there", file.display()) };
            writeln!(out, "{place}: all is well with {rules} rules and {receivers} receivers")?;
        }
        Command::List { json } => {
            let _interrupt = machine.sim.is_some().then(Interrupt::new).transpose()?;
            let settings = read(&file)?;
            let mut machine = Machine::open(machine, false)?.through_service(machine).watched(&settings);
            let snapshot = machine.sample();
            let listed = match machine.teller() {
                Some(Teller::Here(service)) => service.alerts(),
                _ => None,
            };
            let listed = listed.unwrap_or_else(|| Listed::of(machine.watch()));
            drop(snapshot);
            let text = if *json { serde_json::to_string(&listed)? + "\n" } else { list::text(&listed) };
            machine.leave();
            out.write_all(text.as_bytes())?;
        }
        Command::Test { name } => return test(&file, name.as_deref(), &mut out),
        Command::Export { prometheus: _ } => out.write_all(prometheus(&read(&file)?.rules).as_bytes())?,
    }
    out.flush()?;
    Ok(Exit::Success)
}

/// Tells all receivers something that is clearly a test, and what each has answered.
fn test(file: &Path, name: Option<&str>, out: &mut impl Write) -> anyhow::Result<Exit> {
    let settings = read(file)?;
    let rule = match name {
        None => None,
        Some(name) => {
            let names = || settings.rules.iter().map(|rule| &rule.name[..]).collect::<Vec<_>>().join(", ");
            let found = settings.rules.iter().find(|rule| rule.name == name);
            Some(found.ok_or_else(|| {
                Failure::error(Exit::Usage, format!("there is no rule called {name:?}: there are {}", names()))
            })?)
        }
    };
    if settings.receivers.is_empty() {
        let why =
            format!("nobody would be told: there is no receiver in {} (see `ttmon alerts --help`)", file.display());
        return Err(Failure::error(Exit::Usage, why));
    }
    let now = wall();
    let notice = Notice {
        alert: Alert {
            name: rule.map_or_else(|| "test".into(), |rule| rule.name.clone()),
            severity: rule.map_or(model::Severity::Info, |rule| rule.severity),
            state: AlertState::Firing,
            device: None,
            process: None,
            since: now,
            value: None,
            text: "this is a test by `ttmon alerts test`: nothing is wrong".into(),
        },
        fingerprint: "test".into(),
        alertname: rule.map_or_else(|| "TtmonTest".into(), ::alerts::Rule::alertname),
        rule: rule.map_or_else(String::new, |rule| rule.condition.to_string()),
        pci_address: None,
        process_name: None,
        started_at: now,
        ended_at: None,
    };
    let host = host();
    let mut all_heard = true;
    for receiver in &settings.receivers {
        let said = match ::alerts::Notifier::new(receiver, &host).notify(std::slice::from_ref(&notice), now, true) {
            Ok(answer) => answer,
            Err(error) => {
                all_heard = false;
                format!("failed: {error:#}")
            }
        };
        writeln!(out, "{}: {said}", receiver.name())?;
        out.flush()?;
    }
    match all_heard {
        true => Ok(Exit::Success),
        false => Err(anyhow::anyhow!("not all receivers have taken it")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_metric_that_a_rule_names_is_told() {
        let told: Vec<String> = web::metrics::names().collect();
        for name in ::alerts::metric_names() {
            assert!(told.contains(&name), "{name}");
        }
    }
}
