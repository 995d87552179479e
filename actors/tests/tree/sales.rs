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
    environment::{Manner, TestEngine, name},
    facilitated::requirements,
    store, transfer,
    x402::{id_of, op, reason, request, signed, transfers_of, until_broadcast},
};

/// A payment to the shop's own account for a resource of its server.
fn sale(test: &TestEngine, nonce: &str, resource: &str) -> (Transaction, X402Request) {
    let soon = test.engine().now() + Duration::from_secs(60);
    let transaction = signed(vec![op("agent", "blue.mugs", 1_000, &format!("x402:{nonce}"))], soon, "agent");
    let target = Target::Requirements(Requirements { pay_to: name("blue.mugs"), ..requirements(resource) });
    let payment_request = X402Request { target, ..request(PaymentId::from_bits(0), &transaction, nonce) };
    (transaction, payment_request)
}

async fn settled(test: &TestEngine, payment_request: X402Request, caller: Caller, transaction: &Transaction) {
    let engine = test.engine();
    let settlement = tokio::spawn(async move { engine.x402.settle_for(&payment_request, &caller).await });
    until_broadcast(test, transaction).await;
    test.ledger.produce_mempool();
    settlement.await.unwrap().unwrap();
}

async fn sold(test: &TestEngine, merchant: &Merchant) -> Vec<(TxId, String)> {
    let sales = test.engine().payments.sales(merchant, None, 100).await.unwrap().rows;
    sales.into_iter().map(|sale| (sale.transfer.tx_id, sale.resource)).collect()
}

async fn unmatched(test: &TestEngine, merchant: &Merchant) -> Vec<TxId> {
    let list = test.engine().payments.unmatched(merchant, None, 100).await.unwrap().rows;
    list.into_iter().map(|unmatched| unmatched.transfer.tx_id).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_settled_for_a_server_is_a_sale_and_cannot_be_assigned() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    let payment = test.open(&merchant).await;
    let (transaction, payment_request) = sale(&test, "n-1", "/a");
    let caller = Caller { seller: Some(merchant.id), key: Some(IdempotencyKey::parse("k-1").unwrap()) };
    settled(&test, payment_request, caller, &transaction).await;
    // A fork moves it to another block.
    test.ledger.fork(1);
    test.ledger.produce(Vec::new());
    test.ledger.produce(transfers_of(&transaction));
    test.ledger.settle();
    test.until("it is sold", async || sold(&test, &merchant).await.len() == 1).await;
    assert_eq!(sold(&test, &merchant).await, [(id_of(&transaction), "/a".to_owned())]);
    assert_eq!(unmatched(&test, &merchant).await, []);
    let place = test.engine().payments.sales(&merchant, None, 1).await.unwrap().rows[0].transfer.position;
    let refused = Err(EngineError::TransferSettled("/a".to_owned()));
    let assigned = test.engine().payments.assign(&merchant, place, payment.id, "key_1".to_owned()).await;
    assert_eq!(assigned.map(|payment| payment.state), refused);
    let ignored = test.engine().payments.ignore(&merchant, place, "key_1".to_owned(), String::new()).await;
    assert_eq!(ignored.map(|_| State::Pending), refused);
    assert_eq!(test.state(payment.id).await, State::Pending);
    // Others on the same account see nothing of what one of them sold with its key.
    let other = test.owner().await;
    assert_eq!(sold(&test, &other).await, []);
}

#[tokio::test(start_paused = true)]
async fn sales_settled_with_another_key_are_listed_for_the_merchant_with_the_proven_account() {
    let test = TestEngine::started(store()).await;
    let (owner, stranger) = (test.owner().await, test.merchant().await);
    let (transaction, payment_request) = sale(&test, "n-1", "/a");
    let caller = Caller { seller: Some(stranger.id), key: Some(IdempotencyKey::parse("k-1").unwrap()) };
    settled(&test, payment_request, caller, &transaction).await;
    test.ledger.settle();
    test.until("it is sold", async || sold(&test, &owner).await.len() == 1).await;
    assert_eq!(sold(&test, &stranger).await, sold(&test, &owner).await);
    let events = test.env.store.events(owner.id, 0, 9).await.unwrap();
    assert!(events.iter().any(|event| event.kind == EventType::X402Settled), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn sales_settled_without_a_key_are_listed_for_the_merchant_with_the_proven_account() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let (transaction, payment_request) = sale(&test, "n-1", "/a");
    settled(&test, payment_request, Caller::default(), &transaction).await;
    test.ledger.settle();
    let kept = async || test.env.store.unmatched(name("blue.mugs"), 9).await.unwrap().len();
    test.until("it is kept", async || kept().await == 1).await;
    assert_eq!(sold(&test, &merchant).await, []);
    let proven = test.engine().merchants.vouch_for(merchant.id, None).await.unwrap();
    assert_eq!(sold(&test, &proven).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_assigned_settles_nothing() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    let payment = test.open(&merchant).await;
    let (transaction, payment_request) = sale(&test, "n-1", "/a");
    // The payer sends it itself, and the shop takes it for a session.
    let mut sent = transfer("agent", "blue.mugs", 1_000, "x402:n-1");
    sent.tx_id = id_of(&transaction);
    test.ledger.produce(vec![sent]);
    test.ledger.settle();
    test.until("it is unmatched", async || unmatched(&test, &merchant).await.len() == 1).await;
    let list = test.engine().payments.unmatched(&merchant, None, 9).await.unwrap().rows;
    let assigned =
        test.engine().payments.assign(&merchant, list[0].transfer.position, payment.id, "key_1".to_owned()).await;
    assert_eq!(assigned.unwrap().state, State::Completed);
    // Whatever the nodes say of the transaction, the store knows that it pays a session.
    for manner in [Manner::Honest, Manner::Forgets] {
        test.ledger.set_manner(manner.clone());
        let refused = test.engine().x402.settle(&payment_request).await;
        assert_eq!(reason(refused), Reason::DuplicateSettlement, "{manner:?}");
    }
    assert_eq!(sold(&test, &merchant).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_younger_than_its_transfers_row_makes_it_a_sale_until_it_fails() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    let payment = test.open(&merchant).await;
    let (template, payment_request) = sale(&test, "n-1", "/a");
    settled(&test, payment_request, Caller::default(), &template).await;
    test.ledger.produce(vec![transfer("agent", "blue.mugs", 1_000, "x402:n-2")]);
    test.ledger.settle();
    test.until("it is unmatched", async || unmatched(&test, &merchant).await.len() == 1).await;
    let place = test.engine().payments.unmatched(&merchant, None, 9).await.unwrap().rows[0].transfer.position;
    let tx_id = unmatched(&test, &merchant).await[0];
    // As if the claim had waited for its commit while the chain went on.
    let claimed = test.env.store.claim(id_of(&template)).await.unwrap().unwrap();
    let Purpose::Facilitated(_) = &claimed.purpose else { panic!() };
    let late = engine::x402::ClaimRecord { tx_id, nonce: "n-2".to_owned(), outcome: ClaimOutcome::Open, ..claimed };
    test.env.store.commit(Batch::of(Write::Claim(late))).await.unwrap();
    assert_eq!(unmatched(&test, &merchant).await, []);
    let assign = async || test.engine().payments.assign(&merchant, place, payment.id, "key_1".to_owned()).await;
    assert_eq!(assign().await.err(), Some(EngineError::TransferSettled("/a".to_owned())));
    let write = Write::ClaimOutcome { tx_id, expected: ClaimOutcome::Open, outcome: ClaimOutcome::Expired };
    test.env.store.commit(Batch::of(write)).await.unwrap();
    assert_eq!(unmatched(&test, &merchant).await, [tx_id], "the settlement was refused to its seller");
    assert_eq!(assign().await.unwrap().state, State::Completed);
}
