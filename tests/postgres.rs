//! Gateways whose store is a PostgreSQL database. Without the programs of PostgreSQL the tests report that and count as ignored.

use libtest_mimic::{Completion, Trial};
use serde_json::json;

use crate::harness::{LedgerProcess, Process, Serve, Shop, folder, until_ready};

#[allow(dead_code, reason = "shared with the tests of the store")]
#[path = "../storage/tests/postgres/cluster.rs"]
mod cluster;

use cluster::{Cluster, Programs};

/// A test that needs the programs of PostgreSQL.
type Test = fn(&Programs);

/// Returns the tests.
pub(crate) fn tests() -> Vec<Trial> {
    let all: [(&str, Test); 2] = [
        ("postgres::a_payment_completes_on_postgresql_although_the_gateway_is_killed", a_payment_completes),
        ("postgres::a_database_without_the_schema_is_refused", a_database_without_the_schema_is_refused),
    ];
    let trial = |(name, test): (&str, Test)| {
        Trial::ignorable_test(name, move || match Programs::find() {
            Ok(programs) => {
                test(&programs);
                Ok(Completion::Completed)
            }
            Err(why) => Ok(Completion::ignored_with(why)),
        })
    };
    all.into_iter().map(trial).collect()
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

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
