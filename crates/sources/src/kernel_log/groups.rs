//! Messages out of lines: those that differ only in their numbers are one message, with a count.
//!
//! A new message is reported at once. Lines like it are then counted, and reported together: after ten seconds, then after a minute,
//! then every ten minutes, for as long as they come.

use super::meaning::{Meaning, message};
use model::text::clean;
use model::{DeviceId, KernelMessage, KernelMessageKind, PciAddress, Snapshot, Timestamp, Weight};
use std::collections::BTreeMap;

/// How long lines are counted before they are reported again, in milliseconds.
const WINDOWS: [i64; 3] = [10_000, 60_000, 600_000];
/// So many different messages are told apart. What comes beyond them is counted.
const MOST_GROUPS: usize = 256;
/// So many more of those that matter most have room.
const MORE_BAD: usize = 64;
/// So many are reported with one sample. The others follow with the next.
const MOST_REPORTED: usize = 16;
/// How long a message stays in snapshots, in milliseconds, and how many do.
const KEPT_FOR: i64 = 60_000;
const MOST_KEPT: usize = 64;
/// So many holders of a device are named.
const MOST_HOLDERS: usize = 16;
/// The longest text that is kept.
const LONGEST: usize = 512;

/// Messages that are counted, and those that were reported in the last minute.
#[derive(Debug, Default)]
pub struct Groups {
    all: BTreeMap<Key, Group>,
    /// With the moment when they were reported.
    kept: Vec<(Timestamp, KernelMessage)>,
    /// Lines that there was no room for.
    left_out: u64,
    /// What the last line was added to.
    last: Option<Key>,
}

type Key = (Option<PciAddress>, KernelMessageKind, String);

#[derive(Debug)]
struct Group {
    message: KernelMessage,
    /// Lines that were not reported yet.
    count: u64,
    /// Lines came since the holders were noted.
    is_new: bool,
    /// When the lines that are counted now began to be counted. Absent before the first report.
    since: Option<Timestamp>,
    /// Which of the windows it is in.
    window: usize,
}

impl Groups {
    /// Adds a line.
    pub fn add(&mut self, time: Timestamp, seq: u64, text: &str, meaning: Meaning) {
        let text = cut(text);
        if meaning.is_detail && self.add_detail(text, &meaning) {
            return;
        }
        let Meaning { kind, weight, device, pci_address, sentence, .. } = meaning;
        let words = sentence.unwrap_or(message(text));
        let key = (pci_address, kind, sentence.map_or_else(|| without_numbers(text), str::to_owned));
        self.last = Some(key.clone());
        let is_full = self.all.len() >= MOST_GROUPS + if weight == Weight::Bad { MORE_BAD } else { 0 };
        if let Some(group) = self.all.get_mut(&key) {
            if group.count == 0 {
                group.message.time = time;
            }
            group.count += 1;
            group.is_new = true;
            // The number of the device may be another one now.
            (group.message.seq, group.message.text, group.message.device) = (seq, clean(text).into_owned(), device);
            return;
        }
        if is_full {
            self.left_out += 1;
            return;
        }
        let (meaning, text) = (clean(words).into_owned(), clean(text).into_owned());
        let message = new_message(time, seq, kind, weight, device, key.0.clone(), meaning, text);
        self.all.insert(key, Group { message, count: 1, is_new: true, since: None, window: 0 });
    }

    /// Adds a detail to the message that it belongs to. Whether there is one.
    fn add_detail(&mut self, text: &str, detail: &Meaning) -> bool {
        let last = self.last.as_ref().filter(|last| last.0 == detail.pci_address && last.1 == detail.kind);
        let Some(group) = last.and_then(|last| self.all.get_mut(last)).filter(|group| group.count > 0) else {
            return false;
        };
        let text = clean(message(text).trim());
        let known = &mut group.message;
        known.weight = known.weight.max(detail.weight);
        if !known.text.contains(&*text) && known.text.len() + text.len() + 2 <= LONGEST {
            known.text += &format!("; {text}");
        }
        true
    }

    /// Adds lines that the kernel has overwritten before they were read, up to this number.
    pub fn add_lost(&mut self, time: Timestamp, seq: u64, lines: u64) {
        let key = (None, KernelMessageKind::LostLines, String::new());
        let meaning = "lines of the kernel's log were overwritten before they were read";
        let group = self.all.entry(key).or_insert_with(|| {
            let kind = KernelMessageKind::LostLines;
            let message = new_message(time, seq, kind, Weight::Warning, None, None, meaning.into(), String::new());
            Group { message, count: 0, is_new: false, since: None, window: 0 }
        });
        if group.count == 0 {
            group.message.time = time;
        }
        group.message.seq = seq;
        group.count = group.count.saturating_add(lines);
    }

    /// Notes who holds the devices that lines came of since the last time.
    pub fn note_holders(&mut self, snapshot: &Snapshot) {
        for group in self.all.values_mut().filter(|group| group.is_new) {
            group.is_new = false;
            let KernelMessage { device, held_by, .. } = &mut group.message;
            let Some(device) = device else { continue };
            for holder in snapshot.holders(device).take(MOST_HOLDERS) {
                match held_by.iter().position(|known| known.pid == holder.pid) {
                    Some(at) => held_by[at] = holder,
                    None if held_by.len() < MOST_HOLDERS => held_by.push(holder),
                    None => {}
                }
            }
        }
    }

    /// What was reported in the last minute, the oldest first. Called once with each sample.
    pub fn report(&mut self, now: Timestamp) -> Vec<KernelMessage> {
        if self.left_out > 0 {
            self.report_left_out(now);
        }
        self.kept.retain(|(reported, _)| (0..KEPT_FOR).contains(&(now.0 - reported.0)));
        let is_due = |group: &Group| match group.since {
            None => true,
            Some(since) => !(0..WINDOWS[group.window]).contains(&(now.0 - since.0)),
        };
        let mut due: Vec<&mut Group> = self.all.values_mut().filter(|group| is_due(group) && group.count > 0).collect();
        // What matters most comes with this sample.
        due.sort_by_key(|group| (std::cmp::Reverse(group.message.weight), group.message.seq));
        let mut new: Vec<KernelMessage> = due.into_iter().take(MOST_REPORTED).map(|group| group.report(now)).collect();
        new.sort_by_key(|message| message.seq);
        self.kept.extend(new.into_iter().map(|message| (now, message)));
        self.kept.drain(..self.kept.len().saturating_sub(MOST_KEPT));
        // One whose window is over without another line is news again the next time.
        self.all.retain(|_, group| group.count > 0 || !is_due(group));
        self.kept.iter().map(|(_, message)| message.clone()).collect()
    }

    fn report_left_out(&mut self, now: Timestamp) {
        let lines = std::mem::take(&mut self.left_out);
        let meaning = format!("{MOST_GROUPS} different messages about devices: more are not listed");
        let seq = self.all.values().map(|group| group.message.seq).max().unwrap_or(0);
        let key = (None, KernelMessageKind::Other, String::new());
        let group = self.all.entry(key).or_insert_with(|| {
            let (kind, weight) = (KernelMessageKind::Other, Weight::Warning);
            let message = new_message(now, seq, kind, weight, None, None, meaning, String::new());
            Group { message, count: 0, is_new: false, since: None, window: 0 }
        });
        group.message.seq = seq;
        group.count += lines;
    }
}

impl Group {
    fn report(&mut self, now: Timestamp) -> KernelMessage {
        let count = std::mem::take(&mut self.count);
        let seconds = self.since.map(|since| (now.0 - since.0).max(0) as f64 / 1000.0);
        if self.since.replace(now).is_some() {
            self.window = (self.window + 1).min(WINDOWS.len() - 1);
        }
        let held_by = std::mem::take(&mut self.message.held_by);
        KernelMessage { count, seconds: seconds.filter(|_| count > 1), held_by, ..self.message.clone() }
    }
}

#[expect(clippy::too_many_arguments, reason = "they are the fields of the message")]
fn new_message(
    time: Timestamp,
    seq: u64,
    kind: KernelMessageKind,
    weight: Weight,
    device: Option<DeviceId>,
    pci_address: Option<PciAddress>,
    meaning: String,
    text: String,
) -> KernelMessage {
    KernelMessage {
        time,
        seq,
        kind,
        weight,
        device,
        pci_address,
        meaning,
        text,
        count: 1,
        seconds: None,
        held_by: vec![],
    }
}

/// At most so long, cut between two letters.
fn cut(text: &str) -> &str {
    let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The text with `#` for each word that has a digit.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let (word, end) = match word.char_indices().next_back() {
            Some((at, last)) if !last.is_ascii_alphanumeric() => word.split_at(at),
            _ => (word, ""),
        };
        plain += if word.bytes().any(|b| b.is_ascii_digit()) { "#" } else { word };
        plain += end;
    }
    plain
}
