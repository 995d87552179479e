//! Payments that are settled for other people's servers: told of once, and again to who is known.

use std::time::Duration;

use actors::{Caller, Target, X402Error, X402Request};
use engine::{
    idempotency::IdempotencyKey,
    ids::PaymentId,
    money::{Currency, Money},
    x402::{Reason, Requirements},
};

use crate::{
    store,
    world::{Manner, World, name},
    x402::{id_of, op, reason, request, settling, signed, until_handed_in},
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
async fn for_other_servers_a_success_is_told_once() {
    let world = World::started(store()).await;
    let soon = world.engine().now() + Duration::from_secs(60);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let ask = |resource: &str| X402Request {
        target: Target::Requirements(requirements(resource)),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    assert_eq!(world.engine().x402.verify(&ask("/a")).await, Ok(name("agent")));
    let answers: Vec<_> = (0..20).map(|_| settling(&world, ask("/a"))).collect();
    until_handed_in(&world, &transaction).await;
    world.ledger.produce_mempool();
    let mut told = Vec::new();
    for answer in answers {
        told.push(answer.await.unwrap());
    }
    assert_eq!(told.iter().filter(|answer| answer.is_ok()).count(), 1);
    for refused in told.into_iter().filter(Result::is_err) {
        let Err(X402Error::Refused(refused)) = refused else { panic!("{refused:?}") };
        assert_eq!((refused.reason, refused.tx_id), (Reason::DuplicateSettlement, Some(id_of(&transaction))));
    }
    let Err(X402Error::Refused(other)) = world.engine().x402.settle(&ask("/b")).await else { panic!() };
    assert_eq!((other.reason, other.tx_id), (Reason::DuplicateSettlement, None), "not theirs to know");
}

#[tokio::test(start_paused = true)]
async fn for_other_servers_a_known_caller_is_told_again_under_its_key() {
    let mut world = World::started(store()).await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let soon = world.engine().now() + Duration::from_secs(60);
    let ask = |nonce: &str, resource: &str| X402Request {
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
    let first = ask("n-1", "/a");
    let answers: Vec<_> = (0..20)
        .map(|_| {
            let (engine, first, retry) = (world.engine(), first.clone(), under(&merchant, "k-1"));
            tokio::spawn(async move { engine.x402.settle_for(&first, &retry).await })
        })
        .collect();
    until_handed_in(&world, &first.payload.transaction).await;
    world.ledger.produce_mempool();
    for answer in answers {
        assert_eq!(answer.await.unwrap().unwrap().tx_id, id_of(&first.payload.transaction));
    }
    world.stop().await;
    world.start().await;
    let settled = world.engine().x402.settle_for(&first, &under(&merchant, "k-1")).await.unwrap();
    assert_eq!((settled.tx_id, settled.is_replay), (id_of(&first.payload.transaction), true));
    // A payer that names its payments cannot have two things for one, nor pay twice for one.
    let (again, elsewhere) = (ask("n-2", "/a"), ask("n-1", "/b"));
    for other in [&again, &elsewhere] {
        let answer = world.engine().x402.settle_for(other, &under(&merchant, "k-1")).await;
        assert_eq!(answer, Err(X402Error::Unavailable(actors::EngineError::KeyReused)));
    }
    assert_eq!(world.ledger.count_handed_in(id_of(&again.payload.transaction)), 0);
    // Nobody else is told, under whatever key, however often.
    for retry in [Caller::default(), under(&merchant, "k-2"), under(&other, "k-1"), under(&other, "k-1")] {
        let answer = world.engine().x402.settle_for(&first, &retry).await;
        assert_eq!(reason(answer), Reason::DuplicateSettlement, "{retry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_that_is_first_reported_under_a_key_is_reported_again_under_it() {
    let mut world = World::started(store()).await;
    let merchant = world.merchant().await;
    let soon = world.engine().now() + Duration::from_secs(60);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let asked = X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    // The request that makes the claim has no key, and its caller leaves.
    let left = settling(&world, asked.clone());
    until_handed_in(&world, &transaction).await;
    left.abort();
    let under =
        |key: &str| Caller { seller: Some(merchant.id), key: Some(IdempotencyKey::parse(key).expect("a valid key")) };
    let answers: Vec<_> = (0..5)
        .map(|_| {
            let (engine, asked, caller) = (world.engine(), asked.clone(), under("k-1"));
            tokio::spawn(async move { engine.x402.settle_for(&asked, &caller).await })
        })
        .collect();
    world.ledger.produce_mempool();
    let mut replays = Vec::new();
    for answer in answers {
        let settled = answer.await.unwrap().unwrap();
        assert_eq!(settled.tx_id, id_of(&transaction));
        replays.push(settled.is_replay);
    }
    assert_eq!(replays.iter().filter(|is_replay| !**is_replay).count(), 1, "one success: {replays:?}");
    world.stop().await;
    world.start().await;
    let again = world.engine().x402.settle_for(&asked, &under("k-1")).await.unwrap();
    assert_eq!((again.tx_id, again.is_replay), (id_of(&transaction), true));
    for caller in [under("k-2"), Caller::default()] {
        let answer = world.engine().x402.settle_for(&asked, &caller).await;
        assert_eq!(reason(answer), Reason::DuplicateSettlement, "{caller:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn for_other_servers_a_pending_payment_is_told_on_the_retry_across_a_restart() {
    let mut world = World::started(store()).await;
    let soon = world.engine().now() + Duration::from_secs(120);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let ask = X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    world.ledger.set_manner(Manner::SwallowsEverything);
    assert_eq!(reason(world.engine().x402.settle(&ask).await), Reason::SettlementPending);
    world.stop().await;
    world.ledger.set_manner(Manner::Honest);
    world.start().await;
    let handed_in = world.ledger.count_handed_in(id_of(&transaction));
    world.until("it goes on", async || world.ledger.count_handed_in(id_of(&transaction)) > handed_in).await;
    world.ledger.produce_mempool();
    assert_eq!(world.engine().x402.settle(&ask).await.unwrap().tx_id, id_of(&transaction));
    assert_eq!(reason(world.engine().x402.settle(&ask).await), Reason::DuplicateSettlement);
    assert_eq!(world.ledger.count_on_chain(id_of(&transaction)), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pending_payment_belongs_to_the_request_that_showed_it_first() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let soon = world.engine().now() + Duration::from_secs(300);
    let transaction = signed(vec![op("agent", "somebody", 1_000, "x402:n-1")], soon, "agent");
    let ask = X402Request {
        target: Target::Requirements(requirements("/a")),
        ..request(PaymentId::from_bits(0), &transaction, "n-1")
    };
    let under = |key: &str| Caller { seller: Some(merchant.id), key: Some(IdempotencyKey::parse(key).unwrap()) };
    world.ledger.set_manner(Manner::SwallowsEverything);
    let pending = world.engine().x402.settle_for(&ask, &under("k-1")).await;
    assert_eq!(reason(pending), Reason::SettlementPending);
    world.ledger.set_manner(Manner::Honest);
    let handed_in = world.ledger.count_handed_in(id_of(&transaction));
    world.until("it goes on", async || world.ledger.count_handed_in(id_of(&transaction)) > handed_in).await;
    world.ledger.produce_mempool();
    // Another request of the same seller for the same resource, and strangers, have to be paid on their own.
    for caller in [under("k-2"), Caller::default(), Caller { seller: Some(merchant.id), key: None }] {
        let refused = world.engine().x402.settle_for(&ask, &caller).await;
        assert_eq!(reason(refused), Reason::DuplicateSettlement, "{caller:?}");
    }
    for is_replay in [false, true] {
        let settled = world.engine().x402.settle_for(&ask, &under("k-1")).await.unwrap();
        assert_eq!((settled.is_replay, settled.block_num.is_some()), (is_replay, true));
    }
}
