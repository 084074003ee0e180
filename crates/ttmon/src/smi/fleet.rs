//! `ttmon smi` over several machines: each view with the machine's name in it.

use super::{SmiArgs, SmiView, csv, table, usage};
use crate::json::{HostContent, fleet_json};
use crate::screen::{LONG_TIME, OutputScreen, Rounds, local_time};
use model::{Snapshot, Timestamp};
use show::style::Style;
use show::text::{Align, clean, fit};
use std::sync::Arc;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::exit::Exit;
use watch::exit_status::{no_answer, of_fleet};
use watch::fleet::remote::{LONGEST, watch};
use watch::fleet::{Fleet, HostView};
use watch::selection::selected;

/// The column of names in dmon and pmon.
const NAME: usize = 16;

pub fn run(
    machine: &MachineArgs,
    args: &SmiArgs,
    mut view: SmiView,
    screen: &mut OutputScreen,
    rounds: &Rounds,
) -> anyhow::Result<Exit> {
    if matches!(view, SmiView::TtSmi(_) | SmiView::Boards | SmiView::Trays) {
        return Err(usage("--tt-smi shows one machine: name one host, or use --json"));
    }
    if matches!(view, SmiView::Xml(_)) {
        return Err(usage("-x shows one machine: name one host, or use --json"));
    }
    let mut watch = watch(machine, rounds.every.unwrap_or(Duration::from_secs(1)))?;
    let mut complaint = String::new();
    screen.repeat(
        &mut watch,
        rounds,
        |watch| watch.round(LONGEST),
        |screen, _, fleet, round| {
            let fleet = chosen(fleet, &args.id)?;
            screen.show(&text(&mut view, &fleet, &screen.style(), round))?;
            // Lines for programs have no place for it.
            let is_lines = match &view {
                SmiView::Csv(_) | SmiView::Stream(_) => true,
                SmiView::By(by) => by.is_csv(),
                _ => false,
            };
            if is_lines {
                let now = silent(&fleet, |host| host.trouble().is_some());
                if now != complaint {
                    eprint!("{now}");
                    complaint = now;
                }
            }
            let exit = of_fleet(&fleet);
            if rounds.every.is_none() {
                // There may be a thousand machines in it, and the kernel clears up faster.
                std::mem::forget(fleet);
            }
            Ok(exit)
        },
    )
}

/// The devices that were named, on whatever machine they are. An error when none has any of them.
fn chosen(mut fleet: Fleet, names: &[String]) -> anyhow::Result<Fleet> {
    if names.is_empty() {
        return Ok(fleet);
    }
    let (mut error, mut is_found) = (None, false);
    for snapshot in fleet.hosts.iter_mut().filter_map(|host| host.snapshot.as_mut()) {
        match selected(Snapshot::clone(snapshot), names) {
            Ok(chosen) => (*snapshot, is_found) = (Arc::new(chosen), true),
            Err(why) => {
                error = error.or(Some(why));
                let snapshot = Arc::make_mut(snapshot);
                snapshot.devices.clear();
                snapshot.processes.clear();
            }
        }
    }
    match error.filter(|_| !is_found) {
        Some(error) => Err(error),
        None => Ok(fleet),
    }
}

fn content(host: &HostView) -> HostContent<'_> {
    HostContent::Snapshot(host.snapshot.as_deref())
}

fn text(view: &mut SmiView, fleet: &Fleet, style: &Style, round: u64) -> String {
    match view {
        SmiView::Table => {
            let now = Timestamp(jiff::Timestamp::now().as_millisecond());
            table::fleet::text(fleet, style, &local_time(now, LONG_TIME))
        }
        SmiView::Json { lines } => fleet_json(fleet, *lines, content),
        SmiView::Csv(query) => {
            let has_header = query.form.header;
            let (mut text, mut is_first) = (String::new(), round == 1);
            for (host, snapshot) in answering(fleet) {
                let lines = view.text(&snapshot, style, if is_first { 1 } else { 2 });
                for (n, line) in lines.lines().enumerate() {
                    let is_header = is_first && n == 0 && has_header;
                    let name = if is_header { "host".into() } else { csv::quoted(&host.name) };
                    text += &format!("{name}, {line}\n");
                }
                is_first = false;
            }
            text
        }
        SmiView::Stream(_) => lines(view, fleet, style, round, |host, n, line| {
            let heads = ["host", "name"];
            let (mark, name) = match line.strip_prefix('#') {
                Some(" SIMULATED") => ('#', ""),
                Some(_) => ('#', heads[n.min(1)]),
                None => (' ', host.name.as_str()),
            };
            let name = fit(&clean(name).replace(' ', "_"), NAME, Align::Left, '~');
            format!("{mark} {name} {}", line.get(1..).unwrap_or_default()).trim_end().to_owned()
        }),
        SmiView::By(by) => {
            let now = Timestamp(jiff::Timestamp::now().as_millisecond());
            let note = |host: &HostView| {
                let old = host.snapshot.as_ref().map_or("", |_| " (counted as it was)");
                format!("{}: {}{old}", clean(&host.name), clean(&no_answer(host)))
            };
            let is_silent = |host: &&HostView| host.trouble().is_some() || host.snapshot.is_none();
            let notes = fleet.hosts.iter().filter(is_silent).map(note).collect();
            by.fleet_text(fleet, (now, &local_time(now, LONG_TIME)), notes, style, round == 1)
        }
        SmiView::List => {
            let listed = lines(view, fleet, style, round, |host, _, line| format!("{}: {line}", clean(&host.name)));
            listed + &silent(fleet, |host| host.snapshot.is_none())
        }
        SmiView::Xml(_)
        | SmiView::Matrix
        | SmiView::Links
        | SmiView::Version
        | SmiView::Report(_)
        | SmiView::TtSmi(_)
        | SmiView::Boards
        | SmiView::Trays => {
            let part = |(host, snapshot): (&HostView, Snapshot)| {
                let text = view.text(&snapshot, style, round);
                format!("{:<54} : {}\n{text}\n", "Machine", clean(&host.name))
            };
            answering(fleet).map(part).collect::<String>() + &silent(fleet, |host| host.snapshot.is_none())
        }
    }
}

/// The lines of each machine, with its name in them.
fn lines(
    view: &mut SmiView,
    fleet: &Fleet,
    style: &Style,
    round: u64,
    named: impl Fn(&HostView, usize, &str) -> String,
) -> String {
    let mut text = String::new();
    for (host, snapshot) in answering(fleet) {
        for (n, line) in view.text(&snapshot, style, round).lines().enumerate() {
            text += &(named(host, n, line) + "\n");
        }
    }
    text
}

/// Machines that have answered, as they are to be shown.
fn answering(fleet: &Fleet) -> impl Iterator<Item = (&HostView, Snapshot)> {
    fleet.hosts.iter().filter_map(|host| Some((host, host.aged()?)))
}

/// A line for each machine that does not answer, of those that are of interest.
fn silent(fleet: &Fleet, is_of_interest: impl Fn(&HostView) -> bool) -> String {
    let silent = fleet.hosts.iter().filter(|host| is_of_interest(host));
    silent.map(|host| format!("{}: {}\n", clean(&host.name), clean(&no_answer(host)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use expect_test::expect_file;
    use serde_json::Value;
    use watch::fleet::example;

    const TIME: &str = "Fri Jan  2 03:04:05 2026";

    fn style(columns: usize) -> Style {
        Style { columns, rows: None, color: false, unicode: true }
    }

    fn shown(words: &str, fleet: &Fleet) -> String {
        let Command::Smi(args) = Cli::parse_from(["ttmon", "smi"].into_iter().chain(words.split(' '))).command else {
            panic!("{words}");
        };
        text(&mut SmiView::chosen(&args, true).unwrap(), fleet, &style(80), 1)
    }

    #[test]
    fn several_machines_are_one_table() {
        let text = table::fleet::text(&example::several(), &style(80), TIME);
        for line in text.lines().filter(|line| !line.starts_with("note: ")) {
            assert!(show::text::width(line) <= 80, "{line}");
        }
        expect_file!["golden/fleet-80.txt"].assert_eq(&text);
        expect_file!["golden/fleet-140.txt"].assert_eq(&table::fleet::text(&example::several(), &style(140), TIME));
        let ascii = Style { unicode: false, ..style(60) };
        let mut plain = example::several();
        plain.hosts.retain(|host| host.name.is_ascii() && host.name != "lab-7");
        let text = table::fleet::text(&plain, &ascii, TIME);
        assert!(text.is_ascii(), "{text}");
        expect_file!["golden/fleet-ascii.txt"].assert_eq(&text);
    }

    #[test]
    fn machines_that_say_nothing_are_still_a_table() {
        let fleet = Fleet {
            hosts: vec![
                example::unreachable("lab-8", "no answer within 5 s", 3),
                example::unreachable("lab-9", "x", 90_000),
            ],
        };
        expect_file!["golden/fleet-silent.txt"].assert_eq(&table::fleet::text(&fleet, &style(80), TIME));
    }

    #[test]
    fn every_view_says_which_machine_it_is() {
        let mut fleet = example::several();
        fleet.hosts.truncate(4);
        let views = [
            "-L",
            "--query-device=index,power.draw",
            "--query-processes=pid,dram_bytes",
            "dmon",
            "pmon",
            "-q -d HEALTH",
        ];
        let text: String = views.map(|view| format!("$ ttmon smi {view}\n{}", shown(view, &fleet))).concat();
        expect_file!["golden/fleet-views.txt"].assert_eq(&text);
    }

    #[test]
    fn users_are_added_up_over_all_machines() {
        let fleet = example::several();
        let below_time = |text: String| text[text.find('\n').unwrap() + 1..].to_owned();
        let mut all: Value = serde_json::from_str(&shown("--by user --json", &fleet)).unwrap();
        all["taken_at"] = "now".into();
        let text =
            [below_time(shown("--by user", &fleet)), shown("--by user --format csv", &fleet), format!("{:#}\n", all)];
        expect_file!["golden/fleet-by-user.txt"].assert_eq(&text.join("\n"));
    }

    #[test]
    fn json_has_every_machine_with_its_state() {
        let mut fleet = example::several();
        fleet.hosts[0].snapshot = Some(Arc::new(example::calm(0)));
        fleet.hosts.remove(1);
        expect_file!["golden/fleet.json"].assert_eq(&fleet_json(
            &Fleet { hosts: fleet.hosts[..2].to_vec() },
            false,
            content,
        ));
        let all: Value = serde_json::from_str(&shown("--json", &example::several())).unwrap();
        let snapshot: Snapshot = serde_json::from_value(all["hosts"][1]["snapshot"].clone()).unwrap();
        assert_eq!(snapshot, show::example::machine());
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst() {
        let code = |hosts: Vec<HostView>| of_fleet(&Fleet { hosts });
        let (well, gone) = (example::reached("a", example::calm(2)), example::unreachable("b", "x", 1));
        assert_eq!(code(vec![well.clone()]), Exit::Success);
        assert_eq!(code(vec![well.clone(), gone.clone()]), Exit::Unreachable);
        assert_eq!(code(vec![gone, example::reached("c", show::example::machine())]), Exit::DeviceLost);
        assert_eq!(code(vec![example::reached("a", example::calm(0))]), Exit::NoDevice);
    }

    #[test]
    fn a_device_is_chosen_on_every_machine_that_has_it() {
        let devices = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            let fleet = chosen(example::several(), &names).map_err(|error| error.to_string())?;
            Ok::<_, String>(
                fleet
                    .hosts
                    .iter()
                    .map(|host| host.snapshot.as_ref().map_or(0, |one| one.devices.len()))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(devices(&["3"]).unwrap(), [1, 1, 0, 0, 0, 0], "on the second machine it is the chip behind 2");
        assert_eq!(devices(&["1"]).unwrap(), [1, 1, 0, 1, 0, 0]);
        assert_eq!(devices(&["77"]).unwrap_err(), "no device is called \"77\": there are 0, 1, 2, 3");
    }
}
