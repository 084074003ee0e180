//! Measures what an event costs that is entered in a book, beside the other ways to tell of it, and what copying a book costs.

pub mod keeper;

use crate::counting;
use anyhow::{Context, bail};
use keeper::{Hand, Keeper};
use ledger::book;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::time::Instant;

const ROUNDS: usize = 300;
/// Allocations and frees of a round: short enough to fit between two interruptions.
const PAIRS: usize = 1000;

/// Prints the whole benchmark.
pub fn run() -> anyhow::Result<()> {
    let programs = build()?;
    let count = 2 * PAIRS;
    println!("one event, {ROUNDS} rounds of {count} of each, interleaved, after as many to warm up; min / median\n");
    events(&programs)?;
    println!();
    println!("asking for memory: {} times in {} events of a book", memory_asked_for()?, 20 * PAIRS);
    println!("system calls: {} in 2000000 events of a book", system_calls()?);
    println!("\na book of 100 000 live buffers");
    copies()?;
    readers()?;
    let Some(ttnn) = std::env::var_os("TTMON_TTNN") else { return Ok(()) };
    println!("\ninside ttnn: an allocation and its release in DRAM on a mock n150, one page of 2048 bytes");
    inside(&programs, Path::new(&ttnn))
}

/// The folder of what was built.
fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let packages = ["-p", "ttmon-harness", "-p", "ttmon-agent"];
    let status = Command::new(cargo).args(["build", "--release", "-q"]).args(packages).status()?;
    if !status.success() {
        bail!("the release build failed");
    }
    Ok(std::env::current_exe()?.parent().context("no folder")?.to_owned())
}

/// Sorted figures.
pub struct Figures(Vec<f64>);

impl Figures {
    pub fn of(mut figures: Vec<f64>) -> Figures {
        figures.sort_by(f64::total_cmp);
        Figures(figures)
    }

    pub fn min(&self) -> f64 {
        self.0[0]
    }

    pub fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    pub fn min_and_median(&self) -> String {
        format!("{:.0} / {:.0}", self.min(), self.median())
    }

    fn line(&self, what: &str, unit: &str) {
        println!("{what:<64} {:>8.1} / {:>8.1} {unit}", self.min(), self.median());
    }
}

/// One event, told in different ways.
fn events(programs: &Path) -> anyhow::Result<()> {
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

/// `xtask receive PATH`: takes messages of the proof of concept.
pub fn receive(path: &str) -> anyhow::Result<()> {
    let listener = UnixListener::bind(path)?;
    println!("ready");
    let (mut stream, _) = listener.accept()?;
    let mut message = [0; 144];
    while stream.read_exact(&mut message).is_ok() {}
    Ok(())
}

/// A process that answers lines with lines, ended when dropped.
pub struct Asked {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Asked {
    pub fn start(command: &mut Command) -> anyhow::Result<(Asked, String)> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdin = child.stdin.take().context("no input")?;
        let stdout = BufReader::new(child.stdout.take().context("no output")?);
        let mut asked = Asked { child, stdin, stdout };
        let first = asked.reply()?;
        Ok((asked, first))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with SIGKILL, and leaves no trace of it.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn reply(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        if line.is_empty() || line.starts_with("ERR") {
            bail!("the process answered {line:?}");
        }
        Ok(line.trim_end().to_owned())
    }

    pub fn tell(&mut self, command: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.stdin, "{command}")?)
    }

    pub fn ask(&mut self, command: &str) -> anyhow::Result<String> {
        self.tell(command)?;
        self.reply()
    }

    /// The number behind `ns=`.
    fn number(&mut self, command: &str) -> anyhow::Result<f64> {
        let reply = self.ask(command)?;
        Ok(reply.split_once("ns=").with_context(|| reply.clone())?.1.parse()?)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn this_program() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe()?))
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

fn memory_asked_for() -> anyhow::Result<u64> {
    let keeper = Keeper::new(8)?;
    let mut hand = Hand::new(&keeper, 0, 1000);
    hand.churn(PAIRS);
    let before = counting::calls();
    hand.churn(10 * PAIRS);
    Ok(counting::calls() - before)
}

/// The system calls of a million pairs.
fn system_calls() -> anyhow::Result<usize> {
    let calls = |pairs: &str| -> anyhow::Result<usize> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("trace");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(&log).arg(std::env::current_exe()?).args(["churn", pairs]);
        strace.status().context("strace is needed: apt-get install strace")?;
        Ok(std::fs::read_to_string(log)?.lines().count())
    };
    Ok(calls("1010000")?.saturating_sub(calls("10000")?))
}

/// What a copy takes, of a book that rests and of one that is written all the while.
fn copies() -> anyhow::Result<()> {
    let (mut keeper, path) = Asked::start(this_program()?.args(["keep", "100000"]))?;
    let file = File::open(path)?;
    let mut times = [Vec::new(), Vec::new()];
    let mut moved = 0;
    for _ in 0..50 {
        keeper.ask("churn 1")?;
        times[0].push(copy(&file)?.0);
        keeper.ask("hammer")?;
        let (time, was_moved) = copy(&file)?;
        times[1].push(time);
        moved += usize::from(was_moved);
    }
    let [still, written] = times.map(Figures::of);
    still.line("copying it, counters and table, while nobody writes", "ms");
    written.line(&format!("copying it while its process writes all the time ({moved} of 50 moved)"), "ms");
    Ok(())
}

fn copy(file: &File) -> anyhow::Result<(f64, bool)> {
    let began = Instant::now();
    let book = book::read(book::of_file(file))?;
    let table = book::table(book::of_file(file), &book)?;
    let time = began.elapsed().as_secs_f64() * 1000.0;
    Ok((time, table.moved))
}

/// What the writer's events cost it while others copy its book, or a book that is not its own.
fn readers() -> anyhow::Result<()> {
    let (mut keeper, path) = Asked::start(this_program()?.args(["keep", "100000"]))?;
    let (_other, elsewhere) = Asked::start(this_program()?.args(["keep", "100000"]))?;
    let cases = [
        ("nobody copies", 0, &path),
        ("1 process copies another book", 1, &elsewhere),
        ("1 process copies it", 1, &path),
        ("4 processes copy another book", 4, &elsewhere),
        ("4 processes copy it", 4, &path),
    ];
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..5 {
        for ((_, count, path), times) in cases.iter().zip(&mut times) {
            let readers: Vec<Running> = (0..*count).map(|_| Running::copy(path)).collect::<Result<_, _>>()?;
            let reply = keeper.ask("churn 200")?;
            drop(readers);
            times.extend(reply.split(' ').filter_map(|time| time.parse::<f64>().ok()));
        }
    }
    for ((name, ..), times) in cases.iter().zip(times) {
        Figures::of(times).line(&format!("processor time of the writer per event: {name}"), "ns");
    }
    Ok(())
}

/// Allocations and frees in DRAM, as the book of a process has them.
fn kept(pid: u32) -> anyhow::Result<Option<u64>> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        if std::fs::read_link(&path).is_ok_and(|link| link.to_string_lossy().contains("ttmon-book")) {
            let book = book::read(book::of_file(&File::open(path)?))?;
            let counter = book.chips.first().context("no chip")?.counters[0];
            return Ok(Some(counter.allocations + counter.frees));
        }
    }
    Ok(None)
}

struct Running(Child);

impl Running {
    fn copy(path: &str) -> anyhow::Result<Running> {
        let child = this_program()?.args(["copy", path]).spawn()?;
        std::thread::sleep(std::time::Duration::from_millis(50));
        Ok(Running(child))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Real buffers of a mock device, with and without the agent and tt-metal's own recorder.
fn inside(programs: &Path, ttnn: &Path) -> anyhow::Result<()> {
    const PROCESSES: usize = 12;
    let cases = [
        ("plain", false, false),
        ("with the agent", true, false),
        ("without shm", false, true),
        ("without shm, with the agent", true, true),
    ];
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..PROCESSES {
        for ((_, agent, no_shm), times) in cases.iter().zip(&mut times) {
            let mut command = Command::new(programs.join("ttmetal-harness"));
            command.arg("mock").arg(ttnn).arg("crates/harness/clusters/n150.yaml");
            if *agent {
                command.env("LD_PRELOAD", programs.join("libttmon_agent.so"));
            }
            if *no_shm {
                command.env("TT_METAL_SHM_TRACKING_DISABLED", "1");
            }
            let (mut harness, _) = Asked::start(&mut command)?;
            harness.number("churn 2000 2048 2048 dram")?;
            for _ in 0..20 {
                times.push(harness.number("churn 1000 2048 2048 dram")?);
            }
            if kept(harness.child.id())? != agent.then_some(2 * (2000 + 20 * 1000)) {
                bail!("the agent has not counted every event, or counts where it is not");
            }
            let _ = harness.ask("quit");
        }
    }
    let figures: Vec<Figures> = times.into_iter().map(Figures::of).collect();
    for ((name, ..), figures) in cases.iter().zip(&figures) {
        figures.line(name, "ns a pair");
    }
    for (what, with, without) in [
        ("the agent, per event", 1, 0),
        ("the agent, per event, without shm", 3, 2),
        ("tt-metal's own recorder, per event", 0, 2),
    ] {
        let half = |of: fn(&Figures) -> f64| (of(&figures[with]) - of(&figures[without])) / 2.0;
        println!("{what:<64} {:>8.1} / {:>8.1} ns", half(Figures::min), half(Figures::median));
    }
    Ok(())
}
