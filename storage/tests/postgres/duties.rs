//! Duties and leases by the clock of the database: who takes, renews, loses and releases them, and which writes are rejected.

use std::time::Duration;

use storage::{Batch, CommitError, Duty, EngineId, HoldReason, PostgresStore, Write, prelude::*};

use crate::{runtime, samples::*, store};

crate::tests!(
    a_duty_belongs_to_one_engine_until_its_lease_expires,
    a_write_on_a_duty_is_rejected_once_the_duty_has_passed_on,
    a_delivery_is_held_only_while_the_reason_applies,
    accounts_are_listed_in_the_order_in_which_they_were_first_watched,
    due_work_is_read_by_bucket,
);

const LEASE: Duration = Duration::from_secs(30);
const ONE: EngineId = EngineId::from_bits(1);
/// An id whose first bit is set: a column has signed numbers.
const TWO: EngineId = EngineId::from_bits(u64::MAX - 1);

fn lease(engine: EngineId, is_new: bool, duration: Duration) -> Batch {
    // The engine's time is ignored.
    Batch::of(Write::Lease { engine, is_new, now: at(0), duration })
}

fn end(engine: EngineId, by: EngineId) -> Batch {
    Batch::of(Write::EndLease { engine, by, now: at(1_000_000) })
}

fn take(duty: Duty, engine: EngineId, expected: u64) -> Write {
    Write::Duty { duty, engine, is_taken: true, expected }
}

async fn conflicts(store: &PostgresStore, batch: Batch) -> bool {
    match store.commit(batch).await {
        Ok(()) => false,
        Err(CommitError::Conflict { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

async fn held(store: &PostgresStore, duty: Duty) -> (Option<EngineId>, u64) {
    let membership = store.membership().await.unwrap();
    let record = membership.duties.iter().find(|record| record.duty == duty).unwrap();
    (record.holder, record.term)
}

fn a_duty_belongs_to_one_engine_until_its_lease_expires() {
    runtime().block_on(async {
        let store = store().await;
        assert!(conflicts(&store, Batch::of(take(Duty::Rates, ONE, 0))).await, "a duty without a lease");
        store.commit(lease(ONE, true, LEASE)).await.unwrap();
        store.commit(lease(TWO, true, LEASE)).await.unwrap();
        assert!(conflicts(&store, lease(ONE, true, LEASE)).await, "two leases");
        store.commit(Batch::of(take(Duty::Scanner, ONE, 0)).and(take(Duty::Webhooks(7), ONE, 0))).await.unwrap();
        assert_eq!(held(&store, Duty::Scanner).await, (Some(ONE), 1));
        assert!(conflicts(&store, Batch::of(take(Duty::Scanner, TWO, 1))).await, "taken from an engine with a lease");
        assert!(conflicts(&store, end(ONE, TWO)).await, "ended before it expired");
        let leases = store.leases().await.unwrap();
        assert_eq!(leases.iter().map(|lease| lease.engine).collect::<Vec<_>>().len(), 2);
        let before = leases.iter().find(|lease| lease.engine == ONE).unwrap().until;
        store.commit(lease(ONE, false, Duration::from_millis(50))).await.unwrap();
        let after = *store.membership().await.unwrap().lease(ONE).unwrap();
        assert!(after.until < before, "the lease lasts from now on");
        tokio::time::sleep(Duration::from_millis(80)).await;
        let over = Batch { id: None, writes: vec![end(ONE, TWO).writes.remove(0), take(Duty::Scanner, TWO, 1)] };
        store.commit(over).await.unwrap();
        assert_eq!(held(&store, Duty::Scanner).await, (Some(TWO), 2));
        assert!(conflicts(&store, lease(ONE, false, LEASE)).await, "an engine without a lease renews it");
        let release = Write::Duty { duty: Duty::Scanner, engine: TWO, is_taken: false, expected: 2 };
        store.commit(Batch::of(release)).await.unwrap();
        assert_eq!(held(&store, Duty::Scanner).await, (None, 3));
        store.commit(Batch::of(take(Duty::Webhooks(7), TWO, 1))).await.unwrap();
        store.commit(end(TWO, TWO)).await.unwrap();
        assert_eq!(store.leases().await.unwrap(), []);
        store.close().await;
    });
}

fn a_write_on_a_duty_is_rejected_once_the_duty_has_passed_on() {
    runtime().block_on(async {
        let store = store().await;
        for engine in [ONE, TWO] {
            store.commit(lease(engine, true, LEASE)).await.unwrap();
        }
        store.commit(Batch::of(take(Duty::Scanner, ONE, 0))).await.unwrap();
        let moved = |number: u32, term| {
            let expected = (number > 1).then(|| cursor(number - 1));
            let on_duty = Batch::of(Write::OnDuty { duty: Duty::Scanner, term });
            on_duty.and(Write::Cursor { cursor: cursor(number), expected })
        };
        store.commit(moved(1, 1)).await.unwrap();
        store.commit(end(ONE, ONE)).await.unwrap();
        store.commit(Batch::of(take(Duty::Scanner, TWO, 1))).await.unwrap();
        assert_eq!(store.commit(moved(2, 1)).await, Err(CommitError::Deposed(Duty::Scanner)));
        assert_eq!(store.cursor().await.unwrap(), Some(cursor(1)));
        store.commit(moved(2, 2)).await.unwrap();
        store.close().await;
    });
}

fn a_delivery_is_held_only_while_the_reason_applies() {
    runtime().block_on(async {
        let store = store().await;
        store.commit(register(&merchant(1))).await.unwrap();
        store.commit(Batch::of(Write::Event(event(1, 1)))).await.unwrap();
        let delivery = store.due_deliveries(at(1_000), 1).await.unwrap().remove(0);
        let hold = |reason| Batch::of(Write::Hold { delivery: delivery.clone(), reason });
        assert!(conflicts(&store, hold(HoldReason::Disabled)).await, "held although the endpoint is enabled");
        let version = merchant(1).version;
        for merchant_version in [None, Some(version + 1)] {
            assert!(conflicts(&store, hold(HoldReason::NoEndpoint { merchant_version })).await, "{merchant_version:?}");
        }
        store.commit(hold(HoldReason::NoEndpoint { merchant_version: Some(version) })).await.unwrap();
        store.close().await;
    });
}

fn accounts_are_listed_in_the_order_in_which_they_were_first_watched() {
    runtime().block_on(async {
        let store = store().await;
        assert_eq!(store.accounts_added(0, 10).await.unwrap(), []);
        let batches = [2, 1, 3].map(|number| register(&merchant(number)));
        for outcome in futures_util::future::join_all(batches.map(|batch| store.commit(batch))).await {
            outcome.unwrap();
        }
        let all = store.accounts_added(0, 10).await.unwrap();
        assert_eq!(all.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(all[0].1, merchant(2).hive_account);
        assert_eq!(store.accounts_added(2, 10).await.unwrap(), all[2..]);
        assert_eq!(store.accounts_added(0, 1).await.unwrap(), all[..1]);
        store.close().await;
    });
}

fn due_work_is_read_by_bucket() {
    runtime().block_on(async {
        let store = store().await;
        store.commit(register(&merchant(1))).await.unwrap();
        store.commit(Batch::of(Write::Event(event(1, 1)))).await.unwrap();
        let Duty::Webhooks(bucket) = Duty::webhooks_of(endpoint_id(1)) else { panic!("no bucket") };
        for (bucket, found) in [(bucket, 1), (bucket.wrapping_add(1), 0)] {
            let mut buckets = storage::Buckets::NONE;
            buckets.insert(bucket);
            let passed = storage::Passed { buckets, ..storage::Passed::default() };
            let work = store.due_work(at(1_000), 10, 10, passed).await.unwrap();
            assert_eq!(work.len(), found);
            let names = work.iter().map(|work| work.record.as_ref().unwrap().name.clone());
            assert!(names.eq(std::iter::repeat_n(merchant(1).name, found)));
        }
        let (record, content) = store.webhook_content(merchant_id(1), 1).await.unwrap();
        assert_eq!((record.unwrap().id, content.unwrap().body), (merchant_id(1), event(1, 1).body));
        store.close().await;
    });
}
