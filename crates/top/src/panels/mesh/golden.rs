//! What the view looks like, pinned. Refresh with `UPDATE_EXPECT=1` and read the difference.

use super::*;
use crate::paint::lines;
use crate::places::ChipPlaces;
use crate::settings::TopSettings;
use crate::state::Overlay;
use crossterm::event::KeyModifiers;
use expect_test::{expect, expect_file};
use model::figure::device::{ASIC_TEMP, DRAM_USED};
use model::{Arch, Bytes, BytesPerSecond, Celsius, Device, Link, Megahertz, PciAddress, Snapshot, Watts};
use show::example;
use watch::moment::Moment;

const SIZES: [(u16, u16); 2] = [(80, 22), (120, 38)];
const T3K: &str = include_str!("../../../../harness/clusters/t3k.yaml");
const N300: &str = include_str!("../../../../harness/clusters/n300.yaml");

/// A chip with figures that follow from its number.
fn card(id: DeviceId, board: &str, bus: u32, serial: &str) -> Device {
    let mut device = Device::new(id.clone());
    let n = id.gateway().unwrap();
    device.arch =
        Some(if board.starts_with('n') || board.ends_with("wormhole") { Arch::Wormhole } else { Arch::Blackhole });
    device.board = Some(board.into());
    device.pci_address = Some(PciAddress(format!("0000:{bus:02x}:00.0").into()));
    device.serial = Some(serial.into());
    device.sample_age_seconds = Some(0.0);
    device.memory.dram_total = Some(Bytes(12 << 30));
    device.memory.dram_used = Some(Bytes(u64::from(n) * 400_000_000));
    device.memory.l1_total = Some(Bytes(107_937_792));
    device.memory.l1_used = Some(Bytes(u64::from(n) << 20));
    if matches!(id, DeviceId::Remote(_)) {
        return Device { state: DeviceState::Remote, ..device };
    }
    device.asic_temp = Some(Celsius(40.0 + f64::from(n)));
    device.asic_temp_max = Some(Celsius(75.0));
    device.power = Some(Watts(12.0 + 2.0 * f64::from(n)));
    device.power_max = Some(Watts(85.0));
    device.aiclk = Some(Megahertz(if n % 3 == 0 { 500 } else { 1000 }));
    device.pcie = Link { generation: Some(4), width: Some(16), ..Link::default() };
    device.pcie.host_to_device = Some(BytesPerSecond(1e9 * f64::from(n)));
    device
}

fn n300s(count: u32) -> Vec<Device> {
    let chip = |id, n| card(id, "n300", n + 1, &format!("01000146118008{n:02X}"));
    (0..count).flat_map(|n| [chip(DeviceId::Local(n), n), chip(DeviceId::Remote(n), n)]).collect()
}

fn p300s(count: u32) -> Vec<Device> {
    let chip = |n: u32| card(DeviceId::Local(n), "p300a", n + 1, &format!("0000045131900{:03X}", n / 2));
    (0..2 * count).map(chip).collect()
}

fn galaxy(board: &str, trays: [u32; 4]) -> Vec<Device> {
    let chip = |n: u32| card(DeviceId::Local(n), board, trays[n as usize / 8] | (n % 8 + 1), "0100035100000000");
    (0..32).map(chip).collect()
}

fn wormhole_galaxy() -> Vec<Device> {
    galaxy("galaxy-wormhole", [0xC0, 0x80, 0x00, 0x40])
}

fn blackhole_galaxy() -> Vec<Device> {
    galaxy("galaxy-blackhole", [0x00, 0x40, 0xC0, 0x80])
}

/// A torus of eight by four chips, four links between neighbours, two round the ends.
fn torus() -> String {
    let mut text = "chips:\n".to_owned();
    (0..32).for_each(|n| text += &format!("  {n}: [{}, {}, 0, 0]\n", n % 8, n / 8));
    text += "chips_with_mmio:\n";
    (0..32).for_each(|n| text += &format!("  - {n}: {n}\n"));
    text += "ethernet_connections:\n";
    let mut link = |one: u32, other: u32, channels: std::ops::Range<u32>| {
        channels.for_each(|c| text += &format!("  - [{{ chip: {one}, chan: {c} }}, {{ chip: {other}, chan: {c} }}]\n"));
    };
    for n in 0..32 {
        let (column, row) = (n % 8, n / 8);
        if column < 7 {
            link(n, n + 1, 0..4)
        } else {
            link(n, n - 7, 0..2)
        }
        if row < 3 { link(n, n + 8, 4..5) } else { link(n, n - 24, 6..8) }
    }
    text + "ethernet_connections_to_remote_devices:\n  - [{ chip: 9, chan: 9 }, { remote_chip_id: 1, chan: 1 }]\n"
}

fn machine(devices: Vec<Device>) -> Snapshot {
    Snapshot { devices, ..example::machine() }
}

fn state(snapshot: Snapshot) -> TopState {
    let mut state = TopState::new(TopSettings::default(), true);
    state.take(Moment::of(snapshot));
    state
}

fn described(text: &str, snapshot: Snapshot) -> TopState {
    let mut state = TopState::new(TopSettings::default(), true);
    state.places = ChipPlaces::described(text.to_owned()).unwrap();
    state.take(Moment::of(snapshot));
    state
}

fn drawn(state: &TopState, width: u16, height: u16) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    draw(state, buf.area, &mut buf);
    lines(&buf)
}

fn at_all_sizes(name: &str, state: &TopState) -> String {
    SIZES.iter().map(|(w, h)| format!("{name} {w}x{h}\n{}", drawn(state, *w, *h))).collect()
}

#[test]
fn boards_are_drawn_with_the_links_that_are_known() {
    let n150 = card(DeviceId::Local(0), "n150", 1, "010001861180B479");
    let mut text = at_all_sizes("n150", &state(machine(vec![n150])));
    text += &at_all_sizes("n300", &state(machine(n300s(1))));
    text += &at_all_sizes("T3000", &state(machine(n300s(4))));
    text += &at_all_sizes("p300", &state(machine(p300s(2))));
    expect_file!["../../golden/mesh-boards.txt"].assert_eq(&text);
}

#[test]
fn a_galaxy_is_drawn_as_its_trays() {
    let mut wormhole = state(machine(wormhole_galaxy()));
    wormhole.device = Some(DeviceId::Local(13));
    let mut blackhole = state(machine(blackhole_galaxy()));
    blackhole.mesh.metric = DRAM_USED.field();
    let text = at_all_sizes("wormhole", &wormhole) + &at_all_sizes("blackhole", &blackhole);
    expect_file!["../../golden/mesh-galaxy.txt"].assert_eq(&text);
}

#[test]
fn sick_chips_say_so_at_their_places() {
    let mut mixed = example::machine();
    mixed.devices.push(Device {
        state: DeviceState::Lost,
        sample_age_seconds: Some(75.0),
        ..card(DeviceId::Local(3), "n150", 9, "1")
    });
    let mut text = at_all_sizes("mixed", &state(mixed));
    text += &at_all_sizes("galaxy", &state(example::galaxy()));
    expect_file!["../../golden/mesh-sick.txt"].assert_eq(&text);
}

#[test]
fn a_descriptor_has_all_links_and_distant_ones_are_listed() {
    let mut text = at_all_sizes("T3000", &described(T3K, machine(n300s(4))));
    text += &at_all_sizes("torus", &described(&torus(), machine(wormhole_galaxy())));
    text += &at_all_sizes("another machine", &described(N300, machine(blackhole_galaxy())));
    expect_file!["../../golden/mesh-described.txt"].assert_eq(&text);
}

#[test]
fn a_small_terminal_shows_a_part_and_says_so() {
    let mut state = described(&torus(), machine(wormhole_galaxy()));
    let mut text = String::new();
    for (selected, (width, height)) in [(0, (80, 14)), (31, (40, 6)), (20, (60, 10)), (3, (40, 22)), (9, (20, 4))] {
        state.device = Some(DeviceId::Local(selected));
        text += &format!("{width}x{height}\n{}", drawn(&state, width, height));
    }
    expect_file!["../../golden/mesh-small.txt"].assert_eq(&text);
}

#[test]
fn a_terminal_without_unicode_gets_ascii() {
    let mut text = String::new();
    for (descriptor, devices) in [(None, n300s(4)), (Some(torus()), wormhole_galaxy())] {
        let mut state = TopState::new(TopSettings { ascii: true, fahrenheit: true, ..TopSettings::default() }, true);
        if let Some(descriptor) = descriptor {
            state.places = ChipPlaces::described(descriptor).unwrap();
        }
        state.take(Moment::of(Snapshot { processes: vec![], ..machine(devices) }));
        text += &drawn(&state, 80, 22);
    }
    assert!(text.is_ascii(), "{text}");
    expect_file!["../../golden/mesh-ascii.txt"].assert_eq(&text);
}

#[test]
fn arrows_go_to_the_nearest_chip_and_stop_at_the_edge() {
    let mut state = state(machine(n300s(4)));
    let mut walk = String::new();
    let path = [
        Action::Left,
        Action::Left,
        Action::Down,
        Action::Right,
        Action::Right,
        Action::Right,
        Action::Right,
        Action::Up,
        Action::Up,
        Action::Home,
        Action::End,
    ];
    for action in path {
        assert!(act(&mut state, action));
        walk += &format!("{} ", state.device.as_ref().unwrap());
    }
    expect!["0R 0R 1R 1 3 3R 3R 2R 2R 0 3R "].assert_eq(&walk);
    assert!(act(&mut state, Action::Enter));
    assert_eq!(state.overlay.take(), Some(Overlay::Device { scroll: 0 }));
    assert!(!act(&mut state, Action::Quit));
}

#[test]
fn an_arrow_finds_a_chip_that_is_not_straight_ahead() {
    let mut state = state(example::machine());
    let mut last = card(DeviceId::Local(9), "n150", 0x90, "1");
    last.id = DeviceId::Local(9);
    let mut machine = example::machine();
    machine.devices.push(last);
    state.take(Moment::of(machine));
    state.device = Some(DeviceId::Remote(2));
    act(&mut state, Action::Down);
    assert_eq!(state.device, Some(DeviceId::Local(9)));
    act(&mut state, Action::Up);
    assert_eq!(state.device, Some(DeviceId::Local(0)));
}

#[test]
fn a_click_selects_a_chip_and_the_title_changes_the_figure() {
    let mut state = state(machine(wormhole_galaxy()));
    let event = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    let down = MouseEventKind::Down(MouseButton::Left);
    for (width, height) in [(80, 22), (160, 48), (40, 6)] {
        let area = Rect::new(0, 1, width, height);
        let chips = state.places.topology.chips.clone();
        for chip in chips {
            let Some(place) = Plan::of(&state, area).place(&chip) else { continue };
            mouse(&mut state, area, event(down, place.x + 1, place.bottom() - 1));
            assert_eq!(state.device, Some(chip.id));
        }
        let before = state.device.clone();
        mouse(&mut state, area, event(down, area.right() + 5, area.bottom() + 5));
        assert_eq!(state.device, before, "there is nothing");
        mouse(&mut state, area, event(MouseEventKind::ScrollUp, 0, 4));
        assert_ne!(state.device, before);
    }
    let area = Rect::new(0, 1, 80, 22);
    mouse(&mut state, area, event(down, 3, 1));
    assert_eq!(state.mesh.metric, next(ASIC_TEMP.field(), 1));
    mouse(&mut state, area, event(MouseEventKind::ScrollUp, 3, 1));
    assert_eq!(state.mesh.metric, ASIC_TEMP.field());
    act(&mut state, Action::Metric);
    assert_eq!(state.mesh.metric, next(ASIC_TEMP.field(), 1));
}

#[test]
fn no_screen_is_too_small_and_no_figure_too_long() {
    let mut snapshot = machine(wormhole_galaxy());
    snapshot.devices[1].board = Some("a board with a rather long name 日本語".into());
    snapshot.devices[2] = Device::new(DeviceId::Local(2));
    snapshot.devices[3].id = DeviceId::NoDriver(PciAddress("0000:99:00.0".into()));
    let empty = Snapshot { devices: vec![], ..snapshot.clone() };
    let states = [
        state(empty),
        state(example::machine()),
        state(snapshot.clone()),
        described(&torus(), snapshot),
        described(T3K, machine(n300s(4))),
    ];
    for mut state in states {
        for (width, height) in (1..=200).step_by(11).flat_map(|w| (1..=60).step_by(2).map(move |h| (w, h))) {
            state.mesh.metric = next(state.mesh.metric, 1);
            state.step_device(1);
            let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
            draw(&state, buf.area, &mut buf);
            draw(&state, Rect { x: width / 2, y: height / 2, ..buf.area }, &mut buf);
            Plan::of(&state, Rect::new(0, 0, width, height));
        }
    }
}

#[test]
fn all_chips_of_a_galaxy_are_in_view_on_any_usual_terminal() {
    let state = state(machine(wormhole_galaxy()));
    for (width, height) in (64..=300).step_by(5).flat_map(|w| (12..=90).map(move |h| (w, h))) {
        let plan = Plan::of(&state, Rect::new(0, 0, width, height));
        let places: Vec<Rect> = state.places.topology.chips.iter().filter_map(|chip| plan.place(chip)).collect();
        assert_eq!(places.len(), 32, "{width}x{height}");
        let right = if plan.aside { plan.facts.x } else { width };
        assert!(
            places.iter().all(|place| place.right() <= right && place.bottom() <= plan.legend.y),
            "{width}x{height}"
        );
        assert!(places.iter().all(|place| (place.width, place.height) == plan.cell), "{width}x{height} {plan:?}");
        let clear = plan.aside || places.iter().all(|place| !place.intersects(plan.facts));
        assert!(clear, "{width}x{height} {plan:?}");
    }
}

#[test]
fn the_key_goes_round() {
    let mut field = ASIC_TEMP.field();
    for _ in kept_in_history() {
        field = next(field, 1);
    }
    assert_eq!(field, ASIC_TEMP.field());
    assert_eq!(Some(next(field, -1)), kept_in_history().last());
}

/// A deep read in which all ports are up but these, by device and port.
fn with_masks(mut devices: Vec<Device>, down: &[(u32, u32)]) -> Vec<Device> {
    for device in &mut devices {
        let DeviceId::Local(n) = device.id else { continue };
        let count = if device.arch == Some(Arch::Wormhole) { 16 } else { 14 };
        let deep = device.deep.get_or_insert_default();
        deep.eth_link_up = (0..count).map(|port| Some(!down.contains(&(n, port)))).collect();
        deep.asic_location = Some(1 - n % 2);
    }
    devices
}

#[test]
fn a_degraded_mesh_shows_which_links_are_down() {
    // A cable of the T3000 is cut, and one of the links on board 1 is down.
    let t3000 = with_masks(n300s(4), &[(0, 6), (2, 6), (0, 7), (2, 7), (1, 9)]);
    let mut text = at_all_sizes("T3000 with a descriptor", &described(T3K, machine(t3000.clone())));
    text += &at_all_sizes("T3000", &state(machine(t3000)));
    // One end of the first board says that a link is up, the other that it is not. Both links of the second board are down.
    let p300 = with_masks(p300s(2), &[(0, 11), (1, 12), (2, 10), (2, 11), (3, 2), (3, 3)]);
    text += &at_all_sizes("p300", &state(machine(p300)));
    // All links between 9 and 10 and between 3 and 11, one of those between 12 and 13, and the one out of the machine.
    let between =
        |one: u32, there: u32, other: u32, back: u32| (0..4).flat_map(move |n| [(one, there + n), (other, back + n)]);
    let mut down: Vec<(u32, u32)> = between(9, 0, 10, 4).chain(between(3, 8, 11, 12)).collect();
    down.extend([(12, 0), (13, 4), (0, 4)]);
    let galaxy = with_masks(wormhole_galaxy(), &down);
    let mut mesh = described(&mesh(), machine(galaxy.clone()));
    mesh.device = Some(DeviceId::Local(9));
    text += &at_all_sizes("Galaxy with a descriptor", &mesh);
    text += &at_all_sizes("Galaxy", &state(machine(galaxy.clone())));
    let mut ascii = TopState::new(TopSettings { ascii: true, ..TopSettings::default() }, true);
    ascii.places = ChipPlaces::described(self::mesh()).unwrap();
    ascii.take(Moment::of(machine(galaxy)));
    text += &format!("ASCII\n{}", drawn(&ascii, 80, 22));
    expect_file!["../../golden/mesh-degraded.txt"].assert_eq(&text);
}

/// Eight by four chips, four links between neighbours: ports 0 to 3 lead to the right, 4 to 7 to the left, 8 to 11 down, 12 to 15 up.
fn mesh() -> String {
    let mut text = "chips:\n".to_owned();
    (0..32).for_each(|n| text += &format!("  {n}: [{}, {}, 0, 0]\n", n % 8, n / 8));
    text += "chips_with_mmio:\n";
    (0..32).for_each(|n| text += &format!("  - {n}: {n}\n"));
    text += "ethernet_connections:\n";
    for (n, port) in (0..32).flat_map(|n| (0..4).map(move |port| (n, port))) {
        let mut link = |other: u32, there: u32, back: u32| {
            text += &format!("  - [{{ chip: {n}, chan: {there} }}, {{ chip: {other}, chan: {back} }}]\n");
        };
        if n % 8 < 7 {
            link(n + 1, port, 4 + port);
        }
        if n < 24 {
            link(n + 8, 8 + port, 12 + port);
        }
    }
    text + "ethernet_connections_to_remote_devices:\n  - [{ chip: 0, chan: 4 }, { remote_chip_id: 1, chan: 1 }]\n"
}
