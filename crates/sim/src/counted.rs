//! What a future driver counts for each process: in the texts of its open files (`fdinfo`), and in a folder of each device
//! (`processes`).

use crate::device::SimDevice;
use crate::region::Amounts;
use crate::tree::{Chip, File, TreeWriter};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Which of them it has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counting {
    pub fdinfo: bool,
    pub processes: bool,
}

/// What one process has on one device.
pub(crate) struct Count<'a> {
    pub pid: u32,
    /// Which of the machine's processes it is.
    pub number: usize,
    pub device: &'a SimDevice,
    pub amounts: Amounts,
}

/// The folders that were laid, so that they can go with their processes.
#[derive(Default)]
pub(crate) struct Counted(BTreeSet<String>);

impl Counted {
    /// Brings the files up to date.
    pub fn show(
        &mut self,
        counting: Counting,
        counts: &[Count],
        root: &Path,
        writer: &mut TreeWriter,
    ) -> io::Result<()> {
        let mut folders = BTreeSet::new();
        for count in counts {
            if counting.processes {
                folders.insert(lay_folder(count, writer)?);
            }
            if counting.fdinfo {
                folders.insert(lay_texts(count, root, writer)?);
            }
        }
        for gone in self.0.difference(&folders) {
            // Nothing is left of a device that is lost.
            let _ = fs::remove_dir_all(root.join(gone));
        }
        self.0 = folders;
        Ok(())
    }
}

fn lay_folder(count: &Count, writer: &mut TreeWriter) -> io::Result<String> {
    let folder = format!("{}/processes/{}", count.device.chip.class_folder(), count.pid);
    for (kind, bytes) in kinds(count.amounts) {
        file(writer, format!("{folder}/{kind}_allocated"), format!("{bytes}\n"))?;
    }
    Ok(folder)
}

/// tt-umd opens a device twice: two clients, of which the second only holds on to it.
fn lay_texts(count: &Count, root: &Path, writer: &mut TreeWriter) -> io::Result<String> {
    let chip = &count.device.chip;
    let folder = format!("proc/{}", count.pid);
    for place in [0, 1] {
        let (fd, client) = (3 + 2 * chip.index + place, 1 + 2 * count.number as u32 + place);
        writer.folder(&format!("{folder}/fd"))?;
        writer.link(&format!("{folder}/fd/{fd}"), &root.join(chip.node()).to_string_lossy())?;
        let mut text = common(chip, client);
        if place == 0 {
            for (kind, bytes) in kinds(count.amounts) {
                text += &format!("drm-total-{kind}:\t{0} KiB\ndrm-resident-{kind}:\t{0} KiB\n", bytes >> 10);
            }
            text += &format!("drm-engine-tensix:\t{} ns\n", count.device.busy.as_nanos());
        }
        file(writer, format!("{folder}/fdinfo/{fd}"), text)?;
    }
    Ok(folder)
}

fn common(chip: &Chip, client: u32) -> String {
    let address = &chip.address;
    format!(
        "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t685\ndrm-driver:\ttenstorrent\ndrm-pdev:\t{address}\n\
         drm-client-id:\t{client}\n"
    )
}

fn kinds(amounts: Amounts) -> [(&'static str, u64); 5] {
    let Amounts { dram, l1, l1_small, trace, cb } = amounts;
    [("dram", dram), ("l1", l1), ("l1_small", l1_small), ("trace", trace), ("cb", cb)]
}

fn file(writer: &mut TreeWriter, path: String, text: String) -> io::Result<()> {
    writer.file(&File { path, mode: 0o444, bytes: text.into() })
}
