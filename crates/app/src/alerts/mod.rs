//! Alerts: `ttmon alerts`, the rules of the configuration file at work, and telling whoever wants to know.

mod delivery;
#[cfg(test)]
mod example;
mod list;
mod queue;
mod receiver;
pub mod settings;
mod watch;

use crate::cli::{AlertsArgs, AlertsCommand, MachineArgs};
use crate::config;
use crate::exit::{Exit, Failure};
use crate::machine::Machine;
use crate::mem::Teller;
use crate::wait::Interrupt;
use ::alerts::{Notice, prometheus};
pub use delivery::{Delivery, wall};
pub use list::Listed;
use model::{Alert, AlertState};

use settings::Settings;
use std::io::{self, Write};
use std::path::Path;
pub use watch::Watch;

/// Runs the command.
pub fn run(machine: &MachineArgs, args: &AlertsArgs) -> anyhow::Result<Exit> {
    let file = config::place(args.config.as_deref(), false)?;
    let mut out = io::stdout().lock();
    match &args.command {
        AlertsCommand::Check => {
            let settings = read(&file)?;
            let (rules, receivers) = (settings.rules.len(), settings.receivers.len());
            let place =
                if file.exists() { file.display().to_string() } else { format!("{} is not there", file.display()) };
            writeln!(out, "{place}: all is well with {rules} rules and {receivers} receivers")?;
        }
        AlertsCommand::List { json } => {
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
        AlertsCommand::Test { name } => return test(&file, name.as_deref(), &mut out),
        AlertsCommand::Export { prometheus: _ } => out.write_all(prometheus(&read(&file)?.rules).as_bytes())?,
    }
    out.flush()?;
    Ok(Exit::Success)
}

/// Rules and receivers of a file; the built-in rules where there is none. Each mistake is named, the first one last.
pub fn read(file: &Path) -> anyhow::Result<Settings> {
    let (settings, problems) = load(file);
    if let [first, rest @ ..] = &problems[..] {
        rest.iter().rev().for_each(|problem| eprintln!("ttmon: {}", config::said(file, problem)));
        return Err(Failure::error(Exit::Usage, config::said(file, first)));
    }
    Ok(settings)
}

/// The rules of the user's file, or those that are built in. What is wrong with the file is told by `ttmon alerts check`.
pub fn of_user(named: Option<&Path>) -> Settings {
    config::place(named, false).map(|file| load(&file).0).unwrap_or_default()
}

/// The same, with what is wrong beside what is right.
pub fn load(file: &Path) -> (Settings, Vec<config::Problem>) {
    match std::fs::read_to_string(file) {
        Ok(text) => settings::parse(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Settings::default(), Vec::new()),
        Err(error) => {
            let what = format!("cannot be read: {error}");
            (Settings::default(), vec![config::Problem { line: 0, what }])
        }
    }
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
        let said = match receiver::Teller::new(receiver, &host).tell(std::slice::from_ref(&notice), now, true) {
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

/// The name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
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
