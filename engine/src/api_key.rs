//! API keys: what is kept of one, what it may do, and when it ends.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{
    fields::{self, Violation},
    ids::KeyId,
    time::Timestamp,
};

/// Keys of one merchant at once.
pub const MAX_KEYS: usize = 20;
/// Hours a rolled key may go on beside its successor.
pub const MAX_OVERLAP_HOURS: u32 = 72;
/// Characters of a key that tell it from other in a list: `sk_live_` and 4 more.
const PREFIX_CHARS: usize = API_KEY_PREFIX.len() + 4;

/// Something a key may or may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Reads payments and events.
    PaymentsRead,
    /// Creates, cancels and resolves payments.
    PaymentsWrite,
    /// Changes the merchant: its record, its keys, its webhooks. Not where its money goes.
    MerchantWrite,
    /// Changes the ledger account that is paid, and proves it.
    MerchantPayout,
    /// Does the work of admins; of use to a merchant with that privilege only.
    Admin,
}

impl Scope {
    /// Every scope, in the order of lists.
    pub const ALL: [Self; 5] =
        [Self::PaymentsRead, Self::PaymentsWrite, Self::MerchantWrite, Self::MerchantPayout, Self::Admin];

    /// Returns the word on the wire.
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

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scopes(u32);

impl Scopes {
    /// Everything a merchant does for itself.
    pub const MERCHANT: Self = Self(23);
    /// Everything.
    pub const ALL: Self = Self(31);

    /// Returns the scopes that a merchant's first key has.
    #[must_use]
    pub const fn initial(is_admin: bool) -> Self {
        if is_admin { Self::ALL } else { Self::MERCHANT }
    }

    /// Says whether a scope is among them.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Says whether all of them are among other.
    #[must_use]
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the scopes in the order of lists.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// Returns them as stored.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Reads them as stored; `None` where a bit is no scope of ours, or there is none.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits == 0 || bits & !Self::ALL.0 != 0 { None } else { Some(Self(bits)) }
    }

    /// Reads the words of a request: at least one, each one of ours.
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

/// Writes them as a request would: separated by spaces.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.write_str(&words.join(" "))
    }
}

/// What is kept of an API key; the key itself was shown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The record's id.
    pub id: KeyId,
    /// What the key hashes to.
    pub digest: KeyDigest,
    /// What its owner calls it.
    pub name: String,
    /// Its first characters.
    pub prefix: String,
    /// Its last four characters, to tell keys apart.
    pub last4: String,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// From when on it is no key any more.
    pub expires_at: Option<Timestamp>,
}

impl ApiKey {
    /// Returns the record of a key that is being issued.
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

    /// Says whether a use at `now` is worth writing down: the record is exact to the minute, not to the request.
    #[must_use]
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        self.last_used_at.is_none_or(|last| now.since(last).as_secs() >= 60)
    }

    /// Says whether it still opens anything.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

/// Checks what an owner calls a key: at most 100 characters, or nothing.
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

/// What an API key hashes to: one round of a hash whose key is the same in every installation, and only keeps these
/// digests apart from other hashes.
///
/// Slow hashes, salts and secret keys protect what can be guessed. Keys are made here alone, of 192 random bits: whoever
/// has stolen the digests can neither guess one nor look it up in a table of guesses, and digests of two installations
/// cannot be compared, as no key is in both. A secret key of the hash would buy nothing more, and changing it would need
/// every key shown again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// Hashes the text of a key.
    #[must_use]
    pub fn of(key: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"hivetill api key 1").expect("HMAC takes a key of any length");
        mac.update(key.as_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// Compares without telling by time where two digests differ.
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

/// What every API key starts with.
pub const API_KEY_PREFIX: &str = "sk_live_";

/// Writes an API key from 24 random bytes: `sk_live_` and 48 hex characters.
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
    fn scopes_are_read_and_written_in_their_words() {
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
    fn a_key_shows_its_ends_and_hides_its_middle() {
        let text = api_key_text([7; 24]);
        let key = ApiKey::issue(KeyId::from_bits(1), &text, "till", Scopes::MERCHANT, Timestamp::EPOCH);
        assert_eq!((key.prefix.as_str(), key.last4.as_str()), ("sk_live_0707", "0707"));
        assert!(!format!("{key:?}").contains(&text[12..20]));
    }

    #[test]
    fn a_key_ends_at_its_end() {
        let key = ApiKey::issue(KeyId::from_bits(1), "sk_live_x", "", Scopes::MERCHANT, Timestamp::EPOCH);
        let ending = ApiKey { expires_at: Some(Timestamp::from_seconds(100)), ..key.clone() };
        assert!(key.is_valid(Timestamp::from_seconds(1_000_000)));
        assert!(ending.is_valid(Timestamp::from_seconds(99)) && !ending.is_valid(Timestamp::from_seconds(100)));
    }
}
