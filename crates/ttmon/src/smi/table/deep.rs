//! What deep reads know of each device: a line each, below the devices.

use model::figure::deep::{GDDR_TEMP, INPUT_POWER};
use model::{Deep, Device, Snapshot, throttle};
use show::figures::{figure, name};
use show::grid::{Cell, Column, Page};
use show::style::{Style, Tone};

/// Drawn only where deep reads were asked for.
pub fn draw(page: &mut Page, snapshot: &Snapshot) {
    let read: Vec<(&Device, &Deep)> =
        snapshot.devices.iter().filter_map(|device| Some((device, device.deep.as_deref()?))).collect();
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
        Column::left("Clock", 20).stretching(),
    ];
    page.grid(columns, read.iter().map(|(device, deep)| cells(device, deep, &style)).collect());
    page.rule(&[inner], glyphs.horizontal, glyphs.bottom);
}

fn cells(device: &Device, deep: &Deep, style: &Style) -> Vec<Cell> {
    let glyphs = style.glyphs();
    let absent = || Cell::Text(glyphs.absent.to_owned(), Tone::Faint);
    let known = |text: Option<(String, Tone)>| text.map_or_else(absent, |(text, tone)| Cell::Text(text, tone));
    let measured = |one, unit: &str| {
        let (text, tone) = figure(one, device, unit, glyphs);
        Cell::Text(text, tone)
    };
    let clock = throttle::sentence(device, None).map(|sentence| (sentence, Tone::Warning));
    let why = deep.unavailable.filter(|_| deep.tags.is_empty()).map(|why| (why.name().to_owned(), Tone::Faint));
    vec![
        Cell::Text(name(device, glyphs), Tone::Strong),
        measured(&GDDR_TEMP, "C"),
        known(errors(deep)),
        known(trained(deep)),
        measured(&INPUT_POWER, "W"),
        known(links(deep)),
        known(clock.or(why).or_else(|| throttle::by(device).map(|_| ("not limited".to_owned(), Tone::Plain)))),
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
