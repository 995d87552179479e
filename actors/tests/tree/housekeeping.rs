//! What the engine removes by itself when nobody needs it any more.

use super::*;
use engine::{
    idempotency::{Made, Remembered},
    ids::{MerchantId, PaymentId},
};

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
