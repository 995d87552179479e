//! Idempotency keys: a request with a key is executed once.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::{
    fields::{MetadataValue, Violation},
    ids::{DeliveryId, EndpointId, MerchantId, PaymentId},
    ledger::TxId,
    payment::{Draft, State},
    time::Timestamp,
    webhook::EventType,
    x402::{NETWORK, Requirements, SCHEME},
};

/// How long a key is kept after its request.
pub const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3_600);
/// Maximum characters of a key.
const MAX_CHARS: usize = 255;

/// An idempotency key: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses a key, either bare or as the quoted string of a structured header field.
    ///
    /// # Errors
    /// A [`Violation`] of `Idempotency-Key`.
    pub fn parse(text: &str) -> Result<Self, Violation> {
        let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
        if bare.is_empty() || bare.len() > MAX_CHARS || !bare.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Violation::new("Idempotency-Key", "must have 1 to 255 visible ASCII characters"));
        }
        Ok(Self(bare.to_owned()))
    }

    /// Returns the digest that is stored for the key; it differs by operation.
    #[must_use]
    pub fn digest(&self, operation: &str) -> [u8; 32] {
        Sha256::new().chain_update(operation).chain_update([0]).chain_update(&self.0).finalize().into()
    }
}

/// The digests by which a repeated request is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestDigests {
    /// The digest of its key.
    pub key: [u8; 32],
    /// The fingerprint of the request.
    pub fingerprint: [u8; 32],
}

impl RequestDigests {
    /// Returns the digests of a payment creation.
    #[must_use]
    pub fn of_creation(key: &IdempotencyKey, draft: &Draft) -> Self {
        Self { key: key.digest("create payment"), fingerprint: fingerprint(draft) }
    }

    /// Returns the digests of starting a payment again: every request for it is the same one.
    #[must_use]
    pub fn of_restart(expired: PaymentId) -> Self {
        let id = expired.to_string();
        let fingerprint = Sha256::digest(&id).into();
        Self { key: IdempotencyKey(id).digest("restart payment"), fingerprint }
    }
}

/// The record of a request with an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The merchant.
    pub merchant: MerchantId,
    /// The key's digest.
    pub key: [u8; 32],
    /// The fingerprint of the request.
    pub fingerprint: [u8; 32],
    /// The resource that the request created.
    pub resource: Resource,
    /// The time of the request.
    pub at: Timestamp,
}

/// The resource that a request with an idempotency key created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A payment session.
    Payment(PaymentId),
    /// The x402 settlement of a transaction for another server.
    Settlement(TxId),
    /// A requested webhook delivery: a test event or a redelivery.
    Delivery(DeliveryId),
}

impl IdempotencyRecord {
    /// Returns whether the record has not expired.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.at + KEY_LIFETIME
    }
}

/// The reason why the key of a request is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The key was used by an earlier request.
    Repeated(Box<IdempotencyRecord>),
    /// The merchant has the maximum number of keys.
    Full,
}

/// Decides whether a key may be stored at `now`. `stored` is the current record of the key, `is_kept` is false if the
/// same batch deletes it, `max_keys` is the maximum number of keys per merchant, and `count` returns the merchant's number
/// of keys, including expired ones that have not been deleted.
///
/// # Errors
/// The error of `count`.
pub fn admit<E>(
    stored: Option<&IdempotencyRecord>,
    is_kept: bool,
    now: Timestamp,
    max_keys: u64,
    count: impl FnOnce() -> Result<u64, E>,
) -> Result<Result<(), Refusal>, E> {
    Ok(match stored {
        Some(stored) if is_kept && stored.is_valid(now) => Err(Refusal::Repeated(Box::new(*stored))),
        None if count()? >= max_keys => Err(Refusal::Full),
        _ => Ok(()),
    })
}

/// Returns the fingerprint of a settlement request: equal for equal requirements, whatever the transaction.
#[must_use]
pub fn settlement_fingerprint(requirements: &Requirements) -> [u8; 32] {
    let mut hash = Sha256::new();
    let amount = requirements.amount.to_string();
    for part in [SCHEME, NETWORK, &amount, requirements.pay_to.as_str(), &requirements.resource] {
        add(&mut hash, part);
    }
    hash.finalize().into()
}

/// Returns the fingerprint of a redelivery request.
#[must_use]
pub fn redelivery_fingerprint(delivery: DeliveryId) -> [u8; 32] {
    Sha256::digest(delivery.to_string()).into()
}

/// Returns the fingerprint of a request for a test event.
#[must_use]
pub fn test_fingerprint(endpoint: EndpointId, kind: EventType, status: State) -> [u8; 32] {
    let mut hash = Sha256::new();
    add(&mut hash, &endpoint.to_string());
    add(&mut hash, kind.as_str());
    add(&mut hash, status.as_str());
    hash.finalize().into()
}

fn add(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

/// Returns the fingerprint of a payment creation: equal for equal drafts, however they are encoded.
#[must_use]
pub fn fingerprint(draft: &Draft) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut text = |text: &str| add(&mut hash, text);
    text(&draft.amount.to_string());
    text(&draft.description);
    // Distinguishes an absent URL from an empty one.
    for url in [&draft.redirect_url, &draft.cancel_url] {
        text(if url.is_some() { "url" } else { "none" });
        text(url.as_deref().unwrap_or(""));
    }
    text(&draft.lifetime.map_or_else(String::new, |lifetime| lifetime.as_secs().to_string()));
    for (key, value) in &draft.metadata {
        text(key);
        text(match value {
            MetadataValue::Text(_) => "text",
            MetadataValue::List(_) => "list",
        });
        text(&value.texts().count().to_string());
        value.texts().for_each(&mut text);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fields::Metadata,
        money::{Currency, Money},
    };

    fn draft() -> Draft {
        Draft {
            amount: Money::new(1_000, Currency::Hbd),
            description: "Blue mug".to_owned(),
            metadata: Metadata::from([("order".to_owned(), MetadataValue::Text("1".to_owned()))]),
            redirect_url: None,
            cancel_url: None,
            lifetime: None,
        }
    }

    #[test]
    fn a_key_is_visible_ascii_bare_or_quoted() {
        assert_eq!(IdempotencyKey::parse("\"order-1\""), IdempotencyKey::parse("order-1"));
        assert_ne!(IdempotencyKey::parse("\"order-1"), IdempotencyKey::parse("order-1"));
        for bad in ["", "\"\"", "a b", "é", &"x".repeat(256), "a\nb"] {
            assert_eq!(IdempotencyKey::parse(bad).unwrap_err().field, "Idempotency-Key", "{bad:?}");
        }
        let key = IdempotencyKey::parse("order-1").unwrap();
        assert_ne!(key.digest("create"), key.digest("refund"));
    }

    #[test]
    fn a_key_is_stored_once_until_it_expires_and_within_the_limit() {
        let now = Timestamp::from_seconds(9);
        let stored = IdempotencyRecord {
            merchant: MerchantId::from_bits(1),
            key: [1; 32],
            fingerprint: [2; 32],
            resource: Resource::Payment(PaymentId::from_bits(3)),
            at: now,
        };
        let admit = |stored, is_kept, now, count: u64| admit::<()>(stored, is_kept, now, 2, || Ok(count)).unwrap();
        assert_eq!(admit(Some(&stored), true, now, 2), Err(Refusal::Repeated(Box::new(stored))));
        assert_eq!(admit(Some(&stored), false, now, 2), Ok(()), "the same batch deletes it");
        assert_eq!(admit(Some(&stored), true, now + KEY_LIFETIME, 2), Ok(()), "it replaces an expired key");
        assert_eq!(admit(None, false, now, 1), Ok(()));
        assert_eq!(admit(None, false, now, 2), Err(Refusal::Full));
    }

    #[test]
    fn settlement_fingerprints_are_equal_for_equal_requirements() {
        let requirements = |units, pay_to: &str, resource: &str, valid_before| Requirements {
            amount: Money::new(units, Currency::Hbd),
            pay_to: crate::account::AccountName::parse(pay_to).unwrap(),
            resource: resource.to_owned(),
            valid_before,
        };
        let print = |requirements: Requirements| settlement_fingerprint(&requirements);
        let same = print(requirements(1, "alice", "/a", None));
        assert_eq!(same, print(requirements(1, "alice", "/a", Some(Timestamp::from_seconds(9)))));
        for other in [requirements(2, "alice", "/a", None), requirements(1, "bob", "/a", None)] {
            assert_ne!(same, print(other));
        }
        assert_ne!(same, print(requirements(1, "alice", "/b", None)));
    }

    #[test]
    fn a_restart_is_recognized_by_the_expired_payment_and_is_no_creation() {
        let id = PaymentId::from_bits(3);
        let restart = RequestDigests::of_restart(id);
        assert_eq!(restart, RequestDigests::of_restart(id));
        assert_ne!(restart.key, RequestDigests::of_restart(PaymentId::from_bits(4)).key);
        let key = IdempotencyKey::parse(&id.to_string()).unwrap();
        assert_ne!(restart.key, RequestDigests::of_creation(&key, &draft()).key, "a merchant cannot occupy its key");
    }

    #[test]
    fn every_field_of_a_request_is_in_its_fingerprint() {
        let same = fingerprint(&draft());
        assert_eq!(same, fingerprint(&draft()));
        let list = Metadata::from([("order".to_owned(), MetadataValue::List(vec!["1".to_owned()]))]);
        let others = [
            Draft { amount: Money::new(1_001, Currency::Hbd), ..draft() },
            Draft { amount: Money::new(1_000, Currency::Hive), ..draft() },
            Draft { description: "Red mug".to_owned(), ..draft() },
            Draft { metadata: Metadata::new(), ..draft() },
            Draft { metadata: list, ..draft() },
            Draft { redirect_url: Some("https://a.example/".to_owned()), ..draft() },
            Draft { cancel_url: Some("https://a.example/".to_owned()), ..draft() },
            Draft { lifetime: Some(Duration::from_secs(60)), ..draft() },
        ];
        let mut all: Vec<_> = others.iter().map(fingerprint).chain([same]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 9);
    }
}
