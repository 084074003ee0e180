//! Any text in any attribute: no panic, and no wrong number that looks right.

use crate::support::{Machine, P150A, p150a};
use proptest::prelude::*;
use std::sync::LazyLock;

static MACHINE: LazyLock<Machine> = LazyLock::new(p150a);

fn attributes() -> Vec<&'static str> {
    P150A.lines().filter_map(|line| Some(line.trim().split_once(" = ")?.0)).collect()
}

/// Numbers near the edges, words, and anything at all.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<u64>().prop_map(|n| n.to_string().into_bytes()),
        (0u64..200_000).prop_map(|n| n.to_string().into_bytes()),
        prop::sample::select(vec![
            "",
            "-1",
            "0x10",
            "1e9",
            "nan",
            "4294967295",
            "65535999",
            "255.255.255.255",
            "1 2",
            "\0"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..600),
        "\\PC*".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "long"]
    fn any_text_in_any_attribute_gives_a_plausible_value_or_none(attribute in prop::sample::select(attributes()), text in text()) {
        let machine = &*MACHINE;
        machine.set(P150A);
        let (n, rest) = attribute.split_once('/').unwrap();
        let class = format!("sys/class/tenstorrent/tenstorrent!{n}");
        let path = match rest.split_once('/') {
            Some(("pci", name)) => format!("{class}/device/{name}"),
            Some((hwmon, name)) => format!("{class}/device/hwmon/{hwmon}/{name}"),
            None => format!("{class}/{rest}"),
        };
        machine.bytes(&path, &text);
        let snapshot = machine.sample();
        let device = &snapshot.devices[0];
        let number: Option<f64> = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse::<u64>().ok()).map(|n| n as f64);
        for (name, value, scale) in [
            ("temp1_max", device.asic_temp_max.map(|v| v.0), 1e3),
            ("power1_input", device.power.map(|v| v.0), 1e6),
            ("power1_max", device.power_max.map(|v| v.0), 1e6),
            ("in0_input", device.vcore.map(|v| v.0), 1e3),
            ("curr1_input", device.current.map(|v| v.0), 1e3),
            ("fan1_input", device.fan.map(|v| v.0.into()), 1.0),
            ("tt_aiclk", device.aiclk.map(|v| v.0.into()), 1.0),
            ("tt_heartbeat", device.heartbeat.map(Into::into), 1.0),
        ] {
            if attribute.ends_with(name) && value.is_some() {
                prop_assert_eq!(value, number.map(|n| n / scale), "{} from {:?}", name, text);
            }
        }
        prop_assert!(device.asic_temp.is_none_or(|t| (-40.0..=150.0).contains(&t.0)));
        prop_assert!(device.power.is_none_or(|p| (0.0..1000.0).contains(&p.0)));
        prop_assert!(device.vcore.is_none_or(|v| v.0 > 0.0 && v.0 < 2.0));
        prop_assert!(device.current.is_none_or(|a| (0.0..1000.0).contains(&a.0)));
        prop_assert!(device.fan.is_none_or(|f| f.0 < 30_000));
        prop_assert!(device.pcie.generation.is_none_or(|g| (1..=6).contains(&g)));
        prop_assert!(device.pcie.width.is_none_or(|w| (1..=32).contains(&w)));
        prop_assert!(device.serial.as_ref().is_none_or(|s| s.len() == 16));
        prop_assert!(device.firmware.bundle.as_ref().is_none_or(|v| v.split('.').count() >= 3));
    }
}
