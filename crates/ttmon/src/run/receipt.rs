//! The receipt: what the command had of the devices, in words, within 80 columns.

use super::account::{ChipName, End, Fate, Peak, RunAccount, RunProcess, Verdict, peak};
use super::energy::Tally;
use super::time_spent;
use ledger::book::{BookBuffer, MemoryKind};
use model::{Bytes, Device, DeviceId, chip_text};
use show::text::{self, Align, clean, cut, fit, width};
use std::collections::BTreeMap;
use std::time::Duration;

pub const COLUMNS: usize = 80;
const BUFFERS: usize = 20;

/// All of it. `leaks` when a verdict was asked for.
pub fn text(account: &RunAccount, leaks: bool) -> String {
    let mut lines = ReceiptLines(vec![heading(&account.command)]);
    lines.say(&summary(account));
    if account.is_simulated {
        lines.say("the devices are simulated");
    }
    memory(account, &mut lines);
    energy(account, &mut lines);
    time(account, &mut lines);
    endings(account, &mut lines);
    notes(account, &mut lines);
    if leaks {
        lines.say(&match account.verdict() {
            Verdict::Clean => "leaks: none".into(),
            Verdict::Leaks => "leaks: found, so the exit code is 3".into(),
            Verdict::None(why) if account.end.code() == 0 => {
                format!("leaks: no verdict, because {why}, so the exit code is {}", super::NO_VERDICT)
            }
            Verdict::None(why) => format!("leaks: no verdict, because {why}"),
        });
    }
    lines.0.join("\n") + "\n"
}

struct ReceiptLines(Vec<String>);

impl ReceiptLines {
    /// A sentence, broken where it must be.
    fn say(&mut self, text: &str) {
        let mut line = String::new();
        for word in clean(text).split(' ') {
            if !line.trim().is_empty() && width(&line) + 1 + width(word) > COLUMNS {
                self.0.push(std::mem::replace(&mut line, "  ".into()));
            }
            line += if line.trim().is_empty() { "" } else { " " };
            line += word;
        }
        self.0.push(cut(&line, COLUMNS, '…').into_owned());
    }

    /// A line of columns, which are never broken.
    fn row(&mut self, text: &str) {
        self.0.push(cut(text.trim_end(), COLUMNS, '…').into_owned());
    }
}

fn heading(command: &[String]) -> String {
    let command: Vec<String> = command.iter().enumerate().map(|(at, word)| shown(at, word)).collect();
    let command = command.join(" ");
    let begin = format!("── ttmon run ── {} ", cut(&clean(&command), COLUMNS - 20, '…'));
    let rest = COLUMNS.saturating_sub(width(&begin));
    begin + &"─".repeat(rest)
}

/// A word as it would be typed; of the program only the name.
fn shown(at: usize, word: &str) -> String {
    let word = if at == 0 { word.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(word) } else { word };
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+,./:@%^".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn summary(account: &RunAccount) -> String {
    let end = match account.end {
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("killed by {}, exit code {}", text::signal(signal), account.end.code()),
    };
    let mut pids: Vec<u32> = account.processes.iter().map(|process| process.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let books = match pids.len() {
        0 => String::new(),
        n => format!(", {} ran with the agent", counted(n as u64, "process", "processes")),
    };
    format!("{end} after {}{books}", duration(account.duration))
}

fn memory(account: &RunAccount, lines: &mut ReceiptLines) {
    if !account.is_followed {
        lines.say("memory was not followed: TTMON_AGENT disables the agent");
    } else if account.processes.is_empty() && account.remarks.is_empty() {
        lines.say("memory: no process of it used tt-metal with the agent in it");
    }
    let is_unknown = |process: &RunProcess| process.book.is_inexact && process.book.chips.is_empty();
    if account.processes.iter().any(is_unknown) {
        lines.say("memory: not counted where the agent does not recognise tt-metal; see below");
    }
    let lone = account.processes.iter().all(|process| process.pid == account.processes[0].pid);
    for (at, (name, users)) in account.chips().into_iter().enumerate() {
        let device = match name {
            ChipName::Device(id) => account.devices.iter().find(|tally| tally.device.id == *id),
            ChipName::Chip(_) | ChipName::Nth(..) => None,
        };
        let title = match (name, device) {
            (ChipName::Device(_), Some(tally)) => titled(&tally.device),
            (ChipName::Device(id), None) => format!("device {id}"),
            (ChipName::Chip(number), _) => format!("chip {}", chip_text(*number)),
            (ChipName::Nth(_, n), _) if lone => format!("the program's device {n}"),
            (ChipName::Nth(pid, n), _) => format!("device {n} of pid {pid}"),
        };
        lines.row(&columns(&title, if at == 0 { ["peak", "at exit", "allocations"] } else { [""; 3] }));
        chip(&users, lines);
        match time_spent::of_chip(&users) {
            Some(Ok(time)) => lines.row(&format!("  {}", time.text(device, account.duration))),
            Some(Err(why)) => lines.row(&format!("  busy: not known ({})", why.name())),
            None => {}
        }
        if let Some(tally) = device.filter(|tally| tally.is_known()) {
            let word = if tally.energy.is_some() { "energy " } else { "" };
            lines.row(&format!("  {word}{}", taken(tally, account.duration)));
        }
    }
}

/// What the processes had of one chip.
fn chip(users: &[(&RunProcess, usize)], lines: &mut ReceiptLines) {
    let chips = || users.iter().map(|(process, at)| &process.book.chips[*at]);
    let mut is_used = false;
    for kind in MemoryKind::ALL {
        let counters = || chips().map(|chip| chip.counters[kind as usize]);
        let allocations = counters().fold(0u64, |sum, counter| sum.saturating_add(counter.allocations));
        if allocations == 0 {
            continue;
        }
        is_used = true;
        let most = match peak(users, kind) {
            Peak::Exact(bytes) => Bytes(bytes).to_string(),
            Peak::AtMost(bytes) => format!("≤ {}", Bytes(bytes)),
        };
        let last: Bytes = counters().map(|counter| Bytes(counter.bytes)).sum();
        let figures = [&*most, &last.to_string(), &thousands(allocations)];
        lines.row(&columns(&format!("  {}", kind.title()), figures));
    }
    if !is_used {
        lines.row("  nothing was allocated");
    }
    let left: u64 = chips().flat_map(|chip| &chip.counters).map(|counter| counter.left).sum();
    if left > 0 {
        let bytes: Bytes = chips().map(|chip| Bytes(chip.left_bytes)).sum();
        let were = counted(left, "buffer was", "buffers were");
        lines.row(&format!("  {were} still there when the device was closed ({bytes})"));
    }
}

/// The devices that no process used with the agent.
fn energy(account: &RunAccount, lines: &mut ReceiptLines) {
    if let Some(why) = account.no_device {
        lines.say(why);
    }
    let chips = account.chips();
    let is_shown = |tally: &&Tally| chips.contains_key(&ChipName::Device(tally.device.id.clone()));
    let others: Vec<&Tally> = account.devices.iter().filter(|tally| tally.is_known() && !is_shown(tally)).collect();
    // When it is known which devices the command used, the others are summed up.
    let all_named = !chips.is_empty() && chips.keys().all(|name| matches!(name, ChipName::Device(_)));
    if all_named && others.len() > 1 {
        let joules: f64 = others.iter().filter_map(|tally| tally.energy).map(|energy| energy.0).sum();
        let (count, energy) = (others.len(), joules_and_hours(joules));
        lines.say(&format!("{count} other devices, not used with the agent: energy {energy}"));
        return;
    }
    let rows: Vec<(String, String)> =
        others.iter().map(|tally| (titled(&tally.device), taken(tally, account.duration))).collect();
    let longest = rows.iter().map(|(title, _)| width(title)).max().unwrap_or(0);
    let is_narrow = rows.iter().all(|(_, taken)| longest + 2 + width(taken) <= COLUMNS);
    for (title, taken) in rows {
        if is_narrow {
            lines.row(&format!("{}  {taken}", fit(&title, longest, Align::Left, '…')));
        } else {
            lines.row(&title);
            lines.row(&format!("  {taken}"));
        }
    }
}

/// What it waited for, and its operations.
fn time(account: &RunAccount, lines: &mut ReceiptLines) {
    time_spent::waits(account).into_iter().for_each(|waits| lines.say(&waits));
    time_spent::table(&time_spent::operations(account)).iter().for_each(|line| lines.row(line));
}

/// What was still allocated, and how the processes ended.
fn endings(account: &RunAccount, lines: &mut ReceiptLines) {
    let of = |fate: Fate| account.processes.iter().filter(move |process| process.fate == fate);
    list(lines, "still allocated at exit", &of(Fate::Clean).collect::<Vec<_>>());
    let abrupt: Vec<&RunProcess> = of(Fate::Abrupt).collect();
    if !abrupt.is_empty() {
        let ended = counted(abrupt.len() as u64, "process", "processes");
        let held = if abrupt.iter().any(|process| process.live() > 0) {
            "what was held is no leak"
        } else {
            "nothing was held"
        };
        lines.say(&format!("{ended} ended abruptly, by a signal or with an error: {held}"));
        list(lines, "held until then", &abrupt);
    }
    let replaced = of(Fate::Replaced).count() as u64;
    if replaced > 0 {
        let books = counted(replaced, "book", "books");
        lines.say(&format!("{books} ended when a process became another program, by exec"));
    }
    match of(Fate::Running).count() as u64 {
        0 => {}
        1 => lines.say("1 process still runs: its figures are as of now"),
        running => lines.say(&format!("{running} processes still run: their figures are as of now")),
    }
}

fn list(lines: &mut ReceiptLines, title: &str, processes: &[&RunProcess]) {
    let count: u64 = processes.iter().map(|process| process.live()).sum();
    if count == 0 {
        return;
    }
    let all = || processes.iter().flat_map(|process| process.buffers().iter().map(move |buffer| (*process, buffer)));
    let bytes: Bytes = all().map(|(_, buffer)| size(buffer)).sum();
    let bytes = if count == all().count() as u64 { bytes.to_string() } else { format!("at least {bytes}") };
    lines.say(&format!("{title}: {}, {bytes}", counted(count, "buffer", "buffers")));
    let alike = alike(all());
    let listed = &alike[..alike.len().min(BUFFERS)];
    let rows: Vec<[String; 5]> = listed.iter().map(Alike::row).collect();
    let widest = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(widest);
    for (row, alike) in rows.iter().zip(listed) {
        let column = |at: usize| fit(&row[at], widths[at], if at == 2 { Align::Right } else { Align::Left }, '…');
        let columns: [String; 5] = std::array::from_fn(column);
        lines.row(&format!("  {}  {}", columns.join("  "), clean(alike.label)));
    }
    if let Some(more @ 1..) = count.checked_sub(listed.iter().map(|alike| alike.count).sum()) {
        lines.row(&format!("  and {} more", thousands(more)));
    }
}

/// Buffers that differ in nothing but their age, as those that a loop leaks.
struct Alike<'a> {
    pid: u32,
    place: String,
    kind: MemoryKind,
    size: Bytes,
    label: &'a str,
    count: u64,
    ages: (Duration, Duration),
}

/// The largest first, all that are alike together.
fn alike<'a>(buffers: impl Iterator<Item = (&'a RunProcess, &'a BookBuffer)>) -> Vec<Alike<'a>> {
    let mut groups: BTreeMap<(u32, u64, MemoryKind, u64, &str), Alike> = BTreeMap::new();
    for (process, buffer) in buffers {
        let label = buffer.label.as_deref().unwrap_or_default();
        let (pid, kind, size, age) = (process.pid, buffer.kind, size(buffer), process.age(buffer));
        let first = || Alike { pid, place: place(process, buffer), kind, size, label, count: 0, ages: (age, age) };
        let group = groups.entry((pid, buffer.chips.0, kind, size.0, label)).or_insert_with(first);
        group.count += 1;
        group.ages = (group.ages.0.min(age), group.ages.1.max(age));
    }
    let mut alike: Vec<Alike> = groups.into_values().collect();
    alike.sort_by_key(|alike| std::cmp::Reverse(alike.size.0.saturating_mul(alike.count)));
    alike
}

impl Alike<'_> {
    /// Where, what for, how large, whose, and how old.
    fn row(&self) -> [String; 5] {
        let (youngest, oldest) = (duration(self.ages.0), duration(self.ages.1));
        [
            self.place.clone(),
            self.kind.title().into(),
            if self.count > 1 { format!("{} × {}", thousands(self.count), self.size) } else { self.size.to_string() },
            format!("pid {}", self.pid),
            if youngest == oldest { format!("age {oldest}") } else { format!("age ≤ {oldest}") },
        ]
    }
}

fn place(process: &RunProcess, buffer: &BookBuffer) -> String {
    let mut chips = buffer.chips.iter().filter_map(|at| process.chips.get(usize::from(at)));
    match (chips.next(), chips.count()) {
        (Some(ChipName::Device(id)), 0) => format!("device {id}"),
        (Some(ChipName::Nth(_, n)), 0) => format!("its device {n}"),
        (Some(ChipName::Chip(number)), 0) => format!("chip …{:04X}", number & 0xFFFF),
        (_, more) => format!("{} chips", more + 1),
    }
}

/// Over all of its chips.
fn size(buffer: &BookBuffer) -> Bytes {
    Bytes(buffer.bytes().saturating_mul(buffer.chips.0.count_ones().into()))
}

/// One line for each thing that a reader should know before trusting the figures.
fn notes(account: &RunAccount, lines: &mut ReceiptLines) {
    let some = |n: u64, one: &str, several: &str| (n > 0).then(|| counted(n, one, several));
    for RunProcess { pid, book, table, .. } in &account.processes {
        let (moved, unreadable) = table.as_ref().map_or((false, 0), |table| (table.moved, table.unreadable));
        let notes = [
            book.remark.clone(),
            book.is_inexact.then(|| "the agent's data is incomplete, and its figures are not exact".into()),
            some(book.untabled, "buffer", "buffers")
                .map(|buffers| format!("the list had no room for {buffers}; the sums above count them")),
            some(book.unknown_frees, "buffer was", "buffers were")
                .map(|frees| format!("{frees} freed that the agent had not seen allocated")),
            (!book.is_of_one_moment)
                .then(|| "caught in the middle of a change; its sums may be one event apart".into()),
            table.as_ref().err().map(|error| format!("the list of live buffers cannot be read: {error}")),
            moved.then(|| "the list of live buffers is not of one moment".into()),
            some(unreadable, "live buffer", "live buffers").map(|entries| format!("{entries} cannot be read")),
        ];
        notes.into_iter().flatten().for_each(|note| lines.say(&format!("pid {pid}: {note}")));
    }
    account.remarks.iter().for_each(|remark| lines.say(remark));
}

fn titled(device: &Device) -> String {
    let (id, board) = (&device.id, device.board.as_deref().unwrap_or("–"));
    let address = device.pci_address.as_ref().filter(|_| !matches!(id, DeviceId::NoDriver(_)));
    format!("device {id:<2} {} {}", clean(board), address.map_or("", |address| &address.0)).trim_end().to_owned()
}

fn taken(tally: &Tally, duration: Duration) -> String {
    let mut parts = Vec::new();
    if let Some(energy) = tally.energy {
        let over = match tally.covers(duration) {
            true => String::new(),
            false => format!(" in {} that are known", self::duration(tally.known)),
        };
        parts.push(format!("{}{over}", joules_and_hours(energy.0)));
    }
    parts.extend(tally.peak_power.map(|power| format!("peak {power}")));
    parts.extend(tally.peak_temp.map(|temp| if parts.len() > 1 { temp.to_string() } else { format!("peak {temp}") }));
    parts.join(", ")
}

pub fn joules_and_hours(joules: f64) -> String {
    let hours = joules / 3600.0;
    let decimals = if hours < 100.0 { 3 } else { 0 };
    let tenths = (joules * 10.0).round() as u64;
    format!("{}.{} J ({hours:.decimals$} Wh)", thousands(tenths / 10), tenths % 10)
}

fn columns(title: &str, [peak, last, allocations]: [&str; 3]) -> String {
    let right = |text: &str, columns| fit(text, columns, Align::Right, '…');
    let title = fit(title, 34, Align::Left, '…');
    format!("{title}{}{}{}", right(peak, 16), right(last, 15), right(allocations, 15))
}

pub fn counted(n: u64, one: &str, several: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { several })
}

pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        0 if time.as_millis() < 100 => format!("{} ms", time.as_millis()),
        0..60 => format!("{:.1} s", (time.as_secs_f64() * 10.0).floor() / 10.0),
        s @ 60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{} h {:02} min", s / 3600, s / 60 % 60),
    }
}
