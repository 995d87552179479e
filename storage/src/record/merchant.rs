//! The stored form of a merchant.

use std::{collections::BTreeSet, sync::Arc};

use engine::{
    account::AccountName,
    ids::{EndpointId, KeyId, MerchantId},
    merchant::{ApiKey, KeyDigest, Merchant, Scopes},
    ownership::PendingChange,
    time::Timestamp,
    webhook::{Endpoint, EventTypes, Secret, Secrets, Subscriptions},
};
use prost::Message;

use crate::record::{
    ownership::{OwnershipRecord, ownership_from_record, ownership_to_record},
    vault::{StoredSecret, Vault, plain_and_sealed},
    wire::{Bits, Damage, account, array, id, seal, time, unseal},
};

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
    #[prost(message, repeated, tag = "11")]
    keys: Vec<KeyRecord>,
    #[prost(string, tag = "12")]
    secret: String,
    /// The last replaced secret first.
    #[prost(message, repeated, tag = "13")]
    previous_secrets: Vec<PreviousSecretRecord>,
    /// Replaces `secret` if there is a master key.
    #[prost(bytes = "vec", tag = "14")]
    sealed_secret: Vec<u8>,
    #[prost(string, optional, tag = "20")]
    support_url: Option<String>,
    #[prost(message, optional, tag = "21")]
    ownership: Option<OwnershipRecord>,
    /// The event types that its endpoint subscribes to, one bit each.
    #[prost(uint32, tag = "22")]
    webhook_events: u32,
    #[prost(bool, tag = "23")]
    restart_enabled: bool,
    #[prost(message, repeated, tag = "24")]
    endpoints: Vec<EndpointRecord>,
}

/// An endpoint besides the one of `webhook_url`.
#[derive(Clone, PartialEq, Message)]
struct EndpointRecord {
    #[prost(message, optional, tag = "1")]
    id: Option<Bits>,
    #[prost(string, tag = "2")]
    url: String,
    #[prost(string, tag = "3")]
    description: String,
    /// One bit for each type.
    #[prost(uint32, tag = "4")]
    events: u32,
    #[prost(bool, tag = "5")]
    is_enabled: bool,
    #[prost(uint64, tag = "6")]
    created_at_ms: u64,
    #[prost(uint64, tag = "7")]
    updated_at_ms: u64,
    #[prost(string, tag = "8")]
    secret: String,
    #[prost(bytes = "vec", tag = "9")]
    sealed_secret: Vec<u8>,
    /// The last replaced secret first.
    #[prost(message, repeated, tag = "10")]
    previous_secrets: Vec<PreviousSecretRecord>,
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
    #[prost(string, tag = "6")]
    name: String,
    #[prost(string, tag = "7")]
    prefix: String,
    #[prost(uint32, tag = "8")]
    scopes: u32,
    #[prost(uint64, optional, tag = "9")]
    expires_at_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct PreviousSecretRecord {
    #[prost(string, tag = "1")]
    secret: String,
    #[prost(uint64, tag = "2")]
    valid_until_ms: u64,
    #[prost(bytes = "vec", tag = "3")]
    sealed: Vec<u8>,
}

/// The fields of a merchant that a write needs to maintain the indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MerchantFacts {
    /// The version, which each write increments.
    pub(crate) version: u64,
    /// The digests of its API keys.
    pub(crate) digests: BTreeSet<[u8; 32]>,
    /// Its Hive account.
    pub(crate) account: AccountName,
    /// Whether it has proven ownership of the account.
    pub(crate) is_proven: bool,
    /// When a pending change of account takes effect or lapses.
    pub(crate) pending_due_at: Option<Timestamp>,
}

impl MerchantFacts {
    /// Returns the facts of a merchant.
    pub(crate) fn of(merchant: &Merchant) -> Self {
        Self {
            version: merchant.version,
            digests: merchant.keys.iter().map(|key| key.digest.0).collect(),
            account: merchant.hive_account,
            is_proven: merchant.ownership.proof.is_some(),
            pending_due_at: merchant.ownership.pending.as_ref().map(PendingChange::due_at),
        }
    }
}

/// Decodes the facts of a stored merchant.
pub(crate) fn merchant_facts(bytes: &[u8]) -> Result<MerchantFacts, Damage> {
    let record: MerchantRecord = unseal(VERSION, bytes)?;
    let digests = record.keys.iter().map(|key| array("key digest", &key.digest)).collect::<Result<_, _>>()?;
    Ok(MerchantFacts {
        version: record.version,
        digests,
        account: account("hive_account", &record.hive_account)?,
        is_proven: record.ownership.as_ref().is_some_and(OwnershipRecord::is_proven),
        pending_due_at: record.ownership.as_ref().map(OwnershipRecord::due_at).transpose()?.flatten(),
    })
}

/// Returns the name of a stored merchant, whether it is active, and when it was created.
pub(crate) fn merchant_shown(bytes: &[u8]) -> Result<(String, bool, Timestamp), Damage> {
    let record: MerchantRecord = unseal(VERSION, bytes)?;
    Ok((record.name, record.is_active, time(record.created_at_ms)))
}

const SECRET: &str = "secret";
const PREVIOUS_SECRET: &str = "previous secret";

/// Returns the stored form of a merchant. Its id is the key and not repeated.
pub(crate) fn merchant_to_bytes(merchant: Merchant, vault: &Vault) -> Vec<u8> {
    let id = merchant.id;
    let (secret, sealed_secret) = plain_and_sealed(vault.seal(id, SECRET, merchant.secrets.current.reveal()));
    let previous_secrets = previous_to_records(merchant.secrets.previous, |text| vault.seal(id, PREVIOUS_SECRET, text));
    let record = MerchantRecord {
        version: merchant.version,
        name: merchant.name,
        hive_account: merchant.hive_account.as_str().to_owned(),
        icon_url: merchant.icon_url,
        webhook_url: merchant.webhook_url,
        webhook_events: merchant.webhook_events.bits(),
        support_url: merchant.support_url,
        is_active: merchant.is_active,
        x402_enabled: merchant.x402_enabled,
        restart_enabled: merchant.restart_enabled,
        is_admin: merchant.is_admin,
        created_at_ms: merchant.created_at.millis(),
        updated_at_ms: merchant.updated_at.millis(),
        keys: merchant.keys.into_iter().map(key_to_record).collect(),
        secret,
        previous_secrets,
        sealed_secret,
        ownership: ownership_to_record(merchant.ownership),
        endpoints: merchant.endpoints.into_iter().map(|endpoint| endpoint_to_record(id, endpoint, vault)).collect(),
    };
    seal(VERSION, &record)
}

/// Returns the stored form of replaced secrets.
fn previous_to_records(
    previous: Vec<(Secret, Timestamp)>,
    seal: impl Fn(&str) -> StoredSecret,
) -> Vec<PreviousSecretRecord> {
    let records = previous.into_iter().map(|(secret, until)| {
        let (secret, sealed) = plain_and_sealed(seal(secret.reveal()));
        PreviousSecretRecord { secret, valid_until_ms: until.millis(), sealed }
    });
    records.collect()
}

fn endpoint_to_record(merchant: MerchantId, endpoint: Endpoint, vault: &Vault) -> EndpointRecord {
    // A secret does not open for another endpoint of the merchant.
    let [current, previous] = [SECRET, PREVIOUS_SECRET].map(|field| format!("{} {field}", endpoint.id));
    let sealed = vault.seal(merchant, &current, endpoint.secrets.current.reveal());
    let (secret, sealed_secret) = plain_and_sealed(sealed);
    EndpointRecord {
        id: Some(endpoint.id.bits().into()),
        url: endpoint.url,
        description: endpoint.description,
        events: endpoint.events.bits(),
        is_enabled: endpoint.is_enabled,
        created_at_ms: endpoint.created_at.millis(),
        updated_at_ms: endpoint.updated_at.millis(),
        secret,
        sealed_secret,
        previous_secrets: previous_to_records(endpoint.secrets.previous, |text| vault.seal(merchant, &previous, text)),
    }
}

fn endpoint_from_record(merchant: MerchantId, record: EndpointRecord, vault: &Vault) -> Result<Endpoint, Damage> {
    let id = EndpointId::from_bits(id("endpoint id", record.id)?);
    let [current, previous] = [SECRET, PREVIOUS_SECRET].map(|field| format!("{id} {field}"));
    Ok(Endpoint {
        id,
        url: record.url,
        description: record.description,
        events: EventTypes::from_bits(record.events)
            .ok_or_else(|| Damage::Value { field: "events", value: record.events.to_string() })?,
        secrets: Secrets {
            current: read_secret(vault, merchant, (&current, SECRET), record.secret, &record.sealed_secret)?,
            previous: previous_from_records(vault, merchant, &previous, record.previous_secrets)?,
        },
        is_enabled: record.is_enabled,
        created_at: time(record.created_at_ms),
        updated_at: time(record.updated_at_ms),
    })
}

/// Reads a secret; `field` is its place in the vault, and its name in an error.
fn read_secret(
    vault: &Vault,
    merchant: MerchantId,
    field: (&str, &'static str),
    plain: String,
    sealed: &[u8],
) -> Result<Secret, Damage> {
    let text = if sealed.is_empty() { plain } else { vault.open(merchant, field, sealed)? };
    // The error must not contain the secret.
    Secret::from_text(text).ok_or_else(|| Damage::Value { field: field.1, value: "the stored value".to_owned() })
}

fn previous_from_records(
    vault: &Vault,
    merchant: MerchantId,
    field: &str,
    records: Vec<PreviousSecretRecord>,
) -> Result<Vec<(Secret, Timestamp)>, Damage> {
    let read = |previous: PreviousSecretRecord| {
        let place = (field, PREVIOUS_SECRET);
        let secret = read_secret(vault, merchant, place, previous.secret, &previous.sealed)?;
        Ok((secret, time(previous.valid_until_ms)))
    };
    records.into_iter().map(read).collect()
}

fn key_to_record(key: ApiKey) -> KeyRecord {
    KeyRecord {
        id: Some(key.id.bits().into()),
        digest: key.digest.0.to_vec(),
        last4: key.last4,
        created_at_ms: key.created_at.millis(),
        last_used_at_ms: key.last_used_at.map(Timestamp::millis),
        name: key.name,
        prefix: key.prefix,
        scopes: key.scopes.bits(),
        expires_at_ms: key.expires_at.map(Timestamp::millis),
    }
}

fn key_from_record(key: KeyRecord) -> Result<ApiKey, Damage> {
    let scopes = Scopes::from_bits(key.scopes);
    Ok(ApiKey {
        id: KeyId::from_bits(id("key id", key.id)?),
        digest: KeyDigest(array("key digest", &key.digest)?),
        last4: key.last4,
        created_at: time(key.created_at_ms),
        last_used_at: key.last_used_at_ms.map(time),
        name: key.name,
        prefix: key.prefix,
        scopes: scopes.ok_or_else(|| Damage::Value { field: "scopes", value: key.scopes.to_string() })?,
        expires_at: key.expires_at_ms.map(time),
    })
}

/// Returns a merchant as JSON, without its secrets, which stay sealed, and without the digests of its keys.
pub(crate) fn merchant_to_json(key: MerchantId, bytes: &[u8]) -> Result<serde_json::Value, Damage> {
    let record: MerchantRecord = unseal(VERSION, bytes)?;
    let keys: Vec<ApiKey> = record.keys.into_iter().map(key_from_record).collect::<Result<_, _>>()?;
    let ownership = ownership_from_record(record.ownership)?;
    let keys = keys.iter().map(|key| {
        serde_json::json!({
            "id": key.id.to_string(), "name": key.name, "last4": key.last4, "createdAt": key.created_at.to_string(),
            "lastUsedAt": key.last_used_at.map(|at| at.to_string()),
            "expiresAt": key.expires_at.map(|at| at.to_string()),
        })
    });
    let endpoints = record.endpoints.iter().map(|endpoint| {
        let id = id("endpoint id", endpoint.id).map(EndpointId::from_bits);
        serde_json::json!({
            "id": id.map(|id| id.to_string()).ok(), "url": endpoint.url, "description": endpoint.description,
            "enabled": endpoint.is_enabled, "createdAt": time(endpoint.created_at_ms).to_string(),
        })
    });
    Ok(serde_json::json!({
        "record": "merchant", "id": key.to_string(), "version": record.version, "name": record.name,
        "hiveAccount": account("hive_account", &record.hive_account)?.as_str(),
        "accountVerification": ownership.verification_status().as_str(),
        "pendingAccount": ownership.pending.map(|pending| pending.account.to_string()), "iconUrl": record.icon_url,
        "webhookUrl": record.webhook_url, "supportUrl": record.support_url, "isActive": record.is_active,
        "x402Enabled": record.x402_enabled, "restartEnabled": record.restart_enabled, "isAdmin": record.is_admin,
        "createdAt": time(record.created_at_ms).to_string(), "updatedAt": time(record.updated_at_ms).to_string(),
        "keys": keys.collect::<Vec<_>>(),
        "webhookEndpoints": endpoints.collect::<Vec<_>>(),
    }))
}

/// Decodes a merchant, or returns it from the cache.
pub(crate) fn merchant_from_bytes(key: MerchantId, bytes: &[u8], vault: &Vault) -> Result<Arc<Merchant>, Damage> {
    vault.merchant(key, bytes, || read_merchant(key, bytes, vault))
}

/// Returns whether a stored merchant has an unencrypted secret.
pub(crate) fn merchant_is_plain(bytes: &[u8]) -> Result<bool, Damage> {
    let record: MerchantRecord = unseal(VERSION, bytes)?;
    let is_plain = |secret: &str, previous: &[PreviousSecretRecord]| {
        !secret.is_empty() || previous.iter().any(|previous| !previous.secret.is_empty())
    };
    let mut endpoints = record.endpoints.iter();
    Ok(is_plain(&record.secret, &record.previous_secrets)
        || endpoints.any(|endpoint| is_plain(&endpoint.secret, &endpoint.previous_secrets)))
}

fn read_merchant(key: MerchantId, bytes: &[u8], vault: &Vault) -> Result<Merchant, Damage> {
    let record: MerchantRecord = unseal(VERSION, bytes)?;
    let keys: Vec<ApiKey> = record.keys.into_iter().map(key_from_record).collect::<Result<_, _>>()?;
    if keys.is_empty() {
        return Err(Damage::Missing("key"));
    }
    let endpoints = record.endpoints.into_iter().map(|endpoint| endpoint_from_record(key, endpoint, vault));
    let endpoints = endpoints.collect::<Result<_, _>>()?;
    Ok(Merchant {
        id: key,
        version: record.version,
        name: record.name,
        hive_account: account("hive_account", &record.hive_account)?,
        icon_url: record.icon_url,
        webhook_url: record.webhook_url,
        webhook_events: Subscriptions::from_bits(record.webhook_events)
            .ok_or_else(|| Damage::Value { field: "webhook_events", value: record.webhook_events.to_string() })?,
        support_url: record.support_url,
        is_active: record.is_active,
        x402_enabled: record.x402_enabled,
        restart_enabled: record.restart_enabled,
        is_admin: record.is_admin,
        created_at: time(record.created_at_ms),
        updated_at: time(record.updated_at_ms),
        keys,
        secrets: Secrets {
            current: read_secret(vault, key, (SECRET, SECRET), record.secret, &record.sealed_secret)?,
            previous: previous_from_records(vault, key, PREVIOUS_SECRET, record.previous_secrets)?,
        },
        endpoints,
        ownership: ownership_from_record(record.ownership)?,
    })
}
