//! A process that exited, and what it held then: as the API and the service's own protocol have it.

use crate::{Bytes, Held, Operation, Process, ProcessOwner, Source, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// A process that exited. What is not described here is as in [`Process`].
#[expect(missing_docs, reason = "Process describes them")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub pid: u32,
    pub user: Option<String>,
    pub name: Option<String>,
    pub command: Option<String>,
    pub container: Option<String>,
    #[serde(flatten)]
    pub owner: ProcessOwner,
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
    /// Programs that it launched. Absent where no agent recorded them.
    #[serde(default)]
    pub launches_total: Option<u64>,
    /// The operations that took the most time on chips.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// How many buffers it had. Absent when there is no account of it.
    pub buffers: Option<usize>,
    /// The largest of them.
    #[serde(default)]
    pub largest_buffers: Vec<ListedBuffer>,
}

/// A live buffer, as lists of buffers have it. What is not described here is as in [`LiveBuffer`](crate::LiveBuffer).
#[expect(missing_docs, reason = "LiveBuffer describes them")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedBuffer {
    /// The process that has it.
    pub pid: u32,
    /// The chips that have it.
    pub devices: Vec<String>,
    pub kind: String,
    pub id: u64,
    pub address: u64,
    pub bytes: Bytes,
    pub bank_bytes: Option<Bytes>,
    /// How many banks there are on each chip.
    pub banks: Option<u32>,
    pub logical_bytes: Option<Bytes>,
    pub allocated_at: Option<Timestamp>,
    /// How long ago that was.
    pub age_seconds: Option<f64>,
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
            owner: process.owner.clone(),
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
