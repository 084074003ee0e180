//! Which Ethernet links are up: the link-up masks of deep reads, joined with what is known of links.
//!
//! A link that should be there and is not up is `down`: a cluster descriptor lists it, or it is on the board itself. Without a
//! descriptor any other port may have no cable, so it is `not up`.

use super::{Topology, TopologySource};
use crate::{Device, DeviceId, State};
use serde::{Deserialize, Serialize};

named! {
    /// The state of a link or a port.
    pub enum LinkState {
        Up = "up",
        /// It should be up, and is not.
        Down = "down",
        /// It is not up, and it is not known whether it should be.
        NotUp = "not up",
        /// Of a port: it has no link, or is switched off.
        Unused = "unused",
        /// No end says.
        Unknown = "unknown",
    }
}

/// What is known of the links of a machine now.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LiveLinks {
    /// Each link that is known, in the order of [`Topology::links`].
    pub links: Vec<LiveLink>,
    /// Each port of the chips that say which of their links are up.
    pub ports: Vec<LivePort>,
}

/// One link between two ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLink {
    /// In the order of their names.
    pub ends: [LinkEnd; 2],
    /// Whether it is up.
    pub state: LinkState,
    /// How it is known that there is such a link.
    pub source: TopologySource,
}

/// What one end of a link says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The chip.
    #[serde(flatten)]
    pub id: DeviceId,
    /// Its port.
    pub port: Option<u32>,
    /// Whether it says that the link is up.
    pub up: Option<bool>,
    /// Whether the firmware of the port runs.
    pub firmware_runs: Option<bool>,
}

/// One port of a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePort {
    /// The chip.
    pub id: DeviceId,
    /// The number of the port.
    pub port: u32,
    /// Whether its link is up.
    pub state: LinkState,
    /// Whether its firmware runs.
    pub firmware_runs: Option<bool>,
    /// The chip and port at the other end, where that is known.
    pub other: Option<(DeviceId, u32)>,
    /// Whether it leads out of the machine.
    pub is_outside: bool,
}

/// What the devices say now of the links of their topology.
pub fn live(topology: &Topology, devices: &[Device]) -> LiveLinks {
    let find = |id: &DeviceId| devices.iter().find(|device| device.id == *id);
    let mut links = Vec::new();
    for link in &topology.links {
        for place in 0..(link.count as usize).max(link.ports.len()) {
            let ports = link.ports.get(place);
            let end = |n: usize| LinkEnd::of(&link.ends[n], find(&link.ends[n]), ports.map(|ports| ports[n]));
            links.push(LiveLink::between([end(0), end(1)], link.source));
        }
    }
    let ports = devices.iter().flat_map(|device| ports(device, topology, &links)).collect();
    LiveLinks { links, ports }
}

/// How many enabled ports of a device have no link that is up. Absent where it does not say.
pub fn ports_not_up(device: &Device) -> Option<u32> {
    let mut ports = known_ports(device).peekable();
    ports.peek()?;
    Some(ports.filter(|port| says_up(device, *port) == Some(false) && is_enabled(device, *port)).count() as u32)
}

/// Whether a device says that the link of a port is up. One that does not answer says nothing of now.
pub(super) fn says_up(device: &Device, port: u32) -> Option<bool> {
    let deep = device.deep.as_ref().filter(|_| device.state == State::Ok)?;
    *deep.eth_link_up.get(port as usize)?
}

fn firmware_runs(device: &Device, port: u32) -> Option<bool> {
    let deep = device.deep.as_ref().filter(|_| device.state == State::Ok)?;
    *deep.eth_heartbeat.get(port as usize)?
}

fn is_enabled(device: &Device, port: u32) -> bool {
    let said = device.deep.as_ref().and_then(|deep| *deep.eth_enabled.get(port as usize)?);
    said != Some(false)
}

/// The ports of which a device says whether their link is up.
fn known_ports(device: &Device) -> impl Iterator<Item = u32> + '_ {
    let count = device.deep.as_ref().map_or(0, |deep| deep.eth_link_up.len() as u32);
    (0..count).filter(|port| says_up(device, *port).is_some())
}

fn ports<'a>(device: &'a Device, topology: &'a Topology, links: &'a [LiveLink]) -> impl Iterator<Item = LivePort> + 'a {
    let chip = topology.place(&device.id);
    known_ports(device).map(move |port| {
        let is_here = |end: &LinkEnd| end.id == device.id && end.port == Some(port);
        let link = links.iter().find(|link| link.ends.iter().any(is_here));
        let is_outside = chip.is_some_and(|chip| chip.outside_ports.contains(&port));
        let other = link.and_then(|link| link.ends.iter().find(|end| !is_here(end)));
        let state = match (link, says_up(device, port)) {
            (Some(link), _) if link.state != LinkState::Unknown => link.state,
            (_, Some(true)) => LinkState::Up,
            (_, None) => LinkState::Unknown,
            _ if is_outside => LinkState::Down,
            _ if !is_enabled(device, port) || chip.is_some_and(|chip| chip.is_described) => LinkState::Unused,
            _ => LinkState::NotUp,
        };
        LivePort {
            id: device.id.clone(),
            port,
            state,
            firmware_runs: firmware_runs(device, port),
            other: other.and_then(|end| Some((end.id.clone(), end.port?))),
            is_outside,
        }
    })
}

impl LinkEnd {
    fn of(id: &DeviceId, device: Option<&Device>, port: Option<u32>) -> LinkEnd {
        let ask = |question: fn(&Device, u32) -> Option<bool>| question(device?, port?);
        LinkEnd { id: id.clone(), port, up: ask(says_up), firmware_runs: ask(firmware_runs) }
    }
}

impl LiveLink {
    fn between(ends: [LinkEnd; 2], source: TopologySource) -> LiveLink {
        let said = || ends.iter().filter_map(|end| end.up);
        let state = match source {
            _ if said().next().is_none() => LinkState::Unknown,
            _ if said().all(|up| up) => LinkState::Up,
            TopologySource::Assumed => LinkState::NotUp,
            TopologySource::Descriptor | TopologySource::Board => LinkState::Down,
        };
        LiveLink { ends, state, source }
    }

    /// Whether one end says that it is up, and the other that it is not.
    pub fn ends_disagree(&self) -> bool {
        matches!((self.ends[0].up, self.ends[1].up), (Some(a), Some(b)) if a != b)
    }

    /// What else is to be said of it: `ends disagree: 0 says up, 1 says down`.
    pub fn remark(&self) -> Option<String> {
        let [one, other] = &self.ends;
        if self.ends_disagree() {
            let word = |end: &LinkEnd| if end.up == Some(true) { "up" } else { "down" };
            return Some(format!("ends disagree: {} says {}, {} says {}", one.id, word(one), other.id, word(other)));
        }
        let stopped = self.ends.iter().find(|end| end.firmware_runs == Some(false))?;
        Some(format!("port firmware of {} does not run", stopped.id))
    }
}

impl LiveLinks {
    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        !self.ports.is_empty()
    }

    /// The links between two chips.
    pub fn between<'a>(&'a self, ends: &'a [DeviceId; 2]) -> impl Iterator<Item = &'a LiveLink> {
        self.links.iter().filter(move |link| link.ends.iter().map(|end| &end.id).eq(ends))
    }

    /// How many of the links between two chips are in a state.
    pub fn count(&self, ends: &[DeviceId; 2], state: LinkState) -> usize {
        self.between(ends).filter(|link| link.state == state).count()
    }

    /// How many links are down, those out of the machine included.
    pub fn down(&self) -> usize {
        let outside = self.ports.iter().filter(|port| port.is_outside && port.state == LinkState::Down);
        self.links.iter().filter(|link| link.state == LinkState::Down).count() + outside.count()
    }

    /// What is wrong, in a few words: `3 of 48 links down`. Nothing where all known links are up.
    pub fn degraded(&self) -> Option<String> {
        let down = self.down();
        let outside = self.ports.iter().filter(|port| port.is_outside).count();
        let all = self.links.iter().filter(|link| link.state != LinkState::Unknown).count() + outside;
        (down > 0).then(|| format!("{down} of {all} links down"))
    }
}
