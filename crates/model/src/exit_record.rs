//! A process that exited, and what it held then: as the API and the service's own protocol have it.

use crate::{Bytes, Held, Process, Source, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// A process that exited.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Process id.
    pub pid: u32,
    /// User that it ran as.
    pub user: Option<String>,
    /// Short name.
    pub name: Option<String>,
    /// Command line.
    pub command: Option<String>,
    /// Container or pod that it ran in.
    pub container: Option<String>,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it exited.
    pub died_at: Timestamp,
    /// Its exit code. Absent when that is not known, or a signal killed it.
    pub exit_code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Whether it shut down by itself, as its agent recorded.
    pub in_its_own_time: Option<bool>,
    /// What it held on each chip.
    pub devices: Vec<Held>,
    /// What it had not freed when it shut down by itself, or closed a device. Absent when it was killed, or there is no account of it.
    #[serde(skip)]
    pub left: Option<Bytes>,
    /// How many buffers it had. Absent when there is no account of it.
    pub buffers: Option<usize>,
    /// The largest of them.
    #[serde(default)]
    pub largest_buffers: Vec<ListedBuffer>,
}

/// A live buffer, as lists of buffers have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedBuffer {
    /// The process that has it.
    pub pid: u32,
    /// The chips that have it.
    pub devices: Vec<String>,
    /// `dram`, `l1`, `l1_small`, `trace`, `cb` or `kernel`.
    pub kind: String,
    /// What distinguishes it from the others of its process.
    pub id: u64,
    /// In each bank.
    pub address: u64,
    /// Reserved on each chip.
    pub bytes: Bytes,
    /// Reserved in each bank.
    pub bank_bytes: Option<Bytes>,
    /// How many banks there are on each chip.
    pub banks: Option<u32>,
    /// What the program asked for, on each chip.
    pub logical_bytes: Option<Bytes>,
    /// When it was allocated.
    pub allocated_at: Option<Timestamp>,
    /// How long ago that was.
    pub age_seconds: Option<f64>,
    /// What the program calls it.
    pub label: Option<String>,
    /// Where this comes from.
    pub source: Source,
}

impl ExitRecord {
    /// Of a process of which nothing else is known.
    pub fn of(process: &Process, died_at: Timestamp) -> ExitRecord {
        ExitRecord {
            pid: process.pid,
            user: process.user.clone(),
            name: process.name.clone(),
            command: process.command.clone(),
            container: process.container.clone(),
            started_at: process.started_at,
            died_at,
            ..ExitRecord::default()
        }
    }

    /// What it held on all chips.
    pub fn usage(&self) -> Usage {
        self.devices.iter().fold(Usage::default(), |sum, held| sum.plus(held.usage))
    }
}
