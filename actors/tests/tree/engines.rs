//! Several engines over one store: what one of them did not do itself.

use engine::{ids::PaymentId, payment::Payment};
use storage::{Batch, Write};

use super::*;
use crate::world::Manner;

/// Changes a payment as another engine would: in the store, and without a word to this one.
async fn change_elsewhere(world: &World, id: PaymentId, change: impl FnOnce(&mut Payment)) {
    let mut payment = world.env.store.payment(id).await.unwrap().unwrap();
    let expected = Some(payment.version);
    payment.version += 1;
    change(&mut payment);
    let write = Write::Payment { payment: Arc::new(payment), expected };
    world.env.store.commit(Batch::of(write)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_snapshot_rejects_nothing() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    world.engine().payments.cancel_checkout(payment.id).await.unwrap();
    let refused = world.engine().payments.report_wallet(payment.id).await;
    assert!(matches!(refused, Err(EngineError::Rejected(Rejection::Cancelling { .. }))), "{refused:?}");
    change_elsewhere(&world, payment.id, |payment| payment.cancellation = None).await;
    let reported = world.engine().payments.report_wallet(payment.id).await.unwrap();
    assert!(reported.cancellation.is_none());
    assert_eq!(reported.version, world.env.store.payment(payment.id).await.unwrap().unwrap().version);
}

#[tokio::test(start_paused = true)]
async fn watchers_see_what_another_engine_changed_once_this_one_meets_it() {
    let world = World::started(store()).await;
    let merchant = world.merchant().await;
    let payment = world.open(&merchant).await;
    let mut watch = world.engine().payments.watch(payment.id).await.unwrap();
    assert_eq!(watch.next().await.unwrap().version, payment.version);
    change_elsewhere(&world, payment.id, |payment| payment.redirect_url = None).await;
    // Its commit meets the other engine's, and is decided again over it.
    world.engine().payments.cancel_checkout(payment.id).await.unwrap();
    let seen = watch.next().await.unwrap();
    assert_eq!((seen.version, seen.cancellation), (payment.version + 1, None));
    let seen = watch.next().await.unwrap();
    assert_eq!((seen.version, seen.cancellation.is_some()), (payment.version + 2, true));
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_an_engine_that_died_is_settled_by_the_one_that_meets_it() {
    let store: Arc<dyn Store> = Connection::to(&store());
    let one = World::started(Arc::clone(&store)).await;
    let merchant = one.merchant().await;
    let payment = one.open(&merchant).await;
    // This engine has the payment without a claim.
    one.engine().payments.report_wallet(payment.id).await.unwrap();
    let transaction = x402::payment_of(&one, &payment, "agent");
    one.ledger.set_manner(Manner::SwallowsEverything);
    let mut two = World::prepared(Arc::clone(&store));
    two.env = actors::Environment { entropy: Arc::new(world_entropy(9)), ..one.env.clone() };
    two.start().await;
    let settling = x402::settling(&two, x402::request(payment.id, &transaction, "n-1"));
    two.until("it is claimed", async || store.payment(payment.id).await.unwrap().unwrap().claim.is_some()).await;
    two.stop().await;
    settling.abort();
    one.ledger.set_manner(Manner::Honest);
    assert_eq!(one.ledger.count_on_chain(x402::id_of(&transaction)), 0);
    let refused = one.engine().payments.cancel_checkout(payment.id).await;
    assert!(matches!(refused, Err(EngineError::Rejected(_))), "{refused:?}");
    let is_on_chain = async || {
        one.ledger.produce_mempool();
        one.ledger.count_on_chain(x402::id_of(&transaction)) == 1
    };
    one.until("it is on the chain", is_on_chain).await;
    one.ledger.settle();
    one.until_state(payment.id, State::Completed).await;
}
