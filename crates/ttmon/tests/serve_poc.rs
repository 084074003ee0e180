//! Clients of the proof of concept, in Python (112 bytes) and C (144 bytes), against a real service.

use crate::support::harness::needs_root;
use crate::support::service::{Poc, Service, wait_for};
use crate::support::{Machine, TTMON, run};
use serde_json::json;
use sim::tree::Chip;
use std::path::Path;
use std::time::{Duration, Instant};

fn service() -> Service {
    Service::start(Machine::with(&[Chip::p150a(0), Chip::p150a(1)]))
}

/// Asks until the answer is the right one, or says what it was instead.
fn expect(asker: &mut Poc, command: &str, right: &[u64]) {
    let mut last = Vec::new();
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        last = asker.ask(command);
        if last == right {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("{command}: {last:?} instead of {right:?}");
}

#[test]
fn the_python_client_works() {
    let service = service();
    let mut client = service.python();
    assert_eq!(client.ask("query 0"), [0, 0, 0, 0], "a lone first message");
    client.ask("alloc 0 1000 0 4096");
    client.ask("alloc 0 200 1 8192");
    client.ask("alloc 0 30 2 12288");
    client.ask("alloc 0 4 3 16384");
    client.ask("alloc 1 5 0 20480");
    assert_eq!(client.ask("query 0"), [1000, 200, 30, 4]);
    assert_eq!(client.ask("query 1"), [5, 0, 0, 0]);
    client.ask("free 1 20480");
    assert_eq!(client.ask("query 1"), [0, 0, 0, 0], "it frees with device 0 whatever the device was");
    client.ask("free 0 8192");
    assert_eq!(client.ask("query 0"), [1000, 0, 30, 4]);
    client.ask("dump");
    wait_for(|| service.log().contains("event=remaining"), || service.log());
    assert!(service.log().contains(&format!("pid={} device=0 dram_bytes=1000", client.pid)), "{}", service.log());
}

#[test]
fn an_instrumented_tt_metal_works() {
    let service = service();
    let mut client = service.c();
    assert_eq!(client.ask("query 0"), [0; 6], "a lone first message");
    client.ask("alloc 0 1000 0 4096");
    client.ask("alloc 0 200 1 8192");
    client.ask("alloc 0 77 2 8193");
    client.ask("alloc 0 30 3 12288");
    client.ask("alloc 0 4 4 16384");
    client.ask("cb 0 50 4096");
    client.ask("kernel 0 60 4096");
    assert_eq!(client.ask("query 0"), [1000, 200, 30, 4, 50, 60], "host memory is none of the device's");
    // Cached programs have their buffers again and again.
    client.ask("alloc 0 1000 0 4096");
    client.ask("free 0 4096");
    assert_eq!(client.ask("query 0")[0], 1000);
    client.ask("free 0 4096");
    client.ask("cbfree 0 4096");
    client.ask("unload 0 4096");
    assert_eq!(client.ask("query 0"), [0, 200, 30, 4, 0, 0]);
    client.ask("dump");
    wait_for(|| service.log().contains("event=kernels"), || service.log());
}

#[test]
fn a_device_is_reported_in_the_size_of_the_question() {
    let service = service();
    let (gib, p150) = (1u64 << 30, 120 * 1_572_864);
    let info = [32 * gib, p150, 3, 8, u64::from(u32::MAX), 1_572_864, 1, 2];
    for mut client in [service.python(), service.c()] {
        let told = client.ask("info 0");
        assert_eq!((told[0], &told[2..]), (info[0], &info[2..]));
        assert_eq!(client.ask("info -1"), [0, 0, 0, 0, 0, 0, 1, 2], "how many there are");
        assert_eq!(client.ask("info 7"), [0, 0, 0, 0, 0, 0, 0, 2], "there is no such device");
        assert_eq!(client.ask("query 7")[0], 0);
        assert_eq!(client.ask("query -1")[0], 0);
    }
}

#[test]
fn messages_may_be_cut_and_joined_in_any_way() {
    let service = service();
    let mut watcher = service.c();
    for mut client in [service.python(), service.c()] {
        for (chunk, pause) in
            [(1, 0), (7, 0), (40, 1), (111, 1), (112, 30), (113, 1), (144, 30), (200, 1), (1 << 20, 0)]
        {
            client.ask("reconnect");
            client.ask("hold");
            for buffer in 1..=5 {
                client.ask(&format!("alloc 0 {} 0 {buffer}", 100 * buffer));
            }
            client.ask("free 0 2");
            client.ask(&format!("flush {chunk} {pause}"));
            expect(&mut watcher, "query 0", &[1300, 0, 0, 0, 0, 0]);
            for buffer in [1, 3, 4, 5] {
                client.ask(&format!("free 0 {buffer}"));
            }
            expect(&mut watcher, "query 0", &[0; 6]);
        }
    }
    assert!(!service.log().contains("level=warning"), "{}", service.log());
}

#[test]
fn interleaved_connections_do_not_disturb_each_other() {
    let service = service();
    let (mut one, mut two) = (service.python(), service.c());
    one.ask("hold");
    two.ask("hold");
    for buffer in 1..=20 {
        one.ask(&format!("alloc 0 1 0 {buffer}"));
        two.ask(&format!("alloc 0 100 0 {buffer}"));
    }
    one.tell("flush 50 1");
    two.tell("flush 61 1");
    one.reply();
    two.reply();
    expect(&mut one, "query 0", &[2020, 0, 0, 0]);
    one.kill();
    expect(&mut two, "query 0", &[2000, 0, 0, 0, 0, 0]);
}

#[test]
fn what_a_forked_child_allocates_is_the_childs_though_it_uses_its_parents_connection() {
    let service = service();
    let mut parent = service.python();
    parent.ask("alloc 0 1000 0 4096");
    let child = parent.ask("fork 0 200 0 8192")[0];
    expect(&mut parent, "query 0", &[1200, 0, 0, 0]);
    let mut held: Vec<(u64, u64)> = service.snapshot()["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| (process["pid"].as_u64().unwrap(), process["devices"][0]["dram_bytes"].as_u64().unwrap()))
        .collect();
    held.sort_by_key(|(_, bytes)| *bytes);
    assert_eq!(held, [(child, 200), (u64::from(parent.pid), 1000)]);
    parent.ask("alloc 0 5 0 12288");
    assert_eq!(parent.ask("query 0")[0], 1205, "and the parent's are the parent's");
    assert!(!service.log().contains("event=wrong-pid"), "{}", service.log());
    // The child's bytes go with the child.
    rustix::process::kill_process(rustix::process::Pid::from_raw(child as i32).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    expect(&mut parent, "query 0", &[1005, 0, 0, 0]);
}

#[test]
fn the_same_address_in_two_processes_is_two_buffers() {
    let service = service();
    let (mut one, mut two) = (service.python(), service.c());
    one.ask("alloc 0 30 0 4096");
    two.ask("alloc 0 500 0 4096");
    expect(&mut one, "query 0", &[530, 0, 0, 0]);
    two.ask("free 0 4096");
    expect(&mut one, "query 0", &[30, 0, 0, 0]);
}

#[test]
fn buffers_belong_to_the_process_and_not_to_the_connection() {
    let service = service();
    let (mut client, mut watcher) = (service.c(), service.python());
    client.ask("alloc 0 30 0 4096");
    client.ask("reconnect");
    client.ask("alloc 0 500 0 8192");
    assert_eq!(client.ask("query 0")[0], 530);
    client.ask("free 0 4096");
    expect(&mut watcher, "query 0", &[500, 0, 0, 0]);
}

#[test]
fn the_dead_leave_the_totals_at_once_and_are_remembered() {
    let service = service();
    let (mut client, mut watcher) = (service.c(), service.python());
    (0..2).for_each(|n| service.hold(n, &[client.pid]));
    for buffer in 1..=15 {
        client.ask(&format!("alloc 1 {} 0 {buffer}", buffer * 10));
    }
    client.ask("alloc 0 7 1 1");
    expect(&mut watcher, "query 1", &[1200, 0, 0, 0]);
    client.child.kill().unwrap();
    let killed = Instant::now();
    // Not waited for: a zombie holds no memory either, and tells what ended it.
    expect(&mut watcher, "query 1", &[0, 0, 0, 0]);
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    let death = &service.death();
    assert_eq!(service.deaths().len(), 1);
    assert_eq!((&death["pid"], &death["signal"], &death["exit_code"]), (&json!(client.pid), &json!(9), &json!(null)));
    assert_eq!((&death["buffers"], &death["name"]), (&json!(16), &json!("poc-client")));
    assert!(death["command"].as_str().unwrap().contains("poc-client"));
    let held: Vec<_> = death["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|held| json!([held["id"], held["dram_bytes"], held["l1_bytes"]]))
        .collect();
    assert_eq!(held, [json!(["0", 0, 7]), json!(["1", 1200, 0])]);
    let largest: Vec<_> = death["largest_buffers"].as_array().unwrap().iter().map(|row| row["bytes"].clone()).collect();
    assert_eq!(json!(largest), json!([150, 140, 130, 120, 110, 100, 90, 80, 70, 60]));
    assert_eq!(death["largest_buffers"][0]["devices"], json!(["1"]));
}

#[test]
fn an_exit_code_is_remembered_where_it_can_be_known() {
    let service = service();
    let mut client = service.c();
    client.ask("alloc 0 7 0 1");
    // It is known, now that it was answered: whoever dies before that is nobody.
    client.ask("query 0");
    client.tell("nonsense");
    let death = &service.death();
    assert_eq!((&death["exit_code"], &death["signal"]), (&json!(2), &json!(null)));
}

#[test]
fn the_signal_that_ended_a_process_is_known_though_its_parent_has_waited_for_it() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|word| word.trim().parse::<u32>().ok());
    if (numbers.next(), numbers.next()) < (Some(6), Some(15)) {
        eprintln!("NOT RUN: Linux {release} does not remember how a process ended");
        return;
    }
    let service = service();
    for (at, signal) in [15, 11, 9].into_iter().enumerate() {
        let mut client = service.c();
        client.ask("alloc 0 7 0 1");
        client.ask("query 0");
        let pid = rustix::process::Pid::from_child(&client.child);
        // The service is stopped meanwhile, so that it cannot look before the parent does.
        let serving = rustix::process::Pid::from_child(&service.child);
        rustix::process::kill_process(serving, rustix::process::Signal::STOP).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::from_named_raw(signal).unwrap()).unwrap();
        client.child.wait().unwrap();
        rustix::process::kill_process(serving, rustix::process::Signal::CONT).unwrap();
        wait_for(|| service.deaths().len() > at, || service.log());
        let death = &service.deaths()[0];
        assert_eq!((&death["pid"], &death["signal"]), (&json!(client.pid), &json!(signal)), "{death}");
    }
}

#[test]
fn what_is_reported_is_in_the_snapshot() {
    let service = service();
    let mut client = service.python();
    service.hold(1, &[client.pid]);
    client.ask("alloc 1 1000 0 4096");
    client.ask("query 1");
    let snapshot = service.snapshot();
    let process = &snapshot["processes"][0];
    assert_eq!(process["pid"], client.pid);
    let held = &process["devices"][0];
    assert_eq!((&held["id"], &held["dram_bytes"], &held["source"]), (&json!("1"), &json!(1000), &json!("reported")));
    assert_eq!(snapshot["devices"][1]["memory"]["dram_used_bytes"], 1000);
    let page = service.native().ask(json!({"buffers": {"device": "1"}}));
    let page = &page["buffers"];
    assert_eq!((&page["total"], &page["buffers"][0]["address"]), (&json!(1), &json!(4096)));
}

#[test]
fn root_may_speak_for_another_process_that_exists() {
    if !needs_root("root_may_speak_for_another_process_that_exists") {
        return;
    }
    let service = service();
    let (mut one, mut other) = (service.c(), service.python());
    one.ask(&format!("pid {}", other.pid));
    one.ask("alloc 0 100 0 4096");
    one.ask("query 0");
    assert_eq!(service.snapshot()["processes"][0]["pid"], other.pid);
    one.ask("pid 4194305");
    one.ask("alloc 0 30 0 4096");
    expect(&mut other, "query 0", &[130, 0, 0, 0]);
    one.ask("alloc 0 30 0 8192");
    expect(&mut other, "query 0", &[160, 0, 0, 0]);
    assert_eq!(service.log().matches("event=wrong-pid").count(), 1, "a process that is not there: {}", service.log());
    other.kill();
    wait_for(|| one.ask("query 0")[0] == 60, || service.log());
}

#[test]
fn another_user_is_seen_and_cannot_speak_for_others() {
    if !needs_root("another_user_is_seen_and_cannot_speak_for_others") {
        return;
    }
    let service = service();
    let mut root = service.python();
    let mut liar = service.c_in(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    liar.ask(&format!("pid {}", root.pid));
    liar.ask("alloc 0 100 0 4096");
    expect(&mut root, "query 0", &[100, 0, 0, 0]);
    assert!(service.log().contains("event=wrong-pid"), "{}", service.log());
    let process = &service.snapshot()["processes"][0];
    assert_eq!((&process["pid"], &process["user"]), (&json!(liar.pid), &json!("nobody")));
    liar.kill();
    expect(&mut root, "query 0", &[0, 0, 0, 0]);
    let death = &service.death();
    assert_eq!((&death["pid"], &death["user"]), (&json!(liar.pid), &json!("nobody")));
}

#[test]
fn a_process_in_a_container_is_itself_by_its_inner_pid() {
    if !needs_root("a_process_in_a_container_is_itself_by_its_inner_pid") {
        return;
    }
    let service = service();
    let wrapper = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"];
    let (mut one, mut other, mut watcher) = (service.c_in(&wrapper), service.c_in(&wrapper), service.python());
    assert_eq!((one.inner_pid, other.inner_pid), (1, 1));
    one.ask("alloc 0 100 0 4096");
    other.ask("alloc 0 30 0 4096");
    expect(&mut watcher, "query 0", &[130, 0, 0, 0]);
    let snapshot = service.snapshot();
    let mut pids: Vec<_> =
        snapshot["processes"].as_array().unwrap().iter().map(|process| process["pid"].clone()).collect();
    pids.sort_by_key(|pid| pid.as_u64());
    let mut expected = [one.pid, other.pid];
    expected.sort_unstable();
    assert_eq!(pids, expected);
    assert!(!service.log().contains("wrong-pid"), "{}", service.log());
    one.kill();
    expect(&mut watcher, "query 0", &[30, 0, 0, 0]);
}

#[test]
fn a_process_may_have_so_many_buffers_and_others_do_not_notice() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::fs::write(&config, "buffers_per_process = 2\n").unwrap();
    let service = Service::start_with(Machine::with(&[Chip::p150a(0)]), &["--config", config.to_str().unwrap()]);
    let (mut one, mut other) = (service.c(), service.python());
    for buffer in 1..=4 {
        one.ask(&format!("alloc 0 10 0 {buffer}"));
    }
    other.ask("alloc 0 100 0 1");
    expect(&mut other, "query 0", &[120, 0, 0, 0]);
    let why = r#"reason="the process has 2 live buffers, which is as many as this service keeps of one""#;
    assert_eq!(service.log().matches(why).count(), 1, "{}", service.log());
}

#[test]
fn who_claims_more_than_there_can_be_dies_like_others() {
    let service = service();
    let (mut liar, mut watcher) = (service.c(), service.c());
    watcher.ask("alloc 0 30 0 4096");
    for buffer in 1..=3 {
        liar.ask(&format!("alloc 0 {} 0 {buffer}", i64::MAX));
        liar.ask(&format!("alloc 1 {} 1 {buffer}", i64::MAX));
    }
    expect(&mut watcher, "query 0", &[u64::MAX, 0, 0, 0, 0, 0]);
    liar.kill();
    expect(&mut watcher, "query 0", &[30, 0, 0, 0, 0, 0]);
    let death = &service.death();
    assert_eq!((&death["devices"], &death["buffers"]), (&json!([]), &json!(0)), "what was refused is not kept");
}

#[test]
fn devices_that_are_made_up_cost_others_one_line() {
    let service = service();
    let mut liar = service.c();
    for device in 0..300 {
        liar.ask(&format!("alloc {device} 10 0 4096"));
    }
    assert_eq!(liar.ask("query 255")[0], 10);
    assert_eq!(liar.ask("query 256")[0], 0);
    let snapshot = service.snapshot();
    let path = format!("/proc/{}", liar.pid);
    let faults: Vec<_> = snapshot["faults"].as_array().unwrap().iter().filter(|fault| fault["path"] == path).collect();
    let why = "reports memory of unknown device 2 and 253 more";
    assert_eq!((faults.len(), &faults[0]["reason"]), (1, &json!(why)));
    let refused = r#"reason="the process has buffers on 256 devices already, and claims some on device 256 too""#;
    assert_eq!(service.log().matches(refused).count(), 1, "{}", service.log());
}

#[test]
fn what_remains_is_not_printed_more_often_than_it_can_be_read() {
    let service = service();
    let (mut client, began) = (service.c(), Instant::now());
    client.ask("alloc 0 1000 0 4096");
    (0..500).for_each(|_| drop(client.ask("dump")));
    client.ask("query 0");
    let seconds = began.elapsed().as_secs() as usize;
    for event in ["event=remaining", "event=kernels"] {
        let lines = service.log().matches(event).count();
        assert!((1..=seconds + 2).contains(&lines), "{lines} lines in {seconds} s");
    }
}

#[test]
fn a_users_service_is_the_users_own() {
    use std::os::unix::fs::PermissionsExt;
    let test = "a_users_service_is_the_users_own";
    if !needs_root(test) {
        return;
    }
    let machine = Machine::with(&[Chip::p150a(0)]);
    let folder = tempfile::tempdir().unwrap();
    let program = crate::support::program_for_all(folder.path());
    crate::support::program_for_all(machine.0.path());
    let session = folder.path().join("session");
    std::fs::create_dir(&session).unwrap();
    std::os::unix::fs::chown(&session, Some(65534), Some(65534)).unwrap();
    let as_nobody = |session: Option<&Path>| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        command
            .args(["serve", "--listen", "off", "--poc-socket", "off", "--root", machine.root()])
            .env_remove("XDG_RUNTIME_DIR");
        command.envs(session.map(|session| ("XDG_RUNTIME_DIR", session)));
        command
    };
    let refused = run(&mut as_nobody(None));
    let why =
        "error: XDG_RUNTIME_DIR is not set, so there is no folder for the socket: name a place with --socket PATH\n";
    assert_eq!((refused.code, refused.err.as_str()), (Some(2), why));
    let mut child = as_nobody(Some(&session)).stderr(std::process::Stdio::null()).spawn().unwrap();
    let socket = session.join("ttmon.sock");
    wait_for(|| socket.exists(), String::new);
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_second_instance_says_who_has_the_socket() {
    let mut service = service();
    let other = run(std::process::Command::new(TTMON)
        .args(["serve", "--listen", "off", "--root", service.machine.root(), "--socket"])
        .arg(service.socket())
        .arg("--poc-socket")
        .arg(service.poc_socket()));
    assert_eq!(other.code, Some(2));
    let who = format!("{}: is served by pid {} (ttmon)", service.socket().display(), service.pid());
    assert!(other.err.starts_with(&format!("error: {who}")), "{}", other.err);
    assert!(service.terminate().success());
    assert!(!service.socket().exists() && !service.poc_socket().exists());
}

#[test]
fn what_is_in_the_way_of_one_socket_does_not_stop_the_others_and_is_tried_again() {
    type Put = fn(&Path);
    let obstacles: [(&str, Put); 4] = [
        ("is no socket", |path| std::fs::create_dir(path).unwrap()),
        ("is no socket", |path| std::os::unix::fs::symlink(path.with_extension("target"), path).unwrap()),
        ("is no socket", |path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("is served by pid ", |path| {
            // Stays open to the end of the test.
            std::mem::forget(std::os::unix::net::UnixListener::bind(path).unwrap());
        }),
    ];
    for (why, put) in obstacles {
        let folder = tempfile::tempdir().unwrap();
        let poc = folder.path().join("poc.sock");
        std::fs::write(poc.with_extension("target"), "precious").unwrap();
        put(&poc);
        let service = Service::start_in(folder, Machine::with(&[Chip::p150a(0)]), &[]);
        let log = service.log();
        let warning =
            log.lines().find(|line| line.starts_with("level=warning event=not-listening protocol=poc reason="));
        assert!(warning.is_some_and(|line| line.contains(why) && line.contains("poc.sock: ")), "{log}");
        assert_eq!(service.snapshot()["devices"][0]["id"], "0");
        // As it was, and no longer in the way.
        assert_eq!(std::fs::read_to_string(poc.with_extension("target")).unwrap(), "precious");
        std::fs::rename(&poc, poc.with_extension("aside")).unwrap();
        wait_for(|| service.log().contains("event=listening protocol=poc"), || service.log());
        expect(&mut service.c(), "query 0", &[0; 6]);
    }
}

#[test]
fn a_read_only_run_is_named_with_its_path() {
    if !needs_root("a_read_only_run_is_named_with_its_path") {
        return;
    }
    let script = format!("mount -t tmpfs -o ro none /run; {TTMON} serve --sim --listen off --poc-socket off");
    let refused = run(std::process::Command::new("unshare").args(["-m", "sh", "-c", &script]));
    assert_eq!(refused.err, "error: /run/ttmon: cannot be created: Read-only file system (os error 30)\n");
}

#[test]
#[ignore = "long"]
fn of_a_thousand_clients_the_sum_is_that_of_the_survivors() {
    let many = 1000usize;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::fs::write(&config, format!("connections = {}\n", many + 10)).unwrap();
    let machine = Machine::with(&[Chip::p150a(0), Chip::p150a(1)]);
    let service = Service::start_with(machine, &["--config", config.to_str().unwrap()]);
    let mut watcher = service.c();
    let mut clients: Vec<Poc> = (0..many).map(|i| if i % 100 == 99 { service.python() } else { service.c() }).collect();
    for (seed, client) in clients.iter_mut().enumerate() {
        client.tell(&format!("random {seed} 500 0"));
    }
    // While all of them allocate and free, every third dies: somewhere, and whenever it comes to it.
    let mut survivors = Vec::new();
    for (i, mut client) in clients.into_iter().enumerate() {
        if i % 3 == 0 {
            std::thread::sleep(Duration::from_micros(i as u64 * 7919 % 3000));
            client.child.kill().unwrap();
            drop(client);
        } else {
            survivors.push(client);
        }
    }
    let mut truth = vec![0; 6];
    for client in &mut survivors {
        for (sum, bytes) in truth.iter_mut().zip(client.reply()) {
            *sum += bytes;
        }
    }
    expect(&mut watcher, "query 0", &truth);
    wait_for(|| service.deaths().len() <= many.div_ceil(3), || service.log());
    drop(survivors);
    expect(&mut watcher, "query 0", &[0; 6]);
}
