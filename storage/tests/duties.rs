//! Duties and leases: who takes, renews, loses and releases them, and which writes a passed duty rejects.

use std::time::Duration;

use engine::time::Timestamp;
use storage::{Batch, CommitError, Duty, EmbeddedStore, EngineId, HoldReason, Write, prelude::*};

use crate::samples::*;

const LEASE: Duration = Duration::from_secs(30);
const ONE: EngineId = EngineId::from_bits(1);
const TWO: EngineId = EngineId::from_bits(2);

fn lease(engine: EngineId, is_new: bool, second: u64) -> Batch {
    Batch::of(Write::Lease { engine, is_new, now: at(second), duration: LEASE })
}

fn end(engine: EngineId, by: EngineId, second: u64) -> Write {
    Write::EndLease { engine, by, now: at(second) }
}

fn take(duty: Duty, engine: EngineId, expected: u64) -> Write {
    Write::Duty { duty, engine, is_taken: true, expected }
}

fn release(duty: Duty, engine: EngineId, expected: u64) -> Write {
    Write::Duty { duty, engine, is_taken: false, expected }
}

async fn conflicts(store: &EmbeddedStore, batch: Batch) -> bool {
    match store.commit(batch).await {
        Ok(()) => false,
        Err(CommitError::Conflict { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

/// Returns a duty's holder, its term and the end of the holder's lease.
async fn held(store: &EmbeddedStore, duty: Duty) -> (Option<EngineId>, u64, Option<Timestamp>) {
    let membership = store.membership().await.unwrap();
    let record = membership.duties.iter().find(|record| record.duty == duty).unwrap();
    (record.holder, record.term, membership.until(record))
}

#[tokio::test]
async fn a_duty_belongs_to_one_engine_until_its_lease_expires() {
    let store = in_memory();
    store.commit(lease(ONE, true, 0)).await.unwrap();
    store.commit(lease(TWO, true, 0)).await.unwrap();
    store.commit(Batch::of(take(Duty::Scanner, ONE, 0))).await.unwrap();
    assert_eq!(held(&store, Duty::Scanner).await, (Some(ONE), 1, Some(at(30))));
    assert!(conflicts(&store, Batch::of(take(Duty::Scanner, TWO, 1))).await, "taken from an engine with a lease");
    store.commit(lease(ONE, false, 10)).await.unwrap();
    assert_eq!(held(&store, Duty::Scanner).await, (Some(ONE), 1, Some(at(40))));
    assert!(conflicts(&store, Batch::of(end(ONE, TWO, 39))).await, "ended before it expired");
    let over = Batch::of(end(ONE, TWO, 40)).and(take(Duty::Scanner, TWO, 1));
    store.commit(over).await.unwrap();
    assert_eq!(held(&store, Duty::Scanner).await, (Some(TWO), 2, Some(at(30))));
    assert!(conflicts(&store, lease(ONE, false, 41)).await, "a deposed engine renews its lease");
    assert!(conflicts(&store, Batch::of(take(Duty::Rates, ONE, 0))).await, "a duty without a lease");
    store.commit(lease(ONE, true, 42)).await.unwrap();
    assert!(conflicts(&store, lease(ONE, true, 43)).await, "two leases");
    assert!(conflicts(&store, Batch::of(take(Duty::Scanner, ONE, 2))).await);
}

#[tokio::test]
async fn a_released_duty_and_those_of_an_engine_that_stops_are_free_at_once() {
    let store = in_memory();
    for engine in [ONE, TWO] {
        store.commit(lease(engine, true, 0)).await.unwrap();
    }
    store.commit(Batch::of(take(Duty::Rates, ONE, 0)).and(take(Duty::Webhooks(7), ONE, 0))).await.unwrap();
    assert!(conflicts(&store, Batch::of(release(Duty::Rates, TWO, 1))).await, "released by another engine");
    store.commit(Batch::of(release(Duty::Rates, ONE, 1))).await.unwrap();
    assert_eq!(held(&store, Duty::Rates).await, (None, 2, None));
    store.commit(Batch::of(take(Duty::Rates, TWO, 2))).await.unwrap();
    store.commit(Batch::of(end(ONE, ONE, 1))).await.unwrap();
    assert_eq!(held(&store, Duty::Webhooks(7)).await, (Some(ONE), 1, None));
    store.commit(Batch::of(take(Duty::Webhooks(7), TWO, 1))).await.unwrap();
    assert!(conflicts(&store, Batch::of(take(Duty::Webhooks(8), TWO, 1))).await, "a term that never was");
    assert!(conflicts(&store, Batch::of(end(ONE, ONE, 2))).await, "ended twice");
}

#[tokio::test]
async fn a_write_on_a_duty_is_rejected_once_the_duty_has_passed_on() {
    let store = in_memory();
    for engine in [ONE, TWO] {
        store.commit(lease(engine, true, 0)).await.unwrap();
    }
    store.commit(Batch::of(take(Duty::Scanner, ONE, 0))).await.unwrap();
    let on_duty = |term| Batch::of(Write::OnDuty { duty: Duty::Scanner, term });
    let moved = |number: u32, term| {
        let expected = (number > 1).then(|| cursor(number - 1));
        on_duty(term).and(Write::Cursor { cursor: cursor(number), expected })
    };
    store.commit(moved(1, 1)).await.unwrap();
    store.commit(Batch::of(end(ONE, TWO, 30)).and(take(Duty::Scanner, TWO, 1))).await.unwrap();
    assert_eq!(store.commit(moved(2, 1)).await, Err(CommitError::Deposed(Duty::Scanner)));
    assert_eq!(store.cursor().await.unwrap(), Some(cursor(1)));
    store.commit(moved(2, 2)).await.unwrap();
    let own = Batch::of(take(Duty::Scanner, TWO, 2)).and(Write::OnDuty { duty: Duty::Scanner, term: 3 });
    store.commit(own).await.unwrap();
    assert!(store.verify_inline().unwrap().is_sound());
}

#[tokio::test]
async fn a_delivery_is_held_only_while_the_reason_applies() {
    let store = in_memory();
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
}

#[tokio::test]
async fn accounts_are_listed_in_the_order_in_which_they_were_first_watched() {
    let store = in_memory();
    let added = async |after| store.accounts_added(after, 10).await.unwrap();
    assert_eq!(added(0).await, []);
    for number in [2, 1] {
        store.commit(register(&merchant(number))).await.unwrap();
    }
    let all = added(0).await;
    let accounts: Vec<_> = all.iter().map(|(_, account)| *account).collect();
    assert_eq!(accounts, [merchant(2).hive_account, merchant(1).hive_account]);
    assert_eq!(added(all[0].0).await, all[1..]);
    assert_eq!(added(all[1].0).await, []);
    assert_eq!(store.accounts_added(0, 1).await.unwrap(), all[..1]);
}
