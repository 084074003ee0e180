//! `ttmon mem` over several machines: a part for each.

use super::Args;
use super::keys::Keys;
use super::{chosen_of, rest};
use crate::envelope::{Of, envelope};
use crate::screen::Screen;
use alerts::http::Http;
use show::memory::{draw, gather};
use show::terminal::on_terminal;
use show::text::clean;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use watch::args::MachineArgs;
use watch::exit::Exit;
use watch::fleet::far::{LONGEST, ways};
use watch::fleet::http::Service;
use watch::fleet::watch::{Watch, Ways};
use watch::fleet::{Fleet, HostView};
use watch::memory::told;
use watch::verdict::{no_answer, of_fleet};
use watch::wait::Interrupt;

/// Shows all machines until it is enough.
pub fn run(
    machine: &MachineArgs,
    args: &Args,
    screen: &mut Screen,
    every: Option<Duration>,
    interrupt: Option<&Interrupt>,
) -> anyhow::Result<Exit> {
    let ways = ways(machine)?;
    let services: HashMap<String, Http> = match &ways {
        Ways::Http(places, http) => places.iter().map(|place| (place.base.clone(), http.clone())).collect(),
        Ways::Prometheus(_) | Ways::Ssh { .. } => HashMap::new(),
    };
    let watch = Watch::start(ways, every.unwrap_or(Duration::from_secs(1)))?;
    let mut keys = screen.is_in_place().then(Keys::listen).flatten();
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

fn text(fleet: &Fleet, services: &HashMap<String, Http>, args: &Args, screen: &Screen, once: bool) -> String {
    let view = |host: &HostView| {
        let mut snapshot = chosen_of(host.aged()?, &args.device);
        let http = services.get(&host.place).filter(|_| host.trouble().is_none());
        Some(match http {
            Some(http) => {
                let mut service = Service { http, base: &host.place };
                told(&mut service, &mut snapshot, args.device.is_empty(), super::LARGEST)
            }
            None => gather::view(&snapshot, Vec::new(), Vec::new()),
        })
    };
    if args.json {
        return envelope(fleet, !(once && on_terminal()), |host| Of::Memory(view(host).map(Box::new)));
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
