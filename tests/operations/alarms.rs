//! Alarms: each rule is evaluated against a healthy gateway and against one in the state that it detects.

use std::{fs, path::Path};

use serde_json::json;

use super::{
    backups::rot,
    exits::{Mounted, can_mount, sh},
    metrics::{LISTEN, metrics_of},
};
use crate::{
    harness::{
        Api, Dev, LedgerProcess, Process, Serve, Shop, Split, Stopwatch, background, folder, order, pause,
        promql::{self, Page},
        until, until_ready,
    },
    x402,
};

crate::tests!(
    a_healthy_gateway_raises_no_alarm_and_a_dead_one_does,
    failing_lagging_and_missing_nodes_raise_alarms,
    server_errors_raise_an_alarm,
    an_unwritable_disk_raises_the_store_alarm_while_the_engine_runs,
    damaged_rows_raise_an_alarm,
    a_reversed_settlement_raises_an_alarm,
    slow_commits_raise_an_alarm,
    every_alarm_is_raised_by_a_test,
);

/// Returns every test of this module; tests that this machine does not support are ignored.
pub(super) fn all() -> Vec<libtest_mimic::Trial> {
    let name = crate::title(module_path!(), "an_almost_full_disk_raises_an_alarm");
    let disk = libtest_mimic::Trial::test(name, || {
        an_almost_full_disk_raises_an_alarm();
        Ok(())
    });
    let mut all = tests();
    all.push(disk.with_ignored_flag(!can_mount()));
    all
}

/// The scrapes of a process, starting with the first.
pub(crate) struct Watch {
    metrics: Api,
    first: Page,
    begun: Stopwatch,
}

impl Watch {
    pub(crate) fn of(process: &mut Process) -> Self {
        let metrics = metrics_of(process);
        let mut watch = Self { metrics, first: Page::default(), begun: Stopwatch::start() };
        watch.first = Page::of(Some(&watch.text()));
        watch
    }

    /// Returns the text of a scrape.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        self.metrics.get("/metrics").send().text()
    }

    fn scrape(&self) -> Page {
        let response = self.metrics.get("/metrics").try_send().ok().filter(|response| response.status == 200);
        Page::of(response.map(|response| response.text()).as_deref())
    }

    pub(crate) fn fires(&self, alarm: &str) -> bool {
        let seconds = self.begun.elapsed().as_secs_f64().max(0.001);
        promql::fires(alarm, &self.first, &self.scrape(), seconds)
    }

    #[track_caller]
    pub(crate) fn is_quiet(&self, alarms: &[&str]) {
        for alarm in alarms {
            assert!(!self.fires(alarm), "{alarm} fires for a gateway that is well");
        }
    }

    #[track_caller]
    pub(crate) fn until_fires(&self, alarm: &str) {
        until(&format!("{alarm} to fire"), || self.fires(alarm).then_some(()));
    }
}

/// Alarms that the load of the test machine may raise.
const OF_THE_MACHINE: [&str; 2] = ["HivetillCommitsSlow", "HivetillDiskAlmostFull"];

fn a_healthy_gateway_raises_no_alarm_and_a_dead_one_does() {
    let mut dev = Dev::with(&[LISTEN, "--set=log.level=info"]);
    let watch = Watch::of(&mut dev.process);
    let shop = dev.shop();
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    for (alarm, _) in promql::rules() {
        if !OF_THE_MACHINE.contains(&alarm.as_str()) {
            watch.is_quiet(&[&alarm]);
        }
    }
    dev.process.kill();
    watch.until_fires("HivetillDown");
}

fn failing_lagging_and_missing_nodes_raise_alarms() {
    let folder = folder("alarms");
    let setup = LedgerProcess::with_nodes(&folder.join("chain"), &["127.0.0.1:0"; 3]);
    let mut serve = Serve::over(&folder.join("data"), &setup.nodes, &[LISTEN]);
    let watch = Watch::of(&mut serve.process);
    let alarms = ["HivetillNodeUnwell", "HivetillNodeDown", "HivetillBlind"];
    until("all nodes to be well", || (!alarms.iter().any(|alarm| watch.fires(alarm))).then_some(()));
    setup.ledger.order("node", &json!({ "node": 1, "lagBlocks": 400 }));
    watch.until_fires("HivetillNodeUnwell");
    watch.is_quiet(&alarms[1..]);
    setup.ledger.order("node", &json!({ "node": 2, "disconnected": true }));
    watch.until_fires("HivetillNodeDown");
    for node in 0..2 {
        setup.ledger.order("node", &json!({ "node": node, "disconnected": true }));
    }
    watch.until_fires("HivetillBlind");
    setup.ledger.order("heal", &json!({}));
    until("all nodes to be well again", || (!alarms.iter().any(|alarm| watch.fires(alarm))).then_some(()));
}

fn server_errors_raise_an_alarm() {
    let folder = folder("alarms");
    let setup = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let mut split = Split::start(&folder.join("data"), &setup.ledger);
    let (url, token) = (format!("--engine-url={}", split.grpc), format!("--set=grpc.token={}", split.token()));
    let mut facade = Process::start(&["facade", "--listen", "127.0.0.1:0", LISTEN, &url, &token]);
    let api = Api::new(&format!("http://{}", facade.log_after("listening on ")));
    until_ready(&api);
    let watch = Watch::of(&mut facade);
    let shop = Shop::open(&api, &setup.ledger);
    watch.is_quiet(&["HivetillErrors"]);
    split.engine.kill();
    until("HivetillErrors to fire", || {
        let response = shop.post("/api/public/payments", &order()).send();
        assert!(response.status >= 500, "the engine is gone: {}", response.text());
        watch.fires("HivetillErrors").then_some(())
    });
    watch.until_fires("HivetillErrors");
}

fn an_unwritable_disk_raises_the_store_alarm_while_the_engine_runs() {
    let folder = folder("alarms");
    let setup = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let args = Serve::args(&folder.join("data"), &setup.ledger, &[LISTEN]);
    let args: Vec<String> = args.into_iter().map(|arg| format!("'{arg}'")).collect();
    let script = format!("trap '' XFSZ; exec {} {}", env!("CARGO_BIN_EXE_hivetill"), args.join(" "));
    let mut process = Process::program("sh", &folder, &["-c", &script]);
    let watch = Watch::of(&mut process);
    let api = Api::new(&format!("http://{}", process.log_after("listening on ")));
    until_ready(&api);
    watch.is_quiet(&["HivetillStoreDown"]);
    // No block is produced: nothing is committed, and only the check of the disk can detect the failure.
    setup.ledger.auto_produce(false);
    let limit = |bytes: &str| {
        let (pid, limit) = (format!("--pid={}", process.id()), format!("--fsize={bytes}"));
        assert!(std::process::Command::new("prlimit").args([pid, limit]).status().expect("prlimit").success());
    };
    limit("0:unlimited");
    watch.until_fires("HivetillStoreDown");
    api.get("/livez").send().ok(200);
    limit("unlimited:unlimited");
    until("the alarm to end", || (!watch.fires("HivetillStoreDown")).then_some(()));
    api.get("/readyz").send().ok(200);
}

fn damaged_rows_raise_an_alarm() {
    let folder = folder("alarms");
    let setup = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let (data, rotten) = (folder.join("data"), folder.join("rotten"));
    let mut serve = Serve::with(&data, &setup.ledger, &[LISTEN]);
    let watch = Watch::of(&mut serve.process);
    let shop = Shop::open(&serve.api, &setup.ledger);
    let payment = shop.open_payment();
    watch.is_quiet(&["HivetillStoreDamaged"]);
    let backup = folder.join("backup");
    take_backup(&data, &backup);
    assert!(serve.process.stop().success());
    rot(&backup, &data, &rotten);
    let mut serve = Serve::with(&rotten, &setup.ledger, &[LISTEN]);
    let watch = Watch::of(&mut serve.process);
    let shop = Shop { api: serve.api.clone(), ..shop };
    shop.get(&format!("/api/public/payments/{}", payment.id)).send().refused(500, "record_damaged");
    watch.until_fires("HivetillStoreDamaged");
}

fn take_backup(data: &Path, backup: &Path) {
    let flags = [format!("--data={}", data.display()), format!("--to={}", backup.display())];
    let taken = Process::start(&["backup", &flags[0], &flags[1]]).finish();
    assert!(taken.success, "{taken:?}");
}

fn a_reversed_settlement_raises_an_alarm() {
    let mut dev = Dev::with(&[LISTEN, "--set=log.level=info"]);
    let watch = Watch::of(&mut dev.process);
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    dev.ledger.hold_irreversibility(true);
    x402::show_at_address(&shop, &dev.ledger, &agent);
    watch.is_quiet(&["HivetillSettlementReversed"]);
    // The transaction is lost with its block, and no block contains it again before it expires.
    dev.ledger.auto_produce(false);
    dev.ledger.order("hold_transactions", &json!({ "held": true }));
    let status = dev.ledger.order("status", &json!({}));
    let depth = status["head"]["number"].as_u64().expect("a head") - status["irreversible"].as_u64().expect("a number");
    dev.ledger.order("fork", &json!({ "depth": depth, "transactions": "drop" }));
    dev.ledger.advance(4_000);
    dev.ledger.hold_irreversibility(false);
    dev.ledger.produce(30);
    watch.until_fires("HivetillSettlementReversed");
}

fn slow_commits_raise_an_alarm() {
    let mut dev = Dev::with(&[LISTEN, "--set=log.level=info"]);
    let shop = dev.shop();
    let watch = Watch::of(&mut dev.process);
    until("HivetillCommitsSlow to fire", || {
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                let shop = shop.clone();
                background(move || drop(shop.post("/api/public/payments", &order()).try_send()))
            })
            .collect();
        // A stopped process delays commits like a disk that does not respond.
        dev.process.while_halted(|| pause(std::time::Duration::from_millis(400)));
        waiting.into_iter().for_each(|one| drop(one.join()));
        watch.fires("HivetillCommitsSlow").then_some(())
    });
    watch.until_fires("HivetillCommitsSlow");
}

fn an_almost_full_disk_raises_an_alarm() {
    let folder = folder("alarms");
    let setup = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let disk = folder.join("disk");
    fs::create_dir(&disk).expect("made");
    assert!(sh(&format!("mount -t tmpfs -o size=2g,mode=0700 tmpfs {}", disk.display())));
    let mounted = Mounted(disk.clone());
    let mut serve = Serve::with(&disk.join("data"), &setup.ledger, &[LISTEN]);
    let watch = Watch::of(&mut serve.process);
    watch.is_quiet(&["HivetillDiskAlmostFull"]);
    assert!(sh(&format!("mount -o remount,size=512m {}", disk.display())));
    watch.until_fires("HivetillDiskAlmostFull");
    assert!(serve.process.stop().success());
    drop(mounted);
}

/// The alarms that tests raise.
fn every_alarm_is_raised_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = [
        "tests/operations/alarms.rs",
        "tests/hardfork.rs",
        "tests/hbd_peg.rs",
        "actors/tests/tree/alarms.rs",
        "actors/tests/tree/books.rs",
        "api/src/metrics.rs",
    ];
    let text: String = files.iter().map(|file| fs::read_to_string(root.join(file)).expect("a test")).collect();
    let is_fired = |alarm: &str| {
        let names = [
            format!("until_fires(\"{alarm}\")"),
            format!("assert!(watch.fires(\"{alarm}\")"),
            format!("assert!(fires(\"{alarm}\""),
        ];
        names.iter().any(|name| text.contains(name))
    };
    for (alarm, _) in promql::rules() {
        assert!(is_fired(&alarm), "no test fires {alarm}");
    }
}
