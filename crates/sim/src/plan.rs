//! Which processes work on which devices, how hard, and how much memory they use.

use crate::banks::ChipBanks;
use crate::region::Amounts;
use crate::wave::{self, TICKS_PER_SECOND};
use crate::work::{L1_PAGE, PAGE, Work};
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
    /// Whether it keeps its devices busy all the time, whatever its work is.
    pub is_full: bool,
    /// Whether it runs with ttmon's agent where that is wanted.
    pub agent: bool,
}

/// An operation that a workload runs, and how long it takes on a device that has nothing else to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimOperation {
    pub name: &'static str,
    pub microseconds: u64,
}

pub(crate) const LIBTT_METAL: &str = "usr/lib/python3/dist-packages/ttnn/build/lib/libtt_metal.so";
/// The container of a pod, and what containerd has in its file about it.
pub(crate) const CONTAINER_ID: &str = "3f2a9c1b7d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8";
pub(crate) const CONTAINER_CONFIG: &str = concat!(
    r#"{"annotations":{"io.kubernetes.cri.container-name":"trainer","io.kubernetes.cri.sandbox-name":"nanogpt-x7k2p","#,
    r#""io.kubernetes.cri.sandbox-namespace":"research"}}"#
);
pub(crate) const TTNNCPP: &str = "usr/lib/python3/dist-packages/ttnn/build/lib/_ttnncpp.so";

impl PlannedJob {
    /// How busy it keeps a chip, from 0 to 1, after so many ticks.
    pub fn load(&self, seed: u64, chip: u64, ticks: u64) -> f64 {
        let cycle = |seconds: u64| wave::in_cycle(seed, chip, ticks, seconds * TICKS_PER_SECOND);
        let is_in = |seconds: u64, part: u64| cycle(seconds) < part * TICKS_PER_SECOND;
        let steady = |level, swing| wave::steady_load(seed, chip, ticks, level, swing);
        match self.work {
            _ if self.is_full => 1.0,
            Work::Serving => steady(0.86, 0.11),
            // Between two epochs it waits for the next data.
            Work::Training if is_in(45, 3) => steady(0.3, 0.1),
            Work::Training => steady(0.94, 0.05),
            Work::Measuring => wave::load(seed, chip, ticks),
            Work::Waiting if is_in(70, 4) => steady(0.5, 0.15),
            Work::Waiting => steady(0.03, 0.02),
            Work::Tool => 0.0,
        }
    }

    /// The power that a chip draws meanwhile, from 0 (as idle) to 1 (as much as it can): most programs wait for memory, too.
    pub fn effort(&self, load: f64) -> f64 {
        let share = match self.work {
            _ if self.is_full => 1.0,
            Work::Serving => 0.68,
            Work::Training => 0.78,
            _ => 1.0,
        };
        load * share
    }
}

/// The jobs on a machine with so many devices: half of them serve, a few do other things, the rest are idle.
pub(crate) fn jobs(devices: usize) -> Vec<PlannedJob> {
    let half = (devices / 2).max(1);
    let serve = PlannedJob {
        command: &["python3", "serve_llama.py", "--model", "llama-3.1-8b"],
        libraries: &[LIBTT_METAL, TTNNCPP],
        cgroup: "/system.slice/slurmstepd.scope/job_48213/step_0/user/task_0",
        devices: 0..half,
        work: Work::Serving,
        is_full: false,
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
        is_full: false,
        agent: false,
    };
    let wait = PlannedJob {
        command: &["python3", "chat_demo.py", "--port", "7860"],
        cgroup: "/user.slice/user-1000.slice/session-3.scope",
        devices: devices.saturating_sub(1)..devices,
        work: Work::Waiting,
        ..serve
    };
    let jobs = [(1, serve), (3, train), (6, measure), (4, wait)];
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
        is_full: false,
        agent: false,
    }
}

/// One job on all of so many devices.
pub(crate) fn full(devices: usize) -> Vec<PlannedJob> {
    jobs(devices).into_iter().take(1).map(|job| PlannedJob { devices: 0..devices, is_full: true, ..job }).collect()
}

/// What a job runs, again and again. The times are those of a device that has nothing else to do.
pub(crate) fn operations(work: Work) -> Vec<SimOperation> {
    let all: &[(&'static str, u64)] = match work {
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
        Work::Waiting => &[("MatmulDeviceOperation", 900), ("SDPAOperation", 600), ("ArgMaxDeviceOperation", 120)],
        Work::Tool => &[],
    };
    all.iter().map(|(name, microseconds)| SimOperation { name, microseconds: *microseconds }).collect()
}

/// What a job has on a chip of this size, after so many ticks, at this load.
pub(crate) fn memory(work: Work, capacity: Capacity, banks: ChipBanks, ticks: u64, load: f64) -> Amounts {
    if work == Work::Tool {
        return Amounts::default();
    }
    let seconds = ticks / TICKS_PER_SECOND;
    let coming_and_going = match work {
        // One more page of the cache every three seconds, for a minute; half of them at the start.
        Work::Serving => (seconds / 3 % 20 + 10) as f64 % 20.0 * 1.5,
        Work::Training if seconds % 2 == 0 => 22.0,
        Work::Training => 9.0,
        Work::Measuring => (seconds / 5 % 4) as f64 * 6.0,
        Work::Waiting | Work::Tool => 0.0,
    };
    let of = |total: Bytes, percent: f64| (total.0 as f64 * percent / 100.0) as u64;
    let (dram, l1) = (u64::from(banks.dram), u64::from(banks.l1));
    let l1_bytes = capacity.l1.unwrap_or(Bytes(0));
    let is_serving = work == Work::Serving;
    Amounts {
        dram: of(capacity.dram, work.kept_percent() + coming_and_going) / (dram * PAGE) * (dram * PAGE),
        l1: of(l1_bytes, 6.0 + 30.0 * load) / (l1 * L1_PAGE) * (l1 * L1_PAGE),
        l1_small: if is_serving { l1 * 8 * L1_PAGE } else { 0 },
        trace: if is_serving { dram * (6 << 20) } else { 0 },
        cb: of(l1_bytes, 2.0 + 20.0 * load) / L1_PAGE * L1_PAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Arch, Board};

    #[test]
    fn some_devices_are_busy_and_some_idle() {
        let devices = |n| format!("{:?}", jobs(n).into_iter().map(|job| job.devices).collect::<Vec<_>>());
        assert_eq!(devices(1), "[0..1]");
        assert_eq!(devices(2), "[0..1]");
        assert_eq!(devices(4), "[0..2, 2..3, 3..4]");
        assert_eq!(devices(32), "[0..16, 16..17, 17..18, 31..32]");
    }

    #[test]
    fn memory_moves_and_fits() {
        let capacity = Board::N150.capacity(None).unwrap();
        let banks = ChipBanks::of(Arch::Wormhole, capacity);
        for work in [Work::Serving, Work::Training, Work::Measuring] {
            let minute: Vec<Amounts> = (0..600).map(|ticks| memory(work, capacity, banks, ticks, 1.0)).collect();
            for amounts in &minute {
                assert!(amounts.dram + amounts.trace < capacity.dram.0, "{work:?}");
                assert!(amounts.l1 + amounts.l1_small + amounts.cb < capacity.l1.unwrap().0, "{work:?}");
            }
            assert!(minute.iter().any(|amounts| amounts.dram != minute[0].dram), "{work:?}");
        }
    }

    #[test]
    fn each_job_has_its_own_way_to_work() {
        let of = |command: &str| jobs(6).into_iter().find(|job| job.command.contains(&command)).unwrap();
        let loads = |command: &str| -> Vec<f64> { (0..6000).map(|ticks| of(command).load(1, 0, ticks)).collect() };
        let mean = |loads: &[f64]| loads.iter().sum::<f64>() / loads.len() as f64;
        assert!(loads("serve_llama.py").iter().all(|load| (0.7..1.0).contains(load)));
        let training = loads("train_nanogpt.py");
        assert!(mean(&training) > 0.85 && training.iter().any(|load| *load < 0.4), "it waits between epochs");
        let waiting = loads("chat_demo.py");
        assert!(mean(&waiting) < 0.1 && waiting.iter().any(|load| *load > 0.3), "somebody asks now and then");
        assert!(full(2)[0].load(1, 0, 0) == 1.0 && full(2)[0].effort(1.0) == 1.0);
    }
}
