//! What it costs to be asked over HTTP: how long an answer takes, and what many who ask cost the service.
//!
//! Everything is asked through real connections to the release build. The processor time is what the kernel's scheduler has counted for
//! the threads of the service.

use crate::bench::build;
use crate::processes::{memory, threads};
use crate::prometheus;
use crate::top::moving;
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PROCESSES: u32 = 64;
const ANSWERS: usize = 3000;
const LISTENERS: usize = 200;
const LOADED: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(60);

/// Prints the whole benchmark.
pub fn run() -> anyhow::Result<()> {
    let ttmon = build()?;
    let crowd = Sleepers::start(PROCESSES)?;
    let machine = moving(&ttmon, "galaxy-bh")?;
    crowd.hold(&machine.root, 32)?;
    let service = Service::start(&ttmon, &["--root", &machine.root])?;
    answers(&service)?;
    load(&service)?;
    drop((service, machine, crowd));
    let machine = moving(&ttmon, "p150x8")?;
    idle(&Service::start(&ttmon, &["--root", &machine.root])?)?;
    drop(machine);
    println!();
    prometheus::of(&ttmon)
}

/// One who asks again and again.
fn answers(service: &Service) -> anyhow::Result<()> {
    println!(
        "{ANSWERS} answers of each, at 32 devices with {PROCESSES} processes, over one connection, 2 ms apart: a new sample now and then"
    );
    println!("{:<40} {:>9} {:>9} {:>9} {:>10}", "", "p50 ms", "p99 ms", "most ms", "bytes");
    for (path, accept) in [
        ("/metrics", "identity"),
        ("/metrics", "gzip"),
        ("/api/v1/snapshot", "identity"),
        ("/api/v1/snapshot", "gzip"),
        ("/api/v1/history?series=power_watts", "identity"),
    ] {
        let mut connection = service.connect()?;
        let (mut times, mut bytes) = (Vec::new(), 0);
        for _ in 0..ANSWERS {
            let began = Instant::now();
            bytes = ask(&mut connection, path, accept)?.len();
            times.push(began.elapsed().as_secs_f64() * 1000.0);
            std::thread::sleep(Duration::from_millis(2));
        }
        times.sort_by(f64::total_cmp);
        let part = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        println!(
            "{:<40} {:>9.2} {:>9.2} {:>9.2} {bytes:>10}",
            format!("{path} ({accept})"),
            part(0.5),
            part(0.99),
            part(1.0)
        );
    }
    Ok(())
}

/// Many who listen, and scrapes besides: do samples still come when they should?
fn load(service: &Service) -> anyhow::Result<()> {
    println!("\nfor {} s: {LISTENERS} who listen to the stream, 50 scrapes a second, at 32 devices", LOADED.as_secs());
    let calm = service.periods(LOADED / 2)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let heard = Arc::new(AtomicU64::new(0));
    let mut threads = Vec::new();
    for _ in 0..LISTENERS {
        let (mut stream, is_over, heard) = (service.listen()?, is_over.clone(), heard.clone());
        let listen = move || {
            let mut piece = vec![0; 1 << 16];
            while let Ok(bytes @ 1..) = stream.read(&mut piece) {
                if is_over.load(Relaxed) {
                    break;
                }
                heard.fetch_add(bytes as u64, Relaxed);
            }
        };
        threads.push(std::thread::Builder::new().stack_size(128 << 10).spawn(listen)?);
    }
    let mut scraper = service.connect()?;
    let over = is_over.clone();
    let scrape = move || {
        let mut times = Vec::new();
        while !over.load(Relaxed) {
            let began = Instant::now();
            if ask(&mut scraper, "/metrics", "identity").is_err() {
                break;
            }
            times.push(began.elapsed().as_secs_f64() * 1000.0);
            std::thread::sleep(Duration::from_millis(20).saturating_sub(began.elapsed()));
        }
        times
    };
    let scrapes = std::thread::spawn(scrape);
    let before = service.nanoseconds()?;
    let began = Instant::now();
    let loaded = service.periods(LOADED)?;
    let percent = (service.nanoseconds()? - before) as f64 / began.elapsed().as_nanos() as f64 * 100.0;
    let (rss, own) = (service.memory("VmRSS")?, service.memory("RssAnon")?);
    is_over.store(true, Relaxed);
    let mut times = scrapes.join().map_err(|_| anyhow::anyhow!("the scraper failed"))?;
    threads.into_iter().for_each(|thread| drop(thread.join()));
    times.sort_by(f64::total_cmp);
    let spread = |periods: &[f64]| {
        let mean = periods.iter().sum::<f64>() / periods.len().max(1) as f64;
        (mean, periods.iter().map(|period| (period - mean).abs()).fold(0.0, f64::max))
    };
    for (name, periods) in [("no client listens", &calm), ("all listen", &loaded)] {
        let (mean, most) = spread(periods);
        println!(
            "{name:<20} a sample every {mean:.1} ms, {most:.1} ms early or late at the most ({} samples)",
            periods.len()
        );
    }
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    println!("{} scrapes, p99 {p99:.2} ms; {} MiB received", times.len(), heard.load(Relaxed) >> 20);
    println!("the service: {percent:.1} % of a core, {rss:.1} MiB, of which {own:.1} are its own");
    Ok(())
}

/// The load without clients.
fn idle(service: &Service) -> anyhow::Result<()> {
    std::thread::sleep(Duration::from_secs(5));
    let (before, began) = (service.nanoseconds()?, Instant::now());
    std::thread::sleep(IDLE);
    let percent = (service.nanoseconds()? - before) as f64 / began.elapsed().as_nanos() as f64 * 100.0;
    let (rss, own) = (service.memory("VmRSS")?, service.memory("RssAnon")?);
    println!(
        "\nidle for {} s at 8 devices: {percent:.3} % of a core, {rss:.1} MiB, of which {own:.1} are its own",
        IDLE.as_secs()
    );
    Ok(())
}

/// The whole body of an answer.
pub fn ask(stream: &mut BufReader<TcpStream>, path: &str, accept: &str) -> anyhow::Result<Vec<u8>> {
    write!(stream.get_mut(), "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept-encoding: {accept}\r\n\r\n")?;
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            bail!("the connection was closed");
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// The service, ended when dropped.
pub struct Service {
    child: Child,
    /// Where it serves HTTP.
    pub address: String,
    _folder: tempfile::TempDir,
}

impl Service {
    /// Starts it for the machine that these arguments name.
    pub fn start(ttmon: &Path, machine: &[&str]) -> anyhow::Result<Service> {
        let folder = tempfile::tempdir()?;
        let mut child = Command::new(ttmon)
            .args(["serve", "--poc-socket", "off", "--listen", "127.0.0.1:0", "--socket"])
            .arg(folder.path().join("socket"))
            .args(machine)
            .env_remove("JOURNAL_STREAM")
            .stderr(Stdio::piped())
            .spawn()?;
        let mut log = BufReader::new(child.stderr.take().context("no log")?).lines();
        let address = log
            .find_map(|line| line.ok()?.split_once("protocol=http address=").map(|(_, address)| address.to_owned()))
            .context("the service does not listen")?;
        // What it says later is read, too, so that it never waits for room.
        std::thread::spawn(move || log.for_each(drop));
        std::thread::sleep(Duration::from_secs(2));
        Ok(Service { child, address, _folder: folder })
    }

    fn connect(&self) -> anyhow::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        Ok(BufReader::new(stream))
    }

    fn listen(&self) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        Ok(stream)
    }

    /// Milliseconds from sample to sample, by the times in the samples.
    fn periods(&self, time: Duration) -> anyhow::Result<Vec<f64>> {
        let (began, mut taken) = (Instant::now(), Vec::new());
        let mut lines = BufReader::new(self.listen()?).lines();
        while began.elapsed() < time {
            let line = lines.next().context("the stream has ended")??;
            if let Some((_, rest)) = line.split_once("\"taken_at\":\"") {
                let clock = rest.get(11..23).context("no time")?;
                let part = |range: std::ops::Range<usize>| clock.get(range).and_then(|text| text.parse::<f64>().ok());
                let parts = part(0..2).zip(part(3..5)).zip(part(6..12)).context("no time")?;
                taken.push((parts.0.0 * 3600.0 + parts.0.1 * 60.0 + parts.1) * 1000.0);
            }
        }
        Ok(taken.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }

    fn nanoseconds(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for thread in threads(self.child.id())? {
            let spent = std::fs::read_to_string(thread.join("schedstat"))?;
            sum += spent.split(' ').next().context("no time")?.parse::<u64>()?;
        }
        Ok(sum)
    }

    /// In MiB.
    fn memory(&self, name: &str) -> anyhow::Result<f64> {
        memory(self.child.id(), name)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Asked, so that it takes a simulated machine away.
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Processes that hold devices, ended when dropped.
struct Sleepers(Vec<Child>);

impl Sleepers {
    fn start(count: u32) -> anyhow::Result<Sleepers> {
        let all: Result<Vec<Child>, _> = (0..count).map(|_| Command::new("sleep").arg("3600").spawn()).collect();
        Ok(Sleepers(all?))
    }

    /// Lets the driver of a simulated machine name them, in turns.
    fn hold(&self, root: &str, devices: usize) -> anyhow::Result<()> {
        for device in 0..devices {
            let path = Path::new(root).join(format!("proc/driver/tenstorrent/{device}/pids"));
            let mut pids = std::fs::read_to_string(&path).unwrap_or_default();
            for child in self.0.iter().skip(device).step_by(devices) {
                pids.push_str(&format!("{}\n", child.id()));
            }
            std::fs::write(&path, pids)?;
        }
        Ok(())
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
