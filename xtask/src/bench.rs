//! Measures whole runs of the release build, interleaved with the bare reader, on simulated machines whose time is stopped.

use crate::processes::inner;
use anyhow::{Context, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 300;
const CROWD: usize = 2000;

/// Prints the whole benchmark.
pub fn run() -> anyhow::Result<()> {
    let ttmon = build()?;
    let bare = ttmon.with_file_name("bare-reader");
    println!(
        "ttmon smi --json on simulated machines, beside a program that only opens, reads and closes the same files."
    );
    println!("{RUNS} runs of each, interleaved; wall time and CPU of the whole process, from fork to exit.\n");
    println!(
        "{:<10} {:>7} | {:>17} {:>17} {:>6} | {:>8} {:>8} | {:>8} {:>8} | {:>9} {:>9}",
        "machine",
        "devices",
        "ttmon min/median",
        "bare min/median",
        "ratio",
        "ttmon",
        "bare",
        "ttmon",
        "bare",
        "ttmon",
        "bare"
    );
    println!(
        "{:<10} {:>7} | {:>17} {:>17} {:>6} | {:>8} {:>8} | {:>8} {:>8} | {:>9} {:>9}",
        "", "", "wall ms", "wall ms", "median", "CPU ms", "CPU ms", "syscalls", "syscalls", "RSS MiB", "RSS MiB"
    );
    let mut medians = BTreeMap::new();
    for (spec, devices) in [("p150x1", 1), ("p150x8", 8), ("galaxy-bh", 32)] {
        let machine = Still::start(&ttmon, spec)?;
        let (smi, reader) = commands(&machine, &ttmon, &bare)?;
        let [ours, theirs] = interleaved([&smi, &reader])?;
        medians.insert(devices, ours.median());
        println!(
            "{spec:<10} {devices:>7} | {:>17} {:>17} {:>6.2} | {:>8.2} {:>8.2} | {:>8} {:>8} | {:>9.1} {:>9.1}",
            ours.min_and_median(),
            theirs.min_and_median(),
            ours.median() / theirs.median(),
            ours.cpu,
            theirs.cpu,
            system_calls(&smi)?,
            system_calls(&reader)?,
            resident(&smi)?,
            resident(&reader)?,
        );
    }
    let per_device = |few: i32, many: i32| (medians[&many] - medians[&few]) / f64::from(many - few) * 1000.0;
    println!("\ngrowth per device: {:.0} µs from 1 to 8, {:.0} µs from 8 to 32", per_device(1, 8), per_device(8, 32));
    watching(&ttmon)?;
    crowd(&ttmon, &bare)?;
    let size = std::fs::metadata(&ttmon)?.len();
    println!("binary, stripped: {:.2} MB", size as f64 / 1e6);
    Ok(())
}

/// What watching costs: each further sample of a machine that moves, one a second, counters, rates and processes included.
pub fn watch() -> anyhow::Result<()> {
    watching(&build()?)
}

fn watching(ttmon: &Path) -> anyhow::Result<()> {
    const SAMPLES: usize = 30;
    println!("\nwatching, {SAMPLES} samples a second apart while the machine moves");
    println!(
        "{:<10} {:>7} | {:>19} {:>19} | {:>12} {:>12}",
        "machine", "devices", "a line per device", "JSON", "system calls", "waking up"
    );
    for (spec, devices) in [("p150x4", 4), ("galaxy-bh", 32)] {
        let machine = Still::start(ttmon, spec)?;
        let command = |form: &str, samples: usize, milliseconds: usize| -> Vec<String> {
            let (count, loop_ms) = (samples.to_string(), milliseconds.to_string());
            let words = ["smi", form, "--loop-ms", &loop_ms, "-c", &count, "--root", &machine.root];
            [&*ttmon.to_string_lossy()].into_iter().chain(words).map(str::to_owned).collect()
        };
        // Few enough to end before the heartbeat of a stopped machine is taken for a hang. The first samples are
        // those that open files.
        let more = |filter: &str| -> anyhow::Result<usize> {
            let calls = |samples| calls(filter, &command("--query-device=index", samples, 10));
            Ok((calls(13)? - calls(3)?) / 10)
        };
        let (files, wakes) = (more("%file,%desc")?, more("futex")?);
        machine.go_on()?;
        let cpu = |form: &str| -> anyhow::Result<String> {
            let of = |samples| -> anyhow::Result<f64> {
                let before = cpu_of_children()?;
                once(&command(form, samples, 1000))?;
                Ok(cpu_of_children()? - before)
            };
            let per_sample = (of(SAMPLES + 1)? - of(1)?) / SAMPLES as f64;
            Ok(format!("{:.2} ms = {:.3} %", per_sample * 1000.0, per_sample * 100.0))
        };
        let (lines, json) = (cpu("--query-device=index")?, cpu("--json")?);
        println!("{spec:<10} {devices:>7} | {lines:>19} {json:>19} | {files:>12} {wakes:>12}");
    }
    Ok(())
}

/// What the machine's other processes cost: the same without and among a crowd of them.
fn crowd(ttmon: &Path, bare: &Path) -> anyhow::Result<()> {
    let machine = Still::start(ttmon, "galaxy-bh")?;
    let (smi, reader) = commands(&machine, ttmon, bare)?;
    let mut without = [Times::default(), Times::default()];
    let mut with = [Times::default(), Times::default()];
    // In turns, since the machine's own moods change more than what is measured.
    for _ in 0..4 {
        add(&mut without, interleaved([&smi, &reader])?);
        let crowd = Crowd::gather(CROWD)?;
        add(&mut with, interleaved([&smi, &reader])?);
        drop(crowd);
    }
    let change = |i: usize| (with[i].median() / without[i].median() - 1.0) * 100.0;
    println!(
        "{CROWD} unrelated processes at 32 devices: median {:.2} ms without, {:.2} ms with ({:+.1} %; the bare reader {:+.1} %)",
        without[0].median(),
        with[0].median(),
        change(0),
        change(1),
    );
    Ok(())
}

/// Builds what is measured, and returns where it is.
pub fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo).args(["build", "--release", "-q", "-p", "ttmon", "-p", "xtask"]).status()?;
    if !status.success() {
        bail!("the release build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    Ok(target.join("release/ttmon").canonicalize()?)
}

/// A simulated machine that has been stopped, so that it does not compete for the processor.
pub struct Still {
    sim: Child,
    pub root: String,
}

impl Still {
    pub fn start(ttmon: &Path, spec: &str) -> anyhow::Result<Still> {
        let mut sim = Command::new(ttmon).args(["sim", spec]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut root = String::new();
        BufReader::new(sim.stdout.take().context("no output")?).read_line(&mut root)?;
        std::thread::sleep(Duration::from_millis(500));
        kill(Pid::from_raw(inner(sim.id()) as i32), Signal::SIGSTOP)?;
        Ok(Still { sim, root: root.trim().to_owned() })
    }

    /// Lets it move again.
    pub fn go_on(&self) -> anyhow::Result<()> {
        kill(Pid::from_raw(self.sim.id() as i32), Signal::SIGCONT)?;
        // It makes up for the time that it was stopped.
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.sim.id() as i32);
        // It takes down its own processes and folder.
        let _ = kill(pid, Signal::SIGTERM);
        let _ = kill(pid, Signal::SIGCONT);
        let _ = self.sim.wait();
    }
}

/// Processes that have nothing to do with any device, in a process group of their own.
struct Crowd(Child);

impl Crowd {
    fn gather(count: usize) -> anyhow::Result<Crowd> {
        let script = format!("for i in $(seq {count}); do sleep 3600 & done; echo; wait");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let mut crowd = Crowd(shell.spawn()?);
        BufReader::new(crowd.0.stdout.take().context("no output")?).read_line(&mut String::new())?;
        // They take a while to settle.
        std::thread::sleep(Duration::from_secs(2));
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.0.id() as i32), Signal::SIGKILL);
        let _ = self.0.wait();
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The command to measure and the bare reader of the same files, whose list a trace gives.
fn commands(machine: &Still, ttmon: &Path, bare: &Path) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let smi = vec![text(ttmon), "smi".into(), "--json".into(), "--root".into(), machine.root.clone()];
    let list = Path::new(&machine.root).join("files-of-smi");
    std::fs::write(&list, files_read(&smi)?.join("\n"))?;
    Ok((smi, vec![text(bare), text(&list)]))
}

/// The files that a run has opened to read, in their order.
fn files_read(command: &[String]) -> anyhow::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-e", "trace=openat,open", "-o"]).arg(&log).args(command).stdout(Stdio::null());
    strace.status().context("strace is needed: apt-get install strace")?;
    let mut files = Vec::new();
    for line in std::fs::read_to_string(log)?.lines() {
        // 123 openat(3</a/b>, "c", O_RDONLY|…) = 4</a/b/c>
        let path = line.rsplit_once(" = ").and_then(|(_, result)| result.split_once('<')).map(|(_, path)| path);
        let Some(path) = path.and_then(|path| path.strip_suffix('>')) else { continue };
        let library = path.contains("/lib/") || path.ends_with("/ld.so.cache");
        if !line.contains("O_PATH") && !line.contains("O_DIRECTORY") && !library {
            files.push(path.trim_end_matches(" (deleted)").to_owned());
        }
    }
    Ok(files)
}

#[derive(Default)]
struct Times {
    wall: Vec<f64>,
    cpu: f64,
}

fn add(sum: &mut [Times; 2], more: [Times; 2]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        sum.wall.extend(more.wall);
        sum.wall.sort_by(f64::total_cmp);
    }
}

impl Times {
    fn median(&self) -> f64 {
        self.wall[self.wall.len() / 2]
    }

    fn min_and_median(&self) -> String {
        format!("{:.2} / {:.2}", self.wall[0], self.median())
    }
}

/// Runs both commands in turn.
fn interleaved(commands: [&Vec<String>; 2]) -> anyhow::Result<[Times; 2]> {
    let mut times = [Times::default(), Times::default()];
    for _ in 0..RUNS {
        for (command, times) in commands.iter().zip(&mut times) {
            let cpu = cpu_of_children()?;
            let began = Instant::now();
            once(command)?;
            times.wall.push(began.elapsed().as_secs_f64() * 1000.0);
            times.cpu += (cpu_of_children()? - cpu) * 1000.0 / RUNS as f64;
        }
    }
    times.iter_mut().for_each(|times| times.wall.sort_by(f64::total_cmp));
    Ok(times)
}

fn once(command: &[String]) -> anyhow::Result<()> {
    let status = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("{} ended with {status}", command.join(" "));
    }
    Ok(())
}

fn cpu_of_children() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// System calls that name a file or a descriptor; starting a process and its threads makes some more.
fn system_calls(command: &[String]) -> anyhow::Result<usize> {
    calls("%file,%desc", command)
}

fn calls(filter: &str, command: &[String]) -> anyhow::Result<usize> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e"]).arg(format!("trace={filter}")).arg("-o").arg(&log);
    strace.args(command).stdout(Stdio::null()).status()?;
    Ok(std::fs::read_to_string(log)?.lines().filter(|line| !line.contains("<... ")).count())
}

/// Peak memory of one run in MiB, measured by a process that has no other child.
fn resident(command: &[String]) -> anyhow::Result<f64> {
    // The build above may have put another file in the place of the one that runs.
    let this = std::env::args_os().next().context("the program has no name")?;
    let output = Command::new(this).arg("rusage").args(command).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse::<f64>()? / 1024.0)
}

/// `xtask rusage CMD…`: runs it and prints its peak memory in KiB.
pub fn rusage() -> anyhow::Result<()> {
    let command: Vec<String> = std::env::args().skip(2).collect();
    once(&command)?;
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss());
    Ok(())
}
