//! The stream of the page, in a real browser: one for all tabs, however many there are and however often a page is left and shown again.

use crate::support::browser::Browser;
use crate::support::page::{LIVE, Served, assert_clean};
use crate::support::service::wait_for;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// So soon the figures of a page that is opened are live.
const LIVE_WITHIN: Duration = Duration::from_secs(2);

fn streams(served: &Served) -> u64 {
    let text = ureq::get(served.address("api/v1/status")).call().unwrap().body_mut().read_to_string().unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["streams"].as_u64().unwrap()
}

/// Opens something that shows the page, and checks how long it takes.
fn assert_soon_live(browser: &Browser, what: &str, open: impl FnOnce()) {
    let begun = Instant::now();
    open();
    browser.wait_until(LIVE);
    let took = begun.elapsed();
    assert!(took <= LIVE_WITHIN, "{what} was live after {took:?}");
}

/// A new sample is shown.
fn assert_goes_on(browser: &Browser) {
    browser.run("window.sampled = document.getElementById('sampled').textContent");
    browser.wait_until(&format!("{LIVE} && document.getElementById('sampled').textContent !== window.sampled"));
}

#[test]
#[ignore = "long"]
fn twenty_tabs_are_live_with_one_stream() {
    let Some(browser) = Browser::open("twenty tabs", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    let mut tabs = Vec::new();
    for number in 1..=20 {
        tabs.push(browser.new_tab());
        assert_soon_live(&browser, &format!("tab {number}"), || browser.go(&served.address("#/device/1")));
        assert_eq!(streams(&served), 1, "with {number} tabs");
    }
    for tab in &tabs {
        browser.show_tab(tab);
        assert_goes_on(&browser);
        // What is asked for beside the stream also comes.
        browser.wait_until("document.querySelectorAll('.chart:not([hidden])').length > 4");
    }
    assert_eq!(streams(&served), 1);
    assert_clean(&browser, &served);
}

#[test]
#[ignore = "long"]
fn thirty_visits_in_one_tab_are_live_with_one_stream() {
    let Some(browser) = Browser::open("thirty visits", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    for number in 1..=10 {
        assert_soon_live(&browser, &format!("visit {}", 3 * number - 2), || browser.go(&served.address("#/overview")));
        assert_eq!(streams(&served), 1);
        // By a link of another page.
        browser.go(&served.address("healthz"));
        assert_soon_live(&browser, &format!("visit {}", 3 * number - 1), || {
            browser.run(
                "document.body.innerHTML = '<a href=\"./?#/memory\">ttmon</a>'; document.querySelector('a').click()",
            );
            browser.wait_until("location.search === '' && location.hash === '#/memory' && document.getElementById('live-word') !== null");
        });
        assert_eq!(streams(&served), 1);
        assert_soon_live(&browser, &format!("visit {}", 3 * number), || {
            browser.run("window.isBefore = true; location.reload()");
            browser.wait_until("!window.isBefore && document.getElementById('live-word') !== null");
        });
        browser.go("about:blank");
        assert!(streams(&served) <= 1);
    }
    browser.close_tab();
    wait_for(|| streams(&served) == 0, || format!("{} streams are left", streams(&served)));
}

#[test]
fn back_and_forward_show_a_live_page() {
    let Some(browser) = Browser::open("back and forward", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    browser.go(&served.address("#/overview"));
    browser.wait_until(LIVE);
    browser.run("window.isKept = true");
    browser.go(&served.address("?second#/memory"));
    browser.wait_until(LIVE);
    for _ in 0..3 {
        browser.back();
        browser.wait_until("location.search === '' && document.readyState === 'complete'");
        assert_goes_on(&browser);
        assert_eq!(browser.run("return window.isKept"), true, "the browser has kept the page");
        browser.forward();
        browser.wait_until("location.search === '?second' && document.readyState === 'complete'");
        assert_goes_on(&browser);
        assert_eq!(streams(&served), 1);
    }
    assert_clean(&browser, &served);
}

#[test]
fn a_browser_without_shared_workers_has_a_stream_for_each_page_that_is_shown() {
    let Some(browser) = Browser::open("no shared workers", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    browser.run_first("delete globalThis.SharedWorker");
    for _ in 0..8 {
        browser.go(&served.address("#/overview"));
        assert_goes_on(&browser);
        assert_eq!(streams(&served), 1);
        browser.go("about:blank");
        wait_for(|| streams(&served) == 0, || "the page that was left has a stream".into());
    }
    browser.back();
    assert_goes_on(&browser);
    assert_clean(&browser, &served);
}

#[test]
fn a_page_that_is_hidden_for_long_leaves_the_stream_and_returns_to_it() {
    let Some(browser) = Browser::open("a hidden page", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    // Two minutes pass in half a second.
    browser.run_first("const real = setTimeout; globalThis.setTimeout = (act, ms, ...given) => real(act, ms === 120e3 ? 500 : ms, ...given)");
    let tab = browser.tab();
    browser.go(&served.address("#/overview"));
    browser.wait_until(LIVE);
    browser.new_tab();
    wait_for(|| streams(&served) == 0, || "the hidden page has a stream".into());
    browser.show_tab(&tab);
    assert_goes_on(&browser);
    assert_eq!(streams(&served), 1);
    assert_clean(&browser, &served);
}

#[test]
fn a_page_that_waits_for_a_connection_says_so() {
    let Some(browser) = Browser::open("no connection", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    browser.go(&served.address("#/overview"));
    browser.wait_until(LIVE);
    // The service answers nothing: as long as a browser with six busy connections waits.
    let stopped = served.stop();
    browser
        .run("dispatchEvent(new PageTransitionEvent('pagehide')); dispatchEvent(new PageTransitionEvent('pageshow'))");
    browser.wait_for_text("Waiting for a connection to the service.");
    browser.wait_until("document.body.classList.contains('is-old') && document.title.startsWith('(old)')");
    browser.wait_until("document.getElementById('live-word').textContent === 'reconnecting'");
    drop(stopped);
    assert_goes_on(&browser);
    browser.wait_until("document.getElementById('old').hidden");
    assert_clean(&browser, &served);
}

#[test]
fn with_tls_all_that_a_browser_asks_is_on_one_connection() {
    let Some(browser) = Browser::open("HTTP/2", 1440, 900, "light") else { return };
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".into()]).unwrap();
    let [cert, key] =
        [("cert.pem", made.cert.pem()), ("key.pem", made.signing_key.serialize_pem())].map(|(name, text)| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name).display().to_string()
        });
    let served = Served::start("p150x4", &["--tls-cert", &cert, "--tls-key", &key]);
    for _ in 0..8 {
        browser.new_tab();
        browser.go(&served.address("#/device/1"));
        assert_goes_on(&browser);
        let others =
            "return performance.getEntries().map(entry => entry.nextHopProtocol).filter(one => one && one !== 'h2')";
        assert_eq!(browser.run(others), json!([]));
    }
    let status = browser.run("return fetch('api/v1/status').then(answer => answer.json())");
    assert_eq!((&status["clients"], &status["streams"]), (&json!(1), &json!(1)), "{status}");
    assert_clean(&browser, &served);
}
