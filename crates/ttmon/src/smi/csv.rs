//! `--query-device` and `--query-processes`: chosen fields as comma-separated lines, in nvidia-smi's form.

use super::csv_fields::{CsvField, CsvRow, device_fields, process_fields};
use super::process_row::ProcessRow;
use super::{nvidia, nvidia_unknown};
use model::{DeviceId, Snapshot, chip_numbers};
use show::text::{clean, nearest};
use std::borrow::Cow;
use std::fmt::Write;
use watch::exit::{Exit, Failure};

/// What a query's answer has besides the values.
#[derive(Debug, Clone, Copy)]
pub struct CsvForm {
    pub header: bool,
    pub units: bool,
}

pub struct CsvQuery {
    fields: Vec<CsvField>,
    by_process: bool,
    pub form: CsvForm,
    /// The numbers of all chips, where only some are shown.
    pub numbers: Vec<(DeviceId, u32)>,
}

impl CsvQuery {
    pub fn of_devices(names: &[String], form: CsvForm) -> anyhow::Result<CsvQuery> {
        let fields = chosen(names, &device_fields(), typed("--query-device", "--query-gpu"))?;
        Ok(CsvQuery { fields, by_process: false, form, numbers: Vec::new() })
    }

    pub fn of_processes(names: &[String], form: CsvForm) -> anyhow::Result<CsvQuery> {
        let fields = chosen(names, &process_fields(), typed("--query-processes", "--query-compute-apps"))?;
        Ok(CsvQuery { fields, by_process: true, form, numbers: Vec::new() })
    }

    /// The answer, with its header where it begins.
    pub fn text(&self, snapshot: &Snapshot, time: &str, first: bool) -> String {
        let mut text = if self.form.header && first { self.header() } else { String::new() };
        let numbers = &match &self.numbers[..] {
            [] => chip_numbers(&snapshot.devices),
            numbers => numbers.to_vec(),
        };
        if self.by_process {
            for row in ProcessRow::all(snapshot) {
                text += &self.line(&CsvRow { snapshot, device: row.device, process: Some(row), time, numbers });
            }
        } else {
            for device in &snapshot.devices {
                text += &self.line(&CsvRow { snapshot, device: Some(device), process: None, time, numbers });
            }
        }
        text
    }

    fn header(&self) -> String {
        let name = |field: &CsvField| match field.shown_unit().filter(|_| self.form.units) {
            Some(unit) => format!("{} [{unit}]", field.name),
            None => field.name.to_string(),
        };
        self.fields.iter().map(name).collect::<Vec<_>>().join(", ") + "\n"
    }

    fn line(&self, row: &CsvRow<'_>) -> String {
        let cell = |field: &CsvField| match (field.text(row), field.shown_unit().filter(|_| self.form.units)) {
            (None, _) => "[N/A]".to_owned(),
            (Some(value), Some(unit)) => format!("{value} {unit}"),
            (Some(value), None) => quoted(&value).into_owned(),
        };
        self.fields.iter().map(cell).collect::<Vec<_>>().join(", ") + "\n"
    }
}

/// The option as it was typed: nvidia-smi's name for it is another one.
fn typed(ours: &'static str, nvidia: &'static str) -> &'static str {
    if std::env::args_os().any(|word| word.as_encoded_bytes().starts_with(nvidia.as_bytes())) { nvidia } else { ours }
}

fn chosen(names: &[String], fields: &[CsvField], option: &str) -> anyhow::Result<Vec<CsvField>> {
    let find = |name: &String| {
        let name = name.trim();
        let field = fields.iter().find(|field| field.names().any(|known| known.eq_ignore_ascii_case(name)));
        field.map(|field| field.as_typed(name)).or_else(|| nvidia::unmeasured(name)).ok_or_else(|| {
            let near = nearest(name, fields.iter().flat_map(CsvField::names));
            let hint = near.map_or_else(String::new, |near| format!("did you mean {near:?}? "));
            let message = format!("{option}: unknown field {name:?}: {hint}`ttmon smi --help-query` lists all fields");
            Failure::error(Exit::Usage, message)
        })
    };
    names.iter().map(find).collect()
}

/// As RFC 4180 has it where a value would otherwise be taken for several. A value never breaks its line.
pub fn quoted(value: &str) -> Cow<'_, str> {
    let value = clean(value);
    if value.contains([',', '"']) || value != value.trim() {
        format!("\"{}\"", value.replace('"', "\"\"")).into()
    } else {
        value
    }
}

/// All fields with unit and meaning.
pub fn help() -> String {
    let mut text = String::from("Fields for --query-device (also --query-gpu):\n\n");
    describe(&mut text, &device_fields());
    text += "\nFields for --query-processes (also --query-compute-apps), one line per process and device:\n\n";
    describe(&mut text, &process_fields());
    text += &format!("\nWhat is not measured is [N/A]. Always so of nvidia-smi's {}.\n", nvidia_unknown::names());
    text
}

fn describe(text: &mut String, fields: &[CsvField]) {
    for field in fields {
        let names: Vec<&str> = field.names().collect();
        let unit = field.unit().map_or_else(String::new, |unit| format!(" [{unit}]"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{unit}\n    {}", names.join(" | "), field.help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The names of before the table of figures: scripts use them.
    const DEVICE_NAMES: &str = "\
        timestamp id device index pci_address arch board serial gpu_serial asic_id state sample_age_seconds[s] \
        numa_node asic_temp_celsius[°C] asic_temp_max_celsius[°C] power_watts[W] power_max_watts[W] vcore_volts[V] \
        vcore_max_volts[V] current_amperes[A] current_max_amperes[A] fan_rpm[rpm] aiclk_megahertz[MHz] \
        axiclk_megahertz[MHz] arcclk_megahertz[MHz] heartbeat thermal_trips in_use_by_pid foreign_holders \
        pcie_generation pcie.link.gen.current pcie_width pcie.link.width.current pcie_max_generation \
        pcie.link.gen.max pcie_max_width pcie.link.width.max host_to_device_bytes_per_second[B/s] \
        device_to_host_bytes_per_second[B/s] dram_used_bytes[B] dram_total_bytes[B] l1_used_bytes[B] \
        l1_total_bytes[B] l1_small_used_bytes[B] trace_used_bytes[B] cb_used_bytes[B] stale_bytes[B] \
        untracked_processes firmware_bundle vbios_version firmware_dm_app firmware_dm_bootloader firmware_arc \
        firmware_ethernet firmware_tt_flash driver_version name gpu_name uuid gpu_uuid count pci.bus_id gpu_bus_id \
        temperature.gpu fan.speed[%] power.draw[W] power.draw.instant[W] power.limit[W] enforced.power.limit[W] \
        power.max_limit[W] clocks.gr[MHz] clocks.current.graphics[MHz] clocks.sm[MHz] clocks.current.sm[MHz] \
        memory.used[MiB] memory.total[MiB] memory.free[MiB] utilization.gpu[%] utilization.memory[%]";
    const PROCESS_NAMES: &str = "\
        timestamp device id index pid parent_pid user name command container runtime started_at \
        host_memory_bytes[B] host_cpu_percent[%] dram_bytes[B] l1_bytes[B] l1_small_bytes[B] trace_bytes[B] \
        cb_bytes[B] source utilization_percent[%] process_name gpu_name gpu_uuid gpu_bus_id gpu_serial \
        used_gpu_memory[MiB] used_memory[MiB] dram_logical_bytes[B] dram_buffers dram_peak_bytes[B] \
        dram_allocations dram_frees dram_banks dram_bank_allocatable_bytes[B] dram_bank_allocated_bytes[B] \
        dram_bank_free_bytes[B] dram_bank_largest_free_bytes[B] dram_fragmentation_percent[%] \
        dram_bank_age_seconds[s] l1_logical_bytes[B] l1_buffers l1_peak_bytes[B] l1_allocations l1_frees l1_banks \
        l1_bank_allocatable_bytes[B] l1_bank_allocated_bytes[B] l1_bank_free_bytes[B] \
        l1_bank_largest_free_bytes[B] l1_fragmentation_percent[%] l1_bank_age_seconds[s] l1_small_logical_bytes[B] \
        l1_small_buffers l1_small_peak_bytes[B] l1_small_allocations l1_small_frees l1_small_banks \
        l1_small_bank_allocatable_bytes[B] l1_small_bank_allocated_bytes[B] l1_small_bank_free_bytes[B] \
        l1_small_bank_largest_free_bytes[B] l1_small_fragmentation_percent[%] l1_small_bank_age_seconds[s] \
        trace_logical_bytes[B] trace_buffers trace_peak_bytes[B] trace_allocations trace_frees trace_banks \
        trace_bank_allocatable_bytes[B] trace_bank_allocated_bytes[B] trace_bank_free_bytes[B] \
        trace_bank_largest_free_bytes[B] trace_fragmentation_percent[%] trace_bank_age_seconds[s] \
        cb_logical_bytes[B] cb_buffers cb_peak_bytes[B] cb_allocations cb_frees kernel_logical_bytes[B] \
        kernel_buffers kernel_peak_bytes[B] kernel_allocations kernel_frees kernel_bytes[B] agent";

    #[test]
    fn no_two_fields_share_a_name() {
        for fields in [device_fields(), process_fields()] {
            let mut seen = HashSet::new();
            let twice = fields.iter().flat_map(CsvField::names).find(|name| !seen.insert(name.to_lowercase()));
            assert_eq!(twice, None);
        }
    }

    #[test]
    fn the_names_that_scripts_use_stay_understood_and_keep_their_unit() {
        for (names, fields) in [(DEVICE_NAMES, device_fields()), (PROCESS_NAMES, process_fields())] {
            for expected in names.split_whitespace() {
                let (name, unit) = expected.split_once('[').map_or((expected, None), |(name, unit)| (name, Some(unit)));
                let field = fields.iter().find(|field| field.names().any(|known| known == name));
                let field = field.unwrap_or_else(|| panic!("{name} is gone"));
                assert_eq!(field.unit(), unit.map(|unit| unit.trim_end_matches(']')), "{name}");
            }
        }
    }

    #[test]
    fn a_value_that_looks_like_several_is_quoted() {
        assert_eq!(quoted("python3 serve.py"), "python3 serve.py");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\"\n"), "\"say \"\"x\"\"?\"");
    }

    #[test]
    fn a_wrong_field_is_named_with_the_nearest_one() {
        let form = CsvForm { header: true, units: true };
        let error = CsvQuery::of_devices(&["power.drew".into()], form).err().unwrap();
        assert_eq!(
            error.to_string(),
            "--query-device: unknown field \"power.drew\": did you mean \"power.draw\"? `ttmon smi --help-query` lists all fields"
        );
    }
}
