//! Several engines over one store: what one of them did not do itself.

use engine::{
    ids::{EndpointId, PaymentId},
    payment::Payment,
};
use storage::{Batch, Duty, EngineId, Write};

use super::*;
use crate::environment::Manner;

/// Changes a payment as another engine would: in the store, and without a word to this one.
async fn change_elsewhere(test: &TestEngine, id: PaymentId, change: impl FnOnce(&mut Payment)) {
    let mut payment = test.env.store.payment(id).await.unwrap().unwrap();
    let expected = Some(payment.version);
    payment.version += 1;
    change(&mut payment);
    let write = Write::Payment { payment: Arc::new(payment), expected };
    test.env.store.commit(Batch::of(write)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_snapshot_rejects_nothing() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    test.engine().payments.cancel_checkout(payment.id).await.unwrap();
    let refused = test.engine().payments.report_wallet(payment.id).await;
    assert!(matches!(refused, Err(EngineError::Rejected(Rejection::Cancelling { .. }))), "{refused:?}");
    change_elsewhere(&test, payment.id, |payment| payment.cancellation = None).await;
    let reported = test.engine().payments.report_wallet(payment.id).await.unwrap();
    assert!(reported.cancellation.is_none());
    assert_eq!(reported.version, test.env.store.payment(payment.id).await.unwrap().unwrap().version);
}

#[tokio::test(start_paused = true)]
async fn watchers_see_what_another_engine_changed_once_this_one_meets_it() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let mut watch = test.engine().payments.watch(payment.id).await.unwrap();
    assert_eq!(watch.next().await.unwrap().version, payment.version);
    change_elsewhere(&test, payment.id, |payment| payment.redirect_url = None).await;
    // Its commit meets the other engine's, and is decided again over it.
    test.engine().payments.cancel_checkout(payment.id).await.unwrap();
    let seen = watch.next().await.unwrap();
    assert_eq!((seen.version, seen.cancellation), (payment.version + 1, None));
    let seen = watch.next().await.unwrap();
    assert_eq!((seen.version, seen.cancellation.is_some()), (payment.version + 2, true));
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_an_engine_that_died_is_settled_by_the_one_that_meets_it() {
    let store: Arc<dyn Store> = Connection::to(&store());
    let one = TestEngine::started(Arc::clone(&store)).await;
    let merchant = one.merchant().await;
    let payment = one.open(&merchant).await;
    // This engine has the payment without a claim.
    one.engine().payments.report_wallet(payment.id).await.unwrap();
    let transaction = x402::payment_of(&one, &payment, "agent");
    one.ledger.set_manner(Manner::SwallowsEverything);
    let mut two = TestEngine::prepared(Arc::clone(&store));
    two.env = actors::Environment { entropy: Arc::new(counting_entropy(9)), ..one.env.clone() };
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

/// Two engines over one database, each with a connection of its own; the first one began earlier and holds the duties.
pub(crate) async fn two_engines() -> (Arc<dyn Store>, [Arc<Connection>; 2], [TestEngine; 2]) {
    let database = store();
    let connections = [(); 2].map(|()| Connection::to(&database));
    let one = TestEngine::started(Arc::clone(&connections[0]) as Arc<dyn Store>).await;
    let store = Arc::clone(&connections[1]) as Arc<dyn Store>;
    let mut two = TestEngine::prepared(Arc::clone(&store));
    two.env = actors::Environment { entropy: Arc::new(counting_entropy(9)), store, ..one.env.clone() };
    (two.ledger, two.receiver) = (Arc::clone(&one.ledger), Arc::clone(&one.receiver));
    two.start().await;
    // The first one notices the second one when it renews its lease.
    tokio::time::sleep(one.settings.lease).await;
    (database, connections, [one, two])
}

fn count_received(test: &TestEngine) -> usize {
    test.receiver.received.lock().unwrap().len()
}

async fn holder_of(database: &Arc<dyn Store>, duty: Duty) -> Option<(EngineId, u64)> {
    let membership = database.membership().await.unwrap();
    let record = membership.duties.iter().find(|record| record.duty == duty)?;
    Some((record.holder?, record.term))
}

#[tokio::test(start_paused = true)]
async fn duties_of_an_engine_that_is_gone_are_taken_over_within_a_lease() {
    let (database, [connection, _], [one, two]) = two_engines().await;
    let merchant = two.merchant().await;
    let (holder, term) = holder_of(&database, Duty::Scanner).await.unwrap();
    connection.cut(true);
    let payment = two.open(&merchant).await;
    two.pay(payment.id);
    let gone_at = tokio::time::Instant::now();
    two.until_state(payment.id, State::Completed).await;
    two.until("it is delivered", async || count_received(&two) > 0).await;
    let took = gone_at.elapsed();
    assert!(took < two.settings.lease + Duration::from_secs(30), "{took:?}");
    let (successor, next_term) = holder_of(&database, Duty::Scanner).await.unwrap();
    assert_ne!(successor, holder);
    assert!(next_term > term, "{next_term} after {term}");
    drop(one);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_deposed_sends_nothing_that_its_successor_has_sent() {
    let (database, [connection, _], [one, two]) = two_engines().await;
    let merchant = two.merchant().await;
    let bucket = Duty::webhooks_of(EndpointId::default_of(merchant.id));
    let before = holder_of(&database, bucket).await.unwrap();
    // The first engine stands still for two leases: the second one takes over what it held.
    connection.cut(true);
    let payment = two.open(&merchant).await;
    two.pay(payment.id);
    two.until_state(payment.id, State::Completed).await;
    two.until("it is delivered", async || count_received(&two) == 1).await;
    tokio::time::sleep(two.settings.lease * 2).await;
    connection.cut(false);
    tokio::time::sleep(two.settings.lease * 4).await;
    assert_eq!(count_received(&two), 1, "nobody sends it again");
    let after = holder_of(&database, bucket).await.unwrap();
    assert!(after == before || after.1 > before.1, "{after:?} after {before:?}");
    // The first engine has a lease again, and settles what it is asked for.
    assert_eq!(database.leases().await.unwrap().len(), 2);
    let payment = one.open(&merchant).await;
    one.pay(payment.id);
    one.until_state(payment.id, State::Completed).await;
    one.until("it is delivered", async || count_received(&one) == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_whose_claim_crashes_is_sent_all_the_same() {
    let (_database, _connections, [one, two]) = two_engines().await;
    let merchant = two.merchant().await;
    let point = "webhook: claimed, not sent";
    one.trap.arm(point, 1);
    let payment = two.open(&merchant).await;
    two.pay(payment.id);
    two.until_state(payment.id, State::Completed).await;
    two.until("it is delivered", async || count_received(&two) == 1).await;
    assert!(one.trap.reached.lock().unwrap().iter().filter(|reached| **reached == point).count() > 1);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(count_received(&two), 1);
}
