//! The form of a record: a version byte, then protobuf fields; and the field types that several records share.

use engine::{account::AccountName, time::Timestamp};
use prost::Message;

use crate::record::codes::Code;

/// Why stored bytes do not decode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    /// There are no bytes.
    #[error("it is empty")]
    Empty,
    /// A newer program wrote it, or another one.
    #[error("record version {found} is not supported, expected {known}")]
    Version {
        /// The version byte of the record.
        found: u8,
        /// The version that this program supports.
        known: u8,
    },
    /// The bytes are not valid protobuf fields.
    #[error("its bytes do not decode: {0}")]
    Bytes(#[from] prost::DecodeError),
    /// A required field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field has an invalid value.
    #[error("{field} cannot be {value}")]
    Value {
        /// The field.
        field: &'static str,
        /// The value.
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

/// Decodes bytes that [`seal`] returned.
pub(crate) fn unseal<M: Message + Default>(known: u8, bytes: &[u8]) -> Result<M, Damage> {
    let (&found, fields) = bytes.split_first().ok_or(Damage::Empty)?;
    if found != known {
        return Err(Damage::Version { found, known });
    }
    Ok(M::decode(fields)?)
}

/// A 128-bit id. Two fixed64 fields take 18 bytes and need no allocation.
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

/// Returns an id that is always stored.
pub(crate) fn id(field: &'static str, bits: Option<Bits>) -> Result<u128, Damage> {
    bits.map(u128::from).ok_or(Damage::Missing(field))
}

pub(crate) fn account(field: &'static str, text: &str) -> Result<AccountName, Damage> {
    AccountName::parse(text).map_err(|_| Damage::Value { field, value: format!("{text:?}") })
}

pub(crate) fn array<const N: usize>(field: &'static str, bytes: &[u8]) -> Result<[u8; N], Damage> {
    bytes.try_into().map_err(|_| Damage::Value { field, value: format!("{} bytes long", bytes.len()) })
}

pub(crate) fn time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Decodes an enum that is always stored.
pub(crate) fn code<T: Code>(field: &'static str, number: u32) -> Result<T, Damage> {
    T::from_number(number).ok_or_else(|| Damage::Value { field, value: number.to_string() })
}

/// Decodes an enum where 0 means none.
pub(crate) fn optional_code<T: Code>(field: &'static str, number: u32) -> Result<Option<T>, Damage> {
    if number == 0 { Ok(None) } else { code(field, number).map(Some) }
}

pub(crate) fn code_of<T: Code>(value: Option<T>) -> u32 {
    value.map_or(0, Code::number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_an_unknown_version_is_rejected() {
        let bits = Bits::from(7);
        assert_eq!(unseal::<Bits>(1, &[]), Err(Damage::Empty));
        assert_eq!(unseal::<Bits>(1, &seal(2, &bits)), Err(Damage::Version { found: 2, known: 1 }));
        assert_eq!(unseal::<Bits>(1, &seal(1, &bits)), Ok(bits));
        assert_eq!(Damage::Version { found: 2, known: 1 }.to_string(), "record version 2 is not supported, expected 1");
    }

    #[test]
    fn an_unknown_field_is_skipped() {
        #[derive(Clone, PartialEq, Message)]
        struct Newer {
            #[prost(fixed64, tag = "1")]
            high: u64,
            #[prost(fixed64, tag = "2")]
            low: u64,
            #[prost(string, tag = "99")]
            added: String,
        }
        let newer = Newer { high: 1, low: 2, added: "hello".to_owned() };
        assert_eq!(unseal::<Bits>(1, &seal(1, &newer)).map(u128::from), Ok((1 << 64) | 2));
    }

    #[test]
    fn an_id_keeps_all_its_bits() {
        for bits in [0, 1, u128::MAX, u128::MAX / 3] {
            assert_eq!(u128::from(Bits::from(bits)), bits);
        }
    }
}
