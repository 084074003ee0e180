//! Deep reads by the commands that offer them: only where asked, only in the reader, for everybody through the service.

use crate::support::service::Service;
use crate::support::{Machine, TTMON, needs, ttmon};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::process::{Child, Command, Stdio};

const BLACKHOLE: &str = include_str!("../../deep/tests/images/blackhole.txt");
const WORMHOLE: &str = include_str!("../../deep/tests/images/wormhole.txt");

struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Blackhole with a holder, a Wormhole with two chips and one, and a Blackhole that nobody holds.
fn machine() -> (Machine, Holder) {
    // The heartbeats of a folder stand still: these chips have none.
    let chips = [Chip::p150a(0), Chip::n300(1), Chip::p150a(2)].map(|chip| Chip { heartbeat: None, ..chip });
    let machine = Machine::with(&chips);
    for (n, image) in [(0, BLACKHOLE), (1, WORMHOLE), (2, BLACKHOLE)] {
        std::fs::write(machine.0.path().join(format!("dev/tenstorrent/{n}")), image).unwrap();
    }
    let holder = Holder(Command::new("sleep").arg("600").spawn().unwrap());
    machine.set_pids(0, &[holder.0.id()]);
    machine.set_pids(1, &[holder.0.id()]);
    (machine, holder)
}

fn device<'a>(snapshot: &'a Value, id: &str) -> &'a Value {
    snapshot["devices"].as_array().unwrap().iter().find(|device| device["id"] == id).unwrap()
}

#[test]
fn only_devices_that_a_process_holds_are_read_and_the_others_say_why() {
    let (machine, _holder) = machine();
    let snapshot = machine.json(&["--deep"]);
    assert_eq!(device(&snapshot, "0")["deep"]["aiclk_max_megahertz"], json!(1350));
    assert_eq!(device(&snapshot, "0")["deep"]["unavailable"], Value::Null);
    assert_eq!(device(&snapshot, "1")["deep"]["input_power_watts"], Value::Null, "Wormhole has none");
    assert_eq!(device(&snapshot, "1")["deep"]["aiclk_max_megahertz"], json!(1000));
    let remote = device(&snapshot, "1R")["deep"]["unavailable"].as_str().unwrap();
    assert_eq!(remote, "a chip behind another one has no safe way to read it");
    let free = device(&snapshot, "2")["deep"]["unavailable"].as_str().unwrap();
    assert_eq!(free, "nobody holds the device: --deep=idle reads it, too");
    let counts = &snapshot["host"]["deep"];
    assert_eq!((&counts["opens_total"], &counts["refused_total"]), (&json!(2), &json!(0)));
    assert_eq!(snapshot["faults"], json!([]));
    // Nobody but the holder uses a device.
    assert_eq!(snapshot["processes"].as_array().unwrap().len(), 1);
}

#[test]
fn the_table_has_a_line_for_each_device_that_was_read_and_a_note_for_the_others() {
    let (machine, _holder) = machine();
    let node = machine.0.path().join("dev/tenstorrent/0");
    // 61 °C; channel 3 is not trained; the ceiling of 900 MHz by the GDDR temperature has decided.
    let tags = [(51, 61), (22, 0x5515), (63, 1350), (66, 0x0007_0384), (69, 0x0001_0007)];
    std::fs::write(&node, tags.iter().fold(BLACKHOLE.to_owned(), |image, (tag, value)| with_tag(&image, *tag, *value)))
        .unwrap();
    let class = machine.0.path().join("sys/class/tenstorrent/tenstorrent!0/tt_aiclk");
    std::fs::set_permissions(&class, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(class, "900\n").unwrap();
    let text = ttmon(&["smi", "--deep", "--root", machine.root()]).out;
    let cells = |device: &str| {
        let below = text.lines().skip_while(|line| !line.contains("Clock limited"));
        let mut lines = below.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.find(|line| line.split(' ').nth(1) == Some(device)).unwrap_or_else(|| panic!("{text}"))
    };
    let first = cells("0");
    assert!(first.contains("61C 0/0 7/8") || first.contains("61°C 0/0 7/8"), "{text}");
    assert!(first.contains("by GDDR temperature"), "{text}");
    assert!(cells("1").contains("6/6"), "{text}");
    assert!(text.contains("note: device 0: clock 900 of 1350 MHz: limited by GDDR temperature"), "{text}");
    assert!(
        text.contains("note: no deep read of device 2: nobody holds the device: --deep=idle reads it, too"),
        "{text}"
    );
}

#[test]
fn without_being_asked_nothing_is_read() {
    let (machine, _holder) = machine();
    let snapshot = machine.json(&[]);
    assert_eq!((&device(&snapshot, "0")["deep"], &snapshot["host"]["deep"]), (&Value::Null, &Value::Null));
}

#[test]
fn idle_waits_six_seconds_and_reads_the_others_too() {
    let (machine, _holder) = machine();
    let began = std::time::Instant::now();
    let snapshot = machine.json(&["--deep=idle"]);
    assert!(began.elapsed().as_secs_f64() > 5.9, "{:?}", began.elapsed());
    assert_eq!(device(&snapshot, "2")["deep"]["aiclk_max_megahertz"], json!(1350));
}

#[test]
fn a_program_that_opens_an_idle_device_for_a_moment_begins_the_six_seconds_anew() {
    let (machine, _holder) = machine();
    let node = machine.0.path().join("dev/tenstorrent/2");
    let began = std::time::Instant::now();
    let short = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(3));
        drop(std::fs::File::open(node).unwrap());
    });
    let snapshot = machine.json(&["--deep=idle"]);
    short.join().unwrap();
    assert!(began.elapsed().as_secs_f64() > 8.9, "{:?}", began.elapsed());
    assert_eq!(device(&snapshot, "2")["deep"]["aiclk_max_megahertz"], json!(1350));
}

#[test]
fn only_the_reader_opens_a_device_and_asks_for_no_power() {
    let test = "only_the_reader_opens_a_device_and_asks_for_no_power";
    if !needs::has(test, &["strace"]) {
        return;
    }
    let (machine, _holder) = machine();
    let log = tempfile::NamedTempFile::new().unwrap();
    let strace = ["-f", "-qq", "-y", "-s", "4096", "-e", "trace=execve,openat,open,openat2", "-o"];
    for view in [&["smi", "--json"][..], &["doctor"], &["record", "-o", "/dev/full", "--for", "10ms"]] {
        let mut command = Command::new("strace");
        command.args(strace).arg(log.path()).arg(TTMON).args(view).args(["--deep", "--root", machine.root()]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let calls = std::fs::read_to_string(log.path()).unwrap();
        let pid = |call: &str| call.split_whitespace().next().unwrap_or_default().to_owned();
        let reader = calls.lines().find(|call| call.contains("execve(") && call.contains("\"deep-reader\"")).map(pid);
        // The reader's memory is closed to strace without root, which then prints the address of a path. The reader opens nodes with
        // O_APPEND, and the driver's lists of holders without.
        let is_node = |call: &&str| {
            let is_named = ["dev/tenstorrent/0\"", "dev/tenstorrent/1\""].iter().any(|path| call.contains(path));
            is_named || call.contains(", 0x") && call.contains("O_APPEND")
        };
        let opened: Vec<&str> = calls.lines().filter(|call| call.contains("open")).filter(is_node).collect();
        assert!(!opened.is_empty(), "{view:?}: {calls}");
        for call in opened {
            assert_eq!(Some(pid(call)), reader, "{view:?}: {call}");
            for flag in ["O_RDONLY", "O_APPEND", "O_NONBLOCK", "O_CLOEXEC"] {
                assert!(call.contains(flag), "without {flag}: {call}");
            }
        }
        assert!(!calls.contains("dev/tenstorrent/2\""), "{view:?} opens a device that nobody holds: {calls}");
    }
}

#[test]
fn what_the_service_reads_everybody_sees() {
    let (machine, _holder) = machine();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("deep.toml");
    std::fs::write(&config, "[serve]\ndeep = true\n").unwrap();
    let service = Service::start_with(machine, &["--config", config.to_str().unwrap()]);
    let socket = service.socket();
    let socket = socket.to_str().unwrap();
    let run = ttmon(&["smi", "--json", "--service", socket]);
    let snapshot: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.err));
    assert_eq!(device(&snapshot, "0")["deep"]["aiclk_max_megahertz"], json!(1350));
    assert!(snapshot["host"]["deep"]["registers_total"].as_u64().unwrap() > 100, "{}", snapshot["host"]);
}

#[test]
fn doctor_says_whether_deep_reads_work_and_how_the_memory_is() {
    let (machine, _holder) = machine();
    let run = ttmon(&["doctor", "--deep", "--root", machine.root()]);
    assert!(run.out.contains("deep reads"), "{}", run.out);
    assert!(run.out.contains("2 devices answered"), "{}", run.out);
    assert!(run.out.contains("memory health") && run.out.contains("channels are trained"), "{}", run.out);
    assert!(!ttmon(&["doctor", "--root", machine.root()]).out.contains("deep reads"));
}

/// The image with another value of a tag. The values follow the entries, in the order of their numbers.
fn with_tag(image: &str, tag: u64, value: u32) -> String {
    let line = format!("{:#010x} = ", 0x1000_1120 + 4 * tag);
    let change = |one: &str| if one.starts_with(&line) { format!("{line}{value:#x}") } else { one.to_owned() };
    image.lines().map(|one| change(one) + "\n").collect()
}

#[test]
fn doctor_names_a_channel_that_is_not_trained_and_a_device_without_a_table_until_they_are_mended() {
    let (machine, _holder) = machine();
    let node = machine.0.path().join("dev/tenstorrent/0");
    let doctor = || ttmon(&["doctor", "--deep", "--root", machine.root()]).out;
    // All channels but 3 are trained.
    let sick = with_tag(BLACKHOLE, 22, 0x5515);
    assert_ne!(sick, BLACKHOLE);
    std::fs::write(&node, sick).unwrap();
    let said = doctor();
    assert!(said.contains("device 0, channel 3: not trained"), "{said}");
    assert!(said.contains("tt-smi -r 0"), "{said}");
    std::fs::write(&node, "").unwrap();
    let said = doctor();
    assert!(said.contains("device 0: the firmware publishes no telemetry table"), "{said}");
    assert!(said.contains("tt-smi -r 0"), "{said}");
    // What the reset does.
    std::fs::write(&node, BLACKHOLE).unwrap();
    let said = doctor();
    assert!(said.contains("2 devices answered") && said.contains("channels are trained"), "{said}");
}

#[test]
fn a_recording_has_what_was_read() {
    let (machine, _holder) = machine();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.ttmon");
    let file = file.to_str().unwrap();
    let run = ttmon(&["record", "-o", file, "--for", "10ms", "--deep", "--root", machine.root()]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let dump = ttmon(&["record", "--dump", file]).out;
    let first: Value = serde_json::from_str(dump.lines().next().unwrap()).unwrap();
    assert_eq!(device(&first, "0")["deep"]["aiclk_max_megahertz"], json!(1350));
}

#[test]
fn a_node_that_may_not_be_opened_is_one_fault_with_its_reason() {
    let (machine, _holder) = machine();
    let node = machine.0.path().join("dev/tenstorrent/0");
    std::fs::remove_file(&node).unwrap();
    std::os::unix::fs::symlink("/dev/null/nothing", &node).unwrap();
    let snapshot = machine.json(&["--deep"]);
    assert!(device(&snapshot, "0")["deep"]["unavailable"].is_string(), "{snapshot}");
    assert_eq!(snapshot["faults"].as_array().unwrap().len(), 1, "{}", snapshot["faults"]);
    assert_eq!(device(&snapshot, "1")["deep"]["aiclk_max_megahertz"], json!(1000), "the others are read");
}
