//! Webhooks by the rules: whose turn it is, how fast, in what order, and what becomes of an endpoint that fails.

use std::time::Duration;

use actors::{After, EngineError};
use engine::{
    ids::{DeliveryId, EventId, MerchantId, PaymentId},
    ledger::memo_of,
    merchant::{Merchant, RawUpdate, Registration, Update},
    payment::State,
    time::Timestamp,
    webhook::{DeliveryState, DisableReason, EventType, Outcome, Trigger, Warning},
};
use storage::{Batch, EventRecord, Write};

use crate::{
    header, store,
    world::{World, draft, transfer},
};

const FAILED: Outcome = Outcome::Refused { status: 500, retry_after: None };
const GONE: Outcome = Outcome::Refused { status: 410, retry_after: None };

/// Writes events as payments would, and wakes whoever sends them with one that is real.
async fn flood(world: &World, merchant: &Merchant, count: u32) {
    let now = world.engine().now();
    let batch = (0..count).map(|number| Write::Event(event(now, merchant.id, number, u128::from(number)))).collect();
    world.env.store.commit(batch).await.unwrap();
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
        delivery: Some(DeliveryId::new(at, random)),
        at,
        body: br#"{"data":{"status":"completed"}}"#.to_vec(),
        is_test: false,
    }
}

/// A merchant whose endpoint has an address of its own.
async fn merchant_at(world: &World, account: &str) -> (Merchant, String) {
    let merchant = world.merchant_of(account).await;
    let url = format!("https://{account}.example/hook");
    let raw = RawUpdate { webhook_url: Some(Some(url.clone())), ..RawUpdate::default() };
    let merchant = world.engine().merchants.update(merchant.id, Update::check(raw, false).unwrap()).await.unwrap();
    (merchant, url)
}

/// Makes a real event: a paid payment.
async fn sell(world: &World, merchant: &Merchant) -> PaymentId {
    let payment = world.engine().payments.open(merchant, draft(), None).await.unwrap().payment;
    let account = merchant.hive_account.to_string();
    world.ledger.produce(vec![transfer("alice", &account, payment.amount.units, &memo_of(payment.id))]);
    world.ledger.settle();
    world.until_state(payment.id, State::Completed).await;
    payment.id
}

fn is_one_of(id: &str, events: &[&EventRecord]) -> bool {
    events.iter().any(|event| event.id.to_string() == id)
}

fn events_told(world: &World) -> Vec<(u64, String)> {
    let received = world.receiver.received.lock().unwrap();
    received.iter().map(|(at, request)| (*at, header(&request.headers, "webhook-id"))).collect()
}

#[tokio::test(start_paused = true)]
async fn one_merchants_thousands_hold_up_nobody_and_never_more_than_eight_are_out() {
    let world = World::started(store()).await;
    let ((slow, slow_url), (quick, quick_url)) =
        (merchant_at(&world, "slow.shop").await, merchant_at(&world, "quick.shop").await);
    world.receiver.hang(&slow_url);
    flood(&world, &slow, 3_000).await;
    sell(&world, &slow).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.receiver.most_open(&slow_url), 8);
    sell(&world, &quick).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.receiver.count_at(&quick_url), 1, "told at once");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.receiver.most_open(&slow_url), 8);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_silent_endpoints_hold_up_nobody() {
    let world = World::started(store()).await;
    for number in 0..100 {
        let (silent, url) = merchant_at(&world, &format!("silent-{number}")).await;
        world.receiver.hang(&url);
        flood(&world, &silent, 20).await;
    }
    let (quick, quick_url) = merchant_at(&world, "quick.shop").await;
    sell(&world, &quick).await;
    world.until("it is told", async || world.receiver.count_at(&quick_url) == 1).await;
    let told_at = world.receiver.received.lock().unwrap().iter().find(|(_, r)| r.url == quick_url).unwrap().0;
    let now = world.env.clock.now().seconds();
    assert!(now.saturating_sub(told_at) <= 1 && world.receiver.open_in_all() <= 256);
}

#[tokio::test(start_paused = true)]
async fn ten_failures_of_the_transport_leave_one_probe_until_one_is_taken() {
    let world = World::started(store()).await;
    let (merchant, url) = merchant_at(&world, "blue.mugs").await;
    world.receiver.hang(&url);
    flood(&world, &merchant, 40).await;
    sell(&world, &merchant).await;
    // Two rounds of eight that time out after ten seconds each.
    tokio::time::sleep(Duration::from_secs(25)).await;
    let state = world.engine().webhooks.endpoint(merchant.id).await.unwrap();
    assert!(state.endpoint.is_breaker_open(), "{state:?}");
    world.receiver.forget_most_open();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.receiver.most_open(&url), 1, "one at a time");
    world.receiver.heal(&url);
    world
        .until("everything is told", async || {
            world.env.store.due_deliveries(Timestamp::MAX, 99).await.unwrap().is_empty()
        })
        .await;
    assert!(!world.engine().webhooks.endpoint(merchant.id).await.unwrap().endpoint.is_breaker_open());
}

#[tokio::test(start_paused = true)]
async fn one_endpoint_gets_twenty_five_a_second() {
    let world = World::started(store()).await;
    let (merchant, url) = merchant_at(&world, "blue.mugs").await;
    flood(&world, &merchant, 199).await;
    sell(&world, &merchant).await;
    world.until("everything is told", async || world.receiver.count_at(&url) == 200).await;
    let at: Vec<u64> = world.receiver.received.lock().unwrap().iter().map(|(at, _)| *at).collect();
    let spread = at.iter().max().unwrap() - at.iter().min().unwrap();
    assert!((6..=9).contains(&spread), "25 at once and 25 a second: {spread} s for 200");
}

#[tokio::test(start_paused = true)]
async fn the_next_event_of_a_payment_waits_for_the_one_before_but_not_for_ever() {
    for (answers, order) in [
        (vec![FAILED], ["first", "first", "second"].as_slice()),
        (vec![FAILED, FAILED], ["first", "first", "second", "first"].as_slice()),
    ] {
        let world = World::started(store()).await;
        let (merchant, url) = merchant_at(&world, "blue.mugs").await;
        let (other, silent) = merchant_at(&world, "red.mugs").await;
        world.receiver.hang(&silent);
        world.receiver.answers.lock().unwrap().extend(answers);
        let now = world.engine().now();
        let (first, second) = (event(now, merchant.id, 1, 7), event(now, merchant.id, 2, 7));
        let batch = Batch::of(Write::Event(first.clone())).and(Write::Event(second.clone()));
        world.env.store.commit(batch).await.unwrap();
        // Whoever sends them is woken.
        sell(&world, &other).await;
        world.until("all is told", async || world.receiver.count_at(&url) == order.len()).await;
        let told: Vec<_> =
            events_told(&world).into_iter().filter(|(_, id)| is_one_of(id, &[&first, &second])).collect();
        let names: Vec<&str> =
            told.iter().map(|(_, id)| if *id == first.id.to_string() { "first" } else { "second" }).collect();
        assert_eq!(names, order);
        let waited = told[2].0 - now.seconds();
        let bounds = if order.len() == 3 { 4..=10 } else { 30..=35 };
        assert!(bounds.contains(&waited), "{waited} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_gone_gets_no_more_and_what_happened_meanwhile_when_it_is_back() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let begin = world.engine().now();
    world.receiver.answers.lock().unwrap().push_back(GONE);
    sell(&world, &merchant).await;
    world.until("it is told", async || world.receiver.count() == 1).await;
    for _ in 0..3 {
        sell(&world, &merchant).await;
    }
    world
        .until("all is held", async || world.env.store.due_deliveries(Timestamp::MAX, 9).await.unwrap().is_empty())
        .await;
    assert_eq!(world.receiver.count(), 1, "nothing more is sent");
    let state = world.engine().webhooks.endpoint(merchant.id).await.unwrap();
    assert!(matches!(state.endpoint.disabled, Some((DisableReason::Gone, _))));
    let held = world.env.store.replayable(merchant.id, DeliveryId::from_bits(0), 9).await.unwrap();
    assert_eq!(held.len(), 4, "the one that was refused, too");

    // What the merchant tries out goes there all the same.
    let tried = world
        .engine()
        .webhooks
        .send_test(merchant.id, (EventType::StatusChanged, State::Completed), None)
        .await
        .unwrap()
        .logged;
    world.until("the test is told", async || world.receiver.count() == 2).await;
    let (tried, attempts) = world.engine().webhooks.delivery(merchant.id, tried.delivery.id).await.unwrap();
    assert_eq!((tried.delivery.trigger, attempts.len()), (Trigger::Test, 1));
    assert!(
        !world.engine().webhooks.endpoint(merchant.id).await.unwrap().endpoint.is_enabled(),
        "that enables nothing"
    );

    world.engine().webhooks.enable_endpoint(merchant.id).await.unwrap();
    let replayed = world.engine().webhooks.replay(merchant.id, begin).await.unwrap();
    assert_eq!((replayed.count, replayed.has_more), (4, false));
    world.until("all is told", async || world.receiver.count() == 6).await;
    let mut told: Vec<String> = events_told(&world)[2..].iter().map(|(_, id)| id.clone()).collect();
    let mut all: Vec<String> = held.iter().map(|delivery| delivery.event.to_string()).collect();
    told.sort();
    all.sort();
    assert_eq!(told, all, "once each");
    assert_eq!(world.engine().webhooks.replay(merchant.id, begin).await.unwrap().count, 0, "and not twice");
}

#[tokio::test(start_paused = true)]
async fn five_days_of_failures_disable_an_endpoint_after_two_warnings() {
    let mut world = World::prepared(store());
    world.settings.poll_interval = Duration::from_secs(60);
    world.start().await;
    let merchant = world.merchant().await;
    world.receiver.answers.lock().unwrap().extend(vec![FAILED; 5_000]);
    let mut seen = Vec::new();
    for hour in (0..130).step_by(6) {
        let began = tokio::time::Instant::now();
        sell(&world, &merchant).await;
        // A minute more: the first failure comes some blocks after the first loop began.
        tokio::time::sleep_until(began + Duration::from_secs(6 * 3_600 + 60)).await;
        let state = world.engine().webhooks.endpoint(merchant.id).await.unwrap();
        if seen.last().is_none_or(|(_, last)| *last != (state.warning, state.endpoint.is_enabled())) {
            seen.push((hour + 6, (state.warning, state.endpoint.is_enabled())));
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
    let count = world.receiver.count();
    sell(&world, &merchant).await;
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(world.receiver.count(), count, "nothing more is sent");
    let raw = RawUpdate { webhook_url: Some(Some("https://new.example/hook".to_owned())), ..RawUpdate::default() };
    world.engine().merchants.update(merchant.id, Update::check(raw, false).unwrap()).await.unwrap();
    let state = world.engine().webhooks.endpoint(merchant.id).await.unwrap();
    assert!(state.endpoint.is_enabled() && state.warning.is_none(), "a new address is as good as new");
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_is_a_new_delivery_of_the_same_event_and_is_sent_once() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    sell(&world, &merchant).await;
    world.until("it is told", async || world.receiver.count() == 1).await;
    let query = storage::DeliveryQuery {
        merchant: merchant.id,
        before: None,
        limit: 9,
        states: vec![DeliveryState::Delivered],
        event: None,
        payment: None,
    };
    world
        .until("it is written down", async || {
            world.engine().webhooks.deliveries(query.clone()).await.unwrap().items.len() == 1
        })
        .await;
    let first = world.engine().webhooks.deliveries(query).await.unwrap().items.remove(0).delivery;
    world.receiver.answers.lock().unwrap().push_back(FAILED);
    let again = world.engine().webhooks.redeliver(merchant.id, first.id, None).await.unwrap().logged.delivery;
    assert!(again.id != first.id && again.event == first.event);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    let received = world.receiver.received.lock().unwrap().clone();
    assert_eq!(received.len(), 2, "a failure is not repeated");
    assert_eq!(received[0].1.body, received[1].1.body);
    assert_eq!(header(&received[1].1.headers, "X-Hivetill-Delivery"), again.id.to_string());
    assert_eq!(header(&received[1].1.headers, "X-Hivetill-Attempt"), "1");
    let (again, _) = world.engine().webhooks.delivery(merchant.id, again.id).await.unwrap();
    assert_eq!((again.state, again.delivery.trigger), (DeliveryState::Failed, Trigger::Manual));
    let stranger = world.merchant_of("red.mugs").await;
    let refused = world.engine().webhooks.redeliver(stranger.id, first.id, None).await;
    assert_eq!(refused, Err(EngineError::DeliveryNotFound), "another merchant's is none");
}

#[tokio::test(start_paused = true)]
async fn events_are_forgotten_after_the_retention_and_a_redelivery_says_so() {
    let mut world = World::prepared(store());
    world.settings.poll_interval = Duration::from_secs(600);
    world.settings.event_retention = Duration::from_secs(86_400);
    world.start().await;
    let merchant = world.merchant().await;
    sell(&world, &merchant).await;
    world.until("it is told", async || world.receiver.count() == 1).await;
    let delivery = world.env.store.events(merchant.id, 0, 1).await.unwrap().remove(0).delivery.unwrap();
    tokio::time::sleep(Duration::from_secs(80_000)).await;
    assert_eq!(world.engine().webhooks.events(merchant.id, After::Beginning, 9).await.unwrap().events.len(), 1);
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    assert_eq!(world.engine().webhooks.events(merchant.id, After::Beginning, 9).await.unwrap().events, []);
    assert_eq!(world.engine().webhooks.redeliver(merchant.id, delivery, None).await, Err(EngineError::EventForgotten));
    let (logged, attempts) = world.engine().webhooks.delivery(merchant.id, delivery).await.unwrap();
    assert_eq!((logged.state, attempts.len()), (DeliveryState::Delivered, 1), "the log keeps the rest");
}

#[tokio::test(start_paused = true)]
async fn an_outbox_without_an_endpoint_empties_itself() {
    let world = World::started(store()).await;
    let registration = Registration::check("Blue Mugs", "blue.mugs", None).unwrap();
    let merchant = world.engine().merchants.register(registration, false).await.unwrap().merchant;
    let payment = world.engine().payments.open(&merchant, draft(), None).await.unwrap().payment;
    world.pay(payment.id);
    world.until_state(payment.id, State::Completed).await;
    world
        .until("the outbox is empty", async || {
            world.env.store.due_deliveries(Timestamp::MAX, 9).await.unwrap().is_empty()
        })
        .await;
    assert_eq!(world.receiver.count(), 0);
    assert_eq!(world.env.store.events(merchant.id, 0, 9).await.unwrap().len(), 1, "the event is kept all the same");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_tried_again_with_the_same_body_until_it_is_taken() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    let failures = [Outcome::Connect, Outcome::Refused { status: 500, retry_after: None }, Outcome::Timeout];
    world.receiver.answers.lock().unwrap().extend(failures);
    world.pay(payment.id);
    world.until("it is taken", async || world.receiver.count() == 4).await;
    tokio::time::sleep(Duration::from_secs(360_000)).await;
    let received = world.receiver.received.lock().unwrap().clone();
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
    let event = world.env.store.events(merchant.id, 0, 1).await.unwrap().remove(0);
    let words: Vec<_> = world.env.store.attempts(event.id).await.unwrap().iter().map(|a| a.outcome.as_str()).collect();
    assert_eq!(words, ["connect", "http_error", "timeout", "success"]);
}
