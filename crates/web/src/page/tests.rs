//! What can be said of the page without a browser. `crates/ttmon/tests/page.rs` opens it in a real one.

use super::*;
use std::collections::BTreeMap;

/// The files by their paths.
fn texts() -> BTreeMap<&'static str, String> {
    let text =
        |asset: &Asset| String::from_utf8(crate::text::SharedText::of_packed(asset.packed).plain().to_vec()).unwrap();
    ASSETS.iter().map(|asset| (asset.path, text(asset))).collect()
}

fn text(path: &str) -> String {
    texts().remove(path).unwrap()
}

fn scripts() -> impl Iterator<Item = (&'static str, String)> {
    texts().into_iter().filter(|(path, _)| path.ends_with(".js"))
}

/// The texts between two marks.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    text.split(begin).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

#[test]
fn every_file_that_is_asked_for_is_there_and_every_file_is_asked_for() {
    let mut wanted: Vec<String> = Vec::new();
    for (_, script) in scripts() {
        wanted.extend(between(&script, "from \"./", "\"").into_iter().map(|name| format!("/assets/js/{name}")));
    }
    wanted.extend(between(&text("/"), "\"assets/", "\"").into_iter().map(|name| format!("/assets/{name}")));
    wanted.sort();
    wanted.dedup();
    let mut there: Vec<&str> = ASSETS.iter().map(|asset| asset.path).filter(|path| *path != "/").collect();
    there.sort_unstable();
    assert_eq!(wanted, there);
}

#[test]
fn text_of_processes_has_no_way_to_become_html_or_code() {
    let ways = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "srcdoc",
        "eval(",
        "new Function",
    ];
    for (path, script) in scripts() {
        for way in ways {
            assert!(!script.contains(way), "{way} in {path}");
        }
    }
    let frame = text("/");
    for forbidden in [" style=", " onclick=", " onload=", "<style", "javascript:"] {
        assert!(!frame.contains(forbidden), "{forbidden}: the policy would forbid it");
    }
    assert_eq!(between(&frame, "<script", "</script>"), [" type=\"module\" src=\"assets/js/main.js\">"]);
}

#[test]
fn the_words_of_machines_are_those_of_the_service() {
    let script = text("/assets/js/fleet_host.js");
    let table = between(&script, "JUDGEMENTS = {", "}");
    let words: Vec<String> = table[0]
        .split(',')
        .map(|pair| pair.split(':').next().unwrap_or_default().replace('"', "").trim().into())
        .collect();
    assert_eq!(words, model::Need::NAMES);
}

#[test]
fn nothing_comes_from_elsewhere() {
    for (path, text) in texts() {
        let addresses = between(&text, "://", "\"");
        assert!(addresses.iter().all(|address| *address == "www.w3.org/2000/svg"), "{addresses:?} in {path}");
        assert!(!text.contains("url(") && !text.contains("@import"), "{path}");
    }
}

/// How far apart two colours are, as WCAG computes it: 1 to 21.
fn contrast(a: &str, b: &str) -> f64 {
    let luminance = |colour: &str| {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The colours of both themes by name, in each palette.
fn palettes() -> [(&'static str, BTreeMap<String, [String; 2]>); 2] {
    let sheet = text("/assets/style.css");
    let block = |begin: &str| {
        let lines = between(&sheet, begin, "}")[0].lines().filter_map(|line| line.trim().strip_prefix("--"));
        let colours = lines.filter_map(|line| {
            let (name, value) = line.split_once(": light-dark(")?;
            let (light, dark) = value.strip_suffix(");")?.split_once(", ")?;
            Some((name.into(), [light.into(), dark.into()]))
        });
        colours.collect::<BTreeMap<String, [String; 2]>>()
    };
    let standard = block("\n:root {");
    let mut safe = standard.clone();
    safe.extend(block(":root[data-palette=\"safe\"] {"));
    assert_ne!(standard, safe);
    [("standard", standard), ("safe", safe)]
}

#[test]
fn black_on_white_has_the_contrast_that_everybody_knows() {
    assert_eq!(format!("{:.1} {:.1}", contrast("#000000", "#ffffff"), contrast("#777777", "#ffffff")), "21.0 4.5");
}

/// Each colour on each of its grounds has at least that contrast, in both palettes and themes.
fn check_contrast(pairs: &[(&str, &str)], least: f64) {
    for (palette, colours) in palettes() {
        for (name, grounds) in pairs {
            for ground in grounds.split(' ') {
                for theme in [0, 1] {
                    let contrast = contrast(&colours[*name][theme], &colours[ground][theme]);
                    assert!(
                        contrast >= least,
                        "{palette}: {name} on {ground} in theme {theme}: {contrast:.2} < {least}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_read_stands_out_in_both_themes_and_palettes() {
    let pairs = [
        ("text", "ground panel sunk heat0 heat1 heat2 heat3 warn-ground critical-ground"),
        ("dim", "ground panel sunk warn-ground critical-ground"),
        ("accent", "panel ground sunk warn-ground critical-ground"),
        ("good", "panel good-ground"),
        ("warn", "panel ground warn-ground"),
        ("critical", "panel ground critical-ground"),
        ("heat4-text", "heat4"),
        ("on-fill", "dram trace l1 cb kernel l1_small"),
    ];
    check_contrast(&pairs, 4.5);
}

#[test]
fn what_is_drawn_stands_out_in_both_themes_and_palettes() {
    let drawn =
        ["dram", "trace", "l1", "l1_small", "cb", "kernel", "accent", "good", "warn", "critical", "blank", "dim"];
    check_contrast(&drawn.map(|name| (name, "panel")), 3.0);
}

/// How two colours look to somebody without the receptors for red (Viénot, Brettel and Mollon), as red, green and blue from 0 to 1.
fn without_red(colour: &str) -> [f64; 3] {
    let linear = |at: usize| (f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0).powf(2.2);
    let [r, g, b] = [1, 3, 5].map(linear);
    let rg = 0.112_38 * r + 0.887_62 * g;
    [rg, rg, 0.004_0 * r - 0.004_0 * g + b].map(|part| part.clamp(0.0, 1.0).powf(1.0 / 2.2))
}

#[test]
fn states_of_the_safe_palette_differ_without_red() {
    let [_, (_, safe)] = palettes();
    for theme in [0, 1] {
        for (a, b) in [("good", "warn"), ("good", "critical"), ("warn", "critical")] {
            let [x, y] = [a, b].map(|name| without_red(&safe[name][theme]));
            let distance = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
            assert!(distance >= 0.25, "{a} and {b} in theme {theme}: {distance:.2}");
        }
    }
}
