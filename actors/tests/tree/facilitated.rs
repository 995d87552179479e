//! Payments that are settled for other servers: each is reported once, and again to callers that are known.

use std::time::Duration;

use actors::{Caller, Target, X402Error, X402Request};
use engine::{
    idempotency::IdempotencyKey,
    ids::PaymentId,
    money::{Currency, Money},
    x402::{Reason, Requirements},
};

use crate::{
    environment::{Manner, TestEngine, name},
    store,
    x402::{id_of, op, reason, request, settling, signed, until_broadcast},
};

pub(crate) fn requirements(resource: &str) -> Requirements {
    Requirements {
        amount: Money::new(1_000, Currency::Hbd),
        pay_to: name("somebody"),
        resource: resource.to_owned(),
        valid_before: None,
    }
}

#[tokio::test(start_paused = true)]
async fn for_other_servers_a_success_is_returned_once() {
    let test = TestEngine::started(store()).await;
    let soon = test.engine().now() + Duration::from_secs(60);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let payment_request = |resource: &str| X402Request {
        target: Target::Requirements(requirements(resource)),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    assert_eq!(test.engine().x402.verify(&payment_request("/a")).await, Ok(name("agent")));
    let settlements: Vec<_> = (0..20).map(|_| settling(&test, payment_request("/a"))).collect();
    until_broadcast(&test, &transaction).await;
    test.ledger.produce_mempool();
    let mut results = Vec::new();
    for settlement in settlements {
        results.push(settlement.await.unwrap());
    }
    assert_eq!(results.iter().filter(|settlement| settlement.is_ok()).count(), 1);
    for refused in results.into_iter().filter(Result::is_err) {
        let Err(X402Error::Refused(refused)) = refused else { panic!("{refused:?}") };
        assert_eq!((refused.reason, refused.tx_id), (Reason::DuplicateSettlement, Some(id_of(&transaction))));
    }
    let Err(X402Error::Refused(other)) = test.engine().x402.settle(&payment_request("/b")).await else { panic!() };
    assert_eq!((other.reason, other.tx_id), (Reason::DuplicateSettlement, None), "not theirs to know");
}

#[tokio::test(start_paused = true)]
async fn for_other_servers_a_known_caller_gets_the_result_again_under_its_key() {
    let mut test = TestEngine::started(store()).await;
    let (merchant, other) = (test.merchant().await, test.merchant().await);
    let soon = test.engine().now() + Duration::from_secs(60);
    let payment_request = |nonce: &str, resource: &str| X402Request {
        target: Target::Requirements(requirements(resource)),
        ..request(
            PaymentId::from_bits(0),
            &signed(vec![op("agent", "somebody", 1_000, &format!("x402:{nonce}"))], soon, "agent"),
            nonce,
        )
    };
    let under = |merchant: &engine::merchant::Merchant, key: &str| Caller {
        seller: Some(merchant.id),
        key: Some(IdempotencyKey::parse(key).unwrap()),
    };
    let first = payment_request("n-1", "/a");
    let settlements: Vec<_> = (0..20)
        .map(|_| {
            let (engine, first, retry) = (test.engine(), first.clone(), under(&merchant, "k-1"));
            tokio::spawn(async move { engine.x402.settle_for(&first, &retry).await })
        })
        .collect();
    until_broadcast(&test, &first.payload.transaction).await;
    test.ledger.produce_mempool();
    for settlement in settlements {
        assert_eq!(settlement.await.unwrap().unwrap().tx_id, id_of(&first.payload.transaction));
    }
    test.stop().await;
    test.start().await;
    let settled = test.engine().x402.settle_for(&first, &under(&merchant, "k-1")).await.unwrap();
    assert_eq!((settled.tx_id, settled.is_replay), (id_of(&first.payload.transaction), true));
    // A payer that names its payments cannot have two things for one, nor pay twice for one.
    let (again, elsewhere) = (payment_request("n-2", "/a"), payment_request("n-1", "/b"));
    for other in [&again, &elsewhere] {
        let settlement = test.engine().x402.settle_for(other, &under(&merchant, "k-1")).await;
        assert_eq!(settlement, Err(X402Error::Unavailable(actors::EngineError::KeyReused)));
    }
    assert_eq!(test.ledger.count_broadcasts(id_of(&again.payload.transaction)), 0);
    // Nobody else gets it, under any key.
    for retry in [Caller::default(), under(&merchant, "k-2"), under(&other, "k-1"), under(&other, "k-1")] {
        let settlement = test.engine().x402.settle_for(&first, &retry).await;
        assert_eq!(reason(settlement), Reason::DuplicateSettlement, "{retry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_that_is_first_reported_under_a_key_is_reported_again_under_it() {
    let mut test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let soon = test.engine().now() + Duration::from_secs(60);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let payment_request = X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    // The request that makes the claim has no key, and its caller leaves.
    let left = settling(&test, payment_request.clone());
    until_broadcast(&test, &transaction).await;
    left.abort();
    let under =
        |key: &str| Caller { seller: Some(merchant.id), key: Some(IdempotencyKey::parse(key).expect("a valid key")) };
    let settlements: Vec<_> = (0..5)
        .map(|_| {
            let (engine, payment_request, caller) = (test.engine(), payment_request.clone(), under("k-1"));
            tokio::spawn(async move { engine.x402.settle_for(&payment_request, &caller).await })
        })
        .collect();
    test.ledger.produce_mempool();
    let mut replays = Vec::new();
    for settlement in settlements {
        let settled = settlement.await.unwrap().unwrap();
        assert_eq!(settled.tx_id, id_of(&transaction));
        replays.push(settled.is_replay);
    }
    assert_eq!(replays.iter().filter(|is_replay| !**is_replay).count(), 1, "one success: {replays:?}");
    test.stop().await;
    test.start().await;
    let again = test.engine().x402.settle_for(&payment_request, &under("k-1")).await.unwrap();
    assert_eq!((again.tx_id, again.is_replay), (id_of(&transaction), true));
    for caller in [under("k-2"), Caller::default()] {
        let settlement = test.engine().x402.settle_for(&payment_request, &caller).await;
        assert_eq!(reason(settlement), Reason::DuplicateSettlement, "{caller:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn for_other_servers_a_retry_returns_a_pending_payment_across_a_restart() {
    let mut test = TestEngine::started(store()).await;
    let soon = test.engine().now() + Duration::from_secs(120);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let payment_request = X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    test.ledger.set_manner(Manner::SwallowsEverything);
    assert_eq!(reason(test.engine().x402.settle(&payment_request).await), Reason::SettlementPending);
    test.stop().await;
    test.ledger.set_manner(Manner::Honest);
    test.start().await;
    let broadcasts = test.ledger.count_broadcasts(id_of(&transaction));
    test.until("it goes on", async || test.ledger.count_broadcasts(id_of(&transaction)) > broadcasts).await;
    test.ledger.produce_mempool();
    assert_eq!(test.engine().x402.settle(&payment_request).await.unwrap().tx_id, id_of(&transaction));
    assert_eq!(reason(test.engine().x402.settle(&payment_request).await), Reason::DuplicateSettlement);
    assert_eq!(test.ledger.count_on_chain(id_of(&transaction)), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pending_payment_belongs_to_the_request_that_showed_it_first() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let soon = test.engine().now() + Duration::from_secs(300);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let payment_request = X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    let under = |key: &str| Caller { seller: Some(merchant.id), key: Some(IdempotencyKey::parse(key).unwrap()) };
    test.ledger.set_manner(Manner::SwallowsEverything);
    let pending = test.engine().x402.settle_for(&payment_request, &under("k-1")).await;
    assert_eq!(reason(pending), Reason::SettlementPending);
    test.ledger.set_manner(Manner::Honest);
    let broadcasts = test.ledger.count_broadcasts(id_of(&transaction));
    test.until("it goes on", async || test.ledger.count_broadcasts(id_of(&transaction)) > broadcasts).await;
    test.ledger.produce_mempool();
    // Another request of the same seller for the same resource, and strangers, have to be paid on their own.
    for caller in [under("k-2"), Caller::default(), Caller { seller: Some(merchant.id), key: None }] {
        let refused = test.engine().x402.settle_for(&payment_request, &caller).await;
        assert_eq!(reason(refused), Reason::DuplicateSettlement, "{caller:?}");
    }
    for is_replay in [false, true] {
        let settled = test.engine().x402.settle_for(&payment_request, &under("k-1")).await.unwrap();
        assert_eq!((settled.is_replay, settled.block_num.is_some()), (is_replay, true));
    }
}
