//! Several machines, a line for each; the worst first.

mod act;
mod columns;

use super::devices::figures;
use super::heading::{self, HEAD, Remark, direction, head, room, seen};
use crate::hosts::{HostLine, Hosts};
use crate::paint::{Align, Buffer, Rect, Style, Theme, Tone, bar, cell, fill, put, wrapped};
use crate::state::TopState;
use columns::{FleetColumn, PlacedFleetColumn, placed};
use model::figure::device::{ASIC_TEMP, POWER};
use model::{Bytes, Device, Need};
use show::bar::Sizes;
use show::figures::capacity_tone;
use show::memory::draw::chips::short_figures;
use show::text::{clean, width};
use watch::fleet::Reach;
use watch::fleet::summary::Summary;

pub use act::{act, enter, mouse};

const MARK: u16 = 2;
/// Lines for what is wrong with the selected machine, and the rows that the list keeps.
const REASON: usize = 4;
const LEAST_ROWS: u16 = 3;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    let Some(hosts) = state.hosts.as_ref().filter(|_| !area.is_empty()) else { return };
    let columns = columns_of(hosts, area);
    let whole = area;
    let area = list_area(hosts, area);
    draw_whole(state, hosts, area, whole, buf);
    let first = hosts.first(room(area));
    title(state, hosts, first, area, buf);
    if area.height > 1 {
        heads(state, hosts, &columns, area, buf);
    }
    let rows = area.top().saturating_add(HEAD)..area.bottom();
    for ((line, is_here), y) in hosts.from(first).zip(rows.clone()) {
        let whole = is_here.then(|| state.theme.style(Tone::Selected));
        if let Some(style) = whole {
            fill(buf, Rect { y, height: 1, ..area }, style);
        }
        let row = FleetRow { state, y, whole };
        match line {
            HostLine::Host(at) => row.host(hosts, at, &columns, area, buf),
            HostLine::Device(..) => {
                if let Some(device) = hosts.device(line) {
                    row.device(device, &columns, buf);
                }
            }
        }
    }
    if hosts.len() == 0 && rows.start < rows.end {
        let why = "No machine matches the filter (Esc or /: change it)";
        put(buf, area.x + 1, rows.start, area.right(), why, state.theme.style(Tone::Faint));
    }
}

fn columns_of(hosts: &Hosts, area: Rect) -> Vec<PlacedFleetColumn> {
    placed(area, hosts.name_width + MARK, hosts.has_trouble())
}

/// The list, without the lines below it that say in full what is wrong with the selected machine.
pub fn list_area(hosts: &Hosts, area: Rect) -> Rect {
    let lines = whole_reason(hosts, area).len() as u16;
    Rect { height: area.height - lines, ..area }
}

/// What is wrong with the selected machine, in lines, where its column has no room for all of it.
fn whole_reason(hosts: &Hosts, area: Rect) -> Vec<String> {
    let Some((host, summary)) = hosts.selected() else { return Vec::new() };
    let Some(worst) = &summary.worst else { return Vec::new() };
    let worst = clean(worst);
    let columns = columns_of(hosts, area);
    let place = |column: FleetColumn| columns.iter().find(|place| place.column == column);
    // The reason may take the place of figures that are not there.
    let room = match host.snapshot {
        None => place(FleetColumn::Devices).map(|place| area.right().saturating_sub(place.x)),
        Some(_) => place(FleetColumn::Worst).map(|place| place.width),
    };
    let most = usize::from(area.height.saturating_sub(HEAD + LEAST_ROWS)).min(REASON);
    if room.is_some_and(|room| width(&worst) <= usize::from(room)) {
        return Vec::new();
    }
    let text = format!("{}: {worst}", clean(&host.name));
    let mut lines = wrapped(&text, usize::from(area.width.saturating_sub(2)));
    lines.truncate(most);
    lines
}

fn draw_whole(state: &TopState, hosts: &Hosts, list: Rect, area: Rect, buf: &mut Buffer) {
    let style = state.theme.style(hosts.selected().map_or(Tone::Plain, |(_, summary)| tone(summary.need)));
    for (line, y) in whole_reason(hosts, area).iter().zip(list.bottom()..area.bottom()) {
        put(buf, area.x + 1, y, area.right(), line, style);
    }
}

/// How many there are, and what they have together.
fn title(state: &TopState, hosts: &Hosts, first: usize, area: Rect, buf: &mut Buffer) {
    let (mut all, mut answer, mut devices, mut ok, mut power) = (0, 0, 0, 0, None);
    for (host, summary) in hosts.all() {
        all += 1;
        answer += usize::from(host.state == Reach::Reached);
        devices += summary.devices;
        ok += summary.ok;
        power = summary.power.map(|watts| watts.0 + power.unwrap_or(0.0)).or(power);
    }
    let part = seen(first, area, hosts.len()).map(|part| format!("{part}of {} ", hosts.len())).unwrap_or_default();
    let shown = match hosts.shown() {
        shown if shown == all => all.to_string(),
        shown => format!("{shown} of {all}"),
    };
    let tone = |is_well: bool| if is_well { Tone::Good } else { Tone::Warning };
    let filter = Some(format!("filter {}", hosts.filter)).filter(|_| !hosts.filter.is_empty());
    let remarks = [
        Some((format!("{answer} answer"), tone(answer == all))),
        Some((format!("{ok}/{devices} devices ok"), tone(ok == devices))),
        power.map(|watts| (watts_text(watts), Tone::Plain)),
        filter.map(|filter| (filter, Tone::Warning)),
    ];
    let remarks: Vec<Remark> =
        remarks.into_iter().flatten().map(|label| (label, (String::new(), Tone::Plain))).collect();
    heading::title(buf, area, " Machines ", &shown, &remarks, &part, &state.theme);
}

fn heads(state: &TopState, hosts: &Hosts, columns: &[PlacedFleetColumn], area: Rect, buf: &mut Buffer) {
    let mark = direction(&state.theme, !hosts.reversed);
    for place in columns {
        let mark = Some(mark).filter(|_| place.column.sort() == Some(hosts.sort));
        head(buf, area.y + 1, place, (place.column.head(), place.column.align()), mark, &state.theme);
    }
}

/// One line, and how all of it is drawn when the cursor is on it.
struct FleetRow<'a> {
    state: &'a TopState,
    y: u16,
    whole: Option<Style>,
}

impl FleetRow<'_> {
    fn theme(&self) -> &Theme {
        &self.state.theme
    }

    fn put(&self, place: &PlacedFleetColumn, text: &str, tone: Tone, buf: &mut Buffer) {
        let style = self.whole.unwrap_or_else(|| self.theme().style(tone));
        cell(buf, (place.x, self.y), place.width, text, place.column.align(), style, self.theme());
    }

    fn host(&self, hosts: &Hosts, at: usize, columns: &[PlacedFleetColumn], area: Rect, buf: &mut Buffer) {
        let (host, summary) = hosts.host(at);
        let absent = self.theme().glyphs().absent;
        let state_tone = tone(summary.need);
        // Of a machine that does not answer the figures are of the past.
        let is_old = host.trouble().is_some();
        let plain = if is_old { Tone::Faint } else { Tone::Plain };
        for place in columns {
            let (text, tone) = match place.column {
                FleetColumn::Host => {
                    let mark = match (self.theme().unicode, hosts.is_expanded(&host.name)) {
                        (true, true) => "▾",
                        (true, false) => "▸",
                        (false, true) => "-",
                        (false, false) => "+",
                    };
                    (format!("{mark} {}", host.name), Tone::Strong)
                }
                FleetColumn::State => (summary.need.name().to_owned(), state_tone),
                FleetColumn::Devices if summary.devices == 0 => (absent.to_owned(), Tone::Faint),
                FleetColumn::Devices => {
                    let tone = if summary.ok < summary.devices && !is_old { Tone::Warning } else { plain };
                    (format!("{}/{}", summary.ok, summary.devices), tone)
                }
                FleetColumn::Temperature => self.hottest(summary, is_old),
                FleetColumn::Power => (summary.power.map_or(absent.to_owned(), |power| watts_text(power.0)), plain),
                FleetColumn::DramBar => {
                    let sizes = Sizes::of_sums(summary.dram_used, summary.dram_total, summary.dram_stale);
                    self.dram_bar(place, sizes, is_old, buf);
                    continue;
                }
                FleetColumn::Dram => (self.dram(summary.dram_used, summary.dram_total, summary.is_at_least), plain),
                FleetColumn::Processes if host.snapshot.is_none() => (absent.to_owned(), Tone::Faint),
                FleetColumn::Processes => (summary.processes.to_string(), plain),
                FleetColumn::Age => {
                    let age = match &host.state {
                        Reach::Unreachable { since, .. } => Some(*since),
                        Reach::Waiting | Reach::Reached => host.age,
                    };
                    let old = summary.need == Need::Unreachable || watch::fleet::summary::is_old(host);
                    let text = age.map_or(absent.to_owned(), |age| figures::short_time(age.as_secs_f64()));
                    (text, if old { Tone::Warning } else { Tone::Faint })
                }
                FleetColumn::Worst => (summary.worst.clone().unwrap_or_default(), state_tone),
            };
            self.put(place, &text, tone, buf);
        }
        // Where its column has no room for it, the reason takes the place of figures that are not there.
        let worst = columns.iter().find(|place| place.column == FleetColumn::Worst);
        let has_room = |why: &str| worst.is_some_and(|place| width(&clean(why)) <= usize::from(place.width));
        if let Some(why) = host.trouble().filter(|why| host.snapshot.is_none() && !has_room(why)) {
            if let Some(place) = columns.iter().find(|place| place.column == FleetColumn::Devices) {
                let columns = area.right().saturating_sub(place.x);
                let style = self.whole.unwrap_or_else(|| self.theme().style(state_tone));
                cell(buf, (place.x, self.y), columns, why, Align::Left, style, self.theme());
            }
        }
    }

    fn hottest(&self, summary: &Summary, is_old: bool) -> (String, Tone) {
        let Some((temp, limit)) = summary.hottest else {
            return (self.theme().glyphs().absent.to_owned(), Tone::Faint);
        };
        let device = Device {
            asic_temp: Some(temp),
            asic_temp_max: limit,
            sample_age_seconds: Some(0.0),
            ..Device::new(model::DeviceId::Local(0))
        };
        let (text, tone) = figures::measured(&device, &ASIC_TEMP, self.state, true);
        (text, if is_old { Tone::Faint } else { tone })
    }

    fn dram(&self, used: Option<Bytes>, total: Option<Bytes>, is_at_least: bool) -> String {
        short_figures(used, total, is_at_least, self.theme().glyphs())
    }

    fn dram_bar(&self, place: &PlacedFleetColumn, sizes: Option<Sizes>, is_old: bool, buf: &mut Buffer) {
        let used = sizes.as_ref().filter(|_| !is_old).map_or(Tone::Faint, |sizes| capacity_tone(sizes.part()));
        bar(buf, (place.x, self.y), place.width, sizes.as_ref(), used, self.theme());
    }

    fn device(&self, device: &Device, columns: &[PlacedFleetColumn], buf: &mut Buffer) {
        let theme = self.theme();
        let memory = &device.memory;
        for place in columns {
            let (text, tone) = match place.column {
                FleetColumn::Host => (
                    format!("    {} {}", figures::name(device, theme.glyphs()), figures::board(device, theme.glyphs())),
                    Tone::Plain,
                ),
                FleetColumn::State => (device.state.name().to_owned(), figures::state_tone(device)),
                FleetColumn::Temperature => figures::measured(device, &ASIC_TEMP, self.state, true),
                FleetColumn::Power => figures::measured(device, &POWER, self.state, false),
                FleetColumn::DramBar => {
                    self.dram_bar(place, Sizes::of_dram(memory), figures::is_stale(device), buf);
                    continue;
                }
                FleetColumn::Dram => {
                    (self.dram(memory.dram_used, memory.dram_total, memory.untracked_processes > 0), Tone::Plain)
                }
                FleetColumn::Worst => (figures::remarks(device).join(", "), Tone::Warning),
                FleetColumn::Devices | FleetColumn::Processes | FleetColumn::Age => continue,
            };
            self.put(place, &text, tone, buf);
        }
    }
}

fn tone(need: Need) -> Tone {
    match need {
        Need::Unreachable | Need::Critical => Tone::Critical,
        Need::Warning => Tone::Warning,
        Need::Waiting => Tone::Faint,
        Need::Fine => Tone::Good,
    }
}

/// `640W`, `12.4kW`
fn watts_text(watts: f64) -> String {
    match watts {
        watts if watts < 9999.5 => format!("{watts:.0}W"),
        watts => format!("{:.1}kW", watts / 1000.0),
    }
}

#[cfg(test)]
mod tests;
