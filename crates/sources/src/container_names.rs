//! The names of a container and of its pod, from the files of the container runtime.
//!
//! With the id of the container, below `/`:
//! - containerd: `run/containerd/io.containerd.runtime.v2.task/{k8s.io,default}/<id>/config.json`, of k3s below `run/k3s/containerd`,
//! - CRI-O: `{run,var/lib}/containers/storage/overlay-containers/<id>/userdata/config.json`,
//! - Docker: `var/lib/docker/containers/<id>/config.v2.json`,
//! - Podman: `var/lib/containers/storage/overlay-containers/{containers,volatile-containers}.json`,
//! - with the id of the pod alone, the names of the folders `var/log/pods/<namespace>_<pod>_<uid>/<container>`.
//!
//! They are read once for each container. Where they may not be read, or are not mounted, there are no names.

use crate::cgroup::{self, CgroupOwner, ContainerId};
use crate::dir::{Dir, Root};
use model::ProcessOwner;
use model::text::clean;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The names of the containers that were seen.
pub(crate) struct ContainerNames {
    root: Root,
    known: Mutex<HashMap<String, ProcessOwner>>,
}

/// So many containers are remembered. A node runs 110 pods, unless told otherwise.
const MOST_KNOWN: usize = 1024;
/// A longer file is not read. Theirs have some 20 KiB.
const LONGEST_FILE: usize = 1 << 20;
/// So many folders of pods are looked at.
const MOST_PODS: usize = 4096;
/// Kubernetes allows 253 letters.
const LONGEST_NAME: usize = 253;

/// The folder of a container, and the file in it that has its names.
const FILES: [(&str, &str); 6] = [
    ("run/containerd/io.containerd.runtime.v2.task/k8s.io/ID", "config.json"),
    ("run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/ID", "config.json"),
    ("run/containers/storage/overlay-containers/ID/userdata", "config.json"),
    ("var/lib/containers/storage/overlay-containers/ID/userdata", "config.json"),
    ("var/lib/docker/containers/ID", "config.v2.json"),
    ("run/containerd/io.containerd.runtime.v2.task/default/ID", "config.json"),
];
const PODMAN: &str = "var/lib/containers/storage/overlay-containers";

impl ContainerNames {
    pub fn new(root: &Root) -> ContainerNames {
        ContainerNames { root: root.clone(), known: Mutex::default() }
    }

    /// The container of a process and who it works for, given its folder in the real `/proc`.
    pub fn owner_of(&self, pid: u32, process: &Dir, bytes: &mut Vec<u8>) -> (Option<String>, ProcessOwner) {
        let mut elsewhere = || self.root.open(&self.root.proc.join(pid.to_string()))?.read_all("cgroup", bytes);
        let is_made_up = !self.root.is_machine() && elsewhere().is_ok();
        if !is_made_up && process.read_all("cgroup", bytes).is_err() {
            return (None, ProcessOwner::default());
        }
        let CgroupOwner { container, mut owner, id } = cgroup::parse(&String::from_utf8_lossy(bytes));
        let key = id.as_ref().map(|id| &id.id).or(owner.pod_uid.as_ref());
        if let Some(key) = key.cloned() {
            let names = self.names(key, id.as_ref(), owner.pod_uid.as_deref());
            owner.pod_uid = owner.pod_uid.or(names.pod_uid);
            (owner.pod, owner.namespace, owner.container_name) = (names.pod, names.namespace, names.container_name);
        }
        (container, owner)
    }

    fn names(&self, key: String, id: Option<&ContainerId>, pod_uid: Option<&str>) -> ProcessOwner {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = lock().get(&key) {
            return names.clone();
        }
        // No other thread waits for these reads.
        let names = self.read(id, pod_uid);
        let mut known = lock();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(key, names.clone());
        names
    }

    fn read(&self, id: Option<&ContainerId>, pod_uid: Option<&str>) -> ProcessOwner {
        let mut names = id.and_then(|id| self.of_container(id)).unwrap_or_default();
        // Its files are those of the pod that its cgroup is in, or they are not its own.
        if pod_uid.is_some() && names.pod_uid.as_deref().is_some_and(|uid| Some(uid) != pod_uid) {
            names = ProcessOwner::default();
        }
        match pod_uid.filter(|_| names.pod.is_none()) {
            Some(uid) => self.of_logs(uid).unwrap_or(names),
            None => names,
        }
    }

    fn of_container(&self, ContainerId { engine, id }: &ContainerId) -> Option<ProcessOwner> {
        let mut buffer = vec![0; LONGEST_FILE];
        let mut read = |folder: &str, file: &str, names: &dyn Fn(&[u8]) -> Option<ProcessOwner>| {
            let folder = self.root.open(&self.root.top.join(folder)).ok()?;
            let bytes = folder.read_start(file, &mut buffer).ok()?;
            // One that fills the buffer is longer.
            names(bytes).filter(|_| bytes.len() < LONGEST_FILE)
        };
        let found = FILES.iter().find_map(|(folder, file)| read(&folder.replace("ID", id), file, &names_in));
        let podman = |file| {
            let names = |bytes: &[u8]| {
                Some(ProcessOwner { container_name: Some(podman_name(bytes, id)?), ..ProcessOwner::default() })
            };
            read(PODMAN, file, &names)
        };
        found.or_else(|| {
            let files = ["containers.json", "volatile-containers.json"];
            files.into_iter().filter(|_| *engine == "podman").find_map(podman)
        })
    }

    /// The names of the folders that kubelet makes for the logs of a pod.
    fn of_logs(&self, uid: &str) -> Option<ProcessOwner> {
        let logs = self.root.open(&self.root.top.join("var/log/pods")).ok()?;
        let (mut folder, mut seen) = (None, 0);
        let _ = logs.list(|name| {
            seen += 1;
            if seen <= MOST_PODS {
                if let Some(name) = name.to_str() {
                    if name.rsplit_once('_').is_some_and(|(_, of)| of == uid) {
                        folder = Some(name.to_owned());
                    }
                }
            }
        });
        let folder = folder?;
        let (namespace, pod) = folder.rsplit_once('_')?.0.split_once('_')?;
        let (mut container, mut containers) = (None, 0);
        if let Ok(folder) = logs.open_dir(&folder) {
            let _ = folder.list(|name| {
                containers += 1;
                container = name.to_str().and_then(tidy);
            });
        }
        Some(ProcessOwner {
            namespace: tidy(namespace),
            pod: tidy(pod),
            pod_uid: Some(uid.to_owned()),
            // Of several, any may be the one.
            container_name: container.filter(|_| containers == 1),
            ..ProcessOwner::default()
        })
    }
}

/// A runtime's file: annotations of an OCI bundle, or name and labels of Docker.
#[derive(Deserialize)]
struct RuntimeFile {
    #[serde(default)]
    annotations: Option<HashMap<String, String>>,
    #[serde(default, rename = "Name")]
    name: Option<String>,
    #[serde(default, rename = "Config")]
    config: Option<DockerConfig>,
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default, rename = "Labels")]
    labels: Option<HashMap<String, String>>,
}

/// Decodes a `config.json` of an OCI bundle or a `config.v2.json` of Docker: the names in it. `None` where it has none.
pub fn names_in(bytes: &[u8]) -> Option<ProcessOwner> {
    let RuntimeFile { annotations, name, config } = serde_json::from_slice(bytes).ok()?;
    let labels = annotations.or_else(|| config?.labels).unwrap_or_default();
    let first = |keys: [&str; 2]| keys.iter().find_map(|key| labels.get(*key)).and_then(|name| tidy(name));
    let of_pod = first(["io.kubernetes.cri.container-name", "io.kubernetes.container.name"]);
    let of_engine = || labels.get("nerdctl/name").or(name.as_ref()).and_then(|name| tidy(name.trim_start_matches('/')));
    let pod = first(["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"]);
    let container_name = match (of_pod, &pod) {
        // The container that only holds the pod's namespaces.
        (Some(name), _) => Some(name).filter(|name| name != "POD"),
        (None, Some(_)) => None,
        (None, None) => of_engine(),
    };
    let names = ProcessOwner {
        namespace: first(["io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"]),
        pod,
        pod_uid: first(["io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid"]),
        container_name,
        ..ProcessOwner::default()
    };
    Some(names).filter(|names| *names != ProcessOwner::default())
}

#[derive(Deserialize)]
struct StoredContainer {
    id: String,
    #[serde(default)]
    names: Option<Vec<String>>,
}

/// Decodes Podman's list of containers: the name of the one with this id.
pub fn podman_name(bytes: &[u8], id: &str) -> Option<String> {
    let all: Vec<StoredContainer> = serde_json::from_slice(bytes).ok()?;
    let found = all.into_iter().find(|container| container.id == id)?;
    tidy(found.names?.first()?)
}

/// A name without letters that could harm a terminal, and not longer than names are.
fn tidy(name: &str) -> Option<String> {
    let name: String = clean(name).chars().take(LONGEST_NAME).collect();
    Some(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use std::path::Path;

    const ID: &str = "3f2a9c1b7d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8";
    const UID: &str = "0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b";
    const PID: u32 = 4711;

    /// Lays files below a folder, and says who the process in it works for.
    fn owner(cgroup: &str, files: &[(&str, &str)]) -> (ContainerNames, tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let cgroup = cgroup.replace("UID_", &UID.replace('-', "_"));
        lay(folder.path(), &format!("proc/{PID}/cgroup"), &cgroup);
        files.iter().for_each(|(path, text)| lay(folder.path(), path, text));
        let names = ContainerNames::new(&Root::under(folder.path()));
        let text = text_of(&names);
        (names, folder, text)
    }

    fn lay(root: &Path, path: &str, text: &str) {
        let fill = |text: &str| text.replace("UID", UID).replace("ID", ID);
        let path = root.join(fill(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, fill(text)).unwrap();
    }

    fn text_of(names: &ContainerNames) -> String {
        let real = Dir::open(Path::new("/proc/self"), None).unwrap();
        let (_, owner) = names.owner_of(PID, &real, &mut Vec::new());
        let parts = [owner.namespace, owner.pod, owner.container_name, owner.pod_uid, owner.slurm_job];
        parts.map(|part| part.unwrap_or("–".into())).join(" ")
    }

    fn check(cgroup: &str, files: &[(&str, &str)], expected: Expect) {
        expected.assert_eq(&owner(cgroup, files).2);
    }

    const CONTAINERD: &str = "0::/kubepods.slice/kubepods-podUID_.slice/cri-containerd-ID.scope";

    #[test]
    fn containerd_names_container_pod_and_namespace() {
        let config = r#"{"ociVersion": "1.1.0", "process": {"args": ["vllm"]}, "annotations": {
            "io.kubernetes.cri.container-name": "vllm", "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.sandbox-id": "ID", "io.kubernetes.cri.sandbox-name": "llama-0",
            "io.kubernetes.cri.sandbox-namespace": "inference", "io.kubernetes.cri.sandbox-uid": "UID"}}"#;
        let k3s = "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json";
        let folder = "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json";
        for (cgroup, file) in [(CONTAINERD, k3s), (CONTAINERD, folder), ("0::/../cri-containerd-ID.scope", folder)] {
            check(cgroup, &[(file, config)], expect!["inference llama-0 vllm 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"]);
        }
        let of_another = config.replace("UID", "11111111-2222-3333-4444-555555555555");
        check(CONTAINERD, &[(folder, &of_another)], expect!["– – – 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"]);
    }

    #[test]
    fn crio_names_container_pod_and_namespace() {
        let config = r#"{"annotations": {"io.kubernetes.container.name": "trainer", "io.kubernetes.pod.name": "nanogpt-x7k2p",
            "io.kubernetes.pod.namespace": "research", "io.kubernetes.pod.uid": "UID", "io.container.manager": "cri-o"}}"#;
        let cgroup = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID_.slice/crio-ID.scope";
        for root in ["run", "var/lib"] {
            let file = format!("{root}/containers/storage/overlay-containers/ID/userdata/config.json");
            check(
                cgroup,
                &[(&file, config)],
                expect!["research nanogpt-x7k2p trainer 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"],
            );
        }
        let pause = config.replace("trainer", "POD");
        let file = "run/containers/storage/overlay-containers/ID/userdata/config.json";
        check(cgroup, &[(file, &pause)], expect!["research nanogpt-x7k2p – 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"]);
    }

    #[test]
    fn docker_and_podman_name_a_container_without_a_pod() {
        let file = "var/lib/docker/containers/ID/config.v2.json";
        let plain = r#"{"ID": "x", "Name": "/vllm-server", "Config": {"Labels": {}}}"#;
        check("0::/system.slice/docker-ID.scope", &[(file, plain)], expect!["– – vllm-server – –"]);
        let of_pod = r#"{"Name": "/k8s_vllm_llama-0_inference_UID_0", "Config": {"Labels": {
            "io.kubernetes.container.name": "vllm", "io.kubernetes.pod.name": "llama-0",
            "io.kubernetes.pod.namespace": "inference", "io.kubernetes.pod.uid": "UID"}}}"#;
        check(
            "4:memory:/kubepods/besteffort/podUID/ID".replace("UID", UID).as_str(),
            &[(file, of_pod)],
            expect!["inference llama-0 vllm 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"],
        );
        let list = r#"[{"id": "other", "names": ["a"]}, {"id": "ID", "names": ["jupyter"], "image": "y"}]"#;
        let storage = "var/lib/containers/storage/overlay-containers";
        for file in ["containers.json", "volatile-containers.json"] {
            let file = format!("{storage}/{file}");
            check("0::/machine.slice/libpod-ID.scope/container", &[(&file, list)], expect!["– – jupyter – –"]);
        }
        let nerdctl = r#"{"annotations": {"nerdctl/name": "bench"}}"#;
        let file = "run/containerd/io.containerd.runtime.v2.task/default/ID/config.json";
        check("0::/system.slice/nerdctl-ID.scope", &[(file, nerdctl)], expect!["– – bench – –"]);
    }

    #[test]
    fn folders_of_logs_name_a_pod_where_its_runtime_does_not() {
        let one = ("var/log/pods/inference_llama-0_UID/vllm/0.log", "");
        check(CONTAINERD, &[one], expect!["inference llama-0 vllm 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"]);
        let two = ("var/log/pods/inference_llama-0_UID/proxy/0.log", "");
        check(CONTAINERD, &[one, two], expect!["inference llama-0 – 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"]);
        let other = ("var/log/pods/inference_llama-1_11111111-2222-3333-4444-555555555555/vllm/0.log", "");
        check(CONTAINERD, &[other], expect!["– – – 0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b –"]);
    }

    #[test]
    fn a_job_needs_no_files() {
        check("0::/system.slice/slurmstepd.scope/job_48213/step_0/user/task_0", &[], expect!["– – – – 48213"]);
    }

    #[test]
    fn hostile_files_give_harmless_names_or_none() {
        let file = "var/lib/docker/containers/ID/config.v2.json";
        let escape = r#"{"Name": "/a\u001b[2Jb", "Config": null}"#;
        check("0::/system.slice/docker-ID.scope", &[(file, escape)], expect!["– – a?[2Jb – –"]);
        let deep = format!(r#"{{"Name": "/x", "y": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        check("0::/system.slice/docker-ID.scope", &[(file, &deep)], expect!["– – x – –"]);
        let long = format!(r#"{{"Name": "/x", "y": "{}"}}"#, "z".repeat(LONGEST_FILE));
        check("0::/system.slice/docker-ID.scope", &[(file, &long)], expect!["– – – – –"]);
        let name = format!(r#"{{"Name": "/{}"}}"#, "n".repeat(1000));
        assert_eq!(names_in(name.as_bytes()).unwrap().container_name.unwrap().len(), LONGEST_NAME);
    }

    #[test]
    fn files_are_read_once_for_each_container() {
        let file = "var/lib/docker/containers/ID/config.v2.json";
        let (names, folder, before) = owner("0::/system.slice/docker-ID.scope", &[(file, r#"{"Name": "/first"}"#)]);
        lay(folder.path(), file, r#"{"Name": "/second"}"#);
        assert_eq!(text_of(&names), before);
        for n in 0..MOST_KNOWN {
            names.known.lock().unwrap().insert(n.to_string(), ProcessOwner::default());
        }
        names.known.lock().unwrap().remove(ID);
        assert_eq!(text_of(&names), "– – second – –");
        assert_eq!(names.known.lock().unwrap().len(), 1, "the memory is bounded");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_names_or_none(bytes: Vec<u8>) {
            let _ = (names_in(&bytes), podman_name(&bytes, ID));
        }

        #[test]
        fn any_name_is_short_and_harmless(name in "\\PC*") {
            let file = serde_json::json!({"annotations": {"io.kubernetes.pod.name": name}}).to_string();
            let pod = names_in(file.as_bytes()).and_then(|names| names.pod);
            proptest::prop_assert!(pod.is_none_or(|pod| pod.chars().count() <= LONGEST_NAME && clean(&pod) == pod));
        }
    }
}
