//! The stored form of the keys that sign offers and receipts.

use engine::x402::{ReceiptKey, ReceiptKeys, RetiredReceiptKey};
use prost::Message;

use crate::record::{
    vault::{Vault, plain_and_sealed},
    wire::{Damage, array, seal, time, unseal},
};

const VERSION: u8 = 1;
/// The name of the secret key among the secrets of the installation.
const KEY: &str = "receipt key";

#[derive(Clone, PartialEq, Message)]
struct ReceiptKeysRecord {
    #[prost(uint64, tag = "1")]
    version: u64,
    #[prost(uint64, tag = "2")]
    created_at_ms: u64,
    /// 64 hex characters.
    #[prost(string, tag = "3")]
    key: String,
    /// Replaces `key` if there is a master key.
    #[prost(bytes = "vec", tag = "4")]
    sealed_key: Vec<u8>,
    /// The newest first.
    #[prost(message, repeated, tag = "5")]
    retired: Vec<RetiredRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct RetiredRecord {
    #[prost(bytes = "vec", tag = "1")]
    public: Vec<u8>,
    #[prost(uint64, tag = "2")]
    retired_at_ms: u64,
}

/// Returns the stored form of the keys.
pub(crate) fn receipt_keys_to_bytes(keys: &ReceiptKeys, vault: &Vault) -> Vec<u8> {
    let (key, sealed_key) = plain_and_sealed(vault.seal_own(KEY, &keys.current.to_hex()));
    let retired = keys
        .retired
        .iter()
        .map(|retired| RetiredRecord { public: retired.public.to_vec(), retired_at_ms: retired.retired_at.millis() });
    let (version, created_at_ms) = (keys.version, keys.created_at.millis());
    seal(VERSION, &ReceiptKeysRecord { version, created_at_ms, key, sealed_key, retired: retired.collect() })
}

/// Decodes the keys.
pub(crate) fn receipt_keys_from_bytes(bytes: &[u8], vault: &Vault) -> Result<ReceiptKeys, Damage> {
    let record: ReceiptKeysRecord = unseal(VERSION, bytes)?;
    let text = if record.sealed_key.is_empty() { record.key } else { vault.open_own(KEY, &record.sealed_key)? };
    // The error must not contain the secret.
    let invalid = || Damage::Value { field: KEY, value: "the stored value".to_owned() };
    Ok(ReceiptKeys {
        version: record.version,
        current: ReceiptKey::from_hex(&text).ok_or_else(invalid)?,
        created_at: time(record.created_at_ms),
        retired: record.retired.iter().map(retired_from_record).collect::<Result<_, _>>()?,
    })
}

fn retired_from_record(record: &RetiredRecord) -> Result<RetiredReceiptKey, Damage> {
    Ok(RetiredReceiptKey { public: array("public key", &record.public)?, retired_at: time(record.retired_at_ms) })
}

/// Checks everything but the secret key, which may be encrypted with a key that is not at hand. Returns the version of the keys.
pub(crate) fn receipt_keys_version(bytes: &[u8]) -> Result<u64, Damage> {
    let record: ReceiptKeysRecord = unseal(VERSION, bytes)?;
    if record.sealed_key.is_empty() && ReceiptKey::from_hex(&record.key).is_none() {
        return Err(Damage::Missing(KEY));
    }
    record.retired.iter().try_for_each(|retired| retired_from_record(retired).map(drop))?;
    Ok(record.version)
}

/// Returns whether the stored secret key is unencrypted.
pub(crate) fn receipt_keys_are_plain(bytes: &[u8]) -> Result<bool, Damage> {
    let record: ReceiptKeysRecord = unseal(VERSION, bytes)?;
    Ok(record.sealed_key.is_empty())
}

/// Returns the keys as JSON, without the secret key.
pub(crate) fn receipt_keys_to_json(bytes: &[u8]) -> Result<serde_json::Value, Damage> {
    let version = receipt_keys_version(bytes)?;
    let record: ReceiptKeysRecord = unseal(VERSION, bytes)?;
    let retired = record.retired.iter().map(retired_from_record).collect::<Result<Vec<_>, _>>()?;
    let retired = retired.iter().map(|retired| {
        serde_json::json!({
            "keyId": engine::x402::receipt_key_id(&retired.public), "retiredAt": retired.retired_at.to_string(),
        })
    });
    Ok(serde_json::json!({
        "record": "receiptKeys", "version": version, "createdAt": time(record.created_at_ms).to_string(),
        "retired": retired.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use engine::time::Timestamp;

    use super::*;
    use crate::record::vault::MasterKey;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn keys() -> ReceiptKeys {
        ReceiptKeys::create(ReceiptKey::new([1; 32]), at(9_000)).rotate(ReceiptKey::new([2; 32]), at(9_500))
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn receipt_keys_have_these_bytes() {
        let bytes = receipt_keys_to_bytes(&keys(), &Vault::default());
        let public = hex(&ReceiptKey::new([1; 32]).public());
        let secret = hex("02".repeat(32).as_bytes());
        assert_eq!(hex(&bytes), format!("010802109c4a1a40{secret}2a250a20{public}109c4a"));
        assert_eq!(receipt_keys_from_bytes(&bytes, &Vault::default()), Ok(keys()));
        assert_eq!((receipt_keys_version(&bytes), receipt_keys_are_plain(&bytes)), (Ok(2), Ok(true)));
    }

    #[test]
    fn the_secret_key_is_sealed_and_opens_only_with_the_master_key() {
        let vault = Vault::new(Some(MasterKey::new([3; 32])), None);
        let bytes = receipt_keys_to_bytes(&keys(), &vault);
        let secret = "02".repeat(32);
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
        assert_eq!(receipt_keys_from_bytes(&bytes, &vault), Ok(keys()));
        assert_eq!((receipt_keys_version(&bytes), receipt_keys_are_plain(&bytes)), (Ok(2), Ok(false)));
        let rotated = Vault::new(Some(MasterKey::new([4; 32])), Some(MasterKey::new([3; 32])));
        assert_eq!(receipt_keys_from_bytes(&bytes, &rotated), Ok(keys()));
        for other in [Vault::default(), Vault::new(Some(MasterKey::new([4; 32])), None)] {
            assert!(receipt_keys_from_bytes(&bytes, &other).is_err());
        }
    }

    #[test]
    fn an_export_contains_no_secret_and_damage_is_found() {
        let bytes = receipt_keys_to_bytes(&keys(), &Vault::default());
        let json = receipt_keys_to_json(&bytes).unwrap().to_string();
        assert!(!json.contains(&"02".repeat(32)) && json.contains("did:jwk:"), "{json}");
        let broken = ReceiptKeysRecord { version: 1, ..ReceiptKeysRecord::default() };
        assert_eq!(receipt_keys_version(&seal(VERSION, &broken)), Err(Damage::Missing(KEY)));
        let short = RetiredRecord { public: vec![1], retired_at_ms: 1 };
        let broken = ReceiptKeysRecord { key: "01".repeat(32), retired: vec![short], ..ReceiptKeysRecord::default() };
        assert!(matches!(
            receipt_keys_version(&seal(VERSION, &broken)),
            Err(Damage::Value { field: "public key", .. })
        ));
    }
}
