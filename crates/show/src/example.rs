//! A machine for tests: a busy p150a, a hung p150b, an n300 with its remote chip, and processes of all sorts.

use model::*;

/// A machine with all kinds of devices and processes.
pub fn machine() -> Snapshot {
    let host = Host {
        name: Some("lab-7".into()),
        kernel: Some("6.8.0-45-generic".into()),
        driver_version: Some("2.10.0".into()),
        simulated: false,
        ..Host::default()
    };
    Snapshot {
        schema: SCHEMA,
        taken_at: Timestamp(1_767_323_045_678),
        host,
        devices: vec![p150a(), p150b(), n300(), n300_right()],
        processes: processes(),
        faults: vec![Fault::new(
            "/dev/shm/tt_device_5_memory",
            "belongs to user 1001: run as that user or as root to see its memory",
        )],
        alerts: vec![],
        kernel_log: None,
    }
}

/// 32 chips, with something wrong here and there.
pub fn galaxy() -> Snapshot {
    let chip = |n: u32| {
        let mut chip = n300();
        chip.id = DeviceId::Local(n);
        chip.board = Some("galaxy-wormhole".into());
        chip.pci_address =
            Some(PciAddress(format!("0000:{}{}:00.0", ["c", "8", "0", "4"][n as usize / 8], n % 8 + 1).into()));
        chip.asic_temp = Some(Celsius(40.0 + f64::from(n)));
        chip.power = Some(Watts(12.0 + f64::from(n) * 2.0));
        chip.memory.dram = Some(Bytes(u64::from(n) * 400_000_000));
        chip.memory.dram_used = chip.memory.dram;
        chip.memory.l1_total = Some(Bytes(119_930_880));
        match n {
            5 => Device { state: State::Hung, asic_temp: None, power: None, aiclk: None, ..chip },
            9 => Device { state: State::Resetting, asic_temp: None, power: None, aiclk: None, ..chip },
            11 => Device { state: State::Silent, sample_age_seconds: Some(4.2), ..chip },
            _ => chip,
        }
    };
    Snapshot { devices: (0..32).map(chip).collect(), processes: vec![], faults: vec![], ..machine() }
}

fn p150a() -> Device {
    let mut device = Device::new(DeviceId::Local(0));
    device.pci_address = Some(PciAddress("0000:01:00.0".into()));
    device.arch = Some(Arch::Blackhole);
    device.board = Some("p150a".into());
    device.serial = Some("0000040331914049".into());
    device.asic_id = Some("8F3A6C21D4E5B790".into());
    device.sample_age_seconds = Some(0.0);
    device.numa_node = Some(0);
    device.asic_temp = Some(Celsius(54.012));
    device.asic_temp_max = Some(Celsius(90.0));
    device.power = Some(Watts(65.0));
    device.power_max = Some(Watts(150.0));
    device.vcore = Some(Volts(0.742));
    device.vcore_max = Some(Volts(0.9));
    device.current = Some(Amperes(88.0));
    device.current_max = Some(Amperes(200.0));
    device.energy_total = Some(Joules(5_412_345.678));
    device.fan = Some(Rpm(2068));
    device.aiclk = Some(Megahertz(1350));
    device.axiclk = Some(Megahertz(960));
    device.arcclk = Some(Megahertz(800));
    device.heartbeat = Some(482_113);
    device.thermal_trips = Some(0);
    device.thermal_trips_total = Some(0);
    device.in_use_by_pid = Some(4711);
    // One of the two processes on it does not report.
    device.activity = Activity { utilization_lower_bound: Some(true), ..busy() };
    device.pcie = Link {
        generation: Some(5),
        width: Some(8),
        max_generation: Some(5),
        max_width: Some(16),
        host_to_device: Some(BytesPerSecond(3.2e9)),
        device_to_host: Some(BytesPerSecond(4.5e6)),
        host_to_device_total: Some(Bytes(7_812_345_678_912)),
        device_to_host_total: Some(Bytes(96_123_456)),
    };
    device.firmware.bundle = Some("19.6.0.0".into());
    device.firmware.dm_app = Some("0.24.0.0".into());
    device.memory = Memory {
        dram_total: Some(Bytes(32 << 30)),
        dram_used: Some(Bytes(13_314_398_618 + 8_192)),
        l1_total: Some(Bytes(188_743_680)),
        l1_used: Some(Bytes(25_165_824 + 32_768 + 1_351_680)),
        dram: Some(Bytes(13_314_398_618)),
        l1: Some(Bytes(25_165_824)),
        kernel: None,
        l1_small_used: Some(Bytes(32_768)),
        trace_used: Some(Bytes(8_192)),
        cb_used: Some(Bytes(1_351_680)),
        stale: Some(Bytes(1_048_576)),
        untracked_processes: 1,
        ..Memory::default()
    };
    device
}

/// A chip that runs one program after another.
fn busy() -> Activity {
    Activity {
        busy_seconds_total: Some(1_034.251),
        programs_total: Some(4_812_004),
        programs_per_second: Some(3_120.4),
        ..Activity::measured(62.5, UtilizationSource::Profiler)
    }
}

fn p150b() -> Device {
    let mut device = Device::new(DeviceId::Local(1));
    device.pci_address = Some(PciAddress("0000:41:00.0".into()));
    device.arch = Some(Arch::Blackhole);
    device.board = Some("p150b".into());
    device.serial = Some("000004123191110E".into());
    device.state = State::Hung;
    device.sample_age_seconds = Some(0.0);
    device.activity = Activity::unknown(UtilizationUnknown::NotInUse);
    device.memory.dram_total = Some(Bytes(32 << 30));
    device.memory.l1_total = Some(Bytes(188_743_680));
    device
}

fn n300() -> Device {
    let mut device = Device::new(DeviceId::Local(2));
    device.pci_address = Some(PciAddress("0000:81:00.0".into()));
    device.arch = Some(Arch::Wormhole);
    device.board = Some("n300".into());
    device.serial = Some("010001451170C0C4".into());
    device.asic_id = Some("1A2B3C4D5E6F7081".into());
    device.sample_age_seconds = Some(0.0);
    device.numa_node = Some(1);
    device.asic_temp = Some(Celsius(73.5));
    device.asic_temp_max = Some(Celsius(75.0));
    device.power = Some(Watts(80.0));
    device.power_max = Some(Watts(85.0));
    device.vcore = Some(Volts(0.795));
    device.vcore_max = Some(Volts(1.0));
    device.current = Some(Amperes(15.0));
    device.current_max = Some(Amperes(160.0));
    device.aiclk = Some(Megahertz(1000));
    device.axiclk = Some(Megahertz(900));
    device.arcclk = Some(Megahertz(540));
    device.heartbeat = Some(2_779_098_213);
    device.activity = Activity::unknown(UtilizationUnknown::NoAgent);
    device.pcie =
        Link { generation: Some(4), width: Some(16), max_generation: Some(4), max_width: Some(16), ..Link::default() };
    device.firmware = Firmware {
        bundle: Some("19.6.0.0".into()),
        dm_app: Some("5.9.0.0".into()),
        dm_bootloader: Some("129.2.0.0".into()),
        arc: Some("2.37.0.0".into()),
        ethernet: Some("7.2.0".into()),
        tt_flash: Some("3.6.1.0".into()),
    };
    device.memory.dram_total = Some(Bytes(12 << 30));
    device.memory.dram = Some(Bytes(0));
    device.memory.dram_used = device.memory.dram;
    device.memory.l1_total = Some(Bytes(95_944_704));
    device.memory.l1 = Some(Bytes(2_048));
    device.memory.l1_used = device.memory.l1;
    device.memory.stale = Some(Bytes(0));
    device
}

fn n300_right() -> Device {
    let mut device = Device::new(DeviceId::Remote(2));
    device.pci_address = Some(PciAddress("0000:81:00.0".into()));
    device.arch = Some(Arch::Wormhole);
    device.board = Some("n300".into());
    device.serial = Some("010001451170C0C4".into());
    device.state = State::Remote;
    device.activity = Activity::unknown(UtilizationUnknown::RemoteChip);
    device.sample_age_seconds = Some(0.0);
    device.memory.dram_total = Some(Bytes(12 << 30));
    device.memory.dram = Some(Bytes(11_811_160_064));
    device.memory.dram_used = device.memory.dram;
    device.memory.l1_total = Some(Bytes(95_944_704));
    device.memory.l1 = Some(Bytes(0));
    device.memory.l1_used = device.memory.l1;
    device
}

fn processes() -> Vec<Process> {
    let no_agent = || Activity::unknown(UtilizationUnknown::NoAgent);
    let held = |id, usage, source| Held { usage, source, activity: no_agent(), ..Held::new(id) };
    let tracked = |id, dram, l1| held(id, Usage::measured(dram, l1, 32_768, 8_192, 1_351_680), Some(Source::Shm));
    let plain = Process {
        parent_pid: Some(1),
        user: Some("ttuser".into()),
        name: Some("python3".into()),
        command: Some("python3 serve.py --model llama-3.1-8b".into()),
        container: None,
        owner: ProcessOwner { unit: Some("tt-inference.service".into()), ..ProcessOwner::default() },
        runtime: Some(Runtime::Ttnn),
        started_at: Some(Timestamp(1_767_322_000_000)),
        host_memory: Some(Bytes(2_576_980_378)),
        host_cpu_percent: Some(103.4),
        agent: None,
        devices: vec![tracked(DeviceId::Local(0), 13_314_398_618, 25_165_824)],
        ..Process::new(4711)
    };
    let contained = Process {
        pid: 81,
        user: Some("a-rather-long-login".into()),
        name: Some("日本語の名前".into()),
        command: Some("evil\x1b[2J, \"quoted\"\nname".into()),
        container: Some("k8s:0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b/3f2a9c1b7d4e".into()),
        owner: ProcessOwner {
            namespace: Some("research".into()),
            pod: Some("nanogpt-x7k2p".into()),
            pod_uid: Some("0b6f4a7e-1c2d-3e4f-5a6b-7c8d9e0f1a2b".into()),
            container_name: Some("trainer".into()),
            ..ProcessOwner::default()
        },
        runtime: Some(Runtime::TtMetal),
        host_cpu_percent: None,
        devices: vec![tracked(DeviceId::Local(2), 0, 2_048), tracked(DeviceId::Remote(2), 11_811_160_064, 0)],
        ..plain.clone()
    };
    let silent = Process {
        pid: 5120,
        parent_pid: None,
        user: None,
        name: None,
        command: None,
        owner: ProcessOwner::default(),
        runtime: None,
        started_at: None,
        host_memory: None,
        host_cpu_percent: None,
        devices: vec![held(DeviceId::Local(0), Usage::default(), None)],
        ..plain.clone()
    };
    let plain = Process {
        agent: Some("ttmon-agent 0.1.0".into()),
        launches_total: Some(4_812_004),
        launches_per_second: Some(3_120.4),
        host_wait_percent: Some(41.2),
        back_pressure_percent: Some(3.1),
        idle_seconds: Some(0.0),
        operations: vec![
            operation("MatmulDeviceOperation", 1_604_000, 702.5, true),
            operation("SoftmaxDeviceOperation", 802_001, 201.25, false),
            operation("BinaryNgDeviceOperation", 2_406_003, 130.501, false),
        ],
        devices: vec![Held {
            exact: Some(Box::new(exact())),
            source: Some(Source::Exact),
            activity: busy(),
            ..plain.devices[0].clone()
        }],
        ..plain
    };
    vec![contained, plain, silent]
}

fn operation(name: &str, launches: u64, device_seconds: f64, in_flight: bool) -> Operation {
    Operation {
        name: name.into(),
        launches,
        runs: Some(launches),
        device_seconds: Some(device_seconds),
        longest_seconds: Some(0.004),
        age_seconds: Some(0.002),
        launches_per_second: Some(launches as f64 / 1_000.0),
        in_flight,
        ..Operation::default()
    }
}

fn exact() -> Exact {
    let figures = |bytes: u64, logical: u64, buffers| KindFigures {
        bytes: Bytes(bytes),
        logical_bytes: Bytes(logical),
        buffers,
        peak_bytes: Bytes(bytes * 2),
        allocations: buffers + 40,
        frees: 40,
        banks: None,
    };
    let banks = |count, allocatable: u64, bytes: u64, age| BankFigures {
        count,
        allocatable_bytes: Bytes(allocatable),
        allocated_bytes: Bytes(bytes / u64::from(count)),
        free_bytes: Bytes(allocatable - bytes / u64::from(count)),
        largest_free_bytes: Some(Bytes((allocatable - bytes / u64::from(count)) / 4 * 3)),
        fragmentation: Some(0.25),
        age_seconds: age,
    };
    Exact {
        dram: Some(KindFigures {
            banks: Some(banks(8, 4_277_141_376, 13_314_398_618, None)),
            ..figures(13_314_398_618, 13_300_000_000, 812)
        }),
        l1: Some(KindFigures {
            banks: Some(banks(110, 1_461_120, 25_165_824, Some(1.25))),
            ..figures(25_165_824, 25_000_000, 31)
        }),
        l1_small: Some(figures(32_768, 32_768, 1)),
        trace: Some(figures(8_192, 8_192, 1)),
        cb: Some(figures(1_351_680, 1_351_680, 3)),
        kernel: None,
    }
}

/// Numbers that are as good as random, and the same for the same seed.
pub struct Chance(u64);

impl Chance {
    /// The same sequence for the same seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// One of so many numbers, from zero on.
    pub fn below(&mut self, many: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 20) % many.max(1)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn bytes(&mut self, most: Bytes) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => self.below(4096),
            _ => self.below(most.0),
        }
    }
}

/// Up to 32 chips in any state, with any memory in use and left over, and processes on some of them.
pub fn any_machine(seed: u64) -> Snapshot {
    let chance = &mut Chance::new(seed);
    let count = if chance.one_in(8) { 1 } else { 1 + chance.below(32) as u32 };
    let mut machine = Snapshot { devices: (0..count).map(|n| any_device(n, chance)).collect(), ..machine() };
    let plain = machine.processes[1].clone();
    let process = |n: u64, chance: &mut Chance| {
        let mut process = Process { pid: 1000 + n as u32, devices: Vec::new(), ..plain.clone() };
        process.command = Some(format!("python3 job{n}.py --steps {}", chance.below(99)));
        for device in machine.devices.iter().filter(|_| chance.one_in(3)) {
            process.devices.push(Held { source: Some(Source::Shm), ..Held::new(device.id.clone()) });
        }
        process
    };
    machine.processes = (0..chance.below(6)).map(|n| process(n, chance)).collect();
    machine.faults.truncate(chance.below(2) as usize);
    machine
}

fn any_device(n: u32, chance: &mut Chance) -> Device {
    let mut device = if chance.one_in(2) { p150a() } else { n300() };
    device.id = if n > 0 && chance.one_in(12) { DeviceId::Remote(n) } else { DeviceId::Local(n) };
    device.pci_address = Some(PciAddress(format!("0000:{:02x}:00.0", n + 1).into()));
    device.state = match (&device.id, chance.below(10)) {
        (DeviceId::Remote(_), _) => State::Remote,
        (_, 0) => State::Hung,
        (_, 1) => State::Lost,
        (_, 2) => State::Silent,
        (_, 3) => State::Resetting,
        (_, 4) => State::NoTelemetry,
        _ => State::Ok,
    };
    device.sample_age_seconds = match device.state {
        State::Silent | State::Lost => Some(chance.below(900) as f64 / 10.0),
        _ => Some(0.0),
    };
    device.asic_temp = (!chance.one_in(6)).then(|| Celsius(chance.below(90) as f64));
    device.power = (!chance.one_in(6)).then(|| Watts(chance.below(160) as f64));
    let (dram, l1) = (device.memory.dram_total.unwrap_or_default(), device.memory.l1_total.unwrap_or_default());
    let part = |whole: Bytes, of: u64| Bytes(whole.0 / of);
    let usage = Usage::measured(
        chance.bytes(part(dram, 2)),
        chance.bytes(part(l1, 3)),
        chance.bytes(part(l1, 20)),
        chance.bytes(part(dram, 10)),
        chance.bytes(part(l1, 3)),
    );
    device.memory.count(if chance.one_in(8) { Usage::default() } else { usage });
    let stale_l1 = Bytes(chance.bytes(part(l1, 4)));
    device.memory.stale_l1 = Some(stale_l1).filter(|bytes| bytes.0 > 0);
    device.memory.stale = (!chance.one_in(4)).then(|| Bytes(stale_l1.0 + chance.bytes(part(dram, 3))));
    device.memory.untracked_processes = u32::from(chance.one_in(5));
    device
}
