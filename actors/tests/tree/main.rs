//! The whole tree over a real store, a scripted ledger and a paused clock.

mod alarms;
mod attacks;
mod audit;
mod billing;
mod cancelling;
mod clock;
mod compliance;
mod connection;
mod engines;
mod environment;
mod facilitated;
mod faulty_store;
mod housekeeping;
mod nodes;
mod outages;
mod ownership;
mod receipts;
mod reconciliation;
mod replays;
mod restarting;
mod sales;
mod unmatched;
mod webhooks;
mod x402;

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use actors::{EngineError, StartError, Tree};
use connection::Connection;
use engine::{
    hive::ChainId,
    idempotency::IdempotencyKey,
    ledger::memo_of,
    merchant::Registration,
    payment::{Canceller, Draft, Finality, Rejection, State},
};
use environment::{BEGIN, TestEngine, draft, name, transfer};
use faulty_store::FaultyStore;
use redb::backends::InMemoryBackend;
use storage::{
    Batch, CommitError, CommitMode, EmbeddedStore, Options, PaymentQuery, Store, UnmatchedReason, Vault, Write,
};

pub(crate) fn store() -> Arc<dyn Store> {
    let options = Options { mode: CommitMode::Inline, ..Options::default() };
    Arc::new(
        EmbeddedStore::open_backends(
            InMemoryBackend::new(),
            [(); 2].map(|()| InMemoryBackend::new()),
            options,
            Vault::default(),
        )
        .unwrap(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_transfer_in_an_irreversible_block_completes_its_session_and_is_notified_once() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    test.until("the webhook is out", async || test.receiver.count() == 1).await;
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    assert_eq!(test.receiver.statuses(), ["completed"]);
    let (_, request) = test.receiver.received.lock().unwrap()[0].clone();
    assert_eq!(request.url, "https://shop.example/hook");
    let again = merchant.secrets.sign(engine::ids::EventId::from_bits(0), &request.body, test.env.clock.now());
    assert_ne!(again.legacy, header(&request.headers, "X-Hivetill-Signature"), "signed for its own time and id");
    assert!(header(&request.headers, "webhook-id").starts_with("evt_"));
}

pub(crate) fn header(headers: &[(String, String)], wanted: &str) -> String {
    headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_reversible_transfer_is_shown_and_refuses_a_cancel_and_a_fork_takes_it_back() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id))]);
    let seen = async |finality| {
        let payment = test.engine().payments.any(payment.id).await.unwrap();
        payment.transfers.first().is_some_and(|credit| credit.finality == finality)
    };
    test.until("it is seen", async || seen(Finality::Reversible).await).await;
    assert_eq!(test.state(payment.id).await, State::Pending);
    let refused = test.engine().payments.cancel_checkout(payment.id).await;
    assert_eq!(refused, Err(EngineError::Rejected(Rejection::Detected { id: payment.id })));
    test.ledger.fork(1);
    test.ledger.produce(Vec::new());
    test.ledger.produce(Vec::new());
    test.until("it is gone", async || seen(Finality::Orphaned).await).await;
    let cancelling = test.engine().payments.cancel_checkout(payment.id).await.unwrap();
    assert_eq!((cancelling.state, cancelling.pending_cancellation().is_some()), (State::Pending, true));
    let again = test.engine().payments.cancel(merchant.id, payment.id).await.unwrap();
    assert_eq!(again, cancelling, "cancelling twice is cancelling once, for whoever asked first");
    test.ledger.settle();
    test.ledger.produce_at(cancelling.due_at().seconds() + 3, Vec::new());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(test.state(payment.id).await, State::Pending, "the block that decides can still change");
    test.ledger.settle();
    test.until_state(payment.id, State::UserCancelled).await;
    let after = test.engine().payments.cancel_checkout(payment.id).await.unwrap();
    assert_eq!(after.cancellation.unwrap().by, Canceller::Customer);
    test.until("it is delivered", async || test.receiver.count() == 1).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(test.receiver.statuses(), ["user_cancelled"], "one webhook, at the decision");
}

#[tokio::test(start_paused = true)]
async fn a_session_expires_by_the_ledgers_time_not_by_ours() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    tokio::time::sleep(Duration::from_secs(4_000)).await;
    assert_eq!(test.state(payment.id).await, State::Pending, "no block is later than the expiry");
    assert!(payment.is_expired(test.engine().now()));
    let refused = test.engine().payments.cancel_checkout(payment.id).await;
    assert_eq!(refused, Err(EngineError::Rejected(Rejection::Expired { id: payment.id })));
    // The customer paid in time; the block comes to us late.
    test.ledger.produce_at(BEGIN + 1_799, vec![transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id))]);
    test.ledger.produce_at(BEGIN + 4_000, Vec::new());
    test.ledger.settle();
    test.until_state(payment.id, State::Completed).await;
    let other = test.open(&merchant).await;
    test.ledger.produce_at(other.expires_at.seconds() + 1, Vec::new());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(test.state(other.id).await, State::Pending, "the block can still change");
    test.ledger.settle();
    test.until_state(other.id, State::SystemCancelled).await;
    test.until("both are delivered", async || test.receiver.statuses() == ["completed", "system_cancelled"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_panics_is_reborn_from_its_snapshot() {
    for point in ["payment: applied, not committed", "payment: committed, effects not run"] {
        let test = TestEngine::started(store()).await;
        let merchant = test.merchant().await;
        let payment = test.open(&merchant).await;
        test.trap.arm(point, 1);
        test.pay(payment.id);
        test.until_state(payment.id, State::Completed).await;
        test.until("the webhook is out", async || test.receiver.count() == 1).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(test.receiver.statuses(), ["completed"], "{point}");
        let payment = test.engine().payments.any(payment.id).await.unwrap();
        assert_eq!((payment.transfers.len(), payment.paid_units()), (1, 1_000), "{point}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crashing_scanner_webhook_worker_or_creation_loses_nothing() {
    let points = [
        "scanner: credited, cursor not moved",
        "webhook: signed, not sent",
        "webhook: sent, not recorded",
        "gateway: created, not adopted",
    ];
    for point in points {
        let test = TestEngine::started(store()).await;
        let merchant = test.merchant().await;
        let early = test.open(&merchant).await;
        test.trap.arm(point, 1);
        let engine = test.engine();
        let (for_task, of) = (engine.clone(), merchant.clone());
        // A panic in the caller's own task is the caller's crash.
        let _ = tokio::spawn(async move { for_task.payments.open(&of, draft(), None).await }).await;
        test.pay(early.id);
        test.until_state(early.id, State::Completed).await;
        test.until("it is delivered", async || test.receiver.count() >= 1).await;
        let all = test.engine().payments.list(PaymentQuery::all(merchant.id, 10)).await.unwrap();
        for payment in all.items.iter().filter(|payment| payment.id != early.id) {
            test.pay(payment.id);
            test.until_state(payment.id, State::Completed).await;
        }
        let alike = test.receiver.received.lock().unwrap().iter().map(|(_, r)| r.body.clone()).collect::<Vec<_>>();
        assert!(alike.windows(2).all(|pair| pair[0] != pair[1] || point.contains("not recorded")), "{point}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_from_the_cursor_and_misses_nothing() {
    let mut test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payments = [test.open(&merchant).await, test.open(&merchant).await, test.open(&merchant).await];
    test.pay(payments[0].id);
    test.until_state(payments[0].id, State::Completed).await;
    test.stop().await;
    test.pay(payments[1].id);
    for _ in 0..250 {
        test.ledger.produce(Vec::new());
    }
    test.pay(payments[2].id);
    test.start().await;
    test.until_state(payments[1].id, State::Completed).await;
    test.until_state(payments[2].id, State::Completed).await;
    test.until("each is delivered", async || test.receiver.count() == 3).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(test.receiver.count(), 3, "and delivered once");
}

#[tokio::test(start_paused = true)]
async fn passivated_sessions_are_paid_expired_and_cancelled_like_any_other() {
    let mut test = TestEngine::prepared(store());
    test.settings.max_active = 3;
    test.start().await;
    let merchant = test.merchant().await;
    let mut payments = Vec::new();
    for _ in 0..40 {
        payments.push(test.open(&merchant).await);
    }
    test.until("the rest is parked", async || test.engine().operations.health().await.unwrap().active <= 3).await;
    let transfers = payments[..20].iter().map(|p| transfer("alice", "blue.mugs", 1_000, &memo_of(p.id))).collect();
    test.ledger.produce(transfers);
    test.ledger.settle();
    for payment in &payments[..20] {
        test.until_state(payment.id, State::Completed).await;
    }
    test.engine().payments.cancel(merchant.id, payments[20].id).await.unwrap();
    test.ledger.produce_at(BEGIN + 1_000, Vec::new());
    test.ledger.settle();
    test.until_state(payments[20].id, State::UserCancelled).await;
    test.ledger.produce_at(BEGIN + 10_000, Vec::new());
    test.ledger.settle();
    for payment in &payments[21..] {
        test.until_state(payment.id, State::SystemCancelled).await;
    }
    test.until("nobody stays awake for nothing", async || test.engine().operations.health().await.unwrap().active == 0)
        .await;
    test.until("all are delivered", async || test.receiver.count() == 40).await;
}

#[tokio::test(start_paused = true)]
async fn orders_that_meet_a_session_on_its_way_to_sleep_wake_it_again() {
    let mut test = TestEngine::prepared(store());
    test.settings.max_active = 1;
    test.start().await;
    let merchant = test.merchant().await;
    let (a, b) = (test.open(&merchant).await, test.open(&merchant).await);
    // Every order wakes one and parks the other; none may be lost on the way.
    let engine = test.engine();
    let mut responses = Vec::new();
    for n in 0..50 {
        let (engine, merchant, id) = (engine.clone(), merchant.id, if n % 2 == 0 { a.id } else { b.id });
        responses.push(tokio::spawn(async move { engine.payments.cancel(merchant, id).await }));
    }
    for response in responses {
        assert!(response.await.unwrap().unwrap().pending_cancellation().is_some());
    }
    test.ledger.produce_at(BEGIN + 1_000, Vec::new());
    test.ledger.settle();
    test.until("each is delivered once", async || test.receiver.count() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_expiries_wakes_a_few_at_a_time() {
    let mut test = TestEngine::prepared(store());
    test.settings.max_active = 50;
    test.start().await;
    let merchant = test.merchant().await;
    let mut last = None;
    for _ in 0..1_000 {
        last = Some(test.open(&merchant).await);
    }
    test.ledger.produce_at(BEGIN + 10_000, Vec::new());
    test.ledger.settle();
    test.until_state(last.unwrap().id, State::SystemCancelled).await;
    let mut query = PaymentQuery::all(merchant.id, 1);
    query.states = vec![State::SystemCancelled];
    test.until("all are expired", async || test.engine().payments.list(query.clone()).await.unwrap().total == 1_000)
        .await;
}

#[tokio::test(start_paused = true)]
async fn two_engines_over_one_store_complete_a_session_once() {
    let store: Arc<dyn Store> = Connection::to(&store());
    let one = TestEngine::started(Arc::clone(&store)).await;
    let mut two = TestEngine::prepared(Arc::clone(&store));
    // The same ledger and the same receiver, other ids.
    two.env = actors::Environment { entropy: Arc::new(counting_entropy(99)), ..one.env.clone() };
    two.ledger = Arc::clone(&one.ledger);
    two.receiver = Arc::clone(&one.receiver);
    two.start().await;
    let merchant = one.merchant().await;
    let payments = [one.open(&merchant).await, two.open(&merchant).await, one.open(&merchant).await];
    let transfers = payments.iter().map(|p| transfer("alice", "blue.mugs", 1_000, &memo_of(p.id))).collect();
    one.ledger.produce(transfers);
    one.ledger.settle();
    for payment in &payments {
        one.until_state(payment.id, State::Completed).await;
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    let events = store.events(merchant.id, 0, 10).await.unwrap();
    assert_eq!(events.len(), 3, "one event for each");
    let ids: std::collections::BTreeSet<_> =
        one.receiver.received.lock().unwrap().iter().map(|(_, r)| header(&r.headers, "webhook-id")).collect();
    assert_eq!(ids.len(), 3);
}

fn counting_entropy(seed: u64) -> impl actors::environment::Entropy {
    struct Counting(Mutex<u64>);
    impl actors::environment::Entropy for Counting {
        fn fill(&self, out: &mut [u8]) {
            let mut state = self.0.lock().unwrap();
            for byte in out {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = state.to_be_bytes()[0];
            }
        }
    }
    Counting(Mutex::new(seed))
}

#[tokio::test(start_paused = true)]
async fn money_that_names_no_session_is_kept_for_its_merchant() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let unknown = memo_of(engine::ids::PaymentId::from_bits(1));
    let twice = format!("{} {}", memo_of(payment.id), unknown);
    let elsewhere = test.merchant_of("red.mugs").await;
    test.ledger.produce(vec![
        transfer("alice", "blue.mugs", 1, "thanks"),
        transfer("alice", "blue.mugs", 2, &unknown),
        transfer("alice", "blue.mugs", 3, &twice),
        transfer("alice", "blue.mugs", 4, "#encrypted"),
        transfer("alice", "red.mugs", 5, &memo_of(payment.id)),
        transfer("alice", "somebody", 6, "thanks"),
    ]);
    test.ledger.settle();
    let kept = async |account: &str| test.env.store.unmatched(name(account), 10).await.unwrap();
    test.until("they are kept", async || kept("blue.mugs").await.len() == 4).await;
    let mut reasons: Vec<_> = kept("blue.mugs").await.into_iter().map(|u| (u.transfer.money.units, u.reason)).collect();
    reasons.sort_by_key(|(units, _)| *units);
    let wanted = [
        (1, UnmatchedReason::NoSession),
        (2, UnmatchedReason::UnknownSession),
        (3, UnmatchedReason::AmbiguousMemo),
        (4, UnmatchedReason::EncryptedMemo),
    ];
    assert_eq!(reasons, wanted);
    assert_eq!(kept("red.mugs").await[0].reason, UnmatchedReason::OtherAccount);
    assert!(kept("somebody").await.is_empty(), "it is nobody's here");
    assert_eq!((test.state(payment.id).await, elsewhere.hive_account), (State::Pending, name("red.mugs")));
}

#[tokio::test(start_paused = true)]
async fn money_that_comes_by_no_transfer_is_kept_for_its_merchant_and_pays_no_session() {
    let mut test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let memo = memo_of(payment.id);
    let kept = async |test: &TestEngine| test.env.store.unmatched(name("blue.mugs"), 10).await.unwrap();
    test.ledger.keeps_history(false);
    test.ledger.produce(vec![]);
    test.ledger.pay_otherwise(transfer("alice", "blue.mugs", 5, &memo), transfer("bob", "blue.mugs", 6, ""));
    test.ledger.settle();
    test.until("the escrow is seen", async || kept(&test).await.len() == 1).await;
    test.ledger.produce(vec![]);
    test.ledger.pay_otherwise(transfer("alice", "somebody", 7, &memo), transfer("bob", "somebody", 8, ""));
    test.ledger.settle();
    // Nobody kept account history; the engine is restarted before somebody does.
    test.tree.take().unwrap().stop().await;
    test.ledger.keeps_history(true);
    test.start().await;
    test.until("what came by itself is seen", async || kept(&test).await.len() == 2).await;
    let mut amounts: Vec<_> = kept(&test).await.iter().map(|u| (u.transfer.money.units, u.reason)).collect();
    amounts.sort_by_key(|(units, _)| *units);
    let reason = UnmatchedReason::UnsupportedOperation;
    assert_eq!(amounts, [(5, reason), (6, reason)]);
    assert_eq!(test.state(payment.id).await, State::Pending);
    assert!(test.env.store.unmatched(name("somebody"), 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_a_session_receives_every_change_and_then_the_end() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let mut watch = test.engine().payments.watch(payment.id).await.unwrap();
    assert_eq!(watch.next().await.unwrap(), payment);
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, &memo_of(payment.id))]);
    let seen = watch.next().await.unwrap();
    assert_eq!((seen.state, seen.seen_units()), (State::Pending, 1_000));
    test.ledger.settle();
    assert_eq!(watch.next().await.unwrap().state, State::Completed);
    assert_eq!(watch.next().await, None);
    let mut late = test.engine().payments.watch(payment.id).await.unwrap();
    assert_eq!(late.next().await.unwrap().state, State::Completed);
    assert_eq!(late.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_store_of_another_chain_is_refused() {
    let store = store();
    let mut test = TestEngine::started(Arc::clone(&store)).await;
    test.stop().await;
    let settings = actors::Settings { chain_id: ChainId::ZERO, ..test.settings.clone() };
    let refused = Tree::start(test.env.clone(), settings).await;
    assert!(matches!(refused, Err(StartError::WrongStore { .. })));
    let fresh = TestEngine::prepared(self::store());
    let settings = actors::Settings { chain_id: ChainId::ZERO, ..fresh.settings.clone() };
    let refused = Tree::start(fresh.env.clone(), settings).await;
    assert!(matches!(refused, Err(StartError::WrongNode(_))));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_good_until_it_is_replaced_and_its_use_is_noted_to_the_minute() {
    let test = TestEngine::started(store()).await;
    let registration = Registration::check("Blue Mugs", "blue.mugs", None).unwrap();
    let registered = test.engine().merchants.register(registration, false).await.unwrap();
    let id = registered.merchant.id;
    assert_eq!(test.engine().merchants.authenticate(&registered.api_key).await.unwrap().id, id);
    let noted = async || test.engine().merchants.get(id).await.unwrap().keys[0].last_used_at;
    test.until("its use is noted", async || noted().await.is_some()).await;
    let (_, new_key) = test.engine().merchants.reissue_api_key(id).await.unwrap();
    assert_eq!(test.engine().merchants.authenticate(&registered.api_key).await, Err(EngineError::Unauthenticated));
    assert_eq!(test.engine().merchants.authenticate(&new_key).await.unwrap().id, id);
    for bad in ["", "sk_live_", "nonsense", &new_key.to_uppercase()] {
        assert_eq!(test.engine().merchants.authenticate(bad).await, Err(EngineError::Unauthenticated), "{bad:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_error_of_an_actor_without_a_caller_stops_the_engine() {
    let failing = FaultyStore::over(store());
    let test = TestEngine::started(Arc::clone(&failing) as Arc<dyn Store>).await;
    failing.fail_to_read();
    let failed = tokio::time::timeout(Duration::from_secs(3_600), test.tree.as_ref().unwrap().failed()).await;
    let why = failed.expect("the engine goes on without its scanner");
    assert!(why.contains("the disk is gone"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_ends_the_engine() {
    let failing = FaultyStore::over(store());
    let test = TestEngine::started(Arc::clone(&failing) as Arc<dyn Store>).await;
    let merchant = test.merchant().await;
    let (payment, agents) = (test.open(&merchant).await, test.open(&merchant).await);
    // An agent waits for an outcome that can come in no time of this life.
    test.ledger.set_manner(environment::Manner::SwallowsEverything);
    let transaction = x402::payment_of(&test, &agents, "agent");
    let waiting = x402::settling(&test, x402::request(agents.id, &transaction, "n-1"));
    x402::until_broadcast(&test, &transaction).await;
    failing.fail();
    test.pay(payment.id);
    let why = test.tree.as_ref().unwrap().failed().await;
    assert!(why.contains("the disk is gone"), "{why}");
    let since = tokio::time::Instant::now();
    assert_eq!(waiting.await.unwrap(), Err(actors::X402Error::Unavailable(EngineError::StoreFailed)));
    assert!(since.elapsed() < Duration::from_secs(1), "who waits would hold up the next start: {:?}", since.elapsed());
    assert_eq!(test.state(payment.id).await, State::Pending, "nothing is delivered that is not on disk");
    assert_eq!(test.receiver.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_lives_the_same_life() {
    async fn life() -> (Vec<&'static str>, Vec<Vec<u8>>) {
        let mut test = TestEngine::prepared(store());
        test.settings.max_active = 4;
        test.start().await;
        let merchant = test.merchant().await;
        let mut payments = Vec::new();
        for n in 0..30u64 {
            payments.push(test.open(&merchant).await);
            tokio::time::sleep(Duration::from_millis(137 * n)).await;
        }
        for (n, payment) in payments.iter().enumerate() {
            match n % 3 {
                0 => test.pay(payment.id),
                1 => drop(test.engine().payments.cancel_checkout(payment.id).await),
                _ => {}
            }
        }
        test.ledger.produce_at(BEGIN + 9_000, Vec::new());
        test.ledger.settle();
        test.until("all are delivered", async || test.receiver.count() == 30).await;
        let bodies = test.receiver.received.lock().unwrap().iter().map(|(_, r)| r.body.clone()).collect();
        let reached = test.trap.reached.lock().unwrap().clone();
        (reached, bodies)
    }
    assert_eq!(life().await, life().await);
}

#[tokio::test(start_paused = true)]
async fn one_idempotency_key_opens_one_session_for_a_day() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let key = IdempotencyKey::parse("order-1").unwrap();
    let open = async |draft| {
        let (engine, merchant, key) = (test.engine(), merchant.clone(), key.clone());
        tokio::spawn(async move { engine.payments.open(&merchant, draft, Some(&key)).await }).await.unwrap()
    };
    let responses = futures_util::future::join_all((0..50).map(|_| open(draft()))).await;
    let first = responses[0].as_ref().unwrap().payment.clone();
    assert!(responses.iter().all(|response| response.as_ref().unwrap().payment.id == first.id));
    assert_eq!(responses.iter().filter(|response| !response.as_ref().unwrap().is_replay).count(), 1);
    let other = Draft { description: "Red mug".to_owned(), ..draft() };
    assert_eq!(open(other.clone()).await, Err(EngineError::KeyReused));
    assert_eq!(test.engine().payments.list(PaymentQuery::all(merchant.id, 9)).await.unwrap().total, 1);
    let stranger = test.merchant_of("red.mugs").await;
    let theirs = test.engine().payments.open(&stranger, draft(), Some(&key)).await.unwrap();
    assert!(!theirs.is_replay, "a key is its merchant's own");
    tokio::time::sleep(Duration::from_secs(24 * 3_600 + 600)).await;
    let again = open(other).await.unwrap();
    assert!(!again.is_replay && again.payment.id != first.id, "after a day the key is free");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_another_engine_moved_is_taken_over() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let stored = test.env.store.cursor().await.unwrap().unwrap();
    // Somebody else read on to the same block and stored it first.
    let cursor = storage::Cursor { time: engine::time::Timestamp::from_seconds(BEGIN + 1), ..stored };
    test.env.store.commit(Batch::of(Write::Cursor { cursor, expected: Some(stored) })).await.unwrap();
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    test.until("the cursor moves on", async || test.env.store.cursor().await.unwrap().unwrap().block_id.number() == 2)
        .await;
}
