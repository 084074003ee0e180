use super::fields::FilterField;
use super::*;
use crate::figure::process::{HELD_FIGURES, PROCESS_FIGURES};
use crate::{Activity, UtilizationSource};
use crate::{Bytes, Device, DeviceId, Held, Host, ProcessOwner, Runtime, Source, Timestamp, Usage};
use proptest::prelude::*;

/// 81 (in a container, on 2 and 2R), 4711 (on 0) and 5120 (on 0; nothing is known of it).
fn machine() -> Snapshot {
    let device = |id, gib: u64| {
        let mut device = Device::new(id);
        device.memory.dram_total = Some(Bytes(gib << 30));
        device
    };
    let devices = vec![device(DeviceId::Local(0), 32), device(DeviceId::Local(2), 12), device(DeviceId::Remote(2), 12)];
    let text = |text: &str| Some(text.to_owned());
    let held = |id, usage, source| Held { usage, source, ..Held::new(id) };
    let (mib, taken_at) = (1 << 20, Timestamp(10_000_000));
    let unknown = Process { user: text("root"), devices: vec![Held::new(DeviceId::Local(0))], ..Process::new(5120) };
    let known = Process {
        user: text("ttuser"),
        name: text("python3"),
        command: text("python3 serve.py --model llama-70b"),
        runtime: Some(Runtime::Ttnn),
        started_at: Some(Timestamp(10_000_000 - 1_080_000)),
        host_memory: Some(Bytes(3 << 30)),
        host_cpu_percent: Some(104.2),
        owner: ProcessOwner {
            slurm_job: text("48213"),
            slurm_step: text("batch"),
            unit: text("tt-inference.service"),
            ..ProcessOwner::default()
        },
        devices: vec![held(
            DeviceId::Local(0),
            Usage::measured(12 << 30, 24 * mib, 32768, 100 * mib, mib),
            Some(Source::Exact),
        )],
        ..Process::new(4711)
    };
    let owner = ProcessOwner {
        namespace: text("research"),
        pod: text("nanogpt-x7k2p"),
        container_name: text("trainer"),
        ..ProcessOwner::default()
    };
    let contained = Process {
        owner,
        user: text("a-user-with-a-LONG-name"),
        name: text("日本語"),
        command: text("evil"),
        container: text("k8s/pod-7/3f2a9c1b7d4e"),
        started_at: Some(Timestamp(10_000_000 - 1_080_000)),
        host_cpu_percent: Some(1.0),
        devices: vec![
            Held {
                activity: Activity::measured(20.0, UtilizationSource::Driver),
                ..held(DeviceId::Local(2), Usage::measured(0, 2048, 0, 0, 0), Some(Source::Shm))
            },
            Held {
                activity: Activity::measured(70.0, UtilizationSource::Driver),
                ..held(DeviceId::Remote(2), Usage::measured(11 << 30, 0, 0, 0, 0), Some(Source::Shm))
            },
        ],
        ..Process::new(81)
    };
    let (host, processes) = (Host::default(), vec![contained, known, unknown]);
    Snapshot { taken_at, host, devices, processes, ..Snapshot::empty() }
}

fn found(filter: &str) -> Vec<u32> {
    let snapshot = machine();
    let filter = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let context = FilterContext { snapshot: &snapshot, growth: None };
    snapshot.processes.iter().filter(|process| filter.matches(process, &context)).map(|process| process.pid).collect()
}

#[test]
fn a_word_is_looked_for_in_name_command_user_and_container() {
    assert_eq!(found(""), [81, 4711, 5120]);
    assert_eq!(found("LLAMA"), [4711]);
    assert_eq!(found("ttuser"), [4711]);
    assert_eq!(found("日本"), [81]);
    assert_eq!(found("k8s"), [81]);
    assert_eq!(found("\"serve.py --model\""), [4711]);
    assert_eq!(found("shm"), [0; 0]);
}

#[test]
fn fields_equal_or_contain() {
    assert_eq!(found("user:ttuser"), [4711]);
    assert_eq!(found("user:tt"), [0; 0]);
    assert_eq!(found("user~LONG"), [81]);
    assert_eq!(found("name~python"), [4711]);
    assert_eq!(found("command~evil"), [81]);
    assert_eq!(found("dev:0"), [4711, 5120]);
    assert_eq!(found("dev:2r"), [81]);
    assert_eq!(found("pid:81"), [81]);
    assert_eq!(found("source:exact or source:SHM"), [81, 4711]);
    assert_eq!(found("container:3f2a9c1b7d4e"), [81]);
    assert_eq!(found("runtime:ttnn"), [4711]);
}

#[test]
fn pods_jobs_and_units_are_fields() {
    assert_eq!(found("pod:nanogpt-x7k2p"), [81]);
    assert_eq!(found("pod~nano namespace:research"), [81]);
    assert_eq!(found("container:trainer"), [81], "the name of the container, too");
    assert_eq!(found("container_name:trainer"), [81]);
    assert_eq!(found("nanogpt"), [81], "a word is looked for in the pod, too");
    assert_eq!(found("job:48213"), [4711]);
    assert_eq!(found("slurm_job:48213 step:batch"), [4711]);
    assert_eq!(found("unit~inference"), [4711]);
    assert_eq!(found("not job:48213"), [81, 5120]);
}

#[test]
fn numbers_have_units() {
    assert_eq!(found("dram>12G"), [4711]);
    assert_eq!(found("dram>=12G dram<12.5GiB"), [4711]);
    assert_eq!(found("l1<=2048"), [81]);
    assert_eq!(found("l1<=2k"), [81]);
    assert_eq!(found("cpu>100"), [4711]);
    assert_eq!(found("share>38%"), [81]);
    assert_eq!(found("share>37% share<=50"), [81, 4711]);
    assert_eq!(found("age>17m age<1h"), [81, 4711]);
    assert_eq!(found("util>=70%"), [81], "of several devices the busiest");
    assert_eq!(found("rss>2G"), [4711]);
    assert_eq!(found("total>1T"), [0; 0]);
    assert_eq!(found("pid>81"), [4711, 5120]);
    assert_eq!(found("growth>-1M"), [0; 0], "what is not known is neither more nor less");
}

#[test]
fn used_is_buffers_and_traces_and_the_parts_have_names_of_their_own() {
    assert_eq!(found("dram>12G"), [4711], "with its traces");
    assert_eq!(found("dram_bytes>12G"), [0; 0]);
    assert_eq!(found("trace>=100M"), [4711]);
    assert_eq!(found("l1>25M"), [4711], "with L1_SMALL and circular buffers");
    assert_eq!(found("l1_bytes>24M or cb>1M or l1_small>32K"), [0; 0]);
    assert_eq!(found("total>12G"), [4711]);
}

#[test]
fn growth_is_what_the_caller_knows() {
    let snapshot = machine();
    let matches = |growth| {
        let context = FilterContext { snapshot: &snapshot, growth };
        Filter::parse("growth>1M").unwrap().matches(&snapshot.processes[0], &context)
    };
    assert_eq!([None, Some(1e6), Some(2e6)].map(matches), [false, false, true]);
}

#[test]
fn every_row_is_a_field_by_name_and_by_alias() {
    let held = HELD_FIGURES.iter().filter(|row| row.object.is_none());
    let held = held.flat_map(|row| {
        row.fields().map(|field| field.name().into_owned()).chain(row.aliases.iter().map(|alias| (*alias).into()))
    });
    let rows = PROCESS_FIGURES.iter().flat_map(|row| row.names()).map(String::from).chain(held);
    for name in rows {
        let field = FilterField::named(&name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(FilterField::named(&name.to_uppercase()), Some(field));
        assert_eq!(FilterField::named(field.word()), Some(field), "{name}");
    }
    let words: Vec<&str> = Filter::fields().collect();
    let known = [
        "dev",
        "user",
        "container",
        "name",
        "command",
        "source",
        "runtime",
        "pid",
        "dram",
        "l1",
        "l1_small",
        "trace",
        "cb",
        "total",
        "rss",
        "growth",
        "cpu",
        "share",
        "util",
        "age",
    ];
    for word in known {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
}

#[test]
fn half_a_filter_is_incomplete() {
    for text in ["dram>", "dram>=", "growth>-", "user:", "a or", "not", "not (", "(a", "name~\"a b", "-", "a and"] {
        assert!(Filter::parse(text).unwrap_err().is_incomplete, "{text}");
    }
    for text in ["drm>", "user>", "dram:", "dram>x", "a)", "()", "or a", "- a", "user: a", "dram> 1"] {
        assert!(!Filter::parse(text).unwrap_err().is_incomplete, "{text}");
    }
}

#[test]
fn terms_are_joined() {
    assert_eq!(found("user:ttuser dram>20G"), [0; 0]);
    assert_eq!(found("pid:81 or pid:4711 dram>1G"), [81, 4711]);
    assert_eq!(found("not dram>1G"), [5120]);
    assert_eq!(found("-dram>1G"), [5120]);
    assert_eq!(found("-(pid:81 or pid:5120)"), [4711]);
    assert_eq!(found("(pid:81 OR pid:4711) AND NOT user:ttuser"), [81]);
    assert_eq!(found("\"or\""), [0; 0]);
}

#[test]
fn an_error_has_its_place() {
    let wrong = |text: &str| Filter::parse(text).unwrap_err().to_string();
    let fields = "expected one of pid, parent_pid, user, name, command, container, namespace, pod, pod_uid, \
                  container_name, job, step, unit, runtime, started_at, rss, total, cpu, \
                  agent, launches_total, launches, wait, back_pressure, idle, dev, dram, l1, dram_bytes, l1_bytes, l1_small, trace, cb, kernel, \
                  source, util, utilization_lower_bound, utilization_source, utilization_unknown, busy_seconds_total, \
                  programs_per_second, programs_total, growth, share, age";
    assert_eq!(wrong("drm>1G"), format!("at 1: unknown field \"drm\" (did you mean dram?); {fields}"));
    assert_eq!(wrong("me usr:me"), format!("at 4: unknown field \"usr\" (did you mean user?); {fields}"));
    assert_eq!(wrong("temperature>50"), format!("at 1: unknown field \"temperature\"; {fields}"));
    assert_eq!(wrong("dram:1G"), "at 5: `dram` is a number; expected > < >= or <=");
    assert_eq!(wrong("user>me"), "at 5: `user` is a text; expected `:` or `~`");
    assert_eq!(wrong("dram>many"), "at 6: expected a number after `dram`, such as 4096, 512K, 100M, 1.5G or 1T");
    assert_eq!(wrong("dram>1m2"), "at 6: expected a number after `dram`, such as 4096, 512K, 100M, 1.5G or 1T");
    assert_eq!(wrong("age>5w"), "at 5: expected a number after `age`, such as 90, 10s, 5m, 2h or 1d");
    assert_eq!(wrong("cpu>"), "at 5: expected a number after `cpu`, such as 50");
    assert_eq!(wrong("user:"), "at 6: expected a text after `user:`");
    assert_eq!(wrong(">5"), "at 1: expected a field before `>`");
    assert_eq!(wrong("(a or b"), "at 1: this bracket is not closed");
    assert_eq!(wrong("a)"), "at 2: this bracket was not opened");
    assert_eq!(wrong("()"), "at 1: expected a term between these brackets");
    assert_eq!(wrong("a or"), "at 5: expected a term");
    assert_eq!(wrong("or a"), "at 1: expected a term before this");
    assert_eq!(wrong("name~\"a b"), "at 6: this quote is not closed");
    assert_eq!(wrong("-"), "at 1: expected a term after `-`");
    assert_eq!(wrong(&"(".repeat(100_000)), "at 51: too many nested brackets or `not`s");
    assert_eq!(wrong(&"-".repeat(100_000)), "at 51: too many nested brackets or `not`s");
}

/// Texts that are filters more often than random ones.
fn likely() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("(".to_owned()),
        Just(")".to_owned()),
        Just(" or ".to_owned()),
        Just(" not ".to_owned()),
        Just("-".to_owned()),
        Just(" ".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("dram>1.5G".to_owned()),
        Just("age<=10m".to_owned()),
        Just("user:".to_owned()),
        Just("name~".to_owned()),
        Just("growth<-2k".to_owned()),
        "[a-zA-ZΣİß]{1,4}",
        "\\PC{1,3}",
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_a_filter_or_an_error(text in ".*") {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(error.at <= text.chars().count());
        }
    }

    #[test]
    fn what_is_printed_is_read_as_the_same(text in prop_oneof![likely(), any::<String>()]) {
        if let Ok(filter) = Filter::parse(&text) {
            prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter.clone()), "{}", filter);
        }
    }
}
