//! The series of Ethernet links between chips, where deep reads say whether they are up.

use super::family::{Family, gauge, rows};
use super::text::{self, MetricsText};
use model::Snapshot;
use model::figure::{Figure, Value};
use model::topology::{LinkEnd, LinkState, LiveLink, live, of_machine};

const UP: &str =
    "Whether a known Ethernet link is up: it is on a board, or a cluster descriptor has it. Only with deep reads.";

pub static LINK_FIGURES: &[&Figure<LiveLink>] = rows![LiveLink;
    gauge("ttmon_ethernet_link_up", UP, |link, _| match link.state {
        LinkState::Up => Some(Value::YesNo(true)),
        LinkState::Down | LinkState::NotUp => Some(Value::YesNo(false)),
        LinkState::Unused | LinkState::Unknown => None,
    }),
];

pub fn write(text: &mut MetricsText, families: &[Family<LiveLink>], snapshot: &Snapshot) {
    // Most machines have no deep reads.
    if snapshot.devices.iter().all(|device| device.deep.is_none()) {
        return;
    }
    let links = live(&of_machine(&snapshot.devices), &snapshot.devices).links;
    for family in families {
        let mut lines = text.lines(family);
        for (link, series) in links.iter().flat_map(|link| family.series.iter().map(move |series| (link, series))) {
            lines.line(&labels(link), &series.labels, series.number(link));
        }
    }
}

fn labels(link: &LiveLink) -> String {
    let mut labels = String::with_capacity(80);
    let [one, other] = &link.ends;
    let mut end = |end: &LinkEnd, device: &str, port: &str| {
        text::label(&mut labels, device, &end.id.to_string());
        text::label(&mut labels, port, &end.port.map_or_else(String::new, |port| port.to_string()));
    };
    end(one, "device", "port");
    end(other, "other_device", "other_port");
    labels
}

#[cfg(test)]
mod tests {
    use super::super::{MetricsFormat, MetricsInput, MetricsOptions, ServiceFigures};
    use model::{Deep, Device, DeviceId, Snapshot};

    fn written(has_deep: bool) -> String {
        let mut snapshot = Snapshot::empty();
        for id in [DeviceId::Local(0), DeviceId::Remote(0)] {
            let mut device = Device { board: Some("n300".into()), ..Device::new(id.clone()) };
            if has_deep && id == DeviceId::Local(0) {
                let eth_link_up = (0..16).map(|port| Some(port != 9)).collect();
                device.deep = Some(Box::new(Deep { eth_link_up, ..Deep::default() }));
            }
            snapshot.devices.push(device);
        }
        let options = MetricsOptions { families: vec!["ttmon_ethernet_*".into()], ..MetricsOptions::default() };
        let input = MetricsInput { snapshot: &snapshot, service: ServiceFigures::default(), options: &options };
        super::super::write(&input, MetricsFormat::Prometheus)
    }

    #[test]
    fn a_link_has_a_line_with_both_ends_where_its_state_is_known() {
        expect_test::expect![[r#"
            # HELP ttmon_ethernet_link_up Whether a known Ethernet link is up: it is on a board, or a cluster descriptor has it. Only with deep reads.
            # TYPE ttmon_ethernet_link_up gauge
            ttmon_ethernet_link_up{device="0",port="8",other_device="0R",other_port="0"} 1
            ttmon_ethernet_link_up{device="0",port="9",other_device="0R",other_port="1"} 0
        "#]]
        .assert_eq(&written(true));
        assert_eq!(written(false), "");
    }
}
