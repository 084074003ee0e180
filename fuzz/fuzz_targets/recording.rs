//! Any bytes as the files of a black box: `cargo +nightly fuzz run recording`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Timestamp;
use std::path::Path;
use watch::record::Recording;

/// The first byte says where the others are cut in two files; the second one replaces the first, or not.
fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let folder = Path::new("/dev/shm").join(format!("ttmon-fuzz-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    if std::fs::create_dir(&folder).is_err() {
        return;
    }
    let (first, second) = bytes.split_at(bytes.len() * usize::from(*cut) / 256);
    let name = if cut % 2 == 0 { "000000000000002.ttmon" } else { "000000000000001-000000000000002-10s.ttmon" };
    let _ = std::fs::write(folder.join("000000000000001.ttmon"), first);
    let _ = std::fs::write(folder.join(name), second);
    if let Ok(mut recording) = Recording::open(&folder) {
        assert!(!recording.is_empty());
        let (from, to) = recording.span();
        assert!(from <= to && recording.index_at(to) < recording.len());
        let range = recording.range(from, to);
        assert!(range.end <= recording.len());
        for index in range.take(200) {
            let _ = recording.snapshot(index);
        }
        recording.each_entry(Timestamp(i64::MIN), Timestamp(i64::MAX), |entry| drop(entry.time()));
    }
    let _ = std::fs::remove_dir_all(&folder);
});
