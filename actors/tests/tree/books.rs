//! The daily check of the books: what is said of a day, who is told of a difference, and what nobody knows.

use super::*;
use engine::{
    ledger::{Transfer, TxId},
    merchant::Merchant,
    reconciliation::{Day, Outcome},
};
use storage::AuditQuery;

/// The first second of the day (UTC) `days` after the world's first.
const fn midnight(days: u64) -> u64 {
    (BEGIN / 86_400 + days) * 86_400
}

/// A merchant with a paid session, a stray transfer, a refund and a payment of its own, all on the first day.
async fn busy(world: &World) -> Merchant {
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    world.ledger.produce_at(
        BEGIN + 120,
        vec![
            transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id)),
            transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id)),
            transfer("bob", "blue.mugs", 7, "hello"),
            transfer("blue.mugs", "alice", 1_000, &format!("refund-{}", payment.id)),
            transfer("blue.mugs", "carol", 5, "for the clay"),
        ],
    );
    world.ledger.settle();
    world.until_state(payment.id, State::Completed).await;
    world
        .until("the refund is noted", async || {
            world.engine().payments.any(payment.id).await.unwrap().refunds.len() == 1
        })
        .await;
    merchant
}

async fn day_passes(world: &World, seconds: u64) {
    world.ledger.produce_at(seconds, Vec::new());
    world.ledger.settle();
    world
        .until("the day is over", async || {
            let ledger = world.engine().operations.health().await.unwrap().ledger;
            ledger.scanned_num == ledger.irreversible_num && ledger.head_time.seconds() == seconds
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
}

async fn days(world: &World) -> Vec<Day> {
    world.engine().operations.reconciliation(None, 10).await.unwrap()
}

async fn alarms(world: &World, merchant: &Merchant) -> usize {
    let query = AuditQuery { before: None, limit: 100, merchant: Some(merchant.id) };
    let all = world.engine().operations.audit(query).await.unwrap();
    all.iter().filter(|entry| entry.action == "books_differ").count()
}

#[tokio::test(start_paused = true)]
async fn a_day_whose_books_hold_what_the_chain_holds_is_well() {
    let mut world = World::started(store()).await;
    let merchant = busy(&world).await;
    day_passes(&world, midnight(1) + 599).await;
    assert_eq!(days(&world).await, [], "histories may come late");
    day_passes(&world, midnight(1) + 600).await;
    let checked = days(&world).await;
    let [day] = &checked[..] else { panic!("one day, not {checked:?}") };
    assert_eq!((day.outcome(), day.accounts, day.operations, day.findings.len()), (Outcome::Ok, 1, 5, 0));
    assert_eq!(day.to.seconds(), midnight(1));
    // An engine that was away for two days checks each of them.
    world.stop().await;
    world.ledger.produce_at(midnight(3) + 700, Vec::new());
    world.ledger.settle();
    world.start().await;
    world.until("both days are checked", async || days(&world).await.len() == 3).await;
    let checked = days(&world).await;
    assert!(checked.iter().all(|day| day.outcome() == Outcome::Ok), "{checked:?}");
    assert!(checked.windows(2).all(|pair| pair[1].to == pair[0].from), "without a gap: {checked:?}");
    assert_eq!(alarms(&world, &merchant).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_was_never_counted_is_found_and_told_once() {
    let world = World::started(store()).await;
    let merchant = busy(&world).await;
    let hidden = TxId([7; 20]);
    let watch = alarms::Watch::of(&world);
    world.ledger.tells_history(move |mut told| {
        if let Some(first) = told.first().cloned() {
            told.push(Transfer { tx_id: hidden, to: name("blue.mugs"), from: name("eve"), ..first });
        }
        told
    });
    day_passes(&world, midnight(1) + 600).await;
    assert_eq!(days(&world).await, [], "it is looked for again before anybody is alarmed");
    assert!(!watch.fires("HivetillBooksDiffer"));
    day_passes(&world, midnight(1) + 1_500).await;
    let checked = days(&world).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].mismatches), (1, Outcome::Mismatch, 1));
    assert!(watch.fires("HivetillBooksDiffer"));
    let finding = &checked[0].findings[0];
    assert_eq!((&finding.account, &finding.merchants[..]), (&name("blue.mugs"), &[merchant.id][..]));
    let missing: Vec<_> = finding.missing.iter().map(|moved| moved.tx_id).collect();
    assert_eq!((missing, finding.missing_count, finding.extra_count), (vec![hidden], 1, 0));
    day_passes(&world, midnight(1) + 9_000).await;
    assert_eq!(alarms(&world, &merchant).await, 1);
    world.ledger.tells_history(|told| told);
    day_passes(&world, midnight(2) + 600).await;
    assert_eq!(days(&world).await[0].outcome(), Outcome::Ok, "the next day is another");
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_and_is_not_on_the_chain_is_found() {
    let world = World::started(store()).await;
    let merchant = busy(&world).await;
    world.ledger.tells_history(|mut told| {
        told.retain(|transfer| transfer.memo != "hello");
        told
    });
    day_passes(&world, midnight(1) + 600).await;
    day_passes(&world, midnight(1) + 1_500).await;
    let checked = days(&world).await;
    let finding = &checked[0].findings[0];
    assert_eq!((finding.missing_count, finding.extra_count, finding.extra[0].money.units), (0, 1, 7));
    assert_eq!(alarms(&world, &merchant).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_history_that_was_only_late_alarms_nobody() {
    let world = World::started(store()).await;
    let merchant = busy(&world).await;
    world.ledger.tells_history(|_| Vec::new());
    day_passes(&world, midnight(1) + 600).await;
    world.ledger.tells_history(|told| told);
    day_passes(&world, midnight(1) + 1_500).await;
    let checked = days(&world).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].operations), (1, Outcome::Ok, 5));
    assert_eq!(alarms(&world, &merchant).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_day_of_which_no_node_tells_is_not_checked_until_one_does_and_payments_go_on() {
    let world = World::started(store()).await;
    let merchant = busy(&world).await;
    world.ledger.keeps_history(false);
    day_passes(&world, midnight(1) + 600).await;
    let checked = days(&world).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].unchecked), (1, Outcome::NotChecked, 1));
    assert!(checked[0].obstacle.as_ref().unwrap().contains("account_history_api"), "{checked:?}");
    let payment = world.open(&merchant).await;
    world.pay(payment.id);
    world.until_state(payment.id, State::Completed).await;
    world.ledger.keeps_history(true);
    day_passes(&world, midnight(1) + 600 + 3_700).await;
    let checked = days(&world).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].obstacle.clone()), (1, Outcome::Ok, None));
}

#[tokio::test(start_paused = true)]
async fn of_three_nodes_one_that_lies_about_a_history_alarms_nobody() {
    let mut world = World::prepared(store());
    world.has_nodes([("liar", true), ("one", false), ("two", false)]);
    world.start().await;
    busy(&world).await;
    day_passes(&world, midnight(1) + 600).await;
    let checked = days(&world).await;
    assert_eq!((checked[0].outcome(), checked[0].operations), (Outcome::Ok, 5));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_before_a_day_is_stored_checks_it_again() {
    let world = World::started(store()).await;
    busy(&world).await;
    world.trap.arm("books: checked, not stored", 1);
    day_passes(&world, midnight(1) + 600).await;
    world.until("the day is checked", async || days(&world).await.len() == 1).await;
    assert_eq!(days(&world).await[0].outcome(), Outcome::Ok);
}
