//! The reader process: `ttmon deep-reader`, started by a [`Reader`](crate::Reader) with a socket as its standard input.
//!
//! For each request it opens the node, reads the table and closes the node again. It allocates no memory after its start.

use crate::client::COMMAND;
use crate::image::{self, Image};
use crate::node::{self, Device};
use crate::print;
use crate::privileges::{self, exit};
use crate::problem::Problem;
use crate::protocol::{Ask, Effort, LONGEST, LONGEST_PATH, encode_answer};
use crate::table::MAX_ENTRIES;
use crate::walk::{Known, Walked, walk};
use model::{Arch, DeepUnavailable, TelemetryTag};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat};
use rustix::io::{Errno, pread, read, write};
use rustix::stdio::stdin;
use std::ffi::{CStr, OsStr};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

/// Tables that are remembered: one for each device that the driver has numbers for.
const REMEMBERED: usize = 32;
/// The longest path of the folder of the nodes.
const LONGEST_FOLDER: usize = 1024;
/// How much of a list of holders is read: more than a hundred of them.
const HOLDERS: usize = 1024;

/// Becomes a reader if the first argument says so, and does not return then. To be called first of all.
pub fn run_reader_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != COMMAND) {
        return;
    }
    let is_started_by_monitor =
        || fstat(stdin()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    match arguments.next() {
        Some(first) if first == print::OPTION => std::process::exit(print::run(arguments)),
        Some(nodes) if nodes.len() <= LONGEST_FOLDER && is_started_by_monitor() => serve(&nodes),
        _ => {
            eprintln!("{}", print::USAGE);
            std::process::exit(2)
        }
    }
}

fn serve(nodes: &OsStr) -> ! {
    let mut session = Session::new(nodes);
    session.effort.filtered = privileges::drop_all();
    let mut packet = [0; LONGEST];
    loop {
        let length = match read(stdin(), &mut packet) {
            Err(Errno::INTR) => continue,
            Ok(0) | Err(_) => exit(0),
            Ok(length) => length,
        };
        let length = match Ask::decode(&packet[..length]) {
            Some(Ask::Read { number, arch, pids }) => {
                let mut path = [0; LONGEST_PATH + 1];
                let pids = pids.map(|pids| {
                    path[..pids.len()].copy_from_slice(pids);
                    &path
                });
                session.answer(number, arch, pids.and_then(|path| CStr::from_bytes_until_nul(path).ok()), &mut packet)
            }
            Some(Ask::ForbiddenCall) => {
                let _ = rustix::process::getpgrp();
                exit(3)
            }
            None => exit(4),
        };
        if write(stdin(), &packet[..length]).is_err() {
            exit(0);
        }
    }
}

/// All that the reader remembers, allocated once.
struct Session {
    /// The path of the node, with room for its number and a NUL.
    path: Vec<u8>,
    /// How long the path of its folder is.
    folder: usize,
    effort: Effort,
    start: Instant,
    known: Vec<(Option<(u32, Arch)>, Known)>,
    entries: Vec<TelemetryTag>,
    text: Vec<u8>,
}

impl Session {
    fn new(nodes: &OsStr) -> Session {
        let mut path = vec![0; nodes.len() + 16];
        path[..nodes.len()].copy_from_slice(nodes.as_bytes());
        Session {
            path,
            folder: nodes.len(),
            effort: Effort::default(),
            start: Instant::now(),
            known: (0..REMEMBERED).map(|_| (None, Known::default())).collect(),
            entries: Vec::with_capacity(MAX_ENTRIES as usize),
            text: vec![0; image::LONGEST],
        }
    }

    fn answer(&mut self, number: u32, arch: Arch, pids: Option<&CStr>, packet: &mut [u8; LONGEST]) -> usize {
        let start = Instant::now();
        self.effort.opened = false;
        let walked = self.read(number, arch, pids);
        self.effort.took = start.elapsed();
        encode_answer(self.effort, walked.map(|walked| (arch, walked, &self.entries[..])), packet)
    }

    fn read(&mut self, number: u32, arch: Arch, pids: Option<&CStr>) -> Result<Walked, Problem> {
        // Cannot fail: there is room for any number.
        let _ = write!(&mut self.path[self.folder..], "/{number}\0");
        let path = CStr::from_bytes_until_nul(&self.path).map_err(|_| Problem::open(Errno::NAMETOOLONG))?;
        let holders = pids.map(Holders::open).transpose()?;
        // Nothing comes between the two: whoever closes the device meanwhile has its power-down cancelled.
        if let Some(holders) = &holders {
            if holders.count()? == 0 {
                return Err(Problem::found(DeepUnavailable::NotHeld, "no process holds the device", 0));
            }
        }
        let node = node::open(path)?;
        self.effort.opened = true;
        self.effort.opens += 1;
        let after = holders.as_ref().map(Holders::count).transpose()?;
        let form = fstat(&node).map_err(|error| Problem::call("stat", error))?;
        let form = FileType::from_raw_mode(form.st_mode);
        // The driver's list has this process now, too.
        let ourselves = usize::from(form == FileType::CharacterDevice);
        if after.is_some_and(|holders| holders <= ourselves) {
            return Err(Problem::found(DeepUnavailable::JustClosed, "the last process closed the device just now", 0));
        }
        let now = self.start.elapsed();
        let known = remembered(&mut self.known, number, arch);
        match form {
            FileType::CharacterDevice => walk(&mut Device::map(node, arch)?, arch, known, now, &mut self.entries),
            FileType::RegularFile => {
                let text = whole(&node, &mut self.text)?;
                walk(&mut Image::new(text)?, arch, known, now, &mut self.entries)
            }
            _ => Err(Problem::found(DeepUnavailable::NotReady, "not a device", 0)),
        }
    }
}

/// What is known of this device, in place of what was known of another one.
fn remembered(known: &mut [(Option<(u32, Arch)>, Known)], number: u32, arch: Arch) -> &mut Known {
    let index = number as usize % known.len();
    let (whose, known) = &mut known[index];
    if whose.replace((number, arch)) != Some((number, arch)) {
        known.forget();
    }
    known
}

/// The driver's list of who has a device open: a line for each open file.
struct Holders(OwnedFd);

impl Holders {
    fn open(path: &CStr) -> Result<Holders, Problem> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(CWD, path, flags, Mode::empty());
        file.map(Holders).map_err(|error| Problem::call("open the list of its holders", error))
    }

    /// The list as it is now: the driver writes it at each read from its beginning.
    fn count(&self) -> Result<usize, Problem> {
        let mut text = [0; HOLDERS];
        let length =
            pread(&self.0, &mut text, 0).map_err(|error| Problem::call("read the list of its holders", error))?;
        Ok(text[..length].split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count())
    }
}

/// A whole file, if there is room for it.
fn whole(file: impl AsFd, room: &mut [u8]) -> Result<&[u8], Problem> {
    let mut length = 0;
    while length < room.len() {
        match pread(&file, &mut room[length..], length as u64) {
            Ok(0) => return Ok(&room[..length]),
            Ok(more) => length += more,
            Err(error) => return Err(Problem::call("read", error)),
        }
    }
    Err(Problem::found(DeepUnavailable::BadTable, "the image of the chip is too long", 0))
}
