//! `ttmon alerts list`: the rules, and what they say now.

use show::text::{Align, clean, fit, width};
use watch::rules::RulesReply;

/// For people: a line for each rule, and below it what it says.
pub fn text(listed: &RulesReply) -> String {
    let widest = listed.rules.iter().map(|rule| width(&rule.name)).max().unwrap_or(0);
    let mut text = String::new();
    for rule in &listed.rules {
        let name = fit(&rule.name, widest, Align::Left, '~');
        text += &format!("{name}  {:<8}  {}\n", rule.severity.name(), clean(&rule.when));
        for alert in listed.alerts.iter().filter(|alert| alert.name == rule.name) {
            text += &format!("  {} since {}: {}\n", alert.state.name(), alert.since, clean(&alert.text));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::alerts::settings::AlertSettings;
    use show::example;
    use watch::rules::RuleWatch;

    #[test]
    fn each_rule_has_a_line_and_what_it_says_stands_below() {
        let mut machine = example::machine();
        machine.devices[1].state = model::State::Lost;
        let mut watch = RuleWatch::new(&AlertSettings::default());
        watch.observe(&machine, &[]);
        expect_test::expect![[r#"
            lost               critical  state == lost
              firing since 2026-01-02T03:04:05.678Z: device 1: disappeared from the bus (state lost)
            heartbeat-stopped  critical  state == hung
            silent             warning   state == silent for 15s
            thermal-trip       critical  increase(thermal_trips, 10m) > 0
            throttling         warning   asic_temp >= 100% for 30s until asic_temp < 95%
            hot                warning   asic_temp >= 95% for 30s until asic_temp < 90%
              pending since 2026-01-02T03:04:05.678Z: device 2: near its temperature limit (asic_temp 98.0 %)
            power-limit        info      power >= 98% for 30s until power < 93%
            memory-full        warning   dram >= 95% for 30s until dram < 90%
            leak-after-exit    warning   stale > 0 for 1m
              pending since 2026-01-02T03:04:05.678Z: device 0: memory still attributed to exited processes (stale 1.0 MiB)
            left-at-exit       info      left_at_exit > 0
            degraded-link      warning   link_degraded for 1m
              pending since 2026-01-02T03:04:05.678Z: device 0: PCIe link runs slower or narrower than slot and card support (link_degraded)
        "#]].assert_eq(&text(&RulesReply::of(Some(&watch))));
    }
}
