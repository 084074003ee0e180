//! What is shipped for Prometheus, Grafana and Kubernetes: it names metrics that there are, and those who read it understand it.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::not_run;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(packaging().join(path)).unwrap()
}

/// Words that look like metrics of ours.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("ttmon_")).map(str::to_owned).collect()
}

fn expressions(dashboard: &serde_json::Value) -> Vec<String> {
    match dashboard {
        serde_json::Value::Object(all) => {
            let own = all.get("expr").and_then(|expr| expr.as_str()).map(str::to_owned);
            own.into_iter().chain(all.values().flat_map(expressions)).collect()
        }
        serde_json::Value::Array(all) => all.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

/// What promtool says of a file; `None` where there is no promtool.
fn promtool(arguments: &[&str]) -> Option<(bool, String)> {
    let output = Command::new("promtool").args(arguments).output().ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr)))
        .map(|(is_well, said)| (is_well, said.into_owned()))
}

#[test]
fn rules_and_dashboard_name_metrics_that_there_are() {
    let known: BTreeSet<String> = web::metrics::names().collect();
    let dashboard = read("grafana/ttmon.json");
    let rules = read("prometheus/ttmon.rules.yml") + &read("prometheus/ttmon-service.rules.yml");
    let expressions = rules.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    for (file, text) in [("dashboard", dashboard), ("rules", expressions)] {
        let named = metrics_in(&text);
        let unknown: Vec<&String> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
        assert!(named.len() > 5, "{file}");
    }
}

#[test]
fn panels_have_ids_places_and_the_data_source_that_is_chosen() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("grafana/ttmon.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<i64> = panels.iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut taken = BTreeSet::new();
    for panel in panels {
        let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        for place in (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y))) {
            assert!(place.0 < 24 && taken.insert(place), "{} lies on another panel", panel["title"]);
        }
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
        }
    }
}

#[test]
fn prometheus_understands_the_rules_and_every_panel() {
    let folder = tempfile::tempdir().unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&read("grafana/ttmon.json")).unwrap();
    let records = expressions(&dashboard).into_iter().enumerate().map(|(n, expr)| {
        let expr = expr.replace("$__rate_interval", "5m").replace("$host", ".+").replace("$device", ".+");
        serde_json::json!({"record": format!("panel:{n}"), "expr": expr})
    });
    // JSON is YAML.
    let rules = serde_json::json!({"groups": [{"name": "panels", "rules": records.collect::<Vec<_>>()}]});
    let panels = folder.path().join("panels.yml");
    std::fs::write(&panels, rules.to_string()).unwrap();
    let shipped = ["ttmon", "ttmon-service"].map(|name| packaging().join(format!("prometheus/{name}.rules.yml")));
    for file in [&shipped[0], &shipped[1], &panels] {
        let Some((is_well, said)) = promtool(&["check", "rules", file.to_str().unwrap()]) else {
            return not_run(
                "prometheus_understands_the_rules_and_every_panel",
                "promtool (package prometheus) is missing",
            );
        };
        assert!(is_well && said.contains("SUCCESS"), "{said}");
    }
}

#[test]
fn the_rules_for_devices_are_those_that_the_program_exports() {
    let exported = support::ttmon(&["alerts", "export", "--prometheus", "--config", "/nowhere/config.toml"]);
    expect_test::expect_file!["../../../packaging/prometheus/ttmon.rules.yml"].assert_eq(&exported.out);
}

#[test]
fn prometheus_understands_every_example() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    for file in ["ttmon.rules.yml", "ttmon-service.rules.yml", "ttmon-targets.yml"] {
        std::fs::copy(packaging().join("prometheus").join(file), folder.path().join(file)).unwrap();
    }
    let key = rcgen::generate_simple_self_signed(["ttmon".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ttmon-ca.crt"), key.cert.pem()).unwrap();
    std::fs::write(folder.path().join("ttmon.token"), "s3cret\n").unwrap();
    for example in ["static", "file_sd", "tls-token", "kubernetes"] {
        let text = read(&format!("prometheus/scrape-{example}.yml")).replace("/etc/prometheus", place);
        let file = folder.path().join("prometheus.yml");
        let check = |text: &str| {
            std::fs::write(&file, text).unwrap();
            promtool(&["check", "config", file.to_str().unwrap()])
        };
        let Some((mut is_well, mut said)) = check(&text) else {
            return not_run("prometheus_understands_every_example", "promtool (package prometheus) is missing");
        };
        // Debian's knows no Kubernetes; all the rest is checked.
        if said.contains("field kubernetes_sd_configs not found") {
            let text = text.replace("kubernetes_sd_configs:\n      - role: pod\n", "static_configs: []\n");
            (is_well, said) = check(&text).unwrap();
        }
        assert!(is_well, "{example}: {said}");
    }
}

#[test]
fn the_pod_gets_to_see_what_it_needs_and_no_more() {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let load = |file: &str| {
        let path = packaging().join("kubernetes").join(file);
        ["python3", "/usr/bin/python3"].iter().find_map(|python| {
            let output = Command::new(python).args(["-c", script]).arg(&path).output().ok()?;
            serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout).ok()
        })
    };
    let (Some(set), Some(monitor)) = (load("daemonset.yaml"), load("podmonitor.yaml")) else {
        return not_run(
            "the_pod_gets_to_see_what_it_needs_and_no_more",
            "python3-yaml is missing, or the YAML is wrong",
        );
    };
    let pod = &set[0]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let security = &container["securityContext"];
    assert_eq!((&pod["hostPID"], &pod["hostNetwork"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(security["privileged"], serde_json::Value::Null);
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["capabilities"]["drop"][0], "ALL");
    let of_host = |mount: &&serde_json::Value| {
        let volumes = pod["volumes"].as_array().unwrap();
        volumes.iter().any(|volume| volume["name"] == mount["name"] && !volume["hostPath"].is_null())
    };
    for mount in container["volumeMounts"].as_array().unwrap().iter().filter(of_host) {
        assert_eq!(mount["readOnly"], true, "{mount}");
        assert!(["/sys", "/dev/shm"].contains(&mount["mountPath"].as_str().unwrap()), "{mount}");
    }
    // What the service is started with is what its command line knows.
    let words: Vec<&str> = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let help = support::ttmon(&["serve", "--help"]).out;
    for word in words.iter().filter_map(|word| word.split('=').next()).filter(|word| word.starts_with("--")) {
        assert!(help.contains(word), "{word}");
    }
    let port = &monitor[0]["spec"]["podMetricsEndpoints"][0]["port"];
    assert_eq!(&container["ports"][0]["name"], port);
    assert_eq!(set[0]["spec"]["selector"], monitor[0]["spec"]["selector"]);
}
