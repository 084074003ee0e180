//! The kernel's log of the machine, `/dev/kmsg` as a plain file: what the real driver says when such things happen.

use crate::spec::FaultKind;
use rustix::time::{ClockId, clock_gettime};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) struct SimKernelLog {
    path: PathBuf,
    /// The number of the next line.
    seq: u64,
}

impl SimKernelLog {
    /// An empty one.
    pub fn new(root: &Path) -> io::Result<SimKernelLog> {
        let path = root.join("dev/kmsg");
        path.parent().map(std::fs::create_dir_all).transpose()?;
        std::fs::write(&path, "")?;
        Ok(SimKernelLog { path, seq: 0 })
    }

    /// What it says of this fault of the device at an address, if anything. A process that is killed is none of the kernel's concerns,
    /// nor is a reset that works.
    pub fn write(&mut self, fault: FaultKind, address: &str) -> io::Result<()> {
        let text = match fault {
            FaultKind::Hang => "ARC queue WPTR read returned all-1s; device gone?",
            FaultKind::Freeze | FaultKind::Stuck => "Timeout waiting for ARC response",
            FaultKind::Lose => "AER: can't recover (no error_detected callback)",
            _ => return Ok(()),
        };
        self.append(&format!("tenstorrent {address}: {text}"), Some(address))
    }

    /// What it says when the host has no memory left, and a process is killed.
    pub fn write_out_of_memory(&mut self, pid: u32, name: &str) -> io::Result<()> {
        let sizes = "total-vm:67108864kB, anon-rss:61865984kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:122880kB";
        self.append(&format!("Out of memory: Killed process {pid} ({name}) {sizes} oom_score_adj:0"), None)
    }

    fn append(&mut self, text: &str, address: Option<&str>) -> io::Result<()> {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        let device = address.map(|address| format!(" SUBSYSTEM=pci\n DEVICE=+pci:{address}\n"));
        let (seq, device) = (self.seq, device.unwrap_or_default());
        let record = format!("3,{seq},{microseconds},-;{text}\n{device}");
        self.seq += 1;
        OpenOptions::new().append(true).open(&self.path)?.write_all(record.as_bytes())
    }
}
