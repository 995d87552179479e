//! The audit log and the deeds it tells of: both on disk, or neither.

use super::*;
use actors::Engine;
use engine::{
    audit::Actor,
    ids::KeyId,
    merchant::Merchant,
    payment::{Resolution, ResolutionKind},
};

/// Where a session has stored a change and nobody has heard of it.
const STORED: &str = "payment: committed, effects not run";
/// Where a session is about to store one.
const NOT_STORED: &str = "payment: applied, not committed";

impl TestEngine {
    /// The handle of a merchant at a key of its own.
    fn keyed(&self, merchant: &Merchant) -> Engine {
        let actor = Actor { merchant: Some(merchant.id), key: Some(key(merchant)), ip: Some("192.0.2.1".to_owned()) };
        self.engine().by(actor)
    }

    /// What the log tells of a deed: whom it concerned, and who did it.
    async fn entries(&self, merchant: &Merchant, action: &str) -> Vec<(Option<String>, Actor)> {
        let query = storage::AuditQuery { before: None, limit: 100, merchant: Some(merchant.id) };
        let log = self.engine().operations.audit(query).await.unwrap();
        let of_these = log.into_iter().filter(|entry| entry.action == action);
        of_these.map(|entry| (entry.subject, entry.actor)).collect()
    }
}

fn key(merchant: &Merchant) -> KeyId {
    merchant.keys[0].id
}

fn resolution(test: &TestEngine) -> Resolution {
    let (at, note) = (test.engine().now(), "sorted".to_owned());
    Resolution { kind: ResolutionKind::Accepted, by: "key_1".to_owned(), at, note, tx_id: None }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_was_stored_before_a_crash_is_in_the_log_and_one_that_was_not_is_not() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let (lost, kept) = (test.open(&merchant).await, test.open(&merchant).await);
    test.trap.arm(NOT_STORED, 1);
    assert_eq!(test.keyed(&merchant).payments.cancel(merchant.id, lost.id).await, Err(EngineError::StoreFailed));
    assert_eq!(test.entries(&merchant, "payment_cancel_requested").await, [], "nothing was done");
    test.trap.arm(STORED, 1);
    assert_eq!(test.keyed(&merchant).payments.cancel(merchant.id, kept.id).await, Err(EngineError::StoreFailed));
    let is_requested = async |id| test.engine().payments.any(id).await.unwrap().pending_cancellation().is_some();
    assert_eq!((is_requested(lost.id).await, is_requested(kept.id).await), (false, true));
    let entries = test.entries(&merchant, "payment_cancel_requested").await;
    let by = Actor { merchant: Some(merchant.id), key: Some(key(&merchant)), ip: Some("192.0.2.1".to_owned()) };
    assert_eq!(entries, [(Some(kept.id.to_string()), by)]);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_audited_once_and_only_if_a_merchant_requested_it() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let stranger = test.merchant_of("red.mugs").await;
    let (own, customers, paid) = (test.open(&merchant).await, test.open(&merchant).await, test.open(&merchant).await);
    let refused = test.keyed(&stranger).payments.cancel(stranger.id, own.id).await;
    assert_eq!(refused, Err(EngineError::PaymentNotFound));
    let cancels = (0..10).map(|_| async { test.keyed(&merchant).payments.cancel(merchant.id, own.id).await });
    let results = futures_util::future::join_all(cancels).await;
    assert!(results.iter().all(|result| result.as_ref().unwrap().pending_cancellation().is_some()));
    test.engine().payments.cancel_checkout(customers.id).await.unwrap();
    test.keyed(&merchant).payments.cancel(merchant.id, customers.id).await.unwrap();
    test.pay(paid.id);
    test.until_state(paid.id, State::Completed).await;
    let refused = test.keyed(&merchant).payments.cancel(merchant.id, paid.id).await;
    assert!(matches!(refused, Err(EngineError::Rejected(_))), "{refused:?}");
    let entries = test.entries(&merchant, "payment_cancel_requested").await;
    assert_eq!(entries.into_iter().map(|(subject, _)| subject).collect::<Vec<_>>(), [Some(own.id.to_string())]);
    assert_eq!(test.entries(&stranger, "payment_cancel_requested").await, []);
}

#[tokio::test(start_paused = true)]
async fn an_assignment_and_a_decision_that_were_stored_before_a_crash_are_in_the_log() {
    let test = TestEngine::started(store()).await;
    let merchant = test.owner().await;
    let payment = test.open(&merchant).await;
    test.ledger.produce(vec![transfer("alice", "blue.mugs", 400, "thanks")]);
    test.ledger.settle();
    let unmatched_transfers = async || test.engine().payments.unmatched(&merchant, None, 9).await.unwrap().rows;
    test.until("the unmatched transfer is stored", async || unmatched_transfers().await.len() == 1).await;
    let place = unmatched_transfers().await[0].transfer.position;
    let assign = async || test.keyed(&merchant).payments.assign(&merchant, place, payment.id, "key_1".to_owned()).await;
    test.trap.arm(STORED, 1);
    assert_eq!(assign().await, Err(EngineError::StoreFailed), "the session crashed");
    let id = format!("{}-{}-{}", place.block_num, place.tx_in_block, place.op_in_tx);
    let subjects = async |action| {
        let entries = test.entries(&merchant, action).await;
        entries.into_iter().map(|(subject, _)| subject.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(subjects("transfer_assigned").await, [id.as_str()]);
    assert_eq!(assign().await.unwrap().transfers.len(), 1, "a repeated request returns it");
    assert_eq!(subjects("transfer_assigned").await, [id], "and nothing is done twice");
    let resolve = async || test.keyed(&merchant).payments.resolve(&merchant, payment.id, resolution(&test)).await;
    test.trap.arm(NOT_STORED, 1);
    assert_eq!(resolve().await, Err(EngineError::StoreFailed));
    assert_eq!(subjects("payment_resolved").await, Vec::<String>::new());
    test.trap.arm(STORED, 1);
    assert_eq!(resolve().await, Err(EngineError::StoreFailed));
    assert!(test.engine().payments.any(payment.id).await.unwrap().resolution.is_some());
    assert_eq!(subjects("payment_resolved").await, [payment.id.to_string()]);
}
