//! Schema levels beyond that of the program. There is one level so far, so the journeys play the migration of a later version with its SQL,
//! in the steps of `storage/src/postgres/schema.rs`.

use std::collections::BTreeSet;

use crate::harness::{Process, Shop, order, until};

use super::{
    cluster::{Cluster, Programs},
    facades::{Load, stored_ids},
    fleet::{Fleet, migrated},
};

/// A migration that only adds: programs of level 1 can go on.
const EXPAND: &str = "BEGIN;
    INSERT INTO schema_migrations (level, name, oldest_program) VALUES (2, 'expand', 1);
    ALTER TABLE payments ADD COLUMN later text NOT NULL DEFAULT 'none';
    CREATE INDEX payments_later ON payments (later, id) WHERE later <> 'none';
    CREATE TABLE later (id uuid PRIMARY KEY, record bytea NOT NULL);
    COMMIT";

/// What a later version does with the rows afterwards, while earlier ones run.
const FILL: &str = "UPDATE payments SET later = 'filled' WHERE later = 'none'";

/// A migration that ends the use by programs of earlier levels.
const CONTRACT: &str = "BEGIN;
    INSERT INTO schema_migrations (level, name, oldest_program) VALUES (3, 'contract', 3);
    LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE;
    ALTER TABLE payments DROP COLUMN later;
    COMMIT";

/// Exit code of a program that finds a schema of a newer level.
const NEWER: Option<i32> = Some(11);

/// A database is migrated to a level that allows this program, under load, and then to one that does not.
pub(super) fn a_database_is_migrated_beyond_this_program_under_load(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let name = migrated(&cluster);
    let store = format!("--set=store.url={}", cluster.url(&name));
    let mut fleet = Fleet::start(&store, 2);
    let facade = fleet.facade(&["--set=limits.profile=off"]);
    let shop = Shop::open(&facade.api, &fleet.ledger.ledger);
    let load = Load::start(&shop);
    load.until_further(20);
    cluster.sql(&name, EXPAND);
    load.until_further(20);
    // Engines of this level start and stop on the newer schema, and nothing is to be migrated for them.
    for number in 0..2 {
        assert!(fleet.engines[number].process.stop().success());
        fleet.restart(number);
        facade.until_engine(&fleet.engines[number].url, true);
        cluster.sql(&name, FILL);
        load.until_further(20);
    }
    let again = Process::start(&["migrate", &store]).finish();
    assert!(again.success && again.stdout.contains("up to date"), "{again:?}");
    let (acknowledged, unavailable) = load.stop();
    assert!(unavailable <= 16, "{unavailable} responses 503");
    let expected: BTreeSet<String> = acknowledged.into_values().collect();
    assert_eq!(stored_ids(&shop), expected, "nothing acknowledged is lost");
    let verified = Process::start(&["verify", &store]).finish();
    assert!(verified.success && verified.stdout.contains("has no findings"), "{verified:?}");

    cluster.sql(&name, CONTRACT);
    let before = cluster.sql(&name, "SELECT count(*) FROM payments");
    // Engines that are already running commit nothing more.
    let refused = shop.post("/api/public/payments", &order()).send();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(cluster.sql(&name, "SELECT count(*) FROM payments"), before);
    for command in ["migrate", "verify"] {
        let refused = Process::start(&[command, &store]).finish();
        assert!(refused.code == NEWER && !refused.stderr.contains("panicked"), "{command}: {refused:?}");
    }
    until("the facade to be not ready", || (facade.api.get("/readyz").send().status == 503).then_some(()));
}
