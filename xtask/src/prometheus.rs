//! What it takes to show a fleet from what a Prometheus answers: from the last byte of its answers to the last line of the page.
//!
//! The answers are made up, in the form of the real ones: a local server gives the same ones again and again.

use crate::bench::build;
use crate::top::Terminal;
use anyhow::Context;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

const RUNS: usize = 15;
const DEVICES: usize = 8;

/// Prints the whole benchmark.
pub fn run() -> anyhow::Result<()> {
    of(&build()?)
}

/// The figures of a program.
pub fn of(ttmon: &Path) -> anyhow::Result<()> {
    println!("a fleet from Prometheus, {DEVICES} devices and as many processes a host, {RUNS} runs of each");
    println!("last byte of the answers to the page in ms, min / median: top in a terminal of 160x50, smi all devices");
    println!("{:>6} {:>9} | {:>17} | {:>17} | {:>13}", "hosts", "answers", "top", "smi", "smi's page");
    for hosts in [10, 100, 1000] {
        let answers = Arc::new(Answers::of(hosts));
        let (address, last_byte) = serve(answers.clone())?;
        let (mut shown, mut printed) = (Vec::new(), Vec::new());
        let mut page = 0;
        let url = format!("http://{address}");
        let last = || last_byte.lock().unwrap_or_else(PoisonError::into_inner).take().context("nothing was asked");
        for _ in 0..RUNS {
            let terminal = Terminal::looking_for(b"galaxy-", ttmon, &["--prometheus", &url], None)?;
            let moment = terminal.first_moment()?;
            shown.push((moment - last()?).as_secs_f64() * 1e3);
            drop(terminal);
            let mut child = Command::new(ttmon)
                .args(["smi", "--prometheus", &url])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()?;
            let mut text = Vec::new();
            child.stdout.take().context("no output")?.read_to_end(&mut text)?;
            let ended = Instant::now();
            child.wait()?;
            printed.push((ended - last()?).as_secs_f64() * 1e3);
            page = text.len();
        }
        let [shown, printed] = [shown, printed].map(|mut times| {
            times.sort_by(f64::total_cmp);
            format!("{:>7.1} / {:>7.1}", times[0], times[times.len() / 2])
        });
        let (megabytes, kilobytes) = (answers.bytes() as f64 / 1e6, page as f64 / 1e3);
        println!("{hosts:>6} {megabytes:>6.1} MB | {shown} | {printed} | {kilobytes:>10.1} kB");
    }
    Ok(())
}

/// A body for each question, found by a word that only it has.
struct Answers(Vec<(&'static str, String)>);

impl Answers {
    fn of(hosts: usize) -> Answers {
        let (mut states, mut figures, mut facts) = (Vec::new(), Vec::new(), Vec::new());
        for host in 0..hosts {
            let of = format!("\"instance\":\"galaxy-{host:04}.example.org:9746\",\"job\":\"ttmon\"");
            let mut fact = |labels: &str, value: &str| facts.push(row(&format!("{labels},{of}"), value));
            fact("\"__name__\":\"ttmon_sample_timestamp_seconds\"", "1767323049.5");
            let info = "\"__name__\":\"ttmon_host_info\",\"driver\":\"2.10.0\",\"kernel\":\"6.8.0-45-generic\",\"simulated\":\"false\"";
            fact(&format!("{info},\"host\":\"galaxy-{host:04}\""), "1");
            for device in 0..DEVICES {
                let state = if (host * DEVICES + device) % 997 == 5 { "hung" } else { "ok" };
                let device_label = format!("\"device\":\"{device}\"");
                states.push(row(
                    &format!(
                        "\"__name__\":\"ttmon_device_state\",\"arch\":\"blackhole\",\"board\":\"p150a\",{device_label},{of},\
                         \"pci_address\":\"0000:{device:02x}:00.0\",\"serial\":\"{host:08X}{device:08X}\",\"state\":\"{state}\""
                    ),
                    "1",
                ));
                for (name, value) in FIGURES {
                    figures.push(row(&format!("\"__name__\":\"ttmon_device_{name},{device_label},{of}"), value));
                }
                let process = "\"__name__\":\"ttmon_process_memory_used_bytes\",\"kind\":\"dram\",\"name\":\"python3\",\"source\":\"shm\",\"user\":\"ttuser\"";
                fact(&format!("{device_label},{process},\"pid\":\"{}\"", 4000 + device), "13314398618");
            }
        }
        let none = answer(&[]);
        Answers(vec![
            ("ALERTS", none.clone()),
            ("last_over_time", none),
            ("ttmon_host_info", answer(&facts)),
            ("ttmon_device_state", answer(&states)),
            ("temperature_celsius", answer(&figures)),
        ])
    }

    fn to(&self, question: &str) -> &str {
        self.0.iter().find(|(word, _)| question.contains(word)).map_or("{}", |(_, body)| body)
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, body)| body.len()).sum()
    }
}

/// The ends of names, with the labels that they have besides.
const FIGURES: [(&str, &str); 10] = [
    ("temperature_celsius\"", "54.012"),
    ("temperature_limit_celsius\"", "90"),
    ("power_watts\"", "65.25"),
    ("power_limit_watts\"", "150"),
    ("aiclk_hertz\"", "1350000000"),
    ("memory_used_bytes\",\"kind\":\"dram\"", "13314398618"),
    ("memory_used_bytes\",\"kind\":\"l1\"", "25165824"),
    ("memory_total_bytes\",\"kind\":\"dram\"", "34359738368"),
    ("memory_total_bytes\",\"kind\":\"l1\"", "188743680"),
    ("untracked_processes\"", "0"),
];

fn row(labels: &str, value: &str) -> String {
    format!("{{\"metric\":{{{labels}}},\"value\":[1767323050.123,\"{value}\"]}}")
}

fn answer(rows: &[String]) -> String {
    let mut text = String::from("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
    for (n, row) in rows.iter().enumerate() {
        let _ = write!(text, "{}{row}", if n > 0 { "," } else { "" });
    }
    text + "]}}"
}

/// When the last byte of an answer was written.
type LastByte = Arc<Mutex<Option<Instant>>>;

fn serve(answers: Arc<Answers>) -> anyhow::Result<(std::net::SocketAddr, LastByte)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let last_byte = LastByte::default();
    let last = last_byte.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answers, last) = (answers.clone(), last.clone());
            std::thread::spawn(move || converse(stream, &answers, &last));
        }
    });
    Ok((address, last_byte))
}

fn converse(mut stream: TcpStream, answers: &Answers, last: &Mutex<Option<Instant>>) -> std::io::Result<()> {
    // As Prometheus does; else the body waits for the head to be acknowledged.
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(question) = lines.next().transpose()? {
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let body = answers.to(&question);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        stream.write_all(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes())?;
        stream.write_all(body.as_bytes())?;
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
    Ok(())
}
