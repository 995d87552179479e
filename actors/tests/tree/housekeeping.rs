//! What the engine removes by itself when nobody needs it any more.

use super::*;
use actors::{Caller, Target, X402Error, X402Request};
use engine::{
    idempotency::{IdempotencyRecord, Resource},
    ids::{MerchantId, PaymentId},
    payment::{Resolution, ResolutionKind},
    x402::{Reason, Requirements},
};

use crate::{
    environment::name,
    facilitated::requirements,
    x402::{id_of, op, request, signed, until_broadcast},
};

#[tokio::test(start_paused = true)]
async fn metadata_of_final_payments_is_deleted_after_its_retention_with_an_audit_event() {
    let mut test = TestEngine::prepared(store());
    test.settings.poll_interval = Duration::from_secs(600);
    test.settings.metadata_retention = Some(Duration::from_secs(10 * 86_400));
    test.start().await;
    let merchant = test.merchant().await;
    let text = engine::fields::MetadataValue::Text("Ada".to_owned());
    let metadata = engine::fields::Metadata::from([("customer".to_owned(), text)]);
    let draft = Draft { metadata, ..draft() };
    let payment = test.engine().payments.open(&merchant, draft, None).await.unwrap().payment;
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    let read = async || test.engine().payments.get(merchant.id, payment.id).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9 * 86_400)).await;
    assert!(!read().await.metadata.is_empty());
    tokio::time::sleep(Duration::from_secs(2 * 86_400 + 3_600)).await;
    let left = read().await;
    assert!(left.metadata.is_empty() && left.description == "Blue mug");
    let query = storage::AuditQuery { before: None, limit: 9, merchant: Some(merchant.id) };
    let entries = test.engine().operations.audit(query).await.unwrap();
    let entries: Vec<_> = entries.iter().filter(|entry| entry.action == "payment_metadata_deleted").collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(
        (entries[0].subject.as_deref(), &entries[0].actor),
        (Some(&*payment.id.to_string()), &engine::audit::Actor::default())
    );
}

#[tokio::test(start_paused = true)]
async fn notes_of_decisions_go_after_their_retention_and_the_decisions_stay() {
    let mut test = TestEngine::prepared(store());
    test.settings.poll_interval = Duration::from_secs(600);
    test.settings.note_retention = Some(Duration::from_secs(10 * 86_400));
    test.start().await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    test.pay(payment.id);
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    let read = async || test.engine().payments.get(merchant.id, payment.id).await.unwrap();
    test.until("both are seen", async || read().await.needs_attention()).await;
    let decision = Resolution {
        kind: ResolutionKind::Accepted,
        by: "key_1".to_owned(),
        at: test.engine().now(),
        note: "Ada calls back on Monday".to_owned(),
        tx_id: None,
    };
    test.engine().payments.resolve(&merchant, payment.id, decision.clone()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9 * 86_400)).await;
    assert_eq!(read().await.resolution, Some(decision.clone()));
    tokio::time::sleep(Duration::from_secs(2 * 86_400 + 3_600)).await;
    assert_eq!(read().await.resolution, Some(Resolution { note: String::new(), ..decision }));
    let query = storage::AuditQuery { before: None, limit: 9, merchant: Some(merchant.id) };
    let entries = test.engine().operations.audit(query).await.unwrap();
    assert_eq!(entries.iter().filter(|entry| entry.action == "payment_note_deleted").count(), 1, "{entries:?}");
}

#[tokio::test(start_paused = true)]
async fn all_dead_idempotency_keys_go_at_once() {
    let test = TestEngine::started(store()).await;
    let at = test.engine().now();
    for chunk in 0..3_u32 {
        let key = |n: u32| {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&n.to_be_bytes());
            let (merchant, made) = (MerchantId::from_bits(1), Resource::Payment(PaymentId::from_bits(1)));
            let remembered = IdempotencyRecord { merchant, key: digest, fingerprint: [0; 32], resource: made, at };
            Write::Remember { remembered, most: u64::MAX }
        };
        let batch = (chunk * 1_000..(chunk + 1) * 1_000).map(key).collect();
        test.env.store.commit(batch).await.unwrap();
    }
    assert_eq!(test.env.store.oldest_key().await.unwrap(), Some(at));
    // A day, and at most two rounds.
    tokio::time::sleep(Duration::from_secs(24 * 3_600 + 600)).await;
    assert_eq!(test.env.store.oldest_key().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn claims_without_a_merchant_are_deleted_a_week_after_their_transactions_expired() {
    const WEEK: u64 = 7 * 86_400;
    let test = TestEngine::started(store()).await;
    let shop = test.merchant().await;
    let soon = test.engine().now() + Duration::from_secs(60);
    let paid = async |nonce: &str, to: &str, seller: Option<MerchantId>| {
        let transaction = signed(vec![op("agent", to, 1_000, &format!("x402:{nonce}"))], soon, "agent");
        let target = Target::Requirements(Requirements { pay_to: name(to), ..requirements("/a") });
        let payment_request = X402Request { target, ..request(PaymentId::from_bits(0), &transaction, nonce) };
        let (engine, again) = (test.engine(), payment_request.clone());
        let settlement =
            tokio::spawn(async move { engine.x402.settle_for(&payment_request, &Caller { seller, key: None }).await });
        until_broadcast(&test, &transaction).await;
        test.ledger.produce_mempool();
        settlement.await.unwrap().unwrap();
        (id_of(&transaction), again)
    };
    let (gone, again) = paid("n-1", "somebody", None).await;
    let (sold, _) = paid("n-2", "blue.mugs", None).await;
    let (of_seller, _) = paid("n-3", "somebody", Some(shop.id)).await;
    let is_kept = async |tx_id| test.env.store.claim(tx_id).await.unwrap().is_some();
    let until_seen_to = async |seconds: u64| {
        test.ledger.produce_at(seconds, Vec::new());
        test.ledger.settle();
        // The housekeeper looks every five minutes of the later of both clocks.
        tokio::time::sleep(Duration::from_secs(900)).await;
    };
    until_seen_to(soon.seconds() + WEEK - 3_600).await;
    assert!(is_kept(gone).await, "not yet");
    until_seen_to(soon.seconds() + WEEK + 3_600).await;
    assert_eq!((is_kept(gone).await, is_kept(sold).await, is_kept(of_seller).await), (false, true, true));
    let Err(X402Error::Refused(refused)) = test.engine().x402.settle(&again).await else { panic!("reported again") };
    assert_eq!(refused.reason, Reason::PaymentExpired);
}
