//! Tests of power loss and I/O errors at every operation: acknowledged commits survive, others are either complete or
//! absent.

use engine::{ids::PaymentId, webhook::DeliveryState};
use storage::{Batch, CommitError, CommitId, EmbeddedStore, PaymentQuery, Write, prelude::*};

use crate::{
    disk::{Disk, Image, Trouble},
    samples::*,
};

/// Enough commits for checkpoints that overwrite both segments of the log.
const COMMITS: u32 = 12;

/// Returns the `number`th commit: a payment, its event and the cursor, which must be written together.
fn step(number: u32) -> Batch {
    let payment = payment(1, u64::from(number));
    let cursor = Write::Cursor { cursor: cursor(number), expected: (number > 1).then(|| cursor(number - 1)) };
    create(&payment).and(Write::Event(event(1, u64::from(number)))).and(cursor)
}

/// Opens a store and commits until an operation fails; returns the number of acknowledged commits.
async fn work(disk: &Disk) -> u32 {
    let Ok(store) = disk.open() else { return 0 };
    for number in 1..=COMMITS {
        match store.commit(step(number)).await {
            Ok(()) => {}
            Err(CommitError::Unknown(_)) => {
                let again = store.commit(step(number)).await;
                assert!(matches!(again, Err(CommitError::Unknown(_))), "a failed store rejects writes");
                let resolved = store.resolve(CommitId::from_bits(1)).await;
                assert!(matches!(resolved, Err(CommitError::Unknown(_))), "a failed store resolves nothing");
                assert!(store.failure().is_some());
                return number - 1;
            }
            Err(refused) => panic!("{refused}"),
        }
    }
    COMMITS
}

/// Returns the number of commits in a store after checking that each is complete.
async fn commits_in(store: &EmbeddedStore) -> u32 {
    let page = store.payments(PaymentQuery::all(merchant_id(1), 100)).await.unwrap();
    let count = u32::try_from(page.total).unwrap();
    let ids: Vec<PaymentId> = page.items.iter().map(|payment| payment.id).collect();
    assert_eq!(ids, (1..=count).rev().map(|number| payment_id(u64::from(number))).collect::<Vec<_>>());
    let events = store.events(merchant_id(1), 0, 100).await.unwrap();
    assert_eq!(events.len() as u64, page.total);
    assert_eq!(store.due_deliveries(at(1_000), 100).await.unwrap().len() as u64, page.total);
    assert_eq!(store.due(at(100_000), None, 100).await.unwrap().len() as u64, page.total);
    assert_eq!(store.cursor().await.unwrap(), (count > 0).then(|| cursor(count)));
    count
}

/// Opens a disk image, and checks that it has every acknowledged commit and accepts new ones.
async fn check(image: Image, acknowledged: u32, case: &str) {
    let store = Disk::of(image, Trouble::None).open().unwrap_or_else(|error| panic!("{case}: {error}"));
    let count = commits_in(&store).await;
    let is_whole = count == acknowledged || (count == acknowledged + 1 && count <= COMMITS);
    assert!(is_whole, "{case}: {acknowledged} commits were acknowledged, {count} are stored");
    store.commit(step(count + 1)).await.unwrap();
    assert_eq!(commits_in(&store).await, count + 1, "{case}");
}

async fn operations_of_a_whole_run() -> u64 {
    let disk = Disk::new(Trouble::None);
    assert_eq!(work(&disk).await, COMMITS);
    let [database, ..] = disk.seen();
    let without_log = Disk::of([database, Vec::new(), Vec::new()], Trouble::None).open().unwrap();
    assert!(commits_in(&without_log).await >= COMMITS / 2, "checkpoints ran");
    disk.operations()
}

#[tokio::test]
async fn the_same_commits_write_the_same_bytes() {
    let disks = [Disk::new(Trouble::None), Disk::new(Trouble::None)];
    for disk in &disks {
        work(disk).await;
    }
    assert_eq!(disks[0].operations(), disks[1].operations());
    assert!(disks[0].seen() == disks[1].seen());
}

#[tokio::test]
async fn a_power_loss_at_any_operation_loses_no_acknowledged_commit() {
    let operations = operations_of_a_whole_run().await;
    assert!(operations > 50, "the sweep covers creation and commits, not {operations} operations");
    for at in 1..=operations {
        let disk = Disk::new(Trouble::PowerCut { at });
        let acknowledged = work(&disk).await;
        for seed in 0..5 {
            let image = disk.after_power_cut(seed.min(1) + seed * at);
            check(image, acknowledged, &format!("power loss at operation {at}, seed {seed}")).await;
        }
    }
}

#[tokio::test]
async fn a_second_power_loss_during_recovery_loses_no_acknowledged_commit() {
    let operations = operations_of_a_whole_run().await;
    for at in (1..=operations).step_by(3) {
        let disk = Disk::new(Trouble::PowerCut { at });
        let acknowledged = work(&disk).await;
        for again in 1..20 {
            let recovering = Disk::of(disk.after_power_cut(at + 2), Trouble::PowerCut { at: again });
            drop(recovering.open());
            let case = format!("power loss at operation {at} and at operation {again} of the recovery");
            check(recovering.after_power_cut(again + 2), acknowledged, &case).await;
        }
    }
}

#[tokio::test]
async fn an_io_error_at_any_operation_stops_the_store_and_loses_no_acknowledged_commit() {
    let operations = operations_of_a_whole_run().await;
    for at in 1..=operations {
        let disk = Disk::new(Trouble::Error { at });
        let acknowledged = work(&disk).await;
        check(disk.seen(), acknowledged, &format!("i/o error at operation {at}, process died")).await;
        for seed in [0, at + 2] {
            let image = disk.after_power_cut(seed);
            check(image, acknowledged, &format!("i/o error at operation {at}, then power loss, seed {seed}")).await;
        }
    }
}

#[tokio::test]
async fn a_power_loss_under_concurrent_writers_leaves_every_batch_complete_or_absent() {
    for at in (1..400).step_by(7) {
        let disk = Disk::new(Trouble::PowerCut { at });
        let options = storage::Options { mode: storage::CommitMode::default(), ..INLINE };
        let mut acknowledged = Vec::new();
        if let Ok(store) = disk.open_with(options) {
            for round in 0..5u64 {
                let numbers: Vec<u64> = (round * 10 + 1..=round * 10 + 10).collect();
                let pair = |number| create(&payment(1, number)).and(Write::Event(event(1, number)));
                let commits = numbers.iter().map(|number| store.commit(pair(*number)));
                let outcomes = futures_util::future::join_all(commits).await;
                let kept = numbers.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok());
                acknowledged.extend(kept.map(|(number, _)| payment_id(*number)));
            }
        }
        let store = Disk::of(disk.after_power_cut(at), Trouble::None).open().unwrap();
        let page = store.payments(PaymentQuery::all(merchant_id(1), 100)).await.unwrap();
        let stored: Vec<PaymentId> = page.items.iter().map(|payment| payment.id).collect();
        assert!(acknowledged.iter().all(|id| stored.contains(id)), "cut at {at}: an acknowledged payment is lost");
        let events = store.events(merchant_id(1), 0, 100).await.unwrap();
        let mut announced: Vec<PaymentId> = events.iter().map(|event| event.payment).collect();
        announced.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(announced, stored, "cut at {at}: a payment and its event belong together");
    }
}

/// The steps of a delivery: failed, held, replayed, failed, delivered; each is a commit. Returns the number of
/// acknowledged steps.
async fn deliver(disk: &Disk) -> usize {
    let Ok(store) = disk.open() else { return 0 };
    let waiting = async || store.due_deliveries(at(9_000), 1).await.ok()?.pop();
    let mut acknowledged = 0;
    for step in 0..6 {
        let write = match step {
            0 => Some(Write::Event(event(1, 1))),
            1 | 4 => waiting().await.map(|delivery| {
                let attempt = attempt(&delivery, Some(at(step + 10)));
                Write::Attempt { delivery, attempt }
            }),
            2 => waiting().await.map(hold),
            3 => match store.replayable(merchant_id(1), engine::ids::DeliveryId::from_bits(0), 1).await {
                Ok(found) => found.into_iter().next().map(|delivery| Write::Replay { delivery, at: at(20) }),
                Err(_) => None,
            },
            _ => waiting().await.map(|delivery| {
                let outcome = engine::webhook::Outcome::Accepted { status: 200 };
                let attempt = engine::webhook::Attempt { outcome, ..attempt(&delivery, None) };
                Write::Attempt { delivery, attempt }
            }),
        };
        let Some(write) = write else { return acknowledged };
        if store.commit(Batch::of(write)).await.is_err() {
            return acknowledged;
        }
        acknowledged += 1;
    }
    acknowledged
}

/// The stored state and the attempts of the delivery after each step.
const STEPS: [Option<(DeliveryState, u32)>; 7] = [
    None,
    Some((DeliveryState::Pending, 0)),
    Some((DeliveryState::Pending, 1)),
    Some((DeliveryState::Held, 1)),
    Some((DeliveryState::Pending, 1)),
    Some((DeliveryState::Pending, 2)),
    Some((DeliveryState::Delivered, 3)),
];

#[tokio::test]
async fn a_power_loss_at_any_step_of_a_delivery_loses_no_event_and_no_attempt() {
    let whole = Disk::new(Trouble::None);
    assert_eq!(deliver(&whole).await, 6);
    for cut in 1..=whole.operations() {
        let disk = Disk::new(Trouble::PowerCut { at: cut });
        let acknowledged = deliver(&disk).await;
        for seed in [0, cut + 3] {
            let store = Disk::of(disk.after_power_cut(seed), Trouble::None).open().unwrap();
            let logged = store.delivery(merchant_id(1), event(1, 1).delivery().unwrap()).await.unwrap();
            let found = logged.as_ref().map(|logged| (logged.state, logged.delivery.attempts));
            let case = format!("cut at {cut}, seed {seed}: {acknowledged} acknowledged, {found:?} found");
            assert!(STEPS[acknowledged..].iter().take(2).any(|step| *step == found), "{case}");
            let is_waiting = found.is_some_and(|(state, _)| state == DeliveryState::Pending);
            let due = store.due_work(at(9_000), 9, 9, storage::Passed::default()).await.unwrap();
            assert_eq!(due.len(), usize::from(is_waiting), "{case}");
            assert_eq!(store.due_deliveries(at(9_000), 9).await.unwrap().len(), usize::from(is_waiting), "{case}");
            let attempts = store.attempts(event(1, 1).id).await.unwrap();
            assert_eq!(attempts.len(), found.map_or(0, |(_, attempts)| attempts as usize), "{case}");
            let last = store.event_list(merchant_id(1)).await.unwrap().tail.last;
            assert_eq!(last, u64::from(found.is_some()), "{case}: an event and its delivery belong together");
        }
    }
}
