//! Starting an expired payment again: one new session, however often and wherever it is requested.

use engine::{
    ids::PaymentId,
    merchant::{Merchant, RawUpdate, Update},
    payment::{Payment, RestartRejection},
};

use super::*;

async fn allow(test: &TestEngine, merchant: &Merchant, is_allowed: bool) -> Arc<Merchant> {
    let raw = RawUpdate { restart_enabled: Some(is_allowed), ..RawUpdate::default() };
    test.engine().merchants.update(merchant.id, Update::check(raw, false).unwrap()).await.unwrap();
    test.engine().merchants.get(merchant.id).await.unwrap()
}

async fn expire(test: &TestEngine, payment: &Payment) -> Arc<Payment> {
    test.ledger.produce_at(payment.expires_at.seconds() + 3, Vec::new());
    test.ledger.settle();
    test.until_state(payment.id, State::SystemCancelled).await;
    test.engine().payments.any(payment.id).await.unwrap()
}

async fn restart(test: &TestEngine, merchant: &Merchant, payment: &Payment) -> Result<PaymentId, EngineError> {
    test.engine().payments.restart(merchant, payment).await.map(|opened| opened.payment.id)
}

#[tokio::test(start_paused = true)]
async fn fifty_requests_at_once_start_an_expired_session_again_once() {
    let test = TestEngine::started(store()).await;
    let merchant = allow(&test, &test.merchant().await, true).await;
    let payment = test.open(&merchant).await;
    let expired = expire(&test, &payment).await;
    let restart = async || {
        let (engine, merchant, expired) = (test.engine(), Arc::clone(&merchant), Arc::clone(&expired));
        tokio::spawn(async move { engine.payments.restart(&merchant, &expired).await }).await.unwrap()
    };
    let responses = futures_util::future::join_all((0..50).map(|_| restart())).await;
    let first = responses[0].as_ref().unwrap().payment.clone();
    assert!(responses.iter().all(|response| response.as_ref().unwrap().payment.id == first.id));
    assert_eq!(responses.iter().filter(|response| !response.as_ref().unwrap().is_replay).count(), 1);
    assert_ne!(first.id, expired.id);
    assert_eq!((first.state, first.amount, &first.description), (State::Pending, expired.amount, &expired.description));
    let lifetime = |payment: &Payment| payment.expires_at.since(payment.created_at);
    assert_eq!(lifetime(&first), lifetime(&expired));
    let named: Vec<&str> = first.metadata["restartOf"].texts().collect();
    assert_eq!(named, [expired.id.to_string()]);
    assert_eq!(test.engine().payments.list(PaymentQuery::all(merchant.id, 9)).await.unwrap().total, 2);
    // Its state does not matter: a later request leads to the session that was paid.
    test.pay(first.id);
    test.until_state(first.id, State::Completed).await;
    let again = restart().await.unwrap();
    assert_eq!((again.payment.id, again.payment.state, again.is_replay), (first.id, State::Completed, true));
}

#[tokio::test(start_paused = true)]
async fn deleted_metadata_does_not_start_a_second_session() {
    let test = TestEngine::started(store()).await;
    let merchant = allow(&test, &test.merchant().await, true).await;
    let payment = test.open(&merchant).await;
    let expired = expire(&test, &payment).await;
    let first = test.engine().payments.restart(&merchant, &expired).await.unwrap();
    test.engine().payments.delete_metadata(merchant.id, payment.id).await.unwrap();
    let expired = test.engine().payments.any(payment.id).await.unwrap();
    let second = test.engine().payments.restart(&merchant, &expired).await.unwrap();
    assert_eq!((second.payment.id, second.is_replay), (first.payment.id, true));
}

#[tokio::test(start_paused = true)]
async fn a_restart_needs_the_merchants_permission_an_expired_session_and_no_transfer() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let (partly_paid, expired) = (test.open(&merchant).await, test.open(&merchant).await);
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 400, &memo_of(partly_paid.id))]);
    let expired = expire(&test, &expired).await;
    test.until_state(partly_paid.id, State::SystemCancelled).await;
    let partly_paid = test.engine().payments.any(partly_paid.id).await.unwrap();
    let open = test.open(&merchant).await;
    let refused = |rejection| Err(EngineError::Restart(rejection));
    assert_eq!(restart(&test, &merchant, &expired).await, refused(RestartRejection::Disabled), "the default");
    let merchant = allow(&test, &merchant, true).await;
    assert_eq!(restart(&test, &merchant, &open).await, refused(RestartRejection::NotExpired));
    assert_eq!(restart(&test, &merchant, &partly_paid).await, refused(RestartRejection::HasTransfers));
    let first = restart(&test, &merchant, &expired).await.unwrap();
    let switched_off = test.engine().merchants.set_active(merchant.id, false).await.unwrap();
    assert_eq!(restart(&test, &switched_off, &expired).await, Err(EngineError::InactiveMerchant));
    let merchant = allow(&test, &merchant, false).await;
    assert_eq!(restart(&test, &merchant, &expired).await, refused(RestartRejection::Disabled));
    test.engine().merchants.set_active(merchant.id, true).await.unwrap();
    let merchant = allow(&test, &merchant, true).await;
    assert_eq!(restart(&test, &merchant, &expired).await, Ok(first));
    tokio::time::sleep(Duration::from_secs(25 * 3_600)).await;
    assert_eq!(restart(&test, &merchant, &expired).await, refused(RestartRejection::TooLate));
}
