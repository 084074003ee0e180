use super::*;
use expect_test::{Expect, expect};
use std::fs;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn log() -> String {
    format!("{}{}", device_log::tests::HEAD, device_log::tests::ROWS)
}

fn check(path: &Path, known: &KnownTimes, expected: Expect) {
    let overlay = read(path, known).unwrap();
    let mut text = format!("{}\n", overlay.sentence());
    overlay.remarks.iter().for_each(|remark| text += &format!("- {remark}\n"));
    let mut slices = 0;
    let mut span = (i64::MAX, i64::MIN);
    let write = |slice: Slice<'_>| {
        let Slice { name, start_ns, end_ns, chip, core, track, .. } = slice;
        let chip = chip.map_or("–".into(), |chip| chip.to_string());
        let core = core.map_or(String::new(), |(x, y)| format!(" core {x},{y}"));
        text += &format!("chip {chip}{core} {track}: {name} {start_ns}..{end_ns}\n");
        slices += 1;
        span = (span.0.min(start_ns), span.1.max(end_ns));
    };
    overlay.each(write).unwrap();
    expected.assert_eq(&text);
    assert_eq!(span, overlay.span_ns);
    assert!(slices <= overlay.slices);
}

#[test]
fn without_a_moment_on_both_clocks_it_is_shown_beside() {
    let folder =
        folder(&[("profile_log_device.csv", &log()), ("ops_perf_results.csv", operations_report::tests::REPORT)]);
    check(
        &folder.path().join("profile_log_device.csv"),
        &KnownTimes::default(),
        expect![[r#"
            profile_log_device.csv: beside the recording, from its own beginning on: its times are cycles of chips, and the recording names none of them
            - 1 zone has no beginning or no end: left out
            - chips and host are not aligned with each other: each begins at its own first slice
            chip 0 core 1,2 BRISC: BRISC-FW 0..1000
            chip 0 core 1,2 BRISC: BRISC-KERNEL 100..900
            chip 1 core 1,2 TRISC_0: TRISC-FW 0..1000
        "#]],
    );
    check(
        &folder.path().join("ops_perf_results.csv"),
        &KnownTimes::default(),
        expect![[r#"
        ops_perf_results.csv: beside the recording, from its own beginning on: its times are cycles of chips, and the recording names none of them
        - 1 row has no times: left out
        - chips and host are not aligned with each other: each begins at its own first slice
        chip 0 host: MatmulDeviceOperation 0..4000
        chip 0 operations: MatmulDeviceOperation 0..2000
        chip 0 host: SoftmaxDeviceOperation 5000..5500
        chip 0 operations: SoftmaxDeviceOperation 3000..3500
    "#]],
    );
}

#[test]
fn tt_metal_s_own_synchronization_aligns_chip_and_host_with_each_other() {
    let report = operations_report::tests::REPORT;
    let folder = folder(&[("ops_perf_results_x.csv", report), ("sync_device_info.csv", sync::tests::SYNC)]);
    check(
        &folder.path().join("ops_perf_results_x.csv"),
        &KnownTimes::default(),
        expect![[r#"
        ops_perf_results_x.csv: beside the recording, from its own beginning on: its times are cycles of chips, and the recording names none of them
        - 1 row has no times: left out
        - chips and host are aligned with each other within 3 ns (sync_device_info.csv)
        chip 0 host: MatmulDeviceOperation 0..4000
        chip 0 operations: MatmulDeviceOperation 2000000..2002000
        chip 0 host: SoftmaxDeviceOperation 5000..5500
        chip 0 operations: SoftmaxDeviceOperation 2003000..2003500
    "#]],
    );
}

fn anchor(chip: u32, ticks: u64, unix_ns: i64, error_ns: u64) -> Anchor {
    Anchor { chip, ticks, unix_ns, gigahertz: 1.0, error_ns }
}

#[test]
fn anchors_of_a_recording_align_it_with_their_error() {
    let folder = folder(&[("profile_log_device.csv", &log())]);
    let path = folder.path().join("profile_log_device.csv");
    // Between its anchors, chip 0 runs at half a gigahertz.
    let anchors = vec![
        anchor(0, 5_000_100, 1_000_000_000_200, 50),
        anchor(0, 4_000_100, 999_998_000_200, 70),
        anchor(1, 900, 999_999_999_900, 20),
        anchor(1, 1900, 1_000_000_000_900, 20),
        anchor(0, 5_000_900, 1_000_000_001_800, 50),
        anchor(0, 6_000_000, 1_000_001_001_000, 50),
    ];
    check(
        &path,
        &KnownTimes { anchors: anchors.clone(), begins_at: None },
        expect![[r#"
            profile_log_device.csv: aligned within 70 ns: the recording names cycles of the same chips
            - 1 zone has no beginning or no end: left out
            chip 0 core 1,2 BRISC: BRISC-FW 1000000000000..1000000001900
            chip 0 core 1,2 BRISC: BRISC-KERNEL 1000000000200..1000000001800
            chip 1 core 1,2 TRISC_0: TRISC-FW 999999999900..1000000000900
        "#]],
    );
    let known = KnownTimes { anchors: vec![anchors[0]], begins_at: None };
    let Alignment::Beside { why } = read(&path, &known).unwrap().alignment else { panic!("chip 1 has no anchor") };
    assert_eq!(why, "the recording names no cycles of chip 1");
    let known = KnownTimes { anchors: vec![anchors[0], anchors[2]], begins_at: None };
    assert!(matches!(read(&path, &known).unwrap().alignment, Alignment::Aligned { error_ns: None, .. }));
}

#[test]
fn anchors_and_the_synchronization_place_the_host_s_times_too() {
    let report = operations_report::tests::REPORT;
    let folder = folder(&[("ops_perf_results_x.csv", report), ("sync_device_info.csv", sync::tests::SYNC)]);
    let path = folder.path().join("ops_perf_results_x.csv");
    let known = KnownTimes {
        anchors: vec![anchor(0, 7_000_000, 5_000_000_000, 10), anchor(0, 8_000_000, 5_001_000_000, 10)],
        begins_at: None,
    };
    check(
        &path,
        &known,
        expect![[r#"
            ops_perf_results_x.csv: aligned within 13 ns: the recording names cycles of the same chips
            - 1 row has no times: left out
            chip 0 host: MatmulDeviceOperation 4998000000..4998004000
            chip 0 operations: MatmulDeviceOperation 5000000000..5000002000
            chip 0 host: SoftmaxDeviceOperation 4998005000..4998005500
            chip 0 operations: SoftmaxDeviceOperation 5000003000..5000003500
        "#]],
    );
    fs::remove_file(folder.path().join("sync_device_info.csv")).unwrap();
    check(
        &path,
        &known,
        expect![[r#"
        ops_perf_results_x.csv: aligned within 10 ns: the recording names cycles of the same chips
        - 1 row has no times: left out
        - times of the host are left out: there is no sync_device_info.csv that aligns them
        chip 0 operations: MatmulDeviceOperation 5000000000..5000002000
        chip 0 operations: SoftmaxDeviceOperation 5000003000..5000003500
    "#]],
    );
}

#[test]
fn the_database_says_when_it_began() {
    let folder = folder(&[]);
    let path = folder.path().join("db.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch(database::tests::DATABASE).unwrap();
    check(
        &path,
        &KnownTimes::default(),
        expect![[r#"
        db.sqlite: aligned within 500.0 µs: the database says when the capture began, and how long each operation took
        chip – operations: MatmulDeviceOperation 1767323045678000000..1767323045685000000
        chip – operations: SoftmaxDeviceOperation 1767323045685000000..1767323045686000000
    "#]],
    );
}

#[test]
fn a_time_can_be_given() {
    let folder = folder(&[("profile_log_device.csv", &log())]);
    let path = folder.path().join("profile_log_device.csv");
    let name = format!("{}@2026-01-02T03:00:00Z", path.display());
    let (named_path, begins_at) = named(&name, Timestamp(0), &TimeZone::UTC).unwrap();
    assert_eq!(named_path, path);
    let overlay = read(&path, &KnownTimes { anchors: vec![], begins_at }).unwrap();
    assert_eq!(overlay.span_ns.0, 1_767_322_800_000_000_000);
    assert_eq!(overlay.sentence(), "profile_log_device.csv: aligned: it begins at the time that was given");
    assert_eq!(named(path.to_str().unwrap(), Timestamp(0), &TimeZone::UTC).unwrap().1, None);
}

#[test]
fn a_folder_has_several_and_what_is_none_is_named() {
    let folder = folder(&[
        ("profile_log_device.csv", &log()),
        ("ops_perf_results.csv", operations_report::tests::REPORT),
        ("x", "y"),
    ]);
    assert_eq!(read_all(folder.path(), &KnownTimes::default()).unwrap().len(), 2);
    let error = |path: &Path| read_all(path, &KnownTimes::default()).unwrap_err().to_string();
    assert!(error(&folder.path().join("x")).ends_with(
        "x: it is no result of tt-metal: expected profile_log_device.csv, ops_perf_results_*.csv or db.sqlite"
    ));
    assert!(error(&folder.path().join("z")).ends_with("z: No such file or directory (os error 2)"));
    fs::remove_file(folder.path().join("ops_perf_results.csv")).unwrap();
    fs::write(folder.path().join("profile_log_device.csv"), device_log::tests::HEAD).unwrap();
    assert!(error(folder.path()).ends_with("profile_log_device.csv: it has no times"));
}

proptest::proptest! {
    #[test]
    fn any_moments_give_times(
        moments in proptest::collection::vec((0u64.., 0i64..), 1..6), gigahertz in 1e-3f64..1e3, a: u64, b: u64,
    ) {
        let anchors: Vec<Anchor> = moments
            .iter()
            .map(|(ticks, unix_ns)| Anchor { chip: 0, ticks: *ticks, unix_ns: *unix_ns, gigahertz, error_ns: 0 })
            .collect();
        let clocks = Clocks::of_anchors(&anchors, &BTreeMap::new(), 1.0);
        assert!(clocks.nanoseconds(Clock::Chip(0), a).is_some() && clocks.nanoseconds(Clock::Chip(0), b).is_some());
        assert_eq!(clocks.nanoseconds(Clock::Chip(1), a), None);
    }
}
