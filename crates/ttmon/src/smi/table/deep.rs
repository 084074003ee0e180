//! What deep reads know of each device: a line each, below the devices.

use model::figure::deep::{GDDR_TEMP, INPUT_POWER};
use model::{Deep, DeepUnavailable, Device, DeviceId, Snapshot, throttle};
use show::figures::{figure, name};
use show::grid::{Cell, Column, Page};
use show::style::{Style, Tone};
use show::text::in_short;

/// Drawn only where a device was read.
pub fn draw(page: &mut Page, snapshot: &Snapshot) {
    let devices = snapshot.devices.iter().filter_map(|device| Some((device, device.deep.as_deref()?)));
    let read: Vec<(&Device, &Deep)> = devices.filter(|(_, deep)| !deep.tags.is_empty()).collect();
    if read.is_empty() {
        return;
    }
    let (style, glyphs, inner) = (page.style, page.style.glyphs(), page.style.columns - 2);
    page.rule(&[inner], glyphs.horizontal, glyphs.top);
    let columns = vec![
        Column::right("Dev", 3),
        Column::right("GDDR", 6),
        Column::right("Errors", 8).rank(2),
        Column::right("Trained", 7).rank(3),
        Column::right("Board", 8),
        Column::right("Links up", 8).rank(1),
        Column::left("Clock limited", 20).stretching(),
    ];
    page.grid(columns, read.iter().map(|(device, deep)| cells(device, deep, &style)).collect());
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
}

/// Which clocks are held down, and by what.
pub fn low_clocks(snapshot: &Snapshot) -> impl Iterator<Item = String> {
    let said = |device: &Device| Some(format!("device {}: {}", device.id, throttle::sentence(device, None)?));
    snapshot.devices.iter().filter_map(said)
}

/// Why devices were not read, a line for each reason. That a chip is behind another one, the table shows already.
pub fn why_not_read(snapshot: &Snapshot) -> Vec<String> {
    let note = |why: DeepUnavailable| {
        let is_it = |device: &&Device| device.deep.as_ref().is_some_and(|deep| deep.unavailable == Some(why));
        let ids: Vec<&DeviceId> = snapshot.devices.iter().filter(is_it).map(|device| &device.id).collect();
        let many = if ids.len() > 1 { "s" } else { "" };
        let ids = Some(in_short(&ids)).filter(|ids| !ids.is_empty())?;
        Some(format!("no deep read of device{many} {ids}: {}", why.name()))
    };
    DeepUnavailable::ALL.into_iter().filter(|why| *why != DeepUnavailable::Remote).filter_map(note).collect()
}

fn cells(device: &Device, deep: &Deep, style: &Style) -> Vec<Cell> {
    let glyphs = style.glyphs();
    let absent = || Cell::Text(glyphs.absent.to_owned(), Tone::Faint);
    let known = |text: Option<(String, Tone)>| text.map_or_else(absent, |(text, tone)| Cell::Text(text, tone));
    let measured = |one, unit: &str| {
        let (text, tone) = figure(one, device, unit, glyphs);
        Cell::Text(text, tone)
    };
    let limit = throttle::by(device).map(|by| match by {
        throttle::NOTHING => ("no".to_owned(), Tone::Plain),
        limit => (format!("by {limit}"), Tone::Warning),
    });
    vec![
        Cell::Text(name(device, glyphs), Tone::Strong),
        measured(&GDDR_TEMP, glyphs.degree),
        known(errors(deep)),
        known(trained(deep)),
        measured(&INPUT_POWER, "W"),
        known(links(deep)),
        known(limit),
    ]
}

/// Corrected and uncorrected: `3/0`. A channel that stopped counting makes it a lower bound.
fn errors(deep: &Deep) -> Option<(String, Tone)> {
    let corrected = deep.gddr_corrected_reads.iter().chain(&deep.gddr_corrected_writes).flatten();
    let uncorrected = deep.gddr_uncorrected_read.iter().chain(&deep.gddr_uncorrected_write).flatten();
    let (sum, is_known) = corrected.fold((0, false), |(sum, _), count| (sum + count, true));
    let bad = uncorrected.filter(|is_bad| **is_bad).count();
    let tone = if bad > 0 { Tone::Critical } else { Tone::Plain };
    is_known.then(|| (format!("{sum}/{bad}"), tone))
}

fn trained(deep: &Deep) -> Option<(String, Tone)> {
    of_all(&deep.gddr_trained, Tone::Critical)
}

/// A port that is not used is not up either, so that fewer are no fault by themselves.
fn links(deep: &Deep) -> Option<(String, Tone)> {
    of_all(&deep.eth_link_up, Tone::Plain)
}

/// How many of those that are known: `8/8`.
fn of_all(values: &[Option<bool>], when_fewer: Tone) -> Option<(String, Tone)> {
    let all = values.iter().flatten().count();
    let yes = values.iter().flatten().filter(|yes| **yes).count();
    let tone = if yes < all { when_fewer } else { Tone::Plain };
    (all > 0).then(|| (format!("{yes}/{all}"), tone))
}
