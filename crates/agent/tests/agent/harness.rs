//! The real library under the agent: a harness process that follows commands, and the book that it keeps.

use ledger::book::{self, Book, BookError, BufferTable, Counter, MemoryKind};
use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The wheels that are there: the newest, and one that keeps its accessors inline.
pub fn wheels() -> Vec<PathBuf> {
    newest().into_iter().chain(wheel("TTMON_TTNN_OLD", "scripts/fetch-ttnn 0.78.0")).collect()
}

/// The newest wheel.
pub fn newest() -> Option<PathBuf> {
    wheel("TTMON_TTNN", "scripts/fetch-ttnn")
}

/// One that delivers records in batches as the first.
pub fn wheel_076() -> Option<PathBuf> {
    wheel("TTMON_TTNN_076", "scripts/fetch-ttnn 0.76.0")
}

/// A Python that can import ttnn.
pub fn python() -> Option<PathBuf> {
    wheel("TTMON_TTNN_PYTHON", "scripts/ttnn-python")
}

fn wheel(variable: &str, command: &str) -> Option<PathBuf> {
    if let Some(wheel) = env::var_os(variable) {
        return Some(wheel.into());
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let notice = format!("NOT RUN: {test}, because {variable} is not set: {variable}=$({command})");
    assert!(env::var_os("CI").is_none(), "{notice}");
    // The test runner swallows what `eprintln!` writes in a test that passes.
    io::stderr().write_all(format!("\n{notice}\n\n").as_bytes()).unwrap();
    None
}

/// A cluster file of the harness.
pub fn cluster(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/clusters").join(name)
}

/// A file that `cargo build --workspace` leaves beside the tests, or that was built with them.
pub fn built(name: &str) -> PathBuf {
    let deps = env::current_exe().unwrap().parent().unwrap().to_owned();
    let places = [deps.parent().unwrap().join(name), deps.join(name)];
    let newest = places.into_iter().filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path))).max();
    newest.unwrap_or_else(|| panic!("{name} is missing: cargo build -p ttmon-agent -p ttmon-harness")).1
}

/// Compiles a C file.
pub fn compile(source: &Path, output: &Path, how: &[&str]) {
    let status = Command::new("cc").args(how).arg("-o").args([output, source]).status().unwrap();
    assert!(status.success(), "{}", source.display());
}

/// A running harness. It is killed if the test fails.
pub struct Harness {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Harness {
    /// Under the agent, without tt-metal's own statistics.
    pub fn start(wheel: &Path, cluster_file: &str, shape: Option<&str>) -> Harness {
        Harness::start_with(wheel, &cluster(cluster_file), shape, &[("TT_METAL_SHM_TRACKING_DISABLED", "1")])
    }

    pub fn start_with(wheel: &Path, cluster: &Path, shape: Option<&str>, environment: &[(&str, &str)]) -> Harness {
        let mut child = Command::new(built("ttmetal-harness"))
            .arg("mock")
            .args([wheel, cluster])
            .args(shape)
            .env("LD_PRELOAD", built("libttmon_agent.so"))
            .env_remove("TTMON_AGENT")
            .env_remove("TTMON_BOOK_SOCKET")
            .env("TT_LOGGER_LEVEL", "error")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if env::var_os("TTMON_TEST_STDERR").is_some() { Stdio::inherit() } else { Stdio::null() })
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut harness = Harness { child, stdin, stdout };
        assert_eq!(harness.line(), format!("READY {}", harness.pid()));
        harness
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says something that is answered with `OK`, and answers what comes after that.
    pub fn ok(&mut self, command: &str) -> String {
        self.say(command);
        let reply = self.line();
        reply.strip_prefix("OK").unwrap_or_else(|| panic!("{command}: {reply}")).trim().to_owned()
    }

    /// Says something.
    pub fn say(&mut self, command: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    /// Bytes that the allocator has handed out, over all banks.
    pub fn allocated(&mut self, kind: MemoryKind) -> u64 {
        let stats = self.ok(&format!("stats {}", kind.name()));
        value(&stats, "allocated") * value(&stats, "banks")
    }

    /// The book of the process, which outlives it. Only one.
    pub fn book(&self) -> Pages {
        let mut books = books(self.pid());
        assert_eq!(books.len(), 1, "books of {}", self.pid());
        books.remove(0)
    }

    /// Waits for the end.
    pub fn end(&mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number after `name=`.
pub fn value(reply: &str, name: &str) -> u64 {
    let value = reply.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("{reply:?} has no {name}")).parse().unwrap()
}

/// A book, open.
pub struct Pages(File);

/// All books that a process has open, its parent's among them.
pub fn books(pid: u32) -> Vec<Pages> {
    let is_book = |to: PathBuf| to.to_string_lossy().starts_with("/memfd:ttmon-book");
    let folder = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let books = files.filter(|path| fs::read_link(path).is_ok_and(is_book));
    books.map(|path| Pages(File::open(path).unwrap())).collect()
}

impl Pages {
    pub fn from(file: File) -> Pages {
        Pages(file)
    }

    pub fn into_file(self) -> File {
        self.0
    }

    pub fn read(&self) -> Book {
        self.read_if_written().unwrap()
    }

    /// Nothing while its process is making it.
    pub fn read_if_written(&self) -> Option<Book> {
        match book::read(book::of_file(&self.0)) {
            Err(BookError::NotYetWritten) => None,
            book => Some(book.unwrap()),
        }
    }

    /// Its bytes.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> io::Result<usize> {
        book::of_file(&self.0)(offset, into)
    }

    /// With the largest free blocks of this moment.
    pub fn read_with_banks(&self) -> Book {
        book::read_with_banks(book::of_file(&self.0)).unwrap()
    }

    pub fn table(&self) -> BufferTable {
        book::table(book::of_file(&self.0), &self.read()).unwrap()
    }

    /// What there is of a kind on a chip, by its number in the process.
    pub fn counter(&self, device_id: u32, kind: MemoryKind) -> Counter {
        let book = self.read();
        let chip = book.chips.iter().find(|chip| chip.device_id == device_id);
        chip.unwrap_or_else(|| panic!("no chip {device_id} in {book:#?}")).counters[kind as usize]
    }

    pub fn bytes(&self, device_id: u32, kind: MemoryKind) -> u64 {
        self.counter(device_id, kind).bytes
    }
}
