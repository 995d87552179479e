//! Signed offers and receipts: the keys of an installation.

use std::time::Duration;

use engine::payment::State;
use storage::AuditQuery;

use crate::{
    engines::two_engines,
    environment::TestEngine,
    store,
    x402::{payment_of, request},
};

const URL: &str = "https://pay.example/for/x";

#[tokio::test(start_paused = true)]
async fn engines_over_one_store_sign_with_one_key_also_after_a_rotation() {
    let (database, _connections, [one, two]) = two_engines().await;
    let (first, second) = (one.engine().x402, two.engine().x402);
    let keys = tokio::join!(first.public_receipt_keys(), second.public_receipt_keys());
    let created = keys.0.unwrap();
    assert_eq!((created.len(), Ok(created.clone())), (1, keys.1));
    let merchant = one.merchant().await;
    let payment = one.open(&merchant).await;
    let before = first.sign_offer(&payment, URL).await.unwrap();
    assert!(before.is_some());
    assert_eq!(second.sign_offer(&payment, URL).await.unwrap(), before);

    let rotated = second.rotate_receipt_key().await.unwrap();
    assert_eq!(first.public_receipt_keys().await, Ok(vec![rotated, created[0]]));
    let after = second.sign_offer(&payment, URL).await.unwrap();
    assert_ne!(after, before, "the engine that rotated the key signs with it at once");
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(first.sign_offer(&payment, URL).await.unwrap(), after);
    let newest = database.audit(AuditQuery { before: None, limit: 100, merchant: None }).await.unwrap();
    assert_eq!(newest.iter().filter(|entry| entry.action == "receipt_key_rotated").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn offers_are_signed_for_open_payments_and_a_receipt_is_always_the_same() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let x402 = test.engine().x402;
    assert!(x402.sign_offer(&payment, URL).await.unwrap().is_some());
    let transaction = payment_of(&test, &payment, "agent");
    let settling = crate::x402::settling(&test, request(payment.id, &transaction, "n-1"));
    let is_on_chain = async || {
        test.ledger.produce_mempool();
        test.state(payment.id).await == State::Completed
    };
    test.until("it is paid", is_on_chain).await;
    let settled = settling.await.unwrap().unwrap();
    let paid = test.engine().payments.any(payment.id).await.unwrap();
    assert_eq!(x402.sign_offer(&paid, URL).await, Ok(None), "a paid session offers nothing");
    let receipt = x402.sign_receipt(&settled, &paid, URL).await.unwrap();
    assert!(receipt.is_some());
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(x402.sign_receipt(&settled, &paid, URL).await.unwrap(), receipt);
}

#[tokio::test(start_paused = true)]
async fn an_engine_with_unsigned_offers_creates_no_key() {
    let mut test = TestEngine::prepared(store());
    test.settings.x402.signs = false;
    test.start().await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let x402 = test.engine().x402;
    assert_eq!(x402.sign_offer(&payment, URL).await, Ok(None));
    assert_eq!(x402.public_receipt_keys().await, Ok(Vec::new()));
    assert_eq!(test.env.store.receipt_keys().await.unwrap(), None);
}
