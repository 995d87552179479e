//! A merchant's bytes.

use engine::{
    ids::{KeyId, MerchantId},
    merchant::{ApiKey, KeyDigest, Merchant},
    time::Timestamp,
    webhook::{Secret, Secrets},
};
use prost::Message;

use super::{Bits, Damage, account, array, id, seal, time, unseal};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct MerchantRecord {
    #[prost(uint64, tag = "1")]
    version: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    hive_account: String,
    #[prost(string, optional, tag = "4")]
    icon_url: Option<String>,
    #[prost(string, optional, tag = "5")]
    webhook_url: Option<String>,
    #[prost(bool, tag = "6")]
    is_active: bool,
    #[prost(bool, tag = "7")]
    x402_enabled: bool,
    #[prost(bool, tag = "8")]
    is_admin: bool,
    #[prost(uint64, tag = "9")]
    created_at_ms: u64,
    #[prost(uint64, tag = "10")]
    updated_at_ms: u64,
    #[prost(message, optional, tag = "11")]
    key: Option<KeyRecord>,
    #[prost(string, tag = "12")]
    secret: String,
    #[prost(message, optional, tag = "13")]
    previous_secret: Option<PreviousSecretRecord>,
    #[prost(string, optional, tag = "20")]
    support_url: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyRecord {
    #[prost(message, optional, tag = "1")]
    id: Option<Bits>,
    #[prost(bytes = "vec", tag = "2")]
    digest: Vec<u8>,
    #[prost(string, tag = "3")]
    last4: String,
    #[prost(uint64, tag = "4")]
    created_at_ms: u64,
    #[prost(uint64, optional, tag = "5")]
    last_used_at_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct PreviousSecretRecord {
    #[prost(string, tag = "1")]
    secret: String,
    #[prost(uint64, tag = "2")]
    valid_until_ms: u64,
}

/// What the writer must know of a merchant to keep its indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MerchantFacts {
    /// How often it was written.
    pub(crate) version: u64,
    /// What its API key hashes to.
    pub(crate) digest: [u8; 32],
}

impl MerchantFacts {
    /// Returns the facts of a merchant.
    pub(crate) fn of(merchant: &Merchant) -> Self {
        Self { version: merchant.version, digest: merchant.key.digest.0 }
    }
}

/// Reads the facts of a stored merchant.
pub(crate) fn merchant_facts(bytes: &[u8]) -> Result<MerchantFacts, Damage> {
    let record: MerchantRecord = unseal(VERSION, bytes)?;
    let key = record.key.ok_or(Damage::Missing("key"))?;
    Ok(MerchantFacts { version: record.version, digest: array("key digest", &key.digest)? })
}

/// Returns a merchant's stored form. Its id is the key and not repeated.
pub(crate) fn merchant_to_bytes(merchant: Merchant) -> Vec<u8> {
    let key = KeyRecord {
        id: Some(merchant.key.id.bits().into()),
        digest: merchant.key.digest.0.to_vec(),
        last4: merchant.key.last4,
        created_at_ms: merchant.key.created_at.millis(),
        last_used_at_ms: merchant.key.last_used_at.map(Timestamp::millis),
    };
    let record = MerchantRecord {
        version: merchant.version,
        name: merchant.name,
        hive_account: merchant.hive_account.as_str().to_owned(),
        icon_url: merchant.icon_url,
        webhook_url: merchant.webhook_url,
        support_url: merchant.support_url,
        is_active: merchant.is_active,
        x402_enabled: merchant.x402_enabled,
        is_admin: merchant.is_admin,
        created_at_ms: merchant.created_at.millis(),
        updated_at_ms: merchant.updated_at.millis(),
        key: Some(key),
        secret: merchant.secrets.current.reveal().to_owned(),
        previous_secret: merchant.secrets.previous.map(|(secret, until)| PreviousSecretRecord {
            secret: secret.reveal().to_owned(),
            valid_until_ms: until.millis(),
        }),
    };
    seal(VERSION, &record)
}

/// Reads a merchant.
pub(crate) fn merchant_from_bytes(key: MerchantId, bytes: &[u8]) -> Result<Merchant, Damage> {
    let record: MerchantRecord = unseal(VERSION, bytes)?;
    let api_key = record.key.ok_or(Damage::Missing("key"))?;
    let previous = record
        .previous_secret
        .map(|previous| Ok::<_, Damage>((secret("previous secret", previous.secret)?, time(previous.valid_until_ms))));
    Ok(Merchant {
        id: key,
        version: record.version,
        name: record.name,
        hive_account: account("hive_account", &record.hive_account)?,
        icon_url: record.icon_url,
        webhook_url: record.webhook_url,
        support_url: record.support_url,
        is_active: record.is_active,
        x402_enabled: record.x402_enabled,
        is_admin: record.is_admin,
        created_at: time(record.created_at_ms),
        updated_at: time(record.updated_at_ms),
        key: ApiKey {
            id: KeyId::from_bits(id("key id", api_key.id)?),
            digest: KeyDigest(array("key digest", &api_key.digest)?),
            last4: api_key.last4,
            created_at: time(api_key.created_at_ms),
            last_used_at: api_key.last_used_at_ms.map(time),
        },
        secrets: Secrets { current: secret("secret", record.secret)?, previous: previous.transpose()? },
    })
}

/// Reads a webhook secret; its text stays out of the error.
fn secret(field: &'static str, text: String) -> Result<Secret, Damage> {
    Secret::from_text(text).ok_or_else(|| Damage::Value { field, value: "what is stored".to_owned() })
}
