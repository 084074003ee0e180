//! Whatever processes call themselves, and however many there are.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn any_process() -> impl Strategy<Value = (u32, Vec<(u32, u64)>)> {
    let devices = proptest::collection::btree_map(0u32..4, 0u64..1 << 40, 0..4);
    (1u32..50, devices.prop_map(|devices| devices.into_iter().collect()))
}

proptest! {
    #[test]
    fn any_name_survives(name in "\\PC*|[\\\\\"\n\r\t,{}= ]*|(?s).*", user in proptest::option::of("(?s).*")) {
        let one = Process { name: Some(name.clone()), user: user.clone(), ..process(7, &[(0, 1)]) };
        let snapshot = bare(vec![Device::new(DeviceId::Local(0))], vec![one]);
        for format in [MetricsFormat::Prometheus, MetricsFormat::OpenMetrics] {
            let all = lines(&write(&input(&snapshot), format));
            let line = all.iter().find(|line| line.name == "ttmon_process_memory_bytes").unwrap();
            prop_assert_eq!(&line.labels["name"], &name);
            prop_assert_eq!(line.labels.get("user"), user.as_ref());
        }
    }

    #[test]
    fn sums_by_device_are_exact_whatever_the_limit(all in proptest::collection::vec(any_process(), 0..20), most in 0usize..30) {
        let by_pid: BTreeMap<u32, Vec<(u32, u64)>> = all.into_iter().collect();
        let processes: Vec<Process> = by_pid.iter().map(|(pid, devices)| process(*pid, devices)).collect();
        let text = with_options(&bare(vec![], processes), most, false);
        let lines: Vec<MetricLine> = lines(&text).into_iter().filter(|line| line.name == "ttmon_process_memory_bytes").collect();
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (device, bytes) in by_pid.values().flatten() {
            *sums.entry(device.to_string()).or_default() += bytes;
        }
        let mut told: BTreeMap<String, u64> = BTreeMap::new();
        for line in &lines {
            *told.entry(line.labels["device"].clone()).or_default() += line.value as u64;
        }
        prop_assert_eq!(told, sums);
        let (others, single): (Vec<&MetricLine>, Vec<&MetricLine>) = lines.iter().partition(|line| line.labels["pid"] == "other");
        prop_assert!(single.len() <= most && others.len() <= 4);
        let smallest = single.iter().map(|line| line.value).fold(f64::INFINITY, f64::min);
        let told: Vec<(&str, &str)> = single.iter().map(|line| (&*line.labels["pid"], &*line.labels["device"])).collect();
        for (pid, devices) in &by_pid {
            for (device, bytes) in devices {
                let is_told = told.contains(&(&pid.to_string(), &device.to_string()));
                prop_assert!(is_told || *bytes as f64 <= smallest, "the largest stay");
            }
        }
    }

    #[test]
    fn any_header_is_an_answer(accept in "\\PC*|[a-z/;,=.*0-9q ]*") {
        let _ = MetricsFormat::wanted(&accept);
    }
}
