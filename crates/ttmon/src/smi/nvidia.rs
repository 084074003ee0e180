//! nvidia-smi's names for figures, in nvidia-smi's units.

use super::csv_fields::{CsvField, CsvRow, CsvValue, NumberForm};
use super::nvidia_unknown;
use model::Device;
use model::figure::device::{
    AICLK, ASIC_TEMP, DRAM_TOTAL, DRAM_USED, PCI_ADDRESS, POWER, POWER_MAX, SERIAL, UTILIZATION,
};
use model::figure::process::{HELD_DRAM_USED, NAME};
use model::figure::{Field, Figure, Unit};

const MIB: f64 = 1024.0 * 1024.0;

pub const fn field(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
    form: NumberForm,
    value: CsvValue,
) -> CsvField {
    use std::borrow::Cow::Borrowed;
    CsvField { name: Borrowed(name), aliases, help: Borrowed(help), form, value }
}

const fn of(figure: &'static Figure<Device>) -> CsvValue {
    CsvValue::Device(Field { figure, label: 0 })
}

const fn number(unit: &'static str, scale: f64, decimals: usize) -> NumberForm {
    NumberForm::Nvidia { unit, scale, decimals }
}

const TEXT: NumberForm = NumberForm::Own(Unit::Text);

/// Its names for figures of a device.
#[rustfmt::skip]
pub fn device_fields() -> Vec<CsvField> {
    vec![
        field("name", &["gpu_name"], "nvidia-smi's: maker and board.", TEXT, CsvValue::Composed(maker_and_board)),
        field("uuid", &["gpu_uuid"], "nvidia-smi's: TT- and the chip id; -i accepts it.", TEXT, CsvValue::Composed(uuid)),
        field("count", &[], "nvidia-smi's: how many devices are shown.", TEXT, CsvValue::Composed(|row| Some(row.snapshot.devices.len().to_string()))),
        field("pci.bus_id", &["gpu_bus_id"], "nvidia-smi's: PCI address.", TEXT, of(&PCI_ADDRESS)),
        field("pci.domain", &[], "nvidia-smi's: PCI domain, hexadecimal.", TEXT, CsvValue::Composed(|row| part_of_address(row, 0))),
        field("pci.bus", &[], "nvidia-smi's: PCI bus, hexadecimal.", TEXT, CsvValue::Composed(|row| part_of_address(row, 1))),
        field("pci.device", &[], "nvidia-smi's: PCI device, hexadecimal.", TEXT, CsvValue::Composed(|row| part_of_address(row, 2))),
        field("temperature.gpu", &[], "nvidia-smi's: chip temperature in whole °C.", number("", 1.0, 0), of(&ASIC_TEMP)),
        field("fan.speed", &[], "nvidia-smi's: not measured in percent; see the fan speed in rpm.", number("%", 1.0, 0), CsvValue::Unmeasured),
        field("power.draw", &["power.draw.instant"], "nvidia-smi's: power of the chip.", number("W", 1.0, 2), of(&POWER)),
        field("power.limit", &["enforced.power.limit", "power.max_limit"], "nvidia-smi's: power limit of the chip.", number("W", 1.0, 2), of(&POWER_MAX)),
        field("clocks.gr", &["clocks.current.graphics", "clocks.sm", "clocks.current.sm"], "nvidia-smi's: clock of the Tensix cores.", number("MHz", 1.0, 0), of(&AICLK)),
        field("memory.used", &[], "nvidia-smi's: DRAM used.", number("MiB", MIB, 0), of(&DRAM_USED)),
        field("memory.total", &[], "nvidia-smi's: physical DRAM.", number("MiB", MIB, 0), of(&DRAM_TOTAL)),
        field("memory.free", &[], "nvidia-smi's: physical DRAM less DRAM used.", number("MiB", MIB, 0), CsvValue::Composed(free)),
        field("utilization.gpu", &[], "nvidia-smi's: utilization in whole percent.", number("%", 1.0, 0), of(&UTILIZATION)),
        field("utilization.memory", &[], "nvidia-smi's: not measured.", number("%", 1.0, 0), CsvValue::Unmeasured),
    ]
}

/// Its names for figures of a process on a device.
#[rustfmt::skip]
pub fn process_fields() -> Vec<CsvField> {
    vec![
        field("process_name", &[], "nvidia-smi's: short name.", TEXT, CsvValue::Process(Field { figure: &NAME, label: 0 })),
        field("gpu_name", &[], "nvidia-smi's: maker and board.", TEXT, CsvValue::Composed(maker_and_board)),
        field("gpu_uuid", &[], "nvidia-smi's: TT- and the chip id.", TEXT, CsvValue::Composed(uuid)),
        field("gpu_bus_id", &[], "nvidia-smi's: PCI address.", TEXT, of(&PCI_ADDRESS)),
        field("gpu_serial", &[], "nvidia-smi's: board id.", TEXT, of(&SERIAL)),
        field("used_gpu_memory", &["used_memory"], "nvidia-smi's: DRAM used on the device.", number("MiB", MIB, 0), CsvValue::Held(Field { figure: &HELD_DRAM_USED, label: 0 })),
    ]
}

/// A number for every chip, as scripts expect: those without PCIe come after all others.
pub fn index(field: CsvField) -> CsvField {
    let help = format!("{} A chip without PCIe has a number after all others; -i accepts it.", field.help).into();
    let number = |row: &CsvRow<'_>| {
        let id = &row.device?.id;
        row.numbers.iter().find(|(other, _)| other == id).map(|(_, number)| number.to_string())
    };
    CsvField { help, value: CsvValue::Composed(number), ..field }
}

/// A field of nvidia-smi that nothing here measures.
pub fn unmeasured(name: &str) -> Option<CsvField> {
    let unit = nvidia_unknown::unit(name)?;
    let form = if unit.is_empty() { TEXT } else { number(unit, 1.0, 0) };
    Some(CsvField { name: name.to_owned().into(), aliases: &[], help: "".into(), form, value: CsvValue::Unmeasured })
}

fn part_of_address(row: &CsvRow<'_>, n: usize) -> Option<String> {
    let address = &row.device?.pci_address.as_ref()?.0;
    address.split([':', '.']).nth(n).map(|part| format!("0x{}", part.to_uppercase()))
}

fn maker_and_board(row: &CsvRow<'_>) -> Option<String> {
    Some(format!("Tenstorrent {}", row.device?.board.as_ref()?))
}

fn uuid(row: &CsvRow<'_>) -> Option<String> {
    row.device?.uuid()
}

/// Only where every process on the device reports what it uses.
fn free(row: &CsvRow<'_>) -> Option<String> {
    let memory = &row.device?.memory;
    let (total, used) = (memory.dram_total?, memory.dram_used.filter(|_| memory.untracked_processes == 0)?);
    Some((total.0.checked_sub(used.0)? >> 20).to_string())
}
