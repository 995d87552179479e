//! Unmatched transfers: assigned by hand, attached when its session appears, sent back.

use super::*;
use std::sync::Arc;

use engine::{
    ids::{PaymentId, SlugToken},
    ledger::{ChainPosition, refund_memo_of},
    merchant::Merchant,
    payment::{Payment, Resolution, ResolutionKind, Route, Terms},
    webhook::EventType,
};
use storage::{Handling, Unmatched};

async fn unmatched_transfers(test: &TestEngine, merchant: &Merchant, count: usize) -> Vec<Unmatched> {
    let list = async || test.engine().payments.unmatched(merchant, None, 100).await.unwrap().rows;
    test.until("the strays are kept", async || list().await.len() == count).await;
    list().await
}

async fn assign(
    test: &TestEngine,
    merchant: &Merchant,
    place: ChainPosition,
    id: PaymentId,
) -> Result<Arc<Payment>, EngineError> {
    test.engine().payments.assign(merchant, place, id, "key_1".to_owned()).await
}

#[tokio::test(start_paused = true)]
async fn an_assigned_transfer_completes_its_session_once_however_many_assign_it_at_once() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    let (paid, other) = (test.open(&merchant).await, test.open(&merchant).await);
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, "thanks")]);
    test.ledger.settle();
    let place = unmatched_transfers(&test, &merchant, 1).await[0].transfer.position;
    let likely = test.engine().payments.candidates(&merchant, place).await.unwrap();
    assert_eq!(likely.iter().map(|c| c.payment.id).collect::<Vec<_>>(), [other.id, paid.id]);
    assert!(likely.iter().all(|c| c.is_same_amount && c.is_on_time && !c.is_same_payer));
    let attempts = (0..20).map(|n| assign(&test, &merchant, place, if n % 2 == 0 { paid.id } else { other.id }));
    let results = futures_util::future::join_all(attempts).await;
    let winners: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).map(|p| p.id).collect();
    let first = winners[0];
    let loser = if first == paid.id { other.id } else { paid.id };
    assert_eq!(winners, [first; 10], "every caller that named the winner gets it");
    assert!(results.iter().flat_map(|a| a.as_ref().err()).all(|e| *e == EngineError::TransferAssigned(first)));
    test.until_state(first, State::Completed).await;
    assert_eq!(test.state(loser).await, State::Pending);
    let payment = test.engine().payments.any(first).await.unwrap();
    assert_eq!((payment.transfers.len(), payment.transfers[0].route), (1, Route::Manual));
    test.until("the webhook is out", async || test.receiver.count() == 1).await;
    let kept = &unmatched_transfers(&test, &merchant, 1).await[0];
    assert!(matches!(&kept.handling, Handling::Assigned { payment, by, .. } if *payment == first && by == "key_1"));
    let ignored = test.engine().payments.ignore(&merchant, place, "key_1".to_owned(), String::new()).await;
    assert_eq!(ignored.err(), Some(EngineError::TransferAssigned(first)));
}

#[tokio::test(start_paused = true)]
async fn an_unmatched_transfer_is_announced_once_to_each_merchant_that_has_proven_the_account() {
    let mut test = TestEngine::started(store()).await;
    let (first, second, unproven) = (test.owner().await, test.owner().await, test.merchant().await);
    let payment = test.open(&first).await;
    test.ledger.produce(vec![
        transfer("alice", "blue.mugs", 5, "thanks"),
        transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id)),
    ]);
    test.ledger.settle();
    let kept = unmatched_transfers(&test, &first, 1).await.remove(0).transfer;
    test.until_state(payment.id, State::Completed).await;
    let announced = async |test: &TestEngine, merchant: &Merchant| {
        let events = test.env.store.events(merchant.id, 0, 9).await.unwrap();
        let events = events.into_iter().filter(|event| event.kind == EventType::TransferUnmatched);
        events.map(|event| event.id).collect::<Vec<_>>()
    };
    for merchant in [&first, &second] {
        let id = engine::webhook::unmatched_event_id(&kept, merchant.id);
        assert_eq!(announced(&test, merchant).await, [id]);
    }
    assert_eq!(announced(&test, &unproven).await, []);
    // An engine that starts again announces nothing twice.
    test.tree.take().unwrap().stop().await;
    test.start().await;
    test.ledger.produce(vec![transfer("bob", "blue.mugs", 6, "")]);
    test.ledger.settle();
    unmatched_transfers(&test, &first, 2).await;
    assert_eq!(announced(&test, &first).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_ignored_transfer_may_be_assigned_and_one_to_another_account_may_not() {
    let mut test = TestEngine::prepared(store());
    test.settings.account_change_wait = Duration::ZERO;
    test.start().await;
    let merchant = test.owner().await;
    let stranger = test.owner_of("red.mugs").await;
    let payment = test.open(&merchant).await;
    test.ledger.produce_at(payment.expires_at.seconds() + 3, vec![transfer("alice", "blue.mugs", 1_000, "")]);
    test.ledger.settle();
    let place = unmatched_transfers(&test, &merchant, 1).await[0].transfer.position;
    test.engine().payments.ignore(&merchant, place, "key_1".to_owned(), "a gift".to_owned()).await.unwrap();
    assert_eq!(assign(&test, &stranger, place, payment.id).await, Err(EngineError::PaymentNotFound));
    let theirs = test.open(&stranger).await;
    assert_eq!(assign(&test, &stranger, place, theirs.id).await, Err(EngineError::TransferNotFound));
    test.until_state(payment.id, State::SystemCancelled).await;
    let late = assign(&test, &merchant, place, payment.id).await.unwrap();
    assert_eq!((late.state, late.late_units()), (State::SystemCancelled, 1_000));
    // After a change of account the old session can still be given its money.
    let old = test.open(&merchant).await;
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, "again")]);
    test.ledger.settle();
    let place = unmatched_transfers(&test, &merchant, 2).await[0].transfer.position;
    let update = engine::merchant::Update { hive_account: Some(name("new.mugs")), ..Default::default() };
    test.engine().merchants.update(merchant.id, update).await.unwrap();
    test.engine().merchants.vouch_for(merchant.id, Some(name("new.mugs"))).await.unwrap();
    let read = async || (*test.engine().merchants.get(merchant.id).await.unwrap()).clone();
    test.until("the change takes effect", async || read().await.hive_account == name("new.mugs")).await;
    let moved = read().await;
    assert_eq!(assign(&test, &moved, place, old.id).await.unwrap().state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_came_before_its_session_is_attached_when_the_session_appears() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    // A session of another node: it is not here yet, and its money is.
    let terms = Terms {
        merchant: merchant.id,
        pay_to: name("blue.mugs"),
        fee_percent: engine::money::FeePercent::ZERO,
        fee_mode: engine::payment::FeeMode::Invoice,
        rate: None,
        default_lifetime: Duration::from_secs(1_800),
        grace: Duration::ZERO,
        livemode: true,
    };
    let now = test.engine().now();
    let id = PaymentId::new(now, [7; 10]);
    let payment = Payment::open(draft(), terms, id, SlugToken::from_bits(9), now).unwrap();
    let loud = memo_of(payment.id).to_uppercase();
    let transfers = [400, 600].map(|units| transfer("alice", "blue.mugs", units, &loud));
    test.ledger.produce(transfers.to_vec());
    test.ledger.settle();
    let kept = unmatched_transfers(&test, &merchant, 2).await;
    assert!(kept.iter().all(|unmatched_transfer| unmatched_transfer.reason == UnmatchedReason::UnknownSession));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let write = Write::Payment { payment: Arc::new(payment.clone()), expected: None };
    test.env.store.commit(Batch::of(write)).await.unwrap();
    test.until_state(payment.id, State::Completed).await;
    let paid = test.engine().payments.any(payment.id).await.unwrap();
    assert_eq!((paid.transfers.len(), paid.exceptions().len()), (2, 0), "nobody had a hand in it");
    assert!(paid.transfers.iter().all(|credit| credit.route == Route::Wallet && credit.memo_normalized));
    let kept = unmatched_transfers(&test, &merchant, 2).await;
    assert!(kept.iter().all(
        |unmatched_transfer| matches!(&unmatched_transfer.handling, Handling::Assigned { by, .. } if by == "memo")
    ));
    assert_eq!(test.env.store.waiting_for_sessions(None, 9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn transfers_without_a_session_do_not_block_others() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    let terms = Terms {
        merchant: merchant.id,
        pay_to: name("blue.mugs"),
        fee_percent: engine::money::FeePercent::ZERO,
        fee_mode: engine::payment::FeeMode::Invoice,
        rate: None,
        default_lifetime: Duration::from_secs(1_800),
        grace: Duration::ZERO,
        livemode: true,
    };
    let now = test.engine().now();
    // They name older sessions, so they come first.
    let older = |number: u32| {
        let [a, b, c, d] = number.to_be_bytes();
        PaymentId::new(now.minus(Duration::from_secs(3_600)), [a, b, c, d, 0, 0, 0, 0, 0, 0])
    };
    for block in 0..20 {
        let named = (0..100).map(|number| memo_of(older(block * 100 + number)));
        test.ledger.produce(named.map(|memo| transfer("mallory", "blue.mugs", 1, &memo)).collect());
    }
    let id = PaymentId::new(now, [7; 10]);
    let payment = Payment::open(draft(), terms, id, SlugToken::from_bits(9), now).unwrap();
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, &memo_of(id))]);
    test.ledger.settle();
    let waiting = async || test.env.store.waiting_for_sessions(None, 3_000).await.unwrap().len();
    test.until("all are kept", async || waiting().await == 2_001).await;
    let write = Write::Payment { payment: Arc::new(payment), expected: None };
    test.env.store.commit(Batch::of(write)).await.unwrap();
    let begun = tokio::time::Instant::now();
    test.until_state(id, State::Completed).await;
    assert!(begun.elapsed() <= Duration::from_secs(61), "one look is enough: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refund_is_found_on_the_chain_by_its_memo_and_only_from_the_account_that_was_paid() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    let payment = test.open(&merchant).await;
    test.pay(payment.id);
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    let stored = async || test.engine().payments.any(payment.id).await.unwrap();
    test.until("both are seen", async || stored().await.transfers.len() == 2).await;
    let late = stored().await;
    let plan = late.refund_plan(&late.refunds_due(), None, None).unwrap();
    assert_eq!((plan.to.as_str(), plan.money.units), ("alice", 1_000));
    let decision = Resolution {
        kind: ResolutionKind::Refunded,
        by: "key_1".to_owned(),
        at: test.engine().now(),
        note: String::new(),
        tx_id: None,
    };
    let resolved = test.engine().payments.resolve(&merchant, payment.id, decision).await.unwrap();
    assert!(!resolved.needs_attention() && resolved.state == State::Completed);
    test.ledger.produce(vec![
        transfer("blue.mugs", "alice", 1_000, &plan.memo),
        transfer("mallory", "blue.mugs", 5, &plan.memo),
    ]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stored().await.refunds, [], "the block can still change");
    test.ledger.settle();
    test.until("the refund is found", async || stored().await.refunded_units() == 1_000).await;
    let kept = unmatched_transfers(&test, &merchant, 1).await;
    assert_eq!(kept[0].transfer.from.as_str(), "mallory", "what is sent to the shop is no refund");
    assert_eq!(stored().await.refunds_due(), []);
    assert_eq!(refund_memo_of(payment.id), plan.memo);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(test.receiver.statuses(), ["completed"], "no state changed, nothing is announced");
}
