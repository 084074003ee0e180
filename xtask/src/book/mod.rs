//! Measures what an event costs that is entered in a book, beside the other ways to report it, and what copying a book costs.
//!
//! In reading order: `events` is the cost of one event, `inside` the cost inside ttnn, `operations` that of a launch, `keeper` a book to write to, `asked` a
//! process that is asked line by line.

mod asked;
mod events;
mod inside;
pub mod keeper;
mod operations;

use crate::counting;
use anyhow::{Context, bail};
pub use asked::{Asked, this_program};
use events::events;
use inside::inside;
use keeper::{Hand, Keeper};
use ledger::book;
use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
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
    inside(&programs, Path::new(&ttnn))?;
    launches(&programs)
}

/// `xtask bench launches`: what a launch costs, and a record.
pub fn bench_launches() -> anyhow::Result<()> {
    launches(&build()?)
}

fn launches(programs: &Path) -> anyhow::Result<()> {
    println!("\nlaunches");
    operations::alone()?;
    let (Some(ttnn), Some(python)) = (std::env::var_os("TTMON_TTNN"), std::env::var_os("TTMON_TTNN_PYTHON")) else {
        return Ok(());
    };
    println!("\ninside ttnn: add on a mock n150, again and again");
    operations::inside(programs, Path::new(&ttnn), Path::new(&python))
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

/// `xtask receive PATH`: takes messages of the proof of concept.
pub fn receive(path: &str) -> anyhow::Result<()> {
    let listener = UnixListener::bind(path)?;
    println!("ready");
    let (mut stream, _) = listener.accept()?;
    let mut message = [0; 144];
    while stream.read_exact(&mut message).is_ok() {}
    Ok(())
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
    still.line("copying it, counters and table, while its process does not write", "ms");
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
        ("no process copies it", 0, &path),
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
