//! Webhook secrets and the two signature families, which share one secret.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{ids::EventId, mutant, time::Timestamp};

/// What every webhook secret starts with.
const PREFIX: &str = "whsec_";

/// A webhook secret: `whsec_` and the base64 of 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Writes a secret from 32 random bytes.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", BASE64_STANDARD.encode(random)))
    }

    /// Takes a secret as it was stored or shown; `None` where it is not one.
    #[must_use]
    pub fn from_text(text: String) -> Option<Self> {
        let encoded = text.strip_prefix(PREFIX)?;
        BASE64_STANDARD.decode(encoded).ok().filter(|key| !key.is_empty())?;
        Some(Self(text))
    }

    /// Returns the text, to be shown once to its owner or stored.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Signs by the older rule: the key is the whole text of the secret, the message `"{ms}.{body}"`, the result hex.
    fn legacy(&self, millis: u64, body: &[u8]) -> String {
        if mutant!("signed-without-time") {
            return hex::encode(hmac(self.0.as_bytes(), &[body]));
        }
        hex::encode(hmac(self.0.as_bytes(), &[millis.to_string().as_bytes(), b".", body]))
    }

    /// Signs by Standard Webhooks 1.0: the key is what the base64 says, the message `"{id}.{s}.{body}"`.
    fn standard(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let key = BASE64_STANDARD.decode(&self.0[PREFIX.len()..]).expect("a secret is base64 by construction");
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

/// The secret in force, and the one before it while its grace lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    /// Signs every webhook.
    pub current: Secret,
    /// Signs beside it until the given time.
    pub previous: Option<(Secret, Timestamp)>,
}

impl Secrets {
    /// Returns one secret without a predecessor.
    #[must_use]
    pub const fn only(current: Secret) -> Self {
        Self { current, previous: None }
    }

    /// Replaces the secret; the replaced one keeps signing until `previous_valid_until`, if given.
    #[must_use]
    pub fn rotated(&self, current: Secret, previous_valid_until: Option<Timestamp>) -> Self {
        Self { current, previous: previous_valid_until.map(|until| (self.current.clone(), until)) }
    }

    /// Signs a body for an attempt at `now`. Every attempt is signed anew: receivers refuse timestamps older than
    /// five minutes.
    #[must_use]
    pub fn sign(&self, event: EventId, body: &[u8], now: Timestamp) -> Headers {
        let previous = self
            .previous
            .as_ref()
            .filter(|(_, until)| now < *until || mutant!("grace-never-ends"))
            .map(|(secret, _)| secret);
        let id = event.to_string();
        let mut standard = self.current.standard(&id, now.seconds(), body);
        if let Some(previous) = previous {
            standard = format!("{standard} {}", previous.standard(&id, now.seconds(), body));
        }
        Headers {
            timestamp_ms: now.millis(),
            legacy: match &self.previous {
                Some((previous, _)) if mutant!("old-secret-signs") => previous.legacy(now.millis(), body),
                _ => self.current.legacy(now.millis(), body),
            },
            legacy_previous: previous.map(|secret| secret.legacy(now.millis(), body)),
            standard_id: id,
            standard_timestamp_s: now.seconds(),
            standard,
        }
    }
}

/// What goes into the headers of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// `{prefix}-Timestamp`: the attempt's time in milliseconds.
    pub timestamp_ms: u64,
    /// `{prefix}-Signature`: hex.
    pub legacy: String,
    /// `{prefix}-Signature-Previous`: hex, during a rotation's grace only. The older header cannot carry a list.
    pub legacy_previous: Option<String>,
    /// `webhook-id`.
    pub standard_id: String,
    /// `webhook-timestamp`, in seconds.
    pub standard_timestamp_s: u64,
    /// `webhook-signature`: one `v1,<base64>`, or two separated by a space.
    pub standard: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret::from_text("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned()).unwrap()
    }

    #[test]
    fn both_families_agree_with_the_reference_vectors() {
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
    fn the_previous_secret_signs_beside_until_its_grace_ends() {
        let secrets =
            Secrets::only(secret()).rotated(Secret::from_random([9; 32]), Some(Timestamp::from_seconds(1_000)));
        let event = EventId::from_bits(5);
        let during = secrets.sign(event, b"x", Timestamp::from_seconds(999));
        assert_eq!(during.legacy_previous, Some(secret().legacy(999_000, b"x")));
        assert_eq!(during.standard.split(' ').count(), 2);
        let after = secrets.sign(event, b"x", Timestamp::from_seconds(1_000));
        assert_eq!((after.legacy_previous, after.standard.split(' ').count()), (None, 1));
        assert_eq!(Secrets::only(secret()).rotated(Secret::from_random([9; 32]), None).previous, None);
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
