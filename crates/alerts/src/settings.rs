//! Rules and receivers, from the configuration file: `[[alert]]`, `[alerts]` and what is under it.

use crate::parse::ParseError;
use crate::rule::{Rule, built_in, built_in_at_once};
use crate::subject::Scope;
use model::text::nearest;
use model::{Selector, Severity, duration};
use std::path::PathBuf;
use std::time::Duration;
use toml_edit::{Document, Item, Table, TableLike};

/// Rules and receivers of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertSettings {
    /// Built-in rules and those of the file.
    pub rules: Vec<Rule>,
    /// Receivers of notices.
    pub receivers: Vec<Receiver>,
}

/// One receiver of notices.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// Channel of delivery.
    pub way: Channel,
    /// Only of what matters as much.
    pub at_least: Severity,
    /// For one attempt.
    pub timeout: Duration,
}

/// Channels of delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Channel {
    /// JSON is sent to a URL.
    Webhook {
        /// Address that is posted to.
        url: String,
        /// File with the token.
        token_file: Option<PathBuf>,
        /// File with the certificates to trust, instead of the system's.
        ca: Option<PathBuf>,
    },
    /// Alerts are sent to an Alertmanager.
    Alertmanager {
        /// Address that is posted to.
        url: String,
        /// File with the token.
        token_file: Option<PathBuf>,
        /// File with the certificates to trust, instead of the system's.
        ca: Option<PathBuf>,
    },
    /// A program is run, with JSON on its standard input.
    Command {
        /// Program and arguments.
        run: Vec<String>,
    },
    /// `notify-send`.
    Desktop,
}

/// Something in the file that was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From one on.
    pub line: usize,
    /// For people.
    pub what: String,
}

impl Default for AlertSettings {
    fn default() -> AlertSettings {
        AlertSettings { rules: built_in(), receivers: Vec::new() }
    }
}

impl AlertSettings {
    /// The built-in rules that can fire in the first sample.
    pub fn at_once() -> AlertSettings {
        AlertSettings { rules: built_in_at_once(), receivers: Vec::new() }
    }
}

impl Receiver {
    /// Name for people and logs, without secrets.
    pub fn name(&self) -> String {
        match &self.way {
            Channel::Webhook { url, .. } => format!("webhook {}", without_secrets(url)),
            Channel::Alertmanager { url, .. } => format!("alertmanager {}", without_secrets(url)),
            Channel::Command { run } => format!("command {}", run.first().map_or("", String::as_str)),
            Channel::Desktop => "desktop".into(),
        }
    }
}

/// What comes behind the host of a webhook is often all that guards it.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if host.len() == rest.len() { format!("{scheme}://{host}") } else { format!("{scheme}://{host}/…") }
}

/// Tables of the configuration file that are read here.
pub const TABLES: [&str; 2] = ["alert", "alerts"];

const RULE_KEYS: [&str; 8] = ["name", "when", "severity", "device", "process", "text", "advice", "off"];
const HTTP_KEYS: [&str; 5] = ["url", "token_file", "ca", "at_least", "timeout"];
const LONGEST_NAME: usize = 64;

/// What a file says, and what of it is wrong. A mistake costs nothing but itself.
pub fn read(text: &str, document: &Document<String>) -> (AlertSettings, Vec<Problem>) {
    let mut reader = SettingsReader { text, problems: Vec::new() };
    let mut settings = AlertSettings::default();
    if let Some(item) = document.get("alerts") {
        reader.alerts(item, &mut settings);
    }
    if let Some(item) = document.get("alert") {
        reader.rules(item, &mut settings.rules);
    }
    (settings, reader.problems)
}

/// The line of a place in a text, from one on.
pub fn line_of(text: &str, span: Option<std::ops::Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
}

struct SettingsReader<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

type Read<T> = Result<T, String>;

impl SettingsReader<'_> {
    fn wrong(&mut self, span: Option<std::ops::Range<usize>>, what: String) {
        self.problems.push(Problem { line: line_of(self.text, span), what });
    }

    /// Names keys that are none.
    fn check_keys(&mut self, table: &dyn TableLike, known: &[&str]) {
        for (name, item) in table.iter().filter(|(name, _)| !known.contains(name)) {
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are {}", known.join(", ")),
            };
            let span = table.key(name).and_then(toml_edit::Key::span).or(item.span());
            self.wrong(span, format!("unknown key {name}: {hint}"));
        }
    }

    fn alerts(&mut self, item: &Item, settings: &mut AlertSettings) {
        let Some(table) = item.as_table_like() else {
            return self.wrong(item.span(), "alerts must be a table, [alerts]; a rule is an [[alert]]".into());
        };
        self.check_keys(table, &["built_in", "webhook", "alertmanager", "command", "desktop"]);
        match table.get("built_in").map(|item| (item, item.as_bool())) {
            Some((_, Some(false))) => settings.rules.clear(),
            Some((item, None)) => self.wrong(item.span(), "built_in: true or false is needed".into()),
            _ => {}
        }
        for (name, keys) in
            [("webhook", &HTTP_KEYS[..]), ("alertmanager", &HTTP_KEYS), ("command", &["run", "at_least", "timeout"])]
        {
            let Some(item) = table.get(name) else { continue };
            let Some(tables) = item.as_array_of_tables() else {
                self.wrong(item.span(), format!("write [[alerts.{name}]], since there may be several"));
                continue;
            };
            for table in tables {
                self.check_keys(table, keys);
                match receiver(name, table) {
                    Ok(receiver) => settings.receivers.push(receiver),
                    Err(why) => self.wrong(table.span(), format!("alerts.{name}: {why}")),
                }
            }
        }
        if let Some(item) = table.get("desktop") {
            let Some(table) = item.as_table_like() else {
                return self.wrong(item.span(), "write [alerts.desktop], a table".into());
            };
            self.check_keys(table, &["at_least", "timeout"]);
            match about(table).map(|(at_least, timeout)| Receiver { way: Channel::Desktop, at_least, timeout }) {
                Ok(receiver) => settings.receivers.push(receiver),
                Err(why) => self.wrong(item.span(), format!("alerts.desktop: {why}")),
            }
        }
    }

    fn rules(&mut self, item: &Item, rules: &mut Vec<Rule>) {
        let Some(tables) = item.as_array_of_tables() else {
            return self.wrong(item.span(), "write [[alert]], since there may be several".into());
        };
        let mut seen: Vec<String> = Vec::new();
        for table in tables {
            self.check_keys(table, &RULE_KEYS);
            match rule(table, rules) {
                Ok((rule, _)) if seen.contains(&rule.alertname()) => {
                    self.wrong(table.span(), format!("alert {:?}: there is one of that name already", rule.name));
                }
                Ok((rule, is_off)) => {
                    seen.push(rule.alertname());
                    let at = rules.iter().position(|other| other.alertname() == rule.alertname());
                    match (at, is_off) {
                        (Some(at), true) => drop(rules.remove(at)),
                        (Some(at), false) => rules[at] = rule,
                        (None, true) => {}
                        (None, false) => rules.push(rule),
                    }
                }
                Err((key, why)) => {
                    let span = table.get(key).and_then(Item::span).or(table.span());
                    self.wrong(span, why);
                }
            }
        }
    }
}

/// A rule and whether it is off; or the key that is wrong, and why.
fn rule(table: &Table, known: &[Rule]) -> Result<(Rule, bool), (&'static str, String)> {
    let name = string(table, "name").and_then(|name| name.ok_or("name is missing".into()));
    let name = name.map_err(|why| ("name", format!("alert: {why}")))?;
    named_rule(table, &name, known).map_err(|(key, why)| (key, format!("alert {name:?}: {why}")))
}

fn named_rule(table: &Table, name: &str, known: &[Rule]) -> Result<(Rule, bool), (&'static str, String)> {
    fn of<T>(key: &'static str, read: Read<T>) -> Result<T, (&'static str, String)> {
        read.map_err(|why| (key, why))
    }
    let is_plain = |c: char| c.is_alphanumeric() || "-_ .".contains(c);
    if !name.chars().all(is_plain) || !name.contains(char::is_alphanumeric) || name.chars().count() > LONGEST_NAME {
        return Err(("name", "a name is letters, digits, -, _, . and blanks, not more than 64".into()));
    }
    let is_off = of("off", switch(table, "off"))?;
    let base = known.iter().find(|rule| rule.name == name);
    let condition = match (of("when", string(table, "when"))?, base) {
        (Some(when), _) => when.parse().map_err(|error: ParseError| ("when", format!("when: {error}")))?,
        (None, Some(base)) => base.condition.clone(),
        (None, None) => return Err(("when", "when is missing".into())),
    };
    let severity = of("severity", severity(table, "severity"))?;
    // Words belong to what is compared: of another comparison they might not be true.
    let described = base.filter(|base| base.condition.when == condition.when);
    let rule = Rule {
        condition,
        severity: severity.or(base.map(|base| base.severity)).unwrap_or(Severity::Warning),
        process: of("process", string(table, "process"))?,
        devices: of("device", devices(table))?,
        text: of("text", string(table, "text"))?.or_else(|| described.and_then(|base| base.text.clone())),
        advice: of("advice", string(table, "advice"))?.or_else(|| described.and_then(|base| base.advice.clone())),
        name: name.to_owned(),
    };
    if rule.process.is_some() && rule.scope() == Scope::Device {
        let why = "process goes with figures of processes, such as process_dram, and there is none in when";
        return Err(("process", why.into()));
    }
    Ok((rule, is_off))
}

fn devices(table: &Table) -> Read<Vec<Selector>> {
    let needed = || "device: a name in quotes is needed, or a list of such".to_owned();
    match table.get("device") {
        None => Ok(Vec::new()),
        Some(item) => {
            // As -i takes them: several may be separated by commas.
            let one: Option<Vec<_>> = item.as_str().map(|one| one.split(',').map(|one| Some(one.trim())).collect());
            let all = one.or_else(|| Some(item.as_array()?.iter().map(|one| one.as_str()).collect()));
            let selector = |one: Option<&str>| one.map(|one| Selector(one.to_owned())).ok_or_else(needed);
            all.ok_or_else(needed)?.into_iter().map(selector).collect()
        }
    }
}

fn receiver(kind: &str, table: &Table) -> Read<Receiver> {
    let (at_least, timeout) = about(table)?;
    if kind == "command" {
        let needed = "run: a list is needed, the program and its arguments, as [\"/usr/local/bin/page\", \"--now\"]";
        let run = table.get("run").and_then(Item::as_array).ok_or(needed)?;
        let run: Option<Vec<String>> = run.iter().map(|one| one.as_str().map(str::to_owned)).collect();
        let run = run.filter(|run| run.first().is_some_and(|program| !program.is_empty())).ok_or(needed)?;
        return Ok(Receiver { way: Channel::Command { run }, at_least, timeout });
    }
    let url = string(table, "url")?.ok_or("url is missing")?;
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.contains(char::is_whitespace)) {
        return Err("url: an address is needed that begins with http:// or https://".into());
    }
    let file = |key: &str| Ok::<_, String>(string(table, key)?.map(PathBuf::from));
    let (token_file, ca) = (file("token_file")?, file("ca")?);
    let way = match kind {
        "webhook" => Channel::Webhook { url, token_file, ca },
        _ => Channel::Alertmanager { url: url.trim_end_matches('/').to_owned(), token_file, ca },
    };
    Ok(Receiver { way, at_least, timeout })
}

/// What all receivers have.
fn about(table: &dyn TableLike) -> Read<(Severity, Duration)> {
    let at_least = severity(table, "at_least")?.unwrap_or(Severity::Info);
    let timeout = match string(table, "timeout")? {
        None => Duration::from_secs(10),
        Some(text) => duration::parse(&text)
            .filter(|time| !time.is_zero())
            .ok_or("timeout: a duration like 90s, 10m, 1h30m or 250ms is needed")?,
    };
    match timeout.as_secs() {
        1..=300 => Ok((at_least, timeout)),
        _ => Err("timeout: from 1s to 5m is needed".into()),
    }
}

fn string(table: &dyn TableLike, key: &str) -> Read<Option<String>> {
    let Some(item) = table.get(key) else { return Ok(None) };
    item.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| format!("{key}: a text in quotes is needed"))
}

fn switch(table: &dyn TableLike, key: &str) -> Read<bool> {
    let Some(item) = table.get(key) else { return Ok(false) };
    item.as_bool().ok_or_else(|| format!("{key}: true or false is needed"))
}

fn severity(table: &dyn TableLike, key: &str) -> Read<Option<Severity>> {
    let Some(word) = string(table, key)? else { return Ok(None) };
    let found = Severity::ALL.into_iter().find(|severity| severity.name() == word);
    found.map(Some).ok_or_else(|| format!("{key}: {word:?} is none of info, warning, critical"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn parse(text: &str) -> (AlertSettings, Vec<Problem>) {
        read(text, &text.parse().unwrap())
    }

    #[test]
    fn a_built_in_rule_keeps_its_words_where_it_compares_the_same() {
        let hot = |lines: &str| {
            let (settings, problems) = parse(&format!("[[alert]]\nname = \"hot\"\n{lines}"));
            assert_eq!(problems, []);
            settings.rules.into_iter().find(|rule| rule.name == "hot").unwrap()
        };
        for lines in ["severity = \"critical\"", "when = \"asic_temp >= 95% for 5m\""] {
            let rule = hot(lines);
            assert_eq!(rule.words(), "near its temperature limit", "{lines}");
            assert!(rule.advice.is_some(), "{lines}");
        }
        let rule = hot("when = \"asic_temp > 36 for 1s\"");
        assert_eq!((rule.words(), rule.advice.as_deref()), ("hot", None), "36 °C is not near the limit");
        let rule = hot("when = \"asic_temp > 36\"\ntext = \"warmer than usual\"");
        assert_eq!((rule.words(), rule.advice.as_deref()), ("warmer than usual", None));
    }

    #[test]
    fn rules_are_added_changed_and_switched_off() {
        let text = r#"
            [[alert]]
            name = "hot"
            severity = "critical"
            device = ["0", "0000:01:00.0"]
            [[alert]]
            name = "silent"
            off = true
            [[alert]]
            name = "greedy"
            when = "process_dram > 1GiB for 5m"
            process = "python*"
        "#;
        let (settings, problems) = parse(text);
        assert_eq!(problems, []);
        let find = |name: &str| settings.rules.iter().find(|rule| rule.name == name);
        let hot = find("hot").unwrap();
        assert_eq!((hot.severity, hot.devices.len()), (Severity::Critical, 2));
        assert_eq!(hot.condition, built_in().iter().find(|rule| rule.name == "hot").unwrap().condition);
        assert_eq!((find("silent"), settings.rules.len()), (None, built_in().len()));
        assert_eq!(find("greedy").unwrap().severity, Severity::Warning);
        assert_eq!(parse("[alerts]\nbuilt_in = false\n").0.rules, []);
    }

    #[test]
    fn receivers_are_named_without_their_secrets() {
        let text = r#"
            [[alerts.webhook]]
            url = "https://user:word@example.org/hooks/secret?x=y"
            at_least = "critical"
            timeout = "3s"
            [[alerts.alertmanager]]
            url = "http://127.0.0.1:9093/"
            [[alerts.command]]
            run = ["/bin/page", "now"]
            [alerts.desktop]
        "#;
        let (settings, problems) = parse(text);
        assert_eq!(problems, []);
        let names: Vec<String> = settings.receivers.iter().map(Receiver::name).collect();
        assert_eq!(
            names,
            ["webhook https://example.org/…", "alertmanager http://127.0.0.1:9093", "command /bin/page", "desktop"]
        );
        assert_eq!(
            (settings.receivers[0].at_least, settings.receivers[0].timeout),
            (Severity::Critical, Duration::from_secs(3))
        );
    }

    #[test]
    fn each_mistake_is_named_with_its_line_and_costs_nothing_but_itself() {
        let text = r#"[alerts]
built_on = true
[[alerts.webhook]]
url = "ftp://x"
[[alerts.command]]
run = "page me"
[[alert]]
name = "hot"
when = "asic_tmp > 3"
[[alert]]
when = "asic_temp > 3"
[[alert]]
name = "new"
[[alert]]
name = "wrong"
when = "asic_temp > 3"
severity = "bad"
[[alert]]
name = "fine"
when = "asic_temp > 3"
whem = "x"
[[alert]]
name = "FINE"
when = "asic_temp > 3"
[[alert]]
name = "fine"
when = "asic_temp > 4"
[[alert]]
name = "whose"
when = "asic_temp > 3"
process = "x"
"#;
        let (settings, problems) = parse(text);
        let problems: Vec<String> = problems.iter().map(|one| format!("{}: {}", one.line, one.what)).collect();
        expect![[r#"
            2: unknown key built_on: did you mean built_in?
            3: alerts.webhook: url: an address is needed that begins with http:// or https://
            5: alerts.command: run: a list is needed, the program and its arguments, as ["/usr/local/bin/page", "--now"]
            9: alert "hot": when: column 1: unknown figure "asic_tmp"; did you mean asic_temp? expected one of state, sample_age, heartbeat, thermal_trips, asic_temp, fan, power, vcore, current, aiclk, utilization, programs, link_degraded, dram, trace, l1, stale, untracked_processes, smbus_errors, vreg_temp, board_temp, input_power, aiclk_ceiling_by, kernel_throttler, gddr_temp, gddr_top_temp, gddr_bottom_temp, gddr_trained, gddr_training_failed, gddr_corrected_reads, gddr_corrected_writes, gddr_uncorrected_read, gddr_uncorrected_write, eth_link_up, links_down, eth_ports_not_up, throttled_by, process_dram, process_l1, process_utilization, process_host_memory, process_memory, process_cpu, process_host_wait, process_idle, left_at_exit
            10: alert: name is missing
            12: alert "new": when is missing
            17: alert "wrong": severity: "bad" is none of info, warning, critical
            21: unknown key whem: did you mean when?
            25: alert "fine": there is one of that name already
            31: alert "whose": process goes with figures of processes, such as process_dram, and there is none in when"#]].assert_eq(&problems.join("\n"));
        assert_eq!(settings.rules.len(), built_in().len() + 2);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_complained_about(text in "\\PC*|(\\[\\[alert\\]\\]\n|\\[alerts\\]\n|name = \"x\"\n|when = [1a\"]\n|webhook = 1\n|\\[\\[alerts.webhook\\]\\]\n)*") {
            if let Ok(document) = text.parse() {
                let _ = read(&text, &document);
            }
        }
    }
}
