//! What nvidia-smi changes or shows and ttmon does not: one sentence for each option and command.

use std::ffi::OsString;

/// Options or a command of nvidia-smi, what they do there, and what to use here.
struct Control {
    names: &'static [&'static str],
    there: &'static str,
    here: &'static str,
    /// Whether it changes something, which ttmon never does.
    changes: bool,
}

const fn control(names: &'static [&'static str], there: &'static str, here: &'static str) -> Control {
    Control { names, there, here, changes: true }
}

/// One that only shows something.
const fn shows(names: &'static [&'static str], there: &'static str, here: &'static str) -> Control {
    Control { names, there, here, changes: false }
}

const FIRMWARE: &str = "the firmware decides, and the driver has no setting for it";
const RESET: &str = "the official tt-smi resets devices, with `python3 -m tt_smi -r` (pip install tt-smi)";
const NO_ECC: &str = "the driver publishes no memory errors";
const NO_PARTS: &str = "a chip cannot be divided; choose devices with TT_VISIBLE_DEVICES";
const NO_GRAPHICS: &str = "the chips have no graphics or video units";

const NO_LINK_COUNTERS: &str =
    "nothing is counted: the driver publishes no counters of Ethernet links; `ttmon smi nvlink -s` lists the links";

/// Looked at only where a command line is invalid. An option of a command has its name in front.
#[rustfmt::skip]
const CONTROLS: &[Control] = &[
    control(&["-r", "--gpu-reset"], "resets a device", RESET),
    control(&["-pl", "--power-limit", "-sc", "--scope"], "sets the power limit", "the limit is the board's; `ttmon smi -q -d POWER` shows it"),
    control(&["-pm", "--persistence-mode"], "keeps the driver loaded", "the tenstorrent driver always stays loaded"),
    control(&["-lgc", "--lock-gpu-clocks", "-rgc", "--reset-gpu-clocks", "-lmc", "--lock-memory-clocks", "-rmc", "--reset-memory-clocks", "-lmcd", "--lock-memory-clocks-deferred", "-rmcd", "--reset-memory-clocks-deferred"], "locks or releases clocks", FIRMWARE),
    control(&["-ac", "--applications-clocks", "-rac", "--reset-applications-clocks", "-acp", "--applications-clocks-permission", "--auto-boost-default", "--auto-boost-permission", "--cuda-clocks"], "sets the clocks of applications", FIRMWARE),
    control(&["-e", "--ecc-config", "-p", "--reset-ecc-errors"], "switches ECC, or clears its counters", NO_ECC),
    control(&["-c", "--compute-mode"], "says who may use a device", "here -c N is how many times to print; tt-metal locks the devices that a process uses, and `ttmon smi -q -d PIDS` shows who"),
    control(&["-am", "--accounting-mode", "-caa", "--clear-accounted-apps", "-abc", "--accounting-buffer-size"], "keeps accounts of processes", "`ttmon serve` keeps a record of exited processes"),
    shows(&["--query-accounted-apps", "--help-query-accounted-apps"], "lists exited processes", "`ttmon serve` keeps a record of them, and its API has them at /api/v1/deaths"),
    shows(&["--query-retired-pages", "--help-query-retired-pages", "--query-remapped-rows", "--help-query-remapped-rows"], "lists memory that was taken out of use", NO_ECC),
    shows(&["--query-supported-clocks", "--help-query-supported-clocks"], "lists clocks that can be set", FIRMWARE),
    control(&["--gom", "-gtt", "--gpu-target-temp", "-dm", "--driver-model", "-fdm", "--force-driver-model", "-vm", "--virt-mode", "-cc", "-mig", "--multi-instance-gpu", "--gpu-recovery", "-den", "--display-engine", "--set-hostname", "--get-hostname"], "changes how a device or its driver works", "ttmon changes nothing"),
    shows(&["-u", "--unit", "-t", "--toggle-led"], "shows the units of an S-class system", "there are none; `ttmon smi -q` shows the devices"),
    shows(&["-B", "--list-excluded-gpus"], "lists devices that the driver leaves out", "`ttmon smi -L` lists those without a driver, too"),
    shows(&["--dtd"], "prints the document type with the XML", "the XML of `ttmon smi -q -x` has none"),
    control(&["mig", "vgpu"], "divides a device", NO_PARTS),
    control(&["drain"], "takes a device out of use", "stop its processes (`ttmon smi -q -d PIDS` lists them) and unbind the driver"),
    control(&["clocks", "boost-slider", "power-hint", "power-smoothing", "power-profiles", "gsp"], "sets clocks or power", FIRMWARE),
    control(&["compute-policy", "conf-compute", "prm"], "changes how devices are shared or protected", "ttmon changes nothing"),
    shows(&["encodersessions", "fbcsessions"], "lists sessions of video units", NO_GRAPHICS),
    shows(&["stats"], "prints samples of figures", "use `ttmon smi dmon`, or `ttmon record`"),
    shows(&["daemon", "replay"], "records in the background", "use `ttmon record -o FILE`, and `ttmon top --replay FILE`"),
    shows(&["nvlink -e", "nvlink -ec", "nvlink --errorcounters", "nvlink -re", "nvlink --reseterrorcounters"], "counts errors of links", NO_LINK_COUNTERS),
    shows(&["nvlink -g", "nvlink --getcounters", "nvlink -gt", "nvlink --getthroughput", "nvlink -gc", "nvlink --getcontrol", "nvlink -sc", "nvlink --setcontrol", "nvlink -r", "nvlink --resetcounters"], "counts traffic of links", NO_LINK_COUNTERS),
    shows(&["nvlink -c", "nvlink --capabilities"], "shows what links can do", "use `ttmon smi nvlink -s`: it lists the Ethernet links, and no more is published of them"),
    shows(&["nvlink -p", "nvlink --pcibusid", "nvlink -R", "nvlink --remotelinkinfo"], "shows the other ends of links", "use `ttmon smi nvlink -s`, which has them"),
    shows(&["topo -p2p", "topo --p2pstatus"], "shows which devices reach each other's memory", "use `ttmon smi topo -m`: it shows which chips are joined by Ethernet links"),
    shows(&["topo -c", "topo --cpu", "topo -C", "topo -M", "topo -n", "topo --nearest_gpus", "topo -p", "topo --gpu_path", "topo -mp", "topo --matrix_pci"], "shows paths over PCIe and CPUs", "use `ttmon smi -q -d IDENTITY`: it has the NUMA node of each device"),
    shows(&["c2c"], "shows links between processors", "use `ttmon smi nvlink -s` for Ethernet links"),
];

/// The sentence for the first word that nvidia-smi knows, in a command line that is invalid here: of `smi`, or of a command of it. Only
/// words that may be the mistake count.
pub fn refused(command: Option<&str>, arguments: &[OsString], may_be_wrong: impl Fn(&str) -> bool) -> Option<String> {
    let words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let names = words.map(|word| word.split('=').next().unwrap_or(word));
    names.filter(|name| may_be_wrong(name)).find_map(|name| {
        let name = command.map_or_else(|| name.to_owned(), |command| format!("{command} {name}"));
        let control = CONTROLS.iter().find(|control| control.names.contains(&name.as_str()))?;
        let only_watches = if control.changes { "ttmon only watches: " } else { "here " };
        Some(format!("{name} {} in nvidia-smi; {only_watches}{}", control.there, control.here))
    })
}

/// What nvidia-smi has and ttmon does not, with the reason.
pub fn help() -> String {
    let row = |control: &Control| {
        let only_watches = if control.changes { "ttmon only watches: " } else { "" };
        format!("{}\n    {} there; {only_watches}{}\n", control.names.join(", "), control.there, control.here)
    };
    let works = "-L, -q, -d, -x, -i, -f, -l, -lms, --query-gpu, --query-compute-apps, --format, dmon, pmon, topo -m and nvlink -s";
    let rows: String = CONTROLS.iter().map(row).collect();
    format!("{works}\nwork as in nvidia-smi. `ttmon help fields` lists the fields.\n\nThese do not:\n\n{rows}")
}

/// The table for the page of habits.
#[cfg(test)]
pub fn table() -> String {
    let row = |control: &Control| {
        let names: Vec<String> = control.names.iter().map(|name| format!("`{name}`")).collect();
        format!("| {} | {} | {} |\n", names.join(", "), control.there, control.here)
    };
    format!(
        "| what is refused | what it does there | here |\n|---|---|---|\n{}",
        CONTROLS.iter().map(row).collect::<String>()
    )
}
