//! `cargo xtask bench neighbours`: how long one client waits for an answer while others do what they can to keep the service busy.

use super::native::Native;
use super::poc;
use super::server::Server;
use super::{build, client, holder};
use crate::book::{Asked, Figures};
use crate::web::ask;
use ledger::wire::{Request, Wanted};
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FLOOD: u64 = 4_000_000;
const REGIONS: usize = 20_000;

/// Prints the whole benchmark.
pub fn run() -> anyhow::Result<()> {
    build()?;
    println!(
        "a QUERY every millisecond: median / max in ms; memory of both processes of the service; what occupied its loop longest"
    );
    case("nothing else", 0, |_| for_seconds(5))?;
    case("4 M buffers are reported by one process", 0, |server| {
        let mut flood = client(&server.poc())?;
        flood.ask(&format!("allocate 0 {FLOOD}"))?;
        // They are kept while others ask for them.
        for_seconds(3)
    })?;
    case("the same, and a process with 250,000 buffers ends ten times", 0, |server| {
        for _ in 0..10 {
            let mut flood = client(&server.poc())?;
            flood.ask("allocate 0 250000")?;
            flood.kill()?;
        }
        Ok(())
    })?;
    case("20,000 files of regions", REGIONS, |_| for_seconds(10))?;
    for is_holding in [true, false] {
        let what = if is_holding { "holders of the device" } else { "processes that hold nothing" };
        case(&format!("200 books of 10,000 buffers, of {what}"), 0, |server| {
            let holders = (0..200).map(|_| holder(server, 10_000)).collect::<Result<Vec<_>, _>>()?;
            if is_holding {
                server.set_holders(&holders.iter().map(Asked::pid).collect::<Vec<_>>())?;
            }
            for_seconds(10)
        })?;
    }
    case("2,000 books of processes that hold nothing", 0, |server| {
        let _holders = (0..2000).map(|_| holder(server, 1)).collect::<Result<Vec<_>, _>>()?;
        for_seconds(10)
    })?;
    case("2,000 clients with a connection, a report and a holder's entry each", 0, |server| {
        let mut clients = (0..2000).map(|_| client(&server.poc())).collect::<Result<Vec<_>, _>>()?;
        clients.iter_mut().try_for_each(|client| client.ask("allocate 0 1").map(drop))?;
        server.set_holders(&clients.iter().map(Asked::pid).collect::<Vec<_>>())?;
        for_seconds(10)
    })
}

fn for_seconds(seconds: u64) -> anyhow::Result<()> {
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(())
}

/// Does something to a service that is asked all the time.
fn case(name: &str, regions: usize, work: impl FnOnce(&Server) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut server = Server::start_among(regions)?;
    let over = Arc::new(AtomicBool::new(false));
    let questions = every(&over, Duration::from_millis(1), {
        let mut stream = UnixStream::connect(server.poc())?;
        move || poc::query(&mut stream, 0).map(|_| ())
    });
    let answers = Arc::new(AtomicUsize::new(0));
    let others = every(&over, Duration::from_millis(100), {
        let mut native = Native::connect(&server.native())?;
        let mut http = BufReader::new(TcpStream::connect(server.address()?)?);
        let mut dump = UnixStream::connect(server.poc())?;
        let answers = answers.clone();
        move || {
            for path in ["/api/v1/buffers?limit=10", "/metrics", "/api/v1/snapshot", "/api/v1/deaths"] {
                ask(&mut http, path, "gzip")?;
            }
            native.ask(&Request::Buffers(Wanted { limit: Some(10), ..Wanted::default() }))?;
            native.ask(&Request::Snapshot { fresh: false })?;
            native.ask(&Request::Deaths { limit: None })?;
            dump.write_all(&poc::message(poc::DUMP, 0, 0, 0))?;
            answers.fetch_add(8, Relaxed);
            Ok(())
        }
    });
    work(&server)?;
    let memory = server.memory("VmRSS")?;
    over.store(true, Relaxed);
    let (times, _) = (joined(questions)?, joined(others)?);
    let (count, times) = (times.len(), Figures::of(times));
    println!("\n{name}");
    println!("    QUERY {:.2} / {:.2}, {count} times", times.median(), times.max());
    println!("    {memory:.1} MiB; {} other questions", answers.load(Relaxed));
    println!("    {}", server.stop()?);
    Ok(())
}

type Questions = JoinHandle<anyhow::Result<Vec<f64>>>;

/// Asks again and again, and returns how many milliseconds each took.
fn every(
    over: &Arc<AtomicBool>,
    pause: Duration,
    mut ask: impl FnMut() -> anyhow::Result<()> + Send + 'static,
) -> Questions {
    let over = over.clone();
    std::thread::spawn(move || {
        let mut times = Vec::new();
        while !over.load(Relaxed) {
            let began = Instant::now();
            ask()?;
            times.push(began.elapsed().as_secs_f64() * 1000.0);
            std::thread::sleep(pause);
        }
        Ok(times)
    })
}

fn joined(questions: Questions) -> anyhow::Result<Vec<f64>> {
    questions.join().unwrap_or_else(|_| anyhow::bail!("a thread has panicked"))
}

/// How long a soak lasts is named in minutes: books and clients come and go, and each minute has a line.
pub fn soak(minutes: u64) -> anyhow::Result<()> {
    build()?;
    let mut server = Server::start_among(0)?;
    let over = Arc::new(AtomicBool::new(false));
    let scrapes = every(&over, Duration::from_secs(1), {
        let address = server.address()?;
        move || {
            let mut http = BufReader::new(TcpStream::connect(&address)?);
            for path in ["/metrics", "/api/v1/snapshot", "/api/v1/buffers?limit=10", "/api/v1/deaths"] {
                ask(&mut http, path, "gzip")?;
            }
            Ok(())
        }
    });
    println!("minute   books   clients   RSS MiB   own MiB   descriptors");
    let (began, mut books, mut clients) = (Instant::now(), 0u64, 0u64);
    let mut live: Vec<Asked> = Vec::new();
    for minute in 0..=minutes {
        while began.elapsed() < Duration::from_secs(60 * minute) {
            // Some hold the device, some do not; the oldest goes.
            live.push(holder(&server, 100 + books % 1000)?);
            books += 1;
            let mut short = client(&server.poc())?;
            short.ask(&format!("allocate {} {}", clients % 8, 1 + clients % 5000))?;
            clients += 1;
            if clients % 2 == 0 {
                short.ask("churn 1000 10")?;
            }
            if live.len() > 20 {
                let mut oldest = live.remove(0);
                oldest.kill()?;
            }
            server.set_holders(&live.iter().skip(10).map(Asked::pid).collect::<Vec<_>>())?;
            std::thread::sleep(Duration::from_millis(20));
        }
        let (rss, own) = (server.memory("VmRSS")?, server.memory("RssAnon")?);
        println!("{minute:>6} {books:>7} {clients:>9} {rss:>9.1} {own:>9.1} {:>13}", server.descriptors()?);
    }
    over.store(true, Relaxed);
    let times = Figures::of(joined(scrapes)?);
    println!("four answers over HTTP and a connection: {:.1} / {:.1} ms, median and max", times.median(), times.max());
    println!("{}", server.stop()?);
    Ok(())
}
