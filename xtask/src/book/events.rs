//! What one event costs: in a book, as a message to a server, and in the recorder of tt-metal.

use super::keeper::{Hand, Keeper};
use super::{Asked, Figures, PAIRS, ROUNDS, this_program};
use anyhow::Context;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::Instant;

/// Prints what one event costs, reported in different ways.
pub fn events(programs: &Path) -> anyhow::Result<()> {
    let mut names = Vec::new();
    let mut keepers = Vec::new();
    for chips in [1, 8] {
        for live in [0, 1000, 100_000] {
            names.push(format!("the book: {chips} {}, {live} live", if chips == 1 { "chip" } else { "chips" }));
            keepers.push((Keeper::new(chips)?, live));
        }
    }
    let mut hands: Vec<Hand> = keepers.iter().map(|(keeper, live)| Hand::new(keeper, 0, *live)).collect();
    names.extend(
        ["the book: 1 chip, 1000 live, one of two threads", "one message of 144 bytes to a PoC server"]
            .map(String::from),
    );
    let shared = Keeper::new(1)?;
    let mut two = [0, 1].map(|number| Hand::new(&shared, number, 500));
    let mut message = Message::new()?;
    let mut recorder = Recorder::start(programs)?;
    if recorder.is_some() {
        names.push("SharedMemoryStatsProvider of ttnn".to_owned());
    }
    let mut times = vec![Vec::new(); names.len()];
    for _ in 0..ROUNDS {
        let mut all = Vec::new();
        for hand in &mut hands {
            hand.churn(PAIRS);
            all.push(timed(|| hand.churn(PAIRS)));
        }
        all.push(at_once(&mut two));
        message.round()?;
        all.push(message.round()?);
        if let Some(recorder) = &mut recorder {
            recorder.0.number(&format!("churn 0 {PAIRS}"))?;
            all.push(recorder.0.number(&format!("churn 0 {PAIRS}"))?);
        }
        times.iter_mut().zip(all).for_each(|(times, time)| times.push(time));
    }
    for (name, times) in names.iter().zip(times) {
        Figures::of(times).line(name, "ns");
    }
    Ok(())
}

/// Wall time of an event in ns.
fn timed(round: impl FnOnce()) -> f64 {
    let began = Instant::now();
    round();
    began.elapsed().as_nanos() as f64 / (2 * PAIRS) as f64
}

/// Wall time of an event in ns when two threads write to one book.
fn at_once(hands: &mut [Hand; 2]) -> f64 {
    let start = Barrier::new(2);
    let times = std::thread::scope(|scope| {
        let run = |hand| {
            let start = &start;
            scope.spawn(move || {
                let hand: &mut Hand = hand;
                hand.churn(PAIRS);
                start.wait();
                timed(|| hand.churn(PAIRS))
            })
        };
        let threads: Vec<_> = hands.iter_mut().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).collect::<Vec<_>>()
    });
    times.iter().sum::<f64>() / 2.0
}

/// A client of the proof of concept, and a server that only receives.
struct Message {
    stream: UnixStream,
    server: Child,
}

impl Message {
    fn new() -> anyhow::Result<Message> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let mut server = this_program()?.arg("receive").arg(&path).stdout(Stdio::piped()).spawn()?;
        BufReader::new(server.stdout.take().context("no output")?).read_line(&mut String::new())?;
        Ok(Message { stream: UnixStream::connect(path)?, server })
    }

    fn round(&mut self) -> anyhow::Result<f64> {
        let began = Instant::now();
        for _ in 0..2 * PAIRS {
            self.stream.write_all(&[1; 144])?;
        }
        Ok(began.elapsed().as_nanos() as f64 / (2 * PAIRS) as f64)
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// tt-metal's own recorder, in a region of its own.
struct Recorder(Asked);

impl Recorder {
    /// A number that no chip has.
    const CHIP: u64 = 0xbe_9c4d;

    fn start(programs: &Path) -> anyhow::Result<Option<Recorder>> {
        let Some(ttnn) = std::env::var_os("TTMON_TTNN") else { return Ok(None) };
        let library = Path::new(&ttnn).join("build/lib/libtt_metal.so");
        let (mut asked, _) = Asked::start(Command::new(programs.join("ttmetal-harness")).arg("shm").arg(library))?;
        asked.ask(&format!("open 0 {} 0", Recorder::CHIP))?;
        Ok(Some(Recorder(asked)))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.ask("quit");
        let _ = std::fs::remove_file(format!("/dev/shm/tt_device_{}_memory", Recorder::CHIP));
    }
}
