//! `ttmon alerts`: checks, lists, tests and exports the rules of the configuration file.

use ::alerts::{Notice, host, prometheus, wall};
use model::{Alert, AlertState};
use show::text::{Align, clean, fit, width};
use watch::args::MachineArgs;
use watch::config::{self, Config};
use watch::exit::{Exit, Failure};
use watch::machine::Machine;
use watch::rules::RulesReply;
use watch::wait::Interrupt;

use clap::Subcommand;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const ABOUT_RULES: &str = "\
`ttmon serve` evaluates the rules and notifies the receivers, with retries. `top` and `smi` show firing alerts: those of the \
service or, without one, of the rules in your own file. There are built-in rules (`ttmon alerts list`).

  [[alert]]
  name = \"hot\"                  # the name of a built-in rule changes it (off = true)
  when = \"asic_temp > 85 for 30s until asic_temp < 80\"
  severity = \"critical\"         # info, warning or critical
  device = \"0\"                  # or a list; default: all devices
  [[alerts.webhook]]
  url = \"https://example.org/hook\"
  [[alerts.alertmanager]]
  url = \"http://127.0.0.1:9093\"
  [[alerts.command]]
  run = [\"/usr/local/bin/page\"] # JSON on its standard input
  [alerts.desktop]               # notify-send

A rule compares figures with numbers, or with a percentage of their limit, joined by and, or, parentheses; \
increase(FIGURE, 10m) is how much a figure has grown.";

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 a receiver did not accept the test; 2 invalid arguments, or an error in the file.";

/// What follows the options in the help: an example, and the figures of the tables.
pub fn after_help() -> String {
    format!("{ABOUT_RULES}\n\n{}\n{EXIT_CODES}", ::alerts::figure_help())
}

#[derive(Debug, Clone, clap::Args)]
pub struct AlertsArgs {
    #[command(subcommand)]
    pub command: AlertsCommand,
    /// The file (default: $XDG_CONFIG_HOME/ttmon/config.toml, or /etc/ttmon/config.toml where that is missing)
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum AlertsCommand {
    /// Report all errors in rules and receivers, each with its line
    Check,
    /// List the rules and their state now: from the service where it runs, else from one sample
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a test to all receivers, and print what each answers
    Test {
        /// In the name of this rule
        name: Option<String>,
    },
    /// Print the rules for another program
    Export {
        /// As a file of alerting rules for Prometheus
        // It takes the place of the option that names a Prometheus, and so is of its type.
        #[arg(long, num_args = 0, default_missing_value = "rules", required = true)]
        prometheus: String,
    },
}

pub fn run(machine: &MachineArgs, args: &AlertsArgs) -> anyhow::Result<Exit> {
    let file = config::place(args.config.as_deref(), false)?;
    let mut out = io::stdout().lock();
    match &args.command {
        AlertsCommand::Check => {
            let settings = Config::read(&file)?.alerts;
            let (rules, receivers) = (settings.rules.len(), settings.receivers.len());
            match file.exists() {
                true => writeln!(out, "{}: ok, {rules} rules and {receivers} receivers", file.display())?,
                false => writeln!(out, "{} not found; using the {rules} built-in rules", file.display())?,
            }
        }
        AlertsCommand::List { json } => {
            let _interrupt = machine.sim.is_some().then(Interrupt::new).transpose()?;
            let settings = Config::read(&file)?.alerts;
            let mut machine = Machine::open(machine, false)?.through_service(machine).watched(&settings);
            machine.sample();
            let listed = machine.rules();
            let text = if *json { serde_json::to_string(&listed)? + "\n" } else { text(&listed) };
            machine.leave();
            out.write_all(text.as_bytes())?;
        }
        AlertsCommand::Test { name } => return test(&file, name.as_deref(), &mut out),
        AlertsCommand::Export { prometheus: _ } => {
            out.write_all(prometheus(&Config::read(&file)?.alerts.rules).as_bytes())?
        }
    }
    out.flush()?;
    Ok(Exit::Success)
}

/// Tells all receivers something that is clearly a test, and what each has answered.
fn test(file: &Path, name: Option<&str>, out: &mut impl Write) -> anyhow::Result<Exit> {
    let settings = Config::read(file)?.alerts;
    let rule = name.and_then(|name| settings.rules.iter().find(|rule| rule.name == name));
    if let Some(name) = name.filter(|_| rule.is_none()) {
        let names = settings.rules.iter().map(|rule| &rule.name[..]).collect::<Vec<_>>().join(", ");
        return Err(Failure::error(Exit::Usage, format!("there is no rule called {name:?}: there are {names}")));
    }
    if settings.receivers.is_empty() {
        let why = format!("there is no receiver in {} (see `ttmon alerts --help`)", file.display());
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
        advice: rule.and_then(|rule| rule.advice.clone()),
        pci_address: None,
        process_name: None,
        started_at: now,
        ended_at: None,
    };
    let host = host();
    let mut all_heard = true;
    for receiver in &settings.receivers {
        let answer = ::alerts::Notifier::new(receiver, &host).notify(std::slice::from_ref(&notice), now, true);
        all_heard &= answer.is_ok();
        let said = answer.unwrap_or_else(|error| format!("failed: {error:#}"));
        writeln!(out, "{}: {said}", receiver.name())?;
        out.flush()?;
    }
    anyhow::ensure!(all_heard, "not all receivers accepted the test");
    Ok(Exit::Success)
}

/// For people: a line for each rule, and below it what it says.
fn text(listed: &RulesReply) -> String {
    let widest = listed.rules.iter().map(|rule| width(&rule.name)).max().unwrap_or(0);
    let mut text = String::new();
    for rule in &listed.rules {
        let name = fit(&rule.name, widest, Align::Left, '~');
        text += &format!("{name}  {:<8}  {}\n", rule.severity.name(), clean(&rule.when));
        for alert in listed.alerts.iter().filter(|alert| alert.name == rule.name) {
            text += &format!("  {} since {}: {}\n", alert.state.name(), alert.since, clean(&alert.text));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::alerts::settings::AlertSettings;
    use show::example;
    use watch::rules::RuleWatch;

    #[test]
    fn each_rule_has_a_line_and_what_it_says_stands_below() {
        let mut machine = example::machine();
        machine.devices[1].state = model::State::Lost;
        let mut watch = RuleWatch::new(&AlertSettings::default());
        watch.observe(&machine, &[]);
        expect_test::expect![[r#"
            lost                  critical  state == lost
              firing since 2026-01-02T03:04:05.678Z: device 1: disappeared from the bus (state lost)
            heartbeat-stopped     critical  state == hung
            silent                warning   state == silent for 15s
            thermal-trip          critical  increase(thermal_trips, 10m) > 0
            throttling            warning   asic_temp >= 100% for 30s until asic_temp < 95%
            hot                   warning   asic_temp >= 95% for 30s until asic_temp < 90%
              pending since 2026-01-02T03:04:05.678Z: device 2: near its temperature limit (asic_temp 98.0 %)
            power-limit           info      power >= 98% for 30s until power < 93%
            memory-full           warning   dram >= 95% for 30s until dram < 90%
            leak-after-exit       warning   stale > 0 for 1m
              pending since 2026-01-02T03:04:05.678Z: device 0: memory still attributed to exited processes (stale 1.0 MiB)
            left-at-exit          info      left_at_exit > 0
            idle-holder           info      process_idle >= 600 and process_memory > 0
            degraded-link         warning   link_degraded for 1m
              pending since 2026-01-02T03:04:05.678Z: device 0: PCIe link runs slower or narrower than slot and card support (link_degraded)
            clock-limited         warning   throttled_by == temperature or throttled_by == GDDR_temperature or throttled_by == doppler_critical for 30s
            link-down             warning   links_down > 0 or increase(eth_ports_not_up, 10m) > 0 for 1m
            gddr-uncorrected      critical  gddr_uncorrected_read or gddr_uncorrected_write
            gddr-corrected        warning   increase(gddr_corrected_reads, 1h) >= 10 or gddr_corrected_reads >= 255 or increase(gddr_corrected_writes, 1h) >= 10 or gddr_corrected_writes >= 255
            gddr-untrained        critical  gddr_trained == false for 30s
            gddr-training-failed  critical  gddr_training_failed
            gddr-hot              warning   gddr_top_temp >= 89 or gddr_bottom_temp >= 89 for 30s until gddr_top_temp < 85 and gddr_bottom_temp < 85
            gddr-too-hot          critical  gddr_top_temp >= 95 or gddr_bottom_temp >= 95 for 30s until gddr_top_temp < 89 and gddr_bottom_temp < 89
        "#]].assert_eq(&text(&RulesReply::of(Some(&watch))));
    }

    #[test]
    fn every_metric_that_a_rule_names_is_written() {
        let told: Vec<String> = web::metrics::names().collect();
        for name in ::alerts::metric_names() {
            assert!(told.contains(&name), "{name}");
        }
    }
}
