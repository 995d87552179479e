//! Webhook secrets and the two signature schemes, which share one secret.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{ids::EventId, mutant, time::Timestamp};

/// A webhook secret: `whsec_` and the base64 of 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The prefix of every secret.
    pub const PREFIX: &str = "whsec_";

    /// Creates a secret from 32 random bytes.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, BASE64_STANDARD.encode(random)))
    }

    /// Parses a secret; `None` if it is not valid.
    #[must_use]
    pub fn from_text(text: String) -> Option<Self> {
        let encoded = text.strip_prefix(Self::PREFIX)?;
        BASE64_STANDARD.decode(encoded).ok().filter(|key| !key.is_empty())?;
        Some(Self(text))
    }

    /// Returns the secret, to be shown once to its owner or stored.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Signs with the legacy scheme: the key is the whole secret including its prefix, the message is `"{ms}.{body}"`,
    /// the result is hex.
    fn legacy(&self, millis: u64, body: &[u8]) -> String {
        if mutant!("signature-without-timestamp") {
            return hex::encode(hmac(self.0.as_bytes(), &[body]));
        }
        hex::encode(hmac(self.0.as_bytes(), &[millis.to_string().as_bytes(), b".", body]))
    }

    /// Signs with Standard Webhooks 1.0: the key is the decoded base64, the message is `"{id}.{s}.{body}"`.
    fn standard(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let key = BASE64_STANDARD.decode(&self.0[Self::PREFIX.len()..]).expect("a secret is base64 by construction");
        let signature = hmac(&key, &[id.as_bytes(), b".", seconds.to_string().as_bytes(), b".", body]);
        format!("v1,{}", BASE64_STANDARD.encode(signature))
    }
}

/// Hides the secret from logs.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Maximum number of previous secrets that are valid at once.
pub const MAX_PREVIOUS: usize = 3;

/// The current secret, and previous ones during their grace periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    /// The current secret; signs every webhook.
    pub current: Secret,
    /// Previous secrets with the ends of their grace periods, newest first, at most [`MAX_PREVIOUS`].
    pub previous: Vec<(Secret, Timestamp)>,
}

/// The maximum number of previous secrets is still valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_PREVIOUS} replaced secrets are still valid; rotate with a grace again after {possible_at}")]
pub struct TooManySecrets {
    /// When the first of them expires.
    pub possible_at: Timestamp,
}

impl Secrets {
    /// Returns a single secret without previous ones.
    #[must_use]
    pub const fn only(current: Secret) -> Self {
        Self { current, previous: Vec::new() }
    }

    /// Returns the previous secrets that are valid at `now`.
    pub fn valid_previous(&self, now: Timestamp) -> impl Iterator<Item = &Secret> {
        let valid = self.previous.iter().filter(move |(_, until)| now < *until || mutant!("grace-never-ends"));
        valid.map(|(secret, _)| secret)
    }

    /// Replaces the secret. The replaced one remains valid until `previous_valid_until`, if given, and earlier ones
    /// until the ends of their grace periods.
    ///
    /// # Errors
    /// [`TooManySecrets`] if [`MAX_PREVIOUS`] earlier secrets are still valid. A replacement without a grace period is
    /// always possible.
    pub fn rotated(
        &self,
        current: Secret,
        previous_valid_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, TooManySecrets> {
        let replaced = previous_valid_until.map(|until| (self.current.clone(), until));
        let earlier: Vec<_> = self.previous.iter().filter(|(_, until)| now < *until).cloned().collect();
        let first_end = earlier.iter().map(|(_, until)| *until).min();
        if let Some(possible_at) = first_end.filter(|_| {
            replaced.is_some() && earlier.len() >= MAX_PREVIOUS + usize::from(mutant!("four-old-secrets-sign"))
        }) {
            return Err(TooManySecrets { possible_at });
        }
        Ok(Self { current, previous: replaced.into_iter().chain(earlier).collect() })
    }

    /// Signs a body for an attempt at `now`. Every attempt is signed with its own timestamp: receivers reject
    /// timestamps older than five minutes.
    #[must_use]
    pub fn sign(&self, event: EventId, body: &[u8], now: Timestamp) -> Headers {
        let id = event.to_string();
        let mut standard = self.current.standard(&id, now.seconds(), body);
        for previous in self.valid_previous(now) {
            standard = format!("{standard} {}", previous.standard(&id, now.seconds(), body));
        }
        Headers {
            timestamp_ms: now.millis(),
            legacy: match self.previous.first() {
                Some((previous, _)) if mutant!("old-secret-signs") => previous.legacy(now.millis(), body),
                _ => self.current.legacy(now.millis(), body),
            },
            legacy_previous: self.valid_previous(now).map(|secret| secret.legacy(now.millis(), body)).collect(),
            standard_id: id,
            standard_timestamp_s: now.seconds(),
            standard,
        }
    }
}

/// The signature headers of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// `{prefix}-Timestamp`: the attempt's time in milliseconds.
    pub timestamp_ms: u64,
    /// `{prefix}-Signature`: hex.
    pub legacy: String,
    /// `{prefix}-Signature-Previous`, `…-Previous-2` and `…-Previous-3`: hex, during grace periods only. The legacy
    /// header cannot contain a list.
    pub legacy_previous: Vec<String>,
    /// `webhook-id`.
    pub standard_id: String,
    /// `webhook-timestamp`, in seconds.
    pub standard_timestamp_s: u64,
    /// `webhook-signature`: one `v1,<base64>` for each valid secret, separated by spaces.
    pub standard: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret::from_text("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned()).unwrap()
    }

    #[test]
    fn both_signature_schemes_match_the_reference_vectors() {
        assert_eq!(
            secret().legacy(1_763_647_200_000, br#"{"a":1}"#),
            "50ec5687722fe66f7dece4b79304d0b9f7350a84d16caef3a950f131f94a5604"
        );
        assert_eq!(
            secret().standard("evt_01JD000000000000000000000", 1_763_647_200, br#"{"a":1}"#),
            "v1,JujQjEnhEMhS1O0SyYK6/n4lWqGhV60wYh4UzwnGsek="
        );
    }

    #[test]
    fn the_previous_secret_signs_until_its_grace_period_ends() {
        let (now, until) = (Timestamp::from_seconds(1), Some(Timestamp::from_seconds(1_000)));
        let secrets = Secrets::only(secret()).rotated(Secret::from_random([9; 32]), until, now).expect("space");
        let event = EventId::from_bits(5);
        let during = secrets.sign(event, b"x", Timestamp::from_seconds(999));
        assert_eq!(during.legacy_previous, [secret().legacy(999_000, b"x")]);
        assert_eq!(during.standard.split(' ').count(), 2);
        let after = secrets.sign(event, b"x", Timestamp::from_seconds(1_000));
        assert_eq!((after.legacy_previous.len(), after.standard.split(' ').count()), (0, 1));
        let at_once = Secrets::only(secret()).rotated(Secret::from_random([9; 32]), None, now).expect("space");
        assert_eq!(at_once.previous, []);
    }

    #[test]
    fn previous_secrets_sign_until_their_own_expiry_and_a_fourth_is_refused() {
        let (at, made) = (Timestamp::from_seconds, |n: u8| Secret::from_random([n; 32]));
        let mut secrets = Secrets::only(made(0));
        // The second expires before the first and the third.
        for (n, until) in [(1, 1_000), (2, 500), (3, 2_000)] {
            secrets = secrets.rotated(made(n), Some(at(until)), at(10)).expect("space for three");
        }
        let legacy = |now: u64| secrets.sign(EventId::from_bits(5), b"x", at(now)).legacy_previous;
        let signed = |n: u8, now: u64| made(n).legacy(now * 1_000, b"x");
        assert_eq!(legacy(499), [signed(2, 499), signed(1, 499), signed(0, 499)]);
        assert_eq!(legacy(500), [signed(2, 500), signed(0, 500)]);
        assert_eq!(legacy(1_000), [signed(2, 1_000)]);
        assert_eq!(legacy(2_000), Vec::<String>::new());
        let fourth = secrets.rotated(made(4), Some(at(9_000)), at(499));
        assert_eq!(fourth, Err(TooManySecrets { possible_at: at(500) }));
        let later = secrets.rotated(made(4), Some(at(9_000)), at(500)).expect("one has ended");
        assert_eq!(later.previous, [(made(3), at(9_000)), (made(2), at(2_000)), (made(0), at(1_000))]);
        // A replacement without a grace period is always possible, and invalidates only the replaced secret.
        let at_once = secrets.rotated(made(4), None, at(499)).expect("no more sign than before");
        assert_eq!(at_once.previous, secrets.previous);
    }

    #[test]
    fn a_secret_is_its_prefix_and_base64() {
        assert_eq!(secret(), Secret::from_random(std::array::from_fn(|n| u8::try_from(n).unwrap())));
        for bad in ["", "whsec_", "whsec_***", "AAAA"] {
            assert_eq!(Secret::from_text(bad.to_owned()), None, "{bad:?}");
        }
        assert_eq!(format!("{:?}", secret()), "Secret(..)");
    }
}
