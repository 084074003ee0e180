//! `ttmon run`: runs a command with the agent in it, and prints a receipt of what it had of the devices.

mod account;
mod agent;
mod child;
mod collect;
mod energy;
#[cfg(test)]
mod golden;
mod json;
mod receipt;
mod results;
mod time_spent;
mod timeline;

use crate::compare::{self, Totals};
use account::{End, RunAccount, Verdict};
use agent::Agent;
use collect::{Collected, Collector};
use energy::{Meter, Tally};
use model::{Snapshot, State, Timestamp};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use timeline::LiveTimeline;
use watch::args::MachineArgs;
use watch::exit;
use watch::machine::Machine;

pub const AFTER_HELP: &str = "\
The receipt goes to standard error when CMD has ended: peak and final bytes per chip and kind, how busy each chip was, what CMD \
waited for, the operations with the most device time, buffers that are still allocated, and of each device the energy, the \
highest power and the highest temperature. Children that outlive CMD are not waited for.

The agent, libttmon_agent.so, is preloaded into CMD and all that it starts. It is looked for beside ttmon, in ../lib/ttmon and \
../lib, or else unpacked from ttmon itself into ~/.cache/ttmon. TTMON_AGENT_LIB names another one, and TTMON_AGENT=off disables it.

Where tt-metal's profiler is not active, the agent reads counters of CMD's own open devices, twice a second, for their \
utilization. TTMON_AGENT=on leaves that out.

With --timeline, the agent also writes down each program that tt-metal's profiler reports, with the queue and the time of its launch.

Exit codes: that of CMD, 128+N when signal N killed it, 127 when it was not found, 126 when it may not be executed; 3 leaks, \
5 no verdict (--leaks); 2 invalid arguments, or no agent.";

#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// Exit with 3 when CMD succeeds, but one of its processes leaves something allocated at its clean end, or when it
    /// closes a device; and with 5 when that cannot be said, as where no process ran with the agent
    #[arg(long)]
    pub leaks: bool,
    /// Also write the receipt as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also print what got slower, larger or hotter since the run whose receipt FILE has (see --json). A recording, or a part
    /// of it, can be named as for `ttmon compare`
    #[arg(long, value_name = "FILE")]
    pub compare: Option<String>,
    /// Also write every program that ran, and the devices beside it, to FILE, for a profiler: .pftrace for Perfetto, .json for
    /// Chrome's trace viewer and Tracy, .csv; each may end in .gz
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Also draw a result that tt-metal writes during the run: profile_log_device.csv, ops_perf_results_*.csv, db.sqlite, or a
    /// folder of them. Launches that are in both align it. Can be given several times
    #[arg(long, value_name = "PATH", requires = "timeline")]
    pub overlay: Vec<PathBuf>,
    /// Sample power and temperature every MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub interval_ms: u64,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// Runs the command. The exit code is the command's own, unless something leaked.
pub fn run(machine: &MachineArgs, args: &RunArgs) -> u8 {
    match follow(machine, args) {
        Ok(code) => code,
        Err(error) => exit::code(Err(error)),
    }
}

/// What leaks are worth.
const LEAKS: u8 = 3;
/// What it is worth that nothing can be said of leaks: a gate that has stopped measuring is not passed.
pub const NO_VERDICT: u8 = 5;

fn follow(machine: &MachineArgs, args: &RunArgs) -> anyhow::Result<u8> {
    let target = args.json.as_deref().map(json::Target::open).transpose()?;
    let before = args.compare.as_deref().map(|name| compare::before_a_run(machine, name)).transpose()?;
    let timeline = args.timeline.as_deref().map(|path| LiveTimeline::open(path, &args.overlay)).transpose()?;
    let agent = if agent_is_off() { None } else { Some(Agent::find()?) };
    // From here on nothing but our own end takes down what we set up.
    let signals = child::Signals::take()?;
    let collector = agent.as_ref().map(|_| Collector::start(timeline.clone().map(LiveTimeline::reader))).transpose()?;
    let (stop, sampler) = start_sampling(machine, Duration::from_millis(args.interval_ms), timeline.clone())?;

    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    if let (Some(agent), Some(collector)) = (&agent, &collector) {
        command.env("LD_PRELOAD", preload(&agent.path, std::env::var_os("LD_PRELOAD").as_deref()));
        command.env("TTMON_BOOK_SOCKET", collector.socket());
        if timeline.is_some() {
            command.env("TTMON_TIMELINE", "1");
        }
        // Whoever sets it has decided already.
        if std::env::var_os("TTMON_AGENT").is_none_or(|setting| setting.is_empty()) {
            command.env("TTMON_AGENT", "reads");
        }
    }
    let began = Instant::now();
    let began_at = Timestamp((collect::now() / 1_000_000) as i64);
    let mut child = match child::start(&mut command) {
        Ok(child) => child,
        Err((code, reason)) => {
            let _ = writeln!(io::stderr(), "error: {reason}");
            drop(stop);
            wait_for(sampler).machine.leave();
            return Ok(code);
        }
    };
    collect::allow_many_files();
    let status = child::wait(&mut child, &signals)?;
    let duration = began.elapsed();

    // Both end at the same time, so that the command's end is not reported later than need be.
    drop(stop);
    let collected = collector.map_or_else(Collected::default, Collector::finish);
    let now = collect::now();
    let Sampled { machine, tallies, last } = wait_for(sampler);
    let (processes, remarks) = account::processes(collected, &last.devices, now);
    let account = RunAccount {
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        began: began_at,
        duration,
        end: end(status),
        is_followed: agent.is_some(),
        processes,
        no_device: no_device(&tallies, &last),
        is_simulated: last.host.simulated,
        devices: tallies,
        remarks,
    };
    let code = tell(&account, args, before.as_ref(), target);
    let code = end_timeline(timeline.as_ref(), agent.is_some(), code);
    machine.leave();
    Ok(code)
}

/// Prints the receipt, writes the JSON, and picks the exit code.
fn tell(account: &RunAccount, args: &RunArgs, before: Option<&Totals>, target: Option<json::Target>) -> u8 {
    let (mut text, json) = (receipt::text(account, args.leaks), json::text(account));
    if let (Some(before), Ok(after)) = (before, serde_json::from_str(&json)) {
        text += &compare::after_a_run(before, &after);
    }
    // Whoever closed standard error does not want to know.
    let _ = io::stderr().write_all(text.as_bytes());
    let written = target.map_or(Ok(()), |target| target.write(&json));
    let file = args.json.as_deref().unwrap_or(Path::new("-"));
    let is_broken_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    let failed = written.is_err_and(|error| {
        if !is_broken_pipe(&error) {
            let _ = writeln!(io::stderr(), "error: --json: cannot write to {}: {error}", file.display());
        }
        !is_broken_pipe(&error)
    });
    match account.end.code() {
        0 if args.leaks && account.verdict() == Verdict::Leaks => LEAKS,
        0 if failed => 1,
        0 if args.leaks && account.verdict() != Verdict::Clean => NO_VERDICT,
        code => code,
    }
}

/// Ends the timeline, and says what it has. A command that succeeded fails when its timeline could not be written.
fn end_timeline(timeline: Option<&LiveTimeline>, is_followed: bool, code: u8) -> u8 {
    let Some(timeline) = timeline else { return code };
    let (notes, is_whole) = timeline.finish();
    let off = "timeline: only devices are in it, because TTMON_AGENT=off disables the agent".to_owned();
    for note in notes.into_iter().chain((!is_followed).then_some(off)) {
        exit::say(note);
    }
    if code == 0 && !is_whole { 1 } else { code }
}

fn end(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code as u8),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}

fn no_device(tallies: &[Tally], last: &Snapshot) -> Option<&'static str> {
    match &last.devices[..] {
        _ if tallies.iter().any(Tally::is_known) => None,
        [] => Some("energy: there is no Tenstorrent device here"),
        devices if devices.iter().all(|device| device.state == State::NoDriver) => {
            Some("energy: not known, because the tenstorrent driver is not loaded")
        }
        _ => Some("energy: no device reported its power"),
    }
}

fn agent_is_off() -> bool {
    let setting = std::env::var_os("TTMON_AGENT");
    setting.is_some_and(|value| ["off", "0", "no", "false"].iter().any(|off| value.eq_ignore_ascii_case(off)))
}

/// The agent before all others that are to be preloaded.
fn preload(agent: &Path, others: Option<&OsStr>) -> OsString {
    let mut all = agent.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

struct Sampled {
    machine: Machine,
    tallies: Vec<Tally>,
    last: Snapshot,
}

/// The devices are looked at in a thread of their own, so that nothing about them keeps the command waiting. The last sample is taken
/// when the sender is dropped: within the deadline, as any.
fn start_sampling(
    args: &MachineArgs,
    every: Duration,
    timeline: Option<LiveTimeline>,
) -> anyhow::Result<(Sender<()>, JoinHandle<Sampled>)> {
    let machine = Machine::open(args, false)?;
    let longest = (every + Duration::from_millis(args.deadline_ms)) * 2;
    let (stop, stopped) = mpsc::channel();
    let sample = move || sample(machine, every, longest, &stopped, timeline.as_ref());
    Ok((stop, std::thread::Builder::new().name("ttmon-samples".into()).spawn(sample)?))
}

fn wait_for(thread: JoinHandle<Sampled>) -> Sampled {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn sample(
    mut machine: Machine,
    every: Duration,
    longest: Duration,
    stopped: &Receiver<()>,
    timeline: Option<&LiveTimeline>,
) -> Sampled {
    let began = Instant::now();
    let mut meter = Meter::new(longest);
    let mut next = began;
    let mut sample = |machine: &mut Machine| {
        let at = began.elapsed();
        let snapshot = machine.sample();
        meter.add(at, &snapshot.devices);
        timeline.into_iter().for_each(|timeline| timeline.snapshot(&snapshot));
        snapshot
    };
    let mut last = sample(&mut machine);
    // A command that ended while a sample was taken has waited long enough.
    while stopped.try_recv() == Err(TryRecvError::Empty) {
        next = (next + every).max(Instant::now());
        let is_time = stopped.recv_timeout(next.saturating_duration_since(Instant::now()));
        last = sample(&mut machine);
        if is_time != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    Sampled { machine, tallies: meter.tallies(), last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_comes_before_what_is_preloaded_already() {
        let agent = Path::new("/lib/agent.so");
        assert_eq!(preload(agent, None), "/lib/agent.so");
        assert_eq!(preload(agent, Some(OsStr::new(""))), "/lib/agent.so");
        assert_eq!(preload(agent, Some(OsStr::new("a.so b.so"))), "/lib/agent.so:a.so b.so");
    }
}
