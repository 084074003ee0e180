//! The files that the driver and the kernel show, as text on disk.
//!
//! A [`Chip`] is one PCI function with all its attributes; [`lay`] writes a machine of them below a root, in the formats of
//! driver 2.10. What is `None` in a chip has no file: so looks an older driver or firmware.

mod chip;
mod files;
mod telemetry;
mod writer;

pub use chip::{Chip, Hwmon, PcieLink};
pub(crate) use files::{File, NO_FAN};
pub use telemetry::telemetry_table;
pub(crate) use telemetry::{is_at_power_limit, is_too_hot};
pub(crate) use writer::TreeWriter;

use std::fs;
use std::io;
use std::path::Path;

/// Lays the machine below `root`: `sys`, `proc/driver/tenstorrent`, `dev/tenstorrent` and an empty `dev/shm`.
///
/// Laying again over what is there writes what changed, each file at once.
pub fn lay(root: &Path, chips: &[Chip], driver_version: &str) -> io::Result<()> {
    lay_with(&mut TreeWriter::new(root)?, chips, driver_version)
}

pub(crate) fn lay_with(writer: &mut TreeWriter, chips: &[Chip], driver_version: &str) -> io::Result<()> {
    for folder in files::FOLDERS {
        writer.folder(folder)?;
    }
    for file in files::module(driver_version) {
        writer.file(&file)?;
    }
    refresh(writer, chips)?;
    for (path, target) in chips.iter().flat_map(files::links) {
        writer.link(&path, &target)?;
    }
    Ok(())
}

/// Writes what changed since the last time.
pub(crate) fn refresh(writer: &mut TreeWriter, chips: &[Chip]) -> io::Result<()> {
    writer.file(&files::reference_count(chips))?;
    for file in chips.iter().flat_map(files::of) {
        writer.file(&file)?;
    }
    Ok(())
}

/// Unloads the driver: what is left of the chips are their PCI functions.
pub(crate) fn unload(root: &Path, chips: &[Chip]) -> io::Result<TreeWriter> {
    chips.iter().try_for_each(|chip| remove(root, chip))?;
    gone(fs::remove_dir_all(root.join("sys/module/tenstorrent")))?;
    gone(fs::remove_dir_all(root.join("sys/bus/pci/drivers/tenstorrent")))?;
    gone(fs::remove_dir_all(root.join("sys/class/tenstorrent")))?;
    let mut writer = TreeWriter::new(root)?;
    for chip in chips.iter().map(|chip| Chip { bound: false, ..chip.clone() }) {
        files::of(&chip).iter().try_for_each(|file| writer.file(file))?;
        files::links(&chip).iter().try_for_each(|(path, target)| writer.link(path, target))?;
    }
    Ok(writer)
}

/// Takes a chip off the bus: all its files and links go.
pub fn remove(root: &Path, chip: &Chip) -> io::Result<()> {
    // The links from outside go first, so that a reader that follows one never finds half a device.
    for (path, _) in files::links(chip) {
        gone(fs::remove_file(root.join(path)))?;
    }
    gone(fs::remove_file(root.join(chip.node())))?;
    gone(fs::remove_dir_all(root.join(chip.proc_folder())))?;
    gone(fs::remove_dir_all(root.join(chip.pci_folder())))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::os::unix::fs::PermissionsExt;

    /// Every file with mode and text, every link with its target, every empty folder.
    fn listing(root: &Path, folder: &str) -> String {
        let mut names: Vec<String> =
            fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let mut text = String::new();
        for path in names.iter().filter(|name| !name.starts_with('.')).map(|name| format!("{folder}/{name}")) {
            let path = path.trim_start_matches('/');
            let metadata = fs::symlink_metadata(root.join(path)).unwrap();
            if metadata.is_symlink() {
                let target = fs::read_link(root.join(path)).unwrap();
                assert!(root.join(path).exists(), "{path} leads nowhere: {target:?}");
                text += &format!("{path} -> {}\n", target.display());
            } else if metadata.is_dir() {
                let below = listing(root, path);
                text += &if below.is_empty() { format!("{path}/\n") } else { below };
            } else {
                let bytes = fs::read(root.join(path)).unwrap();
                let value = if path.ends_with("/config") {
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
                } else {
                    format!("{:?}", String::from_utf8(bytes).unwrap())
                };
                text += &format!("{path} {:o} {value}\n", metadata.permissions().mode() & 0o777);
            }
        }
        text
    }

    /// The listing of a machine with one chip, whose folder is written as `PCI`.
    fn laid(chip: &Chip) -> String {
        let root = tempfile::tempdir().unwrap();
        lay(root.path(), std::slice::from_ref(chip), "2.10.0").unwrap();
        listing(root.path(), "").replace(&format!("{}/", chip.pci_folder()), "PCI/")
    }

    #[test]
    fn the_files_of_a_p150a() {
        expect![[r#"
            dev/shm/
            dev/tenstorrent/0 666 ""
            dev/tenstorrent/by-id/blackhole-9502D76FEF3BE07A -> ../0
            proc/driver/tenstorrent/0/pids 444 "4711\n4711\n"
            sys/bus/pci/devices/0000:01:00.0 -> ../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0
            sys/bus/pci/drivers/tenstorrent/0000:01:00.0 -> ../../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0
            sys/class/hwmon/hwmon2 -> ../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/hwmon/hwmon2
            sys/class/tenstorrent/tenstorrent!0 -> ../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/tenstorrent/tenstorrent!0
            sys/dev/char/240:0 -> ../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/tenstorrent/tenstorrent!0
            PCI/class 444 "0x120000\n"
            PCI/config 644 521e40b106041000000000120000000000000000000000000000000000000000000000000000000000000000521e400000000000000000000000000000000000
            PCI/current_link_speed 444 "32.0 GT/s PCIe\n"
            PCI/current_link_width 444 "16\n"
            PCI/device 444 "0xb140\n"
            PCI/driver -> ../../../../bus/pci/drivers/tenstorrent
            PCI/enable 644 "1\n"
            PCI/hwmon/hwmon2/curr1_input 444 "25000\n"
            PCI/hwmon/hwmon2/curr1_label 444 "current\n"
            PCI/hwmon/hwmon2/curr1_max 444 "200000\n"
            PCI/hwmon/hwmon2/device -> ../../../0000:01:00.0
            PCI/hwmon/hwmon2/fan1_input 444 "1200\n"
            PCI/hwmon/hwmon2/fan1_label 444 "fan_rpm\n"
            PCI/hwmon/hwmon2/in0_input 444 "720\n"
            PCI/hwmon/hwmon2/in0_label 444 "vcore\n"
            PCI/hwmon/hwmon2/in0_max 444 "900\n"
            PCI/hwmon/hwmon2/name 444 "blackhole\n"
            PCI/hwmon/hwmon2/power1_input 444 "18000000\n"
            PCI/hwmon/hwmon2/power1_label 444 "power\n"
            PCI/hwmon/hwmon2/power1_max 444 "150000000\n"
            PCI/hwmon/hwmon2/subsystem -> ../../../../../../class/hwmon
            PCI/hwmon/hwmon2/temp1_input 444 "35000\n"
            PCI/hwmon/hwmon2/temp1_label 444 "asic_temp\n"
            PCI/hwmon/hwmon2/temp1_max 444 "90000\n"
            PCI/max_link_speed 444 "32.0 GT/s PCIe\n"
            PCI/max_link_width 444 "16\n"
            PCI/numa_node 644 "0\n"
            PCI/power_state 444 "D0\n"
            PCI/resource 444 "0x0000380000000000 0x000038001fffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x00000000f0000000 0x00000000f00fffff 0x0000000000140204\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000380800000000 0x0000380fffffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
            PCI/revision 444 "0x00\n"
            PCI/subsystem_device 444 "0x0040\n"
            PCI/subsystem_vendor 444 "0x1e52\n"
            PCI/tenstorrent/tenstorrent!0/dev 444 "240:0\n"
            PCI/tenstorrent/tenstorrent!0/device -> ../../../0000:01:00.0
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_nonposted_wr_data_word_sent0 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_nonposted_wr_data_word_sent1 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_posted_wr_data_word_sent0 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_posted_wr_data_word_sent1 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_rd_data_word_received0 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_rd_data_word_received1 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_nonposted_wr_data_word_received0 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_nonposted_wr_data_word_received1 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_posted_wr_data_word_received0 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_posted_wr_data_word_received1 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_rd_data_word_sent0 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_rd_data_word_sent1 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/subsystem -> ../../../../../../class/tenstorrent
            PCI/tenstorrent/tenstorrent!0/tt_aiclk 444 "800\n"
            PCI/tenstorrent/tenstorrent!0/tt_arcclk 444 "800\n"
            PCI/tenstorrent/tenstorrent!0/tt_asic_id 444 "9502D76FEF3BE07A\n"
            PCI/tenstorrent/tenstorrent!0/tt_axiclk 444 "960\n"
            PCI/tenstorrent/tenstorrent!0/tt_card_type 444 "p150a\n"
            PCI/tenstorrent/tenstorrent!0/tt_fw_bundle_ver 444 "19.6.0.0\n"
            PCI/tenstorrent/tenstorrent!0/tt_heartbeat 444 "36000\n"
            PCI/tenstorrent/tenstorrent!0/tt_m3app_fw_ver 444 "0.24.0.0\n"
            PCI/tenstorrent/tenstorrent!0/tt_serial 444 "0000040331914049\n"
            PCI/tenstorrent/tenstorrent!0/tt_therm_trip_count 444 "0\n"
            PCI/tenstorrent/tenstorrent!0/uevent 644 "MAJOR=240\nMINOR=0\nDEVNAME=tenstorrent/0\n"
            PCI/uevent 644 "DRIVER=tenstorrent\nPCI_CLASS=120000\nPCI_ID=1E52:B140\nPCI_SUBSYS_ID=1E52:0040\nPCI_SLOT_NAME=0000:01:00.0\nMODALIAS=pci:v00001E52d0000B140sv00001E52sd00000040bc12sc00i00\n"
            PCI/vendor 444 "0x1e52\n"
            sys/module/tenstorrent/initstate 444 "live\n"
            sys/module/tenstorrent/parameters/auto_reset_timeout 444 "10\n"
            sys/module/tenstorrent/parameters/dma_address_bits 444 "0\n"
            sys/module/tenstorrent/parameters/idle_power_down_grace_ms 644 "5000\n"
            sys/module/tenstorrent/parameters/max_devices 444 "32\n"
            sys/module/tenstorrent/parameters/power_policy 444 "Y\n"
            sys/module/tenstorrent/parameters/reset_limit 444 "10\n"
            sys/module/tenstorrent/refcnt 444 "2\n"
            sys/module/tenstorrent/version 444 "2.10.0\n"
        "#]].assert_eq(&laid(&Chip { pids: Some(vec![4711, 4711]), ..Chip::p150a(0) }));
    }

    #[test]
    fn the_files_of_an_n300() {
        expect![[r#"
            dev/shm/
            dev/tenstorrent/2 666 ""
            dev/tenstorrent/by-id/wormhole-21F242E4327B67FE -> ../2
            proc/driver/tenstorrent/2/pids 444 ""
            sys/bus/pci/devices/0000:11:00.0 -> ../../../devices/pci0000:10/0000:10:01.1/0000:11:00.0
            sys/bus/pci/drivers/tenstorrent/0000:11:00.0 -> ../../../../devices/pci0000:10/0000:10:01.1/0000:11:00.0
            sys/class/hwmon/hwmon4 -> ../../devices/pci0000:10/0000:10:01.1/0000:11:00.0/hwmon/hwmon4
            sys/class/tenstorrent/tenstorrent!2 -> ../../devices/pci0000:10/0000:10:01.1/0000:11:00.0/tenstorrent/tenstorrent!2
            sys/dev/char/240:2 -> ../../devices/pci0000:10/0000:10:01.1/0000:11:00.0/tenstorrent/tenstorrent!2
            PCI/class 444 "0x120000\n"
            PCI/config 644 521e1e4006041000010000120000000000000000000000000000000000000000000000000000000000000000521e140000000000000000000000000000000000
            PCI/current_link_speed 444 "16.0 GT/s PCIe\n"
            PCI/current_link_width 444 "16\n"
            PCI/device 444 "0x401e\n"
            PCI/driver -> ../../../../bus/pci/drivers/tenstorrent
            PCI/enable 644 "1\n"
            PCI/hwmon/hwmon4/curr1_input 444 "15000\n"
            PCI/hwmon/hwmon4/curr1_label 444 "current1\n"
            PCI/hwmon/hwmon4/curr1_max 444 "160000\n"
            PCI/hwmon/hwmon4/device -> ../../../0000:11:00.0
            PCI/hwmon/hwmon4/in0_input 444 "795\n"
            PCI/hwmon/hwmon4/in0_label 444 "vcore1\n"
            PCI/hwmon/hwmon4/in0_max 444 "1000\n"
            PCI/hwmon/hwmon4/name 444 "wormhole\n"
            PCI/hwmon/hwmon4/power1_input 444 "12000000\n"
            PCI/hwmon/hwmon4/power1_label 444 "power1\n"
            PCI/hwmon/hwmon4/power1_max 444 "85000000\n"
            PCI/hwmon/hwmon4/subsystem -> ../../../../../../class/hwmon
            PCI/hwmon/hwmon4/temp1_input 444 "35000\n"
            PCI/hwmon/hwmon4/temp1_label 444 "asic1_temp\n"
            PCI/hwmon/hwmon4/temp1_max 444 "75000\n"
            PCI/max_link_speed 444 "16.0 GT/s PCIe\n"
            PCI/max_link_width 444 "16\n"
            PCI/numa_node 644 "0\n"
            PCI/power_state 444 "D0\n"
            PCI/resource 444 "0x0000382000000000 0x000038201fffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x00000000f0200000 0x00000000f02fffff 0x0000000000140204\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000382800000000 0x0000382801ffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
            PCI/revision 444 "0x01\n"
            PCI/subsystem_device 444 "0x0014\n"
            PCI/subsystem_vendor 444 "0x1e52\n"
            PCI/tenstorrent/tenstorrent!2/dev 444 "240:2\n"
            PCI/tenstorrent/tenstorrent!2/device -> ../../../0000:11:00.0
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/mst_nonposted_wr_data_word_sent0 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/mst_nonposted_wr_data_word_sent1 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/mst_posted_wr_data_word_sent0 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/mst_posted_wr_data_word_sent1 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/mst_rd_data_word_received0 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/mst_rd_data_word_received1 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/slv_nonposted_wr_data_word_received0 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/slv_nonposted_wr_data_word_received1 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/slv_posted_wr_data_word_received0 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/slv_posted_wr_data_word_received1 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/slv_rd_data_word_sent0 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/pcie_perf_counters/slv_rd_data_word_sent1 444 "0\n"
            PCI/tenstorrent/tenstorrent!2/subsystem -> ../../../../../../class/tenstorrent
            PCI/tenstorrent/tenstorrent!2/tt_aiclk 444 "500\n"
            PCI/tenstorrent/tenstorrent!2/tt_arc_fw_ver 444 "2.37.0.0\n"
            PCI/tenstorrent/tenstorrent!2/tt_arcclk 444 "540\n"
            PCI/tenstorrent/tenstorrent!2/tt_asic_id 444 "21F242E4327B67FE\n"
            PCI/tenstorrent/tenstorrent!2/tt_axiclk 444 "900\n"
            PCI/tenstorrent/tenstorrent!2/tt_card_type 444 "n300\n"
            PCI/tenstorrent/tenstorrent!2/tt_eth_fw_ver 444 "7.2.0\n"
            PCI/tenstorrent/tenstorrent!2/tt_fw_bundle_ver 444 "19.6.0.0\n"
            PCI/tenstorrent/tenstorrent!2/tt_heartbeat 444 "36000\n"
            PCI/tenstorrent/tenstorrent!2/tt_m3app_fw_ver 444 "5.9.0.0\n"
            PCI/tenstorrent/tenstorrent!2/tt_m3bl_fw_ver 444 "129.2.0.0\n"
            PCI/tenstorrent/tenstorrent!2/tt_serial 444 "010001451170C0C6\n"
            PCI/tenstorrent/tenstorrent!2/tt_ttflash_ver 444 "3.6.1.0\n"
            PCI/tenstorrent/tenstorrent!2/uevent 644 "MAJOR=240\nMINOR=2\nDEVNAME=tenstorrent/2\n"
            PCI/uevent 644 "DRIVER=tenstorrent\nPCI_CLASS=120000\nPCI_ID=1E52:401E\nPCI_SUBSYS_ID=1E52:0014\nPCI_SLOT_NAME=0000:11:00.0\nMODALIAS=pci:v00001E52d0000401Esv00001E52sd00000014bc12sc00i00\n"
            PCI/vendor 444 "0x1e52\n"
            sys/module/tenstorrent/initstate 444 "live\n"
            sys/module/tenstorrent/parameters/auto_reset_timeout 444 "10\n"
            sys/module/tenstorrent/parameters/dma_address_bits 444 "0\n"
            sys/module/tenstorrent/parameters/idle_power_down_grace_ms 644 "5000\n"
            sys/module/tenstorrent/parameters/max_devices 444 "32\n"
            sys/module/tenstorrent/parameters/power_policy 444 "Y\n"
            sys/module/tenstorrent/parameters/reset_limit 444 "10\n"
            sys/module/tenstorrent/refcnt 444 "0\n"
            sys/module/tenstorrent/version 444 "2.10.0\n"
        "#]].assert_eq(&laid(&Chip::n300(2)));
    }

    #[test]
    fn a_function_without_driver_is_only_a_function() {
        expect![[r#"
            dev/shm/
            dev/tenstorrent/by-id/
            proc/driver/tenstorrent/
            sys/bus/pci/devices/0000:09:00.0 -> ../../../devices/pci0000:08/0000:08:01.1/0000:09:00.0
            sys/bus/pci/drivers/tenstorrent/
            sys/class/hwmon/
            sys/class/tenstorrent/
            sys/dev/char/
            PCI/class 444 "0x120000\n"
            PCI/config 644 521e40b106041000000000120000000000000000000000000000000000000000000000000000000000000000521e410000000000000000000000000000000000
            PCI/current_link_speed 444 "32.0 GT/s PCIe\n"
            PCI/current_link_width 444 "16\n"
            PCI/device 444 "0xb140\n"
            PCI/enable 644 "0\n"
            PCI/max_link_speed 444 "32.0 GT/s PCIe\n"
            PCI/max_link_width 444 "16\n"
            PCI/numa_node 644 "0\n"
            PCI/power_state 444 "D0\n"
            PCI/resource 444 "0x0000381000000000 0x000038101fffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x00000000f0100000 0x00000000f01fffff 0x0000000000140204\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000381800000000 0x0000381fffffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
            PCI/revision 444 "0x00\n"
            PCI/subsystem_device 444 "0x0041\n"
            PCI/subsystem_vendor 444 "0x1e52\n"
            PCI/uevent 644 "PCI_CLASS=120000\nPCI_ID=1E52:B140\nPCI_SUBSYS_ID=1E52:0041\nPCI_SLOT_NAME=0000:09:00.0\nMODALIAS=pci:v00001E52d0000B140sv00001E52sd00000041bc12sc00i00\n"
            PCI/vendor 444 "0x1e52\n"
            sys/module/tenstorrent/initstate 444 "live\n"
            sys/module/tenstorrent/parameters/auto_reset_timeout 444 "10\n"
            sys/module/tenstorrent/parameters/dma_address_bits 444 "0\n"
            sys/module/tenstorrent/parameters/idle_power_down_grace_ms 644 "5000\n"
            sys/module/tenstorrent/parameters/max_devices 444 "32\n"
            sys/module/tenstorrent/parameters/power_policy 444 "Y\n"
            sys/module/tenstorrent/parameters/reset_limit 444 "10\n"
            sys/module/tenstorrent/refcnt 444 "0\n"
            sys/module/tenstorrent/version 444 "2.10.0\n"
        "#]].assert_eq(&laid(&Chip { bound: false, ..Chip::p150b(1) }));
    }

    /// The lines that change when a chip dies.
    fn died(chip: &Chip) -> String {
        let (before, after) = (laid(chip), laid(&chip.hung()));
        let changed = before.lines().zip(after.lines()).filter(|(a, b)| a != b);
        changed.map(|(_, line)| format!("{line}\n")).collect()
    }

    #[test]
    fn a_hung_chip_reads_all_ones_in_every_file() {
        let blackhole = died(&Chip::p150a(0));
        expect![[r#"
            dev/tenstorrent/by-id/blackhole-FFFFFFFFFFFFFFFF -> ../0
            PCI/config 644 ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
            PCI/current_link_speed 444 "Unknown\n"
            PCI/current_link_width 444 "63\n"
            PCI/hwmon/hwmon2/curr1_input 444 "4294966296\n"
            PCI/hwmon/hwmon2/curr1_max 444 "4294966296\n"
            PCI/hwmon/hwmon2/fan1_input 444 "4294967295\n"
            PCI/hwmon/hwmon2/in0_input 444 "4294967295\n"
            PCI/hwmon/hwmon2/in0_max 444 "65535\n"
            PCI/hwmon/hwmon2/power1_input 444 "4293967296\n"
            PCI/hwmon/hwmon2/power1_max 444 "4293967296\n"
            PCI/hwmon/hwmon2/temp1_input 444 "65535999\n"
            PCI/hwmon/hwmon2/temp1_max 444 "4294966296\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_nonposted_wr_data_word_sent0 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_nonposted_wr_data_word_sent1 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_posted_wr_data_word_sent0 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_posted_wr_data_word_sent1 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_rd_data_word_received0 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/mst_rd_data_word_received1 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_nonposted_wr_data_word_received0 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_nonposted_wr_data_word_received1 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_posted_wr_data_word_received0 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_posted_wr_data_word_received1 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_rd_data_word_sent0 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/pcie_perf_counters/slv_rd_data_word_sent1 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/tt_aiclk 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/tt_arcclk 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/tt_asic_id 444 "FFFFFFFFFFFFFFFF\n"
            PCI/tenstorrent/tenstorrent!0/tt_axiclk 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/tt_card_type 444 "unknown\n"
            PCI/tenstorrent/tenstorrent!0/tt_fw_bundle_ver 444 "255.255.255.255\n"
            PCI/tenstorrent/tenstorrent!0/tt_heartbeat 444 "4294967295\n"
            PCI/tenstorrent/tenstorrent!0/tt_m3app_fw_ver 444 "255.255.255.255\n"
            PCI/tenstorrent/tenstorrent!0/tt_serial 444 "FFFFFFFFFFFFFFFF\n"
            PCI/tenstorrent/tenstorrent!0/tt_therm_trip_count 444 "4294967295\n"
        "#]].assert_eq(&blackhole);
        let wormhole = died(&Chip::n150(0));
        let others: String =
            wormhole.lines().filter(|line| !blackhole.contains(line)).map(|line| format!("{line}\n")).collect();
        expect![[r#"
            dev/tenstorrent/by-id/wormhole-FFFFFFFFFFFFFFFF -> ../0
            PCI/tenstorrent/tenstorrent!0/tt_arc_fw_ver 444 "255.255.255.255\n"
            PCI/tenstorrent/tenstorrent!0/tt_eth_fw_ver 444 "255.15.4095\n"
            PCI/tenstorrent/tenstorrent!0/tt_m3bl_fw_ver 444 "255.255.255.255\n"
            PCI/tenstorrent/tenstorrent!0/tt_ttflash_ver 444 "255.255.255.255\n"
        "#]]
        .assert_eq(&others);
    }

    #[test]
    fn what_an_old_driver_lacks_has_no_file() {
        let root = tempfile::tempdir().unwrap();
        let mut old = Chip { pids: None, heartbeat: None, counters: None, ..Chip::p150a(0) };
        old.hwmon[0].power_max = None;
        lay(root.path(), &[old], "1.34").unwrap();
        let text = listing(root.path(), "");
        for gone in ["pids", "tt_heartbeat", "pcie_perf", "power1_max"] {
            assert!(!text.contains(gone), "{gone}");
        }
        assert!(text.contains("power1_label"), "labels are there in any case");
    }

    #[test]
    fn laying_again_changes_what_changed() {
        let root = tempfile::tempdir().unwrap();
        let mut chip = Chip::p150a(0);
        lay(root.path(), &[chip.clone()], "2.10.0").unwrap();
        let before = listing(root.path(), "");
        chip.aiclk = Some(1350);
        lay(root.path(), &[chip], "2.10.0").unwrap();
        let after = listing(root.path(), "");
        let changed: Vec<_> = before.lines().zip(after.lines()).filter(|(a, b)| a != b).collect();
        assert_eq!(changed.len(), 1);
        assert!(changed[0].1.ends_with(r#"tt_aiclk 444 "1350\n""#));
    }

    #[test]
    fn a_removed_chip_leaves_nothing_but_the_bridge() {
        let root = tempfile::tempdir().unwrap();
        lay(root.path(), &[], "2.10.0").unwrap();
        let without = listing(root.path(), "");
        lay(root.path(), &[Chip::n300(1)], "2.10.0").unwrap();
        remove(root.path(), &Chip::n300(1)).unwrap();
        assert_eq!(listing(root.path(), "").replace("sys/devices/pci0000:08/0000:08:01.1/\n", ""), without);
        remove(root.path(), &Chip::n300(1)).unwrap();
    }
}
