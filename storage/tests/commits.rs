//! Tests of every write: its effect on reads, and the reasons for rejection.

use std::time::Duration;

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::TxId,
    money::{Currency, HivePrice, Money},
    payment::{Claim, ClaimFinality, Credit, Disposition, Finality, Payment, Rate, Route, State},
    time::Timestamp,
    webhook::DeliveryState,
    x402::{ClaimOutcome, ClaimRecord},
};
use storage::{
    Batch, CommitError, DeliveryQuery, DueWork, EmbeddedStore, EventRecord, Handling, Passed, PaymentQuery, Unmatched,
    UnmatchedReason, Vicinity, Write, prelude::*,
};

use crate::samples::*;

fn with_claim(payment: &Payment) -> Payment {
    let claim = Claim {
        tx_id: tx_id(1),
        nonce: "n".to_owned(),
        identifier: None,
        proof: proof(1),
        payer: account("alice"),
        transfers: Vec::new(),
        signed_json: "{}".to_owned(),
        expiration: at(60),
        claimed_at: at(1),
        finality: ClaimFinality::InBlock,
    };
    Payment { claim: Some(claim.into()), version: payment.version + 1, ..payment.clone() }
}

#[track_caller]
fn assert_conflict(outcome: Result<(), CommitError>, about: &str) {
    match outcome {
        Err(CommitError::Conflict { what }) => assert!(what.contains(about), "{what:?} is not about {about:?}"),
        other => panic!("{other:?} is not a conflict about {about:?}"),
    }
}

async fn due(store: &EmbeddedStore) -> Vec<PaymentId> {
    store.due(Timestamp::MAX, None, 100).await.unwrap().into_iter().map(|(_, id)| id).collect()
}

#[tokio::test]
async fn a_created_payment_is_found_by_id_slug_list_and_deadline() {
    let store = in_memory();
    let payment = payment(1, 5);
    store.commit(create(&payment)).await.unwrap();
    assert_eq!(store.payment(payment.id).await.unwrap().as_ref(), Some(&payment));
    assert_eq!(store.payment_by_slug(payment.slug).await.unwrap().as_ref(), Some(&payment));
    let page = store.payments(PaymentQuery::all(payment.merchant, 10)).await.unwrap();
    assert_eq!((page.items, page.total), (vec![payment.clone()], 1));
    let deadline = payment.deadline();
    assert_eq!(store.due(deadline, None, 10).await.unwrap(), [], "a payment at its deadline is in time");
    let later = deadline + Duration::from_millis(1);
    assert_eq!(store.due(later, None, 10).await.unwrap(), [(deadline, payment.id)]);
    assert_eq!(store.due(later, Some((deadline, payment.id)), 10).await.unwrap(), []);
    assert_eq!(store.due(later, Some((Timestamp::MAX, payment.id)), 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_payment_is_created_once() {
    let store = in_memory();
    let payment = payment(1, 5);
    store.commit(create(&payment)).await.unwrap();
    assert_conflict(store.commit(create(&payment)).await, &payment.id.to_string());
    assert_eq!(store.payments(PaymentQuery::all(payment.merchant, 10)).await.unwrap().total, 1);
}

#[tokio::test]
async fn two_payments_cannot_share_a_slug() {
    let store = in_memory();
    let first = payment(1, 5);
    store.commit(create(&first)).await.unwrap();
    let second = Payment { slug: first.slug, ..payment(1, 6) };
    assert_conflict(store.commit(create(&second)).await, "slug");
    assert_eq!(store.payment(second.id).await.unwrap(), None);
    let both =
        create(&payment(1, 7)).and(create(&Payment { slug: payment(1, 7).slug, ..payment(1, 8) }).writes.remove(0));
    assert_conflict(store.commit(both).await, "slug");
    assert_eq!(store.payment(payment_id(7)).await.unwrap(), None, "the whole batch was rejected");
}

#[tokio::test]
async fn a_payment_that_left_pending_has_no_deadline_and_counts_in_its_new_state() {
    let store = in_memory();
    let payment = payment(1, 5);
    store.commit(create(&payment)).await.unwrap();
    assert_eq!(due(&store).await, [payment.id]);
    let cancelled = cancelled(&payment);
    store.commit(replace(&cancelled, payment.version)).await.unwrap();
    assert_eq!(due(&store).await, []);
    let count = async |state| {
        let query = PaymentQuery { states: vec![state], ..PaymentQuery::all(payment.merchant, 10) };
        store.payments(query).await.unwrap().total
    };
    assert_eq!((count(State::Pending).await, count(State::UserCancelled).await), (0, 1));
}

#[tokio::test]
async fn a_stale_writer_is_rejected() {
    let store = in_memory();
    let opened = payment(1, 5);
    assert_conflict(store.commit(replace(&cancelled(&opened), 1)).await, &opened.id.to_string());
    store.commit(create(&opened)).await.unwrap();
    let cancelled = cancelled(&opened);
    store.commit(replace(&cancelled, opened.version)).await.unwrap();
    assert_conflict(store.commit(replace(&cancelled, opened.version)).await, &opened.id.to_string());
    assert_eq!(store.payment(opened.id).await.unwrap(), Some(cancelled));
}

#[tokio::test]
async fn the_merchant_and_the_slug_of_a_payment_cannot_change() {
    let store = in_memory();
    let opened = payment(1, 5);
    store.commit(create(&opened)).await.unwrap();
    for changed in [
        Payment { merchant: merchant_id(2), ..cancelled(&opened) },
        Payment { slug: payment(1, 6).slug, ..cancelled(&opened) },
    ] {
        assert_conflict(store.commit(replace(&changed, opened.version)).await, "merchant or the slug");
    }
}

#[tokio::test]
#[should_panic(expected = "a write increments the version")]
async fn a_write_without_a_new_version_panics() {
    let payment = payment(1, 5);
    let _ = in_memory().commit(replace(&payment, payment.version)).await;
}

#[tokio::test]
async fn a_payment_is_in_flight_while_it_has_a_claim() {
    let store = in_memory();
    let opened = payment(1, 5);
    let claimed = with_claim(&opened);
    let decided = Payment { claim: None, version: 3, ..claimed.clone() };
    store.commit(create(&opened)).await.unwrap();
    assert_eq!(store.in_flight().await.unwrap(), []);
    store.commit(replace(&claimed, 1)).await.unwrap();
    assert_eq!(store.in_flight().await.unwrap(), [opened.id]);
    assert_eq!(due(&store).await, [opened.id], "it keeps its deadline while it is pending");
    store.commit(replace(&decided, 2)).await.unwrap();
    assert_eq!(store.in_flight().await.unwrap(), []);
}

#[tokio::test]
async fn a_payment_is_in_flight_while_it_has_a_reversible_transfer() {
    let store = in_memory();
    let opened = payment(1, 5);
    store.commit(create(&opened)).await.unwrap();
    let transfer = |finality| Credit {
        seq: 1,
        tx_id: TxId([7; 20]),
        op_in_tx: 0,
        block: None,
        from: AccountName::parse("alice").unwrap(),
        to: opened.pay_to,
        money: opened.amount,
        memo: String::new(),
        finality,
        disposition: Disposition::Counted,
        route: Route::Wallet,
        memo_normalized: false,
    };
    for (version, finality, listed) in [
        (2, Finality::Reversible, true),
        (3, Finality::Orphaned, false),
        (4, Finality::Reversible, true),
        (5, Finality::Irreversible, false),
    ] {
        let written = Payment { version, transfers: vec![transfer(finality)], ..opened.clone() };
        store.commit(replace(&written, version - 1)).await.unwrap();
        assert_eq!(store.in_flight().await.unwrap() == [opened.id], listed, "{finality:?}");
    }
}

#[tokio::test]
async fn later_writes_of_a_batch_see_earlier_ones() {
    let store = in_memory();
    let opened = payment(1, 5);
    let batch = create(&opened).and(replace(&cancelled(&opened), 1).writes.remove(0));
    store.commit(batch).await.unwrap();
    assert_eq!(store.payment(opened.id).await.unwrap().map(|p| p.state), Some(State::UserCancelled));
    assert_eq!(due(&store).await, []);
}

#[tokio::test]
async fn a_merchant_is_found_by_its_key_until_the_key_is_replaced() {
    let store = in_memory();
    let merchant = merchant(1);
    store.commit(register(&merchant)).await.unwrap();
    assert_conflict(store.commit(register(&merchant)).await, &merchant.id.to_string());
    assert_eq!(store.merchant(merchant.id).await.unwrap().as_deref(), Some(&merchant));
    assert_eq!(store.merchant_by_key(merchant.keys[0].digest).await.unwrap().as_deref(), Some(&merchant));

    let rekeyed = merchant.with_only_key(merchant.keys[0].id, "another", at(9));
    let write = |expected| Write::Merchant { merchant: Box::new(rekeyed.clone()), expected: Some(expected) };
    assert_conflict(store.commit(Batch::of(write(0))).await, &merchant.id.to_string());
    store.commit(Batch::of(write(merchant.version))).await.unwrap();
    assert_eq!(store.merchant_by_key(merchant.keys[0].digest).await.unwrap(), None);
    assert_eq!(store.merchant_by_key(rekeyed.keys[0].digest).await.unwrap().as_deref(), Some(&rekeyed));
}

#[tokio::test]
async fn two_merchants_cannot_share_a_key() {
    let store = in_memory();
    store.commit(register(&merchant(1))).await.unwrap();
    let mut duplicate = merchant(2);
    duplicate.keys = merchant(1).keys;
    assert_conflict(store.commit(register(&duplicate)).await, "API key");
    assert_eq!(store.merchant(duplicate.id).await.unwrap(), None);
    assert_eq!(store.watched_accounts(None, 9).await.unwrap(), [merchant(1).hive_account]);
}

#[tokio::test]
async fn current_and_former_accounts_of_a_merchant_are_watched() {
    let store = in_memory();
    let old = merchant(1);
    store.commit(register(&old)).await.unwrap();
    let update = engine::merchant::Update { hive_account: Some(account("moved.shop")), ..Default::default() };
    let moved = old.updated(update, Duration::ZERO, at(5)).unwrap();
    let write = Write::Merchant { merchant: Box::new(moved.clone()), expected: Some(old.version) };
    store.commit(Batch::of(write)).await.unwrap();
    let both = [moved.hive_account, old.hive_account];
    assert_eq!(store.watched_accounts(None, 9).await.unwrap(), both);
    assert_eq!(store.watched_accounts(None, 1).await.unwrap(), both[..1]);
    assert_eq!(store.watched_accounts(Some(both[0]), 9).await.unwrap(), both[1..]);
}

#[tokio::test]
async fn events_are_numbered_without_gaps_per_merchant_and_due_at_once() {
    let store = in_memory();
    let three = Batch::of(Write::Event(event(1, 5))).and(Write::Event(event(2, 6))).and(Write::Event(event(1, 7)));
    store.commit(three).await.unwrap();
    store.commit(Batch::of(Write::Event(event(1, 4)))).await.unwrap();
    let events = store.events(merchant_id(1), 0, 9).await.unwrap();
    let numbered: Vec<_> = events.iter().map(|event| (event.seq, event.id)).collect();
    assert_eq!(numbered, [(1, event(1, 5).id), (2, event(1, 7).id), (3, event(1, 4).id)]);
    assert_eq!(events[0].body, event(1, 5).body);
    assert_eq!(store.events(merchant_id(1), 1, 1).await.unwrap(), events[1..2]);
    assert_eq!(store.events(merchant_id(1), u64::MAX, 1).await.unwrap(), []);
    assert_eq!(store.event(merchant_id(2), 1).await.unwrap().map(|event| event.seq), Some(1));
    assert_eq!(store.event(merchant_id(2), 2).await.unwrap(), None);
    assert_eq!(store.event(merchant_id(2), 0).await.unwrap(), None);

    assert_eq!(store.next_delivery_after(Timestamp::EPOCH).await.unwrap(), Some(at(4)));
    let due = store.due_deliveries(at(6), 9).await.unwrap();
    let due: Vec<_> = due.iter().map(|due| (due.due_at, due.event_seq, due.attempts)).collect();
    assert_eq!(due, [(at(4), 3, 0), (at(5), 1, 0), (at(6), 1, 0)]);
    assert_eq!(store.due_deliveries(at(6), 1).await.unwrap().len(), 1);
    assert_eq!(store.due_deliveries(at(3), 9).await.unwrap(), []);
}

#[tokio::test]
async fn an_event_is_inserted_once() {
    let store = in_memory();
    store.commit(Batch::of(Write::Event(event(1, 5)))).await.unwrap();
    assert_conflict(store.commit(Batch::of(Write::Event(event(1, 5)))).await, &event(1, 5).id.to_string());
    let twice = Batch::of(Write::Event(event(1, 6))).and(Write::Event(event(1, 6)));
    assert_conflict(store.commit(twice).await, &event(1, 6).id.to_string());
    assert_eq!(store.events(merchant_id(1), 0, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_attempt_sets_the_next_due_time_and_the_last_attempt_removes_the_delivery() {
    let store = in_memory();
    store.commit(Batch::of(Write::Event(event(1, 5)))).await.unwrap();
    let first = store.due_deliveries(at(5), 9).await.unwrap().remove(0);
    let failed = attempt(&first, Some(at(10)));
    let write = Write::Attempt { delivery: first.clone(), attempt: failed.clone() };
    store.commit(Batch::of(write.clone())).await.unwrap();
    assert_conflict(store.commit(Batch::of(write)).await, &first.id.to_string());

    assert_eq!(store.due_deliveries(at(9), 9).await.unwrap(), []);
    let second = store.due_deliveries(at(10), 9).await.unwrap().remove(0);
    assert_eq!((second.attempts, second.due_at, second.id), (1, at(10), first.id));
    let wrong_count = engine::webhook::Delivery { attempts: 4, ..second.clone() };
    assert_conflict(store.commit(Batch::of(Write::Undeliverable(wrong_count))).await, &first.id.to_string());
    let last = attempt(&second, None);
    store.commit(Batch::of(Write::Attempt { delivery: second, attempt: last.clone() })).await.unwrap();
    assert_eq!(store.next_delivery_after(Timestamp::EPOCH).await.unwrap(), None);
    assert_eq!(store.attempts(first.event).await.unwrap(), [failed, last]);
    assert_eq!(store.attempts(event(1, 6).id).await.unwrap(), []);
}

#[tokio::test]
async fn an_undeliverable_event_leaves_the_outbox_without_an_attempt() {
    let store = in_memory();
    store.commit(Batch::of(Write::Event(event(1, 5)))).await.unwrap();
    let delivery = store.due_deliveries(at(5), 9).await.unwrap().remove(0);
    store.commit(Batch::of(Write::Undeliverable(delivery.clone()))).await.unwrap();
    assert_eq!(store.next_delivery_after(Timestamp::EPOCH).await.unwrap(), None);
    assert_eq!(store.attempts(delivery.event).await.unwrap(), []);
    assert_conflict(store.commit(Batch::of(Write::Undeliverable(delivery.clone()))).await, &delivery.id.to_string());
}

#[tokio::test]
async fn the_backlog_of_one_endpoint_does_not_delay_another() {
    let store = in_memory();
    for number in 1..=3_000 {
        store.commit(Batch::of(Write::Event(event(1, number)))).await.unwrap();
    }
    store.commit(Batch::of(Write::Event(event(2, 5_000)))).await.unwrap();
    let work = store.due_work(at(9_000), 8, 16, Passed::default()).await.unwrap();
    let seen: Vec<_> = work.iter().map(|work| (work.merchant, work.deliveries.len())).collect();
    assert_eq!(seen, [(merchant_id(1), 16), (merchant_id(2), 1)], "the earliest due merchant first, and the other too");
    let passed = Passed { endpoints: [endpoint_id(1)].into(), ..Passed::default() };
    let work = store.due_work(at(9_000), 1, 16, passed).await.unwrap();
    assert_eq!(work.iter().map(|work| work.merchant).collect::<Vec<_>>(), [merchant_id(2)]);
    let known = [event(1, 1).delivery().unwrap(), event(1, 3).delivery().unwrap(), event(2, 5_000).delivery().unwrap()];
    let work = store.due_work(at(9_000), 8, 2, Passed { deliveries: known.into(), ..Passed::default() }).await.unwrap();
    let seen = |work: &DueWork| work.deliveries.iter().map(|due| due.delivery.id).collect::<Vec<_>>();
    assert_eq!(
        work.iter().map(seen).collect::<Vec<_>>(),
        [vec![event(1, 2).delivery().unwrap(), event(1, 4).delivery().unwrap()], Vec::new()],
        "excluded deliveries do not count"
    );
    assert_eq!(
        store.due_work(at(4_000), 8, 16, Passed::default()).await.unwrap().len(),
        1,
        "a delivery is not returned before it is due"
    );
}

#[tokio::test]
async fn a_delivery_after_a_pending_one_of_its_payment_is_marked() {
    let store = in_memory();
    let second = EventRecord { payment: event(1, 1).payment, ..event(1, 2) };
    store.commit(Batch::of(Write::Event(event(1, 1))).and(Write::Event(second))).await.unwrap();
    let follows = async || {
        let work = store.due_work(at(9_000), 8, 16, Passed::default()).await.unwrap().remove(0);
        work.deliveries.iter().map(|due| (due.delivery.event_seq, due.follows)).collect::<Vec<_>>()
    };
    assert_eq!(follows().await, [(1, false), (2, true)]);
    let first = store.due_deliveries(at(9_000), 1).await.unwrap().remove(0);
    let again = attempt(&first, Some(at(3)));
    store.commit(Batch::of(Write::Attempt { delivery: first, attempt: again })).await.unwrap();
    assert_eq!(follows().await, [(2, true), (1, false)]);
    let first = store.due_deliveries(at(9_000), 2).await.unwrap().remove(1);
    store.commit(Batch::of(hold(first))).await.unwrap();
    assert_eq!(follows().await, [(2, false)]);
}

#[tokio::test]
async fn a_held_delivery_is_replayed_once() {
    let store = in_memory();
    store.commit(Batch::of(Write::Event(event(1, 5)))).await.unwrap();
    let delivery = store.due_deliveries(at(5), 9).await.unwrap().remove(0);
    store.commit(Batch::of(hold(delivery.clone()))).await.unwrap();
    assert_eq!(store.due_deliveries(at(900), 9).await.unwrap(), []);
    let held = store.delivery(merchant_id(1), delivery.id).await.unwrap().unwrap();
    assert_eq!(held.state, DeliveryState::Held);
    let replay = Write::Replay { delivery: delivery.clone(), at: at(70) };
    store.commit(Batch::of(replay.clone())).await.unwrap();
    assert_conflict(store.commit(Batch::of(replay)).await, &delivery.id.to_string());
    assert_eq!(store.due_deliveries(at(69), 9).await.unwrap(), []);
    let again = store.due_deliveries(at(70), 9).await.unwrap().remove(0);
    assert_eq!((again.id, again.event, again.due_at), (delivery.id, delivery.event, at(70)));
}

#[tokio::test]
async fn pruning_deletes_events_and_responses_but_keeps_deliveries() {
    let store = in_memory();
    for number in [100, 200, 300] {
        store.commit(Batch::of(Write::Event(event(1, number)))).await.unwrap();
        let delivery = store.due_deliveries(at(number), 9).await.unwrap().remove(0);
        let attempt = attempt(&delivery, None);
        store.commit(Batch::of(Write::Attempt { delivery, attempt })).await.unwrap();
    }
    assert_eq!(store.oldest_event().await.unwrap(), Some(at(100)));
    store.commit(Batch::of(Write::Prune { happened_before: at(300) })).await.unwrap();
    assert_eq!(store.oldest_event().await.unwrap(), Some(at(300)));
    let left = store.events(merchant_id(1), 0, 9).await.unwrap();
    assert_eq!(left.iter().map(|event| event.seq).collect::<Vec<_>>(), [3], "sequence numbers are not reused");
    assert_eq!(store.event_place(event(1, 100).id).await.unwrap(), None);
    assert_eq!(store.event_place(event(1, 300).id).await.unwrap(), Some((merchant_id(1), 3)));
    let snippets = async |number| {
        let attempts = store.attempts(event(1, number).id).await.unwrap();
        attempts.iter().map(|attempt| attempt.response_snippet.clone()).collect::<Vec<_>>()
    };
    assert_eq!((snippets(100).await, snippets(300).await), (vec![String::new()], vec!["later".to_owned()]));
    let query = DeliveryQuery {
        merchant: merchant_id(1),
        before: None,
        limit: 9,
        states: Vec::new(),
        event: None,
        payment: None,
        endpoint: None,
    };
    assert_eq!(store.deliveries(query).await.unwrap().items.len(), 3);
    store.commit(Batch::of(Write::Event(event(1, 400)))).await.unwrap();
    assert_eq!(store.event_list(merchant_id(1)).await.unwrap().tail.last, 4);
}

#[tokio::test]
async fn a_transaction_and_a_nonce_are_claimed_once() {
    let store = in_memory();
    let first = claimed(1, "a nonce");
    store.commit(Batch::of(Write::Claim(first.clone()))).await.unwrap();
    assert_eq!(store.claim(first.tx_id).await.unwrap().as_ref(), Some(&first));
    assert_eq!(
        store.overlapping_claim(account("shop"), Vec::new(), None, "a nonce".to_owned()).await.unwrap().as_ref(),
        Some(&first)
    );
    for again in [claimed(1, "another"), claimed(2, "a nonce"), first.clone()] {
        let batch = Batch::of(Write::Note { name: "n", value: vec![1], expected: None }).and(Write::Claim(again));
        assert_eq!(store.commit(batch).await, Err(CommitError::Claimed(Box::new(first.clone()))));
    }
    let twice = Batch::of(Write::Claim(claimed(3, "x"))).and(Write::Claim(claimed(4, "x")));
    assert_eq!(store.commit(twice).await, Err(CommitError::Claimed(Box::new(claimed(3, "x")))));
    assert_eq!(store.claim(tx_id(3)).await.unwrap(), None);
    assert_eq!(store.overlapping_claim(account("shop"), Vec::new(), None, "x".to_owned()).await.unwrap(), None);
    assert_eq!(store.note("n").await.unwrap(), None, "a rejected batch has no effect");
}

#[tokio::test]
async fn a_nonce_and_an_identifier_are_unique_for_each_payee() {
    let store = in_memory();
    let named = |number, payee: &str, nonce: &str, identifier: Option<&str>| {
        let identifier = identifier.map(str::to_owned);
        ClaimRecord { pay_to: account(payee), identifier, ..claimed(number, nonce) }
    };
    let claim = |claimed| store.commit(Batch::of(Write::Claim(claimed)));
    let first = named(1, "shop", "n", Some("i"));
    claim(first.clone()).await.unwrap();
    claim(named(2, "shop.two", "n", Some("i"))).await.unwrap();
    claim(named(3, "shop", "i", Some("n"))).await.unwrap();
    for again in [named(4, "shop", "n", None), named(4, "shop", "other", Some("i"))] {
        assert_eq!(claim(again).await, Err(CommitError::Claimed(Box::new(first.clone()))));
    }
    let by_identifier =
        |payee| store.overlapping_claim(account(payee), Vec::new(), Some("i".to_owned()), String::new());
    assert_eq!(by_identifier("shop").await.unwrap(), Some(first));
    assert_eq!(by_identifier("shop.two").await.unwrap().map(|claimed| claimed.tx_id), Some(tx_id(2)));
    assert_eq!(by_identifier("another").await.unwrap(), None);
}

#[tokio::test]
async fn a_claim_outcome_is_set_only_from_the_expected_one() {
    let store = in_memory();
    let claim = facilitated(1, "a nonce");
    store.commit(Batch::of(Write::Claim(claim.clone()))).await.unwrap();
    assert_eq!(store.open_facilitations().await.unwrap(), std::slice::from_ref(&claim));
    let decide = |expected, outcome| Batch::of(Write::ClaimOutcome { tx_id: claim.tx_id, expected, outcome });
    let settled = |is_reported| ClaimOutcome::Settled { is_reported, block_num: Some(7) };
    assert_conflict(store.commit(decide(settled(false), settled(true))).await, &claim.tx_id.to_string());
    store.commit(decide(ClaimOutcome::Open, settled(false))).await.unwrap();
    assert_eq!(store.open_facilitations().await.unwrap(), []);
    store.commit(decide(settled(false), settled(true))).await.unwrap();
    assert_conflict(store.commit(decide(settled(false), settled(true))).await, &claim.tx_id.to_string());
    assert_eq!(store.claim(claim.tx_id).await.unwrap().unwrap().outcome, settled(true));
    store.commit(decide(settled(true), ClaimOutcome::Open)).await.unwrap();
    assert_eq!(store.open_facilitations().await.unwrap(), std::slice::from_ref(&claim), "open claims are listed");
    store.commit(decide(ClaimOutcome::Open, settled(true))).await.unwrap();
    let session = claimed(2, "another");
    store.commit(Batch::of(Write::Claim(session))).await.unwrap();
    assert_eq!(store.open_facilitations().await.unwrap(), [], "claims of sessions are not listed");
}

#[tokio::test]
async fn the_cursor_moves_only_from_the_expected_position() {
    let store = in_memory();
    let write = |to, expected| Batch::of(Write::Cursor { cursor: cursor(to), expected });
    assert_eq!(store.cursor().await.unwrap(), None);
    assert_conflict(store.commit(write(2, Some(cursor(1)))).await, "cursor");
    store.commit(write(1, None)).await.unwrap();
    assert_conflict(store.commit(write(2, None)).await, "cursor");
    let step = |to| Write::Cursor { cursor: cursor(to), expected: Some(cursor(to - 1)) };
    store.commit(Batch::of(step(2)).and(step(3))).await.unwrap();
    assert_eq!(store.cursor().await.unwrap(), Some(cursor(3)));
}

#[tokio::test]
async fn unmatched_transfers_are_listed_newest_first_by_account() {
    let store = in_memory();
    let transfers = [("shop", 9, 1), ("shop", 10, 0), ("shop", 9, 2), ("shop.two", 11, 0)];
    for (to, block, op) in transfers {
        store.commit(Batch::of(Write::Unmatched(unmatched(to, block, op)))).await.unwrap();
    }
    // The same transfer is inserted once.
    store.commit(Batch::of(Write::Unmatched(unmatched("shop", 10, 0)))).await.unwrap();
    let list = store.unmatched(account("shop"), 9).await.unwrap();
    assert_eq!(list, [unmatched("shop", 10, 0), unmatched("shop", 9, 2), unmatched("shop", 9, 1)]);
    assert_eq!(store.unmatched(account("shop"), 2).await.unwrap(), list[..2]);
    let older = store.unmatched_before(account("shop"), list[1].transfer.position, 9).await.unwrap();
    assert_eq!(older, list[2..], "a page continues where the last one ended");
}

fn handle(of: &Unmatched, handling: Handling) -> Batch {
    let (account, place) = (*of.account(), of.transfer.position);
    Batch::of(Write::Handle { account, place, handling })
}

#[tokio::test]
async fn the_first_assignment_of_an_unmatched_transfer_wins_and_survives_a_second_read_of_the_chain() {
    let store = in_memory();
    let record = unmatched("shop", 9, 1);
    let to = |payment| Handling::Assigned { payment: payment_id(payment), by: "key_1".to_owned(), at: START };
    assert_conflict(store.commit(handle(&record, to(1))).await, "transfer");
    store.commit(Batch::of(Write::Unmatched(record.clone()))).await.unwrap();
    let ignored = Handling::Ignored { by: "key_2".to_owned(), at: START, note: "a gift".to_owned() };
    store.commit(handle(&record, ignored.clone())).await.unwrap();
    store.commit(handle(&record, to(1))).await.unwrap();
    assert_conflict(store.commit(handle(&record, to(2))).await, "transfer");
    assert_conflict(store.commit(handle(&record, ignored)).await, "transfer");
    store.commit(Batch::of(Write::Unmatched(record.clone()))).await.unwrap();
    let kept = store.unmatched_at(account("shop"), record.transfer.position).await.unwrap().unwrap();
    assert_eq!(kept, Unmatched { handling: to(1), ..record });
}

#[tokio::test]
async fn a_transfer_that_names_an_unknown_session_waits_for_it() {
    let store = in_memory();
    let naming = |number: u64, block| {
        let mut record = unmatched("shop", block, 0);
        record.transfer.memo = engine::ledger::memo_of(payment_id(number));
        record.reason = UnmatchedReason::UnknownSession;
        record
    };
    let records = [naming(2, 9), naming(1, 10), naming(2, 11)];
    for record in records.iter().chain([&unmatched("shop", 12, 0)]) {
        store.commit(Batch::of(Write::Unmatched(record.clone()))).await.unwrap();
    }
    let key = |record: &Unmatched, number| (payment_id(number), *record.account(), record.transfer.position);
    let waiting = store.waiting_for_sessions(None, 9).await.unwrap();
    assert_eq!(waiting, [key(&records[1], 1), key(&records[0], 2), key(&records[2], 2)]);
    assert_eq!(store.waiting_for_sessions(Some(waiting[0]), 1).await.unwrap(), waiting[1..2]);
    let found = Handling::Assigned { payment: payment_id(2), by: "memo".to_owned(), at: START };
    store.commit(handle(&records[0], found)).await.unwrap();
    assert_eq!(store.waiting_for_sessions(None, 9).await.unwrap(), [key(&records[1], 1), key(&records[2], 2)]);
    // Reading the chain again does not make the transfer wait again.
    store.commit(Batch::of(Write::Unmatched(records[0].clone()))).await.unwrap();
    assert_eq!(store.waiting_for_sessions(None, 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn candidates_for_a_transfer_have_its_amount_or_need_attention() {
    let store = in_memory();
    for number in [1, 2_000, 3_000, 90_000] {
        store.commit(create(&payment(1, number))).await.unwrap();
    }
    store.commit(create(&payment(2, 4_000))).await.unwrap();
    let near = |units, from, to| Vicinity {
        merchant: merchant_id(1),
        money: Money::new(units, Currency::Hbd),
        from: at(from),
        to: at(to),
        limit: 9,
    };
    let ids = async |vicinity| {
        let found = store.payments_near(vicinity).await.unwrap();
        found.into_iter().map(|payment| payment.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(near(10_500, 1, 60)).await, [payment_id(3_000), payment_id(2_000)]);
    assert_eq!(ids(near(10_501, 0, 60)).await, []);
    let mut odd = payment(1, 2_000);
    odd.version = 2;
    odd.is_reversed = true;
    store.commit(replace(&odd, 1)).await.unwrap();
    assert_eq!(ids(near(10_501, 0, 60)).await, [payment_id(2_000)]);
    assert_eq!(store.payments_near(Vicinity { limit: 1, ..near(10_500, 0, 60) }).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_latest_price_and_notes_are_stored() {
    let store = in_memory();
    assert_eq!((store.rate().await.unwrap(), store.note("a").await.unwrap()), (None, None));
    for (base, expected) in [(258, None), (260, Some(at(1)))] {
        let rate = Rate { price: HivePrice::new(base, 1_000).unwrap(), hbd: None, at: at(base - 257) };
        store.commit(Batch::of(Write::Rate { rate, expected })).await.unwrap();
        assert_eq!(store.rate().await.unwrap(), Some(rate));
        assert_conflict(store.commit(Batch::of(Write::Rate { rate, expected })).await, "price");
    }
    let note = |name, value: &[u8], expected| Write::Note { name, value: value.to_vec(), expected };
    store.commit(Batch::of(note("a", &[1, 2], None)).and(note("b", &[], None))).await.unwrap();
    assert_conflict(store.commit(Batch::of(note("a", &[3], None))).await, "note a");
    assert_conflict(store.commit(Batch::of(note("a", &[3], Some(vec![1])))).await, "note a");
    let twice = Batch::of(note("c", &[1], None)).and(note("c", &[2], Some(vec![1])));
    store.commit(twice).await.unwrap();
    assert_eq!(store.note("c").await.unwrap(), Some(vec![2]));
    assert_eq!(store.note("a").await.unwrap(), Some(vec![1, 2]));
    assert_eq!(store.note("b").await.unwrap(), Some(vec![]));
}
