//! What `systemctl status` says of the service.

use model::{Snapshot, State};
use show::text::count;

/// Devices, processes, and what deep reads have done where they were asked for.
pub fn text(snapshot: &Snapshot) -> String {
    let devices = &snapshot.devices;
    let ok = devices.iter().filter(|device| matches!(device.state, State::Ok | State::Remote)).count();
    let mut text = format!(
        "{} ({ok} ok), {}",
        count(devices.len() as u64, "device", "devices"),
        count(snapshot.processes.len() as u64, "process", "processes")
    );
    if let Some(deep) = &snapshot.host.deep {
        let milliseconds = deep.seconds * 1e3;
        text += &format!(
            "; deep reads: {} opens, {} registers, {milliseconds:.0} ms, {} refused",
            deep.opens, deep.registers, deep.refused
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeepCounts, Device, DeviceId, Host};

    #[test]
    fn it_has_devices_processes_and_what_deep_reads_did() {
        let hung = Device { state: State::Hung, ..Device::new(DeviceId::Local(1)) };
        let devices = vec![Device::new(DeviceId::Local(0)), hung];
        let mut snapshot = Snapshot { devices, ..Snapshot::empty() };
        assert_eq!(text(&snapshot), "2 devices (1 ok), 0 processes");
        let counts = DeepCounts { opens: 12, registers: 576, seconds: 0.0042, refused: 1 };
        snapshot.host = Host { deep: Some(Box::new(counts)), ..Host::default() };
        let expected = "2 devices (1 ok), 0 processes; deep reads: 12 opens, 576 registers, 4 ms, 1 refused";
        assert_eq!(text(&snapshot), expected);
    }
}
