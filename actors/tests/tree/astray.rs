//! Money that went astray, in a living tree: assigned by hand, attached when its session appears, sent back.

use super::*;
use std::sync::Arc;

use engine::{
    ids::{PaymentId, SlugToken},
    ledger::{ChainPosition, refund_memo_of},
    merchant::Merchant,
    payment::{Payment, Resolution, ResolutionKind, Route, Terms},
};
use storage::{Handling, Unmatched};

async fn strays(world: &World, merchant: &Merchant, count: usize) -> Vec<Unmatched> {
    let list = async || world.engine().payments.unmatched(merchant, None, 100).await.unwrap().rows;
    world.until("the strays are kept", async || list().await.len() == count).await;
    list().await
}

async fn assign(
    world: &World,
    merchant: &Merchant,
    place: ChainPosition,
    id: PaymentId,
) -> Result<Arc<Payment>, EngineError> {
    world.engine().payments.assign(merchant, place, id, "key_1".to_owned()).await
}

#[tokio::test(start_paused = true)]
async fn an_assigned_transfer_completes_its_session_once_however_many_assign_it_at_once() {
    let world = World::started(store()).await;
    let merchant = world.owner().await;
    let (paid, other) = (world.open(&merchant).await, world.open(&merchant).await);
    world.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, "thanks")]);
    world.ledger.settle();
    let place = strays(&world, &merchant, 1).await[0].transfer.position;
    let likely = world.engine().payments.candidates(&merchant, place).await.unwrap();
    assert_eq!(likely.iter().map(|c| c.payment.id).collect::<Vec<_>>(), [other.id, paid.id]);
    assert!(likely.iter().all(|c| c.is_same_amount && c.is_on_time && !c.is_same_payer));
    let attempts = (0..20).map(|n| assign(&world, &merchant, place, if n % 2 == 0 { paid.id } else { other.id }));
    let answers = futures_util::future::join_all(attempts).await;
    let winners: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).map(|p| p.id).collect();
    let first = winners[0];
    let loser = if first == paid.id { other.id } else { paid.id };
    assert_eq!(winners, [first; 10], "every caller who named the winner is told of it");
    assert!(answers.iter().flat_map(|a| a.as_ref().err()).all(|e| *e == EngineError::TransferAssigned(first)));
    world.until_state(first, State::Completed).await;
    assert_eq!(world.state(loser).await, State::Pending);
    let payment = world.engine().payments.any(first).await.unwrap();
    assert_eq!((payment.transfers.len(), payment.transfers[0].route), (1, Route::Manual));
    world.until("the webhook is out", async || world.receiver.count() == 1).await;
    let kept = &strays(&world, &merchant, 1).await[0];
    assert!(matches!(&kept.handling, Handling::Assigned { payment, by, .. } if *payment == first && by == "key_1"));
    let ignored = world.engine().payments.ignore(&merchant, place, "key_1".to_owned(), String::new()).await;
    assert_eq!(ignored.err(), Some(EngineError::TransferAssigned(first)));
}

#[tokio::test(start_paused = true)]
async fn an_ignored_transfer_may_be_assigned_and_one_to_another_account_may_not() {
    let mut world = World::prepared(store());
    world.settings.account_change_wait = Duration::ZERO;
    world.start().await;
    let merchant = world.owner().await;
    let stranger = world.owner_of("red.mugs").await;
    let payment = world.open(&merchant).await;
    world.ledger.produce_at(payment.expires_at.seconds() + 3, vec![transfer("alice", "blue.mugs", 1_000, "")]);
    world.ledger.settle();
    let place = strays(&world, &merchant, 1).await[0].transfer.position;
    world.engine().payments.ignore(&merchant, place, "key_1".to_owned(), "a gift".to_owned()).await.unwrap();
    assert_eq!(assign(&world, &stranger, place, payment.id).await, Err(EngineError::PaymentNotFound));
    let theirs = world.open(&stranger).await;
    assert_eq!(assign(&world, &stranger, place, theirs.id).await, Err(EngineError::TransferNotFound));
    world.until_state(payment.id, State::SystemCancelled).await;
    let late = assign(&world, &merchant, place, payment.id).await.unwrap();
    assert_eq!((late.state, late.late_units()), (State::SystemCancelled, 1_000));
    // After a change of account the old session can still be given its money.
    let old = world.open(&merchant).await;
    world.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, "again")]);
    world.ledger.settle();
    let place = strays(&world, &merchant, 2).await[0].transfer.position;
    let update = engine::merchant::Update { hive_account: Some(name("new.mugs")), ..Default::default() };
    world.engine().merchants.update(merchant.id, update).await.unwrap();
    world.engine().merchants.vouch_for(merchant.id, Some(name("new.mugs"))).await.unwrap();
    let read = async || (*world.engine().merchants.get(merchant.id).await.unwrap()).clone();
    world.until("the change takes effect", async || read().await.hive_account == name("new.mugs")).await;
    let moved = read().await;
    assert_eq!(assign(&world, &moved, place, old.id).await.unwrap().state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_came_before_its_session_is_attached_when_the_session_appears() {
    let world = World::started(store()).await;
    let merchant = world.owner().await;
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
    let now = world.engine().now();
    let id = PaymentId::new(now, [7; 10]);
    let payment = Payment::open(draft(), terms, id, SlugToken::from_bits(9), now).unwrap();
    let loud = memo_of(payment.id).to_uppercase();
    let transfers = [400, 600].map(|units| transfer("alice", "blue.mugs", units, &loud));
    world.ledger.produce(transfers.to_vec());
    world.ledger.settle();
    let kept = strays(&world, &merchant, 2).await;
    assert!(kept.iter().all(|stray| stray.reason == UnmatchedReason::UnknownSession));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let write = Write::Payment { payment: Arc::new(payment.clone()), expected: None };
    world.env.store.commit(Batch::of(write)).await.unwrap();
    world.until_state(payment.id, State::Completed).await;
    let paid = world.engine().payments.any(payment.id).await.unwrap();
    assert_eq!((paid.transfers.len(), paid.exceptions().len()), (2, 0), "nobody had a hand in it");
    assert!(paid.transfers.iter().all(|credit| credit.route == Route::Wallet && credit.memo_normalized));
    let kept = strays(&world, &merchant, 2).await;
    assert!(kept.iter().all(|stray| matches!(&stray.handling, Handling::Assigned { by, .. } if by == "memo")));
    assert_eq!(world.env.store.waiting_for_sessions(None, 9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn transfers_that_wait_in_vain_hold_up_nobody_elses() {
    let world = World::started(store()).await;
    let merchant = world.owner().await;
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
    let now = world.engine().now();
    // They name older sessions, so they come first.
    let older = |number: u32| {
        let [a, b, c, d] = number.to_be_bytes();
        PaymentId::new(now.minus(Duration::from_secs(3_600)), [a, b, c, d, 0, 0, 0, 0, 0, 0])
    };
    for block in 0..20 {
        let named = (0..100).map(|number| memo_of(older(block * 100 + number)));
        world.ledger.produce(named.map(|memo| transfer("mallory", "blue.mugs", 1, &memo)).collect());
    }
    let id = PaymentId::new(now, [7; 10]);
    let payment = Payment::open(draft(), terms, id, SlugToken::from_bits(9), now).unwrap();
    world.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, &memo_of(id))]);
    world.ledger.settle();
    let waiting = async || world.env.store.waiting_for_sessions(None, 3_000).await.unwrap().len();
    world.until("all are kept", async || waiting().await == 2_001).await;
    let write = Write::Payment { payment: Arc::new(payment), expected: None };
    world.env.store.commit(Batch::of(write)).await.unwrap();
    let begun = tokio::time::Instant::now();
    world.until_state(id, State::Completed).await;
    assert!(begun.elapsed() <= Duration::from_secs(61), "one look is enough: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refund_is_found_on_the_chain_by_its_memo_and_only_from_the_account_that_was_paid() {
    let world = World::started(store()).await;
    let merchant = world.owner().await;
    let payment = world.open(&merchant).await;
    world.pay(payment.id);
    world.pay(payment.id);
    world.until_state(payment.id, State::Completed).await;
    let stored = async || world.engine().payments.any(payment.id).await.unwrap();
    world.until("both are seen", async || stored().await.transfers.len() == 2).await;
    let late = stored().await;
    let plan = late.refund_plan(&late.refunds_due(), None, None).unwrap();
    assert_eq!((plan.to.as_str(), plan.money.units), ("alice", 1_000));
    let decision = Resolution {
        kind: ResolutionKind::Refunded,
        by: "key_1".to_owned(),
        at: world.engine().now(),
        note: String::new(),
        tx_id: None,
    };
    let resolved = world.engine().payments.resolve(&merchant, payment.id, decision).await.unwrap();
    assert!(!resolved.needs_attention() && resolved.state == State::Completed);
    world.ledger.produce(vec![
        transfer("blue.mugs", "alice", 1_000, &plan.memo),
        transfer("mallory", "blue.mugs", 5, &plan.memo),
    ]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stored().await.refunds, [], "the block can still change");
    world.ledger.settle();
    world.until("the refund is found", async || stored().await.refunded_units() == 1_000).await;
    let kept = strays(&world, &merchant, 1).await;
    assert_eq!(kept[0].transfer.from.as_str(), "mallory", "what is sent to the shop is no refund");
    assert_eq!(stored().await.refunds_due(), []);
    assert_eq!(refund_memo_of(payment.id), plan.memo);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.receiver.statuses(), ["completed"], "no state changed, nothing is announced");
}
