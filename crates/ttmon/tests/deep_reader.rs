//! The program as the reader of deep reads.

use crate::support::TTMON;
use deep::{Reader, Request};
use model::{Arch, DeepUnavailable};
use std::fs;

#[test]
fn the_reader_is_one_process_with_one_thread_and_no_privileges() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("0"), include_str!("../../deep/tests/images/blackhole.txt")).unwrap();
    let mut reader = Reader::new(TTMON.into(), folder.path().to_owned());
    let request = Request { number: 0, arch: Arch::Blackhole, pids: None };
    let reading = reader.read(&request, std::time::Duration::from_secs(30)).unwrap();
    assert_eq!((reading.table.entries.len(), reading.reads, reading.filtered), (69, 145, true));
    let pid = reader.pid().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap().trim();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    assert_eq!((threads, &*children, field("PPid")), (1, "", &*std::process::id().to_string()));
    let none = "0000000000000000";
    assert_eq!((field("CapEff"), field("CapPrm"), field("CapInh"), field("CapAmb")), (none, none, none, none));
    // 2: by a filter.
    assert_eq!((field("NoNewPrivs"), field("Seccomp")), ("1", "2"));
    assert!(reader.break_its_rules().detail.contains("SIGSYS"));
    let other = Request { number: 1, ..request };
    assert_eq!(reader.read(&other, std::time::Duration::from_secs(30)).unwrap_err().why, DeepUnavailable::NotReady);
}
