//! The page of a real service, in a real browser.

use crate::support::browser::{Browser, ENTER, ESCAPE, LEFT};
use crate::support::page::{LIVE, NAMELESS, Served, assert_clean, assert_nothing_foreign};
use crate::support::service::{Poc, c_client};
use serde_json::json;

#[test]
fn the_page_lives_and_obeys_keys() {
    let Some(browser) = Browser::open("the page", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    browser.go(&served.address(""));
    browser.wait_until(LIVE);
    browser.wait_until("document.querySelectorAll('.cards .card').length === 4");
    browser.run("window.first = document.getElementById('sampled').textContent");
    browser.wait_until("document.getElementById('sampled').textContent !== window.first");
    browser.run("window.card = document.querySelector('.card')");

    for (key, text) in [
        ("2", "Memory by process"),
        ("3", "Mesh"),
        ("4", "in all"),
        ("5", "Exited processes"),
        ("6", "Alerts"),
        ("1", "Hottest"),
    ] {
        browser.press(key);
        browser.wait_for_text(text);
    }
    browser.press("?");
    browser.wait_for_text("shorter, longer time range");
    browser.press(ESCAPE);
    browser.wait_until("!document.getElementById('help').open");
    browser.press("jj");
    browser.press(ENTER);
    browser.wait_until("location.hash.startsWith('#/device/1')");
    browser.wait_for_text("Device 1");
    browser.press("j");
    browser.wait_for_text("Device 2");
    browser.press(ESCAPE);
    browser.wait_until("location.hash.startsWith('#/overview')");

    let scheme = "getComputedStyle(document.documentElement).colorScheme";
    browser.press("t");
    browser.wait_until(&format!("{scheme} === 'light'"));
    browser.press("t");
    browser.wait_until(&format!("{scheme} === 'dark'"));
    browser.go(&served.address("#/memory"));
    browser.wait_until(&format!("{scheme} === 'dark'"));
    assert_clean(&browser, &served);
}

#[test]
fn processes_are_filtered_and_sorted_and_opened() {
    let Some(browser) = Browser::open("the filter", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    browser.go(&served.address("#/overview"));
    browser.wait_until(LIVE);
    browser.press("/");
    browser.wait_until("document.activeElement.id === 'filter'");
    let names = "[...document.querySelectorAll('main tbody tr')].map(row => [...row.cells].at(-1).textContent.split(' ')[1]).join()";
    browser.press("dram>1G command~train");
    browser.wait_until(&format!("{names} === 'train_nanogpt.py'"));
    browser.wait_for_text("1 of ");
    browser.press(" (");
    browser.wait_for_text("at 24: expected a term");
    assert_eq!(browser.run(&format!("return {names}")), "train_nanogpt.py", "the last valid filter is still used");
    // It also is with the samples that follow.
    browser.run("window.sampled = document.getElementById('sampled').textContent");
    browser.wait_until("document.getElementById('sampled').textContent !== window.sampled");
    assert_eq!(browser.run(&format!("return {names}")), "train_nanogpt.py");
    browser.go(&served.address("#/processes?q=drm%3E1G"));
    browser.wait_for_text("unknown field \"drm\" (did you mean dram?); expected one of pid, ");
    // The address has it, and so does whoever gets the address.
    browser.go(&served.address("#/processes?q=not+command~train&sort=pid"));
    browser.wait_until(&format!("!{names}.includes('train') && {names}.length > 0"));
    browser.wait_until("document.querySelector('th[aria-sort=descending]').textContent.startsWith('PID')");
    // Once to leave the field, once to let everything through again.
    browser.press(ESCAPE);
    browser.press(ESCAPE);
    browser.wait_until(&format!("{names}.includes('train')"));
    browser.press("j");
    browser.press(ENTER);
    browser.wait_for_text("Host memory");
    browser.wait_for_text("No per-buffer data for this process");
    browser.back();
    browser.wait_until("location.hash.startsWith('#/processes')");
    // The browser logs each filter that the service refused.
    let others: Vec<String> = browser.complaints().into_iter().filter(|line| !line.contains("status of 400")).collect();
    assert_eq!(others, [""; 0]);
    assert_nothing_foreign(&browser, &served);
}

#[test]
fn a_device_has_charts_that_can_be_read_with_keys() {
    let Some(browser) = Browser::open("the charts", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    browser.go(&served.address("#/device/0?range=6h"));
    browser.wait_until("document.querySelector('#ranges [aria-pressed=true]').textContent === '6h'");
    browser.press("[[[[");
    browser.wait_until("location.hash.includes('range=5m')");
    browser.wait_until("document.querySelectorAll('.chart:not([hidden])').length === 7");
    let lines = "[...document.querySelectorAll('.chart .mean.line0')].filter(line => line.getTotalLength() > 1).length";
    browser.wait_until(&format!("{lines} >= 6"));
    browser.run("document.querySelector('.chart svg').focus()");
    browser.press(LEFT);
    browser.wait_until(
        "/\\d\\.\\d °C.* at \\d\\d:/.test(document.querySelector('.chart svg').getAttribute('aria-valuetext'))",
    );
    browser.press(ESCAPE);
    browser.wait_until("!document.querySelector('.chart output').textContent.includes(' at ')");
    assert_clean(&browser, &served);
}

#[test]
fn a_hung_device_is_named() {
    let Some(browser) = Browser::open("a hung device", 1440, 900, "dark") else { return };
    let served = Served::start("p150x4,hang=2@1s", &[]);
    browser.go(&served.address(""));
    browser.wait_for_text("device 2 is hung");
    browser.wait_until("document.title.startsWith('(1 problem)')");
    browser.wait_until("document.querySelector('.card.problem .id').textContent === '2'");
    browser.press("6");
    browser.wait_for_text("device 2: ok → hung");
    browser.wait_for_text("heartbeat-stopped");
    browser.wait_for_text("firing for");
    assert_clean(&browser, &served);
}

#[test]
fn when_the_service_ends_the_page_says_so_and_comes_back_with_it() {
    let Some(browser) = Browser::open("coming back", 1440, 900, "light") else { return };
    let mut served = Served::start("p150x4", &[]);
    browser.go(&served.address("#/device/1"));
    browser.wait_until(LIVE);
    browser.wait_for_text("Device 1");
    browser.run("window.stays = true");
    served.kill();
    browser.wait_for_text("Out of date: last sample");
    browser.wait_for_text("Next try in");
    browser.wait_until("document.body.classList.contains('is-old') && document.title.startsWith('(old)')");
    // Nothing is of now, and nothing looks as if it were.
    let colour = |node: &str| browser.run(&format!("return getComputedStyle(document.querySelector('{node}')).color"));
    for node in ["main .tile b", "main .reading", "main .facts dd"] {
        assert_eq!(colour(node), colour("main .dim"), "{node}");
    }
    served.restart();
    browser.wait_until(LIVE);
    browser.wait_until("document.getElementById('old').hidden && window.stays");
    // A refused connection is a complaint of the browser's own.
    let others: Vec<String> = browser.complaints().into_iter().filter(|line| !line.contains("net::ERR_")).collect();
    assert_eq!(others, [""; 0]);
}

#[test]
fn thirty_two_devices_fit_on_a_screen_and_every_view_on_a_telephone() {
    let Some(browser) = Browser::open("32 devices", 1440, 900, "dark") else { return };
    let served = Served::start("galaxy-bh", &[]);
    browser.go(&served.address(""));
    browser.wait_until("document.querySelectorAll('.heat .card').length === 32");
    let last = browser.run("return document.querySelector('.heat .card:last-child').getBoundingClientRect().bottom");
    assert!(last.as_f64().unwrap() < 900.0, "the last device ends at {last}");
    assert_eq!(browser.run("return getComputedStyle(document.body).backgroundColor"), "rgb(13, 15, 19)");
    browser.resize(360, 800);
    for view in ["overview", "memory", "mesh", "processes", "deaths", "events", "device/31"] {
        browser.go(&served.address(&format!("#/{view}")));
        browser.wait_until(&format!(
            "document.querySelector('main').innerText.length > 10 && location.hash.includes('{view}')"
        ));
        let fits = "const { scrollWidth, clientWidth } = document.documentElement; return scrollWidth <= clientWidth";
        assert_eq!(browser.run(fits), true, "{view} is wider than the screen");
        assert_eq!(browser.run(NAMELESS), json!([]), "{view}");
    }
    assert_clean(&browser, &served);
}

#[test]
fn what_a_process_calls_itself_is_text() {
    let Some(browser) = Browser::open("a hostile name", 1440, 900, "light") else { return };
    let served = Served::start("p150x4", &[]);
    let program = served.folder.path().join("<b>hostile<b>");
    crate::support::copy_program(c_client(), &program);
    let script = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";
    let wrapper = ["bash", "-c", "exec -a \"$0\" \"$@\"", script];
    let mut client = Poc::start(&wrapper, &[program.to_str().unwrap()], &served.poc_socket());
    client.ask("alloc 0 1073741824 0 4096");
    browser.go(&served.address("#/processes?q=hostile"));
    browser.wait_for_text("<b>hostile<b>");
    browser.wait_for_text(script);
    browser.go(&served.address("#/memory?by=process"));
    browser.wait_for_text("<b>hostile<b>");
    browser.go(&served.address(&format!("#/process/{}", client.pid)));
    browser.wait_for_text("0x1000");
    browser.wait_for_text(script);
    client.kill();
    browser.go(&served.address("#/deaths"));
    browser.wait_for_text("1 recorded");
    browser.wait_for_text(script);
    assert_eq!(browser.run("return document.querySelectorAll('main script, main img, main b b').length"), 0);
    assert!(browser.run("return document.title").as_str().unwrap().ends_with("ttmon"));
    assert_clean(&browser, &served);
}

#[test]
fn a_service_with_a_token_is_opened_with_it() {
    let Some(browser) = Browser::open("the token", 1440, 900, "light") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "correct-horse-battery-staple\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let served = Served::start("p150x4", &["--token-file", file.to_str().unwrap()]);
    browser.go(&served.address(""));
    browser.wait_until("document.getElementById('token').open");
    let give = |token: &str| {
        browser.run(&format!("document.getElementById('token-text').value = {}", json!(token)));
        browser.run("document.querySelector('#token-form button').click()");
    };
    give("wrong-horse-battery-staple");
    browser.wait_until("document.getElementById('token').open");
    assert!(!browser.text().contains("p150a"), "{}", browser.text());
    give("correct-horse-battery-staple");
    browser.wait_until(LIVE);
    browser.wait_for_text("p150a");
    browser.go(&served.address("#/mesh"));
    browser.run("location.reload()");
    browser.wait_until(LIVE);
}
