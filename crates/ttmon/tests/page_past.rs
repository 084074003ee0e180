//! The past on the page: a real service that keeps a black box, in a real browser.

use crate::support::browser::Browser;
use crate::support::page::{FINDINGS, LIVE, NAMELESS, Served, assert_clean};
use crate::support::service::wait_for;
use serde_json::{Value, json};

fn get(served: &Served, path: &str) -> Value {
    let text = ureq::get(served.address(path)).call().unwrap().body_mut().read_to_string();
    serde_json::from_str(&text.unwrap()).unwrap()
}

#[test]
fn the_page_shows_the_machine_before_and_after_it_hung() {
    let Some(browser) = Browser::open("the past on the page", 1440, 900, "light") else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = ["--black-box", folder.path().to_str().unwrap()];
    let served = Served::start("p150x4,hang=1@3s", &options);
    let hung = || get(&served, "api/v1/past?from=-600000&series=power_watts")["events"].clone();
    let is_hung = |event: &Value| event["text"].as_str().is_some_and(|text| text.contains("ok → hung"));
    wait_for(|| hung().as_array().is_some_and(|events| events.iter().any(is_hung)), || served.log());
    let status = get(&served, "api/v1/status");
    assert_eq!(status["black_box"], true, "{status}");

    browser.go(&served.address(""));
    browser.wait_until(LIVE);
    browser.wait_until(
        "!document.querySelector('#show-past').hidden && !document.querySelector('[data-range=\"7d\"]').hidden",
    );
    browser.wait_for_text("3 of 4 ok");
    browser.press("p");
    browser.wait_until("document.querySelector('#live-word').textContent === 'past'");
    // Five minutes ago there was no service.
    browser.wait_until("/nothing was recorded/.test(document.querySelector('.past').innerText)");
    let hang = hung().as_array().unwrap().iter().find(|event| is_hung(event)).unwrap()["time"].clone();
    browser.run(&format!("location.hash = `#/overview?at=${{Date.parse({hang}) - 2000}}`"));
    browser.wait_for_text("4 ok");
    browser.wait_until("document.querySelectorAll('.timeline .mark.critical').length === 1");
    assert_eq!(browser.run("return document.title.startsWith('(past)')"), json!(true));
    let problem = "[...document.querySelectorAll('.past button')].find(one => one.title === 'Next problem').click()";
    browser.run(problem);
    browser.wait_for_text("3 of 4 ok");
    assert_eq!(browser.run(NAMELESS), json!([]));
    for width in [1440, 390] {
        browser.resize(width, 900);
        assert_eq!(browser.run(FINDINGS), json!([]), "{width}");
    }
    // The address is all that somebody else needs.
    let address = browser.run("return location.href");
    browser.go("about:blank");
    browser.go(address.as_str().unwrap());
    browser.wait_until("document.querySelector('#live-word').textContent === 'past'");
    browser.wait_for_text("3 of 4 ok");
    // Time runs, and ends in the present.
    browser.run("const pace = document.querySelector('.past select'); pace.value = '1000'; pace.dispatchEvent(new Event('change')); [...document.querySelectorAll('.past button')].find(one => one.title === 'Play').click()");
    browser.wait_until(&format!("{LIVE} && document.querySelector('.past').hidden"));
    browser.wait_until("!location.hash.includes('at=')");
    assert_clean(&browser, &served);
}

#[test]
fn a_service_without_a_black_box_says_so_and_the_page_does_not_offer_it() {
    let Some(browser) = Browser::open("no past on the page", 1440, 900, "light") else { return };
    let served = Served::start("p150", &[]);
    let none = "this service keeps no black box: start it with --black-box DIR";
    assert_eq!(get(&served, "api/v1/past")["reason"], none);
    assert_eq!(get(&served, "api/v1/past/snapshot?at=-1000"), json!({ "snapshot": null, "reason": none }));
    browser.go(&served.address(""));
    browser.wait_until(LIVE);
    browser.wait_until(
        "document.querySelector('#show-past').hidden && document.querySelector('[data-range=\"7d\"]').hidden",
    );
    assert_clean(&browser, &served);
}
