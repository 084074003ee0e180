//! How the page looks and what it says to everybody: sizes, themes, the wall, phones, old values, screen readers.

use crate::support::browser::{Browser, DOWN, ENTER, ESCAPE, LEFT};
use crate::support::needs;
use crate::support::page::{LIVE, Served, assert_clean, assert_sound, axe};
use serde_json::json;

const VIEWS: [&str; 8] = ["overview", "memory", "mesh", "processes", "deaths", "events", "device/0", "device/30"];

/// Opens a view and waits until it is drawn, with its history.
fn open(browser: &Browser, served: &Served, view: &str) {
    browser.go("about:blank");
    browser.go(&served.address(&format!("#/{view}")));
    browser.wait_until(LIVE);
    browser.wait_until("document.querySelector('main').innerText.length > 10");
    browser.run("return new Promise(resolve => setTimeout(resolve, 300))");
}

#[test]
fn every_view_is_sound_at_every_size_in_both_themes() {
    let Some(browser) = Browser::open("layouts", 1440, 900, "light") else { return };
    let Some(script) = needs::axe("layouts") else { return };
    let served = Served::start("galaxy-bh,agent,hang=31@1s,lose=30@1s", &[]);
    open(&browser, &served, "overview");
    browser.wait_for_text("device 31 is hung");
    browser.wait_for_text("device 30 is lost");
    for (width, height, scheme) in [(390, 844, "light"), (1440, 900, "dark"), (3840, 2160, "light")] {
        browser.resize(width, height);
        browser.media(&[("prefers-color-scheme", scheme)]);
        for view in VIEWS.into_iter().chain(["wall"]) {
            let what = format!("{view} at {width} in {scheme}");
            open(&browser, &served, view);
            assert_sound(&browser, &what);
            // Colours, names and roles are checked once more by axe-core.
            if width < 3840 {
                assert_eq!(axe(&browser, &script), json!([]), "{what}");
            }
            // The same in the other theme: only colours differ.
            if width == 1440 && ["overview", "device/30", "wall"].contains(&view) {
                browser.media(&[("prefers-color-scheme", "light")]);
                assert_eq!(axe(&browser, &script), json!([]), "{what}, and then light");
                browser.media(&[("prefers-color-scheme", scheme)]);
            }
        }
    }
    assert_clean(&browser, &served);
}

#[test]
fn sizes_and_rates_are_written_as_on_the_command_line() {
    let Some(browser) = Browser::open("sizes", 1440, 900, "light") else { return };
    let served = Served::start("p150a", &[]);
    browser.go(&served.address("#/overview"));
    browser.wait_until(LIVE);
    let gib = |n: f64| n * f64::from(1 << 30);
    let around = (0..50)
        .flat_map(|shift| [1.0, 1.25, 1.45, 97.65, 99.94, 99.95, 999.4, 999.5, 999.95].map(|n| n * 2f64.powi(shift)));
    let edges =
        [0.0, 1.0, 999.0, 1000.0, 1023.0, 1024.0, 1535.0, 102_348.0, 104_857.0, 1023.5 * 1_048_576.0, gib(1.0) - 1.0]
            .into_iter()
            .chain([gib(99.94), gib(99.95), gib(999.5), gib(1024.0), gib(1e6)]);
    let amounts: Vec<f64> = edges.chain(around).map(f64::floor).collect();
    let script = "const [amounts] = [AMOUNTS]; return import('/assets/js/format.js').then(f =>
        amounts.flatMap(n => [f.bytes(n), f.binary(n + 0.5, 'B/s'), f.ofBytes(n, 2 ** 35).split(' / ')[0]]))";
    let drawn = browser.run(&script.replace("AMOUNTS", &json!(amounts).to_string()));
    let expected: Vec<String> = amounts
        .iter()
        .flat_map(|n| {
            let bytes = model::Bytes(*n as u64);
            let part = bytes.number_beside(model::Bytes(1 << 35)).unwrap_or_else(|| bytes.to_string());
            [bytes.to_string(), model::BytesPerSecond(n + 0.5).to_string(), part]
        })
        .collect();
    assert_eq!(drawn, json!(expected));
}

/// The share of the screen that is content: panels that have text or a drawing in them.
const CONTENT: &str = "
    const parts = [...document.querySelectorAll('[data-content]')].filter(node => node.getClientRects().length);
    const full = parts.filter(node => node.textContent.trim() || node.querySelector('canvas, svg'));
    const boxes = full.map(node => node.getBoundingClientRect());
    let inside = 0;
    const [columns, rows] = [384, 216];
    for (let c = 0; c < columns; c += 1) for (let r = 0; r < rows; r += 1) {
        const [x, y] = [(c + 0.5) / columns * innerWidth, (r + 0.5) / rows * innerHeight];
        if (boxes.some(b => x >= b.left && x < b.right && y >= b.top && y < b.bottom)) inside += 1;
    }
    return full.length === parts.length ? inside / columns / rows : -1;";

#[test]
fn the_wall_is_filled_by_one_four_and_thirty_two_devices() {
    let Some(browser) = Browser::open("the wall", 3840, 2160, "dark") else { return };
    for (machine, devices) in [("p150,agent", 1), ("p150x4,agent", 4), ("galaxy-bh,agent", 32)] {
        let served = Served::start(machine, &[]);
        for view in ["chips", "maps", "work"] {
            if devices == 1 && view == "maps" {
                continue;
            }
            open(&browser, &served, &format!("wall?hold={view}"));
            let content = browser.run(CONTENT).as_f64().unwrap();
            assert!(content >= 0.85, "{machine} {view}: {content:.3} of the screen is content");
            assert_sound(&browser, &format!("{machine} {view}"));
            let scrolls = "return document.documentElement.scrollHeight > document.documentElement.clientHeight";
            assert_eq!(browser.run(scrolls), false, "{machine} {view}");
        }
        open(&browser, &served, "wall?hold=chips");
        assert_eq!(browser.run("return document.querySelectorAll('.cell').length"), devices);
        // From five metres: a millimetre of height for each quarter of a metre is 64 pixels on a display of 55 inches.
        let least = "return Math.min(...[...document.querySelectorAll('.cell .main b')]
            .map(node => parseFloat(getComputedStyle(node).fontSize) * node.getBoundingClientRect().width / node.offsetWidth))";
        let pixels = browser.run(least).as_f64().unwrap();
        assert!(pixels >= 64.0, "{machine}: {pixels} pixels");
        let cut = "return [...document.querySelectorAll('.cell')].filter(node => node.scrollHeight > node.clientHeight + 1 || node.scrollWidth > node.clientWidth + 1).length";
        assert_eq!(browser.run(cut), 0, "{machine}");
        assert_clean(&browser, &served);
        browser.go("about:blank");
    }
}

#[test]
fn the_wall_changes_views_and_can_be_held() {
    let Some(browser) = Browser::open("wall views", 1920, 1080, "dark") else { return };
    let served = Served::start("p150x4,agent,hang=2@1s", &[]);
    open(&browser, &served, "wall");
    browser.wait_for_text("✕ 2 hung");
    assert_eq!(browser.run("return document.querySelectorAll('.cell').length"), 4);
    browser.press("\u{e014}");
    browser.wait_until("document.querySelectorAll('.wall .heatmap').length === 4");
    browser.press(" ");
    browser.wait_until("location.hash.includes('hold=maps')");
    browser.press(" ");
    browser.wait_until("!location.hash.includes('hold')");
    // After a while it goes on by itself.
    browser.wait_until("document.querySelectorAll('.wall .process').length > 0");
    browser.press(ESCAPE);
    browser.wait_until("location.hash.startsWith('#/overview')");
    assert_clean(&browser, &served);
}

#[test]
fn one_fault_is_one_line_and_a_count_on_phones() {
    let Some(browser) = Browser::open("the banner", 1440, 900, "light") else { return };
    let served = Served::start("galaxy-bh,hang=3@1s,hang=7@1s,hang=9@1s,hang=21@1s,lose=30@1s", &[]);
    open(&browser, &served, "overview");
    browser.wait_for_text("4 devices are hung");
    browser.wait_for_text("device 30 is lost");
    browser.wait_until("document.querySelectorAll('#problem-list li').length === 2");
    browser.wait_until("document.querySelector('.tile').innerText.includes('27 of 32 ok')");
    // Alerts fire for the same devices. They are not told again.
    browser.wait_until("[...document.querySelectorAll('.tile')].at(-1).innerText.includes('5 firing')");
    assert_eq!(browser.run("return document.querySelectorAll('#problem-list li').length"), 2);
    browser.wait_until("document.getElementById('badge').textContent === '5'");
    browser.press("6");
    browser.wait_until("document.querySelectorAll('main tbody tr').length === 5");
    browser.wait_until("document.getElementById('badge').textContent === ''");
    browser.resize(390, 844);
    open(&browser, &served, "overview");
    browser.wait_for_text("2 problems");
    browser.wait_until("document.getElementById('problem-list').hidden");
    let high = browser.run("return document.getElementById('problems').offsetHeight").as_f64().unwrap();
    assert!(high < 80.0, "the banner takes {high} pixels of a phone");
    browser.run("document.getElementById('problem-toggle').click()");
    browser.wait_for_text("4 devices are hung");
    assert_clean(&browser, &served);
}

#[test]
fn old_values_are_dim_and_have_an_age() {
    let Some(browser) = Browser::open("old values", 1440, 900, "light") else { return };
    let served = Served::start("p150x4,lose=2@3s", &[]);
    open(&browser, &served, "overview");
    browser.wait_until("/^\\d+ s old$/.test(document.querySelector('.card.aged .age')?.textContent)");
    let colour =
        |card: &str| browser.run(&format!("return getComputedStyle(document.querySelector('{card} .lane b')).color"));
    assert_ne!(colour(".card.aged"), colour(".card:not(.aged)"));
    let opacity = "Number(getComputedStyle(document.querySelector('.card.aged .spark')).opacity)";
    browser.run(&format!("window.before = {opacity}"));
    browser.wait_until(&format!("{opacity} < window.before"));
    // So they are on its own page: numbers, and what charts say last.
    open(&browser, &served, "device/2");
    browser.wait_until("/^\\d+ s old$/.test(document.querySelector('header.title .age').textContent)");
    let drawn = |node: &str| browser.run(&format!("return getComputedStyle(document.querySelector('{node}')).color"));
    for node in [".tile b", ".chart:not([hidden]) .reading", ".facts dd"] {
        assert_eq!(drawn(&format!("main {node}")), drawn("main .dim"), "{node}");
    }
    open(&browser, &served, "device/1");
    assert_ne!(drawn("main .tile b"), drawn("main .dim"));
    open(&browser, &served, "overview");
    // What is lost is part of no sum.
    browser.wait_until("[...document.querySelectorAll('.tile')].some(tile => /Power\\s+≥/.test(tile.innerText))");
    assert_clean(&browser, &served);
}

#[test]
fn a_line_keeps_its_scale_when_its_device_says_no_limit() {
    let Some(browser) = Browser::open("scales", 1440, 900, "light") else { return };
    let served = Served::start("galaxy-bh,idle,hang=31@6s", &[]);
    open(&browser, &served, "overview?range=5m");
    browser.wait_for_text("device 31 is hung");
    // All idle: the heights of the lines are about the same, of 20.
    let height = |card: u32| {
        format!(
            "parseFloat(document.querySelectorAll('.heat .card')[{card}].querySelector('.mean').getAttribute('d')?.split(/[ML ]/)[2])"
        )
    };
    browser.wait_until(&format!("Math.abs({} - {}) < 1.5", height(0), height(31)));
    assert_clean(&browser, &served);
}

#[test]
fn a_drag_zooms_all_charts_and_an_event_is_marked() {
    let Some(browser) = Browser::open("zoom", 1440, 900, "light") else { return };
    let served = Served::start("p150x4,agent,hang=2@4s", &[]);
    open(&browser, &served, "device/2?range=5m");
    browser.wait_until("document.querySelectorAll('.chart:not([hidden]) .marks .critical').length >= 2");
    assert_eq!(browser.run("return document.querySelector('.marks title').textContent.includes('ok → hung')"), true);
    open(&browser, &served, "device/0?range=5m");
    let all = browser.run("return document.querySelector('.chart .grid').textContent");
    browser.drag(browser.place(".chart svg", 0.6), browser.place(".chart svg", 0.95));
    browser.wait_until("/zoom=\\d{13}-\\d{13}/.test(location.hash)");
    browser.wait_for_text("Show all");
    browser.wait_until("document.querySelectorAll('.chart:not([hidden]) .mean.line0[d]').length >= 6");
    assert_ne!(browser.run("return document.querySelector('.chart .grid').textContent"), all);
    // The cursor of one chart is that of all.
    browser.hover(browser.place(".chart svg", 0.9));
    browser.wait_until("[...document.querySelectorAll('.chart:not([hidden]) output')].every(reading => reading.textContent.includes(' at '))");
    // Once for the cursor, once for the stretch.
    browser.press(ESCAPE);
    browser.press(ESCAPE);
    browser.wait_until("!location.hash.includes('zoom=')");
    browser.run("document.querySelector('.chart svg').focus()");
    browser.press("+");
    browser.wait_until("location.hash.includes('zoom=')");
    browser.press("-");
    browser.wait_until("!location.hash.includes('zoom=')");
    assert_clean(&browser, &served);
}

#[test]
fn the_heat_map_is_read_with_mouse_and_keys() {
    let Some(browser) = Browser::open("the heat map", 1440, 900, "light") else { return };
    let served = Served::start("galaxy-bh,agent", &[]);
    open(&browser, &served, "overview?heat=power_watts");
    let reading = "document.querySelector('.heatmap output').textContent";
    // An empty picture takes less.
    browser.wait_until("document.querySelector('.heatmap canvas').toDataURL().length > 4000");
    let is_read = format!("return /^device \\d+: \\d+\\.\\d W at \\d\\d:/.test({reading})");
    // A moment from which no sample has come yet has no value, and stays so: then the next one is looked at.
    let looks = (0..60).find(|_| {
        browser.hover((700, 5));
        browser.hover(browser.place(".heatmap canvas", 0.9995));
        std::thread::sleep(std::time::Duration::from_millis(500));
        browser.run(&is_read) == json!(true)
    });
    assert!(looks.is_some(), "{}", browser.run(&format!("return {reading}")));
    // The lines of the cards show the same moment.
    browser.wait_until("document.querySelector('.heat .card .label').textContent.includes(' at ')");
    browser.hover((700, 5));
    browser.run("document.querySelector('.heatmap canvas').focus()");
    browser.press(&DOWN.repeat(3));
    browser.press(LEFT);
    browser.wait_until(&format!("{reading}.startsWith('device 2: ')"));
    browser.press(ENTER);
    browser.wait_until("location.hash.startsWith('#/device/2')");
    assert_clean(&browser, &served);
}

#[test]
fn screen_readers_hear_changes_of_the_state_and_nothing_else() {
    let Some(browser) = Browser::open("screen readers", 1440, 900, "light") else { return };
    let served = Served::start("p150x4,agent,hang=2@8s", &[]);
    open(&browser, &served, "overview");
    let spoken = "document.getElementById('spoken').textContent";
    browser.wait_until(&format!("{spoken} === '4 of 4 devices ok. No problems.'"));
    browser.run("window.said = []; new MutationObserver(() => window.said.push(document.getElementById('spoken').textContent)).observe(document.getElementById('spoken'), { childList: true })");
    browser.wait_until(&format!("{spoken} === '3 of 4 devices ok. 1 problem: 2 hung.'"));
    browser.run("window.now = document.getElementById('sampled').textContent");
    browser.wait_until("document.getElementById('sampled').textContent !== window.now");
    assert_eq!(browser.run("return window.said.length"), 1);
    // All numbers in sentences, for whoever asks.
    browser
        .wait_until("/Utilization: \\d+ %.* Power: .* Hottest: /.test(document.getElementById('state').textContent)");
    browser.media(&[("prefers-reduced-motion", "reduce")]);
    let moving = "return [...document.querySelectorAll('*')].filter(node => getComputedStyle(node).transitionDuration !== '0s' || getComputedStyle(node).animationName !== 'none').length";
    assert_eq!(browser.run(moving), 0);
    assert_clean(&browser, &served);
}

#[test]
fn colours_can_be_chosen_and_are_kept() {
    let Some(browser) = Browser::open("colours", 1440, 900, "light") else { return };
    let served = Served::start("p150x4,agent,hang=2@1s", &[]);
    open(&browser, &served, "overview");
    browser.wait_for_text("device 2 is hung");
    let colour = "getComputedStyle(document.querySelector('.card .pill.good')).color";
    browser.run(&format!("window.standard = {colour}"));
    browser.press("?");
    browser.run("document.querySelector('#set-palette button:last-child').click()");
    browser.wait_until(&format!("{colour} !== window.standard"));
    browser.press(ESCAPE);
    open(&browser, &served, "overview");
    browser.wait_until("document.documentElement.dataset.palette === 'safe'");
    // An address for a display says it itself.
    open(&browser, &served, "wall?theme=dark&palette=standard");
    browser.wait_until("document.documentElement.dataset.palette === 'standard' && getComputedStyle(document.documentElement).colorScheme === 'dark'");
    assert_clean(&browser, &served);
}

#[test]
fn a_process_has_totals_and_charts_of_what_it_does() {
    let Some(browser) = Browser::open("a process", 1440, 900, "light") else { return };
    let served = Served::start("p150x4,agent", &[]);
    open(&browser, &served, "processes?q=command~llama");
    browser.wait_until("document.querySelectorAll('main tbody tr').length === 1");
    browser.wait_for_text("serve_llama.py");
    browser.run("document.querySelector('main tbody a').click()");
    browser.wait_for_text("Device time by operation");
    browser.wait_for_text("MatmulDeviceOperation");
    browser.wait_until("document.querySelectorAll('.chart:not([hidden]) .mean[d]').length >= 4");
    browser.wait_until(
        "[...document.querySelectorAll('.tile')].some(tile => /DRAM used\\s+\\d+\\.\\d GiB/.test(tile.innerText))",
    );
    assert_clean(&browser, &served);
}

#[test]
fn stale_memory_is_on_small_and_large_cards() {
    let Some(browser) = Browser::open("stale memory", 1440, 900, "light") else { return };
    for (machine, text) in
        [("p150x4,kill=0@2s", "stale: still attributed to exited processes"), ("galaxy-bh,kill=0@2s", "GiB stale")]
    {
        let served = Served::start(machine, &[]);
        open(&browser, &served, "overview");
        browser.wait_until(&format!("document.querySelector('.card').innerText.includes('{text}')"));
        assert_clean(&browser, &served);
        browser.go("about:blank");
    }
}

#[test]
fn boards_of_a_mesh_have_names_that_differ() {
    let Some(browser) = Browser::open("names of boards", 390, 844, "light") else { return };
    let served = Served::start("n300x4", &[]);
    open(&browser, &served, "mesh");
    browser.wait_until("document.querySelectorAll('.groups text').length === 4");
    let names = "[...document.querySelectorAll('.groups text')].map(node => node.textContent)";
    assert_eq!(browser.run(&format!("return new Set({names}).size")), 4, "{}", browser.run(&format!("return {names}")));
    assert_sound(&browser, "the mesh on a phone");
    assert_clean(&browser, &served);
}
