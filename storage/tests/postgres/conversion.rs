//! Copies of a store in a store of the other kind give the same results of every read, and go on like the source.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use engine::x402::{ReceiptKey, ReceiptKeys};
use proptest::test_runner::TestRunner;
use storage::{
    Address, Batch, Connections, EmbeddedStore, Idle, MasterKey, OpenError, Options, PostgresStore, Progress, Report,
    Vault, Write, prelude::*,
};

use crate::{
    agreement::{agree, commit, steps},
    behaviour::runner,
    database,
    filled::fill,
    model::Model,
    runtime,
    samples::*,
    shared,
};

crate::tests!(
    a_store_with_rows_in_every_table_survives_both_copies,
    random_stores_are_copied_and_go_on,
    a_database_that_is_not_empty_is_refused,
    a_store_in_use_is_refused,
    secrets_stay_encrypted_in_a_copy,
    the_master_key_of_a_database_is_rotated,
    every_damage_of_a_database_is_found,
    a_running_store_streams_the_rows_of_a_backup,
);

async fn to_postgres(data: &Path, database: &Address, verifies: bool) -> Result<storage::Copied, OpenError> {
    let idle = Arc::new(Idle::take_store(data).unwrap());
    storage::copy_to_postgres(&idle, database, verifies, &mut |_| {}).await
}

async fn open_database(database: &Address, key: Option<u8>) -> Result<PostgresStore, OpenError> {
    let key = key.map(|byte| MasterKey::new([byte; 32]));
    PostgresStore::open(database, Connections { writers: 1, readers: 2 }, Vault::new(key, None)).await
}

/// A row of a store by its table and its key.
type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// Reads the rows of a closed store that a copy must have, too: not those of leases, of counts of 0 and of the file itself.
fn rows(data: &Path) -> Rows {
    let mut rows = Rows::new();
    let idle = Idle::take_store(data).unwrap();
    idle.read(false, |row| {
        let is_zero = row.table == "payment_counts" && row.value[..8] == [0; 8];
        let is_own = row.table == "engines" || (row.table == "meta" && is_of_the_file(&row.key));
        if !is_zero && !is_own {
            rows.insert((row.table, row.key), row.value);
        }
        Ok(())
    })
    .unwrap();
    rows
}

fn is_of_the_file(name: &[u8]) -> bool {
    let name = std::str::from_utf8(name).unwrap();
    ["log", "rewrite pending", "search cursor"].iter().any(|own| name.starts_with(own))
}

fn a_store_with_rows_in_every_table_survives_both_copies() {
    runtime().block_on(async {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fill(source.path()).await;
        let (cluster, _) = shared();
        let name = cluster.create_database(None);
        let address: Address = cluster.url(&name).parse().unwrap();
        let idle = Arc::new(Idle::take_store(source.path()).unwrap());
        let mut shown: Vec<Progress> = Vec::new();
        let copied =
            storage::copy_to_postgres(&idle, &address, true, &mut |progress| shown.push(progress)).await.unwrap();
        assert!(shown.iter().all(|progress| progress.expected > 50), "{shown:?}");
        assert_eq!(shown.last().map(|progress| progress.rows), Some(copied.rows));
        drop(idle);
        let report = copied.report.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let empty: Vec<_> = report.tables.iter().filter(|(_, rows)| *rows == 0).map(|(table, _)| *table).collect();
        assert_eq!(empty, ["engines", "commits"], "the sample has rows in every other table");
        let original = open(source.path());
        let copy = open_database(&address, None).await.unwrap();
        agree(&original, &copy).await;
        original.close().await;
        copy.close().await;
        drop((original, copy));

        let data = target.path().join("data");
        let back = storage::copy_to_embedded(&address, &data, true, &mut |_| {}).await.unwrap();
        let report = back.report.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let (before, after) = (rows(source.path()), rows(&data));
        let differing: Vec<_> =
            before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key)).collect();
        assert!(differing.is_empty(), "{differing:?}");
    });
}

fn random_stores_are_copied_and_go_on() {
    let runtime = runtime();
    let mut runner: TestRunner = runner();
    let both = proptest::prelude::Strategy::boxed((steps(), steps()));
    let tried = runner.run(&both, |(first, then)| {
        runtime.block_on(async {
            let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let mut model = Model::default();
            let original = open(source.path());
            commit(&first, &original, None, &mut model).await;
            original.close().await;
            drop(original);
            let database = database();
            // Random rows are not consistent with one another, but the copy must equal them.
            let compared = to_postgres(source.path(), &database, true).await;
            expect_equal(compared.map(|copied| copied.report));
            let copied = to_postgres(source.path(), &database, false).await;
            assert!(matches!(copied, Ok(_) | Err(OpenError::NotEmpty { .. })), "{copied:?}");
            let original = open(source.path());
            let copy = open_database(&database, None).await.unwrap();
            agree(&original, &copy).await;
            commit(&then, &original, Some(&copy), &mut model).await;
            agree(&original, &copy).await;
            copy.close().await;
            original.close().await;

            let data = target.path().join("data");
            let compared = storage::copy_to_embedded(&database, &data, true, &mut |_| {}).await;
            let is_copied = compared.is_ok();
            expect_equal(compared.map(|copied| copied.report));
            if !is_copied {
                storage::copy_to_embedded(&database, &data, false, &mut |_| {}).await.unwrap();
            }
            let (back, copy) = (open(&data), open_database(&database, None).await.unwrap());
            agree(&back, &copy).await;
            back.close().await;
            copy.close().await;
        });
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}

/// Asserts that no finding of a verification says that the copy differs from the source.
fn expect_equal(compared: Result<Option<Report>, OpenError>) {
    let report = match compared {
        Ok(report) => report.unwrap(),
        Err(OpenError::Unsound(report)) => *report,
        Err(other) => panic!("{other}"),
    };
    let differing: Vec<_> = report.findings.iter().filter(|finding| finding.contains("source")).collect();
    let sums = ["merchant_usage", "payment_days", "payment_waits", "differs from the record"];
    let wrong: Vec<_> = report.findings.iter().filter(|finding| sums.iter().any(|sum| finding.contains(sum))).collect();
    assert!(differing.is_empty() && wrong.is_empty(), "{:?}", report.findings);
}

fn a_database_that_is_not_empty_is_refused() {
    runtime().block_on(async {
        let source = tempfile::tempdir().unwrap();
        fill(source.path()).await;
        let database = database();
        to_postgres(source.path(), &database, false).await.unwrap();
        match to_postgres(source.path(), &database, false).await {
            Err(OpenError::NotEmpty { tables, .. }) => assert!(tables.contains("payments"), "{tables}"),
            other => panic!("{other:?}"),
        }
        let refused = storage::copy_to_embedded(&database, source.path(), false, &mut |_| {}).await;
        assert!(matches!(refused, Err(OpenError::Exists(_))), "{refused:?}");
    });
}

fn a_store_in_use_is_refused() {
    use storage::EngineId;

    runtime().block_on(async {
        let target = tempfile::tempdir().unwrap();
        let database = database();
        let store = open_database(&database, None).await.unwrap();
        let (engine, duration) = (EngineId::from_bits(7), std::time::Duration::from_secs(3_600));
        let lease = Write::Lease { engine, is_new: true, now: START, duration };
        store.commit(Batch::of(lease)).await.unwrap();
        let data = target.path().join("data");
        let refused = storage::copy_to_embedded(&database, &data, false, &mut |_| {}).await;
        assert!(matches!(refused, Err(OpenError::EnginesRunning { engines: 1, .. })), "{refused:?}");
        let rotated =
            PostgresStore::rotate_master_key(&database, &Vault::new(Some(MasterKey::new([1; 32])), None)).await;
        assert!(matches!(rotated, Err(OpenError::EnginesRunning { engines: 1, .. })), "{rotated:?}");
        store.commit(Batch::of(Write::EndLease { engine, by: engine, now: START })).await.unwrap();
        store.close().await;
        // The directory was locked and has no store.
        storage::copy_to_embedded(&database, &data, true, &mut |_| {}).await.unwrap();
    });
}

fn secrets_stay_encrypted_in_a_copy() {
    runtime().block_on(async {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let vault = || Vault::new(Some(MasterKey::new([3; 32])), None);
        let original = EmbeddedStore::open_sealed(source.path(), Options::default(), vault()).unwrap();
        original.commit(register(&merchant(1))).await.unwrap();
        original.close().await;
        drop(original);
        let database = database();
        to_postgres(source.path(), &database, true).await.unwrap();
        assert!(matches!(open_database(&database, None).await, Err(OpenError::MasterKey { is_given: false })));
        let copy = open_database(&database, Some(3)).await.unwrap();
        assert_eq!(copy.secrets().await.unwrap().sealed, 1);
        copy.close().await;
        let data = target.path().join("data");
        storage::copy_to_embedded(&database, &data, true, &mut |_| {}).await.unwrap();
        let back = EmbeddedStore::open_sealed(&data, Options::default(), vault()).unwrap();
        let stored = back.merchant(merchant_id(1)).await.unwrap().unwrap();
        assert_eq!(stored.secrets.current.reveal(), merchant(1).secrets.current.reveal());
        back.close().await;
    });
}

fn the_master_key_of_a_database_is_rotated() {
    runtime().block_on(async {
        let database = database();
        let key = |byte: u8| Some(MasterKey::new([byte; 32]));
        // Stored unencrypted first, so that the first start with a key encrypts it.
        let store = open_database(&database, None).await.unwrap();
        let keys = ReceiptKeys::create(ReceiptKey::new([6; 32]), START);
        store.commit(Batch::of(Write::ReceiptKeys { keys: Box::new(keys.clone()), expected: 0 })).await.unwrap();
        store.close().await;
        let store = open_database(&database, Some(1)).await.unwrap();
        assert_eq!(store.receipt_keys().await.unwrap().as_ref(), Some(&keys));
        for number in 1..=3 {
            store.commit(register(&merchant(number))).await.unwrap();
        }
        let keys = keys.rotate(ReceiptKey::new([7; 32]), START);
        let write = Write::ReceiptKeys { keys: Box::new(keys.clone()), expected: 1 };
        store.commit(Batch::of(write)).await.unwrap();
        store.close().await;
        let wrong = PostgresStore::rotate_master_key(&database, &Vault::new(key(2), key(9))).await;
        assert!(matches!(wrong, Err(OpenError::MasterKey { is_given: true })), "{wrong:?}");
        // Repeated after an interruption that came too late to stop it.
        for _ in 0..2 {
            PostgresStore::rotate_master_key(&database, &Vault::new(key(2), key(1))).await.unwrap();
        }
        assert!(matches!(open_database(&database, Some(1)).await, Err(OpenError::MasterKey { .. })));
        let store = open_database(&database, Some(2)).await.unwrap();
        for number in 1..=3 {
            let stored = store.merchant(merchant_id(number)).await.unwrap().unwrap();
            assert_eq!(stored.secrets.current.reveal(), merchant(number).secrets.current.reveal());
        }
        assert_eq!(store.secrets().await.unwrap().sealed, 3);
        assert_eq!(store.receipt_keys().await.unwrap(), Some(keys));
        store.close().await;
        let report = PostgresStore::verify_database(&database).await.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    });
}

fn every_damage_of_a_database_is_found() {
    /// A change of a sound database, and what its finding says.
    const DAMAGES: [(&str, &str); 24] = [
        ("UPDATE payments SET state = 'failed' WHERE state = 'completed'", "the column state differs"),
        ("UPDATE payments SET deadline = NULL", "the column deadline differs"),
        ("UPDATE payments SET in_flight = NOT in_flight", "the column in_flight differs"),
        (
            "UPDATE payments SET record = record || '\\xff' WHERE id = (SELECT min(id::text)::uuid FROM payments)",
            "payments ",
        ),
        ("DELETE FROM merchants", "its merchant does not exist"),
        ("DELETE FROM transfers", "a listed transfer is missing"),
        ("UPDATE transfers SET amount_units = 1", "the column amount_units differs"),
        ("UPDATE transfers SET merchant_id = gen_random_uuid()", "of another merchant"),
        ("DELETE FROM api_keys", "no entry for one of the merchant's keys"),
        ("DELETE FROM accounts", "account is not watched"),
        ("UPDATE merchant_usage SET open_payments = open_payments + 1", "stored,"),
        ("UPDATE payment_days SET payments = payments + 1", "payment_days sums"),
        ("DELETE FROM payment_waits", "payment_waits sums"),
        ("UPDATE payment_words SET payment_id = gen_random_uuid()", "payment_words"),
        ("DELETE FROM idempotency", "merchant_usage"),
        ("UPDATE event_lists SET last_seq = 0", "would be used again"),
        ("DELETE FROM outbox_heads", "the queue would be read too late"),
        ("UPDATE deliveries SET due_at = NULL", "the column due_at differs"),
        ("DELETE FROM claims", "no record of the payment's claim"),
        ("DELETE FROM claim_names", "could be used again"),
        ("DELETE FROM transaction_uses", "could be assigned, too"),
        ("UPDATE unmatched_transfers SET waits_for_payment_id = NULL", "would not find its session"),
        ("UPDATE billing_periods SET record = '\\x01'", "billing_periods"),
        ("UPDATE single_values SET value = '\\x07' WHERE name = 'rate'", "single_values rate"),
    ];
    runtime().block_on(async {
        let source = tempfile::tempdir().unwrap();
        fill(source.path()).await;
        let (cluster, template) = shared();
        let sound = cluster.create_database(Some(template));
        to_postgres(source.path(), &cluster.url(&sound).parse().unwrap(), true).await.unwrap();
        for (sql, expected) in DAMAGES {
            let name = cluster.create_database(Some(&sound));
            cluster.sql(&name, sql);
            let report = PostgresStore::verify_database(&cluster.url(&name).parse().unwrap()).await.unwrap();
            let is_found = report.findings.iter().any(|finding| finding.contains(expected));
            assert!(is_found, "{sql}: {:?}", report.findings);
        }
    });
}

fn a_running_store_streams_the_rows_of_a_backup() {
    runtime().block_on(async {
        let source = tempfile::tempdir().unwrap();
        fill(source.path()).await;
        let database = database();
        to_postgres(source.path(), &database, false).await.unwrap();
        let store = open_database(&database, None).await.unwrap();
        let report = store.verify().await.unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let mut copied = Rows::new();
        let mut stream = store.rows();
        while let Some(chunk) = stream.recv().await {
            copied.extend(chunk.unwrap().into_iter().map(|row| ((row.table, row.key), row.value)));
        }
        let expected = rows(source.path());
        let missing: Vec<_> =
            expected.iter().filter(|(key, value)| copied.get(*key) != Some(*value)).map(|(key, _)| key).collect();
        assert!(missing.is_empty(), "{missing:?}");
        store.close().await;
    });
}
