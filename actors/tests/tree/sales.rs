//! Sales: what was settled for somebody's server pays no session, in whatever order the two are tried.

use std::time::Duration;

use actors::{Caller, EngineError, Target, X402Request};
use engine::{
    hive::Transaction,
    idempotency::IdempotencyKey,
    ids::PaymentId,
    ledger::TxId,
    merchant::Merchant,
    payment::State,
    webhook::EventType,
    x402::{ClaimOutcome, Purpose, Reason, Requirements},
};
use storage::{Batch, Write};

use crate::{
    facilitated::requirements,
    store, transfer,
    world::{Manner, World, name},
    x402::{id_of, op, reason, request, signed, transfers_of, until_handed_in},
};

/// A payment to the shop's own account for a resource of its server.
fn sale(world: &World, nonce: &str, resource: &str) -> (Transaction, X402Request) {
    let soon = world.engine().now() + Duration::from_secs(60);
    let transaction = signed(vec![op("agent", "blue.mugs", 1_000, &format!("x402:{nonce}"))], soon, "agent");
    let target = Target::Requirements(Requirements { pay_to: name("blue.mugs"), ..requirements(resource) });
    let asked = X402Request { target, ..request(PaymentId::from_bits(0), &transaction, nonce) };
    (transaction, asked)
}

async fn settled(world: &World, asked: X402Request, caller: Caller, transaction: &Transaction) {
    let engine = world.engine();
    let answer = tokio::spawn(async move { engine.x402.settle_for(&asked, &caller).await });
    until_handed_in(world, transaction).await;
    world.ledger.produce_mempool();
    answer.await.unwrap().unwrap();
}

async fn sold(world: &World, merchant: &Merchant) -> Vec<(TxId, String)> {
    let sales = world.engine().payments.sales(merchant, None, 100).await.unwrap().rows;
    sales.into_iter().map(|sale| (sale.transfer.tx_id, sale.resource)).collect()
}

async fn unmatched(world: &World, merchant: &Merchant) -> Vec<TxId> {
    let list = world.engine().payments.unmatched(merchant, None, 100).await.unwrap().rows;
    list.into_iter().map(|unmatched| unmatched.transfer.tx_id).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_settled_for_a_server_is_a_sale_and_cannot_be_assigned() {
    let world = World::started(store()).await;
    let merchant = world.owner().await;
    let payment = world.open(&merchant).await;
    let (transaction, asked) = sale(&world, "n-1", "/a");
    let caller = Caller { seller: Some(merchant.id), key: Some(IdempotencyKey::parse("k-1").unwrap()) };
    settled(&world, asked, caller, &transaction).await;
    // A fork moves it to another block.
    world.ledger.fork(1);
    world.ledger.produce(Vec::new());
    world.ledger.produce(transfers_of(&transaction));
    world.ledger.settle();
    world.until("it is sold", async || sold(&world, &merchant).await.len() == 1).await;
    assert_eq!(sold(&world, &merchant).await, [(id_of(&transaction), "/a".to_owned())]);
    assert_eq!(unmatched(&world, &merchant).await, []);
    let place = world.engine().payments.sales(&merchant, None, 1).await.unwrap().rows[0].transfer.position;
    let refused = Err(EngineError::TransferSettled("/a".to_owned()));
    let assigned = world.engine().payments.assign(&merchant, place, payment.id, "key_1".to_owned()).await;
    assert_eq!(assigned.map(|payment| payment.state), refused);
    let ignored = world.engine().payments.ignore(&merchant, place, "key_1".to_owned(), String::new()).await;
    assert_eq!(ignored.map(|_| State::Pending), refused);
    assert_eq!(world.state(payment.id).await, State::Pending);
    // Others on the same account see nothing of what one of them sold with its key.
    let other = world.owner().await;
    assert_eq!(sold(&world, &other).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_a_stranger_settled_with_its_key_is_shown_to_who_has_proven_the_account() {
    let world = World::started(store()).await;
    let (owner, stranger) = (world.owner().await, world.merchant().await);
    let (transaction, asked) = sale(&world, "n-1", "/a");
    let caller = Caller { seller: Some(stranger.id), key: Some(IdempotencyKey::parse("k-1").unwrap()) };
    settled(&world, asked, caller, &transaction).await;
    world.ledger.settle();
    world.until("it is sold", async || sold(&world, &owner).await.len() == 1).await;
    assert_eq!(sold(&world, &stranger).await, sold(&world, &owner).await);
    let told = world.env.store.events(owner.id, 0, 9).await.unwrap();
    assert!(told.iter().any(|event| event.kind == EventType::X402Settled), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_settled_without_a_key_is_shown_to_who_has_proven_the_account() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let (transaction, asked) = sale(&world, "n-1", "/a");
    settled(&world, asked, Caller::default(), &transaction).await;
    world.ledger.settle();
    let kept = async || world.env.store.unmatched(name("blue.mugs"), 9).await.unwrap().len();
    world.until("it is kept", async || kept().await == 1).await;
    assert_eq!(sold(&world, &merchant).await, []);
    let proven = world.engine().merchants.vouch_for(merchant.id, None).await.unwrap();
    assert_eq!(sold(&world, &proven).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_assigned_settles_nothing() {
    let world = World::started(store()).await;
    let merchant = world.owner().await;
    let payment = world.open(&merchant).await;
    let (transaction, asked) = sale(&world, "n-1", "/a");
    // The payer sends it itself, and the shop takes it for a session.
    let mut sent = transfer("agent", "blue.mugs", 1_000, "x402:n-1");
    sent.tx_id = id_of(&transaction);
    world.ledger.produce(vec![sent]);
    world.ledger.settle();
    world.until("it is unmatched", async || unmatched(&world, &merchant).await.len() == 1).await;
    let list = world.engine().payments.unmatched(&merchant, None, 9).await.unwrap().rows;
    let assigned =
        world.engine().payments.assign(&merchant, list[0].transfer.position, payment.id, "key_1".to_owned()).await;
    assert_eq!(assigned.unwrap().state, State::Completed);
    // Whatever the nodes say of the transaction, the store knows that it pays a session.
    for manner in [Manner::Honest, Manner::Forgets] {
        world.ledger.set_manner(manner.clone());
        let refused = world.engine().x402.settle(&asked).await;
        assert_eq!(reason(refused), Reason::DuplicateSettlement, "{manner:?}");
    }
    assert_eq!(sold(&world, &merchant).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_younger_than_its_transfers_row_makes_it_a_sale_until_it_fails() {
    let world = World::started(store()).await;
    let merchant = world.owner().await;
    let payment = world.open(&merchant).await;
    let (template, asked) = sale(&world, "n-1", "/a");
    settled(&world, asked, Caller::default(), &template).await;
    world.ledger.produce(vec![transfer("agent", "blue.mugs", 1_000, "x402:n-2")]);
    world.ledger.settle();
    world.until("it is unmatched", async || unmatched(&world, &merchant).await.len() == 1).await;
    let place = world.engine().payments.unmatched(&merchant, None, 9).await.unwrap().rows[0].transfer.position;
    let tx_id = unmatched(&world, &merchant).await[0];
    // As if the claim had waited for its commit while the chain went on.
    let claimed = world.env.store.claim(id_of(&template)).await.unwrap().unwrap();
    let Purpose::Facilitated(_) = &claimed.purpose else { panic!() };
    let late = engine::x402::ClaimRecord { tx_id, nonce: "n-2".to_owned(), outcome: ClaimOutcome::Open, ..claimed };
    world.env.store.commit(Batch::of(Write::Claim(late))).await.unwrap();
    assert_eq!(unmatched(&world, &merchant).await, []);
    let assign = async || world.engine().payments.assign(&merchant, place, payment.id, "key_1".to_owned()).await;
    assert_eq!(assign().await.err(), Some(EngineError::TransferSettled("/a".to_owned())));
    let write = Write::ClaimOutcome { tx_id, expected: ClaimOutcome::Open, outcome: ClaimOutcome::Expired };
    world.env.store.commit(Batch::of(write)).await.unwrap();
    assert_eq!(unmatched(&world, &merchant).await, [tx_id], "its seller was told that it did not happen");
    assert_eq!(assign().await.unwrap().state, State::Completed);
}
