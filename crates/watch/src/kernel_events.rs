//! Messages of the kernel as events, with who held the device at that moment.

use model::{DeviceId, Event, HolderAtEvent, KernelEvent, KernelMessage, KernelMessageKind, Snapshot};
use show::command::display_name;
use std::borrow::Cow;

/// So many holders are in the sentence. All are in the event.
const MOST_NAMED: usize = 3;

/// What the kernel's log says now and did not say before.
pub fn news<'a>(before: &'a Snapshot, now: &'a Snapshot) -> impl Iterator<Item = Event> + 'a {
    let known = before.kernel_log.as_deref().unwrap_or_default();
    let new = now.kernel_log.iter().flatten().filter(|message| !known.contains(message));
    let process = |pid: u32| now.processes.iter().chain(&before.processes).find(move |process| process.pid == pid);
    // In the sentence a process is called as in tables; the event has its own name.
    let name = move |pid: u32| process(pid).and_then(display_name).map(Cow::into_owned);
    new.map(move |message| event(message, holders(message, before, now), &name))
}

fn event(message: &KernelMessage, held_by: Vec<HolderAtEvent>, name: &dyn Fn(u32) -> Option<String>) -> Event {
    let KernelMessage { time, kind, weight, device, meaning, count, .. } = message;
    let subject = match (device, &message.pci_address) {
        (Some(DeviceId::NoDriver(address)), _) | (None, Some(address)) => address.to_string(),
        (Some(id), _) => format!("device {id}"),
        (None, None) => "kernel".into(),
    };
    let seconds = message.seconds.map_or(String::new(), |seconds| format!(" in {seconds:.0} s"));
    let said = match kind {
        KernelMessageKind::LostLines if seconds.is_empty() => format!("{} {meaning}", grouped(*count)),
        KernelMessageKind::LostLines => format!("{} {meaning} ({})", grouped(*count), seconds.trim_start()),
        _ if *count == 1 => meaning.clone(),
        _ => format!("{meaning} ({} times{seconds})", grouped(*count)),
    };
    let text = format!("{subject}: {said}{}", held_text(&held_by, name));
    let kernel = KernelEvent { kind: *kind, text: message.text.clone(), count: *count, held_by };
    Event { kernel: Some(Box::new(kernel)), ..Event::new(*time, *weight, device.clone(), text) }
}

/// Who held the device of a message when it was written. The sample has that; of a message that is new, the service may know more of
/// the memory, and a process that was there before may be gone because of what happened.
fn holders(message: &KernelMessage, before: &Snapshot, now: &Snapshot) -> Vec<HolderAtEvent> {
    let mut found: Vec<HolderAtEvent> = Vec::new();
    let mut add = |holder: HolderAtEvent| {
        if !found.iter().any(|known| known.pid == holder.pid) {
            found.push(holder);
        }
    };
    if let Some(device) = message.device.as_ref().filter(|_| message.seconds.is_none()) {
        now.holders(device).for_each(&mut add);
        // Its number may have been another one.
        let address = message.pci_address.as_ref();
        let same =
            before.devices.iter().find(|device| device.id.index().is_some() && device.pci_address.as_ref() == address);
        before.holders(same.map_or(device, |same| &same.id)).for_each(&mut add);
    }
    message.held_by.iter().cloned().for_each(&mut add);
    found.sort_by_key(|holder| holder.pid);
    found
}

fn held_text(held_by: &[HolderAtEvent], name: &dyn Fn(u32) -> Option<String>) -> String {
    if held_by.is_empty() {
        return String::new();
    }
    let named = held_by.iter().take(MOST_NAMED).map(|holder| {
        let name = name(holder.pid).or_else(|| holder.name.clone());
        let facts = name.into_iter().chain(holder.bytes.map(|bytes| bytes.to_string()));
        match facts.collect::<Vec<_>>().join(", ") {
            facts if facts.is_empty() => format!("pid {}", holder.pid),
            facts => format!("pid {} ({facts})", holder.pid),
        }
    });
    let more = match held_by.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(", held by {}{more}", named.collect::<Vec<_>>().join(", "))
}

/// `1,203`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Events;
    use crate::moment::Moment;
    use model::{PciAddress, Timestamp, Weight};
    use show::example;

    fn message(address: &str, count: u64, seconds: Option<f64>) -> KernelMessage {
        KernelMessage {
            time: Timestamp(1500),
            seq: count,
            kind: KernelMessageKind::Timeout,
            weight: Weight::Bad,
            device: Some(DeviceId::Local(0)),
            pci_address: Some(PciAddress(address.into())),
            meaning: "the firmware did not answer the driver in time".into(),
            text: "tenstorrent 0000:01:00.0: Timeout waiting for ARC response".into(),
            count,
            seconds,
            held_by: Vec::new(),
        }
    }

    fn moment(time: i64, messages: Vec<KernelMessage>) -> Snapshot {
        Snapshot { taken_at: Timestamp(time), kernel_log: Some(messages), ..example::machine() }
    }

    fn texts(before: &Snapshot, now: &Snapshot) -> Vec<String> {
        news(before, now).map(|event| event.text).collect()
    }

    #[test]
    fn a_message_is_an_event_once_and_names_who_held_the_device() {
        let address = &*example::machine().devices[0].pci_address.clone().unwrap().0;
        let one = moment(2000, vec![message(address, 1, None)]);
        let held_by = vec![HolderAtEvent { pid: 7, name: None, bytes: None }];
        let flood = KernelMessage { held_by, ..message(address, 1203, Some(10.0)) };
        let nothing = moment(1000, vec![]);
        let expected =
            "device 0: the firmware did not answer the driver in time, held by pid 4711 (serve.py, 12.4 GiB), pid 5120";
        assert_eq!(texts(&nothing, &one), [expected]);
        assert_eq!(texts(&one, &one), [""; 0]);
        let both = moment(3000, vec![message(address, 1, None), flood]);
        // Those who held it when the lines came.
        assert!(
            texts(&one, &both)[0].ends_with("in time (1,203 times in 10 s), held by pid 7"),
            "{:?}",
            texts(&one, &both)
        );
        // A process that is gone since held it.
        let mut gone = one.clone();
        gone.processes.clear();
        assert_eq!(texts(&nothing, &gone), [expected]);
        let [event] = &news(&nothing, &one).collect::<Vec<_>>()[..] else { panic!() };
        let kernel = event.kernel.as_ref().unwrap();
        assert_eq!(
            (kernel.held_by[0].pid, kernel.text.as_str()),
            (4711, one.kernel_log.as_ref().unwrap()[0].text.as_str())
        );
        let text = serde_json::to_string(event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), *event);
    }

    #[test]
    fn a_message_without_a_device_names_what_it_is_about() {
        let bridge = KernelMessage { device: None, ..message("0000:00:01.0", 1, None) };
        let lost = KernelMessage {
            device: None,
            pci_address: None,
            kind: KernelMessageKind::LostLines,
            meaning: "lines were lost".into(),
            ..message("", 1_234_567, Some(10.0))
        };
        let removed = KernelMessage {
            device: Some(DeviceId::NoDriver(PciAddress("0000:09:00.0".into()))),
            ..message("0000:09:00.0", 2, None)
        };
        assert_eq!(
            texts(&moment(1, vec![]), &moment(2, vec![bridge, lost, removed])),
            [
                "0000:00:01.0: the firmware did not answer the driver in time",
                "kernel: 1,234,567 lines were lost (in 10 s)",
                "0000:09:00.0: the firmware did not answer the driver in time (2 times)",
            ]
        );
    }

    #[test]
    fn they_are_among_the_events() {
        let mut events = Events::default();
        let (before, now) = (Moment::of(moment(1000, vec![])), Moment::of(moment(2000, vec![message("x", 1, None)])));
        events.notice(Moment::default().observation(), before.observation());
        assert_eq!(events.notice(before.observation(), now.observation()), 1);
        assert_eq!(events.latest(Timestamp(2000)).next().unwrap().kernel.as_ref().unwrap().count, 1);
    }
}
