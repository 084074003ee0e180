//! The service whose page is opened, and what every test of the page asks.

use super::TTMON;
use super::browser::Browser;
use super::service::wait_for;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command};
use tempfile::TempDir;

/// A service with a simulated machine, ended when dropped.
pub struct Served {
    pub folder: TempDir,
    child: Child,
    machine: String,
    options: Vec<String>,
    port: u16,
}

impl Served {
    pub fn start(machine: &str, options: &[&str]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = spawn(&folder, machine, 0, &options);
        let mut served = Served { folder, child, machine: machine.to_owned(), options, port: 0 };
        wait_for(|| served.port_in_log().is_some(), || served.log());
        served.port = served.port_in_log().unwrap();
        served
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn port_in_log(&self) -> Option<u16> {
        let log = self.log();
        let (_, rest) = log.split_once("address=127.0.0.1:")?;
        rest.split_once('\n')?.0.split(' ').next()?.parse().ok()
    }

    pub fn address(&self, rest: &str) -> String {
        let scheme = if self.options.iter().any(|option| option == "--tls-cert") { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}/{rest}", self.port)
    }

    pub fn poc_socket(&self) -> PathBuf {
        self.folder.path().join("poc.sock")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) {
        // Asked, so that it takes its machine away.
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }

    /// Stops it, so that it answers nothing, until the guard is dropped.
    pub fn stop(&self) -> StoppedService<'_> {
        self.signal_all(rustix::process::Signal::STOP);
        StoppedService(self)
    }

    /// To the service and the child that it runs in.
    fn signal_all(&self, signal: rustix::process::Signal) {
        for pid in [self.pid()].into_iter().chain(super::harness::only_child(self.pid())) {
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        }
    }

    /// Asks it to read its configuration again.
    pub fn hang_up(&self) {
        let child = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(child, rustix::process::Signal::HUP).unwrap();
    }

    /// Starts it again at the same address.
    pub fn restart(&mut self) {
        self.child = spawn(&self.folder, &self.machine, self.port, &self.options);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A service that answers nothing.
pub struct StoppedService<'a>(&'a Served);

impl Drop for StoppedService<'_> {
    fn drop(&mut self) {
        self.0.signal_all(rustix::process::Signal::CONT);
    }
}

fn spawn(folder: &TempDir, machine: &str, port: u16, options: &[String]) -> Child {
    let at = |name: &str| folder.path().join(name);
    Command::new(TTMON)
        .args(["serve", &format!("--sim={machine}"), "--listen", &format!("127.0.0.1:{port}")])
        .arg("--socket")
        .arg(at("ttmon.sock"))
        .arg("--poc-socket")
        .arg(at("poc.sock"))
        .args(options)
        .stderr(std::fs::File::create(at("log")).unwrap())
        .spawn()
        .unwrap()
}

pub const LIVE: &str = "document.getElementById('live-word').textContent === 'live'";

/// Nothing went wrong in the browser, and nothing came from elsewhere.
pub fn assert_clean(browser: &Browser, served: &Served) {
    assert_eq!(browser.complaints(), [""; 0]);
    assert_nothing_foreign(browser, served);
}

pub fn assert_nothing_foreign(browser: &Browser, served: &Served) {
    let foreign =
        "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))";
    assert_eq!(browser.run(foreign), json!([]), "{}", served.address(""));
}

/// Controls and pictures that say to nobody what they are.
pub const NAMELESS: &str = "
    const named = node => node.getAttribute('aria-label') || node.textContent.trim() || node.labels?.length
        || node.closest('[aria-hidden=true]') || node.closest('[role=img]')?.getAttribute('aria-label');
    return [...document.querySelectorAll('button, input, select, a[href], [role=img], [role=slider], svg, [role=group], nav')]
        .filter(node => node.getClientRects().length && !named(node)).map(node => node.outerHTML.slice(0, 120));";

/// What is wrong with the layout and the structure of what is shown, as sentences.
pub const FINDINGS: &str = "
    const found = [];
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`the page is ${scrollWidth} wide on a screen of ${clientWidth}`);
    const isShown = node => node.getClientRects().length > 0 && getComputedStyle(node).visibility !== 'hidden';
    const all = selector => [...document.querySelectorAll(selector)].filter(isShown);
    for (const node of all('main *')) {
        if (node.closest('.scroll, .unseen, svg, .segments, thead') || getComputedStyle(node).position === 'absolute') continue;
        const { left, right } = node.getBoundingClientRect();
        if (right > innerWidth + 1 || left < -1) found.push(`beside the screen: ${node.outerHTML.slice(0, 90)}`);
    }
    for (const group of ['.tile', '.card', '.chart', '.cell', '.panel', '.chips a']) {
        const boxes = all(`main ${group}`).map(node => node.getBoundingClientRect());
        boxes.forEach((a, n) => boxes.slice(n + 1).forEach(b => {
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) found.push(`two ${group} overlap at ${a.left} ${a.top}`);
        }));
    }
    for (const node of all('.tile b, .card .id, .cell b, .pill')) {
        if (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflow !== 'visible') found.push(`cut: ${node.textContent}`);
    }
    for (const node of all('.card .spark, .cell .spark, .card .bar, .tile .meter')) {
        const [inner, outer] = [node, node.closest('.card, .cell, .tile')].map(one => one.getBoundingClientRect());
        if (inner.bottom > outer.bottom + 1 || inner.right > outer.right + 1) found.push(`beside its card: ${node.outerHTML.slice(0, 90)}`);
    }
    const ids = [...document.querySelectorAll('[id]')].map(node => node.id);
    for (const id of new Set(ids.filter((id, n) => ids.indexOf(id) !== n))) found.push(`two elements are called ${id}`);
    for (const node of document.querySelectorAll('[aria-controls], [aria-describedby], label[for]')) {
        for (const name of ['aria-controls', 'aria-describedby', 'for']) {
            const id = node.getAttribute(name);
            if (id && !document.getElementById(id)) found.push(`${name} names ${id}, which is not there`);
        }
    }
    let level = 0;
    for (const node of all('h1, h2, h3, h4').filter(node => !node.closest('dialog'))) {
        const next = Number(node.tagName[1]);
        if (next > level + 1) found.push(`h${next} after h${level}: ${node.textContent}`);
        level = next;
    }
    if (all('h1').length !== 1) found.push(`${all('h1').length} headings of the first level`);
    for (const [what, count] of [['main', 1], ['#top, .wall header', 1]]) if (all(what).length < count) found.push(`no ${what}`);
    for (const node of all('img, canvas, [role=img], [role=slider], [role=application]')) if (!node.getAttribute('aria-label') && !node.getAttribute('alt') && !node.closest('[aria-hidden]')) found.push(`nameless: ${node.outerHTML.slice(0, 90)}`);
    for (const node of all('a[href], button, input, select, [tabindex]')) if (node.closest('[aria-hidden=true]')) found.push(`hidden from screen readers but not from keys: ${node.outerHTML.slice(0, 90)}`);
    return found;";

/// Fails with all that is wrong with what is shown.
pub fn assert_sound(browser: &Browser, what: &str) {
    assert_eq!(browser.run(FINDINGS), json!([]), "{what}");
    assert_eq!(browser.run(NAMELESS), json!([]), "{what}");
}

/// What axe-core finds, one sentence for each.
pub fn axe(browser: &Browser, script: &str) -> Value {
    browser.run(script);
    browser.run_async(
        "const done = arguments[arguments.length - 1];
         const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
         axe.run(document, { runOnly: { type: 'tag', values: tags } }).then(({ violations }) =>
             done(violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html }) => `${id}: ${html.slice(0, 120)}`))));",
    )
}
