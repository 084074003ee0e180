//! Prometheus fires at the same moments as the engine: made-up series go to the engine and, as a unit test of rules, to `promtool`.

#![allow(clippy::unwrap_used)]

use alerts::{Engine, Rule, built_in, prometheus};
use model::figure::deep::DEEP_FIGURES;
use model::figure::{MetricKind, Value};
use model::{
    Bytes, Celsius, ClockDecision, ClockLimiter, Deep, Device, DeviceId, Megahertz, Severity, Snapshot, State,
    Timestamp, Watts,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

const STEP: u64 = 10;
const STEPS: u64 = 240;

fn rule(name: &str, when: &str) -> Rule {
    let condition = when.parse().unwrap();
    Rule {
        name: name.into(),
        condition,
        severity: Severity::Warning,
        devices: vec![],
        process: None,
        text: None,
        advice: None,
    }
}

fn rules() -> Vec<Rule> {
    let mut rules = built_in();
    rules.extend([
        rule("plain", "asic_temp > 85 for 30s until asic_temp < 80"),
        rule("at-once", "asic_temp >= 85"),
        rule("long", "power > 250 for 2m"),
        rule("both", "asic_temp > 80 and power > 200 for 20s until asic_temp < 75 or power < 150"),
        rule("either", "(asic_temp > 90 or power > 290) and dram > 40%"),
        rule("not-ok", "state != ok for 20s"),
        rule("slow", "aiclk < 1000 for 20s until aiclk > 1100MHz"),
        rule("straight", "link_degraded != true until asic_temp > 85"),
        rule("all-cool", "gddr_top_temp < 75 until gddr_top_temp > 90"),
        rule("one-up", "eth_link_up == false for 20s until eth_link_up"),
        rule("trips", "increase(thermal_trips, 5m) >= 2 for 20s until increase(thermal_trips, 5m) < 1"),
    ]);
    rules
}

/// Numbers that look random, and are the same each time.
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// A walk between two values that goes far and stays there for a while, with gaps, some of which are longer than five minutes.
    fn walk(&mut self, least: u64, most: u64) -> Vec<Option<f64>> {
        let (mut at, mut aim, mut left, mut gap) = (least as f64, least as f64, 0, 0);
        let mut walk = Vec::new();
        for _ in 0..STEPS {
            if left == 0 {
                aim = (least + self.up_to(most - least + 1)) as f64;
                left = 1 + self.up_to(12);
                gap = match self.up_to(12) {
                    0 => 1 + self.up_to(3),
                    1 => 25 + self.up_to(20),
                    _ => gap,
                };
            }
            left -= 1;
            at += (aim - at) / 2.0;
            walk.push((gap == 0).then(|| (at * 4.0).round() / 4.0));
            gap = gap.saturating_sub(1);
        }
        walk
    }
}

/// What one device does: a list of values for each figure.
struct Script {
    temp: Vec<Option<f64>>,
    power: Vec<Option<f64>>,
    dram: Vec<Option<f64>>,
    stale: Vec<Option<f64>>,
    trips: Vec<Option<f64>>,
    state: Vec<Option<f64>>,
    link: Vec<Option<f64>>,
    clock: Vec<Option<f64>>,
    limiter: Vec<Option<f64>>,
    /// Of two GDDR channels: temperature at the top and at the bottom, corrected reads and writes, and whether it is trained, its
    /// training failed, and a read or a write was not corrected.
    channels: [[Vec<Option<f64>>; 8]; 2],
    /// Of Ethernet ports 8 to 11: whether the link is up.
    ports: [Vec<Option<f64>>; 4],
}

impl Script {
    fn new(seed: u64) -> Script {
        let mut dice = Dice(seed);
        let mut trips = 0.0;
        let trip = |dice: &mut Dice, trips: &mut f64| {
            // Now and then one more, and now and then the count starts from zero.
            match dice.up_to(60) {
                0..=1 => *trips += 1.0,
                2 => *trips = 0.0,
                _ => {}
            }
            (dice.up_to(20) > 0).then_some(*trips)
        };
        let whole = |walk: Vec<Option<f64>>| walk.into_iter().map(|value| value.map(f64::round)).collect();
        Script {
            temp: dice.walk(60, 100),
            power: dice.walk(100, 320),
            dram: whole(dice.walk(0, 100)),
            stale: dice.walk(0, 2).into_iter().map(|value| value.map(f64::floor)).collect(),
            state: dice
                .walk(0, 8)
                .into_iter()
                .map(|value| value.map(|v| if v > 6.0 { 0.0 } else { v.floor() }))
                .collect(),
            link: whole(dice.walk(0, 1)),
            clock: whole(dice.walk(800, 1350)),
            trips: (0..STEPS).map(|_| trip(&mut dice, &mut trips)).collect(),
            limiter: whole(dice.walk(0, ClockLimiter::ALL.len() as u64 - 1)),
            channels: [(); 2].map(|()| {
                [(70, 100), (70, 100), (0, 300), (0, 30), (0, 1), (0, 1), (0, 1), (0, 1)]
                    .map(|(least, most)| whole(dice.walk(least, most)))
            }),
            ports: [(); 4].map(|()| whole(dice.walk(0, 1))),
        }
    }

    fn deep(&self, step: usize) -> Deep {
        let of = |place: usize| self.channels.each_ref().map(|channel| channel[place][step]);
        let celsius = |place| of(place).map(|value| value.map(Celsius)).to_vec();
        let errors = |place| of(place).map(|value| value.map(|value| value.min(255.0) as u32)).to_vec();
        let flag = |place| of(place).map(|value| value.map(|value| value == 1.0)).to_vec();
        let ports = self.ports.iter().map(|port| port[step].map(|up| up == 1.0));
        Deep {
            aiclk_max: Some(Megahertz(1350)),
            aiclk_ceiling: Some(Megahertz(900)),
            aiclk_ceiling_by: self.limiter[step].map(|place| ClockLimiter::ALL[place as usize]),
            aiclk_decided_by: self.limiter[step].map(|_| ClockDecision::Ceiling),
            gddr_top_temp: celsius(0),
            gddr_bottom_temp: celsius(1),
            gddr_corrected_reads: errors(2),
            gddr_corrected_writes: errors(3),
            gddr_trained: flag(4),
            gddr_training_failed: flag(5),
            gddr_uncorrected_read: flag(6),
            gddr_uncorrected_write: flag(7),
            eth_link_up: [None; 8].into_iter().chain(ports).collect(),
            ..Deep::default()
        }
    }

    fn device(&self, id: u32, step: usize) -> Option<Device> {
        let mut device = Device::new(DeviceId::Local(id));
        // A device whose state is not known is not there at all.
        device.state = State::ALL[self.state[step]? as usize];
        device.asic_temp = self.temp[step].map(Celsius);
        device.asic_temp_max = Some(Celsius(90.0));
        device.power = self.power[step].map(Watts);
        device.power_max = Some(Watts(300.0));
        device.memory.dram_used = self.dram[step].map(|value| Bytes(value as u64));
        device.memory.dram_total = Some(Bytes(100));
        device.memory.stale = self.stale[step].map(|value| Bytes(value as u64));
        device.thermal_trips_total = self.trips[step].map(|value| value as u64);
        device.aiclk = self.clock[step].map(|value| Megahertz(value as u32));
        device.pcie.width = self.link[step].map(|value| if value == 1.0 { 8 } else { 16 });
        device.pcie.max_width = Some(16);
        device.board = Some("n300".into());
        device.deep = Some(Box::new(self.deep(step)));
        Some(device)
    }

    /// The series of the figures of deep reads, with a label per channel, port or word.
    fn deep_series(&self, id: u32) -> Vec<(String, Vec<Option<f64>>)> {
        let devices: Vec<Option<Device>> = (0..STEPS as usize).map(|step| self.device(id, step)).collect();
        let mut all = Vec::new();
        for figure in DEEP_FIGURES.iter().filter(|figure| figure.rule.is_some()) {
            let Some(metric) = figure.metric else { continue };
            for field in figure.fields() {
                let place = figure.dimension.map(|one| format!(",{}=\"{}\"", one.name(), one.label(field.label)));
                let mut push = |label: Option<(&str, &str)>, value: &dyn Fn(Value<'_>) -> Option<f64>| {
                    let label = label.map(|(name, word)| format!(",{name}=\"{word}\"")).unwrap_or_default();
                    let labels =
                        format!("device=\"{id}\",board=\"p150a\"{}{label}", place.as_deref().unwrap_or_default());
                    let name = format!("{}{}{{{labels}}}", metric.name, metric.kind.suffix());
                    let values = devices.iter().map(|device| value(field.value(device.as_ref()?)?));
                    all.push((name, values.collect::<Vec<_>>()));
                };
                match (metric.kind, metric.label) {
                    (MetricKind::OneOf, Some((name, _))) => figure.words.iter().for_each(|word| {
                        push(Some((name, word)), &|value| Some(f64::from(u8::from(value.as_text()? == *word))));
                    }),
                    (_, label) => push(label, &|value| Some(value.number()? * figure.unit.base().1)),
                }
            }
        }
        all.retain(|(_, values)| values.iter().any(Option::is_some));
        all
    }

    /// The same as series: what a scrape of `ttmon serve` brings.
    fn series(&self, id: u32) -> Vec<(String, Vec<Option<f64>>)> {
        let is_there = |step: usize| self.state[step].is_some();
        let of = |value: &dyn Fn(usize) -> Option<f64>| -> Vec<Option<f64>> {
            (0..STEPS as usize).map(|step| value(step).filter(|_| is_there(step))).collect()
        };
        let named = |name: &str, values| (format!("{name}{{device=\"{id}\",board=\"p150a\"}}"), values);
        let kind = |name: &str, values| (format!("{name}{{device=\"{id}\",board=\"p150a\",kind=\"dram\"}}"), values);
        let mut all = vec![
            named("ttmon_device_temperature_celsius", of(&|step| self.temp[step])),
            named("ttmon_device_temperature_limit_celsius", of(&|_| Some(90.0))),
            named("ttmon_device_power_watts", of(&|step| self.power[step])),
            named("ttmon_device_power_limit_watts", of(&|_| Some(300.0))),
            kind("ttmon_device_memory_used_bytes", of(&|step| self.dram[step])),
            kind("ttmon_device_memory_total_bytes", of(&|_| Some(100.0))),
            named("ttmon_device_memory_stale_bytes", of(&|step| self.stale[step])),
            named("ttmon_device_aiclk_hertz", of(&|step| self.clock[step].map(|value| value * 1e6))),
            named("ttmon_device_thermal_trips_total", of(&|step| self.trips[step])),
            named("ttmon_device_pcie_degraded", of(&|step| self.link[step])),
        ];
        for (number, state) in State::ALL.iter().enumerate() {
            let values = of(&|step| self.state[step].map(|at| f64::from(u8::from(at as usize == number))));
            all.push((
                format!("ttmon_device_state{{device=\"{id}\",board=\"p150a\",state=\"{}\"}}", state.name()),
                values,
            ));
        }
        all.extend(self.deep_series(id));
        all
    }
}

/// As `promtool` writes series: a scrape that misses a line ends its series at once.
fn written(values: &[Option<f64>]) -> String {
    let mut text = String::new();
    let mut was_there = false;
    for value in values {
        match value {
            Some(value) => write!(text, "{value} ").unwrap(),
            None if was_there => text += "stale ",
            None => text += "_ ",
        }
        was_there = value.is_some();
    }
    text
}

/// Which alerts of which devices fire at each step, as the engine has it.
fn fired(rules: &[Rule], scripts: &[Script]) -> Vec<Vec<(String, String)>> {
    let mut engine = Engine::new(rules.to_vec());
    let mut all = Vec::new();
    for step in 0..STEPS as usize {
        let devices = scripts.iter().enumerate().filter_map(|(id, script)| script.device(id as u32, step)).collect();
        let taken_at = Timestamp(1_700_000_000_000 + (step as u64 * STEP * 1000) as i64);
        let snapshot = Snapshot { taken_at, devices, ..Snapshot::empty() };
        engine.observe(Duration::from_secs(step as u64 * STEP), &snapshot, &[]);
        let names: BTreeMap<&str, &Rule> = rules.iter().map(|rule| (&rule.name[..], rule)).collect();
        let name = |alert: &model::Alert| names[&alert.name[..]].alertname();
        let mut firing: Vec<(String, String)> =
            engine.firing().iter().map(|alert| (name(alert), alert.device.clone().unwrap())).collect();
        firing.sort();
        all.push(firing);
    }
    all
}

/// Says loudly that a test did not run; in CI that is a failure.
fn not_run(test: &str, why: &str) {
    let notice = format!("NOT RUN: {test}, because {why}");
    assert!(std::env::var_os("CI").is_none(), "{notice}");
    // The test runner swallows what `eprintln!` writes in a test that passes.
    std::io::stderr().write_all(format!("\n{notice}\n\n").as_bytes()).unwrap();
}

#[test]
fn prometheus_fires_at_the_same_moments() {
    let is_quick = std::env::var_os("CHECK_QUICK").is_some();
    if is_quick || Command::new("promtool").arg("--version").output().is_err() {
        let why = if is_quick {
            "`./check quick` leaves out promtool"
        } else {
            "promtool is missing: install the package prometheus"
        };
        return not_run("prometheus_fires_at_the_same_moments", why);
    }
    let (rules, folder) = (rules(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("rules.yml"), prometheus(&rules)).unwrap();
    let mut text = String::from("rule_files: [rules.yml]\nevaluation_interval: 10s\ntests:\n");
    let (mut changes, mut firing) = (BTreeMap::<String, usize>::new(), 0);
    for seed in 0..4 {
        let scripts = [Script::new(seed * 2 + 1), Script::new(seed * 2 + 2)];
        text += "- interval: 10s\n  input_series:\n";
        for (name, values) in scripts.iter().enumerate().flat_map(|(id, script)| script.series(id as u32)) {
            writeln!(text, "  - series: '{name}'\n    values: '{}'", written(&values)).unwrap();
        }
        text += "  promql_expr_test:\n";
        let mut before = Vec::new();
        for (step, now) in fired(&rules, &scripts).into_iter().enumerate() {
            let expr = "sum by (alertname, device) (ALERTS{alertstate=\"firing\"})";
            writeln!(text, "  - expr: '{expr}'\n    eval_time: {}s\n    exp_samples:", step as u64 * STEP).unwrap();
            for (name, device) in &now {
                writeln!(text, "    - {{labels: '{{alertname=\"{name}\",device=\"{device}\"}}', value: 1}}").unwrap();
            }
            for (name, _) in now.iter().filter(|one| !before.contains(*one)) {
                *changes.entry(name.clone()).or_default() += 1;
            }
            firing += now.len();
            before = now;
        }
    }
    // A rule that never fires proves nothing.
    // These two compare what is not a metric.
    for rule in rules.iter().filter(|rule| !["left-at-exit", alerts::IDLE_HOLDER].contains(&rule.name.as_str())) {
        assert!(changes.contains_key(&rule.alertname()), "{} never fires: {changes:?}", rule.name);
    }
    eprintln!("{firing} alerts at {} moments, begun as in {changes:?}", 4 * STEPS);
    std::fs::write(folder.path().join("tests.yml"), text).unwrap();
    let output = Command::new("promtool").args(["test", "rules", "tests.yml"]).current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let said: String = said.lines().filter(|line| !line.trim().is_empty()).flat_map(|line| [line, "\n"]).collect();
    assert!(output.status.success(), "{}", said.chars().take(4000).collect::<String>());
}
