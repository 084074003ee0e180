//! What the driver counts for each process, where it has a folder for each.
//!
//! Reads `/sys/class/tenstorrent/tenstorrent!<N>/processes/<pid>/<kind>_allocated`: one decimal number of bytes a file, where kind is
//! `dram`, `l1`, `l1_small`, `trace` or `cb`; `<kind>_bytes` is the same. No driver has the folder yet: it is looked for when a
//! device is first read, and again after a minute.

use crate::device_memory::RareFolder;
use crate::dir::{Dir, Trouble};
use crate::fdinfo::{KINDS, usage};
use model::Usage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One device's folder of processes, remembered between samples.
#[derive(Default)]
pub(crate) struct ProcessFolders {
    folder: RareFolder,
    open: BTreeMap<u32, ProcessFolder>,
}

struct ProcessFolder {
    folder: Dir,
    /// The file of each kind.
    kinds: [Option<String>; 5],
    /// Files of other kinds, which are reported and not guessed at.
    unknown: Vec<String>,
}

impl ProcessFolders {
    /// Whether the device has no such folder, as far as it was looked for.
    pub fn is_missing(&self) -> bool {
        self.folder.is_missing()
    }

    /// What each holder has, as far as the driver counts.
    pub fn read(&mut self, class: &Dir, holders: &BTreeSet<u32>, trouble: &mut Trouble) -> BTreeMap<u32, Usage> {
        let Some(folder) = self.folder.get(class, "processes") else { return BTreeMap::new() };
        if is_in_a_namespace(class) {
            let why =
                "counts processes by their pids on the host, and this is a container: run on the host to see them";
            trouble.add(folder.path(), why);
            return BTreeMap::new();
        }
        self.open.retain(|pid, _| holders.contains(pid));
        let mut counted = BTreeMap::new();
        for pid in holders {
            if !self.open.contains_key(pid) {
                // Who holds a device need not have anything on it.
                let Ok(process) = folder.open_dir(pid.to_string()) else { continue };
                self.open.insert(*pid, ProcessFolder::of(process));
            }
            let Some(ProcessFolder { folder, kinds, unknown }) = self.open.get(pid) else { continue };
            for name in unknown {
                trouble.add(&folder.path_of(name), "unknown kind of device memory: ignored");
            }
            let kinds = kinds.each_ref().map(|name| folder.number(name.as_ref()?, u64::MAX, trouble));
            if kinds.iter().any(Option::is_some) {
                counted.insert(*pid, usage(kinds));
            } else {
                // It has ended, and another may get its number.
                self.open.remove(pid);
            }
        }
        counted
    }
}

impl ProcessFolder {
    fn of(folder: Dir) -> ProcessFolder {
        let mut kinds = [const { None }; 5];
        let mut unknown = Vec::new();
        // One that ends meanwhile has no files.
        let _ = folder.list(|name| {
            let Some(name) = name.to_str() else { return };
            let Some(kind) = name.strip_suffix("_allocated").or_else(|| name.strip_suffix("_bytes")) else { return };
            match KINDS.iter().position(|known| *known == kind) {
                Some(kind) => kinds[kind] = Some(name.to_owned()),
                None => unknown.push(name.to_owned()),
            }
        });
        ProcessFolder { folder, kinds, unknown }
    }
}

/// The first PID namespace of a machine always has this number.
const FIRST_NAMESPACE: &[u8] = b"pid:[4026531836]";

/// Whether the numbers of processes differ from those of the driver, which names its folders once for all.
fn is_in_a_namespace(class: &Dir) -> bool {
    class.path().starts_with("/sys")
        && Dir::open(Path::new("/proc/self/ns"), None)
            .and_then(|folder| folder.read_link("pid"))
            .is_ok_and(|namespace| namespace != FIRST_NAMESPACE)
}
