//! The kernel's log: lines of the real driver in a virtual machine, lines of other parts of the kernel, floods, and whatever else.

use crate::support::{BLACKHOLE, Machine, WORMHOLE};
use expect_test::{Expect, expect};
use model::{Device, DeviceId, Held, KernelMessage, PciAddress, Process, Snapshot, Timestamp, Usage};
use proptest::prelude::*;
use sources::KernelLog;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::Arc;

const FIRST: &str = "0000:01:00.0";
const SECOND: &str = "0000:02:00.0";

fn machine(log: &[u8]) -> Machine {
    let machine = Machine::new().device(0, FIRST, BLACKHOLE).device(1, SECOND, WORMHOLE);
    machine.bytes("dev/kmsg", log);
    machine
}

fn add(machine: &Machine, lines: &str) {
    OpenOptions::new().append(true).open(machine.path("dev/kmsg")).unwrap().write_all(lines.as_bytes()).unwrap();
}

/// A moment at which these devices are numbered so.
fn at(seconds: i64, addresses: &[&str]) -> Snapshot {
    let device = |(n, address): (usize, &&str)| Device {
        pci_address: Some(PciAddress((*address).into())),
        ..Device::new(DeviceId::Local(n as u32))
    };
    Snapshot {
        taken_at: Timestamp(seconds * 1000),
        devices: addresses.iter().enumerate().map(device).collect(),
        ..Snapshot::empty()
    }
}

fn read(log: &mut KernelLog, seconds: i64) -> Vec<KernelMessage> {
    let mut snapshot = at(seconds, &[FIRST, SECOND]);
    log.read(&mut snapshot);
    assert_eq!(snapshot.faults, []);
    snapshot.kernel_log.unwrap()
}

fn shown(messages: &[KernelMessage]) -> String {
    let line = |message: &KernelMessage| {
        let device = message.device.as_ref().map_or("–".into(), DeviceId::to_string);
        let seconds = message.seconds.map_or(String::new(), |seconds| format!(" in {seconds} s"));
        let KernelMessage { kind, weight, count, meaning, text, .. } = message;
        format!("{device} {} {} ×{count}{seconds}: {meaning}\n    {text}\n", kind.name(), weight.name())
    };
    messages.iter().map(line).collect()
}

/// All that a log has to say, over as many samples as that takes.
fn check(log: &[u8], expected: Expect) {
    let machine = machine(log);
    let mut log = KernelLog::new(machine.root());
    let mut all: Vec<KernelMessage> = Vec::new();
    // A busy machine reads less at a time.
    for second in (1..5).flat_map(|second| [second; 10]) {
        for message in read(&mut log, second) {
            match all.iter_mut().find(|known| known.seq == message.seq && known.meaning == message.meaning) {
                Some(known) => *known = message,
                None => all.push(message),
            }
        }
    }
    expected.assert_eq(&shown(&all));
}

#[test]
fn the_lines_of_the_real_driver_are_messages_of_its_devices() {
    check(
        include_bytes!("kernel_log/driver.kmsg"),
        expect![[r#"
        – other warning ×1: loading out-of-tree module taints kernel.
            tenstorrent: loading out-of-tree module taints kernel.
        – other note ×1: module verification failed: signature and/or required key missing - tainting kernel
            tenstorrent: module verification failed: signature and/or required key missing - tainting kernel
        0 timeout bad ×4: the firmware did not answer the driver in time
            tenstorrent 0000:01:00.0: Timeout waiting for ARC response
        1 power warning ×1: the firmware did not take the power state of a process that opened the device
            tenstorrent 0000:02:00.0: Failed to set initial power state: -22
        0 power warning ×4: the firmware did not take the order to power up
            tenstorrent 0000:01:00.0: Failed to send ARC message for A0 state
        0 firmware note ×4: the firmware did not take the driver's watchdog time, as old firmware does
            tenstorrent 0000:01:00.0: Failed to set ARC watchdog timeout (this is normal for old FW)
        1 firmware warning ×8: the firmware is not running, and the driver left out a message
            tenstorrent 0000:02:00.0: Skipping message 00000011 due to FW not running
        1 reset bad ×2: the device does not respond, and cannot be reset
            tenstorrent 0000:02:00.0: Device is unresponsive, cannot reset.
        – other note ×1: the driver is unloaded
            tenstorrent: Unloading Tenstorrent AI driver module
        – other note ×2: the driver is loaded
            tenstorrent: Loading Tenstorrent AI driver module v2.10.1-pre
        0 telemetry warning ×2: the firmware has published no telemetry
            tenstorrent 0000:01:00.0: Telemetry not available
        1 other note ×2: the driver has found the device
            tenstorrent 0000:02:00.0: Found a Tenstorrent Wormhole device
        0 other note ×3: the driver has found the device
            tenstorrent 0000:01:00.0: Found a Tenstorrent Blackhole device
    "#]],
    );
}

#[test]
fn errors_of_pcie_the_iommu_and_the_firmware_are_messages_and_others_are_not() {
    check(
        include_bytes!("kernel_log/others.kmsg"),
        expect![[r#"
            0 pcie_error warning ×1: a corrected PCIe error
                pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0; PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID); device [1e52:b140] error status/mask=00000001/00002000; [ 0] RxErr                  (First)
            1 pcie_error bad ×1: an uncorrected PCIe error
                pcieport 0000:00:01.0: AER: Multiple Uncorrectable (Fatal) error message received from 0000:02:00.0
            1 pcie_error bad ×1: the device cannot recover from a PCIe error
                tenstorrent 0000:02:00.0: AER: can't recover (no error_detected callback)
            – pcie_error bad ×1: PCIe errors have closed the port (DPC)
                pcieport 0000:00:01.0: DPC: containment event, status:0x1f01 source:0x0000
            – pcie_error bad ×1: the PCIe link is down
                pcieport 0000:00:01.0: pciehp: Slot(1): Link Down
            0 pcie_error bad ×1: {1}[Hardware Error]:   device_id: 0000:01:00.0
                {1}[Hardware Error]:   device_id: 0000:01:00.0
            1 iommu_fault bad ×1: the IOMMU refused a memory access of the device
                AMD-Vi: Event logged [IO_PAGE_FAULT device=02:00.0 domain=0x000e address=0xfffffffdf8000000 flags=0x0008]
            0 iommu_fault bad ×2: the IOMMU refused a memory access of the device
                arm-smmu-v3 arm-smmu-v3.0.auto: event: F_TRANSLATION client: 0000:01:00.0 sid: 0x100 ssid: 0x0 iova: 0xffff8000 ipa: 0x0
            0 firmware warning ×1: SMC: [00:01:12.345,000] <wrn> regulator: VCORE droop 12 mV
                tenstorrent 0000:01:00.0: SMC: [00:01:12.345,000] <wrn> regulator: VCORE droop 12 mV
            0 firmware warning ×1: DMC: <err> fan: tachometer stopped
                tenstorrent 0000:01:00.0: DMC: <err> fan: tachometer stopped
            0 firmware warning ×1: lines of the firmware's log were lost
                tenstorrent 0000:01:00.0: FW log: sequence gap (expected 17, got 21)
            0 firmware warning ×1: the firmware's log cannot be read until the next reset
                tenstorrent 0000:01:00.0: FW log buffer corrupted (magic=0xdeadbeef); disabling until reset
            1 host_memory warning ×1: a process could not pin host memory for the device
                tenstorrent 0000:02:00.0: pin_user_pages_longterm failed: -12
            1 other bad ×1: something that no version has said so far
                tenstorrent 0000:02:00.0: something that no version has said so far
            0 other warning ×1: pci 0000:01:00.0: not ready 65535ms after bus reset; giving up
                pci 0000:01:00.0: not ready 65535ms after bus reset; giving up
            1 other warning ×1: pci 0000:02:00.0: Failed to add to iommu group 14: -16
                pci 0000:02:00.0: Failed to add to iommu group 14: -16
        "#]],
    );
}

const TIMEOUT: &str = "tenstorrent 0000:01:00.0: Timeout waiting for ARC response";

#[test]
fn a_message_is_reported_at_once_and_those_like_it_together() {
    let machine = machine(b"");
    let mut log = KernelLog::new(machine.root());
    assert_eq!(read(&mut log, 1), []);
    let mut seq = 0;
    let mut write = |count: u64| {
        let lines = (0..count).map(|n| format!("4,{},{n},-;tenstorrent 0000:01:00.0: odd value {n:x}\n", seq + n));
        add(&machine, &lines.collect::<String>());
        seq += count;
    };
    let mut reported = Vec::new();
    for second in 2..200 {
        write(if second < 100 { 3 } else { 0 });
        for message in read(&mut log, second) {
            let line = format!("{second} s: {} in {:?}", message.count, message.seconds);
            if !reported.iter().any(|(seq, _)| *seq == message.seq) {
                reported.push((message.seq, line));
            }
        }
    }
    let lines: Vec<&str> = reported.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines, ["2 s: 3 in None", "12 s: 30 in Some(10.0)", "72 s: 180 in Some(60.0)"]);
    // After a quiet time it is news again; so far it was counted for ten minutes.
    assert_eq!(read(&mut log, 1000).len(), 1);
    assert_eq!(read(&mut log, 2000), []);
    write(1);
    assert_eq!(read(&mut log, 2001)[0].count, 1);
}

#[test]
fn a_program_that_writes_to_the_log_is_not_the_kernel() {
    let machine = machine(format!("12,1,1,-;{TIMEOUT}\n").as_bytes());
    assert_eq!(read(&mut KernelLog::new(machine.root()), 1), []);
}

#[test]
fn lost_lines_are_counted_by_their_numbers() {
    let machine = machine(format!("3,10,1,-;{TIMEOUT}\n3,1244,2,-;{TIMEOUT}\n").as_bytes());
    let messages = read(&mut KernelLog::new(machine.root()), 1);
    let lost = messages.iter().find(|message| message.kind.name() == "lost_lines").unwrap();
    assert_eq!((lost.count, lost.seq), (1233, 1244));
}

#[test]
fn a_device_is_named_by_its_address_whatever_its_number() {
    let machine = machine(b"");
    let mut log = KernelLog::new(machine.root());
    let mut named = |snapshot: Snapshot, seq: u64| {
        add(&machine, &format!("2,{seq},1,-;tenstorrent 0000:01:00.0: number {}\n", "x".repeat(seq as usize)));
        let mut snapshot = snapshot;
        log.read(&mut snapshot);
        snapshot.kernel_log.unwrap().last().unwrap().device.as_ref().unwrap().to_string()
    };
    assert_eq!(named(at(1, &[FIRST, SECOND]), 1), "0");
    assert_eq!(named(at(2, &[SECOND, FIRST]), 2), "1");
    // It was removed, and keeps its name until that is another one's.
    assert_eq!(named(at(3, &[SECOND]), 3), "1");
    assert_eq!(named(at(4, &["0000:03:00.0", SECOND]), 4), FIRST);
}

#[test]
fn a_message_has_who_held_the_device_when_its_lines_came() {
    let machine = machine(format!("3,1,1,-;{TIMEOUT}\n").as_bytes());
    let mut log = KernelLog::new(machine.root());
    let mut held_by = |seconds: i64, pid: u32| {
        let mut snapshot = at(seconds, &[FIRST, SECOND]);
        let held = Held { usage: Usage::measured(7, 0, 0, 0, 0), ..Held::new(DeviceId::Local(0)) };
        snapshot.processes = vec![Process { devices: vec![held], ..Process::new(pid) }];
        log.read(&mut snapshot);
        let holders = snapshot.kernel_log.unwrap().last().unwrap().held_by.clone();
        holders.iter().map(|holder| (holder.pid, holder.bytes.map(|bytes| bytes.0))).collect::<Vec<_>>()
    };
    assert_eq!(held_by(1, 100), [(100, Some(7))]);
    add(&machine, &format!("3,2,1,-;{TIMEOUT}\n3,3,1,-;{TIMEOUT}\n"));
    assert_eq!(held_by(2, 200), [(100, Some(7))], "what was reported stays as it was");
    assert_eq!(held_by(12, 300), [(200, Some(7))], "and the next has those of its own lines");
}

#[test]
fn a_flood_costs_a_bounded_time_and_keeps_what_matters() {
    let mut text = String::new();
    for seq in 0..30_000 {
        text += &match seq % 1000 {
            7 => format!("3,{seq},1,-;{TIMEOUT}\n"),
            n => format!("4,{seq},1,-;tenstorrent 0000:02:00.0: flood of {} {seq}\n", "x".repeat(n % 400)),
        };
    }
    // As many samples as it takes to get to the last line, and one more.
    text += "3,30000,1,-;tenstorrent 0000:02:00.0: Device is unresponsive, cannot reset.\n";
    let machine = machine(text.as_bytes());
    let mut log = KernelLog::new(machine.root());
    let (mut timeouts, mut most, mut not_listed, mut seconds, mut is_over) = (0, 0, 0, 0, false);
    let mut seen = Vec::new();
    while seconds < 1_000_000 {
        seconds += if is_over { 1_000_000 } else { 11 };
        let messages = read(&mut log, seconds);
        most = most.max(messages.len());
        for message in messages.iter().filter(|message| !seen.contains(&(message.seq, message.count))) {
            timeouts += if message.kind.name() == "timeout" { message.count } else { 0 };
            not_listed += if message.meaning.ends_with("not listed") { message.count } else { 0 };
            is_over |= message.kind.name() == "reset";
        }
        seen = messages.iter().map(|message| (message.seq, message.count)).collect();
    }
    assert_eq!(timeouts, 30);
    // The list is full and never longer. How many lines are read at a time depends on the machine.
    assert_eq!(most, 64);
    assert!(not_listed > 1000, "{not_listed}");
}

#[test]
fn without_permission_or_without_the_file_one_fault_says_what_to_do() {
    let machine = machine(b"");
    let fault = |root| {
        let mut snapshot = at(1, &[FIRST]);
        let mut log = KernelLog::new(root);
        log.read(&mut snapshot);
        log.read(&mut snapshot);
        assert_eq!(snapshot.kernel_log, Some(vec![]));
        snapshot.faults.dedup();
        let [fault] = &snapshot.faults[..] else { panic!("{:?}", snapshot.faults) };
        assert!(fault.path.ends_with("/dev/kmsg"));
        fault.reason.clone()
    };
    // As the kernel answers, with EPERM.
    let answer = |path: &std::path::Path| path.ends_with("kmsg").then(|| io::Error::from_raw_os_error(1));
    let expected = "permission denied: the kernel's log needs CAP_SYSLOG; enable the drop-in kernel-log.conf \
                    (docs/systemd.md), or run as root";
    assert_eq!(fault(machine.root().with_faults(Arc::new(answer))), expected);
    std::fs::remove_file(machine.path("dev/kmsg")).unwrap();
    let expected =
        "is not there: enable the drop-in kernel-log.conf (docs/systemd.md), or give the container /dev/kmsg";
    assert_eq!(fault(machine.root()), expected);
}

#[test]
fn a_pipe_is_read_without_waiting_and_half_a_line_later() {
    let machine = machine(b"");
    let path = machine.path("dev/kmsg");
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut log = KernelLog::new(machine.root());
    assert_eq!(read(&mut log, 1), []);
    let mut pipe = OpenOptions::new().write(true).open(&path).unwrap();
    write!(pipe, "3,1,1,-;{TIMEOUT}\n DEVICE=+pci:{SECOND}\n3,2,1,-;tenstorrent 0000:02").unwrap();
    assert_eq!(read(&mut log, 2).len(), 1);
    writeln!(pipe, ":00.0: Telemetry not available").unwrap();
    assert_eq!(read(&mut log, 3)[1].meaning, "the firmware has published no telemetry");
}

#[test]
fn a_line_that_is_too_long_is_left_out_and_the_next_one_is_not() {
    let text = format!("3,1,1,-;{}\n3,2,1,-;{TIMEOUT}\n", "x".repeat(100_000));
    let machine = machine(text.as_bytes());
    let mut log = KernelLog::new(machine.root());
    assert_eq!(read(&mut log, 1).len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_plain_messages_or_none(bytes in prop::collection::vec(any::<u8>(), 0..3000), text in "\\PC{0,300}") {
        let mut all = bytes;
        all.extend_from_slice(format!("\n3,7,1,-;tenstorrent 0000:01:00.0: {text}\n").as_bytes());
        let machine = machine(&all);
        for message in read(&mut KernelLog::new(machine.root()), 1) {
            prop_assert!(message.text.len() <= 2048 && !message.text.contains(char::is_control));
            prop_assert!(!message.meaning.contains(char::is_control) && message.count > 0);
        }
    }
}
