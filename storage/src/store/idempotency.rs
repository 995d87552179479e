//! Idempotency keys.

use engine::{idempotency::IdempotencyRecord, ids::MerchantId, time::Timestamp};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// Idempotency keys.
    IdempotencyKeys {
        /// Returns the record of an idempotency key, unless it was deleted.
        remembered(merchant: MerchantId, key: [u8; 32]) -> Option<IdempotencyRecord>;

        /// Returns when the oldest stored idempotency key was created.
        oldest_key() -> Option<Timestamp>;
    }
}
