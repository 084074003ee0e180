//! Disks that are full, read-only or fail at any step: the service goes on, and the size is kept.

use super::{Bench, MIB, size_of, small, starts, times_of};
use crate::record::Recording;
use crate::record::disk::{DiskStep, fail};
use model::Weight;
use proptest::prelude::*;
use rustix::io::Errno;
use std::io;

#[test]
fn a_disk_that_fails_costs_only_what_it_did_not_take() {
    for errno in [Errno::NOSPC, Errno::DQUOT, Errno::IO, Errno::ROFS, Errno::FBIG] {
        let mut bench = Bench::new(MIB, small());
        bench.run(5000);
        let before = bench.times();
        fail(move |_, _| Err(errno.into()));
        bench.run(700);
        assert!(bench.keeper().trouble().is_some(), "{errno}");
        assert!(bench.keeper().dropped > 500, "{errno}: {}", bench.keeper().dropped);
        fail(|_, bytes| Ok(bytes));
        // It is tried again after five minutes at the latest.
        bench.run(330);
        assert_eq!(bench.keeper().trouble(), None, "{errno}");
        let after = bench.times();
        let recent = &before[before.len() - 600..];
        assert_eq!(after.iter().filter(|time| recent.contains(time)).count(), 600, "{errno}");
        assert!(bench.size() <= bench.limit);
        assert!(bench.time - after.last().unwrap() < 10_000, "{errno}");
        assert_eq!(starts(&bench.recording()).last(), Some(&Some(false)), "{errno}: it says that there was a pause");
    }
}

#[test]
fn a_full_disk_takes_the_oldest_segment_where_that_helps() {
    let mut bench = Bench::new(MIB, small());
    bench.run(9000);
    let (before, first) = (bench.size(), bench.times()[0]);
    // As many bytes as are removed can be written.
    let path = bench.path();
    fail(move |step, bytes| match step {
        DiskStep::Write if size_of(&path) + bytes as u64 > before => Err(Errno::NOSPC.into()),
        _ => Ok(bytes),
    });
    bench.run(600);
    assert_eq!(bench.keeper().trouble(), None);
    assert_eq!(bench.keeper().dropped, 0);
    assert!(bench.times()[0] > first && bench.size() <= before);
    // Where it does not help, one segment is lost and no more.
    fail(|step, bytes| if step == DiskStep::Write { Err(Errno::NOSPC.into()) } else { Ok(bytes) });
    let segments = std::fs::read_dir(bench.path()).unwrap().count();
    bench.run(2000);
    assert!(bench.keeper().trouble().is_some());
    assert!(std::fs::read_dir(bench.path()).unwrap().count() >= segments - 1);
    fail(|_, bytes| Ok(bytes));
}

#[test]
fn a_folder_that_was_removed_is_made_again() {
    let mut bench = Bench::new(MIB, small());
    bench.run(100);
    std::fs::remove_dir_all(bench.path()).unwrap();
    bench.run(8);
    assert_eq!(bench.keeper().trouble(), Some("its files were removed"));
    bench.run(30);
    assert_eq!(bench.keeper().trouble(), None);
    assert!(bench.times().len() > 20);
}

/// One thing that can happen to a black box.
#[derive(Debug, Clone)]
enum Step {
    Run(u64),
    Log(usize),
    Jump(i64),
    Kill,
    End,
    Limit(u64),
    /// The disk does so many things, and fails then for so long.
    Fail(u32, u32, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..600u64).prop_map(Step::Run),
        2 => (1..200usize).prop_map(Step::Log),
        1 => (-90_000_000..90_000_000i64).prop_map(Step::Jump),
        2 => Just(Step::Kill),
        1 => Just(Step::End),
        1 => (1..3u64).prop_map(Step::Limit),
        2 => (0..60u32, 1..40u32, any::<bool>()).prop_map(|(after, long, short)| Step::Fail(after, long, short)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The folder is never larger than its limit and can always be read, in order and without duplicates.
    #[test]
    fn whatever_happens_the_size_is_kept_and_all_is_readable(steps in prop::collection::vec(step(), 1..25)) {
        fail(|_, bytes| Ok(bytes));
        let mut bench = Bench::new(MIB, small());
            // So that little is enough to fill it.
        bench.keeper = None;
        std::fs::write(bench.path().join("other"), vec![0; 900 << 10]).unwrap();
        bench.start();
        let mut jumps = 0;
        for step in steps {

            match step {
                Step::Run(seconds) => bench.run(seconds),
                Step::Log(length) => (0..length).for_each(|at| bench.log(&"x".repeat(at * 7 % 900), Weight::Note)),
                Step::Jump(by) => {
                    bench.time = (bench.time + by).max(0);
                    jumps += 1;
                }
                Step::Kill => bench.start(),
                Step::End => {
                    let now = bench.now();
                    bench.keeper.take().unwrap().finish(now);
                    bench.start();
                }
                Step::Limit(mib) => {
                    let limit = bench.limit.max(mib * MIB);
                    bench.limit = limit;
                    bench.keeper().set_limit(limit);
                }
                Step::Fail(after, long, short) => {
                    let mut count = 0;
                    fail(move |_, bytes| {
                        count += 1;
                        if (after..after + long).contains(&count) {

                            return if short && bytes > 1 { Ok(bytes / 2) } else { Err(io::Error::from(Errno::IO)) };
                        }
                        Ok(bytes)
                    });
                    bench.run(400);
                }
            }
            prop_assert!(bench.size() <= bench.limit, "{} of {}", bench.size(), bench.limit);
            if let Ok(mut recording) = Recording::open(&bench.path()) {
                let times = times_of(&mut recording);
                prop_assert_eq!(times.len(), recording.len(), "all can be read");
                let back = times.windows(2).filter(|pair| pair[1] <= pair[0]).count();
                prop_assert!(back <= jumps, "{} times back after {} jumps: nothing is there twice", back, jumps);
            }
        }
        fail(|_, bytes| Ok(bytes));
    }
}
