//! A Chromium process and its tabs: actions of a person, and every error that the browser reports.

use std::{
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use chromiumoxide::{
    Browser, Page,
    cdp::{
        browser_protocol::{
            browser::{BrowserContextId, PermissionSetting, SetPermissionParams},
            dom::ScrollIntoViewIfNeededParams,
            emulation::{
                MediaFeature, SetDeviceMetricsOverrideParams, SetEmulatedMediaParams, SetFocusEmulationEnabledParams,
                SetScriptExecutionDisabledParams, SetTimezoneOverrideParams,
            },
            log::{EventEntryAdded, LogEntryLevel},
            network::{EmulateNetworkConditionsByRuleParams, NetworkConditions, OverrideNetworkStateParams},
            page::{AddScriptToEvaluateOnNewDocumentParams, CaptureScreenshotFormat},
            target::{CreateBrowserContextParams, CreateTargetParams},
        },
        js_protocol::runtime::{AddBindingParams, EventBindingCalled, EventConsoleApiCalled, EventExceptionThrown},
    },
    page::ScreenshotParams,
};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::harness::{Process, Stopwatch, TIMEOUT, folder};

/// Returns the path of Chromium, if it is installed.
pub(super) fn program() -> Option<&'static str> {
    static PROGRAM: OnceLock<Option<&'static str>> = OnceLock::new();
    *PROGRAM.get_or_init(|| {
        let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
        ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].into_iter().find(is_there)
    })
}

/// The runtime that reads the browser's messages.
pub(super) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
    })
}

/// The browser makes no requests of its own and stores nothing.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
];

struct Chrome {
    browser: Browser,
    process: Mutex<Option<Process>>,
}

static CHROME: tokio::sync::OnceCell<Chrome> = tokio::sync::OnceCell::const_new();

async fn chrome() -> &'static Chrome {
    CHROME
        .get_or_init(|| async {
            let home = folder("chromium");
            let data = format!("--user-data-dir={}", home.join("data").display());
            let args: Vec<&str> = FLAGS.into_iter().chain([data.as_str(), "about:blank"]).collect();
            let mut process = Process::program(program().expect("looked for before"), &home, &args);
            let address = process.log_after("DevTools listening on ");
            let (browser, mut handler) = Browser::connect(address).await.expect("the browser responds");
            runtime().spawn(async move { while handler.next().await.is_some() {} });
            Chrome { browser, process: Mutex::new(Some(process)) }
        })
        .await
}

/// Stops the browser, if it runs.
pub(super) fn end() {
    if let Some(chrome) = CHROME.get() {
        drop(locked(&chrome.process).take());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A window with its own cookies and storage.
pub(super) struct Tab {
    page: Page,
    context: BrowserContextId,
    complaints: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Tab {
    /// Opens an empty tab, as wide as a small laptop.
    pub(super) async fn open() -> Self {
        let browser = &chrome().await.browser;
        let context = browser.create_browser_context(CreateBrowserContextParams::default()).await.expect("a context");
        let mut target = CreateTargetParams::new("about:blank");
        target.browser_context_id = Some(context.clone());
        let page = browser.new_page(target).await.expect("a tab");
        let tab = Self { page, context, complaints: Arc::default(), requests: Arc::default() };
        tab.page.enable_log().await.expect("a log");
        let script = AddScriptToEvaluateOnNewDocumentParams::new(REPORT_VIOLATIONS);
        tab.page.evaluate_on_new_document(script).await.expect("a script");
        tab.listen().await;
        tab.size(1_280, false).await;
        tab
    }

    /// Collects errors, warnings and policy violations that the browser reports.
    async fn listen(&self) {
        let mut entries = self.page.event_listener::<EventEntryAdded>().await.expect("events");
        let mut errors = self.page.event_listener::<EventExceptionThrown>().await.expect("events");
        let mut report = self.page.event_listener::<EventConsoleApiCalled>().await.expect("events");
        let mut bindings = self.page.event_listener::<EventBindingCalled>().await.expect("events");
        let keep = |complaints: &Arc<Mutex<Vec<String>>>| {
            let complaints = Arc::clone(complaints);
            move |text: String| locked(&complaints).push(text)
        };
        let (one, two, three, requests) =
            (keep(&self.complaints), keep(&self.complaints), keep(&self.complaints), Arc::clone(&self.requests));
        runtime().spawn(async move {
            while let Some(event) = entries.next().await {
                // Browsers request it for pages without an icon, such as JSON.
                let is_icon = event.entry.url.as_ref().is_some_and(|url| url.ends_with("/favicon.ico"));
                if !is_icon && matches!(event.entry.level, LogEntryLevel::Error | LogEntryLevel::Warning) {
                    one(format!("{} {}", event.entry.text, event.entry.url.as_deref().unwrap_or_default()));
                }
            }
        });
        runtime().spawn(async move {
            while let Some(event) = errors.next().await {
                two(format!("{:?}", event.exception_details));
            }
        });
        runtime().spawn(async move {
            while let Some(event) = report.next().await {
                three(format!("console: {:?}", event.args));
            }
        });
        runtime().spawn(async move {
            while let Some(event) = bindings.next().await {
                locked(&requests).push(serde_json::from_str(&event.payload).expect("JSON"));
            }
        });
    }

    /// Installs a simulated Keychain `delay_ms` after each page load. The test responds to its requests.
    pub(super) async fn install_keychain(&self, delay_ms: u32) {
        self.page.execute(AddBindingParams::new("keychainRequest")).await.expect("a binding");
        let script = KEYCHAIN.replace("DELAY", &delay_ms.to_string());
        let script = AddScriptToEvaluateOnNewDocumentParams::new(script);
        self.page.evaluate_on_new_document(script).await.expect("a script");
    }

    /// Removes the browser's support for event streams, as in an old browser or behind a proxy.
    pub(super) async fn without_streams(&self) {
        let script = AddScriptToEvaluateOnNewDocumentParams::new("delete window.EventSource");
        self.page.evaluate_on_new_document(script).await.expect("a script");
    }

    /// Gives the pages' scripts a controllable clock: `pushed` milliseconds are added to it, `ticked` counts reads.
    pub(super) async fn with_a_clock_to_push(&self) {
        let script = AddScriptToEvaluateOnNewDocumentParams::new(
            "var pushed = 0, ticked = 0; (now => { performance.now = () => { ticked += 1; return now() + pushed } })(performance.now.bind(performance));",
        );
        self.page.evaluate_on_new_document(script).await.expect("a script");
    }

    /// Takes a screenshot of the page as printed.
    pub(super) async fn print(&self, name: &str) {
        let paper = SetEmulatedMediaParams::builder().media("print").build();
        self.page.execute(paper).await.expect("paper");
        let picture = ScreenshotParams::builder().full_page(true).build();
        let png = self.page.screenshot(picture).await.expect("a picture");
        std::fs::write(pictures().join(format!("{name}-print.png")), png).expect("a file");
        let buttons =
            "[...document.querySelectorAll('button, .languages, #support')].filter(e => e.checkVisibility()).length";
        assert_eq!(self.eval::<u32>(buttons).await, 0, "paper has no buttons");
        self.page.execute(SetEmulatedMediaParams::builder().media("").build()).await.expect("a screen");
    }

    /// Waits for a request to Keychain.
    pub(super) async fn asked(&self) -> Value {
        until("Keychain to be asked", async || {
            let mut requests = locked(&self.requests);
            (!requests.is_empty()).then(|| requests.remove(0))
        })
        .await
    }

    /// Returns whether there is another request to Keychain.
    pub(super) fn is_asked(&self) -> bool {
        !locked(&self.requests).is_empty()
    }

    /// Responds to a request as Keychain.
    pub(super) async fn response(&self, request: &Value, response: &Value) {
        self.eval::<bool>(&format!("keychainRespond({}, {response}), true", request["id"])).await;
    }

    /// Gives the page the focus and access to the clipboard, which all tabs share.
    pub(super) async fn with_clipboard(&self) {
        let browser = &chrome().await.browser;
        for name in ["clipboard-read", "clipboard-write"] {
            let mut granted = SetPermissionParams::new(name, PermissionSetting::Granted);
            granted.browser_context_id = Some(self.context.clone());
            browser.execute(granted).await.expect("a permission");
        }
        self.page.execute(SetFocusEmulationEnabledParams::new(true)).await.expect("the focus");
    }

    /// Takes a screenshot of one element.
    pub(super) async fn picture_of(&self, selector: &str) -> Vec<u8> {
        let element = self.page.find_element(selector).await.unwrap_or_else(|error| panic!("{selector}: {error}"));
        element.screenshot(CaptureScreenshotFormat::Png).await.unwrap_or_else(|error| panic!("{selector}: {error}"))
    }

    /// Disables scripts.
    pub(super) async fn without_scripts(&self) {
        self.page.execute(SetScriptExecutionDisabledParams::new(true)).await.expect("no scripts");
    }

    /// Sets the time zone of the pages.
    pub(super) async fn in_time_zone(&self, name: &str) {
        self.page.execute(SetTimezoneOverrideParams::new(name)).await.expect("a time zone");
    }

    /// Cuts the browser off from the network, or connects it again.
    pub(super) async fn offline(&self, offline: bool) {
        let conditions =
            EmulateNetworkConditionsByRuleParams::new(offline, vec![NetworkConditions::new("", 0.0, -1.0, -1.0)]);
        self.page.execute(conditions).await.expect("network conditions");
        let state = OverrideNetworkStateParams::new(offline, 0.0, -1.0, -1.0);
        self.page.execute(state).await.expect("a network state");
    }

    /// Limits the network to that of a slow phone: 400 ms to each response, 50 kB/s.
    pub(super) async fn slow_network(&self) {
        let slow = NetworkConditions::new("", 400.0, 50_000.0, 50_000.0);
        let conditions = EmulateNetworkConditionsByRuleParams::new(false, vec![slow]);
        self.page.execute(conditions).await.expect("network conditions");
    }

    /// Sets the window width and the color scheme.
    pub(super) async fn size(&self, width: u32, is_dark: bool) {
        let height = if width < 600 { 568 } else { 800 };
        let metrics = SetDeviceMetricsOverrideParams::new(i64::from(width), height, 1.0, width < 600);
        self.page.execute(metrics).await.expect("a size");
        let scheme = if is_dark { "dark" } else { "light" };
        let features = vec![
            MediaFeature { name: "prefers-color-scheme".to_owned(), value: scheme.to_owned() },
            MediaFeature { name: "prefers-reduced-motion".to_owned(), value: "reduce".to_owned() },
        ];
        self.page.execute(SetEmulatedMediaParams::builder().features(features).build()).await.expect("a scheme");
    }

    /// Opens a URL.
    pub(super) async fn goto(&self, url: &str) {
        self.page.goto(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// Returns the current URL.
    pub(super) async fn url(&self) -> String {
        self.page.url().await.ok().flatten().unwrap_or_default()
    }

    /// Clicks with the mouse.
    pub(super) async fn click(&self, selector: &str) {
        self.until(selector, &format!("(e => e && e.checkVisibility())(document.querySelector({}))", json!(selector)))
            .await;
        let element = self.page.find_element(selector).await.unwrap_or_else(|error| panic!("{selector}: {error}"));
        // Without a script in the page, because scripts may be disabled.
        let into_view = ScrollIntoViewIfNeededParams::builder().backend_node_id(element.backend_node_id).build();
        self.page.execute(into_view).await.unwrap_or_else(|error| panic!("{selector}: {error}"));
        let point = element.clickable_point().await.unwrap_or_else(|error| panic!("{selector}: {error}"));
        self.page.click(point).await.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Fills in a field.
    pub(super) async fn fill(&self, selector: &str, text: &str) {
        let script = format!(
            "(e => {{ e.focus(); e.value = {}; e.dispatchEvent(new Event('input', {{bubbles: true}})); return true }})(document.querySelector({}))",
            json!(text),
            json!(selector)
        );
        self.eval::<bool>(&script).await;
    }

    /// Selects an option.
    pub(super) async fn choose(&self, selector: &str, option: &str) {
        let script = format!(
            "(e => {{ e.value = {0}; e.dispatchEvent(new Event('change', {{bubbles: true}})); return e.value === {0} }})(document.querySelector({1}))",
            json!(option),
            json!(selector)
        );
        assert!(self.eval::<bool>(&script).await, "{selector} has no option {option}");
    }

    /// Presses a key.
    pub(super) async fn press(&self, key: &str) {
        let body = self.page.find_element("html").await.expect("a page");
        body.press_key(key).await.expect("a key");
    }

    /// Runs a script in the page and returns its result.
    pub(super) async fn eval<T: DeserializeOwned>(&self, script: &str) -> T {
        let result = self.page.evaluate(script).await.unwrap_or_else(|error| panic!("{script}: {error}"));
        result.into_value().unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until a script returns true.
    pub(super) async fn until(&self, what: &str, script: &str) {
        let yes = format!("Boolean({script})");
        until(what, async || {
            // A page that is being left returns no result.
            let report = self.page.evaluate(yes.as_str()).await.ok()?.into_value::<bool>().ok()?;
            report.then_some(())
        })
        .await;
    }

    /// Waits until the page shows a text.
    pub(super) async fn shows(&self, text: &str) {
        let watch = Stopwatch::start();
        let mut shown = String::new();
        loop {
            // A page that is being left returns no result.
            if let Ok(result) = self.page.evaluate("document.body.innerText").await {
                shown = result.into_value().unwrap_or_default();
            }
            if shown.contains(text) {
                return;
            }
            assert!(watch.elapsed() < TIMEOUT, "waited {TIMEOUT:?} for {text:?}; the page shows:\n{shown}");
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    }

    /// Returns the visible text.
    pub(super) async fn text(&self) -> String {
        self.eval("document.body.innerText").await
    }

    /// Asserts that the browser has reported no errors.
    pub(super) fn is_clean(&self) {
        let complaints = locked(&self.complaints);
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    /// Discards errors that the test has provoked.
    pub(super) fn forgive(&self) {
        locked(&self.complaints).clear();
    }

    /// Takes screenshots of a state in every width and scheme, and asserts its accessibility.
    pub(super) async fn look(&self, name: &str) {
        self.picture(name, true).await;
    }

    /// Takes screenshots only, where the accessibility checker cannot run.
    pub(super) async fn look_without_checker(&self, name: &str) {
        self.picture(name, false).await;
    }

    async fn picture(&self, name: &str, is_checked: bool) {
        let mut findings = Vec::new();
        for width in [320, 375, 768, 1_280] {
            for scheme in ["light", "dark"] {
                self.size(width, scheme == "dark").await;
                let picture = ScreenshotParams::builder().full_page(true).build();
                let png = self.page.screenshot(picture).await.expect("a picture");
                if is_checked {
                    findings.extend(super::references::compare(self, name, width, scheme, &png).await);
                }
                std::fs::write(pictures().join(format!("{name}-{width}-{scheme}.png")), png).expect("a file");
                let over: i64 = self.eval("document.documentElement.scrollWidth - window.innerWidth").await;
                if over > 0 {
                    findings.push(format!("{name} {width}: {over} px too wide"));
                }
                if is_checked && matches!(width, 320 | 1_280) {
                    let found = self.axe().await.into_iter();
                    findings.extend(found.map(|found| format!("{name} {width} {scheme}: {found}")));
                }
            }
        }
        self.size(1_280, false).await;
        assert!(findings.is_empty(), "{findings:#?}");
    }

    /// Returns the violations of WCAG 2.2 AA and best practices that axe finds.
    async fn axe(&self) -> Vec<String> {
        if !self.eval::<bool>("Boolean(window.axe)").await {
            self.page.evaluate(axe_source()).await.expect("axe");
        }
        let run = "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations.map(v => \
                   v.id + ': ' + v.help + ' ' + v.nodes.map(n => n.target.join(' ') + ' ' + n.failureSummary).join('; ')))";
        self.eval(run).await
    }
}

/// The source of axe as a script without a result.
fn axe_source() -> &'static str {
    static SOURCE: OnceLock<String> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/interop/node_modules/axe-core/axe.min.js");
        format!("{};true", std::fs::read_to_string(path).expect("axe-core is installed"))
    })
}

/// The directory of the screenshots: `HIVETILL_SCREENSHOTS`, or one in the build directory.
fn pictures() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/screenshots");
        let folder = std::env::var_os("HIVETILL_SCREENSHOTS").map_or(PathBuf::from(here), PathBuf::from);
        std::fs::create_dir_all(&folder).expect("a folder for pictures");
        folder
    })
}

/// Polls until there is a result.
pub(super) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let watch = Stopwatch::start();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(watch.elapsed() < TIMEOUT, "waited {TIMEOUT:?} for {what}");
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
}

/// Reports each violation of the content security policy as an error.
const REPORT_VIOLATIONS: &str = "addEventListener('securitypolicyviolation', \
     event => console.error('content security policy', event.violatedDirective, event.blockedURI))";

/// A simulated Keychain extension: its requests go to the test, which signs and broadcasts as the extension does.
const KEYCHAIN: &str = r"addEventListener('DOMContentLoaded', () => { window.isHiddenAtFirst = document.getElementById('keychain')?.hidden });
(() => {
  const open = new Map();
  let next = 1;
  const ask = (what, callback) => { const id = next++; open.set(id, callback); window.keychainRequest(JSON.stringify({ id, ...what })); };
  window.keychainRespond = (id, answer) => open.get(id)(answer);
  setTimeout(() => {
    window.hive_keychain = {
      requestHandshake(callback) { setTimeout(callback, 0); },
      requestTransfer(account, to, amount, memo, currency, callback, enforce = false, rpc) {
        if (!/^\d+\.\d{3}$/.test(amount) || memo.startsWith('#')) {
          return callback({ success: false, error: 'incomplete', result: null, message: 'Amount requires a string with 3 decimals' });
        }
        ask({ type: 'transfer', account, to, amount, memo, currency, enforce }, callback);
      },
      requestSignBuffer(account, message, key, callback) { ask({ type: 'signBuffer', account, message, key }, callback); },
      requestBroadcast(account, operations, key, callback, rpc) { ask({ type: 'broadcast', account, operations, key }, callback); },
    };
    window.dispatchEvent(new Event('hive-keychain-loaded'));
  }, DELAY);
})()";
