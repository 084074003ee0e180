//! Measures `ttmon serve` beside a server that does what the proof of concept's did, in one run and in turns.

mod native;
mod neighbours;
mod poc;
mod reference;
mod server;

pub use native::hold;
pub use neighbours::{run as neighbours, soak};
pub use poc::run_client;
pub use reference::serve as reference_server;

use crate::book::{Asked, Figures, this_program};
use anyhow::{Context, bail};
use ledger::wire::{Request, Wanted};
use native::Native;
use server::{CHIP, Kind, Server};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const EVENTS: usize = 200_000;
/// Processes that send or write at once.
const MANY: usize = 20;

/// Prints the whole benchmark.
pub fn run() -> anyhow::Result<()> {
    build()?;
    messages()?;
    books()?;
    deaths()?;
    queries()?;
    idle()
}

fn build() -> anyhow::Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo).args(["build", "--release", "-q", "-p", "ttmon"]).status()?;
    if !status.success() {
        bail!("the release build failed");
    }
    Ok(())
}

/// A client of the proof of concept.
fn client(path: &Path) -> anyhow::Result<Asked> {
    Ok(Asked::start(this_program()?.arg("poc-client").arg(path))?.0)
}

/// A process with a book.
fn holder(server: &Server, live: u64) -> anyhow::Result<Asked> {
    let (chip, live) = (CHIP.to_string(), live.to_string());
    Ok(Asked::start(this_program()?.arg("hold").arg(server.native()).args([chip, live]))?.0)
}

/// Messages over the socket of the proof of concept.
fn messages() -> anyhow::Result<()> {
    println!(
        "messages of 144 bytes, {ROUNDS} rounds of {EVENTS} of each, in turns, until a question behind them is answered\n"
    );
    println!(
        "{:<26} {:<34} {:>17} {:>17} {:>20} {:>14}",
        "clients", "server", "wall ns an event", "CPU ns an event", "events a second", "and of a core"
    );
    println!("{:<61} {:>17} {:>17} {:>20} {:>14}", "", "min / median", "min / median", "median", "median");
    let cases =
        [("1, a send for each event", 1, 1), ("20, a send for each event", MANY, 1), ("1, 100 with a send", 1, 100)];
    for (name, clients, joined) in cases {
        let mut servers = Vec::new();
        for kind in Kind::ALL {
            let server = Server::start(kind)?;
            let senders = (0..clients).map(|_| client(&server.poc())).collect::<Result<Vec<_>, _>>()?;
            servers.push((kind, server, senders, Vec::new(), Vec::new()));
        }
        // The first round warms up.
        for round in 0..=ROUNDS {
            for (_, server, senders, wall, cpu) in &mut servers {
                let (began, before) = (Instant::now(), server.cpu()?);
                for sender in senders.iter_mut() {
                    sender.send(&format!("churn {} {joined}", EVENTS / clients))?;
                }
                senders.iter_mut().try_for_each(|client| client.reply().map(drop))?;
                if round > 0 {
                    wall.push(began.elapsed().as_nanos() as f64 / EVENTS as f64);
                    cpu.push((server.cpu()? - before) * 1e9 / EVENTS as f64);
                }
            }
        }
        for (kind, _, _, wall, cpu) in servers {
            let (wall, cpu) = (Figures::of(wall), Figures::of(cpu));
            println!(
                "{name:<26} {:<34} {:>17} {:>17} {:>18.2} M {:>12.2} M",
                kind.name(),
                wall.min_and_median(),
                cpu.min_and_median(),
                1e3 / wall.median(),
                1e3 / cpu.median(),
            );
        }
    }
    Ok(())
}

/// What the service has to do while others write to their books.
fn books() -> anyhow::Result<()> {
    const SECONDS: u64 = 10;
    const RATE: u64 = 100_000;
    println!("\nthe service on a machine of 8 chips, processor time in {SECONDS} s, of one core");
    let server = Server::start(Kind::Ttmon)?;
    let share = |work: &mut dyn FnMut() -> anyhow::Result<u64>| -> anyhow::Result<(f64, f64)> {
        let (before, began) = (server.cpu()?, Instant::now());
        let events = work()?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(((server.cpu()? - before) / seconds * 100.0, events as f64 / SECONDS as f64))
    };
    let line = |what: &str, (share, rate): (f64, f64)| {
        println!("{what:<70} {share:>6.2} %   {:>5.2} M events a second", rate / 1e6)
    };
    let idle = share(&mut || {
        std::thread::sleep(Duration::from_secs(SECONDS));
        Ok(0)
    })?;
    line("no client", idle);
    let mut holders = (0..MANY).map(|_| holder(&server, 0)).collect::<Result<Vec<_>, _>>()?;
    server.set_holders(&holders.iter().map(Asked::pid).collect::<Vec<_>>())?;
    let mut pace = || -> anyhow::Result<u64> {
        holders.iter_mut().try_for_each(|holder| holder.send(&format!("pace {RATE} {SECONDS}")))?;
        let mut sum = 0;
        for holder in &mut holders {
            let reply = holder.reply()?;
            sum += reply.strip_prefix("OK ").context("no number")?.parse::<u64>()?;
        }
        Ok(sum)
    };
    line(&format!("{MANY} processes with books, {RATE} events a second in each"), share(&mut pace)?);
    let mut subscriber = Native::connect(&server.native())?;
    let (snapshot, _) = subscriber.ask(&Request::Snapshot { fresh: false })?;
    let seen = String::from_utf8_lossy(snapshot).matches(r#""agent":"xtask bench""#).count();
    if seen != MANY {
        bail!("the service has {seen} books and not {MANY}");
    }
    subscriber.ask(&Request::Subscribe { interval_ms: 1000 })?;
    std::thread::spawn(move || while subscriber.hear().is_ok() {});
    line("the same, and a client that gets everything once a second", share(&mut pace)?);
    Ok(())
}

/// How long it takes until a killed process is known to be gone.
fn deaths() -> anyhow::Result<()> {
    const VICTIMS: usize = 50;
    println!("\nfrom SIGKILL until a client that asks every half millisecond is notified: min / median / max in ms");
    let server = Server::start(Kind::Ttmon)?;
    let mut native = Native::connect(&server.native())?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..VICTIMS {
        for (of_book, times) in [true, false].into_iter().zip(&mut times) {
            let mut victim = if of_book { holder(&server, 1000)? } else { client(&server.poc())? };
            if !of_book {
                victim.ask("allocate 0 1000")?;
            }
            let pid = format!(r#""pid":{},"#, victim.pid());
            let began = Instant::now();
            victim.kill()?;
            while !contains(native.ask(&Request::Deaths { limit: Some(1) })?.0, &pid) {
                if began.elapsed() > Duration::from_secs(20) {
                    bail!("a death was not seen");
                }
                std::thread::sleep(Duration::from_micros(500));
            }
            times.push(began.elapsed().as_secs_f64() * 1000.0);
        }
    }
    let [books, clients] = times.map(Figures::of);
    extremes("ttmon serve, 50 with a book of 1000 buffers", &books);
    extremes("ttmon serve, 50 clients of the proof of concept with 1000 buffers", &clients);
    // It looks every five seconds: so some at once, each on a device of its own, at different moments.
    let server = Server::start(Kind::ReferenceToNull)?;
    let mut watcher = UnixStream::connect(server.poc())?;
    let mut times = Vec::new();
    for _ in 0..2 {
        let mut victims = Vec::new();
        for device in 0..8 {
            let mut victim = client(&server.poc())?;
            victim.ask(&format!("allocate {device} 1000"))?;
            victims.push((device, victim));
        }
        let mut waiting = Vec::new();
        while !victims.is_empty() || !waiting.is_empty() {
            if waiting.last().is_none_or(|(_, began): &(i32, Instant)| began.elapsed() > Duration::from_millis(620)) {
                if let Some((device, mut victim)) = victims.pop() {
                    waiting.push((device, Instant::now()));
                    victim.kill()?;
                }
            }
            for (device, began) in std::mem::take(&mut waiting) {
                match poc::query(&mut watcher, device)? {
                    0 => times.push(began.elapsed().as_secs_f64() * 1000.0),
                    _ => waiting.push((device, began)),
                }
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
    extremes("reference, 16 clients with 1000 buffers", &Figures::of(times));
    Ok(())
}

fn extremes(what: &str, times: &Figures) {
    println!("{what:<70} {:>8.1} / {:>8.1} / {:>8.1}", times.min(), times.median(), times.max());
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|window| window == part.as_bytes())
}

/// How long the reply with 100 000 live buffers takes.
fn queries() -> anyhow::Result<()> {
    println!(
        "\n100 000 live buffers, from the question to the last byte of the answer, 40 times: min / median / max in ms"
    );
    let server = Server::start(Kind::Ttmon)?;
    let mut native = Native::connect(&server.native())?;
    for of_book in [true, false] {
        let mut owner = if of_book { holder(&server, 100_000)? } else { client(&server.poc())? };
        if !of_book {
            owner.ask("allocate 0 100000")?;
        }
        let pid = Some(owner.pid());
        for limit in [1000, 100_000] {
            let wanted = Wanted { pid, limit: Some(limit), ..Wanted::default() };
            let (mut times, mut cpu, mut length) = (Vec::new(), Vec::new(), 0);
            for _ in 0..40 {
                let before = server.cpu()?;
                let (answer, time) = native.ask(&Request::Buffers(wanted.clone()))?;
                if !contains(&answer[..50], r#""total":100000,"#) {
                    bail!("another number of buffers: {}", String::from_utf8_lossy(&answer[..50]));
                }
                length = answer.len();
                times.push(time);
                cpu.push((server.cpu()? - before) * 1000.0);
            }
            let whose = if of_book { "in a book" } else { "reported" };
            extremes(&format!("{whose}, {limit} of them, {:.1} MB", length as f64 / 1e6), &Figures::of(times));
            extremes("    processor time of the service", &Figures::of(cpu));
        }
    }
    println!("{:<70} it has no such question", "reference");
    Ok(())
}

/// What a server needs that has nothing to do.
fn idle() -> anyhow::Result<()> {
    println!("\nmemory after 3 s without anything to do");
    for kind in [Kind::Ttmon, Kind::ReferenceToNull] {
        let server = Server::start(kind)?;
        std::thread::sleep(Duration::from_secs(3));
        let (all, own) = (server.memory("VmRSS")?, server.memory("RssAnon")?);
        println!("{:<70} {all:>6.1} MiB, of which {own:.1} are its own", kind.name());
    }
    Ok(())
}
