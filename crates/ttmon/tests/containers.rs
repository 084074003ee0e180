//! Container, pod, Slurm job and unit of a process, from real cgroups named as the engines name theirs.

use crate::support::{Machine, is_root, not_run, ttmon};
use sim::tree::Chip;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const ID: &str = "3f2a9c1b7d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8";

/// A hierarchy in which cgroups can be made: version 2, or the version 1 of pids.
fn hierarchy() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let usable = kind == "cgroup2" || (kind == "cgroup" && options.split(',').any(|option| option == "pids"));
        usable.then(|| PathBuf::from(path))
    });
    mounts.into_iter().find(|path| {
        let probe = path.join(format!("ttmon-{}", std::process::id()));
        std::fs::create_dir(&probe).and_then(|()| std::fs::remove_dir(&probe)).is_ok()
    })
}

/// A process in a cgroup of its own; both are gone when it is dropped.
struct Contained {
    child: Child,
    folders: Vec<PathBuf>,
}

impl Contained {
    fn start(hierarchy: &Path, cgroup: &str) -> Contained {
        let mut folder = hierarchy.to_owned();
        let mut folders = Vec::new();
        for part in cgroup.split('/') {
            folder.push(part);
            if !folder.exists() {
                std::fs::create_dir(&folder).unwrap();
                folders.push(folder.clone());
            }
        }
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        std::fs::write(folder.join("cgroup.procs"), child.id().to_string()).unwrap();
        Contained { child, folders }
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for folder in self.folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[test]
fn a_process_is_shown_with_its_container() {
    let test = "a_process_is_shown_with_its_container";
    if !is_root() {
        return not_run(test, "making cgroups needs root");
    }
    let Some(hierarchy) = hierarchy() else { return not_run(test, "no cgroup can be made here") };
    let machine = Machine::with(&[Chip::p150a(0)]);
    // A parent of our own keeps the test apart from real containers.
    let top = format!("ttmon-test-{}", std::process::id());
    let pod = "kubepods-burstable-pod0b6f4a7e_1c2d_3e4f_5a6b_7c8d9e0f1a2b.slice";
    for (cgroup, expected) in [
        (format!("{top}/docker/{ID}"), "docker:3f2a9c1b7d4e"),
        (format!("{top}/libpod-{ID}.scope"), "podman:3f2a9c1b7d4e"),
        (format!("{top}/{pod}/cri-containerd-{ID}.scope"), "k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e"),
    ] {
        let contained = Contained::start(&hierarchy, &cgroup);
        machine.set_pids(0, &[contained.child.id()]);
        let process = &machine.json(&[])["processes"][0];
        assert_eq!((&process["pid"], &process["container"]), (&contained.child.id().into(), &expected.into()));
    }
}

#[test]
fn a_process_is_shown_with_its_pod_its_job_and_its_unit() {
    let test = "a_process_is_shown_with_its_pod_its_job_and_its_unit";
    if !is_root() {
        return not_run(test, "making cgroups needs root");
    }
    let Some(hierarchy) = hierarchy() else { return not_run(test, "no cgroup can be made here") };
    let machine = Machine::with(&[Chip::p150a(0)]);
    let bundle = machine.0.path().join(format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}"));
    std::fs::create_dir_all(&bundle).unwrap();
    let annotations = serde_json::json!({
        "io.kubernetes.cri.container-name": "vllm", "io.kubernetes.cri.sandbox-name": "llama-0",
        "io.kubernetes.cri.sandbox-namespace": "inference",
    });
    std::fs::write(bundle.join("config.json"), serde_json::json!({ "annotations": annotations }).to_string()).unwrap();
    let top = format!("ttmon-test-owner-{}", std::process::id());
    let pod = "kubepods-pod0b6f4a7e_1c2d_3e4f_5a6b_7c8d9e0f1a2b.slice";
    for (cgroup, expected) in [
        (format!("{top}/{pod}/cri-containerd-{ID}.scope"), ["llama-0", "inference", "vllm", "", "", ""]),
        (format!("{top}/slurmstepd.scope/job_48213/step_batch/user/task_0"), ["", "", "", "48213", "batch", ""]),
        (format!("{top}/tt-inference.service"), ["", "", "", "", "", "tt-inference.service"]),
    ] {
        let contained = Contained::start(&hierarchy, &cgroup);
        machine.set_pids(0, &[contained.child.id()]);
        let process = &machine.json(&[])["processes"][0];
        let fields = ["pod", "namespace", "container_name", "slurm_job", "slurm_step", "unit"];
        assert_eq!(fields.map(|field| process[field].as_str().unwrap_or_default()), expected, "{cgroup}");
    }
}

#[test]
fn a_simulated_machine_has_a_pod_a_job_and_a_session() {
    let run = ttmon(&["smi", "--sim=p150x8", "--json"]);
    let snapshot: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let processes = snapshot["processes"].as_array().unwrap();
    let has = |field: &str, value: &str| processes.iter().any(|process| process[field] == value);
    for (field, value) in [
        ("pod", "nanogpt-x7k2p"),
        ("namespace", "research"),
        ("container_name", "trainer"),
        ("slurm_job", "48213"),
        ("unit", "session-3.scope"),
    ] {
        assert!(has(field, value), "{field}: {processes:#?}");
    }
    let metrics = ttmon(&["metrics", "--sim=p150x8"]).out;
    assert!(metrics.contains(r#"namespace="research",pod="nanogpt-x7k2p",container_name="trainer""#), "{metrics}");
    assert!(metrics.contains(r#"slurm_job="48213""#), "{metrics}");
}
