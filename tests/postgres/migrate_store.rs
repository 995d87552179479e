//! `migrate-store` and the commands for a store, on a database: as an operator runs them.

use serde_json::{Value, json};

use super::{
    SHORT_LEASE,
    cluster::{Cluster, Programs},
    path,
};
use crate::harness::{Finished, LedgerProcess, Process, Receiver, Serve, Shop, folder, until};

fn run(args: &[&str]) -> Finished {
    Process::start(args).finish()
}

#[track_caller]
fn succeed(args: &[&str]) -> String {
    let finished = run(args);
    assert!(finished.success, "{args:?}: {finished:?}");
    finished.stdout
}

/// Returns the exported records in an order of their own, apart from those of engines and from numbers that have gaps.
fn exported(args: &[&str]) -> Vec<String> {
    let lines = succeed(&[["export"].as_slice(), args].concat());
    let mut records: Vec<String> = Vec::new();
    for line in lines.lines() {
        let mut record: Value = serde_json::from_str(line).expect("a line of JSON");
        match record["record"].as_str() {
            Some("engine" | "duty") => continue,
            Some("audit") => record["seq"] = json!(0),
            _ => {}
        }
        records.push(record.to_string());
    }
    records.sort_unstable();
    records
}

/// A gateway moves to a database and back, and every payment, webhook and key moves with it.
pub(super) fn a_gateway_moves_to_a_database_and_back(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let url = cluster.url(&cluster.create_database(None));
    let store = format!("--set=store.url={url}");
    let folder = folder("migrate");
    let (data, back) = (folder.join("data"), folder.join("back"));
    let to_back = format!("embedded:{}", path(&back));
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let receiver = Receiver::start();

    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    shop.set_webhook(&receiver);
    let pay = |shop: &Shop| {
        let payment = shop.open_payment();
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": "1.500 HBD", "memo": payment.memo });
        ledger.ledger.order("transfer", &params);
        shop.until_status(&payment.id, "completed");
        payment
    };
    let (first, open) = (pay(&shop), shop.open_payment());
    let refused = run(&["migrate-store", "--data", path(&data), "--to", &url]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("in use by a running engine"), "{refused:?}");
    serve.process.stop();
    let before = exported(&["--data", path(&data)]);

    let moved = run(&["migrate-store", "--data", path(&data), "--to", &url, "--verify", "--json"]);
    assert!(moved.success && moved.stderr.contains("payments"), "{moved:?}");
    let report: Value = serde_json::from_str(&moved.stdout).expect("a line of JSON");
    assert_eq!(report["report"]["sound"], true, "{report}");
    let again = run(&["migrate-store", "--data", path(&data), "--to", &url]);
    assert!(again.code == Some(1) && again.stderr.contains("is not empty"), "{again:?}");
    let verified = succeed(&["verify", &store]);
    assert!(verified.contains("has no findings") && verified.contains("completed"), "{verified}");
    assert_eq!(exported(&[&store]), before);

    let settings = [SHORT_LEASE.as_slice(), &[&store]].concat();
    let mut serve = Serve::with(&data, &ledger.ledger, &settings);
    let shop = Shop { api: serve.api.clone(), ..shop };
    shop.until_status(&first.id, "completed");
    let params = json!({ "from": "alice", "to": shop.account.name, "amount": "1.500 HBD", "memo": open.memo });
    ledger.ledger.order("transfer", &params);
    shop.until_status(&open.id, "completed");
    let third = pay(&shop);
    let refused = run(&["migrate-store", &store, "--to", &to_back]);
    assert!(refused.code == Some(5) && refused.stderr.contains("in use by 1 engines"), "{refused:?}");
    maintain(&data, &store, &ledger.ledger.rpc.base);
    serve.process.stop();

    let moved = succeed(&["migrate-store", &store, "--to", &to_back, "--verify"]);
    assert!(moved.contains("equals the source"), "{moved}");
    assert_eq!(exported(&["--data", path(&back)]), exported(&[&store]));
    std::fs::copy(data.join("master-key"), back.join("master-key")).expect("the key is copied");
    let serve = Serve::start(&back, &ledger.ledger);
    let shop = Shop { api: serve.api.clone(), ..shop };
    for id in [&first.id, &open.id, &third.id] {
        shop.until_status(id, "completed");
    }
    let last = pay(&shop);
    until("a webhook for each completed payment", || {
        let hooks = receiver.hooks();
        let of = |id: &str| hooks.iter().any(|hook| hook.json()["data"]["id"] == id);
        [&first.id, &open.id, &third.id, &last.id].iter().all(|id| of(id)).then_some(())
    });
}

/// Maintains the database of a running gateway.
fn maintain(data: &std::path::Path, store: &str, node: &str) {
    let verified = succeed(&["verify", store, "--json"]);
    let report: Value = serde_json::from_str(&verified).expect("a line of JSON");
    assert_eq!((&report["sound"], &report["tables"]["merchants"]), (&json!(true), &json!(1)), "{report}");
    let named =
        succeed(&["admin", "export-account", "alice", "--data", path(data), "--network=dev", "--node", node, store]);
    assert!(named.lines().count() > 1 && named.contains("\"record\":\"transfer\""), "{named}");
    let rotated = run(&["rotate-master-key", "--data", path(data), store]);
    assert!(rotated.code == Some(5) && rotated.stderr.contains("in use by 1 engines"), "{rotated:?}");
}

/// The key of a database changes while no gateway runs, and a gateway with the previous key does not start.
pub(super) fn the_master_key_of_a_database_is_rotated(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let store = format!("--set=store.url={}", cluster.url(&cluster.create_database(None)));
    succeed(&["migrate", &store]);
    let folder = folder("rotate");
    let data = folder.join("data");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let receiver = Receiver::start();
    let settings = [SHORT_LEASE.as_slice(), &[&store]].concat();
    let mut serve = Serve::with(&data, &ledger.ledger, &settings);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    shop.set_webhook(&receiver);
    serve.process.stop();
    let key = std::fs::read_to_string(data.join("master-key")).expect("a key");
    let previous = folder.join("previous-key");
    std::fs::write(&previous, &key).expect("a copy");
    succeed(&["rotate-master-key", "--data", path(&data), &store]);
    assert_ne!(std::fs::read_to_string(data.join("master-key")).expect("a key"), key);
    let old = format!("--set=master_key_file={}", path(&previous));
    let refused =
        Process::start(&Serve::args(&data, &ledger.ledger, &[settings.as_slice(), &[&old]].concat())).finish();
    assert!(refused.code == Some(3) && refused.stderr.contains("another master key"), "{refused:?}");
    let serve = Serve::with(&data, &ledger.ledger, &settings);
    let shop = Shop { api: serve.api.clone(), ..shop };
    let payment = shop.open_payment();
    shop.cancel(&payment.id).ok(200);
    let signed =
        until("a webhook", || receiver.hooks().into_iter().find(|hook| hook.json()["data"]["id"] == *payment.id));
    assert!(!signed.header("webhook-signature").is_empty());
}

/// A copy that is killed leaves a database without a store, and the repeated command copies everything.
pub(super) fn a_copy_that_is_killed_leaves_nothing(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let name = cluster.create_database(None);
    let url = cluster.url(&name);
    let store = format!("--set=store.url={url}");
    let folder = folder("killed");
    let (data, back) = (folder.join("data"), folder.join("back"));
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    (0..3).for_each(|_| drop(shop.open_payment()));
    serve.process.stop();

    // The last table that is written waits, with everything else of the copy before it.
    cluster.sql(&name, WAIT_BEFORE_THE_CURSOR);
    let mut copy = Process::start(&["migrate-store", "--data", path(&data), "--to", &url]);
    until("the copy to wait", || (waiting(&cluster) == "1").then_some(()));
    copy.kill();
    // A session that sleeps does not notice that its client is gone.
    cluster
        .sql("postgres", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    until("the end of its session", || (waiting(&cluster) == "0").then_some(()));
    assert_eq!(cluster.sql(&name, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    let refused = Process::start(&Serve::args(&data, &ledger.ledger, &[&store])).finish();
    assert!(refused.code == Some(10) && refused.stderr.contains("run `hivetill migrate`"), "{refused:?}");
    cluster.sql(&name, "DROP EVENT TRIGGER slow; DROP FUNCTION slow_down, wait_long");
    succeed(&["migrate-store", "--data", path(&data), "--to", &url, "--verify"]);

    // The other way: the directory has no store until the copy is complete.
    let to_back = format!("embedded:{}", path(&back));
    let mut copy = Process::start(&["migrate-store", &store, "--to", &to_back]);
    let unfinished = back.join("hivetill.redb.tmp");
    until("an unfinished file", || (unfinished.exists() || copy.has_ended().is_some()).then_some(()));
    let was_running = copy.has_ended().is_none();
    copy.kill();
    if was_running && !back.join("hivetill.redb").exists() {
        let engine = [
            "engine",
            "--network=dev",
            "--grpc-listen=127.0.0.1:0",
            "--data",
            path(&back),
            "--node=http://127.0.0.1:1",
        ];
        let refused = run(&engine);
        assert!(refused.code == Some(10) && refused.stderr.contains("there is no store"), "{refused:?}");
        succeed(&["migrate-store", &store, "--to", &to_back, "--verify"]);
    }
    assert!(succeed(&["verify", "--data", path(&back)]).contains("has no findings"));
}

fn waiting(cluster: &Cluster) -> String {
    cluster.sql("postgres", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
}

/// Makes every later copy into a new schema sleep for ten minutes before it writes the cursor.
const WAIT_BEFORE_THE_CURSOR: &str = "
    CREATE FUNCTION wait_long() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$;
    CREATE FUNCTION slow_down() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT 1 FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'public.single_values'
                   AND command_tag = 'CREATE TABLE') THEN
            CREATE TRIGGER slow BEFORE INSERT ON single_values FOR EACH ROW WHEN (NEW.name = 'cursor')
                EXECUTE FUNCTION wait_long();
        END IF;
    END $$;
    CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION slow_down()";
