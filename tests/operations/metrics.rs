//! Metrics: a payment and its webhook are counted, in one process and in two, and served only where configured.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::{
    golden::is_update,
    harness::{Api, Dev, LedgerProcess, Process, Receiver, Reply, Serve, Shop, folder, until, until_ready},
    x402,
};

crate::tests!(
    a_payment_is_counted_from_its_creation_to_its_webhook,
    an_agents_payment_is_counted_by_its_verdict,
    engine_and_facade_each_serve_their_own_metrics,
    a_missing_node_and_a_lagging_scanner_are_shown,
    the_public_port_serves_no_metrics,
    every_metric_that_an_alarm_or_the_dashboard_names_exists,
    the_page_of_metrics_is_current,
);

pub(crate) const LISTEN: &str = "--set=metrics.listen=127.0.0.1:0";

/// The samples of a scrape: `name{labels}` and value.
pub(crate) struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    #[track_caller]
    pub(crate) fn of(api: &Api) -> Self {
        let response = api.get("/metrics").send();
        assert_eq!(response.status, 200);
        assert!(response.header("content-type").is_some_and(|kind| kind.starts_with("application/openmetrics-text")));
        let page = response.text();
        assert!(page.ends_with("# EOF\n"), "{page}");
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        let values = lines.map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
        });
        Self(values.collect())
    }

    #[track_caller]
    pub(crate) fn value(&self, name: &str) -> f64 {
        *self.0.get(name).unwrap_or_else(|| panic!("no {name} among {:?}", self.0.keys()))
    }

    /// Returns the names without labels and histogram suffixes.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| name.split('{').next().unwrap_or_default().to_owned()).collect()
    }
}

/// Waits for the URL of the metrics in a process's log.
#[track_caller]
pub(crate) fn metrics_of(process: &mut Process) -> Api {
    Api::new(process.log_after("metrics are at ").trim_end_matches("/metrics"))
}

fn dev() -> (Dev, Api) {
    let mut dev = Dev::with(&[LISTEN, "--set=log.level=info"]);
    let metrics = metrics_of(&mut dev.process);
    (dev, metrics)
}

fn a_payment_is_counted_from_its_creation_to_its_webhook() {
    let (dev, metrics) = dev();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    receiver.reply(&[Reply::Status(500), Reply::Status(200)]);
    shop.set_webhook(&receiver);
    let before = Scrape::of(&metrics);
    assert_eq!(before.value("hivetill_payments_created_total"), 0.0);
    assert_eq!(before.value("hivetill_payment_transitions_total{status=\"completed\"}"), 0.0);
    let payment = shop.open_payment();
    // The session becomes active after its creation is acknowledged.
    let open = until("the session to be active, and no pending writes", || {
        let scrape = Scrape::of(&metrics);
        let is_calm = scrape.value("hivetill_commit_queue_depth") == 0.0;
        (scrape.value("hivetill_sessions_active") == 1.0 && is_calm).then_some(scrape)
    });
    assert_eq!(open.value("hivetill_payments_created_total"), 1.0);
    assert_eq!(open.value("hivetill_sessions_open"), 1.0);
    assert!(open.value("hivetill_commit_seconds_count") > before.value("hivetill_commit_seconds_count"));
    assert!(open.value("hivetill_commit_batches_sum") >= open.value("hivetill_commit_batches_count"));
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    receiver.hook(0);
    let after = until("the failed attempt to be counted", || {
        let scrape = Scrape::of(&metrics);
        scrape.0.contains_key("hivetill_webhook_attempts_total{outcome=\"http_error\"}").then_some(scrape)
    });
    assert_eq!(after.value("hivetill_payment_transitions_total{status=\"completed\"}"), 1.0);
    assert_eq!(after.value("hivetill_sessions_open"), 0.0);
    assert_eq!(after.value("hivetill_outbox_depth"), 1.0, "the retry waits");
    assert_eq!(after.value("hivetill_store_up"), 1.0);
    assert_eq!(after.value("hivetill_ledger_reachable"), 1.0);
    assert!(after.value("hivetill_scanner_blocks_total") > 0.0);
    assert!(after.value("hivetill_disk_free_bytes") > 0.0);
    assert!(after.value("hivetill_http_responses_total{status=\"2xx\"}") >= 3.0);
    let node = dev.ledger.rpc.base.trim_start_matches("http://");
    assert_eq!(after.value(&format!("hivetill_node_up{{node=\"{node}\"}}")), 1.0);
    assert!(after.value(&format!("hivetill_node_responses_total{{node=\"{node}\"}}")) > 0.0);
    assert!(!metrics.get("/metrics").send().text().contains(&shop.key));
    assert_eq!(metrics.get("/").send().status, 404);
    assert_eq!(metrics.request("POST", "/metrics").send().status, 405);
}

fn an_agents_payment_is_counted_by_its_verdict() {
    let (dev, metrics) = dev();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    x402::pay_once(&shop, &dev.ledger, &agent);
    let scrape = Scrape::of(&metrics);
    assert_eq!(scrape.value("hivetill_x402_verdicts_total{operation=\"verify\",verdict=\"success\"}"), 1.0);
    assert_eq!(scrape.value("hivetill_x402_verdicts_total{operation=\"settle\",verdict=\"success\"}"), 1.0);
    assert_eq!(
        scrape.value("hivetill_x402_verdicts_total{operation=\"verify\",verdict=\"duplicate_settlement\"}"),
        1.0
    );
}

fn engine_and_facade_each_serve_their_own_metrics() {
    let folder = folder("metrics");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let mut args = Serve::args(&data, &ledger.ledger, &["--grpc-listen", "127.0.0.1:0", LISTEN]);
    args[0] = "engine".to_owned();
    let listen = args.iter().position(|arg| arg == "--listen").expect("there");
    args.drain(listen..listen + 2);
    let mut engine = Process::start(&args);
    let url = format!("--engine-url=http://{}", engine.log_after("gRPC port is "));
    let token = std::fs::read_to_string(data.join("grpc-token")).expect("the engine's token");
    let token = format!("--set=grpc.token={}", token.trim());
    let mut facade = Process::start(&["facade", "--listen", "127.0.0.1:0", LISTEN, &url, &token]);
    let api = Api::new(&format!("http://{}", facade.log_after("listening on ")));
    until_ready(&api);
    Shop::open(&api, &ledger.ledger).open_payment();
    let (engine, facade) = (Scrape::of(&metrics_of(&mut engine)), Scrape::of(&metrics_of(&mut facade)));
    assert_eq!(engine.value("hivetill_payments_created_total"), 1.0);
    assert!(facade.value("hivetill_http_responses_total{status=\"2xx\"}") >= 2.0);
    assert!(!engine.names().iter().any(|name| name.contains("http_responses")));
    assert!(!facade.names().iter().any(|name| name.contains("payments_created")));
}

fn a_missing_node_and_a_lagging_scanner_are_shown() {
    let (dev, metrics) = dev();
    let node = dev.ledger.rpc.base.trim_start_matches("http://").to_owned();
    let up = format!("hivetill_node_up{{node=\"{node}\"}}");
    until("the node to be up", || (Scrape::of(&metrics).value(&up) == 1.0).then_some(()));
    dev.ledger.disconnect(true);
    let gone = until("the node to be down", || {
        let scrape = Scrape::of(&metrics);
        (scrape.value(&up) == 0.0 && scrape.value("hivetill_ledger_reachable") == 0.0).then_some(scrape)
    });
    assert!(gone.value(&format!("hivetill_node_failures_total{{node=\"{node}\"}}")) >= 1.0);
    until("the lag to grow", || (Scrape::of(&metrics).value("hivetill_scanner_lag_seconds") >= 3.0).then_some(()));
    dev.ledger.disconnect(false);
    until("the node to be back", || (Scrape::of(&metrics).value("hivetill_ledger_reachable") == 1.0).then_some(()));
}

fn the_public_port_serves_no_metrics() {
    let (dev, _metrics) = dev();
    assert_eq!(dev.api.get("/metrics").send().status, 404);
}

/// Returns the names of our metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    // Files and programs have the same prefix.
    words.filter(|word| word.starts_with("hivetill_")).map(str::to_owned).collect()
}

fn every_metric_that_an_alarm_or_the_dashboard_names_exists() {
    let (dev, metrics) = dev();
    dev.shop().open_payment();
    let page = metrics.get("/metrics").send().text();
    let mut there = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a kind");
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count", ""],
            "info" => &["_info"],
            _ => &[""],
        };
        there.extend(endings.iter().map(|ending| format!("{name}{ending}")));
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for file in ["deploy/grafana.json", "deploy/alarms.yml", "how-to/operate.md", "reference/limits.md"] {
        let text = std::fs::read_to_string(docs.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let unknown: Vec<_> = named(&text).difference(&there).cloned().collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, which does not exist");
        assert!(!named(&text).is_empty(), "{file} names none");
    }
    let board = std::fs::read_to_string(docs.join("deploy/grafana.json")).expect("read above");
    let board: serde_json::Value = serde_json::from_str(&board).expect("JSON");
    assert!(board["panels"].as_array().is_some_and(|panels| panels.len() > 20));
    // Every metric must be on a panel of the dashboard.
    let shown = named(&board.to_string());
    for name in there.iter().filter(|name| !name.ends_with("_sum") && !name.ends_with("_count")) {
        let seconds = name.ends_with("_seconds") || name.ends_with("_batches");
        assert!(seconds || shown.contains(name), "{name} is on no panel");
    }
}

/// Returns a table of every metric by name, from the gateway's own description.
fn listed(page: &str) -> String {
    let described: BTreeMap<&str, &str> =
        page.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' ')).collect();
    let mut rows = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a kind");
        let ending = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let meaning = described[name].trim_end_matches('.');
        rows.insert(format!("| `{name}{ending}` | {kind} | {meaning} |\n"));
    }
    format!("| metric | type | meaning |\n|---|---|---|\n{}", rows.into_iter().collect::<String>())
}

fn the_page_of_metrics_is_current() {
    const HEADING: &str = "## Every metric\n\n";
    let (dev, metrics) = dev();
    dev.shop().open_payment();
    let table = listed(&metrics.get("/metrics").send().text());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/metrics.md");
    let written = std::fs::read_to_string(&path).expect("the page");
    let (head, rows) = written.split_once(HEADING).expect("the heading");
    if is_update() {
        std::fs::write(&path, format!("{head}{HEADING}{table}")).expect("the page is written");
    } else {
        assert_eq!(
            rows, table,
            "run: HIVETILL_UPDATE_GOLDEN=1 cargo test --workspace --test tests -- the_page_of_metrics"
        );
    }
}
