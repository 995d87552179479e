//! API keys: stored record, scopes and expiry.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{
    fields::{self, Violation},
    ids::KeyId,
    mutant,
    time::Timestamp,
};

/// Maximum number of API keys per merchant.
pub const MAX_KEYS: usize = 20;
/// Maximum overlap of a rolled key and its successor, hours.
pub const MAX_OVERLAP_HOURS: u32 = 72;
/// Length of the displayed prefix of a key: `sk_live_` and 4 more characters.
const PREFIX_CHARS: usize = API_KEY_PREFIX.len() + 4;

/// A permission of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Read payments and events.
    PaymentsRead,
    /// Create, cancel and resolve payments.
    PaymentsWrite,
    /// Change the merchant's record, keys and webhooks, but not its payout account.
    MerchantWrite,
    /// Change and verify the account that receives payments.
    MerchantPayout,
    /// Use the admin operations; effective only for merchants with admin privileges.
    Admin,
}

impl Scope {
    /// Every scope, in display order.
    pub const ALL: [Self; 5] =
        [Self::PaymentsRead, Self::PaymentsWrite, Self::MerchantWrite, Self::MerchantPayout, Self::Admin];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaymentsRead => "payments:read",
            Self::PaymentsWrite => "payments:write",
            Self::MerchantWrite => "merchant:write",
            Self::MerchantPayout => "merchant:payout",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u32 {
        match self {
            Self::PaymentsRead => 1,
            Self::PaymentsWrite => 2,
            Self::MerchantWrite => 4,
            Self::Admin => 8,
            Self::MerchantPayout => 16,
        }
    }
}

/// The scopes of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scopes(u32);

impl Scopes {
    /// All scopes except [`Scope::Admin`].
    pub const MERCHANT: Self = Self(23);
    /// All scopes.
    pub const ALL: Self = Self(31);

    /// Returns the scopes of a merchant's first key.
    #[must_use]
    pub const fn initial(is_admin: bool) -> Self {
        if is_admin { Self::ALL } else { Self::MERCHANT }
    }

    /// Returns whether the set contains `scope`.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns whether every scope of the set is in `other`.
    #[must_use]
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the scopes in display order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// Returns the stored form.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Decodes the stored form; `None` for unknown bits and for the empty set.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits == 0 || bits & !Self::ALL.0 != 0 { None } else { Some(Self(bits)) }
    }

    /// Parses the scope names of a request; at least one is required.
    ///
    /// # Errors
    /// A [`Violation`] of `scopes`.
    pub fn parse(words: &[String]) -> Result<Self, Violation> {
        let of = |word: &String| Scope::ALL.into_iter().find(|scope| scope.as_str() == word);
        let bits = words.iter().try_fold(0, |bits, word| Some(bits | of(word)?.bit()));
        bits.and_then(Self::from_bits).ok_or_else(|| {
            let known = Scope::ALL.map(Scope::as_str).join(", ");
            Violation::new("scopes", format_args!("must be a list of at least one of {known}"))
        })
    }
}

/// Formats the scope names, separated by spaces.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.write_str(&words.join(" "))
    }
}

/// The stored record of an API key. The key itself is shown once, when it is issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The record's id.
    pub id: KeyId,
    /// The digest of the key.
    pub digest: KeyDigest,
    /// The display name.
    pub name: String,
    /// The first characters of the key.
    pub prefix: String,
    /// The last four characters of the key.
    pub last4: String,
    /// The scopes.
    pub scopes: Scopes,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it was last used, accurate to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When the key expires, if ever.
    pub expires_at: Option<Timestamp>,
}

impl ApiKey {
    /// Returns the record of a new key.
    #[must_use]
    pub fn issue(id: KeyId, text: &str, name: &str, scopes: Scopes, now: Timestamp) -> Self {
        let chars: Vec<char> = text.chars().collect();
        Self {
            id,
            digest: KeyDigest::of(text),
            name: name.to_owned(),
            prefix: chars.iter().take(PREFIX_CHARS).collect(),
            last4: chars[chars.len().saturating_sub(4)..].iter().collect(),
            scopes,
            created_at: now,
            last_used_at: None,
            expires_at: None,
        }
    }

    /// Returns whether a use at `now` should be recorded: `last_used_at` is accurate to the minute only.
    #[must_use]
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        self.last_used_at.is_none_or(|last| now.since(last).as_secs() >= 60)
    }

    /// Returns whether the key has not expired.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end || mutant!("expired-key-is-valid"))
    }
}

/// Validates the name of a key: at most 100 characters, may be empty.
///
/// # Errors
/// A [`Violation`] of `name`.
pub fn key_name(name: &str) -> Result<String, Violation> {
    let name = name.trim();
    if name.is_empty() {
        return Ok(String::new());
    }
    fields::text("name", name, fields::NAME_MAX_CHARS)
}

/// The digest of an API key: one round of HMAC-SHA-256. The HMAC key is a constant for domain separation, the same in
/// every installation.
///
/// API keys have 192 random bits, so that salts, slow hashes and a secret HMAC key would add no protection: stolen
/// digests can be neither brute-forced nor looked up in a table, and no key exists in two installations. Replacing a
/// secret HMAC key would also require every API key to be reissued.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// Hashes a key.
    #[must_use]
    pub fn of(key: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"hivetill api key 1").expect("HMAC takes a key of any length");
        mac.update(key.as_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// Compares two digests in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Hides the digest from logs.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(..)")
    }
}

/// The prefix of every API key.
pub const API_KEY_PREFIX: &str = "sk_live_";

/// Formats an API key from 24 random bytes: `sk_live_` and 48 hex characters.
#[must_use]
pub fn api_key_text(random: [u8; 24]) -> String {
    format!("{API_KEY_PREFIX}{}", hex::encode(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(words: &[&str]) -> Result<Scopes, Violation> {
        Scopes::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn scopes_round_trip() {
        let some = scopes(&["merchant:write", "payments:read", "payments:read"]).unwrap();
        assert_eq!(some.to_string(), "payments:read merchant:write");
        assert!(some.contains(Scope::PaymentsRead) && !some.contains(Scope::PaymentsWrite));
        assert!(some.is_subset(Scopes::MERCHANT) && !Scopes::ALL.is_subset(Scopes::MERCHANT));
        assert_eq!(Scopes::from_bits(some.bits()), Some(some));
        for wrong in [&[][..], &["payments"], &["payments:read", "root"], &["Admin"]] {
            assert_eq!(scopes(wrong).unwrap_err().field, "scopes", "{wrong:?}");
        }
        assert_eq!((Scopes::from_bits(0), Scopes::from_bits(32)), (None, None));
    }

    #[test]
    fn a_key_record_shows_prefix_and_last_four_characters_only() {
        let text = api_key_text([7; 24]);
        let key = ApiKey::issue(KeyId::from_bits(1), &text, "till", Scopes::MERCHANT, Timestamp::EPOCH);
        assert_eq!((key.prefix.as_str(), key.last4.as_str()), ("sk_live_0707", "0707"));
        assert!(!format!("{key:?}").contains(&text[12..20]));
    }

    #[test]
    fn a_key_is_invalid_from_its_expiry_on() {
        let key = ApiKey::issue(KeyId::from_bits(1), "sk_live_x", "", Scopes::MERCHANT, Timestamp::EPOCH);
        let ending = ApiKey { expires_at: Some(Timestamp::from_seconds(100)), ..key.clone() };
        assert!(key.is_valid(Timestamp::from_seconds(1_000_000)));
        assert!(ending.is_valid(Timestamp::from_seconds(99)) && !ending.is_valid(Timestamp::from_seconds(100)));
    }
}
