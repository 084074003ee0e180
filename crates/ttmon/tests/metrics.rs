//! `ttmon metrics`, and what the service says to those who scrape it.

use crate::support::service::Service;
use crate::support::{Machine, TTMON, copy_program, run, ttmon};
use expect_test::expect_file;
use sim::tree::Chip;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

fn machine() -> Machine {
    Machine::with(&[Chip::p150a(0), Chip::p150b(1).hung()])
}

#[test]
fn help_is_as_pinned() {
    let help = run(Command::new(TTMON).args(["metrics", "--help"]).env("COLUMNS", "100")).out;
    expect_file!["golden/metrics-help.txt"].assert_eq(&help);
}

#[test]
fn one_sample_is_printed_in_either_format_whatever_the_devices_are_like() {
    let machine = machine();
    let plain = ttmon(&["metrics", "--root", machine.root()]);
    assert_eq!((plain.code, plain.err.as_str()), (Some(0), ""), "a hung device is no reason to say nothing");
    assert!(plain.out.contains("# TYPE ttmon_build_info gauge\n"), "{}", plain.out);
    assert!(plain.out.contains("state=\"hung\"} 1\n"), "{}", plain.out);
    assert!(!plain.out.contains("pcie_host_to_device_bytes_total"), "one sample counts nothing");
    let open = ttmon(&["metrics", "--root", machine.root(), "--openmetrics"]);
    assert!(open.out.contains("# TYPE ttmon_build info\n") && open.out.ends_with("# EOF\n"));
    let theirs = ttmon(&["metrics", "--root", machine.root(), "--compat", "tt-telemetry"]);
    assert!(theirs.out.contains("tt_chip_count 2\n"), "{}", theirs.out);
}

#[test]
fn what_a_process_calls_itself_never_reaches_a_terminal_as_it_is() {
    let (machine, folder) = (machine(), tempfile::tempdir().unwrap());
    let program = folder.path().join("\u{1b}[2Jx");
    copy_program(Path::new("/bin/sleep"), &program);
    let mut child = Command::new(&program).arg("600").spawn().unwrap();
    machine.set_pids(0, &[child.id()]);
    machine.open(child.id(), 3, 0, &["drm-client-id: 1", "drm-memory-dram: 7 KiB"]);
    let printed = ttmon(&["metrics", "--root", machine.root()]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(printed.out.contains("name=\"?[2Jx\""), "{}", printed.out);
    assert!(!printed.out.contains('\u{1b}'), "{:?}", printed.out);
}

#[test]
fn a_textfile_is_replaced_whole_and_everybody_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (machine, folder) = (machine(), tempfile::tempdir().unwrap());
    let path = folder.path().join("ttmon.prom");
    std::fs::write(&path, "old\n").unwrap();
    let run = ttmon(&["metrics", "--root", machine.root(), "--textfile", path.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "", ""));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("# HELP ttmon_build_info "));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    let nowhere = ttmon(&["metrics", "--root", machine.root(), "--textfile", "/nonexistent/ttmon.prom"]);
    assert_eq!(nowhere.code, Some(2));
    assert_eq!(nowhere.err, "error: --textfile /nonexistent/ttmon.prom: No such file or directory (os error 2)\n");
}

/// Head and body of an answer.
fn scrape(address: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\naccept: {accept}\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn a_scrape_gets_the_format_that_it_likes_and_counters_of_the_service() {
    let options = ["--listen", "127.0.0.1:0", "--compat", "tt-telemetry", "--max-process-series", "3"];
    let service = Service::start_with(machine(), &options);
    let log = service.log();
    let address = log.lines().find_map(|line| line.split_once("protocol=http address=").map(|(_, rest)| rest)).unwrap();
    let (head, body) = scrape(address, "*/*");
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    for metric in
        ["ttmon_samples_total ", "ttmon_read_faults_total ", "ttmon_process_deaths_total 0", "tt_chip_count 2"]
    {
        assert!(body.contains(&format!("\n{metric}")), "{metric}: {body}");
    }
    assert!(body.contains("ttmon_sample_age_seconds "), "{body}");
    let (head, body) = scrape(address, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.trim_end().ends_with("# EOF"), "{body}");
}
