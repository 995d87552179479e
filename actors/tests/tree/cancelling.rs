//! Cancelling: block time decides, and a wallet that was opened gets more of it.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_transfer_in_flight_at_the_cancellation_completes_the_session() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let (in_time, in_part, too_late) =
        (test.open(&merchant).await, test.open(&merchant).await, test.open(&merchant).await);
    let mut cutoff = 0;
    for payment in [&in_time, &in_part, &too_late] {
        let cancelling = test.engine().payments.cancel(merchant.id, payment.id).await.unwrap();
        cutoff = cancelling.cancellation.unwrap().cutoff.seconds();
    }
    let pays = |id, units| transfer("alice", "blue.mugs", units, &memo_of(id));
    test.ledger.produce_at(cutoff, vec![pays(in_time.id, 1_000), pays(in_part.id, 400)]);
    test.ledger.produce_at(cutoff + 3, vec![pays(too_late.id, 1_000)]);
    test.ledger.settle();
    test.until_state(in_time.id, State::Completed).await;
    test.until_state(too_late.id, State::UserCancelled).await;
    let late = test.engine().payments.any(too_late.id).await.unwrap();
    assert_eq!((late.late_units(), late.needs_attention()), (1_000, true));
    let is_dropped = async || test.engine().payments.any(in_part.id).await.unwrap().active_cancellation().is_none();
    test.until("the request is dropped", is_dropped).await;
    test.ledger.produce(vec![pays(in_part.id, 600)]);
    test.ledger.settle();
    test.until_state(in_part.id, State::Completed).await;
    test.until("each is delivered once", async || test.receiver.count() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_reported_wallet_survives_a_restart_and_moves_the_cutoff() {
    let store = store();
    let test = TestEngine::started(Arc::clone(&store)).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let first = test.engine().payments.report_wallet(payment.id).await.unwrap();
    assert_eq!(test.engine().payments.report_wallet(payment.id).await.unwrap(), first, "one report is enough");
    let cancelling = test.engine().payments.cancel_checkout(payment.id).await.unwrap();
    let request = cancelling.cancellation.unwrap();
    assert_eq!(request.cutoff.since(request.requested_at), Duration::from_secs(60));
    let refused = test.engine().payments.report_wallet(payment.id).await;
    let cancelling = Rejection::Cancelling { id: payment.id, cutoff: request.cutoff };
    assert_eq!(refused, Err(EngineError::Rejected(cancelling)));
}
