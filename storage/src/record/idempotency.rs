//! The stored form of an idempotency key.

use engine::{
    idempotency::{IdempotencyRecord, Resource},
    ids::{DeliveryId, MerchantId, PaymentId},
    ledger::TxId,
};
use prost::Message;

use crate::record::wire::{Bits, Damage, array, id, seal, time, unseal};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct StoredKey {
    #[prost(bytes = "vec", tag = "1")]
    fingerprint: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    payment: Option<Bits>,
    #[prost(uint64, tag = "3")]
    at_ms: u64,
    #[prost(bytes = "vec", tag = "4")]
    settled: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    delivery: Option<Bits>,
}

/// Returns the stored form of an idempotency key. Its merchant and its digest are the table's key and not repeated.
pub(crate) fn idempotency_to_bytes(record: &IdempotencyRecord) -> Vec<u8> {
    let mut stored =
        StoredKey { fingerprint: record.fingerprint.to_vec(), at_ms: record.at.millis(), ..StoredKey::default() };
    match record.resource {
        Resource::Payment(id) => stored.payment = Some(id.bits().into()),
        Resource::Settlement(tx_id) => stored.settled = tx_id.0.to_vec(),
        Resource::Delivery(id) => stored.delivery = Some(id.bits().into()),
    }
    seal(VERSION, &stored)
}

/// Decodes an idempotency key.
pub(crate) fn idempotency_from_bytes(
    merchant: MerchantId,
    key: [u8; 32],
    bytes: &[u8],
) -> Result<IdempotencyRecord, Damage> {
    let record: StoredKey = unseal(VERSION, bytes)?;
    Ok(IdempotencyRecord {
        merchant,
        key,
        fingerprint: array("fingerprint", &record.fingerprint)?,
        resource: if record.delivery.is_some() {
            Resource::Delivery(DeliveryId::from_bits(id("delivery", record.delivery)?))
        } else if record.settled.is_empty() {
            Resource::Payment(PaymentId::from_bits(id("payment", record.payment)?))
        } else {
            Resource::Settlement(TxId(array("settled", &record.settled)?))
        },
        at: time(record.at_ms),
    })
}

#[cfg(test)]
mod tests {
    use engine::time::Timestamp;

    use super::*;

    /// The description of the setting `limits.idempotency_keys` states this bound.
    #[test]
    fn a_key_takes_at_most_200_bytes() {
        let (merchant, key, fingerprint) = (MerchantId::from_bits(u128::MAX), [u8::MAX; 32], [u8::MAX; 32]);
        let at = Timestamp::from_millis(u64::MAX >> 12);
        let resources = [
            Resource::Payment(PaymentId::from_bits(u128::MAX)),
            Resource::Settlement(TxId([u8::MAX; 20])),
            Resource::Delivery(DeliveryId::from_bits(u128::MAX)),
        ];
        // The key of the row, and the row of the index by time.
        let keys = (16 + 32) + (8 + 16 + 32);
        for resource in resources {
            let record = idempotency_to_bytes(&IdempotencyRecord { merchant, key, fingerprint, resource, at });
            assert!(keys + record.len() <= 200, "{resource:?}: {}", keys + record.len());
        }
    }
}
