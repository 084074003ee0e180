//! What is left when the service is killed, or the power is cut.

use super::{BEGIN, Bench, MIB, last_segment, logged, quick_folder, size_of, small, starts, stir, times_of};
use crate::black_box::folder::BoxFolder;
use crate::black_box::keeper::Keeper;
use crate::black_box::rewrite;
use crate::record::Recording;
use crate::record::chunk_file::Packer;
use crate::record::segment_name::SegmentName;
use model::{Event, LogEntry, Snapshot, Timestamp, Weight};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn what_is_killed_lacks_its_last_seconds() {
    let mut bench = Bench::new(MIB, small());
    bench.run(100);
    bench.start();
    let times = bench.times();
    assert!(times.last().unwrap() > &(BEGIN + 93_000), "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 1000));
    bench.run(30);
    let now = bench.now();
    bench.keeper.take().unwrap().finish(now);
    bench.start();
    bench.run(8);
    assert_eq!(starts(&bench.recording()), [None, Some(false), Some(true)]);
    assert_eq!(bench.times().last(), Some(&bench.time));
}

#[test]
fn what_a_cut_while_thinning_leaves_is_read_once_and_removed() {
    let mut bench = Bench::new(MIB, small());
    bench.run(7000);
    let now = bench.now();
    bench.keeper.take().unwrap().finish(now);
    let times = bench.times();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(bench.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| SegmentName::of(path).is_some());
    paths.sort();
    // As if three segments had just been joined.
    let names: Vec<SegmentName> = paths.iter().map(|path| SegmentName::of(path).unwrap()).collect();
    let all = |names: &[SegmentName]| names.iter().all(|name| name.step == 1);
    let at = names.windows(3).position(all).unwrap();
    let mut folder = BoxFolder::open(&bench.path(), bench.limit).unwrap();
    let saved: Vec<Vec<u8>> = paths[at..at + 3].iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut packer = Packer::new().unwrap();
    let inputs = folder.segments[at..at + 3].to_vec();
    assert!(rewrite::rewrite(&mut folder, &mut packer, &inputs, 1).unwrap());
    drop(folder);
    for (path, bytes) in paths[at..at + 3].iter().zip(saved) {
        std::fs::write(path, bytes).unwrap();
    }
    std::fs::write(bench.path().join("new.tmp"), "half a segment").unwrap();
    assert_eq!(bench.times(), times);
    bench.start();
    assert_eq!(bench.times(), times);
    assert!(!paths[at].exists() && !bench.path().join("new.tmp").exists());
}

#[test]
fn a_torn_last_block_costs_the_last_chunk() {
    let mut bench = Bench::new(MIB, small());
    bench.run(207);
    bench.keeper = None;
    let times = bench.times();
    let segment = last_segment(&bench.path());
    let whole = std::fs::read(&segment).unwrap();
    for torn in 1..=60 {
        let mut bytes = whole.clone();
        let begin = bytes.len().saturating_sub(torn * 67);
        if torn % 2 == 0 {
            bytes.truncate(begin)
        } else {
            bytes[begin..].fill(0)
        }
        std::fs::write(&segment, &bytes).unwrap();
        let kept = bench.times();
        assert_eq!(kept[..], times[..kept.len()]);
        assert!(kept.len() + 14 >= times.len(), "{torn}: {} of {}", kept.len(), times.len());
        // And it goes on.
        let copy = quick_folder();
        for entry in std::fs::read_dir(bench.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let mut keeper = Keeper::new(copy.path().to_owned(), bench.limit, None).unwrap();
        let next = Snapshot { taken_at: Timestamp(bench.time + 1000), ..small() };
        keeper.add(Some(&next), &[], bench.now());
        keeper.finish(bench.now());
        assert_eq!(times_of(&mut Recording::open(copy.path()).unwrap()).len(), kept.len() + 1);
    }
}

/// Where the child of the next test writes.
const CHILD_FOLDER: &str = "TTMON_TEST_BLACK_BOX";
const CHILD_BEGIN: &str = "TTMON_TEST_BEGIN";

/// Takes samples as fast as it can, and says after each when it was taken.
#[test]
#[ignore = "the child of the next test"]
fn a_child_that_writes() {
    let (Ok(folder), Ok(begin)) = (std::env::var(CHILD_FOLDER), std::env::var(CHILD_BEGIN)) else { return };
    let (folder, mut time) = (PathBuf::from(folder), begin.parse::<i64>().unwrap());
    let (mut now, mut snapshot) = (Instant::now(), small());
    let mut keeper = Keeper::new(folder, MIB / 4, None).unwrap();
    let mut out = io::stderr();
    loop {
        (time, now) = (time + 1000, now + Duration::from_secs(1));
        stir(&mut snapshot, time);
        snapshot.taken_at = Timestamp(time);
        let entry = LogEntry::Event(Event::new(Timestamp(time), Weight::Note, None, time.to_string()));
        keeper.add(Some(&snapshot), &[entry], now);
        if out.write_all(&time.to_le_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn killed_at_200_random_moments_it_lacks_ten_seconds_at_the_most() {
    let place = quick_folder();
    let (folder, mut time, mut random) = (place.path().join("box"), BEGIN, 4711_u64);
    for round in 0..200 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["black_box::tests::cuts::a_child_that_writes", "--exact", "--ignored", "--nocapture", "--quiet"]);
        child.env(CHILD_FOLDER, &folder).env(CHILD_BEGIN, time.to_string());
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = child.stderr.take().unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // A random number of samples, and then a random moment of the next.
        let samples = 20 + random % 280;
        let mut bytes = vec![0; samples as usize * 8];
        said.read_exact(&mut bytes).unwrap();
        std::thread::sleep(Duration::from_micros((random >> 20) % 3000));
        child.kill().unwrap();
        child.wait().unwrap();
        said.read_to_end(&mut bytes).unwrap();
        let (taken, _) = bytes.as_chunks::<8>();
        let last = i64::from_le_bytes(*taken.last().unwrap());
        assert!(size_of(&folder) <= MIB / 4, "{round}: {}", size_of(&folder));
        let mut recording = Recording::open(&folder).unwrap();
        assert!(recording.span().1.0 > last - 10_000, "{round}: {} of {last}", recording.span().1.0);
        if round % 10 == 9 {
            let times = times_of(&mut recording);
            assert_eq!(times.len(), recording.len(), "{round}: all can be read");
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{round}: nothing is there twice");
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= 60_000 + 10_000), "{round}: nothing is missing");
            let texts = logged(&recording);
            let logged: Vec<i64> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let odd = logged.windows(2).find(|pair| pair[1] <= pair[0] || pair[1] - pair[0] > 10_000);
            assert_eq!(odd, None, "{round}: the log is whole");
        }
        // One more may have been taken that it could not say.
        time = last + 1000;
    }
}
