//! Stored bytes: one version byte, then protobuf fields written down by hand, each with a test that pins its bytes.
//!
//! A new field takes a new tag: older programs skip it, newer ones read its absence. A change that old bytes cannot
//! express takes a new version: this program refuses versions it does not know instead of guessing.

mod audit;
mod billing;
pub(crate) mod checked;
mod codes;
mod day;
mod event;
mod indexed;
mod ledger;
mod merchant;
mod ownership;
mod payment;
mod remembered;
mod standing;
mod sums;
mod transfer;
pub(crate) mod vault;

#[cfg(test)]
mod golden_tests;

pub(crate) use audit::{audit_from_bytes, audit_to_bytes};
pub(crate) use billing::{period_from_bytes, period_to_bytes, schedule_from_bytes, schedule_to_bytes};
pub(crate) use codes::Code;
pub(crate) use day::{day_from_bytes, day_to_bytes};
use engine::{account::AccountName, time::Timestamp};
pub(crate) use event::{
    AttemptKey, attempt_from_bytes, attempt_to_bytes, delivery_from_bytes, delivery_to_bytes, endpoint_from_bytes,
    endpoint_to_bytes, epochs_from_bytes, epochs_to_bytes, event_from_bytes, event_to_bytes,
};
pub(crate) use indexed::{PaymentFacts, SUMMARY_LEN, Summary, payment_facts, summary_from_bytes, summary_to_bytes};
pub(crate) use ledger::{
    claimed_from_bytes, claimed_to_bytes, cursor_from_bytes, cursor_to_bytes, rate_from_bytes, rate_to_bytes,
    unmatched_from_bytes, unmatched_to_bytes,
};
pub(crate) use merchant::{
    MerchantFacts, merchant_facts, merchant_from_bytes, merchant_is_plain, merchant_to_bytes, merchant_to_json,
};
pub(crate) use payment::{payment_from_bytes, payment_to_bytes};
use prost::Message;
pub(crate) use remembered::{remembered_from_bytes, remembered_to_bytes};
pub(crate) use standing::{standing_from_bytes, standing_to_bytes};
pub(crate) use sums::{sums_from_bytes, sums_to_bytes};
pub(crate) use transfer::{TransferKey, transfer_from_bytes, transfer_key, transfer_to_bytes};

/// What is wrong with stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    /// No bytes at all.
    #[error("it is empty")]
    Empty,
    /// Written by a newer program, or not by one of ours.
    #[error("its version is {found}, this program knows {known}")]
    Version {
        /// What the bytes say.
        found: u8,
        /// What this program reads.
        known: u8,
    },
    /// The bytes are not the fields they should be.
    #[error("its bytes do not decode: {0}")]
    Bytes(#[from] prost::DecodeError),
    /// A field that is always written is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field holds what its type cannot.
    #[error("{field} cannot be {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
    },
}

/// Returns the stored form of a message: its version, then its fields.
pub(crate) fn seal(version: u8, message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + message.encoded_len());
    bytes.push(version);
    message.encode_raw(&mut bytes);
    bytes
}

/// Reads what [`seal`] wrote.
pub(crate) fn unseal<M: Message + Default>(known: u8, bytes: &[u8]) -> Result<M, Damage> {
    let (&found, fields) = bytes.split_first().ok_or(Damage::Empty)?;
    if found != known {
        return Err(Damage::Version { found, known });
    }
    Ok(M::decode(fields)?)
}

/// A 128-bit id. Two fixed words take 18 bytes and no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Bits {
    #[prost(fixed64, tag = "1")]
    high: u64,
    #[prost(fixed64, tag = "2")]
    low: u64,
}

impl From<u128> for Bits {
    fn from(bits: u128) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
        Self { high: (bits >> 64) as u64, low: bits as u64 }
    }
}

impl From<Bits> for u128 {
    fn from(bits: Bits) -> Self {
        (Self::from(bits.high) << 64) | Self::from(bits.low)
    }
}

/// Reads an id that is always written.
fn id(field: &'static str, bits: Option<Bits>) -> Result<u128, Damage> {
    bits.map(u128::from).ok_or(Damage::Missing(field))
}

fn account(field: &'static str, text: &str) -> Result<AccountName, Damage> {
    AccountName::parse(text).map_err(|_| Damage::Value { field, value: format!("{text:?}") })
}

fn array<const N: usize>(field: &'static str, bytes: &[u8]) -> Result<[u8; N], Damage> {
    bytes.try_into().map_err(|_| Damage::Value { field, value: format!("{} bytes long", bytes.len()) })
}

fn time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads an enum that is always written.
fn code<T: Code>(field: &'static str, number: u32) -> Result<T, Damage> {
    T::from_number(number).ok_or_else(|| Damage::Value { field, value: number.to_string() })
}

/// Reads an enum where 0 says that there is none.
fn optional_code<T: Code>(field: &'static str, number: u32) -> Result<Option<T>, Damage> {
    if number == 0 { Ok(None) } else { code(field, number).map(Some) }
}

fn code_of<T: Code>(value: Option<T>) -> u32 {
    value.map_or(0, Code::number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_an_unknown_version_is_refused_by_name() {
        let bits = Bits::from(7);
        assert_eq!(unseal::<Bits>(1, &[]), Err(Damage::Empty));
        assert_eq!(unseal::<Bits>(1, &seal(2, &bits)), Err(Damage::Version { found: 2, known: 1 }));
        assert_eq!(unseal::<Bits>(1, &seal(1, &bits)), Ok(bits));
        assert_eq!(Damage::Version { found: 2, known: 1 }.to_string(), "its version is 2, this program knows 1");
    }

    #[test]
    fn a_field_of_a_later_program_is_skipped() {
        #[derive(Clone, PartialEq, Message)]
        struct Later {
            #[prost(fixed64, tag = "1")]
            high: u64,
            #[prost(fixed64, tag = "2")]
            low: u64,
            #[prost(string, tag = "99")]
            news: String,
        }
        let later = Later { high: 1, low: 2, news: "hello".to_owned() };
        assert_eq!(unseal::<Bits>(1, &seal(1, &later)).map(u128::from), Ok((1 << 64) | 2));
    }

    #[test]
    fn an_id_keeps_all_its_bits() {
        for bits in [0, 1, u128::MAX, u128::MAX / 3] {
            assert_eq!(u128::from(Bits::from(bits)), bits);
        }
    }
}
