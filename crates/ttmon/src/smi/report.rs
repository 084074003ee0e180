//! `-q`: everything about every device, in words.

use super::process_fields::ProcessRow;
use model::{Bytes, Device, KindFigures, Runtime, Snapshot, Source};
use show::text::{clean, nearest};
use std::fmt::{Display, Write};
use watch::exit::{Exit, Failure};

/// A part of the report that can be chosen with `-d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Identity,
    Health,
    Temperature,
    Power,
    Clock,
    Pcie,
    Memory,
    Firmware,
    Pids,
}

const SECTIONS: [(&str, Section); 9] = [
    ("IDENTITY", Section::Identity),
    ("HEALTH", Section::Health),
    ("TEMPERATURE", Section::Temperature),
    ("POWER", Section::Power),
    ("CLOCK", Section::Clock),
    ("PCIE", Section::Pcie),
    ("MEMORY", Section::Memory),
    ("FIRMWARE", Section::Firmware),
    ("PIDS", Section::Pids),
];

/// The sections with these names; all when none is named.
pub fn sections(names: &[String]) -> anyhow::Result<Vec<Section>> {
    if names.is_empty() {
        return Ok(SECTIONS.iter().map(|(_, section)| *section).collect());
    }
    let find = |name: &String| {
        let typed = name.trim().to_ascii_uppercase();
        SECTIONS.iter().find(|(known, _)| *known == typed).map(|(_, section)| *section).ok_or_else(|| {
            let known = SECTIONS.iter().map(|(name, _)| *name);
            let near = nearest(&typed, known.clone()).map_or_else(String::new, |near| format!("did you mean {near}? "));
            let all = known.collect::<Vec<_>>().join(", ");
            Failure::error(Exit::Usage, format!("-d: {name:?} is not a section: {near}they are {all}"))
        })
    };
    names.iter().map(find).collect()
}

/// The whole report.
pub fn text(snapshot: &Snapshot, sections: &[Section], time: &str) -> String {
    let mut report = Report(String::new());
    let simulated = if snapshot.host.simulated { " (SIMULATED)" } else { "" };
    report.0 += &format!("\n=============={}LOG{}==============\n\n", "TTMON ", simulated);
    report.row(0, "Timestamp", Some(time));
    report.row(0, "Host", snapshot.host.name.as_deref());
    report.row(0, "Kernel", snapshot.host.kernel.as_deref());
    report.row(0, "Driver Version", snapshot.host.driver_version.as_deref());
    report.row(0, "Attached Devices", Some(snapshot.devices.len()));
    for device in &snapshot.devices {
        let address = device.pci_address.as_ref().map_or_else(String::new, |address| format!(" {address}"));
        report.0 += &format!("\nDevice {}{address}\n", device.id);
        sections.iter().for_each(|section| report.section(snapshot, device, *section));
    }
    if !snapshot.alerts.is_empty() {
        report.0 += "\nAlerts\n";
        for alert in &snapshot.alerts {
            let (severity, name, text) = (alert.severity.name(), clean(&alert.name), clean(&alert.text));
            report.0 += &format!("    {severity}: {name}: {text}, since {}\n", alert.since);
        }
    }
    if !snapshot.faults.is_empty() {
        report.0 += "\nNotes\n";
        for fault in &snapshot.faults {
            report.0 += &format!("    {}: {}\n", clean(&fault.path), clean(&fault.reason));
        }
    }
    report.0
}

struct Report(String);

impl Report {
    fn row(&mut self, depth: usize, key: &str, value: Option<impl Display>) {
        let value = value.map_or_else(|| "N/A".to_owned(), |value| clean(&value.to_string()).into_owned());
        let indent = " ".repeat(depth * 4);
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{:<55}: {value}", format!("{indent}{key}"));
    }

    fn head(&mut self, name: &str) {
        self.0 += &format!("    {name}\n");
    }

    fn section(&mut self, snapshot: &Snapshot, device: &Device, section: Section) {
        match section {
            Section::Identity => {
                self.row(1, "Board", device.board.as_deref());
                self.row(1, "Architecture", device.arch.map(model::Arch::name));
                self.row(1, "Serial", device.serial.as_deref());
                self.row(1, "ASIC Id", device.asic_id.as_deref());
                self.row(1, "NUMA Node", device.numa_node);
            }
            Section::Health => {
                self.head("Health");
                self.row(2, "State", Some(device.state.name()));
                self.row(2, "Sample Age", device.sample_age_seconds.map(|age| format!("{age:.3} s")));
                self.row(2, "Heartbeat", device.heartbeat);
                self.row(2, "Thermal Trips", device.thermal_trips);
                self.row(2, "In Use By Process", device.in_use_by_pid);
            }
            Section::Temperature => {
                self.head("Temperature");
                self.row(2, "ASIC", device.asic_temp);
                self.row(2, "Throttle Limit", device.asic_temp_max);
                self.row(2, "Fan", device.fan);
            }
            Section::Power => {
                self.head("Power");
                self.row(2, "Draw", device.power);
                self.row(2, "Limit", device.power_max);
                self.row(2, "Core Voltage", device.vcore);
                self.row(2, "Core Voltage Limit", device.vcore_max);
                self.row(2, "Core Current", device.current);
                self.row(2, "Core Current Limit", device.current_max);
            }
            Section::Clock => {
                self.head("Clocks");
                self.row(2, "AICLK", device.aiclk);
                self.row(2, "AXICLK", device.axiclk);
                self.row(2, "ARCCLK", device.arcclk);
            }
            Section::Pcie => {
                let link = &device.pcie;
                self.head("PCIe");
                self.row(2, "Generation", link.generation);
                self.row(2, "Generation Max", link.max_generation);
                self.row(2, "Width", link.width.map(|width| format!("{width}x")));
                self.row(2, "Width Max", link.max_width.map(|width| format!("{width}x")));
                self.row(2, "Host To Device", link.host_to_device);
                self.row(2, "Device To Host", link.device_to_host);
            }
            Section::Memory => {
                let memory = &device.memory;
                self.head("Memory");
                self.row(2, "DRAM Total", memory.dram_total);
                self.row(2, "DRAM Used", memory.dram_used);
                self.row(2, "L1 Total", memory.l1_total);
                self.row(2, "L1 Used", memory.l1_used);
                self.row(2, "L1_SMALL Used", memory.l1_small_used);
                self.row(2, "TRACE Used", memory.trace_used);
                self.row(2, "CB Used", memory.cb_used);
                self.row(2, "Stale", memory.stale);
                self.row(2, "Untracked Processes", Some(memory.untracked_processes));
            }
            Section::Firmware => {
                let firmware = &device.firmware;
                self.head("Firmware");
                self.row(2, "Bundle", firmware.bundle.as_deref());
                self.row(2, "DM App", firmware.dm_app.as_deref());
                self.row(2, "DM Bootloader", firmware.dm_bootloader.as_deref());
                self.row(2, "ARC", firmware.arc.as_deref());
                self.row(2, "Ethernet", firmware.ethernet.as_deref());
                self.row(2, "tt-flash", firmware.tt_flash.as_deref());
            }
            Section::Pids => self.processes(snapshot, device),
        }
    }

    fn processes(&mut self, snapshot: &Snapshot, device: &Device) {
        let rows = ProcessRow::all(snapshot, "");
        let mut rows = rows.iter().filter(|row| row.held.id == device.id).peekable();
        if rows.peek().is_none() && device.foreign_holders == 0 {
            self.row(1, "Processes", Some("None"));
            return;
        }
        self.head("Processes");
        for row in rows {
            let usage = row.held.usage;
            self.row(2, "Process ID", Some(row.process.pid));
            self.row(3, "User", row.process.user.as_deref());
            self.row(3, "Name", row.process.name.as_deref());
            self.row(3, "Command", row.process.command.as_deref());
            self.row(3, "Container", row.process.container.as_deref());
            self.row(3, "Runtime", row.process.runtime.map(Runtime::name));
            self.row(3, "Started", row.process.started_at);
            self.row(3, "Host Memory", row.process.host_memory);
            self.row(3, "Host CPU", row.process.host_cpu_percent.map(|cpu| format!("{cpu:.1} %")));
            self.row(3, "DRAM", usage.dram);
            self.row(3, "L1", usage.l1);
            self.row(3, "L1_SMALL", usage.l1_small);
            self.row(3, "TRACE", usage.trace);
            self.row(3, "CB", usage.cb);
            self.row(3, "Source", row.held.source.map(Source::name));
            if let Some(percent) = row.held.utilization_percent {
                self.row(3, "Utilization", Some(format!("{percent:.1} %")));
            }
            if row.process.agent.is_some() {
                self.row(3, "Agent", row.process.agent.as_deref());
            }
            row.held
                .exact
                .iter()
                .flat_map(|exact| exact.kinds())
                .for_each(|(kind, figures)| self.kind(kind.title(), &figures));
        }
        if device.foreign_holders > 0 {
            self.row(2, "Openers in other PID namespaces", Some(device.foreign_holders));
        }
    }
    /// What a process's book says of one kind.
    fn kind(&mut self, name: &str, figures: &KindFigures) {
        self.0 += &format!("            {name} In Detail\n");
        self.row(4, "Reserved", Some(to_the_byte(figures.bytes)));
        self.row(4, "Asked For", Some(to_the_byte(figures.logical_bytes)));
        self.row(4, "Peak", Some(to_the_byte(figures.peak_bytes)));
        self.row(4, "Buffers", Some(figures.buffers));
        self.row(4, "Allocations", Some(figures.allocations));
        self.row(4, "Frees", Some(figures.frees));
        let Some(banks) = figures.banks else { return };
        self.row(4, "Banks", Some(banks.count));
        self.row(4, "Allocatable Per Bank", Some(to_the_byte(banks.allocatable_bytes)));
        self.row(4, "Allocated Per Bank", Some(to_the_byte(banks.allocated_bytes)));
        self.row(4, "Free Per Bank", Some(to_the_byte(banks.free_bytes)));
        self.row(4, "Largest Free Block Per Bank", Some(to_the_byte(banks.largest_free_bytes)));
        self.row(4, "Fragmentation", banks.fragmentation.map(|share| format!("{:.2} %", share * 100.0)));
        if banks.age_seconds.is_some() {
            self.row(
                4,
                "Largest Block And Fragmentation As Of",
                banks.age_seconds.map(|age| format!("{age:.1} s ago")),
            );
        }
    }
}

/// For people, and exactly.
fn to_the_byte(bytes: Bytes) -> String {
    if bytes.0 < 1024 { bytes.to_string() } else { format!("{bytes} ({} B)", bytes.0) }
}
