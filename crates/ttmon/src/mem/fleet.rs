//! `ttmon mem` over several machines: a part for each.

use super::MemArgs;
use super::quit_key::QuitKey;
use super::{chosen_of, rest};
use crate::fleet_json::{HostContent, fleet_json};
use crate::screen::OutputScreen;
use alerts::http::Http;
use show::memory::{draw, gather};
use show::terminal::on_terminal;
use show::text::clean;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use watch::args::MachineArgs;
use watch::exit::Exit;
use watch::exit_status::{no_answer, of_fleet};
use watch::fleet::http::RemoteService;
use watch::fleet::remote::{LONGEST, fleet_source};
use watch::fleet::watcher::{FleetSource, FleetWatcher};
use watch::fleet::{Fleet, HostView};
use watch::memory::served_view;
use watch::wait::Interrupt;

/// Shows all machines until it is enough.
pub fn run(
    machine: &MachineArgs,
    args: &MemArgs,
    screen: &mut OutputScreen,
    every: Option<Duration>,
    interrupt: Option<&Interrupt>,
) -> anyhow::Result<Exit> {
    let source = fleet_source(machine)?;
    let services: HashMap<String, Http> = match &source {
        FleetSource::Http(places, http) => places.iter().map(|place| (place.base.clone(), http.clone())).collect(),
        FleetSource::Prometheus(_) | FleetSource::Ssh { .. } => HashMap::new(),
    };
    let watch = FleetWatcher::start(source, every.unwrap_or(Duration::from_secs(1)))?;
    let mut keys = screen.is_in_place().then(QuitKey::listen).flatten();
    let mut next = Instant::now();
    loop {
        let fleet = watch.round(LONGEST);
        if interrupt.is_some_and(Interrupt::came) {
            return Ok(Exit::Success);
        }
        screen.show(&text(&fleet, &services, args, screen, every.is_none()))?;
        let exit = of_fleet(&fleet);
        let (Some(every), Some(interrupt)) = (every, interrupt) else { return Ok(exit) };
        next = (next + every).max(Instant::now());
        if rest(next, interrupt, screen, &mut keys)? {
            return Ok(Exit::Success);
        }
    }
}

fn text(fleet: &Fleet, services: &HashMap<String, Http>, args: &MemArgs, screen: &OutputScreen, once: bool) -> String {
    let view = |host: &HostView| {
        let mut snapshot = chosen_of(host.aged()?, &args.device);
        let http = services.get(&host.place).filter(|_| host.trouble().is_none());
        Some(match http {
            Some(http) => {
                let mut service = RemoteService { http, base: &host.place };
                served_view(&mut service, &mut snapshot, args.device.is_empty(), super::most(args))
            }
            None => gather::view(&snapshot, Vec::new(), Vec::new()),
        })
    };
    if args.json {
        return fleet_json(fleet, !(once && on_terminal()), |host| HostContent::Memory(view(host).map(Box::new)));
    }
    let style = screen.style();
    let part = |host: &HostView| {
        let name = clean(&host.name).into_owned();
        match view(host) {
            Some(view) => {
                let time = view.taken_at.map(super::local_time).unwrap_or_default();
                format!("{name}\n{}\n", draw::text(&view, &style, &time))
            }
            None => format!("{name}: {}\n\n", clean(&no_answer(host))),
        }
    };
    fleet.hosts.iter().map(part).collect()
}
