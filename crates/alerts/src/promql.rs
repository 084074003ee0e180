//! Writes the rules for Prometheus, over the metrics of `ttmon serve`.
//!
//! A rule that fires keeps firing until what ends it is known to hold. PromQL can express that, since a rule may look at its own
//! past in `ALERTS`; the last known values of five minutes replace missing ones, as in the engine. Both fire at the same
//! moments when they see the same values at the same times.

use crate::condition::{Compare, Expr, Threshold};
use crate::rule::Rule;
use crate::rule_figure::RuleFigure;
use crate::subject::Scope;
use crate::track::{LOOK_BACK, SILENT};
use model::figure::MetricKind;
use model::figure::device::STATE;
use model::{Comparison, duration};
use std::collections::BTreeSet;

/// A file of rules for Prometheus 2.37 and later.
pub fn prometheus(rules: &[Rule]) -> String {
    let mut text = String::from(HEAD);
    for rule in rules {
        match expr_of(rule) {
            Ok(expr) => text += &entry(rule, &expr),
            Err(why) => text += &format!("  # {} is not exported: {why}\n", plain(&rule.name)),
        }
    }
    text
}

const HEAD: &str = "\
# Written by `ttmon alerts export --prometheus`. The part after `or` keeps an alert firing until what ends it holds, by the last known
# values of five minutes.
groups:
- name: ttmon
  rules:
";

/// Names of all metrics that a rule can use.
pub fn metric_names() -> BTreeSet<String> {
    let all = RuleFigure::all().flat_map(|figure| [Some(figure), figure.limit()]).flatten();
    all.filter_map(|figure| Some(MetricSeries::of(figure).ok()?.name)).collect()
}

fn entry(rule: &Rule, expr: &str) -> String {
    let about = match rule.scope() {
        Scope::Device => "device {{ $labels.device }}",
        Scope::Held => "pid {{ $labels.pid }} on device {{ $labels.device }}",
        Scope::Process | Scope::Exited => "pid {{ $labels.pid }}",
    };
    let (name, severity) = (rule.alertname(), rule.severity.name());
    let hold = match rule.condition.hold {
        hold if hold.is_zero() => String::new(),
        hold => format!("    for: {}\n", duration::print(hold)),
    };
    let mut text = format!("  # {}: {}\n  - alert: {name}\n    expr: |\n", plain(&rule.name), rule.condition);
    expr.lines().for_each(|line| text += &format!("      {line}\n"));
    text += &format!("{hold}    labels:\n      severity: {severity}\n    annotations:\n");
    // Braces would begin a template.
    let words = plain(rule.words()).replace(['{', '}'], "|");
    text += &format!("      summary: {}\n", quoted(&format!("{{{{ $labels.instance }}}}: {about}: {words}")));
    let advice = rule.advice.as_deref().map(|advice| plain(advice).replace(['{', '}'], "|"));
    text + &advice.map_or_else(String::new, |advice| format!("      description: {}\n", quoted(&advice)))
}

fn expr_of(rule: &Rule) -> Result<String, String> {
    let condition = &rule.condition;
    let scopes: BTreeSet<Scope> = condition.compares().iter().map(|compare| compare.figure.scope()).collect();
    if scopes.len() > 1 {
        return Err("it compares figures of a process and of a device, which have different labels".into());
    }
    let matchers = matchers(rule)?;
    let now = expression(&condition.when, &matchers, false)?;
    let (scope, has_until) = (rule.scope(), condition.until.is_some());
    let labels = match scope {
        Scope::Device => "job, instance, device",
        Scope::Held => "job, instance, device, pid",
        // A process that has exited is over, so its last known values do not count.
        _ => "job, instance, pid",
    };
    if scope != Scope::Device && !has_until {
        return Ok(now);
    }
    let stays = expression(&condition.stays(), &matchers, scope == Scope::Device)?;
    let alerts = format!("ALERTS{{alertname=\"{}\",alertstate=\"firing\"}}", rule.alertname());
    Ok(format!("({now})\nor\n(({stays})\nand on ({labels}) {alerts})"))
}

/// What follows a metric's name, to choose devices and processes.
fn matchers(rule: &Rule) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    if !rule.devices.is_empty() {
        let names: Option<Vec<&str>> = rule.devices.iter().map(|one| label_of(&one.0)).collect();
        let names =
            names.ok_or("Prometheus knows devices by their number only, and the rule selects one by something else")?;
        // A card's number means all its chips.
        let names = names.iter().map(|name| if name.ends_with('R') { (*name).to_owned() } else { format!("{name}R?") });
        all.push(format!("device=~\"{}\"", names.collect::<Vec<_>>().join("|")));
    }
    if let Some(process) = &rule.process {
        let is_plain = |c: char| c.is_alphanumeric() || "_-.:*".contains(c);
        if !process.chars().all(is_plain) {
            return Err("the name of its process has characters that are not exported".into());
        }
        all.push(match process.parse::<u32>() {
            Ok(pid) => format!("pid=\"{pid}\""),
            Err(_) => format!("name=~\"{}\"", process.replace('.', "\\\\.").replace('*', ".*")),
        });
    }
    // The sum of the processes that are too many for a series each.
    if rule.scope() == Scope::Held {
        all.push("pid!=\"other\"".into());
    }
    Ok(all)
}

fn label_of(selector: &str) -> Option<&str> {
    let digits = selector.strip_suffix('R').unwrap_or(selector);
    digits.parse::<u32>().is_ok().then_some(selector)
}

fn expression(expr: &Expr, matchers: &[String], is_last: bool) -> Result<String, String> {
    let (all, word) = match expr {
        Expr::Compare(compare) => return compared(compare, matchers, is_last),
        Expr::And(all) => (all, "and"),
        Expr::Or(all) => (all, "or"),
    };
    let parts: Result<Vec<String>, String> = all.iter().map(|one| expression(one, matchers, is_last)).collect();
    let parts: Vec<String> = parts?.into_iter().map(|part| format!("({part})")).collect();
    Ok(parts.join(&format!(" {word} ")))
}

fn compared(compare: &Compare, matchers: &[String], is_last: bool) -> Result<String, String> {
    let figure = compare.figure;
    let series = MetricSeries::of(figure)?;
    let value = |series: &MetricSeries| {
        if is_last {
            series.over("last_over_time", LOOK_BACK, matchers)
        } else {
            series.joined(series.selector(matchers))
        }
    };
    let (sign, number) = (compare.operator.name(), compare.threshold.number());
    let text = match (compare.threshold, compare.increase) {
        (Threshold::Word(place), _) if series.kind == MetricKind::OneOf => {
            let word = figure.texts().get(place).unwrap_or(&"?");
            // A device that does not answer is in the state that it was in, as far as is known.
            let is_kept = is_last
                && figure == RuleFigure::Device(&STATE)
                && compare.operator == Comparison::Is
                && *word != SILENT;
            let words = if is_kept { format!("=~\"{word}|{SILENT}\"") } else { format!("=\"{word}\"") };
            let of_word = MetricSeries { label: series.label.clone().map(|(name, _)| (name, words)), ..series.clone() };
            format!("{} {sign} 1", value(&of_word))
        }
        (_, Some(time)) => {
            let least = series.over("min_over_time", time, matchers);
            format!("{} - {least} {sign} {}", value(&series), number * series.scale)
        }
        (Threshold::Percent(_), _) => {
            let limit = figure.limit().ok_or_else(|| format!("{} has no limit", figure.word()))?;
            format!("100 * {} / ({} > 0) {sign} {number}", value(&series), value(&MetricSeries::of(limit)?))
        }
        _ => format!("{} {sign} {}", value(&series), number * series.scale),
    };
    Ok(series.any_label(text))
}

/// Where Prometheus has a figure.
#[derive(Debug, Clone)]
struct MetricSeries {
    name: String,
    kind: MetricKind,
    /// A label, and what it is compared with.
    label: Option<(&'static str, String)>,
    /// A label with a value of its own for each of the figure's values.
    dimension: Option<&'static str>,
    /// How many of its units are one of the figure's.
    scale: f64,
}

impl MetricSeries {
    fn of(figure: RuleFigure) -> Result<MetricSeries, String> {
        let metric = figure.metric().ok_or_else(|| format!("{} is not a metric", figure.word()))?;
        Ok(MetricSeries {
            name: format!("{}{}", metric.name, metric.kind.suffix()),
            kind: metric.kind,
            label: metric.label.map(|(name, value)| (name, format!("=\"{value}\""))),
            dimension: figure.dimension().map(|dimension| dimension.name()),
            scale: figure.unit().base().1,
        })
    }

    fn selector(&self, matchers: &[String]) -> String {
        let label = self.label.as_ref().map(|(name, value)| format!("{name}{value}"));
        let all: Vec<String> = label.into_iter().chain(matchers.iter().cloned()).collect();
        if all.is_empty() { self.name.clone() } else { format!("{}{{{}}}", self.name, all.join(",")) }
    }

    fn over(&self, function: &str, time: std::time::Duration, matchers: &[String]) -> String {
        self.joined(format!("{function}({}[{}])", self.selector(matchers), duration::print(time)))
    }

    /// Without the labels that other figures of the device do not have, so that they can be joined.
    fn joined(&self, text: String) -> String {
        match (&self.label, self.dimension) {
            (Some((name, _)), None) => format!("sum without ({name}) ({text})"),
            _ => text,
        }
    }

    /// A comparison of several values holds where any of them does, as in the engine.
    fn any_label(&self, text: String) -> String {
        match (&self.label, self.dimension) {
            (Some((name, _)), Some(dimension)) => format!("max without ({dimension}, {name}) ({text})"),
            (None, Some(dimension)) => format!("max without ({dimension}) ({text})"),
            (_, None) => text,
        }
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
    fn a_rule_is_exported_to_prometheus() {
        let rule = |name: &str, when: &str| Rule {
            name: name.into(),
            condition: when.parse().unwrap(),
            severity: Severity::Critical,
            devices: vec![],
            process: None,
            text: Some("it's {{hot}}".into()),
            advice: Some("cool {it}".into()),
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
            # Written by `ttmon alerts export --prometheus`. The part after `or` keeps an alert firing until what ends it holds, by the last known
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
                  summary: '{{ $labels.instance }}: device {{ $labels.device }}: it''s ||hot||'
                  description: 'cool |it|'
              # gone: state == lost or increase(thermal_trips, 10m) > 0
              - alert: TtmonGone
                expr: |
                  ((sum without (state) (ttmon_device_state{state="lost",device=~"0R?"}) == 1) or (ttmon_device_thermal_trips_total{device=~"0R?"} - min_over_time(ttmon_device_thermal_trips_total{device=~"0R?"}[10m]) > 0))
                  or
                  (((sum without (state) (last_over_time(ttmon_device_state{state=~"lost|silent",device=~"0R?"}[5m])) == 1) or (last_over_time(ttmon_device_thermal_trips_total{device=~"0R?"}[5m]) - min_over_time(ttmon_device_thermal_trips_total{device=~"0R?"}[10m]) > 0))
                  and on (job, instance, device) ALERTS{alertname="TtmonGone",alertstate="firing"})
                labels:
                  severity: critical
                annotations:
                  summary: '{{ $labels.instance }}: device {{ $labels.device }}: it''s ||hot||'
                  description: 'cool |it|'
              # greedy: process_dram > 1GiB
              - alert: TtmonGreedy
                expr: |
                  sum without (kind) (ttmon_process_memory_used_bytes{kind="dram",name=~"py.*",pid!="other"}) > 1073741824
                labels:
                  severity: critical
                annotations:
                  summary: '{{ $labels.instance }}: pid {{ $labels.pid }} on device {{ $labels.device }}: it''s ||hot||'
                  description: 'cool |it|'
              # one is not exported: Prometheus knows devices by their number only, and the rule selects one by something else
              # mixed is not exported: it compares figures of a process and of a device, which have different labels
              # left is not exported: left_at_exit is not a metric
        "##]].assert_eq(&prometheus(&rules));
    }

    #[test]
    fn a_comparison_holds_where_it_does_for_any_label() {
        let figure = crate::rule_figure::tests::labelled();
        let (operator, threshold) = (Comparison::Above, Threshold::Number(90.0));
        let compare = Compare { figure, increase: None, operator, threshold };
        let expected = "max without (channel) (last_over_time(ttmon_device_gddr_temperature_celsius[5m]) > 90)";
        assert_eq!(compared(&compare, &[], true).unwrap(), expected);
        let text = |rule: &str| {
            let condition: crate::Condition = rule.parse().unwrap();
            expression(&condition.when, &[], false).unwrap()
        };
        assert_eq!(text("gddr_trained == false"), "max without (channel) (ttmon_device_gddr_trained == 0)");
        let errors = r#"ttmon_device_gddr_corrected_errors{direction="read"}"#;
        assert_eq!(
            text("increase(gddr_corrected_reads, 1h) > 9"),
            format!("max without (channel, direction) ({errors} - min_over_time({errors}[1h]) > 9)")
        );
    }
}
