//! What the engine removes by itself when nobody needs it any more.

use super::*;
use engine::{
    idempotency::{Made, Remembered},
    ids::{MerchantId, PaymentId},
};

#[tokio::test(start_paused = true)]
async fn metadata_of_payments_that_ended_goes_after_its_retention_and_the_audit_log_says_so() {
    let mut world = World::prepared(store());
    world.settings.poll_interval = Duration::from_secs(600);
    world.settings.metadata_retention = Some(Duration::from_secs(10 * 86_400));
    world.start().await;
    let merchant = world.merchant().await;
    let text = engine::fields::MetadataValue::Text("Ada".to_owned());
    let metadata = engine::fields::Metadata::from([("customer".to_owned(), text)]);
    let draft = Draft { metadata, ..draft() };
    let payment = world.gateway().open_payment(&merchant, draft, None).await.unwrap().payment;
    world.pay(payment.id);
    world.until_state(payment.id, State::Completed).await;
    let read = async || world.gateway().payment(merchant.id, payment.id).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9 * 86_400)).await;
    assert!(!read().await.metadata.is_empty());
    tokio::time::sleep(Duration::from_secs(2 * 86_400 + 3_600)).await;
    let left = read().await;
    assert!(left.metadata.is_empty() && left.description == "Blue mug");
    let query = storage::AuditQuery { before: None, limit: 9, merchant: Some(merchant.id) };
    let told = world.gateway().audit(query).await.unwrap();
    let told: Vec<_> = told.iter().filter(|entry| entry.action == "payment_metadata_deleted").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (told[0].subject.as_deref(), &told[0].actor),
        (Some(&*payment.id.to_string()), &engine::audit::Actor::default())
    );
}

#[tokio::test(start_paused = true)]
async fn all_dead_idempotency_keys_go_at_once() {
    let world = World::started(store()).await;
    let at = world.gateway().now();
    for chunk in 0..3_u32 {
        let key = |n: u32| {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&n.to_be_bytes());
            let (merchant, made) = (MerchantId::from_bits(1), Made::Payment(PaymentId::from_bits(1)));
            let remembered = Remembered { merchant, key: digest, fingerprint: [0; 32], made, at };
            Write::Remember { remembered, most: u64::MAX }
        };
        let writes = (chunk * 1_000..(chunk + 1) * 1_000).map(key).collect();
        world.env.store.commit(Batch { writes }).await.unwrap();
    }
    assert_eq!(world.env.store.oldest_key().await.unwrap(), Some(at));
    // A day, and at most two rounds.
    tokio::time::sleep(Duration::from_secs(24 * 3_600 + 600)).await;
    assert_eq!(world.env.store.oldest_key().await.unwrap(), None);
}
