//! What there is to say about a process: from the real `/proc/<pid>/`.
//!
//! `stat` (name, parent, start, CPU time), `status` (owner, pids in inner namespaces), `statm` (resident memory), `cmdline`, `cgroup`, and where
//! we may look `maps`, `environ` and the book that it keeps.

use crate::activity::operation_list;
use crate::books::{self, ProcessId};
use crate::container_names::ContainerNames;
use crate::dir::{Dir, Inject, decimal};
use crate::maps::{self, Inode, Maps};
use crate::users::Users;
use ledger::book::{Book, BufferTable};
use model::{Bytes, OperationList, ProcessOwner};
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub(crate) struct ProcessFacts {
    pub pid: u32,
    pub stat: Stat,
    pub status: Status,
    /// When that was read, all but the resident memory.
    pub status_read: Instant,
    pub user: Option<String>,
    /// With the moment when it was read.
    pub command: (Option<String>, Instant),
    pub container: Option<String>,
    pub owner: ProcessOwner,
    /// `Err` where we may not look into the process.
    pub maps: Result<Maps, Errno>,
    pub maps_age: MapAge,
    /// What `TT_VISIBLE_DEVICES` was set to when it started. `Err` where we may not look.
    pub visible_devices: Result<Option<String>, Errno>,
    /// The book that it keeps. `Err` where we may not look.
    pub book: Result<Option<books::FoundBook>, Errno>,
    /// Its open folder, for the next time.
    pub folder: Option<Arc<Dir>>,
}

/// How old it is what a map says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapAge {
    /// When the map was read.
    read: Instant,
    /// Since when it has said the same.
    same: Instant,
}

impl ProcessFacts {
    /// Whether its map was read before that moment.
    pub fn map_is_older_than(&self, moment: Instant) -> bool {
        self.maps_age.read < moment
    }

    /// Whether it is attached to a region, as far as we may look.
    pub fn has_mapped(&self, region: Inode) -> bool {
        self.maps.as_ref().is_ok_and(|maps| maps.regions.iter().any(|(mapped, _)| *mapped == region))
    }
}

/// A map, the owner and a command line are used this long.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// A map with a region or a book that has not changed for this long is settled: regions and books come with the start. It is used
/// longer, since a process in the middle of inference has thousands of lines, and its address space changes all the time.
const SETTLES_IN: Duration = Duration::from_secs(10);
const SETTLED_FOR: Duration = Duration::from_secs(30);

/// Reads a process. `None` when it is gone, or exited and not yet waited for. Its map is read again if that may show something
/// new, or if asked for.
pub(crate) fn read(
    pid: u32,
    earlier: Option<&ProcessFacts>,
    force_map: bool,
    users: &Users,
    names: &ContainerNames,
    inject: Option<Inject>,
) -> Option<ProcessFacts> {
    let (stat, dir) = open(pid, earlier, inject)?;
    let mut bytes = Vec::new();
    let now = Instant::now();
    let same = earlier.filter(|earlier| earlier.stat.start_ticks == stat.start_ticks);
    let is_settled = |earlier: &&ProcessFacts| earlier.stat.name == stat.name && now - earlier.status_read < KEPT_FOR;
    let (status, status_read) = match same.filter(is_settled) {
        Some(earlier) => (Status { resident: resident(&dir), ..earlier.status.clone() }, earlier.status_read),
        None => {
            // Hundreds of groups may come before what we look for.
            dir.read_records("status", &mut bytes).ok()?;
            (status(&bytes), now)
        }
    };
    let ((container, owner), visible_devices) = match same {
        Some(earlier) => ((earlier.container.clone(), earlier.owner.clone()), earlier.visible_devices.clone()),
        None => {
            let owner = names.owner_of(pid, &dir, &mut bytes);
            (owner, dir.read_all("environ", &mut bytes).map(|()| visible_devices(&bytes)))
        }
    };
    let command = read_command(&dir, same, &stat, now);
    let (maps, maps_age) = match same.filter(|earlier| !force_map && still_maps(earlier, &stat, now)) {
        Some(earlier) => (earlier.maps.clone(), earlier.maps_age),
        None => {
            let maps = dir.read_all("maps", &mut bytes).map(|()| maps::parse(&bytes));
            let since = same.filter(|earlier| earlier.maps == maps).map_or(now, |earlier| earlier.maps_age.same);
            (maps, MapAge { read: now, same: since })
        }
    };
    let who = ProcessId { pid: status.inner_pid.unwrap_or(pid), start_ticks: stat.start_ticks };
    let known = same.and_then(|earlier| earlier.book.as_ref().ok()?.as_ref());
    let book = maps.as_ref().map_err(|error| *error).and_then(|maps| books::find(&dir, maps, who, known));
    let user = status.uid.map(|uid| users.name(uid));
    let folder = Some(dir);
    Some(ProcessFacts {
        pid,
        stat,
        status,
        status_read,
        user,
        command,
        container,
        owner,
        maps,
        maps_age,
        visible_devices,
        book,
        folder,
    })
}

/// Opens the folder of a process, or uses the one of the sample before.
fn open(pid: u32, earlier: Option<&ProcessFacts>, inject: Option<Inject>) -> Option<(Stat, Arc<Dir>)> {
    // The open folder never becomes that of another process: when this one exits, reads fail.
    let known = earlier.and_then(|earlier| earlier.folder.clone()).and_then(|dir| Some((stat_of(&dir)?, dir)));
    known.or_else(|| {
        let dir = Arc::new(Dir::open(Path::new(&format!("/proc/{pid}")), inject).ok()?);
        Some((stat_of(&dir)?, dir))
    })
}

/// The command line, with the moment when it was read. It is in the memory of the process, which may have to wait meanwhile.
fn read_command(dir: &Dir, earlier: Option<&ProcessFacts>, stat: &Stat, now: Instant) -> (Option<String>, Instant) {
    let known = earlier.filter(|earlier| earlier.stat.name == stat.name).map(|earlier| &earlier.command);
    match known.filter(|(_, when)| now - *when < KEPT_FOR) {
        Some(command) => command.clone(),
        None => (command_line_of(dir), now),
    }
}

/// So much is kept of a text that a process chooses for itself.
const LONGEST_TEXT: usize = 4096;

/// The command line of a process, or its beginning.
pub(crate) fn command_line_of(dir: &Dir) -> Option<String> {
    command_line(dir.read_start("cmdline", &mut [0; LONGEST_TEXT + 1]).ok()?)
}

fn stat_of(dir: &Dir) -> Option<Stat> {
    let mut buffer = [0; 4096];
    stat(dir.read_start("stat", &mut buffer).ok()?).filter(|stat| !stat.has_exited)
}

/// Whether a map need not be read again: nothing was mapped since, as far as its size shows, or it is settled.
fn still_maps(earlier: &ProcessFacts, stat: &Stat, now: Instant) -> bool {
    let Ok(maps) = &earlier.maps else { return false };
    let has_ours = !maps.regions.is_empty() || !maps.books.is_empty();
    let is_settled = has_ours && now - earlier.maps_age.same >= SETTLES_IN;
    // Another program in the same process has another name, most of the time.
    now - earlier.maps_age.read < if is_settled { SETTLED_FOR } else { KEPT_FOR }
        && earlier.stat.name == stat.name
        && (is_settled || earlier.stat.mapped == stat.mapped)
}

/// The folder, stat and status of a process, read now. `None` when it is gone, or exited and not yet waited for.
pub(crate) fn open_process(pid: u32) -> Option<(Dir, Stat, Status)> {
    let dir = Dir::open(Path::new(&format!("/proc/{pid}")), None).ok()?;
    let mut bytes = Vec::new();
    dir.read_all("stat", &mut bytes).ok()?;
    let stat = stat(&bytes).filter(|stat| !stat.has_exited)?;
    dir.read_all("status", &mut bytes).ok()?;
    Some((dir, stat, status(&bytes)))
}

/// The whole book of a process that keeps one: counters, and every live buffer.
pub fn whole_book(pid: u32) -> Result<Option<(Book, BufferTable)>, String> {
    let (dir, stat, status) = open_process(pid).ok_or_else(|| format!("there is no process {pid}"))?;
    books::whole(&dir, ProcessId { pid: status.inner_pid.unwrap_or(pid), start_ticks: stat.start_ticks })
}

/// What a process did on its chips, from its book: `None` where it keeps none, or its agent does not record that.
pub fn operations_in_book(pid: u32) -> Result<Option<OperationList>, String> {
    let (dir, stat, status) = open_process(pid).ok_or_else(|| format!("there is no process {pid}"))?;
    let who = ProcessId { pid: status.inner_pid.unwrap_or(pid), start_ticks: stat.start_ticks };
    let Some(file) = books::open(&dir, who) else { return Ok(None) };
    operation_list(pid, ledger::book::of_file(&file)).map_err(|error| error.to_string())
}

/// What matters of `/proc/<pid>/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The short name. May hold any bytes; those that are not UTF-8 are replaced.
    pub name: String,
    /// Whether it is a zombie.
    pub has_exited: bool,
    /// The parent; absent where it is outside of this PID namespace.
    pub parent: Option<u32>,
    /// CPU time in clock ticks.
    pub cpu_ticks: u64,
    /// Start in clock ticks since boot.
    pub start_ticks: u64,
    /// Bytes of address space, which change with all that is mapped.
    pub mapped: u64,
}

/// Decodes `pid (name) state …`. The name may itself hold blanks and brackets.
pub fn stat(bytes: &[u8]) -> Option<Stat> {
    let open = bytes.iter().position(|&b| b == b'(')?;
    let close = bytes.iter().rposition(|&b| b == b')').filter(|&close| close > open)?;
    let name = String::from_utf8_lossy(&bytes[open + 1..close]).into_owned();
    let rest = std::str::from_utf8(&bytes[close + 1..]).ok()?;
    // Counted from the state, which is field 3 of the manual page.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| decimal(fields.get(field - 3)?);
    Some(Stat {
        name,
        has_exited: matches!(*fields.first()?, "Z" | "X"),
        parent: number(4)?.try_into().ok().filter(|&pid| pid != 0),
        cpu_ticks: number(14)?.saturating_add(number(15)?),
        start_ticks: number(22)?,
        mapped: number(23)?,
    })
}

/// What matters of `/proc/<pid>/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Effective user.
    pub uid: Option<u32>,
    /// How the process counts itself, in its own PID namespace.
    pub inner_pid: Option<u32>,
    /// Resident memory.
    pub resident: Option<Bytes>,
}

/// Decodes lines of `Key:<tab>values`.
pub fn status(bytes: &[u8]) -> Status {
    let mut status = Status::default();
    for line in bytes.split(|&b| b == b'\n') {
        let Some((key, values)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(':')) else {
            continue;
        };
        let mut values = values.split_ascii_whitespace();
        match key {
            "Uid" => status.uid = values.nth(1).and_then(|v| v.parse().ok()),
            "NSpid" => status.inner_pid = values.next_back().and_then(|v| v.parse().ok()),
            "VmRSS" => {
                let kibibytes = values.next().and_then(decimal);
                status.resident = kibibytes.and_then(|kib| kib.checked_mul(1024)).map(Bytes);
            }
            _ => {}
        }
    }
    status
}

/// The resident memory, as `statm` counts it in pages: the kernel writes less for it than for `status`.
fn resident(dir: &Dir) -> Option<Bytes> {
    let mut buffer = [0; 256];
    let text = std::str::from_utf8(dir.read_start("statm", &mut buffer).ok()?).ok()?;
    let pages = decimal(text.split_ascii_whitespace().nth(1)?)?;
    pages.checked_mul(rustix::param::page_size() as u64).map(Bytes)
}

/// The words of a command line, joined by blanks. Kernel threads have none. The end of a long one is left out.
fn command_line(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().rposition(|&b| b != 0)? + 1;
    let text = String::from_utf8_lossy(&bytes[..end.min(LONGEST_TEXT)]).replace('\0', " ");
    Some(if end > LONGEST_TEXT { text + "…" } else { text })
}

fn visible_devices(environ: &[u8]) -> Option<String> {
    let value = environ.split(|&b| b == 0).find_map(|entry| entry.strip_prefix(b"TT_VISIBLE_DEVICES="))?;
    Some(String::from_utf8_lossy(&value[..value.len().min(LONGEST_TEXT)]).into_owned())
}

#[cfg(test)]
impl ProcessFacts {
    /// A process for tests: how it calls itself, when it began (in ticks), and which regions it has mapped.
    pub fn made_up(pid: u32, inner_pid: u32, start_ticks: u64, regions: &[(Inode, u64)]) -> ProcessFacts {
        ProcessFacts {
            pid,
            stat: Stat {
                name: "python3".into(),
                has_exited: false,
                parent: None,
                cpu_ticks: 0,
                start_ticks,
                mapped: 0,
            },
            status: Status { uid: Some(0), inner_pid: Some(inner_pid), resident: None },
            status_read: Instant::now(),
            user: None,
            command: (None, Instant::now()),
            container: None,
            owner: ProcessOwner::default(),
            maps: Ok(Maps { regions: regions.iter().copied().collect(), ..Maps::default() }),
            maps_age: MapAge { read: Instant::now(), same: Instant::now() },
            visible_devices: Ok(None),
            book: Ok(None),
            folder: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::dir::Root;

    fn names() -> ContainerNames {
        ContainerNames::new(&Root::machine())
    }

    #[test]
    fn a_name_may_hold_blanks_and_brackets() {
        let line = b"4711 (a (b) c) S 1 4711 4711 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 9 0 123456 1 2 3";
        let expected = Stat {
            name: "a (b) c".into(),
            has_exited: false,
            parent: Some(1),
            cpu_ticks: 300,
            start_ticks: 123_456,
            mapped: 1,
        };
        assert_eq!(stat(line), Some(expected));
        assert_eq!(stat(b"4711 (x) S 1"), None, "cut short");
        let of_another_namespace = b"1 (x) S 0 4711 4711 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 9 0 123456 1 2 3";
        assert_eq!(stat(of_another_namespace).unwrap().parent, None);
        assert_eq!(stat(b")("), None);
    }

    #[test]
    fn a_process_in_a_namespace_has_an_inner_pid() {
        let text = b"Name:\tx\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t4711\t12\t1\nVmRSS:\t  2048 kB\n";
        assert_eq!(status(text), Status { uid: Some(1001), inner_pid: Some(1), resident: Some(Bytes(2 << 20)) });
    }

    #[test]
    fn a_user_may_have_more_groups_than_fit_a_page() {
        let groups = "1234567890 ".repeat(1000);
        let text = format!("Uid:\t7\t7\t7\t7\nGroups:\t{groups}\nNSpid:\t5\nVmRSS:\t4 kB\n");
        assert_eq!(status(text.as_bytes()).inner_pid, Some(5));
    }

    #[test]
    fn a_command_line_keeps_its_words_and_survives_any_bytes() {
        assert_eq!(command_line(b"python3\0serve.py\0\0").as_deref(), Some("python3 serve.py"));
        assert_eq!(command_line(b"a\xff\nb\0").as_deref(), Some("a\u{fffd}\nb"));
        assert_eq!(command_line(b""), None);
        assert_eq!(command_line(b"\0\0"), None);
    }

    #[test]
    fn of_a_long_command_line_the_beginning_is_kept() {
        let long = "x".repeat(1 << 20);
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("600").env("TT_VISIBLE_DEVICES", &long[..100_000]).spawn().unwrap();
        let mut text = command_line(&long.as_bytes()[..LONGEST_TEXT]).unwrap();
        assert_eq!(text.len(), LONGEST_TEXT);
        text.push('…');
        assert_eq!(command_line(&long.as_bytes()[..=LONGEST_TEXT]), Some(text));
        // The kernel shows the environment of a program a moment after it has started.
        let seen = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            read(child.id(), None, false, &Users::default(), &names(), None)?.visible_devices.ok()?
        });
        assert_eq!(seen.map(|value| value.len()), Some(LONGEST_TEXT));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn this_very_process_can_be_read() {
        let facts = read(std::process::id(), None, false, &Users::default(), &names(), None).unwrap();
        assert_eq!(facts.status.inner_pid, Some(std::process::id()));
        assert!(facts.status.resident.unwrap() > Bytes(100_000));
        let clock = Clock::now();
        let age = clock.nanoseconds(clock_ticks_now()).abs_diff(clock.nanoseconds(facts.stat.start_ticks));
        assert!(age < 3_600_000_000_000, "this test has run for less than an hour, not {age} ns");
        assert_eq!(read(u32::MAX, None, false, &Users::default(), &names(), None).map(|facts| facts.pid), None);
    }

    #[test]
    fn a_map_is_read_again_while_it_grows_and_now_and_then_when_it_is_settled() {
        let region = Inode { device: (0, 25), inode: 42 };
        let after = |facts: &ProcessFacts, seconds: u64, mapped: u64| {
            let stat = Stat { mapped, ..facts.stat.clone() };
            still_maps(facts, &stat, facts.maps_age.read + Duration::from_secs(seconds))
        };
        let mut facts = ProcessFacts::made_up(9, 9, 1, &[(region, 7)]);
        assert!(after(&facts, 4, 0), "nothing was mapped since");
        assert!(!after(&facts, 1, 4096), "something was");
        assert!(!after(&facts, 5, 0), "the size alone is not enough for long");
        facts.maps_age.same -= Duration::from_secs(10);
        assert!(after(&facts, 29, 4096), "settled");
        assert!(!after(&facts, 30, 4096));
        let another = Stat { name: "sh".into(), ..facts.stat.clone() };
        assert!(!still_maps(&facts, &another, facts.maps_age.read), "another program");
        facts.maps = Ok(Maps::default());
        assert!(!after(&facts, 1, 4096), "it has nothing of ours yet");
        facts.maps = Err(Errno::ACCESS);
        assert!(!after(&facts, 1, 0), "we may be allowed to look by now");
    }

    #[test]
    fn an_owner_is_kept_for_a_while_and_the_resident_memory_is_not() {
        let again = |earlier: &ProcessFacts| {
            let facts = read(earlier.pid, Some(earlier), false, &Users::default(), &names(), None).unwrap();
            (facts.status.uid, facts.status.resident.unwrap())
        };
        let mut facts = read(std::process::id(), None, false, &Users::default(), &names(), None).unwrap();
        let (owner, before) = (facts.status.uid, facts.status.resident.unwrap());
        facts.status = Status { uid: Some(4_000_000), resident: None, ..facts.status };
        let many = vec![1_u8; 64 << 20];
        let (kept, now) = again(&facts);
        assert_eq!(kept, Some(4_000_000));
        assert!(now.0 >= before.0 + (48 << 20), "{before:?} {now:?} {}", many.len());
        facts.status_read -= KEPT_FOR;
        assert_eq!(again(&facts).0, owner);
        facts.status_read += KEPT_FOR;
        facts.stat.name = "another program".into();
        assert_eq!(again(&facts).0, owner);
    }

    #[test]
    fn the_open_folder_of_an_exited_process_gives_nothing() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let mut facts = None;
        for _ in 0..3 {
            facts = read(child.id(), facts.as_ref(), false, &Users::default(), &names(), None);
            assert_eq!(facts.as_ref().unwrap().pid, child.id());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(read(child.id(), facts.as_ref(), false, &Users::default(), &names(), None).is_none());
    }

    fn clock_ticks_now() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        time.tv_sec as u64 * rustix::param::clock_ticks_per_second()
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_stat_or_none(bytes: Vec<u8>) {
            let _ = stat(&bytes);
            let _ = status(&bytes);
            let _ = command_line(&bytes);
        }
    }
}
