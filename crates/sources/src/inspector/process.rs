//! A process whose Inspector is asked: its library and schema, and where it listens.

use super::InspectorRefusal;
use super::client::{AskError, InspectorClient};
use super::owner::{self, InspectorAddress, TcpSocket};
use super::schema::{self, Schema};
use crate::dir::{Dir, Root};
use crate::identify::user_name;
use crate::procs::{command_line_of, stat, status};
use model::text::clean;
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Result<T> = std::result::Result<T, InspectorRefusal>;

/// The folder of a process in `/proc`. It stays that of this process, whoever gets the pid next.
pub struct InspectedProcess {
    pid: u32,
    dir: Dir,
    all: Dir,
}

/// Where the Inspector of a process listens.
pub enum InspectorListener {
    /// On a TCP port.
    Tcp(TcpSocket),
    /// On a socket in the file system, by a path that leads there from here.
    Unix(PathBuf),
}

/// Where the schema may be, seen from a folder above the library: in a wheel, in an installation, in the source.
const SCHEMAS: [&str; 3] =
    ["triage/inspector.capnp", "tools/triage/inspector.capnp", "tt_metal/impl/debug/inspector/rpc.capnp"];
/// In a wheel it is four folders above: `ttnn/build/lib/libtt_metal.so`.
const MOST_FOLDERS: usize = 5;

impl InspectedProcess {
    pub fn open(root: &Root, pid: u32) -> Result<InspectedProcess> {
        let all = root.open(&root.proc).map_err(|_| InspectorRefusal::NoProcess(pid))?;
        let dir = all.open_dir(pid.to_string()).map_err(|_| InspectorRefusal::NoProcess(pid))?;
        let process = InspectedProcess { pid, dir, all };
        let exited = stat(&process.read("stat")?).is_none_or(|stat| stat.has_exited);
        if exited { Err(InspectorRefusal::NoProcess(pid)) } else { Ok(process) }
    }

    fn read(&self, file: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.dir.read_all(file, &mut bytes).map_err(|error| self.refusal(error))?;
        Ok(bytes)
    }

    fn refusal(&self, error: Errno) -> InspectorRefusal {
        let mut bytes = Vec::new();
        match error {
            Errno::ACCESS | Errno::PERM => {
                let read = self.dir.read_all("status", &mut bytes);
                let uid = read.ok().and_then(|()| status(&bytes).uid);
                let user = uid.map_or("another user".into(), user_name);
                let user = clean(&user).into_owned();
                let advice = match user.as_str() {
                    _ if rustix::process::geteuid().is_root() => "that needs the capability SYS_PTRACE".into(),
                    "root" | "another user" => "run as root".into(),
                    user => format!("run as {user} or as root"),
                };
                InspectorRefusal::NotPermitted { pid: self.pid, user, advice }
            }
            _ => InspectorRefusal::NoProcess(self.pid),
        }
    }

    /// The schema beside the library that the process has loaded.
    pub fn schema(&self) -> Result<Schema> {
        let maps = self.read("maps")?;
        let library = library(&maps).ok_or(InspectorRefusal::NoLibrary(self.pid))?;
        let Some(library) = library else { return Err(InspectorRefusal::Replaced { pid: self.pid }) };
        // As the process sees it: it may have another root.
        let root = self.dir.open_dir("root").map_err(|error| self.refusal(error))?;
        let folders = library.ancestors().skip(1).take(MOST_FOLDERS);
        let places = folders.flat_map(|folder| SCHEMAS.map(|name| folder.join(name)));
        let found = places.filter_map(|path| Some((text(&root, &path)?, path))).next();
        let shown = |path: &Path| clean(&path.to_string_lossy()).into_owned();
        let Some((text, path)) = found else {
            return Err(InspectorRefusal::NoSchema { library: shown(&library) });
        };
        schema::parse(&text).map_err(|error| {
            let reason = clean(&error.to_string()).chars().take(200).collect();
            InspectorRefusal::UnknownSchema { path: shown(&path), reason }
        })
    }

    /// Where its Inspector listens: at the address that is given, or that its environment says.
    pub fn listener(&self, address: Option<&str>) -> Result<InspectorListener> {
        let settings = owner::settings(&self.read("environ")?);
        let address = address.map_or(settings.address, |text| owner::inspector_address(text, None));
        let its = self.sockets()?;
        let ports = match address {
            InspectorAddress::Ports(ports) => ports,
            InspectorAddress::Unix(path) => {
                let bytes = path.as_os_str().as_bytes();
                let inode = owner::unix_listener(&self.read("net/unix")?, bytes);
                let is_its = inode.is_some_and(|inode| its.contains(&inode));
                // As the process sees it.
                let seen = self.dir.path_of("root").join(path.strip_prefix("/").unwrap_or(&path));
                return if is_its {
                    Ok(InspectorListener::Unix(seen))
                } else {
                    Err(self.no_port(&format!("unix:{}", path.display()), "", settings.off))
                };
            }
        };
        self.check_network()?;
        let sockets = self.tcp_sockets()?;
        if let Some(socket) = owner::owned(&sockets, &its, &ports) {
            return Ok(InspectorListener::Tcp(socket));
        }
        let others = sockets.iter().find(|socket| socket.listens && ports.contains(&socket.local.port()));
        if let (Some(other), None) = (others, settings.off) {
            let owner =
                self.owner_of(other.inode).unwrap_or_else(|| format!("a process of user {}", user_name(other.uid)));
            let port = other.local.port();
            return Err(InspectorRefusal::PortTaken { pid: self.pid, port, owner });
        }
        let listens = sockets.iter().filter(|socket| socket.listens && its.contains(&socket.inode));
        let mut listens: Vec<u16> = listens.map(|socket| socket.local.port()).collect();
        listens.sort_unstable();
        listens.dedup();
        let listens: Vec<String> = listens.iter().take(8).map(u16::to_string).collect();
        let hint = match &listens[..] {
            [] => String::new(),
            ports => format!(": it listens on {}; name the port with --address localhost:PORT", ports.join(", ")),
        };
        let wanted: Vec<String> = ports.iter().map(|port| format!("port {port}")).collect();
        Err(self.no_port(&wanted.join(" or "), &hint, settings.off))
    }

    fn no_port(&self, wanted: &str, hint: &str, off: Option<&'static str>) -> InspectorRefusal {
        match off {
            Some(variable) => InspectorRefusal::Off { pid: self.pid, variable },
            None => {
                InspectorRefusal::NoPort { pid: self.pid, wanted: clean(wanted).into_owned(), hint: hint.to_owned() }
            }
        }
    }

    fn check_network(&self) -> Result<()> {
        let its = self.dir.read_link("ns/net").map_err(|error| self.refusal(error))?;
        let ours = Dir::open(Path::new("/proc/self/ns"), None).and_then(|folder| folder.read_link("net"));
        if ours.is_ok_and(|ours| ours != its) { Err(InspectorRefusal::OtherNetwork(self.pid)) } else { Ok(()) }
    }

    /// The inodes of the sockets that it has open.
    fn sockets(&self) -> Result<HashSet<u64>> {
        sockets_in(&self.dir).map_err(|error| self.refusal(error))
    }

    fn tcp_sockets(&self) -> Result<Vec<TcpSocket>> {
        let mut sockets = owner::tcp_sockets(&self.read("net/tcp")?);
        // A machine may have no IPv6.
        let mut bytes = Vec::new();
        if self.dir.read_all("net/tcp6", &mut bytes).is_ok() {
            sockets.extend(owner::tcp_sockets(&bytes));
        }
        Ok(sockets)
    }

    /// Checks that this process has accepted a connection, and no other that has inherited its socket.
    pub fn check_peer(&self, client: &InspectorClient, listener: &InspectorListener) -> Result<()> {
        let owner = match listener {
            InspectorListener::Unix(_) => {
                // It is zero where the process is outside of our PID namespace.
                let other = client.peer().filter(|pid| ![self.pid, 0].contains(pid));
                other.map(|pid| {
                    self.all.open_dir(pid.to_string()).map_or(format!("process {pid}"), |dir| named(pid, &dir))
                })
            }
            InspectorListener::Tcp(socket) => {
                let (Some(ours), sockets) = (client.address(), self.tcp_sockets()?) else { return Ok(()) };
                let theirs = reachable(socket.local);
                let is_its = owner::has_accepted(&sockets, &self.sockets()?, ours, theirs);
                let accepted = || sockets.iter().find(|socket| socket.remote == ours && socket.local == theirs);
                let other = || accepted().and_then(|socket| self.owner_of(socket.inode));
                (!is_its).then(|| other().unwrap_or_else(|| "that process".into()))
            }
        };
        owner.map_or(Ok(()), |owner| Err(InspectorRefusal::Shared { pid: self.pid, owner }))
    }

    /// The process that has a socket open, as far as we may look.
    fn owner_of(&self, inode: u64) -> Option<String> {
        let mut pids: Vec<u32> = Vec::new();
        self.all.list(|name| pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()))).ok()?;
        pids.sort_unstable();
        pids.into_iter().find_map(|pid| {
            let dir = self.all.open_dir(pid.to_string()).ok()?;
            sockets_in(&dir).ok()?.contains(&inode).then(|| named(pid, &dir))
        })
    }
}

/// `process 7 (python3 serve.py)`
fn named(pid: u32, dir: &Dir) -> String {
    match command_line_of(dir) {
        Some(command) => format!("process {pid} ({})", clean(&command.chars().take(60).collect::<String>())),
        None => format!("process {pid}"),
    }
}

fn sockets_in(process: &Dir) -> rustix::io::Result<HashSet<u64>> {
    let folder = process.open_dir("fd")?;
    let mut sockets = HashSet::new();
    folder.list(|name| sockets.extend(folder.read_link(name).ok().and_then(|link| owner::socket_of(&link))))?;
    Ok(sockets)
}

/// The path of libtt_metal.so in a map; `None` inside if the file was removed since.
fn library(maps: &[u8]) -> Option<Option<PathBuf>> {
    let mut paths = maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        name.starts_with(b"libtt_metal.so").then_some(path)
    });
    let path = paths.next_back()?;
    let is_there = !path.ends_with(b" (deleted)");
    Some(is_there.then(|| PathBuf::from(OsStr::from_bytes(path))))
}

/// The text of a plain file that is short enough.
fn text(root: &Dir, path: &Path) -> Option<String> {
    let path = path.strip_prefix("/").ok()?;
    let fits = |stat: &rustix::fs::Stat| usize::try_from(stat.st_size).is_ok_and(|size| size <= schema::LONGEST);
    let file = root.open_linked(path.as_os_str(), fits).ok()?;
    let mut bytes = Vec::new();
    File::from(file).take(schema::LONGEST as u64).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The address to connect to where a process listens on all.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address {
        SocketAddr::V4(address) if address.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // One that listens on all addresses of IPv6 can be reached by IPv4, most of the time; by IPv6 it always can.
        SocketAddr::V6(address) if address.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address.ip(),
    };
    SocketAddr::new(ip, address.port())
}

impl InspectorListener {
    pub fn connect(&self, deadline: Instant) -> std::result::Result<InspectorClient, AskError> {
        match self {
            InspectorListener::Tcp(socket) => InspectorClient::over_tcp(reachable(socket.local), deadline),
            InspectorListener::Unix(path) => InspectorClient::over_unix(path, deadline),
        }
    }
}
