//! Signed receipts of the gate: the offer-and-receipt extension of x402, as JWS with Ed25519 (RFC 7515, RFC 8037).

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use engine::{time::Timestamp, x402::NETWORK};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

/// The version of the extension's schema.
const VERSION: u8 = 1;

/// Signs receipts with one key.
#[derive(Debug)]
pub(super) struct Signer {
    pair: Ed25519KeyPair,
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    /// Returns the signer whose secret key is 64 hex characters; `None` if the text is something else.
    pub(super) fn from_hex(secret: &str) -> Option<Self> {
        let seed = hex::decode(secret).ok()?;
        Ed25519KeyPair::from_seed_unchecked(&seed).ok().map(|pair| Self { pair })
    }

    /// Returns the public key as a JWK with its required members only, in the order of RFC 7638.
    fn jwk(&self) -> String {
        let x = base64url(self.pair.public_key().as_ref());
        format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)
    }

    /// Returns the DID URL of the key. It contains the public key (`did:jwk`), so that a receipt can be verified offline.
    fn key_id(&self) -> String {
        format!("did:jwk:{}#0", base64url(self.jwk().as_bytes()))
    }

    /// Returns the document of `/.well-known/jwks.json`.
    pub(super) fn key_set(&self) -> Value {
        let x = base64url(self.pair.public_key().as_ref());
        json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "x": x, "alg": "EdDSA", "use": "sig", "kid": self.key_id(),
        }] })
    }

    /// Returns the compact serialization of a signed text.
    fn sign(&self, header: &str, payload: &str) -> String {
        let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(payload.as_bytes()));
        let signature = self.pair.sign(signed.as_bytes());
        format!("{signed}.{}", base64url(signature.as_ref()))
    }

    /// Returns the `extensions` of a settlement response: the receipt for one served payment.
    pub(super) fn receipt(&self, url: &str, payer: &str, tx_id: &str, issued_at: Timestamp) -> Value {
        let header = json!({ "alg": "EdDSA", "kid": self.key_id() });
        let payload = json!({
            "version": VERSION, "network": NETWORK, "resourceUrl": url, "payer": payer,
            "issuedAt": issued_at.seconds(), "transaction": tx_id,
        });
        let signature = self.sign(&header.to_string(), &payload.to_string());
        json!({ "offer-receipt": {
            "info": { "version": VERSION, "receipt": { "format": "jws", "signature": signature } },
            "schema": schema(),
        } })
    }
}

/// Returns the JSON schema of the extension's `info`.
fn schema() -> Value {
    let receipt = json!({
        "type": "object",
        "properties": { "format": { "type": "string", "const": "jws" }, "signature": { "type": "string" } },
        "required": ["format", "signature"],
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "version": { "type": "integer" }, "receipt": receipt },
        "required": ["version", "receipt"],
    })
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    /// The private key of RFC 8037, appendix A.1, in hex.
    const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    const PUBLIC: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn signer() -> Signer {
        Signer::from_hex(SECRET).unwrap()
    }

    fn jws() -> String {
        let issued_at = Timestamp::from_seconds(1_800_000_000);
        let extensions = signer().receipt("https://api.example/report", "alice", "00ff", issued_at);
        extensions["offer-receipt"]["info"]["receipt"]["signature"].as_str().unwrap().to_owned()
    }

    fn decode(part: &str) -> Vec<u8> {
        BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()
    }

    fn is_valid(jws: &str, public: &[u8]) -> bool {
        let (signed, signature) = jws.rsplit_once('.').unwrap();
        UnparsedPublicKey::new(&ED25519, public).verify(signed.as_bytes(), &decode(signature)).is_ok()
    }

    #[test]
    fn the_vectors_of_rfc_8037_hold() {
        let signer = signer();
        assert_eq!(signer.jwk(), format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{PUBLIC}"}}"#));
        assert_eq!(signer.key_set()["keys"][0]["x"], PUBLIC);
        assert_eq!(
            signer.sign(r#"{"alg":"EdDSA"}"#, "Example of Ed25519 signing"),
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
             hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        );
    }

    #[test]
    fn a_receipt_has_the_fields_of_the_extension() {
        let jws = jws();
        let parts: Vec<&str> = jws.split('.').collect();
        let header: Value = serde_json::from_slice(&decode(parts[0])).unwrap();
        let key_id = header["kid"].as_str().unwrap();
        assert_eq!((&header["alg"], key_id), (&json!("EdDSA"), signer().key_id().as_str()));
        let encoded = key_id.strip_prefix("did:jwk:").and_then(|rest| rest.strip_suffix("#0")).unwrap();
        assert_eq!(decode(encoded), signer().jwk().as_bytes());
        let payload: Value = serde_json::from_slice(&decode(parts[1])).unwrap();
        let expected = json!({
            "version": 1, "network": "hive:mainnet", "resourceUrl": "https://api.example/report", "payer": "alice",
            "issuedAt": 1_800_000_000, "transaction": "00ff",
        });
        assert_eq!(payload, expected);
    }

    #[test]
    fn a_changed_receipt_and_another_key_are_refused() {
        let (jws, public) = (jws(), decode(PUBLIC));
        assert!(is_valid(&jws, &public));
        let parts: Vec<&str> = jws.split('.').collect();
        let payload = String::from_utf8(decode(parts[1])).unwrap();
        let changed = base64url(payload.replace("alice", "mallory").as_bytes());
        assert_ne!(changed, parts[1]);
        assert!(!is_valid(&[parts[0], changed.as_str(), parts[2]].join("."), &public));
        let other = Signer::from_hex(&"07".repeat(32)).unwrap();
        assert!(!is_valid(&jws, other.pair.public_key().as_ref()));
    }

    #[test]
    fn only_64_hex_characters_are_a_key() {
        for text in ["", "00", &"0".repeat(62), &"0".repeat(66), &"x".repeat(64)] {
            assert!(Signer::from_hex(text).is_none(), "{text}");
        }
    }
}
