//! What the real `libtt_metal.so` writes to `/dev/shm/tt_device_<id>_memory`, byte by byte.
//!
//! Runs when `TTMON_TTNN` names the `ttnn` folder of an unpacked wheel, as `scripts/fetch-ttnn` prints it.

#![allow(clippy::unwrap_used)]

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn a_provider_counts_in_the_documented_places() {
    let Some(ttnn) = ttnn("a_provider_counts_in_the_documented_places") else { return };
    let region = Region::unused();
    let mut harness = Harness::start(&["shm", path(&ttnn.join("build/lib/libtt_metal.so"))]);

    harness.ok(&format!("open 1 {} 7", region.asic_id));
    let bytes = region.read();
    assert_eq!(bytes.len(), 8576);
    assert_eq!(bytes.u32(0), 3, "version");
    assert_eq!(bytes.u32(16), 1, "attachments");
    assert_eq!(bytes.u64(32), region.asic_id);
    assert_eq!(bytes.u32(40), 7, "device id");
    assert_eq!(bytes.totals(), [0; 5]);
    assert_eq!(bytes.u32(CHIPS), 7, "the creator's device is the first chip");
    assert_eq!(bytes.u32(CHIPS + 48), FREE_CHIP);
    assert_eq!(bytes.u32(PROCESSES), 0, "no slot before the first allocation");

    for (bytes, kind) in [(5000, "dram"), (400, "l1"), (30, "l1_small"), (2, "trace"), (1, "cb")] {
        harness.ok(&format!("alloc 1 {bytes} {kind}"));
    }
    harness.ok("alloc 1 600 dram 3");
    harness.ok("free 1 100 l1");
    let bytes = region.read();
    assert_eq!(bytes.totals(), [5600, 300, 30, 2, 1]);
    assert_eq!(bytes.u32(CHIPS), 7, "first chip");
    assert_eq!(bytes.counters(CHIPS + 8), [5000, 300, 30, 2, 1]);
    assert_eq!(bytes.u32(CHIPS + 48), 3, "second chip");
    assert_eq!(bytes.counters(CHIPS + 48 + 8), [600, 0, 0, 0, 0]);
    assert_eq!(bytes.u32(CHIPS + 2 * 48), FREE_CHIP);
    assert_eq!(bytes.u32(PROCESSES), harness.child.id());
    assert_eq!(bytes.counters(PROCESSES + 8), [5600, 300, 30, 2, 1]);
    assert_eq!(bytes.0[PROCESSES + 56..][..16], *b"ttmetal-harness\0");
    assert_eq!(bytes.u32(PROCESSES + 120), 0, "one slot only");

    assert_eq!(harness.ask("alloc 2 1 dram"), "ERR slot 2 is not open");
    harness.ok("close 1");
    let bytes = region.read();
    assert_eq!(bytes.u32(16), 0, "attachments");
    assert_eq!(bytes.totals(), [0; 5]);
    assert_eq!(bytes.u32(PROCESSES), 0, "the slot is free again");

    harness.ok(&format!("open 2 {} 0", region.asic_id));
    assert_eq!(region.read().u32(16), 1, "attachments");
    harness.ok("quit");
    assert_eq!(region.read().u32(16), 0, "attachments");
    assert!(harness.child.wait().unwrap().success());
}

#[test]
fn a_buffer_on_a_mock_device_is_counted() {
    let Some(ttnn) = ttnn("a_buffer_on_a_mock_device_is_counted") else { return };
    let region = Region::unused();
    let cluster = Cluster::n150(region.asic_id);
    let mut harness = Harness::start(&["mock", path(&ttnn), path(&cluster.0)]);

    for (command, per_bank) in [
        // 1024 pages on 12 banks: 86 on the fullest.
        ("alloc 1 2097152 2048 dram", 86 * 2048),
        // 64 pages on 64 banks.
        ("alloc 2 131072 2048 l1", 2048),
        ("alloc 3 4096 4096 trace", 4096),
    ] {
        let reply = harness.ask(command);
        assert!(reply.starts_with("OK address=") && reply.ends_with(&format!(" per_bank={per_bank}")), "{reply}");
    }
    let bytes = region.read();
    assert_eq!(bytes.totals(), [2_097_152, 131_072, 0, 4096, 0]);
    assert_eq!(bytes.u32(PROCESSES), harness.child.id());

    harness.ok("free 2");
    assert_eq!(region.read().totals(), [2_097_152, 0, 0, 4096, 0]);
    assert!(harness.ask("alloc 4 4096 4096 l1_small").starts_with("ERR "));

    // The end of input closes the device, as `quit` does.
    drop(harness.stdin.take());
    assert!(harness.child.wait().unwrap().success());
    let bytes = region.read();
    assert_eq!(bytes.totals(), [0; 5]);
    assert_eq!(bytes.u32(PROCESSES), 0);
}

/// Offset of the first chip (48 bytes each) and of the first process (120 bytes each).
const CHIPS: usize = 88;
const PROCESSES: usize = 856;
const FREE_CHIP: u32 = u32::MAX;

/// The unpacked wheel. Without it a test cannot run, which must not go unnoticed.
fn ttnn(test: &str) -> Option<PathBuf> {
    if let Some(ttnn) = env::var_os("TTMON_TTNN") {
        return Some(ttnn.into());
    }
    let notice = format!("NOT RUN: {test}, because TTMON_TTNN is not set: TTMON_TTNN=$(scripts/fetch-ttnn)");
    assert!(env::var_os("CI").is_none(), "{notice}");
    // The test runner swallows what `eprintln!` writes in a test that passes.
    io::stderr().write_all(format!("\n{notice}\n\n").as_bytes()).unwrap();
    None
}

/// A region that no other test uses, removed at the end.
struct Region {
    asic_id: u64,
    path: PathBuf,
}

impl Region {
    fn unused() -> Region {
        let mut asic_id = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
        loop {
            let path = PathBuf::from(format!("/dev/shm/tt_device_{asic_id}_memory"));
            if !path.exists() {
                return Region { asic_id, path };
            }
            asic_id += 1;
        }
    }

    fn read(&self) -> Bytes {
        Bytes(fs::read(&self.path).unwrap())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Absent if the test failed early.
        let _ = fs::remove_file(&self.path);
    }
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.0[offset..][..4].try_into().unwrap())
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.0[offset..][..8].try_into().unwrap())
    }

    /// DRAM, L1, small L1, trace and circular buffers.
    fn counters(&self, offset: usize) -> [u64; 5] {
        [0, 1, 2, 3, 4].map(|n| self.u64(offset + 8 * n))
    }

    fn totals(&self) -> [u64; 5] {
        self.counters(48)
    }
}

/// Our n150 with another unique id, in a file that is removed at the end.
struct Cluster(PathBuf);

impl Cluster {
    fn n150(asic_id: u64) -> Cluster {
        let ours = include_str!("../clusters/n150.yaml");
        let theirs = ours.replace("7310579611150000150", &asic_id.to_string());
        assert_ne!(ours, theirs);
        let path = env::temp_dir().join(format!("ttmon-n150-{asic_id}.yaml"));
        fs::write(&path, theirs).unwrap();
        Cluster(path)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A running harness. It is killed if the test fails.
struct Harness {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Harness {
    fn start(arguments: &[&str]) -> Harness {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ttmetal-harness"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut harness = Harness { child, stdin, stdout };
        assert_eq!(harness.line(), format!("READY {}", harness.child.id()));
        harness
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
        self.line()
    }

    fn ok(&mut self, command: &str) {
        assert_eq!(self.ask(command), "OK", "{command}");
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

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
