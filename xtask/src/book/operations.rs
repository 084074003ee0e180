//! What the agent costs where ttnn launches operations, one after another at full rate, on a mock cluster.
//!
//! On a mock tt-metal's inspector is off, and ttnn does not put together what it reports to it. On a device it is on. So the agent is
//! compared with a ttnn that reports to an inspector which takes no time: a library that answers for it.

use super::Figures;
use anyhow::{Context, bail};
use ledger::book;
use ledger::book::activity::{ActivitySource, DeviceRecord, Launch, activity, monotonic};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

const PROCESSES: usize = 8;
const ROUNDS: usize = 200;
/// Few: what disturbs the machine for longer disturbs a round of each.
const LAUNCHES: usize = 100;

/// The program: a round of launches for each line, in ns of processor time per launch. Where memory is counted: the requests for it.
const PROGRAM: &str = "
import ctypes, sys, time
import ttnn
requests = getattr(ctypes.CDLL(None), 'requests_for_memory', None)
device = ttnn.open_device(device_id=0)
shape, memory = [1, 1, 128, 128], ttnn.DRAM_MEMORY_CONFIG
a, b, c = [ttnn.empty(shape, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory) for _ in range(3)]
ttnn.add(a, b, output_tensor=c)
print('ready', flush=True)
for line in sys.stdin:
    rounds = range(int(line))
    before, began = requests() if requests else 0, time.thread_time_ns()
    for _ in rounds:
        ttnn.add(a, b, output_tensor=c)
    ended, after = time.thread_time_ns(), requests() if requests else 0
    print(after - before if requests else (ended - began) / len(rounds), flush=True)
";

/// An inspector that is on and takes no time.
const INSPECTOR: &str = "
_Bool _ZN2tt8tt_metal12experimental9inspector9IsEnabledEv(void) { return 1; }
void _ZN2tt8tt_metal12experimental9inspector26EmitMeshWorkloadDebugEntryERNS0_11distributed12MeshWorkloadEmSt17basic_string_viewIcSt11char_traitsIcEESt6vectorINS0_10TensorSpecESaISB_EESt8optionalIN4ttsl10StrongTypeIjNS3_14MeshTraceIdTagEEEE(void) {}
";

/// Counts what is asked of the C library, by all threads. C++ and Rust allocate through these functions, too.
const COUNTER: &str = "
#include <errno.h>
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static _Atomic long requests;
int requests_for_memory(void) { return (int)requests; }
void *malloc(size_t size) { requests++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { requests++; return __libc_calloc(count, size); }
void *realloc(void *at, size_t size) { requests++; return __libc_realloc(at, size); }
void *memalign(size_t alignment, size_t size) { requests++; return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { requests++; return __libc_memalign(alignment, size); }
int posix_memalign(void **at, size_t alignment, size_t size) {
    requests++;
    *at = __libc_memalign(alignment, size);
    return *at ? 0 : ENOMEM;
}
";

/// Prints what a launch and a record cost in the book alone.
pub fn alone() -> anyhow::Result<()> {
    let writer = book::Writer::create("xtask bench")?;
    writer.chip(0, None).context("no room for a chip")?;
    writer.record_activity(monotonic());
    writer.chip_opened(0, ActivitySource::Profiler, monotonic());
    let (mut launches, mut records) = (Vec::new(), Vec::new());
    let mut tick = 0;
    let asked = crate::counting::calls();
    let mut asked_for = 0;
    for round in 0..super::ROUNDS {
        launches.push(timed(|| {
            let operation = writer.operation(b"BinaryNgDeviceOperation");
            writer.launched(Launch { operation, runtime_id: Some(7) }, monotonic());
        }));
        records.push(timed(|| {
            tick += 20_000;
            let (start, end) = (tick, tick + 9_000);
            let record = DeviceRecord { chip: 0, runtime_id: 7, operation: Some(0), start, end, cycles_per_ns: 1.0 };
            writer.records([record].into_iter(), 0, monotonic());
        }));
        // The first round names the operation, and the figures are kept here.
        asked_for = if round == 1 { crate::counting::calls() - asked } else { asked_for };
    }
    let later = crate::counting::calls() - asked - asked_for;
    Figures::of(launches).line("a launch in the book: its name looked up, the time, and entered", "ns");
    Figures::of(records).line("a record in the book, in a batch of one", "ns");
    println!(
        "asking for memory: {later} times in {} launches and records, for these figures",
        super::ROUNDS * LAUNCHES * 2
    );
    Ok(())
}

fn timed(mut event: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..LAUNCHES).for_each(|_| event());
    began.elapsed().as_nanos() as f64 / LAUNCHES as f64
}

/// Prints what the agent adds to a launch inside ttnn.
pub fn inside(programs: &Path, ttnn: &Path, python: &Path) -> anyhow::Result<()> {
    let root = Root::lay(programs, ttnn, python)?;
    let agent = programs.join("libttmon_agent.so");
    let cases = [
        ("plain", None),
        ("with an inspector that takes no time", Some(&root.inspector)),
        ("with the agent", Some(&agent)),
    ];
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..PROCESSES {
        let mut all = cases.iter().map(|(_, preload)| root.start(&[*preload])).collect::<anyhow::Result<Vec<_>>>()?;
        for program in &mut all {
            program.round(4 * LAUNCHES)?;
        }
        // One at a time, in turn: what disturbs the machine disturbs all of them.
        for round in 0..ROUNDS {
            for step in 0..cases.len() {
                // None is always the first.
                let case = (round + step) % cases.len();
                times[case].push(all[case].round(LAUNCHES)?);
            }
        }
        let expected = (1 + 4 * LAUNCHES + ROUNDS * LAUNCHES) as u64;
        let counted: Vec<Option<u64>> = all.iter().map(|it| launches(it.child.id())).collect::<anyhow::Result<_>>()?;
        if counted != [None, None, Some(expected)] {
            bail!("the agent has not counted every launch, or counts where it is not: {counted:?}");
        }
    }
    requests_for_memory(&root, &cases)?;
    let ratios = [1, 0].map(|without| paired_ratio(&times[2], &times[without]));
    let figures: Vec<Figures> = times.into_iter().map(Figures::of).collect();
    for ((name, _), figures) in cases.iter().zip(&figures) {
        figures.line(name, "ns a launch");
    }
    let compared = [("the agent, per launch", 1), ("the agent and what ttnn reports, per launch", 0)];
    for ((what, without), paired) in compared.into_iter().zip(ratios) {
        let (with, without) = (&figures[2], &figures[without]);
        let ratio = |of: fn(&Figures) -> f64| of(with) / of(without);
        println!(
            "{what:<64} {:>8.1} / {:>8.1} ns, ratio {:.3} / {:.3}, of rounds side by side {paired:.3}",
            with.min() - without.min(),
            with.median() - without.median(),
            ratio(Figures::min),
            ratio(Figures::median)
        );
    }
    Ok(())
}

/// The median of what each round took, compared with the round beside it.
fn paired_ratio(with: &[f64], without: &[f64]) -> f64 {
    Figures::of(with.iter().zip(without).map(|(with, without)| with / without).collect()).median()
}

/// Prints how often memory is asked for, per launch.
fn requests_for_memory(root: &Root, cases: &[(&str, Option<&PathBuf>)]) -> anyhow::Result<()> {
    for (name, preload) in cases {
        let mut program = root.start(&[Some(&root.counter), *preload])?;
        program.round(4 * LAUNCHES)?;
        let rounds = (0..ROUNDS).map(|_| program.round(LAUNCHES)).collect::<anyhow::Result<Vec<_>>>()?;
        let each = rounds.iter().map(|requests| requests / LAUNCHES as f64).collect();
        Figures::of(each).line(&format!("{name}: requests for memory"), "a launch");
        println!("{:<64} {} in {} launches", "", rounds.iter().sum::<f64>(), ROUNDS * LAUNCHES);
    }
    Ok(())
}

/// A root of tt-metal with its cache of kernels.
struct Root {
    folder: TempDir,
    ttnn: PathBuf,
    python: PathBuf,
    inspector: PathBuf,
    counter: PathBuf,
}

impl Root {
    fn lay(programs: &Path, ttnn: &Path, python: &Path) -> anyhow::Result<Root> {
        let folder = tempfile::tempdir()?;
        let laid = Command::new(programs.join("ttmetal-harness")).arg("root").args([ttnn, folder.path()]).status()?;
        if !laid.success() {
            bail!("the root could not be laid");
        }
        let scratch = folder.path().join("scratch");
        std::fs::write(scratch.join("program.py"), PROGRAM)?;
        let library = |name: &str, text: &str| -> anyhow::Result<PathBuf> {
            let (source, library) = (scratch.join(name).with_extension("c"), scratch.join(name).with_extension("so"));
            std::fs::write(&source, text)?;
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-O1", "-fno-builtin", "-o"]).args([&library, &source]);
            if !compiler.status()?.success() {
                bail!("a C compiler is needed");
            }
            Ok(library)
        };
        let (inspector, counter) = (library("inspector", INSPECTOR)?, library("counter", COUNTER)?);
        Ok(Root { folder, ttnn: ttnn.into(), python: python.into(), inspector, counter })
    }

    fn start(&self, preload: &[Option<&PathBuf>]) -> anyhow::Result<Program> {
        let (root, scratch) = (self.folder.path(), self.folder.path().join("scratch"));
        let cluster = std::env::current_dir()?.join("crates/harness/clusters/n150.yaml");
        let mut command = Command::new(&self.python);
        command.args(["-B", "program.py"]).current_dir(&scratch);
        command.env("PYTHONPATH", self.ttnn.parent().context("no folder")?);
        command.env("TT_METAL_MOCK_CLUSTER_DESC_PATH", cluster);
        command.envs([("TT_METAL_RUNTIME_ROOT", root), ("TT_METAL_HOME", root)]);
        command.envs([("TT_METAL_CACHE", &scratch), ("TMPDIR", &scratch)]);
        command.envs([
            ("TT_METAL_SHM_TRACKING_DISABLED", "1"),
            ("TT_LOGGER_LEVEL", "error"),
            ("LOGURU_LEVEL", "ERROR"),
        ]);
        command.env("TTMON_BOOK_SOCKET", "");
        let preload: Vec<String> = preload.iter().flatten().map(|library| library.display().to_string()).collect();
        if !preload.is_empty() {
            command.env("LD_PRELOAD", preload.join(" "));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (stdin, stdout) = (child.stdin.take().context("no input")?, child.stdout.take().context("no output")?);
        let mut program = Program { child, stdin, stdout: BufReader::new(stdout) };
        while program.line()? != "ready" {}
        Ok(program)
    }
}

struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    /// ns of a launch; or, where memory is counted, the requests for it of all launches.
    fn round(&mut self, launches: usize) -> anyhow::Result<f64> {
        writeln!(self.stdin, "{launches}")?;
        Ok(self.line()?.parse()?)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            bail!("the program ended");
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Launches, as the book of a process has them.
fn launches(pid: u32) -> anyhow::Result<Option<u64>> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        if std::fs::read_link(&path).is_ok_and(|link| link.to_string_lossy().contains("ttmon-book")) {
            let file = File::open(path)?;
            let read = book::read(book::of_file(&file))?;
            let found = activity(book::of_file(&file), &read, monotonic())?.context("no activity")?;
            return Ok(Some(found.launches.launches));
        }
    }
    Ok(None)
}
