//! One machine in every view: `smi`, `-q`, CSV, JSON, metrics, `mem`, `top` and the page say the same of used, total and judgement.
//!
//! A server in this process publishes one snapshot; the real program asks it with `--host`, and a real browser opens its page.

use crate::support::browser::Browser;
use crate::support::terminal::Terminal;
use crate::support::ttmon;
use model::figure::device::{ASIC_TEMP, DRAM_USED, L1_USED};
use model::{
    Activity, Arch, Bytes, Celsius, Device, DeviceId, Exact, Held, Host, Judgement, KindFigures, PciAddress, Process,
    Snapshot, Source, State, Timestamp, Usage, UtilizationSource, UtilizationUnknown, Watts,
};
use serde_json::Value;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use web::{Ask, Asker, Published, Question, ServerOptions, WebServer};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn device(n: u32, board: &str, arch: Arch, dram: u64, l1: u64) -> Device {
    let mut device = Device::new(DeviceId::Local(n));
    device.pci_address = Some(PciAddress(format!("0000:{n:02x}:00.0").into()));
    device.arch = Some(arch);
    device.board = Some(board.into());
    device.serial = Some(format!("00000403319140{n:02}").into());
    device.sample_age_seconds = Some(0.0);
    (device.asic_temp, device.asic_temp_max) = (Some(Celsius(50.0)), Some(Celsius(90.0)));
    (device.power, device.power_max) = (Some(Watts(150.0)), Some(Watts(150.0)));
    (device.memory.dram_total, device.memory.l1_total) = (Some(Bytes(dram)), Some(Bytes(l1)));
    device
}

/// On device 0 the agent counts, on 2 and 2R tt-metal's shared memory. Device 1 is hung, device 3 is lost.
fn processes() -> Vec<Process> {
    let parts = Usage::measured(8 * GIB, 60 * MIB, 2 * MIB, GIB, 28 * MIB);
    let kind = |bytes: Option<Bytes>| {
        let bytes = bytes.unwrap();
        Some(KindFigures {
            bytes,
            logical_bytes: bytes,
            buffers: 1,
            peak_bytes: bytes,
            allocations: 1,
            frees: 0,
            banks: None,
        })
    };
    let exact = Exact {
        dram: kind(parts.dram),
        l1: kind(parts.l1),
        l1_small: kind(parts.l1_small),
        trace: kind(parts.trace),
        cb: kind(parts.cb),
        kernel: None,
    };
    let held = |id, usage, source| Held { usage, source: Some(source), ..Held::new(id) };
    let exact = Held { exact: Some(Box::new(exact)), ..held(DeviceId::Local(0), parts, Source::Exact) };
    let shm = vec![
        held(DeviceId::Local(2), Usage::measured(11 * GIB, 20 * MIB, 0, 600 * MIB, 7 * MIB), Source::Shm),
        held(DeviceId::Remote(2), Usage::measured(2 * GIB, 0, 0, 0, 0), Source::Shm),
    ];
    let process = |pid, name: &str, devices| Process { name: Some(name.into()), devices, ..Process::new(pid) };
    vec![process(100, "train", vec![exact]), process(200, "serve", shm)]
}

fn machine() -> Snapshot {
    let mut hung = device(1, "p150b", Arch::Blackhole, 32 * GIB, 180 * MIB);
    (hung.state, hung.asic_temp, hung.power) = (State::Hung, None, None);
    let mut lost = device(3, "p100a", Arch::Blackhole, 28 * GIB, 170 * MIB);
    // Old values are drawn otherwise.
    (lost.state, lost.sample_age_seconds, lost.power) = (State::Lost, Some(40.0), Some(Watts(20.0)));
    let mut warm = device(2, "n300", Arch::Wormhole, 12 * GIB, 90 * MIB);
    warm.asic_temp = Some(Celsius(80.0));
    let mut remote = Device { id: DeviceId::Remote(2), state: State::Remote, ..warm.clone() };
    (remote.asic_temp, remote.asic_temp_max, remote.power, remote.power_max) = (None, None, None, None);
    let mut devices = vec![device(0, "p150a", Arch::Blackhole, 32 * GIB, 180 * MIB), hung, warm, remote, lost];
    let processes = processes();
    for device in &mut devices {
        let held = processes.iter().flat_map(|process| &process.devices).filter(|held| held.id == device.id);
        device.memory.count(held.map(|held| held.usage).fold(Usage::default(), Usage::plus));
    }
    devices[0].memory.stale = Some(Bytes(3 * MIB));
    let busy = Activity::measured(62.0, UtilizationSource::Profiler);
    devices[0].activity = Activity { utilization_lower_bound: Some(true), programs_total: Some(4812), ..busy };
    devices[2].activity = Activity::unknown(UtilizationUnknown::NoAgent);
    let host = Host { name: Some("lab-7".into()), ..Host::default() };
    let taken_at = Timestamp(1_767_323_045_678);
    Snapshot { taken_at, host, devices, processes, ..Snapshot::empty() }
}

/// What every view must say of the first chip's utilization, for people: not all of its processes report.
const BUSY: &str = "≥62%";

/// What every view must say of a chip's memory, for people.
const USED: [(&str, &str, &str); 3] = [
    ("0", "9.0/32.0 GiB", "90.0/180 MiB"),
    ("2", "11.6/12.0 GiB", "27.0/90.0 MiB"),
    ("2R", "2.0/12.0 GiB", "0.0/90.0 MiB"),
];

struct Served {
    _server: WebServer,
    address: String,
}

fn serve() -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let published = Arc::new(Published::new(Arc::new(machine()), Duration::from_secs(1), Default::default(), vec![]));
    let ask: Asker = Arc::new(|Question { ask, answer }| {
        let text = match ask {
            Ask::Deaths { .. } => r#"{"total":0,"deaths":[]}"#,
            _ => r#"{"total":0,"offset":0,"buffers":[],"unlisted":0,"faults":[]}"#,
        };
        answer.send(text.into()).is_ok()
    });
    let server = WebServer::start(published, ServerOptions { tls: None, token: None, ask }).unwrap();
    server.listen(listener).unwrap();
    Served { _server: server, address }
}

impl Served {
    fn ask(&self, arguments: &[&str]) -> String {
        let run = ttmon(&[arguments, &["--host", &self.address]].concat());
        assert_eq!(run.err, "", "{arguments:?}");
        run.out
    }
}

/// The text without what is between its words: lines of tables, colours, runs of blanks.
fn words(text: &str) -> String {
    text.split_whitespace().filter(|word| !word.chars().all(|c| "│|─━░▇▓ ".contains(c))).collect::<Vec<_>>().join(" ")
}

/// The short form of a list of chips: `9.0G/32.0G` for `9.0/32.0 GiB`.
fn short(used: &str) -> String {
    let (sizes, unit) = used.split_once(' ').unwrap();
    let (used, total) = sizes.split_once('/').unwrap();
    let of = |size: &str| if size == "0.0" { "0".to_owned() } else { format!("{size}{}", &unit[..1]) };
    format!("{}/{}", of(used), of(total))
}

fn assert_used(view: &str, text: &str) {
    let text = words(text);
    for (id, dram, l1) in USED {
        assert!(text.contains(dram), "{view}: device {id} has no {dram}:\n{text}");
        assert!(text.contains(l1), "{view}: device {id} has no {l1}:\n{text}");
    }
}

#[test]
fn tables_and_reports_say_the_same_of_one_machine() {
    let served = serve();
    assert_used("smi", &served.ask(&["smi"]));
    assert!(served.ask(&["smi"]).contains(BUSY), "{}", served.ask(&["smi"]));
    assert_used("mem", &served.ask(&["mem", "--once"]));
    let report = words(&served.ask(&["smi", "-q"]));
    for text in [
        "DRAM used : 9.0 GiB",
        "DRAM total : 32.0 GiB",
        "L1 used : 90.0 MiB",
        "Stale : 3.0 MiB",
        "State : lost",
        "Utilization : 62.0 %",
        "Lower bound : yes",
        "Unknown because : no agent",
        "Programs, total : 4812",
    ] {
        assert!(report.contains(text), "smi -q has no {text}:\n{report}");
    }
    // The lines of `dmon` are in MiB and KiB.
    let stream = words(&served.ask(&["smi", "dmon", "-c", "1"]));
    assert!(stream.contains(&format!(" {} {} ", 9 * 1024, 90 * 1024)), "{stream}");
    let stream = words(&served.ask(&["smi", "pmon", "-c", "1", "--parts"]));
    assert!(stream.contains(&format!(" {} {} {} ", 9 * 1024, 90 * 1024, 2 * 1024)), "{stream}");
}

#[test]
fn programs_read_the_same_of_one_machine() {
    let served = serve();
    let machine = machine();
    let json: Value = serde_json::from_str(&served.ask(&["smi", "--json"])).unwrap();
    let query = "id,dram_used_bytes,dram_total_bytes,l1_used_bytes,l1_total_bytes,state";
    let csv = served.ask(&["smi", &format!("--query-device={query}"), "--format=csv,noheader,nounits"]);
    let metrics = get(&served.address, "/metrics");
    for (device, json) in machine.devices.iter().zip(json["devices"].as_array().unwrap()) {
        let memory = &device.memory;
        let number = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
        assert_eq!(json["memory"]["dram_used_bytes"].as_u64(), number(memory.dram_used));
        assert_eq!(json["memory"]["l1_used_bytes"].as_u64(), number(memory.l1_used));
        let cell = |bytes: Option<Bytes>| bytes.map_or("[N/A]".into(), |bytes| bytes.0.to_string());
        let figures = [memory.dram_used, memory.dram_total, memory.l1_used, memory.l1_total].map(cell).join(", ");
        let line = format!("{}, {figures}, {}", device.id, device.state.name());
        assert!(csv.lines().any(|other| other == line), "no {line} in\n{csv}");
        for (kind, bytes) in [("dram", memory.dram_used), ("l1", memory.l1_used)] {
            let is_line = |line: &&str| {
                line.starts_with("ttmon_device_memory_used_bytes{")
                    && line.contains(&format!("device=\"{}\"", device.id))
                    && line.contains(&format!("kind=\"{kind}\""))
            };
            let line = metrics.lines().find(is_line);
            let value = line.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap());
            assert_eq!(value, number(bytes), "{kind} of {}: {line:?}", device.id);
        }
    }
    let busy = &json["devices"][0];
    assert_eq!((&busy["utilization_percent"], &busy["utilization_lower_bound"]), (&62.0.into(), &true.into()));
    assert_eq!(json["devices"][2]["utilization_unknown"], "no agent");
    let csv = served.ask(&["smi", "--query-gpu=utilization.gpu", "--format=csv,noheader"]);
    assert_eq!(csv.lines().take(3).collect::<Vec<_>>(), ["62 %", "[N/A]", "[N/A]"]);
    let ratios: Vec<&str> = metrics.lines().filter(|line| line.starts_with("ttmon_device_utilization_ratio")).collect();
    assert!(ratios.len() == 1 && ratios[0].ends_with(" 0.62"), "no line where it is not known: {ratios:?}");
    let held = &json["processes"][0]["devices"][0];
    assert_eq!((&held["dram_used_bytes"], &held["l1_used_bytes"]), (&(9 * GIB).into(), &(90 * MIB).into()));
    assert_eq!((&held["dram_bytes"], &held["trace_bytes"]), (&(8 * GIB).into(), &GIB.into()));
}

fn get(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_monitor_says_the_same_of_one_machine() {
    let served = serve();
    let terminal = Terminal::start(&["top", "--host", &served.address], 120, 50);
    terminal.await_text("11.6/12.0 GiB");
    terminal.await_text(&format!("util {BUSY}"));
    assert_used("top", &terminal.text());
    terminal.keys("2");
    // The overview has no peaks.
    let text = words(&terminal.await_text("peak"));
    for (id, dram, l1) in USED {
        for used in [dram, l1].map(short) {
            assert!(text.contains(&used), "top's memory view: device {id} has no {used}:\n{text}");
        }
    }
}

#[test]
fn one_judgement_is_drawn_in_every_view() {
    let machine = machine();
    // Full power is normal load; the n300 is warm, and its DRAM is full.
    let [normal, full] = [&machine.devices[0], &machine.devices[2]];
    assert_eq!(model::judgement::of_device(normal), Judgement::Normal);
    assert_eq!((ASIC_TEMP.judge(full), DRAM_USED.judge(full)), (Some(Judgement::Warning), Some(Judgement::Critical)));
    assert_eq!(L1_USED.judge(full), Some(Judgement::Normal));
    let served = serve();
    let (warning, critical) = ("\x1b[33m", "\x1b[1;31m");
    // Its stale bytes are marked beside what is used.
    let table = served.ask(&["smi", "--color", "always"]).replace(&format!("{warning}┊"), "┊");
    let line = |what: &str| table.lines().find(|line| line.contains(what)).unwrap().to_owned();
    assert!(line("80/90").contains(&format!("{warning}80/90")), "{table}");
    assert!(line("11.6/12.0").contains(critical), "{table}");
    assert!(!line("9.0/32.0").contains(warning) && !line("9.0/32.0").contains(critical), "{table}");
    assert!(!line("50/90").contains(warning) && !line("50/90").contains(critical), "full power is marked:\n{table}");
    let memory = served.ask(&["mem", "--once", "--color", "always"]);
    let line = |what: &str| memory.lines().find(|line| line.contains(what)).unwrap().to_owned();
    assert!(line("11.6/12.0").contains(critical) && !line("9.0/32.0").contains(critical), "{memory}");

    let terminal = Terminal::start(&["top", "--host", &served.address], 120, 50);
    terminal.await_text("11.6/12.0 GiB");
    let colour = |what: &str| {
        let (column, row) = terminal.place(what);
        terminal.look(|seen| seen.screen.screen().cell(row, column).unwrap().fgcolor())
    };
    let lost = colour("lost");
    assert_eq!(colour("11.6/12.0"), lost, "full is as critical as lost");
    assert_ne!(colour("9.0/32.0"), lost);
    assert_eq!(colour("150/150W"), colour("9.0/32.0"), "full power is normal load");
    assert!(![lost, colour("9.0/32.0")].contains(&colour("80/90")), "warm is neither");
}

#[test]
fn the_page_says_the_same_of_one_machine() {
    let Some(browser) = Browser::open("the page of one machine", 1440, 1600, "light") else { return };
    let served = serve();
    browser.go(&format!("http://{}/", served.address));
    browser.wait_until("document.querySelectorAll('.cards .card').length === 5");
    let text = words(&browser.text());
    for (id, dram, l1) in USED {
        for amount in [dram, l1] {
            assert!(text.contains(&amount.replace('/', " / ")), "device {id} has no {amount}:\n{text}");
        }
    }
    assert!(text.contains("▲ warm, of 90 °C"), "{text}");
    assert!(text.contains("≥ 62 %"), "{text}");
    let classes = "return [...document.querySelectorAll('*')].filter(e => !e.children.length && e.textContent.includes('/ 12.0 GiB'))\
                   .map(e => e.textContent + ': ' + e.className)";
    assert_eq!(browser.run(classes), serde_json::json!(["11.6 / 12.0 GiB: n critical", "2.0 / 12.0 GiB: n "]));
}
