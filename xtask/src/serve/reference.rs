//! What the proof of concept's server did, written again: a thread for each connection, one lock around the tables, a printed line for
//! each event, and a look every five seconds at who still lives.

use super::poc::{ALLOCATE, ANSWER, FREE, LENGTH, QUERY, message};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Default)]
struct Tables {
    buffers: HashMap<(i32, u64), Buffer>,
    /// Bytes by device and type of buffer.
    totals: HashMap<i32, [u64; 6]>,
}

struct Buffer {
    pid: i32,
    kind: usize,
    bytes: u64,
    references: u32,
}

/// `xtask reference-server SOCKET`.
pub fn serve(path: &str) -> anyhow::Result<()> {
    let listener = UnixListener::bind(path)?;
    let tables = Arc::new(Mutex::new(Tables::default()));
    let swept = tables.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(5));
            swept.lock().unwrap_or_else(PoisonError::into_inner).bury();
        }
    });
    for stream in listener.incoming() {
        let (stream, tables) = (stream?, tables.clone());
        std::thread::spawn(move || attend(stream, &tables));
    }
    Ok(())
}

fn attend(mut stream: UnixStream, tables: &Mutex<Tables>) {
    let mut received = [0; LENGTH];
    while stream.read_exact(&mut received).is_ok() {
        let u64_at = |at: usize| received[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let i32_at = |at: usize| received[at..].first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        let (device, bytes, buffer, pid) = (i32_at(4), u64_at(8), u64_at(24), i32_at(20));
        let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        match received[0] {
            ALLOCATE => tables.allocate(device, buffer, bytes, usize::from(received[16]).min(5), pid),
            FREE => tables.free(device, buffer, pid),
            QUERY => {
                let mut answer = message(ANSWER, device, 0, 0);
                let totals = tables.totals.get(&device).copied().unwrap_or_default();
                answer[40..88].copy_from_slice(totals.map(u64::to_le_bytes).as_flattened());
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
            _ => {}
        }
    }
}

impl Tables {
    fn allocate(&mut self, device: i32, id: u64, bytes: u64, kind: usize, pid: i32) {
        let known = self.buffers.entry((device, id)).or_insert(Buffer { pid, kind, bytes, references: 0 });
        known.references += 1;
        let count = known.references;
        if count == 1 {
            self.totals.entry(device).or_default()[kind] += bytes;
        }
        println!(
            "[ALLOC] device {device}: +{bytes} bytes of type {kind} (pid {pid}, buffer {id:#x}, references {count})"
        );
    }

    fn free(&mut self, device: i32, id: u64, pid: i32) {
        let Some(known) = self.buffers.get_mut(&(device, id)) else {
            println!("[FREE] device {device}: buffer {id:#x} of pid {pid} is not known");
            return;
        };
        known.references -= 1;
        if known.references == 0 {
            let (kind, bytes) = (known.kind, known.bytes);
            self.buffers.remove(&(device, id));
            self.totals.entry(device).or_default()[kind] -= bytes;
            println!("[FREE] device {device}: -{bytes} bytes of type {kind} (pid {pid}, buffer {id:#x})");
        }
    }

    /// Forgets the buffers of those who are gone.
    fn bury(&mut self) {
        let mut living: HashMap<i32, bool> = HashMap::new();
        let Tables { buffers, totals } = self;
        buffers.retain(|(device, _), buffer| {
            let pid = buffer.pid;
            let lives = *living.entry(pid).or_insert_with(|| kill(Pid::from_raw(pid), None).is_ok());
            if !lives {
                totals.entry(*device).or_default()[buffer.kind] -= buffer.bytes;
            }
            lives
        });
        for (pid, _) in living.iter().filter(|(_, lives)| !**lives) {
            println!("[DEAD] pid {pid}");
        }
    }
}
