//! Whole machines, with real processes.

use sim::tree::Chip;
use sim::{SimMachine, Spec};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn machine(spec: &str) -> SimMachine {
    SimMachine::start(&spec.parse::<Spec>().unwrap(), program()).unwrap()
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sim-workload"))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn class(machine: &SimMachine, index: u32, name: &str) -> PathBuf {
    machine.root().join(format!("sys/class/tenstorrent/tenstorrent!{index}/{name}"))
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).trim_end().to_owned()
}

fn value(machine: &SimMachine, index: u32, name: &str) -> u64 {
    read(class(machine, index, name)).parse().unwrap()
}

fn pids(root: &Path, index: u32) -> Vec<u32> {
    let text = fs::read_to_string(root.join(format!("proc/driver/tenstorrent/{index}/pids"))).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn region(root: &Path, number: u64) -> Vec<u8> {
    fs::read(root.join(format!("dev/shm/tt_device_{number}_memory"))).unwrap()
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// All files below a folder with their bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(files(&entry.path())),
            kind if kind.is_file() => _ = found.insert(entry.path(), fs::read(entry.path()).unwrap()),
            _ => {}
        }
    }
    found
}

/// What the seed decides: the files of the driver, and how much memory is used.
fn decided(machine: &SimMachine) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = machine.root();
    let inside = |files: BTreeMap<PathBuf, Vec<u8>>| {
        files.into_iter().map(|(path, bytes)| (path.strip_prefix(root).unwrap().to_owned(), bytes))
    };
    let totals = |(path, bytes): (PathBuf, Vec<u8>)| (path, bytes.get(48..88).unwrap_or_default().to_vec());
    inside(files(&root.join("sys"))).chain(inside(files(&root.join("dev/shm"))).map(totals)).collect()
}

#[test]
fn a_seed_decides_everything() {
    let after = |spec: &str, steps: &[u64]| {
        let mut machine = machine(spec);
        steps.iter().for_each(|step| machine.advance(Duration::from_millis(*step)).unwrap());
        decided(&machine)
    };
    let steps = [100, 50, 50, 1000, 3800];
    let one = after("mixed,seed=1,hang=3@2s", &steps);
    assert_eq!(one, after("mixed,seed=1,hang=3@2s", &steps));
    assert_eq!(one, after("mixed,seed=1,hang=3@2s", &[5000]), "the size of the steps does not matter");
    assert_ne!(one, after("mixed,seed=2,hang=3@2s", &steps));
}

#[test]
fn folders_of_killed_machines_are_removed_and_those_of_living_ones_stay() {
    let living = machine("n150,idle");
    let place = living.root().parent().unwrap();
    let folder = |name: &str, file: &str| {
        let folder = place.join(format!("ttmon-sim-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(file), "").unwrap();
        folder
    };
    let (killed, foreign) = (folder("killed", ".simulated"), folder("foreign", "notes"));
    let second = machine("n150,idle");
    assert!(!killed.exists(), "nobody locks its mark");
    assert!(living.root().exists() && second.root().exists() && foreign.exists());
    fs::remove_dir_all(foreign).unwrap();
}

#[test]
fn processes_hold_devices_and_look_like_ttnn() {
    let machine = machine("p150x4");
    let root = machine.root();
    let server = pids(root, 0)[0];
    assert_eq!(pids(root, 0), [server, server], "tt-umd opens a device twice");
    assert_eq!(pids(root, 1), [server, server]);
    assert_ne!(pids(root, 2)[0], server);
    assert!(![0, 2].map(|index| pids(root, index)[0]).contains(&pids(root, 3)[0]), "three processes");
    assert_eq!(read(root.join("sys/module/tenstorrent/refcnt")), "8");

    let proc = PathBuf::from(format!("/proc/{server}"));
    assert_eq!(read(proc.join("comm")), "python3");
    assert_eq!(read(proc.join("cmdline")), "python3\0serve_llama.py\0--model\0llama-3.1-8b\0");
    let maps = read(proc.join("maps"));
    for name in ["ttnn/build/lib/libtt_metal.so", "ttnn/build/lib/_ttnncpp.so"] {
        assert!(maps.contains(name), "{name}");
    }
    let open: Vec<PathBuf> =
        fs::read_dir(proc.join("fd")).unwrap().map(|fd| fs::read_link(fd.unwrap().path()).unwrap()).collect();
    assert_eq!(open.iter().filter(|path| **path == root.join("dev/tenstorrent/1")).count(), 2);

    for index in [0, 1] {
        let asic = Chip::p150a(index).asic_id.unwrap();
        let bytes = region(root, asic);
        let name = format!("tt_device_{asic}_memory");
        assert!(maps.contains(&name) && open.iter().any(|path| path.ends_with(&name)));
        assert_eq!((bytes.len(), number(&bytes, 32), bytes[40]), (8576, asic, index as u8));
        assert_eq!(bytes[856..860], server.to_le_bytes());
        assert!(number(&bytes, 864) > 1 << 33, "it has gigabytes of weights");
        let lock = fs::read(root.join(format!("dev/shm/TT_UMD_LOCK.CHIP_IN_USE_{index}_PCIe"))).unwrap();
        assert_eq!((lock.len(), number(&lock, 40)), (56, 0x5454_554D_444D_5458));
        assert_eq!((&lock[48..52], &lock[52..56]), (&server.to_le_bytes()[..], &server.to_le_bytes()[..]));
    }
}

#[test]
fn chips_are_named_as_tt_umd_names_them() {
    let names = |spec: &str| -> Vec<String> {
        let machine = machine(spec);
        let entries = fs::read_dir(machine.root().join("dev/shm")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.starts_with("tt_device_"));
        names.sort();
        names
    };
    let (n300, n150, p300) = (Chip::n300(0), Chip::n150(0), Chip::p300a(1));
    let file = |number: u64| format!("tt_device_{number}_memory");
    assert_eq!(names("n300"), [file(n300.unique_ids()[1]), file(n300.unique_ids()[0])], "the remote chip has one too");
    assert_eq!(names("n150"), [file(n150.serial.unwrap())]);
    assert_eq!(names("p300x2")[..2], [file(p300.serial.unwrap() << 5), file((p300.serial.unwrap() << 5) | 1)]);
    assert_eq!(names("p150,idle").len(), 0);
}

#[test]
fn a_process_counts_chips_in_the_order_of_their_addresses() {
    let machine = machine("galaxy-wh");
    // The first tray by number, with devices 0 to 7, is the last on the bus.
    let chip = |index: u32| {
        let chip = Chip::galaxy_wormhole(index);
        (chip.address.clone(), region(machine.root(), chip.unique_ids()[0])[40])
    };
    assert_eq!(chip(8), ("0000:81:00.0".into(), 0));
    assert_eq!(chip(0), ("0000:c1:00.0".into(), 8));
    let environment = fs::read_to_string(format!("/proc/{}/environ", pids(machine.root(), 0)[0])).unwrap();
    let visible = environment.split('\0').find_map(|line| line.strip_prefix("TT_VISIBLE_DEVICES="));
    assert_eq!(visible, Some("16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"));
}

#[test]
fn values_move_where_there_is_work() {
    let mut machine = machine("p150x3,seed=3");
    let (before, idle_before) = (value(&machine, 0, "tt_heartbeat"), value(&machine, 2, "tt_heartbeat"));
    let counter =
        |machine: &SimMachine, index| value(machine, index, "pcie_perf_counters/mst_posted_wr_data_word_sent0");
    let (traffic, no_traffic) = (counter(&machine, 0), counter(&machine, 2));
    let mut busy = 0;
    for _ in 0..30 {
        machine.advance(seconds(1)).unwrap();
        busy += u32::from(value(&machine, 0, "tt_aiclk") == 1350);
        assert_eq!(value(&machine, 2, "tt_aiclk"), 800);
    }
    assert!(busy > 5, "{busy}");
    assert_eq!(value(&machine, 0, "tt_heartbeat"), before + 300);
    assert_eq!(value(&machine, 2, "tt_heartbeat"), idle_before + 300);
    assert_ne!(counter(&machine, 0), traffic);
    assert_eq!(counter(&machine, 2), no_traffic);
}

#[test]
fn a_reader_never_sees_half_a_value() {
    let mut machine = machine("p150");
    let path = class(&machine, 0, "tt_heartbeat");
    let reader = std::thread::spawn(move || {
        let mut last = 0;
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            let text = fs::read_to_string(&path).unwrap();
            let beats = text.strip_suffix('\n').unwrap().parse::<u64>().unwrap();
            assert!(beats >= last);
            last = beats;
        }
        last
    });
    while !reader.is_finished() {
        machine.advance(Duration::from_millis(100)).unwrap();
    }
    reader.join().unwrap();
}

#[test]
fn a_hung_device_answers_all_ones_and_a_reset_revives_it() {
    let mut machine = machine("p150x2,hang=1@1s,reset=1@2s");
    machine.advance(Duration::from_millis(900)).unwrap();
    assert_eq!(value(&machine, 1, "tt_aiclk"), 800);
    machine.advance(Duration::from_millis(100)).unwrap();
    assert_eq!(read(class(&machine, 1, "tt_serial")), "FFFFFFFFFFFFFFFF");
    assert_eq!(read(class(&machine, 1, "device/current_link_speed")), "Unknown");
    assert_eq!(fs::read(class(&machine, 1, "device/config")).unwrap(), [0xFF; 64]);
    assert_eq!(value(&machine, 1, "device/hwmon/hwmon3/power1_input"), 4_293_967_296);
    assert_ne!(value(&machine, 0, "device/hwmon/hwmon2/power1_input"), 4_293_967_296);
    machine.advance(seconds(4)).unwrap();
    assert_eq!(value(&machine, 1, "tt_aiclk"), 800);
}

#[test]
fn a_reset_is_an_error_and_then_a_new_start() {
    let mut machine = machine("p150x2,reset=0@1s");
    let inject = machine.inject();
    let error =
        |machine: &SimMachine, name: &str| inject(&class(machine, 0, name)).and_then(|error| error.raw_os_error());
    assert_eq!(error(&machine, "tt_heartbeat"), None);
    machine.advance(seconds(1)).unwrap();
    const ENODATA: i32 = 61;
    assert_eq!(error(&machine, "tt_heartbeat"), Some(ENODATA));
    assert_eq!(error(&machine, "device/hwmon/hwmon2/temp1_input"), Some(ENODATA));
    let counter = "pcie_perf_counters/slv_rd_data_word_sent0";
    assert_eq!(error(&machine, counter), None);
    assert_eq!(value(&machine, 0, counter), 4_294_967_295);
    assert!(inject(&class(&machine, 1, "tt_heartbeat")).is_none());
    machine.advance(Duration::from_millis(2900)).unwrap();
    assert_eq!(error(&machine, "tt_heartbeat"), Some(ENODATA));
    machine.advance(Duration::from_millis(100)).unwrap();
    assert_eq!(error(&machine, "tt_heartbeat"), None);
    assert_eq!(value(&machine, 0, "tt_heartbeat"), 1);
    assert!(value(&machine, 0, counter) < 10_000_000, "counted from zero");
    machine.advance(seconds(1)).unwrap();
    assert_eq!(value(&machine, 0, "tt_heartbeat"), 11);
}

#[test]
fn a_killed_process_leaves_its_bytes_and_its_lock() {
    let mut machine = machine("n300,kill=0@1s");
    let ids = Chip::n300(0).unique_ids();
    let pid = pids(machine.root(), 0)[0];
    machine.advance(seconds(1)).unwrap();
    assert!(!alive(pid));
    assert_eq!(pids(machine.root(), 0), [] as [u32; 0]);
    let l1 = |id| number(&region(machine.root(), id), 56);
    assert_ne!(l1(ids[0]), l1(ids[1]), "each chip has memory of its own");
    for (i, id) in ids.into_iter().enumerate() {
        let bytes = region(machine.root(), id);
        assert_eq!(bytes[856..860], pid.to_le_bytes(), "its line");
        assert_eq!((bytes[4], bytes[16], bytes[40]), (1, 1, i as u8), "its attachment");
        assert!(number(&bytes, 48) > 0 && number(&bytes, 48) == number(&bytes, 864), "its bytes");
    }
    let lock = fs::read(machine.root().join("dev/shm/TT_UMD_LOCK.CHIP_IN_USE_0_PCIe")).unwrap();
    assert_eq!(lock[52..56], pid.to_le_bytes());
    machine.advance(seconds(1)).unwrap();
    assert_eq!(value(&machine, 0, "tt_aiclk"), 500, "no process works any more");
}

#[test]
fn a_process_that_is_killed_from_outside_is_noticed() {
    let mut machine = machine("p150");
    let pid = pids(machine.root(), 0)[0];
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    // Until it is a zombie, it is alive.
    std::thread::sleep(Duration::from_millis(100));
    machine.advance(Duration::from_millis(100)).unwrap();
    assert_eq!(pids(machine.root(), 0), [] as [u32; 0]);
}

#[test]
fn a_lost_device_is_nowhere() {
    let mut machine = machine("p150x4,lose=1@1s,hang=1@2s");
    let address = Chip::p150a(1).address;
    let traces = |machine: &SimMachine| {
        let root = machine.root();
        [
            class(machine, 1, ""),
            root.join("sys/class/hwmon/hwmon3"),
            root.join("sys/bus/pci/devices").join(&address),
            root.join("sys/bus/pci/drivers/tenstorrent").join(&address),
            root.join("dev/tenstorrent/1"),
            root.join("proc/driver/tenstorrent/1"),
        ]
        .map(|path| fs::symlink_metadata(path).is_ok())
    };
    assert_eq!(traces(&machine), [true; 6]);
    machine.advance(seconds(3)).unwrap();
    assert_eq!(traces(&machine), [false; 6]);
    assert!(value(&machine, 2, "tt_heartbeat") > 0);
}

#[test]
fn a_frozen_device_measures_on() {
    let mut machine = machine("p150,freeze=0@1s,seed=3");
    machine.advance(seconds(2)).unwrap();
    let beats = value(&machine, 0, "tt_heartbeat");
    let before = decided(&machine);
    machine.advance(seconds(5)).unwrap();
    assert_eq!(value(&machine, 0, "tt_heartbeat"), beats);
    assert_ne!(decided(&machine), before);
}

#[test]
fn a_stuck_device_never_answers() {
    let mut machine = machine("p150x2,stuck=0@1s");
    machine.advance(seconds(1)).unwrap();
    let (inject, path) = (machine.inject(), class(&machine, 0, "tt_aiclk"));
    let reader = std::thread::spawn(move || inject(&path).is_none());
    std::thread::sleep(Duration::from_millis(200));
    assert!(!reader.is_finished());
    assert!(machine.inject()(&class(&machine, 1, "tt_aiclk")).is_none());
}

#[test]
fn what_is_dropped_is_gone() {
    let gone = |root: &Path, pid: u32| !root.exists() && !alive(pid);

    let machine = machine("p150x4");
    let (root, pid) = (machine.root().to_owned(), pids(machine.root(), 2)[0]);
    assert!(!gone(&root, pid));
    let running = machine.run();
    let inject = running.inject();
    let beats = read(root.join("sys/class/tenstorrent/tenstorrent!0/tt_heartbeat"));
    std::thread::sleep(Duration::from_millis(400));
    assert_ne!(read(root.join("sys/class/tenstorrent/tenstorrent!0/tt_heartbeat")), beats, "it runs by itself");
    assert!(inject(&running.root().join("sys/class/tenstorrent/tenstorrent!0/tt_heartbeat")).is_none());
    drop(running);
    assert!(gone(&root, pid));
}

#[test]
fn a_panic_leaves_nothing_either() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let machine = machine("n150");
        sender.send((machine.root().to_owned(), pids(machine.root(), 0)[0])).unwrap();
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    let (root, pid) = receiver.recv().unwrap();
    assert!(!root.exists() && !alive(pid));
}

#[test]
fn a_machine_that_cannot_start_says_why() {
    let error = |program: &str| match SimMachine::start(&Spec::default(), Path::new(program)) {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    };
    assert_eq!(error("/bin/true"), "the workload has ended");
    assert_eq!(error("/nonexistent"), "No such file or directory (os error 2)");
}

#[test]
fn a_workload_closes_properly_on_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(program())
        .env("TTMON_SIM_WORKLOAD", "python3")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut orders, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut tell = |order: &str| {
        writeln!(orders, "{order}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    };
    assert_eq!(tell(r#"{"Lock":{"path":"mark"}}"#), "ok");
    assert_eq!(tell(r#"{"Attach":{"path":"book","asic":77,"device":3}}"#), "ok");
    let amounts = r#"{"dram":1000,"l1":200,"l1_small":3,"trace":40,"cb":5}"#;
    assert_eq!(tell(&format!(r#"{{"Set":{{"region":0,"amounts":{amounts}}}}}"#)), "ok");
    let book = || fs::read(folder.path().join("book")).unwrap();
    assert_eq!([48, 56, 64, 72, 80].map(|at| number(&book(), at)), [1000, 200, 3, 40, 5]);
    assert_eq!(tell(&format!(r#"{{"Set":{{"region":1,"amounts":{amounts}}}}}"#)), "no such region");
    assert_eq!(tell("sing"), "not an order: \"sing\"");
    assert_eq!(tell(r#""Detach""#), "ok");
    assert_eq!(number(&book(), 48), 0);
    assert_eq!((&book()[856..860], &book()[912..919]), (&[0; 4][..], &b"python3"[..]));
    assert_eq!(fs::read(folder.path().join("mark")).unwrap()[48..], [0; 8]);
    drop(orders);
    assert!(child.wait().unwrap().success(), "it ends with its input");
}

#[test]
fn a_driver_that_counts_reports_every_live_process() {
    let mut machine = machine("p150x2,fdinfo,processes,kill=0@2s");
    let pid = pids(machine.root(), 0)[0];
    let text =
        |machine: &SimMachine, fd: u32| fs::read_to_string(machine.root().join(format!("proc/{pid}/fdinfo/{fd}")));
    let busy = |text: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix("drm-engine-tensix:\t")).unwrap();
        line.strip_suffix(" ns").unwrap().parse().unwrap()
    };
    machine.advance(seconds(1)).unwrap();
    let (first, second) = (text(&machine, 3).unwrap(), text(&machine, 4).unwrap());
    assert!((1..=1_000_000_000).contains(&busy(&first)), "{first}");
    assert!(second.contains("drm-client-id:\t2\n") && !second.contains("drm-engine"), "{second}");
    assert_eq!(
        fs::read_link(machine.root().join(format!("proc/{pid}/fd/3"))).unwrap(),
        machine.root().join("dev/tenstorrent/0")
    );
    let allocated: u64 = read(class(&machine, 0, &format!("processes/{pid}/dram_allocated"))).parse().unwrap();
    assert!(first.contains(&format!("drm-resident-dram:\t{} KiB\n", allocated >> 10)), "{first}");
    machine.advance(seconds(2)).unwrap();
    assert!(text(&machine, 3).is_err());
    assert!(!class(&machine, 0, &format!("processes/{pid}")).exists());
}

#[test]
fn a_driver_that_counts_for_devices_counts_all_their_processes() {
    let mut machine = machine("p150x2,processes,memory,memory_stats,kill=0@2s");
    machine.advance(seconds(1)).unwrap();
    for n in [0, 1] {
        let of = |kind: &str| -> u64 {
            let pids: std::collections::BTreeSet<u32> = pids(machine.root(), n).into_iter().collect();
            let files = pids.iter().map(|pid| class(&machine, n, &format!("processes/{pid}/{kind}_allocated")));
            files.map(|file| read(file).parse::<u64>().unwrap()).sum()
        };
        for folder in ["memory", "memory_stats"] {
            let used = |kind| read(class(&machine, n, &format!("{folder}/{kind}_used"))).parse::<u64>().unwrap();
            assert_eq!(used("dram") > 0, n == 0, "device 1 is idle");
            assert_eq!((used("dram"), used("l1")), (of("dram") + of("trace"), of("l1") + of("l1_small") + of("cb")));
        }
    }
    machine.advance(seconds(2)).unwrap();
    assert_eq!(read(class(&machine, 0, "memory/dram_used")), "0");
}

#[test]
fn device_nodes_have_a_telemetry_table_only_where_that_was_asked_for() {
    let node = |machine: &SimMachine, index: u32| read(machine.root().join(format!("dev/tenstorrent/{index}")));
    assert_eq!(node(&machine("p150x1,idle"), 0), "");
    let mut deep = machine("p150x2,deep,hang=1@3s");
    let first = node(&deep, 0);
    assert!(first.starts_with("0x80030434 = 0x10001000\n0x80030430 = 0x"), "{first}");
    // The version in the table is that of the driver's file.
    assert!(first.contains(" = 0x130f0000\n") && read(class(&deep, 0, "tt_fw_bundle_ver")) == "19.15.0.0");
    deep.advance(seconds(4)).unwrap();
    let later = node(&deep, 0);
    assert!(later != first && later.len() == first.len(), "{later}");
    assert_eq!(node(&deep, 1), "0x80030434 = 0xffffffff\n0x80030430 = 0xffffffff");
}
