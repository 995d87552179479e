//! Stored forms: one version byte, then protobuf fields declared by hand. Golden tests pin the bytes of each.
//!
//! A new field gets a new tag: older versions skip it, newer ones treat its absence as a default. A change that the old
//! form cannot express gets a new record version: a program rejects record versions that it does not know.

pub(crate) mod audit;
pub(crate) mod billing;
pub(crate) mod checked;
pub(crate) mod codes;
pub(crate) mod compliance;
pub(crate) mod day;
pub(crate) mod event;
pub(crate) mod idempotency;
pub(crate) mod indexed;
pub(crate) mod ledger;
pub(crate) mod merchant;
pub(crate) mod ownership;
pub(crate) mod payment;
pub(crate) mod rate;
pub(crate) mod receipts;
pub(crate) mod summary;
pub(crate) mod sums;
pub(crate) mod transfer;
pub(crate) mod vault;
pub(crate) mod wire;

#[cfg(test)]
mod golden_tests;

pub(crate) use audit::{audit_from_bytes, audit_to_bytes};
pub(crate) use billing::{period_from_bytes, period_to_bytes, schedule_from_bytes, schedule_to_bytes};
pub(crate) use compliance::{compliance_from_bytes, compliance_to_bytes};
pub(crate) use day::{day_from_bytes, day_to_bytes};
pub(crate) use event::{
    attempt_from_bytes, attempt_to_bytes, delivery_from_bytes, delivery_to_bytes, endpoint_from_bytes,
    endpoint_to_bytes, epochs_from_bytes, epochs_to_bytes, event_from_bytes, event_to_bytes,
};
pub(crate) use idempotency::{idempotency_from_bytes, idempotency_to_bytes};
pub(crate) use indexed::payment_facts;
pub(crate) use ledger::{
    claimed_from_bytes, claimed_to_bytes, cursor_from_bytes, cursor_to_bytes, unmatched_from_bytes, unmatched_to_bytes,
};
pub(crate) use merchant::{
    merchant_facts, merchant_from_bytes, merchant_is_plain, merchant_shown, merchant_to_bytes, merchant_to_json,
};
pub(crate) use payment::{payment_from_bytes, payment_to_bytes};
pub(crate) use rate::{rate_from_bytes, rate_to_bytes};
pub(crate) use receipts::{
    receipt_keys_are_plain, receipt_keys_from_bytes, receipt_keys_to_bytes, receipt_keys_to_json, receipt_keys_version,
};
pub(crate) use summary::{summary_from_bytes, summary_to_bytes};
pub(crate) use sums::{sums_from_bytes, sums_to_bytes};
pub(crate) use transfer::{transfer_from_bytes, transfer_to_bytes};
