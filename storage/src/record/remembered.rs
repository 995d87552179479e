//! The bytes of an idempotency key.

use engine::{
    idempotency::{IdempotencyRecord, Resource},
    ids::{DeliveryId, MerchantId, PaymentId},
    ledger::TxId,
};
use prost::Message;

use crate::record::wire::{Bits, Damage, array, id, seal, time, unseal};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct Record {
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

/// Returns a key's stored form. Whose it is and its digest are the table's key and not repeated.
pub(crate) fn remembered_to_bytes(remembered: &IdempotencyRecord) -> Vec<u8> {
    let mut record =
        Record { fingerprint: remembered.fingerprint.to_vec(), at_ms: remembered.at.millis(), ..Record::default() };
    match remembered.resource {
        Resource::Payment(id) => record.payment = Some(id.bits().into()),
        Resource::Settlement(tx_id) => record.settled = tx_id.0.to_vec(),
        Resource::Delivery(id) => record.delivery = Some(id.bits().into()),
    }
    seal(VERSION, &record)
}

/// Reads a key.
pub(crate) fn remembered_from_bytes(
    merchant: MerchantId,
    key: [u8; 32],
    bytes: &[u8],
) -> Result<IdempotencyRecord, Damage> {
    let record: Record = unseal(VERSION, bytes)?;
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

    /// The setting `limits.idempotency_keys` promises this bound.
    #[test]
    fn a_key_takes_at_most_200_bytes() {
        let (merchant, key, fingerprint) = (MerchantId::from_bits(u128::MAX), [u8::MAX; 32], [u8::MAX; 32]);
        let at = Timestamp::from_millis(u64::MAX >> 12);
        let made = [
            Resource::Payment(PaymentId::from_bits(u128::MAX)),
            Resource::Settlement(TxId([u8::MAX; 20])),
            Resource::Delivery(DeliveryId::from_bits(u128::MAX)),
        ];
        // The key of its row, and its row in the list by time.
        let keys = (16 + 32) + (8 + 16 + 32);
        for made in made {
            let record = remembered_to_bytes(&IdempotencyRecord { merchant, key, fingerprint, resource: made, at });
            assert!(keys + record.len() <= 200, "{made:?}: {}", keys + record.len());
        }
    }
}
