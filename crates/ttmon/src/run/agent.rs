//! The agent's library, as a file that can be preloaded: named by the user, beside this program, or unpacked from it.
//!
//! It is unpacked into a cache that only this user can write to, and compared with the original before each use. Where there is no
//! such place, it is a file in memory for as long as this process runs.

use crate::built_in_agent;
use rustix::fs::{self, AtFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags, Stat, StatVfsMountFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use watch::exit::{Exit, Failure};
use watch::sha256;

const AGENT: &str = "libttmon_agent.so";

/// A library that can be preloaded for as long as this value exists.
#[derive(Debug)]
pub struct Agent {
    pub path: PathBuf,
    _in_memory: Option<File>,
}

impl Agent {
    fn file(path: PathBuf) -> Agent {
        Agent { path, _in_memory: None }
    }

    /// Finds or unpacks the library.
    pub fn find() -> anyhow::Result<Agent> {
        let named = std::env::var_os("TTMON_AGENT_LIB").filter(|path| !path.is_empty()).map(PathBuf::from);
        let program = std::env::current_exe()?;
        let folder = program.parent().unwrap_or(Path::new("/"));
        let found = match (find(named.as_deref(), folder), &named) {
            (Ok(path), _) => Ok(Agent::file(path)),
            (Err(reason), Some(_)) => Err(reason),
            (Err(reason), None) => match built_in_agent::bytes() {
                Some(bytes) => unpack(&bytes, &places(|name| std::env::var_os(name).map(PathBuf::from))),
                None => Err(reason),
            },
        };
        found.map_err(|reason| Failure::error(Exit::Usage, reason))
    }
}

fn find(named: Option<&Path>, folder: &Path) -> Result<PathBuf, String> {
    let places = match named {
        Some(named) => vec![std::path::absolute(named).unwrap_or(named.into())],
        None => {
            let near = ["", "../lib/ttmon", "../lib", "deps"].iter().map(|place| folder.join(place));
            near.chain(python_packages(folder)).map(|place| place.join(AGENT)).collect()
        }
    };
    let hint = "build it with `cargo build --release -p ttmon-agent`, or let TTMON_AGENT_LIB say where it is";
    match (places.iter().find(|place| place.is_file()), named) {
        (Some(found), _) if !is_preloadable(found) => {
            let found = found.display();
            Err(format!(
                "the agent {found} cannot be preloaded, for the blank or colon in its path: put it elsewhere, and let TTMON_AGENT_LIB say where"
            ))
        }
        (Some(found), _) => Ok(found.clone()),
        (None, Some(named)) => Err(format!("TTMON_AGENT_LIB={} is not a file: {hint}", named.display())),
        (None, None) => {
            let folder = folder.display();
            Err(format!("the agent {AGENT} was not found in {folder}, nor in its ../lib/ttmon, ../lib or deps: {hint}"))
        }
    }
}

/// Where pip puts the package that has the agent, for a program that it has installed, too.
fn python_packages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for versions in ["../lib", "../lib64"].iter().filter_map(|lib| std::fs::read_dir(folder.join(lib)).ok()) {
        for version in versions.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("python3")) {
            found.extend(["site-packages/ttmon", "dist-packages/ttmon"].map(|place| version.path().join(place)));
        }
    }
    found
}

/// `LD_PRELOAD` is a list, and has no way to quote.
fn is_preloadable(path: &Path) -> bool {
    !path.as_os_str().as_encoded_bytes().iter().any(|byte| b" \t\n:".contains(byte))
}

/// Folders that may hold the user's files: the cache, and the one that lasts as long as a login.
fn places(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.into_iter().chain(absolute("XDG_RUNTIME_DIR")).collect()
}

/// The library in the first of these folders in which it can be, or else in memory.
fn unpack(bytes: &[u8], places: &[PathBuf]) -> Result<Agent, String> {
    let mut reasons = Vec::new();
    for place in places {
        match keep(bytes, place) {
            Ok(path) => return Ok(Agent::file(path)),
            Err(reason) => reasons.push(reason),
        }
    }
    in_memory(bytes).map_err(|reason| {
        reasons.push(reason);
        let reasons = reasons.join("; ");
        format!("the agent cannot be unpacked ({reasons}): let XDG_CACHE_HOME name a folder of yours, or TTMON_AGENT_LIB the agent")
    })
}

/// Keeps the library in `ttmon/<hash>` of a folder.
fn keep(bytes: &[u8], place: &Path) -> Result<PathBuf, String> {
    let hash = &sha256::hex(bytes)[..32];
    let path = place.join("ttmon").join(hash).join(AGENT);
    let kept = || -> Result<(), String> {
        if !is_preloadable(&path) {
            return Err("a blank or colon in the path".into());
        }
        // The last folder only: a home that does not exist stays that way.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(place);
        let top = fs::open(place, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(text)?;
        check_top(&fs::fstat(&top).map_err(text)?)?;
        if fs::fstatvfs(&top).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
            return Err("it is mounted with noexec".into());
        }
        let folder = own_folder(&own_folder(&top, "ttmon")?, hash)?;
        if is_whole(&folder, bytes) { Ok(()) } else { write(&folder, bytes).map_err(text) }
    };
    kept().map(|()| path.clone()).map_err(|reason| format!("{}: {reason}", place.display()))
}

fn text(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whoever may rename what is in a folder decides what is loaded.
fn check_top(folder: &Stat) -> Result<(), String> {
    let mode = Mode::from_raw_mode(folder.st_mode);
    let is_open = mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX);
    match folder.st_uid {
        _ if is_open => Err("other users may write to it".into()),
        owner if owner == user() || owner == 0 => Ok(()),
        _ => Err("it belongs to another user".into()),
    }
}

/// Opens a folder of this user alone, and makes it where it is missing.
fn own_folder(parent: &OwnedFd, name: &str) -> Result<OwnedFd, String> {
    match fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(text(error)),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = fs::openat(parent, name, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => format!("{name} in it is not a folder"),
        error => text(error),
    })?;
    let stat = fs::fstat(&folder).map_err(text)?;
    if is_own(&stat) { Ok(folder) } else { Err(format!("other users may write to {name} in it")) }
}

fn is_own(stat: &Stat) -> bool {
    stat.st_uid == user() && !Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH)
}

/// Whether the file is there, is this user's, and has exactly these bytes.
fn is_whole(folder: &OwnedFd, bytes: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = fs::openat(folder, AGENT, flags, Mode::empty()) else { return false };
    let is_fit = fs::fstat(&file).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && is_own(&stat)
            && u64::try_from(stat.st_size).is_ok_and(|size| size == bytes.len() as u64)
    });
    let mut found = Vec::new();
    is_fit && File::from(file).read_to_end(&mut found).is_ok() && found == bytes
}

/// Writes the file under another name and renames it, so that it is never seen in part.
fn write(folder: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    let partial = format!(".{}.{}", std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed));
    // An earlier process with this number may have been killed.
    let _ = fs::unlinkat(folder, &partial, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::openat(folder, &partial, flags, Mode::RUSR | Mode::XUSR)?;
    let written = File::from(file).write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let renamed = written.and_then(|()| fs::renameat(folder, &partial, folder, AGENT));
    if renamed.is_err() {
        let _ = fs::unlinkat(folder, &partial, AtFlags::empty());
    }
    renamed
}

/// A file in memory, which other processes find by the number of this one.
fn in_memory(bytes: &[u8]) -> Result<Agent, String> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Linux before 6.3 does not know the flag that says that it may be executed.
    let file = fs::memfd_create(AGENT, flags | MemfdFlags::EXEC).or_else(|_| fs::memfd_create(AGENT, flags));
    let mut file = file.map(File::from).map_err(|error| format!("memory: {}", text(error)))?;
    file.write_all(bytes).map_err(|error| format!("memory: {error}"))?;
    // Nobody changes it from here on.
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fs::fcntl_add_seals(&file, seals).map_err(|error| format!("memory: {}", text(error)))?;
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    if !path.exists() {
        return Err("memory: /proc is not mounted".into());
    }
    Ok(Agent { path, _in_memory: Some(file) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    use std::process::Command;

    const BYTES: &[u8] = b"the library";

    #[test]
    fn the_agent_is_found_near_the_program() {
        let top = tempfile::tempdir().unwrap();
        let bin = top.path().join("bin");
        let library = top.path().join("lib/ttmon").join(AGENT);
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(library.parent().unwrap()).unwrap();
        let reason = find(None, &bin).unwrap_err();
        assert!(reason.contains(bin.to_str().unwrap()) && reason.contains("cargo build --release -p ttmon-agent"));
        std::fs::write(&library, "").unwrap();
        assert_eq!(find(None, &bin).unwrap(), bin.join("../lib/ttmon").join(AGENT));
        std::fs::remove_file(&library).unwrap();
        let package = top.path().join("lib/python3.12/site-packages/ttmon");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join(AGENT), "").unwrap();
        assert_eq!(find(None, &bin).unwrap(), bin.join("../lib/python3.12/site-packages/ttmon").join(AGENT));
        std::fs::write(bin.join(AGENT), "").unwrap();
        assert_eq!(find(None, &bin).unwrap(), bin.join(AGENT));
        std::fs::write(&library, "").unwrap();
        assert_eq!(find(Some(&library), &bin).unwrap(), library);
        let reason = find(Some(Path::new("/nowhere/x.so")), &bin).unwrap_err();
        assert!(reason.starts_with("TTMON_AGENT_LIB=/nowhere/x.so is not a file: "), "{reason}");
        let odd = top.path().join("a b.so");
        std::fs::write(&odd, "").unwrap();
        assert!(find(Some(&odd), &bin).unwrap_err().contains("the blank or colon in its path"));
    }

    #[test]
    fn the_cache_is_where_other_programs_have_theirs() {
        let of = |variables: &[(&str, &str)]| {
            places(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
        };
        assert_eq!(of(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/r")]), [Path::new("/h/.cache"), Path::new("/r")]);
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), [Path::new("/c")]);
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "relative")]), [Path::new("/h/.cache")]);
        assert_eq!(of(&[("HOME", ""), ("XDG_RUNTIME_DIR", "")]), Vec::<PathBuf>::new());
    }

    /// A home with an empty cache.
    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join(".cache");
        (home, cache)
    }

    #[test]
    fn it_is_unpacked_once_for_this_user_alone() {
        let (_home, cache) = home();
        let agent = unpack(BYTES, std::slice::from_ref(&cache)).unwrap();
        assert!(agent.path.starts_with(&cache) && agent.path.ends_with(AGENT));
        assert_eq!(std::fs::read(&agent.path).unwrap(), BYTES);
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = agent.path.parent().unwrap();
        assert_eq!(
            [mode(&agent.path), mode(folder), mode(folder.parent().unwrap()), mode(&cache)],
            [0o500, 0o700, 0o700, 0o700]
        );
        let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
        let first = inode(&agent.path);
        let again = unpack(BYTES, std::slice::from_ref(&cache)).unwrap();
        assert_eq!((&again.path, inode(&again.path)), (&agent.path, first), "it is not written again");
        let other = unpack(b"another version", &[cache]).unwrap();
        assert_ne!(other.path, agent.path);
    }

    #[test]
    fn a_file_with_other_contents_is_replaced() {
        let (_home, cache) = home();
        let path = unpack(BYTES, std::slice::from_ref(&cache)).unwrap().path;
        let outside = cache.with_file_name("outside");
        let replacements: [(&str, &dyn Fn()); 4] = [
            ("half-written", &|| std::fs::write(&path, &BYTES[..4]).unwrap()),
            ("other contents", &|| std::fs::write(&path, b"the l1brary").unwrap()),
            ("a link", &|| {
                std::fs::write(&outside, BYTES).unwrap();
                symlink(&outside, &path).unwrap();
            }),
            ("writable for others", &|| {
                std::fs::write(&path, BYTES).unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
            }),
        ];
        for (what, replace) in replacements {
            std::fs::remove_file(&path).unwrap();
            replace();
            assert_eq!(unpack(BYTES, std::slice::from_ref(&cache)).unwrap().path, path, "{what}");
            let stat = std::fs::symlink_metadata(&path).unwrap();
            assert!(stat.is_file() && stat.permissions().mode() & 0o777 == 0o500, "{what}");
            assert_eq!(std::fs::read(&path).unwrap(), BYTES, "{what}");
            assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "{what}");
        }
        assert_eq!(std::fs::read(outside).unwrap(), BYTES, "what the link pointed to is left alone");
    }

    #[test]
    fn a_folder_that_is_not_the_user_s_own_is_not_used() {
        let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        type Case<'a> = (&'a str, &'a str, &'a dyn Fn(&Path));
        let cases: [Case; 6] = [
            ("a link", "ttmon in it is not a folder", &|cache| {
                std::fs::create_dir(cache.with_file_name("elsewhere")).unwrap();
                symlink(cache.with_file_name("elsewhere"), cache.join("ttmon")).unwrap();
            }),
            ("a file", "ttmon in it is not a folder", &|cache| std::fs::write(cache.join("ttmon"), "").unwrap()),
            ("open to all", "other users may write to ttmon in it", &|cache| {
                std::fs::create_dir(cache.join("ttmon")).unwrap();
                open(&cache.join("ttmon"));
            }),
            ("a cache open to all", "other users may write to it", &|cache| open(cache)),
            ("of another user", "other users may write to ttmon in it", &|cache| {
                std::fs::create_dir(cache.join("ttmon")).unwrap();
                chown(cache.join("ttmon"), Some(65534), None).unwrap();
            }),
            ("a cache of another user", "it belongs to another user", &|cache| {
                chown(cache, Some(65534), None).unwrap()
            }),
        ];
        for (what, expected, prepare) in cases {
            if what.ends_with("of another user") && user() != 0 {
                continue;
            }
            let (_home, cache) = home();
            std::fs::create_dir(&cache).unwrap();
            prepare(&cache);
            let reason = keep(BYTES, &cache).unwrap_err();
            assert_eq!(reason, format!("{}: {expected}", cache.display()), "{what}");
            let elsewhere = std::fs::read_dir(cache.with_file_name("elsewhere"));
            assert!(elsewhere.is_err() || elsewhere.unwrap().next().is_none(), "{what}: nothing was written there");
        }
    }

    #[test]
    fn without_a_cache_it_is_in_the_folder_of_the_login_or_in_memory() {
        let (home, _) = home();
        let runtime = home.path().join("runtime");
        std::fs::create_dir(&runtime).unwrap();
        let nowhere = home.path().join("no/such/home/.cache");
        let blank = home.path().join("a b");
        let agent = unpack(BYTES, &[nowhere.clone(), blank.clone(), runtime.clone()]).unwrap();
        assert!(agent.path.starts_with(&runtime));
        assert!(!home.path().join("no").exists() && !blank.exists(), "no home is made");

        let agent = unpack(BYTES, &[nowhere]).unwrap();
        assert!(agent.path.starts_with(format!("/proc/{}/fd", std::process::id())));
        let other = Command::new("cat").arg(&agent.path).output().unwrap();
        assert_eq!(other.stdout, BYTES, "another process can read it");
        assert!(std::fs::write(&agent.path, "x").is_err(), "it cannot be changed");
        let path = agent.path.clone();
        drop(agent);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_to_or_executed_from_is_passed_over() {
        let reason = keep(BYTES, Path::new("/proc")).unwrap_err();
        assert!(reason.starts_with("/proc: "), "{reason}");
        let reason = keep(BYTES, Path::new("/dev/null")).unwrap_err();
        assert!(reason.starts_with("/dev/null: Not a directory"), "{reason}");
    }

    #[test]
    fn many_at_once_all_get_the_whole_file() {
        let (_home, cache) = home();
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let agent = unpack(&bytes, std::slice::from_ref(&cache)).unwrap();
                        assert!(agent.path.starts_with(&cache) && std::fs::read(&agent.path).unwrap() == bytes);
                    }
                });
            }
        });
        let path = unpack(&bytes, &[cache]).unwrap().path;
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    }
}
