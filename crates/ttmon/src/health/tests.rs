//! Every reason that makes a machine not healthy, and the line that says so.

use super::verdict::{Demands, judge};
use expect_test::expect;
use model::{
    Alert, AlertState, Celsius, Device, DeviceId, Fault, PciAddress, Selector, Severity, Snapshot, State, Timestamp,
};

fn device(n: u32, board: &str, temp: f64) -> Device {
    Device {
        board: Some(board.into()),
        pci_address: Some(PciAddress(format!("0000:{:02x}:00.0", n * 0x40 + 1).into())),
        asic_temp: Some(Celsius(temp)),
        heartbeat: Some(7),
        heartbeat_verified: Some(true),
        ..Device::new(DeviceId::Local(n))
    }
}

fn machine() -> Snapshot {
    let devices =
        vec![device(0, "p150a", 41.2), device(1, "p150a", 52.4), device(2, "p150a", 44.0), device(3, "p150a", 44.0)];
    Snapshot { devices, ..Snapshot::empty() }
}

fn alert(name: &str, severity: Severity, state: AlertState, device: Option<&str>) -> Alert {
    let text = format!("device {}: near its temperature limit", device.unwrap_or("?"));
    let device = device.map(str::to_owned);
    Alert { name: name.into(), severity, state, device, process: None, since: Timestamp(0), value: None, text }
}

fn line(change: impl Fn(&mut Snapshot, &mut Demands)) -> String {
    let (mut snapshot, mut demands) = (machine(), Demands::default());
    change(&mut snapshot, &mut demands);
    judge(&snapshot, &snapshot.alerts, &demands).line(true)
}

#[test]
fn a_machine_that_is_well_is_one_line() {
    assert_eq!(line(|_, _| {}), "healthy: 4 × p150a, 41–52 °C");
    let mixed = line(|snapshot, demands| {
        snapshot.devices[1] = device(1, "n300", 41.0);
        snapshot.devices[2] = Device { state: State::Remote, ..Device::new(DeviceId::Remote(1)) };
        snapshot.devices[3].asic_temp = None;
        demands.required = ["p150x2", "n300", "3"].map(|text| text.parse().unwrap()).to_vec();
    });
    assert_eq!(mixed, "healthy: 2 × p150a, 1 × n300, 41 °C");
    let judged = judge(&machine(), &[], &Demands::default());
    assert_eq!(judged.line(false), "healthy: 4 x p150a, 41-52 C");
    let untold = line(|snapshot, _| {
        let told = device(3, "p150a", 0.0);
        snapshot.devices[3] = Device { id: told.id, state: State::NoTelemetry, ..Device::default() };
    });
    assert_eq!(untold, "healthy: 3 × p150a, 1 × unknown board, 41–52 °C, device 3 has no telemetry");
}

#[test]
fn each_reason_is_said() {
    let with_state = |state: State| line(move |snapshot, _| snapshot.devices[2].state = state);
    let hung = line(|snapshot, demands| {
        snapshot.devices[2] = Device { state: State::Hung, board: None, ..device(2, "", 255.0) };
        let path = "/sys/class/tenstorrent/tenstorrent!2";
        snapshot.faults.push(Fault::new(path, "PCIe not responding (config space is all-ones)"));
        snapshot.alerts.push(alert("heartbeat-stopped", Severity::Critical, AlertState::Firing, Some("2")));
        demands.required = vec!["p150x4".parse().unwrap()];
        demands.max_temp = Some(Celsius(85.0));
    });
    let lines = [
        hung,
        with_state(State::Lost),
        with_state(State::Silent),
        with_state(State::Resetting),
        with_state(State::NoDriver),
        line(|snapshot, _| snapshot.devices[1].heartbeat_verified = Some(false)),
        line(|snapshot, _| snapshot.devices.clear()),
        line(|_, demands| demands.devices = vec![Selector("7".into())]),
        line(|_, demands| demands.required = vec!["p150bx2".parse().unwrap(), "5".parse().unwrap()]),
        line(|_, demands| demands.max_temp = Some(Celsius(50.0))),
        line(|snapshot, demands| {
            snapshot.devices[0].asic_temp = None;
            demands.max_temp = Some(Celsius(60.0));
        }),
        line(|snapshot, _| {
            for severity in [Severity::Info, Severity::Warning, Severity::Critical] {
                snapshot.alerts.push(alert(severity.name(), severity, AlertState::Firing, Some("1")));
                snapshot.alerts.push(alert(severity.name(), severity, AlertState::Firing, Some("1")));
                snapshot.alerts.push(alert("other", severity, AlertState::Pending, Some("1")));
            }
        }),
        line(|_, demands| demands.silent_service = Some("x.sock: cannot connect".into())),
    ];
    expect![[r#"
        not healthy: device 2 (0000:81:00.0) is hung: PCIe not responding (config space is all-ones); 3 of 4 p150 found
        not healthy: device 2 (0000:81:00.0) is lost
        not healthy: device 2 (0000:81:00.0) does not answer
        not healthy: device 2 (0000:81:00.0) is being reset
        not healthy: device 2 (0000:81:00.0) has no driver
        not healthy: the firmware heartbeat of device 1 (0000:41:00.0) does not change
        not healthy: no device was found
        not healthy: device 7 was not found
        not healthy: 0 of 2 p150b found; 4 of 5 devices found
        not healthy: device 1 (0000:41:00.0) has 52.4 °C, more than 50.0 °C
        not healthy: the temperature of device 0 (0000:01:00.0) is unknown
        not healthy: alert critical: device 1: near its temperature limit; alert warning: device 1: near its temperature limit
        not healthy: x.sock: cannot connect
    "#]].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn what_is_wrong_with_another_device_is_not_asked_for() {
    let wrong = |snapshot: &mut Snapshot| {
        snapshot.devices[2].state = State::Hung;
        snapshot.alerts.push(alert("hot", Severity::Warning, AlertState::Firing, Some("2")));
    };
    let of = |name: &'static str| {
        line(move |snapshot, demands| {
            wrong(snapshot);
            demands.devices = vec![Selector(name.into())];
        })
    };
    assert_eq!(of("1"), "healthy: 1 × p150a, 52 °C");
    assert_eq!(of("0000:81:00.0"), "not healthy: device 2 (0000:81:00.0) is hung");
}

#[test]
fn a_driver_without_heartbeats_is_no_fault() {
    let old = line(|snapshot, _| {
        for device in &mut snapshot.devices {
            (device.heartbeat, device.heartbeat_verified) = (None, None);
        }
    });
    assert_eq!(old, "healthy: 4 × p150a, 41–52 °C");
}

#[test]
fn json_has_every_check_with_its_reason() {
    let mut snapshot = machine();
    snapshot.devices.truncate(2);
    snapshot.devices[1].state = State::Silent;
    snapshot.host.name = Some("lab-1".into());
    let demands = Demands { max_temp: Some(Celsius(85.0)), ..Demands::default() };
    expect![[r#"
        {
          "schema": 1,
          "healthy": false,
          "host": "lab-1",
          "devices": [
            {
              "index": 0,
              "id": "0",
              "pci_address": "0000:01:00.0",
              "board": "p150a",
              "state": "ok",
              "heartbeat_verified": true,
              "asic_temp_celsius": 41.2
            },
            {
              "index": 1,
              "id": "1",
              "pci_address": "0000:41:00.0",
              "board": "p150a",
              "state": "silent",
              "heartbeat_verified": true,
              "asic_temp_celsius": 52.4
            }
          ],
          "checks": [
            {
              "name": "states",
              "ok": false,
              "reason": "device 1 (0000:41:00.0) does not answer"
            },
            {
              "name": "heartbeats",
              "ok": true,
              "reason": null
            },
            {
              "name": "devices",
              "ok": true,
              "reason": null
            },
            {
              "name": "temperature",
              "ok": true,
              "reason": null
            },
            {
              "name": "alerts",
              "ok": true,
              "reason": null
            }
          ],
          "notes": []
        }
    "#]]
    .assert_eq(&crate::json::json(&judge(&snapshot, &[], &demands), false));
}
