//! The bytes of an idempotency key.

use engine::{
    idempotency::Remembered,
    ids::{MerchantId, PaymentId},
};
use prost::Message;

use super::{Bits, Damage, array, id, seal, time, unseal};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(bytes = "vec", tag = "1")]
    fingerprint: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    payment: Option<Bits>,
    #[prost(uint64, tag = "3")]
    at_ms: u64,
}

/// Returns a key's stored form. Whose it is and its digest are the table's key and not repeated.
pub(crate) fn remembered_to_bytes(remembered: &Remembered) -> Vec<u8> {
    let record = Record {
        fingerprint: remembered.fingerprint.to_vec(),
        payment: Some(remembered.payment.bits().into()),
        at_ms: remembered.at.millis(),
    };
    seal(VERSION, &record)
}

/// Reads a key.
pub(crate) fn remembered_from_bytes(merchant: MerchantId, key: [u8; 32], bytes: &[u8]) -> Result<Remembered, Damage> {
    let record: Record = unseal(VERSION, bytes)?;
    Ok(Remembered {
        merchant,
        key,
        fingerprint: array("fingerprint", &record.fingerprint)?,
        payment: PaymentId::from_bits(id("payment", record.payment)?),
        at: time(record.at_ms),
    })
}
