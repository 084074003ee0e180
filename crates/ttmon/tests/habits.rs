//! Programs called `tt-smi` and `tt-nvtop`, and nvidia-smi's options: what people type and what scripts parse.

use crate::support::{Machine, Run, TTMON, run, ttmon, write_script};
use sim::tree::Chip;
use std::process::Command;

/// A machine with a program called `tt-smi` that looks at it.
fn machine(chips: &[Chip]) -> Machine {
    let machine = Machine::with(chips);
    let script = format!("#!/bin/bash\nexec -a tt-smi '{TTMON}' \"$@\" --root '{}'\n", machine.root());
    std::fs::create_dir(machine.0.path().join("bin")).unwrap();
    write_script(&script, &machine.0.path().join("bin/tt-smi"));
    machine
}

fn path(machine: &Machine) -> String {
    format!("{}/bin:{}", machine.root(), std::env::var("PATH").unwrap())
}

fn tt_smi(machine: &Machine, options: &[&str]) -> Run {
    run(Command::new(machine.0.path().join("bin/tt-smi")).args(options).env("HOME", machine.root()))
}

/// What programs that read tt-smi find, each in its way.
fn consumers(machine: &Machine, names: &[&str]) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/habits/consumers.py");
    let mut python = Command::new("python3");
    let run = run(python.args([script, machine.root()]).args(names).env("PATH", path(machine)));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{names:?}");
    let found: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    names.iter().map(|name| found[name].as_str().unwrap().to_owned()).collect()
}

#[test]
fn programs_that_parse_tt_smi_find_what_they_look_for() {
    let blackhole = machine(&[Chip::p150a(0), Chip::p150b(1)]);
    let wormhole = machine(&[Chip::n150(0)]);
    let keys = "['device_info', 'host_info', 'host_sw_vers', 'processes', 'time']";
    let report = format!("0 True {keys}");
    let boards = "[(0, '0000:01:00.0', 'p150a', 16), (1, '0000:09:00.0', 'p150b', 16)]";
    let boards = format!("{boards} {boards}");
    let expected = [
        ("hottest", "35.0", "35.0"),
        ("clock", "[800, 800]", "[500]"),
        ("power_trace", "True\nTrue", "True"),
        ("usable", "[0, 1]", "[0]"),
        ("inventory", "{'p150a': 1, 'p150b': 1}", "{'n150': 1}"),
        ("links", "[(True, 16), (True, 16)]", "[(True, 16)]"),
        ("health_check", "0 True", "0 True"),
        ("generation", "['Blackhole']", "['Wormhole']"),
        ("system", "0", "0"),
        ("version", "True", "True"),
        ("report", &report, &report),
        ("standard_output", keys, keys),
        ("heartbeat", "True", ""),
        ("boards", &boards, ""),
    ];
    let names: Vec<&str> = expected.iter().map(|(name, ..)| *name).collect();
    let on_wormhole: Vec<&str> = expected.iter().filter(|row| !row.2.is_empty()).map(|(name, ..)| *name).collect();
    assert_eq!(consumers(&blackhole, &names), expected.map(|row| row.1));
    let expected: Vec<&str> = expected.iter().map(|row| row.2).filter(|text| !text.is_empty()).collect();
    assert_eq!(consumers(&wormhole, &on_wormhole), expected);
}

#[test]
fn the_two_chips_of_an_n300_are_one_board() {
    let machine = machine(&[Chip::n300(0), Chip::n300(1)]);
    let [system, boards, inventory] = &consumers(&machine, &["system", "boards", "inventory"])[..] else { panic!() };
    assert_eq!(system, "4", "each of two boards is in both tables");
    assert!(boards.contains("(2, 'N/A', 'n300 R', 16)") && !boards.contains("] [(0, 'N/A'"), "{boards}");
    assert_eq!(boards.matches("'n300 L'").count(), 4, "{boards}");
    assert_eq!(boards.matches("'n300 R'").count(), 2, "{boards}");
    assert_eq!(inventory, "{'n300': 2}");
}

#[test]
fn one_hung_chip_does_not_cost_the_others() {
    let machine = machine(&[Chip::p150a(0), Chip::p150a(1).hung()]);
    assert_eq!(tt_smi(&machine, &["-s"]).code, Some(0));
    assert_eq!(ttmon(&["smi", "--tt-smi", "--root", machine.root()]).code, Some(0));
    assert_eq!(ttmon(&["smi", "--root", machine.root()]).code, Some(15), "other views keep their code");
    assert_eq!(consumers(&machine, &["health_check"]), ["0 True"]);
    assert_eq!(tt_smi(&machine, &["-ls"]).code, Some(0));
    let snapshot: serde_json::Value = serde_json::from_str(&tt_smi(&machine, &["-s"]).out).unwrap();
    let usable = |n: usize| snapshot["device_info"][n]["board_info"]["dram_status"].as_bool();
    assert_eq!((usable(0), usable(1)), (Some(true), Some(false)));
}

#[test]
fn a_reset_is_refused_with_the_command_that_does_it() {
    let machine = machine(&[Chip::p150a(0)]);
    for options in [&["-r"][..], &["-r", "0"], &["--reset", "all"], &["-glx_reset"], &["-glx_reset_auto"]] {
        let run = tt_smi(&machine, options);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(run.err.contains("never resets") && run.err.contains("python3 -m tt_smi "), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1);
    }
}

#[test]
fn a_galaxy_has_trays() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(Command::new("bash")
        .args(["-c", &format!("exec -a tt-smi '{TTMON}' -glx_list_tray_to_device --sim=galaxy-bh,idle")])
        .env("TMPDIR", folder.path()));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let rows: Vec<&str> = run.out.lines().filter(|line| line.starts_with('│')).collect();
    assert_eq!(rows.len(), 4, "{}", run.out);
    assert!(rows[1].contains("│ 2           │ 0x40"), "{}", run.out);
    let none = tt_smi(&machine(&[Chip::p150a(0)]), &["-glx_list_tray_to_device"]);
    assert_eq!(none.code, Some(6), "{}", none.err);
}

#[test]
fn a_file_without_a_name_goes_to_the_folder_of_logs() {
    let machine = machine(&[Chip::p150a(0)]);
    let run = tt_smi(&machine, &["-f"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let logs: Vec<_> = std::fs::read_dir(machine.0.path().join("tt_smi_logs")).unwrap().collect();
    assert_eq!(logs.len(), 1);
    let path = logs[0].as_ref().unwrap().path();
    assert!(run.out.contains(&format!("Saved tt-smi log to: {}", path.display())), "{}", run.out);
    let _: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
}

/// What nvidia-smi's users type, and what comes of it: `0` where it works, `2` where one sentence says why not.
#[rustfmt::skip]
const NVIDIA: &[(&str, i32)] = &[
    ("", 0), ("-L", 0), ("--list-gpus", 0), ("-q", 0), ("--query", 0), ("-q -i 0", 0), ("-q --id=0", 0), ("-q -d MEMORY", 0),
    ("-q -d UTILIZATION,TEMPERATURE", 0), ("-q --display=POWER", 0), ("-q -d CLOCK", 0), ("-q -d PIDS", 0), ("-q -x", 0), ("-q -x -i 0", 0), ("-x -q -f OUT", 0),
    ("-q --xml-format", 0), ("-q -f OUT", 0), ("-i 0", 0), ("-i 0000:01:00.0", 0), ("-i 00000000:01:00.0", 0), ("-l 1 -c 1", 0), ("-l -c 1", 0), ("--loop=1 -c 1", 0),
    ("-lms 50 -c 2", 0), ("--loop-ms=50 -c 2", 0), ("--version", 0), ("-h", 0), ("--help", 0), ("--help-query-gpu", 0), ("--help-query-compute-apps", 0),
    ("--query-gpu=index,name,uuid --format=csv", 0), ("--query-gpu=gpu_name,driver_version,memory.total --format=csv,noheader", 0),
    ("--query-gpu=utilization.gpu,utilization.memory,memory.used,memory.free --format=csv,noheader,nounits", 0),
    ("--query-gpu=pstate,clocks.mem,clocks_throttle_reasons.active,temperature.gpu,fan.speed --format=csv", 0),
    ("--query-gpu=ecc.errors.corrected.volatile.total,mig.mode.current,compute_cap,persistence_mode --format=csv", 0),
    ("--query-gpu=timestamp,power.draw,power.limit,pcie.link.gen.max,pcie.link.width.current --format=csv -i 0", 0),
    ("--query-gpu=pci.bus_id,pci.domain,pci.bus,vbios_version,serial,count --format=csv,noheader", 0),
    ("--query-compute-apps=pid,process_name,used_memory --format=csv", 0), ("--query-compute-apps=gpu_uuid,pid,used_gpu_memory --format=csv,noheader,nounits", 0),
    ("dmon -c 1", 0), ("dmon -c 1 -s pucvmet", 0), ("dmon -c 1 -s m -o DT -d 1 -i 0", 0), ("dmon -c 1 -f OUT", 0), ("pmon -c 1", 0), ("pmon -c 1 -s um", 0), ("pmon -c 1 -o T -i 0", 0),
    ("topo -m", 0), ("topo --matrix", 0), ("nvlink -s", 0), ("nvlink --status", 0),
    ("-r", 2), ("--gpu-reset -i 0", 2), ("-pm 1", 2), ("--persistence-mode=1", 2), ("-pl 250", 2), ("--power-limit=250", 2), ("-lgc 1000,1500", 2), ("-rgc", 2), ("-lmc 5000", 2),
    ("-ac 2505,875", 2), ("-rac", 2), ("-e 0", 2), ("-p 0", 2), ("-c EXCLUSIVE_PROCESS", 2), ("--compute-mode=0", 2), ("-am 1", 2), ("-caa", 2), ("--gom=0", 2), ("-mig 1", 2), ("-u", 2), ("-B", 2),
    ("mig -lgip", 2), ("drain -p 0000:01:00.0 -m 1", 2), ("clocks --sync-boost-mode 1", 2), ("vgpu", 2), ("stats -d pwrDraw", 2), ("daemon", 2), ("encodersessions", 2), ("compute-policy -l", 2),
    ("topo -p2p r", 2), ("topo -c 3", 2), ("nvlink -e", 2), ("nvlink -c", 2), ("nvlink -g 0", 2), ("nvlink -R", 2), ("dmon -s xyz", 2), ("-q -d ECC", 2), ("--query-gpu=nonsense --format=csv", 2), ("--query-supported-clocks=gr --format=csv", 2),
    ("--query-accounted-apps=pid --format=csv", 2), ("--query-retired-pages=cause --format=csv", 2),
];

#[test]
fn what_nvidia_smi_s_users_type_works_or_is_answered_in_one_sentence() {
    assert!(NVIDIA.len() >= 65);
    let machine = Machine::with(&[Chip::p150a(0), Chip::n300(1)]);
    let mut sentences = String::new();
    for (line, expected) in NVIDIA {
        let file = machine.0.path().join("out");
        let line_here = line.replace("OUT", file.to_str().unwrap());
        let words: Vec<&str> = line_here.split_whitespace().collect();
        let run = ttmon(&[&["smi", "--root", machine.root()], &words[..]].concat());
        assert_eq!(run.code, Some(*expected), "{line}: {}{}", run.out, run.err);
        if *expected == 0 {
            assert_eq!(run.err, "", "{line}");
            assert!(!run.out.is_empty() || std::fs::read(&file).is_ok_and(|bytes| !bytes.is_empty()), "{line}");
            continue;
        }
        assert!(run.out.is_empty() && run.err.starts_with("error: "), "{line}: {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{line}: {}", run.err);
        sentences += &format!("{line}\n    {}", run.err.trim_start_matches("error: "));
    }
    expect_test::expect_file!["golden/nvidia-refused.txt"].assert_eq(&sentences);
}

#[test]
fn nvidia_s_words_work_without_smi_before_them() {
    let machine = Machine::with(&[Chip::p150a(0)]);
    for (words, code) in
        [(&["topo", "-m"][..], 0), (&["nvlink", "-s"], 0), (&["-pl", "250"], 2), (&["drain"], 2), (&["mig"], 2)]
    {
        let run = ttmon(&[words, &["--root", machine.root()]].concat());
        assert_eq!(run.code, Some(code), "{words:?}: {}", run.err);
        assert!(code == 0 || run.err.contains("in nvidia-smi; "), "{}", run.err);
    }
}

#[test]
fn xml_is_well_formed_and_has_what_scripts_look_for() {
    let machine = Machine::with(&[Chip::p150a(0), Chip::p150b(1)]);
    let xml = ttmon(&["smi", "-q", "-x", "--root", machine.root()]).out;
    let file = machine.0.path().join("query.xml");
    std::fs::write(&file, xml).unwrap();
    let script = "
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
for gpu in root.findall('gpu'):
    print(gpu.get('id'), gpu.find('product_name').text, float(gpu.find('temperature/gpu_temp').text.split()[0]) > 0,
          int(gpu.find('fb_memory_usage/total').text.split()[0]) > 0, gpu.find('utilization/gpu_util').text, len(gpu.findall('.//figure')) > 40)
";
    let parsed = run(Command::new("python3").args(["-c", script]).arg(&file));
    assert_eq!(
        (parsed.out.as_str(), parsed.err.as_str()),
        ("0000:01:00.0 Tenstorrent p150a True True N/A True\n0000:09:00.0 Tenstorrent p150b True True N/A True\n", "")
    );
}

#[test]
fn a_chip_without_pcie_has_an_index_that_selects_it() {
    let machine = Machine::with(&[Chip::n300(0), Chip::n300(1)]);
    let query = |words: &[&str]| {
        let fixed = ["smi", "--query-gpu=index,id", "--format=csv,noheader", "--root", machine.root()];
        ttmon(&[&fixed[..], words].concat()).out
    };
    assert_eq!(query(&[]), "0, 0\n2, 0R\n1, 1\n3, 1R\n");
    assert_eq!(query(&["-i", "3"]), "3, 1R\n");
    assert_eq!(query(&["-i", "1"]), "1, 1\n3, 1R\n", "a card's number means all its chips");
}

#[test]
fn devices_are_chosen_the_same_way_in_every_command() {
    let machine = Machine::with(&[Chip::p150a(0), Chip::p150b(1)]);
    let root = machine.root();
    let file = machine.0.path().join("one.ttmon");
    let metrics = ttmon(&["metrics", "-i", "1", "--root", root]).out;
    assert!(metrics.contains("device=\"1\"") && !metrics.contains("device=\"0\""), "{metrics}");
    let mem = |option: &str| ttmon(&["mem", option, "1", "--json", "--root", root]);
    let chips = |run: Run| {
        let view: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        view["chips"].as_array().unwrap().len()
    };
    assert_eq!((chips(mem("-i")), chips(mem("--id")), chips(mem("-d"))), (1, 1, 1));
    let recorded =
        ttmon(&["record", "-i", "0000:09:00.0", "-o", file.to_str().unwrap(), "--for", "1s", "--root", root]);
    assert_eq!(recorded.code, Some(0), "{}", recorded.err);
    let dump = ttmon(&["record", "--dump", file.to_str().unwrap()]).out;
    let first: serde_json::Value = serde_json::from_str(dump.lines().next().unwrap()).unwrap();
    assert_eq!(first["devices"].as_array().unwrap().len(), 1);
    assert_eq!(first["devices"][0]["index"], 1);
    for command in ["metrics", "mem", "smi"] {
        let run = ttmon(&[command, "-i", "7", "--root", root]);
        assert_eq!(
            (run.code, run.err.as_str()),
            (Some(6), "error: no device is called \"7\": there are 0, 1\n"),
            "{command}"
        );
    }
}
