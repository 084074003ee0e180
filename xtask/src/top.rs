//! What `ttmon top` costs: run in real pseudo-terminals on simulated machines that move, each in a process of its own.
//!
//! The processor time is what the kernel's scheduler has counted for the threads of the monitor, to the nanosecond: the terminal, the
//! simulator and the other programs of this machine are not in it.

use crate::bench::{Still, build};
use crate::processes::{memory, threads};
use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering::Relaxed};
use std::time::{Duration, Instant};

const MACHINES: [(&str, u32); 2] = [("p150x4", 4), ("galaxy-bh", 32)];
const STARTS: usize = 10;
/// Until every column of a chart has a moment in it, and all of them move.
const WARM_UP: Duration = Duration::from_secs(170);
const WATCHED: Duration = Duration::from_secs(60);
/// As many moments as an hour has seconds, ten of them a second.
const MOMENTS: u64 = 3600;
const HURRIED: &str = "[top]\ninterval_ms = 100\nhistory_seconds = 360\n";
/// All devices in one chart, and not the selected one alone.
const OVERLAID: &str = "[top]\noverlaid = true\n";
const END_OF_FRAME: &[u8] = b"\x1b[?2026l";

/// Prints the whole benchmark. Other builds that are named are measured beside this one.
pub fn run(others: &[&str]) -> anyhow::Result<()> {
    let ttmon = build()?;
    let mut programs = vec![("this build".to_owned(), ttmon)];
    programs.extend(others.iter().map(|path| ((*path).to_owned(), PathBuf::from(path))));
    println!(
        "ttmon top in a terminal of 160x50, one sample a second, charts and process table open, on machines that move"
    );
    starting(&programs)?;
    watching(&programs)?;
    remembering(&programs)?;
    println!(
        "\nother monitors on machines of their own, measured before: nvtop 0.38 % of a core with 32 devices and no chart, 0.63 % with"
    );
    println!("charts; tt-toplike 5.6 %; tt-smi 90 %");
    Ok(())
}

/// From the start of the process to the end of the first picture.
fn starting(programs: &[(String, PathBuf)]) -> anyhow::Result<()> {
    println!("\nfirst picture, {STARTS} starts in turns: min / median in ms");
    for (spec, devices) in MACHINES {
        let machine = moving(&programs[0].1, spec)?;
        let mut times = vec![Vec::new(); programs.len()];
        for _ in 0..STARTS {
            for ((_, program), times) in programs.iter().zip(&mut times) {
                times.push(Terminal::start(program, &machine.root, None)?.first_frame()?.as_secs_f64() * 1000.0);
            }
        }
        for ((name, _), times) in programs.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            println!("{devices:>3} devices  {name:<40} {:>8.1} / {:.1}", times[0], times[times.len() / 2]);
        }
    }
    Ok(())
}

/// What it costs to look on.
fn watching(programs: &[(String, PathBuf)]) -> anyhow::Result<()> {
    println!("\n{} s, after {} s in which the charts filled", WATCHED.as_secs(), WARM_UP.as_secs());
    println!(
        "{:<24} {:<40} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10}",
        "", "", "% of core", "ms/sample", "wakes/s", "KiB/s", "VmRSS MiB", "RssAnon"
    );
    // All at the same time: processor time does not care, and the minutes are spent once.
    let few = moving(&programs[0].1, MACHINES[0].0)?;
    let many = moving(&programs[0].1, MACHINES[1].0)?;
    let cases =
        [("4 devices", &few, None), ("32 devices", &many, None), ("32 devices, overlaid", &many, Some(OVERLAID))];
    let mut watched = Vec::new();
    for (what, machine, config) in cases {
        for (name, program) in programs {
            watched.push((what, name, Terminal::start(program, &machine.root, config)?));
        }
    }
    watched.iter().try_for_each(|(_, _, terminal)| terminal.first_frame().map(drop))?;
    std::thread::sleep(WARM_UP);
    let began = Instant::now();
    let before = watched.iter().map(|(_, _, terminal)| terminal.cost()).collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(WATCHED);
    let seconds = began.elapsed().as_secs_f64();
    for ((what, name, terminal), before) in watched.iter().zip(before) {
        let after = terminal.cost()?;
        let nanoseconds = (after.nanoseconds - before.nanoseconds) as f64 / seconds;
        println!(
            "{what:<24} {name:<40} {:>10.3} {:>10.2} {:>10.1} {:>10.2} {:>11.1} {:>10.1}",
            nanoseconds / 1e7,
            nanoseconds / 1e6,
            (after.wakes - before.wakes) as f64 / seconds,
            (after.bytes - before.bytes) as f64 / seconds / 1024.0,
            terminal.memory("VmRSS")?,
            terminal.memory("RssAnon")?,
        );
    }
    Ok(())
}

/// What an hour's history takes: as many moments, ten of them a second.
fn remembering(programs: &[(String, PathBuf)]) -> anyhow::Result<()> {
    println!(
        "\nmemory in MiB, VmRSS and RssAnon: after the first picture, and after {MOMENTS} moments, an hour's history"
    );
    let machines = [moving(&programs[0].1, MACHINES[0].0)?, moving(&programs[0].1, MACHINES[1].0)?];
    let memory = |terminal: &Terminal| -> anyhow::Result<String> {
        Ok(format!("{:>6.1} {:>6.1}", terminal.memory("VmRSS")?, terminal.memory("RssAnon")?))
    };
    let mut all = Vec::new();
    for (machine, (_, devices)) in machines.iter().zip(MACHINES) {
        for (name, program) in programs {
            let terminal = Terminal::start(program, &machine.root, Some(HURRIED))?;
            terminal.first_frame()?;
            all.push((devices, name, memory(&terminal)?, terminal));
        }
    }
    // A picture each; a busy machine may take longer.
    let until = Instant::now() + Duration::from_secs(MOMENTS / 5);
    while all.iter().any(|(_, _, _, terminal)| terminal.frames() < MOMENTS) && Instant::now() < until {
        std::thread::sleep(Duration::from_secs(1));
    }
    for (devices, name, first, terminal) in &all {
        let now = memory(terminal)?;
        println!("{devices:>3} devices  {name:<40} {first}   {now}   after {} pictures", terminal.frames());
    }
    Ok(())
}

pub fn moving(ttmon: &Path, spec: &str) -> anyhow::Result<Still> {
    let machine = Still::start(ttmon, spec)?;
    machine.go_on()?;
    Ok(machine)
}

/// The monitor in a terminal of its own, ended when dropped.
pub struct Terminal {
    child: Child,
    began: Instant,
    keys: File,
    seen: Arc<Seen>,
    first: Receiver<Instant>,
    /// The monitor's configuration is in it.
    _folder: tempfile::TempDir,
}

/// What has come out of it.
#[derive(Default)]
struct Seen {
    bytes: AtomicU64,
    frames: AtomicU64,
}

/// What it has cost so far.
pub struct Cost {
    pub nanoseconds: u64,
    pub wakes: u64,
    pub bytes: u64,
}

impl Terminal {
    fn start(program: &Path, root: &str, config: Option<&str>) -> anyhow::Result<Terminal> {
        Terminal::looking(program, &["--root", root], config)
    }

    /// Looks at what these options name.
    pub fn looking(program: &Path, options: &[&str], config: Option<&str>) -> anyhow::Result<Terminal> {
        Terminal::looking_for(b"", program, options, config)
    }

    /// The same, whose first picture is the first that has this text in it.
    pub fn looking_for(
        text: &'static [u8],
        program: &Path,
        options: &[&str],
        config: Option<&str>,
    ) -> anyhow::Result<Terminal> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let slave: OwnedFd = File::options().read(true).write(true).open(name.to_str()?)?.into();
        tcsetwinsize(&slave, Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 })?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("config.toml");
        std::fs::write(&file, config.unwrap_or_default())?;
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program).arg("top").args(options).arg("--config").arg(file);
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env_remove("LC_ALL").env_remove("NO_COLOR");
        command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(Stdio::from(slave));
        let began = Instant::now();
        let child = command.spawn().context("setsid is needed")?;
        // It would keep the terminal open on this side.
        drop(command);
        let seen = Arc::new(Seen::default());
        let (tell, first) = channel();
        let into = seen.clone();
        let keys = File::from(master.try_clone()?);
        std::thread::spawn(move || {
            let mut from = File::from(master);
            let mut buffer = vec![0; 1 << 16];
            // The end of the last read may be the begin of what is looked for.
            let most = text.len().max(END_OF_FRAME.len()) - 1;
            let (mut kept, mut has_text, mut is_told) = (0, text.is_empty(), false);
            while poll(&mut [PollFd::new(&from, PollFlags::IN)], None).is_ok() {
                let Ok(bytes @ 1..) = from.read(&mut buffer[kept..]) else { break };
                let now = Instant::now();
                let all = &buffer[..kept + bytes];
                let frames = all.windows(END_OF_FRAME.len()).filter(|bytes| *bytes == END_OF_FRAME).count();
                into.bytes.fetch_add(bytes as u64, Relaxed);
                into.frames.fetch_add(frames as u64, Relaxed);
                has_text |= all.windows(text.len().max(1)).any(|bytes| bytes == text);
                if has_text && frames > 0 && !is_told {
                    is_told = true;
                    let _ = tell.send(now);
                }
                let end = all.len();
                kept = end.min(most);
                buffer.copy_within(end - kept..end, 0);
            }
        });
        Ok(Terminal { child, began, keys, seen, first, _folder: folder })
    }

    pub fn first_frame(&self) -> anyhow::Result<Duration> {
        Ok(self.first_moment()? - self.began)
    }

    /// When the first picture was there.
    pub fn first_moment(&self) -> anyhow::Result<Instant> {
        self.first.recv_timeout(Duration::from_secs(20)).context("it draws nothing")
    }

    pub fn frames(&self) -> u64 {
        self.seen.frames.load(Relaxed)
    }

    pub fn cost(&self) -> anyhow::Result<Cost> {
        let mut cost = Cost { nanoseconds: 0, wakes: 0, bytes: self.seen.bytes.load(Relaxed) };
        for thread in threads(self.child.id())? {
            let spent = std::fs::read_to_string(thread.join("schedstat"))?;
            cost.nanoseconds += spent.split(' ').next().context("no time")?.parse::<u64>()?;
            cost.wakes += line_of(&thread.join("status"), "voluntary_ctxt_switches")?;
        }
        Ok(cost)
    }

    /// Types, and waits for the next picture.
    pub fn answer(&mut self, keys: &str) -> anyhow::Result<Duration> {
        let (before, began) = (self.frames(), Instant::now());
        self.keys.write_all(keys.as_bytes())?;
        while self.frames() == before {
            anyhow::ensure!(began.elapsed() < Duration::from_secs(20), "no answer to {keys:?}");
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(began.elapsed())
    }

    /// In MiB.
    pub fn memory(&self, name: &str) -> anyhow::Result<f64> {
        memory(self.child.id(), name)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number in one line of a `status`.
pub fn line_of(path: &Path, name: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    match line.and_then(|line| line.split_whitespace().next()).map(str::parse) {
        Some(Ok(number)) => Ok(number),
        _ => bail!("{} has no {name}", path.display()),
    }
}
