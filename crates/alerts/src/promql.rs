//! The same rules for Prometheus, over the metrics of `ttmon serve`.
//!
//! A rule that fires keeps firing while what ends it is not known to be so. PromQL can say that, since a rule may look at its own
//! past in `ALERTS`; the last values of five minutes stand in for those that are missing, as in the engine. Both fire at the same
//! moments when they see the same values at the same times.

use crate::condition::{Compare, Expr, Value};
use crate::figure::{FIGURES, Figure, Kind, Metric, STATES, Scope};
use crate::period;
use crate::rule::Rule;
use crate::track::LOOK_BACK;
use std::collections::BTreeSet;

/// A file of rules for Prometheus 2.37 and later.
pub fn prometheus(rules: &[Rule]) -> String {
    let mut text = String::from(HEAD);
    for rule in rules {
        match expr_of(rule) {
            Ok(expr) => text += &entry(rule, &expr),
            Err(why) => text += &format!("  # {} is not here: {why}\n", plain(&rule.name)),
        }
    }
    text
}

const HEAD: &str = "\
# Written by `ttmon alerts export --prometheus`. Behind `or` stands what keeps an alert firing: what ends it is not so yet, by the last
# values of five minutes.
groups:
- name: ttmon
  rules:
";

/// All metrics that rules may name.
pub fn metric_names() -> BTreeSet<&'static str> {
    let of = |figure: &'static Figure| figure.promql.into_iter().chain(figure.most.map(|(_, metric)| metric));
    FIGURES.iter().flat_map(of).map(|metric| metric.name).collect()
}

fn entry(rule: &Rule, expr: &str) -> String {
    let words = rule.text.as_deref().unwrap_or(&rule.name);
    let about = match rule.scope() {
        Scope::Device => "device {{ $labels.device }}",
        Scope::Held => "pid {{ $labels.pid }} on device {{ $labels.device }}",
        Scope::Process | Scope::Ended => "pid {{ $labels.pid }}",
    };
    let (name, severity) = (rule.alertname(), rule.severity.name());
    let hold = match rule.condition.hold {
        hold if hold.is_zero() => String::new(),
        hold => format!("    for: {}\n", period::print(hold)),
    };
    let mut text = format!("  # {}: {}\n  - alert: {name}\n    expr: |\n", plain(&rule.name), rule.condition);
    expr.lines().for_each(|line| text += &format!("      {line}\n"));
    text += &format!("{hold}    labels:\n      severity: {severity}\n    annotations:\n");
    // Braces would begin a template.
    let words = plain(words).replace(['{', '}'], "|");
    text + &format!("      summary: {}\n", quoted(&format!("{about}: {words}")))
}

fn expr_of(rule: &Rule) -> Result<String, String> {
    let condition = &rule.condition;
    let scopes: BTreeSet<Scope> = condition.compares().iter().map(|compare| compare.figure.scope).collect();
    if scopes.len() > 1 {
        return Err("it looks at figures of a process and of a device, which bear different labels".into());
    }
    let matchers = matchers(rule)?;
    let now = said(&condition.when, &matchers, false)?;
    let (scope, has_until) = (rule.scope(), condition.until.is_some());
    let labels = match scope {
        Scope::Device => "job, instance, device",
        Scope::Held => "job, instance, device, pid",
        // A process that is gone is over, so nothing stands in for what is missing.
        _ => "job, instance, pid",
    };
    if scope != Scope::Device && !has_until {
        return Ok(now);
    }
    let stays = said(&condition.stays(), &matchers, scope == Scope::Device)?;
    let alerts = format!("ALERTS{{alertname=\"{}\",alertstate=\"firing\"}}", rule.alertname());
    Ok(format!("({now})\nor\n(({stays})\nand on ({labels}) {alerts})"))
}

/// What follows a metric's name, to choose devices and processes.
fn matchers(rule: &Rule) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    if !rule.devices.is_empty() {
        let names: Option<Vec<&str>> = rule.devices.iter().map(|one| label_of(&one.0)).collect();
        let names = names.ok_or("devices have only their number in Prometheus, and it names one otherwise")?;
        // A card's number means all its chips.
        let names = names.iter().map(|name| if name.ends_with('R') { (*name).to_owned() } else { format!("{name}R?") });
        all.push(format!("device=~\"{}\"", names.collect::<Vec<_>>().join("|")));
    }
    if let Some(process) = &rule.process {
        let is_plain = |c: char| c.is_alphanumeric() || "_-.:*".contains(c);
        if !process.chars().all(is_plain) {
            return Err("the name of its process has unusual letters in it".into());
        }
        all.push(match process.parse::<u32>() {
            Ok(pid) => format!("pid=\"{pid}\""),
            Err(_) => format!("name=~\"{}\"", process.replace('.', "\\\\.").replace('*', ".*")),
        });
    }
    // The sum of those that are too many to be told one by one.
    if rule.scope() == Scope::Held {
        all.push("pid!=\"other\"".into());
    }
    Ok(all)
}

fn label_of(selector: &str) -> Option<&str> {
    let digits = selector.strip_suffix('R').unwrap_or(selector);
    digits.parse::<u32>().is_ok().then_some(selector)
}

fn said(expr: &Expr, matchers: &[String], held: bool) -> Result<String, String> {
    let (all, word) = match expr {
        Expr::Compare(compare) => return compared(compare, matchers, held),
        Expr::And(all) => (all, "and"),
        Expr::Or(all) => (all, "or"),
    };
    let parts: Result<Vec<String>, String> = all.iter().map(|one| said(one, matchers, held)).collect();
    let parts: Vec<String> = parts?.into_iter().map(|part| format!("({part})")).collect();
    Ok(parts.join(&format!(" {word} ")))
}

fn compared(compare: &Compare, matchers: &[String], held: bool) -> Result<String, String> {
    let figure = compare.figure;
    let metric = figure.promql.ok_or_else(|| format!("Prometheus is not told {}", figure.name))?;
    let look_back = period::print(LOOK_BACK);
    let last = |metric: Metric| match held {
        true => metric.over(matchers, "last_over_time", &look_back),
        false => metric.without_kind(metric.selector(matchers)),
    };
    let (sign, number) = (compare.op.sign(), compare.value.number() * metric.scale);
    Ok(match (compare.value, compare.increase, figure.kind) {
        (Value::Word(at), _, Kind::State) => {
            let state = STATES.get(at).map_or("?", |(state, _)| state.name());
            let matchers: Vec<String> = [format!("state=\"{state}\"")].into_iter().chain(matchers.to_vec()).collect();
            let value = metric.selector(&matchers);
            let value = if held { format!("last_over_time({value}[{look_back}])") } else { value };
            format!("sum without (state) ({value}) {sign} 1")
        }
        (_, Some(time), _) => {
            let least = metric.over(matchers, "min_over_time", &period::print(time));
            format!("{} - {least} {sign} {number}", last(metric))
        }
        (Value::Percent(_), ..) => {
            let (_, most) = figure.most.ok_or_else(|| format!("{} has no limit", figure.name))?;
            format!("100 * {} / ({} > 0) {sign} {number}", last(metric), last(most))
        }
        _ => format!("{} {sign} {number}", last(metric)),
    })
}

impl Metric {
    fn selector(self, matchers: &[String]) -> String {
        let kind = self.kind.map(|kind| format!("kind=\"{kind}\""));
        let all: Vec<String> = kind.into_iter().chain(matchers.iter().cloned()).collect();
        if all.is_empty() { self.name.to_owned() } else { format!("{}{{{}}}", self.name, all.join(",")) }
    }

    fn over(self, matchers: &[String], function: &str, time: &str) -> String {
        self.without_kind(format!("{function}({}[{time}])", self.selector(matchers)))
    }

    /// All figures of a device bear the same labels, so that they can be joined.
    fn without_kind(self, text: String) -> String {
        if self.kind.is_some() { format!("sum without (kind) ({text})") } else { text }
    }
}

fn plain(text: &str) -> String {
    text.replace(char::is_control, "?")
}

fn quoted(text: &str) -> String {
    format!("'{}'", plain(text).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use model::{Selector, Severity};

    #[test]
    fn a_rule_is_a_rule_for_prometheus_too() {
        let rule = |name: &str, when: &str| Rule {
            name: name.into(),
            condition: when.parse().unwrap(),
            severity: Severity::Critical,
            devices: vec![],
            process: None,
            text: Some("it's {{hot}}".into()),
        };
        let rules = [
            rule("very-hot", "asic_temp > 95% for 30s until asic_temp < 80"),
            Rule {
                devices: vec![Selector("0".into())],
                ..rule("gone", "state == lost or increase(thermal_trips, 10m) > 0")
            },
            Rule { process: Some("py*".into()), ..rule("greedy", "process_dram > 1GiB") },
            Rule { devices: vec![Selector("01:00.0".into())], ..rule("one", "dram > 1") },
            rule("mixed", "process_dram > 1 and dram > 1"),
            rule("left", "left_at_exit > 0"),
        ];
        expect![[r##"
            # Written by `ttmon alerts export --prometheus`. Behind `or` stands what keeps an alert firing: what ends it is not so yet, by the last
            # values of five minutes.
            groups:
            - name: ttmon
              rules:
              # very-hot: asic_temp > 95% for 30s until asic_temp < 80
              - alert: TtmonVeryHot
                expr: |
                  (100 * ttmon_device_temperature_celsius / (ttmon_device_temperature_limit_celsius > 0) > 95)
                  or
                  ((last_over_time(ttmon_device_temperature_celsius[5m]) >= 80)
                  and on (job, instance, device) ALERTS{alertname="TtmonVeryHot",alertstate="firing"})
                for: 30s
                labels:
                  severity: critical
                annotations:
                  summary: 'device {{ $labels.device }}: it''s ||hot||'
              # gone: state == lost or increase(thermal_trips, 10m) > 0
              - alert: TtmonGone
                expr: |
                  ((sum without (state) (ttmon_device_state{state="lost",device=~"0R?"}) == 1) or (ttmon_device_thermal_trips_total{device=~"0R?"} - min_over_time(ttmon_device_thermal_trips_total{device=~"0R?"}[10m]) > 0))
                  or
                  (((sum without (state) (last_over_time(ttmon_device_state{state="lost",device=~"0R?"}[5m])) == 1) or (last_over_time(ttmon_device_thermal_trips_total{device=~"0R?"}[5m]) - min_over_time(ttmon_device_thermal_trips_total{device=~"0R?"}[10m]) > 0))
                  and on (job, instance, device) ALERTS{alertname="TtmonGone",alertstate="firing"})
                labels:
                  severity: critical
                annotations:
                  summary: 'device {{ $labels.device }}: it''s ||hot||'
              # greedy: process_dram > 1GiB
              - alert: TtmonGreedy
                expr: |
                  sum without (kind) (ttmon_process_memory_bytes{kind="dram",name=~"py.*",pid!="other"}) > 1073741824
                labels:
                  severity: critical
                annotations:
                  summary: 'pid {{ $labels.pid }} on device {{ $labels.device }}: it''s ||hot||'
              # one is not here: devices have only their number in Prometheus, and it names one otherwise
              # mixed is not here: it looks at figures of a process and of a device, which bear different labels
              # left is not here: Prometheus is not told left_at_exit
        "##]].assert_eq(&prometheus(&rules));
    }
}
