//! Cancelling: block time decides, and a wallet that was opened gets more of it.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_transfer_on_its_way_when_somebody_cancels_completes_the_session() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let (in_time, in_part, too_late) =
        (world.open(&merchant).await, world.open(&merchant).await, world.open(&merchant).await);
    let mut cutoff = 0;
    for payment in [&in_time, &in_part, &too_late] {
        let asked = world.engine().payments.cancel(merchant.id, payment.id).await.unwrap();
        cutoff = asked.cancellation.unwrap().cutoff.seconds();
    }
    let pays = |id, units| transfer("alice", "blue.mugs", units, &memo_of(id));
    world.ledger.produce_at(cutoff, vec![pays(in_time.id, 1_000), pays(in_part.id, 400)]);
    world.ledger.produce_at(cutoff + 3, vec![pays(too_late.id, 1_000)]);
    world.ledger.settle();
    world.until_state(in_time.id, State::Completed).await;
    world.until_state(too_late.id, State::UserCancelled).await;
    let late = world.engine().payments.any(too_late.id).await.unwrap();
    assert_eq!((late.late_units(), late.needs_attention()), (1_000, true));
    let is_dropped = async || world.engine().payments.any(in_part.id).await.unwrap().active_cancellation().is_none();
    world.until("the request is dropped", is_dropped).await;
    world.ledger.produce(vec![pays(in_part.id, 600)]);
    world.ledger.settle();
    world.until_state(in_part.id, State::Completed).await;
    world.until("each is told once", async || world.receiver.count() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_reported_wallet_survives_a_restart_and_moves_the_cutoff() {
    let store = store();
    let world = World::started(Arc::clone(&store)).await;
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    let first = world.engine().payments.report_wallet(payment.id).await.unwrap();
    assert_eq!(world.engine().payments.report_wallet(payment.id).await.unwrap(), first, "one report is enough");
    let asked = world.engine().payments.cancel_checkout(payment.id).await.unwrap();
    let request = asked.cancellation.unwrap();
    assert_eq!(request.cutoff.since(request.requested_at), Duration::from_secs(60));
    let refused = world.engine().payments.report_wallet(payment.id).await;
    let cancelling = Rejection::Cancelling { id: payment.id, cutoff: request.cutoff };
    assert_eq!(refused, Err(EngineError::Rejected(cancelling)));
}
