//! Other machines, as the service hands them over: plain data for `/api/v1/fleet`.

use model::{Alert, Need, SCHEMA, Snapshot};
use serde::Serialize;

/// All machines that the service watches, the worst first.
#[derive(Debug, Clone, Serialize)]
pub struct FleetReply {
    /// Version of the JSON form.
    pub schema: u32,
    /// Whether the configuration names other machines.
    pub watched: bool,
    /// Sums over the machines.
    pub totals: FleetTotals,
    /// The machines.
    pub hosts: Vec<FleetHost>,
}

/// What the machines that answer have together.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FleetTotals {
    /// Number of machines.
    pub hosts: usize,
    /// Number of machines that answer.
    pub hosts_reached: usize,
    /// Those without a problem.
    pub hosts_ok: usize,
    /// Number of devices.
    pub devices: usize,
    /// Number of devices without a problem.
    pub devices_ok: usize,
    /// The hottest device.
    pub hottest: Option<Hottest>,
    /// Power of all devices.
    pub power: PowerSum,
    /// DRAM of all devices.
    pub dram: DramSum,
    /// Number of processes that hold devices.
    pub processes: usize,
    /// Whether a machine is missing in the sums.
    pub at_least: bool,
}

/// A machine in one line; with `host=`, also its last snapshot.
#[derive(Debug, Clone, Serialize)]
pub struct FleetHost {
    /// Name of the machine.
    pub host: String,
    /// Address that is asked.
    pub url: String,
    /// Its own page, where that is known.
    pub page: Option<String>,
    /// Whether it answers: `waiting`, `reached` or `unreachable`, as in `ttmon smi --json --host`.
    pub state: &'static str,
    /// How urgent its problems are.
    pub need: Need,
    /// What is wrong, the worst first of several.
    pub problem: Option<String>,
    /// Why and for how long it does not answer.
    pub reason: Option<String>,
    /// Time since it last answered.
    pub unreachable_seconds: Option<f64>,
    /// How long ago its last snapshot came, and whether that is too long.
    pub age_seconds: Option<f64>,
    /// True if the last snapshot is too old to be current.
    pub is_old: bool,
    /// Number of devices.
    pub devices: usize,
    /// Number of devices without a problem.
    pub devices_ok: usize,
    /// The state of each device, in their order.
    pub states: Vec<&'static str>,
    /// The hottest device.
    pub hottest: Option<Hottest>,
    /// Power of its devices.
    pub power: PowerSum,
    /// DRAM of its devices.
    pub dram: DramSum,
    /// Number of processes that hold devices.
    pub processes: usize,
    /// The last snapshot, with `host=`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// Alerts of its own rules, with `host=`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alerts: Option<Vec<Alert>>,
}

/// The chip that is nearest to its limit.
#[derive(Debug, Clone, Serialize)]
pub struct Hottest {
    /// Name of its machine.
    pub host: String,
    /// Its temperature.
    pub celsius: f64,
    /// Its limit.
    pub limit_celsius: Option<f64>,
}

/// Power, and the sum of the limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PowerSum {
    /// Measured power.
    pub watts: Option<f64>,
    /// Sum of the limits, where all devices have one.
    pub limit_watts: Option<f64>,
}

/// DRAM in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DramSum {
    /// Bytes in use.
    pub used: Option<u64>,
    /// Capacity.
    pub total: Option<u64>,
    /// Whether a process does not report how much it uses.
    pub at_least: bool,
}

impl FleetReply {
    /// Machines that are in order already, and their totals.
    pub fn new(watched: bool, hosts: Vec<FleetHost>) -> FleetReply {
        FleetReply { schema: SCHEMA, watched, totals: FleetTotals::of(&hosts), hosts }
    }

    /// The answer as JSON.
    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl FleetTotals {
    /// The sums of machines that answer: what another one had is not of now.
    fn of(hosts: &[FleetHost]) -> FleetTotals {
        let known: Vec<&FleetHost> = hosts.iter().filter(|host| host.state == "reached").collect();
        let sum = |of: fn(&FleetHost) -> Option<f64>| known.iter().filter_map(|host| of(host)).reduce(|a, b| a + b);
        let bytes =
            |of: fn(&FleetHost) -> Option<u64>| known.iter().filter_map(|host| of(host)).reduce(u64::saturating_add);
        let hottest = known.iter().filter_map(|host| host.hottest.as_ref());
        let power = PowerSum { watts: sum(|host| host.power.watts), limit_watts: sum(|host| host.power.limit_watts) };
        FleetTotals {
            hosts: hosts.len(),
            hosts_reached: known.len(),
            hosts_ok: hosts.iter().filter(|host| host.need == Need::Fine).count(),
            devices: hosts.iter().map(|host| host.devices).sum(),
            devices_ok: hosts.iter().map(|host| host.devices_ok).sum(),
            hottest: hottest.max_by(|a, b| a.heat().total_cmp(&b.heat())).cloned(),
            power,
            dram: DramSum {
                used: bytes(|host| host.dram.used),
                total: bytes(|host| host.dram.total),
                at_least: known.iter().any(|host| host.dram.at_least),
            },
            processes: known.iter().map(|host| host.processes).sum(),
            at_least: known.len() < hosts.len(),
        }
    }
}

impl Hottest {
    fn heat(&self) -> f64 {
        self.celsius / self.limit_celsius.filter(|limit| *limit > 0.0).unwrap_or(100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::schema_of;

    fn host(name: &str, need: usize) -> FleetHost {
        let is_gone = need == 0;
        FleetHost {
            host: name.into(),
            url: format!("http://{name}:9746"),
            page: Some(format!("http://{name}:9746/")),
            state: if is_gone { "unreachable" } else { "reached" },
            need: Need::ALL[need],
            problem: (need < 3).then(|| "device 2 is hung".to_owned()),
            reason: is_gone.then(|| "no answer within 5 s".to_owned()),
            unreachable_seconds: is_gone.then_some(75.0),
            age_seconds: Some(if is_gone { 76.5 } else { 0.4 }),
            is_old: is_gone,
            devices: 4,
            devices_ok: [0, 3, 3, 0, 4][need],
            states: vec![if is_gone { "silent" } else { "ok" }; 4],
            hottest: Some(Hottest { host: name.into(), celsius: 51.25, limit_celsius: Some(90.0) }),
            power: PowerSum { watts: Some(80.5), limit_watts: Some(600.0) },
            dram: DramSum { used: Some(1 << 30), total: Some(4 << 30), at_least: need == 1 },
            processes: 2,
            snapshot: None,
            alerts: None,
        }
    }

    #[test]
    fn the_form_is_pinned_and_described() {
        let mut hosts = vec![host("lab-9", 0), host("lab-7", 1), host("lab-1", 4)];
        hosts[1].hottest = Some(Hottest { host: "lab-7".into(), celsius: 60.0, limit_celsius: None });
        hosts[2].alerts = Some(Vec::new());
        hosts[2].snapshot = Some(Snapshot::empty());
        let reply = FleetReply::new(true, hosts);
        let text = serde_json::to_string_pretty(&reply).unwrap() + "\n";
        expect_test::expect_file!["golden/fleet.json"].assert_eq(&text);
        // What the document requires is what is written, and nothing is written that it does not describe.
        let value = serde_json::to_value(&reply).unwrap();
        for (name, value) in [("Fleet", &value), ("FleetTotals", &value["totals"]), ("FleetHost", &value["hosts"][2])] {
            let schema = schema_of(name);
            let written: Vec<&String> = value.as_object().unwrap().keys().collect();
            let described: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(written, described, "{name}");
            for required in schema["required"].as_array().unwrap() {
                assert!(value.get(required.as_str().unwrap()).is_some(), "{name}: {required}");
            }
        }
        assert_eq!(schema_of("FleetHost")["properties"]["need"]["enum"], serde_json::json!(Need::NAMES));
    }

    #[test]
    fn what_does_not_answer_is_in_no_sum() {
        let totals = FleetReply::new(true, vec![host("a", 0), host("b", 1), host("c", 4)]).totals;
        assert_eq!((totals.hosts, totals.hosts_reached, totals.hosts_ok), (3, 2, 1));
        assert_eq!((totals.devices, totals.devices_ok, totals.processes), (12, 7, 4));
        assert_eq!(totals.power.watts, Some(161.0));
        assert_eq!(totals.dram, DramSum { used: Some(2 << 30), total: Some(8 << 30), at_least: true });
        assert!(totals.at_least);
        let nothing = FleetReply::new(false, Vec::new()).totals;
        assert_eq!((nothing.power.watts, nothing.dram.used, nothing.hottest.is_none()), (None, None, true));
    }
}
