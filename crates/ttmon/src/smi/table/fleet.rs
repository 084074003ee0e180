//! Several machines in one table: a heading for each, its devices below.

use super::{NARROWEST, WIDEST, list_alert, list_notes, processes, rows};
use model::{Device, Need, Snapshot};
use show::grid::Page;
use show::style::{Style, Tone};
use show::text::{Align, clean, width};
use std::time::Duration;
use watch::fleet::summary::{Summary, is_old, worst_first};
use watch::fleet::{Fleet, HostView, Reach};

/// The whole view, the machines that need somebody first.
pub fn text(fleet: &Fleet, style: &Style, time: &str) -> String {
    let style = Style { columns: style.columns.clamp(NARROWEST, WIDEST), ..*style };
    let mut page = Page::new(style);
    page.text += &format!("{time}\n");
    let order = worst_first(fleet);
    title(&mut page, fleet, &order);
    let machines: Vec<(&HostView, &Summary, Option<Snapshot>)> =
        order.iter().map(|(at, summary)| (&fleet.hosts[*at], summary, as_shown(&fleet.hosts[*at]))).collect();
    let devices_of = |snapshot: &Option<Snapshot>| snapshot.as_ref().map_or(0, |snapshot| snapshot.devices.len());
    let groups: Vec<(Option<String>, usize)> = machines
        .iter()
        .map(|(host, summary, snapshot)| (Some(heading(host, summary, &style)), devices_of(snapshot)))
        .collect();
    let devices: Vec<&Device> = machines.iter().flat_map(|(.., snapshot)| snapshot).flat_map(|s| &s.devices).collect();
    let named: Vec<(Option<&str>, &Snapshot)> = machines
        .iter()
        .filter_map(|(host, _, snapshot)| Some((Some(host.name.as_str()), snapshot.as_ref()?)))
        .collect();
    let (inner, glyphs) = (style.columns - 2, style.glyphs());
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    // Either may have thousands of lines: they are written beside each other.
    let below = std::thread::scope(|scope| {
        let below = scope.spawn(|| {
            let mut below = Page::new(style);
            processes::draw(&mut below, &named);
            below.text
        });
        let (columns, cells) = rows::grid(&devices, &style);
        page.groups(columns, cells, &groups);
        below.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
    page.text += &below;
    for (host, snapshot) in &named {
        snapshot.alerts.iter().for_each(|alert| list_alert(&mut page, *host, alert));
    }
    let notes = named.iter().flat_map(|(host, snapshot)| {
        let host = clean(host.unwrap_or_default());
        snapshot.faults.iter().map(move |fault| format!("{host}: {}: {}", clean(&fault.path), clean(&fault.reason)))
    });
    list_notes(&mut page, notes.collect());
    page.text
}

/// What a machine reported last. That it does not answer is in its heading already.
fn as_shown(host: &HostView) -> Option<Snapshot> {
    let faults = host.snapshot.as_ref()?.faults.clone();
    Some(Snapshot { faults, ..host.aged()? })
}

pub fn title(page: &mut Page, fleet: &Fleet, order: &[(usize, Summary)]) {
    let (style, inner) = (page.style, page.style.columns - 2);
    page.rule(&[inner], style.glyphs().horizontal, style.glyphs().top);
    let hosts = fleet.hosts.len();
    let answer = fleet.hosts.iter().filter(|host| host.state == Reach::Reached).count();
    let (devices, ok) = order.iter().fold((0, 0), |sum, (_, one)| (sum.0 + one.devices, sum.1 + one.ok));
    let version = env!("CARGO_PKG_VERSION");
    let left = format!(" ttmon {version}   {answer} of {hosts} machines answer   {ok} of {devices} devices ok");
    let simulated = fleet.hosts.iter().flat_map(|host| &host.snapshot).any(|snapshot| snapshot.host.simulated);
    let right = if simulated { " SIMULATED " } else { "" };
    let left = style.cell(&left, inner - width(right), Align::Left, Tone::Strong);
    page.line(&[left + &style.cell(right, width(right), Align::Right, Tone::Warning)]);
}

/// A machine's name, and how it is.
fn heading(host: &HostView, summary: &Summary, style: &Style) -> String {
    let inner = style.columns - 2;
    let name = clean(&host.name).into_owned();
    let (said, tone) = match &host.state {
        Reach::Unreachable { why, since } => {
            let old = host.snapshot.as_ref().map_or("", |_| " (as it was)");
            (format!("no answer for {}: {}{old}", time(*since), clean(why)), Tone::Critical)
        }
        Reach::Waiting => ("no answer yet".to_owned(), Tone::Warning),
        Reach::Reached => {
            let driver = host.snapshot.as_ref().and_then(|snapshot| snapshot.host.driver_version.as_deref());
            let mut said = format!("driver {}", clean(driver.unwrap_or("unknown")));
            if let Some(worst) = summary.worst.as_ref().filter(|_| summary.need <= Need::Warning) {
                said = format!("{}   {said}", clean(worst));
            } else if is_old(host) {
                said += &format!("   {} old", time(host.age.unwrap_or_default()));
            }
            (said, if summary.need <= Need::Warning { Tone::Warning } else { Tone::Faint })
        }
    };
    // The name is worth more than what is said of it, but does not take all of the line.
    let columns = width(&name).min(inner * 2 / 3);
    let name = style.cell(&name, columns, Align::Left, Tone::Strong);
    format!(" {name}  {}", style.cell(&said, inner - 3 - columns, Align::Left, tone))
}

/// A length of time in its two largest units.
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds @ 3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}
