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
        /// Returns what was done under an idempotency key, if it has not been forgotten yet.
        remembered(merchant: MerchantId, key: [u8; 32]) -> Option<IdempotencyRecord>;

        /// Returns when the oldest idempotency key was made that has not been forgotten yet.
        oldest_key() -> Option<Timestamp>;
    }
}
