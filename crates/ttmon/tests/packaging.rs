//! What is shipped for Prometheus, Grafana and Kubernetes: it names metrics that there are, and those who read it understand it.

use crate::support::{needs, not_run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// What promtool says of a file.
fn promtool(arguments: &[&str]) -> (bool, String) {
    let output = Command::new("promtool").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.into_owned())
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
fn every_metric_has_a_panel() {
    let named = metrics_in(&read("grafana/ttmon.json"));
    let ours = web::metrics::names().filter(|name| name.starts_with("ttmon_"));
    let without: Vec<String> = ours.filter(|name| !named.contains(name)).collect();
    assert_eq!(without, Vec::<String>::new());
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
    if !needs::has("prometheus_understands_the_rules_and_every_panel", &["promtool"]) {
        return;
    }
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
        let (is_well, said) = promtool(&["check", "rules", file.to_str().unwrap()]);
        assert!(is_well && said.contains("SUCCESS"), "{said}");
    }
}

#[test]
fn the_rules_for_devices_are_those_that_the_program_exports() {
    let exported = crate::support::ttmon(&["alerts", "export", "--prometheus", "--config", "/nowhere/config.toml"]);
    expect_test::expect_file!["../../../packaging/prometheus/ttmon.rules.yml"].assert_eq(&exported.out);
}

#[test]
fn prometheus_understands_every_example() {
    if !needs::has("prometheus_understands_every_example", &["promtool"]) {
        return;
    }
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
        let (mut is_well, mut said) = check(&text);
        // Debian's knows no Kubernetes; all the rest is checked.
        if said.contains("field kubernetes_sd_configs not found") {
            let text = text.replace("kubernetes_sd_configs:\n      - role: pod\n", "static_configs: []\n");
            (is_well, said) = check(&text);
        }
        assert!(is_well, "{example}: {said}");
    }
}

/// The documents of a YAML file.
fn documents(path: &Path) -> Option<Vec<serde_json::Value>> {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    ["python3", "/usr/bin/python3"].iter().find_map(|python| {
        let output = Command::new(python).args(["-c", script]).arg(path).output().ok()?;
        serde_json::from_slice(&output.stdout).ok()
    })
}

/// A pod gets to see what it needs, and may write to nothing of the host.
/// The one folder of the host that a pod may write to.
const BLACK_BOX: &str = "/var/lib/ttmon/black-box";

fn check_mounts(pod: &serde_json::Value, mounted: &[&str]) {
    let container = &pod["containers"][0];
    let of_host = |mount: &&serde_json::Value| {
        let volumes = pod["volumes"].as_array().unwrap();
        volumes.iter().any(|volume| volume["name"] == mount["name"] && !volume["hostPath"].is_null())
    };
    for mount in container["volumeMounts"].as_array().unwrap().iter().filter(of_host) {
        let path = mount["mountPath"].as_str().unwrap();
        assert_eq!(mount["readOnly"] == true, path != BLACK_BOX, "{mount}");
        assert!(["/sys", "/dev/shm", "/var/log/pods"].iter().chain(mounted).any(|known| *known == path), "{mount}");
    }
}

#[test]
fn the_pod_gets_to_see_what_it_needs_and_no_more() {
    let load = |file: &str| documents(&packaging().join("kubernetes").join(file));
    let (Some(set), Some(monitor)) = (load("base/daemonset.yaml"), load("overlays/podmonitor/podmonitor.yaml")) else {
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
    check_mounts(pod, &[]);
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert_eq!(container[probe]["httpGet"]["path"], "/healthz", "{probe}");
    }
    // What the service is started with is what its command line knows.
    let words: Vec<&str> = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let help = crate::support::ttmon(&["serve", "--help"]).out;
    for word in words.iter().filter_map(|word| word.split('=').next()).filter(|word| word.starts_with("--")) {
        assert!(help.contains(word), "{word}");
    }
    // The image starts by itself in the same way.
    let command = read("Containerfile").lines().find_map(|line| line.strip_prefix("CMD ").map(str::to_owned)).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&command).unwrap(), container["args"]);
    let port = &monitor[0]["spec"]["podMetricsEndpoints"][0]["port"];
    assert_eq!(&container["ports"][0]["name"], port);
    assert_eq!(set[0]["spec"]["selector"], monitor[0]["spec"]["selector"]);
}

#[test]
fn every_overlay_is_rendered_and_changes_what_it_says() {
    let test = "every_overlay_is_rendered_and_changes_what_it_says";
    if !needs::has(test, &["kubectl"]) {
        return;
    }
    // The overlay with the token takes files that the user makes.
    let folder = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-r").arg(packaging().join("kubernetes")).arg(folder.path()).status().unwrap();
    assert!(copied.success());
    let place = folder.path().join("kubernetes");
    for file in ["tls.crt", "tls.key", "token"] {
        std::fs::write(place.join("overlays/token").join(file), "s3cret\n").unwrap();
    }
    let render = |overlay: &str| {
        let output = Command::new("kubectl").arg("kustomize").arg(place.join(overlay)).output().unwrap();
        assert!(output.status.success(), "{overlay}: {}", String::from_utf8_lossy(&output.stderr));
        let file = folder.path().join("rendered.yaml");
        std::fs::write(&file, output.stdout).unwrap();
        documents(&file)
    };
    let mut overlays: Vec<String> = std::fs::read_dir(place.join("overlays"))
        .unwrap()
        .map(|entry| format!("overlays/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    overlays.sort();
    overlays.push("base".into());
    for overlay in &overlays {
        let Some(all) = render(overlay) else { return not_run(test, "python3-yaml is missing") };
        let of_kind = |kind: &str| all.iter().find(|one| one["kind"] == kind);
        let pod = &of_kind("DaemonSet").unwrap()["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let volume =
            |name: &str| pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == name).unwrap();
        let runtime = ["/run/containerd/io.containerd.runtime.v2.task", "/run/containers/storage/overlay-containers"];
        let devices = (overlay == "overlays/deep").then_some("/dev/tenstorrent");
        let black_box = (overlay == "overlays/black-box").then_some(BLACK_BOX);
        check_mounts(pod, &[&runtime[..], devices.as_slice(), black_box.as_slice()].concat());
        // What a privileged pod could do is everything: only those that say so are.
        let is_privileged = container["securityContext"]["privileged"] == true;
        assert_eq!(is_privileged, ["overlays/deep", "overlays/kernel-log"].contains(&overlay.as_str()), "{overlay}");
        match overlay.as_str() {
            "base" => assert_eq!(all.len(), 1),
            "overlays/podmonitor" => assert!(of_kind("PodMonitor").is_some()),
            "overlays/token" => {
                let names: Vec<&str> = all
                    .iter()
                    .filter(|one| one["kind"] == "Secret")
                    .filter_map(|one| one["metadata"]["name"].as_str())
                    .collect();
                assert!(names.contains(&volume("token")["secret"]["secretName"].as_str().unwrap()), "{names:?}");
                assert!(names.contains(&volume("tls")["secret"]["secretName"].as_str().unwrap()), "{names:?}");
            }
            "overlays/receivers" => {
                let name = &of_kind("ConfigMap").unwrap()["metadata"]["name"];
                assert_eq!(&volume("config")["configMap"]["name"], name);
                assert!(
                    container["args"].as_array().unwrap().contains(&"--config=/etc/ttmon/config/config.toml".into())
                );
                let file = place.join("overlays/receivers/config.toml");
                let checked = crate::support::ttmon(&["alerts", "check", "--config", file.to_str().unwrap()]);
                assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
            }
            "overlays/fleet" => {
                let name = &of_kind("ConfigMap").unwrap()["metadata"]["name"];
                assert_eq!(&volume("config")["configMap"]["name"], name);
                let file = place.join("overlays/fleet/config.toml");
                let checked = crate::support::ttmon(&["config", "check", "--config", file.to_str().unwrap()]);
                assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
            }
            "overlays/kernel-log" => {
                assert!(container["args"].as_array().unwrap().contains(&"--kernel-log".into()));
                assert_eq!(container["securityContext"]["privileged"], true);
            }
            "overlays/black-box" => {
                assert_eq!(volume("black-box")["hostPath"]["path"], BLACK_BOX);
                let word = format!("--black-box={BLACK_BOX}");
                assert!(container["args"].as_array().unwrap().contains(&word.into()));
                assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
            }
            "overlays/deep" => {
                assert_eq!(volume("devices")["hostPath"]["path"], "/dev/tenstorrent");
                assert_eq!(container["securityContext"]["privileged"], true);
                let name = &of_kind("ConfigMap").unwrap()["metadata"]["name"];
                assert_eq!(&volume("config")["configMap"]["name"], name);
            }
            "overlays/containerd" => assert_eq!(volume("runtime")["hostPath"]["path"], runtime[0]),
            "overlays/crio" => assert_eq!(volume("runtime")["hostPath"]["path"], runtime[1]),
            "overlays/nonroot" => {
                let security = &container["securityContext"];
                assert_eq!((&security["runAsNonRoot"], &security["runAsUser"]), (&true.into(), &65532.into()));
                assert_eq!(security["capabilities"]["add"], serde_json::Value::Null);
            }
            other => panic!("what is {other} for?"),
        }
    }
}

#[test]
fn the_unit_is_kept_from_what_it_does_not_need() {
    if !needs::has("the_unit_is_kept_from_what_it_does_not_need", &["systemd-analyze"]) {
        return;
    }
    // As docs/systemd.md says it, times ten.
    let folder = tempfile::tempdir().unwrap();
    let measured = [
        (&[][..], "24"),
        (&["kernel-log"], "27"),
        (&["deep"], "26"),
        (&["fleet"], "25"),
        (&["kernel-log", "deep"], "29"),
        (&["kernel-log", "deep", "fleet"], "30"),
    ];
    for (drop_ins, most) in measured {
        let added: String = drop_ins.iter().map(|name| read(&format!("ttmon.service.d/{name}.conf"))).collect();
        let unit = folder.path().join("ttmon.service");
        std::fs::write(&unit, read("ttmon.service").replace("[Install]", &format!("{added}\n[Install]"))).unwrap();
        let mut command = Command::new("systemd-analyze");
        let command = command.args(["security", "--offline=true", "--no-pager", "--threshold", most]);
        let output = command.arg(&unit).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("Overall exposure level"), "{drop_ins:?}: {said}");
    }
}
