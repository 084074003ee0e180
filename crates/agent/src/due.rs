//! When the banks and programs of a device may be asked about again.

use crate::clock::Pace;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

/// When the banks of one kind of one device may be asked about again.
pub struct Refresh {
    pub pace: Pace,
    /// The most banks of an allocator of this device: those of sub-devices have fewer, and are not the device's.
    pub most: AtomicU32,
}

impl Refresh {
    pub const fn new() -> Refresh {
        Refresh { pace: Pace::new(20, 160), most: AtomicU32::new(0) }
    }

    pub fn reset(&self) {
        self.pace.reset();
        self.most.store(0, Relaxed);
    }
}

/// The programs of one device.
pub struct Programs {
    pub alive: AtomicI64,
    /// Something changed that the book does not have.
    pub stale: AtomicBool,
    /// The thread that made or ended the last program, and when another thread did.
    pub thread: AtomicU64,
    pub thread_changed: AtomicU64,
    pub pace: Pace,
}

impl Programs {
    pub const fn new() -> Programs {
        Programs {
            alive: AtomicI64::new(0),
            stale: AtomicBool::new(false),
            thread: AtomicU64::new(0),
            thread_changed: AtomicU64::new(0),
            pace: Pace::new(100, 300),
        }
    }

    pub fn reset(&self) {
        self.alive.store(0, Relaxed);
        self.stale.store(false, Relaxed);
        self.thread.store(0, Relaxed);
        self.thread_changed.store(0, Relaxed);
        self.pace.reset();
    }
}

/// When any device may be asked again, and whether there is reason to.
pub struct AskLimit {
    pub pace: Pace,
    pub stale: AtomicBool,
    /// When it is worth to look for devices that were put off.
    pub look: AtomicU64,
}

impl AskLimit {
    pub const fn new() -> AskLimit {
        AskLimit { pace: Pace::new(0, 300), stale: AtomicBool::new(false), look: AtomicU64::new(0) }
    }
}
