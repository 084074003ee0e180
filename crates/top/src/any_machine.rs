//! What holds for any machine at any size: seeds instead of cases, so that a failure can be repeated.

use super::panels::{devices, draw};
use super::settings::TopSettings;
use super::state::{TopState, TopView};
use super::theme::Tone;
use crate::screen::Buffer;
use crate::screen::Rect;
use alerts::Engine;
use alerts::settings::AlertSettings;
use model::{Device, Fault, Snapshot, State as DeviceState, Weight};
use show::bar::{Fill, Sizes, cells};
use show::example::{Chance, any_machine};
use show::figures::used_of_total;
use show::memory::draw::chips::short_figures;
use show::memory::{draw as mem, of_snapshot};
use show::style::{Glyphs, Style};
use std::time::Duration;
use watch::moment::Moment;

const SEEDS: std::ops::Range<u64> = 0..60;

fn state_of(snapshot: &Snapshot) -> TopState {
    let mut state = TopState::new(TopSettings::default(), true);
    state.take(Moment::of(snapshot.clone()));
    state
}

/// From 20x5 to 320x90.
fn any_size(chance: &mut Chance) -> (u16, u16) {
    (20 + chance.below(301) as u16, 5 + chance.below(86) as u16)
}

fn drawn(state: &mut TopState, (width, height): (u16, u16)) -> Buffer {
    state.area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(state.area);
    draw(state, buf.area, &mut buf);
    buf
}

fn text(state: &mut TopState, size: (u16, u16)) -> String {
    super::paint::lines(&drawn(state, size))
}

#[test]
fn every_view_is_drawn_and_every_chip_is_shown_or_counted() {
    for seed in SEEDS {
        let machine = any_machine(seed);
        let (count, chance) = (machine.devices.len(), &mut Chance::new(seed ^ 77));
        let mut state = state_of(&machine);
        for _ in 0..6 {
            let size = any_size(chance);
            for view in [TopView::Memory, TopView::Mesh, TopView::Events, TopView::Overview] {
                state.view = view;
                text(&mut state, size);
            }
            let text = text(&mut state, size);
            let seen = devices::seen_at(&state, size);
            let is_counted = match count - seen.min(count) {
                0 => true,
                hidden if seen > 0 => text.contains(&format!("+{hidden} not shown")),
                // A screen without room for any chip has their number.
                _ => text.contains(&format!("{count} chip")),
            };
            assert!(is_counted, "seed {seed}, {size:?}: {seen} of {count}\n{text}");
        }
    }
}

#[test]
fn bars_are_proportional_within_half_a_cell() {
    let used = [Fill::Buffers, Fill::Second, Fill::Third];
    for seed in SEEDS {
        let machine = any_machine(seed);
        let columns = 1 + Chance::new(seed).below(200) as usize;
        let memories = machine.devices.iter().map(|device| &device.memory);
        for sizes in memories.flat_map(|memory| [Sizes::of_dram(memory), Sizes::of_l1(memory)]).flatten() {
            let cells = cells(&sizes, columns);
            assert_eq!(cells.len(), columns, "bars of a column have one length");
            let drawn = |fills: &[Fill]| cells.iter().filter(|fill| fills.contains(fill)).count() as f64;
            let exact = |bytes: u64| bytes.min(sizes.total) as f64 * columns as f64 / sizes.total as f64;
            assert!((drawn(&used) - exact(sizes.all_used())).abs() <= 0.5 + 1e-9, "seed {seed}: {sizes:?}");
            let hatched = [&used[..], &[Fill::Stale]].concat();
            let exact = exact(sizes.all_used() + sizes.stale);
            assert!((drawn(&hatched) - exact).abs() <= 0.5 + 1e-9, "seed {seed}: {sizes:?}");
        }
    }
}

#[test]
fn the_overview_the_memory_view_and_mem_say_the_same_of_what_is_used() {
    let glyphs = Glyphs::of(true);
    let style = Style { columns: 160, rows: None, color: false, unicode: true };
    for seed in SEEDS {
        let mut machine = any_machine(seed);
        // One chip has the long form in every view, several have the short one.
        let alone = seed % 2 == 0;
        machine.devices.truncate(if alone { 1 } else { 12 });
        let view = of_snapshot(&machine);
        let mem = mem::text(&view, &style, "");
        let mut state = state_of(&machine);
        let overview = text(&mut state, (160, 90));
        state.view = TopView::Memory;
        let memory = text(&mut state, (160, 90));
        for (device, chip) in machine.devices.iter().zip(&view.chips) {
            let of = &device.memory;
            assert_eq!((chip.dram.used_bytes, chip.l1.used_bytes), (of.dram_used, of.l1_used), "seed {seed}");
            for (used, total) in [(of.dram_used, of.dram_total), (of.l1_used, of.l1_total)] {
                let whole = used_of_total(used, total, of.untracked_processes, glyphs);
                let short = |total| short_figures(used, total, of.untracked_processes > 0, glyphs);
                let is_said =
                    |text: &str| text.contains(&whole) || text.contains(&short(total)) || text.contains(&short(None));
                for (name, text) in [("overview", &overview), ("memory", &memory), ("mem", &mem)] {
                    assert!(is_said(text), "seed {seed}, {name} lacks {whole}:\n{text}");
                }
                if alone {
                    assert!(
                        overview.contains(&whole) && memory.contains(&whole) && mem.contains(&whole),
                        "seed {seed}"
                    );
                }
            }
        }
    }
}

/// Nothing is wrong with it, and it does all that it can.
fn at_full_load(seed: u64) -> Snapshot {
    let mut machine = any_machine(seed);
    (machine.faults, machine.alerts) = (Vec::new(), Vec::new());
    for device in &mut machine.devices {
        device.state = if device.state == DeviceState::Remote { DeviceState::Remote } else { DeviceState::Ok };
        device.sample_age_seconds = Some(0.0);
        device.power = device.power_max;
        device.asic_temp = Some(model::Celsius(62.0));
        device.pcie = model::Link::default();
        device.memory.stale = None;
        device.memory.stale_l1 = None;
        device.activity = model::Activity::measured(100.0, model::UtilizationSource::Profiler);
    }
    machine
}

#[test]
fn nothing_is_red_on_a_healthy_machine_at_full_load() {
    for seed in SEEDS {
        let (mut state, chance) = (state_of(&at_full_load(seed)), &mut Chance::new(seed));
        let red = state.theme.style(Tone::Critical).fg;
        for view in [TopView::Overview, TopView::Memory, TopView::Mesh, TopView::Events] {
            state.view = view;
            let size = any_size(chance);
            let buf = drawn(&mut state, size);
            let cells = buf.rows().flatten().filter(|cell| Some(cell.look().fg) == red && buf.symbol(cell) != " ");
            let symbols: String = cells.map(|cell| buf.symbol(cell)).collect();
            assert!(symbols.is_empty(), "seed {seed}, {view:?} at {size:?}: {symbols}");
        }
        let color = Style { columns: 100, rows: None, color: true, unicode: true };
        assert!(!mem::text(&of_snapshot(state.snapshot()), &color, "").contains("\x1b[1;31m"), "seed {seed}");
    }
}

type Wrong = (&'static str, fn(&mut Device));

/// What may go wrong with a device.
const WRONG: [Wrong; 7] = [
    ("hung", |device| device.state = DeviceState::Hung),
    ("lost", |device| device.state = DeviceState::Lost),
    ("silent", |device| device.state = DeviceState::Silent),
    ("resetting", |device| device.state = DeviceState::Resetting),
    ("hot", |device| device.asic_temp = device.asic_temp_max.map(|limit| model::Celsius(limit.0 * 0.97))),
    ("full", |device| device.memory.dram_used = device.memory.dram_total),
    ("link", |device| {
        let (generation, width) = (Some(3), Some(16));
        device.pcie =
            model::Link { generation, width, max_generation: Some(5), max_width: width, ..Default::default() };
    }),
];

#[test]
fn a_fault_is_one_event_whatever_follows_from_it() {
    for (seed, (name, wrong)) in SEEDS.zip(WRONG.into_iter().cycle()) {
        let mut healthy = at_full_load(seed);
        healthy.devices.iter_mut().for_each(|device| device.memory.count(model::Usage::default()));
        let Some(at) = healthy.devices.iter().position(|device| device.state == DeviceState::Ok) else { continue };
        let mut state = TopState::new(TopSettings::default(), true);
        let mut rules = Engine::new(AlertSettings::default().rules);
        for second in (0..90).step_by(5) {
            let mut now = healthy.clone();
            now.taken_at.0 += second * 1000;
            if second > 0 {
                wrong(&mut now.devices[at]);
                unreadable(&mut now, at);
            }
            rules.observe(Duration::from_secs(second as u64), &now, &[]);
            now.alerts = rules.firing();
            state.take(Moment::of(now));
        }
        let events = about(&state, &healthy.devices[at]);
        assert_eq!(events.len(), 1, "seed {seed}, {name}: {events:#?}");
    }
}

/// Files of a device that does not answer cannot be read.
fn unreadable(snapshot: &mut Snapshot, at: usize) {
    let device = &snapshot.devices[at];
    let Some(number) = device.id.index().filter(|_| device.state != DeviceState::Ok) else { return };
    for file in ["tt_aiclk", "tt_heartbeat", "hwmon/hwmon0/temp1_input"] {
        let path = format!("/sys/class/tenstorrent/tenstorrent!{number}/{file}");
        snapshot.faults.push(Fault::new(path, "Input/output error (os error 5)"));
    }
}

/// What was said of a device that needs somebody.
fn about(state: &TopState, device: &Device) -> Vec<String> {
    let all = state.events.latest(model::Timestamp(i64::MAX));
    let its = all.filter(|event| event.device.as_ref() == Some(&device.id) && event.weight >= Weight::Warning);
    its.map(|event| event.text.clone()).collect()
}

#[test]
fn seeds_give_machines_of_all_sorts() {
    let machines: Vec<Snapshot> = SEEDS.map(any_machine).collect();
    assert!(machines.iter().any(|machine| machine.devices.len() == 1));
    assert!(machines.iter().any(|machine| machine.devices.len() > 30));
    for state in [DeviceState::Ok, DeviceState::Hung, DeviceState::Lost, DeviceState::Silent, DeviceState::Remote] {
        let has_one = |machine: &Snapshot| machine.devices.iter().any(|device| device.state == state);
        assert!(machines.iter().any(has_one), "{state:?}");
    }
    assert!(machines.iter().any(|machine| machine.processes.len() > 3));
    assert_eq!(any_machine(5), any_machine(5));
    assert_ne!(any_machine(5), any_machine(6));
}
