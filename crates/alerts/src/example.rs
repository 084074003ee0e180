//! A made-up alert for tests, and what a test alert is made of.

use crate::notice::Notice;
use model::{Alert, AlertState, Severity, Timestamp};

/// About device 0, at made-up times.
pub fn notice(name: &str, state: AlertState) -> Notice {
    let ended_at = (state == AlertState::Resolved).then_some(Timestamp(1_767_323_105_000));
    let started_at = Timestamp(1_767_323_045_000);
    Notice {
        alert: Alert {
            name: name.into(),
            severity: Severity::Warning,
            state,
            device: Some("0".into()),
            process: None,
            since: ended_at.unwrap_or(started_at),
            value: Some(97.5),
            text: "device 0: it is near its temperature limit (asic_temp 97.5 %)".into(),
        },
        fingerprint: name.into(),
        alertname: "TtmonHot".into(),
        rule: "asic_temp > 95% for 30s until asic_temp < 90%".into(),
        advice: Some("Check airflow and fans.".into()),
        pci_address: Some("0000:01:00.0".into()),
        process_name: None,
        started_at,
        ended_at,
    }
}
