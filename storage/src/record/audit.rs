//! The stored form of an audit log entry.

use engine::{
    audit::{Actor, Entry, FieldChange},
    ids::{KeyId, MerchantId},
};
use prost::Message;

use crate::record::wire::{Bits, Damage, id, seal, time, unseal};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct EntryRecord {
    #[prost(uint64, tag = "1")]
    at_ms: u64,
    #[prost(message, optional, tag = "2")]
    actor: Option<Bits>,
    #[prost(message, optional, tag = "3")]
    key: Option<Bits>,
    #[prost(string, optional, tag = "4")]
    ip: Option<String>,
    #[prost(string, tag = "5")]
    action: String,
    #[prost(message, optional, tag = "6")]
    merchant: Option<Bits>,
    #[prost(string, optional, tag = "7")]
    subject: Option<String>,
    #[prost(message, repeated, tag = "8")]
    changes: Vec<ChangeRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct ChangeRecord {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, optional, tag = "2")]
    before: Option<String>,
    #[prost(string, optional, tag = "3")]
    after: Option<String>,
}

/// Returns the stored form of an entry. The sequence number is the table's key and not repeated.
pub(crate) fn audit_to_bytes(entry: Entry) -> Vec<u8> {
    let change = |change: FieldChange| ChangeRecord { field: change.field, before: change.before, after: change.after };
    let record = EntryRecord {
        at_ms: entry.at.millis(),
        actor: entry.actor.merchant.map(|id| id.bits().into()),
        key: entry.actor.key.map(|id| id.bits().into()),
        ip: entry.actor.ip,
        action: entry.action,
        merchant: Some(entry.merchant.bits().into()),
        subject: entry.subject,
        changes: entry.changes.into_iter().map(change).collect(),
    };
    seal(VERSION, &record)
}

/// Decodes an entry.
pub(crate) fn audit_from_bytes(seq: u64, bytes: &[u8]) -> Result<Entry, Damage> {
    let record: EntryRecord = unseal(VERSION, bytes)?;
    let change = |change: ChangeRecord| FieldChange { field: change.field, before: change.before, after: change.after };
    Ok(Entry {
        seq,
        at: time(record.at_ms),
        actor: Actor {
            merchant: record.actor.map(|bits| MerchantId::from_bits(bits.into())),
            key: record.key.map(|bits| KeyId::from_bits(bits.into())),
            ip: record.ip,
        },
        action: record.action,
        merchant: MerchantId::from_bits(id("merchant", record.merchant)?),
        subject: record.subject,
        changes: record.changes.into_iter().map(change).collect(),
    })
}
