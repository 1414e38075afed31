//! A headless Chromium, driven by the DevTools protocol over pipes. It needs no driver program, no socket and
//! no library.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The program's names, Debian's first.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    /// Errors that the page wrote to its console, exceptions, and requests to a network.
    pub complaints: Vec<String>,
}

impl Chromium {
    /// `None` if there is none installed; that is an error if `LATCHWORK_REQUIRE_CLIENTS` is set.
    pub fn start(profile: &Path) -> Option<Chromium> {
        let installed = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
        let Some(name) = NAMES.iter().find(installed) else {
            assert!(std::env::var_os("LATCHWORK_REQUIRE_CLIENTS").is_none(), "please install chromium");
            eprintln!("skipped: there is no chromium");
            return None;
        };
        // The protocol uses descriptors 3 and 4. A shell makes them from standard input and output.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1", "sh", name])
            .args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"])
            // In containers, tests run as root and with a tiny /dev/shm. The page is our own, so no sandbox
            // is needed.
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions"])
            .args(["--disable-background-networking", "--disable-component-update", "--no-proxy-server"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut chromium = Chromium { child, to, from, session: None, calls: 0, complaints: Vec::new() };
        let target = chromium.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = chromium.call("Target.attachToTarget", attach);
        chromium.session = Some(attached["sessionId"].as_str().unwrap().to_string());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.call(&format!("{domain}.enable"), json!({}));
        }
        Some(chromium)
    }

    /// Opens a page and waits until it has loaded.
    pub fn open(&mut self, url: &str) {
        let metrics = json!({ "width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        self.call("Page.navigate", json!({ "url": url }));
        while self.evaluate("document.readyState + location.protocol") != "completefile:" {}
    }

    /// The value of an expression in the page. If it is a promise, this waits for it.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Presses and releases the left button in the middle of the first element that a selector finds.
    pub fn click(&mut self, selector: &str) {
        let place = self.evaluate(&format!(
            "(() => {{ const found = document.querySelector('{selector}'); found.scrollIntoView({{ block: 'center' }}); \
             const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses and releases a key.
    pub fn key(&mut self, key: &str, code: &str, number: u32) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" && key.len() == 1 { key } else { "" };
            let event = json!({ "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "text": text });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Shows the page as on a screen or on paper, light or dark.
    pub fn emulate(&mut self, media: &str, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": media, "features": features }));
    }

    /// A picture of the page, and the number of its colours.
    pub fn screenshot(&mut self) -> (u64, String) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = shot["data"].as_str().unwrap().to_string();
        let colours = self.evaluate(&format!(
            "(async () => {{ const image = new Image(); image.src = 'data:image/png;base64,{data}'; await image.decode(); \
             const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d'); canvas.drawImage(image, 0, 0); \
             const pixels = new Uint32Array(canvas.getImageData(0, 0, image.width, image.height).data.buffer); \
             return new Set(pixels).size; }})()"
        ));
        (colours.as_u64().unwrap(), data)
    }

    /// Calls a method and returns its result. Messages that arrive meanwhile are searched for errors.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "chromium went away during {method}");
            let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.complaints.extend(complaint(&answer));
        }
    }
}

fn complaint(event: &Value) -> Option<String> {
    let parameters = &event["params"];
    let bad = match event["method"].as_str()? {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => parameters["type"] == "error" || parameters["type"] == "warning",
        "Log.entryAdded" => parameters["entry"]["level"] == "error",
        "Network.requestWillBeSent" => {
            let url = parameters["request"]["url"].as_str()?;
            !["file:", "data:", "about:"].iter().any(|local| url.starts_with(local))
        }
        _ => false,
    };
    bad.then(|| event.to_string())
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
