//! The daily reconciliation: the result of a day, who is notified of a difference, and what is unknown.

use super::*;
use engine::{
    ledger::{Transfer, TxId},
    merchant::Merchant,
    reconciliation::{Day, Outcome},
};
use storage::AuditQuery;

/// The first second of the day (UTC) `days` after the first day of the test.
const fn midnight(days: u64) -> u64 {
    (BEGIN / 86_400 + days) * 86_400
}

/// A merchant with a paid session, an unmatched transfer, a refund and a payment of its own, all on the first day.
async fn busy(test: &TestEngine) -> Merchant {
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    test.ledger.produce_at(
        BEGIN + 120,
        vec![
            transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id)),
            transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id)),
            transfer("bob", "blue.mugs", 7, "hello"),
            transfer("blue.mugs", "alice", 1_000, &format!("refund-{}", payment.id)),
            transfer("blue.mugs", "carol", 5, "for the clay"),
        ],
    );
    test.ledger.settle();
    test.until_state(payment.id, State::Completed).await;
    test.until("the refund is noted", async || {
        test.engine().payments.any(payment.id).await.unwrap().refunds.len() == 1
    })
    .await;
    merchant
}

async fn day_passes(test: &TestEngine, seconds: u64) {
    test.ledger.produce_at(seconds, Vec::new());
    test.ledger.settle();
    test.until("the day is over", async || {
        let ledger = test.engine().operations.health().await.unwrap().ledger;
        ledger.scanned_num == ledger.irreversible_num && ledger.head_time.seconds() == seconds
    })
    .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
}

async fn days(test: &TestEngine) -> Vec<Day> {
    test.engine().operations.reconciliation(None, 10).await.unwrap()
}

async fn alarms(test: &TestEngine, merchant: &Merchant) -> usize {
    let query = AuditQuery { before: None, limit: 100, merchant: Some(merchant.id) };
    let all = test.engine().operations.audit(query).await.unwrap();
    all.iter().filter(|entry| entry.action == "books_differ").count()
}

#[tokio::test(start_paused = true)]
async fn a_day_whose_ledger_entries_match_the_chain_has_no_difference() {
    let mut test = TestEngine::started(store()).await;
    let merchant = busy(&test).await;
    day_passes(&test, midnight(1) + 599).await;
    assert_eq!(days(&test).await, [], "histories may come late");
    day_passes(&test, midnight(1) + 600).await;
    let checked = days(&test).await;
    let [day] = &checked[..] else { panic!("one day, not {checked:?}") };
    assert_eq!((day.outcome(), day.accounts, day.operations, day.findings.len()), (Outcome::Ok, 1, 5, 0));
    assert_eq!(day.to.seconds(), midnight(1));
    // An engine that was away for two days checks each of them.
    test.stop().await;
    test.ledger.produce_at(midnight(3) + 700, Vec::new());
    test.ledger.settle();
    test.start().await;
    test.until("both days are checked", async || days(&test).await.len() == 3).await;
    let checked = days(&test).await;
    assert!(checked.iter().all(|day| day.outcome() == Outcome::Ok), "{checked:?}");
    assert!(checked.windows(2).all(|pair| pair[1].to == pair[0].from), "without a gap: {checked:?}");
    assert_eq!(alarms(&test, &merchant).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_was_never_counted_is_found_and_notified_once() {
    let test = TestEngine::started(store()).await;
    let merchant = busy(&test).await;
    let hidden = TxId([7; 20]);
    let watch = alarms::Watch::of(&test);
    test.ledger.set_history_filter(move |mut transfers| {
        if let Some(first) = transfers.first().cloned() {
            transfers.push(Transfer { tx_id: hidden, to: name("blue.mugs"), from: name("eve"), ..first });
        }
        transfers
    });
    day_passes(&test, midnight(1) + 600).await;
    assert_eq!(days(&test).await, [], "it is looked for again before anybody is alarmed");
    assert!(!watch.fires("HivetillBooksDiffer"));
    day_passes(&test, midnight(1) + 1_500).await;
    let checked = days(&test).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].mismatches), (1, Outcome::Mismatch, 1));
    assert!(watch.fires("HivetillBooksDiffer"));
    let finding = &checked[0].findings[0];
    assert_eq!((&finding.account, &finding.merchants[..]), (&name("blue.mugs"), &[merchant.id][..]));
    let missing: Vec<_> = finding.missing.iter().map(|moved| moved.tx_id).collect();
    assert_eq!((missing, finding.missing_count, finding.extra_count), (vec![hidden], 1, 0));
    day_passes(&test, midnight(1) + 9_000).await;
    assert_eq!(alarms(&test, &merchant).await, 1);
    test.ledger.set_history_filter(|transfers| transfers);
    day_passes(&test, midnight(2) + 600).await;
    assert_eq!(days(&test).await[0].outcome(), Outcome::Ok, "the next day is another");
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_and_is_not_on_the_chain_is_found() {
    let test = TestEngine::started(store()).await;
    let merchant = busy(&test).await;
    test.ledger.set_history_filter(|mut transfers| {
        transfers.retain(|transfer| transfer.memo != "hello");
        transfers
    });
    day_passes(&test, midnight(1) + 600).await;
    day_passes(&test, midnight(1) + 1_500).await;
    let checked = days(&test).await;
    let finding = &checked[0].findings[0];
    assert_eq!((finding.missing_count, finding.extra_count, finding.extra[0].money.units), (0, 1, 7));
    assert_eq!(alarms(&test, &merchant).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_history_raises_no_alarm() {
    let test = TestEngine::started(store()).await;
    let merchant = busy(&test).await;
    test.ledger.set_history_filter(|_| Vec::new());
    day_passes(&test, midnight(1) + 600).await;
    test.ledger.set_history_filter(|transfers| transfers);
    day_passes(&test, midnight(1) + 1_500).await;
    let checked = days(&test).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].operations), (1, Outcome::Ok, 5));
    assert_eq!(alarms(&test, &merchant).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_day_without_history_is_checked_once_a_node_has_it_and_payments_continue() {
    let test = TestEngine::started(store()).await;
    let merchant = busy(&test).await;
    test.ledger.keeps_history(false);
    day_passes(&test, midnight(1) + 600).await;
    let checked = days(&test).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].unchecked), (1, Outcome::NotChecked, 1));
    assert!(checked[0].obstacle.as_ref().unwrap().contains("account_history_api"), "{checked:?}");
    let payment = test.open(&merchant).await;
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    test.ledger.keeps_history(true);
    day_passes(&test, midnight(1) + 600 + 3_700).await;
    let checked = days(&test).await;
    assert_eq!((checked.len(), checked[0].outcome(), checked[0].obstacle.clone()), (1, Outcome::Ok, None));
}

#[tokio::test(start_paused = true)]
async fn of_three_nodes_one_with_a_false_history_raises_no_alarm() {
    let mut test = TestEngine::prepared(store());
    test.has_nodes([("liar", true), ("one", false), ("two", false)]);
    test.start().await;
    busy(&test).await;
    day_passes(&test, midnight(1) + 600).await;
    let checked = days(&test).await;
    assert_eq!((checked[0].outcome(), checked[0].operations), (Outcome::Ok, 5));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_before_a_day_is_stored_checks_it_again() {
    let test = TestEngine::started(store()).await;
    busy(&test).await;
    test.trap.arm("reconciliation: checked, not stored", 1);
    day_passes(&test, midnight(1) + 600).await;
    test.until("the day is checked", async || days(&test).await.len() == 1).await;
    assert_eq!(days(&test).await[0].outcome(), Outcome::Ok);
}
