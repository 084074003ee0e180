//! The fleet on the page of a real service, in a real browser: three services, of which one is killed and one has a hung device.

use crate::support::browser::{Browser, DOWN, ENTER, ESCAPE};
use crate::support::needs;
use crate::support::page::{LIVE, Served, assert_clean, assert_sound, axe};
use crate::support::service::wait_for;
use serde_json::{Value, json};
use std::fs;

/// Three machines, and a service that watches them.
struct WatchedLab {
    hung: Served,
    lost: Served,
    fine: Served,
    watcher: Served,
}

/// What `[fleet]` calls a service.
fn name(served: &Served) -> String {
    served.address("").trim_start_matches("http://").trim_end_matches('/').to_owned()
}

impl WatchedLab {
    fn start() -> WatchedLab {
        let fine = Served::start("p150x4,agent", &[]);
        let hung = Served::start("galaxy-bh,agent,hang=3@1s", &[]);
        let lost = Served::start("n300x4", &[]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        fs::write(&file, configuration(&[&fine, &hung, &lost])).unwrap();
        let watcher = Served::start("p150", &["--config", file.to_str().unwrap()]);
        WatchedLab { hung, lost, fine, watcher }
    }

    fn fleet(&self, query: &str) -> Value {
        fleet(&self.watcher, query)
    }

    /// Kills one of them once it has been seen.
    fn lose_one(&mut self) {
        wait_for(|| self.fleet("")["totals"]["hosts_reached"] == 3, || self.fleet("").to_string());
        wait_for(|| self.fleet("")["totals"]["devices_ok"] == 43, || self.fleet("").to_string());
        self.lost.kill();
        wait_for(|| self.fleet("")["totals"]["hosts_reached"] == 2, || self.fleet("").to_string());
    }
}

fn configuration(hosts: &[&Served]) -> String {
    let names: Vec<String> = hosts.iter().map(|served| name(served)).collect();
    format!("[fleet]\nhosts = {}\n", json!(names))
}

fn fleet(served: &Served, query: &str) -> Value {
    let text = ureq::get(served.address(&format!("api/v1/fleet{query}"))).call().unwrap().body_mut().read_to_string();
    serde_json::from_str(&text.unwrap()).unwrap()
}

fn open(browser: &Browser, served: &Served, view: &str) {
    browser.go("about:blank");
    browser.go(&served.address(&format!("#/{view}")));
    browser.wait_until(LIVE);
    browser.wait_until("document.querySelector('.fleet:not([hidden]) h1')?.textContent.length > 1");
    browser.run("return new Promise(resolve => setTimeout(resolve, 300))");
}

#[test]
fn the_worst_machine_is_first_and_leads_to_its_devices() {
    let Some(browser) = Browser::open("the fleet", 1440, 900, "light") else { return };
    let mut lab = WatchedLab::start();
    lab.lose_one();
    let [fine, hung, lost] = [&lab.fine, &lab.hung, &lab.lost].map(name);
    browser.go(&lab.watcher.address(""));
    browser.wait_until(LIVE);
    browser.wait_until("!document.querySelector('#tabs [data-view=fleet]').hidden");
    browser.press("7");
    browser.wait_for_text("3 in all, worst first");
    let rows = "[...document.querySelector('.fleet').querySelectorAll('tbody tr')].map(row => [...row.cells].slice(0, 2).map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()).join(' '))";
    let expected = json!([format!("✕ no answer {lost}"), format!("✕ critical {hung}"), format!("● ok {fine}")]);
    browser.wait_until(&format!("JSON.stringify({rows}) === {}", json!(expected.to_string())));
    browser.wait_for_text("connection refused: `ttmon serve` is not running there");
    browser.wait_for_text("device 3 is hung");
    // A square for each device; the one that hangs stands out, and screen readers hear of it.
    browser.wait_until("document.querySelectorAll('.strip i').length === 44");
    browser.wait_until("document.querySelectorAll('.strip .critical').length === 1");
    browser.wait_until(
        "[...document.querySelectorAll('.strip')].some(strip => strip.ariaLabel === '31 of 32 devices ok, 3 hung')",
    );
    // What does not answer is old and in no sum.
    browser.wait_until("/^\\d+ s old$/.test(document.querySelector('.fleet tr.aged').cells[8].innerText)");
    browser.wait_for_text("1 of 3 ok");
    browser.wait_until("[...document.querySelectorAll('.tile')].some(tile => /Power\\s+≥ /.test(tile.innerText))");
    browser.run("document.querySelector('[data-only=problems]').click()");
    browser.wait_for_text("2 of 3");
    browser.run("document.querySelector('[data-only=\"\"]').click()");
    browser.wait_for_text("3 in all");
    // Down with keys: a machine, a device, and back.
    browser.press("jj");
    browser.press(ENTER);
    browser.wait_until(&format!("document.querySelector('.fleet:not([hidden]) h1').textContent === {}", json!(hung)));
    browser.wait_until("document.querySelectorAll('.fleet .card').length === 32");
    browser.wait_for_text("Firmware heartbeat stopped");
    let own = "document.querySelector('.fleet:not([hidden]) .own')";
    assert_eq!(browser.run(&format!("return {own}.href")), lab.hung.address(""));
    assert_eq!(browser.run(&format!("return {own}.rel")), "noopener noreferrer");
    browser.press("jjjj");
    browser.press(ENTER);
    browser.wait_until("location.hash.includes('/3?')");
    browser.wait_for_text("Device 3");
    browser.wait_for_text("serve_llama.py");
    browser.wait_until(&format!(
        "[...document.querySelectorAll('.own')].some(link => link.href === {})",
        json!(lab.hung.address("#/device/3"))
    ));
    browser.press(ESCAPE);
    browser.wait_until("!location.hash.includes('/3?') && location.hash.includes('fleet/')");
    browser.press(ESCAPE);
    browser.wait_for_text("3 in all, worst first");
    browser.press(DOWN);
    // A machine that comes back is ok again, and the worst is another one.
    lab.lost.restart();
    browser.wait_until("document.querySelector('.fleet tbody tr').innerText.includes('critical')");
    browser.wait_until(
        "[...document.querySelector('.fleet').querySelectorAll('tbody tr')].slice(1).every(row => row.innerText.includes('ok'))",
    );
    browser.go(&lab.watcher.address("#/fleet/nobody"));
    browser.wait_for_text("No machine nobody is watched.");
    assert_clean(&browser, &lab.watcher);
}

#[test]
fn the_fleet_is_sound_at_every_size_in_both_themes() {
    let Some(browser) = Browser::open("the looks of the fleet", 1440, 900, "light") else { return };
    let Some(script) = needs::axe("the looks of the fleet") else { return };
    let mut lab = WatchedLab::start();
    lab.lose_one();
    let [fine, hung, lost] = [&lab.fine, &lab.hung, &lab.lost].map(|served| name(served).replace(':', "%3A"));
    let views = [
        "fleet".to_owned(),
        format!("fleet/{hung}"),
        format!("fleet/{fine}"),
        format!("fleet/{lost}"),
        format!("fleet/{hung}/3"),
        format!("fleet/{lost}/0R"),
    ];
    for (width, height) in [(390, 844), (1440, 900), (3840, 2160)] {
        browser.resize(width, height);
        for view in &views {
            open(&browser, &lab.watcher, view);
            for scheme in ["light", "dark"] {
                browser.media(&[("prefers-color-scheme", scheme)]);
                let what = format!("{view} at {width} in {scheme}");
                assert_sound(&browser, &what);
                // The largest differs from the middle one in sizes alone.
                if width < 3840 {
                    assert_eq!(axe(&browser, &script), json!([]), "{what}");
                }
            }
        }
    }
    assert_clean(&browser, &lab.watcher);
}

#[test]
fn machines_with_a_token_are_asked_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let [token, file] = ["token", "config.toml"].map(|name| folder.path().join(name));
    fs::write(&token, "correct-horse-battery-staple\n").unwrap();
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let locked = Served::start("p150", &["--token-file", token.to_str().unwrap()]);
    fs::write(&file, configuration(&[&locked])).unwrap();
    let served = Served::start("p150", &["--config", file.to_str().unwrap()]);
    wait_for(|| fleet(&served, "")["hosts"][0]["state"] == "unreachable", || fleet(&served, "").to_string());
    let reason = "requires a token, and got none or a wrong one: token_file in [fleet]";
    assert_eq!(fleet(&served, "")["hosts"][0]["reason"], reason);
    fs::write(&file, format!("{}token_file = {}\n", configuration(&[&locked]), json!(token))).unwrap();
    served.hang_up();
    wait_for(|| fleet(&served, "")["totals"]["hosts_ok"] == 1, || fleet(&served, "").to_string());
    let refused = ureq::get(locked.address("api/v1/fleet")).call().unwrap_err();
    assert_eq!(refused.to_string(), "http status: 401");
}

#[test]
fn a_service_without_a_fleet_has_no_tab_for_it_and_reads_the_configuration_again() {
    let Some(browser) = Browser::open("no fleet", 1440, 900, "light") else { return };
    let other = Served::start("p150", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "").unwrap();
    let served = Served::start("p150", &["--config", file.to_str().unwrap()]);
    assert_eq!(fleet(&served, "")["watched"], false);
    assert_eq!(fleet(&served, "")["hosts"], json!([]));
    assert_eq!(threads_for_hosts(&served), 0, "nobody is asked");
    open_at(&browser, &served, "overview");
    assert_eq!(browser.run("return document.querySelector('#tabs [data-view=fleet]').hidden"), true);
    browser.press("7");
    assert_eq!(browser.run("return location.hash.includes('fleet')"), false);
    fs::write(&file, configuration(&[&other])).unwrap();
    served.hang_up();
    wait_for(|| fleet(&served, "")["totals"]["hosts_ok"] == 1, || fleet(&served, "").to_string());
    assert_eq!(threads_for_hosts(&served), 1);
    let whole = fleet(&served, &format!("?host={}", name(&other)));
    assert_eq!(whole["hosts"][0]["snapshot"]["devices"][0]["state"], "ok");
    assert_eq!(whole["hosts"][0]["alerts"], json!([]));
    assert!(fleet(&served, "")["hosts"][0].get("snapshot").is_none());
    assert_eq!(fleet(&served, "?host=nobody")["hosts"], json!([]));
    open_at(&browser, &served, "overview");
    browser.wait_until("!document.querySelector('#tabs [data-view=fleet]').hidden");
    // A mistake is named with its line, and what was there stays.
    fs::write(&file, "[fleet]\nhosts = [\"a b\"]\n").unwrap();
    served.hang_up();
    wait_for(|| served.log().contains("config.toml:2: hosts"), || served.log());
    assert_eq!(fleet(&served, "")["totals"]["hosts_ok"], 1);
    fs::write(&file, "").unwrap();
    served.hang_up();
    wait_for(|| fleet(&served, "")["watched"] == false, || fleet(&served, "").to_string());
    assert_clean(&browser, &served);
}

fn open_at(browser: &Browser, served: &Served, view: &str) {
    browser.go("about:blank");
    browser.go(&served.address(&format!("#/{view}")));
    browser.wait_until(LIVE);
    browser.run("return new Promise(resolve => setTimeout(resolve, 500))");
}

/// How many threads of the service ask other machines.
fn threads_for_hosts(served: &Served) -> usize {
    let children = format!("/proc/{0}/task/{0}/children", served.pid());
    let service = fs::read_to_string(children).unwrap();
    let tasks = fs::read_dir(format!("/proc/{}/task", service.split_whitespace().next().unwrap())).unwrap();
    let names = tasks.flatten().map(|task| fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    names.filter(|name| name.trim() == "ttmon-host").count()
}
