//! Who a process works for: its pod, its Slurm job, its systemd unit.

use serde::{Deserialize, Serialize};

/// Who a process works for, from its cgroup and the files of the container runtime. Each field is a figure: see
/// [`crate::figure::process`].
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOwner {
    pub namespace: Option<String>,
    pub pod: Option<String>,
    pub pod_uid: Option<String>,
    pub container_name: Option<String>,
    pub slurm_job: Option<String>,
    pub slurm_step: Option<String>,
    pub unit: Option<String>,
}

/// The id of a container alone. Engine and pod come before it, and do not distinguish containers.
pub fn container_id(container: &str) -> &str {
    container.rsplit(['/', ':']).next().unwrap_or(container)
}
