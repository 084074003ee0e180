//! Alerts: `ttmon alerts`, the rules of the configuration file at work, and telling whoever wants to know.

mod list;

use crate::cli::{AlertsArgs, AlertsCommand};
use ::alerts::{Notice, host, prometheus, wall};
use model::{Alert, AlertState};
use watch::args::MachineArgs;
use watch::config::{self, read_alerts as read};
use watch::exit::{Exit, Failure};
use watch::machine::Machine;
use watch::machine::Teller;
use watch::rules::Listed;
use watch::wait::Interrupt;

use std::io::{self, Write};
use std::path::Path;

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
        let said = match ::alerts::Teller::new(receiver, &host).tell(std::slice::from_ref(&notice), now, true) {
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
            assert!(told.iter().any(|one| one == name), "{name}");
        }
    }
}
