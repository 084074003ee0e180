//! The page of a service, in a Chromium that chromedriver starts.

use crate::web::Service;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Picture {
    file: &'static str,
    /// Which of the machines.
    machine: usize,
    /// What of the page, after `#/`.
    view: &'static str,
    width: u32,
    height: u32,
}

const PICTURES: [Picture; 4] = [
    Picture { file: "page.png", machine: 0, view: "overview?range=5m&theme=light", width: 1440, height: 940 },
    Picture { file: "page-32.png", machine: 1, view: "overview?range=5m&theme=dark", width: 1440, height: 1240 },
    Picture {
        file: "page-wall.png",
        machine: 1,
        view: "wall?range=5m&theme=dark&hold=chips",
        width: 1920,
        height: 1080,
    },
    Picture { file: "page-phone.png", machine: 1, view: "overview?range=5m&theme=light", width: 390, height: 844 },
];

/// The machines, each with what happens to it shortly before its picture is taken.
fn machines(time: Duration) -> [String; 2] {
    let late = time.as_secs().saturating_sub(45).max(1);
    [format!("p150x4,agent,hang=2@{late}s"), format!("galaxy-bh,agent,hang=31@{late}s,lose=30@{late}s")]
}

/// Takes all pictures after the machines have run for some time. Returns the files.
pub fn take(ttmon: &Path, docs: &Path, time: Duration) -> anyhow::Result<Vec<PathBuf>> {
    let services = machines(time).map(|machine| Service::start(ttmon, &[&format!("--sim={machine}")]));
    let services = services.into_iter().collect::<anyhow::Result<Vec<Service>>>()?;
    std::thread::sleep(time);
    let browser = Browser::open()?;
    let mut files = Vec::new();
    for Picture { file, machine, view, width, height } in PICTURES {
        let address = format!("http://{}/#/{view}", services[machine].address);
        let path = docs.join(file);
        std::fs::write(&path, browser.picture(&address, width, height)?)?;
        files.push(path);
    }
    Ok(files)
}

/// A browser with one window, closed when dropped.
struct Browser {
    driver: Child,
    /// The address of its session.
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    fn open() -> anyhow::Result<Browser> {
        let started = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = started.context("chromedriver cannot be started: install the package chromium-driver")?;
        let mut lines = BufReader::new(driver.stdout.take().context("no output")?).lines();
        let port = lines
            .find_map(|line| Some(line.ok()?.split_once("successfully on port ")?.1.trim_end_matches('.').to_owned()));
        let address = format!("http://127.0.0.1:{}/session", port.context("chromedriver does not listen")?);
        let profile = tempfile::tempdir()?;
        let arguments = [
            "--headless=new".into(),
            "--no-sandbox".into(),
            "--disable-gpu".into(),
            "--disable-dev-shm-usage".into(),
            "--hide-scrollbars".into(),
            "--no-first-run".into(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "goog:chromeOptions": { "args": arguments } } } });
        let opened = ask(&address, &wanted)?;
        let session = format!("{address}/{}", opened["sessionId"].as_str().context("no session")?);
        Ok(Browser { driver, session, _profile: profile })
    }

    fn devtools(&self, command: &str, parameters: Value) -> anyhow::Result<Value> {
        ask(&format!("{}/goog/cdp/execute", self.session), &json!({ "cmd": command, "params": parameters }))
    }

    /// A page as a PNG, once it is drawn with its history.
    fn picture(&self, address: &str, width: u32, height: u32) -> anyhow::Result<Vec<u8>> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", size)?;
        for address in ["about:blank", address] {
            ask(&format!("{}/url", self.session), &json!({ "url": address }))?;
        }
        let drawn = "return document.querySelectorAll('main .mean[d^=M]').length > 8";
        let until = Instant::now() + Duration::from_secs(60);
        while ask(&format!("{}/execute/sync", self.session), &json!({ "script": drawn, "args": [] }))? != json!(true) {
            if Instant::now() > until {
                bail!("{address} was never drawn");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        std::thread::sleep(Duration::from_secs(3));
        let picture = self.devtools("Page.captureScreenshot", json!({ "format": "png" }))?;
        from_base64(picture["data"].as_str().context("no picture")?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver does not take its browsers with it.
        let _ = ureq::delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn ask(address: &str, body: &Value) -> anyhow::Result<Value> {
    let config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(60)));
    let agent: ureq::Agent = config.build().into();
    let mut answer = agent.post(address).header("content-type", "application/json").send(body.to_string())?;
    let text = answer.body_mut().with_config().limit(64 << 20).read_to_string()?;
    let value = serde_json::from_str::<Value>(&text)?["value"].take();
    match value.get("error") {
        Some(error) => bail!("{address}: {error}: {}", value["message"]),
        None => Ok(value),
    }
}

fn from_base64(text: &str) -> anyhow::Result<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().take_while(|byte| *byte != b'=');
    let digits: Option<Vec<u32>> =
        digits.map(|byte| DIGITS.iter().position(|digit| *digit == byte).map(|at| at as u32)).collect();
    let digits = digits.context("not in base 64")?;
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = four.iter().enumerate().fold(0, |bits, (at, digit)| bits | digit << (18 - 6 * at));
        [16, 8, 0].map(|shift| (bits >> shift) as u8).into_iter().take(four.len().saturating_sub(1)).collect::<Vec<_>>()
    });
    Ok(bytes.collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn base_64_is_read_with_and_without_a_rest() {
        for (text, bytes) in
            [("", ""), ("TQ==", "M"), ("TWE=", "Ma"), ("TWFu", "Man"), ("bGlnaHQgd29yaw==", "light work")]
        {
            assert_eq!(super::from_base64(text).unwrap(), bytes.as_bytes());
        }
        assert!(super::from_base64("?").is_err());
    }
}
