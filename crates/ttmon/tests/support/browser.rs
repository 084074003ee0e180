//! A real Chromium, driven through chromedriver's WebDriver protocol.

use super::needs;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A browser with one window, closed when dropped.
pub struct Browser {
    driver: Child,
    /// The address of its session.
    session: String,
    _profile: TempDir,
    /// One at a time: each of them is a dozen processes.
    _turn: MutexGuard<'static, ()>,
}

pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
pub const LEFT: &str = "\u{e012}";
pub const DOWN: &str = "\u{e015}";

static TURN: Mutex<()> = Mutex::new(());

impl Browser {
    /// Opens one, or says why that is not possible here.
    pub fn open(test: &str, width: u32, height: u32, scheme: &str) -> Option<Browser> {
        if !needs::has(test, &["chromedriver"]) {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = started.unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, rest) = line.split_once("successfully on port ")?;
            Some(rest.trim_end_matches('.').to_owned())
        });
        let profile = tempfile::tempdir().unwrap();
        let driver_address = format!("http://127.0.0.1:{}/session", port.unwrap());
        let arguments = [
            "--headless=new".into(),
            "--no-sandbox".into(),
            "--disable-gpu".into(),
            "--disable-dev-shm-usage".into(),
            "--disable-background-networking".into(),
            "--no-first-run".into(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            // A test makes its own certificates.
            "acceptInsecureCerts": true,
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let opened = call(&driver_address, &wanted);
        let session =
            format!("{driver_address}/{}", opened["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")));
        let browser = Browser { driver, session, _profile: profile, _turn: turn };
        browser.resize(width, height);
        browser.media(&[("prefers-color-scheme", scheme)]);
        Some(browser)
    }

    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", size);
        // Charts follow the size of their frames one picture later.
        self.run_async("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))");
    }

    fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.ask("goog/cdp/execute", json!({ "cmd": command, "params": parameters }))
    }

    fn ask(&self, what: &str, body: Value) -> Value {
        call(&format!("{}/{what}", self.session), &body)
    }

    pub fn go(&self, address: &str) {
        self.ask("url", json!({ "url": address }));
    }

    pub fn back(&self) {
        self.ask("back", json!({}));
    }

    pub fn forward(&self) {
        self.ask("forward", json!({}));
    }

    /// The tab that is shown.
    pub fn tab(&self) -> String {
        let text = ureq::get(format!("{}/window", self.session)).call().unwrap().body_mut().read_to_string().unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["value"].as_str().unwrap().to_owned()
    }

    /// Closes the tab that is shown, and shows an empty one.
    pub fn close_tab(&self) {
        let closed = self.tab();
        let next = self.new_tab();
        self.show_tab(&closed);
        ureq::delete(format!("{}/window", self.session)).call().unwrap();
        self.show_tab(&next);
    }

    /// Opens a tab and shows it.
    pub fn new_tab(&self) -> String {
        let opened = self.ask("window/new", json!({ "type": "tab" }));
        let tab = opened["handle"].as_str().unwrap().to_owned();
        self.show_tab(&tab);
        tab
    }

    pub fn show_tab(&self, tab: &str) {
        self.ask("window", json!({ "handle": tab }));
        self.devtools("Page.bringToFront", json!({}));
    }

    /// Runs a script in each page that this tab opens from now on, before its own.
    pub fn run_first(&self, script: &str) {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }));
    }

    /// What a script returns.
    pub fn run(&self, script: &str) -> Value {
        self.ask("execute/sync", json!({ "script": script, "args": [] }))
    }

    /// What a script gives to the function that is its last argument.
    pub fn run_async(&self, script: &str) -> Value {
        self.ask("execute/async", json!({ "script": script, "args": [] }))
    }

    /// Drags with the mouse from one place to another.
    pub fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        let steps = json!([
            { "type": "pointerMove", "x": from.0, "y": from.1 },
            { "type": "pointerDown", "button": 0 },
            { "type": "pointerMove", "x": (from.0 + to.0) / 2, "y": to.1, "duration": 50 },
            { "type": "pointerMove", "x": to.0, "y": to.1, "duration": 50 },
            { "type": "pointerUp", "button": 0 },
        ]);
        let mouse =
            json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": steps });
        self.ask("actions", json!({ "actions": [mouse] }));
    }

    /// Moves the mouse there, without a button.
    pub fn hover(&self, to: (i64, i64)) {
        let steps = json!([{ "type": "pointerMove", "x": to.0, "y": to.1, "duration": 20 }]);
        let mouse =
            json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": steps });
        self.ask("actions", json!({ "actions": [mouse] }));
    }

    /// The place of the middle of an element, or at some share of its width.
    pub fn place(&self, selector: &str, share: f64) -> (i64, i64) {
        let rect = self.run(&format!(
            "const node = document.querySelector({}); node.scrollIntoView({{ block: 'center' }});
             const {{ left, top, width, height }} = node.getBoundingClientRect();
             return [Math.round(left + width * {share}), Math.round(top + height / 2)]",
            json!(selector)
        ));
        (rect[0].as_i64().unwrap(), rect[1].as_i64().unwrap())
    }

    /// What the system wishes: `prefers-color-scheme`, `prefers-reduced-motion`.
    pub fn media(&self, features: &[(&str, &str)]) {
        let features: Vec<Value> =
            features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// What a person reads.
    pub fn text(&self) -> String {
        self.run("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Presses keys one after another, wherever the focus is.
    pub fn press(&self, keys: &str) {
        let presses: Vec<Value> = keys
            .chars()
            .flat_map(|key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })])
            .collect();
        self.ask("actions", json!({ "actions": [{ "type": "key", "id": "keys", "actions": presses }] }));
    }

    /// Waits until a script returns true.
    pub fn wait_until(&self, script: &str) {
        let until = Instant::now() + Duration::from_secs(40);
        while self.run(&format!("return {script}")) != json!(true) {
            assert!(Instant::now() < until, "{script} never came true, but there was:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn wait_for_text(&self, text: &str) {
        self.wait_until(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// What the browser has complained about since it was asked last.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.ask("se/log", json!({ "type": "browser" }));
        let lines = log.as_array().cloned().unwrap_or_default();
        lines.iter().map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

fn call(address: &str, body: &Value) -> Value {
    let config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(60)));
    let agent: ureq::Agent = config.build().into();
    let answer = agent.post(address).header("content-type", "application/json").send(body.to_string());
    let text = answer.unwrap().body_mut().read_to_string().unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    let value = answer["value"].clone();
    assert!(value.get("error").is_none(), "{address} {body}: {value}");
    value
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver does not take its browsers with it.
        let _ = ureq::delete(&self.session).call();
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.driver),
            rustix::process::Signal::TERM,
        );
        let _ = self.driver.wait();
    }
}
