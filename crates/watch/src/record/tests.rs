//! What is written is read again: whole, cut off anywhere, and with any byte changed.

use super::format::{ChunkKind, HEADER, Header, LONGEST_FRAME, LONGEST_TEXT, head, index};
use super::{Recorder, Recording};
use model::{Event, LogEntry, Snapshot, Timestamp, Weight};
use proptest::prelude::*;
use show::example;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    (folder, path)
}

/// A snapshot at a time, which differs from those at other times.
fn at(time: i64) -> Snapshot {
    let mut snapshot = example::machine();
    snapshot.taken_at = Timestamp(time);
    snapshot.devices[0].heartbeat = Some(time as u32);
    snapshot
}

fn recorded(times: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let (_folder, path) = place();
    let mut recorder = Recorder::create(&path).unwrap();
    times.into_iter().for_each(|time| recorder.push(&at(time)).unwrap());
    recorder.finish().unwrap();
    std::fs::read(&path).unwrap()
}

fn open(bytes: &[u8]) -> anyhow::Result<Recording> {
    let (_folder, path) = place();
    std::fs::write(&path, bytes).unwrap();
    Recording::open(&path)
}

/// Why a file is refused, without its name.
fn refused(bytes: &[u8]) -> String {
    let sentence = open(bytes).unwrap_err().to_string();
    sentence.split_once(": ").unwrap().1.to_owned()
}

fn all(recording: &mut Recording) -> Vec<Snapshot> {
    (0..recording.len()).map(|index| recording.snapshot(index).unwrap()).collect()
}

/// When the first snapshot was taken, and when the last.
fn first_and_last(recording: &Recording) -> (Timestamp, Timestamp) {
    let (first, last) = (recording.chunks.first().unwrap(), recording.chunks.last().unwrap());
    (first.header.first, last.header.last)
}

#[test]
fn what_was_recorded_comes_back() {
    let times = || (0..150).map(|i| 1_000_000 + i * 100);
    let mut recording = open(&recorded(times())).unwrap();
    assert_eq!(all(&mut recording), times().map(at).collect::<Vec<_>>());
    assert_eq!((recording.remark(), recording.is_empty()), (None, false));
    assert_eq!(first_and_last(&recording), (Timestamp(1_000_000), Timestamp(1_014_900)));
    for index in [149, 0, 75, 60, 61] {
        assert_eq!(recording.snapshot(index).unwrap(), at(1_000_000 + index as i64 * 100));
    }
    assert_eq!(recording.snapshot(150).unwrap_err().to_string(), "there is no sample 150");
    assert!(recording.snapshot(usize::MAX).is_err());
}

#[test]
fn a_moment_is_found() {
    let mut recording = open(&recorded((0..150).map(|i| 1_000_000 + i * 100))).unwrap();
    for (time, index) in [(0, 0), (1_000_000, 0), (1_000_099, 0), (1_000_100, 1), (1_007_777, 77), (i64::MAX, 149)] {
        assert_eq!(recording.index_at(Timestamp(time)), index, "{time}");
    }
}

#[test]
fn a_clock_that_was_set_back_costs_nothing() {
    let times = [5000, 6000, 7000, 3000, 4000, 9000];
    let mut recording = open(&recorded(times)).unwrap();
    assert_eq!(all(&mut recording), times.map(at));
    assert_eq!(recording.index_at(Timestamp(4500)), 4);
    assert_eq!(recording.index_at(Timestamp(6500)), 4, "the last that was taken before");
    assert_eq!(recording.index_at(Timestamp(2999)), 0);
}

#[test]
#[ignore = "long"]
fn a_cut_anywhere_costs_the_last_chunk_at_the_most() {
    // Chunks of 1, 60, 60 and 9 snapshots.
    let whole = recorded((0..130).map(|i| i * 100));
    let ends: Vec<usize> = ends_of_chunks(&whole);
    assert_eq!(ends.len(), 5);
    let until = [0, 1, 61, 121, 130];
    for cut in (0..whole.len()).step_by(7).chain(ends.iter().flat_map(|end| [end - 1, *end, end + 1])) {
        let expected = ends.iter().rposition(|end| *end <= cut).map_or(0, |chunk| until[chunk]);
        match open(&whole[..cut]) {
            Err(error) => assert!(expected == 0 && error.to_string().lines().count() == 1, "{cut}: {error}"),
            Ok(mut recording) => {
                assert_eq!(recording.len(), expected, "{cut}");
                assert_eq!(recording.snapshot(expected - 1).unwrap(), at((expected as i64 - 1) * 100));
                assert!(recording.remark().is_some(), "{cut}");
            }
        }
    }
}

/// Where the head and each chunk end.
fn ends_of_chunks(bytes: &[u8]) -> Vec<usize> {
    let mut end = 16 + u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let mut ends = vec![end];
    while let Some(header) = bytes.get(end..end + HEADER).and_then(|b| Header::from_bytes(b.try_into().unwrap())) {
        end += header.length() as usize;
        ends.push(end);
    }
    ends
}

#[test]
fn an_index_without_its_end_is_not_taken_for_chunks() {
    // So many that the index is longer than a chunk.
    let times: Vec<i64> = (0..300).rev().collect();
    let whole = recorded(times.iter().copied());
    for cut in (whole.len() - 300 * HEADER..whole.len()).step_by(101) {
        assert_eq!(open(&whole[..cut]).unwrap().len(), 300, "{cut}");
    }
}

#[test]
fn what_was_cut_off_is_said() {
    let whole = recorded((0..130).map(|i| i * 100));
    let ends = ends_of_chunks(&whole);
    let remark = |bytes: &[u8]| open(bytes).unwrap().remark().map(str::to_owned).unwrap_or_default();
    assert_eq!(remark(&whole[..ends[2]]), "the recording was not finished; what was written is whole");
    assert_eq!(remark(&whole[..ends[2] + 40]), "the recording was cut off; the last 40 B are incomplete and left out");
    // Blocks that the disk never got are zeros.
    let mut torn = whole[..ends[3]].to_vec();
    torn[ends[2] + HEADER..].fill(0);
    assert!(remark(&torn).starts_with("the recording was cut off; the last "), "{}", remark(&torn));
    assert_eq!(open(&torn).unwrap().len(), 61);
}

#[test]
fn a_damaged_chunk_costs_itself_alone() {
    let mut bytes = recorded((0..130).map(|i| i * 100));
    let ends = ends_of_chunks(&bytes);
    bytes[ends[1] + HEADER + 50] ^= 0x10;
    let mut recording = open(&bytes).unwrap();
    let error = recording.snapshot(30).unwrap_err();
    assert_eq!(error.to_string(), "a part of the recording is damaged: it cannot be decompressed");
    assert_eq!(recording.snapshot(0).unwrap(), at(0));
    assert_eq!(recording.snapshot(61).unwrap(), at(6100));
    assert_eq!(recording.index_at(Timestamp(3000)), 1, "the first of the chunk");
}

#[test]
fn what_is_no_recording_is_refused_in_a_sentence() {
    let good = recorded([0]);
    assert_eq!(refused(b""), "it is empty: nothing was recorded");
    let no_recording = "it is no recording: name a file that `ttmon record -o` has written";
    assert_eq!(refused(b"ttmon"), no_recording);
    assert_eq!(refused(&[b'x'; 4000]), no_recording);
    assert_eq!(refused(&good[..20]), "there is no sample in it: it was cut off before the first was written");
    for other in [1, 4] {
        let mut of_another = good.clone();
        of_another[8] = other;
        let reason =
            format!("its format is version {other}, and this ttmon reads versions 2 to 3: use the ttmon that wrote it");
        assert_eq!(refused(&of_another), reason);
    }
    let (folder, path) = place();
    assert!(Recording::open(&path).unwrap_err().to_string().ends_with("recording: there is no such file"));
    assert!(Recording::open(folder.path()).unwrap_err().to_string().contains("there is no recording in this folder"));
}

#[test]
fn a_file_that_claims_much_is_not_believed() {
    let header =
        Header { kind: ChunkKind::Snapshots, frame: 100, text: 100, lines: 1, first: Timestamp(0), last: Timestamp(0) };
    for claim in [
        Header { frame: LONGEST_FRAME as u32 + 1, ..header },
        Header { text: LONGEST_TEXT as u32 + 1, ..header },
        Header { lines: u32::MAX, ..header },
    ] {
        let (_folder, path) = place();
        let begin = head("{}\n").unwrap();
        std::fs::write(&path, [&begin[..], &claim.to_bytes()].concat()).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        // All the bytes are there, as zeros.
        file.set_len(6 << 30).unwrap();
        assert!(Recording::open(&path).unwrap_err().to_string().contains("there is no sample in it"), "{claim:?}");
        let end = index(&[claim]);
        file.write_all_at(&end, (6 << 30) - end.len() as u64).unwrap();
        assert!(Recording::open(&path).unwrap_err().to_string().contains("there is no sample in it"), "{claim:?}");
    }
}

#[test]
fn a_frame_that_unpacks_to_more_than_it_says_is_refused() {
    let bomb = zstd::bulk::compress(&vec![b' '; 256 << 20], 1).unwrap();
    let (frame, text) = (bomb.len() as u32, 1000);
    let header = Header { kind: ChunkKind::Snapshots, frame, text, lines: 1, first: Timestamp(0), last: Timestamp(0) };
    let bytes = [&head("{}\n").unwrap()[..], &header.to_bytes(), &bomb, &index(&[header])].concat();
    assert!(open(&bytes).unwrap().snapshot(0).is_err());
}

#[test]
fn an_existing_file_is_left_alone_unless_it_is_empty() {
    let (folder, path) = place();
    let refused = |path: &std::path::Path| Recorder::create(path).map(drop).unwrap_err().to_string();
    std::fs::write(&path, "precious").unwrap();
    assert!(refused(&path).ends_with(": there is something in it already; remove it, or choose another name"));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::write(&path, "").unwrap();
    let first = Recorder::create(&path).unwrap();
    assert!(refused(&path).ends_with(": another process is recording to it"));
    drop(first);
    assert!(refused(folder.path()).starts_with("cannot write to "));
    assert!(refused("/dev/null".as_ref()).contains("it is not a file"));
    assert!(refused(&folder.path().join("no/such/folder")).starts_with("cannot write to "));
}

#[test]
fn only_its_owner_may_read_it() {
    let (_folder, path) = place();
    let recorder = Recorder::create(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    recorder.finish().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "nothing was recorded");
    Recorder::create(&path).unwrap();
}

#[test]
fn a_recorder_that_is_dropped_is_finished() {
    let (_folder, path) = place();
    let mut recorder = Recorder::create(&path).unwrap();
    (0..5).for_each(|time| recorder.push(&at(time)).unwrap());
    drop(recorder);
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!((recording.len(), recording.remark()), (5, None));
    assert_eq!(recording.snapshot(4).unwrap(), at(4));
}

#[test]
fn a_chunk_is_a_mebibyte_of_text_at_the_most() {
    let (_folder, path) = place();
    let mut recorder = Recorder::create(&path).unwrap();
    for time in 0..40 {
        recorder.push(&Snapshot { taken_at: Timestamp(time), ..example::galaxy() }).unwrap();
    }
    let mut large = at(40);
    large.processes[0].command = Some("x".repeat(3 << 20));
    recorder.push(&large).unwrap();
    recorder.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let ends = ends_of_chunks(&bytes);
    let texts: Vec<usize> = ends[..ends.len() - 1]
        .iter()
        .map(|at| Header::from_bytes(bytes[*at..at + HEADER].try_into().unwrap()).unwrap().text as usize)
        .collect();
    let (last, others) = texts.split_last().unwrap();
    assert!(*last > 3 << 20 && others.iter().all(|text| *text <= 1 << 20), "{texts:?}");
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!((recording.len(), recording.snapshot(40).unwrap()), (41, large));
}

#[test]
fn a_time_that_json_cannot_hold_is_refused_and_costs_nothing() {
    let (_folder, path) = place();
    let mut recorder = Recorder::create(&path).unwrap();
    recorder.push(&at(1)).unwrap();
    assert!(recorder.push(&at(-1)).is_err() && recorder.push(&at(i64::MAX)).is_err());
    recorder.push(&at(2)).unwrap();
    recorder.finish().unwrap();
    assert_eq!(all(&mut Recording::open(&path).unwrap()), [at(1), at(2)]);
}

#[test]
fn the_log_comes_back_in_its_order_beside_the_snapshots() {
    let event = |time: i64| LogEntry::Event(Event::new(Timestamp(time), Weight::Bad, None, format!("at {time}")));
    let (_folder, path) = place();
    let mut recorder = Recorder::create(&path).unwrap();
    for time in 0..130 {
        recorder.log(&event(time)).unwrap();
        recorder.push(&at(time)).unwrap();
    }
    recorder.log(&event(50)).unwrap();
    recorder.finish().unwrap();
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!((recording.len(), recording.has_log()), (130, true));
    assert_eq!(recording.snapshot(129).unwrap(), at(129));
    let logged = |from, to| {
        let mut entries = Vec::new();
        recording.each_entry(Timestamp(from), Timestamp(to), |entry| entries.push(entry));
        entries
    };
    assert_eq!(logged(49, 51), [49, 50, 51, 50].map(event));
    assert_eq!(logged(0, i64::MAX).len(), 131);
}

#[test]
fn files_of_a_folder_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    for (name, first) in [("2.ttmon", 100), ("1.ttmon", 0), ("3.other", 200)] {
        std::fs::write(folder.path().join(name), recorded((first..first + 100).step_by(10))).unwrap();
    }
    std::fs::write(folder.path().join("4.ttmon"), "").unwrap();
    let mut recording = Recording::open(folder.path()).unwrap();
    assert_eq!(all(&mut recording), (0..200).step_by(10).map(at).collect::<Vec<_>>());
    assert_eq!(recording.span(), (Timestamp(0), Timestamp(190)));
    for (from, to, range) in [(0, 190, 0..20), (-5, 0, 0..1), (1, 9, 1..1), (95, 120, 10..13), (191, 500, 20..20)] {
        assert_eq!(recording.range(Timestamp(from), Timestamp(to)), range, "{from} to {to}");
    }
}

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| recorded((0..65).map(|i| i * 100)));

/// Looks at everything there is.
fn look(bytes: &[u8]) {
    if let Ok(mut recording) = open(bytes) {
        assert!(!recording.is_empty());
        let (first, last) = first_and_last(&recording);
        for time in [first, last, Timestamp(3210)] {
            assert!(recording.index_at(time) < recording.len());
        }
        for index in [0, 1, recording.len() / 2, recording.len() - 1] {
            let _ = recording.snapshot(index);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_recording_or_refused(bytes: Vec<u8>) {
        look(&bytes);
        look(&[&GOOD[..16], &bytes].concat());
        look(&[&GOOD[..ends_of_chunks(&GOOD)[1]], &bytes].concat());
    }

    #[test]
    fn a_recording_with_any_bytes_changed_is_read_or_refused(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut bytes = GOOD.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(GOOD.len())));
        look(&bytes);
    }

    #[test]
    fn any_text_in_a_frame_is_read_or_refused(text in "\\PC*|(\\{\"taken_at\":\"2026-11-15T13:28:23.912Z\"\\}\n){0,3}", snapshots in 1u32..4) {
        let frame = zstd::bulk::compress(text.as_bytes(), 1).unwrap();
        let (length, time) = (text.len().max(1) as u32, Timestamp(0));
        let header = Header { kind: ChunkKind::Snapshots, frame: frame.len() as u32, text: length, lines: snapshots, first: time, last: time };
        look(&[&head("{}\n").unwrap()[..], &header.to_bytes(), &frame, &index(&[header])].concat());
    }

    #[test]
    fn headers_of_any_claims_are_checked(frame: u32, text: u32, snapshots: u32, first: i64, last: i64) {
        let claim = Header { kind: ChunkKind::Snapshots, frame, text, lines: snapshots, first: Timestamp(first), last: Timestamp(last) };
        look(&[&head("{}\n").unwrap()[..], &claim.to_bytes(), &[0; 64], &index(&[claim])].concat());
    }
}
