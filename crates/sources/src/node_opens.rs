//! When device nodes were opened or closed, without opening them: the kernel tells (inotify).
//!
//! Who has a device open is looked at from time to time. A program that opens and closes it in between is seen here alone.

use crate::dir::decimal;
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Watches a folder of nodes. Opens through another folder, such as that of a container, are not seen.
pub(crate) struct NodeOpens(Option<OwnedFd>);

impl NodeOpens {
    /// Watches from now on. Where the kernel does not tell, nothing is seen.
    pub fn watch(nodes: &Path) -> NodeOpens {
        let events = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE | WatchFlags::ONLYDIR;
        let watch = || {
            let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            add_watch(&inotify, nodes, events)?;
            rustix::io::Result::Ok(inotify)
        };
        NodeOpens(watch().ok())
    }

    /// The numbers of the devices that were opened or closed since this was asked last.
    pub fn take(&mut self) -> BTreeSet<u32> {
        let mut touched = BTreeSet::new();
        let Some(inotify) = &self.0 else { return touched };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(inotify, &mut buffer);
        while let Ok(event) = events.next() {
            let name = event.file_name().and_then(|name| name.to_str().ok());
            touched.extend(name.and_then(decimal).and_then(|number| u32::try_from(number).ok()));
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_opened_or_closed_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["0", "1", "by-id"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut opens = NodeOpens::watch(folder.path());
        assert_eq!(opens.take(), BTreeSet::new());
        let file = std::fs::File::open(folder.path().join("1")).unwrap();
        assert_eq!(opens.take(), BTreeSet::from([1]));
        drop(file);
        std::fs::File::open(folder.path().join("by-id")).unwrap();
        assert_eq!(opens.take(), BTreeSet::from([1]), "its close");
        assert_eq!(opens.take(), BTreeSet::new());
        assert_eq!(NodeOpens::watch(Path::new("/nowhere")).take(), BTreeSet::new());
    }
}
