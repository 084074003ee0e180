//! The container that a process runs in, from the paths in `/proc/<pid>/cgroup`.
//!
//! Both cgroup versions, cgroupfs and systemd drivers: docker, podman, containerd, CRI-O, Kubernetes pods, LXC, nspawn.

/// Decodes a cgroup file: `docker:3f2a9c1b7d4e`, `k8s:<pod id>/3f2a9c1b7d4e`, `lxc:name`; `None` on the host.
pub fn container_of(cgroup: &str) -> Option<String> {
    cgroup.lines().find_map(|line| line.splitn(3, ':').nth(2).and_then(of_path))
}

fn of_path(path: &str) -> Option<String> {
    let mut pod = None;
    let mut parent = "";
    let mut found = None;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        pod = pod_id(part).or(pod);
        if let Some(container) = of_part(parent, part) {
            found = Some(container);
        }
        parent = part;
    }
    match (pod, found) {
        (Some(pod), Some((_, id))) => Some(format!("k8s:{pod}/{id}")),
        (Some(pod), None) => Some(format!("k8s:{pod}")),
        (None, Some((engine, id))) => Some(format!("{engine}:{id}")),
        (None, None) => None,
    }
}

/// `pod<uid>` or `kubepods-burstable-pod<uid>.slice`, where systemd spells dashes as underscores.
fn pod_id(part: &str) -> Option<String> {
    let part = part.strip_suffix(".slice").unwrap_or(part);
    let id = match part.rsplit_once("-pod") {
        Some((before, id)) if before.starts_with("kubepods") => id,
        _ => part.strip_prefix("pod")?,
    };
    let id = id.replace('_', "-");
    (id.len() >= 32 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')).then_some(id)
}

fn of_part<'a>(parent: &'a str, part: &'a str) -> Option<(&'a str, &'a str)> {
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
            return if engine == "lxc" { plain(id) } else { short(id) }.map(|id| (engine, id));
        }
    }
    match parent {
        "lxc" => plain(part).map(|name| ("lxc", name)),
        "machine.slice" => plain(name.strip_prefix("machine-")?).map(|name| ("nspawn", name)),
        "docker" => short(part).map(|id| ("docker", id)),
        // ctr and other users of containerd choose the parent; an id of 64 hex digits is theirs alone.
        _ => short(part).map(|id| ("containerd", id)),
    }
}

/// The first twelve digits of a 64-digit id, which is how all engines show it.
fn short(id: &str) -> Option<&str> {
    (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| &id[..12])
}

fn plain(name: &str) -> Option<&str> {
    (!name.is_empty() && name.len() <= 64 && name.bytes().all(|b| (b'!'..=b'~').contains(&b))).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(container_of(&path.replace("ID", ID)).as_deref(), Some(expected), "{path}");
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
            assert_eq!(container_of(path), None, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_container_or_none(text in "\\PC*") {
            let _ = container_of(&text);
        }
    }
}
