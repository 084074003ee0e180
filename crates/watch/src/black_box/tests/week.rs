//! A week of a large machine, in minutes.

use super::{BEGIN, Bench, MIB};
use crate::black_box::{DEFAULT_MIB, LEVELS};
use model::Weight;
use show::example;
use std::time::Instant;

/// A week at 32 devices: `cargo test --release -p ttmon-watch measure_a_week -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measure_a_week_at_32_devices() {
    let began = Instant::now();
    let mut bench = Bench::new(DEFAULT_MIB * MIB, example::galaxy());
    let mut largest = 0;
    for hour in 1..=7 * 24 {
        for _ in 0..60 {
            bench.run(60);
            largest = largest.max(bench.size());
        }
        if hour % 24 == 0 {
            bench.log(&format!("day {}", hour / 24), Weight::Note);
            bench.start();
        }
        assert!(largest <= bench.limit, "{largest}");
    }
    let times = bench.times();
    let hours = |step: i64| {
        let of = times.windows(2).filter(|pair| pair[1] - pair[0] == step).count();
        of as f64 * step as f64 / 3.6e6
    };
    let files = std::fs::read_dir(bench.path()).unwrap().count();
    println!(
        "a week in {:.0} s: {} MiB at the most, {files} files, {} snapshots",
        began.elapsed().as_secs_f64(),
        largest >> 20,
        times.len()
    );
    for level in LEVELS {
        println!("every {} s: {:.1} h", level.step, hours(i64::from(level.step) * 1000));
    }
    assert!(times[0] <= BEGIN + 60_000, "a week fits");
}
