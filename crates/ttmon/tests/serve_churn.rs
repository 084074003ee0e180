//! Clients of all kinds that come and go on both sockets, most of them without taking leave: afterwards the service has as many
//! open files as before, and no more memory than it had after a while.
//!
//! Ten seconds of it; `TTMON_CHURN_SECONDS=600 cargo test -p ttmon serve_churn -- --nocapture` for ten minutes.

use crate::support::harness::Harness;
use crate::support::service::{Native, Poc, Service, wait_for};
use crate::support::{Chance, Machine};
use serde_json::json;
use sim::tree::Chip;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const CHIP: u64 = 0xC4C4;
/// So many live at the same time.
const CROWD: usize = 24;
/// The allocator does not give back all that it could, in kB.
const MARGIN: u64 = 2048;

/// Somebody who has come, and goes when dropped.
#[expect(dead_code, reason = "they are kept, not looked at")]
enum Guest {
    /// Allocates and frees.
    Poc(Poc),
    /// Keeps a book, has handed it over, and changes it.
    Keeper(Harness),
    /// Has asked, and may have read what it was told.
    Asker(Native),
    /// Half a message, or nothing.
    Silent(UnixStream),
}

fn guest(service: &Service, chance: &mut Chance) -> Guest {
    let seed = chance.below(1 << 30);
    match chance.below(10) {
        0..=2 => {
            let mut client = service.c();
            client.tell(&format!("random {seed} {} {}", 100 + chance.below(3000), chance.below(3)));
            Guest::Poc(client)
        }
        3 => {
            let mut keeper = Harness::start(&[], &["book", &CHIP.to_string(), &seed.to_string()], &[]);
            keeper.ok(&format!("hand {}", service.socket().display()));
            keeper.ok("go");
            // Some are known to the driver too, and so to the sampler.
            if chance.below(2) == 0 {
                service.machine.set_pids(0, &[keeper.pid]);
            }
            Guest::Keeper(keeper)
        }
        4..=6 => {
            let mut native = service.native();
            let question = match chance.below(5) {
                0 => json!({"snapshot": {}}),
                1 => json!({"buffers": {"sort": "age"}}),
                2 => json!({"deaths": {}}),
                3 => json!({"processes": {}}),
                _ => json!({"divices": {}}),
            };
            (0..chance.below(4)).for_each(|_| drop(native.ask(question.clone())));
            (0..chance.below(4)).for_each(|_| native.tell(&question));
            Guest::Asker(native)
        }
        // Subscribers who never read, some of them with much to be told.
        7 | 8 => {
            let mut native = service.native();
            native.tell(&json!({"subscribe": {"interval_ms": chance.below(300)}}));
            (0..chance.below(40)).for_each(|_| native.tell(&json!({"snapshot": {}})));
            Guest::Asker(native)
        }
        _ => {
            let path = if chance.below(2) == 0 { service.socket() } else { service.poc_socket() };
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(&[1; 112][..chance.below(112) as usize]).unwrap();
            Guest::Silent(stream)
        }
    }
}

#[test]
#[ignore = "long"]
fn whoever_comes_and_goes_leaves_nothing_behind() {
    let seconds = std::env::var("TTMON_CHURN_SECONDS").ok().and_then(|number| number.parse().ok()).unwrap_or(10);
    let (whole, folder) = (Duration::from_secs(seconds), tempfile::tempdir().unwrap());
    let config = folder.path().join("config");
    // With few deaths to remember, the memory of them is soon as large as it will be.
    std::fs::write(&config, "deaths = 50\ninterval_ms = 100\n").unwrap();
    let machine = Machine::with(&[Chip { asic_id: Some(CHIP), ..Chip::p150a(0) }]);
    let service = Service::start_with(machine, &["--config", config.to_str().unwrap()]);
    let (files, _) = service.cost();

    let mut chance = Chance::new(1);
    let mut crowd: Vec<Guest> = Vec::new();
    let (began, mut guests, mut minutes, mut most_files) = (Instant::now(), 0u64, 0, 0);
    // The most memory in each quarter of the time. The first half is for getting warm.
    let mut quarters = [0u64; 4];
    while began.elapsed() < whole {
        let now = began.elapsed();
        if crowd.len() >= CROWD {
            drop(crowd.swap_remove(chance.below(CROWD as u64) as usize));
        }
        crowd.push(guest(&service, &mut chance));
        guests += 1;
        std::thread::sleep(Duration::from_micros(chance.below(4000)));
        let (open, memory) = service.cost();
        most_files = open.max(most_files);
        let quarter = &mut quarters[(now.as_millis() * 4 / whole.as_millis()) as usize];
        *quarter = memory.max(*quarter);
        if now.as_secs() / 60 > minutes {
            minutes += 1;
            println!("after {minutes} min: {guests} guests, {open} open files, {memory} kB");
        }
    }
    drop(crowd);
    let left = || format!("{files} open files have become\n{}", service.open_files().join("\n"));
    wait_for(|| service.cost().0 == files, left);
    let (_, memory) = service.cost();
    println!("{guests} guests in {seconds} s: {files} open files before and after, {most_files} at the most");
    println!("{quarters:?} kB at the most in each quarter, {memory} kB after all");
    let [first, second, _, last] = quarters;
    let plateau = first.max(second);
    assert!(last.max(memory) <= plateau + MARGIN, "{quarters:?} kB, and then {memory} kB");
    let processes = service.snapshot()["processes"].clone();
    assert_eq!(processes, json!([]));
    assert_eq!(service.c().ask("query 0"), [0; 6]);
}
