//! A process on a device: what a line of a table or of CSV is about.

use model::{Device, Held, Process, Snapshot};

/// A process, what it holds on one device, and the device.
#[derive(Clone, Copy)]
pub struct ProcessRow<'a> {
    pub process: &'a Process,
    pub held: &'a Held,
    pub device: Option<&'a Device>,
}

impl<'a> ProcessRow<'a> {
    /// Every process on every device, by device and pid.
    pub fn all(snapshot: &'a Snapshot) -> Vec<ProcessRow<'a>> {
        let mut rows: Vec<ProcessRow> = Vec::new();
        for process in &snapshot.processes {
            rows.extend(process.devices.iter().map(|held| {
                let device = snapshot.devices.iter().find(|device| device.id == held.id);
                ProcessRow { process, held, device }
            }));
        }
        rows.sort_by(|a, b| (&a.held.id, a.process.pid).cmp(&(&b.held.id, b.process.pid)));
        rows
    }
}
