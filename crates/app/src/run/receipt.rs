//! The receipt: what the command had of the devices, in words, within 80 columns.

use super::account::{Account, ChipName, End, Fate, Peak, Process, Verdict, peak};
use super::energy::Tally;
use crate::text::{Align, clean, cut, fit, width};
use ledger::book::{Buffer, Kind};
use model::{Bytes, Device, DeviceId};
use std::collections::BTreeMap;
use std::time::Duration;

const COLUMNS: usize = 80;
/// The most lines about buffers.
const BUFFERS: usize = 20;

/// All of it. `leaks` when a verdict was asked for.
pub fn text(account: &Account, leaks: bool) -> String {
    let mut lines = Lines(vec![heading(&account.command)]);
    lines.say(&summary(account));
    if account.is_simulated {
        lines.say("the devices are simulated");
    }
    memory(account, &mut lines);
    energy(account, &mut lines);
    endings(account, &mut lines);
    notes(account, &mut lines);
    if leaks {
        lines.say(&match account.verdict() {
            Verdict::Clean => "leaks: none".into(),
            Verdict::Leaks => "leaks: found, so the exit code is 3".into(),
            Verdict::None(why) => format!("leaks: no verdict, because {why}"),
        });
    }
    lines.0.join("\n") + "\n"
}

struct Lines(Vec<String>);

impl Lines {
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

fn summary(account: &Account) -> String {
    let end = match account.end {
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("killed by {name}, exit code {}", account.end.code()),
            None => format!("killed by signal {signal}, exit code {}", account.end.code()),
        },
    };
    let mut pids: Vec<u32> = account.processes.iter().map(|process| process.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let books = match pids.len() {
        0 => String::new(),
        n => format!(", {} kept a book", counted(n as u64, "process", "processes")),
    };
    format!("{end} after {}{books}", duration(account.duration))
}

fn memory(account: &Account, lines: &mut Lines) {
    if !account.is_followed {
        lines.say("memory was not followed: TTMON_AGENT switches the agent off");
    } else if account.processes.is_empty() && account.remarks.is_empty() {
        lines.say("memory: no process of it used tt-metal with the agent in it");
    }
    let lone = account.processes.iter().all(|process| process.pid == account.processes[0].pid);
    let mut is_first = true;
    for (name, users) in account.chips() {
        let device = device_of(account, name);
        let title = match (name, device) {
            (ChipName::Device(id), Some(tally)) => format!("device {}", titled(id, &tally.device)),
            (ChipName::Device(id), None) => format!("device {id}"),
            (ChipName::Chip(number), _) => format!("chip {number:016X}"),
            (ChipName::Nth(_, n), _) if lone => format!("the program's device {n}"),
            (ChipName::Nth(pid, n), _) => format!("device {n} of pid {pid}"),
        };
        let heads = if is_first { ["peak", "at exit", "allocations"] } else { [""; 3] };
        lines.row(&columns(&title, heads));
        is_first = false;
        let mut is_used = false;
        for kind in Kind::ALL {
            let counters = || users.iter().map(|(process, at)| process.book.chips[*at].counters[kind as usize]);
            let allocations = counters().fold(0u64, |sum, counter| sum.saturating_add(counter.allocations));
            if allocations == 0 {
                continue;
            }
            is_used = true;
            let most = match peak(&users, kind) {
                Peak::Exact(bytes) => Bytes(bytes).to_string(),
                Peak::AtMost(bytes) => format!("≤ {}", Bytes(bytes)),
            };
            let last: Bytes = counters().map(|counter| Bytes(counter.bytes)).sum();
            let figures = [&*most, &last.to_string(), &thousands(allocations)];
            lines.row(&columns(&format!("  {}", kind_name(kind)), figures));
        }
        if !is_used {
            lines.row("  nothing was allocated");
        }
        let left: u64 = users.iter().flat_map(|(process, at)| &process.book.chips[*at].counters).map(|c| c.left).sum();
        if left > 0 {
            let bytes: Bytes = users.iter().map(|(process, at)| Bytes(process.book.chips[*at].left_bytes)).sum();
            let were = if left == 1 { "buffer was" } else { "buffers were" };
            lines.row(&format!("  {} {were} still there when the device was closed ({bytes})", thousands(left)));
        }
        if let Some(tally) = device.filter(|tally| tally.is_known()) {
            let word = if tally.energy.is_some() { "energy " } else { "" };
            lines.row(&format!("  {word}{}", taken(tally, account.duration)));
        }
    }
}

/// The devices that no book tells of.
fn energy(account: &Account, lines: &mut Lines) {
    if let Some(why) = account.no_device {
        lines.say(why);
    }
    let chips = account.chips();
    let is_told = |tally: &&Tally| chips.contains_key(&ChipName::Device(tally.device.id.clone()));
    let others: Vec<&Tally> =
        account.devices.iter().filter(|tally| tally.is_known()).filter(|tally| !is_told(tally)).collect();
    // When it is known which devices the command used, the others have their own story.
    let all_named = !chips.is_empty() && chips.keys().all(|name| matches!(name, ChipName::Device(_)));
    if all_named && others.len() > 1 {
        let joules: f64 = others.iter().filter_map(|tally| tally.energy).map(|energy| energy.0).sum();
        lines.say(&format!(
            "{} other devices, of which no book tells: energy {}",
            others.len(),
            joules_and_hours(joules)
        ));
        return;
    }
    let rows = others.iter().map(|tally| {
        let title = format!("device {}", titled(&tally.device.id, &tally.device));
        (title, taken(tally, account.duration))
    });
    let rows: Vec<(String, String)> = rows.collect();
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

/// What was still allocated, and how the processes ended.
fn endings(account: &Account, lines: &mut Lines) {
    let of = |fate: Fate| account.processes.iter().filter(move |process| process.fate == fate);
    list(lines, "still allocated at exit", &of(Fate::Clean).collect::<Vec<_>>());
    let abrupt: Vec<&Process> = of(Fate::Abrupt).collect();
    if !abrupt.is_empty() {
        let ended = counted(abrupt.len() as u64, "process", "processes");
        lines.say(&format!("{ended} ended abruptly, by a signal or _exit: what was held is no leak"));
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

fn list(lines: &mut Lines, title: &str, processes: &[&Process]) {
    let count: u64 = processes.iter().map(|process| process.live()).sum();
    if count == 0 {
        return;
    }
    let all = || processes.iter().flat_map(|process| process.buffers().iter().map(move |buffer| (*process, buffer)));
    let bytes: Bytes = all().map(|(_, buffer)| size(buffer)).sum();
    let bytes = if count == all().count() as u64 { bytes.to_string() } else { format!("at least {bytes}") };
    lines.say(&format!("{title}: {}, {bytes}", counted(count, "buffer", "buffers")));
    let alike = alike(all());
    let told = &alike[..alike.len().min(BUFFERS)];
    let rows: Vec<[String; 5]> = told.iter().map(Alike::row).collect();
    let widest = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(widest);
    for (row, alike) in rows.iter().zip(told) {
        let column = |at: usize| fit(&row[at], widths[at], if at == 2 { Align::Right } else { Align::Left }, '…');
        let columns: [String; 5] = std::array::from_fn(column);
        lines.row(&format!("  {}  {}", columns.join("  "), clean(alike.label)));
    }
    if let Some(more @ 1..) = count.checked_sub(told.iter().map(|alike| alike.count).sum()) {
        lines.row(&format!("  and {} more", thousands(more)));
    }
}

/// Buffers that differ in nothing but their age, as those that a loop leaks.
struct Alike<'a> {
    pid: u32,
    place: String,
    kind: Kind,
    size: Bytes,
    label: &'a str,
    count: u64,
    ages: (Duration, Duration),
}

/// The largest first, all that are alike together.
fn alike<'a>(buffers: impl Iterator<Item = (&'a Process, &'a Buffer)>) -> Vec<Alike<'a>> {
    let mut groups: BTreeMap<(u32, u64, Kind, u64, &str), Alike> = BTreeMap::new();
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
            kind_name(self.kind).into(),
            if self.count > 1 { format!("{} × {}", thousands(self.count), self.size) } else { self.size.to_string() },
            format!("pid {}", self.pid),
            if youngest == oldest { format!("age {oldest}") } else { format!("age ≤ {oldest}") },
        ]
    }
}

/// Where a buffer is.
fn place(process: &Process, buffer: &Buffer) -> String {
    let mut chips = buffer.chips.iter().filter_map(|at| process.chips.get(usize::from(at)));
    match (chips.next(), chips.count()) {
        (Some(ChipName::Device(id)), 0) => format!("device {id}"),
        (Some(ChipName::Nth(_, n)), 0) => format!("its device {n}"),
        (Some(ChipName::Chip(number)), 0) => format!("chip …{:04X}", number & 0xFFFF),
        (_, more) => format!("{} chips", more + 1),
    }
}

/// Over all of its chips.
fn size(buffer: &Buffer) -> Bytes {
    Bytes(buffer.bytes().saturating_mul(buffer.chips.0.count_ones().into()))
}

/// One line for each thing that a reader should know before believing the figures.
fn notes(account: &Account, lines: &mut Lines) {
    for process in &account.processes {
        let Process { pid, book, .. } = process;
        if let Some(remark) = &book.remark {
            lines.say(&format!("pid {pid}: {remark}"));
        }
        if book.is_inexact {
            lines.say(&format!("pid {pid}: the book is incomplete, and its figures are not exact"));
        }
        if book.untabled > 0 {
            let buffers = counted(book.untabled, "buffer", "buffers");
            lines.say(&format!("pid {pid}: the list had no room for {buffers}; the sums above count them"));
        }
        if book.unknown_frees > 0 {
            let frees = counted(book.unknown_frees, "buffer was", "buffers were");
            lines.say(&format!("pid {pid}: {frees} freed of which the book did not know"));
        }
        if !book.is_of_one_moment {
            lines.say(&format!("pid {pid}: caught in the middle of a change; its sums may be one event apart"));
        }
        match &process.table {
            Err(error) => lines.say(&format!("pid {pid}: the list of live buffers cannot be read: {error}")),
            Ok(table) if table.moved => {
                lines.say(&format!("pid {pid}: the list of live buffers is not of one moment"));
            }
            Ok(_) => {}
        }
        if let Ok(table) = &process.table
            && table.unreadable > 0
        {
            let entries = counted(table.unreadable, "live buffer", "live buffers");
            lines.say(&format!("pid {pid}: {entries} cannot be read"));
        }
    }
    account.remarks.iter().for_each(|remark| lines.say(remark));
}

fn device_of<'a>(account: &'a Account, name: &ChipName) -> Option<&'a Tally> {
    let ChipName::Device(id) = name else { return None };
    account.devices.iter().find(|tally| tally.device.id == *id)
}

fn titled(id: &DeviceId, device: &Device) -> String {
    let board = device.board.as_deref().unwrap_or("–");
    let address = device.pci_address.as_ref().filter(|_| !matches!(id, DeviceId::NoDriver(_)));
    format!("{id:<2} {} {}", clean(board), address.map_or("", |address| &address.0)).trim_end().to_owned()
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

fn joules_and_hours(joules: f64) -> String {
    let hours = joules / 3600.0;
    let decimals = if hours < 100.0 { 3 } else { 0 };
    let whole = thousands(joules.trunc() as u64);
    // The digit behind the point may carry over.
    let tenths = format!("{:.1}", joules.fract());
    match tenths.strip_prefix('0') {
        Some(fraction) => format!("{whole}{fraction} J ({hours:.decimals$} Wh)"),
        None => format!("{}.0 J ({hours:.decimals$} Wh)", thousands(joules.trunc() as u64 + 1)),
    }
}

fn columns(title: &str, [peak, last, allocations]: [&str; 3]) -> String {
    let right = |text: &str, columns| fit(text, columns, Align::Right, '…');
    let title = fit(title, 34, Align::Left, '…');
    format!("{title}{}{}{}", right(peak, 16), right(last, 15), right(allocations, 15))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Dram => "DRAM",
        Kind::L1 => "L1",
        Kind::L1Small => "L1_SMALL",
        Kind::Trace => "TRACE",
        Kind::Cb => "CB",
        Kind::Kernel => "KERNEL",
    }
}

fn counted(n: u64, one: &str, several: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { several })
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn duration(time: Duration) -> String {
    match time.as_secs() {
        0 if time.as_millis() < 100 => format!("{} ms", time.as_millis()),
        0..60 => format!("{:.1} s", (time.as_secs_f64() * 10.0).floor() / 10.0),
        s @ 60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{} h {:02} min", s / 3600, s / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::tests::{SECOND, asic, new, p150a, process_of};
    use super::super::energy::Meter;
    use super::super::json;
    use super::*;
    use expect_test::{Expect, expect, expect_file};
    use ledger::book::{Banks, Chips};
    use model::{Celsius, Timestamp, Watts};

    /// Twelve seconds of these devices, at so many watts.
    fn metered(devices: &[(Device, f64)], gap: bool) -> Vec<Tally> {
        let mut meter = Meter::new(Duration::from_secs(2));
        for second in (0u32..=12).filter(|second| !gap || ![3, 4, 5].contains(second)) {
            let read = |(device, watts): &(Device, f64)| {
                let mut device = device.clone();
                device.power = Some(Watts(watts + f64::from(second)));
                device.asic_temp = Some(Celsius(49.25 + f64::from(second)));
                device.sample_age_seconds = Some(0.0);
                device
            };
            meter.add(Duration::from_secs(second.into()), &devices.iter().map(read).collect::<Vec<_>>());
        }
        meter.tallies()
    }

    fn account(processes: Vec<Process>, devices: Vec<Tally>) -> Account {
        Account {
            command: ["/usr/bin/python3", "serve.py", "--model", "llama 3"].map(str::to_owned).to_vec(),
            began: Timestamp(1_767_323_045_678),
            duration: Duration::from_millis(12_020),
            end: End::Code(0),
            is_followed: true,
            processes,
            no_device: devices.is_empty().then_some("energy: there is no Tenstorrent device here"),
            devices,
            is_simulated: false,
            remarks: vec![],
        }
    }

    fn check(account: &Account, leaks: bool, expected: Expect) {
        let text = text(account, leaks);
        let widest = text.lines().map(width).max().unwrap();
        assert!(widest <= COLUMNS, "{widest}: {text}");
        expected.assert_eq(&text);
    }

    fn server(pid: u32, fate: Fate) -> Process {
        process_of(pid, fate, &[p150a(0), p150a(1)], |writer| {
            let first = Chips::one(writer.chip(0, Some(asic(0))).unwrap());
            let both = first | Chips::one(writer.chip(1, Some(asic(1))).unwrap());
            for id in 100..4_000 {
                writer.allocate(&new(id, first, Kind::Dram, 32 << 20, 8, ""));
                writer.free(id);
            }
            writer.allocate(&new(1, both, Kind::Dram, 64 << 20, 8, "kv-cache"));
            writer.allocate(&new(2, first, Kind::L1, 1024, 128, "attention \u{1b}[2J mask"));
            writer.allocate(&new(3, first, Kind::L1, 2048, 128, ""));
            writer.banks(
                0,
                Kind::L1,
                Banks { banks: 128, allocatable: 9000, allocated: 3072, free: 5928, largest_free: 1482 },
            );
        })
    }

    #[test]
    fn a_server_that_leaks() {
        let devices = metered(&[(p150a(0), 60.0), (p150a(1), 20.0), (p150a(2), 18.0), (p150a(3), 18.0)], false);
        check(
            &account(vec![server(4711, Fate::Clean)], devices),
            true,
            expect![[r#"
                ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
                exit code 0 after 12.0 s, 1 process kept a book
                device 0  p150a 0000:01:00.0                  peak        at exit    allocations
                  DRAM                                   512.0 MiB      512.0 MiB          3,901
                  L1                                     384.0 KiB      384.0 KiB              2
                  energy 792.0 J (0.220 Wh), peak 72.0 W, 61.2 °C
                device 1  p150a 0000:02:00.0
                  DRAM                                   512.0 MiB      512.0 MiB              1
                  energy 312.0 J (0.087 Wh), peak 32.0 W, 61.2 °C
                2 other devices, of which no book tells: energy 576.0 J (0.160 Wh)
                still allocated at exit: 3 buffers, 1.0 GiB
                  2 chips   DRAM    1.0 GiB  pid 4711  age 11.9 s  kv-cache
                  device 0  L1    256.0 KiB  pid 4711  age 11.7 s
                  device 0  L1    128.0 KiB  pid 4711  age 11.8 s  attention ?[2J mask
                leaks: found, so the exit code is 3
            "#]],
        );
    }

    #[test]
    fn the_same_for_programs() {
        let devices = metered(&[(p150a(0), 60.0), (p150a(1), 20.0)], false);
        let text = json::text(&account(vec![server(4711, Fate::Clean)], devices));
        expect_file!["../../tests/golden/run-receipt.json"].assert_eq(&text);
    }

    #[test]
    fn two_processes_on_one_chip_of_which_one_was_killed() {
        let mut killed = account(
            vec![server(4711, Fate::Abrupt), server(4712, Fate::Running)],
            metered(&[(p150a(0), 60.0), (p150a(1), 20.0)], true),
        );
        killed.end = End::Signal(9);
        check(
            &killed,
            true,
            expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            killed by SIGKILL, exit code 137 after 12.0 s, 2 processes kept a book
            device 0  p150a 0000:01:00.0                  peak        at exit    allocations
              DRAM                                   ≤ 1.0 GiB        1.0 GiB          7,802
              L1                                   ≤ 768.0 KiB      768.0 KiB              4
              energy 536.0 J (0.149 Wh) in 8.0 s that are known, peak 72.0 W, 61.2 °C
            device 1  p150a 0000:02:00.0
              DRAM                                   ≤ 1.0 GiB        1.0 GiB              2
              energy 216.0 J (0.060 Wh) in 8.0 s that are known, peak 32.0 W, 61.2 °C
            1 process ended abruptly, by a signal or _exit: what was held is no leak
            held until then: 3 buffers, 1.0 GiB
              2 chips   DRAM    1.0 GiB  pid 4711  age 11.9 s  kv-cache
              device 0  L1    256.0 KiB  pid 4711  age 11.7 s
              device 0  L1    128.0 KiB  pid 4711  age 11.8 s  attention ?[2J mask
            1 process still runs: its figures are as of now
            leaks: no verdict, because the command was killed
        "#]],
        );
    }

    #[test]
    fn a_device_that_was_closed_under_its_buffers_and_many_that_leak() {
        let process = |pid| {
            process_of(pid, Fate::Clean, &[], |writer| {
                let chip = Chips::one(writer.chip(0, None).unwrap());
                writer.allocate(&new(1, chip, Kind::Trace, 4096, 8, ""));
                writer.clear(7, Chips(1));
                for id in 1..=23 {
                    let label = if id == 23 { "a label that is as long as labels can be, fifty-six bytes" } else { "" };
                    writer.allocate(&new(id, chip, Kind::L1, 32 * id, 64, label));
                }
                (30..1_080).for_each(|id| writer.allocate(&new(id, chip, Kind::L1, 32, 64, "")));
            })
        };
        let mut many = account(vec![process(4711)], vec![]);
        check(
            &many,
            false,
            expect![[r#"
                ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
                exit code 0 after 12.0 s, 1 process kept a book
                the program's device 0                        peak        at exit    allocations
                  L1                                       2.6 MiB        2.6 MiB          1,073
                  TRACE                                   32.0 KiB            0 B              1
                  1 buffer was still there when the device was closed (32.0 KiB)
                energy: there is no Tenstorrent device here
                still allocated at exit: 1,073 buffers, 2.6 MiB
                  its device 0  L1  1,051 × 2.0 KiB  pid 4711  age ≤ 11.9 s
                  its device 0  L1         46.0 KiB  pid 4711  age 9.7 s     a label that is as…
                  its device 0  L1         44.0 KiB  pid 4711  age 9.8 s
                  its device 0  L1         42.0 KiB  pid 4711  age 9.9 s
                  its device 0  L1         40.0 KiB  pid 4711  age 10.0 s
                  its device 0  L1         38.0 KiB  pid 4711  age 10.1 s
                  its device 0  L1         36.0 KiB  pid 4711  age 10.2 s
                  its device 0  L1         34.0 KiB  pid 4711  age 10.3 s
                  its device 0  L1         32.0 KiB  pid 4711  age 10.4 s
                  its device 0  L1         30.0 KiB  pid 4711  age 10.5 s
                  its device 0  L1         28.0 KiB  pid 4711  age 10.6 s
                  its device 0  L1         26.0 KiB  pid 4711  age 10.7 s
                  its device 0  L1         24.0 KiB  pid 4711  age 10.8 s
                  its device 0  L1         22.0 KiB  pid 4711  age 10.9 s
                  its device 0  L1         20.0 KiB  pid 4711  age 11.0 s
                  its device 0  L1         18.0 KiB  pid 4711  age 11.1 s
                  its device 0  L1         16.0 KiB  pid 4711  age 11.2 s
                  its device 0  L1         14.0 KiB  pid 4711  age 11.3 s
                  its device 0  L1         12.0 KiB  pid 4711  age 11.4 s
                  its device 0  L1         10.0 KiB  pid 4711  age 11.5 s
                  and 3 more
            "#]],
        );
        many.processes.push(process(4_194_303));
        let text = text(&many, false);
        assert!(text.contains("\ndevice 0 of pid 4711 ") && text.contains("\ndevice 0 of pid 4194303\n"), "{text}");
    }

    #[test]
    fn nothing_is_made_up() {
        let mut nothing = account(vec![], vec![]);
        nothing.duration = Duration::from_millis(3);
        check(
            &nothing,
            true,
            expect![[r#"
                ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
                exit code 0 after 3 ms
                memory: no process of it used tt-metal with the agent in it
                energy: there is no Tenstorrent device here
                leaks: no verdict, because no process kept a book
            "#]],
        );
        nothing.is_followed = false;
        nothing.end = End::Code(1);
        check(
            &nothing,
            false,
            expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            exit code 1 after 3 ms
            memory was not followed: TTMON_AGENT switches the agent off
            energy: there is no Tenstorrent device here
        "#]],
        );
    }

    #[test]
    fn devices_of_which_no_book_tells_have_a_line_each() {
        let devices = metered(&[(p150a(0), 60.0), (p150a(1), 12_345.6)], false);
        check(
            &account(vec![], devices),
            false,
            expect![[r#"
                ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
                exit code 0 after 12.0 s
                memory: no process of it used tt-metal with the agent in it
                device 0  p150a 0000:01:00.0  792.0 J (0.220 Wh), peak 72.0 W, 61.2 °C
                device 1  p150a 0000:02:00.0  148,219.2 J (41.172 Wh), peak 12357.6 W, 61.2 °C
            "#]],
        );
    }

    #[test]
    fn doubts_are_told() {
        let mut process = process_of(4711, Fate::Clean, &[], |writer| {
            let chip = Chips::one(writer.chip(0, Some(0xABCD)).unwrap());
            writer.allocate(&new(1, chip, Kind::Dram, 1024, 8, ""));
            writer.remark("the library has no accessors that this agent knows of, and its layouts could not be learnt");
            writer.free(99);
        });
        process.book.is_inexact = true;
        process.book.untabled = 2;
        process.book.is_of_one_moment = false;
        process.table.as_mut().unwrap().moved = true;
        let mut second = process_of(4712, Fate::Replaced, &[], |_| {});
        second.table = Err("the record at byte 135168 is broken".into());
        let mut doubtful = account(vec![process, second], vec![]);
        doubtful.remarks.push("the book of pid 4713 was not taken: is torn".into());
        check(
            &doubtful,
            true,
            expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            exit code 0 after 12.0 s, 2 processes kept a book
            chip 000000000000ABCD                         peak        at exit    allocations
              DRAM                                     8.0 KiB        8.0 KiB              1
            energy: there is no Tenstorrent device here
            still allocated at exit: 3 buffers, at least 8.0 KiB
              chip …ABCD  DRAM  8.0 KiB  pid 4711  age 11.9 s
              and 2 more
            1 book ended when a process became another program, by exec
            pid 4711: the library has no accessors that this agent knows of, and its layouts
              could not be learnt
            pid 4711: the book is incomplete, and its figures are not exact
            pid 4711: the list had no room for 2 buffers; the sums above count them
            pid 4711: 1 buffer was freed of which the book did not know
            pid 4711: caught in the middle of a change; its sums may be one event apart
            pid 4711: the list of live buffers is not of one moment
            pid 4712: the list of live buffers cannot be read: the record at byte 135168 is
              broken
            the book of pid 4713 was not taken: is torn
            leaks: found, so the exit code is 3
        "#]],
        );
    }

    #[test]
    fn numbers_are_as_people_write_them() {
        let times = [1, 99, 100, 59_990, 60_000, 3_599_999, 3_660_000].map(Duration::from_millis).map(duration);
        assert_eq!(times, ["1 ms", "99 ms", "0.1 s", "59.9 s", "1 min 00 s", "59 min 59 s", "1 h 01 min"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(joules_and_hours(824.06), "824.1 J (0.229 Wh)");
        assert_eq!(joules_and_hours(1999.96), "2,000.0 J (0.556 Wh)");
        assert_eq!(joules_and_hours(7.2e6), "7,200,000.0 J (2000 Wh)");
        assert_eq!(SECOND, 1_000_000_000);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_long(words in proptest::collection::vec("\\PC*", 1..4), remark in "\\PC*") {
            let mut odd = account(vec![], vec![]);
            (odd.command, odd.remarks) = (words, vec![remark]);
            for line in text(&odd, true).lines() {
                assert!(width(line) <= COLUMNS, "{line}");
            }
        }
    }
}
