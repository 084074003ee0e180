//! One device in detail: everything that the table of figures has, by sections, and the processes that hold it.

use super::devices::figures;
use super::trend;
use crate::keys::{self, KeyPress};
use crate::paint::{Buffer, Rect, Tone, clear, frame, put, wrapped};
use crate::state::{Overlay, TopState, TopView};
use crate::unit_text::UnitText;
use crossterm::event::KeyCode;
use model::figure::deep::AICLK_LIMITED;
use model::figure::device::{DEVICE_FIGURES, LINK_DEGRADED, STATE, UTILIZATION_UNKNOWN, figures_of};
use model::figure::{Field, Figure, Freshness, Judge, Section, Unit};
use model::{Bytes, Device, Judgement, Severity, State as DeviceState};
use show::activity::utilization;
use show::command::display_name;
use show::labels::labelled;
use show::text::{clean, count, width};

/// Columns for the titles of figures, and for values that have a limit.
const TITLES: u16 = 35;
const NARROW_TITLES: u16 = 26;
const VALUES: usize = 12;

/// From so many columns on, facts are in two columns.
const TWO_COLUMNS: u16 = 130;

/// A line of the description: what it is about, and what is said.
struct FactLine {
    title: String,
    text: String,
    tone: Tone,
}

pub fn open(state: &mut TopState) {
    if state.selected_device().is_some() {
        state.overlay = Some(Overlay::Device { scroll: 0 });
    }
}

pub fn draw(state: &TopState, scroll: usize, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    let area = Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area };
    clear(buf, area);
    let Some(device) = state.selected_device() else {
        frame(buf, area, "no device", theme);
        return;
    };
    let name = format!("device {}, {}", figures::name(device, theme.glyphs()), figures::board(device, theme.glyphs()));
    let keys = "Enter: its processes; Tab: next device; Esc: close";
    let inner = frame(buf, area, &format!("{name}: {keys}"), theme);
    let columns = columns(state, device, inner.width);
    let rows = rows(&columns);
    let scroll = scroll.min(rows.saturating_sub(usize::from(inner.height)));
    let width = inner.width / columns.len().max(1) as u16;
    for (n, lines) in (0..).zip(&columns) {
        let column = Rect { x: inner.x + n * width, width, ..inner };
        for (line, y) in lines.iter().skip(scroll).zip(inner.top()..inner.bottom()) {
            draw_line(state, line, Rect { y, height: 1, ..column }, buf);
        }
    }
    let below = rows.saturating_sub(scroll + usize::from(inner.height));
    if below > 0 && !inner.is_empty() {
        let text = format!(" {} ", count(below as u64, "more line", "more lines"));
        put(buf, inner.x + 1, area.bottom() - 1, inner.right(), &text, theme.style(Tone::Faint));
    }
}

fn draw_line(state: &TopState, line: &FactLine, area: Rect, buf: &mut Buffer) {
    let (theme, x, y, end) = (&state.theme, area.x + 1, area.y, area.right());
    if line.text.is_empty() {
        put(buf, x, y, end, &line.title, theme.style(line.tone));
        return;
    }
    put(buf, x + 2, y, end, &line.title, theme.style(Tone::Faint));
    let indent = match width(&line.title) as u16 {
        0 => 2,
        // Only the longest titles do not fit where there are two columns.
        title => titles(area.width).max(title + 4),
    };
    put(buf, x + indent, y, end, &line.text, theme.style(line.tone));
}

/// The columns for titles, in a column of facts that is so wide.
fn titles(width: u16) -> u16 {
    if width < 78 { NARROW_TITLES } else { TITLES }
}

/// The lines in one column, or in two of about the same length where there is room. A section stays together.
fn columns(state: &TopState, device: &Device, width: u16) -> Vec<Vec<FactLine>> {
    let count = if width >= TWO_COLUMNS { 2 } else { 1 };
    let mut left = lines(state, device, usize::from((width / count).saturating_sub(2)));
    if count == 1 {
        return vec![left];
    }
    let half = left.len() / 2;
    let starts = |n: usize| left[n].title.is_empty() && left[n].text.is_empty();
    let Some(at) = (0..left.len()).filter(|n| starts(*n)).min_by_key(|n| n.abs_diff(half)) else { return vec![left] };
    let right = left.split_off(at + 1);
    vec![left, right]
}

fn rows(columns: &[Vec<FactLine>]) -> usize {
    columns.iter().map(Vec::len).max().unwrap_or(0)
}

fn lines(state: &TopState, device: &Device, columns: usize) -> Vec<FactLine> {
    let mut lines = Vec::new();
    for section in Section::ALL {
        let mut facts = match section {
            Section::Pids => holders(state, device),
            _ => of_section(state, device, section, columns.saturating_sub(usize::from(titles(columns as u16 + 2)))),
        };
        if section == Section::Health {
            facts.extend(alerts(state, device));
        }
        if facts.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(heading(""));
        }
        lines.push(heading(if section == Section::Pids { "Processes" } else { section.name() }));
        lines.append(&mut facts);
    }
    lines
}

fn heading(text: &str) -> FactLine {
    FactLine { title: text.to_owned(), text: String::new(), tone: Tone::Title }
}

/// The figures of a section. A limit is said with the figure that it belongs to.
fn of_section(state: &TopState, device: &Device, section: Section, columns: usize) -> Vec<FactLine> {
    let is_limit = |one: &Figure<Device>| DEVICE_FIGURES.iter().any(|figure| figure.limit == Some(one));
    let figures = figures_of(device).filter(|figure| figure.section == section && !is_limit(figure));
    let mut lines = Vec::new();
    for figure in figures {
        if figure.is_deep() && figure.dimension.is_some() {
            // A line for all channels or ports, where there would be hundreds.
            let values = labelled(figure, device, state.theme.glyphs().absent);
            lines.extend(values.map(|(title, text)| FactLine { title, text, tone: Tone::Plain }));
            continue;
        }
        let known = lines.len();
        let fields = figure.fields().filter(|field| field.value(device).is_some() || field.limit_of(device).is_some());
        lines.extend(fields.map(|field| fact(state, device, field)));
        let meaning = match (*figure == STATE, device.activity.utilization_unknown) {
            (true, _) => Some(device.state.meaning()),
            (false, why) => why.filter(|_| *figure == UTILIZATION_UNKNOWN).map(|why| why.meaning()),
        };
        if let Some(meaning) = meaning {
            let meaning = wrapped(meaning, columns);
            lines.extend(meaning.into_iter().map(|text| FactLine { title: " ".into(), text, tone: Tone::Faint }));
        }
        // A firmware that does not publish something is not worth a line.
        if lines.len() == known && !figure.is_deep() {
            let text = state.theme.glyphs().absent.to_owned();
            lines.push(FactLine { title: figure.title.to_owned(), text, tone: Tone::Faint });
        }
    }
    lines
}

/// `54.0 °C     of 90.0 °C, 60 %: normal`
fn fact(state: &TopState, device: &Device, field: Field<Device>) -> FactLine {
    let figure = field.figure;
    let value = field.value(device);
    let units = UnitText::new(figure.unit, state);
    let is_number = figure.unit.is_number() && figure.unit != Unit::Count;
    let mut text = match &value {
        None => state.theme.glyphs().absent.to_owned(),
        Some(value) => match value.number().filter(|_| is_number) {
            Some(number) => units.text(number),
            None => clean(&figure.unit.text(value)).into_owned(),
        },
    };
    if figure == &AICLK_LIMITED {
        if let Some((text, tone)) = figures::limited_clock(device, state) {
            return FactLine { title: figure.title.to_owned(), text, tone };
        }
    }
    if let Some(limit) = field.limit_of(device) {
        let limit = if is_number { units.text(limit) } else { format!("{limit:.0}") };
        text += &" ".repeat(VALUES.saturating_sub(width(&text)));
        text += &format!("of {limit}");
        text += &said_of(device, field);
    }
    if let Some(trend) = trend::of(state, device, field).filter(|_| figure.history) {
        text += &" ".repeat((VALUES * 3 + 2).saturating_sub(width(&text)).max(2));
        text += &trend;
    }
    FactLine { title: field.title().into_owned(), text, tone: tone(device, field) }
}

/// The part of the limit, and what that means.
fn said_of(device: &Device, field: Field<Device>) -> String {
    let (Some(share), figure) = (field.share(device), field.figure) else { return String::new() };
    let percent = format!(", {:.0} %", share * 100.0);
    match (figure.judge, field.judge(device)) {
        (Judge::Never, _) | (Judge::Link, Some(Judgement::Normal)) => String::new(),
        (judge @ Judge::Link, Some(judgement)) => format!(": {}", judge.word(judgement)),
        (Judge::Load, _) if share >= model::judgement::AT_LIMIT => percent + ": at its limit",
        (Judge::Load, _) | (_, None) => percent,
        (judge, Some(judgement)) => format!("{percent}: {}", judge.word(judgement)),
    }
}

fn tone(device: &Device, field: Field<Device>) -> Tone {
    let figure = field.figure;
    if figure == &STATE {
        return figures::state_tone(device);
    }
    if figure == &LINK_DEGRADED && device.link_is_degraded() {
        return Tone::Warning;
    }
    let is_old = match figure.freshness {
        Freshness::Host => matches!(device.state, DeviceState::Lost | DeviceState::NoDriver),
        _ => figures::is_stale(device),
    };
    if is_old { Tone::Faint } else { Tone::of_figure(field.judge(device), field.value(device).is_some()) }
}

/// What is firing for it.
fn alerts<'a>(state: &'a TopState, device: &'a Device) -> impl Iterator<Item = FactLine> + 'a {
    figures::alerts(state, device).map(|alert| {
        let tone = if alert.severity == Severity::Critical { Tone::Critical } else { Tone::Warning };
        FactLine { title: "Alert".into(), text: clean(&alert.name).into_owned(), tone }
    })
}

/// The processes on it, with what they use.
fn holders(state: &TopState, device: &Device) -> Vec<FactLine> {
    let absent = state.theme.glyphs().absent;
    let row = |text: String, tone| FactLine { title: String::new(), text, tone };
    let mut lines = Vec::new();
    for process in &state.snapshot().processes {
        let Some(held) = process.devices.iter().find(|held| held.id == device.id) else { continue };
        let cell = |bytes: Option<Bytes>| format!("{:>10}", bytes.map_or(absent.to_owned(), |bytes| bytes.to_string()));
        let (dram, l1) = (cell(held.usage.dram_used), cell(held.usage.l1_used));
        let name = display_name(process).map_or(absent.into(), |name| clean(&name).into_owned());
        let source = held.source.map_or(absent, |source| source.name());
        let busy = utilization(&held.activity, state.theme.glyphs());
        lines.push(row(format!("{:>8} {dram} {l1} {busy:>5}  {source:<8} {name}", process.pid), Tone::Plain));
    }
    let head = format!("{:>8} {:>10} {:>10} {:>5}  {:<8} name", "pid", "DRAM used", "L1 used", "util", "source");
    if lines.is_empty() {
        vec![row("none".into(), Tone::Faint)]
    } else {
        lines.insert(0, row(head, Tone::Faint));
        lines
    }
}

/// Closes the window, and shows the processes of the device alone.
fn show_processes(state: &mut TopState) -> Option<Overlay> {
    let filter = state.device.as_ref().map(|id| format!("dev:{id}"));
    state.table.filter = filter.unwrap_or_default();
    state.view = TopView::Overview;
    state.notice = Some("processes of this device; Esc: all processes".into());
    None
}

/// A key was pressed. `None` closes the window.
pub fn press(state: &mut TopState, at: usize, key: KeyPress) -> Option<Overlay> {
    let page = usize::from(state.area.height.saturating_sub(4)).max(1);
    let width = state.area.width.saturating_sub(2);
    match key.0 {
        KeyCode::Esc | KeyCode::Char('q' | 'd') => return None,
        KeyCode::Enter => return show_processes(state),
        KeyCode::Tab | KeyCode::Char('n') => state.step_device(1),
        KeyCode::BackTab | KeyCode::Char('N') => state.step_device(-1),
        _ => {}
    }
    let last = state.selected_device().map_or(0, |device| rows(&columns(state, device, width))).saturating_sub(page);
    Some(Overlay::Device { scroll: keys::scrolled(key, at, page, last).unwrap_or(at.min(last)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint;
    use crate::settings::TopSettings;
    use expect_test::expect_file;
    use show::example;
    use watch::moment::Moment;

    fn state(device: usize) -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        state.take(Moment::of(example::machine()));
        state.device = Some(state.devices()[device].id.clone());
        state
    }

    fn drawn(state: &TopState, columns: u16, rows: u16) -> String {
        let mut buf = Buffer::empty(Rect { x: 0, y: 0, width: columns, height: rows });
        draw(state, 0, buf.area, &mut buf);
        paint::lines(&buf)
    }

    #[test]
    fn everything_is_said_of_a_device() {
        let mut text = String::new();
        for (device, columns) in [(0, 80), (1, 80), (3, 80), (0, 120)] {
            text += &drawn(&state(device), columns, 74);
        }
        expect_file!["../golden/device.txt"].assert_eq(&text);
    }

    #[test]
    fn two_columns_have_everything_without_a_cut() {
        let state = state(0);
        let (one, two) = (drawn(&state, 120, 90), drawn(&state, 132, 50));
        let facts = lines(&state, state.selected_device().unwrap(), 120);
        for fact in facts.iter().filter(|fact| !fact.text.is_empty()) {
            assert!(one.contains(&fact.text) && two.contains(&fact.text), "{}: {two}", fact.text);
        }
        assert!(!two.contains("more line"), "{two}");
    }

    #[test]
    fn every_figure_of_the_table_has_a_line() {
        let mut state = state(0);
        for number in 0..state.devices().len() {
            let text = drawn(&state, 120, 200);
            let limits: Vec<&str> =
                DEVICE_FIGURES.iter().filter_map(|figure| figure.limit).map(|limit| limit.title).collect();
            let device = state.selected_device().unwrap();
            for figure in figures_of(device).filter(|figure| !limits.contains(&figure.title)) {
                assert!(text.contains(figure.title), "{} of device {number}: {text}", figure.title);
            }
            state.step_device(1);
        }
    }

    #[test]
    fn a_clock_that_is_held_down_is_explained_with_how_long_it_has_been() {
        let mut machine = example::machine();
        let device = &mut machine.devices[0];
        device.aiclk = Some(model::Megahertz(900));
        let deep = model::Deep {
            aiclk_max: Some(model::Megahertz(1350)),
            aiclk_ceiling: Some(model::Megahertz(900)),
            aiclk_ceiling_by: Some(model::ClockLimiter::GddrTemperature),
            aiclk_decided_by: Some(model::ClockDecision::Ceiling),
            gddr_top_temp: vec![None, None, None, Some(model::Celsius(96.0))],
            ..model::Deep::default()
        };
        device.deep = Some(Box::new(deep));
        model::throttle::explain(device);
        let mut later = machine.clone();
        later.taken_at.0 += 40_000;
        let mut state = TopState::new(TopSettings::default(), true);
        state.take(Moment::of(machine));
        state.take(Moment::of(later));
        let text = drawn(&state, 120, 200);
        let line = "clock 900 of 1350 MHz: limited by GDDR temperature (channel 3, 96 °C) for 40 s";
        let facts: Vec<&str> =
            text.lines().filter(|line| line.contains("held down") || line.contains("GDDR")).collect();
        assert!(
            facts.iter().any(|fact| fact.contains(&format!("AICLK held down                  {line}"))),
            "{facts:#?}"
        );
        let (why, tone) = figures::why_slow(state.selected_device().unwrap(), &state).unwrap();
        assert_eq!((why.as_str(), tone), (line, Tone::Warning));
    }

    #[test]
    fn figures_of_deep_reads_have_a_line_only_where_they_have_a_value() {
        let mut state = state(0);
        assert!(!drawn(&state, 120, 200).contains("GDDR"));
        let (watts, channels) = (Some(model::Watts(75.0)), vec![Some(true), None]);
        let deep = model::Deep { input_power: watts, gddr_trained: channels, ..model::Deep::default() };
        let mut snapshot = state.snapshot().clone();
        snapshot.devices[0].deep = Some(Box::new(deep));
        state.take(Moment::of(snapshot));
        let text = drawn(&state, 120, 200);
        assert!(text.contains("Board input power") && text.contains("yes 0") && text.contains("GDDR"), "{text}");
        assert!(!text.contains("Ethernet ports"), "{text}");
    }

    #[test]
    fn it_scrolls_closes_and_goes_to_the_next_device() {
        let mut state = state(0);
        state.area = Rect { x: 0, y: 0, width: 80, height: 24 };
        open(&mut state);
        let Some(Overlay::Device { scroll: 0 }) = state.overlay.take() else { panic!("not open") };
        let none = crossterm::event::KeyModifiers::NONE;
        let at = |overlay| if let Some(Overlay::Device { scroll }) = overlay { Some(scroll) } else { None };
        let last = at(press(&mut state, 0, (KeyCode::End, none))).unwrap();
        assert!(last > 10);
        assert_eq!(at(press(&mut state, last, (KeyCode::Down, none))), Some(last));
        assert_eq!(at(press(&mut state, last, (KeyCode::Up, none))), Some(last - 1));
        assert_eq!(press(&mut state, 3, (KeyCode::Esc, none)), None);
        assert_eq!(press(&mut state, 3, (KeyCode::Enter, none)), None);
        assert_eq!(state.table.filter, format!("dev:{}", state.device.clone().unwrap()));
        let before = state.device.clone();
        press(&mut state, 0, (KeyCode::Tab, none));
        assert_ne!(state.device, before);
    }

    #[test]
    fn any_size_will_do() {
        let state = state(0);
        for (columns, rows) in [(1, 1), (2, 2), (3, 9), (40, 3), (8, 1)] {
            drawn(&state, columns, rows);
        }
        drawn(&TopState::new(TopSettings::default(), false), 80, 24);
    }
}
