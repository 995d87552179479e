//! Signed offers and receipts: the offer-and-receipt extension of x402, as JWS with Ed25519 (RFC 7515, RFC 8037).
//!
//! A payload is the canonical JSON of RFC 8785: the fields of the structs below are in the order of their names.

use std::fmt;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::{NETWORK, SCHEME};
use crate::{account::AccountName, money::Money, time::Timestamp};

/// The version of the payloads.
const VERSION: u8 = 1;
/// The extension's name in `extensions`.
pub const OFFER_RECEIPT: &str = "offer-receipt";

/// The secret key that signs offers and receipts: the seed of an Ed25519 key pair.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiptKey([u8; 32]);

/// Hides the key.
impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptKey(..)")
    }
}

impl ReceiptKey {
    /// Creates a key from 32 random bytes.
    #[must_use]
    pub const fn new(seed: [u8; 32]) -> Self {
        Self(seed)
    }

    /// Parses a key of 64 hex characters; `None` if the text is something else.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let seed = hex::decode(text).ok()?;
        <[u8; 32]>::try_from(seed).ok().map(Self)
    }

    /// Returns the key as 64 hex characters.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        let mut public = [0; 32];
        public.copy_from_slice(self.pair().public_key().as_ref());
        public
    }

    fn pair(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&self.0).expect("a seed has 32 bytes")
    }
}

/// A public key that is no longer used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetiredReceiptKey {
    /// The public key.
    pub public: [u8; 32],
    /// When it was replaced.
    pub retired_at: Timestamp,
}

/// The keys of an installation: one that signs, and the public keys of all earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptKeys {
    /// The version, from 1; each rotation increments it.
    pub version: u64,
    /// The key that signs.
    pub current: ReceiptKey,
    /// When it was created.
    pub created_at: Timestamp,
    /// Earlier keys, the newest first.
    pub retired: Vec<RetiredReceiptKey>,
}

impl ReceiptKeys {
    /// Creates the first key of an installation.
    #[must_use]
    pub const fn create(key: ReceiptKey, now: Timestamp) -> Self {
        Self { version: 1, current: key, created_at: now, retired: Vec::new() }
    }

    /// Replaces the key. The public key of the replaced one remains in the key set.
    #[must_use]
    pub fn rotate(&self, key: ReceiptKey, now: Timestamp) -> Self {
        let replaced = RetiredReceiptKey { public: self.current.public(), retired_at: now };
        let retired = std::iter::once(replaced).chain(self.retired.iter().cloned()).collect();
        Self { version: self.version + 1, current: key, created_at: now, retired }
    }

    /// Returns the public keys, the current one first.
    pub fn public_keys(&self) -> impl Iterator<Item = [u8; 32]> + '_ {
        std::iter::once(self.current.public()).chain(self.retired.iter().map(|key| key.public))
    }
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns a public key as a JWK with its required members only, in the order of RFC 7638.
fn jwk(public: &[u8; 32]) -> String {
    format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, base64url(public))
}

/// Returns the DID URL of a public key. It contains the key (`did:jwk`), so that a signature can be verified offline.
#[must_use]
pub fn receipt_key_id(public: &[u8; 32]) -> String {
    format!("did:jwk:{}#0", base64url(jwk(public).as_bytes()))
}

/// Returns the document of `/.well-known/jwks.json` with these public keys.
#[must_use]
pub fn key_set(keys: impl IntoIterator<Item = [u8; 32]>) -> Value {
    let key = |public: [u8; 32]| {
        json!({
            "kty": "OKP", "crv": "Ed25519", "x": base64url(&public), "alg": "EdDSA", "use": "sig",
            "kid": receipt_key_id(&public),
        })
    };
    json!({ "keys": keys.into_iter().map(key).collect::<Vec<_>>() })
}

/// The terms of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferTerms<'a> {
    /// The URL of the resource, as in the payment requirements.
    pub url: &'a str,
    /// The price.
    pub amount: Money,
    /// The payee.
    pub pay_to: &'a AccountName,
    /// Until when the offer is valid.
    pub valid_until: Timestamp,
}

/// What a receipt confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptTerms<'a> {
    /// The URL of the resource.
    pub url: &'a str,
    /// The paying account.
    pub payer: &'a str,
    /// The transaction's id.
    pub tx_id: &'a str,
    /// When the receipt is issued.
    pub issued_at: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfferPayload<'a> {
    amount: String,
    asset: &'static str,
    network: &'static str,
    pay_to: &'a str,
    resource_url: &'a str,
    scheme: &'static str,
    valid_until: u64,
    version: u8,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptPayload<'a> {
    issued_at: u64,
    network: &'static str,
    payer: &'a str,
    resource_url: &'a str,
    transaction: &'a str,
    version: u8,
}

/// Signs offers and receipts with one key.
#[derive(Debug)]
pub struct Signer {
    pair: Ed25519KeyPair,
    public: [u8; 32],
}

impl Signer {
    /// Creates the signer of a key.
    #[must_use]
    pub fn new(key: &ReceiptKey) -> Self {
        Self { pair: key.pair(), public: key.public() }
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public(&self) -> [u8; 32] {
        self.public
    }

    /// Returns the compact serialization of a signed offer.
    #[must_use]
    pub fn sign_offer(&self, terms: &OfferTerms<'_>) -> String {
        self.sign(&OfferPayload {
            amount: terms.amount.units.to_string(),
            asset: terms.amount.currency.code(),
            network: NETWORK,
            pay_to: terms.pay_to.as_str(),
            resource_url: terms.url,
            scheme: SCHEME,
            valid_until: terms.valid_until.seconds(),
            version: VERSION,
        })
    }

    /// Returns the compact serialization of a signed receipt.
    #[must_use]
    pub fn sign_receipt(&self, terms: &ReceiptTerms<'_>) -> String {
        self.sign(&ReceiptPayload {
            issued_at: terms.issued_at.seconds(),
            network: NETWORK,
            payer: terms.payer,
            resource_url: terms.url,
            transaction: terms.tx_id,
            version: VERSION,
        })
    }

    fn sign(&self, payload: &impl Serialize) -> String {
        let header = format!(r#"{{"alg":"EdDSA","kid":"{}"}}"#, receipt_key_id(&self.public));
        let payload = serde_json::to_string(payload).expect("texts and numbers always serialize");
        self.sign_texts(&header, &payload)
    }

    /// Returns the compact serialization of a signed text.
    fn sign_texts(&self, header: &str, payload: &str) -> String {
        let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(payload.as_bytes()));
        let signature = self.pair.sign(signed.as_bytes());
        format!("{signed}.{}", base64url(signature.as_ref()))
    }
}

/// Returns the member `offer-receipt` of payment requirements whose only entry has this signed offer.
#[must_use]
pub fn offer_extension(jws: &str) -> Value {
    let offer = json!({
        "type": "object",
        "properties": {
            "format": { "type": "string", "const": "jws" },
            "acceptIndex": { "type": "integer" },
            "signature": { "type": "string" },
        },
        "required": ["format", "signature"],
    });
    json!({
        "info": { "offers": [{ "format": "jws", "acceptIndex": 0, "signature": jws }] },
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "offers": { "type": "array", "items": offer } },
            "required": ["offers"],
        },
    })
}

/// Returns the member `offer-receipt` of a settlement response with this signed receipt.
#[must_use]
pub fn receipt_extension(jws: &str) -> Value {
    let receipt = json!({
        "type": "object",
        "properties": { "format": { "type": "string", "const": "jws" }, "signature": { "type": "string" } },
        "required": ["format", "signature"],
    });
    json!({
        "info": { "version": VERSION, "receipt": { "format": "jws", "signature": jws } },
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "version": { "type": "integer" }, "receipt": receipt },
            "required": ["version", "receipt"],
        },
    })
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;
    use crate::money::Currency;

    /// The private key of RFC 8037, appendix A.1, in hex.
    const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    const PUBLIC: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const URL: &str = "https://pay.example/for/blue-mug-0000";

    fn key() -> ReceiptKey {
        ReceiptKey::from_hex(SECRET).unwrap()
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn receipt() -> String {
        let issued_at = at(1_800_000_000);
        Signer::new(&key()).sign_receipt(&ReceiptTerms { url: URL, payer: "alice", tx_id: "00ff", issued_at })
    }

    fn decode(part: &str) -> Vec<u8> {
        BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()
    }

    fn text(part: &str) -> String {
        String::from_utf8(decode(part)).unwrap()
    }

    fn is_valid(jws: &str, public: &[u8]) -> bool {
        let (signed, signature) = jws.rsplit_once('.').unwrap();
        UnparsedPublicKey::new(&ED25519, public).verify(signed.as_bytes(), &decode(signature)).is_ok()
    }

    #[test]
    fn the_vectors_of_rfc_8037_hold() {
        let signer = Signer::new(&key());
        assert_eq!(jwk(&signer.public()), format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{PUBLIC}"}}"#));
        assert_eq!(key_set([signer.public()])["keys"][0]["x"], PUBLIC);
        assert_eq!(
            signer.sign_texts(r#"{"alg":"EdDSA"}"#, "Example of Ed25519 signing"),
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
             hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        );
    }

    #[test]
    fn a_receipt_is_the_canonical_json_of_the_extension() {
        let jws = receipt();
        let parts: Vec<&str> = jws.split('.').collect();
        let id = receipt_key_id(&key().public());
        assert_eq!(text(parts[0]), format!(r#"{{"alg":"EdDSA","kid":"{id}"}}"#));
        let encoded = id.strip_prefix("did:jwk:").and_then(|rest| rest.strip_suffix("#0")).unwrap();
        assert_eq!(text(encoded), jwk(&key().public()));
        let wanted = concat!(
            r#"{"issuedAt":1800000000,"network":"hive:mainnet","payer":"alice","#,
            r#""resourceUrl":"https://pay.example/for/blue-mug-0000","transaction":"00ff","version":1}"#,
        );
        assert_eq!(text(parts[1]), wanted);
        assert_eq!(receipt_extension(&jws)["info"]["receipt"], json!({ "format": "jws", "signature": jws }));
    }

    #[test]
    fn an_offer_is_the_canonical_json_of_the_extension() {
        let pay_to = AccountName::parse("blue.mugs").unwrap();
        let amount = Money::new(10_500, Currency::Hbd);
        let terms = OfferTerms { url: URL, amount, pay_to: &pay_to, valid_until: at(1_800_000_300) };
        let jws = Signer::new(&key()).sign_offer(&terms);
        let wanted = concat!(
            r#"{"amount":"10500","asset":"HBD","network":"hive:mainnet","payTo":"blue.mugs","#,
            r#""resourceUrl":"https://pay.example/for/blue-mug-0000","scheme":"exact","#,
            r#""validUntil":1800000300,"version":1}"#,
        );
        assert_eq!(text(jws.split('.').nth(1).unwrap()), wanted);
        assert!(is_valid(&jws, &key().public()));
        let offers = json!([{ "format": "jws", "acceptIndex": 0, "signature": jws }]);
        assert_eq!(offer_extension(&jws)["info"], json!({ "offers": offers }));
    }

    #[test]
    fn a_changed_receipt_and_another_key_are_refused() {
        let jws = receipt();
        assert!(is_valid(&jws, &key().public()));
        let parts: Vec<&str> = jws.split('.').collect();
        let changed = base64url(text(parts[1]).replace("alice", "mallory").as_bytes());
        assert_ne!(changed, parts[1]);
        assert!(!is_valid(&[parts[0], changed.as_str(), parts[2]].join("."), &key().public()));
        assert!(!is_valid(&jws, &ReceiptKey::new([7; 32]).public()));
    }

    #[test]
    fn a_rotation_keeps_every_public_key_the_newest_first() {
        let first = ReceiptKeys::create(key(), at(1));
        let third = first.rotate(ReceiptKey::new([2; 32]), at(2)).rotate(ReceiptKey::new([3; 32]), at(3));
        assert_eq!((third.version, third.created_at), (3, at(3)));
        let retired = |key: ReceiptKey, seconds| RetiredReceiptKey { public: key.public(), retired_at: at(seconds) };
        assert_eq!(third.retired, [retired(ReceiptKey::new([2; 32]), 3), retired(key(), 2)]);
        let set = key_set(third.public_keys());
        let ids: Vec<&str> = set["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap()).collect();
        let wanted = [ReceiptKey::new([3; 32]), ReceiptKey::new([2; 32]), key()];
        assert_eq!(ids, wanted.map(|key| receipt_key_id(&key.public())));
    }

    #[test]
    fn only_64_hex_characters_are_a_key_and_a_key_is_not_shown() {
        for text in ["", "00", &"0".repeat(62), &"0".repeat(66), &"x".repeat(64)] {
            assert!(ReceiptKey::from_hex(text).is_none(), "{text}");
        }
        assert_eq!(key().to_hex(), SECRET);
        assert_eq!(format!("{:?}", ReceiptKeys::create(key(), at(1)).current), "ReceiptKey(..)");
    }
}
