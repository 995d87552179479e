//! A store that cannot be reached for a while, and commits whose outcome gets lost.

use super::*;
use crate::connection::{Connection, Lost};

async fn started() -> (TestEngine, Arc<Connection>) {
    let connection = Connection::to(&store());
    (TestEngine::started(Arc::clone(&connection) as Arc<dyn Store>).await, connection)
}

async fn total(test: &TestEngine, merchant: &engine::merchant::Merchant) -> u64 {
    test.engine().payments.list(PaymentQuery::all(merchant.id, 10)).await.unwrap().total
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_for_a_minute_refuses_requests_and_loses_nothing() {
    let (test, connection) = started().await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    connection.cut(true);
    let begun = tokio::time::Instant::now();
    let refused = test.engine().payments.open(&merchant, draft(), None).await;
    assert_eq!(refused, Err(EngineError::Unavailable));
    assert!(begun.elapsed() <= test.settings.store_timeout, "{:?}", begun.elapsed());
    // The outage is known: later calls are refused at once.
    let later = tokio::time::Instant::now();
    assert_eq!(test.engine().payments.any(payment.id).await, Err(EngineError::Unavailable));
    assert_eq!(test.engine().payments.cancel_checkout(payment.id).await, Err(EngineError::Unavailable));
    let update = engine::merchant::Update::check(engine::merchant::RawUpdate::default(), false).unwrap();
    assert_eq!(test.engine().merchants.update(merchant.id, update).await, Err(EngineError::Unavailable));
    assert!(later.elapsed() < Duration::from_secs(1), "{:?}", later.elapsed());
    test.pay(payment.id);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(test.engine().operations.health().await.unwrap().store_unavailable.unwrap() >= Duration::from_secs(60));
    connection.cut(false);
    test.until_state(payment.id, State::Completed).await;
    test.until("it is delivered", async || test.receiver.count() == 1).await;
    assert_eq!(test.engine().operations.health().await.unwrap().store_unavailable, None);
    assert_eq!(total(&test, &merchant).await, 1, "what was refused was written");
    test.open(&merchant).await;
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_waited_for() {
    let (test, connection) = started().await;
    let merchant = test.merchant().await;
    connection.cut(true);
    let (engine, owner) = (test.engine(), merchant.clone());
    let opening = tokio::spawn(async move { engine.payments.open(&owner, draft(), None).await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    connection.cut(false);
    opening.await.unwrap().unwrap();
    assert_eq!(total(&test, &merchant).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_unknown_outcome_is_made_exactly_once() {
    for lost in [Lost::Applied, Lost::NotApplied, Lost::Late] {
        let (test, connection) = started().await;
        let merchant = test.merchant().await;
        connection.lose(lost);
        let payment = test.open(&merchant).await;
        assert_eq!(connection.resolved(), 1, "{lost:?}");
        for outcome in connection.deliver_late().await {
            assert!(
                matches!(outcome, Err(CommitError::Conflict { .. })),
                "a forbidden commit was applied: {outcome:?}"
            );
        }
        assert_eq!(total(&test, &merchant).await, 1, "{lost:?}");
        connection.lose(lost);
        let cancelled = test.engine().payments.cancel_checkout(payment.id).await.unwrap();
        assert_eq!((cancelled.version, cancelled.cancellation.is_some()), (payment.version + 1, true), "{lost:?}");
        assert_eq!(test.engine().payments.any(payment.id).await.unwrap(), cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_stays_unknown_is_found_out_by_the_next_order() {
    let (test, connection) = started().await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    test.engine().payments.report_wallet(payment.id).await.unwrap();
    connection.lose(Lost::Cut);
    assert_eq!(test.engine().payments.cancel_checkout(payment.id).await, Err(EngineError::StoreFailed));
    tokio::time::sleep(Duration::from_secs(60)).await;
    connection.cut(false);
    let cancelled = test.engine().payments.cancel_checkout(payment.id).await.unwrap();
    assert!(cancelled.cancellation.is_some());
    assert_eq!(cancelled.version, payment.version + 2, "it was cancelled twice");
}
