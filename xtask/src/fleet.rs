//! What it costs to watch a thousand machines of eight devices: `ttmon top --host …` in a pseudo-terminal, asking a server here that
//! serves as all of them; and how long a key waits for its picture meanwhile.

use crate::bench::build;
use crate::top::Terminal;
use anyhow::Context;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const MACHINES: [usize; 3] = [10, 100, 1000];
const WATCHED: Duration = Duration::from_secs(20);
const KEYS: usize = 200;

/// Prints the whole benchmark.
pub fn run() -> anyhow::Result<()> {
    let ttmon = build()?;
    let told = Command::new(&ttmon).args(["smi", "--json", "--sim=galaxy-bh", "-i", "0,1,2,3,4,5,6,7"]).output()?;
    let server = Server::start(told.stdout)?;
    println!("ttmon top --host in a terminal of 160x50, machines of 8 devices that are all new at each question");
    println!(
        "{:>9} {:>12} {:>12} {:>10} {:>12} {:>10} {:>22} {:>22}",
        "machines",
        "first ms",
        "all ms",
        "% of core",
        "questions/s",
        "VmRSS MiB",
        "key to picture ms",
        "with all devices"
    );
    for count in MACHINES {
        let hosts: Vec<String> = (0..count).map(|n| format!("http://{}/node-{n:04}", server.address)).collect();
        let (asked, began) = (server.asked.load(Relaxed), Instant::now());
        let mut terminal = Terminal::looking(&ttmon, &["--host", &hosts.join(",")], None)?;
        let first = terminal.first_frame()?.as_secs_f64() * 1000.0;
        while server.asked.load(Relaxed) - asked < count as u64 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let all = began.elapsed().as_secs_f64() * 1000.0;
        std::thread::sleep(Duration::from_secs(10));
        let (before, asked, began) = (terminal.cost()?, server.asked.load(Relaxed), Instant::now());
        std::thread::sleep(WATCHED);
        let seconds = began.elapsed().as_secs_f64();
        let spent = (terminal.cost()?.nanoseconds - before.nanoseconds) as f64 / seconds / 1e7;
        let questions = (server.asked.load(Relaxed) - asked) as f64 / seconds;
        let machines = keys(&mut terminal)?;
        terminal.answer("t")?;
        let devices = keys(&mut terminal)?;
        println!(
            "{count:>9} {first:>12.1} {all:>12.1} {spent:>10.2} {questions:>12.1} {:>10.1} {machines:>22} {devices:>22}",
            terminal.memory("VmRSS")?,
        );
    }
    Ok(())
}

/// How long keys wait for their pictures: median and longest.
fn keys(terminal: &mut Terminal) -> anyhow::Result<String> {
    let mut times = Vec::with_capacity(KEYS);
    for n in 0..KEYS {
        // Down, and a page down now and then.
        times.push(terminal.answer(if n % 10 == 9 { "\x1b[6~" } else { "j" })?.as_secs_f64() * 1000.0);
        std::thread::sleep(Duration::from_millis(7));
    }
    times.sort_by(f64::total_cmp);
    Ok(format!("{:.1} / {:.1}", times[times.len() / 2], times[times.len() - 1]))
}

/// Answers for all machines.
struct Server {
    address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Server {
    fn start(body: Vec<u8>) -> anyhow::Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, asked) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let (body, counted) = (Arc::new(body), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (body, counted) = (body.clone(), counted.clone());
                let thread = std::thread::Builder::new().stack_size(64 << 10);
                // One that cannot be served is asked again.
                let _ = thread.spawn(move || answer(stream, &body, &counted));
            }
        });
        Ok(Server { address, asked })
    }
}

fn answer(stream: TcpStream, body: &[u8], counted: &AtomicU64) -> anyhow::Result<()> {
    let mut reader = BufReader::with_capacity(2048, stream.try_clone()?);
    let (mut line, mut stream) = (String::new(), stream);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let is_snapshot = line.split(' ').nth(1).context("no question")?.ends_with("/snapshot");
        while line != "\r\n" {
            line.clear();
            anyhow::ensure!(reader.read_line(&mut line)? > 0, "it has gone");
        }
        let (status, body) = if is_snapshot { ("200 OK", body) } else { ("404 Not Found", &b"{}"[..]) };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat())?;
        counted.fetch_add(u64::from(is_snapshot), Relaxed);
    }
}
