//! Webhooks by the rules: whose turn it is, how fast, in what order, and what becomes of an endpoint that fails.

use std::time::Duration;

use actors::{After, EngineError};
use engine::{
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    ledger::memo_of,
    merchant::{Merchant, RawUpdate, Registration, Update},
    payment::State,
    time::Timestamp,
    webhook::{DeliveryState, DisableReason, EventType, Outcome, Trigger, Warning},
};
use storage::{Batch, EventRecord, Write};

use crate::{
    environment::{TestEngine, draft, transfer},
    header, store,
};

const FAILED: Outcome = Outcome::Refused { status: 500, retry_after: None };
const GONE: Outcome = Outcome::Refused { status: 410, retry_after: None };

/// Writes events as payments would, and wakes whoever sends them with one that is real.
async fn flood(test: &TestEngine, merchant: &Merchant, count: u32) {
    let now = test.engine().now();
    let batch = (0..count).map(|number| Write::Event(event(now, merchant.id, number, u128::from(number)))).collect();
    test.env.store.commit(batch).await.unwrap();
}

fn event(at: Timestamp, merchant: MerchantId, number: u32, payment: u128) -> EventRecord {
    let mut random = [0; 10];
    random[..4].copy_from_slice(&number.to_be_bytes());
    random[6..].copy_from_slice(&merchant.bits().to_be_bytes()[12..]);
    EventRecord {
        id: EventId::new(at, random),
        seq: 0,
        merchant,
        payment: PaymentId::from_bits(payment),
        kind: EventType::StatusChanged,
        deliveries: vec![(EndpointId::default_of(merchant), DeliveryId::new(at, random))],
        at,
        body: br#"{"data":{"status":"completed"}}"#.to_vec(),
        is_test: false,
    }
}

/// A merchant whose endpoint has an address of its own.
async fn merchant_at(test: &TestEngine, account: &str) -> (Merchant, String) {
    let merchant = test.merchant_of(account).await;
    let url = format!("https://{account}.example/hook");
    let raw = RawUpdate { webhook_url: Some(Some(url.clone())), ..RawUpdate::default() };
    let merchant = test.engine().merchants.update(merchant.id, Update::check(raw, false).unwrap()).await.unwrap();
    (merchant, url)
}

/// Makes a real event: a paid payment.
async fn sell(test: &TestEngine, merchant: &Merchant) -> PaymentId {
    let payment = test.engine().payments.open(merchant, draft(), None).await.unwrap().payment;
    let account = merchant.hive_account.to_string();
    test.ledger.produce(vec![transfer("alice", &account, payment.amount.units, &memo_of(payment.id))]);
    test.ledger.settle();
    test.until_state(payment.id, State::Completed).await;
    payment.id
}

fn is_one_of(id: &str, events: &[&EventRecord]) -> bool {
    events.iter().any(|event| event.id.to_string() == id)
}

fn sent_events(test: &TestEngine) -> Vec<(u64, String)> {
    let received = test.receiver.received.lock().unwrap();
    received.iter().map(|(at, request)| (*at, header(&request.headers, "webhook-id"))).collect()
}

#[tokio::test(start_paused = true)]
async fn thousands_of_one_merchant_do_not_block_others_and_at_most_eight_are_in_flight() {
    let test = TestEngine::started(store()).await;
    let ((slow, slow_url), (quick, quick_url)) =
        (merchant_at(&test, "slow.shop").await, merchant_at(&test, "quick.shop").await);
    test.receiver.hang(&slow_url);
    flood(&test, &slow, 3_000).await;
    sell(&test, &slow).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(test.receiver.most_open(&slow_url), 8);
    sell(&test, &quick).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(test.receiver.count_at(&quick_url), 1, "delivered at once");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(test.receiver.most_open(&slow_url), 8);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_silent_endpoints_do_not_block_others() {
    let test = TestEngine::started(store()).await;
    for number in 0..100 {
        let (silent, url) = merchant_at(&test, &format!("silent-{number}")).await;
        test.receiver.hang(&url);
        flood(&test, &silent, 20).await;
    }
    let (quick, quick_url) = merchant_at(&test, "quick.shop").await;
    sell(&test, &quick).await;
    test.until("it is delivered", async || test.receiver.count_at(&quick_url) == 1).await;
    let told_at = test.receiver.received.lock().unwrap().iter().find(|(_, r)| r.url == quick_url).unwrap().0;
    let now = test.env.clock.now().seconds();
    assert!(now.saturating_sub(told_at) <= 1 && test.receiver.open_in_all() <= 256);
}

#[tokio::test(start_paused = true)]
async fn ten_failures_of_the_transport_leave_one_probe_until_one_is_taken() {
    let test = TestEngine::started(store()).await;
    let (merchant, url) = merchant_at(&test, "blue.mugs").await;
    test.receiver.hang(&url);
    flood(&test, &merchant, 40).await;
    sell(&test, &merchant).await;
    // Two rounds of eight that time out after ten seconds each.
    tokio::time::sleep(Duration::from_secs(25)).await;
    let state = test.engine().webhooks.endpoint(merchant.id, EndpointId::default_of(merchant.id)).await.unwrap();
    assert!(state.health.is_breaker_open(), "{state:?}");
    test.receiver.forget_most_open();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(test.receiver.most_open(&url), 1, "one at a time");
    test.receiver.heal(&url);
    test.until("everything is delivered", async || {
        test.env.store.due_deliveries(Timestamp::MAX, 99).await.unwrap().is_empty()
    })
    .await;
    assert!(
        !test
            .engine()
            .webhooks
            .endpoint(merchant.id, EndpointId::default_of(merchant.id))
            .await
            .unwrap()
            .health
            .is_breaker_open()
    );
}

#[tokio::test(start_paused = true)]
async fn one_endpoint_gets_twenty_five_a_second() {
    let test = TestEngine::started(store()).await;
    let (merchant, url) = merchant_at(&test, "blue.mugs").await;
    flood(&test, &merchant, 199).await;
    sell(&test, &merchant).await;
    test.until("everything is delivered", async || test.receiver.count_at(&url) == 200).await;
    let at: Vec<u64> = test.receiver.received.lock().unwrap().iter().map(|(at, _)| *at).collect();
    let spread = at.iter().max().unwrap() - at.iter().min().unwrap();
    assert!((6..=9).contains(&spread), "25 at once and 25 a second: {spread} s for 200");
}

#[tokio::test(start_paused = true)]
async fn the_next_event_of_a_payment_waits_for_the_one_before_but_not_for_ever() {
    for (outcomes, order) in [
        (vec![FAILED], ["first", "first", "second"].as_slice()),
        (vec![FAILED, FAILED], ["first", "first", "second", "first"].as_slice()),
    ] {
        let test = TestEngine::started(store()).await;
        let (merchant, url) = merchant_at(&test, "blue.mugs").await;
        let (other, silent) = merchant_at(&test, "red.mugs").await;
        test.receiver.hang(&silent);
        test.receiver.outcomes.lock().unwrap().extend(outcomes);
        let now = test.engine().now();
        let (first, second) = (event(now, merchant.id, 1, 7), event(now, merchant.id, 2, 7));
        let batch = Batch::of(Write::Event(first.clone())).and(Write::Event(second.clone()));
        test.env.store.commit(batch).await.unwrap();
        // Whoever sends them is woken.
        sell(&test, &other).await;
        test.until("everything is delivered", async || test.receiver.count_at(&url) == order.len()).await;
        let sent: Vec<_> = sent_events(&test).into_iter().filter(|(_, id)| is_one_of(id, &[&first, &second])).collect();
        let names: Vec<&str> =
            sent.iter().map(|(_, id)| if *id == first.id.to_string() { "first" } else { "second" }).collect();
        assert_eq!(names, order);
        let waited = sent[2].0 - now.seconds();
        let bounds = if order.len() == 3 { 4..=10 } else { 30..=35 };
        assert!(bounds.contains(&waited), "{waited} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_gone_gets_no_more_and_what_happened_meanwhile_when_it_is_back() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let begin = test.engine().now();
    test.receiver.outcomes.lock().unwrap().push_back(GONE);
    sell(&test, &merchant).await;
    test.until("it is delivered", async || test.receiver.count() == 1).await;
    for _ in 0..3 {
        sell(&test, &merchant).await;
    }
    test.until("all is held", async || test.env.store.due_deliveries(Timestamp::MAX, 9).await.unwrap().is_empty())
        .await;
    assert_eq!(test.receiver.count(), 1, "nothing more is sent");
    let state = test.engine().webhooks.endpoint(merchant.id, EndpointId::default_of(merchant.id)).await.unwrap();
    assert!(matches!(state.health.disabled, Some((DisableReason::Gone, _))));
    let held = test.env.store.replayable(merchant.id, DeliveryId::from_bits(0), 9).await.unwrap();
    assert_eq!(held.len(), 4, "the one that was refused, too");

    // What the merchant tries out goes there all the same.
    let tried = test
        .engine()
        .webhooks
        .send_test(merchant.id, EndpointId::default_of(merchant.id), (EventType::StatusChanged, State::Completed), None)
        .await
        .unwrap()
        .logged;
    test.until("the test event is delivered", async || test.receiver.count() == 2).await;
    let (tried, attempts) = test.engine().webhooks.delivery(merchant.id, tried.delivery.id).await.unwrap();
    assert_eq!((tried.delivery.trigger, attempts.len()), (Trigger::Test, 1));
    assert!(
        !test
            .engine()
            .webhooks
            .endpoint(merchant.id, EndpointId::default_of(merchant.id))
            .await
            .unwrap()
            .health
            .is_enabled(),
        "that enables nothing"
    );

    test.engine().webhooks.enable_endpoint(merchant.id, EndpointId::default_of(merchant.id)).await.unwrap();
    let replayed = test.engine().webhooks.replay(merchant.id, None, begin).await.unwrap();
    assert_eq!((replayed.count, replayed.has_more), (4, false));
    test.until("everything is delivered", async || test.receiver.count() == 6).await;
    let mut sent: Vec<String> = sent_events(&test)[2..].iter().map(|(_, id)| id.clone()).collect();
    let mut all: Vec<String> = held.iter().map(|delivery| delivery.event.to_string()).collect();
    sent.sort();
    all.sort();
    assert_eq!(sent, all, "once each");
    assert_eq!(test.engine().webhooks.replay(merchant.id, None, begin).await.unwrap().count, 0, "and not twice");
}

#[tokio::test(start_paused = true)]
async fn five_days_of_failures_disable_an_endpoint_after_two_warnings() {
    let mut test = TestEngine::prepared(store());
    test.settings.poll_interval = Duration::from_secs(60);
    test.start().await;
    let merchant = test.merchant().await;
    test.receiver.outcomes.lock().unwrap().extend(vec![FAILED; 5_000]);
    let mut seen = Vec::new();
    for hour in (0..130).step_by(6) {
        let began = tokio::time::Instant::now();
        sell(&test, &merchant).await;
        // A minute more: the first failure comes some blocks after the first loop began.
        tokio::time::sleep_until(began + Duration::from_secs(6 * 3_600 + 60)).await;
        let state = test.engine().webhooks.endpoint(merchant.id, EndpointId::default_of(merchant.id)).await.unwrap();
        if seen.last().is_none_or(|(_, last)| *last != (state.warning, state.health.is_enabled())) {
            seen.push((hour + 6, (state.warning, state.health.is_enabled())));
        }
    }
    assert_eq!(
        seen,
        [
            (6, (None, true)),
            (24, (Some(Warning::Failing24Hours), true)),
            (72, (Some(Warning::Failing72Hours), true)),
            (120, (Some(Warning::Failing72Hours), false)),
        ]
    );
    let count = test.receiver.count();
    sell(&test, &merchant).await;
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(test.receiver.count(), count, "nothing more is sent");
    let raw = RawUpdate { webhook_url: Some(Some("https://new.example/hook".to_owned())), ..RawUpdate::default() };
    test.engine().merchants.update(merchant.id, Update::check(raw, false).unwrap()).await.unwrap();
    let state = test.engine().webhooks.endpoint(merchant.id, EndpointId::default_of(merchant.id)).await.unwrap();
    assert!(state.health.is_enabled() && state.warning.is_none(), "a new address is as good as new");
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_is_a_new_delivery_of_the_same_event_and_is_sent_once() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    sell(&test, &merchant).await;
    test.until("it is delivered", async || test.receiver.count() == 1).await;
    let query = storage::DeliveryQuery {
        merchant: merchant.id,
        before: None,
        limit: 9,
        states: vec![DeliveryState::Delivered],
        event: None,
        payment: None,
        endpoint: None,
    };
    test.until("it is written down", async || {
        test.engine().webhooks.deliveries(query.clone()).await.unwrap().items.len() == 1
    })
    .await;
    let first = test.engine().webhooks.deliveries(query).await.unwrap().items.remove(0).delivery;
    test.receiver.outcomes.lock().unwrap().push_back(FAILED);
    let again = test.engine().webhooks.redeliver(merchant.id, first.id, None).await.unwrap().logged.delivery;
    assert!(again.id != first.id && again.event == first.event);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    let received = test.receiver.received.lock().unwrap().clone();
    assert_eq!(received.len(), 2, "a failure is not repeated");
    assert_eq!(received[0].1.body, received[1].1.body);
    assert_eq!(header(&received[1].1.headers, "X-Hivetill-Delivery"), again.id.to_string());
    assert_eq!(header(&received[1].1.headers, "X-Hivetill-Attempt"), "1");
    let (again, _) = test.engine().webhooks.delivery(merchant.id, again.id).await.unwrap();
    assert_eq!((again.state, again.delivery.trigger), (DeliveryState::Failed, Trigger::Manual));
    let stranger = test.merchant_of("red.mugs").await;
    let refused = test.engine().webhooks.redeliver(stranger.id, first.id, None).await;
    assert_eq!(refused, Err(EngineError::DeliveryNotFound), "another merchant's is none");
}

#[tokio::test(start_paused = true)]
async fn events_are_deleted_after_the_retention_and_a_redelivery_is_refused() {
    let mut test = TestEngine::prepared(store());
    test.settings.poll_interval = Duration::from_secs(600);
    test.settings.event_retention = Duration::from_secs(86_400);
    test.start().await;
    let merchant = test.merchant().await;
    sell(&test, &merchant).await;
    test.until("it is delivered", async || test.receiver.count() == 1).await;
    let delivery = test.env.store.events(merchant.id, 0, 1).await.unwrap().remove(0).delivery().unwrap();
    tokio::time::sleep(Duration::from_secs(80_000)).await;
    assert_eq!(test.engine().webhooks.events(merchant.id, After::Beginning, 9).await.unwrap().events.len(), 1);
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    assert_eq!(test.engine().webhooks.events(merchant.id, After::Beginning, 9).await.unwrap().events, []);
    assert_eq!(test.engine().webhooks.redeliver(merchant.id, delivery, None).await, Err(EngineError::EventForgotten));
    let (logged, attempts) = test.engine().webhooks.delivery(merchant.id, delivery).await.unwrap();
    assert_eq!((logged.state, attempts.len()), (DeliveryState::Delivered, 1), "the log keeps the rest");
}

#[tokio::test(start_paused = true)]
async fn an_outbox_without_an_endpoint_empties_itself() {
    let test = TestEngine::started(store()).await;
    let registration = Registration::check("Blue Mugs", "blue.mugs", None).unwrap();
    let merchant = test.engine().merchants.register(registration, false).await.unwrap().merchant;
    let payment = test.engine().payments.open(&merchant, draft(), None).await.unwrap().payment;
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    test.until("the outbox is empty", async || {
        test.env.store.due_deliveries(Timestamp::MAX, 9).await.unwrap().is_empty()
    })
    .await;
    assert_eq!(test.receiver.count(), 0);
    assert_eq!(test.env.store.events(merchant.id, 0, 9).await.unwrap().len(), 1, "the event is kept all the same");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_tried_again_with_the_same_body_until_it_is_taken() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let failures = [Outcome::Connect, Outcome::Refused { status: 500, retry_after: None }, Outcome::Timeout];
    test.receiver.outcomes.lock().unwrap().extend(failures);
    test.pay(payment.id);
    test.until("it is taken", async || test.receiver.count() == 4).await;
    tokio::time::sleep(Duration::from_secs(360_000)).await;
    let received = test.receiver.received.lock().unwrap().clone();
    assert_eq!(received.len(), 4, "and then no more");
    let waits: Vec<_> = received.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    for (wait, expected) in waits.iter().zip([5, 300, 1_800]) {
        // The engine's time may be one block ahead of the receiver's clock.
        assert!((expected * 8 / 10..=expected * 12 / 10 + 4).contains(wait), "{waits:?}");
    }
    let first = &received[0].1;
    for (number, (_, request)) in received.iter().enumerate() {
        assert_eq!(request.body, first.body);
        assert_eq!(header(&request.headers, "webhook-id"), header(&first.headers, "webhook-id"));
        assert_eq!(header(&request.headers, "X-Hivetill-Attempt"), (number + 1).to_string());
    }
    assert_ne!(header(&received[3].1.headers, "X-Hivetill-Signature"), header(&first.headers, "X-Hivetill-Signature"));
    let event = test.env.store.events(merchant.id, 0, 1).await.unwrap().remove(0);
    let words: Vec<_> = test.env.store.attempts(event.id).await.unwrap().iter().map(|a| a.outcome.as_str()).collect();
    assert_eq!(words, ["connect", "http_error", "timeout", "success"]);
}
