//! Which process listens where, from `/proc/<pid>/net/{tcp,tcp6,unix}`, `/proc/<pid>/fd` and `/proc/<pid>/environ`.
//!
//! The tables name a socket by its inode, and `fd` has a link `socket:[<inode>]` for each one that the process has open.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// The Inspector's port where none is set.
const PORT: u16 = 50051;

/// One line of a table of TCP sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end, while it is connected.
    pub remote: SocketAddr,
    /// Whether it waits for connections.
    pub listens: bool,
    /// Whose it is.
    pub uid: u32,
    /// Its number; zero while no process has accepted it.
    pub inode: u64,
}

/// Decodes `net/tcp` or `net/tcp6`. Lines that are none are passed over.
pub fn tcp_sockets(table: &[u8]) -> Vec<TcpSocket> {
    let line = |line: &[u8]| {
        let fields: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
        let [_, local, remote, state, _, _, _, uid, _, inode, ..] = fields[..] else { return None };
        let listens = state == "0A";
        let (local, remote) = (address(local)?, address(remote)?);
        Some(TcpSocket { local, remote, listens, uid: uid.parse().ok()?, inode: inode.parse().ok()? })
    };
    table.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// An address as the kernel prints it: words of 32 bits in the order of this machine, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let bytes = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            // An IPv4 address in the form of IPv6 is the same address.
            Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// The inode of the socket that listens at a path, by `net/unix`.
pub fn unix_listener(table: &[u8], path: &[u8]) -> Option<u64> {
    table.split(|byte| *byte == b'\n').find_map(|line| {
        let line = line.strip_suffix(path)?.strip_suffix(b" ")?;
        let fields: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
        let [_, _, _, flags, _, _, inode] = fields[..] else { return None };
        // What listens has this flag; what is connected shows the path, too.
        let listens = u32::from_str_radix(flags, 16).ok()? & 0x10000 != 0;
        inode.parse().ok().filter(|_| listens)
    })
}

/// The inode of a link in `fd`, if it leads to a socket.
pub fn socket_of(link: &[u8]) -> Option<u64> {
    let digits = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    crate::dir::decimal(std::str::from_utf8(digits).ok()?)
}

/// Where the Inspector of a process listens, if it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InspectorAddress {
    /// On one of these TCP ports.
    Ports(Vec<u16>),
    /// On a socket in the file system.
    Unix(PathBuf),
}

/// What the environment of a process says of its Inspector. What a program sets itself does not show here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectorSettings {
    /// Where it listens.
    pub address: InspectorAddress,
    /// The variable that turns it off.
    pub off: Option<&'static str>,
}

/// Variables with the number of a process among those of a job, in the order in which tt-metal looks at them.
const RANKS: [&str; 5] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "PMIX_RANK", "TT_MESH_HOST_RANK"];

/// Decodes an environment.
pub fn settings(environ: &[u8]) -> InspectorSettings {
    let variable = |name: &str| {
        let mut all = environ.split(|byte| *byte == 0);
        let value = all.find_map(|word| word.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        value.map(|value| String::from_utf8_lossy(value).into_owned())
    };
    let rank = RANKS.iter().find_map(|name| variable(name)?.parse().ok());
    let address = variable("TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS").unwrap_or_default();
    let off = ["TT_METAL_INSPECTOR", "TT_METAL_INSPECTOR_RPC"];
    let is_off = |name: &&str| variable(name).is_some_and(|value| value.starts_with('0'));
    InspectorSettings { address: inspector_address(&address, rank), off: off.into_iter().find(is_off) }
}

/// The address in tt-metal's words: `host`, `host:port` or `unix:path`. In a job each process adds its number to the port.
pub fn inspector_address(text: &str, rank: Option<u16>) -> InspectorAddress {
    if let Some(path) = text.strip_prefix("unix:") {
        return InspectorAddress::Unix(path.into());
    }
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(PORT);
    let of_rank = rank.and_then(|rank| port.checked_add(rank)).filter(|with| *with != port);
    InspectorAddress::Ports(of_rank.into_iter().chain([port]).collect())
}

/// The socket of a process that listens on one of these ports.
pub fn owned(sockets: &[TcpSocket], its: &HashSet<u64>, ports: &[u16]) -> Option<TcpSocket> {
    let listens = |port: u16| {
        let mut all = sockets.iter().filter(move |socket| socket.listens && socket.local.port() == port);
        all.find(|socket| its.contains(&socket.inode)).copied()
    };
    ports.iter().find_map(|port| listens(*port))
}

/// Whether a process has accepted the connection that has this address at our end.
pub fn has_accepted(sockets: &[TcpSocket], its: &HashSet<u64>, ours: SocketAddr, theirs: SocketAddr) -> bool {
    sockets
        .iter()
        .any(|socket| !socket.listens && socket.remote == ours && socket.local == theirs && its.contains(&socket.inode))
}
