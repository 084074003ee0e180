//! `ttmon mem` over several machines: a part for each.

use super::MemArgs;
use crate::json::{HostContent, fleet_json};
use crate::screen::{OutputScreen, Rounds};
use alerts::http::Http;
use model::Snapshot;
use show::memory::gather;
use show::terminal::on_terminal;
use show::text::clean;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::exit::Exit;
use watch::exit_status::{no_answer, of_fleet};
use watch::fleet::http::RemoteService;
use watch::fleet::remote::{LONGEST, fleet_source};
use watch::fleet::watcher::{FleetSource, FleetWatcher};
use watch::fleet::{Fleet, HostView};
use watch::memory::served_view;
use watch::selection::selected;

/// Shows all machines until it is enough.
pub fn run(machine: &MachineArgs, args: &MemArgs, screen: &mut OutputScreen, rounds: &Rounds) -> anyhow::Result<Exit> {
    let source = fleet_source(machine)?;
    let http = match &source {
        FleetSource::Http(_, http) => Some(http.clone()),
        FleetSource::Prometheus(_) | FleetSource::Ssh { .. } => None,
    };
    let mut watch = FleetWatcher::start(source, rounds.every.unwrap_or(Duration::from_secs(1)))?;
    screen.repeat(
        &mut watch,
        rounds,
        |watch| watch.round(LONGEST),
        |screen, _, fleet, _| {
            screen.show(&text(&fleet, http.as_ref(), args, screen, rounds.every.is_none()))?;
            Ok(of_fleet(&fleet))
        },
    )
}

fn text(fleet: &Fleet, http: Option<&Http>, args: &MemArgs, screen: &OutputScreen, once: bool) -> String {
    let view = |host: &HostView| {
        let all = host.aged()?;
        // The devices that were named, as far as it has them.
        let nothing = Snapshot { devices: Vec::new(), processes: Vec::new(), ..all.clone() };
        let mut snapshot = selected(all, &args.device).unwrap_or(nothing);
        Some(match http.filter(|_| host.trouble().is_none()) {
            Some(http) => {
                let mut service = RemoteService::at(http, &host.place);
                served_view(&mut service, &mut snapshot, args.device.is_empty(), super::most(args))
            }
            None => gather::view(&snapshot, Vec::new(), Vec::new()),
        })
    };
    if args.json {
        return fleet_json(fleet, !(once && on_terminal()), |host| HostContent::Memory(view(host).map(Box::new)));
    }
    if args.csv {
        return fleet.hosts.iter().filter_map(view).map(|view| super::text(&view, args, screen, once)).collect();
    }
    let style = screen.style();
    let part = |host: &HostView| {
        let name = clean(&host.name).into_owned();
        match view(host) {
            Some(view) => format!("{name}\n{}\n", super::drawn(&view, &style)),
            None => format!("{name}: {}\n\n", clean(&no_answer(host))),
        }
    };
    fleet.hosts.iter().map(part).collect()
}
