//! Identifiers: a type prefix and 128 time-ordered bits in lower-case Crockford base32.

use std::{fmt, str::FromStr};

use crate::time::Timestamp;

/// Digits of Crockford's base32 in lower case, without `i`, `l`, `o` and `u`.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Length of 128 encoded bits, characters.
pub const ENCODED_LEN: usize = 26;

/// Encodes 128 bits as 26 base32 characters, preserving order.
#[must_use]
pub fn encode(bits: u128) -> [u8; ENCODED_LEN] {
    let mut out = [b'0'; ENCODED_LEN];
    let mut rest = bits;
    for place in out.iter_mut().rev() {
        *place = DIGITS[(rest & 31) as usize];
        rest >>= 5;
    }
    out
}

/// Decodes the output of [`encode`]; `None` for anything else, including upper case.
#[must_use]
pub fn decode(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    // 26 digits hold 130 bits: the first may only be 0..=7.
    if bytes.len() != ENCODED_LEN || bytes[0] > b'7' {
        return None;
    }
    bytes.iter().try_fold(0u128, |bits, byte| {
        let digit = VALUES[usize::from(*byte)];
        (digit < 32).then(|| (bits << 5) | u128::from(digit))
    })
}

/// The value of each byte as a base32 digit; `u8::MAX` if it is not a digit.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut digit = 0;
    while digit < 32 {
        values[DIGITS[digit as usize] as usize] = digit;
        digit += 1;
    }
    values
};

/// Combines a time and 10 random bytes as in a UUIDv7, so that ids sort by creation time.
#[must_use]
pub fn time_ordered(now: Timestamp, random: [u8; 10]) -> u128 {
    uuid::Builder::from_unix_timestamp_millis(now.millis(), &random).into_uuid().as_u128()
}

/// The string is not an id of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be `{prefix}` and {ENCODED_LEN} characters of 0-9 a-z without i, l, o, u")]
pub struct ParseIdError {
    /// The prefix that was expected.
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// The prefix of ids of this type.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an id from the current time and random bytes.
            #[must_use]
            pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
                Self(time_ordered(now, random))
            }

            /// Creates an id from its 128 bits.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// Returns the 128 bits.
            #[must_use]
            pub const fn bits(self) -> u128 {
                self.0
            }

            /// Returns the creation time of the id, accurate to the millisecond.
            #[must_use]
            pub const fn created_at(self) -> Timestamp {
                Timestamp::from_millis((self.0 >> 80) as u64)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                const AT: usize = $prefix.len();
                let mut text = [0; AT + ENCODED_LEN];
                text[..AT].copy_from_slice(Self::PREFIX.as_bytes());
                text[AT..].copy_from_slice(&encode(self.0));
                // A single write, so that `to_string` allocates once.
                f.write_str(std::str::from_utf8(&text).expect("a prefix and base32 digits are ASCII"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix(Self::PREFIX).and_then(decode).map(Self).ok_or(ParseIdError { prefix: Self::PREFIX })
            }
        }
    };
}

id!(/// A payment session.
    PaymentId, "pay_");
id!(/// A merchant.
    MerchantId, "mer_");
id!(/// An event: a committed transition, or a test event; the same id in every webhook attempt.
    EventId, "evt_");
id!(/// One delivery of one event to one endpoint.
    DeliveryId, "whd_");
id!(/// A webhook endpoint of a merchant.
    EndpointId, "we_");
id!(/// An API key's record (not the key).
    KeyId, "key_");
id!(/// A merchant's month and its invoice.
    InvoiceId, "inv_");

/// The secret token of a checkout URL, 128 random bits. Its holder may view and cancel the session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlugToken(u128);

impl SlugToken {
    /// Creates a token from 128 random bits.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the 128 bits.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Parses the token at the end of a slug: `blue-mug-<26 characters>`. The text before it is ignored.
    #[must_use]
    pub fn from_slug(slug: &str) -> Option<Self> {
        let at = slug.len().checked_sub(ENCODED_LEN)?;
        if !slug.is_char_boundary(at) {
            return None;
        }
        let (words, token) = slug.split_at(at);
        if !words.is_empty() && !words.ends_with('-') {
            return None;
        }
        decode(token).map(Self)
    }

    /// Returns the slug of a description: at most 40 characters of it, `-` and the token.
    #[must_use]
    pub fn slug(self, description: &str) -> String {
        let mut words = String::new();
        for character in description.chars().flat_map(char::to_lowercase) {
            if character.is_ascii_alphanumeric() {
                words.push(character);
            } else if !words.is_empty() && !words.ends_with('-') {
                words.push('-');
            }
            if words.len() == 40 {
                break;
            }
        }
        let words = words.trim_end_matches('-');
        let dash = if words.is_empty() { "" } else { "-" };
        let token = encode(self.0);
        format!("{words}{dash}{}", std::str::from_utf8(&token).expect("base32 digits are ASCII"))
    }
}

/// Hides the token from logs.
impl fmt::Debug for SlugToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlugToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_sort_by_time() {
        let early = PaymentId::new(Timestamp::from_millis(1_763_647_200_000), [255; 10]);
        let late = PaymentId::new(Timestamp::from_millis(1_763_647_200_001), [0; 10]);
        assert!(early < late && early.to_string() < late.to_string());
        assert_eq!(early.to_string().parse(), Ok(early));
        assert_eq!(early.created_at().millis(), 1_763_647_200_000);
        assert_eq!(early.to_string().len(), 30);
    }

    #[test]
    fn only_the_canonical_form_is_an_id() {
        let id = PaymentId::from_bits(7).to_string();
        for bad in [
            id.to_uppercase(),
            id.replace("pay_", "mer_"),
            id[..29].to_owned(),
            format!("{id}0"),
            id.replace('0', "o"),
            format!("pay_8{}", "0".repeat(25)),
            String::new(),
        ] {
            assert!(bad.parse::<PaymentId>().is_err(), "{bad:?}");
        }
        assert_eq!(decode(&"z".repeat(26)), None, "130 bits are not 128");
        assert_eq!(decode(std::str::from_utf8(&encode(u128::MAX)).unwrap()), Some(u128::MAX));
    }

    #[test]
    fn a_slug_contains_the_description_and_the_token() {
        let token = SlugToken::from_bits(u128::MAX / 3);
        let slug = token.slug("Blue mug, 2× — «large»!");
        assert_eq!(&slug[..slug.len() - 26], "blue-mug-2-large-");
        assert_eq!(SlugToken::from_slug(&slug), Some(token));
        assert_eq!(SlugToken::from_slug(&token.slug("東京")), Some(token));
        assert!(token.slug(&"word ".repeat(50)).len() <= 40 + 1 + 26);
        for bad in ["", "blue-mug", "xx00000000000000000000000000", "é0000000000000000000000000"] {
            assert_eq!(SlugToken::from_slug(bad), None, "{bad:?}");
        }
    }
}
