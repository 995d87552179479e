//! Gateways whose store is a PostgreSQL database. Without the programs of PostgreSQL the tests report that and count as ignored.

use libtest_mimic::{Completion, Trial};
use serde_json::json;

use crate::harness::{LedgerProcess, Process, Receiver, Serve, Shop, cluster, folder, order, until, until_ready};

mod alarms;
mod backups;
mod campaign;
mod facades;
mod fleet;
mod levels;
mod migrate_store;
mod partitions;
mod pooler;

use cluster::{Cluster, Programs};

/// A test that needs the programs of PostgreSQL.
type Test = fn(&Programs);

/// Returns the tests.
pub(crate) fn tests() -> Vec<Trial> {
    let all: [(&str, Test); 16] = [
        ("postgres::a_payment_completes_on_postgresql_although_the_gateway_is_killed", a_payment_completes),
        ("postgres::a_database_without_the_schema_is_refused", a_database_without_the_schema_is_refused),
        ("postgres::three_engines_lose_nothing_while_they_and_the_database_are_killed", engines_are_killed),
        ("postgres::a_failover_to_a_synchronous_standby_loses_nothing", a_failover_loses_nothing),
        ("postgres::a_facade_outlives_its_engines", facades::a_facade_outlives_its_engines),
        ("postgres::a_paused_engine_is_deposed", partitions::a_paused_engine_is_deposed),
        (
            "postgres::an_engine_cut_off_from_the_database_is_replaced",
            partitions::an_engine_cut_off_from_the_database_is_replaced,
        ),
        (
            "postgres::an_engine_cut_off_from_the_nodes_is_replaced",
            partitions::an_engine_cut_off_from_the_nodes_is_replaced,
        ),
        ("postgres::a_gateway_moves_to_a_database_and_back", migrate_store::a_gateway_moves_to_a_database_and_back),
        ("postgres::a_copy_that_is_killed_leaves_nothing", migrate_store::a_copy_that_is_killed_leaves_nothing),
        (POOLER_TEST, pooler::gateways_share_the_connections_of_a_pooler),
        ("postgres::each_failure_of_a_fleet_raises_its_alarm", alarms::each_failure_of_a_fleet_raises_its_alarm),
        (
            "postgres::a_restored_backup_has_every_archived_payment",
            backups::a_restored_backup_has_every_archived_payment,
        ),
        (
            "postgres::a_database_is_migrated_beyond_this_program_under_load",
            levels::a_database_is_migrated_beyond_this_program_under_load,
        ),
        ("postgres::campaign_of_kills_failovers_and_partitions", campaign::campaign_of_kills_failovers_and_partitions),
        ("postgres::the_master_key_of_a_database_is_rotated", migrate_store::the_master_key_of_a_database_is_rotated),
    ];
    let trial = |(name, test): (&'static str, Test)| {
        Trial::ignorable_test(name, move || match needs(name) {
            Ok(programs) => {
                test(&programs);
                Ok(Completion::Completed)
            }
            Err(why) => Ok(Completion::ignored_with(why)),
        })
    };
    all.into_iter().map(trial).collect()
}

const POOLER_TEST: &str = "postgres::gateways_share_the_connections_of_a_pooler";

/// Returns the programs that a test needs.
///
/// # Errors
/// What is missing.
fn needs(test: &str) -> Result<Programs, String> {
    if test == POOLER_TEST {
        pooler::find()?;
    }
    Programs::find()
}

fn a_database_without_the_schema_is_refused(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let store = format!("--set=store.url={}", cluster.url(&cluster.create_database(None)));
    let folder = folder("postgres");
    let refused = Process::start(&["serve", "--listen=127.0.0.1:0", "--data", path(&folder), &store]).finish();
    assert!(!refused.success && refused.stderr.contains("run `hivetill migrate`"), "{refused:?}");
    let migrated = Process::start(&["migrate", &store]).finish();
    assert!(migrated.success && migrated.stdout.contains("applied initial"), "{migrated:?}");
    let doctor = ["doctor", "--network=dev", "--node=http://127.0.0.1:1", "--data", path(&folder), &store];
    let checked = Process::start(&doctor).finish();
    assert!(checked.stdout.contains("has the schema of this version"), "{checked:?}");
    let again = Process::start(&["migrate", &store]).finish();
    assert!(again.success && again.stdout.contains("up to date"), "{again:?}");
    let embedded = Process::start(&["migrate"]).finish();
    assert!(!embedded.success && embedded.stderr.contains("store.url"), "{embedded:?}");
    let backup = Process::start(&["backup", "--to=b.redb", "--data", path(&folder), &store]).finish();
    assert!(!backup.success && backup.stderr.contains("pg_dump"), "{backup:?}");
}

/// Settings under which another engine takes over soon after a kill.
const SHORT_LEASE: [&str; 2] = ["--set=store.lease_seconds=5", "--set=webhooks.timeout_ms=2000"];

fn a_payment_completes(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let store = format!("--set=store.url={}", cluster.url(&cluster.create_database(None)));
    assert!(Process::start(&["migrate", &store]).finish().success);
    let folder = folder("postgres");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let settings = [SHORT_LEASE.as_slice(), &[&store]].concat();
    let mut serve = Serve::with(&data, &ledger.ledger, &settings);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let (first, second) = (shop.open_payment(), shop.open_payment());
    let pay = |memo: &str| {
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": "1.500 HBD", "memo": memo });
        ledger.ledger.order("transfer", &params);
    };
    pay(&first.memo);
    serve.process.kill();
    // The second payment is made while no gateway runs.
    pay(&second.memo);
    let serve = Serve::with(&data, &ledger.ledger, &settings);
    let shop = Shop { api: serve.api.clone(), ..shop };
    for payment in [&first, &second] {
        shop.until_status(&payment.id, "completed");
    }
    // Another engine on the same database: it needs the same master key.
    let key = format!("--set=master_key_file={}", path(&data.join("master-key")));
    let other = Serve::with(&folder.join("other"), &ledger.ledger, &[settings.as_slice(), &[&key]].concat());
    until_ready(&other.api);
    let shop = Shop { api: other.api.clone(), ..shop };
    shop.until_status(&first.id, "completed");
    let third = shop.open_payment();
    ledger.ledger.transfer(&ledger.demo_account("alice"), &shop.account.name, "1.500 HBD", &third.memo);
    shop.until_status(&third.id, "completed");
}

/// Kills one of three gateways of a database in each round, and the database once. A shop repeats its request at the next gateway.
fn engines_are_killed(programs: &Programs) {
    const ROUNDS: usize = 9;
    let mut cluster = Cluster::start(programs, &[]);
    let store = format!("--set=store.url={}", cluster.url(&cluster.create_database(None)));
    assert!(Process::start(&["migrate", &store]).finish().success);
    let folder = folder("postgres");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let key = format!("--set=master_key_file={}", path(&folder.join("0").join("master-key")));
    let start = |number: usize| {
        let settings = [SHORT_LEASE.as_slice(), &[&store]].concat();
        // The first one generates the key.
        let settings = if number == 0 { settings } else { [settings.as_slice(), &[&key]].concat() };
        Serve::with(&folder.join(number.to_string()), &ledger.ledger, &settings)
    };
    let mut gateways: Vec<Serve> = (0..3).map(start).collect();
    let receiver = Receiver::start();
    let shop = Shop::open(&gateways[0].api, &ledger.ledger);
    shop.set_webhook(&receiver);
    let create = |gateway: &Serve, round: usize| {
        let request = gateway.api.post("/api/public/payments", &order()).bearer(&shop.key);
        let response = request.header("idempotency-key", &format!("order-{round}")).try_send().ok()?;
        (response.status == 201).then(|| response.json())
    };
    let mut opened = Vec::new();
    for round in 0..ROUNDS {
        let killed = round % 3;
        gateways[killed].process.kill();
        if round == ROUNDS / 2 {
            cluster.stop();
            cluster.run(&[]);
        }
        let others = [(killed + 1) % 3, (killed + 2) % 3];
        let [first, again] = others.map(|other| until("a payment", || create(&gateways[other], round)));
        assert_eq!(first["id"], again["id"], "one payment for one key, whichever gateway gets the request");
        let memo = format!("pos-{}", first["id"].as_str().expect("an id"));
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": "1.500 HBD", "memo": memo });
        ledger.ledger.order("transfer", &params);
        opened.push(first["id"].clone());
        gateways[killed] = start(killed);
    }
    for (number, id) in opened.iter().enumerate() {
        let shop = Shop { api: gateways[number % 3].api.clone(), ..shop.clone() };
        let record = shop.until_status(id.as_str().expect("an id"), "completed");
        assert_eq!(record["transfers"].as_array().map(Vec::len), Some(1), "{record}");
        assert_eq!(record["exceptions"], json!([]), "{record}");
    }
    let shop = Shop { api: gateways[0].api.clone(), ..shop.clone() };
    let listed = shop.get("/api/public/payments?limit=100").send().ok(200);
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(ROUNDS), "{listed}");
    // A webhook may be sent twice when its engine is killed, and then has the same id.
    until("a webhook for each payment", || {
        let hooks = receiver.hooks();
        let completed = hooks.iter().filter(|hook| hook.json()["data"]["status"] == "completed");
        let ids: std::collections::BTreeSet<_> = completed.map(|hook| hook.header("webhook-id").to_owned()).collect();
        assert!(ids.len() <= ROUNDS, "{ids:?}");
        (ids.len() == ROUNDS).then_some(())
    });
}

/// The primary crashes between and during requests, and its standby takes over.
fn a_failover_loses_nothing(programs: &Programs) {
    let mut primary = Cluster::start(programs, &[]);
    let database = primary.create_database(None);
    let standby = primary.standby();
    primary.wait_for_standby();
    let store = format!("--set=store.url={}", primary.url_with(&standby, &database));
    assert!(Process::start(&["migrate", &store]).finish().success);
    let folder = folder("postgres");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let settings = [SHORT_LEASE.as_slice(), &[&store]].concat();
    let serve = Serve::with(&folder.join("data"), &ledger.ledger, &settings);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let create = |number: usize| {
        let request = shop.post("/api/public/payments", &order());
        let response = request.header("idempotency-key", &format!("order-{number}")).try_send().ok()?;
        (response.status == 201).then(|| response.json()["id"].as_str().expect("an id").to_owned())
    };
    let before: Vec<String> = (0..20).filter_map(create).collect();
    assert_eq!(before.len(), 20);
    primary.stop();
    assert_eq!(create(20), None, "no database acknowledges it");
    standby.promote();
    let after: Vec<String> = (15..25).map(|number| until("a payment", || create(number))).collect();
    assert_eq!(after[..5], before[15..], "the requests that were acknowledged are repeated");
    let all: Vec<&String> = before.iter().chain(&after[5..]).collect();
    let pay = |id: &&String| {
        let params =
            json!({ "from": "alice", "to": shop.account.name, "amount": "1.500 HBD", "memo": format!("pos-{id}") });
        ledger.ledger.order("transfer", &params);
    };
    all.iter().for_each(pay);
    for id in &all {
        shop.until_status(id, "completed");
    }
    let listed = shop.get("/api/public/payments?limit=100").send().ok(200);
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(all.len()), "{listed}");
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
