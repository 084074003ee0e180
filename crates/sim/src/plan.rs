//! Which processes work on which devices, and how much memory they use.

use crate::agent::SimOperation;
use crate::region::Amounts;
use crate::wave::TICKS_PER_SECOND;
use model::{Bytes, Capacity};
use std::ops::Range;

/// A process and its devices.
pub(crate) struct PlannedJob {
    /// What the process seems to be, as typed.
    pub command: &'static [&'static str],
    /// The libraries that it maps.
    pub libraries: &'static [&'static str],
    /// The cgroup that it is in, which says whose it is. `CONTAINER` is [`CONTAINER_ID`].
    pub cgroup: &'static str,
    pub devices: Range<usize>,
    pub work: Work,
    /// Whether it runs with ttmon's agent where that is wanted.
    pub agent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Weights, and a cache that grows with the conversations until they end.
    Serving,
    /// Weights and optimizer, and activations that come and go with each step.
    Training,
    /// Buffers of changing size.
    Measuring,
    /// A tool that opens a device and has no memory on it.
    Tool,
}

pub(crate) const LIBTT_METAL: &str = "usr/lib/python3/dist-packages/ttnn/build/lib/libtt_metal.so";
/// The container of a pod, and what containerd has in its file about it.
pub(crate) const CONTAINER_ID: &str = "3f2a9c1b7d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8";
pub(crate) const CONTAINER_CONFIG: &str = concat!(
    r#"{"annotations":{"io.kubernetes.cri.container-name":"trainer","io.kubernetes.cri.sandbox-name":"nanogpt-x7k2p","#,
    r#""io.kubernetes.cri.sandbox-namespace":"research"}}"#
);
pub(crate) const TTNNCPP: &str = "usr/lib/python3/dist-packages/ttnn/build/lib/_ttnncpp.so";

/// The jobs on a machine with so many devices: half of them serve, a few do other things, the rest are idle.
pub(crate) fn jobs(devices: usize) -> Vec<PlannedJob> {
    let half = (devices / 2).max(1);
    let serve = PlannedJob {
        command: &["python3", "serve_llama.py", "--model", "llama-3.1-8b"],
        libraries: &[LIBTT_METAL, TTNNCPP],
        cgroup: "/system.slice/slurmstepd.scope/job_48213/step_0/user/task_0",
        devices: 0..half,
        work: Work::Serving,
        agent: true,
    };
    let train = PlannedJob {
        command: &["python3", "train_nanogpt.py", "--batch-size", "64"],
        // Of a process in a container that has several chips, tt-metal's counts do not say which chip they are of.
        cgroup: "/kubepods.slice/kubepods-pod0b6f4a7e_1c2d_3e4f_5a6b_7c8d9e0f1a2b.slice/cri-containerd-CONTAINER.scope",
        devices: half..half + 1,
        work: Work::Training,
        ..serve
    };
    let measure = PlannedJob {
        command: &["matmul_sweep", "--iterations", "1000"],
        libraries: &[LIBTT_METAL],
        cgroup: "/user.slice/user-1000.slice/session-3.scope",
        devices: half + 1..half + 2,
        work: Work::Measuring,
        agent: false,
    };
    let jobs = [(1, serve), (3, train), (6, measure)];
    jobs.into_iter().filter(|(least, _)| devices >= *least).map(|(_, job)| job).collect()
}

/// A tool with which somebody resets a device.
pub(crate) fn reset_tool(device: usize) -> PlannedJob {
    PlannedJob {
        command: &["tt-smi", "-r"],
        libraries: &[],
        cgroup: "/user.slice/user-1001.slice/session-9.scope",
        devices: device..device + 1,
        work: Work::Tool,
        agent: false,
    }
}

/// One job on all of so many devices.
pub(crate) fn full(devices: usize) -> Vec<PlannedJob> {
    jobs(devices).into_iter().take(1).map(|job| PlannedJob { devices: 0..devices, ..job }).collect()
}

/// What a job runs, again and again. The times are those of a device that has nothing else to do.
pub(crate) fn operations(work: Work) -> Vec<SimOperation> {
    let all: &[(&str, u64)] = match work {
        Work::Serving => &[
            ("LayerNormDeviceOperation", 240),
            ("MatmulDeviceOperation", 2100),
            ("SDPAOperation", 1300),
            ("MatmulDeviceOperation", 1600),
            ("BinaryNgDeviceOperation", 180),
            ("AllGatherAsync", 520),
        ],
        Work::Training => &[
            ("MatmulDeviceOperation", 3400),
            ("SoftmaxDeviceOperation", 650),
            ("MorehLayerNormBackwardGammaBetaGradOperation", 900),
            ("MorehAdamOperation", 1500),
        ],
        Work::Measuring => &[("MatmulDeviceOperation", 5000)],
        Work::Tool => &[],
    };
    all.iter()
        .map(|(name, microseconds)| SimOperation { name: (*name).to_owned(), microseconds: *microseconds })
        .collect()
}

/// What a job has on a chip of this size, after so many ticks, at this load.
pub(crate) fn memory(work: Work, capacity: Capacity, ticks: u64, load: f64) -> Amounts {
    if work == Work::Tool {
        return Amounts::default();
    }
    let seconds = ticks / TICKS_PER_SECOND;
    let percent = match work {
        // One more page of the cache every three seconds, for a minute.
        Work::Serving => 44.0 + (seconds / 3 % 20) as f64 * 1.5,
        Work::Training => 38.0 + if seconds % 2 == 0 { 22.0 } else { 9.0 },
        Work::Tool => 0.0,
        Work::Measuring => 2.0 + (seconds / 5 % 4) as f64 * 6.0,
    };
    let trace = match work {
        Work::Serving => 48 << 20,
        _ => 0,
    };
    let of = |total: Bytes, percent: f64| (total.0 as f64 * percent / 100.0) as u64 / PAGE * PAGE;
    let l1 = capacity.l1.unwrap_or(Bytes(0));
    Amounts {
        dram: of(capacity.dram, percent),
        l1: of(l1, 6.0 + 30.0 * load),
        l1_small: if work == Work::Serving { 24_576 * 64 } else { 0 },
        trace,
        cb: of(l1, 2.0 + 20.0 * load),
    }
}

/// Buffers are laid out in whole pages.
const PAGE: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use model::Board;

    #[test]
    fn some_devices_are_busy_and_some_idle() {
        let devices = |n| format!("{:?}", jobs(n).into_iter().map(|job| job.devices).collect::<Vec<_>>());
        assert_eq!(devices(1), "[0..1]");
        assert_eq!(devices(2), "[0..1]");
        assert_eq!(devices(4), "[0..2, 2..3]");
        assert_eq!(devices(32), "[0..16, 16..17, 17..18]");
    }

    #[test]
    fn memory_moves_and_fits() {
        let capacity = Board::N150.capacity(None).unwrap();
        for work in [Work::Serving, Work::Training, Work::Measuring] {
            let minute: Vec<Amounts> = (0..600).map(|ticks| memory(work, capacity, ticks, 1.0)).collect();
            for amounts in &minute {
                assert!(amounts.dram + amounts.trace < capacity.dram.0, "{work:?}");
                assert!(amounts.l1 + amounts.l1_small + amounts.cb < capacity.l1.unwrap().0, "{work:?}");
            }
            assert!(minute.iter().any(|amounts| amounts.dram != minute[0].dram), "{work:?}");
        }
    }
}
