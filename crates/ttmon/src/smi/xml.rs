//! `-q -x`: everything about every device as XML. What nvidia-smi's XML also has is under its names; below it are all figures.

use super::process_row::ProcessRow;
use model::figure::device::figures_of;
use model::figure::machine::{DRIVER_VERSION, figures_of_machine};
use model::figure::process::{DEVICE, HELD_FIGURES, PROCESS_FIGURES};
use model::figure::{Figure, Section};
use model::{Bytes, Device, Snapshot};
use show::text::clean;

const NA: &str = "N/A";

/// The document. A program called nvidia-smi has that one's root and document type: readers look for both.
pub fn text(snapshot: &Snapshot, sections: &[Section], time: &str, as_nvidia: bool) -> String {
    let mut xml = Xml { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".into(), depth: 0 };
    let root = if as_nvidia { "nvidia_smi_log" } else { "ttmon_log" };
    if as_nvidia {
        xml.line("<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">");
    }
    xml.open(root, "");
    xml.element("timestamp", Some(time));
    xml.element(DRIVER_VERSION.name, DRIVER_VERSION.text(snapshot).as_deref());
    xml.element("attached_gpus", Some(&snapshot.devices.len().to_string()));
    xml.element("simulated", Some(if snapshot.host.simulated { "yes" } else { "no" }));
    xml.open("host", "");
    figures_of_machine(snapshot).for_each(|figure| xml.figures(figure, snapshot));
    xml.close("host");
    for device in &snapshot.devices {
        device_of(&mut xml, snapshot, device, sections);
    }
    xml.close(root);
    xml.text
}

fn device_of(xml: &mut Xml, snapshot: &Snapshot, device: &Device, sections: &[Section]) {
    let address = device.pci_address.as_ref().map(|address| address.0.to_string());
    let id =
        format!(" id=\"{}\" device=\"{}\"", escaped(address.as_deref().unwrap_or(NA)), escaped(&device.id.to_string()));
    xml.open("gpu", &id);
    xml.element("product_name", device.board.as_ref().map(|board| format!("Tenstorrent {board}")).as_deref());
    xml.element("product_brand", Some("Tenstorrent"));
    xml.element("product_architecture", device.arch.map(|arch| arch.name()));
    xml.element("serial", device.serial.as_deref());
    xml.element("uuid", device.uuid().as_deref());
    xml.element("minor_number", device.id.index().map(|n| n.to_string()).as_deref());
    xml.element("vbios_version", device.firmware.bundle.as_deref());
    xml.element("state", Some(device.state.name()));
    xml.open("pci", "");
    xml.element("pci_bus_id", address.as_deref());
    xml.close("pci");
    xml.element("fan_speed", None);
    xml.element("performance_state", None);
    xml.open("fb_memory_usage", "");
    let mib = |bytes: Option<Bytes>| bytes.map(|bytes| format!("{} MiB", bytes.0 >> 20));
    let memory = &device.memory;
    xml.element("total", mib(memory.dram_total).as_deref());
    xml.element("used", mib(memory.dram_used).as_deref());
    let free = memory.dram_total.zip(memory.dram_used.filter(|_| memory.untracked_processes == 0));
    xml.element("free", mib(free.and_then(|(total, used)| total.0.checked_sub(used.0)).map(Bytes)).as_deref());
    xml.close("fb_memory_usage");
    xml.open("utilization", "");
    let utilization = model::figure::device::UTILIZATION.number(device);
    xml.element("gpu_util", utilization.map(|percent| format!("{percent:.0} %")).as_deref());
    xml.element("memory_util", None);
    xml.close("utilization");
    xml.open("temperature", "");
    xml.element("gpu_temp", device.asic_temp.map(|temp| format!("{:.0} C", temp.0)).as_deref());
    xml.element("gpu_temp_slow_threshold", device.asic_temp_max.map(|temp| format!("{:.0} C", temp.0)).as_deref());
    xml.close("temperature");
    xml.open("gpu_power_readings", "");
    xml.element("power_draw", device.power.map(|power| format!("{:.2} W", power.0)).as_deref());
    xml.element("current_power_limit", device.power_max.map(|power| format!("{:.2} W", power.0)).as_deref());
    xml.close("gpu_power_readings");
    xml.open("clocks", "");
    let clock = device.aiclk.map(|clock| format!("{} MHz", clock.0));
    xml.element("graphics_clock", clock.as_deref());
    xml.element("sm_clock", clock.as_deref());
    xml.element("mem_clock", None);
    xml.close("clocks");
    xml.open("processes", "");
    for row in ProcessRow::all(snapshot).into_iter().filter(|row| row.held.id == device.id) {
        xml.open("process_info", "");
        xml.element("pid", Some(&row.process.pid.to_string()));
        xml.element("type", Some("C"));
        xml.element("process_name", row.process.name.as_deref());
        let used = model::figure::process::HELD_DRAM_USED.number(row.held);
        xml.element("used_memory", used.map(|bytes| format!("{:.0} MiB", (bytes / 1_048_576.0).floor())).as_deref());
        PROCESS_FIGURES.iter().for_each(|figure| xml.figures(figure, row.process));
        HELD_FIGURES.iter().filter(|figure| **figure != &DEVICE).for_each(|figure| xml.figures(figure, row.held));
        xml.close("process_info");
    }
    xml.close("processes");
    for section in sections.iter().filter(|section| **section != Section::Pids) {
        let figures: Vec<_> = figures_of(device).filter(|figure| figure.section == *section).collect();
        if figures.is_empty() && *section != Section::Raw {
            continue;
        }
        xml.open("section", &format!(" name=\"{}\"", section.name()));
        figures.into_iter().for_each(|figure| xml.figures(figure, device));
        if *section == Section::Raw {
            xml.tags(device);
        }
        xml.close("section");
    }
    xml.close("gpu");
}

struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    fn line(&mut self, line: &str) {
        self.text += &format!("{}{line}\n", "\t".repeat(self.depth));
    }

    fn open(&mut self, name: &str, attributes: &str) {
        self.line(&format!("<{name}{attributes}>"));
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(&format!("</{name}>"));
    }

    fn element(&mut self, name: &str, value: Option<&str>) {
        self.line(&format!("<{name}>{}</{name}>", escaped(value.unwrap_or(NA))));
    }

    /// The figure, or each of its labels that has a value, with name and unit.
    fn figures<S>(&mut self, figure: &'static Figure<S>, subject: &S) {
        for field in figure.fields() {
            let value = field.value(subject);
            if value.is_none() && figure.dimension.is_some() {
                continue;
            }
            let unit = Some(figure.unit.symbol()).filter(|unit| !unit.is_empty());
            let unit = unit.map_or_else(String::new, |unit| format!(" unit=\"{}\"", escaped(unit)));
            let value = value.map_or_else(|| NA.to_owned(), |value| figure.unit.plain_text(&value));
            self.line(&format!("<figure name=\"{}\"{unit}>{}</figure>", escaped(&field.name()), escaped(&value)));
        }
    }
}

impl Xml {
    /// The firmware's table as it was read.
    fn tags(&mut self, device: &Device) {
        for tag in device.deep.iter().flat_map(|deep| &deep.tags) {
            let name = device.arch.and_then(|arch| tag.name(arch)).unwrap_or_default();
            self.line(&format!("<tag number=\"{}\" name=\"{name}\">{:#010x}</tag>", tag.tag, tag.value));
        }
    }
}

/// Text of processes may hold anything.
fn escaped(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
