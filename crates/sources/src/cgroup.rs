//! Who a process works for, from the paths in `/proc/<pid>/cgroup`: its container, pod, Slurm job and systemd unit.
//!
//! Both cgroup versions, cgroupfs and systemd drivers: docker, podman, containerd, CRI-O, Kubernetes pods, LXC, nspawn; slurmd with
//! cgroup/v1 and cgroup/v2. Names of pods are not in a path: `container_names` has them.

use model::ProcessOwner;

/// What the cgroup of a process says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CgroupOwner {
    /// `docker:3f2a9c1b7d4e`, `k8s:<pod id>/3f2a9c1b7d4e`, `lxc:name`; `None` on the host.
    pub container: Option<String>,
    /// Pod id, Slurm job and unit.
    pub owner: ProcessOwner,
    /// The container whose names may be looked up. A user may choose the cgroups of their own session, so no names of others are looked
    /// up for those.
    pub id: Option<ContainerId>,
}

/// A container, as its engine calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerId {
    /// `docker`, `podman`, `containerd` or `crio`. Within a pod it may be another one of them.
    pub engine: &'static str,
    /// 64 hexadecimal digits.
    pub id: String,
}

/// Decodes a cgroup file: lines of `number:controllers:path`.
pub fn parse(text: &str) -> CgroupOwner {
    let all: Vec<CgroupOwner> = text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).map(of_path).collect();
    // With cgroup v1, some hierarchies say less than others.
    let first = |has: fn(&CgroupOwner) -> bool| all.iter().find(|found| has(found)).cloned();
    let mut found = first(|found| found.container.is_some())
        .or_else(|| first(|found| found.owner.unit.is_some()))
        .unwrap_or_default();
    if let Some(slurm) = first(|found| found.owner.slurm_job.is_some()) {
        (found.owner.slurm_job, found.owner.slurm_step) = (slurm.owner.slurm_job, slurm.owner.slurm_step);
        found.owner.unit = slurm.owner.unit;
    }
    found
}

fn of_path(path: &str) -> CgroupOwner {
    let mut parent = "";
    let (mut pod, mut container, mut unit) = (None, None, None);
    let (mut job, mut step) = (None, None);
    let (mut is_of_user, mut is_of_slurm) = (false, false);
    // Where containerd and kubelet use different drivers, a part has colons: `kubepods-pod<uid>.slice:cri-containerd:<id>`.
    for part in path.split(['/', ':']).filter(|part| !part.is_empty()) {
        if let Some(found) = of_part(parent, part) {
            // What is around a container does not say what runs in it, but for a service that is one container.
            unit = unit.filter(|unit| found.0 == "podman" && *unit == parent && !is_of_user);
            container = Some(found);
        } else if let Some(uid) = pod_id(part) {
            (pod, unit) = (Some(uid), None);
        } else if is_slurm(part) && !is_of_user {
            (is_of_slurm, unit) = (true, None);
        } else if is_unit(part) {
            is_of_user |= part.starts_with("user@");
            unit = Some(part);
        } else if is_of_slurm {
            job = job.or_else(|| part.strip_prefix("job_").filter(|id| is_word(id)));
            step = step.or_else(|| part.strip_prefix("step_").filter(|id| job.is_some() && is_word(id)));
        }
        parent = part;
    }
    let name = container.map(|(engine, id)| (engine, short(id).unwrap_or(id)));
    CgroupOwner {
        container: match (&pod, name) {
            (Some(pod), Some((_, id))) => Some(format!("k8s:{pod}/{id}")),
            (Some(pod), None) => Some(format!("k8s:{pod}")),
            (None, Some((engine, id))) => Some(format!("{engine}:{id}")),
            (None, None) => None,
        },
        id: container
            .filter(|(_, id)| !is_of_user && short(id).is_some())
            .map(|(engine, id)| ContainerId { engine, id: id.to_owned() }),
        owner: ProcessOwner {
            pod_uid: pod.filter(|_| !is_of_user),
            slurm_job: job.map(str::to_owned),
            slurm_step: step.map(str::to_owned),
            unit: unit.map(str::to_owned),
            ..ProcessOwner::default()
        },
    }
}

/// `pod<uid>` or `kubepods-burstable-pod<uid>.slice`, where systemd spells dashes as underscores. In kind, `kubelet-` comes first.
fn pod_id(part: &str) -> Option<String> {
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let id = match part.rsplit_once("-pod") {
        Some((before, id)) if before.contains("kubepods") => id,
        _ => part.strip_prefix("pod")?,
    };
    let id = id.replace('_', "-");
    ((32..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')).then_some(id)
}

/// The folder of all jobs: `slurmstepd.scope` or `<node>_slurmstepd.scope`, before cgroup v2 `slurm` or `slurm_<node>`.
fn is_slurm(part: &str) -> bool {
    let scope = part.strip_suffix("slurmstepd.scope");
    scope.is_some_and(|node| node.is_empty() || node.ends_with('_')) || part == "slurm" || part.starts_with("slurm_")
}

/// A service, or a scope that is not only the manager's own.
fn is_unit(part: &str) -> bool {
    (part.ends_with(".service") || part.ends_with(".scope"))
        && part != "init.scope"
        && part.len() <= 255
        && part.bytes().all(|b| b.is_ascii_graphic())
}

/// The id of a job or of a step: `48213`, `batch`, `0+1`.
fn is_word(id: &str) -> bool {
    (1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
}

/// Engine, and id or name.
fn of_part<'a>(parent: &str, part: &'a str) -> Option<(&'static str, &'a str)> {
    const ENGINES: [(&str, &str); 7] = [
        ("docker-", "docker"),
        ("libpod-payload-", "podman"),
        ("libpod-", "podman"),
        ("cri-containerd-", "containerd"),
        ("crio-", "crio"),
        ("nerdctl-", "containerd"),
        ("lxc.payload.", "lxc"),
    ];
    let name = part.strip_suffix(".scope").unwrap_or(part);
    for (prefix, engine) in ENGINES {
        if let Some(id) = name.strip_prefix(prefix) {
            return if engine == "lxc" { plain(id) } else { full(id) }.map(|id| (engine, id));
        }
    }
    match parent {
        "lxc" => plain(part).map(|name| ("lxc", name)),
        "machine.slice" => plain(name.strip_prefix("machine-")?).map(|name| ("nspawn", name)),
        "docker" => full(part).map(|id| ("docker", id)),
        // ctr and other users of containerd choose the parent; an id of 64 hex digits is theirs alone.
        _ => full(part).map(|id| ("containerd", id)),
    }
}

fn full(id: &str) -> Option<&str> {
    (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
}

/// The first twelve digits of a 64-digit id, which is how all engines show it.
fn short(id: &str) -> Option<&str> {
    full(id).map(|id| &id[..12])
}

fn plain(name: &str) -> Option<&str> {
    (!name.is_empty() && name.len() <= 64 && name.bytes().all(|b| (b'!'..=b'~').contains(&b))).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const ID: &str = "3f2a9c1b7d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8";

    #[test]
    fn every_engine_is_recognised() {
        for (path, expected) in [
            ("0::/system.slice/docker-ID.scope", "docker:3f2a9c1b7d4e"),
            ("12:cpuset:/docker/ID\n0::/", "docker:3f2a9c1b7d4e"),
            ("0::/machine.slice/libpod-ID.scope/container", "podman:3f2a9c1b7d4e"),
            ("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope", "podman:3f2a9c1b7d4e"),
            ("0::/system.slice/nerdctl-ID.scope", "containerd:3f2a9c1b7d4e"),
            ("0::/default/ID", "containerd:3f2a9c1b7d4e"),
            ("0::/lxc.payload.build-box/init.scope", "lxc:build-box"),
            ("5:cpu:/lxc/build-box", "lxc:build-box"),
            ("0::/machine.slice/machine-deb.scope", "nspawn:deb"),
            (
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0b6f4a7e_1c2d_3e4f_5a6b_7c8d9e0f1a2b.slice/cri-containerd-ID.scope",
                "k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e",
            ),
            (
                "4:memory:/kubepods/besteffort/pod0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/ID",
                "k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e",
            ),
            (
                "0::/kubepods.slice/kubepods-pod0b6f4a7e_1c2d_3e4f_5a6b_7c8d9e0f1a2b.slice/crio-ID.scope",
                "k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e",
            ),
        ] {
            assert_eq!(parse(&path.replace("ID", ID)).container.as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn the_host_is_no_container() {
        for path in [
            "0::/",
            "0::/user.slice/user-1000.slice/session-3.scope",
            "0::/system.slice/docker.service",
            "0::/system.slice/docker-abc.scope",
            "0::/podium/podcast",
            "",
            "nonsense",
        ] {
            assert_eq!(parse(path).container, None, "{path}");
        }
    }

    /// One line for each path: who that is.
    fn check(paths: &str, expected: Expect) {
        let mut all = String::new();
        for path in paths.lines().map(str::trim).filter(|path| !path.is_empty()) {
            let path = path.replace("UID-", "0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b");
            let path = path.replace("UID_", "0b6f4a7e_1c2d_3e4f_5a6b_7c8d9e0f1a2b");
            let path = path.replace("ID", ID).replace(" + ", "\n");
            let CgroupOwner { container, owner, id } = parse(&path);
            let ProcessOwner { pod_uid, slurm_job, slurm_step, unit, .. } = owner;
            let id = id.map(|id| id.engine.to_owned());
            let parts = [
                ("", &container),
                ("names of ", &id),
                ("pod ", &pod_uid.map(|uid| uid[..8].to_owned())),
                ("job ", &slurm_job),
                ("step ", &slurm_step),
                ("unit ", &unit),
            ];
            let parts = parts.iter().filter_map(|(word, part)| Some(format!("{word}{}", part.as_ref()?)));
            all += &(parts.collect::<Vec<_>>().join(", ") + "\n");
        }
        expected.assert_eq(&all);
    }

    #[test]
    fn a_pod_is_found_with_every_driver_and_runtime() {
        check(
            "
            0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID_.slice/cri-containerd-ID.scope
            0::/kubepods/besteffort/podUID-/ID/nested/deeper
            0::/kubepods.slice/kubepods-podUID_.slice/crio-ID.scope
            0::/kubepods.slice/kubepods-podUID_.slice/docker-ID.scope
            0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podUID_.slice/cri-containerd-ID.scope
            1:name=systemd:/system.slice/containerd.service/kubepods-burstable-podUID_.slice:cri-containerd:ID
            0::/../../kubepods-besteffort-podUID_.slice/cri-containerd-ID.scope
            0::/../cri-containerd-ID.scope
            12:cpu:/docker/ID + 0::/system.slice/containerd.service
            ",
            expect![[r#"
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e, names of containerd, pod 0b6f4a7e
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e, names of containerd, pod 0b6f4a7e
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e, names of crio, pod 0b6f4a7e
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e, names of docker, pod 0b6f4a7e
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e, names of containerd, pod 0b6f4a7e
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e, names of containerd, pod 0b6f4a7e
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e, names of containerd, pod 0b6f4a7e
                containerd:3f2a9c1b7d4e, names of containerd
                docker:3f2a9c1b7d4e, names of docker
            "#]],
        );
    }

    #[test]
    fn a_slurm_job_has_its_step() {
        check(
            "
            0::/system.slice/slurmstepd.scope/job_48213/step_0/user/task_3
            0::/system.slice/node7_slurmstepd.scope/job_48213/step_batch/user/task_0
            0::/system.slice/slurmstepd.scope/job_48213/step_extern/slurm
            9:memory:/slurm/uid_1000/job_48213/step_batch/task_0 + 1:name=systemd:/system.slice/slurmd.service
            9:memory:/slurm_node7/uid_1000/job_48213/step_interactive
            0::/system.slice/slurmstepd.scope/job_48213/step_0/user/task_3/ID
            0::/system.slice/slurmstepd.scope/system
            0::/home/job_1/step_2
            ",
            expect![[r#"
                job 48213, step 0
                job 48213, step batch
                job 48213, step extern
                job 48213, step batch
                job 48213, step interactive
                containerd:3f2a9c1b7d4e, names of containerd, job 48213, step 0


            "#]],
        );
    }

    #[test]
    fn the_innermost_unit_counts() {
        check(
            r"
            0::/system.slice/tt-inference@llama.service
            0::/system.slice/tt-inference.service/workers/7
            0::/user.slice/user-1000.slice/session-3.scope
            0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal-7\x2d1.scope
            0::/user.slice/user-1000.slice/user@1000.service/init.scope
            0::/init.scope
            0::/system.slice/web.service/libpod-payload-ID
            0::/lxc.payload.build-box/system.slice/ssh.service
            ",
            expect![[r#"
                unit tt-inference@llama.service
                unit tt-inference.service
                unit session-3.scope
                unit app-org.gnome.Terminal-7\x2d1.scope
                unit user@1000.service

                podman:3f2a9c1b7d4e, names of podman, unit web.service
                lxc:build-box, unit ssh.service
            "#]],
        );
    }

    #[test]
    fn what_a_user_names_is_no_pod_job_or_container_of_others() {
        let session = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/mine.service";
        check(
            &format!(
                "{session}/kubepods-podUID_.slice/cri-containerd-ID.scope
                {session}/slurmstepd.scope/job_1/step_0
                {session}/docker-ID.scope"
            ),
            expect![[r#"
                k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e
                unit slurmstepd.scope
                docker:3f2a9c1b7d4e
            "#]],
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_an_owner_or_none(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn any_path_gives_short_plain_texts(parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "kubepods.slice", "kubepods-pod0b6f4a7e_1c2d_3e4f_5a6b_7c8d9e0f1a2b.slice", "docker", ID, "slurm", "job_7",
                "step_0", "job_\u{1b}[2J", "a\u{202e}.service", "b.service", "user@7.service", "..", ":", "step_", "init.scope",
            ]), 0..12)) {
            let found = parse(&format!("0::/{}", parts.join("/")));
            let ProcessOwner { pod_uid, slurm_job, slurm_step, unit, .. } = found.owner;
            for text in [found.container, pod_uid, slurm_job, slurm_step, unit].into_iter().flatten() {
                proptest::prop_assert!(!text.is_empty() && text.len() <= 255 && text.bytes().all(|b| b.is_ascii_graphic()));
            }
            proptest::prop_assert!(found.id.is_none_or(|id| id.id == ID));
        }
    }
}
