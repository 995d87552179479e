//! Tests of damaged rows: reads never return them, every verification lists them, and everything else continues to
//! work.

use std::{collections::BTreeMap, path::Path};

use engine::{billing::Month, ids::DeliveryId, payment::State, time::Timestamp};
use storage::{
    AuditQuery, Batch, CommitError, DeliveryQuery, EmbeddedStore, FILE_NAME, Idle, MerchantQuery, NewStore, OpenError,
    Passed, PaymentQuery, PeriodQuery, ReadError, Row, Vicinity, VolumeQuery, Write, prelude::*,
};

use crate::{filled::*, samples::*};

/// Flips one bit of a row in the file.
fn corrupt(data: &Path, row: &Row, bit: usize) {
    let path = data.join(FILE_NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    let places: Vec<_> = memchr::memmem::find_iter(&bytes, &row.value).collect();
    assert!(!places.is_empty(), "the file contains the row");
    for place in places {
        bytes[place + bit / 8] ^= 1 << (bit % 8);
    }
    std::fs::write(&path, bytes).unwrap();
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    std::fs::copy(from.join(FILE_NAME), to.path().join(FILE_NAME)).unwrap();
    to
}

/// Returns the first row of every table.
fn rows(data: &Path) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    storage::read_file(&data.join(FILE_NAME), |row| {
        rows.entry(row.table.clone()).or_insert(row);
        Ok(())
    })
    .unwrap();
    rows
}

/// Checks a read that may find a damaged row of one table; returns whether it did.
fn is_damaged<T>(table: &str, read: Result<T, ReadError>) -> bool {
    match read {
        Ok(_) => false,
        Err(ReadError::Damaged { table: named, .. }) if named == table => true,
        Err(error) => panic!("{table}: {error}"),
    }
}

/// Runs every read; returns whether one of them failed.
async fn read_all(store: &EmbeddedStore, table: &str) -> bool {
    let (one, now, far) = (merchant_id(1), at(5_000), Timestamp::MAX);
    let mut refused = false;
    let mut see = |is_refused: bool| refused |= is_refused;
    for number in 1..=6 {
        see(is_damaged(table, store.payment(payment_id(number)).await));
        see(is_damaged(table, store.payment_by_slug(payment(1, number).slug).await));
        see(is_damaged(table, store.event(one, number).await));
        see(is_damaged(table, store.attempts(event(1, number).id).await));
        see(is_damaged(table, store.event_place(event(1, number).id).await));
        see(is_damaged(table, store.delivery(one, DeliveryId::new(at(number), [2; 10])).await));
    }
    for number in [1, 2] {
        see(is_damaged(table, store.merchant(merchant_id(number)).await));
        see(is_damaged(table, store.merchant_by_key(merchant(number).keys[0].digest).await));
        see(is_damaged(table, store.endpoint(endpoint_id(number)).await));
        see(is_damaged(table, store.compliance_status(merchant_id(number)).await));
        see(is_damaged(table, store.remembered(one, [number; 32]).await));
    }
    see(is_damaged(table, store.transfer(payment_id(3), fee_credit().tx_id, fee_credit().op_in_tx).await));
    store.transfers(payment_id(3), None, 10).await.unwrap();
    for number in [4, 9] {
        see(is_damaged(table, store.claim(tx_id(number)).await));
        see(is_damaged(table, store.overlapping_claim(account("shop"), Vec::new(), None, format!("n{number}")).await));
    }
    // Reads of several rows return the intact ones.
    for unusual in [None, Some(true)] {
        store.payments(PaymentQuery { unusual, ..PaymentQuery::all(one, 10) }).await.unwrap();
    }
    store.payments(PaymentQuery { query: Some("mug".to_owned()), ..PaymentQuery::all(one, 10) }).await.unwrap();
    store.merchants(MerchantQuery::all(10)).await.unwrap();
    let accounts = store.watched_accounts(None, 10).await.unwrap();
    assert!(accounts.contains(&merchant(1).hive_account) && accounts.contains(&merchant(2).hive_account), "{table}");
    store.volume(VolumeQuery { merchant: one, last_day: START.millis() / 86_400_000, days: 2 }).await.unwrap();
    store.due(far, None, 10).await.unwrap();
    store.in_flight().await.unwrap();
    store.open_facilitations().await.unwrap();
    store.due_deliveries(now, 10).await.unwrap();
    store.due_work(now, 10, 10, Passed::default()).await.unwrap();
    store.next_delivery_after(now).await.unwrap();
    let query = DeliveryQuery {
        merchant: one,
        payment: None,
        event: None,
        states: vec![],
        before: None,
        limit: 10,
        endpoint: None,
    };
    store.deliveries(query.clone()).await.unwrap();
    store.deliveries(DeliveryQuery { payment: Some(payment_id(1)), ..query }).await.unwrap();
    store.replayable(one, DeliveryId::from_bits(0), 10).await.unwrap();
    store.events(one, 0, 10).await.unwrap();
    store.event_list(one).await.unwrap();
    store.oldest_event().await.unwrap();
    store.unmatched(account("shop.example"), 10).await.unwrap();
    store.waiting_for_sessions(None, 10).await.unwrap();
    let money = payment(1, 1).amount;
    store.payments_near(Vicinity { merchant: one, money, from: START, to: at(60), limit: 10 }).await.unwrap();
    assert_eq!(store.pending_accounts(far, 10).await.unwrap(), [merchant_id(4)], "{table}");
    store.retired_accounts(far, 10).await.unwrap();
    store.audit(AuditQuery { merchant: None, before: None, limit: 10 }).await.unwrap();
    store.accounts_since(None, 10).await.unwrap();
    store.ledger_entries(account("shop.example"), (START, far), None, 10).await.unwrap();
    store.reconciled_days(None, 10).await.unwrap();
    store.periods_of(one).await.unwrap();
    store.periods(PeriodQuery { page: 1, limit: 10, merchant: None, status: None, now }).await.unwrap();
    store.unsettled_periods(Month::of(at(90 * 86_400)), None, 10).await.unwrap();
    store.billing_accounts(now).await.unwrap();
    see(is_damaged(table, store.period(one, Month::of(START)).await));
    // Single values are stored twice.
    assert_eq!(store.cursor().await.unwrap(), Some(cursor(5)));
    assert!(store.rate().await.unwrap().is_some() && store.fee_schedule().await.unwrap().is_some());
    assert_eq!(store.note("a").await.unwrap(), Some(vec![1, 2]));
    assert_eq!(store.receipt_keys().await.unwrap().map(|keys| keys.version), Some(2));
    refused
}

/// Runs every kind of write on rows next to the damaged one.
async fn write_all(store: &EmbeddedStore, table: &str) {
    let done = |outcome: Result<(), CommitError>| outcome.unwrap_or_else(|error| panic!("{table}: {error}"));
    done(store.commit(create(&payment(1, 90))).await);
    done(store.commit(replace(&completed(&payment(1, 90)), 1).and(Write::Event(event(1, 90)))).await);
    done(store.commit(register(&merchant(3))).await);
    done(store.commit(Batch::of(key(90)).and(entry())).await);
    done(store.commit(Batch::of(Write::Claim(claimed(90, "n90")))).await);
    done(store.commit(Batch::of(Write::Unmatched(unmatched("shop.example", 90, 0)))).await);
    done(store.commit(Batch::of(Write::Cursor { cursor: cursor(6), expected: Some(cursor(5)) })).await);
    for delivery in store.due_deliveries(at(5_000), 10).await.unwrap() {
        let attempt = attempt(&delivery, Some(at(9_000)));
        done(store.commit(Batch::of(Write::Attempt { delivery, attempt })).await);
    }
    done(store.commit(Batch::of(Write::Forget { made_before: at(10_000) })).await);
    done(store.commit(Batch::of(Write::Unwatch(account("shop.n4xx")))).await);
    done(store.commit(Batch::of(Write::Prune { happened_before: at(2) })).await);
    let _ = store.index_search(at(5_000), 100).await;
    assert_eq!(store.failure(), None, "{table}");
    assert!(store.payment(payment_id(90)).await.unwrap().is_some_and(|payment| payment.state == State::Completed));
}

/// Tables of which a read of a single damaged row fails. Reads of the others continue without it.
const FAILING_READS: [&str; 13] = [
    "payments",
    "transfers",
    "slugs",
    "merchants",
    "api_keys",
    "idempotency",
    "event_ids",
    "events",
    "deliveries",
    "claims",
    "nonces",
    "compliance_statuses",
    "billing",
];

#[tokio::test]
async fn a_damaged_row_of_any_table_is_reported_and_nothing_else_stops() {
    let filled = tempfile::tempdir().unwrap();
    fill(filled.path()).await;
    let before = Idle::take_store(filled.path()).unwrap().verify().unwrap();
    let empty: Vec<_> = before.tables.iter().filter(|(_, rows)| *rows == 0).collect();
    assert!(empty.is_empty(), "{empty:?} have no rows to damage");
    for (table, row) in rows(filled.path()) {
        for bit in [0, row.value.len() * 8 - 1] {
            let data = copy(filled.path());
            corrupt(data.path(), &row, bit);
            let store = open(data.path());
            assert_eq!(read_all(&store, &table).await, FAILING_READS.contains(&&*table), "{table}, bit {bit}");
            let report = store.verify().await.unwrap();
            let named = |finding: &String| finding.starts_with(&format!("{table} ")) && finding.contains("checksum");
            // A watched account is repaired when the store is opened.
            if table != "accounts" {
                assert!(report.findings.iter().any(named), "{table}, bit {bit}: {:?}", report.findings);
                assert!(report.finding_count > before.finding_count, "{table}");
                let counted = format!("store_damaged_rows_total{{table=\"{table}\"}}");
                assert_eq!((store.damaged_rows(), metric(&store, &counted)), (1, 1), "{table}");
                backup_reports_damage(&store, &table).await;
            }
            write_all(&store, &table).await;
            store.close().await;
            drop(store);
            let store = open(data.path());
            assert!(
                store.payment(payment_id(90)).await.unwrap().is_some(),
                "{table}: commits continue after a restart"
            );
        }
    }
}

#[tokio::test]
async fn an_event_whose_place_is_damaged_is_deleted_once_the_row_is_repaired() {
    let filled = tempfile::tempdir().unwrap();
    fill(filled.path()).await;
    let (_, row) = rows(filled.path()).into_iter().find(|(table, _)| table == "event_ids").unwrap();
    let data = copy(filled.path());
    let prune = || Batch::of(Write::Prune { happened_before: at(10_000) });
    let sound = Idle::take_store(data.path()).unwrap().verify().unwrap().finding_count;
    corrupt(data.path(), &row, 0);
    let store = open(data.path());
    store.commit(prune()).await.unwrap();
    assert!(store.oldest_event().await.unwrap().is_some(), "the event stays");
    store.close().await;
    drop(store);
    // The bit is put right.
    let mut damaged = row;
    damaged.value[0] ^= 1;
    corrupt(data.path(), &damaged, 0);
    let store = open(data.path());
    assert_eq!(store.verify().await.unwrap().finding_count, sound, "no part of the event was deleted");
    store.commit(prune()).await.unwrap();
    assert_eq!(store.oldest_event().await.unwrap(), None);
}

#[tokio::test]
async fn random_page_content_is_reported_and_crashes_no_command() {
    let filled = tempfile::tempdir().unwrap();
    fill(filled.path()).await;
    let sound = std::fs::read(filled.path().join(FILE_NAME)).unwrap();
    let noise: Vec<u8> = (0..2_048_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut refused = 0;
    let places = (0..sound.len() - noise.len()).step_by(noise.len());
    let used: Vec<usize> =
        places.filter(|begin| sound[*begin..begin + noise.len()].iter().any(|byte| *byte != 0)).collect();
    // The first pages are the file's header. Of the others a sample is tested, because each is synced several times.
    let few = used.iter().skip(4).step_by(used.len() / 10);
    for begin in used.iter().take(4).chain(few).copied() {
        let mut bytes = sound.clone();
        bytes[begin..begin + noise.len()].copy_from_slice(&noise);
        let (data, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let backup = target.path().join("backup");
        std::fs::write(&backup, &bytes).unwrap();
        std::fs::write(data.path().join(FILE_NAME), &bytes).unwrap();
        let is_detected =
            |outcome: Result<storage::Report, OpenError>| outcome.map_or(true, |report| !report.is_sound());
        // Every command reports a damaged page that is in use; a free page is not read.
        refused += usize::from(is_detected(storage::verify_file(&backup)));
        let restored = target.path().join("restored");
        std::fs::create_dir(&restored).unwrap();
        let _ = Idle::take(&restored).unwrap().restore(&backup, false);
        let idle = Idle::take_store(data.path()).unwrap();
        let _ = (idle.read(true, |_| Ok(())), idle.compact());
        drop(idle);
        std::fs::write(data.path().join(FILE_NAME), &bytes).unwrap();
        let _ = EmbeddedStore::open(data.path(), storage::Options::default());
    }
    assert!(refused > 3, "{refused} of the pages were reported");
}

/// Checks that a copy keeps the damaged row detectable.
async fn backup_reports_damage(store: &EmbeddedStore, table: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    let take = async |must_be_sound| {
        let mut copy = NewStore::create(&file).unwrap();
        let mut rows = store.rows().unwrap();
        while let Some(rows) = rows.recv().await {
            rows.unwrap().into_iter().try_for_each(|row| copy.put(row)).unwrap();
        }
        copy.finish(must_be_sound)
    };
    assert!(matches!(take(true).await, Err(OpenError::Unsound(_))), "{table}");
    let report = take(false).await.unwrap();
    let found = report.findings.iter().any(|finding| finding.starts_with(&format!("{table} ")));
    assert!(found, "{table}: {:?}", report.findings);
    let target = tempfile::tempdir().unwrap();
    let refusal = Idle::take(target.path()).unwrap().restore(&file, false).unwrap_err();
    assert!(matches!(refusal, OpenError::Unsound(_)), "{table}: {refusal}");
}

#[tokio::test]
async fn an_account_with_a_flipped_bit_is_never_returned() {
    let filled = tempfile::tempdir().unwrap();
    fill(filled.path()).await;
    let mut merchants = Vec::new();
    storage::read_file(&filled.path().join(FILE_NAME), |row| {
        merchants.extend((row.table == "merchants").then_some(row));
        Ok(())
    })
    .unwrap();
    let row = merchants.first().unwrap();
    let place = memchr::memmem::find(&row.value, b"shop.n").unwrap();
    let data = copy(filled.path());
    // "shop.n1xx" becomes "shop.o1xx".
    corrupt(data.path(), row, place * 8 + 5 * 8);
    let store = open(data.path());
    let (damaged, sound) = (merchant_id(1), merchant_id(2));
    match store.merchant(damaged).await {
        Err(ReadError::Damaged { table: "merchants", key, .. }) => assert_eq!(key, damaged.to_string()),
        other => panic!("{other:?}"),
    }
    assert!(store.merchant(sound).await.unwrap().is_some());
    let listed = store.merchants(MerchantQuery::all(10)).await.unwrap();
    assert_eq!(listed.items.iter().map(|listed| listed.merchant.id).collect::<Vec<_>>(), [merchant_id(4), sound]);
    let mut next = merchant(1);
    next.version = 2;
    let write = Write::Merchant { merchant: Box::new(next), expected: Some(1) };
    let refused = store.commit(Batch::of(write)).await;
    assert!(matches!(&refused, Err(CommitError::Conflict { what }) if what.contains("damaged")), "{refused:?}");
}
